/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon of a card: runs the NICs of all slots whose processes have none of their own (serve.c), one after the other, and
 * sleeps under its bell when none has anything to do.  Started by start.c through `qnix nic`.
 *
 * Every packet between its slots is published and taken by this one thread, so only what processes say can wake it: they ring after
 * they have published, with a fence at both ends [B3], of which the daemon executes the processes', too, where it can (wait.c has
 * the argument).  A process that dies rings nothing; a sleep has an end for that.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nicemu/engine/daemon.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/clock.h"
#include "nicemu/util/log.h"

enum {
	US = 1000,
	ROUNDS = 1024,         /* between two looks at who lives, while something moves */
	YIELDS = 4,            /* idle rounds before a sleep, and so long: a wake-up costs as much; */
	AWAKE = 20 * US,
	HOGGED = 500 * US,     /* or one yield, if it takes as long as that: others do not yield, but who is woken comes ahead of them. */
	BELIEF_FIRST = 1000 * US, /* So long it is believed; twice as long each time that it proves true again soon after its end. */
	BELIEF_MOST = 32000 * US,
	LOOK = 5 * US,         /* Meanwhile it sleeps after so long, without a yield: to fall asleep costs those who compute an interrupt. */
	SLICE_SHORT = 100 * US, /* the least the kernel gives */
	SLICE_USUAL = 0,
	SLEEP_WAITS = 200 * US, /* somebody waits for time to pass, */
	SLEEP_IDLE = 50000 * US, /* or nobody */
};

struct scheduling { /* as the kernel has it: sched_attr */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t slice, deadline, period;
};
_Static_assert(sizeof(struct scheduling) == 48, "its first version");

struct daemon {
	struct nic_card *card;
	struct nic_card_map *map;
	uint32_t life, idle;
	uint64_t since;  /* idle: from then on */
	uint64_t hogged, belief; /* until then, which was so long ahead */
	struct nic_served *slot[NIC_MAX_SLOTS];
	uint32_t nslots; /* served */
	bool fences;
	bool reaps;      /* a process has died; others may have noticed that before the memory of its slot was to be had */
	bool slices;     /* this process may say which it wants, */
	uint64_t wanted; /* and has said this */
};

/* ---- slots that come and go -------------------------------------------------------------------------------------- */

static bool wants(const struct daemon *d, uint32_t i)
{
	const struct nic_slot *s = &d->map->slot[i];
	uint32_t served;

	/* Acquire: pairs with registration; and with serve.c and hold, which are this thread, or a daemon that is dead. */
	if (d->slot[i] || nic_load_acquire(&s->state) != NIC_SLOT_LIVE || !s->elsewhere)
		return false;
	served = nic_load_acquire(&s->served);
	return (!served || served & NIC_SERVE_HOLDS) && nic_card_held(d->card, i);
}

/* Looks again under the card lock, under which slots are taken: what is held then stays its process's, also when that dies. */
static bool hold(struct daemon *d, uint32_t i)
{
	static const uint32_t failed = NIC_SERVE_FAILED;
	_Atomic uint32_t *served = &d->map->slot[i].served;
	bool it;

	nic_card_lock(d->card);
	it = wants(d, i);
	if (it && !nic_card_writable(d->card, served, sizeof(*served))) {
		nic_card_poke(d->card, served, &failed, sizeof(failed));
		it = false;
	}
	if (it)
		nic_store_release(served, d->life | NIC_SERVE_HOLDS); /* pairs with the acquires in start.c and driver.c */
	nic_card_unlock(d->card);
	return it;
}

static uint32_t used(const struct daemon *d)
{
	uint32_t n = nic_load_acquire(&d->map->hdr.used); /* pairs with registration */

	return n < NIC_MAX_SLOTS ? n : NIC_MAX_SLOTS;
}

static void welcome(struct daemon *d)
{
	for (uint32_t i = 0; i < used(d); i++)
		if (wants(d, i) && hold(d, i) && nic_serve(d->card, i, d->life, &d->slot[i]) == NIC_OK)
			d->nslots++;
}

static void drop(struct daemon *d, uint32_t i)
{
	d->reaps |= !nic_serve_alive(d->slot[i]);
	nic_serve_end(d->slot[i], 0);
	d->slot[i] = NULL;
	d->nslots--;
}

/* Whose NIC does it does not matter.  If there is none, the card goes, too, or the next one does it when memory is short. */
static void reap(struct daemon *d)
{
	for (uint32_t i = 0; d->reaps && i < used(d); i++)
		if (d->slot[i]) {
			nic_serve_reap(d->slot[i]);
			d->reaps = false;
		}
}

static void look_after(struct daemon *d)
{
	for (uint32_t i = 0; i < used(d); i++)
		if (d->slot[i] && !nic_serve_alive(d->slot[i]))
			drop(d, i);
	reap(d);
	welcome(d);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static enum nic_serving round_of_all(struct daemon *d)
{
	enum nic_serving most = NIC_SERVE_IDLE;

	for (uint32_t i = 0; i < used(d); i++) {
		enum nic_serving it = d->slot[i] ? nic_serve_run(d->slot[i]) : NIC_SERVE_IDLE;

		if (it == NIC_SERVE_OVER) {
			drop(d, i);
			it = NIC_SERVE_MOVED;
		}
		most = it > most ? it : most;
	}
	return most;
}

static bool wanted(struct daemon *d)
{
	for (uint32_t i = 0; i < used(d); i++)
		if (d->slot[i] ? nic_serve_wanted(d->slot[i]) : wants(d, i))
			return true;
	return false;
}

/* Kernels before 6.12 know of no slices.  All else stays as it is now: somebody may have changed it meanwhile. */
static bool set_slices(uint64_t ns)
{
	enum { KEEP_POLICY = 8 };
	struct scheduling s = { 0 };

	if (syscall(SYS_sched_getattr, 0, &s, sizeof(s), 0) || s.policy != SCHED_OTHER || !s.slice)
		return false;
	s.flags |= KEEP_POLICY;
	s.slice = ns;
	return syscall(SYS_sched_setattr, 0, &s, 0) == 0;
}

/*
 * With short ones it runs soon after it is woken, ahead of who computes.  But a yield gives up one slice: to a process with a long one it would yield
 * some fourteen times before that has the core.
 */
static void want_slices(struct daemon *d, uint64_t ns)
{
	if (!d->slices || d->wanted == ns)
		return;
	d->wanted = ns;
	d->slices = set_slices(ns);
}

static void sleep_under_bell(struct daemon *d, long ns)
{
	_Atomic uint32_t *asleep = &d->map->hdr.daemon.asleep;
	struct timespec t = { .tv_nsec = ns };

	want_slices(d, SLICE_SHORT);
	nic_store_relaxed(asleep, 1); /* ordered by what follows */
	if (d->fences && !nic_wait_fence()) /* B3: pairs with nic_daemon_wake of those that execute none */
		t.tv_nsec = SLEEP_WAITS;
	atomic_thread_fence(memory_order_seq_cst); /* B3: pairs with the fence in nic_daemon_wake */
	if (!wanted(d))
		syscall(SYS_futex, asleep, FUTEX_WAIT, 1, &t, NULL, 0);
	nic_store_relaxed(asleep, 0); /* who rings now finds this one awake, which looks before it sleeps again */
}

static void yield(struct daemon *d, uint64_t from)
{
	uint64_t at;

	want_slices(d, SLICE_USUAL);
	sched_yield();
	at = nic_clock();
	if (nic_clock_since(from, at) <= HOGGED)
		return;
	d->belief = nic_clock_since(d->hogged, from) > d->belief ? BELIEF_FIRST : d->belief < BELIEF_MOST ? 2 * d->belief : BELIEF_MOST;
	d->hogged = at + d->belief;
}

/* Nobody has said anything for a moment: it looks on. */
static bool stays_awake(struct daemon *d, uint64_t at)
{
	uint64_t idle = nic_clock_since(d->since, at);

	if (nic_clock_before(at, d->hogged, d->belief))
		return idle < LOOK;
	if (d->idle > YIELDS && idle >= AWAKE)
		return false;
	yield(d, at);
	return true;
}

static void rest(struct daemon *d, enum nic_serving what)
{
	uint64_t from = nic_clock(), slept;

	d->since = d->idle++ ? d->since : from;
	if (stays_awake(d, from))
		return;
	sleep_under_bell(d, what == NIC_SERVE_WAITS ? SLEEP_WAITS : SLEEP_IDLE);
	slept = nic_clock_since(from, nic_clock());
	for (uint32_t i = 0; i < used(d); i++)
		if (d->slot[i])
			nic_serve_slept(d->slot[i], slept);
	look_after(d);
}

static void run(struct daemon *d)
{
	for (uint32_t n = 1; d->nslots; n++) {
		enum nic_serving what = round_of_all(d);

		if (n % ROUNDS == 0)
			look_after(d);
		if (what == NIC_SERVE_MOVED)
			d->idle = 0;
		else
			rest(d, what);
	}
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static bool begin(struct daemon *d)
{
	bool first;

	d->fences = nic_wait_fences(); /* may take some milliseconds: no lock is held */
	nic_card_lock(d->card);
	first = nic_card_hold(d->card, NIC_DAEMON_LINE);
	if (first) {
		d->life = (nic_load_relaxed(&d->map->hdr.daemon.life) + 1) % NIC_SERVE_FAILED; /* under the card lock */
		d->life += d->life == 0;
		nic_store_relaxed(&d->map->hdr.daemon.pid, (int32_t)getpid()); /* published with life */
		nic_store_relaxed(&d->map->hdr.daemon.asleep, 0);
		nic_store_relaxed(&d->map->hdr.daemon.fences, d->fences); /* likewise */
		nic_store_release(&d->map->hdr.daemon.life, d->life); /* pairs with the acquire in nic_daemon_lives */
	}
	nic_card_unlock(d->card);
	return first;
}

/* Under the card lock, under which slots are registered: nobody comes between the look and the end. */
static bool end(struct daemon *d)
{
	bool over;

	nic_card_lock(d->card);
	over = !wanted(d);
	if (over)
		nic_card_drop(d->card, NIC_DAEMON_LINE);
	nic_card_unlock(d->card);
	return over;
}

static int serve_all(struct daemon *d)
{
	do {
		welcome(d);
		run(d);
	} while (!end(d));
	return NIC_OK;
}

int nic_daemon_run(const char *device, void (*ready)(void *arg), void *arg)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int err = d ? nic_card_open(device, &d->card) : nic_fail(NIC_RESOURCE, "out of memory");

	if (err) {
		free(d);
		return err;
	}
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	nic_clock_open();
	nic_param_set("rdma", "alone", "daemon"); /* both ends are here: nobody else's core would help */
	d->map = nic_card_map(d->card);
	d->slices = set_slices(SLICE_USUAL);
	if (begin(d)) {
		ready(arg);
		serve_all(d);
	} else {
		err = NIC_BUSY;
	}
	nic_card_close(d->card);
	free(d);
	return err;
}
