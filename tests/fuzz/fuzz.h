/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzzers share: random values from a seed, and rounds in a child process, so that whatever happens to it the seed
 * of the round is printed.
 *
 *   PROGRAM [seconds [seed]]     as many rounds as fit in that time (default 5 for all cases together); the first has that seed,
 *                                each next one the seed after it
 *   PROGRAM 0 seed               that round alone
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

enum { FUZZ_HANG = 120 /* seconds without a finished round */ };

static struct {
	double seconds;
	uint64_t seed, state;
	struct {
		uint64_t seed, rounds;
	} *now; /* shared with the child */
} fuzz;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static inline uint64_t fuzz_word(void)
{
	uint64_t z = fuzz.state += 0x9E3779B97F4A7C15ull; /* splitmix64 */

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

static inline uint32_t fuzz_below(uint32_t n)
{
	return fuzz_word() % n;
}

/* One in n. */
static inline int fuzz_seldom(uint32_t n)
{
	return fuzz_below(n) == 0;
}

static inline uint64_t fuzz_of(const uint64_t *choice, uint32_t n)
{
	return choice[fuzz_below(n)];
}

#define FUZZ_OF(...) fuzz_of((const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static inline void fuzz_bytes(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = fuzz_word();
}

/* Some bytes of it change. */
static inline void fuzz_mutate(void *p, size_t n)
{
	for (uint32_t k = 1 + fuzz_below(4); k; k--)
		((uint8_t *)p)[fuzz_below(n)] = fuzz_seldom(2) ? FUZZ_OF(0, 1, 0x7F, 0x80, 0xFF) : fuzz_word();
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static inline void fuzz_start(int argc, char **argv)
{
	fuzz.seconds = argc > 1 ? atof(argv[1]) : 5;
	fuzz.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	fuzz.now = mmap(NULL, sizeof(*fuzz.now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fuzz.now == MAP_FAILED)
		exit(EXIT_FAILURE);
}

static inline double fuzz_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int fuzz_child(void (*round)(void), double until)
{
	fuzz.now->seed = fuzz.seed;
	fuzz.now->rounds = 0;
	do {
		alarm(FUZZ_HANG);
		fuzz.state = fuzz.now->seed;
		round();
		if (check_now.failed)
			return 1;
		fuzz.now->seed++;
		fuzz.now->rounds++;
	} while (fuzz_clock() < until);
	return 0;
}

/* A case: rounds for this share of the time. */
static inline void fuzz_rounds(void (*round)(void), double share)
{
	double until = fuzz_clock() + fuzz.seconds * share;
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		status = fuzz_child(round, until);
		fflush(stdout);
		_exit(status);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (!CHECK_EQ(status, 0))
		printf("# %s after %llu good rounds; again: 0 %llu\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a check failed",
		       (unsigned long long)fuzz.now->rounds, (unsigned long long)fuzz.now->seed);
	else
		printf("# %llu rounds from seed %llu\n", (unsigned long long)fuzz.now->rounds, (unsigned long long)fuzz.seed);
}

#endif
