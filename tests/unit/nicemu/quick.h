/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pair of NICs whose receiver knows that the next message is good by value.
 */
#ifndef TESTS_UNIT_NICEMU_QUICK_H
#define TESTS_UNIT_NICEMU_QUICK_H

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/pair.h"

enum { LEN = 3000 };

static uint64_t room[NIC_INLINE_MAX / 8 + 1];

static inline int take(struct pair *p, struct nic_taken *out)
{
	*out = (struct nic_taken){ .data = room };
	return nic_take_of(p->b.nic, p->b.vi, &p->b.recv_cq, out);
}

/* A message of `len` bytes, more than a cell's, in a buffer that has been taken. */
static inline int give(struct pair *p, uint32_t len, uint32_t seed)
{
	uint8_t *buf = nic_buf_take(p->a.nic);
	int err;

	if (!CHECK(buf))
		return NIC_RESOURCE;
	pattern(buf, len, seed);
	err = nic_send_given(p->a.nic, p->a.vi, buf, len);
	if (err)
		nic_buf_give(p->a.nic, buf);
	return err;
}

/* With one receive posted that takes buffers, and one message taken: the next one's is known to be good. */
static inline void open_quick(struct pair *p)
{
	struct nic_taken out;

	pair_open(p, NIC_RELIABLE_DELIVERY);
	recv_desc(&p->b, fill(&p->b, 0, NIC_CTL_POOL, p->b.mem, 64));
	CHECK_EQ(give(p, LEN, 1), NIC_OK);
	CHECK_EQ(take(p, &out), NIC_OK);
	nic_buf_give(p->b.nic, out.buffer);
	CHECK_EQ(nic_vi(p->b.nic, p->b.vi)->rx_quick, NIC_BUFFER_SIZE);
}

/* A packet that another process may have written; buffer: the index, from the start of which `where` counts. */
static inline void forge(struct pair *p, uint8_t op, uint32_t len_flags, uint32_t buffer, uint64_t where)
{
	struct nic_link *link = p->a.nic->link[p->b.nic->me];
	struct nic_packet *packet = nic_link_reserve(link, 0);

	if (!CHECK(packet))
		return;
	packet->op = op;
	packet->gen = nic_vi(p->b.nic, p->b.vi)->gen;
	packet->vi = (uint16_t)p->b.vi;
	packet->len_flags = len_flags;
	packet->buf.buffer = buffer;
	packet->buf.addr = where;
	nic_link_publish(link, packet, 1);
}

/* For forge: none of them is a message to be taken by value or in its buffer. */
static const struct {
	uint8_t op;
	uint32_t len, buffer;
	uint64_t where;
} wrong_packets[] = {
	{ NIC_OP_SEND_BUF, LEN, NIC_POOL_BUFFERS, 0 },
	{ NIC_OP_SEND_BUF, LEN, UINT32_MAX, 0 },
	{ NIC_OP_SEND_BUF, LEN, 0, NIC_BUFFER_SIZE - LEN + 1 },
	{ NIC_OP_SEND_BUF, LEN, 0, NIC_BUFFER_SIZE + 1 },
	{ NIC_OP_SEND_BUF, LEN, 0, UINT64_MAX - LEN + 1 },
	{ NIC_OP_SEND_BUF, NIC_BUFFER_SIZE + 1, 0, 0 },
	{ NIC_OP_SEND_BUF, 0, 0, 0 },
	{ NIC_OP_SEND_BUF, LEN | NIC_PF_IMM, 0, 0 },
	{ NIC_OP_SEND, NIC_INLINE_MAX + 1, 0, 0 },
	{ NIC_OP_SEND, NIC_BUFFER_SIZE, 0, 0 },
	{ NIC_OP_SEND, 0, 0, 0 },
	{ NIC_OP_SEND, 8 | NIC_PF_MORE, 0, 0 },
	{ NIC_OP_SEND_PULL, LEN, 0, 0 },
	{ NIC_OP_WRITE_BUF, LEN, 0, 0 },
	{ NIC_OP_SEND, LEN, 0, 0 },
};
enum { WRONGS = sizeof(wrong_packets) / sizeof(*wrong_packets) };

#endif
