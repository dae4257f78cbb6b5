/* HOT. SPDX-License-Identifier: BSD-3-Clause */
#include "nicemu/util/atomic.h"
#include "nicemu/util/copy.h"

enum { AHEAD = 256 }; /* bytes; stores leave in their order, and each would wait for its line alone */

typedef uint64_t lanes __attribute__((vector_size(32)));
typedef uint64_t line __attribute__((vector_size(64)));

/* As wide as the caller's instructions are. */
static inline __attribute__((always_inline)) void stores(uint8_t *d, const uint8_t *s, size_t n)
{
	lanes a, b, c, e;

	for (; n >= 4 * sizeof(lanes); n -= 4 * sizeof(lanes), s += 4 * sizeof(lanes), d += 4 * sizeof(lanes)) {
		nic_prefetch_write(d + AHEAD);
		nic_prefetch_write(d + AHEAD + 64);
		memcpy(&a, s, sizeof(a));
		memcpy(&b, s + sizeof(a), sizeof(b));
		memcpy(&c, s + 2 * sizeof(a), sizeof(c));
		memcpy(&e, s + 3 * sizeof(a), sizeof(e));
		memcpy(d, &a, sizeof(a));
		memcpy(d + sizeof(a), &b, sizeof(b));
		memcpy(d + 2 * sizeof(a), &c, sizeof(c));
		memcpy(d + 3 * sizeof(a), &e, sizeof(e));
	}
	if (n > 64) {
		nic_copy_short(d, s, 64);
		d += 64, s += 64, n -= 64;
	}
	nic_copy_short(d, s, n);
}

/*
 * n > 64, lanes of at most that.  The last piece overlaps with the one before it, and is read first.  A macro, since the compiler keeps no lanes wider
 * than its registers in a function that it has not been inlined into yet.
 */
#define OWNED(lanes, d, s, n)                                                                                             \
	do {                                                                                                              \
		uint8_t *end_ = (d) + (n) - sizeof(lanes);                                                                \
		lanes a_, b_, c_, e_, last_;                                                                              \
                                                                                                                          \
		memcpy(&last_, (s) + (n) - sizeof(lanes), sizeof(lanes));                                                 \
		for (; (n) > 4 * sizeof(lanes); (n) -= 4 * sizeof(lanes), (s) += 4 * sizeof(lanes), (d) += 4 * sizeof(lanes)) { \
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

static void owned(uint8_t *d, const uint8_t *s, size_t n)
{
	OWNED(__uint128_t, d, s, n);
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) void stores_avx2(uint8_t *d, const uint8_t *s, size_t n)
{
	stores(d, s, n);
}

static __attribute__((target("avx2"))) void owned_avx2(uint8_t *d, const uint8_t *s, size_t n)
{
	OWNED(lanes, d, s, n);
}

static __attribute__((target("avx512f"))) void owned_avx512(uint8_t *d, const uint8_t *s, size_t n)
{
	OWNED(line, d, s, n);
}

void nic_copy_stores(void *dst, const void *src, size_t n)
{
	(__builtin_cpu_supports("avx2") ? stores_avx2 : stores)(dst, src, n);
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
void nic_copy_stores(void *dst, const void *src, size_t n)
{
	stores(dst, src, n);
}

static inline void owned_widest(uint8_t *d, const uint8_t *s, size_t n)
{
	owned(d, s, n);
}
#endif

void nic_copy_owned_many(void *dst, const void *src, size_t n)
{
	if (nic_likely(n <= NIC_OWNED_MOST))
		owned_widest(dst, src, n);
	else
		memcpy(dst, src, n);
}
