/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting, stopping and reading the step records of a slot (trace.h). */
#include "nicemu/obs/trace.h"

#include <stdlib.h>

#include "nicemu/ctl/ctl.h"

static const char *const text[] = {
#define T(name, what, a, b) [NIC_T_##name] = what,
#include "nicemu/obs/trace.def"
#undef T
};

int nic_trace_start(struct nic *nic, uint32_t records)
{
	struct nic_trace *trace;

	if (records == 0 || (records & (records - 1)))
		return NIC_PARAMETER;
	trace = malloc(sizeof(*trace) + (size_t)records * sizeof(trace->step[0]));
	if (!trace)
		return NIC_RESOURCE;
	nic_trace_stop(nic);
	trace->mask = records - 1;
	trace->count = 0;
	nic->trace = trace;
	return NIC_OK;
}

void nic_trace_stop(struct nic *nic)
{
	free(nic->trace);
	nic->trace = NULL;
}

const struct nic_step *nic_trace_at(const struct nic *nic, uint32_t i)
{
	const struct nic_trace *trace = nic->trace;
	uint32_t kept;

	if (!trace)
		return NULL;
	kept = trace->count <= trace->mask ? trace->count : trace->mask + 1;
	return i < kept ? &trace->step[(trace->count - kept + i) & trace->mask] : NULL;
}

const char *nic_trace_text(uint32_t point)
{
	return point < NIC_T_COUNT ? text[point] : "?";
}
