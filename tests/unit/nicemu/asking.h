/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks that ask for further lines (util/look.h) are counted, and what they ask for is kept, which nobody sees otherwise.  For a test that includes the
 * source that looks so, behind this, instead of being linked with it.
 */
#ifndef TESTS_UNIT_NICEMU_ASKING_H
#define TESTS_UNIT_NICEMU_ASKING_H

#include "nicemu/util/look.h"

/* So many so far; the last one's arguments. */
static struct {
	uint32_t looks;
	const _Atomic uint32_t *word;
	uint32_t wanted;
	const uint8_t *from, *end;
} asking;

static inline bool asking_look(const _Atomic uint32_t *word, uint32_t wanted, const void *from, const void *end)
{
	asking.looks++;
	asking.word = word;
	asking.wanted = wanted;
	asking.from = from;
	asking.end = end;
	return nic_look(word, wanted, from, end);
}

#define nic_look asking_look

#endif
