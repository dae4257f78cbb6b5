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
 * something else; that is no reason to wait for it.  Nor has it to wait for this side, if that is: who was held up and does not come back at once has many.
 *
 * Where lines migrate (util/atomic.h) few go round, and nothing is timed: what they leave of the caches to the programs at both ends is not in the time
 * of a round.  Of exchanges in which each message is written anew and read few make 1.4 times as many, in rounds that take as long (docs/findings.md,
 * "Few, where lines migrate").
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/clock.h"

enum {
	FEW = 6,          /* under way */
	LENT = 8,         /* and not come back, before this side looks for them */
	ROUND = 128,      /* that are timed together */
	PAUSE = 50000,    /* ns without one, behind which a round begins anew, */
	AWAY = 500000,    /* and where lines migrate this side was held up for nothing: of an exchange it may copy out what has come meanwhile */
	PATIENCE = 20000, /* ns */
	VAIN = 16,        /* rounds of few that do not come to their end */
	MANY = 32 * ROUND, /* buffers, behind which few go round again where lines migrate */
};

static bool few(const struct nic_link *link)
{
	return link->migrates ? !link->bulk.many : link->bulk.pace.way;
}

/* How few go cannot be told here, or they are not for this program. */
static void give_up(struct nic_link *link)
{
	struct nic_bulk *b = &link->bulk;

	b->vain = 0;
	if (link->migrates)
		b->many = MANY;
	else
		nic_pace_in_vain(&b->pace);
}

/* It has come to its end, at that time? */
static bool is_over(struct nic_link *link, uint64_t end)
{
	struct nic_bulk *b = &link->bulk;

	if (!b->running || b->sent < ROUND)
		return false;
	nic_pace_took(&b->pace, b->pace.way, nic_clock_since(b->began, end));
	b->running = false;
	b->vain = 0;
	return true;
}

/* The round says nothing. */
static void no_round(struct nic_link *link)
{
	struct nic_bulk *b = &link->bulk;

	if (b->running && b->pace.way && ++b->vain == VAIN)
		give_up(link);
	b->running = false;
}

/* Few go round: has the peer enough of them, and is it at them? */
static bool has_enough(struct nic_link *link, uint64_t now)
{
	uint32_t taken = nic_load_relaxed(link->tx_exact); /* a hint: any value does no more than hold this up for so long */
	struct nic_bulk *b = &link->bulk;

	if (b->away && taken == b->taken)
		return false;
	b->away = false;
	if (link->tx_pos - taken < FEW)
		return false;
	if (nic_clock_since(b->left, now) < PATIENCE)
		return true;
	b->away = true;
	b->taken = taken;
	no_round(link);
	return false;
}

static bool is_held(struct nic_link *link, uint32_t looks, uint64_t now)
{
	const struct nic_bulk *b = &link->bulk;

	return few(link) && (has_enough(link, now) || (link->balance <= -LENT && !b->away && looks == b->looks));
}

bool nic_bulk_turn(struct nic *nic, uint32_t vi)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic->remote || ctx->no_short ? NULL : nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	uint32_t looks = nic->polls + nic->looks;
	struct nic_bulk *b;
	uint64_t now;

	if (!link)
		return true;
	b = &link->bulk;
	if (b->granted && link->tx_pos != b->pos) { /* or there was no buffer for it */
		b->sent++;
		b->many -= b->many != 0;
	}
	b->granted = false;
	now = nic_clock();
	if (nic_clock_since(b->asked, now) > (link->migrates ? AWAY : PAUSE)) {
		if (!is_over(link, b->asked)) /* all but the last one had left then */
			no_round(link);
		if (b->held && few(link)) /* it is this side that is doing something else */
			give_up(link);
		b->left = now;
	}
	b->asked = now;
	b->held = is_held(link, looks, now);
	if (b->held)
		return false;
	if (!link->migrates && (is_over(link, now) || !b->running)) {
		b->running = true;
		b->began = now;
		b->sent = 0;
	}
	b->granted = true;
	b->pos = link->tx_pos;
	b->left = now;
	b->looks = looks;
	link->few = few(link);
	nic_count(nic, few_buffers, link->few);
	return true;
}
