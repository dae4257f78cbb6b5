/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `thread`: as inline, and while the process does something else a thread of it runs its slice of the NIC, so that
 * messages, barriers and broadcasts go on while the host computes.
 *
 * The thread never competes with the host.  It tries the lock of the host's calls and does not wait for it; it does nothing while
 * the host polls by itself, but looks from time to time whether that is still so; and when the host is gone and nothing moves it
 * sleeps until the slot's doorbell rings (wait.h).  The sleep has a bound for what does not ring: room on a link, a peer's death.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/util/log.h"

/* Times in nanoseconds. */
enum {
	US = 1000,
	SLEEP_LEAST = 50 * US,   /* something has just moved, or the host came by */
	SLEEP_HOST = 800 * US,   /* at most, while the host polls */
	SLEEP_LAST = 10000 * US, /* at most, under the bell */
	SLEEP_WATCH = 1000 * US, /* after so long a one, a peer is looked after */
	PASSES = 64,             /* in one go, under the lock */
};

struct nic_thread {
	_Atomic uint32_t stop; /* 1: end; the word of a futex that the thread sleeps on */
	bool orphan;           /* nobody will join it: written and read by the thread itself */
	uint32_t visits;       /* of the host, when the thread looked last */
	bool hasty;            /* it did not sleep before the last look: not twice, what has come may have to wait */
	bool idle;             /* the host is gone, and nothing moves */
	uint32_t sleep;
	struct nic *nic;
	bool (*enter)(void *arg);
	void (*leave)(void *arg, bool report);
	void *arg;
	pid_t pid;
	pthread_t id;
};

/* ---- the host's calls -------------------------------------------------------------------------------------------- */

static int poll_thread(struct nic *nic)
{
	nic->visits++;
	nic->news = false;
	return nic_engine_inline.poll(nic);
}

static uint32_t take_thread(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	nic->visits++;
	nic->news = false;
	return nic_engine_inline.take(nic, cq, out);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static bool stopped(struct nic_thread *t)
{
	return nic_load_acquire(&t->stop); /* pairs with the release in stop */
}

static void sleep_some(struct nic_thread *t, uint32_t ns)
{
	struct timespec time = { .tv_nsec = ns };

	syscall(SYS_futex, &t->stop, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0); /* ends early: an early look does no harm */
}

/* The host may not fall asleep over what it has not seen, a new connection request among it; the thread may. */
static bool doze(struct nic_thread *t, struct nic_wait *wait)
{
	struct nic *nic = t->nic;
	bool news = nic->news, epoch = nic->waiting.follows_epoch, asleep;

	nic->news = nic->waiting.follows_epoch = false;
	asleep = nic_wait_doze(nic, wait, t->sleep);
	nic->news = news;
	nic->waiting.follows_epoch = epoch;
	return asleep;
}

/* Under the bell if that can be.  leave reports nothing here: a handler that closed the NIC would wait for this sleep. */
static void rest(struct nic_thread *t)
{
	struct nic_wait wait = { .rest = NIC_REST_YIELD };
	bool asleep;

	if (!t->idle || !t->enter(t->arg)) {
		sleep_some(t, t->sleep);
		return;
	}
	asleep = doze(t, &wait);
	t->leave(t->arg, false);
	if (asleep)
		nic_wait_rest(&wait);
	else if (wait.rest == NIC_REST_YIELD || t->hasty)
		sleep_some(t, t->sleep < SLEEP_HOST ? t->sleep : SLEEP_HOST);
	t->hasty = !asleep;
}

static void sleep_longer(struct nic_thread *t, uint32_t most)
{
	t->sleep = t->sleep * 2 < most ? t->sleep * 2 : most;
}

static bool passes(struct nic *nic)
{
	bool moved = false;

	for (int i = 0; i < PASSES && nic->arch->pipe->pass(nic); i++)
		moved = true;
	return moved;
}

/* The host is not there.  Under the lock. */
static void run_nic(struct nic_thread *t)
{
	t->idle = !passes(t->nic);
	if (!t->idle) {
		nic_count(t->nic, thread_passes, 1);
		t->nic->news = true;
		nic_bell_tell(t->nic, t->nic->me); /* the host may sleep, too */
		t->sleep = SLEEP_LEAST;
		return;
	}
	if (t->sleep >= SLEEP_WATCH)
		nic_driver_watch(t->nic);
	sleep_longer(t, SLEEP_LAST);
}

/* Under the lock. */
static void look(struct nic_thread *t)
{
	bool came_by = t->nic->visits != t->visits;

	t->visits = t->nic->visits;
	if (!came_by) {
		run_nic(t);
		return;
	}
	if (t->idle)
		t->sleep = SLEEP_LEAST;
	t->idle = false;
	sleep_longer(t, SLEEP_HOST);
}

/* leave may run a handler of the program, which may close the NIC: from there on only `t` is there. */
static void *run(void *arg)
{
	struct nic_thread *t = arg;

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!stopped(t)) {
		rest(t);
		if (stopped(t))
			break;
		if (t->enter(t->arg)) {
			look(t);
			t->leave(t->arg, true);
		} else {
			sleep_longer(t, SLEEP_HOST); /* the host is in a call */
		}
	}
	if (t->orphan)
		free(t);
	return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

/* The program's signals are not for this thread. */
static int create(struct nic_thread *t)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t->id, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int start(struct nic *nic, const struct nic_open_args *args)
{
	struct nic_thread *t;
	int err;

	if (!args->enter || !args->leave)
		return nic_fail(NIC_PARAMETER, "engine thread: this program opens the NIC without a lock that a thread could take");
	t = calloc(1, sizeof(*t));
	if (!t)
		return nic_fail(NIC_RESOURCE, "out of memory");
	t->nic = nic;
	t->enter = args->enter;
	t->leave = args->leave;
	t->arg = args->enter_arg;
	t->pid = getpid();
	t->sleep = SLEEP_LEAST;
	nic->thread = t;
	err = create(t);
	if (!err)
		return NIC_OK;
	nic->thread = NULL;
	free(t);
	return nic_fail(NIC_RESOURCE, "engine thread: no thread can be made: %s", strerror(err));
}

static void stop(struct nic *nic)
{
	struct nic_thread *t = nic->thread;

	nic->thread = NULL;
	if (!t)
		return;
	if (t->pid != getpid()) { /* in a child of fork there is no thread */
		free(t);
		return;
	}
	nic_store_release(&t->stop, 1); /* pairs with the acquire in stopped */
	if (pthread_equal(t->id, pthread_self())) {
		t->orphan = true;
		pthread_detach(t->id);
		return;
	}
	syscall(SYS_futex, &t->stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	nic_bell_tell(nic, nic->me);
	pthread_join(t->id, NULL);
	free(t);
}

const struct nic_engine nic_engine_thread = {
	.name = "thread", .poll = poll_thread, .take = take_thread, .start = start, .stop = stop
};
