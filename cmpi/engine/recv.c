/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives and probes: a message that is there already goes to the module with its request (pt_uirecv), a receive that finds
 * none is posted.  A message that comes later is matched by the module's call of mpip_arrived.
 */
#include "cmpi/engine/bin.h"

/* ---- what modules are told of posted receives -------------------------------------------------------------------------- */

static inline void tell_posted(struct cmpi *c, const struct cmpi_req *req)
{
	if (__builtin_expect(req->source == CMPI_ANY_SOURCE, 0))
		mpip_engine(c)->protocol->pt_postedrcvany(c, req->comm);
	else if (__builtin_expect(req->to != NULL, 0))
		mpip_process(req->to)->protocol->pt_postedreceive(c, req->to);
}

static inline void tell_unposted(struct cmpi *c, const struct cmpi_req *req, struct cmpi_proc *by)
{
	if (__builtin_expect(req->source == CMPI_ANY_SOURCE, 0)) {
		if (by)
			mpip_engine(c)->protocol->pt_matchedrcvany(c, req->comm, by);
		else
			mpip_engine(c)->protocol->pt_unpostedrcvany(c, req->comm);
	} else if (__builtin_expect(req->to != NULL, 0)) {
		mpip_process(req->to)->protocol->pt_unpostedreceive(c, req->to);
	}
}

static __attribute__((noinline)) struct cmpi_req *arrived(struct cmpi *c, struct cmpi_proc *from, uint64_t key)
{
	struct cmpi_req *req = mpip_key_ok(key) ? mpip_match_posted(mpip_engine(c), key) : NULL;

	if (req)
		tell_unposted(c, req, from);
	return req;
}

/*
 * A message of `from` has arrived: the receive for it, which is the module's from now on.  NULL: it is unexpected, or no message may have
 * that key (none has a wildcard's).  The usual one is like the last, has a receive that no module is to be told of, and there are no wildcards.
 */
struct cmpi_req *mpip_arrived(struct cmpi *c, struct cmpi_proc *from, uint64_t key)
{
	struct mpip_engine *e = mpip_engine(c);
	struct mpip_bin *bin = e->recent;
	struct cmpi_req *req;

	if (__builtin_expect(!bin || bin->key != key || e->wild || !(req = bin->posted) || req->to, 0))
		return arrived(c, from, key);
	mpip_bin_take(e, bin, req);
	return req;
}

/* A posted receive that is to end without a message. */
void mpip_unpost(struct cmpi *c, struct cmpi_req *req)
{
	mpip_deqposted(mpip_engine(c), req);
	tell_unposted(c, req, NULL);
}

/* ---- receives -------------------------------------------------------------------------------------------------------------- */

static inline int take(struct cmpi *c, struct cmpi_message *message, struct cmpi_req *req)
{
	mpip_req_set(req, MPIP_REQ_RECEIVING);
	return mpip_process(message->from)->protocol->pt_uirecv(c, message->from, message, req);
}

static inline int post(struct cmpi *c, struct cmpi_req *req)
{
	if (__builtin_expect(!mpip_enqposted(mpip_engine(c), req), 0))
		return CMPI_RESOURCE;
	tell_posted(c, req);
	return CMPI_OK;
}

static __attribute__((noinline)) int start(struct cmpi *c, struct cmpi_req *req)
{
	struct mpip_engine *e = mpip_engine(c);
	struct cmpi_message *message;
	int err = CMPI_RESOURCE;

	mpip_lock(e);
	if (__builtin_expect(!mpip_search_unexpected(e, mpip_req_key(req), &message), 0))
		goto out;
	if (message) {
		mpip_dequnexpected(e, message);
		err = take(c, message, req);
	} else {
		err = post(c, req);
	}
	mpip_tell(e);
out:
	mpip_unlock(e);
	return err;
}

/* The usual one is like the last, without wildcards, no message waits, and no module is to be told. */
int cmpi_irecv(struct cmpi *c, struct cmpi_req *req)
{
	struct mpip_engine *e = mpip_engine(c);
	struct mpip_bin *bin = __builtin_expect(e->threads, 0) ? NULL : e->recent; /* without the lock nothing else is looked at */

	if (__builtin_expect(!bin || e->first || bin->key != mpip_req_key(req) || bin->class != MPIP_EXACT || req->to, 0))
		return start(c, req);
	mpip_bin_append(e, bin, req);
	e->nposted[MPIP_EXACT]++;
	return CMPI_OK;
}

int cmpi_imrecv(struct cmpi *c, struct cmpi_message *message, struct cmpi_req *req)
{
	struct mpip_engine *e = mpip_engine(c);
	int err;

	mpip_lock(e);
	err = take(c, message, req);
	mpip_tell(e);
	mpip_unlock(e);
	return err;
}

/* ---- probes ------------------------------------------------------------------------------------------------------------------ */

static struct cmpi_message *probe(struct cmpi *c, struct cmpi_comm *comm, int32_t source, int32_t tag, bool out,
                                  struct cmpi_status *status)
{
	struct mpip_engine *e = mpip_engine(c);
	struct cmpi_message *message;

	mpip_lock(e);
	if (!mpip_search_unexpected(e, mpip_key(comm->context, source, tag), &message))
		message = NULL; /* no memory to look: the caller will ask again */
	if (message)
		*status = (struct cmpi_status){.source = mpip_key_source(message->key), .tag = mpip_key_tag(message->key), .length = message->length};
	if (message && out)
		mpip_dequnexpected(e, message);
	mpip_unlock(e);
	return message;
}

bool cmpi_iprobe(struct cmpi *c, struct cmpi_comm *comm, int32_t source, int32_t tag, struct cmpi_status *status)
{
	return probe(c, comm, source, tag, false, status) != NULL;
}

struct cmpi_message *cmpi_improbe(struct cmpi *c, struct cmpi_comm *comm, int32_t source, int32_t tag,
                                  struct cmpi_status *status)
{
	return probe(c, comm, source, tag, true, status);
}

bool cmpi_is_done(const struct cmpi_req *req)
{
	return __atomic_load_n(&req->state, __ATOMIC_ACQUIRE) == MPIP_REQ_DONE; /* A2: pairs with R2 in mpip_req_tell */
}
