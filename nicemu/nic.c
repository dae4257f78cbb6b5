/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assembles a NIC: card (memory) + slot (driver) + arch (strategies) + engine (what runs it).  Control path only.
 */
#include "nicemu/nic.h"

#include <stdlib.h>
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/group.h"
#include "nicemu/engine/cores.h"
#include "nicemu/engine/daemon.h"
#include "nicemu/engine/remote.h"
#include "nicemu/obs/trace.h"
#include "nicemu/util/log.h"
#include "nicemu/util/look.h"

/* auto, on or off */
static bool wanted(const char *parameter, bool automatic)
{
	const char *value = nic_param_str(parameter);

	return strcmp(value, "auto") == 0 ? automatic : strcmp(value, "on") == 0;
}

static int choose(struct nic *nic)
{
	nic->arch = nic_arch_find(nic_param_str("arch"));
	nic->engine = nic_engine_find(nic_param_str("engine"));
	if (!nic->arch)
		return nic_fail(NIC_UNKNOWN_NAME, "no such arch: %s", nic_param_str("arch"));
	if (!nic->engine)
		return nic_fail(NIC_UNKNOWN_NAME, "no such engine: %s", nic_param_str("engine"));
	nic->stage = nic->engine->needs_host && strcmp(nic_param_str("staging"), "off") != 0;
	nic->cma = strcmp(nic_param_str("cma"), "off") != 0;
	nic->demotes = wanted("demote", nic_cores_demote());
	nic->migrates = wanted("migrate", nic_cores_migrate());
	nic->foresees = nic_look_works() && wanted("foresee", true);
	nic->hastens = wanted("hasten", nic_cores_hasten());
	nic->buffer_cap = nic_param_int("buffers");
	if (nic->buffer_cap < NIC_BUFFER_BATCH || nic->buffer_cap > NIC_POOL_BUFFERS)
		return nic_fail(NIC_PARAMETER, "parameter buffers must lie between %d and %d", NIC_BUFFER_BATCH, NIC_POOL_BUFFERS);
	return NIC_OK;
}

/* What the slot needs beyond what every NIC has. */
static int complete(struct nic *nic)
{
	int64_t records = nic_param_int("trace");
	uint32_t n = 1;
	int err = nic_groups_create(nic);

	while (n < records && n < 1u << 24)
		n *= 2;
	if (!err && records > 0)
		err = nic_trace_start(nic, n);
	if (!err && nic->arch->pipe->open)
		err = nic->arch->pipe->open(nic);
	return err == NIC_RESOURCE ? nic_fail(err, "out of memory") : err;
}

static void unmake(struct nic *nic)
{
	if (nic->arch->pipe->close)
		nic->arch->pipe->close(nic);
	nic_groups_destroy(nic);
	nic_trace_stop(nic);
}

static int assemble(struct nic *nic, const char *device)
{
	int err = choose(nic);

	if (err)
		return err;
	err = nic_card_open(device, &nic->card);
	if (err)
		return err;
	nic->map = nic_card_map(nic->card);
	nic->pool = nic->map->buffer[0];
	nic_wait_open(nic);
	err = nic_driver_register(nic);
	if (!err && nic->engine->elsewhere)
		err = nic_remote_open(nic); /* which de-registers again */
	else if (!err) {
		err = complete(nic);
		if (err) {
			nic_driver_deregister(nic);
			nic_trace_stop(nic);
		}
	}
	if (err)
		nic_card_close(nic->card);
	return err;
}

int nic_open(const struct nic_open_args *args, struct nic **out)
{
	struct nic *nic = calloc(1, sizeof(*nic));
	const char *device = args->device && *args->device ? args->device : nic_param_str("device");
	int err;

	if (!nic)
		return nic_fail(NIC_RESOURCE, "out of memory");
	nic->event = args->event;
	nic->event_arg = args->event_arg;
	err = assemble(nic, device);
	if (err) {
		free(nic);
		return err;
	}
	if (nic->engine->start)
		err = nic->engine->start(nic, args);
	if (err) {
		nic_close(nic);
		return err;
	}
	nic_log(NIC_LOG_INFO, "slot %u of device \"%s\": arch %s, engine %s, cross-memory attach %s", nic->me, device, nic->arch->name,
	        nic->engine->name, nic->cma ? "allowed" : "off");
	*out = nic;
	return NIC_OK;
}

void nic_stop(struct nic *nic)
{
	if (nic->engine->stop)
		nic->engine->stop(nic);
}

int nic_close(struct nic *nic)
{
	struct nic_card *card = nic->card;

	nic_stop(nic);
	if (nic->remote) {
		nic_remote_close(nic);
		free(nic);
	} else {
		nic_detach(nic);
	}
	nic_card_close(card);
	return NIC_OK;
}

/* ---- the NIC of another process's slot --------------------------------------------------------------------------- */

int nic_attach(struct nic_card *card, uint32_t slot, struct nic **out)
{
	struct nic *nic = calloc(1, sizeof(*nic));
	int err = NIC_RESOURCE;

	if (!nic)
		return err;
	nic->card = card;
	nic->map = nic_card_map(card);
	nic->pool = nic->map->buffer[0];
	nic->me = slot;
	nic->slot = nic_own_slot(nic);
	nic->counter = nic->slot->counter;
	nic->arch = nic_arch_find(nic->slot->arch);
	nic->engine = &nic_engine_inline;
	nic->cma = nic->slot->port.cma;
	nic->buffer_cap = nic->slot->port.buffer_cap;
	nic->deaf = &nic->map->hdr.daemon.deaf;
	nic->mmt_used = 1;
	nic->keeps = 32;
	if (nic->arch && nic_card_writable(card, nic->slot, sizeof(*nic->slot))) {
		err = complete(nic);
		if (err)
			unmake(nic);
	}
	if (err)
		free(nic);
	else
		*out = nic;
	return err;
}

void nic_detach(struct nic *nic)
{
	nic_driver_deregister(nic);
	nic_trace_save(nic);
	nic_trace_stop(nic);
	free(nic);
}

bool nic_slot_lives(const struct nic *nic, uint32_t slot, uint32_t life)
{
	return slot < NIC_MAX_SLOTS && nic_driver_alive(nic, slot, life);
}

void nic_query(const struct nic *nic, struct nic_attr *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->device, nic->map->hdr.device, sizeof(out->device));
	out->device[sizeof(out->device) - 1] = 0;
	memcpy(out->addr, nic->map->hdr.addr, sizeof(out->addr));
	out->card = nic->map->hdr.uuid;
	out->slot = nic->me;
	out->life = nic_load_relaxed(&nic_own_slot(nic)->epoch); /* own word */
	out->arch = nic->arch->name;
	out->engine = nic->engine->name;
	out->beside = nic->engine->start != NULL;
	out->memory = nic_card_memory(nic->card);
	out->rdma_read = NIC_UNRELIABLE | NIC_RELIABLE_DELIVERY | NIC_RELIABLE_RECEPTION;
}
