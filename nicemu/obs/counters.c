/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of counters in a slot: names beside values, so that tools read them from outside (see nic.h). */
#include "nicemu/obs/counters.h"

#include <stdio.h>
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/obs/obs.h"

void nic_counters_init(struct nic_slot *slot)
{
	static const struct nic_counter rows[] = {
#define C(name, help) { #name, help },
#include "nicemu/obs/counters.def"
#undef C
	};

	_Static_assert((int)NIC_C_COUNT <= (int)NIC_MAX_COUNTERS, "room for the NIC's own counters");
	memset(slot->counter, 0, sizeof(slot->counter));
	memcpy(slot->counter_row, rows, sizeof(rows));
	nic_store_release(&slot->ncounters, NIC_C_COUNT); /* pairs with the acquire of readers in other processes */
}

uint64_t *nic_counter_add(struct nic *nic, const char *name, const char *help)
{
	struct nic_slot *slot = nic_own_slot(nic);
	uint32_t n = nic_load_relaxed(&slot->ncounters); /* own word */

	for (uint32_t i = 0; i < n; i++)
		if (strncmp(slot->counter_row[i].name, name, NIC_COUNTER_NAME - 1) == 0)
			return &slot->counter[i];
	if (n == NIC_MAX_COUNTERS)
		return NULL;
	snprintf(slot->counter_row[n].name, NIC_COUNTER_NAME, "%s", name);
	snprintf(slot->counter_row[n].help, NIC_COUNTER_HELP, "%s", help);
	nic_store_release(&slot->ncounters, n + 1); /* as above */
	return &slot->counter[n];
}

const uint64_t *nic_counter_at(const struct nic *nic, uint32_t i, const struct nic_counter **row)
{
	struct nic_slot *slot = nic_own_slot(nic);

	if (i >= nic_load_relaxed(&slot->ncounters)) /* own word */
		return NULL;
	*row = &slot->counter_row[i];
	return &slot->counter[i];
}
