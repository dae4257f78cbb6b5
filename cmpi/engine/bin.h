/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/* Looking up a bin; for the files of the engine only.  Making bins is bin.c's. */
#ifndef MPIP_BIN_H
#define MPIP_BIN_H

#include "cmpi/engine/engine.h"

/* The high bits of a product depend on all bits of its factors; the two steps keep grids of sources and tags apart. */
static inline uint32_t mpip_hash(const struct mpip_engine *e, uint32_t context, int32_t source, int32_t tag)
{
	uint64_t x = ((uint64_t)(uint32_t)source << 32 | (uint32_t)tag) * 0x9e3779b97f4a7c15u;

	x ^= x >> 32;
	x = (x + context) * 0xd6e8feb86659fd93u;
	return (uint32_t)(x >> e->shift);
}

static inline bool mpip_bin_is(const struct mpip_bin *bin, uint32_t context, int32_t source, int32_t tag)
{
	return bin->tag == tag && bin->source == source && bin->context == context;
}

/* NULL: there is none, or it would be empty.  The next lookup is often for the same as the last. */
static inline struct mpip_bin *mpip_bin_find(struct mpip_engine *e, uint32_t context, int32_t source, int32_t tag)
{
	struct mpip_bin *bin = e->recent;

	if (__builtin_expect(bin && mpip_bin_is(bin, context, source, tag), 1))
		return bin;
	bin = e->bucket[mpip_hash(e, context, source, tag)];
	while (bin && !mpip_bin_is(bin, context, source, tag))
		bin = bin->chain;
	if (bin)
		e->recent = bin;
	return bin;
}

/* NULL: no memory. */
static inline struct mpip_bin *mpip_bin_get(struct mpip_engine *e, uint32_t context, int32_t source, int32_t tag)
{
	struct mpip_bin *bin = mpip_bin_find(e, context, source, tag);

	return __builtin_expect(bin != NULL, 1) ? bin : mpip_bin_create(e, context, source, tag);
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

static inline enum mpip_class mpip_class_of(int32_t source, int32_t tag)
{
	return (enum mpip_class)((tag == CMPI_ANY_TAG ? MPIP_ANY_TAG : 0) | (source == CMPI_ANY_SOURCE ? MPIP_ANY_SOURCE : 0));
}

/* The bin of that class in which a message lies. */
static inline int32_t mpip_class_source(enum mpip_class class, int32_t source)
{
	return class & MPIP_ANY_SOURCE ? CMPI_ANY_SOURCE : source;
}

static inline int32_t mpip_class_tag(enum mpip_class class, int32_t tag)
{
	return class & MPIP_ANY_TAG ? CMPI_ANY_TAG : tag;
}

/* Wildcards of tags do not match the tags of the MPI library itself. */
static inline bool mpip_class_matches(enum mpip_class class, int32_t tag)
{
	return !(class & MPIP_ANY_TAG) || tag >= 0;
}

#endif
