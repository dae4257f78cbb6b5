/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA between the two ends of a pair: a asks, b is asked.  What the other NIC does of it (ctl/rdma_ask.c) the test chooses: streams,
 * halves, packets, short reads, or nothing.
 */
#ifndef TESTS_SHARED_H
#define TESTS_SHARED_H

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/pair.h"

enum { BIG = 512 << 10, LONG_AGO = 2000 /* passes that no patience survives */ };

static struct pair p;
static const uint32_t sizes[] = { 1, 100, 2048, 2049, 4096, 8192, 8193, 16384, 16385, 40000, 65536, 70001, 262144, BIG };

static inline struct nic_link *ab(void)
{
	return p.a.nic->link[p.b.nic->me];
}

/* Streams, and writes in packets, up to this many bytes, halves from that many, which are waited for. */
static inline void ways(uint32_t stream_max, uint32_t half_min)
{
	ab()->impatient = false;
	ab()->get_max = ab()->race_max = ab()->half_race_max = ab()->stream_later = 0;
	ab()->brief_race_max[0] = ab()->brief_race_max[1] = 0;
	ab()->stream_max = ab()->stream_busy = stream_max;
	ab()->put_max = ab()->put_busy = stream_max < NIC_PUT_MAX ? stream_max : NIC_PUT_MAX;
	ab()->half_min = ab()->half_row = half_min;
}

static inline bool begin(uint32_t stream_max, uint32_t half_min)
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

static inline struct nic_desc *rdma(int i, uint16_t op, uint32_t local, uint32_t remote, uint32_t len)
{
	struct nic_desc *d = fill(&p.a, i, op, p.a.mem + local, len);

	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem + remote, p.b.handle, 0 };
	return d;
}

static inline struct nic_desc *post(int i, uint16_t op, uint32_t local, uint32_t remote, uint32_t len)
{
	struct nic_desc *d = rdma(i, op, local, remote, len);

	send_desc(&p.a, d);
	return d;
}

static inline int done(const struct nic_desc *d)
{
	return (status_of(d) & NIC_ST_DONE) != 0;
}

static inline int good(const struct nic_desc *d)
{
	return done(d) && !(status_of(d) & NIC_ST_ERROR_MASK);
}

/* When nothing of eight bytes goes by value, though it could otherwise: the peer was late lately, or is not there; its turn would come later; or it could not be taken back. */
static inline void refused_by_value(bool (*refused)(uint32_t len), struct nic_doubt *doubt)
{
	doubt->alone = 1;
	CHECK(refused(8));
	CHECK_EQ(doubt->alone, 1);
	doubt->alone = 0;
	ab()->absent = true;
	ab()->absent_seen = atomic_load(&ab()->asked->seen);
	CHECK(refused(8));
	ab()->absent = false;
	p.a.nic->waiting.crowded = ab()->impatient = true;
	CHECK(refused(8));
	p.a.nic->waiting.crowded = ab()->impatient = false;
	ab()->cma = false;
	CHECK(refused(8));
	ab()->cma = true;
}

/* a alone runs. */
static inline void poll_a(int times)
{
	for (int i = 0; i < times; i++)
		nic_poll(p.a.nic);
}

#endif
