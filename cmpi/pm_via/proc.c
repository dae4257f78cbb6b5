/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: found by their address, kept until cmpi_close, so that a pointer a handler got stays good.  Not their connections.
 */
#include <stdlib.h>
#include <string.h>

#include "cmpi/pm_via/via.h"

static struct cmpi_proc **bucket(struct cmpi *c, const struct via_address *address)
{
	return &c->hash[(address->rank ^ address->pid * 31u ^ address->job) % (sizeof(c->hash) / sizeof(c->hash[0]))];
}

struct cmpi_proc *via_proc_find(struct cmpi *c, const struct via_address *address)
{
	struct cmpi_proc *proc = *bucket(c, address);

	while (proc && memcmp(&proc->address, address, sizeof(*address)))
		proc = proc->chain;
	return proc;
}

/* The peer of that address, made if need be; NULL: no memory. */
struct cmpi_proc *via_proc_create(struct cmpi *c, const struct via_address *address)
{
	struct cmpi_proc *proc = via_proc_find(c, address), **head = bucket(c, address);

	if (proc)
		return proc;
	proc = aligned_alloc(64, (sizeof(*proc) + 63) / 64 * 64);
	if (!proc)
		return NULL;
	memset(proc, 0, sizeof(*proc));
	proc->cmpi = c;
	proc->address = *address;
	proc->pid = (int)address->pid;
	proc->self = !memcmp(address, &c->address, sizeof(*address));
	proc->process.protocol = proc->self ? cmpi_map_functions("self") : &mpip_via_protocol;
	proc->chain = *head;
	*head = proc;
	proc->next = c->procs;
	c->procs = proc;
	c->data.pt_nprocs++;
	return proc;
}

static int parse(struct cmpi *c, const uint8_t *blob, size_t len, struct via_address *out)
{
	if (len != sizeof(*out))
		return CMPI_PARAMETER;
	memcpy(out, blob, sizeof(*out));
	if (out->host_len > sizeof(out->host))
		return CMPI_PARAMETER;
	if (out->card != c->address.card) {
		via_set_error("it is on another host, or has opened another card");
		return CMPI_UNREACHABLE;
	}
	if (out->version == VIA_ADDRESS_VERSION && out->params == c->address.params)
		return CMPI_OK;
	via_set_error("it has another version of C-MPI, or other values of its credit parameters");
	return CMPI_UNREACHABLE;
}

int cmpi_proc_get(struct cmpi *c, const uint8_t *blob, size_t len, void *cookie, struct cmpi_proc **out)
{
	struct via_address address;
	struct cmpi_proc *proc;
	int err = parse(c, blob, len, &address);

	if (err != CMPI_OK)
		return err;
	via_lock(c);
	proc = via_proc_create(c, &address);
	if (proc) {
		proc->refs++;
		if (cookie)
			proc->cookie = cookie;
		*out = proc;
	}
	via_unlock(c);
	return proc ? CMPI_OK : CMPI_RESOURCE;
}

void cmpi_proc_put(struct cmpi *c, struct cmpi_proc *proc)
{
	via_lock(c);
	if (proc->refs && !--proc->refs)
		via_conn_close(proc);
	via_unlock(c);
}

void *cmpi_proc_cookie(const struct cmpi_proc *proc)
{
	return proc->cookie;
}

void cmpi_proc_set_cookie(struct cmpi_proc *proc, void *cookie)
{
	proc->cookie = cookie;
}

uint32_t cmpi_proc_rank(const struct cmpi_proc *proc)
{
	return proc->address.rank;
}

int cmpi_proc_pid(const struct cmpi_proc *proc)
{
	return proc->pid;
}

bool cmpi_proc_is_self(const struct cmpi_proc *proc)
{
	return proc->self;
}
