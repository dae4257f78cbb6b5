/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vipl.h as programs of other providers see it: names, values and offsets of VIPL 1.0, and the idioms those programs use.
 */
#define VIPL095
#include "vipl.h"

#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED (-33333) /* some headers lack it; ours must not seem to */
#endif

#include <stddef.h>

#include "tests/check.h"

#define AT(type, member, offset) CHECK_EQ(offsetof(type, member), (offset))

static void offsets(void)
{
	CHECK_EQ(sizeof(VIP_NET_ADDRESS), 6);
	AT(VIP_NET_ADDRESS, HostAddressLen, 0);
	AT(VIP_NET_ADDRESS, DiscriminatorLen, 2);
	AT(VIP_NET_ADDRESS, HostAddress, 4);
	CHECK_EQ(sizeof(VIP_NIC_ATTRIBUTES), 200);
	AT(VIP_NIC_ATTRIBUTES, Name, 0);
	AT(VIP_NIC_ATTRIBUTES, HardwareVersion, 64);
	AT(VIP_NIC_ATTRIBUTES, ProviderVersion, 72);
	AT(VIP_NIC_ATTRIBUTES, NicAddressLen, 80);
	AT(VIP_NIC_ATTRIBUTES, LocalNicAddress, 88);
	AT(VIP_NIC_ATTRIBUTES, ThreadSafe, 96);
	AT(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen, 100);
	AT(VIP_NIC_ATTRIBUTES, MaxRegisterBytes, 104);
	AT(VIP_NIC_ATTRIBUTES, MaxRegisterRegions, 112);
	AT(VIP_NIC_ATTRIBUTES, MaxRegisterBlockBytes, 120);
	AT(VIP_NIC_ATTRIBUTES, MaxVI, 128);
	AT(VIP_NIC_ATTRIBUTES, MaxDescriptorsPerQueue, 136);
	AT(VIP_NIC_ATTRIBUTES, MaxSegmentsPerDesc, 144);
	AT(VIP_NIC_ATTRIBUTES, MaxCQ, 152);
	AT(VIP_NIC_ATTRIBUTES, MaxCQEntries, 160);
	AT(VIP_NIC_ATTRIBUTES, MaxTransferSize, 168);
	AT(VIP_NIC_ATTRIBUTES, NativeMTU, 176);
	AT(VIP_NIC_ATTRIBUTES, MaxPtags, 184);
	AT(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport, 192);
	AT(VIP_NIC_ATTRIBUTES, RDMAReadSupport, 194);
	CHECK_EQ(sizeof(VIP_VI_ATTRIBUTES), 40);
	AT(VIP_VI_ATTRIBUTES, ReliabilityLevel, 0);
	AT(VIP_VI_ATTRIBUTES, MaxTransferSize, 8);
	AT(VIP_VI_ATTRIBUTES, QoS, 16);
	AT(VIP_VI_ATTRIBUTES, Ptag, 24);
	AT(VIP_VI_ATTRIBUTES, EnableRdmaWrite, 32);
	AT(VIP_VI_ATTRIBUTES, EnableRdmaRead, 36);
	CHECK_EQ(sizeof(VIP_MEM_ATTRIBUTES), 16);
	AT(VIP_MEM_ATTRIBUTES, Ptag, 0);
	AT(VIP_MEM_ATTRIBUTES, EnableRdmaWrite, 8);
	AT(VIP_MEM_ATTRIBUTES, EnableRdmaRead, 12);
}

static void descriptor(void)
{
	VIP_DESCRIPTOR d;

	memset(&d, 0, sizeof d);
	CHECK_EQ(sizeof(VIP_DESCRIPTOR), 64);
	CHECK_EQ(sizeof(VIP_CONTROL_SEGMENT), 32);
	CHECK_EQ(sizeof(VIP_DATA_SEGMENT), 16);
	CHECK_EQ(sizeof(VIP_ADDRESS_SEGMENT), 16);
	AT(VIP_DESCRIPTOR, CS.Next.Address, 0);
	AT(VIP_DESCRIPTOR, CS.Next.AddressBits, 0);
	AT(VIP_DESCRIPTOR, CS.NextHandle, 8);
	AT(VIP_DESCRIPTOR, CS.SegCount, 12);
	AT(VIP_DESCRIPTOR, CS.Control, 14);
	AT(VIP_DESCRIPTOR, CS.Reserved, 16);
	AT(VIP_DESCRIPTOR, CS.ImmediateData, 20);
	AT(VIP_DESCRIPTOR, CS.Length, 24);
	AT(VIP_DESCRIPTOR, CS.Status, 28);
	AT(VIP_DESCRIPTOR, DS, 32);
	AT(VIP_DESCRIPTOR, DS[0].Local.Data.Address, 32);
	AT(VIP_DESCRIPTOR, DS[0].Local.Handle, 40);
	AT(VIP_DESCRIPTOR, DS[0].Local.Length, 44);
	AT(VIP_DESCRIPTOR, DS[1].Remote.Data.AddressBits, 48);
	AT(VIP_DESCRIPTOR, DS[1].Remote.Handle, 56);
	AT(VIP_DESCRIPTOR, DS[1].Remote.Reserved, 60);
	CHECK_EQ(VIP_DESCRIPTOR_ALIGNMENT, 64);
	/* Free descriptors are chained through CS.Next by programs. */
	d.CS.Next.Address = &d;
	CHECK(d.CS.Next.AddressBits == (VIP_UINT64)(uintptr_t)&d);
}

static void values(void)
{
	CHECK_EQ(sizeof(VIP_MEM_HANDLE), 4);
	CHECK_EQ(sizeof(VIP_ULONG), sizeof(unsigned long));
	CHECK_EQ(sizeof(VIP_RELIABILITY_LEVEL), 2);
	CHECK_EQ(sizeof(VIP_BOOLEAN), sizeof(int));
	CHECK(VIP_TRUE == 1 && VIP_FALSE == 0);
	CHECK(VIP_INFINITE == ~0ul);
	CHECK(VIP_SERVICE_UNRELIABLE == 1 && VIP_SERVICE_RELIABLE_DELIVERY == 2 && VIP_SERVICE_RELIABLE_RECEPTION == 4);
	CHECK_EQ(VIP_SMI_AUTODISCOVERY, 1);
	CHECK(VIP_SUCCESS == 0 && VIP_NOT_DONE == 1 && VIP_INVALID_PARAMETER == 2 && VIP_ERROR_RESOURCE == 3);
	CHECK(VIP_TIMEOUT == 4 && VIP_REJECT == 5 && VIP_INVALID_RELIABILITY_LEVEL == 6 && VIP_INVALID_MTU == 7);
	CHECK(VIP_INVALID_QOS == 8 && VIP_INVALID_PTAG == 9 && VIP_INVALID_RDMAREAD == 10 && VIP_DESCRIPTOR_ERROR == 11);
	CHECK(VIP_ERROR_NOT_SUPPORTED == 16 && VIP_INVALID_STATE == 12 && VIP_ERROR_NAMESERVICE == 13 && VIP_NO_MATCH == 14 && VIP_NOT_REACHABLE == 15);
	CHECK(VIP_STATE_IDLE == 0 && VIP_STATE_CONNECTED == 1 && VIP_STATE_CONNECT_PENDING == 2 && VIP_STATE_ERROR == 3);
	CHECK(VIP_ERROR_POST_DESC == 0 && VIP_ERROR_CONN_LOST == 1 && VIP_ERROR_RECVQ_EMPTY == 2 && VIP_ERROR_VI_OVERRUN == 3);
	CHECK(VIP_ERROR_RDMAW_PROT == 4 && VIP_ERROR_RDMAW_DATA == 5 && VIP_ERROR_RDMAW_ABORT == 6 && VIP_ERROR_RDMAR_PROT == 7);
	CHECK(VIP_ERROR_COMP_PROT == 8 && VIP_ERROR_RDMA_TRANSPORT == 9 && VIP_ERROR_CATASTROPHIC == 10);
	CHECK(VIP_RESOURCE_NIC == 0 && VIP_RESOURCE_VI == 1 && VIP_RESOURCE_CQ == 2 && VIP_RESOURCE_DESCRIPTOR == 3);
	CHECK(VIP_CONTROL_OP_MASK == 3 && VIP_CONTROL_OP_SENDRECV == 0 && VIP_CONTROL_OP_RDMAWRITE == 1);
	CHECK(VIP_CONTROL_OP_RDMAREAD == 2 && VIP_CONTROL_OP_RESERVED == 3 && VIP_CONTROL_IMMEDIATE == 4);
	CHECK(VIP_CONTROL_QFENCE == 8 && VIP_CONTROL_RESERVED == 0xFFF0);
	CHECK(VIP_STATUS_DONE == 1 && VIP_STATUS_FORMAT_ERROR == 2 && VIP_STATUS_PROTECTION_ERROR == 4);
	CHECK(VIP_STATUS_LENGTH_ERROR == 8 && VIP_STATUS_PARTIAL_ERROR == 0x10 && VIP_STATUS_DESC_FLUSHED_ERROR == 0x20);
	CHECK(VIP_STATUS_TRANSPORT_ERROR == 0x40 && VIP_STATUS_RDMA_PROT_ERROR == 0x80 && VIP_STATUS_REMOTE_DESC_ERROR == 0x100);
	CHECK(VIP_STATUS_ERROR_MASK == 0x1FE && VIP_STATUS_OP_MASK == 0x70000 && VIP_STATUS_OP_SEND == 0);
	CHECK(VIP_STATUS_OP_RECEIVE == 0x10000 && VIP_STATUS_OP_RDMA_WRITE == 0x20000);
	CHECK(VIP_STATUS_OP_REMOTE_RDMA_WRITE == 0x30000 && VIP_STATUS_OP_RDMA_READ == 0x40000);
	CHECK(VIP_STATUS_IMMEDIATE == 0x80000 && VIP_STATUS_RESERVED == 0xFFF0FE00);
}

/* Return codes are enumerators: programs print them by a switch. */
static const char *name_of(VIP_RETURN code)
{
	switch (code) {
	case VIP_SUCCESS:
		return "VIP_SUCCESS";
	case VIP_NO_MATCH:
		return "VIP_NO_MATCH";
	case VIP_NOT_REACHABLE:
		return "VIP_NOT_REACHABLE";
	case VIP_ERROR_NOT_SUPPORTED:
		return "VIP_ERROR_NOT_SUPPORTED";
	default:
		return "another";
	}
}

static void idioms(void)
{
	char field[64], address[40], text[32];
	VIP_NET_ADDRESS *net = (VIP_NET_ADDRESS *)(void *)address;
	VIP_RETURN (*by_name)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE) = VipPostSend;
	VIP_ULONG n = 123456;

	CHECK_STR(name_of(VIP_NO_MATCH), "VIP_NO_MATCH");
	CHECK_STR(name_of(VIP_TIMEOUT), "another");
	CHECK_EQ(sizeof field, sizeof(VIP_DESCRIPTOR));
	CHECK_EQ((char *)net->HostAddress - address, 4);
	CHECK_EQ(by_name(NULL, NULL, 0), VIP_INVALID_PARAMETER);
	snprintf(text, sizeof text, "%ld", n);
	CHECK_STR(text, "123456");
}

int main(void)
{
	CASE(offsets);
	CASE(descriptor);
	CASE(values);
	CASE(idioms);
	return check_done();
}
