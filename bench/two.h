/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What nic_latency and vipl_latency share: two processes of one machine, one connection, and the tables of the MPI benchmarks of this
 * folder, so that the cost of each layer is the difference.
 *
 *   PROGRAM [-w lat|bw|get|put] [-m max] [-i iterations] [-p]     -p: payload in pool buffers that change hands
 *
 * A program includes this, says how a message comes and goes in its layer (the functions below), and has main call two_run.
 */
#ifndef QNIX_BENCH_TWO_H
#define QNIX_BENCH_TWO_H

#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 64, SMALL = 64 };
enum two_op { TWO_SEND, TWO_PUT, TWO_GET };

/* Shared by both processes: where the other side's memory is, for RDMA. */
struct meet {
	uint64_t addr[2];
	uint32_t handle[2];
};

static struct meet *meet;
static size_t max_size = 65536;
static long iterations = 20000;
static bool pool;

struct side;
static struct side *open_side(int me, const char *device); /* connected, with receives posted */
static void close_side(struct side *s);
static void wait_recv(struct side *s);
static void send_one(struct side *s, size_t len, enum two_op op, int peer); /* until it is complete */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static double latency(struct side *s, int me, size_t len, long n)
{
	double t = now();

	for (long i = 0; i < n; i++) {
		if (me == 0) {
			send_one(s, len, TWO_SEND, 1);
			wait_recv(s);
		} else {
			wait_recv(s);
			send_one(s, len, TWO_SEND, 0);
		}
	}
	return (now() - t) / n / 2;
}

/* Windows of messages, each window answered by one short message. */
static double bandwidth(struct side *s, int me, size_t len, long n)
{
	int window = DEPTH - 2;
	double t = now();

	for (long i = 0; i < n; i++) {
		if (me == 0) {
			for (int w = 0; w < window; w++)
				send_one(s, len, TWO_SEND, 1);
			wait_recv(s);
		} else {
			for (int w = 0; w < window; w++)
				wait_recv(s);
			send_one(s, 4, TWO_SEND, 0);
		}
	}
	return (double)len * n * window / (now() - t);
}

static double rdma(struct side *s, int me, size_t len, long n, enum two_op op)
{
	double t = now();

	for (long i = 0; i < n && me == 0; i++)
		send_one(s, len, op, 1);
	t = (now() - t) / n;
	if (me == 0)
		send_one(s, 4, TWO_SEND, 1);
	else
		wait_recv(s);
	return t;
}

static void measure(int me, const char *layer, const char *what, const char *device)
{
	struct side *s;

	pin(me);
	s = open_side(me, device);
	if (me == 0)
		printf("# qnix bench: %s %s Test\n# Size          %s\n", layer, what, strcmp(what, "bw") ? "Latency (us)" : "Bandwidth (MB/s)");
	for (size_t len = 1; len <= max_size; len *= 2) {
		long n = len > 8192 ? iterations / 10 : iterations;
		double v = 0;

		for (int warm = 0; warm < 2; warm++) {
			long k = warm ? n : n / 10 + 1;

			if (strcmp(what, "lat") == 0)
				v = latency(s, me, len, k);
			else if (strcmp(what, "bw") == 0)
				v = bandwidth(s, me, len, k / 20 + 1);
			else
				v = rdma(s, me, len, k, strcmp(what, "get") == 0 ? TWO_GET : TWO_PUT);
		}
		if (me == 0)
			printf("%-15zu %.2f\n", len, v);
	}
	close_side(s);
}

/* buffer: bytes that a pool buffer holds. */
static int two_run(int argc, char **argv, const char *layer, size_t buffer)
{
	const char *what = "lat";
	char device[32];
	pid_t child;
	int c;

	while ((c = getopt(argc, argv, "w:m:i:ph")) != -1) {
		if (c == 'w')
			what = optarg;
		else if (c == 'm')
			max_size = strtoul(optarg, NULL, 0);
		else if (c == 'i')
			iterations = atol(optarg);
		else if (c == 'p')
			pool = true;
		else {
			printf("usage: %s [-w lat|bw|get|put] [-m max size] [-i iterations] [-p]\n", argv[0]);
			return c == 'h' ? 0 : 2;
		}
	}
	if (pool && max_size > buffer)
		max_size = 8192;
	snprintf(device, sizeof(device), "bench-%d", getpid());
	meet = mmap(NULL, sizeof(*meet), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	measure(child == 0, layer, what, device);
	if (child > 0)
		waitpid(child, NULL, 0);
	return 0;
}

#endif
