/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every message asks before it leaves, and leaves when the destination NIC has a place for it (QNIX).  A VI's send becomes an
 * entry of the Scheduling Queue here; ctl/qnix_tx.c asks and sends, ctl/qnix_rx.c answers.
 *
 * Put and Get name their destination: they have leave by their nature, and need room on the link only.
 */
#include "nicemu/ctl/qnix.h"

static uint64_t start_of(const struct nic_desc *desc)
{
	return desc->nseg ? desc->seg[0].addr : 0;
}

/*
 * With engine `inline` a process that does not poll does not run its NIC, and a message that has been permitted would not leave.
 * So a message that fits one buffer is laid ready there (or is there already), for the receiving NIC to take when it permits it.
 */
static uint32_t lay_ready(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	uint32_t index;

	if (!nic->stage || desc->length > NIC_BUFFER_SIZE)
		return 0;
	if (desc->control & NIC_CTL_POOL) {
		uint64_t off = desc->seg[0].addr - nic_host_pool(nic); /* checked before: it lies in one buffer */

		return QNIX_STAGED(off / NIC_BUFFER_SIZE, off % NIC_BUFFER_SIZE);
	}
	if (!nic_buffer_take(nic, &index))
		return 0;
	nic_tx_gather(nic, vi, desc, 0, desc->length, nic_buffer(nic, index));
	return QNIX_STAGED(index, 0);
}

/* The Send command of a VI: steps 1 to 3. */
static bool admit(struct nic *nic, uint32_t vi, struct nic_txe *e, uint32_t flags)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_desc *desc = nic_host(e->desc);
	struct qnix *q = nic->qnix;
	struct qnix_sq *s = qnix_sq_take(q, true);

	if (!s)
		return false;
	nic_trace(nic, SEND_1, qnix_sq_index(q, s), vi);
	s->send.context = vi;
	s->send.command = QNIX_CODE_VI;
	s->send.len = s->total = desc->length;
	s->first = qnix_first(start_of(desc), desc->length);
	s->header.node = ctx->peer_slot;
	s->header.pid = nic_qnix_pid(nic, ctx->peer_slot);
	s->header.tag = qnix_vi_tag(ctx->peer_vi);
	nic_trace(nic, SEND_2, s->header.node, s->total);
	s->number = ctx->tx_number++;
	s->work = (uint16_t)(e - nic->slot->txq[vi]);
	s->gen = ctx->peer_gen;
	s->flags = flags;
	s->staged = lay_ready(nic, vi, desc);
	s->before = ctx->queued ? ctx->tx_last : QNIX_NONE;
	if (s->before != QNIX_NONE)
		q->sq[s->before].after = qnix_sq_index(q, s);
	ctx->tx_last = qnix_sq_index(q, s);
	ctx->queued++;
	e->flags |= NIC_TXE_QUEUED | (flags & NIC_PF_ACK ? NIC_TXE_WAIT : 0);
	nic_trace(nic, SEND_3, qnix_sq_index(q, s), s->number);
	qnix_request(q, s);
	return true;
}

static void cancel(struct nic *nic, uint32_t vi)
{
	if (!nic->qnix)
		return;
	qnix_tx_cancel_vi(nic->qnix, vi);
	qnix_rx_cancel_vi(nic->qnix, vi);
}

const struct nic_flow nic_flow_permission = { .name = "permission", .admit = admit, .cancel = cancel };
