/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency, rate and bandwidth asked of the NIC itself, below VIPL: two processes, one VI, no library in between.
 * Prints the tables of the MPI benchmarks of this folder, so that the cost of each layer is the difference.
 *
 *   nic_latency [-w lat|bw|get] [-m max] [-i iterations] [-p]     -p: payload in pool buffers that change hands
 */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/nic.h"

enum { DEPTH = 64, SMALL = 64 };

struct side {
	struct nic *nic;
	uint32_t vi, handle, mem_handle;
	struct nic_desc *desc; /* DEPTH receives, then one send */
	uint8_t *mem;
	int head; /* next receive to complete */
};

/* Shared by both processes: where the other side's memory is, for RDMA. */
struct meet {
	uint64_t addr[2];
	uint32_t handle[2];
	_Atomic int ready;
};

static struct meet *meet;
static size_t max_size = 65536;
static long iterations = 20000;
static bool pool;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void die(const char *what, int err)
{
	fprintf(stderr, "nic_latency: %s: %s (%s)\n", what, nic_err_text(err), nic_last_error());
	exit(1);
}

static void post_recv(struct side *s, int i)
{
	struct nic_desc *d = &s->desc[i];

	d->next = 0;
	d->control = pool ? NIC_CTL_POOL : 0;
	d->nseg = 1;
	d->seg[0] = (struct nic_seg){ (uintptr_t)(s->mem + max_size + (pool ? i * SMALL : 0)), s->mem_handle, pool ? SMALL : max_size };
	atomic_store_explicit(&d->status, 0, memory_order_relaxed); /* not posted yet */
	nic_post_recv(s->nic, s->vi, d);
}

static void wait_recv(struct side *s)
{
	struct nic_desc *d = &s->desc[s->head];

	while (!(atomic_load_explicit(&d->status, memory_order_acquire) & NIC_ST_DONE)) /* pairs with the NIC's completion */
		nic_poll(s->nic);
	if (d->status & NIC_ST_ERROR_MASK) {
		fprintf(stderr, "nic_latency: receive status %x\n", d->status);
		exit(1);
	}
	if (d->status & NIC_ST_POOL)
		nic_buf_give(s->nic, (void *)(uintptr_t)d->seg[1].addr);
	post_recv(s, s->head);
	s->head = (s->head + 1) % DEPTH;
}

static void send_one(struct side *s, size_t len, uint16_t op, int peer)
{
	struct nic_desc *d = &s->desc[DEPTH];
	struct nic_seg data = { (uintptr_t)s->mem, s->mem_handle, len };

	if (pool && op == NIC_CTL_SEND) {
		void *b;

		while (!(b = nic_buf_take(s->nic)))
			nic_poll(s->nic);
		data.addr = (uintptr_t)b;
		data.handle = NIC_POOL_HANDLE;
	}
	d->control = op | (pool && op == NIC_CTL_SEND ? NIC_CTL_POOL : 0);
	d->nseg = 1;
	d->seg[0] = data;
	if (op != NIC_CTL_SEND) {
		d->nseg = 2;
		d->seg[0] = (struct nic_seg){ meet->addr[peer], meet->handle[peer], 0 };
		d->seg[1] = data;
	}
	d->length = len;
	d->next = 0;
	atomic_store_explicit(&d->status, 0, memory_order_relaxed); /* not posted yet */
	nic_post_send(s->nic, s->vi, d);
	while (!(atomic_load_explicit(&d->status, memory_order_acquire) & NIC_ST_DONE))
		nic_poll(s->nic);
	if (d->status & NIC_ST_ERROR_MASK) {
		fprintf(stderr, "nic_latency: send status %x\n", d->status);
		exit(1);
	}
}

static void open_side(struct side *s, int me)
{
	struct nic_vi_args args = { .attr = { .reliability = NIC_RELIABLE_DELIVERY, .flags = 3 }, .cookie = 2 };
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_READ | NIC_MEM_RDMA_WRITE };
	struct nic_addr local = { .disc_len = 1, .disc = { me } }, remote = { .disc_len = 1, .disc = { !me } };
	struct nic_attr nic_attr;
	struct nic_vi_attr theirs;
	char device[32];
	int err;

	snprintf(device, sizeof(device), "bench-%d", me ? getppid() : getpid());
	err = nic_open(&(struct nic_open_args){ .device = device }, &s->nic);
	if (err)
		die("open", err);
	s->mem = mmap(NULL, 2 * max_size + DEPTH * SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(s->mem, me, 2 * max_size);
	s->desc = aligned_alloc(64, (DEPTH + 1) * sizeof(*s->desc));
	memset(s->desc, 0, (DEPTH + 1) * sizeof(*s->desc));
	nic_mem_register(s->nic, (uintptr_t)s->mem, 2 * max_size + DEPTH * SMALL, &attr, &s->mem_handle);
	meet->addr[me] = (uintptr_t)s->mem;
	meet->handle[me] = s->mem_handle;
	err = nic_vi_create(s->nic, &args, &s->vi);
	if (err)
		die("vi", err);
	for (int i = 0; i < DEPTH; i++)
		post_recv(s, i);
	nic_query(s->nic, &nic_attr);
	memcpy(local.host, nic_attr.addr, NIC_ADDR_LEN);
	memcpy(remote.host, nic_attr.addr, NIC_ADDR_LEN);
	err = nic_peer_request(s->nic, s->vi, &local, &remote);
	if (err)
		die("request", err);
	while ((err = nic_peer_poll(s->nic, s->vi, &theirs)) == NIC_NOT_DONE)
		sched_yield();
	if (err)
		die("connect", err);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static double latency(struct side *s, int me, size_t len, long n)
{
	double t = now();

	for (long i = 0; i < n; i++) {
		if (me == 0) {
			send_one(s, len, NIC_CTL_SEND, 1);
			wait_recv(s);
		} else {
			wait_recv(s);
			send_one(s, len, NIC_CTL_SEND, 0);
		}
	}
	return (now() - t) / n / 2;
}

/* Windows of messages, each window answered by one short message. */
static double bandwidth(struct side *s, int me, size_t len, long n)
{
	int window = DEPTH - 2;
	double t = now();

	for (long i = 0; i < n; i++) {
		if (me == 0) {
			for (int w = 0; w < window; w++)
				send_one(s, len, NIC_CTL_SEND, 1);
			wait_recv(s);
		} else {
			for (int w = 0; w < window; w++)
				wait_recv(s);
			send_one(s, 4, NIC_CTL_SEND, 0);
		}
	}
	return (double)len * n * window / (now() - t);
}

static double rdma(struct side *s, int me, size_t len, long n, uint16_t op)
{
	double t = now();

	for (long i = 0; i < n && me == 0; i++)
		send_one(s, len, op, 1);
	t = (now() - t) / n;
	if (me == 0)
		send_one(s, 4, NIC_CTL_SEND, 1);
	else
		wait_recv(s);
	return t;
}

static void run(int me, const char *what)
{
	struct side s = { 0 };

	pin(me);
	open_side(&s, me);
	if (me == 0)
		printf("# qnix bench: NIC %s Test\n# Size          %s\n", what, strcmp(what, "bw") ? "Latency (us)" : "Bandwidth (MB/s)");
	for (size_t len = 1; len <= max_size; len *= 2) {
		long n = len > 8192 ? iterations / 10 : iterations;
		double v = 0;

		for (int warm = 0; warm < 2; warm++) {
			long k = warm ? n : n / 10 + 1;

			if (strcmp(what, "lat") == 0)
				v = latency(&s, me, len, k);
			else if (strcmp(what, "bw") == 0)
				v = bandwidth(&s, me, len, k / 20 + 1);
			else
				v = rdma(&s, me, len, k, strcmp(what, "get") == 0 ? NIC_CTL_RDMA_READ : NIC_CTL_RDMA_WRITE);
		}
		if (me == 0)
			printf("%-15zu %.2f\n", len, v);
	}
	nic_close(s.nic);
}

int main(int argc, char **argv)
{
	const char *what = "lat";
	int c;
	pid_t child;

	while ((c = getopt(argc, argv, "w:m:i:ph")) != -1) {
		if (c == 'w')
			what = optarg;
		else if (c == 'm')
			max_size = strtoul(optarg, NULL, 0);
		else if (c == 'i')
			iterations = atol(optarg);
		else if (c == 'p')
			pool = true;
		else {
			printf("usage: nic_latency [-w lat|bw|get|put] [-m max size] [-i iterations] [-p]\n");
			return c == 'h' ? 0 : 2;
		}
	}
	if (pool && max_size > NIC_BUFFER_SIZE)
		max_size = 8192;
	meet = mmap(NULL, sizeof(*meet), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (child == 0) {
		run(1, what);
		return 0;
	}
	run(0, what);
	waitpid(child, NULL, 0);
	return 0;
}
