/* HOT. SPDX-License-Identifier: BSD-3-Clause */
#include "nicemu/util/atomic.h"
#include "nicemu/util/copy.h"

enum { AHEAD = 256 }; /* bytes; stores leave in their order, and each would wait for its line alone */

typedef uint64_t lanes __attribute__((vector_size(32)));

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

#if defined(__x86_64__)
static __attribute__((target("avx2"))) void stores_avx2(uint8_t *d, const uint8_t *s, size_t n)
{
	stores(d, s, n);
}

void nic_copy_stores(void *dst, const void *src, size_t n)
{
	(__builtin_cpu_supports("avx2") ? stores_avx2 : stores)(dst, src, n);
}
#else
void nic_copy_stores(void *dst, const void *src, size_t n)
{
	stores(dst, src, n);
}
#endif
