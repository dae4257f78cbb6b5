/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matched messages, eagerly: header, envelope and data in a series of packets, copied at both ends.  Also what eager and
 * rendezvous have in common: the choice between them, messages that are arriving, their acceptance.
 *
 * A series goes out whole before anything else to that peer, so a connection has at most one arriving (proc->eager).
 *
 * Unexpected data is bounded: a sender has at most eager_window bytes of eager messages (each counted with CHARGE bytes
 * for its record) that it does not know to be delivered, and uses rendezvous beyond that.  The receiver tells what it has
 * delivered in every NOOP and every rendezvous reply; a sender with a closed window hears it at the latest in the reply
 * to its next message.
 */
#include <stdlib.h>

#include "cmpi/pm_via/flow.h"

enum { CHARGE = 64, SERIES_MAX = 16 };

void via_match_engine(struct cmpi *c, const struct via_engine *engine)
{
	via_lock(c);
	c->engine = engine;
	via_unlock(c);
}

void via_send_done(struct via_send *send, int err)
{
	struct cmpi *c = send->proc->cmpi;

	if (send->reg)
		via_dreg_deregister(c, send->reg);
	send->reg = NULL;
	send->proc->messages--;
	send->completion = (struct via_completion){.done = send->done, .arg = send->arg};
	via_completion_push(c, &send->completion, err);
}

/* ---- sending ---------------------------------------------------------------------------------------------------------- */

static uint32_t vbufs_needed(uint64_t len)
{
	if (len <= VIA_EAGER_FIRST)
		return 1;
	return 2 + (uint32_t)((len - VIA_EAGER_FIRST - 1) / VIA_EAGER_NEXT);
}

/* Rule: EAGER may not take the credit below what control packets need. */
static bool eager_ok(const struct cmpi_proc *proc, const struct via_send *send)
{
	const struct via_params *p = &proc->cmpi->params;
	uint64_t len = send->envelope.data_length;

	return send->envelope.mode != VIA_MODE_SYNC && len <= p->rendezvous_threshold && proc->state == VIA_CONN_CONNECTED &&
	       vbufs_needed(len) <= SERIES_MAX && proc->remote_credit >= vbufs_needed(len) + p->preserve &&
	       (uint32_t)(proc->eager_sent - proc->eager_consumed) + len + CHARGE <= p->eager_window;
}

/* All packets of a series, or none. */
static bool series_take(struct cmpi *c, uint64_t len, struct via_vbuf **v, uint32_t n)
{
	size_t size = len < VIA_EAGER_FIRST ? (size_t)len : VIA_EAGER_FIRST;
	uint32_t i;

	for (i = 0; i < n; i++) {
		v[i] = via_packet_new(c, size + (i ? sizeof(struct via_header) : sizeof(struct via_eager_start)), false);
		if (!v[i])
			break;
		len -= size;
		size = len < VIA_EAGER_NEXT ? (size_t)len : VIA_EAGER_NEXT;
	}
	if (i == n)
		return true;
	while (i--)
		via_packet_drop(c, v[i]);
	return false;
}

static int eager_send(struct cmpi_proc *proc, struct via_send *send)
{
	struct cmpi *c = proc->cmpi;
	uint32_t n = vbufs_needed(send->envelope.data_length);
	struct via_vbuf *v[SERIES_MAX];
	const uint8_t *from = send->buf;

	if (!series_take(c, send->envelope.data_length, v, n))
		return CMPI_AGAIN;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *to = via_vbuf_packet(v[i]);
		size_t fixed = i ? sizeof(struct via_header) : sizeof(struct via_eager_start);
		size_t len = v[i]->desc.CS.Length - fixed;

		if (!i)
			memcpy(to + sizeof(struct via_header), &send->envelope, sizeof(send->envelope));
		memcpy(to + fixed, from, len);
		from += len;
	}
	for (uint32_t i = 0; i < n; i++)
		via_flow_send(proc, v[i], i ? VIA_PKT_EAGER_NEXT : VIA_PKT_EAGER_START);
	proc->eager_sent += (uint32_t)send->envelope.data_length + CHARGE;
	VIA_COUNT(c, eager);
	via_send_done(send, CMPI_OK);
	return CMPI_OK;
}

static int match_send(struct cmpi_proc *proc, struct via_send *send)
{
	int err;

	if (proc->self)
		return CMPI_PARAMETER;
	if (proc->state == VIA_CONN_IDLE || proc->state == VIA_CONN_CLOSED) {
		err = via_conn_start(proc);
		if (err != CMPI_OK)
			return err;
	}
	if (proc->state > VIA_CONN_CONNECTED)
		return CMPI_TRANSPORT;
	send->proc = proc;
	send->next = NULL;
	send->reg = NULL;
	send->offset = 0;
	send->envelope.sreq = 0;
	send->envelope.packet_no = proc->packet_no_out;
	proc->messages++;
	err = eager_ok(proc, send) ? eager_send(proc, send) : via_rndv_send(proc, send);
	if (err == CMPI_OK)
		proc->packet_no_out++;
	else
		proc->messages--;
	return err;
}

int via_match_send(struct cmpi_proc *proc, struct via_send *send)
{
	int err;

	via_lock(proc->cmpi);
	err = match_send(proc, send);
	via_unlock(proc->cmpi);
	return err;
}

/* ---- messages that are arriving ------------------------------------------------------------------------------------------ */

struct via_incoming *via_incoming_new(struct cmpi_proc *proc, const struct via_envelope *envelope)
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

/* Asks the engine which receive it is for. */
struct via_recv *via_incoming_offer(struct via_incoming *msg)
{
	const struct via_engine *engine = msg->proc->cmpi->engine;

	return engine->arrived(engine->arg, msg->proc, &msg->envelope, msg);
}

void via_incoming_bind(struct via_incoming *msg, struct via_recv *recv)
{
	recv->from = msg->proc;
	recv->envelope = msg->envelope;
	msg->recv = recv;
	msg->proc->messages++;
}

/* The receive is over, the message gone. */
void via_incoming_done(struct via_incoming *msg, int err)
{
	struct cmpi *c = msg->proc->cmpi;
	struct via_recv *recv = msg->recv;

	if (!msg->rendezvous)
		msg->proc->consumed += (uint32_t)msg->envelope.data_length + CHARGE;
	msg->proc->messages--;
	recv->completion = (struct via_completion){.done = recv->done, .arg = recv->arg};
	via_completion_push(c, &recv->completion, err);
	via_incoming_free(c, msg);
}

/* Copies into the receive what fits, from `offset` of the message on. */
static void deliver(const struct via_recv *recv, uint64_t offset, const void *data, size_t len)
{
	if (offset >= recv->size)
		return;
	if (len > recv->size - offset)
		len = (size_t)(recv->size - offset);
	if (len)
		memcpy((uint8_t *)recv->buf + offset, data, len);
}

/* ---- receiving an eager series --------------------------------------------------------------------------------------------- */

static bool eager_data(struct via_incoming *msg, const void *data, size_t len)
{
	struct cmpi_proc *proc = msg->proc;

	if (len > msg->envelope.data_length - msg->offset)
		return false;
	if (msg->recv)
		deliver(msg->recv, msg->offset, data, len);
	else if (len)
		memcpy(msg->held + msg->offset, data, len);
	msg->offset += len;
	proc->eager = msg;
	if (msg->offset < msg->envelope.data_length)
		return len != 0;
	proc->eager = NULL;
	msg->complete = true;
	if (msg->recv)
		via_incoming_done(msg, CMPI_OK);
	return true;
}

/* Is an envelope possible now? */
static bool envelope_ok(struct cmpi_proc *proc, const struct via_envelope *envelope)
{
	return proc->cmpi->engine && !proc->eager && envelope->packet_no == proc->packet_no_in++;
}

bool via_eager_start(struct cmpi_proc *proc, const struct via_envelope *envelope, const void *data, size_t len)
{
	struct via_incoming *msg;
	struct via_recv *recv;

	if (!envelope_ok(proc, envelope) || envelope->data_length > proc->cmpi->params.eager_window)
		return false;
	msg = via_incoming_new(proc, envelope);
	if (!msg)
		goto no_memory;
	/* Room for an unexpected message before the engine keeps a pointer to it. */
	msg->held = envelope->data_length ? malloc((size_t)envelope->data_length) : NULL;
	if (envelope->data_length && !msg->held) {
		via_incoming_free(proc->cmpi, msg);
		goto no_memory;
	}
	recv = via_incoming_offer(msg);
	if (recv)
		via_incoming_bind(msg, recv);
	return eager_data(msg, data, len);
no_memory:
	via_conn_fail(proc, "no memory for its unexpected message");
	return true;
}

bool via_eager_next(struct cmpi_proc *proc, const void *data, size_t len)
{
	return proc->eager && eager_data(proc->eager, data, len);
}

bool via_rndv_start(struct cmpi_proc *proc, const struct via_rendezvous_start *p)
{
	struct via_incoming *msg;
	struct via_recv *recv;

	if (!envelope_ok(proc, &p->envelope) || p->protocol >= VIA_PROTO_COUNT)
		return false;
	msg = via_incoming_new(proc, &p->envelope);
	if (!msg) {
		via_conn_fail(proc, "no memory for its message");
		return true;
	}
	msg->rendezvous = true;
	msg->protocol = p->protocol;
	msg->buffer = p->buffer;
	msg->handle = p->handle;
	recv = via_incoming_offer(msg);
	if (recv) {
		via_incoming_bind(msg, recv);
		via_rndv_accept(msg);
	}
	return true;
}

/* ---- a receive for an unexpected message ------------------------------------------------------------------------------------ */

static void accept(struct via_incoming *msg, struct via_recv *recv)
{
	struct cmpi_proc *proc = msg->proc;
	bool gone = msg->life != proc->life || !via_live(proc);

	via_incoming_bind(msg, recv);
	if (gone && !msg->complete) {
		via_incoming_done(msg, CMPI_TRANSPORT);
	} else if (msg->rendezvous) {
		via_rndv_accept(msg);
	} else {
		deliver(recv, 0, msg->held, (size_t)msg->offset);
		if (msg->complete)
			via_incoming_done(msg, CMPI_OK);
	}
}

void via_match_accept(struct via_incoming *msg, struct via_recv *recv)
{
	struct cmpi *c = msg->proc->cmpi;

	via_lock(c);
	accept(msg, recv);
	via_unlock(c);
}

/* Data of a rendezvous through packets. */
bool via_r3_data(struct cmpi_proc *proc, uint64_t rreq, const void *data, size_t len)
{
	struct via_incoming *msg = via_handle_lookup(proc->cmpi, VIA_HANDLE_RECV, proc, rreq);

	if (!msg || !len || len > msg->envelope.data_length - msg->offset)
		return false;
	deliver(msg->recv, msg->offset, data, len);
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
}
