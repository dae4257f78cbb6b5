/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bad handles and pointers: every call of VIPL with everything that is not what it wants, and the life of handles.
 * Nothing may crash, and nothing may be taken for something else.
 */
#include "tests/unit/vipl/one.h"

static VIP_ULONG opened; /* flags of the NICs: with their locks, or without */

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	(void)error;
}

static void on_queue(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
	(void)context;
	(void)nic;
	(void)vi;
	(void)d;
}

static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv)
{
	(void)context;
	(void)nic;
	(void)vi;
	(void)recv;
}

#define BAD(call) VIP(VIP_INVALID_PARAMETER, call)

/* ---- each call with a handle that is not of its kind ---- */

static void bad_nic(VIP_NIC_HANDLE nic)
{
	VIP_NIC_ATTRIBUTES attr;
	VIP_VI_ATTRIBUTES vi_attr = { 0 };
	VIP_MEM_ATTRIBUTES mem_attr = { 0 };
	VIP_VI_HANDLE vi;
	VIP_CQ_HANDLE cq;
	VIP_CONN_HANDLE conn;
	VIP_PROTECTION_HANDLE ptag;
	VIP_MEM_HANDLE mem;
	VIP_PVOID memory;
	VIP_UINT64 card;
	VIP_ULONG slot, cursor = 0;
	VIP_UINT32 life;
	union address local = { .a = { 0, 0, { 0 } } }, remote = local;
	char name[256] = "localhost";
	VIP_ULONG length = sizeof name;
	VIPX_MESSAGE message = { .Data = name };

	BAD(VipCloseNic(nic));
	BAD(VipQueryNic(nic, &attr));
	BAD(VipErrorCallback(nic, NULL, on_error));
	BAD(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, name));
	vi_attr.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	BAD(VipCreateVi(nic, &vi_attr, NULL, NULL, &vi));
	BAD(VipConnectWait(nic, &local.a, 0, &remote.a, &vi_attr, &conn));
	BAD(VipCreatePtag(nic, &ptag));
	BAD(VipDestroyPtag(nic, NULL));
	BAD(VipRegisterMem(nic, name, sizeof name, &mem_attr, &mem));
	BAD(VipDeregisterMem(nic, name, 1));
	BAD(VipQueryMem(nic, name, 1, &mem_attr));
	BAD(VipSetMemAttributes(nic, name, 1, &mem_attr));
	BAD(VipCreateCQ(nic, 16, &cq));
	BAD(VipNSInit(nic, NULL));
	BAD(VipNSShutdown(nic));
	BAD(VipNSGetHostByName(nic, name, &remote.a, 0));
	BAD(VipNSGetHostByAddr(nic, &local.a, name, &length));
	BAD(VipxCardId(nic, &card));
	BAD(VipxCardSlot(nic, &slot));
	BAD(VipxCardLife(nic, &life));
	BAD(VipxCardLives(nic, 0, 1));
	BAD(VipxConnectPending(nic, &cursor, &local.a, &remote.a));
	CHECK_EQ(VipxPoll(nic), 0);
	CHECK_EQ(VipxConnectEpoch(nic), 0);
	CHECK(!VipxTakeBuffer(nic) && !VipxCounter(nic, "x", "x") && !VipxCounterAt(nic, 0, NULL, NULL));
	VipxGiveBuffer(nic, name);
	VipxGiveBuffers(nic, &message, 1);
	VipxBufferRead(nic, name, 1);
	VipxBufferCopy(nic, &message, name, 1);
	BAD(VipxAllocMemory(nic, 100, &memory));
	BAD(VipxFreeMemory(nic, name));
	BAD(VipxLargePage(nic, name));
}

static void bad_vi(VIP_VI_HANDLE vi)
{
	VIPX_ARRIVAL arrival;
	VIPX_BRIEF brief;
	VIPX_MESSAGE message;
	VIPX_EXPECTED expected = { 0 };
	VIP_VI_ATTRIBUTES attr = { 0 };
	VIP_VI_STATE state;
	VIP_BOOLEAN s, r;
	VIP_DESCRIPTOR d, *done;
	VIP_ULONG pid, slot;
	union address local = { .a = { 0, 0, { 0 } } };

	attr.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	memset(&d, 0, sizeof d);
	BAD(VipDestroyVi(vi));
	BAD(VipQueryVi(vi, &state, &attr, &s, &r));
	BAD(VipSetViAttributes(vi, &attr));
	BAD(VipConnectRequest(vi, &local.a, &local.a, 1, &attr));
	BAD(VipDisconnect(vi));
	BAD(VipConnectPeerRequest(vi, &local.a, &local.a, 1));
	BAD(VipConnectPeerDone(vi, &attr));
	BAD(VipConnectPeerWait(vi, &attr));
	BAD(VipPostSend(vi, &d, 1));
	BAD(VipPostRecv(vi, &d, 1));
	BAD(VipSendDone(vi, &done));
	BAD(VipRecvDone(vi, &done));
	BAD(VipSendWait(vi, 0, &done));
	BAD(VipRecvWait(vi, VIP_INFINITE, &done));
	BAD(VipSendNotify(vi, NULL, on_queue));
	BAD(VipRecvNotify(vi, NULL, on_queue));
	BAD(VipxViPeer(vi, &pid, &slot));
	BAD(VipxRatherSent(vi, &pid, 1, NULL));
	BAD(VipxBulkTurn(vi));
	BAD(VipxLongBegins(vi, 0, 1, VIP_FALSE));
	BAD(VipxLongOver(vi, 1, VIP_TRUE, VIP_FALSE));
	BAD(VipSetUserData(vi, &d));
	BAD(VipxRecvTake(vi, &arrival));
	BAD(VipxRecvExpected(vi, &expected, 1));
	CHECK_EQ(VipxRecvTakeRow(vi, &brief, 1), 0);
	CHECK_EQ(VipxRecvTakeBuffers(vi, &message, 1, VIPX_BUFFER_SIZE), 0);
	CHECK(!VipGetUserData(vi));
}

static void bad_cq(VIP_CQ_HANDLE cq)
{
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	VIPX_ARRIVAL arrival;

	BAD(VipDestroyCQ(cq));
	BAD(VipxCQTake(cq, &arrival));
	BAD(VipResizeCQ(cq, 16));
	BAD(VipCQDone(cq, &vi, &recv));
	BAD(VipCQWait(cq, VIP_INFINITE, &vi, &recv));
	BAD(VipCQNotify(cq, NULL, on_cq));
}

static void bad_conn(VIP_CONN_HANDLE conn, VIP_VI_HANDLE vi)
{
	BAD(VipConnectAccept(conn, vi));
	BAD(VipConnectReject(conn));
}

static void of_no_kind(void)
{
	struct one o;
	char here[64];
	void *junk[] = { NULL, (void *)1, (void *)2, (void *)0xFFF, (void *)(intptr_t)-1, (void *)(intptr_t)-64, here,
		         (void *)0x7FFFFFFFFFFFFFFF, (void *)0x00007F0000000000, (void *)0x40004, (void *)(uintptr_t)bad_conn };

	memset(here, 0xFF, sizeof here);
	for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) { /* before anything is open */
		bad_nic(junk[i]);
		bad_vi(junk[i]);
		bad_cq(junk[i]);
		bad_conn(junk[i], NULL);
	}
	one_open_as(&o, opened);
	o.a = one_vi(&o, NULL, NULL);
	for (size_t i = 0; i < sizeof junk / sizeof *junk; i++)
		if (junk[i] != o.a) {
			bad_nic(junk[i]);
			bad_vi(junk[i]);
			bad_cq(junk[i]);
			bad_conn(junk[i], o.a);
		}
	/* Every neighbour of a handle. */
	for (unsigned bit = 0; bit < 64; bit++) {
		void *near = (void *)((uintptr_t)o.a ^ (uintptr_t)1 << bit);

		bad_vi(near);
		bad_nic((void *)((uintptr_t)o.nic ^ (uintptr_t)1 << bit));
	}
	one_close(&o);
}

static void of_another_kind(void)
{
	struct one o;
	VIP_CQ_HANDLE cq;

	one_open_as(&o, opened);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 16, &cq));
	o.a = one_vi(&o, cq, cq);
	CHECK(o.nic != o.a && o.a != cq && o.nic != cq && o.ptag != cq && o.ptag != o.a);
	bad_nic(o.a);
	bad_nic(cq);
	bad_nic(o.ptag);
	bad_vi(o.nic);
	bad_vi(cq);
	bad_vi(o.ptag);
	bad_cq(o.nic);
	bad_cq(o.a);
	bad_cq(o.ptag);
	bad_conn(o.nic, o.a);
	bad_conn(o.a, o.a);
	BAD(VipDestroyPtag(o.nic, o.a));
	BAD(VipDestroyPtag(o.nic, o.nic));
	one_close(&o);
}

static void stale(void)
{
	struct one o, again;
	VIP_CQ_HANDLE cq, cq2;
	VIP_VI_HANDLE vi2;
	VIP_PROTECTION_HANDLE ptag, ptag2;

	one_open_as(&o, opened);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 16, &cq));
	o.a = one_vi(&o, NULL, NULL);
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	VIP(VIP_SUCCESS, VipDestroyVi(o.a));
	bad_cq(cq);
	bad_vi(o.a);
	/* Their places are used again; the old handles stay dead. */
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 16, &cq2));
	vi2 = one_vi(&o, NULL, NULL);
	CHECK(cq2 != cq && vi2 != o.a);
	bad_cq(cq);
	bad_vi(o.a);
	VIP(VIP_SUCCESS, VipCreatePtag(o.nic, &ptag));
	VIP(VIP_SUCCESS, VipDestroyPtag(o.nic, ptag));
	VIP(VIP_SUCCESS, VipCreatePtag(o.nic, &ptag2));
	CHECK(ptag != ptag2);
	BAD(VipDestroyPtag(o.nic, ptag));
	one_close(&o);
	bad_nic(o.nic);
	bad_vi(vi2);
	bad_cq(cq2);
	one_open_as(&again, opened);
	CHECK(again.nic != o.nic);
	bad_nic(o.nic);
	bad_vi(vi2);
	bad_cq(cq2);
	one_close(&again);
}

/* Objects of one NIC handle are no good at another. */
static void of_another_nic(void)
{
	struct one o, p;
	VIP_VI_ATTRIBUTES attr;
	VIP_MEM_ATTRIBUTES mem = { 0 };
	VIP_MEM_HANDLE handle;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;

	one_open_as(&o, opened);
	one_open_as(&p, opened);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 16, &cq));
	attr = one_attributes(&p);
	BAD(VipCreateVi(p.nic, &attr, cq, NULL, &vi));
	BAD(VipCreateVi(p.nic, &attr, NULL, cq, &vi));
	attr = one_attributes(&o);
	if (o.ptag != p.ptag) {
		VIP(VIP_INVALID_PTAG, VipCreateVi(p.nic, &attr, NULL, NULL, &vi));
		mem.Ptag = o.ptag;
		VIP(VIP_INVALID_PTAG, VipRegisterMem(p.nic, p.mem, 64, &mem, &handle));
		BAD(VipDestroyPtag(p.nic, o.ptag));
	}
	BAD(VipDeregisterMem(p.nic, o.mem, o.handle));
	one_close(&o);
	one_close(&p);
}

/* ---- pointers ---- */

static void null_pointers(void)
{
	struct one o;
	VIP_VI_ATTRIBUTES attr;
	VIP_VI_STATE state;
	VIP_BOOLEAN s, r;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_ULONG n = 0;

	BAD(VipOpenNic(NULL, NULL));
	BAD(VipxOpenNic(NULL, 0, NULL));
	one_open_as(&o, opened);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 16, &cq));
	o.a = one_vi(&o, NULL, NULL);
	attr = one_attributes(&o);
	BAD(VipQueryNic(o.nic, NULL));
	BAD(VipCreateVi(o.nic, NULL, NULL, NULL, &vi));
	BAD(VipCreateVi(o.nic, &attr, NULL, NULL, NULL));
	BAD(VipQueryVi(o.a, NULL, &attr, &s, &r));
	BAD(VipQueryVi(o.a, &state, NULL, &s, &r));
	BAD(VipQueryVi(o.a, &state, &attr, NULL, &r));
	BAD(VipQueryVi(o.a, &state, &attr, &s, NULL));
	BAD(VipSetViAttributes(o.a, NULL));
	BAD(VipCreatePtag(o.nic, NULL));
	BAD(VipCreateCQ(o.nic, 16, NULL));
	BAD(VipCQDone(cq, NULL, &r));
	BAD(VipCQDone(cq, &vi, NULL));
	BAD(VipxCQTake(cq, NULL));
	BAD(VipxRecvTake(o.a, NULL));
	BAD(VipCQWait(cq, 1, NULL, &r));
	BAD(VipCQWait(cq, 1, &vi, NULL));
	BAD(VipPostSend(o.a, NULL, o.handle));
	BAD(VipPostRecv(o.a, NULL, o.handle));
	BAD(VipSendDone(o.a, NULL));
	BAD(VipRecvDone(o.a, NULL));
	BAD(VipSendWait(o.a, 1, NULL));
	BAD(VipRecvWait(o.a, 1, NULL));
	BAD(VipSendNotify(o.a, NULL, NULL));
	BAD(VipRecvNotify(o.a, NULL, NULL));
	BAD(VipCQNotify(cq, NULL, NULL));
	BAD(VipQueryMem(o.nic, o.mem, o.handle, NULL));
	BAD(VipSetMemAttributes(o.nic, o.mem, o.handle, NULL));
	BAD(VipConnectPeerDone(o.a, NULL));
	BAD(VipConnectPeerWait(o.a, NULL));
	BAD(VipxCardId(o.nic, NULL));
	BAD(VipxCardSlot(o.nic, NULL));
	BAD(VipxCardLife(o.nic, NULL));
	BAD(VipxViPeer(o.a, NULL, &n));
	BAD(VipxViPeer(o.a, &n, NULL));
	BAD(VipxConnectPending(o.nic, NULL, NULL, NULL));
	VIP(VIP_SUCCESS, VipErrorCallback(o.nic, NULL, on_error));
	VIP(VIP_SUCCESS, VipErrorCallback(o.nic, NULL, NULL)); /* back to the default one */
	one_close(&o);
}

/* ---- user data ---- */

static void user_data(void)
{
	struct one o;
	VIP_VI_HANDLE vi;

	one_open_as(&o, opened);
	vi = one_vi(&o, NULL, NULL);
	CHECK(!VipGetUserData(vi));
	VIP(VIP_SUCCESS, VipSetUserData(vi, &o));
	CHECK(VipGetUserData(vi) == &o);
	VIP(VIP_SUCCESS, VipDestroyVi(vi));
	CHECK(!VipGetUserData(vi));
	vi = one_vi(&o, NULL, NULL);
	CHECK(!VipGetUserData(vi));
	one_close(&o);
}

/* ---- many ---- */

static void limits(void)
{
	enum { MOST = 5000 };
	static VIP_VI_HANDLE vi[MOST];
	static VIP_CQ_HANDLE cq[MOST];
	static VIP_PROTECTION_HANDLE ptag[MOST];
	struct one o;
	VIP_VI_ATTRIBUTES attr;
	unsigned n;

	one_open_as(&o, opened);
	attr = one_attributes(&o);
	for (int round = 0; round < 2; round++) {
		for (n = 0; n < MOST && VipCreateVi(o.nic, &attr, NULL, NULL, &vi[n]) == VIP_SUCCESS; n++)
			;
		CHECK_EQ(n, o.attr.MaxVI);
		VIP(VIP_ERROR_RESOURCE, VipCreateVi(o.nic, &attr, NULL, NULL, &vi[n]));
		while (n)
			VIP(VIP_SUCCESS, VipDestroyVi(vi[--n]));
		for (n = 0; n < MOST && VipCreateCQ(o.nic, 4, &cq[n]) == VIP_SUCCESS; n++)
			;
		CHECK_EQ(n, o.attr.MaxCQ);
		VIP(VIP_ERROR_RESOURCE, VipCreateCQ(o.nic, 4, &cq[n]));
		while (n)
			VIP(VIP_SUCCESS, VipDestroyCQ(cq[--n]));
		for (n = 0; n < MOST && VipCreatePtag(o.nic, &ptag[n]) == VIP_SUCCESS; n++)
			CHECK(ptag[n] != NULL);
		CHECK_EQ(n, o.attr.MaxPtags - 1); /* the fixture has one */
		VIP(VIP_ERROR_RESOURCE, VipCreatePtag(o.nic, &ptag[n]));
		while (n)
			VIP(VIP_SUCCESS, VipDestroyPtag(o.nic, ptag[--n]));
	}
	one_close(&o);
}

static void many_nics(void)
{
	VIP_NIC_HANDLE nic[300];
	unsigned n = 0;

	for (; n < 300 && VipOpenNic(one_device(), &nic[n]) == VIP_SUCCESS; n++)
		;
	CHECK(n >= 16 && n < 300);
	VIP(VIP_ERROR_RESOURCE, VipOpenNic(one_device(), &nic[n]));
	while (n)
		VIP(VIP_SUCCESS, VipCloseNic(nic[--n]));
	for (unsigned i = 0; i < 50; i++) {
		VIP(VIP_SUCCESS, VipOpenNic(one_device(), &nic[0]));
		VIP(VIP_SUCCESS, VipCloseNic(nic[0]));
		bad_nic(nic[0]);
	}
}

int main(void)
{
	for (opened = 0; opened <= VIPX_OPEN_UNLOCKED; opened += VIPX_OPEN_UNLOCKED) {
		CASE(of_no_kind);
		CASE(of_another_kind);
		CASE(stale);
		CASE(of_another_nic);
		CASE(null_pointers);
		CASE(user_data);
	}
	opened = 0;
	CASE(limits);
	CASE(many_nics);
	return check_done();
}
