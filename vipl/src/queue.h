/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dequeuing from a work queue: shared by the non-blocking calls, the waiting ones and the notify thread.
 */
#ifndef VIPL_QUEUE_H
#define VIPL_QUEUE_H

#include "vipl/src/object.h"

static inline uint32_t vipl_desc_status(const struct nic_desc *desc)
{
	/* Q1: pairs with the NIC's release of a completed descriptor's status */
	return atomic_load_explicit(&desc->status, memory_order_acquire);
}

/*
 * Takes the oldest descriptor when it is complete: VIP_SUCCESS or VIP_DESCRIPTOR_ERROR with it, VIP_NOT_DONE, or
 * VIP_DESCRIPTOR_ERROR with NULL when the queue is empty.  The NIC is polled only when there is nothing yet.
 */
VIPL_INLINE VIP_RETURN vipl_queue_take(struct vipl_vi *vi, struct vipl_queue *q, VIP_DESCRIPTOR **out)
{
	struct nic_desc *desc;
	uint32_t status;

	if (__builtin_expect(q->head == q->tail, 0)) {
		nic_poll(vi->hw);
		*out = NULL;
		return VIP_DESCRIPTOR_ERROR;
	}
	desc = q->ring[q->head & q->mask];
	status = vipl_desc_status(desc);
	if (!(status & NIC_ST_DONE)) {
		nic_poll(vi->hw);
		status = vipl_desc_status(desc);
		if (!(status & NIC_ST_DONE))
			return VIP_NOT_DONE;
	}
	q->head++;
	*out = (VIP_DESCRIPTOR *)desc;
	return __builtin_expect(status & NIC_ST_ERROR_MASK, 0) ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

#endif
