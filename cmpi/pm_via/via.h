/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol module's own structures, and what its files offer each other.  Everything hangs off a struct cmpi: there
 * is no other state, so a process can hold several (tests do).
 *
 * Who may call what: the public cmpi_ functions take the lock; everything named via_ runs under it, and gives it up only
 * around upcalls, which happen in three places: a packet's handler (progress.c), the completion list (completion.c) and the
 * error callback (conn.c).
 */
#ifndef VIA_VIA_H
#define VIA_VIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cmpi/cmpi.h"
#include "cmpi/engine/engine.h"
#include "cmpi/pm_via/completion.h"
#include "cmpi/pm_via/copy.h"
#include "cmpi/pm_via/counters.h"
#include "cmpi/pm_via/lock.h"
#include "cmpi/pm_via/match.h"
#include "cmpi/pm_via/packet.h"
#include "cmpi/pm_via/params.h"
#include "cmpi/protocol.h"
#include "vipl.h"

#define via_likely(x) __builtin_expect(!!(x), 1)
#define via_unlikely(x) __builtin_expect(!!(x), 0)

#ifdef QNIX_DEBUG
#include <assert.h>
#define VIA_ASSERT(x) assert(x)
#else
#define VIA_ASSERT(x) ((void)0)
#endif

/* ---- vbufs (vbuf.c) ------------------------------------------------------------------------------------------------ */

enum via_vbuf_kind { VIA_VBUF_FREE, VIA_VBUF_RECV, VIA_VBUF_SEND, VIA_VBUF_RMA };

/*
 * A descriptor and room for a short packet, in a registered region.  A longer packet lies in a pool buffer that the
 * descriptor names.  128 bytes: the receives of a connection cycle through the first-level cache.
 */
struct via_vbuf {
	VIP_DESCRIPTOR desc;
	uint8_t small[VIA_SMALL];
	void *owner;           /* free: next free vbuf; RECV, SEND: struct cmpi_proc; RMA: struct via_rma */
	VIP_MEM_HANDLE handle; /* of the region */
	uint8_t kind;          /* enum via_vbuf_kind */
	uint8_t reserved[3];
};
_Static_assert(sizeof(struct via_vbuf) == 128, "a vbuf is two cache lines");

struct via_queue { /* of vbufs that are not posted, linked by desc.CS.Next */
	struct via_vbuf *head, *tail;
	uint32_t len;
};

struct via_region {
	struct via_region *next;
	struct via_vbuf *vbuf;
	VIP_MEM_HANDLE handle;
};

/* ---- remote memory access (rma.c), atomics and keys (atomic.c) --------------------------------------------------- */

struct via_rma {
	struct via_completion completion; /* next also links free ones, those with something left to post, and fetches */
	struct cmpi_proc *proc;
	struct cmpi_reg *own;  /* registration made on the way */
	uint64_t local, remote;
	uint32_t local_handle, remote_handle;
	size_t left;           /* bytes not yet posted */
	uint32_t posted;       /* descriptors not yet complete */
	uint8_t control;       /* VIP_CONTROL_OP_* */
	bool held;             /* its starter looks at `complete` itself */
	bool complete;
	/* Instead of the completion, under the lock, for the module itself. */
	void (*then)(struct via_rma *rma, int err);
};

struct via_atomic {
	struct via_completion completion; /* next also links free ones */
	struct cmpi_proc *proc;
	void *old;
	uint32_t size;
	struct cmpi_key *key; /* what was asked for is a key, complete but for its handle; else NULL */
};

/* ---- a matched message that is arriving (eager.c, rndv.c) ----------------------------------------------------------- */

struct via_incoming {
	struct cmpi_message message; /* first: what the engine keeps of an unexpected one */
	struct via_incoming *next_free, *next, *prev;
	struct cmpi_proc *proc;
	struct via_recv *recv;     /* NULL: unexpected, so far */
	struct via_envelope envelope;
	uint32_t life;             /* of proc: a message does not outlive its connection */
	bool rendezvous, complete; /* complete: all data of an eager message are here */
	uint64_t offset;           /* bytes arrived */
	uint8_t *held;             /* unexpected eager data */
	/* rendezvous */
	uint32_t protocol, handle;
	uint64_t buffer, rreq;
	struct cmpi_reg *reg;
	bool timed;                /* the NIC knows of it (VipxLongBegins) */
};

/* ---- names for things a peer echoes (handle.c) ---------------------------------------------------------------------- */

enum via_handle_kind { VIA_HANDLE_FREE, VIA_HANDLE_SEND, VIA_HANDLE_RECV, VIA_HANDLE_ATOMIC };
struct via_handle {
	void *object;
	struct cmpi_proc *proc;
	uint32_t generation;
	uint32_t next; /* free ones */
	uint8_t kind;
};
struct via_handles {
	struct via_handle *slot;
	uint32_t size, free; /* free: index + 1, 0: none */
};

/* ---- registration cache (dreg.c) ------------------------------------------------------------------------------------ */

enum { VIA_DREG_BUCKETS = 1024 };
struct via_dreg_entry {
	uint64_t base, len; /* page multiples */
	VIP_MEM_HANDLE handle;
	uint32_t access;
	uint32_t refs;
	struct via_dreg_entry *chain;         /* entries of the bucket of the first page */
	struct via_dreg_entry *handle_chain;  /* entries of the bucket of the handle */
	struct via_dreg_entry *newer, *older; /* unused ones, by age */
	uint64_t used, large_after;           /* bytes asked for; how many of them are worth a large page */
	uint64_t large_next;                  /* address that the next one is asked for at */
	uint8_t large_round;                  /* over the entry */
};
struct via_dreg {
	struct via_dreg_entry *recent; /* last hit or miss */
	struct via_dreg_entry *page[VIA_DREG_BUCKETS];
	struct via_dreg_entry *by_handle[VIA_DREG_BUCKETS];
	struct via_dreg_entry *newest, *oldest; /* unused */
	uint32_t entries;
	uint64_t large_rest; /* no large pages before this time */
	uint64_t large_price; /* bytes to be moved for what the last ones took */
	struct via_reg *free_regs;
	struct via_dreg_entry *free_entries; /* by chain */
};
/* What cmpi_mem_register gives out. */
struct via_reg {
	struct cmpi_reg reg; /* first: the user's pointer is a pointer to this */
	struct via_reg *next_free;
};

/* ---- a peer --------------------------------------------------------------------------------------------------------- */

#define VIA_CONN_LIST(X) \
	X(IDLE, "no VI; the first use connects") \
	X(CONNECTING, "VI requested, receives posted, no credit yet") \
	X(CONNECTED, "packets flow") \
	X(CLOSING, "nothing new is sent; what is queued leaves, then BYE, then the VI is disconnected") \
	X(BREAKING, "an error was seen; what has arrived is still delivered") \
	X(CLOSED, "disconnected in order by this side or the other") \
	X(LOST, "disconnected by an error; every operation fails")
enum via_conn_state {
#define X(name, text) VIA_CONN_##name,
	VIA_CONN_LIST(X)
#undef X
	VIA_CONN_COUNT
};

/* Identity of a process: its address blob, which is also its discriminator. */
struct via_address {
	uint8_t version, initial_credit, noop_extra, host_len;
	uint8_t host[6];
	uint16_t params; /* of flow control, hashed: both sides must have the same */
	uint32_t rank, pid;
	uint32_t job; /* folded */
	uint64_t card;
	uint32_t slot, life; /* of the NIC on the card */
};
_Static_assert(sizeof(struct via_address) == CMPI_ADDR_MAX, "size of the address blob");
enum { VIA_ADDRESS_VERSION = 7 };

struct cmpi_proc {
	struct mpip_process process; /* first: the engine's */
	/* hot: sending */
	struct cmpi *cmpi;
	VIP_VI_HANDLE vi;
	uint32_t expected;      /* R3_DATA packets to come */
	/* from here on a line: what a message that is sent writes, and what one that is received writes */
	_Alignas(64) uint16_t remote_credit; /* packets this side may send; 0 unless CONNECTED or CLOSING */
	uint16_t sends_posted;  /* descriptors in the send queue */
	uint16_t next_out;
	uint16_t base;          /* receives this connection owns: depth + noop_extra */
	uint16_t local_credit;  /* receives posted that the peer does not know of */
	uint16_t preposts;      /* receives posted */
	uint16_t next_in;
	uint8_t state;          /* enum via_conn_state */
	uint8_t remote_cc;      /* credit the peer had at its last packet */
	uint8_t consumed_cc;    /* what the peer said it has delivered of our eager bytes, at its last packet */
	uint8_t noops_sent, noops_acked, noops_in; /* modulo 256 */
	uint8_t consumed_units; /* of `consumed`, VIA_CONSUMED_UNIT each, modulo 256; behind noops_in, as in a header */
	bool special;           /* arrivals change what receives are wanted: fresh, or R3 data expected */
	/* hot: receiving */
	uint16_t replace_below; /* new receives are posted when fewer than this are */
	bool in_flow, in_sending, in_lost;
	bool late;              /* in_lost: since the completion queue was looked at last */
	bool self;
	bool fresh;             /* no packet of the peer has arrived yet: only `initial` receives are posted */
	bool bye_in, bye_out;
	bool orderly;           /* BREAKING: was CLOSING */
	uint32_t granted;       /* packets the peer may still send: credit told less packets come */
	uint32_t eager_sent, eager_consumed; /* this side's eager bytes: sent, and known to be delivered */
	uint32_t consumed;                   /* the peer's eager bytes delivered here */
	uint16_t packet_no_out, packet_no_in; /* of matched messages */
	struct via_incoming *eager;          /* the one eager series in progress */
	struct via_queue backlog;
	void *cookie;
	/* cold: lists */
	struct cmpi_proc *next_flow, *next_sending, *next_lost, *chain, *next;
	/* cold: remote memory access */
	struct via_rma *rma_head, *rma_tail; /* something left to post, in order */
	struct via_rma *fetch_head, *fetch_tail; /* fetches under way, in order */
	uint32_t fetched;                    /* of this VI's, how many have ended */
	uint32_t rma_descs;                  /* RMA descriptors in the send queue */
	uint32_t rma_ops;                    /* operations not complete */
	uint32_t posted;                     /* posts when the last posted write left */
	_Atomic uint32_t put_lengths, get_lengths; /* those that go by descriptor, by powers of two (rma.c) */
	uint32_t atomics;                    /* operations not complete */
	/* cold: matched messages */
	struct via_send *send_head, *send_tail; /* rendezvous accepted for R3 or RPUT, in order */
	uint32_t messages;                      /* matched messages not complete, either direction */
	uint32_t long_open, long_out;           /* sends by rendezvous: not complete; all, less the reads that were put off, at most some (rndv.c) */
	uint32_t put_off;                       /* reads that wait for as many sends, or for progress */
	uint32_t life;                          /* counts the connections made to this peer */
	/* cold: connection */
	struct via_address address;
	uint32_t refs;
	int pid;
	bool pid_seen; /* the process was visible when connecting started */
	uint32_t undelivered; /* sends that came back in error */
	char reason[96];
};
_Static_assert(offsetof(struct cmpi_proc, backlog) == offsetof(struct cmpi_proc, remote_credit) + 64, "one line");

struct cmpi {
	struct mpip_engine engine; /* first */
	/* hot */
	VIP_NIC_HANDLE nic;
	VIP_CQ_HANDLE cq;
	struct via_vbuf *free_vbufs;
	uint32_t nfree;
	uint32_t recv_due; /* receives that connections own and have not posted: free vbufs that sends leave alone */
	bool closing;
	cmpi_am_fn *am;
	void *arg;
	uint32_t budget;                 /* packets after which the next pass ends (spend) */
	bool groups_first;               /* operations of groups end elsewhere, or by messages: they are looked at before packets, too */
	bool surplus;                    /* the packet at hand is in a buffer that VipxBufferRead is still to be told of */
	struct cmpi_proc *near;          /* sent the last packet that came by value */
	struct via_row *row;             /* packets of a row that are being handled; NULL: none */
	uint32_t near_left;              /* looks at it alone before everybody is asked */
	uint32_t quick;                  /* times that this may be put off after a transfer that was over at once */
	uint32_t awaited;                /* messages that somebody waited for and that went straight to him */
	uint32_t near_trust;             /* how many of them will be more than one: grows while it alone sends */
	struct cmpi_proc *recent;        /* had a packet since the last idle pass */
	uint32_t passes;                 /* of progress */
	bool crowded;                    /* cores are short: what to do is asked after every idle pass */
	uint32_t connecting;             /* procs in state CONNECTING */
	struct cmpi_proc *sending;       /* send queue not empty, or fetches under way */
	struct cmpi_proc *flow;          /* something to push */
	struct cmpi_group *group_work;   /* groups with operations under way */
	struct via_completion *done;
	struct cmpi_proc *lost;          /* errors to report */
	struct cmpi_proc *flow_tail;
	struct via_completion *done_tail;
	struct via_counters count;
	struct via_params params;
	VIP_ULONG epoch;
	uint32_t polls;                  /* of connections, for the rare checks */
	const void *progress_owner;      /* thread inside cmpi_progress; where there is one only: this */
	uint32_t progress_depth;
	/* cold */
	VIPX_WAIT wait;
	uint32_t idle, idle_mask;        /* passes without an event, one after the other; when to ask what to do about it */
	uint64_t *arrivals, arrived;     /* the NIC's counter of packets received; its value at the last look */
	bool resting;                    /* a thread is, without the lock */
	bool moved;                      /* a transfer was complete at once since the last look, or somebody is at work */
	bool posted;                     /* perhaps not all posted writes are in place */
	uint32_t posts;                  /* counts the times that all were, from 1 on */
	uint8_t only_looks;              /* nobody waits; as in cmpi_only_looks */
	uint32_t spared;                 /* looks that found nothing, of those two */
	bool alone;
	const bool *lends;
	cmpi_error_fn *error;
	void *error_arg;
	VIP_PROTECTION_HANDLE ptag;
	VIP_ULONG cq_size, cq_used;      /* entries; receives that connections may post */
	struct via_region *regions;
	uint32_t nvbufs, nreserved;      /* all; those that connections own for their receives */
	struct cmpi_proc *procs;         /* all, for ever */
	struct cmpi_proc *hash[64];
	struct via_address address;
	struct via_dreg dreg;
	struct via_rma *free_rmas;
	struct via_atomic *free_atomics;
	uint32_t nrmas, natomics;
	struct via_handles handles;
	struct via_incoming *incoming, *free_incoming;
	const struct via_engine *adi; /* a test's, in place of the engine; NULL: the engine */
	struct via_group_op *free_group_ops;
	struct cmpi_protocol_data data;
	size_t max_transfer;
	void *chunks;                    /* memory of rmas, atomics, incoming, regs: freed at close */
	uint64_t dummy;                  /* counter cell when the NIC has none left */
};

/* Is the VI connected, as far as this side knows? */
static inline bool via_live(const struct cmpi_proc *proc)
{
	return proc->state == VIA_CONN_CONNECTED || proc->state == VIA_CONN_CLOSING;
}

static inline void via_lock(struct cmpi *c)
{
	if (via_unlikely(c->engine.threads))
		via_lock_take(&c->engine.lock);
}

static inline void via_unlock(struct cmpi *c)
{
	if (via_unlikely(c->engine.threads))
		via_lock_give(&c->engine.lock);
}

/* One more in a counter; the cell is this process's own. */
#define VIA_COUNT(c, member) ((void)(*(c)->count.member)++)
#define VIA_COUNT_ADD(c, member, n) ((void)(*(c)->count.member += (n)))

/* setup.c */
void via_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *via_chunk(struct cmpi *c, size_t bytes); /* zeroed, freed at close; NULL: no memory */

/* progress.c */
int via_progress(struct cmpi *c);

/* wait.c */
void via_wait_init(struct cmpi *c);
void via_wait(struct cmpi *c);      /* many passes have found nothing; gives the lock up meanwhile */
bool via_wait_spared(struct cmpi *c); /* this look found nothing, but is none of somebody who waits, and no rest follows it */
bool via_wait_lends(const struct cmpi *c);
void via_wait_look(struct cmpi *c); /* before a pass, when cores are short */
void via_wait_watch(struct cmpi *c, uint32_t passes, int events); /* after so many passes, the last of which had these events */

/* completion.c: collected while queues are walked, called when none is */
void via_completion_push(struct cmpi *c, struct via_completion *completion, int err);
int via_completion_run(struct cmpi *c);

/* vbuf.c */
bool via_vbuf_grow(struct cmpi *c, bool sure);
bool via_vbuf_reserve(struct cmpi *c, uint32_t n);
void via_vbuf_fini(struct cmpi *c);
struct via_vbuf *via_packet_new(struct cmpi *c, size_t len, bool sure);
struct via_vbuf *via_packet_new_sure(struct cmpi_proc *proc, size_t len);
void via_packet_drop(struct cmpi *c, struct via_vbuf *v);

/* Any free vbuf, for a receive that its connection owns; NULL when all are in use. */
static inline struct via_vbuf *via_vbuf_pop(struct cmpi *c)
{
	struct via_vbuf *v = c->free_vbufs;

	if (via_likely(v != NULL)) {
		c->free_vbufs = v->owner;
		c->nfree--;
	}
	return v;
}

/* A vbuf that no receive is entitled to. */
static inline struct via_vbuf *via_vbuf_take(struct cmpi *c)
{
	if (via_unlikely(c->nfree <= c->recv_due) && !via_vbuf_grow(c, false))
		return NULL;
	return via_vbuf_pop(c);
}

static inline void via_vbuf_give(struct cmpi *c, struct via_vbuf *v)
{
	v->owner = c->free_vbufs;
	v->kind = VIA_VBUF_FREE;
	c->free_vbufs = v;
	c->nfree++;
}

/* Out of the packet at hand. */
static inline void via_copy_out(struct cmpi *c, void *to, const void *data, size_t n)
{
	if (via_unlikely(n > VIA_SMALL && c->surplus)) {
		VipxBufferCopy(c->nic, to, (VIP_PVOID)data, n);
		c->surplus = false;
	} else {
		via_copy(to, data, n);
	}
}

/* Where the packet of a send is. */
static inline void *via_vbuf_packet(const struct via_vbuf *v)
{
	return v->desc.DS[0].Local.Data.Address;
}

static inline void via_vbuf_segment(struct via_vbuf *v, uint16_t control, void *base, VIP_MEM_HANDLE handle, size_t len)
{
	v->desc.CS.SegCount = 1;
	v->desc.CS.Control = control;
	v->desc.CS.Length = (VIP_UINT32)len;
	v->desc.DS[0].Local.Data.Address = base;
	v->desc.DS[0].Local.Handle = handle;
	v->desc.DS[0].Local.Length = (VIP_UINT32)len;
}

/* Makes it a send of len bytes out of its own room ... */
static inline void via_vbuf_small(struct via_vbuf *v, size_t len)
{
	via_vbuf_segment(v, VIP_CONTROL_OP_SENDRECV, v->small, v->handle, len);
}

/* ... or of len bytes out of a pool buffer, which goes with it. */
static inline void via_vbuf_long(struct via_vbuf *v, void *buffer, size_t len)
{
	via_vbuf_segment(v, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_POOL, buffer, VIPX_POOL_HANDLE, len);
}

static inline void via_vbuf_resize(struct via_vbuf *v, size_t len)
{
	v->desc.CS.Length = (VIP_UINT32)len;
	v->desc.DS[0].Local.Length = (VIP_UINT32)len;
}

/* flow.c; the calls that every packet passes are in flow.h */
void via_flow_init(struct cmpi_proc *proc);
void via_flow_limits(struct cmpi_proc *proc);
void via_flow_refill(struct cmpi_proc *proc);
void via_flow_idle(struct cmpi *c);
void via_flow_expect(struct cmpi_proc *proc, uint32_t packets);
bool via_flow_credit_news(struct cmpi_proc *proc, const struct via_header *header);
void via_flow_special(struct cmpi_proc *proc, const struct via_header *header);
bool via_flow_noop_in(struct cmpi_proc *proc, const struct via_header *header, struct via_vbuf *v);
void via_flow_noop_due(struct cmpi_proc *proc);
void via_flow_backlog(struct cmpi_proc *proc, struct via_vbuf *v, uint32_t type_tag);
bool via_flow_packet(struct cmpi_proc *proc, uint32_t type_tag, const void *packet, size_t len, bool sure);
void via_flow_drain(struct cmpi_proc *proc);
bool via_flow_bye(struct cmpi_proc *proc);
void via_flow_push(struct cmpi_proc *proc); /* puts on the flow list */
int via_flow_run(struct cmpi *c);           /* works the flow list */
bool via_flow_holds(const struct cmpi_proc *proc);
/* Posts a receive; the caller keeps the accounts.  False: refused, and the connection is given up. */
bool via_recv_post(struct cmpi_proc *proc, struct via_vbuf *v);
void via_send_refused(struct cmpi_proc *proc, struct via_vbuf *v);
void via_send_pending(struct cmpi_proc *proc, bool ended);
/* Takes back the completed sends of one queue, or of all that have some; returns how many. */
void via_sending(struct cmpi_proc *proc); /* something of it is under way: progress looks */
int via_send_reap_one(struct cmpi_proc *proc);
int via_send_reap(struct cmpi *c);

/* conn.c */
int via_conn_start(struct cmpi_proc *proc);
/* Connects on first use.  A closing connection takes no new operations. */
static inline int via_conn_ready(struct cmpi_proc *proc)
{
	if (via_likely(proc->state == VIA_CONN_CONNECTED || proc->state == VIA_CONN_CONNECTING))
		return CMPI_OK;
	if (proc->state != VIA_CONN_IDLE && proc->state != VIA_CONN_CLOSED)
		return CMPI_TRANSPORT;
	return via_conn_start(proc);
}
bool via_conn_poll(struct cmpi_proc *proc);
int via_conn_progress(struct cmpi *c);
void via_conn_fail(struct cmpi_proc *proc, const char *format, ...) __attribute__((format(printf, 2, 3)));
void via_conn_send_failed(struct cmpi_proc *proc, const struct via_vbuf *v, uint32_t status);
int via_conn_report(struct cmpi *c, bool empty);
void via_conn_close(struct cmpi_proc *proc);
void via_conn_close_step(struct cmpi_proc *proc);
void via_conn_down(struct cmpi_proc *proc, enum via_conn_state state);
void via_conn_flushed(struct cmpi_proc *proc, struct via_vbuf *v);
bool via_conn_pending(const struct cmpi_proc *proc);
void via_conn_callback(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error);

/* proc.c */
struct cmpi_proc *via_proc_find(struct cmpi *c, const struct via_address *address);
struct cmpi_proc *via_proc_create(struct cmpi *c, const struct via_address *address);

/* group.c */
int via_group_run(struct cmpi *c);

/* handle.c: 0 is no name */
uint64_t via_handle_create(struct cmpi *c, enum via_handle_kind kind, struct cmpi_proc *proc, void *object);
void *via_handle_lookup(struct cmpi *c, enum via_handle_kind kind, const struct cmpi_proc *proc, uint64_t id);
void via_handle_destroy(struct cmpi *c, uint64_t id);
void *via_handle_remove(struct cmpi *c, enum via_handle_kind kind, const struct cmpi_proc *proc, uint32_t *cursor);
void via_handle_fini(struct cmpi *c);

/* dreg.c */
struct cmpi_reg *via_dreg_register(struct cmpi *c, uint64_t base, size_t len, unsigned access);
uint32_t via_dreg_handle(struct cmpi *c, uint64_t base, size_t len);
void via_dreg_deregister(struct cmpi *c, struct cmpi_reg *reg);
bool via_dreg_check(struct cmpi *c, uint32_t handle, uint64_t addr, size_t len, unsigned access);
uint32_t via_dreg_granting(const struct cmpi *c, uint64_t addr, size_t len, unsigned access);
void via_dreg_fini(struct cmpi *c);

/* Changes with each of the other members. */
static inline uint16_t via_key_check(const struct cmpi_key *key)
{
	return (uint16_t)((((key->base * 3 + key->len) * 3 + ((uint64_t)key->handle << 8 | key->access)) * 0x9E3779B97F4A7C15u) >> 48);
}

/* rma.c */
struct via_rma *via_rma_new(struct cmpi_proc *proc, uint16_t control, const void *local, size_t len);
void via_rma_start(struct via_rma *rma);
void via_rma_start_later(struct via_rma *rma); /* in a pass of progress, or with the next via_rma_push */
int via_rma_push(struct cmpi_proc *proc);
void via_rma_done(struct via_vbuf *v, uint32_t status);
int via_fetch_reap(struct cmpi_proc *proc); /* those that have ended; how many */
void via_rma_fail(struct cmpi_proc *proc);
bool via_rather_sent(struct cmpi_proc *proc, const void *data, size_t len, bool *single);

/* atomic.c */
bool via_atomic_request(struct cmpi_proc *proc, const struct via_atomic_request *packet);
bool via_atomic_reply(struct cmpi_proc *proc, const struct via_atomic_reply *packet);
void via_atomic_fail(struct cmpi_proc *proc);

/* eager.c: messages of one packet */
int via_eager_send(struct cmpi_proc *proc, uint64_t key, const void *buf, size_t len);
bool via_eager_window(struct cmpi_proc *proc, uint64_t len); /* is there room for its data at the receiver? */
bool via_eager_room(struct cmpi_proc *proc, uint64_t len);
bool via_eager_may(const struct cmpi_proc *proc);
int mpip_via_fsend(struct cmpi *c, struct cmpi_proc *proc, const void *buf, size_t count, const struct cmpi_type *type, int tag,
                   struct cmpi_comm *comm, int mode);

/* The receiving side of matched messages; false: the peer broke the protocol.  eager.c, */
bool via_eager(struct cmpi_proc *proc, const uint8_t *packet, size_t len);
/* Looks so many times for the message of that receive, as the next of that peer.  CMPI_AGAIN: it has not come; CMPI_PARAMETER: nor is it looked for. */
int via_eager_expected(struct cmpi_proc *proc, struct cmpi_req *req, uint32_t looks);
/* match.c, */
bool via_eager_unexpected(struct cmpi_proc *proc, uint64_t key, const void *data, size_t len);
bool via_eager_start(struct cmpi_proc *proc, const struct via_envelope *envelope);
bool via_eager_next(struct cmpi_proc *proc, const void *data, size_t len);
bool via_rndv_start(struct cmpi_proc *proc, const struct via_rendezvous_start *packet);
bool via_cancel_request(struct cmpi_proc *proc, uint64_t sreq);
/* rndv.c */
bool via_rndv_reply(struct cmpi_proc *proc, const struct via_rendezvous_reply *packet);
bool via_r3_data(struct cmpi_proc *proc, uint64_t rreq, const void *data, size_t len);
bool via_rput_finish(struct cmpi_proc *proc, uint64_t rreq);
bool via_rget_finish(struct cmpi_proc *proc, uint64_t sreq);
bool via_cancel_reply(struct cmpi_proc *proc, uint64_t sreq, bool cancelled);

/* match.c */
int via_match_start(struct cmpi_proc *proc, struct via_send *send);
bool via_match_take(struct via_incoming *msg, struct via_recv *recv, int *err);
void via_match_fail(struct cmpi_proc *proc);
void via_incoming_free(struct cmpi *c, struct via_incoming *msg);
void via_incoming_done(struct via_incoming *msg, int err);
void via_send_done(struct via_send *send, int err);
bool via_series_may(struct cmpi_proc *proc, const struct via_send *send); /* eagerly, in several packets? */
int via_series_send(struct cmpi_proc *proc, struct via_send *send);

/* rndv.c */
int via_rndv_push(struct cmpi_proc *proc);
void via_rndv_accept(struct via_incoming *msg, bool in_receive); /* it has its receive; in_receive: by the call that posts it */
void via_rndv_data(struct via_send *send); /* follow from now on, as via_rndv_push finds room */
void via_rndv_begins(struct via_incoming *msg, uint64_t remote);
void via_rndv_over(struct via_incoming *msg);
int via_rndv_send(struct cmpi_proc *proc, struct via_send *send);
void via_rndv_cancel(struct via_send *send);
void via_cancel_answer(struct cmpi_proc *proc, uint64_t sreq, bool cancelled);

/* adi.c: between the module and the engine.  *recv NULL: unexpected.  False: no memory for it. */
bool via_adi_arrived(struct via_incoming *msg, struct via_recv **recv);
void via_adi_push(struct cmpi_proc *proc);
void via_adi_fail(struct cmpi_proc *proc);
int mpip_via_uirecv(struct cmpi *c, struct cmpi_proc *from, struct cmpi_message *message, struct cmpi_req *req);
int mpip_via_queuedsend(struct cmpi *c, struct cmpi_proc *proc);
extern const struct cmpi_protocol mpip_via_protocol;

#endif
