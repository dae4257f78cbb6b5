/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What progress does when pass after pass finds nothing: VIPL plans it, by how many processes want the cores and by what
 * this wait has gone through.  Here it is decided how long a sleep may be at most: what this module waits for comes as
 * packets, which end it; but others may poll beside it, and what they wait for does not.
 */
#include "cmpi/pm_via/via.h"

enum {
	LOOKS_FIRST = 256, /* until VIPL says otherwise */
	SPARED = 32,       /* transfers for each time that the core is offered */
	/* Microseconds. */
	SLEEP_ALONE = 10000,
	SLEEP_THREADS = 1000,   /* another thread may finish what this one waits for */
	SLEEP_CONNECTING = 200, /* the answer is looked for; the one who gives it rings, unless it comes in between */
};

static VIP_ULONG longest(const struct cmpi *c)
{
	/* Work that goes on with the next pass, or events of others, or nobody waits. */
	if (!c->alone || __atomic_load_n(&c->only_looks, __ATOMIC_RELAXED) || c->flow || c->done || c->lost)
		return 0;
	if (c->connecting)
		return SLEEP_CONNECTING;
	return c->engine.threads ? SLEEP_THREADS : SLEEP_ALONE;
}

/* While one thread rests, others may make progress; where cores are short, they offer theirs, too. */
static void rest_beside(struct cmpi *c)
{
	VIPX_WAIT wait = {.Rest = VIPX_REST_YIELD};

	if (c->idle_mask)
		return;
	via_unlock(c);
	VipxWaitRest(&wait);
	via_lock(c);
}

static void follow(struct cmpi *c, VIP_ULONG looks)
{
	c->idle_mask = (uint32_t)looks - 1;
	__atomic_store_n(&c->crowded, looks == 1, __ATOMIC_RELAXED); /* read without the lock: see cmpi_progress */
}

void via_wait_init(struct cmpi *c)
{
	follow(c, LOOKS_FIRST);
}

void via_wait(struct cmpi *c)
{
	if (c->resting) {
		rest_beside(c);
		return;
	}
	if (c->idle <= c->idle_mask + 1)
		c->wait.Began = 0;
	c->wait.Lends = via_wait_lends(c);
	follow(c, VipxWaitPlan(c->nic, &c->wait, longest(c)));
	if (c->wait.Rest == VIPX_REST_SPIN)
		return;
	c->resting = true;
	via_unlock(c);
	VipxWaitRest(&c->wait);
	via_lock(c);
	c->resting = false;
}

/*
 * A caller who has been told to offer his core after each pass that finds nothing does it where each has its own.  Where cores are short it is done
 * here, and he does not hear that nothing was found: his own offer would take as long as the others have the core, and look like work.
 */
bool via_wait_lends(const struct cmpi *c)
{
	return !c->idle_mask && c->lends && *c->lends;
}

/*
 * A transfer that is complete when it is started leaves nothing to be found, but who looks after many of them has no time for rests; some of them
 * wait for what transfers show, so the core is offered now and then, but for no sleep.  A program that only looks may wait in a loop of its own,
 * for somebody who needs the core: that is offered more often, but work of a tenth of a microsecond between two looks is common, and an offer
 * takes more.
 */
bool via_wait_spared(struct cmpi *c)
{
	/* Relaxed: another thread's word comes with this look or with the next. */
	bool moved = __atomic_load_n(&c->moved, __ATOMIC_RELAXED);
	uint8_t every = __atomic_load_n(&c->only_looks, __ATOMIC_RELAXED);

	if (moved) {
		__atomic_store_n(&c->moved, false, __ATOMIC_RELAXED);
		c->wait.Began = 0;
		every = SPARED;
	}
	return every && ++c->spared % every;
}

bool cmpi_crowded(const struct cmpi *c)
{
	return __atomic_load_n(&c->crowded, __ATOMIC_RELAXED); /* orders nothing */
}

void cmpi_at_work(struct cmpi *c)
{
	__atomic_store_n(&c->moved, true, __ATOMIC_RELAXED); /* see via_wait_spared */
}

void cmpi_only_looks(struct cmpi *c, uint8_t every)
{
	__atomic_store_n(&c->only_looks, every, __ATOMIC_RELAXED); /* see via_wait_spared; another thread that waits now does it without a sleep */
}

void via_wait_look(struct cmpi *c)
{
	if (!c->idle_mask && !c->resting)
		VipxWaitLook(&c->wait);
}

/*
 * The rough count of idle passes, for when there is a core for each: it costs the pass nothing.  What came since the last time
 * is found by the NIC's counter of packets; other events may be missed, and then the plan is asked a little early.
 */
void via_wait_watch(struct cmpi *c, uint32_t passes, int events)
{
	bool quiet = !events && c->arrived == *c->arrivals;

	c->arrived = *c->arrivals;
	c->idle = quiet ? c->idle + passes : 0;
	if (quiet && !(c->idle & c->idle_mask))
		via_wait(c);
}
