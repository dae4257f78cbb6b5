/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posted writes (ctl/rdma_post.c): what they do, when they are refused, what must not pass them; and when things go wrong: a peer that does not look, looks
 * too late, says what is not true, or takes its memory or itself away (ctl/rdma_late.c).
 */
#include "nicemu/ctl/rdma.h"
#include "tests/unit/nicemu/shared.h"

static int put_by(uint32_t vi, const void *data, uint32_t remote, uint32_t len)
{
	struct nic_posted w = { data, (uintptr_t)p.b.mem + remote, p.b.handle, len };

	return nic_rdma_post(p.a.nic, vi, &w);
}

/* So many times that byte; they may be changed at once. */
static int put(uint8_t byte, uint32_t remote, uint32_t len)
{
	static uint8_t data[NIC_POSTED_MAX + 1];
	int err;

	memset(data, byte, len);
	err = put_by(p.a.vi, data, remote, len);
	memset(data, 0xEE, len);
	return err;
}

static void nothing_left(void)
{
	CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_OK);
	CHECK_EQ(p.a.nic->nposted + p.a.nic->nshared + p.b.nic->nshared, 0);
	CHECK(nic_vi_tx_empty(nic_vi(p.a.nic, p.a.vi)));
	CHECK_EQ(nic_vi(p.a.nic, p.a.vi)->writes, 0);
	if (ab()) {
		CHECK_EQ(ab()->away + ab()->alone + ab()->in_the_way, 0);
		CHECK(!ab()->posted && !ab()->late);
		CHECK_EQ(ab()->ask_tail - ab()->ask_head, 0);
	}
}

static struct nic_claim *claim_now(void)
{
	return &p.b.nic->link[p.a.nic->me]->asking->claim[ab()->ask_head % NIC_CLAIMS];
}

/* ---- what they do ------------------------------------------------------------------------------------------------------------------ */

static void writes_of_every_size(void)
{
	static const uint32_t len[] = { 1, 8, 24, 25, 48, 49, 2048, 2049, 4096, 8192 };
	enum { N = sizeof(len) / sizeof(len[0]) };
	uint64_t bytes = 0;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	for (unsigned round = 0; round < 3; round++) {
		int32_t before = ab()->balance;

		memset(p.b.mem, 0, N * 10000);
		for (unsigned i = 0; i < N; i++) {
			CHECK_EQ(put((uint8_t)(i + 1), 10000 * i + 3, len[i]), NIC_OK);
			bytes += len[i];
		}
		CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_NOT_DONE);
		CHECK_EQ(ab()->balance, before - 7); /* in buffers */
		CHECK_EQ(p.b.mem[3], 0);
		nic_poll(p.b.nic);
		CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_NOT_DONE); /* a has not looked */
		nic_poll(p.a.nic);
		nothing_left();
		for (unsigned i = 0; i < N; i++) {
			CHECK(is_filled(p.b.mem + 10000 * i + 3, len[i], (uint8_t)(i + 1)));
			CHECK(p.b.mem[10000 * i + 2] == 0 && p.b.mem[10000 * i + 3 + len[i]] == 0);
		}
		pair_poll(&p);
	}
	CHECK_EQ(counter(p.a.nic, "rdma_posted"), 3 * N);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), bytes);
	CHECK_EQ(counter(p.b.nic, "bytes_helped"), bytes);
	CHECK_EQ(counter(p.a.nic, "shared"), 3);
	CHECK_EQ(counter(p.a.nic, "send_descriptors"), 0);
	CHECK(!nic_cq_any(&p.a.send_cq));
	pair_close(&p);
}

static bool refused(uint32_t len)
{
	return put(7, 0, len) == NIC_NOT_DONE && !p.a.nic->nposted;
}

static void refused_writes(void)
{
	struct nic_posted w = { p.a.mem, (uintptr_t)p.b.mem, p.b.handle, 8 }, bad;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	pair_poll(&p);
	CHECK(refused(0));
	CHECK(refused(NIC_POSTED_MAX + 1));
	CHECK(refused(NIC_VALUE_ONE + 1)); /* it is the only one */
	w = (struct nic_posted){ p.a.mem, (uintptr_t)p.b.mem, p.b.handle, 8 };
	bad = w, bad.remote_handle++;
	CHECK_EQ(nic_rdma_post(p.a.nic, p.a.vi, &bad), NIC_NOT_DONE);
	bad = w, bad.remote += PAIR_MEM - 7;
	CHECK_EQ(nic_rdma_post(p.a.nic, p.a.vi, &bad), NIC_NOT_DONE);
	refused_by_value(refused, &ab()->put);
	ab()->put_max = 100;
	CHECK(refused(101));
	ab()->put_max = ab()->put_busy = NIC_POSTED_MAX;
	CHECK_EQ(put(1, 0, 8), NIC_OK);
	CHECK_EQ(put(1, 8, NIC_POSTED_MAX), NIC_OK); /* in a row */
	ab()->put_busy = 100;
	CHECK_EQ(put(1, 0, 101), NIC_NOT_DONE);
	pair_poll(&p);
	nothing_left();
	CHECK_EQ(counter(p.a.nic, "protection_errors"), 0);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(refused(8));
	pair_close(&p);
	pair_open(&p, NIC_UNRELIABLE);
	ways(NIC_POSTED_MAX, UINT32_MAX);
	CHECK(refused(8));
	pair_close(&p);
}

/* Into the card they would be plain copies. */
static void not_into_the_card(void)
{
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_WRITE };
	struct nic_posted w = { p.a.mem, 0, 0, 8 };
	void *memory;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	w.data = p.a.mem;
	attr.ptag = p.b.ptag;
	REQUIRE(nic_mem_alloc(p.b.nic, 4096, &memory) == NIC_OK);
	w.remote = (uintptr_t)memory;
	CHECK_EQ(nic_mem_register(p.b.nic, w.remote, 4096, &attr, &w.remote_handle), NIC_OK);
	CHECK_EQ(nic_rdma_post(p.a.nic, p.a.vi, &w), NIC_NOT_DONE);
	pair_close(&p);
}

/* A single one goes so where that is the faster way, and is timed now and then; not the first in a buffer that has no pages yet. */
static void timed_writes(void)
{
	struct nic_pace *pace;

	BEGIN(0, UINT32_MAX);
	ab()->brief_race_max[1] = 512;
	pair_poll(&p);
	pace = &ab()->brief_pace[1][1];
	*pace = (struct nic_pace){ .way = 0 };
	CHECK(refused(100));
	*pace = (struct nic_pace){ .cost = { 1u << 29, 0 }, .way = 1, .trial = true, .period = 32 };
	for (int i = 0; i < 300 && !pace->cost[1]; i++) {
		CHECK_EQ(put(2, 0, 100), NIC_OK);
		if (i == 0)
			CHECK_EQ(ab()->posted->began, 0);
		pair_poll(&p);
		if (i == 0)
			CHECK_EQ(pace->cost[1], 0);
	}
	CHECK(pace->cost[1]);
	*pace = (struct nic_pace){ .cost = { 1u << 29, 1u << 28 }, .way = 1, .trial = true, .period = 32 };
	CHECK_EQ(put(2, 0, 100), NIC_OK);
	ab()->put_busy = 100;
	for (int i = 0; i < 4; i++)
		CHECK_EQ(put(3, 0, 100), NIC_OK); /* many say nothing of one, */
	pair_poll(&p);
	CHECK_EQ(pace->cost[1], 1u << 28);
	pace->way = 0;
	CHECK_EQ(put(2, 0, 100), NIC_OK); /* nor does the one behind them, of which they let expect others: it goes so, whatever is faster for one */
	CHECK_EQ(ab()->posted->began, 0);
	pair_poll(&p);
	CHECK(refused(100));
	pace->way = 1;
	CHECK_EQ(put(2, 0, 100), NIC_OK);
	CHECK_EQ(put(2, 0, 100), NIC_OK); /* two do */
	pair_poll(&p);
	CHECK(pace->cost[1] < 1u << 28);
	CHECK_EQ(put(2, 0, 100), NIC_OK); /* the one behind them */
	pair_poll(&p);
	*pace = (struct nic_pace){ .cost = { 1u << 29, 0 }, .way = 1, .trial = true, .period = 32 };
	CHECK_EQ(put(2, 0, 100), NIC_OK);
	poll_a(LONG_AGO);
	CHECK(pace->cost[1]); /* one that is taken back has taken so long, too */
	pair_poll(&p);
	pair_close(&p);
}

/* ---- order --------------------------------------------------------------------------------------------------------------------------- */

static void nothing_passes(void)
{
	const struct nic_rdma now = { (uintptr_t)p.a.mem, (uintptr_t)p.b.mem, p.a.handle, p.b.handle, 8, NIC_CTL_RDMA_WRITE };
	const struct nic_short brief = { .head = 1 };
	struct nic_desc *message, *read;
	struct nic_rdma r = now;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	r = (struct nic_rdma){ (uintptr_t)p.a.mem, (uintptr_t)p.b.mem, p.a.handle, p.b.handle, 100000, NIC_CTL_RDMA_WRITE };
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem + 9000, 64));
	CHECK_EQ(put(1, 0, 8), NIC_OK);
	CHECK_EQ(nic_rdma_now(p.a.nic, p.a.vi, &r), NIC_NOT_DONE);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &brief), NIC_NOT_DONE);
	read = post(0, NIC_CTL_RDMA_READ, 100, 0, 8);
	CHECK_EQ(put(2, 0, 8), NIC_NOT_DONE); /* the read waits, and so do those behind it */
	message = fill(&p.a, 1, 0, p.a.mem + 200, 16);
	send_desc(&p.a, message);
	CHECK(!done(read) && !done(message));
	poll_a(3);
	CHECK(!done(read) && !done(message));
	pair_poll(&p);
	CHECK(good(read) && good(message) && done(&p.b.desc[0]));
	CHECK_EQ(p.a.mem[100], 1);
	nothing_left();
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &brief), asks_first() ? NIC_NOT_DONE : NIC_OK);
	pair_close(&p);
}

/* To the same place, with writes by descriptor between them, of each way: the last one stays. */
static void same_place(void)
{
	for (uint32_t len = 8; len <= 65536; len *= 8)
		for (int late = 0; late < 2; late++) {
			struct nic_desc *d;
			int err;

			BEGIN(4096, 32768);
			memset(p.a.mem, 9, len);
			CHECK_EQ(put(1, 0, 8), NIC_OK);
			d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, len);
			if (late)
				poll_a(LONG_AGO);
			err = put(2, 0, 8);
			if (err != NIC_OK) {
				pair_poll(&p);
				err = put(2, 0, 8);
			}
			pair_poll(&p);
			CHECK(good(d));
			if (err == NIC_OK)
				CHECK(p.b.mem[0] == 2 && p.b.mem[7] == 2);
			CHECK(len == 8 || (p.b.mem[8] == 9 && p.b.mem[len - 1] == 9));
			poll_a(LONG_AGO);
			nothing_left();
			pair_close(&p);
		}
}

/*
 * Behind a descriptor that is on its way they do not join those before it: who takes these back, or wakes late, would do them first.
 */
static void behind_a_descriptor(void)
{
	for (int late = 0; late < 2; late++) {
		struct nic_desc *d;

		BEGIN(NIC_POSTED_MAX, UINT32_MAX);
		memset(p.a.mem, 2, 8);
		CHECK_EQ(put(1, 0, 8), NIC_OK);
		d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 8);
		CHECK_EQ(ab()->ask_tail - ab()->ask_head, 2);
		CHECK_EQ(put(3, 0, 8), NIC_NOT_DONE);
		CHECK_EQ(put(3, 100, 8), NIC_NOT_DONE);
		if (late)
			poll_a(LONG_AGO);
		pair_poll(&p);
		CHECK(good(d));
		CHECK(is_filled(p.b.mem, 8, 2));
		nothing_left();
		pair_close(&p);
	}
}

/* Nor do they pass the parts of a long one that have still to leave. */
static void behind_a_long_one(void)
{
	struct nic_desc *d;

	BEGIN(UINT32_MAX, UINT32_MAX);
	memset(p.a.mem, 2, BIG);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
	CHECK(ab()->in_the_way && !done(d));
	CHECK_EQ(put(3, BIG - 8, 8), NIC_NOT_DONE);
	pair_poll(&p);
	CHECK(good(d));
	CHECK_EQ(put(3, BIG - 8, 8), NIC_OK);
	pair_poll(&p);
	CHECK(is_filled(p.b.mem, BIG - 8, 2) && is_filled(p.b.mem + BIG - 8, 8, 3));
	pair_close(&p);
}

/* Of another VI they are not. */
static void another_vi(void)
{
	uint32_t vi;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	vi = p.a.vi;
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	end_vi(&p.b, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(put(1, 0, 8), NIC_OK);
	CHECK_EQ(put_by(vi, p.a.mem, 8, 8), NIC_NOT_DONE);
	CHECK_EQ(put(1, 8, 8), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(put_by(vi, p.a.mem, 8, 8), NIC_OK);
	pair_poll(&p);
	nothing_left();
	pair_close(&p);
}

/* ---- how many -------------------------------------------------------------------------------------------------------------------------- */

static void as_many_as_there_are(void)
{
	uint32_t n = 0, before;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	while (n < 2 * NIC_POSTED && put((uint8_t)n, 8 * n, 8) == NIC_OK)
		n++;
	CHECK_EQ(n, NIC_POSTED);
	do { /* b has looked; a has not, and learns it when there is no room left */
		for (int i = 0; i < 10; i++)
			nic_poll(p.b.nic);
		for (before = n; n < 2 * NIC_CLAIM_PLACES && put((uint8_t)n, 8 * n, 8) == NIC_OK;)
			n++;
	} while (n != before);
	CHECK_EQ(n, NIC_CLAIM_PLACES); /* of one claim */
	CHECK_EQ(ab()->posted->parts, n);
	pair_poll(&p);
	nothing_left();
	for (uint32_t i = 0; i < n; i++)
		CHECK(is_filled(p.b.mem + 8 * i, 8, (uint8_t)i));
	CHECK_EQ(put(1, 0, 8), NIC_OK);
	CHECK_EQ(counter(p.a.nic, "shared"), 2);
	pair_poll(&p);
	pair_close(&p);
}

/* A full link takes none. */
static void no_room(void)
{
	uint32_t head;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	head = atomic_load(ab()->tx_head);
	atomic_store(ab()->tx_head, ab()->tx_pos - NIC_RING_CELLS);
	ab()->tx_limit = ab()->tx_pos;
	CHECK_EQ(put(1, 0, 8), NIC_NOT_DONE);
	nothing_left();
	atomic_store(ab()->tx_head, head);
	CHECK_EQ(put(1, 0, 8), NIC_OK);
	pair_poll(&p);
	CHECK(is_filled(p.b.mem, 8, 1));
	nothing_left();
	pair_close(&p);
}

/* ---- a peer that is late --------------------------------------------------------------------------------------------------------------- */

/* Numbers 0 to n - 1, of two lengths, each over a part of the one before. */
static void put_row(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		CHECK_EQ(put((uint8_t)(i + 1), 10 * i, i % 3 ? 20 : 1000), NIC_OK);
}

static bool is_row(uint32_t n)
{
	uint8_t is[16384];

	memset(is, 0x33, sizeof(is));
	for (uint32_t i = 0; i < n; i++)
		memset(is + 10 * i, (int)(i + 1), i % 3 ? 20 : 1000);
	return memcmp(is, p.b.mem, sizeof(is)) == 0;
}

/* Nobody is there, or somebody who does some of them: a does the rest, with the data that it had then, and b finds nothing left to do. */
static void taken_back(void)
{
	for (int looks = 0; looks < 3; looks++)
		for (uint32_t n = 1; n <= 100; n += 33) {
			uint64_t helped;

			BEGIN(NIC_POSTED_MAX, UINT32_MAX);
			for (int lap = 0; lap < 7; lap++) { /* the places in the ring go round */
				for (int i = 0; i < 90; i++)
					CHECK_EQ(put(1, 20000, 8), NIC_OK);
				pair_poll(&p);
			}
			memset(p.b.mem, 0x33, 16384);
			helped = counter(p.b.nic, "bytes_helped");
			put_row(n);
			for (int i = 0; i < looks; i++)
				nic_poll(p.b.nic);
			helped = counter(p.b.nic, "bytes_helped") - helped;
			CHECK_EQ(helped != 0, looks != 0);
			poll_a(LONG_AGO);
			nothing_left();
			CHECK(is_row(n));
			CHECK_EQ(helped + counter(p.a.nic, "bytes_write"), (n + 2) / 3 * 1000 + (n - (n + 2) / 3) * 20);
			memset(p.b.mem, 0x55, 16384);
			pair_poll(&p);
			CHECK(is_filled(p.b.mem, 16384, 0x55));
			CHECK_EQ(counter(p.a.nic, "shared_taken_back"), helped == 0 || counter(p.a.nic, "bytes_write") != 0);
			if (counter(p.a.nic, "shared_taken_back")) {
				CHECK(ab()->put.alone);
				CHECK_EQ(put(1, 0, 8), NIC_NOT_DONE); /* not again at once */
			}
			ab()->put.alone = 0;
			CHECK_EQ(put(1, 0, 8), NIC_OK);
			pair_poll(&p);
			nothing_left();
			pair_close(&p);
		}
}

/* A peer that is at work is there, though a learns of it when it posts, and not when it looks; and what is much is waited for longer. */
static void patience(void)
{
	int polls[2];

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	for (int round = 0; round < 400; round++) {
		while (put(1, 0, 8) == NIC_OK)
			;
		nic_poll(p.b.nic);
		while (put(1, 0, 8) == NIC_OK)
			;
		poll_a(2);
	}
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	CHECK(ab()->alone <= NIC_CLAIM_PLACES * 8u);
	pair_poll(&p);
	nothing_left();
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 60; k++)
			CHECK_EQ(put(1, 0, i ? NIC_VALUE_ONE : 8), NIC_OK);
		CHECK_EQ(ab()->alone, 60u * (i ? NIC_VALUE_ONE : 8));
		for (polls[i] = 0; p.a.nic->nposted && polls[i] < LONG_AGO; polls[i]++)
			nic_poll(p.a.nic);
		nothing_left();
		ab()->put.alone = 0;
		pair_poll(&p);
	}
	CHECK(polls[0] < 200 && polls[1] > 60 * NIC_VALUE_ONE / 1024 && polls[1] < LONG_AGO);
	pair_close(&p);
}

/* b is in the middle of one: it is waited for, and those behind it go on when it is in place. */
static void begun_write(void)
{
	struct nic_claim *claim;

	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	memset(p.b.mem, 0x33, 16384);
	put_row(6);
	claim = claim_now();
	CHECK(nic_claim_take_placing(claim, ab()->ask_head, 0));
	poll_a(LONG_AGO);
	CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_NOT_DONE);
	CHECK(!ab()->posted->closed); /* b is there */
	REQUIRE(nic_late_save(p.a.nic, ab()));
	nic_claim_close(claim);
	ab()->posted->closed = true;
	ab()->in_the_way++;
	poll_a(LONG_AGO);
	CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_NOT_DONE);
	CHECK_EQ(put(1, 0, 8), NIC_NOT_DONE); /* behind what a will do itself */
	CHECK(is_filled(p.b.mem, 16384, 0x33));
	nic_claim_placed(claim, ab()->ask_head, 0);
	poll_a(1);
	nothing_left();
	CHECK_EQ(p.b.mem[0], 0x33); /* it was this test that claimed it */
	CHECK(p.b.mem[10] == 2 && p.b.mem[30] == 4 && p.b.mem[50] == 6 && p.b.mem[1029] == 4);
	pair_poll(&p);
	pair_close(&p);
}

/* ---- a peer that is not what it was ------------------------------------------------------------------------------------------------------ */

/* Its memory is its own again: nothing is written there, and the connection is lost, with a reason. */
static void memory_gone(void)
{
	for (int looks = 0; looks < 2; looks++) {
		BEGIN(NIC_POSTED_MAX, UINT32_MAX);
		CHECK_EQ(put(1, 0, 100), NIC_OK);
		CHECK_EQ(put(1, 100, 8), NIC_OK);
		CHECK_EQ(nic_mem_deregister(p.b.nic, (uintptr_t)p.b.mem, p.b.handle), NIC_OK);
		if (looks)
			pair_poll(&p);
		else
			poll_a(LONG_AGO);
		CHECK(is_filled(p.b.mem, 108, 0));
		CHECK_EQ(p.a.events[NIC_EV_RDMAW_PROT], 1);
		CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)), NIC_VI_ERROR);
		CHECK(refused(8));
		nothing_left();
		pair_poll(&p);
		CHECK(is_filled(p.b.mem, 108, 0));
		pair_close(&p);
	}
}

/* What b passes over it closes the claim of, and gives the buffers to somebody else: a has no data left that it could write. */
static void passed_over(void)
{
	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	CHECK_EQ(put(1, 0, 100), NIC_OK);
	nic_claim_tell(claim_now(), ab()->ask_head, NIC_CLAIM_CLOSED);
	poll_a(LONG_AGO);
	CHECK(is_filled(p.b.mem, 100, 0));
	CHECK_EQ(p.a.events[NIC_EV_CONN_LOST], 1);
	CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)), NIC_VI_ERROR);
	nothing_left();
	pair_close(&p);
}

/* The VI is taken down, or the NIC closed, with some of them on their way. */
static void flushed(void)
{
	for (int saved = 0; saved < 2; saved++) {
		BEGIN(NIC_POSTED_MAX, UINT32_MAX);
		put_row(20);
		if (saved) {
			CHECK(nic_claim_take_placing(claim_now(), ab()->ask_head, 0));
			REQUIRE(nic_late_save(p.a.nic, ab()));
			nic_claim_close(claim_now());
			ab()->posted->closed = true;
			ab()->in_the_way++;
		}
		CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
		nothing_left();
		pair_poll(&p);
		CHECK(is_filled(p.b.mem, 1000, 0));
		CHECK(!nic_cq_any(&p.a.send_cq));
		pair_close(&p);
	}
	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	put_row(20);
	pair_close(&p);
	BEGIN(NIC_POSTED_MAX, UINT32_MAX);
	put_row(20);
	end_close(&p.b);
	for (int i = 0; i < LONG_AGO && p.a.nic->nposted; i++)
		nic_poll(p.a.nic);
	CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_OK);
	end_close(&p.a);
}

/* Whatever b writes into the claim and the packets, a comes to an end, and writes nothing that was not posted. */
static void untrue(void)
{
	for (int lie = 0; lie < 7; lie++) {
		struct nic_packet *packet;
		uint64_t id;

		BEGIN(NIC_POSTED_MAX, UINT32_MAX);
		memset(p.b.mem, 0x33, 16384);
		put_row(30);
		id = (uint64_t)ab()->ask_head << 32;
		packet = &ab()->tx[ab()->posted_at[3] & (NIC_RING_CELLS - 1)]; /* one in a buffer */
		switch (lie) {
		case 0:
			atomic_store(&claim_now()->word, id | 31u * (NIC_CLAIM_PLACED + 1u)); /* more than there are */
			break;
		case 1:
			atomic_store(&claim_now()->word, id | 20u * (NIC_CLAIM_PLACED + 1u));
			poll_a(1);
			CHECK_EQ(ab()->posted->placed, 20);
			atomic_store(&claim_now()->word, id); /* fewer than before */
			break;
		case 2:
			atomic_store(&claim_now()->word, id | 25); /* taken, and never put in place */
			break;
		case 3:
			packet->put.buffer = UINT32_MAX;
			break;
		case 4:
			packet->len_flags = NIC_POSTED_MAX + 1;
			break;
		case 5:
			packet->put.part = 4;
			break;
		case 6:
			packet->put.handle++;
			break;
		}
		poll_a(LONG_AGO);
		if (lie == 2) {
			CHECK_EQ(nic_rdma_posted(p.a.nic), NIC_NOT_DONE);
			CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
		}
		nothing_left();
		CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)) == NIC_VI_ERROR, lie > 2);
		if (lie == 1)
			CHECK(is_row(30));
		if (lie > 2)
			CHECK_EQ(p.b.mem[30 + 999], 0x33); /* the last byte of number 3 */
		pair_close(&p);
	}
}

int main(void)
{
	CASE(writes_of_every_size);
	CASE(refused_writes);
	CASE(not_into_the_card);
	CASE(timed_writes);
	CASE(nothing_passes);
	CASE(same_place);
	CASE(behind_a_descriptor);
	CASE(behind_a_long_one);
	CASE(another_vi);
	CASE(as_many_as_there_are);
	CASE(no_room);
	CASE(taken_back);
	CASE(patience);
	CASE(begun_write);
	CASE(memory_gone);
	CASE(passed_over);
	CASE(flushed);
	CASE(untrue);
	return check_done();
}
