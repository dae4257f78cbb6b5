/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups, barriers, broadcasts and multicasts of the QNIX control program.
 */
#include "tests/unit/nicemu/played.h"

static void barrier_waits_for_all(int group, const int *members, int n)
{
	int op[MANY];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i + 1 < n; i++) {
			as(members[(i + round) % n]);
			op[(i + round) % n] = qx_barrier(group);
		}
		poll_all();
		for (int i = 0; i + 1 < n; i++) {
			as(members[(i + round) % n]);
			CHECK_EQ(qx_test(op[(i + round) % n], NULL), 0);
		}
		as(members[(n - 1 + round) % n]);
		op[(n - 1 + round) % n] = qx_barrier(group);
		for (int i = 0; i < n; i++)
			CHECK_EQ(over(members[i], op[i], NULL), 1);
	}
}

static void groups_and_barriers(void)
{
	static const int all[] = { 0, 1, 2, 3 }, some[] = { 3, 0, 2 };
	int op[4];

	up(4);
	forget_steps(0);
	barrier_waits_for_all(APP, all, 4);
	IN_ORDER(0, S(BARRIER_1), S(BARRIER_2), S(TX_6), S(BARRIER_DONE));
	for (int i = 0; i < 3; i++) {
		as(some[i]);
		op[i] = qx_join(55, 3);
		poll_all();
		as(some[0]);
		CHECK_EQ(i < 2 ? qx_test(op[0], NULL) : 0, 0);
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(over(some[i], op[i], NULL), 1);
	IN_ORDER(0, S(GROUP_1), S(GROUP_3), S(GROUP_2), S(GROUP_ACK), S(GROUP_ACK));
	barrier_waits_for_all(55, some, 3);
	barrier_waits_for_all(APP, all, 4);
	down();
}

static void a_barrier_without_a_member(void)
{
	int op[2];

	up(3);
	for (int i = 0; i < 2; i++) {
		as(i);
		op[i] = qx_barrier(APP);
	}
	poll_all();
	qx_end(p[2]);
	p[2] = NULL;
	nprocs = 2;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(over(i, op[i], NULL), QX_FAILED);
	down();
}

/* Who has died is not asked: a group of others comes about. */
static void a_group_without_the_dead(void)
{
	int op[3];

	up(4);
	qx_end(p[0]);
	p[0] = p[3];
	p[3] = NULL;
	nprocs = 3;
	for (int k = 0; k < 40000; k++) /* until the links with it are gone */
		for (int i = 0; i < 3; i++)
			nic_poll(p[i]->nic);
	for (int i = 0; i < 3; i++) {
		as(i);
		op[i] = qx_join(55, 3);
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(over(i, op[i], NULL), 1);
	down();
}

static void broadcasts(void)
{
	static const long sizes[] = { 0, 10, 1024, 1025, 5000, 100000, 1000000 };
	long size;
	int r[4], s;

	up(4);
	forget_steps(2);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (int late = 0; late < 2; late++) {
			memset(to, 0, sizeof(to));
			for (int i = 0; !late && i < 4; i++)
				r[i] = i == 2 ? 0 : receive_as(i, 2, 20, to[i] + 5, sizes[k]);
			as(2);
			s = qx_broadcast(APP, 20, (char *)from[2] + 3, sizes[k]);
			CHECK(s >= 0);
			poll_all();
			for (int i = 0; late && i < 4; i++)
				r[i] = i == 2 ? 0 : receive_as(i, 2, 20, to[i] + 5, sizes[k]);
			for (int i = 0; i < 4; i++)
				if (i != 2) {
					CHECK_EQ(over(i, r[i], &size), 1);
					CHECK(size == sizes[k] && memcmp(to[i] + 5, from[2] + 3, (size_t)size) == 0);
				}
			CHECK_EQ(over(2, s, NULL), 1);
		}
	IN_ORDER(2, S(BROADCAST_1), S(BROADCAST_2), S(SEND_1), S(BROADCAST_2), S(BROADCAST_2), S(BROADCAST_4), S(REQUEST_OUT), S(BROADCAST_5));
	CHECK_EQ(p[2]->nic->qnix->bcast_pages.taken, 0);
	CHECK_EQ(p[2]->nic->qnix->sq_used, 0);
	down();
}

static void multicasts(void)
{
	int names[] = { APP, 4, APP, 0, APP, 3, APP, 1, APP, 5 }, r[MANY], s;
	long size;

	up(MANY);
	for (int n = 1; n <= 5; n++)
		for (long len = 100; len < 100000; len *= 200) {
			for (int i = 0; i < n; i++)
				r[i] = receive_as(names[2 * i + 1], 2, n, to[i], len);
			as(2);
			s = qx_multicast(n, names, n, (char *)from[2] + n, len);
			for (int i = 0; i < n; i++) {
				CHECK_EQ(over(names[2 * i + 1], r[i], &size), 1);
				CHECK(size == len && memcmp(to[i], from[2] + n, (size_t)len) == 0);
			}
			CHECK_EQ(over(2, s, NULL), 1);
		}
	as(2);
	CHECK_EQ(qx_multicast(0, names, 1, (char *)from[2], 1), QX_ERROR);
	names[3] = 77;
	s = qx_multicast(3, names, 1, (char *)from[2], 1);
	CHECK_EQ(over(2, s, NULL), QX_FAILED);
	down();
}

int main(void)
{
	CASE(groups_and_barriers);
	CASE(a_barrier_without_a_member);
	CASE(a_group_without_the_dead);
	CASE(broadcasts);
	CASE(multicasts);
	return check_done();
}
