/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory, writes in packets.  This NIC sends the data, the one at the other end puts them in place (rdma_serve.c) and counts the
 * parts in the claim (mem/claim.h).  Claims, and what is done when the other one is late: rdma_ask.c.
 *
 * Order.  Packets are put in place when they are taken from the link, before older requests of reads.  Of a long write they leave as those before are in
 * place.  Writes of the same VI wait until all have left, and behind one that was taken back until it is over.
 */
#include "nicemu/ctl/rdma.h"

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/util/copy.h"

enum {
	AWAY = 1 << 20, /* bytes of writes on their way, behind which the next one waits: more buffers would fall out of the caches */
};

/* The next bytes of these pieces, which have been found ours to read. */
static void gather(struct nic *nic, struct iovec **piece, uint8_t *to, uint32_t len, bool owned)
{
	while (len) {
		struct iovec *v = *piece;
		uint32_t part = v->iov_len < len ? (uint32_t)v->iov_len : len;

		if (owned)
			nic_host_read_owned(nic, to, (uintptr_t)v->iov_base, part);
		else
			nic_host_read(nic, to, (uintptr_t)v->iov_base, part);
		v->iov_base = (char *)v->iov_base + part;
		v->iov_len -= part;
		*piece += v->iov_len == 0;
		to += part;
		len -= part;
	}
}

/* Buffers for the parts, all or none. */
static bool take_buffers(struct nic *nic, uint32_t *index, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!nic_buffer_take(nic, &index[i])) {
			while (i--)
				nic_buffer_give(nic, index[i]);
			return false;
		}
	return true;
}

/* Do they have their pages, so that how long the transfer takes says something of the next ones? */
static bool are_known(struct nic *nic, const uint32_t *index, uint32_t n, uint32_t len)
{
	bool known = true;

	for (uint32_t i = 0; i < n; i++)
		known &= nic_buffer_known(nic, index[i], len);
	return known;
}

/* Is it one of many?  That is told by its parts. */
static bool is_row(const struct nic_ask *a)
{
	return a->part == NIC_RDMA_PART_MAX;
}

/* Were the lines of its buffer asked for when the write before it left? */
static bool is_owned(const struct nic_ask *a)
{
	return is_row(a) || a->limit <= a->part;
}

/* The next part of the write: in the buffer, or in the packet. */
static void put_one(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, const struct work *w, struct nic_ask *a, const uint32_t *buffer,
                    struct iovec **local)
{
	uint32_t from = a->from, len = w->total - from < a->part ? w->total - from : a->part;
	struct nic_packet *p = nic_link_reserve(link, 0);

	if (buffer)
		p->put.buffer = *buffer;
	gather(nic, local, buffer ? nic_buffer(nic, *buffer) : p->put.data, len, is_owned(a));
	p->put.handle = w->desc->seg[0].handle;
	p->put.addr = w->desc->seg[0].addr + from;
	p->put.claim = a->id;
	p->put.part = from ? from / a->part : 0; /* most have one part, and a division takes long */
	nic_tx_head(p, ctx, buffer ? NIC_OP_WRITE_PART : NIC_OP_WRITE_SHORT, len, 0);
	nic_tx_publish(nic, link, p);
	a->from += len;
	link->away += len;
}

/* How many parts of a write leave now, when so many are under way?  That is the peer's word, and may be any number. */
static uint32_t parts_now(const struct nic_ask *a, uint32_t under_way)
{
	uint32_t left = (a->limit - a->from + a->part - 1) / a->part, most = under_way < NIC_PUT_PARTS ? NIC_PUT_PARTS - under_way : 0;

	return left < most ? left : most;
}

/* More of a long write, of which so many parts are in place.  0: there is no room, or nothing that may leave now. */
static int put_more(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint32_t placed)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, a->vi);
	uint32_t n = parts_now(a, (a->from + a->part - 1) / a->part - placed), index[NIC_PUT_PARTS];
	struct iovec pieces[NIC_DESC_SEGS_MAX], *local = pieces;
	uint32_t before = a->from;
	struct work w;

	if (!n || !nic_tx_room(nic, ctx, link) || !nic_link_reserve(link, NIC_RING_RESERVE + n - 1) || !take_buffers(nic, index, n))
		return 0;
	if (a->began && !are_known(nic, index, n, a->part))
		a->began = 0;
	nic_ask_reread(nic_ask_entry(nic, a), &w);
	if (nic_unlikely(!nic_rdma_pieces(nic, ctx, &w, a->from, w.total - a->from, pieces))) { /* deregistered: told when the peer is through with a part */
		while (n)
			nic_buffer_give(nic, index[--n]);
		nic_claim_close(nic_asked(link, a->id));
		a->closed = true;
		return 1;
	}
	for (uint32_t i = 0; i < n; i++)
		put_one(nic, ctx, link, &w, a, &index[i], &local);
	link->in_the_way -= !nic_ask_in_the_way(a);
	link->balance -= (int32_t)n;
	nic_count(nic, bytes_write_buffer, a->from - before);
	return 1;
}

nic_noinline enum step nic_put_packets(struct nic *nic, uint32_t vi, struct nic_link *link, const struct work *w, struct iovec *local)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t part = nic_ask_part(link, w), all = (w->total + part - 1) / part, n = all < NIC_PUT_PARTS ? all : NIC_PUT_PARTS;
	uint32_t index[NIC_PUT_PARTS];
	bool inside = w->total <= NIC_PUT_SHORT;
	struct nic_ask *a;

	if ((ctx->writes && link->away >= AWAY) || !nic_tx_room(nic, ctx, link) || !nic_link_reserve(link, NIC_RING_RESERVE + n - 1) ||
	    (!inside && !take_buffers(nic, index, n)))
		return STEP_AGAIN;
	a = nic_ask_transfer(nic, vi, link, w, NIC_OP_WRITE_PART, 0);
	if (a->began && !inside && !are_known(nic, index, n, part))
		a->began = 0;
	for (uint32_t i = 0; i < n; i++)
		put_one(nic, ctx, link, w, a, inside ? NULL : &index[i], &local);
	if (!inside) {
		link->balance -= (int32_t)n;
		if (is_row(a))
			nic_tx_own_ahead(nic, w->total);
		else if (is_owned(a))
			nic_tx_own_next(nic, w->total);
	}
	link->in_the_way += nic_ask_in_the_way(a);
	nic_count(nic, bytes_write_buffer, a->from);
	return STEP_WAIT;
}

/* So many parts of a write are in place. */
static void now_placed(struct nic_link *link, struct nic_ask *a, uint32_t placed)
{
	uint32_t bytes = placed * a->part < a->from ? placed * a->part : a->from;

	if (bytes != a->placed)
		link->idle = 0;
	link->away = link->away + a->placed - bytes;
	a->placed = bytes;
}

/* What its claim says is done. */
int nic_put_advance(struct nic *nic, struct nic_link *link, struct nic_ask *a, uint64_t word)
{
	uint32_t placed = nic_claim_in_place(word);

	if (nic_likely(placed * a->part >= a->limit)) {
		nic_doubt_in_time(&link->put);
		nic_ask_finish(nic, link, a, 0);
		return 1;
	}
	now_placed(link, a, placed);
	if (word & NIC_CLAIM_REFUSED)
		placed = 0;
	else if (!a->closed)
		return put_more(nic, link, a, placed);
	else if (nic_claim_placing(word))
		return 0;
	nic_ask_finish(nic, link, a, nic_ask_move_late(nic, link, a, placed * a->part));
	return 1;
}
