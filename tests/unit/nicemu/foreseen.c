/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the next message will lie (nic_link_foresee in engine/link.h, ctl/give.c, ctl/take.c): what either side foresees, that a wrong guess or a forged
 * hint costs nothing, and that who waits asks for what is foreseen, where that is wanted, and gets the message.  Counter recv_foreseen counts
 * guesses that were right: whether anybody asked for the lines there (parameter foresee, and who waited) does not matter to it.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/nicemu/asking.h"
#include "tests/unit/nicemu/awaited.h"
#include "tests/unit/nicemu/two_cores.h"

#include "nicemu/ctl/take.c"

static const uint32_t sizes[] = { 300, 1000, LEN, 30000 };
enum { SIZES = sizeof(sizes) / sizeof(*sizes), POOL = NIC_POOL_BUFFERS };

/* With a link on which from 229 bytes on messages go in buffers. */
static void open_foreseeing(struct pair *p, const char *foresee)
{
	CHECK_EQ(nic_param_set("hasten", "off", "test"), NIC_OK); /* tests/unit/nicemu/hasten.c */
	CHECK_EQ(nic_param_set("demote", "off", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("foresee", foresee, "test"), NIC_OK);
	open_quick(p);
	CHECK_EQ(nic_param_set("foresee", "auto", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("hasten", "auto", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
}

/* The other end knows that the next message is good by value, too. */
static void open_both(struct pair *p, const char *foresee)
{
	struct nic_taken out = { .data = room };

	open_foreseeing(p, foresee);
	recv_desc(&p->a, fill(&p->a, 0, NIC_CTL_POOL, p->a.mem, 64));
	CHECK_EQ(say_from(&p->b, HEAD, KEY, 40, 40), NIC_OK);
	CHECK_EQ(nic_take_of(p->a.nic, p->a.vi, &p->a.recv_cq, &out), NIC_OK);
	CHECK_EQ(nic_vi(p->a.nic, p->a.vi)->rx_quick, NIC_BUFFER_SIZE);
}

static uint64_t foreseen(const struct end *e)
{
	return counter(e->nic, "recv_foreseen");
}

/* Of what is waited for, in so many looks in vain: was it asked for where the link foresees it, at each look but the first? */
static bool asks(struct pair *p, uint32_t looks)
{
	const struct nic_link *link = link_of(&p->b, &p->a);
	struct nic_expected m = expecting(MOST);
	uint32_t before = asking.looks;

	CHECK(stays_for(p, &m, looks));
	if (asking.looks == before)
		return false;
	return CHECK_EQ(asking.looks - before, (looks < NIC_EXPECTED_LOOKS ? looks : NIC_EXPECTED_LOOKS) - 1) &
	       CHECK(asking.word == &link->rx[link->rx_pos & (NIC_RING_CELLS - 1)].seq && asking.wanted == link->rx_pos + 1) &
	       CHECK(asking.from == link->foreseen && asking.end == link->foreseen + link->foreseen_len);
}

/* Is the next message on that link foreseen anywhere? */
static bool foresees(const struct nic_link *link)
{
	return link->foreseen_at == link->rx_pos;
}

static bool in_pool(const struct end *e, const struct nic_link *link)
{
	const uint8_t *pool = e->nic->pool, *end = pool + (size_t)POOL * NIC_BUFFER_SIZE;

	return link->foreseen >= pool && link->foreseen < end && link->foreseen_len <= (size_t)(end - link->foreseen);
}

/* ---- right ------------------------------------------------------------------------------------------------------------------------------- */

static void as_the_parameter_says(void)
{
	static const char *const ways[] = { "auto", "on", "off" };

	SKIP_ASKING();
	for (int i = 0; i < 3; i++) {
		struct pair p;

		open_foreseeing(&p, ways[i]);
		CHECK_EQ(link_of(&p.b, &p.a)->foresees, i < 2 && nic_look_works());
		CHECK_EQ(link_of(&p.a, &p.b)->foresees, i < 2 && nic_look_works());
		pair_close(&p);
	}
}

static void nothing_at_first(void)
{
	struct nic_link *link;
	struct pair p;

	SKIP_ASKING();
	for (int again = 0; again < 2; again++) { /* also where a pair has been before */
		pair_open(&p, NIC_RELIABLE_DELIVERY);
		recv_desc(&p.b, fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 64));
		CHECK_EQ(say(&p, 40), NIC_OK);
		CHECK(is_whole(&p, HEAD, KEY, 40, 40));
		link = link_of(&p.b, &p.a);
		CHECK(!foresees(link) && !link->foreseen);
		CHECK(!asks(&p, 100));
		CHECK_EQ(say(&p, LEN), NIC_OK);
		CHECK(!foresees(link) && comes(&p, LEN));
		CHECK_EQ(foreseen(&p.b), 0);
		CHECK(foresees(link) && asks(&p, 100) == link->foresees);
		pair_close(&p);
	}
	/* Before anything has come. */
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	recv_desc(&p.b, fill(&p.b, 0, NIC_CTL_POOL, p.b.mem, 64));
	CHECK_EQ(say(&p, 40), NIC_OK); /* which opens links */
	pair_poll(&p);
	for (int i = 0; i < 2; i++) {
		link = i ? link_of(&p.a, &p.b) : link_of(&p.b, &p.a);
		REQUIRE(link);
		CHECK(!foresees(link) && !link->foreseen);
	}
	pair_close(&p);
}

/* What b says in the buffer in which it has got something: out of it, and into it again, or where it lies. */
static bool answers(struct pair *p, uint32_t len, bool where_it_lies)
{
	struct nic_taken out;

	if (!where_it_lies)
		return comes(p, len) && CHECK_EQ(say_from(&p->b, HEAD, KEY, len, len), NIC_OK);
	if (!CHECK_EQ(take(p, &out), NIC_OK) || !CHECK(out.buffer && out.length == len))
		return false;
	CHECK(is_pattern((uint8_t *)out.data + NIC_EXPECTED, len - NIC_EXPECTED, len));
	write_message(out.data, len);
	return CHECK_EQ(nic_send_given(p->b.nic, p->b.vi, out.data, len), NIC_OK);
}

/* There and back: who sent a message first foresees the answer there, with foresee or without. */
static void to_and_fro(void)
{
	enum { TIMES = 200 };

	SKIP_ASKING();
	for (int i = 0; i < 4; i++) {
		struct pair p;
		uint64_t a, b;

		open_both(&p, i / 2 ? "off" : "on");
		a = foreseen(&p.a), b = foreseen(&p.b);
		for (uint32_t n = 0; n < TIMES; n++) {
			uint32_t len = sizes[n % SIZES] + n;

			ready(&p);
			CHECK_EQ(say(&p, len), NIC_OK);
			CHECK(foresees(link_of(&p.a, &p.b)) && link_of(&p.a, &p.b)->foreseen_len == len);
			ready_at(&p.a, &p.b);
			if (!answers(&p, len, i % 2))
				break;
			CHECK(foresees(link_of(&p.b, &p.a)) && link_of(&p.b, &p.a)->foreseen_len == len);
			if (!comes_to(&p.a, &p.b, len))
				break;
		}
		CHECK_EQ(foreseen(&p.a) - a, TIMES);
		CHECK_EQ(foreseen(&p.b) - b, i % 2 ? 0 : TIMES - 1); /* it has sent none before the first; and only what is awaited counts */
		CHECK_EQ(counter(p.a.nic, "buffers_returned") + counter(p.b.nic, "buffers_returned"), 0);
		close_counted(&p);
	}
}

/*
 * Short ones there, which lie in their cell, and answers in buffers: each says where the next one will be.  That is wrong where the answerer's stack has
 * changed in between: when buffers have come back, or from the pool.
 */
static void request_and_reply(void)
{
	enum { TIMES = 700, BACK = 11 }; /* more than round the ring; buffers that come back at once */

	_Static_assert((int)TIMES > (int)NIC_RING_CELLS, "as it says");
	SKIP_ASKING();
	for (uint32_t i = 0; i < 2 * SIZES; i++) {
		const uint32_t len = sizes[i / 2];
		uint64_t before, changes;
		struct pair p;

		open_both(&p, i % 2 ? "off" : "on");
		CHECK(nic_buffer_fetch(p.b.nic)); /* it has a next one from the first on */
		before = foreseen(&p.a);
		for (uint32_t n = 0; n < TIMES; n++) {
			const struct nic_link *link = link_of(&p.a, &p.b);

			ready(&p);
			CHECK_EQ(say(&p, 40), NIC_OK);
			ready_at(&p.a, &p.b);
			if (!comes(&p, 40) || !CHECK_EQ(say_from(&p.b, HEAD, KEY, len, len), NIC_OK) || !comes_to(&p.a, &p.b, len))
				break;
			CHECK(n > 1 || foreseen(&p.a) - before == n); /* from the second on */
			CHECK(foresees(link) && in_pool(&p.a, link) && link->foreseen_len == len);
		}
		CHECK_EQ(foreseen(&p.b), 0);
		changes = counter(p.a.nic, "buffers_returned") / BACK + counter(p.b.nic, "buffers_taken") / NIC_BUFFER_BATCH;
		CHECK(counter(p.a.nic, "buffers_returned") > TIMES / 2);
		CHECK(foreseen(&p.a) - before + 1 + changes >= TIMES);
		CHECK(foreseen(&p.a) - before < TIMES);
		close_counted(&p);
	}
}

/* What the sender says of its next buffer, beside whether this one is to come back soon; and the next message is there. */
static void said_by_the_sender(void)
{
	const struct nic_link *rx;
	struct nic_link *tx;
	struct pair p;

	SKIP_ASKING();
	open_foreseeing(&p, "auto");
	tx = link_of(&p.a, &p.b);
	rx = link_of(&p.b, &p.a);
	for (uint32_t n = 0; n < 12; n++) {
		const struct nic_packet *packet = &tx->tx[tx->tx_pos & (NIC_RING_CELLS - 1)];
		const struct nic_slot *slot = p.a.nic->slot;
		uint32_t len = sizes[n % SIZES], next;
		uint64_t before = foreseen(&p.b);
		const uint8_t *where;

		tx->few = n % 3 == 1;
		if (n % 4 == 3) { /* given whole */
			uint8_t *buf = nic_buf_take(p.a.nic);

			REQUIRE(buf);
			write_message(buf + 48, len);
			CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf + 48, len), NIC_OK);
		} else {
			CHECK_EQ(say(&p, len), NIC_OK);
		}
		CHECK(!tx->few);
		next = slot->buffer[slot->nbuffers - 1];
		CHECK_EQ(packet->buf.handle, next << 1 | (n % 3 == 1 ? NIC_SEND_SOON : 0));
		where = nic_buffer(p.b.nic, packet->buf.buffer) + packet->buf.addr;
		CHECK(tx->foreseen == where && tx->foreseen_len == len && foresees(tx)); /* the answer */
		CHECK_EQ(rx->foreseen == where, n != 0);
		CHECK(comes(&p, len));
		CHECK_EQ(foreseen(&p.b), before + (n != 0));
		CHECK(rx->foreseen == nic_buffer(p.b.nic, next) + packet->buf.addr && rx->foreseen_len == len && foresees(rx));
	}
	close_counted(&p);
}

/* It has none in hand: then it says any. */
static void said_without_a_next_one(void)
{
	const struct nic_link *tx;
	void *all;
	struct pair p;

	SKIP_ASKING();
	open_foreseeing(&p, "auto");
	tx = link_of(&p.a, &p.b);
	all = end_take_all(&p.a);
	REQUIRE(all && !p.a.nic->slot->nbuffers);
	for (uint32_t n = 0; n < 3; n++) {
		uint8_t *buf = all;

		memcpy(&all, buf, sizeof(all));
		write_message(buf, LEN);
		CHECK_EQ(nic_send_given(p.a.nic, p.a.vi, buf, LEN), NIC_OK);
		CHECK(tx->tx[(tx->tx_pos - 1) & (NIC_RING_CELLS - 1)].buf.handle >> 1 < POOL);
		CHECK(comes(&p, LEN) && in_pool(&p.b, link_of(&p.b, &p.a)));
		CHECK_EQ(foreseen(&p.b), 0);
	}
	end_give_back(&p.a, all);
	pair_poll(&p);
	close_counted(&p);
}

/* Only the very next packet is; and one in cells says nothing of the one behind it. */
static void the_next_one_only(void)
{
	const struct nic_link *link;
	uint64_t before;
	struct pair p;

	SKIP_ASKING();
	open_foreseeing(&p, "auto");
	link = link_of(&p.b, &p.a);
	for (uint32_t cells = 16; cells <= NIC_BRIEF; cells += 46) {
		ready(&p);
		CHECK_EQ(say(&p, LEN), NIC_OK);
		CHECK(comes(&p, LEN) && foresees(link) && asks(&p, 100) == link->foresees);
		CHECK_EQ(say(&p, cells), NIC_OK);
		CHECK(comes(&p, cells) && !foresees(link) && !asks(&p, 100));
		before = foreseen(&p.b);
		CHECK_EQ(say(&p, LEN), NIC_OK);
		CHECK(comes(&p, LEN) && foresees(link));
		CHECK_EQ(foreseen(&p.b), before); /* it lies there, but nobody looked for it there any more */
		/* Nor does one that is taken the other way. */
		CHECK_EQ(say(&p, LEN), NIC_OK);
		CHECK(is_whole(&p, HEAD, KEY, LEN, LEN) && !foresees(link) && !asks(&p, 100));
		nic_poll(p.a.nic);
	}
	close_counted(&p);
}

/* Behind a message of several cells those of the next one are asked for, though this side has sent one in a buffer since. */
static void cells_come_first(void)
{
	const struct nic_link *link;
	struct pair p;

	SKIP_ASKING();
	open_both(&p, "auto");
	link = link_of(&p.b, &p.a);
	for (uint32_t len = 40; len <= NIC_BRIEF; len += 60) {
		CHECK_EQ(say(&p, len), NIC_OK);
		CHECK(comes(&p, len));
		CHECK_EQ(say_from(&p.b, HEAD, KEY, LEN, LEN), NIC_OK);
		CHECK(comes_to(&p.a, &p.b, LEN));
		CHECK(foresees(link));
		CHECK_EQ(link->rx_more, len > NIC_PAYLOAD);
		CHECK_EQ(asks(&p, 100), link->foresees && len <= NIC_PAYLOAD);
	}
	close_counted(&p);
}

/* ---- wrong ------------------------------------------------------------------------------------------------------------------------------- */

/* Not in the buffer that a said it would take, which it would take next then. */
static int say_elsewhere(struct pair *p, uint32_t len)
{
	uint8_t *first = nic_buf_take(p->a.nic);
	int err;

	if (!first)
		return NIC_RESOURCE;
	err = say(p, len);
	nic_buf_give(p->a.nic, first);
	return err;
}

/* Another buffer, or place in it: as good as any, and not counted.  Another length at that place is foreseen all the same. */
static void wrong_ones(void)
{
	SKIP_ASKING();
	for (int on = 0; on < 2; on++)
		for (uint32_t i = 0; i < SIZES; i++) {
			const uint32_t len = sizes[i];
			const struct nic_link *link;
			uint64_t before;
			struct pair p;

			open_foreseeing(&p, on ? "on" : "off");
			CHECK(nic_buffer_fetch(p.a.nic)); /* enough for all that follows */
			link = link_of(&p.b, &p.a);
			CHECK_EQ(say(&p, len), NIC_OK);
			CHECK(comes(&p, len));
			before = foreseen(&p.b);
			CHECK(foresees(link) && link->foreseen_len == len);
			CHECK_EQ(say_elsewhere(&p, len), NIC_OK);
			CHECK(comes(&p, len));
			CHECK_EQ(foreseen(&p.b), before);
			for (uint32_t k = 0; k < 5; k++) { /* in that buffer, before or behind that place */
				const uint32_t places[] = { 0, 47, 49, 48 + 64, NIC_BUFFER_SIZE - len };
				uint32_t index;

				CHECK_EQ(say(&p, len), NIC_OK);
				CHECK(comes(&p, len));
				before = foreseen(&p.b);
				index = say_in_buffer(&p, len, places[k]);
				CHECK(foresees(link) && link->foreseen == nic_buffer(p.b.nic, index) + 48);
				CHECK(comes(&p, len));
				CHECK_EQ(foreseen(&p.b), before);
			}
			CHECK_EQ(say(&p, len), NIC_OK);
			CHECK(comes(&p, len));
			before = foreseen(&p.b);
			CHECK_EQ(say(&p, len + 1000), NIC_OK);
			CHECK(comes(&p, len + 1000));
			CHECK_EQ(say(&p, 229), NIC_OK);
			CHECK(comes(&p, 229));
			CHECK_EQ(foreseen(&p.b), before + 2);
			/* In cells, though it is foreseen in a buffer. */
			CHECK(foresees(link));
			CHECK_EQ(say(&p, 100), NIC_OK);
			CHECK(comes(&p, 100));
			CHECK_EQ(foreseen(&p.b), before + 2);
			/* What is not expected stays, and is foreseen there still. */
			CHECK_EQ(say(&p, len), NIC_OK);
			CHECK(comes(&p, len));
			CHECK_EQ(say_from(&p.a, HEAD, KEY + 1, len, 5), NIC_OK);
			{
				struct nic_expected m = expecting(MOST);

				CHECK(stays_for(&p, &m, 100));
			}
			CHECK(is_whole(&p, HEAD, KEY + 1, len, 5));
			close_counted(&p);
		}
}

/* ---- forged ------------------------------------------------------------------------------------------------------------------------------ */

/* Whatever stands beside the bit that says whether the buffer is to come back soon: it is a guess, and in the pool. */
static void forged_hints(void)
{
	static const uint32_t hints[] = { 0, 1, 2, 3, UINT32_MAX, UINT32_MAX - 1, (POOL - 1) << 1, (POOL - 1) << 1 | 1, POOL << 1, POOL << 1 | 1,
		(POOL + 1) << 1, (uint32_t)POOL << 2, 1u << 31, 1u << 31 | 1, 0x5a5a5a5a, 0xa5a5a5a5 };
	static const uint32_t places[] = { 0, 1, 640, NIC_BUFFER_SIZE - LEN - 1, NIC_BUFFER_SIZE - LEN };

	SKIP_ASKING();
	for (int on = 0; on < 2; on++)
		for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
			const uint32_t hint = hints[i];
			struct nic_link *rx, *tx;
			struct pair p;

			open_foreseeing(&p, on ? "on" : "off");
			rx = link_of(&p.b, &p.a);
			tx = link_of(&p.a, &p.b);
			for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++) {
				const uint32_t where = places[k];
				struct nic_packet *packet = &tx->tx[tx->tx_pos & (NIC_RING_CELLS - 1)];

				say_in_buffer(&p, LEN, where);
				packet->buf.handle = hint;
				CHECK(comes(&p, LEN));
				CHECK_EQ(rx->keeps, hint & 1 ? NIC_KEEPS_FEW : p.b.nic->keeps);
				CHECK(in_pool(&p.b, rx) && foresees(rx));
				CHECK_EQ(rx->foreseen_len, LEN);
				CHECK_EQ((size_t)(rx->foreseen - p.b.nic->pool), (size_t)(hint >> 1) % POOL * NIC_BUFFER_SIZE + where);
				CHECK_EQ(asks(&p, 100), rx->foresees);
				/* Taken otherwise it means nothing but the bit. */
				packet = &tx->tx[tx->tx_pos & (NIC_RING_CELLS - 1)];
				say_in_buffer(&p, LEN, where);
				packet->buf.handle = hint;
				CHECK(is_whole(&p, HEAD, KEY, LEN, LEN));
				CHECK_EQ(rx->keeps, hint & 1 ? NIC_KEEPS_FEW : p.b.nic->keeps);
				packet = &tx->tx[tx->tx_pos & (NIC_RING_CELLS - 1)];
				say_in_buffer(&p, LEN, where);
				packet->buf.handle = hint;
				pair_poll(&p);
				CHECK_EQ(status_of(&p.b.desc[k]) & NIC_ST_DONE, NIC_ST_DONE);
				CHECK_EQ(rx->keeps, hint & 1 ? NIC_KEEPS_FEW : p.b.nic->keeps);
				nic_buf_give(p.b.nic, (void *)(uintptr_t)p.b.desc[k].seg[1].addr);
				CHECK(nic_cq_take(&p.b.recv_cq, &(uint64_t){ 0 }));
				recv_desc(&p.b, fill(&p.b, (int)k + 1, NIC_CTL_POOL, p.b.mem, 64));
				CHECK_EQ(say(&p, LEN), NIC_OK);
				CHECK(is_whole(&p, HEAD, KEY, LEN, LEN)); /* this receive is good */
				nic_poll(p.a.nic);
			}
			close_counted(&p);
		}
}

/* Of what is no message that word is something else: a handle, which may be odd. */
static void handles_say_nothing(void)
{
	static const uint8_t ops[] = { NIC_OP_WRITE_BUF, NIC_OP_READ_BUF, NIC_OP_WRITE_PART };

	SKIP_ASKING();
	for (size_t i = 0; i < sizeof(ops); i++) {
		struct nic_packet *packet;
		struct nic_link *rx, *tx;
		struct pair p;

		open_foreseeing(&p, "auto");
		rx = link_of(&p.b, &p.a);
		tx = link_of(&p.a, &p.b);
		tx->few = true;
		CHECK_EQ(say(&p, LEN), NIC_OK);
		CHECK(comes(&p, LEN));
		CHECK_EQ(rx->keeps, NIC_KEEPS_FEW);
		packet = &tx->tx[tx->tx_pos & (NIC_RING_CELLS - 1)];
		say_in_buffer(&p, LEN, 0);
		packet->op = ops[i];
		packet->buf.handle = 1;
		nic_poll(p.b.nic);
		CHECK(!nic_link_any(rx));
		CHECK_EQ(rx->keeps, p.b.nic->keeps);
		pair_close(&p);
	}
}

/* ---- waited for -------------------------------------------------------------------------------------------------------------------------- */

static void nothing_comes(void)
{
	static const uint32_t looks[] = { 0, 1, 2, 3, 40, NIC_EXPECTED_LOOKS, UINT32_MAX };

	SKIP_ASKING();
	for (int on = 0; on < 2; on++)
		for (uint32_t i = 0; i < SIZES; i++) {
			struct nic_link *link;
			struct pair p;

			open_foreseeing(&p, on ? "on" : "off");
			link = link_of(&p.b, &p.a);
			CHECK_EQ(say(&p, sizes[i]), NIC_OK);
			CHECK(comes(&p, sizes[i]));
			for (size_t k = 0; k < sizeof(looks) / sizeof(*looks); k++) {
				link->rx_row = 3;
				CHECK(foresees(link));
				CHECK_EQ(asks(&p, looks[k]), on && nic_look_works() && looks[k] > 1);
				CHECK_EQ(link->rx_row, 0);
			}
			CHECK_EQ(say(&p, sizes[i]), NIC_OK);
			CHECK(comes(&p, sizes[i]));
			close_counted(&p);
		}
}

/* Who says something each time that it is asked for, a moment later. */
struct speaker {
	struct pair *p;
	uint32_t len;
	bool elsewhere; /* not in the buffer that it said it would take */
	bool apart;     /* from who waits for it, on a processor of its own */
	_Atomic uint32_t asked, said;
	int err;
};

#define SILENT UINT32_MAX

static void *say_when_asked(void *arg)
{
	struct speaker *s = arg;

	if (s->apart)
		second_core();
	for (uint32_t n = 1, asked; !s->err; n++) {
		for (uint32_t k = 1; (asked = nic_load_acquire(&s->asked)) != n && asked != SILENT; k++) /* pairs with waited_for */
			if (k % 1000 == 0)
				sched_yield();
		if (asked == SILENT)
			break;
		nic_poll(s->p->a.nic);
		for (uint32_t k = 0; k < n * 37 % 300; k++)
			nic_cpu_relax();
		s->err = s->elsewhere && n % 2 ? say_elsewhere(s->p, s->len) : say(s->p, s->len);
		nic_store_release(&s->said, n); /* pairs with waited_for */
	}
	return NULL;
}

/* Asks for one and waits; where it had to look more than once, `met` counts. */
static bool waited_for(struct speaker *s, uint32_t n, uint32_t *met)
{
	struct nic_expected m = expecting(MOST);
	struct end *b = &s->p->b;
	struct nic_link *link = link_of(b, &s->p->a);
	bool nothing;

	ready(s->p);
	CHECK(s->len <= 512 || n == 1 || foresees(link)); /* behind the end of a short lap nothing is */
	nic_store_release(&s->asked, n); /* pairs with say_when_asked */
	for (uint32_t i = 0;; i++) {
		nothing = !nic_link_any(link);
		if (look_at(b, &m, UINT32_MAX) == NIC_OK)
			break;
		if (i % 16 == 15)
			sched_yield();
		if (!CHECK(i < 1000000))
			return false;
	}
	*met += nothing;
	while (nic_load_acquire(&s->said) != n) /* pairs with say_when_asked */
		sched_yield();
	return CHECK_EQ(m.length, s->len - NIC_EXPECTED) && CHECK_EQ(m.word, HEAD) & is_there(m.length, s->len);
}

/* Of one length, until some have come while they were waited for: it may take long before both have a core.  With one for both none need have. */
static void waits(const char *foresee, uint32_t len, bool elsewhere)
{
	enum { LEAST = 60, MET = 5, TRIES = 5000 };
	struct pair p;
	struct speaker s = { .p = &p, .len = len, .elsewhere = elsewhere };
	uint32_t met = 0, n = 1, enough;
	pthread_t thread;

	open_foreseeing(&p, foresee);
	s.apart = two_cores();
	enough = s.apart ? MET : 0;
	REQUIRE(pthread_create(&thread, NULL, say_when_asked, &s) == 0);
	for (; n < TRIES && (n <= LEAST || met < enough) && waited_for(&s, n, &met); n++)
		;
	nic_store_release(&s.asked, SILENT); /* pairs with say_when_asked */
	pthread_join(thread, NULL);
	all_cores();
	CHECK_EQ(s.err, NIC_OK);
	CHECK(met >= enough);
	if (elsewhere)
		CHECK(foreseen(&p.b) <= n / 2 + 1);
	else
		CHECK(foreseen(&p.b) >= n / 2); /* not behind a lap's end, nor where buffers have come back */
	close_counted(&p);
}

static void it_comes_meanwhile(void)
{
	SKIP_ASKING();
	for (int on = 0; on < 2; on++)
		for (uint32_t i = 0; i < SIZES; i++)
			for (int elsewhere = 0; elsewhere < 2; elsewhere++)
				waits(on ? "on" : "off", sizes[i], elsewhere);
}

int main(void)
{
	CASE(as_the_parameter_says);
	CASE(nothing_at_first);
	CASE(to_and_fro);
	CASE(request_and_reply);
	CASE(said_by_the_sender);
	CASE(said_without_a_next_one);
	CASE(the_next_one_only);
	CASE(cells_come_first);
	CASE(wrong_ones);
	CASE(forged_hints);
	CASE(handles_say_nothing);
	CASE(nothing_comes);
	CASE(it_comes_meanwhile);
	return check_done();
}
