/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: looking at one.  Making them is in cq_life.c, waiting in cq_wait.c.
 */
#include "vipl/src/cq.h"

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue)
{
	struct vipl_cq *cq = vipl_cq_enter(CQHandle);
	VIP_RETURN result;

	if (__builtin_expect(!cq, 0))
		return VIP_INVALID_PARAMETER;
	result = ViHandle && RecvQueue ? vipl_cq_take(cq, ViHandle, RecvQueue) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&cq->object));
	return result;
}
