/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues in one process: what posting refuses, overrun, growth, the chain, states, destroying with things left over.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/uio.h>

#include "tests/unit/vipl/one.h"

static unsigned post_errors;
static VIP_ERROR_DESCRIPTOR last_error;

static void count_errors(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	CHECK_EQ(error->ErrorCode, VIP_ERROR_POST_DESC);
	last_error = *error;
	post_errors++;
}

/* ---- descriptors that cannot be read are refused, and reported ---- */

static void refused(void)
{
	struct one o;
	VIP_MEM_ATTRIBUTES attr = { 0 };
	VIP_MEM_HANDLE foreign, small;
	VIP_DESCRIPTOR *d, *done;
	char outside[128];

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	VIP(VIP_SUCCESS, VipErrorCallback(o.nic, NULL, count_errors));
	VIP(VIP_SUCCESS, VipCreatePtag(o.nic, &attr.Ptag));
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, o.mem, ONE_MEMORY, &attr, &foreign));
	attr.Ptag = o.ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, o.mem, 127, &attr, &small));
	d = one_desc(&o, 0, 8);
#define REFUSED(desc, handle)                                                                        \
	do {                                                                                         \
		unsigned before_ = post_errors;                                                      \
		VIP(VIP_INVALID_PARAMETER, VipPostSend(o.a, (VIP_DESCRIPTOR *)(void *)(desc), handle)); \
		CHECK(last_error.DescriptorPtr == (void *)(desc) && last_error.OpCode == VIP_STATUS_OP_SEND); \
		VIP(VIP_INVALID_PARAMETER, VipPostRecv(o.a, (VIP_DESCRIPTOR *)(void *)(desc), handle)); \
		CHECK(last_error.ViHandle == o.a && last_error.OpCode == VIP_STATUS_OP_RECEIVE);     \
		CHECK_EQ(post_errors, before_ + 2);                                                  \
	} while (0)
	for (unsigned shift = 1; shift < 64; shift++)
		REFUSED(o.mem + shift, o.handle);
	REFUSED(d, 0);
	REFUSED(d, o.handle + 1000);
	REFUSED(d, 0xFFFFFFFE);
	REFUSED(d, VIPX_POOL_HANDLE);
	REFUSED(d, foreign);
	REFUSED(o.mem + 64, small); /* one byte of it lies outside */
	REFUSED(o.mem + ONE_MEMORY, o.handle);
	REFUSED(o.mem - 64, o.handle);
	REFUSED((uintptr_t)(outside + 63) & ~(uintptr_t)63, o.handle);
	REFUSED((uintptr_t)-64, o.handle);
	REFUSED(64, o.handle);
	/* Its last segment reaches beyond the region. */
	d->CS.SegCount = 6;
	REFUSED(d, small);
	d->CS.SegCount = 5; /* 112 bytes: fits in 127 */
	VIP(VIP_SUCCESS, VipPostRecv(o.a, d, small));
	VIP(VIP_NOT_DONE, VipRecvDone(o.a, &done));
	one_close(&o);
}

/* ---- an overrun is refused, and does no harm ---- */

static void overrun(void)
{
	struct one o;
	VIP_DESCRIPTOR *done;
	unsigned max;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	max = (unsigned)o.attr.MaxDescriptorsPerQueue;
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < max; i++)
			if (!CHECK_EQ(VipPostRecv(o.a, one_desc(&o, i, 8), o.handle), VIP_SUCCESS))
				break;
		for (unsigned i = 0; i < 10; i++)
			VIP(VIP_ERROR_RESOURCE, VipPostRecv(o.a, one_desc(&o, max + i, 8), o.handle));
		VIP(VIP_ERROR_RESOURCE, VipDestroyVi(o.a));
		VIP(VIP_SUCCESS, VipDisconnect(o.a)); /* flushes */
		for (unsigned i = 0; i < max; i++) {
			VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(o.a, &done));
			if (!CHECK(done == (VIP_DESCRIPTOR *)(void *)(o.mem + 64 * i)))
				break;
			CHECK_EQ(done->CS.Status, VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_RECEIVE);
		}
		VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(o.a, &done));
		CHECK(!done);
	}
	VIP(VIP_SUCCESS, VipDestroyVi(o.a));
	one_close(&o);
}

/* The library's memory of what is posted grows while its oldest part is anywhere. */
static void growth(void)
{
	struct one o;
	VIP_DESCRIPTOR *done;

	for (unsigned taken = 0; taken < 32; taken += 5) {
		unsigned next = 0;

		one_open(&o);
		o.a = one_vi(&o, NULL, NULL); /* idle: sends come back at once, flushed */
		for (unsigned i = 0; i < 32; i++)
			VIP(VIP_SUCCESS, VipPostSend(o.a, one_desc(&o, i, 8), o.handle));
		while (next < taken) {
			VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(o.a, &done));
			CHECK(done == (VIP_DESCRIPTOR *)(void *)(o.mem + 64 * next++));
		}
		for (unsigned i = 32; i < 500; i++)
			VIP(VIP_SUCCESS, VipPostSend(o.a, one_desc(&o, i, 8), o.handle));
		while (next < 500) {
			VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(o.a, &done));
			if (!CHECK(done == (VIP_DESCRIPTOR *)(void *)(o.mem + 64 * next++)))
				break;
		}
		one_close(&o);
	}
}

/* ---- the chain through CS.Next ---- */

static void chain(void)
{
	struct one o;
	VIP_DESCRIPTOR *d[5], *done;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	for (unsigned i = 0; i < 5; i++) {
		d[i] = one_desc(&o, i, 8);
		d[i]->CS.Next.Address = &o; /* a program's own free list */
		d[i]->CS.NextHandle = 99;
		d[i]->CS.Status = 0xFFFFFFFF;
		VIP(VIP_SUCCESS, VipPostRecv(o.a, d[i], o.handle));
		CHECK(!d[i]->CS.Next.Address && !d[i]->CS.NextHandle);
		CHECK_EQ(d[i]->CS.Status, 0);
		if (i) {
			CHECK(d[i - 1]->CS.Next.Address == d[i]);
			CHECK_EQ(d[i - 1]->CS.NextHandle, o.handle);
		}
	}
	/* What a program does to the chain afterwards does not mislead the library. */
	d[1]->CS.Next.Address = (void *)8;
	d[2]->CS.Next.Address = d[2];
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	for (unsigned i = 0; i < 5; i++) {
		VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(o.a, &done));
		CHECK(done == d[i]);
	}
	one_close(&o);
}

/* Far more than fit on the NIC, each `next` spoilt: the program hears of it, and nothing runs wild. */
static void spoilt_chain(void)
{
	struct one o;
	VIP_DESCRIPTOR *done;
	unsigned back = 0;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	for (unsigned i = 0; i < 1000; i++)
		VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, i, 8), o.handle));
	for (unsigned i = 0; i < 1000; i++)
		((VIP_DESCRIPTOR *)(void *)(o.mem + 64 * i))->CS.Next.Address = i & 1 ? (void *)64 : (void *)(o.mem + 64 * i);
	VIP(VIP_SUCCESS, VipErrorCallback(o.nic, NULL, count_errors));
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	while (VipRecvDone(o.a, &done) == VIP_DESCRIPTOR_ERROR && done)
		back++;
	CHECK(back >= 1 && back <= 1000);
	VipCloseNic(o.nic); /* forgets the rest */
	munmap(o.mem, ONE_MEMORY);
}

/* The same descriptor twice: a mistake, but not the end. */
static void posted_twice(void)
{
	struct one o;
	VIP_DESCRIPTOR *d, *done;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	o.b = one_vi(&o, NULL, NULL);
	one_connect(&o);
	d = one_desc(&o, 0, 8);
	for (int i = 0; i < 300; i++) {
		VIP(VIP_SUCCESS, VipPostRecv(o.b, d, o.handle));
		VIP(VIP_SUCCESS, VipPostSend(o.a, d, o.handle));
	}
	for (int i = 0; i < 1000; i++) {
		VipSendDone(o.a, &done);
		VipRecvDone(o.b, &done);
	}
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	VIP(VIP_SUCCESS, VipDisconnect(o.b));
	one_close(&o);
}

/* ---- states ---- */

static void idle(void)
{
	struct one o;
	VIP_DESCRIPTOR *d, *done;
	VIP_VI_STATE state;
	VIP_VI_ATTRIBUTES attr;
	VIP_BOOLEAN send_empty, recv_empty;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	VIP(VIP_SUCCESS, VipQueryVi(o.a, &state, &attr, &send_empty, &recv_empty));
	CHECK(state == VIP_STATE_IDLE && send_empty && recv_empty);
	CHECK(attr.ReliabilityLevel == VIP_SERVICE_RELIABLE_DELIVERY && attr.MaxTransferSize == 65536 && attr.Ptag == o.ptag);
	CHECK(!attr.QoS && !attr.EnableRdmaWrite && !attr.EnableRdmaRead);
	VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(o.a, &done));
	CHECK(!done);
	done = (VIP_DESCRIPTOR *)(void *)&o;
	VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(o.a, &done));
	CHECK(!done);
	VIP(VIP_DESCRIPTOR_ERROR, VipSendWait(o.a, VIP_INFINITE, &done)); /* nothing is posted: nothing can come */
	CHECK(!done);
	/* A receive stays, a send is flushed. */
	VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, 0, 8), o.handle));
	VIP(VIP_SUCCESS, VipPostSend(o.a, d = one_desc(&o, 1, 8), o.handle));
	VIP(VIP_NOT_DONE, VipRecvDone(o.a, &done));
	VIP(VIP_TIMEOUT, VipRecvWait(o.a, 0, &done));
	VIP(VIP_TIMEOUT, VipRecvWait(o.a, 30, &done));
	VIP(VIP_SUCCESS, VipQueryVi(o.a, &state, &attr, &send_empty, &recv_empty));
	CHECK(state == VIP_STATE_IDLE && !send_empty && !recv_empty);
	VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(o.a, &done));
	CHECK(done == d);
	CHECK_EQ(d->CS.Status, VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_OP_SEND);
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	CHECK_EQ(one_state(o.a), VIP_STATE_IDLE);
	one_close(&o);
}

static void pending_connection(void)
{
	struct one o;
	union address left, right;
	VIP_DESCRIPTOR *d, *done;
	VIP_VI_ATTRIBUTES theirs;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	o.b = one_vi(&o, NULL, NULL);
	one_address(&o, "left", &left);
	one_address(&o, "right", &right);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(o.a, &left.a, &right.a, VIP_INFINITE));
	CHECK_EQ(one_state(o.a), VIP_STATE_CONNECT_PENDING);
	VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, 0, 8), o.handle));
	VIP(VIP_SUCCESS, VipPostSend(o.a, d = one_desc(&o, 1, 8), o.handle));
	VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(o.a, &done));
	CHECK(done == d && (d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR));
	VIP(VIP_SUCCESS, VipConnectPeerRequest(o.b, &right.a, &left.a, VIP_INFINITE));
	VIP(VIP_SUCCESS, VipConnectPeerWait(o.b, &theirs));
	VIP(VIP_SUCCESS, VipConnectPeerWait(o.a, &theirs));
	/* The receive posted while pending is used. */
	VIP(VIP_SUCCESS, VipPostSend(o.b, one_desc(&o, 2, 8), o.handle));
	VIP(VIP_SUCCESS, VipRecvWait(o.a, 5000, &done));
	one_close(&o);
}

/* ---- VIs that are destroyed with things left in their queues ---- */

static void left_over(void)
{
	struct one o;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	o.b = one_vi(&o, NULL, NULL);
	one_connect(&o);
	for (unsigned i = 0; i < 200; i++)
		VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, i, 8), o.handle));
	for (unsigned i = 200; i < 210; i++)
		VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, i, 8), o.handle));
	for (unsigned i = 210; i < 220; i++)
		VIP(VIP_SUCCESS, VipPostSend(o.a, one_desc(&o, i, 8), o.handle));
	VIP(VIP_ERROR_RESOURCE, VipDestroyVi(o.a));
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	VIP(VIP_SUCCESS, VipDisconnect(o.b));
	/* Complete or flushed, never dequeued, and their memory is gone already. */
	VIP(VIP_SUCCESS, VipDeregisterMem(o.nic, o.mem, o.handle));
	munmap(o.mem, ONE_MEMORY);
	VIP(VIP_SUCCESS, VipDestroyVi(o.a));
	VIP(VIP_SUCCESS, VipDestroyVi(o.b));
	VIP(VIP_SUCCESS, VipCloseNic(o.nic));
}

static void left_over_at_close(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;

	one_open(&o);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 512, &cq));
	o.a = one_vi(&o, cq, cq);
	o.b = one_vi(&o, cq, cq);
	one_connect(&o);
	for (unsigned i = 0; i < 200; i++)
		VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, i, 8), o.handle));
	munmap(o.mem, ONE_MEMORY); /* in haste: neither disconnected nor deregistered */
	VIP(VIP_SUCCESS, VipCloseNic(o.nic));
}

static void still_pending(void)
{
	struct one o;
	VIP_DESCRIPTOR *done;

	one_open(&o);
	o.a = one_vi(&o, NULL, NULL);
	VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, 0, 8), o.handle));
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	VIP(VIP_SUCCESS, VipPostRecv(o.a, one_desc(&o, 1, 8), o.handle)); /* after the flush: pending anew */
	VIP(VIP_ERROR_RESOURCE, VipDestroyVi(o.a));
	VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(o.a, &done));
	VIP(VIP_ERROR_RESOURCE, VipDestroyVi(o.a));
	VIP(VIP_SUCCESS, VipDisconnect(o.a));
	VIP(VIP_SUCCESS, VipDestroyVi(o.a));
	one_close(&o);
}

/* ---- attributes ---- */

static void attributes(void)
{
	struct one o;
	VIP_VI_ATTRIBUTES attr, got;
	VIP_VI_STATE state;
	VIP_BOOLEAN s, r;
	VIP_VI_HANDLE vi = NULL;

	one_open(&o);
#define CREATE(code) VIP(code, VipCreateVi(o.nic, &attr, NULL, NULL, &vi))
	for (unsigned level = 0; level < 32; level++) {
		attr = one_attributes(&o);
		attr.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)level;
		CREATE(level == 1 || level == 2 || level == 4 ? VIP_SUCCESS : VIP_INVALID_RELIABILITY_LEVEL);
	}
	attr = one_attributes(&o);
	attr.MaxTransferSize = o.attr.MaxTransferSize + 1;
	CREATE(VIP_INVALID_MTU);
	attr.MaxTransferSize = ~(VIP_ULONG)0;
	CREATE(VIP_INVALID_MTU);
	attr = one_attributes(&o);
	attr.QoS = &attr;
	CREATE(VIP_INVALID_QOS);
	attr = one_attributes(&o);
	attr.Ptag = &attr;
	CREATE(VIP_INVALID_PTAG);
	attr = one_attributes(&o);
	attr.EnableRdmaRead = VIP_TRUE;
	CREATE(o.attr.RDMAReadSupport & VIP_SERVICE_RELIABLE_DELIVERY ? VIP_SUCCESS : VIP_INVALID_RDMAREAD);
	attr = one_attributes(&o);
	attr.MaxTransferSize = 0; /* the most there is */
	CREATE(VIP_SUCCESS);
	VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &got, &s, &r));
	CHECK_EQ(got.MaxTransferSize, o.attr.MaxTransferSize);
	attr.MaxTransferSize = 1000;
	attr.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	attr.EnableRdmaWrite = VIP_TRUE;
	VIP(VIP_SUCCESS, VipSetViAttributes(vi, &attr));
	VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &got, &s, &r));
	CHECK(got.MaxTransferSize == 1000 && got.ReliabilityLevel == VIP_SERVICE_UNRELIABLE && got.EnableRdmaWrite);
	attr.ReliabilityLevel = 3;
	VIP(VIP_INVALID_RELIABILITY_LEVEL, VipSetViAttributes(vi, &attr));
	attr = one_attributes(&o);
	attr.QoS = &attr;
	VIP(VIP_INVALID_QOS, VipSetViAttributes(vi, &attr));
	attr.QoS = NULL;
	attr.MaxTransferSize = o.attr.MaxTransferSize + 1;
	VIP(VIP_INVALID_MTU, VipSetViAttributes(vi, &attr));
	VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &got, &s, &r));
	CHECK(got.MaxTransferSize == 1000); /* nothing changed */
	one_close(&o);
}

/* ---- completion queues ---- */

static void cq_sizes(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;

	one_open(&o);
	VIP(VIP_INVALID_PARAMETER, VipCreateCQ(o.nic, 0, &cq));
	VIP(VIP_ERROR_RESOURCE, VipCreateCQ(o.nic, o.attr.MaxCQEntries + 1, &cq));
	VIP(VIP_ERROR_RESOURCE, VipCreateCQ(o.nic, ~(VIP_ULONG)0, &cq));
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, o.attr.MaxCQEntries, &cq));
	VIP(VIP_SUCCESS, VipResizeCQ(cq, 1));
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	one_close(&o);
}

/* Resized with its oldest entry anywhere, it keeps its entries in order. */
static void cq_resizing(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	unsigned posted = 0, taken = 0;

	one_open(&o);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 16, &cq));
	o.a = one_vi(&o, cq, NULL);
	o.b = one_vi(&o, cq, NULL);
#define OF(n) ((n) * 2654435761u >> 31 ? o.a : o.b)
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 7; i++, posted++)
			VIP(VIP_SUCCESS, VipPostSend(OF(posted), one_desc(&o, posted, 8), o.handle));
		for (unsigned i = 0; i < 5 + round % 3; i++, taken++) {
			VIP(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
			CHECK(vi == OF(taken));
		}
		VIP(VIP_SUCCESS, VipResizeCQ(cq, posted - taken + 7 + round));
	}
	for (; taken < posted; taken++) {
		VIP(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
		CHECK(vi == OF(taken));
	}
	one_close(&o);
}

static unsigned overruns;

static void count_overruns(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	overruns += error->ErrorCode == VIP_ERROR_VI_OVERRUN;
}

/* More completions than the queue has room for: the program hears of it. */
static void cq_overflow(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	unsigned entries = 0;

	one_open(&o);
	VIP(VIP_SUCCESS, VipErrorCallback(o.nic, NULL, count_overruns));
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 4, &cq));
	o.a = one_vi(&o, cq, NULL);
	for (unsigned i = 0; i < 10; i++)
		VIP(VIP_SUCCESS, VipPostSend(o.a, one_desc(&o, i, 8), o.handle));
	while (VipCQDone(cq, &vi, &recv) == VIP_SUCCESS) {
		CHECK(vi == o.a && !recv);
		entries++;
	}
	CHECK_EQ(entries, 4);
	CHECK_EQ(overruns, 6);
	one_close(&o);
}

/* Entry and descriptor in one call. */
static void cq_next(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;

	one_open(&o);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 64, &cq));
	o.a = one_vi(&o, cq, cq);
	o.b = one_vi(&o, cq, cq);
	one_connect(&o);
	VIP(VIP_NOT_DONE, VipxCQTake(cq, &next));
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	VIP(VIP_SUCCESS, VipPostSend(o.a, one_desc(&o, 1, 2000), o.handle));
	for (unsigned i = 0; i < 2; i++) {
		VIP_RETURN result;

		while ((result = VipxCQTake(cq, &next)) == VIP_NOT_DONE)
			;
		VIP(VIP_SUCCESS, result);
		CHECK(next.ViHandle == (next.RecvQueue ? o.b : o.a));
		CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)(o.mem + (next.RecvQueue ? 0 : 64)));
	}
	VIP(VIP_NOT_DONE, VipxCQTake(cq, &next));
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 64), o.handle));
	VIP(VIP_SUCCESS, VipDisconnect(o.b));
	VIP(VIP_DESCRIPTOR_ERROR, VipxCQTake(cq, &next));
	CHECK(next.ViHandle == o.b && next.RecvQueue && next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem);
	one_close(&o);
}

/*
 * The processor, which these tests may not depend on, decides from what length on short messages go in buffers (parameter demote).
 * True, too, where the program wants to be handed no buffer: it gets a copy.
 */
static void with_buffers(void test(bool), bool from_400_bytes)
{
	VIP(VIP_SUCCESS, VipxParameterSet("demote", from_400_bytes ? "on" : "off", "test"));
	test(from_400_bytes);
	VIP(VIP_SUCCESS, VipxParameterSet("demote", "auto", "test"));
}

/* How many bytes of this NIC's have gone in buffers. */
static VIP_UINT64 in_buffers(VIP_NIC_HANDLE nic)
{
	return *VipxCounter(nic, "bytes_buffer", "");
}

/* Short messages sent inside the command come by value: the receive stays posted, and takes the first that cannot. */
static void values(bool buffers)
{
	static const unsigned lengths[] = { 8, 9, 40, 48, 49, 108, 109, 500, VIPX_SHORT_MAX };
	VIPX_SHORT m = { .Head = 0x0807060504030201 };
	uint8_t data[VIPX_SHORT_MAX];
	VIPX_ARRIVAL next;
	VIP_CQ_HANDLE cq;
	struct one o;

	if (strcmp(VipxParameterString("arch"), "qnix") == 0)
		SKIP("a NIC that asks first takes nothing by value");
	one_open(&o);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 64, &cq));
	o.a = one_vi(&o, NULL, cq);
	o.b = one_vi(&o, NULL, cq);
	VIP(VIP_SUCCESS, VipSetUserData(o.b, &o));
	one_connect(&o);
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + 1);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		m.A = data;
		m.ALength = (lengths[i] - 8) / 3;
		m.B = data + m.ALength;
		m.BLength = lengths[i] - 8 - m.ALength;
		VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
		VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
		CHECK(!next.Descriptor && next.ViHandle == o.b && next.User == &o && next.RecvQueue);
		CHECK_EQ(next.Length, lengths[i]);
		CHECK_EQ(next.Data[0], m.Head);
		CHECK(memcmp(&next.Data[1], data, lengths[i] - 8) == 0);
	}
	CHECK_EQ(in_buffers(o.nic), buffers ? 500 + VIPX_SHORT_MAX : 0);
	VIP(VIP_NOT_DONE, VipxCQTake(cq, &next));
	/* What another call has brought in has taken its receive; what comes after that stays behind it. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 2000), o.handle));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	m.Head++;
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem && next.Descriptor->CS.Length == VIPX_SHORT_MAX);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(!next.Descriptor && next.Data[0] == m.Head);
	/* Without a receive it is no message, by value or not. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)(o.mem + 2 * ONE_DESC));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxCQTake(cq, &next));
	VIP(VIP_NOT_DONE, VipxSendShort(o.a, &m));
	one_close(&o);
}

static void by_value(void)
{
	with_buffers(values, false);
}

static void by_value_from_buffers(void)
{
	with_buffers(values, true);
}

/* Two VIs to be connected; the receives of o->b complete on the queue that is returned. */
static VIP_CQ_HANDLE one_open_receiving(struct one *o)
{
	VIP_CQ_HANDLE cq;

	one_open(o);
	VIP(VIP_SUCCESS, VipCreateCQ(o->nic, 64, &cq));
	o->a = one_vi(o, NULL, NULL);
	o->b = one_vi(o, NULL, cq);
	return cq;
}

/* The short way takes what comes next if it is for that VI and nothing is before it; otherwise it changes nothing. */
static void by_value_of_one(void)
{
	VIPX_SHORT m = { .Head = 1 };
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	struct one o;

	if (strcmp(VipxParameterString("arch"), "qnix") == 0)
		SKIP("a NIC that asks first takes nothing by value");
	cq = one_open_receiving(&o);
	VIP(VIP_SUCCESS, VipSetUserData(o.b, &o));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next)); /* no link yet */
	one_connect(&o);
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.a, &next)); /* no completion queue */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next)); /* no receive: not a message, and not this call's to refuse */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK(next.ViHandle == o.b && next.Message == next.Data && !next.Buffer && next.Length == 8);
	CHECK_EQ(next.Data[0], m.Head);
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	CHECK(next.Message == next.Data);
	/* What is in the completion queue comes first. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 2000), o.handle));
	m.Head = 2;
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem);
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK_EQ(next.Data[0], m.Head);
	/* On its way when the connection ends: of a life that is over. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipDisconnect(o.b));
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 4, 2000), o.handle));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	one_close(&o);
}

/* So many messages in a row: the first one of that length, each further one a byte longer. */
static void send_row(struct one *o, unsigned n, unsigned len)
{
	static uint8_t bytes[VIPX_SHORT_MAX];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 3 + 1);
	for (; n--; len++) {
		VIPX_SHORT m = { .Head = len, .A = bytes, .ALength = len - 8 };

		VIP(VIP_SUCCESS, VipxSendShort(o->a, &m));
	}
}

/* The next messages: how many of so many are taken in a row, the first one of that length. */
static unsigned row_of(struct one *o, unsigned most, unsigned len)
{
	VIPX_BRIEF row[64];
	unsigned n = (unsigned)VipxRecvTakeRow(o->b, row, most);

	for (unsigned i = 0; i < n; i++, len++) {
		CHECK_EQ(row[i].Length, len);
		CHECK_EQ(row[i].Data[0], len);
		for (unsigned k = 0; k < len - 8; k++)
			CHECK(((uint8_t *)&row[i].Data[1])[k] == (uint8_t)(k * 3 + 1));
	}
	return n;
}

/* Behind one by value, those that have come: brief ones only, and none while there is something else to be seen first. */
static void rows(void)
{
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	struct one o;

	if (strcmp(VipxParameterString("arch"), "qnix") == 0)
		SKIP("a NIC that asks first takes nothing by value");
	cq = one_open_receiving(&o);
	CHECK_EQ(row_of(&o, 8, 8), 0); /* no link yet */
	one_connect(&o);
	send_row(&o, 4, 8);
	CHECK_EQ(row_of(&o, 8, 8), 0); /* no receive */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	CHECK_EQ(row_of(&o, 8, 8), 0); /* it is not known to be good */
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK_EQ(row_of(&o, 2, 9), 2);
	CHECK_EQ(row_of(&o, 8, 11), 1);
	CHECK_EQ(row_of(&o, 8, 0), 0);
	for (unsigned lap = 0; lap < 30; lap++) { /* over and over round the ring */
		send_row(&o, 40, 40 + lap);
		CHECK_EQ(row_of(&o, 64, 40 + lap), 40);
	}
	/* The one that is not brief goes by itself. */
	send_row(&o, 10, VIPX_BRIEF_MAX - 4);
	CHECK_EQ(row_of(&o, 64, VIPX_BRIEF_MAX - 4), 5);
	CHECK_EQ(row_of(&o, 64, 0), 0);
	for (unsigned i = 0; i < 5; i++) {
		VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
		CHECK_EQ(next.Length, VIPX_BRIEF_MAX + 1 + i);
	}
	CHECK_EQ(row_of(&o, 0, 0), 0);
	CHECK_EQ(VipxRecvTakeRow(o.b, NULL, 8), 0);
	CHECK_EQ(VipxRecvTakeRow(o.a, NULL, 8), 0);
	/* What is in the completion queue comes first, and its receive is gone. */
	send_row(&o, 1, 8);
	CHECK(VipxPoll(o.nic) > 0);
	send_row(&o, 1, 9);
	CHECK_EQ(row_of(&o, 8, 9), 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK_EQ(row_of(&o, 8, 9), 0);
	/* The next one has less room. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 16), o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	send_row(&o, 9, 10);
	CHECK_EQ(row_of(&o, 64, 10), 7);
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	one_close(&o);
}

/* A receive that was good for one message by value is not asked again; the one behind it is. */
static void next_ones(bool buffers)
{
	static const char data[9] = "too long";
	static uint8_t bytes[VIPX_SHORT_MAX];
	VIPX_SHORT m = { .Head = 1 }, longer = { .Head = 2, .A = data, .ALength = sizeof data };
	VIPX_SHORT all = { .Head = 3, .A = bytes, .ALength = VIPX_SHORT_MAX - 8 };
	VIP_DESCRIPTOR *small;
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	struct one o;

	if (strcmp(VipxParameterString("arch"), "qnix") == 0)
		SKIP("a NIC that asks first takes nothing by value");
	cq = one_open_receiving(&o);
	one_connect(&o);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	/* All lengths, cut between A and B in all ways, over and over round the ring. */
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (unsigned len = 8, cut = 0; len <= VIPX_SHORT_MAX; len++, cut = cut < len - 8 && cut < 60 ? cut + 1 : 0) {
		VIPX_SHORT any = { .Head = len, .A = bytes, .ALength = cut, .B = bytes + cut, .BLength = len - 8 - cut };

		VIP(VIP_SUCCESS, VipxSendShort(o.a, &any));
		VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
		CHECK(next.Length == len && next.Data[0] == len && memcmp(&next.Data[1], bytes, len - 8) == 0);
	}
	/* Of a buffer that was copied out of the NIC has the use again: a NIC never has so many. */
	for (unsigned i = 0; i < 3000; i++) {
		VIP(VIP_SUCCESS, VipxSendShort(o.a, &all));
		VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	}
	CHECK(in_buffers(o.nic) >= (buffers ? 3000 * VIPX_SHORT_MAX : 0));
	/* Another call brings in a message, which takes the receive: there is none. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem);
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	CHECK(!next.Message);
	/* There is one with less room, but it may have a buffer: what is too long for its room is good, too. */
	small = one_desc(&o, 4, 16);
	small->CS.Control |= VIP_CONTROL_POOL;
	VIP(VIP_SUCCESS, VipPostRecv(o.b, small, o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &all));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK((next.Message == next.Data) == !buffers && next.Buffer == (buffers ? next.Message : NULL) && next.Length == VIPX_SHORT_MAX);
	CHECK(memcmp(next.Message, &all.Head, 8) == 0 && memcmp((uint8_t *)next.Message + 8, bytes, VIPX_SHORT_MAX - 8) == 0);
	VipxGiveBuffer(o.nic, next.Buffer);
	/* Another call, and a descriptor: the same goes to a buffer. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &all));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == small && (small->CS.Status & VIP_STATUS_POOL) && small->CS.Length == VIPX_SHORT_MAX);
	VipxGiveBuffer(o.nic, small->DS[1].Local.Data.Address);
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	/* There is one, with less room. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 16), o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &longer));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	CHECK(!next.Message);
	VIP(VIP_DESCRIPTOR_ERROR, VipxCQTake(cq, &next));
	one_close(&o);
}

static void next_receive(void)
{
	with_buffers(next_ones, false);
}

static void next_receive_from_buffers(void)
{
	with_buffers(next_ones, true);
}

/* Entries of a VI that has gone are not shown. */
static void cq_of_the_dead(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *done;

	one_open(&o);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 64, &cq));
	o.a = one_vi(&o, cq, NULL);
	o.b = one_vi(&o, cq, NULL);
	for (unsigned i = 0; i < 3; i++)
		VIP(VIP_SUCCESS, VipPostSend(o.a, one_desc(&o, i, 8), o.handle));
	VIP(VIP_SUCCESS, VipPostSend(o.b, one_desc(&o, 9, 8), o.handle));
	while (VipSendDone(o.a, &done) == VIP_DESCRIPTOR_ERROR && done)
		;
	VIP(VIP_SUCCESS, VipDestroyVi(o.a));
	VIP(VIP_SUCCESS, VipCQDone(cq, &vi, &recv));
	CHECK(vi == o.b);
	VIP(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
	VIP(VIP_ERROR_RESOURCE, VipDestroyCQ(cq));
	VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(o.b, &done));
	VIP(VIP_SUCCESS, VipDestroyVi(o.b));
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	one_close(&o);
}

/* Does this NIC do RDMA in the command, where cross-memory attach works? */
static bool rdma_now_works(void)
{
	char here = 0, there = 1;
	struct iovec l = { &here, 1 }, r = { &there, 1 };

	return strcmp(VipxParameterString("arch"), "direct") == 0 && strcmp(VipxParameterString("engine"), "daemon") != 0 &&
	       strcmp(VipxParameterString("cma"), "auto") == 0 && process_vm_readv(getpid(), &l, 1, &r, 1, 0) == 1;
}

/* RDMA in the command: over when the call returns, or not begun; then no error is raised. */
static void rdma_commands(VIP_ULONG flags)
{
	enum { LEN = 40000 };
	VIP_MEM_ATTRIBUTES mem = { .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE };
	VIP_VI_ATTRIBUTES attr;
	VIP_MEM_HANDLE open;
	VIPX_RDMA r = { .Length = LEN, .Operation = VIP_CONTROL_OP_RDMAWRITE };
	VIP_RETURN good = rdma_now_works() ? VIP_SUCCESS : VIP_NOT_DONE;
	const VIP_UINT64 *protection;
	struct one o;

	VIP(VIP_SUCCESS, VipxParameterSet("rdma", "alone", "test"));
	one_open_as(&o, flags);
	attr = one_attributes(&o);
	attr.EnableRdmaWrite = attr.EnableRdmaRead = VIP_TRUE;
	VIP(VIP_SUCCESS, VipCreateVi(o.nic, &attr, NULL, NULL, &o.a));
	VIP(VIP_SUCCESS, VipCreateVi(o.nic, &attr, NULL, NULL, &o.b));
	mem.Ptag = o.ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, o.data + 2 * LEN, LEN, &mem, &open));
	r.Local = (uintptr_t)o.data;
	r.LocalHandle = o.handle;
	r.Remote = (uintptr_t)o.data + 2 * LEN;
	r.RemoteHandle = open;
	VIP(VIP_NOT_DONE, VipxRdmaNow(o.a, &r)); /* no connection */
	one_connect(&o);
	VIP(VIP_INVALID_PARAMETER, VipxRdmaNow(NULL, &r));
	VIP(VIP_INVALID_PARAMETER, VipxRdmaNow(o.a, NULL));
	r.Operation = VIP_CONTROL_OP_SENDRECV;
	VIP(VIP_INVALID_PARAMETER, VipxRdmaNow(o.a, &r));
	r.Operation = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
	VIP(VIP_INVALID_PARAMETER, VipxRdmaNow(o.a, &r));
	memset(o.data, 7, LEN);
	r.Operation = VIP_CONTROL_OP_RDMAWRITE;
	VIP(good, VipxRdmaNow(o.a, &r));
	CHECK(good == VIP_NOT_DONE || memcmp(o.data, o.data + 2 * LEN, LEN) == 0);
	memset(o.data + 2 * LEN, 9, LEN);
	r.Operation = VIP_CONTROL_OP_RDMAREAD;
	VIP(good, VipxRdmaNow(o.a, &r));
	CHECK_EQ(o.data[LEN - 1], good == VIP_SUCCESS ? 9 : 7);
	/* Wrong, which a descriptor would be told. */
	protection = VipxCounter(o.nic, "protection_errors", "");
	r.RemoteHandle = o.handle; /* registered without the right */
	VIP(VIP_NOT_DONE, VipxRdmaNow(o.a, &r));
	r.RemoteHandle = open;
	r.Length = LEN + 1;
	VIP(VIP_NOT_DONE, VipxRdmaNow(o.a, &r));
	r.Length = attr.MaxTransferSize + 1;
	VIP(VIP_NOT_DONE, VipxRdmaNow(o.a, &r));
	CHECK_EQ(*protection, 0);
	CHECK_EQ(one_state(o.a), VIP_STATE_CONNECTED);
	one_close(&o);
	VIP(VIP_SUCCESS, VipxParameterSet("rdma", "auto", "test"));
}

static void rdma_in_the_command(void)
{
	rdma_commands(0);
	rdma_commands(VIPX_OPEN_UNLOCKED);
}

int main(void)
{
	CASE(refused);
	CASE(overrun);
	CASE(growth);
	CASE(chain);
	CASE(spoilt_chain);
	CASE(posted_twice);
	CASE(idle);
	CASE(pending_connection);
	CASE(left_over);
	CASE(left_over_at_close);
	CASE(still_pending);
	CASE(attributes);
	CASE(cq_sizes);
	CASE(cq_resizing);
	CASE(cq_overflow);
	CASE(cq_next);
	CASE(by_value);
	CASE(by_value_from_buffers);
	CASE(by_value_of_one);
	CASE(rows);
	CASE(next_receive);
	CASE(next_receive_from_buffers);
	CASE(rdma_in_the_command);
	CASE(cq_of_the_dead);
	return check_done();
}
