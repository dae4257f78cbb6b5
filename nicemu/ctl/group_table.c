/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Group Table: made when the NIC is opened, its memory touched when a group is used.  An entry comes to be when this process joins, or
 * another one says that it has, whichever is first; it is gone when nobody is in it any more, and its next life has another number.
 */
#include <stdlib.h>
#include <string.h>

#include "nicemu/ctl/group.h"

int nic_groups_create(struct nic *nic)
{
	nic->groups = calloc(1, sizeof(*nic->groups));
	if (!nic->groups)
		return NIC_RESOURCE;
	nic->groups->direct = strcmp(nic_param_str("bcast_direct"), "off") != 0;
	return NIC_OK;
}

void nic_groups_destroy(struct nic *nic)
{
	for (uint32_t i = 0; nic->groups && i < nic->groups->used; i++) {
		struct nic_group *g = &nic->groups->group[i];

		if ((g->life & 1) && g->sends && nic->arch->meet->end) /* somebody may be about to read the process's memory */
			nic->arch->meet->end(nic, g);
	}
	free(nic->groups);
	nic->groups = NULL;
}

/* ---- entries -------------------------------------------------------------------------------------------------------------- */

static struct nic_group *fresh(struct nic *nic, uint32_t name, uint32_t size)
{
	struct nic_groups *all = nic->groups;
	struct nic_group *g = NULL;

	for (uint32_t i = 0; i < all->used && !g; i++)
		if (!(all->group[i].life & 1))
			g = &all->group[i];
	if (!g && all->used < NIC_GROUPS)
		g = &all->group[all->used++];
	if (!g || size > NIC_MAX_SLOTS)
		return NULL;
	*g = (struct nic_group){ .name = name, .size = size, .life = g->life + 1, .place = NIC_PLACE_ANY,
		.lead = NIC_PLACE_ANY, .leader = NIC_PLACE_ANY };
	return g;
}

static bool has_member(const struct nic_group *g, uint16_t place, uint16_t slot)
{
	if (place != NIC_PLACE_ANY)
		return place >= g->size || g->member[place].known;
	for (uint32_t i = 0; i < g->size; i++)
		if (g->member[i].known && g->member[i].slot == slot)
			return true;
	return false;
}

/* That NIC has told of its entry already, or it was read from the card. */
static bool said_before(const struct nic_group *g, uint32_t name, const struct nic_member *m)
{
	if (!(g->life & 1) || g->name != name || !m->life)
		return false;
	for (uint32_t i = 0; i < g->size; i++)
		if (g->member[i].known && g->member[i].slot == m->slot && g->member[i].table == m->table && g->member[i].life == m->life)
			return true;
	return false;
}

static uint32_t free_place(const struct nic_group *g)
{
	uint32_t i = 0;

	while (i < g->size && g->member[i].known)
		i++;
	return i;
}

static void acknowledge_members(struct nic *nic, struct nic_group *g)
{
	if (!g->mine || g->count < g->size)
		return;
	g->ack_end = g->size;
	nic_group_busy(nic, g);
}

/* Those that are known are those that the process names. */
static bool fits_list(const struct nic_group *g, const uint64_t *listed)
{
	for (uint32_t i = 0; listed && i < g->size; i++) {
		const struct nic_member *m = &g->member[i];

		if (m->known && (m->slot != (uint32_t)listed[i] || !nic_same_life(m->epoch, (uint32_t)(listed[i] >> 32))))
			return false;
	}
	return true;
}

/* It is the one that the group's process has named. */
static bool is_named(const struct nic_group *g, uint16_t place, const struct nic_member *m)
{
	return !g->mine || !g->listed || place >= g->size ||
	       (g->member[place].slot == m->slot && nic_same_life(g->member[place].epoch, m->epoch));
}

struct nic_group *nic_group_enter(struct nic *nic, uint32_t name, uint32_t size, uint16_t place, const struct nic_member *m,
                                  const uint64_t *listed)
{
	struct nic_groups *all = nic->groups;
	struct nic_group *g = NULL;
	uint32_t at;

	for (uint32_t i = 0; i < all->used; i++)
		if (said_before(&all->group[i], name, m))
			return &all->group[i];
	for (uint32_t i = 0; i < all->used && !g; i++) {
		struct nic_group *c = &all->group[i];

		if ((c->life & 1) && c->name == name && c->size == size && !c->broken && !c->leaving && !has_member(c, place, m->slot) &&
		    is_named(c, place, m) && fits_list(c, listed))
			g = c;
	}
	if (!g)
		g = fresh(nic, name, size);
	if (!g)
		return NULL;
	at = place == NIC_PLACE_ANY ? free_place(g) : place;
	if (at >= g->size)
		return NULL;
	g->member[at] = *m;
	g->member[at].known = true;
	g->count++;
	if (m->slot == nic->me) {
		g->mine = true;
		g->place = (uint16_t)at;
	}
	acknowledge_members(nic, g);
	return g;
}

/* Its join has come to nothing, or this process has none: who joins finds nobody there, and another may take the place. */
void nic_group_forget(struct nic_group *g, struct nic_member *m)
{
	g->acks -= m->acked;
	g->ack = g->ack_end = 0; /* acknowledged again when there are enough */
	*m = (struct nic_member){ .slot = m->slot, .epoch = m->epoch };
	if (--g->count == 0)
		g->life++;
}
