/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the VIPL tests in one process share: a NIC handle with a tag, memory, and two VIs connected to each other.
 */
#ifndef TESTS_UNIT_VIPL_ONE_H
#define TESTS_UNIT_VIPL_ONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"
#include "vipl.h"

#define VIP(want, call) CHECK_EQ((call), (want))

enum { ONE_MEMORY = 8 << 20, ONE_DATA = 1 << 20, ONE_DESC = 64 };

struct one {
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attr;
	VIP_PROTECTION_HANDLE ptag;
	char *mem, *data; /* descriptors, then data */
	VIP_MEM_HANDLE handle;
	VIP_VI_HANDLE a, b; /* connected to each other by one_connect */
};

union address {
	VIP_NET_ADDRESS a;
	char room[VIPX_ADDRESS_SIZE];
};

static inline const char *one_device(void)
{
	static char name[40];

	setenv("QNIX_LOG", "quiet", 0); /* errors are what the tests provoke */
	snprintf(name, sizeof name, "unit-%d", (int)getpid());
	return name;
}

static inline void one_open_as(struct one *o, VIP_ULONG flags)
{
	VIP_MEM_ATTRIBUTES mem = { 0 };

	memset(o, 0, sizeof *o);
	VIP(VIP_SUCCESS, VipxOpenNic(one_device(), flags, &o->nic));
	VIP(VIP_SUCCESS, VipQueryNic(o->nic, &o->attr));
	VIP(VIP_SUCCESS, VipCreatePtag(o->nic, &o->ptag));
	o->mem = mmap(NULL, ONE_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	o->data = o->mem + ONE_DATA;
	mem.Ptag = o->ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(o->nic, o->mem, ONE_MEMORY, &mem, &o->handle));
}

static inline void one_open(struct one *o)
{
	one_open_as(o, 0);
}

static inline void one_close(struct one *o)
{
	VIP(VIP_SUCCESS, VipCloseNic(o->nic));
	munmap(o->mem, ONE_MEMORY);
}

static inline VIP_VI_ATTRIBUTES one_attributes(const struct one *o)
{
	VIP_VI_ATTRIBUTES attr = { 0 };

	attr.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	attr.MaxTransferSize = 65536;
	attr.Ptag = o->ptag;
	return attr;
}

static inline VIP_VI_HANDLE one_vi(struct one *o, VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE recv_cq)
{
	VIP_VI_ATTRIBUTES attr = one_attributes(o);
	VIP_VI_HANDLE vi = NULL;

	VIP(VIP_SUCCESS, VipCreateVi(o->nic, &attr, send_cq, recv_cq, &vi));
	return vi;
}

static inline void one_address(const struct one *o, const char *disc, union address *out)
{
	size_t n = strlen(disc);

	memset(out, 0, sizeof *out);
	out->a.HostAddressLen = o->attr.NicAddressLen;
	out->a.DiscriminatorLen = (VIP_UINT16)n;
	memcpy(out->room + offsetof(VIP_NET_ADDRESS, HostAddress), o->attr.LocalNicAddress, o->attr.NicAddressLen);
	memcpy(out->room + offsetof(VIP_NET_ADDRESS, HostAddress) + o->attr.NicAddressLen, disc, n);
}

static inline void one_connect(struct one *o)
{
	union address left, right;
	VIP_VI_ATTRIBUTES theirs;

	one_address(o, "left", &left);
	one_address(o, "right", &right);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(o->a, &left.a, &right.a, 5000));
	VIP(VIP_SUCCESS, VipConnectPeerRequest(o->b, &right.a, &left.a, 5000));
	VIP(VIP_SUCCESS, VipConnectPeerWait(o->a, &theirs));
	VIP(VIP_SUCCESS, VipConnectPeerWait(o->b, &theirs));
}

static inline VIP_VI_STATE one_state(VIP_VI_HANDLE vi)
{
	VIP_VI_STATE state = (VIP_VI_STATE)99;
	VIP_VI_ATTRIBUTES attr;
	VIP_BOOLEAN s, r;

	VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &attr, &s, &r));
	return state;
}

static inline VIP_DESCRIPTOR *one_desc(struct one *o, unsigned i, size_t n)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(void *)(o->mem + (size_t)i * ONE_DESC);

	memset(d, 0, sizeof *d);
	d->CS.SegCount = 1;
	d->CS.Length = (VIP_UINT32)n;
	d->DS[0].Local.Data.Address = o->data;
	d->DS[0].Local.Handle = o->handle;
	d->DS[0].Local.Length = (VIP_UINT32)n;
	return d;
}

#endif
