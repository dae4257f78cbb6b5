/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages, many in a row: whether they are sent or read is what took less time (ctl/rdma_rows.c). */
#include "nicemu/ctl/rdma.h"
#include "tests/unit/nicemu/shared.h"

enum { KB = 1 << 10, MB = 1 << 20, MANY = 64 * MB, SLOW = 200000, FAST = 80000, BEST = 40000 }; /* ns for a MB */

static struct nic_link *ba(void)
{
	return p.b.nic->link[p.a.nic->me];
}

/* Rows of that class until what the receiver would rather have is `reads`; how many, at most `most`. */
static int until(uint32_t class, uint64_t sent, uint64_t read, uint32_t reads, int most)
{
	int n = 0;

	for (; n < most && ba()->row.reads != reads; n++) {
		bool way = ba()->row.reads >> class & 1;

		nic_row_took(ba(), class, way, (way ? read : sent) * (MANY / MB), MANY);
	}
	return n;
}

/* Of the next rows, how many are read? */
static int reads_of(uint32_t class, uint64_t sent, uint64_t read, int rows)
{
	int n = 0;

	for (int i = 0; i < rows; i++) {
		bool way = ba()->row.reads >> class & 1;

		nic_row_took(ba(), class, way, (way ? read : sent) * (MANY / MB), MANY);
		n += way;
	}
	return n;
}

#define BEGIN_ROWS()                                      \
	do {                                              \
		BEGIN(0, UINT32_MAX);                     \
		ab()->send_max = ba()->send_max = 8 * MB; \
	} while (0)

static void classes(void)
{
	CHECK_EQ(nic_row_class(32 * KB), NIC_ROW_CLASSES);
	CHECK_EQ(nic_row_class(32 * KB + 1), 0);
	CHECK_EQ(nic_row_class(256 * KB), 0);
	CHECK_EQ(nic_row_class(256 * KB + 1), 1);
	CHECK_EQ(nic_row_class(MB + 1), NIC_ROW_CLASSES - 1);
	CHECK_EQ(nic_row_class(UINT64_MAX), NIC_ROW_CLASSES - 1);
	CHECK(nic_row_reads(2, MB) && !nic_row_reads(2, MB + 1) && !nic_row_reads(7, 1000));
}

/* The slower way is left within some tens of rows, tried hardly ever, and found again when it is the faster one. */
static void the_faster_way(void)
{
	BEGIN_ROWS();
	CHECK(until(1, SLOW, FAST, 2 | 4, 100) < 20); /* with what is longer, of which nothing is known */
	CHECK(reads_of(1, SLOW, FAST, 1000) > 900);
	CHECK_EQ(ba()->row.pace[1].cost[0], SLOW);
	CHECK_EQ(ba()->row.pace[1].cost[1], FAST);
	reads_of(1, FAST, SLOW, 2000);
	CHECK(reads_of(1, FAST, SLOW, 1000) < 50);
	CHECK_EQ(ba()->row.reads >> 1 & 1, 0);
	/* Every class for itself, from that guess on. */
	reads_of(2, SLOW, FAST, 100);
	CHECK_EQ(ba()->row.reads, 4);
	CHECK_EQ(ab()->asking->reads, 4);
	CHECK_EQ(ba()->asked->reads, 4);
	pair_close(&p);
}

/* What goes as well as it can is not disturbed; what does not is, at first only when the buffers have been made. */
static void nothing_is_tried_for_nothing(void)
{
	BEGIN_ROWS();
	CHECK_EQ(reads_of(0, BEST, BEST / 2, 1000), 0);
	CHECK(until(0, SLOW, FAST, 7, 100) < 40); /* until it is known to be no longer so */
	pair_close(&p);
	BEGIN_ROWS();
	CHECK_EQ(reads_of(0, FAST, 2 * FAST, 40), 2); /* clearly slower: once is enough */
	pair_close(&p);
	BEGIN_ROWS();
	for (int i = 0; i < 40; i++)
		nic_row_took(ba(), 0, false, SLOW, MB); /* less than settles it */
	CHECK_EQ(ba()->row.pace[0].cost[0], 0);
	pair_close(&p);
}

/* The sender does as the receiver would rather have it, with all but the first of a row. */
static void the_sender_is_told(void)
{
	uint64_t at;

	BEGIN_ROWS();
	at = (uintptr_t)p.a.mem;
	until(0, SLOW, FAST, 7, 100);
	until(1, FAST, SLOW, 1, 1000);
	nic_poll(p.a.nic);
	for (int i = 0; i < 3; i++) {
		CHECK(nic_rather_sent(p.a.nic, p.a.vi, at, 100 * KB));
		CHECK(!nic_rather_sent(p.a.nic, p.a.vi, at, 100 * KB));
		CHECK(!nic_rather_sent(p.a.nic, p.a.vi, at, 50 * KB));
		CHECK(nic_rather_sent(p.a.nic, p.a.vi, at, 30 * KB));
		CHECK(nic_rather_sent(p.a.nic, p.a.vi, at, 300 * KB));
		CHECK_EQ(counter(p.a.nic, "rather_read"), 2 * (i + 1));
		nic_poll(p.a.nic); /* it looks */
	}
	CHECK(nic_rather_sent(p.b.nic, p.b.vi, (uintptr_t)p.b.mem, 100 * KB)); /* the other way nothing is known */
	CHECK(nic_rather_sent(p.b.nic, p.b.vi, (uintptr_t)p.b.mem, 100 * KB));
	pair_close(&p);
}

/* ---- what is a row ------------------------------------------------------------------------------------------------ */

/* So many at a time, which take some time; `read` of them are. */
static void row(int n, uint64_t len, int read, unsigned us)
{
	for (int i = 0; i < n; i++)
		nic_long_begins(p.b.nic, p.b.vi);
	usleep(us);
	for (int i = 0; i < n; i++)
		nic_long_over(p.b.nic, p.b.vi, len, i < read);
}

/* How many rows have been timed. */
static uint64_t timed(void)
{
	return ba()->row.rows;
}

static void rows(void)
{
	BEGIN_ROWS();
	ba()->row.seen = true;
	ba()->row.settle[0] = ba()->row.settle[1] = 1;
	row(64, 64 * KB, 0, 2000);
	CHECK_EQ(timed(), 0); /* it may go on */
	nic_long_begins(p.b.nic, p.b.vi);
	CHECK_EQ(timed(), 1);
	CHECK_EQ(ba()->row.of_bytes, 64 * 64 * KB);
	CHECK(ba()->row.ns >= 2000000);
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false);
	ba()->row.rows = 0;
	/* Those of a row may begin one after the other, but not much later. */
	usleep(1000);
	for (int i = 0; i < 64; i++)
		row(1, 64 * KB, 0, 0);
	nic_long_begins(p.b.nic, p.b.vi);
	CHECK(timed() == 1 || ba()->row.n[0] < 64); /* on a machine that was away in between */
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false);
	usleep(1000);
	ba()->row.rows = 0;
	row(30, 64 * KB, 0, 1000);
	usleep(1000);
	nic_long_begins(p.b.nic, p.b.vi);
	CHECK_EQ(timed(), 1); /* a short one, which did not go on */
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false);
	usleep(1000);
	ba()->row.rows = 0;
	/* Of two kinds, of which too few are, or not all the same way: no row. */
	row(60, 64 * KB, 0, 0);
	row(60, 300 * KB, 0, 1000);
	row(7, 64 * KB, 0, 1000);
	row(64, 64 * KB, 20, 1000);
	usleep(1000);
	row(1, 64 * KB, 0, 1000);
	CHECK_EQ(timed(), 0);
	/* One in eight of the other way does not matter. */
	usleep(1000);
	row(64, 64 * KB, 8, 1000);
	row(1, 64 * KB, 0, 0);
	CHECK_EQ(timed(), 1);
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false); /* which never began */
	CHECK_EQ(ba()->row.open, 0);
	pair_close(&p);
}

/* A pause is no part of a row, what lies between two rows is. */
static void pauses(void)
{
	uint64_t ns;

	BEGIN_ROWS();
	ba()->row.seen = true;
	ba()->row.settle[0] = 1;
	row(64, 64 * KB, 0, 5000);
	usleep(5000);
	nic_long_begins(p.b.nic, p.b.vi);
	CHECK(ba()->row.ns >= 10000000);
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false);
	usleep(1000);
	ba()->row.rows = ba()->row.ns = ba()->row.of_bytes = 0;
	row(64, 64 * KB, 0, 1000);
	ns = ba()->row.last - ba()->row.began;
	usleep((unsigned)(4 * ns / 1000 + 1000));
	nic_long_begins(p.b.nic, p.b.vi);
	CHECK_EQ(ba()->row.ns, ns);
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false);
	pair_close(&p);
}

int main(void)
{
	CASE(classes);
	CASE(the_faster_way);
	CASE(nothing_is_tried_for_nothing);
	CASE(the_sender_is_told);
	CASE(rows);
	CASE(pauses);
	return check_done();
}
