/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `daemon`, the process's side (remote.h): descriptors go to the NIC as copies, completions come back as entries, and this
 * side completes the process's descriptors by them, when it polls.
 *
 * The handle's `slot` is a private, empty one: no VI in it is ever connected, so the short ways of tx.c and give.c decline by the look at
 * the state that they take anyway.  It has the stack of buffers in the consumer's hands, too (the NIC has another, in the card), and
 * shows the slot's memory map table, which nic_mem_check reads.  Counters are the slot's: each side writes those of what it does; the few
 * that both write (bells, no_buffer, buffers_taken) are approximate.
 *
 * When the NIC's process dies, everything that was posted completes in error, connected VIs are in error, and so it stays.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nicemu/engine/remote.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/daemon.h"
#include "nicemu/util/log.h"

enum {
	QUEUE = NIC_MAX_QUEUE,
	POLL_DONES = 256,         /* completions taken by one poll */
	WATCH = 4096,             /* polls between two looks at whether the NIC lives */
	YIELDS = 50,              /* of a call, before it sleeps */
	NAP = 10 * 1000 * 1000,   /* nanoseconds of a sleep in a call; then the NIC is looked after */
	KEEP = 4 * NIC_BUFFER_BATCH, /* buffers that stay in hand */
};

struct queue { /* posted and not complete, oldest first */
	struct nic_desc *desc[QUEUE];
	uint32_t head, tail;
};

struct remote_vi {
	uint64_t cookie;
	struct nic_cq *cq[2];   /* by enum nic_port_kind: sent, received */
	struct queue *queue[2]; /* NULL: no such VI */
};

struct nic_remote {
	struct nic_port *port;
	struct nic_slot *slot; /* the slot in the card */
	uint32_t life;         /* of the daemon */
	uint32_t polls;
	uint32_t tail, taken;  /* cmd_tail and done_head: who reads them there, behind the NIC, waits for their line */
	uint32_t head;         /* cmd_head, when it was looked at last */
	bool lost;
	bool fenced;           /* the daemon executes this process's fences (B3) */
	struct nic_arch arch;  /* the handle's */
	struct remote_vi vi[NIC_MAX_VI];
};

static struct remote_vi *vi_of(const struct nic *nic, uint32_t vi)
{
	return &nic->remote->vi[vi & (NIC_MAX_VI - 1)];
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* Status before completion entry, as the NIC does it [C1]. */
static void complete(struct nic *nic, struct remote_vi *v, unsigned which, const struct nic_port_done *done)
{
	struct queue *q = v->queue[which];
	struct nic_desc *desc;

	if (!q || q->head == q->tail)
		return;
	desc = q->desc[q->head++ % QUEUE];
	if (which == NIC_PORT_RECEIVED && (done->status & NIC_ST_POOL)) {
		desc->seg[1] = (struct nic_seg){ done->buffer, NIC_POOL_HANDLE, done->buffer_length };
		nic->buffer_taken++;
	}
	desc->length = done->length;
	if (which == NIC_PORT_RECEIVED)
		desc->imm = done->imm;
	nic_store_release(&desc->status, done->status); /* pairs with the consumer's acquire */
	if (v->cq[which] && !nic_cq_publish(v->cq[which], v->cookie | (which == NIC_PORT_RECEIVED ? NIC_CQ_RECV : 0)))
		nic_event(nic, NIC_EV_VI_OVERRUN, v->cookie, 0, which == NIC_PORT_RECEIVED ? NIC_ST_OP_RECEIVE : NIC_ST_OP_SEND);
}

static void take(struct nic *nic, const struct nic_port_done *done)
{
	switch (done->kind) {
	case NIC_PORT_SENT:
	case NIC_PORT_RECEIVED:
		complete(nic, vi_of(nic, done->vi), done->kind, done);
		break;
	case NIC_PORT_EVENT:
		nic_event(nic, done->status, done->vi == NIC_PORT_NO_VI ? 0 : vi_of(nic, done->vi)->cookie, 0, done->imm);
		break;
	default:
		break;
	}
}

static int take_done(struct nic *nic, uint32_t most)
{
	struct nic_port *port = nic->remote->port;
	uint32_t head = nic->remote->taken;
	uint32_t n = nic_load_acquire(&port->done_tail) - head; /* P3 */

	if (!n)
		return 0;
	n = n < most ? n : most;
	for (uint32_t i = 0; i < n; i++) {
		struct nic_port_done done = port->done[(head + i) & (NIC_PORT_DONES - 1)];

		take(nic, &done);
	}
	nic->remote->taken = head + n;
	nic_store_release(&port->done_head, head + n); /* P4 */
	if (nic_unlikely(nic->slot->nbuffers > 2 * KEEP))
		nic_buffer_release(nic);
	return (int)n;
}

bool nic_remote_arrived(const struct nic *nic)
{
	return nic_load_acquire(&nic->remote->port->done_tail) != nic->remote->taken; /* P3 */
}

/* ---- the end of the NIC ------------------------------------------------------------------------------------------ */

static bool alive(const struct nic *nic)
{
	/* Acquire: pairs with the release in serve.c; it may have let go of this slot alone. */
	return nic_load_acquire(&nic->remote->slot->served) == nic->remote->life && nic_daemon_lives(nic->card, nic->remote->life);
}

static void fail_queue(struct nic *nic, uint32_t vi, unsigned which)
{
	struct remote_vi *v = vi_of(nic, vi);
	const struct nic_port_done flushed = { .status = NIC_ST_DONE | NIC_ST_FLUSHED | (which ? NIC_ST_OP_RECEIVE : NIC_ST_OP_SEND) };

	while (v->queue[which] && v->queue[which]->head != v->queue[which]->tail)
		complete(nic, v, which, &flushed);
}

static struct nic_vi_ctx *context(const struct nic *nic, uint32_t vi)
{
	return &nic->remote->slot->vi[vi & (NIC_VI_TABLE - 1)];
}

static nic_cold void lose_vi(struct nic *nic, uint32_t vi)
{
	uint32_t state = nic_vi_state(context(nic, vi));
	bool up = state == NIC_VI_CONNECTED || state == NIC_VI_CONNECT_PENDING;

	if (up)
		nic_store_release(&context(nic, vi)->state, NIC_VI_ERROR); /* who wrote it is dead; read by this process */
	fail_queue(nic, vi, NIC_PORT_SENT);
	fail_queue(nic, vi, NIC_PORT_RECEIVED);
	if (state == NIC_VI_CONNECTED)
		nic_event(nic, NIC_EV_CONN_LOST, vi_of(nic, vi)->cookie, 0, 0);
}

static nic_cold void lose(struct nic *nic)
{
	struct nic_remote *r = nic->remote;

	if (r->lost)
		return;
	while (take_done(nic, POLL_DONES)) /* what it said before it died counts */
		;
	r->lost = true;
	nic_log(NIC_LOG_ERROR, "the NIC's process of device \"%s\" has %s: all connections of this process over it are lost",
	        nic->map->hdr.device, nic_daemon_lives(nic->card, r->life) ? "let go of this one" : "died");
	for (uint32_t vi = 0; vi < NIC_MAX_VI; vi++)
		if (r->vi[vi].queue[0])
			lose_vi(nic, vi);
	nic_event(nic, NIC_EV_CATASTROPHIC, 0, 0, 0);
}

bool nic_remote_lost(const struct nic *nic)
{
	return nic->remote->lost;
}

static bool check_alive(struct nic *nic)
{
	if (!nic->remote->lost && !alive(nic))
		lose(nic);
	return !nic->remote->lost;
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

/* Waits for so many cells; false: the NIC is gone.  The NIC writes its line with every command: it is looked at only when it has to be. */
static bool room(struct nic *nic, uint32_t cells)
{
	struct nic_remote *r = nic->remote;

	for (uint32_t n = 0; NIC_PORT_CMDS - (r->tail - r->head) < cells; n++) {
		r->head = nic_load_acquire(&r->port->cmd_head); /* P2 */
		if (!n)
			continue;
		nic_daemon_wake(nic->map, r->fenced);
		sched_yield();
		if (n % YIELDS == 0 && !check_alive(nic))
			return false;
	}
	return !r->lost;
}

static union nic_port_cell *cell(const struct nic *nic, uint32_t i)
{
	return &nic->remote->port->cmd[(nic->remote->tail + i) & (NIC_PORT_CMDS - 1)];
}

static void publish(struct nic *nic, uint32_t cells)
{
	nic->remote->tail += cells;
	nic_store_release(&nic->remote->port->cmd_tail, nic->remote->tail); /* P1 */
	nic_daemon_wake(nic->map, nic->remote->fenced);
}

static void put_segments(struct nic *nic, const struct nic_desc *desc, uint32_t segs)
{
	for (uint32_t i = 0; i < segs; i += NIC_PORT_SEGS) {
		uint32_t n = segs - i < NIC_PORT_SEGS ? segs - i : NIC_PORT_SEGS;

		memcpy(cell(nic, 1 + i / NIC_PORT_SEGS)->seg, &desc->seg[i], n * sizeof(desc->seg[0]));
	}
}

static void post(struct nic *nic, uint32_t vi, struct nic_desc *desc, unsigned which)
{
	struct remote_vi *v = vi_of(nic, vi);
	struct queue *q = v->queue[which];
	uint32_t segs = desc->nseg < NIC_DESC_SEGS_MAX ? desc->nseg : NIC_DESC_SEGS_MAX;
	uint32_t cells = 1 + (segs + NIC_PORT_SEGS - 1) / NIC_PORT_SEGS;

	if (!q || q->tail - q->head == QUEUE) /* more than the caller may have outstanding */
		return;
	q->desc[q->tail++ % QUEUE] = desc;
	if (!room(nic, cells)) {
		fail_queue(nic, vi, which);
		return;
	}
	cell(nic, 0)->cmd = (struct nic_port_cmd){ .op = which ? NIC_PORT_RECV : NIC_PORT_SEND, .vi = (uint16_t)vi, .segs = (uint16_t)segs,
		.desc = { desc->reserved, desc->imm, desc->length, desc->nseg, desc->control } };
	put_segments(nic, desc, segs);
	if (!which && (desc->control & NIC_CTL_POOL))
		nic->buffer_taken--;
	publish(nic, cells);
	if (nic_unlikely(nic_vi_state(context(nic, vi)) == NIC_VI_ERROR)) /* what is posted now is flushed at once */
		nic_remote_number(nic, NIC_CALL_SYNC, 0);
}

static void send(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	post(nic, vi, desc, NIC_PORT_SENT);
}

static void recv(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	post(nic, vi, desc, NIC_PORT_RECEIVED);
}

static void refill(struct nic *nic, uint32_t vi)
{
	(void)nic;
	(void)vi;
}

/* Its operands are in the slot's contexts already (ctl/group_call.c). */
static int command(struct nic *nic, const struct qnix_cmd *cmd)
{
	if (!room(nic, 1))
		return NIC_STATE;
	cell(nic, 0)->cmd = (struct nic_port_cmd){ .op = NIC_PORT_GROUP,
		.group = { nic_load_relaxed(&cmd->command), cmd->context, cmd->group, cmd->size } }; /* the caller's own copy */
	publish(nic, 1);
	return NIC_OK;
}

/* by_value as the architecture has it: the host's side of the calls about groups asks for that. */
static const struct nic_post post_remote = { .name = "port", .send = send, .recv = recv, .refill = refill, .command = command, .by_value = true };
static const struct nic_post post_remote_asking = { .name = "port", .send = send, .recv = recv, .refill = refill, .command = command };

/* Nothing of the NIC goes on here. */
static int pass(struct nic *nic)
{
	(void)nic;
	return 0;
}

static const struct nic_pipe pipe_none = { .name = "none", .pass = pass };

/* ---- polling ----------------------------------------------------------------------------------------------------- */

static int poll_remote(struct nic *nic)
{
	struct nic_remote *r = nic->remote;

	if (nic_unlikely(++r->polls >= WATCH || nic->polls >= WATCH)) { /* the other one counts what was slept */
		r->polls = nic->polls = 0;
		check_alive(nic);
	}
	return take_done(nic, POLL_DONES);
}

static uint32_t take_remote(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	(void)cq;
	(void)out;
	poll_remote(nic);
	return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void nap(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec t = { .tv_nsec = NAP };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

/* The NIC answers before it lets go of the slot: who finds that it has, or is dead, looks at the answer once more. */
static bool in_vain(struct nic *nic, const struct nic_port_call *call)
{
	return !alive(nic) && nic_load_acquire(&call->state) != NIC_PORT_ANSWERED && !check_alive(nic); /* P6: the last thing it may have said */
}

/* Until it is answered; takes completions meanwhile, since the NIC answers when it has got rid of them. */
static bool answered(struct nic *nic)
{
	struct nic_port_call *call = &nic->remote->port->call;

	for (uint32_t n = 1; nic_load_acquire(&call->state) != NIC_PORT_ANSWERED; n++) { /* P6 */
		take_done(nic, NIC_PORT_DONES);
		nic_daemon_wake(nic->map, nic->remote->fenced);
		if (n % YIELDS) {
			sched_yield();
			continue;
		}
		if (in_vain(nic, call))
			return false;
		nap(&call->state, NIC_PORT_ASKED);
	}
	return true;
}

int nic_remote_call(struct nic *nic, enum nic_port_call_op op, struct nic_port_args *args)
{
	struct nic_port_call *call = &nic->remote->port->call;
	int result;

	if (nic->remote->lost)
		return NIC_SYSTEM;
	call->op = op;
	call->args = *args;
	nic_store_release(&call->state, NIC_PORT_ASKED); /* P5 */
	if (!answered(nic))
		return NIC_SYSTEM;
	result = call->result;
	*args = call->args;
	nic_store_relaxed(&call->state, NIC_PORT_IDLE); /* the NIC looks for ASKED only */
	take_done(nic, NIC_PORT_DONES);
	return result;
}

/* ---- VIs --------------------------------------------------------------------------------------------------------- */

static bool queues_create(struct remote_vi *v)
{
	v->queue[0] = calloc(1, sizeof(struct queue));
	v->queue[1] = calloc(1, sizeof(struct queue));
	if (v->queue[0] && v->queue[1])
		return true;
	free(v->queue[0]);
	free(v->queue[1]);
	return false;
}

int nic_remote_vi_create(struct nic *nic, const struct nic_vi_args *args, uint32_t *out)
{
	struct nic_port_args a = { .vi = args->attr };
	struct remote_vi v = { .cookie = args->cookie, .cq = { args->send_cq, args->recv_cq } };
	int err;

	if (!args->cookie || (args->cookie & 1))
		return NIC_PARAMETER;
	if (!queues_create(&v))
		return NIC_RESOURCE;
	err = nic_remote_created(nic, NIC_CALL_VI_CREATE, &a, out);
	if (err) {
		free(v.queue[0]);
		free(v.queue[1]);
		return err;
	}
	*vi_of(nic, *out) = v;
	return NIC_OK;
}

static void forget_vi(struct remote_vi *v)
{
	free(v->queue[0]);
	free(v->queue[1]);
	memset(v, 0, sizeof(*v));
}

int nic_remote_vi_destroy(struct nic *nic, uint32_t vi)
{
	int err;

	if (nic_vi_state(context(nic, vi)) != NIC_VI_IDLE)
		return NIC_STATE;
	err = nic_remote_number(nic, NIC_CALL_VI_DESTROY, vi);
	if (err && !nic->remote->lost)
		return err;
	forget_vi(vi_of(nic, vi));
	return NIC_OK;
}

/* The NIC writes the context, and this process reads: a state may be a little old, as on any NIC. */
int nic_remote_vi_query(const struct nic *nic, uint32_t vi, enum nic_vi_state *state, struct nic_vi_attr *attr)
{
	const struct nic_vi_ctx *ctx = context(nic, vi);

	if (state)
		*state = nic_load_acquire(&ctx->state); /* pairs with the release in vi.c */
	if (attr)
		*attr = (struct nic_vi_attr){ ctx->reliability, ctx->flags, ctx->max_transfer, ctx->ptag };
	return NIC_OK;
}

int nic_remote_disconnect(struct nic *nic, uint32_t vi)
{
	int err = nic_remote_number(nic, NIC_CALL_DISCONNECT, vi);

	if (!nic->remote->lost)
		return err;
	fail_queue(nic, vi, NIC_PORT_SENT);
	fail_queue(nic, vi, NIC_PORT_RECEIVED);
	nic_store_release(&context(nic, vi)->state, NIC_VI_IDLE); /* who wrote it is dead; read by this process */
	return NIC_OK;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static struct nic_slot *private_slot(struct nic *nic)
{
	struct nic_slot *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t table = offsetof(struct nic_slot, vi) - offsetof(struct nic_slot, mmt); /* both begin a page */

	if (s == MAP_FAILED)
		return NULL;
	if (nic_card_view(nic->card, nic->slot->mmt, table, s->mmt))
		return s;
	munmap(s, sizeof(*s));
	return NULL;
}

static bool create(struct nic *nic)
{
	struct nic_remote *r = calloc(1, sizeof(*r));
	struct nic_slot *empty = r ? private_slot(nic) : NULL;

	if (!empty) {
		free(r);
		return false;
	}
	r->slot = nic->slot;
	r->port = &nic->slot->port;
	r->tail = nic_load_relaxed(&r->port->cmd_tail);
	r->taken = nic_load_relaxed(&r->port->done_head);
	r->arch = *nic->arch;
	r->arch.pipe = &pipe_none;
	r->arch.post = nic->arch->post->by_value ? &post_remote : &post_remote_asking;
	nic->arch = &r->arch;
	nic->slot = empty;
	nic->remote = r;
	return true;
}

static void destroy(struct nic *nic)
{
	struct nic_remote *r = nic->remote;

	for (uint32_t vi = 0; vi < NIC_MAX_VI; vi++)
		forget_vi(&r->vi[vi]);
	munmap(nic->slot, sizeof(*nic->slot));
	nic->slot = r->slot;
	nic->remote = NULL;
	free(r);
}

int nic_remote_open(struct nic *nic)
{
	int err;

	if (!create(nic)) {
		nic_driver_deregister(nic);
		return nic_fail(NIC_RESOURCE, "out of memory");
	}
	err = nic_daemon_start(nic->card, nic->map, nic->remote->slot, &nic->remote->life);
	if (err) {
		nic->remote->lost = true;
		nic_remote_close(nic);
		return err;
	}
	nic_card_populate(nic->card, nic->remote->port, sizeof(*nic->remote->port)); /* a queue goes round: its first commands shall not wait for pages */
	nic->remote->fenced = nic->waiting.fenced && nic_load_relaxed(&nic->map->hdr.daemon.fences); /* behind the acquire of `served` */
	return NIC_OK;
}

/* The NIC lets go of the slot first, if it lives. */
void nic_remote_close(struct nic *nic)
{
	struct nic_port_args none = { 0 };
	struct nic_slot *slot = nic->remote->slot;

	nic_wait_close(nic);
	nic->event = NULL;
	nic_remote_call(nic, NIC_CALL_DETACH, &none);
	nic_buffer_release(nic);
	destroy(nic);
	nic_heap_release(nic);
	nic_card_lock(nic->card);
	nic_store_release(&slot->state, NIC_SLOT_FREE); /* pairs with the acquire in nic_driver_alive */
	nic_wait_population(nic);
	nic_card_drop(nic->card, nic->me);
	nic_card_unlock(nic->card);
}

const struct nic_engine nic_engine_daemon = { .name = "daemon", .poll = poll_remote, .take = take_remote, .elsewhere = true };
