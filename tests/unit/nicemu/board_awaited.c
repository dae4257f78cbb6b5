/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts that a receiver waits for already (strat/meet_board_recv.c): what it asks for where it looks, and that all of it is there when the part has come.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/nicemu/asking.h"
#include "tests/unit/nicemu/members.h"
#include "tests/unit/nicemu/two_cores.h"

#include "nicemu/strat/meet_board_recv.c"

/* Slot 0, which broadcasts each time that it is asked to, a moment later. */
struct root {
	uint32_t len;
	bool apart; /* from the other one, on a processor of its own */
	_Atomic uint32_t asked, sent;
	int err;
};

#define SILENT UINT32_MAX

static void *send_when_asked(void *arg)
{
	struct root *r = arg;

	if (r->apart)
		second_core();
	for (uint32_t k = 1, asked; !r->err; k++) {
		uint32_t op = NIC_OP_OVER;

		for (uint32_t i = 1; (asked = nic_load_acquire(&r->asked)) != k && asked != SILENT; i++) /* pairs with receives */
			if (i % 1000 == 0)
				sched_yield();
		if (asked == SILENT)
			break;
		for (uint32_t i = 0; i < k * 37 % 100; i++)
			nic_cpu_relax();
		r->err = nic_bcast(n[0], group[0], slot[0], data[0], r->len, &op);
		while (!r->err && (r->err = nic_op_test(n[0], op, NULL)) == NIC_NOT_DONE && nic_load_acquire(&r->asked) == k) {
			if (!nic_poll(n[0]))
				sched_yield();
			r->err = NIC_OK;
		}
		nic_store_release(&r->sent, k); /* pairs with receives */
	}
	return NULL;
}

/* One that slot 1 asks for and waits for; if it came during the first look at it, which takes some time, `met` counts. */
static bool receives(struct root *r, uint32_t k, uint32_t *met)
{
	struct nic_group *g = &n[1]->groups->group[group[1]];
	const struct nic_member *m = &g->member[0];
	const _Atomic uint32_t *seq = &m->board->part[m->parts % NIC_BOARD_PLACES].seq;
	uint32_t next = m->parts + 1, behind = g->behind, op = 0;
	bool nothing;
	int err;

	for (uint32_t i = 0; i < r->len; i++)
		data[0][i] = (uint8_t)(i * 31 + i / 256 + k);
	memset(data[1], GUARD, r->len + 1);
	g->lead = NIC_PLACE_ANY; /* as behind a barrier: then such a one is counted in `behind` */
	nic_store_release(&r->asked, k); /* pairs with send_when_asked */
	nothing = nic_load_acquire(seq) != next; /* G2 */
	err = nic_bcast(n[1], group[1], slot[0], data[1], r->len, &op);
	*met += nothing && g->behind == behind + 1;
	for (uint32_t i = 0; !err && (err = nic_op_test(n[1], op, NULL)) == NIC_NOT_DONE && i < 1000000; i++, err = NIC_OK)
		if (!nic_poll(n[1]))
			sched_yield();
	if (!CHECK_EQ(err, NIC_OK))
		return false;
	while (nic_load_acquire(&r->sent) != k) /* pairs with send_when_asked */
		sched_yield();
	return CHECK(memcmp(data[0], data[1], r->len) == 0) & CHECK_EQ(data[1][r->len], GUARD);
}

/* Of one length, until some have come during such a look: it may take long before both have a core.  With one for both none need have. */
static void waits(uint32_t len)
{
	enum { LEAST = 60, MET = 5, TRIES = 5000 };
	struct root r = { .len = len, .apart = two_cores() };
	uint32_t met = 0, k = 1, enough = r.apart ? MET : 0;
	pthread_t thread;

	REQUIRE(pthread_create(&thread, NULL, send_when_asked, &r) == 0);
	for (; k < TRIES && (k <= LEAST || met < enough) && receives(&r, k, &met); k++)
		;
	nic_store_release(&r.asked, SILENT); /* pairs with send_when_asked */
	pthread_join(thread, NULL);
	all_cores();
	CHECK_EQ(r.err, NIC_OK);
	CHECK(met >= enough);
}

/* Slot 1 has looked for 0's next part, of a broadcast of which `rest` bytes are still to come, in vain: were they asked for at each look but the first? */
static bool asked_for(uint32_t looks, uint32_t total, uint32_t rest)
{
	const struct nic_group *g = &n[1]->groups->group[group[1]];
	const struct nic_member *m = &g->member[0];
	uint32_t i = m->parts % NIC_BOARD_PLACES;

	if (!looks)
		return false;
	return CHECK_EQ(looks, (NIC_BOARD_LOOKS - 1) / ASKING) & CHECK(asking.word == &m->board->part[i].seq && asking.wanted == m->parts + 1) &
	       CHECK(asking.from == nic_board_data(n[1], m->board, m->parts, total, g->buffer[i]) && asking.end == asking.from + rest);
}

/* What does not lie in the part's own line is asked for where the last one of that place lay, unless that is not wanted, or it may come another way. */
static void asked_for_where_it_will_be(void)
{
	static const uint32_t lengths[] = { 40, 48, 49, 100, 300, 1000, 8192, 20000 };
	bool direct = n[1]->groups->direct, foresees = n[1]->foresees;
	uint32_t looks, op;

	join(51, 2);
	for (int k = 0; k < NIC_BOARD_PLACES; k++) /* each place knows of a buffer */
		CHECK(bcast(0, 0, 5000) == NIC_OP_OVER && bcast(1, 0, 5000) == NIC_OP_OVER);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int way = 0; way < 4; way++) {
			uint32_t len = lengths[i];
			bool pulls = way / 2 && direct && n[1]->link[slot[0]]->cma && len >= NIC_BOARD_DIRECT_MIN;

			n[1]->foresees = way % 2 && nic_look_works();
			n[1]->groups->direct = direct && way / 2;
			looks = asking.looks;
			op = bcast(1, 0, len);
			CHECK(op != NIC_OP_OVER);
			CHECK_EQ(asked_for(asking.looks - looks, len, len), n[1]->foresees && len > NIC_BOARD_BRIEF && !pulls);
			memset(data[0], (int)i, len);
			looks = asking.looks;
			bcast(0, 0, len);
			CHECK_EQ(over(1, op, NULL), NIC_OK);
			CHECK(data[1][0] == i && data[1][len - 1] == i);
			CHECK_EQ(asking.looks, looks);
		}
	leave(2);
	/* The second part. */
	n[1]->groups->direct = false;
	for (int on = 0; on < 2; on++) {
		struct nic_board_part *p;

		join(52, 2);
		n[1]->foresees = on && nic_look_works();
		p = &board_of(0)->part[0];
		p[0].total = p[1].total = p[1].end = 20000;
		p[0].end = 8192;
		p[0].buffer = p[1].buffer = 1;
		nic_store_release(&p[0].seq, 1); /* G2 */
		looks = asking.looks;
		op = bcast(1, 0, 20000);
		CHECK(op != NIC_OP_OVER);
		CHECK_EQ(asked_for(asking.looks - looks, 20000, 20000 - 8192), n[1]->foresees);
		nic_store_release(&p[1].seq, 2); /* G2 */
		CHECK_EQ(over(1, op, NULL), NIC_OK);
		leave(2);
	}
	n[1]->foresees = foresees;
	n[1]->groups->direct = direct;
}

/* In its place, inside the board, in a buffer that places share, in one, and in several; or from the root's memory.  Lines are asked for or not. */
static void it_comes_meanwhile(void)
{
	static const uint32_t lengths[] = { 40, 100, 300, 1000, 5000, 20000 };
	bool direct = n[1]->groups->direct, foresees = n[1]->foresees;

	join(50, 2);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int way = 0; way < 4; way++) {
			n[1]->foresees = way % 2 && nic_look_works();
			n[1]->groups->direct = direct && way / 2;
			if (way < 2 || lengths[i] >= NIC_BOARD_DIRECT_MIN)
				waits(lengths[i]);
		}
	n[1]->foresees = foresees;
	n[1]->groups->direct = direct;
	leave(2);
}

int main(void)
{
	open_all();
	CASE(asked_for_where_it_will_be);
	CASE(it_comes_meanwhile);
	close_all();
	return check_done();
}
