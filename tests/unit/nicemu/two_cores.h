/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two threads with a processor each, where a process may use two: on a machine that does other things, too, they would share one for long, and each would
 * find what the other one did while it was away.
 */
#ifndef TESTS_UNIT_NICEMU_TWO_CORES_H
#define TESTS_UNIT_NICEMU_TWO_CORES_H

#include <string.h>

#include "nicemu/engine/cores.h"

static struct {
	struct nic_cores_set all, one[2];
} cores;

/* The calling thread has the first; false: there are no two. */
static inline bool two_cores(void)
{
	int n = 0;

	if (!nic_cores_of(0, &cores.all))
		return false;
	memset(cores.one, 0, sizeof(cores.one));
	for (uint32_t cpu = 0; cpu < NIC_CORES_MOST && n < 2; cpu++)
		if (cores.all.word[cpu / 64] >> cpu % 64 & 1)
			cores.one[n++].word[cpu / 64] = (uint64_t)1 << cpu % 64;
	return n == 2 && nic_cores_use(&cores.one[1]) && nic_cores_use(&cores.one[0]);
}

/* The calling thread has the second. */
static inline void second_core(void)
{
	nic_cores_use(&cores.one[1]);
}

/* Any again. */
static inline void all_cores(void)
{
	nic_cores_use(&cores.all);
}

#endif
