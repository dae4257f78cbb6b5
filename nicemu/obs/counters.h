/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the NIC's own counters; the cells lie in the slot (mem/card.h). */
#ifndef NIC_OBS_COUNTERS_H
#define NIC_OBS_COUNTERS_H

enum nic_counter_id {
#define C(name, help) NIC_C_##name,
#include "nicemu/obs/counters.def"
#undef C
	NIC_C_COUNT
};

/* Plain: a cell has one writer. */
#define nic_count(nic, name, n) ((nic)->counter[NIC_C_##name] += (n))

#endif
