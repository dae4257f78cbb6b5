/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that two NICs share, each NIC run by a thread of its own: claims are taken, closed and told of at the same
 * time (mem/claim.h: R1, R2), while the asked side comes and goes, or asks as well.  Every byte is looked at.  Also under ThreadSanitizer.
 */
#include <pthread.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/pair.h"

enum { ROUNDS = 6000, DEEP = 24, MOST = PAIR_MEM / DEEP, LONE = 8 };

static struct pair p;
static _Atomic int stop;
static _Atomic bool streamed, shorts; /* b has sent parts of a stream, short reads; its counters belong to its thread */
static _Atomic int mood; /* 0: always there; otherwise away for that many looks now and then */

static void *helper(void *arg)
{
	uint32_t random = 1;

	(void)arg;
	while (!atomic_load(&stop)) {
		random = random * 1664525 + 1013904223;
		nic_poll(p.b.nic);
		atomic_store(&streamed, counter(p.b.nic, "bytes_read_buffer") > 0);
		atomic_store(&shorts, counter(p.b.nic, "bytes_read_short") > 0);
		if (atomic_load(&mood) && random >> 24 < 20)
			for (int i = atomic_load(&mood); i > 0; i--)
				sched_yield();
	}
	return NULL;
}

static uint32_t next(uint32_t *random)
{
	return (*random = *random * 1103515245 + 12345) >> 8;
}

/* Who asks whom, in which part of their memories: `most` bytes for each of DEEP transfers. */
struct way {
	struct end *of, *peer;
	uint32_t base, most, random;
};

static struct nic_desc *start(const struct way *w, uint32_t i, uint16_t op, uint32_t len)
{
	uint32_t at = w->base + i * w->most;
	struct nic_desc *d = fill(w->of, (int)i, op, w->of->mem + at, len);

	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ (uintptr_t)w->peer->mem + at, w->peer->handle, 0 };
	send_desc(w->of, d);
	return d;
}

/* Is it over?  Without a descriptor: are all of those, the posted writes and so many fetches? */
static bool is_over(const struct way *w, const struct nic_desc *d, uint32_t fetches)
{
	return d ? (status_of(d) & NIC_ST_DONE) != 0
	         : nic_rdma_posted(w->of->nic) == NIC_OK && nic_rdma_fetched(w->of->nic, w->of->vi, NULL) == fetches;
}

/* A short write of many, without a descriptor; the memory that it comes from is something else at once. */
static bool posted(const struct way *w, uint32_t i, uint32_t len)
{
	uint32_t at = w->base + i * w->most;
	const struct nic_posted write = { w->of->mem + at, (uintptr_t)w->peer->mem + at, w->peer->handle, len };

	if (nic_rdma_post(w->of->nic, w->of->vi, &write) != NIC_OK)
		return false;
	memset(w->of->mem + at, 0, len);
	return true;
}

/* A short read of many, likewise. */
static bool fetched(const struct way *w, uint32_t i, uint32_t len)
{
	uint32_t at = w->base + i * w->most;
	const struct nic_fetch read = { w->of->mem + at, (uintptr_t)w->peer->mem + at, w->peer->handle, len };

	return nic_rdma_fetch(w->of->nic, w->of->vi, &read) == NIC_OK;
}

/* Up to DEEP transfers of any size and way at once, each in a place of its own; one alone may be LONE times as long. */
static long batch(struct way *w, uint32_t round)
{
	struct nic_link *link = w->of->nic->link[w->peer->nic->me];
	uint32_t *random = &w->random, n = next(random) % 4 ? 1 + next(random) % DEEP : 1, len[DEEP];
	uint16_t op = next(random) & 1 ? NIC_CTL_RDMA_READ : NIC_CTL_RDMA_WRITE;
	struct end *from = op == NIC_CTL_RDMA_READ ? w->peer : w->of, *to = op == NIC_CTL_RDMA_READ ? w->of : w->peer;
	uint32_t fetches = nic_rdma_fetched(w->of->nic, w->of->vi, NULL);
	struct nic_desc *desc[DEEP];
	long bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool value = false;

		len[i] = 1 + next(random) % (n == 1 ? LONE * w->most : next(random) & 1 ? w->most : 600);
		memset(from->mem + w->base + i * w->most, (int)(round + i), len[i]);
		link->stream_max = link->stream_busy = next(random) % len[i] * 2;
		link->put_max = next(random) % len[i] * 2;
		link->put_busy = next(random) % len[i] * 2;
		link->get_max = next(random) % 1024;
		link->half_min = next(random) % 16384;
		link->impatient = next(random) & 1;
		link->race_max = next(random) & 1 ? UINT32_MAX : 0;
		link->half_race_max = next(random) & 1 ? UINT32_MAX : 0;
		link->brief_race_max[0] = link->brief_race_max[1] = next(random) & 1 ? UINT32_MAX : 0;
		if (next(random) & 1)
			value = op == NIC_CTL_RDMA_WRITE ? posted(w, i, len[i]) : fetched(w, i, len[i]);
		fetches += value && op == NIC_CTL_RDMA_READ;
		desc[i] = value ? NULL : start(w, i, op, len[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		while (!is_over(w, desc[i], fetches))
			if (!nic_poll(w->of->nic) && next(random) % 4 == 0)
				sched_yield(); /* else the other one may never have a processor */
		bad += desc[i] && (status_of(desc[i]) & NIC_ST_ERROR_MASK) != 0;
		for (uint32_t k = 0; k < len[i]; k++)
			bad += to->mem[w->base + i * w->most + k] != (uint8_t)(round + i);
	}
	return bad;
}

/* Every way was gone, by both. */
static bool all_seen(void)
{
	return counter(p.a.nic, "bytes_peer_half") > 0 && counter(p.a.nic, "bytes_write_buffer") > 0 && atomic_load(&streamed) && atomic_load(&shorts) &&
	       counter(p.a.nic, "shared_taken_back") > 0 && counter(p.a.nic, "rdma_posted") > 0 &&
	       counter(p.a.nic, "rdma_fetches") > 0;
}

static void both_at_work(void)
{
	struct way way = { .of = &p.a, .peer = &p.b, .most = MOST, .random = 7 };
	pthread_t thread;
	long bad = 0;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	if (!p.a.nic->link[p.b.nic->me]->cma) {
		pair_close(&p);
		SKIP("no cross-memory attach here");
	}
	pthread_create(&thread, NULL, helper, NULL);
	/* On a busy machine the helper is seldom there in time. */
	for (uint32_t round = 0; round < ROUNDS / DEEP || (!all_seen() && round < 50 * ROUNDS / DEEP); round++) {
		atomic_store(&mood, round % 3 ? (int)(round % 3) * 20 : 0);
		bad += batch(&way, round);
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(bad, 0);
	CHECK(all_seen());
	CHECK_EQ(p.a.nic->nshared, 0);
	pair_poll(&p);
	CHECK_EQ(p.b.nic->nshared, 0);
	pair_close(&p);
}

static _Atomic int asking; /* how many have not asked for all of theirs yet, or have not helped the other one */

static bool shared_and_helped(struct nic *nic)
{
	return counter(nic, "shared") > 0 && counter(nic, "bytes_helped") > 0;
}

static void *asker(void *arg)
{
	struct way *w = arg;
	bool done = false;
	long bad = 0;

	/* On a busy machine they seldom run at the same time. */
	for (uint32_t round = 0; atomic_load(&asking) && round < 50 * ROUNDS / DEEP; round++) {
		bad += batch(w, round);
		nic_poll(w->of->nic); /* batch looks only where it waits, and two that find each other absent do all of it at once, without a wait */
		if (!done && round >= 2 * ROUNDS / DEEP && shared_and_helped(w->of->nic)) {
			atomic_fetch_sub(&asking, 1);
			done = true;
		}
	}
	if (!done)
		atomic_fetch_sub(&asking, 1);
	while (atomic_load(&asking))
		if (!nic_poll(w->of->nic))
			sched_yield();
	return (void *)bad;
}

/* Each asks the other, with a thread of its own: both claim, close and doubt at once. */
static void each_asks_the_other(void)
{
	struct way way[2] = { { .of = &p.a, .peer = &p.b, .most = MOST / 2, .random = 3 },
		{ .of = &p.b, .peer = &p.a, .base = PAIR_MEM / 2, .most = MOST / 2, .random = 5 } };
	pthread_t thread;
	void *bad;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	if (!p.a.nic->link[p.b.nic->me]->cma) {
		pair_close(&p);
		SKIP("no cross-memory attach here");
	}
	atomic_store(&asking, 2);
	pthread_create(&thread, NULL, asker, &way[1]);
	CHECK_EQ((long)asker(&way[0]), 0);
	pthread_join(thread, &bad);
	CHECK_EQ((long)bad, 0);
	pair_poll(&p);
	for (int i = 0; i < 2; i++) {
		struct nic *nic = way[i].of->nic;

		CHECK(shared_and_helped(nic));
		CHECK_EQ(counter(nic, "bad_packets"), 0);
		CHECK_EQ(nic->nshared, 0);
	}
	pair_close(&p);
}

int main(void)
{
	CASE(both_at_work);
	CASE(each_asks_the_other);
	return check_done();
}
