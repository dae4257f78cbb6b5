/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA on which the NICs of both ends work (ctl/rdma_ask.c): streams, halves, short reads and writes in packets, of every size, many
 * at once, and in order.  A peer that is late or gone is in shared_late.c.
 */
#include "tests/unit/nicemu/shared.h"

static void every_size(uint16_t op)
{
	struct end *from = op == NIC_CTL_RDMA_READ ? &p.b : &p.a, *to = op == NIC_CTL_RDMA_READ ? &p.a : &p.b;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint32_t odd = 0; odd < 8000; odd += 1777) {
			uint32_t at = 4096 + odd, len = sizes[i];
			struct nic_desc *d;

			memset(to->mem, 0x55, PAIR_MEM);
			pattern(from->mem + 4096, len + 8000, i + odd);
			d = op == NIC_CTL_RDMA_READ ? post(0, op, 4096, at, len) : post(0, op, at, 4096, len);
			pair_poll(&p);
			CHECK(good(d));
			CHECK_EQ(d->length, len);
			CHECK(memcmp(to->mem + 4096, from->mem + at, len) == 0);
			CHECK_EQ(to->mem[4095], 0x55);
			CHECK_EQ(to->mem[4096 + len], 0x55);
		}
}

static void streams_of_every_size(void)
{
	BEGIN(UINT32_MAX, UINT32_MAX);
	every_size(NIC_CTL_RDMA_READ);
	CHECK(counter(p.b.nic, "bytes_read_buffer") > BIG);
	CHECK_EQ(counter(p.a.nic, "bytes_read"), 0);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	pair_close(&p);
}

static void halves_of_every_size(void)
{
	BEGIN(0, 0);
	every_size(NIC_CTL_RDMA_READ);
	every_size(NIC_CTL_RDMA_WRITE);
	CHECK(counter(p.a.nic, "bytes_own_half") > BIG);
	CHECK(counter(p.a.nic, "bytes_peer_half") > BIG / 2);
	CHECK_EQ(counter(p.a.nic, "bytes_peer_half"), counter(p.b.nic, "bytes_helped"));
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	pair_close(&p);
}

/* What is read out of a buffer for the first time, or more of it than before, takes page faults, and is not timed. */
static void timed_when_known(void)
{
	const struct nic_pace *pace;

	BEGIN(0, UINT32_MAX);
	ab()->race_max = 70000;
	pace = &ab()->pace[false][0];
	ab()->pace[false][0] = (struct nic_pace){ .cost = { 2, 0 }, .way = 1, .trial = true, .period = 32 };
	pair_poll(&p);
	for (int known = 0; known < 3; known++) {
		memset(p.a.nic->buffer_known, known == 1 ? 3 : known ? 4 : 0, sizeof(p.a.nic->buffer_known));
		post(0, NIC_CTL_RDMA_READ, 0, 0, 32768);
		pair_poll(&p);
		CHECK(good(&p.a.desc[0]));
		CHECK_EQ(pace->gone, known == 2);
		CHECK_EQ(pace->cost[1] != 0, known == 2);
	}
	pair_close(&p);
}

/* The first stream is tried behind many bytes that went otherwise, but for those that are streams anyway: what else they could be is tried from the first on. */
static void timed_later(void)
{
	BEGIN(0, UINT32_MAX);
	ab()->race_max = 70000;
	ab()->stream_later = 2 * 32768 + 17000;
	memset(p.a.nic->buffer_known, UINT8_MAX, sizeof(p.a.nic->buffer_known));
	ab()->pace[false][0] = (struct nic_pace){ .cost = { 2, 1 }, .way = 1, .period = 32 };
	pair_poll(&p);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(ab()->stream_later, i < 2 ? 2 * 32768 + 17000 - i * 32768 : i == 2 ? 17000 : 0);
		post(0, NIC_CTL_RDMA_READ, 0, 0, 32768);
		pair_poll(&p);
		CHECK(good(&p.a.desc[0]));
	}
	CHECK_EQ(counter(p.a.nic, "bytes_read"), 3 * 32768);
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), 2 * 32768);
	ab()->stream_later = BIG;
	ab()->stream_max = ab()->put_max = 30000;
	for (uint32_t write = 0; write < 2; write++)
		for (uint32_t longer = 0; longer < 2; longer++) {
			ab()->pace[write][0] = (struct nic_pace){ .cost = { 1, 2u << 29 }, .way = 0, .period = 32 };
			ab()->pace[write][0].way = (uint8_t)longer;
			post(0, write ? NIC_CTL_RDMA_WRITE : NIC_CTL_RDMA_READ, 0, 0, 30000 + longer);
			pair_poll(&p);
			CHECK(good(&p.a.desc[0]));
			CHECK(ab()->pace[write][0].cost[0] > 1 && ab()->pace[write][0].cost[1] == 2u << 29);
		}
	CHECK_EQ(counter(p.a.nic, "bytes_read"), 3 * 32768 + 60001);
	CHECK_EQ(counter(p.a.nic, "bytes_write"), 60001);
	pair_close(&p);
}

/* Reads one at a time are timed, both ways, and go the one that was faster; of several at once each goes as its length says. */
static void timed_reads(void)
{
	const struct nic_pace *pace;
	uint64_t half, buffer;

	BEGIN(0, 40000);
	ab()->race_max = 70000;
	pace = ab()->pace[false];
	pattern(p.b.mem, 70001, 3);
	pair_poll(&p);
	memset(p.a.nic->buffer_known, UINT8_MAX, sizeof(p.a.nic->buffer_known));
	for (int i = 0; i < 2 * NIC_PACE_FIRST_TRY; i++) {
		CHECK_EQ(pace[1].way, i >= NIC_PACE_FIRST_TRY);
		memset(p.a.mem, 0x55, 65536);
		CHECK(good((post(0, NIC_CTL_RDMA_READ, 0, 0, 65536), pair_poll(&p), &p.a.desc[0])));
		CHECK(is_pattern(p.a.mem, 65536, 3));
	}
	CHECK(pace[1].cost[0] && pace[1].cost[1]);
	CHECK(!pace[0].cost[0] && !pace[2].cost[0]);
	half = counter(p.a.nic, "bytes_own_half");
	buffer = counter(p.b.nic, "bytes_read_buffer");
	CHECK_EQ(half, NIC_PACE_FIRST_TRY * 65536 / 2);
	CHECK_EQ(buffer, NIC_PACE_FIRST_TRY * 65536);
	for (uint8_t way = 0; way < 2; way++) {
		ab()->pace[false][2] = (struct nic_pace){ .cost = { 2u << (29 * way), 2u << (29 * !way) }, .way = way, .period = 32 };
		post(0, NIC_CTL_RDMA_READ, 0, 0, 70000);
		pair_poll(&p);
		CHECK(good(&p.a.desc[0]));
	}
	CHECK(counter(p.a.nic, "bytes_own_half") > half);
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), buffer + 70000);
	post(0, NIC_CTL_RDMA_READ, 0, 0, 70001); /* too long */
	pair_poll(&p);
	CHECK(good(&p.a.desc[0]));
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), buffer + 70000);
	pair_close(&p);
}

/* The same of writes.  Buffers that come back lie on the link then: that is no reason not to time the next one. */
static void timed_writes(void)
{
	enum { LEN = 512 << 10, CLASS = 4 };
	const struct nic_pace *pace;

	BEGIN(0, 40000);
	ab()->race_max = LEN;
	pace = &ab()->pace[true][CLASS];
	pair_poll(&p);
	memset(p.a.nic->buffer_known, UINT8_MAX, sizeof(p.a.nic->buffer_known));
	for (int i = 0; i < 2 * NIC_PACE_FIRST_TRY; i++) {
		struct nic_desc *d;

		CHECK_EQ(pace->way, i >= NIC_PACE_FIRST_TRY);
		pattern(p.a.mem, LEN, i);
		d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, LEN);
		for (int left = LONG_AGO; !done(d) && left; left--) {
			nic_poll(p.a.nic);
			nic_poll(p.b.nic);
		}
		CHECK(good(d));
		for (uint32_t k = 0; k < 32; k += NIC_BUFFER_BATCH)
			nic_buffer_fetch(p.b.nic);
		p.b.nic->link[p.a.nic->me]->balance += p.b.nic->keeps + 1;
		nic_buffer_balance(p.b.nic, p.b.nic->link[p.a.nic->me]);
		CHECK(nic_link_any(ab()));
		CHECK(is_pattern(p.b.mem, LEN, i));
	}
	CHECK(pace->cost[0] && pace->cost[1] && pace->period);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), NIC_PACE_FIRST_TRY * LEN);
	CHECK(!ab()->pace[false][CLASS].cost[0]);
	pair_close(&p);
}

static void packets_of_every_size(void)
{
	BEGIN(UINT32_MAX, UINT32_MAX);
	every_size(NIC_CTL_RDMA_WRITE);
	CHECK(counter(p.a.nic, "bytes_write_buffer") > BIG);
	CHECK_EQ(counter(p.a.nic, "bytes_write"), 0);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), counter(p.b.nic, "bytes_helped"));
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	CHECK_EQ(p.a.nic->nshared, 0);
	pair_close(&p);
}

/* Beside the claim, in a reply, and too long for that; into one segment, and into two. */
static void shorts_of_every_size(void)
{
	static const uint32_t size[] = { 1, 2, 8, 55, 56, 57, 63, 64, 65, 300, 511, 512, 513 };

	BEGIN_SHORT();
	pattern(p.b.mem, 10000, 2);
	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		for (uint32_t odd = 0; odd < 4; odd++) {
			uint32_t len = size[i], cut = len / 3;
			struct nic_seg *more;
			struct nic_desc *d;

			memset(p.a.mem, 0x55, 10000);
			d = post(0, NIC_CTL_RDMA_READ, 1000 + odd, 300 * odd + i, len);
			CHECK_EQ(done(d), len > 512);
			pair_poll(&p);
			CHECK(good(d));
			CHECK_EQ(d->length, len);
			CHECK(memcmp(p.a.mem + 1000 + odd, p.b.mem + 300 * odd + i, len) == 0);
			CHECK(p.a.mem[999 + odd] == 0x55 && p.a.mem[1000 + odd + len] == 0x55);
			d = rdma(1, NIC_CTL_RDMA_READ, 3000, 300 * odd + i, len);
			d->nseg = 3;
			more = (struct nic_seg *)(void *)&p.a.desc[2]; /* right behind it */
			*more = d->seg[1];
			d->seg[1].length = cut;
			more->addr += 2000;
			more->length = len - cut;
			send_desc(&p.a, d);
			pair_poll(&p);
			CHECK(good(d));
			CHECK(memcmp(p.a.mem + 3000, p.b.mem + 300 * odd + i, cut) == 0 && p.a.mem[3000 + cut] == 0x55);
			CHECK(memcmp(p.a.mem + 5000, p.b.mem + 300 * odd + i + cut, len - cut) == 0 && p.a.mem[5000 + len - cut] == 0x55);
		}
	CHECK_EQ(counter(p.a.nic, "shared"), 2 * 4 * (sizeof(size) / sizeof(size[0]) - 1));
	CHECK_EQ(counter(p.a.nic, "bytes_read"), 2 * 4 * 513);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	CHECK(ab()->replies == 0 && p.a.nic->nshared == 0);
	pair_close(&p);
}

/* More at once than there are replies, and than there are claims. */
static void many_shorts(void)
{
	enum { N = 100 };

	BEGIN_SHORT();
	pattern(p.b.mem, N * 600, 4);
	for (int i = 0; i < N; i++)
		post(i, NIC_CTL_RDMA_READ, i * 600, i * 600, i % 2 ? 500 : 50);
	CHECK_EQ(ab()->replies, (1 << NIC_REPLIES) - 1);
	pair_poll(&p);
	for (int i = 0; i < N; i++) {
		CHECK(good(&p.a.desc[i]));
		CHECK(memcmp(p.a.mem + i * 600, p.b.mem + i * 600, i % 2 ? 500 : 50) == 0);
	}
	CHECK(ab()->replies == 0 && p.a.nic->nshared == 0);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	pair_close(&p);
}

/* More reads in a row than claims: the others wait for those before them, for which b is there, rather than go alone. */
static void more_than_claims(void)
{
	enum { N = NIC_CLAIMS + 32, STRIDE = 8192 };
	uint32_t len[] = { 40, 3000, 8192 };

	BEGIN(STRIDE, UINT32_MAX);
	ab()->get_max = 512;
	pattern(p.b.mem, N * STRIDE, 4);
	for (int i = 0; i < N; i++)
		post(i, NIC_CTL_RDMA_READ, i * STRIDE, i * STRIDE, len[i % 3]);
	CHECK_EQ(counter(p.a.nic, "shared"), NIC_CLAIMS);
	pair_poll(&p);
	for (int i = 0; i < N; i++) {
		CHECK(good(&p.a.desc[i]));
		CHECK(memcmp(p.a.mem + i * STRIDE, p.b.mem + i * STRIDE, len[i % 3]) == 0);
	}
	CHECK_EQ(counter(p.a.nic, "shared"), N);
	CHECK_EQ(counter(p.a.nic, "bytes_read"), 0);
	pair_close(&p);
}

/* What b cannot put anywhere it refuses: a does it alone. */
static void short_of_no_place(void)
{
	struct nic_desc *d;

	BEGIN_SHORT();
	ab()->get_max = 2 * NIC_REPLY_MAX;
	pattern(p.b.mem, 2 * NIC_REPLY_MAX, 4);
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, NIC_REPLY_MAX + 1);
	CHECK(!done(d));
	pair_poll(&p);
	CHECK(good(d));
	CHECK(is_pattern(p.a.mem, NIC_REPLY_MAX + 1, 4));
	CHECK_EQ(counter(p.b.nic, "bytes_read_short"), 0);
	CHECK_EQ(counter(p.a.nic, "bytes_read"), NIC_REPLY_MAX + 1);
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, 400);
	CHECK(!done(d));
	ab()->tx[(ab()->tx_pos - 1) & (NIC_RING_CELLS - 1)].ask.peer = NIC_REPLIES; /* a place that is none */
	pair_poll(&p);
	CHECK(good(d));
	CHECK_EQ(counter(p.b.nic, "bytes_read_short"), 0);
	CHECK_EQ(counter(p.a.nic, "bytes_read"), NIC_REPLY_MAX + 1 + 400);
	pair_close(&p);
}

/* More than the ring, the claims and the link hold; both ways mixed; b looks now and then. */
static void many_under_way(void)
{
	uint32_t len[300], at = 0;
	int n = 0, left = LONG_AGO;

	BEGIN(6000, 10000);
	pattern(p.b.mem, PAIR_MEM, 7);
	for (; n < 300; n++) {
		len[n] = n % 3 ? 500 + n * 11 : 12288;
		if (at + len[n] > PAIR_MEM)
			break;
		post(n, NIC_CTL_RDMA_READ, at, at, len[n]);
		at += len[n];
		if (n % 7 == 0)
			nic_poll(p.b.nic);
	}
	while (n && !done(&p.a.desc[n - 1]) && left--) {
		nic_poll(p.a.nic);
		if (left % 5 == 0)
			nic_poll(p.b.nic);
	}
	for (int i = 0; i < n; i++)
		CHECK(good(&p.a.desc[i]));
	CHECK(memcmp(p.a.mem, p.b.mem, at) == 0);
	CHECK(counter(p.a.nic, "bytes_own_half") > 0);
	CHECK(counter(p.b.nic, "bytes_read_buffer") > 0);
	CHECK_EQ(p.a.nic->nshared, 0);
	pair_poll(&p);
	CHECK_EQ(p.b.nic->nshared, 0);
	pair_close(&p);
}

/* After 2^32 claims their ids begin anew: with none under way just then, and with as many as there may be. */
static void ids_wrap(void)
{
	enum { POSTS = 2 * NIC_CLAIMS, STRIDE = 8192 };
	_Static_assert(POSTS * STRIDE <= PAIR_MEM, "each has its place");

	for (uint32_t before = 0; before <= NIC_CLAIMS + 1; before++)
		for (int together = 0; together < 2; together++) {
			BEGIN(6000, 8000);
			ab()->ask_head = ab()->ask_tail = -before;
			pattern(p.b.mem, POSTS * STRIDE, before);
			for (int i = 0; i < POSTS; i++) {
				uint32_t len = i % 3 == 0 ? STRIDE : i % 3 == 1 ? 2000 : 100;

				ab()->get_max = 512;
				post(i, NIC_CTL_RDMA_READ, (uint32_t)i * STRIDE, (uint32_t)i * STRIDE, len);
				poll_a(i % 2); /* less than makes impatient */
				if (!together || i % NIC_CLAIMS == NIC_CLAIMS - 1)
					pair_poll(&p);
			}
			pair_poll(&p);
			for (int i = 0; i < POSTS; i++) {
				CHECK(good(&p.a.desc[i]));
				CHECK(memcmp(p.a.mem + i * STRIDE, p.b.mem + i * STRIDE, p.a.desc[i].length) == 0);
			}
			CHECK_EQ(counter(p.a.nic, "shared"), POSTS);
			CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
			CHECK_EQ(p.a.nic->nshared, 0);
			CHECK_EQ(p.b.nic->nshared, 0);
			pair_close(&p);
		}
}

/* What the asking process's own memory may be is judged before anybody is asked. */
static void local_protection(void)
{
	struct nic_desc *d;

	BEGIN(UINT32_MAX, 8192);
	d = rdma(0, NIC_CTL_RDMA_READ, PAIR_MEM - 4096, 0, BIG);
	send_desc(&p.a, d);
	CHECK(done(d) && (status_of(d) & NIC_ST_PROTECTION));
	CHECK_EQ(counter(p.a.nic, "shared"), 0);
	pair_close(&p);
}

/* A send, a read and immediate data stay behind a write that the peer is helping with. */
static void send_waits_for(bool packets, uint32_t len)
{
	struct nic_desc *w, *s, *r, *m;

	BEGIN(packets ? UINT32_MAX : 0, 8192);
	for (int i = 0; i < 2; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + BIG + 4096 * i, 100));
	pattern(p.a.mem, len, 1);
	w = post(0, NIC_CTL_RDMA_WRITE, 0, 0, len);
	s = fill(&p.a, 1, NIC_CTL_SEND, p.a.mem, 8);
	send_desc(&p.a, s);
	m = rdma(2, NIC_CTL_RDMA_WRITE | NIC_CTL_IMMEDIATE, 0, 0, 64);
	send_desc(&p.a, m);
	r = post(3, NIC_CTL_RDMA_READ, BIG, 0, 4096);
	CHECK(!done(w) && !done(s) && !done(m) && !done(r));
	poll_a(3);
	/* Only the write has been executed. */
	CHECK_EQ(nic_vi(p.a.nic, p.a.vi)->tx_next - nic_vi(p.a.nic, p.a.vi)->tx_head, 1);
	for (int i = 0; i < 40 && !done(&p.b.desc[0]); i++) {
		nic_poll(p.b.nic);
		if (done(&p.b.desc[0]))
			CHECK(is_pattern(p.b.mem, len, 1));
		nic_poll(p.a.nic);
	}
	pair_poll(&p);
	CHECK(good(w) && good(s) && good(m) && good(r));
	CHECK(good(&p.b.desc[0]) && good(&p.b.desc[1]));
	CHECK(memcmp(p.a.mem + BIG, p.a.mem, 4096) == 0);
	pair_close(&p);
}

static void send_waits_for_write(void) { send_waits_for(false, BIG); }
static void send_waits_for_packets(void) { send_waits_for(true, 20000); }
static void send_waits_for_long_write(void) { send_waits_for(true, BIG); }

/* Writes to the same place end as they were posted, though b comes late. */
static void writes_in_order(void)
{
	for (int late = 0; late < 2; late++) {
		BEGIN(0, 8192);
		for (int i = 0; i < 6; i++)
			pattern(p.a.mem + i * 65536, 65536, i);
		for (int i = 0; i < 6; i++)
			post(i, NIC_CTL_RDMA_WRITE, i * 65536, i % 2 ? 8192 : 0, i == 4 ? 60000 : 65536);
		if (late)
			poll_a(LONG_AGO);
		pair_poll(&p);
		for (int i = 0; i < 6; i++)
			CHECK(good(&p.a.desc[i]));
		CHECK(memcmp(p.b.mem, p.a.mem + 4 * 65536, 8192) == 0);
		CHECK(is_pattern(p.b.mem + 8192, 65536, 5));
		pair_close(&p);
	}
}

/* Of writes in a row no more leave than stay near, until some are known to be in place. */
static void writes_on_their_way(void)
{
	enum { N = 14, MOST = 1 << 20, LEN = 70000 };
	uint64_t before;

	BEGIN(UINT32_MAX, UINT32_MAX);
	pattern(p.a.mem, PAIR_MEM, 6);
	for (int i = 0; i < N; i++)
		post(i, NIC_CTL_RDMA_WRITE, i * LEN, i * LEN, LEN);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), N * LEN);
	for (int i = 0; i < N; i++)
		post(N + i, NIC_CTL_RDMA_WRITE, i * LEN, i * LEN, LEN);
	before = counter(p.a.nic, "bytes_write_buffer");
	CHECK(before >= MOST && before < MOST + LEN);
	CHECK_EQ(ab()->away, before);
	pair_poll(&p);
	for (int i = 0; i < 2 * N; i++)
		CHECK(good(&p.a.desc[i]));
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), 2 * N * LEN);
	CHECK(memcmp(p.a.mem, p.b.mem, N * LEN) == 0);
	CHECK_EQ(ab()->away + ab()->alone + ab()->in_the_way, 0);
	pair_close(&p);
}

/* A write behind one of which parts have still to leave, to the same place. */
static void writes_behind_a_long_one(void)
{
	for (int late = 0; late < 2; late++) {
		BEGIN(UINT32_MAX, UINT32_MAX);
		memset(p.a.mem, 1, BIG);
		memset(p.a.mem + BIG, 2, 8192);
		post(0, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
		post(1, NIC_CTL_RDMA_WRITE, BIG, BIG - 8192, 8192);
		post(2, NIC_CTL_RDMA_WRITE, BIG, 0, 8);
		if (late)
			poll_a(LONG_AGO);
		pair_poll(&p);
		for (int i = 0; i < 3; i++)
			CHECK(good(&p.a.desc[i]));
		CHECK(p.b.mem[7] == 2 && p.b.mem[8] == 1 && p.b.mem[BIG - 8193] == 1);
		CHECK(p.b.mem[BIG - 8192] == 2 && p.b.mem[BIG - 1] == 2);
		pair_close(&p);
	}
}

/* The same of writes that go all ways, more than claims hold, in places that overlap; b looks always, seldom, or late. */
static void ways_in_order(void)
{
	enum { N = 100, ROOM = 420000 };
	static uint8_t wanted[ROOM];
	uint32_t random = 1;

	for (int often = 0; often < 12; often++) {
		BEGIN(UINT32_MAX, 40000);
		ab()->put_max = often % 4 < 2 ? 32768 : NIC_PUT_MAX;
		ab()->put_busy = often % 4 < 2 ? 32768 : often % 4 == 2 ? 20000 : NIC_PUT_MAX;
		memset(wanted, 0, ROOM);
		memset(p.b.mem, 0, ROOM);
		pattern(p.a.mem, PAIR_MEM, often);
		for (int i = 0; i < N; i++) {
			uint32_t len, at, from;

			random = random * 1103515245 + 12345;
			len = 1 + (random >> 8) % (i % 3 == 0 ? i % 2 ? 400000 : 60000 : i % 3 == 1 ? 12000 : 64);
			at = (random >> 16) % (ROOM - len);
			from = i * 2048;
			post(i, NIC_CTL_RDMA_WRITE, from, at, len);
			memcpy(wanted + at, p.a.mem + from, len);
			if (often && i % often == 0)
				nic_poll(p.b.nic);
			if (often % 3 == 2)
				poll_a(often * 20);
		}
		if (often % 2)
			poll_a(LONG_AGO);
		pair_poll(&p);
		for (int i = 0; i < N; i++)
			CHECK(good(&p.a.desc[i]));
		CHECK(memcmp(p.b.mem, wanted, ROOM) == 0);
		CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
		CHECK_EQ(ab()->away + ab()->alone + ab()->in_the_way, 0);
		pair_close(&p);
	}
}

/* A fence waits for the reads before it; without one a send does not. */
static void queue_fence(void)
{
	struct nic_desc *fenced;

	BEGIN(UINT32_MAX, UINT32_MAX);
	for (int i = 0; i < 2; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + BIG, 100));
	post(0, NIC_CTL_RDMA_READ, 0, 0, 65536);
	send_desc(&p.a, fill(&p.a, 1, NIC_CTL_SEND, p.a.mem, 8));
	fenced = fill(&p.a, 2, NIC_CTL_SEND | NIC_CTL_QFENCE, p.a.mem, 8);
	send_desc(&p.a, fenced);
	nic_poll(p.b.nic);
	CHECK(done(&p.b.desc[0]));
	CHECK(!done(&p.b.desc[1]));
	pair_poll(&p);
	CHECK(good(fenced) && done(&p.b.desc[1]));
	pair_close(&p);
}

int main(void)
{
	CASE(streams_of_every_size);
	CASE(halves_of_every_size);
	CASE(timed_reads);
	CASE(timed_when_known);
	CASE(timed_later);
	CASE(shorts_of_every_size);
	CASE(many_shorts);
	CASE(short_of_no_place);
	CASE(many_under_way);
	CASE(ids_wrap);
	CASE(more_than_claims);
	CASE(timed_writes);
	CASE(packets_of_every_size);
	CASE(local_protection);
	CASE(send_waits_for_write);
	CASE(send_waits_for_packets);
	CASE(send_waits_for_long_write);
	CASE(writes_in_order);
	CASE(writes_on_their_way);
	CASE(writes_behind_a_long_one);
	CASE(ways_in_order);
	CASE(queue_fence);
	return check_done();
}
