/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: the NIC's Group Table, and what is under way in it.  All architectures have it; what differs is how a command
 * comes (post strategy), how the members meet (meet strategy), and how a broadcast's data travels (the same, or the scheduler of
 * the QNIX).
 */
#ifndef NIC_CTL_GROUP_H
#define NIC_CTL_GROUP_H

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/pace.h"
#include "nicemu/mem/board.h"
#include "nicemu/mem/qnix.h"

enum {
	NIC_GROUPS = NIC_BOARDS, /* entries of the Group Table */
	NIC_PLACE_ANY = 0xFFFF,
	NIC_PACES = 4,
	NIC_CALL_FIRST = QNIX_CONTEXTS - NIC_CALLS, /* contexts of calls about groups: from here on */
};

struct nic_member {
	uint16_t slot, pid;
	uint32_t epoch;       /* of the slot; 0: whoever has it */
	uint16_t table, life; /* its NIC's entry for the group */
	bool known, acked;
	bool left;            /* it takes nothing of the group any more, or is gone */
	uint16_t came;        /* number of the last barrier that it said it came to */
	/* of a board */
	const struct nic_board *board;
	uint32_t cpu;         /* as on its board, when a barrier was over last; 0: unknown */
	uint32_t bcasts;      /* broadcasts of it that were received, or are waited for */
	uint32_t current;     /* of them, those that are over */
	uint32_t parts, told; /* of them taken; and said so */
	uint32_t ahead;       /* bytes taken of the broadcast that the next command is about */
};

struct nic_group {
	uint32_t name, size;
	uint16_t life;        /* of the entry; odd: in use */
	uint16_t place;       /* own place */
	uint16_t count;       /* members known */
	uint16_t acks;
	bool mine;            /* the process of this NIC belongs to it, or is joining */
	bool ready;           /* its join is over */
	bool complete;        /* and all have joined */
	bool broken;          /* a member has died */
	bool breaks;          /* one has, that had come to the barrier under way: behind that */
	bool leaving;         /* left, but not all know, or have read what is on its board */
	bool listed;          /* members were named by the process (their slots stand in `member`), not to be found */
	bool deserted;        /* a member has left */
	bool work;            /* on the list of those that passes come to */
	uint16_t lost;        /* slot of the member that died, + 1 */
	uint16_t context, doorbell; /* of the join */
	/* how far each kind of message has been sent; equal to the end: all */
	uint16_t told, told_end, ack, ack_end, barrier, barrier_end, left, left_end;
	/* barrier */
	bool waiting;
	uint16_t arrived[2];  /* Barrier messages, by parity of the barrier's number */
	uint32_t barriers;    /* started here */
	uint16_t barrier_context, barrier_doorbell;
	/* of a board */
	struct nic_board *board;
	uint16_t heard;       /* place of the root that was received from last, a guess */
	uint16_t lead;        /* place of the root of the last broadcast, if no barrier was since; NIC_PLACE_ANY */
	uint16_t leader;      /* of the barrier under way: who leaves it first */
	uint32_t lead_len;    /* bytes of the last broadcast */
	uint32_t behind;      /* broadcasts that came first behind a barrier, since one was awaited there in vain */
	uint32_t behind_enough; /* so many of them before one is awaited again */
	uint32_t led;         /* passes of it */
	uint32_t lingered;    /* looked on for it in vain, so many times */
	uint32_t seen;        /* members up to here have come to the barrier under way */
	uint32_t bcasts, sent; /* started here; of them, those that are all on the board */
	uint32_t put, read;   /* parts on the board; of them, those that all have read when that was looked at last */
	uint32_t turns;       /* buffers that take turns for the broadcast from here under way */
	uint32_t deep;        /* broadcasts from here of several parts; not counted to the end */
	uint32_t used[NIC_BOARD_BUFFERS]; /* by buffer: number of the last part in it */
	uint32_t sends, recvs; /* bit: call with a broadcast under way */
	bool handed;           /* the receiver copies the one that the next command is about from this process's memory */
	uint16_t vain, unasked; /* times in a row that the receiver was waited for, and did not want one; broadcasts before it is waited for again */
	uint32_t wanted;       /* number of the root's broadcast that this process wants so; 0: none */
	struct nic_pace pace[NIC_PACES]; /* of long broadcasts, by length */
	struct nic_pace fill;  /* of the buffers of this one's broadcasts, where processes take turns: by stores (1) or as is usual (0) */
	uint32_t fills;        /* broadcasts that were not timed for that, while it is known */
	bool stores;           /* so are those of the broadcast from here under way */
	uint32_t buffer[NIC_BOARD_PLACES]; /* of the root that was received from last, a guess */
	struct nic_doubt migrate; /* of its lines' doing so in little time */
	struct nic_member member[NIC_MAX_SLOTS]; /* by place */
};

/* A broadcast under way, by its call. */
struct nic_cast {
	uint16_t doorbell, place; /* place: of the root */
	uint32_t seq;         /* among those of this root in this group */
	uint32_t len;         /* bytes, or room */
	uint32_t total;       /* receive: of the broadcast, when its first part is there */
	uint32_t at;          /* bytes through */
	uint32_t why;         /* NIC_WHY_*, of one that is bad */
	bool bad;
	bool direct;          /* send: it is on the board, and the receiver copies it from this process's memory */
};

struct nic_groups {
	uint32_t used;        /* entries ever used */
	uint32_t claims;      /* opened for halves of broadcasts */
	bool direct;          /* a receiver may copy a broadcast from the root's memory */
	uint32_t nbusy;
	uint16_t busy[NIC_GROUPS]; /* those that passes come to */
	struct nic_cast send[NIC_CALLS], recv[NIC_CALLS];
	struct nic_group group[NIC_GROUPS];
};

_Static_assert(NIC_GROUPS == 256, "eight bits of a tag");

/* Context Tag of what a NIC receives in a group of the layers above: another one for each life of the entry. */
static inline uint16_t nic_group_tag(uint32_t table, uint16_t life)
{
	return (uint16_t)(QNIX_GROUP_TAG | (life >> 1 & 0x3F) << 8 | (table & (NIC_GROUPS - 1)));
}

/* Epochs of a slot; 0: any. */
static inline bool nic_same_life(uint32_t a, uint32_t b)
{
	return !a || !b || a == b;
}

/* group_table.c */
int nic_groups_create(struct nic *nic);
void nic_groups_destroy(struct nic *nic);
/*
 * The entry where that group has, or will have, this member; NULL: the table is full.  `listed`: of the process's own join, the
 * members that it names, by place, each a slot and above it the epoch; NULL: none.
 */
struct nic_group *nic_group_enter(struct nic *nic, uint32_t name, uint32_t size, uint16_t place, const struct nic_member *m,
                                  const uint64_t *listed);
void nic_group_forget(struct nic_group *g, struct nic_member *m); /* its place is free again; the entry, too, if it was the last */

/* group.c */
void nic_group_in(struct nic *nic, uint32_t node, enum qnix_system code, const struct qnix_group_msg *msg);
void nic_group_lost(struct nic *nic, uint32_t slot);
/* The group that a command means, of which this process is a member; NULL: none. */
struct nic_group *nic_group_of(struct nic *nic, const struct qnix_cmd *cmd);
uint32_t nic_group_place(const struct nic_group *g, uint32_t slot); /* g->size: not a member */
uint32_t nic_group_index(const struct nic *nic, const struct nic_group *g);
void nic_group_leave_entry(struct nic *nic, struct nic_group *g); /* it has left, if nothing holds it any more */
bool nic_group_takes(const struct nic *nic, uint16_t tag);        /* does the group of that tag take messages? */
void nic_group_busy(struct nic *nic, struct nic_group *g); /* passes come to it until it has nothing to do */
void nic_group_barrier_over(struct nic *nic, struct nic_group *g, uint32_t state);
uint32_t nic_group_why(const struct nic_group *g); /* an operation in it fails: NIC_WHY_*; NULL: no such group */
/* Of that tag: the group that it means, if that is alive still. */
const struct nic_group *nic_group_of_tag(const struct nic *nic, uint16_t tag);
/* A system message to the member at that place, in words of its own NIC's table; true: there, or not needed. */
bool nic_group_tell(struct nic *nic, const struct nic_group *g, uint32_t place, enum qnix_system code, uint16_t number);
void nic_doorbell(struct nic *nic, bool recv, uint32_t context, uint32_t flag, uint32_t state, uint32_t value);

/*
 * group_now.c: a barrier is over (NIC_OK), or has begun and is told now where its doorbell is (NIC_NOT_DONE), or nothing has happened and a
 * command does it (NIC_STATE).
 */
int nic_group_barrier_now(struct nic *nic, uint32_t group);
void nic_group_barrier_bell(struct nic *nic, uint32_t group, uint32_t context);

/* group_call.c: a broadcast by a command; as nic_bcast. */
int nic_group_bcast_call(struct nic *nic, uint32_t group, uint32_t root, void *buf, uint64_t len, uint32_t *op);

/* An operation is over that nobody has asked about. */
bool nic_group_rung(const struct nic *nic);

/* The next context for a call, to send or to receive, is there and has memory: taking it will not fail. */
static inline bool nic_group_has_call(const struct nic *nic, bool recv)
{
	return ~nic->calls[recv] & (nic->calls[recv] + 1) & nic->calls_backed[recv];
}

/* meet_message.c: a Barrier message; number: of the sender's barrier */
void nic_group_barrier_in(struct nic *nic, struct nic_group *g, uint32_t place, uint16_t number);

#endif
