/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for a work queue.  Each look is a complete non-blocking call, so other threads may use the VI meanwhile, and
 * may even destroy it.
 */
#include "vipl/src/queue.h"
#include "vipl/src/wait.h"

static VIP_RETURN look(VIP_VI_HANDLE handle, bool recv, VIP_DESCRIPTOR **out)
{
	struct vipl_vi *vi = vipl_vi_enter(handle);
	struct vipl_queue *q;
	VIP_RETURN result;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	q = recv ? &vi->recv : &vi->send;
	/* The completions of such a queue are waited for at the completion queue. */
	result = q->cq ? VIP_ERROR_RESOURCE : vipl_queue_take(vi, q, out);
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

static VIP_RETURN queue_wait(VIP_VI_HANDLE handle, bool recv, VIP_ULONG timeout, VIP_DESCRIPTOR **out)
{
	struct vipl_wait wait;
	VIP_RETURN result;

	if (!out)
		return VIP_INVALID_PARAMETER;
	vipl_wait_init(&wait, timeout, vipl_nic_handle_of((struct vipl_object *)vipl_vi_lookup(handle)));
	while ((result = look(handle, recv, out)) == VIP_NOT_DONE)
		if (!vipl_wait_step(&wait))
			return VIP_TIMEOUT;
	return result;
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr)
{
	return queue_wait(ViHandle, false, Timeout, DescriptorPtr);
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr)
{
	return queue_wait(ViHandle, true, Timeout, DescriptorPtr);
}
