/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking an entry from a completion queue: shared by the non-blocking call, the waiting one and the notify thread.
 */
#ifndef VIPL_CQ_H
#define VIPL_CQ_H

#include "vipl/src/object.h"

/* The oldest entry of a VI that still exists; NULL: none. */
VIPL_INLINE struct vipl_vi *vipl_cq_next(struct vipl_cq *cq, bool *recv)
{
	struct vipl_vi *vi;
	uint64_t entry;

	while (nic_cq_take(&cq->ring, &entry)) {
		vi = vipl_vi_lookup((void *)(uintptr_t)(entry & ~(uint64_t)NIC_CQ_RECV));
		*recv = entry & NIC_CQ_RECV;
		if (__builtin_expect(vi != NULL, 1))
			return vi;
	}
	return NULL;
}

/* The same by its handle.  The NIC is polled once, and only when there is none. */
VIPL_INLINE VIP_RETURN vipl_cq_take(struct vipl_cq *cq, VIP_VI_HANDLE *handle, VIP_BOOLEAN *queue)
{
	bool recv;
	struct vipl_vi *vi = vipl_cq_next(cq, &recv);

	if (!vi) {
		nic_poll(cq->hw);
		vi = vipl_cq_next(cq, &recv);
	}
	if (!vi)
		return VIP_NOT_DONE;
	*handle = (VIP_VI_HANDLE)vipl_handle_of(&vi->object);
	*queue = recv ? VIP_TRUE : VIP_FALSE;
	return VIP_SUCCESS;
}

#endif
