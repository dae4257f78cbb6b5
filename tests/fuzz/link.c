/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer (tests/fuzz/hostile.h) on a link: nonsense and half-sense in its packets and in the words of its slot, and its
 * death in the midst of it, after which another takes the slot.
 */
#include "tests/fuzz/hostile.h"

static struct nic_desc *blast[VIS]; /* that b has posted last */

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
		if (cells_of(before, cell) != cells_of(before, &was) && !fuzz_seldom(20)) { /* as above */
			cell->op = was.op;
			cell->len_flags = was.len_flags;
		}
	}
}

/* ---- a hostile slot ---------------------------------------------------------------------------------------------- */

/* What it says of a's requests.  That a copy, or a part of a write, is claimed and never made or refused costs a wait, and is left out. */
static void hostile_claim(void)
{
	struct nic_link *ab = p.a.nic->link[p.b.nic->me], *ba = p.b.nic->link[p.a.nic->me];
	uint32_t i = fuzz_below(NIC_CLAIMS);
	struct nic_claim *claim;

	if (!ab || !ba)
		return;
	claim = &ba->asking->claim[i];
	if (ab->ask[i].open && ab->ask[i].op == NIC_OP_WRITE_PART)
		claim->word = (claim->word & ~(uint64_t)UINT32_MAX) | fuzz_below(64) * (NIC_CLAIM_PLACED + 1u);
	else
		claim->word = fuzz_word() | FUZZ_OF(NIC_CLAIM_DONE, NIC_CLAIM_REFUSED, NIC_CLAIM_DONE | NIC_CLAIM_CLOSED) | (uint64_t)fuzz_word() << 32;
}

/* What b says of itself, and an honest peer reads. */
static void hostile_words(void)
{
	struct nic_slot *s = p.b.nic->slot;

	switch (fuzz_below(7)) {
	case 6:
		hostile_claim();
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

/* ---- the short ways, by which the honest one takes and sends, too ------------------------------------------------- */

static void *held[64]; /* buffers that a has taken and not given back */
static unsigned nheld;

static void drop_completions(void)
{
	uint64_t entry;

	while (nic_cq_take(&p.a.recv_cq, &entry))
		;
}

static void take_row(int i)
{
	struct nic_brief row[16];
	uint32_t n = nic_take_row(p.a.nic, avi[i], &p.a.recv_cq, row, 16);

	CHECK(n <= 16);
	for (uint32_t k = 0; k < n; k++)
		CHECK(row[k].length && row[k].length <= NIC_BRIEF);
}

static void take_buffers(int i)
{
	struct nic_message row[16];
	uint32_t longest = FUZZ_OF(0, 100, 5000, NIC_BUFFER_SIZE, UINT32_MAX);
	uint32_t n = nic_take_buffers(p.a.nic, avi[i], &p.a.recv_cq, row, fuzz_below(17), longest);

	CHECK(n <= 16);
	for (uint32_t k = 0; k < n; k++) {
		uint64_t off = (uintptr_t)row[k].data - (uintptr_t)p.a.nic->map->buffer;

		CHECK(row[k].length && row[k].length <= longest && off < sizeof(p.a.nic->map->buffer) &&
		      off % NIC_BUFFER_SIZE + row[k].length <= NIC_BUFFER_SIZE);
	}
	nic_buf_give_row(p.a.nic, row, n);
}

/* One, of any VI or of that one: whole, in the room that was given for it or in a buffer of the pool. */
static void take_one(int i, bool any)
{
	enum { GUARD = 0x5a };
	static uint64_t room[(NIC_INLINE_MAX + 7) / 8 + 1];
	uint8_t *behind = (uint8_t *)room + NIC_INLINE_MAX;
	struct nic_taken out = { .data = room };
	uint64_t off;

	*behind = GUARD;
	if (any ? !nic_take(p.a.nic, &p.a.recv_cq, &out) : nic_take_of(p.a.nic, avi[i], &p.a.recv_cq, &out) != NIC_OK)
		return;
	CHECK_EQ(out.cookie, (uintptr_t)&p.a);
	CHECK_EQ(*behind, GUARD);
	if (!out.buffer) {
		CHECK(out.data == room && out.length && out.length <= NIC_INLINE_MAX);
		return;
	}
	off = (uintptr_t)out.data - (uintptr_t)p.a.nic->map->buffer;
	CHECK(out.data == out.buffer && off < sizeof(p.a.nic->map->buffer) && out.length && off % NIC_BUFFER_SIZE + out.length <= NIC_BUFFER_SIZE);
	if (nheld < 64)
		held[nheld++] = out.buffer;
	else
		nic_buf_give(p.a.nic, out.buffer);
}

/* What somebody waits for: it is in the room that was given for it, and its buffer is not the consumer's. */
static void take_expected(int i)
{
	enum { GUARD = 0x5a };
	static uint8_t room[NIC_BUFFER_SIZE + 1];
	uint32_t most = FUZZ_OF(0, 32, 33, 200, 1000, NIC_BUFFER_SIZE - NIC_EXPECTED, NIC_BUFFER_SIZE);
	struct nic_expected m = { .head = 5, .mask = fuzz_seldom(2) ? UINT64_MAX : 0, .key = 0, .to = room, .room = most };

	room[most] = GUARD;
	if (nic_take_expected(p.a.nic, avi[i], &p.a.recv_cq, &m, 1 + fuzz_below(2)) == NIC_OK)
		CHECK(m.length <= most && m.length <= NIC_BUFFER_SIZE - NIC_EXPECTED);
	CHECK_EQ(room[most], GUARD);
}

static void take_short(int i)
{
	if (fuzz_seldom(2))
		drop_completions();
	if (fuzz_seldom(3))
		take_expected(i);
	if (fuzz_seldom(4))
		take_row(i);
	else if (fuzz_seldom(4))
		take_buffers(i);
	else
		take_one(i, fuzz_seldom(3));
}

static void send_short(struct nic *nic, uint32_t vi)
{
	static uint8_t bytes[NIC_BUFFER_SIZE + 1];
	uint32_t len = FUZZ_OF(8, 9, 48, 49, 108, 109, 400, 401, 928, 929, NIC_INLINE_MAX, NIC_INLINE_MAX + 1, 5000, NIC_BUFFER_SIZE,
	                       NIC_BUFFER_SIZE + 1), cut = fuzz_below(len - 7);
	struct nic_short m = { .head = 5, .a = bytes, .alen = cut, .b = bytes + cut, .blen = len - 8 - cut };

	if (nic_send_short(nic, vi, &m) == NIC_OK)
		CHECK(len <= NIC_BUFFER_SIZE);
}

static void send_given(struct nic *nic, uint32_t vi)
{
	uint8_t *buf = nic == p.a.nic && nheld ? held[--nheld] : nic_buf_take(nic);
	uint32_t at, len;

	if (!buf)
		return;
	at = (uint32_t)((uintptr_t)buf - (uintptr_t)nic->map->buffer) % NIC_BUFFER_SIZE; /* a peer may have put a message in its middle */
	len = FUZZ_OF(0, 48, 49, 401, 5000, NIC_BUFFER_SIZE - at, NIC_BUFFER_SIZE - at + 1, NIC_BUFFER_SIZE + 1, UINT32_MAX);
	if (nic_send_given(nic, vi, buf, len) == NIC_OK)
		CHECK(len > 48 && len <= NIC_BUFFER_SIZE - at);
	else
		nic_buf_give(nic, buf);
}

static void post_write(int i)
{
	static uint8_t bytes[NIC_POSTED_MAX + 1];
	uint32_t len = FUZZ_OF(0, 1, 24, 25, 1000, NIC_POSTED_MAX, NIC_POSTED_MAX + 1);
	struct nic_posted w = { bytes, (uintptr_t)p.b.mem + fuzz_below(PAIR_MEM), p.b.handle, len };

	if (nic_rdma_post(p.a.nic, avi[i], &w) == NIC_OK)
		CHECK(len && len <= NIC_POSTED_MAX);
}

static void fetch(int i)
{
	static uint8_t bytes[NIC_FETCH_MAX + 1];
	uint32_t len = FUZZ_OF(0, 1, 56, 57, 600, NIC_FETCH_MAX, NIC_FETCH_MAX + 1);
	struct nic_fetch f = { bytes, (uintptr_t)p.b.mem + fuzz_below(PAIR_MEM), p.b.handle, len };

	bytes[NIC_FETCH_MAX] = 0x5A;
	if (nic_rdma_fetch(p.a.nic, avi[i], &f) == NIC_OK)
		CHECK(len && len <= NIC_FETCH_MAX);
	CHECK_EQ(bytes[NIC_FETCH_MAX], 0x5A);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static uint32_t mild; /* of so many packets of the round that could be hostile one is: what was found good once must live for a while */

static void step(void)
{
	int i = fuzz_below(VIS);

	switch (fuzz_below(18)) {
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
		if (fuzz_seldom(mild))
			mutated_packet();
		break;
	case 6:
		if (fuzz_seldom(8))
			hostile_words();
		else if (fuzz_seldom(4) && nic_vi_state(nic_vi(p.a.nic, avi[i])) == NIC_VI_ERROR)
			connect_vi(i);
		break;
	case 7:
	case 8:
		take_short(i);
		break;
	case 9:
		send_short(p.a.nic, avi[i]);
		break;
	case 10:
		send_short(p.b.nic, bvi[i]);
		break;
	case 11:
		send_given(p.b.nic, bvi[i]);
		break;
	case 12:
		send_given(p.a.nic, avi[i]);
		break;
	case 13:
		post_write(i);
		break;
	case 14:
		fetch(i);
		break;
	default:
		if (fuzz_seldom(mild))
			hostile_packet();
	}
	if (mild > 1 && fuzz_seldom(4) && nic_vi_state(nic_vi(p.a.nic, avi[i])) != NIC_VI_CONNECTED && i < VIS - 1)
		connect_vi(i);
}

static void packets_round(void)
{
	struct nic_addr here, nowhere;

	open_round();
	memset(blast, 0, sizeof(blast));
	here = addr_of(p.a.nic, "here");
	nowhere = addr_of(p.a.nic, "nowhere");
	for (int i = 0; i < VIS - 1; i++)
		connect_vi(i);
	nic_peer_request(p.a.nic, avi[VIS - 1], &here, &nowhere); /* packets may come for one that is not connected yet */
	mild = FUZZ_OF(1, 1, 4, 20);
	for (int i = 0; i < (mild > 1 ? 3 * STEPS : STEPS); i++)
		step();
	while (nheld)
		nic_buf_give(p.a.nic, held[--nheld]);
	nic_poll(p.a.nic);
	is_sound(p.a.nic);
	everything_completes();
	garbage_and_death();
	newcomer_takes_over();
	close_round();
}

static void hostile_packets(void)
{
	fuzz_rounds(packets_round, 1);
}

int main(int argc, char **argv)
{
	fuzz_start(argc, argv);
	hostile_start();
	CASE(hostile_packets);
	return check_done();
}
