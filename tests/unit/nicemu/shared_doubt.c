/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA on which the NICs of both ends work (ctl/rdma_ask.c): whether the peer is asked for its part.  Not while it has looked at
 * nothing since it was late, hardly ever if it is late again and again, and not where there is no room to ask; in the end it is asked
 * again.
 */
#include <pthread.h>

#include "tests/unit/nicemu/kin.h"
#include "nicemu/ctl/rdma.h"
#include "tests/unit/nicemu/shared.h"

static struct nic_link *ba(void)
{
	return p.b.nic->link[p.a.nic->me];
}

/* b always looks too late: it is asked more and more seldom, and again when it has come in time for a while. */
static void doubted(uint16_t op)
{
	enum { LATE = 500, ENOUGH = 2000 };
	const struct nic_doubt *doubt;
	uint32_t depth;
	uint64_t asked;
	int left = ENOUGH;

	BEGIN(UINT32_MAX, UINT32_MAX);
	ab()->get_max = 512;
	for (int i = 0; i < LATE; i++) {
		struct nic_desc *d = post(0, op, 0, 0, 8);

		poll_a(done(d) ? 0 : LONG_AGO);
		CHECK(good(d));
		nic_poll(p.b.nic);
	}
	doubt = op == NIC_CTL_RDMA_READ ? &ab()->get : &ab()->put;
	depth = doubt->depth;
	asked = counter(p.a.nic, "shared");
	CHECK(asked > 5 && asked < 20);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), asked);
	for (int in_time = 0; in_time < 10 && left; left--) {
		struct nic_desc *d = post(0, op, 0, 0, 8);

		in_time = done(d) ? 0 : in_time + 1;
		pair_poll(&p);
		CHECK(good(d));
	}
	CHECK(left > 0);
	CHECK(doubt->depth < depth / 2);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), asked);
	pair_close(&p);
}

static void doubted_write(void) { doubted(NIC_CTL_RDMA_WRITE); }
static void doubted_read(void) { doubted(NIC_CTL_RDMA_READ); }

static _Atomic bool b_is_there;

/* b, in time: its NIC is looked at all the while. */
static void *look(void *nic)
{
	while (atomic_load(&b_is_there))
		nic_poll(nic);
	return NULL;
}

/* In an exchange, where b asks as well, both are at their own: b is asked more and more seldom, and again when it has been in time. */
static void exchange(uint16_t op)
{
	enum { LATE = 200, DEEP = 63 };
	struct end *from = op == NIC_CTL_RDMA_WRITE ? &p.a : &p.b, *to = op == NIC_CTL_RDMA_WRITE ? &p.b : &p.a;
	pthread_t thread;
	uint64_t asked;

	BEGIN(0, 8192);
	ab()->impatient = true;
	ab()->mutual = LATE;
	pattern(from->mem, BIG, 3);
	for (int i = 0; i < LATE; i++) {
		struct nic_desc *d = post(0, op, 0, 0, BIG);

		pair_poll(&p);
		CHECK(good(d));
	}
	CHECK(is_pattern(to->mem, BIG, 3));
	asked = counter(p.a.nic, "shared");
	CHECK(asked > 5 && asked < 20);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), op == NIC_CTL_RDMA_WRITE ? 0 : asked);
	CHECK_EQ(ab()->half.depth, DEEP);
	CHECK_EQ(ab()->mutual, 0); /* b, which has not asked for anything, is no longer taken for one that does */
	ab()->half = (struct nic_doubt){ .depth = DEEP - 1 };
	ab()->mutual = 2;
	post(0, op, 0, 0, BIG);
	pair_poll(&p);
	CHECK_EQ(ab()->half.depth, DEEP); /* and no deeper */

	atomic_store(&b_is_there, true);
	pthread_create(&thread, NULL, look, p.b.nic);
	for (double until = kin_now() + KIN_SECONDS; ab()->half.depth > DEEP / 2 && kin_now() < until;) {
		struct nic_desc *d;

		ab()->absent = false; /* on one core b looks only when a does not: a asks all the same, and may be stopped in its copy */
		d = post(0, op, 0, 0, BIG);
		while (!done(d) && kin_now() < until)
			nic_poll(p.a.nic);
		CHECK(good(d));
	}
	atomic_store(&b_is_there, false);
	pthread_join(thread, NULL);
	CHECK(ab()->half.depth <= DEEP / 2);
	pair_close(&p);
}

static void exchange_of_reads(void) { exchange(NIC_CTL_RDMA_READ); }
static void exchange_of_writes(void) { exchange(NIC_CTL_RDMA_WRITE); }

/* b asks a, and a takes it for one that does, for so many transfers as a begins. */
static void asked_by_the_peer(void)
{
	uint32_t mutual;

	BEGIN(0, 8192);
	CHECK_EQ(ab()->mutual + ba()->mutual, 0);
	post(0, NIC_CTL_RDMA_READ, 0, 0, BIG);
	pair_poll(&p);
	mutual = ba()->mutual;
	CHECK(mutual > 1);
	CHECK_EQ(ab()->mutual, 0);
	ab()->mutual = mutual;
	post(0, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
	pair_poll(&p);
	CHECK_EQ(ab()->mutual, mutual - 1);
	CHECK_EQ(ba()->mutual, mutual);
	pair_close(&p);
}

enum { A_HALF_READ, A_HALF_WRITTEN, A_STREAM, A_SHORT, A_PACKET, PACKETS, KINDS };

/* A transfer of that kind; what it is when the peer is there. */
static struct nic_desc *of_kind(int kind, int i)
{
	bool write = kind == A_HALF_WRITTEN || kind >= A_PACKET;
	uint32_t len = kind <= A_STREAM ? BIG : kind == PACKETS ? 20000 : 8;

	ways(kind <= A_HALF_WRITTEN ? 0 : UINT32_MAX, 8192);
	ab()->get_max = kind == A_SHORT ? 512 : 0;
	return post(i, write ? NIC_CTL_RDMA_WRITE : NIC_CTL_RDMA_READ, 0, 0, len);
}

/* Of a connection that is no more b's NIC does nothing; but it has looked, before or after a's patience is over, and is asked again. */
static void asked_of_an_earlier_life(bool soon)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct nic_desc *d;
		uint32_t first;

		BEGIN(0, UINT32_MAX);
		first = ab()->tx_pos;
		d = of_kind(kind, 0);
		CHECK(ab()->tx_pos != first);
		for (; first != ab()->tx_pos; first++)
			ab()->tx[first & (NIC_RING_CELLS - 1)].gen ^= 1;
		if (soon)
			nic_poll(p.b.nic);
		poll_a(LONG_AGO);
		CHECK(good(d));
		CHECK_EQ(ab()->absent, !soon);
		pair_poll(&p);
		CHECK(counter(p.b.nic, "stale_packets") > 0);
		ab()->put.alone = ab()->get.alone = 0;
		d = of_kind(kind, 1);
		CHECK_EQ(counter(p.a.nic, "shared"), 2);
		pair_poll(&p);
		CHECK(good(d));
		CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1);
		pair_close(&p);
	}
}

static void earlier_life_seen_late(void) { asked_of_an_earlier_life(false); }
static void earlier_life_seen_soon(void) { asked_of_an_earlier_life(true); }

/* The same of one that has waited in b's line, and of one that makes no sense. */
static void passed_over_in_line(void)
{
	for (int sense = 0; sense < 2; sense++) {
		struct nic_link *link;
		struct nic_desc *d;

		BEGIN(UINT32_MAX, UINT32_MAX);
		link = ba();
		post(0, NIC_CTL_RDMA_READ, 0, 0, BIG);
		ab()->tx[(ab()->tx_pos - 1) & (NIC_RING_CELLS - 1)].ask.part = ab()->ask[ab()->ask_head % NIC_CLAIMS].part = 4096;
		d = post(1, NIC_CTL_RDMA_READ, 0, 0, 4096);
		if (!sense)
			ab()->tx[(ab()->tx_pos - 1) & (NIC_RING_CELLS - 1)].ask.part = 0;
		nic_poll(p.b.nic);
		CHECK_EQ(link->favour_tail - link->favour_head, 1 + sense); /* the first has more parts than a pass */
		link->favour[(link->favour_head + 1) % NIC_CLAIMS].gen ^= 1;
		while (link->favour_head != link->favour_tail) {
			nic_poll(p.b.nic);
			nic_poll(p.a.nic);
		}
		poll_a(LONG_AGO);
		CHECK(good(d));
		CHECK(!ab()->absent);
		d = post(2, NIC_CTL_RDMA_READ, 0, 0, 4096);
		CHECK_EQ(counter(p.a.nic, "shared"), 3);
		pair_poll(&p);
		CHECK(good(d));
		CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
		pair_close(&p);
	}
}

/* A line full of requests that were taken back leaves room for those that count, and the peer is asked again. */
static void line_of_taken_back(void)
{
	enum { PIECE = 16384 };
	struct nic_desc *d[NIC_CLAIMS];

	BEGIN(0, 8192);
	pattern(p.b.mem, NIC_CLAIMS * PIECE, 5);
	for (int i = 0; i < NIC_CLAIMS; i++) {
		ab()->impatient = true;
		ab()->absent = false;
		CHECK(good(post(i, NIC_CTL_RDMA_READ, 0, 0, PIECE)));
	}
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), NIC_CLAIMS);
	ways(0, 8192);
	ab()->absent = false;
	for (int i = 0; i < NIC_CLAIMS; i++) {
		d[i] = post(NIC_CLAIMS + i, NIC_CTL_RDMA_READ, (uint32_t)i * PIECE, (uint32_t)i * PIECE, PIECE);
		CHECK(!done(d[i]));
	}
	pair_poll(&p);
	for (int i = 0; i < NIC_CLAIMS; i++)
		CHECK(good(d[i]));
	CHECK(is_pattern(p.a.mem, NIC_CLAIMS * PIECE, 5));
	CHECK_EQ(counter(p.b.nic, "bytes_helped"), NIC_CLAIMS * PIECE / 2);
	CHECK_EQ(counter(p.b.nic, "bad_packets"), 0);
	CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
	CHECK(!done(post(0, NIC_CTL_RDMA_READ, 0, 0, PIECE)));
	pair_poll(&p);
	pair_close(&p);
}

/* A write that has to wait for one before it is not done yet: its doubt lasts. */
static void doubt_of_one_that_waits(void)
{
	struct nic_desc *d, *waits;

	BEGIN(32768, 65536);
	pattern(p.a.mem, BIG, 6);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	ab()->put.alone = 3;
	waits = post(1, NIC_CTL_RDMA_WRITE, 0, 0, 8);
	poll_a(10); /* less than makes impatient */
	CHECK(!done(d) && !done(waits));
	CHECK_EQ(ab()->put.alone, 3);
	pair_poll(&p);
	CHECK(good(d) && good(waits));
	CHECK_EQ(ab()->put.alone, 2);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	CHECK_EQ(ab()->put.alone, 1);
	CHECK(good(d));
	ab()->put.alone = 0;
	ab()->half.alone = 3;
	ab()->mutual = 3;
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	waits = post(1, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
	poll_a(10);
	CHECK(!done(d) && !done(waits));
	CHECK_EQ(ab()->half.alone, 3);
	CHECK_EQ(ab()->mutual, 2); /* d */
	pair_poll(&p);
	CHECK(good(d) && good(waits));
	CHECK_EQ(ab()->half.alone, 2);
	CHECK_EQ(ab()->mutual, 1);
	CHECK(is_pattern(p.b.mem, BIG, 6));
	pair_close(&p);
}

/* Packets of nothing until so few cells are free. */
static void fill_link(uint32_t left)
{
	struct nic_packet *cell;

	while ((cell = nic_link_reserve(ab(), left))) {
		nic_packet_set(cell, nic_packet_head(nic_packet_word(NIC_OP_RETURN, 0, 0), 0));
		cell->ret.n = 0;
		nic_link_publish(ab(), cell, 1);
	}
}

/* There are hardly any cells to ask in: a does it alone rather than wait until b looks. */
static void link_is_full(void)
{
	for (int kind = 0; kind < KINDS; kind++)
		for (uint32_t left = NIC_RING_RESERVE; left < NIC_RING_RESERVE + NIC_PUT_PARTS; left++) {
			BEGIN(0, UINT32_MAX);
			fill_link(left);
			CHECK(good(of_kind(kind, 0)));
			CHECK_EQ(counter(p.a.nic, "shared"), 0);
			CHECK_EQ(counter(p.a.nic, "link_full"), 0);
			pair_poll(&p);
			of_kind(kind, 1);
			CHECK_EQ(counter(p.a.nic, "shared"), 1);
			pair_poll(&p);
			CHECK(good(&p.a.desc[1]));
			CHECK_EQ(counter(p.b.nic, "bad_packets"), 0);
			pair_close(&p);
		}
}

/* There are no buffers to send a write in: the same, unless one before it is still on the link. */
static void no_buffers(void)
{
	struct nic_desc *d, *waits;
	void *all;

	BEGIN(32768, 65536);
	pattern(p.a.mem, 20000, 7);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 10000);
	all = end_take_all(&p.a);
	pattern(p.a.mem, 20000, 8);
	waits = post(1, NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	CHECK(!done(d) && !done(waits));
	pair_poll(&p);
	CHECK(good(d) && good(waits));
	CHECK_EQ(counter(p.a.nic, "bytes_write"), 20000);
	CHECK(is_pattern(p.b.mem, 20000, 8));
	CHECK(good(post(2, NIC_CTL_RDMA_WRITE, 0, 0, 20000)));
	ab()->brief_race_max[1] = NIC_RACE_ABOVE;
	ab()->brief_pace[1][7] = (struct nic_pace){ .cost = { 1u << 29, 0 }, .way = 1, .trial = true, .period = 32 };
	pair_poll(&p);
	CHECK(good(post(2, NIC_CTL_RDMA_WRITE, 0, 0, 10000)));
	CHECK(ab()->brief_pace[1][7].cost[1] && ab()->brief_pace[1][7].gone == 1); /* a trial ends so, too */
	ab()->brief_race_max[1] = 0;
	end_give_back(&p.a, all);
	CHECK(!done(post(3, NIC_CTL_RDMA_WRITE, 0, 0, 20000)));
	pair_poll(&p);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), 30000);
	pair_close(&p);
}

int main(void)
{
	kin_start();
	CASE(doubted_write);
	CASE(doubted_read);
	CASE(exchange_of_reads);
	CASE(exchange_of_writes);
	CASE(asked_by_the_peer);
	CASE(earlier_life_seen_late);
	CASE(earlier_life_seen_soon);
	CASE(passed_over_in_line);
	CASE(line_of_taken_back);
	CASE(doubt_of_one_that_waits);
	CASE(link_is_full);
	CASE(no_buffers);
	return check_done();
}
