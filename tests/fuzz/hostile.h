/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory is hostile: what a peer may write is filled with nonsense while an honest process works with it.  That one may
 * refuse, lose connections and count bad packets; it must not crash, hang, read or write where it should not, or keep a
 * descriptor for ever.
 *
 * Both are slots of one process.  The honest one, a, is never touched but through what the other, b, could reach; b itself
 * runs now and then, for as long as its own memory makes sense.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include "nicemu/ctl/ctl.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/nicemu/pair.h"

enum { VIS = 4, DESCS = 160 /* per VI and queue */, STEPS = 400, SECRET = 65536 };

static char device[48];
static struct pair p;
static uint32_t avi[VIS], bvi[VIS];
static uint8_t *secret; /* registered by nobody */

/* Descriptors of a: in order of posting, as far as they are not complete; two data segments each, and room for a third. */
struct queue {
	struct nic_desc *desc;
	uint32_t posted, taken;
	struct nic_desc *last;
};
static struct queue sq[VIS], rq[VIS];

/* ---- the honest one ---------------------------------------------------------------------------------------------- */

/* The completed ones, from the oldest on. */
static inline void collect(struct queue *q)
{
	uintptr_t pool = (uintptr_t)p.a.nic->map->buffer;

	for (; q->taken != q->posted; q->taken++) {
		struct nic_desc *d = &q->desc[q->taken % DESCS];

		if (!(status_of(d) & NIC_ST_DONE))
			return;
		if (status_of(d) & NIC_ST_POOL) {
			uint64_t off = d->seg[1].addr - pool;

			CHECK(off < sizeof(p.a.nic->map->buffer) && off % NIC_BUFFER_SIZE + d->seg[1].length <= NIC_BUFFER_SIZE);
			nic_buf_give(p.a.nic, (void *)(uintptr_t)d->seg[1].addr);
		}
	}
}

static inline uint32_t some_length(void)
{
	return FUZZ_OF(0, 1, 8, 47, 48, 49, 56, 57, 64, 500, 640, 641, 1000, 8191, 8192, NIC_BUFFER_SIZE, NIC_BUFFER_SIZE + 1, 16384, 40000, 100000);
}

static inline struct nic_desc *next_desc(struct queue *q, uint16_t control)
{
	struct nic_desc *d = &q->desc[q->posted % DESCS];
	uint32_t len = some_length();

	collect(q);
	if (q->posted - q->taken == DESCS)
		return NULL;
	memset(d, 0, sizeof(*d));
	d->control = control;
	d->nseg = 1;
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.a.mem + fuzz_below(1000), p.a.handle, len };
	d->length = len;
	if (!(control & NIC_CTL_POOL) && fuzz_seldom(3)) {
		d->nseg = 2;
		d->seg[1] = d->seg[0];
		d->length += len;
	}
	link_to(&q->last, d);
	q->posted++;
	return d;
}

static inline void post_recv(int i)
{
	struct nic_desc *d = next_desc(&rq[i], fuzz_seldom(2) ? NIC_CTL_POOL : 0);

	if (d)
		nic_post_recv(p.a.nic, avi[i], d);
}

/* RDMA goes to b's memory, and stays within it. */
static inline void rdma(struct nic_desc *d)
{
	struct nic_link *link = p.a.nic->link[p.b.nic->me];
	bool lengthy = link && fuzz_seldom(4); /* more parts than are under way at once */

	if (lengthy)
		link->put_max = link->put_busy = NIC_PUT_MAX;
	d->seg[1] = (struct nic_seg){ (uintptr_t)p.a.mem, p.a.handle, lengthy ? PAIR_MEM - 1000 : some_length() };
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem + fuzz_below(1000), p.b.handle, 0 };
	d->nseg = 2;
	d->length = d->seg[1].length;
}

static inline void post_send(int i)
{
	uint16_t control = FUZZ_OF(NIC_CTL_SEND, NIC_CTL_SEND, NIC_CTL_SEND | NIC_CTL_IMMEDIATE, NIC_CTL_RDMA_WRITE, NIC_CTL_RDMA_READ);
	struct nic_desc *d = next_desc(&sq[i], control);

	if (!d)
		return;
	if (control & NIC_CTL_OP_MASK)
		rdma(d);
	nic_post_send(p.a.nic, avi[i], d);
}

static inline void is_sound(const struct nic *nic)
{
	CHECK(nic->slot->nbuffers <= NIC_SLOT_BUFFERS);
	CHECK(nic->npending <= NIC_MAX_VI);
	CHECK(nic->nactive <= NIC_MAX_SLOTS);
	for (int i = 0; i < VIS; i++) {
		const struct nic_vi_ctx *ctx = nic_vi(nic, avi[i]);

		CHECK(ctx->tx_tail - ctx->tx_head <= NIC_TXQ && ctx->tx_next - ctx->tx_head <= ctx->tx_tail - ctx->tx_head);
		CHECK(ctx->rx_tail - ctx->rx_head <= NIC_RXQ);
		CHECK(ctx->rx_spilled <= DESCS && ctx->tx_spilled <= DESCS);
		CHECK(nic_vi_state(ctx) <= NIC_VI_ERROR);
	}
	for (int i = 0; i < SECRET; i++)
		if (secret[i] != (uint8_t)(i * 5)) {
			CHECK(!"memory that was not registered is as it was");
			break;
		}
}

/* ---- hostile packets --------------------------------------------------------------------------------------------- */

/* Mostly a few, so that the fuzzer does not fill the machine's memory with the pages of a pool. */
static inline uint32_t some_buffer(void)
{
	return fuzz_seldom(4) ? FUZZ_OF(NIC_POOL_BUFFERS - 1, NIC_POOL_BUFFERS, UINT32_MAX, INT32_MAX) : fuzz_below(64);
}

static inline uint64_t some_address(void)
{
	uint64_t base = FUZZ_OF((uintptr_t)p.a.mem, (uintptr_t)p.a.mem, (uintptr_t)p.b.mem, (uintptr_t)secret, (uintptr_t)p.a.nic,
	                        (uintptr_t)p.a.nic->map->buffer, (uintptr_t)p.a.nic->slot, 0, UINT64_MAX, fuzz_word());

	return base + FUZZ_OF(0, 0, 1, fuzz_below(PAIR_MEM), PAIR_MEM - 1, PAIR_MEM, -(uint64_t)1, -(uint64_t)fuzz_below(PAIR_MEM));
}

static inline uint32_t some_handle(void)
{
	return FUZZ_OF(p.a.handle, p.a.handle, p.a.handle, p.a.handle + 1, p.b.handle, 0, NIC_POOL_HANDLE, UINT32_MAX >> 1, fuzz_word());
}

static inline void pull(struct nic_packet *q, uint32_t len)
{
	uint64_t first = FUZZ_OF(len, len, 0, len / 2, fuzz_word(), (uint64_t)1 << 32 | len, UINT64_MAX);

	q->pull.nruns = FUZZ_OF(0, 1, 1, 2, 2, 3, UINT32_MAX);
	q->pull.run[0] = (struct nic_run){ some_address(), first };
	q->pull.run[1] = (struct nic_run){ some_address(), fuzz_seldom(4) ? fuzz_word() : len - first }; /* the sum is right, modulo 2^64 */
}

/* The claim is mostly there to be taken.  In b's process, which is this one, b names what is its own to lose. */
static inline void request(struct nic_packet *q)
{
	struct nic_link *link = p.b.nic->link[p.a.nic->me];
	uint32_t id = 1 + fuzz_below(3 * NIC_CLAIMS);

	if (!fuzz_seldom(4))
		nic_claim_open(&link->asked->claim[id % NIC_CLAIMS], id);
	q->ask.claim = fuzz_seldom(8) ? fuzz_word() : id;
	q->ask.part = FUZZ_OF(0, 1, 2048, 8192, 8193, UINT32_MAX);
	q->ask.peer = (uintptr_t)p.b.mem;
}

/* Of a write in packets: mostly the first part. */
static inline void put(struct nic_packet *q, uint32_t len)
{
	request(q);
	q->put.claim = q->ask.claim;
	q->put.buffer = some_buffer();
	q->put.handle = some_handle();
	q->put.addr = fuzz_seldom(4) ? -(uint64_t)len : some_address();
	q->put.part = FUZZ_OF(0, 0, 0, 1, NIC_CLAIM_PLACES, UINT32_MAX);
}

static inline void body(struct nic_packet *q)
{
	uint32_t len = q->len_flags & NIC_PF_LEN;

	fuzz_bytes(q->data, sizeof(q->data));
	switch (q->op) {
	case NIC_OP_SEND_BUF:
	case NIC_OP_WRITE_BUF:
	case NIC_OP_READ_BUF:
		q->buf.buffer = some_buffer();
		q->buf.handle = fuzz_seldom(2) && p.a.nic->link[p.b.nic->me] ? p.a.nic->link[p.b.nic->me]->ask_head : some_handle();
		q->buf.addr = fuzz_seldom(2) ? FUZZ_OF(0, 0, 1, 128, NIC_BUFFER_SIZE, UINT64_MAX, -(uint64_t)len) : some_address();
		break;
	case NIC_OP_SEND_PULL:
		pull(q, len);
		break;
	case NIC_OP_READ_REQ:
	case NIC_OP_READ_HALF:
	case NIC_OP_WRITE_HALF:
		q->ask.addr = some_address();
		q->ask.handle = some_handle();
		request(q);
		break;
	case NIC_OP_READ_SHORT:
		q->ask.addr = some_address();
		q->ask.handle = some_handle();
		request(q);
		q->ask.peer = FUZZ_OF(0, 1, NIC_REPLIES - 1, NIC_REPLIES, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX);
		break;
	case NIC_OP_WRITE_SHORT:
	case NIC_OP_WRITE_PART:
		put(q, len);
		break;
	case NIC_OP_RETURN:
		q->ret.n = FUZZ_OF(0, 1, 11, 12, UINT32_MAX);
		for (int i = 0; i < 11; i++)
			q->ret.buffer[i] = some_buffer();
		break;
	default:
		break;
	}
}

static inline uint32_t some_vi(void)
{
	return fuzz_seldom(6) ? FUZZ_OF(NIC_MAX_VI - 1, NIC_MAX_VI, UINT16_MAX, VIS, fuzz_word()) : avi[fuzz_below(VIS)];
}

/* Cells that the reader takes a packet at that position for. */
static inline uint32_t cells_of(uint32_t pos, const struct nic_packet *q)
{
	uint32_t len = q->len_flags & NIC_PF_LEN;

	if (q->op == NIC_OP_SKIP)
		return nic_ring_rest(pos);
	return q->op != NIC_OP_SEND || len > NIC_INLINE_MAX ? 1 : nic_packet_cells(len);
}

static inline void hostile_packet(void)
{
	struct nic_link *link = p.b.nic->link[p.a.nic->me];
	struct nic_packet *q = link ? nic_link_reserve(link, NIC_PACKET_CELLS) : NULL;
	uint32_t flags;

	if (!q)
		return;
	flags = FUZZ_OF(0, 0, 0, NIC_PF_IMM, NIC_PF_MORE, NIC_PF_ACK, NIC_PF_ERROR, (fuzz_word() & 0xFF) << 24);
	q->op = fuzz_seldom(20) ? fuzz_word() : fuzz_below(NIC_OP_COUNT);
	if (q->op == NIC_OP_DISCONNECT && !fuzz_seldom(8)) /* else not much is left to talk to */
		q->op = NIC_OP_ACK;
	q->vi = some_vi();
	q->gen = nic_vi(p.a.nic, q->vi)->gen + (fuzz_seldom(8) ? fuzz_word() : 0);
	q->len_flags = flags | (fuzz_seldom(8) ? fuzz_word() & NIC_PF_LEN : some_length());
	q->imm = fuzz_word();
	body(q);
	/* Out of step with its cells, the link is of no more use. */
	nic_link_publish(link, q, fuzz_seldom(200) ? fuzz_below(NIC_PACKET_CELLS) + 1 : cells_of(link->tx_pos, q));
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static inline void hostile_start(void)
{
	snprintf(device, sizeof(device), "fuzz-%d", (int)getpid());
}

static inline void open_queue(struct queue *q)
{
	*q = (struct queue){ .desc = aligned_alloc(NIC_DESC_ALIGN, DESCS * sizeof(struct nic_desc)) };
	memset(q->desc, 0, DESCS * sizeof(struct nic_desc));
}

static inline void open_round(void)
{
	nic_param_set("cma", fuzz_seldom(2) ? "off" : "auto", "test");
	end_open(&p.a, device);
	end_open(&p.b, device);
	secret = malloc(SECRET);
	for (int i = 0; i < SECRET; i++)
		secret[i] = i * 5;
	for (int i = 0; i < VIS; i++) {
		uint16_t level = 1u << fuzz_below(3);

		open_queue(&sq[i]);
		open_queue(&rq[i]);
		end_vi(&p.a, level);
		end_vi(&p.b, level);
		avi[i] = p.a.vi;
		bvi[i] = p.b.vi;
	}
}

static inline void close_round(void)
{
	end_close(&p.a);
	end_close(&p.b);
	free(secret);
	for (int i = 0; i < VIS; i++) {
		free(sq[i].desc);
		free(rq[i].desc);
	}
}

static inline void connect_vi(int i)
{
	p.a.vi = avi[i];
	p.b.vi = bvi[i];
	nic_disconnect(p.a.nic, avi[i]);
	nic_disconnect(p.b.nic, bvi[i]);
	pair_connect(&p);
}

/* Whatever happened, what was posted comes back. */
static inline void everything_completes(void)
{
	for (int i = 0; i < VIS; i++) {
		CHECK_EQ(nic_disconnect(p.a.nic, avi[i]), NIC_OK);
		collect(&sq[i]);
		collect(&rq[i]);
		CHECK_EQ(sq[i].posted - sq[i].taken, 0);
		CHECK_EQ(rq[i].posted - rq[i].taken, 0);
	}
}

#endif
