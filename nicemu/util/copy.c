/* HOT. SPDX-License-Identifier: BSD-3-Clause */
#include "nicemu/util/atomic.h"
#include "nicemu/util/copy.h"

enum { AHEAD = 256, LINE = 64 }; /* bytes */

typedef uint64_t lanes __attribute__((vector_size(32)));
typedef uint64_t line __attribute__((vector_size(64)));

/*
 * n > 64, lanes of at most that.  The last piece overlaps with the one before it, and is read first.  ask: the lines are not here yet; stores leave in their
 * order, and each would wait for its line alone.  A macro, since the compiler keeps no lanes wider than its registers in a function that it has not been
 * inlined into yet.
 */
#define STORES(lanes, ask, d, s, n)                                                                                       \
	do {                                                                                                              \
		const size_t four_ = 4 * sizeof(lanes);                                                                   \
		uint8_t *end_ = (d) + (n) - sizeof(lanes);                                                                \
		lanes a_, b_, c_, e_, last_;                                                                              \
                                                                                                                          \
		memcpy(&last_, (s) + (n) - sizeof(lanes), sizeof(lanes));                                                 \
		for (; (n) > four_; (n) -= four_, (s) += four_, (d) += four_) {                                           \
			for (size_t k_ = 0; (ask) && k_ < four_; k_ += 64)                                                \
				nic_prefetch_write((d) + AHEAD + k_);                                                     \
			memcpy(&a_, (s), sizeof(lanes));                                                                  \
			memcpy(&b_, (s) + sizeof(lanes), sizeof(lanes));                                                  \
			memcpy(&c_, (s) + 2 * sizeof(lanes), sizeof(lanes));                                              \
			memcpy(&e_, (s) + 3 * sizeof(lanes), sizeof(lanes));                                              \
			memcpy((d), &a_, sizeof(lanes));                                                                  \
			memcpy((d) + sizeof(lanes), &b_, sizeof(lanes));                                                  \
			memcpy((d) + 2 * sizeof(lanes), &c_, sizeof(lanes));                                              \
			memcpy((d) + 3 * sizeof(lanes), &e_, sizeof(lanes));                                              \
		}                                                                                                         \
		for (; (n) > sizeof(lanes); (n) -= sizeof(lanes), (s) += sizeof(lanes), (d) += sizeof(lanes)) {           \
			memcpy(&a_, (s), sizeof(lanes));                                                                  \
			memcpy((d), &a_, sizeof(lanes));                                                                  \
		}                                                                                                         \
		memcpy(end_, &last_, sizeof(lanes));                                                                      \
	} while (0)

static void stores(uint8_t *d, const uint8_t *s, size_t n)
{
	STORES(__uint128_t, true, d, s, n);
}

static void owned(uint8_t *d, const uint8_t *s, size_t n)
{
	STORES(__uint128_t, false, d, s, n);
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) void stores_avx2(uint8_t *d, const uint8_t *s, size_t n)
{
	STORES(lanes, true, d, s, n);
}

static __attribute__((target("avx2"))) void owned_avx2(uint8_t *d, const uint8_t *s, size_t n)
{
	STORES(lanes, false, d, s, n);
}

static __attribute__((target("avx512f"))) void owned_avx512(uint8_t *d, const uint8_t *s, size_t n)
{
	STORES(line, false, d, s, n);
}

static inline void stores_widest(uint8_t *d, const uint8_t *s, size_t n)
{
	(__builtin_cpu_supports("avx2") ? stores_avx2 : stores)(d, s, n);
}

/* Not with 512 bits where only the first set of them is known: those processors lower their clock for it. */
static inline void owned_widest(uint8_t *d, const uint8_t *s, size_t n)
{
	if (nic_likely(__builtin_cpu_supports("avx512vbmi2")))
		owned_avx512(d, s, n);
	else if (__builtin_cpu_supports("avx2"))
		owned_avx2(d, s, n);
	else
		owned(d, s, n);
}
#else
static inline void stores_widest(uint8_t *d, const uint8_t *s, size_t n)
{
	stores(d, s, n);
}

static inline void owned_widest(uint8_t *d, const uint8_t *s, size_t n)
{
	owned(d, s, n);
}
#endif

void nic_copy_stores(void *dst, const void *src, size_t n)
{
	if (n <= 64)
		nic_copy_short(dst, src, n);
	else
		stores_widest(dst, src, n);
}

void nic_copy_owned_many(void *dst, const void *src, size_t n)
{
	if (nic_likely(n <= NIC_OWNED_MOST))
		owned_widest(dst, src, n);
	else
		memcpy(dst, src, n);
}

/* In pieces that are in the first-level cache when they have been read: two passes over 32 KB take a fourth longer than one. */
static void migrating(uint8_t *d, uint8_t *s, size_t n)
{
	enum { PIECE = 1024 };
	uint8_t *at = s - (uintptr_t)s % LINE;

	while (n) {
		size_t part = n < PIECE ? n : PIECE;

		nic_copy(d, s, part);
		d += part;
		s += part;
		n -= part;
		for (; at < s; at += LINE)
			nic_migrate_line(at);
	}
}

#if defined(__x86_64__)
/* Line by line: a tenth less than by pieces, a sixth where cores are far apart. */
static __attribute__((target("avx512f"))) void migrating_avx512(uint8_t *d, uint8_t *s, size_t n)
{
	uint8_t *at = s - (uintptr_t)s % LINE;

	for (; n >= LINE; n -= LINE, d += LINE, s += LINE, at += LINE) {
		line a;

		memcpy(&a, s, LINE);
		memcpy(d, &a, LINE);
		nic_migrate_line(at);
	}
	nic_copy_short(d, s, n);
	for (; at < s + n; at += LINE)
		nic_migrate_line(at);
}
#endif

void nic_copy_migrating(void *dst, void *src, size_t n)
{
#if defined(__x86_64__)
	if (nic_likely(__builtin_cpu_supports("avx512vbmi2"))) {
		migrating_avx512(dst, src, n);
		return;
	}
#endif
	migrating(dst, src, n);
}
