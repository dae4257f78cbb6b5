/* SPDX-License-Identifier: BSD-3-Clause */
/* Observation: set-up of what a slot shows of itself. */
#ifndef NIC_OBS_H
#define NIC_OBS_H

struct nic_slot;

void nic_counters_init(struct nic_slot *slot);

#endif
