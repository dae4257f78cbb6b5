/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL from several threads: one blocks in a wait call while others use the same handle; waits with different
 * discriminators; handles closed under a waiter; a data server on a NIC handle of its own.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/func/vipl_two.h"

/* Two connected VIs of one handle, made by the peer model. */
static void loop_back(struct side *s, VIP_VI_HANDLE *one, VIP_VI_HANDLE *other, VIP_CQ_HANDLE cq, const char *name)
{
	VIP_VI_ATTRIBUTES attr = vi_attributes(s, VIP_SERVICE_RELIABLE_DELIVERY), theirs;
	union address left, right;
	char text[40];

	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, one));
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, cq, other));
	snprintf(text, sizeof text, "%s left", name);
	address_of(s, text, &left);
	snprintf(text, sizeof text, "%s right", name);
	address_of(s, text, &right);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(*one, &left.a, &right.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerRequest(*other, &right.a, &left.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerWait(*one, &theirs));
	VIP(VIP_SUCCESS, VipConnectPeerWait(*other, &theirs));
}

/* ---- done does not block behind wait ---- */

struct waiter {
	VIP_VI_HANDLE vi;
	VIP_CQ_HANDLE cq;
	VIP_RETURN result;
	VIP_DESCRIPTOR *desc;
	_Atomic bool over;
};

static void *wait_for_message(void *arg)
{
	struct waiter *w = arg;
	VIP_BOOLEAN recv;

	w->result = w->cq ? VipCQWait(w->cq, VIP_INFINITE, &w->vi, &recv) : VipRecvWait(w->vi, VIP_INFINITE, &w->desc);
	atomic_store(&w->over, true);
	return NULL;
}

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void done_beside_wait(void)
{
	struct side s = { .server = true };
	VIP_VI_HANDLE from;
	struct waiter w = { 0 };
	VIP_DESCRIPTOR *d;
	pthread_t thread;
	uint64_t shortest = UINT64_MAX;

	side_open(&s);
	loop_back(&s, &from, &s.vi, NULL, "done");
	post_recv(&s, desc_make(&s, 0, s.data, 64));
	w.vi = s.vi;
	REQUIRE(pthread_create(&thread, NULL, wait_for_message, &w) == 0);
	for (int i = 0; i < 200; i++) {
		uint64_t start = nanoseconds(), took;

		VIP(VIP_NOT_DONE, VipRecvDone(s.vi, &d));
		took = nanoseconds() - start;
		shortest = took < shortest ? took : shortest;
		usleep(500);
	}
	CHECK(shortest < 200000000); /* a busy machine makes some of them long; one that waits with the other thread does not come back */
	CHECK(!atomic_load(&w.over));
	VIP(VIP_SUCCESS, VipPostSend(from, desc_make(&s, 1, s.data, 8), s.handle));
	pthread_join(thread, NULL);
	VIP(VIP_SUCCESS, w.result);
	CHECK(w.desc == desc_at(&s, 0));
	VIP(VIP_SUCCESS, VipDisconnect(from));
	VIP(VIP_SUCCESS, VipDestroyVi(from));
	side_close(&s);
}

/* ---- what is waited for goes away ---- */

static void destroyed_under_a_waiter(void)
{
	struct side s = { .server = true };
	struct waiter w = { 0 }, v = { 0 };
	pthread_t one, other;
	VIP_DESCRIPTOR *d;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	post_recv(&s, desc_make(&s, 0, s.data, 64));
	VIP(VIP_SUCCESS, VipCreateCQ(s.nic, 16, &w.cq));
	v.vi = s.vi;
	REQUIRE(pthread_create(&one, NULL, wait_for_message, &w) == 0);
	REQUIRE(pthread_create(&other, NULL, wait_for_message, &v) == 0);
	usleep(30000);
	VIP(VIP_SUCCESS, VipDestroyCQ(w.cq));
	pthread_join(one, NULL);
	VIP(VIP_INVALID_PARAMETER, w.result);
	VIP(VIP_SUCCESS, VipCloseNic(s.nic));
	pthread_join(other, NULL);
	VIP(VIP_INVALID_PARAMETER, v.result);
	VIP(VIP_INVALID_PARAMETER, VipRecvDone(s.vi, &d));
}

static void *serve_one(void *arg)
{
	struct waiter *w = arg;
	struct side *s = (struct side *)(void *)w->desc;
	union address local, remote;
	VIP_VI_ATTRIBUTES theirs;
	VIP_CONN_HANDLE conn;

	address_of(s, "never", &local);
	w->result = VipConnectWait(s->nic, &local.a, VIP_INFINITE, &remote.a, &theirs, &conn);
	return NULL;
}

static void closed_under_a_server(void)
{
	struct side s = { .server = true };
	struct waiter w = { .desc = (VIP_DESCRIPTOR *)(void *)&s };
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		side_open(&s);
		REQUIRE(pthread_create(&thread, NULL, serve_one, &w) == 0);
		usleep(i * 300);
		VIP(VIP_SUCCESS, VipCloseNic(s.nic));
		pthread_join(thread, NULL);
		VIP(VIP_INVALID_PARAMETER, w.result);
	}
}

/* ---- several servers in threads, several clients ---- */

enum { DOORS = 6 };

struct door {
	struct side *s;
	unsigned number;
	VIP_VI_HANDLE vi;
	VIP_RETURN result;
};

static void *open_door(void *arg)
{
	struct door *door = arg;
	char name[16];

	snprintf(name, sizeof name, "door %u", door->number);
	door->result = connect_vi(door->s, door->vi, name);
	return NULL;
}

static void in_threads(struct side *s)
{
	struct door doors[DOORS];
	pthread_t thread[DOORS];

	side_open(s);
	for (unsigned i = 0; i < DOORS; i++) {
		doors[i] = (struct door){ s, s->server ? i : DOORS - 1 - i, NULL, VIP_ERROR };
		doors[i].vi = vi_new(s, VIP_SERVICE_RELIABLE_DELIVERY);
		VIP(VIP_SUCCESS, VipPostRecv(doors[i].vi, desc_make(s, i, s->data + 64 * i, 64), s->handle));
		REQUIRE(pthread_create(&thread[i], NULL, open_door, &doors[i]) == 0);
	}
	for (unsigned i = 0; i < DOORS; i++) {
		pthread_join(thread[i], NULL);
		VIP(VIP_SUCCESS, doors[i].result);
	}
	/* Each VI met its partner: they say their numbers. */
	for (unsigned i = 0; i < DOORS; i++) {
		VIP_DESCRIPTOR *d = desc_make(s, 100 + i, NULL, 0);

		d->CS.Control |= VIP_CONTROL_IMMEDIATE;
		d->CS.ImmediateData = doors[i].number;
		VIP(VIP_SUCCESS, VipPostSend(doors[i].vi, d, s->handle));
	}
	for (unsigned i = 0; i < DOORS; i++) {
		VIP_DESCRIPTOR *d = NULL;

		VIP(VIP_SUCCESS, VipRecvWait(doors[i].vi, SOON, &d));
		REQUIRE(d);
		CHECK_EQ(d->CS.ImmediateData, doors[i].number);
	}
	meet(s);
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
}

static void many_servers_at_once(void)
{
	both(in_threads);
}

/* ---- a data server blocked for ever on its own NIC handle, the main thread busy on another ---- */

static _Atomic unsigned served_so_far;

static void *data_server(void *arg)
{
	struct side *s = arg;
	struct waiter w = { 0 };
	VIP_VI_HANDLE vi;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;
	unsigned n = 0;

	w.cq = *(VIP_CQ_HANDLE *)(void *)s->mem;
	while (VipCQWait(w.cq, VIP_INFINITE, &vi, &recv) == VIP_SUCCESS) {
		if (VipRecvDone(vi, &d) != VIP_SUCCESS || d->CS.ImmediateData != n)
			break;
		n++;
		d->CS.Length = 64;
		if (VipPostRecv(vi, d, s->handle) != VIP_SUCCESS)
			break;
		atomic_store(&served_so_far, n);
	}
	return (void *)(uintptr_t)n;
}

static void two_handles_two_threads(void)
{
	enum { REQUESTS = 20000 };
	struct side server = { .server = true }, client = { .server = false };
	union address left, right;
	VIP_VI_ATTRIBUTES attr, theirs;
	VIP_CQ_HANDLE cq;
	VIP_DESCRIPTOR *d;
	pthread_t thread;
	void *served;

	side_open(&server);
	side_open(&client);
	VIP(VIP_SUCCESS, VipCreateCQ(server.nic, 1024, &cq));
	*(VIP_CQ_HANDLE *)(void *)server.mem = cq;
	attr = vi_attributes(&server, VIP_SERVICE_RELIABLE_RECEPTION);
	VIP(VIP_SUCCESS, VipCreateVi(server.nic, &attr, NULL, cq, &server.vi));
	client.vi = vi_new(&client, VIP_SERVICE_RELIABLE_RECEPTION);
	for (unsigned i = 1; i < 33; i++)
		post_recv(&server, desc_make(&server, i, server.data + 64 * i, 64));
	address_of(&server, "left", &left);
	address_of(&client, "right", &right);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(server.vi, &left.a, &right.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerRequest(client.vi, &right.a, &left.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerWait(client.vi, &theirs));
	VIP(VIP_SUCCESS, VipConnectPeerWait(server.vi, &theirs));
	REQUIRE(pthread_create(&thread, NULL, data_server, &server) == 0);
	for (unsigned i = 0; i < REQUESTS; i++) {
		while (i - atomic_load(&served_so_far) > 16) /* not more than there are receives */
			sched_yield();
		d = desc_make(&client, 0, client.data, i % 60);
		d->CS.Control |= VIP_CONTROL_IMMEDIATE;
		d->CS.ImmediateData = i;
		post_send(&client, d);
		if (!CHECK_EQ(VipSendWait(client.vi, SOON, &d), VIP_SUCCESS))
			break;
	}
	for (int i = 0; i < SOON && atomic_load(&served_so_far) < REQUESTS; i++)
		usleep(1000);
	VIP(VIP_SUCCESS, VipDisconnect(client.vi));
	VIP(VIP_SUCCESS, VipCloseNic(client.nic));
	pthread_join(thread, &served); /* ended by a flushed receive */
	CHECK_EQ((uintptr_t)served, REQUESTS);
	VIP(VIP_SUCCESS, VipCloseNic(server.nic));
}

/* ---- everybody on one handle ---- */

enum { WORKERS = 4, PINGS = 3000 };

struct worker {
	struct side *s;
	unsigned number;
	VIP_VI_HANDLE one, other;
	unsigned bad;
};

static void *ping(void *arg)
{
	struct worker *w = arg;
	struct side *s = w->s;
	char *from = s->data + (w->number << 16), *to = from + (1 << 15);
	VIP_DESCRIPTOR *d;

	for (unsigned i = 0; i < PINGS; i++) {
		size_t n = 4 + (i * 37) % 9000;

		*(unsigned *)(void *)from = i;
		w->bad += VipPostRecv(w->other, desc_make(s, 2 * w->number, to, 10000), s->handle) != VIP_SUCCESS;
		w->bad += VipPostSend(w->one, desc_make(s, 2 * w->number + 1, from, n), s->handle) != VIP_SUCCESS;
		w->bad += VipRecvWait(w->other, SOON, &d) != VIP_SUCCESS || d->CS.Length != n || *(unsigned *)(void *)to != i;
		w->bad += VipSendWait(w->one, SOON, &d) != VIP_SUCCESS;
	}
	return NULL;
}

/* In buffers of the handle's, and out of them, all at once. */
static void *hand_over(void *arg)
{
	struct worker *w = arg;
	struct side *s = w->s;
	VIP_DESCRIPTOR *d;

	for (unsigned i = 0; i < PINGS; i++) {
		unsigned n = 60 + (i * 37) % 9000, *buffer = VipxTakeBuffer(s->nic), *came;

		if (!buffer) {
			w->bad++;
			continue;
		}
		buffer[0] = w->number;
		buffer[n / sizeof *buffer - 1] = i;
		d = desc_make(s, 2 * w->number, s->data, 0);
		d->CS.Control |= VIP_CONTROL_POOL;
		w->bad += VipPostRecv(w->other, d, s->handle) != VIP_SUCCESS;
		if (VipxSendBuffer(w->one, buffer, n) != VIP_SUCCESS) {
			w->bad++;
			VipxGiveBuffer(s->nic, buffer);
			continue;
		}
		if (VipRecvWait(w->other, SOON, &d) != VIP_SUCCESS || !(d->CS.Status & VIP_STATUS_POOL)) {
			w->bad++;
			continue;
		}
		came = d->DS[1].Local.Data.Address;
		w->bad += d->CS.Length != n || came[0] != w->number || came[n / sizeof *came - 1] != i;
		VipxGiveBuffer(s->nic, came);
	}
	return NULL;
}

static void everybody(void *(*work)(void *))
{
	struct side s = { .server = true };
	struct worker workers[WORKERS];
	pthread_t thread[WORKERS];
	char name[16];

	side_open(&s);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .s = &s, .number = i };
		snprintf(name, sizeof name, "worker %u", i);
		loop_back(&s, &workers[i].one, &workers[i].other, NULL, name);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, work, &workers[i]) == 0);
	for (unsigned i = 0; i < WORKERS; i++) {
		pthread_join(thread[i], NULL);
		CHECK_EQ(workers[i].bad, 0);
	}
	VIP(VIP_SUCCESS, VipCloseNic(s.nic));
}

static void one_handle_many_threads(void)
{
	everybody(ping);
}

static void buffers_of_many_threads(void)
{
	if (strcmp(VipxParameterString("arch"), "qnix") == 0 || strcmp(VipxParameterString("engine"), "daemon") == 0)
		SKIP("a NIC that asks first, or that runs elsewhere, does not send this way");
	everybody(hand_over);
}

int main(void)
{
	two_init("threads");
	CASE(done_beside_wait);
	CASE(destroyed_under_a_waiter);
	CASE(closed_under_a_server);
	CASE(many_servers_at_once);
	CASE(two_handles_two_threads);
	CASE(one_handle_many_threads);
	CASE(buffers_of_many_threads);
	return check_done();
}
