/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that send share: tx.c, which runs the queue and knows messages, give.c, which has the short way of some, rdma.c,
 * which knows remote memory, and rdma_serve.c, which does what the rdma_ask.c of a peer asks for.
 */
#ifndef NIC_CTL_TX_H
#define NIC_CTL_TX_H

#include "nicemu/ctl/ctl.h"
#include "nicemu/util/copy.h"

enum step { STEP_DONE, STEP_AGAIN, STEP_WAIT, STEP_ERROR };

/* What one descriptor asks for, checked. */
struct work {
	struct nic_desc *desc;
	const struct nic_seg *seg; /* data segments */
	uint32_t nseg, total;
	uint32_t op;      /* NIC_CTL_* */
	uint32_t control;
};

/* tx.c */
enum step nic_tx_refuse(struct nic *nic, struct nic_txe *e, uint32_t error); /* the descriptor fails with that status */
/* The rest of the message, from e->done on, through buffers, as far as there is room. */
enum step nic_tx_parts(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w,
                       enum nic_op op, uint32_t flags);

/* rdma.c */
enum step nic_rdma_write(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w);
enum step nic_rdma_read(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w);

/* rdma_serve.c */
enum { NIC_RDMA_PART_MAX = 32768 }; /* bytes of a part of what both ends work on */
int nic_rdma_serve(struct nic *nic, struct nic_link *link); /* some of what that peer has asked for; how much */

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static inline void nic_tx_head(struct nic_packet *p, const struct nic_vi_ctx *ctx, enum nic_op op, uint32_t len_flags, uint32_t imm)
{
	p->op = op;
	p->gen = ctx->peer_gen;
	p->vi = ctx->peer_vi;
	p->len_flags = len_flags;
	p->imm = imm;
}

/* A packet of one cell. */
static inline void nic_tx_publish(struct nic *nic, struct nic_link *link, struct nic_packet *p)
{
	nic_count(nic, packets_sent, 1);
	nic_link_publish(link, p, 1);
}

static inline void nic_packet_buffer(struct nic_packet *p, uint32_t index, uint64_t at)
{
	p->buf.buffer = index;
	p->buf.handle = 0;
	p->buf.addr = at;
}

/* A message in a buffer, `off` bytes into the pool: both are the peer's now. */
static inline void nic_tx_publish_buffer(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_packet *p, uint64_t off,
                                  uint32_t len_flags, uint32_t imm)
{
	nic_packet_buffer(p, (uint32_t)(off / NIC_BUFFER_SIZE), off % NIC_BUFFER_SIZE);
	nic_tx_head(p, ctx, NIC_OP_SEND_BUF, len_flags, imm);
	nic_tx_publish(nic, link, p);
	link->balance--;
}

/*
 * Gets hold of the lines that the message behind the next, or write, in a buffer will be written to, if it is as long as this one: the peer has
 * read them last, and for the next message it would be too late.  Of those that are copied by string instruction (nic_copy_owned) the first ones.
 */
static inline void nic_tx_own_ahead(const struct nic *nic, size_t len)
{
	enum { BEGIN = 2048 }; /* bytes */
	const struct nic_slot *slot = nic->slot;

	if (nic_likely(slot->nbuffers >= 2))
		nic_prefetch_write_lines(nic_buffer(nic, slot->buffer[slot->nbuffers - 2]), len <= NIC_OWNED_MOST ? len : BEGIN);
}

/* The same of the next one itself, for those that go one at a time. */
static inline void nic_tx_own_next(const struct nic *nic, size_t len)
{
	const struct nic_slot *slot = nic->slot;

	if (nic_likely(slot->nbuffers))
		nic_prefetch_write_lines(nic_buffer(nic, slot->buffer[slot->nbuffers - 1]), len);
}

/* Room for one data packet of so many cells, by leave of the flow strategy. */
static inline struct nic_packet *nic_tx_room_for(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, uint32_t cells)
{
	struct nic_packet *p = NULL;

	if (!nic->arch->flow->may_send || nic->arch->flow->may_send(nic, ctx, link))
		p = nic_link_reserve(link, NIC_RING_RESERVE + cells - 1);
	if (nic_unlikely(!p))
		nic_count(nic, link_full, 1);
	return p;
}

static inline struct nic_packet *nic_tx_room(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link)
{
	return nic_tx_room_for(nic, ctx, link, 1);
}

/* The payload of a packet, cell by cell. */
struct nic_filling {
	struct nic_link *link;
	uint8_t *at;
	uint32_t room, cells;
};

static inline struct nic_filling nic_filling_of(struct nic_link *link, struct nic_packet *p)
{
	return (struct nic_filling){ .link = link, .at = p->data, .room = NIC_PAYLOAD, .cells = 1 };
}

static inline void nic_fill(struct nic_filling *f, const void *data, uint32_t len)
{
	const uint8_t *from = data;

	while (len) {
		uint32_t part;

		if (f->room == 0) {
			struct nic_more *more = nic_link_more(f->link->tx, f->link->tx_pos, f->cells);

			more->pos = f->link->tx_pos + f->cells++;
			if (len >= NIC_PAYLOAD_MORE) { /* a length that the compiler knows */
				nic_copy_short(more->data, from, NIC_PAYLOAD_MORE);
				from += NIC_PAYLOAD_MORE;
				len -= NIC_PAYLOAD_MORE;
				continue;
			}
			f->at = more->data;
			f->room = NIC_PAYLOAD_MORE;
		}
		part = len < f->room ? len : f->room;
		nic_copy_short(f->at, from, part);
		f->at += part;
		f->room -= part;
		from += part;
		len -= part;
	}
}

/* NIC_PF_*, of the message's last packet. */
static inline uint32_t nic_tx_flags(const struct nic_vi_ctx *ctx, const struct work *w)
{
	return (w->control & NIC_CTL_IMMEDIATE ? NIC_PF_IMM : 0) | (ctx->reliability == NIC_RELIABLE_RECEPTION ? NIC_PF_ACK : 0);
}

/* May the peer's NIC copy out of this process and into it? */
static inline bool nic_tx_peer_pulls(const struct nic *nic, const struct nic_link *link)
{
	/* Acquire: pairs with the peer's setting of the bit; it never goes back while the link is up. */
	return nic_load_acquire(&link->slot->pulls[nic->me / 64]) >> (nic->me % 64) & 1;
}

#endif
