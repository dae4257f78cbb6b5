/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual interfaces: creating, asking, changing, destroying.  Connections are in conn.c, work queues in queue.c.
 */
#include <stdlib.h>
#include <string.h>

#include "vipl/src/object.h"

/* ---- attributes ---- */

static VIP_RETURN check_reliability(const struct vipl_nic *nic, const VIP_VI_ATTRIBUTES *in)
{
	switch (in->ReliabilityLevel) {
	case VIP_SERVICE_UNRELIABLE:
	case VIP_SERVICE_RELIABLE_DELIVERY:
	case VIP_SERVICE_RELIABLE_RECEPTION:
		break;
	default:
		return VIP_INVALID_RELIABILITY_LEVEL;
	}
	if (in->EnableRdmaRead && !(nic->attr.rdma_read & in->ReliabilityLevel))
		return VIP_INVALID_RDMAREAD;
	return VIP_SUCCESS;
}

VIP_RETURN vipl_vi_attr_read(struct vipl_nic *nic, const VIP_VI_ATTRIBUTES *in, struct nic_vi_attr *out)
{
	VIP_RETURN result = check_reliability(nic, in);

	if (result != VIP_SUCCESS)
		return result;
	if (in->MaxTransferSize > NIC_MAX_TRANSFER)
		return VIP_INVALID_MTU;
	if (in->QoS)
		return VIP_INVALID_QOS;
	if (!vipl_ptag_read(nic, in->Ptag, &out->ptag))
		return VIP_INVALID_PTAG;
	out->reliability = in->ReliabilityLevel;
	out->flags = (uint16_t)((in->EnableRdmaWrite ? NIC_VI_RDMA_WRITE : 0) | (in->EnableRdmaRead ? NIC_VI_RDMA_READ : 0));
	out->max_transfer = (uint32_t)in->MaxTransferSize;
	return VIP_SUCCESS;
}

void vipl_vi_attr_write(const struct nic_vi_attr *in, VIP_PROTECTION_HANDLE ptag, VIP_VI_ATTRIBUTES *out)
{
	memset(out, 0, sizeof *out);
	out->ReliabilityLevel = in->reliability;
	out->MaxTransferSize = in->max_transfer ? in->max_transfer : NIC_MAX_TRANSFER;
	out->Ptag = ptag;
	out->EnableRdmaWrite = in->flags & NIC_VI_RDMA_WRITE ? VIP_TRUE : VIP_FALSE;
	out->EnableRdmaRead = in->flags & NIC_VI_RDMA_READ ? VIP_TRUE : VIP_FALSE;
}

/* ---- the rings of posted descriptors ---- */

static bool ring_create(struct vipl_queue *q)
{
	q->ring = malloc(VIPL_QUEUE_FIRST * sizeof *q->ring);
	q->mask = VIPL_QUEUE_FIRST - 1;
	return q->ring;
}

bool vipl_queue_grow(struct vipl_queue *q)
{
	uint32_t used = q->tail - q->head, room = 2 * (q->mask + 1);
	struct nic_desc **ring;

	if (used >= NIC_MAX_QUEUE)
		return false;
	ring = malloc(room * sizeof *ring);
	if (!ring)
		return false;
	for (uint32_t i = q->head; i != q->tail; i++)
		ring[i & (room - 1)] = q->ring[i & q->mask];
	free(q->ring);
	q->ring = ring;
	q->mask = room - 1;
	return true;
}

_Static_assert((NIC_MAX_QUEUE & (NIC_MAX_QUEUE - 1)) == 0 && NIC_MAX_QUEUE >= (int)VIPL_QUEUE_FIRST,
               "a queue doubles from its first size to exactly its last");

/* Is a descriptor still the NIC's?  What was flushed by a disconnect may already be freed memory, and is not read. */
static bool pending(const struct vipl_queue *q)
{
	uint32_t i = (int32_t)(q->settled - q->head) > 0 ? q->settled : q->head;

	for (; i != q->tail; i++)
		if (!(atomic_load_explicit(&q->ring[i & q->mask]->status, memory_order_acquire) & NIC_ST_DONE)) /* Q1 */
			return true;
	return false;
}

/* ---- create ---- */

static bool bind_cq(struct vipl_nic *nic, VIP_CQ_HANDLE handle, struct vipl_queue *q)
{
	struct vipl_cq *cq = handle ? vipl_cq_lookup(handle) : NULL;

	if (handle && (!cq || vipl_nic_of(&cq->object) != nic))
		return false;
	q->cq = cq;
	return true;
}

/* At the NIC; the handle is the cookie, so it is published first: nobody else has it yet. */
static VIP_RETURN create_hw(struct vipl_nic *nic, struct vipl_vi *vi, const struct nic_vi_attr *attr)
{
	struct nic_vi_args args = { .attr = *attr };
	VIP_RETURN result;

	if (!ring_create(&vi->send) || !ring_create(&vi->recv))
		return VIP_ERROR_RESOURCE;
	vi->hw = nic->hw;
	vi->ptag = attr->ptag;
	args.cookie = vipl_object_publish(VIPL_VI, vi);
	args.send_cq = vi->send.cq ? &vi->send.cq->ring : NULL;
	args.recv_cq = vi->recv.cq ? &vi->recv.cq->ring : NULL;
	result = vipl_return(nic_vi_create(nic->hw, &args, &vi->number));
	if (result != VIP_SUCCESS)
		return result;
	if (vi->send.cq)
		vi->send.cq->users++;
	if (vi->recv.cq)
		vi->recv.cq->users++;
	return VIP_SUCCESS;
}

static void destroy_object(struct vipl_vi *vi)
{
	free(vi->send.ring);
	free(vi->recv.ring);
	vi->send.ring = vi->recv.ring = NULL;
	vipl_object_destroy(VIPL_VI, vi);
}

static VIP_RETURN create(struct vipl_nic *nic, const VIP_VI_ATTRIBUTES *in, VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE recv_cq,
                         VIP_VI_HANDLE *out)
{
	struct nic_vi_attr attr;
	VIP_RETURN result = vipl_vi_attr_read(nic, in, &attr);
	struct vipl_vi *vi;

	if (result != VIP_SUCCESS)
		return result;
	vi = vipl_object_create(VIPL_VI, nic);
	if (!vi)
		return VIP_ERROR_RESOURCE;
	vi->ptag_handle = in->Ptag;
	result = VIP_INVALID_PARAMETER;
	if (bind_cq(nic, send_cq, &vi->send) && bind_cq(nic, recv_cq, &vi->recv))
		result = create_hw(nic, vi, &attr);
	if (result != VIP_SUCCESS)
		destroy_object(vi);
	else
		*out = (VIP_VI_HANDLE)vipl_handle_of(&vi->object);
	return result;
}

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *ViAttribs, VIP_CQ_HANDLE SendCQHandle,
                       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE *ViHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (ViAttribs && ViHandle)
		result = create(nic, ViAttribs, SendCQHandle, RecvCQHandle, ViHandle);
	vipl_leave(nic);
	return result;
}

/* ---- destroy ---- */

void vipl_vi_release(void *any)
{
	struct vipl_vi *vi = any;

	if (vi->send.cq)
		vi->send.cq->users--;
	if (vi->recv.cq)
		vi->recv.cq->users--;
	destroy_object(vi);
}

/* Idle, and nothing at the NIC.  Completed descriptors that nobody dequeued are no reason to refuse. */
static VIP_RETURN destroy(struct vipl_nic *nic, struct vipl_vi *vi)
{
	enum nic_vi_state state;
	struct nic_vi_attr attr;

	nic_poll(nic->hw);
	if (nic_vi_query(nic->hw, vi->number, &state, &attr) != NIC_OK || state != NIC_VI_IDLE)
		return VIP_ERROR_RESOURCE;
	if (pending(&vi->send) || pending(&vi->recv))
		return VIP_ERROR_RESOURCE;
	if (nic_vi_destroy(nic->hw, vi->number) != NIC_OK)
		return VIP_ERROR_RESOURCE;
	vipl_notify_cancel(nic, vipl_handle_of(&vi->object));
	vipl_vi_release(vi);
	return VIP_SUCCESS;
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	struct vipl_nic *nic;
	VIP_RETURN result;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&vi->object);
	result = destroy(nic, vi);
	vipl_leave(nic);
	return result;
}

/* ---- query and set ---- */

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *ViAttribs,
                      VIP_BOOLEAN *SendQEmpty, VIP_BOOLEAN *RecvQEmpty)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	enum nic_vi_state state;
	struct nic_vi_attr attr;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	if (State && ViAttribs && SendQEmpty && RecvQEmpty) {
		nic_poll(vi->hw);
		result = vipl_return(nic_vi_query(vi->hw, vi->number, &state, &attr));
		if (result == VIP_SUCCESS) {
			*State = (VIP_VI_STATE)state;
			vipl_vi_attr_write(&attr, vi->ptag_handle, ViAttribs);
			*SendQEmpty = vi->send.head == vi->send.tail;
			*RecvQEmpty = vi->recv.head == vi->recv.tail;
		}
	}
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

static VIP_RETURN set(struct vipl_nic *nic, struct vipl_vi *vi, const VIP_VI_ATTRIBUTES *in)
{
	struct nic_vi_attr attr;
	enum nic_vi_state state;
	VIP_RETURN result;

	if (nic_vi_query(nic->hw, vi->number, &state, &attr) != NIC_OK || state != NIC_VI_IDLE)
		return VIP_INVALID_STATE;
	result = vipl_vi_attr_read(nic, in, &attr);
	if (result != VIP_SUCCESS)
		return result;
	result = vipl_return(nic_vi_set(nic->hw, vi->number, &attr));
	if (result == VIP_SUCCESS) {
		vi->ptag = attr.ptag;
		vi->ptag_handle = in->Ptag;
	}
	return result;
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *ViAttribs)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	struct vipl_nic *nic;
	VIP_RETURN result;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&vi->object);
	result = ViAttribs ? set(nic, vi, ViAttribs) : VIP_INVALID_PARAMETER;
	vipl_leave(nic);
	return result;
}
