/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of a QNIX, all played by one: each is a slot with a control program that runs when polled, and a trace of its steps.
 */
#ifndef TESTS_UNIT_NICEMU_PLAYED_H
#define TESTS_UNIT_NICEMU_PLAYED_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "qnix.h"
#include "qx/src/qx.h"
#include "tests/check.h"

enum { MANY = 6, APP = 7, TRACE = 1 << 14 };

static struct qx *p[MANY];
static int nprocs;
static uint8_t from[MANY][1 << 20], to[MANY][1 << 20];

static inline void as(int i)
{
	qx_select(p[i]);
}

static inline const int *name(int i)
{
	static int names[MANY][2];

	names[i][0] = APP;
	names[i][1] = i;
	return names[i];
}

static inline void poll_all(void)
{
	for (int idle = 0; idle < 4;) {
		int moved = 0;

		for (int i = 0; i < nprocs; i++)
			moved += nic_poll(p[i]->nic);
		idle = moved ? 0 : idle + 1;
	}
}

static inline bool all_begun(void)
{
	bool all = true;

	for (int i = 0; i < nprocs; i++)
		all &= qx_begun(p[i]) == 1;
	return all;
}

static inline void up(int n)
{
	char device[40];

	snprintf(device, sizeof(device), "qnix-test-%d", (int)getpid());
	nic_param_set("device", device, "test");
	nic_param_set("arch", "qnix", "test");
	nic_param_set("trace", "16384", "test");
	nprocs = n;
	for (int i = 0; i < n; i++) {
		p[i] = qx_begin(name(i), APP, n);
		if (!p[i]) {
			printf("# %s\n", qx_error());
			exit(1);
		}
	}
	for (int i = 0; i < 100 && !all_begun(); i++)
		;
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(from[i]); k++)
			from[i][k] = (uint8_t)(k * 7 + (k >> 8) + (size_t)i * 31);
	memset(to, 0, sizeof(to));
}

static inline void down(void)
{
	for (int i = 0; i < nprocs; i++)
		if (p[i])
			qx_end(p[i]);
	qx_select(NULL);
	memset(p, 0, sizeof(p));
}

/* Waits for an operation of process i, everybody running. */
static inline int over(int i, int op, long *size)
{
	int done = 0;

	for (int n = 0; n < 10000 && !done; n++) {
		poll_all();
		as(i);
		done = qx_test(op, size);
	}
	return done;
}

static inline int send_as(int i, int dest, int tag, const void *data, long size)
{
	as(i);
	return qx_send(name(dest), tag, data, size);
}

static inline int receive_as(int i, int source, int tag, void *data, long size)
{
	as(i);
	return qx_receive(name(source), tag, data, size);
}

/* ---- traces -------------------------------------------------------------------------------------------------------------------- */

static inline void forget_steps(int i)
{
	CHECK_EQ(nic_trace_start(p[i]->nic, TRACE), NIC_OK);
}

/* These steps happened in this order, others between them. */
static inline void in_order(int i, const uint32_t *want, size_t n)
{
	const struct nic_step *s;
	size_t at = 0;

	for (uint32_t k = 0; at < n && (s = nic_trace_at(p[i]->nic, k)); k++)
		at += s->point == want[at];
	CHECK_EQ(at, n);
	if (at < n)
		printf("# process %d has not done: %s\n", i, nic_trace_text(want[at]));
}
#define IN_ORDER(i, ...)                                                                  \
	do {                                                                              \
		static const uint32_t want[] = { __VA_ARGS__ };                           \
		in_order(i, want, sizeof(want) / sizeof(want[0]));                        \
	} while (0)

static inline uint32_t steps_of(int i, uint32_t point)
{
	const struct nic_step *s;
	uint32_t n = 0;

	for (uint32_t k = 0; (s = nic_trace_at(p[i]->nic, k)); k++)
		n += s->point == point;
	return n;
}

#define S(name) NIC_T_##name

#endif
