/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that runs beside its host (engines thread and daemon): barriers and broadcasts of three slots are over although nobody polls; with
 * engine inline they are not, which shows that the test would notice.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/engine/cores.h"
#include "nicemu/nic.h"
#include "qnix.h"
#include "qx/src/qx.h"
#include "tests/check.h"
#include "tests/unit/nicemu/found.h"

enum { MEMBERS = 3, BYTES = 700000, PATIENCE_MS = 60000, COMMANDS = 2000, QUICK = 500 };

struct member {
	struct nic *nic;
	_Atomic uint32_t lock;
	uint32_t slot, group, op;
	uint8_t *data;
};

static struct member m[MEMBERS];
static char device[40];

/* ---- the lock of a handle ---- */

static bool enter(void *arg)
{
	struct member *who = arg;

	return !atomic_exchange_explicit(&who->lock, 1, memory_order_acquire); /* pairs with leave */
}

static void leave(void *arg, bool report)
{
	struct member *who = arg;

	(void)report;
	atomic_store_explicit(&who->lock, 0, memory_order_release); /* pairs with enter */
}

static struct nic *locked(struct member *who)
{
	while (!enter(who))
		usleep(10);
	return who->nic;
}

/* ---- the members ---- */

static void open_all(const char *arch, const char *engine)
{
	struct nic_attr attr;

	nic_param_set("arch", arch, "test");
	nic_param_set("engine", engine, "test");
	for (int i = 0; i < MEMBERS; i++) {
		struct nic_open_args args = { .device = device, .enter = enter, .leave = leave, .enter_arg = &m[i] };

		memset(&m[i], 0, sizeof(m[i]));
		m[i].data = calloc(1, BYTES);
		REQUIRE(nic_open(&args, &m[i].nic) == NIC_OK);
		nic_query(locked(&m[i]), &attr);
		leave(&m[i], false);
		m[i].slot = attr.slot;
		CHECK_EQ(attr.beside, strcmp(engine, "thread") == 0);
		CHECK(!strcmp(attr.engine, engine));
	}
}

static void close_all(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		nic_close(m[i].nic);
		free(m[i].data);
	}
}

static int tested(struct member *who, uint32_t *value)
{
	int err = nic_op_test(locked(who), who->op, value);

	leave(who, false);
	return err;
}

/* Waits without a poll; tells how many are over. */
static int over(int patience_ms, uint32_t *value)
{
	bool is_over[MEMBERS] = { false };
	int n = 0;

	for (int ms = 0; ms < patience_ms && n < MEMBERS; ms++) {
		usleep(1000);
		for (int i = 0; i < MEMBERS; i++) {
			int err = is_over[i] ? NIC_NOT_DONE : tested(&m[i], value ? &value[i] : NULL);

			if (err == NIC_NOT_DONE)
				continue;
			CHECK_EQ(err, NIC_OK);
			is_over[i] = true;
			n++;
		}
	}
	return n;
}

static void join_all(void)
{
	uint32_t slots[MEMBERS], value[MEMBERS] = { 0 };

	for (int i = 0; i < MEMBERS; i++)
		slots[i] = m[i].slot;
	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct nic_group_args args = { .name = 7, .size = MEMBERS, .place = i, .slot = slots };

		CHECK_EQ(nic_group_join(locked(&m[i]), &args, &m[i].op), NIC_OK);
		leave(&m[i], false);
	}
	CHECK_EQ(over(PATIENCE_MS, value), MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		m[i].group = value[i];
}

static void barriers(int times)
{
	for (int k = 0; k < times; k++) {
		for (int i = 0; i < MEMBERS; i++) {
			if (i == MEMBERS - 1) {
				usleep(2000); /* the last one has not come: nobody is through */
				CHECK_EQ(tested(&m[0], NULL), NIC_NOT_DONE);
			}
			CHECK_EQ(nic_barrier(locked(&m[i]), m[i].group, &m[i].op), NIC_OK);
			leave(&m[i], false);
		}
		CHECK_EQ(over(PATIENCE_MS, NULL), MEMBERS);
	}
}

static void broadcasts(int times)
{
	for (int k = 0; k < times; k++) {
		int root = k % MEMBERS;

		for (int i = 0; i < MEMBERS; i++) {
			memset(m[i].data, i == root ? 0x40 + k : 0, BYTES);
			CHECK_EQ(nic_bcast(locked(&m[i]), m[i].group, m[root].slot, m[i].data, BYTES, &m[i].op), NIC_OK);
			leave(&m[i], false);
		}
		CHECK_EQ(over(PATIENCE_MS, NULL), MEMBERS);
		for (int i = 0; i < MEMBERS; i++)
			for (size_t at = 0; at < BYTES; at++)
				if (m[i].data[at] != 0x40 + k) {
					CHECK_EQ(m[i].data[at], 0x40 + k);
					break;
				}
	}
}

static void nobody_polls(const char *arch, const char *engine)
{
	open_all(arch, engine);
	join_all();
	barriers(5);
	broadcasts(6);
	close_all();
}

static void direct_goes_on(void)
{
	nobody_polls("direct", "thread");
}

static void qnix_goes_on(void)
{
	nobody_polls("qnix", "thread");
}

static void direct_daemon_goes_on(void)
{
	nobody_polls("direct", "daemon");
}

static void qnix_daemon_goes_on(void)
{
	nobody_polls("qnix", "daemon");
}

/* ---- the daemon -------------------------------------------------------------------------------------------------- */

/* The daemon goes soon after the last of its slots, not with it. */
static void all_gone(void)
{
	for (int ms = 0; ms < PATIENCE_MS && found_of(device).cards; ms++)
		usleep(1000);
	CHECK_EQ(found_of(device).cards, 0);
}

/* One for all; gone after the last, and with it the card. */
static void one_daemon(void)
{
	struct nic *inline_nic = NULL;
	int first;

	open_all("direct", "daemon");
	first = found_of(device).daemon;
	CHECK(first > 0 && first != getpid());
	CHECK_EQ(getsid(first), getsid(0)); /* of another session it may get no processor for as long as this one computes */
	CHECK_EQ(getpgid(first), first);    /* and yet no part of the job */
	nic_param_set("engine", "inline", "test");
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &inline_nic), NIC_PARAMETER);
	CHECK(strstr(nic_last_error(), "daemon") != NULL);
	close_all();
	all_gone();
	open_all("direct", "daemon");
	CHECK(found_of(device).daemon != first);
	close_all();
	all_gone(); /* it would serve the next case, too */
}

/* One after the other opens a NIC and broadcasts, alone in its group: the NIC needs a buffer. */
static int opens_and_broadcasts(int times)
{
	struct nic_group_args args = { .name = 7, .size = 1 };
	uint8_t data[100] = { 0 };
	struct nic_attr attr;
	uint32_t op, group;

	for (int i = 0; i < times; i++) {
		struct nic *nic;
		int err = nic_open(&(struct nic_open_args){ .device = device }, &nic);

		if (err)
			return 1;
		nic_query(nic, &attr);
		args.slot = &attr.slot;
		err = nic_group_join(nic, &args, &op);
		while (!err && (err = nic_op_test(nic, op, &group)) == NIC_NOT_DONE)
			err = nic_poll(nic) < 0;
		err = err ? err : nic_bcast(nic, group, attr.slot, data, sizeof(data), &op);
		while (!err && (err = nic_op_test(nic, op, NULL)) == NIC_NOT_DONE)
			err = nic_poll(nic) < 0;
		nic_close(nic);
		if (err)
			return 2;
	}
	return 0;
}

/* A daemon that is awake takes a slot the moment it is live; everything it needs to know is there by then.  And nobody complains. */
static void taken_at_once(void)
{
	FILE *complaints = tmpfile();
	pid_t child[MEMBERS];
	int status;

	REQUIRE(complaints != NULL);
	nic_param_set("engine", "daemon", "test");
	for (int i = 0; i < MEMBERS; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			alarm(300);
			dup2(fileno(complaints), 2);
			_exit(opens_and_broadcasts(150));
		}
	}
	for (int i = 0; i < MEMBERS; i++) {
		REQUIRE(waitpid(child[i], &status, 0) == child[i]);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(lseek(fileno(complaints), 0, SEEK_END), 0);
	fclose(complaints);
	all_gone();
}

static void meet(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		CHECK_EQ(nic_barrier(locked(&m[i]), m[i].group, &m[i].op), NIC_OK);
		leave(&m[i], false);
	}
	for (int i = 0; i < MEMBERS; i++)
		while (tested(&m[i], NULL) == NIC_NOT_DONE)
			sched_yield();
}

/* Nanoseconds; 0: this kernel does not say, or the process has another policy. */
static uint64_t slice_of(int pid)
{
	struct { /* as the kernel has it */
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { 0 };

	return syscall(SYS_sched_getattr, pid, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER ? 0 : attr.runtime;
}

/* Has it the short ones, or has it others, before long?  It is left alone meanwhile, or kept busy. */
static bool slice_comes(int pid, bool is_short)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if ((slice_of(pid) == 100000) == is_short)
			return true;
		if (is_short)
			usleep(1000);
		else
			for (int k = 0; k < 100; k++)
				meet();
	}
	return false;
}

/* A daemon that sleeps is to come ahead of others when it is woken; one that is awake is to yield to them. */
static void slices(void)
{
	int pid;

	if (!slice_of(getpid()))
		SKIP("this kernel has no slices that a process may ask for");
	open_all("direct", "daemon");
	join_all();
	pid = found_of(device).daemon;
	CHECK(slice_comes(pid, true));
	CHECK(slice_comes(pid, false));
	CHECK(slice_comes(pid, true));
	close_all();
	all_gone();
}

/* Page faults of a process that needed no file; -1: not known. */
static long faults(int pid)
{
	char path[32];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static bool pages_ahead(void)
{
#ifdef MADV_POPULATE_WRITE
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool ahead = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;

	munmap(page, 4096);
	return ahead;
#else
	return false;
#endif
}

/* Commands go round in a queue of many pages, which are there from the first lap on, for both who write and who read them. */
static void no_pages_on_the_way(void)
{
	int pid[2] = { getpid(), 0 };
	long before[2] = { 0, 0 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer has pages of its own for those of others");
#endif
	if (!pages_ahead())
		SKIP("this system does not make pages ahead");
	open_all("direct", "daemon");
	join_all();
	pid[1] = found_of(device).daemon;
	for (int k = 0; k < 900; k++) { /* 14 pages of commands of each of three */
		for (int i = 0; i < 2 && k == 20; i++)
			before[i] = faults(pid[i]);
		meet();
	}
	for (int i = 0; i < 2; i++) {
		CHECK(before[i] > 0);
		CHECK(faults(pid[i]) - before[i] < 14);
	}
	close_all();
	all_gone();
}

/* ---- the QNIX user library ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Commands are put where the NIC finds them, without a call: but it must be woken, or each waits for the end of a sleep of 50 ms.  On a
 * busy machine some wait as long for a processor, and none of those counts.
 */
static void commands_wake_it(void)
{
	const int name[2] = { 4000, 1 };
	struct qx *q;
	int begun, quick = 0, op[80];

	nic_param_set("engine", "daemon", "test");
	nic_param_set("arch", "qnix", "test");
	nic_param_set("device", device, "test");
	q = qx_begin(name, 4000, 1);
	REQUIRE(q != NULL);
	while ((begun = qx_begun(q)) == 0)
		;
	CHECK_EQ(begun, 1);
	qx_select(q);
	for (int i = 0; i < COMMANDS && quick < COMMANDS / 2; i++) {
		double from;

		usleep(300); /* it has gone to sleep */
		from = seconds();
		op[0] = qx_barrier(4000);
		CHECK(op[0] >= 0);
		CHECK_EQ(qx_wait(op[0], NULL), 1);
		quick += seconds() - from < 0.005;
	}
	printf("# %d quick answers\n", quick);
	CHECK(quick >= QUICK);
	for (int i = 0; i < 80; i++) { /* more than are looked at at once */
		op[i] = qx_send((int *)(uintptr_t)name, 1, "yes", 3);
		CHECK(op[i] >= 0);
	}
	kill(found_of(device).daemon, SIGKILL);
	CHECK_EQ(qx_wait(qx_receive((int *)(uintptr_t)name, 2, (char *)op, sizeof(op)), NULL), QX_FAILED); /* nobody sends that */
	qx_select(NULL);
	qx_end(q);
	all_gone();
}

/* ---- where it runs ---- */

static int run_daemon_of(struct nic_cores_set *out)
{
	struct nic *nic = NULL;
	int err = nic_open(&(struct nic_open_args){ .device = device }, &nic);

	if (err)
		return err;
	CHECK(nic_cores_of(found_of(device).daemon, out));
	nic_close(nic);
	all_gone();
	return NIC_OK;
}

static struct nic_cores_set only(uint32_t cpu)
{
	struct nic_cores_set set = { { 0 } };

	set.word[cpu / 64] = (uint64_t)1 << (cpu % 64);
	return set;
}

/* A bound process has its core; the daemon has what this one, which started it, has. */
static int is_bound(uint32_t cpu)
{
	struct nic_cores_set mine = only(cpu), launchers, got, after;

	alarm(300);
	if (!nic_cores_use(&mine) || !nic_cores_of(getppid(), &launchers) || run_daemon_of(&got) || !nic_cores_of(0, &after))
		return 1;
	return memcmp(&got, &launchers, sizeof(got)) ? 2 : memcmp(&after, &mine, sizeof(after)) ? 3 : 0;
}

static void on_processors(void)
{
	static const char *const bad[] = { "x", "1-", "-1", "5-2", "0,", ",0", "0;1", "99999999", "8191" };
	struct nic_cores_set all, got, want;
	uint32_t cpu = 0;
	char word[16];
	int status;
	pid_t child;

	nic_param_set("engine", "daemon", "test");
	REQUIRE(nic_cores_of(0, &all));
	while (cpu < NIC_CORES_MOST - 1 && !(all.word[cpu / 64] >> cpu % 64 & 1))
		cpu++;
	child = fork();
	if (child == 0)
		_exit(is_bound(cpu));
	REQUIRE(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
	snprintf(word, sizeof(word), "%u", cpu);
	nic_param_set("daemon_cpus", word, "test");
	CHECK_EQ(run_daemon_of(&got), NIC_OK);
	want = only(cpu);
	CHECK(!memcmp(&got, &want, sizeof(got)));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		nic_param_set("daemon_cpus", bad[i], "test");
		CHECK_EQ(run_daemon_of(&got), NIC_PARAMETER);
		CHECK(strstr(nic_last_error(), "daemon_cpus") != NULL);
	}
	nic_param_set("daemon_cpus", "", "test");
	CHECK(nic_cores_of(0, &got) && !memcmp(&got, &all, sizeof(got)));
}

/* A command that is not there, or that does no good: a sentence, and no slot is left. */
static void no_program(void)
{
	struct nic *nic = NULL;

	nic_param_set("engine", "daemon", "test");
	nic_param_set("daemon", "/nowhere/qnix", "test");
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &nic), NIC_SYSTEM);
	CHECK(strstr(nic_last_error(), "/nowhere/qnix") != NULL);
	nic_param_set("daemon", "/bin/true", "test");
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &nic), NIC_SYSTEM);
	nic_param_set("daemon", "/bin/false", "test");
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &nic), NIC_SYSTEM);
	nic_param_set("daemon", "", "test");
	CHECK_EQ(found_of(device).cards, 0);
}

/* The same with engine inline: not even the join is over. */
static void inline_does_not(void)
{
	uint32_t slots[MEMBERS];

	open_all("direct", "inline");
	for (int i = 0; i < MEMBERS; i++)
		slots[i] = m[i].slot;
	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct nic_group_args args = { .name = 7, .size = MEMBERS, .place = i, .slot = slots };

		CHECK_EQ(nic_group_join(m[i].nic, &args, &m[i].op), NIC_OK);
	}
	usleep(50000);
	CHECK_EQ(nic_op_test(m[0].nic, m[0].op, NULL), NIC_NOT_DONE);
	close_all();
}

static void needs_a_lock(void)
{
	struct nic *nic = NULL;

	nic_param_set("engine", "thread", "test");
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &nic), NIC_PARAMETER);
	CHECK(strstr(nic_last_error(), "lock") != NULL);
	CHECK(nic == NULL);
}

/* stop before close, twice, and at once after open. */
static void stops(void)
{
	for (int i = 0; i < 50; i++) {
		open_all("direct", "thread");
		if (i % 2)
			usleep(i * 20);
		for (int k = 0; k < i % 3; k++)
			nic_stop(m[0].nic);
		close_all();
	}
}

int main(void)
{
	alarm(1000);
	snprintf(device, sizeof(device), "beside-%d", (int)getpid());
	CASE(direct_goes_on);
	CASE(qnix_goes_on);
	CASE(direct_daemon_goes_on);
	CASE(qnix_daemon_goes_on);
	CASE(one_daemon);
	CASE(taken_at_once);
	CASE(slices);
	CASE(no_pages_on_the_way);
	CASE(commands_wake_it);
	CASE(on_processors);
	CASE(no_program);
	CASE(inline_does_not);
	CASE(needs_a_lock);
	CASE(stops);
	return check_done();
}
