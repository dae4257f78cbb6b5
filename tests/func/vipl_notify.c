/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL notify calls in two processes: one handler a call, in order, with the descriptor or entry dequeued; cancelled with
 * their object; handlers that call VIPL.  And the handler of asynchronous errors: registration, the default one.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/func/vipl_two.h"

static _Atomic unsigned ran;
enum { STREAM = 600 };
static unsigned order[STREAM + 2];
static VIP_DESCRIPTOR *given[STREAM + 2];
static pthread_t handler_thread;
static struct side *here;

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
	unsigned n = atomic_load(&ran);

	handler_thread = pthread_self();
	if (nic != here->nic || vi != here->vi)
		n = STREAM + 1; /* shows as a wrong order */
	order[n] = (unsigned)(uintptr_t)context;
	given[n] = d;
	atomic_store(&ran, n + 1);
}

static void wait_for(unsigned n)
{
	for (int i = 0; i < SOON && atomic_load(&ran) < n; i++)
		usleep(1000);
	CHECK_EQ(atomic_load(&ran), n);
}

static void receiver(struct side *s)
{
	VIP_DESCRIPTOR *d;

	here = s;
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	VIP(VIP_INVALID_PARAMETER, VipRecvNotify(s->vi, NULL, NULL));
	VIP(VIP_INVALID_PARAMETER, VipSendNotify(s->vi, NULL, NULL));
	for (unsigned i = 0; i < 10; i++)
		post_recv(s, desc_make(s, i, s->data + 64 * i, 64));
	for (uintptr_t i = 0; i < 5; i++)
		VIP(VIP_SUCCESS, VipRecvNotify(s->vi, (void *)(100 + i), on_descriptor));
	usleep(20000);
	CHECK_EQ(atomic_load(&ran), 0);
	meet(s); /* ten messages come */
	wait_for(5);
	CHECK(!pthread_equal(handler_thread, pthread_self()));
	for (unsigned i = 0; i < 5; i++) {
		CHECK_EQ(order[i], 100 + i);
		CHECK(given[i] == desc_at(s, i));
		CHECK_EQ(given[i]->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
		CHECK_EQ(given[i]->CS.Length, 8 + i);
	}
	/* The handlers took five; the others are taken as ever. */
	received(s, desc_at(s, 5), VIP_SUCCESS);
	/* A completion that is there already is reported, too; and the thread starts anew. */
	meet(s);
	VIP(VIP_SUCCESS, VipRecvWait(s->vi, SOON, &d));
	VIP(VIP_SUCCESS, VipRecvNotify(s->vi, (void *)200, on_descriptor));
	wait_for(6);
	CHECK(order[5] == 200 && given[5] == desc_at(s, 7));
	/* An error status is a completion. */
	while (VipRecvDone(s->vi, &d) == VIP_SUCCESS)
		;
	post_recv(s, desc_make(s, 20, s->data, 64));
	VIP(VIP_SUCCESS, VipRecvNotify(s->vi, (void *)300, on_descriptor));
	meet(s); /* disconnects */
	wait_for(7);
	CHECK(order[6] == 300 && given[6] == desc_at(s, 20));
	CHECK(given[6]->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
	/* Nothing is posted: the handler waits, and is cancelled with the VI. */
	VIP(VIP_SUCCESS, VipRecvNotify(s->vi, (void *)400, on_descriptor));
	side_close(s);
	usleep(20000);
	CHECK_EQ(atomic_load(&ran), 7);
}

static void sender(struct side *s)
{
	here = s;
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	meet(s);
	for (unsigned i = 0; i < 10; i++) {
		post_send(s, desc_make(s, i, s->data, 8 + i));
		VIP(VIP_SUCCESS, VipSendNotify(s->vi, (void *)(uintptr_t)i, on_descriptor));
	}
	wait_for(10);
	for (unsigned i = 0; i < 10; i++)
		CHECK(order[i] == i && given[i] == desc_at(s, i));
	meet(s);
	meet(s);
	side_close(s);
}

static void queue_notify(void)
{
	two(receiver, sender);
}

/* Many handlers wait while messages keep coming: each message meets the handler whose turn it is. */
static void in_turn(struct side *s)
{
	VIP_DESCRIPTOR *done;

	here = s;
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	for (unsigned i = 0; s->server && i < STREAM; i++) {
		post_recv(s, desc_make(s, i, s->data, 64));
		VIP(VIP_SUCCESS, VipRecvNotify(s->vi, (void *)(uintptr_t)i, on_descriptor));
	}
	meet(s);
	for (unsigned i = 0; !s->server && i < STREAM; i++) {
		post_send(s, desc_make(s, i, s->data, 8));
		VIP(VIP_SUCCESS, VipSendWait(s->vi, SOON, &done));
		for (unsigned k = 0; k < 20; k++)
			VipxPoll(s->nic); /* takes its time: the other side looks meanwhile */
	}
	if (s->server)
		wait_for(STREAM);
	for (unsigned i = 0; s->server && i < STREAM; i++)
		if (!CHECK(order[i] == i && given[i] == desc_at(s, i)))
			break;
	meet(s);
	side_close(s);
}

static void handlers_in_turn(void)
{
	both(in_turn);
}

/* ---- completion queues ---- */

static VIP_CQ_HANDLE cq;
static unsigned recv_entries, send_entries, handled, wrong;
static _Atomic bool finished;

/* Takes the descriptor, posts it again, asks for the next.  CHECK is for one thread, so this one counts. */
static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv)
{
	struct side *s = context;
	VIP_DESCRIPTOR *d = NULL;

	wrong += nic != s->nic || vi != s->vi;
	handled++;
	if (recv) {
		wrong += VipRecvDone(vi, &d) != VIP_SUCCESS;
		recv_entries++;
		if (d) {
			d->CS.Length = 64;
			wrong += VipPostRecv(vi, d, s->handle) != VIP_SUCCESS;
		}
	} else {
		wrong += VipSendDone(vi, &d) != VIP_SUCCESS;
		send_entries++;
		if (d && send_entries < 100) {
			d->CS.Length = 64;
			wrong += VipPostSend(vi, d, s->handle) != VIP_SUCCESS;
		}
	}
	if (recv_entries == 100 && send_entries == 100)
		atomic_store(&finished, true);
	else
		wrong += VipCQNotify(cq, s, on_entry) != VIP_SUCCESS;
}

static void driven_by_handlers(struct side *s)
{
	VIP_VI_ATTRIBUTES attr;
	VIP_DESCRIPTOR *d;

	side_open(s);
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 256, &cq));
	VIP(VIP_INVALID_PARAMETER, VipCQNotify(cq, s, NULL));
	attr = vi_attributes(s, VIP_SERVICE_RELIABLE_RECEPTION);
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, cq, cq, &s->vi));
	VIP(VIP_ERROR_RESOURCE, VipRecvNotify(s->vi, s, on_descriptor)); /* these are notified at the completion queue */
	VIP(VIP_ERROR_RESOURCE, VipSendNotify(s->vi, s, on_descriptor));
	for (unsigned i = 0; i < 100; i++) /* all: a NIC that runs beside its program does not wait for the handler */
		post_recv(s, desc_make(s, i, s->data, 64));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "cq"));
	meet(s);
	VIP(VIP_SUCCESS, VipCQNotify(cq, s, on_entry));
	post_send(s, d = desc_make(s, 200, s->data + 64, 64));
	for (int i = 0; i < SOON && !atomic_load(&finished); i++)
		usleep(1000);
	CHECK(atomic_load(&finished));
	CHECK_EQ(wrong, 0);
	CHECK_EQ(recv_entries, 100);
	CHECK_EQ(send_entries, 100);
	CHECK_EQ(handled, 200);
	meet(s);
	VIP(VIP_SUCCESS, VipDisconnect(s->vi));
	VIP(VIP_SUCCESS, VipDestroyVi(s->vi));
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	/* A handler is cancelled with its queue. */
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 64, &cq));
	VIP(VIP_SUCCESS, VipCQNotify(cq, s, on_entry));
	usleep(10000);
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	usleep(20000);
	CHECK_EQ(handled, 200);
	VIP(VIP_INVALID_PARAMETER, VipCQNotify(cq, s, on_entry));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
}

static void cq_notify(void)
{
	both(driven_by_handlers);
}

/* ---- limits, and closing ---- */

static VIP_NIC_HANDLE to_close;

static void closes(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
	(void)context;
	(void)vi;
	(void)d;
	if (VipCloseNic(nic) == VIP_SUCCESS)
		to_close = nic;
	atomic_fetch_add(&ran, 1);
}

static void never(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *d)
{
	(void)context;
	(void)nic;
	(void)vi;
	(void)d;
	atomic_fetch_add(&ran, 1000);
}

static void limits_and_ends(void)
{
	struct side s = { .server = true };
	unsigned n = 0;
	VIP_NIC_HANDLE unlocked;
	VIP_VI_HANDLE vi;
	VIP_VI_ATTRIBUTES attr;

	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	while (VipRecvNotify(s.vi, NULL, never) == VIP_SUCCESS && n < 100000)
		n++;
	CHECK(n >= 1024 && n < 100000); /* bounded */
	VIP(VIP_ERROR_RESOURCE, VipRecvNotify(s.vi, NULL, never));
	VIP(VIP_SUCCESS, VipCloseNic(s.nic)); /* with all of them outstanding */
	CHECK_EQ(atomic_load(&ran), 0);

	/* A handler closes the NIC that called it. */
	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	post_send(&s, desc_make(&s, 0, s.data, 8)); /* idle: flushed at once */
	VIP(VIP_SUCCESS, VipSendNotify(s.vi, NULL, closes));
	wait_for(1);
	CHECK(to_close == s.nic);
	VIP(VIP_INVALID_PARAMETER, VipCloseNic(s.nic));

	/* A handle that the caller serialises has no second thread. */
	VIP(VIP_SUCCESS, VipxOpenNic(two_device, VIPX_OPEN_UNLOCKED, &unlocked));
	attr = vi_attributes(&s, VIP_SERVICE_UNRELIABLE);
	attr.Ptag = NULL;
	VIP(VIP_SUCCESS, VipCreateVi(unlocked, &attr, NULL, NULL, &vi));
	VIP(VIP_ERROR_RESOURCE, VipRecvNotify(vi, NULL, never));
	VIP(VIP_SUCCESS, VipCloseNic(unlocked));
}

/* ---- the default handler of asynchronous errors says once what happened ---- */

static void default_handler(void)
{
	struct side s = { .server = true };
	int ends[2], saved;
	char text[4096];
	ssize_t n;

	VipxParameterSet("log", "warn", "test");
	side_open(&s);
	s.vi = vi_new(&s, VIP_SERVICE_UNRELIABLE);
	REQUIRE(pipe(ends) == 0);
	saved = dup(2);
	dup2(ends[1], 2);
	for (int i = 0; i < 5; i++) /* not in registered memory */
		VIP(VIP_INVALID_PARAMETER, VipPostSend(s.vi, desc_make(&s, 0, s.data, 8), s.handle + 1));
	VipxParameterSet("log", "quiet", "test");
	dup2(saved, 2);
	close(saved);
	close(ends[1]);
	n = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	REQUIRE(n > 0);
	text[n] = '\0';
	CHECK(strstr(text, "descriptor"));
	CHECK(strchr(text, '\n') == text + n - 1); /* one line */
	side_close(&s);
}

int main(void)
{
	two_init("notify");
	CASE(queue_notify);
	CASE(handlers_in_turn);
	CASE(cq_notify);
	CASE(limits_and_ends);
	CASE(default_handler);
	return check_done();
}
