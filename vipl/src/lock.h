/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a NIC handle: one word, spins shortly, then yields the processor.
 * Not a pthread mutex, so that hot objects need no pthread call and nothing a program may interpose (sem_*, …).
 * Never held while sleeping or while a handler of the program runs.
 */
#ifndef VIPL_LOCK_H
#define VIPL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vipl_lock {
	_Atomic uint32_t taken;
};

/* Waits until the lock may be free. */
void vipl_lock_pause(struct vipl_lock *lock);

static inline void vipl_lock_take(struct vipl_lock *lock)
{
	while (__builtin_expect(atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) != 0, 0)) /* L1 */
		vipl_lock_pause(lock);
}

static inline bool vipl_lock_try(struct vipl_lock *lock)
{
	return atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0; /* L1 */
}

static inline void vipl_lock_give(struct vipl_lock *lock)
{
	atomic_store_explicit(&lock->taken, 0, memory_order_release); /* L1: pairs with the acquire in take */
}

#endif
