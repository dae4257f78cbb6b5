/* SPDX-License-Identifier: BSD-3-Clause */
/* The published NICs by name. */
#include "nicemu/arch/arch.h"

#include <string.h>

static const struct nic_arch *const all[] = { &nic_arch_direct, &nic_arch_qnix };

const struct nic_arch *nic_arch_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
