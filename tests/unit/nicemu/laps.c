/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short laps (mem/slot.h): while the peer keeps up, messages go round in the first cells of a link, and nothing is lost where the others are passed
 * over, also when the peer has fallen behind, or has died.
 */
#include "tests/unit/nicemu/quick.h"

enum { CELL = NIC_RING_CELLS - 1, TIMES = 5 * NIC_RING_LAP };

struct lap {
	struct pair p;
	struct nic_link *tx, *rx;
	uint32_t sent, taken, bytes;
	uint32_t most; /* cells of the ring, so far, that are in use */
};

static void lap_open(struct lap *l, uint32_t bytes)
{
	*l = (struct lap){ .bytes = bytes };
	open_quick(&l->p);
	l->tx = l->p.a.nic->link[l->p.b.nic->me];
	l->rx = l->p.b.nic->link[l->p.a.nic->me];
}

static bool lap_send(struct lap *l)
{
	static const uint8_t data[LEN];
	struct nic_short m = { .head = l->sent, .b = data, .blen = l->bytes - 8 };
	uint32_t at = l->tx->tx_pos & CELL;

	l->most = at + 1 > l->most ? at + 1 : l->most;
	if (nic_send_short(l->p.a.nic, l->p.a.vi, &m) != NIC_OK)
		return false;
	l->sent++;
	return true;
}

static bool lap_take(struct lap *l)
{
	struct nic_taken out;
	uint64_t head;

	if (take(&l->p, &out) != NIC_OK)
		return false;
	memcpy(&head, out.data, sizeof(head));
	CHECK(head == l->taken && out.length == l->bytes);
	if (out.buffer)
		nic_buf_give(l->p.b.nic, out.buffer);
	l->taken++;
	return true;
}

static void lap_close(struct lap *l)
{
	CHECK_EQ(l->taken, l->sent);
	nic_poll(l->p.a.nic);
	nic_poll(l->p.b.nic); /* what passes over cells may be the last */
	CHECK_EQ(l->rx->rx_pos, l->tx->tx_pos);
	CHECK_EQ(counter(l->p.b.nic, "bad_packets"), 0);
	CHECK_EQ(counter(l->p.b.nic, "packets_received"), counter(l->p.a.nic, "packets_sent"));
	pair_close(&l->p);
}

/* Eight that nobody has taken yet, four of each lap. */
static void lap_across(struct lap *l)
{
	while ((l->tx->tx_pos + 4) & (NIC_RING_LAP - 1))
		CHECK(lap_send(l) && lap_take(l));
	for (uint32_t n = 0; n < 8; n++)
		CHECK(lap_send(l));
	CHECK_EQ(l->tx->tx_pos & CELL, 4);
}

/* Messages of a cell, of two, and in buffers. */
static void first_cells_go_round(void)
{
	static const uint32_t bytes[] = { 8, 40, 100, 300 };
	struct lap l;

	SKIP_ASKING();
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		lap_open(&l, bytes[i]);
		for (uint32_t n = 0; n < TIMES; n++)
			CHECK(lap_send(&l) && lap_take(&l));
		CHECK_EQ(l.most, NIC_RING_LAP);
		CHECK(l.tx->tx_pos / NIC_RING_CELLS >= TIMES / NIC_RING_LAP - 1);
		lap_close(&l);
	}
}

/* An answer is still one: what is passed over is nothing that came. */
static void answers_are_told(void)
{
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, 8);
	while (l.tx->tx_pos & (NIC_RING_LAP - 1)) /* up to the end of a lap */
		CHECK(lap_send(&l) && lap_take(&l));
	l.rx->answered = l.rx->rx_pos;
	nic_poll(l.p.b.nic);
	CHECK_EQ(l.rx->rx_pos & CELL, 0);
	CHECK_EQ(l.rx->answered, l.rx->rx_pos);
	lap_close(&l);
}

/* Long ones in buffers use the whole ring: their cells are the least of them. */
static void long_ones_use_all(void)
{
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, LEN);
	for (uint32_t n = 0; n < NIC_RING_CELLS; n++)
		CHECK(lap_send(&l) && lap_take(&l));
	CHECK_EQ(l.most, NIC_RING_CELLS);
	lap_close(&l);
}

/* Nor where as many come as go. */
static void not_where_both_send(void)
{
	static const uint8_t data[8];
	struct nic_short m = { .head = 9, .b = data, .blen = sizeof(data) };
	struct nic_taken out;
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, 8);
	recv_desc(&l.p.a, fill(&l.p.a, 0, NIC_CTL_POOL, l.p.a.mem, 64));
	for (uint32_t n = 0; n < 2 * NIC_RING_LAP; n++) {
		CHECK(lap_send(&l) && lap_take(&l));
		if (n % 2)
			continue;
		CHECK_EQ(nic_send_short(l.p.b.nic, l.p.b.vi, &m), NIC_OK);
		out = (struct nic_taken){ .data = room };
		CHECK_EQ(nic_take_of(l.p.a.nic, l.p.a.vi, &l.p.a.recv_cq, &out), NIC_OK);
	}
	CHECK_EQ(l.tx->tx_pos, l.sent + 1); /* and one of open_quick */
	for (uint32_t n = 0; n < 2 * NIC_RING_CELLS; n++) { /* one way again */
		l.most = n == NIC_RING_CELLS ? 0 : l.most;
		CHECK(lap_send(&l) && lap_take(&l));
	}
	CHECK_EQ(l.most, NIC_RING_LAP);
	lap_close(&l);
}

/* Who has no buffer takes what needs none. */
static void passed_without_buffers(void)
{
	struct lap l;
	void *all;

	SKIP_ASKING();
	lap_open(&l, 8);
	all = end_take_all(&l.p.b);
	for (uint32_t i = 0; i < 2 * NIC_RING_LAP; i++)
		CHECK(lap_send(&l) && lap_take(&l));
	CHECK(l.tx->tx_pos > 2 * NIC_RING_CELLS);
	end_give_back(&l.p.b, all);
	lap_close(&l);
}

/* Behind by more than a lap, the peer finds all cells in use; when it has caught up there are few again. */
static void who_is_behind_has_the_ring(void)
{
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, 8);
	for (uint32_t n = 0; n < 3 * NIC_RING_LAP; n++)
		CHECK(lap_send(&l));
	CHECK_EQ(l.tx->tx_pos, l.sent + 1); /* and one of open_quick */
	while (lap_take(&l))
		;
	for (uint32_t n = 0; n < NIC_RING_LAP; n++)
		CHECK(lap_send(&l) && lap_take(&l));
	l.most = 0;
	for (uint32_t n = 0; n < TIMES; n++)
		CHECK(lap_send(&l) && lap_take(&l));
	CHECK_EQ(l.most, NIC_RING_LAP);
	lap_close(&l);
}

/* No cell keeps its number for so long that the 32 bits bring it back. */
static void now_and_then_all_are_used(void)
{
	uint32_t full = 0, lap = 0;
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, 8);
	while (lap <= 2 * NIC_RING_FULL) {
		if (!CHECK(lap_send(&l) && lap_take(&l)))
			break;
		if (l.tx->tx_pos / NIC_RING_CELLS == lap)
			continue;
		lap++;
		full += l.most == NIC_RING_CELLS;
		CHECK(l.most == NIC_RING_CELLS || l.most == NIC_RING_LAP);
		l.most = 0;
	}
	CHECK_EQ(full, 2);
	lap_close(&l);
}

/* A row ends where cells are passed over. */
static void rows_go_on_behind(void)
{
	struct nic_brief row[8];
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, 8);
	lap_across(&l);
	CHECK_EQ(nic_take_row(l.p.b.nic, l.p.b.vi, &l.p.b.recv_cq, row, 8), 4);
	l.taken += 4;
	CHECK_EQ(nic_take_row(l.p.b.nic, l.p.b.vi, &l.p.b.recv_cq, row, 8), 0);
	CHECK(lap_take(&l));
	CHECK_EQ(nic_take_row(l.p.b.nic, l.p.b.vi, &l.p.b.recv_cq, row, 8), 3);
	l.taken += 3;
	lap_close(&l);
}

/* What lies behind passed cells on the link of one that has died comes back, too. */
static void found_after_a_death(void)
{
	struct lap l;

	SKIP_ASKING();
	lap_open(&l, 300);
	lap_across(&l);
	nic_poll(l.p.a.nic); /* takes what came back */
	nic_card_lock(l.p.a.nic->card);
	nic_buffer_recover(l.p.a.nic, l.p.b.nic->me);
	nic_card_unlock(l.p.a.nic->card);
	CHECK_EQ(l.p.a.nic->map->pool.bump - l.p.a.nic->map->pool.nfree, l.p.a.nic->slot->nbuffers);
	l.rx->rx_pos = nic_load_relaxed(l.rx->rx_exact);
	CHECK_EQ(l.rx->rx_pos, l.tx->tx_pos);
	pair_close(&l.p);
}

int main(void)
{
	CASE(first_cells_go_round);
	CASE(answers_are_told);
	CASE(long_ones_use_all);
	CASE(not_where_both_send);
	CASE(passed_without_buffers);
	CASE(who_is_behind_has_the_ring);
	CASE(now_and_then_all_are_used);
	CASE(rows_go_on_behind);
	CASE(found_after_a_death);
	return check_done();
}
