/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matched messages, what is not the short way of eager.c: the choice between eager and rendezvous, eager messages of several
 * packets, messages that nobody waits for yet, their acceptance, their end.
 *
 * A series is begun when no data of others wait to go to that peer, and they wait until all of it has gone: a connection has at most one arriving
 * (proc->eager).  Other messages may come between its packets.
 */
#include <stdlib.h>

#include "cmpi/pm_via/flow.h"

void via_match_engine(struct cmpi *c, const struct via_engine *engine)
{
	via_lock(c);
	c->adi = engine;
	via_unlock(c);
}

void via_send_done(struct via_send *send, int err)
{
	struct cmpi *c = send->proc->cmpi;

	if (send->reg)
		via_dreg_deregister(c, send->reg);
	send->reg = NULL;
	send->proc->messages--;
	send->proc->long_open -= send->envelope.sreq != 0;
	send->completion = (struct via_completion){.done = send->done, .arg = send->arg};
	via_completion_push(c, &send->completion, err);
}

/* ---- sending ---------------------------------------------------------------------------------------------------------- */

/* Rule: a series may not take the credit below what control packets need. */
bool via_series_may(struct cmpi_proc *proc, const struct via_send *send)
{
	uint64_t len = send->envelope.data_length, packets = 1 + (len + VIA_R3_BYTES - 1) / VIA_R3_BYTES;

	return send->envelope.mode != VIA_MODE_SYNC && proc->state == VIA_CONN_CONNECTED && !proc->send_head &&
	       proc->remote_credit >= packets + proc->cmpi->params.preserve && via_eager_window(proc, len);
}

/*
 * A message of one packet waits for credit, and is not turned into a rendezvous for want of it: programs expect short
 * messages to leave before anybody receives them.
 */
static bool is_one(struct cmpi_proc *proc, const struct via_send *send)
{
	return send->envelope.mode != VIA_MODE_SYNC && send->envelope.data_length <= VIA_EAGER_ONE &&
	       via_eager_room(proc, send->envelope.data_length);
}

int via_series_send(struct cmpi_proc *proc, struct via_send *send)
{
	struct via_eager_start p = {.envelope = send->envelope};

	if (!via_flow_packet(proc, VIA_PKT_EAGER_START, &p, sizeof(p), false))
		return CMPI_AGAIN;
	proc->eager_sent += (uint32_t)send->envelope.data_length + VIA_EAGER_CHARGE;
	proc->packet_no_out++;
	VIA_COUNT(proc->cmpi, eager);
	VIA_COUNT(proc->cmpi, eager_series);
	send->rreq = 0;
	via_rndv_data(send);
	via_rndv_push(proc);
	return CMPI_OK;
}

static int one_send(struct cmpi_proc *proc, struct via_send *send)
{
	const struct via_envelope *e = &send->envelope;
	int err = via_eager_may(proc) ? via_eager_send(proc, e->key, send->buf, (size_t)e->data_length) : CMPI_AGAIN;

	if (err == CMPI_OK)
		via_send_done(send, CMPI_OK);
	return err;
}

/* CMPI_AGAIN: nothing started. */
int via_match_start(struct cmpi_proc *proc, struct via_send *send)
{
	int err;

	if (proc->self)
		return CMPI_PARAMETER;
	err = via_conn_ready(proc);
	if (via_unlikely(err != CMPI_OK))
		return err;
	send->proc = proc;
	send->next = NULL;
	send->reg = NULL;
	send->offset = 0;
	send->envelope.sreq = 0;
	send->envelope.packet_no = proc->packet_no_out;
	send->envelope.single = 0;
	proc->messages++;
	if (is_one(proc, send))
		err = one_send(proc, send);
	else if (send->envelope.data_length <= proc->cmpi->params.rendezvous_threshold && via_series_may(proc, send))
		err = via_series_send(proc, send);
	else
		err = via_rndv_send(proc, send);
	if (err != CMPI_OK)
		proc->messages--;
	return err;
}

int via_match_send(struct cmpi_proc *proc, struct via_send *send)
{
	int err;

	via_lock(proc->cmpi);
	err = via_match_start(proc, send);
	via_unlock(proc->cmpi);
	return err;
}

/* ---- messages that are arriving ------------------------------------------------------------------------------------------ */

static struct via_incoming *incoming_new(struct cmpi_proc *proc, const struct via_envelope *envelope)
{
	struct cmpi *c = proc->cmpi;
	struct via_incoming *msg = c->free_incoming;

	if (msg)
		c->free_incoming = msg->next_free;
	else
		msg = via_chunk(c, sizeof(*msg));
	if (!msg)
		return NULL;
	*msg = (struct via_incoming){.proc = proc, .envelope = *envelope, .life = proc->life, .next = c->incoming};
	if (c->incoming)
		c->incoming->prev = msg;
	c->incoming = msg;
	return msg;
}

void via_incoming_free(struct cmpi *c, struct via_incoming *msg)
{
	free(msg->held);
	msg->held = NULL;
	if (msg->reg)
		via_dreg_deregister(c, msg->reg);
	msg->reg = NULL;
	*(msg->prev ? &msg->prev->next : &c->incoming) = msg->next;
	if (msg->next)
		msg->next->prev = msg->prev;
	msg->next_free = c->free_incoming;
	c->free_incoming = msg;
}

/* Asks the engine which receive it is for.  False: no memory. */
static bool offer(struct via_incoming *msg, struct via_recv **recv)
{
	const struct via_engine *adi = msg->proc->cmpi->adi;

	if (!adi)
		return via_adi_arrived(msg, recv);
	*recv = adi->arrived(adi->arg, msg->proc, &msg->envelope, msg);
	return true;
}

static void bind(struct via_incoming *msg, struct via_recv *recv)
{
	recv->from = msg->proc;
	recv->envelope = msg->envelope;
	msg->recv = recv;
	msg->proc->messages++;
}

static void recv_done(struct cmpi *c, struct via_recv *recv, int err)
{
	recv->completion = (struct via_completion){.done = recv->done, .arg = recv->arg};
	via_completion_push(c, &recv->completion, err);
}

/* The message is received, or will never be. */
static void incoming_end(struct via_incoming *msg)
{
	via_rndv_over(msg);
	if (!msg->rendezvous)
		via_flow_consumed(msg->proc, (uint32_t)msg->envelope.data_length + VIA_EAGER_CHARGE);
	msg->proc->messages--;
	via_incoming_free(msg->proc->cmpi, msg);
}

void via_incoming_done(struct via_incoming *msg, int err)
{
	struct via_recv *recv = msg->recv;
	struct cmpi *c = msg->proc->cmpi;

	incoming_end(msg);
	recv_done(c, recv, err);
}

/* Copies into the receive what fits, from `offset` of the message on.  c: out of the packet at hand; NULL: from elsewhere. */
static void deliver(struct cmpi *c, const struct via_recv *recv, uint64_t offset, const void *data, size_t len)
{
	if (offset >= recv->size)
		return;
	if (len > recv->size - offset)
		len = (size_t)(recv->size - offset);
	if (c)
		via_copy_out(c, (uint8_t *)recv->buf + offset, data, len);
	else if (len)
		memcpy((uint8_t *)recv->buf + offset, data, len);
}

/* ---- receiving what is eager ------------------------------------------------------------------------------------------------ */

static bool no_memory(struct cmpi_proc *proc)
{
	via_conn_fail(proc, "no memory for its unexpected message");
	return true;
}

static bool eager_data(struct via_incoming *msg, const void *data, size_t len)
{
	struct cmpi_proc *proc = msg->proc;

	if (len > msg->envelope.data_length - msg->offset)
		return false;
	if (msg->recv) {
		deliver(proc->cmpi, msg->recv, msg->offset, data, len);
	} else if (len) {
		if (!msg->held)
			msg->held = malloc((size_t)msg->envelope.data_length);
		if (!msg->held)
			return no_memory(proc);
		via_copy_out(proc->cmpi, msg->held + msg->offset, data, len);
	}
	msg->offset += len;
	if (msg->offset < msg->envelope.data_length)
		return true;
	if (proc->eager == msg)
		proc->eager = NULL;
	msg->complete = true;
	if (msg->recv)
		via_incoming_done(msg, CMPI_OK);
	return true;
}

/* Is an envelope possible? */
static bool envelope_ok(struct cmpi_proc *proc, const struct via_envelope *envelope)
{
	return envelope->packet_no == proc->packet_no_in++ && envelope->single <= 1 && mpip_key_ok(envelope->key);
}

/* An eager message whose envelope is good, for whom it is; NULL: no memory. */
static struct via_incoming *eager_begin(struct cmpi_proc *proc, const struct via_envelope *envelope)
{
	struct via_incoming *msg = incoming_new(proc, envelope);
	struct via_recv *recv;

	if (!msg)
		return NULL;
	if (!offer(msg, &recv)) {
		via_incoming_free(proc->cmpi, msg);
		return NULL;
	}
	if (recv)
		bind(msg, recv);
	return msg;
}

bool via_eager_start(struct cmpi_proc *proc, const struct via_envelope *envelope)
{
	struct via_incoming *msg;

	if (!envelope_ok(proc, envelope) || proc->eager || !envelope->data_length || envelope->data_length > proc->cmpi->params.eager_window)
		return false;
	msg = proc->eager = eager_begin(proc, envelope);
	if (!msg)
		return no_memory(proc);
	if (msg->recv && envelope->single)
		via_rndv_begins(msg, 0);
	return true;
}

/* A message of one packet that was not delivered on the short way. */
bool via_eager_unexpected(struct cmpi_proc *proc, uint64_t key, const void *data, size_t len)
{
	const struct via_envelope envelope = {.key = key, .data_length = len, .packet_no = (uint16_t)(proc->packet_no_in - 1)};
	struct via_incoming *msg;

	if (!mpip_key_ok(key))
		return false;
	msg = eager_begin(proc, &envelope);
	return msg ? eager_data(msg, data, len) : no_memory(proc);
}

bool via_eager_next(struct cmpi_proc *proc, const void *data, size_t len)
{
	return proc->eager && len && eager_data(proc->eager, data, len);
}

bool via_rndv_start(struct cmpi_proc *proc, const struct via_rendezvous_start *p)
{
	struct via_incoming *msg;
	struct via_recv *recv;

	if (!envelope_ok(proc, &p->envelope) || p->protocol >= VIA_PROTO_COUNT)
		return false;
	msg = incoming_new(proc, &p->envelope);
	if (!msg)
		return no_memory(proc);
	msg->rendezvous = true;
	msg->protocol = p->protocol;
	msg->buffer = p->buffer;
	msg->handle = p->handle;
	if (!offer(msg, &recv)) {
		via_incoming_free(proc->cmpi, msg);
		return no_memory(proc);
	}
	if (recv) {
		bind(msg, recv);
		via_rndv_accept(msg, false);
	}
	return true;
}

/* The peer wants a rendezvous back: it gets it unless it has found, or may find, its receive. */
bool via_cancel_request(struct cmpi_proc *proc, uint64_t sreq)
{
	struct cmpi *c = proc->cmpi;
	struct via_incoming *msg = c->incoming;

	while (msg && (msg->proc != proc || !msg->rendezvous || msg->recv || msg->envelope.sreq != sreq || msg->life != proc->life))
		msg = msg->next;
	if (msg && msg->message.link[MPIP_EXACT].bin) {
		mpip_dequnexpected(&c->engine, &msg->message);
		via_incoming_free(c, msg);
		via_cancel_answer(proc, sreq, true);
	} else {
		via_cancel_answer(proc, sreq, false);
	}
	return true;
}

/* ---- a receive for an unexpected message ------------------------------------------------------------------------------------ */

/* True: it is received already, with *err, and gone. */
bool via_match_take(struct via_incoming *msg, struct via_recv *recv, int *err)
{
	struct cmpi_proc *proc = msg->proc;
	bool gone = msg->life != proc->life || !via_live(proc);

	bind(msg, recv);
	if (msg->rendezvous && !gone) {
		via_rndv_accept(msg, true);
		return false;
	}
	if (!msg->rendezvous)
		deliver(NULL, recv, 0, msg->held, (size_t)msg->offset);
	if (!msg->complete && !gone)
		return false;
	*err = msg->complete ? CMPI_OK : CMPI_TRANSPORT;
	incoming_end(msg);
	return true;
}

void via_match_accept(struct via_incoming *msg, struct via_recv *recv)
{
	struct cmpi *c = msg->proc->cmpi;
	int err;

	via_lock(c);
	if (via_match_take(msg, recv, &err))
		recv_done(c, recv, err);
	via_unlock(c);
}

/* Data of a rendezvous through packets. */
bool via_r3_data(struct cmpi_proc *proc, uint64_t rreq, const void *data, size_t len)
{
	struct via_incoming *msg = via_handle_lookup(proc->cmpi, VIA_HANDLE_RECV, proc, rreq);

	if (!msg || !len || len > msg->envelope.data_length - msg->offset)
		return false;
	deliver(msg->proc->cmpi, msg->recv, msg->offset, data, len);
	msg->offset += len;
	if (msg->offset == msg->envelope.data_length) {
		via_handle_destroy(proc->cmpi, rreq);
		via_incoming_done(msg, CMPI_OK);
	}
	return true;
}

/* The connection is down: every message in progress ends. */
void via_match_fail(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	struct via_incoming *msg;
	struct via_send *send;
	uint32_t cursor = 0;

	while ((send = proc->send_head) != NULL) {
		proc->send_head = send->next;
		via_send_done(send, CMPI_TRANSPORT);
	}
	while (proc->messages && (send = via_handle_remove(c, VIA_HANDLE_SEND, proc, &cursor)) != NULL)
		via_send_done(send, CMPI_TRANSPORT);
	cursor = 0;
	while (proc->messages && (msg = via_handle_remove(c, VIA_HANDLE_RECV, proc, &cursor)) != NULL)
		via_incoming_done(msg, CMPI_TRANSPORT);
	msg = proc->eager;
	proc->eager = NULL;
	if (msg && msg->recv)
		via_incoming_done(msg, CMPI_TRANSPORT);
	via_adi_fail(proc);
}
