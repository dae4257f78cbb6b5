/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines by name.
 */
#include "nicemu/engine/engine.h"

#include <string.h>

const struct nic_engine *nic_engine_find(const char *name)
{
	static const struct nic_engine *const all[] = { &nic_engine_inline, &nic_engine_thread, &nic_engine_daemon };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(name, all[i]->name) == 0)
			return all[i];
	return NULL;
}
