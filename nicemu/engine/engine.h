/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs the control program.
 *
 * inline: the owning process, inside nic_post_* and nic_poll.  thread: the same, and beside it a thread of the process, when
 * the process does something else.  daemon: a process of its own, for all slots of the card that want it.
 */
#ifndef NIC_ENGINE_H
#define NIC_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct nic_cq;
struct nic_open_args;
struct nic_taken;

struct nic_engine {
	const char *name;
	int (*poll)(struct nic *nic); /* the host calls; one bounded pass, returns what moved */
	uint32_t (*take)(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out); /* likewise; see nic_take */
	bool needs_host; /* nothing runs while the process does not poll */
	bool elsewhere;  /* the NIC is in another process: this one has only a port to it (remote.h) */
	/* Something that runs beside the host's calls, and takes their lock; NULL: there is nothing. */
	int (*start)(struct nic *nic, const struct nic_open_args *args); /* the NIC is complete */
	void (*stop)(struct nic *nic); /* without the lock; afterwards nothing runs; again: nothing happens */
};

const struct nic_engine *nic_engine_find(const char *name);

extern const struct nic_engine nic_engine_inline, nic_engine_thread, nic_engine_daemon;

#endif
