/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `daemon`: is there a daemon, waking it, and starting it.
 *
 * Nobody is elected: whoever finds the daemon's life line free starts one, and of several the first to take the line stays.  A daemon
 * gives the line up under the card lock, after a look at all slots; so a slot that is registered before its process looks at
 * the line is either served or finds the line free.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nicemu/engine/daemon.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/cores.h"
#include "nicemu/util/log.h"

enum { TRIES = 3, WAIT_MS = 60000, LOOK_MS = 16 };

extern char **environ;

bool nic_daemon_lives(const struct nic_card *card, uint32_t life)
{
	/* Acquire: pairs with the release in daemon.c. */
	return life && nic_load_acquire(&nic_card_map(card)->hdr.daemon.life) == life && nic_card_held(card, NIC_DAEMON_LINE);
}

void nic_daemon_wake(struct nic_card_map *map, bool fenced)
{
	_Atomic uint32_t *asleep = &map->hdr.daemon.asleep;

	if (nic_likely(fenced))
		atomic_signal_fence(memory_order_seq_cst); /* B3: no instruction; pairs with the barrier in daemon.c */
	else
		atomic_thread_fence(memory_order_seq_cst); /* B3: pairs with the fence in daemon.c */
	if (nic_load_relaxed(asleep) && atomic_exchange(asleep, 0)) /* after the fence */
		syscall(SYS_futex, asleep, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* bin/qnix, of a folder that is one to three above that file. */
static bool near(const char *file, char out[PATH_MAX])
{
	static const char *const up[] = { "../bin/", "../../bin/", "../../../bin/" };
	char real[PATH_MAX], *end;

	if (!realpath(file, real) || !(end = strrchr(real, '/')))
		return false;
	end[1] = 0;
	for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++)
		if (snprintf(out, PATH_MAX, "%s%sqnix", real, up[i]) < PATH_MAX && access(out, X_OK) == 0)
			return true;
	return false;
}

/* Of this build: beside the library or program that this code is in; else whatever the shell would find. */
static const char *program(char out[PATH_MAX])
{
	Dl_info info;

	if (*nic_param_str("daemon"))
		return nic_param_str("daemon");
	if (dladdr((void *)(uintptr_t)program, &info) && info.dli_fname && strchr(info.dli_fname, '/') && near(info.dli_fname, out))
		return out;
	return near("/proc/self/exe", out) ? out : "qnix";
}

/* No signal of this process is blocked or ignored there. */
static int spawn(const char *path, const char *device, pid_t *pid)
{
	char *argv[] = { "qnix", "nic", (char *)(uintptr_t)device, NULL };
	posix_spawnattr_t attr;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err = posix_spawnp(pid, path, NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	return err;
}

/*
 * A process may be bound to a core of its own, and the daemon is for all of them: it may use what the process's launcher may, or what the
 * user says.
 */
static bool place(struct nic_cores_set *out)
{
	const char *list = nic_param_str("daemon_cpus");
	pid_t launcher = getppid();

	if (*list)
		return nic_cores_parse(list, out);
	return (launcher > 1 && nic_cores_of(launcher, out)) || nic_cores_of(0, out);
}

/* Starts it there: what a thread may use goes to what it starts. */
static int spawn_placed(const char *path, const char *device, pid_t *pid)
{
	struct nic_cores_set own, there;
	bool listed = *nic_param_str("daemon_cpus"), placed;
	int err;

	if (!nic_cores_of(0, &own) || !place(&there) || (!(placed = nic_cores_use(&there)) && listed))
		return nic_fail(NIC_PARAMETER, "engine daemon: parameter \"daemon_cpus\": \"%s\" is no list of processors of this machine, such as 0,2-3",
		                nic_param_str("daemon_cpus"));
	err = spawn(path, device, pid);
	if (placed)
		nic_cores_use(&own);
	return err ? nic_fail(NIC_SYSTEM, "engine daemon: cannot run %s: %s; parameter \"daemon\" names the qnix command", path, strerror(err)) : NIC_OK;
}

/* Returns when a daemon has the card's line, this one or another, or when it could not be. */
static int launch(const char *device)
{
	char path[PATH_MAX];
	const char *file = program(path);
	int status = 0, err;
	pid_t pid;

	err = spawn_placed(file, device, &pid);
	if (err)
		return err;
	while ((err = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	if (err < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) /* or the program does not wait for its children */
		return NIC_OK;
	return nic_fail(NIC_SYSTEM, "engine daemon: \"%s nic %s\" has failed (status %d)", file, device,
	                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- being served ------------------------------------------------------------------------------------------------ */

/* Has a daemon died while it said that it cannot serve the slot?  It frees the slot before it says so, and no later daemon comes to one that is not live. */
static bool is_refused(const struct nic_card *card, struct nic_slot *slot, uint32_t served)
{
	/* Acquire: pairs with de-registration. */
	return served & NIC_SERVE_HOLDS && nic_load_acquire(&slot->state) != NIC_SLOT_LIVE && !nic_daemon_lives(card, served & ~NIC_SERVE_HOLDS);
}

/* 0: the daemon has died, or is not there in time. */
static uint32_t await(struct nic_card *card, struct nic_card_map *map, struct nic_slot *slot)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	uint32_t life;

	for (int i = 0; i < WAIT_MS; i++) {
		life = nic_load_acquire(&slot->served); /* pairs with the releases in serve.c and daemon.c */
		if (life && !(life & NIC_SERVE_HOLDS))
			return life;
		if (is_refused(card, slot, life))
			return NIC_NOT_SERVED;
		nic_daemon_wake(map, false);
		nanosleep(&ms, NULL);
		if (i % LOOK_MS == LOOK_MS - 1 && !nic_card_held(card, NIC_DAEMON_LINE))
			break;
	}
	return 0;
}

int nic_daemon_start(struct nic_card *card, struct nic_card_map *map, struct nic_slot *slot, uint32_t *life)
{
	for (int i = 0; i < TRIES; i++) {
		int err = nic_card_held(card, NIC_DAEMON_LINE) ? NIC_OK : launch(map->hdr.device);
		uint32_t by;

		if (err)
			return err;
		by = await(card, map, slot);
		if (by == NIC_SERVE_FAILED)
			return nic_fail(NIC_SYSTEM, "engine daemon: the NIC's process cannot begin with this one: it has no memory, or does not know its arch");
		if (by == NIC_NOT_SERVED)
			return nic_fail(NIC_SYSTEM, "engine daemon: the NIC's process may not copy from this one (cross-memory attach is denied)");
		if (by) {
			*life = by;
			return NIC_OK;
		}
	}
	return nic_fail(NIC_SYSTEM, "engine daemon: the NIC's process of device \"%s\" ends before it serves", map->hdr.device);
}
