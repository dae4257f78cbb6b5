/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA without descriptors: in the command (VipxRdmaNow), posted writes (VipxRdmaPost), and fetches (VipxRdmaFetch).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/uio.h>

#include "tests/unit/vipl/one.h"

/* Does this NIC do RDMA in the command, where cross-memory attach works? */
static bool rdma_now_works(void)
{
	char here = 0, there = 1;
	struct iovec l = { &here, 1 }, r = { &there, 1 };

	return strcmp(VipxParameterString("arch"), "direct") == 0 && strcmp(VipxParameterString("engine"), "daemon") != 0 &&
	       strcmp(VipxParameterString("cma"), "auto") == 0 && process_vm_readv(getpid(), &l, 1, &r, 1, 0) == 1;
}

/* RDMA in the command: over when the call returns, or not begun; then no error is raised. */
/* Two VIs of one NIC, with the right to that, and a page of its memory; the VIs are not connected yet.  rdma: how. */
static VIP_MEM_HANDLE open_as(struct one *o, VIP_ULONG flags, const char *rdma, bool writes)
{
	VIP_MEM_ATTRIBUTES mem = { .EnableRdmaWrite = writes, .EnableRdmaRead = !writes };
	VIP_VI_ATTRIBUTES attr;
	VIP_MEM_HANDLE page;

	VIP(VIP_SUCCESS, VipxParameterSet("rdma", rdma, "test"));
	one_open_as(o, flags);
	attr = one_attributes(o);
	attr.EnableRdmaWrite = writes;
	attr.EnableRdmaRead = !writes;
	VIP(VIP_SUCCESS, VipCreateVi(o->nic, &attr, NULL, NULL, &o->a));
	VIP(VIP_SUCCESS, VipCreateVi(o->nic, &attr, NULL, NULL, &o->b));
	mem.Ptag = o->ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(o->nic, o->data, 4096, &mem, &page));
	return page;
}

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

/* Posted writes: by value, and in place when they are said to be. */
static void posted_writes(VIP_ULONG flags)
{
	VIP_RETURN good = rdma_now_works() ? VIP_SUCCESS : VIP_NOT_DONE;
	const VIP_UINT64 *protection;
	uint8_t data[100];
	VIPX_POSTED w = { .Data = data, .Length = sizeof(data) };
	struct one o;

	w.RemoteHandle = open_as(&o, flags, "stream", true);
	w.Remote = (uintptr_t)o.data;
	VIP(VIP_NOT_DONE, VipxRdmaPost(o.a, &w)); /* no connection */
	one_connect(&o);
	VIP(VIP_INVALID_PARAMETER, VipxRdmaPost(NULL, &w));
	VIP(VIP_INVALID_PARAMETER, VipxRdmaPost(o.a, NULL));
	VIP(VIP_INVALID_PARAMETER, VipxPostedDone(NULL));
	VIP(VIP_SUCCESS, VipxPostedDone(o.nic));
	for (int i = 0; i < 3; i++) {
		memset(data, 'a' + i, sizeof(data));
		w.Remote = (uintptr_t)o.data + (uintptr_t)(1000 * i);
		VIP(good, VipxRdmaPost(o.a, &w));
	}
	memset(data, 0, sizeof(data));
	VIP(good == VIP_SUCCESS ? VIP_NOT_DONE : VIP_SUCCESS, VipxPostedDone(o.nic));
	for (int i = 0; i < 1000 && VipxPostedDone(o.nic) == VIP_NOT_DONE; i++)
		VipxPoll(o.nic);
	VIP(VIP_SUCCESS, VipxPostedDone(o.nic));
	for (int i = 0; i < 3; i++)
		CHECK(good == VIP_NOT_DONE || (o.data[1000 * i] == (char)('a' + i) && o.data[1000 * i + 99] == (char)('a' + i)));
	/* Wrong, which a descriptor would be told. */
	protection = VipxCounter(o.nic, "protection_errors", "");
	w.Length = VIPX_POSTED_MAX + 1;
	VIP(VIP_NOT_DONE, VipxRdmaPost(o.a, &w));
	w.Length = sizeof(data);
	w.Remote = (uintptr_t)o.data + 4000;
	VIP(VIP_NOT_DONE, VipxRdmaPost(o.a, &w));
	w.Remote = (uintptr_t)o.data;
	w.RemoteHandle = o.handle; /* registered without the right */
	VIP(VIP_NOT_DONE, VipxRdmaPost(o.a, &w));
	CHECK_EQ(*protection, 0);
	CHECK_EQ(one_state(o.a), VIP_STATE_CONNECTED);
	one_close(&o);
	VIP(VIP_SUCCESS, VipxParameterSet("rdma", "auto", "test"));
}

/* Fetches: what they bring is there when they are counted. */
static void fetches(VIP_ULONG flags)
{
	VIP_RETURN good = rdma_now_works() ? VIP_SUCCESS : VIP_NOT_DONE;
	VIP_UINT32 all = good == VIP_SUCCESS ? 3 : 0;
	const VIP_UINT64 *protection;
	VIP_UINT32 status = 1;
	uint8_t data[300] = { 0 };
	VIPX_FETCH f = { .Length = 100 };
	struct one o;

	f.RemoteHandle = open_as(&o, flags, "stream", false);
	f.To = data;
	f.Remote = (uintptr_t)o.data;
	VIP(VIP_NOT_DONE, VipxRdmaFetch(o.a, &f)); /* no connection */
	one_connect(&o);
	VIP(VIP_INVALID_PARAMETER, VipxRdmaFetch(NULL, &f));
	VIP(VIP_INVALID_PARAMETER, VipxRdmaFetch(o.a, NULL));
	CHECK_EQ(VipxFetched(NULL, NULL), 0);
	CHECK_EQ(VipxFetched(o.a, NULL), 0);
	for (int i = 0; i < 3; i++) {
		memset(o.data + 1000 * i, 'a' + i, 100);
		f.To = data + 100 * i;
		f.Remote = (uintptr_t)o.data + (uintptr_t)(1000 * i);
		VIP(good, VipxRdmaFetch(o.a, &f));
	}
	CHECK_EQ(VipxFetched(o.a, NULL), 0);
	for (int i = 0; i < 1000 && VipxFetched(o.a, NULL) != all; i++)
		VipxPoll(o.nic);
	CHECK_EQ(VipxFetched(o.a, &status), all);
	CHECK_EQ(status, 0);
	CHECK_EQ(VipxFetched(o.b, NULL), 0);
	for (int i = 0; i < 3; i++)
		CHECK(!all || (data[100 * i] == 'a' + i && data[100 * i + 99] == 'a' + i));
	/* Wrong, which a descriptor would be told. */
	protection = VipxCounter(o.nic, "protection_errors", "");
	f.Length = VIPX_FETCH_MAX + 1;
	VIP(VIP_NOT_DONE, VipxRdmaFetch(o.a, &f));
	f.Length = 100;
	f.Remote = (uintptr_t)o.data + 4000;
	VIP(VIP_NOT_DONE, VipxRdmaFetch(o.a, &f));
	f.Remote = (uintptr_t)o.data;
	f.RemoteHandle = o.handle; /* registered without the right */
	VIP(VIP_NOT_DONE, VipxRdmaFetch(o.a, &f));
	CHECK_EQ(*protection, 0);
	CHECK_EQ(one_state(o.a), VIP_STATE_CONNECTED);
	one_close(&o);
	VIP(VIP_SUCCESS, VipxParameterSet("rdma", "auto", "test"));
}

static void rdma_by_value(void)
{
	fetches(0);
	fetches(VIPX_OPEN_UNLOCKED);
}

static void rdma_without_a_completion(void)
{
	posted_writes(0);
	posted_writes(VIPX_OPEN_UNLOCKED);
}

static void rdma_in_the_command(void)
{
	rdma_commands(0);
	rdma_commands(VIPX_OPEN_UNLOCKED);
}

int main(void)
{
	CASE(rdma_in_the_command);
	CASE(rdma_without_a_completion);
	CASE(rdma_by_value);
	return check_done();
}
