/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are waited for (nic_take_expected in ctl/take.c), between the ends of a pair: said in some way, looked for, and where they should be.
 */
#ifndef TESTS_UNIT_NICEMU_AWAITED_H
#define TESTS_UNIT_NICEMU_AWAITED_H

#include "tests/unit/nicemu/quick.h"

enum { GUARD = 64, MOST = NIC_BUFFER_SIZE - NIC_EXPECTED };

static const uint64_t HEAD = 0x8877665544332211, KEY = 0x0123456789abcdef;
static uint8_t space[GUARD + MOST + GUARD], *const into = space + GUARD;

/* is_filled for long ones. */
static inline bool is_all(const uint8_t *p, size_t n, uint8_t byte)
{
	return !n || (p[0] == byte && memcmp(p, p + 1, n - 1) == 0);
}

/* The link by which one end hears from the other. */
static inline struct nic_link *link_of(const struct end *to, const struct end *from)
{
	return to->nic->link[from->nic->me];
}

/* ---- said ---------------------------------------------------------------------------------------------------------------------------- */

/* From one end, of `len` bytes in all, at least 8. */
static inline int say_from(struct end *e, uint64_t head, uint64_t key, uint32_t len, uint32_t seed)
{
	static uint8_t data[NIC_BUFFER_SIZE];
	struct nic_short m = { .head = head, .a = data, .alen = len - 8, .b = data + 8 };

	memcpy(data, &key, sizeof(key));
	if (len > NIC_EXPECTED) {
		pattern(data + 8, len - NIC_EXPECTED, seed);
		m.alen = 8;
		m.blen = len - NIC_EXPECTED;
	}
	return nic_send_short(e->nic, e->vi, &m);
}

static inline int say(struct pair *p, uint32_t len)
{
	return say_from(&p->a, HEAD, KEY, len, len);
}

/* When nothing lies on the link but what passes over the cells behind a short lap, or buffers that come back: what is said next can be taken. */
static inline void ready_at(struct end *to, const struct end *from)
{
	const struct nic_packet *next = nic_link_peek(link_of(to, from));

	if (next && (next->op == NIC_OP_SKIP || next->op == NIC_OP_RETURN))
		nic_poll(to->nic);
}

static inline void ready(struct pair *p)
{
	ready_at(&p->b, &p->a);
}

/* The message that say_from sends, at any place. */
static inline void write_message(uint8_t *to, uint32_t len)
{
	memcpy(to, &HEAD, 8);
	memcpy(to + 8, &KEY, 8);
	pattern(to + NIC_EXPECTED, len - NIC_EXPECTED, len);
}

/* In a buffer, however short it is, from byte `where` of that on; which buffer. */
static inline uint32_t say_in_buffer(struct pair *p, uint32_t len, uint32_t where)
{
	uint8_t *buf = nic_buf_take(p->a.nic);
	uint32_t index;

	ready(p);
	if (!CHECK(buf))
		return 0;
	index = (uint32_t)((size_t)(buf - p->a.nic->map->buffer[0]) / NIC_BUFFER_SIZE);
	memset(buf, 0x55, NIC_BUFFER_SIZE);
	write_message(buf + where, len);
	forge(p, NIC_OP_SEND_BUF, len, index, where);
	link_of(&p->a, &p->b)->balance--;
	return index;
}

/* ---- and heard ----------------------------------------------------------------------------------------------------------------------- */

static inline struct nic_expected expecting(uint32_t room)
{
	memset(space, 0xcc, sizeof(space));
	return (struct nic_expected){ .head = HEAD, .mask = UINT64_MAX, .key = KEY, .to = into, .room = room };
}

static inline int look_at(struct end *to, struct nic_expected *m, uint32_t looks)
{
	return nic_take_expected(to->nic, to->vi, &to->recv_cq, m, looks);
}

static inline int look(struct pair *p, struct nic_expected *m)
{
	return look_at(&p->b, m, 1);
}

/* As many bytes are there, and nothing around them has changed. */
static inline bool is_there(uint32_t n, uint32_t seed)
{
	return CHECK(is_pattern(into, n, seed)) & CHECK(is_all(space, GUARD, 0xcc) && is_all(into + n, sizeof(space) - GUARD - n, 0xcc));
}

/* The next one is good, and of `len` bytes. */
static inline bool comes_to(struct end *to, const struct end *from, uint32_t len)
{
	struct nic_expected m = expecting(len - NIC_EXPECTED);
	struct nic *nic = to->nic;
	uint64_t packets = counter(nic, "packets_received"), received = counter(nic, "recv_short"), expected = counter(nic, "recv_expected");
	const struct nic_link *link = link_of(to, from);

	if (!CHECK_EQ(look_at(to, &m, 1), NIC_OK))
		return false;
	return CHECK_EQ(m.length, len - NIC_EXPECTED) & CHECK_EQ(m.word, HEAD) & is_there(len - NIC_EXPECTED, len) &
	       CHECK_EQ(counter(nic, "packets_received"), packets + 1) & CHECK_EQ(counter(nic, "recv_short"), received + 1) &
	       CHECK_EQ(counter(nic, "recv_expected"), expected + 1) & CHECK_EQ(*link->rx_exact, link->rx_pos); /* who recovers its links begins there */
}

static inline bool comes(struct pair *p, uint32_t len)
{
	return comes_to(&p->b, &p->a, len);
}

/* Nothing has happened to what is next, if there is anything, in so many looks. */
static inline bool stays_for(struct pair *p, struct nic_expected *m, uint32_t looks)
{
	struct nic *nic = p->b.nic;
	uint64_t packets = counter(nic, "packets_received"), received = counter(nic, "recv_short"), expected = counter(nic, "recv_expected"),
	         foreseen = counter(nic, "recv_foreseen");
	const struct nic_link *link = link_of(&p->b, &p->a);
	uint32_t pos = link->rx_pos, buffers = nic->slot->nbuffers, at = link->foreseen_at;
	const uint8_t *guess = link->foreseen;
	int32_t balance = link->balance;

	memset(space, 0xcc, sizeof(space));
	return CHECK_EQ(look_at(&p->b, m, looks), NIC_NOT_DONE) & CHECK(is_all(space, sizeof(space), 0xcc)) & CHECK_EQ(link->rx_pos, pos) &
	       CHECK_EQ(*link->rx_exact, pos) & CHECK_EQ(link->balance, balance) & CHECK_EQ(nic->slot->nbuffers, buffers) &
	       CHECK_EQ(counter(nic, "packets_received"), packets) & CHECK_EQ(counter(nic, "recv_short"), received) &
	       CHECK_EQ(counter(nic, "recv_expected"), expected) & CHECK_EQ(counter(nic, "recv_foreseen"), foreseen) &
	       CHECK(link->foreseen == guess && link->foreseen_at == at);
}

static inline bool stays(struct pair *p, struct nic_expected *m)
{
	return stays_for(p, m, 1);
}

/* The other way still has it, as a whole. */
static inline bool is_whole(struct pair *p, uint64_t head, uint64_t key, uint32_t len, uint32_t seed)
{
	struct nic_taken out;
	bool good;

	if (!CHECK_EQ(take(p, &out), NIC_OK) || !CHECK_EQ(out.length, len))
		return false;
	good = CHECK(memcmp(out.data, &head, 8) == 0 && memcmp((uint8_t *)out.data + 8, &key, len < NIC_EXPECTED ? len - 8 : 8) == 0);
	if (len > NIC_EXPECTED)
		good &= CHECK(is_pattern((uint8_t *)out.data + NIC_EXPECTED, len - NIC_EXPECTED, seed));
	if (out.buffer)
		nic_buf_give(p->b.nic, out.buffer);
	return good;
}

/* No buffer is lost or doubled. */
static inline void close_counted(struct pair *p)
{
	const struct nic_pool *pool = &p->a.nic->map->pool;

	pair_poll(p);
	CHECK_EQ(pool->bump - pool->nfree, p->a.nic->slot->nbuffers + p->b.nic->slot->nbuffers);
	CHECK_EQ(link_of(&p->a, &p->b)->balance, -link_of(&p->b, &p->a)->balance);
	CHECK_EQ(counter(p->b.nic, "bad_packets"), 0);
	pair_close(p);
}

#endif
