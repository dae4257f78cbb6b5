/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A VIPL program in two processes.  In one shell, and then in another:
 *
 *	./vipl_hello
 *	./vipl_hello "hello over the emulated NIC"
 *
 * The first waits for a connection and prints what comes over it; the second connects, sends and ends.
 * cc vipl_hello.c $(pkg-config --cflags --libs vipl) -o vipl_hello
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

enum { ROOM = 4096, SECOND = 1000 };

static VIP_NIC_HANDLE nic;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE memory;      /* of the block: */
static VIP_DESCRIPTOR *descriptor; /* one descriptor, */
static char *text;                 /* and ROOM bytes of text behind it */

static void must(VIP_RETURN result, const char *what)
{
	if (result == VIP_SUCCESS)
		return;
	fprintf(stderr, "%s returned %d%s\n", what, (int)result, result == VIP_NO_MATCH ? ": nobody waits there" : "");
	exit(1);
}

/* Errors that belong to no call.  That the other side disconnects when it is done is none here. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	if (error->ErrorCode != VIP_ERROR_CONN_LOST)
		fprintf(stderr, "error %d\n", (int)error->ErrorCode);
}

/* A NIC, a VI, and memory that the NIC may reach: what every VIPL program starts with. */
static void prepare(void)
{
	VIP_PROTECTION_HANDLE tag;
	VIP_MEM_ATTRIBUTES region = { 0 };
	VIP_VI_ATTRIBUTES kind = { 0 };
	void *block = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, sizeof *descriptor + ROOM);

	if (!block)
		exit(1);
	memset(block, 0, sizeof *descriptor + ROOM);
	descriptor = block;
	text = (char *)(descriptor + 1);

	must(VipOpenNic("nic0", &nic), "VipOpenNic");
	must(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
	must(VipCreatePtag(nic, &tag), "VipCreatePtag");
	region.Ptag = kind.Ptag = tag;
	kind.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	must(VipRegisterMem(nic, block, sizeof *descriptor + ROOM, &region, &memory), "VipRegisterMem");
	must(VipCreateVi(nic, &kind, NULL, NULL, &vi), "VipCreateVi");
}

/* An address on this host: the NIC's own, followed by a name of up to MaxDiscriminatorLen bytes. */
static VIP_NET_ADDRESS *address(const char *name)
{
	VIP_NIC_ATTRIBUTES about;
	VIP_NET_ADDRESS *a;

	must(VipQueryNic(nic, &about), "VipQueryNic");
	a = calloc(1, sizeof *a + about.NicAddressLen + about.MaxDiscriminatorLen);
	if (!a)
		exit(1);
	a->HostAddressLen = about.NicAddressLen;
	a->DiscriminatorLen = (VIP_UINT16)strlen(name);
	memcpy(a->HostAddress, about.LocalNicAddress, about.NicAddressLen);
	memcpy(a->HostAddress + about.NicAddressLen, name, strlen(name));
	return a;
}

/* The descriptor, asking for so many bytes of text to be sent, or having room for so many. */
static VIP_DESCRIPTOR *describe(size_t bytes)
{
	descriptor->CS.SegCount = 1;
	descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
	descriptor->CS.Length = descriptor->DS[0].Local.Length = (VIP_UINT32)bytes;
	descriptor->DS[0].Local.Data.Address = text;
	descriptor->DS[0].Local.Handle = memory;
	return descriptor;
}

static void listen_to(const char *place)
{
	VIP_CONN_HANDLE request;
	VIP_VI_ATTRIBUTES theirs;
	VIP_DESCRIPTOR *done;

	must(VipPostRecv(vi, describe(ROOM), memory), "VipPostRecv"); /* before anybody can send */
	must(VipConnectWait(nic, address(place), VIP_INFINITE, address(""), &theirs, &request), "VipConnectWait");
	must(VipConnectAccept(request, vi), "VipConnectAccept");
	must(VipRecvWait(vi, VIP_INFINITE, &done), "VipRecvWait");
	printf("%.*s\n", (int)done->CS.Length, text);
}

static void say(const char *place, const char *words)
{
	VIP_VI_ATTRIBUTES theirs;
	VIP_DESCRIPTOR *done;

	snprintf(text, ROOM, "%s", words);
	must(VipConnectRequest(vi, address("me"), address(place), SECOND, &theirs), "VipConnectRequest");
	must(VipPostSend(vi, describe(strlen(text)), memory), "VipPostSend");
	must(VipSendWait(vi, VIP_INFINITE, &done), "VipSendWait");
}

int main(int argc, char **argv)
{
	prepare();
	if (argc > 1)
		say("hello", argv[1]);
	else
		listen_to("hello");
	must(VipDisconnect(vi), "VipDisconnect");
	must(VipCloseNic(nic), "VipCloseNic");
	return 0;
}
