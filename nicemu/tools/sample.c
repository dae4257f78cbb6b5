/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking a sample (sample.h): the counters are read where they lie, in the slots of the card; the processes that count
 * do not take part, and notice nothing.
 */
#include "nicemu/tools/sample.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An array that holds n, with room for one more; arrays grow by doubling.  NULL: no memory, and it is as it was. */
static void *room(void *array, uint32_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	return realloc(array, (n ? 2 * (size_t)n : 1) * size);
}

int sample_row(const struct sample *sample, const char *name)
{
	for (uint32_t i = 0; i < sample->nrows; i++)
		if (strcmp(sample->row[i], name) == 0)
			return (int)i;
	return -1;
}

static int row_of(struct sample *sample, const char *name)
{
	int i = sample_row(sample, name);
	void *rows;

	if (i >= 0 || sample->nrows == SAMPLE_ROWS)
		return i;
	rows = room(sample->row, sample->nrows, sizeof(sample->row[0]));
	if (!rows)
		return -1;
	sample->row = rows;
	memcpy(sample->row[sample->nrows], name, NIC_COUNTER_NAME);
	return (int)sample->nrows++;
}

static int add_slot(void *arg, const struct nic_slot_info *info)
{
	struct sample *sample = arg;
	struct sample_card *card = &sample->card[sample->ncards - 1];
	struct sample_slot *slot = room(card->slot, card->nslots, sizeof(*slot));

	if (!slot) {
		sample->failed = true;
		return 1;
	}
	card->slot = slot;
	slot += card->nslots++;
	*slot = (struct sample_slot){ .slot = info->slot, .pid = info->pid, .daemon = info->daemon, .links = info->links, .vis = info->vis };
	memcpy(slot->command, info->command, sizeof(slot->command));
	for (uint32_t i = 0; i < info->ncounters; i++) {
		int row = row_of(sample, info->row[i].name);

		if (row >= 0)
			slot->value[row] = info->value[i];
		else
			sample->failed = true;
	}
	return 0;
}

struct filter {
	struct sample *sample;
	const char *device;
};

static int add_card(void *arg, const struct nic_card_info *info)
{
	struct filter *f = arg;
	struct sample *sample = f->sample;
	struct sample_card *card;

	if (f->device && strcmp(f->device, info->device) != 0)
		return 0;
	card = room(sample->card, sample->ncards, sizeof(*card));
	if (!card) {
		sample->failed = true;
		return 1;
	}
	sample->card = card;
	card[sample->ncards++] = (struct sample_card){ .info = *info };
	return 0;
}

void sample_take(const char *device, struct sample *out)
{
	struct filter f = { .sample = out, .device = device };
	uint32_t kept = 0, found;
	struct timespec t;

	*out = (struct sample){ .failed = false };
	clock_gettime(CLOCK_REALTIME, &t);
	out->time = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	out->failed = nic_cards(add_card, &f) != NIC_OK;
	found = out->ncards;
	for (uint32_t i = 0; i < found; i++) { /* those that are gone by now, or have nobody, make room for the next */
		out->card[kept] = out->card[i];
		out->ncards = kept + 1;
		if (nic_card_slots(&out->card[kept].info, add_slot, out) != NIC_OK) {
			out->unread = out->card[kept].info;
			out->unreadable++;
		}
		kept += out->card[kept].nslots != 0;
	}
	out->ncards = kept;
}

void sample_free(struct sample *sample)
{
	for (uint32_t i = 0; i < sample->ncards; i++)
		free(sample->card[i].slot);
	free(sample->card);
	free(sample->row);
	*sample = (struct sample){ .ncards = 0 };
}

const struct sample_slot *sample_find(const struct sample *sample, const struct sample_card *card, const struct sample_slot *slot)
{
	for (uint32_t i = 0; i < sample->ncards; i++) {
		const struct sample_card *c = &sample->card[i];

		if (c->info.card != card->info.card)
			continue;
		for (uint32_t j = 0; j < c->nslots; j++)
			if (c->slot[j].slot == slot->slot && c->slot[j].pid == slot->pid)
				return &c->slot[j];
	}
	return NULL;
}

uint64_t sample_total(const struct sample_card *card, uint32_t row)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < card->nslots; i++)
		sum += card->slot[i].value[row];
	return sum;
}
