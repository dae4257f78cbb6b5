/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probe: are the two processors that a benchmark is about to use two cores, or two halves of one, and does nobody else use
 * them?  A virtual machine may be moved between one run and the next, so the runner asks before and after each round.
 *
 *     probe [-m BYTES] [CPU CPU]     without arguments the first two cores that this process may use
 *
 * It prints one line:   cpus=0,1 oneway_ns=71.3 median_ns=74.0 slowdown=1.01 share=0.99
 *   oneway_ns   half the time of a ping-pong by two flags, each in a cache line of its own (best and median of many)
 *   slowdown    how much longer a loop of arithmetic takes when the other processor runs it too: about 1 on two cores,
 *               1.5 to 2 on two hardware threads of one (best of many: what others take does not show)
 *   share       while both calculate for some 40 ms, the least part of a core that either of them got
 * With -m the ping-pong carries a message of so many bytes, copied into a buffer that both share and out of it: what is left of a
 * latency when MPI and its transport cost nothing but their two copies.
 *
 * This is no MPI program: two threads of one process, each bound to its processor.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cores.h"

enum { CHUNKS = 60, TURNS = 500, LINE = 128, LOOP = 200000, SPIN_NS = 40000000, MOST = 1 << 20 };

struct flag {
	_Alignas(LINE) _Atomic int turn;
};

static struct flag ping, pong;
static struct flag stage;             /* how far the first thread is; the second follows */
static int cpus[2];
static size_t bytes;                  /* of a message */
static _Alignas(4096) char buffer[MOST], memory[2][2][MOST]; /* of each thread: what it sends, what it has received */
static double second_rate;            /* chunks of arithmetic per nanosecond; read when the second thread has ended */

/* A0: what the other thread did before it set the flag (R0) is seen after this. */
static void await(struct flag *f, int turn)
{
	for (unsigned polls = 0; atomic_load_explicit(&f->turn, memory_order_acquire) != turn; polls++)
		if (polls > 100000)
			sched_yield(); /* the other thread has no processor now */
}

/* R0: to A0 in await. */
static void set(struct flag *f, int turn)
{
	atomic_store_explicit(&f->turn, turn, memory_order_release);
}

static void message(struct flag *f, int turn, int who)
{
	if (bytes)
		memcpy(buffer, memory[who][0], bytes);
	set(f, turn);
}

static void await_message(struct flag *f, int turn, int who)
{
	await(f, turn);
	if (bytes)
		memcpy(memory[who][1], buffer, bytes);
}

/* Independent multiplications: one thread alone keeps the multiplier of a core busy. */
static double arithmetic_ns(void)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;
	double start = cores_now_ns();

	for (int i = 0; i < LOOP; i++) {
		a *= 0x9e3779b97f4a7c15u, b *= 0xd6e8feb86659fd93u, c *= 0xca5a826395121157u, d *= 0x7aca0d6ae6a3fa4fu;
		__asm__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	}
	return cores_now_ns() - start;
}

static double best_arithmetic(int times)
{
	double best = 1e18, t;

	while (times--) {
		t = arithmetic_ns();
		best = t < best ? t : best;
	}
	return best;
}

/* Stage 1: ping-pong.  2: the first thread calculates alone.  3: both do, until the first one has had enough and says 4. */
static void *second(void *unused)
{
	double start;
	int chunks = 0;

	(void)unused;
	cores_bind_to(cpus[1]);
	await(&stage, 1);
	for (int turn = 1; turn <= CHUNKS * TURNS; turn++) {
		await_message(&ping, turn, 1);
		message(&pong, turn, 1);
	}
	await(&stage, 3);
	set(&pong, -1);
	start = cores_now_ns();
	/* Only a wish to stop: nothing follows from it. */
	for (; atomic_load_explicit(&stage.turn, memory_order_relaxed) == 3; chunks++)
		arithmetic_ns();
	second_rate = chunks / (cores_now_ns() - start);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void ping_pong(double *best, double *median)
{
	double chunk[CHUNKS];
	int turn = 1;

	for (int k = 0; k < CHUNKS; k++) {
		double start = cores_now_ns();

		for (int i = 0; i < TURNS; i++, turn++) {
			message(&ping, turn, 0);
			await_message(&pong, turn, 0);
		}
		chunk[k] = (cores_now_ns() - start) / TURNS / 2;
	}
	qsort(chunk, CHUNKS, sizeof *chunk, compare);
	*best = chunk[0];
	*median = chunk[CHUNKS / 2];
}

/* Both calculate, the other one from before the start until after the end: chunks per nanosecond, and the best chunk. */
static double both(double *best)
{
	double start = cores_now_ns(), t;
	int chunks = 0;

	while (cores_now_ns() - start < SPIN_NS) {
		t = arithmetic_ns();
		*best = t < *best ? t : *best;
		chunks++;
	}
	return chunks / (cores_now_ns() - start);
}

/* False: it has said why. */
static bool options(int argc, char **argv)
{
	bool good = true;
	char *end;
	int c;

	while ((c = getopt(argc, argv, "m:")) != -1) {
		bytes = c == 'm' ? strtoul(optarg, &end, 10) : 0;
		good = good && c == 'm' && end != optarg && !*end && bytes <= MOST;
	}
	if (!good || (argc != optind && argc != optind + 2)) {
		fprintf(stderr, "usage: probe [-m BYTES] [CPU CPU] (at most %d bytes)\n", MOST);
		return false;
	}
	if (argc != optind) {
		cpus[0] = atoi(argv[optind]);
		cpus[1] = atoi(argv[optind + 1]);
	} else if (!cores_choose(cpus)) {
		fprintf(stderr, "probe: only one core may be used here\n");
		return false;
	}
	for (int who = 0; who < 2; who++)
		memset(memory[who], 1 + who, sizeof memory[who]);
	return true;
}

int main(int argc, char **argv)
{
	double best, median, alone, together = 1e18, rate;
	pthread_t thread;

	if (!options(argc, argv))
		return 2;
	if (!cores_bind_to(cpus[0]) || pthread_create(&thread, NULL, second, NULL)) {
		fprintf(stderr, "probe: cannot use processors %d and %d\n", cpus[0], cpus[1]);
		return 2;
	}
	set(&stage, 1);
	ping_pong(&best, &median);
	set(&stage, 2);
	alone = best_arithmetic(10);
	set(&stage, 3);
	await(&pong, -1); /* it calculates from here on */
	rate = both(&together);
	set(&stage, 4);
	pthread_join(thread, NULL);
	rate = rate < second_rate ? rate : second_rate;
	printf("cpus=%d,%d oneway_ns=%.1f median_ns=%.1f slowdown=%.2f share=%.2f\n", cpus[0], cpus[1], best, median,
		together / alone, rate * (together < alone ? together : alone));
	return 0;
}
