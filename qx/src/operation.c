/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations: a context and its page table, a command behind it, a doorbell.  The order is that of mem/qnix.h.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "qnix.h"
#include "qx/src/qx.h"

enum {
	RECV = 0x100,      /* of an operation's number: its context is a Receive Context */
	LOOKS = 1000,      /* at a full Command Queue, one after the other, and at most */
	LOOKS_MOST = 20000,
};

static struct qx *process(void)
{
	struct qx *q = qx_select(NULL);

	qx_select(q);
	return q;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------------------- */

static uint64_t *used(struct qx *q, int op)
{
	return (op & RECV ? q->recv_used : q->send_used) + (op & (QNIX_CONTEXTS - 1)) / 64;
}

static struct qnix_context *context_of(struct qx *q, int op)
{
	return (op & RECV ? q->shared->vni.recv : q->shared->vni.send) + (op & (QNIX_CONTEXTS - 1));
}

static union qnix_region *region_of(struct qx *q, int op)
{
	return (op & RECV ? q->shared->vni.recv_region : q->shared->vni.send_region) + (op & (QNIX_CONTEXTS - 1));
}

static _Atomic uint32_t *bell_of(struct qx *q, int op)
{
	return (op & RECV ? q->shared->hps.recv_doorbell : q->shared->hps.send_doorbell) + (op & (QNIX_CONTEXTS - 1));
}

/* The next free context of that kind, from the process's access point on. */
static int take(struct qx *q, int kind)
{
	uint32_t *next = kind ? &q->shared->hps.recv_next : &q->shared->hps.send_next;

	for (int n = 0; n < QX_CONTEXTS; n++) {
		int i = (int)((*next + (uint32_t)n) % QX_CONTEXTS), op = kind | i;

		if (*used(q, op) >> (i % 64) & 1)
			continue;
		*used(q, op) |= (uint64_t)1 << (i % 64);
		*next = (uint32_t)i + 1;
		*context_of(q, op) = (struct qnix_context){ .pool = QNIX_NO_POOL, .doorbell_flag = 1 };
		atomic_store_explicit(bell_of(q, op), QNIX_POSTED, memory_order_relaxed); /* published by the command, Q1 */
		return op;
	}
	return QX_REFUSED;
}

static void give(struct qx *q, int op)
{
	*used(q, op) &= ~((uint64_t)1 << (op & 63));
	atomic_store_explicit(bell_of(q, op), QNIX_FREE, memory_order_relaxed); /* the NIC is through with it */
}

/* ---- commands ---------------------------------------------------------------------------------------------------------------- */

static uint32_t room(struct qx *q)
{
	struct qnix_hps *hps = &q->shared->hps;

	/* Q3: pairs with the NIC's release; the entries before it are empty */
	return QNIX_COMMANDS - (hps->command_tail - atomic_load_explicit(&hps->command_head, memory_order_acquire));
}

static struct qnix_cmd *entry(struct qx *q, uint32_t ahead)
{
	return &q->shared->vni.command[(q->shared->hps.command_tail + ahead) & (QNIX_COMMANDS - 1)];
}

/* Puts a command, with `more` entries already written behind it; runs the NIC when the queue is full. */
static int put(struct qx *q, int op, enum qnix_command command, uint32_t group, uint32_t size, uint32_t more)
{
	struct qnix_cmd *at = entry(q, 0);

	at->context = (uint32_t)(op & (QNIX_CONTEXTS - 1));
	at->group = group;
	at->size = size;
	atomic_store_explicit(&at->command, command, memory_order_release); /* Q1 */
	q->shared->hps.command_tail += 1 + more;
	if (!q->quiet)
		nic_process_look(q->nic);
	return op;
}

/* The head comes back every eighth entry only: up to seven more are free.  A NIC in a process of its own needs its time. */
static int await_room(struct qx *q, uint32_t entries)
{
	struct timespec nap = { .tv_nsec = 100000 };

	for (int i = 0; room(q) < entries; i++) {
		if (nic_process_look(q->nic) || i == LOOKS_MOST)
			return QX_REFUSED;
		if (i > LOOKS)
			nanosleep(&nap, NULL);
	}
	return 0;
}

static int post(struct qx *q, int op, enum qnix_command command, uint32_t group, uint32_t size)
{
	if (await_room(q, 1)) {
		give(q, op);
		return QX_REFUSED;
	}
	return put(q, op, command, group, size, 0);
}

/* ---- messages ---------------------------------------------------------------------------------------------------------------- */

static int sound(const struct qx *q, const int *name, int tag, const void *buffer, long size, long most)
{
	return q && name && name[0] != QNIX_PORT && tag >= 0 && tag <= QX_TAG_MAX && size >= 0 && size <= most && (buffer || size == 0);
}

static void fill(struct qx *q, int op, const int *name, int tag, long size)
{
	struct qnix_context *c = context_of(q, op);

	c->process = (struct qnix_name){ name[0], name[1] };
	c->tag = (uint16_t)tag;
	c->len = (uint32_t)size;
}

/* The data or its page table into the Context Region; true: the data. */
static int load(struct qx *q, int op, const char *buffer, long size)
{
	if (size <= QX_SHORT_MAX) {
		memcpy(region_of(q, op)->data, buffer ? buffer : "", (size_t)size);
		return 1;
	}
	nic_translate(q->nic, (uintptr_t)buffer, (uint64_t)size, region_of(q, op)->descriptor, QNIX_REGION);
	return 0;
}

int qx_send(const int to[2], int tag, const char *buffer, long size)
{
	struct qx *q = process();
	int op;

	if (!sound(q, to, tag, buffer, size, QX_MESSAGE_MAX))
		return QX_ERROR;
	op = take(q, 0);
	if (op < 0)
		return op;
	fill(q, op, to, tag, size);
	return post(q, op, load(q, op, buffer, size) ? QNIX_CMD_SEND_SHORT : QNIX_CMD_SEND, 0, 0);
}

int qx_receive(const int from[2], int tag, char *buffer, long size)
{
	struct qx *q = process();
	int op;

	if (!sound(q, from, tag, buffer, size, QX_MESSAGE_MAX))
		return QX_ERROR;
	op = take(q, RECV);
	if (op < 0)
		return op;
	fill(q, op, from, tag, size);
	if (size)
		nic_translate(q->nic, (uintptr_t)buffer, (uint64_t)size, region_of(q, op)->descriptor, QNIX_REGION);
	return post(q, op, QNIX_CMD_RECEIVE, 0, 0);
}

static int pooled(const struct qx *q, int page, long size)
{
	return q->pool && page >= 0 && page < q->pool_pages && size <= (long)(q->pool_pages - page) * QX_PAGE;
}

static int pool_operation(const int *name, int tag, int page, long size, int kind, enum qnix_command command)
{
	struct qx *q = process();
	int op;

	if (!sound(q, name, tag, name, size, QX_MESSAGE_MAX) || !pooled(q, page, size))
		return QX_ERROR;
	op = take(q, kind);
	if (op < 0)
		return op;
	fill(q, op, name, tag, size);
	context_of(q, op)->pool = (uint16_t)page;
	return post(q, op, command, 0, 0);
}

int qx_pool_send(const int to[2], int tag, int page, long size)
{
	return pool_operation(to, tag, page, size, 0, QNIX_CMD_SEND);
}

int qx_pool_receive(const int from[2], int tag, int page, long size)
{
	return pool_operation(from, tag, page, size, RECV, QNIX_CMD_RECEIVE);
}

/* ---- groups ------------------------------------------------------------------------------------------------------------------- */

int qx_broadcast(int group_name, int tag, const char *buffer, long size)
{
	static const int nobody[2];
	struct qx *q = process();
	int op;

	if (!sound(q, nobody, tag, buffer, size, QX_MESSAGE_MAX))
		return QX_ERROR;
	op = take(q, 0);
	if (op < 0)
		return op;
	fill(q, op, nobody, tag, size);
	return post(q, op, load(q, op, buffer, size) ? QNIX_CMD_BROADCAST_SHORT : QNIX_CMD_BROADCAST, (uint32_t)group_name, 0);
}

/* The names first, the command that they belong to last: the NIC sees all or nothing. */
int qx_multicast(int n, const int *names, int tag, const char *buffer, long size)
{
	struct qx *q = process();
	uint32_t more = (uint32_t)(n + QNIX_NAMES - 1) / QNIX_NAMES;
	int op;

	if (n < 1 || n > QX_MULTICAST_MAX || !sound(q, names, tag, buffer, size, QX_MESSAGE_MAX))
		return QX_ERROR;
	if (await_room(q, 1 + more))
		return QX_REFUSED;
	op = take(q, 0);
	if (op < 0)
		return op;
	fill(q, op, names, tag, size);
	for (uint32_t e = 0; e < more; e++) {
		struct qnix_cmd *at = entry(q, 1 + e);

		for (int k = 0; k < QNIX_NAMES && (int)e * QNIX_NAMES + k < n; k++)
			memcpy(&at->name[k], names + 2 * ((int)e * QNIX_NAMES + k), sizeof(at->name[k]));
		atomic_store_explicit(&at->command, QNIX_CMD_NAMES, memory_order_release); /* Q1; the NIC stops at the entry before */
	}
	return put(q, op, load(q, op, buffer, size) ? QNIX_CMD_MULTICAST_SHORT : QNIX_CMD_MULTICAST, 0, (uint32_t)n, more);
}

static int group_operation(int group_name, uint32_t size, enum qnix_command command)
{
	struct qx *q = process();
	int op;

	if (!q)
		return QX_ERROR;
	op = take(q, 0);
	return op < 0 ? op : post(q, op, command, (uint32_t)group_name, size);
}

int qx_join(int group_name, int size)
{
	return size > 0 ? group_operation(group_name, (uint32_t)size, QNIX_CMD_JOIN_GROUP) : QX_ERROR;
}

int qx_barrier(int group_name)
{
	return group_operation(group_name, 0, QNIX_CMD_BARRIER);
}

/* ---- completion ---------------------------------------------------------------------------------------------------------------- */

int qx_poll(void)
{
	struct qx *q = process();

	return q ? nic_poll(q->nic) : QX_ERROR;
}

int qx_test(int operation, long *size)
{
	static const int outcome[] = { [QNIX_DONE] = 1, [QNIX_FAILED] = QX_FAILED, [QNIX_REFUSED] = QX_REFUSED };
	struct qx *q = process();
	uint32_t bell, state;

	if (!q || operation < 0 || (operation & (RECV - 1)) >= QX_CONTEXTS || operation > (RECV | QX_CONTEXTS) ||
	    !(*used(q, operation) >> (operation & 63) & 1))
		return QX_ERROR;
	bell = atomic_load_explicit(bell_of(q, operation), memory_order_acquire); /* Q2 */
	state = bell & QNIX_STATE_MASK;
	if (state == QNIX_POSTED) {
		if (q->quiet || nic_process_look(q->nic) == NIC_OK)
			return 0;
		bell = state = QNIX_FAILED;
	}
	give(q, operation);
	if (size)
		*size = (long)(bell >> QNIX_LEN_SHIFT);
	return state < sizeof(outcome) / sizeof(outcome[0]) && outcome[state] ? outcome[state] : QX_ERROR;
}

int qx_wait(int operation, long *size)
{
	int done = 0;

	for (unsigned n = 1; (done = qx_test(operation, size)) == 0; n++)
		if (n % 64 == 0)
			sched_yield();
	return done;
}
