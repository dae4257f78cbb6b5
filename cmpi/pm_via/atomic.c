/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote atomics: a request packet, carried out by the target's progress with the CPU's atomics, and a reply packet.  The
 * target checks the address against its own registrations, and believes nothing that the request says about rights: the handle in it
 * only says where to look first.  The question for a key to some memory goes the same way.
 *
 * At most PEER_OPS requests to a peer are open, so a target owes at most that many replies to each: what control packets
 * may take beyond vbuf_max is bounded.
 */
#include "cmpi/pm_via/flow.h"

enum { PEER_OPS = 128 };

/* ---- the operation itself --------------------------------------------------------------------------------------------- */

#define APPLY(type, stype)                                                                                        \
	static uint64_t apply_##type(enum cmpi_atomic op, type *at, type operand, type compare)                   \
	{                                                                                                         \
		type old = __atomic_load_n(at, __ATOMIC_RELAXED), new;                                            \
		switch (op) {                                                                                     \
		case CMPI_ATOMIC_ADD: return __atomic_fetch_add(at, operand, __ATOMIC_ACQ_REL);                   \
		case CMPI_ATOMIC_AND: return __atomic_fetch_and(at, operand, __ATOMIC_ACQ_REL);                   \
		case CMPI_ATOMIC_OR: return __atomic_fetch_or(at, operand, __ATOMIC_ACQ_REL);                     \
		case CMPI_ATOMIC_XOR: return __atomic_fetch_xor(at, operand, __ATOMIC_ACQ_REL);                   \
		case CMPI_ATOMIC_SWAP: return __atomic_exchange_n(at, operand, __ATOMIC_ACQ_REL);                 \
		case CMPI_ATOMIC_CSWAP:                                                                           \
			__atomic_compare_exchange_n(at, &compare, operand, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
			return compare; /* what was there, also when it was equal */                              \
		case CMPI_ATOMIC_MIN:                                                                             \
		case CMPI_ATOMIC_MAX:                                                                             \
			do { /* relaxed load before: only the first guess */                                      \
				bool less = (stype)operand < (stype)old;                                          \
				new = less == (op == CMPI_ATOMIC_MIN) ? operand : old;                            \
			} while (!__atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)); \
			return old;                                                                               \
		}                                                                                                 \
		return 0;                                                                                         \
	}
APPLY(uint32_t, int32_t)
APPLY(uint64_t, int64_t)

static bool sensible(unsigned op, unsigned size, uint64_t addr)
{
	return op <= CMPI_ATOMIC_CSWAP && (size == 4 || size == 8) && addr % size == 0;
}

/*
 * Only of memory that peers may reach in every way, as that of a window: what was registered for a transfer of its own may be gone before the
 * key is used, and that would cost the connection.
 */
static int grant(struct cmpi *c, const struct via_atomic_request *p, uint64_t *handle)
{
	const unsigned remote = CMPI_ACCESS_REMOTE_READ | CMPI_ACCESS_REMOTE_WRITE | CMPI_ACCESS_REMOTE_ATOMIC;

	if (p->compare & ~(uint64_t)remote || !(p->compare & remote) || !p->operand)
		return CMPI_PARAMETER;
	*handle = via_dreg_granting(c, p->addr, p->operand, remote);
	return *handle ? CMPI_OK : CMPI_PROTECTION;
}

static bool permitted(struct cmpi *c, const struct via_atomic_request *p)
{
	return via_dreg_check(c, p->handle, p->addr, p->size, CMPI_ACCESS_REMOTE_ATOMIC) ||
	       via_dreg_granting(c, p->addr, p->size, CMPI_ACCESS_REMOTE_ATOMIC);
}

/* On this process's own memory. */
static int perform(struct cmpi *c, const struct via_atomic_request *p, uint64_t *old)
{
	void *at = (void *)(uintptr_t)p->addr;

	if (p->op == VIA_OP_KEY)
		return grant(c, p, old);
	if (!sensible(p->op, p->size, p->addr))
		return CMPI_PARAMETER;
	if (!permitted(c, p))
		return CMPI_PROTECTION;
	if (p->size == 4)
		*old = apply_uint32_t(p->op, at, (uint32_t)p->operand, (uint32_t)p->compare);
	else
		*old = apply_uint64_t(p->op, at, p->operand, p->compare);
	return CMPI_OK;
}

static void store_old(void *to, unsigned size, uint64_t old)
{
	uint32_t half = (uint32_t)old;

	if (to && size == 4)
		memcpy(to, &half, sizeof(half));
	else if (to)
		memcpy(to, &old, sizeof(old));
}

/* ---- the asking side ---------------------------------------------------------------------------------------------------- */

static void op_free(struct cmpi *c, struct via_completion *completion)
{
	completion->next = c->free_atomics ? &c->free_atomics->completion : NULL;
	c->free_atomics = (struct via_atomic *)completion;
}

static struct via_atomic *op_new(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	struct via_atomic *op = c->free_atomics;

	if (proc->atomics >= PEER_OPS)
		return NULL;
	if (op)
		c->free_atomics = (struct via_atomic *)op->completion.next;
	else
		op = via_chunk(c, sizeof(*op));
	if (op)
		*op = (struct via_atomic){.completion.free = op_free, .proc = proc};
	return op;
}

/* What is done with the answer. */
struct answered {
	void *old;
	struct cmpi_key *key;
	cmpi_done_fn *done;
	void *arg;
};

static int ask(struct cmpi_proc *proc, struct via_atomic_request *p, const struct answered *answered)
{
	struct cmpi *c = proc->cmpi;
	struct via_atomic *op;
	int err;

	err = via_conn_ready(proc);
	if (via_unlikely(err != CMPI_OK))
		return err;
	op = op_new(proc);
	if (!op)
		return CMPI_AGAIN;
	p->req = via_handle_create(c, VIA_HANDLE_ATOMIC, proc, op);
	if (!p->req || !via_flow_packet(proc, VIA_PKT_ATOMIC_REQUEST, p, sizeof(*p), false)) {
		if (p->req)
			via_handle_destroy(c, p->req);
		op_free(c, &op->completion);
		return CMPI_AGAIN;
	}
	op->completion.done = answered->done;
	op->completion.arg = answered->arg;
	op->old = answered->old;
	op->key = answered->key;
	op->size = p->size;
	proc->atomics++;
	return CMPI_OK;
}

int cmpi_atomic(struct cmpi_proc *proc, enum cmpi_atomic op, unsigned size, uint64_t addr, const struct cmpi_key *key,
                uint64_t operand, uint64_t compare, void *old, cmpi_done_fn *done, void *arg)
{
	struct cmpi *c = proc->cmpi;
	struct via_atomic_request p = {
		.op = (uint8_t)op, .size = (uint8_t)size, .handle = key->handle, .addr = addr, .operand = operand, .compare = compare,
	};
	const struct answered answered = {.old = old, .done = done, .arg = arg};
	uint64_t value = 0;
	int err;

	if (!sensible((unsigned)op, size, addr))
		return CMPI_PARAMETER;
	via_lock(c);
	err = proc->self ? perform(c, &p, &value) : ask(proc, &p, &answered);
	if (err == CMPI_OK)
		VIA_COUNT(c, atomics);
	else if (err == CMPI_AGAIN)
		VIA_COUNT(c, again);
	via_unlock(c);
	if (proc->self && err == CMPI_OK) {
		store_old(old, size, value);
		if (done)
			done(arg, CMPI_OK);
	}
	return err;
}

static void set_handle(struct cmpi_key *key, uint64_t handle)
{
	key->handle = (uint32_t)handle;
	key->check = via_key_check(key);
}

int cmpi_key_ask(struct cmpi_proc *proc, uint64_t addr, size_t len, unsigned access, struct cmpi_key *key, cmpi_done_fn *done, void *arg)
{
	struct cmpi *c = proc->cmpi;
	struct via_atomic_request p = {.op = VIA_OP_KEY, .addr = addr, .operand = len, .compare = access};
	const struct answered answered = {.key = key, .done = done, .arg = arg};
	uint64_t handle = 0;
	int err;

	*key = (struct cmpi_key){.base = addr, .len = len, .access = (uint16_t)access};
	via_lock(c);
	err = proc->self ? perform(c, &p, &handle) : ask(proc, &p, &answered);
	if (err == CMPI_OK)
		VIA_COUNT(c, keys_asked);
	else if (err == CMPI_AGAIN)
		VIA_COUNT(c, again);
	via_unlock(c);
	if (proc->self && err == CMPI_OK) {
		set_handle(key, handle);
		if (done)
			done(arg, CMPI_OK);
	}
	return err;
}

bool via_atomic_reply(struct cmpi_proc *proc, const struct via_atomic_reply *p)
{
	struct cmpi *c = proc->cmpi;
	struct via_atomic *op = via_handle_lookup(c, VIA_HANDLE_ATOMIC, proc, p->req);

	if (!op || p->err >= CMPI_ERR_COUNT)
		return false;
	via_handle_destroy(c, p->req);
	proc->atomics--;
	if (p->err == CMPI_OK && op->key)
		set_handle(op->key, p->old);
	else if (p->err == CMPI_OK)
		store_old(op->old, op->size, p->old);
	via_completion_push(c, &op->completion, (int)p->err);
	return true;
}

void via_atomic_fail(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	struct via_atomic *op;
	uint32_t cursor = 0;

	while (proc->atomics && (op = via_handle_remove(c, VIA_HANDLE_ATOMIC, proc, &cursor)) != NULL) {
		proc->atomics--;
		via_completion_push(c, &op->completion, CMPI_TRANSPORT);
	}
}

/* ---- the target ----------------------------------------------------------------------------------------------------------- */

bool via_atomic_request(struct cmpi_proc *proc, const struct via_atomic_request *p)
{
	struct via_atomic_reply reply = {.req = p->req};

	if (proc->state > VIA_CONN_CLOSING)
		return true; /* nobody to answer */
	reply.err = (uint32_t)perform(proc->cmpi, p, &reply.old);
	via_flow_packet(proc, VIA_PKT_ATOMIC_REPLY, &reply, sizeof(reply), true);
	return true;
}
