/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cut-through, where commands are executed at once: a barrier or broadcast that is over within the call has no context, no command and no
 * doorbell.  What is not is group_call.c's.
 */
#include "nicemu/ctl/group.h"

/* The group, if its members can do something together. */
static inline struct nic_group *sound_group(struct nic *nic, uint32_t group)
{
	struct nic_group *g = &nic->groups->group[group % NIC_GROUPS];

	return nic_likely((g->life & 1) && g->ready && !g->broken && !g->leaving && !g->deserted) ? g : NULL;
}

int nic_group_barrier_now(struct nic *nic, uint32_t group)
{
	struct nic_group *g = sound_group(nic, group);

	if (nic_unlikely(!g || g->waiting))
		return NIC_STATE;
	g->waiting = true;
	g->barriers++;
	g->barrier_doorbell = 0;
	nic->arch->meet->barrier(nic, g);
	return nic_likely(!g->waiting) ? NIC_OK : NIC_NOT_DONE;
}

void nic_group_barrier_bell(struct nic *nic, uint32_t group, uint32_t context)
{
	struct nic_group *g = &nic->groups->group[group % NIC_GROUPS];

	g->barrier_context = (uint16_t)context;
	g->barrier_doorbell = 1;
}

/* False: nothing has happened, or, of one that is received, a part, and a command is to follow that receives the rest. */
static inline bool bcast_now(struct nic *nic, uint32_t group, uint32_t root, uint64_t bus, uint32_t len)
{
	const struct nic_meet *meet = nic->arch->meet;
	struct nic_group *g = sound_group(nic, group);
	uint32_t place;

	if (nic_unlikely(!g || !meet->send_now))
		return false;
	if (root == nic->me)
		return meet->send_now(nic, g, bus, len);
	place = g->heard; /* mostly the same again */
	if (nic_unlikely(place >= g->size || g->member[place].slot != root || !g->member[place].known))
		place = nic_group_place(g, root);
	g->heard = (uint16_t)place;
	return place < g->size && meet->recv_now(nic, g, place, bus, len);
}

int nic_bcast(struct nic *nic, uint32_t group, uint32_t root, void *buf, uint64_t len, uint32_t *op)
{
	if (len > NIC_BCAST_MAX || root >= NIC_MAX_SLOTS || group >= QNIX_GROUP_TAG)
		return NIC_PARAMETER;
	if (nic_unlikely(!nic->arch->post->at_once || !nic_group_has_call(nic, root != nic->me) ||
	                 !bcast_now(nic, group, root, (uintptr_t)buf, (uint32_t)len)))
		return nic_group_bcast_call(nic, group, root, buf, len, op);
	*op = NIC_OP_OVER;
	return NIC_OK;
}
