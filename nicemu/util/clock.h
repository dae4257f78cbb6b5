/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time, for what decides by it and is not exact: the kernel's monotonic clock or, where the kernel itself reads the processor's counter, that
 * one, in nanoseconds since some moment.  The counter is read without waiting for what was loaded before, which the kernel's
 * clock does: 8 instead of 27 ns, and the loads of a look at the NIC go on meanwhile.
 *
 * Two threads may read it in the wrong order by some nanoseconds, so times are subtracted by nic_clock_since.
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

/* Nanoseconds of a tick, times 2^32; 0: the kernel's clock is used. */
extern uint64_t nic_clock_scale;

/* Measures the counter, once in a process and for all its threads, which takes some 50 us.  Before that the kernel's clock is used. */
void nic_clock_open(void);
/* Does that file, current_clocksource of sysfs, say that the kernel reads the counter? */
bool nic_clock_is_counter(const char *file);
uint64_t nic_clock_kernel(void);

static inline uint64_t nic_clock(void)
{
#ifdef NIC_CLOCK_COUNTER
	__extension__ typedef unsigned __int128 wide;

	if (__builtin_expect(nic_clock_scale != 0, 1))
		return (uint64_t)((wide)nic_ticks() * nic_clock_scale >> 32);
#endif
	return nic_clock_kernel();
}

static inline uint64_t nic_clock_since(uint64_t then, uint64_t now)
{
	return (int64_t)(now - then) > 0 ? now - then : 0;
}

#endif
