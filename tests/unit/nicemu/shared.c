/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA on which the NICs of both ends work (ctl/rdma_ask.c): streams, halves and writes in packets, a peer that does not look, looks too late, or
 * dies with a claim in hand, and memory that goes while a transfer is under way.  a asks, b is asked.  And RDMA in the command, for
 * which nobody is asked.
 */
#include <pthread.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

enum { BIG = 512 << 10, PUT_MAX = 32 << 10, LONG_AGO = 2000 /* passes that no patience survives */ };

static struct pair p;

static struct nic_link *ab(void)
{
	return p.a.nic->link[p.b.nic->me];
}

/* Streams, and writes in packets, up to this many bytes, halves from that many, which are waited for. */
static void ways(uint32_t stream_max, uint32_t half_min)
{
	ab()->impatient = false;
	ab()->get_max = 0;
	ab()->stream_max = ab()->stream_busy = ab()->stream_mutual = stream_max;
	ab()->put_max = ab()->put_busy = stream_max < PUT_MAX ? stream_max : PUT_MAX;
	ab()->half_min = half_min;
}

static bool begin(uint32_t stream_max, uint32_t half_min)
{
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	ways(stream_max, half_min);
	if (ab()->cma)
		return true;
	pair_close(&p);
	return false;
}

#define BEGIN(stream, half)                                       \
	do {                                                      \
		if (!begin(stream, half))                         \
			SKIP("no cross-memory attach here");      \
	} while (0)

/* Short reads as well; nothing else is shared. */
#define BEGIN_SHORT()             \
	do {                      \
		BEGIN(0, UINT32_MAX); \
		ab()->get_max = 512;  \
	} while (0)

static struct nic_desc *rdma(int i, uint16_t op, uint32_t local, uint32_t remote, uint32_t len)
{
	struct nic_desc *d = fill(&p.a, i, op, p.a.mem + local, len);

	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem + remote, p.b.handle, 0 };
	return d;
}

static struct nic_desc *post(int i, uint16_t op, uint32_t local, uint32_t remote, uint32_t len)
{
	struct nic_desc *d = rdma(i, op, local, remote, len);

	send_desc(&p.a, d);
	return d;
}

static int done(const struct nic_desc *d)
{
	return (status_of(d) & NIC_ST_DONE) != 0;
}

static int good(const struct nic_desc *d)
{
	return done(d) && !(status_of(d) & NIC_ST_ERROR_MASK);
}

/* a alone runs. */
static void poll_a(int times)
{
	for (int i = 0; i < times; i++)
		nic_poll(p.a.nic);
}

static const uint32_t sizes[] = { 1, 100, 2048, 2049, 4096, 8192, 8193, 16384, 16385, 40000, 65536, 70001, 262144, BIG };

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

static void packets_of_every_size(void)
{
	BEGIN(UINT32_MAX, UINT32_MAX);
	every_size(NIC_CTL_RDMA_WRITE);
	CHECK(counter(p.a.nic, "bytes_write_buffer") > PUT_MAX);
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

/* In the daemon, where b's process is gone, what its NIC reads counts for nothing: no short read, and no part of a stream, is made of it. */
static void host_gone(void)
{
	for (int stream = 0; stream < 2; stream++) {
		struct nic_desc *d;

		BEGIN(stream ? 5000 : 0, UINT32_MAX);
		ab()->get_max = stream ? 0 : 512;
		pattern(p.b.mem, 500, 4);
		d = post(0, NIC_CTL_RDMA_READ, 0, 0, 500);
		CHECK(!done(d));
		p.b.nic->host_gone = true;
		pair_poll(&p);
		CHECK(done(d));
		CHECK(stream ? (status_of(d) & NIC_ST_RDMA_PROT) != 0 : good(d) && is_pattern(p.a.mem, 500, 4)); /* alone, which may fail, too */
		CHECK_EQ(counter(p.b.nic, "bytes_read_short") + counter(p.b.nic, "bytes_read_buffer"), 0);
		p.b.nic->host_gone = false;
		pair_close(&p);
	}
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
	enum { POSTS = 2 * NIC_CLAIMS, STRIDE = 12288 };

	for (uint32_t before = 0; before <= NIC_CLAIMS + 1; before++)
		for (int together = 0; together < 2; together++) {
			BEGIN(6000, 10000);
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

/* Nobody is there: a does it alone, soon, and does not ask again until b has looked. */
static void absent_peer(void)
{
	enum { READ_STREAM, READ_HALVES, READ_SHORT, READ_REPLY, WRITE_HALVES, WRITE_PACKETS, WRITE_PACKET, WAYS };

	for (int way = 0; way < WAYS; way++) {
		uint16_t op = way >= WRITE_HALVES ? NIC_CTL_RDMA_WRITE : NIC_CTL_RDMA_READ;
		struct end *from = way >= WRITE_HALVES ? &p.a : &p.b, *to = way >= WRITE_HALVES ? &p.b : &p.a;
		uint32_t len = way == WRITE_PACKETS ? 20000 : way == WRITE_PACKET || way == READ_SHORT ? 8 : way == READ_REPLY ? 400 : BIG;
		int polls = 0;
		struct nic_desc *d;
		uint64_t asked;

		BEGIN(way == READ_HALVES || way == WRITE_HALVES ? 0 : UINT32_MAX, 8192);
		ab()->get_max = way == READ_SHORT || way == READ_REPLY ? 512 : 0;
		pattern(from->mem, len, 3);
		d = post(0, op, 0, 0, len);
		CHECK(!done(d));
		for (; !done(d) && polls < LONG_AGO; polls++)
			nic_poll(p.a.nic);
		CHECK(good(d));
		CHECK(polls < 200);
		CHECK(is_pattern(to->mem, len, 3));
		CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1);
		asked = counter(p.a.nic, "shared");
		CHECK(good(post(1, op, 0, 0, len))); /* in the call */
		CHECK_EQ(counter(p.a.nic, "shared"), asked);
		memset(to->mem, 0x55, len);
		pair_poll(&p); /* b finds a request that has been taken back */
		CHECK_EQ(to->mem[0], 0x55);
		CHECK_EQ(to->mem[len - 1], 0x55);
		CHECK_EQ(counter(p.b.nic, "bytes_read_buffer") + counter(p.b.nic, "bytes_read_short"), 0);
		d = post(2, op, 0, 0, len);
		CHECK_EQ(counter(p.a.nic, "shared"), asked + 1);
		pair_poll(&p);
		CHECK(good(d));
		CHECK(is_pattern(to->mem, len, 3));
		pair_close(&p);
	}
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

/* b's half of a read that b has not begun when a is through with its own: in the call, and b finds nothing left to do. */
static void late_half(void)
{
	enum { LATE = 20 };

	BEGIN(0, 8192);
	ab()->impatient = true;
	pattern(p.b.mem, BIG, 3);
	CHECK(good(post(0, NIC_CTL_RDMA_READ, 0, 0, BIG)));
	CHECK(is_pattern(p.a.mem, BIG, 3));
	CHECK_EQ(counter(p.a.nic, "shared"), 1);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1);
	CHECK_EQ(counter(p.a.nic, "bytes_read"), BIG);
	CHECK_EQ(p.a.nic->nshared, 0);
	CHECK(good(post(1, NIC_CTL_RDMA_READ, 0, 0, BIG))); /* b has looked at nothing since */
	CHECK_EQ(counter(p.a.nic, "shared"), 1);
	memset(p.a.mem, 0x55, BIG);
	pair_poll(&p);
	for (int i = 0; i < BIG; i += 512)
		CHECK_EQ(p.a.mem[i], 0x55);
	CHECK_EQ(counter(p.b.nic, "bytes_helped"), 0);
	for (int i = 0; i < LATE; i++) { /* who has looked since is asked again: in vain it costs little */
		CHECK(good(post(2, NIC_CTL_RDMA_READ, 0, 0, BIG)));
		nic_poll(p.b.nic);
	}
	CHECK_EQ(counter(p.a.nic, "shared"), 1 + LATE);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1 + LATE);
	pair_close(&p);
}

/* b's half is not begun, but b is at work on the one before it: it is waited for. */
static void half_behind_a_begun_one(void)
{
	struct nic_desc *first, *second;
	struct nic_claim *claim;
	uint32_t id;

	BEGIN(0, 8192);
	pattern(p.b.mem, 2 * BIG, 8);
	ab()->impatient = false;
	first = post(0, NIC_CTL_RDMA_READ, BIG, BIG, BIG);
	CHECK(!done(first));
	id = ab()->ask[ab()->ask_head % NIC_CLAIMS].id;
	claim = &p.b.nic->link[p.a.nic->me]->asking->claim[id % NIC_CLAIMS];
	CHECK(nic_claim_take(claim, id, 0));
	ab()->impatient = true;
	second = post(1, NIC_CTL_RDMA_READ, 0, 0, BIG);
	CHECK_EQ(counter(p.a.nic, "shared"), 2);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	nic_claim_tell(claim, id, NIC_CLAIM_DONE);
	pair_poll(&p);
	CHECK(good(first) && good(second));
	CHECK(is_pattern(p.a.mem, BIG, 8));
	CHECK_EQ(counter(p.b.nic, "bytes_helped"), BIG / 2);
	/* That one is through with its work, and not seen at this one: this time there is no waiting. */
	pattern(p.b.mem, BIG, 9);
	CHECK(good(post(2, NIC_CTL_RDMA_READ, 0, 0, BIG)));
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1);
	CHECK(is_pattern(p.a.mem, BIG, 9));
	pair_poll(&p);
	pair_close(&p);
}

static _Atomic(struct nic_claim *) claimed;

/* b, quick to claim a half, and in no hurry with the copy. */
static void *quick_claim(void *claims)
{
	while (!atomic_load(&claimed))
		for (uint32_t i = 0; i < NIC_CLAIMS && !atomic_load(&claimed); i++) {
			struct nic_claim *claim = &((struct nic_claims *)claims)->claim[i];
			uint64_t word = nic_claim_look(claim);

			if (word && !(uint32_t)word && nic_claim_take(claim, (uint32_t)(word >> 32), 0))
				atomic_store(&claimed, claim);
		}
	return NULL;
}

/* A half that b has begun is b's, however long that takes. */
static void begun_half(void)
{
	struct nic_desc *d = NULL;
	pthread_t thread;

	BEGIN(0, 8192);
	ab()->impatient = true;
	pattern(p.b.mem, BIG, 6);
	memset(p.a.mem, 0x55, BIG);
	atomic_store(&claimed, NULL);
	pthread_create(&thread, NULL, quick_claim, p.b.nic->link[p.a.nic->me]->asking);
	for (double until = kin_now() + KIN_SECONDS; !atomic_load(&claimed) && kin_now() < until;) {
		nic_poll(p.b.nic); /* what it was asked before: this time it is there */
		d = post(0, NIC_CTL_RDMA_READ, 0, 0, BIG);
		while (!done(d) && !atomic_load(&claimed) && kin_now() < until)
			sched_yield(); /* it has the claim, and is about to say so */
		CHECK(done(d) != (atomic_load(&claimed) != NULL));
		memset(p.a.mem + BIG - 4096, 0x55, 4096);
	}
	CHECK(atomic_load(&claimed) && d);
	poll_a(LONG_AGO);
	CHECK(!done(d));
	CHECK_EQ(p.a.mem[BIG - 1], 0x55);
	nic_claim_tell(atomic_load(&claimed), nic_claim_look(atomic_load(&claimed)) >> 32, NIC_CLAIM_DONE);
	poll_a(2);
	CHECK(good(d));
	CHECK_EQ(p.a.mem[BIG - 1], 0x55); /* it was this test that claimed it */
	pthread_join(thread, NULL);
	pair_poll(&p);
	CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
	pair_close(&p);
}

/* A late half behind an older transfer that b has not looked at either: that one is still b's. */
static void late_half_behind_another(void)
{
	struct nic_desc *first, *second;

	BEGIN(4096, 8192);
	ab()->impatient = true;
	pattern(p.b.mem, 2 * BIG, 4);
	first = post(0, NIC_CTL_RDMA_READ, BIG, BIG, 4096);
	second = post(1, NIC_CTL_RDMA_READ, 0, 0, BIG);
	CHECK_EQ(counter(p.a.nic, "bytes_read"), BIG);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1);
	CHECK(!done(first) && !done(second)); /* descriptors complete in order */
	pair_poll(&p);
	CHECK(good(first) && good(second));
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer"), 4096);
	CHECK(memcmp(p.a.mem, p.b.mem, BIG + 4096) == 0);
	pair_close(&p);
}

/* b has put a part of a write in place, is in the middle of the next, and is not seen again when that is there: a does the rest. */
static void half_placed(void)
{
	enum { LEN = 32000, PART = 8192 };
	struct nic_claim *claim;
	struct nic_desc *d;
	uint32_t id;

	BEGIN(UINT32_MAX, UINT32_MAX);
	pattern(p.a.mem, LEN, 5);
	memset(p.b.mem, 0x33, LEN);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, LEN);
	id = ab()->ask[ab()->ask_head % NIC_CLAIMS].id;
	claim = &p.b.nic->link[p.a.nic->me]->asking->claim[id % NIC_CLAIMS];
	CHECK(nic_claim_take_placing(claim, id, 0));
	nic_claim_placed(claim);
	CHECK(!nic_claim_take_placing(claim, id, 0));
	CHECK(nic_claim_take_placing(claim, id, 1));
	poll_a(LONG_AGO);
	CHECK(!done(d)); /* claimed is claimed */
	nic_claim_close(claim); /* b was just in time for this part */
	ab()->ask[id % NIC_CLAIMS].closed = true;
	poll_a(LONG_AGO);
	CHECK(!done(d));
	nic_claim_placed(claim);
	poll_a(LONG_AGO);
	CHECK(good(d));
	CHECK_EQ(p.b.mem[0], 0x33); /* it was this test that claimed the two */
	CHECK_EQ(p.b.mem[2 * ab()->ask[id % NIC_CLAIMS].part - 1], 0x33);
	CHECK(memcmp(p.b.mem + 2 * PART, p.a.mem + 2 * PART, LEN - 2 * PART) == 0);
	memset(p.b.mem, 0x55, LEN);
	pair_poll(&p); /* the packets come late */
	CHECK_EQ(p.b.mem[0], 0x55);
	CHECK_EQ(p.b.mem[LEN - 1], 0x55);
	CHECK_EQ(p.a.nic->nshared, 0);
	pair_close(&p);
}

/* b sends a part of the stream and is not seen again: what it has not sent, a copies. */
static void half_hearted_peer(void)
{
	struct nic_desc *d;

	BEGIN(UINT32_MAX, UINT32_MAX);
	pattern(p.b.mem, BIG, 5);
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, BIG);
	nic_poll(p.b.nic);
	poll_a(LONG_AGO);
	CHECK(good(d));
	CHECK(is_pattern(p.a.mem, BIG, 5));
	CHECK(counter(p.b.nic, "bytes_read_buffer") > 0);
	CHECK_EQ(counter(p.b.nic, "bytes_read_buffer") + counter(p.a.nic, "bytes_read"), BIG);
	memset(p.a.mem, 0x55, BIG);
	pair_poll(&p);
	CHECK_EQ(p.a.mem[BIG - 1], 0x55);
	pair_close(&p);
}

/* The asking VI is taken down: its memory is its own from then on. */
static void flushed_with(bool stream, uint32_t len)
{
	struct nic_desc *d;

	BEGIN(stream ? UINT32_MAX : 0, 8192);
	ab()->get_max = 512;
	pattern(p.b.mem, BIG, 9);
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, len);
	CHECK(!done(d));
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(done(d) && (status_of(d) & NIC_ST_ERROR_MASK));
	memset(p.a.mem, 0x55, BIG); /* ours again */
	pair_poll(&p);
	for (int i = 0; i < BIG; i += 512)
		CHECK_EQ(p.a.mem[i], 0x55);
	CHECK_EQ(counter(p.b.nic, "bytes_read_short"), 0);
	CHECK_EQ(p.a.nic->nshared, 0);
	CHECK_EQ(p.b.nic->nshared, 0);
	pair_close(&p);
}

/* The same of a write: what has not been put in place by then never is. */
static void flushed_packets(void)
{
	struct nic_desc *d;

	BEGIN(UINT32_MAX, UINT32_MAX);
	memset(p.b.mem, 0x33, BIG);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	CHECK(!done(d));
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(done(d) && (status_of(d) & NIC_ST_ERROR_MASK));
	pair_poll(&p);
	CHECK_EQ(p.b.mem[0], 0x33);
	CHECK_EQ(p.b.mem[19999], 0x33);
	CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
	pair_close(&p);
}

static void flushed_stream(void) { flushed_with(true, BIG); }
static void flushed_halves(void) { flushed_with(false, BIG); }
static void flushed_short(void) { flushed_with(false, 400); }

static _Atomic int slow_done;

/* b, in the middle of the copy that it has claimed. */
static void *slow_copy(void *arg)
{
	struct nic_claim *claim = arg;

	usleep(50000);
	atomic_store(&slow_done, 1);
	nic_claim_tell(claim, nic_claim_look(claim) >> 32, NIC_CLAIM_DONE);
	return NULL;
}

/* A descriptor is not given back while somebody else is writing to its memory. */
static void flush_waits(uint32_t len)
{
	struct nic_claim *claim;
	struct nic_desc *d;
	pthread_t thread;

	BEGIN(0, 8192);
	ab()->get_max = 512;
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, len);
	claim = &p.b.nic->link[p.a.nic->me]->asking->claim[ab()->ask_head % NIC_CLAIMS];
	CHECK(nic_claim_take(claim, ab()->ask_head, 0));
	poll_a(LONG_AGO);
	CHECK(!done(d));
	atomic_store(&slow_done, 0);
	pthread_create(&thread, NULL, slow_copy, claim);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(atomic_load(&slow_done), 1);
	CHECK(done(d) && (status_of(d) & NIC_ST_ERROR_MASK));
	pthread_join(thread, NULL);
	pair_close(&p);
}

/* A peer that was stopped for so long that nobody waits for it any more comes back to a claim that is another's by now. */
static void told_too_late(void)
{
	struct nic_claim claim;

	nic_claim_open(&claim, 7);
	CHECK(nic_claim_take(&claim, 7, 0));
	nic_claim_open(&claim, 7 + NIC_CLAIMS);
	nic_claim_tell(&claim, 7, NIC_CLAIM_DONE);
	CHECK_EQ(nic_claim_look(&claim), (uint64_t)(7 + NIC_CLAIMS) << 32);
	CHECK(nic_claim_take(&claim, 7 + NIC_CLAIMS, 0));
	nic_claim_close(&claim);
	nic_claim_tell(&claim, 7 + NIC_CLAIMS, NIC_CLAIM_DONE);
	CHECK(nic_claim_look(&claim) & NIC_CLAIM_DONE);
}

static void flush_waits_for_a_claim(void) { flush_waits(BIG); }
static void flush_waits_for_a_short(void) { flush_waits(400); }

/* The target's region goes before its NIC looks: an error as if it had never been. */
static void gone_with(uint16_t op, bool stream, uint32_t len)
{
	struct nic_desc *d;

	BEGIN(stream ? UINT32_MAX : 0, 8192);
	ab()->get_max = 512;
	memset(p.b.mem, 0x33, BIG);
	memset(p.a.mem, 0x44, BIG);
	d = post(0, op, 0, 0, len);
	CHECK(!done(d));
	CHECK_EQ(nic_mem_deregister(p.b.nic, (uintptr_t)p.b.mem, p.b.handle), NIC_OK);
	pair_poll(&p);
	CHECK(done(d) && (status_of(d) & NIC_ST_RDMA_PROT));
	if (op == NIC_CTL_RDMA_WRITE) /* the first half was there in time */
		CHECK_EQ(p.b.mem[len - 1], 0x33);
	CHECK_EQ(kin_state(&p.a), NIC_VI_ERROR);
	CHECK_EQ(kin_state(&p.b), NIC_VI_ERROR);
	CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
	pair_close(&p);
}

static void region_gone_stream(void) { gone_with(NIC_CTL_RDMA_READ, true, BIG); }
static void region_gone_read(void) { gone_with(NIC_CTL_RDMA_READ, false, BIG); }
static void region_gone_short(void) { gone_with(NIC_CTL_RDMA_READ, false, 8); }
static void region_gone_write(void) { gone_with(NIC_CTL_RDMA_WRITE, false, BIG); }
static void region_gone_packet(void) { gone_with(NIC_CTL_RDMA_WRITE, true, 8); }
static void region_gone_packets(void) { gone_with(NIC_CTL_RDMA_WRITE, true, 20000); }

/* The same when a has to do it alone in the end. */
static void region_gone_late(void)
{
	struct nic_desc *d;

	BEGIN(0, 8192);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
	nic_mem_deregister(p.b.nic, (uintptr_t)p.b.mem, p.b.handle);
	poll_a(LONG_AGO);
	CHECK(done(d) && (status_of(d) & NIC_ST_RDMA_PROT));
	CHECK_EQ(kin_state(&p.a), NIC_VI_ERROR);
	pair_close(&p);
}

/* The asking process's own memory goes while a short read is under way: nothing is written there. */
static void own_region_gone(void)
{
	struct nic_desc *d;

	BEGIN_SHORT();
	memset(p.a.mem, 0x44, 100);
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, 100);
	CHECK(!done(d));
	CHECK_EQ(nic_mem_deregister(p.a.nic, (uintptr_t)p.a.mem, p.a.handle), NIC_OK);
	pair_poll(&p);
	CHECK(done(d) && (status_of(d) & NIC_ST_PROTECTION));
	CHECK_EQ(p.a.mem[0], 0x44);
	CHECK(ab()->replies == 0 && p.a.nic->nshared == 0);
	pair_close(&p);
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

/* The same of writes that go all ways, more than claims hold, in places that overlap; b looks always, seldom, or late. */
static void ways_in_order(void)
{
	enum { N = 100, ROOM = 100000 };
	static uint8_t wanted[ROOM];
	uint32_t random = 1;

	for (int often = 0; often < 12; often++) {
		BEGIN(UINT32_MAX, 40000);
		memset(wanted, 0, ROOM);
		memset(p.b.mem, 0, ROOM);
		pattern(p.a.mem, PAIR_MEM, often);
		for (int i = 0; i < N; i++) {
			uint32_t len, at, from;

			random = random * 1103515245 + 12345;
			len = 1 + (random >> 8) % (i % 3 == 0 ? 60000 : i % 3 == 1 ? 12000 : 64);
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

/* ---- two processes ----------------------------------------------------------------------------------------------- */

enum { READY, ADDR_LOW, ADDR_HIGH, HANDLE, CLAIMED };

/* Connects, shows its memory, and claims the first thing that it is asked for, never to do it. */
static int claimer(void)
{
	char device[48];
	struct end e;

	snprintf(device, sizeof(device), "test-%d", (int)getppid());
	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "b", "a"))
		return 1;
	atomic_store(&kin_step[ADDR_LOW], (int)(uintptr_t)e.mem);
	atomic_store(&kin_step[ADDR_HIGH], (int)((uintptr_t)e.mem >> 32));
	atomic_store(&kin_step[HANDLE], (int)e.handle);
	atomic_store(&kin_step[READY], 1);
	for (;;)
		for (uint32_t i = 0; i < e.nic->nactive; i++)
			if (nic_claim_take(&e.nic->active[i]->asking->claim[1], 1, 0))
				atomic_store(&kin_step[CLAIMED], 1);
}

/* The peer dies with a half, or a short read, in hand: the VI is lost, and nothing hangs. */
static void killed_with(uint32_t len)
{
	double killed;
	char device[48];
	struct nic_desc *d;
	pid_t child;

	kin_clear();
	child = kin_fork(claimer);
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	end_open(&p.a, device);
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_connect(&p.a, "a", "b"), NIC_OK);
	CHECK(kin_await(p.a.nic, READY, 1));
	if (p.a.nic->active[0]->cma) {
		p.a.nic->active[0]->impatient = false;
		p.a.nic->active[0]->stream_max = p.a.nic->active[0]->stream_busy = p.a.nic->active[0]->stream_mutual = 0;
		p.a.nic->active[0]->half_min = 8192;
		p.a.nic->active[0]->get_max = 512;
		d = fill(&p.a, 0, NIC_CTL_RDMA_READ, p.a.mem, len);
		d->nseg = 2;
		d->seg[1] = d->seg[0];
		d->seg[0] = (struct nic_seg){ (uint32_t)kin_step[ADDR_LOW] | (uint64_t)(uint32_t)kin_step[ADDR_HIGH] << 32, kin_step[HANDLE], 0 };
		send_desc(&p.a, d);
		CHECK(kin_await(NULL, CLAIMED, 1));
		poll_a(LONG_AGO);
		CHECK(!done(d)); /* claimed is claimed */
		CHECK_EQ(kin_kill(child), -SIGKILL);
		killed = kin_now();
		CHECK(kin_lost(&p.a, 10));
		CHECK(kin_now() - killed < 2);
		CHECK(done(d) && (status_of(d) & NIC_ST_TRANSPORT));
		CHECK_EQ(p.a.nic->nshared, 0);
	} else {
		kin_kill(child);
		check_now.skip = "no cross-memory attach here";
	}
	end_close(&p.a);
}

static void killed_with_a_claim(void) { killed_with(BIG); }
static void killed_with_a_short(void) { killed_with(400); }

/* Reads for ever, of sizes that go all ways. */
static int reader(void)
{
	char device[48];

	snprintf(device, sizeof(device), "test-%d", (int)getppid());
	end_open(&p.a, device);
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&p.a, "a", "b"))
		return 1;
	p.a.nic->active[0]->stream_max = p.a.nic->active[0]->stream_busy = p.a.nic->active[0]->stream_mutual = 30000;
	p.a.nic->active[0]->put_max = p.a.nic->active[0]->put_busy = 30000;
	p.a.nic->active[0]->get_max = 512;
	p.a.nic->active[0]->half_min = 30001;
	if (!kin_await(p.a.nic, READY, 1))
		return 2;
	for (uint32_t i = 0;; i++) {
		uint32_t len = 1 + i * 7919 % (i % 4 ? BIG : 600);
		struct nic_desc *d = fill(&p.a, 0, i % 3 ? NIC_CTL_RDMA_READ : NIC_CTL_RDMA_WRITE, p.a.mem, len);

		d->nseg = 2;
		d->seg[1] = d->seg[0];
		d->seg[0] = (struct nic_seg){ (uint32_t)kin_step[ADDR_LOW] | (uint64_t)(uint32_t)kin_step[ADDR_HIGH] << 32, kin_step[HANDLE], 0 };
		send_desc(&p.a, d);
		while (!done(d))
			nic_poll(p.a.nic);
		if (!good(d))
			return 3;
		atomic_fetch_add(&kin_step[CLAIMED], 1);
	}
}

/* The asking process dies at any instruction: whoever helps it goes on, and keeps nothing. */
static void killed_while_asking(void)
{
	for (int round = 0; round < 10; round++) {
		char device[48];
		pid_t child;

		kin_clear();
		child = kin_fork(reader);
		snprintf(device, sizeof(device), "test-%d", (int)getpid());
		end_open(&p.b, device);
		end_vi(&p.b, NIC_RELIABLE_DELIVERY);
		CHECK_EQ(kin_connect(&p.b, "b", "a"), NIC_OK);
		atomic_store(&kin_step[ADDR_LOW], (int)(uintptr_t)p.b.mem);
		atomic_store(&kin_step[ADDR_HIGH], (int)((uintptr_t)p.b.mem >> 32));
		atomic_store(&kin_step[HANDLE], (int)p.b.handle);
		atomic_store(&kin_step[READY], 1);
		for (double until = kin_now() + KIN_SECONDS; atomic_load(&kin_step[CLAIMED]) <= 3 * round && kin_now() < until;)
			nic_poll(p.b.nic);
		CHECK(atomic_load(&kin_step[CLAIMED]) > 0);
		CHECK_EQ(kin_kill(child), -SIGKILL);
		CHECK(kin_lost(&p.b, 10));
		for (int i = 0; i < 100; i++)
			nic_poll(p.b.nic);
		CHECK_EQ(p.b.nic->nshared, 0);
		end_close(&p.b);
	}
}

/* ---- in the command ---------------------------------------------------------------------------------------------- */

static struct nic_rdma command(uint32_t op, uint32_t local, uint32_t remote, uint32_t len)
{
	return (struct nic_rdma){ (uintptr_t)p.a.mem + local, (uintptr_t)p.b.mem + remote, p.a.handle, p.b.handle, len, op };
}

static int now(const struct nic_rdma *r)
{
	return nic_rdma_now(p.a.nic, p.a.vi, r);
}

static void commands_of_every_size(void)
{
	BEGIN(0, UINT32_MAX);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];
		struct nic_rdma r = command(NIC_CTL_RDMA_WRITE, 3, 5, n);

		pattern(p.a.mem + 3, n, i);
		memset(p.b.mem, 0, n + 10);
		CHECK_EQ(now(&r), NIC_OK);
		CHECK(is_pattern(p.b.mem + 5, n, i));
		CHECK(p.b.mem[4] == 0 && p.b.mem[5 + n] == 0);
		memset(p.a.mem, 0, n + 10);
		r = command(NIC_CTL_RDMA_READ, 1, 5, n);
		CHECK_EQ(now(&r), NIC_OK);
		CHECK(is_pattern(p.a.mem + 1, n, i));
		CHECK(p.a.mem[0] == 0 && p.a.mem[1 + n] == 0);
	}
	CHECK_EQ(counter(p.a.nic, "rdma_now"), 2 * sizeof(sizes) / sizeof(sizes[0]));
	CHECK_EQ(counter(p.a.nic, "bytes_read"), counter(p.a.nic, "bytes_write"));
	CHECK_EQ(counter(p.a.nic, "send_descriptors"), 0);
	pair_close(&p);
}

static int refused(const struct nic_rdma *r)
{
	int err = now(r);

	CHECK_EQ(p.a.mem[0], 1);
	CHECK_EQ(p.b.mem[0], 2);
	return err == NIC_NOT_DONE;
}

/* What is wrong with a command is not told: nothing happens, and its descriptor will be. */
static void commands_refused(void)
{
	struct nic_rdma r, bad;
	struct nic_desc *d;

	BEGIN(0, UINT32_MAX);
	p.a.mem[0] = 1;
	p.b.mem[0] = 2;
	r = command(NIC_CTL_RDMA_WRITE, 0, 0, 1);
	bad = r, bad.length = 0;
	CHECK(refused(&bad));
	bad = r, bad.length = PAIR_MEM + 1;
	CHECK(refused(&bad));
	bad = r, bad.local--, bad.length = 2;
	CHECK(refused(&bad));
	bad = r, bad.remote += PAIR_MEM;
	CHECK(refused(&bad));
	bad = r, bad.local_handle++;
	CHECK(refused(&bad));
	bad = r, bad.remote_handle++;
	CHECK(refused(&bad));
	/* Before what is queued it must not go. */
	for (int i = 0; i < NIC_RING_CELLS + 40; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + 64, 64));
	for (int i = 0; i < NIC_RING_CELLS + 30; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem + 64, 16));
	CHECK(refused(&r));
	pair_poll(&p);
	CHECK_EQ(counter(p.a.nic, "rdma_now"), 0);
	CHECK_EQ(counter(p.a.nic, "protection_errors"), 0);
	CHECK_EQ(now(&r), NIC_OK);
	CHECK_EQ(p.b.mem[0], 1);
	p.b.mem[0] = 2;
	CHECK_EQ(nic_mem_set(p.b.nic, (uintptr_t)p.b.mem, p.b.handle, &(struct nic_mem_attr){ .ptag = p.b.ptag, .flags = NIC_MEM_RDMA_WRITE }), NIC_OK);
	r.op = NIC_CTL_RDMA_READ;
	CHECK(refused(&r));
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, 1);
	pair_poll(&p);
	CHECK(status_of(d) & NIC_ST_RDMA_PROT);
	r.op = NIC_CTL_RDMA_WRITE;
	CHECK(refused(&r)); /* the VI is in error now */
	pair_close(&p);
}

/* What the other NIC takes part in needs a descriptor; as long as that NIC is not there, or was late, this one does all of it. */
static void commands_only_alone(void)
{
	struct nic_rdma packets, half, between;

	BEGIN(1000, 65536);
	packets = command(NIC_CTL_RDMA_WRITE, 0, 0, 1000);
	between = command(NIC_CTL_RDMA_WRITE, 0, 0, 1001);
	half = command(NIC_CTL_RDMA_READ, 0, 0, 65536);
	CHECK_EQ(now(&packets), NIC_NOT_DONE);
	CHECK_EQ(now(&half), NIC_NOT_DONE);
	CHECK_EQ(now(&between), NIC_OK);
	half.length--;
	CHECK_EQ(now(&half), NIC_OK);
	packets.op = NIC_CTL_RDMA_READ;
	CHECK_EQ(now(&packets), NIC_NOT_DONE);
	packets.op = NIC_CTL_RDMA_WRITE;
	ab()->put.alone = 2;
	CHECK_EQ(now(&packets), NIC_OK);
	CHECK_EQ(now(&between), NIC_OK); /* of that size it would not be asked anyway */
	CHECK_EQ(now(&packets), NIC_OK);
	CHECK_EQ(now(&packets), NIC_NOT_DONE);
	ab()->absent = true;
	ab()->absent_seen = atomic_load(&ab()->asked->seen);
	CHECK_EQ(now(&packets), NIC_OK);
	packets.op = NIC_CTL_RDMA_READ;
	CHECK_EQ(now(&packets), NIC_OK);
	pair_close(&p);
}

/* One of many goes in packets where a single one does not: others are under way, or the host has not looked since the one before. */
static void many_in_a_row(void)
{
	struct nic_taken taken = { .data = NULL };
	struct nic_rdma write, read;
	struct nic_desc *d;

	BEGIN(0, UINT32_MAX);
	ab()->put_max = 100;
	ab()->put_busy = 5000;
	ab()->stream_busy = 3000;
	pattern(p.a.mem, 5000, 1);
	write = command(NIC_CTL_RDMA_WRITE, 0, 0, 5000);
	read = command(NIC_CTL_RDMA_READ, 0, 0, 3000);
	nic_poll(p.a.nic);
	ab()->put_max = 5000;
	CHECK_EQ(now(&write), NIC_NOT_DONE); /* and nothing has begun */
	ab()->put_max = 100;
	CHECK_EQ(now(&write), NIC_OK);
	CHECK_EQ(now(&write), NIC_NOT_DONE);
	CHECK_EQ(now(&read), NIC_NOT_DONE);
	nic_poll(p.a.nic);
	CHECK_EQ(now(&read), NIC_OK);
	CHECK_EQ(now(&read), NIC_NOT_DONE);
	nic_take_of(p.a.nic, p.a.vi, &p.a.recv_cq, &taken); /* a look at the link alone is one, too */
	CHECK_EQ(now(&write), NIC_OK);
	write.length = 5001;
	CHECK_EQ(now(&write), NIC_OK);
	read.length = 3001;
	CHECK_EQ(now(&read), NIC_OK);
	/* By descriptor the same; what is under way makes it a row, too. */
	nic_poll(p.a.nic);
	CHECK(good(post(0, NIC_CTL_RDMA_WRITE, 0, 0, 5000)));
	d = post(1, NIC_CTL_RDMA_WRITE, 0, 0, 5000);
	CHECK(!done(d));
	nic_poll(p.a.nic);
	CHECK(!done(post(2, NIC_CTL_RDMA_WRITE, 0, 0, 5000)));
	pair_poll(&p);
	CHECK(good(d) && good(&p.a.desc[2]));
	CHECK(is_pattern(p.b.mem, 5000, 1));
	CHECK_EQ(counter(p.a.nic, "shared"), 2);
	pair_close(&p);
}

int main(void)
{
	kin_start();
	CASE(killed_with_a_claim);
	CASE(killed_with_a_short);
	CASE(killed_while_asking);
	CASE(streams_of_every_size);
	CASE(halves_of_every_size);
	CASE(shorts_of_every_size);
	CASE(many_shorts);
	CASE(short_of_no_place);
	CASE(host_gone);
	CASE(many_under_way);
	CASE(ids_wrap);
	CASE(absent_peer);
	CASE(packets_of_every_size);
	CASE(half_hearted_peer);
	CASE(half_placed);
	CASE(doubted_write);
	CASE(doubted_read);
	CASE(late_half);
	CASE(half_behind_a_begun_one);
	CASE(begun_half);
	CASE(late_half_behind_another);
	CASE(flushed_stream);
	CASE(flushed_halves);
	CASE(flushed_short);
	CASE(flushed_packets);
	CASE(flush_waits_for_a_claim);
	CASE(flush_waits_for_a_short);
	CASE(told_too_late);
	CASE(region_gone_stream);
	CASE(region_gone_read);
	CASE(region_gone_short);
	CASE(region_gone_write);
	CASE(region_gone_packet);
	CASE(region_gone_packets);
	CASE(region_gone_late);
	CASE(own_region_gone);
	CASE(local_protection);
	CASE(send_waits_for_write);
	CASE(send_waits_for_packets);
	CASE(writes_in_order);
	CASE(ways_in_order);
	CASE(queue_fence);
	CASE(commands_of_every_size);
	CASE(commands_refused);
	CASE(commands_only_alone);
	CASE(many_in_a_row);
	return check_done();
}
