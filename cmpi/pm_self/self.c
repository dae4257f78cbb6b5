/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol module "self": messages of a process to itself.  No VI, no credit, no progress: a message and its receive
 * meet inside the call that comes second.
 *
 * A short message that nobody waits for is copied, up to HELD_MAX bytes of them; a longer one, and a synchronous one, stays
 * where it is until it is received.
 */
#include <stdlib.h>
#include <string.h>

#include "cmpi/engine/engine.h"

enum { EAGER = 16384, HELD_MAX = 1 << 20, CHARGE = 128 };

#define UNUSED __attribute__((unused))

/* An unexpected message. */
struct self_message {
	struct cmpi_message message; /* first */
	struct cmpi_req *send;       /* whose buffer has the data; NULL: they are here */
	uint8_t data[];
};

/* Counted in the queue of this process itself: see held(). */
static uint32_t *held(struct cmpi_proc *self)
{
	return &mpip_process(self)->held;
}

static void copy(struct cmpi_req *recv, const void *data, uint64_t key, uint64_t len)
{
	uint64_t room = recv->size < len ? recv->size : len;

	if (room)
		memmove(recv->buf, data, (size_t)room);
	mpip_req_got(recv, key, len);
}

/* A receive that waits gets it at once. */
static bool deliver(struct cmpi *c, struct cmpi_proc *self, const void *buf, uint64_t len, int tag, const struct cmpi_comm *comm)
{
	uint64_t key = mpip_key(comm->context, comm->rank, tag);
	struct cmpi_req *recv = mpip_arrived(c, self, key);

	if (!recv)
		return false;
	copy(recv, buf, key, len);
	mpip_req_end(mpip_engine(c), recv, recv->status.err);
	return true;
}

static struct self_message *enqueue(struct cmpi *c, struct cmpi_proc *self, uint64_t len, size_t room, int tag,
                                    const struct cmpi_comm *comm)
{
	struct self_message *m = malloc(sizeof(*m) + room);

	if (!m)
		return NULL;
	m->send = NULL;
	m->message.from = self;
	m->message.key = mpip_key(comm->context, comm->rank, tag);
	m->message.length = len;
	if (mpip_enqunexpected(mpip_engine(c), &m->message))
		return m;
	free(m);
	return NULL;
}

static int hold(struct cmpi *c, struct cmpi_proc *self, const void *buf, size_t len, int tag, const struct cmpi_comm *comm)
{
	struct self_message *m;

	if (len > EAGER || *held(self) + len + CHARGE > HELD_MAX)
		return CMPI_AGAIN;
	m = enqueue(c, self, len, len, tag, comm);
	if (!m)
		return CMPI_RESOURCE;
	if (len)
		memcpy(m->data, buf, len);
	*held(self) += (uint32_t)len + CHARGE;
	return CMPI_OK;
}

/* ---- sends and receives ---------------------------------------------------------------------------------------------------- */

static int mpip_self_fsend(struct cmpi *c, struct cmpi_proc *self, const void *buf, size_t count, const struct cmpi_type *type,
                           int tag, struct cmpi_comm *comm, int mode)
{
	size_t len = type ? count * type->size : count;
	int err = CMPI_AGAIN;

	if (deliver(c, self, buf, len, tag, comm))
		return CMPI_OK;
	if ((mode & 0xff) != CMPI_MODE_SYNC)
		err = hold(c, self, buf, len, tag, comm);
	return err != CMPI_AGAIN || mode & CMPI_MODE_NOWAIT ? err : mpip_fsend(c, self, buf, count, type, tag, comm, mode);
}

/* A send that waits for its receive; its message is found by the request. */
static void self_cancel(struct cmpi *c, struct cmpi_req *req)
{
	struct self_message *m = (struct self_message *)(uintptr_t)req->module[0];

	if (!m->message.link[MPIP_EXACT].bin)
		return; /* a matched probe has it */
	mpip_dequnexpected(mpip_engine(c), &m->message);
	free(m);
	req->status.cancelled = true;
	mpip_req_end(mpip_engine(c), req, CMPI_OK);
}

static void send_one(struct cmpi *c, struct cmpi_proc *self, struct cmpi_req *req)
{
	struct self_message *m;

	if (deliver(c, self, req->buf, req->size, req->tag, req->comm)) {
		mpip_req_end(mpip_engine(c), req, CMPI_OK);
		return;
	}
	m = enqueue(c, self, req->size, 0, req->tag, req->comm);
	if (!m) {
		mpip_req_end(mpip_engine(c), req, CMPI_RESOURCE);
		return;
	}
	m->send = req;
	req->module[0] = (uintptr_t)m;
	mpip_req_set(req, MPIP_REQ_SENDING);
	req->cancel = self_cancel;
}

static int mpip_self_queuedsend(struct cmpi *c, struct cmpi_proc *self)
{
	struct mpip_process *p = mpip_process(self);
	struct cmpi_req *req;

	while ((req = p->sendhead) != NULL) {
		mpip_deqsend(p);
		send_one(c, self, req);
	}
	return CMPI_OK;
}

/* Its message goes: whoever is told before it, or has a thread of his own, may cancel it until it is told itself. */
static void end_send(struct mpip_engine *e, struct cmpi_req *send, int err)
{
	send->cancel = NULL;
	mpip_req_end(e, send, err);
}

static int mpip_self_uirecv(struct cmpi *c, struct cmpi_proc *self, struct cmpi_message *message, struct cmpi_req *req)
{
	struct self_message *m = (struct self_message *)message;

	copy(req, m->send ? m->send->buf : m->data, message->key, message->length);
	mpip_req_end(mpip_engine(c), req, req->status.err);
	if (m->send)
		end_send(mpip_engine(c), m->send, CMPI_OK);
	else
		*held(self) -= (uint32_t)message->length + CHARGE;
	free(m);
	return CMPI_OK;
}

/* ---- connections: there is nothing to connect -------------------------------------------------------------------------------- */

static const struct cmpi_protocol_data *data(struct cmpi *c UNUSED)
{
	static const struct cmpi_protocol_data fixed = {.pt_nprocs = 1, .pt_mtu = EAGER, .pt_loaded = 1};

	return &fixed;
}

static int mpip_self_initialize(struct cmpi *c UNUSED)
{
	return CMPI_OK;
}

static int mpip_self_initconns(struct cmpi *c, struct cmpi_task *task, const void **env)
{
	return mpip_engine(c)->protocol->pt_initconns(c, task, env);
}

/* Of a task, the process itself; the other places stay as they are. */
static int mpip_self_addconns(struct cmpi *c, struct cmpi_task *task)
{
	uint8_t own[CMPI_ADDR_MAX];
	size_t len;

	cmpi_address(c, own, &len);
	for (size_t i = 0; i < task->n; i++)
		if (!memcmp(task->address[i], own, len))
			return cmpi_proc_get(c, own, len, NULL, &task->procs[i]);
	return CMPI_UNREACHABLE;
}

static int mpip_self_completeconns(struct cmpi *c UNUSED, struct cmpi_task *task UNUSED)
{
	return CMPI_OK;
}

static int mpip_self_remconns(struct cmpi *c, struct cmpi_proc **procs, int n)
{
	for (int i = 0; i < n; i++)
		if (procs[i] && cmpi_proc_is_self(procs[i]))
			cmpi_proc_put(c, procs[i]);
	return CMPI_OK;
}

/* What was never received goes. */
static int mpip_self_closeconns(struct cmpi *c, struct cmpi_proc **procs UNUSED, int n UNUSED)
{
	struct mpip_engine *e = mpip_engine(c);
	struct cmpi_message *m, *next;

	mpip_lock(e);
	for (m = e->first; m; m = next) {
		next = m->next;
		if (!cmpi_proc_is_self(m->from))
			continue;
		mpip_dequnexpected(e, m);
		if (((struct self_message *)m)->send)
			end_send(e, ((struct self_message *)m)->send, CMPI_TRANSPORT);
		else
			*held(m->from) -= (uint32_t)m->length + CHARGE;
		free(m);
	}
	mpip_tell(e);
	mpip_unlock(e);
	return CMPI_OK;
}

static int mpip_self_undoconns(struct cmpi *c, struct cmpi_task *task)
{
	return mpip_self_remconns(c, task->procs, (int)task->n);
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------ */

static int mpip_self_progress_nblk(struct cmpi *c UNUSED, int pollall UNUSED)
{
	return 0;
}

static int mpip_self_postedreceive(struct cmpi *c UNUSED, struct cmpi_proc *proc)
{
	mpip_process(proc)->nrecvs++;
	return CMPI_OK;
}

static int mpip_self_unpostedreceive(struct cmpi *c UNUSED, struct cmpi_proc *proc)
{
	if (!mpip_process(proc)->nrecvs)
		return CMPI_PARAMETER;
	mpip_process(proc)->nrecvs--;
	return CMPI_OK;
}

static int mpip_self_dequeuedsend(struct cmpi *c UNUSED, struct cmpi_proc *proc UNUSED)
{
	return CMPI_OK;
}

/* Receives from any source are counted by the module of the other peers. */
static int mpip_self_postedrcvany(struct cmpi *c UNUSED, struct cmpi_comm *comm UNUSED)
{
	return CMPI_OK;
}

static int mpip_self_unpostedrcvany(struct cmpi *c UNUSED, struct cmpi_comm *comm UNUSED)
{
	return CMPI_OK;
}

static int mpip_self_matchedrcvany(struct cmpi *c UNUSED, struct cmpi_comm *comm UNUSED, struct cmpi_proc *proc UNUSED)
{
	return CMPI_OK;
}

static int mpip_self_getevents(struct cmpi *c UNUSED, void **events, uint32_t *a, uint32_t *b, uint32_t *n)
{
	*events = NULL;
	*a = *b = *n = 0;
	return CMPI_OK;
}

static int mpip_self_getpolls(struct cmpi *c UNUSED, struct pollfd **fds, int *n, int *timeout)
{
	*fds = NULL;
	*n = 0;
	*timeout = -1; /* nothing ever happens by itself */
	return CMPI_OK;
}

static int mpip_self_finalize(struct cmpi *c)
{
	for (const struct cmpi_message *m = mpip_engine(c)->first; m; m = m->next)
		if (cmpi_proc_is_self(m->from))
			return CMPI_AGAIN;
	return CMPI_OK;
}

static int mpip_self_ping(struct cmpi *c UNUSED, struct cmpi_comm *comm UNUSED, int timeout UNUSED)
{
	return CMPI_OK;
}

#define ENTRY(name) .pt_##name = mpip_self_##name
const struct cmpi_protocol mpip_self_protocol = {
	.name = "self",
	.data = data,
	ENTRY(initialize), ENTRY(initconns), .pt_makeconns = mpip_self_addconns, ENTRY(addconns), ENTRY(completeconns),
	ENTRY(remconns), ENTRY(closeconns), ENTRY(undoconns), ENTRY(fsend), .pt_frecv = mpip_frecv, .pt_urecv = mpip_urecv,
	ENTRY(uirecv), .pt_progress_blk = mpip_progress_blk, ENTRY(progress_nblk), ENTRY(postedreceive), ENTRY(unpostedreceive),
	ENTRY(queuedsend), ENTRY(dequeuedsend), ENTRY(postedrcvany), ENTRY(unpostedrcvany), ENTRY(matchedrcvany),
	ENTRY(getevents), ENTRY(getpolls), .pt_error_request = mpip_error_request, ENTRY(finalize), ENTRY(ping),
};
