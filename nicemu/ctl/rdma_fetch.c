/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory, fetches: reads by value, without a descriptor and a completion (nic_rdma_fetch).
 *
 * The NIC at the other end is asked for each as it is for a read by descriptor (rdma_ask.c), short or as a stream of one part, and cannot tell them
 * apart.  Here the ask itself says where the data are to be, so nothing of it is looked up or checked again when they come: they are the program's to
 * give away, as those of a message that is taken by value are.
 *
 * Order.  Each has a place in the send queue, which waits as a descriptor would.  They end in order, and a count of those that have is all that is told
 * (nic_rdma_fetched); behind one that has failed, which costs the connection, none counts.
 */
#include "nicemu/ctl/rdma.h"

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/engine/dma.h"
#include "nicemu/util/copy.h"

_Static_assert((int)NIC_FETCH_MAX <= (int)NIC_RDMA_PART_MAX && (int)NIC_FETCH_MAX <= (int)NIC_BUFFER_SIZE, "one part");

bool nic_rdma_fetch_ask(struct nic *nic, uint32_t vi, struct nic_link *link, const struct nic_fetch *f)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t pos = ctx->tx_tail, reply = NIC_REPLIES;
	struct nic_packet *p;
	struct nic_ask *a;
	bool brief;

	if (nic_unlikely(pos - ctx->tx_head == NIC_TXQ))
		return false;
	p = nic_ask_room(nic, ctx, link);
	if (nic_unlikely(!p))
		return false;
	if (link->ask_head != link->ask_tail)
		link->ask[(link->ask_tail - 1) % NIC_CLAIMS].began = 0; /* what follows it will be looked at together with it, or before */
	brief = nic_ask_reply(link, f->length, &reply);
	ctx->tx_next = ctx->tx_tail = pos + 1;
	nic->slot->txq[vi][pos & (NIC_TXQ - 1)] = (struct nic_txe){ .flags = NIC_TXE_WAIT | NIC_TXE_FETCH };
	a = nic_ask_open(nic, vi, link, pos, brief ? NIC_OP_READ_SHORT : NIC_OP_READ_REQ);
	a->to = f->to;
	a->remote = f->remote;
	a->handle = f->remote_handle;
	a->part = a->limit = f->length;
	if (!brief) {
		a->alone = f->length;
		link->alone += f->length;
	} else if (reply < NIC_REPLIES) {
		a->reply = (uint8_t)reply;
		link->replies |= 1u << reply;
	}
	a->began = nic_unlikely(link->raced) ? nic_dma_start() : 0;
	nic_ask_request(nic, link, a, p, f->remote, f->remote_handle, f->length, reply);
	nic_count(nic, rdma_fetches, 1);
	return true;
}

static inline void timed(struct nic_link *link, const struct nic_ask *a)
{
	if (nic_unlikely(a->began))
		nic_dma_took(link, false, a->part, NIC_STREAM, a->began);
}

/* It is over, and so is its place in the queue.  Nobody waits for a completion that would tell of an error: an event does. */
static void finish(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint32_t error)
{
	uint32_t vi = a->vi;

	nic_ask_finish(nic, link, a, error);
	if (nic_unlikely(error & NIC_ST_RDMA_PROT))
		nic_event(nic, NIC_EV_RDMAR_PROT, nic_vi(nic, vi)->cookie, 0, NIC_ST_OP_RDMA_READ);
}

/* What the peer did not do, alone: its table may have changed since it was asked. */
static nic_noinline uint32_t late(struct nic *nic, struct nic_link *link, const struct nic_ask *a)
{
	struct iovec local = { a->to, a->part };
	enum nic_dma r;

	if (!nic_remote_check(link->slot, nic_vi(nic, a->vi)->peer_vi, a->remote, a->part, a->handle, NIC_MEM_RDMA_READ))
		return NIC_ST_RDMA_PROT;
	r = nic_dma_read(nic, link, &local, 1, a->remote, a->part);
	if (r != NIC_DMA_OK)
		return r == NIC_DMA_FAULT ? NIC_ST_RDMA_PROT : NIC_ST_TRANSPORT;
	nic_count(nic, bytes_read, a->part);
	return 0;
}

/* A short read is there. */
static inline void deliver(struct nic *nic, struct nic_link *link, struct nic_ask *a)
{
	const uint8_t *data = a->reply < NIC_REPLIES ? link->asked->reply[a->reply] : nic_asked(link, a->id)->data;

	nic_copy(a->to, data, a->part);
	timed(link, a);
	nic_doubt_in_time(&link->get);
	finish(nic, link, a, 0);
}

int nic_rdma_fetch_advance(struct nic *nic, struct nic_link *link, struct nic_ask *a)
{
	uint64_t word;
	uint32_t error;

	if (a->op == NIC_OP_READ_REQ && !a->closed)
		return 0; /* the claim of a stream is left to its writer */
	word = nic_claim_look(nic_asked(link, a->id)); /* R2 */
	if (nic_likely(word & NIC_CLAIM_DONE) && a->op == NIC_OP_READ_SHORT) {
		deliver(nic, link, a);
		return 1;
	}
	if (!(word & NIC_CLAIM_REFUSED) && (!a->closed || (word & NIC_CLAIM_PARTS)))
		return 0;
	error = late(nic, link, a);
	if (!error)
		timed(link, a); /* it is what that way takes while the peer is late */
	finish(nic, link, a, error);
	return 1;
}

void nic_rdma_fetch_part(struct nic *nic, struct nic_link *link, struct nic_ask *a, const uint8_t *data, uint32_t len, bool good)
{
	if (nic_unlikely(!good || len != a->part)) {
		nic_claim_close(nic_asked(link, a->id));
		finish(nic, link, a, NIC_ST_RDMA_PROT);
		return;
	}
	nic_copy(a->to, data, len);
	timed(link, a);
	finish(nic, link, a, 0);
}
