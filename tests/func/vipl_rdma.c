/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL RDMA in two processes: write and read of all sizes, immediate data, fences, many at once, order against sends.
 * Everything here must succeed; what must be refused is in vipl_errors.c.
 */
#include "tests/func/vipl_two.h"

static VIP_RELIABILITY_LEVEL level; /* of the case that runs */

static void at_each_level(side_fn *server, side_fn *client)
{
	for (size_t i = 0; i < sizeof two_levels / sizeof *two_levels; i++) {
		level = two_levels[i];
		two(server, client);
	}
}

static const size_t sizes[] = { 1, 8, 48, 49, 1000, 4096, 8192, 8320, 8321, 32896, 32897, 65472, 100001, 1 << 20, 4 << 20 };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A side that is only a target: its NIC still has to be run, so it polls until the other side says so. */
static void stand_by(struct side *s)
{
	char token;

	say(s, "m", 1);
	do
		VipxPoll(s->nic);
	while (!has_spoken(s));
	hear(s, &token, 1);
}

static void target(struct side *s)
{
	struct remote unused;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &unused);
	for (unsigned i = 0; i < SIZES; i++) {
		memset(s->data, 0xAA, sizes[i] + 16);
		meet(s);
		stand_by(s); /* it is being written */
		CHECK(filled(s->data + 3, sizes[i], i));
		CHECK_EQ((unsigned char)s->data[2], 0xAA);
		CHECK_EQ((unsigned char)s->data[sizes[i] + 3], 0xAA);
		fill(s->data, sizes[i], 1000 + i);
		meet(s);
		stand_by(s); /* it is being read */
	}
	side_close(s);
}

static void originator(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	CHECK(s->attr.RDMAReadSupport & level);
	exchange_memory(s, s->data, s->handle, &there);
	for (unsigned i = 0; i < SIZES; i++) {
		fill(s->data, sizes[i], i);
		meet(s);
		d = desc_rdma(s, i, VIP_CONTROL_OP_RDMAWRITE, s->data, sizes[i], &there, 3);
		post_send(s, d);
		CHECK_EQ(sent(s, d, VIP_SUCCESS), VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);
		CHECK_EQ(d->CS.Length, sizes[i]);
		if (level != VIP_SERVICE_RELIABLE_RECEPTION) {
			/* Complete means "gone", not "there": a read behind it on the same VI proves arrival. */
			d = desc_rdma(s, 100, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_QFENCE, s->data + (16 << 20), 1, &there, 3);
			post_send(s, d);
			sent(s, d, VIP_SUCCESS);
		}
		meet(s);
		meet(s);
		memset(s->data, 0, sizes[i] + 16);
		d = desc_rdma(s, i, VIP_CONTROL_OP_RDMAREAD, s->data + 5, sizes[i], &there, 0);
		post_send(s, d);
		CHECK_EQ(sent(s, d, VIP_SUCCESS), VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ);
		CHECK_EQ(d->CS.Length, sizes[i]);
		CHECK(filled(s->data + 5, sizes[i], 1000 + i));
		CHECK_EQ(s->data[4], 0);
		CHECK_EQ(s->data[sizes[i] + 5], 0);
		meet(s);
	}
	side_close(s);
}

static void write_and_read(void)
{
	at_each_level(target, originator);
}

/* ---- several local segments; nothing at all ---- */

static void pieces_target(struct side *s)
{
	struct remote unused;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &unused);
	fill(s->data + (1 << 20), 50000, 77);
	meet(s);
	stand_by(s);
	CHECK(filled(s->data, 50000, 33));
	meet(s);
	side_close(s);
}

static VIP_DESCRIPTOR *in_pieces(struct side *s, VIP_UINT16 control, char *at, const struct remote *to, size_t offset)
{
	static const VIP_UINT32 length[] = { 1, 20000, 0, 9999, 20000 };
	VIP_DESCRIPTOR *d = desc_at(s, 0);

	memset(d, 0, SIDE_DESC_SIZE);
	d->CS.Control = control;
	d->CS.SegCount = 6;
	d->CS.Length = 50000;
	d->DS[0].Remote.Data.AddressBits = to->at + offset;
	d->DS[0].Remote.Handle = to->handle;
	for (unsigned i = 0; i < 5; i++) {
		d->DS[i + 1].Local.Data.Address = at;
		d->DS[i + 1].Local.Handle = s->handle;
		d->DS[i + 1].Local.Length = length[i];
		at += length[i];
	}
	return d;
}

static void pieces_originator(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &there);
	fill(s->data, 50000, 33);
	meet(s);
	d = in_pieces(s, VIP_CONTROL_OP_RDMAWRITE, s->data, &there, 0);
	post_send(s, d);
	sent(s, d, VIP_SUCCESS);
	d = in_pieces(s, VIP_CONTROL_OP_RDMAREAD, s->data + (1 << 20), &there, 1 << 20);
	post_send(s, d);
	sent(s, d, VIP_SUCCESS);
	CHECK(filled(s->data + (1 << 20), 50000, 77));
	/* Of length zero: legal, and no address is looked at. */
	d = desc_rdma(s, 1, VIP_CONTROL_OP_RDMAWRITE, NULL, 0, &there, 0);
	d->CS.SegCount = 1;
	post_send(s, d);
	sent(s, d, VIP_SUCCESS);
	d = desc_rdma(s, 1, VIP_CONTROL_OP_RDMAREAD, NULL, 0, &there, 0);
	d->CS.SegCount = 1;
	post_send(s, d);
	sent(s, d, VIP_SUCCESS);
	meet(s);
	meet(s);
	side_close(s);
}

static void in_several_segments(void)
{
	at_each_level(pieces_target, pieces_originator);
}

/* ---- immediate data: one receive is consumed, after the data ---- */

enum { NOTES = 200 };

static size_t note_size(unsigned i)
{
	return i % 4 == 0 ? 0 : i % 4 == 1 ? 40 : i % 4 == 2 ? 5000 : 100000;
}

static void notes_target(struct side *s)
{
	struct remote unused;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &unused);
	for (unsigned i = 0; i < NOTES; i++) {
		post_recv(s, d = desc_make(s, i, s->data + (20 << 20), 16));
		meet(s);
		CHECK_EQ(received(s, d, VIP_SUCCESS), VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
		CHECK_EQ(d->CS.ImmediateData, 7 * i);
		CHECK_EQ(d->CS.Length, note_size(i));
		CHECK(filled(s->data, note_size(i), i));
		meet(s);
	}
	side_close(s);
}

static void notes_originator(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &there);
	for (unsigned i = 0; i < NOTES; i++) {
		fill(s->data, note_size(i), i);
		meet(s);
		d = desc_rdma(s, i, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, s->data, note_size(i), &there, 0);
		d->CS.ImmediateData = 7 * i;
		if (!note_size(i))
			d->CS.SegCount = 1;
		post_send(s, d);
		CHECK_EQ(sent(s, d, VIP_SUCCESS), VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);
		meet(s);
	}
	side_close(s);
}

static void write_with_immediate_data(void)
{
	at_each_level(notes_target, notes_originator);
}

/* ---- three hundred at once, then a message behind them ---- */

enum { MANY = 300, MANY_SIZE = 65472 };

static void many_target(struct side *s)
{
	struct remote unused;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	post_recv(s, d = desc_make(s, 0, s->data + (28 << 20), 64));
	exchange_memory(s, s->data, s->handle, &unused);
	received(s, d, VIP_SUCCESS);
	for (unsigned i = 0; i < MANY; i++)
		CHECK_EQ(*(unsigned *)(void *)(s->data + i * MANY_SIZE), i);
	CHECK(filled(s->data + 4, MANY_SIZE - 4, 4));
	meet(s);
	side_close(s);
}

static void many_originator(struct side *s)
{
	struct remote there;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &there);
	for (unsigned i = 0; i < MANY; i++) {
		char *from = s->data + i * MANY_SIZE;

		fill(from, MANY_SIZE, 0);
		*(unsigned *)(void *)from = i;
		post_send(s, desc_rdma(s, i, VIP_CONTROL_OP_RDMAWRITE, from, MANY_SIZE, &there, i * MANY_SIZE));
	}
	post_send(s, desc_make(s, MANY, s->data, 8));
	for (unsigned i = 0; i <= MANY; i++)
		sent(s, desc_at(s, i), VIP_SUCCESS);
	meet(s);
	side_close(s);
}

static void three_hundred_at_once(void)
{
	at_each_level(many_target, many_originator);
}

/* ---- fences: what follows a read may depend on what it brought ---- */

static void fence_target(struct side *s)
{
	struct remote unused;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &unused);
	for (unsigned i = 0; i < 50; i++) {
		fill(s->data, 100000, i);
		post_recv(s, desc_make(s, i, s->data + (8 << 20), 100000));
		meet(s);
		received(s, desc_at(s, i), VIP_SUCCESS);
		CHECK(filled(s->data + (8 << 20), 100000, i)); /* our own bytes come back */
		CHECK(filled(s->data + (4 << 20), 100000, i));
	}
	meet(s);
	side_close(s);
}

static void fence_originator(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *write, *send;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &there);
	for (unsigned i = 0; i < 50; i++) {
		meet(s);
		post_send(s, desc_rdma(s, 0, VIP_CONTROL_OP_RDMAREAD, s->data, 100000, &there, 0));
		write = desc_rdma(s, 1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, s->data, 100000, &there, 4 << 20);
		post_send(s, write);
		send = desc_make(s, 2, s->data, 100000);
		send->CS.Control |= VIP_CONTROL_QFENCE;
		post_send(s, send);
		for (unsigned k = 0; k < 3; k++)
			sent(s, desc_at(s, k), VIP_SUCCESS);
	}
	meet(s);
	side_close(s);
}

static void fences(void)
{
	at_each_level(fence_target, fence_originator);
}

/* ---- both directions at the same time, reads and writes and sends mixed ---- */

static void mixed(struct side *s)
{
	enum { ROUNDS = 40, SIZE = 60000 };
	struct remote there;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &there);
	fill(s->data, SIZE, s->server);
	for (unsigned i = 0; i < ROUNDS; i++)
		post_recv(s, desc_make(s, 1000 + i, s->data + (20 << 20), 64));
	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		memset(s->data + (2 << 20), 0, SIZE);
		post_send(s, desc_rdma(s, 0, VIP_CONTROL_OP_RDMAREAD, s->data + (2 << 20), SIZE, &there, 0));
		post_send(s, desc_rdma(s, 1, VIP_CONTROL_OP_RDMAWRITE, s->data, SIZE, &there, 4 << 20));
		post_send(s, desc_make(s, 2, s->data, 8));
		for (unsigned k = 0; k < 3; k++)
			sent(s, desc_at(s, k), VIP_SUCCESS);
		CHECK(filled(s->data + (2 << 20), SIZE, !s->server));
		received(s, desc_at(s, 1000 + i), VIP_SUCCESS);
		CHECK(filled(s->data + (4 << 20), SIZE, !s->server));
	}
	stand_by(s);
	side_close(s);
}

static void both_ways(void)
{
	at_each_level(mixed, mixed);
}

int main(void)
{
	static const char *const copies[] = { "auto", "off" }; /* one-step copies, or packets */

	two_init("rdma");
	for (size_t i = 0; i < 2; i++) {
		printf("# cma %s\n", copies[i]);
		VipxParameterSet("cma", copies[i], "test");
		CASE(write_and_read);
		CASE(in_several_segments);
		CASE(write_with_immediate_data);
		CASE(three_hundred_at_once);
		CASE(fences);
		CASE(both_ways);
	}
	return check_done();
}
