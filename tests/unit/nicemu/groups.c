/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups by the calls of nic.h, on every architecture: join, barrier, broadcast, leave, and the death of a member.  Several
 * slots in one process, each polled by the test.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nicemu/ctl/group.h"
#include "nicemu/nic.h"
#include "tests/check.h"
#include "tests/unit/nicemu/found.h"

enum { MANY = 5, BYTES = 1 << 20 };

static struct nic *n[MANY];
static uint32_t slot[MANY], life[MANY], group[MANY];
static int count;
static uint8_t data[MANY][BYTES];

static const char *device(void)
{
	static char name[40];

	snprintf(name, sizeof(name), "groups-%d", (int)getpid());
	return name;
}

static void open_one(int i)
{
	struct nic_open_args args = { .device = device() };
	struct nic_attr attr;

	if (nic_open(&args, &n[i]) != NIC_OK) {
		fprintf(stderr, "# nic_open: %s\n", nic_last_error());
		exit(1);
	}
	nic_query(n[i], &attr);
	slot[i] = attr.slot;
	life[i] = attr.life;
}

static void open_all(int many, const char *arch)
{
	if (arch)
		nic_param_set("arch", arch, "test");
	count = many;
	for (int i = 0; i < many; i++)
		open_one(i);
}

/* It is gone, and all others have noticed: the watch looks after one peer at a time. */
static void gone(int who)
{
	nic_close(n[who]);
	n[who] = NULL;
	for (int k = 0; k < 40000; k++)
		for (int i = 0; i < count; i++)
			if (n[i])
				nic_poll(n[i]);
}

static void close_all(void)
{
	for (int i = 0; i < count; i++)
		if (n[i])
			nic_close(n[i]);
	memset(n, 0, sizeof(n));
}

static void poll_all(void)
{
	for (int idle = 0; idle < 4;) {
		int moved = 0;

		for (int i = 0; i < count; i++)
			moved += n[i] ? nic_poll(n[i]) : 0;
		idle = moved ? 0 : idle + 1;
	}
}

static int over(int i, uint32_t op, uint32_t *value)
{
	int err = NIC_NOT_DONE;

	for (int k = 0; k < 1000 && err == NIC_NOT_DONE; k++) {
		poll_all();
		err = nic_op_test(n[i], op, value);
	}
	return err;
}

/* Members `first` .. `first + many - 1` join, one after the other. */
static void join(uint32_t name, int first, int many, uint32_t *out)
{
	uint32_t op[MANY];

	for (int i = 0; i < many; i++) {
		struct nic_group_args args = { .name = name, .size = (uint32_t)many, .place = (uint32_t)i, .slot = slot + first };

		CHECK_EQ(nic_group_join(n[first + i], &args, &op[i]), NIC_OK);
		poll_all();
		if (i + 1 < many)
			CHECK_EQ(nic_op_test(n[first], op[0], NULL), NIC_NOT_DONE);
	}
	for (int i = 0; i < many; i++)
		CHECK_EQ(over(first + i, op[i], &out[i]), NIC_OK);
}

static void barriers(void)
{
	uint32_t op[MANY], again;

	join(1, 0, count, group);
	for (int round = 0; round < 50; round++) {
		for (int k = 0; k < count; k++) {
			int i = (k + round) % count;

			CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
			if (op[i] != NIC_OP_OVER)
				CHECK_EQ(nic_barrier(n[i], group[i], &again), NIC_BUSY);
			if (round % 3 == 0)
				poll_all();
			if (k + 1 < count)
				CHECK_EQ(nic_op_test(n[round % count], op[round % count], NULL), NIC_NOT_DONE);
		}
		for (int i = 0; i < count; i++)
			CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	}
}

/* One member runs ahead into the next barrier while others have not seen the end of this one. */
static void running_ahead(void)
{
	uint32_t op[MANY], next;

	for (int round = 0; round < 20; round++) {
		CHECK_EQ(nic_barrier(n[0], group[0], &op[0]), NIC_OK);
		for (int i = 1; i < count; i++) {
			CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
			nic_poll(n[i]);
			if (i + 1 < count) {
				poll_all();
				CHECK_EQ(nic_op_test(n[i], op[i], NULL), NIC_NOT_DONE);
			}
		}
		for (int k = 0; k < 20 && nic_op_test(n[0], op[0], NULL) == NIC_NOT_DONE; k++)
			nic_poll(n[0]);
		CHECK_EQ(nic_barrier(n[0], group[0], &next), NIC_OK); /* others have not polled since */
		poll_all();
		CHECK_EQ(nic_op_test(n[0], next, NULL), NIC_NOT_DONE);
		for (int i = 1; i < count; i++) {
			CHECK_EQ(over(i, op[i], NULL), NIC_OK);
			CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
		}
		CHECK_EQ(over(0, next, NULL), NIC_OK);
		for (int i = 1; i < count; i++)
			CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	}
}

static void broadcast(int root, uint32_t len, bool late)
{
	uint32_t op[MANY], size;

	memset(data, 0, sizeof(data));
	for (uint32_t k = 0; k < len; k++)
		data[root][k] = (uint8_t)(k * 13 + (k >> 8) + (uint32_t)root);
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < count; i++)
			if ((i == root) == (late ? pass == 0 : pass == 1))
				CHECK_EQ(nic_bcast(n[i], group[i], slot[root], data[i], len, &op[i]), NIC_OK);
		poll_all();
	}
	for (int i = 0; i < count; i++) {
		size = len;
		CHECK_EQ(over(i, op[i], &size), NIC_OK);
		CHECK_EQ(size, len);
		CHECK(memcmp(data[i], data[root], len) == 0);
	}
}

static void broadcasts(void)
{
	static const uint32_t sizes[] = { 0, 1, 16, 17, 512, 513, 4096, 8320, NIC_BUFFER_SIZE, NIC_BUFFER_SIZE + 1, 40000, NIC_BCAST_MAX };
	uint32_t op;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (int root = 0; root < count; root += 2) {
			broadcast(root, sizes[k], false);
			broadcast(root, sizes[k], true);
		}
	CHECK_EQ(nic_bcast(n[0], group[0], slot[0], data[0], NIC_BCAST_MAX + 1, &op), NIC_PARAMETER);
}

/* Several under way, from several roots, in two groups, before anybody receives any. */
static void broadcasts_together(void)
{
	enum { EACH = 5 };
	uint32_t other[MANY], op[MANY][2][2][EACH], len[EACH] = { 8, 30000, 0, 700, 9000 };
	static uint8_t to[MANY][2][2][EACH][30000];

	join(2, 0, count, other);
	for (int g = 0; g < 2; g++)
		for (int root = 0; root < 2; root++)
			for (int k = 0; k < EACH; k++) {
				memset(to[root][g][root][k], g * 100 + root * 10 + k, len[k]);
				CHECK_EQ(nic_bcast(n[root], g ? other[root] : group[root], slot[root], to[root][g][root][k], len[k],
				                   &op[root][g][root][k]), NIC_OK);
			}
	poll_all();
	for (int g = 2; g-- > 0;)
		for (int root = 2; root-- > 0;)
			for (int k = 0; k < EACH; k++)
				for (int i = 0; i < count; i++)
					if (i != root)
						CHECK_EQ(nic_bcast(n[i], g ? other[i] : group[i], slot[root], to[i][g][root][k], len[k],
						                   &op[i][g][root][k]), NIC_OK);
	for (int g = 0; g < 2; g++)
		for (int root = 0; root < 2; root++)
			for (int k = 0; k < EACH; k++)
				for (int i = 0; i < count; i++) {
					CHECK_EQ(over(i, op[i][g][root][k], NULL), NIC_OK);
					for (uint32_t b = 0; b < len[k]; b++)
						if (to[i][g][root][k][b] != g * 100 + root * 10 + k) {
							CHECK_EQ(to[i][g][root][k][b], g * 100 + root * 10 + k);
							break;
						}
				}
	for (int i = 0; i < count; i++)
		CHECK_EQ(nic_group_leave(n[i], other[i]), NIC_OK);
	poll_all();
}

/* Names may be used again at once, and by those who are faster than others with leaving. */
static void names_again(void)
{
	uint32_t old[MANY], fresh[MANY], op[MANY];

	join(9, 0, 3, old);
	CHECK_EQ(nic_group_leave(n[0], old[0]), NIC_OK);
	for (int i = 0; i < 3; i++) {
		struct nic_group_args args = { .name = 9, .size = 3, .place = (uint32_t)i, .slot = slot };

		CHECK_EQ(nic_group_join(n[i], &args, &op[i]), NIC_OK);
		poll_all();
		if (i < 2)
			CHECK_EQ(nic_group_leave(n[i + 1], old[i + 1]), NIC_OK);
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(over(i, op[i], &fresh[i]), NIC_OK);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(nic_barrier(n[i], fresh[i], &op[i]), NIC_OK);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	CHECK_EQ(nic_group_join(n[0], &(struct nic_group_args){ .name = 9, .size = 2, .slot = (uint32_t[]){ slot[0], slot[0] } }, &op[0]),
	         NIC_PARAMETER);
	CHECK_EQ(nic_group_join(n[0], &(struct nic_group_args){ .name = 9, .size = 1, .slot = &slot[1] }, &op[0]), NIC_PARAMETER);
	CHECK_EQ(nic_op_test(n[0], 3, NULL), NIC_PARAMETER);
	CHECK_EQ(nic_barrier(n[0], 200, &op[0]), NIC_OK);
	CHECK_EQ(over(0, op[0], NULL), NIC_STATE);
}

static void alone(void)
{
	uint32_t mine, op;

	join(77, 2, 1, &mine);
	CHECK_EQ(nic_barrier(n[2], mine, &op), NIC_OK);
	CHECK_EQ(over(2, op, NULL), NIC_OK);
	CHECK_EQ(nic_bcast(n[2], mine, slot[2], data[2], 100, &op), NIC_OK);
	CHECK_EQ(over(2, op, NULL), NIC_OK);
}

/* What can be under way is bounded, and what is refused can be tried again. */
static void bounded(void)
{
	uint32_t op[NIC_OPS + 1];

	for (int i = 0; i < NIC_OPS; i++)
		CHECK_EQ(nic_bcast(n[1], group[1], slot[0], data[1], 8, &op[i]), NIC_OK);
	CHECK_EQ(nic_bcast(n[1], group[1], slot[0], data[1], 8, &op[NIC_OPS]), NIC_RESOURCE);
	for (int i = 0; i < NIC_OPS; i++) {
		uint32_t sent, theirs;

		CHECK_EQ(nic_bcast(n[0], group[0], slot[0], data[0], 8, &sent), NIC_OK);
		for (int k = 2; k < count; k++) {
			CHECK_EQ(nic_bcast(n[k], group[k], slot[0], data[k], 8, &theirs), NIC_OK);
			CHECK_EQ(over(k, theirs, NULL), NIC_OK);
		}
		CHECK_EQ(over(0, sent, NULL), NIC_OK);
		CHECK_EQ(over(1, op[i], NULL), NIC_OK);
	}
}

static void a_member_goes(void)
{
	uint32_t op[MANY], in, who;

	for (int i = 0; i + 1 < count; i++)
		CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
	CHECK_EQ(nic_bcast(n[1], group[1], slot[count - 1], data[1], 100, &in), NIC_OK);
	poll_all();
	gone(count - 1);
	for (int i = 0; i + 1 < count; i++) {
		CHECK_EQ(over(i, op[i], &who), NIC_STATE);
		CHECK_EQ(who, NIC_WHY_DIED + slot[count - 1]);
	}
	CHECK_EQ(over(1, in, &who), NIC_STATE);
	CHECK_EQ(who, NIC_WHY_DIED + slot[count - 1]);
	CHECK_EQ(nic_barrier(n[0], group[0], &op[0]), NIC_OK);
	CHECK_EQ(over(0, op[0], &who), NIC_STATE);
	CHECK_EQ(who, NIC_WHY_DIED + slot[count - 1]);
	for (int root = 0; root < 2; root++) {
		CHECK_EQ(nic_bcast(n[0], group[0], slot[root], data[0], 100, &op[0]), NIC_OK);
		CHECK_EQ(over(0, op[0], &who), NIC_STATE);
		CHECK_EQ(who, NIC_WHY_DIED + slot[count - 1]);
	}
}

/* The last one has seen the end of a barrier, and goes before the first one has: for that one, too, it ends well; then it is the end. */
static void gone_behind_a_barrier(void)
{
	uint32_t op[3], who;

	CHECK_EQ(nic_barrier(n[0], group[0], &op[0]), NIC_OK);
	CHECK_EQ(nic_barrier(n[2], group[2], &op[2]), NIC_OK);
	for (int k = 0; k < 20; k++) { /* these two have each other's word */
		nic_poll(n[0]);
		nic_poll(n[2]);
	}
	CHECK_EQ(nic_barrier(n[1], group[1], &op[1]), NIC_OK);
	for (int k = 0; k < 20; k++) { /* and these two that of all */
		nic_poll(n[1]);
		nic_poll(n[2]);
	}
	CHECK_EQ(nic_op_test(n[2], op[2], &who), NIC_OK);
	nic_group_lost(n[0], slot[2]);
	nic_close(n[2]);
	n[2] = NULL;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(over(i, op[i], &who), NIC_OK);
	CHECK_EQ(nic_barrier(n[0], group[0], &op[0]), NIC_OK);
	CHECK_EQ(over(0, op[0], &who), NIC_STATE);
	CHECK_EQ(who, NIC_WHY_DIED + slot[2]);
}

/* A member that has died before anybody had a link with it: who joins is told; who comes later can use the name. */
static void join_with_the_dead(void)
{
	struct nic_group_args args = { .name = 5, .size = 3, .slot = slot };
	uint32_t op, value;

	nic_close(n[1]);
	n[1] = NULL;
	CHECK_EQ(nic_group_join(n[0], &args, &op), NIC_OK); /* its New_Group reaches the third, which has not joined */
	CHECK_EQ(over(0, op, &value), NIC_STATE);
	CHECK_EQ(value >> NIC_WHY_SHIFT, NIC_WHY_DIED + slot[1]);
	CHECK_EQ(nic_group_leave(n[0], value & ((1 << NIC_WHY_SHIFT) - 1)), NIC_OK);
	poll_all();
	open_one(1);
	join(5, 0, 3, group);
	broadcast(0, 5000, true);
}

static void leave_all(const uint32_t *members)
{
	for (int i = 0; i < count; i++)
		if (n[i])
			CHECK_EQ(nic_group_leave(n[i], members[i]), NIC_OK);
	poll_all();
}

/* One of three, in `place`, joins those. */
static uint32_t join_three(int place, const int *who, const uint32_t *lives)
{
	uint32_t slots[3] = { slot[who[0]], slot[who[1]], slot[who[2]] }, op = 0;
	struct nic_group_args args = { .name = 8, .size = 3, .place = (uint32_t)place, .slot = slots, .life = lives };

	CHECK_EQ(nic_group_join(n[who[place]], &args, &op), NIC_OK);
	poll_all();
	return op;
}

/* A join that names the dead: it is told so, and leaves. */
static void in_vain(int i, uint32_t op, uint32_t dead)
{
	uint32_t value = 0;

	CHECK_EQ(over(i, op, &value), NIC_STATE);
	CHECK_EQ(value >> NIC_WHY_SHIFT, NIC_WHY_DIED + dead);
	CHECK_EQ(nic_group_leave(n[i], value & ((1 << NIC_WHY_SHIFT) - 1)), NIC_OK);
	poll_all();
}

/* All three are through a barrier, and leave. */
static void meet(const int *who, const uint32_t *joins)
{
	uint32_t number[3], op[3];

	for (int i = 0; i < 3; i++)
		CHECK_EQ(over(who[i], joins[i], &number[i]), NIC_OK);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(nic_barrier(n[who[i]], number[i], &op[i]), NIC_OK);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(over(who[i], op[i], NULL), NIC_OK);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(nic_group_leave(n[who[i]], number[i]), NIC_OK);
	poll_all();
}

/*
 * A member has died, and somebody else has its slot, and joins other members under the same name, in the same place.  Who joins
 * with the dead is told of the death, whoever comes first; the newcomer's group is made of those whom it means.
 */
static void slot_taken_anew(void)
{
	static const int ours[3] = { 0, 1, 2 }, theirs[3] = { 3, 1, 4 };

	for (int round = 0; round < 12; round++) {
		uint32_t old[3] = { life[0], life[1], life[2] }, dead = slot[1], now[3], op[3];

		for (int i = 0; round % 2 && i < 3; i++) /* they have had links */
			op[i] = join_three(i, ours, old);
		if (round % 2)
			meet(ours, op);
		gone(1);
		open_one(1);
		CHECK_EQ(slot[1], dead);
		CHECK(life[1] != old[1]);
		for (int i = 0; i < 3; i++)
			now[i] = life[theirs[i]];
		for (int i = 0; i < 3; i++) {
			if (i == round % 3)
				in_vain(0, join_three(0, ours, old), dead);
			op[i] = join_three(i, theirs, round & 4 ? now : NULL);
			if (i == round / 3 % 3)
				in_vain(2, join_three(2, ours, old), dead);
		}
		meet(theirs, op);
		in_vain(2, join_three(2, ours, old), dead);
		for (int i = 0; i < 3; i++)
			op[i] = join_three(i, ours, life);
		meet(ours, op);
	}
}

/*
 * A member dies in the middle of a broadcast that another one does not take, or waits for: both are told, and when the group
 * has been left, nothing of it is there to hold up, or to be taken for, what comes in its place.
 */
static void broken_in_mid_broadcast(void)
{
	static const uint32_t sizes[] = { BYTES, 100, 9000, 8 };
	uint32_t sent, waits = 0, never = 0, value;

	for (int round = 0; round < 40; round++) {
		uint32_t len = sizes[round % 4];

		join(6, 0, 3, group);
		CHECK_EQ(nic_bcast(n[0], group[0], slot[0], data[0], len, &sent), NIC_OK);
		if (round % 3)
			CHECK_EQ(nic_bcast(n[2], group[2], slot[round % 3 == 1], data[2], BYTES, &waits), NIC_OK);
		if (round % 3 == 2)
			CHECK_EQ(nic_bcast(n[2], group[2], slot[0], data[2], BYTES, &never), NIC_OK);
		poll_all();
		gone(1);
		value = (uint32_t)over(0, sent, NULL);
		CHECK(value == NIC_STATE || (value == NIC_OK && len < BYTES)); /* the short ones may be on their way by then */
		if (round % 3) {
			uint32_t why = NIC_WHY_DIED + slot[1];

			value = (uint32_t)over(2, waits, &why);
			if (round % 3 == 2 && (value == NIC_OK || why == NIC_WHY_LENGTH))
				CHECK_EQ(value, len == BYTES ? NIC_OK : NIC_STATE); /* it had all arrived, most of it shorter than its receive */
			else
				CHECK(value == NIC_STATE && why == NIC_WHY_DIED + slot[1]);
		}
		if (round % 3 == 2)
			CHECK_EQ(over(2, never, NULL), NIC_STATE);
		leave_all(group);
		open_one(1);
		join(6, 0, 3, group);
		broadcast(0, len, round % 2);
		leave_all(group);
	}
}

/* One that gives another length than the root is told so, and nobody else; the group goes on. */
static void lengths_differ(void)
{
	static const uint32_t sizes[][2] = { { 100, 200 }, { 200, 100 }, { 8, 40 }, { 40, 8 }, { 0, 5 }, { 5, 0 }, { 9000, 9001 },
		{ 20000, 8 }, { 8, 20000 }, { NIC_BCAST_MAX, 600 } };
	uint32_t op[3], value;

	for (int k = 0; k < 20; k++) {
		uint32_t right = sizes[k % 10][0], wrong = sizes[k % 10][1];

		for (int i = 0; i < 3; i++) { /* in some rounds the data is there before its receiver, in others not */
			int who = k < 10 ? i : 2 - i;

			CHECK_EQ(nic_bcast(n[who], group[who], slot[0], data[who], who == 1 ? wrong : right, &op[who]), NIC_OK);
			poll_all();
		}
		CHECK_EQ(over(0, op[0], NULL), NIC_OK);
		CHECK_EQ(over(1, op[1], &value), NIC_STATE);
		CHECK_EQ(value, NIC_WHY_LENGTH);
		CHECK_EQ(over(2, op[2], NULL), NIC_OK);
		broadcast(k % 3, 5000, k % 2);
	}
}

/* Who leaves without taking what was broadcast holds up neither the sender nor its NIC. */
static void left_untaken(void)
{
	uint32_t sent, value;

	for (int round = 0; round < 40; round++) {
		join(7, 0, 3, group);
		CHECK_EQ(nic_bcast(n[0], group[0], slot[0], data[0], round % 2 ? BYTES : 8, &sent), NIC_OK);
		poll_all();
		for (int i = 1; i < 3; i++)
			CHECK_EQ(nic_group_leave(n[i], group[i]), NIC_OK);
		CHECK(over(0, sent, NULL) != NIC_NOT_DONE);
		CHECK_EQ(nic_barrier(n[0], group[0], &sent), NIC_OK);
		CHECK_EQ(over(0, sent, &value), NIC_STATE); /* with nobody */
		CHECK_EQ(value, NIC_WHY_LEFT);
		CHECK_EQ(nic_bcast(n[0], group[0], slot[0], data[0], 8, &sent), NIC_OK);
		CHECK_EQ(over(0, sent, &value), NIC_STATE);
		CHECK_EQ(value, NIC_WHY_LEFT);
		CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
		poll_all();
	}
	join(7, 0, 3, group);
	broadcast(1, BYTES, false);
}

static int over_elsewhere(int i, uint32_t op, uint32_t *value)
{
	int err = NIC_NOT_DONE;

	for (int k = 0; k < 30000 && err == NIC_NOT_DONE; k++) {
		for (int poll = 0; poll < 64; poll++) /* only once in many it looks whether the NIC lives */
			nic_poll(n[i]);
		err = nic_op_test(n[i], op, value);
		usleep(err == NIC_NOT_DONE ? 1000 : 0);
	}
	return err;
}

/* Engine daemon: the process that runs all NICs is killed; what is under way, and what comes, fails and says why. */
static void the_nic_dies(void)
{
	uint32_t op[3], value, again;
	struct found f;

	nic_param_set("engine", "daemon", "test");
	nic_param_set("log", "quiet", "test"); /* it is said to users */
	open_all(3, NULL);
	CHECK(!nic_groups_at_once(n[0]));
	f = found_of(device());
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(nic_group_join(n[i], &(struct nic_group_args){ .name = 1, .size = 2, .place = i, .slot = slot }, &op[i]), NIC_OK);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(over_elsewhere(i, op[i], &group[i]), NIC_OK);
	CHECK_EQ(nic_barrier(n[0], group[0], &op[0]), NIC_OK);
	CHECK_EQ(nic_bcast(n[1], group[1], slot[0], data[1], 100, &op[1]), NIC_OK);
	CHECK_EQ(nic_group_join(n[2], &(struct nic_group_args){ .name = 2, .size = 2, .place = 0, .slot = (uint32_t[]){ slot[2], slot[1] } },
	                        &op[2]), NIC_OK);
	CHECK(f.daemon > 0 && kill(f.daemon, SIGKILL) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(over_elsewhere(i, op[i], &value), NIC_STATE);
		CHECK_EQ(value, NIC_WHY_NIC);
	}
	CHECK_EQ(nic_barrier(n[0], group[0], &again), NIC_STATE);
	close_all();
	nic_param_set("engine", "inline", "test");
}

/* More than the Command Queue has places for, and nobody polls: none of them is lost. */
static void leaving_in_a_row(void)
{
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(nic_group_leave(n[0], 200), NIC_OK); /* an entry that is not in use */
}

int main(void)
{
	static const char *const archs[] = { "direct", "qnix" };

	for (int i = 0; i < 2; i++) {
		printf("# arch %s\n", archs[i]);
		open_all(MANY, archs[i]);
		CHECK_EQ(nic_groups_at_once(n[0]), i == 0);
		CASE(barriers);
		CASE(broadcasts);
		CASE(broadcasts_together);
		CASE(names_again);
		CASE(leaving_in_a_row);
		CASE(alone);
		CASE(bounded);
		CASE(a_member_goes);
		close_all();
		open_all(3, archs[i]);
		join(1, 0, count, group);
		CASE(running_ahead);
		close_all();
		open_all(3, archs[i]);
		join(2, 0, count, group);
		CASE(gone_behind_a_barrier);
		close_all();
		open_all(3, archs[i]);
		CASE(join_with_the_dead);
		CASE(broken_in_mid_broadcast);
		CASE(left_untaken);
		CASE(lengths_differ);
		close_all();
		open_all(MANY, archs[i]);
		CASE(slot_taken_anew);
		close_all();
		CASE(the_nic_dies);
	}
	return check_done();
}
