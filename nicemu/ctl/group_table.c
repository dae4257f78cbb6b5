/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the Group Table: made when the NIC is opened, touched when a group is used. */
#include <stdlib.h>

#include "nicemu/ctl/group.h"

int nic_groups_create(struct nic *nic)
{
	nic->groups = calloc(1, sizeof(*nic->groups));
	return nic->groups ? NIC_OK : NIC_RESOURCE;
}

void nic_groups_destroy(struct nic *nic)
{
	free(nic->groups);
	nic->groups = NULL;
}
