/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ADI progress engine: requests, posted and unexpected queues, matching.  It decides which receive a message belongs to;
 * the protocol modules move the data.  What it keeps of a struct cmpi and of a peer is the first member of each.
 *
 * Queues.  Everything that waits for a match lies in a *bin*: one for each key (context, source, tag) that is in use, wildcards
 * (-1) included, found by hash.  A posted receive is in the bin of what it asks for, in the order of posting.  A message is
 * in the bin of what it is, and in up to three more: those of the wildcards that match it.  So the oldest match of either is
 * at the head of some bin, and finding it takes one lookup for a message, four when wildcards are posted, and one for a
 * receive or a probe, however much is queued.
 *
 * The bins of wildcards cost a message three more lookups, so those of a class are kept only once a receive or a probe
 * has asked with that class of wildcard; they are filled then from the list of all messages, once.
 *
 * Everything here runs under the engine's lock, except the public calls, which take it (cmpi.h).
 */
#ifndef MPIP_ENGINE_H
#define MPIP_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cmpi/cmpi.h"
#include "cmpi/pm_via/lock.h"
#include "cmpi/protocol.h"

enum mpip_req_state {
	MPIP_REQ_DONE,      /* or never started */
	MPIP_REQ_SENDREADY, /* in the send queue of its process */
	MPIP_REQ_SENDING,   /* the module's */
	MPIP_REQ_RECVHEAD,  /* posted */
	MPIP_REQ_RECEIVING, /* matched: the module's */
};

/* Classes of what a receive asks for. */
enum mpip_class { MPIP_EXACT, MPIP_ANY_TAG, MPIP_ANY_SOURCE, MPIP_ANY, MPIP_CLASSES };

struct mpip_link {
	struct cmpi_message *next, *prev;
	struct mpip_bin *bin; /* NULL: in none of that class */
};

/* What a message is, or what a receive asks for, in one word: context, source and tag, from the low bits on. */
static inline uint64_t mpip_key(uint16_t context, int32_t source, int32_t tag)
{
	return context | (uint64_t)(uint16_t)source << 16 | (uint64_t)(uint32_t)tag << 32;
}

static inline int32_t mpip_key_source(uint64_t key)
{
	uint16_t source = (uint16_t)(key >> 16);

	return source > CMPI_RANK_MAX ? CMPI_ANY_SOURCE : source;
}

static inline int32_t mpip_key_tag(uint64_t key)
{
	return (int32_t)(key >> 32);
}

/* May a message have it?  It comes from a peer. */
static inline bool mpip_key_ok(uint64_t key)
{
	return mpip_key_source(key) != CMPI_ANY_SOURCE && mpip_key_tag(key) != CMPI_ANY_TAG;
}

/* What a receive asks for. */
static inline uint64_t mpip_req_key(const struct cmpi_req *req)
{
	return mpip_key(req->comm->context, req->source, req->tag);
}

/* A message that has arrived before its receive.  Part of a module's record of it. */
struct cmpi_message {
	struct cmpi_proc *from;
	struct cmpi_message *next, *prev; /* all, by arrival */
	struct mpip_link link[MPIP_CLASSES];
	uint64_t key;
	uint64_t length;
};

/* 64 bytes, so that an empty bin that is used again and again costs one cache line. */
struct mpip_bin {
	struct mpip_bin *chain;
	uint64_t key;
	enum mpip_class class;
	uint32_t reserved;
	struct cmpi_req *posted, *posted_tail;
	struct cmpi_message *unexpected, *unexpected_tail;
	uint64_t reserved2;
};
_Static_assert(sizeof(struct mpip_bin) == 64, "a bin is a cache line");

/* Of a peer; the first member of struct cmpi_proc. */
struct mpip_process {
	const struct cmpi_protocol *protocol;
	struct cmpi_req *sendhead, *sendtail; /* sends that the module has not taken */
	uint32_t nrecvs, nsends;              /* receives posted from it, as told; sends queued */
	uint32_t held;                        /* bytes of unexpected messages, module self */
};

/* Of this process; the first member of struct cmpi. */
struct mpip_engine {
	struct mpip_bin *recent;          /* of the last lookup; NULL: none that is still in the table */
	struct mpip_bin **bucket;
	uint32_t shift;                   /* 64 - log2(buckets) */
	uint32_t nbins, nbuckets;         /* bins in the table, empty ones included */
	uint32_t wild;                    /* receives posted with a wildcard */
	uint32_t nposted[MPIP_CLASSES];
	uint64_t sequence;                /* of posted receives */
	struct mpip_bin *free_bins;
	uint32_t kept;                    /* classes whose bins hold messages: 1 << class */
	bool threads;
	struct via_lock lock;
	struct cmpi_message *first, *last; /* all unexpected messages */
	uint64_t nunexpected;
	struct cmpi_req *done, *done_tail; /* to be told, when the lock is free */
	void *chunks;                     /* memory of bins */
	const struct cmpi_protocol *protocol; /* of the peers that are not this process */
};

static inline struct mpip_engine *mpip_engine(struct cmpi *c)
{
	return (struct mpip_engine *)c;
}

static inline struct mpip_process *mpip_process(struct cmpi_proc *proc)
{
	return (struct mpip_process *)proc;
}

static inline void mpip_lock(struct mpip_engine *e)
{
	if (__builtin_expect(e->threads, 0))
		via_lock_take(&e->lock);
}

static inline void mpip_unlock(struct mpip_engine *e)
{
	if (__builtin_expect(e->threads, 0))
		via_lock_give(&e->lock);
}

/* bin.c */
bool mpip_init(struct mpip_engine *e, bool threads);
void mpip_fini(struct mpip_engine *e);
struct mpip_bin *mpip_bin_create(struct mpip_engine *e, uint64_t key);

/* queue.c */
struct cmpi_req *mpip_match_posted(struct mpip_engine *e, uint64_t key);
bool mpip_enqposted(struct mpip_engine *e, struct cmpi_req *req);
void mpip_deqposted(struct mpip_engine *e, struct cmpi_req *req);
/* *out NULL: there is none.  False: no memory for the search. */
bool mpip_search_unexpected(struct mpip_engine *e, uint64_t key, struct cmpi_message **out);
/* False: no memory, and the message is in no queue. */
bool mpip_enqunexpected(struct mpip_engine *e, struct cmpi_message *message);
void mpip_dequnexpected(struct mpip_engine *e, struct cmpi_message *message);

/* recv.c: what modules call when a message arrives (NULL: it is unexpected, see mpip_enqunexpected, unless its key is not mpip_key_ok) */
struct cmpi_req *mpip_arrived(struct cmpi *c, struct cmpi_proc *from, uint64_t key);
void mpip_unpost(struct cmpi *c, struct cmpi_req *req);

/* cancel.c */
int mpip_error_request(struct cmpi *c, struct cmpi_req *req);

/* unexpected.c */
bool mpip_keep_class(struct mpip_engine *e, enum mpip_class class);
bool mpip_link_message(struct mpip_engine *e, struct cmpi_message *message, enum mpip_class class);

/* send.c: the queue of a process.  A module takes what it can from the head, and ends what fails. */
void mpip_enqsend(struct mpip_process *p, struct cmpi_req *req);
void mpip_deqsend(struct mpip_process *p);

/* blocking.c: what the modules' blocking functions have in common.  The lock is held, and free in between. */
int mpip_fsend(struct cmpi *c, struct cmpi_proc *to, const void *buf, size_t count, const struct cmpi_type *type, int tag,
               struct cmpi_comm *comm, int mode);
int mpip_frecv(struct cmpi *c, struct cmpi_proc *from, void *buf, size_t count, const struct cmpi_type *type, int tag,
               struct cmpi_comm *comm, struct cmpi_status *status);
int mpip_urecv(struct cmpi *c, struct cmpi_proc *from, struct cmpi_message *message, void *buf, size_t count,
               const struct cmpi_type *type, struct cmpi_comm *comm, struct cmpi_status *status);
int mpip_progress_blk(struct cmpi *c, struct cmpi_req *req, int pollall);

/* Relaxed: under the lock; a waiter looks without it, but for DONE only (R2). */
static inline void mpip_req_set(struct cmpi_req *req, enum mpip_req_state state)
{
	__atomic_store_n(&req->state, (uint8_t)state, __ATOMIC_RELAXED);
}

/* The request is over; its caller is told by whoever gives the lock back (mpip_tell), or now (mpip_req_done). */
static inline void mpip_req_end(struct mpip_engine *e, struct cmpi_req *req, int err)
{
	req->status.err = err;
	req->next = NULL;
	if (e->done)
		e->done_tail->next = req;
	else
		e->done = req;
	e->done_tail = req;
}

/* The lock is free.  A request without a `done` is its waiter's as soon as its state says so. */
static inline void mpip_req_tell(struct cmpi_req *req)
{
	void (*done)(struct cmpi_req *) = req->done;

	/* R2: what the request got is there before it is seen as done; pairs with A2 in cmpi_is_done */
	__atomic_store_n(&req->state, MPIP_REQ_DONE, __ATOMIC_RELEASE);
	if (done)
		done(req);
}

/* Gives the lock back around the call. */
static inline void mpip_req_done(struct mpip_engine *e, struct cmpi_req *req)
{
	mpip_unlock(e);
	mpip_req_tell(req);
	mpip_lock(e);
}

/* Tells those that mpip_req_end has collected. */
static inline void mpip_tell(struct mpip_engine *e)
{
	struct cmpi_req *req;

	while (__builtin_expect((req = e->done) != NULL, 0)) {
		e->done = req->next;
		mpip_req_done(e, req);
	}
}

_Static_assert(offsetof(struct cmpi_status, tag) == offsetof(struct cmpi_status, source) + sizeof(int32_t) &&
                       offsetof(struct cmpi_status, cancelled) == offsetof(struct cmpi_status, err) + sizeof(int32_t),
               "members of a word follow each other");
/* Two members that follow each other, as one word. */
static inline uint64_t mpip_pair(int32_t first, int32_t second)
{
	bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

	return (uint64_t)(uint32_t)first << (little ? 0 : 32) | (uint64_t)(uint32_t)second << (little ? 32 : 0);
}

/*
 * What a receive got.  Stored in words of two members, because `done` reads it at once and by such words: a load is given what is still in the store queue
 * only if one store wrote all of it; if two did, it waits until both have left.
 */
static inline void mpip_req_got(struct cmpi_req *req, uint64_t key, uint64_t length)
{
	uint64_t from = mpip_pair(mpip_key_source(key), mpip_key_tag(key)), end = mpip_pair(length <= req->size ? CMPI_OK : CMPI_TRUNCATED, false);

	memcpy(&req->status.source, &from, sizeof(from));
	req->status.length = length;
	memcpy(&req->status.err, &end, sizeof(end));
}

#endif
