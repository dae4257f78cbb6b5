/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: joins, barriers and broadcasts as operations of the NIC, in the order of the calls.
 *
 * An operation waits in its group's queue until the NIC takes it: one barrier at a time, one broadcast of this process at a
 * time (its pieces follow each other), any number of broadcasts of others.  What the NIC refuses for now is started again by a
 * later pass.  Completions run as those of every operation do (completion.c); what is over when the NIC's call returns has none.
 */
#include <stdlib.h>
#include <string.h>

#include "cmpi/pm_via/via.h"

enum group_op_kind { OP_JOIN, OP_BARRIER, OP_BCAST };
enum { PIECE = VIPX_BROADCAST_MAX, OPS_CHUNK = 64 }; /* between two pieces the process has to come by: as few as can be */

struct via_group_op {
	struct via_completion completion;
	struct via_group_op *next;
	uint8_t kind;
	bool started, pieces;
	VIP_UINT32 number;  /* of the NIC's operation */
	VIP_UINT32 root;    /* slot */
	uint8_t *at;        /* next piece */
	size_t left, piece; /* bytes still to come; of the piece under way */
};

struct cmpi_group {
	struct cmpi *cmpi;
	struct cmpi_group *next;          /* on the list of those with operations */
	struct via_group_op *ops, **tail; /* not over yet, in the order of the calls */
	VIP_UINT32 number;                /* the NIC's */
	bool joined, failed, listed;
	enum cmpi_why why;                /* it has failed */
	VIP_UINT32 lost;                  /* place of the member that died */
	VIP_UINT32 name, size, place;
	VIP_UINT32 slot[];                /* and behind them their lives */
};

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

static void op_free(struct cmpi *c, struct via_completion *completion)
{
	struct via_group_op *op = (struct via_group_op *)completion;

	op->next = c->free_group_ops;
	c->free_group_ops = op;
}

/* One is free. */
static bool has_op(struct cmpi *c)
{
	struct via_group_op *more;

	if (via_likely(c->free_group_ops != NULL))
		return true;
	more = via_chunk(c, OPS_CHUNK * sizeof(*more));
	for (unsigned i = 0; more && i < OPS_CHUNK; i++)
		op_free(c, &more[i].completion);
	return more != NULL;
}

static struct via_group_op *op_new(struct cmpi *c)
{
	struct via_group_op *op = c->free_group_ops;

	c->free_group_ops = op->next;
	return op;
}

static void list(struct cmpi_group *g)
{
	if (g->listed)
		return;
	g->listed = true;
	g->next = g->cmpi->group_work;
	g->cmpi->group_work = g;
}

static VIP_RETURN start(struct cmpi_group *g, struct via_group_op *op)
{
	VIPX_GROUP args = { g->name, g->size, g->place, g->slot, g->slot + g->size };
	VIP_NIC_HANDLE nic = g->cmpi->nic;

	switch (op->kind) {
	case OP_JOIN:
		return VipxGroupJoin(nic, &args, &op->number);
	case OP_BARRIER:
		return VipxBarrier(nic, g->number, &op->number);
	default:
		op->piece = op->left < PIECE ? op->left : PIECE;
		return VipxBroadcast(nic, g->number, op->root, op->at, op->piece, &op->number);
	}
}

/* Over: CMPI_OK, or why not. */
static void finish(struct cmpi_group *g, struct via_group_op *op, int err)
{
	via_completion_push(g->cmpi, &op->completion, err);
}

/* A part of it, or all, is done: true when all. */
static bool advance(struct cmpi_group *g, struct via_group_op *op, VIP_UINT32 value)
{
	if (op->kind == OP_JOIN) {
		g->number = value;
		g->joined = true;
	} else if (op->kind == OP_BCAST) {
		op->at += op->piece;
		op->left -= op->piece;
	}
	op->started = false;
	return op->left == 0;
}

static enum cmpi_why reason(struct cmpi_group *g, VIP_UINT32 why)
{
	switch (why) {
	case VIPX_WHY_LEFT:
		return CMPI_WHY_LEFT;
	case VIPX_WHY_LENGTH:
		return CMPI_WHY_LENGTH;
	case VIPX_WHY_DATA:
		return CMPI_WHY_DATA;
	case VIPX_WHY_NIC:
		return CMPI_WHY_NIC;
	}
	for (g->lost = 0; g->lost < g->size; g->lost++)
		if (g->slot[g->lost] + VIPX_WHY_DIED == why)
			return CMPI_WHY_DIED;
	return CMPI_WHY_UNKNOWN;
}

/*
 * Nothing goes in the group any more.  Of a death, or that somebody left, the others hear themselves; of all else only when this
 * member leaves, and until then they would wait for it.
 */
static void fail(struct cmpi_group *g, VIP_UINT32 why)
{
	if (g->failed)
		return;
	g->failed = true;
	g->why = reason(g, why);
	if (g->joined && (g->why == CMPI_WHY_LENGTH || g->why == CMPI_WHY_DATA || g->why == CMPI_WHY_UNKNOWN)) {
		VipxGroupLeave(g->cmpi->nic, g->number);
		g->joined = false;
	}
}

/* The NIC says that an operation has failed, and why. */
static int failed(struct cmpi_group *g, struct via_group_op *op, VIP_UINT32 value)
{
	if (op->kind == OP_JOIN && value != VIPX_WHY_NIC) {
		advance(g, op, value & ((1u << VIPX_WHY_SHIFT) - 1)); /* the NIC has an entry for it, which must be left */
		value >>= VIPX_WHY_SHIFT;
	}
	if (value == VIPX_WHY_LENGTH && !op->pieces)
		return CMPI_TRUNCATED;
	fail(g, value);
	return CMPI_TRANSPORT;
}

enum progress { WAITS, MOVED, OVER };

static enum progress look(struct cmpi_group *g, struct via_group_op *op)
{
	VIP_UINT32 value = 0;
	VIP_RETURN result = VipxOperationDone(g->cmpi->nic, op->number, &value);

	if (result == VIP_NOT_DONE)
		return WAITS;
	if (result == VIP_SUCCESS) {
		if (!advance(g, op, value))
			return MOVED;
		finish(g, op, CMPI_OK);
		return OVER;
	}
	op->started = false;
	if (result == VIP_ERROR_RESOURCE && op->kind != OP_JOIN)
		return WAITS; /* it is started again */
	if (result == VIP_ERROR_RESOURCE)
		g->failed = true;
	finish(g, op, result == VIP_ERROR_RESOURCE ? CMPI_RESOURCE : failed(g, op, value));
	return OVER;
}

/* May it start while `before` is not over?  Broadcasts from somebody else may; the NIC keeps their order. */
static bool may_pass(const struct cmpi_group *g, const struct via_group_op *before, const struct via_group_op *op)
{
	return before->started && before->left <= before->piece && before->kind == OP_BCAST && op->kind == OP_BCAST &&
	       op->root != g->slot[g->place];
}

static enum progress step(struct cmpi_group *g, struct via_group_op *op)
{
	enum progress did = WAITS;

	if (!op->started) {
		VIP_RETURN result = g->failed ? VIP_INVALID_STATE : start(g, op);

		if (result == VIP_ERROR_RESOURCE && (op->kind != OP_JOIN || g->cmpi->group_work->next))
			return WAITS;
		if (result != VIP_SUCCESS) {
			fail(g, result == VIP_INVALID_STATE ? VIPX_WHY_NIC : VIPX_WHY_NO_GROUP);
			finish(g, op, result == VIP_INVALID_STATE ? CMPI_TRANSPORT : CMPI_RESOURCE);
			return OVER;
		}
		op->started = true;
		did = MOVED;
	}
	switch (look(g, op)) {
	case OVER:
		return OVER;
	case MOVED:
		return MOVED;
	default:
		return did;
	}
}

static int run(struct cmpi_group *g)
{
	struct via_group_op **at = &g->ops, *op, *before = NULL;
	int n = 0;

	while ((op = *at) != NULL && (!before || may_pass(g, before, op) || op->started)) {
		struct via_group_op *next = op->next;

		switch (step(g, op)) {
		case OVER:
			*at = next;
			if (!next)
				g->tail = at;
			n++;
			continue;
		case MOVED:
			n++;
			break;
		default:
			break;
		}
		before = op;
		at = &op->next;
	}
	return n;
}

int via_group_run(struct cmpi *c)
{
	struct cmpi_group **at = &c->group_work, *g;
	int n = 0;

	while ((g = *at) != NULL) {
		n += run(g);
		if (g->ops) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		g->listed = false;
	}
	return n;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

/* Nothing comes before the next operation, so the NIC may have it; and it can be queued, if it is not over then. */
static inline bool is_free(const struct cmpi_group *g)
{
	return via_likely(!g->ops && g->joined && !g->failed) && has_op(g->cmpi);
}

/* A new one without data, behind the others; NULL: no memory. */
static struct via_group_op *enqueue(struct cmpi_group *g, enum group_op_kind kind, cmpi_done_fn *done, void *arg)
{
	struct via_group_op *op;

	if (!has_op(g->cmpi))
		return NULL;
	op = op_new(g->cmpi);
	op->completion.done = done;
	op->completion.arg = arg;
	op->completion.free = op_free;
	op->next = NULL;
	op->kind = (uint8_t)kind;
	op->started = op->pieces = false;
	op->left = op->piece = 0;
	*g->tail = op;
	g->tail = &op->next;
	list(g);
	return op;
}

/* Of one that is queued: its turn may have come. */
static int begin(struct cmpi_group *g)
{
	struct cmpi *c = g->cmpi;

	run(g);
	via_completion_run(c);
	return CMPI_OK;
}

/* The lock is held, and given up.  Of what the NIC has already, a moment ago, the number; else it starts when it is its turn. */
static int later(struct cmpi_group *g, struct via_group_op *op, bool started, VIP_UINT32 number)
{
	struct cmpi *c = g->cmpi; /* a callback may do anything with g */
	int err = CMPI_AGAIN;

	if (via_likely(op != NULL)) {
		op->started = started;
		op->number = number;
		err = started ? CMPI_OK : begin(g);
	}
	via_unlock(c);
	return err;
}

int cmpi_group_join(struct cmpi *c, uint32_t name, struct cmpi_proc **procs, size_t n, size_t place, cmpi_done_fn *done, void *arg,
                    struct cmpi_group **out)
{
	struct cmpi_group *g;
	int err;

	if (n == 0 || n > UINT16_MAX || place >= n)
		return CMPI_PARAMETER;
	g = calloc(1, sizeof(*g) + 2 * n * sizeof(g->slot[0]));
	if (!g)
		return CMPI_RESOURCE;
	g->cmpi = c;
	g->tail = &g->ops;
	g->name = name;
	g->why = CMPI_WHY_UNKNOWN;
	g->size = (VIP_UINT32)n;
	g->place = (VIP_UINT32)place;
	for (size_t i = 0; i < n; i++) {
		const struct via_address *address = procs[i] ? &procs[i]->address : &c->address;

		g->slot[i] = address->slot;
		g->slot[n + i] = address->life;
	}
	*out = g;
	via_lock(c);
	err = later(g, enqueue(g, OP_JOIN, done, arg), false, 0);
	if (err != CMPI_OK)
		free(g);
	return err;
}

void cmpi_group_leave(struct cmpi_group *g)
{
	struct cmpi *c;

	if (!g)
		return;
	c = g->cmpi;
	via_lock(c);
	for (struct cmpi_group **at = &c->group_work; *at; at = &(*at)->next)
		if (*at == g) {
			*at = g->next;
			break;
		}
	if (g->joined)
		VipxGroupLeave(c->nic, g->number);
	via_unlock(c);
	free(g);
}

enum cmpi_why cmpi_group_why(const struct cmpi_group *g, size_t *place)
{
	*place = g->lost;
	return g->why;
}

const char *cmpi_why_text(enum cmpi_why why)
{
	static const char *const text[] = {
		[CMPI_WHY_DIED] = "one of its members has died",
		[CMPI_WHY_LEFT] = "one of its members has left it, or has given it up",
		[CMPI_WHY_LENGTH] = "its members gave broadcasts of different lengths",
		[CMPI_WHY_DATA] = "what came of a broadcast makes no sense",
		[CMPI_WHY_NIC] = "the NIC of this process has died",
		[CMPI_WHY_UNKNOWN] = "the NIC refuses it",
	};

	return text[why];
}

int cmpi_barrier(struct cmpi_group *g, cmpi_done_fn *done, void *arg)
{
	VIP_UINT32 number = VIPX_OVER;
	bool started;

	via_lock(g->cmpi);
	started = is_free(g) && VipxBarrier(g->cmpi->nic, g->number, &number) == VIP_SUCCESS;
	if (via_unlikely(!started || number != VIPX_OVER))
		return later(g, enqueue(g, OP_BARRIER, done, arg), started, number);
	via_unlock(g->cmpi);
	return CMPI_OVER;
}

/* Not over at once: queued, with what the call was given. */
static __attribute__((noinline)) int bcast_later(struct cmpi_group *g, const struct via_group_op *given, cmpi_done_fn *done, void *arg)
{
	struct via_group_op *op = enqueue(g, OP_BCAST, done, arg);

	if (op) {
		op->pieces = given->left > PIECE;
		op->root = given->root;
		op->at = given->at;
		op->left = op->piece = given->left;
	}
	return later(g, op, given->started, given->number);
}

int cmpi_bcast(struct cmpi_group *g, size_t root, void *buf, size_t len, cmpi_done_fn *done, void *arg)
{
	VIP_UINT32 number = VIPX_OVER;
	bool started;

	if (root >= g->size || (!buf && len))
		return CMPI_PARAMETER;
	via_lock(g->cmpi);
	started = len <= PIECE && is_free(g) && VipxBroadcast(g->cmpi->nic, g->number, g->slot[root], buf, len, &number) == VIP_SUCCESS;
	if (via_unlikely(!started || number != VIPX_OVER))
		return bcast_later(g, &(struct via_group_op){ .started = started, .number = number, .root = g->slot[root], .at = buf, .left = len },
		                   done, arg);
	via_unlock(g->cmpi);
	return CMPI_OVER;
}

bool cmpi_groups_at_once(struct cmpi *c)
{
	return VipxGroupsAtOnce(c->nic) == VIP_SUCCESS;
}
