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
 * is a pause.  A message by itself is no row: it is not known to be one of many when it is sent.  After one that is never over nothing is timed any more.
 */
#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/clock.h"
#include "nicemu/engine/dma.h"

enum {
	ROW = 64,             /* messages that are timed together, at least, or */
	ROW_BYTES = 16 << 20, /* as many as these */
	ROW_LEAST = 8,
	MOMENT = 50000,       /* ns */
	UNIT = 1 << 20,       /* bytes: what it is that costs so many ns */
	GOOD = 110000,        /* what is not worth a try of the other way: a kernel hardly copies as fast, and a try takes some 50 MB */
	FIRST = 48 << 20,     /* bytes until the buffers that go round have been made, */
	SETTLE = 40 << 20,    /* and until they are near again, when the way has changed */
	PAUSE = 3,            /* times as long as the row that it follows */
	TOGETHER = 2,         /* rows that are one to pace.h: where both ends read, one is often as much too long as the next is too short */
	VAIN = 16,            /* rows in which what is tried does not happen */
	ROW_SHORTEST = 32 << 10,
};

uint32_t nic_row_class(uint64_t len)
{
	return len <= ROW_SHORTEST ? NIC_ROW_CLASSES : len <= 256 << 10 ? 0 : len <= 1 << 20 ? 1 : 2;
}

/* What is better for a class is the first guess for the next longer ones. */
static void choose(struct nic_link *link)
{
	struct nic_row_class *c = link->row.of;
	uint32_t reads = 0;

	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++) {
		struct nic_pace *p = &c[class].pace;

		if (class && !p->cost[0] && !p->cost[1])
			p->way = c[class - 1].pace.trial ? !c[class - 1].pace.way : c[class - 1].pace.way;
		reads |= (uint32_t)p->way << class;
	}
	link->row.reads = reads;
	if (nic_load_relaxed(&link->asked->reads) != reads)
		atomic_store_explicit(&link->asked->reads, reads, memory_order_relaxed); /* a hint, as above */
}

/* Behind a change what is near has to become so. */
static bool settles(struct nic_row *r, struct nic_row_class *c, bool read, uint64_t bytes)
{
	if (!c->settle)
		c->settle = r->seen ? SETTLE : FIRST;
	else if (c->read != read)
		c->settle = SETTLE;
	if (c->read != read)
		c->rows = 0;
	r->seen = true;
	c->read = read;
	if (c->settle > bytes) {
		c->settle -= (uint32_t)bytes;
		return true;
	}
	c->settle = 1;
	return false;
}

/* A row of so many bytes has taken so long, that way.  When the way that is tried is clearly the worse one it is not tried further. */
void nic_row_took(struct nic_link *link, uint32_t class, bool read, uint64_t ns, uint64_t bytes)
{
	struct nic_row_class *c = &link->row.of[class];
	struct nic_pace *p = &c->pace;
	uint64_t cost;

	if (settles(&link->row, c, read, bytes))
		return;
	c->ns = (c->rows ? c->ns : 0) + ns;
	c->bytes = (c->rows ? c->bytes : 0) + bytes;
	if (++c->rows < TOGETHER)
		return;
	c->rows = 0;
	cost = c->ns * UNIT / c->bytes;
	if (!read && !p->trial && p->way == 0 && cost < GOOD) {
		p->cost[0] = (uint32_t)cost;
		return;
	}
	nic_pace_took(p, read, cost);
	while (p->trial && p->way == read && cost / 3 * 2 > p->cost[!read])
		nic_pace_took(p, read, cost);
	choose(link);
}

/* What is to be tried does not happen again and again, since it is no longer many in a row, or not all of one length: later, then. */
static void no_trial(struct nic_link *link, struct nic_pace *p)
{
	p->cost[p->way] = p->cost[p->way] ? p->cost[p->way] : p->cost[!p->way];
	p->way = !p->way;
	p->trial = false;
	p->gone = 0;
	p->period = p->period ? p->period : NIC_PACE_SOON;
	choose(link);
}

static uint32_t messages(const struct nic_row *r)
{
	return r->n[0] + r->n[1];
}

/* Those that are over.  The first of some that are sent without a look in between is sent in any case, and so are all when the way has just changed. */
static void time_row(struct nic_link *link, uint64_t end)
{
	struct nic_row *r = &link->row;
	uint32_t n = messages(r), class = r->class;
	bool read = 2 * r->n[1] >= n, row = n >= ROW_LEAST || r->bytes >= ROW_BYTES;

	if (n && class < NIC_ROW_CLASSES) {
		struct nic_row_class *c = &r->of[class];

		row = row && !r->mixed && (read || (r->n[1] <= n / 8 && 2 * r->met >= n));
		c->vain = row && read == c->pace.way ? 0 : c->vain + 1;
		if (row)
			nic_row_took(link, class, read, nic_clock_since(r->began, end), r->bytes);
		if (c->pace.trial && c->vain >= VAIN)
			no_trial(link, &c->pace);
	}
	r->n[0] = r->n[1] = r->met = 0;
	r->bytes = 0;
	r->mixed = false;
}

static struct nic_link *timed(const struct nic *nic, uint32_t vi)
{
	struct nic_link *link = nic->remote ? NULL : nic_rdma_link(nic, vi);

	return link && link->send_max && link->cma ? link : NULL;
}

bool nic_long_begins(struct nic *nic, uint32_t vi, uint64_t remote, uint64_t len)
{
	struct nic_link *link = timed(nic, vi);
	struct nic_row *r;
	uint64_t now, pause;

	if (!link)
		return false;
	r = &link->row;
	if (remote && nic_dma_plain(link, remote, len)) { /* as fast as can be, which says nothing of others */
		r->mixed |= r->open || messages(r);
		return false;
	}
	if (r->open++) {
		r->met++;
		return true;
	}
	now = nic_clock();
	pause = nic_clock_since(r->last, now);
	if (messages(r) >= ROW || r->bytes >= ROW_BYTES)
		time_row(link, pause <= PAUSE * nic_clock_since(r->began, r->last) ? now : r->last);
	else if (pause > MOMENT)
		time_row(link, r->last);
	if (!messages(r))
		r->began = now;
	return true;
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
