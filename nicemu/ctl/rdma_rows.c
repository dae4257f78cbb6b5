/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: long messages, many in a row.  Are they better sent, in buffers, or read by the receiver?
 *
 * Two copies through buffers that stay in the caches beat one that the kernel makes, where the two processors share a cache.  Where they do not, every
 * line of a buffer goes from one to the other and back, and where messages are longer than the caches the second copy is to and from memory; but then
 * what the sender has just written goes from one to the other anyway.  So it is found out: the receiver times rows of them, so many at a
 * time, and goes the other way now and then (engine/pace.h).  What it finds out is a word beside its claims, which the sender's NIC reads
 * when it is asked (nic_rather_sent).  That word is a hint: any value that it had lately will do, and any value at all does no harm.
 *
 * A row begins with its first message and goes on while one is under way, or the next one begins at once.  It is so many of them, which takes as long as
 * until the next row begins: an exchange is over when both directions are, and what makes one faster may make the other slower.  But not if that
 * is a pause.  One message that was never over, as its connection was lost, makes rows of that link longer than they are, no more.
 */
#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/clock.h"

enum {
	ROW = 64,             /* messages that are timed together, at least, or */
	ROW_BYTES = 16 << 20, /* as many as these */
	ROW_LEAST = 8,
	MOMENT = 50000,       /* ns */
	UNIT = 1 << 20,       /* bytes: what it is that costs so many ns */
	GOOD = 60000,         /* what is not worth a try of the other way: no kernel copies as fast */
	FIRST = 48 << 20,     /* bytes until the buffers that go round have been made, */
	SETTLE = 40 << 20,    /* and until they are near again, when the way has changed */
	PAUSE = 3,            /* times as long as the row that it follows */
	TOGETHER = 2,         /* rows that are one to pace.h: where both ends read, one is often as much too long as the next is too short */
	ROW_SHORTEST = 32 << 10,
};

uint32_t nic_row_class(uint64_t len)
{
	return len <= ROW_SHORTEST ? NIC_ROW_CLASSES : len <= 256 << 10 ? 0 : len <= 1 << 20 ? 1 : 2;
}

/* What is better for a class is the first guess for the next longer ones. */
static void choose(struct nic_link *link)
{
	uint32_t reads = 0;

	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++) {
		struct nic_pace *p = &link->row.pace[class];

		if (class && !p->cost[0] && !p->cost[1])
			p->way = p[-1].trial ? !p[-1].way : p[-1].way;
		reads |= (uint32_t)p->way << class;
	}
	link->row.reads = reads;
	if (nic_load_relaxed(&link->asked->reads) != reads)
		atomic_store_explicit(&link->asked->reads, reads, memory_order_relaxed); /* a hint, as above */
}

/* A row of so many bytes has taken so long, that way.  When the way that is tried is clearly the worse one it is not tried further. */
void nic_row_took(struct nic_link *link, uint32_t class, bool read, uint64_t ns, uint64_t bytes)
{
	struct nic_row *r = &link->row;
	struct nic_pace *p = &r->pace[class];
	uint64_t cost;

	if (!r->settle[class])
		r->settle[class] = r->seen ? SETTLE : FIRST;
	else if (r->way[class] != read)
		r->settle[class] = SETTLE;
	r->seen = true;
	if (r->way[class] != read || class != r->last_class)
		r->rows = r->ns = r->of_bytes = 0;
	r->way[class] = read;
	r->last_class = class;
	if (r->settle[class] > bytes) {
		r->settle[class] -= (uint32_t)bytes;
		return;
	}
	r->settle[class] = 1;
	r->ns += ns;
	r->of_bytes += bytes;
	if (++r->rows < TOGETHER)
		return;
	cost = r->ns * UNIT / r->of_bytes;
	r->rows = r->ns = r->of_bytes = 0;
	if (!read && !p->trial && cost < GOOD && (!p->cost[0] || p->way == 0)) {
		p->cost[0] = (uint32_t)cost;
		return;
	}
	nic_pace_took(p, read, cost);
	while (p->trial && p->way == read && cost / 3 * 2 > p->cost[!read])
		nic_pace_took(p, read, cost);
	choose(link);
}

static uint32_t messages(const struct nic_row *r)
{
	return r->n[0] + r->n[1];
}

/* All of them are over; some of them may have gone the other way, when that has just changed. */
static void time_row(struct nic_link *link, uint64_t end)
{
	struct nic_row *r = &link->row;
	uint32_t n = messages(r);
	bool read = r->n[1] > r->n[0];

	if (!r->mixed && n >= ROW_LEAST && r->n[!read] <= n / 8)
		nic_row_took(link, r->class, read, nic_clock_since(r->began, end), r->bytes);
	r->n[0] = r->n[1] = 0;
	r->bytes = 0;
	r->mixed = false;
}

static struct nic_link *timed(const struct nic *nic, uint32_t vi)
{
	struct nic_link *link = nic->remote ? NULL : nic_rdma_link(nic, vi);

	return link && link->send_max && link->cma ? link : NULL;
}

void nic_long_begins(struct nic *nic, uint32_t vi)
{
	struct nic_link *link = timed(nic, vi);
	struct nic_row *r;
	uint64_t now, pause;

	if (!link)
		return;
	r = &link->row;
	if (r->open++)
		return;
	now = nic_clock();
	pause = nic_clock_since(r->last, now);
	if (messages(r) >= ROW || r->bytes >= ROW_BYTES)
		time_row(link, pause <= PAUSE * nic_clock_since(r->began, r->last) ? now : r->last);
	else if (pause > MOMENT)
		time_row(link, r->last);
	if (!messages(r))
		r->began = now;
}

void nic_long_over(struct nic *nic, uint32_t vi, uint64_t len, bool read)
{
	struct nic_link *link = timed(nic, vi);
	uint32_t class = nic_row_class(len);
	struct nic_row *r;

	if (!link || !link->row.open)
		return; /* or it began with another link */
	r = &link->row;
	if (!messages(r))
		r->class = class;
	r->mixed |= r->class != class || class == NIC_ROW_CLASSES;
	r->n[read]++;
	r->bytes += len;
	/* Many are told at once that they are over, so what is still open says nothing of how long it takes. */
	if (!--r->open)
		r->last = nic_clock();
}
