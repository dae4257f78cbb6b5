/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL over a NIC that runs beside its program (engine thread): what is posted completes while both sides make no call, a lost
 * peer reaches the handler without one, and a handle opened unlocked works the same.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/func/vipl_two.h"

enum { MESSAGE = 3 << 20, ROUNDS = 20, BURST = 200 };

static const char *arch;

/* Computes until the descriptor is complete: no call.  False: it takes too long. */
static bool completes(VIP_DESCRIPTOR *d)
{
	for (int ms = 0; ms < SOON; ms++) {
		struct timespec begun, at;

		clock_gettime(CLOCK_MONOTONIC, &begun);
		do { /* a millisecond of work */
			/* Acquire: pairs with the NIC's release of the status. */
			if (__atomic_load_n(&d->CS.Status, __ATOMIC_ACQUIRE) & VIP_STATUS_DONE)
				return true;
			clock_gettime(CLOCK_MONOTONIC, &at);
		} while ((at.tv_sec - begun.tv_sec) * 1000000000ll + (at.tv_nsec - begun.tv_nsec) < 1000000);
	}
	return false;
}

/* The plain pipe: hear() would poll. */
static void wait_for_word(struct side *s)
{
	char token;

	if (read(s->in, &token, 1) != 1)
		_exit(2);
}

static void both_compute(struct side *s)
{
	static const size_t lengths[] = { 40, 900, 5000, 40000, MESSAGE };

	VipxParameterSet("arch", arch, "test");
	VipxParameterSet("engine", "thread", "test");
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = lengths[i % 5];
		VIP_DESCRIPTOR *d = desc_make(s, i, s->data, n);

		if (s->server) {
			memset(s->data, 0, n);
			post_recv(s, d);
			say(s, "r", 1);
		} else {
			fill(s->data, n, i);
			wait_for_word(s);
			post_send(s, d);
		}
		CHECK(completes(d));
		if (s->server) {
			received(s, d, VIP_SUCCESS);
			CHECK(filled(s->data, n, i));
			say(s, "n", 1);
		} else {
			sent(s, d, VIP_SUCCESS);
			wait_for_word(s);
		}
	}
	side_close(s);
}

static void messages(void)
{
	arch = "direct";
	both(both_compute);
	arch = "qnix";
	both(both_compute);
}

/* ---- the doorbell: a message rings for a NIC that has fallen asleep beside its computing host ---- */

static VIP_UINT64 bells(struct side *s)
{
	const VIP_CHAR *name;
	const VIP_UINT64 *value;

	for (VIP_ULONG i = 0; (value = VipxCounterAt(s->nic, i, &name, NULL)); i++)
		if (!strcmp(name, "bells"))
			return *value;
	return 0;
}

/* The client sends until it has rung often enough; each time it leaves the other side's NIC the time to fall asleep. */
static void woken(struct side *s)
{
	enum { RINGS = 3, TRIES = 1000 };
	unsigned going = 1;

	VipxParameterSet("arch", arch, "test");
	VipxParameterSet("engine", "thread", "test");
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	for (unsigned i = 0; going; i++) {
		VIP_DESCRIPTOR *d = desc_make(s, i, s->data, sizeof going);

		if (s->server) {
			post_recv(s, d);
			say(s, "r", 1);
			CHECK(completes(d));
			memcpy(&going, s->data, sizeof going);
			received(s, d, VIP_SUCCESS);
		} else {
			wait_for_word(s);
			usleep(30000);
			going = i < TRIES && bells(s) < RINGS;
			memcpy(s->data, &going, sizeof going);
			post_send(s, d);
			CHECK(completes(d));
			sent(s, d, VIP_SUCCESS);
		}
	}
	CHECK(s->server || bells(s) >= RINGS);
	side_close(s);
}

static void doorbell(void)
{
	arch = "direct";
	both(woken);
	arch = "qnix";
	both(woken);
}

/* ---- a lost peer ---- */

static _Atomic unsigned lost, wrong;

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	struct side *s = context;

	wrong += error->ErrorCode != VIP_ERROR_CONN_LOST; /* it runs beside the case: no CHECK */
	wrong += VipDisconnect(error->ViHandle) != VIP_SUCCESS;
	wrong += VipCloseNic(s->nic) != VIP_SUCCESS; /* from the NIC's own thread */
	lost++;
}

static void survives(struct side *s)
{
	VipxParameterSet("engine", "thread", "test");
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	VIP(VIP_SUCCESS, VipErrorCallback(s->nic, s, on_error));
	meet(s);
	for (int ms = 0; ms < SOON && !lost; ms++)
		usleep(1000);
	CHECK_EQ(lost, 1);
	CHECK_EQ(wrong, 0);
	VIP(VIP_INVALID_PARAMETER, VipCloseNic(s->nic));
	VIP(VIP_SUCCESS, VipOpenNic(two_device, &s->nic));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
}

static void dies(struct side *s)
{
	VipxParameterSet("engine", "thread", "test");
	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	meet(s);
	kill(getpid(), SIGKILL);
}

static void a_loss(void)
{
	int a[2], b[2];
	pid_t one, other;

	REQUIRE(pipe(a) == 0 && pipe(b) == 0);
	one = start_side(survives, true, a[0], b[1], b[0], a[1]);
	other = start_side(dies, false, b[0], a[1], a[0], b[1]);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	CHECK_EQ(side_status(other), -SIGKILL);
	CHECK_EQ(side_status(one), 0);
}

/* ---- in one process: the lock ---- */

static void link_up(struct side *s, VIP_VI_HANDLE *one, VIP_VI_HANDLE *other)
{
	VIP_VI_ATTRIBUTES attr = vi_attributes(s, VIP_SERVICE_RELIABLE_DELIVERY), theirs;
	union address left, right;

	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, one));
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, NULL, other));
	address_of(s, "left", &left);
	address_of(s, "right", &right);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(*one, &left.a, &right.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerRequest(*other, &right.a, &left.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerWait(*one, &theirs));
	VIP(VIP_SUCCESS, VipConnectPeerWait(*other, &theirs));
}

/* Some rounds are polled, in some the thread does it, in most both want to at once. */
static void burst(struct side *s, VIP_VI_HANDLE from, VIP_VI_HANDLE to, unsigned k)
{
	VIP_DESCRIPTOR *r = desc_make(s, 0, s->data, 6000), *d = desc_make(s, 1, s->data + 8192, 6000), *done = NULL;

	fill(s->data + 8192, 6000, k);
	VIP(VIP_SUCCESS, VipPostRecv(to, r, s->handle));
	VIP(VIP_SUCCESS, VipPostSend(from, d, s->handle));
	if (k % 3 == 0)
		usleep(k * 7 % 1500);
	VIP(VIP_SUCCESS, k % 2 ? VipRecvWait(to, SOON, &done) : completes(r) ? VipRecvDone(to, &done) : VIP_TIMEOUT);
	CHECK(done == r && filled(s->data, 6000, k));
	VIP(VIP_SUCCESS, VipSendWait(from, SOON, &done));
	CHECK(done == d);
}

static void thread_and_program(VIP_ULONG flags)
{
	struct side s = { .server = true };
	VIP_VI_HANDLE from;

	side_open(&s);
	if (flags) {
		VIP(VIP_SUCCESS, VipCloseNic(s.nic));
		VIP(VIP_SUCCESS, VipxOpenNic(two_device, flags, &s.nic));
		VIP(VIP_SUCCESS, VipQueryNic(s.nic, &s.attr));
		CHECK_EQ(s.attr.ThreadSafe, VIP_FALSE);
		VIP(VIP_SUCCESS, VipCreatePtag(s.nic, &s.ptag));
		VIP(VIP_SUCCESS, VipRegisterMem(s.nic, s.mem, SIDE_MEMORY, &(VIP_MEM_ATTRIBUTES){ .Ptag = s.ptag }, &s.handle));
	}
	link_up(&s, &from, &s.vi);
	for (unsigned k = 0; k < BURST; k++)
		burst(&s, from, s.vi, k);
	VIP(VIP_SUCCESS, VipCloseNic(s.nic));
	munmap(s.mem, SIDE_MEMORY);
}

static void one_lock(void)
{
	static const char *const archs[] = { "direct", "qnix" };

	VipxParameterSet("engine", "thread", "test");
	for (unsigned i = 0; i < 2; i++) {
		VipxParameterSet("arch", archs[i], "test");
		thread_and_program(0);
		thread_and_program(VIPX_OPEN_UNLOCKED);
	}
}

int main(void)
{
	two_init("beside");
	CASE(messages);
	CASE(doorbell);
	CASE(a_loss);
	CASE(one_lock);
	return check_done();
}
