/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages of a's, which b times (ctl/rdma_rows.c). */
#ifndef TESTS_LONG_H
#define TESTS_LONG_H

#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/clock.h"
#include "tests/unit/nicemu/shared.h"

enum {
	LONGEST = 0xccc, /* what is read at first: above 1 MB, of each kind; */
	FAR = 0xece,     /* where no cache is shared above 128 KB, but of single ones */
};
enum { KB = 1 << 10, MB = 1 << 20, MANY = 64 * MB, LONG = 64 * KB, SLOW = 400000, FAST = 160000, BEST = 80000 }; /* ns for a MB */

static inline struct nic_link *ba(void)
{
	return p.b.nic->link[p.a.nic->me];
}

/* Of that class, where it is now. */
static inline struct nic_row_class *class_of(uint32_t class)
{
	return &ba()->row.at[ba()->row.place].of[class];
}

/* Rows of that class until what the receiver would rather have is `reads`; how many, at most `most`. */
static inline int until(uint32_t class, uint64_t sent, uint64_t read, uint32_t reads, int most)
{
	int n = 0;

	for (; n < most && ba()->row.reads != reads; n++) {
		bool way = ba()->row.reads >> class & 1;

		nic_row_took(ba(), class, way, (way ? read : sent) * (MANY / MB), MANY);
	}
	return n;
}

/* Of the next rows, how many are read? */
static inline int reads_of(uint32_t class, uint64_t sent, uint64_t read, int rows)
{
	int n = 0;

	for (int i = 0; i < rows; i++) {
		bool way = ba()->row.reads >> class & 1;

		nic_row_took(ba(), class, way, (way ? read : sent) * (MANY / MB), MANY);
		n += way;
	}
	return n;
}

#define BEGIN_ROWS()                                      \
	do {                                              \
		BEGIN(0, UINT32_MAX);                     \
		ab()->send_max = ba()->send_max = 8 * MB; \
		ab()->migrates = ba()->migrates = false;  \
		ab()->row.far = ba()->row.far = 150;      \
		nic_row_start(ab());                      \
		nic_row_start(ba());                      \
	} while (0)

/* The line by which b sees how far a's processor is from its own. */
static inline uint64_t *far_line(void)
{
	return &ba()->slot->counter[NIC_C_packets_received];
}

#define BEGIN_LOOKS()                                                       \
	do {                                                                \
		uint64_t word;                                              \
                                                                            \
		BEGIN_ROWS();                                               \
		if (!nic_clock_of_load(far_line(), &word)) {                \
			pair_close(&p);                                     \
			SKIP("here nobody can say how long a load takes");  \
		}                                                           \
		CHECK_EQ(word, *far_line());                                \
	} while (0)

/* `end` is going to send such a message. */
static inline bool is_sent(const struct end *end, uint64_t len, bool *single)
{
	*single = false;
	return nic_rather_sent(end->nic, end->vi, (uintptr_t)end->mem, len, single);
}

static inline bool rather_sent(const struct end *end, uint64_t len)
{
	bool single;

	return is_sent(end, len, &single);
}

#endif
