/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest VIPL program that notices a broken library: two processes
 * connect as client and server, and one sentence goes across.
 * Uses the calls of VIPL 1.0 only. Status 0 when the sentence arrived.
 */
#define _POSIX_C_SOURCE 200809L
#define VIPL_NO_EXTENSIONS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

static const char sentence[] = "hello over the emulated NIC";
static const char meeting_place[] = "vipl-hello";
enum { PATIENCE_MS = 10000, RETRY_US = 10000 };

/* Everything that one end needs, and one registered block: a descriptor and its data. */
struct end {
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attributes;
	VIP_PROTECTION_HANDLE ptag;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE memory;
	VIP_DESCRIPTOR *descriptor;
	char *data;
};

static const char *me;

static void need(VIP_RETURN got, const char *call)
{
	if (got == VIP_SUCCESS)
		return;
	fprintf(stderr, "%s: %s returned %d\n", me, call, (int)got);
	exit(EXIT_FAILURE);
}

static void open_end(struct end *e)
{
	VIP_MEM_ATTRIBUTES region = { 0 };
	VIP_VI_ATTRIBUTES vi = { 0 };
	void *block = NULL;

	need(VipOpenNic("nic0", &e->nic), "VipOpenNic");
	need(VipQueryNic(e->nic, &e->attributes), "VipQueryNic");
	need(VipCreatePtag(e->nic, &e->ptag), "VipCreatePtag");
	vi.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	vi.MaxTransferSize = 4096;
	vi.Ptag = e->ptag;
	need(VipCreateVi(e->nic, &vi, NULL, NULL, &e->vi), "VipCreateVi");

	if (posix_memalign(&block, VIP_DESCRIPTOR_ALIGNMENT, 4096))
		exit(EXIT_FAILURE);
	memset(block, 0, 4096);
	region.Ptag = e->ptag;
	need(VipRegisterMem(e->nic, block, 4096, &region, &e->memory), "VipRegisterMem");
	e->descriptor = block;
	e->data = (char *)block + VIP_DESCRIPTOR_ALIGNMENT;
}

static void describe(struct end *e, VIP_UINT32 bytes)
{
	e->descriptor->CS.SegCount = 1;
	e->descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
	e->descriptor->CS.Length = bytes;
	e->descriptor->DS[0].Local.Data.Address = e->data;
	e->descriptor->DS[0].Local.Handle = e->memory;
	e->descriptor->DS[0].Local.Length = bytes;
}

static void close_end(struct end *e)
{
	need(VipDestroyVi(e->vi), "VipDestroyVi");
	need(VipDeregisterMem(e->nic, e->descriptor, e->memory), "VipDeregisterMem");
	need(VipDestroyPtag(e->nic, e->ptag), "VipDestroyPtag");
	need(VipCloseNic(e->nic), "VipCloseNic");
	free(e->descriptor);
}

/* This host's NIC, and the meeting place as discriminator. */
static VIP_NET_ADDRESS *address(const struct end *e, const char *place)
{
	size_t host = e->attributes.NicAddressLen, length = strlen(place);
	VIP_NET_ADDRESS *a = calloc(1, sizeof *a + host + length);

	if (!a)
		exit(EXIT_FAILURE);
	a->HostAddressLen = (VIP_UINT16)host;
	a->DiscriminatorLen = (VIP_UINT16)length;
	memcpy(a->HostAddress, e->attributes.LocalNicAddress, host);
	memcpy(a->HostAddress + host, place, length);
	return a;
}

static int serve(void)
{
	struct end e = { 0 };
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE request;
	VIP_DESCRIPTOR *done = NULL;
	VIP_NET_ADDRESS *local, *remote;
	int same;

	me = "server";
	open_end(&e);
	local = address(&e, meeting_place);
	remote = calloc(1, sizeof *remote + e.attributes.NicAddressLen + e.attributes.MaxDiscriminatorLen);
	if (!remote)
		return EXIT_FAILURE;
	remote->HostAddressLen = e.attributes.NicAddressLen;
	remote->DiscriminatorLen = e.attributes.MaxDiscriminatorLen;
	describe(&e, 4096 - VIP_DESCRIPTOR_ALIGNMENT);
	need(VipPostRecv(e.vi, e.descriptor, e.memory), "VipPostRecv");
	need(VipConnectWait(e.nic, local, PATIENCE_MS, remote, &theirs, &request), "VipConnectWait");
	need(VipConnectAccept(request, e.vi), "VipConnectAccept");
	need(VipRecvWait(e.vi, PATIENCE_MS, &done), "VipRecvWait");
	same = done == e.descriptor && done->CS.Length == sizeof sentence && !strcmp(e.data, sentence);
	printf("%s got \"%.*s\"\n", me, (int)sizeof sentence, e.data);
	need(VipDisconnect(e.vi), "VipDisconnect");
	free(local);
	free(remote);
	close_end(&e);
	return same ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The server may not be there yet: ask again for a while. */
static void connect_to_server(struct end *e)
{
	VIP_NET_ADDRESS *local = address(e, "vipl-hello client"), *remote = address(e, meeting_place);
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN got;
	int tries = PATIENCE_MS * 1000 / RETRY_US;
	const struct timespec pause = { 0, RETRY_US * 1000L };

	do {
		got = VipConnectRequest(e->vi, local, remote, PATIENCE_MS, &theirs);
		if (got == VIP_NO_MATCH || got == VIP_NOT_REACHABLE)
			nanosleep(&pause, NULL);
	} while ((got == VIP_NO_MATCH || got == VIP_NOT_REACHABLE) && --tries);
	need(got, "VipConnectRequest");
	free(local);
	free(remote);
}

static int ask(void)
{
	struct end e = { 0 };
	VIP_DESCRIPTOR *done = NULL;

	me = "client";
	open_end(&e);
	connect_to_server(&e);
	memcpy(e.data, sentence, sizeof sentence);
	describe(&e, sizeof sentence);
	need(VipPostSend(e.vi, e.descriptor, e.memory), "VipPostSend");
	need(VipSendWait(e.vi, PATIENCE_MS, &done), "VipSendWait");
	need(VipDisconnect(e.vi), "VipDisconnect");
	close_end(&e);
	return EXIT_SUCCESS;
}

int main(void)
{
	pid_t child = fork();
	int server, client = -1;

	if (child < 0)
		return EXIT_FAILURE;
	if (!child)
		return ask();
	server = serve();
	waitpid(child, &client, 0);
	return server || client;
}
