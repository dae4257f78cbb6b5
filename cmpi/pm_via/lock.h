/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a struct cmpi: taken by every public call when the caller said that several threads call, not touched
 * otherwise.  Not recursive; released around every upcall.  Short sections, so it spins, then yields the processor.
 */
#ifndef VIA_LOCK_H
#define VIA_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct via_lock {
	_Atomic uint32_t held;
};

static inline void via_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

static inline void via_lock_take(struct via_lock *lock)
{
	uint32_t spins = 0;

	/* A1: pairs with the release in via_lock_give */
	while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire)) {
		do {
			if (++spins % 64)
				via_cpu_relax();
			else
				sched_yield();
			/* relaxed: only a hint, the exchange decides */
		} while (atomic_load_explicit(&lock->held, memory_order_relaxed));
	}
}

static inline void via_lock_give(struct via_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release); /* R1: pairs with A1 */
}

#endif
