/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics by name.  Each use says in a comment what it pairs with; the relaxed ones say why they may be.
 */
#ifndef NIC_UTIL_ATOMIC_H
#define NIC_UTIL_ATOMIC_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define nic_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define nic_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define nic_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define nic_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
/* Compare and swap; acquire on failure, acquire and release on success. */
#define nic_cas(p, expected, desired) \
	atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acq_rel, memory_order_acquire)

/* Keeps the compiler from moving stores across: for what another process reads only after this one has died. */
#define nic_store_order() atomic_signal_fence(memory_order_release)

#define nic_likely(x) __builtin_expect(!!(x), 1)
#define nic_unlikely(x) __builtin_expect(!!(x), 0)
/* Off the hot path: kept out of line, so that its stack and registers do not burden the callers. */
#define nic_cold __attribute__((noinline, cold))
#define nic_noinline __attribute__((noinline))

/* Asks for a line that will be read.  gcc leaves out calls of a function that has nothing but __builtin_prefetch. */
static inline void nic_prefetch(const void *p)
{
#if defined(__x86_64__)
	__asm__("prefetcht0 %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p);
#endif
}

/* Gets hold of a line that will be written.  On x86 __builtin_prefetch would only read it, without a flag for newer processors. */
static inline void nic_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * The same of all lines of `len` bytes: four at a time, since one by one the counting takes longer than the asking; but of more than a core can have
 * under way one by one, or those that go on behind wait for all of them (docs/findings.md, "Copies and lines").  Broadcasts and short reads ask
 * one by one, too: at once they were slower by some percent.
 */
#define NIC_EACH_LINE(prefetch, p, len)                                                                                \
	do {                                                                                                           \
		uintptr_t end_ = (uintptr_t)(p) + (len), line_ = (uintptr_t)(p), four_ = end_ - 192;  \
                                                                                                                       \
		if (nic_likely(end_ - line_ <= 24 * 64))                                                               \
			for (; line_ < four_; line_ += 256) {                                                          \
				prefetch((void *)line_);                                                               \
				prefetch((void *)(line_ + 64));                                                        \
				prefetch((void *)(line_ + 128));                                                       \
				prefetch((void *)(line_ + 192));                                                       \
			}                                                                                              \
		for (; line_ < end_; line_ += 64)                                                                      \
			prefetch((void *)line_);                                                                       \
	} while (0)

static inline void nic_prefetch_lines(const void *p, size_t len)
{
	size_t before = (uintptr_t)p % 64;

	NIC_EACH_LINE(nic_prefetch, (const char *)p - before, len + before);
}

/* p: where a line begins. */
static inline void nic_prefetch_write_lines(const void *p, size_t len)
{
	NIC_EACH_LINE(nic_prefetch_write, p, len);
}

/*
 * Makes a line that this core has read its own, by a store of what is there, so that it migrates instead of being shared.  A line that its writer still
 * shares when it writes again is one that its stores wait for one after the other, and that it cannot ask for ahead; of lines that it does not have any more
 * many come at once (docs/findings.md, "Lines that migrate").
 */
static inline void nic_migrate_line(void *p)
{
	_Atomic uint32_t *word = p;

	nic_store_relaxed(word, nic_load_relaxed(word)); /* the caller's alone */
}

/* The same of all lines of `len` bytes.  p: where a line begins. */
static inline void nic_migrate_lines(void *p, size_t len)
{
	NIC_EACH_LINE(nic_migrate_line, p, len);
}

/*
 * The same of a line that may have become somebody else's since it was read: a store could undo what that one wrote, an atomic or of nothing cannot, at some
 * 5 ns.  In assembly, since a compiler may make a fence and a load of an atomic operation that changes nothing.
 */
static inline void nic_migrate_foreign_line(void *p)
{
#if defined(__x86_64__)
	__asm__ __volatile__("lock orl $0, %0" : "+m"(*(uint32_t *)p) : : "cc");
#else
	atomic_fetch_or_explicit((_Atomic uint32_t *)p, 0, memory_order_relaxed); /* nothing is ordered by it */
#endif
}

static inline void nic_migrate_foreign_lines(void *p, size_t len)
{
	NIC_EACH_LINE(nic_migrate_foreign_line, p, len);
}

/*
 * Lets go of a line that was written and that another core reads next: it goes to where both find it, instead of being fetched
 * from here.  A hint; a processor that does not know it takes it for no operation.
 */
static inline void nic_demote(const void *p)
{
#if defined(__x86_64__)
	__asm__ __volatile__("cldemote %0" : : "m"(*(const char *)p));
#else
	(void)p;
#endif
}

/* The same of all lines from there on; the first is where `p` is. */
static inline void nic_demote_lines(const void *p, size_t len)
{
	for (size_t i = 0; i < len; i += 64)
		nic_demote((const char *)p + i);
}

/*
 * Behind a look at a line that another core is about to write, and that has found nothing: the next one begins when this one is over.  Otherwise the processor, which
 * takes it for granted that one look finds what the last one did, has many under way, and the line comes the later for it (docs/findings.md, "Looks").
 */
static inline void nic_cpu_look_over(void)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

static inline void nic_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

#endif
