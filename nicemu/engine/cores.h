/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processors a process may use, and how much of them. */
#ifndef NIC_ENGINE_CORES_H
#define NIC_ENGINE_CORES_H

#include <stdbool.h>
#include <stdint.h>

#include "nicemu/mem/card.h"

/* Processors that the calling thread may use, one bit each; their number.  0, and no bit: not known. */
int nic_cores_allowed(uint64_t cpus[NIC_CPU_WORDS]);
/* What the control groups of this process allow, in cores; 0: no quota. */
double nic_cores_quota(void);

/* A set of processors as the kernel keeps it: words, least significant bit first. */
enum { NIC_CORES_MOST = 8192 };
struct nic_cores_set {
	uint64_t word[NIC_CORES_MOST / 64];
};
/* Those that process may use; 0: the calling thread. */
bool nic_cores_of(int pid, struct nic_cores_set *out);
/* The calling thread, and what it starts, may use these and no others. */
bool nic_cores_use(const struct nic_cores_set *set);
/* Do they know how to let go of a line of memory (nic_demote)? */
bool nic_cores_demote(void);
/* How many cells lie between the next packet and the lines that a sender in a stream takes hold of?  The more, the longer they have to come. */
uint8_t nic_cores_ahead(void);
/* From how many nanoseconds on that a load of another one's line takes do they share no cache? */
uint32_t nic_cores_far(void);
/* Are lines that go back to their sender better off when they migrate (nic_migrate_line)? */
bool nic_cores_migrate(void);
/* Do they go on behind a look as if it had found something, so far that an answer's cells had better be asked for there (docs/findings.md, "Answers in time")? */
bool nic_cores_hasten(void);
/* "0,2-5"; false: it is no such list. */
bool nic_cores_parse(const char *list, struct nic_cores_set *out);

#endif
