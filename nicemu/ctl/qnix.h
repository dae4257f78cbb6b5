/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control program of the QNIX NIC: its own memory, and what its files offer each other.  The formats of its tables are
 * in mem/qnix.h.
 *
 * A process slot of the card is a port with NIC coordinates of its own and one entry of the NIC Process Table.  A control
 * program (struct qnix_sched) serves one or several of them: as many as its engine runs.
 */
#ifndef NIC_CTL_QNIX_H
#define NIC_CTL_QNIX_H

#include "nicemu/ctl/ctl.h"
#include "nicemu/obs/trace.h"

enum {
	QNIX_SQ_ENTRIES = 2048,
	QNIX_SQ_VI = 1536,         /* of these for VIs: the rest is for contexts, so that neither starves the other */
	QNIX_RT_ENTRIES = 2048,
	QNIX_RT_VI = 1536,
	QNIX_RT_BUCKETS = 256,
	QNIX_MAPS = 16384,         /* Descriptor Map elements */
	QNIX_LOCAL_EARLY = 512,    /* pages of NIC memory for messages that come before their receive */
	QNIX_LOCAL_BCAST = 1024,   /* pages for what is being broadcast */
	QNIX_EARLY_MAX = 64,       /* pages of one early message */
	QNIX_BCASTS = 64,
	QNIX_TOLD = 64,            /* keys whose last request was too long for its receive */
	QNIX_PATIENCE_MIN = 64, QNIX_PATIENCE_MAX = 8192, /* visits between two requests for the same message */
	QNIX_ROUNDS = 16,          /* TX and RX in one pass */
};

/* Internal command codes: what to do with a send operation or a receive. */
enum qnix_code { QNIX_CODE_SEND, QNIX_CODE_SHORT, QNIX_CODE_PART, QNIX_CODE_PART_SHORT, QNIX_CODE_VI, QNIX_CODE_RECEIVE,
	QNIX_CODE_VI_RECEIVE, QNIX_CODES };

/* Runs of units in a part of the NIC's memory. */
struct qnix_run_pool {
	uint64_t *used; /* bit set: in use */
	uint32_t size, hint, taken;
};

/* Data being broadcast: a local buffer with a counter. */
struct qnix_bcast {
	uint32_t count; /* send operations left; 0: free */
	uint32_t page, pages;
	uint16_t context, doorbell;
	uint16_t failed;
	uint16_t group; /* Group Table entry + 1, of a broadcast of the layers above; 0: a message like others */
};

struct qnix_sched;

/* What the NIC knows of another one: Name Table and NIC Table in one, by coordinates. */
struct qnix_peer {
	struct qnix_name name;
	uint16_t pid;
	bool named;     /* a process that is registered with a name */
	bool gone;      /* it was; what it has sent can still be received */
	bool ack_owed;  /* it waits for a New_Process_Ack */
	bool told, acked; /* of the New_Process under way */
};

/* An operation of the driver that waits for other NICs. */
struct qnix_registration {
	bool waiting;
	bool refused;           /* no room in the Group Table */
	uint32_t entry;         /* of the Driver Command Queue */
	uint32_t told, acks, nodes; /* New_Process to how many slots; New_Process_Ack from how many, of how many */
	uint32_t group;         /* Group Table entry + 1; 0: no group */
};

/* A request that was answered "too long", which leaves nothing in the Receive Table: the same one may come again. */
struct qnix_told {
	uint16_t node, pid, tag, number;
};

struct qnix {
	struct nic *nic;
	struct qnix_pte pte;
	struct qnix *next, *prev; /* circular list of the control program that serves it */
	struct qnix_sched *sched;
	uint32_t driver_head, driver_consecutive;
	uint32_t epoch_seen;      /* of the card's nic_epoch */
	uint32_t rx_turn;         /* link that RX looks at next */
	uint16_t number;          /* of the last message of a context */
	struct qnix_sq *current;  /* whose packet this execution of TX has sent; NULL: it has gone meanwhile */
	uint16_t sq_free, rt_free;
	uint32_t sq_vi, rt_vi;    /* entries in use by VIs */
	uint32_t sq_used, rt_used;
	uint16_t bucket[QNIX_RT_BUCKETS], bucket_tail[QNIX_RT_BUCKETS];
	uint32_t ntold;
	struct qnix_told told[QNIX_TOLD];
	struct qnix_run_pool maps, early, bcast_pages;
	struct qnix_registration registration;
	struct qnix_bcast bcast[QNIX_BCASTS];
	struct qnix_peer peer[NIC_MAX_SLOTS];
	struct qnix_sq sq[QNIX_SQ_ENTRIES];
	struct qnix_rt rt[QNIX_RT_ENTRIES];
	union qnix_map map[QNIX_MAPS];
	uint64_t bits[(QNIX_MAPS + QNIX_LOCAL_EARLY + QNIX_LOCAL_BCAST) / 64];
	uint8_t local_early[QNIX_LOCAL_EARLY][QNIX_PAGE];
	uint8_t local_bcast[QNIX_LOCAL_BCAST][QNIX_PAGE];
};

/* A control program: the first level Scheduling Queue, one list with two heads. */
struct qnix_sched {
	struct qnix *packets, *commands; /* heads; tails are their predecessors */
	struct qnix *driver;             /* whose Driver Command Queue is looked at next */
	uint32_t users;                  /* processes in it; the last one to leave frees it */
	bool running;
};

/* A state of TX or RX: design rule 5.  `unit` is what of the NIC it occupies. */
enum qnix_unit { QNIX_CPU, QNIX_DMA_TX, QNIX_DMA_RX, QNIX_LINK };
struct qnix_state {
	const char *name, *meaning;
	enum qnix_unit unit;
	uint32_t next; /* bit mask of the states that may follow */
};
#ifdef QNIX_DEBUG
#include <assert.h>
#define NIC_ASSERT(x) assert(x)
#else
#define NIC_ASSERT(x) ((void)0)
#endif

enum qnix_tx_state { QNIX_TX_1, QNIX_TX_2, QNIX_TX_3, QNIX_TX_4, QNIX_TX_5, QNIX_TX_6, QNIX_TX_7, QNIX_TX_END, QNIX_TX_STATES };
enum qnix_rx_state { QNIX_RX_1, QNIX_RX_2, QNIX_RX_3, QNIX_RX_4, QNIX_RX_END, QNIX_RX_STATES };
extern const struct qnix_state qnix_tx_states[QNIX_TX_STATES], qnix_rx_states[QNIX_RX_STATES];

static inline struct qnix_slot *qnix_slot_of(const struct qnix *q)
{
	return &q->nic->slot->qnix;
}

static inline uint16_t qnix_vi_tag(uint32_t vi)
{
	return QNIX_VI_TAG | (vi & (NIC_VI_TABLE - 1));
}

static inline uint32_t qnix_packets(uint32_t len, uint32_t first)
{
	return 1 + (len - first + QNIX_PAGE - 1) / QNIX_PAGE;
}

/* Bytes of a message in its first packet: up to the end of the page it starts in. */
static inline uint32_t qnix_first(uint64_t bus, uint32_t len)
{
	uint32_t room = QNIX_PAGE - bus % QNIX_PAGE;

	return len < room ? len : room;
}

struct qnix_system_head { /* the link's part of a packet's header */
	uint8_t gen;
	uint32_t len_flags, imm;
};

/* qnix_mem.c: the NIC's memory */
int qnix_create(struct nic *nic);
void qnix_destroy(struct nic *nic);
void qnix_sched_put(struct qnix_sched *sched); /* frees it when nobody is in it */
uint32_t qnix_run_take(struct qnix_run_pool *pool, uint32_t n); /* UINT32_MAX: no such run */
void qnix_run_give(struct qnix_run_pool *pool, uint32_t at, uint32_t n);
struct qnix_sq *qnix_sq_take(struct qnix *q, bool vi); /* at the tail of the Scheduling Queue; NULL: none free */
void qnix_sq_give(struct qnix *q, struct qnix_sq *s, bool vi);
struct qnix_rt *qnix_rt_take(struct qnix *q, bool vi, uint16_t node, uint16_t pid, uint16_t tag); /* last of its key */
void qnix_rt_give(struct qnix *q, struct qnix_rt *r);
/* The next entry of that key behind `from` (NULL: the first). */
struct qnix_rt *qnix_rt_find(struct qnix *q, const struct qnix_rt *from, uint16_t node, uint16_t pid, uint16_t tag);

static inline uint16_t qnix_sq_index(const struct qnix *q, const struct qnix_sq *s)
{
	return (uint16_t)(s - q->sq);
}

static inline uint16_t qnix_rt_index(const struct qnix *q, const struct qnix_rt *r)
{
	return (uint16_t)(r - q->rt);
}

/* qnix_tx.c */
int qnix_tx(struct qnix_sched *sched); /* one execution: one packet, one command; returns what moved */
bool qnix_tx_packet(struct qnix *q, struct qnix_sq *s); /* one packet of a granted operation; false: no room */
void qnix_tx_finish(struct qnix *q, struct qnix_sq *s, uint32_t state); /* completes and removes it: QNIX_DONE or why not */
bool qnix_request(struct qnix *q, struct qnix_sq *s);
void qnix_reply_in(struct qnix *q, const struct qnix_header *h, uint8_t gen, const struct qnix_reply *reply);
enum nic_motion qnix_tx_motion(const struct qnix *q);
bool qnix_tx_commanded(const struct qnix *q); /* there is a command that was not looked at */
void qnix_tx_slept(struct qnix *q, uint32_t visits);
void qnix_tx_cancel_vi(struct qnix *q, uint32_t vi);
void qnix_tx_lost(struct qnix *q, uint32_t node);
void qnix_tx_cancel_bcast(struct qnix *q, uint32_t record);

/* qnix_rx.c */
void qnix_request_in(struct qnix *q, struct nic_link *link, const struct qnix_system_head *head, const struct qnix_header *h,
                     const struct qnix_request *req);
void qnix_data_in(struct qnix *q, const struct qnix_header *h, const uint8_t *data, uint32_t len_flags, uint32_t imm);
void qnix_receive(struct qnix *q, uint32_t context, const struct qnix_context *c); /* the Receive command; c: a copy */
void qnix_rx_cancel_tag(struct qnix *q, uint16_t tag);
void qnix_rx_cancel_vi(struct qnix *q, uint32_t vi);
void qnix_rx_lost(struct qnix *q, uint32_t node);
void qnix_rx_forget(struct qnix *q, uint32_t node);

/* qnix_cmd.c */
/* entries: of the queue that it takes up */
void qnix_execute(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries);
void qnix_doorbell(struct qnix *q, bool recv, uint32_t context, uint32_t flag, uint32_t state, uint32_t len);
void qnix_bcast_part_done(struct qnix *q, uint32_t record, uint32_t state);
void qnix_group_over(struct qnix *q, uint32_t group, uint16_t tag); /* broadcasts of the layers above in it fail, here and there */

/* qnix_sys.c */
bool qnix_system_with(struct nic *nic, uint32_t node, enum qnix_system code, const struct qnix_system_head *head, const void *payload,
                      uint32_t len);
bool qnix_system(struct nic *nic, uint32_t node, enum qnix_system code, uint8_t gen, const void *payload, uint32_t len);
struct nic_link *qnix_link(struct nic *nic, uint32_t node); /* opens it, and lets the other NIC know, if need be */
void qnix_look_around(struct qnix *q); /* links that others have opened to this NIC */
bool qnix_called(const struct qnix *q); /* is there one, perhaps? */

/* qnix_driver.c */
int qnix_register(struct nic *nic);     /* the six steps, for a process without an application */
void qnix_deregister(struct nic *nic);  /* the five */
int qnix_driver_run(struct qnix *q); /* the Driver Command Queue; returns commands executed */
bool qnix_driver_moves(const struct qnix *q); /* a command, or a registration that tells others again */
void qnix_new_process_in(struct qnix *q, uint32_t node, const struct qnix_process_msg *msg);
void qnix_new_process_ack_in(struct qnix *q, uint32_t node, const struct qnix_process_msg *msg);
void qnix_delete_process_in(struct qnix *q, uint32_t node, const struct qnix_process_msg *msg);
void qnix_registration_look(struct qnix *q);
const struct qnix_peer *qnix_name_find(const struct qnix *q, const struct qnix_name *name, uint32_t *node);
void qnix_driver_lost(struct qnix *q, uint32_t node);

/* One control program for several slots, all of this process: for engines that run more than one, and for tests. */
void qnix_sched_join(struct nic *to, struct nic *nic);

#endif
