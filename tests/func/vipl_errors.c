/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL operations that must fail, in two processes: no receive posted, a receive too small, refused memory, malformed
 * descriptors; each at the three reliability levels, with its status at both ends, its asynchronous error, and what
 * becomes of the connection.
 */
#include "tests/func/vipl_two.h"

static VIP_RELIABILITY_LEVEL level; /* of the case that runs */

static bool reliable(void)
{
	return level != VIP_SERVICE_UNRELIABLE;
}

static void at_each_level(side_fn *server, side_fn *client)
{
	for (size_t i = 0; i < sizeof two_levels / sizeof *two_levels; i++) {
		level = two_levels[i];
		two(server, client);
	}
}

/* ---- asynchronous errors are collected ---- */

static unsigned events[16];
static VIP_ERROR_DESCRIPTOR last_event;

static void collect(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	CHECK(context == events);
	if ((unsigned)error->ErrorCode < 16)
		events[error->ErrorCode]++;
	last_event = *error;
}

static void open_collecting(struct side *s)
{
	side_connect(s, level, NULL);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, events, collect));
}

/* Is the connection as it must be after an error: broken when it is reliable, alive when not? */
static void aftermath(struct side *s)
{
	if (reliable()) {
		CHECK(vi_becomes(s->vi, VIP_STATE_ERROR));
		return;
	}
	CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
	/* And it still works. */
	if (s->server) {
		VIP_DESCRIPTOR *d = desc_make(s, 900, s->data, 64);

		post_recv(s, d);
		meet(s);
		received(s, d, VIP_SUCCESS);
	} else {
		VIP_DESCRIPTOR *d = desc_make(s, 900, s->data, 33);

		meet(s);
		post_send(s, d);
		sent(s, d, VIP_SUCCESS);
	}
}

static void finish(struct side *s)
{
	aftermath(s);
	meet(s);
	side_close(s);
}

/* ---- no receive is posted ---- */

static size_t message; /* bytes of the case that runs */

/* Until a message has come that found no receive. */
static void found_nothing(struct side *s)
{
	for (int i = 0; i < SOON && !events[VIP_ERROR_RECVQ_EMPTY]; i++) {
		VipxPoll(s->nic);
		usleep(1000);
	}
	CHECK_EQ(events[VIP_ERROR_RECVQ_EMPTY], 1);
}

static void nothing_posted_server(struct side *s)
{
	open_collecting(s);
	meet(s);
	found_nothing(s);
	CHECK(last_event.ViHandle == s->vi && last_event.NicHandle == s->nic);
	CHECK_EQ(last_event.ResourceCode, VIP_RESOURCE_VI);
	finish(s);
}

static void nothing_posted_client(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;

	open_collecting(s);
	meet(s);
	d = desc_make(s, 0, message ? s->data : NULL, message);
	post_send(s, d);
	switch (level) {
	case VIP_SERVICE_UNRELIABLE:
		CHECK_EQ(sent(s, d, VIP_SUCCESS) & VIP_STATUS_ERROR_MASK, 0);
		break;
	case VIP_SERVICE_RELIABLE_DELIVERY:
		/* Accepted or broken, but it ends. */
		CHECK(VipSendWait(s->vi, SOON, &done) != VIP_TIMEOUT);
		break;
	default:
		CHECK(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_REMOTE_DESC_ERROR);
	}
	finish(s);
}

static void no_receive_posted(void)
{
	static const size_t messages[] = { 0, 40, 4000, 200000 };

	for (size_t i = 0; i < 4; i++) {
		message = messages[i];
		at_each_level(nothing_posted_server, nothing_posted_client);
	}
}

/* ---- the receive is too small ---- */

static void too_small_server(struct side *s)
{
	VIP_DESCRIPTOR *d;

	open_collecting(s);
	memset(s->data, 0x11, message + 64);
	d = desc_make(s, 0, s->data, message - 1);
	post_recv(s, d);
	meet(s);
	CHECK(received(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_LENGTH_ERROR);
	CHECK_EQ(s->data[message - 1], 0x11);
	finish(s);
}

static void too_small_client(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;

	open_collecting(s);
	meet(s);
	memset(s->data, 0x22, message);
	d = desc_make(s, 0, s->data, message);
	post_send(s, d);
	if (level == VIP_SERVICE_UNRELIABLE)
		sent(s, d, VIP_SUCCESS);
	else if (level == VIP_SERVICE_RELIABLE_DELIVERY)
		CHECK(VipSendWait(s->vi, SOON, &done) != VIP_TIMEOUT);
	else
		CHECK(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_REMOTE_DESC_ERROR);
	finish(s);
}

static void receive_too_small(void)
{
	static const size_t messages[] = { 40, 4000, 200000 };

	for (size_t i = 0; i < 3; i++) {
		message = messages[i];
		at_each_level(too_small_server, too_small_client);
	}
}

/* ---- local protection ---- */

enum bad_memory { WRONG_HANDLE, ZERO_HANDLE, OUTSIDE, FOREIGN_TAG, ENDS_OUTSIDE, DEREGISTERED, BAD_MEMORIES };
static enum bad_memory bad_memory; /* of the case that runs */

static void spoil(struct side *s, VIP_DESCRIPTOR *d, unsigned seg)
{
	VIP_MEM_ATTRIBUTES attr = { 0 };
	VIP_MEM_HANDLE handle;

	VIP(VIP_SUCCESS, VipCreatePtag(s->nic, &attr.Ptag));
	VIP(VIP_SUCCESS, VipRegisterMem(s->nic, s->mem, SIDE_MEMORY, &attr, &handle));
	switch (bad_memory) {
	case WRONG_HANDLE:
		d->DS[seg].Local.Handle = 0x7FFFFFF1;
		break;
	case ZERO_HANDLE:
		d->DS[seg].Local.Handle = 0;
		break;
	case OUTSIDE:
		d->DS[seg].Local.Data.Address = s->mem - 8;
		break;
	case ENDS_OUTSIDE:
		d->DS[seg].Local.Data.Address = s->mem + SIDE_MEMORY - d->DS[seg].Local.Length + 1;
		break;
	case FOREIGN_TAG:
		d->DS[seg].Local.Handle = handle;
		break;
	case DEREGISTERED:
		VIP(VIP_SUCCESS, VipDeregisterMem(s->nic, s->mem, handle));
		d->DS[seg].Local.Handle = handle;
		break;
	default:
		CHECK(false);
	}
}

static void at_each_bad_memory(side_fn *server, side_fn *client)
{
	static const size_t messages[] = { 40, 4000, 200000 };

	for (bad_memory = 0; bad_memory < BAD_MEMORIES; bad_memory++)
		for (size_t i = 0; i < 3; i++) {
			message = messages[i];
			at_each_level(server, client);
		}
}

static void protected_send_server(struct side *s)
{
	open_collecting(s);
	post_recv(s, desc_make(s, 0, s->data, message));
	meet(s);
	if (reliable())
		received(s, desc_at(s, 0), VIP_DESCRIPTOR_ERROR); /* flushed */
	else
		meet(s);
	if (!reliable())
		VIP(VIP_SUCCESS, VipDisconnect(s->vi)); /* nothing came: the receive is still there */
	else
		aftermath(s);
	meet(s);
	side_close(s);
}

static void protected_send_client(struct side *s)
{
	VIP_DESCRIPTOR *d, *later;

	open_collecting(s);
	meet(s);
	d = desc_make(s, 0, s->data, message);
	spoil(s, d, 0);
	post_send(s, d);
	CHECK_EQ(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_ERROR_MASK, VIP_STATUS_PROTECTION_ERROR);
	if (reliable()) {
		CHECK_EQ(vi_state(s->vi), VIP_STATE_ERROR);
		later = desc_make(s, 1, s->data, 8);
		post_send(s, later);
		CHECK(sent(s, later, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_DESC_FLUSHED_ERROR);
	} else {
		CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
		meet(s);
	}
	meet(s);
	side_close(s);
}

static void send_from_refused_memory(void)
{
	at_each_bad_memory(protected_send_server, protected_send_client);
}

static void protected_recv_server(struct side *s)
{
	VIP_DESCRIPTOR *d;

	open_collecting(s);
	d = desc_make(s, 0, s->data, message);
	spoil(s, d, 0);
	post_recv(s, d);
	meet(s);
	CHECK(received(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_PROTECTION_ERROR);
	/* The refused receive is used up, so an unreliable message finds none; before it came, no other may be posted. */
	if (!reliable())
		found_nothing(s);
	finish(s);
}

static void protected_recv_client(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;
	VIP_RETURN result;

	open_collecting(s);
	meet(s);
	d = desc_make(s, 0, s->data, message);
	post_send(s, d);
	result = VipSendWait(s->vi, SOON, &done);
	CHECK(result == VIP_SUCCESS || result == VIP_DESCRIPTOR_ERROR);
	if (level == VIP_SERVICE_UNRELIABLE)
		VIP(VIP_SUCCESS, result);
	if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
		VIP(VIP_DESCRIPTOR_ERROR, result);
		CHECK(d->CS.Status & (VIP_STATUS_REMOTE_DESC_ERROR | VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_DESC_FLUSHED_ERROR));
	}
	finish(s);
}

static void receive_into_refused_memory(void)
{
	at_each_bad_memory(protected_recv_server, protected_recv_client);
}

/* ---- RDMA into memory that the target does not open ---- */

enum refusal { R_HANDLE, R_ZERO, R_RANGE, R_END, R_WRAP, R_REGION_RIGHT, R_VI_RIGHT, R_TAG, R_DEREGISTERED, REFUSALS };
static enum refusal refusal;      /* of the case that runs */
static VIP_UINT16 rdma_operation; /* likewise */

static void refusing_target(struct side *s)
{
	VIP_MEM_ATTRIBUTES mem = { 0 };
	VIP_VI_ATTRIBUTES attr;
	VIP_MEM_HANDLE handle;
	struct remote unused;

	side_open(s);
	mem.Ptag = s->ptag;
	mem.EnableRdmaWrite = mem.EnableRdmaRead = VIP_TRUE;
	if (refusal == R_REGION_RIGHT)
		*(rdma_operation == VIP_CONTROL_OP_RDMAREAD ? &mem.EnableRdmaRead : &mem.EnableRdmaWrite) = VIP_FALSE;
	if (refusal == R_TAG)
		VIP(VIP_SUCCESS, VipCreatePtag(s->nic, &mem.Ptag));
	VIP(VIP_SUCCESS, VipRegisterMem(s->nic, s->data, 1 << 20, &mem, &handle));
	if (refusal == R_DEREGISTERED)
		VIP(VIP_SUCCESS, VipDeregisterMem(s->nic, s->data, handle));
	attr = vi_attributes(s, level);
	if (refusal == R_VI_RIGHT)
		*(rdma_operation == VIP_CONTROL_OP_RDMAREAD ? &attr.EnableRdmaRead : &attr.EnableRdmaWrite) = VIP_FALSE;
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, &s->vi));
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, events, collect));
	memset(s->mem + SIDE_DATA, 0x77, 2 << 20);
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "two"));
	exchange_memory(s, s->data, handle, &unused);
	meet(s);
	for (size_t i = 0; i < 2 << 20; i++)
		if (s->data[i] != 0x77) {
			CHECK_EQ(s->data[i], 0x77);
			break;
		}
	aftermath(s);
	if (refusal != R_DEREGISTERED)
		VIP(VIP_SUCCESS, VipDeregisterMem(s->nic, s->data, handle));
	meet(s);
	side_close(s);
}

static void refused_originator(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *d, *done;
	VIP_RETURN result;
	size_t offset = 0;

	side_open(s);
	s->vi = vi_new(s, level);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, events, collect));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "two"));
	exchange_memory(s, s->data, s->handle, &there);
	there.handle = refusal == R_HANDLE ? there.handle + 0x10000 : refusal == R_ZERO ? 0 : there.handle;
	offset = refusal == R_RANGE ? (1 << 20) : refusal == R_END ? (1 << 20) - message + 1 : 0;
	if (refusal == R_WRAP)
		there.at = ~(uint64_t)0 - 10;
	d = desc_rdma(s, 0, rdma_operation, s->data, message, &there, offset);
	memset(s->data, 0x33, message);
	post_send(s, d);
	result = VipSendWait(s->vi, SOON, &done);
	if (level == VIP_SERVICE_UNRELIABLE && rdma_operation == VIP_CONTROL_OP_RDMAWRITE)
		VIP(VIP_SUCCESS, result);
	else
		CHECK(result == VIP_DESCRIPTOR_ERROR || level == VIP_SERVICE_RELIABLE_DELIVERY);
	if (level == VIP_SERVICE_RELIABLE_RECEPTION)
		CHECK(d->CS.Status & VIP_STATUS_RDMA_PROT_ERROR);
	if (reliable())
		CHECK(vi_becomes(s->vi, VIP_STATE_ERROR));
	meet(s);
	finish(s);
}

static void refused_rdma(VIP_UINT16 operation)
{
	rdma_operation = operation;
	for (refusal = 0; refusal < REFUSALS; refusal++)
		for (message = 40; message < 300000; message *= 70)
			at_each_level(refusing_target, refused_originator);
}

static void write_to_refused_memory(void)
{
	refused_rdma(VIP_CONTROL_OP_RDMAWRITE);
}

static void read_from_refused_memory(void)
{
	refused_rdma(VIP_CONTROL_OP_RDMAREAD);
}

/* ---- the local end of an RDMA ---- */

static void plain_target(struct side *s)
{
	struct remote unused;

	open_collecting(s);
	exchange_memory(s, s->data, s->handle, &unused);
	memset(s->data, 0x77, message);
	meet(s);
	meet(s);
	for (size_t i = 0; i < message; i++)
		if (s->data[i] != 0x77) {
			CHECK_EQ(s->data[i], 0x77);
			break;
		}
	finish(s);
}

static void locally_refused_originator(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *d;

	open_collecting(s);
	exchange_memory(s, s->data, s->handle, &there);
	meet(s);
	d = desc_rdma(s, 0, rdma_operation, s->data, message, &there, 0);
	spoil(s, d, 1);
	post_send(s, d);
	CHECK_EQ(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_ERROR_MASK, VIP_STATUS_PROTECTION_ERROR);
	meet(s);
	finish(s);
}

static void rdma_with_refused_local_memory(void)
{
	for (unsigned i = 0; i < 2; i++) {
		rdma_operation = i ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_RDMAWRITE;
		at_each_bad_memory(plain_target, locally_refused_originator);
	}
}

/* ---- malformed descriptors ---- */

enum malformed { M_OPCODE, M_RESERVED_BITS, M_RESERVED_WORD, M_OVERLONG, M_NO_ADDRESS, M_ADDRESS_RESERVED, M_LENGTH_LESS,
	         M_LENGTH_MORE, M_TOO_LONG, MALFORMED };
static enum malformed malformed; /* of the case that runs */

static VIP_UINT32 deform(struct side *s, VIP_DESCRIPTOR *d)
{
	struct remote here = { (uint64_t)(uintptr_t)s->data, s->handle };

	desc_make(s, 0, s->data, 64);
	switch (malformed) {
	case M_OPCODE:
		d->CS.Control = VIP_CONTROL_OP_RESERVED;
		return VIP_STATUS_FORMAT_ERROR;
	case M_RESERVED_BITS:
		d->CS.Control = 0x8000;
		return VIP_STATUS_FORMAT_ERROR;
	case M_RESERVED_WORD:
		d->CS.Reserved = 1;
		return VIP_STATUS_FORMAT_ERROR;
	case M_OVERLONG:
		d->CS.SegCount = 0xFFFF;
		return VIP_STATUS_FORMAT_ERROR;
	case M_NO_ADDRESS:
		d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
		d->CS.SegCount = 0;
		return VIP_STATUS_FORMAT_ERROR;
	case M_ADDRESS_RESERVED:
		desc_rdma(s, 0, VIP_CONTROL_OP_RDMAWRITE, s->data, 64, &here, 0);
		d->DS[0].Remote.Reserved = 1;
		return VIP_STATUS_FORMAT_ERROR;
	case M_LENGTH_LESS:
		d->CS.Length = 63;
		return VIP_STATUS_LENGTH_ERROR;
	case M_LENGTH_MORE:
		d->CS.Length = 65;
		return VIP_STATUS_LENGTH_ERROR;
	case M_TOO_LONG:
		d->CS.Length = d->DS[0].Local.Length = (VIP_UINT32)s->attr.MaxTransferSize + 1;
		return VIP_STATUS_LENGTH_ERROR;
	default:
		CHECK(false);
		return 0;
	}
}

static void malformed_client(struct side *s)
{
	VIP_DESCRIPTOR *d = NULL;
	VIP_UINT32 want;

	open_collecting(s);
	meet(s);
	d = desc_at(s, 0);
	want = deform(s, d);
	post_send(s, d);
	CHECK_EQ(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_ERROR_MASK, want);
	meet(s);
	finish(s);
}

static void undisturbed_server(struct side *s)
{
	open_collecting(s);
	meet(s);
	meet(s);
	finish(s);
}

static void malformed_sends(void)
{
	for (malformed = 0; malformed < MALFORMED; malformed++)
		at_each_level(undisturbed_server, malformed_client);
}

/* A receive that is malformed completes in error when its turn comes, or before. */
static void malformed_recv_server(struct side *s)
{
	VIP_DESCRIPTOR *d;
	VIP_UINT32 want;

	open_collecting(s);
	post_recv(s, desc_make(s, 1, s->data, 64));
	d = desc_at(s, 0);
	want = deform(s, d);
	if (malformed == M_OPCODE)
		d->CS.Control = VIP_CONTROL_OP_RDMAWRITE; /* nothing but a receive may be on this queue */
	post_recv(s, d);
	meet(s);
	received(s, desc_at(s, 1), VIP_SUCCESS);
	CHECK(received(s, d, VIP_DESCRIPTOR_ERROR) & want);
	meet(s);
	aftermath(s);
	meet(s);
	side_close(s);
}

static void correct_client(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;

	open_collecting(s);
	meet(s);
	d = desc_make(s, 0, s->data, 64);
	post_send(s, d);
	sent(s, d, VIP_SUCCESS);
	post_send(s, d = desc_make(s, 1, s->data, 64));
	CHECK(VipSendWait(s->vi, SOON, &done) != VIP_TIMEOUT);
	meet(s);
	aftermath(s);
	meet(s);
	side_close(s);
}

static void malformed_receives(void)
{
	static const enum malformed which[] = { M_OPCODE, M_RESERVED_BITS, M_RESERVED_WORD, M_OVERLONG };

	for (size_t i = 0; i < 4; i++) {
		malformed = which[i];
		at_each_level(malformed_recv_server, correct_client);
	}
}

/* ---- the message after an error: a VI's own limit ---- */

static void limited(struct side *s)
{
	VIP_VI_ATTRIBUTES attr;
	VIP_DESCRIPTOR *d;

	side_open(s);
	attr = vi_attributes(s, level);
	attr.MaxTransferSize = 32000;
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, &s->vi));
	if (s->server)
		post_recv(s, desc_make(s, 0, s->data, 40000));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "limit"));
	meet(s);
	if (s->server) {
		received(s, desc_at(s, 0), VIP_SUCCESS);
		CHECK_EQ(desc_at(s, 0)->CS.Length, 32000);
	} else {
		post_send(s, d = desc_make(s, 0, s->data, 32000));
		sent(s, d, VIP_SUCCESS);
		post_send(s, d = desc_make(s, 1, s->data, 32001));
		CHECK_EQ(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_ERROR_MASK, VIP_STATUS_LENGTH_ERROR);
	}
	meet(s);
	finish(s);
}

static void longer_than_the_vi_allows(void)
{
	at_each_level(limited, limited);
}

/* ---- a write with immediate data finds no receive ---- */

static void notify_client(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *d, *done;

	open_collecting(s);
	exchange_memory(s, s->data, s->handle, &there);
	d = desc_rdma(s, 0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, s->data, 5000, &there, 0);
	post_send(s, d);
	if (level == VIP_SERVICE_UNRELIABLE)
		sent(s, d, VIP_SUCCESS);
	else if (level == VIP_SERVICE_RELIABLE_DELIVERY)
		CHECK(VipSendWait(s->vi, SOON, &done) != VIP_TIMEOUT);
	else
		CHECK(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_REMOTE_DESC_ERROR);
	meet(s);
	finish(s);
}

static void notify_server(struct side *s)
{
	struct remote unused;

	open_collecting(s);
	exchange_memory(s, s->data, s->handle, &unused);
	found_nothing(s);
	meet(s);
	finish(s);
}

static void immediate_data_without_a_receive(void)
{
	at_each_level(notify_server, notify_client);
}

int main(void)
{
	static const char *const copies[] = { "auto", "off" }; /* one-step copies, or packets */

	two_init("errors");
	for (size_t i = 0; i < 2; i++) {
		printf("# cma %s\n", copies[i]);
		VipxParameterSet("cma", copies[i], "test");
		CASE(no_receive_posted);
		CASE(receive_too_small);
		CASE(send_from_refused_memory);
		CASE(receive_into_refused_memory);
		CASE(write_to_refused_memory);
		CASE(read_from_refused_memory);
		CASE(rdma_with_refused_local_memory);
		CASE(malformed_sends);
		CASE(malformed_receives);
		CASE(longer_than_the_vi_allows);
		CASE(immediate_data_without_a_receive);
	}
	return check_done();
}
