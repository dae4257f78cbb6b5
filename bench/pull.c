/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pull: how soon a message could be there if a transport cost nothing but the kernel's copy.  Two processes, each bound to a
 * processor (the first two that it may use; bench/probe tells whether they are two cores), play ping-pong: a flag in a line of memory says that a message is ready, cross-memory attach moves it, a second flag
 * says that it is there.  Both know each other's addresses beforehand, which no transport does.
 *
 *     pull [-m [MIN:]MAX] [-i N] [-r]
 *
 * For each size, three times one way in microseconds, the medians of N round trips: by one copy of the receiver's, by a half of
 * each, and the flags without a copy.  With -r the sender writes every message anew and the receiver reads it.
 *
 * This is no MPI program; status 3 where one process may not read the other's memory, 4 where there is only one core.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 128, PAGE = 4096, WARMUP = 200 };
enum way { ONE, HALVES, FLAGS, WAYS };

struct flag {
	_Alignas(LINE) _Atomic long turn;
};

/* What the two share; [i]: of process i. */
static struct shared {
	struct flag ready[2]; /* its message, or its half of one */
	struct flag there[2]; /* what it receives */
	struct flag half[2];  /* the half of what it sends is copied */
	char *out[2], *in[2];
	pid_t pid[2];
} *shared;

static size_t least = 8192, most = 4 << 20;
static long rounds = 2000, turn;
static bool real, refused;
static int me, other;
static pid_t child;
static char *out, *in;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool has_ended(void)
{
	siginfo_t info = { .si_pid = 0 };

	return me == 0 && waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* A0: what the other process did before it set the flag (R0) is seen after this.  It may be a turn ahead. */
static bool is_set(struct flag *f)
{
	return atomic_load_explicit(&f->turn, memory_order_acquire) >= turn;
}

static void await(struct flag *f)
{
	for (long polls = 1; !is_set(f); polls++)
		if (polls % 100000 == 0) { /* the other process has no processor now */
			if (has_ended() && !is_set(f))
				exit(1);
			sched_yield();
		}
}

/* R0: to A0 in await. */
static void set(struct flag *f)
{
	atomic_store_explicit(&f->turn, turn, memory_order_release);
}

static void copy(char *here, char *there, size_t bytes, bool write)
{
	struct iovec local = { here, bytes }, remote = { there, bytes };
	ssize_t n = write ? process_vm_writev(shared->pid[other], &local, 1, &remote, 1, 0)
	                  : process_vm_readv(shared->pid[other], &local, 1, &remote, 1, 0);

	refused |= bytes && n != (ssize_t)bytes;
}

static size_t half_of(size_t bytes)
{
	return (bytes / 2 + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void touch(char *p, size_t bytes, bool write)
{
	uint64_t *word = (uint64_t *)p, sum = 0;

	for (size_t i = 0; i < bytes / sizeof(*word); i++)
		if (write)
			word[i] = (uint64_t)turn + i;
		else
			sum += word[i];
	__asm__("" : : "r"(sum)); /* the sum counts as used, so the loads stay */
}

static void send_one(enum way way, size_t bytes)
{
	if (real)
		touch(out, bytes, true);
	set(&shared->ready[me]);
	if (way == FLAGS)
		return;
	if (way == HALVES) {
		copy(out + half_of(bytes), shared->in[other] + half_of(bytes), bytes - half_of(bytes), true);
		set(&shared->half[me]);
	}
	await(&shared->there[other]);
}

static void receive_one(enum way way, size_t bytes)
{
	await(&shared->ready[other]);
	if (way != FLAGS) {
		copy(in, shared->out[other], way == ONE ? bytes : half_of(bytes), false);
		if (way == HALVES)
			await(&shared->half[other]);
		set(&shared->there[me]);
	}
	if (real)
		touch(in, bytes, false);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of the round trips, one way. */
static double play(enum way way, size_t bytes, double *t)
{
	for (long i = -WARMUP; i < rounds; i++) {
		double from = now();

		turn++;
		if (me == 0) {
			send_one(way, bytes);
			receive_one(way, bytes);
		} else {
			receive_one(way, bytes);
			send_one(way, bytes);
		}
		if (i >= 0)
			t[i] = (now() - from) / 2;
	}
	qsort(t, (size_t)rounds, sizeof(*t), compare);
	return t[rounds / 2];
}

/* To the first processor of those that may be used, or the second. */
static void bind_to_own(const cpu_set_t *may)
{
	cpu_set_t set;
	int left = me;

	CPU_ZERO(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, may) && left-- == 0)
			CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void run(void)
{
	double *t = malloc((size_t)rounds * sizeof(*t)), us[WAYS];

	out = aligned_alloc(PAGE, most);
	in = aligned_alloc(PAGE, most);
	if (!t || !out || !in)
		exit(1);
	memset(out, me + 1, most);
	memset(in, 0, most);
	shared->out[me] = out;
	shared->in[me] = in;
	shared->pid[me] = getpid();
	turn = 1;
	set(&shared->ready[me]);
	await(&shared->ready[other]);
	for (size_t bytes = least; bytes <= most; bytes *= 2) {
		for (int way = 0; way < WAYS; way++)
			us[way] = play((enum way)way, bytes, t);
		if (me == 0)
			printf("%-10zu%18.2f%18.2f%18.2f\n", bytes, us[ONE], us[HALVES], us[FLAGS]);
		fflush(stdout);
	}
	free(t);
	free(out);
	free(in);
}

static bool options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "m:i:r")) != -1)
		switch (c) {
		case 'm': {
			const char *colon = strchr(optarg, ':');

			least = colon ? strtoul(optarg, NULL, 0) : least;
			most = strtoul(colon ? colon + 1 : optarg, NULL, 0);
			break;
		}
		case 'i': rounds = atol(optarg); break;
		case 'r': real = true; break;
		default: return false;
		}
	return least >= PAGE && most >= least && rounds > 0 && optind == argc;
}

int main(int argc, char **argv)
{
	cpu_set_t may;
	int status = 0;

	if (!options(argc, argv)) {
		fprintf(stderr, "usage: %s [-m [MIN:]MAX] [-i ROUNDS] [-r]; sizes from %d bytes\n", argv[0], PAGE);
		return 2;
	}
	if (sched_getaffinity(0, sizeof(may), &may) != 0 || CPU_COUNT(&may) < 2) {
		fprintf(stderr, "pull: only one core may be used here\n");
		return 4;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	printf("# qnix bench: copies from process to process%s, medians\n%-10s%18s%18s%18s\n", real ? ", real data" : "", "# Size",
	       "One copies (us)", "Halves (us)", "Flags (us)");
	fflush(stdout);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* the child may; the parent may anyway */
	child = fork();
	if (child < 0)
		return 1;
	me = child == 0;
	other = !me;
	if (me)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	bind_to_own(&may);
	run();
	if (me)
		_exit(refused ? 3 : 0);
	waitpid(child, &status, 0);
	refused |= WIFEXITED(status) && WEXITSTATUS(status) == 3;
	if (refused)
		fprintf(stderr, "pull: one process may not read the other's memory here\n");
	else if (status)
		fprintf(stderr, "pull: the other process has failed\n");
	return refused ? 3 : status != 0;
}
