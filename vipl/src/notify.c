/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notification: handlers that run when a work queue or a completion queue has something.
 *
 * Each notify call is one entry in a list of the NIC handle; a thread looks at the entries in their order, takes the
 * completion for the first one that has one, and runs its handler without the lock.  The thread exists only while there
 * are entries.  Handlers therefore run one at a time a NIC handle, and may make any call, VipCloseNic included.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "vipl/src/cq.h"
#include "vipl/src/queue.h"
#include "vipl/src/wait.h"

typedef void vipl_queue_fn(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR *);
typedef void vipl_cq_fn(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN);

enum kind { NOTIFY_SEND, NOTIFY_RECV, NOTIFY_CQ };

struct vipl_notify {
	struct vipl_notify *next;
	enum kind kind;
	void *handle; /* of the VI or completion queue */
	void *context;
	vipl_queue_fn *queue_handler;
	vipl_cq_fn *cq_handler;
	/* what it is called with */
	VIP_VI_HANDLE vi;
	VIP_DESCRIPTOR *desc;
	VIP_BOOLEAN recv;
};

/* ---- the list ---- */

static struct vipl_notify *unlink_at(struct vipl_nic *nic, struct vipl_notify **place)
{
	struct vipl_notify *entry = *place;

	*place = entry->next;
	if (nic->notify_end == &entry->next)
		nic->notify_end = place;
	nic->notifies--;
	return entry;
}

void vipl_notify_cancel(struct vipl_nic *nic, uintptr_t handle)
{
	struct vipl_notify **place = &nic->notify;

	while (*place) {
		if ((uintptr_t)(*place)->handle == handle)
			free(unlink_at(nic, place));
		else
			place = &(*place)->next;
	}
}

/* ---- the thread ---- */

/* Handlers of one queue run in their order: when the first finds nothing, the others do not look in this pass. */
static bool skip(uint32_t *mark, uint32_t pass)
{
	bool looked = *mark == pass;

	*mark = pass;
	return looked;
}

static bool queue_ready(struct vipl_notify *entry, bool recv, uint32_t pass)
{
	struct vipl_vi *vi = vipl_vi_lookup(entry->handle);
	struct vipl_queue *q;

	if (!vi || skip(recv ? &vi->recv_pass : &vi->send_pass, pass))
		return false;
	q = recv ? &vi->recv : &vi->send;
	entry->vi = entry->handle;
	return q->head != q->tail && vipl_queue_take(vi, q, &entry->desc) != VIP_NOT_DONE;
}

static bool cq_ready(struct vipl_notify *entry, uint32_t pass)
{
	struct vipl_cq *cq = vipl_cq_lookup(entry->handle);

	return cq && !skip(&cq->pass, pass) && vipl_cq_take(cq, &entry->vi, &entry->recv) == VIP_SUCCESS;
}

static bool ready(struct vipl_notify *entry, uint32_t pass)
{
	switch (entry->kind) {
	case NOTIFY_SEND:
		return queue_ready(entry, false, pass);
	case NOTIFY_RECV:
		return queue_ready(entry, true, pass);
	case NOTIFY_CQ:
		return cq_ready(entry, pass);
	}
	return false;
}

static struct vipl_notify *take_ready(struct vipl_nic *nic)
{
	nic->pass++;
	for (struct vipl_notify **place = &nic->notify; *place; place = &(*place)->next)
		if (ready(*place, nic->pass))
			return unlink_at(nic, place);
	return NULL;
}

static void run_handler(VIP_NIC_HANDLE nic, struct vipl_notify *entry)
{
	if (entry->kind == NOTIFY_CQ)
		entry->cq_handler(entry->context, nic, entry->vi, entry->recv);
	else
		entry->queue_handler(entry->context, nic, entry->vi, entry->desc);
	free(entry);
}

/* One look: false when the thread is to end, because nothing waits any more or the NIC handle has gone. */
static bool look(struct vipl_nic *nic, VIP_NIC_HANDLE handle, struct vipl_notify **entry)
{
	*entry = NULL;
	if (!vipl_nic_enter(handle))
		return false;
	if (!nic->notify) {
		nic->service = false;
		vipl_leave(nic);
		return false;
	}
	*entry = take_ready(nic);
	vipl_leave(nic);
	return true;
}

struct service {
	struct vipl_nic *nic;
	VIP_NIC_HANDLE handle;
};

static void *serve(void *arg)
{
	struct service service = *(struct service *)arg;
	struct vipl_notify *entry;
	struct vipl_wait wait;

	free(arg);
	vipl_wait_init(&wait, VIP_INFINITE, service.handle);
	while (look(service.nic, service.handle, &entry)) {
		if (!entry) {
			vipl_wait_step(&wait);
			continue;
		}
		run_handler(service.handle, entry);
		vipl_wait_reset(&wait);
	}
	return NULL;
}

/* The program's signals are not for this thread. */
static bool create_thread(pthread_t *thread, struct service *service)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, serve, service);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err == 0;
}

/* The lock is held.  A thread that has ended by itself is joined here, which does not block. */
static bool start_service(struct vipl_nic *nic, VIP_NIC_HANDLE handle)
{
	struct service *service;

	if (nic->service)
		return true;
	service = malloc(sizeof *service);
	if (!service)
		return false;
	*service = (struct service){ nic, handle };
	if (nic->service_used)
		pthread_join(nic->service_thread, NULL);
	nic->service_used = nic->service = create_thread(&nic->service_thread, service);
	if (!nic->service)
		free(service);
	return nic->service;
}

void vipl_notify_stop(struct vipl_nic *nic)
{
	if (nic->service_used) {
		if (pthread_equal(pthread_self(), nic->service_thread))
			pthread_detach(nic->service_thread);
		else
			pthread_join(nic->service_thread, NULL);
	}
	vipl_lock(nic);
	nic->service_used = nic->service = false;
	while (nic->notify)
		free(unlink_at(nic, &nic->notify));
	vipl_unlock(nic);
}

/* ---- the calls ---- */

static VIP_RETURN add(struct vipl_nic *nic, const struct vipl_notify *wanted)
{
	uintptr_t handle = vipl_handle_of(&nic->object);
	struct vipl_notify *entry;

	if (!handle) /* being closed */
		return VIP_INVALID_PARAMETER;
	/* A handle that the caller serialises cannot be shared with a thread. */
	if (nic->serial || nic->notifies == VIPL_MAX_NOTIFY)
		return VIP_ERROR_RESOURCE;
	entry = malloc(sizeof *entry);
	if (!entry || !start_service(nic, (VIP_NIC_HANDLE)handle)) {
		free(entry);
		return VIP_ERROR_RESOURCE;
	}
	*entry = *wanted;
	*nic->notify_end = entry;
	nic->notify_end = &entry->next;
	nic->notifies++;
	return VIP_SUCCESS;
}

static VIP_RETURN queue_notify(VIP_VI_HANDLE handle, enum kind kind, VIP_PVOID context, vipl_queue_fn *handler)
{
	struct vipl_notify wanted = { .kind = kind, .handle = handle, .context = context, .queue_handler = handler };
	struct vipl_vi *vi = vipl_vi_enter(handle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct vipl_nic *nic;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&vi->object);
	if (handler && (kind == NOTIFY_RECV ? &vi->recv : &vi->send)->cq)
		result = VIP_ERROR_RESOURCE; /* as in queue_wait.c */
	else if (handler)
		result = add(nic, &wanted);
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                         void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                         VIP_DESCRIPTOR *Descriptor))
{
	return queue_notify(ViHandle, NOTIFY_SEND, Context, Handler);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                         void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                         VIP_DESCRIPTOR *Descriptor))
{
	return queue_notify(ViHandle, NOTIFY_RECV, Context, Handler);
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context,
                       void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                       VIP_BOOLEAN RecvQueue))
{
	struct vipl_notify wanted = { .kind = NOTIFY_CQ, .handle = CQHandle, .context = Context, .cq_handler = Handler };
	struct vipl_cq *cq = vipl_cq_enter(CQHandle);
	struct vipl_nic *nic;
	VIP_RETURN result;

	if (!cq)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&cq->object);
	result = Handler ? add(nic, &wanted) : VIP_INVALID_PARAMETER;
	vipl_leave(nic);
	return result;
}
