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

/* And this side has not been doing something else, or been kept from the processor. */
static bool turn_at_once(void)
{
	ab()->bulk.asked = nic_clock();
	return turn();
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
		ab()->migrates = false;       \
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
	bool held;

	ab()->bulk.left = ab()->bulk.asked = start;
	held = !turn();
	return held || nic_clock_since(start, nic_clock()) >= PATIENCE;
}

static void few_under_way(void)
{
	BEGIN(1);
	for (int lap = 0; lap < 3; lap++) {
		for (int i = 0; i < FEW; i++) {
			nic_poll(p.a.nic);
			ab()->bulk.asked = 0; /* as behind a pause */
			ab()->bulk.running = false;
			CHECK(turn());
			CHECK(ab()->few);
			CHECK_EQ(give(&p, LONG, 1), NIC_OK);
			CHECK(!ab()->few);
		}
		CHECK(held_back());
		nic_poll(p.a.nic);
		CHECK(held_back());
		ab()->bulk.left = nic_clock() - 1000000;
		ab()->bulk.held = false;
		ab()->bulk.asked = 0; /* a pause is not the peer's */
		CHECK(!turn());
		taken(1);
		nic_poll(p.a.nic);
		CHECK(turn());
		taken(FEW - 1);
		ab()->few = false;
	}
	CHECK(counter(p.a.nic, "few_buffers") >= 3 * FEW);
	pair_close(&p);
}

/* Those that have not come back are looked for first, whatever that finds. */
static void few_lent(void)
{
	BEGIN(1);
	ab()->balance = 0;
	for (int i = 0; i < LENT; i++) {
		CHECK(turn_at_once());
		ab()->balance--;
	}
	CHECK(!turn_at_once());
	CHECK(!turn_at_once());
	for (int i = 0; i < 3; i++) {
		nic_poll(p.a.nic);
		CHECK(turn_at_once());
		CHECK(!turn_at_once());
	}
	p.a.nic->looks++; /* that is a look, too */
	CHECK(turn_at_once());
	ab()->balance++;
	CHECK(turn_at_once());
	ab()->bulk.pace.way = 0;
	ab()->balance = -100;
	CHECK(turn_at_once());
	CHECK(turn_at_once());
	ab()->balance = 0;
	pair_close(&p);
}

static void send(int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(give(&p, LONG, 1), NIC_OK);
	ab()->balance = 0;
}

/* A peer that takes nothing is waited for only so long, until it takes some again. */
static void away(void)
{
	struct nic_bulk *b;
	uint64_t start;

	BEGIN(1);
	b = &ab()->bulk;
	send(FEW);
	b->running = true;
	b->sent = ROUND; /* it would be over */
	start = b->left = b->asked = b->began = nic_clock();
	while (!turn_at_once())
		CHECK(!b->away);
	CHECK(nic_clock_since(start, nic_clock()) >= PATIENCE);
	CHECK(b->away || !b->pace.way); /* or the machine was */
	CHECK(!b->away || b->taken == atomic_load(ab()->tx_exact));
	CHECK_EQ(b->pace.cost[1] % NIC_PACE_LONG, 0); /* that round says nothing */
	CHECK_EQ(b->sent, 0);
	b->pace.way = 1;
	b->away = true;
	b->taken = atomic_load(ab()->tx_exact);
	for (int i = 0; i < 10; i++) {
		ab()->balance = -100; /* nor is it looked for what does not come */
		CHECK(turn_at_once());
	}
	ab()->balance = 0;
	send(1);
	taken(1);
	CHECK(held_back());
	CHECK(!b->away);
	taken(FEW);
	CHECK(turn());
	pair_close(&p);
}

/* Who does not come back when it was held up has many, and so has who never gets so far that a round ends. */
static void given_up(void)
{
	struct nic_bulk *b;

	BEGIN(1);
	b = &ab()->bulk;
	b->pace.period = 0;
	b->pace.cost[0] = 1000;
	b->pace.trial = true;
	send(FEW);
	CHECK(held_back());
	b->held = true;
	b->asked = nic_clock() - 10000000;
	CHECK(turn());
	CHECK(!b->pace.way && !b->pace.trial && !b->held);
	CHECK_EQ(b->pace.period, NIC_PACE_SOON);
	CHECK_EQ(b->pace.cost[1], 1000);
	taken(FEW);
	*b = (struct nic_bulk){ .pace = { .way = 1, .period = 99, .cost = { 7, 5 }, .gone = 3 } };
	for (int i = 0; i < 16; i++) {
		CHECK(turn());
		CHECK(b->running && b->pace.way);
		CHECK_EQ(b->vain, i);
		b->asked -= 10000000;
	}
	b->sent = ROUND; /* a round that has ended before the pause */
	b->began -= 20000000;
	CHECK(turn());
	CHECK(!b->vain && b->pace.way && b->pace.cost[1] > 5);
	b->pace.cost[1] = 5;
	for (int i = 0; i < 15; i++) {
		b->asked -= 10000000;
		CHECK(turn());
	}
	CHECK(b->pace.way);
	b->asked -= 10000000;
	CHECK(turn());
	CHECK(!b->pace.way && !b->pace.gone && b->pace.period == 99);
	CHECK(b->pace.cost[0] == 7 && b->pace.cost[1] == 5);
	CHECK_EQ(b->vain, 0);
	b->pace.trial = true;
	for (int i = 0; i < 20; i++) { /* of many there is nothing to give up */
		CHECK(turn());
		b->asked -= 10000000;
	}
	CHECK(b->pace.trial);
	pair_close(&p);
}

/* A buffer has left, and with it three other packets, which do not count. */
static bool leaves(void)
{
	bool now = turn();

	ab()->tx_pos += 4 * now;
	return now;
}

/* So many are timed together, of those that leave; a pause is no part of it. */
static void rounds(void)
{
	struct nic_bulk *b;
	uint32_t pos;

	BEGIN(0);
	b = &ab()->bulk;
	pos = ab()->tx_pos;
	for (int i = 0; i < 20; i++) { /* times: the machine may be away in between */
		*b = (struct nic_bulk){ .vain = 5 };
		for (int k = 0; k < ROUND; k++)
			leaves();
		CHECK_EQ(b->pace.cost[0], 0);
		turn();
		if (b->pace.cost[0])
			break;
		CHECK(i < 19);
	}
	CHECK(b->running && !b->vain);
	CHECK_EQ(b->sent, 0);
	CHECK(b->pace.cost[0] < 100000000);
	*b = (struct nic_bulk){ .vain = 0 };
	for (int k = 0; k < 1000; k++)
		turn(); /* nothing leaves */
	CHECK_EQ(b->pace.cost[0], 0);
	for (int i = 0; i < 20 && b->sent != ROUND / 2; i++) { /* times, likewise */
		*b = (struct nic_bulk){ .vain = 0 };
		for (int k = 0; k < ROUND / 2; k++)
			leaves();
		turn();
	}
	CHECK_EQ(b->sent, ROUND / 2);
	*b = (struct nic_bulk){ .vain = 0 };
	for (int k = 0; k < 100; k++)
		leaves();
	usleep(200);
	for (int k = 0; k < 100; k++)
		leaves();
	CHECK_EQ(b->pace.cost[0], 0);
	/* The other way is tried. */
	for (int k = 0; k < 100000 && !ab()->few; k++)
		leaves();
	CHECK(b->pace.trial && b->pace.way == 1 && b->pace.cost[0]);
	for (int k = 0; k < 100000 && b->pace.trial; k++) {
		atomic_store(ab()->tx_exact, ab()->tx_pos);
		leaves();
		nic_poll(p.a.nic);
	}
	CHECK(!b->pace.trial && b->pace.cost[1]);
	ab()->tx_pos = pos;
	atomic_store(ab()->tx_exact, pos);
	ab()->few = false;
	pair_close(&p);
}

/* So does one that the peer takes at once. */
static bool leaves_taken(void)
{
	bool now = leaves();

	atomic_store(ab()->tx_exact, ab()->tx_pos);
	nic_poll(p.a.nic);
	return now;
}

/* This side was held up, and comes back only so many ns later; are few still to go round? */
static bool few_behind(uint64_t ns)
{
	struct nic_bulk *b = &ab()->bulk;

	b->held = true;
	b->asked = nic_clock() - ns;
	CHECK(leaves_taken());
	return !b->many;
}

/* Where lines migrate few go round, whatever they take, unless it is this side that does something else; then many do for a while. */
static void settled(void)
{
	struct nic_bulk *b;
	bool few = false;

	BEGIN(0);
	ab()->migrates = true;
	b = &ab()->bulk;
	*b = (struct nic_bulk){ .vain = 0 };
	for (int k = 0; k < 20 * ROUND; k++) {
		CHECK(leaves_taken());
		CHECK(ab()->few);
	}
	for (int k = 0; k < 40; k++) { /* a pause is none, however long */
		b->asked -= 10000000;
		CHECK(leaves_taken());
		CHECK(ab()->few);
	}
	for (int k = 0; k < 20 && !few; k++) { /* times: the machine may be away in between */
		b->many = 0;
		few = few_behind(100000); /* what has come was copied out meanwhile */
	}
	CHECK(few);
	CHECK(!few_behind(10000000));
	for (int k = 1; k < 32 * ROUND; k++) {
		CHECK(!ab()->few);
		if (k % 64 == 0)
			b->asked -= 10000000;
		leaves();
	}
	CHECK(!ab()->few);
	atomic_store(ab()->tx_exact, ab()->tx_pos);
	CHECK(turn());
	CHECK(ab()->few);
	CHECK(!b->pace.cost[0] && !b->pace.cost[1]);
	pair_close(&p);
}

/* The most that the receiver keeps of such messages, over many, of few that go round or of many; taken in a row. */
static int32_t kept(bool few, bool row)
{
	struct nic_link *ba = p.b.nic->link[p.a.nic->me];
	struct nic_message message;
	int32_t most = -100;

	for (int i = 0; i < 200; i++) {
		ab()->few = few;
		CHECK_EQ(give(&p, LONG, 1), NIC_OK);
		if (row) {
			CHECK_EQ(nic_take_buffers(p.b.nic, p.b.vi, &p.b.recv_cq, &message, 1, UINT32_MAX), 1);
			nic_buf_give_row(p.b.nic, &message, 1);
		} else {
			taken(1);
		}
		nic_poll(p.a.nic);
		if (i >= 100 && ba->balance > most)
			most = ba->balance;
	}
	return most;
}

/* Of few, the receiver keeps fewer; of others, as many as ever. */
static void returned_soon(void)
{
	BEGIN(0);
	CHECK(kept(false, false) > 20);
	CHECK(kept(true, false) <= 4);
	CHECK(kept(false, false) > 20);
	CHECK(kept(true, false) <= 4);
	CHECK(kept(false, true) > 20);
	pair_close(&p);
}

/* With descriptors, for which the peer's NIC looks for receives. */
static void returned_soon_by_descriptors(void)
{
	struct nic_link *ba;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	ba = p.b.nic->link[p.a.nic->me];
	for (int few = 0; few < 3; few++) {
		int32_t most = -100;

		for (int i = 0; i < 200; i++) {
			recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem, LONG));
			ab()->few = few == 1;
			CHECK_EQ(give(&p, LONG, 1), NIC_OK);
			pair_poll(&p);
			if (i >= 100 && ba->balance > most)
				most = ba->balance;
		}
		CHECK(few == 1 ? most <= 4 : most > 20);
	}
	pair_close(&p);
}

/* What takes descriptors tells its receiver nothing. */
static void not_by_value(void)
{
	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_RECEPTION);
	ab()->bulk.pace.way = 1;
	ab()->balance = -100;
	for (int i = 0; i < 3; i++)
		CHECK(turn());
	CHECK(!ab()->few);
	ab()->balance = 0;
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
	CASE(given_up);
	CASE(rounds);
	CASE(settled);
	CASE(returned_soon);
	CASE(returned_soon_by_descriptors);
	CASE(not_by_value);
	CASE(no_link);
	return check_done();
}
