/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one way to copy a short payload.  Overlapping fixed-size moves: gcc 12 turns an inlined memcpy of bounded variable
 * length into `rep movsq`, three to five times slower at 8 bytes.
 */
#ifndef NIC_UTIL_COPY_H
#define NIC_UTIL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* n <= 64 */
static inline void nic_copy_short(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (n >= 16) {
		__uint128_t a, b, c, e;

		memcpy(&a, s, 16);
		memcpy(&b, s + n - 16, 16);
		if (n > 32) {
			memcpy(&c, s + 16, 16);
			memcpy(&e, s + n - 32, 16);
			memcpy(d + 16, &c, 16);
			memcpy(d + n - 32, &e, 16);
		}
		memcpy(d, &a, 16);
		memcpy(d + n - 16, &b, 16);
	} else if (n >= 8) {
		uint64_t a, b;

		memcpy(&a, s, 8);
		memcpy(&b, s + n - 8, 8);
		memcpy(d, &a, 8);
		memcpy(d + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t a, b;

		memcpy(&a, s, 4);
		memcpy(&b, s + n - 4, 4);
		memcpy(d, &a, 4);
		memcpy(d + n - 4, &b, 4);
	} else if (n) {
		d[0] = s[0];
		d[n / 2] = s[n / 2];
		d[n - 1] = s[n - 1];
	}
}

/* The compiler must know nothing of the length: of a bounded one it makes `rep movsq` again, which is slower than the library's copy. */
static inline void nic_copy(void *dst, const void *src, size_t n)
{
	if (n <= 64) {
		nic_copy_short(dst, src, n);
		return;
	}
	__asm__("" : "+r"(n));
	memcpy(dst, src, n);
}

/*
 * By plain stores.  What the library's copy does from 2 to 8 KB on, by string instruction or past the caches, is by far the better way to lines
 * that another core has, and may be much the worse one to lines that this core has just read.
 */
void nic_copy_stores(void *dst, const void *src, size_t n);

enum { NIC_OWNED_MOST = 6144 + 64 }; /* bytes, a head with them */

/*
 * To lines that this core has got hold of, n > 64: so many by plain stores, for which the library may take the string instruction from 2 KB on (that
 * is better to lines that another core has, and up to a half slower to one's own).
 */
void nic_copy_owned_many(void *dst, const void *src, size_t n);

static inline void nic_copy_owned(void *dst, const void *src, size_t n)
{
	if (n <= 64)
		nic_copy_short(dst, src, n);
	else
		nic_copy_owned_many(dst, src, n);
}

/* Out of memory whose lines are this core's alone, and while they are there makes them migrate (util/atomic.h). */
void nic_copy_migrating(void *dst, void *src, size_t n);

#endif
