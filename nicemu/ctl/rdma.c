/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory.  RDMA descriptors of a send queue, which tx.c hands over one by one, and RDMA commands.
 *
 * There are three ways, and `how` chooses:
 *   alone   this NIC copies everything, in one step (cross-memory attach);
 *   halves  this NIC copies the first half, the NIC at the other end the second one, at the same time;
 *   stream  of a read: the other NIC sends the data in buffers, or puts them beside the claim if they are short, and this one takes
 *           them out.  Of a write: this one sends them, the other one puts them in place.  Two copies, but both ends are at work, and
 *           no system call.
 * Alone is done while the descriptor is posted, or in the command, without one.  For the other two the NIC at the other end is
 * asked to take part (rdma_ask.c); what it does then is rdma_serve.c.
 *
 * Protection.  Each NIC asks its own table about its own memory, at the time of the copy; the initiator looks at the
 * target's as well before it touches anything there.
 */
#include "nicemu/ctl/rdma.h"

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/engine/clock.h"
#include "nicemu/engine/dma.h"

enum {
	SENT_ALWAYS = 64 << 10, /* bytes of a message that is sent, where it is to be, whatever its sender did lately */
	TRIED_ALWAYS = 1024,    /* bytes of a transfer that races even where a try of the other NIC waits for its turn on a processor */
};

unsigned nic_rdma_pieces(struct nic *nic, const struct nic_vi_ctx *ctx, const struct work *w, uint64_t from, uint64_t len, struct iovec *out)
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

/* ---- copies in one step ------------------------------------------------------------------------------------------ */

/* Between these pieces of this process's memory and the peer's; 0 or NIC_ST_*. */
static uint32_t dma(struct nic *nic, struct nic_link *link, uint32_t op, const struct iovec *local, unsigned n, uint64_t remote, uint32_t len)
{
	enum nic_dma r;

	if (op == NIC_CTL_RDMA_READ) {
		r = nic_dma_read(nic, link, local, n, remote, len);
		nic_count(nic, bytes_read, r == NIC_DMA_OK ? len : 0);
	} else {
		r = nic_dma_write(nic, link, local, n, remote, len);
		nic_count(nic, bytes_write, r == NIC_DMA_OK ? len : 0);
	}
	return r == NIC_DMA_OK ? 0 : r == NIC_DMA_FAULT ? NIC_ST_RDMA_PROT : NIC_ST_TRANSPORT;
}

uint32_t nic_rdma_copy(struct nic *nic, struct nic_link *link, const struct work *w, const struct iovec *local, unsigned n, uint32_t from, uint32_t len)
{
	return dma(nic, link, w->op, local, n, w->desc->seg[0].addr + from, len);
}

uint32_t nic_rdma_move(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, const struct work *w, uint32_t from, uint32_t len)
{
	struct iovec local[NIC_DESC_SEGS_MAX];
	unsigned n = nic_rdma_pieces(nic, ctx, w, from, len, local);

	if (!len)
		return 0;
	return n ? nic_rdma_copy(nic, link, w, local, n, from, len) : NIC_ST_PROTECTION;
}

/* ---- the ways ---------------------------------------------------------------------------------------------------- */

/* Has the peer looked at nothing since it was found absent? */
static bool absent(struct nic_link *link)
{
	if (nic_likely(!link->absent))
		return false;
	link->absent = nic_load_relaxed(&link->asked->seen) == link->absent_seen; /* a hint: any recent value will do */
	return link->absent;
}

/* Is the next transfer one of many?  Others are under way, or the host has begun one and has not looked at its NIC since. */
static inline bool in_a_row(const struct nic *nic, const struct nic_link *link)
{
	return nic->polls + nic->looks == link->looks || link->ask_head != link->ask_tail;
}

static inline void begun(const struct nic *nic, struct nic_link *link)
{
	link->looks = nic->polls + nic->looks;
}

/* The same of halves; what is done alone counts, too, for how long ago the peer has asked. */
static bool half_in_doubt(struct nic_link *link)
{
	if (!nic_in_doubt(&link->half))
		return false;
	link->mutual -= link->mutual != 0;
	return true;
}

/* A message that is read was not to be sent, and other reads go as rows of them have been faster. */
static bool is_read(const struct nic_link *link, uint32_t total)
{
	return total >= NIC_ROW_FROM && (link->row.open > link->row.own || nic_row_reads(link->row.reads, total, NIC_ROW_MANY));
}

/* Does a transfer of so many bytes, not none, go in packets, if the peer is there?  A single one that is not long only where that is the faster way. */
static bool in_packets(const struct nic *nic, struct nic_link *link, uint32_t op, uint32_t total)
{
	bool row = in_a_row(nic, link), write = op == NIC_CTL_RDMA_WRITE, raced = !row && nic_link_brief_races(link, write, total);

	if (nic->waiting.crowded && link->impatient && !(raced && total <= TRIED_ALWAYS)) /* the peer's turn comes when this process waits */
		return false;
	if (raced && !nic_dma_brief(link, write, total))
		return false;
	if (op == NIC_CTL_RDMA_READ)
		return total <= link->get_max ? !nic_in_doubt(&link->get) :
		                                raced || (total <= (row ? link->stream_busy : link->stream_max) && !is_read(link, total));
	return (raced || total <= (row ? link->put_busy : link->put_max)) && !(row && nic_row_reads(link->row.reads, total, NIC_ROW_PUT)) && !nic_in_doubt(&link->put);
}

/* A packet that asks for nothing. */
static inline bool idle(const struct nic_packet *p)
{
	return p->op == NIC_OP_RETURN || p->op == NIC_OP_SKIP;
}

/*
 * Is it one at a time?  What lies on the link may ask for the next one: how long this one takes then says little of how many go through.
 */
static inline bool is_single(const struct nic *nic, const struct nic_link *link)
{
	return !in_a_row(nic, link) && (!nic_link_any(link) || idle(&link->rx[link->rx_pos & (NIC_RING_CELLS - 1)]));
}

/* Do the ways of single transfers of so many bytes race? */
static inline bool races(const struct nic_link *link, bool write, uint32_t total)
{
	return nic_link_half_races(link, total) || nic_link_races(link, total) || nic_link_brief_races(link, write, total);
}

/* Of such a transfer that is single, and that could go either way: is it timed? */
static inline bool is_timed(struct nic_link *link, bool write, uint32_t total)
{
	return !nic_link_brief_races(link, write, total) || nic_dma_brief_due(link, write, total);
}

/*
 * Is a transfer of so many bytes worth asking the peer for a half of it?  Of a write in a row, it has been asked before.  Of a message that is read not
 * while others are sent: the peer reads those.
 */
static inline bool in_halves(const struct nic *nic, const struct nic_link *link, uint32_t op, uint32_t total)
{
	bool write = op == NIC_CTL_RDMA_WRITE;

	if (nic_link_half_races(link, total) && is_single(nic, link))
		return nic_dma_halves(link, write, total);
	if (!write)
		return total >= link->half_min && !nic_row_mutual(link, total);
	return total >= link->half_min || (total >= link->half_row && in_a_row(nic, link));
}

/* Is a transfer that begins now timed as one of many? */
static inline bool is_in_row(const struct nic *nic, struct nic_link *link, bool write, uint64_t remote, uint32_t total)
{
	return total >= NIC_ROW_FROM && in_a_row(nic, link) && nic_row_has(nic, link, write, remote, total);
}

/* Does it depend on the times whether such a transfer is a stream?  Where it would be one anyway, from the first on; nowhere where processes share a core. */
static inline bool streams_raced(const struct nic *nic, const struct nic_link *link, bool write, uint32_t total)
{
	return nic_link_races(link, total) && !nic->waiting.crowded && (!link->stream_later || total <= (write ? link->put_max : link->stream_max)) && is_single(nic, link);
}

/* Is a transfer of so many bytes, not none, a stream, if the peer is there? */
static inline bool as_stream(const struct nic *nic, struct nic_link *link, uint32_t op, uint32_t total)
{
	bool write = op == NIC_CTL_RDMA_WRITE;

	return streams_raced(nic, link, write, total) ? nic_dma_streams(link, write, total) : in_packets(nic, link, op, total);
}

static enum nic_way how(const struct nic *nic, struct nic_link *link, const struct work *w)
{
	bool write = w->op == NIC_CTL_RDMA_WRITE, imm = write && (w->control & NIC_CTL_IMMEDIATE), packets, halves;

	link->raced = false;
	if (nic_dma_plain(link, w->desc->seg[0].addr, w->total)) /* as fast as can be, and both ends may be at it */
		return NIC_ALONE;
	if (!link->cma)
		return NIC_STREAM;
	link->raced = races(link, write, w->total) && !imm && is_single(nic, link) && is_timed(link, write, w->total);
	packets = w->total && !imm && as_stream(nic, link, w->op, w->total);
	halves = in_halves(nic, link, w->op, w->total);
	begun(nic, link);
	if (absent(link) || !nic_link_reserve(link, NIC_RING_RESERVE + NIC_PUT_PARTS - 1))
		return NIC_ALONE; /* there is nobody to ask, or no room for it */
	if (link->ask_tail - link->ask_head >= NIC_CLAIMS)
		return packets ? NIC_LATER : NIC_ALONE;
	if (packets)
		return NIC_STREAM;
	if (halves && w->nseg == 1 && !(w->control & NIC_CTL_IMMEDIATE) && nic_ask_half_of(w) && nic_tx_peer_pulls(nic, link) &&
	    !half_in_doubt(link))
		return NIC_HALVES;
	return NIC_ALONE;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

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
	uint32_t flags = nic_tx_flags(ctx, w) | ack;

	nic_tx_head(p, ctx, NIC_OP_WRITE_IMM, w->total | flags, w->desc->imm);
	nic_tx_publish(nic, link, p);
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
	p = nic_tx_room(nic, ctx, link);
	return p ? write_imm(nic, ctx, link, e, w, p, ack) : STEP_AGAIN;
}

/* All of it, alone. */
static uint32_t copy_timed(struct nic *nic, struct nic_link *link, const struct work *w, const struct iovec *local, unsigned n)
{
	bool timed = link->in_row;
	uint32_t error;

	if (timed)
		nic_row_begins(nic, link);
	error = nic_rdma_copy(nic, link, w, local, n, 0, w->total);
	if (timed)
		nic_row_over(nic, link, w->op == NIC_CTL_RDMA_WRITE, w->total, true, !error);
	return error;
}

nic_noinline enum step nic_rdma_write(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	const struct nic_seg *remote = &w->desc->seg[0];
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct iovec local[NIC_DESC_SEGS_MAX];
	struct nic_packet *p = NULL;
	uint32_t error;
	struct nic_doubt put = link->put, half = link->half;
	uint32_t mutual = link->mutual;
	uint64_t began;
	enum step step;
	unsigned n = 0;
	enum nic_way way;

	if (e->done == 0 && w->total &&
	    !nic_remote_check(link->slot, ctx->peer_vi, remote->addr, w->total, remote->handle, NIC_MEM_RDMA_WRITE))
		return rdma_refused(nic, ctx, e, w);
	/* All of it is looked at before the first part leaves: a write that is refused writes nothing. */
	if (e->done == 0 && w->total && !(n = nic_rdma_pieces(nic, ctx, w, 0, w->total, local)))
		return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
	if (!link->cma && !nic_dma_plain(link, remote->addr, w->total))
		return write_parts(nic, ctx, link, e, w);
	link->in_row = !(w->control & NIC_CTL_IMMEDIATE) && is_in_row(nic, link, true, remote->addr, w->total);
	way = how(nic, link, w);
	if (nic_unlikely(way == NIC_LATER))
		return STEP_AGAIN;
	if (nic_unlikely(ctx->writes) && nic_ask_meets(nic, link, vi, remote->addr, way == NIC_HALVES ? nic_ask_half_of(w) : w->total, way == NIC_STREAM)) {
		link->put = put; /* not done yet, alone or otherwise */
		link->half = half;
		link->mutual = mutual;
		return STEP_AGAIN;
	}
	if (way == NIC_STREAM) {
		step = nic_put_packets(nic, vi, link, w, local);
		if (nic_likely(step != STEP_AGAIN) || ctx->writes)
			return step; /* else there are no buffers: alone, rather than wait for somebody to give some back, and that is what this way takes */
	}
	if (way == NIC_HALVES)
		return nic_ask_halves(nic, vi, link, e, w, local[0].iov_base);
	if (w->control & NIC_CTL_IMMEDIATE) {
		p = nic_tx_room(nic, ctx, link);
		if (!p)
			return STEP_AGAIN;
	}
	began = link->raced ? nic_dma_start() : 0;
	error = w->total ? copy_timed(nic, link, w, local, n) : 0;
	if (nic_unlikely(error))
		return nic_tx_refuse(nic, e, error);
	if (began)
		nic_dma_took(link, true, w->total, way, began);
	e->done = w->total;
	return p ? write_imm(nic, ctx, link, e, w, p, 0) : STEP_DONE;
}

nic_noinline enum step nic_rdma_read(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w)
{
	const struct nic_seg *remote = &w->desc->seg[0];
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct iovec local[NIC_DESC_SEGS_MAX];
	uint64_t began = 0;
	uint32_t error;
	unsigned n;

	if (!w->total)
		return STEP_DONE;
	if (!nic_remote_check(link->slot, ctx->peer_vi, remote->addr, w->total, remote->handle, NIC_MEM_RDMA_READ))
		return rdma_refused(nic, ctx, e, w);
	n = nic_rdma_pieces(nic, ctx, w, 0, w->total, local);
	if (!n)
		return nic_tx_refuse(nic, e, NIC_ST_PROTECTION);
	link->in_row = is_in_row(nic, link, false, remote->addr, w->total);
	switch (how(nic, link, w)) {
	case NIC_LATER:
		return STEP_AGAIN;
	case NIC_STREAM:
		if (nic_ask_read(nic, vi, link, w))
			return STEP_WAIT;
		if (!link->cma)
			return STEP_AGAIN;
		break;
	case NIC_HALVES:
		return nic_ask_halves(nic, vi, link, e, w, local[0].iov_base);
	case NIC_ALONE:
		began = link->raced ? nic_dma_start() : 0;
		break;
	}
	error = copy_timed(nic, link, w, local, n);
	if (nic_unlikely(error))
		return nic_tx_refuse(nic, e, error);
	if (began)
		nic_dma_took(link, false, w->total, NIC_ALONE, began);
	e->done = w->total;
	return STEP_DONE;
}

/* ---- or none ----------------------------------------------------------------------------------------------------- */

/*
 * A long message needs its sender until all of it has gone, and one that computes meanwhile lets the peer wait, which could have read it alone.
 * So it is seen how often the sender has looked until the next part of it, or of whatever is long, leaves: less than every fifty microseconds of
 * more than a hundred is away.  One that copies parts into memory without pages looks every fifteen.  Nor is it away while it only sends one
 * long message after another, the first part of each: what it has in hand then would take longer to be read.  Who writes them anew in between is,
 * where they would have been read by then: at 8 GB/s, 4 where the processors share no cache and what is read has just been written.
 */
static bool is_away(const struct nic *nic, uint64_t took)
{
	enum { AWAY = 100000, LOOK = 50000 }; /* ns */

	return took >= AWAY && took >= nic->promise.read && nic->looks - nic->promise.looks <= took / LOOK;
}

bool nic_rather_sent(struct nic *nic, uint32_t vi, uint64_t addr, uint64_t len, bool *single)
{
	enum { RATE = 8, RATE_FAR = 4 }; /* bytes in a nanosecond, as above */
	struct nic_link *link = nic->remote ? NULL : nic_rdma_link(nic, vi);
	bool at_once = false;
	uint64_t now;

	if (single) {
		bool is_single = link && nic->polls + nic->looks != link->row.looks;

		at_once = *single && is_single;
		*single = is_single;
	}
	if (!link)
		return false;
	if (single) {
		link->row.looks = nic->polls + nic->looks;
		nic_row_sends(nic, link, len, *single);
	}
	if (len > link->send_max || nic_vi_state(nic_vi(nic, vi)) != NIC_VI_CONNECTED || !nic->arch->post->at_once ||
	    nic->waiting.crowded || addr - (uintptr_t)nic->map < sizeof(struct nic_card_map) + NIC_HEAP_SIZE)
		return false;
	if (single && link->cma && nic_row_reads(nic_load_relaxed(&link->asking->reads), len, *single ? NIC_ROW_SINGLE : NIC_ROW_MANY)) { /* a hint: any recent value will do */
		nic_count(nic, rather_read, 1);
		return false;
	}
	if (len <= SENT_ALWAYS || !link->cma || at_once)
		return true;
	if (single && !*single && nic_row_settled(link) >> nic_row_class(len, NIC_ROW_MANY) & 1) {
		if (nic->promise.to == link->peer + 1)
			nic->promise.to = 0;
		return true;
	}
	now = nic_clock();
	if (nic->promise.to && is_away(nic, nic_clock_since(nic->promise.at, now)))
		nic_promise_kept(nic);
	if (nic_in_doubt(&link->send))
		return false;
	if (!nic->promise.to || nic->looks != nic->promise.looks) /* else the first one has waited, too */
		nic->promise = (struct nic_promise){ .to = link->peer + 1, .looks = nic->looks, .at = now };
	nic->promise.read += len / (nic_row_is_far(link, link->row.ns) ? RATE_FAR : RATE);
	return true;
}

nic_noinline void nic_promise_kept(struct nic *nic)
{
	struct nic_link *link = nic->link[(nic->promise.to - 1) & (NIC_MAX_SLOTS - 1)];
	bool away = is_away(nic, nic_clock_since(nic->promise.at, nic_clock()));

	nic->promise.to = 0;
	if (!link)
		return;
	if (!away) {
		nic_doubt_in_time(&link->send);
		return;
	}
	nic_doubt_late(&link->send);
	nic_count(nic, sent_away, 1);
}

/* ---- in the command ---------------------------------------------------------------------------------------------- */

/* Is all of it for this NIC alone?  By the rules for a descriptor (`how`), but for there being no room to ask. */
static inline bool is_alone(const struct nic *nic, struct nic_link *link, const struct nic_rdma *r)
{
	if (nic_likely(link->cma && ((!in_halves(nic, link, r->op, r->length) && !as_stream(nic, link, r->op, r->length)) || absent(link))))
		return true;
	return nic_dma_plain(link, r->remote, r->length);
}

/* Whatever else it is, or is not in order, is a descriptor's to be told. */
int nic_rdma_now(struct nic *nic, uint32_t vi, const struct nic_rdma *r)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	const struct nic_seg seg = { .addr = r->local, .handle = r->local_handle, .length = r->length };
	uint32_t need = r->op == NIC_CTL_RDMA_READ ? NIC_MEM_RDMA_READ : NIC_MEM_RDMA_WRITE;
	struct nic_link *link = nic_rdma_link(nic, vi);
	bool write = r->op == NIC_CTL_RDMA_WRITE, timed, failed;
	uint64_t began = 0;
	struct iovec local;

	if (nic_unlikely(nic_vi_state(ctx) != NIC_VI_CONNECTED || !nic_vi_tx_empty(ctx) || !nic->arch->post->at_once || !r->length ||
	                 r->length > ctx->max_transfer))
		return NIC_NOT_DONE;
	if (!is_alone(nic, link, r) || !nic_remote_check(link->slot, ctx->peer_vi, r->remote, r->length, r->remote_handle, need))
		return NIC_NOT_DONE;
	local.iov_base = nic->arch->xlate->map(nic, ctx->ptag, &seg, 0, r->length);
	local.iov_len = r->length;
	if (races(link, write, r->length) && is_single(nic, link) && !nic_dma_plain(link, r->remote, r->length) && is_timed(link, write, r->length))
		began = nic_dma_start();
	timed = is_in_row(nic, link, write, r->remote, r->length);
	if (timed)
		nic_row_begins(nic, link);
	failed = !local.iov_base || dma(nic, link, r->op, &local, 1, r->remote, r->length);
	if (timed)
		nic_row_over(nic, link, write, r->length, true, !failed);
	if (nic_unlikely(failed))
		return NIC_NOT_DONE;
	if (began)
		nic_dma_took(link, write, r->length, NIC_ALONE, began);
	begun(nic, link);
	nic_count(nic, rdma_now, 1);
	return NIC_OK;
}

/*
 * Does a transfer of so many bytes, by value, go by way of the other NIC, as far as `how` would say so?  Then `raced` says whether it is timed.  Who was late with
 * some is not asked again here.
 */
static inline bool by_value(const struct nic *nic, struct nic_link *link, bool write, uint32_t total, uint32_t single, uint32_t busy)
{
	bool row = in_a_row(nic, link), first = !row && link->followed[write];

	link->raced = false;
	link->followed[write] = row;
	if (nic_unlikely((write ? link->put.alone : total <= link->get_max && link->get.alone) || (nic->waiting.crowded && link->impatient)))
		return false;
	if (row || first) /* as the last one was followed by others, so is this one: alone it would hold them up */
		return total <= busy;
	if (total > NIC_VALUE_ONE)
		return false;
	if (!nic_link_brief_races(link, write, total))
		return total <= single;
	if (!nic_dma_brief(link, write, total))
		return false;
	link->raced = is_single(nic, link) && nic_dma_brief_due(link, write, total);
	return true;
}

/* A queue in which nothing waits to be executed, of a VI whose NIC does at once what it is told. */
static inline bool takes_value(const struct nic *nic, const struct nic_vi_ctx *ctx, uint32_t length, uint32_t most)
{
	return nic_likely(nic_vi_state(ctx) == NIC_VI_CONNECTED && ctx->tx_next == ctx->tx_tail && !ctx->tx_spilled && nic->arch->post->at_once &&
	                  ctx->reliability != NIC_UNRELIABLE && length && length <= most && length <= ctx->max_transfer);
}

static inline bool reachable(struct nic_link *link, const struct nic_vi_ctx *ctx, uint64_t remote, uint32_t length, uint32_t handle, uint32_t need)
{
	return nic_likely(link->cma && !absent(link)) && !nic_dma_plain(link, remote, length) &&
	       nic_likely(nic_remote_check(link->slot, ctx->peer_vi, remote, length, handle, need));
}

int nic_rdma_post(struct nic *nic, uint32_t vi, const struct nic_posted *w)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic_rdma_link(nic, vi);

	if (!takes_value(nic, ctx, w->length, NIC_POSTED_MAX) ||
	    !by_value(nic, link, true, w->length, link->put_max, link->put_busy) ||
	    nic_unlikely(link->in_the_way) || !reachable(link, ctx, w->remote, w->length, w->remote_handle, NIC_MEM_RDMA_WRITE))
		return NIC_NOT_DONE;
	begun(nic, link);
	return nic_rdma_post_packet(nic, vi, link, w) ? NIC_OK : NIC_NOT_DONE;
}

int nic_rdma_fetch(struct nic *nic, uint32_t vi, const struct nic_fetch *f)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic_rdma_link(nic, vi);

	if (!takes_value(nic, ctx, f->length, NIC_FETCH_MAX) || nic_unlikely(!f->to || ctx->writes) || /* writes: it would see what was there before them */
	    !by_value(nic, link, false, f->length, link->stream_max, link->stream_busy > link->get_max ? link->stream_busy : link->get_max) ||
	    !reachable(link, ctx, f->remote, f->length, f->remote_handle, NIC_MEM_RDMA_READ))
		return NIC_NOT_DONE;
	begun(nic, link);
	return nic_rdma_fetch_ask(nic, vi, link, f) ? NIC_OK : NIC_NOT_DONE;
}

uint32_t nic_rdma_fetched(const struct nic *nic, uint32_t vi, uint32_t *failed)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (failed)
		*failed = ctx->fetch_failed;
	return ctx->fetched;
}

int nic_rdma_posted(const struct nic *nic)
{
	return nic->nposted ? NIC_NOT_DONE : NIC_OK;
}
