/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory, for the peers.  What their NICs ask this one for (rdma_ask.c, which tells why, how, and in what
 * order): parts of writes, which are put in place when they are taken from the link, and requests, which wait here in line:
 * halves, from process to process, and streams of reads; short reads do not wait where nothing is before them.
 *
 * Nothing here is copied before its claim is taken, and the right to it is looked at in this slot's own table, at the time of the
 * copy.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/engine/dma.h"
#include "nicemu/util/copy.h"

enum {
	WINDOW = 48,     /* packets of a stream on the link at once: more would fall out of the caches */
	MUTUAL = 128,    /* for so many transfers that it might be asked for a peer that has asked counts as busy as this side */
	PARTS_PASS = 16, /* of streams to one peer, per pass */
	AHEAD = 1024,    /* bytes */
};

/* ---- requests that were looked at -------------------------------------------------------------------------------- */

/*
 * Tells the peer so, after the claim was taken, or closed: what it has taken back before makes it think that this NIC is absent, and
 * ask for nothing more until then.
 */
static inline void looked(struct nic_link *link)
{
	nic_store_release(&link->asking->seen, ++link->looked); /* pairs with take_back (rdma_ask.c) */
}

/* Nothing is done about this one.  Who takes it back later sees that it was looked at by its being closed. */
static nic_noinline void pass_over(struct nic_link *link, uint32_t id)
{
	nic_claim_tell(&link->asking->claim[id % NIC_CLAIMS], id, NIC_CLAIM_CLOSED);
	looked(link);
}

void nic_rdma_pass_over(struct nic_link *link, const struct nic_packet *p, uint32_t op)
{
	if (op == NIC_OP_WRITE_PART || op == NIC_OP_WRITE_SHORT)
		pass_over(link, p->put.claim);
	else if (op == NIC_OP_READ_REQ || op == NIC_OP_READ_SHORT || op == NIC_OP_READ_HALF || op == NIC_OP_WRITE_HALF)
		pass_over(link, p->ask.claim);
}

/* ---- parts of writes --------------------------------------------------------------------------------------------- */

/* Puts a part of a write in place, where the table of this slot allows it. */
nic_noinline bool nic_rdma_place(struct nic *nic, const struct nic_link *link, uint32_t vi, const struct nic_packet *p, uint32_t index, uint32_t len)
{
	uint64_t addr = p->buf.addr;

	if (!nic_remote_check(nic->slot, vi, addr, len, p->buf.handle, NIC_MEM_RDMA_WRITE)) {
		nic_count(nic, protection_errors, 1);
		return false;
	}
	nic_buffer_write_out(nic, link, addr, nic_buffer(nic, index), len);
	return true;
}

/* A part of a write whose claim is still open: into place. */
void nic_rdma_put(struct nic *nic, struct nic_link *link, uint32_t vi, const struct nic_packet *p, const uint8_t *data, uint32_t len)
{
	uint32_t id = p->put.claim, part = p->put.part, handle = p->put.handle;
	struct nic_claim *claim = &link->asking->claim[id % NIC_CLAIMS];
	uint64_t addr = p->put.addr;

	for (uint32_t i = 0; i < len && i < AHEAD; i += 64) /* they come while the claim does */
		nic_prefetch(data + i);
	if (nic_likely(nic_claim_take_placing(claim, id, part))) {
		if (nic_likely(nic_remote_check(nic->slot, vi, addr, len, handle, NIC_MEM_RDMA_WRITE))) {
			if (len > NIC_PUT_SHORT)
				nic_buffer_write_out(nic, link, addr, data, len);
			else
				nic_host_write_polled(nic, addr, data, len);
			nic_claim_placed(claim, id, part);
			nic_count(nic, bytes_helped, len);
		} else {
			nic_claim_tell(claim, id, NIC_CLAIM_REFUSED | NIC_CLAIM_CLOSED);
		}
	}
	looked(link);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* So long is a part for which the library's copy would take the string instruction, and of which all lines can be asked for ahead. */
static bool is_owned(uint32_t len)
{
	return len > 2048 && len <= 4096;
}

/* False: in the daemon, the process's memory is gone, and what was read counts for nothing. */
static bool host_read(struct nic *nic, void *to, uint64_t addr, uint32_t len)
{
	if (is_owned(len))
		nic_host_read_owned(nic, to, addr, len);
	else
		nic_host_read(nic, to, addr, len);
	return !nic_host_lost(nic);
}

/* Where a short read is to be; NULL: nowhere. */
static uint8_t *reply_of(const struct nic_link *link, const struct nic_favour *f)
{
	if (f->len <= NIC_CLAIM_DATA)
		return link->asking->claim[f->id % NIC_CLAIMS].data;
	return f->peer < NIC_REPLIES && f->len <= NIC_REPLY_MAX ? link->asking->reply[f->peer] : NULL;
}

static void serve_short(struct nic *nic, const struct nic_link *link, const struct nic_favour *f)
{
	struct nic_claim *claim = &link->asking->claim[f->id % NIC_CLAIMS];
	uint8_t *to = reply_of(link, f);
	bool good;

	nic_prefetch_write(claim);
	for (uint32_t i = 0; to && i < f->len; i += 64) /* the peer has read them last; they come while the right to it is looked at */
		nic_prefetch_write(to + i);
	good = to && nic_remote_check(nic->slot, f->vi, f->addr, f->len, f->handle, NIC_MEM_RDMA_READ);
	if (!nic_claim_take(claim, f->id, 0)) /* taken back */
		return;
	good = good && host_read(nic, to, f->addr, f->len);
	nic_claim_tell(claim, f->id, good ? NIC_CLAIM_DONE : NIC_CLAIM_REFUSED);
	nic_count(nic, bytes_read_short, good ? f->len : 0);
}

/*
 * The line is full: what was taken back meanwhile leaves it, and then there is room for all that a peer can ask for at once.
 * The one that comes now is looked at sooner or later: the peer hears of that.
 */
static nic_noinline void forget_taken_back(struct nic *nic, struct nic_link *link)
{
	uint32_t kept = link->favour_head;

	for (uint32_t i = link->favour_head; i != link->favour_tail; i++) {
		const struct nic_favour *f = &link->favour[i % NIC_CLAIMS];
		uint64_t word = nic_claim_look(&link->asking->claim[f->id % NIC_CLAIMS]);

		if (word >> 32 == f->id && !(word & NIC_CLAIM_CLOSED))
			link->favour[kept++ % NIC_CLAIMS] = *f;
	}
	nic->nshared -= link->favour_tail - kept;
	link->favour_tail = kept;
}

nic_noinline void nic_rdma_request(struct nic *nic, struct nic_link *link, uint32_t vi, const struct nic_packet *p, uint32_t len)
{
	struct nic_favour f = { .addr = p->ask.addr, .peer = p->ask.peer, .id = p->ask.claim, .handle = p->ask.handle, .len = len,
		.part = p->ask.part, .vi = vi, .gen = p->gen, .op = p->op };

	if (nic_unlikely(link->favour_tail - link->favour_head == NIC_CLAIMS))
		forget_taken_back(nic, link);
	if (link->favour_tail - link->favour_head == NIC_CLAIMS || !len || !f.part || f.part > NIC_RDMA_PART_MAX) {
		nic_count(nic, bad_packets, 1);
		pass_over(link, f.id);
		return;
	}
	if (f.op == NIC_OP_READ_SHORT && link->favour_tail == link->favour_head) { /* before all else that this pass does */
		serve_short(nic, link, &f);
		looked(link);
		return;
	}
	/* The right to it is looked at when it is served, part by part. */
	link->favour[link->favour_tail++ % NIC_CLAIMS] = f;
	link->mutual = MUTUAL;
	nic->nshared++;
}

static void served(struct nic *nic, struct nic_link *link)
{
	looked(link);
	link->favour_head++;
	nic->nshared--;
}

static bool still_asked(const struct nic *nic, const struct nic_link *link, const struct nic_favour *f)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, f->vi);

	return nic_vi_state(ctx) == NIC_VI_CONNECTED && ctx->gen == f->gen && ctx->peer_slot == link->peer;
}

/* The half, from process to process. */
static nic_noinline void serve_half(struct nic *nic, struct nic_link *link, const struct nic_favour *f)
{
	struct nic_claim *claim = &link->asking->claim[f->id % NIC_CLAIMS];
	struct iovec local = { nic_host(f->addr), f->len };
	bool read = f->op == NIC_OP_READ_HALF, done;

	if (!nic_claim_take(claim, f->id, 0)) /* taken back */
		return;
	done = link->cma && nic_remote_check(nic->slot, f->vi, f->addr, f->len, f->handle, read ? NIC_MEM_RDMA_READ : NIC_MEM_RDMA_WRITE) &&
	       (read ? nic_dma_write(nic, link, &local, 1, f->peer, f->len) : nic_dma_read(nic, link, &local, 1, f->peer, f->len)) == NIC_DMA_OK;
	nic_claim_tell(claim, f->id, done ? NIC_CLAIM_DONE : NIC_CLAIM_REFUSED);
	nic_count(nic, bytes_helped, done ? f->len : 0);
}

static void put_part(struct nic *nic, struct nic_link *link, struct nic_packet *p, const struct nic_favour *f, uint32_t index, uint32_t len_flags,
                     uint32_t error)
{
	p->buf.buffer = index;
	p->buf.handle = f->id;
	p->buf.addr = (uint64_t)f->parts * f->part;
	nic_tx_head(p, nic_vi(nic, f->vi), NIC_OP_READ_BUF, len_flags, error);
	nic_tx_publish(nic, link, p);
}

/* The next part of the stream.  0: no room. */
static int serve_part(struct nic *nic, struct nic_link *link, struct nic_favour *f)
{
	uint32_t from = f->parts * f->part, len = f->len - from < f->part ? f->len - from : f->part, index;
	struct nic_packet *p = nic_tx_room(nic, nic_vi(nic, f->vi), link);

	if (!p || !nic_link_reserve(link, NIC_RING_CELLS - WINDOW) || !nic_buffer_take(nic, &index))
		return 0;
	if (!nic_claim_take(&link->asking->claim[f->id % NIC_CLAIMS], f->id, f->parts)) { /* taken back */
		nic_buffer_give(nic, index);
		served(nic, link);
		return 1;
	}
	if (!nic_remote_check(nic->slot, f->vi, f->addr + from, len, f->handle, NIC_MEM_RDMA_READ) || /* deregistered meanwhile */
	    !host_read(nic, nic_buffer(nic, index), f->addr + from, len)) {
		nic_buffer_give(nic, index);
		put_part(nic, link, p, f, UINT32_MAX, NIC_PF_ERROR, NIC_ST_RDMA_PROT);
		served(nic, link);
		return 1;
	}
	put_part(nic, link, p, f, index, len | (from + len < f->len ? NIC_PF_MORE : 0), 0);
	link->balance--;
	f->parts++;
	nic_count(nic, bytes_read_buffer, len);
	if (is_owned(len))
		nic_tx_own_next(nic, len);
	if (from + len == f->len)
		served(nic, link);
	return 1;
}

int nic_rdma_serve(struct nic *nic, struct nic_link *link)
{
	int n = 0;

	while (link->favour_head != link->favour_tail && n < PARTS_PASS) {
		struct nic_favour *f = &link->favour[link->favour_head % NIC_CLAIMS];

		if (!still_asked(nic, link, f)) {
			nic_count(nic, stale_packets, 1);
			pass_over(link, f->id);
			served(nic, link);
		} else if (f->op == NIC_OP_READ_SHORT) {
			serve_short(nic, link, f);
			served(nic, link);
		} else if (f->op != NIC_OP_READ_REQ) {
			serve_half(nic, link, f);
			served(nic, link);
		} else if (!serve_part(nic, link, f)) {
			break;
		}
		n++;
	}
	return n;
}

void nic_rdma_forget(struct nic *nic, const struct nic_link *link)
{
	nic->nshared -= link->favour_tail - link->favour_head;
}
