/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of two ways is faster just now?  Found out by going both: the better one for a while, then the other one some times, and so on;
 * the more often it stays the better one, the longer.  Some times, because a way that was not gone for a while finds its data far off.
 * What each costs is the least that it has cost lately, so a time in which somebody else ran does not count; where a way becomes
 * slower, that shows within some ten times.
 *
 * Ticks are those of the processor's counter (clock.h).  Times are those that are timed: where only some are, all of this takes longer.
 */
#ifndef NIC_ENGINE_PACE_H
#define NIC_ENGINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NIC_PACE_FIRST_TRY = 3, /* times, when nothing is known */
	NIC_PACE_TRY = 2,
	NIC_PACE_LONG = 1 << 30, /* ticks that count as so many */
	NIC_PACE_SOON = 32, NIC_PACE_MOST = 512, /* times before the other way is tried again */
};

struct nic_pace {
	uint32_t cost[2]; /* ticks; 0: not known yet */
	uint16_t gone;    /* times, since that way was chosen */
	uint16_t period;  /* times to go it, when it is not a trial */
	uint8_t way;      /* 0 or 1: to go next */
	bool trial;
};

/* The way to go when nothing is being tried. */
static inline uint8_t nic_pace_usual(const struct nic_pace *p)
{
	return p->trial ? !p->way : p->way;
}

static inline bool nic_pace_better(const struct nic_pace *p)
{
	return p->cost[1] < p->cost[0];
}

/* Has the way that was chosen been gone often enough to think again?  Before its time, when it has become the slower one. */
static inline bool nic_pace_enough(const struct nic_pace *p)
{
	if (!p->period)
		return p->gone >= NIC_PACE_FIRST_TRY;
	return p->gone >= (p->trial ? NIC_PACE_TRY : p->period) || (!p->trial && nic_pace_better(p) != p->way);
}

/* That way has been gone, and has taken so many ticks; perhaps not the one to go next, which then still is. */
static inline void nic_pace_took(struct nic_pace *p, uint32_t way, uint64_t ticks)
{
	uint64_t cost = p->cost[way], most = cost && cost < NIC_PACE_LONG / 2 ? 2 * cost : NIC_PACE_LONG;

	ticks = ticks > most ? most : ticks ? ticks : 1;
	p->cost[way] = (uint32_t)(!cost || ticks < cost ? ticks : cost + (ticks - cost + 7) / 8);
	p->gone += way == p->way;
	if (way != p->way || !nic_pace_enough(p))
		return;
	p->gone = 0;
	p->trial = !p->trial;
	if (p->trial) {
		p->way = !p->way;
		return;
	}
	p->period = nic_pace_better(p) == way || !p->period ? NIC_PACE_SOON : p->period < NIC_PACE_MOST ? 2 * p->period : NIC_PACE_MOST;
	p->way = nic_pace_better(p);
}

/* The way to go next is not gone, or it cannot be told what it takes: the other one, then, until it is time to try this one again. */
static inline void nic_pace_in_vain(struct nic_pace *p)
{
	p->cost[p->way] = p->cost[p->way] ? p->cost[p->way] : p->cost[!p->way];
	p->way = !p->way;
	p->trial = false;
	p->gone = 0;
	p->period = p->period ? p->period : NIC_PACE_SOON;
}

#endif
