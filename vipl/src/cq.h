/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking an entry from a completion queue: shared by the non-blocking call, the waiting one and the notify thread.
 */
#ifndef VIPL_CQ_H
#define VIPL_CQ_H

#include "vipl/src/object.h"

/* The oldest entry of a VI that still exists.  The NIC is polled once, and only when there is none. */
VIPL_INLINE VIP_RETURN vipl_cq_take(struct vipl_cq *cq, VIP_VI_HANDLE *vi, VIP_BOOLEAN *recv)
{
	bool polled = false;
	uint64_t entry;

	for (;;) {
		if (!nic_cq_take(&cq->ring, &entry)) {
			if (polled)
				return VIP_NOT_DONE;
			nic_poll(cq->hw);
			polled = true;
			continue;
		}
		*vi = (VIP_VI_HANDLE)(uintptr_t)(entry & ~(uint64_t)NIC_CQ_RECV);
		if (__builtin_expect(!vipl_vi_lookup(*vi), 0))
			continue;
		*recv = (VIP_BOOLEAN)(entry & NIC_CQ_RECV);
		return VIP_SUCCESS;
	}
}

#endif
