/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of the host's own, many in a row, are timed as long messages are (ctl/rdma_rows.c). */
#include "tests/unit/nicemu/long.h"

static struct nic_row *row(void)
{
	return &ab()->row;
}

/* In this row, or in one that a pause has ended: the machine may be away in between. */
static uint32_t timed(void)
{
	return row()->n[0] + row()->n[1] + row()->came[0];
}

/* a asks for so many at once, as a program does that waits for all of them. */
static void reads(int first, int n, uint32_t len)
{
	nic_poll(p.a.nic);
	for (int i = 0; i < n; i++)
		post(first + i, NIC_CTL_RDMA_READ, 0, 0, len);
}

static void all_good(int n)
{
	pair_poll(&p);
	for (int i = 0; i < n; i++)
		CHECK(good(&p.a.desc[i]));
	CHECK_EQ(row()->open, 0);
	CHECK_EQ(row()->gets, 0);
}

#define BEGIN_GETS(half)                                      \
	do {                                                  \
		SKIP_ASKING();                                \
		BEGIN(NIC_PUT_MAX, half);                     \
		ab()->send_max = ba()->send_max = 8 * MB;     \
	} while (0)

/* All but the first, which was not known to be one of many. */
static void streams(void)
{
	BEGIN_GETS(UINT32_MAX);
	reads(0, 10, LONG);
	CHECK_EQ(row()->open, 9);
	CHECK_EQ(row()->gets, 9);
	CHECK_EQ(row()->met, 8);
	all_good(10);
	CHECK_EQ(row()->n[0], 9);
	CHECK_EQ(row()->n[1], 0);
	CHECK_EQ(row()->bytes, 9 * LONG);
	CHECK_EQ(row()->class, 0);
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), 10 * LONG);
	pair_close(&p);
}

/* Where rows are better read, they are: alone, or by halves. */
static void read_at_once(void)
{
	for (int halves = 0; halves < 2; halves++) {
		BEGIN_GETS(halves ? 40000 : UINT32_MAX);
		row()->reads = 1;
		reads(0, 10, LONG);
		all_good(10);
		CHECK_EQ(row()->n[0], 0);
		CHECK_EQ(timed(), 9);
		CHECK_EQ(counter(p.a.nic, "bytes_own_half"), halves ? 10 * LONG / 2 : 0);
		CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), 0);
		pair_close(&p);
	}
}

/* In the command as well. */
static void commands(void)
{
	struct nic_rdma r;

	BEGIN_GETS(UINT32_MAX);
	row()->reads = 1;
	r = (struct nic_rdma){ .op = NIC_CTL_RDMA_READ, .local = (uintptr_t)p.a.mem, .local_handle = p.a.handle, .remote = (uintptr_t)p.b.mem,
		.remote_handle = p.b.handle, .length = LONG };
	nic_poll(p.a.nic);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(nic_rdma_now(p.a.nic, p.a.vi, &r), NIC_OK);
	CHECK_EQ(timed(), 3);
	r.op = NIC_CTL_RDMA_WRITE;
	ab()->put_busy = 0;
	CHECK_EQ(nic_rdma_now(p.a.nic, p.a.vi, &r), NIC_OK);
	CHECK_EQ(timed(), 3);
	r.op = NIC_CTL_RDMA_READ;
	r.local_handle++; /* what fails is over, too */
	CHECK(nic_rdma_now(p.a.nic, p.a.vi, &r) != NIC_OK);
	CHECK_EQ(row()->open + row()->gets, 0);
	pair_close(&p);
}

static void what_is_not_timed(void)
{
	void *in_card;

	BEGIN_GETS(UINT32_MAX);
	for (int i = 0; i < 3; i++) { /* one at a time */
		reads(i, 1, LONG);
		pair_poll(&p);
	}
	reads(0, 5, 32 * KB);
	all_good(5);
	ab()->stream_busy = LONG - 1; /* alone in any case */
	reads(0, 5, LONG);
	all_good(5);
	ab()->stream_busy = LONG;
	ab()->send_max = 0; /* calls are fast */
	reads(0, 5, LONG);
	all_good(5);
	ab()->send_max = 8 * MB;
	CHECK_EQ(timed(), 0);
	/* Those of messages have begun before. */
	CHECK(nic_long_begins(p.a.nic, p.a.vi, (uintptr_t)p.b.mem, LONG, false));
	reads(0, 5, LONG);
	CHECK_EQ(row()->open, 1);
	CHECK_EQ(row()->gets, 0);
	pair_poll(&p);
	nic_long_over(p.a.nic, p.a.vi, LONG, true);
	all_good(5);
	CHECK_EQ(timed(), 1);
	/* Nor does a message that never began end a read. */
	reads(0, 3, LONG);
	CHECK_EQ(row()->gets, 2);
	nic_long_over(p.a.nic, p.a.vi, LONG, false);
	CHECK_EQ(row()->open, 2);
	all_good(3);
	if (nic_mem_alloc(p.b.nic, MB, &in_card) == NIC_OK) {
		struct nic_mem_attr attr = { .ptag = p.b.ptag, .flags = NIC_MEM_RDMA_READ };
		uint32_t handle;

		CHECK_EQ(nic_mem_register(p.b.nic, (uintptr_t)in_card, MB, &attr, &handle), NIC_OK);
		reads(5, 1, LONG); /* the next ones are in a row */
		for (int i = 0; i < 5; i++) {
			struct nic_desc *d = rdma(i, NIC_CTL_RDMA_READ, 0, 0, LONG);

			d->seg[0] = (struct nic_seg){ (uintptr_t)in_card, handle, 0 };
			send_desc(&p.a, d);
		}
		CHECK_EQ(counter(p.a.nic, "bytes_plain"), 5 * LONG);
		CHECK_EQ(row()->gets + timed(), 3);
		all_good(6);
		CHECK_EQ(timed(), 3);
		CHECK_EQ(nic_mem_deregister(p.b.nic, (uintptr_t)in_card, handle), NIC_OK);
		CHECK_EQ(nic_mem_free(p.b.nic, in_card), NIC_OK);
	}
	pair_close(&p);
}

/* A write that is shared is no read, though a read could not begin before it. */
static void writes(void)
{
	BEGIN_GETS(40000);
	reads(0, 3, LONG);
	row()->get = true;
	post(3, NIC_CTL_RDMA_WRITE, 0, 0, LONG);
	CHECK_EQ(row()->gets, 2);
	CHECK(!row()->get);
	all_good(4);
	CHECK_EQ(timed(), 2);
	pair_close(&p);
}

/* Those that are under way when the connection ends are over. */
static void the_end(void)
{
	BEGIN_GETS(UINT32_MAX);
	reads(0, 5, LONG);
	CHECK_EQ(row()->gets, 4);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	poll_a(LONG_AGO);
	CHECK_EQ(row()->open + row()->gets, 0);
	pair_close(&p);
}

/* What they take is the row's. */
static void they_are_timed(void)
{
	struct nic_row_class *c;

	BEGIN_GETS(UINT32_MAX);
	row()->seen = true;
	c = &row()->at[row()->place].of[0];
	for (int i = 0; i < 100 && !c->pace.cost[0]; i++) {
		reads(0, 64, LONG);
		pair_poll(&p);
	}
	CHECK(c->pace.cost[0]);
	CHECK_EQ(c->pace.cost[1], 0);
	pair_close(&p);
}

int main(void)
{
	CASE(streams);
	CASE(read_at_once);
	CASE(commands);
	CASE(what_is_not_timed);
	CASE(writes);
	CASE(the_end);
	CASE(they_are_timed);
	return check_done();
}
