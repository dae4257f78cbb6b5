/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extensions of this VIPL in two processes: pool buffers that change hands, handles without a lock, peers that want
 * to connect, counters.
 */
#include "tests/func/vipl_two.h"

static VIP_RELIABILITY_LEVEL level; /* of the case that runs */

static void at_each_level(side_fn *server, side_fn *client)
{
	for (size_t i = 0; i < sizeof two_levels / sizeof *two_levels; i++) {
		level = two_levels[i];
		two(server, client);
	}
}

static bool is_buffer(const void *p)
{
	return p && (uintptr_t)p % 64 == 0;
}

/* A send that gives a buffer away. */
static VIP_DESCRIPTOR *gift(struct side *s, unsigned i, void *buffer, size_t n)
{
	VIP_DESCRIPTOR *d = desc_make(s, i, buffer, n);

	d->CS.Control |= VIP_CONTROL_POOL;
	d->DS[0].Local.Handle = VIPX_POOL_HANDLE;
	return d;
}

/* ---- buffers that change hands ---- */

enum { GIFTS = 5000 };

static size_t gift_size(unsigned i)
{
	return i % 3 == 0 ? 20 + i % 30 : 49 + (i * 31) % (VIPX_BUFFER_SIZE - 48);
}

/* One now and then is at the pool when somebody else is: then there is none for the moment.  NULL: there is none at all. */
static void *taken(VIP_NIC_HANDLE nic)
{
	void *buffer;

	for (int i = 0; !(buffer = VipxTakeBuffer(nic)) && i < 10 * SOON; i++)
		usleep(100);
	return buffer;
}

/* Receives in a buffer what does not fit the one short segment, and sends every buffer back as it is. */
static void echo(struct side *s)
{
	VIP_DESCRIPTOR *d, *done;

	side_connect(s, level, NULL);
	for (unsigned i = 0; i < GIFTS; i++) {
		size_t n = gift_size(i);
		void *buffer;

		d = desc_make(s, 0, s->data, 48);
		d->CS.Control |= VIP_CONTROL_POOL;
		post_recv(s, d);
		meet(s);
		received(s, d, VIP_SUCCESS);
		CHECK_EQ(d->CS.Length, n);
		CHECK_EQ((d->CS.Status & VIP_STATUS_POOL) != 0, n > 48);
		if (n <= 48) {
			CHECK(filled(s->data, n, i));
			buffer = taken(s->nic);
			REQUIRE(is_buffer(buffer));
			memcpy(buffer, s->data, n);
		} else {
			buffer = d->DS[1].Local.Data.Address;
			REQUIRE(is_buffer((char *)buffer - (uintptr_t)buffer % 64));
			CHECK_EQ(d->DS[1].Local.Handle, VIPX_POOL_HANDLE);
			if (!CHECK(filled(buffer, n, i)))
				break;
		}
		meet(s);
		post_send(s, d = gift(s, 1, buffer, n));
		VIP(VIP_SUCCESS, VipSendWait(s->vi, SOON, &done));
	}
	meet(s);
	side_close(s);
}

static void giver(struct side *s)
{
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	for (unsigned i = 0; i < GIFTS; i++) {
		size_t n = gift_size(i), shift = i % 2 ? VIPX_BUFFER_SIZE - n : 0; /* anywhere in the buffer */
		char *buffer = taken(s->nic);

		REQUIRE(is_buffer(buffer));
		fill(buffer + shift, n, i);
		meet(s);
		post_send(s, d = gift(s, 0, buffer + shift, n));
		sent(s, d, VIP_SUCCESS);
		CHECK_EQ(d->CS.Length, n);
		memset(s->data, 0, n);
		post_recv(s, d = desc_make(s, 1, s->data, VIPX_BUFFER_SIZE)); /* an ordinary one: copied */
		meet(s);
		received(s, d, VIP_SUCCESS);
		CHECK(!(d->CS.Status & VIP_STATUS_POOL));
		if (!CHECK(filled(s->data, n, i)))
			break;
	}
	meet(s);
	side_close(s);
}

static void buffers_change_hands(void)
{
	at_each_level(echo, giver);
}

/* ---- taking all there are, giving them back ---- */

static void take_and_give(void)
{
	struct side s = { .server = true };
	unsigned most = (unsigned)VipxParameterInt("buffers");
	void **all = calloc(most, sizeof *all);

	REQUIRE(all && most >= 100);
	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < most; i++) {
			REQUIRE(all[i] = taken(s.nic));
			memset(all[i], round, VIPX_BUFFER_SIZE);
		}
		CHECK(VipxTakeBuffer(s.nic) == NULL); /* bounded */
		for (unsigned i = 0; i < most; i++) {
			if (*((unsigned char *)all[i] + VIPX_BUFFER_SIZE - 1) != round || !is_buffer(all[i]))
				CHECK(false);
			VipxGiveBuffer(s.nic, all[i]);
		}
	}
	VipxGiveBuffer(s.nic, NULL);
	VipxGiveBuffer(s.nic, s.data); /* not one of them: nothing happens */
	VipxGiveBuffer(NULL, all[0]);
	CHECK(VipxTakeBuffer(NULL) == NULL);
	/* Closing returns what is still held. */
	for (unsigned i = 0; i < most; i++)
		REQUIRE(taken(s.nic) != NULL);
	side_close(&s);
	side_open(&s);
	CHECK(taken(s.nic) != NULL);
	VIP(VIP_SUCCESS, VipCloseNic(s.nic));
	free(all);
}

/* ---- a gift that cannot be sent comes to nothing, but not to harm ---- */

enum bad_gift { G_HANDLE, G_OUTSIDE, G_OVERLAP, G_TWO_SEGMENTS, G_RDMA, G_NO_SEGMENT, BAD_GIFTS };
static enum bad_gift bad_gift;

static void bad_giver(struct side *s)
{
	char *buffer;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	buffer = taken(s->nic);
	REQUIRE(buffer);
	d = gift(s, 0, buffer, 1000);
	switch (bad_gift) {
	case G_HANDLE:
		d->DS[0].Local.Handle = s->handle;
		break;
	case G_OUTSIDE:
		d->DS[0].Local.Data.Address = s->data;
		break;
	case G_OVERLAP:
		d->DS[0].Local.Data.Address = buffer + VIPX_BUFFER_SIZE - 999;
		break;
	case G_TWO_SEGMENTS:
		d->CS.SegCount = 2;
		d->DS[1] = d->DS[0];
		d->DS[1].Local.Length = 0;
		break;
	case G_RDMA:
		d->CS.Control |= VIP_CONTROL_OP_RDMAWRITE;
		break;
	default:
		d->CS.SegCount = 0;
		d->CS.Length = 0;
	}
	post_send(s, d);
	CHECK(sent(s, d, VIP_DESCRIPTOR_ERROR) & (VIP_STATUS_FORMAT_ERROR | VIP_STATUS_PROTECTION_ERROR));
	meet(s);
	side_close(s);
}

static void no_receiver(struct side *s)
{
	side_connect(s, level, NULL);
	meet(s);
	side_close(s);
}

static void bad_gifts(void)
{
	for (bad_gift = 0; bad_gift < BAD_GIFTS; bad_gift++)
		at_each_level(no_receiver, bad_giver);
}

/* ---- sent while not connected: flushed, and the buffer is gone all the same ---- */

static void flushed_gifts(void)
{
	struct side s = { .server = true };
	VIP_DESCRIPTOR *d;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_RELIABLE_DELIVERY);
	for (unsigned i = 0; i < 50000; i++) { /* more than there are */
		void *buffer = taken(s.nic);

		if (!CHECK(buffer != NULL))
			break;
		post_send(&s, d = gift(&s, 0, buffer, 100));
		if (!(sent(&s, d, VIP_DESCRIPTOR_ERROR) & VIP_STATUS_DESC_FLUSHED_ERROR)) {
			CHECK(false);
			break;
		}
	}
	side_close(&s);
}

/* ---- an unlocked handle does everything ---- */

static void unlocked(struct side *s)
{
	VIP_MEM_ATTRIBUTES mem = { 0 };
	VIP_NIC_ATTRIBUTES attr;
	VIP_DESCRIPTOR *d;

	VIP(VIP_INVALID_PARAMETER, VipxOpenNic(two_device, ~VIPX_OPEN_UNLOCKED, &s->nic));
	VIP(VIP_SUCCESS, VipxOpenNic(two_device, VIPX_OPEN_UNLOCKED, &s->nic));
	VIP(VIP_SUCCESS, VipQueryNic(s->nic, &attr));
	CHECK_EQ(attr.ThreadSafe, VIP_FALSE);
	s->attr = attr;
	VIP(VIP_SUCCESS, VipCreatePtag(s->nic, &s->ptag));
	s->mem = mmap(NULL, SIDE_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->data = s->mem + SIDE_DATA;
	mem.Ptag = s->ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(s->nic, s->mem, SIDE_MEMORY, &mem, &s->handle));
	s->vi = vi_new(s, level);
	for (unsigned i = 0; i < 10; i++)
		post_recv(s, desc_make(s, i, s->data, 10000));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "unlocked"));
	meet(s);
	for (unsigned i = 0; i < 10; i++) {
		post_send(s, d = desc_make(s, 100 + i, s->data + (1 << 20), 1000 * i));
		sent(s, d, VIP_SUCCESS);
		received(s, desc_at(s, i), VIP_SUCCESS);
		CHECK_EQ(desc_at(s, i)->CS.Length, 1000 * i);
	}
	meet(s);
	side_close(s);
}

static void without_a_lock(void)
{
	at_each_level(unlocked, unlocked);
}

/* ---- who wants to connect ---- */

static void looks_for_peers(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_ULONG cursor = 0, epoch;
	bool seen[3] = { false };
	unsigned found = 0;

	side_open(s);
	epoch = VipxConnectEpoch(s->nic);
	VIP(VIP_NOT_DONE, VipxConnectPending(s->nic, &cursor, &local.a, &remote.a));
	meet(s);
	meet(s); /* three requests are out */
	CHECK(VipxConnectEpoch(s->nic) != epoch);
	epoch = VipxConnectEpoch(s->nic);
	for (cursor = 0; VipxConnectPending(s->nic, &cursor, &local.a, &remote.a) == VIP_SUCCESS; found++) {
		const char *name = (char *)&local + 10; /* "asker 0" wants "asked 0" */
		unsigned n = (unsigned)(name[6] - '0');

		REQUIRE(n < 3);
		CHECK_EQ(local.a.DiscriminatorLen, 7);
		CHECK_EQ(remote.a.DiscriminatorLen, 7);
		CHECK(!memcmp(name, "asker ", 6) && !memcmp((char *)&remote + 10, "asked ", 6));
		CHECK(((char *)&remote)[16] == name[6] && !seen[n]);
		seen[n] = true;
	}
	CHECK_EQ(found, 3);
	/* Answering one: its addresses the other way round. */
	cursor = 0;
	VIP(VIP_SUCCESS, VipxConnectPending(s->nic, &cursor, &local.a, &remote.a));
	s->vi = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(s->vi, &remote.a, &local.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerWait(s->vi, &theirs));
	meet(s);
	found = 0;
	for (cursor = 0; VipxConnectPending(s->nic, &cursor, &local.a, &remote.a) == VIP_SUCCESS;)
		found++;
	CHECK_EQ(found, 2);
	meet(s);
	side_close(s);
	VIP(VIP_INVALID_PARAMETER, VipxConnectPending(NULL, &cursor, &local.a, &remote.a));
}

static void wants_peers(struct side *s)
{
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_VI_HANDLE vi[3];
	VIP_ULONG cursor = 0;
	unsigned connected = 0;

	side_open(s);
	meet(s);
	for (int i = 0; i < 3; i++) {
		char mine[] = "asker 0", yours[] = "asked 0";

		mine[6] = yours[6] = (char)('0' + i);
		address_of(s, mine, &local);
		address_of(s, yours, &remote);
		vi[i] = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
		VIP(VIP_SUCCESS, VipConnectPeerRequest(vi[i], &local.a, &remote.a, VIP_INFINITE));
	}
	VIP(VIP_NOT_DONE, VipxConnectPending(s->nic, &cursor, &local.a, &remote.a)); /* one's own do not count */
	meet(s);
	while (!connected)
		for (int i = 0; i < 3; i++)
			connected += VipConnectPeerDone(vi[i], &theirs) == VIP_SUCCESS;
	meet(s);
	meet(s);
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
}

static void pending_peers(void)
{
	two(looks_for_peers, wants_peers);
}

/* ---- counters ---- */

static void counters(void)
{
	struct side s = { .server = true };
	const char *name, *help;
	VIP_UINT64 *mine, *again;
	bool found = false;
	VIP_ULONG i;

	side_open(&s);
	mine = VipxCounter(s.nic, "test_things", "Things that this test counted");
	REQUIRE(mine);
	CHECK_EQ(*mine, 0);
	*mine += 7;
	again = VipxCounter(s.nic, "test_things", NULL);
	CHECK(again == mine);
	for (i = 0; VipxCounterAt(s.nic, i, &name, &help); i++)
		if (!strcmp(name, "test_things")) {
			found = true;
			CHECK_EQ(*VipxCounterAt(s.nic, i, NULL, NULL), 7);
			CHECK_STR(help, "Things that this test counted");
		}
	CHECK(found && i > 5);
	CHECK(!VipxCounterAt(s.nic, i, &name, &help));
	CHECK(!VipxCounterAt(s.nic, ~(VIP_ULONG)0, &name, &help));
	CHECK(!VipxCounter(s.nic, NULL, "x") && !VipxCounter(s.nic, "", "x") && !VipxCounter(NULL, "x", "x"));
	VIP(VIP_SUCCESS, VipCloseNic(s.nic));
}

int main(void)
{
	two_init("pool");
	CASE(buffers_change_hands);
	CASE(take_and_give);
	CASE(bad_gifts);
	CASE(flushed_gifts);
	CASE(without_a_lock);
	CASE(pending_peers);
	CASE(counters);
	return check_done();
}
