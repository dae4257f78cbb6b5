/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: creating, resizing, destroying.  The ring is the NIC's format (nicemu/mem/cq.h), the memory ours.
 */
#include <stdlib.h>

#include "vipl/src/object.h"

/* Places for at least that many entries: a power of two. */
static uint32_t capacity_for(VIP_ULONG entries)
{
	uint32_t capacity = 1;

	while (capacity < entries)
		capacity *= 2;
	return capacity;
}

static VIP_RETURN create(struct vipl_nic *nic, VIP_ULONG entries, VIP_CQ_HANDLE *out)
{
	struct vipl_cq *cq = vipl_object_create(VIPL_CQ, nic);
	uint32_t capacity = capacity_for(entries);

	if (!cq)
		return VIP_ERROR_RESOURCE;
	cq->hw = nic->hw;
	cq->ring.mask = capacity - 1;
	cq->ring.entry = calloc(capacity, sizeof *cq->ring.entry);
	if (!cq->ring.entry) {
		vipl_object_destroy(VIPL_CQ, cq);
		return VIP_ERROR_RESOURCE;
	}
	*out = (VIP_CQ_HANDLE)vipl_object_publish(VIPL_CQ, cq);
	return VIP_SUCCESS;
}

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (!CQHandle || !EntryCount)
		result = VIP_INVALID_PARAMETER;
	else if (EntryCount > VIPL_MAX_CQ_ENTRIES)
		result = VIP_ERROR_RESOURCE;
	else
		result = create(nic, EntryCount, CQHandle);
	vipl_leave(nic);
	return result;
}

void vipl_cq_release(void *any)
{
	struct vipl_cq *cq = any;

	free(cq->ring.entry);
	cq->ring.entry = NULL;
	vipl_object_destroy(VIPL_CQ, cq);
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle)
{
	struct vipl_cq *cq = vipl_cq_enter(CQHandle);
	VIP_RETURN result = VIP_ERROR_RESOURCE;
	struct vipl_nic *nic;

	if (!cq)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&cq->object);
	if (!cq->users) {
		vipl_notify_cancel(nic, (uintptr_t)CQHandle);
		vipl_cq_release(cq);
		result = VIP_SUCCESS;
	}
	vipl_leave(nic);
	return result;
}

/* The lock is held and the NIC runs only in our calls, so nobody else touches the indices. */
static VIP_RETURN resize(struct nic_cq *ring, VIP_ULONG entries)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t used = tail - head, capacity = capacity_for(entries);
	uint64_t *entry;

	if (used > capacity)
		return VIP_ERROR_RESOURCE;
	entry = calloc(capacity, sizeof *entry);
	if (!entry)
		return VIP_ERROR_RESOURCE;
	for (uint32_t i = 0; i < used; i++)
		entry[i] = ring->entry[(head + i) & ring->mask];
	free(ring->entry);
	ring->entry = entry;
	ring->mask = capacity - 1;
	atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->tail, used, memory_order_relaxed);
	return VIP_SUCCESS;
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount)
{
	struct vipl_cq *cq = vipl_cq_enter(CQHandle);
	VIP_RETURN result;

	if (!cq)
		return VIP_INVALID_PARAMETER;
	if (!EntryCount)
		result = VIP_INVALID_PARAMETER;
	else if (EntryCount > VIPL_MAX_CQ_ENTRIES)
		result = VIP_ERROR_RESOURCE;
	else
		result = resize(&cq->ring, EntryCount);
	vipl_leave(vipl_nic_of(&cq->object));
	return result;
}
