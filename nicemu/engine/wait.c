/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting: whether this process shares its cores with others, what it does meanwhile, and the doorbell that ends a sleep.
 * The control program does not know of it, but for the look at the peer's doorbell in nic_link_publish.
 *
 * Sleeping without a fence in the sender.  Sender and sleeper each write one word and read the other's:
 *
 *     sender (link.h)                          sleeper (nic_wait_doze)
 *       packet.seq = n     (release)             bell = 1
 *       - nothing but the compiler's order -     membarrier
 *       if (bell) ring                           any packet?  then stay awake
 *                                                futex wait while bell == 1
 *
 * A processor may read `bell` before its own store of `seq` is visible to others, so without the middle line both could read
 * old values, and the packet would lie there with its receiver asleep.  MEMBARRIER_CMD_GLOBAL_EXPEDITED makes every running
 * thread of every registered process execute a full barrier, somewhere in its program, before it returns; a thread that is
 * not running passes through one in the scheduler.  Take the sender's barrier of this call [B1].  Is its read of `bell`
 * behind it, then it sees the 1, which was stored before the call, and rings.  Is its read ahead of it, then so is its store of
 * `seq`, which is visible when the call returns, and the sleeper sees the packet.  There is no third case.
 *
 * The private variant of the command reaches the threads of one process only.  The plain global one needs no registration,
 * but waits for every processor to pass through the scheduler, some milliseconds: a sleep that nobody can end.  So where the
 * expedited one is refused (seccomp), here or at a peer, sleeps are short instead, and a message that comes in just
 * that gap waits for the end of one.
 *
 * What does not come as a packet (requests for connections) is told under a fence at both ends (nic_bell_tell).  What a NIC in
 * a process of its own has published, completions and doorbells of operations, it tells as a sender does (nic_bell_done): for `seq`
 * read their last word.  A peer's death rings nothing: every sleep has an end, after which nic_poll looks after the peers soon.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nicemu/engine/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/group.h"
#include "nicemu/engine/clock.h"
#include "nicemu/engine/cores.h"
#include "nicemu/engine/remote.h"

enum mode { MODE_AUTO, MODE_SPIN, MODE_YIELD, MODE_SLEEP };

/* Times in nanoseconds. */
enum {
	US = 1000,
	MS = 1000 * US,
	SPIN_LOOKS = 256,       /* idle looks between two questions, with a core of one's own: some 10 us */
	COUNT_EVERY = 200 * MS, /* processes and cores are counted again, */
	COUNT_SOON = 1 * MS,    /* or when somebody came or went since */
	TIGHT = 2 * US,         /* between two looks of a loop that does nothing else, on average */
	BURST = 8,              /* looks without a rest, before a sleep */
	EMPTY_CLOCKS = 24,      /* looks at the kernel's clock that take about as long as a program needs that does nothing else between two looks */
	GAP_MOST = 8 * US,      /* a longer one counts as this: perhaps somebody else had the core, once */
	LINGER = 300,           /* looks at a barrier before a yield: about what that takes if somebody else has the core then */
	YIELDS = 20,            /* before the first sleep, */
	SLEEP_SOONEST = 50 * US, /* which comes after so long a wait */
	SLEEP_LEAST = 50 * US,
	SLEEP_UNFENCED = 500 * US,
	SLEEP_ASKING = 1 * MS,  /* with questions to peers that may have gone unheard */
	HOGGED = 500 * US,      /* a yield that takes longer: others do not yield, and a sleeper is woken ahead of them */
	STALL = 1 * MS,         /* between two questions of a spinning process: it did not have its core */
	STALLS = 3,             /* of these at least, and an eighth of the time, */
	STALL_WINDOW = 100 * MS,
	BELIEF_FIRST = 5 * MS, /* twice as long each time that it proves true again right after its end, */
	BELIEF_MOST = 1000 * MS,
	BELIEF_SURE = 40 * MS,   /* from here on it counts for those who have no time to ask again */
	BASE_EVERY = 16,        /* questions between two looks at the count of involuntary switches */
	POLL_NS = 256,          /* a sleep counts as so many passes towards the next look after a peer */
};

/* ---- the barrier ------------------------------------------------------------------------------------------------- */

bool nic_wait_fence(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool nic_wait_fences(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 && nic_wait_fence();
}

/* Do the threads of all peers take part? */
static bool peers_fenced(const struct nic *nic)
{
	for (uint32_t i = 0; i < nic->nactive; i++)
		if (!nic_load_relaxed(&nic->active[i]->slot->fenced)) /* constant during an epoch */
			return false;
	return true;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static _Atomic uint32_t *bell_of(const struct nic *nic, uint32_t slot)
{
	return &nic->map->bell[slot & (NIC_MAX_SLOTS - 1)].asleep;
}

static void publish_cpus(struct nic *nic, uint64_t cpus[NIC_CPU_WORDS])
{
	nic_cores_allowed(cpus);
	for (int i = 0; i < NIC_CPU_WORDS; i++)
		nic_store_relaxed(&nic_own_slot(nic)->cpus[i], cpus[i]); /* an estimate may mix two sets */
}

static uint8_t mode_of(const char *word)
{
	static const char *const words[] = { "auto", "spin", "yield", "sleep" };
	uint8_t mode = MODE_AUTO;

	for (uint8_t i = 0; i < 4; i++)
		if (!strcmp(word, words[i]))
			mode = i;
	return mode;
}

/* By what a look at the clock takes, at best: a processor that is short of something, its other half busy, takes half as long again for milliseconds. */
static uint16_t guess_empty(uint16_t guess)
{
	uint64_t least = guess / EMPTY_CLOCKS, last = nic_clock_kernel();

	for (int i = 0; i < 64; i++) {
		uint64_t at = nic_clock_kernel();

		least = at - last < least ? at - last : least;
		last = at;
	}
	return (uint16_t)(EMPTY_CLOCKS * least);
}

void nic_wait_open(struct nic *nic)
{
	struct nic_waiting *w = &nic->waiting;
	double quota = nic_cores_quota();

	nic_clock_open();
	w->mode = mode_of(nic_param_str("wait"));
	if (w->mode == MODE_AUTO && nic->engine->elsewhere)
		w->mode = MODE_SLEEP; /* the NIC needs a core, too */
	w->quota = quota <= 0 ? 0 : quota < 1 ? 1 : quota > NIC_MAX_SLOTS ? 0 : (uint32_t)quota;
	w->fenced = nic_wait_fences();
	w->empty = guess_empty(TIGHT);
}

void nic_wait_publish(struct nic *nic)
{
	uint64_t cpus[NIC_CPU_WORDS];

	publish_cpus(nic, cpus);
	nic_store_relaxed(&nic->slot->fenced, nic->waiting.fenced); /* published by the release of state, as is the next */
	nic_store_relaxed(bell_of(nic, nic->me), 0);
}

void nic_wait_population(struct nic *nic)
{
	/* Relaxed: who misses it counts anyway before long. */
	atomic_fetch_add_explicit(&nic->map->hdr.population, 1, memory_order_relaxed);
}

void nic_wait_epoch(struct nic *nic, uint32_t epoch)
{
	nic->waiting.follows_epoch = true;
	nic->waiting.epoch = epoch;
}

/* ---- doorbells --------------------------------------------------------------------------------------------------- */

static void futex_wake(_Atomic uint32_t *bell)
{
	syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool ring(_Atomic uint32_t *bell)
{
	/* Sequentially consistent; the first of several wakes.  The kernel looks at the word again before it puts anybody to sleep. */
	if (!atomic_exchange(bell, 0))
		return false;
	futex_wake(bell);
	return true;
}

nic_cold void nic_bell_ring(struct nic_link *link)
{
	if (ring(link->bell))
		++*link->bells;
}

/* Behind a fence, of one kind or the other. */
static void ring_if_asleep(struct nic *nic, uint32_t slot)
{
	_Atomic uint32_t *bell = bell_of(nic, slot);

	if (nic_load_relaxed(bell) && ring(bell))
		nic_count(nic, bells, 1);
}

void nic_bell_tell(struct nic *nic, uint32_t slot)
{
	atomic_thread_fence(memory_order_seq_cst); /* B2: pairs with the fence in nic_wait_doze */
	ring_if_asleep(nic, slot);
}

void nic_bell_done(struct nic *nic, uint32_t slot)
{
	if (nic_likely(nic->waiting.fenced))
		atomic_signal_fence(memory_order_seq_cst); /* B1: no instruction; pairs with the barrier in nic_wait_doze */
	else
		atomic_thread_fence(memory_order_seq_cst); /* B2: pairs with the fence in nic_wait_doze */
	ring_if_asleep(nic, slot);
}

void nic_bell_tell_all(struct nic *nic)
{
	uint32_t used = nic_load_acquire(&nic->map->hdr.used); /* pairs with registration */

	for (uint32_t i = 0; i < used && i < NIC_MAX_SLOTS; i++)
		if (i != nic->me)
			nic_bell_tell(nic, i);
}

void nic_wait_close(struct nic *nic)
{
	/* Acquire: pairs with the release in fall_asleep; the thread is through with the NIC. */
	while (nic_load_acquire(&nic->waiting.sleepers)) {
		ring(bell_of(nic, nic->me));
		sched_yield();
	}
}

/* ---- whose core is it -------------------------------------------------------------------------------------------- */

struct census {
	uint64_t all[NIC_CPU_WORDS]; /* processors that any process may use */
	uint32_t processes;
	uint32_t confined; /* of them, those that may use none but ours */
};

static int count_bits(const uint64_t *words)
{
	int n = 0;

	for (int i = 0; i < NIC_CPU_WORDS; i++)
		n += __builtin_popcountll(words[i]);
	return n;
}

static void add(struct census *c, const struct nic_slot *slot, const uint64_t own[NIC_CPU_WORDS])
{
	uint64_t outside = 0, any = 0;

	for (int i = 0; i < NIC_CPU_WORDS; i++) {
		uint64_t word = nic_load_relaxed(&slot->cpus[i]); /* an estimate, as in publish_cpus */

		c->all[i] |= word;
		outside |= word & ~own[i];
		any |= word;
	}
	c->processes++;
	c->confined += any && !outside;
}

/* `sure`: leaves out those that have died and whose slots nobody has taken yet. */
static bool outnumbered(const struct nic *nic, const uint64_t own[NIC_CPU_WORDS], bool sure)
{
	uint32_t used = nic_load_acquire(&nic->map->hdr.used); /* pairs with registration */
	uint32_t quota = nic->waiting.quota, cores;
	struct census c = { .processes = 0 };

	for (uint32_t i = 0; i < used && i < NIC_MAX_SLOTS; i++)
		if (nic_load_acquire(&nic->map->slot[i].state) == NIC_SLOT_LIVE && (!sure || nic_card_held(nic->card, i))) /* pairs with registration */
			add(&c, &nic->map->slot[i], own);
	cores = (uint32_t)count_bits(c.all);
	return (quota && c.processes > quota) || (cores && c.processes > cores) || c.confined > (uint32_t)count_bits(own);
}

static void take_count(struct nic *nic, uint64_t at)
{
	struct nic_waiting *w = &nic->waiting;
	uint64_t own[NIC_CPU_WORDS];
	bool before = w->outnumbered;

	w->population = nic_load_relaxed(&nic->map->hdr.population); /* before the count: what comes after it is counted next time */
	w->count_next = at + COUNT_EVERY;
	w->empty = guess_empty(w->empty);
	publish_cpus(nic, own);
	w->outnumbered = outnumbered(nic, own, false) && outnumbered(nic, own, true);
	nic_count(nic, crowded, w->outnumbered && !before);
}

static bool count_is_old(const struct nic *nic, uint64_t at)
{
	const struct nic_waiting *w = &nic->waiting;

	if (!nic_clock_before(at, w->count_next, COUNT_EVERY))
		return true;
	/* Relaxed: late by one look, no more. */
	return nic_load_relaxed(&nic->map->hdr.population) != w->population && at + COUNT_EVERY >= w->count_next + COUNT_SOON;
}

/* ---- observed stalls --------------------------------------------------------------------------------------------- */

static uint32_t switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint32_t)usage.ru_nivcsw : 0;
}

/*
 * What stalls a job while it starts is over soon, and a process that believes in it for longer yields where it could spin; what stalls
 * it again has come to stay.
 */
static uint64_t next_belief(const struct nic_waiting *w, uint64_t at)
{
	if (!w->belief || nic_clock_since(w->stalled_until, at) > w->belief + STALL_WINDOW)
		return BELIEF_FIRST;
	return 2 * w->belief < BELIEF_MOST ? 2 * w->belief : BELIEF_MOST;
}

/* A spinning process that was kept from its core for `gap`: how often lately? */
static void stalled(struct nic *nic, uint64_t at, uint64_t gap)
{
	struct nic_waiting *w = &nic->waiting;

	if (nic_clock_since(w->stall_began, at) > STALL_WINDOW) {
		w->stall_began = at - gap;
		w->stalled = w->stalls = 0;
	}
	w->stalls++;
	w->stalled += gap;
	if (w->stalls < STALLS || w->stalled < nic_clock_since(w->stall_began, at) / 8)
		return;
	w->belief = next_belief(w, at);
	w->stalled_until = at + w->belief;
	w->stalls = 0;
	nic_count(nic, crowded, 1);
}

/* A long gap alone may be the program's doing, or the hypervisor's; the count of switches tells it from another process's. */
static void watch_stalls(struct nic *nic, struct nic_wait *wait, uint64_t at)
{
	uint64_t gap = nic_clock_since(wait->last, at);
	uint32_t before = wait->switches;
	bool known = wait->looks > 0;

	if (gap < STALL && wait->looks++ % BASE_EVERY)
		return;
	wait->switches = switches();
	if (gap >= STALL && known && wait->switches != before)
		stalled(nic, at, gap);
}

static bool crowded(struct nic *nic, uint64_t at)
{
	struct nic_waiting *w = &nic->waiting;
	bool kept = nic_clock_before(at, w->stalled_until, w->belief);

	if (w->mode != MODE_AUTO)
		return w->crowded = w->mode != MODE_SPIN;
	if (count_is_old(nic, at))
		take_count(nic, at);
	w->crowded = w->outnumbered || (kept && w->belief >= BELIEF_SURE);
	return w->outnumbered || kept;
}

bool nic_wait_crowded(struct nic *nic)
{
	return crowded(nic, nic_clock());
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

/* What goes on without a packet from a peer: room on a link comes back silently, transfers by both ends go on. */
static enum nic_motion motion(const struct nic *nic)
{
	if (nic->npending || nic->nshared || nic_group_moves(nic))
		return NIC_MOVES;
	for (uint32_t i = 0; i < nic->nactive; i++)
		if (nic_sys_waiting(nic->active[i]))
			return NIC_MOVES;
	return nic->arch->pipe->motion ? nic->arch->pipe->motion(nic) : NIC_STILL;
}

/* What the NIC counts by passes has gone on while this process slept. */
static void catch_up(struct nic *nic)
{
	uint64_t slept = atomic_exchange_explicit(&nic->waiting.slept, 0, memory_order_relaxed); /* a number, no more */

	if (slept && nic->arch->pipe->slept)
		nic->arch->pipe->slept(nic, (uint32_t)(slept / POLL_NS));
}

static bool arrived(const struct nic *nic)
{
	if (nic->news || (nic->remote && (nic_remote_arrived(nic) || nic_group_rung(nic))))
		return true;
	for (uint32_t i = 0; i < nic->nactive; i++)
		if (nic_link_peek(nic->active[i]))
			return true;
	return nic->waiting.follows_epoch && nic->waiting.epoch != nic_load_acquire(&nic->map->hdr.peer_epoch); /* pairs with peer_request */
}

static uint64_t sleep_bound(uint64_t ns, bool fenced, enum nic_motion asks)
{
	if (asks == NIC_ASKS && ns > SLEEP_ASKING)
		ns = SLEEP_ASKING;
	return !fenced && ns > SLEEP_UNFENCED ? SLEEP_UNFENCED : ns;
}

bool nic_wait_doze(struct nic *nic, struct nic_wait *wait, uint64_t ns)
{
	_Atomic uint32_t *bell = bell_of(nic, nic->me);
	bool fenced = nic->waiting.fenced && peers_fenced(nic);
	enum nic_motion before;

	catch_up(nic);
	before = motion(nic);
	wait->rest = NIC_REST_YIELD;
	if (before == NIC_MOVES || (nic->remote && nic_group_rung(nic))) /* perhaps it waits for something else, and asks later */
		return false;
	wait->rest = NIC_REST_SPIN;
	nic_store_relaxed(bell, 1); /* ordered by what follows */
	fenced = fenced && nic_wait_fence(); /* B1: pairs with nic_link_publish and nic_bell_done */
	atomic_thread_fence(memory_order_seq_cst); /* B2: pairs with nic_bell_tell and nic_bell_done */
	if (arrived(nic) || motion(nic) == NIC_MOVES) { /* a link that was opened to this NIC comes with a ring, too */
		/* Relaxed: other threads that sleep here see the packet's ring, or wake by themselves. */
		if (!nic_load_relaxed(&nic->waiting.sleepers))
			nic_store_relaxed(bell, 0);
		return false;
	}
	wait->sleep = sleep_bound(ns, fenced, before);
	wait->nic = nic;
	wait->rest = NIC_REST_SLEEP;
	nic->polls += wait->sleep / POLL_NS;
	nic_count(nic, sleeps, 1);
	atomic_fetch_add_explicit(&nic->waiting.sleepers, 1, memory_order_relaxed); /* close, a call on the handle, comes later */
	return true;
}

/* Whoever wakes takes the bell down; if others sleep under it, they wake too, and look for themselves. */
static void fall_asleep(struct nic *nic, uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	_Atomic uint32_t *bell = bell_of(nic, nic->me);
	uint64_t from = nic_clock();

	syscall(SYS_futex, bell, FUTEX_WAIT, 1, &t, NULL, 0); /* a signal may end it, too: an early look does no harm */
	atomic_fetch_add_explicit(&nic->waiting.slept, nic_clock_since(from, nic_clock()), memory_order_relaxed); /* a number, no more */
	if (atomic_exchange(bell, 0) && nic_load_relaxed(&nic->waiting.sleepers) > 1) /* counted before they look at the bell */
		futex_wake(bell);
	atomic_fetch_sub_explicit(&nic->waiting.sleepers, 1, memory_order_release); /* pairs with nic_wait_close */
}

void nic_wait_rest(struct nic_wait *wait)
{
	uint32_t rest = wait->rest;
	uint64_t at;

	wait->rest = NIC_REST_SPIN;
	switch (rest) {
	case NIC_REST_SLEEP:
		fall_asleep(wait->nic, wait->sleep);
		wait->last = nic_clock();
		break;
	case NIC_REST_YIELD:
		sched_yield();
		at = nic_clock();
		wait->yields += nic_clock_since(wait->last, at) > HOGGED ? YIELDS : 1;
		wait->last = at;
		break;
	default:
		break;
	}
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* Mean time between the end of a rest and the next question, over the last eight or so: what the program does in between. */
static void follow_gap(struct nic_wait *wait, uint64_t at)
{
	uint64_t gap = nic_clock_since(wait->last, at);

	wait->gap = (uint16_t)((wait->gap * 7ull + (gap < GAP_MOST ? gap : GAP_MOST)) / 8);
	wait->sum = (uint16_t)(wait->sum + (gap < TIGHT ? gap : TIGHT)); /* of a burst */
}

void nic_wait_look(struct nic_wait *wait)
{
	uint64_t at;

	if (!wait->last)
		return;
	at = nic_clock();
	follow_gap(wait, at);
	wait->last = at; /* the caller may not ask this time */
	wait->looking = true;
}

/*
 * A quarter of the time waited so far: what comes without a ring (another thread, memory that a peer writes behind our back)
 * is noticed after a quarter more time than it took.
 */
static uint64_t sleep_length(const struct nic_wait *wait, uint64_t at, uint64_t longest)
{
	uint64_t ns = nic_clock_since(wait->began, at) / 4;

	ns = ns < SLEEP_LEAST ? SLEEP_LEAST : ns;
	return ns < longest ? ns : longest;
}

/*
 * Does a program that comes by so often do nothing but wait?  It may have work that no NIC hears of, and come by in between each time: then it
 * takes twice as long as when it only waits.  What that takes is a guess, until waits have shown it to be less; but not much less, for there
 * are loops of this project that are shorter than any other.
 */
static bool only_waits(uint16_t mean, uint16_t *least, uint16_t guess)
{
	uint16_t bound = (uint16_t)(guess * 2 / 3);

	if (!*least || *least > guess)
		*least = guess;
	if (mean < *least)
		*least = mean > bound ? mean : bound;
	return mean <= 2 * *least;
}

/* About to sleep, if the program only waits.  To tell, looks must follow each other without a rest, behind which the caches are not its own. */
static void drowse(struct nic *nic, struct nic_wait *wait, uint64_t at, uint64_t longest, uint8_t burst)
{
	if (burst < BURST) {
		wait->burst = burst + 1;
		wait->sum = burst ? wait->sum : 0;
		wait->rest = NIC_REST_SPIN;
		return;
	}
	if (!only_waits(wait->sum / BURST, &wait->least, nic->waiting.empty))
		wait->began = at;
	else if (nic_wait_doze(nic, wait, sleep_length(wait, at, longest)))
		return;
	wait->yields = 0; /* what has come may have to wait itself, for a buffer: no spinning on that */
}

uint32_t nic_wait_plan(struct nic *nic, struct nic_wait *wait, uint64_t longest)
{
	uint64_t at = nic_clock();
	bool fresh = !wait->began;
	uint8_t burst = wait->burst;

	wait->rest = NIC_REST_SPIN;
	wait->burst = 0; /* unless it goes on: see drowse */
	if (fresh) {
		wait->last = wait->last ? wait->last : at;
		wait->began = at;
		wait->yields = 0;
	}
	if (!crowded(nic, at)) {
		nic->waiting.cpu = 0;
		if (!fresh)
			watch_stalls(nic, wait, at);
		wait->last = at;
		wait->gap = 0;
		wait->looking = false;
		return SPIN_LOOKS;
	}
	if (!wait->looking)
		follow_gap(wait, at);
	wait->looking = false;
	wait->last = at;
	if (wait->gap >= TIGHT) {
		wait->began = at;
		wait->yields = 0;
		wait->rest = wait->lends ? NIC_REST_YIELD : NIC_REST_SPIN;
		nic_count(nic, yields, wait->lends);
		return 1;
	}
	nic->waiting.cpu = (uint32_t)sched_getcpu() + 1;
	if (nic_group_linger(nic, nic->waiting.cpu, LINGER)) {
		nic_count(nic, lingers, 1);
		wait->last = nic_clock(); /* it was no gap */
		return 1;
	}
	wait->rest = NIC_REST_YIELD;
	if (longest && nic->waiting.mode != MODE_YIELD && wait->yields >= YIELDS && nic_clock_since(wait->began, at) >= SLEEP_SOONEST)
		drowse(nic, wait, at, longest, burst);
	nic_count(nic, yields, wait->rest == NIC_REST_YIELD);
	return 1;
}
