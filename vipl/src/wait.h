/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a blocking call passes its time between two looks: at first it only pauses, then yields the processor, then sleeps
 * in growing steps up to a millisecond, or until a packet comes.  Where processes outnumber the cores it pauses and yields
 * less.  No lock is held meanwhile.
 *
 * A NIC runs in the calls of its process.  So that a wait for one NIC handle does not hold up what another handle of the
 * process has to do, a wait that takes longer runs them all.
 */
#ifndef VIPL_WAIT_H
#define VIPL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "vipl.h"

struct vipl_wait {
	VIP_NIC_HANDLE nic; /* whose doorbell ends a sleep; NULL: none */
	uint64_t deadline; /* monotonic nanoseconds; UINT64_MAX: never */
	uint32_t round;
	uint32_t sleep; /* nanoseconds of the next sleep */
};

/* Monotonic time in nanoseconds at which a timeout that starts now is over; UINT64_MAX for VIP_INFINITE. */
uint64_t vipl_deadline(VIP_ULONG milliseconds);
bool vipl_deadline_over(uint64_t deadline);

void vipl_wait_init(struct vipl_wait *wait, VIP_ULONG milliseconds, VIP_NIC_HANDLE nic);
/* Something happened: look closely again. */
void vipl_wait_reset(struct vipl_wait *wait);
/* Passes a little time; false when there is none left. */
bool vipl_wait_step(struct vipl_wait *wait);

#endif
