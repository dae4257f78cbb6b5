/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the ADI engine and this module: requests of the engine carry a struct via_send or via_recv of the module, arriving
 * messages one of the engine.  The engine's half of the protocol table is here.
 */
#include "cmpi/pm_via/flow.h"

union via_req {
	struct via_send send;
	struct via_recv recv;
};
_Static_assert(sizeof(union via_req) <= sizeof(((struct cmpi_req *)0)->module), "it fits into the module's words of a request");

static inline union via_req *part(struct cmpi_req *req)
{
	return (union via_req *)req->module;
}

/* ---- ends; without the lock ---------------------------------------------------------------------------------------------- */

static void sent(void *arg, int err)
{
	struct cmpi_req *req = arg;

	req->status.err = err;
	req->status.cancelled = part(req)->send.cancelled;
	mpip_req_tell(req);
}

static void received(void *arg, int err)
{
	struct cmpi_req *req = arg;
	const struct via_envelope *envelope = &part(req)->recv.envelope;

	mpip_req_got(req, envelope->key, envelope->data_length);
	if (err != CMPI_OK)
		req->status.err = err;
	mpip_req_tell(req);
}

/* ---- receives --------------------------------------------------------------------------------------------------------------- */

static struct via_recv *prepare(struct cmpi_req *req)
{
	struct via_recv *recv = &part(req)->recv;

	recv->buf = req->buf;
	recv->size = req->size;
	recv->done = received;
	recv->arg = req;
	return recv;
}

bool via_adi_arrived(struct via_incoming *msg, struct via_recv **recv)
{
	const struct via_envelope *envelope = &msg->envelope;
	struct cmpi *c = msg->proc->cmpi;
	struct cmpi_req *req = mpip_arrived(c, msg->proc, envelope->key);

	*recv = req ? prepare(req) : NULL;
	if (req)
		return true;
	msg->message.from = msg->proc;
	msg->message.key = envelope->key;
	msg->message.length = envelope->data_length;
	return mpip_enqunexpected(&c->engine, &msg->message);
}

int mpip_via_uirecv(struct cmpi *c, struct cmpi_proc *from, struct cmpi_message *message, struct cmpi_req *req)
{
	struct via_recv *recv = prepare(req);
	int err;

	(void)from;
	if (!via_match_take((struct via_incoming *)message, recv, &err))
		return CMPI_OK;
	mpip_req_got(req, recv->envelope.key, recv->envelope.data_length);
	mpip_req_end(&c->engine, req, err == CMPI_OK ? req->status.err : err);
	return CMPI_OK;
}

/* ---- sends ------------------------------------------------------------------------------------------------------------------- */

static void cancel(struct cmpi *c, struct cmpi_req *req)
{
	(void)c;
	if (part(req)->send.envelope.sreq)
		via_rndv_cancel(&part(req)->send);
}

static int start(struct cmpi_proc *proc, struct cmpi_req *req)
{
	struct via_send *send = &part(req)->send;

	send->buf = req->buf;
	send->envelope = (struct via_envelope){
		.key = mpip_key(req->comm->context, req->comm->rank, req->tag), .data_length = req->size, .mode = (uint16_t)req->mode,
	};
	send->done = sent;
	send->arg = req;
	send->cancelled = false;
	return via_match_start(proc, send);
}

/* A send that will not leave; told from progress. */
static void refuse(struct cmpi_proc *proc, struct cmpi_req *req, int err)
{
	struct via_send *send = &part(req)->send;

	send->cancelled = false;
	send->completion = (struct via_completion){.done = sent, .arg = req};
	via_completion_push(proc->cmpi, &send->completion, err);
}

/*
 * Takes what it can of the send queue.  The rest is tried again in every pass.  Data that the peer waits for goes before new
 * messages, whose requests would take the credit it needs.
 */
void via_adi_push(struct cmpi_proc *proc)
{
	struct cmpi_req *req;

	while ((req = proc->process.sendhead) != NULL) {
		int err = proc->send_head ? CMPI_AGAIN : start(proc, req);

		if (err == CMPI_AGAIN) {
			via_flow_push(proc);
			return;
		}
		mpip_deqsend(&proc->process);
		mpip_req_set(req, MPIP_REQ_SENDING);
		req->cancel = err == CMPI_OK ? cancel : NULL;
		if (err != CMPI_OK)
			refuse(proc, req, err);
	}
}

/* The connection is down: what was not taken fails too. */
void via_adi_fail(struct cmpi_proc *proc)
{
	struct cmpi_req *req;

	if (proc->state != VIA_CONN_LOST)
		return;
	while ((req = proc->process.sendhead) != NULL) {
		mpip_deqsend(&proc->process);
		refuse(proc, req, CMPI_TRANSPORT);
	}
}

int mpip_via_queuedsend(struct cmpi *c, struct cmpi_proc *proc)
{
	via_adi_push(proc);
	if (proc->process.sendhead)
		VIA_COUNT(c, sends_queued); /* what was added is the last of the queue */
	return CMPI_OK;
}
