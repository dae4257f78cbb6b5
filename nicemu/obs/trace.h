/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Step records of the control program: a ring for each slot that is traced, oldest overwritten.  Off, a trace point is one
 * load and a branch that is never taken.  A record has no time: the control program has no clock; its number orders it.
 */
#ifndef NIC_OBS_TRACE_H
#define NIC_OBS_TRACE_H

#include <stdint.h>

enum nic_trace_point {
#define T(name, text, a, b) NIC_T_##name,
#include "nicemu/obs/trace.def"
#undef T
	NIC_T_COUNT
};

struct nic_step {
	uint32_t point; /* enum nic_trace_point */
	uint32_t a, b;
};

struct nic_trace {
	uint32_t mask;  /* records - 1 */
	uint32_t count; /* ever written */
	struct nic_step step[];
};

struct nic;

/* Control path.  records: a power of two; start forgets what was recorded. */
int nic_trace_start(struct nic *nic, uint32_t records);
void nic_trace_stop(struct nic *nic);
/* Record number i of those still there, oldest first; NULL past the end. */
const struct nic_step *nic_trace_at(const struct nic *nic, uint32_t i);
const char *nic_trace_text(uint32_t point);
void nic_trace_save(const struct nic *nic); /* to where parameter `trace_file` says, a line a step */

static inline void nic_trace_add(struct nic_trace *trace, uint32_t point, uint32_t a, uint32_t b)
{
	trace->step[trace->count++ & trace->mask] = (struct nic_step){ point, a, b };
}

#define nic_trace(nic, name, a, b)                                                    \
	do {                                                                          \
		if (nic_unlikely((nic)->trace))                                       \
			nic_trace_add((nic)->trace, NIC_T_##name, (uint32_t)(a), (uint32_t)(b)); \
	} while (0)

#endif
