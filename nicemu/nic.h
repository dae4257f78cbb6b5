/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The emulated NIC: its one public header.  vipl is its only user inside this project; tools and tests use it too.
 *
 * A *card* is what one host has: process slots, VI contexts, memory map tables, links and payload buffers in memory that
 * every process of the host maps.  A `struct nic` is one process slot of a card, opened by one process; a process may
 * open several.  Two slots can talk exactly when they are on the same card (nic_attr.card).
 *
 * Calls on one `struct nic` must not overlap: the caller serialises them (vipl does).  Different handles are independent.
 * With engine `inline` the NIC works inside nic_post_* and nic_poll of the process that owns the slot; nothing else runs it.
 * With engine `thread` a thread of that process runs it, too, under the caller's lock (nic_open_args.enter).  With engine
 * `daemon` a process of its own runs the NICs of all slots of the card: what was posted goes on by itself, and the next
 * nic_poll completes the descriptors of what is over.  The short ways (nic_send_short, nic_send_given, nic_take, nic_take_of)
 * decline there.
 *
 * Every function returns an enum nic_err unless it says otherwise, and writes output parameters only on success.
 */
#ifndef NIC_H
#define NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/mem/cq.h"
#include "nicemu/mem/desc.h"

/* Errors: name, text.  One row each; nic_err_text gives the text. */
#define NIC_ERR_LIST(X) \
	X(OK, "success") \
	X(NOT_DONE, "not complete yet") \
	X(PARAMETER, "invalid parameter") \
	X(RESOURCE, "out of a bounded resource") \
	X(STATE, "object is in the wrong state") \
	X(PTAG, "invalid protection tag") \
	X(RELIABILITY, "reliability levels differ or are not supported") \
	X(MTU, "maximum transfer sizes differ or are not supported") \
	X(QOS, "quality of service not supported") \
	X(RDMA_READ, "RDMA read not supported at this reliability level") \
	X(NO_MATCH, "nobody waits at that address") \
	X(NOT_REACHABLE, "that address is not on this card") \
	X(REJECTED, "connection rejected") \
	X(BUSY, "object is in use") \
	X(SYSTEM, "the operating system refused") \
	X(UNKNOWN_NAME, "unknown name")
enum nic_err {
#define X(name, text) NIC_##name,
	NIC_ERR_LIST(X)
#undef X
	NIC_ERR_COUNT
};
const char *nic_err_text(int err);

/* Limits of a slot; all constant. */
enum {
	NIC_MAX_SLOTS = 256,
	NIC_MAX_VI = 1024,
	NIC_MAX_PTAG = 1023,           /* tags are 1 to this; 0 is none */
	NIC_MAX_REGIONS = 8191,
	NIC_MAX_QUEUE = 1024,          /* descriptors outstanding per work queue (the caller counts) */
	NIC_MAX_TRANSFER = 4 << 20,    /* bytes per descriptor */
	NIC_ADDR_LEN = 6,              /* bytes of a host address */
	NIC_DISC_MAX = 64,             /* bytes of a discriminator */
	NIC_DEVICE_MAX = 48,           /* bytes of a device name, terminator included */
	NIC_INLINE_MAX = 1068,         /* bytes that travel inside the cells of the link */
	NIC_BUFFER_SIZE = 32768 + 128, /* bytes of a payload buffer, a multiple of 64 */
};

/* Reliability levels (bit mask, values of VIPL). */
enum { NIC_UNRELIABLE = 1, NIC_RELIABLE_DELIVERY = 2, NIC_RELIABLE_RECEPTION = 4 };

struct nic;

/* Asynchronous errors, in the order of VIP_ERROR_CODE. */
enum nic_event_code {
	NIC_EV_POST_DESC, NIC_EV_CONN_LOST, NIC_EV_RECVQ_EMPTY, NIC_EV_VI_OVERRUN, NIC_EV_RDMAW_PROT, NIC_EV_RDMAW_DATA,
	NIC_EV_RDMAW_ABORT, NIC_EV_RDMAR_PROT, NIC_EV_COMP_PROT, NIC_EV_RDMA_TRANSPORT, NIC_EV_CATASTROPHIC
};
struct nic_event {
	enum nic_event_code code;
	uint64_t vi_cookie; /* 0: not about a VI */
	uint64_t desc;      /* address of the descriptor; 0: none */
	uint32_t op;        /* NIC_ST_OP_* */
};
/* Runs inside the nic_ call that noticed; must not call back into the same handle. */
typedef void nic_event_fn(void *arg, const struct nic_event *event);

struct nic_open_args {
	const char *device;   /* NULL: parameter `device`; see nic_open */
	nic_event_fn *event;  /* may be NULL */
	void *event_arg;
	/*
	 * The lock under which the caller makes its calls on the handle, for engines that run beside it (nic_attr.beside).  enter
	 * takes it if it is free.  leave gives it, and with `report` may call nic_stop.  NULL: such an engine is refused.
	 */
	bool (*enter)(void *enter_arg);
	void (*leave)(void *enter_arg, bool report);
	void *enter_arg;
};
/*
 * Attaches to the card of that device name (created when nobody on the host has it) and registers a process slot.
 * NIC_SYSTEM / NIC_RESOURCE are explained by nic_last_error().
 */
int nic_open(const struct nic_open_args *args, struct nic **out);
/* De-registers: connections are lost to their peers, buffers return to the card, memory is unmapped.  Always succeeds. */
int nic_close(struct nic *nic);
/*
 * Ends what runs beside the caller, who does not hold the lock, and makes no other call on the handle meanwhile.  nic_close
 * does it, too; who wants to hold the lock there calls this one before.
 */
void nic_stop(struct nic *nic);
/* Why the last nic_open of this thread failed; a sentence, never NULL. */
const char *nic_last_error(void);

struct nic_attr {
	char device[NIC_DEVICE_MAX];
	uint8_t addr[NIC_ADDR_LEN]; /* host address: the same for all processes of the host */
	uint64_t card;              /* identity of the card; equal means reachable */
	uint32_t slot;              /* own process slot */
	uint32_t life;              /* which of its lives: another process that gets the slot later has another one */
	const char *arch, *engine, *memory; /* names in force; memory: "memfd" or "file" */
	bool beside;                /* the NIC runs beside its caller: calls that do not overlap with each other still need the lock */
	uint32_t rdma_read;         /* mask of reliability levels with RDMA read */
};
void nic_query(const struct nic *nic, struct nic_attr *out);
/* Is that life of the slot going on?  Who had it may have ended in whatever way. */
bool nic_slot_lives(const struct nic *nic, uint32_t slot, uint32_t life);

/* ---- protection and memory -------------------------------------------------------------------------------------- */

/* Tag 0 is the null tag: it is never created, and checks nothing.  Tags start at 1. */
int nic_ptag_create(struct nic *nic, uint32_t *out);
int nic_ptag_destroy(struct nic *nic, uint32_t ptag); /* NIC_BUSY while a VI or region uses it */

enum { NIC_MEM_RDMA_WRITE = 1, NIC_MEM_RDMA_READ = 2 };
struct nic_mem_attr {
	uint32_t ptag;
	uint32_t flags; /* NIC_MEM_* */
};
/* Any alignment, any length >= 1; the same bytes may be registered several times.  Handles are never 0. */
int nic_mem_register(struct nic *nic, uint64_t addr, uint64_t len, const struct nic_mem_attr *attr, uint32_t *out);
int nic_mem_deregister(struct nic *nic, uint64_t addr, uint32_t handle);
int nic_mem_query(struct nic *nic, uint64_t addr, uint32_t handle, struct nic_mem_attr *out);
int nic_mem_set(struct nic *nic, uint64_t addr, uint32_t handle, const struct nic_mem_attr *attr);
/* Hot and pure: does [addr, addr+len) lie in that region, with that tag (or a null tag on either side)? */
bool nic_mem_check(const struct nic *nic, uint64_t addr, uint64_t len, uint32_t handle, uint32_t ptag);

/*
 * The pages of the NIC_LARGE_PAGE bytes around the address are to become one, because what lies there is moved again and again.
 * They need not be registered.  NIC_NOT_DONE: they stay as they are, which is no error.  Takes up to some milliseconds, once;
 * contents and addresses do not change, and the process does not become larger.
 */
enum { NIC_LARGE_PAGE = 2 << 20 };
int nic_mem_large(struct nic *nic, uint64_t addr);

/*
 * Memory in the card: every process of the host has it mapped, so that RDMA to and from it is a plain copy at both ends,
 * without a system call, whether or not the system allows copies between processes.  What may be done to it remotely is
 * still a matter of regions, tags and VIs, and it must be registered like any other memory.  Only this slot's process has it
 * within reach of its pointers.  Contents are undefined; aligned to a page, and followed by at least one page that is out of
 * reach.  A child of fork shares it with its parent.  NIC_RESOURCE: no room, no heap or no memory; nic_last_error tells.
 */
int nic_mem_alloc(struct nic *nic, uint64_t len, void **out);
/*
 * NIC_PARAMETER: not the start of memory that this slot has allocated.  What is left at nic_close stays in place, as ordinary
 * memory of this process for the rest of its life; but where the process has more handles of the card, it goes.
 */
int nic_mem_free(struct nic *nic, void *ptr);

/*
 * Payload buffers.  A message above NIC_INLINE_MAX bytes, and some shorter ones, travel in a buffer of the card's pool, NIC_BUFFER_SIZE bytes,
 * 64-byte aligned, that changes hands from the sender to the receiver.  The consumer may take part:
 *  - take/give: own a buffer, fill it, read it.  A buffer not given back or sent is the consumer's until nic_close.
 *  - a send descriptor with NIC_CTL_POOL and exactly one data segment (handle NIC_POOL_HANDLE) inside one taken buffer,
 *    at most NIC_BUFFER_SIZE bytes: when the descriptor completes (with whatever status) the buffer is no longer the
 *    consumer's.  SEND only, at any reliability level.
 *  - a receive descriptor with NIC_CTL_POOL: segments as usual (often one short one); a message that fits in them is
 *    copied there; a longer one of at most NIC_BUFFER_SIZE bytes arrives in a pool buffer which seg[1] then names
 *    (status NIC_ST_POOL): the buffer is now the consumer's, to give back or send on.  nseg must be 0 or 1.
 */
#define NIC_POOL_HANDLE 0xFFFFFFFFu
void *nic_buf_take(struct nic *nic); /* NULL: none free now; poll and try again */
void nic_buf_give(struct nic *nic, void *buf);

/* ---- virtual interfaces ------------------------------------------------------------------------------------------ */

enum nic_vi_state { NIC_VI_IDLE, NIC_VI_CONNECTED, NIC_VI_CONNECT_PENDING, NIC_VI_ERROR }; /* order of VIP_VI_STATE */
enum { NIC_VI_RDMA_WRITE = 1, NIC_VI_RDMA_READ = 2 };
struct nic_vi_attr {
	uint16_t reliability; /* one NIC_*RELIABLE* bit */
	uint16_t flags;       /* NIC_VI_*: what the peer may do to this side's memory */
	uint32_t max_transfer; /* bytes; 0 means NIC_MAX_TRANSFER */
	uint32_t ptag;
};
struct nic_vi_args {
	struct nic_vi_attr attr;
	uint64_t cookie;                /* even, not 0: names the VI in completion entries and events */
	struct nic_cq *send_cq, *recv_cq; /* NULL: none; owned by the caller, must outlive the VI */
};
int nic_vi_create(struct nic *nic, const struct nic_vi_args *args, uint32_t *out);
int nic_vi_destroy(struct nic *nic, uint32_t vi);      /* NIC_STATE unless idle; descriptors still posted are forgotten */
int nic_vi_set(struct nic *nic, uint32_t vi, const struct nic_vi_attr *attr); /* NIC_STATE unless idle */
int nic_vi_query(const struct nic *nic, uint32_t vi, enum nic_vi_state *state, struct nic_vi_attr *attr);

/* ---- work -------------------------------------------------------------------------------------------------------- */

/*
 * Posts one descriptor, which must already be at the end of the queue's chain (`next` of its predecessor, when that is
 * still posted, points to it) and have status 0.  Bad descriptors are not refused but complete in error.  The
 * descriptor may be complete on return.  Hot.
 */
int nic_post_send(struct nic *nic, uint32_t vi, struct nic_desc *desc);
int nic_post_recv(struct nic *nic, uint32_t vi, struct nic_desc *desc);
/*
 * Send_Short: the message is in the command itself, at most NIC_INLINE_MAX bytes: `head`, then `a`, then `b`.  It is copied
 * before the call returns, so it needs no descriptor, no registration and no completion.  A longer one, of at most NIC_BUFFER_SIZE
 * bytes, is copied into a buffer of the pool that the NIC takes for it, its last piece to the beginning of a line if there is room.  Not for NIC_RELIABLE_RECEPTION.
 * NIC_OK: it is on the link, behind everything posted before.  NIC_NOT_DONE: it cannot go now (not connected, work is
 * queued, the link is full, there is no buffer); nothing has happened, a descriptor will do.  Cheapest up to NIC_PAYLOAD bytes (mem/slot.h). Hot.
 */
struct nic_short {
	uint64_t head;
	const void *a, *b;
	uint32_t alen, blen;
};
int nic_send_short(struct nic *nic, uint32_t vi, const struct nic_short *msg);
/* The same for a message of more bytes that lies in a taken buffer, from `data` on: NIC_OK, and the buffer has changed hands. */
int nic_send_given(struct nic *nic, uint32_t vi, const void *data, uint32_t len);
/*
 * RDMA in the command: one local range, no immediate data, and all of it is done when the call returns, so there is no descriptor
 * and no completion.  NIC_NOT_DONE: not this way (not connected, work is queued, the NIC of the target takes part, the architecture
 * has no such way, or something is wrong with it): a descriptor will do, or tells what is wrong.  Part of the data may have been
 * copied then, nothing else has happened.  Hot.
 */
struct nic_rdma {
	uint64_t local, remote; /* addresses */
	uint32_t local_handle, remote_handle;
	uint32_t length, op;    /* bytes; NIC_CTL_RDMA_WRITE or _READ */
};
int nic_rdma_now(struct nic *nic, uint32_t vi, const struct nic_rdma *rdma);
/*
 * Posted write: RDMA of at most NIC_POSTED_MAX bytes by value, copied before the call returns, without descriptor, registration and completion.
 * nic_rdma_posted says when all that were posted on this NIC are in place: NIC_OK, or NIC_NOT_DONE.  They are in order among themselves, and what
 * is posted later on the VI is behind them as it would be behind a descriptor.  A peer that does not look needs them no less: then this NIC copies them.  Where the
 * peer takes its memory back meanwhile, the connection is lost, after NIC_EV_RDMAW_PROT.  Not for NIC_UNRELIABLE.
 * NIC_NOT_DONE: not this way now (not connected, work is queued, it is no row of writes, the peer was late with some lately, the architecture has
 * no such way, no room), or something is wrong with it; nothing has happened, a descriptor will do, or tells what is wrong.  Hot.
 */
enum { NIC_POSTED_MAX = 8192 };
struct nic_posted {
	const void *data;
	uint64_t remote;
	uint32_t remote_handle, length; /* bytes */
};
int nic_rdma_post(struct nic *nic, uint32_t vi, const struct nic_posted *write);
int nic_rdma_posted(const struct nic *nic);
/*
 * Fetch: RDMA read of at most NIC_FETCH_MAX bytes by value, without descriptor, registration and completion.  nic_rdma_fetched says how many of a VI's
 * have ended since its connection was made; they end in order, and the data are at `to` then, which is the NIC's to write until then.  What is posted later on
 * the VI need not be behind them, but NIC_CTL_QFENCE is.  A peer that does not look needs them no less: then this NIC copies them.  Where the peer takes its
 * memory back meanwhile the connection is lost, after NIC_EV_RDMAR_PROT; those that have not ended when a connection is over never do.  Not for NIC_UNRELIABLE.
 * NIC_NOT_DONE: not this way now (as for a posted write, or a write is under way), or something is wrong with it; nothing has happened, a descriptor will
 * do, or tells what is wrong.  Hot.
 */
enum { NIC_FETCH_MAX = 8192 };
struct nic_fetch {
	void *to;
	uint64_t remote;
	uint32_t remote_handle, length; /* bytes */
};
int nic_rdma_fetch(struct nic *nic, uint32_t vi, const struct nic_fetch *read);
uint32_t nic_rdma_fetched(const struct nic *nic, uint32_t vi, uint32_t *failed); /* failed, or NULL: status of the first that has failed, NIC_ST_*; 0: none */
/* One bounded pass over links and queues; returns how many things moved, 0 when idle.  Hot. */
int nic_poll(struct nic *nic);
/*
 * Receives a message by value: as nic_poll, but when the next thing on a link is a message of one packet, without immediate
 * data and not at Reliable Reception, for a VI whose receives complete on `cq`, and `cq` is empty, then its length is
 * returned and `out` filled.  The receive at the head of the queue must be there and be good for the message, as for any
 * other; but it stays posted, and there is no completion.  Otherwise 0, and what has arrived is in the queues.  Hot.
 */
struct nic_taken {
	uint64_t cookie; /* of the VI */
	void *data;      /* in: room for NIC_INLINE_MAX bytes; out: where the message is, there or in a buffer of the pool */
	void *buffer;    /* that buffer, the consumer's from now on; NULL: none */
	uint32_t length; /* out: of the message, by nic_take_of */
	uint32_t surplus; /* out, with a buffer: 1: it will go back to its sender; nic_buf_read when it has been read */
};
uint32_t nic_take(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out);
/*
 * The same for one VI whose message is expected next: NIC_OK when what nic_take would take is next on that VI's link, else
 * NIC_NOT_DONE, and then nothing was done, but for a short read of the peer's (RDMA); out->data is NULL when something else was next there.  It is no replacement for
 * nic_take, which looks at all links and does what else there is to do.  Hot.
 */
int nic_take_of(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_taken *out);
/*
 * The same for a consumer that waits for one message and knows how it begins: what follows its first 16 bytes is copied to where the consumer wants it,
 * from the link or out of its buffer, which stays with the NIC.  Looks so many times, some 6 ns each (16 where it foresees a buffer, 14 where links hasten), and NIC_EXPECTED_LOOKS times at most; that counts as one call.
 * NIC_NOT_DONE: nothing has come, or something else is next there; `length` and `word` mean nothing then.  Hot.
 */
enum { NIC_EXPECTED = 16, NIC_EXPECTED_LOOKS = 4096 };
struct nic_expected {
	uint64_t head, mask, key; /* the first 8 bytes, as far as the mask goes, and the second */
	void *to;                 /* the rest, */
	uint32_t room;            /* of so many bytes at most */
	uint32_t length;          /* out: the rest's */
	uint64_t word;            /* out: the first 8 bytes */
};
int nic_take_expected(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_expected *message, uint32_t looks);
/*
 * The same for a row of them, behind one that nic_take or nic_take_of has returned: as many as have come of NIC_BRIEF bytes at most, `most` at
 * most; returns how many.  0: perhaps there is something else.  Hot.
 */
enum { NIC_BRIEF = 108 };
struct nic_brief {
	uint32_t length, pad;
	uint64_t data[(NIC_BRIEF + 7) / 8];
};
uint32_t nic_take_row(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_brief *out, uint32_t most);
/* A row of those that came in buffers, of `longest` bytes at most each, which are the consumer's from now on.  Lines are asked for of the first only.  Hot. */
struct nic_message {
	void *data; /* where it begins in its buffer */
	uint32_t length;
	uint32_t surplus; /* as in nic_taken */
};
uint32_t nic_take_buffers(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_message *out, uint32_t most, uint32_t longest);
void nic_buf_read(struct nic *nic, const void *data, uint32_t len); /* so much of a buffer, still the consumer's, has just been read: its lines migrate */
void nic_buf_copy(struct nic *nic, void *to, const void *data, uint32_t len); /* reads it, and does the same meanwhile; from elsewhere: a plain copy */
void nic_buf_give_row(struct nic *nic, const struct nic_message *row, uint32_t n); /* the buffers of messages */

/* ---- connections ------------------------------------------------------------------------------------------------- */

struct nic_addr {
	uint8_t host[NIC_ADDR_LEN];
	uint16_t disc_len;
	uint8_t disc[NIC_DISC_MAX];
};

/*
 * Server: listen_open (waiting), listen_poll until it returns NIC_OK with the client's address and attributes, then
 * accept (VI idle; the connection is up at this side on NIC_OK; attribute errors leave the request open) or reject.
 * listen_close withdraws; NIC_BUSY when a client has just arrived (poll again).  A local discriminator of length 0
 * matches every client.
 */
int nic_listen_open(struct nic *nic, const struct nic_addr *local, uint32_t *id);
int nic_listen_poll(struct nic *nic, uint32_t id, struct nic_addr *client, struct nic_vi_attr *attr);
int nic_listen_close(struct nic *nic, uint32_t id);
int nic_accept(struct nic *nic, uint32_t id, uint32_t vi); /* NIC_STATE: the client gave up meanwhile (id is gone) */
int nic_reject(struct nic *nic, uint32_t id);

/*
 * Client: request (NIC_NO_MATCH at once when nobody waits at `remote`; the VI stays idle), then poll until not
 * NIC_NOT_DONE: NIC_OK (connected; the server's attributes), NIC_REJECTED, NIC_NO_MATCH (server died); the VI is idle
 * again unless connected.  cancel withdraws: NIC_OK idle again, NIC_BUSY when the server has already answered (poll).
 */
int nic_connect_request(struct nic *nic, uint32_t vi, const struct nic_addr *local, const struct nic_addr *remote);
int nic_connect_poll(struct nic *nic, uint32_t vi, struct nic_vi_attr *remote_attr);
int nic_connect_cancel(struct nic *nic, uint32_t vi);

/*
 * Peer to peer: both sides request; a pair matches when each one's remote is the other's local address.  poll and cancel
 * as above (poll also NIC_RELIABILITY / NIC_MTU: they do not fit, idle again).
 * peer_pending looks for a request of another slot that is still unmatched and whose remote address has the host address
 * of this card; cursor starts at 0 and moves on; NIC_NOT_DONE at the end.  nic_peer_epoch changes whenever a request
 * appears: one load, for cheap polling.
 */
int nic_peer_request(struct nic *nic, uint32_t vi, const struct nic_addr *local, const struct nic_addr *remote);
int nic_peer_poll(struct nic *nic, uint32_t vi, struct nic_vi_attr *remote_attr);
int nic_peer_cancel(struct nic *nic, uint32_t vi);
int nic_peer_pending(struct nic *nic, uint32_t *cursor, struct nic_addr *their_local, struct nic_addr *their_remote);
uint32_t nic_peer_epoch(struct nic *nic);

/* Any state: flushes posted descriptors (they complete with NIC_ST_FLUSHED), tells the peer, VI becomes idle. */
int nic_disconnect(struct nic *nic, uint32_t vi);
/* Who is at the other end of a connected VI: process id and slot; NIC_STATE when there is nobody. */
int nic_vi_peer(const struct nic *nic, uint32_t vi, int *pid, uint32_t *slot);
/*
 * Had a message of so many bytes, from that address to the peer of a connected VI, better be sent in pool buffers than read by the peer (RDMA)?
 * Sent, it is copied twice, by both processes at once, and takes no system call; but it needs both of them.  No: it is very long, or
 * system calls copy fast, or the address is in the card, or processes take turns on the cores, or there is no peer; or it is long, and this
 * process hardly looked for packets (nic_take_of) while others like it were under way; or the peer has found out that reading takes less time.
 * *single: it is the first to that peer since this process last looked, which the peer's NIC is to be told.  NULL: it is not, nor when the message begins
 * there (nic_long_begins), so what the peer has found out is of others, and does not count.  Before the call: will it leave at once, if it is?  Then
 * it needs nobody later, and it does not matter how often this process looks.
 */
bool nic_rather_sent(struct nic *nic, uint32_t vi, uint64_t addr, uint64_t len, bool *single);
/*
 * What that is told from: a long message of the VI's peer whose receive is known, until its data are there, or will never be, which are read from
 * `remote`, or which the peer sends (0); single, as said there (nic_rather_sent).  False: it says nothing, and its end is not to be told.
 */
bool nic_long_begins(struct nic *nic, uint32_t vi, uint64_t remote, uint64_t len, bool single);
void nic_long_over(struct nic *nic, uint32_t vi, uint64_t len, bool read, bool single);

/*
 * Who sends long messages, many in a row, in pool buffers (nic_send_short) asks before each of those whether it is to leave now.  False: few of them go
 * round just now, and enough are under way; the NIC is to be polled, then asked again.  It never waits for a peer that is doing something else.
 */
bool nic_bulk_turn(struct nic *nic, uint32_t vi);

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/*
 * What to do when nic_poll finds nothing, and the consumer has nothing else to do either.  One struct nic_wait is one wait
 * of one thread; all zero is a wait that begins.
 *   plan   counts as a call on the handle.  Decides by parameter `wait`, by how the processes of the card and the cores they
 *          may use compare, and by what this wait has gone through so far, what rest does: `rest` says what.  `longest`:
 *          nanoseconds it may sleep in one go; 0: not at all, as when somebody polls for more than this NIC.  Returns how
 *          many idle looks the consumer may take before it asks again, a power of two.  It is for a tight loop of looks: who
 *          does something else in between, does not sleep, and is left alone if that takes 2 us and more; with `lends` its
 *          core is offered even then.
 *   look   at the start of a look, if it may take long itself: only the time up to here is something else.  A look that plan is not asked after
 *          counts as something else, too.
 *   rest   does it; may overlap with calls of other threads on the handle.  A sleep ends when a packet comes, when a peer
 *          asks for a connection or answers such a request, when a NIC in a process of its own has completed something, when the
 *          handle is closed, or when its time is over.
 *   doze   the last step of plan by itself: prepares a sleep of that length.  False: it cannot be now, since something has
 *          come (`rest` says spin) or is on its way without waking anybody (yield; also: an operation of a NIC in a process of
 *          its own is over, and was not asked about).  True: rest must follow, close waits for it.
 * Whatever completes because of another thread's call on the same handle wakes nobody: a sleep should have a bound.
 */
enum nic_rest { NIC_REST_SPIN, NIC_REST_YIELD, NIC_REST_SLEEP };
struct nic_wait {
	uint32_t rest;  /* enum nic_rest: what nic_wait_rest does */
	bool lends;     /* the consumer sets it if it has been told to offer its core at every look that finds nothing: here, not by a sched_yield of its own, which would look like work */
	uint8_t burst, looking; /* private, as is what follows `began` */
	uint64_t began; /* the consumer sets 0 when something has come: a new wait of the same loop begins */
	uint64_t last, sleep;
	uint32_t looks, yields, switches;
	uint16_t gap, sum, least;
	struct nic *nic;
};
uint32_t nic_wait_plan(struct nic *nic, struct nic_wait *wait, uint64_t longest);
void nic_wait_look(struct nic_wait *wait);
bool nic_wait_doze(struct nic *nic, struct nic_wait *wait, uint64_t ns);
void nic_wait_rest(struct nic_wait *wait);
/* Do the processes of the card outnumber the cores they may use, or did others hold this one's lately? */
bool nic_wait_crowded(struct nic *nic);

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/*
 * Groups of slots, and what they do together: commands that the NICs carry on by themselves while their hosts do something
 * else (with engine `inline`: whenever the host polls).  Each call starts an operation; nic_op_test says when it is over and
 * forgets it then.  A barrier or broadcast that is over before its call returns has the number NIC_OP_OVER, and need not be
 * tested.  At most NIC_OPS of joins, barriers and sends, and of receives, are under way in a slot.
 *
 * All members join with the same name and size.  Members are named by their slots, in the same order everywhere, each
 * once; a slot that has another life by now is that of a member that has died.  On a NIC with a Name Table (arch qnix) `slot`
 * may be NULL: whoever joins under that name belongs to it.  The value of a join is the group's number at this NIC.  NIC_STATE:
 * it has failed, and the value says why (NIC_WHY_*; of a join that is shifted by NIC_WHY_SHIFT, and the number stands below
 * it).  After NIC_WHY_LENGTH the group is as good as before, else it is good for nothing but leaving.  Leaving waits for
 * nobody: who leaves says by it that nothing in the group concerns it any more; what others start in the group when they have
 * heard of it ends with NIC_STATE.
 */
enum {
	NIC_WHY_NO_GROUP = 0,     /* this process is not a member of it */
	NIC_WHY_DIED = 1,         /* this and what is added to it: the slot of the member that died */
	NIC_WHY_LEFT = 0x1000,    /* a member has left */
	NIC_WHY_LENGTH,           /* the broadcast has another length than its receiver gave */
	NIC_WHY_DATA,             /* what came of it makes no sense */
	NIC_WHY_NIC = 0xFFFFFF,   /* the NIC of this process has died (engine daemon); of a join, too, without a shift */
	NIC_WHY_SHIFT = 8,
};
enum { NIC_OPS = 32, NIC_OP_OVER = 0, NIC_BCAST_MAX = 1 << 20, NIC_BCAST_BRIEF = 512 };
struct nic_group_args {
	uint32_t name, size;
	uint32_t place;       /* own place in `slot` */
	const uint32_t *slot; /* NULL: found by name */
	const uint32_t *life; /* of each of these; NULL: whoever has the slots now */
};
int nic_group_join(struct nic *nic, const struct nic_group_args *args, uint32_t *op);
int nic_group_leave(struct nic *nic, uint32_t group);
/* NIC_BUSY: the last barrier of that group is under way still, or the Command Queue is full. */
int nic_barrier(struct nic *nic, uint32_t group, uint32_t *op);
/*
 * root: slot that has the data, which may be this one; the same everywhere.  At most NIC_BCAST_MAX bytes, the same length at
 * all members; one that gave another length than the root finds NIC_STATE.  Over at the root: the buffer may be used again;
 * elsewhere: the data is there.  Broadcasts of one root in a group are taken in the order of the calls.
 */
int nic_bcast(struct nic *nic, uint32_t group, uint32_t root, void *buf, uint64_t len, uint32_t *op);
/*
 * NIC_NOT_DONE; NIC_OK and the value (of a broadcast: its length; of NIC_OP_OVER: none); NIC_RESOURCE (it may be tried again),
 * NIC_STATE: it has failed.
 */
int nic_op_test(struct nic *nic, uint32_t op, uint32_t *value);
/*
 * Are barriers and broadcasts over before their calls return, when nobody has to be waited for?  Not where another process or messages
 * do them.
 */
bool nic_groups_at_once(const struct nic *nic);

/* ---- the QNIX process interface (arch qnix) ---------------------------------------------------------------------- */

/*
 * A process's name and its group, for the Name Tables of all NICs; named is over (NIC_OK) when all of the group are
 * registered everywhere.  NIC_STATE: not this architecture, or a process of the group has died; NIC_RESOURCE: there are too
 * many groups.
 */
int nic_process_name(struct nic *nic, int32_t ai, int32_t pi, uint32_t group, uint32_t size);
int nic_process_named(struct nic *nic);
/* What process and NIC share of this slot (mem/qnix.h): Virtual Network Interface and host process structure. */
struct qnix_slot;
struct qnix_slot *nic_process_interface(struct nic *nic);
/*
 * Commands have been put there, or their end is waited for: the NIC goes on, here or in its own process.  NIC_STATE: it has
 * died, and no doorbell will ring any more.
 */
int nic_process_look(struct nic *nic);
/* The driver's translation of a buffer that is locked: a bus address for each page; their number, 0: more than `room`. */
uint32_t nic_translate(struct nic *nic, uint64_t addr, uint64_t len, uint64_t *out, uint32_t room);

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/*
 * Counters live in the slot, named beside their value, so that tools read them from outside while the job runs.
 * The NIC's own are declared in obs/counters.def; layers above add theirs.  A cell is written by its owner only, plainly.
 */
enum { NIC_COUNTER_NAME = 32, NIC_COUNTER_HELP = 88, NIC_MAX_COUNTERS = 96 };
struct nic_counter {
	char name[NIC_COUNTER_NAME];
	char help[NIC_COUNTER_HELP];
};
/* Adds a counter (or finds the one of that name): NULL when the table is full. */
uint64_t *nic_counter_add(struct nic *nic, const char *name, const char *help);
/* Counter number i of this slot; NULL past the end. */
const uint64_t *nic_counter_at(const struct nic *nic, uint32_t i, const struct nic_counter **row);

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/*
 * Parameters of the whole stack, declared in util/params.def.  Value: nic_param_set (source "mca" or the caller's word)
 * before environment QNIX_<NAME> before ~/.qnix/qnix.conf before the system file before the default.
 */
struct nic_param {
	const char *name, *help;
	const char *type;    /* "int", "int:least..greatest", "size" likewise, "bool", "string", "enum:a|b|c" */
	const char *fits;    /* the same in words: "one of a, b, c", "a whole number, from 1 to 9" */
	const char *value;   /* effective, as text */
	const char *source;  /* "default", "environment", a file name, … */
	int level;           /* 1 (user, basic) … 9 (developer, all), as in Open MPI */
};
const struct nic_param *nic_param_at(uint32_t i);            /* NULL past the end */
const struct nic_param *nic_param_find(const char *name);    /* NULL: unknown */
int nic_param_set(const char *name, const char *value, const char *source); /* NIC_UNKNOWN_NAME, NIC_PARAMETER */
int64_t nic_param_int(const char *name);   /* int, bool and size (k/m/g applied); asserts the name exists */
const char *nic_param_str(const char *name);

/* ---- looking from outside (tools) -------------------------------------------------------------------------------- */

struct nic_card_info {
	char device[NIC_DEVICE_MAX];
	int pid;         /* a process that holds it */
	uint64_t card;
};
struct nic_slot_info {
	uint32_t slot;
	int pid;
	int daemon; /* process that runs it (engine daemon); 0: its own */
	char command[32];
	uint32_t links, vis; /* peers connected, VIs in use */
	uint32_t ncounters;
	struct nic_counter row[NIC_MAX_COUNTERS];
	uint64_t value[NIC_MAX_COUNTERS];
};
/*
 * For the program that is a card's daemon (`qnix nic`): runs the NICs of all processes with engine `daemon` on it, and returns
 * when there are none.  ready is called once it serves.  NIC_BUSY: another one does.  In the daemon's build of this library
 * only.
 */
int nic_daemon_run(const char *device, void (*ready)(void *arg), void *arg);
/* Calls fn for each card of this user and host, then each live slot of one card; fn returns non-zero to stop. */
int nic_cards(int (*fn)(void *arg, const struct nic_card_info *), void *arg);
int nic_card_slots(const struct nic_card_info *card, int (*fn)(void *arg, const struct nic_slot_info *), void *arg);

/* What this machine offers, found by trying it.  text says what is used instead when ok is false. */
struct nic_check {
	const char *what;
	bool ok;
	char text[160];
};
const struct nic_check *nic_check_at(uint32_t i); /* NULL past the end; the first call runs the trials */

#endif
