/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: how far apart are the processors of this process and of its peer just now?
 *
 * Which way is the better one for long messages depends on that more than on anything else, and processes, or the processors of a virtual
 * machine, are moved.  What was found out (rdma_rows.c) is kept for each distance, or place: how long a load takes of a line that the peer writes all the
 * time, the median of the last few for which it had written in between.  So who comes back to a place, and that may be every second, need not find out again.
 */
#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/clock.h"

enum {
	NEAR = 20,            /* ns, besides the half, that are not another place: where the counter has steps, and in which cache the line is, differ so much */
	APART_MOST = 1 << 20, /* ns */
};

bool nic_row_is_far(const struct nic_link *link, uint32_t apart)
{
	return apart >= link->row.far;
}

/* Do lines migrate within a cache that the processors share? */
bool nic_row_migrates(const struct nic_link *link, uint32_t apart)
{
	return link->migrates && apart && !nic_row_is_far(link, apart);
}

/*
 * What is longer than 1 MB fits into no cache when it is many, and where none is shared every line of a buffer goes to and fro, which for up to 128 KB takes no
 * longer than a system call.  Single ones that both ends read take twice as long where they exchange them, and little less where they do not.  Where lines
 * migrate few buffers go round (bulk.c), so what is long takes no more than what is short.
 */
bool nic_row_guess(const struct nic_link *link, uint32_t class, uint32_t apart)
{
	if (class < NIC_ROW_LENGTHS && nic_row_migrates(link, apart))
		return false;
	return class % NIC_ROW_LENGTHS >= (nic_row_is_far(link, apart) && class / NIC_ROW_LENGTHS != NIC_ROW_SINGLE ? 1 : 2);
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

/* It is so far there: at first as where it was, if that was not as guessed, else as is guessed. */
static void guess(const struct nic_link *link, struct nic_row_place *at, uint32_t ns, const struct nic_row_place *last)
{
	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++) {
		struct nic_pace *p = &at->of[class].pace;
		uint8_t was = nic_pace_usual(&last->of[class].pace);

		if (!p->cost[0] && !p->cost[1])
			p->way = was == nic_row_guess(link, class, last->apart) ? nic_row_guess(link, class, ns) : was;
	}
	at->apart = ns;
}

void nic_row_start(struct nic_link *link)
{
	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++)
		link->row.at[link->row.place].of[class].pace.way = nic_row_guess(link, class, 0);
	nic_row_choose(link);
}

void nic_row_apart(struct nic_link *link, uint64_t ns)
{
	struct nic_row *r = &link->row;
	uint32_t usual, place, settled;

	r->apart[r->looked++ % NIC_ROW_LOOKS] = ns < APART_MOST ? (uint32_t)ns : APART_MOST;
	if (r->looked < NIC_ROW_LOOKS)
		return;
	usual = median(r->apart);
	place = place_of(r, usual);
	settled = nic_row_settled(link);
	r->ns = usual;
	if (nic_row_settled(link) != settled)
		nic_row_choose(link);
	if (!r->at[r->place].apart) {
		guess(link, &r->at[r->place], usual, &r->at[r->place]);
		nic_row_choose(link);
	}
	if (place == r->place)
		return;
	if (!same_place(r->at[place].apart, usual)) {
		r->at[place] = (struct nic_row_place){ .apart = 0 };
		guess(link, &r->at[place], usual, &r->at[r->place]);
	}
	r->at[r->place].left = ++r->places;
	r->place = place;
	r->mixed = true;
	for (uint32_t class = 0; class < NIC_ROW_CLASSES; class ++)
		r->at[place].of[class].rows = 0;
	nic_row_choose(link);
}

/* Only what the peer has written since comes from there: it takes a packet for whatever both NICs have a part in. */
void nic_row_look(struct nic_link *link)
{
	struct nic_row *r = &link->row;
	uint64_t word, ns;

	/* The page, with whatever that takes, by a line that never changes; not by one next to it, with which a processor fetches that one, too. */
	(void)__atomic_load_n(link->slot->counter_row[0].name, __ATOMIC_RELAXED);
	ns = nic_clock_of_load(&link->slot->counter[NIC_C_packets_received], &word);
	if (!ns || word == r->count) {
		r->look++;
		return;
	}
	r->count = word;
	r->look += NIC_ROW_LOOK;
	nic_row_apart(link, ns);
}
