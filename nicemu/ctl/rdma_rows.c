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
 * Which way is the better one depends on how far apart the two processors are, more than on anything else, and processes, or the processors of a virtual
 * machine, are moved.  What was found out is kept for each distance, or place: how long a load takes of a line that the peer writes all the time, the
 * median of the last few for which it had written in between.  So who comes back to a place, and that may be every second, need not find out again.
 *
 * In an exchange, both ways at once, both ends have to go the same way: where cores are far apart two that read take 105 to 130 us for a MB each way, two
 * that send 170, and of two of which one reads and one sends the reader 200 to 300, so neither would begin.  So one of them decides, that in the lower
 * slot, and the other one does as it says.
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
	MUTUAL = 256,         /* messages one way, after which it is seen how many went the other way: some windows, whose messages are sent all at once */
	PAUSE = 3,            /* times as long as the row that it follows */
	TOGETHER = 2,         /* rows that are one to pace.h: where both ends read, one is often as much too long as the next is too short */
	HARDLY = 8,           /* of what it costs, so much less is */
	VAIN = 16,            /* rows in which what is tried does not happen */
	LOOKS = 4,            /* at how far apart the processors are, of a row */
	NEAR = 20,            /* ns, besides the half, that are not another place: where the counter has steps, and in which cache the line is, differ so much */
	APART_MOST = 1 << 20, /* ns */
	ROW_SHORTEST = 32 << 10,
};

uint32_t nic_row_class(uint64_t len)
{
	return len <= ROW_SHORTEST ? NIC_ROW_CLASSES : len <= 256 << 10 ? 0 : len <= 1 << 20 ? 1 : 2;
}

/* The way to go when nothing is being tried. */
static uint8_t usual_way(const struct nic_pace *p)
{
	return p->trial ? !p->way : p->way;
}

/* What is better for a class is the first guess for the next longer ones. */
static uint32_t best(struct nic_row_class *c)
{
	uint32_t reads = 0;
	bool known = false;

	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++) {
		struct nic_pace *p = &c[class].pace;

		if (p->cost[0] || p->cost[1])
			known = true;
		else if (known)
			p->way = usual_way(&c[class - 1].pace);
		reads |= (uint32_t)p->way << class;
	}
	return reads;
}

static void choose(struct nic_link *link)
{
	struct nic_row *r = &link->row;

	r->reads = best(r->at[r->place].of);
	if (r->follows)
		r->reads = (r->reads & ~r->follows) | (nic_load_relaxed(&link->asking->reads) & r->follows); /* a hint, as above */
	if (nic_load_relaxed(&link->asked->reads) != r->reads)
		atomic_store_explicit(&link->asked->reads, r->reads, memory_order_relaxed);
}

/* 0: not known. */
static bool same_place(uint32_t a, uint32_t b)
{
	return a && b && a <= b + b / 2 + NEAR && b <= a + a / 2 + NEAR;
}

/* The place where a line takes so long: known, or a new one, for which the one that was left longest ago is forgotten. */
static uint32_t place_of(const struct nic_row *r, uint32_t ns)
{
	uint32_t oldest = r->place ? 0 : 1;

	if (!r->at[r->place].apart || same_place(r->at[r->place].apart, ns))
		return r->place;
	for (uint32_t i = 0; i < NIC_ROW_PLACES; i++) {
		if (same_place(r->at[i].apart, ns))
			return i;
		if (i != r->place && r->at[i].left < r->at[oldest].left)
			oldest = i;
	}
	return oldest;
}

static uint32_t median(const uint32_t *from)
{
	for (uint32_t i = 0; i < NIC_ROW_LOOKS; i++) {
		uint32_t less = 0, same = 0;

		for (uint32_t k = 0; k < NIC_ROW_LOOKS; k++) {
			less += from[k] < from[i];
			same += from[k] == from[i];
		}
		if (less <= NIC_ROW_LOOKS / 2 && less + same > NIC_ROW_LOOKS / 2)
			return from[i];
	}
	return 0;
}

/* At first as where it was. */
static struct nic_row_place new_place(const struct nic_row_place *last, uint32_t ns)
{
	struct nic_row_place at = { .apart = ns };

	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++)
		at.of[class].pace.way = usual_way(&last->of[class].pace);
	return at;
}

void nic_row_apart(struct nic_link *link, uint64_t ns)
{
	struct nic_row *r = &link->row;
	uint32_t usual, place;

	r->apart[r->looked++ % NIC_ROW_LOOKS] = ns < APART_MOST ? (uint32_t)ns : APART_MOST;
	if (r->looked < NIC_ROW_LOOKS)
		return;
	usual = median(r->apart);
	place = place_of(r, usual);
	if (!r->at[r->place].apart)
		r->at[r->place].apart = usual;
	if (place == r->place)
		return;
	if (!same_place(r->at[place].apart, usual))
		r->at[place] = new_place(&r->at[r->place], usual);
	r->at[r->place].left = ++r->places;
	r->place = place;
	r->mixed = true;
	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++)
		r->at[place].of[class].rows = 0;
	choose(link);
}

/* Only what the peer has written since comes from there. */
static void look_how_far(struct nic_link *link)
{
	struct nic_row *r = &link->row;
	uint64_t word, ns;

	if (r->look >= LOOKS)
		return;
	(void)nic_load_relaxed(&link->slot->ncounters); /* the page, with whatever that takes; any value will do */
	ns = nic_clock_of_load(&link->slot->counter[NIC_C_packets_sent], &word);
	if (!ns || word == r->count)
		return;
	r->count = word;
	r->look++;
	nic_row_apart(link, ns);
}

/* Behind a change what is near has to become so. */
static bool settles(struct nic_row *r, uint32_t class, bool read, uint64_t bytes)
{
	struct nic_row_class *c = &r->at[r->place].of[class];
	uint32_t *settle = &r->settle[class];

	if (!*settle)
		*settle = r->seen ? SETTLE : FIRST;
	else if (r->read[class] != read)
		*settle = SETTLE;
	if (r->read[class] != read)
		c->rows = 0;
	r->seen = true;
	r->read[class] = read;
	if (*settle > bytes) {
		*settle -= (uint32_t)bytes;
		return true;
	}
	*settle = 1;
	return false;
}

/* A row of so many bytes has taken so long, that way.  When the way that is tried is clearly the worse one it is not tried further. */
void nic_row_took(struct nic_link *link, uint32_t class, bool read, uint64_t ns, uint64_t bytes)
{
	struct nic_row_class *c = &link->row.at[link->row.place].of[class];
	struct nic_pace *p = &c->pace;
	uint64_t cost;

	if (settles(&link->row, class, read, bytes))
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
	/* What is hardly better is not worth a change, behind which nothing is near. */
	if (read != usual_way(p))
		cost += cost / HARDLY;
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

/* Are there long messages both ways?  Neither many times as many as the other ones; it takes some to begin, and more to end.  Is that another answer? */
static bool is_exchange(const struct nic *nic, struct nic_link *link)
{
	struct nic_row *r = &link->row;
	uint32_t was = r->mutual;

	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++) {
		uint32_t few = r->came[class] < r->sent[class] ? r->came[class] : r->sent[class];
		uint32_t many = r->came[class] + r->sent[class] - few;

		if (many < MUTUAL)
			continue;
		r->mutual &= ~(1u << class);
		r->mutual |= (uint32_t)(few >= many / (was >> class & 1 ? 8 : 4)) << class;
		r->came[class] = r->sent[class] = 0;
	}
	r->follows = nic->me > link->peer ? r->mutual : 0;
	return r->mutual != was;
}

/* Those that are over.  The first of some that are sent without a look in between is sent in any case, and so are all when the way has just changed. */
static void time_row(const struct nic *nic, struct nic_link *link, uint64_t end)
{
	struct nic_row *r = &link->row;
	uint32_t n = messages(r), class = r->class;
	bool read = 2 * r->n[1] >= n, row = n >= ROW_LEAST || r->bytes >= ROW_BYTES;

	if (n && class < NIC_ROW_CLASSES)
		r->came[class] += n;
	if (is_exchange(nic, link) || r->follows)
		choose(link);
	if (n && class < NIC_ROW_CLASSES && !(r->follows >> class & 1)) {
		struct nic_row_class *c = &r->at[r->place].of[class];

		row = row && !r->mixed && (read || (r->n[1] <= n / 8 && 2 * r->met >= n));
		c->vain = row && read == c->pace.way ? 0 : c->vain + 1;
		if (row)
			nic_row_took(link, class, read, nic_clock_since(r->began, end), r->bytes);
		if (c->pace.trial && c->vain >= VAIN)
			no_trial(link, &c->pace);
	}
	r->n[0] = r->n[1] = r->met = r->look = 0;
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
	look_how_far(link);
	if (r->open++) {
		r->met++;
		return true;
	}
	now = nic_clock();
	pause = nic_clock_since(r->last, now);
	if (messages(r) >= ROW || r->bytes >= ROW_BYTES)
		time_row(nic, link, pause <= PAUSE * nic_clock_since(r->began, r->last) ? now : r->last);
	else if (pause > MOMENT)
		time_row(nic, link, r->last);
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
