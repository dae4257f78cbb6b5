/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of a group meet on boards (mem/board.h: G1 to G4), each a thread with a NIC of its own: barriers around plain memory,
 * broadcasts of all lengths from all roots, many under way, groups left while others have yet to read, and made again under
 * the same name.  Runs under ThreadSanitizer, which sees any pair of release and acquire that is missing.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "tests/check.h"

enum { MEMBERS = 4, PAIR = 2, LIVES = 12, ROUNDS = 120, FLIGHT = 8, MOST = 150 * 1000 };

struct member {
	pthread_t thread;
	struct nic *nic;
	uint32_t place, group, random;
	long bad;
	uint8_t data[FLIGHT][MOST];
};

static struct member member[MEMBERS];
static uint32_t members, slot[MEMBERS];
static long plain[MEMBERS]; /* written by its member before a barrier, read by all between that and the next */

/* The same numbers at all members, as long as they ask for the same. */
static uint32_t next(struct member *m)
{
	return (m->random = m->random * 1103515245 + 12345) >> 8;
}

static uint32_t finish(struct member *m, int err, uint32_t op)
{
	uint32_t value = 0;

	for (; err == NIC_OK && (err = nic_op_test(m->nic, op, &value)) == NIC_NOT_DONE; err = NIC_OK)
		if (!nic_poll(m->nic))
			sched_yield();
	m->bad += err != NIC_OK;
	return value;
}

static void join(struct member *m)
{
	struct nic_group_args args = { .name = 5, .size = members, .place = m->place, .slot = slot };
	uint32_t op = 0;
	int err = nic_group_join(m->nic, &args, &op);

	m->group = finish(m, err, op);
}

static void barrier(struct member *m)
{
	uint32_t op = 0;
	int err = nic_barrier(m->nic, m->group, &op);

	finish(m, err, op);
}

static void meet(struct member *m, long round)
{
	plain[m->place] = round;
	barrier(m);
	for (uint32_t i = 0; i < members; i++)
		m->bad += plain[i] != round;
	barrier(m);
}

static uint32_t length(struct member *m)
{
	static const uint32_t edges[] = { 0, 1, 48, 49, 4096, 4097, 8192, 8193, 16384, 16385, MOST };
	uint32_t kind = next(m) % 8, any = next(m);

	if (kind < 4)
		return any % 64;
	if (kind < 6)
		return edges[any % (sizeof(edges) / sizeof(edges[0]))];
	return any % (kind == 6 ? 5000 : MOST);
}

/* Several under way at once, from one root or from many. */
static void casts(struct member *m, uint32_t round)
{
	uint32_t n = 1 + next(m) % FLIGHT, one = next(m) % (members + 1), op[FLIGHT], root[FLIGHT], len[FLIGHT];

	for (uint32_t i = 0; i < n; i++) {
		int err;

		root[i] = one < members ? one : next(m) % members;
		len[i] = length(m);
		memset(m->data[i], root[i] == m->place ? (int)(round + i) : 0, len[i]);
		m->nic->waiting.crowded = (round + i + m->place) % 5 < 2; /* each changes its mind about the cores when it likes, and the length of its parts with it */
		do
			err = nic_bcast(m->nic, m->group, slot[root[i]], m->data[i], len[i], &op[i]);
		while (err == NIC_RESOURCE && (nic_poll(m->nic), true));
		m->bad += err != NIC_OK;
	}
	for (uint32_t i = 0; i < n; i++) {
		finish(m, NIC_OK, op[i]);
		for (uint32_t k = 0; k < len[i]; k++)
			m->bad += m->data[i][k] != (uint8_t)(round + i);
	}
}

/* Members leave as soon as they are through: the last broadcasts may lie on their boards unread. */
static void *live(void *arg)
{
	struct member *m = arg;

	for (uint32_t life = 0; life < LIVES; life++) {
		join(m);
		for (uint32_t round = 0; round < ROUNDS && !m->bad; round++) {
			if (next(m) % 3 == 0)
				meet(m, life * ROUNDS + round);
			else
				casts(m, life * ROUNDS + round);
		}
		m->bad += nic_group_leave(m->nic, m->group) != NIC_OK;
	}
	join(m); /* nobody closes before all have read */
	barrier(m);
	return NULL;
}

static void boards(uint32_t n)
{
	char device[40];
	struct nic_open_args args = { .device = device };
	struct nic_attr attr;

	members = n;
	snprintf(device, sizeof(device), "board-%d-%u", (int)getpid(), n);
	for (uint32_t i = 0; i < members; i++) {
		REQUIRE(nic_open(&args, &member[i].nic) == NIC_OK);
		nic_query(member[i].nic, &attr);
		slot[i] = attr.slot;
		member[i].place = i;
		member[i].random = 7;
	}
	for (uint32_t i = 0; i < members; i++)
		pthread_create(&member[i].thread, NULL, live, &member[i]);
	for (uint32_t i = 0; i < members; i++) {
		pthread_join(member[i].thread, NULL);
		CHECK_EQ(member[i].bad, 0);
	}
	for (uint32_t i = 0; i < members; i++)
		nic_close(member[i].nic);
}

static void boards_of_four(void) { boards(MEMBERS); }

/* Where the receiver may copy from the root's memory; however busy the machine is. */
static void boards_of_two(void)
{
	nic_param_set("wait", "spin", "test");
	boards(PAIR);
}

int main(void)
{
	CASE(boards_of_four);
	CASE(boards_of_two);
	return check_done();
}
