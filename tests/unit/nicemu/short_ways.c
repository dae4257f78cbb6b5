/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short ways at both ends of a link: a message by value or in a buffer that changes hands, without its receive (ctl/take.c), or
 * without a descriptor (ctl/give.c).  What was found good once is not looked at again: what is wrong must be seen all the same.
 */
#include "tests/unit/nicemu/quick.h"

/* One of 500 bytes, which the receiver takes and has done with. */
static void pass_one(struct pair *p)
{
	static const uint8_t data[492];
	struct nic_short m = { .head = 5, .b = data, .blen = sizeof(data) };
	struct nic_taken out;

	CHECK_EQ(nic_send_short(p->a.nic, p->a.vi, &m), NIC_OK);
	CHECK_EQ(take(p, &out), NIC_OK);
	CHECK_EQ(out.length, 500);
	if (out.buffer)
		nic_buf_give(p->b.nic, out.buffer);
}

/* ---- taken ----------------------------------------------------------------------------------------------------------------------- */

/* By its room, or, where it may have a buffer, for whatever there is. */
static void taken_by_value(void)
{
	static const uint16_t control[] = { 0, NIC_CTL_POOL };
	uint64_t data[NIC_INLINE_MAX / 8 + 1];
	struct nic_taken out = { .data = data };
	struct nic_vi_ctx *ctx;
	struct pair p;
	uint64_t entry;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	ctx = &p.b.nic->slot->vi[p.b.vi];
	for (int i = 0; i < 2; i++) {
		struct nic_short m = { .head = 7 };

		recv_desc(&p.b, fill(&p.b, i, control[i], p.b.mem, 48));
		CHECK_EQ(ctx->rx_quick, 0);
		CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		CHECK_EQ(nic_take_of(p.b.nic, p.b.vi, &p.b.recv_cq, &out), NIC_OK);
		CHECK(out.length == 8 && data[0] == 7);
		CHECK_EQ(ctx->rx_quick, control[i] ? NIC_BUFFER_SIZE : 48);
		CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		pair_poll(&p);
		CHECK_EQ(status_of(&p.b.desc[i]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
		CHECK(nic_cq_take(&p.b.recv_cq, &entry));
	}
	CHECK_EQ(ctx->rx_quick, 0);
	pair_close(&p);
}

/* In a buffer: the first, which is looked at in all, and those behind it; the receiver keeps count of whose it has. */
static void taken_in_buffers(void)
{
	struct nic_link *link;
	struct nic_taken out;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	link = p.b.nic->link[p.a.nic->me];
	CHECK_EQ(link->balance, 1);
	for (uint32_t i = 2; i < 10; i++) {
		CHECK_EQ(give(&p, LEN + i, i), NIC_OK);
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK(out.buffer && out.buffer == out.data && out.length == LEN + i && is_pattern(out.data, LEN + i, i));
		CHECK_EQ(link->balance, (int)i);
		CHECK_EQ(p.a.nic->link[p.b.nic->me]->balance, -(int)i);
		nic_buf_give(p.b.nic, out.buffer);
	}
	CHECK_EQ(take(&p, &out), NIC_NOT_DONE);
	CHECK_EQ(p.a.nic->map->pool.bump - p.a.nic->map->pool.nfree, p.a.nic->slot->nbuffers + p.b.nic->slot->nbuffers); /* none is lost */
	pair_close(&p);
}

static void wrong_is_not_taken(void)
{
	SKIP_ASKING();
	for (size_t i = 0; i < WRONGS; i++) {
		uint64_t before;
		struct nic_taken out;
		struct pair p;

		open_quick(&p);
		before = counter(p.b.nic, "recv_short");
		forge(&p, wrong_packets[i].op, wrong_packets[i].len, wrong_packets[i].buffer, wrong_packets[i].where);
		if (!CHECK_EQ(take(&p, &out), NIC_NOT_DONE) || !CHECK(!out.data && !out.length))
			fprintf(stderr, "# wrong packet %zu\n", i);
		CHECK_EQ(counter(p.b.nic, "recv_short"), before);
		pair_close(&p);
	}
}

/* Completions that the consumer has not seen come before what would come by value; and a queue that is not the VI's gets nothing. */
static void completions_come_first(void)
{
	struct nic_short m = { .head = 7 };
	struct nic_cq other = { .mask = 15, .entry = calloc(16, 8) };
	struct nic_brief row[2];
	struct nic_taken out;
	uint64_t entry;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (int buffer = 0; buffer < 2; buffer++) {
		CHECK_EQ(buffer ? give(&p, LEN, 2) : nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		CHECK(nic_cq_publish(&p.b.recv_cq, 1));
		CHECK_EQ(take(&p, &out), NIC_NOT_DONE);
		CHECK_EQ(nic_take_row(p.b.nic, p.b.vi, &p.b.recv_cq, row, 2), 0);
		CHECK(nic_cq_take(&p.b.recv_cq, &entry));
		out = (struct nic_taken){ .data = room };
		CHECK_EQ(nic_take_of(p.b.nic, p.b.vi, &other, &out), NIC_NOT_DONE);
		CHECK_EQ(nic_take_row(p.b.nic, p.b.vi, &other, row, 2), 0);
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK_EQ(out.length, buffer ? LEN : 8);
		if (out.buffer)
			nic_buf_give(p.b.nic, out.buffer);
	}
	pair_close(&p);
	free(other.entry);
}

/* Behind packets of another kind in the same look at the link; but if one is refused, what is behind it goes its way. */
static void taken_behind_others(void)
{
	struct nic_short m = { .head = 7 };
	struct nic_taken out;
	struct pair p;
	uint64_t entry;

	SKIP_ASKING();
	open_quick(&p);
	for (int buffer = 0; buffer < 2; buffer++) {
		uint64_t packets = counter(p.b.nic, "packets_received");

		forge(&p, NIC_OP_RETURN, 0, 0, 0); /* of no buffers */
		forge(&p, NIC_OP_RETURN, 0, 0, 0);
		CHECK_EQ(buffer ? give(&p, LEN, 2) : nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		forge(&p, NIC_OP_RETURN, 0, 0, 0);
		out = (struct nic_taken){ .data = room };
		CHECK_EQ(nic_take(p.b.nic, &p.b.recv_cq, &out), buffer ? LEN : 8);
		CHECK_EQ(!out.buffer, !buffer);
		CHECK_EQ(counter(p.b.nic, "packets_received"), packets + 3);
		CHECK_EQ(nic_take(p.b.nic, &p.b.recv_cq, &out), 0);
		CHECK_EQ(counter(p.b.nic, "packets_received"), packets + 4);
		if (buffer)
			nic_buf_give(p.b.nic, out.buffer);
	}
	/* Its receive completes, and so does that of the good one behind it. */
	recv_desc(&p.b, fill(&p.b, 1, NIC_CTL_POOL, p.b.mem, 64));
	forge(&p, NIC_OP_RETURN, 0, 0, 0);
	forge(&p, NIC_OP_SEND, 8 | NIC_PF_IMM, 0, 0);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
	CHECK_EQ(nic_take(p.b.nic, &p.b.recv_cq, &out), 0);
	CHECK_EQ(status_of(&p.b.desc[0]), NIC_ST_DONE | NIC_ST_OP_RECEIVE | NIC_ST_IMMEDIATE);
	CHECK_EQ(status_of(&p.b.desc[1]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(nic_cq_take(&p.b.recv_cq, &entry) && nic_cq_take(&p.b.recv_cq, &entry));
	/* One look takes all that are refused, also behind another kind. */
	for (int other = 0; other < 2; other++) {
		uint64_t packets = counter(p.b.nic, "packets_received");

		if (other)
			forge(&p, NIC_OP_RETURN, 0, 0, 0);
		for (uint32_t i = 0; i < 8; i++)
			forge(&p, NIC_OP_SEND, 8 | NIC_PF_IMM, 0, 0);
		CHECK_EQ(nic_take(p.b.nic, &p.b.recv_cq, &out), 0);
		CHECK_EQ(counter(p.b.nic, "packets_received"), packets + 8 + (uint32_t)other);
		while (nic_cq_take(&p.b.recv_cq, &entry))
			;
	}
	pair_close(&p);
}

/* ---- given ----------------------------------------------------------------------------------------------------------------------- */

static void given_as_a_whole(void)
{
	static uint8_t mine[LEN];
	struct nic_taken out;
	struct pair p;
	uint8_t *buf;

	SKIP_ASKING();
	open_quick(&p);
	buf = nic_buf_take(p.a.nic);
	REQUIRE(buf);
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, mine, LEN), NIC_NOT_DONE);
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, (uint8_t *)p.a.nic->map->buffer - 1, LEN), NIC_NOT_DONE);
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf, NIC_PAYLOAD), NIC_NOT_DONE);
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf, NIC_BUFFER_SIZE + 1), NIC_NOT_DONE);
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf + 1, NIC_BUFFER_SIZE), NIC_NOT_DONE);
	nic_vi(p.a.nic, p.a.vi)->max_transfer = LEN - 1; /* the owner's NIC's alone */
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf, LEN), NIC_NOT_DONE);
	pattern(buf + 100, LEN - 1, 6);
	CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf + 100, LEN - 1), NIC_OK);
	CHECK_EQ(take(&p, &out), NIC_OK);
	CHECK(out.length == LEN - 1 && is_pattern(out.data, LEN - 1, 6));
	pair_close(&p);
}

/* A message of `len` bytes in three pieces, `cut` of them the second. */
static struct nic_short pieces(const uint8_t *data, uint32_t len, uint32_t cut)
{
	struct nic_short m = { .a = data + 8, .b = data + 8 + cut, .alen = cut, .blen = len - 8 - cut };

	memcpy(&m.head, data, sizeof(m.head));
	return m;
}

/* What does not fit the command is copied into a buffer, which the receiver gets: the second piece to the beginning of a line, if there is room. */
static void copied_when_long(void)
{
	static const uint32_t lengths[] = { NIC_INLINE_MAX - 1, NIC_INLINE_MAX, NIC_INLINE_MAX + 1, 4096, NIC_BUFFER_SIZE - 57, NIC_BUFFER_SIZE - 56,
		NIC_BUFFER_SIZE - 55, NIC_BUFFER_SIZE - 37, NIC_BUFFER_SIZE - 36, NIC_BUFFER_SIZE - 35, NIC_BUFFER_SIZE - 1, NIC_BUFFER_SIZE };
	static uint8_t data[NIC_BUFFER_SIZE];
	struct nic_taken out;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	pattern(data, sizeof(data), 3);
	for (size_t i = 0; i < 3 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t len = lengths[i / 3], cut = i % 3 < 2 ? 20 * (i % 3) : len - 8; /* the last time there is no second piece, and the first is aligned */
		struct nic_short m = pieces(data, len, cut);
		uint32_t shift = (64 - (8 + (m.blen ? m.alen : 0)) % 64) % 64, at = shift + len <= NIC_BUFFER_SIZE ? shift : 0;
		uint64_t before = counter(p.a.nic, "bytes_buffer");

		CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		CHECK_EQ(counter(p.a.nic, "bytes_buffer"), before + len);
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK(out.buffer && out.length == len && is_pattern(out.data, len, 3));
		CHECK_EQ(((uintptr_t)out.data - (uintptr_t)p.b.nic->map->buffer) % NIC_BUFFER_SIZE, at);
		nic_buf_give(p.b.nic, out.buffer);
	}
	CHECK_EQ(counter(p.a.nic, "packets_sent"), counter(p.a.nic, "send_short"));
	pair_close(&p);
}

/* Or the message, for a receive that has a place of its own. */
static void copied_into_a_receive(void)
{
	static uint8_t data[LEN];
	struct nic_short m;
	struct nic_desc *r;
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	pattern(data, LEN, 4);
	m = pieces(data, LEN, 30);
	r = fill(&p.b, 0, 0, p.b.mem, LEN);
	recv_desc(&p.b, r);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(r->length == LEN && is_pattern(p.b.mem, LEN, 4) && !p.b.mem[LEN]);
	pair_close(&p);
}

/* Longer than a buffer, or than the VI allows; or there is no buffer: a descriptor will do, or tells what is wrong. */
static void not_copied(void)
{
	static uint8_t data[NIC_BUFFER_SIZE + 1];
	struct nic_short longest = pieces(data, NIC_BUFFER_SIZE, 30), longer = pieces(data, NIC_BUFFER_SIZE + 1, 30), m = pieces(data, LEN, 30);
	struct nic_taken out;
	void *mine = NULL;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &longer), NIC_NOT_DONE);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &longest), NIC_OK);
	nic_card_lock(p.a.nic->card); /* nobody gets one out of the pool meanwhile */
	while (p.a.nic->slot->nbuffers)
		mine = nic_buf_take(p.a.nic);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	nic_card_unlock(p.a.nic->card);
	nic_buf_give(p.a.nic, mine);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
	CHECK_EQ(take(&p, &out), NIC_OK);
	CHECK_EQ(out.length, NIC_BUFFER_SIZE);
	CHECK_EQ(take(&p, &out), NIC_OK);
	CHECK_EQ(out.length, LEN);
	CHECK_EQ(take(&p, &out), NIC_NOT_DONE);
	pair_close(&p);
}

/* As much as the VIs allow. */
static void copied_as_far_as_agreed(void)
{
	static uint8_t data[LEN];
	struct nic_short m = pieces(data, LEN, 30);
	struct pair p;

	SKIP_ASKING();
	pair_open_apart(&p, NIC_RELIABLE_DELIVERY);
	nic_vi(p.a.nic, p.a.vi)->max_transfer = nic_vi(p.b.nic, p.b.vi)->max_transfer = LEN - 1;
	CHECK_EQ(pair_connect(&p), NIC_OK);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	m.blen--;
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
	pair_close(&p);
}

/* As many as the link has room for; the next one, for which there is a buffer, comes back to its sender. */
static void copied_where_there_is_room(void)
{
	enum { FULL = NIC_RING_CELLS - NIC_RING_RESERVE - 1 }; /* the peer has not told of the first one yet */
	static uint8_t data[LEN];
	struct nic_short m;
	struct nic_taken out;
	struct pair p;
	uint32_t before, n;

	SKIP_ASKING();
	open_quick(&p);
	pattern(data, LEN, 5);
	m = pieces(data, LEN, 30);
	for (n = 0; n <= FULL && nic_send_short(p.a.nic, p.a.vi, &m) == NIC_OK; n++)
		;
	CHECK_EQ(n, FULL);
	CHECK(nic_buffer_any(p.a.nic));
	before = p.a.nic->slot->nbuffers;
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	CHECK_EQ(p.a.nic->slot->nbuffers, before);
	CHECK_EQ(counter(p.a.nic, "packets_sent"), FULL + 1);
	for (uint32_t i = 0; i < n; i++) {
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK(out.buffer && out.length == LEN && is_pattern(out.data, LEN, 5));
		nic_buf_give(p.b.nic, out.buffer);
	}
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
	pair_close(&p);
}

/* Whether it may have a buffer is asked once of each message, however it is cut. */
static void asked_once(void)
{
	static const uint8_t data[492];

	SKIP_ASKING();
	for (int whole = 0; whole < 2; whole++) {
		struct nic_short m = { .head = 5, .a = data, .alen = whole ? 492 : 12, .b = data + 12, .blen = whole ? 0 : 480 };
		struct nic_taken out;
		struct pair p;

		CHECK_EQ(nic_param_set("demote", "off", "test"), NIC_OK);
		open_quick(&p);
		for (int i = 0; i < 1000; i++) {
			CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
			CHECK_EQ(take(&p, &out), NIC_OK);
			if (out.buffer)
				nic_buf_give(p.b.nic, out.buffer);
		}
		CHECK(counter(p.a.nic, "buffers_away") > 500);
		CHECK_EQ(counter(p.a.nic, "buffers_away"), 1000 - counter(p.a.nic, "bytes_buffer") / 500);
		pair_close(&p);
		CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
	}
}

/* Cells that the receiver has not read are not written. */
static void given_where_there_is_room(void)
{
	enum { FULL = NIC_RING_CELLS - NIC_RING_RESERVE };
	struct nic_taken out;
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	recv_desc(&p.b, fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 16));
	for (int i = 0; i < FULL; i++)
		CHECK_EQ(give(&p, 100, i), NIC_OK);
	CHECK_EQ(give(&p, 100, FULL), NIC_NOT_DONE);
	for (int i = 0; i < FULL; i++) {
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK(is_pattern(out.data, 100, i));
		nic_buf_give(p.b.nic, out.buffer);
	}
	CHECK_EQ(give(&p, 100, FULL), NIC_OK);
	pair_close(&p);
}

/* Too long for the receive's segment, which may have a buffer, when there is none: it waits, in whatever number of cells, and what needs none before it does not. */
static void waits_for_a_buffer(void)
{
	static const uint32_t lengths[] = { 17, 40, 100 };

	SKIP_ASKING();
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t len = lengths[i];
		struct nic_desc *r[2];
		void *all;
		struct pair p;

		pair_open(&p, NIC_RELIABLE_DELIVERY);
		for (int k = 0; k < 2; k++) {
			r[k] = fill(&p.b, k, NIC_CTL_POOL, p.b.mem, 16);
			recv_desc(&p.b, r[k]);
		}
		pattern(p.a.mem, len, 1);
		all = end_take_all(&p.b);
		send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 16));
		send_desc(&p.a, fill(&p.a, 1, 0, p.a.mem, len));
		pair_poll(&p);
		CHECK_EQ(status_of(r[0]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
		CHECK(!(status_of(r[1]) & NIC_ST_DONE));
		end_give_back(&p.b, all);
		pair_poll(&p);
		REQUIRE(CHECK_EQ(status_of(r[1]), NIC_ST_DONE | NIC_ST_OP_RECEIVE | NIC_ST_POOL));
		CHECK_EQ(r[1]->seg[1].length, len);
		CHECK(is_pattern(nic_host(r[1]->seg[1].addr), len, 1));
		pair_close(&p);
	}
}

/* A bad receive that would want a buffer does not wait for one. */
static void bad_receives_do_not_wait(void)
{
	struct nic_desc *bad;
	struct pair p;
	void *all;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	recv_desc(&p.b, fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 16));
	bad = fill(&p.b, 1, NIC_CTL_POOL, p.b.mem, 16);
	bad->reserved = 1;
	recv_desc(&p.b, bad);
	all = end_take_all(&p.b);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 16));
	send_desc(&p.a, fill(&p.a, 1, 0, p.a.mem, 40));
	pair_poll(&p);
	CHECK_EQ(status_of(&p.b.desc[0]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK_EQ(status_of(bad), NIC_ST_DONE | NIC_ST_OP_RECEIVE | NIC_ST_FORMAT);
	end_give_back(&p.b, all);
	pair_close(&p);
}

/* The receiver's NIC has yet to copy the data of the send before it, and to say so. */
static void given_in_its_turn(void)
{
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	if (!p.a.nic->link[p.b.nic->me]->cma) {
		pair_close(&p);
		SKIP("no cross-memory attach here: nothing is left to be done");
	}
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 65536));
	recv_desc(&p.b, fill(&p.b, 1, NIC_CTL_POOL, p.b.mem, 64));
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 65536));
	CHECK_EQ(give(&p, 100, 1), NIC_NOT_DONE);
	pair_poll(&p);
	CHECK_EQ(status_of(&p.a.desc[0]), NIC_ST_DONE);
	CHECK_EQ(give(&p, 100, 1), NIC_OK);
	pair_close(&p);
}

static void given_over_connections_only(void)
{
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(give(&p, LEN, 1), NIC_NOT_DONE);
	pair_close(&p);
	pair_open(&p, NIC_RELIABLE_RECEPTION); /* which needs an answer */
	CHECK_EQ(give(&p, LEN, 1), NIC_NOT_DONE);
	pair_close(&p);
}

/* The cell has had a packet with immediate data before. */
static void no_immediate_data_is_given(void)
{
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	for (int i = 0; i < NIC_RING_CELLS; i++) {
		struct nic_desc *d = fill(&p.a, i, NIC_CTL_IMMEDIATE, p.a.mem, 16);

		d->imm = 77;
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem, 16));
		send_desc(&p.a, d);
		pair_poll(&p);
		REQUIRE(CHECK_EQ(p.b.desc[i].imm, 77));
	}
	recv_desc(&p.b, fill(&p.b, NIC_RING_CELLS, 0, p.b.mem, LEN));
	CHECK_EQ(give(&p, LEN, 1), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(p.b.desc[NIC_RING_CELLS].length, LEN);
	CHECK_EQ(p.b.desc[NIC_RING_CELLS].imm, 0);
	pair_close(&p);
}

/* A receiver that sleeps is woken, whichever way the message goes. */
static void sleepers_are_woken(void)
{
	static const uint8_t data[600];
	struct nic_short m = { .b = data };
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (int i = 0; i < 4; i++) {
		struct nic_link *link = p.a.nic->link[p.b.nic->me];
		uint64_t before = counter(p.a.nic, "bells");

		m.blen = i == 1 ? 100 : i == 2 ? 600 : 0; /* a cell, some, a buffer that is filled, one that is given */
		atomic_store(link->bell, 1);
		CHECK_EQ(i < 3 ? nic_send_short(p.a.nic, p.a.vi, &m) : give(&p, LEN, 1), NIC_OK);
		CHECK_EQ(atomic_load(link->bell), 0);
		CHECK_EQ(counter(p.a.nic, "bells"), before + 1);
	}
	CHECK(counter(p.a.nic, "bytes_buffer") > 600);
	pair_close(&p);
}

/* A sender that never looks at what comes back goes on in cells; when it has looked, in buffers again. */
static void few_buffers_are_lent(void)
{
	uint64_t before;
	struct pair p;

	SKIP_ASKING();
	CHECK_EQ(nic_param_set("demote", "off", "test"), NIC_OK);
	open_quick(&p);
	for (int i = 0; i < 3000; i++)
		pass_one(&p);
	CHECK(counter(p.a.nic, "bytes_buffer") > 150 * 500);
	CHECK(counter(p.a.nic, "bytes_buffer") < 250 * 500);
	CHECK(counter(p.a.nic, "buffers_taken") < 250);
	CHECK_EQ(counter(p.a.nic, "buffers_away"), 3000 - counter(p.a.nic, "bytes_buffer") / 500);
	pair_poll(&p);
	before = counter(p.a.nic, "bytes_buffer");
	pass_one(&p);
	CHECK_EQ(counter(p.a.nic, "bytes_buffer"), before + 500);
	pair_close(&p);
	CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
}

/* Where there is none it is not looked for each time: that takes longer than the message. */
static void cells_while_there_is_no_buffer(void)
{
	static uint8_t data[LEN];
	struct nic_short longer = pieces(data, LEN, 30);
	struct nic_taken out;
	void *mine = NULL;
	uint64_t none;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	nic_card_lock(p.a.nic->card); /* nobody gets one out of the pool meanwhile */
	while (p.a.nic->slot->nbuffers)
		mine = nic_buf_take(p.a.nic);
	none = counter(p.a.nic, "no_buffer");
	for (int i = 0; i < 200; i++)
		pass_one(&p);
	CHECK(counter(p.a.nic, "no_buffer") - none >= 1);
	CHECK(counter(p.a.nic, "no_buffer") - none <= 8);
	CHECK_EQ(counter(p.a.nic, "bytes_buffer"), 0);
	nic_card_unlock(p.a.nic->card);
	nic_buf_give(p.a.nic, mine);
	pass_one(&p); /* one that is in hand need not be asked for */
	CHECK_EQ(counter(p.a.nic, "bytes_buffer"), 500);
	CHECK(!p.a.nic->slot->nbuffers && p.a.nic->link[p.b.nic->me]->unasked);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &longer), NIC_OK); /* it has no other way, and asks */
	CHECK_EQ(take(&p, &out), NIC_OK);
	CHECK_EQ(out.length, LEN);
	nic_buf_give(p.b.nic, out.buffer);
	for (int i = 0; i < 200; i++)
		pass_one(&p);
	CHECK(counter(p.a.nic, "bytes_buffer") > 500 + LEN);
	pair_close(&p);
}

/* A receiver that kept them all gives them back while cells come. */
static void buffers_come_back_behind_cells(void)
{
	static void *kept[1000];
	static const uint8_t data[492];
	struct nic_short m = { .head = 5, .b = data, .blen = sizeof(data) };
	struct nic_taken out;
	uint64_t before;
	uint32_t n = 0;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
		CHECK_EQ(take(&p, &out), NIC_OK);
		if (out.buffer)
			kept[n++] = out.buffer;
	}
	CHECK(n > 150 && n < 250);
	while (n)
		nic_buf_give(p.b.nic, kept[--n]);
	pass_one(&p); /* in cells */
	nic_poll(p.a.nic);
	before = counter(p.a.nic, "bytes_buffer");
	pass_one(&p);
	pass_one(&p);
	CHECK(counter(p.a.nic, "bytes_buffer") > before);
	pair_close(&p);
}

int main(void)
{
	CASE(taken_by_value);
	CASE(taken_in_buffers);
	CASE(wrong_is_not_taken);
	CASE(completions_come_first);
	CASE(taken_behind_others);
	CASE(copied_when_long);
	CASE(copied_into_a_receive);
	CASE(not_copied);
	CASE(copied_as_far_as_agreed);
	CASE(copied_where_there_is_room);
	CASE(asked_once);
	CASE(given_as_a_whole);
	CASE(given_where_there_is_room);
	CASE(waits_for_a_buffer);
	CASE(bad_receives_do_not_wait);
	CASE(given_in_its_turn);
	CASE(given_over_connections_only);
	CASE(no_immediate_data_is_given);
	CASE(sleepers_are_woken);
	CASE(few_buffers_are_lent);
	CASE(cells_while_there_is_no_buffer);
	CASE(buffers_come_back_behind_cells);
	return check_done();
}
