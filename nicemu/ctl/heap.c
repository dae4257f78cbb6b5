/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the card for the consumer: extents of the heap behind the card's map, in granules of 64 KB, of which pages take
 * memory when they are touched.  Control path; what moves data to and from it is engine/dma.c.
 *
 * The table says of each granule who has it.  A process that dies leaves its granules marked; they are free again when the
 * slot has no link with anybody (nic_driver_reap), so that nobody's DMA engine works on them any more.  For the same reason
 * what a slot frees stays with it (KEPT) while it has links: a peer may be in the middle of a copy, and must not meet
 * another process's memory.  Whoever frees marks last, and whoever allocates marks first, so that a crash in between leaves
 * granules with an owner that is dead, never with two or with none while they are in use.
 */
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/util/log.h"

static struct nic_heap *heap_of(const struct nic *nic)
{
	return &nic->map->heap;
}

static uint8_t *granule(const struct nic *nic, uint32_t i)
{
	return nic_card_heap(nic->card) + (uint64_t)i * NIC_HEAP_GRANULE;
}

/* Others can write the word: it is not believed beyond the table. */
static uint32_t used(const struct nic *nic)
{
	uint32_t high = heap_of(nic)->high;

	return high < NIC_HEAP_GRANULES ? high : NIC_HEAP_GRANULES;
}

static void mark(struct nic *nic, uint32_t at, uint32_t n, uint16_t value)
{
	for (uint32_t i = 0; i < n; i++)
		heap_of(nic)->granule[at + i] = value;
}

/* ---- finding room; all under the card lock ----------------------------------------------------------------------- */

/* The first n granules in a row that are free or kept for this slot; NIC_HEAP_GRANULES: there are none. */
static uint32_t find(const struct nic *nic, uint32_t n)
{
	const uint16_t *owner = heap_of(nic)->granule, kept = (nic->me + 1) | NIC_HEAP_KEPT;
	uint32_t high = used(nic), from = 0;

	for (uint32_t i = 0; i < high && i - from < n; i++)
		if (owner[i] && owner[i] != kept)
			from = i + 1;
	return n <= NIC_HEAP_GRANULES - from ? from : NIC_HEAP_GRANULES;
}

static uint32_t find_or_reap(struct nic *nic, uint32_t n)
{
	uint32_t at = find(nic, n);

	if (at != NIC_HEAP_GRANULES)
		return at;
	nic_driver_reap(nic);
	return find(nic, n);
}

static bool raise(struct nic *nic, uint32_t end)
{
	struct nic_heap *heap = heap_of(nic);
	uint32_t high = used(nic);

	if (end <= high)
		return true;
	if (!nic_card_reserve(nic->card, &heap->granule[high], (end - high) * sizeof(heap->granule[0])))
		return false;
	heap->high = end;
	nic_store_order(); /* it counts before anything behind it has an owner */
	return true;
}

static int claim(struct nic *nic, uint32_t n, uint32_t *out)
{
	uint32_t at = find_or_reap(nic, n);

	if (at == NIC_HEAP_GRANULES)
		return nic_fail(NIC_RESOURCE, "the card has no room for so much in one piece; all its processes share %llu MB of address space",
		                (unsigned long long)(NIC_HEAP_SIZE >> 20));
	if (!raise(nic, at + n))
		return NIC_RESOURCE;
	mark(nic, at, 1, (nic->me + 1) | NIC_HEAP_FIRST);
	mark(nic, at + 1, n - 1, nic->me + 1);
	*out = at;
	return NIC_OK;
}

/* A NIC that runs elsewhere has links that this process does not see. */
static bool linked(const struct nic *nic)
{
	return nic->nactive || nic->remote;
}

/* Granules of the extent that starts at one of this slot; 0: none does. */
static uint32_t extent(const struct nic *nic, uint32_t at)
{
	const uint16_t *owner = heap_of(nic)->granule;
	uint32_t high = used(nic), n = 1;

	if (at >= high || owner[at] != ((nic->me + 1) | NIC_HEAP_FIRST))
		return 0;
	while (at + n < high && owner[at + n] == nic->me + 1)
		n++;
	return n;
}

/*
 * A file system without room ends whoever touches a page that is not there, a peer that still copies for one: there, pages
 * are given back only when nobody can.
 */
static void give_back(struct nic *nic, uint32_t at, uint32_t n)
{
	if (!linked(nic) || !nic->map->hdr.file)
		nic_card_discard(nic->card, granule(nic, at), (uint64_t)n * NIC_HEAP_GRANULE);
}

/* Out of the card, but not out of the process: in steps, so that not much is there twice. */
static bool keep(struct nic *nic, uint32_t at, uint32_t n)
{
	enum { STEP = 256 };

	for (uint32_t i = 0; i < n; i += STEP) {
		uint32_t k = n - i < STEP ? n - i : STEP;

		if (!nic_card_keep_pages(nic->card, granule(nic, at + i), (uint64_t)k * NIC_HEAP_GRANULE))
			return false;
		give_back(nic, at + i, k);
	}
	return true;
}

static void drop(struct nic *nic, uint32_t at, uint32_t n, bool leaving)
{
	if (!leaving || !keep(nic, at, n)) {
		nic_card_close_pages(nic->card, granule(nic, at), (uint64_t)n * NIC_HEAP_GRANULE);
		give_back(nic, at, n);
	}
	mark(nic, at, n, linked(nic) ? (nic->me + 1) | NIC_HEAP_KEPT : 0);
	nic_count(nic, heap_granules, -(int64_t)n);
}

/* ---- the consumer's ---------------------------------------------------------------------------------------------- */

static int allocate(struct nic *nic, uint64_t len, void **out)
{
	uint64_t pages = (len + NIC_PAGE - 1) & ~(uint64_t)(NIC_PAGE - 1);
	uint32_t n, at = 0;
	int err;

	if (!nic_card_heap(nic->card))
		return nic_fail(NIC_RESOURCE, "this process has no address space, or the card no permission (ulimit -v, -f), for the %llu MB of the heap",
		                (unsigned long long)(NIC_HEAP_SIZE >> 20));
	n = len < NIC_HEAP_SIZE ? (pages + NIC_PAGE + NIC_HEAP_GRANULE - 1) / NIC_HEAP_GRANULE : UINT32_MAX;
	nic_card_lock(nic->card);
	err = claim(nic, n, &at);
	if (err == NIC_OK) {
		nic_count(nic, heap_granules, n);
		if (!nic_card_open_pages(nic->card, granule(nic, at), pages)) {
			drop(nic, at, n, false);
			err = NIC_RESOURCE;
		}
	}
	nic_card_unlock(nic->card);
	if (err == NIC_OK)
		*out = granule(nic, at);
	return err;
}

int nic_mem_alloc(struct nic *nic, uint64_t len, void **out)
{
	int err = len ? allocate(nic, len, out) : nic_fail(NIC_PARAMETER, "memory of no length");

	nic_count(nic, no_heap, err == NIC_RESOURCE);
	return err;
}

int nic_mem_free(struct nic *nic, void *ptr)
{
	uint8_t *heap = nic_card_heap(nic->card);
	uint64_t off = (uintptr_t)ptr - (uintptr_t)heap;
	uint32_t at = off / NIC_HEAP_GRANULE, n;

	if (!heap || off >= NIC_HEAP_SIZE || off % NIC_HEAP_GRANULE)
		return NIC_PARAMETER;
	nic_card_lock(nic->card);
	n = extent(nic, at);
	if (n)
		drop(nic, at, n, false);
	nic_card_unlock(nic->card);
	return n ? NIC_OK : NIC_PARAMETER;
}

/* ---- leaving and dying ------------------------------------------------------------------------------------------- */

void nic_heap_release(struct nic *nic)
{
	if (!nic_card_heap(nic->card))
		return;
	nic_card_lock(nic->card);
	for (uint32_t at = 0, n; at < used(nic); at += n ? n : 1) {
		n = extent(nic, at);
		if (n)
			drop(nic, at, n, true);
	}
	nic_card_unlock(nic->card);
}

void nic_heap_recover(struct nic *nic, uint32_t dead)
{
	const uint16_t *owner = heap_of(nic)->granule;
	const uint64_t base = sizeof(struct nic_card_map);

	for (uint32_t at = 0, n, high = used(nic); at < high; at += n ? n : 1) {
		for (n = 0; at + n < high && (owner[at + n] & NIC_HEAP_OWNER) == dead + 1; n++)
			;
		if (!n)
			continue;
		nic_card_discard(nic->card, (uint8_t *)nic->map + base + (uint64_t)at * NIC_HEAP_GRANULE, (uint64_t)n * NIC_HEAP_GRANULE);
		mark(nic, at, n, 0);
	}
}
