/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * QNIX, step 6 of TX: the commands of a process, each a row of `commands`.  A command is executed at once and never waits, so
 * that nothing behind it in the queue is held up: what cannot be done is told by the doorbell.
 *
 * Contexts are the process's memory: each is copied once and the copy checked.
 */
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "nicemu/engine/host.h"

void qnix_doorbell(struct qnix *q, bool recv, uint32_t context, uint32_t flag, uint32_t state, uint32_t len)
{
	nic_doorbell(q->nic, recv, context, flag, state, len);
}

static void refuse_send(struct qnix *q, const struct qnix_cmd *cmd, uint32_t state)
{
	qnix_doorbell(q, false, cmd->context, 1, state, 0);
}

static struct qnix_context send_context(const struct qnix *q, const struct qnix_cmd *cmd)
{
	return q->pte.vni.send[cmd->context % QNIX_CONTEXTS];
}

/* ---- send operations -------------------------------------------------------------------------------------------------------- */

/* The youngest operation with that destination and tag; it must have left before the new one. */
static struct qnix_sq *youngest(struct qnix *q, const struct qnix_sq *of)
{
	for (uint16_t i = of->prev; i != qnix_sq_index(q, of); i = q->sq[i].prev) {
		struct qnix_sq *s = &q->sq[i];

		if (s->after == QNIX_NONE && s->header.tag == of->header.tag && s->header.node == of->header.node &&
		    s->header.pid == of->header.pid && s->send.command != QNIX_CODE_VI)
			return s;
	}
	return NULL;
}

static uint64_t start_of(const struct qnix *q, const struct qnix_context *c, uint32_t context)
{
	if (c->pool != QNIX_NO_POOL)
		return 0; /* pages of the pool are whole */
	return q->pte.vni.send_region[context % QNIX_CONTEXTS].descriptor[0];
}

/* Steps 1 to 3 of Send: an entry from the Send Context, for one destination. */
static struct qnix_sq *enter(struct qnix *q, uint32_t context, const struct qnix_context *c, enum qnix_code code, uint32_t node,
                             uint16_t pid, uint16_t tag)
{
	struct qnix_sq *s = qnix_sq_take(q, false), *before;
	bool paged = code == QNIX_CODE_SEND;

	if (!s)
		return NULL;
	nic_trace(q->nic, SEND_1, qnix_sq_index(q, s), context);
	s->send.context = context;
	s->send.command = code;
	s->send.doorbell = (uint16_t)c->doorbell_flag;
	s->send.len = s->total = c->len;
	s->first = paged ? qnix_first(start_of(q, c, context), c->len) : qnix_first(0, c->len);
	s->header.node = (uint16_t)node;
	s->header.pid = pid;
	s->header.tag = tag;
	s->number = ++q->number;
	nic_trace(q->nic, SEND_2, node, c->len);
	before = youngest(q, s);
	if (before) {
		s->before = qnix_sq_index(q, before);
		before->after = qnix_sq_index(q, s);
	}
	nic_trace(q->nic, SEND_3, qnix_sq_index(q, s), s->number);
	return s;
}

/* Where a Send Context's process is, with a link to it; NULL: nowhere. */
static const struct qnix_peer *destination(struct qnix *q, const struct qnix_name *name, uint32_t *node)
{
	const struct qnix_peer *peer = qnix_name_find(q, name, node);

	return peer && peer->named && !peer->gone && qnix_link(q->nic, *node) ? peer : NULL;
}

static void send(struct qnix *q, const struct qnix_cmd *cmd, enum qnix_code code, uint32_t most)
{
	struct qnix_context c = send_context(q, cmd);
	uint32_t node;
	const struct qnix_peer *peer = destination(q, &c.process, &node);
	struct qnix_sq *s;

	if (!peer || (c.tag & QNIX_VI_TAG) || c.len > most) {
		refuse_send(q, cmd, c.len > most ? QNIX_REFUSED : QNIX_FAILED);
		return;
	}
	s = enter(q, cmd->context % QNIX_CONTEXTS, &c, code, node, peer->pid, c.tag);
	if (s)
		qnix_request(q, s);
	else
		refuse_send(q, cmd, QNIX_REFUSED);
}

static void do_send(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	(void)entries;
	send(q, cmd, QNIX_CODE_SEND, QNIX_MESSAGE_MAX);
}

static void do_send_short(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	(void)entries;
	send(q, cmd, QNIX_CODE_SHORT, QNIX_SHORT_MAX);
}

static void do_receive(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	struct qnix_context c = q->pte.vni.recv[cmd->context % QNIX_CONTEXTS]; /* copied once */
	const struct nic_group *g = c.group && c.group <= NIC_GROUPS ? &q->nic->groups->group[c.group - 1] : NULL;

	(void)entries;
	if (g)
		c.tag = nic_group_tag(c.group - 1, g->life);
	if (c.group && (!g || !g->ready || !nic_group_takes(q->nic, c.tag))) /* a broadcast in a group that is none any more */
		qnix_doorbell(q, true, cmd->context, 1, QNIX_FAILED, nic_group_why(g));
	else
		qnix_receive(q, cmd->context % QNIX_CONTEXTS, &c);
}

/* ---- broadcast and multicast -------------------------------------------------------------------------------------------------- */

static struct qnix_bcast *record(struct qnix *q)
{
	for (uint32_t i = 0; i < QNIX_BCASTS; i++)
		if (!q->bcast[i].count)
			return &q->bcast[i];
	return NULL;
}

/* Step 1: the data into a local buffer; one for `parts` operations.  NULL: no memory for it. */
static struct qnix_bcast *gather(struct qnix *q, const struct qnix_cmd *cmd, const struct qnix_context *c, bool brief, uint32_t parts)
{
	uint32_t pages = brief ? 0 : c->len ? (c->len + QNIX_PAGE - 1) / QNIX_PAGE : 1, page = 0, at = 0;
	const uint64_t *table = q->pte.vni.send_region[cmd->context % QNIX_CONTEXTS].descriptor;
	uint32_t descriptors = QNIX_REGION;
	struct qnix_bcast *b = record(q);

	if (!b || QNIX_SQ_ENTRIES - QNIX_SQ_VI - (q->sq_used - q->sq_vi) < parts + QNIX_CONTEXTS ||
	    (c->pool != QNIX_NO_POOL && c->pool + pages > QNIX_POOL_PAGES))
		return NULL;
	if (pages)
		page = qnix_run_take(&q->bcast_pages, pages);
	if (page == UINT32_MAX)
		return NULL;
	if (c->pool != QNIX_NO_POOL) {
		table = q->pte.vni.pool + c->pool;
		descriptors = QNIX_POOL_PAGES - c->pool;
	}
	*b = (struct qnix_bcast){ .count = parts, .page = page, .pages = pages, .context = (uint16_t)(cmd->context % QNIX_CONTEXTS),
		.doorbell = (uint16_t)c->doorbell_flag };
	for (uint32_t d = 0; !brief && at < c->len && d < descriptors; d++) {
		uint64_t bus = table[d];
		uint32_t part = qnix_first(bus, c->len - at);

		nic_host_read(q->nic, q->local_bcast[page] + at, bus, part);
		at += part;
	}
	nic_trace(q->nic, BROADCAST_1, c->len, page);
	return b;
}

/* A member that has no such group any more refuses; this NIC may not have heard yet why. */
static uint32_t why_failed(const struct qnix *q, const struct qnix_bcast *b)
{
	uint32_t why = nic_group_why(&q->nic->groups->group[b->group - 1]);

	return why == NIC_WHY_NO_GROUP ? NIC_WHY_LEFT : why;
}

void qnix_bcast_part_done(struct qnix *q, uint32_t number, uint32_t state)
{
	struct qnix_bcast *b = &q->bcast[number % QNIX_BCASTS];

	/* Of a group of the layers above, one that gave another length is told so itself, and nobody else. */
	b->failed |= state == QNIX_FAILED || (state != QNIX_DONE && !b->group);
	if (--b->count)
		return;
	if (b->pages)
		qnix_run_give(&q->bcast_pages, b->page, b->pages);
	nic_count(q->nic, broadcasts, !b->failed);
	qnix_doorbell(q, false, b->context, b->doorbell, b->failed ? QNIX_FAILED : QNIX_DONE,
	              b->failed && b->group ? why_failed(q, b) : q->pte.vni.send[b->context].len);
}

void qnix_group_over(struct qnix *q, uint32_t group, uint16_t tag)
{
	for (uint32_t i = 0; i < QNIX_BCASTS; i++)
		if (q->bcast[i].count && q->bcast[i].group == group + 1)
			qnix_tx_cancel_bcast(q, i);
	qnix_rx_cancel_tag(q, tag);
}

/* The destinations of a broadcast. */
struct targets {
	uint32_t n;
	uint16_t group; /* as in struct qnix_bcast */
	struct target {
		uint16_t node, pid, tag;
	} at[NIC_MAX_SLOTS];
};

/* Steps 2 to 5, for all destinations. */
static void spread(struct qnix *q, const struct qnix_cmd *cmd, bool brief, const struct targets *to)
{
	struct qnix_context c = send_context(q, cmd);
	uint32_t most = brief ? QNIX_SHORT_MAX : QNIX_LOCAL_BCAST * QNIX_PAGE;
	struct qnix_bcast *b = to->n && c.len <= most ? gather(q, cmd, &c, brief, to->n) : NULL;
	struct qnix_sq *s[NIC_MAX_SLOTS];

	if (!b) {
		refuse_send(q, cmd, to->n ? QNIX_REFUSED : QNIX_DONE);
		return;
	}
	b->group = to->group;
	for (uint32_t i = 0; i < to->n; i++) {
		const struct target *at = &to->at[i];

		nic_trace(q->nic, BROADCAST_2, at->node, to->n);
		s[i] = enter(q, cmd->context % QNIX_CONTEXTS, &c, brief ? QNIX_CODE_PART_SHORT : QNIX_CODE_PART, at->node, at->pid, at->tag);
		s[i]->work = (uint16_t)(b - q->bcast); /* step 3: gather has seen to it that there is an entry */
	}
	nic_trace(q->nic, BROADCAST_4, to->n, 0);
	for (uint32_t i = 0; i < to->n; i++)
		qnix_request(q, s[i]);
	nic_trace(q->nic, BROADCAST_5, to->n, 0);
}

/*
 * To every other process of the group.  The tag is the process's own when it made the group by name and the members receive
 * with theirs; of a broadcast of the layers above, each member's group entry.
 */
static void broadcast(struct qnix *q, const struct qnix_cmd *cmd, bool brief)
{
	struct qnix_context c = send_context(q, cmd);
	const struct nic_group *g = nic_group_of(q->nic, cmd);
	bool above = c.tag == QNIX_GROUP_TAG;
	struct targets to = { .n = 0 };

	if (!g || !g->ready || g->broken || (above && g->deserted) || (c.tag & QNIX_VI_TAG)) {
		qnix_doorbell(q, false, cmd->context, 1, QNIX_FAILED, above ? nic_group_why(g) : 0);
		return;
	}
	for (uint32_t i = 0; i < g->size; i++) {
		const struct nic_member *m = &g->member[i];

		if (i != g->place && qnix_link(q->nic, m->slot))
			to.at[to.n++] = (struct target){ m->slot, m->pid, above ? nic_group_tag(m->table, m->life) : c.tag };
	}
	to.group = above ? (uint16_t)(nic_group_index(q->nic, g) + 1) : 0;
	spread(q, cmd, brief, &to);
}

static void do_broadcast(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	(void)entries;
	broadcast(q, cmd, false);
}

static void do_broadcast_short(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	(void)entries;
	broadcast(q, cmd, true);
}

/* The names follow in the queue, three an entry. */
static void multicast(struct qnix *q, const struct qnix_cmd *cmd, bool brief, uint32_t *entries)
{
	const struct qnix_cmd *queue = qnix_slot_of(q)->vni.command;
	uint16_t tag = send_context(q, cmd).tag;
	uint32_t size = cmd->size, bad = 0;
	struct targets to = { .n = 0 };

	if (size > NIC_MAX_SLOTS || size == 0 || (tag & QNIX_VI_TAG)) {
		refuse_send(q, cmd, QNIX_REFUSED);
		return;
	}
	for (uint32_t i = 0; i < size; i++) {
		const struct qnix_cmd *at = &queue[(q->pte.command_queue.head + 1 + i / QNIX_NAMES) & (QNIX_COMMANDS - 1)];
		struct qnix_name name;
		const struct qnix_peer *peer;
		uint32_t node;

		if (nic_load_acquire(&at->command) != QNIX_CMD_NAMES) /* Q1; written before the command itself */
			break;
		name = at->name[i % QNIX_NAMES];
		*entries = 2 + i / QNIX_NAMES;
		peer = destination(q, &name, &node);
		if (peer)
			to.at[to.n++] = (struct target){ (uint16_t)node, peer->pid, tag };
		else
			bad++;
	}
	if (bad || to.n < size)
		refuse_send(q, cmd, QNIX_FAILED);
	else
		spread(q, cmd, brief, &to);
}

static void do_multicast(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	multicast(q, cmd, false, entries);
}

static void do_multicast_short(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	multicast(q, cmd, true, entries);
}

/* ---- groups, VIs ----------------------------------------------------------------------------------------------------------------- */

static void do_group(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	(void)entries;
	if (nic_group_execute(q->nic, cmd) == NIC_NOT_DONE)
		refuse_send(q, cmd, QNIX_REFUSED); /* a barrier before the last one is over */
}

static void do_vi(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	uint32_t vi = cmd->context & (NIC_VI_TABLE - 1);
	const struct nic_vi_ctx *ctx = nic_vi(q->nic, vi);

	(void)entries;
	if (vi >= q->nic->vi_used)
		return;
	nic_tx_run(q->nic, vi, 1);
	if (ctx->tx_next != ctx->tx_tail)
		nic_vi_schedule(q->nic, vi);
}

static void do_nothing(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	(void)cmd;
	(void)entries;
	nic_count(q->nic, bad_packets, 1);
}

static const struct {
	const char *name;
	void (*execute)(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries);
} commands[QNIX_CMD_COUNT] = {
	[QNIX_CMD_EMPTY] = { "", do_nothing },
	[QNIX_CMD_SEND] = { "Send", do_send },
	[QNIX_CMD_SEND_SHORT] = { "Send_Short", do_send_short },
	[QNIX_CMD_RECEIVE] = { "Receive", do_receive },
	[QNIX_CMD_BROADCAST] = { "Broadcast", do_broadcast },
	[QNIX_CMD_BROADCAST_SHORT] = { "Broadcast_Short", do_broadcast_short },
	[QNIX_CMD_MULTICAST] = { "Multicast", do_multicast },
	[QNIX_CMD_MULTICAST_SHORT] = { "Multicast_Short", do_multicast_short },
	[QNIX_CMD_JOIN_GROUP] = { "Join_Group", do_group },
	[QNIX_CMD_BARRIER] = { "Barrier", do_group },
	[QNIX_CMD_NAMES] = { "names without a Multicast", do_nothing },
	[QNIX_CMD_LEAVE_GROUP] = { "Leave_Group", do_group },
	[QNIX_CMD_VI_SEND] = { "VI", do_vi },
};

void qnix_execute(struct qnix *q, const struct qnix_cmd *cmd, uint32_t *entries)
{
	uint32_t code = nic_load_relaxed(&cmd->command); /* of a copy */

	commands[code < QNIX_CMD_COUNT ? code : QNIX_CMD_EMPTY].execute(q, cmd, entries);
}
