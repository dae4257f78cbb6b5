/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The posted and the unexpected queue: who matches whom.  Not what happens to a match, and not the bins of wildcards for
 * messages, which are filled by unexpected.c.
 */
#include "cmpi/engine/bin.h"

/* ---- posted receives ---------------------------------------------------------------------------------------------- */

static inline void unlink_posted(struct mpip_engine *e, struct cmpi_req *req)
{
	struct mpip_bin *bin = req->bin;

	*(req->prev ? &req->prev->next : &bin->posted) = req->next;
	*(req->next ? &req->next->prev : &bin->posted_tail) = req->prev;
	mpip_req_set(req, MPIP_REQ_RECEIVING);
	e->nposted[bin->class]--;
	e->wild -= bin->class != MPIP_EXACT;
}

/* Of the receives with wildcards that a message matches the oldest, if it is older than `best`. */
static __attribute__((noinline)) struct cmpi_req *older_wild(struct mpip_engine *e, uint64_t key, struct cmpi_req *best)
{
	for (enum mpip_class class = MPIP_ANY_TAG; class < MPIP_CLASSES; class ++) {
		struct mpip_bin *bin;

		if (!e->nposted[class] || !mpip_class_matches(class, key))
			continue;
		bin = mpip_bin_find(e, mpip_class_key(class, key));
		if (bin && bin->posted && (!best || bin->posted->sequence < best->sequence))
			best = bin->posted;
	}
	return best;
}

/* The receive for a message, taken out of the queue; NULL: none. */
struct cmpi_req *mpip_match_posted(struct mpip_engine *e, uint64_t key)
{
	struct mpip_bin *bin = mpip_bin_find(e, key);
	struct cmpi_req *req = bin ? bin->posted : NULL;

	if (__builtin_expect(e->wild != 0, 0))
		req = older_wild(e, key, req);
	if (req)
		unlink_posted(e, req);
	return req;
}

/* A receive that no message matches so far.  False: no memory. */
bool mpip_enqposted(struct mpip_engine *e, struct cmpi_req *req)
{
	struct mpip_bin *bin = mpip_bin_get(e, mpip_req_key(req));

	if (__builtin_expect(!bin, 0))
		return false;
	mpip_bin_append(e, bin, req);
	e->nposted[bin->class]++;
	e->wild += bin->class != MPIP_EXACT;
	return true;
}

void mpip_deqposted(struct mpip_engine *e, struct cmpi_req *req)
{
	unlink_posted(e, req);
}

/* ---- unexpected messages ------------------------------------------------------------------------------------------- */

/* The oldest message that a receive matches; it stays in the queue. */
bool mpip_search_unexpected(struct mpip_engine *e, uint64_t key, struct cmpi_message **out)
{
	enum mpip_class class = mpip_class_of(key);
	struct mpip_bin *bin;

	*out = NULL;
	if (!e->first)
		return true;
	if (__builtin_expect(!(e->kept & 1 << class), 0) && !mpip_keep_class(e, class))
		return false;
	bin = mpip_bin_find(e, key);
	if (bin)
		*out = bin->unexpected;
	return true;
}

static inline void unlink_from(struct cmpi_message *message, enum mpip_class class)
{
	struct mpip_link *link = &message->link[class];
	struct mpip_bin *bin = link->bin;

	*(link->prev ? &link->prev->link[class].next : &bin->unexpected) = link->next;
	*(link->next ? &link->next->link[class].prev : &bin->unexpected_tail) = link->prev;
	link->bin = NULL;
}

void mpip_dequnexpected(struct mpip_engine *e, struct cmpi_message *message)
{
	for (enum mpip_class class = MPIP_EXACT; class < MPIP_CLASSES; class ++)
		if (message->link[class].bin)
			unlink_from(message, class);
	*(message->prev ? &message->prev->next : &e->first) = message->next;
	*(message->next ? &message->next->prev : &e->last) = message->prev;
	e->nunexpected--;
}
