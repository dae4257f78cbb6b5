/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues in one process: what posting refuses, overrun, growth, the chain, states, destroying with things left over.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

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
	CASE(cq_of_the_dead);
	return check_done();
}
