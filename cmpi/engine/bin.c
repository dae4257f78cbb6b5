/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of bins: making them, and keeping its size in proportion to what is queued.  Bins that have become empty stay,
 * because the next message is often like the last; when the table is full they are swept out, and if that did not free
 * half of it, it doubles.  Either way the cost is spread over the bins made since.
 */
#include <stdlib.h>
#include <string.h>

#include "cmpi/engine/bin.h"

enum { FIRST_BUCKETS = 256, CHUNK = 64 };

struct chunk {
	struct mpip_bin bins[CHUNK]; /* first: aligned */
	struct chunk *next;
};

static bool buckets_set(struct mpip_engine *e, uint32_t n)
{
	struct mpip_bin **bucket = calloc(n, sizeof(*bucket));

	if (!bucket)
		return false;
	free(e->bucket);
	e->bucket = bucket;
	e->nbuckets = n;
	e->shift = 64 - (uint32_t)__builtin_ctz(n);
	return true;
}

bool mpip_init(struct mpip_engine *e, bool threads)
{
	*e = (struct mpip_engine){.threads = threads, .kept = 1 << MPIP_EXACT};
	return buckets_set(e, FIRST_BUCKETS);
}

void mpip_fini(struct mpip_engine *e)
{
	struct chunk *chunk;

	while ((chunk = e->chunks) != NULL) {
		e->chunks = chunk->next;
		free(chunk);
	}
	free(e->bucket);
	e->bucket = NULL;
}

static bool bins_add(struct mpip_engine *e)
{
	struct chunk *chunk = aligned_alloc(sizeof(struct mpip_bin), (sizeof(*chunk) + 63) / 64 * 64);

	if (!chunk)
		return false;
	chunk->next = e->chunks;
	e->chunks = chunk;
	for (int i = CHUNK; i--;) {
		chunk->bins[i].chain = e->free_bins;
		e->free_bins = &chunk->bins[i];
	}
	return true;
}

/* Takes every bin out of the table that is empty; the others go to *all. */
static void sweep(struct mpip_engine *e, struct mpip_bin **all)
{
	for (uint32_t i = 0; i < e->nbuckets; i++) {
		struct mpip_bin *bin = e->bucket[i], *next;

		for (; bin; bin = next) {
			struct mpip_bin **list = bin->posted || bin->unexpected ? all : &e->free_bins;

			next = bin->chain;
			bin->chain = *list;
			*list = bin;
			e->nbins -= list != all;
		}
		e->bucket[i] = NULL;
	}
}

static void table_insert(struct mpip_engine *e, struct mpip_bin *bin)
{
	struct mpip_bin **head = &e->bucket[mpip_hash(e, bin->key)];

	bin->chain = *head;
	*head = bin;
}

/* As many bins as buckets: makes room.  Without memory for a larger table, chains get longer. */
static void make_room(struct mpip_engine *e)
{
	struct mpip_bin *all = NULL, *bin;

	e->recent = NULL;
	sweep(e, &all);
	if (e->nbins > e->nbuckets / 2 && e->nbuckets < 1u << 30)
		buckets_set(e, e->nbuckets * 2);
	while ((bin = all) != NULL) {
		all = bin->chain;
		table_insert(e, bin);
	}
}

struct mpip_bin *mpip_bin_create(struct mpip_engine *e, uint64_t key)
{
	struct mpip_bin *bin;

	if (e->nbins >= e->nbuckets)
		make_room(e);
	if (!e->free_bins && !bins_add(e))
		return NULL;
	bin = e->free_bins;
	e->free_bins = bin->chain;
	*bin = (struct mpip_bin){.key = key, .class = mpip_class_of(key)};
	table_insert(e, bin);
	e->nbins++;
	return bin;
}
