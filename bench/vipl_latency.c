/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The questions of nic_latency one layer higher, through VIPL: the difference is what VIPL costs.
 *
 *   vipl_latency [-w lat|bw|get] [-m max] [-i iterations] [-p]     -p: payload in pool buffers that change hands
 */
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vipl.h"

enum { DEPTH = 64, SMALL = 64 };

struct side {
	VIP_NIC_HANDLE nic;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE desc_handle, mem_handle;
	VIP_DESCRIPTOR *desc; /* DEPTH receives, then one send */
	uint8_t *mem;
};

/* Shared by both processes: where the other side's memory is, for RDMA. */
struct meet {
	uint64_t addr[2];
	VIP_MEM_HANDLE handle[2];
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

static void die(const char *what, VIP_RETURN result)
{
	fprintf(stderr, "vipl_latency: %s: VIP_RETURN %d (%s)\n", what, (int)result, VipxLastError());
	exit(1);
}

static void post_recv(struct side *s, VIP_DESCRIPTOR *d)
{
	long i = d - s->desc;

	d->CS.Control = pool ? VIP_CONTROL_POOL : 0;
	d->CS.SegCount = 1;
	d->CS.Reserved = 0;
	d->DS[0].Local.Data.Address = s->mem + max_size + (pool ? i * SMALL : 0);
	d->DS[0].Local.Handle = s->mem_handle;
	d->DS[0].Local.Length = pool ? SMALL : max_size;
	VipPostRecv(s->vi, d, s->desc_handle);
}

static void wait_recv(struct side *s)
{
	VIP_DESCRIPTOR *d;
	VIP_RETURN result;

	while ((result = VipRecvDone(s->vi, &d)) == VIP_NOT_DONE)
		;
	if (result != VIP_SUCCESS)
		die("receive", result);
	if (d->CS.Status & VIP_STATUS_POOL)
		VipxGiveBuffer(s->nic, d->DS[1].Local.Data.Address);
	post_recv(s, d);
}

static void send_one(struct side *s, size_t len, uint16_t op, int peer)
{
	VIP_DESCRIPTOR *d = &s->desc[DEPTH], *done;
	VIP_RETURN result;
	bool give = pool && op == VIP_CONTROL_OP_SENDRECV;
	int first = op != VIP_CONTROL_OP_SENDRECV;

	d->CS.Control = op | (give ? VIP_CONTROL_POOL : 0);
	d->CS.SegCount = 1 + first;
	d->CS.Reserved = 0;
	d->CS.Length = len;
	if (first) {
		d->DS[0].Remote.Data.AddressBits = meet->addr[peer];
		d->DS[0].Remote.Handle = meet->handle[peer];
		d->DS[0].Remote.Reserved = 0;
	}
	d->DS[first].Local.Data.Address = s->mem;
	d->DS[first].Local.Handle = s->mem_handle;
	d->DS[first].Local.Length = len;
	while (give && !(d->DS[0].Local.Data.Address = VipxTakeBuffer(s->nic)))
		VipxPoll(s->nic);
	if (give)
		d->DS[0].Local.Handle = VIPX_POOL_HANDLE;
	VipPostSend(s->vi, d, s->desc_handle);
	while ((result = VipSendDone(s->vi, &done)) == VIP_NOT_DONE)
		;
	if (result != VIP_SUCCESS)
		die("send", result);
}

static void address(struct side *s, VIP_NET_ADDRESS *out, uint8_t who)
{
	VIP_NIC_ATTRIBUTES attr;

	VipQueryNic(s->nic, &attr);
	out->HostAddressLen = attr.NicAddressLen;
	out->DiscriminatorLen = 1;
	memcpy(out->HostAddress, attr.LocalNicAddress, attr.NicAddressLen);
	out->HostAddress[attr.NicAddressLen] = who;
}

static void connect_vi(struct side *s, int me)
{
	char local[64], remote[64];
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN result;

	address(s, (VIP_NET_ADDRESS *)local, me);
	address(s, (VIP_NET_ADDRESS *)remote, !me);
	result = VipConnectPeerRequest(s->vi, (VIP_NET_ADDRESS *)local, (VIP_NET_ADDRESS *)remote, 30000);
	if (result == VIP_SUCCESS)
		result = VipConnectPeerWait(s->vi, &theirs);
	if (result != VIP_SUCCESS)
		die("connect", result);
}

static void open_side(struct side *s, int me)
{
	VIP_VI_ATTRIBUTES vi = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY, .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE };
	VIP_MEM_ATTRIBUTES attr = { .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE };
	VIP_NIC_ATTRIBUTES nic;
	VIP_RETURN result;
	char device[32];

	snprintf(device, sizeof(device), "bench-%d", me ? getppid() : getpid());
	result = VipxOpenNic(device, VIPX_OPEN_UNLOCKED, &s->nic);
	if (result != VIP_SUCCESS)
		die("open", result);
	s->mem = mmap(NULL, 2 * max_size + DEPTH * SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(s->mem, me, 2 * max_size);
	s->desc = aligned_alloc(64, (DEPTH + 1) * sizeof(*s->desc));
	memset(s->desc, 0, (DEPTH + 1) * sizeof(*s->desc));
	VipQueryNic(s->nic, &nic);
	vi.MaxTransferSize = nic.MaxTransferSize;
	result = VipCreatePtag(s->nic, &attr.Ptag);
	vi.Ptag = attr.Ptag;
	if (result == VIP_SUCCESS)
		result = VipRegisterMem(s->nic, s->mem, 2 * max_size + DEPTH * SMALL, &attr, &s->mem_handle);
	if (result == VIP_SUCCESS)
		result = VipRegisterMem(s->nic, s->desc, (DEPTH + 1) * sizeof(*s->desc), &attr, &s->desc_handle);
	if (result == VIP_SUCCESS)
		result = VipCreateVi(s->nic, &vi, NULL, NULL, &s->vi);
	if (result != VIP_SUCCESS)
		die("set-up", result);
	meet->addr[me] = (uintptr_t)s->mem;
	meet->handle[me] = s->mem_handle;
	for (int i = 0; i < DEPTH; i++)
		post_recv(s, &s->desc[i]);
	connect_vi(s, me);
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
			send_one(s, len, VIP_CONTROL_OP_SENDRECV, 1);
			wait_recv(s);
		} else {
			wait_recv(s);
			send_one(s, len, VIP_CONTROL_OP_SENDRECV, 0);
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
				send_one(s, len, VIP_CONTROL_OP_SENDRECV, 1);
			wait_recv(s);
		} else {
			for (int w = 0; w < window; w++)
				wait_recv(s);
			send_one(s, 4, VIP_CONTROL_OP_SENDRECV, 0);
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
		send_one(s, 4, VIP_CONTROL_OP_SENDRECV, 1);
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
		printf("# qnix bench: VIPL %s Test\n# Size          %s\n", what, strcmp(what, "bw") ? "Latency (us)" : "Bandwidth (MB/s)");
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
				v = rdma(&s, me, len, k, strcmp(what, "get") == 0 ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE);
		}
		if (me == 0)
			printf("%-15zu %.2f\n", len, v);
	}
	VipCloseNic(s.nic);
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
			printf("usage: vipl_latency [-w lat|bw|get|put] [-m max size] [-i iterations] [-p]\n");
			return c == 'h' ? 0 : 2;
		}
	}
	if (pool && max_size > VIPX_BUFFER_SIZE)
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
