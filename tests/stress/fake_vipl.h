/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A VIPL for tests: several "processes" in one, one NIC handle each, and a network that moves one thing at a time, by
 * seed or by hand.  It offers what C-MPI's protocol module calls, and judges how it is called: a message without a posted
 * receive, memory that is not registered, a buffer that is not owned are violations, which tests look at.
 *
 * Not a model of time or of the NIC: messages of one VI stay in order, everything else may happen in any order.
 */
#ifndef TESTS_FAKE_VIPL_H
#define TESTS_FAKE_VIPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vipl.h"

struct fake_config {
	uint64_t seed;
	uint32_t buffers; /* pool buffers of each NIC handle */
	uint32_t instant; /* of 100 sends, how many leave inside the post when nothing is before them */
	uint32_t brief;   /* of 100 short messages and RDMA transfers, how many are done inside the command; some of the messages arrive by value */
	uint32_t auto_steps; /* network steps inside each VipCQDone that finds nothing */
};

/* Forgets everything, parameters included (they get the defaults of nicemu/util/params.def). */
void fake_reset(const struct fake_config *config);
void fake_auto_steps(uint32_t steps);
/* Likewise inside each VipSendDone that finds nothing. */
void fake_send_steps(uint32_t steps);
void fake_brief(uint32_t percent);
void fake_instant(uint32_t percent);
void fake_param(const char *name, int64_t value);
uint32_t fake_random(uint32_t below);

/* Moves one thing, chosen at random; false: nothing can move. */
bool fake_step(void);
void fake_run(void);
/* Nothing leaves `from` for `to` (any when NULL) while held. */
void fake_hold(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, bool held);
/* Nothing arrives there meanwhile. */
void fake_deaf(VIP_NIC_HANDLE nic, bool deaf);
/* Single long messages that have begun: those of an odd length are, as their sender was told. */
extern unsigned fake_singles;
extern unsigned fake_longs; /* and all long ones */
/* How often a packet of a long message asked whether it may go; those of lengths 2 and 3 above a multiple of 8 had better be sent. */
extern unsigned fake_turns;
/* Messages that went straight to where they were waited for (VipxRecvExpected). */
extern unsigned fake_expected;
/* Cores are short: who waits is told to yield; and how often that was done. */
extern bool fake_crowded;
extern unsigned fake_rests;
/* The process of that handle is gone, without a word. */
void fake_kill(VIP_NIC_HANDLE nic);

/* What was done wrong first; NULL: nothing. */
const char *fake_violation(void);
/* Buffers that are neither free nor on their way. */
uint32_t fake_buffers_owned(void);
/* Everything on its way from one to the other: posted, in the network, or arrived and not yet dequeued. */
void fake_in_flight(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, void (*fn)(void *arg, const void *packet, size_t len), void *arg);
/* Makes the message shorter that is so far behind in the network, 0 the first. */
void fake_shorten(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, uint32_t behind, size_t len);
/* Fewest receives that were posted when a message arrived at any VI (1: it took the last one). */
uint32_t fake_closest(void);
/* How often a large page was asked for, and where the last time. */
uint32_t fake_large_pages(VIP_PVOID *at);
void fake_large_takes(unsigned us); /* each of them */
/* Refuses the next registrations of memory (not of vbufs made before). */
void fake_refuse_registrations(uint32_t n);

#endif
