/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL connections in two processes: the client/server model, the peer model, disconnecting; every return code that the
 * calls have, and every edge of the state machine of a VI.
 */
#include "tests/func/vipl_two.h"

static uint64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- client and server ---- */

static void shake_hands(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES attr = vi_attributes(s, VIP_SERVICE_RELIABLE_DELIVERY), theirs;
	VIP_CONN_HANDLE conn;
	VIP_ULONG pid, slot, other = (VIP_ULONG)getpid();

	side_open(s);
	attr = vi_attributes(s, VIP_SERVICE_RELIABLE_DELIVERY);
	attr.MaxTransferSize = 32000;
	attr.EnableRdmaWrite = s->server;
	attr.EnableRdmaRead = !s->server;
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, &s->vi));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	VIP(VIP_INVALID_STATE, VipxViPeer(s->vi, &pid, &slot));
	if (s->server) {
		address_of(s, "door", &local);
		VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
		address_of(s, "the client's name", &local);
		CHECK(!memcmp(&local, &remote, 4 + 6 + 17));
		CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
		VIP(VIP_SUCCESS, VipConnectAccept(conn, s->vi));
		VIP(VIP_INVALID_PARAMETER, VipConnectAccept(conn, s->vi));
		VIP(VIP_INVALID_PARAMETER, VipConnectReject(conn));
	} else {
		address_of(s, "the client's name", &local);
		address_of(s, "door", &remote);
		while (VipConnectRequest(s->vi, &local.a, &remote.a, SOON, &theirs) == VIP_NO_MATCH)
			CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	}
	CHECK_EQ(theirs.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
	CHECK_EQ(theirs.MaxTransferSize, 32000);
	CHECK_EQ(theirs.EnableRdmaWrite, !s->server);
	CHECK_EQ(theirs.EnableRdmaRead, s->server);
	CHECK(!theirs.Ptag && !theirs.QoS);
	CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
	say(s, &other, sizeof other);
	hear(s, &other, sizeof other);
	VIP(VIP_SUCCESS, VipxViPeer(s->vi, &pid, &slot));
	CHECK_EQ(pid, other);
	VIP(VIP_INVALID_STATE, VipSetViAttributes(s->vi, &attr));
	VIP(VIP_ERROR_RESOURCE, VipDestroyVi(s->vi));
	address_of(s, "again", &remote);
	VIP(VIP_INVALID_STATE, VipConnectRequest(s->vi, &local.a, &remote.a, SOON, &theirs));
	VIP(VIP_INVALID_STATE, VipConnectPeerRequest(s->vi, &local.a, &remote.a, SOON));
	meet(s);
	side_close(s);
}

static void client_and_server(void)
{
	both(shake_hands);
}

static void nobody_waits(void)
{
	struct side s = { .server = false };
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	uint64_t start;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	address_of(&s, "me", &local);
	address_of(&s, "nobody", &remote);
	start = milliseconds();
	for (int i = 0; i < 100; i++) {
		VIP(VIP_NO_MATCH, VipConnectRequest(s.vi, &local.a, &remote.a, VIP_INFINITE, &theirs));
		CHECK_EQ(vi_state(s.vi), VIP_STATE_IDLE);
	}
	CHECK(milliseconds() - start < SOON); /* each of them ends at once, though it might wait for ever */
	side_close(&s);
}

static void bad_requests(void)
{
	struct side s = { .server = false };
	union address local, remote, bad;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	address_of(&s, "me", &local);
	address_of(&s, "nobody", &remote);
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, &remote.a, 0, &theirs));
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, &remote.a, 1, NULL));
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, NULL, &remote.a, 1, &theirs));
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, NULL, 1, &theirs));
	VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(s.vi, &local.a, NULL, 1));
	VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(s.vi, NULL, &remote.a, 1));
	bad = remote;
	bad.a.DiscriminatorLen = (VIP_UINT16)(s.attr.MaxDiscriminatorLen + 1);
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, &bad.a, 1, &theirs));
	VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(s.vi, &bad.a, &remote.a, 1));
	VIP(VIP_INVALID_PARAMETER, VipConnectWait(s.nic, &bad.a, 1, &remote.a, &theirs, &conn));
	bad.a.DiscriminatorLen = 65535;
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, &bad.a, 1, &theirs));
	address_of(&s, "nobody", &bad);
	bad.a.HostAddressLen = 5;
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, &bad.a, 1, &theirs));
	bad.a.HostAddressLen = 65535;
	VIP(VIP_INVALID_PARAMETER, VipConnectRequest(s.vi, &local.a, &bad.a, 1, &theirs));
	/* A host that this card does not reach: known at once, so not after the timeout. */
	bad = remote;
	bad.a.HostAddress[0] ^= 0x55;
	VIP(VIP_NOT_REACHABLE, VipConnectRequest(s.vi, &local.a, &bad.a, SOON, &theirs));
	VIP(VIP_NOT_REACHABLE, VipConnectPeerRequest(s.vi, &local.a, &bad.a, SOON));
	VIP(VIP_INVALID_PARAMETER, VipConnectWait(s.nic, &bad.a, SOON, &remote.a, &theirs, &conn));
	VIP(VIP_INVALID_PARAMETER, VipConnectWait(s.nic, &local.a, 1, NULL, &theirs, &conn));
	VIP(VIP_INVALID_PARAMETER, VipConnectWait(s.nic, &local.a, 1, &remote.a, NULL, &conn));
	VIP(VIP_INVALID_PARAMETER, VipConnectWait(s.nic, &local.a, 1, &remote.a, &theirs, NULL));
	VIP(VIP_INVALID_PARAMETER, VipConnectWait(s.nic, NULL, 1, &remote.a, &theirs, &conn));
	CHECK_EQ(vi_state(s.vi), VIP_STATE_IDLE);
	side_close(&s);
}

static void waiting_takes_its_time(void)
{
	struct side s = { .server = true };
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;
	uint64_t start;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	address_of(&s, "door", &local);
	start = milliseconds();
	for (int i = 0; i < 200; i++) /* also: an offer that was withdrawn leaves nothing behind */
		VIP(VIP_TIMEOUT, VipConnectWait(s.nic, &local.a, 0, &remote.a, &theirs, &conn));
	CHECK(milliseconds() - start < SOON);
	start = milliseconds();
	VIP(VIP_TIMEOUT, VipConnectWait(s.nic, &local.a, 60, &remote.a, &theirs, &conn));
	CHECK(milliseconds() - start >= 60);
	side_close(&s);
}

static void refusing(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN result;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_RELIABLE_RECEPTION);
	address_of(s, "door", s->server ? &local : &remote);
	if (s->server) {
		VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
		VIP(VIP_SUCCESS, VipConnectReject(conn));
		VIP(VIP_INVALID_PARAMETER, VipConnectReject(conn));
	} else {
		address_of(s, "me", &local);
		while ((result = VipConnectRequest(s->vi, &local.a, &remote.a, SOON, &theirs)) == VIP_NO_MATCH)
			usleep(100);
		VIP(VIP_REJECT, result);
	}
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	meet(s);
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "another")); /* the VI is as good as new */
	meet(s);
	side_close(s);
}

static void rejected(void)
{
	both(refusing);
}

static void silent_server(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
	address_of(s, "door", &local);
	VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
	say(s, "h", 1); /* heard */
	meet(s);        /* the client's time is over */
	VIP(VIP_TIMEOUT, VipConnectAccept(conn, s->vi));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	VIP(VIP_INVALID_PARAMETER, VipConnectReject(conn));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "door"));
	meet(s);
	side_close(s);
}

static void impatient_client(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN result;
	uint64_t start;
	char word;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
	address_of(s, "me", &local);
	address_of(s, "door", &remote);
	do { /* a server that has no core for so long misses one that is withdrawn, and waits for the next */
		start = milliseconds();
		result = VipConnectRequest(s->vi, &local.a, &remote.a, 80, &theirs);
		if (result == VIP_TIMEOUT)
			CHECK(milliseconds() - start >= 80);
		else
			VIP(VIP_NO_MATCH, result);
		CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	} while (!has_spoken(s));
	hear(s, &word, 1);
	meet(s);
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "door"));
	meet(s);
	side_close(s);
}

static void client_gives_up(void)
{
	two(silent_server, impatient_client);
}

/* ---- attributes that must be equal ---- */

static void fussy(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES attr, theirs;
	VIP_CONN_HANDLE conn;
	VIP_VI_HANDLE other;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
	if (!s->server) {
		VIP(VIP_SUCCESS, connect_vi(s, s->vi, "fussy"));
		meet(s);
		side_close(s);
		return;
	}
	address_of(s, "fussy", &local);
	VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
	attr = vi_attributes(s, VIP_SERVICE_UNRELIABLE);
	VIP(VIP_SUCCESS, VipSetViAttributes(s->vi, &attr));
	VIP(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(conn, s->vi));
	attr = vi_attributes(s, VIP_SERVICE_RELIABLE_DELIVERY);
	attr.MaxTransferSize = 4096;
	VIP(VIP_SUCCESS, VipSetViAttributes(s->vi, &attr));
	VIP(VIP_INVALID_MTU, VipConnectAccept(conn, s->vi));
	VIP(VIP_INVALID_PARAMETER, VipConnectAccept(conn, NULL));
	VIP(VIP_INVALID_PARAMETER, VipConnectAccept(conn, conn));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	attr.MaxTransferSize = s->attr.MaxTransferSize;
	VIP(VIP_SUCCESS, VipSetViAttributes(s->vi, &attr));
	VIP(VIP_SUCCESS, VipConnectAccept(conn, s->vi));
	meet(s);
	/* A VI that is not idle cannot take a second connection. */
	other = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
	VIP(VIP_SUCCESS, VipDestroyVi(other));
	VIP(VIP_INVALID_PARAMETER, VipConnectAccept(conn, other));
	side_close(s);
}

static void attributes_must_match(void)
{
	both(fussy);
}

static void busy_server(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;
	VIP_VI_HANDLE second;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_UNRELIABLE);
	second = vi_new(s, VIP_SERVICE_UNRELIABLE);
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "first"));
	if (s->server) {
		address_of(s, "second", &local);
		VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
		VIP(VIP_INVALID_STATE, VipConnectAccept(conn, s->vi));
		VIP(VIP_SUCCESS, VipConnectAccept(conn, second));
	} else {
		VIP(VIP_SUCCESS, connect_vi(s, second, "second"));
	}
	meet(s);
	VIP(VIP_SUCCESS, VipDisconnect(second));
	VIP(VIP_SUCCESS, VipDestroyVi(second));
	side_close(s);
}

static void accepting_on_a_connected_vi(void)
{
	both(busy_server);
}

/* ---- discriminators ---- */

static void names_server(struct side *s)
{
	union address local, remote, expected;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_UNRELIABLE);
	address_of(s, "abc", &local);
	VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
	address_of(s, "right", &expected);
	CHECK(!memcmp(&remote, &expected, 4 + 6 + 5)); /* "ab" and "abcd" did not match */
	VIP(VIP_SUCCESS, VipConnectReject(conn));
	meet(s);
	/* No discriminator: every client is welcome.  No host address: this host is meant. */
	memset(&local, 0, sizeof local);
	VIP(VIP_SUCCESS, VipConnectWait(s->nic, &local.a, SOON, &remote.a, &theirs, &conn));
	address_of(s, "any", &expected);
	CHECK(!memcmp(&remote, &expected, 4 + 6 + 3));
	VIP(VIP_SUCCESS, VipConnectReject(conn));
	meet(s);
	side_close(s);
}

static VIP_RETURN knock(struct side *s, const char *name, const char *disc, bool insist)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_RETURN result;

	address_of(s, name, &local);
	address_of(s, disc, &remote);
	do
		result = VipConnectRequest(s->vi, &local.a, &remote.a, SOON, &theirs);
	while (insist && result == VIP_NO_MATCH);
	return result;
}

static void names_client(struct side *s)
{
	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_UNRELIABLE);
	for (int i = 0; i < 50; i++) {
		VIP(VIP_NO_MATCH, knock(s, "wrong", "ab", false));
		VIP(VIP_NO_MATCH, knock(s, "wrong", "abcd", false));
		VIP(VIP_NO_MATCH, knock(s, "wrong", "", false));
		usleep(500);
	}
	VIP(VIP_REJECT, knock(s, "right", "abc", true));
	meet(s);
	VIP(VIP_REJECT, knock(s, "any", "whatever", true));
	meet(s);
	side_close(s);
}

static void discriminators(void)
{
	two(names_server, names_client);
}

/* ---- the peer model ---- */

static void peer_addresses(struct side *s, union address *local, union address *remote)
{
	address_of(s, s->server ? "left" : "right", local);
	address_of(s, s->server ? "right" : "left", remote);
}

static void peers(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES attr, theirs;
	VIP_RETURN result;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
	peer_addresses(s, &local, &remote);
	VIP(VIP_INVALID_STATE, VipConnectPeerDone(s->vi, &theirs));
	VIP(VIP_INVALID_STATE, VipConnectPeerWait(s->vi, &theirs));
	if (s->server)
		meet(s); /* round 1: the client is first */
	VIP(VIP_SUCCESS, VipConnectPeerRequest(s->vi, &local.a, &remote.a, SOON));
	VIP(VIP_INVALID_PARAMETER, VipConnectPeerDone(s->vi, NULL));
	if (!s->server) {
		CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECT_PENDING);
		VIP(VIP_NOT_DONE, VipConnectPeerDone(s->vi, &theirs));
		attr = vi_attributes(s, VIP_SERVICE_UNRELIABLE);
		VIP(VIP_INVALID_STATE, VipSetViAttributes(s->vi, &attr));
		VIP(VIP_INVALID_STATE, VipConnectPeerRequest(s->vi, &local.a, &remote.a, SOON));
		VIP(VIP_ERROR_RESOURCE, VipDestroyVi(s->vi));
		meet(s);
	}
	VIP(VIP_SUCCESS, VipConnectPeerWait(s->vi, &theirs));
	CHECK_EQ(theirs.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
	CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
	VIP(VIP_INVALID_STATE, VipConnectPeerDone(s->vi, &theirs));
	meet(s);
	VIP(VIP_SUCCESS, VipDisconnect(s->vi));
	meet(s);
	/* Round 2: together, and by asking. */
	VIP(VIP_SUCCESS, VipConnectPeerRequest(s->vi, &local.a, &remote.a, VIP_INFINITE));
	while ((result = VipConnectPeerDone(s->vi, &theirs)) == VIP_NOT_DONE)
		;
	VIP(VIP_SUCCESS, result);
	CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
	meet(s);
	side_close(s);
}

static void peer_to_peer(void)
{
	both(peers);
}

static void lonely_peer(void)
{
	struct side s = { .server = true };
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	uint64_t start;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	peer_addresses(&s, &local, &remote);
	start = milliseconds();
	VIP(VIP_SUCCESS, VipConnectPeerRequest(s.vi, &local.a, &remote.a, 60));
	VIP(VIP_TIMEOUT, VipConnectPeerWait(s.vi, &theirs));
	CHECK(milliseconds() - start >= 60);
	CHECK_EQ(vi_state(s.vi), VIP_STATE_IDLE);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(s.vi, &local.a, &remote.a, 0));
	VIP(VIP_TIMEOUT, VipConnectPeerDone(s.vi, &theirs));
	/* Disconnecting takes a request back. */
	VIP(VIP_SUCCESS, VipConnectPeerRequest(s.vi, &local.a, &remote.a, VIP_INFINITE));
	CHECK_EQ(vi_state(s.vi), VIP_STATE_CONNECT_PENDING);
	VIP(VIP_SUCCESS, VipDisconnect(s.vi));
	CHECK_EQ(vi_state(s.vi), VIP_STATE_IDLE);
	VIP(VIP_INVALID_STATE, VipConnectPeerDone(s.vi, &theirs));
	side_close(&s);
}

static void unequal(struct side *s)
{
	static const struct {
		VIP_RELIABILITY_LEVEL level[2];
		VIP_ULONG size[2];
		VIP_RETURN want;
	} rounds[] = {
		{ { VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY }, { 4096, 4096 }, VIP_INVALID_RELIABILITY_LEVEL },
		{ { VIP_SERVICE_UNRELIABLE, VIP_SERVICE_UNRELIABLE }, { 4096, 8192 }, VIP_INVALID_MTU },
		{ { VIP_SERVICE_UNRELIABLE, VIP_SERVICE_UNRELIABLE }, { 8192, 8192 }, VIP_SUCCESS },
	};
	union address local, remote;
	VIP_VI_ATTRIBUTES attr, theirs;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_UNRELIABLE);
	peer_addresses(s, &local, &remote);
	for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
		attr = vi_attributes(s, rounds[i].level[s->server]);
		attr.MaxTransferSize = rounds[i].size[s->server];
		VIP(VIP_SUCCESS, VipSetViAttributes(s->vi, &attr));
		VIP(VIP_SUCCESS, VipConnectPeerRequest(s->vi, &local.a, &remote.a, SOON));
		VIP(rounds[i].want, VipConnectPeerWait(s->vi, &theirs));
		CHECK_EQ(vi_state(s->vi), rounds[i].want ? VIP_STATE_IDLE : VIP_STATE_CONNECTED);
		meet(s);
	}
	side_close(s);
}

static void peers_that_do_not_fit(void)
{
	both(unequal);
}

/* ---- disconnecting ---- */

static void parting(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;

	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	post_recv(s, desc_make(s, 0, s->data, 64));
	post_recv(s, desc_make(s, 1, s->data, 64));
	meet(s);
	if (s->server) {
		VIP(VIP_SUCCESS, VipDisconnect(s->vi));
		CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
		VIP(VIP_SUCCESS, VipDisconnect(s->vi)); /* once more does no harm */
	} else {
		CHECK(vi_becomes(s->vi, VIP_STATE_ERROR));
		/* In the error state everything posted is flushed at once. */
		d = desc_make(s, 2, s->data, 64);
		post_send(s, d);
		CHECK(sent(s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_DESC_FLUSHED_ERROR);
		post_recv(s, desc_make(s, 3, s->data, 64));
		VIP(VIP_ERROR_RESOURCE, VipDestroyVi(s->vi));
	}
	for (unsigned i = 0; i < (s->server ? 2u : 4u); i += i == 1 ? 2 : 1) {
		VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(s->vi, &done));
		CHECK(done == desc_at(s, i));
		CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
		CHECK_EQ(done->CS.Status & VIP_STATUS_OP_MASK, VIP_STATUS_OP_RECEIVE);
	}
	VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(s->vi, &done));
	CHECK(!done);
	meet(s);
	VIP(VIP_SUCCESS, VipDisconnect(s->vi));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_IDLE);
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "again"));
	CHECK_EQ(vi_state(s->vi), VIP_STATE_CONNECTED);
	meet(s);
	side_close(s);
}

static void disconnecting(void)
{
	both(parting);
}

/* Data of an old connection must not turn up in a new one of the same VIs. */
static void reconnecting(struct side *s)
{
	VIP_DESCRIPTOR *d;

	side_open(s);
	s->vi = vi_new(s, VIP_SERVICE_UNRELIABLE);
	for (unsigned round = 0; round < 100; round++) {
		if (s->server)
			for (unsigned i = 0; i < 4; i++)
				post_recv(s, desc_make(s, i, s->data + 64 * i, 64));
		VIP(VIP_SUCCESS, connect_vi(s, s->vi, "round"));
		if (!s->server) {
			meet(s);
			for (unsigned i = 0; i < 4; i++) {
				*(unsigned *)(void *)(s->data + 64 * i) = 10 * round + i;
				d = desc_make(s, i, s->data + 64 * i, 64);
				post_send(s, d);
				sent(s, d, VIP_SUCCESS);
			}
			meet(s);
		} else {
			meet(s);
			/* Takes one of the four, and leaves the others behind. */
			received(s, desc_at(s, 0), VIP_SUCCESS);
			CHECK_EQ(*(unsigned *)(void *)s->data, 10 * round);
			meet(s);
		}
		VIP(VIP_SUCCESS, VipDisconnect(s->vi));
		while (VipRecvDone(s->vi, &d) != VIP_DESCRIPTOR_ERROR || d)
			;
		meet(s);
	}
	side_close(s);
}

static void old_data_stays_behind(void)
{
	both(reconnecting);
}

int main(void)
{
	two_init("connect");
	CASE(client_and_server);
	CASE(nobody_waits);
	CASE(bad_requests);
	CASE(waiting_takes_its_time);
	CASE(rejected);
	CASE(client_gives_up);
	CASE(attributes_must_match);
	CASE(accepting_on_a_connected_vi);
	CASE(discriminators);
	CASE(peer_to_peer);
	CASE(lonely_peer);
	CASE(peers_that_do_not_fit);
	CASE(disconnecting);
	CASE(old_data_stays_behind);
	return check_done();
}
