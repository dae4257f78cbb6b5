/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processors this process may use, and how much of them. */
#ifndef NIC_ENGINE_CORES_H
#define NIC_ENGINE_CORES_H

#include <stdint.h>

#include "nicemu/mem/card.h"

/* Processors that the calling thread may use, one bit each; their number.  0, and no bit: not known. */
int nic_cores_allowed(uint64_t cpus[NIC_CPU_WORDS]);
/* What the control groups of this process allow, in cores; 0: no quota. */
double nic_cores_quota(void);

#endif
