/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory.  RDMA descriptors of a send queue, which tx.c hands over one by one, and what the NIC at
 * the other end has to do for them.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/engine/dma.h"
#include "nicemu/util/copy.h"

/* Local pieces of bytes [from, from + len) of the message; 0: a segment is not ours to read or write. */
static unsigned pieces(struct nic *nic, const struct nic_vi_ctx *ctx, const struct work *w, uint64_t from, uint64_t len, struct iovec *out)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < w->nseg && len; i++) {
		uint64_t room = w->seg[i].length, part;

		if (from >= room) {
			from -= room;
			continue;
		}
		part = room - from < len ? room - from : len;
		out[n].iov_base = nic->arch->xlate->map(nic, ctx->ptag, &w->seg[i], from, part);
		if (!out[n].iov_base)
			return 0;
		out[n++].iov_len = part;
		from = 0;
		len -= part;
	}
	return n;
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static void head(struct nic_packet *p, const struct nic_vi_ctx *ctx, enum nic_op op, uint32_t len_flags, uint32_t imm)
{
	p->op = op;
	p->gen = ctx->peer_gen;
	p->vi = ctx->peer_vi;
	p->len_flags = len_flags;
	p->imm = imm;
}

static void publish(struct nic *nic, struct nic_link *link, struct nic_packet *p)
{
	nic_count(nic, packets_sent, 1);
	nic_link_publish(link, p, 1);
}

/* Room for one data packet, by leave of the flow strategy. */
static struct nic_packet *room(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link)
{
	struct nic_packet *p = NULL;

	if (!nic->arch->flow->may_send || nic->arch->flow->may_send(nic, ctx, link))
		p = nic_link_reserve(link, NIC_RING_RESERVE);
	if (nic_unlikely(!p))
		nic_count(nic, link_full, 1);
	return p;
}

static uint32_t message_flags(const struct nic_vi_ctx *ctx, const struct work *w)
{
	return (w->control & NIC_CTL_IMMEDIATE ? NIC_PF_IMM : 0) | (ctx->reliability == NIC_RELIABLE_RECEPTION ? NIC_PF_ACK : 0);
}

/* ---- the initiator ----------------------------------------------------------------------------------------------- */

/* Refused by the target's table: an unreliable VI does not tell. */
static nic_noinline enum step rdma_refused(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_txe *e, const struct work *w)
{
	if (ctx->reliability == NIC_UNRELIABLE && w->op == NIC_CTL_RDMA_WRITE) {
		nic_count(nic, protection_errors, 1);
		e->done = w->total;
		return STEP_DONE;
	}
	return nic_tx_refuse(nic, e, NIC_ST_RDMA_PROT);
}

/* The notification of a write with immediate data; its data is in place or ahead on the link. */
static enum step write_imm(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w,
                           struct nic_packet *p, uint32_t ack)
{
	uint32_t flags = message_flags(ctx, w) | ack;

	head(p, ctx, NIC_OP_WRITE_IMM, w->total | flags, w->desc->imm);
	publish(nic, link, p);
	e->done = w->total;
	return flags & NIC_PF_ACK ? STEP_WAIT : STEP_DONE;
}

/*
 * Without one-step copies: packets, then the notification in a packet of its own.  Complete when the data are in place, at both
 * reliable levels, as they are when copied in one step: who reads or writes remote memory relies on it.
 */
static nic_noinline enum step write_parts(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	bool imm = w->control & NIC_CTL_IMMEDIATE;
	uint32_t ack = ctx->reliability == NIC_UNRELIABLE ? 0 : NIC_PF_ACK;
	struct nic_packet *p;
	enum step step = STEP_DONE;

	if (e->done < w->total)
		step = nic_tx_parts(nic, ctx, link, e, w, NIC_OP_WRITE_BUF, imm ? 0 : ack);
	if (step != STEP_DONE || !imm)
		return step;
	p = room(nic, ctx, link);
	return p ? write_imm(nic, ctx, link, e, w, p, ack) : STEP_AGAIN;
}

nic_noinline enum step nic_rdma_write(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	const struct nic_seg *remote = &w->desc->seg[0];
	struct iovec local[NIC_DESC_SEGS_MAX];
	struct nic_packet *p = NULL;
	unsigned n;

	if (e->done == 0 && w->total &&
	    !nic_remote_check(link->slot, ctx->peer_vi, remote->addr, w->total, remote->handle, NIC_MEM_RDMA_WRITE))
		return rdma_refused(nic, ctx, e, w);
	if (!link->cma)
		return write_parts(nic, ctx, link, e, w);
	if (w->control & NIC_CTL_IMMEDIATE) {
		p = room(nic, ctx, link);
		if (!p)
			return STEP_AGAIN;
	}
	n = pieces(nic, ctx, w, 0, w->total, local);
	if (n == 0 && w->total)
		return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
	switch (w->total ? nic_dma_write(link, local, n, remote->addr, w->total) : NIC_DMA_OK) {
	case NIC_DMA_OK:
		nic_count(nic, bytes_write, w->total);
		break;
	case NIC_DMA_FAULT:
		return nic_tx_refuse(nic, e, NIC_ST_RDMA_PROT);
	case NIC_DMA_GONE:
		return nic_tx_refuse(nic, e, NIC_ST_TRANSPORT);
	}
	e->done = w->total;
	return p ? write_imm(nic, ctx, link, e, w, p, 0) : STEP_DONE;
}

static nic_noinline enum step read_request(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	struct nic_packet *p;

	if (ctx->tx_head != ctx->tx_next) /* one at a time, and alone: its answer must not overtake acknowledgements */
		return STEP_AGAIN;
	p = room(nic, ctx, link);
	if (!p)
		return STEP_AGAIN;
	p->read.addr = w->desc->seg[0].addr;
	p->read.handle = w->desc->seg[0].handle;
	p->read.pad = 0;
	head(p, ctx, NIC_OP_READ_REQ, w->total, 0);
	publish(nic, link, p);
	e->done = 0;
	e->flags |= NIC_TXE_READ;
	return STEP_WAIT;
}

nic_noinline enum step nic_rdma_read(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	const struct nic_seg *remote = &w->desc->seg[0];
	struct iovec local[NIC_DESC_SEGS_MAX];
	unsigned n;

	if (!w->total)
		return STEP_DONE;
	if (!nic_remote_check(link->slot, ctx->peer_vi, remote->addr, w->total, remote->handle, NIC_MEM_RDMA_READ))
		return rdma_refused(nic, ctx, e, w);
	n = pieces(nic, ctx, w, 0, w->total, local);
	if (n == 0)
		return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
	if (!link->cma)
		return read_request(nic, ctx, link, e, w);
	switch (nic_dma_read(link, local, n, remote->addr, w->total)) {
	case NIC_DMA_FAULT:
		return nic_tx_refuse(nic, e, NIC_ST_RDMA_PROT);
	case NIC_DMA_GONE:
		return nic_tx_refuse(nic, e, NIC_ST_TRANSPORT);
	case NIC_DMA_OK:
		break;
	}
	nic_count(nic, bytes_read, w->total);
	e->done = w->total;
	return STEP_DONE;
}

/* Puts a part of the answer into the segments of the read at the head of the send queue. */
nic_noinline void nic_rdma_part(struct nic *nic, uint32_t vi, uint64_t offset, uint32_t index, uint32_t len, uint32_t flags)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_txe *t = &nic->slot->txq[vi][ctx->tx_head & (NIC_TXQ - 1)];
	struct iovec to[NIC_DESC_SEGS_MAX];
	struct nic_desc *desc;
	struct work w;
	unsigned n;
	uint32_t at = 0;

	if (ctx->tx_head == ctx->tx_next || !(t->flags & NIC_TXE_READ)) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	desc = nic_host(t->desc);
	if ((flags & NIC_PF_ERROR) || offset != t->done || len > desc->length - t->done) {
		nic_tx_acknowledge(nic, vi, 1, NIC_ST_RDMA_PROT);
		if (ctx->reliability != NIC_UNRELIABLE)
			nic_vi_fail(nic, vi, NIC_EV_NONE, 0);
		return;
	}
	/* The data segments behind the address segment, checked when the request was sent. */
	w.seg = &desc->seg[1];
	w.nseg = desc->nseg - 1;
	n = pieces(nic, ctx, &w, t->done, len, to);
	for (unsigned i = 0; i < n; i++) {
		nic_copy(to[i].iov_base, nic_buffer(nic, index) + at, to[i].iov_len);
		at += to[i].iov_len;
	}
	t->done += len;
	if (!(flags & NIC_PF_MORE))
		nic_tx_acknowledge(nic, vi, 1, t->done == desc->length ? 0 : NIC_ST_PARTIAL);
	nic_vi_schedule(nic, vi);
}

/* ---- the target -------------------------------------------------------------------------------------------------- */

/* Puts a part of a write in place, where the table of this slot allows it. */
nic_noinline bool nic_rdma_place(struct nic *nic, uint32_t vi, const struct nic_packet *p, uint32_t index, uint32_t len)
{
	uint64_t addr = p->buf.addr;

	if (!nic_remote_check(nic->slot, vi, addr, len, p->buf.handle, NIC_MEM_RDMA_WRITE)) {
		nic_count(nic, protection_errors, 1);
		return false;
	}
	nic_copy(nic_host(addr), nic_buffer(nic, index), len);
	return true;
}

nic_noinline void nic_rdma_request(struct nic *nic, uint32_t vi, const struct nic_packet *p, uint32_t len)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint64_t addr = p->read.addr;
	uint32_t handle = p->read.handle;

	if (ctx->read_left || !len) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	/* The right to read is looked at when the answer is made, part by part. */
	ctx->read_addr = addr;
	ctx->read_handle = handle;
	ctx->read_done = 0;
	ctx->read_left = len;
	nic_vi_schedule(nic, vi);
}

/* The answer to a peer's RDMA read, part by part.  True: something moved. */
nic_noinline bool nic_rdma_answer(struct nic *nic, struct nic_vi_ctx *ctx, struct nic_link *link)
{
	uint32_t len = ctx->read_left < NIC_BUFFER_SIZE ? ctx->read_left : NIC_BUFFER_SIZE, index;
	struct nic_packet *p = room(nic, ctx, link);

	if (!p || !nic_buffer_take(nic, &index))
		return false;
	if (!nic_remote_check(nic->slot, (uint32_t)(ctx - nic->slot->vi), ctx->read_addr, len, ctx->read_handle, NIC_MEM_RDMA_READ)) {
		/* deregistered meanwhile */
		nic_buffer_give(nic, index);
		head(p, ctx, NIC_OP_READ_BUF, NIC_PF_ERROR, NIC_ST_RDMA_PROT);
		p->buf.buffer = UINT32_MAX;
		ctx->read_left = 0;
		publish(nic, link, p);
		return true;
	}
	nic_copy(nic_buffer(nic, index), nic_host(ctx->read_addr), len);
	p->buf.buffer = index;
	p->buf.handle = 0;
	p->buf.addr = ctx->read_done;
	head(p, ctx, NIC_OP_READ_BUF, len | (len < ctx->read_left ? NIC_PF_MORE : 0), 0);
	publish(nic, link, p);
	link->balance--;
	ctx->read_addr += len;
	ctx->read_done += len;
	ctx->read_left -= len;
	nic_count(nic, bytes_read_buffer, len);
	return true;
}

