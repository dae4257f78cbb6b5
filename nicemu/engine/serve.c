/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `daemon`, the NIC's side of a slot: takes what the process posts and asks from the slot's port, runs the control program,
 * and gives completions back.  The other side is remote.c; who runs many of these is daemon.c.
 *
 * A posted descriptor becomes one in the daemon's own memory, a shadow: to the control program it is the consumer's.  Shadows
 * complete in the order in which they were posted, so the entries of the private completion queue say only which queue to look at; when
 * that overflows all are looked at.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "nicemu/engine/daemon.h"
#include "nicemu/engine/dma.h"
#include "nicemu/mem/port.h"

enum {
	QUEUE = NIC_MAX_QUEUE,
	CQ_ENTRIES = 4096,
	EVENTS = 4096,
	CMDS = 256,   /* taken in one look */
	PASSES = 4,   /* of the control program in one look, while something moves */
	WATCH = 64,   /* looks between two at a peer */
	KEEP = 16 * NIC_BUFFER_BATCH, /* buffers that stay in a NIC's hands */
	PASS_NS = 256, /* that a pass stands for, of time slept: as in wait.c */
};

struct queue { /* posted and not handed back, oldest first */
	struct nic_desc *desc[QUEUE];
	_Alignas(NIC_DESC_ALIGN) struct nic_desc small[QUEUE]; /* those with up to two segments */
	uint32_t head, tail;
};

struct nic_served {
	struct nic *nic;
	struct nic_port *port;
	struct nic_card *card;
	uint32_t slot, epoch, looks;
	uint32_t head, tail; /* cmd_head and done_tail, which the process looks at: here they are read without waiting for their lines */
	struct nic_cq cq;
	uint32_t overflow;  /* of cq, as seen */
	bool scan;          /* all queues are to be looked at */
	bool told;          /* something was published that the process has not been told of */
	bool answer;        /* the call is over, its answer not yet published */
	uint32_t event_head, event_tail;
	struct nic_port_done event[EVENTS];
	struct queue *queue[NIC_MAX_VI][2]; /* by enum nic_port_kind */
};

/* ---- what goes back ---------------------------------------------------------------------------------------------- */

static uint32_t room(const struct nic_served *s)
{
	return NIC_PORT_DONES - (s->tail - nic_load_acquire(&s->port->done_head)); /* P4 */
}

static void put(struct nic_served *s, const struct nic_port_done *done)
{
	s->port->done[s->tail++ & (NIC_PORT_DONES - 1)] = *done;
	nic_store_release(&s->port->done_tail, s->tail); /* P3 */
	s->told = true;
}

static void on_event(void *arg, const struct nic_event *event)
{
	struct nic_served *s = arg;

	if (event->code == NIC_EV_VI_OVERRUN || s->event_tail - s->event_head == EVENTS) /* of the private queue */
		return;
	s->event[s->event_tail++ % EVENTS] = (struct nic_port_done){ .kind = NIC_PORT_EVENT, .status = event->code, .imm = event->op,
		.vi = event->vi_cookie ? (uint16_t)(event->vi_cookie / 2 - 1) : NIC_PORT_NO_VI };
}

/* The oldest of the queue, if it is complete. */
static bool hand_back(struct nic_served *s, uint32_t vi, unsigned which)
{
	struct queue *q = s->queue[vi][which];
	struct nic_desc *desc;
	uint32_t status;

	if (!q || q->head == q->tail)
		return false;
	desc = q->desc[q->head % QUEUE];
	status = nic_load_relaxed(&desc->status); /* written by this thread */
	if (!(status & NIC_ST_DONE))
		return false;
	put(s, &(struct nic_port_done){ .kind = (uint16_t)which, .vi = (uint16_t)vi, .status = status, .length = desc->length, .imm = desc->imm,
		.buffer = desc->seg[1].addr, .buffer_length = desc->seg[1].length });
	if (status & NIC_ST_POOL)
		s->nic->buffer_taken--;
	if (desc != &q->small[q->head % QUEUE])
		free(desc);
	q->head++;
	return true;
}

static void scan(struct nic_served *s)
{
	for (uint32_t vi = 0; vi < s->nic->vi_used; vi++)
		for (unsigned which = 0; which < 2; which++)
			while (room(s) && hand_back(s, vi, which))
				;
	s->scan = room(s) == 0;
}

/* True: everything that is complete has gone back. */
static bool flush(struct nic_served *s)
{
	uint64_t entry;

	if (s->cq.overflow != s->overflow) {
		s->overflow = s->cq.overflow;
		s->scan = true;
	}
	while (room(s) && nic_cq_take(&s->cq, &entry))
		hand_back(s, (uint32_t)(entry / 2 - 1) & (NIC_MAX_VI - 1), entry & NIC_CQ_RECV ? NIC_PORT_RECEIVED : NIC_PORT_SENT);
	if (s->scan)
		scan(s);
	while (room(s) && s->event_head != s->event_tail)
		put(s, &s->event[s->event_head++ % EVENTS]);
	return !nic_cq_any(&s->cq) && !s->scan && s->event_head == s->event_tail;
}

static void tell(struct nic_served *s)
{
	if (!s->told && !s->nic->rung)
		return;
	nic_bell_done(s->nic, s->slot);
	s->told = s->nic->rung = false;
}

/* ---- what comes: descriptors ------------------------------------------------------------------------------------- */

static const union nic_port_cell *cell(const struct nic_served *s, uint32_t i)
{
	return &s->port->cmd[(s->head + i) & (NIC_PORT_CMDS - 1)];
}

static struct nic_desc *shadow(struct queue *q, uint32_t segs)
{
	size_t size = (offsetof(struct nic_desc, seg) + segs * sizeof(struct nic_seg) + 63) & ~(size_t)63;
	struct nic_desc *desc = segs <= 2 ? &q->small[q->tail % QUEUE] : aligned_alloc(NIC_DESC_ALIGN, size);

	if (desc)
		memset(desc, 0, segs <= 2 ? sizeof(*desc) : size);
	return desc;
}

static void chain(struct queue *q, struct nic_desc *desc)
{
	if (q->head != q->tail)
		q->desc[(q->tail - 1) % QUEUE]->next = (uintptr_t)desc;
	q->desc[q->tail++ % QUEUE] = desc;
}

static void take_desc(struct nic_served *s, const struct nic_port_cmd *cmd, uint32_t segs)
{
	unsigned which = cmd->op == NIC_PORT_RECV ? NIC_PORT_RECEIVED : NIC_PORT_SENT;
	struct queue *q = cmd->vi < NIC_MAX_VI ? s->queue[cmd->vi][which] : NULL;
	struct nic_desc *desc = q && q->tail - q->head < QUEUE ? shadow(q, segs) : NULL;

	if (!desc)
		return;
	desc->nseg = cmd->desc.nseg;
	desc->control = cmd->desc.control;
	desc->reserved = cmd->desc.reserved;
	desc->imm = cmd->desc.imm;
	desc->length = cmd->desc.length;
	for (uint32_t i = 0; i < segs; i++)
		desc->seg[i] = cell(s, 1 + i / NIC_PORT_SEGS)->seg[i % NIC_PORT_SEGS];
	chain(q, desc);
	if (which == NIC_PORT_RECEIVED) {
		nic_post_recv(s->nic, cmd->vi, desc);
		return;
	}
	if (cmd->desc.control & NIC_CTL_POOL)
		s->nic->buffer_taken++;
	nic_post_send(s->nic, cmd->vi, desc);
}

/* False: the NIC's queue of commands is full. */
static bool take_group(struct nic_served *s, const struct nic_port_cmd *cmd)
{
	struct qnix_cmd it = { .command = cmd->group.command, .context = cmd->group.context, .group = cmd->group.group, .size = cmd->group.size };
	int err = s->nic->arch->post->command(s->nic, &it);

	if (err && err != NIC_NOT_DONE && it.context < QNIX_CONTEXTS && cmd->group.command != QNIX_CMD_LEAVE_GROUP)
		nic_doorbell(s->nic, cmd->group.command == QNIX_CMD_RECEIVE, it.context, 1, QNIX_REFUSED, 0);
	return err != NIC_NOT_DONE;
}

static bool commands_left(const struct nic_served *s)
{
	return s->head != nic_load_acquire(&s->port->cmd_tail); /* P1 */
}

/* Commands taken; those behind one that cannot be taken now stay. */
static int take_commands(struct nic_served *s)
{
	int n = 0;

	while (n < CMDS && commands_left(s)) {
		struct nic_port_cmd cmd = cell(s, 0)->cmd;
		uint32_t segs = cmd.segs <= NIC_DESC_SEGS_MAX ? cmd.segs : NIC_DESC_SEGS_MAX;

		if (cmd.op != NIC_PORT_GROUP)
			take_desc(s, &cmd, segs);
		else if (!take_group(s, &cmd))
			break;
		s->head += 1 + (cmd.op == NIC_PORT_GROUP ? 0 : (segs + NIC_PORT_SEGS - 1) / NIC_PORT_SEGS);
		nic_store_release(&s->port->cmd_head, s->head); /* P2 */
		n++;
	}
	return n;
}

/* ---- what comes: calls ------------------------------------------------------------------------------------------- */

static void forget_queue(struct nic_served *s, uint32_t vi, unsigned which)
{
	struct queue *q = s->queue[vi][which];

	while (q && q->head != q->tail) {
		struct nic_desc *desc = q->desc[q->head % QUEUE];

		if (desc != &q->small[q->head++ % QUEUE])
			free(desc);
	}
	free(q);
	s->queue[vi][which] = NULL;
}

static struct queue *create_queue(void)
{
	struct queue *q = aligned_alloc(NIC_DESC_ALIGN, sizeof(*q));

	if (q)
		q->head = q->tail = 0;
	return q;
}

static int create_vi(struct nic_served *s, struct nic_port_args *a)
{
	struct nic_vi_args args = { .attr = a->vi, .cookie = 2, .send_cq = &s->cq, .recv_cq = &s->cq };
	struct queue *q[2] = { create_queue(), create_queue() };
	int err = q[0] && q[1] ? nic_vi_create(s->nic, &args, &a->number) : NIC_RESOURCE;

	if (err) {
		free(q[0]);
		free(q[1]);
		return err;
	}
	nic_vi(s->nic, a->number)->cookie = 2ull * (a->number + 1);
	forget_queue(s, a->number, 0);
	forget_queue(s, a->number, 1);
	s->queue[a->number][0] = q[0];
	s->queue[a->number][1] = q[1];
	return NIC_OK;
}

static int destroy_vi(struct nic_served *s, uint32_t vi)
{
	int err = nic_vi_destroy(s->nic, vi);

	if (err == NIC_OK) {
		forget_queue(s, vi, 0);
		forget_queue(s, vi, 1);
	}
	return err;
}

static int call_peer(struct nic_served *s, struct nic_port_args *a)
{
	int pid = 0, err = nic_vi_peer(s->nic, a->number, &pid, &a->other);

	a->handle = (uint32_t)pid;
	return err;
}

static int call_memory(struct nic_served *s, uint32_t op, struct nic_port_args *a)
{
	switch (op) {
	case NIC_CALL_PTAG_CREATE: return nic_ptag_create(s->nic, &a->number);
	case NIC_CALL_PTAG_DESTROY: return nic_ptag_destroy(s->nic, a->number);
	case NIC_CALL_REGISTER: return nic_mem_register(s->nic, a->addr, a->len, &a->mem, &a->number);
	case NIC_CALL_DEREGISTER: return nic_mem_deregister(s->nic, a->addr, a->handle);
	case NIC_CALL_MEM_QUERY: return nic_mem_query(s->nic, a->addr, a->handle, &a->mem);
	case NIC_CALL_MEM_SET: return nic_mem_set(s->nic, a->addr, a->handle, &a->mem);
	default: return NIC_PARAMETER;
	}
}

static int call_vi(struct nic_served *s, uint32_t op, struct nic_port_args *a)
{
	if (op != NIC_CALL_VI_CREATE && (a->number >= NIC_MAX_VI || !s->queue[a->number][0]))
		return NIC_PARAMETER;
	switch (op) {
	case NIC_CALL_VI_CREATE: return create_vi(s, a);
	case NIC_CALL_VI_DESTROY: return destroy_vi(s, a->number);
	case NIC_CALL_VI_SET: return nic_vi_set(s->nic, a->number, &a->vi);
	case NIC_CALL_DISCONNECT: return nic_disconnect(s->nic, a->number);
	case NIC_CALL_VI_PEER: return call_peer(s, a);
	case NIC_CALL_CONNECT: return nic_connect_request(s->nic, a->number, &a->local, &a->remote);
	case NIC_CALL_CONNECT_POLL: return nic_connect_poll(s->nic, a->number, &a->vi);
	case NIC_CALL_CONNECT_CANCEL: return nic_connect_cancel(s->nic, a->number);
	case NIC_CALL_PEER: return nic_peer_request(s->nic, a->number, &a->local, &a->remote);
	case NIC_CALL_PEER_POLL: return nic_peer_poll(s->nic, a->number, &a->vi);
	case NIC_CALL_PEER_CANCEL: return nic_peer_cancel(s->nic, a->number);
	default: return NIC_PARAMETER;
	}
}

static int call_other(struct nic_served *s, uint32_t op, struct nic_port_args *a)
{
	switch (op) {
	case NIC_CALL_LISTEN_OPEN: return nic_listen_open(s->nic, &a->local, &a->number);
	case NIC_CALL_LISTEN_POLL: return nic_listen_poll(s->nic, a->number, &a->remote, &a->vi);
	case NIC_CALL_LISTEN_CLOSE: return nic_listen_close(s->nic, a->number);
	case NIC_CALL_ACCEPT: /* `other` is the VI */
		return a->other < NIC_MAX_VI && s->queue[a->other][0] ? nic_accept(s->nic, a->number, a->other) : NIC_PARAMETER;
	case NIC_CALL_REJECT: return nic_reject(s->nic, a->number);
	case NIC_CALL_NAME: return nic_process_name(s->nic, (int32_t)a->handle, (int32_t)a->tag, a->number, a->other);
	case NIC_CALL_NAMED: return nic_process_named(s->nic);
	case NIC_CALL_SYNC: return NIC_OK;
	default: return NIC_PARAMETER;
	}
}

static bool asked(const struct nic_served *s)
{
	return !s->answer && nic_load_acquire(&s->port->call.state) == NIC_PORT_ASKED; /* P5 */
}

static void take_call(struct nic_served *s)
{
	struct nic_port_call *call = &s->port->call;
	struct nic_port_args args = call->args;
	uint32_t op = call->op;

	if (op <= NIC_CALL_MEM_SET)
		call->result = call_memory(s, op, &args);
	else if (op <= NIC_CALL_VI_PEER || (op >= NIC_CALL_CONNECT && op <= NIC_CALL_PEER_CANCEL))
		call->result = call_vi(s, op, &args);
	else
		call->result = call_other(s, op, &args);
	call->args = args;
	s->answer = true;
}

static void answer(struct nic_served *s)
{
	_Atomic uint32_t *state = &s->port->call.state;

	s->answer = false;
	nic_store_release(state, NIC_PORT_ANSWERED); /* P6 */
	syscall(SYS_futex, state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* A look without anything that moved: may everybody sleep until something is said? */
static bool waits(const struct nic_served *s)
{
	const struct nic *nic = s->nic;

	if (nic->npending || nic->nshared || nic_group_moves(nic) || commands_left(s))
		return true;
	for (uint32_t i = 0; i < nic->nactive; i++)
		if (nic_sys_waiting(nic->active[i]))
			return true;
	return nic->arch->pipe->motion && nic->arch->pipe->motion(nic) != NIC_STILL;
}

enum nic_serving nic_serve_run(struct nic_served *s)
{
	int moved;

	s->nic->looks++; /* what it finds in one look was given in a row */
	moved = take_commands(s);

	if (asked(s) && !commands_left(s)) {
		if (s->port->call.op == NIC_CALL_DETACH)
			return NIC_SERVE_OVER;
		take_call(s);
		moved++;
	}
	for (int i = 0; i < PASSES; i++) {
		int n = s->nic->arch->pipe->pass(s->nic);

		moved += n;
		if (!n)
			break;
	}
	if (s->nic->slot->nbuffers > KEEP) /* what the process posts in buffers is not what it gets buffers from */
		nic_buffer_release(s->nic);
	if (++s->looks % WATCH == 0)
		nic_driver_watch(s->nic);
	if (flush(s) && s->answer)
		answer(s);
	tell(s);
	if (s->nic->host_gone)
		return NIC_SERVE_OVER;
	return moved ? NIC_SERVE_MOVED : waits(s) || s->answer ? NIC_SERVE_WAITS : NIC_SERVE_IDLE;
}

bool nic_serve_wanted(const struct nic_served *s)
{
	return commands_left(s) || asked(s) || (s->nic->qnix && qnix_tx_commanded(s->nic->qnix)) || nic_cq_any(&s->cq) || s->scan || s->event_head != s->event_tail;
}

void nic_serve_slept(struct nic_served *s, uint64_t ns)
{
	if (s->nic->arch->pipe->slept)
		s->nic->arch->pipe->slept(s->nic, (uint32_t)(ns / PASS_NS));
}

bool nic_serve_alive(const struct nic_served *s)
{
	return nic_card_held(s->card, s->slot);
}

void nic_serve_reap(struct nic_served *s)
{
	nic_card_lock(s->card);
	nic_driver_reap(s->nic);
	nic_card_unlock(s->card);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static bool reaches_host(struct nic *nic)
{
	uint64_t word = 0;

	nic_host_read(nic, &word, nic->slot->probe_addr, sizeof(word));
	return !nic->host_gone && word == nic->slot->probe_word;
}

static struct nic_served *create(struct nic_card *card, uint32_t slot)
{
	struct nic_served *s = aligned_alloc(64, (sizeof(*s) + 63) & ~(size_t)63);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->card = card;
	s->slot = slot;
	s->port = &nic_card_map(card)->slot[slot].port;
	s->head = nic_load_relaxed(&s->port->cmd_head);
	s->tail = nic_load_relaxed(&s->port->done_tail);
	s->cq.mask = CQ_ENTRIES - 1;
	s->cq.entry = calloc(CQ_ENTRIES, sizeof(*s->cq.entry));
	if (s->cq.entry)
		return s;
	free(s);
	return NULL;
}

int nic_serve(struct nic_card *card, uint32_t slot, uint32_t life, struct nic_served **out)
{
	struct nic_served *s = create(card, slot);
	int err = s ? nic_attach(card, slot, &s->nic) : NIC_RESOURCE;

	if (err) {
		if (s)
			free(s->cq.entry);
		free(s);
		nic_store_release(&nic_card_map(card)->slot[slot].served, NIC_SERVE_FAILED); /* pairs with the acquires in start.c and driver.c */
		return err;
	}
	s->nic->waiting.fenced = nic_load_relaxed(&s->nic->map->hdr.daemon.fences); /* this process's own */
	s->nic->event = on_event;
	s->nic->event_arg = s;
	if (!reaches_host(s->nic)) {
		nic_serve_end(s, NIC_NOT_SERVED);
		return NIC_SYSTEM;
	}
	nic_card_populate(card, s->port, sizeof(*s->port));
	nic_store_release(&s->nic->slot->served, life); /* pairs with the acquire in start.c */
	*out = s;
	return NIC_OK;
}

void nic_serve_end(struct nic_served *s, uint32_t served)
{
	struct nic_slot *slot = s->nic->slot;
	bool detached = asked(s) && s->port->call.op == NIC_CALL_DETACH;

	s->nic->host_gone = s->nic->host_gone || !nic_serve_alive(s);
	s->nic->event = NULL;
	nic_detach(s->nic);
	for (uint32_t vi = 0; vi < NIC_MAX_VI; vi++) {
		forget_queue(s, vi, 0);
		forget_queue(s, vi, 1);
	}
	if (detached)
		answer(s);
	nic_store_release(&slot->served, served); /* pairs with the acquires in start.c, remote.c, driver.c: nothing of it is ours */
	free(s->cq.entry);
	free(s);
}
