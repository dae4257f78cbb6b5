/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ends a sleep: whatever a NIC is told by another process, on each architecture, the other's death, and where the kernel
 * refuses membarrier.  Whether a wake-up can be lost is the question of tests/stress/sleep.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/group.h"
#include "tests/unit/nicemu/kin.h"

#define MS UINT64_C(1000000)

/* A sleep that only a ring ends, and how soon one that is rung for has ended, on any machine. */
#define FOR_LONG (120000 * MS)
#define SOON 60 /* seconds */

/* ---- one process ------------------------------------------------------------------------------------------------- */

static void *rest(void *arg)
{
	nic_wait_rest(arg);
	return NULL;
}

static void two_sleepers_one_ring(void)
{
	struct nic_wait wait[2] = { { 0 }, { 0 } };
	double from = kin_now();
	pthread_t thread[2];
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	pair_poll(&p);
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 64));
	for (int i = 0; i < 2; i++) {
		CHECK(nic_wait_doze(p.b.nic, &wait[i], FOR_LONG));
		pthread_create(&thread[i], NULL, rest, &wait[i]);
	}
	usleep(20000);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 8));
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK(kin_now() - from < SOON);
	CHECK_EQ(counter(p.a.nic, "bells"), 1);
	CHECK_EQ(counter(p.b.nic, "sleeps"), 2);
	pair_poll(&p);
	CHECK(status_of(&p.b.desc[0]) & NIC_ST_DONE);
	pair_close(&p);
}

static void no_sleep_with_work_to_do(void)
{
	struct nic_wait wait = { 0 };
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	pair_poll(&p);
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 64));
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 8));
	CHECK(!nic_wait_doze(p.b.nic, &wait, FOR_LONG)); /* it has come */
	CHECK_EQ(wait.rest, NIC_REST_SPIN);
	pair_poll(&p);
	CHECK(nic_wait_doze(p.b.nic, &wait, 1));
	nic_wait_rest(&wait);
	for (int i = 1; i < 1000; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem, 100)); /* more than the link holds */
	if (asks_first()) { /* all that is on the NIC has been asked for */
		CHECK(nic_wait_doze(p.a.nic, &wait, FOR_LONG));
		CHECK(wait.sleep <= 1 * MS);
		nic_wait_rest(&wait);
	} else {
		CHECK(!nic_wait_doze(p.a.nic, &wait, FOR_LONG));
		CHECK_EQ(wait.rest, NIC_REST_YIELD);
	}
	pair_close(&p);
}

static void *close_late(void *arg)
{
	usleep(50000);
	nic_close(arg);
	return NULL;
}

static void closing_ends_a_sleep(void)
{
	struct nic_wait wait = { 0 };
	double from = kin_now();
	pthread_t thread;
	struct nic *nic;

	REQUIRE(nic_open(&(struct nic_open_args){ .device = kin_device("sleep-close") }, &nic) == NIC_OK);
	nic_poll(nic); /* a new one may have to look around first */
	CHECK(nic_wait_doze(nic, &wait, FOR_LONG));
	pthread_create(&thread, NULL, close_late, nic);
	nic_wait_rest(&wait);
	pthread_join(thread, NULL);
	CHECK(kin_now() - from < SOON);
}

static void requests_wake(void)
{
	struct nic_addr a, b;
	struct nic_wait wait = { 0 };
	double from = kin_now();
	pthread_t thread;
	struct end e, f;

	end_open(&e, kin_device("sleep-request"));
	end_open(&f, kin_device("sleep-request"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	a = addr_of(e.nic, "a");
	b = addr_of(f.nic, "b");
	nic_peer_epoch(f.nic);
	nic_poll(f.nic);
	CHECK(nic_wait_doze(f.nic, &wait, FOR_LONG));
	pthread_create(&thread, NULL, rest, &wait);
	usleep(20000);
	CHECK_EQ(nic_peer_request(e.nic, e.vi, &a, &b), NIC_OK);
	pthread_join(thread, NULL);
	CHECK(kin_now() - from < SOON);
	CHECK(!nic_wait_doze(f.nic, &wait, FOR_LONG)); /* it has not looked at the epoch since */
	nic_peer_epoch(f.nic);
	CHECK(nic_wait_doze(f.nic, &wait, 1));
	nic_wait_rest(&wait);
	end_close(&e);
	end_close(&f);
}

/* ---- what a NIC is at besides packets, on each architecture ------------------------------------------------------- */

/* Idle passes until it may sleep; that it moves is told apart from that something has come. */
static bool asleep_soon(struct end *e, struct nic_wait *wait)
{
	for (int i = 0; i < 1000; i++) {
		nic_poll(e->nic);
		if (nic_wait_doze(e->nic, wait, FOR_LONG))
			return true;
	}
	return false;
}

static bool over(struct pair *p, struct end *e, uint32_t op, uint32_t *value)
{
	int err = NIC_NOT_DONE;

	for (int i = 0; i < 1000 && err == NIC_NOT_DONE; i++) {
		nic_poll(p->a.nic);
		nic_poll(p->b.nic);
		err = nic_op_test(e->nic, op, value);
	}
	return CHECK_EQ(err, NIC_OK);
}

static uint32_t slot_of(struct end *e)
{
	struct nic_attr attr;

	nic_query(e->nic, &attr);
	return attr.slot;
}

static bool join(struct pair *p, uint32_t group[2])
{
	uint32_t slot[2] = { slot_of(&p->a), slot_of(&p->b) }, op[2];

	for (uint32_t i = 0; i < 2; i++) {
		struct nic_group_args args = { .name = 7, .size = 2, .place = i, .slot = slot };

		if (!CHECK_EQ(nic_group_join(i ? p->b.nic : p->a.nic, &args, &op[i]), NIC_OK))
			return false;
	}
	return over(p, &p->a, op[0], &group[0]) && over(p, &p->b, op[1], &group[1]);
}

/* It sleeps while it waits for the other one's Barrier, but not with a command or a message of its own to get rid of. */
static void a_barrier_wakes(void)
{
	struct nic_wait wait = { 0 };
	double from = kin_now();
	uint32_t group[2], op[2];
	pthread_t thread;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	REQUIRE(join(&p, group));
	CHECK_EQ(nic_barrier(p.a.nic, group[0], &op[0]), NIC_OK);
	if (asks_first()) {
		CHECK(!nic_wait_doze(p.a.nic, &wait, FOR_LONG)); /* the command is in the queue */
		CHECK_EQ(wait.rest, NIC_REST_YIELD);
	}
	REQUIRE(CHECK(asleep_soon(&p.a, &wait)));
	CHECK_EQ(wait.sleep, FOR_LONG);
	pthread_create(&thread, NULL, rest, &wait);
	usleep(20000);
	CHECK_EQ(nic_barrier(p.b.nic, group[1], &op[1]), NIC_OK);
	nic_poll(p.b.nic);
	pthread_join(thread, NULL);
	CHECK(kin_now() - from < SOON);
	over(&p, &p.a, op[0], NULL);
	over(&p, &p.b, op[1], NULL);
	pair_close(&p);
}

/* Its root may sleep when the data is on its way, and until it is acknowledged; not with parts that found no room. */
static void a_broadcast_under_way(void)
{
	enum { LEN = 200000 };
	struct nic_wait wait = { 0 };
	uint32_t group[2], op[2];
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	REQUIRE(join(&p, group));
	memset(p.a.mem, 5, LEN);
	CHECK_EQ(nic_bcast(p.a.nic, group[0], slot_of(&p.a), p.a.mem, LEN, &op[0]), NIC_OK);
	REQUIRE(CHECK(asleep_soon(&p.a, &wait)));
	nic_wait_rest(&(struct nic_wait){ .rest = NIC_REST_SLEEP, .nic = p.a.nic, .sleep = 1 }); /* the one announced */
	CHECK_EQ(nic_bcast(p.b.nic, group[1], slot_of(&p.a), p.b.mem, LEN, &op[1]), NIC_OK);
	over(&p, &p.a, op[0], NULL);
	over(&p, &p.b, op[1], NULL);
	CHECK(memcmp(p.a.mem, p.b.mem, LEN) == 0);
	REQUIRE(CHECK(asleep_soon(&p.a, &wait)));
	CHECK_EQ(wait.sleep, FOR_LONG);
	nic_wait_rest(&(struct nic_wait){ .rest = NIC_REST_SLEEP, .nic = p.a.nic, .sleep = 1 });
	pair_close(&p);
}

/* A NIC that nobody has a link to learns of one in its sleep. */
static void a_new_link_wakes(void)
{
	struct nic_wait wait = { 0 };
	double from = kin_now();
	pthread_t thread;
	uint32_t slot[2], op;
	struct end e, f;

	end_open(&e, kin_device("sleep-link"));
	end_open(&f, kin_device("sleep-link"));
	slot[0] = slot_of(&e);
	slot[1] = slot_of(&f);
	REQUIRE(CHECK(asleep_soon(&f, &wait)));
	pthread_create(&thread, NULL, rest, &wait);
	usleep(20000);
	CHECK_EQ(nic_group_join(e.nic, &(struct nic_group_args){ .name = 1, .size = 2, .slot = slot }, &op), NIC_OK);
	nic_poll(e.nic);
	pthread_join(thread, NULL);
	CHECK(kin_now() - from < SOON);
	end_close(&e);
	end_close(&f);
}

/* No answer comes: it sleeps, but asks again, and no less often for having slept. */
static void asks_again_in_its_sleep(void)
{
	struct nic_wait wait = { 0 };
	double until = kin_now() + KIN_SECONDS;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	pair_poll(&p);
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 64));
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 8));
	while (counter(p.a.nic, "qnix_requests_again") < 10 && kin_now() < until) {
		nic_poll(p.a.nic);
		if (nic_wait_doze(p.a.nic, &wait, FOR_LONG)) {
			CHECK(wait.sleep <= 1 * MS);
			nic_wait_rest(&wait);
		}
	}
	CHECK(counter(p.a.nic, "qnix_requests_again") >= 10);
	CHECK(counter(p.a.nic, "sleeps") >= 10);
	CHECK(counter(p.a.nic, "sleeps") < 200); /* and not once in thousands */
	pair_poll(&p);
	CHECK_EQ(status_of(&p.b.desc[0]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	REQUIRE(CHECK(asleep_soon(&p.a, &wait)));
	CHECK_EQ(wait.sleep, FOR_LONG); /* nothing asked any more */
	nic_wait_rest(&(struct nic_wait){ .rest = NIC_REST_SLEEP, .nic = p.a.nic, .sleep = 1 });
	pair_close(&p);
}

/* ---- a NIC that is elsewhere -------------------------------------------------------------------------------------- */

static bool ended(struct end *e, uint32_t op, uint32_t *value)
{
	double until = kin_now() + KIN_SECONDS;
	int err;

	while ((err = nic_op_test(e->nic, op, value)) == NIC_NOT_DONE && kin_now() < until)
		nic_poll(e->nic);
	return CHECK_EQ(err, NIC_OK);
}

/* The second of two starts what the first one has started, and sleeps for. */
static void wakes(struct end *e, int (*start)(struct end *e, uint32_t *op))
{
	struct nic_wait wait = { 0 };
	double from = kin_now();
	uint32_t op[2];
	pthread_t thread;

	CHECK_EQ(start(&e[0], &op[0]), NIC_OK);
	REQUIRE(CHECK(asleep_soon(&e[0], &wait)));
	pthread_create(&thread, NULL, rest, &wait);
	usleep(20000);
	CHECK_EQ(start(&e[1], &op[1]), NIC_OK);
	pthread_join(thread, NULL);
	CHECK(kin_now() - from < SOON);
	ended(&e[1], op[1], NULL);
	CHECK_EQ(nic_op_test(e[0].nic, op[0], NULL), NIC_OK); /* nothing else has ended the sleep */
}

static uint32_t member[2], root;

static int start_barrier(struct end *e, uint32_t *op)
{
	return nic_barrier(e->nic, member[slot_of(e) != root], op);
}

static int start_bcast(struct end *e, uint32_t *op)
{
	return nic_bcast(e->nic, member[slot_of(e) != root], root, e->mem, 1000, op);
}

static void the_daemon_wakes(void)
{
	struct nic_wait wait = { 0 };
	uint32_t slot[2], op[2];
	struct end e[2];

	nic_param_set("engine", "daemon", "test");
	for (int i = 0; i < 2; i++) {
		end_open(&e[i], kin_device("sleep-daemon"));
		slot[i] = slot_of(&e[i]);
	}
	for (uint32_t i = 0; i < 2; i++)
		CHECK_EQ(nic_group_join(e[i].nic, &(struct nic_group_args){ .name = 3, .size = 2, .place = i, .slot = slot }, &op[i]), NIC_OK);
	REQUIRE(ended(&e[0], op[0], &member[0]) && ended(&e[1], op[1], &member[1]));
	root = slot[0];
	wakes(e, start_barrier);
	wakes((struct end[]){ e[1], e[0] }, start_bcast);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(start_barrier(&e[i], &op[i]), NIC_OK);
	ended(&e[1], op[1], NULL);
	for (double until = kin_now() + KIN_SECONDS; !nic_group_rung(e[0].nic) && kin_now() < until;)
		usleep(100);
	CHECK(!nic_wait_doze(e[0].nic, &wait, 1)); /* not over what nobody has asked about */
	CHECK_EQ(wait.rest, NIC_REST_YIELD);
	ended(&e[0], op[0], NULL);
	CHECK(nic_wait_doze(e[0].nic, &wait, 1));
	nic_wait_rest(&wait);
	for (int i = 0; i < 2; i++)
		end_close(&e[i]);
	nic_param_set("engine", "inline", "test");
}

static void on_each_arch(void)
{
	static const char *const archs[] = { "direct", "qnix" };
	char given[32];

	snprintf(given, sizeof(given), "%s", nic_param_str("arch"));
	for (int i = 0; i < 2; i++) {
		printf("# arch %s\n", archs[i]);
		nic_param_set("arch", archs[i], "test");
		CASE(a_barrier_wakes);
		CASE(a_broadcast_under_way);
		CASE(a_new_link_wakes);
		CASE(the_daemon_wakes);
	}
	CASE(asks_again_in_its_sleep);
	nic_param_set("arch", given, "test");
}

/* ---- death ------------------------------------------------------------------------------------------------------- */

static int sleeps_for_long(void)
{
	struct nic_wait wait = { 0 };
	struct end e;

	end_open(&e, kin_device("sleep-death"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "child", "parent") != NIC_OK)
		return 1;
	while (!nic_wait_doze(e.nic, &wait, 60000 * MS))
		nic_poll(e.nic);
	atomic_store(&kin_step[0], 1);
	nic_wait_rest(&wait);
	return 0;
}

static void a_sleeper_is_killed(void)
{
	struct end e;
	pid_t child;

	kin_clear();
	child = kin_fork(sleeps_for_long);
	end_open(&e, kin_device("sleep-death"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_connect(&e, "parent", "child"), NIC_OK);
	CHECK(kin_await(e.nic, 0, 1));
	kin_kill(child);
	for (int i = 0; i < 10; i++)
		send_desc(&e, fill(&e, i, 0, e.mem, 8)); /* rings for nobody, once */
	CHECK_EQ(counter(e.nic, "bells"), 1);
	CHECK(kin_lost(&e, KIN_SECONDS));
	CHECK(e.events[NIC_EV_CONN_LOST] == 1);
	end_close(&e);
}

static int is_there(void)
{
	struct end e;

	end_open(&e, kin_device("sleep-peer"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "child", "parent") != NIC_OK)
		return 1;
	kin_await(e.nic, 1, 1); /* until it is killed */
	return 0;
}

/* A wait that sleeps ten milliseconds at a time learns that its peer is gone. */
static void a_sleeper_loses_its_peer(void)
{
	struct nic_wait wait = { 0 };
	double until;
	struct end e;
	pid_t child;

	kin_clear();
	child = kin_fork(is_there);
	end_open(&e, kin_device("sleep-peer"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_connect(&e, "parent", "child"), NIC_OK);
	kin_kill(child);
	until = kin_now() + KIN_SECONDS;
	for (int i = 0; kin_state(&e) == NIC_VI_CONNECTED && kin_now() < until; i++) {
		nic_poll(e.nic);
		if (nic_wait_doze(e.nic, &wait, 10 * MS))
			nic_wait_rest(&wait);
	}
	CHECK(kin_state(&e) == NIC_VI_ERROR);
	end_close(&e);
}

/* ---- no membarrier ----------------------------------------------------------------------------------------------- */

static int refuse_membarrier(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = sizeof(steps) / sizeof(*steps), .filter = steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int answers_without(void)
{
	struct nic_wait wait = { 0 };
	struct end e;

	if (refuse_membarrier())
		return 77;
	end_open(&e, kin_device("sleep-refused"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	for (int i = 0; i < 200; i++)
		recv_desc(&e, fill(&e, i, 0, e.mem, 64));
	if (kin_connect(&e, "child", "parent") != NIC_OK)
		return 1;
	atomic_store(&kin_step[0], 1);
	for (int i = 0; i < 200; i++) {
		while (!(status_of(&e.desc[i]) & NIC_ST_DONE)) {
			double from = kin_now();

			nic_poll(e.nic);
			if (nic_wait_doze(e.nic, &wait, FOR_LONG)) {
				nic_wait_rest(&wait);
				if (kin_now() - from > SOON) /* it sleeps half a millisecond, on a machine with time for us */
					return 2;
			}
		}
		if (status_of(&e.desc[i]) & NIC_ST_ERROR_MASK)
			return 3;
		send_desc(&e, fill(&e, 500 + i, 0, e.mem, 8));
	}
	kin_await(e.nic, 1, 1);
	return 0;
}

/* Neither side sleeps longer than half a millisecond, although only one of them is refused the barrier. */
static void without_membarrier(void)
{
	struct nic_wait wait = { 0 };
	double from;
	struct end e;
	pid_t child;
	int status;

	kin_clear();
	child = kin_fork(answers_without);
	end_open(&e, kin_device("sleep-refused"));
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	for (int i = 0; i < 200; i++)
		recv_desc(&e, fill(&e, i, 0, e.mem, 64));
	if (kin_connect(&e, "parent", "child") == NIC_OK && kin_await(e.nic, 0, 1)) {
		REQUIRE(CHECK(asleep_soon(&e, &wait)));
		from = kin_now();
		nic_wait_rest(&wait);
		CHECK(kin_now() - from < SOON);
		for (int i = 0; i < 200; i++) {
			usleep(i % 5 ? 0 : 1000);
			send_desc(&e, fill(&e, 500 + i, 0, e.mem, 8));
			while (!(status_of(&e.desc[i]) & NIC_ST_DONE)) {
				nic_poll(e.nic);
				if (nic_wait_doze(e.nic, &wait, FOR_LONG))
					nic_wait_rest(&wait);
			}
		}
	}
	atomic_store(&kin_step[1], 1);
	status = kin_wait(child);
	end_close(&e);
	if (status == 77)
		SKIP("this kernel takes no seccomp filter");
	CHECK_EQ(status, 0);
}

int main(void)
{
	kin_start();
	CASE(two_sleepers_one_ring);
	CASE(no_sleep_with_work_to_do);
	CASE(closing_ends_a_sleep);
	CASE(requests_wake);
	on_each_arch();
	CASE(a_sleeper_is_killed);
	CASE(a_sleeper_loses_its_peer);
	CASE(without_membarrier);
	return check_done();
}
