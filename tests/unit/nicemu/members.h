/* SPDX-License-Identifier: BSD-3-Clause */
/* NICs of one process that are members of a group on architecture direct, by place: slots, groups and data. */
#ifndef TESTS_MEMBERS_H
#define TESTS_MEMBERS_H

#include <unistd.h>

#include "nicemu/ctl/group.h"
#include "tests/check.h"

enum { MANY = 3, ROOM = 200 * 1000, GUARD = 0x5A };

static char device[40];
static struct nic *n[MANY];
static uint32_t slot[MANY], group[MANY];
static uint8_t data[MANY][ROOM];

static inline void open_one(int i)
{
	struct nic_open_args args = { .device = device };
	struct nic_attr attr;

	REQUIRE(nic_open(&args, &n[i]) == NIC_OK);
	nic_query(n[i], &attr);
	slot[i] = attr.slot;
}

static inline void poll_all(void)
{
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < MANY; i++)
			if (n[i])
				nic_poll(n[i]);
}

static inline int over(int i, uint32_t op, uint32_t *value)
{
	int err = NIC_NOT_DONE;

	for (int k = 0; k < 100 && err == NIC_NOT_DONE; k++) {
		poll_all();
		err = nic_op_test(n[i], op, value);
	}
	return err;
}

static inline void join(uint32_t name, int many)
{
	uint32_t op[MANY];

	for (int i = 0; i < many; i++) {
		struct nic_group_args args = { .name = name, .size = (uint32_t)many, .place = (uint32_t)i, .slot = slot };

		CHECK_EQ(nic_group_join(n[i], &args, &op[i]), NIC_OK);
	}
	for (int i = 0; i < many; i++)
		CHECK_EQ(over(i, op[i], &group[i]), NIC_OK);
}

static inline void leave(int many)
{
	for (int i = 0; i < many; i++)
		CHECK_EQ(nic_group_leave(n[i], group[i]), NIC_OK);
	poll_all();
}

static inline struct nic_board *board_of(int i)
{
	return &n[i]->slot->board[group[i]];
}

static inline uint32_t come(int i)
{
	uint32_t op = 0;

	CHECK_EQ(nic_barrier(n[i], group[i], &op), NIC_OK);
	return op;
}

static inline void all_over(const uint32_t *op)
{
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
}

static inline uint32_t bcast(int i, int root, uint32_t len)
{
	uint32_t op = 0;

	CHECK_EQ(nic_bcast(n[i], group[i], slot[root], data[i], len, &op), NIC_OK);
	return op;
}

static inline uint64_t count(int i, enum nic_counter_id id)
{
	return n[i]->counter[id];
}

static inline void open_all(void)
{
	nic_param_set("arch", "direct", "test");
	nic_param_set("wait", "spin", "test");
	snprintf(device, sizeof(device), "board-%d", (int)getpid());
	for (int i = 0; i < MANY; i++)
		open_one(i);
}

static inline void close_all(void)
{
	for (int i = 0; i < MANY; i++)
		nic_close(n[i]);
}

#endif
