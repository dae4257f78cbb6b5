/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program, sending side: executes the descriptors of a VI's send queue in order.
 *
 * tx_head .. tx_next are executed and not complete (they wait for an acknowledgement or an answer), tx_next .. tx_tail
 * are still to be executed.  Descriptors complete in order, from tx_head.  A message that needs several packets keeps its
 * place in `done` and goes on when the link has room again.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/util/copy.h"

/* ---- completion -------------------------------------------------------------------------------------------------- */

static nic_cold void release_buffer(struct nic *nic, const struct nic_desc *desc)
{
	uint64_t off = desc->seg[0].addr - nic_host_pool(nic);

	if (desc->nseg == 1 && off < sizeof(nic->map->buffer))
		nic_buffer_give(nic, off / NIC_BUFFER_SIZE);
}

/* Status before completion entry [C1]; after the store of status the descriptor is the consumer's. */
static inline void complete(struct nic *nic, struct nic_vi_ctx *ctx, struct nic_desc *desc, uint32_t status, uint32_t length)
{
	static const uint32_t op_bits[4] = { NIC_ST_OP_SEND, NIC_ST_OP_RDMA_WRITE, NIC_ST_OP_RDMA_READ, NIC_ST_OP_SEND };

	nic_count(nic, send_descriptors, 1);
	if (nic_unlikely(status & NIC_ST_ERROR_MASK)) {
		nic_count(nic, flushed, (status & NIC_ST_FLUSHED) != 0);
		nic_count(nic, descriptor_errors, (status & NIC_ST_FLUSHED) == 0);
	}
	desc->length = length;
	nic_store_release(&desc->status, status | NIC_ST_DONE | op_bits[desc->control & NIC_CTL_OP_MASK]); /* pairs with the consumer's acquire */
	if (ctx->send_cq && !nic_cq_publish(nic_host(ctx->send_cq), ctx->cookie))
		nic_event(nic, NIC_EV_VI_OVERRUN, ctx->cookie, 0, NIC_ST_OP_SEND);
}

static inline void count_fetch(struct nic_vi_ctx *ctx, uint32_t status)
{
	ctx->fetch_failed = ctx->fetch_failed ? ctx->fetch_failed : status;
	ctx->fetched += !ctx->fetch_failed;
}

static void retire(struct nic *nic, uint32_t vi, struct nic_vi_ctx *ctx)
{
	while (ctx->tx_head != ctx->tx_next) {
		struct nic_txe *e = &nic->slot->txq[vi][ctx->tx_head & (NIC_TXQ - 1)];
		struct nic_desc *desc = nic_host(e->desc);

		if (e->flags & (NIC_TXE_WAIT | NIC_TXE_QUEUED))
			break;
		ctx->tx_head++;
		if (nic_unlikely(e->flags & (NIC_TXE_POSTED | NIC_TXE_FETCH))) {
			if (e->flags & NIC_TXE_FETCH)
				count_fetch(ctx, e->status);
			continue;
		}
		if (nic_unlikely((desc->control & NIC_CTL_POOL) && !(e->flags & NIC_TXE_GIVEN)))
			release_buffer(nic, desc);
		complete(nic, ctx, desc, e->status, (uint32_t)e->done);
	}
	if (nic_unlikely(ctx->tx_spilled))
		nic->arch->post->refill(nic, vi);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static uint32_t check(const struct nic_vi_ctx *ctx, struct nic_desc *desc, struct work *w)
{
	uint64_t total = 0;
	uint32_t first;

	w->desc = desc;
	w->control = desc->control;
	w->op = w->control & NIC_CTL_OP_MASK;
	first = w->op != NIC_CTL_SEND;
	w->nseg = desc->nseg;
	if (nic_unlikely((w->control & NIC_CTL_RESERVED) || w->op == NIC_CTL_OP_MASK || desc->reserved || w->nseg > NIC_DESC_SEGS_MAX ||
	                 w->nseg < first || (first && desc->seg[0].length)))
		return NIC_ST_FORMAT;
	if (nic_unlikely((w->control & NIC_CTL_POOL) && (first || w->nseg != 1)))
		return NIC_ST_FORMAT;
	w->seg = desc->seg + first;
	w->nseg -= first;
	for (uint32_t i = 0; i < w->nseg; i++)
		total += w->seg[i].length;
	if (nic_unlikely(total != desc->length || total > ctx->max_transfer))
		return NIC_ST_LENGTH;
	w->total = total;
	return 0;
}

static uint32_t check_pool(const struct nic *nic, const struct nic_seg *seg)
{
	uint64_t off = seg->addr - nic_host_pool(nic);

	if (seg->handle != NIC_POOL_HANDLE || off >= sizeof(nic->map->buffer) || off % NIC_BUFFER_SIZE + seg->length > NIC_BUFFER_SIZE)
		return NIC_ST_PROTECTION;
	return 0;
}

static bool gather(struct nic *nic, const struct nic_vi_ctx *ctx, const struct work *w, uint64_t from, uint32_t len, uint8_t *to)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < w->nseg && at < len; i++) {
		uint64_t room = w->seg[i].length;
		uint32_t part;
		const void *p;

		if (from >= room) {
			from -= room;
			continue;
		}
		part = room - from < len - at ? room - from : len - at;
		p = nic->arch->xlate->map(nic, ctx->ptag, &w->seg[i], from, part);
		if (nic_unlikely(!p))
			return false;
		nic_host_read(nic, to + at, (uintptr_t)p, part);
		if (nic_host_lost(nic))
			return false;
		at += part;
		from = 0;
	}
	return true;
}

nic_cold enum step nic_tx_refuse(struct nic *nic, struct nic_txe *e, uint32_t error)
{
	if (error & (NIC_ST_PROTECTION | NIC_ST_RDMA_PROT))
		nic_count(nic, protection_errors, 1);
	e->status = error;
	return STEP_ERROR;
}

/* ---- send -------------------------------------------------------------------------------------------------------- */

static enum step finish(struct nic_txe *e, const struct work *w, uint32_t flags)
{
	e->done = w->total;
	return flags & NIC_PF_ACK ? STEP_WAIT : STEP_DONE;
}

static enum step send_inline(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	uint32_t flags = nic_tx_flags(ctx, w), cells = nic_packet_cells(w->total);
	struct nic_packet *p = nic_tx_room_for(nic, ctx, link, cells);
	uint8_t copy[NIC_PAYLOAD_MAX];
	struct nic_filling f;

	if (nic_unlikely(!p))
		return STEP_AGAIN;
	f = nic_filling_of(link, p);
	for (uint32_t i = 0; i < w->nseg; i++) {
		const void *from = nic->arch->xlate->map(nic, ctx->ptag, &w->seg[i], 0, w->seg[i].length);

		if (nic_unlikely(!from && w->seg[i].length))
			return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
		nic_fill(&f, nic_host_view(nic, (uintptr_t)from, w->seg[i].length, copy), w->seg[i].length);
	}
	if (nic_host_lost(nic))
		return STEP_AGAIN;
	nic_tx_head(p, ctx, NIC_OP_SEND, w->total | flags, w->desc->imm);
	nic_count(nic, packets_sent, 1);
	nic_link_publish(link, p, cells);
	nic_count(nic, bytes_inline, w->total);
	return finish(e, w, flags);
}

/* The consumer's buffer changes hands: no copy. */
static enum step send_given(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	uint64_t off = w->seg[0].addr - nic_host_pool(nic);
	uint32_t flags = nic_tx_flags(ctx, w);
	struct nic_packet *p = nic_tx_room(nic, ctx, link);

	if (nic_unlikely(!p))
		return STEP_AGAIN;
	nic_tx_publish_buffer(nic, ctx, link, p, off, w->total | flags, w->desc->imm);
	e->flags |= NIC_TXE_GIVEN;
	nic_count(nic, bytes_given, w->total);
	return finish(e, w, flags);
}

/* One packet's worth of the message into a buffer and onto the link, from e->done on. */
static enum step send_part(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w,
                           enum nic_op op, uint32_t flags)
{
	uint32_t left = w->total - e->done, len = left < NIC_BUFFER_SIZE ? left : NIC_BUFFER_SIZE, index;
	struct nic_packet *p = nic_tx_room(nic, ctx, link);

	if (!p || !nic_buffer_take(nic, &index))
		return STEP_AGAIN;
	if (!gather(nic, ctx, w, e->done, len, nic_buffer(nic, index))) {
		nic_buffer_give(nic, index);
		return nic_host_lost(nic) ? STEP_AGAIN : nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
	}
	p->buf.buffer = index;
	p->buf.handle = op == NIC_OP_WRITE_BUF ? w->desc->seg[0].handle : 0;
	p->buf.addr = op == NIC_OP_WRITE_BUF ? w->desc->seg[0].addr + e->done : 0;
	if (len < left)
		flags = (flags & ~NIC_PF_ACK) | NIC_PF_MORE;
	nic_tx_head(p, ctx, op, len | flags, w->desc->imm);
	nic_tx_publish(nic, link, p);
	link->balance--;
	e->done += len;
	return len < left ? STEP_AGAIN : flags & NIC_PF_ACK ? STEP_WAIT : STEP_DONE;
}

nic_noinline enum step nic_tx_parts(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w,
                                   enum nic_op op, uint32_t flags)
{
	enum step step;
	uint64_t before;

	do {
		before = e->done;
		step = send_part(nic, ctx, link, e, w, op, flags);
		if (op == NIC_OP_SEND_BUF)
			nic_count(nic, bytes_buffer, e->done - before);
		else
			nic_count(nic, bytes_write_buffer, e->done - before);
	} while (step == STEP_AGAIN && e->done != before);
	return step;
}

/* The payload stays; the receiver's NIC copies it and acknowledges. */
static nic_noinline enum step send_pull(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	struct nic_packet *p = nic_tx_room(nic, ctx, link);

	if (!p)
		return STEP_AGAIN;
	p->pull.nruns = w->nseg;
	p->pull.pad = 0;
	for (uint32_t i = 0; i < w->nseg; i++) {
		if (!nic->arch->xlate->map(nic, ctx->ptag, &w->seg[i], 0, w->seg[i].length))
			return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
		p->pull.run[i].addr = w->seg[i].addr;
		p->pull.run[i].len = w->seg[i].length;
	}
	nic_tx_head(p, ctx, NIC_OP_SEND_PULL, w->total | nic_tx_flags(ctx, w) | NIC_PF_ACK, w->desc->imm);
	nic_tx_publish(nic, link, p);
	e->done = w->total;
	return STEP_WAIT;
}

/* To the scheduling queue of a NIC that asks before it sends; all segments are the consumer's to send. */
static nic_noinline enum step send_queued(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_txe *e, const struct work *w)
{
	for (uint32_t i = 0; i < w->nseg; i++)
		if (w->seg[i].length && !nic->arch->xlate->map(nic, ctx->ptag, &w->seg[i], 0, w->seg[i].length))
			return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
	return nic->arch->flow->admit(nic, (uint32_t)(ctx - nic->slot->vi), e, nic_tx_flags(ctx, w)) ? STEP_DONE : STEP_AGAIN;
}

static enum step do_send(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	if (w->control & NIC_CTL_POOL) {
		uint32_t error = check_pool(nic, w->seg);

		if (nic_unlikely(error))
			return nic_tx_refuse(nic, e, error);
		if (w->total > NIC_PAYLOAD && !nic->arch->flow->admit)
			return send_given(nic, ctx, link, e, w);
	}
	if (nic->arch->flow->admit)
		return send_queued(nic, ctx, e, w);
	if (nic_likely(w->total <= NIC_INLINE_MAX))
		return send_inline(nic, ctx, link, e, w);
	if (w->total >= nic->arch->pull_min && w->nseg <= 2 && e->done == 0 && nic_tx_peer_pulls(nic, link))
		return send_pull(nic, ctx, link, e, w);
	return nic_tx_parts(nic, ctx, link, e, w, NIC_OP_SEND_BUF, nic_tx_flags(ctx, w));
}

/*
 * Cut-through: a plain send of one segment that fits one cell or a given buffer and needs no acknowledgement, on an empty
 * queue.  The same checks in the same order as by way of the queue; whatever is not right goes that way, to be judged there.
 */
bool nic_tx_cut(struct nic *nic, struct nic_vi_ctx *ctx, struct nic_desc *desc)
{
	const struct nic_seg *seg = &desc->seg[0];
	uint32_t len = seg->length, control = desc->control, flags = control & NIC_CTL_IMMEDIATE ? NIC_PF_IMM : 0;
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	uint8_t copy[NIC_PAYLOAD];
	struct nic_packet *p;
	const void *from;

	if (nic_unlikely(nic_vi_state(ctx) != NIC_VI_CONNECTED || (control & ~(NIC_CTL_IMMEDIATE | NIC_CTL_QFENCE | NIC_CTL_POOL)) ||
	                 desc->nseg != 1 || desc->reserved || len != desc->length || len > ctx->max_transfer ||
	                 ctx->reliability == NIC_RELIABLE_RECEPTION))
		return false;
	if (len <= NIC_PAYLOAD) {
		from = nic->arch->xlate->map(nic, ctx->ptag, seg, 0, len);
		if (nic_unlikely(!from || (control & NIC_CTL_POOL)))
			return false;
		p = nic_tx_room(nic, ctx, link);
		if (nic_unlikely(!p))
			return false;
		nic_copy_short(p->data, nic_host_view(nic, (uintptr_t)from, len, copy), len);
		if (nic_host_lost(nic))
			return false;
		nic_tx_head(p, ctx, NIC_OP_SEND, len | flags, desc->imm);
		nic_tx_publish(nic, link, p);
		nic_count(nic, bytes_inline, len);
	} else {
		uint64_t off = seg->addr - nic_host_pool(nic);

		if (!(control & NIC_CTL_POOL) || check_pool(nic, seg))
			return false;
		p = nic_tx_room(nic, ctx, link);
		if (nic_unlikely(!p))
			return false;
		nic_tx_publish_buffer(nic, ctx, link, p, off, len | flags, desc->imm);
		nic_count(nic, bytes_given, len);
	}
	complete(nic, ctx, desc, 0, len);
	return true;
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static enum step execute(struct nic *nic, uint32_t vi, const struct nic_vi_ctx *ctx, struct nic_txe *e)
{
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	struct work w;
	uint32_t error = check(ctx, nic_host(e->desc), &w);

	if (nic_unlikely(error))
		return nic_tx_refuse(nic, e, error);
	if (nic_likely(w.op == NIC_CTL_SEND))
		return do_send(nic, ctx, link, e, &w);
	if (nic_unlikely(ctx->queued)) /* sends before it have not left */
		return STEP_AGAIN;
	return w.op == NIC_CTL_RDMA_WRITE ? nic_rdma_write(nic, vi, link, e, &w) : nic_rdma_read(nic, vi, link, e, &w);
}

/* A descriptor in error on a reliable VI stops its queue; the status tells why, an event only that the peer is gone. */
static nic_cold void failed(struct nic *nic, uint32_t vi, struct nic_vi_ctx *ctx, uint32_t status)
{
	retire(nic, vi, ctx);
	if (ctx->reliability != NIC_UNRELIABLE)
		nic_vi_fail(nic, vi, status & NIC_ST_TRANSPORT ? (int)NIC_EV_CONN_LOST : NIC_EV_NONE, 0);
}

/* A descriptor that has to wait for those before it which the peer's NIC was asked to help with. */
static nic_noinline bool fenced(const struct nic_vi_ctx *ctx, const struct nic_txe *e)
{
	const struct nic_desc *desc = nic_host(e->desc);

	if (desc->control & NIC_CTL_QFENCE)
		return true;
	/* What the peer is to see after a write: the write's data come first. */
	return ctx->writes && ((desc->control & NIC_CTL_OP_MASK) != NIC_CTL_RDMA_WRITE || (desc->control & NIC_CTL_IMMEDIATE));
}

int nic_tx_run(struct nic *nic, uint32_t vi, int budget)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	int moved = 0;

	if (nic_unlikely(nic_vi_state(ctx) != NIC_VI_CONNECTED)) {
		moved = ctx->tx_tail - ctx->tx_head;
		nic_vi_flush_sends(nic, vi);
		return moved;
	}
	if (nic_unlikely(ctx->acks_owed)) {
		nic_sys_ack(nic, vi, 0);
		moved += ctx->acks_owed == 0;
	}
	while (moved < budget && ctx->tx_next != ctx->tx_tail) {
		struct nic_txe *e = &nic->slot->txq[vi][ctx->tx_next & (NIC_TXQ - 1)];
		enum step step;

		if (nic_unlikely(ctx->reads | ctx->writes) && fenced(ctx, e))
			break;
		step = execute(nic, vi, ctx, e);
		if (step == STEP_AGAIN)
			break;
		if (step == STEP_WAIT)
			e->flags |= NIC_TXE_WAIT;
		ctx->tx_next++;
		moved++;
		if (nic_unlikely(step == STEP_ERROR)) {
			failed(nic, vi, ctx, e->status);
			break;
		}
		retire(nic, vi, ctx);
	}
	return moved;
}

/* Every waiting VI once; those that still have work stay on the list, in their order. */
int nic_tx_pending(struct nic *nic)
{
	uint32_t n = nic->npending, kept = 0;
	int moved = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t vi = nic->pending[i];
		struct nic_vi_ctx *ctx = nic_vi(nic, vi);

		moved += nic_tx_run(nic, vi, NIC_POLL_VI);
		if (ctx->tx_next != ctx->tx_tail || ctx->tx_spilled || ctx->acks_owed)
			nic->pending[kept++] = vi;
		else
			ctx->pending = 0;
	}
	for (uint32_t i = n; i < nic->npending; i++)
		nic->pending[kept++] = nic->pending[i];
	nic->nwork -= nic->npending - kept;
	nic->npending = kept;
	return moved;
}

void nic_tx_acknowledge(struct nic *nic, uint32_t vi, uint32_t count, uint32_t error)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	for (uint32_t i = ctx->tx_head; i != ctx->tx_next && count; i++) {
		struct nic_txe *e = &nic->slot->txq[vi][i & (NIC_TXQ - 1)];

		if ((e->flags & (NIC_TXE_WAIT | NIC_TXE_ASKED)) != NIC_TXE_WAIT)
			continue;
		e->flags &= ~NIC_TXE_WAIT;
		e->status |= error;
		count--;
	}
	retire(nic, vi, ctx);
	if (ctx->tx_next != ctx->tx_tail) /* room came, and with it work from the host's chain */
		nic_vi_schedule(nic, vi);
}

void nic_tx_done(struct nic *nic, uint32_t vi, uint32_t pos, uint32_t error)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_txe *e = &nic->slot->txq[vi][pos & (NIC_TXQ - 1)];

	e->flags &= ~(NIC_TXE_WAIT | NIC_TXE_ASKED);
	e->status |= error;
	if (nic_unlikely(error)) {
		nic_tx_refuse(nic, e, error);
		failed(nic, vi, ctx, error);
		return;
	}
	retire(nic, vi, ctx);
	if (ctx->tx_next != ctx->tx_tail)
		nic_vi_schedule(nic, vi);
}

/* A send of the scheduling queue has left, or will not: then status says why. */
void nic_tx_finish(struct nic *nic, uint32_t vi, struct nic_txe *e, uint32_t status, uint64_t done)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	e->flags &= ~NIC_TXE_QUEUED;
	e->done = status ? 0 : done;
	if (status) {
		e->flags &= ~NIC_TXE_WAIT;
		e->status = e->status ? e->status : status;
	}
	retire(nic, vi, ctx);
	if (ctx->tx_next != ctx->tx_tail)
		nic_vi_schedule(nic, vi);
}

/* Bytes of a descriptor that is in the scheduling queue. */
void nic_tx_gather(struct nic *nic, uint32_t vi, struct nic_desc *desc, uint32_t from, uint32_t len, uint8_t *to)
{
	struct work w = { .desc = desc, .seg = desc->seg, .nseg = desc->nseg };

	if (nic_unlikely(!gather(nic, nic_vi(nic, vi), &w, from, len, to)))
		memset(to, 0, len); /* deregistered meanwhile; nothing of others leaves in its place */
}

int nic_post_send(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	nic->arch->post->send(nic, vi, desc);
	return NIC_OK;
}

int nic_poll(struct nic *nic)
{
	return nic->engine->poll(nic);
}

uint32_t nic_take(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	return nic->engine->take(nic, cq, out);
}
