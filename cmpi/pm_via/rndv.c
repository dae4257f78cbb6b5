/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: how the data of a long matched message travels once both sides are known.
 *
 *	R3	request, reply, data in packets: for what cannot be registered, short or empty messages, and what the NIC would rather send
 *	-	no request: what the NIC would rather send, is single, and has room at the receiver leaves at once (a series: match.c)
 *	RPUT	request, reply with the receiver's memory, RDMA write, RPUT_FINISH
 *	RGET	request with the sender's memory, RDMA read, RGET_FINISH
 *
 * The sender asks, the receiver's reply is authoritative; a side that cannot register its memory goes down to R3.
 */
#include "cmpi/pm_via/flow.h"

enum {
	AT_ONCE = 256 << 10, /* bytes of a message that is better sent, and single, whose data wait for no reply: a series */
	OPEN_MAX = 16384,    /* messages of one peer in progress, at most: bounds the records at the receiver */
	PUT_OFF_MAX = 128,   /* reads of one peer that are put off, and messages of an exchange that count at its end */
};

static void send_finish(struct cmpi_proc *proc, uint32_t type_tag, uint64_t req)
{
	const struct via_finish p = {.req = req};

	if (proc->state <= VIA_CONN_CLOSING)
		via_flow_packet(proc, type_tag, &p, sizeof(p), true);
}

/* ---- sender: request -------------------------------------------------------------------------------------------------------- */

/* Had it better be sent, and does the request then not ask, but the data follow at once?  That depends on whether it is single, which the NIC says. */
static bool is_sent(struct via_send *send, bool *at_once)
{
	bool may = send->envelope.data_length <= AT_ONCE && via_series_may(send->proc, send), single = may;
	bool sent = via_rather_sent(send->proc, send->buf, (size_t)send->envelope.data_length, &single);

	send->envelope.single = single;
	*at_once = sent && may && single;
	return sent;
}

/* The protocol to ask for; registers the buffer when the receiver is to read it.  *at_once: nothing is asked. */
static int choose(struct via_send *send, bool *at_once)
{
	struct cmpi *c = send->proc->cmpi;
	uint64_t len = send->envelope.data_length;

	*at_once = false;
	if (!len || len < c->params.r3_threshold || (c->params.rather_sends && is_sent(send, at_once)))
		return VIA_PROTO_R3;
	if (c->params.protocol != VIA_PROTO_RGET)
		return c->params.protocol;
	send->reg = via_dreg_register(c, (uintptr_t)send->buf, (size_t)len, CMPI_ACCESS_REMOTE_READ);
	if (send->reg)
		return VIA_PROTO_RGET;
	VIA_COUNT(c, rndv_downgraded);
	return VIA_PROTO_R3;
}

static void unregister(struct via_send *send)
{
	if (send->reg)
		via_dreg_deregister(send->proc->cmpi, send->reg);
	send->reg = NULL;
}

int via_rndv_send(struct cmpi_proc *proc, struct via_send *send)
{
	struct cmpi *c = proc->cmpi;
	struct via_rendezvous_start p;
	bool at_once;

	if (proc->messages > OPEN_MAX || proc->backlog.len >= c->params.backlog_max)
		return CMPI_AGAIN;
	send->asked = (uint8_t)choose(send, &at_once);
	if (at_once)
		return via_series_send(proc, send);
	send->envelope.sreq = via_handle_create(c, VIA_HANDLE_SEND, proc, send);
	if (!send->envelope.sreq) {
		unregister(send);
		return CMPI_AGAIN;
	}
	p.envelope = send->envelope;
	p.protocol = send->asked;
	p.buffer = send->reg ? send->reg->key.base : 0;
	p.handle = send->reg ? send->reg->key.handle : 0;
	if (!via_flow_packet(proc, VIA_PKT_RENDEZVOUS_START, &p, sizeof(p), false)) {
		unregister(send);
		via_handle_destroy(c, send->envelope.sreq);
		send->envelope.sreq = 0;
		return CMPI_AGAIN;
	}
	proc->packet_no_out++;
	proc->long_open++;
	proc->long_out += proc->long_out < PUT_OFF_MAX;
	if (proc->put_off && !--proc->put_off && via_live(proc))
		via_rma_push(proc);
	return CMPI_OK;
}

/* ---- cancel: the sender asks for its message back, the receiver gives it up or says that it is too late ------------------- */

void via_rndv_cancel(struct via_send *send)
{
	send_finish(send->proc, VIA_PKT_CANCEL_REQUEST, send->envelope.sreq);
}

void via_cancel_answer(struct cmpi_proc *proc, uint64_t sreq, bool cancelled)
{
	send_finish(proc, VIA_PKT_CANCEL_REPLY | (uint32_t)cancelled << 8, sreq);
}

/* Too late may be very late: then the send is complete, and its name another's or nobody's. */
bool via_cancel_reply(struct cmpi_proc *proc, uint64_t sreq, bool cancelled)
{
	struct via_send *send = via_handle_lookup(proc->cmpi, VIA_HANDLE_SEND, proc, sreq);

	if (!cancelled)
		return true;
	if (!send)
		return false;
	via_handle_destroy(proc->cmpi, sreq);
	send->cancelled = true;
	via_send_done(send, CMPI_OK);
	return true;
}

/* ---- sender: reply and data --------------------------------------------------------------------------------------------------- */

void via_rndv_data(struct via_send *send)
{
	struct cmpi_proc *proc = send->proc;

	send->next = NULL;
	if (proc->send_head)
		proc->send_tail->next = send;
	else
		proc->send_head = send;
	proc->send_tail = send;
	via_flow_push(proc);
}

static void r3_start(struct via_send *send)
{
	struct cmpi *c = send->proc->cmpi;

	VIA_COUNT(c, rndv_r3);
	if (send->asked != VIA_PROTO_R3)
		VIA_COUNT(c, rndv_downgraded);
	if (send->envelope.data_length)
		via_rndv_data(send);
	else
		via_send_done(send, CMPI_OK);
}

/* Data is written: tells the receiver. */
static void rput_written(struct via_rma *rma, int err)
{
	struct via_send *send = rma->completion.arg;

	if (err == CMPI_OK)
		send_finish(send->proc, VIA_PKT_RPUT_FINISH, send->rreq);
	via_send_done(send, err);
}

static void rput_start(struct via_send *send, const struct via_rendezvous_reply *p)
{
	struct cmpi_proc *proc = send->proc;
	struct via_rma *rma = via_rma_new(proc, VIP_CONTROL_OP_RDMAWRITE, send->buf, (size_t)send->envelope.data_length);

	if (!rma) {
		r3_start(send);
		return;
	}
	rma->remote = p->buffer;
	rma->remote_handle = p->handle;
	rma->then = rput_written;
	rma->completion.arg = send;
	VIA_COUNT(proc->cmpi, rndv_rput);
	via_rma_start(rma);
}

bool via_rndv_reply(struct cmpi_proc *proc, const struct via_rendezvous_reply *p)
{
	struct cmpi *c = proc->cmpi;
	struct via_send *send = via_handle_lookup(c, VIA_HANDLE_SEND, proc, p->sreq);

	if (!send || (p->protocol != VIA_PROTO_R3 && p->protocol != VIA_PROTO_RPUT))
		return false;
	proc->eager_consumed = p->consumed;
	via_handle_destroy(c, p->sreq);
	send->rreq = p->rreq;
	if (p->protocol == VIA_PROTO_RPUT)
		rput_start(send, p);
	else
		r3_start(send);
	return true;
}

/* With a descriptor: `name` bytes say whose the data are, which follow. */
static bool r3_posted(struct cmpi_proc *proc, uint32_t type, const struct via_send *send, size_t name, const void *data, size_t len)
{
	struct via_vbuf *v = via_packet_new(proc->cmpi, sizeof(struct via_header) + name + len, false);
	uint8_t *to;

	if (!v)
		return false;
	to = (uint8_t *)via_vbuf_packet(v) + sizeof(struct via_header);
	memcpy(to, &send->rreq, name);
	memcpy(to + name, data, len);
	via_flow_send(proc, v, type);
	return true;
}

/*
 * How much of what is left goes next: packets of one length.  The answer comes in the buffers of the message, in another order.  Where one of them had
 * little in it, and is to take much, its lines have lain shared between two caches since they were last in use, and each has to be taken back.  Of many in
 * a row the first packets are a little longer, as measured (docs/findings.md, "Parts of one length").
 */
static size_t r3_part(const struct via_send *send, uint64_t left)
{
	enum { LINE = 64, LONGER = 1024 };
	uint64_t packets = (left + VIA_R3_BYTES - 1) / VIA_R3_BYTES, part = ((left + packets - 1) / packets + LINE - 1) / LINE * LINE;

	if (packets > 1 && !send->envelope.single && part <= VIA_R3_BYTES - LONGER)
		part += LONGER;
	return (size_t)(part < left ? part : left);
}

/*
 * One packet of R3 data; false: no vbuf or buffer.  The NIC copies it to where a line begins, as long as pieces of whole lines lie: behind a header of
 * 16 bytes a processor whose string instruction wants both ends alike copies half as fast.
 */
static bool r3_packet(struct cmpi_proc *proc, struct via_send *send)
{
	size_t len = r3_part(send, send->envelope.data_length - send->offset), name = send->rreq ? sizeof(send->rreq) : 0;
	const uint8_t *data = (const uint8_t *)send->buf + send->offset;
	VIPX_SHORT message = {.A = &send->rreq, .B = data, .ALength = (VIP_UINT32)name, .BLength = (VIP_UINT32)len};
	uint32_t type = send->rreq ? VIA_PKT_R3_DATA : VIA_PKT_EAGER_NEXT;

	if (!via_flow_short(proc, type, &message) && !r3_posted(proc, type, send, name, data, len))
		return false;
	send->offset += len;
	return true;
}

/* Rule: R3 data flows while the credit is not below what control packets need.  In order; returns how many packets. */
int via_rndv_push(struct cmpi_proc *proc)
{
	struct via_send *send;
	int n = 0;

	while ((send = proc->send_head) != NULL && proc->remote_credit >= proc->cmpi->params.preserve) {
		if ((!send->envelope.single && VipxBulkTurn(proc->vi) == VIP_NOT_DONE) || !r3_packet(proc, send)) {
			via_flow_push(proc); /* try again in the next pass */
			break;
		}
		n++;
		if (send->offset == send->envelope.data_length) {
			proc->send_head = send->next;
			via_send_done(send, CMPI_OK);
		}
	}
	return n;
}

bool via_rget_finish(struct cmpi_proc *proc, uint64_t sreq)
{
	struct via_send *send = via_handle_lookup(proc->cmpi, VIA_HANDLE_SEND, proc, sreq);

	if (!send || send->asked != VIA_PROTO_RGET)
		return false;
	via_handle_destroy(proc->cmpi, sreq);
	VIA_COUNT(proc->cmpi, rndv_rget);
	via_send_done(send, CMPI_OK);
	return true;
}

/* ---- receiver ------------------------------------------------------------------------------------------------------------------ */

static void reply(struct via_incoming *msg, uint32_t protocol)
{
	struct cmpi_proc *proc = msg->proc;
	const struct via_rendezvous_reply p = {
		.sreq = msg->envelope.sreq,
		.rreq = msg->rreq,
		.buffer = msg->reg ? msg->reg->key.base : 0,
		.handle = msg->reg ? msg->reg->key.handle : 0,
		.protocol = protocol,
		.consumed = proc->consumed,
	};

	if (proc->state <= VIA_CONN_CLOSING && via_flow_packet(proc, VIA_PKT_RENDEZVOUS_REPLY, &p, sizeof(p), true))
		via_flow_noop(proc); /* the reply may wait; the credit for the data must not */
}

/* How long it takes from here on says which way the next ones had better go. */
void via_rndv_begins(struct via_incoming *msg, uint64_t remote)
{
	msg->timed = msg->proc->cmpi->params.rather_sends &&
		VipxLongBegins(msg->proc->vi, remote, msg->envelope.data_length, msg->envelope.single ? VIP_TRUE : VIP_FALSE) == VIP_SUCCESS;
}

void via_rndv_over(struct via_incoming *msg)
{
	bool read = msg->protocol == VIA_PROTO_RGET;
	uint64_t len = msg->envelope.data_length;

	if (!msg->timed)
		return;
	msg->timed = false;
	VipxLongOver(msg->proc->vi, read && msg->recv->size < len ? msg->recv->size : len, read, msg->envelope.single ? VIP_TRUE : VIP_FALSE);
}

/* Packets of R3 data are expected: posts more receives for them. */
static void accept_r3(struct via_incoming *msg)
{
	struct cmpi_proc *proc = msg->proc;
	uint64_t packets = (msg->envelope.data_length + VIA_R3_BYTES - 1) / VIA_R3_BYTES;

	via_flow_expect(proc, packets < 65536 ? (uint32_t)packets : 65536);
	msg->protocol = VIA_PROTO_R3;
	if (packets)
		via_rndv_begins(msg, 0);
	reply(msg, VIA_PROTO_R3);
	if (!packets) {
		via_handle_destroy(proc->cmpi, msg->rreq);
		via_incoming_done(msg, CMPI_OK);
	}
}

static void rget_read(struct via_rma *rma, int err)
{
	struct via_incoming *msg = rma->completion.arg;

	if (err == CMPI_OK)
		send_finish(msg->proc, VIA_PKT_RGET_FINISH, msg->envelope.sreq);
	via_incoming_done(msg, err);
}

/*
 * Where long messages go both ways, and none is under way to the peer, a receive does not read what it finds: that begins when as many have been sent, or
 * in the next pass of progress.  The NIC may copy it before it is asked for anything else, and then a process that is late, and finds a window of its
 * peer's messages when it posts its receives, has read them all before it sends its own: the peer waits meanwhile, and is the early one for good.
 */
static bool is_put_off(struct cmpi_proc *proc)
{
	if (!proc->long_out || proc->long_open || proc->rma_ops >= PUT_OFF_MAX || proc->cmpi->engine.threads)
		return false;
	proc->long_out--;
	proc->put_off++;
	return true;
}

/* Reads what the receive has room for; false: not possible now. */
static bool accept_rget(struct via_incoming *msg, bool in_receive)
{
	const struct via_recv *recv = msg->recv;
	uint64_t len = msg->envelope.data_length < recv->size ? msg->envelope.data_length : recv->size;
	struct via_rma *rma;

	if (!len)
		return false;
	rma = via_rma_new(msg->proc, VIP_CONTROL_OP_RDMAREAD, recv->buf, (size_t)len);
	if (!rma)
		return false;
	rma->remote = msg->buffer;
	rma->remote_handle = msg->handle;
	rma->then = rget_read;
	rma->completion.arg = msg;
	via_rndv_begins(msg, msg->buffer);
	if (in_receive && is_put_off(msg->proc))
		via_rma_start_later(rma);
	else
		via_rma_start(rma);
	return true;
}

static bool accept_rput(struct via_incoming *msg)
{
	uint64_t len = msg->envelope.data_length;

	if (!len || len > msg->recv->size)
		return false;
	msg->reg = via_dreg_register(msg->proc->cmpi, (uintptr_t)msg->recv->buf, (size_t)len, CMPI_ACCESS_REMOTE_WRITE);
	return msg->reg != NULL;
}

void via_rndv_accept(struct via_incoming *msg, bool in_receive)
{
	struct cmpi_proc *proc = msg->proc;

	if (msg->protocol == VIA_PROTO_RGET && accept_rget(msg, in_receive))
		return;
	msg->rreq = via_handle_create(proc->cmpi, VIA_HANDLE_RECV, proc, msg);
	if (!msg->rreq) {
		via_conn_fail(proc, "too many messages in progress");
		via_incoming_done(msg, CMPI_RESOURCE);
		return;
	}
	if (msg->protocol == VIA_PROTO_RPUT && accept_rput(msg))
		reply(msg, VIA_PROTO_RPUT);
	else
		accept_r3(msg);
}

bool via_rput_finish(struct cmpi_proc *proc, uint64_t rreq)
{
	struct via_incoming *msg = via_handle_lookup(proc->cmpi, VIA_HANDLE_RECV, proc, rreq);

	if (!msg || !msg->reg)
		return false;
	via_handle_destroy(proc->cmpi, rreq);
	via_incoming_done(msg, CMPI_OK);
	return true;
}
