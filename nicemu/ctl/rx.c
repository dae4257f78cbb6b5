/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program, receiving side: takes packets from a link, matches them with the receive at the head of the VI's queue,
 * puts the payload in place and completes the descriptor.
 *
 * A packet is foreign memory: every member is copied once and the copy is checked.  A buffer index that comes with a packet
 * belongs to this slot from then on, whatever becomes of the message.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/dma.h"
#include "nicemu/util/copy.h"

/* The header of the packet in hand. */
struct arrival {
	struct nic_link *link;
	const struct nic_packet *p;
	struct nic_vi_ctx *ctx; /* NULL: no such connection any more */
	uint32_t vi, op, gen, flags, len, imm;
};

/* ---- receive descriptors ----------------------------------------------------------------------------------------- */

/* Translates the descriptor into its form on the NIC. */
void nic_rx_fetch(struct nic *nic, struct nic_vi_ctx *ctx, const struct nic_desc *desc, struct nic_rxe *e)
{
	uint64_t room = 0;
	uint32_t status = 0, control = desc->control, nseg = desc->nseg;

	e->desc = (uintptr_t)desc;
	e->nseg = nseg;
	e->control = control;
	if (nic_likely(nseg == 1 && !(control & (NIC_CTL_RESERVED | NIC_CTL_OP_MASK)) && !desc->reserved && desc->seg[0].length)) {
		e->addr = (uintptr_t)nic->arch->xlate->map(nic, ctx->ptag, &desc->seg[0], 0, desc->seg[0].length);
		e->room = desc->seg[0].length;
		e->status = 0;
		if (nic_likely(e->addr))
			return;
	}
	if ((control & NIC_CTL_RESERVED) || (control & NIC_CTL_OP_MASK) || desc->reserved || nseg >= NIC_DESC_SEGS_MAX ||
	    ((control & NIC_CTL_POOL) && nseg > 1))
		status = NIC_ST_FORMAT;
	e->addr = 0;
	for (uint32_t i = 0; i < nseg && !status; i++) {
		const struct nic_seg *seg = &desc->seg[i];
		void *p = seg->length ? nic->arch->xlate->map(nic, ctx->ptag, seg, 0, seg->length) : NULL;

		if (seg->length && !p)
			status = NIC_ST_PROTECTION;
		if (i == 0)
			e->addr = (uintptr_t)p;
		room += seg->length;
	}
	e->room = room < UINT32_MAX ? room : UINT32_MAX;
	e->status = status;
	if (nic_unlikely(status)) {
		nic_count(nic, protection_errors, status == NIC_ST_PROTECTION);
		ctx->rx_bad++;
		ctx->rx_quick = 0;
	}
}

/* Status before completion entry [C1]; after the store of status the descriptor is the consumer's. */
static inline void complete(struct nic *nic, struct nic_vi_ctx *ctx, struct nic_desc *desc, uint32_t status, uint32_t length, uint32_t imm)
{
	nic_count(nic, recv_descriptors, 1);
	if (nic_unlikely(status & NIC_ST_ERROR_MASK)) {
		nic_count(nic, flushed, (status & NIC_ST_FLUSHED) != 0);
		nic_count(nic, descriptor_errors, (status & NIC_ST_FLUSHED) == 0);
	}
	desc->length = length;
	desc->imm = imm;
	nic_store_release(&desc->status, status | NIC_ST_DONE); /* pairs with the consumer's acquire */
	if (ctx->recv_cq && !nic_cq_publish(nic_host(ctx->recv_cq), ctx->cookie | NIC_CQ_RECV))
		nic_event(nic, NIC_EV_VI_OVERRUN, ctx->cookie, 0, NIC_ST_OP_RECEIVE);
}

static struct nic_rxe *rx_head(const struct nic *nic, uint32_t vi, const struct nic_vi_ctx *ctx)
{
	return ctx->rx_head == ctx->rx_tail ? NULL : &nic->slot->rxq[vi][ctx->rx_head & (NIC_RXQ - 1)];
}

/* The descriptor at the head is used up. */
static void pop(struct nic *nic, uint32_t vi, struct nic_vi_ctx *ctx, uint32_t status, uint32_t length, uint32_t imm)
{
	struct nic_desc *desc = nic_host(rx_head(nic, vi, ctx)->desc);

	ctx->rx_head++;
	ctx->rx_done = ctx->rx_quick = 0;
	if (nic_unlikely(ctx->rx_spilled))
		nic->arch->post->refill(nic, vi);
	complete(nic, ctx, desc, status, length, imm);
}

void nic_rx_head(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	while (ctx->rx_bad && ctx->rx_head != ctx->rx_tail && nic_vi_state(ctx) == NIC_VI_CONNECTED) {
		uint32_t status = rx_head(nic, vi, ctx)->status;

		if (!status)
			return;
		ctx->rx_bad--;
		pop(nic, vi, ctx, status | NIC_ST_OP_RECEIVE, 0, 0);
		if (ctx->reliability != NIC_UNRELIABLE)
			nic_vi_fail(nic, vi, NIC_EV_NONE, 0);
	}
}

void nic_rx_flush(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	while (ctx->rx_head != ctx->rx_tail)
		pop(nic, vi, ctx, NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE, 0, 0);
	ctx->rx_bad = ctx->rx_skip = 0;
}

int nic_post_recv(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	nic->arch->post->recv(nic, vi, desc);
	if (nic_unlikely(nic_vi_state(ctx) == NIC_VI_ERROR))
		nic_rx_flush(nic, vi);
	else if (nic_unlikely(ctx->rx_bad))
		nic_rx_head(nic, vi);
	return NIC_OK;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void acknowledge(struct nic *nic, const struct arrival *a)
{
	if (a->flags & NIC_PF_ACK)
		nic_sys_ack(nic, a->vi, 1);
}

/*
 * The message cannot be taken.  Unreliable: it is dropped, with `event` where the specification has one.  Reliable: the
 * connection breaks; at Reliable Reception the sender learns why (remote).
 */
static nic_noinline void reject(struct nic *nic, const struct arrival *a, uint32_t remote, int event)
{
	struct nic_vi_ctx *ctx = a->ctx;

	if (ctx->reliability == NIC_UNRELIABLE) {
		if (event != NIC_EV_NONE)
			nic_event(nic, event, ctx->cookie, 0, NIC_ST_OP_RECEIVE);
		ctx->rx_skip = (a->flags & NIC_PF_MORE) != 0;
		ctx->rx_done = ctx->rx_quick = 0;
		acknowledge(nic, a);
		return;
	}
	nic_vi_fail(nic, a->vi, event, ctx->reliability == NIC_RELIABLE_RECEPTION ? remote : 0);
}

/* ---- delivery ---------------------------------------------------------------------------------------------------- */

/* Pieces of the receive from byte `from` on, for `len` bytes; translated and checked when it was fetched. */
static nic_noinline unsigned pieces(const struct nic_rxe *e, uint32_t from, uint32_t len, struct iovec *out)
{
	const struct nic_desc *desc = nic_host(e->desc);
	unsigned n = 0;

	for (uint32_t i = 0; i < e->nseg && len; i++) {
		uint32_t room = desc->seg[i].length, part;

		if (from >= room) {
			from -= room;
			continue;
		}
		part = room - from < len ? room - from : len;
		out[n].iov_base = (char *)nic_host(desc->seg[i].addr) + from;
		out[n++].iov_len = part;
		from = 0;
		len -= part;
	}
	return n;
}

/* link: the data is in a buffer that has come over it; NULL: elsewhere. */
static nic_noinline void scatter_many(struct nic *nic, const struct nic_link *link, const struct nic_rxe *e, uint32_t from, const uint8_t *data, uint32_t len)
{
	struct iovec to[NIC_DESC_SEGS_MAX];
	unsigned n = pieces(e, from, len, to);

	for (unsigned i = 0; i < n; i++) {
		nic_buffer_write_out(nic, link, (uintptr_t)to[i].iov_base, data, (uint32_t)to[i].iov_len);
		data += to[i].iov_len;
	}
}

static inline void scatter(struct nic *nic, const struct nic_link *link, const struct nic_rxe *e, uint32_t from, const uint8_t *data, uint32_t len)
{
	if (nic_likely(e->nseg <= 1))
		nic_buffer_write_out(nic, link, e->addr + from, data, len);
	else
		scatter_many(nic, link, e, from, data, len);
}

/* The receive for this message, or NULL when it was rejected. */
static struct nic_rxe *match(struct nic *nic, const struct arrival *a)
{
	struct nic_vi_ctx *ctx = a->ctx;
	struct nic_rxe *e;

	if (nic_unlikely(ctx->rx_bad)) {
		nic_rx_head(nic, a->vi);
		if (nic_vi_state(ctx) != NIC_VI_CONNECTED)
			return NULL;
	}
	e = rx_head(nic, a->vi, ctx);
	if (nic_unlikely(!e)) {
		nic_count(nic, recv_missing, 1);
		reject(nic, a, NIC_ST_REMOTE_DESC, NIC_EV_RECVQ_EMPTY);
	}
	return e;
}

static nic_noinline void too_long(struct nic *nic, const struct arrival *a)
{
	struct nic_vi_ctx *ctx = a->ctx;

	pop(nic, a->vi, ctx, NIC_ST_LENGTH | NIC_ST_OP_RECEIVE, 0, 0);
	reject(nic, a, NIC_ST_REMOTE_DESC, NIC_EV_NONE);
}

static uint32_t success(const struct arrival *a, uint32_t op)
{
	return op | (a->flags & NIC_PF_IMM ? NIC_ST_IMMEDIATE : 0);
}

/* The receive takes its buffer from the NIC's pool. */
static void name_buffer(const struct nic *nic, const struct nic_rxe *e, const uint8_t *data, uint32_t len)
{
	struct nic_desc *desc = nic_host(e->desc);

	desc->seg[1].addr = nic_host_bus(nic, data);
	desc->seg[1].handle = NIC_POOL_HANDLE;
	desc->seg[1].length = len;
}

/* Is a message of that length too long for the receive's segments, and may it have a buffer? */
static bool wants_buffer(const struct nic_rxe *e, uint32_t len)
{
	return len > e->room && (e->control & NIC_CTL_POOL);
}

static void deliver_inline(struct nic *nic, const struct arrival *a)
{
	struct nic_rxe *e = match(nic, a);
	uint8_t data[NIC_PAYLOAD_MAX];
	uint32_t index = 0;
	bool pool;

	if (nic_unlikely(!e))
		return;
	pool = a->len <= NIC_INLINE_MAX && wants_buffer(e, a->len) && nic_buffer_take(nic, &index); /* there is one, unless a bad receive was before it: nic_rx_run */
	if (nic_unlikely(a->len > NIC_INLINE_MAX || (a->len > e->room && !pool))) {
		too_long(nic, a);
		return;
	}
	nic_link_collect(a->link, a->p, nic_packet_cells(a->len), data);
	if (pool) {
		nic_copy(nic_buffer(nic, index), data, a->len);
		name_buffer(nic, e, nic_buffer(nic, index), a->len);
	} else {
		scatter(nic, NULL, e, 0, data, a->len);
	}
	pop(nic, a->vi, a->ctx, success(a, NIC_ST_OP_RECEIVE) | (pool ? NIC_ST_POOL : 0), a->len, a->imm);
	if (nic_unlikely(a->flags & NIC_PF_ACK))
		acknowledge(nic, a);
}

/* True when the buffer has gone to the consumer. */
static bool deliver_buffer(struct nic *nic, const struct arrival *a, uint32_t index, uint32_t offset)
{
	struct nic_vi_ctx *ctx = a->ctx;
	uint8_t *data = nic_buffer(nic, index) + offset;
	struct nic_rxe *e = match(nic, a);
	uint32_t done = ctx->rx_done;
	bool taken = false;

	if (nic_unlikely(!e))
		return false;
	if (a->len <= e->room - done && done <= e->room) {
		scatter(nic, a->link, e, done, data, a->len);
	} else if ((e->control & NIC_CTL_POOL) && done == 0 && !(a->flags & NIC_PF_MORE)) {
		name_buffer(nic, e, data, a->len);
		taken = true;
	} else {
		too_long(nic, a);
		return false;
	}
	if (nic_unlikely(a->flags & NIC_PF_MORE)) {
		ctx->rx_done = done + a->len;
		ctx->rx_quick = 0;
		return false;
	}
	pop(nic, a->vi, ctx, success(a, NIC_ST_OP_RECEIVE) | (taken ? NIC_ST_POOL : 0), done + a->len, a->imm);
	if (nic_unlikely(a->flags & NIC_PF_ACK))
		acknowledge(nic, a);
	return taken;
}

/* Is the peer's end of the connection still the one that sent this? */
static bool still_up(const struct arrival *a)
{
	struct nic_vi_ctx *theirs = &a->link->slot->vi[a->ctx->peer_vi & (NIC_VI_TABLE - 1)];

	/* Acquire: pairs with the release in end_life (vi.c); the copy comes before. */
	atomic_thread_fence(memory_order_acquire);
	return nic_load_acquire(&theirs->state) == NIC_VI_CONNECTED && theirs->gen == a->ctx->peer_gen;
}

static nic_noinline void deliver_pull(struct nic *nic, const struct arrival *a)
{
	struct nic_run run[2];
	uint32_t nruns = a->p->pull.nruns, at = 0;
	struct nic_rxe *e = match(nic, a);
	struct iovec to[NIC_DESC_SEGS_MAX];

	if (!e)
		return;
	run[0] = a->p->pull.run[0];
	run[1] = a->p->pull.run[1];
	if (nruns > 2 || a->len > e->room || (nruns > 0 ? run[0].len : 0) + (nruns > 1 ? run[1].len : 0) != a->len) {
		too_long(nic, a);
		return;
	}
	for (uint32_t i = 0; i < nruns; i++) {
		unsigned n = pieces(e, at, run[i].len, to);

		if (run[i].len && nic_dma_read(nic, a->link, to, n, run[i].addr, run[i].len) != NIC_DMA_OK) {
			pop(nic, a->vi, a->ctx, NIC_ST_TRANSPORT | NIC_ST_OP_RECEIVE, 0, 0);
			/* An unreliable VI stays up for now; when the peer is dead, the watch says so. */
			reject(nic, a, NIC_ST_TRANSPORT, a->ctx->reliability == NIC_UNRELIABLE ? NIC_EV_NONE : (int)NIC_EV_CONN_LOST);
			return;
		}
		at += run[i].len;
	}
	if (!still_up(a)) {
		/* The sender took the descriptor back while we copied: its memory may hold anything. */
		pop(nic, a->vi, a->ctx, NIC_ST_TRANSPORT | NIC_ST_OP_RECEIVE, 0, 0);
		nic_vi_lost(nic, a->vi);
		return;
	}
	nic_count(nic, bytes_pulled, a->len);
	pop(nic, a->vi, a->ctx, success(a, NIC_ST_OP_RECEIVE), a->len, a->imm);
	acknowledge(nic, a);
}

/* ---- RDMA -------------------------------------------------------------------------------------------------------- */

static nic_noinline void write_buffer(struct nic *nic, const struct arrival *a, uint32_t index)
{
	if (!nic_rdma_place(nic, a->link, a->vi, a->p, index, a->len))
		reject(nic, a, NIC_ST_RDMA_PROT, NIC_EV_RDMAW_PROT);
	else if (!(a->flags & NIC_PF_MORE))
		acknowledge(nic, a);
}

static nic_noinline void write_imm(struct nic *nic, const struct arrival *a)
{
	if (!match(nic, a))
		return;
	pop(nic, a->vi, a->ctx, success(a, NIC_ST_OP_REMOTE_RDMA_WRITE), a->len, a->imm);
	acknowledge(nic, a);
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* The VI that the packet is for, when that connection still stands. */
static struct nic_vi_ctx *target(struct nic *nic, const struct arrival *a)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, a->vi);

	if (nic_unlikely(nic_vi_state(ctx) == NIC_VI_CONNECT_PENDING))
		nic_conn_settle(nic, a->vi);
	if (nic_likely(nic_vi_state(ctx) == NIC_VI_CONNECTED && ctx->gen == a->gen && ctx->peer_slot == a->link->peer))
		return ctx;
	return NULL;
}

static void with_buffer(struct nic *nic, const struct arrival *a)
{
	uint32_t index = a->p->buf.buffer;
	uint64_t where = a->p->buf.addr;
	bool taken = false;

	if (nic_unlikely(index >= NIC_POOL_BUFFERS)) {
		if (a->op == NIC_OP_READ_BUF && (a->flags & NIC_PF_ERROR) && a->ctx)
			nic_rdma_part(nic, a->link, a->vi, a->p, 0, a->len, a->flags);
		else
			nic_count(nic, bad_packets, 1);
		return;
	}
	a->link->balance++;
	a->link->keeps = nic_likely(a->op != NIC_OP_SEND_BUF || !(a->p->buf.handle & NIC_SEND_SOON)) ? nic->keeps : NIC_KEEPS_FEW;
	if (nic_unlikely(!a->ctx))
		;
	else if (nic_unlikely(a->len > NIC_BUFFER_SIZE))
		nic_count(nic, bad_packets, 1);
	else if (nic_unlikely(a->ctx->rx_skip && a->op != NIC_OP_READ_BUF && a->op != NIC_OP_WRITE_PART))
		a->ctx->rx_skip = (a->flags & NIC_PF_MORE) != 0;
	else if (a->op == NIC_OP_WRITE_BUF)
		write_buffer(nic, a, index);
	else if (a->op == NIC_OP_READ_BUF)
		nic_rdma_part(nic, a->link, a->vi, a->p, index, a->len, a->flags);
	else if (a->op == NIC_OP_WRITE_PART)
		nic_rdma_put(nic, a->link, a->vi, a->p, nic_buffer(nic, index), a->len);
	else if (nic_likely(where + a->len <= NIC_BUFFER_SIZE && where <= NIC_BUFFER_SIZE))
		taken = deliver_buffer(nic, a, index, where);
	else
		nic_count(nic, bad_packets, 1);
	if (!taken)
		nic_buffer_give(nic, index);
}

static nic_noinline void returned(struct nic *nic, const struct arrival *a)
{
	uint32_t n = a->p->ret.n;

	a->link->answered++; /* nothing that the peer waits for an answer to */
	a->link->balance += (int32_t)nic_buffer_give_row(nic, a->p->ret.buffer, n < 11 ? n : 11);
}

/* Not about a VI of the link. */
static nic_noinline void other(struct nic *nic, const struct arrival *a)
{
	switch (a->op) {
	case NIC_OP_RETURN:
		returned(nic, a);
		break;
	case NIC_OP_SKIP:
		a->link->answered += nic_ring_rest(a->link->rx_pos); /* as there */
		break;
	case NIC_OP_RESYNC:
		nic_sys_resync(nic, a->link);
		break;
	case NIC_OP_QNIX:
		nic_qnix_packet(nic, a->link, a->p);
		break;
	default:
		nic_count(nic, bad_packets, 1);
	}
}

static void dispatch(struct nic *nic, struct arrival *a)
{
	if (nic_unlikely(a->op >= NIC_OP_RESYNC)) {
		other(nic, a);
		return;
	}
	a->ctx = target(nic, a);
	if (nic_unlikely(!a->ctx)) {
		nic_count(nic, stale_packets, 1);
		nic_rdma_pass_over(a->link, a->p, a->op);
	}
	switch (a->op) {
	case NIC_OP_SEND_BUF:
	case NIC_OP_WRITE_BUF:
	case NIC_OP_READ_BUF:
	case NIC_OP_WRITE_PART:
		with_buffer(nic, a);
		return;
	default:
		break;
	}
	if (nic_unlikely(!a->ctx))
		return;
	switch (a->op) {
	case NIC_OP_SEND:
		deliver_inline(nic, a);
		break;
	case NIC_OP_SEND_PULL:
		deliver_pull(nic, a);
		break;
	case NIC_OP_WRITE_IMM:
		write_imm(nic, a);
		break;
	case NIC_OP_READ_REQ:
	case NIC_OP_READ_SHORT:
	case NIC_OP_READ_HALF:
	case NIC_OP_WRITE_HALF:
		nic_rdma_request(nic, a->link, a->vi, a->p, a->len);
		break;
	case NIC_OP_WRITE_SHORT:
		if (nic_likely(a->len <= NIC_PUT_SHORT))
			nic_rdma_put(nic, a->link, a->vi, a->p, a->p->put.data, a->len);
		else
			nic_count(nic, bad_packets, 1);
		break;
	case NIC_OP_ACK:
		nic_tx_acknowledge(nic, a->vi, a->len, 0);
		break;
	case NIC_OP_DISCONNECT:
		nic_tx_acknowledge(nic, a->vi, a->len, 0);
		if (a->imm & NIC_ST_ERROR_MASK)
			nic_tx_acknowledge(nic, a->vi, 1, a->imm & NIC_ST_ERROR_MASK);
		nic_vi_lost(nic, a->vi);
		break;
	default:
		nic_count(nic, bad_packets, 1);
	}
}

/* ---- for a NIC that gives leave to messages before they come -------------------------------------------------------- */

struct nic_vi_ctx *nic_rx_target(struct nic *nic, struct nic_link *link, uint32_t vi, uint8_t gen)
{
	struct arrival a = { .link = link, .vi = vi, .gen = gen };

	return target(nic, &a);
}

/*
 * Is there a receive for a message of that length, when `bound` receives are spoken for?  What VIA punishes is judged when
 * everything before has arrived.  A receive that may take a pool buffer gets one now if it will need it.
 */
enum nic_rx_room nic_rx_room(struct nic *nic, uint32_t vi, uint32_t len, uint32_t bound, uint32_t *buffer)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct arrival a = { .ctx = ctx, .vi = vi };
	const struct nic_rxe *e = &nic->slot->rxq[vi][(ctx->rx_head + bound) & (NIC_RXQ - 1)];

	if (bound == 0 && !match(nic, &a))
		return NIC_RX_REJECTED;
	if (ctx->rx_head + bound == ctx->rx_tail || e->status)
		return NIC_RX_WAIT;
	if (len <= e->room)
		return NIC_RX_ROOM;
	if ((e->control & NIC_CTL_POOL) && len <= NIC_BUFFER_SIZE)
		return nic_buffer_take(nic, buffer) ? NIC_RX_ROOM : NIC_RX_WAIT;
	if (bound)
		return NIC_RX_WAIT;
	too_long(nic, &a);
	return NIC_RX_REJECTED;
}

/* Is the peer's end of the VI the one that it was? */
bool nic_rx_still_up(struct nic *nic, struct nic_link *link, uint32_t vi)
{
	struct arrival a = { .link = link, .ctx = nic_vi(nic, vi) };

	return still_up(&a);
}

/* Is the receive at the head still one for a message of that length?  A peer that breaks the order may have used it up. */
bool nic_rx_ready(struct nic *nic, uint32_t vi, uint32_t len, bool pooled)
{
	const struct nic_rxe *e = rx_head(nic, vi, nic_vi(nic, vi));

	return e && !e->status && (pooled ? (e->control & NIC_CTL_POOL) != 0 : len <= e->room);
}

/* Into the receive at the head. */
void nic_rx_scatter(struct nic *nic, uint32_t vi, uint32_t from, const uint8_t *data, uint32_t len)
{
	scatter(nic, NULL, rx_head(nic, vi, nic_vi(nic, vi)), from, data, len);
}

/* The receive at the head is complete; buffer: pool buffer that has the message, or UINT32_MAX. */
void nic_rx_done(struct nic *nic, uint32_t vi, uint32_t flags, uint32_t len, uint32_t imm, uint32_t buffer)
{
	struct arrival a = { .ctx = nic_vi(nic, vi), .vi = vi, .flags = flags };
	uint32_t pool = 0;

	if (buffer != UINT32_MAX) {
		struct nic_desc *desc = nic_host(rx_head(nic, vi, a.ctx)->desc);

		desc->seg[1].addr = nic_host_bus(nic, nic_buffer(nic, buffer));
		desc->seg[1].handle = NIC_POOL_HANDLE;
		desc->seg[1].length = len;
		pool = NIC_ST_POOL;
	}
	pop(nic, vi, a.ctx, success(&a, NIC_ST_OP_RECEIVE) | pool, len, imm);
	acknowledge(nic, &a);
}

/*
 * Cut-through: a message of one cell for a VI that is up, with a good receive at the head that it fits into.  The same checks
 * as by way of dispatch, which judges whatever is not so.
 */
static inline bool cut(struct nic *nic, const struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len_flags = p->len_flags, len = len_flags & NIC_PF_LEN, vi = p->vi & (NIC_VI_TABLE - 1);
	struct nic_vi_ctx *ctx = &nic->slot->vi[vi];
	struct nic_rxe *e = &nic->slot->rxq[vi][ctx->rx_head & (NIC_RXQ - 1)];

	if (nic_unlikely(p->op != NIC_OP_SEND || nic_vi_state(ctx) != NIC_VI_CONNECTED || ctx->gen != p->gen || ctx->peer_slot != link->peer ||
	                 (len_flags & (NIC_PF_ACK | NIC_PF_MORE)) || ctx->rx_head == ctx->rx_tail || ctx->rx_bad || e->nseg != 1 ||
	                 len > NIC_PAYLOAD || len > e->room))
		return false;
	nic_host_write_short(nic, e->addr, p->data, len);
	pop(nic, vi, ctx, NIC_ST_OP_RECEIVE | (len_flags & NIC_PF_IMM ? NIC_ST_IMMEDIATE : 0), len, p->imm);
	return true;
}

static nic_noinline void whole(struct nic *nic, struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len_flags = p->len_flags;
	struct arrival a = { .link = link, .p = p, .vi = p->vi & (NIC_VI_TABLE - 1), .op = p->op, .gen = p->gen,
		.flags = len_flags & ~NIC_PF_LEN, .len = len_flags & NIC_PF_LEN, .imm = p->imm };

	dispatch(nic, &a);
}

/* Does this packet wait on the link until the consumer gives buffers back?  One that is not of this life of the VI, or finds a bad receive, is judged at once. */
static bool waits(struct nic *nic, const struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len = p->len_flags & NIC_PF_LEN, vi = p->vi & (NIC_VI_TABLE - 1);
	const struct nic_vi_ctx *ctx = &nic->slot->vi[vi];
	const struct nic_rxe *e = rx_head(nic, vi, ctx);

	if (p->op != NIC_OP_SEND || nic_vi_state(ctx) != NIC_VI_CONNECTED || ctx->gen != p->gen || ctx->peer_slot != link->peer || ctx->rx_bad)
		return false;
	return e && wants_buffer(e, len) && !nic_buffer_any(nic);
}

/* Cells of the next packet; what cannot be one is judged by dispatch. */
static inline uint32_t cells_of(const struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len = p->len_flags & NIC_PF_LEN;

	if (nic_likely(p->op == NIC_OP_SEND))
		return nic_likely(len <= NIC_PAYLOAD || len > NIC_INLINE_MAX) ? 1 : nic_packet_cells(len);
	return nic_unlikely(p->op == NIC_OP_SKIP) ? nic_ring_rest(link->rx_pos) : 1;
}

/* With `taker`, who may take messages by value, up to the next one. */
static inline struct nic_packet *next_of(struct nic_link *link, bool taker)
{
	struct nic_packet *p = nic_link_peek(link);

	return p && !(taker && (p->op == NIC_OP_SEND || p->op == NIC_OP_SEND_BUF)) ? p : NULL;
}

int nic_rx_run(struct nic *nic, struct nic_link *link, struct nic_packet *p, int budget, bool taker)
{
	int n = 0;

	do {
		uint32_t cells = cells_of(link, p);

		nic_link_take(link, cells);
		if (nic_unlikely(!cut(nic, link, p))) {
			if (nic_unlikely(waits(nic, link, p))) {
				nic_link_take(link, 0);
				break;
			}
			whole(nic, link, p);
		}
		nic_link_consume(link, cells);
		n++;
	} while (n < budget && (p = next_of(link, taker)));
	nic_count(nic, packets_received, n);
	if (nic_unlikely(link->balance > link->keeps))
		nic_buffer_balance(nic, link);
	return n;
}

/* Everything that has arrived, one ring at most. */
int nic_rx_drain(struct nic *nic, struct nic_link *link)
{
	struct nic_packet *p = nic_link_peek(link);

	return p ? nic_rx_run(nic, link, p, NIC_RING_CELLS, false) : 0;
}
