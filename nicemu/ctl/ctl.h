/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the NIC know of each other: the private state of one process slot, and the functions of ctl/.
 * Everything shared between processes is in mem/; this is the memory of the one process that runs the slot.
 */
#ifndef NIC_CTL_H
#define NIC_CTL_H

#include "nicemu/arch/arch.h"
#include "nicemu/engine/card.h"
#include "nicemu/engine/engine.h"
#include "nicemu/engine/host.h"
#include "nicemu/engine/link.h"
#include "nicemu/engine/wait.h"
#include "nicemu/mem/card.h"
#include "nicemu/nic.h"
#include "nicemu/obs/counters.h"
#include "nicemu/util/atomic.h"

enum {
	NIC_POLL_LINK = 32,      /* packets taken from one link per pass */
	NIC_PASS_LINKS = 16,     /* links looked at per pass */
	NIC_PASS_RECENT = 8,     /* of them, those that come in every pass when there are more; the others take turns */
	NIC_POLL_VI = 16,        /* send descriptors of one VI per pass */
	NIC_WATCH_POLLS = 4096,  /* passes between two looks at whether a peer lives, one peer a look */
	NIC_CALLS = NIC_OPS,          /* calls about groups under way, sending and receiving */
	NIC_BUFFER_BATCH = 16,   /* buffers moved between a slot and the card's pool at once */
	NIC_KEEPS_FEW = 2,       /* surplus of buffers that is not returned, while few go round */
};

/* The long messages since the last look that were said to be better sent (nic_rather_sent), until a buffer is taken behind another look. */
struct nic_promise {
	uint32_t to;    /* slot of the peer of the first + 1; 0: none */
	uint32_t looks; /* so far */
	uint64_t at;    /* nic_clock, of the first */
	uint64_t read;  /* ns that the peer would take to read them */
};

struct nic {
	/* hot */
	uint64_t *counter;
	struct nic_slot *slot;
	struct nic_card_map *map;
	uint8_t *pool;                /* map->buffer */
	const struct nic_arch *arch;
	const struct nic_engine *engine;
	uint32_t me;
	uint32_t nactive;             /* links to poll */
	uint32_t next;                /* place in the pass that nic_take looks at first */
	uint32_t turn, recent;        /* of many links: whose turn it is; which of the recent ones makes room for the next */
	uint32_t npending;            /* VIs with work in the send queue */
	uint32_t nwork;               /* these, and group_work: one look for a pass with nothing to do */
	uint32_t nshared;             /* transfers that both ends work on: asked of peers, and asked by them */
	uint32_t nposted;             /* of these, those that are posted writes */
	uint32_t polls;               /* passes since the last look after a peer */
	uint32_t looks;               /* at one link only (nic_take_of) */
	struct nic_promise promise;
	uint32_t watched;             /* active link looked after last */
	uint8_t keeps;                /* surplus of a peer's buffers that is not returned yet */
	int64_t buffer_taken, buffer_cap; /* out of the card's pool; parameter `buffers` */
	bool told_full;               /* that the card's file system has no room */
	int64_t buffer_kept;          /* by boards, for as long as they are theirs: not for messages, and not of what the parameter bounds */
	struct nic_link *link[NIC_MAX_SLOTS];   /* by peer slot; NULL: none */
	struct nic_link *active[NIC_MAX_SLOTS]; /* of many, the first NIC_PASS_RECENT are those that brought something last */
	uint16_t pending[NIC_MAX_VI];

	/* control path */
	struct nic_card *card;
	nic_event_fn *event;
	void *event_arg;
	uint64_t probe_word;
	uint32_t vi_used;             /* VIs ever used: scans stop here */
	uint32_t mmt_used, mmt_free;  /* entries ever used; head of a list through `generation` of free ones is not kept: scan */
	uint32_t ptag_use[NIC_MAX_PTAG + 1]; /* 0: free; 1 + users otherwise */
	uint16_t connect_slot[NIC_MAX_VI]; /* server's slot + 1 of a request on its way */
	uint32_t connect_epoch[NIC_MAX_VI];
	uint16_t connect_id[NIC_MAX_VI];
	bool stage;                   /* parameter `staging` */
	bool cma;                     /* parameter `cma` is not off */
	bool demotes;                 /* parameter `demote`: answers let go of their lines */
	bool foresees;                /* parameter `foresee`: what a message will lie in is asked for when its first line comes */
	bool hastens;                 /* parameter `hasten`: an awaited message is looked for as on processors that go on as if it were there */
	bool migrates;                /* parameter `migrate`: lines of what goes back to a peer do */
	int8_t large;                 /* may pages be put together?  1, -1; 0: nobody has asked yet */
	struct nic_waiting waiting;

	uint32_t group_work;          /* groups that passes come to */
	/* what an architecture or a use of the NIC adds; NULL: not there */
	uint32_t calls[2], calls_backed[2]; /* bits: contexts of calls about groups that are in use; that have memory */
	uint32_t call_barriers;             /* of the sending ones, those of barriers */
	uint32_t call_group[NIC_CALLS];     /* group + 1 of a barrier under way */
	struct nic_remote *remote;          /* of engine `daemon`: the NIC is elsewhere */
	struct nic_thread *thread;          /* of engine `thread` */
	uint32_t visits;                    /* it counts the host's looks */
	bool news;                          /* it has moved something since the last of them */
	_Atomic uint32_t *deaf;             /* in the daemon: the bell of all slots, which nobody rings */
	bool host_gone;                     /* in the daemon: the process's memory cannot be reached */
	bool rung;                          /* in the daemon: a doorbell of the process has been, since it was told last */
	struct qnix *qnix;
	struct nic_groups *groups;
	struct nic_trace *trace;
	uint8_t buffer_known[NIC_POOL_BUFFERS]; /* pages of each, as nic_buffer_known says */
};

static inline struct nic_vi_ctx *nic_vi(const struct nic *nic, uint32_t vi)
{
	return &nic->slot->vi[vi & (NIC_VI_TABLE - 1)];
}

/* Everything that was posted is complete, or at least on the link. */
static inline bool nic_vi_tx_empty(const struct nic_vi_ctx *ctx)
{
	return ctx->tx_head == ctx->tx_tail && !ctx->tx_spilled;
}

/* The slot in the card; `slot` may be private (engine/remote.c). */
static inline struct nic_slot *nic_own_slot(const struct nic *nic)
{
	return &nic->map->slot[nic->me];
}

static inline uint32_t nic_vi_state(const struct nic_vi_ctx *ctx)
{
	/* Relaxed: the owner reads what it wrote itself. */
	return nic_load_relaxed(&ctx->state);
}

/* Host addresses of this process. */
static inline void *nic_host(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

/* driver.c: process registration */
int nic_driver_register(struct nic *nic);
void nic_driver_deregister(struct nic *nic);
bool nic_driver_alive(const struct nic *nic, uint32_t slot, uint32_t epoch);
struct nic_link *nic_driver_link(struct nic *nic, uint32_t slot, uint32_t epoch); /* opens it if need be; NULL: no memory */
struct nic_link *nic_driver_link_now(const struct nic *nic, uint32_t slot, uint32_t epoch); /* only if it is open */
void nic_driver_watch(struct nic *nic);      /* looks after one peer */
void nic_driver_watch_all(struct nic *nic);

/* vi.c */
void nic_vi_up(struct nic *nic, uint32_t vi, const struct nic_end *peer); /* idle or pending -> connected */
enum { NIC_EV_NONE = -1 };
/* connected -> error: flushed, the peer is told, with the error of the message that caused it (NIC_ST_*, 0: none) */
void nic_vi_fail(struct nic *nic, uint32_t vi, int event, uint32_t remote_error);
void nic_vi_lost(struct nic *nic, uint32_t vi); /* the peer's end is gone */
void nic_vi_flush(struct nic *nic, uint32_t vi);
void nic_vi_flush_sends(struct nic *nic, uint32_t vi);
void nic_vi_schedule(struct nic *nic, uint32_t vi);
void nic_event(struct nic *nic, enum nic_event_code code, uint64_t vi_cookie, uint64_t desc, uint32_t op);

/* conn.c */
void nic_conn_settle(struct nic *nic, uint32_t vi); /* pending, and data has come: connected if the peer agreed; opens no link */
void nic_conn_withdraw(struct nic *nic, uint32_t vi);
void nic_conn_forget(struct nic *nic); /* withdraws everything this slot has in the connection tables */

void nic_driver_reap(struct nic *nic); /* takes heap memory from the dead; the card lock is held */

/* heap.c */
void nic_heap_release(struct nic *nic);               /* all that this slot has; recovered when nobody has a link with it */
void nic_heap_recover(struct nic *nic, uint32_t slot); /* the card lock is held; nobody has a link with that slot */

/* mem.c */
bool nic_remote_check(const struct nic_slot *peer, uint32_t vi, uint64_t addr, uint64_t len, uint32_t handle, uint32_t need);
uint32_t nic_ptag_users(const struct nic *nic, uint32_t ptag);
bool nic_ptag_get(struct nic *nic, uint32_t ptag); /* false: no such tag */
void nic_ptag_put(struct nic *nic, uint32_t ptag);

/* buf.c */
static inline uint8_t *nic_buffer(const struct nic *nic, uint32_t index)
{
	return nic->pool + (size_t)(index & (NIC_POOL_BUFFERS - 1)) * NIC_BUFFER_SIZE;
}
/* Has so much of it been written for a timed transfer, or read as part of a stream, here before?  The first time costs page faults, at both ends. */
static inline bool nic_buffer_known(struct nic *nic, uint32_t index, uint32_t len)
{
	uint8_t *known = &nic->buffer_known[index & (NIC_POOL_BUFFERS - 1)], pages = (uint8_t)((len + NIC_PAGE - 1) / NIC_PAGE);

	if (nic_likely(pages <= *known))
		return true;
	*known = pages;
	return false;
}
/* The one that is taken next, if nothing happens before; if there is none, any. */
static inline uint32_t nic_buffer_next(const struct nic *nic)
{
	return nic->slot->buffer[nic_likely(nic->slot->nbuffers) ? nic->slot->nbuffers - 1 : 0];
}
bool nic_buffer_fetch(struct nic *nic);            /* some from the pool; false: there is none */
/* Take will find one. */
static inline bool nic_buffer_any(struct nic *nic)
{
	return nic_likely(nic->slot->nbuffers != 0) || nic_buffer_fetch(nic);
}
/* There is one. */
static inline uint32_t nic_buffer_pop(struct nic *nic)
{
	struct nic_slot *slot = nic->slot;
	uint32_t left = slot->nbuffers - 1;

	slot->nbuffers = left;
	nic_store_order(); /* it is gone from here before it is anywhere else */
	return slot->buffer[left];
}
static inline bool nic_buffer_take(struct nic *nic, uint32_t *index)
{
	if (nic_unlikely(!nic_buffer_any(nic)))
		return false;
	*index = nic_buffer_pop(nic);
	return true;
}
void nic_buffer_give(struct nic *nic, uint32_t index);
uint32_t nic_buffer_give_row(struct nic *nic, const uint32_t *index, uint32_t n); /* those of them that are buffers; how many */
void nic_buffer_release(struct nic *nic);          /* all in hand go back to the pool */
void nic_buffer_recover(struct nic *nic, uint32_t slot); /* what a dead slot held; the card lock is held */
void nic_promise_kept(struct nic *nic);            /* rdma.c: a part of it, or what is as long, leaves now */
void nic_buffer_balance(struct nic *nic, struct nic_link *link); /* sends surplus back */
/* To the process's memory, out of a buffer that has come over the link; NULL: from elsewhere. */
static inline void nic_buffer_write_out(struct nic *nic, const struct nic_link *link, uint64_t bus, const uint8_t *data, uint32_t len)
{
#ifndef NIC_ELSEWHERE
	if (link && nic_link_surplus(link) && len > 64) {
		nic_copy_migrating(nic_host(bus), (uint8_t *)data, len);
		nic_count(nic, migrated, 1);
		return;
	}
#else
	(void)link;
#endif
	nic_host_write(nic, bus, data, len);
}

/* tx.c, rx.c, take.c, rdma.c, rdma_ask.c, sysmsg.c */
bool nic_tx_cut(struct nic *nic, struct nic_vi_ctx *ctx, struct nic_desc *desc); /* the short way past an empty queue; false: not for this one */
void nic_tx_finish(struct nic *nic, uint32_t vi, struct nic_txe *e, uint32_t status, uint64_t done);
void nic_tx_gather(struct nic *nic, uint32_t vi, struct nic_desc *desc, uint32_t from, uint32_t len, uint8_t *to);
int nic_tx_run(struct nic *nic, uint32_t vi, int budget);     /* executes the send queue; returns descriptors moved */
int nic_tx_pending(struct nic *nic);                         /* the same for each VI that waits */
void nic_tx_done(struct nic *nic, uint32_t vi, uint32_t pos, uint32_t error); /* of a descriptor that its peer was asked to help with */
void nic_tx_acknowledge(struct nic *nic, uint32_t vi, uint32_t count, uint32_t error);
int nic_rx_run(struct nic *nic, struct nic_link *link, struct nic_packet *first, int budget, bool taker); /* first: what peek returned, handled in any case */
uint32_t nic_rx_take(struct nic *nic, struct nic_link *link, const struct nic_packet *p, const struct nic_cq *cq,
                     struct nic_taken *out); /* nic_take for that packet; 0: not this one */
int nic_rx_drain(struct nic *nic, struct nic_link *link);
enum nic_rx_room { NIC_RX_ROOM, NIC_RX_WAIT, NIC_RX_REJECTED };
struct nic_vi_ctx *nic_rx_target(struct nic *nic, struct nic_link *link, uint32_t vi, uint8_t gen);
enum nic_rx_room nic_rx_room(struct nic *nic, uint32_t vi, uint32_t len, uint32_t bound, uint32_t *buffer);
bool nic_rx_still_up(struct nic *nic, struct nic_link *link, uint32_t vi);
bool nic_rx_ready(struct nic *nic, uint32_t vi, uint32_t len, bool pooled);
void nic_rx_scatter(struct nic *nic, uint32_t vi, uint32_t from, const uint8_t *data, uint32_t len);
void nic_rx_done(struct nic *nic, uint32_t vi, uint32_t flags, uint32_t len, uint32_t imm, uint32_t buffer);
void nic_rx_flush(struct nic *nic, uint32_t vi);
void nic_rx_head(struct nic *nic, uint32_t vi); /* a malformed descriptor has come to the head of the queue? */
void nic_rx_fetch(struct nic *nic, struct nic_vi_ctx *ctx, const struct nic_desc *desc, struct nic_rxe *out);
/* rdma_ask.c and rdma_serve.c, for packets that rx.c takes from a link; `p` is foreign memory, what stands beside it was copied from it */
bool nic_rdma_place(struct nic *nic, const struct nic_link *link, uint32_t vi, const struct nic_packet *p, uint32_t index, uint32_t len); /* false: refused */
void nic_rdma_request(struct nic *nic, struct nic_link *link, uint32_t vi, const struct nic_packet *p, uint32_t len);
void nic_rdma_pass_over(struct nic_link *link, const struct nic_packet *p, uint32_t op); /* if it asks for something */
void nic_rdma_put(struct nic *nic, struct nic_link *link, uint32_t vi, const struct nic_packet *p, const uint8_t *data, uint32_t len);
void nic_rdma_part(struct nic *nic, struct nic_link *link, uint32_t vi, const struct nic_packet *p, uint32_t index, uint32_t len, uint32_t flags);
int nic_rdma_run(struct nic *nic);                    /* one pass over what both ends work on */
void nic_rdma_revoke(struct nic *nic, uint32_t vi);   /* nobody but its owner touches the memory of the VI's descriptors after this */
void nic_rdma_settle(struct nic *nic, struct nic_link *link, struct nic_ask *a);
void nic_rdma_forget(struct nic *nic, const struct nic_link *link); /* the link goes */
void nic_sys_ack(struct nic *nic, uint32_t vi, uint32_t count); /* now or later; count 0: what is owed */
void nic_sys_disconnect(struct nic *nic, uint32_t vi, uint32_t error);
int nic_sys_run(struct nic *nic, struct nic_link *link); /* what had to wait */
void nic_sys_resync(struct nic *nic, const struct nic_link *link); /* the peer's VIs have changed behind our back */
/* strat/post_ring.c, for those that queue every send */
void nic_post_queue(struct nic *nic, uint32_t vi, struct nic_desc *desc);
uint16_t nic_qnix_pid(const struct nic *nic, uint32_t slot); /* short process id of a slot's owner */
/* group.c: Join_Group, Barrier, Broadcast, Receive of a broadcast, in their contexts */
int nic_group_execute(struct nic *nic, const struct qnix_cmd *cmd);
int nic_group_run(struct nic *nic); /* what is under way; returns what moved */
bool nic_group_moves(const struct nic *nic); /* would that be anything? */
bool nic_group_linger(struct nic *nic, uint32_t cpu, uint32_t looks); /* the same if it looks on, see arch.h */
/* qnix_sys.c: a packet with a QNIX header */
void nic_qnix_packet(struct nic *nic, struct nic_link *link, const struct nic_packet *p);
static inline bool nic_sys_waiting(const struct nic_link *link)
{
	return link->sys_head != link->sys_tail || link->resync;
}

#endif
