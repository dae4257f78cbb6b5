/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * QNIX, function TX: chooses the next packet (round robin among processes, then among the sends of one) and the next
 * command, as the table of qnix_mem.c says.  Each execution sends at most one packet and executes at most one command.
 *
 * A send operation comes from a context (qnix_cmd.c), from a broadcast, or from a VI's send queue: `kinds` has what differs.
 * Operations with the same destination and tag keep their order: `before` is the one that must have left first.
 */
#include "nicemu/ctl/qnix.h"
#include "nicemu/engine/host.h"

/* What one execution of TX works on. */
struct execution {
	struct qnix_sched *sched;
	struct qnix *q;         /* process of the packet */
	struct qnix_sq *s;      /* its send operation; NULL: no packet */
	struct qnix *c;         /* process of the command */
	struct qnix *begun;     /* where the search for a permitted send began */
	uint32_t looked;        /* processes looked at */
	struct nic_link *link;
	struct nic_packet *p;
	int moved;
};

/* ---- kinds of send operations -------------------------------------------------------------------------------------- */

/* Bytes [from, from + len) of a buffer that a page table describes; the first descriptor may lie inside its page. */
static void load_pages(struct qnix *q, const uint64_t *table, uint32_t descriptors, uint32_t descriptor, uint32_t len, uint8_t *to)
{
	if (descriptor < descriptors)
		nic_host_read(q->nic, to, table[descriptor], len);
}

static void load_context(struct qnix *q, struct qnix_sq *s, uint32_t from, uint32_t len, uint8_t *to)
{
	const struct qnix_context *c = &q->pte.vni.send[s->send.context % QNIX_CONTEXTS];
	uint16_t pool = c->pool;

	(void)from;
	if (pool == QNIX_NO_POOL)
		load_pages(q, q->pte.vni.send_region[s->send.context % QNIX_CONTEXTS].descriptor, QNIX_REGION, s->send.descriptor, len, to);
	else
		load_pages(q, q->pte.vni.pool, QNIX_POOL_PAGES, pool + s->send.descriptor, len, to);
}

static void load_short(struct qnix *q, struct qnix_sq *s, uint32_t from, uint32_t len, uint8_t *to)
{
	memcpy(to, q->pte.vni.send_region[s->send.context % QNIX_CONTEXTS].data + from, len);
}

static void load_local(struct qnix *q, struct qnix_sq *s, uint32_t from, uint32_t len, uint8_t *to)
{
	memcpy(to, q->local_bcast[q->bcast[s->work].page] + from, len);
}

static struct nic_txe *txe_of(const struct qnix *q, const struct qnix_sq *s)
{
	return &q->nic->slot->txq[s->send.context & (NIC_VI_TABLE - 1)][s->work & (NIC_TXQ - 1)];
}

/* The descriptor was checked when it was queued; a region that has gone since reads as what it was. */
static void load_vi(struct qnix *q, struct qnix_sq *s, uint32_t from, uint32_t len, uint8_t *to)
{
	nic_tx_gather(q->nic, s->send.context, nic_host(txe_of(q, s)->desc), from, len, to);
}

static void done_context(struct qnix *q, const struct qnix_sq *s, uint32_t state)
{
	qnix_doorbell(q, false, s->send.context, s->send.doorbell, state, s->total - s->send.len);
}

static void done_part(struct qnix *q, const struct qnix_sq *s, uint32_t state)
{
	qnix_bcast_part_done(q, s->work, state);
}

static void done_vi(struct qnix *q, const struct qnix_sq *s, uint32_t state)
{
	struct nic_vi_ctx *ctx = nic_vi(q->nic, s->send.context);

	struct nic_txe *e = txe_of(q, s);
	const struct nic_desc *desc = nic_host(e->desc);

	if (s->staged && !(desc->control & NIC_CTL_POOL))
		nic_buffer_give(q->nic, QNIX_STAGED_BUFFER(s->staged));
	ctx->queued--;
	if (ctx->tx_last == qnix_sq_index(q, s))
		ctx->tx_last = QNIX_NONE;
	nic_tx_finish(q->nic, s->send.context, e, state == QNIX_DONE ? 0 : NIC_ST_FLUSHED, s->total);
}

static const struct kind {
	const char *name;
	bool high; /* executed when the reply comes, past the scheduling */
	bool vi;
	void (*load)(struct qnix *q, struct qnix_sq *s, uint32_t from, uint32_t len, uint8_t *to);
	void (*done)(struct qnix *q, const struct qnix_sq *s, uint32_t state);
} kinds[] = {
	[QNIX_CODE_SEND] = { "Send", false, false, load_context, done_context },
	[QNIX_CODE_SHORT] = { "Send_Short", true, false, load_short, done_context },
	[QNIX_CODE_PART] = { "Broadcast", false, false, load_local, done_part },
	[QNIX_CODE_PART_SHORT] = { "Broadcast_Short", true, false, load_short, done_part },
	[QNIX_CODE_VI] = { "VI", false, true, load_vi, done_vi },
};

/* ---- one packet ------------------------------------------------------------------------------------------------------ */

static uint32_t next_len(const struct qnix_sq *s)
{
	uint32_t most = s->header.count == 0 ? s->first : QNIX_PAGE;

	return s->send.len < most ? s->send.len : most;
}

/* Step 3: the header into the output FIFO.  NULL: no room there, or no buffer behind it. */
static struct nic_packet *put_header(struct qnix *q, struct qnix_sq *s, struct nic_link *link, uint32_t len)
{
	struct qnix_header h = { .node = s->header.node, .pid = s->header.pid, .source = q->pte.index, .source_pid = q->pte.pid,
		.tag = s->header.tag, .len_low = (uint16_t)len, .len_high = (uint16_t)(len >> 16), .count = s->header.count };
	struct nic_packet *p = nic_link_reserve(link, NIC_RING_RESERVE);
	uint32_t index = 0;

	if (!p) {
		nic_count(q->nic, link_full, 1);
		return NULL;
	}
	if (len > QNIX_SYSTEM_MAX && !nic_buffer_take(q->nic, &index))
		return NULL;
	memcpy(p->qnix.header, &h, sizeof(h));
	p->qnix.buffer = index;
	p->op = NIC_OP_QNIX;
	p->gen = s->gen;
	p->vi = 0;
	return p;
}

/* Step 4: the data behind it.  The packet leaves at the end of it.  False: it does not, since there is nothing to read them from. */
static bool put_data(struct qnix *q, struct qnix_sq *s, struct nic_link *link, struct nic_packet *p, uint32_t len)
{
	bool last = s->send.len == len;
	uint32_t flags = last ? s->flags : NIC_PF_MORE;

	kinds[s->send.command].load(q, s, s->total - s->send.len, len,
	                            len > QNIX_SYSTEM_MAX ? nic_buffer(q->nic, p->qnix.buffer) : p->qnix.data);
	if (nic_host_lost(q->nic)) {
		if (len > QNIX_SYSTEM_MAX)
			nic_buffer_give(q->nic, p->qnix.buffer);
		return false;
	}
	p->imm = s->send.command == QNIX_CODE_VI ? ((const struct nic_desc *)nic_host(txe_of(q, s)->desc))->imm : 0;
	p->len_flags = (len > QNIX_SYSTEM_MAX ? NIC_PF_BUF | flags : flags);
	s->header.count++;
	s->send.len -= len;
	s->send.descriptor++;
	nic_link_publish(link, p, 1);
	if (len > QNIX_SYSTEM_MAX) {
		link->balance--;
		nic_count(q->nic, bytes_buffer, len);
	} else {
		nic_count(q->nic, bytes_inline, len);
	}
	nic_count(q->nic, packets_sent, 1);
	nic_count(q->nic, qnix_packets, 1);
	return true;
}

static struct nic_link *link_of(const struct qnix *q, const struct qnix_sq *s)
{
	struct nic_link *link = q->nic->link[s->header.node & (NIC_MAX_SLOTS - 1)];

	return link && !link->lost ? link : NULL;
}

bool qnix_tx_packet(struct qnix *q, struct qnix_sq *s)
{
	struct nic_link *link = link_of(q, s);
	uint32_t len = next_len(s);
	struct nic_packet *p = link ? put_header(q, s, link, len) : NULL;

	if (!p)
		return false;
	nic_trace(q->nic, SHORT_1, s->header.tag, s->number);
	if (!put_data(q, s, link, p, len))
		return false;
	nic_trace(q->nic, SHORT_2, len, 0);
	return true;
}

/* ---- the end of an operation ----------------------------------------------------------------------------------------- */

static void high_priority(struct qnix *q, struct qnix_sq *s);

void qnix_tx_finish(struct qnix *q, struct qnix_sq *s, uint32_t state)
{
	const struct kind *kind = &kinds[s->send.command];
	struct qnix_sq *after = s->after == QNIX_NONE ? NULL : &q->sq[s->after];

	if (s->before != QNIX_NONE)
		q->sq[s->before].after = s->after;
	if (after)
		after->before = s->before;
	kind->done(q, s, state);
	qnix_sq_give(q, s, kind->vi);
	if (after && after->before == QNIX_NONE && kinds[after->send.command].high)
		high_priority(q, after); /* its permission may have come while it had to wait */
}

/* A *_Short whose turn among its equals has come and that is permitted: it does not wait for the scheduling. */
static void high_priority(struct qnix *q, struct qnix_sq *s)
{
	if (!s->permission || s->before != QNIX_NONE)
		return;
	while (s->send.len || s->header.count == 0)
		if (!qnix_tx_packet(q, s))
			return; /* no room: the scheduling goes on with it after all */
	nic_trace(q->nic, SHORT_3, s->send.context, 0);
	qnix_tx_finish(q, s, QNIX_DONE);
}

/* ---- permission ------------------------------------------------------------------------------------------------------ */

/* A VI asks for all its messages, in order; a context only when it is the first of its key, since nothing else orders them. */
static bool may_ask(const struct qnix *q, const struct qnix_sq *s)
{
	if (s->before == QNIX_NONE)
		return true;
	if (s->send.command != QNIX_CODE_VI)
		return false;
	return s->requested ? q->sq[s->before].permission : q->sq[s->before].requested;
}

bool qnix_request(struct qnix *q, struct qnix_sq *s)
{
	struct qnix_request req = { .pid = s->header.pid, .source_pid = q->pte.pid, .tag = s->header.tag, .number = s->number,
		.len = s->total, .first = s->first, .packets = qnix_packets(s->total, s->first), .staged = s->staged };
	struct qnix_system_head head = { .gen = s->gen, .len_flags = s->flags,
		.imm = s->send.command == QNIX_CODE_VI ? ((const struct nic_desc *)nic_host(txe_of(q, s)->desc))->imm : 0 };

	if (!may_ask(q, s) || !qnix_system_with(q->nic, s->header.node, QNIX_SYS_PERMISSION_REQUEST, &head, &req, sizeof(req)))
		return false;
	if (s->requested) {
		nic_trace(q->nic, REQUEST_AGAIN, qnix_sq_index(q, s), s->number);
		nic_count(q->nic, qnix_requests_again, 1);
		s->patience = s->patience < QNIX_PATIENCE_MAX ? 2 * s->patience : s->patience;
	} else {
		nic_trace(q->nic, REQUEST_OUT, qnix_sq_index(q, s), s->number);
		nic_count(q->nic, qnix_requests, 1);
	}
	s->requested = 1;
	s->visits = 0;
	return true;
}

/* A reply to a message of an earlier connection of the VI, perhaps of the same number, is not one to this. */
static bool same_life(const struct qnix *q, const struct qnix_sq *s, uint8_t gen)
{
	return s->send.command != QNIX_CODE_VI || nic_vi(q->nic, s->send.context)->gen == gen;
}

static struct qnix_sq *requester(struct qnix *q, const struct qnix_header *h, uint8_t gen, const struct qnix_reply *reply)
{
	uint16_t i = q->pte.scheduling.head;

	if (i == QNIX_NONE || reply->source_pid != q->pte.pid)
		return NULL;
	do {
		struct qnix_sq *s = &q->sq[i];

		if (s->number == reply->number && s->header.tag == reply->tag && s->header.node == h->source &&
		    s->header.pid == reply->pid && same_life(q, s, gen))
			return s;
		i = s->next;
	} while (i != q->pte.scheduling.head);
	return NULL;
}

/* A reply that comes twice finds the flag set, or the operation gone. */
void qnix_reply_in(struct qnix *q, const struct qnix_header *h, uint8_t gen, const struct qnix_reply *reply)
{
	struct qnix_sq *s = requester(q, h, gen, reply);

	if (!s || s->permission)
		return;
	switch (reply->verdict) {
	case QNIX_GRANTED:
		break;
	case QNIX_DISCARD:
	case QNIX_TAKEN:
		s->send.len = 0;
		qnix_tx_finish(q, s, QNIX_DONE);
		return;
	case QNIX_TOO_LONG:
		qnix_tx_finish(q, s, QNIX_REFUSED);
		return;
	case QNIX_NOWHERE:
		qnix_tx_finish(q, s, QNIX_FAILED);
		return;
	default:
		return;
	}
	s->permission = 1;
	nic_trace(q->nic, REPLY, qnix_sq_index(q, s), s->number);
	if (kinds[s->send.command].high)
		high_priority(q, s);
}

/* ---- the steps ------------------------------------------------------------------------------------------------------- */

static void rotate(uint16_t *head, uint16_t *tail, const struct qnix_sq *sq)
{
	*tail = *head;
	*head = sq[*head].next;
}

/* The process at the head of the first level Scheduling Queue, if it has a pending send; else the next one. */
static enum qnix_tx_state step1(struct execution *x)
{
	struct qnix *p = x->sched->packets;

	for (; p && x->looked < NIC_MAX_SLOTS; x->looked++, p = p->next) {
		if (x->looked && p == x->begun)
			break;
		if (!x->begun)
			x->begun = p;
		x->sched->packets = p;
		if (p->pte.pid && p->pte.scheduling.head != QNIX_NONE) {
			x->q = p;
			nic_trace(p->nic, TX_1, p->pte.index, 0);
			return QNIX_TX_2;
		}
	}
	x->q = NULL;
	return QNIX_TX_5;
}

/* The first permitted send of that process; those that are not are asked for, with patience. */
static enum qnix_tx_state step2(struct execution *x)
{
	struct qnix *q = x->q;
	uint32_t left = q->sq_used;

	for (; left; left--) {
		struct qnix_sq *s = &q->sq[q->pte.scheduling.head];

		if (s->permission && s->before == QNIX_NONE) {
			nic_trace(q->nic, TX_2, q->pte.scheduling.head, 1);
			x->s = s;
			return QNIX_TX_3;
		}
		if (!s->permission && (!s->requested || ++s->visits >= s->patience)) {
			nic_trace(q->nic, TX_2, q->pte.scheduling.head, 0);
			x->moved += qnix_request(q, s);
		}
		rotate(&q->pte.scheduling.head, &q->pte.scheduling.tail, q->sq);
	}
	x->sched->packets = q->next;
	x->looked++;
	return QNIX_TX_1;
}

static enum qnix_tx_state step3(struct execution *x)
{
	struct qnix *q = x->q;

	x->link = link_of(q, x->s);
	x->p = x->link ? put_header(q, x->s, x->link, next_len(x->s)) : NULL;
	if (!x->p) { /* the output FIFO is full: others may go another way */
		rotate(&q->pte.scheduling.head, &q->pte.scheduling.tail, q->sq);
		x->sched->packets = q->next;
		x->s = NULL;
		return QNIX_TX_5;
	}
	nic_trace(q->nic, TX_3, x->s->header.tag, x->s->header.count);
	return QNIX_TX_4;
}

static enum qnix_tx_state step4(struct execution *x)
{
	uint32_t len = next_len(x->s);

	if (!put_data(x->q, x->s, x->link, x->p, len)) {
		x->sched->packets = x->q->next;
		x->s = NULL;
		return QNIX_TX_5;
	}
	x->q->current = x->s;
	nic_trace(x->q->nic, TX_4, len, x->s->send.len);
	x->sched->packets = x->q->next; /* the process has had its packet */
	x->moved++;
	return QNIX_TX_5;
}

static struct qnix_cmd *command_at(const struct qnix *q)
{
	return &qnix_slot_of(q)->vni.command[q->pte.command_queue.head & (QNIX_COMMANDS - 1)];
}

static enum qnix_tx_state step5(struct execution *x)
{
	struct qnix *p = x->sched->commands, *first = p;

	if (p)
		do {
			if (p->pte.pid && nic_load_acquire(&command_at(p)->command)) { /* Q1 */
				x->c = x->sched->commands = p;
				nic_trace(p->nic, TX_5, p->pte.index, 0);
				return QNIX_TX_6;
			}
			p = p->next;
		} while (p != first);
	return x->s ? QNIX_TX_7 : QNIX_TX_END;
}

/* Reads the command, executes it, zeroes its entries; every eighth the process learns how far the NIC is. */
static enum qnix_tx_state step6(struct execution *x)
{
	struct qnix *q = x->c;
	struct qnix_cmd cmd;
	uint32_t entries = 1;

	memcpy(&cmd, command_at(q), sizeof(cmd)); /* copied once; checked by whoever executes it */
	qnix_execute(q, &cmd, &entries);
	nic_trace(q->nic, TX_6, nic_load_relaxed(&cmd.command), cmd.context); /* of a copy */
	for (; entries; entries--) {
		nic_store_relaxed(&command_at(q)->command, 0); /* published by the head, Q3 */
		q->pte.command_queue.head++;
		if (++q->pte.command_queue.consecutive % QNIX_HEAD_EVERY == 0) {
			nic_store_release(q->pte.command_queue.process_head, q->pte.command_queue.head); /* Q3 */
			nic_trace(q->nic, TX_6_HEAD, q->pte.command_queue.head, 0);
		}
	}
	nic_count(q->nic, qnix_commands, 1);
	x->moved++;
	x->sched->commands = q->next;
	return x->s ? QNIX_TX_7 : QNIX_TX_END;
}

static enum qnix_tx_state step7(struct execution *x)
{
	struct qnix *q = x->q;
	struct qnix_sq *s = q->current;

	if (!s) /* the command was the end of it */
		return QNIX_TX_END;
	nic_trace(q->nic, TX_7, qnix_sq_index(q, s), s->send.len);
	if (s->send.len) {
		if (q->pte.scheduling.head == qnix_sq_index(q, s))
			rotate(&q->pte.scheduling.head, &q->pte.scheduling.tail, q->sq);
		return QNIX_TX_END;
	}
	nic_trace(q->nic, TX_7_DOORBELL, s->send.context, 0);
	qnix_tx_finish(q, s, QNIX_DONE);
	return QNIX_TX_END;
}

static enum qnix_tx_state (*const step[QNIX_TX_STATES])(struct execution *x) = {
	[QNIX_TX_1] = step1, [QNIX_TX_2] = step2, [QNIX_TX_3] = step3, [QNIX_TX_4] = step4,
	[QNIX_TX_5] = step5, [QNIX_TX_6] = step6, [QNIX_TX_7] = step7,
};

int qnix_tx(struct qnix_sched *sched)
{
	struct execution x = { .sched = sched };
	enum qnix_tx_state at = QNIX_TX_1, next;

	while (at != QNIX_TX_END) {
		next = step[at](&x);
		NIC_ASSERT(qnix_tx_states[at].next >> next & 1);
		at = next;
	}
	return x.moved;
}

/* ---- for who wants to sleep ------------------------------------------------------------------------------------------- */

static enum nic_motion send_motion(const struct qnix *q, const struct qnix_sq *s)
{
	if (s->permission)
		return s->before == QNIX_NONE ? NIC_MOVES : NIC_STILL;
	if (!may_ask(q, s))
		return NIC_STILL;
	return !s->requested || s->visits + 1 >= s->patience ? NIC_MOVES : NIC_ASKS;
}

bool qnix_tx_commanded(const struct qnix *q)
{
	return nic_load_acquire(&command_at(q)->command) != QNIX_CMD_EMPTY; /* Q1 */
}

enum nic_motion qnix_tx_motion(const struct qnix *q)
{
	enum nic_motion most = NIC_STILL;
	uint16_t i = q->pte.scheduling.head;

	if (qnix_tx_commanded(q))
		return NIC_MOVES;
	for (uint32_t left = q->sq_used; left && most != NIC_MOVES; left--, i = q->sq[i].next) {
		enum nic_motion motion = send_motion(q, &q->sq[i]);

		most = motion > most ? motion : most;
	}
	return most;
}

/* So many visits more. */
void qnix_tx_slept(struct qnix *q, uint32_t visits)
{
	uint16_t i = q->pte.scheduling.head;

	for (uint32_t left = q->sq_used; left; left--, i = q->sq[i].next) {
		struct qnix_sq *s = &q->sq[i];

		if (s->requested && !s->permission)
			s->visits += visits < QNIX_PATIENCE_MAX ? visits : QNIX_PATIENCE_MAX;
	}
}

/* ---- what has to go ----------------------------------------------------------------------------------------------------- */

/* All operations for which `which` holds are over; they complete with `state`. */
static void drop(struct qnix *q, bool (*which)(const struct qnix_sq *s, uint32_t value), uint32_t value, uint32_t state)
{
	uint32_t left = q->sq_used;
	uint16_t i = q->pte.scheduling.head;

	for (; left && i != QNIX_NONE; left--) {
		struct qnix_sq *s = &q->sq[i];

		i = s->next;
		if (which(s, value)) {
			s->permission = 0; /* nothing of it leaves any more */
			if (s->after != QNIX_NONE && which(&q->sq[s->after], value))
				q->sq[s->after].permission = 0;
			qnix_tx_finish(q, s, state);
		}
	}
}

static bool of_vi(const struct qnix_sq *s, uint32_t vi)
{
	return s->send.command == QNIX_CODE_VI && s->send.context == vi;
}

static bool to_node(const struct qnix_sq *s, uint32_t node)
{
	return s->send.command != QNIX_CODE_VI && s->header.node == node;
}

void qnix_tx_cancel_vi(struct qnix *q, uint32_t vi)
{
	if (nic_vi(q->nic, vi)->queued)
		drop(q, of_vi, vi, QNIX_FAILED);
}

static bool of_bcast(const struct qnix_sq *s, uint32_t record)
{
	return (s->send.command == QNIX_CODE_PART || s->send.command == QNIX_CODE_PART_SHORT) && s->work == record;
}

void qnix_tx_cancel_bcast(struct qnix *q, uint32_t record)
{
	drop(q, of_bcast, record, QNIX_FAILED);
}

void qnix_tx_lost(struct qnix *q, uint32_t node)
{
	drop(q, to_node, node, QNIX_FAILED);
}
