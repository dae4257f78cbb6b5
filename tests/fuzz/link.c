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
	memset(blast, 0, sizeof(blast));
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
