/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: the NIC's Group Table, and what is under way in it.  All architectures have it; what differs is how a command
 * comes (post strategy) and how a broadcast's data travels (group_bcast.c, or the scheduler of the QNIX).
 */
#ifndef NIC_CTL_GROUP_H
#define NIC_CTL_GROUP_H

#include "nicemu/ctl/ctl.h"
#include "nicemu/mem/qnix.h"

enum {
	NIC_GROUPS = 256,         /* entries of the Group Table */
	NIC_BCAST_OUT = 32,       /* broadcasts of this NIC that are not acknowledged by all yet */
	NIC_BCAST_WINDOW = 4,     /* parts of one broadcast under way to one member */
	NIC_BCAST_IN = 32,        /* broadcasts that the process waits for */
	NIC_BCAST_EARLY = NIC_BCAST_OUT * NIC_BCAST_WINDOW * NIC_MAX_SLOTS, /* parts that came before their receive: cannot be more */
	NIC_PLACE_ANY = 0xFFFF,
};

struct nic_member {
	uint16_t slot, pid;
	uint16_t table, life; /* its NIC's entry for the group */
	bool known, acked;
	bool left;            /* it takes nothing of the group any more */
	uint32_t bcasts;      /* broadcasts of it that were received, or are waited for */
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
	bool leaving;         /* left, but not all know, or have taken its last broadcasts */
	bool listed;          /* members were named by the process (their slots stand in `member`), not to be found */
	bool deserted;        /* a member has left */
	bool work;            /* counted in group_work */
	uint16_t context, doorbell; /* of the join */
	/* how far each kind of message has been sent; equal to the end: all */
	uint16_t told, told_end, ack, ack_end, barrier, barrier_end, left, left_end;
	/* barrier */
	bool waiting;
	uint16_t arrived[2];  /* Barrier messages, by parity of the barrier's number */
	uint32_t barriers;    /* started here */
	uint16_t barrier_context, barrier_doorbell;
	uint32_t bcasts;      /* started here */
	struct nic_member member[NIC_MAX_SLOTS]; /* by place */
};

/* A broadcast of this NIC on the short way. */
struct nic_bcast_out {
	bool used, told;      /* told: the doorbell has been set */
	bool failed;          /* nothing more is sent: the process has its memory back */
	uint16_t group, life;
	uint16_t context, doorbell;
	uint32_t seq, total;
	uint32_t parts;       /* of the message */
	uint32_t filled;      /* parts in a buffer */
	uint32_t freed;       /* parts whose buffer is free again */
	uint32_t buffer[NIC_BCAST_WINDOW];
	uint32_t sent[NIC_MAX_SLOTS], acked[NIC_MAX_SLOTS]; /* parts, by place */
};

struct nic_bcast_in {
	bool used, told;  /* told: the doorbell has been set */
	bool late;        /* an acknowledgement found no room, and is counted in group_work */
	uint16_t group, place;
	uint16_t context, doorbell;
	uint32_t seq, room;
	uint32_t parts, acked; /* taken; and said so */
};

struct nic_bcast_early {
	uint16_t group, life, place, next;
	struct qnix_bcast_msg msg;
	union {
		uint8_t data[QNIX_BCAST_INLINE];
		uint32_t buffer;
	};
};

struct nic_groups {
	uint32_t used;   /* entries ever used */
	uint32_t outs;   /* broadcasts under way */
	uint32_t lates;  /* receives with a late acknowledgement */
	uint32_t nearly; /* early parts held */
	uint32_t early_used, early_free; /* entries ever used; list of free ones, + 1 */
	struct nic_bcast_out out[NIC_BCAST_OUT];
	struct nic_bcast_in in[NIC_BCAST_IN];
	struct nic_group group[NIC_GROUPS];
	struct nic_bcast_early early[NIC_BCAST_EARLY];
};

static inline void nic_group_work(struct nic *nic, int change)
{
	nic->group_work += change;
	nic->nwork += change;
}

_Static_assert(NIC_GROUPS == 256, "eight bits of a tag");

/* Context Tag of what a NIC receives in a group of the layers above: another one for each life of the entry. */
static inline uint16_t nic_group_tag(uint32_t table, uint16_t life)
{
	return (uint16_t)(QNIX_GROUP_TAG | (life >> 1 & 0x3F) << 8 | (table & (NIC_GROUPS - 1)));
}

static inline uint32_t nic_bcast_part(uint32_t total)
{
	return total <= QNIX_BCAST_INLINE ? QNIX_BCAST_INLINE : NIC_BUFFER_SIZE;
}

static inline uint32_t nic_bcast_parts(uint32_t total)
{
	return total ? (total + nic_bcast_part(total) - 1) / nic_bcast_part(total) : 1;
}

/* group.c */
int nic_groups_create(struct nic *nic);
void nic_groups_destroy(struct nic *nic);
void nic_group_in(struct nic *nic, uint32_t node, enum qnix_system code, const void *payload, const uint8_t *data);
void nic_group_lost(struct nic *nic, uint32_t slot);
bool nic_group_moves(const struct nic *nic); /* has something to send, not only to wait for */
/* The group that a command means, of which this process is a member; NULL: none. */
struct nic_group *nic_group_of(struct nic *nic, const struct qnix_cmd *cmd);
uint32_t nic_group_place(const struct nic_group *g, uint32_t slot); /* g->size: not a member */
uint32_t nic_group_index(const struct nic *nic, const struct nic_group *g);
/* The entry where that group has, or will have, this member; NULL: the table is full. */
struct nic_group *nic_group_enter(struct nic *nic, uint32_t name, uint32_t size, uint16_t place, const struct nic_member *m);
void nic_group_leave_entry(struct nic *nic, struct nic_group *g); /* it has left, if nothing holds it any more */
bool nic_group_takes(const struct nic *nic, uint16_t tag);        /* does the group of that tag take messages? */
void nic_doorbell(struct nic *nic, bool recv, uint32_t context, uint32_t flag, uint32_t state, uint32_t len);

/* group_bcast.c */
int nic_bcast_start(struct nic *nic, struct nic_group *g, uint32_t context);
int nic_bcast_expect(struct nic *nic, struct nic_group *g, uint32_t context);
void nic_bcast_in(struct nic *nic, struct nic_group *g, uint32_t place, const struct qnix_bcast_msg *msg, const uint8_t *data);
void nic_bcast_ack_in(struct nic *nic, struct nic_group *g, uint32_t place, const struct qnix_bcast_msg *msg);
int nic_bcast_run(struct nic *nic);
void nic_bcast_lost(struct nic *nic, struct nic_group *g, uint32_t place); /* that member is gone */
void nic_bcast_left(struct nic *nic, const struct nic_group *g, uint32_t place); /* that member takes nothing more */
bool nic_bcast_moves(const struct nic *nic);
bool nic_bcast_pending(const struct nic *nic, const struct nic_group *g);
void nic_bcast_forget(struct nic *nic, struct nic_group *g); /* nothing is received in the group any more */

#endif
