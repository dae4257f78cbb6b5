/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of one test that meet at numbered steps of a page they share, and may be killed.  They are forked before the
 * process that forks them opens a NIC, unless forking with an open one is what the test is about.
 */
#ifndef TESTS_KIN_H
#define TESTS_KIN_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/nicemu/pair.h"

enum { KIN_STEPS = 16, KIN_SECONDS = 60 };

/* [i]: 0 until somebody says otherwise. */
static _Atomic int *kin_step;

static pid_t kin_family; /* the test's, also in its children */

static inline void kin_start(void)
{
	kin_family = getpid();
	kin_step = mmap(NULL, KIN_STEPS * sizeof(*kin_step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kin_step == MAP_FAILED)
		exit(1);
}

static inline void kin_clear(void)
{
	for (int i = 0; i < KIN_STEPS; i++)
		atomic_store(&kin_step[i], 0);
}

/* The name of a card that no other process of the machine has, until the next call. */
static inline const char *kin_device(const char *device)
{
	static char name[48];

	snprintf(name, sizeof(name), "%s-%d", device, (int)kin_family);
	return name;
}

static inline double kin_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* True when the step has that value, or gets it in time; the NIC runs meanwhile if there is one. */
static inline int kin_await(struct nic *nic, int step, int value)
{
	double until = kin_now() + KIN_SECONDS;

	while (atomic_load(&kin_step[step]) != value) {
		if (kin_now() > until)
			return 0;
		if (nic)
			nic_poll(nic);
		else
			usleep(100);
	}
	return 1;
}

/* A child that runs fn and ends with its result, and never lives longer than the test may take. */
static inline pid_t kin_fork(int (*fn)(void))
{
	pid_t child = fork();

	if (child < 0) {
		perror("fork"); /* nobody shall take -1 for a process to kill */
		exit(1);
	}
	if (child == 0) {
		alarm(5 * KIN_SECONDS);
		_exit(fn());
	}
	return child;
}

/* Its exit status, or minus the signal that ended it. */
static inline int kin_wait(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return 1000;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static inline int kin_kill(pid_t child)
{
	kill(child, SIGKILL);
	return kin_wait(child);
}

static inline int kin_pause(void)
{
	return pause();
}

/* May a process of this machine copy from another one, as engine daemon does? */
static inline bool kin_attaches(void)
{
	static uint64_t word = 1;
	struct iovec at = { &word, sizeof(word) };
	pid_t child = kin_fork(kin_pause);
	bool does = process_vm_readv(child, &at, 1, &at, 1, 0) == sizeof(word);

	kin_kill(child);
	return does;
}

/* Peers by name, whichever comes first.  0: connected in time. */
static inline int kin_connect(struct end *e, const char *mine, const char *theirs)
{
	struct nic_addr local = addr_of(e->nic, mine), remote = addr_of(e->nic, theirs);
	double until = kin_now() + KIN_SECONDS;
	struct nic_vi_attr attr;
	int err = nic_peer_request(e->nic, e->vi, &local, &remote);

	if (err)
		return err;
	while ((err = nic_peer_poll(e->nic, e->vi, &attr)) == NIC_NOT_DONE && kin_now() < until)
		nic_poll(e->nic);
	return err;
}

static inline enum nic_vi_state kin_state(const struct end *e)
{
	enum nic_vi_state state;

	nic_vi_query(e->nic, e->vi, &state, NULL);
	return state;
}

/* True when the VI leaves the connected state in time; the NIC runs meanwhile. */
static inline int kin_lost(struct end *e, double seconds)
{
	double until = kin_now() + seconds;

	while (kin_state(e) == NIC_VI_CONNECTED)
		if (nic_poll(e->nic) == 0 && kin_now() > until)
			return 0;
	return 1;
}

#endif
