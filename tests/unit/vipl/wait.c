/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How waiting calls pass their time: what a timeout means, and that no step takes long.  How long something really takes is up to the
 * machine, too, so nothing here depends on it but for a minute's patience.
 */
#include "vipl/src/wait.h"

#include <time.h>

#include "tests/check.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void deadlines(void)
{
	uint64_t before = now(), at = vipl_deadline(60000), after = now();

	CHECK(at >= before + 60000000000 && at <= after + 60000000000);
	CHECK(!vipl_deadline_over(at));
	CHECK(vipl_deadline_over(vipl_deadline(0)));
	CHECK(vipl_deadline_over(before));
	/* For ever, as long or as int. */
	CHECK(vipl_deadline(VIP_INFINITE) == UINT64_MAX);
	CHECK(vipl_deadline(0xFFFFFFFF) == UINT64_MAX);
	CHECK(!vipl_deadline_over(UINT64_MAX));
	CHECK(vipl_deadline(0xFFFFFFFE) != UINT64_MAX);
}

static void steps(void)
{
	struct vipl_wait wait;
	uint64_t start;
	unsigned n = 0;

	vipl_wait_init(&wait, 0, NULL);
	CHECK(!vipl_wait_step(&wait)); /* looks once */
	vipl_wait_init(&wait, 100, NULL);
	start = now();
	while (vipl_wait_step(&wait)) {
		CHECK(wait.sleep <= 1000000); /* a millisecond, on a machine with time for us */
		n++;
	}
	CHECK(now() - start >= 100000000);
	CHECK(now() - start < 60000000000);
	CHECK(n >= 1000);  /* looks closely at first */
	CHECK(n < 100000); /* and does not burn the processor later */
	CHECK(!vipl_wait_step(&wait));
	vipl_wait_reset(&wait);
	CHECK(vipl_wait_step(&wait)); /* close looks again, which read no clock */
}

static void for_ever(void)
{
	struct vipl_wait wait;

	vipl_wait_init(&wait, VIP_INFINITE, NULL);
	for (unsigned i = 0; i < 1300; i++)
		if (!CHECK(vipl_wait_step(&wait)))
			break;
}

int main(void)
{
	CASE(deadlines);
	CASE(steps);
	CASE(for_ever);
	return check_done();
}
