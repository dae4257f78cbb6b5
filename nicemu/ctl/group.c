/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of processes: Join_Group, Barrier, Broadcast, leaving.  A command starts something here and returns; messages of other
 * NICs and passes of this one carry it on, and a doorbell says that it is over.
 *
 * A message names the entry of the Group Table at its destination, and that entry's life, both of which the destination's own
 * New_Group has said: so a message for a group that has been left is known as one, and names may be used again.
 *
 * A member that dies breaks its groups: what is under way in them completes with QNIX_FAILED, and says who it was (NIC_WHY_*).
 * One that leaves says so, since others may wait for it to take what they have sent.
 */
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"

uint32_t nic_group_index(const struct nic *nic, const struct nic_group *g)
{
	return (uint32_t)(g - nic->groups->group);
}

/* Q2: after the data. */
void nic_doorbell(struct nic *nic, bool recv, uint32_t context, uint32_t flag, uint32_t state, uint32_t value)
{
	struct qnix_hps *hps = &nic->slot->qnix.hps;
	_Atomic uint32_t *bell = (recv ? hps->recv_doorbell : hps->send_doorbell) + context % QNIX_CONTEXTS;

	if (!flag)
		return;
	nic_store_release(bell, state | value << QNIX_LEN_SHIFT); /* Q2: pairs with the process's acquire */
	nic->rung = true;
}

static const struct qnix_context *context_of(const struct nic *nic, uint32_t context)
{
	return &nic->slot->qnix.vni.send[context % QNIX_CONTEXTS];
}

void nic_group_busy(struct nic *nic, struct nic_group *g)
{
	if (g->work)
		return;
	g->work = true;
	nic->groups->busy[nic->groups->nbusy++] = (uint16_t)nic_group_index(nic, g);
	nic->group_work++;
	nic->nwork++;
}

static void not_busy(struct nic *nic, struct nic_group *g)
{
	struct nic_groups *all = nic->groups;
	uint32_t i = 0;

	if (!g->work)
		return;
	g->work = false;
	while (&all->group[all->busy[i]] != g)
		i++;
	all->busy[i] = all->busy[--all->nbusy];
	nic->group_work--;
	nic->nwork--;
}

/* ---- failure ----------------------------------------------------------------------------------------------------------- */

uint32_t nic_group_why(const struct nic_group *g)
{
	if (!g || !(g->life & 1) || g->leaving)
		return NIC_WHY_NO_GROUP;
	return g->lost ? NIC_WHY_DIED + g->lost - 1u : g->deserted ? NIC_WHY_LEFT : NIC_WHY_NO_GROUP;
}

const struct nic_group *nic_group_of_tag(const struct nic *nic, uint16_t tag)
{
	const struct nic_group *g = &nic->groups->group[tag % NIC_GROUPS];

	return (g->life & 1) && nic_group_tag(tag, g->life) == tag ? g : NULL;
}

/* ---- completion --------------------------------------------------------------------------------------------------------- */

static void joined(struct nic *nic, struct nic_group *g, uint32_t state)
{
	if (g->ready || !g->mine)
		return;
	g->ready = true;
	g->complete = state == QNIX_DONE;
	if (g->complete && nic->arch->meet->ready)
		nic->arch->meet->ready(nic, g);
	nic_doorbell(nic, false, g->context, g->doorbell, state,
	             nic_group_index(nic, g) | (g->complete ? 0 : nic_group_why(g) << NIC_WHY_SHIFT));
}

static void join_look(struct nic *nic, struct nic_group *g)
{
	if (g->mine && !g->ready && g->count == g->size && g->acks + 1u >= g->size && g->ack == g->ack_end)
		joined(nic, g, QNIX_DONE);
}

static void broken(struct nic *nic, struct nic_group *g);

void nic_group_barrier_over(struct nic *nic, struct nic_group *g, uint32_t state)
{
	if (!g->waiting)
		return;
	g->waiting = false;
	nic_trace(nic, BARRIER_DONE, g->name, g->barrier_context);
	nic_count(nic, barriers, state == QNIX_DONE);
	nic_doorbell(nic, false, g->barrier_context, g->barrier_doorbell, state, state == QNIX_DONE ? 0 : nic_group_why(g));
	if (g->breaks && !g->broken)
		broken(nic, g);
}

static void broken(struct nic *nic, struct nic_group *g)
{
	g->broken = true;
	joined(nic, g, QNIX_FAILED);
	nic_group_barrier_over(nic, g, QNIX_FAILED);
	if (nic->qnix)
		qnix_group_over(nic->qnix, nic_group_index(nic, g), nic_group_tag(nic_group_index(nic, g), g->life));
}

/* ---- sending ------------------------------------------------------------------------------------------------------------ */

static bool tell(struct nic *nic, uint32_t slot, enum qnix_system code, const struct qnix_group_msg *msg)
{
	if (!qnix_system(nic, slot, code, 0, msg, sizeof(*msg)))
		return false;
	nic_count(nic, group_messages, 1);
	return true;
}

bool nic_group_tell(struct nic *nic, const struct nic_group *g, uint32_t place, enum qnix_system code, uint16_t number)
{
	const struct nic_member *m = &g->member[place];
	struct qnix_group_msg msg = { .group = g->name, .size = g->size, .pid = nic_qnix_pid(nic, nic->me), .place = number,
		.table = m->table, .life = m->life };

	return place == g->place || !m->known || m->left || m->slot == nic->me || tell(nic, m->slot, code, &msg);
}

/*
 * Nobody there, nor ever again, or somebody else by now.  Who dies leaves the slot's state as it was: where there is no link,
 * its lock is asked.  A link of an earlier epoch than the member's is about to be found lost.
 */
static bool gone(const struct nic *nic, uint32_t slot, uint32_t epoch)
{
	const struct nic_link *link = nic->link[slot];

	if (link)
		return link->lost || (epoch && (int32_t)(link->epoch - epoch) > 0);
	/* Relaxed: nic_driver_alive looks again. */
	return !nic_driver_alive(nic, slot, epoch ? epoch : nic_load_relaxed(&nic->map->slot[slot].epoch));
}

/* To that life of the slot, and no other. */
static bool tell_life(struct nic *nic, uint32_t slot, uint32_t epoch, enum qnix_system code, const struct qnix_group_msg *msg)
{
	const struct nic_link *link = qnix_link(nic, slot);

	return link && nic_same_life(link->epoch, epoch) && tell(nic, slot, code, msg);
}

/* This NIC's own entry, for others. */
static struct qnix_group_msg own_entry(const struct nic *nic, const struct nic_group *g)
{
	return (struct qnix_group_msg){ .group = g->name, .size = g->size, .pid = nic_qnix_pid(nic, nic->me),
		.place = g->listed ? g->place : NIC_PLACE_ANY, .table = (uint16_t)nic_group_index(nic, g), .life = g->life };
}

/* New_Group goes to the members that the process named, or to every NIC that has a named process. */
static bool tell_new(struct nic *nic, struct nic_group *g, uint32_t i)
{
	struct qnix_group_msg msg = own_entry(nic, g);
	uint32_t slot = g->listed ? g->member[i].slot : i, epoch = g->listed ? g->member[i].epoch : 0;

	if (slot == nic->me || (!g->listed && !(nic->qnix && nic->qnix->peer[i].named && !nic->qnix->peer[i].gone)))
		return true;
	if (tell_life(nic, slot, epoch, QNIX_SYS_NEW_GROUP, &msg))
		return true;
	if (!gone(nic, slot, epoch))
		return false;
	if (g->listed) { /* it died before this NIC had a link with it: nobody else will say so */
		g->lost = (uint16_t)(slot + 1);
		broken(nic, g);
	}
	return true;
}

/* To all who may have an entry with this member. */
static bool tell_left(struct nic *nic, const struct nic_group *g, uint32_t i)
{
	const struct nic_member *m = &g->member[i];
	struct qnix_group_msg msg = own_entry(nic, g);

	msg.place = g->complete;
	if (i == g->place || m->slot == nic->me || m->left || (!g->listed && !m->known))
		return true;
	return tell_life(nic, m->slot, m->epoch, QNIX_SYS_LEAVE_GROUP, &msg) || gone(nic, m->slot, m->epoch);
}

static int send_some(struct nic *nic, struct nic_group *g)
{
	int n = 0;

	for (; g->told < g->told_end && tell_new(nic, g, g->told); g->told++)
		n++;
	if (g->told < g->told_end)
		return n;
	for (; g->ack < g->ack_end && nic_group_tell(nic, g, g->ack, QNIX_SYS_NEW_GROUP_ACK, 0); g->ack++)
		n++;
	for (; g->left < g->left_end && tell_left(nic, g, g->left); g->left++)
		n++;
	return n;
}

static bool all_sent(const struct nic_group *g)
{
	return g->told == g->told_end && g->ack == g->ack_end && g->left == g->left_end;
}

static int run(struct nic *nic, struct nic_group *g)
{
	const struct nic_meet *meet = nic->arch->meet;
	int n = send_some(nic, g);

	join_look(nic, g);
	if (g->ready && !g->broken)
		n += meet->run(nic, g);
	if (g->leaving)
		nic_group_leave_entry(nic, g);
	if (all_sent(g) && !g->leaving && (g->broken || !meet->busy(g)))
		not_busy(nic, g);
	return n;
}

int nic_group_run(struct nic *nic)
{
	struct nic_groups *all = nic->groups;
	int n = 0;

	for (uint32_t i = all->nbusy; i-- > 0;) /* one that is through goes, and the last comes to its place */
		n += run(nic, &all->group[all->busy[i]]);
	return n;
}

bool nic_group_moves(const struct nic *nic)
{
	const struct nic_groups *all = nic->groups; /* NULL where the NIC is elsewhere */
	bool moves = false;

	if (!nic->group_work)
		return false;
	for (uint32_t i = 0; i < all->nbusy && !moves; i++)
		moves = !all_sent(&all->group[all->busy[i]]) || nic->arch->meet->moves(nic, &all->group[all->busy[i]]);
	return moves;
}

/* Only in one group, while the NIC does nothing else: otherwise passes are what comes to all. */
bool nic_group_linger(struct nic *nic, uint32_t cpu, uint32_t looks)
{
	struct nic_groups *all = nic->groups;

	return nic->group_work && all->nbusy == 1 && !nic->npending && !nic->nshared && nic->arch->meet->linger &&
	       nic->arch->meet->linger(&all->group[all->busy[0]], cpu, looks);
}

/* ---- commands ------------------------------------------------------------------------------------------------------------- */

struct nic_group *nic_group_of(struct nic *nic, const struct qnix_cmd *cmd)
{
	struct nic_groups *all = nic->groups;
	uint32_t at = context_of(nic, cmd->context)->group;

	if (at)
		return at <= all->used && (all->group[at - 1].life & 1) && all->group[at - 1].mine ? &all->group[at - 1] : NULL;
	for (uint32_t i = 0; i < all->used; i++) {
		struct nic_group *g = &all->group[i];

		if ((g->life & 1) && g->mine && !g->leaving && g->name == cmd->group)
			return g;
	}
	return NULL;
}

/* The members that the process names; a slot that has another epoch by now is somebody else's. */
static void name_members(struct nic_group *g, const uint64_t *listed)
{
	for (uint32_t i = 0; i < g->size; i++)
		if (!g->member[i].known) {
			g->member[i].slot = (uint16_t)(listed[i] % NIC_MAX_SLOTS);
			g->member[i].epoch = (uint32_t)(listed[i] >> 32);
		}
}

/* The process does not join after all; the entry stays for what others have said. */
static void stay_out(struct nic_group *g)
{
	uint32_t place = g->place;

	g->mine = false;
	g->place = NIC_PLACE_ANY;
	nic_group_forget(g, &g->member[place]);
}

static int join(struct nic *nic, const struct qnix_cmd *cmd)
{
	struct qnix_context c = *context_of(nic, cmd->context); /* copied once */
	struct nic_member me = { .slot = (uint16_t)nic->me, .pid = nic_qnix_pid(nic, nic->me),
		.epoch = nic_load_relaxed(&nic->slot->epoch) }; /* own word */
	uint16_t place = c.len ? c.tag : NIC_PLACE_ANY;
	bool sound = cmd->size && cmd->size <= NIC_MAX_SLOTS && (!c.len || place < cmd->size);
	uint64_t listed[NIC_MAX_SLOTS];
	struct nic_group *g;

	if (sound && c.len) /* the process's memory: copied once */
		memcpy(listed, nic->slot->qnix.vni.send_region[cmd->context % QNIX_CONTEXTS].descriptor, cmd->size * sizeof(listed[0]));
	g = sound ? nic_group_enter(nic, cmd->group, cmd->size, place, &me, c.len ? listed : NULL) : NULL;

	if (g && nic->arch->meet->join && nic->arch->meet->join(nic, g) != NIC_OK) {
		stay_out(g);
		g = NULL;
	}
	if (!g) {
		nic_doorbell(nic, false, cmd->context, 1, QNIX_REFUSED, 0);
		return NIC_OK;
	}
	nic_trace(nic, GROUP_1, g->name, cmd->context);
	g->context = (uint16_t)(cmd->context % QNIX_CONTEXTS);
	g->doorbell = (uint16_t)c.doorbell_flag;
	g->listed = c.len != 0;
	if (g->listed)
		name_members(g, listed);
	g->member[g->place].table = (uint16_t)nic_group_index(nic, g);
	g->member[g->place].life = g->life;
	g->told_end = g->listed ? (uint16_t)g->size : NIC_MAX_SLOTS;
	nic_trace(nic, GROUP_3, g->name, g->count);
	nic_group_busy(nic, g);
	run(nic, g);
	nic_trace(nic, GROUP_2, g->name, g->told);
	return NIC_OK;
}

static int barrier(struct nic *nic, const struct qnix_cmd *cmd)
{
	struct nic_group *g = nic_group_of(nic, cmd);

	if (g && g->waiting)
		return NIC_NOT_DONE; /* one at a time: the next one waits its turn */
	if (!g || !g->ready || g->broken || g->leaving || g->deserted) {
		nic_doorbell(nic, false, cmd->context, 1, QNIX_FAILED, nic_group_why(g));
		return NIC_OK;
	}
	g->waiting = true;
	g->barriers++;
	g->barrier_context = (uint16_t)cmd->context;
	g->barrier_doorbell = (uint16_t)context_of(nic, cmd->context)->doorbell_flag;
	nic->arch->meet->barrier(nic, g);
	return NIC_OK;
}

static int broadcast(struct nic *nic, const struct qnix_cmd *cmd)
{
	struct nic_group *g = nic_group_of(nic, cmd);

	if (g && g->ready && !g->broken && !g->leaving && !g->deserted && nic->arch->meet->send)
		nic->arch->meet->send(nic, g, cmd->context);
	else
		nic_doorbell(nic, false, cmd->context, 1, QNIX_FAILED, nic_group_why(g));
	return NIC_OK;
}

/* The receive of a broadcast: the context's process names the sender's port. */
static int expect(struct nic *nic, const struct qnix_cmd *cmd)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.recv[cmd->context % QNIX_CONTEXTS];
	uint32_t at = c->group, place;
	struct nic_group *g = at && at <= nic->groups->used ? &nic->groups->group[at - 1] : NULL;

	if (g && (g->life & 1) && g->ready && !g->broken && !g->leaving && nic->arch->meet->recv) {
		place = nic_group_place(g, (uint32_t)c->process.pi);
		if (place < g->size && place != g->place) {
			nic->arch->meet->recv(nic, g, cmd->context, place);
			return NIC_OK;
		}
	}
	nic_doorbell(nic, true, cmd->context, 1, QNIX_FAILED, nic_group_why(g));
	return NIC_OK;
}

static int leave(struct nic *nic, const struct qnix_cmd *cmd)
{
	struct nic_group *g = &nic->groups->group[cmd->context % NIC_GROUPS];

	if (!(g->life & 1) || !g->mine || g->leaving)
		return NIC_OK;
	g->leaving = true;
	if (nic->arch->meet->end)
		nic->arch->meet->end(nic, g); /* before others hear that nothing is taken any more */
	broken(nic, g);
	g->left_end = (uint16_t)g->size;
	nic_group_busy(nic, g);
	run(nic, g);
	return NIC_OK;
}

int nic_group_execute(struct nic *nic, const struct qnix_cmd *cmd)
{
	switch (nic_load_relaxed(&cmd->command)) { /* a copy of the caller's */
	case QNIX_CMD_JOIN_GROUP:
		return join(nic, cmd);
	case QNIX_CMD_BARRIER:
		return barrier(nic, cmd);
	case QNIX_CMD_BROADCAST:
	case QNIX_CMD_BROADCAST_SHORT:
		return broadcast(nic, cmd);
	case QNIX_CMD_RECEIVE:
		return expect(nic, cmd);
	case QNIX_CMD_LEAVE_GROUP:
		return leave(nic, cmd);
	default:
		return NIC_PARAMETER;
	}
}

/* ---- messages ---------------------------------------------------------------------------------------------------------------- */

static void new_group(struct nic *nic, uint32_t node, const struct qnix_group_msg *msg)
{
	struct nic_member m = { .slot = (uint16_t)node, .pid = msg->pid, .table = msg->table, .life = msg->life,
		.epoch = nic->link[node % NIC_MAX_SLOTS] ? nic->link[node % NIC_MAX_SLOTS]->epoch : 0 };
	struct nic_group *g;

	if (msg->size == 0 || msg->size > NIC_MAX_SLOTS || (msg->place != NIC_PLACE_ANY && msg->place >= msg->size)) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	g = nic_group_enter(nic, msg->group, msg->size, msg->place, &m, NULL);
	if (!g) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	nic_trace(nic, GROUP_3, g->name, g->count);
	if (g->work)
		run(nic, g);
}

/* A member has left: it takes nothing more. */
static void leave_group(struct nic *nic, uint32_t node, const struct qnix_group_msg *msg)
{
	struct nic_groups *all = nic->groups;

	for (uint32_t i = 0; i < all->used; i++) {
		struct nic_group *g = &all->group[i];
		uint32_t place = g->life & 1 && g->name == msg->group ? nic_group_place(g, node) : g->size;
		struct nic_member *m = &g->member[place % NIC_MAX_SLOTS];

		if (place == g->size || m->table != msg->table || m->life != msg->life)
			continue;
		if (!g->mine || (!g->ready && !msg->place)) {
			nic_group_forget(g, m);
			return;
		}
		m->left = g->deserted = true;
		if (nic->arch->meet->left)
			nic->arch->meet->left(nic, g, place);
		return;
	}
}

static struct nic_group *addressed(struct nic *nic, uint16_t table, uint16_t life)
{
	struct nic_group *g = &nic->groups->group[table % NIC_GROUPS];

	return g->life == life && (life & 1) ? g : NULL;
}

uint32_t nic_group_place(const struct nic_group *g, uint32_t slot)
{
	uint32_t i = 0;

	while (i < g->size && !(g->member[i].known && g->member[i].slot == slot))
		i++;
	return i;
}

static void group_message(struct nic *nic, uint32_t node, enum qnix_system code, const struct qnix_group_msg *msg)
{
	struct nic_group *g = addressed(nic, msg->table, msg->life);
	uint32_t place;

	if (!g) {
		nic_count(nic, stale_packets, 1);
		return;
	}
	place = nic_group_place(g, node);
	if (place == g->size)
		return;
	if (code == QNIX_SYS_BARRIER) {
		nic_group_barrier_in(nic, g, place, msg->place);
		return;
	}
	if (g->member[place].acked)
		return;
	g->member[place].acked = true;
	g->acks++;
	nic_trace(nic, GROUP_ACK, g->name, g->acks);
	join_look(nic, g);
}

void nic_group_in(struct nic *nic, uint32_t node, enum qnix_system code, const struct qnix_group_msg *msg)
{
	if (!nic->groups) /* the NIC is being closed */
		return;
	if (code == QNIX_SYS_NEW_GROUP)
		new_group(nic, node, msg);
	else if (code == QNIX_SYS_LEAVE_GROUP)
		leave_group(nic, node, msg);
	else
		group_message(nic, node, code, msg);
}

/* ---- leaving ------------------------------------------------------------------------------------------------------------------- */

void nic_group_leave_entry(struct nic *nic, struct nic_group *g)
{
	if (!all_sent(g) || nic->arch->meet->owes(nic, g))
		return;
	if (nic->arch->meet->leave)
		nic->arch->meet->leave(nic, g);
	not_busy(nic, g);
	g->mine = false;
	g->life++; /* even: free, and messages for it are stale */
}

bool nic_group_takes(const struct nic *nic, uint16_t tag)
{
	const struct nic_group *g = nic_group_of_tag(nic, tag);

	return g && g->mine && !g->broken && !g->leaving;
}

/* Named as a member, and not heard of yet. */
static bool awaited(const struct nic_group *g, uint32_t slot)
{
	for (uint32_t i = 0; g->mine && !g->ready && g->listed && i < g->size; i++)
		if (g->member[i].slot == slot)
			return true;
	return false;
}

/* It cannot do anything together any more. */
static void lose(struct nic *nic, struct nic_group *g, uint32_t slot, uint32_t place)
{
	if (g->mine) {
		g->lost = (uint16_t)(slot + 1);
		if (nic->arch->meet->lost && g->ready && !g->broken)
			nic->arch->meet->lost(nic, g);
		g->member[place].left = true;
		if (g->waiting && nic->arch->meet->came && nic->arch->meet->came(g, place))
			g->breaks = true; /* who has seen the end of a barrier may go before others have */
		else
			broken(nic, g);
	} else if (--g->count == 0) {
		g->life++;
	}
	g->member[place].known = g->mine;
}

/* Every group with a process of that slot. */
void nic_group_lost(struct nic *nic, uint32_t slot)
{
	struct nic_groups *all = nic->groups;

	for (uint32_t i = 0; all && i < all->used; i++) {
		struct nic_group *g = &all->group[i];
		uint32_t place = g->life & 1 ? nic_group_place(g, slot) : g->size;

		if (g->life & 1 && awaited(g, slot)) {
			g->lost = (uint16_t)(slot + 1);
			broken(nic, g);
		}
		if ((g->life & 1) && place < g->size)
			lose(nic, g, slot, place);
	}
}
