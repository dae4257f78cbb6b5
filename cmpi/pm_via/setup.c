/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * do_setup and do_stop of the C-MPI design: NIC, completion queue, protection tag, vbufs; and all of it back.  One
 * completion queue, for receives: a send is usually complete when its post returns, so looking at the send queue itself is
 * cheaper than an entry elsewhere.  VIs are made per connection (conn.c).
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmpi/pm_via/via.h"

enum { CQ_ENTRIES = 1024, CLOSE_MS = 2000, FLUSH_MS = 200 };

static _Thread_local char last_error[256] = "no error";

const char *cmpi_last_error(void)
{
	return last_error;
}

void via_set_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
}

/* ---- memory of small records --------------------------------------------------------------------------------------------- */

struct chunk {
	struct chunk *next;
	_Alignas(16) uint8_t bytes[];
};

void *via_chunk(struct cmpi *c, size_t bytes)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk) + bytes);

	if (!chunk)
		return NULL;
	chunk->next = c->chunks;
	c->chunks = chunk;
	return chunk->bytes;
}

static void chunks_free(struct cmpi *c)
{
	struct chunk *chunk;

	while ((chunk = c->chunks) != NULL) {
		c->chunks = chunk->next;
		free(chunk);
	}
}

/* ---- do_setup ------------------------------------------------------------------------------------------------------------- */

static void counters_open(struct cmpi *c)
{
#define C(member, name, help)                                         \
	c->count.member = (uint64_t *)VipxCounter(c->nic, name, help); \
	if (!c->count.member)                                         \
		c->count.member = &c->dummy;
	VIA_COUNTER_LIST(C)
#undef C
	c->arrivals = (uint64_t *)VipxCounter(c->nic, "packets_received", "");
	if (!c->arrivals)
		c->arrivals = &c->dummy;
}

/* Both sides of a connection must agree on these. */
static uint16_t params_hash(const struct via_params *p)
{
	const uint32_t value[] = {p->depth, p->initial, p->noop_extra, p->threshold, p->preserve, p->notify};
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++)
		hash = (hash ^ value[i]) * 16777619u;
	return (uint16_t)(hash ^ hash >> 16);
}

static int address_make(struct cmpi *c, const struct cmpi_params *params, const VIP_NIC_ATTRIBUTES *attr)
{
	struct via_address *a = &c->address;
	VIP_UINT64 card;
	VIP_UINT32 life;
	VIP_ULONG slot;

	if (attr->NicAddressLen > sizeof(a->host) || VipxCardId(c->nic, &card) != VIP_SUCCESS ||
	    VipxCardSlot(c->nic, &slot) != VIP_SUCCESS || VipxCardLife(c->nic, &life) != VIP_SUCCESS) {
		via_set_error("the NIC has no usable address");
		return CMPI_SYSTEM;
	}
	*a = (struct via_address){
		.version = VIA_ADDRESS_VERSION,
		.initial_credit = (uint8_t)(c->params.initial - c->params.noop_extra),
		.noop_extra = (uint8_t)c->params.noop_extra,
		.host_len = (uint8_t)attr->NicAddressLen,
		.params = params_hash(&c->params),
		.rank = params->rank,
		.pid = (uint32_t)getpid(),
		.job = (uint32_t)(params->job ^ params->job >> 32),
		.card = card,
		.slot = (uint32_t)slot,
		.life = life,
	};
	memcpy(a->host, attr->LocalNicAddress, attr->NicAddressLen);
	return CMPI_OK;
}

static int fail(const char *what)
{
	via_set_error("%s", what);
	return CMPI_RESOURCE;
}

static int do_setup(struct cmpi *c, const struct cmpi_params *params)
{
	VIP_NIC_ATTRIBUTES attr;
	int err;

	if (VipxOpenNic(params->device ? params->device : VipxParameterString("device"), VIPX_OPEN_UNLOCKED, &c->nic) !=
	    VIP_SUCCESS) {
		via_set_error("%s", VipxLastError());
		return CMPI_SYSTEM;
	}
	if (VipQueryNic(c->nic, &attr) != VIP_SUCCESS)
		return fail("the NIC does not answer");
	c->max_transfer = attr.MaxTransferSize;
	c->posts = 1;
	c->groups_first = VipxGroupsAtOnce(c->nic) != VIP_SUCCESS;
	c->cq_size = CQ_ENTRIES;
	if (VipCreateCQ(c->nic, c->cq_size, &c->cq) != VIP_SUCCESS)
		return fail("no completion queue left on the NIC");
	if (VipCreatePtag(c->nic, &c->ptag) != VIP_SUCCESS)
		return fail("no protection tag left on the NIC");
	counters_open(c);
	err = address_make(c, params, &attr);
	if (err != CMPI_OK)
		return err;
	if (!via_vbuf_grow(c, false))
		return fail("no memory for vbufs, or none left to register on the NIC");
	VipErrorCallback(c->nic, c, via_conn_callback);
	c->epoch = VipxConnectEpoch(c->nic) - 1; /* look at requests that are there already */
	return CMPI_OK;
}

/*
 * In the order of the C-MPI design: VIs (gone by now), protection tag, memory, completion queue, NIC.  Except that the tag
 * goes after the memory, because VIPL does not destroy a tag that a region still uses.
 */
static void do_stop(struct cmpi *c)
{
	mpip_fini(&c->engine);
	if (c->nic) {
		via_vbuf_fini(c);
		via_dreg_fini(c);
		if (c->ptag)
			VipDestroyPtag(c->nic, c->ptag);
		if (c->cq)
			VipDestroyCQ(c->cq);
		VipCloseNic(c->nic);
	}
	via_handle_fini(c);
	chunks_free(c);
	free(c);
}

int cmpi_open(const struct cmpi_params *params, struct cmpi **out)
{
	struct cmpi *c = aligned_alloc(64, (sizeof(*c) + 63) / 64 * 64);
	int err;

	if (!c) {
		via_set_error("no memory");
		return CMPI_RESOURCE;
	}
	memset(c, 0, sizeof(*c));
	c->budget = 1;
	c->am = params->am;
	c->error = params->error;
	c->arg = c->error_arg = params->arg;
	c->data.pt_mtu = CMPI_AM_MAX;
	via_params_read(&c->params);
	c->alone = params->alone;
	c->lends = params->lends;
	err = mpip_init(&c->engine, params->threads) ? CMPI_OK : fail("no memory");
	via_wait_init(c);
	if (err == CMPI_OK)
		err = do_setup(c, params);
	c->engine.protocol = &mpip_via_protocol;
	if (err != CMPI_OK) {
		do_stop(c);
		return err;
	}
	*out = c;
	return CMPI_OK;
}

void cmpi_set_am(struct cmpi *c, cmpi_am_fn *am, void *arg)
{
	via_lock(c);
	c->am = am;
	c->arg = arg;
	via_unlock(c);
}

/* ---- close ------------------------------------------------------------------------------------------------------------------ */

static int64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool all_closed(const struct cmpi *c)
{
	for (const struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		if (proc->state == VIA_CONN_CLOSING || proc->state == VIA_CONN_BREAKING)
			return false;
	return true;
}

static bool all_destroyed(const struct cmpi *c)
{
	for (const struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		if (proc->vi)
			return false;
	return true;
}

static void progress_until(struct cmpi *c, bool (*done)(const struct cmpi *), int ms)
{
	int64_t end = milliseconds() + ms;

	while (!done(c) && milliseconds() < end)
		if (!via_progress(c))
			sched_yield();
}

/* Whatever is left of a connection goes, in whatever state. */
static void procs_destroy(struct cmpi *c)
{
	struct cmpi_proc *proc;

	while ((proc = c->procs) != NULL) {
		c->procs = proc->next;
		if (proc->vi)
			VipDestroyVi(proc->vi);
		free(proc);
	}
}

int cmpi_close(struct cmpi *c)
{
	if (!c)
		return CMPI_PARAMETER;
	via_lock(c);
	c->closing = true;
	for (struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		via_conn_close(proc);
	progress_until(c, all_closed, CLOSE_MS);
	for (struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		if (proc->state == VIA_CONN_CLOSING || proc->state == VIA_CONN_BREAKING)
			via_conn_down(proc, VIA_CONN_CLOSED);
	via_completion_run(c);
	progress_until(c, all_destroyed, FLUSH_MS);
	via_unlock(c);
	cmpi_map_functions("self")->pt_closeconns(c, NULL, 0);
	while (c->incoming) /* never accepted */
		via_incoming_free(c, c->incoming);
	procs_destroy(c);
	do_stop(c);
	return CMPI_OK;
}

int cmpi_mem_alloc(struct cmpi *c, size_t len, void **out)
{
	VIP_RETURN r;

	via_lock(c);
	r = VipxAllocMemory(c->nic, len, out);
	via_unlock(c);
	if (r == VIP_SUCCESS)
		return CMPI_OK;
	via_set_error("%s", VipxLastError());
	return r == VIP_ERROR_RESOURCE ? CMPI_RESOURCE : CMPI_PARAMETER;
}

/* A registration of it that is still cached does no harm: as with other memory, whoever has its key may use it until then. */
int cmpi_mem_free(struct cmpi *c, void *memory)
{
	VIP_RETURN r;

	via_lock(c);
	r = VipxFreeMemory(c->nic, memory);
	via_unlock(c);
	return r == VIP_SUCCESS ? CMPI_OK : CMPI_PARAMETER;
}

int cmpi_address(const struct cmpi *c, uint8_t blob[CMPI_ADDR_MAX], size_t *len)
{
	memcpy(blob, &c->address, sizeof(c->address));
	*len = sizeof(c->address);
	return CMPI_OK;
}

const uint64_t *cmpi_counter_at(struct cmpi *c, uint32_t i, const char **name, const char **help)
{
	const VIP_CHAR *n = NULL, *h = NULL;
	const VIP_UINT64 *cell = VipxCounterAt(c->nic, i, &n, &h);

	if (!cell)
		return NULL;
	if (name)
		*name = n;
	if (help)
		*help = h;
	return (const uint64_t *)cell;
}
