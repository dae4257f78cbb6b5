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
	free(nic->groups);
	nic->groups = NULL;
}
