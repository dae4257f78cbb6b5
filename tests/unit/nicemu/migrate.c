/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines that migrate (util/atomic.h): of a stream the receiver makes cells and buffers its own before they go back, and what is in them stays; where
 * messages go to and fro nothing migrates.
 */
#include "tests/unit/nicemu/quick.h"

enum { TIMES = 100 };

static void open_migrating(struct pair *p, const char *migrate)
{
	CHECK_EQ(nic_param_set("migrate", migrate, "test"), NIC_OK);
	CHECK_EQ(nic_param_set("demote", "off", "test"), NIC_OK);
	open_quick(p);
	CHECK_EQ(nic_param_set("migrate", "auto", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
}

/* Sent from a to b in a buffer, and what b then says of the buffer. */
static bool is_surplus(struct pair *p, uint32_t len, uint32_t seed)
{
	struct nic_taken out;
	bool surplus;

	if (!CHECK_EQ(give(p, len, seed), NIC_OK) || !CHECK_EQ(take(p, &out), NIC_OK) || !CHECK(out.buffer))
		return false;
	surplus = out.surplus;
	CHECK(is_pattern(out.data, len, seed));
	nic_buf_read(p->b.nic, out.data, len);
	CHECK(is_pattern(out.data, len, seed));
	nic_buf_give(p->b.nic, out.buffer);
	return surplus;
}

/* Of what may be somebody else's nothing changes, in whatever piece of it. */
static void foreign_lines_stay(void)
{
	static _Alignas(64) uint8_t memory[40 * 64], same[sizeof(memory)];

	for (size_t i = 0; i < sizeof(memory); i++)
		same[i] = memory[i] = (uint8_t)(i * 7 + i / 64);
	for (size_t len = 0; len <= sizeof(memory) - 64; len += 61) {
		nic_migrate_foreign_lines(memory + 64, len);
		CHECK(memcmp(memory, same, sizeof(memory)) == 0);
	}
}

/* ---- buffers --------------------------------------------------------------------------------------------------------------------- */

/* In a stream, from half of what the receiver keeps on. */
static void surplus_of_a_stream(void)
{
	struct nic_link *link;
	struct pair p;
	uint64_t before;

	SKIP_ASKING();
	open_migrating(&p, "on");
	link = p.b.nic->link[p.a.nic->me];
	before = counter(p.b.nic, "migrated");
	for (uint32_t i = 0; i < TIMES; i++)
		CHECK_EQ(is_surplus(&p, LEN + i, i), i + 2 > link->keeps / 2u); /* open_quick has sent one */
	CHECK_EQ(counter(p.b.nic, "migrated"), before + TIMES);
	CHECK(counter(p.b.nic, "buffers_returned") > 0);
	pair_close(&p);
}

/* The same of those that are taken together. */
static void surplus_of_a_row(void)
{
	struct nic_message row[8];
	struct pair p;

	SKIP_ASKING();
	open_migrating(&p, "on");
	for (uint32_t lap = 0; lap < 10; lap++) {
		bool surplus = p.b.nic->link[p.a.nic->me]->balance > p.b.nic->keeps / 2;

		for (uint32_t i = 0; i < 8; i++)
			CHECK_EQ(give(&p, LEN, i), NIC_OK);
		if (!CHECK_EQ(nic_take_buffers(p.b.nic, p.b.vi, &p.b.recv_cq, row, 8, LEN), 8))
			break;
		for (uint32_t i = 0; i < 8; i++)
			CHECK_EQ(row[i].surplus, surplus);
		CHECK(lap < 4 || surplus);
		nic_buf_give_row(p.b.nic, row, 8);
	}
	pair_close(&p);
}

/* Where as many go back with messages in them they are written where they were read. */
static void no_surplus_to_and_fro(void)
{
	struct pair p;

	SKIP_ASKING();
	open_migrating(&p, "on");
	recv_desc(&p.a, fill(&p.a, 0, NIC_CTL_POOL, p.a.mem, 64));
	for (uint32_t i = 0; i < TIMES; i++) {
		struct nic_taken out = { .data = room };
		uint8_t *back = nic_buf_take(p.b.nic);

		CHECK(!is_surplus(&p, LEN, i));
		if (!CHECK(back) || !CHECK_EQ(nic_send_given(p.b.nic, p.b.vi, back, LEN), NIC_OK))
			break;
		if (nic_take_of(p.a.nic, p.a.vi, &p.a.recv_cq, &out) != NIC_OK) /* the first one is looked at in all */
			CHECK_EQ(nic_take(p.a.nic, &p.a.recv_cq, &out), LEN);
		CHECK(!out.surplus);
		nic_buf_give(p.a.nic, out.buffer);
	}
	pair_close(&p);
}

static void none_when_off(void)
{
	struct pair p;

	SKIP_ASKING();
	open_migrating(&p, "off");
	for (uint32_t i = 0; i < TIMES; i++)
		CHECK(!is_surplus(&p, LEN, i));
	pair_close(&p);
}

/* The NIC itself has read what it copies into a receive. */
static void copied_into_receives(void)
{
	const unsigned AT_ONCE = 10;

	SKIP_ASKING();
	for (int on = 0; on < 2; on++) {
		struct pair p;
		uint64_t before;

		open_migrating(&p, on ? "on" : "off");
		before = counter(p.b.nic, "migrated");
		nic_rx_flush(p.b.nic, p.b.vi); /* the receive that takes buffers */
		for (uint32_t lap = 0; lap < 10; lap++) {
			for (uint32_t i = 0; i < AT_ONCE; i++) {
				struct nic_desc *d = fill(&p.b, i + 1, 0, p.b.mem + i * LEN, i % 2 ? LEN : 1000);

				if (i % 2 == 0) { /* two segments */
					d->nseg = 2;
					d->seg[1] = d->seg[0];
					d->seg[1].addr += 1000;
					d->seg[1].length = LEN - 1000;
				}
				recv_desc(&p.b, d);
				CHECK_EQ(give(&p, LEN, lap + i), NIC_OK);
			}
			pair_poll(&p);
			for (uint32_t i = 0; i < AT_ONCE; i++)
				CHECK(is_pattern(p.b.mem + i * LEN, LEN, lap + i));
		}
		if (on)
			CHECK(counter(p.b.nic, "migrated") - before >= 3 * (10 * AT_ONCE - p.b.nic->keeps) / 2); /* three pieces of two messages */
		else
			CHECK_EQ(counter(p.b.nic, "migrated"), before);
		pair_close(&p);
	}
}

/* Without cross-memory attach what is long and read or written goes in buffers, too. */
static void read_and_written(void)
{
	enum { N = 40, BYTES = 20000 };
	static const uint16_t ops[] = { NIC_CTL_RDMA_WRITE, NIC_CTL_RDMA_READ };

	SKIP_ASKING();
	for (int i = 0; i < 2; i++) {
		struct end *reader;
		struct pair p;
		uint64_t before;

		CHECK_EQ(nic_param_set("cma", "off", "test"), NIC_OK);
		open_migrating(&p, "on");
		CHECK_EQ(nic_param_set("cma", "auto", "test"), NIC_OK);
		reader = i ? &p.a : &p.b;
		before = counter(reader->nic, "migrated");
		for (int k = 0; k < N; k++) {
			struct nic_desc *d = fill(&p.a, 1 + k, ops[i], p.a.mem + k * BYTES, BYTES);

			pattern((i ? p.b.mem : p.a.mem) + k * BYTES, BYTES, k);
			d->nseg = 2;
			d->seg[1] = d->seg[0];
			d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem + k * BYTES, p.b.handle, 0 };
			send_desc(&p.a, d);
			pair_poll(&p);
			CHECK_EQ(status_of(d), NIC_ST_DONE | (i ? NIC_ST_OP_RDMA_READ : NIC_ST_OP_RDMA_WRITE));
			CHECK(is_pattern(reader->mem + k * BYTES, BYTES, k));
		}
		CHECK(counter(reader->nic, "migrated") > before);
		pair_close(&p);
	}
}

/* What is no part of a buffer is not touched. */
static void only_in_the_pool(void)
{
	struct pair p;
	uint8_t *buf, *pool;
	uint64_t before;

	SKIP_ASKING();
	open_migrating(&p, "on");
	pool = p.b.nic->pool;
	before = counter(p.b.nic, "migrated");
	buf = nic_buf_take(p.b.nic);
	nic_buf_read(p.b.nic, room, 64);
	nic_buf_read(p.b.nic, pool - 1, 1);
	nic_buf_read(p.b.nic, buf, NIC_BUFFER_SIZE + 1);
	nic_buf_read(p.b.nic, buf + 64, NIC_BUFFER_SIZE - 63);
	nic_buf_read(p.b.nic, buf, UINT32_MAX);
	CHECK_EQ(counter(p.b.nic, "migrated"), before);
	CHECK_EQ(counter(p.b.nic, "bad_packets"), 5);
	nic_buf_read(p.b.nic, buf, NIC_BUFFER_SIZE);
	nic_buf_read(p.b.nic, buf + 100, NIC_BUFFER_SIZE - 100);
	nic_buf_read(p.b.nic, buf + 100, 0);
	CHECK_EQ(counter(p.b.nic, "migrated"), before + 3);
	/* A copy is one from anywhere. */
	pattern(buf + 24, LEN, 5);
	nic_buf_copy(p.b.nic, p.b.mem, buf + 24, LEN);
	CHECK(is_pattern(p.b.mem, LEN, 5) && is_pattern(buf + 24, LEN, 5));
	CHECK_EQ(counter(p.b.nic, "migrated"), before + 4);
	pattern(p.a.mem, LEN, 6);
	nic_buf_copy(p.b.nic, p.b.mem, p.a.mem, LEN);
	CHECK(is_pattern(p.b.mem, LEN, 6));
	nic_buf_copy(p.b.nic, p.b.mem, buf, 100); /* the line before it is another buffer's */
	CHECK(memcmp(p.b.mem, buf, 100) == 0);
	CHECK_EQ(counter(p.b.nic, "migrated"), before + 5);
	CHECK_EQ(counter(p.b.nic, "bad_packets"), 5);
	nic_buf_give(p.b.nic, buf);
	pair_close(&p);
}

/* ---- cells ----------------------------------------------------------------------------------------------------------------------- */

/* `len` bytes from one end to the other, which looks once more than it needs to. */
static void pass(struct end *from, struct end *to, uint64_t head, uint32_t len)
{
	static const uint8_t data[NIC_INLINE_MAX];
	struct nic_short m = { .head = head, .b = data, .blen = len - 8 };
	struct nic_taken out = { .data = room };

	CHECK_EQ(nic_send_short(from->nic, from->vi, &m), NIC_OK);
	if (nic_take_of(to->nic, to->vi, &to->recv_cq, &out) != NIC_OK)
		CHECK_EQ(nic_take(to->nic, &to->recv_cq, &out), len);
	CHECK(!out.buffer && room[0] == head);
	out = (struct nic_taken){ .data = room };
	CHECK_EQ(nic_take_of(to->nic, to->vi, &to->recv_cq, &out), NIC_NOT_DONE);
}

/* All cells of a stream that were read do, those that it passes over do not, and messages have what they should. */
static void cells_of_a_stream(void)
{
	SKIP_ASKING();
	for (uint32_t len = 40; len <= 108; len += 68) {
		struct nic_link *link;
		struct pair p;
		uint64_t cells;

		open_migrating(&p, "on");
		link = p.b.nic->link[p.a.nic->me];
		for (uint32_t i = 0; i < 20 * NIC_RING_LAP; i++)
			pass(&p.a, &p.b, i, len);
		nic_poll(p.b.nic);
		cells = counter(p.b.nic, "packets_received") + (len > NIC_PAYLOAD ? 20 * NIC_RING_LAP : 0) - (link->rx_pos - link->rx_told);
		CHECK(link->rx_pos > cells + NIC_RING_CELLS); /* some were passed over */
		CHECK_EQ(counter(p.b.nic, "migrated_cells"), cells);
		pair_close(&p);
	}
}

static void cells_to_and_fro_stay(void)
{
	struct pair p;

	SKIP_ASKING();
	open_migrating(&p, "on");
	recv_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 64));
	for (uint32_t i = 0; i < 4 * NIC_RING_LAP; i++) {
		pass(&p.a, &p.b, i, 40);
		pass(&p.b, &p.a, i, 40);
	}
	CHECK_EQ(counter(p.a.nic, "migrated_cells"), 0);
	CHECK_EQ(counter(p.b.nic, "migrated_cells"), 0);
	/* Until one of them answers no more. */
	for (uint32_t i = 0; i < 4 * NIC_RING_LAP; i++)
		pass(&p.a, &p.b, i, 40);
	CHECK(counter(p.b.nic, "migrated_cells") >= 3 * NIC_RING_LAP);
	pair_close(&p);
}

static void no_cells_when_off(void)
{
	struct pair p;

	SKIP_ASKING();
	open_migrating(&p, "off");
	for (uint32_t i = 0; i < 4 * NIC_RING_LAP; i++)
		pass(&p.a, &p.b, i, 40);
	CHECK_EQ(counter(p.b.nic, "migrated_cells"), 0);
	pair_close(&p);
}

int main(void)
{
	CASE(surplus_of_a_stream);
	CASE(surplus_of_a_row);
	CASE(no_surplus_to_and_fro);
	CASE(none_when_off);
	CASE(copied_into_receives);
	CASE(read_and_written);
	CASE(only_in_the_pool);
	CASE(foreign_lines_stay);
	CASE(cells_of_a_stream);
	CASE(cells_to_and_fro_stay);
	CASE(no_cells_when_off);
	return check_done();
}
