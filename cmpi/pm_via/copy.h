/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one way packets copy payload.  Short copies are two overlapping moves of a fixed size: a memcpy of bounded length
 * would be inlined as `rep movsq` by gcc 12, which is several times slower at 8 bytes.
 */
#ifndef VIA_COPY_H
#define VIA_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VIA_COPY_ENDS(type, to, from, n)                                    \
	do {                                                                \
		type first, last;                                           \
		memcpy(&first, (from), sizeof(first));                      \
		memcpy(&last, (from) + (n) - sizeof(last), sizeof(last));   \
		memcpy((to), &first, sizeof(first));                        \
		memcpy((to) + (n) - sizeof(last), &last, sizeof(last));     \
	} while (0)

struct via_copy16 {
	uint64_t word[2];
};

static inline void via_copy(void *dst, const void *src, size_t n)
{
	uint8_t *to = dst;
	const uint8_t *from = src;

	if (n > 64) {
		memcpy(to, from, n);
	} else if (n >= 32) { /* by 16: what gcc 12 moves by 32 it writes to the stack, too */
		VIA_COPY_ENDS(struct via_copy16, to, from, n);
		VIA_COPY_ENDS(struct via_copy16, to + 16, from + 16, n - 32);
	} else if (n >= 16) {
		VIA_COPY_ENDS(struct via_copy16, to, from, n);
	} else if (n >= 8) {
		VIA_COPY_ENDS(uint64_t, to, from, n);
	} else if (n >= 4) {
		VIA_COPY_ENDS(uint32_t, to, from, n);
	} else if (n >= 2) {
		VIA_COPY_ENDS(uint16_t, to, from, n);
	} else if (n) {
		*to = *from;
	}
}

/* Asks for the lines of what is about to be read, the first of many. */
static inline void via_ask_for(const void *data, size_t n)
{
	enum { MOST = 2048, LINE = 64 };
	uintptr_t end = (uintptr_t)data + (n < MOST ? n : MOST), at = (uintptr_t)data & ~(uintptr_t)(LINE - 1), four = end - 3 * LINE;

	for (; at < four; at += 4 * LINE) {
		__builtin_prefetch((const void *)at);
		__builtin_prefetch((const void *)(at + LINE));
		__builtin_prefetch((const void *)(at + 2 * LINE));
		__builtin_prefetch((const void *)(at + 3 * LINE));
	}
	for (; at < end; at += LINE)
		__builtin_prefetch((const void *)at);
}

#endif
