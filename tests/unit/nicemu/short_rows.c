/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in buffers that are taken and given back together (nic_take_buffers in ctl/take.c, nic_buf_give_row in ctl/buf.c): the same as one by one.
 */
#include "tests/unit/nicemu/quick.h"

static uint32_t take_row(struct pair *p, struct nic_message *row, uint32_t most)
{
	return nic_take_buffers(p->b.nic, p->b.vi, &p->b.recv_cq, row, most, UINT32_MAX);
}

/* As many as have come in buffers, and no more than are asked for; they are given back together. */
static void taken_in_a_row(void)
{
	static const uint32_t lengths[] = { 1, 48, 49, 600, LEN, NIC_BUFFER_SIZE };
	enum { N = sizeof(lengths) / sizeof(*lengths), MOST = 16 };
	struct nic_message row[MOST];
	struct nic_short m = { .head = 7 };
	struct nic_taken out;
	struct nic_link *link;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	link = p.b.nic->link[p.a.nic->me];
	for (uint32_t most = 0; most <= N + 1; most++) {
		uint64_t packets = counter(p.b.nic, "packets_received"), received = counter(p.b.nic, "recv_short");
		int32_t balance = link->balance + (int32_t)counter(p.b.nic, "buffers_returned");
		uint32_t n = most < N ? most : N, kept;

		for (uint32_t i = 0; i < N; i++) {
			uint8_t *buf = nic_buf_take(p.a.nic);

			pattern(buf, lengths[i], i);
			forge(&p, NIC_OP_SEND_BUF, lengths[i], (uint32_t)((uintptr_t)(buf - p.a.nic->map->buffer[0]) / NIC_BUFFER_SIZE), 0);
		}
		CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		CHECK_EQ(take_row(&p, row, most), n);
		for (uint32_t i = 0; i < n; i++)
			CHECK(row[i].length == lengths[i] && is_pattern(row[i].data, lengths[i], i));
		CHECK_EQ(link->balance + (int32_t)counter(p.b.nic, "buffers_returned"), balance + (int)n);
		CHECK_EQ(counter(p.b.nic, "packets_received"), packets + n);
		CHECK_EQ(counter(p.b.nic, "recv_short"), received + n);
		CHECK_EQ(*link->rx_exact, link->rx_pos); /* who recovers this process's links begins there */
		CHECK_EQ(take_row(&p, row + n, MOST - n), N - n);
		CHECK_EQ(take_row(&p, row, MOST), 0); /* in cells */
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK_EQ(out.length, 8);
		kept = p.b.nic->slot->nbuffers;
		nic_buf_give_row(p.b.nic, row, N);
		CHECK_EQ(p.b.nic->slot->nbuffers, kept + N);
		pair_poll(&p);
	}
	CHECK_EQ(take_row(&p, row, MOST), 0);
	pair_close(&p);
}

/* They end before one that is longer than is wanted, and surplus goes back to the sender while nothing else is taken. */
static void rows_of_some_length(void)
{
	struct nic_message row[8];
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(give(&p, 100 + i, i), NIC_OK);
	for (uint32_t longest = 0; longest < 100; longest += 33)
		CHECK_EQ(nic_take_buffers(p.b.nic, p.b.vi, &p.b.recv_cq, row, 8, longest), 0);
	CHECK_EQ(nic_take_buffers(p.b.nic, p.b.vi, &p.b.recv_cq, row, 8, 101), 2);
	CHECK_EQ(nic_take_buffers(p.b.nic, p.b.vi, &p.b.recv_cq, row + 2, 6, 102), 1);
	CHECK(row[2].length == 102 && is_pattern(row[2].data, 102, 2));
	nic_buf_give_row(p.b.nic, row, 3);
	for (uint32_t lap = 0; lap < 20; lap++) {
		for (uint32_t i = 0; i < 8; i++)
			CHECK_EQ(give(&p, LEN, i), NIC_OK);
		CHECK_EQ(take_row(&p, row, 8), 8);
		nic_buf_give_row(p.b.nic, row, 8);
	}
	CHECK(counter(p.b.nic, "buffers_returned") > 100);
	pair_close(&p);
}

/* None where the first would not be good: no link, a queue that is not the VI's, something in it, a receive that takes no buffers or is not known to. */
static void no_row(void)
{
	struct nic_cq other = { .mask = 15, .entry = calloc(16, 8) };
	struct nic_message row[4];
	struct nic_taken out;
	uint64_t entry;
	struct pair p;

	SKIP_ASKING();
	for (int pool = 0; pool < 2; pool++) {
		pair_open(&p, NIC_RELIABLE_DELIVERY);
		recv_desc(&p.b, fill(&p.b, 0, pool ? NIC_CTL_POOL : 0, p.b.mem, LEN));
		CHECK_EQ(give(&p, 1000, 1), NIC_OK);
		CHECK_EQ(take_row(&p, row, 4), 0);
		if (pool) {
			CHECK_EQ(take(&p, &out), NIC_OK);
			nic_buf_give(p.b.nic, out.buffer);
			CHECK_EQ(give(&p, LEN, 1), NIC_OK);
			CHECK_EQ(nic_take_buffers(p.b.nic, p.b.vi, &other, row, 4, UINT32_MAX), 0);
			CHECK(nic_cq_publish(&p.b.recv_cq, 1));
			CHECK_EQ(take_row(&p, row, 4), 0);
			CHECK(nic_cq_take(&p.b.recv_cq, &entry));
			CHECK_EQ(take_row(&p, row, 4), 1);
			nic_buf_give_row(p.b.nic, row, 1);
		}
		pair_close(&p);
	}
	free(other.entry);
}

/* A row ends before a packet that is no good one, which then goes the way of all such. */
static void rows_end_before_wrong_ones(void)
{
	struct nic_message row[4];

	SKIP_ASKING();
	for (size_t i = 0; i < WRONGS; i++) {
		struct pair p;

		open_quick(&p);
		CHECK_EQ(give(&p, LEN, 1), NIC_OK);
		CHECK_EQ(give(&p, LEN, 2), NIC_OK);
		forge(&p, wrong_packets[i].op, wrong_packets[i].len, wrong_packets[i].buffer, wrong_packets[i].where);
		CHECK_EQ(give(&p, LEN, 3), NIC_OK);
		if (!CHECK_EQ(take_row(&p, row, 4), 2) || !CHECK_EQ(take_row(&p, row + 2, 2), 0))
			fprintf(stderr, "# wrong packet %zu\n", i);
		nic_buf_give_row(p.b.nic, row, 2);
		pair_close(&p);
	}
}

/* Any number of them, whatever they are, and however many there are already. */
static void given_back_in_a_row(void)
{
	static struct nic_message row[NIC_SLOT_BUFFERS];
	enum { MANY = 100 };
	uint32_t *behind, kept;
	uint64_t bad;
	struct nic_slot *slot;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	slot = p.a.nic->slot;
	for (uint32_t n = 0; n <= MANY; n++) {
		for (uint32_t i = 0; i < n; i++)
			row[i].data = (uint8_t *)nic_buf_take(p.a.nic) + i * 7;
		kept = slot->nbuffers;
		nic_buf_give_row(p.a.nic, row, n);
		CHECK_EQ(slot->nbuffers, kept + n);
		for (uint32_t i = 0; i < n; i++)
			CHECK_EQ(slot->buffer[kept + i], (uint32_t)((uintptr_t)((uint8_t *)row[i].data - p.a.nic->map->buffer[0]) / NIC_BUFFER_SIZE));
	}
	kept = slot->nbuffers;
	bad = counter(p.a.nic, "bad_packets");
	row[0].data = nic_buf_take(p.a.nic);
	row[1].data = &p;
	row[2].data = p.a.nic->map->buffer[0] - 1;
	row[3].data = nic_buf_take(p.a.nic);
	nic_buf_give_row(p.a.nic, row, 4);
	CHECK_EQ(slot->nbuffers, kept);
	CHECK_EQ(counter(p.a.nic, "bad_packets"), bad + 2);
	for (uint32_t i = 0; i < NIC_SLOT_BUFFERS; i++)
		row[i].data = p.a.nic->map->buffer[i];
	behind = &slot->buffer[NIC_SLOT_BUFFERS];
	kept = *behind;
	for (uint32_t room = 0; room < 8; room++) {
		slot->nbuffers = 0;
		nic_buf_give_row(p.a.nic, row, NIC_SLOT_BUFFERS - room);
		CHECK_EQ(slot->nbuffers, NIC_SLOT_BUFFERS - room);
		nic_buf_give_row(p.a.nic, row, 5);
		CHECK_EQ(slot->nbuffers, NIC_SLOT_BUFFERS - room + 5 - (room < 5) * 256);
		CHECK_EQ(*behind, kept);
	}
	slot->nbuffers = 0;
	pair_close(&p);
}

int main(void)
{
	CASE(taken_in_a_row);
	CASE(rows_of_some_length);
	CASE(no_row);
	CASE(rows_end_before_wrong_ones);
	CASE(given_back_in_a_row);
	return check_done();
}
