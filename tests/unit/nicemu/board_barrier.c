/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of a group whose members look at boards (strat/meet_board.c): what is told beside them, who leaves first, members that leave the group or have another
 * mind meanwhile, and a broadcast that is awaited there.
 */
#include "tests/unit/nicemu/asking.h"
#include "tests/unit/nicemu/members.h"

#include "nicemu/strat/meet_board_recv.c"

/* Who comes to a barrier says what it has read of the last root's parts, and the root that sees the barrier over knows it without another look. */
static void told_beside_a_barrier(void)
{
	const struct nic_group *g;
	uint32_t op[MANY];

	join(40, MANY);
	g = &n[0]->groups->group[group[0]];
	for (int k = 0; k < 6; k++)
		bcast(0, 0, 1);
	for (int k = 0; k < 6; k++)
		CHECK_EQ(bcast(1, 0, 1), NIC_OP_OVER);
	for (int k = 0; k < 4; k++)
		CHECK_EQ(bcast(2, 0, 1), NIC_OP_OVER);
	CHECK_EQ(g->put, 6);
	CHECK_EQ(g->read, 0);
	for (int i = MANY - 1; i >= 0; i--)
		op[i] = come(i);
	all_over(op);
	CHECK_EQ(g->read, 4);
	/* What is not about this root, or cannot be, says nothing. */
	static const uint32_t lies[] = { 1u << 16 | 6, (uint32_t)NIC_PLACE_ANY << 16 | 6, 7, 3, 6 + 0x8000, UINT16_MAX };
	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		op[2] = come(2), op[1] = come(1);
		nic_store_release(&board_of(2)->read, lies[k]);
		op[0] = come(0);
		all_over(op);
		CHECK_EQ(g->read, 4);
	}
	for (int k = 0; k < 2; k++)
		CHECK_EQ(bcast(2, 0, 1), NIC_OP_OVER);
	op[2] = come(2), op[1] = come(1), op[0] = come(0);
	all_over(op);
	CHECK_EQ(g->read, 6);
	leave(MANY);
}

/* Behind a broadcast the root leaves a barrier first, whoever came last; behind a barrier, whoever came last does. */
static void root_leaves_first(void)
{
	uint32_t op[MANY];

	join(12, MANY);
	for (int root = 0; root < MANY; root++) {
		CHECK_EQ(bcast(root, root, 100), NIC_OP_OVER);
		for (int i = 0; i < MANY; i++)
			if (i != root)
				CHECK_EQ(bcast(i, root, 100), NIC_OP_OVER);
		for (int i = 0; i < MANY; i++) {
			CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
			CHECK_EQ(op[i] == NIC_OP_OVER, i == root && i + 1 == MANY);
		}
		if (root + 1 < MANY)
			CHECK_EQ(nic_op_test(n[MANY - 1], op[MANY - 1], NULL), NIC_NOT_DONE);
		CHECK_EQ(over(root, op[root], NULL), NIC_OK);
		for (int i = 0; i < MANY; i++)
			if (i != root)
				CHECK_EQ(over(i, op[i], NULL), NIC_OK);
		for (int i = 0; i < MANY; i++) {
			CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
			CHECK_EQ(op[i] == NIC_OP_OVER, i + 1 == MANY);
		}
		for (int i = 0; i < MANY; i++)
			CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	}
	leave(MANY);
}

/* Members that think differently of who goes first come through all the same. */
static void no_agreement(void)
{
	uint32_t op[MANY], late;

	join(13, MANY);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(bcast(i, i, 10), NIC_OP_OVER);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(bcast(i, 1 - i, 10), NIC_OP_OVER); /* each thinks of the other, and none of itself */
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	for (int i = 2; i < MANY; i++)
		for (int root = 0; root < 2; root++)
			CHECK_EQ(bcast(i, root, 10), NIC_OP_OVER);
	CHECK_EQ(bcast(0, 0, 10), NIC_OP_OVER); /* the others receive it behind the barrier */
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
	CHECK_EQ(over(0, op[0], NULL), NIC_OK);
	CHECK_EQ(nic_barrier(n[0], group[0], &late), NIC_OK);
	for (int i = MANY - 1; i > 0; i--)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	for (int i = 1; i < MANY; i++) {
		CHECK_EQ(bcast(i, 0, 10), NIC_OP_OVER);
		CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
	}
	CHECK_EQ(over(0, late, NULL), NIC_OK);
	for (int i = 1; i < MANY; i++)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	leave(MANY);
}

/* A leader that has come and computes since keeps nobody. */
static void leader_computes(void)
{
	uint32_t op[MANY];

	join(24, MANY);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(bcast(i, 0, 10), NIC_OP_OVER);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
	for (int i = 1; i < MANY; i++) {
		int err = nic_op_test(n[i], op[i], NULL);

		CHECK_EQ(err, NIC_NOT_DONE);
		for (int k = 0; k < 1000 && err == NIC_NOT_DONE; k++) {
			nic_poll(n[i]);
			err = nic_op_test(n[i], op[i], NULL);
		}
		CHECK_EQ(err, NIC_OK);
	}
	CHECK_EQ(over(0, op[0], NULL), NIC_OK);
	leave(MANY);
}

/* A leader that has gone first, and then left the group, whose board is another group's. */
static void leader_left(void)
{
	struct nic_group_args args = { .name = 15, .size = 1, .place = 0, .slot = &slot[0] };
	uint32_t op, late;

	join(14, 2);
	bcast(0, 0, 10);
	bcast(1, 0, 10);
	CHECK_EQ(nic_barrier(n[1], group[1], &late), NIC_OK);
	CHECK_EQ(nic_barrier(n[0], group[0], &op), NIC_OK);
	CHECK_EQ(op, NIC_OP_OVER);
	CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
	CHECK_EQ(nic_group_join(n[0], &args, &op), NIC_OK);
	CHECK_EQ(over(0, op, &group[0]), NIC_OK);
	CHECK_EQ(nic_barrier(n[0], group[0], &op), NIC_OK);
	CHECK_EQ(op, NIC_OP_OVER);
	CHECK_EQ(over(1, late, NULL), NIC_OK);
	leave(2);
}

/* Who has left has come to every barrier, also when others look late and its board is another group's. */
static void left_has_come(void)
{
	uint32_t first, second, old;

	join(3, 2);
	CHECK_EQ(nic_barrier(n[0], group[0], &first), NIC_OK);
	CHECK_EQ(nic_barrier(n[1], group[1], &second), NIC_OK);
	CHECK_EQ(second, NIC_OP_OVER);
	old = group[1];
	CHECK_EQ(nic_group_leave(n[1], old), NIC_OK);
	{
		struct nic_group_args args = { .name = 4, .size = 1, .place = 0, .slot = &slot[1] };

		CHECK_EQ(nic_group_join(n[1], &args, &second), NIC_OK);
		CHECK_EQ(over(1, second, &group[1]), NIC_OK);
		CHECK_EQ(group[1], old); /* the same entry, in its next life */
	}
	CHECK_EQ(over(0, first, NULL), NIC_OK);
	leave(2);
}

/* What a root has put on its board is read after it has left. */
static void left_is_read(void)
{
	struct nic_group *g;

	join(5, 2);
	memset(data[0], 3, 20000);
	CHECK_EQ(bcast(0, 0, 20000), NIC_OP_OVER);
	g = &n[0]->groups->group[group[0]];
	CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
	poll_all();
	CHECK(g->leaving && (g->life & 1));
	CHECK_EQ(bcast(1, 0, 20000), NIC_OP_OVER);
	CHECK(memcmp(data[0], data[1], 20000) == 0);
	poll_all();
	CHECK(!(g->life & 1));
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
}

/* All that the root put on its board before it left is received, though the receives do not stand in the order of their calls. */
static void left_is_taken_in_order(void)
{
	uint32_t op[3];

	join(10, 2);
	op[0] = bcast(1, 0, 10);
	op[1] = bcast(1, 0, 20);
	CHECK_EQ(bcast(0, 0, 10), NIC_OP_OVER);
	CHECK_EQ(over(1, op[0], NULL), NIC_OK);
	op[2] = bcast(1, 0, 30); /* takes the place of the first */
	CHECK_EQ(bcast(0, 0, 20), NIC_OP_OVER);
	memset(data[0], 33, 30);
	CHECK_EQ(bcast(0, 0, 30), NIC_OP_OVER);
	CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
	nic_poll(n[0]);
	CHECK_EQ(over(1, op[1], NULL), NIC_OK);
	CHECK_EQ(over(1, op[2], NULL), NIC_OK);
	CHECK_EQ(data[1][29], 33);
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
	poll_all();
}

static uint32_t length; /* of what is awaited */

/* A broadcast of 0's behind a barrier to which 1 comes last: `early`: it is there by then. */
static void round_of_two(bool early)
{
	uint32_t op = come(0);

	data[0][0]++;
	data[0][length - 1] = data[0][0];
	if (early)
		CHECK_EQ(bcast(0, 0, length), NIC_OP_OVER);
	CHECK_EQ(come(1), NIC_OP_OVER);
	if (!early)
		CHECK_EQ(bcast(0, 0, length), NIC_OP_OVER);
	CHECK_EQ(bcast(1, 0, length), NIC_OP_OVER);
	CHECK(data[1][0] == data[0][0] && data[1][length - 1] == data[0][0]);
	CHECK_EQ(over(0, op, NULL), NIC_OK);
}

/* Late rounds until 1 has awaited the broadcast in vain, and asked for what will not lie in its part's own line where the last one lay. */
static uint32_t rounds_until_in_vain(void)
{
	const struct nic_group *g = &n[1]->groups->group[group[1]];
	const struct nic_member *m = &g->member[0];
	uint32_t rounds = 0, looks = asking.looks, expected = n[1]->foresees && length > NIC_BOARD_BRIEF ? (AWAIT_LOOKS - 1) / ASKING : 0;

	do
		round_of_two(false);
	while (++rounds < 2000 && g->behind != 1);
	CHECK_EQ(asking.looks - looks, expected);
	if (expected) {
		CHECK(asking.word == &m->board->part[(m->parts - 1) % NIC_BOARD_PLACES].seq && asking.wanted == m->parts);
		CHECK(asking.from == nic_board_data(n[1], m->board, m->parts - 1, length, g->buffer[(m->parts - 1) % NIC_BOARD_PLACES]));
		CHECK(asking.end == asking.from + length);
	}
	return rounds;
}

/* The other one of two awaits a short broadcast in the barrier before it: in vain, and it does so later and later. */
static void awaited_of(uint32_t len)
{
	length = len;
	join(34, 2);
	round_of_two(false);
	for (uint32_t distance = 8; distance < 1024; distance *= 2)
		CHECK_EQ(rounds_until_in_vain(), distance);
	CHECK_EQ(rounds_until_in_vain(), 1024);
	CHECK_EQ(rounds_until_in_vain(), 1024);
	for (int k = 1; k < 1024 + 64; k++)
		round_of_two(true);
	CHECK_EQ(rounds_until_in_vain(), 1); /* one that it relies on */
	CHECK_EQ(rounds_until_in_vain(), 1024);
	for (int k = 1; k < 1024 + 64 + 1; k++)
		round_of_two(true);
	CHECK_EQ(rounds_until_in_vain(), 1);
	CHECK_EQ(rounds_until_in_vain(), 16);
	leave(2);
}

/* One that lies in its place, and one whose lines are asked for when that changes, or not. */
static void awaited_in_a_barrier(void)
{
	bool foresees = n[1]->foresees;

	awaited_of(8);
	for (int on = 0; on < 2; on++) {
		n[1]->foresees = on && nic_look_works();
		awaited_of(100);
	}
	n[1]->foresees = foresees;
}

int main(void)
{
	open_all();
	CASE(told_beside_a_barrier);
	CASE(root_leaves_first);
	CASE(no_agreement);
	CASE(leader_computes);
	CASE(leader_left);
	CASE(left_has_come);
	CASE(left_is_read);
	CASE(left_is_taken_in_order);
	CASE(awaited_in_a_barrier);
	close_all();
	return check_done();
}
