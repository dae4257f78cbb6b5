/* SPDX-License-Identifier: BSD-3-Clause */
/* Time (engine/clock.h): as long as the kernel's, and not back. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/engine/clock.h"
#include "tests/check.h"

enum { TRIES = 50 };
#define MS UINT64_C(1000000)

/* Somebody may have the core between two looks at the two clocks: one try of many will do. */
static void as_long_as_the_kernels(void)
{
	double best = 1;

	for (int i = 0; i < TRIES && best > 0.01; i++) {
		uint64_t from = nic_clock(), kernel = nic_clock_kernel();
		double off;

		usleep(5000);
		off = (double)nic_clock_since(from, nic_clock()) / (double)(nic_clock_kernel() - kernel) - 1;
		off = off < 0 ? -off : off;
		best = off < best ? off : best;
	}
	CHECK(best <= 0.01);
}

static void never_back(void)
{
	uint64_t last = nic_clock(), from = last;

	for (int i = 0; i < 1000000; i++) {
		uint64_t now = nic_clock();

		if (!CHECK(now >= last))
			return;
		last = now;
	}
	CHECK(last > from);
	CHECK_EQ(nic_clock_since(last, last), 0);
	CHECK_EQ(nic_clock_since(last, last + 5), 5);
	CHECK_EQ(nic_clock_since(last, last - 5), 0);
}

/* A counter that was set back does not make a time that was near far off. */
static void times_to_come(void)
{
	const uint64_t at = 1000 * MS;

	CHECK(nic_clock_before(at, at + 1, 5 * MS));
	CHECK(nic_clock_before(at, at + 5 * MS, 5 * MS));
	CHECK(!nic_clock_before(at, at + 5 * MS + 1, 5 * MS));
	CHECK(!nic_clock_before(at, at, 5 * MS));
	CHECK(!nic_clock_before(at, at - 1, 5 * MS));
	CHECK(!nic_clock_before(at, 0, 5 * MS));
}

static _Atomic uint64_t told;

static void *tells(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000000; i++)
		told = nic_clock();
	told = 0;
	return NULL;
}

/* What another thread has read may be ahead by what the processors' counters are apart, and no more. */
static void threads_agree(void)
{
	pthread_t thread;
	uint64_t then, ahead = 0;

	told = nic_clock();
	pthread_create(&thread, NULL, tells, NULL);
	while ((then = told) != 0) {
		uint64_t by = nic_clock_since(nic_clock(), then);

		ahead = by > ahead ? by : ahead;
	}
	pthread_join(thread, NULL);
	CHECK(ahead < MS);
}

static bool says(const char *text)
{
	char name[] = "clocksource-XXXXXX";
	int file = mkstemp(name);
	bool counter;

	CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
	close(file);
	counter = nic_clock_is_counter(name);
	unlink(name);
	return counter;
}

/* A kernel that does not trust the counter has its reasons. */
static void only_what_the_kernel_reads(void)
{
#ifdef __x86_64__
	CHECK(says("tsc\n"));
	CHECK(!says("kvm-clock\n"));
	CHECK(!says("tsc-early\n"));
	CHECK(!says(""));
	CHECK(!nic_clock_is_counter("no-such-file"));
#else
	SKIP("an architecture whose counter is the same everywhere, or that has none");
#endif
}

static void before_it_is_open(void)
{
	uint64_t kernel = nic_clock_kernel(), here = nic_clock();

	CHECK(!nic_clock_counts);
	CHECK(here >= kernel && here <= nic_clock_kernel());
}

int main(void)
{
	CASE(before_it_is_open);
	nic_clock_open();
	printf("# %s\n", nic_clock_counts ? "the processor's counter" : "the kernel's clock");
	CASE(as_long_as_the_kernels);
	CASE(never_back);
	CASE(times_to_come);
	CASE(threads_agree);
	CASE(only_what_the_kernel_reads);
	return check_done();
}
