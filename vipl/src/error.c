/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors: what a NIC error is in VIPL's codes, and asynchronous errors on their way to the program's handler.
 *
 * The NIC reports an asynchronous error from within one of its calls; it is noted in a ring of the NIC handle and
 * reported after the lock is dropped, by the thread that made the call (or by the one that is reporting already).
 * So a lost connection reaches the handler at the latest with the next call that polls the NIC.  A NIC that runs beside the
 * program reports from its own thread, but not on a handle whose calls the program serialises: there, too, with the next call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vipl/src/object.h"

VIP_RETURN vipl_return(int err)
{
	static const VIP_RETURN table[NIC_ERR_COUNT] = {
		[NIC_OK] = VIP_SUCCESS,
		[NIC_NOT_DONE] = VIP_NOT_DONE,
		[NIC_PARAMETER] = VIP_INVALID_PARAMETER,
		[NIC_RESOURCE] = VIP_ERROR_RESOURCE,
		[NIC_STATE] = VIP_INVALID_STATE,
		[NIC_PTAG] = VIP_INVALID_PTAG,
		[NIC_RELIABILITY] = VIP_INVALID_RELIABILITY_LEVEL,
		[NIC_MTU] = VIP_INVALID_MTU,
		[NIC_QOS] = VIP_INVALID_QOS,
		[NIC_RDMA_READ] = VIP_INVALID_RDMAREAD,
		[NIC_NO_MATCH] = VIP_NO_MATCH,
		[NIC_NOT_REACHABLE] = VIP_NOT_REACHABLE,
		[NIC_REJECTED] = VIP_REJECT,
		[NIC_BUSY] = VIP_ERROR_RESOURCE,
		[NIC_SYSTEM] = VIP_ERROR_RESOURCE,
		[NIC_UNKNOWN_NAME] = VIP_NO_MATCH,
	};

	return err >= 0 && err < NIC_ERR_COUNT ? table[err] : VIP_ERROR_RESOURCE;
}

/* ---- the default handler ---- */

static const char *error_text(VIP_ERROR_CODE code)
{
	static const char *const text[] = {
		[VIP_ERROR_POST_DESC] = "a descriptor was posted that is not aligned or not in registered memory",
		[VIP_ERROR_CONN_LOST] = "connection lost",
		[VIP_ERROR_RECVQ_EMPTY] = "a message found no receive descriptor",
		[VIP_ERROR_VI_OVERRUN] = "too many descriptors or completions",
		[VIP_ERROR_RDMAW_PROT] = "RDMA write refused: protection",
		[VIP_ERROR_RDMAW_DATA] = "RDMA write: bad data",
		[VIP_ERROR_RDMAW_ABORT] = "RDMA write aborted",
		[VIP_ERROR_RDMAR_PROT] = "RDMA read refused: protection",
		[VIP_ERROR_COMP_PROT] = "a completion could not be written: protection",
		[VIP_ERROR_RDMA_TRANSPORT] = "RDMA transport error",
		[VIP_ERROR_CATASTROPHIC] = "catastrophic error",
	};

	return (size_t)code < sizeof text / sizeof *text && text[code] ? text[code] : "unknown error";
}

/* Says once a code what happened: a program without a handler does not look for more. */
static void log_error(struct vipl_nic *nic, VIP_ERROR_CODE code)
{
	uint32_t bit = 1u << ((unsigned)code & 31);
	bool first = !(nic->logged & bit);

	nic->logged |= bit;
	if (first && strcmp(nic_param_str("log"), "quiet") != 0)
		fprintf(stderr, "vipl: %s: %s (further ones are not shown)\n", nic->attr.device, error_text(code));
}

/* ---- noting ---- */

static void note(struct vipl_nic *nic, const struct nic_event *event, uintptr_t vi)
{
	struct vipl_error *place;

	/* Full: a program whose handler does not return, or a flood; the oldest say most. */
	if (nic->event_tail - nic->event_head == VIPL_MAX_EVENTS)
		return;
	place = &nic->event[nic->event_tail++ % VIPL_MAX_EVENTS];
	place->event = *event;
	place->vi = vi;
}

void vipl_error_note(void *arg, const struct nic_event *event)
{
	note(arg, event, (uintptr_t)event->vi_cookie);
}

void vipl_error_post(struct vipl_vi *vi, const void *desc, uint32_t op)
{
	struct nic_event event = { NIC_EV_POST_DESC, 0, (uint64_t)(uintptr_t)desc, op };

	note(vipl_nic_of(&vi->object), &event, vipl_handle_of(&vi->object));
}

/* ---- reporting ---- */

static VIP_RESOURCE_CODE resource_of(const struct vipl_error *error)
{
	switch (error->event.code) {
	case NIC_EV_CONN_LOST:
	case NIC_EV_RECVQ_EMPTY:
	case NIC_EV_VI_OVERRUN:
		return error->vi ? VIP_RESOURCE_VI : VIP_RESOURCE_NIC;
	default:
		return error->event.desc ? VIP_RESOURCE_DESCRIPTOR : error->vi ? VIP_RESOURCE_VI : VIP_RESOURCE_NIC;
	}
}

static void describe(uintptr_t nic_handle, const struct vipl_error *error, VIP_ERROR_DESCRIPTOR *out)
{
	out->NicHandle = (VIP_NIC_HANDLE)nic_handle;
	out->ViHandle = (VIP_VI_HANDLE)error->vi;
	out->CQHandle = NULL;
	out->DescriptorPtr = (VIP_DESCRIPTOR *)(uintptr_t)error->event.desc;
	out->OpCode = error->event.op;
	out->ResourceCode = resource_of(error);
	out->ErrorCode = (VIP_ERROR_CODE)error->event.code;
}

/*
 * One error, without the lock while the program's handler runs; false when the NIC handle has gone meanwhile.  Its place may
 * then be another one's, which is unlocked or not: the lock goes by what was so at the beginning.
 */
static bool report_one(struct vipl_nic *nic, uintptr_t handle, bool unlocked)
{
	struct vipl_error error = nic->event[nic->event_head++ % VIPL_MAX_EVENTS];
	vipl_error_fn *handler = nic->handler;
	void *context = nic->context;
	VIP_ERROR_DESCRIPTOR described;

	if (!handler) {
		log_error(nic, (VIP_ERROR_CODE)error.event.code);
		return true;
	}
	describe(handle, &error, &described);
	if (!unlocked)
		vipl_lock_give(&nic->lock);
	handler(context, &described);
	if (!unlocked)
		vipl_lock_take(&nic->lock);
	return vipl_is(&nic->object, handle);
}

void vipl_error_report(struct vipl_nic *nic)
{
	bool unlocked = nic->unlocked;
	uintptr_t handle;

	if (!unlocked)
		vipl_lock_take(&nic->lock);
	handle = vipl_handle_of(&nic->object);
	/* A thread that is reporting, perhaps this one further up, takes the new ones along. */
	if (handle && !nic->reporting) {
		bool open = true;

		nic->reporting = true;
		while (open && nic->event_head != nic->event_tail)
			open = report_one(nic, handle, unlocked);
		if (open)
			nic->reporting = false;
	}
	if (!unlocked)
		vipl_lock_give(&nic->lock);
}

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                            void (*Handler)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc))
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (!nic)
		return VIP_INVALID_PARAMETER;
	nic->handler = Handler;
	nic->context = Context;
	vipl_leave(nic);
	return VIP_SUCCESS;
}
