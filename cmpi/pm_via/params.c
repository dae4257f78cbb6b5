/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the parameters and forces them into the ranges the credit protocol needs; shows those of the whole stack to the
 * glue.  Not their declaration: that is nicemu/util/params.def.
 */
#include <string.h>

#include "cmpi/cmpi.h"
#include "cmpi/pm_via/packet.h"
#include "cmpi/pm_via/params.h"
#include "vipl.h"

static uint32_t between(int64_t value, uint32_t low, uint32_t high)
{
	return value < low ? low : value > high ? high : (uint32_t)value;
}

static uint32_t read(const char *name, uint32_t low, uint32_t high)
{
	return between(VipxParameterInt(name), low, high);
}

static int protocol(const char *word)
{
	if (!strcmp(word, "r3"))
		return VIA_PROTO_R3;
	return strcmp(word, "rput") ? VIA_PROTO_RGET : VIA_PROTO_RPUT;
}

/*
 * See "Enough credit comes back" in flow.c for where these come from.  Credits travel in bytes, so an initial credit is
 * at most 255; all receives and sends of a connection must fit a work queue of 1,024 descriptors.
 */
void via_params_clip(struct via_params *p)
{
	p->depth = between(p->depth, 1, 400);
	p->noop_extra = between(p->noop_extra, 1, 100);
	p->rendezvous_extra = between(p->rendezvous_extra, 0, 400);
	p->initial = between(p->initial, p->noop_extra + 1, p->noop_extra + between(p->depth, 1, 255));
	p->threshold = between(p->threshold, 0, (p->depth - 1) / 3);
	p->notify = between(p->notify, 1, 1 + (p->depth - 1 - p->threshold) / 2);
	p->preserve = between(p->preserve, 1, p->depth - p->threshold - p->notify + 1);
	p->preserve = between(p->preserve, 1, p->noop_extra * p->notify);
	p->preserve = between(p->preserve, 1, 254);
	p->dynamic = between(p->dynamic, p->notify, p->depth);
}

void via_params_read(struct via_params *out)
{
	*out = (struct via_params){
		.depth = read("prepost_depth", 1, 400),
		.initial = read("initial_prepost_depth", 1, 1000),
		.noop_extra = read("prepost_noop_extra", 1, 100),
		.rendezvous_extra = read("prepost_rendezvous_extra", 0, 400),
		.threshold = read("prepost_threshold", 0, 400),
		.preserve = read("credit_preserve", 1, 400),
		.notify = read("credit_notify_threshold", 1, 400),
		.dynamic = read("dynamic_credit_threshold", 1, 400),
		.backlog_max = read("backlog_max", 1, 1 << 20),
		.vbuf_max = VipxParameterInt("vbuf_max"),
		.connect_all = !strcmp(VipxParameterString("connect"), "all"),
		.protocol = protocol(VipxParameterString("rendezvous")),
		.rather_sends = !strcmp(VipxParameterString("rendezvous"), "auto"),
		.rendezvous_threshold = (size_t)read("rendezvous_threshold", 0, 1 << 30),
		.r3_threshold = (size_t)read("r3_threshold", 0, 1 << 30),
		.eager_window = (size_t)read("eager_window", 0, 255 * VIA_CONSUMED_UNIT), /* see eager.c */
		.dreg_entries = read("dreg_entries", 1, 8000),
		.lazy_deregister = VipxParameterInt("lazy_deregister") != 0,
		.connect_timeout = read("connect_timeout", 1, 86400),
	};
	via_params_clip(out);
}

/* ---- for the glue ------------------------------------------------------------------------------------------------------------ */

bool cmpi_param_at(uint32_t i, struct cmpi_param *out)
{
	const struct vipx_parameter *p = VipxParameterAt(i);

	if (!p)
		return false;
	*out = (struct cmpi_param){
		.name = p->name, .help = p->help, .fits = p->fits, .value = p->value, .source = p->source, .level = p->level,
	};
	return true;
}

int cmpi_param_set(const char *name, const char *value, const char *source)
{
	return VipxParameterSet(name, value, source) == VIP_SUCCESS ? CMPI_OK : CMPI_PARAMETER;
}

int64_t cmpi_param_int(const char *name)
{
	return VipxParameterInt(name);
}

const char *cmpi_param_string(const char *name)
{
	return VipxParameterString(name);
}
