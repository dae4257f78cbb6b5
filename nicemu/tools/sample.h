/* SPDX-License-Identifier: BSD-3-Clause */
/* One look at the counters of all running processes, with the same counter in the same row for each of them. */
#ifndef NIC_TOOLS_SAMPLE_H
#define NIC_TOOLS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "nicemu/nic.h"

enum { SAMPLE_ROWS = 256 };

struct sample_slot {
	uint32_t slot, links, vis;
	int pid, daemon;
	char command[32];
	uint64_t value[SAMPLE_ROWS]; /* by row; 0 where the process does not count that */
};

struct sample_card {
	struct nic_card_info info;
	struct sample_slot *slot;
	uint32_t nslots;
};

struct sample {
	double time; /* of the clock on the wall, seconds */
	struct sample_card *card;
	uint32_t ncards;
	char (*row)[NIC_COUNTER_NAME];
	uint32_t nrows;
	bool failed; /* what is here is right, but not all */
	uint32_t unreadable;         /* cards of which nothing could be read */
	struct nic_card_info unread; /* one of them */
};

/* Looks at the cards of that device name; at all when it is NULL. */
void sample_take(const char *device, struct sample *out);
void sample_free(struct sample *sample);

/* Row of that name; -1: nobody counts it. */
int sample_row(const struct sample *sample, const char *name);
/* The same process in another sample; NULL: it was not there. */
const struct sample_slot *sample_find(const struct sample *sample, const struct sample_card *card, const struct sample_slot *slot);
/* Sum over the slots of a card. */
uint64_t sample_total(const struct sample_card *card, uint32_t row);

#endif
