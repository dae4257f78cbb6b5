/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two process slots of one card in one process, with one VI each, connected: the fixture of the NIC's tests.
 * Both control programs run in pair_poll, so a test decides who moves when.
 */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nicemu/nic.h"
#include "tests/check.h"

enum { PAIR_MEM = 1 << 20, PAIR_DESCS = 1024 };

struct end {
	struct nic *nic;
	uint32_t vi, ptag, handle;
	uint8_t *mem;          /* PAIR_MEM bytes, registered with RDMA rights */
	struct nic_desc *desc; /* PAIR_DESCS */
	struct nic_desc *last_send, *last_recv;
	struct nic_cq send_cq, recv_cq;
	int events[16]; /* by code */
};

struct pair {
	struct end a, b;
};

/* Does this NIC ask before it sends (arch qnix)?  Then nothing goes by value, by pull or in a buffer that changes hands. */
static inline bool asks_first(void)
{
	return strcmp(nic_param_str("arch"), "qnix") == 0;
}

#define SKIP_ASKING() \
	do { \
		if (asks_first()) \
			SKIP("a NIC that asks first does not send this way"); \
	} while (0)

static inline void pair_event(void *arg, const struct nic_event *event)
{
	((struct end *)arg)->events[event->code & 15]++;
}

static inline void end_open(struct end *e, const char *device)
{
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_READ | NIC_MEM_RDMA_WRITE };
	struct nic_open_args args = { .device = device, .event = pair_event, .event_arg = e };
	int err;

	memset(e, 0, sizeof(*e));
	err = nic_open(&args, &e->nic);
	if (err) {
		fprintf(stderr, "nic_open: %s: %s\n", nic_err_text(err), nic_last_error());
		exit(1);
	}
	e->mem = aligned_alloc(4096, PAIR_MEM);
	e->desc = aligned_alloc(64, PAIR_DESCS * sizeof(struct nic_desc));
	memset(e->mem, 0, PAIR_MEM);
	memset(e->desc, 0, PAIR_DESCS * sizeof(struct nic_desc));
	CHECK_EQ(nic_ptag_create(e->nic, &e->ptag), NIC_OK);
	attr.ptag = e->ptag;
	CHECK_EQ(nic_mem_register(e->nic, (uintptr_t)e->mem, PAIR_MEM, &attr, &e->handle), NIC_OK);
	e->send_cq = (struct nic_cq){ .mask = 4095, .entry = calloc(4096, 8) };
	e->recv_cq = (struct nic_cq){ .mask = 4095, .entry = calloc(4096, 8) };
}

static inline void end_vi(struct end *e, uint16_t level)
{
	struct nic_vi_args args = { .attr = { .reliability = level, .flags = NIC_VI_RDMA_READ | NIC_VI_RDMA_WRITE, .ptag = e->ptag },
		.cookie = (uintptr_t)e, .send_cq = &e->send_cq, .recv_cq = &e->recv_cq };

	CHECK_EQ(nic_vi_create(e->nic, &args, &e->vi), NIC_OK);
}

/* What is left when its NIC is closed. */
static inline void end_free(struct end *e)
{
	free(e->mem);
	free(e->desc);
	free(e->send_cq.entry);
	free(e->recv_cq.entry);
}

static inline void end_close(struct end *e)
{
	nic_close(e->nic);
	end_free(e);
}

static inline struct nic_addr addr_of(const struct nic *nic, const char *disc)
{
	struct nic_addr addr = { .disc_len = strlen(disc) };
	struct nic_attr attr;

	nic_query(nic, &attr);
	memcpy(addr.host, attr.addr, NIC_ADDR_LEN);
	memcpy(addr.disc, disc, addr.disc_len);
	return addr;
}

static inline int pair_connect(struct pair *p)
{
	struct nic_addr a = addr_of(p->a.nic, "a"), b = addr_of(p->b.nic, "b");
	struct nic_vi_attr attr;
	int err;

	if (nic_peer_request(p->a.nic, p->a.vi, &a, &b) || nic_peer_request(p->b.nic, p->b.vi, &b, &a))
		return -1;
	err = nic_peer_poll(p->a.nic, p->a.vi, &attr);
	if (err)
		return err;
	return nic_peer_poll(p->b.nic, p->b.vi, &attr);
}

/* Not connected yet. */
static inline void pair_open_apart(struct pair *p, uint16_t level)
{
	char device[48];

	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	end_open(&p->a, device);
	end_open(&p->b, device);
	end_vi(&p->a, level);
	end_vi(&p->b, level);
}

static inline void pair_open(struct pair *p, uint16_t level)
{
	pair_open_apart(p, level);
	CHECK_EQ(pair_connect(p), NIC_OK);
}

static inline void pair_close(struct pair *p)
{
	end_close(&p->a);
	end_close(&p->b);
}

/* A NIC that runs elsewhere has looked at all that was posted before it answers a call, and has said what it had to say. */
static inline int end_poll(struct end *e)
{
	struct nic_mem_attr attr;

	if (strcmp(nic_param_str("engine"), "daemon") == 0)
		nic_mem_query(e->nic, (uintptr_t)e->mem, e->handle, &attr);
	return nic_poll(e->nic);
}

static inline void pair_poll(struct pair *p)
{
	int enough = strcmp(nic_param_str("engine"), "daemon") == 0 ? 64 : 4;

	for (int idle = 0; idle < enough;)
		idle = end_poll(&p->a) + end_poll(&p->b) ? 0 : idle + 1;
}

static inline uint32_t status_of(const struct nic_desc *d)
{
	return atomic_load_explicit(&d->status, memory_order_acquire); /* pairs with the NIC's completion */
}

static inline struct nic_desc *fill(struct end *e, int i, uint16_t control, void *at, uint32_t len)
{
	struct nic_desc *d = &e->desc[i];

	memset(d, 0, sizeof(*d));
	d->control = control;
	d->nseg = 1;
	d->seg[0] = (struct nic_seg){ (uintptr_t)at, e->handle, len };
	d->length = len;
	return d;
}

/* Links the descriptor at the end of the chain while its predecessor is posted, as the library above does. */
static inline void link_to(struct nic_desc **last, struct nic_desc *d)
{
	if (*last && !(status_of(*last) & NIC_ST_DONE))
		(*last)->next = (uintptr_t)d;
	*last = d;
}

static inline void send_desc(struct end *e, struct nic_desc *d)
{
	link_to(&e->last_send, d);
	nic_post_send(e->nic, e->vi, d);
}

static inline void recv_desc(struct end *e, struct nic_desc *d)
{
	link_to(&e->last_recv, d);
	nic_post_recv(e->nic, e->vi, d);
}

/* Takes all buffers that the NIC may have, until end_give_back; each names the one before it. */
static inline void *end_take_all(struct end *e)
{
	void *all = NULL, *buf;

	while ((buf = nic_buf_take(e->nic))) {
		memcpy(buf, &all, sizeof(all));
		all = buf;
	}
	return all;
}

static inline void end_give_back(struct end *e, void *all)
{
	while (all) {
		void *buf = all;

		memcpy(&all, buf, sizeof(all));
		nic_buf_give(e->nic, buf);
	}
}

static inline uint64_t counter(struct nic *nic, const char *name)
{
	const struct nic_counter *row;
	const uint64_t *v;

	for (uint32_t i = 0; (v = nic_counter_at(nic, i, &row)); i++)
		if (strcmp(row->name, name) == 0)
			return *v;
	return UINT64_MAX;
}

static inline void pattern(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

static inline int is_filled(const uint8_t *p, size_t n, uint8_t byte)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte)
			return 0;
	return 1;
}

static inline int is_pattern(const uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
			return 0;
	return 1;
}

#endif
