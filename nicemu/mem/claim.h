/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims: who moves what of an RDMA transfer that the NICs of both ends work on.  One page for every ordered pair of slots,
 * in the area of the slot that asks; the slot that is asked writes there, too.
 *
 * The asking NIC opens a claim by storing its id, with release [R1], and names it in a request on the link.  The NIC that
 * is asked takes one part after the other by adding 1 to the word (compare-and-swap, acquire and release), before it
 * touches the data of that part.  What it has not taken the asking NIC can take back, by setting CLOSED (compare-and-swap,
 * too): then the low bits say for good which parts the other one does, and all further ones are the asking NIC's own.
 * So each part has exactly one mover, whoever stops at whatever instruction.
 *
 * A part that is a copy straight into or out of the asking process is announced by DONE or REFUSED, with release [R2];
 * the asking NIC's acquire pairs with it.  Other parts arrive as packets.
 */
#ifndef NIC_MEM_CLAIM_H
#define NIC_MEM_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { NIC_CLAIMS = 32 }; /* transfers under way between two slots, each way */

enum {
	NIC_CLAIM_PARTS = 0xFFFF,    /* taken so far by the NIC that is asked */
	NIC_CLAIM_DONE = 0x10000,    /* the copy is made */
	NIC_CLAIM_REFUSED = 0x20000, /* not by this NIC; nothing was moved */
	NIC_CLAIM_CLOSED = 0x40000,  /* no further part may be taken */
};

struct nic_claim {
	_Alignas(64) _Atomic uint64_t word; /* id << 32 | flags | parts */
};

struct nic_claims {
	_Alignas(4096) struct nic_claim claim[NIC_CLAIMS]; /* that of id i is number i % NIC_CLAIMS */
	_Alignas(64) _Atomic uint32_t seen;                /* id of the last request that the slot that is asked has looked at */
};
_Static_assert(sizeof(struct nic_claims) == 4096, "a page, which can be made writable alone");

static inline void nic_claim_open(struct nic_claim *claim, uint32_t id)
{
	atomic_store_explicit(&claim->word, (uint64_t)id << 32, memory_order_release); /* R1 */
}

static inline uint64_t nic_claim_look(struct nic_claim *claim)
{
	return atomic_load_explicit(&claim->word, memory_order_acquire); /* R1, R2 */
}

/* Takes part number `part` (they go in order); false: it is not there to take any more. */
static inline bool nic_claim_take(struct nic_claim *claim, uint32_t id, uint32_t part)
{
	uint64_t word = (uint64_t)id << 32 | part;

	return part < NIC_CLAIM_PARTS &&
	       atomic_compare_exchange_strong_explicit(&claim->word, &word, word + 1, memory_order_acq_rel, memory_order_acquire);
}

/* The part that was taken is a copy, and is made or refused: DONE or REFUSED. */
static inline void nic_claim_tell(struct nic_claim *claim, uint64_t how)
{
	atomic_fetch_or_explicit(&claim->word, how, memory_order_release); /* R2 */
}

/* Ends the taking; returns the word as it then stays but for DONE and REFUSED. */
static inline uint64_t nic_claim_close(struct nic_claim *claim)
{
	return atomic_fetch_or_explicit(&claim->word, NIC_CLAIM_CLOSED, memory_order_acq_rel);
}

#endif
