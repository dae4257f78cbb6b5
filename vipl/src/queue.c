/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues: posting descriptors and taking completed ones.  The NIC does the work and writes the status; here a
 * descriptor is checked to be readable, linked to its predecessor and remembered.
 *
 * What may be wrong with a descriptor that can be read safely is not judged here: the NIC completes it in error.
 */
#include "vipl/src/queue.h"

/* Does the descriptor, all its segments included, lie in memory of that handle and of the VI's tag? */
VIPL_INLINE bool readable(const struct vipl_vi *vi, const struct nic_desc *desc, VIP_MEM_HANDLE memory)
{
	uint64_t at = (uint64_t)(uintptr_t)desc;
	uint32_t nseg;

	if (__builtin_expect(at % NIC_DESC_ALIGN != 0 || !nic_mem_check(vi->hw, at, sizeof *desc, memory, vi->ptag), 0))
		return false;
	nseg = desc->nseg;
	if (__builtin_expect(nseg <= 2 || nseg > NIC_DESC_SEGS_MAX, 1)) /* the NIC reads no segment of an overlong one */
		return true;
	return nic_mem_check(vi->hw, at, offsetof(struct nic_desc, seg) + nseg * sizeof(struct nic_seg), memory, vi->ptag);
}

/* The chain ends in that descriptor, or with NULL as before. */
VIPL_INLINE void chain(struct vipl_queue *q, struct nic_desc *desc, VIP_MEM_HANDLE memory)
{
	struct nic_desc *last;

	if (q->tail == q->head)
		return;
	last = q->ring[(q->tail - 1) & q->mask];
	last->next = (uint64_t)(uintptr_t)desc;
	last->next_handle = memory;
}

typedef int hw_post(struct nic *nic, uint32_t vi, struct nic_desc *desc);

VIPL_INLINE VIP_RETURN queue_post(struct vipl_vi *vi, struct vipl_queue *q, VIP_DESCRIPTOR *posted,
                                    VIP_MEM_HANDLE memory, uint32_t op, hw_post *hand_over)
{
	struct nic_desc *desc = (struct nic_desc *)posted;
	int err;

	if (__builtin_expect(!desc, 0))
		return VIP_INVALID_PARAMETER;
	if (__builtin_expect(!readable(vi, desc, memory), 0)) {
		vipl_error_post(vi, desc, op);
		return VIP_INVALID_PARAMETER;
	}
	if (__builtin_expect(q->tail - q->head > q->mask, 0) && !vipl_queue_grow(q))
		return VIP_ERROR_RESOURCE;
	desc->next = 0;
	desc->next_handle = 0;
	/* Relaxed: nobody else looks at it before it is handed over. */
	atomic_store_explicit(&desc->status, 0, memory_order_relaxed);
	chain(q, desc, memory);
	q->ring[q->tail++ & q->mask] = desc;
	err = hand_over(vi->hw, vi->number, desc);
	if (__builtin_expect(err != NIC_OK, 0)) {
		q->tail--;
		chain(q, NULL, 0);
		return vipl_return(err);
	}
	return VIP_SUCCESS;
}

VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr, VIP_MEM_HANDLE MemoryHandle)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = queue_post(vi, &vi->send, DescriptorPtr, MemoryHandle, NIC_ST_OP_SEND, nic_post_send);
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr, VIP_MEM_HANDLE MemoryHandle)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = queue_post(vi, &vi->recv, DescriptorPtr, MemoryHandle, NIC_ST_OP_RECEIVE, nic_post_recv);
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = DescriptorPtr ? vipl_queue_take(vi, &vi->send, DescriptorPtr) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = DescriptorPtr ? vipl_queue_take(vi, &vi->recv, DescriptorPtr) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}
