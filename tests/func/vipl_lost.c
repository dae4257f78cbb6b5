/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL when the other side goes: by disconnecting, by closing its NIC, by exit, by kill -9 at any moment.  The survivor
 * gets VIP_ERROR_CONN_LOST, its descriptors come back, and its NIC works on.
 */
#include <errno.h>

#include "tests/func/vipl_two.h"

static unsigned lost;
static VIP_ERROR_DESCRIPTOR last_lost;

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	CHECK_EQ(error->ErrorCode, VIP_ERROR_CONN_LOST);
	CHECK_EQ(error->ResourceCode, VIP_RESOURCE_VI);
	last_lost = *error;
	lost++;
}

/* How often the handler was called.  Only a NIC in another process may tell of a loss a moment after the receive has come back. */
static unsigned losses(const struct side *s)
{
	const char *engine = getenv("QNIX_ENGINE");
	int most = engine && strcmp(engine, "daemon") == 0 ? SOON : 0;

	for (int ms = 0; ms < most && !lost; ms++) {
		VipxPoll(s->nic);
		usleep(1000);
	}
	return lost;
}

static VIP_RELIABILITY_LEVEL level;

enum leaving { DISCONNECTS, CLOSES, EXITS, KILLED, WAYS };
static enum leaving leaving; /* of the case that runs */

static void leaver(struct side *s)
{
	side_connect(s, level, NULL);
	meet(s);
	switch (leaving) {
	case DISCONNECTS:
		VIP(VIP_SUCCESS, VipDisconnect(s->vi));
		meet(s);
		return;
	case CLOSES:
		VIP(VIP_SUCCESS, VipCloseNic(s->nic));
		meet(s);
		return;
	case EXITS:
		_exit(0);
	default:
		kill(getpid(), SIGKILL);
	}
}

/* By waiting for a message that never comes: the receive is flushed. */
static void survivor(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;

	side_connect(s, level, NULL);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, NULL, on_error));
	post_recv(s, d = desc_make(s, 0, s->data, 64));
	meet(s);
	VIP(VIP_DESCRIPTOR_ERROR, VipRecvWait(s->vi, SOON, &done));
	CHECK(done == d);
	CHECK(d->CS.Status & (VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR));
	CHECK_EQ(losses(s), 1);
	CHECK(last_lost.NicHandle == s->nic && last_lost.ViHandle == s->vi);
	CHECK_EQ(vi_state(s->vi), VIP_STATE_ERROR);
	post_send(s, d = desc_make(s, 1, s->data, 64));
	CHECK(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_DESC_FLUSHED_ERROR);
	if (leaving == DISCONNECTS || leaving == CLOSES)
		meet(s);
	side_close(s);
	CHECK_EQ(lost, 1);
}

static void two_and_a_loss(side_fn *stays, side_fn *goes)
{
	int a[2], b[2];
	pid_t one, other;

	REQUIRE(pipe(a) == 0 && pipe(b) == 0);
	one = start_side(stays, true, a[0], b[1], b[0], a[1]);
	other = start_side(goes, false, b[0], a[1], a[0], b[1]);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	CHECK_EQ(side_status(other), leaving == KILLED ? -SIGKILL : 0);
	CHECK_EQ(side_status(one), 0);
}

static void the_peer_goes(void)
{
	for (leaving = 0; leaving < WAYS; leaving++)
		for (size_t i = 0; i < 3; i++) {
			level = two_levels[i];
			two_and_a_loss(survivor, leaver);
		}
}

/* ---- killed in the middle of traffic ---- */

static unsigned life; /* microseconds of traffic before the end */

/* A NIC in another process receives however late the witness runs, so the victim waits for its word: no message may find no receive. */
enum { RECEIVES = 64, A_WORD = 16 };

static void victim(struct side *s)
{
	unsigned i = 0, receives = RECEIVES;
	struct remote there;
	VIP_DESCRIPTOR *done;

	side_connect(s, level, NULL);
	exchange_memory(s, s->data, s->handle, &there);
	meet(s);
	if (fork() == 0) { /* it has no NIC: its handles are gone */
		pid_t parent = getppid();

		usleep(life);
		kill(parent, SIGKILL);
		_exit(0);
	}
	for (;;) {
		size_t n = i % 5 == 0 ? 40 : i % 5 == 1 ? 5000 : 300000;
		bool rdma = i % 5 == 3;

		while (VipSendDone(s->vi, &done) == VIP_SUCCESS)
			;
		if (!rdma && receives-- == 0) {
			char word;

			hear(s, &word, 1);
			receives += A_WORD; /* less the one that this message takes: it stands at -1 */
		}
		if (rdma)
			desc_rdma(s, i % 64, VIP_CONTROL_OP_RDMAWRITE, s->data, n, &there, 0);
		else
			desc_make(s, i % 64, s->data, n);
		if (VipPostSend(s->vi, desc_at(s, i % 64), s->handle) == VIP_SUCCESS)
			i++;
		while (VipSendWait(s->vi, 1000, &done) == VIP_NOT_DONE)
			;
	}
}

static void witness(struct side *s)
{
	struct remote there;
	VIP_DESCRIPTOR *done;
	VIP_RETURN result = VIP_SUCCESS;
	unsigned i;

	side_connect(s, level, NULL);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, NULL, on_error));
	for (i = 0; i < RECEIVES; i++)
		post_recv(s, desc_make(s, i, s->data + (4 << 20), 400000));
	exchange_memory(s, s->data, s->handle, &there);
	meet(s);
	for (i = 0; result == VIP_SUCCESS; i++) {
		result = VipRecvWait(s->vi, SOON, &done);
		if (result == VIP_SUCCESS) {
			done->CS.Length = 400000;
			post_recv(s, done);
			if ((i + 1) % A_WORD == 0 && write(s->out, "", 1) != 1)
				CHECK(errno == EPIPE);
		}
	}
	VIP(VIP_DESCRIPTOR_ERROR, result);
	CHECK(done == desc_at(s, (i - 1) % RECEIVES));
	CHECK(done->CS.Status & (VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR));
	CHECK(vi_becomes(s->vi, VIP_STATE_ERROR)); /* an unreliable VI may find one message broken first */
	CHECK_EQ(losses(s), 1);
	side_close(s);
}

static void killed_in_traffic(void)
{
	static const char *const copies[] = { "auto", "off" };

	leaving = KILLED;
	for (unsigned i = 0; i < 12; i++) {
		level = two_levels[i % 3];
		life = 3000 + 1700 * i;
		VipxParameterSet("cma", copies[i & 1], "test");
		two_and_a_loss(witness, victim);
	}
	VipxParameterSet("cma", "auto", "test");
}

/* ---- killed while a connection is being made ---- */

static void dies_as_client(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;

	side_open(s);
	s->vi = vi_new(s, level);
	address_of(s, "me", &local);
	address_of(s, "door", &remote);
	if (fork() == 0) {
		pid_t parent = getppid();
		char seen;

		kill(parent, read(s->in, &seen, 1) == 1 ? SIGKILL : SIGTERM);
		while (getppid() == parent) /* its files are closed before it is gone */
			usleep(1000);
		_exit(0);
	}
	for (;;)
		VipConnectRequest(s->vi, &local.a, &remote.a, VIP_INFINITE, &theirs);
}

static void slow_server(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;
	char nothing;

	side_open(s);
	s->vi = vi_new(s, level);
	address_of(s, "door", &local);
	VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
	CHECK_EQ(write(s->out, "", 1), 1);
	CHECK_EQ(read(s->in, &nothing, 1), 0); /* until the client is gone */
	VIP(VIP_TIMEOUT, VipConnectAccept(conn, s->vi));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	VIP(VIP_TIMEOUT, VipConnectWait(s->nic, &local.a, 50, &remote.a, &theirs, &conn));
	side_close(s);
}

static void the_client_dies(void)
{
	leaving = KILLED;
	level = VIP_SERVICE_RELIABLE_DELIVERY;
	two_and_a_loss(slow_server, dies_as_client);
}

static void dies_as_server(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;

	side_open(s);
	address_of(s, "door", &local);
	VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
	say(s, "c", 1); /* a client is waiting */
	usleep(20000);
	kill(getpid(), SIGKILL);
}

static void patient_client(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	char word;

	side_open(s);
	s->vi = vi_new(s, level);
	address_of(s, "me", &local);
	address_of(s, "door", &remote);
	do {
		VIP(VIP_NO_MATCH, VipConnectRequest(s->vi, &local.a, &remote.a, VIP_INFINITE, &theirs));
		usleep(100);
	} while (!has_spoken(s));
	hear(s, &word, 1); /* nothing, if the server has not got that far */
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	side_close(s);
}

static void the_server_dies(void)
{
	leaving = KILLED;
	level = VIP_SERVICE_RELIABLE_DELIVERY;
	two_and_a_loss(patient_client, dies_as_server);
}

/* ---- the handler may do anything ---- */

static VIP_NIC_HANDLE closed;

static void close_all(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	struct side *s = context;

	CHECK(error->NicHandle == s->nic);
	VIP(VIP_SUCCESS, VipDisconnect(error->ViHandle));
	VIP(VIP_SUCCESS, VipCloseNic(error->NicHandle));
	closed = error->NicHandle;
	lost++;
}

static void closes_in_its_handler(struct side *s)
{
	VIP_DESCRIPTOR *done;
	VIP_RETURN result;

	side_connect(s, level, NULL);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, s, close_all));
	post_recv(s, desc_make(s, 0, s->data, 64));
	meet(s);
	do
		result = VipRecvWait(s->vi, SOON, &done);
	while (result == VIP_DESCRIPTOR_ERROR);
	VIP(VIP_INVALID_PARAMETER, result); /* the VI has gone with the NIC handle */
	CHECK_EQ(lost, 1);
	CHECK(closed == s->nic);
	VIP(VIP_INVALID_PARAMETER, VipCloseNic(s->nic));
}

static void closing_in_the_handler(void)
{
	leaving = KILLED;
	level = VIP_SERVICE_RELIABLE_DELIVERY;
	two_and_a_loss(closes_in_its_handler, leaver);
}

/* ---- nobody reads the handles of a fork's child ---- */

static void forked_handles(void)
{
	struct side s = { .server = true };
	pid_t child;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		VIP_DESCRIPTOR *done;
		VIP_NIC_HANDLE nic;
		int bad = 0;

		bad += VipSendDone(s.vi, &done) != VIP_INVALID_PARAMETER;
		bad += VipPostRecv(s.vi, desc_make(&s, 0, s.data, 8), s.handle) != VIP_INVALID_PARAMETER;
		bad += VipCloseNic(s.nic) != VIP_INVALID_PARAMETER;
		bad += VipOpenNic(two_device, &nic) != VIP_SUCCESS;
		bad += VipCloseNic(nic) != VIP_SUCCESS;
		_exit(bad);
	}
	CHECK_EQ(side_status(child), 0);
	CHECK_EQ(vi_state(s.vi), VIP_STATE_IDLE);
	side_close(&s);
}

int main(void)
{
	two_init("lost");
	CASE(the_peer_goes);
	CASE(killed_in_traffic);
	CASE(the_client_dies);
	CASE(the_server_dies);
	CASE(closing_in_the_handler);
	CASE(forked_handles);
	return check_done();
}
