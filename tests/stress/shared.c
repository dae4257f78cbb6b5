/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that two NICs share, each NIC run by a thread of its own: claims are taken, closed and told of at the same
 * time (mem/claim.h: R1, R2), while the asked side comes and goes.  Every byte is looked at.  Also under ThreadSanitizer.
 */
#include <pthread.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/pair.h"

enum { ROUNDS = 6000, DEEP = 24, MOST = PAIR_MEM / DEEP };

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

static struct nic_desc *start(int i, uint16_t op, uint32_t at, uint32_t len)
{
	struct nic_desc *d = fill(&p.a, i, op, p.a.mem + at, len);

	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem + at, p.b.handle, 0 };
	send_desc(&p.a, d);
	return d;
}

/* Up to DEEP transfers of any size and way at once, each in a place of its own. */
static long batch(uint32_t *random, uint32_t round)
{
	struct nic_link *link = p.a.nic->link[p.b.nic->me];
	uint32_t n = 1 + next(random) % DEEP, len[DEEP];
	uint16_t op = next(random) & 1 ? NIC_CTL_RDMA_READ : NIC_CTL_RDMA_WRITE;
	uint8_t *from = op == NIC_CTL_RDMA_READ ? p.b.mem : p.a.mem, *to = op == NIC_CTL_RDMA_READ ? p.a.mem : p.b.mem;
	long bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		len[i] = 1 + next(random) % (next(random) & 1 ? MOST : 600);
		memset(from + i * MOST, (int)(round + i), len[i]);
		link->stream_max = link->stream_busy = link->stream_mutual = next(random) % MOST;
		link->put_max = next(random) % 32768;
		link->put_busy = next(random) % 32768;
		link->get_max = next(random) % 1024;
		link->half_min = next(random) % 16384;
		link->impatient = next(random) & 1;
		start((int)i, op, i * MOST, len[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		while (!(status_of(&p.a.desc[i]) & NIC_ST_DONE))
			if (!nic_poll(p.a.nic) && next(random) % 4 == 0)
				sched_yield(); /* else the helper may never have a processor */
		bad += (status_of(&p.a.desc[i]) & NIC_ST_ERROR_MASK) != 0;
		for (uint32_t k = 0; k < len[i]; k++)
			bad += to[i * MOST + k] != (uint8_t)(round + i);
	}
	return bad;
}

/* Every way was gone, by both. */
static bool all_seen(void)
{
	return counter(p.a.nic, "bytes_peer_half") > 0 && counter(p.a.nic, "bytes_write_buffer") > 0 && atomic_load(&streamed) && atomic_load(&shorts) &&
	       counter(p.a.nic, "shared_taken_back") > 0;
}

static void both_at_work(void)
{
	uint32_t random = 7;
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
		bad += batch(&random, round);
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

int main(void)
{
	CASE(both_at_work);
	return check_done();
}
