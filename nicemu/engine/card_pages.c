/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card in this process's address space: its map, the heap behind it, the window; which pages may be written, exist, or are the
 * process's own by now.  What is in them is other files' business (mem/card.h, ctl/heap.c).
 */
#include "nicemu/engine/card_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "nicemu/util/log.h"

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* A card of this build has one of two sizes. */
static bool has_heap(const struct nic_card *card)
{
	struct stat st;

	return fstat(card->fd, &st) == 0 && st.st_size == (off_t)(sizeof(struct nic_card_map) + NIC_HEAP_SIZE);
}

/* The card and what is behind it in one piece, so that the owner's addresses tell peers where in the heap something is. */
static void *map_all(struct nic_card *card)
{
	const size_t size = sizeof(struct nic_card_map), heap = has_heap(card) ? NIC_HEAP_SIZE : 0;
	uint8_t *p = heap ? mmap(NULL, size + heap, PROT_NONE, MAP_SHARED | MAP_NORESERVE, card->fd, 0) : MAP_FAILED;

	if (p != MAP_FAILED) {
		void *window = mmap(NULL, heap, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, card->fd, size);

		if (window != MAP_FAILED && mprotect(p, size, PROT_READ) == 0) {
			madvise(window, heap, MADV_DONTDUMP);
			card->window = window;
			card->heap = heap;
			return p;
		}
		if (window != MAP_FAILED)
			munmap(window, heap);
		munmap(p, size + heap);
	}
	return mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, card->fd, 0);
}

bool nic_card_map_all(struct nic_card *card)
{
	void *p = map_all(card);

	if (p == MAP_FAILED) {
		nic_fail(NIC_SYSTEM, "cannot map the card (%zu MB of address space): %s", sizeof(struct nic_card_map) >> 20, strerror(errno));
		return false;
	}
	madvise(p, sizeof(struct nic_card_map) + card->heap, MADV_DONTDUMP);
	card->map = p;
	card->file = card->file || card->map->hdr.file;
	return nic_card_writable(card, &card->map->hdr, sizeof(card->map->hdr)) &&
	       nic_card_writable(card, card->map->bell, sizeof(card->map->bell)) &&
	       nic_card_writable(card, &card->map->pool, sizeof(struct nic_card_map) - offsetof(struct nic_card_map, pool));
}

void nic_card_unmap(struct nic_card *card)
{
	uint8_t *from = (uint8_t *)card->map, *end = from + sizeof(struct nic_card_map) + card->heap;
	struct kept *k;

	while ((k = card->kept)) {
		munmap(from, k->p - from);
		from = k->p + k->len;
		card->kept = k->next;
		free(k);
	}
	if (from < end)
		munmap(from, end - from);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

bool nic_card_writable(struct nic_card *card, const void *p, size_t len)
{
	uintptr_t from = (uintptr_t)p & ~(uintptr_t)(NIC_PAGE - 1), to = ((uintptr_t)p + len + NIC_PAGE - 1) & ~(uintptr_t)(NIC_PAGE - 1);

	(void)card;
	if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0)
		return true;
	nic_fail(NIC_SYSTEM, "cannot make a part of the card writable: %s", strerror(errno));
	return false;
}

/* A quarter of the file system is left for what the NICs themselves need: without buffers nothing moves any more. */
static bool leaves_room(const struct nic_card *card, size_t len)
{
	struct statvfs fs;

	if (!card->file || fstatvfs(card->fd, &fs) < 0 || fs.f_bavail * fs.f_frsize >= len + fs.f_blocks * fs.f_frsize / 4)
		return true;
	nic_fail(NIC_RESOURCE, "the file system that holds the card would be left with less than a quarter of its room (%zu bytes wanted)", len);
	return false;
}

/* When a handle was opened while another, the last one, was being closed. */
static bool meets_kept(const struct nic_card *card, const uint8_t *p, size_t len)
{
	for (const struct kept *k = card->kept; k; k = k->next)
		if (p < k->p + k->len && k->p < p + len)
			return nic_fail(NIC_RESOURCE, "where memory is free in the card this process has memory of its own") != NIC_OK;
	return false;
}

bool nic_card_open_pages(struct nic_card *card, void *p, size_t len)
{
	if (meets_kept(card, p, len) || !leaves_room(card, len) || !nic_card_reserve(card, p, len) || !nic_card_writable(card, p, len))
		return false;
	madvise(p, len, MADV_DODUMP); /* the consumer's data belong into its core file */
	return true;
}

void nic_card_close_pages(struct nic_card *card, void *p, size_t len)
{
	(void)card;
	if (mprotect(p, len, PROT_NONE) < 0)
		nic_log(NIC_LOG_WARN, "memory that was freed stays within reach: %s", strerror(errno));
	madvise(p, len, MADV_DONTDUMP);
}

/* What the file has of it: all else reads as zero in fresh memory too. */
static void copy_data(const struct nic_card *card, uint8_t *to, const uint8_t *p, size_t len)
{
	const off_t heap = sizeof(struct nic_card_map), start = p - (uint8_t *)card->map, end = start + (off_t)len;
	off_t data, hole;

	for (off_t at = start; at < end; at = hole) {
		data = lseek(card->fd, at, SEEK_DATA);
		if (data >= end || (data < 0 && errno == ENXIO))
			return;
		data = data < at ? at : data;
		hole = lseek(card->fd, data, SEEK_HOLE);
		hole = hole <= data || hole > end ? end : hole;
		memcpy(to + (data - start), card->window + (data - heap), hole - data);
	}
}

static bool note_kept(struct nic_card *card, uint8_t *p, size_t len)
{
	struct kept *k = malloc(sizeof(*k)), **at = &card->kept;

	if (!k)
		return false;
	while (*at && (*at)->p < p)
		at = &(*at)->next;
	*k = (struct kept){ .next = *at, .p = p, .len = len };
	*at = k;
	return true;
}

static bool has_others(const struct nic_card *card)
{
	bool others;

	pthread_mutex_lock(&nic_card_list_lock);
	others = card->refs > 1;
	pthread_mutex_unlock(&nic_card_list_lock);
	return others;
}

bool nic_card_keep_pages(struct nic_card *card, void *p, size_t len)
{
	uint8_t *own;

	if (has_others(card)) /* they may be given this place next */
		return false;
	own = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (own == MAP_FAILED)
		return false;
	copy_data(card, own, p, len);
	if (mremap(own, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p)
		return note_kept(card, p, len);
	munmap(own, len);
	return false;
}

bool nic_card_view(struct nic_card *card, const void *p, size_t len, void *at)
{
	return mmap(at, len, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, card->fd, (const char *)p - (const char *)card->map) == at;
}

void nic_card_poke(struct nic_card *card, const void *p, const void *from, size_t len)
{
	if (pwrite(card->fd, from, len, (const char *)p - (const char *)card->map) != (ssize_t)len)
		nic_log(NIC_LOG_ERROR, "cannot write to the card: %s", strerror(errno));
}

bool nic_card_reserve(struct nic_card *card, const void *p, size_t len)
{
	char link[32], path[256];
	ssize_t n;
	int err;

	if (!card->file)
		return true; /* a memfd has no quota of its own */
	err = posix_fallocate(card->fd, (const char *)p - (const char *)card->map, len);
	if (!err)
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", card->fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	nic_fail(NIC_RESOURCE, "the file system that holds the card, %s, is full (%zu bytes wanted): %s", path, len, strerror(err));
	return false;
}

void nic_card_populate(struct nic_card *card, const void *p, size_t len)
{
	uintptr_t from = (uintptr_t)p & ~(uintptr_t)(NIC_PAGE - 1), to = ((uintptr_t)p + len + NIC_PAGE - 1) & ~(uintptr_t)(NIC_PAGE - 1);

	(void)card;
#ifdef MADV_POPULATE_WRITE
	if (madvise((void *)from, to - from, MADV_POPULATE_WRITE) < 0)
#endif
		nic_log(NIC_LOG_DEBUG, "%zu bytes of the card come at their first use only", (size_t)(to - from));
}

void nic_card_discard(struct nic_card *card, void *p, size_t len)
{
	/* Where it cannot be done the memory stays the card's, for the next that asks for some. */
	if (fallocate(card->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (char *)p - (char *)card->map, len) < 0)
		nic_log(NIC_LOG_DEBUG, "memory cannot be given back: %s", strerror(errno));
}

void nic_card_zero(struct nic_card *card, void *p, size_t len)
{
	off_t from = (char *)p - (char *)card->map;

	static const uint8_t zero[NIC_PAGE];

	if (fallocate(card->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, len) == 0)
		return;
	for (size_t at = 0; at < len; at += NIC_PAGE)
		nic_card_poke(card, (char *)p + at, zero, len - at < NIC_PAGE ? len - at : NIC_PAGE);
}
