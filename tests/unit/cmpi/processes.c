/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C-MPI over the real NIC, in processes of their own: connections lazily and all at start, verified traffic, threads, an
 * orderly end, a killed peer.  Everything that can be decided in one process is tested over the test VIPL instead.
 *
 * A case forks its members, which exchange addresses over pipes, use CHECK, and report by exit status.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmpi/cmpi.h"
#include "tests/check.h"

enum { MEMBERS = 4, MEMORY = 1 << 20, SECONDS = 240 };

static struct member {
	uint32_t me, n;
	struct cmpi *c;
	struct cmpi_proc *to[MEMBERS];
	struct cmpi_key key[MEMBERS];
	struct cmpi_reg *reg;
	uint32_t got[MEMBERS], wrong;
	_Atomic uint32_t per_tag[CMPI_TAGS];
	uint32_t errors;
	int error_pid;
	char error_text[200];
} m;
static uint8_t *memory, *all_memory; /* this member's; everybody's, which all of them see */
static char device[40];
static int pipes[MEMBERS][2];

/* ---- contents ------------------------------------------------------------------------------------------------------------------ */

static uint32_t length(uint32_t from, uint32_t number)
{
	static const uint32_t most[] = {16, 33, 41, 200, 8200};

	return 4 + ((from * 7919u + number * 2654435761u) >> 8) % most[number % 5];
}

static void fill(uint8_t *to, uint32_t salt, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (uint8_t)(salt * 37 + i * 5 + (i >> 8));
}

static bool good(const uint8_t *at, uint32_t salt, uint32_t from, uint32_t len)
{
	for (uint32_t i = from; i < len; i++)
		if (at[i] != (uint8_t)(salt * 37 + i * 5 + (i >> 8)))
			return false;
	return true;
}

/* Tag 1: numbered and verified; other tags: counted, each in order. */
static void on_am(void *arg, struct cmpi_proc *proc, unsigned tag, void *data, size_t len)
{
	uint32_t from = cmpi_proc_rank(proc), number;

	(void)arg;
	memcpy(&number, data, 4);
	if (tag == 1) {
		m.wrong += number != m.got[from] || len != length(from, number) || !good(data, from + number, 4, (uint32_t)len);
		m.got[from]++;
	} else {
		m.wrong += number != atomic_fetch_add(&m.per_tag[tag], 1);
	}
}

static void on_error(void *arg, struct cmpi_proc *proc, int err, const char *text)
{
	(void)arg, (void)err;
	m.errors++;
	m.error_pid = proc ? cmpi_proc_pid(proc) : -1;
	snprintf(m.error_text, sizeof(m.error_text), "%s", text);
}

static bool send_numbered(uint32_t to, uint32_t number)
{
	uint32_t len = length(m.me, number);
	uint8_t buf[8300];
	int err;

	fill(buf, m.me + number, len);
	memcpy(buf, &number, 4);
	while ((err = cmpi_am_send(m.to[to], 1, buf, 4, buf + 4, len - 4)) == CMPI_AGAIN)
		if (!cmpi_progress(m.c))
			sched_yield();
	return err == CMPI_OK;
}

/* ---- processes ------------------------------------------------------------------------------------------------------------------- */

static time_t began;

static bool late(void)
{
	return time(NULL) - began > SECONDS;
}

static bool progress_while(bool (*busy)(void))
{
	while (busy() && !late())
		if (!cmpi_progress(m.c))
			sched_yield();
	return !late();
}

static uint32_t wanted;

static bool missing(void)
{
	for (uint32_t i = 0; i < m.n; i++)
		if (i != m.me && m.got[i] < wanted)
			return true;
	return false;
}

struct card {
	uint8_t blob[CMPI_ADDR_MAX];
	struct cmpi_key key;
};

/* Each member tells all others, over their pipes. */
static bool meet(void)
{
	struct card card, all[MEMBERS];
	size_t len;

	cmpi_address(m.c, card.blob, &len);
	card.key = m.reg->key;
	for (uint32_t i = 0; i < m.n; i++) {
		uint8_t line[sizeof(uint32_t) + sizeof(card)];

		memcpy(line, &m.me, sizeof(uint32_t));
		memcpy(line + sizeof(uint32_t), &card, sizeof(card));
		if (write(pipes[i][1], line, sizeof(line)) != sizeof(line))
			return false;
	}
	for (uint32_t i = 0; i < m.n; i++) {
		uint8_t line[sizeof(uint32_t) + sizeof(card)];
		uint32_t from;

		if (read(pipes[m.me][0], line, sizeof(line)) != sizeof(line))
			return false;
		memcpy(&from, line, sizeof(from));
		memcpy(&all[from], line + sizeof(from), sizeof(card));
	}
	for (uint32_t i = 0; i < m.n; i++) {
		m.key[i] = all[i].key;
		if (cmpi_proc_get(m.c, all[i].blob, len, &m, &m.to[i]) != CMPI_OK)
			return false;
	}
	return true;
}

static void member(uint32_t me, uint32_t n, bool threads, void (*body)(void))
{
	struct cmpi_params params = {.device = device, .job = 5, .rank = me, .nranks = n, .threads = threads, .am = on_am,
	                             .error = on_error};

	memset(&check_now, 0, sizeof(check_now));
	memset(&m, 0, sizeof(m));
	m.me = me;
	m.n = n;
	memory = all_memory + me * MEMORY;
	began = time(NULL);
	if (CHECK_EQ(cmpi_open(&params, &m.c), CMPI_OK) &&
	    CHECK_EQ(cmpi_mem_register(m.c, memory, MEMORY, 7, &m.reg), CMPI_OK) && CHECK(meet())) {
		body();
		CHECK(!late());
		cmpi_mem_deregister(m.c, m.reg);
		CHECK_EQ(cmpi_close(m.c), CMPI_OK);
	} else {
		printf("# %s\n", cmpi_last_error());
	}
	fflush(stdout);
	_exit(check_now.failed != 0);
}

static pid_t pid[MEMBERS];

static void run(uint32_t n, bool threads, void (*body)(void))
{
	static int round;

	snprintf(device, sizeof(device), "test-%d-%d", (int)getpid(), round++);
	memset(all_memory, 0, MEMBERS * MEMORY);
	fflush(stdout);
	for (uint32_t i = 0; i < n; i++)
		if (!CHECK_EQ(pipe(pipes[i]), 0))
			return;
	for (uint32_t i = 0; i < n; i++) {
		pid[i] = fork();
		if (!pid[i])
			member(i, n, threads, body);
	}
	for (uint32_t i = 0; i < n; i++) {
		int status = -1;

		CHECK(waitpid(-1, &status, 0) > 0); /* in whatever order they end: of the dead nothing is left */
		CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

/* ---- traffic between all ---------------------------------------------------------------------------------------------------------- */

static void everybody_to_everybody(void)
{
	wanted = 2000;
	for (uint32_t number = 0; number < wanted; number++)
		for (uint32_t i = 1; i < m.n; i++)
			if (!CHECK(send_numbered((m.me + i) % m.n, number)))
				return;
	CHECK(progress_while(missing));
	CHECK_EQ(m.wrong, 0);
	CHECK_EQ(m.errors, 0);
}

static void lazily(void)
{
	run(4, false, everybody_to_everybody);
}

static void connect_first(void)
{
	const uint64_t *cell;
	const char *name, *help;
	uint64_t made = 0;

	CHECK_EQ(cmpi_connect_all(m.c, m.to, m.n), CMPI_OK);
	for (uint32_t i = 0; (cell = cmpi_counter_at(m.c, i, &name, &help)) != NULL; i++)
		if (!strcmp(name, "cmpi_connections"))
			made = *cell;
	CHECK_EQ(made, m.n - 1);
	everybody_to_everybody();
}

static void all_at_start(void)
{
	run(4, false, connect_first);
}

/* ---- remote memory ------------------------------------------------------------------------------------------------------------------- */

static uint32_t open_ops, failed_ops;

static void done(void *arg, int err)
{
	(void)arg;
	open_ops--;
	failed_ops += err != CMPI_OK;
}

static bool ops_open(void)
{
	return open_ops != 0;
}

static bool move(uint32_t to, bool put, uint8_t *local, uint32_t at, uint32_t len)
{
	int err;

	open_ops++;
	do {
		uint64_t remote = m.key[to].base + at;

		err = put ? cmpi_put(m.to[to], local, NULL, remote, &m.key[to], len, done, NULL)
		          : cmpi_get(m.to[to], local, NULL, remote, &m.key[to], len, done, NULL);
		if (err == CMPI_AGAIN)
			cmpi_progress(m.c);
	} while (err == CMPI_AGAIN);
	return err == CMPI_OK && progress_while(ops_open);
}

static void remote_memory(void)
{
	static const uint32_t len[] = {1, 8, 4096, 8320, 70000, MEMORY / 4 - 64};
	static uint8_t local[MEMORY / 4], back[MEMORY / 4];
	uint32_t to = (m.me + 1) % m.n, mine = m.me * (MEMORY / 4) + 64; /* a part of the target's memory is this member's */
	uint64_t old, sum = 0;

	for (uint32_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		fill(local, i, len[i]);
		memset(back, 0, len[i]);
		REQUIRE(CHECK(move(to, true, local, mine, len[i])));
		CHECK(good(all_memory + to * MEMORY + mine, i, 0, len[i])); /* done means that it is there */
		REQUIRE(CHECK(move(to, false, back, mine, len[i])));
		CHECK(good(back, i, 0, len[i]));
	}
	for (int i = 0; i < 500; i++) { /* everybody, its owner included, adds to member 0's first word */
		open_ops++;
		while (cmpi_atomic(m.to[0], CMPI_ATOMIC_ADD, 8, m.key[0].base, &m.key[0], 1, 0, &old, done, NULL) == CMPI_AGAIN)
			cmpi_progress(m.c);
		progress_while(ops_open);
	}
	CHECK_EQ(failed_ops, 0);
	wanted = 1;
	for (uint32_t i = 1; i < m.n; i++)
		CHECK(send_numbered((m.me + i) % m.n, 0));
	CHECK(progress_while(missing));
	memcpy(&sum, memory, sizeof(sum));
	CHECK(m.me || sum == 500ull * m.n);
	CHECK_EQ(m.errors, 0);
}

static void puts_gets_atomics(void)
{
	run(3, false, remote_memory);
}

/* The same where one process may not reach into another: data goes through the card. */
static void through_the_card(void)
{
	CHECK_EQ(cmpi_param_set("cma", "off", "test"), CMPI_OK);
	run(3, false, remote_memory);
	CHECK_EQ(cmpi_param_set("cma", "auto", "test"), CMPI_OK);
}

/* ---- threads --------------------------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, EACH = 20000 };

static void *sender(void *arg)
{
	unsigned tag = 2 + (unsigned)(uintptr_t)arg;
	uint8_t buf[100] = {0};

	for (uint32_t number = 0; number < EACH; number++) {
		memcpy(buf, &number, 4);
		while (cmpi_am_send(m.to[!m.me], tag, buf, 4, buf, number % 64) == CMPI_AGAIN)
			if (!cmpi_progress(m.c))
				sched_yield();
	}
	while (atomic_load(&m.per_tag[tag]) < EACH && !late())
		if (!cmpi_progress(m.c))
			sched_yield();
	return NULL;
}

static void several_threads(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, sender, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(atomic_load(&m.per_tag[2 + i]), EACH);
	CHECK_EQ(m.wrong, 0);
	CHECK_EQ(m.errors, 0);
}

static void threads(void)
{
	run(2, true, several_threads);
}

/* ---- the same for matched messages: each thread has a tag, and a window of both directions under way ------------------------------------ */

enum { MATCHED = 2000, WINDOW = 8 };

static struct cmpi_comm world = {.context = 3};

static void start(struct cmpi_req *req, uint8_t *buf, int32_t tag, uint32_t number, bool sends)
{
	uint32_t len = length(0, number);

	*req = (struct cmpi_req){.comm = &world, .to = m.to[!m.me], .buf = buf, .size = len, .source = !m.me, .tag = tag};
	if (sends)
		fill(buf, number, len);
	if ((sends ? cmpi_isend(m.c, req) : cmpi_irecv(m.c, req)) != CMPI_OK)
		__atomic_fetch_add(&m.wrong, 1, __ATOMIC_RELAXED); /* read when the threads are joined */
}

static void end(struct cmpi_req *req, const uint8_t *buf, uint32_t number, bool sends)
{
	bool right = cmpi_wait(m.c, req) == CMPI_OK && req->status.length == length(0, number);

	if (!right || (!sends && !good(buf, number, 0, length(0, number))))
		__atomic_fetch_add(&m.wrong, 1, __ATOMIC_RELAXED); /* as above */
}

static void *matcher(void *arg)
{
	static _Thread_local uint8_t out[WINDOW][8300], in[WINDOW][8300];
	struct cmpi_req sends[WINDOW], receives[WINDOW];
	int32_t tag = (int32_t)(uintptr_t)arg;

	for (uint32_t number = 0; number < MATCHED && !late(); number += WINDOW) {
		for (uint32_t k = 0; k < WINDOW; k++) {
			start(&receives[k], in[k], tag, number + k, false);
			start(&sends[k], out[k], tag, number + k, true);
		}
		for (uint32_t k = 0; k < WINDOW; k++) {
			end(&sends[k], out[k], number + k, true);
			end(&receives[k], in[k], number + k, false);
		}
	}
	return NULL;
}

static void several_matchers(void)
{
	pthread_t thread[THREADS];

	world.rank = (uint16_t)m.me;
	alarm(2 * SECONDS); /* cmpi_wait has no end of its own */
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, matcher, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	alarm(0);
	CHECK_EQ(m.wrong, 0);
	CHECK_EQ(m.errors, 0);
}

static void matching_threads(void)
{
	run(2, true, several_matchers);
}

/* ---- ends -------------------------------------------------------------------------------------------------------------------------------- */

static bool no_error_yet(void)
{
	return !m.errors;
}

static void lives_or_is_killed(void)
{
	int err = CMPI_OK;

	wanted = 1;
	for (uint32_t i = 1; i < m.n; i++)
		CHECK(send_numbered((m.me + i) % m.n, 0));
	CHECK(progress_while(missing));
	if (m.me == 1)
		kill(getpid(), SIGKILL);
	CHECK(progress_while(no_error_yet));
	CHECK_EQ(m.errors, 1);
	CHECK(m.error_pid == cmpi_proc_pid(m.to[1]));
	CHECK(strstr(m.error_text, "peer rank 1 (pid ") != NULL);
	err = cmpi_am_send(m.to[1], 1, "abcd", 4, NULL, 0);
	CHECK_EQ(err, CMPI_TRANSPORT);
	/* The others go on. */
	wanted = 2;
	m.got[1] = 2;
	CHECK(send_numbered(m.me ? 0 : 2, 1));
	CHECK(progress_while(missing));
	CHECK_EQ(m.errors, 1);
}

/* It is dead, and forgotten by the system, before anybody has tried to connect. */
static void lives_or_is_dead_at_once(void)
{
	if (m.me == 1)
		kill(getpid(), SIGKILL);
	while (kill(cmpi_proc_pid(m.to[1]), 0) == 0 && !late())
		usleep(1000);
	CHECK_EQ(cmpi_am_send(m.to[1], 1, "abcd", 4, NULL, 0), CMPI_AGAIN);
	CHECK(progress_while(no_error_yet));
	CHECK_EQ(m.errors, 1);
	CHECK(m.error_pid == cmpi_proc_pid(m.to[1]));
	CHECK_EQ(cmpi_am_send(m.to[1], 1, "abcd", 4, NULL, 0), CMPI_TRANSPORT);
}

static void a_dead_peer_is_named(void)
{
	run(3, false, lives_or_is_dead_at_once);
}

static void a_killed_peer_is_named(void)
{
	run(3, false, lives_or_is_killed);
}

static void one_leaves_early(void)
{
	time_t start;

	everybody_to_everybody();
	if (m.me == 0)
		return;
	for (start = time(NULL); time(NULL) < start + 2;)
		cmpi_progress(m.c);
	CHECK_EQ(m.errors, 0);
}

static void an_orderly_end_is_silent(void)
{
	run(3, false, one_leaves_early);
}

/* ---- groups ------------------------------------------------------------------------------------------------------------------------ */

static uint32_t under_way, failures;

static void count_down(void *arg, int err)
{
	(void)arg;
	under_way--;
	failures += err != CMPI_OK;
}

/* Of a barrier or broadcast that has begun; true: it may. */
static bool begun(int err)
{
	under_way -= err == CMPI_OVER; /* `done` does not run */
	return err == CMPI_OK || err == CMPI_OVER;
}

static bool any_under_way(void)
{
	return under_way > 0;
}

static struct cmpi_group *join_all(uint32_t name)
{
	struct cmpi_group *group = NULL;

	under_way = 1;
	CHECK_EQ(cmpi_group_join(m.c, name, m.to, m.n, m.me, count_down, NULL, &group), CMPI_OK);
	CHECK(progress_while(any_under_way));
	CHECK_EQ(failures, 0);
	return group;
}

/* What all have written into common memory before a barrier is there after it. */
static void many_barriers(struct cmpi_group *group)
{
	for (uint32_t round = 1; round <= 2000; round++) {
		_Atomic uint32_t *mine = (_Atomic uint32_t *)(void *)memory;

		atomic_store_explicit(mine, round, memory_order_relaxed); /* the barrier orders it */
		under_way = 1;
		CHECK(begun(cmpi_barrier(group, count_down, NULL)));
		CHECK(progress_while(any_under_way));
		for (uint32_t i = 0; i < m.n; i++)
			m.wrong += atomic_load_explicit((_Atomic uint32_t *)(void *)(all_memory + i * MEMORY), memory_order_relaxed) < round;
	}
	CHECK_EQ(m.wrong, 0);
}

static void many_broadcasts(struct cmpi_group *group)
{
	static const size_t sizes[] = {0, 1, 16, 100, 8320, 32896, 32897, 100000, 700000};
	static uint8_t data[4][700000];

	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t k = 0; k < 4; k++) { /* four under way, from different roots */
			size_t len = sizes[(round + k) % 8];

			memset(data[k], 0, len);
			if ((round + k) % m.n == m.me)
				fill(data[k], round * 4 + k, (uint32_t)len);
			under_way++;
			CHECK(begun(cmpi_bcast(group, (round + k) % m.n, data[k], len, count_down, NULL)));
		}
		CHECK(progress_while(any_under_way));
		for (uint32_t k = 0; k < 4; k++)
			m.wrong += !good(data[k], round * 4 + k, 0, (uint32_t)sizes[(round + k) % 8]);
	}
	CHECK_EQ(m.wrong, 0);
	CHECK_EQ(failures, 0);
}

static void together(void)
{
	struct cmpi_group *group = join_all(3), *other = join_all(4);

	many_barriers(group);
	many_broadcasts(group);
	cmpi_group_leave(other);
	many_broadcasts(other = join_all(4));
	under_way = 1;
	CHECK(begun(cmpi_barrier(group, count_down, NULL))); /* nobody leaves before all are through */
	CHECK(progress_while(any_under_way));
	cmpi_group_leave(other);
	cmpi_group_leave(group);
	CHECK_EQ(failures, 0);
}

static void groups(void)
{
	run(4, false, together);
	run(3, true, together);
	run(1, false, together);
}

/* Joins that come to nothing leave nothing in the NIC's table, which has room for 256. */
static void join_in_vain(void)
{
	struct cmpi_proc *self = NULL;
	struct cmpi_group *group;

	for (uint32_t i = 0; i < 300; i++) {
		under_way = 1;
		failures = 0;
		CHECK_EQ(cmpi_group_join(m.c, 100 + i, m.to, m.n, m.me, count_down, NULL, &group), CMPI_OK);
		CHECK(progress_while(any_under_way));
		CHECK_EQ(failures, 1);
		cmpi_group_leave(group);
	}
	under_way = 1;
	failures = 0;
	CHECK_EQ(cmpi_group_join(m.c, 99, &self, 1, 0, count_down, NULL, &group), CMPI_OK);
	CHECK(progress_while(any_under_way));
	CHECK_EQ(failures, 0);
	cmpi_group_leave(group);
}

/* A member is killed: the others' barrier ends in an error. */
static void one_dies(void)
{
	struct cmpi_group *group = join_all(3);

	under_way = 1;
	if (m.me == 1)
		raise(SIGKILL);
	CHECK(begun(cmpi_barrier(group, count_down, NULL)));
	CHECK(progress_while(any_under_way));
	CHECK_EQ(failures, 1);
	cmpi_group_leave(group);
	join_in_vain();
}

static void a_group_with_a_killed_member(void)
{
	run(3, false, one_dies);
}

static void with_arch(const char *arch)
{
	printf("# arch %s\n", arch);
	cmpi_param_set("arch", arch, "test");
	CASE(groups);
	CASE(a_group_with_a_killed_member);
}

int main(void)
{
	char arch[32];

	snprintf(arch, sizeof(arch), "%s", cmpi_param_string("arch")); /* setting it changes what that points to */
	all_memory = mmap(NULL, MEMBERS * MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all_memory == MAP_FAILED)
		return EXIT_FAILURE;
	CASE(lazily);
	CASE(all_at_start);
	CASE(puts_gets_atomics);
	CASE(through_the_card);
	CASE(threads);
	CASE(matching_threads);
	CASE(a_killed_peer_is_named);
	CASE(a_dead_peer_is_named);
	CASE(an_orderly_end_is_silent);
	with_arch(arch);
	if (strcmp(arch, "qnix"))
		with_arch("qnix");
	return check_done();
}
