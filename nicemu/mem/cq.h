/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue: a ring of one-word entries in the consumer's process.
 * The NIC writes `tail` and the entries, the consumer writes `head`; each on a line of its own.
 *
 * Order: descriptor status first, entry second, tail (release) last [C1]; the consumer's acquire of tail pairs with it.
 */
#ifndef NIC_MEM_CQ_H
#define NIC_MEM_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct nic_cq {
	/* NIC writes */
	_Alignas(64) _Atomic uint32_t tail;
	uint32_t overflow; /* entries lost because the ring was full */
	/* consumer writes */
	_Alignas(64) _Atomic uint32_t head;
	uint32_t mask; /* capacity - 1, a power of two; constant between resizes */
	uint64_t *entry; /* vi cookie, bit 0 set for the receive queue */
};

enum { NIC_CQ_RECV = 1 };

/* NIC side: appends one entry; false when the ring is full (the entry is lost and counted). */
static inline bool nic_cq_publish(struct nic_cq *cq, uint64_t entry)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed); /* own index */
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire); /* pairs with the release in take */

	if (tail - head > cq->mask) {
		cq->overflow++;
		return false;
	}
	cq->entry[tail & cq->mask] = entry;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release); /* C1 */
	return true;
}

/* Is there an entry that the consumer has not taken? */
static inline bool nic_cq_any(const struct nic_cq *cq)
{
	/* Relaxed: only that the two differ is asked. */
	return atomic_load_explicit(&cq->head, memory_order_relaxed) != atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

/* Consumer side: takes the oldest entry; false when there is none. */
static inline bool nic_cq_take(struct nic_cq *cq, uint64_t *entry)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed); /* own index */

	if (head == atomic_load_explicit(&cq->tail, memory_order_acquire)) /* C1 */
		return false;
	*entry = cq->entry[head & cq->mask];
	atomic_store_explicit(&cq->head, head + 1, memory_order_release); /* pairs with the acquire in publish */
	return true;
}

#endif
