/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages, many in a row: whether they are sent or read is what took less time (ctl/rdma_rows.c). */
#include "tests/unit/nicemu/long.h"

static void classes(void)
{
	CHECK_EQ(nic_row_class(32 * KB - 1, NIC_ROW_MANY), NIC_ROW_CLASSES);
	CHECK_EQ(nic_row_class(32 * KB, NIC_ROW_MANY), 0);
	CHECK_EQ(nic_row_class(128 * KB, NIC_ROW_MANY), 0);
	CHECK_EQ(nic_row_class(128 * KB + 1, NIC_ROW_MANY), 1);
	CHECK_EQ(nic_row_class(MB, NIC_ROW_MANY), 1);
	CHECK_EQ(nic_row_class(MB + 1, NIC_ROW_MANY), 2);
	CHECK_EQ(nic_row_class(2 * MB + 1, NIC_ROW_MANY), 3);
	CHECK_EQ(nic_row_class(UINT64_MAX, NIC_ROW_MANY), NIC_ROW_LENGTHS - 1);
	CHECK(nic_row_reads(2, MB, NIC_ROW_MANY) && !nic_row_reads(2, MB + 1, NIC_ROW_MANY) && !nic_row_reads(7, 1000, NIC_ROW_MANY));
}

/* Where the receiver has a say. */
static void from_the_start(void)
{
	BEGIN(0, UINT32_MAX);
	CHECK_EQ(ba()->asked->reads, ba()->cma && ba()->send_max ? LONGEST : 0);
	pair_close(&p);
}

/* The slower way is left within some tens of rows, tried hardly ever, and found again when it is the faster one. */
static void the_faster_way(void)
{
	BEGIN_ROWS();
	CHECK_EQ(ba()->asked->reads, LONGEST);
	CHECK(until(1, SLOW, FAST, 2 | LONGEST, 100) < 20);
	CHECK(reads_of(1, SLOW, FAST, 1000) > 900);
	CHECK(class_of(1)->pace.cost[0] >= SLOW && class_of(1)->pace.cost[0] <= SLOW + SLOW / 8);
	CHECK_EQ(class_of(1)->pace.cost[1], FAST);
	reads_of(1, FAST, SLOW, 2000);
	CHECK(reads_of(1, FAST, SLOW, 1000) < 50);
	CHECK_EQ(ba()->row.reads >> 1 & 1, 0);
	/* Every class for itself, from that guess on. */
	reads_of(2, FAST, SLOW, 100);
	CHECK_EQ(ba()->row.reads, LONGEST & ~4);
	CHECK_EQ(ab()->asking->reads, LONGEST & ~4);
	CHECK_EQ(ba()->asked->reads, LONGEST & ~4);
	pair_close(&p);
}

/* What goes as well as it can is not disturbed; what does not is, at first only when the buffers have been made. */
static void nothing_is_tried_for_nothing(void)
{
	BEGIN_ROWS();
	CHECK_EQ(reads_of(0, BEST, BEST / 2, 1000), 0);
	CHECK(until(0, SLOW, FAST, 3 | LONGEST, 100) < 40); /* until it is known to be no longer so; with the next longer ones, of which nothing is known */
	pair_close(&p);
	BEGIN_ROWS();
	for (int i = 0; i < NIC_ROW_LOOKS; i++)
		nic_row_apart(ba(), 200); /* far: there the other way may always be better */
	CHECK(until(0, BEST, BEST / 2, FAR | 1, 1000) < 100);
	CHECK(until(0, BEST, 2 * BEST, FAR, 1000) < 100);
	pair_close(&p);
	BEGIN_ROWS();
	CHECK_EQ(reads_of(0, FAST, 2 * FAST, 30), 2); /* clearly slower: once is enough, behind one that settles */
	pair_close(&p);
	BEGIN_ROWS();
	for (int i = 0; i < 40; i++)
		nic_row_took(ba(), 0, false, SLOW, MB); /* less than settles it */
	CHECK_EQ(class_of(0)->pace.cost[0], 0);
	pair_close(&p);
}

/* Two rows count as one, but not one of each way; or one that is long enough. */
static void two_of_a_kind(void)
{
	BEGIN_ROWS();
	ba()->row.settle[0] = 1;
	nic_row_took(ba(), 0, false, MB, MANY - MB);
	CHECK_EQ(class_of(0)->rows, 1);
	nic_row_took(ba(), 0, true, MB, MANY - MB);
	CHECK_EQ(class_of(0)->rows, 0); /* more than half of it settles */
	nic_row_took(ba(), 0, true, MB, MANY - MB);
	CHECK_EQ(class_of(0)->rows, 1);
	nic_row_took(ba(), 0, true, MB, MANY - MB);
	CHECK_EQ(class_of(0)->rows, 0);
	nic_row_took(ba(), 0, true, MB, MANY);
	CHECK_EQ(class_of(0)->rows, 0);
	pair_close(&p);
}

/* What is clearly worse for a class is not what the next longer ones, of which nothing is known, begin with; but they try it, too, later. */
static void taken_over(void)
{
	struct nic_pace *p2;

	BEGIN_ROWS();
	p2 = &class_of(2)->pace;
	reads_of(0, FAST, SLOW, 20);
	CHECK(class_of(0)->pace.cost[0] && class_of(0)->pace.cost[1]);
	CHECK_EQ(reads_of(1, FAST, SLOW, 1), 0);
	CHECK(class_of(1)->pace.cost[0] == class_of(0)->pace.cost[0] && class_of(1)->pace.cost[1] == class_of(0)->pace.cost[1]);
	CHECK_EQ(class_of(1)->pace.period, NIC_PACE_SOON);
	CHECK_EQ(reads_of(2, FAST, SLOW, 1), 1); /* it is to be read, whatever is better for those */
	CHECK_EQ(p2->period, 0);
	pair_close(&p);
	/* The other way round. */
	BEGIN_ROWS();
	p2 = &class_of(2)->pace;
	reads_of(3, SLOW, FAST, 20);
	CHECK(class_of(3)->pace.cost[0] && class_of(3)->pace.cost[1]);
	reads_of(2, SLOW, FAST, 1);
	CHECK_EQ(p2->cost[0], 0); /* not from longer ones */
	pair_close(&p);
	BEGIN_ROWS();
	p2 = &class_of(3)->pace;
	reads_of(2, SLOW, FAST, 20);
	CHECK_EQ(reads_of(3, SLOW, FAST, 1), 1);
	CHECK(p2->cost[0] == class_of(2)->pace.cost[0] && p2->cost[1] == class_of(2)->pace.cost[1]);
	CHECK(p2->way && !p2->trial && !p2->gone);
	CHECK_EQ(p2->period, NIC_PACE_SOON);
	CHECK_EQ(reads_of(3, SLOW, FAST, NIC_PACE_SOON), NIC_PACE_SOON);
	CHECK(reads_of(3, SLOW, FAST, 5) < 5);
	reads_of(3, FAST, SLOW, 200); /* each for itself, then */
	CHECK(p2->cost[0] < p2->cost[1]);
	CHECK(reads_of(2, SLOW, FAST, 5) > 0);
	pair_close(&p);
	/* Not what is not clear. */
	BEGIN_ROWS();
	reads_of(2, FAST + FAST / 4, FAST, 20);
	CHECK(class_of(2)->pace.cost[0] && class_of(2)->pace.cost[1]);
	reads_of(3, FAST + FAST / 4, FAST, 1);
	CHECK_EQ(class_of(3)->pace.cost[0], 0);
	/* Nor what has gone one way only. */
	reads_of(0, BEST, BEST / 2, 3);
	reads_of(1, FAST, SLOW, 1);
	CHECK(class_of(0)->pace.cost[0] && !class_of(0)->pace.cost[1]);
	CHECK_EQ(class_of(1)->pace.period, 0);
	pair_close(&p);
	BEGIN_ROWS();
	reads_of(2, SLOW, FAST, 2);
	reads_of(3, SLOW, FAST, 1);
	CHECK(!class_of(2)->pace.cost[0] && class_of(2)->pace.cost[1]);
	CHECK_EQ(class_of(3)->pace.period, 0);
	pair_close(&p);
	BEGIN_ROWS();
	for (int i = 0; i < 3; i++)
		nic_row_took(ba(), 2, false, SLOW, MANY);
	reads_of(3, SLOW, FAST, 1);
	CHECK(class_of(2)->pace.cost[0] && !class_of(2)->pace.cost[1]);
	CHECK_EQ(class_of(3)->pace.period, 0);
	pair_close(&p);
	/* Nor where it is known to be another way than is guessed, from elsewhere. */
	BEGIN_ROWS();
	reads_of(2, SLOW, FAST, 20);
	class_of(3)->pace.way = 0;
	nic_row_took(ba(), 3, false, SLOW, MANY);
	CHECK_EQ(class_of(3)->pace.period, 0);
	/* Another kind's longest are no shorter ones. */
	reads_of(3, SLOW, FAST, 20);
	CHECK(class_of(3)->pace.cost[0] && class_of(3)->pace.cost[1]);
	reads_of(4, SLOW, FAST, 1);
	CHECK_EQ(class_of(4)->pace.cost[0] * class_of(4)->pace.cost[1], 0);
	pair_close(&p);
}

/* What is hardly better changes nothing, one way or the other. */
static void hardly_better(void)
{
	BEGIN_ROWS();
	reads_of(0, FAST, FAST - FAST / 16, 200);
	CHECK(reads_of(0, FAST, FAST - FAST / 16, 1000) < 50);
	reads_of(0, FAST, FAST / 2, 1000);
	CHECK(reads_of(0, FAST - FAST / 16, FAST, 1000) > 950);
	pair_close(&p);
}

/* The sender does as the receiver would rather have it, with all but the first of a row. */
static void the_sender_is_told(void)
{
	SKIP_ASKING();
	BEGIN_ROWS();
	until(0, SLOW, FAST, 3 | LONGEST, 100);
	until(1, FAST, SLOW, 1 | LONGEST, 1000);
	nic_poll(p.a.nic);
	for (int i = 0; i < 3; i++) {
		CHECK(rather_sent(&p.a, 100 * KB));
		CHECK(!rather_sent(&p.a, 100 * KB));
		CHECK(!rather_sent(&p.a, 50 * KB));
		CHECK(rather_sent(&p.a, 30 * KB));
		CHECK(rather_sent(&p.a, 300 * KB));
		CHECK_EQ(counter(p.a.nic, "rather_read"), 2 * (i + 1));
		nic_poll(p.a.nic); /* it looks */
	}
	CHECK(rather_sent(&p.b, 100 * KB)); /* the other way nothing is known */
	CHECK(rather_sent(&p.b, 100 * KB));
	pair_close(&p);
}

/* ---- what is a row ------------------------------------------------------------------------------------------------ */

/* So many at a time, which take some time; `read` of them are. */
static void row(int n, uint64_t len, int read, unsigned us)
{
	for (int i = 0; i < n; i++)
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	usleep(us);
	for (int i = 0; i < n; i++)
		nic_long_over(p.b.nic, p.b.vi, len, i < read, false);
}

/* Rows of that class count from now on, those that went that way. */
static void ready(uint32_t class, bool read)
{
	usleep(1000);
	row(1, 16 * KB, 0, 1000); /* ends what was before */
	ba()->row.seen = true;
	*class_of(class) = (struct nic_row_class){ .rows = 0 };
	ba()->row.settle[class] = 1;
	ba()->row.read[class] = read;
	usleep(1000);
}

/* How many rows have been timed since, of one or more? */
static uint32_t timed(uint32_t class)
{
	uint32_t n;

	usleep(1000);
	nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	n = class_of(class)->rows;
	nic_long_over(p.b.nic, p.b.vi, 16 * KB, false, false);
	return n;
}

static void rows(void)
{
	BEGIN_ROWS();
	ready(0, false);
	row(64, LONG, 0, 2000);
	CHECK_EQ(class_of(0)->rows, 0); /* it may go on */
	CHECK_EQ(timed(0), 1);
	CHECK_EQ(class_of(0)->bytes, 64 * LONG);
	CHECK(class_of(0)->ns >= 2000000);
	ready(0, false);
	row(64, LONG, 8, 1000); /* one in eight of the other way does not matter */
	CHECK_EQ(timed(0), 1);
	ready(0, false);
	ba()->row.n[0] = 0;
	ba()->row.mixed = true; /* when nothing was under way */
	row(64, LONG, 0, 1000);
	CHECK_EQ(timed(0), 1);
	ready(0, false);
	row(30, LONG, 0, 1000); /* a short one, which did not go on */
	CHECK_EQ(timed(0), 1);
	ready(3, false);
	row(4, 4 * MB, 0, 1000); /* few, but of many bytes */
	CHECK_EQ(timed(3), 1);
	/* Those that are read are taken one by one; and the first of a few is sent. */
	for (int i = 0; i < 5; i++) { /* times: the machine may be away in between */
		ready(0, true);
		for (int k = 0; k < 64; k++)
			row(1, LONG, 1, 0);
		if (timed(0))
			break;
		CHECK(i < 4);
	}
	for (int i = 0; i < 5; i++) {
		ready(0, true);
		for (int k = 0; k < 22; k++)
			row(3, LONG, 2, 0);
		if (timed(0))
			break;
		CHECK(i < 4);
	}
	pair_close(&p);
}

static void no_rows(void)
{
	void *in_card;

	BEGIN_ROWS();
	ready(0, false);
	row(7, LONG, 0, 1000);
	CHECK_EQ(timed(0), 0);
	ready(0, false);
	row(60, LONG, 0, 0);
	row(60, 300 * KB, 0, 1000);
	CHECK_EQ(timed(0), 0);
	ready(0, false);
	row(64, LONG, 20, 1000); /* some this way, some that */
	CHECK_EQ(timed(0), 0);
	ready(0, false);
	for (int i = 0; i < 64; i++)
		row(1, LONG, 0, 0); /* each by itself, as in a ping-pong */
	CHECK_EQ(timed(0), 0);
	ready(0, true);
	nic_long_over(p.b.nic, p.b.vi, LONG, false, false); /* which never began */
	CHECK_EQ(ba()->row.open, 0);
	if (nic_mem_alloc(p.a.nic, MB, &in_card) == NIC_OK) {
		CHECK(nic_long_begins(p.b.nic, p.b.vi, (uintptr_t)p.a.mem, LONG, false));
		CHECK(!nic_long_begins(p.b.nic, p.b.vi, (uintptr_t)in_card, LONG, false)); /* copied as fast as can be */
		CHECK_EQ(ba()->row.open, 1);
		CHECK(ba()->row.mixed);
		nic_long_over(p.b.nic, p.b.vi, LONG, true, false);
		CHECK_EQ(nic_mem_free(p.a.nic, in_card), NIC_OK);
	}
	pair_close(&p);
}

/* Long messages both ways: the end in the lower slot decides for both. */
static void exchanges(void)
{
	struct nic_row *low, *high;
	struct nic_link *link;

	SKIP_ASKING();
	BEGIN_ROWS();
	CHECK(p.a.nic->me < p.b.nic->me);
	low = &ab()->row;
	high = &ba()->row;
	for (int i = 0; i < 6; i++) {
		row(64, LONG, 0, 0);
		usleep(100);
	}
	CHECK(!high->mutual && !high->follows);
	CHECK_EQ(high->came[1] + high->sent[0] + high->sent[1], 0);
	until(0, SLOW, FAST, 3 | LONGEST, 100);
	CHECK_EQ(ab()->asking->reads, 3 | LONGEST);
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 64; k++)
			rather_sent(&p.b, LONG);
		row(64, LONG, 0, 0);
		usleep(100);
	}
	CHECK(high->mutual == 1 && high->follows == 1);
	CHECK_EQ(high->reads, 2 | LONGEST);
	for (int i = 0; i < 8 && high->came[0] > 64; i++) {
		row(64, LONG, 0, 0);
		usleep(100);
	}
	/* As it is told, of messages of that class; and it times nothing of them. */
	ab()->asked->reads = 1;
	class_of(0)->rows = 1;
	class_of(0)->ns = 12345;
	high->settle[0] = 1;
	row(64, LONG, 0, 0);
	usleep(100);
	row(64, LONG, 0, 0);
	CHECK(high->came[0] && high->follows);
	CHECK_EQ(high->reads, 3 | LONGEST);
	CHECK_EQ(ba()->asked->reads, 3 | LONGEST);
	CHECK(class_of(0)->rows == 1 && class_of(0)->ns == 12345);
	/* It is no longer one. */
	for (int i = 0; i < 12; i++) {
		row(64, LONG, 0, 0);
		usleep(100);
	}
	CHECK(!high->mutual && !high->follows);
	/* The other end, which decides. */
	link = ab();
	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < 64; k++) {
			rather_sent(&p.a, LONG);
			nic_long_begins(p.a.nic, p.a.vi, 0, LONG, false);
		}
		for (int k = 0; k < 64; k++)
			nic_long_over(p.a.nic, p.a.vi, LONG, false, false);
		usleep(100);
	}
	CHECK(low->mutual == 1 && !low->follows);
	CHECK_EQ(link->row.n[0], 64);
	pair_close(&p);
}

/* How many there are each way, of one class. */
static void what_is_an_exchange(void)
{
	static const struct {
		uint32_t came, sent, before, behind, left;
	} cases[] = {
		{ 128, 60, 0, 0, 192 }, /* not enough to say */
		{ 192, 64, 0, 1, 0 },
		{ 192, 63, 0, 0, 0 },
		{ 192, 63, 1, 1, 0 },
		{ 192, 31, 1, 0, 0 },
		{ 192, 0, 1, 0, 0 },
		{ 0, 10000, 1, 0, 64 }, /* many the other way are enough, too: it is seen before these 64 come */
		{ 192, 1000, 0, 0, 64 },
		{ 192, 1000, 1, 1, 64 },
		{ 192, 700, 0, 1, 64 },
	};

	BEGIN_ROWS();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ready(0, false);
		ba()->row.came[1] = cases[i].came;
		ba()->row.sent[1] = cases[i].sent;
		ba()->row.mutual = cases[i].before << 1;
		row(64, 300 * KB, 0, 0);
		usleep(1000);
		row(1, 16 * KB, 0, 0);
		CHECK_EQ(ba()->row.mutual, cases[i].behind << 1);
		CHECK_EQ(ba()->row.follows, cases[i].behind << 1);
		CHECK_EQ(ba()->row.came[1], cases[i].left);
	}
	pair_close(&p);
}

/* Of a class there were so many each way; what is an exchange then? */
static uint32_t mutual_behind(uint32_t class, uint32_t came, uint32_t sent)
{
	ready(3, false);
	ba()->row.came[class] = came;
	ba()->row.sent[class] = sent;
	row(8, 4 * MB, 0, 0);
	usleep(1000);
	row(1, 16 * KB, 0, 0);
	ba()->row.came[3] = 0;
	return ba()->row.mutual;
}

/* Where it matters from the first of them on, longer ones are taken for what shorter ones are, until they have been seen. */
static void longer_ones_are_expected(void)
{
	BEGIN_ROWS();
	CHECK_EQ(mutual_behind(0, 300, 300), 1);
	CHECK_EQ(mutual_behind(0, 300, 0), 0);
	pair_close(&p);
	BEGIN_ROWS();
	ba()->migrates = true;
	ba()->row.far = 80;
	ba()->row.ns = 120;
	CHECK_EQ(mutual_behind(0, 300, 300), 1);
	ba()->row.ns = 40;
	CHECK_EQ(mutual_behind(0, 300, 300), 0xf);
	CHECK_EQ(ba()->row.follows, 0xf);
	CHECK_EQ(mutual_behind(2, 300, 0), 3);
	CHECK_EQ(mutual_behind(NIC_ROW_LENGTHS + 1, 300, 300), 3 | 2 << NIC_ROW_LENGTHS); /* single ones are others */
	CHECK_EQ(mutual_behind(0, 300, 0), 2 << NIC_ROW_LENGTHS);
	CHECK_EQ(mutual_behind(1, 300, 300), 2 | 2 << NIC_ROW_LENGTHS);
	CHECK_EQ(mutual_behind(0, 300, 300), 3 | 2 << NIC_ROW_LENGTHS);
	CHECK_EQ(mutual_behind(0, 300, 0), 2 | 2 << NIC_ROW_LENGTHS);
	pair_close(&p);
}

static void own(bool write)
{
	nic_row_begins(p.a.nic, ab());
	nic_row_over(p.a.nic, ab(), write, LONG, true, true);
}

/* Of one that only sends now, or gets, it is seen, too; puts are another kind. */
static void is_no_exchange_any_more(void)
{
	BEGIN_ROWS();
	ab()->row.mutual = 1;
	for (int i = 0; i < 255; i++)
		rather_sent(&p.a, LONG);
	CHECK_EQ(ab()->row.mutual, 1);
	rather_sent(&p.a, LONG);
	CHECK_EQ(ab()->row.mutual, 0);
	ab()->row.mutual = 1; /* that has been seen; then it takes longer */
	p.a.nic->looks++;
	rather_sent(&p.a, LONG); /* a single one */
	for (int i = 0; i < 1023; i++) {
		rather_sent(&p.a, LONG);
		CHECK_EQ(ab()->row.mutual, 1);
	}
	rather_sent(&p.a, LONG);
	CHECK_EQ(ab()->row.mutual, 0);
	ab()->row.mutual = 1;
	for (int i = 0; i < 2000; i++)
		own(true);
	CHECK_EQ(ab()->row.mutual, 1);
	ab()->row.mutual = ab()->row.follows = 1 | 2 << NIC_ROW_LENGTHS;
	for (int lap = 0; lap < 3; lap++) {
		for (int i = 0; i < 1023; i++)
			own(false);
		CHECK_EQ(ab()->row.mutual & 1, 1);
		if (lap == 0)
			rather_sent(&p.a, LONG);
		if (lap == 1 && nic_long_begins(p.a.nic, p.a.vi, 0, LONG, false))
			nic_long_over(p.a.nic, p.a.vi, LONG, false, false);
	}
	own(false);
	CHECK(ab()->row.mutual == 2 << NIC_ROW_LENGTHS && !(ab()->row.follows & 1));
	pair_close(&p);
}

/* Who reads while the other end reads, too, asks it for no half. */
static void no_halves_in_exchanges(void)
{
	for (int mutual = 0; mutual < 2; mutual++) {
		BEGIN(0, 40000);
		ab()->row.mutual = mutual;
		ab()->row.open = 1;
		post(0, NIC_CTL_RDMA_READ, 0, 0, 65536);
		pair_poll(&p);
		CHECK(good(&p.a.desc[0]));
		CHECK_EQ(counter(p.a.nic, "bytes_own_half"), mutual ? 0 : 32768);
		ab()->row.open = 0; /* no message, but a get, say */
		post(2, NIC_CTL_RDMA_READ, 0, 0, 65536);
		pair_poll(&p);
		CHECK_EQ(counter(p.a.nic, "bytes_own_half"), mutual ? 32768 : 65536);
		ab()->row.open = 1;
		post(1, NIC_CTL_RDMA_WRITE, 0, 0, 65536);
		pair_poll(&p);
		CHECK(good(&p.a.desc[1]));
		CHECK_EQ(counter(p.a.nic, "bytes_own_half"), mutual ? 65536 : 3 * 32768);
		pair_close(&p);
	}
}

/* What is tried and does not happen is not waited for, and is tried again later. */
static void trials_in_vain(void)
{
	struct nic_pace *pace;

	BEGIN_ROWS();
	pace = &class_of(0)->pace;
	CHECK(until(0, FAST, FAST, 1 | LONGEST, 20) < 20);
	CHECK(pace->trial && !pace->cost[1]);
	for (int i = 0; i < 20 && pace->trial; i++) {
		row(64, LONG, 0, 100);
		usleep(400);
	}
	CHECK(!pace->trial);
	CHECK_EQ(ba()->row.reads, LONGEST);
	CHECK_EQ(ba()->asked->reads, LONGEST);
	CHECK(until(0, FAST, FAST / 2, 3 | LONGEST, 2000) < 2000);
	pair_close(&p);
}

/* What is tried and has taken too long is over before the next row begins, if it is long enough to say so. */
static void hopeless(void)
{
	static const struct {
		uint64_t len, other;
		bool read, trial, ends;
		int n;
	} cases[] = {
		{ MB, 1000, true, true, true, 64 },
		{ MB, 1000, true, true, true, 65 }, /* when all are over */
		{ MB - MB / 64, 1000, true, true, false, 64 }, /* not long enough */
		{ MB, 1000, false, true, false, 64 },          /* not what is tried */
		{ MB, 1000, true, false, false, 64 },          /* nothing is */
		{ MB, 100 * MB, true, true, false, 64 },       /* it may still be the better one */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		BEGIN_ROWS();
		ready(1, cases[i].read);
		class_of(1)->pace = (struct nic_pace){ .cost = { (uint32_t)cases[i].other }, .way = 1, .trial = cases[i].trial, .gone = 1 };
		row(cases[i].n, cases[i].len, cases[i].read ? cases[i].n : 0, 1000);
		CHECK_EQ(class_of(1)->pace.trial, cases[i].trial && !cases[i].ends);
		CHECK_EQ(ba()->row.n[0] + ba()->row.n[1], cases[i].ends ? 0 : 64);
		pair_close(&p);
	}
}

/* A pause is no part of a row, what lies between two rows is. */
static void pauses(void)
{
	uint64_t ns;

	BEGIN_ROWS();
	ready(0, false);
	row(64, 64 * KB, 0, 5000);
	usleep(5000);
	nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	CHECK(class_of(0)->ns >= 10000000);
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false, false);
	ready(0, false);
	row(64, 64 * KB, 0, 1000);
	ns = ba()->row.last - ba()->row.began;
	usleep((unsigned)(4 * ns / 1000 + 1000));
	nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	CHECK_EQ(class_of(0)->ns, ns);
	nic_long_over(p.b.nic, p.b.vi, 64 * KB, false, false);
	pair_close(&p);
}

/* In which the peer has sent others: those that are eager of a window that has more than there is room for. */
static void no_pauses(void)
{
	enum { CELLS = 16 };
	uint64_t ns;

	BEGIN_ROWS();
	for (uint32_t cells = CELLS - 1; cells <= CELLS; cells ++) {
		ready(0, false);
		row(32, 64 * KB, 0, 1000);
		ba()->rx_pos += cells;
		usleep(2000);
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
		CHECK_EQ(class_of(0)->rows, cells < CELLS);
		nic_long_over(p.b.nic, p.b.vi, 64 * KB, false, false);
		ready(0, false);
		row(64, 64 * KB, 0, 1000);
		ns = ba()->row.last - ba()->row.began;
		ba()->rx_pos += cells;
		usleep((unsigned)(4 * ns / 1000 + 1000));
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
		CHECK_EQ(class_of(0)->rows, 1);
		CHECK_EQ(class_of(0)->ns >= 5 * ns, cells == CELLS);
		nic_long_over(p.b.nic, p.b.vi, 64 * KB, false, false);
		ba()->rx_pos -= 2 * cells;
	}
	pair_close(&p);
}

int main(void)
{
	CASE(classes);
	CASE(from_the_start);
	CASE(the_faster_way);
	CASE(nothing_is_tried_for_nothing);
	CASE(two_of_a_kind);
	CASE(taken_over);
	CASE(hardly_better);
	CASE(the_sender_is_told);
	CASE(rows);
	CASE(no_rows);
	CASE(exchanges);
	CASE(what_is_an_exchange);
	CASE(longer_ones_are_expected);
	CASE(is_no_exchange_any_more);
	CASE(no_halves_in_exchanges);
	CASE(trials_in_vain);
	CASE(hopeless);
	CASE(pauses);
	CASE(no_pauses);
	return check_done();
}
