/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boards between processes that take turns on the cores (nic_group_linger): who keeps the core at a barrier because the others will be through soon.
 */
#include <pthread.h>
#include <time.h>

#include "tests/unit/nicemu/members.h"

static void on_cpus(uint32_t a, uint32_t b, uint32_t c)
{
	n[0]->waiting.cpu = a;
	n[1]->waiting.cpu = b;
	n[2]->waiting.cpu = c;
}

/* What 0 gains from a closer look; `soon`: it does not take one. */
static bool linger(bool soon)
{
	struct timespec from, to;
	bool more;

	clock_gettime(CLOCK_MONOTONIC, &from);
	more = nic_group_linger(n[0], 1, soon ? UINT32_MAX : 1000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	CHECK(!soon || to.tv_sec - from.tv_sec < 2);
	return more;
}

static void *come_later(void *op)
{
	usleep(20000);
	*(uint32_t *)op = come(2);
	return NULL;
}

/* Members 0 and 1 share a processor, 2 has another one; after a barrier all know that. */
static void take_turns(void)
{
	uint32_t op[MANY];

	on_cpus(1, 1, 2);
	op[0] = come(0), op[2] = come(2);
	CHECK(!linger(true)); /* nobody knows where 1 is */
	op[1] = come(1);
	all_over(op);
}

static void have_own_cores(void)
{
	on_cpus(0, 0, 0);
	leave(MANY);
}

static void kept_for_the_last(void)
{
	uint32_t op[MANY];
	pthread_t thread;

	join(30, MANY);
	CHECK(!linger(true)); /* nothing is waited for */
	take_turns();
	op[0] = come(0);
	CHECK(!linger(true)); /* 1 wants the core */
	op[1] = come(1);
	CHECK(!linger(false));
	CHECK_EQ(pthread_create(&thread, NULL, come_later, &op[2]), 0);
	CHECK(nic_group_linger(n[0], 1, UINT32_MAX));
	pthread_join(thread, NULL);
	CHECK_EQ(op[2], NIC_OP_OVER);
	all_over(op);
	have_own_cores();
}

/* Who is missing computes, or other things are waited for as well. */
static void not_kept_in_vain(void)
{
	uint32_t op[MANY], cast;

	join(33, MANY);
	take_turns();
	op[0] = come(0), op[1] = come(1);
	n[0]->nshared++;
	CHECK(!linger(true));
	n[0]->nshared--;
	cast = bcast(0, 1, 8);
	CHECK(!linger(true));
	CHECK_EQ(bcast(1, 1, 8), NIC_OP_OVER);
	CHECK_EQ(over(0, cast, NULL), NIC_OK);
	for (int i = 0; i < 4; i++)
		CHECK(!linger(false));
	CHECK(!linger(true));
	op[2] = come(2);
	CHECK(linger(true)); /* it is there: no waiting */
	all_over(op);
	CHECK_EQ(bcast(2, 1, 8), NIC_OP_OVER);
	have_own_cores();
}

/* Behind a broadcast the root has to go on first, and before it all must have come. */
static void kept_for_a_leader(void)
{
	uint32_t op[MANY];

	join(31, MANY);
	for (int root = 1; root < MANY; root++) {
		on_cpus(1, 1, 2);
		for (int i = 0; i < MANY; i++)
			op[i] = come(i);
		all_over(op);
		bcast(root, root, 8);
		for (int i = 0; i < MANY; i++)
			if (i != root)
				CHECK_EQ(bcast(i, root, 8), NIC_OP_OVER);
		op[root] = come(root);
		op[0] = come(0);
		CHECK(root == 1 || !linger(true)); /* 1 wants the core */
		op[3 - root] = come(3 - root);
		CHECK(!linger(root == 1));
		nic_poll(n[root]);
		CHECK(linger(true));
		nic_store_relaxed(&board_of(3 - root)->cpu, 5);
		nic_store_relaxed(&board_of(root)->cpu, 6);
		all_over(op);
		/* Who follows has read the leader's line, and reads no other. */
		CHECK_EQ(n[0]->groups->group[group[0]].member[root].cpu, 6);
		CHECK_EQ(n[0]->groups->group[group[0]].member[3 - root].cpu, root == 1 ? 2 : 1);
	}
	have_own_cores();
}

/* What a wait makes of it. */
static void kept_while_waiting(void)
{
	struct nic_waiting before = n[0]->waiting;
	struct nic_wait wait = { 0 };
	uint32_t op[MANY], here;

	join(32, MANY);
	n[0]->waiting.mode = 0;
	n[0]->waiting.outnumbered = true;
	n[0]->waiting.count_next = UINT64_MAX / 2;
	nic_wait_plan(n[0], &wait, 0);
	here = n[0]->waiting.cpu;
	CHECK(here != 0);
	op[0] = come(0);
	CHECK_EQ(nic_load_relaxed(&board_of(0)->cpu), here);
	wait = (struct nic_wait){ 0 };
	nic_wait_plan(n[0], &wait, 0);
	CHECK_EQ(wait.rest, NIC_REST_YIELD);
	op[1] = come(1), op[2] = come(2);
	wait = (struct nic_wait){ 0 };
	nic_wait_plan(n[0], &wait, 0);
	CHECK_EQ(wait.rest, NIC_REST_SPIN);
	CHECK_EQ(count(0, NIC_C_lingers), 1);
	CHECK(wait.last > wait.began); /* the program has done nothing since */
	all_over(op);
	n[0]->waiting = before;
	n[0]->waiting.cpu = here;
	nic_wait_plan(n[0], &wait, 0);
	CHECK_EQ(n[0]->waiting.cpu, 0);
	have_own_cores();
}

int main(void)
{
	open_all();
	CASE(kept_for_the_last);
	CASE(not_kept_in_vain);
	CASE(kept_for_a_leader);
	CASE(kept_while_waiting);
	close_all();
	return check_done();
}
