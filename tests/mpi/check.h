/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every MPI test program here shares: counted checks, one line per group of checks, a verdict, a watchdog,
 * and a byte pattern that is a function of a key, so that both ends know every byte without asking each other.
 *
 * This is not a test framework: a program includes it, calls check_init, then CHECK() any number of times,
 * check_group() after each group (collective over MPI_COMM_WORLD) and returns check_done().
 *
 * Printed by rank 0:   "  ok   <group> (<n> checks)"  or  "  BAD  <group>: rank R: <why>",  then  "PASS <name>"  or
 * "FAIL <name>: rank R: <why>".  Exit status: 0 passed, 1 failed, 77 skipped, 99 hung (the watchdog spoke).
 *
 * The watchdog is one alarm per process.  When it rings the process says its rank, its pid and the last check_at()
 * of each of its threads, and the calls it is in, waits a moment so that its neighbours can say the same, and leaves.
 */
#ifndef QNIX_TESTS_MPI_CHECK_H
#define QNIX_TESTS_MPI_CHECK_H

#include <mpi.h>

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_SKIPPED 77
#define CHECK_HUNG 99
#define CHECK_THREADS 8
#define CHECK_TEXT 240
#define CHECK_FRAMES 40

/* Where one thread is: a constant text and a number (a size, a round).  Written by it, read by the alarm's handler. */
struct check_place {
	_Atomic(const char *) text;
	_Atomic long number;
};

struct check_state {
	const char *name;
	int rank, size;
	unsigned seconds;
	_Atomic long checks;         /* in this group, this rank */
	_Atomic long bad;            /* in this group, this rank */
	long total;                  /* all groups, all ranks; meaningful on rank 0 */
	long total_bad;              /* the same on every rank */
	char first[CHECK_TEXT];      /* why the first check of this group failed; guarded by lock */
	char verdict[CHECK_TEXT + 32]; /* why the first check of the program failed, on rank 0 */
	pthread_mutex_t lock;
	struct check_place place[CHECK_THREADS];
	void *frames[CHECK_FRAMES];  /* where the alarm came to */
};

static struct check_state check = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Thread_local int check_thread; /* which place is mine; a program with threads sets it in each */

/* ---- where am I, and the watchdog ---- */

static inline void check_at(const char *text, long number)
{
	/* Relaxed: the reader is a signal handler of this process, or a dying one; a torn pair only misleads the reader. */
	atomic_store_explicit(&check.place[check_thread].text, text, memory_order_relaxed);
	atomic_store_explicit(&check.place[check_thread].number, number, memory_order_relaxed);
}

static inline void check_put_text(char *line, size_t *n, const char *s)
{
	while (*s && *n < CHECK_TEXT - 1)
		line[(*n)++] = *s++;
}

static inline void check_put_number(char *line, size_t *n, long v)
{
	char digits[24];
	int d = 0;
	unsigned long u = v < 0 ? 0UL - (unsigned long)v : (unsigned long)v;

	if (v < 0)
		check_put_text(line, n, "-");
	do
		digits[d++] = (char)('0' + u % 10);
	while (u /= 10);
	while (d && *n < CHECK_TEXT - 1)
		line[(*n)++] = digits[--d];
}

/* Async-signal-safe: formats by hand, one write() a thread; then in which calls the thread is that the alarm came to. */
static inline void check_hung(int signal_number)
{
	(void)signal_number;
	for (int t = 0; t < CHECK_THREADS; t++) {
		const char *text = atomic_load_explicit(&check.place[t].text, memory_order_relaxed);
		char line[CHECK_TEXT];
		size_t n = 0;

		if (!text)
			continue;
		check_put_text(line, &n, "HUNG ");
		check_put_text(line, &n, check.name);
		check_put_text(line, &n, ": rank ");
		check_put_number(line, &n, check.rank);
		check_put_text(line, &n, " pid ");
		check_put_number(line, &n, getpid());
		check_put_text(line, &n, t ? " thread " : " ");
		if (t)
			check_put_number(line, &n, t);
		check_put_text(line, &n, t ? " at: " : "at: ");
		check_put_text(line, &n, text);
		check_put_text(line, &n, " ");
		check_put_number(line, &n, atomic_load_explicit(&check.place[t].number, memory_order_relaxed));
		line[n++] = '\n';
		if (write(STDERR_FILENO, line, n) < 0)
			break;
	}
	backtrace_symbols_fd(check.frames, backtrace(check.frames, CHECK_FRAMES), STDERR_FILENO);
	sleep(10); /* processes that began later have their turn to say where they are */
	_exit(CHECK_HUNG);
}

/* Progress was made: the watchdog starts anew. */
static inline void check_alive(void)
{
	alarm(check.seconds);
}

static inline void check_watch(unsigned seconds)
{
	const char *text = getenv("QNIX_TEST_SECONDS");
	struct sigaction act = { .sa_handler = check_hung };

	check.seconds = text && atoi(text) > 0 ? (unsigned)atoi(text) : seconds;
	sigemptyset(&act.sa_mask);
	sigaction(SIGALRM, &act, NULL);
	check_at("MPI_Init", 0);
	backtrace(check.frames, CHECK_FRAMES); /* the first call of it takes memory */
	alarm(check.seconds);
}

/* ---- life of a program ---- */

static inline void check_skip(const char *why)
{
	if (check.rank == 0)
		printf("SKIP %s: %s\n", check.name, why);
	fflush(stdout);
	MPI_Finalize();
	exit(CHECK_SKIPPED);
}

/* Starts MPI with at least `level` of thread support, or skips.  QNIX_TEST_SECONDS overrides the watchdog's `seconds`. */
static inline void check_init_level(int *argc, char ***argv, const char *name, unsigned seconds, int level)
{
	int provided;

	check.name = name;
	check_watch(seconds);
	MPI_Init_thread(argc, argv, level, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check.size);
	check_at("start", 0);
	if (provided < level)
		check_skip("MPI does not provide the thread level it was asked for");
	if (check.size < 2)
		check_skip("wants two ranks or more");
}

static inline void check_init(int *argc, char ***argv, const char *name, unsigned seconds)
{
	check_init_level(argc, argv, name, seconds, MPI_THREAD_SINGLE);
}

/* One check.  True when it held.  Any thread may call it; only the first failure of a group keeps its text. */
__attribute__((format(printf, 2, 3)))
static inline bool check_that(bool held, const char *format, ...)
{
	va_list args;

	/* Relaxed: only counted here, read after the threads were joined. */
	atomic_fetch_add_explicit(&check.checks, 1, memory_order_relaxed);
	if (held)
		return true;
	if (atomic_fetch_add_explicit(&check.bad, 1, memory_order_relaxed) == 0) {
		pthread_mutex_lock(&check.lock);
		va_start(args, format);
		vsnprintf(check.first, sizeof check.first, format, args);
		va_end(args);
		pthread_mutex_unlock(&check.lock);
	}
	return false;
}

#define CHECK(held, ...) check_that((held), __VA_ARGS__)

/* Brings the text of the lowest failing rank to rank 0. */
static inline void check_fetch_text(int from, char *text)
{
	memcpy(text, check.first, CHECK_TEXT);
	if (from == 0)
		return;
	if (check.rank == from)
		MPI_Send(check.first, CHECK_TEXT, MPI_CHAR, 0, 9999, MPI_COMM_WORLD);
	if (check.rank == 0)
		MPI_Recv(text, CHECK_TEXT, MPI_CHAR, from, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void check_report(const char *group, const long *sum, int from, const char *why)
{
	if (check.rank)
		return;
	if (!sum[1]) {
		printf("  ok   %s (%ld checks)\n", group, sum[0]);
	} else {
		printf("  BAD  %s: rank %d: %s (%ld of %ld checks)\n", group, from, why, sum[1], sum[0]);
		if (!check.verdict[0])
			snprintf(check.verdict, sizeof check.verdict, "%s: rank %d: %.*s", group, from, CHECK_TEXT - 80, why);
	}
	fflush(stdout);
}

/* Ends a group of checks: collective.  Prints its line, and starts the next group at zero. */
static inline void check_group(const char *group)
{
	long mine[2] = { check.checks, check.bad }, sum[2] = { 0, 0 };
	int me = check.bad ? check.rank : check.size, from = 0;
	char why[CHECK_TEXT];

	check_at(group, -1);
	MPI_Allreduce(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&me, &from, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (sum[1])
		check_fetch_text(from, why);
	check_report(group, sum, from, why);
	check.total += sum[0];
	check.total_bad += sum[1] ? sum[1] : check.bad; /* the sum is itself what is tested */
	check.checks = check.bad = 0;
	check_alive();
}

/* The verdict: what main returns. */
static inline int check_done(void)
{
	bool failed = check.total_bad || !check.total;

	check_at("MPI_Finalize", 0);
	if (check.rank == 0 && failed)
		printf("FAIL %s: %s\n", check.name, check.verdict[0] ? check.verdict : "nothing was checked");
	else if (check.rank == 0)
		printf("PASS %s\n", check.name);
	fflush(stdout);
	MPI_Finalize();
	return failed;
}

/* ---- bytes that are known at both ends ---- */

static inline uint64_t check_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static inline uint64_t check_key(unsigned from, unsigned to, uint64_t number)
{
	return check_mix((uint64_t)from << 48 ^ (uint64_t)to << 32 ^ number);
}

/* Word i of the pattern: cheap enough to be written and compared at memory speed. */
static inline uint64_t check_word(uint64_t key, size_t i)
{
	return (key + i) * 0x9e3779b97f4a7c15u;
}

static inline void check_fill(void *buffer, size_t bytes, uint64_t key)
{
	unsigned char *p = buffer;
	size_t words = bytes / 8;
	uint64_t w;

	for (size_t i = 0; i < words; i++) {
		w = check_word(key, i);
		memcpy(p + 8 * i, &w, 8);
	}
	w = check_word(key, words);
	memcpy(p + 8 * words, &w, bytes % 8);
}

/* Byte offset of the first difference from the pattern, -1 when there is none. */
static inline long check_differs(const void *buffer, size_t bytes, uint64_t key)
{
	const unsigned char *p = buffer;
	uint64_t all = 0, w, got;

	for (size_t i = 0; i < bytes / 8; i++) {
		memcpy(&got, p + 8 * i, 8);
		all |= got ^ check_word(key, i);
	}
	w = check_word(key, bytes / 8);
	if (!all && !memcmp(p + bytes / 8 * 8, &w, bytes % 8))
		return -1;
	for (size_t i = 0; i < bytes; i++) {
		w = check_word(key, i / 8);
		if (p[i] != ((unsigned char *)&w)[i % 8])
			return (long)i;
	}
	return -1;
}

/* A small generator for choices; the state is the caller's. */
static inline uint64_t check_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return check_mix(*state);
}

/* Memory that must exist for the test to mean anything. */
static inline void *check_memory(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);

	if (!p) {
		fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", check.name, check.rank, bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* A counter of this process's NIC, of the BTL, the MTL or the PML, from where it stands now. */
struct check_counter {
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	bool there;
};

static inline struct check_counter check_counter_watch(const char *name)
{
	static const char *const component[] = { "btl_qnix", "mtl_qnix", "pml_qnix" };
	const char *btl = getenv("OMPI_MCA_btl");
	struct check_counter c = { .there = false };
	int level, index, count;
	char full[64];

	MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
	MPI_T_pvar_session_create(&c.session);
	for (size_t i = 0; i < sizeof component / sizeof *component && !c.there; i++) {
		snprintf(full, sizeof full, "%s_%s", component[i], name);
		c.there = MPI_T_pvar_get_index(full, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS &&
		          MPI_T_pvar_handle_alloc(c.session, index, NULL, &c.handle, &count) == MPI_SUCCESS;
	}
	CHECK(c.there || !btl || !strstr(btl, "qnix"), "there is no counter %s", name);
	return c;
}

/* How much has been added; -1: there is no such counter, and the list of BTLs does not name this one. */
static inline long long check_counter_end(struct check_counter *c)
{
	unsigned long long value = 0;

	if (c->there) {
		MPI_T_pvar_read(c->session, c->handle, &value);
		MPI_T_pvar_handle_free(c->session, &c->handle);
	}
	MPI_T_pvar_session_free(&c->session);
	MPI_T_finalize();
	return c->there ? (long long)value : -1;
}

/* KiB of /proc/self/status whose line starts with `field` ("VmRSS:", "RssAnon:"), -1 where there is no such line. */
static inline long check_status_kib(const char *field)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, field, strlen(field)))
			kib = atol(line + strlen(field));
	if (f)
		fclose(f);
	return kib;
}

#endif
