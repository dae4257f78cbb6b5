/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the Group Table: made when the NIC is opened, touched when a group is used. */
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
