/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What VIPL programs that exist do with their library, each habit in the company of the others it comes with: a message
 * passing library with two completion queues, one with many small unreliable VIs, a one-sided library with a data server
 * thread and null tags.  And what they call their own functions.
 */
#include <pthread.h>

#include "tests/func/vipl_two.h"

/* Names of such a program, which are also names of the C library or sound like it: nothing below may call them. */
static unsigned hijacked;
const char *interface = "via0", *filename = "hosts", *hostname = "me";
int myproc = 7;
#define OURS(name)                    \
	int name(void);               \
	int name(void)                \
	{                             \
		hijacked++;           \
		return -1;            \
	}
OURS(sem_create)
OURS(sem_open)
OURS(sem_close)
OURS(sem_wait)
OURS(sem_signal)
OURS(sem_op)
OURS(sem_rm)
OURS(sem_post)
OURS(sem_init)

/* ---- two completion queues, the highest level there is, hundreds of RDMA writes at once ---- */

enum { M_RECEIVES = 10, M_SIZE = 16 * 1024 - 64, M_RDMA = 300 };

static VIP_RELIABILITY_LEVEL highest(const VIP_NIC_ATTRIBUTES *attr)
{
	if (attr->ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_RECEPTION)
		return VIP_SERVICE_RELIABLE_RECEPTION;
	if (attr->ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_DELIVERY)
		return VIP_SERVICE_RELIABLE_DELIVERY;
	return VIP_SERVICE_UNRELIABLE;
}

static void never_called(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	CHECK_EQ(error->ErrorCode, VIP_ERROR_CONN_LOST);
}

/* The receive of a completion that the queue announced; this program loops in case it is not there yet. */
static VIP_DESCRIPTOR *take_receive(VIP_CQ_HANDLE cq, VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *d = NULL;
	VIP_VI_HANDLE which = NULL;
	VIP_BOOLEAN recv = VIP_FALSE;
	VIP_RETURN result;

	VIP(VIP_SUCCESS, VipCQWait(cq, SOON, &which, &recv));
	CHECK(which == vi && recv);
	while ((result = VipRecvDone(vi, &d)) == VIP_NOT_DONE)
		;
	VIP(VIP_SUCCESS, result);
	return d;
}

static void finish_sends(VIP_CQ_HANDLE cq, VIP_VI_HANDLE vi, unsigned n)
{
	VIP_VI_HANDLE which;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;

	while (n--) {
		VIP(VIP_SUCCESS, VipCQWait(cq, SOON, &which, &recv));
		CHECK(which == vi && !recv);
		VIP(VIP_SUCCESS, VipSendDone(vi, &d));
	}
}

static void message_passing(struct side *s)
{
	VIP_CQ_HANDLE send_cq, recv_cq;
	VIP_VI_ATTRIBUTES attr;
	struct remote mine, *theirs;
	VIP_DESCRIPTOR *d;

	side_open(s);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, NULL, never_called));
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 1024, &send_cq));
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 1024, &recv_cq));
	attr = vi_attributes(s, highest(&s->attr));
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, send_cq, recv_cq, &s->vi));
	for (unsigned i = 0; i < M_RECEIVES; i++) {
		d = desc_make(s, i, s->data + i * M_SIZE, M_SIZE);
		d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
		post_recv(s, d);
	}
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "m"));
	/* Where to write, by value in a message. */
	mine = (struct remote){ (uint64_t)(uintptr_t)(s->data + (4 << 20)), s->handle };
	memcpy(s->data + (2 << 20), &mine, sizeof mine);
	d = desc_make(s, 20, s->data + (2 << 20), sizeof mine);
	d->CS.Control |= VIP_CONTROL_IMMEDIATE;
	d->CS.ImmediateData = 4242;
	meet(s);
	post_send(s, d);
	d = take_receive(recv_cq, s->vi);
	REQUIRE(d && d->CS.Length == sizeof mine && d->CS.ImmediateData == 4242);
	theirs = d->DS[0].Local.Data.Address;
	finish_sends(send_cq, s->vi, 1);
	for (unsigned i = 0; i < M_RDMA; i++) {
		char *from = s->data + (12 << 20) + 8 * i;

		*(uint64_t *)(void *)from = i + 1;
		post_send(s, desc_rdma(s, 100 + i, VIP_CONTROL_OP_RDMAWRITE, from, 8, theirs, 8 * i));
	}
	d = desc_rdma(s, 100 + M_RDMA, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, s->data, 16, theirs, 100000);
	d->CS.ImmediateData = 99;
	post_send(s, d);
	d = take_receive(recv_cq, s->vi);
	REQUIRE(d);
	CHECK_EQ(d->CS.ImmediateData, 99);
	for (unsigned i = 0; i < M_RDMA; i++)
		CHECK_EQ(*(uint64_t *)(void *)(s->data + (4 << 20) + 8 * i), i + 1);
	finish_sends(send_cq, s->vi, M_RDMA + 1);
	meet(s);
	/* Tears down in haste: twice, and eight receives are never dequeued. */
	VipDisconnect(s->vi);
	VipDisconnect(s->vi);
	VIP(VIP_SUCCESS, VipDestroyVi(s->vi));
	VIP(VIP_SUCCESS, VipDestroyCQ(send_cq));
	VIP(VIP_SUCCESS, VipDestroyCQ(recv_cq));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
	CHECK_EQ(hijacked, 0);
}

static void two_completion_queues(void)
{
	both(message_passing);
}

/* ---- many unreliable VIs, acknowledgements without a segment ---- */

enum { P_RECEIVES = 16, P_SIZE = 512, P_ROUNDS = 200 };

static void loosely_coupled(struct side *s)
{
	VIP_VI_ATTRIBUTES attr = { 0 };
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE which;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;
	union address host;

	side_open(s);
	VIP(VIP_SUCCESS, VipNSInit(s->nic, NULL));
	host.a.HostAddressLen = s->attr.NicAddressLen;
	VIP(VIP_SUCCESS, VipNSGetHostByName(s->nic, (VIP_CHAR[]){ "localhost" }, &host.a, 0));
	CHECK(!memcmp(host.room + 4, s->attr.LocalNicAddress, s->attr.NicAddressLen));
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, NULL, never_called));
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 1024, &cq));
	attr.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
	attr.MaxTransferSize = 32000;
	attr.Ptag = s->ptag;
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, cq, &s->vi));
	for (unsigned i = 0; i < P_RECEIVES; i++)
		post_recv(s, desc_make(s, i, s->data + i * P_SIZE, P_SIZE));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, s->server ? "1" : "1"));
	meet(s);
	for (unsigned i = 0; i < P_ROUNDS; i++) {
		if (s->server) {
			d = desc_make(s, 100, s->data + (1 << 20), 300);
			*(unsigned *)(void *)(s->data + (1 << 20)) = i;
			post_send(s, d);
			sent(s, d, VIP_SUCCESS);
		}
		VIP(VIP_SUCCESS, VipCQWait(cq, SOON, &which, &recv));
		VIP(VIP_SUCCESS, VipRecvDone(which, &d)); /* at once */
		REQUIRE(d);
		if (s->server) {
			CHECK_EQ(d->CS.ImmediateData, i);
			CHECK_EQ(d->CS.Length, 0);
		} else {
			CHECK_EQ(*(unsigned *)d->DS[0].Local.Data.Address, i);
			CHECK_EQ(d->CS.Length, 300);
		}
		d->CS.Length = P_SIZE; /* its status stays as it is */
		post_recv(s, d);
		if (!s->server) {
			d = desc_make(s, 100, NULL, 0);
			d->CS.Control |= VIP_CONTROL_IMMEDIATE;
			d->CS.ImmediateData = i;
			post_send(s, d);
			sent(s, d, VIP_SUCCESS);
		}
	}
	meet(s);
	VIP(VIP_SUCCESS, VipDisconnect(s->vi));
	VIP(VIP_SUCCESS, VipDestroyVi(s->vi)); /* sixteen receives still in it */
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	VIP(VIP_SUCCESS, VipNSShutdown(s->nic));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
	CHECK_EQ(hijacked, 0);
}

static void unreliable_without_loss(void)
{
	both(loosely_coupled);
}

/* ---- one-sided: a server thread on a NIC handle of its own, null tags, memory registered twice ---- */

enum { A_BUFFER = 64 * 1023, A_ROUNDS = 300 };

struct data_server {
	VIP_NIC_HANDLE nic;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE handle, writable;
	char *mem;
	unsigned served;
};

static char *plain_memory(void)
{
	return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static VIP_DESCRIPTOR *raw_desc(char *field, void *at, VIP_UINT32 length, VIP_MEM_HANDLE handle)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(void *)field; /* 64 bytes of a larger structure */

	memset(d, 0, 64);
	d->CS.SegCount = 1;
	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.Length = length;
	d->DS[0].Local.Data.Address = at;
	d->DS[0].Local.Handle = handle;
	d->DS[0].Local.Length = length;
	return d;
}

static void register_twice(VIP_NIC_HANDLE nic, char *mem, VIP_MEM_HANDLE *handle, VIP_MEM_HANDLE *writable)
{
	VIP_MEM_ATTRIBUTES attr = { 0 };

	VIP(VIP_SUCCESS, VipCreatePtag(nic, &attr.Ptag));
	VIP(VIP_SUCCESS, VipRegisterMem(nic, mem, 1 << 20, &attr, handle));
	attr.EnableRdmaWrite = VIP_TRUE;
	VIP(VIP_SUCCESS, VipRegisterMem(nic, mem, 1 << 20, &attr, writable));
	CHECK(*handle && *writable && *handle != *writable);
}

static VIP_VI_HANDLE untagged_vi(VIP_NIC_HANDLE nic, VIP_CQ_HANDLE recv_cq, VIP_ULONG size)
{
	VIP_VI_ATTRIBUTES attr;
	VIP_VI_HANDLE vi = NULL;

	memset(&attr, 0, sizeof attr);
	attr.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	attr.MaxTransferSize = size;
	attr.EnableRdmaWrite = VIP_TRUE;
	VIP(VIP_SUCCESS, VipCreateVi(nic, &attr, NULL, recv_cq, &vi));
	return vi;
}

/* Adds one to each word of a request and writes the answer where the request says, then notifies by a small send. */
static void *serve_data(void *arg)
{
	struct data_server *s = arg;
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d, *answer, *done;
	struct remote to;

	for (s->served = 0; s->served < A_ROUNDS; s->served++) {
		if (VipCQWait(s->cq, VIP_INFINITE, &vi, &recv) != VIP_SUCCESS || VipRecvDone(vi, &d) != VIP_SUCCESS)
			break;
		memcpy(&to, s->mem + 4096, sizeof to);
		s->mem[4096 + sizeof to]++;
		answer = raw_desc(s->mem + 128, NULL, 1, s->handle);
		answer->CS.SegCount = 2;
		answer->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
		answer->DS[0].Remote.Data.AddressBits = to.at;
		answer->DS[0].Remote.Handle = to.handle;
		answer->DS[0].Remote.Reserved = 0;
		answer->DS[1].Local.Data.Address = s->mem + 4096 + sizeof to;
		answer->DS[1].Local.Handle = s->handle;
		answer->DS[1].Local.Length = 1;
		raw_desc((char *)d, s->mem + 4096, A_BUFFER, s->handle);
		if (VipPostRecv(vi, d, s->handle) != VIP_SUCCESS || VipPostSend(vi, answer, s->handle) != VIP_SUCCESS ||
		    VipSendWait(vi, VIP_INFINITE, &done) != VIP_SUCCESS)
			break;
	}
	return NULL;
}

static void start_server(struct data_server *s)
{
	VIP(VIP_SUCCESS, VipOpenNic(two_device, &s->nic));
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 1024, &s->cq));
	s->mem = plain_memory();
	register_twice(s->nic, s->mem, &s->handle, &s->writable);
}

static void one_sided(struct side *s)
{
	struct data_server server = { 0 };
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;
	VIP_MEM_HANDLE handle, writable;
	VIP_DESCRIPTOR *d, *done;
	pthread_t thread;
	char *mem = plain_memory();
	struct remote here;
	VIP_VI_HANDLE vi;

	VIP(VIP_SUCCESS, VipOpenNic(two_device, &s->nic));
	VIP(VIP_SUCCESS, VipQueryNic(s->nic, &s->attr));
	CHECK(s->attr.MaxTransferSize >= A_BUFFER);
	start_server(&server);
	register_twice(s->nic, mem, &handle, &writable);
	vi = untagged_vi(s->nic, NULL, s->attr.MaxTransferSize);
	server.vi = untagged_vi(server.nic, server.cq, s->attr.MaxTransferSize);
	VIP(VIP_SUCCESS, VipPostRecv(server.vi, raw_desc(server.mem, server.mem + 4096, A_BUFFER, server.handle), server.handle));
	/* Each side's client connects to the other's server: first one way, then the other. */
	for (int round = 0; round < 2; round++) {
		if (s->server == (round == 0)) {
			address_of(s, "data server", &local);
			VIP(VIP_SUCCESS, VipConnectWait(server.nic, &local.a, SOON, &remote.a, &theirs, &conn));
			VIP(VIP_SUCCESS, VipConnectAccept(conn, server.vi));
		} else {
			address_of(s, "me", &local);
			address_of(s, "data server", &remote);
			while (VipConnectRequest(vi, &local.a, &remote.a, SOON, &theirs) == VIP_NO_MATCH)
				usleep(10);
		}
		meet(s);
	}
	REQUIRE(pthread_create(&thread, NULL, serve_data, &server) == 0);
	mem[4096] = 0;
	for (unsigned i = 0; i < A_ROUNDS; i++) {
		char want = (char)(mem[4096] + 1);

		here = (struct remote){ (uint64_t)(uintptr_t)(mem + 4096), writable };
		memcpy(mem + 8192, &here, sizeof here);
		mem[8192 + sizeof here] = mem[4096];
		d = raw_desc(mem, mem + 8192, sizeof here + 1 + i * 100, handle);
		VIP(VIP_SUCCESS, VipPostSend(vi, d, handle));
		VIP(VIP_SUCCESS, VipSendWait(vi, SOON, &done));
		/* Polls the word that the answer is written to. */
		for (unsigned long spins = 0; __atomic_load_n(&mem[4096], __ATOMIC_ACQUIRE) != want && spins < 1u << 30; spins++)
			VipSendDone(vi, &done);
		if (!CHECK_EQ(mem[4096], want))
			break;
	}
	pthread_join(thread, NULL);
	CHECK_EQ(server.served, A_ROUNDS);
	meet(s);
	VIP(VIP_SUCCESS, VipDisconnect(vi));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
	VIP(VIP_SUCCESS, VipCloseNic(server.nic));
	CHECK_EQ(hijacked, 0);
}

static void a_data_server(void)
{
	both(one_sided);
}

int main(void)
{
	two_init("clients");
	CASE(two_completion_queues);
	CASE(unreliable_without_loss);
	CASE(a_data_server);
	CHECK(myproc == 7 && interface && filename && hostname);
	return check_done();
}
