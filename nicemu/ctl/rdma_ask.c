/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory, what the NIC at the other end is asked for (rdma.c, which chooses; rdma_serve.c, which does it there).
 *
 * A packet names a claim (mem/claim.h), the descriptor waits.  Of what the other NIC has not claimed when it has shown no sign of
 * life for a number of passes, the more the longer that would take alone, nothing is left to it: this NIC closes the claim and does the rest.
 * Until the other one looks at the requests that it has been sent it is not asked again.  For a half that has not been begun when this NIC is
 * through with its own there is no patience, unless the other one is at work on one before it: the rest takes no longer than a wait.
 *
 * Protection.  A NIC that copies into or out of the process that asked it has been given that address by the process itself,
 * and does so only between its claim and its word that it is done.
 *
 * Order.  Requests are served first in, first out, and claims are closed from the newest to the oldest, so what the other
 * NIC does is always the front of the queue.  The rest is done in order, when all before it is complete.  With that, two
 * writes to the same place end as they were posted (nic_rdma_write delays one that could not); sends, immediate data and
 * reads wait for the writes before them (`fenced` in tx.c).  Writes in packets: rdma_put.c.
 */
#include "nicemu/ctl/rdma.h"

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/engine/dma.h"
#include "nicemu/util/copy.h"

enum {
	PATIENCE = 128,      /* looks without a sign of the peer before its part is taken back; a pass takes one or two */
	PATIENCE_BRIEF = 32, /* the same for what is soon done alone: a write in packets, a short read */
	ADVANCES = 16,       /* transfers that a pass takes a step of, of one peer's */
	LOOK = 1024,         /* bytes of streams that a look more is spent on */
	BRIEF = 32 << 10,    /* bytes of the longest write that is soon done alone */
	PART_MIN = 4096, PART_MOST = 16384,
};
_Static_assert(NIC_PUT_MAX / PART_MOST < NIC_CLAIM_PLACES, "their parts can be counted");

/*
 * Of the only transfer, halves: both ends are soon at work, and not more packets than that, each of which takes as long as some KB do where cores are
 * far apart.  Of a longer one so many that what is under way stays near.  Of many, large ones.
 */
static uint32_t part_of(uint32_t total)
{
	uint32_t half = ((total + 1) / 2 + PART_MIN - 1) & ~(uint32_t)(PART_MIN - 1);

	return half < PART_MIN ? PART_MIN : half > PART_MOST ? PART_MOST : half;
}

/* The same, by what is under way just now. */
uint32_t nic_ask_part(const struct nic_link *link, const struct work *w)
{
	return link->ask_head == link->ask_tail ? part_of(w->total) : NIC_RDMA_PART_MAX;
}

static bool is_write(const struct nic_ask *a)
{
	return a->op == NIC_OP_WRITE_HALF || a->op == NIC_OP_WRITE_PART;
}

struct nic_ask *nic_ask_open(struct nic *nic, uint32_t vi, struct nic_link *link, uint32_t pos, enum nic_op op)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t id = link->ask_tail++;
	struct nic_ask *a = &link->ask[id % NIC_CLAIMS];

	link->mutual -= link->mutual != 0;
	*a = (struct nic_ask){ .id = id, .vi = vi, .op = op, .open = true, .pos = pos, .reply = NIC_REPLIES };
	nic_claim_open(nic_asked(link, id), id);
	nic_ask_entry(nic, a)->flags |= NIC_TXE_ASKED;
	*(is_write(a) ? &ctx->writes : &ctx->reads) += 1;
	nic->nshared++;
	nic_count(nic, shared, 1);
	return a;
}

struct nic_ask *nic_ask_transfer(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w, enum nic_op op, uint32_t from)
{
	uint32_t part = nic_ask_part(link, w);
	struct nic_ask *a = nic_ask_open(nic, vi, link, nic_vi(nic, vi)->tx_next, op);

	a->from = from;
	a->part = part;
	a->limit = w->total;
	a->alone = op == NIC_OP_READ_REQ || op == NIC_OP_WRITE_PART ? w->total : 0;
	link->alone += a->alone;
	a->began = link->raced ? nic_dma_start() : 0;
	link->raced = false;
	if (link->in_row) {
		a->timed = w->total;
		nic_row_begins(nic, link);
	}
	link->in_row = false;
	return a;
}

struct nic_packet *nic_ask_room(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link)
{
	return link->ask_tail - link->ask_head < NIC_CLAIMS ? nic_tx_room(nic, ctx, link) : NULL;
}

void nic_ask_request(struct nic *nic, struct nic_link *link, const struct nic_ask *a, struct nic_packet *p, uint64_t addr, uint32_t handle, uint32_t len,
                     uint64_t peer)
{
	p->ask.addr = addr;
	p->ask.handle = handle;
	p->ask.claim = a->id;
	p->ask.peer = peer;
	p->ask.part = a->part;
	p->ask.pad = 0;
	nic_tx_head(p, nic_vi(nic, a->vi), a->op, len, 0);
	nic_tx_publish(nic, link, p);
}

/* Asks the peer's NIC for the transfer from that byte on, in that packet; `peer` as in the packet. */
static struct nic_ask *ask(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w, enum nic_op op, uint32_t from, uint64_t peer,
                           struct nic_packet *p)
{
	struct nic_ask *a = nic_ask_transfer(nic, vi, link, w, op, from);

	nic_ask_request(nic, link, a, p, w->desc->seg[0].addr + from, w->desc->seg[0].handle, w->total - from, peer);
	return a;
}

/* The transfer is complete, or its VI is down. */
void nic_ask_over(struct nic *nic, struct nic_link *link, struct nic_ask *a, bool good)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, a->vi);

	*(is_write(a) ? &ctx->writes : &ctx->reads) -= 1;
	link->in_the_way -= nic_ask_in_the_way(a);
	link->alone -= a->alone;
	if (a->timed)
		nic_row_over(nic, link, is_write(a), a->timed, a->op == NIC_OP_READ_HALF || a->op == NIC_OP_WRITE_HALF, good);
	if (a->posted)
		nic_rdma_post_over(nic, link);
	else
		link->away -= a->op == NIC_OP_WRITE_PART ? a->from - a->placed : 0;
	a->open = false;
	link->replies &= ~(1u << a->reply);
	nic->nshared--;
	while (link->ask_head != link->ask_tail && !link->ask[link->ask_head % NIC_CLAIMS].open)
		link->ask_head++;
}

/* Those bytes are there: how long it took decides how the next ones go. */
static inline void timed(struct nic_link *link, const struct nic_ask *a, uint32_t len)
{
	if (a->began)
		nic_dma_took(link, is_write(a), len, a->op == NIC_OP_READ_HALF || a->op == NIC_OP_WRITE_HALF ? NIC_HALVES : NIC_STREAM, a->began);
}

void nic_ask_finish(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint32_t error)
{
	uint32_t vi = a->vi, pos = a->pos;

	if (!error && !a->to) {
		struct nic_txe *e = nic_ask_entry(nic, a);
		struct nic_desc *desc = nic_host(e->desc);

		e->done = desc->length;
		timed(link, a, desc->length);
	}
	nic_ask_over(nic, link, a, !error);
	nic_tx_done(nic, vi, pos, error);
}

/* The rest of a transfer from that byte on, alone after all: the target's table may have changed since it was asked. */
nic_noinline uint32_t nic_ask_move_late(struct nic *nic, struct nic_link *link, const struct nic_ask *a, uint32_t from)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, a->vi);
	const struct nic_seg *remote;
	struct work w;

	nic_ask_reread(nic_ask_entry(nic, a), &w);
	remote = &w.desc->seg[0];
	if (from >= w.total)
		return 0;
	if (!nic_remote_check(link->slot, ctx->peer_vi, remote->addr + from, w.total - from, remote->handle,
	                      w.op == NIC_CTL_RDMA_READ ? NIC_MEM_RDMA_READ : NIC_MEM_RDMA_WRITE))
		return NIC_ST_RDMA_PROT;
	return nic_rdma_move(nic, ctx, link, &w, from, w.total - from);
}

/* Nothing was taken of a claim that is closed now.  If it was not closed before, by the peer, the peer has not looked at it. */
static void found_untouched(struct nic_link *link, uint64_t word, uint32_t seen_before)
{
	if (word & NIC_CLAIM_CLOSED)
		return;
	link->absent = true;
	link->absent_seen = seen_before;
}

/* ---- halves ------------------------------------------------------------------------------------------------------ */

/*
 * Takes the peer's half of a read back if it has not begun with it; this side is through with its own.  The newest request, so
 * what the peer does stays the front of the queue.
 */
static bool take_half_back(struct nic *nic, struct nic_link *link, struct nic_ask *a)
{
	uint32_t seen_before = nic_load_acquire(&link->asked->seen); /* before the closing, as in take_back */
	uint64_t word = nic_claim_close(nic_asked(link, a->id));

	a->closed = true;
	if (word & NIC_CLAIM_PARTS)
		return false;
	found_untouched(link, word, seen_before);
	nic_count(nic, shared_taken_back, 1);
	return true;
}

/* Is the peer copying its half of a transfer before this one, of the same VI?  Then it is there, and comes to this one next. */
static bool at_work(const struct nic_link *link, const struct nic_ask *a)
{
	for (uint32_t id = link->ask_head; id != a->id; id++) {
		const struct nic_ask *before = &link->ask[id % NIC_CLAIMS];
		uint64_t word = nic_claim_look(nic_asked(link, id));

		if (before->open && before->vi == a->vi && (before->op == NIC_OP_READ_HALF || before->op == NIC_OP_WRITE_HALF) &&
		    (word & NIC_CLAIM_PARTS) && !(word & (NIC_CLAIM_DONE | NIC_CLAIM_REFUSED)))
			return true;
	}
	return false;
}

/* This NIC's half is copied.  Is the peer late with its own, as the claim says?  Remembers it. */
static bool is_late(struct nic_link *link, const struct nic_ask *a, uint64_t word)
{
	if (nic_likely(word & NIC_CLAIM_PARTS)) {
		nic_doubt_in_time(&link->half);
		return false;
	}
	if (!link->impatient || at_work(link, a))
		return false;
	if (link->mutual)
		nic_doubt_late(&link->half);
	return true;
}

nic_noinline enum step nic_ask_halves(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w, void *at)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t from = nic_ask_half_of(w), error;
	struct nic_packet *p = nic_ask_room(nic, ctx, link);
	struct iovec first = { at, from };
	struct nic_ask *a;
	uint64_t word;

	if (!p)
		return STEP_AGAIN;
	a = ask(nic, vi, link, w, w->op == NIC_CTL_RDMA_READ ? NIC_OP_READ_HALF : NIC_OP_WRITE_HALF, from, w->seg[0].addr + from, p);
	link->in_the_way += nic_ask_in_the_way(a);
	error = nic_rdma_copy(nic, link, w, &first, 1, 0, from);
	if (nic_unlikely(error)) {
		nic_rdma_settle(nic, link, a);
		return nic_tx_refuse(nic, e, error);
	}
	nic_count(nic, bytes_own_half, from);
	word = nic_claim_look(nic_asked(link, a->id));
	if (nic_unlikely(is_late(link, a, word)) && a->op == NIC_OP_READ_HALF && take_half_back(nic, link, a)) {
		error = nic_rdma_move(nic, ctx, link, w, from, w->total - from);
		nic_ask_over(nic, link, a, !error);
		e->flags &= ~NIC_TXE_ASKED;
		if (nic_unlikely(error))
			return nic_tx_refuse(nic, e, error);
		timed(link, a, w->total);
		e->done = w->total;
		return STEP_DONE;
	}
	if (!(word & NIC_CLAIM_DONE))
		return STEP_WAIT;
	nic_count(nic, bytes_peer_half, w->total - from);
	timed(link, a, w->total);
	nic_ask_over(nic, link, a, true);
	e->flags &= ~NIC_TXE_ASKED;
	e->done = w->total;
	return STEP_DONE;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

bool nic_ask_reply(const struct nic_link *link, uint32_t total, uint32_t *reply)
{
	if (total > link->get_max)
		return false;
	*reply = NIC_REPLIES;
	if (total <= NIC_CLAIM_DATA)
		return true;
	for (uint32_t i = 0; i < NIC_REPLIES; i++)
		if (!(link->replies & 1u << i))
			*reply = i;
	return *reply < NIC_REPLIES;
}

nic_noinline bool nic_ask_read(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w)
{
	struct nic_packet *p = nic_ask_room(nic, nic_vi(nic, vi), link);
	uint32_t reply;

	if (!p)
		return false;
	if (!nic_ask_reply(link, w->total, &reply)) {
		ask(nic, vi, link, w, NIC_OP_READ_REQ, 0, 0, p);
		return true;
	}
	if (reply < NIC_REPLIES)
		link->replies |= 1u << reply;
	ask(nic, vi, link, w, NIC_OP_READ_SHORT, 0, reply, p)->reply = (uint8_t)reply;
	return true;
}

bool nic_ask_meets(const struct nic *nic, const struct nic_link *link, uint32_t vi, uint64_t addr, uint64_t len, bool packets)
{
	if (packets && !link->in_the_way)
		return false;
	for (uint32_t id = link->ask_head; id != link->ask_tail; id++) {
		const struct nic_ask *a = &link->ask[id % NIC_CLAIMS];
		const struct nic_desc *desc;
		uint64_t at;

		if (!a->open || a->vi != vi || !is_write(a))
			continue;
		if (a->op == NIC_OP_WRITE_PART) {
			if (!packets || nic_ask_in_the_way(a))
				return true;
			continue;
		}
		desc = nic_host(nic_ask_entry(nic, a)->desc);
		at = desc->seg[0].addr + a->from;
		if (addr < at + (desc->length - a->from) && at < addr + len)
			return true;
	}
	return false;
}

/* ---- what was asked of the peer ---------------------------------------------------------------------------------- */

static void read_failed(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint32_t error)
{
	nic_claim_close(nic_asked(link, a->id));
	nic_ask_finish(nic, link, a, error);
}

/* A part of a stream: into the segments of the read. */
nic_noinline void nic_rdma_part(struct nic *nic, struct nic_link *link, uint32_t vi, const struct nic_packet *p, uint32_t index, uint32_t len, uint32_t flags)
{
	uint32_t id = p->buf.handle, at = 0;
	uint64_t offset = p->buf.addr;
	struct nic_ask *a = &link->ask[id % NIC_CLAIMS];
	struct iovec to[NIC_DESC_SEGS_MAX];
	struct nic_txe *e;
	struct work w;
	unsigned n;

	if (!a->open || a->id != id || a->vi != vi || a->op != NIC_OP_READ_REQ) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	if (!nic_buffer_known(nic, index, len))
		a->began = 0; /* as in are_known */
	if (a->to) {
		nic_rdma_fetch_part(nic, link, a, nic_buffer(nic, index), len, !(flags & NIC_PF_ERROR) && !offset);
		return;
	}
	e = nic_ask_entry(nic, a);
	if ((flags & NIC_PF_ERROR) || offset != e->done || !len || len > a->limit - e->done) {
		read_failed(nic, link, a, NIC_ST_RDMA_PROT);
		return;
	}
	nic_ask_reread(e, &w);
	n = nic_rdma_pieces(nic, nic_vi(nic, vi), &w, e->done, len, to);
	if (nic_unlikely(!n)) {
		read_failed(nic, link, a, NIC_ST_PROTECTION);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		nic_buffer_write_out(nic, link, (uintptr_t)to[i].iov_base, nic_buffer(nic, index) + at, (uint32_t)to[i].iov_len);
		at += to[i].iov_len;
	}
	e->done += len;
	if (e->done == a->limit && !a->closed)
		nic_ask_finish(nic, link, a, 0);
}

/* The peer has given no sign for long enough: what it has not claimed is ours again. */
static nic_noinline void take_back(struct nic *nic, struct nic_link *link)
{
	/* Acquire: before the closing.  Who comes to a claim that is found untouched then will find it closed, and that changes `seen`. */
	uint32_t seen_before = nic_load_acquire(&link->asked->seen);
	bool put = false, get = false;

	if (link->posted && !link->posted->closed && !nic_late_save(nic, link))
		return; /* there is no memory: they are waited for */
	for (uint32_t id = link->ask_tail; id-- != link->ask_head;) {
		struct nic_ask *a = &link->ask[id % NIC_CLAIMS];
		uint64_t word, parts;

		if (!a->open || a->closed)
			continue;
		word = nic_claim_close(nic_asked(link, id));
		parts = word & NIC_CLAIM_PARTS;
		link->in_the_way -= nic_ask_in_the_way(a);
		a->closed = true;
		link->in_the_way += nic_ask_in_the_way(a);
		if (a->op == NIC_OP_READ_REQ) {
			a->from = parts * a->part < a->limit ? parts * a->part : a->limit;
			nic_count(nic, shared_taken_back, a->from != a->limit);
			a->limit = a->from;
		} else if (a->posted) {
			nic_count(nic, shared_taken_back, parts < a->parts);
			if (word & NIC_CLAIM_CLOSED)
				nic_late_forget(link);
		} else {
			nic_count(nic, shared_taken_back, a->op == NIC_OP_WRITE_PART ? parts * a->part < a->limit : !parts);
		}
		put |= a->op == NIC_OP_WRITE_PART;
		get |= a->op == NIC_OP_READ_SHORT && !parts;
		if (!parts)
			found_untouched(link, word, seen_before);
	}
	if (put)
		nic_doubt_late(&link->put);
	if (get)
		nic_doubt_late(&link->get);
}

/* A short read is there: into the segments of the descriptor. */
static nic_noinline void deliver_short(struct nic *nic, struct nic_link *link, struct nic_ask *a)
{
	const uint8_t *data = a->reply < NIC_REPLIES ? link->asked->reply[a->reply] : nic_asked(link, a->id)->data;
	struct iovec to[NIC_DESC_SEGS_MAX];
	struct work w;
	unsigned n;

	nic_ask_reread(nic_ask_entry(nic, a), &w);
	n = nic_rdma_pieces(nic, nic_vi(nic, a->vi), &w, 0, w.total, to);
	for (unsigned i = 0; i < n; i++) {
		nic_host_write(nic, (uintptr_t)to[i].iov_base, data, to[i].iov_len);
		data += to[i].iov_len;
	}
	nic_doubt_in_time(&link->get);
	nic_ask_finish(nic, link, a, n ? 0 : NIC_ST_PROTECTION);
}

/* One step of the oldest transfer.  0: it waits. */
static int advance(struct nic *nic, struct nic_link *link, struct nic_ask *a)
{
	struct nic_txe *e = nic_ask_entry(nic, a);
	uint64_t word;
	uint32_t error;

	if (a->to)
		return nic_rdma_fetch_advance(nic, link, a);
	if (a->op == NIC_OP_READ_REQ) {
		if (!a->closed)
			return 0;
		if (a->from != UINT32_MAX) { /* the rest, while parts that were claimed are on their way */
			error = nic_ask_move_late(nic, link, a, a->from);
			a->from = UINT32_MAX;
			if (error)
				nic_ask_finish(nic, link, a, error);
			else if (e->done == a->limit)
				nic_ask_finish(nic, link, a, 0);
			return 1;
		}
		if (e->done != a->limit)
			return 0;
		nic_ask_finish(nic, link, a, 0);
		return 1;
	}
	word = nic_claim_look(nic_asked(link, a->id)); /* R2 */
	if (a->op == NIC_OP_WRITE_PART)
		return a->posted ? nic_rdma_post_advance(nic, link, a, word) : nic_put_advance(nic, link, a, word);
	if (word & NIC_CLAIM_DONE) {
		struct nic_desc *desc = nic_host(e->desc);

		if (a->op == NIC_OP_READ_SHORT) {
			deliver_short(nic, link, a);
			return 1;
		}
		nic_count(nic, bytes_peer_half, desc->length - a->from);
		nic_ask_finish(nic, link, a, 0);
		return 1;
	}
	if (!(word & NIC_CLAIM_REFUSED) && (!a->closed || (word & NIC_CLAIM_PARTS)))
		return 0;
	nic_ask_finish(nic, link, a, nic_ask_move_late(nic, link, a, a->from));
	return 1;
}

/* Any sign of the peer since the last pass?  A half that it has claimed is one; the claim of a stream is left to its writer. */
static bool sign(struct nic_link *link, const struct nic_ask *a)
{
	bool moved = link->idle_pos != link->rx_pos || link->idle_id != a->id;
	uint64_t word;

	link->idle_pos = link->rx_pos;
	link->idle_id = a->id;
	if (moved || a->op == NIC_OP_READ_REQ)
		return moved;
	word = nic_claim_look(nic_asked(link, a->id));
	return a->op == NIC_OP_WRITE_PART ? nic_claim_placing(word) : (word & NIC_CLAIM_PARTS) != 0;
}

/* Is the peer at a part of that stream of a read just now?  Where its memory is slow a part takes longer than the patience is. */
static bool is_at_part(const struct nic *nic, struct nic_link *link, const struct nic_ask *a)
{
	return a->op == NIC_OP_READ_REQ && (nic_claim_look(nic_asked(link, a->id)) & NIC_CLAIM_PARTS) * a->part > nic_ask_entry(nic, a)->done;
}

/* Is it soon done alone? */
static bool is_brief(const struct nic_ask *a)
{
	return a->op == NIC_OP_READ_SHORT || (a->op == NIC_OP_WRITE_PART && (a->posted ? a->parts == 1 : a->limit <= BRIEF));
}

/*
 * In looks.  Of streams no longer than they would take alone, at some GB/s: who takes them all back is away himself meanwhile, and where both ends ask
 * they would do so in turns.  Where processes take turns on a core a look may be as long as such a turn.
 */
static uint64_t patience(const struct nic *nic, const struct nic_link *link, const struct nic_ask *a)
{
	return (is_brief(a) ? PATIENCE_BRIEF : PATIENCE) + (nic->waiting.crowded ? 0 : link->alone / LOOK);
}

static int run_asked(struct nic *nic, struct nic_link *link)
{
	struct nic_ask *a;
	int n = 0;

	do {
		a = &link->ask[link->ask_head % NIC_CLAIMS];
		if (!advance(nic, link, a))
			break;
	} while (++n < ADVANCES && link->ask_head != link->ask_tail);
	if (n || !link->cma || a->closed)
		return n;
	if (sign(link, a))
		link->idle = 0;
	else if (++link->idle >= patience(nic, link, a)) {
		link->idle = 0;
		if (is_at_part(nic, link, a))
			return 0;
		take_back(nic, link);
		return 1;
	}
	return 0;
}

/* Nobody but this process may touch its memory for this transfer any more. */
void nic_rdma_settle(struct nic *nic, struct nic_link *link, struct nic_ask *a)
{
	struct nic_claim *claim = nic_asked(link, a->id);
	uint64_t word = nic_claim_close(claim);

	if ((a->op == NIC_OP_WRITE_HALF || a->op == NIC_OP_READ_HALF || a->op == NIC_OP_READ_SHORT) && (word & NIC_CLAIM_PARTS))
		if (!nic_dma_settle(nic, link, claim))
			a->reply = NIC_REPLIES; /* nobody uses that place again */
	nic_ask_entry(nic, a)->flags &= ~NIC_TXE_ASKED;
	nic_ask_over(nic, link, a, false);
}

void nic_rdma_revoke(struct nic *nic, uint32_t vi)
{
	struct nic_link *link = nic_rdma_link(nic, vi);

	for (uint32_t i = 0; link && i < NIC_CLAIMS; i++) { /* newest first; settling moves ask_head */
		struct nic_ask *a = &link->ask[(link->ask_tail - 1 - i) % NIC_CLAIMS];

		if (a->open && a->vi == vi)
			nic_rdma_settle(nic, link, a);
	}
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

int nic_rdma_run(struct nic *nic)
{
	int n = 0;

	for (uint32_t i = 0; i < nic->nactive; i++) {
		struct nic_link *link = nic->active[i];

		if (link->favour_head != link->favour_tail)
			n += nic_rdma_serve(nic, link);
		if (link->ask_head != link->ask_tail)
			n += run_asked(nic, link);
	}
	return n;
}
