/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory, posted writes: by value, in packets, without a descriptor and a completion (nic_rdma_post).
 *
 * Many of them are one transfer for which the other NIC was asked (rdma_ask.c), with one claim (mem/claim.h): each write is a part of it, wherever it goes to,
 * and the other NIC cannot tell it from a part of a long write (rdma_put.c).  So taking and placing a part, and taking back those that the other one does
 * not come to, are what they are there; but of those that are taken back this NIC needs the data, which its process may have changed since: they
 * are still in the packets, and in the buffers that went with them (rdma_late.c).
 *
 * Order.  In the send queue they have one place together, which waits as a descriptor would, so what must not pass a write waits for all of them.
 * They end with the first look that finds all in place; the next one begins anew.
 */
#include "nicemu/ctl/rdma.h"

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/engine/dma.h"
#include "nicemu/util/copy.h"

enum { TIMED_MOST = 4 };
_Static_assert((int)NIC_POSTED_MAX <= (int)NIC_BUFFER_SIZE, "one buffer");

/* Is there a claim, and a place in the queue, for the first one? */
static inline bool may_begin(const struct nic_vi_ctx *ctx, const struct nic_link *link)
{
	return link->ask_tail - link->ask_head < NIC_CLAIMS && ctx->tx_tail - ctx->tx_head < NIC_TXQ;
}

/* So many are in place: a sign of the peer, and less to do alone; about as much, since not each one's length is known any more.  It may say anything, but not fewer. */
static void now_placed(struct nic_link *link, struct nic_ask *a, uint32_t placed)
{
	uint32_t left;

	if (placed <= a->placed || placed > a->parts)
		return;
	left = (uint32_t)((uint64_t)a->alone * (a->parts - placed) / (a->parts - a->placed));
	link->alone -= a->alone - left;
	a->alone = left;
	a->placed = placed;
	link->idle = 0;
}

/*
 * May one more join those that are under way?  Not behind another transfer, which would be passed if the peer came to one of them only, or to none.  And so many only
 * at once that they are found again.
 */
static inline bool may_go_on(struct nic_link *link, struct nic_ask *a, uint32_t vi)
{
	if (nic_unlikely(a->vi != vi || a->closed || a->id + 1 != link->ask_tail || a->parts == NIC_CLAIM_PLACES))
		return false;
	if (nic_unlikely(a->parts - a->placed >= NIC_POSTED))
		now_placed(link, a, nic_claim_in_place(nic_claim_look(nic_asked(link, a->id))));
	return a->parts - a->placed < NIC_POSTED;
}

static struct nic_ask *first(struct nic *nic, uint32_t vi, struct nic_link *link, uint32_t len)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t pos = ctx->tx_tail++;

	ctx->tx_next = ctx->tx_tail;
	nic->slot->txq[vi][pos & (NIC_TXQ - 1)] = (struct nic_txe){ .flags = NIC_TXE_WAIT | NIC_TXE_POSTED };
	nic->nposted++;
	link->posted = nic_ask_open(nic, vi, link, pos, NIC_OP_WRITE_PART);
	link->posted->posted = true;
	link->posted->part = len;
	link->posted->began = link->raced ? nic_dma_start() : 0;
	return link->posted;
}

bool nic_rdma_post_packet(struct nic *nic, uint32_t vi, struct nic_link *link, const struct nic_posted *w)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	bool inside = w->length <= NIC_PUT_SHORT;
	struct nic_ask *a = link->posted;
	struct nic_packet *p;
	uint32_t index = 0;

	if (nic_unlikely(a ? !may_go_on(link, a, vi) : !may_begin(ctx, link)))
		return false;
	p = nic_tx_room(nic, ctx, link);
	if (nic_unlikely(!p || (!inside && !nic_buffer_take(nic, &index))))
		return false;
	if (nic_unlikely(!a))
		a = first(nic, vi, link, w->length);
	if (inside) {
		nic_copy_short(p->put.data, w->data, w->length);
	} else {
		if (nic_unlikely(a->began) && !nic_buffer_known(nic, index, w->length))
			a->began = 0; /* it has no pages yet, which says nothing of the next ones */
		nic_copy_owned(nic_buffer(nic, index), w->data, w->length);
		p->put.buffer = index;
		link->balance--;
	}
	p->put.handle = w->remote_handle;
	p->put.addr = w->remote;
	p->put.claim = a->id;
	p->put.part = a->parts;
	link->posted_at[a->parts++ % NIC_POSTED] = link->tx_pos;
	a->alone += w->length;
	link->alone += w->length;
	nic_tx_head(p, ctx, inside ? NIC_OP_WRITE_SHORT : NIC_OP_WRITE_PART, w->length, 0);
	nic_tx_publish(nic, link, p);
	if (!inside)
		nic_tx_own_ahead(nic, w->length);
	nic_count(nic, rdma_posted, 1);
	nic_count(nic, bytes_write_buffer, w->length);
	return true;
}

void nic_rdma_post_over(struct nic *nic, struct nic_link *link)
{
	if (nic_unlikely(link->late))
		nic_late_forget(link);
	link->posted = NULL;
	nic->nposted--;
}

/* All of them are over, and so is their place in the queue.  Nobody waits for a completion that would tell of an error: an event does. */
static void finish(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint32_t error)
{
	uint32_t vi = a->vi, pos = a->pos;

	nic_ask_over(nic, link, a, true);
	nic_tx_done(nic, vi, pos, error);
	if (nic_unlikely(error & NIC_ST_RDMA_PROT))
		nic_event(nic, NIC_EV_RDMAW_PROT, nic_vi(nic, vi)->cookie, 0, NIC_ST_OP_RDMA_WRITE);
}

static void timed(struct nic_link *link, struct nic_ask *a)
{
	if (a->parts <= TIMED_MOST)
		nic_dma_took(link, true, a->part, NIC_STREAM, a->began);
	a->began = 0;
}

int nic_rdma_post_advance(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint64_t word)
{
	uint32_t placed = nic_claim_in_place(word), error;

	if (nic_unlikely(a->began) && placed) /* the first is in place; what few others took, beside it, is little */
		timed(link, a);
	if (nic_likely(placed >= a->parts)) {
		nic_doubt_in_time(&link->put);
		finish(nic, link, a, 0);
		return 1;
	}
	if (nic_unlikely(word & NIC_CLAIM_REFUSED)) {
		finish(nic, link, a, NIC_ST_RDMA_PROT);
		return 1;
	}
	now_placed(link, a, placed);
	if (nic_likely(!a->closed) || nic_claim_placing(word))
		return 0;
	error = nic_late_write(nic, link, a, placed);
	if (nic_unlikely(a->began) && !error)
		timed(link, a); /* it is what that way takes while the peer is late */
	finish(nic, link, a, error);
	return 1;
}
