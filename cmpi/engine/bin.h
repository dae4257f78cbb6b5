/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/* Looking up a bin; for the files of the engine only.  Making bins is bin.c's. */
#ifndef MPIP_BIN_H
#define MPIP_BIN_H

#include "cmpi/engine/engine.h"

/* The high bits of a product depend on all bits of its factors; the two steps keep grids of sources and tags apart. */
static inline uint32_t mpip_hash(const struct mpip_engine *e, uint64_t key)
{
	uint64_t x = key * 0x9e3779b97f4a7c15u;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return (uint32_t)(x >> e->shift);
}

/* NULL: there is none, or it would be empty.  The next lookup is often for the same as the last. */
static inline struct mpip_bin *mpip_bin_find(struct mpip_engine *e, uint64_t key)
{
	struct mpip_bin *bin = e->recent;

	if (__builtin_expect(bin && bin->key == key, 1))
		return bin;
	bin = e->bucket[mpip_hash(e, key)];
	while (bin && bin->key != key)
		bin = bin->chain;
	if (bin)
		e->recent = bin;
	return bin;
}

/* NULL: no memory. */
static inline struct mpip_bin *mpip_bin_get(struct mpip_engine *e, uint64_t key)
{
	struct mpip_bin *bin = mpip_bin_find(e, key);

	return __builtin_expect(bin != NULL, 1) ? bin : mpip_bin_create(e, key);
}

/* Behind the receives that are posted there; the caller counts it. */
static inline void mpip_bin_append(struct mpip_engine *e, struct mpip_bin *bin, struct cmpi_req *req)
{
	req->bin = bin;
	req->sequence = e->sequence++;
	req->next = NULL;
	req->prev = bin->posted ? bin->posted_tail : NULL;
	*(bin->posted ? &bin->posted_tail->next : &bin->posted) = req;
	bin->posted_tail = req;
	mpip_req_set(req, MPIP_REQ_RECVHEAD);
}

/* The first receive of a bin without wildcards, for a message. */
static inline void mpip_bin_take(struct mpip_engine *e, struct mpip_bin *bin, struct cmpi_req *req)
{
	struct cmpi_req *next = req->next;

	bin->posted = next;
	*(next ? &next->prev : &bin->posted_tail) = NULL;
	mpip_req_set(req, MPIP_REQ_RECEIVING);
	e->nposted[MPIP_EXACT]--;
}

static inline enum mpip_class mpip_class_of(uint64_t key)
{
	return (enum mpip_class)((mpip_key_tag(key) == CMPI_ANY_TAG ? MPIP_ANY_TAG : 0) |
	                         (mpip_key_source(key) == CMPI_ANY_SOURCE ? MPIP_ANY_SOURCE : 0));
}

/* The bin of that class in which a message lies: -1 is all bits. */
static inline uint64_t mpip_class_key(enum mpip_class class, uint64_t key)
{
	return key | (class & MPIP_ANY_SOURCE ? mpip_key(0, CMPI_ANY_SOURCE, 0) : 0) | (class & MPIP_ANY_TAG ? mpip_key(0, 0, CMPI_ANY_TAG) : 0);
}

/* Wildcards of tags do not match the tags of the MPI library itself. */
static inline bool mpip_class_matches(enum mpip_class class, uint64_t key)
{
	return !(class & MPIP_ANY_TAG) || mpip_key_tag(key) >= 0;
}

#endif
