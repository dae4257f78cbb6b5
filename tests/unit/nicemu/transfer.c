/* SPDX-License-Identifier: BSD-3-Clause */
/* Data through the NIC: every path (inline, buffer, given buffer, pull, RDMA in one step and through buffers). */
#include "nicemu/mem/slot.h"
#include "tests/unit/nicemu/pair.h"

static const uint32_t sizes[] = { 0, 1, 2, 7, 8, 15, 16, 31, 33, 47, 48, 49, 64, 100, 1000, 8191, 8320, 16512, NIC_BUFFER_SIZE, NIC_BUFFER_SIZE + 1, 16383, 16384, 16640, 65536,
	100001, 400000 };

static void one(struct pair *p, uint32_t size, uint32_t seed)
{
	struct nic_desc *r = fill(&p->b, 0, 0, p->b.mem, size + 10), *s = fill(&p->a, 1, NIC_CTL_IMMEDIATE, p->a.mem, size);

	pattern(p->a.mem, size, seed);
	memset(p->b.mem, 0xEE, size + 10);
	s->imm = seed;
	recv_desc(&p->b, r);
	send_desc(&p->a, s);
	pair_poll(p);
	CHECK_EQ(status_of(s), NIC_ST_DONE | NIC_ST_OP_SEND);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE | NIC_ST_IMMEDIATE);
	CHECK_EQ(r->length, size);
	CHECK_EQ(r->imm, seed);
	CHECK(is_pattern(p->b.mem, size, seed));
	CHECK_EQ(p->b.mem[size], 0xEE);
}

static void all_sizes(uint16_t level)
{
	struct pair p;

	pair_open(&p, level);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		one(&p, sizes[i], i + 1);
	for (int i = 0; i < 3000; i++)
		one(&p, (i * 37) % 3000, i);
	pair_close(&p);
}

static void sizes_unreliable(void)
{
	all_sizes(NIC_UNRELIABLE);
}

static void sizes_delivery(void)
{
	all_sizes(NIC_RELIABLE_DELIVERY);
}

static void sizes_reception(void)
{
	all_sizes(NIC_RELIABLE_RECEPTION);
}

static void sizes_without_cma(void)
{
	struct pair p;

	nic_param_set("cma", "off", "test");
	all_sizes(NIC_RELIABLE_DELIVERY);
	all_sizes(NIC_RELIABLE_RECEPTION);
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	one(&p, 100000, 1);
	CHECK_EQ(counter(p.b.nic, "bytes_pulled"), 0);
	CHECK_EQ(counter(p.a.nic, "bytes_buffer"), 100000);
	pair_close(&p);
	nic_param_set("cma", "auto", "test");
}

static void pull_counts(void)
{
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	one(&p, 100000, 1);
	CHECK_EQ(counter(p.b.nic, "bytes_pulled"), 100000);
	pair_close(&p);
}

/* More than the ring on the NIC and the link hold, posted before anybody polls. */
static void many_at(uint16_t level)
{
	struct pair p;
	enum { N = 1000 };

	pair_open(&p, level);
	for (int i = 0; i < N; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + i * 100, 100));
	for (int i = 0; i < N; i++) {
		pattern(p.a.mem + i * 100, 100, i);
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem + i * 100, i % 101));
	}
	CHECK(counter(p.a.nic, "spilled") > 0);
	CHECK(counter(p.b.nic, "spilled") > 0);
	pair_poll(&p);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(status_of(&p.a.desc[i]), NIC_ST_DONE);
		CHECK_EQ(status_of(&p.b.desc[i]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
		CHECK_EQ(p.b.desc[i].length, i % 101);
		CHECK(is_pattern(p.b.mem + i * 100, i % 101, i));
	}
	for (int i = 0; i < N; i++) {
		uint64_t entry = 0;

		CHECK(nic_cq_take(&p.b.recv_cq, &entry));
		CHECK_EQ(entry, (uintptr_t)&p.b | NIC_CQ_RECV);
		CHECK(nic_cq_take(&p.a.send_cq, &entry));
	}
	pair_close(&p);
}

static void many_outstanding(void)
{
	many_at(NIC_UNRELIABLE);
	many_at(NIC_RELIABLE_DELIVERY);
	many_at(NIC_RELIABLE_RECEPTION);
}

static void segments(uint32_t total, int nseg, uint16_t level)
{
	struct pair p;
	struct nic_desc *s, *r;
	uint32_t at = 0;

	pair_open(&p, level);
	pattern(p.a.mem, total, 5);
	s = fill(&p.a, 0, 0, NULL, total);
	r = fill(&p.b, 0, 0, NULL, total);
	s->nseg = r->nseg = nseg;
	for (int i = 0; i < nseg; i++) {
		uint32_t len = i == nseg - 1 ? total - at : total / nseg;

		(&s->seg[0])[i] = (struct nic_seg){ (uintptr_t)p.a.mem + at, p.a.handle, len };
		/* the receiver has other cuts: the last piece first in size */
		(&r->seg[0])[i] = (struct nic_seg){ (uintptr_t)p.b.mem + at, p.b.handle, len };
		at += len;
	}
	recv_desc(&p.b, r);
	send_desc(&p.a, s);
	pair_poll(&p);
	CHECK_EQ(status_of(s), NIC_ST_DONE);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(is_pattern(p.b.mem, total, 5));
	pair_close(&p);
}

static void scatter_gather(void)
{
	static const int counts[] = { 2, 3, 10, 252 };

	for (unsigned i = 0; i < 4; i++) {
		segments(40, counts[i] > 10 ? 10 : counts[i], NIC_RELIABLE_DELIVERY);
		segments(5000, counts[i], NIC_RELIABLE_DELIVERY);
		segments(200000, counts[i], NIC_RELIABLE_RECEPTION);
	}
}

static void given_buffers(void)
{
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	for (int i = 0; i < 5000; i++) {
		uint32_t len = 1 + (i * 61) % NIC_BUFFER_SIZE;
		struct nic_desc *r = fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 64), *s;
		uint8_t *buf = nic_buf_take(p.a.nic);

		REQUIRE(buf);
		pattern(buf, len, i);
		s = fill(&p.a, 0, NIC_CTL_POOL, buf, len);
		s->seg[0].handle = NIC_POOL_HANDLE;
		recv_desc(&p.b, r);
		send_desc(&p.a, s);
		pair_poll(&p);
		REQUIRE(CHECK_EQ(status_of(s), NIC_ST_DONE));
		if (len <= 64) {
			REQUIRE(CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE));
			CHECK(is_pattern(p.b.mem, len, i));
		} else {
			REQUIRE(CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE | NIC_ST_POOL));
			CHECK_EQ(r->seg[1].length, len);
			CHECK(asks_first() || r->seg[1].addr == (uintptr_t)buf); /* or a copy */
			CHECK(is_pattern((void *)(uintptr_t)r->seg[1].addr, len, i));
			nic_buf_give(p.b.nic, (void *)(uintptr_t)r->seg[1].addr);
		}
	}
	/* One way only: surplus came back, nobody hoards. */
	CHECK(asks_first() || counter(p.b.nic, "buffers_returned") > 0);
	CHECK(counter(p.a.nic, "buffers_taken") < 256);
	pair_close(&p);
}

/* A plain send to a pool receive, and a given buffer to a plain receive. */
static void mixed_buffers(void)
{
	struct pair p;
	struct nic_desc *r, *s;
	uint8_t *buf;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	pattern(p.a.mem, 5000, 3);
	r = fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 64);
	recv_desc(&p.b, r);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 5000));
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE | NIC_ST_POOL);
	CHECK(is_pattern((void *)(uintptr_t)r->seg[1].addr, 5000, 3));
	nic_buf_give(p.b.nic, (void *)(uintptr_t)r->seg[1].addr);

	buf = nic_buf_take(p.a.nic);
	pattern(buf + 100, 3000, 4);
	r = fill(&p.b, 0, 0, p.b.mem, 4000);
	s = fill(&p.a, 0, NIC_CTL_POOL, buf + 100, 3000);
	s->seg[0].handle = NIC_POOL_HANDLE;
	recv_desc(&p.b, r);
	send_desc(&p.a, s);
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(is_pattern(p.b.mem, 3000, 4));
	pair_close(&p);
}

static struct nic_desc *rdma(struct end *e, int i, uint16_t op, void *local, uint64_t remote, uint32_t handle, uint32_t len)
{
	struct nic_desc *d = fill(e, i, op, local, len);

	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ remote, handle, 0 };
	return d;
}

static void rdma_sizes(void)
{
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];
		struct nic_desc *r = fill(&p.b, 0, 0, NULL, 0), *d;

		pattern(p.a.mem, n, i);
		memset(p.b.mem, 0, n + 1);
		r->nseg = 0;
		recv_desc(&p.b, r);
		d = rdma(&p.a, 0, NIC_CTL_RDMA_WRITE | NIC_CTL_IMMEDIATE, p.a.mem, (uintptr_t)p.b.mem, p.b.handle, n);
		d->imm = 77;
		send_desc(&p.a, d);
		pair_poll(&p);
		CHECK_EQ(status_of(d), NIC_ST_DONE | NIC_ST_OP_RDMA_WRITE);
		CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_REMOTE_RDMA_WRITE | NIC_ST_IMMEDIATE);
		CHECK_EQ(r->imm, 77);
		CHECK(is_pattern(p.b.mem, n, i));
		CHECK_EQ(p.b.mem[n], 0);
		memset(p.a.mem, 0, n + 1);
		d = rdma(&p.a, 0, NIC_CTL_RDMA_READ, p.a.mem, (uintptr_t)p.b.mem, p.b.handle, n);
		send_desc(&p.a, d);
		pair_poll(&p);
		CHECK_EQ(status_of(d), NIC_ST_DONE | NIC_ST_OP_RDMA_READ);
		CHECK(is_pattern(p.a.mem, n, i));
	}
	pair_close(&p);
}

static void rdma_without_cma(void)
{
	nic_param_set("cma", "off", "test");
	rdma_sizes();
	nic_param_set("cma", "auto", "test");
}

/* A short read that b refuses: a has no other way, and nothing more to try. */
static void refused_without_cma(void)
{
	struct nic_desc *d;
	struct pair p;

	nic_param_set("cma", "off", "test");
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	d = rdma(&p.a, 0, NIC_CTL_RDMA_READ, p.a.mem, (uintptr_t)p.b.mem, p.b.handle, 100);
	send_desc(&p.a, d);
	CHECK_EQ(nic_mem_deregister(p.b.nic, (uintptr_t)p.b.mem, p.b.handle), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(status_of(d), NIC_ST_DONE | NIC_ST_OP_RDMA_READ | NIC_ST_RDMA_PROT);
	pair_close(&p);
	nic_param_set("cma", "auto", "test");
}

/* Reads, writes and sends in one queue complete in order even when reads need the peer. */
static void order_without_cma(void)
{
	struct pair p;
	struct nic_desc *last = NULL;

	nic_param_set("cma", "off", "test");
	pair_open(&p, NIC_RELIABLE_RECEPTION);
	for (int i = 0; i < 60; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + i * 100, 100));
	for (int i = 0; i < 60; i++) {
		if (i % 3 == 0)
			last = rdma(&p.a, i, NIC_CTL_RDMA_READ, p.a.mem + 500000, (uintptr_t)p.b.mem + 400000, p.b.handle, 30000);
		else if (i % 3 == 1)
			last = rdma(&p.a, i, NIC_CTL_RDMA_WRITE, p.a.mem, (uintptr_t)p.b.mem + 600000, p.b.handle, 30000);
		else
			last = fill(&p.a, i, 0, p.a.mem, 100);
		send_desc(&p.a, last);
	}
	for (int turn = 0; turn < 20000 && !(status_of(last) & NIC_ST_DONE); turn++) {
		int i = 0;

		nic_poll(turn & 1 ? p.a.nic : p.b.nic);
		while (i < 60 && (status_of(&p.a.desc[i]) & NIC_ST_DONE))
			i++;
		for (; i < 60; i++)
			CHECK(!(status_of(&p.a.desc[i]) & NIC_ST_DONE));
	}
	for (int i = 0; i < 60; i++)
		CHECK_EQ(status_of(&p.a.desc[i]) & (NIC_ST_DONE | NIC_ST_ERROR_MASK), NIC_ST_DONE);
	pair_close(&p);
	nic_param_set("cma", "auto", "test");
}

/* Messages inside the command: every split of every length, in order with descriptors, refused when they cannot go. */
static void short_commands(void)
{
	enum { FULL = NIC_RING_CELLS + 30 };
	struct nic_short m;
	struct pair p;
	uint8_t data[NIC_INLINE_MAX];

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	pattern(data, sizeof(data), 6);
	for (uint32_t len = 8; len <= NIC_INLINE_MAX; len += len < 120 || len > NIC_INLINE_MAX - 3 ? 1 : len < 1030 ? 31 : 1)
		for (uint32_t cut = 0; cut <= len - 8; cut += len < 120 ? 1 : 5) {
			struct nic_desc *r = fill(&p.b, 0, 0, p.b.mem, NIC_INLINE_MAX);

			memcpy(&m.head, data, 8);
			m.a = data + 8;
			m.alen = cut;
			m.b = data + 8 + cut;
			m.blen = len - 8 - cut;
			memset(p.b.mem, 0, NIC_INLINE_MAX + 1);
			recv_desc(&p.b, r);
			REQUIRE(CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK));
			pair_poll(&p);
			REQUIRE(CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE));
			CHECK_EQ(r->length, len);
			CHECK(is_pattern(p.b.mem, len, 6));
			CHECK_EQ(p.b.mem[len], 0);
		}
	m.alen = UINT32_MAX - 7;
	m.blen = 0;
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	/* Behind what is queued it must not go: the link is filled first. */
	for (int i = 0; i < FULL + 10; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + 64 * i, 64));
	for (int i = 0; i < FULL; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem, 16));
	m.alen = m.blen = 0;
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	pair_poll(&p);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(p.b.desc[FULL - 1].length, 16);
	CHECK_EQ(p.b.desc[FULL].length, 8);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	pair_close(&p);
	pair_open(&p, NIC_RELIABLE_RECEPTION);
	CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_NOT_DONE);
	pair_close(&p);
}

/* Whether lines are let go of: no test depends on the processor. */
static void pair_open_demoting(struct pair *p, const char *demote)
{
	CHECK_EQ(nic_param_set("demote", demote, "test"), NIC_OK);
	pair_open(p, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
}

/* `len` bytes: in cells as long as few are used up, or in buffers; in order. */
static void pile_up(const char *demote, uint32_t len, bool cells)
{
	enum { N = 144, MOST = 500 }; /* C-MPI's credits */
	struct pair p;
	uint8_t data[MOST];
	uint64_t in_buffers;

	SKIP_ASKING();
	pair_open_demoting(&p, demote);
	for (int i = 0; i < N; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + i * MOST, MOST));
	for (int i = 0; i < N; i++) {
		uint32_t cut = (uint32_t)i * (len - 8) / N;
		struct nic_short m = { .a = data + 8, .alen = cut, .b = data + 8 + cut, .blen = len - 8 - cut };

		pattern(data, len, i);
		memcpy(&m.head, data, 8);
		REQUIRE(CHECK_EQ(nic_send_short(p.a.nic, p.a.vi, &m), NIC_OK));
	}
	in_buffers = counter(p.a.nic, "bytes_buffer") / len;
	CHECK((N - in_buffers) * nic_packet_cells(len) < NIC_RING_CELLS);
	CHECK(cells ? N - in_buffers == N || (N - in_buffers) * nic_packet_cells(len) > NIC_RING_CELLS / 2 : in_buffers == N);
	CHECK_EQ(counter(p.a.nic, "bytes_inline") / len, N - in_buffers);
	pair_poll(&p);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(status_of(&p.b.desc[i]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
		CHECK_EQ(p.b.desc[i].length, len);
		CHECK(is_pattern(p.b.mem + i * MOST, len, i));
	}
	pair_close(&p);
}

/* When the peer does not look, short messages of many cells leave the link to the others. */
static void short_commands_pile_up(void)
{
	pile_up("on", 400, true);
	pile_up("off", 108, true);
}

/* Of more bytes, with room for cells or without. */
static void short_commands_in_buffers(void)
{
	pile_up("on", 401, false);
	pile_up("off", 109, false);
}

/* `n` messages of `len` bytes one way. */
static void send_shorts(struct pair *p, struct end *from, struct end *to, int n, uint32_t len)
{
	static uint8_t data[NIC_INLINE_MAX];
	struct nic_short m = { .b = data, .blen = len - 8 };

	for (int i = 0; i < n; i++) {
		recv_desc(to, fill(to, i, 0, to->mem, NIC_INLINE_MAX));
		CHECK_EQ(nic_send_short(from->nic, from->vi, &m), NIC_OK);
	}
	pair_poll(p);
	for (int i = 0; i < n; i++)
		CHECK_EQ(status_of(&to->desc[i]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
}

/* How long an answer, which a peer waits for, and one of a stream are in cells, at most. */
static void in_cells_up_to(const char *demote, uint32_t answer, uint32_t stream)
{
	struct pair p;

	pair_open_demoting(&p, demote);
	for (uint32_t len = stream - 2; len <= answer + 2; len++) {
		uint64_t inside = counter(p.a.nic, "bytes_inline"), buffer = counter(p.a.nic, "bytes_buffer");
		uint32_t cells = (len <= answer) + (len <= stream ? 4 : 0);

		send_shorts(&p, &p.b, &p.a, 1, 16);
		send_shorts(&p, &p.a, &p.b, 5, len);
		CHECK_EQ(counter(p.a.nic, "bytes_inline"), inside + cells * len);
		CHECK_EQ(counter(p.a.nic, "bytes_buffer"), buffer + (5 - cells) * len);
	}
	pair_close(&p);
}

static void longer_ones_in_buffers(void)
{
	SKIP_ASKING();
	in_cells_up_to("off", 228, 108);
	in_cells_up_to("on", 400, 400);
}

/* Lines are let go of at the first message after one has come, where it has more than one line, in cells or in a buffer. */
static void answers_are_demoted(void)
{
	struct pair p;
	uint64_t before;

	SKIP_ASKING();
	pair_open_demoting(&p, "on");
	send_shorts(&p, &p.a, &p.b, 1, 100);
	before = counter(p.a.nic, "demoted");
	send_shorts(&p, &p.a, &p.b, 5, 100);
	CHECK_EQ(counter(p.a.nic, "demoted"), before);
	for (uint32_t len = 16; len <= 1016; len += 100) {
		before = counter(p.a.nic, "demoted");
		send_shorts(&p, &p.b, &p.a, 1, 16);
		send_shorts(&p, &p.a, &p.b, 5, len);
		CHECK_EQ(counter(p.a.nic, "demoted"), before + (len > NIC_PAYLOAD));
	}
	CHECK_EQ(counter(p.b.nic, "demoted"), 0);
	pair_close(&p);
	pair_open_demoting(&p, "off");
	send_shorts(&p, &p.b, &p.a, 1, 16);
	send_shorts(&p, &p.a, &p.b, 5, 500);
	CHECK_EQ(counter(p.a.nic, "demoted"), 0);
	pair_close(&p);
}

int main(void)
{
	CASE(sizes_unreliable);
	CASE(sizes_delivery);
	CASE(sizes_reception);
	CASE(sizes_without_cma);
	CASE(pull_counts);
	CASE(many_outstanding);
	CASE(scatter_gather);
	CASE(short_commands);
	CASE(short_commands_pile_up);
	CASE(short_commands_in_buffers);
	CASE(longer_ones_in_buffers);
	CASE(answers_are_demoted);
	CASE(given_buffers);
	CASE(mixed_buffers);
	CASE(rdma_sizes);
	CASE(rdma_without_cma);
	CASE(refused_without_cma);
	CASE(order_without_cma);
	return check_done();
}
