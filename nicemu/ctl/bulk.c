/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program, sending side: a long message in pool buffers, one after the other.  Do few of them go round, or as many as there is credit for?
 *
 * A buffer that comes back while its lines are still in the second-level caches of the two processors goes from one to the other directly; of
 * many the lines fall out, and lie in the cache that both share, if there is one with room, or else somewhere that takes twice as long.  On one virtual
 * machine, 60 ns apart, few have 21 GB/s and many 30, or for ten seconds, or a minute, 11.5; nothing but the time it takes tells which it is.  So rounds of
 * buffers are timed as they leave, and the other way is gone now and then (engine/pace.h).
 *
 * Few: the packets say so (give.c), so the peer returns them at once, some at a time (buf.c), and this side looks for them before it takes others; nor are more
 * under way than it takes to keep the peer busy, which writes down exactly what it has taken.  A peer that takes none for a while is doing
 * something else; that is no reason to wait for it.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/clock.h"

enum {
	FEW = 6,          /* under way */
	LENT = 8,         /* and not come back, before this side looks for them */
	ROUND = 128,      /* that are timed together */
	PAUSE = 50000,    /* ns without one, behind which a round begins anew */
	PATIENCE = 20000, /* ns */
};

static uint32_t under_way(const struct nic_link *link)
{
	return link->tx_pos - nic_load_relaxed(link->tx_exact); /* a hint */
}

/* Few go round: has the peer enough of them, and is it at them? */
static bool has_enough(struct nic_link *link, uint64_t now)
{
	struct nic_bulk *b = &link->bulk;

	if (under_way(link) < FEW) {
		b->away = false;
		return false;
	}
	if (!b->away && nic_clock_since(b->left, now) < PATIENCE)
		return true;
	b->away = true;
	b->n = 0; /* which says nothing of this way */
	return false;
}

bool nic_bulk_turn(struct nic *nic, uint32_t vi)
{
	struct nic_link *link = nic->remote ? NULL : nic->link[nic_vi(nic, vi)->peer_slot & (NIC_MAX_SLOTS - 1)];
	uint32_t looks = nic->polls + nic->looks;
	struct nic_bulk *b;
	uint64_t now;

	if (!link)
		return true;
	b = &link->bulk;
	now = nic_clock();
	if (nic_clock_since(b->asked, now) > PAUSE) {
		b->n = 0;
		b->left = now;
	}
	b->asked = now;
	if (b->pace.way && ((link->balance <= -LENT && looks == b->looks) || has_enough(link, now)))
		return false;
	if (b->n == ROUND) {
		nic_pace_took(&b->pace, b->pace.way, nic_clock_since(b->began, now));
		b->n = 0;
	}
	if (!b->n++)
		b->began = now;
	b->left = now;
	b->looks = looks;
	link->few = b->pace.way;
	return true;
}
