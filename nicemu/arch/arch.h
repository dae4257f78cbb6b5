/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A published NIC as data: one strategy on each axis, sizes, and where each number comes from.
 * A strategy is a const struct of functions at the end of its file in strat/.
 */
#ifndef NIC_ARCH_H
#define NIC_ARCH_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct nic_cq;
struct nic_taken;
struct nic_desc;
struct nic_group;
struct nic_link;
struct nic_seg;
struct nic_txe;
struct nic_vi_ctx;
struct qnix_cmd;

/* post: how work reaches the NIC. */
struct nic_post {
	const char *name;
	void (*send)(struct nic *nic, uint32_t vi, struct nic_desc *desc);
	void (*recv)(struct nic *nic, uint32_t vi, struct nic_desc *desc);
	void (*refill)(struct nic *nic, uint32_t vi); /* room on the NIC again: fetch what is left in host memory */
	int (*command)(struct nic *nic, const struct qnix_cmd *cmd); /* a command about a group: executed, or queued to be */
	bool by_value; /* a short message may go inside the command, past the queue */
	bool at_once;  /* a command is executed when it is given, in the process: what is over then need not become one (group.h) */
};

/* xlate: who translates addresses.  NULL: fault (protection). */
struct nic_xlate {
	const char *name;
	void *(*map)(struct nic *nic, uint32_t ptag, const struct nic_seg *seg, uint64_t offset, uint64_t len);
	/* The driver's translation of a buffer: bus addresses, one for each run; returns their number, 0: they do not fit. */
	uint32_t (*table)(struct nic *nic, uint64_t addr, uint64_t len, uint64_t *out, uint32_t room);
};

/* flow: when data may leave. */
struct nic_flow {
	const char *name;
	bool (*may_send)(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link); /* NULL: whenever the link has room */
	/* A NIC that asks first; NULL: it does not.  admit queues a checked send (false: no entry free); cancel drops all of a VI. */
	bool (*admit)(struct nic *nic, uint32_t vi, struct nic_txe *e, uint32_t flags);
	void (*cancel)(struct nic *nic, uint32_t vi);
};

/* What goes on in a NIC without a packet from a peer: nothing; it will ask somebody again after some passes; work. */
enum nic_motion { NIC_STILL, NIC_ASKS, NIC_MOVES };

/* pipe: how one NIC overlaps work. */
struct nic_pipe {
	const char *name;
	int (*pass)(struct nic *nic); /* one bounded pass over everything; returns what moved */
	/* nic_take, where a message may be handed over by value; NULL: every message takes its receive */
	uint32_t (*take)(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out);
	/* NULL: needs nothing of its own.  lost: a peer's slot is gone. */
	int (*open)(struct nic *nic);
	void (*close)(struct nic *nic);
	void (*lost)(struct nic *nic, uint32_t slot);
	/* For who wants to sleep.  motion: beyond what every NIC has.  slept: time for so many passes has gone by without one. */
	enum nic_motion (*motion)(const struct nic *nic);
	void (*slept)(struct nic *nic, uint32_t passes);
};

/*
 * meet: how the members of a group meet, for barriers and broadcasts.  Once each for a command, a pass, an event; the group is good
 * and ready.  What a function starts and does not end goes on in `run`, which comes in every pass while `busy`.
 */
struct nic_meet {
	const char *name;
	int (*join)(struct nic *nic, struct nic_group *g);    /* before the others learn of it; NIC_RESOURCE: no memory */
	void (*ready)(struct nic *nic, struct nic_group *g);  /* all members are known */
	void (*barrier)(struct nic *nic, struct nic_group *g); /* number g->barriers */
	/* A broadcast to all others in a Send Context, and the receive of one in a Receive Context.  NULL: the post strategy does it. */
	void (*send)(struct nic *nic, struct nic_group *g, uint32_t context);
	void (*recv)(struct nic *nic, struct nic_group *g, uint32_t context, uint32_t place);
	/* Cut-through: the same of the memory at `bus`, whole and at once; false: nothing has happened.  NULL: there is none. */
	bool (*send_now)(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len);
	bool (*recv_now)(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len);
	int (*run)(struct nic *nic, struct nic_group *g);     /* returns what moved */
	bool (*busy)(const struct nic_group *g);
	bool (*moves)(const struct nic *nic, const struct nic_group *g); /* would run find something to do? */
	/* Looks on for `looks` looks, if nobody on that processor (+ 1) is waited for; would run find something then?  NULL: no. */
	bool (*linger)(struct nic_group *g, uint32_t cpu, uint32_t looks);
	/* Needs the barrier under way nothing more of that member?  NULL: `lost` sees to it. */
	bool (*came)(const struct nic_group *g, uint32_t place);
	bool (*owes)(const struct nic *nic, const struct nic_group *g);  /* a member has yet to read something of this one */
	void (*lost)(struct nic *nic, struct nic_group *g);   /* a member is gone, and with it the group */
	void (*left)(struct nic *nic, struct nic_group *g, uint32_t place); /* that member has left, after what it did before */
	void (*end)(struct nic *nic, struct nic_group *g);    /* the process leaves: nothing more is done for it */
	void (*leave)(struct nic *nic, struct nic_group *g);  /* the entry is free */
};

struct nic_arch {
	const char *name;
	const char *citation;
	const struct nic_post *post;
	const struct nic_xlate *xlate;
	const struct nic_flow *flow;
	const struct nic_pipe *pipe;
	const struct nic_meet *meet;
	uint32_t pull_min; /* bytes from which a message stays at the sender for the receiver to copy */
};

const struct nic_arch *nic_arch_find(const char *name);

extern const struct nic_post nic_post_ring, nic_post_cmdq;
extern const struct nic_xlate nic_xlate_rmmt, nic_xlate_ctxtable;
extern const struct nic_flow nic_flow_push, nic_flow_permission;
extern const struct nic_pipe nic_pipe_linear, nic_pipe_pingpong;
extern const struct nic_meet nic_meet_board, nic_meet_message;
extern const struct nic_arch nic_arch_direct, nic_arch_qnix;

#endif
