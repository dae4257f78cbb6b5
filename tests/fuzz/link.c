/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory is hostile: what a peer may write (packets, its slot, the connection tables) is filled with nonsense while an
 * honest process works with it.  That one may refuse, lose connections and count bad packets; it must not crash, hang, read
 * or write where it should not, or keep a descriptor for ever.
 *
 * Both are slots of one process.  The honest one, a, is never touched but through what the other, b, could reach; b itself
 * runs now and then, for as long as its own memory makes sense.
 */
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
static struct nic_desc *blast[VIS]; /* that b has posted last */

/* ---- the honest one ---------------------------------------------------------------------------------------------- */

/* The completed ones, from the oldest on. */
static void collect(struct queue *q)
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

static uint32_t some_length(void)
{
	return FUZZ_OF(0, 1, 8, 47, 48, 49, 56, 57, 64, 500, 640, 641, 1000, 8191, 8192, NIC_BUFFER_SIZE, NIC_BUFFER_SIZE + 1, 16384, 40000, 100000);
}

static struct nic_desc *next_desc(struct queue *q, uint16_t control)
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

static void post_recv(int i)
{
	struct nic_desc *d = next_desc(&rq[i], fuzz_seldom(2) ? NIC_CTL_POOL : 0);

	if (d)
		nic_post_recv(p.a.nic, avi[i], d);
}

/* RDMA goes to b's memory, and stays within it. */
static void rdma(struct nic_desc *d)
{
	d->seg[1] = (struct nic_seg){ (uintptr_t)p.a.mem, p.a.handle, some_length() };
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem + fuzz_below(1000), p.b.handle, 0 };
	d->nseg = 2;
	d->length = d->seg[1].length;
}

static void post_send(int i)
{
	uint16_t control = FUZZ_OF(NIC_CTL_SEND, NIC_CTL_SEND, NIC_CTL_SEND | NIC_CTL_IMMEDIATE, NIC_CTL_RDMA_WRITE, NIC_CTL_RDMA_READ);
	struct nic_desc *d = next_desc(&sq[i], control);

	if (!d)
		return;
	if (control & NIC_CTL_OP_MASK)
		rdma(d);
	nic_post_send(p.a.nic, avi[i], d);
}

static void is_sound(const struct nic *nic)
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
static uint32_t some_buffer(void)
{
	return fuzz_seldom(4) ? FUZZ_OF(NIC_POOL_BUFFERS - 1, NIC_POOL_BUFFERS, UINT32_MAX, INT32_MAX) : fuzz_below(64);
}

static uint64_t some_address(void)
{
	uint64_t base = FUZZ_OF((uintptr_t)p.a.mem, (uintptr_t)p.a.mem, (uintptr_t)p.b.mem, (uintptr_t)secret, (uintptr_t)p.a.nic,
	                        (uintptr_t)p.a.nic->map->buffer, (uintptr_t)p.a.nic->slot, 0, UINT64_MAX, fuzz_word());

	return base + FUZZ_OF(0, 0, 1, fuzz_below(PAIR_MEM), PAIR_MEM - 1, PAIR_MEM, -(uint64_t)1, -(uint64_t)fuzz_below(PAIR_MEM));
}

static uint32_t some_handle(void)
{
	return FUZZ_OF(p.a.handle, p.a.handle, p.a.handle, p.a.handle + 1, p.b.handle, 0, NIC_POOL_HANDLE, UINT32_MAX >> 1, fuzz_word());
}

static void pull(struct nic_packet *q, uint32_t len)
{
	uint64_t first = FUZZ_OF(len, len, 0, len / 2, fuzz_word(), (uint64_t)1 << 32 | len, UINT64_MAX);

	q->pull.nruns = FUZZ_OF(0, 1, 1, 2, 2, 3, UINT32_MAX);
	q->pull.run[0] = (struct nic_run){ some_address(), first };
	q->pull.run[1] = (struct nic_run){ some_address(), fuzz_seldom(4) ? fuzz_word() : len - first }; /* the sum is right, modulo 2^64 */
}

/* The claim is mostly there to be taken.  In b's process, which is this one, b names what is its own to lose. */
static void request(struct nic_packet *q)
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
static void put(struct nic_packet *q, uint32_t len)
{
	request(q);
	q->put.claim = q->ask.claim;
	q->put.buffer = some_buffer();
	q->put.handle = some_handle();
	q->put.addr = fuzz_seldom(4) ? -(uint64_t)len : some_address();
	q->put.part = FUZZ_OF(0, 0, 0, 1, NIC_CLAIM_PLACES, UINT32_MAX);
}

static void body(struct nic_packet *q)
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

static uint32_t some_vi(void)
{
	return fuzz_seldom(6) ? FUZZ_OF(NIC_MAX_VI - 1, NIC_MAX_VI, UINT16_MAX, VIS, fuzz_word()) : avi[fuzz_below(VIS)];
}

/* Cells that the reader takes a packet for. */
static uint32_t cells_of(const struct nic_packet *q)
{
	uint32_t len = q->len_flags & NIC_PF_LEN;

	return q->op != NIC_OP_SEND || len > NIC_INLINE_MAX ? 1 : nic_packet_cells(len);
}

static void hostile_packet(void)
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
	nic_link_publish(link, q, fuzz_seldom(200) ? fuzz_below(NIC_PACKET_CELLS) + 1 : cells_of(q));
}

/* Something that b has really sent, not quite as it was. */
static void mutated_packet(void)
{
	struct nic_link *link = p.b.nic->link[p.a.nic->me];
	int i = fuzz_below(VIS), k = i * DESCS + fuzz_below(DESCS);
	uint32_t before;

	if (!link || nic_vi_state(nic_vi(p.b.nic, bvi[i])) != NIC_VI_CONNECTED || (p.b.desc[k].nseg && !(status_of(&p.b.desc[k]) & NIC_ST_DONE)))
		return;
	before = link->tx_pos;
	fill(&p.b, k, FUZZ_OF(0, 0, NIC_CTL_IMMEDIATE), p.b.mem, some_length());
	link_to(&blast[i], &p.b.desc[k]);
	nic_post_send(p.b.nic, bvi[i], &p.b.desc[k]);
	for (; before != link->tx_pos; before++) {
		struct nic_packet *cell = &link->tx[before & (NIC_RING_CELLS - 1)], was = *cell;

		if (fuzz_seldom(2)) /* seq stays: without it there is no packet */
			fuzz_mutate((uint8_t *)cell + sizeof(uint32_t), sizeof(struct nic_packet) - sizeof(uint32_t));
		if (cells_of(cell) != cells_of(&was) && !fuzz_seldom(20)) { /* as above */
			cell->op = was.op;
			cell->len_flags = was.len_flags;
		}
	}
}

/* ---- a hostile slot ---------------------------------------------------------------------------------------------- */

/* What b says of itself, and an honest peer reads. */
static void hostile_words(void)
{
	struct nic_slot *s = p.b.nic->slot;

	switch (fuzz_below(7)) {
	case 6: /* what it says of a's requests; that a copy is never made or refused costs a wait, and is left out */
		if (p.b.nic->link[p.a.nic->me])
			p.b.nic->link[p.a.nic->me]->asking->claim[fuzz_below(NIC_CLAIMS)].word =
				fuzz_word() | FUZZ_OF(NIC_CLAIM_DONE, NIC_CLAIM_REFUSED, NIC_CLAIM_DONE | NIC_CLAIM_CLOSED) | (uint64_t)fuzz_word() << 32;
		break;
	case 0:
		s->ring_head[p.a.nic->me].head += fuzz_seldom(2) ? fuzz_below(NIC_RING_CELLS) : fuzz_word();
		break;
	case 1:
		s->map_base = FUZZ_OF(0, UINT64_MAX, (uintptr_t)p.b.nic->map, (uintptr_t)p.b.mem, fuzz_word());
		break;
	case 2:
		s->pulls[0] = fuzz_word();
		break;
	case 3:
		s->vis = FUZZ_OF(VIS, 0, NIC_VI_TABLE, UINT32_MAX);
		break;
	case 4:
		s->regions = FUZZ_OF(2, 0, NIC_MMT_ENTRIES, UINT32_MAX);
		break;
	default:
		p.a.nic->map->hdr.used = FUZZ_OF(2, 2, NIC_MAX_SLOTS, NIC_MAX_SLOTS + 1, UINT32_MAX);
	}
}

/* It writes nonsense all over its slot, and dies without a word. */
static void garbage_and_death(void)
{
	struct nic *b = p.b.nic;
	struct nic_slot *s = b->slot;

	p.a.nic->map->hdr.used = fuzz_seldom(8) ? FUZZ_OF(NIC_MAX_SLOTS, NIC_MAX_SLOTS + 1, UINT32_MAX) : 2;
	s->nbuffers = FUZZ_OF(0, 1, 100, NIC_SLOT_BUFFERS, NIC_SLOT_BUFFERS + 1, UINT32_MAX);
	for (int i = 0; i < 100; i++)
		s->buffer[i] = some_buffer();
	fuzz_bytes(s->rx_pos, sizeof(s->rx_pos[0]) * 2);
	fuzz_bytes(s->linked, sizeof(s->linked));
	fuzz_bytes(s->listen, sizeof(s->listen));
	fuzz_bytes(s->peer, sizeof(s->peer[0]) * VIS);
	fuzz_bytes(s->mmt, sizeof(s->mmt[0]) * 4);
	fuzz_bytes(s->vi, sizeof(s->vi[0]) * VIS);
	s->ncounters = fuzz_word();
	s->state = FUZZ_OF(NIC_SLOT_LIVE, NIC_SLOT_LIVE, NIC_SLOT_FREE, NIC_SLOT_SETUP, fuzz_word());
	nic_card_drop(b->card, b->me);
	for (uint32_t i = 0; i < b->nactive; i++)
		free(b->active[i]);
	nic_card_close(b->card);
	free(b);
}

static void newcomer_takes_over(void)
{
	struct nic_desc *r;

	for (int i = 0; i < 3 * NIC_WATCH_POLLS; i++)
		nic_poll(p.a.nic);
	CHECK_EQ(p.a.nic->nactive, 0);
	free(p.b.mem);
	free(p.b.desc);
	free(p.b.send_cq.entry);
	free(p.b.recv_cq.entry);
	end_open(&p.b, device);
	CHECK_EQ(p.b.nic->me, 1);
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	end_vi(&p.b, NIC_RELIABLE_DELIVERY);
	p.a.last_send = NULL;
	CHECK_EQ(pair_connect(&p), NIC_OK);
	r = fill(&p.b, 0, 0, p.b.mem, NIC_INLINE_MAX);
	pattern(p.a.mem, NIC_INLINE_MAX, 3);
	recv_desc(&p.b, r);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, NIC_INLINE_MAX));
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(is_pattern(p.b.mem, NIC_INLINE_MAX, 3));
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void open_queue(struct queue *q)
{
	*q = (struct queue){ .desc = aligned_alloc(NIC_DESC_ALIGN, DESCS * sizeof(struct nic_desc)) };
	memset(q->desc, 0, DESCS * sizeof(struct nic_desc));
}

static void open_round(void)
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
		blast[i] = NULL;
		end_vi(&p.a, level);
		end_vi(&p.b, level);
		avi[i] = p.a.vi;
		bvi[i] = p.b.vi;
	}
}

static void close_round(void)
{
	end_close(&p.a);
	end_close(&p.b);
	free(secret);
	for (int i = 0; i < VIS; i++) {
		free(sq[i].desc);
		free(rq[i].desc);
	}
}

static void connect_vi(int i)
{
	p.a.vi = avi[i];
	p.b.vi = bvi[i];
	nic_disconnect(p.a.nic, avi[i]);
	nic_disconnect(p.b.nic, bvi[i]);
	pair_connect(&p);
}

/* Whatever happened, what was posted comes back. */
static void everything_completes(void)
{
	for (int i = 0; i < VIS; i++) {
		CHECK_EQ(nic_disconnect(p.a.nic, avi[i]), NIC_OK);
		collect(&sq[i]);
		collect(&rq[i]);
		CHECK_EQ(sq[i].posted - sq[i].taken, 0);
		CHECK_EQ(rq[i].posted - rq[i].taken, 0);
	}
}

static void step(void)
{
	int i = fuzz_below(VIS);

	switch (fuzz_below(10)) {
	case 0:
	case 1:
		post_recv(i);
		break;
	case 2:
		post_send(i);
		break;
	case 3:
		nic_poll(p.a.nic);
		break;
	case 4:
		nic_poll(p.b.nic);
		break;
	case 5:
		mutated_packet();
		break;
	case 6:
		if (fuzz_seldom(8))
			hostile_words();
		else if (fuzz_seldom(4) && nic_vi_state(nic_vi(p.a.nic, avi[i])) == NIC_VI_ERROR)
			connect_vi(i);
		break;
	default:
		hostile_packet();
	}
}

static void packets_round(void)
{
	struct nic_addr here, nowhere;

	open_round();
	here = addr_of(p.a.nic, "here");
	nowhere = addr_of(p.a.nic, "nowhere");
	for (int i = 0; i < VIS - 1; i++)
		connect_vi(i);
	nic_peer_request(p.a.nic, avi[VIS - 1], &here, &nowhere); /* packets may come for one that is not connected yet */
	for (int i = 0; i < STEPS; i++)
		step();
	nic_poll(p.a.nic);
	is_sound(p.a.nic);
	everything_completes();
	garbage_and_death();
	newcomer_takes_over();
	close_round();
}

/* ---- connection tables ------------------------------------------------------------------------------------------- */

static void hostile_addr(struct nic_addr *addr)
{
	static const char *const names[] = { "a", "b", "" };

	*addr = addr_of(p.a.nic, names[fuzz_below(3)]);
	if (fuzz_seldom(4))
		addr->disc_len = FUZZ_OF(0, NIC_DISC_MAX, NIC_DISC_MAX + 1, UINT16_MAX);
	if (fuzz_seldom(8))
		fuzz_mutate(addr, sizeof(*addr));
}

static void hostile_end(struct nic_end *end)
{
	const struct nic *who = fuzz_seldom(2) ? p.a.nic : p.b.nic;

	end->slot = fuzz_seldom(6) ? FUZZ_OF(2, NIC_MAX_SLOTS - 1, NIC_MAX_SLOTS, UINT16_MAX) : who->me;
	end->vi = some_vi();
	end->gen = nic_vi(who, end->vi)->gen;
	end->epoch = who->slot->epoch + fuzz_seldom(6);
	end->attr = (struct nic_vi_attr){ 1u << fuzz_below(3), 3, FUZZ_OF(NIC_MAX_TRANSFER, NIC_MAX_TRANSFER, 0, UINT32_MAX), 0 };
	hostile_addr(&end->local);
}

static void hostile_listen(struct nic_listen *l)
{
	uint32_t claimed = NIC_LS_CLAIMED | p.b.nic->me << NIC_LS_SLOT_SHIFT | p.b.nic->slot->epoch << NIC_LS_EPOCH_SHIFT;

	if (fuzz_seldom(6)) {
		fuzz_bytes(l, sizeof(*l));
		return;
	}
	hostile_addr(&l->local);
	hostile_end(&l->client);
	hostile_end(&l->server);
	atomic_store(&l->state, FUZZ_OF(fuzz_below(NIC_LS_ABANDONED + 2), fuzz_below(NIC_LS_ABANDONED + 2), claimed, fuzz_word()));
}

static void hostile_request(struct nic_peer_req *r)
{
	if (fuzz_seldom(6)) {
		fuzz_bytes(r, sizeof(*r));
		return;
	}
	hostile_end(&r->self);
	hostile_end(&r->peer);
	hostile_addr(&r->remote);
	atomic_store(&r->state, FUZZ_OF(NIC_PS_FREE, NIC_PS_PENDING, NIC_PS_MATCHED, NIC_PS_MATCHED, fuzz_word()));
}

static void hostile_tables(void)
{
	struct nic_slot *s = (fuzz_seldom(2) ? p.a : p.b).nic->slot;

	if (fuzz_seldom(2))
		hostile_listen(&s->listen[fuzz_below(4)]);
	else
		hostile_request(&s->peer[fuzz_below(VIS)]);
}

/* Connected, or lost already: but no longer on its way, and not as if nothing had been. */
static void is_settled(uint32_t vi)
{
	uint32_t state = nic_vi_state(nic_vi(p.a.nic, vi));

	CHECK(state == NIC_VI_CONNECTED || state == NIC_VI_ERROR);
}

static void server_call(uint32_t vi)
{
	uint32_t id = fuzz_below(4);
	struct nic_vi_attr attr;
	struct nic_addr addr;

	switch (fuzz_below(5)) {
	case 0:
		hostile_addr(&addr);
		nic_listen_open(p.a.nic, &addr, &id);
		break;
	case 1:
		if (nic_listen_poll(p.a.nic, id, &addr, &attr) == NIC_OK)
			CHECK(addr.disc_len <= NIC_DISC_MAX);
		break;
	case 2:
		nic_listen_close(p.a.nic, id);
		break;
	case 3:
		if (nic_accept(p.a.nic, id, vi) == NIC_OK)
			is_settled(vi);
		break;
	default:
		nic_reject(p.a.nic, id);
	}
}

/* What each VI has asked for: an honest consumer polls and withdraws that, and nothing else. */
static enum { NOTHING, SERVER, PEER } asked[VIS];

static void ask(int i)
{
	struct nic_addr local, remote;

	hostile_addr(&local);
	hostile_addr(&remote);
	if (fuzz_seldom(2) && nic_connect_request(p.a.nic, avi[i], &local, &remote) == NIC_OK)
		asked[i] = SERVER;
	else if (nic_peer_request(p.a.nic, avi[i], &local, &remote) == NIC_OK)
		asked[i] = PEER;
}

static void ask_again(int i)
{
	struct nic_vi_attr attr;
	int err = asked[i] == SERVER ? nic_connect_poll(p.a.nic, avi[i], &attr) : nic_peer_poll(p.a.nic, avi[i], &attr);

	if (err == NIC_OK)
		is_settled(avi[i]);
	if (err != NIC_NOT_DONE)
		asked[i] = NOTHING;
}

static void client_call(int i)
{
	int err;

	if (asked[i] == NOTHING) {
		ask(i);
	} else if (!fuzz_seldom(4)) {
		ask_again(i);
	} else {
		err = asked[i] == SERVER ? nic_connect_cancel(p.a.nic, avi[i]) : nic_peer_cancel(p.a.nic, avi[i]);
		if (err == NIC_OK)
			asked[i] = NOTHING;
	}
}

static void end_request(int i)
{
	nic_disconnect(p.a.nic, avi[i]);
	asked[i] = NOTHING;
}

static void look_round(void)
{
	struct nic_addr local, remote;
	uint32_t cursor = 0;

	while (nic_peer_pending(p.a.nic, &cursor, &local, &remote) == NIC_OK)
		CHECK(local.disc_len <= NIC_DISC_MAX && remote.disc_len <= NIC_DISC_MAX);
}

static void tables_step(void)
{
	int i = fuzz_below(VIS);

	switch (fuzz_below(8)) {
	case 0:
	case 1:
		hostile_tables();
		break;
	case 2:
		server_call(avi[i]);
		break;
	case 3:
	case 4:
		client_call(i);
		break;
	case 5:
		look_round();
		nic_poll(p.a.nic);
		break;
	case 6:
		post_recv(i);
		post_send(i);
		break;
	default:
		if (fuzz_seldom(4))
			end_request(i);
		hostile_packet();
	}
}

static void tables_round(void)
{
	open_round();
	memset(asked, 0, sizeof(asked));
	connect_vi(0);
	for (int i = 0; i < STEPS; i++)
		tables_step();
	is_sound(p.a.nic);
	everything_completes();
	close_round();
}

static void hostile_packets(void)
{
	fuzz_rounds(packets_round, 0.6);
}

static void hostile_connections(void)
{
	fuzz_rounds(tables_round, 0.4);
}

int main(int argc, char **argv)
{
	fuzz_start(argc, argv);
	snprintf(device, sizeof(device), "fuzz-%d", (int)getpid());
	CASE(hostile_packets);
	CASE(hostile_connections);
	return check_done();
}
