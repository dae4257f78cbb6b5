/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A look at a word that another core is about to write, which asks for further lines at the moment that the news comes.
 *
 * Who waits for a message looks at one line and reads the others when that one has changed: twice the way from core to core, one behind the other.  To
 * ask for the others at each look takes them away from a writer that is at work on them.  But a look whose line is gone, because the writer has just got
 * hold of it, takes long, and meanwhile the processor goes on where it takes for granted that the program will.  Here that is a place where the program never
 * comes: it returns to another one than it was called from, which is known when the look is over.  There the others are asked for, by instructions that have no
 * effect but that.  A look that finds its line as it was is over before it gets there (docs/findings.md, "Looks that ask").
 */
#ifndef NIC_UTIL_LOOK_H
#define NIC_UTIL_LOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { NIC_LOOK_LINES = 32 }; /* that are asked for, at most */

/* Can this process look so?  Not on processors other than x86-64, nor where returns are checked (shadow stacks). */
bool nic_look_works(void);

/*
 * Is `*word` what is wanted?  Acquire.  The next look, if there is one, begins when this one is over, as behind nic_cpu_look_over.  Lines from `from` up to `end`,
 * one at least, are asked for if the word's is not here; where they are need not be true.
 */
bool nic_look(const _Atomic uint32_t *word, uint32_t wanted, const void *from, const void *end);

#endif
