/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for a completion queue, as in queue_wait.c: each look is a complete non-blocking call.
 */
#include "vipl/src/cq.h"
#include "vipl/src/wait.h"

static VIP_RETURN look(VIP_CQ_HANDLE handle, VIP_VI_HANDLE *vi, VIP_BOOLEAN *recv)
{
	struct vipl_cq *cq = vipl_cq_enter(handle);
	VIP_RETURN result;

	if (!cq)
		return VIP_INVALID_PARAMETER;
	result = vipl_cq_take(cq, vi, recv);
	vipl_leave(vipl_nic_of(&cq->object));
	return result;
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue)
{
	struct vipl_wait wait;
	VIP_RETURN result;

	if (!ViHandle || !RecvQueue)
		return VIP_INVALID_PARAMETER;
	vipl_wait_init(&wait, Timeout, vipl_nic_handle_of((struct vipl_object *)vipl_cq_lookup(CQHandle)));
	while ((result = look(CQHandle, ViHandle, RecvQueue)) == VIP_NOT_DONE)
		if (!vipl_wait_step(&wait))
			return VIP_TIMEOUT;
	return result;
}
