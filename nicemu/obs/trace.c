/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting, stopping and reading the step records of a slot (trace.h). */
#include "nicemu/obs/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/util/log.h"

static const struct {
	const char *text, *a, *b; /* and the names of the two arguments */
} points[] = {
#define T(name, what, a, b) [NIC_T_##name] = { what, a, b },
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
	return point < NIC_T_COUNT ? points[point].text : "?";
}

static void print_argument(FILE *to, const char *name, uint32_t value)
{
	if (*name)
		fprintf(to, " %s=%u", name, value);
}

static void print(const struct nic *nic, FILE *to)
{
	const struct nic_step *s;

	for (uint32_t i = 0; (s = nic_trace_at(nic, i)); i++) {
		fprintf(to, "%s", nic_trace_text(s->point));
		if (s->point < NIC_T_COUNT) {
			print_argument(to, points[s->point].a, s->a);
			print_argument(to, points[s->point].b, s->b);
		}
		fputc('\n', to);
	}
}

void nic_trace_save(const struct nic *nic)
{
	const char *name = nic_param_str("trace_file");
	char path[4096];
	FILE *to;

	if (!nic->trace || !*name)
		return;
	snprintf(path, sizeof(path), "%s.%d.%u", name, (int)getpid(), nic->me);
	to = fopen(path, "we");
	if (!to) {
		nic_log(NIC_LOG_WARN, "cannot write the record of steps to %s", path);
		return;
	}
	print(nic, to);
	fclose(to);
}
