/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links that hasten (parameter hasten; ctl/take.c): how a process that waits rests between two looks, and what is asked for when its message is there: the cells
 * of an answer, as many as the message before had, and a short message's lines where they are foreseen.  Nobody sees that otherwise, so it is counted
 * here.  Messages come as they do without.
 */
#include "nicemu/util/atomic.h"

/* What was called, how often, and for what. */
static struct {
	uint32_t rests, fences, owns, lines;
	const void *own[32], *line;
	size_t len;
} seen;

static inline void seen_relax(void)
{
	seen.rests++;
	nic_cpu_relax();
}

static inline void seen_look_over(void)
{
	seen.fences++;
	nic_cpu_look_over();
}

static inline void seen_own(const void *p)
{
	if (seen.owns < 32)
		seen.own[seen.owns] = p;
	seen.owns++;
	nic_prefetch_write(p);
}

static inline void seen_lines(const void *p, size_t len)
{
	seen.lines++;
	seen.line = p;
	seen.len = len;
	nic_prefetch_lines(p, len);
}

#include "tests/unit/nicemu/asking.h"
#include "tests/unit/nicemu/awaited.h"

#include "nicemu/engine/cores.h"

#define nic_cpu_relax seen_relax
#define nic_cpu_look_over seen_look_over
#define nic_prefetch_write seen_own
#define nic_prefetch_lines seen_lines
#include "nicemu/ctl/take.c"

enum { ON, OFF, AUTO };
static const char *const ways[] = { "on", "off", "auto" };

static void open_hastening(struct pair *p, int way)
{
	CHECK_EQ(nic_param_set("demote", "off", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("hasten", ways[way], "test"), NIC_OK);
	open_quick(p);
	CHECK_EQ(nic_param_set("hasten", "auto", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("demote", "auto", "test"), NIC_OK);
}

static void as_the_parameter_says(void)
{
	for (int way = ON; way <= AUTO; way++) {
		struct pair p;

		open_hastening(&p, way);
		CHECK_EQ(link_of(&p.b, &p.a)->hastens, way == ON || (way == AUTO && nic_cores_hasten()));
		CHECK_EQ(link_of(&p.a, &p.b)->hastens, way == ON || (way == AUTO && nic_cores_hasten()));
		pair_close(&p);
	}
}

/* Of so many times between two looks, behind how many does it look so that the look asks? */
static uint32_t asking_for(const struct nic_link *link, uint32_t len, uint32_t between, bool first)
{
	uint32_t soon = first ? SOON - 1 : 0;

	if (!link->foresees || link->foreseen_at != link->rx_pos || (link->hastens && len <= NATURAL))
		return 0;
	if (!link->hastens || len > HASTENED)
		return between;
	return between > soon ? between - soon : 0;
}

/* Between two looks it pauses, or is held; where a look asks itself, it pauses or goes on.  Looks begin to ask when a message is not there soon. */
static void rests(void)
{
	static const uint32_t lens[] = { 40, 100, 300, NATURAL, NATURAL + 1, HASTENED, HASTENED + 1, 5000 };
	static const uint32_t looks[] = { 0, 1, 2, SOON, SOON + 1, 40, NIC_EXPECTED_LOOKS };

	for (int way = ON; way <= OFF; way++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
			for (size_t k = 0; k < 2 * sizeof(looks) / sizeof(*looks); k++) {
				uint32_t most = looks[k / 2], between = most ? most - 1 : 0, asks;
				const struct nic_link *link;
				struct pair p;

				open_hastening(&p, way);
				CHECK_EQ(say(&p, lens[i]), NIC_OK);
				CHECK(comes(&p, lens[i]));
				link = link_of(&p.b, &p.a);
				if (k % 2)
					CHECK(stays_for(&p, &(struct nic_expected){ .head = HEAD, .mask = UINT64_MAX, .key = KEY, .to = into, .room = MOST }, 1));
				asks = asking_for(link, lens[i], between, k % 2 == 0);
				memset(&seen, 0, sizeof(seen));
				asking.looks = 0;
				CHECK(stays_for(&p, &(struct nic_expected){ .head = HEAD, .mask = UINT64_MAX, .key = KEY, .to = into, .room = MOST }, most));
				CHECK_EQ(asking.looks, asks);
				CHECK_EQ(seen.rests, way == ON ? between : 0);
				CHECK_EQ(seen.fences, way == ON ? 0 : between - asks);
				CHECK_EQ(seen.owns, 0);
				CHECK_EQ(seen.lines, 0);
				pair_close(&p);
			}
}

/* A message behind one that was alike. */
static bool comes_again(struct pair *p, uint32_t len)
{
	CHECK_EQ(say(p, len), NIC_OK);
	CHECK(comes(p, len));
	CHECK_EQ(say(p, len), NIC_OK);
	memset(&seen, 0, sizeof(seen));
	return CHECK(comes(p, len));
}

static void cells_of_an_answer(void)
{
	static const uint32_t lens[] = { 16, 40, 60, NIC_BRIEF, 300, NATURAL, NATURAL + 1, HASTENED, HASTENED + 1, 30000 };

	for (int way = ON; way <= OFF; way++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
			uint32_t len = lens[i], cells = len <= NIC_BRIEF ? nic_packet_cells(len) : 1, own;
			const struct nic_link *link;
			struct pair p;

			open_hastening(&p, way);
			CHECK(comes_again(&p, len));
			link = link_of(&p.b, &p.a);
			own = way == OFF || len > HASTENED ? 0 : cells;
			CHECK_EQ(seen.owns, own);
			for (uint32_t k = 0; k < own && k < 32; k++)
				CHECK(seen.own[k] == nic_link_more(link->tx, link->tx_pos, k));
			pair_close(&p);
		}
}

/* What is asked for first is where a message is foreseen that is not long; then, as ever, where it is. */
static void lines_of_a_message(void)
{
	static const uint32_t lens[] = { 40, 300, NATURAL + 1, HASTENED, HASTENED + 1, 30000 };

	for (int way = ON; way <= OFF; way++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
			bool foreseen = way == ON && lens[i] > 200 && lens[i] <= HASTENED;
			struct pair p;

			open_hastening(&p, way);
			CHECK(comes_again(&p, lens[i]));
			CHECK_EQ(seen.lines, (lens[i] > 200) + foreseen);
			pair_close(&p);
		}
}

/* Where one was foreseen once, but not the next. */
static void nothing_foreseen(void)
{
	struct pair p;

	open_hastening(&p, ON);
	CHECK(comes_again(&p, 300));
	CHECK(comes_again(&p, 40));
	CHECK(link_of(&p.b, &p.a)->foreseen_len == 300);
	CHECK_EQ(seen.lines, 0);
	CHECK_EQ(seen.owns, 1);
	pair_close(&p);
}

/* To and fro in all lengths, so that cells and buffers follow each other, over more than a ring of cells. */
static void to_and_fro(void)
{
	for (int way = ON; way <= OFF; way++) {
		struct pair p;
		struct nic_taken out = { .data = room };

		open_hastening(&p, way);
		recv_desc(&p.a, fill(&p.a, 0, NIC_CTL_POOL, p.a.mem, 64));
		CHECK_EQ(say_from(&p.b, HEAD, KEY, 40, 40), NIC_OK);
		CHECK_EQ(nic_take_of(p.a.nic, p.a.vi, &p.a.recv_cq, &out), NIC_OK);
		for (uint32_t n = 0; n < 2000; n++) {
			uint32_t len = NIC_EXPECTED + n * 37 % (n % 3 ? 200 : 5000);

			ready_at(&p.b, &p.a);
			if (!CHECK_EQ(say_from(&p.a, HEAD, KEY, len, len), NIC_OK) || !CHECK(comes_to(&p.b, &p.a, len)))
				break;
			ready_at(&p.a, &p.b);
			if (!CHECK_EQ(say_from(&p.b, HEAD, KEY, len, len), NIC_OK) || !CHECK(comes_to(&p.a, &p.b, len)))
				break;
		}
		pair_close(&p);
	}
}

int main(void)
{
	CASE(as_the_parameter_says);
	CASE(rests);
	CASE(cells_of_an_answer);
	CASE(lines_of_a_message);
	CASE(nothing_foreseen);
	CASE(to_and_fro);
	return check_done();
}
