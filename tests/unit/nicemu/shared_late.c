/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA on which the NICs of both ends work (ctl/rdma_ask.c), when things go wrong: a peer that does not look, looks too late, or dies
 * with a claim in hand, and memory or a VI that goes while a transfer is under way.
 */
#include <pthread.h>

#include "tests/unit/nicemu/kin.h"
#include "tests/unit/nicemu/shared.h"

/* Nobody is there: a does it alone, soon, and does not ask again until b has looked. */
static void absent_peer(void)
{
	enum { READ_STREAM, READ_HALVES, READ_SHORT, READ_REPLY, WRITE_HALVES, WRITE_STREAM, WRITE_PACKETS, WRITE_PACKET, WAYS };

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
		CHECK(polls < 200 + (way == READ_STREAM || way == WRITE_STREAM ? BIG / 1024 : 0));
		CHECK(polls > (way == READ_STREAM || way == WRITE_STREAM ? BIG / 1024 : 0)); /* a long one is waited for longer */
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
	for (int i = 0; i < LATE; i++) { /* who asks for nothing itself, and has looked since, is asked again */
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
	enum { LEN = 32000, PART = 16384 };
	struct nic_claim *claim;
	struct nic_desc *d;
	uint32_t id;

	BEGIN(UINT32_MAX, UINT32_MAX);
	pattern(p.a.mem, LEN, 5);
	memset(p.b.mem, 0x33, LEN);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, LEN);
	id = ab()->ask[ab()->ask_head % NIC_CLAIMS].id;
	claim = &p.b.nic->link[p.a.nic->me]->asking->claim[id % NIC_CLAIMS];
	CHECK_EQ(ab()->ask[id % NIC_CLAIMS].part, PART);
	CHECK(!nic_claim_take_placing(claim, id, 1)); /* one after the other */
	CHECK(nic_claim_take_placing(claim, id, 0));
	CHECK(!nic_claim_take_placing(claim, id, 0));
	poll_a(LONG_AGO);
	CHECK(!done(d)); /* claimed is claimed */
	nic_claim_close(claim); /* b was just in time for this part */
	ab()->ask[id % NIC_CLAIMS].closed = true;
	poll_a(LONG_AGO);
	CHECK(!done(d));
	nic_claim_placed(claim, id, 0);
	poll_a(LONG_AGO);
	CHECK(good(d));
	CHECK_EQ(p.b.mem[0], 0x33); /* it was this test that claimed it */
	CHECK_EQ(p.b.mem[PART - 1], 0x33);
	CHECK(memcmp(p.b.mem + PART, p.a.mem + PART, LEN - PART) == 0);
	memset(p.b.mem, 0x55, LEN);
	pair_poll(&p); /* the packets come late */
	CHECK_EQ(p.b.mem[0], 0x55);
	CHECK_EQ(p.b.mem[LEN - 1], 0x55);
	CHECK_EQ(p.a.nic->nshared, 0);
	pair_close(&p);
}

/* b puts some of the parts that have left in place, and is not seen again: a does the rest, that which has not left, too. */
static void half_hearted_target(void)
{
	struct nic_desc *d;
	uint64_t placed;

	BEGIN(UINT32_MAX, UINT32_MAX);
	pattern(p.a.mem, BIG, 5);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), NIC_PUT_PARTS * 16384);
	poll_a(20);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), NIC_PUT_PARTS * 16384);
	nic_poll(p.b.nic);
	placed = counter(p.b.nic, "bytes_helped");
	CHECK(placed && placed < BIG);
	CHECK(!done(d));
	poll_a(1);
	CHECK_EQ(counter(p.a.nic, "bytes_write_buffer"), NIC_PUT_PARTS * 16384 + placed);
	CHECK_EQ(ab()->away, NIC_PUT_PARTS * 16384);
	poll_a(LONG_AGO);
	CHECK(good(d));
	CHECK(is_pattern(p.b.mem, BIG, 5));
	CHECK_EQ(placed + counter(p.a.nic, "bytes_write"), BIG);
	memset(p.b.mem, 0x55, BIG);
	pair_poll(&p); /* the others come late */
	for (int i = 0; i < BIG; i += 512)
		CHECK_EQ(p.b.mem[i], 0x55);
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 1);
	CHECK_EQ(p.a.nic->nshared + ab()->away + ab()->alone + ab()->in_the_way, 0);
	pair_close(&p);
}

/* b says that more parts are in place than have left, or fewer than it said before: so many leave at once, whatever it says. */
static void untrue_of_parts(void)
{
	enum { LEFT = NIC_PUT_PARTS * 16384 };

	for (uint32_t lie = 0; lie < 2; lie++) {
		struct nic_claim *claim;
		struct nic_desc *d;
		uint64_t id;

		BEGIN(UINT32_MAX, UINT32_MAX);
		d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, PAIR_MEM);
		id = ab()->ask_head;
		claim = &p.b.nic->link[p.a.nic->me]->asking->claim[id % NIC_CLAIMS];
		CHECK_EQ(ab()->ask[id % NIC_CLAIMS].from, LEFT);
		atomic_store(&claim->word, id << 32 | (lie ? NIC_PUT_PARTS * (NIC_CLAIM_PLACED + 1u) : 40u * NIC_CLAIM_PLACED));
		poll_a(1);
		CHECK_EQ(ab()->ask[id % NIC_CLAIMS].from, lie ? 2 * LEFT : LEFT);
		atomic_store(&claim->word, id << 32);
		poll_a(1);
		CHECK_EQ(ab()->ask[id % NIC_CLAIMS].from, lie ? 2 * LEFT : LEFT);
		poll_a(LONG_AGO);
		CHECK(good(d));
		CHECK_EQ(ab()->away + ab()->alone + ab()->in_the_way, 0);
		pair_poll(&p);
		pair_close(&p);
	}
}

/*
 * A write behind one to the same place that was taken back when a part of it was in place: b is there, and nobody in doubt, since
 * another VI has used that up.
 */
static void write_behind_one_taken_back(void)
{
	enum { LEN = 64000, PASS = 32 /* packets */ };
	struct nic_desc *first, *second, *other;
	uint32_t vi, id;

	BEGIN(UINT32_MAX, UINT32_MAX);
	vi = p.a.vi;
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	end_vi(&p.b, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	pair_poll(&p);
	memset(p.a.mem, 1, LEN);
	memset(p.a.mem + LEN, 2, 8000);
	other = rdma(0, NIC_CTL_RDMA_WRITE, 300000, 300000, 64);
	nic_post_send(p.a.nic, vi, other);
	pair_poll(&p);
	for (int i = 1; i < PASS; i++)
		post(i, NIC_CTL_RDMA_WRITE, 200000 + 64 * i, 200000 + 64 * i, 8);
	id = ab()->ask_tail;
	first = post(PASS, NIC_CTL_RDMA_WRITE, 0, 0, LEN);
	nic_poll(p.b.nic); /* the first part of it is the last thing that it does */
	for (int left = LONG_AGO; !ab()->ask[id % NIC_CLAIMS].closed && left; left--)
		nic_poll(p.a.nic);
	CHECK(ab()->ask[id % NIC_CLAIMS].closed && !ab()->absent && !done(first));
	nic_post_send(p.a.nic, vi, rdma(PASS + 1, NIC_CTL_RDMA_WRITE, 300000, 300000, 64));
	CHECK_EQ(ab()->put.alone, 0);
	second = post(PASS + 2, NIC_CTL_RDMA_WRITE, LEN, LEN - 8000, 8000);
	nic_poll(p.b.nic);
	pair_poll(&p);
	CHECK(good(first) && good(second));
	CHECK(p.b.mem[LEN - 8001] == 1 && p.b.mem[LEN - 8000] == 2 && p.b.mem[LEN - 1] == 2);
	pair_close(&p);
}

/* A part of a stream that b has begun is waited for, and what comes behind it as well: b is there. */
static void begun_part(void)
{
	struct nic_claim *claim;
	struct nic_desc *d;

	BEGIN(UINT32_MAX, UINT32_MAX);
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, BIG);
	claim = &p.b.nic->link[p.a.nic->me]->asking->claim[ab()->ask_head % NIC_CLAIMS];
	CHECK(nic_claim_take(claim, ab()->ask_head, 0));
	poll_a(LONG_AGO);
	CHECK(!done(d));
	CHECK_EQ(counter(p.a.nic, "shared_taken_back"), 0);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(done(d) && (status_of(d) & NIC_ST_ERROR_MASK));
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
static void flushed_packets_of(uint32_t len)
{
	struct nic_desc *d;

	BEGIN(UINT32_MAX, UINT32_MAX);
	memset(p.b.mem, 0x33, BIG);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, len);
	CHECK(!done(d));
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(done(d) && (status_of(d) & NIC_ST_ERROR_MASK));
	pair_poll(&p);
	CHECK_EQ(p.b.mem[0], 0x33);
	CHECK_EQ(p.b.mem[len - 1], 0x33);
	CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
	CHECK_EQ(ab()->away + ab()->alone + ab()->in_the_way, 0);
	pair_close(&p);
}

static void flushed_packets(void) { flushed_packets_of(20000); }
static void flushed_long_write(void) { flushed_packets_of(BIG); }

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
	nic_claim_placed(&claim, 7, 0);
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
static void region_gone_long_write(void) { gone_with(NIC_CTL_RDMA_WRITE, true, BIG); }

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

/* The same of a long write: the parts that have left are put in place, and no more. */
static void own_region_gone_write(void)
{
	enum { LEFT = NIC_PUT_PARTS * 16384 };
	struct nic_desc *d;

	BEGIN(UINT32_MAX, UINT32_MAX);
	pattern(p.a.mem, BIG, 2);
	memset(p.b.mem, 0x44, BIG);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, BIG);
	CHECK(!done(d));
	CHECK_EQ(nic_mem_deregister(p.a.nic, (uintptr_t)p.a.mem, p.a.handle), NIC_OK);
	pair_poll(&p);
	CHECK(done(d) && (status_of(d) & NIC_ST_PROTECTION));
	CHECK(is_pattern(p.b.mem, 16384, 2));
	for (int i = LEFT; i < BIG; i += 512)
		CHECK_EQ(p.b.mem[i], 0x44);
	CHECK_EQ(p.a.nic->nshared + p.b.nic->nshared, 0);
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
		p.a.nic->active[0]->stream_max = p.a.nic->active[0]->stream_busy = 0;
		p.a.nic->active[0]->half_min = 8192;
		p.a.nic->active[0]->get_max = 512;
		p.a.nic->active[0]->brief_race_max[0] = 0;
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
	p.a.nic->active[0]->stream_max = p.a.nic->active[0]->stream_busy = 30000;
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

int main(void)
{
	kin_start();
	CASE(killed_with_a_claim);
	CASE(killed_with_a_short);
	CASE(killed_while_asking);
	CASE(absent_peer);
	CASE(half_hearted_target);
	CASE(untrue_of_parts);
	CASE(write_behind_one_taken_back);
	CASE(begun_part);
	CASE(half_hearted_peer);
	CASE(half_placed);
	CASE(late_half);
	CASE(half_behind_a_begun_one);
	CASE(begun_half);
	CASE(late_half_behind_another);
	CASE(flushed_stream);
	CASE(flushed_halves);
	CASE(flushed_short);
	CASE(flushed_packets);
	CASE(flushed_long_write);
	CASE(flush_waits_for_a_claim);
	CASE(flush_waits_for_a_short);
	CASE(told_too_late);
	CASE(region_gone_stream);
	CASE(region_gone_read);
	CASE(region_gone_short);
	CASE(region_gone_write);
	CASE(region_gone_packet);
	CASE(region_gone_packets);
	CASE(region_gone_long_write);
	CASE(region_gone_late);
	CASE(own_region_gone);
	CASE(own_region_gone_write);
	return check_done();
}
