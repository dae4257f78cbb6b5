/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's side of the calls about groups: a context, a command, and later a look at the doorbell.  It touches what process
 * and NIC share (the slot's contexts and doorbells) and nothing of the NIC's own memory, so that the NIC may run elsewhere.
 *
 * The last NIC_CALLS contexts of each kind are for these calls.  What is over when the command returns, as short things often are
 * where commands are executed at once, gives its context back and has no number.
 */
#include <string.h>

#include "nicemu/ctl/group.h"
#include "nicemu/engine/daemon.h"
#include "nicemu/engine/remote.h"

enum { FIRST = NIC_CALL_FIRST, RECV = 0x100 /* of an operation's number: its context is a Receive Context */ };

static struct qnix_slot *part(const struct nic *nic)
{
	return &nic_own_slot(nic)->qnix;
}

static union qnix_region *region_of(const struct nic *nic, uint32_t op)
{
	return (op & RECV ? part(nic)->vni.recv_region : part(nic)->vni.send_region) + (op & (QNIX_CONTEXTS - 1));
}

static struct qnix_context *context_of(const struct nic *nic, uint32_t op)
{
	return (op & RECV ? part(nic)->vni.recv : part(nic)->vni.send) + (op & (QNIX_CONTEXTS - 1));
}

static _Atomic uint32_t *bell_of(const struct nic *nic, uint32_t op)
{
	return (op & RECV ? part(nic)->hps.recv_doorbell : part(nic)->hps.send_doorbell) + (op & (QNIX_CONTEXTS - 1));
}

static uint32_t *calls_of(struct nic *nic, uint32_t op)
{
	return &nic->calls[(op & RECV) != 0];
}

/* The pages of a context exist from its first use on. */
static bool backed(struct nic *nic, uint32_t op)
{
	return nic_card_reserve(nic->card, &part(nic)->hps, sizeof(part(nic)->hps)) &&
	       nic_card_reserve(nic->card, part(nic)->vni.send, 2 * sizeof(part(nic)->vni.send)) &&
	       nic_card_reserve(nic->card, region_of(nic, op), sizeof(union qnix_region));
}

/* A free context; false: all are in use. */
static bool take(struct nic *nic, uint32_t kind, uint32_t *op)
{
	uint32_t *calls = calls_of(nic, kind), i = *calls == UINT32_MAX ? NIC_CALLS : (uint32_t)__builtin_ctz(~*calls);

	*op = kind | (FIRST + i);
	if (i == NIC_CALLS || (!(nic->calls_backed[kind != 0] >> i & 1) && !backed(nic, *op)))
		return false;
	nic->calls_backed[kind != 0] |= 1u << i;
	*calls |= 1u << i;
	*context_of(nic, *op) = (struct qnix_context){ .pool = QNIX_NO_POOL, .doorbell_flag = 1 };
	nic_store_relaxed(bell_of(nic, *op), QNIX_POSTED); /* published by the command, Q1 */
	return true;
}

static void give(struct nic *nic, uint32_t op)
{
	uint32_t i = (op & (QNIX_CONTEXTS - 1)) - FIRST;

	*calls_of(nic, op) &= ~(1u << i);
	if (!(op & RECV))
		nic->call_barriers &= ~(1u << i);
	nic_store_relaxed(bell_of(nic, op), QNIX_FREE); /* nobody writes it any more */
}

/* What the operation has come to; it is forgotten when it is over. */
static int outcome(struct nic *nic, uint32_t op, uint32_t *value)
{
	uint32_t bell = nic_load_acquire(bell_of(nic, op)); /* Q2 */

	if ((bell & QNIX_STATE_MASK) == QNIX_POSTED) {
		if (!nic->remote || !nic_remote_lost(nic))
			return NIC_NOT_DONE;
		bell = QNIX_FAILED | (uint32_t)NIC_WHY_NIC << QNIX_LEN_SHIFT; /* of a join: no number, and nothing to leave */
	}
	give(nic, op);
	if (value)
		*value = bell >> QNIX_LEN_SHIFT;
	switch (bell & QNIX_STATE_MASK) {
	case QNIX_DONE:
		return NIC_OK;
	case QNIX_REFUSED:
		return NIC_RESOURCE;
	default:
		return NIC_STATE;
	}
}

static int start(struct nic *nic, uint32_t op, uint32_t command, uint32_t name, uint32_t size)
{
	struct qnix_cmd cmd = { .command = command, .context = op & (QNIX_CONTEXTS - 1), .group = name, .size = size };
	int err = nic->arch->post->command(nic, &cmd);

	if (err)
		give(nic, op);
	return err == NIC_NOT_DONE ? NIC_BUSY : err;
}

/* Each member once, and this process in its place. */
static bool sound(const struct nic *nic, const struct nic_group_args *args)
{
	uint64_t seen[NIC_MAX_SLOTS / 64] = { 0 };

	for (uint32_t i = 0; i < args->size; i++) {
		uint32_t slot = args->slot[i];

		if (slot >= NIC_MAX_SLOTS || seen[slot / 64] >> slot % 64 & 1 || (slot == nic->me) != (i == args->place))
			return false;
		seen[slot / 64] |= (uint64_t)1 << slot % 64;
	}
	return true;
}

/* Likewise, of what may be over at once: it is known by its number only if it is not, or has failed. */
static int begin(struct nic *nic, uint32_t it, uint32_t command, uint32_t *op)
{
	int err = start(nic, it, command, 0, 0);

	if (nic_unlikely(err))
		return err;
	*op = it;
	if ((nic_load_relaxed(bell_of(nic, it)) & QNIX_STATE_MASK) != QNIX_DONE) /* looked at again, as it should be */
		return NIC_OK;
	*op = outcome(nic, it, NULL) == NIC_OK ? NIC_OP_OVER : it;
	return NIC_OK;
}

int nic_group_join(struct nic *nic, const struct nic_group_args *args, uint32_t *op)
{
	uint32_t it;

	if (args->size == 0 || args->size > NIC_MAX_SLOTS || (args->slot && (args->place >= args->size || !sound(nic, args))))
		return NIC_PARAMETER;
	if (!take(nic, 0, &it))
		return NIC_RESOURCE;
	for (uint32_t i = 0; args->slot && i < args->size; i++)
		region_of(nic, it)->descriptor[i] = args->slot[i] | (uint64_t)(args->life ? args->life[i] : 0) << 32;
	if (args->slot) {
		context_of(nic, it)->len = args->size;
		context_of(nic, it)->tag = (uint16_t)args->place;
	}
	*op = it;
	return start(nic, it, QNIX_CMD_JOIN_GROUP, args->name, args->size);
}

/* The operation of a barrier of that group. */
static bool take_barrier(struct nic *nic, uint32_t group, uint32_t *op)
{
	uint32_t i;

	if (!take(nic, 0, op))
		return false;
	i = (*op & (QNIX_CONTEXTS - 1)) - FIRST;
	nic->call_barriers |= 1u << i;
	nic->call_group[i] = group + 1;
	context_of(nic, *op)->group = group + 1;
	return true;
}

/* Cut-through; false: nothing has happened. */
static bool barrier_now(struct nic *nic, uint32_t group, uint32_t *op)
{
	if (!nic->arch->post->at_once || group >= QNIX_GROUP_TAG || !nic_group_has_call(nic, false))
		return false;
	*op = NIC_OP_OVER;
	switch (nic_group_barrier_now(nic, group)) {
	case NIC_OK:
		return true;
	case NIC_NOT_DONE:
		take_barrier(nic, group, op);
		nic_group_barrier_bell(nic, group, *op & (QNIX_CONTEXTS - 1));
		return true;
	default:
		return false;
	}
}

int nic_barrier(struct nic *nic, uint32_t group, uint32_t *op)
{
	uint32_t it;

	if (nic_likely(barrier_now(nic, group, op)))
		return NIC_OK;
	for (uint32_t left = nic->call_barriers; left; left &= left - 1)
		if (nic->call_group[__builtin_ctz(left)] == group + 1)
			return NIC_BUSY;
	if (!take_barrier(nic, group, &it))
		return NIC_RESOURCE;
	return begin(nic, it, QNIX_CMD_BARRIER, op);
}

/* On a NIC where a message inside a command is a command of its own, a short broadcast goes that way. */
static bool brief(const struct nic *nic, uint64_t len)
{
	return !nic->arch->post->by_value && len <= NIC_BCAST_BRIEF;
}

static int send_bcast(struct nic *nic, uint32_t group, const void *buf, uint64_t len, uint32_t *op)
{
	uint32_t it;

	if (!take(nic, 0, &it))
		return NIC_RESOURCE;
	context_of(nic, it)->group = group + 1;
	context_of(nic, it)->len = (uint32_t)len;
	context_of(nic, it)->tag = QNIX_GROUP_TAG;
	if (brief(nic, len)) {
		memcpy(region_of(nic, it)->data, buf, len);
		return begin(nic, it, QNIX_CMD_BROADCAST_SHORT, op);
	}
	nic->arch->xlate->table(nic, (uintptr_t)buf, len, region_of(nic, it)->descriptor, QNIX_REGION);
	return begin(nic, it, QNIX_CMD_BROADCAST, op);
}

static int recv_bcast(struct nic *nic, uint32_t group, uint32_t root, void *buf, uint64_t len, uint32_t *op)
{
	uint32_t it;

	if (!take(nic, RECV, &it))
		return NIC_RESOURCE;
	context_of(nic, it)->group = group + 1;
	context_of(nic, it)->len = (uint32_t)len;
	context_of(nic, it)->tag = QNIX_GROUP_TAG; /* the NIC knows which life of the group's entry it is */
	context_of(nic, it)->process = (struct qnix_name){ QNIX_PORT, (int32_t)root };
	nic->arch->xlate->table(nic, (uintptr_t)buf, len, region_of(nic, it)->descriptor, QNIX_REGION);
	return begin(nic, it, QNIX_CMD_RECEIVE, op);
}

int nic_group_bcast_call(struct nic *nic, uint32_t group, uint32_t root, void *buf, uint64_t len, uint32_t *op)
{
	return root == nic->me ? send_bcast(nic, group, buf, len, op) : recv_bcast(nic, group, root, buf, len, op);
}

int nic_op_test(struct nic *nic, uint32_t op, uint32_t *value)
{
	if (op == NIC_OP_OVER)
		return NIC_OK;
	if ((op & ~(uint32_t)RECV) - FIRST >= NIC_CALLS || !(*calls_of(nic, op) >> ((op & (QNIX_CONTEXTS - 1)) - FIRST) & 1))
		return NIC_PARAMETER;
	return outcome(nic, op, value);
}

bool nic_group_rung(const struct nic *nic)
{
	for (uint32_t kind = 0; kind <= RECV; kind += RECV)
		for (uint32_t left = nic->calls[kind != 0]; left; left &= left - 1)
			if ((nic_load_acquire(bell_of(nic, kind | (FIRST + (uint32_t)__builtin_ctz(left)))) & QNIX_STATE_MASK) != QNIX_POSTED) /* Q2 */
				return true;
	return false;
}

struct qnix_slot *nic_process_interface(struct nic *nic)
{
	return part(nic);
}

int nic_process_look(struct nic *nic)
{
	if (nic->remote)
		nic_daemon_wake(nic->map, false); /* a program may have written the contexts in any way */
	nic_poll(nic);
	return nic->remote && nic_remote_lost(nic) ? NIC_STATE : NIC_OK;
}

uint32_t nic_translate(struct nic *nic, uint64_t addr, uint64_t len, uint64_t *out, uint32_t room)
{
	return nic->arch->xlate->table(nic, addr, len, out, room);
}

/* Nobody asks for the end of it, so it must not be lost: where the Command Queue is full, a pass of the NIC makes room in it. */
int nic_group_leave(struct nic *nic, uint32_t group)
{
	struct qnix_cmd cmd = { .command = QNIX_CMD_LEAVE_GROUP, .context = group };
	int err = nic->arch->post->command(nic, &cmd);

	for (int i = 0; err == NIC_NOT_DONE && i < QNIX_COMMANDS; i++) {
		nic_poll(nic);
		err = nic->arch->post->command(nic, &cmd);
	}
	return err == NIC_NOT_DONE ? NIC_BUSY : err;
}

bool nic_groups_at_once(const struct nic *nic)
{
	return !nic->remote && nic->arch->post->at_once && nic->arch->meet->send_now;
}
