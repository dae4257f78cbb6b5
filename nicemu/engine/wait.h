/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting, as the rest of the NIC sees it: what a slot knows of the processors it shares, and the doorbells.
 * The calls for consumers are in nic.h.
 */
#ifndef NIC_ENGINE_WAIT_H
#define NIC_ENGINE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct nic;

struct nic_waiting {
	bool fenced;              /* the barrier of a sleeper is to be had */
	bool outnumbered;         /* at the last count */
	bool crowded;             /* that, or something else, and certainly, when somebody asked last; for those who have no time to ask */
	bool follows_epoch;       /* the consumer looks at nic_peer_epoch */
	uint8_t mode;             /* parameter `wait` */
	uint32_t epoch;           /* what it saw last */
	uint32_t cpu;             /* that this process was on when it rested last, + 1; 0: it has a core of its own */
	uint32_t population;      /* at the last count */
	uint32_t quota;           /* whole cores of the control group; 0: no limit */
	uint16_t empty;           /* nanoseconds between two looks of a program that does nothing but wait: a guess */
	uint64_t count_next;      /* when to count again */
	uint64_t stalled_until;   /* others hold the core: believed so long, */
	uint64_t belief;          /* which was so many nanoseconds */
	uint64_t stall_began, stalled;
	uint32_t stalls;          /* since then */
	_Atomic uint32_t sleepers; /* threads between nic_wait_doze and the end of nic_wait_rest */
	_Atomic uint64_t slept;   /* nanoseconds that the NIC has not been told of */
};

void nic_wait_open(struct nic *nic);       /* may take some milliseconds: no lock is held */
void nic_wait_publish(struct nic *nic);    /* the slot is chosen, and not LIVE yet */
void nic_wait_close(struct nic *nic);      /* wakes who sleeps, and waits until they have gone */
void nic_wait_population(struct nic *nic); /* this slot has come or gone */
void nic_wait_epoch(struct nic *nic, uint32_t epoch);
bool nic_wait_fences(void);                /* may this process use the barrier? */
bool nic_wait_fence(void);                 /* every running thread of those that may has executed a fence, this one too; false: not so */

/* Control path: something of slot `slot` has changed that is not a packet. */
void nic_bell_tell(struct nic *nic, uint32_t slot);
void nic_bell_tell_all(struct nic *nic);
/* In the daemon: what the process of `slot` may sleep for has been published. */
void nic_bell_done(struct nic *nic, uint32_t slot);

#endif
