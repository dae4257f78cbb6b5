/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs that run beside or apart from their processes (engines thread and daemon), and kill -9 at random moments: of one of two
 * processes under load, or of the daemon.  Who is left is told and ends, calls still return, and nothing stays behind: no
 * process, no card.  A fresh pair of processes each time, so that start and end are hit, too.
 *
 *   engines [rounds] [seed]
 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/nicemu/found.h"
#include "tests/unit/nicemu/kin.h"

enum { SENDS = 8, RECEIVES = 64, KILLED = 0, SECONDS = 180, SLOW = 30, MOST = 60000 };

static unsigned rounds = 48, seed = 1;
static char device[48];
static const char *arch, *engine;

/* ---- one process ------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t lock;
static int events[16];

static bool enter(void *arg)
{
	(void)arg;
	return !atomic_exchange_explicit(&lock, 1, memory_order_acquire); /* pairs with leave */
}

static void leave(void *arg, bool report)
{
	(void)arg;
	(void)report;
	atomic_store_explicit(&lock, 0, memory_order_release); /* pairs with enter */
}

static void locked(void)
{
	while (!enter(NULL))
		sched_yield();
}

static void note(void *arg, const struct nic_event *event)
{
	(void)arg;
	events[event->code & 15]++;
}

static bool told(void)
{
	return events[NIC_EV_CONN_LOST] || events[NIC_EV_CATASTROPHIC];
}

/* False: it was refused, with a sentence that says why. */
static bool open_nic(struct end *e)
{
	struct nic_open_args args = { .device = device, .event = note, .enter = enter, .leave = leave };
	struct nic_mem_attr attr = { .flags = 0 };

	memset(e, 0, sizeof(*e));
	e->mem = aligned_alloc(4096, PAIR_MEM);
	e->desc = aligned_alloc(64, PAIR_DESCS * sizeof(struct nic_desc));
	memset(e->mem, 0, PAIR_MEM);
	memset(e->desc, 0, PAIR_DESCS * sizeof(struct nic_desc));
	if (nic_open(&args, &e->nic) != NIC_OK) {
		if (!strlen(nic_last_error()))
			_exit(3);
		return false;
	}
	locked();
	return nic_mem_register(e->nic, (uintptr_t)e->mem, PAIR_MEM, &attr, &e->handle) == NIC_OK;
}

static void repost(struct end *e, int i)
{
	uint32_t length = rand() % 3 ? rand() % 60 : rand() % MOST;

	if (i < SENDS)
		send_desc(e, fill(e, i, 0, e->mem + 500000, length));
	else
		recv_desc(e, fill(e, i, 0, e->mem + MOST * (i % 8), MOST));
}

static void traffic(struct end *e)
{
	for (int i = 0; i < SENDS + RECEIVES; i++)
		if ((status_of(&e->desc[i]) & (NIC_ST_DONE | NIC_ST_ERROR_MASK)) == NIC_ST_DONE)
			repost(e, i);
}

static bool connected(struct end *e)
{
	enum nic_vi_state state;

	nic_vi_query(e->nic, e->vi, &state, NULL);
	return state == NIC_VI_CONNECTED;
}

/* Everything that was posted is the consumer's again. */
static bool all_done(struct end *e)
{
	for (int i = 0; i < SENDS + RECEIVES; i++)
		if (e->desc[i].nseg && !(status_of(&e->desc[i]) & NIC_ST_DONE))
			return false;
	return true;
}

/* Runs until the connection is gone, or the other one was killed before there was one. */
static void run(struct end *e)
{
	struct nic_vi_attr attr;
	int err = NIC_NOT_DONE;

	while (err == NIC_NOT_DONE && !atomic_load(&kin_step[KILLED])) {
		err = nic_peer_poll(e->nic, e->vi, &attr);
		nic_poll(e->nic);
		leave(NULL, false);
		sched_yield();
		locked();
	}
	for (int i = 0; err == NIC_OK && i < SENDS; i++)
		repost(e, i);
	while (err == NIC_OK && connected(e) && !told()) {
		traffic(e);
		nic_poll(e->nic);
		leave(NULL, false);
		if (rand() % 8 == 0)
			usleep(rand() % 300); /* the NIC is on its own */
		locked();
	}
	if (err == NIC_NOT_DONE)
		nic_peer_cancel(e->nic, e->vi);
}

static int process(const char *me, const char *other)
{
	struct nic_vi_args args = { .attr = { .reliability = NIC_RELIABLE_RECEPTION }, .cookie = 2 };
	struct nic_addr a, b;
	struct end e;

	alarm(SECONDS);
	if (!open_nic(&e))
		return 0;
	a = addr_of(e.nic, me);
	b = addr_of(e.nic, other);
	if (nic_vi_create(e.nic, &args, &e.vi) == NIC_OK) {
		for (int i = SENDS; i < SENDS + RECEIVES; i++)
			repost(&e, i);
		if (nic_peer_request(e.nic, e.vi, &a, &b) == NIC_OK)
			run(&e);
		nic_disconnect(e.nic, e.vi);
		if (!all_done(&e))
			return 4;
	}
	leave(NULL, false);
	nic_close(e.nic);
	return 0;
}

/* ---- the one that kills ------------------------------------------------------------------------------------------ */

static pid_t begin(const char *me, const char *other, unsigned draw)
{
	pid_t child = fork();

	if (child == 0) {
		srand(draw);
		_exit(process(me, other));
	}
	return child;
}

static unsigned daemons;

/* At a random moment: one of the two (1, 2) or, if there is one by now, the daemon (0). */
static unsigned strike(const pid_t child[2])
{
	unsigned us = rand() % 4 ? rand() % 60000 : rand() % 6000, whom = rand() % 3;
	bool apart = strcmp(engine, "daemon") == 0;
	struct found f;

	usleep(us);
	f = found_of(device);
	if (whom == 0 && apart && f.daemon > 0 && kill(f.daemon, SIGKILL) == 0) {
		daemons++;
		return 0;
	}
	whom = 1 + whom % 2;
	kill(child[whom - 1], SIGKILL);
	return whom;
}

static void one_round(void)
{
	pid_t child[2] = { begin("a", "b", rand()), begin("b", "a", rand()) };
	double from = kin_now();
	unsigned struck = strike(child);
	struct found f = { .cards = 1 };

	atomic_store(&kin_step[KILLED], 1);
	for (unsigned i = 0; i < 2; i++) {
		int status = kin_wait(child[i]);

		if (struck == i + 1)
			CHECK(status == -SIGKILL || status == 0);
		else
			CHECK_EQ(status, 0);
	}
	for (int ms = 0; ms < SECONDS * 1000 && f.cards; ms++) {
		usleep(1000);
		f = found_of(device);
	}
	CHECK_EQ(f.cards, 0);
	CHECK(kin_now() - from < SLOW); /* somebody waited for something that did not come */
}

static void lives(void)
{
	nic_param_set("arch", arch, "test");
	nic_param_set("engine", engine, "test");
	for (unsigned i = 0; i < rounds / 4; i++) {
		kin_clear();
		one_round();
	}
}

static void direct_thread(void)
{
	arch = "direct";
	engine = "thread";
	lives();
}

static void qnix_thread(void)
{
	arch = "qnix";
	engine = "thread";
	lives();
}

static void direct_daemon(void)
{
	arch = "direct";
	engine = "daemon";
	lives();
}

static void qnix_daemon(void)
{
	arch = "qnix";
	engine = "daemon";
	lives();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)atoi(argv[2]);
	srand(seed);
	nic_param_set("log", "quiet", "test"); /* that a NIC's process has died is said to users */
	kin_start();
	snprintf(device, sizeof(device), "engines-%d", (int)getpid());
	CASE(direct_thread);
	CASE(qnix_thread);
	CASE(direct_daemon);
	CASE(qnix_daemon);
	printf("# the daemon was killed %u times\n", daemons);
	return check_done();
}
