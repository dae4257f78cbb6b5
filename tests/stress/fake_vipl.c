/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test VIPL: see fake_vipl.h.  Straightforward on purpose: lists, linear searches, memory from malloc.
 */
#include "tests/stress/fake_vipl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NICS = 8, VIS = 64, QUEUE = 1024, PARAMS = 64, COUNTERS = 64, BUFFERS = 512 };

struct queue { /* head .. done: complete, done .. tail: posted */
	VIP_DESCRIPTOR *desc[QUEUE];
	uint32_t head, done, tail;
};

struct message {
	struct message *next;
	void *data; /* malloc, or a pool buffer */
	size_t len;
	bool pool, goodbye;
};

struct wire {
	struct message *head, *tail;
};

struct nic;
struct vi {
	struct nic *nic;
	struct vi *peer; /* NULL when not connected, or when the other end has disconnected */
	struct cq *cq;
	VIP_VI_STATE state;
	struct queue send, recv;
	struct wire out;     /* towards the peer */
	VIP_NET_ADDRESS *local, *remote; /* of a pending request */
	bool used, pending, matched;
	VIP_PVOID user;
};

struct cq {
	struct vi *entry[16384];
	uint32_t head, tail, size;
};

struct region {
	struct region *next;
	uintptr_t base, len;
	VIP_MEM_HANDLE handle;
	bool write, read;
};

struct nic {
	bool used, dead, deaf;
	struct vi vi[VIS];
	struct cq *cq;
	struct region *regions;
	uint32_t next_handle, buffers;
	bool held[NICS];
	VIP_PVOID context;
	void (*handler)(VIP_PVOID, VIP_ERROR_DESCRIPTOR *);
	struct {
		char name[32];
		VIP_UINT64 value;
	} counter[COUNTERS];
};

struct buffer {
	_Alignas(64) uint8_t bytes[VIPX_BUFFER_SIZE];
	struct nic *owner; /* NULL: free, or on its way */
	bool out;          /* on its way */
};

static struct {
	struct fake_config config;
	uint64_t random;
	struct nic nic[NICS];
	struct buffer buffer[BUFFERS];
	char violation[256];
	uint32_t closest, refuse, send_steps;
	VIP_ULONG epoch;
	struct vipx_parameter param[PARAMS];
	char value[PARAMS][32];
	uint32_t nparams;
} net;

/* ---- judging ------------------------------------------------------------------------------------------------------------------- */

static void violate(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void violate(const char *format, ...)
{
	va_list args;

	if (net.violation[0])
		return;
	va_start(args, format);
	vsnprintf(net.violation, sizeof(net.violation), format, args);
	va_end(args);
}

const char *fake_violation(void)
{
	return net.violation[0] ? net.violation : NULL;
}

uint32_t fake_closest(void)
{
	return net.closest;
}

uint32_t fake_random(uint32_t below)
{
	net.random ^= net.random << 13;
	net.random ^= net.random >> 7;
	net.random ^= net.random << 17;
	return below ? (uint32_t)(net.random >> 33) % below : 0;
}

static uint32_t number(const struct nic *nic)
{
	return (uint32_t)(nic - net.nic);
}

static const struct region *region_find(const struct nic *nic, VIP_MEM_HANDLE handle, uintptr_t at, size_t len)
{
	const struct region *r;

	for (r = nic->regions; r; r = r->next)
		if (r->handle == handle && at >= r->base && len <= r->len && at - r->base <= r->len - len)
			return r;
	return NULL;
}

static struct buffer *buffer_of(const void *at)
{
	uintptr_t off = (uintptr_t)at - (uintptr_t)net.buffer;

	return off < sizeof(net.buffer) ? &net.buffer[off / sizeof(struct buffer)] : NULL;
}

/* ---- set-up --------------------------------------------------------------------------------------------------------------------- */

static void params_default(void)
{
	net.nparams = 0;
#define P(name_, type_, default_, level_, help_)                                                              \
	if (net.nparams < PARAMS) {                                                                           \
		snprintf(net.value[net.nparams], sizeof(net.value[0]), "%s", default_);                       \
		net.param[net.nparams] = (struct vipx_parameter){                                             \
			.name = name_, .help = help_, .type = type_, .value = net.value[net.nparams],          \
			.source = "default", .level = level_};                                                 \
		net.nparams++;                                                                                \
	}
#include "nicemu/util/params.def"
#undef P
}

static void wire_clear(struct wire *wire)
{
	struct message *m;

	while ((m = wire->head) != NULL) {
		wire->head = m->next;
		if (m->pool)
			buffer_of(m->data)->out = false;
		else
			free(m->data);
		free(m);
	}
	wire->tail = NULL;
}

static void vi_clear(struct vi *vi)
{
	wire_clear(&vi->out);
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
		nic_clear(&net.nic[i]);
	for (uint32_t i = 0; i < BUFFERS; i++)
		net.buffer[i].owner = NULL, net.buffer[i].out = false;
	net.config = *config;
	net.random = config->seed * 0x9E3779B97F4A7C15u + 0x1234567u;
	net.violation[0] = 0;
	net.closest = UINT32_MAX;
	net.refuse = net.send_steps = 0;
	net.epoch = 1;
	params_default();
}

void fake_hold(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, bool held)
{
	struct nic *nic = from;

	for (uint32_t i = 0; i < NICS; i++)
		if (!to || to == &net.nic[i])
			nic->held[i] = held;
}

void fake_deaf(VIP_NIC_HANDLE handle, bool deaf)
{
	struct nic *nic = handle;

	nic->deaf = deaf;
}

void fake_auto_steps(uint32_t steps)
{
	net.config.auto_steps = steps;
}

void fake_send_steps(uint32_t steps)
{
	net.send_steps = steps;
}

void fake_brief(uint32_t percent)
{
	net.config.brief = percent;
}

void fake_refuse_registrations(uint32_t n)
{
	net.refuse = n;
}

uint32_t fake_buffers_owned(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BUFFERS; i++)
		n += net.buffer[i].owner != NULL;
	return n;
}

/* ---- parameters ----------------------------------------------------------------------------------------------------------------- */

const struct vipx_parameter *VipxParameterFind(const VIP_CHAR *name)
{
	for (uint32_t i = 0; i < net.nparams; i++)
		if (!strcmp(net.param[i].name, name))
			return &net.param[i];
	return NULL;
}

const struct vipx_parameter *VipxParameterAt(VIP_ULONG i)
{
	return i < net.nparams ? &net.param[i] : NULL;
}

VIP_RETURN VipxParameterSet(const VIP_CHAR *name, const VIP_CHAR *value, const VIP_CHAR *source)
{
	const struct vipx_parameter *p = VipxParameterFind(name);

	if (!p)
		return VIP_NO_MATCH;
	snprintf(net.value[p - net.param], sizeof(net.value[0]), "%s", value);
	net.param[p - net.param].source = source;
	return VIP_SUCCESS;
}

void fake_param(const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	if (VipxParameterSet(name, text, "test") != VIP_SUCCESS)
		violate("no parameter %s", name);
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
		if (!net.nic[i].used) {
			net.nic[i].used = true;
			net.nic[i].next_handle = 1;
			*out = &net.nic[i];
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
			violate("a VI is left at close");
	if (nic->regions)
		violate("registered memory is left at close");
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (net.buffer[i].owner == nic)
			net.buffer[i].owner = NULL;
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
		violate("the tag was destroyed while a region used it");
	return VIP_SUCCESS;
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE handle, VIP_PVOID at, VIP_ULONG len, VIP_MEM_ATTRIBUTES *attr, VIP_MEM_HANDLE *out)
{
	struct nic *nic = handle;
	struct region *r;

	if (net.refuse) {
		net.refuse--;
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
		violate("deregistered what was not registered");
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

static struct buffer *buffer_free(void)
{
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (!net.buffer[i].owner && !net.buffer[i].out)
			return &net.buffer[i];
	return NULL;
}

VIP_PVOID VipxTakeBuffer(VIP_NIC_HANDLE handle)
{
	struct nic *nic = handle;
	struct buffer *buffer;
	uint32_t owned = 0;

	for (uint32_t i = 0; i < BUFFERS; i++)
		owned += net.buffer[i].owner == nic;
	buffer = owned < net.config.buffers ? buffer_free() : NULL;
	if (!buffer)
		return NULL;
	buffer->owner = nic;
	return buffer->bytes;
}

void VipxGiveBuffer(VIP_NIC_HANDLE handle, VIP_PVOID at)
{
	struct buffer *buffer = buffer_of(at);

	if (!buffer || buffer->owner != handle || at != buffer->bytes)
		violate("gave back a buffer that is not owned");
	else
		buffer->owner = NULL;
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

VIP_RETURN VipxLargePage(VIP_NIC_HANDLE handle, VIP_PVOID at)
{
	(void)handle;
	large_at = at;
	large_asked++;
	return VIP_NOT_DONE;
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
		violate("the completion queue overflowed");
	else
		cq->entry[cq->tail++ % room] = vi;
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE handle, VIP_VI_HANDLE *vi, VIP_BOOLEAN *receive)
{
	struct cq *cq = handle;
	const uint32_t room = sizeof(cq->entry) / sizeof(cq->entry[0]);

	for (uint32_t i = 0; cq->head == cq->tail && i < net.config.auto_steps; i++)
		fake_step();
	if (cq->head == cq->tail)
		return VIP_NOT_DONE;
	*vi = cq->entry[cq->head++ % room];
	*receive = VIP_TRUE;
	if (!((struct vi *)*vi)->used)
		violate("a VI was destroyed with entries in the completion queue");
	return VIP_SUCCESS;
}

/* ---- VIs ------------------------------------------------------------------------------------------------------------------------------- */

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE handle, VIP_VI_ATTRIBUTES *attr, VIP_CQ_HANDLE send, VIP_CQ_HANDLE recv, VIP_VI_HANDLE *out)
{
	struct nic *nic = handle;

	if (attr->ReliabilityLevel != VIP_SERVICE_RELIABLE_DELIVERY || send)
		violate("unexpected attributes of a VI");
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
		violate("a VI was destroyed in use");
	vi_clear(vi);
	return VIP_SUCCESS;
}

static void complete(struct vi *vi, struct queue *q, uint32_t status, uint32_t len)
{
	VIP_DESCRIPTOR *desc = q->desc[q->done++ % QUEUE];

	desc->CS.Length = len;
	__atomic_store_n(&desc->CS.Status, status | VIP_STATUS_DONE, __ATOMIC_RELEASE); /* as a NIC would: status first */
	if (q == &vi->recv)
		cq_add(vi->cq, vi);
}

static void flush(struct vi *vi)
{
	while (vi->send.done != vi->send.tail) {
		const VIP_DESCRIPTOR *desc = vi->send.desc[vi->send.done % QUEUE];

		if (desc->CS.Control & VIP_CONTROL_POOL)
			buffer_of(desc->DS[0].Local.Data.Address)->owner = NULL;
		complete(vi, &vi->send, VIP_STATUS_DESC_FLUSHED_ERROR, 0);
	}
	while (vi->recv.done != vi->recv.tail)
		complete(vi, &vi->recv, VIP_STATUS_DESC_FLUSHED_ERROR, 0);
}

/* The other end has gone, or something was wrong. */
static void broken(struct vi *vi)
{
	VIP_ERROR_DESCRIPTOR error = {.NicHandle = vi->nic, .ViHandle = vi, .ErrorCode = VIP_ERROR_CONN_LOST};

	if (vi->state != VIP_STATE_CONNECTED)
		return;
	vi->state = VIP_STATE_ERROR;
	vi->peer = NULL;
	wire_clear(&vi->out);
	flush(vi);
	if (vi->nic->handler && !vi->nic->dead)
		vi->nic->handler(vi->nic->context, &error);
}

static void wire_add(struct wire *wire, struct message *m)
{
	*(wire->tail ? &wire->tail->next : &wire->head) = m;
	wire->tail = m;
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE handle)
{
	struct vi *vi = handle;
	struct message *m;

	flush(vi);
	vi->pending = false;
	vi->state = VIP_STATE_IDLE;
	if (!vi->peer)
		return VIP_SUCCESS;
	wire_clear(&vi->peer->out);
	m = calloc(1, sizeof(*m));
	m->goodbye = true;
	wire_add(&vi->out, m);
	/* The rest of our wire goes with the peer's VI, so that this one can be destroyed. */
	wire_clear(&vi->peer->out);
	for (struct wire *from = &vi->out, *to = &vi->peer->out; from->head;) {
		m = from->head;
		from->head = m->next;
		m->next = NULL;
		wire_add(to, m);
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
	*slot = number(vi->peer->nic);
	return VIP_SUCCESS;
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
	net.epoch++;
	return VIP_SUCCESS;
}

static struct vi *partner(const struct vi *vi)
{
	for (uint32_t n = 0; n < NICS; n++)
		for (uint32_t i = 0; i < VIS; i++) {
			struct vi *other = &net.nic[n].vi[i];

			if (other != vi && other->pending && same_address(other->local, vi->remote) &&
			    same_address(other->remote, vi->local))
				return other;
		}
	return NULL;
}

static bool match(struct vi *vi)
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
	match(vi);
	return vi->pending ? VIP_NOT_DONE : VIP_SUCCESS;
}

VIP_RETURN VipxConnectPending(VIP_NIC_HANDLE handle, VIP_ULONG *cursor, VIP_NET_ADDRESS *local, VIP_NET_ADDRESS *remote)
{
	for (; *cursor < NICS * VIS; ++*cursor) {
		const struct vi *vi = &net.nic[*cursor / VIS].vi[*cursor % VIS];

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
	return net.epoch;
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

/* ---- work ------------------------------------------------------------------------------------------------------------------------------------ */

/* Checks one data segment of this process's own. */
static bool own_segment(struct vi *vi, const VIP_DATA_SEGMENT *s, bool pool)
{
	if (pool) {
		const struct buffer *buffer = buffer_of(s->Data.Address);

		return s->Handle == VIPX_POOL_HANDLE && buffer && buffer->owner == vi->nic &&
		       (const uint8_t *)s->Data.Address + s->Length <= buffer->bytes + VIPX_BUFFER_SIZE;
	}
	return region_find(vi->nic, s->Handle, (uintptr_t)s->Data.Address, s->Length) != NULL;
}

static bool post(struct vi *vi, struct queue *q, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	if ((uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT || !region_find(vi->nic, handle, (uintptr_t)desc, sizeof(*desc))) {
		violate("a descriptor is not in registered memory");
		return false;
	}
	if (q->tail - q->head == QUEUE) {
		violate("a work queue overflowed");
		return false;
	}
	if (desc->CS.Reserved)
		violate("a reserved field is not 0");
	desc->CS.Status = 0;
	q->desc[q->tail++ % QUEUE] = desc;
	return true;
}

static void send_message(struct vi *vi, const VIP_DESCRIPTOR *desc)
{
	const VIP_DATA_SEGMENT *s = &desc->DS[0].Local;
	struct message *m = calloc(1, sizeof(*m));

	m->pool = desc->CS.Control & VIP_CONTROL_POOL;
	m->len = desc->CS.Length;
	if (desc->CS.SegCount != 1 || s->Length != desc->CS.Length || !own_segment(vi, s, m->pool))
		violate("a send names memory that is not this process's");
	if (m->pool) {
		m->data = s->Data.Address;
		buffer_of(m->data)->owner = NULL;
		buffer_of(m->data)->out = true;
	} else {
		m->data = malloc(m->len + 1);
		memcpy(m->data, s->Data.Address, m->len);
	}
	wire_add(&vi->out, m);
}

static bool rdma(struct vi *vi, const VIP_DESCRIPTOR *desc, bool write)
{
	const VIP_ADDRESS_SEGMENT *there = &desc->DS[0].Remote;
	const VIP_DATA_SEGMENT *here = &desc->DS[1].Local;
	const struct region *r = region_find(vi->peer->nic, there->Handle, (uintptr_t)there->Data.Address, here->Length);

	if (desc->CS.SegCount != 2 || here->Length != desc->CS.Length || there->Reserved || !own_segment(vi, here, false)) {
		violate("a malformed RDMA descriptor");
		return false;
	}
	if (here->Length > 10000)
		violate("an RDMA longer than the transfer size");
	if (!r || !(write ? r->write : r->read))
		return false;
	memcpy(write ? there->Data.Address : here->Data.Address, write ? here->Data.Address : there->Data.Address, here->Length);
	return true;
}

/* The oldest posted send leaves. */
static void execute(struct vi *vi)
{
	const VIP_DESCRIPTOR *desc = vi->send.desc[vi->send.done % QUEUE];
	uint32_t op = desc->CS.Control & VIP_CONTROL_OP_MASK;

	if (op == VIP_CONTROL_OP_SENDRECV) {
		send_message(vi, desc);
		complete(vi, &vi->send, VIP_STATUS_OP_SEND, desc->CS.Length);
	} else if (rdma(vi, desc, op == VIP_CONTROL_OP_RDMAWRITE)) {
		complete(vi, &vi->send, op == VIP_CONTROL_OP_RDMAWRITE ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_RDMA_READ,
		         desc->CS.Length);
	} else {
		complete(vi, &vi->send, VIP_STATUS_RDMA_PROT_ERROR, 0);
		broken(vi);
	}
}

static bool may_leave(const struct vi *vi)
{
	return vi->used && vi->state == VIP_STATE_CONNECTED && vi->peer && vi->send.done != vi->send.tail &&
	       !vi->nic->held[number(vi->peer->nic)];
}

VIP_RETURN VipPostSend(VIP_VI_HANDLE handle, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE memory)
{
	struct vi *vi = handle;

	if (!post(vi, &vi->send, desc, memory))
		return VIP_INVALID_PARAMETER;
	if (vi->state != VIP_STATE_CONNECTED)
		flush(vi);
	else if (may_leave(vi) && vi->send.tail - vi->send.done == 1 && fake_random(100) < net.config.instant)
		execute(vi);
	return VIP_SUCCESS;
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE handle, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE memory)
{
	struct vi *vi = handle;

	if (desc->CS.Control != VIP_CONTROL_POOL || desc->CS.SegCount != 1 || !own_segment(vi, &desc->DS[0].Local, false))
		violate("a malformed receive");
	if (!post(vi, &vi->recv, desc, memory))
		return VIP_INVALID_PARAMETER;
	if (vi->state == VIP_STATE_ERROR)
		flush(vi);
	return VIP_SUCCESS;
}

static VIP_RETURN take(struct queue *q, VIP_DESCRIPTOR **out)
{
	if (q->head == q->tail) {
		*out = NULL;
		return VIP_DESCRIPTOR_ERROR;
	}
	if (q->head == q->done)
		return VIP_NOT_DONE;
	*out = q->desc[q->head++ % QUEUE];
	return (*out)->CS.Status & VIP_STATUS_ERROR_MASK ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

VIP_RETURN VipSendDone(VIP_VI_HANDLE handle, VIP_DESCRIPTOR **out)
{
	struct queue *q = &((struct vi *)handle)->send;

	for (uint32_t i = 0; q->head == q->done && i < net.send_steps && fake_step(); i++)
		;
	return take(q, out);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE handle, VIP_DESCRIPTOR **out)
{
	return take(&((struct vi *)handle)->recv, out);
}

/* ---- the network --------------------------------------------------------------------------------------------------------------------------------- */

static void receive(struct vi *vi, struct message *m)
{
	uint32_t posted = vi->recv.tail - vi->recv.done;
	VIP_DESCRIPTOR *desc;
	uint32_t status = VIP_STATUS_OP_RECEIVE;

	if (posted < net.closest)
		net.closest = posted;
	if (!posted) {
		violate("a message of type %u found no posted receive at NIC %u", *(uint8_t *)m->data, number(vi->nic));
		return;
	}
	desc = vi->recv.desc[vi->recv.done % QUEUE];
	if (m->len <= desc->DS[0].Local.Length) {
		memcpy(desc->DS[0].Local.Data.Address, m->data, m->len);
	} else if (m->pool) {
		desc->DS[1].Local.Data.Address = m->data;
		desc->DS[1].Local.Handle = VIPX_POOL_HANDLE;
		desc->DS[1].Local.Length = (uint32_t)m->len;
		buffer_of(m->data)->owner = vi->nic;
		buffer_of(m->data)->out = false;
		m->pool = false;
		m->data = NULL;
		status |= VIP_STATUS_POOL;
	} else if (m->len <= VIPX_SHORT_MAX) {
		struct buffer *buffer = buffer_free(); /* can_arrive has seen one */

		memcpy(buffer->bytes, m->data, m->len);
		buffer->owner = vi->nic;
		desc->DS[1].Local.Data.Address = buffer->bytes;
		desc->DS[1].Local.Handle = VIPX_POOL_HANDLE;
		desc->DS[1].Local.Length = (uint32_t)m->len;
		status |= VIP_STATUS_POOL;
	} else {
		violate("a long message outside the pool");
	}
	complete(vi, &vi->recv, status, (uint32_t)m->len);
}

static struct message *unhook(struct wire *wire)
{
	struct message *m = wire->head;

	wire->head = m->next;
	if (!wire->head)
		wire->tail = NULL;
	return m;
}

/* The oldest message towards vi arrives; from the peer's wire, or its own when the peer has disconnected. */
static void arrive(struct vi *vi, struct wire *wire)
{
	struct message *m = unhook(wire);

	if (m->goodbye)
		broken(vi);
	else if (vi->state == VIP_STATE_CONNECTED)
		receive(vi, m);
	if (m->pool)
		buffer_of(m->data)->out = false;
	else
		free(m->data);
	free(m);
}

static bool can_arrive(const struct vi *vi)
{
	const struct wire *wire = vi->peer ? &vi->peer->out : &vi->out;

	if (!vi->used || vi->nic->dead || vi->nic->deaf || !wire->head || (vi->peer && vi->peer->nic->held[number(vi->nic)]))
		return false;
	/* What is in no buffer may need one. */
	return wire->head->pool || wire->head->len <= 48 || buffer_free();
}

bool fake_step(void)
{
	uint32_t start = fake_random(NICS * VIS), first = fake_random(2);

	for (uint32_t i = 0; i < NICS * VIS; i++) {
		uint32_t at = (start + i) % (NICS * VIS);
		struct vi *vi = &net.nic[at / VIS].vi[at % VIS];

		if (!vi->used)
			continue;
		for (uint32_t kind = 0; kind < 2; kind++) {
			if ((kind ^ first) && may_leave(vi)) {
				execute(vi);
				return true;
			}
			if (!(kind ^ first) && can_arrive(vi)) {
				arrive(vi, vi->peer ? &vi->peer->out : &vi->out);
				return true;
			}
		}
		if (match(vi))
			return true;
	}
	return false;
}

void fake_run(void)
{
	while (fake_step())
		;
}

VIP_RETURN VipSetUserData(VIP_VI_HANDLE handle, VIP_PVOID user)
{
	((struct vi *)handle)->user = user;
	return VIP_SUCCESS;
}

/* May a message leave by command alone? */
static bool brief_now(const struct vi *vi)
{
	return vi->used && vi->state == VIP_STATE_CONNECTED && vi->peer && vi->send.done == vi->send.tail &&
	       fake_random(100) < net.config.brief;
}

VIP_RETURN VipxSendBuffer(VIP_VI_HANDLE handle, VIP_PVOID data, VIP_ULONG len)
{
	struct vi *vi = handle;
	struct buffer *buffer = buffer_of(data);
	struct message *m;

	if (!buffer || buffer->owner != vi->nic || (uint8_t *)data + len > buffer->bytes + VIPX_BUFFER_SIZE)
		violate("a buffer is sent that is not this process's");
	if (len <= 48 || !brief_now(vi))
		return VIP_NOT_DONE;
	m = calloc(1, sizeof(*m));
	m->pool = true;
	m->len = len;
	m->data = data;
	buffer->owner = NULL;
	buffer->out = true;
	wire_add(&vi->out, m);
	return VIP_SUCCESS;
}

VIP_RETURN VipxSendShort(VIP_VI_HANDLE handle, const VIPX_SHORT *message)
{
	size_t len = sizeof(message->Head) + message->ALength + message->BLength;
	struct vi *vi = handle;
	struct message *m;
	uint8_t *to;

	if (len > VIPX_SHORT_MAX)
		violate("a short message of %zu bytes", len);
	if (!brief_now(vi))
		return VIP_NOT_DONE;
	m = calloc(1, sizeof(*m));
	m->len = len;
	m->data = to = malloc(len);
	memcpy(to, &message->Head, sizeof(message->Head));
	if (message->ALength)
		memcpy(to + sizeof(message->Head), message->A, message->ALength);
	if (message->BLength)
		memcpy(to + sizeof(message->Head) + message->ALength, message->B, message->BLength);
	wire_add(&vi->out, m);
	return VIP_SUCCESS;
}

/* The next message to that VI, taken off its wire, when it may come by value. */
static bool take_value(struct vi *vi, VIPX_ARRIVAL *arrival)
{
	uint32_t posted = vi->recv.tail - vi->recv.done;
	struct message *m;

	if (vi->state != VIP_STATE_CONNECTED || !vi->peer || !can_arrive(vi) || !posted)
		return false;
	m = vi->peer->out.head;
	if (m->goodbye || (!m->pool && m->len > VIPX_SHORT_MAX) || (m->pool && m->len <= 48))
		return false;
	if (posted < net.closest)
		net.closest = posted;
	*arrival = (VIPX_ARRIVAL){.ViHandle = vi, .User = vi->user, .RecvQueue = VIP_TRUE, .Length = (VIP_UINT32)m->len};
	unhook(&vi->peer->out);
	if (m->pool) {
		arrival->Message = arrival->Buffer = m->data;
		buffer_of(m->data)->owner = vi->nic;
		buffer_of(m->data)->out = false;
	} else {
		arrival->Message = arrival->Data;
		memcpy(arrival->Data, m->data, m->len);
		free(m->data);
	}
	free(m);
	return true;
}

VIP_RETURN VipxCQTake(VIP_CQ_HANDLE handle, VIPX_ARRIVAL *arrival)
{
	const struct cq *cq = handle;
	VIP_RETURN result;

	if (cq->head == cq->tail && net.config.brief)
		for (uint32_t n = 0, start = fake_random(NICS * VIS); n < NICS * VIS; n++) {
			struct vi *vi = &net.nic[(start + n) % (NICS * VIS) / VIS].vi[(start + n) % VIS];

			if (vi->used && vi->cq == cq && fake_random(100) < net.config.brief && take_value(vi, arrival))
				return VIP_SUCCESS;
		}
	result = VipCQDone(handle, &arrival->ViHandle, &arrival->RecvQueue);
	arrival->Descriptor = NULL;
	if (result != VIP_SUCCESS)
		return result;
	return arrival->RecvQueue ? VipRecvDone(arrival->ViHandle, &arrival->Descriptor) : VipSendDone(arrival->ViHandle, &arrival->Descriptor);
}

VIP_RETURN VipxRecvTake(VIP_VI_HANDLE handle, VIPX_ARRIVAL *arrival)
{
	struct vi *vi = handle;

	arrival->Message = fake_random(100) < 50 ? arrival->Data : NULL;
	if (!vi || !vi->used || vi->cq->head != vi->cq->tail || fake_random(100) >= net.config.brief)
		return VIP_NOT_DONE;
	return take_value(vi, arrival) ? VIP_SUCCESS : VIP_NOT_DONE;
}

bool fake_crowded;
unsigned fake_rests;

VIP_ULONG VipxWaitPlan(VIP_NIC_HANDLE handle, VIPX_WAIT *wait, VIP_ULONG longest)
{
	(void)handle;
	(void)longest;
	wait->Rest = fake_crowded ? VIPX_REST_YIELD : VIPX_REST_SPIN;
	return fake_crowded ? 1 : 256;
}

void VipxWaitLook(VIPX_WAIT *wait)
{
	(void)wait;
}

void VipxWaitRest(VIPX_WAIT *wait)
{
	(void)wait;
	fake_rests++;
}

int VipxPoll(VIP_NIC_HANDLE handle)
{
	(void)handle;
	return fake_step();
}

void fake_kill(VIP_NIC_HANDLE handle)
{
	struct nic *nic = handle;

	nic->dead = true;
	for (uint32_t i = 0; i < VIS; i++)
		if (nic->vi[i].used)
			VipDisconnect(&nic->vi[i]);
}

static void each_posted(const struct queue *q, uint32_t from, uint32_t to, bool arrived,
                        void (*fn)(void *, const void *, size_t), void *arg)
{
	for (; from != to; from++) {
		const VIP_DESCRIPTOR *desc = q->desc[from % QUEUE];
		const void *data = desc->DS[0].Local.Data.Address;

		if (desc->CS.Control & VIP_CONTROL_OP_MASK || (arrived && desc->CS.Status & VIP_STATUS_ERROR_MASK))
			continue;
		if (arrived && desc->CS.Status & VIP_STATUS_POOL)
			data = desc->DS[1].Local.Data.Address;
		fn(arg, data, desc->CS.Length);
	}
}

void fake_in_flight(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, void (*fn)(void *arg, const void *packet, size_t len), void *arg)
{
	struct nic *a = from;

	for (uint32_t i = 0; i < VIS; i++) {
		const struct vi *vi = &a->vi[i];

		if (!vi->used || !vi->peer || vi->peer->nic != to)
			continue;
		each_posted(&vi->send, vi->send.done, vi->send.tail, false, fn, arg);
		for (const struct message *m = vi->out.head; m; m = m->next)
			if (!m->goodbye)
				fn(arg, m->data, m->len);
		each_posted(&vi->peer->recv, vi->peer->recv.head, vi->peer->recv.done, true, fn, arg);
	}
}
