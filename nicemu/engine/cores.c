/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processors a process may use, and what its control groups leave it of them.  Only what the kernel says; who
 * else wants them, and what follows from it, is in wait.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nicemu/engine/cores.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <ctype.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nic_cores_of(int pid, struct nic_cores_set *out)
{
	memset(out, 0, sizeof(*out));
	return sched_getaffinity(pid, sizeof(*out), (cpu_set_t *)out->word) == 0;
}

bool nic_cores_use(const struct nic_cores_set *set)
{
	return sched_setaffinity(0, sizeof(*set), (const cpu_set_t *)set->word) == 0;
}

bool nic_cores_demote(void)
{
#if defined(__x86_64__)
	enum { LEAF = 7, CLDEMOTE = 1 << 25 };
	unsigned a, b, c, d;

	return __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (c & CLDEMOTE);
#else
	return false;
#endif
}

static bool is_amd(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_is("amd");
#else
	return false;
#endif
}

/* AMD's, of that family, with AVX-512. */
static bool is_zen(unsigned family)
{
#if defined(__x86_64__)
	enum { LEAF = 1 };
	unsigned a, b, c, d;

	return is_amd() && __builtin_cpu_supports("avx512f") && __get_cpuid(LEAF, &a, &b, &c, &d) &&
	       (a >> 8 & 0xF) + (a >> 20 & 0xFF) == family;
#else
	(void)family;
	return false;
#endif
}

/* The family is that of Zen 3, too, which has no AVX-512; Zen 5 is another one, whose streams were fast as they are (README). */
static bool is_zen_4(void)
{
	return is_zen(0x19);
}

static bool is_zen_5(void)
{
	return is_zen(0x1A);
}

uint32_t nic_cores_far(void)
{
	return is_amd() ? 80 : 150; /* 20 to 60 and 100 to 160 there; elsewhere up to 110 where a cache is shared */
}

uint8_t nic_cores_ahead(void)
{
	return is_zen_4() ? 0 : 2; /* measured: docs/findings.md, "The receiver of short messages" */
}

bool nic_cores_migrate(void)
{
	return is_zen_4();
}

bool nic_cores_hasten(void)
{
	return is_zen_5();
}

bool nic_cores_parse(const char *list, struct nic_cores_set *out)
{
	memset(out, 0, sizeof(*out));
	for (char *end;; list = end + 1) {
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end != list && *end == '-') {
			list = end + 1;
			last = strtoul(list, &end, 10);
		}
		if (!isdigit((unsigned char)*list) || first > last || last >= NIC_CORES_MOST)
			return false;
		for (; first <= last; first++)
			out->word[first / 64] |= (uint64_t)1 << (first % 64);
		if (*end != ',')
			return !*end;
	}
}

int nic_cores_allowed(uint64_t cpus[NIC_CPU_WORDS])
{
	struct nic_cores_set set;
	int n = 0, beyond = 0;

	memset(cpus, 0, NIC_CPU_WORDS * sizeof(*cpus));
	if (!nic_cores_of(0, &set))
		return 0;
	for (int i = 0; i < NIC_CORES_MOST / 64; i++) {
		n += __builtin_popcountll(set.word[i]);
		beyond += i >= NIC_CPU_WORDS && set.word[i];
	}
	if (!beyond) /* a processor that has no bit here makes all of them unknown */
		memcpy(cpus, set.word, NIC_CPU_WORDS * sizeof(*cpus));
	return n;
}

/* ---- quota ------------------------------------------------------------------------------------------------------- */

/* One group's quota in cores; 0: none.  Version 2 has "QUOTA PERIOD" in one file, version 1 two files. */
static double quota_of(const char *dir, bool v2)
{
	char path[1200], word[32] = "";
	double quota = 0, period = 100000;
	FILE *f;

	snprintf(path, sizeof(path), v2 ? "%s/cpu.max" : "%s/cpu.cfs_quota_us", dir);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%31s %lf", word, &period) >= 1)
		quota = atof(word); /* "max" and -1: no limit */
	fclose(f);
	if (!v2) {
		snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
		f = fopen(path, "re");
		if (!f || fscanf(f, "%lf", &period) != 1)
			period = 100000;
		if (f)
			fclose(f);
	}
	return quota > 0 && period > 0 ? quota / period : 0;
}

/* The tightest quota of this group and those above it, as far as they can be seen from here. */
static double tightest(const char *root, const char *group, bool v2)
{
	char dir[1024];
	double best = 0;
	size_t top = strlen(root);

	if (snprintf(dir, sizeof(dir), "%s%s", root, group) >= (int)sizeof(dir))
		return 0;
	for (;;) {
		double q = quota_of(dir, v2);

		if (q > 0 && (best == 0 || q < best))
			best = q;
		if (strlen(dir) <= top)
			return best;
		*strrchr(dir, '/') = 0;
	}
}

static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == len && memcmp(list, word, len) == 0)
			return true;
	return false;
}

double nic_cores_quota(void)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[1024];
	double best = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
		double q = 0;

		if (!group)
			continue;
		*group++ = 0;
		group[strcspn(group, "\n")] = 0;
		names++;
		if (!*names)
			q = tightest("/sys/fs/cgroup", group, true);
		else if (in_list(names, "cpu"))
			q = tightest("/sys/fs/cgroup/cpu", group, false);
		if (q > 0 && (best == 0 || q < best))
			best = q;
	}
	if (f)
		fclose(f);
	return best;
}
