/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: long messages, many in a row or one at a time.  Are they better sent, in buffers, or read by the receiver?
 *
 * Two copies through buffers that stay in the caches beat one that the kernel makes, where the two processors share a cache.  Where they do not, every
 * line of a buffer goes from one to the other and back, and where messages are longer than the caches the second copy is to and from memory; but then
 * what the sender has just written goes from one to the other anyway.  So it is found out: the receiver times rows of them, so many at a
 * time, and goes the other way now and then (engine/pace.h).  What it finds out is a word beside its claims, which the sender's NIC reads
 * when it is asked (nic_rather_sent).  That word is a hint: any value that it had lately will do, and any value at all does no harm.
 *
 * What is found out is kept for each distance of the two processors (rdma_apart.c).
 *
 * In an exchange, both ways at once, both ends have to go the same way: where cores are far apart two that read take 105 to 130 us for a MB each way, two
 * that send 170, and of two of which one reads and one sends the reader 200 to 300, so neither would begin.  So one of them decides, that in the lower
 * slot, and the other one does as it says.
 *
 * A row begins with its first message and goes on while one is under way, or the next one begins at once.  It is so many of them, which takes as long as
 * until the next row begins: an exchange is over when both directions are, and what makes one faster may make the other slower.  But not if that
 * is a pause.  After one that is never over nothing is timed any more.
 *
 * A message is single if its sender has looked at its NIC since it sent this end the one before, which its NIC tells this one.  If none begins here until
 * it is over, either, it is timed by itself, from its begin to its end: what its sender and this host do in between says nothing.  Else it was the first
 * of a row, which goes as single ones do, so its way says nothing of the row's.  One that is read may be over before the next one begins: then it
 * is both.
 *
 * Reads of the host's own, many in a row, are the same to this NIC as messages that are read or that it has the peer send (a stream), and are timed with
 * them while no message is under way.  Its writes are a kind of their own: in packets, or alone or by halves.  Single ones race by themselves
 * (engine/dma.h), and the first of a row is one.  Where both ends read from, or write to, each other, each decides for itself.
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
	GOOD = 110000,        /* what is not worth a try of the other way where a cache is shared: a kernel hardly copies as fast, and a try takes some 50 MB */
	FIRST = 48 << 20,     /* bytes until the buffers that go round have been made, */
	SETTLE = 40 << 20,    /* and until they are near again, when the way has changed; */
	SETTLE_SINGLE = 8 << 20, /* those of one message at a time are fewer, */
	FIRST_SINGLE = 64 << 20, /* but how they are read best, alone, by halves or as streams, is found out first (engine/dma.h) */
	MUTUAL = 256,         /* messages one way, after which it is seen how many went the other way: some windows, whose messages are sent all at once */
	ALONE = 4 * MUTUAL,   /* messages, or gets, of an end to which none come; */
	PAUSE = 3,            /* times as long as the row that it follows, */
	GOES_ON = 16,         /* and not so many cells that have come */
	TOGETHER = 2,         /* rows that are one to pace.h: where both ends read, one is often as much too long as the next is too short; */
	TOGETHER_BYTES = 64 << 20, /* or one of so many */
	HARDLY = 8,           /* of what it costs, so much less is */
	VAIN = 16,            /* rows, or single ones, in which what is tried does not happen */
	LOOKS = 4 * NIC_ROW_LOOK, /* at how far apart the processors are, of a row */
	LOOK_SINGLE = 8,      /* of so many single ones one */
};

uint32_t nic_row_class(uint64_t len, enum nic_row_kind kind)
{
	uint32_t length = len <= 128 << 10 ? 0 : len <= 1 << 20 ? 1 : len <= 2 << 20 ? 2 : 3;

	return len < NIC_ROW_FROM ? NIC_ROW_CLASSES : length + kind * NIC_ROW_LENGTHS;
}

static bool of_singles(uint32_t class)
{
	return class / NIC_ROW_LENGTHS == NIC_ROW_SINGLE;
}

/* What is better for a class is the first guess for the next longer ones, but those that are guessed to be read. */
static uint32_t best(const struct nic_link *link, struct nic_row_place *at)
{
	struct nic_row_class *c = at->of;
	uint32_t reads = 0;
	bool known = false;

	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++) {
		struct nic_pace *p = &c[class].pace;

		known &= class % NIC_ROW_LENGTHS != 0;
		if (p->cost[0] || p->cost[1])
			known = true;
		else if (known && !nic_row_guess(link, class, at->apart))
			p->way = nic_pace_usual(&c[class - 1].pace);
		reads |= (uint32_t)p->way << class;
	}
	return reads;
}

void nic_row_choose(struct nic_link *link)
{
	struct nic_row *r = &link->row;

	r->reads = best(link, &r->at[r->place]) & ~nic_row_settled(link);
	if (r->follows)
		r->reads = (r->reads & ~r->follows) | (nic_load_relaxed(&link->asking->reads) & r->follows); /* a hint, as above */
	if (nic_load_relaxed(&link->asked->reads) != r->reads)
		atomic_store_explicit(&link->asked->reads, r->reads, memory_order_relaxed);
}

/* Behind a change what is near has to become so. */
static bool settles(struct nic_row *r, uint32_t class, bool read, uint64_t bytes)
{
	struct nic_row_class *c = &r->at[r->place].of[class];
	uint32_t *settle = &r->settle[class], again = !of_singles(class) ? SETTLE : c->pace.cost[read] ? SETTLE_SINGLE : FIRST_SINGLE;

	if (!*settle)
		*settle = r->seen || of_singles(class) ? again : FIRST;
	else if (r->read[class] != read)
		*settle = again;
	if (r->read[class] != read)
		c->rows = 0;
	r->seen = true;
	r->read[class] = read;
	if (*settle > bytes / 2) { /* more than half of it does */
		*settle = *settle > bytes ? *settle - (uint32_t)bytes : 1;
		return true;
	}
	*settle = 1;
	return false;
}

/* A single one that has taken much longer than others says that its processor was taken away for a while, and no more. */
static uint64_t at_most_twice(uint64_t cost, uint64_t ns, uint64_t bytes)
{
	uint64_t most = 2 * cost * bytes / UNIT;

	return cost && ns > most ? most : ns;
}

/* Do these count as one? */
static bool enough(const struct nic_row_class *c, uint32_t class)
{
	return of_singles(class) ? c->rows >= ROW || c->bytes >= ROW_BYTES : c->rows >= TOGETHER || c->bytes >= TOGETHER_BYTES;
}

static bool is_clearly_worse(uint64_t cost, uint64_t other)
{
	return cost / 3 * 2 > other;
}

/* Is that way tried, and clearly the worse one? */
static bool is_hopeless(const struct nic_pace *p, bool read, uint64_t cost)
{
	return p->trial && p->way == read && is_clearly_worse(cost, p->cost[!read]);
}

/* The first of a class: what is guessed, and clearly better for the next shorter ones, too, is gone without a try of the other way at once. */
static void take_over(struct nic_link *link, uint32_t class)
{
	struct nic_row_place *at = &link->row.at[link->row.place];
	struct nic_pace *p = &at->of[class].pace;
	const struct nic_pace *shorter;
	bool guess = nic_row_guess(link, class, at->apart);

	if (class % NIC_ROW_LENGTHS == 0 || p->cost[0] || p->cost[1] || p->way != guess)
		return;
	shorter = &at->of[class - 1].pace;
	if (shorter->cost[guess] && is_clearly_worse(shorter->cost[!guess], shorter->cost[guess]))
		*p = (struct nic_pace){ .cost = { shorter->cost[0], shorter->cost[1] }, .period = NIC_PACE_SOON, .way = guess };
}

/*
 * A row, or a single one, of so many bytes has taken so long, that way.  When the way that is tried is clearly the worse one it is not tried further.
 * Of single ones nothing is good enough not to try the other way: one copy may always be faster than two behind each other.
 */
void nic_row_took(struct nic_link *link, uint32_t class, bool read, uint64_t ns, uint64_t bytes)
{
	struct nic_row_place *at = &link->row.at[link->row.place];
	struct nic_row_class *c = &at->of[class];
	struct nic_pace *p = &c->pace;
	uint64_t cost;

	take_over(link, class);
	if (settles(&link->row, class, read, bytes))
		return;
	if (of_singles(class))
		ns = at_most_twice(p->cost[read], ns, bytes);
	c->ns = (c->rows ? c->ns : 0) + ns;
	c->bytes = (c->rows ? c->bytes : 0) + bytes;
	c->rows++;
	if (!enough(c, class))
		return;
	c->rows = 0;
	cost = c->ns * UNIT / c->bytes;
	if (!of_singles(class) && !read && !p->trial && p->way == 0 && cost < GOOD && !nic_row_is_far(link, at->apart)) {
		p->cost[0] = (uint32_t)cost;
		return;
	}
	/* What is hardly better is not worth a change, behind which nothing is near. */
	if (read != nic_pace_usual(p))
		cost += cost / HARDLY;
	nic_pace_took(p, read, cost);
	while (is_hopeless(p, read, cost))
		nic_pace_took(p, read, cost);
	nic_row_choose(link);
}

static uint32_t messages(const struct nic_row *r)
{
	return r->n[0] + r->n[1];
}

/* Who exchanges messages is expected to exchange longer ones, too: of these it takes hundreds of megabytes to see it. */
static void expect_longer(struct nic_row *r, bool near)
{
	for (uint32_t class = 1; class < NIC_ROW_LENGTHS; class ++)
		if (!(r->decided >> class & 1))
			r->mutual = (r->mutual & ~(1u << class)) | (near && r->mutual >> (class - 1) & 1) << class;
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
		r->decided |= 1u << class;
	}
	if (link->migrates)
		expect_longer(r, nic_row_migrates(link, r->ns));
	r->follows = nic->me > link->peer ? r->mutual : 0;
	return r->mutual != was;
}

static void follow(const struct nic *nic, struct nic_link *link)
{
	if (is_exchange(nic, link) || link->row.follows)
		nic_row_choose(link);
}

/* Who only sends is told of no row that is over, but that it was an exchange once does not go on for ever; its windows may be long. */
void nic_row_sends(const struct nic *nic, struct nic_link *link, uint64_t len, bool single)
{
	uint32_t class = nic_row_class(len, single ? NIC_ROW_SINGLE : NIC_ROW_MANY);
	struct nic_row *r = &link->row;

	r->gets = 0;
	if (class < NIC_ROW_CLASSES && ++r->sent[class] >= (r->decided >> class & 1 ? ALONE : MUTUAL))
		follow(nic, link);
}

/* Nor for who only gets. */
static void gets(struct nic_link *link)
{
	struct nic_row *r = &link->row;

	if (++r->gets != ALONE)
		return;
	r->mutual &= ~((1u << NIC_ROW_LENGTHS) - 1);
	r->follows &= r->mutual;
	for (uint32_t class = 0; class < NIC_ROW_LENGTHS; class ++)
		r->came[class] = r->sent[class] = 0;
	nic_row_choose(link);
}

/* What has gone that way, of that class: it counts, and has taken so long, or it says nothing.  What is tried and does not happen is not tried for ever. */
static void judge(struct nic_link *link, uint32_t class, bool counts, bool read, uint64_t ns, uint64_t bytes)
{
	struct nic_row_class *c;

	if (class >= NIC_ROW_CLASSES || (link->row.follows | nic_row_settled(link)) >> class & 1)
		return;
	c = &link->row.at[link->row.place].of[class];
	c->vain = counts && read == c->pace.way ? 0 : c->vain + 1;
	if (counts)
		nic_row_took(link, class, read, ns, bytes);
	if (c->pace.trial && c->vain >= VAIN) { /* it is no longer many in a row, or not all of one length */
		nic_pace_in_vain(&c->pace);
		nic_row_choose(link);
	}
}

/* Those that are over.  The first of some that are sent without a look in between goes as single ones do; all are sent when the way has just changed. */
static void time_row(const struct nic *nic, struct nic_link *link, uint64_t end)
{
	struct nic_row *r = &link->row;
	uint32_t n = messages(r), others = n - r->firsts[0] - r->firsts[1], reads = r->n[1] - r->firsts[1];
	bool read = 2 * reads >= others, counts = others && (n >= ROW_LEAST || r->bytes >= ROW_BYTES) && !r->mixed;

	if (n) {
		follow(nic, link);
		judge(link, r->class, counts && (read || (reads <= others / 8 && 2 * r->met >= n)), read, nic_clock_since(r->began, end), r->bytes);
		r->look = 0;
	}
	r->n[0] = r->n[1] = r->firsts[0] = r->firsts[1] = r->met = 0;
	r->bytes = 0;
	r->mixed = false;
}

static struct nic_link *timed(const struct nic *nic, uint32_t vi)
{
	struct nic_link *link = nic->remote ? NULL : nic_rdma_link(nic, vi);

	return link && link->send_max && link->cma ? link : NULL;
}

/* Has the peer sent others meanwhile?  In a window of messages that are eager as long as there is room the long ones are not all. */
static bool goes_on(const struct nic_link *link)
{
	return link->rx_pos - link->row.last_pos >= GOES_ON;
}

/* `single`: the class of one that is, as its sender says; else 0. */
static void begins(const struct nic *nic, struct nic_link *link, uint32_t single)
{
	struct nic_row *r = &link->row;
	uint64_t now, pause;

	if (single && r->singles % LOOK_SINGLE == 1)
		r->look = LOOKS - NIC_ROW_LOOK;
	if (r->look < LOOKS)
		nic_row_look(link);
	if (r->open++) {
		r->met++;
		if (r->single)
			judge(link, r->single, false, false, 0, 0);
		r->single = 0;
		r->singles = 0;
		return;
	}
	now = nic_clock();
	pause = goes_on(link) ? 0 : nic_clock_since(r->last, now);
	if (messages(r) >= ROW || r->bytes >= ROW_BYTES)
		time_row(nic, link, pause <= PAUSE * nic_clock_since(r->began, r->last) ? now : r->last);
	else if (pause > MOMENT || (single && r->singles))
		time_row(nic, link, r->last);
	if (!messages(r))
		r->began = now;
	r->single = single;
	r->singles = single ? r->singles + 1 : 0;
	r->since = now;
}

static void is_over(const struct nic *nic, struct nic_link *link, enum nic_row_kind kind, uint64_t len, bool read, bool single)
{
	uint32_t class = nic_row_class(len, kind);
	struct nic_row *r = &link->row;

	/* Many are told at once that they are over, so what is still open says nothing of how long it takes. */
	if (!--r->open) {
		r->last = nic_clock();
		r->last_pos = link->rx_pos;
	}
	if (r->single) {
		follow(nic, link);
		judge(link, nic_row_class(len, NIC_ROW_SINGLE), true, read, nic_clock_since(r->since, r->last), len);
		if (!messages(r))
			return;
	}
	if (!messages(r))
		r->class = class;
	r->mixed |= r->class != class || class == NIC_ROW_CLASSES;
	r->n[read]++;
	r->firsts[read] += single;
	r->bytes += len;
	/* What has taken far too long already need not wait for the next row, whose messages may all go this way, too. */
	if (!r->open && r->bytes >= TOGETHER_BYTES && class < NIC_ROW_CLASSES &&
	    is_hopeless(&r->at[r->place].of[class].pace, read, nic_clock_since(r->began, r->last) * UNIT / r->bytes))
		time_row(nic, link, r->last);
}

bool nic_long_begins(struct nic *nic, uint32_t vi, uint64_t remote, uint64_t len, bool single)
{
	struct nic_link *link = timed(nic, vi);
	struct nic_row *r;

	if (!link)
		return false;
	r = &link->row;
	if (remote && nic_dma_plain(link, remote, len)) { /* as fast as can be, which says nothing of others */
		r->mixed |= r->open || messages(r);
		r->single = 0;
		return false;
	}
	begins(nic, link, single ? nic_row_class(len, NIC_ROW_SINGLE) : 0);
	return true;
}

void nic_long_over(struct nic *nic, uint32_t vi, uint64_t len, bool read, bool single)
{
	struct nic_link *link = timed(nic, vi);
	uint32_t class = nic_row_class(len, single ? NIC_ROW_SINGLE : NIC_ROW_MANY);

	if (!link || link->row.open == link->row.own)
		return; /* it began with another link */
	link->row.gets = 0;
	if (class < NIC_ROW_CLASSES)
		link->row.came[class]++;
	is_over(nic, link, NIC_ROW_MANY, len, read, single);
}

bool nic_row_has(const struct nic *nic, struct nic_link *link, bool write, uint64_t remote, uint32_t len)
{
	return !nic->remote && link->cma && link->send_max && len <= (write ? link->put_busy : link->stream_busy) && link->row.open == link->row.own &&
	       !nic_dma_plain(link, remote, len);
}

void nic_row_begins(const struct nic *nic, struct nic_link *link)
{
	begins(nic, link, 0);
	link->row.own++;
}

void nic_row_over(const struct nic *nic, struct nic_link *link, bool write, uint32_t len, bool read, bool good)
{
	link->row.own--;
	link->row.mixed |= !good;
	if (!write)
		gets(link);
	is_over(nic, link, write ? NIC_ROW_PUT : NIC_ROW_MANY, len, read, false);
}
