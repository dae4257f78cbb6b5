/* SPDX-License-Identifier: BSD-3-Clause */
/* What rdma.c, which knows the ways that RDMA goes, and rdma_ask.c, rdma_put.c, rdma_post.c and rdma_fetch.c, those that the NIC at the other end takes part in, share. */
#ifndef NIC_CTL_RDMA_H
#define NIC_CTL_RDMA_H

#include <sys/uio.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"

/*
 * Packets of a write, and short reads, would be waited for in vain again and again if the peer computes and looks now and then, or
 * copies for itself.  Doubt comes fast and goes slowly, so that who is late more than now and then hardly ever gets them.  So with
 * halves where the peer asks as well: in an exchange both are at their own, and asking in vain takes a fifth of the time.  A peer
 * that asks for nothing is asked for the next half all the same: with doubt, windows of reads one way were slower by a tenth.
 */
static inline void nic_doubt_late(struct nic_doubt *d)
{
	enum { MOST = 63 }; /* transfers done alone at most before one is asked for again */

	d->alone = d->depth = d->depth < MOST / 2 ? 2 * d->depth + 1 : MOST;
}

static inline void nic_doubt_in_time(struct nic_doubt *d)
{
	d->depth -= (d->depth + 7) / 8;
}

/* Is this transfer one that the other end is left out of? */
static inline bool nic_in_doubt(struct nic_doubt *d)
{
	if (nic_likely(!d->alone))
		return false;
	d->alone--;
	return true;
}

static inline struct nic_link *nic_rdma_link(const struct nic *nic, uint32_t vi)
{
	return nic->link[nic_vi(nic, vi)->peer_slot & (NIC_MAX_SLOTS - 1)];
}

/* rdma_rows.c */
enum { NIC_ROW_FROM = 32 << 10 }; /* bytes of the shortest messages that are timed */
uint32_t nic_row_class(uint64_t len, enum nic_row_kind kind); /* NIC_ROW_CLASSES: shorter than any */
void nic_row_took(struct nic_link *link, uint32_t class, bool read, uint64_t ns, uint64_t bytes);
/* Is a transfer of as many, of many in a row, one that is timed?  Not if it is a message's, which has begun already, nor if it goes one way in any case. */
bool nic_row_has(const struct nic *nic, struct nic_link *link, bool write, uint64_t remote, uint32_t len);
void nic_row_begins(const struct nic *nic, struct nic_link *link);
void nic_row_over(const struct nic *nic, struct nic_link *link, bool write, uint32_t len, bool read, bool good);
void nic_row_sends(const struct nic *nic, struct nic_link *link, uint64_t len, bool single); /* this end, a message of so many bytes, however it is going to travel */
void nic_row_choose(struct nic_link *link); /* what this end would rather have, of what is known where it is now, and lets the peer know */

/* rdma_apart.c */
bool nic_row_migrates(const struct nic_link *link, uint32_t apart);
bool nic_row_is_far(const struct nic_link *link, uint32_t apart); /* do the processors share no cache? */
bool nic_row_guess(const struct nic_link *link, uint32_t class, uint32_t apart); /* are those better read, as long as nothing is known?  In ns, 0: not known either */
void nic_row_start(struct nic_link *link);
void nic_row_look(struct nic_link *link);
void nic_row_apart(struct nic_link *link, uint64_t ns); /* that a line of the peer's took just now, at least 1 */

/*
 * What is sent in any case, a bit for each class: exchanges, where lines migrate and the processors share a cache.  What that leaves of the caches to the
 * programs is not in what is timed; and a sender that is away does the same there as its peer.
 */
static inline uint32_t nic_row_settled(const struct nic_link *link)
{
	const struct nic_row *r = &link->row;

	return nic_row_migrates(link, r->ns) ? r->mutual & ((1u << NIC_ROW_LENGTHS) - 1) : 0;
}

/* Are there rows of as long messages both ways, and some are being read just now?  (Of single ones, who is late with a half is doubted as with any.) */
static inline bool nic_row_mutual(const struct nic_link *link, uint64_t len)
{
	return link->row.mutual && link->row.open > link->row.own && !link->row.single && link->row.mutual >> nic_row_class(len, NIC_ROW_MANY) & 1;
}

/* Is a long message better read?  `reads`: a bit for each class. */
static inline bool nic_row_reads(uint32_t reads, uint64_t len, enum nic_row_kind kind)
{
	return reads && reads >> nic_row_class(len, kind) & 1;
}

/* rdma.c */
/* Local pieces of bytes [from, from + len) of the message; 0: a segment is not ours to read or write. */
unsigned nic_rdma_pieces(struct nic *nic, const struct nic_vi_ctx *ctx, const struct work *w, uint64_t from, uint64_t len, struct iovec *out);
/* Copies these bytes in one step, between such pieces and the peer's memory; 0 or NIC_ST_*. */
uint32_t nic_rdma_copy(struct nic *nic, struct nic_link *link, const struct work *w, const struct iovec *local, unsigned n, uint32_t from,
                       uint32_t len);
/* The same, of whatever lies there in this process. */
uint32_t nic_rdma_move(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, const struct work *w, uint32_t from, uint32_t len);

/* rdma_ask.c */
/* By halves, a transfer of one segment, which lies at `at` in this process. */
enum step nic_ask_halves(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w, void *at);
/* A read, short or in buffers; false: there is no room for the request. */
bool nic_ask_read(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w);
/*
 * Must a write that this NIC does the next `len` bytes of wait for one that is still under way?  For a half that it would meet;
 * and, unless it goes in packets itself, for all that do.
 */
bool nic_ask_meets(const struct nic *nic, const struct nic_link *link, uint32_t vi, uint64_t addr, uint64_t len, bool packets);

/* Is there room to ask for one more? */
struct nic_packet *nic_ask_room(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link);
/* Where a short read may lie that does not fit beside its claim, NIC_REPLIES: beside it; false: it cannot be one. */
bool nic_ask_reply(const struct nic_link *link, uint32_t total, uint32_t *reply);
/* The request goes out, for what lies there at the peer; `peer` as in the packet. */
void nic_ask_request(struct nic *nic, struct nic_link *link, const struct nic_ask *a, struct nic_packet *p, uint64_t addr, uint32_t handle, uint32_t len,
                     uint64_t peer);
/* Of a transfer that begins now, how long is a part? */
uint32_t nic_ask_part(const struct nic_link *link, const struct work *w);
/* Opens a claim, before the packet that names it, for what stands at `pos` in the send queue. */
struct nic_ask *nic_ask_open(struct nic *nic, uint32_t vi, struct nic_link *link, uint32_t pos, enum nic_op op);
/* The same for the descriptor that is being executed, from that byte on. */
struct nic_ask *nic_ask_transfer(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w, enum nic_op op, uint32_t from);
/* The rest of a transfer from that byte on, alone after all: the target's table may have changed since it was asked.  0 or NIC_ST_*. */
uint32_t nic_ask_move_late(struct nic *nic, struct nic_link *link, const struct nic_ask *a, uint32_t from);
/* It is complete, good or not, or its VI is down. */
void nic_ask_over(struct nic *nic, struct nic_link *link, struct nic_ask *a, bool good);
/* It is complete, or failed, and so is its descriptor. */
void nic_ask_finish(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint32_t error);

/* rdma_put.c */
/* A write in packets: the peer's NIC puts them in place.  Uses up `local`, the pieces of it. */
enum step nic_put_packets(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w, struct iovec *local);
/* One step of it, when its claim says this.  0: it waits. */
int nic_put_advance(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint64_t word);

enum { NIC_VALUE_ONE = 4096 }; /* bytes by value: of a longer transfer that is the only one both ends work at once, in two parts */

/* rdma_post.c */
/* A posted write that may go now: into a packet.  False: there is no room, or none for one more. */
bool nic_rdma_post_packet(struct nic *nic, uint32_t vi, struct nic_link *link, const struct nic_posted *w);
/* One step of those of a link, when their claim says this.  0: they wait. */
int nic_rdma_post_advance(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint64_t word);
/* They are over. */
void nic_rdma_post_over(struct nic *nic, struct nic_link *link);

/* rdma_fetch.c */
/* A fetch that may go now: asks for it.  False: there is no room, or none for one more. */
bool nic_rdma_fetch_ask(struct nic *nic, uint32_t vi, struct nic_link *link, const struct nic_fetch *f);
/* One step of it.  0: it waits. */
int nic_rdma_fetch_advance(struct nic *nic, struct nic_link *link, struct nic_ask *a);
/* It has come as a packet, so many bytes of a buffer; or in error. */
void nic_rdma_fetch_part(struct nic *nic, struct nic_link *link, struct nic_ask *a, const uint8_t *data, uint32_t len, bool good);

/* rdma_late.c */
/* Copies of posted writes that are not known to be in place, before their claim is closed; false: no memory. */
bool nic_late_save(struct nic *nic, struct nic_link *link);
/* Does those from that one on; 0 or NIC_ST_*. */
uint32_t nic_late_write(struct nic *nic, struct nic_link *link, const struct nic_ask *a, uint32_t placed);
void nic_late_forget(struct nic_link *link);

static inline struct nic_claim *nic_asked(const struct nic_link *link, uint32_t id)
{
	return &link->asked->claim[id % NIC_CLAIMS];
}

static inline struct nic_txe *nic_ask_entry(const struct nic *nic, const struct nic_ask *a)
{
	return &nic->slot->txq[a->vi][a->pos & (NIC_TXQ - 1)];
}

/* The descriptor again; it was checked when it was executed. */
static inline void nic_ask_reread(const struct nic_txe *e, struct work *w)
{
	struct nic_desc *desc = nic_host(e->desc);

	*w = (struct work){ .desc = desc, .seg = desc->seg + 1, .nseg = desc->nseg - 1u, .total = desc->length,
		.op = desc->control & NIC_CTL_OP_MASK, .control = desc->control };
}

/*
 * Must a write that goes in packets stay behind this one?  Of those in packets, only behind one of which parts have still to leave, or that was taken
 * back: this NIC writes the rest of it.
 */
static inline bool nic_ask_in_the_way(const struct nic_ask *a)
{
	return a->op == NIC_OP_WRITE_HALF || (a->op == NIC_OP_WRITE_PART && (a->from < a->limit || a->closed));
}

/* Where the second half begins: on a page of this process, so that two copies never meet in one; 0: too short for that. */
static inline uint32_t nic_ask_half_of(const struct work *w)
{
	enum { PAGE = 4096 };
	uint64_t addr = w->seg[0].addr, at = (addr + w->total / 2 + PAGE - 1) & ~(uint64_t)(PAGE - 1);

	return at - addr < w->total ? (uint32_t)(at - addr) : 0;
}

#endif
