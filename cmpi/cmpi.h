/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C-MPI: what the glue (BTL, MTL, PML and coll) may call.
 *
 * One `struct cmpi` per process: a NIC handle, one VI per peer, a pool of vbufs, credits, a registration cache.
 * Active messages carry a tag and one contiguous payload to a handler at the peer, exactly once and in the order of their
 * commits to that peer.  put, get and atomics move memory that both sides registered.
 *
 * Threads: with cmpi_params.threads every call may be made from any thread; handlers and callbacks run without any
 * lock held, on the thread that called cmpi_progress, and may call everything here but cmpi_close, cmpi_progress included.
 * Without it the caller serialises.
 *
 * Return values: enum cmpi_err.  Output parameters are written only on success.
 */
#ifndef CMPI_H
#define CMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CMPI_ERR_LIST(X) \
	X(OK, "success") \
	X(AGAIN, "out of a bounded resource for now: make progress and try again") \
	X(PARAMETER, "invalid parameter") \
	X(RESOURCE, "out of a bounded resource") \
	X(UNREACHABLE, "the peer is not on this card") \
	X(PROTECTION, "memory not registered for that access") \
	X(TRANSPORT, "connection to the peer is lost") \
	X(TRUNCATED, "the message was longer than the receive") \
	X(SYSTEM, "the NIC could not be opened")
enum cmpi_err {
#define X(name, text) CMPI_##name,
	CMPI_ERR_LIST(X)
#undef X
	CMPI_ERR_COUNT
};
const char *cmpi_err_text(int err);
/* Why the last cmpi_open of this thread failed, in one sentence; never NULL. */
const char *cmpi_last_error(void);

struct cmpi;
struct cmpi_proc; /* a peer process (or this one) */

enum {
	CMPI_ADDR_MAX = 40,      /* bytes of an address blob, at most */
	CMPI_TAGS = 256,
	CMPI_AM_MAX = 32768 + 64, /* payload bytes of one active message, at most */
	CMPI_AM_SHORT = 392,     /* payloads up to here travel in cells (nicemu/ctl/give.c, CELLS_MOST): the cheapest, most of all up to 40 */
	CMPI_KEY_LEN = 24,       /* bytes of a registration as it travels to a peer */
};

/*
 * Runs on arrival.  data is the handler's until it returns.  It is 8-byte aligned, but for a message that was sent in two pieces whose first is no
 * multiple of 8 bytes: there the second piece may begin with a line (64 bytes) instead.
 */
typedef void cmpi_am_fn(void *arg, struct cmpi_proc *from, unsigned tag, void *data, size_t len);
/* Runs when a peer is lost; text names it.  `peer` may be NULL (the whole device failed). */
typedef void cmpi_error_fn(void *arg, struct cmpi_proc *peer, int err, const char *text);

struct cmpi_params {
	const char *device;      /* card name; NULL: parameter `device` */
	uint64_t job;            /* identity shared by the processes that connect to each other */
	uint32_t rank, nranks;   /* in the job: rank names this process, nranks sizes the first pool (both are hints but unique rank per job is required) */
	bool threads;            /* calls come from several threads */
	bool alone;              /* nothing else that the caller polls brings events: cmpi_progress may sleep when it waits for long */
	const bool *lends;       /* whether the caller offers his core to others after each pass that returns 0; NULL: he does not.  Kept, and read by all who share */
	cmpi_am_fn *am;          /* all tags; may be NULL */
	cmpi_error_fn *error;    /* may be NULL */
	void *arg;               /* for both */
};
/* Everything else (credits, thresholds, cache size, connect lazy/all …) comes from the parameters below. */
int cmpi_open(const struct cmpi_params *params, struct cmpi **out);
/* Drains what is queued to live peers for a bounded time, disconnects, frees. */
int cmpi_close(struct cmpi *cmpi);

/*
 * The one struct cmpi of this process, for components that do not know of each other (messages of one, remote memory of
 * another): opened by the first, closed with the last, and so one NIC handle, one set of VIs and credits, one cache.
 * At most one of them takes active messages; each is told of lost peers.  `arg` names the component, and must be unique.
 */
int cmpi_share(const struct cmpi_params *params, struct cmpi **out);
int cmpi_unshare(struct cmpi *cmpi, void *arg);
/* Who takes active messages from now on; NULL: they are dropped. */
void cmpi_set_am(struct cmpi *cmpi, cmpi_am_fn *am, void *arg);

/* Address of this process, to be carried to the peers by the launcher. */
int cmpi_address(const struct cmpi *cmpi, uint8_t blob[CMPI_ADDR_MAX], size_t *len);
/*
 * A peer by its address (this process's own address makes the self peer).  Connects on first use (parameter `connect`
 * = lazy) or when cmpi_connect_all is called.  CMPI_UNREACHABLE: another card (another host).  Same address: same proc.
 */
int cmpi_proc_get(struct cmpi *cmpi, const uint8_t *blob, size_t len, void *cookie, struct cmpi_proc **out);
/* In the order of the C-MPI design (lower rank requests, higher rank waits); collective over procs of one job. */
int cmpi_connect_all(struct cmpi *cmpi, struct cmpi_proc **procs, size_t n);
void cmpi_proc_put(struct cmpi *cmpi, struct cmpi_proc *proc); /* idempotent per get; disconnects at the last */
void *cmpi_proc_cookie(const struct cmpi_proc *proc); /* NULL: peer that talks to us before we got it */
void cmpi_proc_set_cookie(struct cmpi_proc *proc, void *cookie);
uint32_t cmpi_proc_rank(const struct cmpi_proc *proc);
int cmpi_proc_pid(const struct cmpi_proc *proc);
bool cmpi_proc_is_self(const struct cmpi_proc *proc);

/* ---- active messages (hot) --------------------------------------------------------------------------------------- */

/*
 * begin gives a place of `len` bytes to write the payload to (8-byte aligned); then exactly one commit or abort.
 * The payload may be shortened at commit.  The message is then out of the caller's hands: there is no completion.  begin
 * returns CMPI_AGAIN when no vbuf is free, when the peer has given no credit, and until the connection is up: make progress
 * and call again.  commit always accepts: if the credit has gone since begin, the message waits for this process's progress.
 * Not for the self peer (CMPI_PARAMETER).
 */
struct cmpi_am {
	void *data;
	size_t len;              /* room */
	void *vbuf;              /* private */
	struct cmpi_proc *proc;  /* private */
};
int cmpi_am_begin(struct cmpi_proc *proc, size_t len, struct cmpi_am *am);
int cmpi_am_commit(struct cmpi_am *am, unsigned tag, size_t len);
void cmpi_am_abort(struct cmpi_am *am);
/* header and payload in one call, both contiguous. */
int cmpi_am_send(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len);

/*
 * One pass; returns the number of events handled.  When many passes in a row find nothing and there are more processes than
 * cores (parameter `wait`), the call offers its core to others, and with cmpi_params.alone sleeps until something comes; it does so in the place
 * of a caller with cmpi_params.lends, and returns 1 then.
 */
int cmpi_progress(struct cmpi *cmpi);
/* May each pass that finds nothing rest?  Then whoever has something else to look after sees to it between any two. */
bool cmpi_crowded(const struct cmpi *cmpi);

/*
 * Whoever calls this is at work, even if the next pass finds nothing: it is followed by no rest, or, now and then, by a short one.  Such is a
 * program that looks after transfers which leave nothing to be found, or which never were the NIC's.
 */
void cmpi_at_work(struct cmpi *cmpi);
/*
 * From here on, the caller's passes are those of one who comes back whether something is found or not, and may have work of its own then: he does
 * not sleep, and offers his core at one pass of `every` that find nothing.  0: he waits again.
 */
void cmpi_only_looks(struct cmpi *cmpi, uint8_t every);

/* ---- matched messages (hot) -------------------------------------------------------------------------------------- */

/*
 * Messages that meet their receives by (context, source, tag) in MPI's order: two messages of one sender that match the same
 * receive are received in the order of their sends, and a receive is given to the first message that it matches, wildcards
 * included.  Short messages leave at once and are buffered at either end, long ones stay where they are until they are matched.
 *
 * A request is the caller's memory from its start until `done` has run, once, without any lock held and possibly inside the
 * call that starts it.  The self peer is a peer like any other.
 */
enum {
	CMPI_ANY_SOURCE = -1,
	CMPI_ANY_TAG = -1,       /* matches tags from 0 on; tags below -1 are the MPI library's own */
	CMPI_CONTEXT_MAX = 0xFFFF,
	CMPI_RANK_MAX = 0xFFFE,  /* with a context and a tag a source is one word, which is what messages carry and are matched by */
	CMPI_REQ_MODULE = 18,    /* words of a request that belong to the protocol module */
};
enum cmpi_mode { CMPI_MODE_STANDARD, CMPI_MODE_SYNC, CMPI_MODE_READY };

/* A communicator, as far as messages are concerned; the caller's memory while messages or receives of it are pending. */
struct cmpi_comm {
	uint16_t context;
	uint16_t rank;           /* of this process: the source that its messages show, at most CMPI_RANK_MAX */
	uint32_t nrcvany;        /* receives posted for any source; the engine's */
};

struct cmpi_status {
	int32_t source, tag;
	uint64_t length;         /* of the message, also when it was cut off */
	int32_t err;             /* CMPI_OK, CMPI_TRUNCATED, CMPI_TRANSPORT, CMPI_RESOURCE */
	int32_t cancelled;       /* 0 or 1 */
};

/* What a receive needs comes first, and is little: a window of posted ones has to fit the first-level cache. */
struct cmpi_req {
	/* The caller fills in these ... */
	void (*done)(struct cmpi_req *req);
	struct cmpi_comm *comm;
	struct cmpi_proc *to;    /* sends */
	void *buf;               /* only read by sends */
	uint64_t size;           /* of the message, or of the room for it */
	int32_t source;          /* receives */
	int32_t tag;
	/* ... finds this in `done` ... */
	struct cmpi_status status;
	enum cmpi_mode mode;     /* sends; the caller's */
	/* ... and has no business here. */
	uint8_t state;           /* enum mpip_req_state */
	bool cancelling;
	struct cmpi_req *next, *prev;
	struct mpip_bin *bin;
	uint64_t sequence;
	void (*cancel)(struct cmpi *cmpi, struct cmpi_req *req);
	uint64_t module[CMPI_REQ_MODULE];
};

/* The short way, without a request, not for CMPI_MODE_SYNC.  CMPI_OK: sent, and the buffer is the caller's.  CMPI_AGAIN: nothing happened; cmpi_isend. */
int cmpi_send(struct cmpi *cmpi, struct cmpi_proc *to, const void *buf, size_t len, int tag, struct cmpi_comm *comm);
int cmpi_isend(struct cmpi *cmpi, struct cmpi_req *req);
int cmpi_irecv(struct cmpi *cmpi, struct cmpi_req *req);
/* For requests whose `done` is NULL: blocking receive of one that is not started, and the end of one that is.  They make
 * progress until it is done, and return the status' err. */
int cmpi_recv(struct cmpi *cmpi, struct cmpi_req *req);
int cmpi_wait(struct cmpi *cmpi, struct cmpi_req *req);
bool cmpi_is_done(const struct cmpi_req *req);
/*
 * cmpi_progress for a caller who waits for this receive, whose `done` is NULL, and has nothing else to do until it is done: its message, if it is short, goes straight to
 * its memory.  from: who will send it; NULL: not known, so who sent last is looked at.  A pass that finds nothing may take a quarter of a microsecond.
 */
int cmpi_progress_for(struct cmpi *cmpi, struct cmpi_proc *from, struct cmpi_req *req);

/* The first message that a receive would be given, if there is one.  improbe takes it out: it must be received by imrecv. */
struct cmpi_message;
bool cmpi_iprobe(struct cmpi *cmpi, struct cmpi_comm *comm, int32_t source, int32_t tag, struct cmpi_status *status);
struct cmpi_message *cmpi_improbe(struct cmpi *cmpi, struct cmpi_comm *comm, int32_t source, int32_t tag,
                                  struct cmpi_status *status);
int cmpi_imrecv(struct cmpi *cmpi, struct cmpi_message *message, struct cmpi_req *req);

/*
 * A receive that is not matched, or a send whose message has not begun to leave, ends at once; a long message that waits at
 * its receiver is asked back.  `done` runs in any case, and says whether it was cancelled.
 */
void cmpi_cancel(struct cmpi *cmpi, struct cmpi_req *req);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { CMPI_ACCESS_LOCAL = 0, CMPI_ACCESS_REMOTE_READ = 1, CMPI_ACCESS_REMOTE_WRITE = 2, CMPI_ACCESS_REMOTE_ATOMIC = 4 };
struct cmpi_key { /* travels to the peer as bytes */
	uint64_t base, len;
	uint32_t handle;
	uint16_t access;
	uint16_t check; /* of the others: half of a key is none */
};
_Static_assert(sizeof(struct cmpi_key) == CMPI_KEY_LEN, "key size");
struct cmpi_reg {
	struct cmpi_key key;
	void *entry; /* private: cache entry */
};
/* Through the registration cache: cheap when the range was registered before; deregistration is lazy. */
int cmpi_mem_register(struct cmpi *cmpi, void *base, size_t len, unsigned access, struct cmpi_reg **out);
void cmpi_mem_deregister(struct cmpi *cmpi, struct cmpi_reg *reg);

/*
 * Memory in the NIC's card, page-aligned: transfers that peers start to and from it are plain copies.  Otherwise like any
 * other, and other will do where there is none (CMPI_RESOURCE, explained by cmpi_last_error).  free: CMPI_PARAMETER when it
 * is not the start of such memory.
 */
int cmpi_mem_alloc(struct cmpi *cmpi, size_t len, void **out);
int cmpi_mem_free(struct cmpi *cmpi, void *memory);

/* Runs when done; err is CMPI_OK or why not.  May run inside the call that starts the operation (then it returns CMPI_OK). */
typedef void cmpi_done_fn(void *arg, int err);
/* CMPI_AGAIN: nothing started.  `local` may be NULL when the range is to be registered on the way (cached).  Self peer allowed. */
int cmpi_put(struct cmpi_proc *proc, const void *src, const struct cmpi_reg *local, uint64_t dst, const struct cmpi_key *key,
             size_t len, cmpi_done_fn *done, void *arg);
int cmpi_get(struct cmpi_proc *proc, void *dst, const struct cmpi_reg *local, uint64_t src, const struct cmpi_key *key,
             size_t len, cmpi_done_fn *done, void *arg);
/*
 * The same where the NIC can do all of it within the call, and that is what it would do anyway: CMPI_OK, and it is over.  CMPI_AGAIN:
 * not that way; cmpi_put and cmpi_get do it, or tell what is wrong.
 */
int cmpi_put_now(struct cmpi_proc *proc, const void *src, const struct cmpi_reg *local, uint64_t dst, const struct cmpi_key *key, size_t len);
int cmpi_get_now(struct cmpi_proc *proc, void *dst, const struct cmpi_reg *local, uint64_t src, const struct cmpi_key *key, size_t len);
/*
 * A put of which nobody wants to hear when it is done: CMPI_OK, and src may be used again.  What is sent to that peer later finds it done; cmpi_posted says whether
 * all of them are.  CMPI_AGAIN: not this one, as above; mostly because it is long, or not one of many in a row.
 */
int cmpi_put_post(struct cmpi_proc *proc, const void *src, uint64_t dst, const struct cmpi_key *key, size_t len);
bool cmpi_posted(struct cmpi *cmpi);
/*
 * Asks the peer for a key to `len` bytes at `addr`: of whole pages that it has registered for every remote access, and not deregistered.
 * For who was refused because the key that reached him is another block's.  *key belongs to the call until `done` has run, and is the key
 * then, if `done` is told CMPI_OK; CMPI_PROTECTION: the peer has none.  The answer takes the peer's progress.
 */
int cmpi_key_ask(struct cmpi_proc *proc, uint64_t addr, size_t len, unsigned access, struct cmpi_key *key, cmpi_done_fn *done, void *arg);
/*
 * Had a message of so many bytes from there better be sent to this peer in packets than read by it (cmpi_get)?  Where system calls are slow; but
 * then both processes have to come by.
 */
bool cmpi_rather_sent(struct cmpi_proc *proc, const void *data, size_t len);
size_t cmpi_rdma_max(const struct cmpi *cmpi); /* longest single put/get; longer ones are split inside */

enum cmpi_atomic { CMPI_ATOMIC_ADD, CMPI_ATOMIC_AND, CMPI_ATOMIC_OR, CMPI_ATOMIC_XOR, CMPI_ATOMIC_SWAP, CMPI_ATOMIC_MIN,
	CMPI_ATOMIC_MAX, CMPI_ATOMIC_CSWAP };
/*
 * Fetching atomic on 4 or 8 naturally aligned bytes (signed for min and max) at the peer, carried out by the peer's
 * progress with CPU atomics, so coherent with the CPUs' own.  *old is written before done runs; NULL: not fetched.  The peer decides by
 * what it has registered, whatever the key says (`done`: CMPI_PROTECTION); the right one only finds it faster.
 */
int cmpi_atomic(struct cmpi_proc *proc, enum cmpi_atomic op, unsigned size, uint64_t addr, const struct cmpi_key *key,
                uint64_t operand, uint64_t compare, void *old, cmpi_done_fn *done, void *arg);

/* ---- groups -------------------------------------------------------------------------------------------------------- */

/*
 * Barriers and broadcasts that the NICs carry on by themselves.  join is collective over `procs` (this process included, at
 * `place`; the same order everywhere), and so is its name, which no other group of these processes has at the time.  `done`
 * runs when the group is joined, or with CMPI_TRANSPORT when a member has died; the group exists until leave in any case.
 * CMPI_RESOURCE: the NIC's table is full, nothing has been sent.  leave is local, with nothing of the group under way.
 *
 * barrier and bcast are non-blocking; operations of a group start in the order of the calls, which is the same at all
 * members.  bcast: `root` is a place, `len` the same at all members; done at the root when the buffer may be used again.
 * CMPI_OVER: it was over when the call returned, and `done` does not run.
 *
 * CMPI_TRUNCATED: the broadcast has another length than this member gave, no more.  CMPI_TRANSPORT: nothing goes in the group any
 * more, and why says for what reason: the first that was met here.
 */
enum { CMPI_OVER = -1 };
struct cmpi_group;
int cmpi_group_join(struct cmpi *cmpi, uint32_t name, struct cmpi_proc **procs, size_t n, size_t place, cmpi_done_fn *done,
                    void *arg, struct cmpi_group **out);
void cmpi_group_leave(struct cmpi_group *group);
enum cmpi_why { CMPI_WHY_DIED, CMPI_WHY_LEFT, CMPI_WHY_LENGTH, CMPI_WHY_DATA, CMPI_WHY_NIC, CMPI_WHY_UNKNOWN };
enum cmpi_why cmpi_group_why(const struct cmpi_group *group, size_t *place); /* place: of the member that died */
const char *cmpi_why_text(enum cmpi_why why); /* what the group's members have done or met, as the rest of a sentence */
int cmpi_barrier(struct cmpi_group *group, cmpi_done_fn *done, void *arg);
int cmpi_bcast(struct cmpi_group *group, size_t root, void *buf, size_t len, cmpi_done_fn *done, void *arg);
/* Are they CMPI_OVER when nobody has to be waited for?  At this process: others may have another NIC. */
bool cmpi_groups_at_once(struct cmpi *cmpi);

/* ---- parameters and counters, for the glue to show --------------------------------------------------------------- */

struct cmpi_param {
	const char *name, *help, *fits, *value, *source; /* fits: which values do, in words */
	int level;
};
/* Parameters of the whole stack, declared once below; i from 0, false past the end.  set before cmpi_open. */
bool cmpi_param_at(uint32_t i, struct cmpi_param *out);
int cmpi_param_set(const char *name, const char *value, const char *source);
int64_t cmpi_param_int(const char *name);
const char *cmpi_param_string(const char *name);
/* Counter i of the NIC slot of this process (NIC's and C-MPI's); the value cell lives until cmpi_close. */
const uint64_t *cmpi_counter_at(struct cmpi *cmpi, uint32_t i, const char **name, const char **help);

/* ---- the protocol table ------------------------------------------------------------------------------------------ */

/* See cmpi/protocol.h for the table of 26 functions; maps a module name ("via") to its table, NULL: unknown. */
struct cmpi_protocol;
const struct cmpi_protocol *cmpi_map_functions(const char *name);

#endif
