/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetches (ctl/rdma_fetch.c): what they bring, when they are refused, what they must not pass; and when things go wrong: a peer that does not look, looks
 * too late, says what is not true, or takes its memory or itself away.
 */
#include "nicemu/ctl/rdma.h"
#include "tests/unit/nicemu/shared.h"

static int fetch_by(uint32_t vi, uint32_t local, uint32_t remote, uint32_t len)
{
	struct nic_fetch f = { p.a.mem + local, (uintptr_t)p.b.mem + remote, p.b.handle, len };

	return nic_rdma_fetch(p.a.nic, vi, &f);
}

static int fetch(uint32_t local, uint32_t remote, uint32_t len)
{
	return fetch_by(p.a.vi, local, remote, len);
}

static uint32_t fetched(void)
{
	return nic_rdma_fetched(p.a.nic, p.a.vi, NULL);
}

static bool is_same(uint32_t local, uint32_t remote, uint32_t len)
{
	return memcmp(p.a.mem + local, p.b.mem + remote, len) == 0;
}

static void nothing_asked(void)
{
	CHECK_EQ(p.a.nic->nshared, 0);
	CHECK(nic_vi_tx_empty(nic_vi(p.a.nic, p.a.vi)));
	CHECK_EQ(nic_vi(p.a.nic, p.a.vi)->reads, 0);
	if (ab()) {
		CHECK_EQ(ab()->alone, 0);
		CHECK_EQ(ab()->replies, 0);
		CHECK_EQ(ab()->ask_tail - ab()->ask_head, 0);
	}
}

static void nothing_left(void)
{
	nothing_asked();
	CHECK_EQ(p.b.nic->nshared, 0);
}

/* Short ones as well as streams. */
#define BEGIN_FETCHES()                                \
	do {                                           \
		BEGIN(NIC_FETCH_MAX, UINT32_MAX);      \
		ab()->get_max = 512;                   \
		pattern(p.b.mem, PAIR_MEM, 3);         \
	} while (0)

static struct nic_claim *claim_now(void)
{
	return &p.b.nic->link[p.a.nic->me]->asking->claim[ab()->ask_head % NIC_CLAIMS];
}

/* ---- what they bring --------------------------------------------------------------------------------------------------------------- */

static void reads_of_every_size(void)
{
	static const uint32_t len[] = { 1, 8, 55, 56, 57, 512, 400, 300, 200, 513, 2048, 2049, 4096, 8192 };
	enum { N = sizeof(len) / sizeof(len[0]) };
	uint64_t bytes = 0;

	BEGIN_FETCHES();
	for (unsigned round = 0; round < 8; round++) { /* the claims go round */
		memset(p.a.mem, 0, N * 10000);
		for (unsigned i = 0; i < N; i++) {
			CHECK_EQ(fetch(10000 * i + 3, 10000 * i + 5, len[i]), NIC_OK);
			bytes += len[i];
		}
		CHECK_EQ(fetched(), round * N);
		nic_poll(p.b.nic);
		CHECK_EQ(fetched(), round * N); /* a has not looked */
		CHECK_EQ(p.a.mem[3], 0);
		pair_poll(&p);
		CHECK_EQ(fetched(), (round + 1) * N);
		nothing_left();
		for (unsigned i = 0; i < N; i++) {
			CHECK(is_same(10000 * i + 3, 10000 * i + 5, len[i]));
			CHECK(p.a.mem[10000 * i + 2] == 0 && p.a.mem[10000 * i + 3 + len[i]] == 0);
		}
	}
	CHECK_EQ(counter(p.a.nic, "rdma_fetches"), 8 * N);
	CHECK_EQ(counter(p.b.nic, "bytes_read_short") + counter(p.b.nic, "bytes_read_buffer"), bytes);
	CHECK_EQ(counter(p.b.nic, "bytes_read_short"), 8 * (1 + 8 + 55 + 56 + 57 + 512 + 400)); /* those that fit beside their claims, and three others */
	CHECK_EQ(counter(p.a.nic, "bytes_read"), 0);
	CHECK_EQ(counter(p.a.nic, "send_descriptors"), 0);
	CHECK(!nic_cq_any(&p.a.send_cq));
	pair_close(&p);
}

static bool refused(uint32_t len)
{
	return fetch(0, 0, len) == NIC_NOT_DONE && !p.a.nic->nshared;
}

static void refused_reads(void)
{
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_WRITE };
	struct nic_fetch f, bad;

	BEGIN_FETCHES();
	pair_poll(&p);
	CHECK(refused(0));
	CHECK(refused(NIC_FETCH_MAX + 1));
	CHECK(refused(NIC_VALUE_ONE + 1)); /* it is the only one */
	f = (struct nic_fetch){ p.a.mem, (uintptr_t)p.b.mem, p.b.handle, 8 };
	bad = f, bad.remote_handle++;
	CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &bad), NIC_NOT_DONE);
	bad = f, bad.remote += PAIR_MEM - 7;
	CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &bad), NIC_NOT_DONE);
	bad = f, bad.to = NULL;
	CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &bad), NIC_NOT_DONE);
	attr.ptag = p.b.ptag;
	bad = f;
	CHECK_EQ(nic_mem_register(p.b.nic, f.remote, 4096, &attr, &bad.remote_handle), NIC_OK); /* no right to read */
	CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &bad), NIC_NOT_DONE);
	refused_by_value(refused, &ab()->get);
	ab()->get.alone = 1; /* of short ones, */
	CHECK(refused(512));
	CHECK_EQ(fetch(0, 0, 513), NIC_OK); /* not of a stream, whose descriptor would not ask that either */
	pair_poll(&p);
	ab()->get.alone = 0;
	ab()->stream_max = 100;
	CHECK(refused(101)); /* it is the only one */
	CHECK_EQ(fetch(0, 0, 8), NIC_OK);
	CHECK_EQ(fetch(8, 8, 101), NIC_OK); /* in a row */
	ab()->stream_busy = 600;
	CHECK_EQ(fetch(0, 0, 601), NIC_NOT_DONE);
	ab()->stream_busy = UINT32_MAX;
	CHECK_EQ(fetch(0, 0, NIC_FETCH_MAX + 1), NIC_NOT_DONE);
	pair_poll(&p);
	nothing_left();
	CHECK_EQ(fetched(), 3);
	CHECK_EQ(counter(p.a.nic, "protection_errors"), 0);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(refused(8));
	pair_close(&p);
	pair_open(&p, NIC_UNRELIABLE);
	ways(NIC_FETCH_MAX, UINT32_MAX);
	CHECK(refused(8));
	pair_close(&p);
}

/* Out of the card they would be plain copies. */
static void not_out_of_the_card(void)
{
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_READ };
	struct nic_fetch f = { .length = 8 };
	void *memory;

	BEGIN_FETCHES();
	f.to = p.a.mem;
	attr.ptag = p.b.ptag;
	REQUIRE(nic_mem_alloc(p.b.nic, 4096, &memory) == NIC_OK);
	f.remote = (uintptr_t)memory;
	CHECK_EQ(nic_mem_register(p.b.nic, f.remote, 4096, &attr, &f.remote_handle), NIC_OK);
	CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &f), NIC_NOT_DONE);
	pair_close(&p);
}

/* A single one goes so where that is the faster way, and is timed now and then; not out of a buffer that has not been read here before. */
static void timed_reads(void)
{
	struct nic_pace *pace;

	BEGIN_FETCHES();
	ab()->stream_max = 0;
	ab()->brief_race_max[0] = 512;
	pair_poll(&p);
	pace = &ab()->brief_pace[0][1];
	*pace = (struct nic_pace){ .way = 0 };
	CHECK(refused(100));
	*pace = (struct nic_pace){ .cost = { 1u << 29, 0 }, .way = 1, .trial = true, .period = 32 };
	CHECK_EQ(fetch(0, 0, 100), NIC_OK);
	CHECK(ab()->ask[ab()->ask_head % NIC_CLAIMS].began);
	pair_poll(&p);
	CHECK(pace->cost[1]);
	CHECK_EQ(pace->gone, 1);
	/* One that others follow says nothing: it is seen when those are through. */
	*pace = (struct nic_pace){ .cost = { 1u << 29, 1u << 28 }, .way = 1, .trial = true, .period = 32 };
	for (int i = 0; i < 4; i++)
		CHECK_EQ(fetch(0, 0, 100), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(pace->cost[1], 1u << 28);
	/* The one behind them goes as they do, whatever is faster for one. */
	pace->way = 0;
	CHECK_EQ(fetch(0, 0, 100), NIC_OK);
	CHECK_EQ(ab()->ask[ab()->ask_head % NIC_CLAIMS].began, 0);
	pair_poll(&p);
	CHECK(refused(100));
	ab()->brief_race_max[0] = NIC_RACE_ABOVE;
	for (int known = 0; known < 2; known++) {
		memset(p.a.nic->buffer_known, known ? UINT8_MAX : 0, sizeof(p.a.nic->buffer_known));
		ab()->brief_pace[0][5] = (struct nic_pace){ .cost = { 1u << 29, 0 }, .way = 1, .trial = true, .period = 32 };
		CHECK_EQ(fetch(0, 0, NIC_VALUE_ONE), NIC_OK);
		pair_poll(&p);
		CHECK_EQ(ab()->brief_pace[0][5].cost[1] != 0, known);
	}
	ab()->brief_pace[0][5] = (struct nic_pace){ .cost = { 1u << 29, 0 }, .way = 1, .trial = true, .period = 32 };
	CHECK_EQ(fetch(0, 0, NIC_VALUE_ONE), NIC_OK);
	poll_a(LONG_AGO);
	CHECK(is_same(0, 0, NIC_VALUE_ONE));
	CHECK(ab()->brief_pace[0][5].cost[1]); /* one that is taken back has taken so long, too */
	pair_poll(&p);
	nothing_left();
	pair_close(&p);
}

/* ---- order --------------------------------------------------------------------------------------------------------------------------- */

/* They see what was written before, however that goes; what may pass them does, and a fence does not. */
static void in_order(void)
{
	const struct nic_short brief = { .head = 1 };
	struct nic_desc *fenced, *write;

	BEGIN_FETCHES();
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem + 9000, 64));
	memset(p.a.mem, 7, 8);
	write = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 8);
	CHECK(!done(write));
	CHECK_EQ(fetch(100, 0, 8), NIC_NOT_DONE);
	pair_poll(&p);
	CHECK(good(write));
	CHECK_EQ(fetch(100, 0, 8), NIC_OK);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &brief), NIC_NOT_DONE); /* the queue is not empty */
	fenced = rdma(1, NIC_CTL_RDMA_WRITE | NIC_CTL_QFENCE, 200, 0, 8);
	memset(p.a.mem + 200, 9, 8);
	send_desc(&p.a, fenced);
	CHECK_EQ(fetch(300, 0, 8), NIC_NOT_DONE); /* it waits, and so does what comes behind it */
	poll_a(3);
	CHECK(!done(fenced) && !fetched());
	pair_poll(&p);
	CHECK(good(fenced));
	CHECK_EQ(fetched(), 1);
	CHECK_EQ(p.a.mem[100], 7);
	CHECK_EQ(p.b.mem[0], 9);
	nothing_left();
	pair_close(&p);
}

/* Beside reads by descriptor each is told of its own way, and in order. */
static void beside_descriptors(void)
{
	struct nic_desc *d[8];

	BEGIN_FETCHES();
	for (int round = 0; round < 20; round++) {
		memset(p.a.mem, 0, 16 * 4096);
		for (uint32_t i = 0; i < 8; i++) {
			CHECK_EQ(fetch(8192 * i, 8192 * i + 1, 1u + 500 * i), NIC_OK);
			d[i] = post((int)i, NIC_CTL_RDMA_READ, 8192 * i + 4096, 8192 * i + 4099, 4096 - 500 * i);
			CHECK(!done(d[i]));
		}
		pair_poll(&p);
		CHECK_EQ(fetched(), 8u * (unsigned)(round + 1));
		for (uint32_t i = 0; i < 8; i++)
			CHECK(good(d[i]) && is_same(8192 * i, 8192 * i + 1, 1u + 500 * i) && is_same(8192 * i + 4096, 8192 * i + 4099, 4096 - 500 * i));
	}
	nothing_left();
	pair_close(&p);
}

/* Those of two VIs to the same peer are counted apart. */
static void another_vi(void)
{
	uint32_t vi;

	BEGIN_FETCHES();
	vi = p.a.vi;
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	end_vi(&p.b, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	pair_poll(&p);
	for (uint32_t i = 0; i < 10; i++) {
		CHECK_EQ(fetch_by(vi, 1000 * i, 1000 * i, 8 + 50 * i), NIC_OK);
		if (i & 1)
			CHECK_EQ(fetch(1000 * i + 500, 1000 * i + 500, 8 + 50 * i), NIC_OK);
	}
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(nic_rdma_fetched(p.a.nic, vi, NULL), 10);
	CHECK_EQ(fetched(), 0);
	for (uint32_t i = 0; i < 10; i++)
		CHECK(is_same(1000 * i, 1000 * i, 8 + 50 * i));
	nothing_left();
	pair_close(&p);
}

/* As many as there are claims; then a few more whenever some have ended. */
static void as_many_as_there_are(void)
{
	uint32_t n = 0, most = PAIR_MEM / 64;

	BEGIN_FETCHES();
	while (n < most && fetch(64 * n, 64 * n, 1 + n % 64) == NIC_OK)
		n++;
	CHECK_EQ(n, (uint32_t)NIC_TXQ); /* and of claims */
	for (int looks = 0; n < 1000 && looks < LONG_AGO; looks++) {
		nic_poll(p.b.nic);
		nic_poll(p.a.nic);
		while (n < 1000 && fetch(64 * n, 64 * n, 1 + n % 64) == NIC_OK)
			n++;
	}
	pair_poll(&p);
	CHECK_EQ(n, 1000);
	CHECK_EQ(fetched(), n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(is_same(64 * i, 64 * i, 1 + i % 64));
	nothing_left();
	pair_close(&p);
}

/* Beside sends that wait to be acknowledged there may be no place in the queue; those that have one are not taken for such a send. */
static void beside_sends(void)
{
	uint32_t n = 0;

	pair_open(&p, NIC_RELIABLE_RECEPTION);
	ways(NIC_FETCH_MAX, UINT32_MAX);
	if (!ab()->cma) {
		pair_close(&p);
		SKIP("no cross-memory attach here");
	}
	ab()->get_max = 512;
	pattern(p.b.mem, PAIR_MEM, 3);
	for (int i = 0; i < NIC_TXQ; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + 500000 + 64 * i, 64));
	for (int i = 0; i < NIC_TXQ - 4; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem + 500000, 16));
	while (n < 10 && fetch(1000 * n, 1000 * n, 300 * n + 8) == NIC_OK)
		n++;
	CHECK_EQ(n, 4);
	pair_poll(&p);
	for (int i = 0; i < NIC_TXQ - 4; i++)
		CHECK(good(&p.a.desc[i]));
	CHECK_EQ(fetched(), 4);
	for (uint32_t i = 0; i < n; i++)
		CHECK(is_same(1000 * i, 1000 * i, 300 * i + 8));
	nothing_left();
	pair_close(&p);
}

/* ---- a peer that is late --------------------------------------------------------------------------------------------------------------- */

/* Nobody is there, or somebody who does some of them: a does the rest, and b finds nothing left to do. */
static void taken_back(void)
{
	for (int looks = 0; looks < 3; looks++)
		for (uint32_t n = 1; n <= 60; n += 19) {
			uint64_t theirs;

			BEGIN_FETCHES();
			for (uint32_t i = 0; i < n; i++)
				CHECK_EQ(fetch(1000 * i, 1000 * i, i % 3 ? 20 : 900), NIC_OK);
			for (int i = 0; i < looks; i++)
				nic_poll(p.b.nic);
			for (int i = 0; i < LONG_AGO && fetched() < n; i++)
				nic_poll(p.a.nic);
			CHECK_EQ(fetched(), n);
			nothing_asked();
			theirs = counter(p.b.nic, "bytes_read_short") + counter(p.b.nic, "bytes_read_buffer");
			CHECK_EQ(theirs != 0, looks != 0);
			CHECK_EQ(theirs + counter(p.a.nic, "bytes_read"), (n + 2) / 3 * 900 + (n - (n + 2) / 3) * 20);
			CHECK(counter(p.a.nic, "bytes_read") == 0 || counter(p.a.nic, "shared_taken_back"));
			for (uint32_t i = 0; i < n; i++)
				CHECK(is_same(1000 * i, 1000 * i, i % 3 ? 20 : 900));
			memset(p.a.mem, 0x33, 60000);
			pair_poll(&p);
			nothing_left();
			CHECK(is_filled(p.a.mem, 60000, 0x33));
			ab()->get.alone = 0;
			CHECK_EQ(fetch(0, 0, 8), NIC_OK);
			pair_poll(&p);
			CHECK_EQ(fetched(), n + 1);
			pair_close(&p);
		}
}

/* b is in the middle of one: it is waited for, though the others are taken back. */
static void begun_read(void)
{
	for (int stream = 0; stream < 2; stream++) {
		struct nic_claim *claim;

		BEGIN_FETCHES();
		CHECK_EQ(fetch(0, 0, stream ? 1000 : 8), NIC_OK);
		CHECK_EQ(fetch(2000, 2000, 8), NIC_OK);
		claim = claim_now();
		CHECK(nic_claim_take(claim, ab()->ask_head, 0));
		poll_a(LONG_AGO);
		CHECK_EQ(fetched(), 0);
		if (!stream) {
			memcpy(claim->data, p.b.mem, 8);
			nic_claim_tell(claim, ab()->ask_head, NIC_CLAIM_DONE);
			poll_a(LONG_AGO);
			CHECK_EQ(fetched(), 2);
			CHECK(is_same(0, 0, 8) && is_same(2000, 2000, 8));
			nothing_left();
		}
		pair_close(&p);
	}
}

/* So it is when it is not the oldest. */
static void begun_behind(void)
{
	struct nic_claim *second;

	BEGIN_FETCHES();
	CHECK_EQ(fetch(0, 0, 8), NIC_OK);
	CHECK_EQ(fetch(2000, 2000, 8), NIC_OK);
	second = claim_now() + 1;
	CHECK(nic_claim_take(second, ab()->ask_head + 1, 0));
	poll_a(LONG_AGO);
	CHECK_EQ(fetched(), 1);
	CHECK(is_same(0, 0, 8));
	CHECK_EQ(p.a.mem[2000], 0);
	memcpy(second->data, p.b.mem + 2000, 8);
	nic_claim_tell(second, ab()->ask_head, NIC_CLAIM_DONE);
	poll_a(2);
	CHECK_EQ(fetched(), 2);
	CHECK(is_same(2000, 2000, 8));
	pair_poll(&p);
	nothing_left();
	pair_close(&p);
}

/* ---- a peer that is not what it was ------------------------------------------------------------------------------------------------------ */

/* Its memory is its own again: nothing of it is read, and the connection is lost; one before it counts if that was seen first, and none behind it. */
static void memory_gone(void)
{
	for (int looks = 0; looks < 2; looks++)
		for (uint32_t len = 8; len <= 800; len *= 10) {
			struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_READ };
			uint32_t failed = 0;
			struct nic_fetch f;

			BEGIN_FETCHES();
			attr.ptag = p.b.ptag;
			f = (struct nic_fetch){ p.a.mem + 1000, (uintptr_t)p.b.mem, 0, len };
			CHECK_EQ(nic_mem_register(p.b.nic, f.remote, 4096, &attr, &f.remote_handle), NIC_OK);
			CHECK_EQ(fetch(0, 0, 8), NIC_OK);
			CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &f), NIC_OK);
			CHECK_EQ(fetch(2000, 2000, 8), NIC_OK);
			CHECK_EQ(nic_mem_deregister(p.b.nic, f.remote, f.remote_handle), NIC_OK);
			if (looks)
				pair_poll(&p);
			else
				poll_a(LONG_AGO);
			CHECK_EQ(fetched(), !(looks && len == 800));
			CHECK(!fetched() || is_same(0, 0, 8));
			CHECK_EQ(p.a.mem[1000], 0);
			CHECK_EQ(p.a.events[NIC_EV_RDMAR_PROT], 1);
			nic_rdma_fetched(p.a.nic, p.a.vi, &failed);
			CHECK((failed & NIC_ST_RDMA_PROT) || fetched() == 0); /* the other one was in its way */
			CHECK(failed);
			CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)), NIC_VI_ERROR);
			CHECK(refused(8));
			pair_poll(&p);
			nothing_left();
			pair_close(&p);
		}
}

/* One behind it may have come before: it does not count either, since who counts would take it for that one. */
static void later_one_is_there(void)
{
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_READ };
	struct nic_fetch f;

	BEGIN_FETCHES();
	attr.ptag = p.b.ptag;
	f = (struct nic_fetch){ p.a.mem + 1000, (uintptr_t)p.b.mem, 0, 8 };
	CHECK_EQ(nic_mem_register(p.b.nic, f.remote, 4096, &attr, &f.remote_handle), NIC_OK);
	CHECK_EQ(nic_rdma_fetch(p.a.nic, p.a.vi, &f), NIC_OK);
	CHECK_EQ(fetch(2000, 2000, 800), NIC_OK);
	CHECK_EQ(nic_mem_deregister(p.b.nic, f.remote, f.remote_handle), NIC_OK);
	nic_poll(p.b.nic);
	nic_poll(p.b.nic);
	poll_a(2);
	CHECK(is_same(2000, 2000, 800));
	CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)), NIC_VI_ERROR);
	CHECK_EQ(fetched(), 0);
	pair_poll(&p);
	nothing_left();
	pair_close(&p);
}

/* The VI is taken down, or the NIC closed, with some of them on their way: nothing is written afterwards, and none counts; the next connection begins anew. */
static void flushed(void)
{
	for (int looks = 0; looks < 2; looks++) {
		struct nic_vi_attr attr;

		BEGIN_FETCHES();
		CHECK_EQ(fetch(0, 0, 8), NIC_OK);
		pair_poll(&p);
		CHECK_EQ(fetched(), 1);
		for (uint32_t i = 0; i < 20; i++)
			CHECK_EQ(fetch(1000 * i, 1000 * i, i % 2 ? 8 : 900), NIC_OK);
		memset(p.a.mem, 0x33, 20000);
		for (int i = 0; i < looks; i++)
			nic_poll(p.b.nic);
		CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
		CHECK_EQ(fetched(), 1);
		pair_poll(&p);
		nothing_left();
		CHECK(is_filled(p.a.mem, 20000, 0x33));
		CHECK(!nic_cq_any(&p.a.send_cq));
		CHECK_EQ(nic_disconnect(p.b.nic, p.b.vi), NIC_OK);
		CHECK_EQ(pair_connect(&p), NIC_OK);
		CHECK_EQ(nic_peer_poll(p.a.nic, p.a.vi, &attr) == NIC_OK || nic_vi_state(nic_vi(p.a.nic, p.a.vi)) == NIC_VI_CONNECTED, 1);
		CHECK_EQ(fetched(), 0);
		CHECK_EQ(fetch(0, 0, 8), NIC_OK);
		pair_poll(&p);
		CHECK_EQ(fetched(), 1);
		pair_close(&p);
	}
	BEGIN_FETCHES();
	for (uint32_t i = 0; i < 20; i++)
		CHECK_EQ(fetch(1000 * i, 1000 * i, 8), NIC_OK);
	end_close(&p.b);
	for (int i = 0; i < LONG_AGO && p.a.nic->nshared; i++)
		nic_poll(p.a.nic);
	CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)), NIC_VI_ERROR);
	CHECK_EQ(p.a.nic->nshared, 0);
	end_close(&p.a);
}

/* Whatever b writes into the claim and the packets, a writes nothing beside what it asked for, and comes to an end. */
static void untrue(void)
{
	for (int lie = 0; lie < 7; lie++) {
		uint32_t len = lie < 3 ? 8 : 800;
		struct nic_packet *packet;
		uint64_t id;

		BEGIN_FETCHES();
		memset(p.a.mem, 0x33, 4096);
		CHECK_EQ(fetch(100, 0, len), NIC_OK);
		id = (uint64_t)ab()->ask_head << 32;
		packet = &p.b.nic->link[p.a.nic->me]->tx[p.b.nic->link[p.a.nic->me]->tx_pos & (NIC_RING_CELLS - 1)];
		switch (lie) {
		case 0:
			atomic_store(&claim_now()->word, id | NIC_CLAIM_DONE | NIC_CLAIM_REFUSED | 7); /* both */
			break;
		case 1:
			atomic_store(&claim_now()->word, UINT64_MAX);
			break;
		case 2:
			atomic_store(&claim_now()->word, id | NIC_CLAIM_CLOSED); /* not by me */
			break;
		case 3:
			nic_poll(p.b.nic);
			packet->len_flags = 801;
			break;
		case 4:
			nic_poll(p.b.nic);
			packet->buf.addr = 8; /* not the first part */
			break;
		case 5:
			nic_poll(p.b.nic);
			packet->buf.handle++; /* of a claim that is not there */
			break;
		case 6:
			atomic_store(&claim_now()->word, id | NIC_CLAIM_DONE); /* beside the claim, which it does not fit */
			break;
		}
		poll_a(LONG_AGO);
		CHECK(is_filled(p.a.mem, 100, 0x33) && is_filled(p.a.mem + 100 + len, 4096 - 100 - len, 0x33));
		CHECK_EQ(fetched(), lie < 3 || lie == 6);
		CHECK(lie != 6 || is_same(100, 0, len));
		CHECK_EQ(nic_vi_state(nic_vi(p.a.nic, p.a.vi)) == NIC_VI_ERROR, lie == 3 || lie == 4);
		CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
		nothing_left();
		pair_close(&p);
	}
}

int main(void)
{
	CASE(reads_of_every_size);
	CASE(refused_reads);
	CASE(not_out_of_the_card);
	CASE(timed_reads);
	CASE(in_order);
	CASE(beside_descriptors);
	CASE(another_vi);
	CASE(as_many_as_there_are);
	CASE(beside_sends);
	CASE(taken_back);
	CASE(begun_read);
	CASE(begun_behind);
	CASE(memory_gone);
	CASE(later_one_is_there);
	CASE(flushed);
	CASE(untrue);
	return check_done();
}
