/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names for operations that a peer echoes in its answers: an index and a generation, never a pointer, and good only from
 * the peer the operation is with.
 */
#include <stdlib.h>

#include "cmpi/pm_via/via.h"

enum { FIRST = 64, LIMIT = 1 << 20 };

static bool grow(struct via_handles *h)
{
	uint32_t size = h->size ? h->size * 2 : FIRST;
	struct via_handle *slot;

	if (size > LIMIT)
		return false;
	slot = realloc(h->slot, size * sizeof(*slot));
	if (!slot)
		return false;
	h->slot = slot;
	for (uint32_t i = size; i-- > h->size;) {
		slot[i] = (struct via_handle){.next = h->free};
		h->free = i + 1;
	}
	h->size = size;
	return true;
}

uint64_t via_handle_create(struct cmpi *c, enum via_handle_kind kind, struct cmpi_proc *proc, void *object)
{
	struct via_handles *h = &c->handles;
	struct via_handle *slot;
	uint32_t number;

	if (!h->free && !grow(h))
		return 0;
	number = h->free;
	slot = &h->slot[number - 1];
	h->free = slot->next;
	slot->object = object;
	slot->proc = proc;
	slot->kind = (uint8_t)kind;
	return (uint64_t)slot->generation << 32 | number;
}

static struct via_handle *find(struct cmpi *c, uint64_t id)
{
	uint32_t number = (uint32_t)id;
	struct via_handle *slot;

	if (!number || number > c->handles.size)
		return NULL;
	slot = &c->handles.slot[number - 1];
	return slot->kind != VIA_HANDLE_FREE && slot->generation == id >> 32 ? slot : NULL;
}

void *via_handle_lookup(struct cmpi *c, enum via_handle_kind kind, const struct cmpi_proc *proc, uint64_t id)
{
	const struct via_handle *slot = find(c, id);

	return slot && slot->kind == kind && slot->proc == proc ? slot->object : NULL;
}

void via_handle_destroy(struct cmpi *c, uint64_t id)
{
	struct via_handle *slot = find(c, id);

	if (!slot)
		return;
	slot->kind = VIA_HANDLE_FREE;
	slot->generation++;
	slot->next = c->handles.free;
	c->handles.free = (uint32_t)id;
}

/* Takes out one operation of that kind with proc, starting at *cursor (0 first); NULL: none left. */
void *via_handle_remove(struct cmpi *c, enum via_handle_kind kind, const struct cmpi_proc *proc, uint32_t *cursor)
{
	while (*cursor < c->handles.size) {
		uint32_t i = (*cursor)++;
		const struct via_handle *slot = &c->handles.slot[i];
		void *object = slot->object;

		if (slot->kind == kind && slot->proc == proc) {
			via_handle_destroy(c, (uint64_t)slot->generation << 32 | (i + 1));
			return object;
		}
	}
	return NULL;
}

void via_handle_fini(struct cmpi *c)
{
	free(c->handles.slot);
	c->handles = (struct via_handles){0};
}
