/* SPDX-License-Identifier: BSD-3-Clause */
#include "nicemu/engine/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	LONG_ENOUGH = 50000, /* nanoseconds that the counter is measured over */
	SAMPLES = 8,         /* of which the one counts that nobody else ran in */
	EXACT = 64,          /* part of the time that it may have taken to read both clocks */
};

uint64_t nic_clock_scale;
bool nic_clock_counts;

uint64_t nic_clock_kernel(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(NIC_CLOCK_COUNTER) && defined(__x86_64__)
bool nic_clock_is_counter(const char *file)
{
	char line[32] = "";
	FILE *f = fopen(file, "re");

	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	return strcmp(line, "tsc\n") == 0; /* the same on all processors, and at one pace */
}
#else
bool nic_clock_is_counter(const char *file)
{
	(void)file;
#ifdef NIC_CLOCK_COUNTER
	return true; /* as the architecture has it */
#else
	return false;
#endif
}
#endif

/* Both clocks at one moment, as well as they can be read. */
struct moment {
	uint64_t ns, ticks, width; /* width: ticks that it took */
};

static struct moment moment(void)
{
	struct moment best = { .width = UINT64_MAX };

	for (int i = 0; i < SAMPLES; i++) {
		uint64_t before = nic_ticks(), ns = nic_clock_kernel(), width = nic_ticks() - before;

		if (width < best.width)
			best = (struct moment){ ns, before + width / 2, width };
	}
	return best;
}

static void measure(void)
{
	struct moment from, to;
	uint64_t ticks;

	if (!nic_ticks())
		return;
	from = moment();
	do
		to = moment();
	while (to.ns - from.ns < LONG_ENOUGH);
	ticks = to.ticks - from.ticks;
	if ((int64_t)ticks > 0 && (from.width + to.width) < ticks / EXACT && to.ns - from.ns < UINT32_MAX)
		nic_clock_scale = ((to.ns - from.ns) << 32) / ticks;
	nic_clock_counts = nic_clock_scale && nic_clock_is_counter("/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

void nic_clock_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure);
}
