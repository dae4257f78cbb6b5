/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers: what a stream of long messages could have if a transport cost nothing but its two copies.  Two threads, each bound to a
 * core (the first two that they may use, as bench/probe does), one of which copies BYTES from its memory into buffers, in turn, the
 * other one from there into its own.  How many buffers go round decides in which cache they lie; and whether the receiver makes their lines its own, by a
 * store of what is there, how long the sender's next stores to them take.
 *
 *     buffers [-m BYTES] [-i N] [COUNT...]
 *
 * For each COUNT (1 2 4 6 8 12 16 24 48 96) GB/s of N copies (4000) of BYTES (32768), of lines that stay shared and of such that migrate.  This is no MPI program; status 4 where there is only one core.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cores.h"

enum { LINE = 128, ROOM = LINE, PIECE = 1024, COUNT_MOST = 1024, BYTES_MOST = 1 << 20 };

static struct {
	_Alignas(LINE) _Atomic long n;
} filled, emptied; /* so many buffers have been */

static int cpus[2];
static size_t bytes = 32768;
static long copies = 4000, count;
static bool migrates;
static char *buffers, *memory[2];

/* Each buffer begins at another place in its page, as those of the NIC do. */
static char *buffer(long i)
{
	return buffers + (size_t)(i % count) * ((bytes + LINE - 1) / LINE * LINE + ROOM);
}

static void migrate(char *line)
{
	_Atomic char *first = (_Atomic char *)line;

	atomic_store_explicit(first, atomic_load_explicit(first, memory_order_relaxed), memory_order_relaxed); /* nobody else's yet */
}

static void empty(char *from)
{
	if (!migrates) {
		memcpy(memory[1], from, bytes);
		return;
	}
	for (size_t at = 0; at < bytes; at += PIECE) {
		size_t n = bytes - at < PIECE ? bytes - at : PIECE;

		memcpy(memory[1] + at, from + at, n);
		for (size_t line = 0; line < n; line += 64)
			migrate(from + at + line);
	}
}

/* A0: what the other thread did before it counted (R0) is seen after this. */
static void await(const _Atomic long *n, long least)
{
	for (unsigned polls = 0; atomic_load_explicit(n, memory_order_acquire) < least; polls++)
		if (polls > 100000)
			sched_yield(); /* the other thread has no processor now */
}

static void *receiver(void *unused)
{
	(void)unused;
	cores_bind_to(cpus[1]);
	for (long i = 0; i < copies; i++) {
		await(&filled.n, i + 1);
		empty(buffer(i));
		atomic_store_explicit(&emptied.n, i + 1, memory_order_release); /* R0 */
	}
	return NULL;
}

static double gigabytes(bool migrating)
{
	pthread_t thread;
	double start;

	migrates = migrating;
	atomic_init(&filled.n, 0);
	atomic_init(&emptied.n, 0);
	if (pthread_create(&thread, NULL, receiver, NULL) != 0) {
		fputs("buffers: no thread\n", stderr);
		exit(1);
	}
	start = cores_now_ns();
	for (long i = 0; i < copies; i++) {
		await(&emptied.n, i + 1 - count);
		memcpy(buffer(i), memory[0], bytes);
		atomic_store_explicit(&filled.n, i + 1, memory_order_release); /* R0 */
	}
	pthread_join(thread, NULL);
	return (double)copies * (double)bytes / (cores_now_ns() - start);
}

static void usage(void)
{
	fputs("usage: buffers [-m BYTES] [-i N] [COUNT...]\n", stderr);
	exit(2);
}

static long number(const char *text, long most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 1 || n > most)
		usage();
	return n;
}

static void *pages(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (!p) {
		fputs("buffers: no memory\n", stderr);
		exit(1);
	}
	memset(p, 1, size);
	return p;
}

int main(int argc, char **argv)
{
	static const long usual[] = { 1, 2, 4, 6, 8, 12, 16, 24, 48, 96 };
	enum { USUAL = sizeof usual / sizeof usual[0] };
	long counts[64], most = 0;
	int n = 0, c;

	while ((c = getopt(argc, argv, "m:i:")) != -1)
		switch (c) {
		case 'm': bytes = (size_t)number(optarg, BYTES_MOST); break;
		case 'i': copies = number(optarg, 100000000); break;
		default: usage();
		}
	if (argc - optind > (int)(sizeof counts / sizeof counts[0]))
		usage();
	for (int i = optind; i < argc; i++)
		counts[n++] = number(argv[i], COUNT_MOST);
	for (int i = 0; i < USUAL && optind == argc; i++)
		counts[n++] = usual[i];
	for (int i = 0; i < n; i++)
		most = counts[i] > most ? counts[i] : most;
	if (!cores_choose(cpus) || !cores_bind_to(cpus[0])) {
		fputs("buffers: there is only one core\n", stderr);
		return 4;
	}
	buffers = pages((size_t)most * (bytes + LINE + ROOM));
	memory[0] = pages(bytes);
	memory[1] = pages(bytes);
	printf("# Copies of %zu bytes through buffers that go round, GB/s\n# Buffers   shared migrating\n", bytes);
	for (int i = 0; i < n; i++) {
		count = counts[i];
		printf("%9ld %8.1f", count, gigabytes(false));
		printf(" %9.1f\n", gigabytes(true));
		fflush(stdout);
	}
	free(buffers);
	free(memory[0]);
	free(memory[1]);
	return 0;
}
