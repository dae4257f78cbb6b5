/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test VIPL: see fake_vipl.h.  Straightforward on purpose: lists, linear searches, memory from malloc.
 */
#include "tests/stress/fake_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_net fake_net;
unsigned fake_singles, fake_longs, fake_turns;

/* ---- judging ------------------------------------------------------------------------------------------------------------------- */

void fake_violate(const char *format, ...)
{
	va_list args;

	if (fake_net.violation[0])
		return;
	va_start(args, format);
	vsnprintf(fake_net.violation, sizeof(fake_net.violation), format, args);
	va_end(args);
}

const char *fake_violation(void)
{
	return fake_net.violation[0] ? fake_net.violation : NULL;
}

uint32_t fake_closest(void)
{
	return fake_net.closest;
}

uint32_t fake_random(uint32_t below)
{
	fake_net.random ^= fake_net.random << 13;
	fake_net.random ^= fake_net.random >> 7;
	fake_net.random ^= fake_net.random << 17;
	return below ? (uint32_t)(fake_net.random >> 33) % below : 0;
}

const struct region *fake_region_find(const struct nic *nic, VIP_MEM_HANDLE handle, uintptr_t at, size_t len)
{
	const struct region *r;

	for (r = nic->regions; r; r = r->next)
		if (r->handle == handle && at >= r->base && len <= r->len && at - r->base <= r->len - len)
			return r;
	return NULL;
}

struct buffer *fake_buffer_of(const void *at)
{
	uintptr_t off = (uintptr_t)at - (uintptr_t)fake_net.buffer;

	return off < sizeof(fake_net.buffer) ? &fake_net.buffer[off / sizeof(struct buffer)] : NULL;
}

/* ---- set-up --------------------------------------------------------------------------------------------------------------------- */

static void params_default(void)
{
	fake_net.nparams = 0;
#define P(name_, type_, default_, level_, help_)                                                              \
	if (fake_net.nparams < PARAMS) {                                                                           \
		snprintf(fake_net.value[fake_net.nparams], sizeof(fake_net.value[0]), "%s", default_);                       \
		fake_net.param[fake_net.nparams] = (struct vipx_parameter){                                             \
			.name = name_, .help = help_, .type = type_, .fits = type_, .value = fake_net.value[fake_net.nparams],          \
			.source = "default", .level = level_};                                                 \
		fake_net.nparams++;                                                                                \
	}
#include "nicemu/util/params.def"
#undef P
}

void fake_wire_clear(struct wire *wire)
{
	struct message *m;

	while ((m = wire->head) != NULL) {
		wire->head = m->next;
		if (m->pool)
			fake_buffer_of(m->data)->out = false;
		else
			free(m->data);
		free(m);
	}
	wire->tail = NULL;
}

static void vi_clear(struct vi *vi)
{
	fake_wire_clear(&vi->out);
	free(vi->local);
	free(vi->remote);
	memset(vi, 0, sizeof(*vi));
}

static void nic_clear(struct nic *nic)
{
	struct region *r;

	for (uint32_t i = 0; i < VIS; i++)
		vi_clear(&nic->vi[i]);
	while ((r = nic->regions) != NULL) {
		nic->regions = r->next;
		free(r);
	}
	free(nic->cq);
	memset(nic, 0, sizeof(*nic));
}

void fake_reset(const struct fake_config *config)
{
	for (uint32_t i = 0; i < NICS; i++)
		nic_clear(&fake_net.nic[i]);
	for (uint32_t i = 0; i < BUFFERS; i++)
		fake_net.buffer[i].owner = NULL, fake_net.buffer[i].out = false;
	fake_net.config = *config;
	fake_net.random = config->seed * 0x9E3779B97F4A7C15u + 0x1234567u;
	fake_net.violation[0] = 0;
	fake_net.closest = UINT32_MAX;
	fake_net.refuse = fake_net.send_steps = 0;
	fake_net.epoch = 1;
	fake_singles = fake_longs = fake_turns = fake_expected = 0;
	params_default();
}

void fake_hold(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, bool held)
{
	struct nic *nic = from;

	for (uint32_t i = 0; i < NICS; i++)
		if (!to || to == &fake_net.nic[i])
			nic->held[i] = held;
}

void fake_deaf(VIP_NIC_HANDLE handle, bool deaf)
{
	struct nic *nic = handle;

	nic->deaf = deaf;
}

void fake_auto_steps(uint32_t steps)
{
	fake_net.config.auto_steps = steps;
}

void fake_send_steps(uint32_t steps)
{
	fake_net.send_steps = steps;
}

void fake_brief(uint32_t percent)
{
	fake_net.config.brief = percent;
}

void fake_instant(uint32_t percent)
{
	fake_net.config.instant = percent;
}

void fake_refuse_registrations(uint32_t n)
{
	fake_net.refuse = n;
}

uint32_t fake_buffers_owned(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BUFFERS; i++)
		n += fake_net.buffer[i].owner != NULL;
	return n;
}

/* ---- parameters ----------------------------------------------------------------------------------------------------------------- */

const struct vipx_parameter *VipxParameterFind(const VIP_CHAR *name)
{
	for (uint32_t i = 0; i < fake_net.nparams; i++)
		if (!strcmp(fake_net.param[i].name, name))
			return &fake_net.param[i];
	return NULL;
}

const struct vipx_parameter *VipxParameterAt(VIP_ULONG i)
{
	return i < fake_net.nparams ? &fake_net.param[i] : NULL;
}

VIP_RETURN VipxParameterSet(const VIP_CHAR *name, const VIP_CHAR *value, const VIP_CHAR *source)
{
	const struct vipx_parameter *p = VipxParameterFind(name);

	if (!p)
		return VIP_NO_MATCH;
	snprintf(fake_net.value[p - fake_net.param], sizeof(fake_net.value[0]), "%s", value);
	fake_net.param[p - fake_net.param].source = source;
	return VIP_SUCCESS;
}

void fake_param(const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	if (VipxParameterSet(name, text, "test") != VIP_SUCCESS)
		fake_violate("no parameter %s", name);
}

int64_t VipxParameterInt(const VIP_CHAR *name)
{
	const struct vipx_parameter *p = VipxParameterFind(name);
	char *end;
	int64_t n;

	if (!p)
		return 0;
	if (!strcmp(p->type, "bool"))
		return !strcmp(p->value, "true") || !strcmp(p->value, "1");
	n = strtoll(p->value, &end, 10);
	return *end == 'k' ? n << 10 : *end == 'm' ? n << 20 : n;
}

const VIP_CHAR *VipxParameterString(const VIP_CHAR *name)
{
	const struct vipx_parameter *p = VipxParameterFind(name);

	return p ? p->value : "";
}

/* ---- NIC ---------------------------------------------------------------------------------------------------------------------------- */

VIP_RETURN VipxOpenNic(const VIP_CHAR *name, VIP_ULONG flags, VIP_NIC_HANDLE *out)
{
	(void)name;
	(void)flags;
	for (uint32_t i = 0; i < NICS; i++)
		if (!fake_net.nic[i].used) {
			fake_net.nic[i].used = true;
			fake_net.nic[i].next_handle = 1;
			*out = &fake_net.nic[i];
			return VIP_SUCCESS;
		}
	return VIP_ERROR_RESOURCE;
}

const VIP_CHAR *VipxLastError(void)
{
	return "the test network is full";
}

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE handle, VIP_NIC_ATTRIBUTES *out)
{
	static const VIP_UINT8 address[6] = {2, 0, 0, 0, 0, 1};

	(void)handle;
	memset(out, 0, sizeof(*out));
	out->NicAddressLen = sizeof(address);
	out->LocalNicAddress = address;
	out->MaxTransferSize = 10000; /* small, so that transfers are split */
	out->MaxDescriptorsPerQueue = QUEUE;
	return VIP_SUCCESS;
}

VIP_RETURN VipxCardSlot(VIP_NIC_HANDLE handle, VIP_ULONG *slot)
{
	(void)handle;
	*slot = 0;
	return VIP_SUCCESS;
}

VIP_RETURN VipxCardLife(VIP_NIC_HANDLE handle, VIP_UINT32 *life)
{
	(void)handle;
	*life = 1;
	return VIP_SUCCESS;
}

VIP_RETURN VipxCardLives(VIP_NIC_HANDLE handle, VIP_ULONG slot, VIP_UINT32 life)
{
	(void)handle;
	(void)slot;
	return life == 1 ? VIP_SUCCESS : VIP_NO_MATCH;
}

/* This network has no groups. */
VIP_RETURN VipxGroupJoin(VIP_NIC_HANDLE handle, const VIPX_GROUP *group, VIP_UINT32 *operation)
{
	(void)handle;
	(void)group;
	(void)operation;
	return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipxGroupLeave(VIP_NIC_HANDLE handle, VIP_UINT32 group)
{
	(void)handle;
	(void)group;
	return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipxBarrier(VIP_NIC_HANDLE handle, VIP_UINT32 group, VIP_UINT32 *operation)
{
	(void)handle;
	(void)group;
	(void)operation;
	return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipxBroadcast(VIP_NIC_HANDLE handle, VIP_UINT32 group, VIP_UINT32 root, VIP_PVOID buffer, VIP_UINT64 length,
                         VIP_UINT32 *operation)
{
	(void)handle;
	(void)group;
	(void)root;
	(void)buffer;
	(void)length;
	(void)operation;
	return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipxOperationDone(VIP_NIC_HANDLE handle, VIP_UINT32 operation, VIP_UINT32 *value)
{
	(void)handle;
	(void)operation;
	(void)value;
	return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipxGroupsAtOnce(VIP_NIC_HANDLE handle)
{
	(void)handle;
	return VIP_NOT_DONE;
}

VIP_RETURN VipxCardId(VIP_NIC_HANDLE handle, VIP_UINT64 *card)
{
	(void)handle;
	*card = 4711;
	return VIP_SUCCESS;
}

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE handle, VIP_PVOID context, void (*handler)(VIP_PVOID, VIP_ERROR_DESCRIPTOR *))
{
	struct nic *nic = handle;

	nic->context = context;
	nic->handler = handler;
	return VIP_SUCCESS;
}

VIP_RETURN VipCloseNic(VIP_NIC_HANDLE handle)
{
	struct nic *nic = handle;

	for (uint32_t i = 0; i < VIS; i++)
		if (nic->vi[i].used)
			fake_violate("a VI is left at close");
	if (nic->regions)
		fake_violate("registered memory is left at close");
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (fake_net.buffer[i].owner == nic)
			fake_net.buffer[i].owner = NULL;
	nic_clear(nic);
	return VIP_SUCCESS;
}

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE handle, VIP_PROTECTION_HANDLE *out)
{
	*out = handle;
	return VIP_SUCCESS;
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE handle, VIP_PROTECTION_HANDLE ptag)
{
	if (ptag != handle || ((struct nic *)handle)->regions)
		fake_violate("the tag was destroyed while a region used it");
	return VIP_SUCCESS;
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE handle, VIP_PVOID at, VIP_ULONG len, VIP_MEM_ATTRIBUTES *attr, VIP_MEM_HANDLE *out)
{
	struct nic *nic = handle;
	struct region *r;

	if (fake_net.refuse) {
		fake_net.refuse--;
		return VIP_ERROR_RESOURCE;
	}
	r = malloc(sizeof(*r));
	*r = (struct region){nic->regions, (uintptr_t)at, len, nic->next_handle++, attr->EnableRdmaWrite, attr->EnableRdmaRead};
	nic->regions = r;
	*out = r->handle;
	return VIP_SUCCESS;
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE handle, VIP_PVOID at, VIP_MEM_HANDLE memory)
{
	struct nic *nic = handle;
	struct region **r, *gone;

	for (r = &nic->regions; *r && (*r)->handle != memory; r = &(*r)->next)
		;
	if (!*r || (*r)->base != (uintptr_t)at) {
		fake_violate("deregistered what was not registered");
		return VIP_INVALID_PARAMETER;
	}
	gone = *r;
	*r = gone->next;
	free(gone);
	return VIP_SUCCESS;
}

VIP_UINT64 *VipxCounter(VIP_NIC_HANDLE handle, const VIP_CHAR *name, const VIP_CHAR *help)
{
	struct nic *nic = handle;

	(void)help;
	for (uint32_t i = 0; i < COUNTERS; i++) {
		if (!nic->counter[i].name[0])
			snprintf(nic->counter[i].name, sizeof(nic->counter[i].name), "%s", name);
		if (!strcmp(nic->counter[i].name, name))
			return &nic->counter[i].value;
	}
	return NULL;
}

const VIP_UINT64 *VipxCounterAt(VIP_NIC_HANDLE handle, VIP_ULONG i, const VIP_CHAR **name, const VIP_CHAR **help)
{
	struct nic *nic = handle;

	if (i >= COUNTERS || !nic->counter[i].name[0])
		return NULL;
	*name = nic->counter[i].name;
	*help = "";
	return &nic->counter[i].value;
}

/* ---- pool buffers -------------------------------------------------------------------------------------------------------------------- */

struct buffer *fake_buffer_free(void)
{
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (!fake_net.buffer[i].owner && !fake_net.buffer[i].out)
			return &fake_net.buffer[i];
	return NULL;
}

VIP_PVOID VipxTakeBuffer(VIP_NIC_HANDLE handle)
{
	struct nic *nic = handle;
	struct buffer *buffer;
	uint32_t owned = 0;

	for (uint32_t i = 0; i < BUFFERS; i++)
		owned += fake_net.buffer[i].owner == nic;
	buffer = owned < fake_net.config.buffers ? fake_buffer_free() : NULL;
	if (!buffer)
		return NULL;
	buffer->owner = nic;
	return buffer->bytes;
}

void VipxGiveBuffer(VIP_NIC_HANDLE handle, VIP_PVOID at)
{
	struct buffer *buffer = fake_buffer_of(at);

	if (!buffer || buffer->owner != handle || (uint8_t *)at >= buffer->bytes + 64) /* a message begins in its first line */
		fake_violate("gave back a buffer that is not owned");
	else
		buffer->owner = NULL;
}

void VipxGiveBuffers(VIP_NIC_HANDLE handle, const VIPX_MESSAGE *messages, VIP_ULONG count)
{
	for (VIP_ULONG i = 0; i < count; i++)
		VipxGiveBuffer(handle, messages[i].Data);
}

void VipxBufferRead(VIP_NIC_HANDLE handle, VIP_PVOID data, VIP_ULONG length)
{
	struct buffer *buffer = fake_buffer_of(data);

	if (!buffer || buffer->owner != handle || (uint8_t *)data + length > buffer->bytes + VIPX_BUFFER_SIZE)
		fake_violate("has read a buffer that is not owned");
}

void VipxBufferCopy(VIP_NIC_HANDLE handle, VIP_PVOID to, VIP_PVOID data, VIP_ULONG length)
{
	if (fake_buffer_of(data))
		VipxBufferRead(handle, data, length);
	memcpy(to, data, length);
}

/* ---- memory in the card: any will do ------------------------------------------------------------------------------------------------- */

VIP_RETURN VipxAllocMemory(VIP_NIC_HANDLE handle, VIP_UINT64 length, VIP_PVOID *memory)
{
	(void)handle;
	*memory = aligned_alloc(4096, (length + 4095) & ~(VIP_UINT64)4095);
	return *memory ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
}

VIP_RETURN VipxFreeMemory(VIP_NIC_HANDLE handle, VIP_PVOID memory)
{
	(void)handle;
	free(memory);
	return VIP_SUCCESS;
}

static VIP_PVOID large_at;
static uint32_t large_asked;
static unsigned large_us;

VIP_RETURN VipxLargePage(VIP_NIC_HANDLE handle, VIP_PVOID at)
{
	(void)handle;
	large_at = at;
	large_asked++;
	if (large_us)
		usleep(large_us);
	return VIP_NOT_DONE;
}

void fake_large_takes(unsigned us)
{
	large_us = us;
}

uint32_t fake_large_pages(VIP_PVOID *at)
{
	*at = large_at;
	return large_asked;
}

/* ---- completion queues ----------------------------------------------------------------------------------------------------------------- */

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE handle, VIP_ULONG entries, VIP_CQ_HANDLE *out)
{
	struct nic *nic = handle;

	nic->cq = calloc(1, sizeof(*nic->cq));
	nic->cq->size = (uint32_t)entries;
	*out = nic->cq;
	return VIP_SUCCESS;
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE handle, VIP_ULONG entries)
{
	struct cq *cq = handle;

	if (entries > sizeof(cq->entry) / sizeof(cq->entry[0]))
		return VIP_ERROR_RESOURCE;
	cq->size = (uint32_t)entries;
	return VIP_SUCCESS;
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE handle)
{
	(void)handle; /* with the NIC */
	return VIP_SUCCESS;
}

static void cq_add(struct cq *cq, struct vi *vi)
{
	const uint32_t room = sizeof(cq->entry) / sizeof(cq->entry[0]);

	if (cq->tail - cq->head >= cq->size)
		fake_violate("the completion queue overflowed");
	else
		cq->entry[cq->tail++ % room] = vi;
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE handle, VIP_VI_HANDLE *vi, VIP_BOOLEAN *receive)
{
	struct cq *cq = handle;
	const uint32_t room = sizeof(cq->entry) / sizeof(cq->entry[0]);

	for (uint32_t i = 0; cq->head == cq->tail && i < fake_net.config.auto_steps; i++)
		fake_step();
	if (cq->head == cq->tail)
		return VIP_NOT_DONE;
	*vi = cq->entry[cq->head++ % room];
	*receive = VIP_TRUE;
	if (!((struct vi *)*vi)->used)
		fake_violate("a VI was destroyed with entries in the completion queue");
	return VIP_SUCCESS;
}

/* ---- VIs ------------------------------------------------------------------------------------------------------------------------------- */

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE handle, VIP_VI_ATTRIBUTES *attr, VIP_CQ_HANDLE send, VIP_CQ_HANDLE recv, VIP_VI_HANDLE *out)
{
	struct nic *nic = handle;

	if (attr->ReliabilityLevel != VIP_SERVICE_RELIABLE_DELIVERY || send)
		fake_violate("unexpected attributes of a VI");
	for (uint32_t i = 0; i < VIS; i++)
		if (!nic->vi[i].used) {
			nic->vi[i].used = true;
			nic->vi[i].nic = nic;
			nic->vi[i].cq = recv;
			*out = &nic->vi[i];
			return VIP_SUCCESS;
		}
	return VIP_ERROR_RESOURCE;
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE handle)
{
	struct vi *vi = handle;

	if (vi->state != VIP_STATE_IDLE || vi->send.done != vi->send.tail || vi->recv.done != vi->recv.tail)
		fake_violate("a VI was destroyed in use");
	vi_clear(vi);
	return VIP_SUCCESS;
}

void fake_complete(struct vi *vi, struct queue *q, uint32_t status, uint32_t len)
{
	VIP_DESCRIPTOR *desc = q->desc[q->done++ % QUEUE];

	desc->CS.Length = len;
	__atomic_store_n(&desc->CS.Status, status | VIP_STATUS_DONE, __ATOMIC_RELEASE); /* as a NIC would: status first */
	if (q == &vi->recv)
		cq_add(vi->cq, vi);
}

void fake_flush(struct vi *vi)
{
	while (vi->send.done != vi->send.tail) {
		const VIP_DESCRIPTOR *desc = vi->send.desc[vi->send.done % QUEUE];

		if (desc->CS.Control & VIP_CONTROL_POOL)
			fake_buffer_of(desc->DS[0].Local.Data.Address)->owner = NULL;
		fake_complete(vi, &vi->send, VIP_STATUS_DESC_FLUSHED_ERROR, 0);
	}
	while (vi->recv.done != vi->recv.tail)
		fake_complete(vi, &vi->recv, VIP_STATUS_DESC_FLUSHED_ERROR, 0);
}

void fake_wire_add(struct wire *wire, struct message *m)
{
	*(wire->tail ? &wire->tail->next : &wire->head) = m;
	wire->tail = m;
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE handle)
{
	struct vi *vi = handle;
	struct message *m;

	fake_flush(vi);
	vi->pending = false;
	vi->state = VIP_STATE_IDLE;
	if (!vi->peer)
		return VIP_SUCCESS;
	fake_wire_clear(&vi->peer->out);
	m = calloc(1, sizeof(*m));
	m->goodbye = true;
	fake_wire_add(&vi->out, m);
	/* The rest of our wire goes with the peer's VI, so that this one can be destroyed. */
	fake_wire_clear(&vi->peer->out);
	for (struct wire *from = &vi->out, *to = &vi->peer->out; from->head;) {
		m = from->head;
		from->head = m->next;
		m->next = NULL;
		fake_wire_add(to, m);
	}
	vi->out.tail = NULL;
	vi->peer->peer = NULL; /* what is in its own wire now comes back to it */
	vi->peer = NULL;
	return VIP_SUCCESS;
}

VIP_RETURN VipxViPeer(VIP_VI_HANDLE handle, VIP_ULONG *pid, VIP_ULONG *slot)
{
	struct vi *vi = handle;

	if (!vi->peer)
		return VIP_INVALID_STATE;
	*pid = 1;
	*slot = fake_number(vi->peer->nic);
	return VIP_SUCCESS;
}

VIP_RETURN VipxLongBegins(VIP_VI_HANDLE handle, VIP_UINT64 remote, VIP_UINT64 length, VIP_BOOLEAN single)
{
	struct vi *vi = handle;

	(void)remote;
	if (!vi || !vi->used)
		return VIP_INVALID_PARAMETER;
	if (single && length % 2 == 0)
		fake_violate("a long message of %llu bytes is single, which its sender was not told", (unsigned long long)length);
	fake_singles += single != VIP_FALSE;
	fake_longs++;
	vi->longs++;
	return VIP_SUCCESS;
}

VIP_RETURN VipxLongOver(VIP_VI_HANDLE handle, VIP_UINT64 length, VIP_BOOLEAN read, VIP_BOOLEAN single)
{
	struct vi *vi = handle;

	(void)length, (void)read, (void)single;
	if (!vi || !vi->used)
		return VIP_INVALID_PARAMETER;
	if (!vi->longs--)
		abort(); /* it never began */
	return VIP_SUCCESS;
}

VIP_RETURN VipxRatherSent(VIP_VI_HANDLE handle, const void *data, VIP_UINT64 length, VIP_BOOLEAN *single)
{
	(void)handle, (void)data;
	if (single)
		*single = length % 2 ? VIP_TRUE : VIP_FALSE;
	return length < 100 || length % 8 == 2 || length % 8 == 3 ? VIP_SUCCESS : VIP_NOT_DONE;
}

VIP_RETURN VipxBulkTurn(VIP_VI_HANDLE handle)
{
	(void)handle;
	return ++fake_turns % 3 ? VIP_SUCCESS : VIP_NOT_DONE;
}

/* ---- connections -------------------------------------------------------------------------------------------------------------------------- */

static size_t address_len(const VIP_NET_ADDRESS *a)
{
	return offsetof(VIP_NET_ADDRESS, HostAddress) + a->HostAddressLen + a->DiscriminatorLen;
}

static bool same_address(const VIP_NET_ADDRESS *a, const VIP_NET_ADDRESS *b)
{
	return address_len(a) == address_len(b) && !memcmp(a, b, address_len(a));
}

static VIP_NET_ADDRESS *address_copy(const VIP_NET_ADDRESS *a)
{
	return memcpy(malloc(address_len(a) + sizeof(*a)), a, address_len(a));
}

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS *local, VIP_NET_ADDRESS *remote, VIP_ULONG timeout)
{
	struct vi *vi = handle;

	(void)timeout;
	vi->local = address_copy(local);
	vi->remote = address_copy(remote);
	vi->pending = true;
	vi->state = VIP_STATE_CONNECT_PENDING;
	fake_net.epoch++;
	return VIP_SUCCESS;
}

static struct vi *partner(const struct vi *vi)
{
	for (uint32_t n = 0; n < NICS; n++)
		for (uint32_t i = 0; i < VIS; i++) {
			struct vi *other = &fake_net.nic[n].vi[i];

			if (other != vi && other->pending && same_address(other->local, vi->remote) &&
			    same_address(other->remote, vi->local))
				return other;
		}
	return NULL;
}

bool fake_match(struct vi *vi)
{
	struct vi *other = vi->pending ? partner(vi) : NULL;

	if (!other)
		return false;
	vi->peer = other;
	other->peer = vi;
	vi->state = other->state = VIP_STATE_CONNECTED;
	vi->pending = other->pending = false;
	return true;
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES *attr)
{
	struct vi *vi = handle;

	memset(attr, 0, sizeof(*attr));
	fake_match(vi);
	return vi->pending ? VIP_NOT_DONE : VIP_SUCCESS;
}

VIP_RETURN VipxConnectPending(VIP_NIC_HANDLE handle, VIP_ULONG *cursor, VIP_NET_ADDRESS *local, VIP_NET_ADDRESS *remote)
{
	for (; *cursor < NICS * VIS; ++*cursor) {
		const struct vi *vi = &fake_net.nic[*cursor / VIS].vi[*cursor % VIS];

		if (vi->pending && vi->nic != handle && !partner(vi)) {
			memcpy(local, vi->local, address_len(vi->local));
			memcpy(remote, vi->remote, address_len(vi->remote));
			++*cursor;
			return VIP_SUCCESS;
		}
	}
	return VIP_NOT_DONE;
}

VIP_ULONG VipxConnectEpoch(VIP_NIC_HANDLE handle)
{
	(void)handle;
	return fake_net.epoch;
}

/* One thread plays all processes, so nothing here can wait for another. */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS *local, VIP_ULONG timeout, VIP_NET_ADDRESS *remote,
                          VIP_VI_ATTRIBUTES *attr, VIP_CONN_HANDLE *conn)
{
	(void)handle, (void)local, (void)timeout, (void)remote, (void)attr, (void)conn;
	return VIP_TIMEOUT;
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE conn, VIP_VI_HANDLE vi)
{
	(void)conn, (void)vi;
	return VIP_INVALID_PARAMETER;
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE conn)
{
	(void)conn;
	return VIP_SUCCESS;
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS *local, VIP_NET_ADDRESS *remote, VIP_ULONG timeout,
                             VIP_VI_ATTRIBUTES *attr)
{
	(void)vi, (void)local, (void)remote, (void)timeout, (void)attr;
	return VIP_NO_MATCH;
}
