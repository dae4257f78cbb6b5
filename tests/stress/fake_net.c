/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test VIPL, work and network: descriptors are posted and judged, messages leave, are on their way, arrive, and are dequeued.
 */
#include "tests/stress/fake_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- work ------------------------------------------------------------------------------------------------------------------------------------ */

/* Checks one data segment of this process's own. */
static bool own_segment(struct vi *vi, const VIP_DATA_SEGMENT *s, bool pool)
{
	if (pool) {
		const struct buffer *buffer = fake_buffer_of(s->Data.Address);

		return s->Handle == VIPX_POOL_HANDLE && buffer && buffer->owner == vi->nic &&
		       (const uint8_t *)s->Data.Address + s->Length <= buffer->bytes + VIPX_BUFFER_SIZE;
	}
	return fake_region_find(vi->nic, s->Handle, (uintptr_t)s->Data.Address, s->Length) != NULL;
}

static bool post(struct vi *vi, struct queue *q, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE handle)
{
	if ((uintptr_t)desc % VIP_DESCRIPTOR_ALIGNMENT || !fake_region_find(vi->nic, handle, (uintptr_t)desc, sizeof(*desc))) {
		fake_violate("a descriptor is not in registered memory");
		return false;
	}
	if (q->tail - q->head == QUEUE) {
		fake_violate("a work queue overflowed");
		return false;
	}
	if (desc->CS.Reserved)
		fake_violate("a reserved field is not 0");
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
		fake_violate("a send names memory that is not this process's");
	if (m->pool) {
		m->data = s->Data.Address;
		fake_buffer_of(m->data)->owner = NULL;
		fake_buffer_of(m->data)->out = true;
	} else {
		m->data = malloc(m->len + 1);
		memcpy(m->data, s->Data.Address, m->len);
	}
	fake_wire_add(&vi->out, m);
}

/* False: the target does not allow it. */
static bool move(struct vi *vi, void *here, VIP_MEM_HANDLE handle, void *there, uint32_t len, bool write)
{
	const struct region *r = fake_region_find(vi->peer->nic, handle, (uintptr_t)there, len);

	if (len > 10000)
		fake_violate("an RDMA longer than the transfer size");
	if (!r || !(write ? r->write : r->read))
		return false;
	memcpy(write ? there : here, write ? here : there, len);
	return true;
}

static bool rdma(struct vi *vi, const VIP_DESCRIPTOR *desc, bool write)
{
	const VIP_ADDRESS_SEGMENT *there = &desc->DS[0].Remote;
	const VIP_DATA_SEGMENT *here = &desc->DS[1].Local;

	if (desc->CS.SegCount != 2 || here->Length != desc->CS.Length || there->Reserved || !own_segment(vi, here, false)) {
		fake_violate("a malformed RDMA descriptor");
		return false;
	}
	return move(vi, here->Data.Address, there->Handle, there->Data.Address, here->Length, write);
}

/* The oldest posted send leaves. */
/* The other end has gone, or something was wrong. */
static void broken(struct vi *vi)
{
	VIP_ERROR_DESCRIPTOR error = {.NicHandle = vi->nic, .ViHandle = vi, .ErrorCode = VIP_ERROR_CONN_LOST};

	if (vi->state != VIP_STATE_CONNECTED)
		return;
	vi->state = VIP_STATE_ERROR;
	vi->peer = NULL;
	fake_wire_clear(&vi->out);
	fake_flush(vi);
	if (vi->nic->handler && !vi->nic->dead)
		vi->nic->handler(vi->nic->context, &error);
}

static void execute(struct vi *vi)
{
	const VIP_DESCRIPTOR *desc = vi->send.desc[vi->send.done % QUEUE];
	uint32_t op = desc->CS.Control & VIP_CONTROL_OP_MASK;

	if (op == VIP_CONTROL_OP_SENDRECV) {
		send_message(vi, desc);
		fake_complete(vi, &vi->send, VIP_STATUS_OP_SEND, desc->CS.Length);
	} else if (rdma(vi, desc, op == VIP_CONTROL_OP_RDMAWRITE)) {
		fake_complete(vi, &vi->send, op == VIP_CONTROL_OP_RDMAWRITE ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_RDMA_READ,
		         desc->CS.Length);
	} else {
		fake_complete(vi, &vi->send, VIP_STATUS_RDMA_PROT_ERROR, 0);
		broken(vi);
	}
}

static bool may_leave(const struct vi *vi)
{
	return vi->used && vi->state == VIP_STATE_CONNECTED && vi->peer && vi->send.done != vi->send.tail &&
	       !vi->nic->held[fake_number(vi->peer->nic)];
}

VIP_RETURN VipPostSend(VIP_VI_HANDLE handle, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE memory)
{
	struct vi *vi = handle;

	if (!post(vi, &vi->send, desc, memory))
		return VIP_INVALID_PARAMETER;
	if (vi->state != VIP_STATE_CONNECTED)
		fake_flush(vi);
	else if (may_leave(vi) && vi->send.tail - vi->send.done == 1 && fake_random(100) < fake_net.config.instant)
		execute(vi);
	return VIP_SUCCESS;
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE handle, VIP_DESCRIPTOR *desc, VIP_MEM_HANDLE memory)
{
	struct vi *vi = handle;

	if (desc->CS.Control != VIP_CONTROL_POOL || desc->CS.SegCount != 1 || !own_segment(vi, &desc->DS[0].Local, false))
		fake_violate("a malformed receive");
	if (!post(vi, &vi->recv, desc, memory))
		return VIP_INVALID_PARAMETER;
	if (vi->state == VIP_STATE_ERROR)
		fake_flush(vi);
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

	for (uint32_t i = 0; q->head == q->done && i < fake_net.send_steps && fake_step(); i++)
		;
	return take(q, out);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE handle, VIP_DESCRIPTOR **out)
{
	return take(&((struct vi *)handle)->recv, out);
}

/* ---- the network ------------------------------------------------------------------------------------------------------- */

static void receive(struct vi *vi, struct message *m)
{
	uint32_t posted = vi->recv.tail - vi->recv.done;
	VIP_DESCRIPTOR *desc;
	uint32_t status = VIP_STATUS_OP_RECEIVE;

	if (posted < fake_net.closest)
		fake_net.closest = posted;
	if (!posted) {
		fake_violate("a message of type %u found no posted receive at NIC %u", *(uint8_t *)m->data, fake_number(vi->nic));
		return;
	}
	desc = vi->recv.desc[vi->recv.done % QUEUE];
	if (m->len <= desc->DS[0].Local.Length) {
		memcpy(desc->DS[0].Local.Data.Address, m->data, m->len);
	} else if (m->pool) {
		desc->DS[1].Local.Data.Address = m->data;
		desc->DS[1].Local.Handle = VIPX_POOL_HANDLE;
		desc->DS[1].Local.Length = (uint32_t)m->len;
		fake_buffer_of(m->data)->owner = vi->nic;
		fake_buffer_of(m->data)->out = false;
		m->pool = false;
		m->data = NULL;
		status |= VIP_STATUS_POOL;
	} else if (m->len <= VIPX_SHORT_MAX) {
		struct buffer *buffer = fake_buffer_free(); /* can_arrive has seen one */

		memcpy(buffer->bytes, m->data, m->len);
		buffer->owner = vi->nic;
		desc->DS[1].Local.Data.Address = buffer->bytes;
		desc->DS[1].Local.Handle = VIPX_POOL_HANDLE;
		desc->DS[1].Local.Length = (uint32_t)m->len;
		status |= VIP_STATUS_POOL;
	} else {
		fake_violate("a long message outside the pool");
	}
	fake_complete(vi, &vi->recv, status, (uint32_t)m->len);
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
		fake_buffer_of(m->data)->out = false;
	else
		free(m->data);
	free(m);
}

static bool can_arrive(const struct vi *vi)
{
	const struct wire *wire = vi->peer ? &vi->peer->out : &vi->out;

	if (!vi->used || vi->nic->dead || vi->nic->deaf || !wire->head || (vi->peer && vi->peer->nic->held[fake_number(vi->nic)]))
		return false;
	/* What is in no buffer may need one. */
	return wire->head->pool || wire->head->len <= 48 || fake_buffer_free();
}

bool fake_step(void)
{
	uint32_t start = fake_random(NICS * VIS), first = fake_random(2);

	for (uint32_t i = 0; i < NICS * VIS; i++) {
		uint32_t at = (start + i) % (NICS * VIS);
		struct vi *vi = &fake_net.nic[at / VIS].vi[at % VIS];

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
		if (fake_match(vi))
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
	       fake_random(100) < fake_net.config.brief;
}

VIP_RETURN VipxSendBuffer(VIP_VI_HANDLE handle, VIP_PVOID data, VIP_ULONG len)
{
	struct vi *vi = handle;
	struct buffer *buffer = fake_buffer_of(data);
	struct message *m;

	if (!buffer || buffer->owner != vi->nic || (uint8_t *)data + len > buffer->bytes + VIPX_BUFFER_SIZE)
		fake_violate("a buffer is sent that is not this process's");
	if (len <= 48 || !brief_now(vi))
		return VIP_NOT_DONE;
	m = calloc(1, sizeof(*m));
	m->pool = true;
	m->len = len;
	m->data = data;
	buffer->owner = NULL;
	buffer->out = true;
	fake_wire_add(&vi->out, m);
	return VIP_SUCCESS;
}

VIP_RETURN VipxSendShort(VIP_VI_HANDLE handle, const VIPX_SHORT *message)
{
	size_t len = sizeof(message->Head) + message->ALength + message->BLength;
	struct vi *vi = handle;
	struct message *m;
	uint8_t *to;

	if (len > VIPX_BUFFER_SIZE)
		fake_violate("a short message of %zu bytes", len);
	if (!brief_now(vi))
		return VIP_NOT_DONE;
	if (len > VIPX_SHORT_MAX) {
		to = VipxTakeBuffer(vi->nic);
		if (!to)
			return VIP_NOT_DONE;
		fake_buffer_of(to)->owner = NULL;
		fake_buffer_of(to)->out = true;
		if (len <= VIPX_BUFFER_SIZE - 64) /* as the NIC does: the second piece begins with a line */
			to += -(sizeof(message->Head) + message->ALength) % 64;
	} else {
		to = malloc(len);
	}
	m = calloc(1, sizeof(*m));
	m->len = len;
	m->pool = len > VIPX_SHORT_MAX;
	m->data = to;
	memcpy(to, &message->Head, sizeof(message->Head));
	if (message->ALength)
		memcpy(to + sizeof(message->Head), message->A, message->ALength);
	if (message->BLength)
		memcpy(to + sizeof(message->Head) + message->ALength, message->B, message->BLength);
	fake_wire_add(&vi->out, m);
	return VIP_SUCCESS;
}

VIP_RETURN VipxRdmaNow(VIP_VI_HANDLE handle, const VIPX_RDMA *r)
{
	const VIP_DATA_SEGMENT here = {.Data.AddressBits = r->Local, .Handle = r->LocalHandle, .Length = r->Length};
	struct vi *vi = handle;

	if (!own_segment(vi, &here, false) || !r->Length)
		fake_violate("a malformed RDMA command");
	if (!brief_now(vi) || vi->nic->held[fake_number(vi->peer->nic)] ||
	    !move(vi, here.Data.Address, r->RemoteHandle, (void *)(uintptr_t)r->Remote, r->Length, r->Operation == VIP_CONTROL_OP_RDMAWRITE))
		return VIP_NOT_DONE;
	return VIP_SUCCESS;
}

/* In place at once, or not this way. */
VIP_RETURN VipxRdmaPost(VIP_VI_HANDLE handle, const VIPX_POSTED *w)
{
	struct vi *vi = handle;

	if (!w->Length || w->Length > VIPX_POSTED_MAX)
		fake_violate("a malformed posted write");
	if (!brief_now(vi) || vi->nic->held[fake_number(vi->peer->nic)] ||
	    !move(vi, (void *)(uintptr_t)w->Data, w->RemoteHandle, (void *)(uintptr_t)w->Remote, w->Length, true))
		return VIP_NOT_DONE;
	return VIP_SUCCESS;
}

VIP_RETURN VipxPostedDone(VIP_NIC_HANDLE handle)
{
	(void)handle;
	return VIP_SUCCESS;
}

VIP_RETURN VipxRdmaFetch(VIP_VI_HANDLE handle, const VIPX_FETCH *r)
{
	struct vi *vi = handle;

	if (!r->Length || r->Length > VIPX_FETCH_MAX)
		fake_violate("a malformed fetch");
	if (!brief_now(vi) || vi->fetches - vi->fetched == FETCHES ||
	    !fake_region_find(vi->peer->nic, r->RemoteHandle, (uintptr_t)r->Remote, r->Length))
		return VIP_NOT_DONE;
	vi->fetch[vi->fetches++ % FETCHES] = *r;
	return VIP_SUCCESS;
}

/* Of those that are under way the oldest ends with a look, now and then. */
VIP_UINT32 VipxFetched(VIP_VI_HANDLE handle, VIP_UINT32 *status)
{
	struct vi *vi = handle;
	const VIPX_FETCH *r = &vi->fetch[vi->fetched % FETCHES];

	if (vi->fetched != vi->fetches && !vi->fetch_status && vi->state == VIP_STATE_CONNECTED && vi->peer &&
	    !vi->nic->held[fake_number(vi->peer->nic)] && fake_random(2)) {
		if (move(vi, r->To, r->RemoteHandle, (void *)(uintptr_t)r->Remote, r->Length, false))
			vi->fetched++;
		else
			vi->fetch_status = VIP_STATUS_DONE | VIP_STATUS_RDMA_PROT_ERROR;
	}
	if (status)
		*status = vi->fetch_status;
	return vi->fetched;
}

/* The next message to that VI, taken off its wire, when it may come by value. */
static bool take_value(struct vi *vi, VIPX_ARRIVAL *arrival)
{
	uint32_t posted = vi->recv.tail - vi->recv.done;
	struct message *m;

	if (vi->state != VIP_STATE_CONNECTED || !vi->peer || !can_arrive(vi) || !posted)
		return false;
	m = vi->peer->out.head;
	if (m->goodbye || (!m->pool && m->len > VIPX_SHORT_MAX))
		return false;
	if (posted < fake_net.closest)
		fake_net.closest = posted;
	*arrival = (VIPX_ARRIVAL){.ViHandle = vi, .User = vi->user, .RecvQueue = VIP_TRUE, .Length = (VIP_UINT32)m->len, .Surplus = (VIP_UINT32)fake_random(2)};
	unhook(&vi->peer->out);
	if (m->pool) {
		arrival->Message = arrival->Buffer = m->data;
		fake_buffer_of(m->data)->owner = vi->nic;
		fake_buffer_of(m->data)->out = false;
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

	if (cq->head == cq->tail && fake_net.config.brief)
		for (uint32_t n = 0, start = fake_random(NICS * VIS); n < NICS * VIS; n++) {
			struct vi *vi = &fake_net.nic[(start + n) % (NICS * VIS) / VIS].vi[(start + n) % VIS];

			if (vi->used && vi->cq == cq && fake_random(100) < fake_net.config.brief && take_value(vi, arrival))
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

	arrival->Message = fake_net.config.brief == 100 || fake_random(100) < 50 ? arrival->Data : NULL;
	if (!vi || !vi->used || vi->cq->head != vi->cq->tail || fake_random(100) >= fake_net.config.brief)
		return VIP_NOT_DONE;
	return take_value(vi, arrival) ? VIP_SUCCESS : VIP_NOT_DONE;
}

unsigned fake_expected;

VIP_RETURN VipxRecvExpected(VIP_VI_HANDLE handle, VIPX_EXPECTED *expected, VIP_ULONG looks)
{
	struct vi *vi = handle;
	const struct message *m;
	VIPX_ARRIVAL arrival;
	VIP_UINT64 key;

	if (!expected || !looks)
		fake_violate("nothing is expected, or never looked for");
	if (!vi || !vi->used || vi->cq->head != vi->cq->tail || fake_random(100) >= fake_net.config.brief)
		return VIP_NOT_DONE;
	m = vi->peer && can_arrive(vi) ? vi->peer->out.head : NULL;
	if (!m || m->goodbye || m->len < sizeof(expected->Word) + sizeof(key))
		return VIP_NOT_DONE;
	memcpy(&expected->Word, m->data, sizeof(expected->Word)); /* as the NIC does, also if it is none */
	memcpy(&key, (uint8_t *)m->data + sizeof(expected->Word), sizeof(key));
	expected->Length = (VIP_UINT32)(m->len - sizeof(expected->Word) - sizeof(key));
	if ((expected->Word ^ expected->Head) & expected->Mask || key != expected->Key || expected->Length > expected->Room || !take_value(vi, &arrival))
		return VIP_NOT_DONE;
	memcpy(expected->To, (uint8_t *)arrival.Message + sizeof(expected->Word) + sizeof(key), expected->Length);
	if (arrival.Buffer)
		VipxGiveBuffer(vi->nic, arrival.Buffer);
	fake_expected++;
	return VIP_SUCCESS;
}

VIP_ULONG VipxRecvTakeRow(VIP_VI_HANDLE handle, VIPX_BRIEF *messages, VIP_ULONG most)
{
	struct vi *vi = handle;
	VIP_ULONG n;

	for (n = 0; n < most && vi && vi->used && vi->cq->head == vi->cq->tail && fake_random(100) < fake_net.config.brief; n++) {
		VIPX_ARRIVAL arrival;
		struct message *m = vi->peer && can_arrive(vi) ? vi->peer->out.head : NULL;

		if (!m || m->pool || m->len > VIPX_BRIEF_MAX || !take_value(vi, &arrival))
			break;
		messages[n].Length = arrival.Length;
		memcpy(messages[n].Data, arrival.Message, arrival.Length);
	}
	return n;
}

VIP_ULONG VipxRecvTakeBuffers(VIP_VI_HANDLE handle, VIPX_MESSAGE *messages, VIP_ULONG most, VIP_ULONG longest)
{
	struct vi *vi = handle;
	VIP_ULONG n;

	for (n = 0; n < most && vi && vi->used && vi->cq->head == vi->cq->tail && fake_random(100) < fake_net.config.brief; n++) {
		VIPX_ARRIVAL arrival;
		struct message *m = vi->peer && can_arrive(vi) ? vi->peer->out.head : NULL;

		if (!m || !m->pool || m->len > longest || !take_value(vi, &arrival))
			break;
		messages[n].Data = arrival.Message;
		messages[n].Length = arrival.Length;
		messages[n].Surplus = arrival.Surplus;
	}
	return n;
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

void fake_shorten(VIP_NIC_HANDLE from, VIP_NIC_HANDLE to, uint32_t behind, size_t len)
{
	struct nic *a = from;

	for (uint32_t i = 0; i < VIS; i++)
		if (a->vi[i].used && a->vi[i].peer && a->vi[i].peer->nic == to)
			for (struct message *m = a->vi[i].out.head; m; m = m->next)
				if (behind-- == 0 && m->len > len)
					m->len = (uint32_t)len;
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
