/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time, for what decides by it and is not exact: the kernel's monotonic clock or, where the kernel itself goes by the processor's counter, that
 * one, in nanoseconds since some moment.  The counter is read without waiting for what was loaded before, which the kernel's
 * clock does: 8 instead of 27 ns, and the loads of a look at the NIC go on meanwhile.
 *
 * Two threads may read it in the wrong order by some nanoseconds, and a machine that was asleep, or a process that was moved to another one,
 * may find it set back.  So times are subtracted by nic_clock_since, and a time to come counts for no longer than it could have
 * been set for (nic_clock_before).
 */
#ifndef NIC_CLOCK_H
#define NIC_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__SIZEOF_INT128__)
#define NIC_CLOCK_COUNTER 1
#endif

/* The processor's counter, whose ticks mean nothing by themselves; 0 where there is none. */
static inline uint64_t nic_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* Nanoseconds of a tick, times 2^32; 0: not known. */
extern uint64_t nic_clock_scale;
/* It is known, and the kernel goes by the counter. */
extern bool nic_clock_counts;

/* Measures the counter, once in a process and for all its threads, which takes some 50 us.  Before that the kernel's clock is used. */
void nic_clock_open(void);
/* Does that file, current_clocksource of sysfs, say that the kernel goes by the counter?  Where the architecture has but this one, it does. */
bool nic_clock_is_counter(const char *file);
uint64_t nic_clock_kernel(void);

static inline uint64_t nic_clock(void)
{
#ifdef NIC_CLOCK_COUNTER
	__extension__ typedef unsigned __int128 wide;

	if (__builtin_expect(nic_clock_counts, 1))
		return (uint64_t)((wide)nic_ticks() * nic_clock_scale >> 32);
#endif
	return nic_clock_kernel();
}

/*
 * Nanoseconds that it takes to load a word, which another thread may be writing, and nothing else; at least 1, or 0 where nobody can say, or where the
 * counter is too coarse to tell one cache from another.
 */
static inline uint64_t nic_clock_of_load(const uint64_t *from, uint64_t *word)
{
#if defined(__x86_64__) && defined(NIC_CLOCK_COUNTER)
	uint64_t start, ticks;

	__builtin_ia32_lfence();
	start = nic_ticks();
	__asm__ __volatile__("mov %1, %0\n\tlfence" : "=r"(*word) : "m"(*from) : "memory");
	ticks = nic_ticks() - start;
	return ticks >> 32 || !nic_clock_scale ? 0 : (ticks * nic_clock_scale >> 32) + 1;
#else
	(void)from;
	*word = 0;
	return 0;
#endif
}

static inline uint64_t nic_clock_since(uint64_t then, uint64_t now)
{
	return (int64_t)(now - then) > 0 ? now - then : 0;
}

/* Is `end` still to come?  It was set for at most so long ahead. */
static inline bool nic_clock_before(uint64_t now, uint64_t end, uint64_t most)
{
	uint64_t left = nic_clock_since(now, end);

	return left && left <= most;
}

#endif
