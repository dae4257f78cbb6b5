/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims: who moves what of an RDMA transfer that the NICs of both ends work on.  Two pages for every ordered pair of slots,
 * in the area of the slot that asks; the slot that is asked writes there, too.
 *
 * The asking NIC opens a claim by storing its id, with release [R1], and names it in a request on the link.  The NIC that
 * is asked takes one part after the other by adding 1 to the word (compare-and-swap, acquire and release), before it
 * touches the data of that part.  What it has not taken the asking NIC can take back, by setting CLOSED (compare-and-swap,
 * too): then the low bits say for good which parts the other one does, and all further ones are the asking NIC's own.
 * So each part has exactly one mover, whoever stops at whatever instruction.  The NIC that is asked closes what it does nothing about.
 *
 * A part that is a copy straight into or out of the asking process is announced by DONE or REFUSED, with release [R2];
 * the asking NIC's acquire pairs with it.  The parts of a write that came in packets are counted in PLACED when they are in place, in
 * the same way; a refusal closes the claim; posted writes are parts of one claim, too, each with an address of its own.  The parts
 * of a read arrive as packets, but a short read lies beside its claim, or in a reply that its request names, when DONE says so.
 */
#ifndef NIC_MEM_CLAIM_H
#define NIC_MEM_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	NIC_CLAIMS = 64,     /* transfers under way between two slots, each way: as many as the windows that programs put and get in */
	NIC_CLAIM_DATA = 56, /* bytes beside a claim */
	NIC_REPLIES = 3,     /* short reads of more bytes, of these transfers */
	NIC_REPLY_MAX = 640, /* bytes */
};

enum {
	NIC_CLAIM_PARTS = 0xFFFF,    /* taken so far by the NIC that is asked */
	NIC_CLAIM_DONE = 0x10000,    /* the copy is made */
	NIC_CLAIM_REFUSED = 0x20000, /* not by this NIC; nothing was moved */
	NIC_CLAIM_CLOSED = 0x40000,  /* no further part may be taken */
	NIC_CLAIM_PLACED = 0x100000, /* times the number of parts of a write that are in place */
	NIC_CLAIM_PLACES = 0xFFF,    /* at most */
};

struct nic_claim {
	_Alignas(64) _Atomic uint64_t word; /* id << 32 | flags | parts */
	uint8_t data[NIC_CLAIM_DATA];       /* of a short read */
};

struct nic_claims {
	_Alignas(4096) struct nic_claim claim[NIC_CLAIMS]; /* that of id i is number i % NIC_CLAIMS */
	struct nic_claim half; /* of a broadcast that the slot that is asked sends: its second half, by who wants it (mem/board.h) */
	_Alignas(64) _Atomic uint32_t seen;                /* changes when the slot that is asked has looked at requests */
	_Alignas(64) _Atomic uint32_t reads;               /* of long messages, those that the slot that asks would rather read (ctl/rdma_rows.c) */
	_Alignas(64) uint8_t reply[NIC_REPLIES][NIC_REPLY_MAX]; /* short reads that do not fit beside their claims */
};
_Static_assert(sizeof(struct nic_claims) == 8192, "pages, which can be made writable alone");

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

/* The same of a write that comes in packets: those before it are in place. */
static inline bool nic_claim_take_placing(struct nic_claim *claim, uint32_t id, uint32_t part)
{
	uint64_t word = (uint64_t)id << 32 | (uint64_t)part * (NIC_CLAIM_PLACED + 1);

	return part < NIC_CLAIM_PLACES &&
	       atomic_compare_exchange_strong_explicit(&claim->word, &word, word + 1, memory_order_acq_rel, memory_order_acquire);
}

/*
 * The part that was taken is a copy, and is made or refused: DONE or REFUSED.  Where the asking NIC has given up waiting for a peer
 * that was stopped in between, another claim may be here by now, of which nothing is told.  The first guess is right but for a claim
 * that was closed meanwhile: who asks polls this line, so it is not read first.
 */
static inline void nic_claim_tell(struct nic_claim *claim, uint32_t id, uint64_t how)
{
	uint64_t word = (uint64_t)id << 32 | 1;

	while (word >> 32 == id &&
	       !atomic_compare_exchange_strong_explicit(&claim->word, &word, word | how, memory_order_release, memory_order_relaxed)) /* R2 */
		;
}

/* That part is in place; of a claim that is another's by now nothing is told, as above. */
static inline void nic_claim_placed(struct nic_claim *claim, uint32_t id, uint32_t part)
{
	uint64_t word = (uint64_t)id << 32 | ((uint64_t)part * (NIC_CLAIM_PLACED + 1) + 1);

	while (word >> 32 == id &&
	       !atomic_compare_exchange_strong_explicit(&claim->word, &word, word + NIC_CLAIM_PLACED, memory_order_release, memory_order_relaxed)) /* R2 */
		;
}

static inline uint32_t nic_claim_in_place(uint64_t word)
{
	return (uint32_t)word / NIC_CLAIM_PLACED;
}

/* Is the other one at a part of such a write just now? */
static inline bool nic_claim_placing(uint64_t word)
{
	return nic_claim_in_place(word) != (word & NIC_CLAIM_PARTS);
}

/* Ends the taking; returns the word as it then stays but for DONE, REFUSED and PLACED. */
static inline uint64_t nic_claim_close(struct nic_claim *claim)
{
	return atomic_fetch_or_explicit(&claim->word, NIC_CLAIM_CLOSED, memory_order_acq_rel);
}

#endif
