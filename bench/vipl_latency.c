/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The questions of nic_latency one layer higher, through VIPL: the difference is what VIPL costs (two.h).
 */
#include "vipl.h"
#include "bench/two.h"

struct side {
	VIP_NIC_HANDLE nic;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE desc_handle, mem_handle;
	VIP_DESCRIPTOR *desc; /* DEPTH receives, then one send */
	uint8_t *mem;
};

static void die(const char *what, VIP_RETURN result)
{
	fprintf(stderr, "vipl_latency: %s: VIP_RETURN %d (%s)\n", what, (int)result, VipxLastError());
	exit(1);
}

static void post_recv(struct side *s, VIP_DESCRIPTOR *d)
{
	long i = d - s->desc;

	d->CS.Control = pool ? VIP_CONTROL_POOL : 0;
	d->CS.SegCount = 1;
	d->CS.Reserved = 0;
	d->DS[0].Local.Data.Address = s->mem + max_size + (pool ? i * SMALL : 0);
	d->DS[0].Local.Handle = s->mem_handle;
	d->DS[0].Local.Length = pool ? SMALL : max_size;
	VipPostRecv(s->vi, d, s->desc_handle);
}

static void wait_recv(struct side *s)
{
	VIP_DESCRIPTOR *d;
	VIP_RETURN result;

	while ((result = VipRecvDone(s->vi, &d)) == VIP_NOT_DONE)
		;
	if (result != VIP_SUCCESS)
		die("receive", result);
	if (d->CS.Status & VIP_STATUS_POOL)
		VipxGiveBuffer(s->nic, d->DS[1].Local.Data.Address);
	post_recv(s, d);
}

static void send_one(struct side *s, size_t len, enum two_op op, int peer)
{
	static const uint16_t control[] = { [TWO_SEND] = VIP_CONTROL_OP_SENDRECV, [TWO_PUT] = VIP_CONTROL_OP_RDMAWRITE, [TWO_GET] = VIP_CONTROL_OP_RDMAREAD };
	VIP_DESCRIPTOR *d = &s->desc[DEPTH], *done;
	VIP_RETURN result;
	bool give = pool && op == TWO_SEND;
	int first = op != TWO_SEND;

	d->CS.Control = control[op] | (give ? VIP_CONTROL_POOL : 0);
	d->CS.SegCount = 1 + first;
	d->CS.Reserved = 0;
	d->CS.Length = len;
	if (first) {
		d->DS[0].Remote.Data.AddressBits = meet->addr[peer];
		d->DS[0].Remote.Handle = meet->handle[peer];
		d->DS[0].Remote.Reserved = 0;
	}
	d->DS[first].Local.Data.Address = s->mem;
	d->DS[first].Local.Handle = s->mem_handle;
	d->DS[first].Local.Length = len;
	while (give && !(d->DS[0].Local.Data.Address = VipxTakeBuffer(s->nic)))
		VipxPoll(s->nic);
	if (give)
		d->DS[0].Local.Handle = VIPX_POOL_HANDLE;
	VipPostSend(s->vi, d, s->desc_handle);
	while ((result = VipSendDone(s->vi, &done)) == VIP_NOT_DONE)
		;
	if (result != VIP_SUCCESS)
		die("send", result);
}

static void address(struct side *s, VIP_NET_ADDRESS *out, uint8_t who)
{
	VIP_NIC_ATTRIBUTES attr;

	VipQueryNic(s->nic, &attr);
	out->HostAddressLen = attr.NicAddressLen;
	out->DiscriminatorLen = 1;
	memcpy(out->HostAddress, attr.LocalNicAddress, attr.NicAddressLen);
	out->HostAddress[attr.NicAddressLen] = who;
}

static void connect_vi(struct side *s, int me)
{
	char local[64], remote[64];
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN result;

	address(s, (VIP_NET_ADDRESS *)local, me);
	address(s, (VIP_NET_ADDRESS *)remote, !me);
	result = VipConnectPeerRequest(s->vi, (VIP_NET_ADDRESS *)local, (VIP_NET_ADDRESS *)remote, 30000);
	if (result == VIP_SUCCESS)
		result = VipConnectPeerWait(s->vi, &theirs);
	if (result != VIP_SUCCESS)
		die("connect", result);
}

static struct side *open_side(int me, const char *device)
{
	static struct side side, *s = &side;
	VIP_VI_ATTRIBUTES vi = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY, .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE };
	VIP_MEM_ATTRIBUTES attr = { .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE };
	VIP_NIC_ATTRIBUTES nic;
	VIP_RETURN result;

	result = VipxOpenNic(device, VIPX_OPEN_UNLOCKED, &s->nic);
	if (result != VIP_SUCCESS)
		die("open", result);
	s->mem = mmap(NULL, 2 * max_size + DEPTH * SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(s->mem, me, 2 * max_size);
	s->desc = aligned_alloc(64, (DEPTH + 1) * sizeof(*s->desc));
	memset(s->desc, 0, (DEPTH + 1) * sizeof(*s->desc));
	VipQueryNic(s->nic, &nic);
	vi.MaxTransferSize = nic.MaxTransferSize;
	result = VipCreatePtag(s->nic, &attr.Ptag);
	vi.Ptag = attr.Ptag;
	if (result == VIP_SUCCESS)
		result = VipRegisterMem(s->nic, s->mem, 2 * max_size + DEPTH * SMALL, &attr, &s->mem_handle);
	if (result == VIP_SUCCESS)
		result = VipRegisterMem(s->nic, s->desc, (DEPTH + 1) * sizeof(*s->desc), &attr, &s->desc_handle);
	if (result == VIP_SUCCESS)
		result = VipCreateVi(s->nic, &vi, NULL, NULL, &s->vi);
	if (result != VIP_SUCCESS)
		die("set-up", result);
	meet->addr[me] = (uintptr_t)s->mem;
	meet->handle[me] = s->mem_handle;
	for (int i = 0; i < DEPTH; i++)
		post_recv(s, &s->desc[i]);
	connect_vi(s, me);
	return s;
}

static void close_side(struct side *s)
{
	VipCloseNic(s->nic);
}

int main(int argc, char **argv)
{
	return two_run(argc, argv, "VIPL", VIPX_BUFFER_SIZE);
}
