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
		at.of[class].pace.way = nic_pace_usual(&last->of[class].pace);
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
	nic_row_choose(link);
}

/* Only what the peer has written since comes from there: it takes a packet for whatever both NICs have a part in. */
void nic_row_look(struct nic_link *link)
{
	struct nic_row *r = &link->row;
	uint64_t word, ns;

	(void)nic_load_relaxed(&link->slot->ncounters); /* the page, with whatever that takes; any value will do */
	ns = nic_clock_of_load(&link->slot->counter[NIC_C_packets_received], &word);
	if (!ns || word == r->count) {
		r->look++;
		return;
	}
	r->count = word;
	r->look += NIC_ROW_LOOK;
	nic_row_apart(link, ns);
}
