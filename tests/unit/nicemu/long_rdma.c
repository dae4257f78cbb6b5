/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes of the host's own, many in a row, are timed as long messages are (ctl/rdma_rows.c). */
#include "tests/unit/nicemu/long.h"

static struct nic_row *row(void)
{
	return &ab()->row;
}

static uint32_t timed(void)
{
	return row()->n[0] + row()->n[1];
}

/* What begins next does so without a pause, though the machine may have been away. */
static void at_once(void)
{
	row()->last = nic_clock() + 100000000;
}

/* a asks for so many at once, as a program does that waits for all of them. */
static void reads(int first, int n, uint32_t len)
{
	nic_poll(p.a.nic);
	for (int i = 0; i < n; i++) {
		at_once();
		post(first + i, NIC_CTL_RDMA_READ, 0, 0, len);
	}
}

static void all_good(int n)
{
	pair_poll(&p);
	for (int i = 0; i < n; i++)
		CHECK(good(&p.a.desc[i]));
	CHECK_EQ(row()->open, 0);
	CHECK_EQ(row()->own, 0);
}

#define BEGIN_OWN(half)                                      \
	do {                                                  \
		SKIP_ASKING();                                \
		BEGIN(NIC_PUT_MAX, half);                     \
		ab()->send_max = ba()->send_max = 8 * MB;     \
	} while (0)

/* All but the first, which was not known to be one of many. */
static void streams(void)
{
	BEGIN_OWN(UINT32_MAX);
	reads(0, 10, LONG);
	CHECK_EQ(row()->open, 9);
	CHECK_EQ(row()->own, 9);
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
	static const uint32_t len[] = { LONG, 32 * KB };

	for (int i = 0; i < 4; i++) {
		uint32_t half = i & 1 ? 5 * len[i / 2] : 0;

		BEGIN_OWN(half ? 30000 : UINT32_MAX);
		row()->reads = 1;
		reads(0, 10, len[i / 2]);
		all_good(10);
		CHECK_EQ(row()->n[0], 0);
		CHECK_EQ(timed(), 9);
		CHECK_EQ(counter(p.a.nic, "bytes_own_half"), half);
		CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), 0);
		pair_close(&p);
	}
}

/* In the command as well. */
static void commands(void)
{
	struct nic_rdma r;

	BEGIN_OWN(UINT32_MAX);
	row()->reads = 1;
	r = (struct nic_rdma){ .op = NIC_CTL_RDMA_READ, .local = (uintptr_t)p.a.mem, .local_handle = p.a.handle, .remote = (uintptr_t)p.b.mem,
		.remote_handle = p.b.handle, .length = LONG };
	nic_poll(p.a.nic);
	for (int i = 0; i < 4; i++, at_once())
		CHECK_EQ(nic_rdma_now(p.a.nic, p.a.vi, &r), NIC_OK);
	CHECK_EQ(timed(), 3);
	r.op = NIC_CTL_RDMA_WRITE;
	ab()->put_busy = 0;
	CHECK_EQ(nic_rdma_now(p.a.nic, p.a.vi, &r), NIC_OK);
	CHECK_EQ(timed(), 3);
	ab()->put_busy = LONG;
	row()->reads |= 1u << 2 * NIC_ROW_LENGTHS;
	at_once();
	CHECK_EQ(nic_rdma_now(p.a.nic, p.a.vi, &r), NIC_OK);
	CHECK_EQ(timed(), 4);
	r.op = NIC_CTL_RDMA_READ;
	r.local_handle++; /* what fails is over, too */
	row()->mixed = false;
	CHECK(nic_rdma_now(p.a.nic, p.a.vi, &r) != NIC_OK);
	CHECK_EQ(row()->open + row()->own, 0);
	CHECK(row()->mixed);
	pair_close(&p);
}

static void what_is_not_timed(void)
{
	uint64_t before;
	void *in_card;

	BEGIN_OWN(UINT32_MAX);
	for (int i = 0; i < 3; i++) { /* one at a time */
		reads(i, 1, LONG);
		pair_poll(&p);
	}
	reads(0, 5, 32 * KB - 1);
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
	before = counter(p.b.nic, "bytes_read_buffer");
	CHECK(nic_long_begins(p.a.nic, p.a.vi, (uintptr_t)p.b.mem, LONG, false));
	reads(0, 5, LONG);
	CHECK_EQ(row()->open, 1);
	CHECK_EQ(row()->own, 0);
	pair_poll(&p);
	reads(5, 2, 16 * KB); /* too short for a message */
	pair_poll(&p);
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), before + 32 * KB);
	before += 32 * KB;
	nic_long_over(p.a.nic, p.a.vi, LONG, true, false);
	all_good(5);
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), before); /* it was found better read, so it is no stream */
	CHECK_EQ(timed(), 1);
	CHECK_EQ(row()->came[0], 1);
	/* Nor does a message that never began end a read. */
	reads(0, 3, LONG);
	CHECK_EQ(row()->own, 2);
	nic_long_over(p.a.nic, p.a.vi, LONG, false, false);
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
		CHECK_EQ(row()->own + timed(), 3);
		all_good(6);
		CHECK_EQ(timed(), 3);
		CHECK_EQ(nic_mem_deregister(p.b.nic, (uintptr_t)in_card, handle), NIC_OK);
		CHECK_EQ(nic_mem_free(p.b.nic, in_card), NIC_OK);
	}
	pair_close(&p);
}

/* ---- writes: a kind of their own ------------------------------------------------------------------------------------------------ */

static void writes(int first, int n, uint32_t len, uint16_t control)
{
	nic_poll(p.a.nic);
	for (int i = 0; i < n; i++) {
		at_once();
		post(first + i, NIC_CTL_RDMA_WRITE | control, 0, 0, len);
	}
}

static void in_packets(void)
{
	BEGIN_OWN(UINT32_MAX);
	row()->reads = 7; /* of messages */
	writes(0, 10, LONG, 0);
	CHECK_EQ(row()->open, 9);
	CHECK_EQ(row()->own, 9);
	all_good(10);
	CHECK_EQ(row()->n[0], 9);
	CHECK_EQ(row()->n[1], 0);
	CHECK_EQ(row()->class, 2 * NIC_ROW_LENGTHS);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), 10 * LONG);
	pair_close(&p);
}

/* The first, which was not known to be one of many, goes in packets all the same. */
static void not_in_packets(void)
{
	for (int halves = 0; halves < 2; halves++) {
		BEGIN_OWN(halves ? 40000 : UINT32_MAX);
		row()->reads = 1u << 2 * NIC_ROW_LENGTHS;
		writes(0, 1, LONG, 0);
		pair_poll(&p);
		CHECK_EQ(row()->own + row()->open, 0);
		ab()->looks = p.a.nic->polls + p.a.nic->looks; /* in a row */
		for (int i = 1; i < 10; i++) {
			at_once();
			post(i, NIC_CTL_RDMA_WRITE, 0, 0, LONG);
		}
		all_good(10);
		CHECK_EQ(row()->n[0], 0);
		CHECK_EQ(row()->n[1], 9);
		CHECK_EQ(row()->class, 2 * NIC_ROW_LENGTHS);
		CHECK_EQ(counter(p.a.nic, "bytes_own_half"), halves ? 9 * LONG / 2 : 0);
		CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), LONG);
		pair_close(&p);
	}
}

/* As with rows of messages. */
static void what_is_good_enough(void)
{
	BEGIN_ROWS();
	CHECK_EQ(reads_of(2 * NIC_ROW_LENGTHS, BEST, BEST / 2, 1000), 0);
	CHECK(until(2 * NIC_ROW_LENGTHS, SLOW, FAST, 3u << 2 * NIC_ROW_LENGTHS | LONGEST, 100) < 40);
	pair_close(&p);
}

/* Those with a notification go alone, and no write in a row with reads says anything. */
static void what_is_not_timed_of_writes(void)
{
	BEGIN_OWN(UINT32_MAX);
	ab()->put_busy = LONG - 1;
	writes(0, 5, LONG, 0);
	all_good(5);
	CHECK_EQ(row()->n[0] + row()->n[1], 0);
	ab()->put_busy = LONG;
	for (int i = 0; i < 5; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem, 0));
	writes(0, 5, LONG, NIC_CTL_IMMEDIATE);
	all_good(5);
	CHECK_EQ(row()->n[0] + row()->n[1], 0);
	reads(0, 3, LONG);
	post(3, NIC_CTL_RDMA_WRITE, 0, 0, LONG);
	CHECK_EQ(row()->own, 3);
	CHECK(!ab()->in_row);
	all_good(4);
	CHECK(row()->mixed);
	pair_close(&p);
}

/* Those that are under way when the connection ends are over. */
static void the_end(void)
{
	BEGIN_OWN(UINT32_MAX);
	reads(0, 5, LONG);
	CHECK_EQ(row()->own, 4);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	poll_a(LONG_AGO);
	CHECK_EQ(row()->open + row()->own, 0);
	CHECK(row()->mixed); /* and no sample */
	pair_close(&p);
}

/* What they take is the row's. */
static void they_are_timed(void)
{
	struct nic_row_class *c;

	BEGIN_OWN(UINT32_MAX);
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
	CASE(in_packets);
	CASE(not_in_packets);
	CASE(what_is_good_enough);
	CASE(what_is_not_timed_of_writes);
	CASE(the_end);
	CASE(they_are_timed);
	return check_done();
}
