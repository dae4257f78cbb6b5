/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control: credits, the backlog, credit messages (NOOPs).  Not what the packets mean.
 *
 * A VI at reliability Reliable Delivery breaks when a message finds no posted receive, so the accounts here are what keeps
 * a connection alive.  For one direction, X sends to Y:
 *
 *	X.remote_credit   packets X may send
 *	Y.preposts        receives Y has posted
 *	Y.granted         packets Y has allowed and not yet received (an upper bound of what may still come)
 *	Y.local_credit    receives posted that X has not been told of
 *
 * Conservation, at every point between two packets:
 *	Y.preposts = noop_extra + Y.granted + Y.local_credit					(1)
 *	Y.granted  = X.remote_credit + packets in flight to Y + credit in flight to X		(2)
 * A posted receive is in reserve for a NOOP, or promised, or about to be promised; (1) is asserted in debug builds by
 * via_flow_check, (2) by the stress test, which sees both sides.  A credited packet therefore always finds a receive.
 *
 * NOOPs take no credit and land in the noop_extra receives.  The receiver posts the very same vbuf again at once and
 * counts it in noops_in, which every packet carries back (noop_ack, modulo 256).  The sender never has more than
 * noop_extra NOOPs that are not acknowledged, and a NOOP is acknowledged only after its receive has been replaced, so a
 * NOOP always finds a receive too, whatever the peer does or does not read.
 *
 * Can that bound stop the flow for ever?  Let Y hold back a NOOP because noop_extra of them are unacknowledged, and let
 * nothing be in flight.  X has then received all of them, and has sent nothing since the first (any packet of X would have
 * acknowledged those before it).  Each carried at least `notify` credits, so X has noop_extra * notify >= preserve >= 1
 * credits: X has no backlog and no R3 data that waits for credit.  When X does send, the packet acknowledges.
 *
 * Enough credit comes back: when nothing is in flight, Y keeps back at most `threshold` receives it has not posted and at
 * most notify - 1 credits it has not told (or X's last packet left it preserve credits or more: remote_cc > preserve).
 * With depth >= preserve + threshold + notify - 1, X has at least preserve credits, so its backlog drains and its R3 data
 * flows.  params.c forces the parameters into these inequalities.
 *
 * Bound on what a peer can make this process hold: see docs/flow-control.md.
 */
#include "cmpi/pm_via/flow.h"

/* ---- receives ----------------------------------------------------------------------------------------------------- */

bool via_recv_post(struct cmpi_proc *proc, struct via_vbuf *v)
{
	v->owner = proc;
	v->kind = VIA_VBUF_RECV;
	via_vbuf_segment(v, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_POOL, v->small, v->handle, VIA_SMALL);
	if (via_unlikely(VipPostRecv(proc->vi, &v->desc, v->handle) != VIP_SUCCESS)) {
		via_vbuf_give(proc->cmpi, v);
		via_conn_fail(proc, "a receive was refused");
		return false;
	}
	proc->cmpi->recv_due -= proc->preposts < proc->base;
	proc->preposts++;
	return true;
}

/* Receives that should be posted now. */
static inline uint32_t wanted(const struct cmpi_proc *proc)
{
	const struct via_params *p = &proc->cmpi->params;
	uint32_t extra = proc->expected < p->rendezvous_extra ? proc->expected : p->rendezvous_extra;

	return proc->fresh ? p->initial : proc->base + extra;
}

/* After a change of what is wanted: when the next receives are to be posted, and whether arrivals change it again. */
void via_flow_limits(struct cmpi_proc *proc)
{
	uint32_t want = wanted(proc), threshold = proc->cmpi->params.threshold;

	proc->special = proc->fresh || proc->expected;
	proc->replace_below = proc->state <= VIA_CONN_CLOSING && want > threshold ? (uint16_t)(want - threshold) : 0;
}

/* Posts what is missing, each one a credit for the peer.  What the connection owns is always there or held by a handler. */
void via_flow_refill(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	uint32_t want = wanted(proc);

	while (proc->preposts < want) {
		bool owned = proc->preposts < proc->base;
		struct via_vbuf *v = owned ? via_vbuf_pop(c) : via_vbuf_take(c);

		if (!v && owned && via_vbuf_grow(c, false))
			v = via_vbuf_pop(c);
		if (!v || !via_recv_post(proc, v))
			return;
		proc->local_credit++;
	}
}

/*
 * Nothing has arrived in this pass: time to post what the last peer has used up, which the answer to a single message
 * should not have to wait for.  It only makes receives come earlier than via_flow_replace would post them.
 */
void via_flow_idle(struct cmpi *c)
{
	struct cmpi_proc *proc = c->recent;

	c->recent = NULL;
	if (!proc->replace_below || proc->state != VIA_CONN_CONNECTED)
		return;
	via_flow_refill(proc);
	via_flow_noop(proc);
}

/* Before the VI connects: the reserved NOOP receives and the first credits, which the peer knows from our address. */
void via_flow_init(struct cmpi_proc *proc)
{
	const struct via_params *p = &proc->cmpi->params;

	proc->remote_credit = 0;
	proc->local_credit = 0;
	proc->next_out = proc->next_in = 1;
	proc->remote_cc = VIA_CREDIT_BYTE;
	proc->noops_sent = proc->noops_acked = proc->noops_in = 0;
	proc->preposts = 0;
	proc->base = (uint16_t)(p->depth + p->noop_extra);
	proc->fresh = true;
	proc->expected = 0;
	proc->bye_in = proc->bye_out = false;
	proc->packet_no_out = proc->packet_no_in = 0;
	proc->eager_sent = proc->eager_consumed = proc->consumed = 0;
	proc->consumed_units = proc->consumed_cc = 0;
	via_flow_refill(proc);
	proc->granted = p->initial - p->noop_extra;
	proc->local_credit = 0;
	via_flow_limits(proc);
}

/* Rule (1), and what headers say of eager bytes is what was consumed; true also while a connection is being taken down. */
bool via_flow_holds(const struct cmpi_proc *proc)
{
	if (proc->state != VIA_CONN_CONNECTED && proc->state != VIA_CONN_CONNECTING)
		return true;
	return proc->preposts == proc->cmpi->params.noop_extra + proc->granted + proc->local_credit &&
	       proc->consumed_units == (uint8_t)(proc->consumed / VIA_CONSUMED_UNIT);
}

/* ---- sends -------------------------------------------------------------------------------------------------------- */

static void reaped(struct cmpi_proc *proc, struct via_vbuf *v)
{
	uint32_t status = v->desc.CS.Status & VIP_STATUS_ERROR_MASK;

	proc->sends_posted--;
	if (via_unlikely(status))
		via_conn_send_failed(proc, v, status);
	if (v->kind == VIA_VBUF_RMA)
		via_rma_done(v, status);
	else
		via_vbuf_give(proc->cmpi, v);
}

void via_sending(struct cmpi_proc *proc)
{
	if (proc->in_sending)
		return;
	proc->in_sending = true;
	proc->next_sending = proc->cmpi->sending;
	proc->cmpi->sending = proc;
}

/* The library did not take a descriptor: a buffer that it names is still ours. */
void via_send_refused(struct cmpi_proc *proc, struct via_vbuf *v)
{
	if (v->kind == VIA_VBUF_SEND && v->desc.CS.Control & VIP_CONTROL_POOL)
		VipxGiveBuffer(proc->cmpi->nic, via_vbuf_packet(v));
	v->desc.CS.Status = VIP_STATUS_DONE | VIP_STATUS_FORMAT_ERROR;
	proc->sends_posted++;
	reaped(proc, v);
}

/*
 * A descriptor was posted that is not complete, or not simply so.  What has not `ended` waits for the peer, which takes longer than
 * until the next pass looks.
 */
void via_send_pending(struct cmpi_proc *proc, bool ended)
{
	proc->sends_posted++;
	if (proc->sends_posted == 1 && ended)
		via_send_reap_one(proc);
	if (proc->sends_posted)
		via_sending(proc);
}

int via_send_reap_one(struct cmpi_proc *proc)
{
	VIP_DESCRIPTOR *done;
	int n = 0;

	while (proc->sends_posted && VipSendDone(proc->vi, &done) != VIP_NOT_DONE) {
		reaped(proc, (struct via_vbuf *)done);
		n++;
	}
	return n;
}

int via_send_reap(struct cmpi *c)
{
	struct cmpi_proc *proc = c->sending;
	int n = 0;

	c->sending = NULL;
	while (proc) {
		struct cmpi_proc *next = proc->next_sending;

		proc->in_sending = false;
		n += via_send_reap_one(proc) + via_fetch_reap(proc);
		if (proc->fetch_head)
			c->near_left = 0;
		if (proc->sends_posted || proc->fetch_head)
			via_sending(proc);
		if (proc->rma_head || proc->state == VIA_CONN_CLOSING)
			via_flow_push(proc);
		proc = next;
	}
	return n;
}

/* The type and tag wait in the packet itself. */
void via_flow_backlog(struct cmpi_proc *proc, struct via_vbuf *v, uint32_t type_tag)
{
	struct cmpi *c = proc->cmpi;
	struct via_queue *q = &proc->backlog;
	struct via_header *header = via_vbuf_packet(v);

	header->type = (uint8_t)type_tag;
	header->tag = (uint8_t)(type_tag >> 8);
	v->desc.CS.Next.Address = NULL;
	if (q->head)
		q->tail->desc.CS.Next.Address = v;
	else
		q->head = v;
	q->tail = v;
	q->len++;
	VIA_COUNT(c, credit_stalls);
	if (q->len > *c->count.backlog_max)
		*c->count.backlog_max = q->len;
}

/*
 * A short packet, ready but for its header: inside the NIC's command when that way is open, else in a vbuf.  False: there is none;
 * with `sure` the connection has failed then.
 */
bool via_flow_packet(struct cmpi_proc *proc, uint32_t type_tag, const void *packet, size_t len, bool sure)
{
	const uint8_t *body = (const uint8_t *)packet + sizeof(struct via_header);
	size_t rest = len - sizeof(struct via_header), cell = VIA_SMALL - sizeof(struct via_header), first = rest < cell ? rest : cell;
	VIPX_SHORT message = {.A = body, .B = body + first, .ALength = (VIP_UINT32)first, .BLength = (VIP_UINT32)(rest - first)};
	struct via_vbuf *v;

	if (via_likely(via_flow_short(proc, type_tag, &message)))
		return true;
	v = sure ? via_packet_new_sure(proc, len) : via_packet_new(proc->cmpi, len, false);
	if (!v)
		return false;
	memcpy(via_vbuf_packet(v), packet, len);
	via_flow_send(proc, v, type_tag);
	return true;
}

void via_flow_drain(struct cmpi_proc *proc)
{
	struct via_queue *q = &proc->backlog;
	struct via_vbuf *v;

	while (proc->remote_credit && (v = q->head) != NULL) {
		const struct via_header *header = via_vbuf_packet(v);

		q->head = v->desc.CS.Next.Address;
		q->len--;
		via_flow_post(proc, v, header->type | (uint32_t)header->tag << 8);
	}
}

/* ---- NOOPs -------------------------------------------------------------------------------------------------------- */

/* May another packet without credit go to the peer? */
static inline bool noop_allowed(const struct cmpi_proc *proc)
{
	/* what the peer has reserved for us: its noop_extra, from its address */
	return (uint8_t)(proc->noops_sent - proc->noops_acked) < proc->address.noop_extra;
}

/* A NOOP, when one may go; `tag` says whether it says BYE too. */
static bool noop_send(struct cmpi_proc *proc, uint32_t tag)
{
	const uint32_t body[2] = {proc->consumed, 0};
	VIPX_SHORT message = {.A = body, .ALength = sizeof(body)};
	struct via_noop *noop;
	struct via_vbuf *v;

	if (!noop_allowed(proc)) {
		VIA_COUNT(proc->cmpi, noops_held);
		return false;
	}
	if (via_send_short(proc, VIA_PKT_NOOP | tag << 8, 0, &message)) {
		proc->noops_sent++;
		VIA_COUNT(proc->cmpi, noops_sent);
		return true;
	}
	v = via_packet_new_sure(proc, sizeof(*noop));
	if (!v)
		return false;
	noop = via_vbuf_packet(v);
	noop->consumed = proc->consumed;
	noop->reserved = 0;
	proc->noops_sent++;
	VIA_COUNT(proc->cmpi, noops_sent);
	via_header_fill(proc, &noop->header, VIA_PKT_NOOP | tag << 8, 0);
	v->kind = VIA_VBUF_SEND;
	via_send_post(proc, v);
	return true;
}

void via_flow_noop_due(struct cmpi_proc *proc)
{
	if (proc->state == VIA_CONN_CONNECTED)
		noop_send(proc, 0);
}

/* The last packet to a peer: takes a credit, or for want of one a NOOP's place.  False: not now. */
bool via_flow_bye(struct cmpi_proc *proc)
{
	struct via_vbuf *v;

	if (proc->remote_credit) {
		v = via_packet_new_sure(proc, sizeof(struct via_header));
		if (!v)
			return false;
		proc->bye_out = true;
		via_flow_post(proc, v, VIA_PKT_BYE);
		return true;
	}
	proc->bye_out = noop_send(proc, VIA_NOOP_BYE);
	return proc->bye_out;
}

/* ---- arrivals ------------------------------------------------------------------------------------------------------ */

static inline bool acknowledged(struct cmpi_proc *proc, uint8_t ack)
{
	if ((uint8_t)(proc->noops_sent - ack) > (uint8_t)(proc->noops_sent - proc->noops_acked))
		return false;
	proc->noops_acked = ack;
	return true;
}

/* A header that brings credit, or acknowledges NOOPs. */
bool via_flow_credit_news(struct cmpi_proc *proc, const struct via_header *header)
{
	if (via_unlikely(!acknowledged(proc, header->noop_ack)))
		return false;
	if (via_unlikely(!via_live(proc)))
		return true;
	proc->remote_credit = (uint16_t)(proc->remote_credit + header->vbuf_credit);
	if (via_unlikely(proc->remote_credit > VIA_CREDIT_LIMIT))
		return false;
	if (via_unlikely(proc->backlog.head != NULL))
		via_flow_drain(proc);
	if (via_unlikely(proc->send_head || proc->state == VIA_CONN_CLOSING))
		via_flow_push(proc);
	return true;
}

/* The first packet of a peer, or one while R3 data is expected. */
void via_flow_special(struct cmpi_proc *proc, const struct via_header *header)
{
	proc->fresh = false;
	if (header->type == VIA_PKT_R3_DATA && proc->expected)
		proc->expected--;
	via_flow_limits(proc);
}

/* A rendezvous was accepted: that many packets of R3 data will come, so more receives are posted. */
void via_flow_expect(struct cmpi_proc *proc, uint32_t packets)
{
	proc->expected += packets;
	via_flow_limits(proc);
	if (via_live(proc))
		via_flow_refill(proc);
}

/* A NOOP: its vbuf, if it took one, is posted again before anything else, and gives the peer no credit. */
bool via_flow_noop_in(struct cmpi_proc *proc, const struct via_header *header, struct via_vbuf *v)
{
	if (v)
		via_flow_taken(proc);
	proc->noops_in++;
	VIA_COUNT(proc->cmpi, noops_received);
	return (!v || via_recv_post(proc, v)) && header->id == 0 && via_flow_credit(proc, header);
}

/* ---- the flow list: connections with something to push that needs no packet of theirs to arrive -------------------- */

void via_flow_push(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;

	if (proc->in_flow)
		return;
	proc->in_flow = true;
	proc->next_flow = NULL;
	if (c->flow)
		c->flow_tail->next_flow = proc;
	else
		c->flow = proc;
	c->flow_tail = proc;
}

/* One round: each pushes what it can; returns how many packets and descriptors left. */
int via_flow_run(struct cmpi *c)
{
	struct cmpi_proc *proc = c->flow;
	int n = 0;

	c->flow = NULL;
	while (proc) {
		struct cmpi_proc *next = proc->next_flow;

		proc->in_flow = false;
		if (via_live(proc)) {
			if (proc->rma_head)
				n += via_rma_push(proc);
			if (proc->send_head)
				n += via_rndv_push(proc);
			if (proc->state == VIA_CONN_CLOSING)
				via_conn_close_step(proc);
		}
		if (proc->process.sendhead)
			via_adi_push(proc);
		proc = next;
	}
	return n;
}
