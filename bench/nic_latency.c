/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency, rate and bandwidth asked of the NIC itself, below VIPL: two processes, one VI, no library in between (two.h).
 */
#include "nicemu/nic.h"
#include "bench/two.h"

struct side {
	struct nic *nic;
	uint32_t vi, mem_handle;
	struct nic_desc *desc; /* DEPTH receives, then one send */
	uint8_t *mem;
	int head; /* next receive to complete */
};

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

static void send_one(struct side *s, size_t len, enum two_op op, int peer)
{
	static const uint16_t control[] = { [TWO_SEND] = NIC_CTL_SEND, [TWO_PUT] = NIC_CTL_RDMA_WRITE, [TWO_GET] = NIC_CTL_RDMA_READ };
	struct nic_desc *d = &s->desc[DEPTH];
	struct nic_seg data = { (uintptr_t)s->mem, s->mem_handle, len };

	if (pool && op == TWO_SEND) {
		void *b;

		while (!(b = nic_buf_take(s->nic)))
			nic_poll(s->nic);
		data.addr = (uintptr_t)b;
		data.handle = NIC_POOL_HANDLE;
	}
	d->control = control[op] | (pool && op == TWO_SEND ? NIC_CTL_POOL : 0);
	d->nseg = 1;
	d->seg[0] = data;
	if (op != TWO_SEND) {
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

static struct side *open_side(int me, const char *device)
{
	static struct side side, *s = &side;
	struct nic_vi_args args = { .attr = { .reliability = NIC_RELIABLE_DELIVERY, .flags = 3 }, .cookie = 2 };
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_READ | NIC_MEM_RDMA_WRITE };
	struct nic_addr local = { .disc_len = 1, .disc = { me } }, remote = { .disc_len = 1, .disc = { !me } };
	struct nic_attr nic_attr;
	struct nic_vi_attr theirs;
	int err;

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
	return s;
}

static void close_side(struct side *s)
{
	nic_close(s->nic);
}

int main(int argc, char **argv)
{
	return two_run(argc, argv, "NIC", NIC_BUFFER_SIZE);
}
