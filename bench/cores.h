/* SPDX-License-Identifier: BSD-3-Clause */
/* The two cores of a benchmark that is no MPI program: two threads, each bound to one of them.  GNU: _GNU_SOURCE before the first header. */
#ifndef BENCH_CORES_H
#define BENCH_CORES_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static inline double cores_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline bool cores_bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

/* The number of the first hardware thread of a processor's core, as far as this system tells. */
static inline int cores_core_of(int cpu)
{
	char path[96];
	int first = cpu;
	FILE *f;

	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	f = fopen(path, "r");
	if (f && fscanf(f, "%d", &first) != 1)
		first = cpu;
	if (f)
		fclose(f);
	return first;
}

/* The first processors of two cores that this process may use; false: there are none. */
static inline bool cores_choose(int cpus[2])
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET((unsigned)cpu, &set) && (n == 0 || cores_core_of(cpu) != cores_core_of(cpus[0])))
			cpus[n++] = cpu;
	return n == 2;
}

#endif
