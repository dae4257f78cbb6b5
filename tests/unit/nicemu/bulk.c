/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages in buffers: few of them go round, or many (ctl/bulk.c). */
#include "nicemu/engine/clock.h"
#include "tests/unit/nicemu/quick.h"

enum { LONG = 30000, FEW = 6, LENT = 8, ROUND = 128, PATIENCE = 20000 };

static struct pair p;

static struct nic_link *ab(void)
{
	return p.a.nic->link[p.b.nic->me];
}

static bool turn(void)
{
	return nic_bulk_turn(p.a.nic, p.a.vi);
}

static void taken(int n)
{
	struct nic_taken out;

	for (int i = 0; i < n; i++) {
		CHECK_EQ(take(&p, &out), NIC_OK);
		if (out.buffer)
			nic_buf_give(p.b.nic, out.buffer);
	}
}

#define BEGIN(w)                              \
	do {                                  \
		SKIP_ASKING();                \
		open_quick(&p);               \
		ab()->bulk.pace.way = (w);    \
		ab()->bulk.pace.period = 512; \
	} while (0)

/* Unless few go round, none is held back. */
static void many(void)
{
	BEGIN(0);
	for (int i = 0; i < 40; i++) {
		CHECK(turn());
		CHECK(!ab()->few);
		CHECK_EQ(give(&p, LONG, 1), NIC_OK);
	}
	taken(40);
	pair_close(&p);
}

/* At once, unless the machine was away for longer than a peer is waited for. */
static bool held_back(void)
{
	uint64_t start = nic_clock();
	bool held = !turn();

	return held || nic_clock_since(start, nic_clock()) >= PATIENCE;
}

static void few_under_way(void)
{
	BEGIN(1);
	for (int lap = 0; lap < 3; lap++) {
		for (int i = 0; i < FEW; i++) {
			nic_poll(p.a.nic);
			ab()->bulk.asked = 0; /* as behind a pause */
			CHECK(turn());
			CHECK(ab()->few);
			CHECK_EQ(give(&p, LONG, 1), NIC_OK);
		}
		ab()->bulk.left = nic_clock() - 1000000;
		ab()->bulk.asked = 0; /* a pause is not the peer's */
		CHECK(held_back());
		nic_poll(p.a.nic);
		ab()->bulk.left = nic_clock();
		CHECK(held_back());
		taken(1);
		CHECK(turn());
		taken(FEW - 1);
	}
	pair_close(&p);
}

/* Those that have not come back are looked for first, whatever that finds. */
static void few_lent(void)
{
	BEGIN(1);
	ab()->balance = 0;
	for (int i = 0; i < LENT; i++) {
		CHECK(turn());
		ab()->balance--;
	}
	CHECK(!turn());
	CHECK(!turn());
	for (int i = 0; i < 3; i++) {
		nic_poll(p.a.nic);
		CHECK(turn());
		CHECK(!turn());
	}
	p.a.nic->looks++; /* that is a look, too */
	CHECK(turn());
	ab()->balance++;
	CHECK(turn());
	ab()->bulk.pace.way = 0;
	ab()->balance = -100;
	CHECK(turn());
	CHECK(turn());
	ab()->balance = 0;
	pair_close(&p);
}

/* A peer that takes nothing is waited for only so long, until it takes some again. */
static void away(void)
{
	uint64_t start;

	BEGIN(1);
	for (int i = 0; i < FEW; i++)
		CHECK_EQ(give(&p, LONG, 1), NIC_OK);
	ab()->balance = 0;
	ab()->bulk.n = 100;
	start = ab()->bulk.left = ab()->bulk.asked = nic_clock();
	while (!turn())
		CHECK(!ab()->bulk.away);
	CHECK(nic_clock_since(start, nic_clock()) >= PATIENCE);
	CHECK(ab()->bulk.away);
	CHECK_EQ(ab()->bulk.n, 1); /* that round says nothing */
	for (int i = 0; i < 10; i++)
		CHECK(turn());
	taken(FEW);
	CHECK(turn());
	CHECK(!ab()->bulk.away);
	for (int i = 0; i < FEW; i++)
		CHECK_EQ(give(&p, LONG, 1), NIC_OK);
	ab()->balance = 0;
	ab()->bulk.left = nic_clock();
	CHECK(held_back());
	pair_close(&p);
}

/* So many are timed together; a pause is no part of it. */
static void rounds(void)
{
	struct nic_bulk *b;

	BEGIN(0);
	b = &ab()->bulk;
	for (int i = 0; i < 20; i++) { /* times: the machine may be away in between */
		*b = (struct nic_bulk){ .n = 0 };
		for (int k = 0; k < ROUND; k++)
			turn();
		CHECK_EQ(b->pace.cost[0], 0);
		turn();
		if (b->pace.cost[0])
			break;
		CHECK(i < 19);
	}
	CHECK_EQ(b->n, 1);
	CHECK(b->pace.cost[0] < 100000000);
	*b = (struct nic_bulk){ .n = 0 };
	for (int k = 0; k < 100; k++)
		turn();
	usleep(200);
	for (int k = 0; k < 100; k++)
		turn();
	CHECK(b->n <= 100);
	CHECK_EQ(b->pace.cost[0], 0);
	/* The other way is tried. */
	for (int k = 0; k < 100000 && !ab()->few; k++)
		turn();
	CHECK(b->pace.trial && b->pace.way == 1 && b->pace.cost[0]);
	for (int k = 0; k < 100000 && b->pace.trial; k++) {
		turn();
		nic_poll(p.a.nic);
	}
	CHECK(!b->pace.trial && b->pace.cost[1]);
	pair_close(&p);
}

/* The most that the receiver keeps of such messages, over many. */
static int32_t kept(uint32_t len)
{
	struct nic_link *ba = p.b.nic->link[p.a.nic->me];
	int32_t most = -100;

	for (int i = 0; i < 200; i++) {
		CHECK_EQ(give(&p, len, 1), NIC_OK);
		taken(1);
		nic_poll(p.a.nic);
		if (i >= 100 && ba->balance > most)
			most = ba->balance;
	}
	return most;
}

/* Of few, the receiver keeps fewer; of shorter messages, as many as ever. */
static void returned_soon(void)
{
	BEGIN(0);
	CHECK(kept(LONG) > 20);
	ab()->few = true;
	CHECK(kept(LONG) <= 4);
	CHECK(kept(LEN) > 20);
	CHECK(kept(LONG) <= 4);
	ab()->few = false;
	CHECK(kept(LONG) > 20);
	pair_close(&p);
}

/* There is nobody at the other end. */
static void no_link(void)
{
	struct end e;

	SKIP_ASKING();
	end_open(&e, "test-bulk");
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	for (int i = 0; i < 3; i++)
		CHECK(nic_bulk_turn(e.nic, e.vi));
	end_close(&e);
}

int main(void)
{
	CASE(many);
	CASE(few_under_way);
	CASE(few_lent);
	CASE(away);
	CASE(rounds);
	CASE(returned_soon);
	CASE(no_link);
	return check_done();
}
