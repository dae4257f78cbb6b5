/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL tests in two processes.
 *
 * two(server, client) forks a process for each side and CHECKs that both left with success.  A side is a function that
 * uses CHECK and REQUIRE as a case does; what it checks is reported by its exit status, its failures on standard output.
 * The sides talk over two pipes (say, hear, meet), so that nothing but the NIC under test runs over the NIC.
 *
 * struct side is what most cases need ready: a NIC handle, a protection tag, registered memory with the descriptors in
 * front, one VI.  VIP(code, call) checks a return code.
 */
#ifndef TESTS_FUNC_VIPL_TWO_H
#define TESTS_FUNC_VIPL_TWO_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "vipl.h"

#define VIP(want, call) CHECK_EQ((call), (want))

enum {
	SIDE_MEMORY = 32 << 20,   /* registered bytes: descriptors, then data */
	SIDE_DESCS = 2048,        /* descriptor places of 512 bytes */
	SIDE_DESC_SIZE = 512,
	SIDE_DATA = SIDE_DESCS * SIDE_DESC_SIZE, /* where the data begins */
	SIDE_SECONDS = 300,       /* a side that takes longer hangs, also on a machine that does other things */
	SOON = 60000,             /* milliseconds that mean "must come" */
};

struct side {
	bool server;
	int in, out; /* pipes from and to the other side */
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attr;
	VIP_PROTECTION_HANDLE ptag;
	char *mem, *data;
	VIP_MEM_HANDLE handle;
	VIP_VI_HANDLE vi;
};

/* An address with room for its bytes, usable as VIP_NET_ADDRESS through .a. */
union address {
	VIP_NET_ADDRESS a;
	char room[VIPX_ADDRESS_SIZE];
};

static char two_device[40];

/* ---- bytes between the sides ---- */

static inline void say(struct side *s, const void *bytes, size_t n)
{
	if (write(s->out, bytes, n) != (ssize_t)n)
		_exit(2);
}

/*
 * A NIC that asks before it sends goes on with a posted send only when it runs, and with engine inline that is when its process
 * polls.  So a side whose arch is not direct polls while it waits for the other one; with direct it must not need to.
 */
static inline void wait_to_hear(struct side *s)
{
	struct timeval moment = { .tv_usec = 20 };
	fd_set set;

	if (!strcmp(VipxParameterString("arch"), "direct"))
		return;
	do {
		VipxPoll(s->nic);
		FD_ZERO(&set);
		FD_SET(s->in, &set);
		moment.tv_usec = 20;
	} while (select(s->in + 1, &set, NULL, NULL, &moment) == 0);
}

static inline void hear(struct side *s, void *bytes, size_t n)
{
	char *to = bytes;

	while (n) {
		wait_to_hear(s);
		ssize_t got = read(s->in, to, n);

		if (got <= 0) {
			printf("# the other side has left\n");
			fflush(stdout);
			_exit(2);
		}
		to += got;
		n -= (size_t)got;
	}
}

/* Whether there is something to hear. */
static inline bool has_spoken(const struct side *s)
{
	struct timeval none = { 0, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(s->in, &set);
	return select(s->in + 1, &set, NULL, NULL, &none) == 1;
}

/* Both sides get here before either goes on. */
static inline void meet(struct side *s)
{
	char token = 'm';

	say(s, &token, 1);
	hear(s, &token, 1);
}

/* ---- addresses ---- */

static inline void address_of(const struct side *s, const char *disc, union address *out)
{
	size_t n = strlen(disc);

	memset(out, 0, sizeof *out);
	out->a.HostAddressLen = s->attr.NicAddressLen;
	out->a.DiscriminatorLen = (VIP_UINT16)n;
	memcpy((char *)out + offsetof(VIP_NET_ADDRESS, HostAddress), s->attr.LocalNicAddress, s->attr.NicAddressLen);
	memcpy((char *)out + offsetof(VIP_NET_ADDRESS, HostAddress) + s->attr.NicAddressLen, disc, n);
}

/* ---- a side ---- */

static inline void side_open(struct side *s)
{
	VIP_MEM_ATTRIBUTES mem = { 0 };

	VIP(VIP_SUCCESS, VipOpenNic(two_device, &s->nic));
	VIP(VIP_SUCCESS, VipQueryNic(s->nic, &s->attr));
	VIP(VIP_SUCCESS, VipCreatePtag(s->nic, &s->ptag));
	s->mem = mmap(NULL, SIDE_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->data = s->mem + SIDE_DATA;
	mem.Ptag = s->ptag;
	mem.EnableRdmaWrite = mem.EnableRdmaRead = VIP_TRUE;
	VIP(VIP_SUCCESS, VipRegisterMem(s->nic, s->mem, SIDE_MEMORY, &mem, &s->handle));
}

static inline VIP_VI_ATTRIBUTES vi_attributes(const struct side *s, VIP_RELIABILITY_LEVEL level)
{
	VIP_VI_ATTRIBUTES attr = { 0 };

	attr.ReliabilityLevel = level;
	attr.MaxTransferSize = s->attr.MaxTransferSize;
	attr.Ptag = s->ptag;
	attr.EnableRdmaWrite = attr.EnableRdmaRead = VIP_TRUE;
	return attr;
}

static inline VIP_VI_HANDLE vi_new(struct side *s, VIP_RELIABILITY_LEVEL level)
{
	VIP_VI_ATTRIBUTES attr = vi_attributes(s, level);
	VIP_VI_HANDLE vi = NULL;

	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, &vi));
	return vi;
}

static inline VIP_VI_STATE vi_state(VIP_VI_HANDLE vi)
{
	VIP_VI_STATE state = (VIP_VI_STATE)99;
	VIP_VI_ATTRIBUTES attr;
	VIP_BOOLEAN send_empty, recv_empty;

	VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &attr, &send_empty, &recv_empty));
	return state;
}

/* Waits until the VI has that state: polls, for at most SOON. */
static inline bool vi_becomes(VIP_VI_HANDLE vi, VIP_VI_STATE wanted)
{
	for (int i = 0; i < SOON; i++) {
		if (vi_state(vi) == wanted)
			return true;
		usleep(1000);
	}
	return false;
}

/* ---- connecting two VIs by the client/server model, as programs do ---- */

static inline VIP_RETURN connect_vi(struct side *s, VIP_VI_HANDLE vi, const char *disc)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES attr;
	VIP_CONN_HANDLE conn;
	VIP_RETURN result;

	if (s->server) {
		address_of(s, disc, &local);
		result = VipConnectWait(s->nic, &local.a, SOON, &remote.a, &attr, &conn);
		return result == VIP_SUCCESS ? VipConnectAccept(conn, vi) : result;
	}
	address_of(s, "client", &local);
	address_of(s, disc, &remote);
	for (int i = 0; i < 10 * SOON; i++) {
		result = VipConnectRequest(vi, &local.a, &remote.a, SOON, &attr);
		if (result != VIP_NO_MATCH)
			break;
		usleep(100);
	}
	return result;
}

/* side_open, one VI at that level, connected; receives may be posted by `before`. */
static inline void side_connect(struct side *s, VIP_RELIABILITY_LEVEL level, void (*before)(struct side *))
{
	side_open(s);
	s->vi = vi_new(s, level);
	if (before)
		before(s);
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "two"));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
	meet(s);
}

static inline void side_close(struct side *s)
{
	VIP_DESCRIPTOR *d;

	VIP(VIP_SUCCESS, VipDisconnect(s->vi));
	while (VipSendDone(s->vi, &d) != VIP_DESCRIPTOR_ERROR || d)
		;
	while (VipRecvDone(s->vi, &d) != VIP_DESCRIPTOR_ERROR || d)
		;
	VIP(VIP_SUCCESS, VipDestroyVi(s->vi));
	VIP(VIP_SUCCESS, VipDeregisterMem(s->nic, s->mem, s->handle));
	VIP(VIP_SUCCESS, VipDestroyPtag(s->nic, s->ptag));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
	munmap(s->mem, SIDE_MEMORY);
}

/* ---- descriptors ---- */

static inline VIP_DESCRIPTOR *desc_at(struct side *s, unsigned i)
{
	return (VIP_DESCRIPTOR *)(void *)(s->mem + (size_t)i * SIDE_DESC_SIZE);
}

/* A send or receive of one segment, or of none when length is 0 and at is NULL. */
static inline VIP_DESCRIPTOR *desc_make(struct side *s, unsigned i, const void *at, size_t length)
{
	VIP_DESCRIPTOR *d = desc_at(s, i);

	memset(d, 0, sizeof *d);
	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.Length = (VIP_UINT32)length;
	if (at) {
		d->CS.SegCount = 1;
		d->DS[0].Local.Data.Address = (void *)(uintptr_t)at;
		d->DS[0].Local.Handle = s->handle;
		d->DS[0].Local.Length = (VIP_UINT32)length;
	}
	return d;
}

struct remote { /* what one side tells the other about its memory */
	uint64_t at;
	VIP_MEM_HANDLE handle;
};

static inline VIP_DESCRIPTOR *desc_rdma(struct side *s, unsigned i, VIP_UINT16 control, const void *at, size_t length,
                                        const struct remote *to, size_t offset)
{
	VIP_DESCRIPTOR *d = desc_at(s, i);

	memset(d, 0, sizeof *d);
	d->CS.Control = control;
	d->CS.SegCount = 2;
	d->CS.Length = (VIP_UINT32)length;
	d->DS[0].Remote.Data.AddressBits = to->at + offset;
	d->DS[0].Remote.Handle = to->handle;
	d->DS[1].Local.Data.Address = (void *)(uintptr_t)at;
	d->DS[1].Local.Handle = s->handle;
	d->DS[1].Local.Length = (VIP_UINT32)length;
	return d;
}

static inline void exchange_memory(struct side *s, const void *mine, VIP_MEM_HANDLE handle, struct remote *theirs)
{
	struct remote r = { (uint64_t)(uintptr_t)mine, handle };

	say(s, &r, sizeof r);
	hear(s, theirs, sizeof *theirs);
}

static inline void post_send(struct side *s, VIP_DESCRIPTOR *d)
{
	VIP(VIP_SUCCESS, VipPostSend(s->vi, d, s->handle));
}

static inline void post_recv(struct side *s, VIP_DESCRIPTOR *d)
{
	VIP(VIP_SUCCESS, VipPostRecv(s->vi, d, s->handle));
}

/* The next completion must be that descriptor, with that result. */
static inline VIP_UINT32 sent(struct side *s, VIP_DESCRIPTOR *d, VIP_RETURN want)
{
	VIP_DESCRIPTOR *done = NULL;

	VIP(want, VipSendWait(s->vi, SOON, &done));
	CHECK(done == d);
	return d->CS.Status;
}

static inline VIP_UINT32 received(struct side *s, VIP_DESCRIPTOR *d, VIP_RETURN want)
{
	VIP_DESCRIPTOR *done = NULL;

	VIP(want, VipRecvWait(s->vi, SOON, &done));
	CHECK(done == d);
	return d->CS.Status;
}

/* ---- known bytes ---- */

static inline void fill(void *at, size_t n, unsigned key)
{
	unsigned char *p = at;

	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((i + key) * 2654435761u >> 13);
}

static inline bool filled(const void *at, size_t n, unsigned key)
{
	const unsigned char *p = at;

	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)((i + key) * 2654435761u >> 13))
			return false;
	return true;
}

/* ---- two processes ---- */

typedef void side_fn(struct side *);

/* Keeps in and out, closes the partner's ends: so it is noticed when the partner leaves. */
static inline pid_t start_side(side_fn *body, bool server, int in, int out, int other_in, int other_out)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		static struct side side;

		close(other_in);
		close(other_out);
		alarm(SIDE_SECONDS);
		check_now.checks = check_now.failed = 0;
		side.server = server;
		side.in = in;
		side.out = out;
		body(&side);
		if (check_now.failed)
			printf("# in the %s\n", server ? "server" : "client");
		fflush(stdout);
		/* Not through exit handlers: what a side leaves open on purpose stays so. */
		_exit(check_now.failed || !check_now.checks ? 1 : 0);
	}
	return pid;
}

/* Exit status of a side, -signal when it was killed. */
static inline int side_status(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		return -999;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void two(side_fn *server, side_fn *client)
{
	int a[2], b[2];
	pid_t one, other;

	if (!CHECK(pipe(a) == 0 && pipe(b) == 0))
		return;
	one = start_side(server, true, a[0], b[1], b[0], a[1]);
	other = start_side(client, false, b[0], a[1], a[0], b[1]);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	CHECK_EQ(side_status(one), 0);
	CHECK_EQ(side_status(other), 0);
}

/* Both sides run the same body. */
static inline void both(side_fn *body)
{
	two(body, body);
}

/* A card of its own for each test program. */
static inline void two_init(const char *name)
{
	signal(SIGPIPE, SIG_IGN);
	alarm(5 * SIDE_SECONDS); /* for cases in this process; each side has its own */
	setenv("QNIX_LOG", "quiet", 0); /* errors are what the tests provoke */
	snprintf(two_device, sizeof two_device, "test-%.16s-%d", name, (int)getpid());
}

static const VIP_RELIABILITY_LEVEL two_levels[] = { VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
	                                            VIP_SERVICE_RELIABLE_RECEPTION };

#endif
