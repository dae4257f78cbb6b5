/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of objects, and the making of handles.  See object.h; nothing here is hot.
 */
#include "vipl/src/object.h"

#include <string.h>

struct vipl_nic vipl_nics[VIPL_MAX_NIC];
struct vipl_vi vipl_vis[VIPL_MAX_VI];
struct vipl_cq vipl_cqs[VIPL_MAX_CQ];
struct vipl_conn vipl_conns[VIPL_MAX_CONN];

_Static_assert(VIPL_MAX_VI <= 1 << VIPL_INDEX_BITS && NIC_MAX_PTAG < 1 << VIPL_INDEX_BITS, "index fits a handle");
_Static_assert(VIPL_GENERATION_SHIFT == VIPL_INDEX_SHIFT + VIPL_INDEX_BITS, "fields of a handle do not overlap");
_Static_assert(sizeof(uintptr_t) == 8, "a handle has 48 bits");

/* Objects [0, used) have existed once; those of them that are free are chained. */
struct table {
	char *base;
	size_t stride;
	uint32_t max;
	uint32_t used;
	uint32_t first_free; /* index + 1 */
};

static struct table tables[] = {
	[VIPL_NIC] = { (char *)vipl_nics, sizeof(struct vipl_nic), VIPL_MAX_NIC, 0, 0 },
	[VIPL_VI] = { (char *)vipl_vis, sizeof(struct vipl_vi), VIPL_MAX_VI, 0, 0 },
	[VIPL_CQ] = { (char *)vipl_cqs, sizeof(struct vipl_cq), VIPL_MAX_CQ, 0, 0 },
	[VIPL_CONN] = { (char *)vipl_conns, sizeof(struct vipl_conn), VIPL_MAX_CONN, 0, 0 },
};
static struct vipl_lock tables_lock; /* innermost: taken under a NIC's lock */

static struct vipl_object *at(const struct table *t, uint32_t index)
{
	return (struct vipl_object *)(void *)(t->base + index * t->stride);
}

static struct vipl_object *take_free(struct table *t)
{
	struct vipl_object *object = NULL;

	if (t->first_free) {
		object = at(t, t->first_free - 1);
		t->first_free = object->next_free;
	} else if (t->used < t->max) {
		object = at(t, t->used++);
	}
	return object;
}

void *vipl_object_create(enum vipl_type type, struct vipl_nic *nic)
{
	struct table *t = &tables[type];
	struct vipl_object *object;

	vipl_lock_take(&tables_lock);
	object = take_free(t);
	vipl_lock_give(&tables_lock);
	if (!object)
		return NULL;
	/* A NIC is not cleared: a late thread may stand in front of its lock. */
	if (type != VIPL_NIC)
		memset((char *)object + sizeof *object, 0, t->stride - sizeof *object);
	object->generation = (object->generation + 1) & VIPL_GENERATION_MASK;
	/* Relaxed: nobody looks before the handle is published. */
	atomic_store_explicit(&object->nic, nic, memory_order_relaxed);
	return object;
}

uintptr_t vipl_object_publish(enum vipl_type type, void *any)
{
	const struct table *t = &tables[type];
	struct vipl_object *object = any;
	uintptr_t index = (uintptr_t)((char *)any - t->base) / t->stride;
	uintptr_t handle = (uintptr_t)object->generation << VIPL_GENERATION_SHIFT | index << VIPL_INDEX_SHIFT |
	                   (uintptr_t)type << 1;
	const struct vipl_nic *nic = type == VIPL_NIC ? any : vipl_nic_of(object);

	/* Relaxed: who needs no lock comes after this by the program's own order. */
	atomic_store_explicit(&object->unlocked, nic->unlocked ? handle : 0, memory_order_relaxed);
	atomic_store_explicit(&object->handle, handle, memory_order_release); /* H1 */
	return handle;
}

void vipl_object_hide(void *any)
{
	struct vipl_object *object = any;

	/* Relaxed: the NIC's lock orders it for everybody who may still use the object; or the program's order does. */
	atomic_store_explicit(&object->handle, 0, memory_order_relaxed);
	atomic_store_explicit(&object->unlocked, 0, memory_order_relaxed);
}

void vipl_object_destroy(enum vipl_type type, void *any)
{
	struct table *t = &tables[type];
	struct vipl_object *object = any;

	vipl_object_hide(any);
	vipl_lock_take(&tables_lock);
	object->next_free = t->first_free;
	t->first_free = (uint32_t)((size_t)((char *)any - t->base) / t->stride) + 1;
	vipl_lock_give(&tables_lock);
}

void vipl_object_each(enum vipl_type type, const struct vipl_nic *nic, void (*fn)(void *object))
{
	const struct table *t = &tables[type];
	uint32_t used;

	vipl_lock_take(&tables_lock);
	used = t->used;
	vipl_lock_give(&tables_lock);
	for (uint32_t i = 0; i < used; i++) {
		struct vipl_object *object = at(t, i);

		if (vipl_nic_of(object) == nic && vipl_handle_of(object))
			fn(object);
	}
}

void vipl_object_forget(void)
{
	for (uint32_t i = 0; i < tables[VIPL_NIC].used; i++)
		vipl_lock_give(&vipl_nics[i].lock);
	for (unsigned type = VIPL_NIC; type <= VIPL_CONN; type++) {
		struct table *t = &tables[type];

		for (uint32_t i = 0; i < t->used; i++)
			vipl_object_hide(at(t, i));
		t->used = t->first_free = 0;
	}
	vipl_lock_give(&tables_lock);
}
