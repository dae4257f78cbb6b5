/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passing time: between two looks of a blocking call, and in front of a lock that is taken.  Only this file of the
 * library reads a clock or sleeps.
 */
#include "vipl/src/wait.h"

#include <sched.h>
#include <time.h>

#include "vipl/src/object.h"

enum {
	ROUNDS_PAUSE = 1000, /* looks without leaving the processor */
	ROUNDS_YIELD = 200,  /* then looks that offer it to others */
	ROUNDS_ASK = 50,     /* is it one's own? */
	ROUNDS_CROWDED = ROUNDS_PAUSE + ROUNDS_YIELD - 20, /* goes on here when it is not */
	SLEEP_FIRST = 50 * 1000,
	SLEEP_LAST = 1000 * 1000,
	LOCK_SPINS = 200,
	SLEEPER_POLLS = 64, /* idle passes of a NIC between two sleeps: it counts passes to know when to look after its peers */
};

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__("yield" ::: "memory");
#endif
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t vipl_deadline(VIP_ULONG milliseconds)
{
	/* Programs keep VIP_INFINITE in 32 bits, too; seven weeks are as good as for ever. */
	if (milliseconds >= 0xFFFFFFFFu)
		return UINT64_MAX;
	return now() + (uint64_t)milliseconds * 1000000u;
}

bool vipl_deadline_over(uint64_t deadline)
{
	return deadline != UINT64_MAX && now() >= deadline;
}

void vipl_wait_init(struct vipl_wait *wait, VIP_ULONG milliseconds, VIP_NIC_HANDLE nic)
{
	wait->nic = nic;
	/* Deadline 1 has passed since ever: a timeout of 0 looks once and reads no clock. */
	wait->deadline = milliseconds ? vipl_deadline(milliseconds) : 1;
	vipl_wait_reset(wait);
}

void vipl_wait_reset(struct vipl_wait *wait)
{
	wait->round = 0;
	wait->sleep = SLEEP_FIRST;
}

/* True: slept, or there is something to look at.  False: it cannot be woken now. */
static bool sleep_woken(const struct vipl_wait *wait, uint64_t ns)
{
	struct vipl_nic *nic = wait->nic ? vipl_nic_enter(wait->nic) : NULL;
	struct nic_wait rest = { .rest = NIC_REST_YIELD };

	if (!nic)
		return false;
	nic_wait_doze(nic->hw, &rest, ns);
	vipl_leave(nic);
	if (rest.rest == NIC_REST_YIELD)
		return false;
	nic_wait_rest(&rest);
	return true;
}

static void sleep_step(struct vipl_wait *wait, uint64_t at)
{
	uint64_t ns = wait->sleep;
	struct timespec t;

	if (wait->deadline - at < ns)
		ns = wait->deadline - at;
	t.tv_sec = 0;
	t.tv_nsec = (long)ns;
	if (!sleep_woken(wait, ns))
		nanosleep(&t, NULL); /* interrupted by a signal: an early look does no harm */
	wait->sleep += wait->sleep / 2;
	if (wait->sleep > SLEEP_LAST)
		wait->sleep = SLEEP_LAST;
}

static bool crowded(const struct vipl_wait *wait)
{
	struct vipl_nic *nic = wait->nic ? vipl_nic_enter(wait->nic) : NULL;
	bool yes = nic && nic_wait_crowded(nic->hw);

	if (nic)
		vipl_leave(nic);
	return yes;
}

/* ---- running the NICs meanwhile ---- */

static _Thread_local bool moved; /* in the latest round over the NICs */

static void run(struct vipl_nic *nic, int polls)
{
	/* Somebody else is in it, or the program serialises the calls on it: not ours to run. */
	if (nic->serial || !vipl_lock_try(&nic->lock))
		return;
	if (!atomic_load_explicit(&nic->object.handle, memory_order_acquire)) { /* H1 */
		vipl_lock_give(&nic->lock);
		return;
	}
	while (polls-- > 0)
		if (nic_poll(nic->hw)) {
			moved = true;
			break;
		}
	vipl_leave(nic);
}

static void run_briefly(void *nic)
{
	run(nic, 1);
}

static void run_as_sleeper(void *nic)
{
	run(nic, SLEEPER_POLLS);
}

/* ---- one step ---- */

bool vipl_wait_step(struct vipl_wait *wait)
{
	uint64_t at;

	if (wait->deadline == 1)
		return false;
	if (wait->round < ROUNDS_PAUSE) {
		if (++wait->round == ROUNDS_ASK && crowded(wait))
			wait->round = ROUNDS_CROWDED;
		cpu_pause();
		return true;
	}
	at = now();
	if (at >= wait->deadline)
		return false;
	if (wait->round < ROUNDS_PAUSE + ROUNDS_YIELD) {
		wait->round++;
		vipl_object_each(VIPL_NIC, NULL, run_briefly);
		sched_yield();
	} else {
		moved = false;
		vipl_object_each(VIPL_NIC, NULL, run_as_sleeper);
		if (!moved)
			sleep_step(wait, at);
	}
	return true;
}

void vipl_lock_pause(struct vipl_lock *lock)
{
	for (int i = 0; i < LOCK_SPINS; i++) {
		/* Relaxed: only a hint; the caller's exchange is what takes the lock. */
		if (!atomic_load_explicit(&lock->taken, memory_order_relaxed))
			return;
		cpu_pause();
	}
	sched_yield();
}
