/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message that is waited for (nic_take_expected in ctl/take.c): what follows its first 16 bytes is where the consumer wants it, and nothing else
 * is written.  Whatever else is next on the link stays there for the other ways.
 */
#include <pthread.h>

#include "tests/unit/nicemu/awaited.h"

/* ---- what comes -------------------------------------------------------------------------------------------------------------------- */

/* Of one cell, of several, and in buffers. */
static const uint32_t lengths[] = { 16, 17, 19, 20, 23, 24, 31, 32, 33, 47, 48, 49, 52, 63, 64, 107, 108, 109, 168, 169, 228, 229, 400, 401, 1000,
	NIC_INLINE_MAX, NIC_INLINE_MAX + 1, LEN, NIC_BUFFER_SIZE - 1, NIC_BUFFER_SIZE };
enum { LENGTHS = sizeof(lengths) / sizeof(*lengths) };

static void every_length(void)
{
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (uint32_t lap = 0; lap < 3; lap++)
		for (uint32_t i = 0; i < LENGTHS; i++) {
			uint32_t len = lengths[i];
			struct nic_expected m = expecting(MOST), less = expecting(len - NIC_EXPECTED - 1);

			ready(&p);
			CHECK_EQ(say(&p, len), NIC_OK);
			if (!comes(&p, len))
				fprintf(stderr, "# %u bytes\n", len);
			ready(&p);
			CHECK_EQ(say(&p, len), NIC_OK);
			memset(space, 0xcc, sizeof(space));
			CHECK(look(&p, &m) == NIC_OK && m.length == len - NIC_EXPECTED && is_there(m.length, len)); /* more room than it needs */
			if (len == NIC_EXPECTED)
				continue;
			ready(&p);
			CHECK_EQ(say(&p, len), NIC_OK);
			if (!stays(&p, &less) || !is_whole(&p, HEAD, KEY, len, len))
				fprintf(stderr, "# %u bytes\n", len);
		}
	CHECK(counter(p.a.nic, "bytes_buffer") > 3 * 3 * LEN && counter(p.a.nic, "bytes_inline") > 3 * 3 * 400);
	close_counted(&p);
}

/* Short ones, too, at any place of one; migrating or not. */
static void in_any_buffer(void)
{
	SKIP_ASKING();
	for (int on = 0; on < 2; on++) {
		struct pair p;

		CHECK_EQ(nic_param_set("migrate", on ? "on" : "off", "test"), NIC_OK);
		open_quick(&p);
		for (uint32_t i = 0; i < LENGTHS; i++)
			for (uint32_t at = 0; at < 6; at++) {
				uint32_t len = lengths[i], end = NIC_BUFFER_SIZE - len, where = at < 3 ? at * 24 : end - (at - 3) * 24, index;
				uint8_t same[GUARD], *buf;

				if (where > end)
					continue;
				index = say_in_buffer(&p, len, where);
				memset(same, 0x55, sizeof(same));
				CHECK(comes(&p, len));
				buf = p.b.nic->pool + (size_t)index * NIC_BUFFER_SIZE; /* nobody has written to it since */
				CHECK(is_all(buf, where, 0x55) && is_all(buf + where + len, end - where, 0x55));
				CHECK(is_pattern(buf + where + NIC_EXPECTED, len - NIC_EXPECTED, len));
				nic_poll(p.a.nic);
			}
		CHECK_EQ(counter(p.b.nic, "migrated") > 50, on);
		close_counted(&p);
		CHECK_EQ(nic_param_set("migrate", "auto", "test"), NIC_OK);
	}
}

/* Bits that differ where the mask has them, where it has not, and in the key. */
static void only_what_is_expected(void)
{
	static const uint32_t some[] = { 16, 48, 100, LEN };
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (uint32_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		for (uint32_t bit = 0; bit < 64; bit++) {
			uint64_t flip = (uint64_t)1 << bit, head = HEAD ^ flip;
			struct nic_expected m = expecting(MOST);

			ready(&p);
			CHECK_EQ(say_from(&p.a, head, KEY, some[i], bit), NIC_OK);
			CHECK(stays(&p, &m));
			m.mask = flip;
			CHECK(stays(&p, &m));
			m.mask = ~flip;
			CHECK(look(&p, &m) == NIC_OK && m.word == head && m.length == some[i] - NIC_EXPECTED && is_there(m.length, bit));
			ready(&p);
			CHECK_EQ(say_from(&p.a, HEAD, KEY ^ flip, some[i], bit), NIC_OK);
			m.mask = 0;
			CHECK(stays(&p, &m));
			CHECK(is_whole(&p, HEAD, KEY ^ flip, some[i], bit));
		}
	close_counted(&p);
}

/* Into unaligned memory, over and over round the ring; whoever looks by the other way now and then takes what passes over cells. */
static void round_and_round(void)
{
	uint32_t others = 0, n;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (n = 0; n < 8 * NIC_RING_LAP; n++) {
		uint32_t len = 16 + n % 70;
		struct nic_expected m = expecting(len - NIC_EXPECTED);

		m.to = into + n % 64;
		CHECK_EQ(say(&p, len), NIC_OK);
		if (look(&p, &m) != NIC_OK) { /* behind the end of a short lap */
			CHECK(is_whole(&p, HEAD, KEY, len, len));
			others++;
			continue;
		}
		CHECK(is_pattern(m.to, m.length, len) && is_all(space, GUARD + n % 64, 0xcc) && is_all((uint8_t *)m.to + m.length, GUARD, 0xcc));
	}
	CHECK(others > 8 && others < 16);
	close_counted(&p);
}

/* ---- nothing, or something else ------------------------------------------------------------------------------------------------------ */

static void *say_later(void *arg)
{
	usleep(3000);
	return (void *)(intptr_t)say(arg, 40);
}

static void nothing_there(void)
{
	struct nic_expected m = expecting(MOST);
	struct nic_link *link;
	pthread_t thread;
	struct pair p;
	uint64_t looks;
	void *sent;

	SKIP_ASKING();
	open_quick(&p);
	link = p.b.nic->link[p.a.nic->me];
	for (uint32_t n = 1; n < 40; n++) {
		link->rx_row = 3;
		looks = p.b.nic->looks;
		CHECK_EQ(nic_take_expected(p.b.nic, p.b.vi, &p.b.recv_cq, &m, n), NIC_NOT_DONE);
		CHECK_EQ(link->rx_row, 0);
		CHECK(p.b.nic->looks != looks);
	}
	CHECK(stays(&p, &m));
	/* It comes meanwhile. */
	REQUIRE(pthread_create(&thread, NULL, say_later, &p) == 0);
	for (uint32_t n = 0; nic_take_expected(p.b.nic, p.b.vi, &p.b.recv_cq, &m, UINT32_MAX) != NIC_OK; n++) /* for a while each time, not for ever */
		REQUIRE(n < 100000);
	CHECK(m.length == 24 && is_there(24, 40));
	pthread_join(thread, &sent);
	CHECK_EQ((intptr_t)sent, NIC_OK);
	close_counted(&p);
}

/* No link yet, no receive, or none that is known to be good. */
static void not_before_the_first(void)
{
	struct nic_expected m = expecting(MOST);
	struct pair p;

	SKIP_ASKING();
	pair_open_apart(&p, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(look(&p, &m), NIC_NOT_DONE);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	CHECK(stays(&p, &m));
	CHECK_EQ(say(&p, 40), NIC_OK);
	CHECK(stays(&p, &m));
	recv_desc(&p.b, fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 64));
	CHECK(stays(&p, &m));
	CHECK(is_whole(&p, HEAD, KEY, 40, 40));
	CHECK_EQ(say(&p, 40), NIC_OK);
	CHECK(comes(&p, 40));
	close_counted(&p);
}

/* The receive at the head takes no more than it has room for, and no buffers. */
static void receives_of_some_room(void)
{
	static const uint32_t rooms[] = { 16, 40, 48, 60, 100, 2000 };

	SKIP_ASKING();
	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		uint32_t most = rooms[i] < NIC_INLINE_MAX ? rooms[i] : NIC_INLINE_MAX;
		struct nic_expected m = expecting(MOST);
		struct pair p;

		pair_open(&p, NIC_RELIABLE_DELIVERY);
		recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, rooms[i]));
		CHECK_EQ(say(&p, 16), NIC_OK);
		CHECK(is_whole(&p, HEAD, KEY, 16, 16));
		if (most <= 100) {
			CHECK_EQ(say(&p, most), NIC_OK);
			CHECK(comes(&p, most));
			CHECK_EQ(say(&p, most + 1), NIC_OK);
			CHECK(stays(&p, &m));
			pair_poll(&p);
			CHECK(status_of(&p.b.desc[0]) & NIC_ST_LENGTH);
		} else { /* in a buffer, which the other way copies out of */
			say_in_buffer(&p, 600, 0);
			CHECK(stays(&p, &m));
			CHECK(is_whole(&p, HEAD, KEY, 600, 600));
		}
		pair_close(&p);
	}
}

/* A message of fewer bytes than are expected, behind which the last lap's still lie. */
static void shorter_ones(void)
{
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (uint32_t lap = 0; lap < 2; lap++)
		for (uint32_t n = 0; n < NIC_RING_LAP - 8; n++) {
			uint32_t len = lap ? 8 + n % 8 : 48;
			struct nic_expected m = expecting(n % 3 == 0 ? 0 : n % 3 == 1 ? MOST : UINT32_MAX - n % 16); /* room that knows no bounds, too */

			ready(&p);
			CHECK_EQ(say(&p, len), NIC_OK);
			if (lap && !stays(&p, &m))
				break;
			CHECK(is_whole(&p, HEAD, KEY, len, len));
		}
	/* In a buffer that has them, too. */
	for (uint32_t len = 1; len < NIC_EXPECTED; len++) {
		struct nic_expected m = expecting(MOST);
		struct nic_taken out;

		say_in_buffer(&p, NIC_EXPECTED, 0);
		p.a.nic->link[p.b.nic->me]->tx[(p.a.nic->link[p.b.nic->me]->tx_pos - 1) & (NIC_RING_CELLS - 1)].len_flags = len;
		CHECK(stays(&p, &m));
		CHECK_EQ(take(&p, &out), NIC_OK);
		CHECK(out.buffer && out.length == len);
		nic_buf_give(p.b.nic, out.buffer);
		nic_poll(p.a.nic);
	}
	close_counted(&p);
}

/* What passes over the cells of a short lap is for the other way, behind which this one goes on. */
static void behind_a_short_lap(void)
{
	struct nic_expected m = expecting(MOST);
	const struct nic_link *tx;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	tx = p.a.nic->link[p.b.nic->me];
	for (uint32_t lap = 0; lap < 3; lap++) {
		while (tx->tx_pos & (NIC_RING_LAP - 1)) {
			CHECK_EQ(say(&p, 40), NIC_OK);
			CHECK(comes(&p, 40));
		}
		CHECK_EQ(tx->tx_pos & (NIC_RING_CELLS - 1), 0);
		CHECK(stays(&p, &m));
		CHECK_EQ(say(&p, 40), NIC_OK);
		CHECK_EQ(say(&p, 100), NIC_OK);
		CHECK(stays(&p, &m));
		CHECK(is_whole(&p, HEAD, KEY, 40, 40));
		CHECK(comes(&p, 100));
	}
	close_counted(&p);
}

/* Completions that the consumer has not seen come first; a queue that is not the VI's gets nothing. */
static void completions_come_first(void)
{
	static const uint32_t some[] = { 40, 100, LEN };
	struct nic_cq other = { .mask = 15, .entry = calloc(16, 8) };
	uint64_t entry;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		struct nic_expected m = expecting(MOST);

		ready(&p);
		CHECK_EQ(say(&p, some[i]), NIC_OK);
		CHECK(nic_cq_publish(&p.b.recv_cq, 1));
		CHECK(stays(&p, &m));
		CHECK(nic_cq_take(&p.b.recv_cq, &entry));
		CHECK_EQ(nic_take_expected(p.b.nic, p.b.vi, &other, &m, 1), NIC_NOT_DONE);
		CHECK(comes(&p, some[i]));
		/* One that another call has brought in has taken its receive, and what is behind it waits. */
		ready(&p);
		CHECK_EQ(say(&p, some[i]), NIC_OK);
		pair_poll(&p);
		CHECK_EQ(status_of(&p.b.desc[0]) & NIC_ST_DONE, NIC_ST_DONE);
		if (p.b.desc[0].status & NIC_ST_POOL)
			nic_buf_give(p.b.nic, (void *)(uintptr_t)p.b.desc[0].seg[1].addr);
		recv_desc(&p.b, fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 64));
		ready(&p);
		CHECK_EQ(say(&p, some[i]), NIC_OK);
		CHECK(stays(&p, &m));
		CHECK(nic_cq_take(&p.b.recv_cq, &entry));
		CHECK(stays(&p, &m)); /* whether this receive is good has to be seen first */
		CHECK(is_whole(&p, HEAD, KEY, some[i], some[i]));
	}
	close_counted(&p);
	free(other.entry);
}

/* Where the message of a forged packet begins. */
static const uint8_t *forged_at(const struct pair *p, size_t i)
{
	const struct nic_link *link = p->a.nic->link[p->b.nic->me];
	uint64_t where = wrong_packets[i].where;

	if (wrong_packets[i].op == NIC_OP_SEND)
		return link->tx[(link->tx_pos - 1) & (NIC_RING_CELLS - 1)].data;
	return p->a.nic->map->buffer[0] + (where < NIC_BUFFER_SIZE ? where : 0);
}

/* Also if it begins as is expected. */
static void wrong_is_not_taken(void)
{
	SKIP_ASKING();
	for (size_t i = 0; i < WRONGS; i++) {
		struct nic_expected m = expecting(INT32_MAX);
		struct pair p;

		open_quick(&p);
		forge(&p, wrong_packets[i].op, wrong_packets[i].len, wrong_packets[i].buffer, wrong_packets[i].where);
		memcpy(&m.head, forged_at(&p, i), 8);
		memcpy(&m.key, forged_at(&p, i) + 8, 8);
		if (!stays(&p, &m))
			fprintf(stderr, "# wrong packet %zu\n", i);
		pair_close(&p);
	}
}

/* Of another VI, and of another life of this one. */
static void for_somebody_else(void)
{
	SKIP_ASKING();
	for (int i = 0; i < 4; i++) {
		struct nic_expected m = expecting(MOST);
		struct nic_packet *packet;
		struct nic_link *link;
		struct pair p;

		open_quick(&p);
		link = p.a.nic->link[p.b.nic->me];
		packet = &link->tx[link->tx_pos & (NIC_RING_CELLS - 1)];
		if (i & 1) {
			say_in_buffer(&p, LEN, 0);
		} else {
			CHECK_EQ(say(&p, 40), NIC_OK);
		}
		if (i & 2)
			packet->vi++;
		else
			packet->gen++;
		CHECK(stays(&p, &m));
		pair_close(&p);
	}
}

/* ---- buffers ------------------------------------------------------------------------------------------------------------------------- */

/* However many go one way, the sender has its share back, and where lines migrate they do so from half of what the receiver keeps on. */
static void a_stream_of_buffers(void)
{
	enum { TIMES = 1000 };

	SKIP_ASKING();
	CHECK_EQ(nic_param_set("buffers", "64", "test"), NIC_OK);
	for (int on = 0; on < 2; on++) {
		struct nic_link *link;
		uint64_t migrated;
		struct pair p;

		CHECK_EQ(nic_param_set("migrate", on ? "on" : "off", "test"), NIC_OK);
		open_quick(&p);
		link = p.b.nic->link[p.a.nic->me];
		migrated = counter(p.b.nic, "migrated");
		for (uint32_t i = 0; i < TIMES; i++) {
			int32_t balance = link->balance + (int32_t)counter(p.b.nic, "buffers_returned");
			uint32_t few = link->keeps / 2u;

			ready(&p);
			CHECK_EQ(say(&p, LEN + i), NIC_OK);
			if (!comes(&p, LEN + i))
				break;
			CHECK_EQ(link->balance + (int32_t)counter(p.b.nic, "buffers_returned"), balance + 1);
			CHECK(link->balance <= link->keeps);
			if (i < 10)
				CHECK_EQ(counter(p.b.nic, "migrated") - migrated, on && i + 2 > few ? i + 2 - few : 0); /* open_quick has sent one */
			nic_poll(p.a.nic);
		}
		CHECK_EQ(counter(p.a.nic, "no_buffer"), 0);
		CHECK_EQ(counter(p.a.nic, "bytes_inline"), 0);
		CHECK(counter(p.b.nic, "buffers_returned") > TIMES - 64);
		CHECK(counter(p.a.nic, "buffers_taken") <= 64);
		close_counted(&p);
		CHECK_EQ(nic_param_set("migrate", "auto", "test"), NIC_OK);
	}
	CHECK_EQ(nic_param_set("buffers", "2048", "test"), NIC_OK);
}

/* As many stay as the sender says. */
static void few_are_kept(void)
{
	struct nic_link *rx;
	struct nic_packet *packet;
	const struct nic_link *tx;
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	rx = p.b.nic->link[p.a.nic->me];
	tx = p.a.nic->link[p.b.nic->me];
	for (int i = 0; i < 2; i++) {
		packet = &tx->tx[tx->tx_pos & (NIC_RING_CELLS - 1)];
		say_in_buffer(&p, LEN, 0);
		packet->buf.handle = i == 0;
		CHECK(comes(&p, LEN));
		CHECK_EQ(rx->keeps, i ? p.b.nic->keeps : NIC_KEEPS_FEW);
	}
	close_counted(&p);
}

/* Also those that the consumer has given back since: the peer may be out of them, and sends in cells. */
static void surplus_behind_cells(void)
{
	enum { N = 60 };
	struct nic_taken out[N];
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(say(&p, LEN), NIC_OK);
		CHECK_EQ(take(&p, &out[i]), NIC_OK);
	}
	for (int i = 0; i < N; i++)
		nic_buf_give(p.b.nic, out[i].buffer);
	CHECK(p.b.nic->link[p.a.nic->me]->balance > p.b.nic->keeps);
	CHECK_EQ(say(&p, 100), NIC_OK);
	CHECK(comes(&p, 100));
	CHECK(p.b.nic->link[p.a.nic->me]->balance <= p.b.nic->keeps);
	close_counted(&p);
}

/* All cells of a stream that were read migrate. */
static void cells_migrate(void)
{
	SKIP_ASKING();
	for (int on = 0; on < 2; on++) {
		struct pair p;

		CHECK_EQ(nic_param_set("migrate", on ? "on" : "off", "test"), NIC_OK);
		CHECK_EQ(nic_param_set("demote", "off", "test"), NIC_OK);
		open_quick(&p);
		for (uint32_t i = 0; i < NIC_RING_LAP - 8; i++) {
			uint32_t len = i % 2 ? 40 : 16;
			struct nic_expected m = expecting(MOST);

			CHECK_EQ(say(&p, len), NIC_OK);
			CHECK(comes(&p, len));
			CHECK_EQ(look(&p, &m), NIC_NOT_DONE);
		}
		CHECK_EQ(counter(p.b.nic, "migrated_cells") >= NIC_RING_LAP - 8 - NIC_RING_LAZY, on);
		close_counted(&p);
		CHECK_EQ(nic_param_set("migrate", "auto", "test"), NIC_OK);
		CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
	}
}

/* ---- what a peer may have made up, or a caller ------------------------------------------------------------------------------------- */

/* So short, and so near the end of the pool, that its first 16 bytes are not in there. */
static void short_at_the_end_of_the_pool(void)
{
	struct nic_expected m = expecting(MOST);
	struct pair p;

	SKIP_ASKING();
	open_quick(&p);
	forge(&p, NIC_OP_SEND_BUF, 4, NIC_POOL_BUFFERS - 1, NIC_BUFFER_SIZE - 4);
	CHECK(stays(&p, &m));
	pair_close(&p);
}

int main(void)
{
	CASE(every_length);
	CASE(in_any_buffer);
	CASE(only_what_is_expected);
	CASE(round_and_round);
	CASE(nothing_there);
	CASE(not_before_the_first);
	CASE(receives_of_some_room);
	CASE(shorter_ones);
	CASE(behind_a_short_lap);
	CASE(completions_come_first);
	CASE(wrong_is_not_taken);
	CASE(for_somebody_else);
	CASE(a_stream_of_buffers);
	CASE(few_are_kept);
	CASE(surplus_behind_cells);
	CASE(cells_migrate);
	CASE(short_at_the_end_of_the_pool);
	return check_done();
}
