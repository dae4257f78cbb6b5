/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QNIX, the device driver and its half of the NIC: process registration in six steps and de-registration in five, the Driver
 * Command Queue, the Name Table.  What a slot is and who may have it is driver.c's, for every architecture; here its Virtual
 * Network Interface is set up, and the other NICs learn of its process.
 *
 * Opening a NIC registers a process without an application: nobody needs its name, so nobody is asked.  A process that names
 * itself (nic_process_name) posts New_Process again, and is registered when every NIC that has a named process knows it and
 * all of its group are known everywhere.
 *
 * A process that dies at any instruction leaves its record in the card as it is: its slot is dead then, which everybody looks
 * at first, and whoever takes the slot zeroes it.  The other NICs drop it when their watch finds the slot dead.
 */
#include <string.h>

#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "nicemu/engine/remote.h"
#include "nicemu/util/log.h"

enum { RETELL = 4096 }; /* looks between two New_Process to a NIC that has not answered */

/* ---- the host's side of the Driver Command Queue ----------------------------------------------------------------------------- */

/* Returns the entry, whose doorbell will be set; -1: the queue is full. */
static int post(struct qnix_driver *d, const struct qnix_driver_cmd *cmd)
{
	uint32_t i = d->tail & (QNIX_DRIVER_COMMANDS - 1);
	struct qnix_driver_cmd *at = &d->command[i];

	/* Acquire: pairs with the release in returned_head; up to seven more may be free. */
	if (d->tail - nic_load_acquire(&d->head) >= QNIX_DRIVER_COMMANDS)
		return -1;
	nic_store_relaxed(&d->doorbell[i], QNIX_POSTED); /* before the command, Q1 */
	at->name = cmd->name;
	at->group = cmd->group;
	at->size = cmd->size;
	at->pid = cmd->pid;
	at->index = cmd->index;
	nic_store_release(&at->command, nic_load_relaxed(&cmd->command)); /* Q1; the copy is the caller's */
	d->tail++;
	return (int)i;
}

static int post_new_process(struct qnix *q, const struct qnix_name *name, uint32_t group, uint32_t size)
{
	struct qnix_driver_cmd cmd = { .command = QNIX_DRV_NEW_PROCESS, .name = *name, .group = group, .size = size, .pid = q->pte.pid,
		.index = q->pte.index };

	return post(&qnix_slot_of(q)->driver, &cmd);
}

static bool rung(const struct qnix *q, int entry)
{
	/* Acquire: pairs with the release in ring. */
	return nic_load_acquire(&qnix_slot_of(q)->driver.doorbell[entry]) == QNIX_DONE;
}

/* The NIC's side runs here, too.  False: the command is not there any more, since others can write there. */
static bool carried_out(struct qnix *q, int entry)
{
	uint32_t left = QNIX_DRIVER_COMMANDS;

	while (!rung(q, entry))
		if (!left-- || !qnix_driver_run(q))
			return false;
	return true;
}

/* ---- registration -------------------------------------------------------------------------------------------------------------- */

/* Steps 3 and 4: the interface can be written, and the page that process and NIC share says where its parts are. */
static void map_interface(struct qnix *q)
{
	struct qnix_slot *s = qnix_slot_of(q);
	uint64_t base = (uintptr_t)q->nic->map;

	nic_trace(q->nic, REGISTER_3, q->pte.index, 0);
	memset(&s->hps, 0, sizeof(s->hps)); /* access points at the beginning, doorbells Free */
	s->hps.command_queue = (uintptr_t)s->vni.command - base;
	s->hps.send_contexts = (uintptr_t)s->vni.send - base;
	s->hps.recv_contexts = (uintptr_t)s->vni.recv - base;
	s->hps.context_region = (uintptr_t)s->vni.send_region - base;
	s->hps.buffer_pool = (uintptr_t)s->vni.pool - base;
	nic_trace(q->nic, REGISTER_4, q->pte.index, 0);
}

/* Step 5. */
static void fill_entry(struct qnix *q)
{
	struct qnix_slot *s = qnix_slot_of(q);

	q->pte.doorbell.send = s->hps.send_doorbell;
	q->pte.doorbell.recv = s->hps.recv_doorbell;
	q->pte.command_queue.process_head = &s->hps.command_head;
	q->pte.vni.send = s->vni.send;
	q->pte.vni.recv = s->vni.recv;
	q->pte.vni.send_region = s->vni.send_region;
	q->pte.vni.recv_region = s->vni.recv_region;
	q->pte.vni.pool = s->vni.pool;
	nic_trace(q->nic, REGISTER_5, q->pte.index, q->pte.pid);
}

int qnix_register(struct nic *nic)
{
	struct qnix *q = nic->qnix;
	struct qnix_slot *s = qnix_slot_of(q);
	const struct qnix_name nobody = { 0, (int32_t)nic->me };
	int entry;

	if (!nic_card_reserve(nic->card, s, offsetof(struct qnix_slot, vni.pool)))
		return NIC_RESOURCE;
	memset(&s->driver, 0, sizeof(s->driver)); /* a daemon may have died here */
	q->driver_head = q->driver_consecutive = 0;
	q->pte.index = (uint16_t)nic->me;
	q->pte.pid = nic_qnix_pid(nic, nic->me);
	nic_store_release(&s->driver.flag, (uint32_t)nic_load_relaxed(&nic->slot->pid)); /* step 1; read by tools, alone */
	nic_trace(nic, REGISTER_1, q->pte.index, q->pte.pid);
	q->epoch_seen = nic_load_relaxed(&nic->map->hdr.nic_epoch) - 1; /* look around at once */
	entry = post_new_process(q, &nobody, 0, 0);
	nic_trace(nic, REGISTER_2, q->pte.index, q->pte.pid);
	map_interface(q);
	fill_entry(q);
	if (!carried_out(q, entry)) /* step 6: no other NIC is asked, so it takes one look of this one */
		return nic_fail(NIC_STATE, "the command with which process slot %u registers is gone: somebody else writes there", nic->me);
	nic_trace(nic, REGISTER_6, q->pte.index, 0);
	return NIC_OK;
}

/* qx_init's part: named, and in a group of `size`; nic_process_named says when it is over. */
int nic_process_name(struct nic *nic, int32_t ai, int32_t pi, uint32_t group, uint32_t size)
{
	struct qnix *q = nic->qnix;
	struct qnix_name name = { ai, pi };

	if (nic->remote)
		return nic_remote_name(nic, ai, pi, group, size);
	if (!q)
		return NIC_STATE;
	if (ai == QNIX_PORT || ai == 0 || size == 0 || size > NIC_MAX_SLOTS)
		return NIC_PARAMETER;
	if (q->registration.waiting || nic_load_relaxed(&qnix_slot_of(q)->driver.named)) /* own word */
		return NIC_BUSY;
	if (!nic_card_reserve(nic->card, qnix_slot_of(q), sizeof(struct qnix_slot)))
		return NIC_RESOURCE;
	nic_trace(nic, REGISTER_2, q->pte.index, q->pte.pid);
	return post_new_process(q, &name, group, size) < 0 ? NIC_RESOURCE : NIC_OK;
}

int nic_process_named(struct nic *nic)
{
	struct qnix *q = nic->qnix;
	struct nic_group *g;

	if (nic->remote)
		return nic_remote_number(nic, NIC_CALL_NAMED, 0);
	if (!q)
		return NIC_STATE;
	if (q->registration.refused)
		return NIC_RESOURCE;
	g = q->registration.group ? &nic->groups->group[q->registration.group - 1] : NULL;
	if (q->registration.waiting || !nic_load_relaxed(&qnix_slot_of(q)->driver.named)) /* own word */
		return g && g->broken ? NIC_STATE : NIC_NOT_DONE;
	return NIC_OK;
}

/* ---- the NIC's side: New_Process ------------------------------------------------------------------------------------------------- */

static void ring(struct qnix *q, uint32_t entry)
{
	nic_store_release(&qnix_slot_of(q)->driver.doorbell[entry], QNIX_DONE); /* pairs with rung */
	nic_trace(q->nic, DRIVER_DOORBELL, entry, 0);
}

static void sched_insert(struct qnix_sched *s, struct qnix *q)
{
	q->sched = s;
	s->users++;
	if (!s->packets) {
		q->next = q->prev = q;
		s->packets = s->commands = s->driver = q;
		return;
	}
	q->next = s->packets;
	q->prev = s->packets->prev;
	q->prev->next = q;
	q->next->prev = q;
}

static void sched_remove(struct qnix *q)
{
	struct qnix_sched *s = q->sched;
	struct qnix *next = q->next == q ? NULL : q->next;

	if (!q->next)
		return;
	q->prev->next = q->next;
	q->next->prev = q->prev;
	s->packets = s->packets == q ? next : s->packets;
	s->commands = s->commands == q ? next : s->commands;
	s->driver = s->driver == q ? next : s->driver;
	q->next = q->prev = NULL;
	s->users--;
}

void qnix_sched_join(struct nic *to, struct nic *nic)
{
	struct qnix_sched *before = nic->qnix->sched;

	sched_remove(nic->qnix);
	qnix_sched_put(before);
	sched_insert(to->qnix->sched, nic->qnix);
}

static void name_add(struct qnix *q, uint32_t node, const struct qnix_name *name, uint16_t pid)
{
	struct qnix_peer *p = &q->peer[node];

	if (p->named && p->name.ai == name->ai && p->name.pi == name->pi && p->pid == pid)
		return;
	qnix_rx_forget(q, node);
	*p = (struct qnix_peer){ .name = *name, .pid = pid, .named = true };
	nic_trace(q->nic, NEW_PROCESS_IN, node, pid);
}

/* What the NIC of a process that was registered before says in the card: this NIC was not there to hear its New_Process. */
static bool read_record(struct qnix *q, uint32_t node)
{
	struct nic_slot *s = &q->nic->map->slot[node];
	struct qnix_driver *d = &s->qnix.driver;
	struct nic_member m = { .slot = (uint16_t)node };
	uint32_t group, size;

	/* Acquire: pairs with registration and with publish. */
	if (node == q->nic->me || nic_load_acquire(&s->state) != NIC_SLOT_LIVE || !nic_load_acquire(&d->named) ||
	    !qnix_link(q->nic, node))
		return false;
	m.pid = d->pid;
	m.table = d->table;
	m.life = d->life;
	name_add(q, node, &d->name, m.pid);
	group = d->group;
	size = d->size; /* copied once */
	if (size && size <= NIC_MAX_SLOTS)
		nic_group_enter(q->nic, group, size, NIC_PLACE_ANY, &m, NULL);
	return true;
}

/* Steps 4 and 5 of New_Process: in the own tables. */
static bool enter_own(struct qnix *q, const struct qnix_driver_cmd *cmd)
{
	struct nic_member me = { .slot = (uint16_t)q->nic->me, .pid = cmd->pid };
	struct nic_group *g = nic_group_enter(q->nic, cmd->group, cmd->size, NIC_PLACE_ANY, &me, NULL);

	if (!g)
		return false;
	g->member[g->place].table = (uint16_t)nic_group_index(q->nic, g);
	g->member[g->place].life = g->life;
	g->doorbell = 0;
	q->registration.group = nic_group_index(q->nic, g) + 1;
	name_add(q, q->nic->me, &cmd->name, cmd->pid);
	return true;
}

/*
 * The record says that the process is there; then the NIC looks who else is, and how many slots there are.  Of two that do this
 * at the same time at least one sees the other (the fences below meet), and that one tells it.
 */
static void publish(struct qnix *q, const struct qnix_driver_cmd *cmd)
{
	struct qnix_driver *d = &qnix_slot_of(q)->driver;
	const struct nic_group *g = &q->nic->groups->group[q->registration.group - 1];

	d->name = cmd->name;
	d->group = cmd->group;
	d->size = cmd->size;
	d->pid = cmd->pid;
	d->table = (uint16_t)(q->registration.group - 1);
	d->life = g->life;
	nic_store_release(&d->named, 1); /* pairs with read_record */
	atomic_thread_fence(memory_order_seq_cst); /* pairs with itself in the other process */
}

static void new_process(struct qnix *q, uint32_t entry, const struct qnix_driver_cmd *cmd)
{
	struct nic_group *g;
	uint32_t used;

	if (cmd->name.ai == 0) {
		if (!q->next)
			sched_insert(q->sched, q); /* step 3 */
		ring(q, entry);
		return;
	}
	q->registration = (struct qnix_registration){ .waiting = true, .entry = entry };
	if (!enter_own(q, cmd)) {
		q->registration.waiting = false;
		q->registration.refused = true;
		ring(q, entry);
		return;
	}
	publish(q, cmd);
	used = nic_load_acquire(&q->nic->map->hdr.used); /* pairs with registration; behind the fence, as the records are */
	for (uint32_t i = 0; i < used && i < NIC_MAX_SLOTS; i++) {
		q->peer[i].told = q->peer[i].acked = false;
		q->registration.nodes += read_record(q, i);
	}
	g = &q->nic->groups->group[q->registration.group - 1];
	g->told_end = NIC_MAX_SLOTS; /* New_Group goes with it */
	nic_group_busy(q->nic, g);
	qnix_registration_look(q);
}

/* Step 2: New_Process to those that have to know; step 1: over when all have answered and the group is complete. */
void qnix_registration_look(struct qnix *q)
{
	struct qnix_registration *r = &q->registration;
	struct qnix_process_msg msg = { .name = q->peer[q->nic->me].name, .pid = q->pte.pid };
	const struct nic_group *g = &q->nic->groups->group[r->group - 1];
	bool again = ++r->told % RETELL == 0;

	if (!r->waiting)
		return;
	r->nodes = r->acks = 0;
	for (uint32_t i = 0; i < NIC_MAX_SLOTS; i++) {
		struct qnix_peer *p = &q->peer[i];

		if (i == q->nic->me || !p->named || p->gone)
			continue;
		if (!p->acked && (!p->told || again))
			p->told = qnix_system(q->nic, i, QNIX_SYS_NEW_PROCESS, 0, &msg, sizeof(msg));
		r->nodes++;
		r->acks += p->acked;
	}
	if (r->acks < r->nodes || !g->ready || g->broken)
		return;
	r->waiting = false;
	ring(q, r->entry);
	nic_trace(q->nic, REGISTER_6, q->pte.index, 0);
}

/* ---- the NIC's side: Delete_Process ------------------------------------------------------------------------------------------------ */

static void delete_process(struct qnix *q, uint32_t entry, const struct qnix_driver_cmd *cmd)
{
	struct qnix_process_msg msg = { .name = cmd->name, .pid = cmd->pid };

	/* Who cannot be told for lack of room finds the slot free. */
	for (uint32_t i = 0; i < NIC_MAX_SLOTS; i++)
		if (i != q->nic->me && q->peer[i].named && !q->peer[i].gone && nic_driver_link_now(q->nic, i, nic_load_relaxed(&q->nic->map->slot[i].epoch))) /* compared there */
			qnix_system(q->nic, i, QNIX_SYS_DELETE_PROCESS, 0, &msg, sizeof(msg));
	sched_remove(q);
	q->peer[q->nic->me].named = false;
	ring(q, entry);
}

/* ---- the Driver Command Queue -------------------------------------------------------------------------------------------------------- */

/* Every eighth command the driver learns how far the NIC is. */
static void returned_head(struct qnix *q)
{
	if (++q->driver_consecutive % QNIX_HEAD_EVERY)
		return;
	nic_store_release(&qnix_slot_of(q)->driver.head, q->driver_head); /* pairs with post */
	nic_trace(q->nic, DRIVER_HEAD, q->driver_head, 0);
}

int qnix_driver_run(struct qnix *q)
{
	uint32_t entry = q->driver_head & (QNIX_DRIVER_COMMANDS - 1);
	struct qnix_driver_cmd *at = &qnix_slot_of(q)->driver.command[entry], cmd;
	uint32_t code = nic_load_acquire(&at->command); /* Q1 */

	if (nic_likely(!code)) {
		if (nic_unlikely(q->registration.waiting))
			qnix_registration_look(q);
		return 0;
	}
	memcpy(&cmd, at, sizeof(cmd));
	nic_trace(q->nic, DRIVER_COMMAND, code, cmd.pid);
	nic_store_relaxed(&at->command, 0); /* the entry is empty; published by the head */
	q->driver_head++;
	returned_head(q);
	if (code == QNIX_DRV_NEW_PROCESS)
		new_process(q, entry, &cmd);
	else
		delete_process(q, entry, &cmd);
	return 1;
}

bool qnix_driver_moves(const struct qnix *q)
{
	uint32_t entry = q->driver_head & (QNIX_DRIVER_COMMANDS - 1);

	return q->registration.waiting || nic_load_acquire(&qnix_slot_of(q)->driver.command[entry].command); /* Q1 */
}

/* ---- de-registration ------------------------------------------------------------------------------------------------------------------- */

void qnix_deregister(struct nic *nic)
{
	struct qnix *q = nic->qnix;
	struct qnix_driver *d = &qnix_slot_of(q)->driver;
	struct qnix_driver_cmd cmd = { .command = QNIX_DRV_DELETE_PROCESS, .name = q->peer[nic->me].name, .pid = q->pte.pid,
		.index = q->pte.index };
	int entry;

	if (!q->pte.pid)
		return; /* there was no room to register it */
	q->pte.pid = 0; /* step 1: not scheduled any more */
	nic_store_release(&d->named, 0); /* pairs with read_record */
	nic_trace(nic, DEREGISTER_1, q->pte.index, cmd.pid);
	entry = post(d, &cmd);
	nic_trace(nic, DEREGISTER_2, q->pte.index, cmd.pid);
	nic_trace(nic, DEREGISTER_3, q->pte.index, 0); /* the pages go with the slot, when its next owner zeroes it */
	nic_trace(nic, DEREGISTER_4, q->pte.index, 0);
	if (entry >= 0)
		carried_out(q, entry);
	sched_remove(q); /* whoever has rung */
	nic_store_release(&d->flag, 0); /* step 5 */
	nic_trace(nic, DEREGISTER_5, q->pte.index, 0);
}

/* ---- what other NICs say ------------------------------------------------------------------------------------------------------------------ */

const struct qnix_peer *qnix_name_find(const struct qnix *q, const struct qnix_name *name, uint32_t *node)
{
	const struct qnix_peer *found = NULL;

	if (name->ai == QNIX_PORT) {
		*node = (uint32_t)name->pi;
		return *node < NIC_MAX_SLOTS ? &q->peer[*node] : NULL;
	}
	for (uint32_t i = 0; i < NIC_MAX_SLOTS; i++) {
		const struct qnix_peer *p = &q->peer[i];

		if (!p->named || p->name.ai != name->ai || p->name.pi != name->pi || (found && p->gone))
			continue;
		*node = i;
		found = p;
		if (!p->gone) /* who has gone may have a successor of the same name */
			break;
	}
	return found;
}

void qnix_new_process_in(struct qnix *q, uint32_t node, const struct qnix_process_msg *msg)
{
	struct qnix_process_msg ack = *msg;

	name_add(q, node, &msg->name, msg->pid);
	qnix_system(q->nic, node, QNIX_SYS_NEW_PROCESS_ACK, 0, &ack, sizeof(ack)); /* no room: it will tell again */
}

void qnix_new_process_ack_in(struct qnix *q, uint32_t node, const struct qnix_process_msg *msg)
{
	if (msg->pid != q->pte.pid || q->peer[node].acked)
		return;
	q->peer[node].acked = true;
	nic_trace(q->nic, NEW_PROCESS_ACK, node, q->registration.acks + 1);
}

void qnix_delete_process_in(struct qnix *q, uint32_t node, const struct qnix_process_msg *msg)
{
	if (!q->peer[node].named || q->peer[node].pid != msg->pid)
		return;
	nic_trace(q->nic, DELETE_PROCESS_IN, node, msg->pid);
	q->peer[node].gone = true;
	qnix_tx_lost(q, node);
	qnix_rx_lost(q, node);
	nic_group_lost(q->nic, node);
}

void qnix_driver_lost(struct qnix *q, uint32_t node)
{
	q->peer[node].gone = q->peer[node].named;
}
