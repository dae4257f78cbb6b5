/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * QNIX, function RX: takes one packet, finds its receive in the Receive Table, places it through the Descriptor Map, and
 * completes the receive with its last packet; and the Receive command, which is the other half of the same table.
 *
 * An entry is one of four: a receive that waits for its message (no map), a message on its way to a receive (map and context),
 * a message that came early and lies in a local buffer (map, no context), a receive of a VI.  Entries of one key are used
 * first in, first out; the sender keeps messages of one key apart, so a packet belongs to the oldest one that has a map.
 */
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "nicemu/engine/host.h"

/* ---- where packets go -------------------------------------------------------------------------------------------------- */

static const uint64_t *table_of(const struct qnix *q, const struct qnix_rt *r, uint32_t *descriptors)
{
	uint32_t context = r->context % QNIX_CONTEXTS;
	uint16_t pool = q->pte.vni.recv[context].pool;

	if (pool == QNIX_NO_POOL) {
		*descriptors = QNIX_REGION;
		return q->pte.vni.recv_region[context].descriptor;
	}
	*descriptors = pool < QNIX_POOL_PAGES ? QNIX_POOL_PAGES - pool : 0;
	return q->pte.vni.pool + (pool < QNIX_POOL_PAGES ? pool : 0);
}

/* Associates each packet with one or two consecutive descriptors of the destination. */
static void associate(struct qnix *q, struct qnix_rt *r, const uint64_t *table)
{
	uint32_t room = QNIX_PAGE - (table ? table[0] % QNIX_PAGE : 0), descriptor = 0, offset = 0, left = r->total;

	for (uint32_t k = 0; k < r->packets; k++) {
		uint32_t len = k == 0 ? r->first : left < QNIX_PAGE ? left : QNIX_PAGE;

		q->map[r->map + k].full.descriptor = descriptor;
		q->map[r->map + k].full.offset = (uint16_t)offset;
		q->map[r->map + k].full.len = (uint16_t)len;
		left -= len;
		offset += len;
		if (offset >= room) {
			offset -= room;
			room = QNIX_PAGE;
			descriptor++;
		}
	}
}

/* A packet to the page table of the receive's context. */
static void store_pages(struct qnix *q, const struct qnix_rt *r, const union qnix_map *m, const uint8_t *data)
{
	uint32_t descriptors, d = m->full.descriptor, room, part;
	const uint64_t *table = table_of(q, r, &descriptors);
	uint64_t at;

	if (d >= descriptors)
		return;
	at = table[d] + m->full.offset;
	room = QNIX_PAGE - at % QNIX_PAGE;
	part = m->full.len < room ? m->full.len : room;
	nic_host_write(q->nic, at, data, part);
	if (part < m->full.len && d + 1 < descriptors)
		nic_host_write(q->nic, table[d + 1], data + part, m->full.len - part);
}

static uint32_t stream_offset(const struct qnix_rt *r, uint32_t k)
{
	return k == 0 ? 0 : r->first + (k - 1) * QNIX_PAGE;
}

/* Step 2: packet number k of the message. */
static void place(struct qnix *q, struct qnix_rt *r, uint32_t k, const uint8_t *data, uint32_t len)
{
	union qnix_map *m = &q->map[r->map + k];

	if (r->command == QNIX_CODE_VI_RECEIVE) {
		if (r->buffer == QNIX_NO_BUFFER)
			nic_rx_scatter(q->nic, r->context, stream_offset(r, k), data, len);
		else
			nic_copy(nic_buffer(q->nic, r->buffer) + stream_offset(r, k), data, len);
	} else if (r->context == QNIX_DROP) {
		; /* its receive was too small, and has been told */
	} else if (r->context == QNIX_NO_CONTEXT) {
		memcpy(q->local_early[r->buffer] + m->simple.offset, data, len);
		m->simple.arrived = 1;
	} else {
		store_pages(q, r, m, data);
	}
	r->len -= len;
	r->got++;
}

static uint32_t packet_len(const struct qnix_rt *r, uint32_t k)
{
	if (k == 0)
		return r->first;
	return k + 1 < r->packets ? QNIX_PAGE : r->total - stream_offset(r, k);
}

/* ---- completion ---------------------------------------------------------------------------------------------------------- */

static uint32_t pages_of(const struct qnix_rt *r)
{
	return r->total ? (r->total + QNIX_PAGE - 1) / QNIX_PAGE : 1;
}

static void complete_vi(struct qnix *q, struct qnix_rt *r, uint32_t flags, uint32_t imm)
{
	uint32_t vi = r->context, total = r->total, buffer = r->buffer;

	nic_vi(q->nic, vi)->rx_bound--;
	qnix_rt_give(q, r);
	nic_rx_done(q->nic, vi, flags, total, imm, buffer);
}

/* A message of another length than its receive has room for is a failure in a group of the layers above; others may be shorter. */
static uint32_t group_outcome(const struct qnix *q, const struct qnix_rt *r, uint32_t *state)
{
	if (!(r->match.tag & QNIX_GROUP_TAG) || (*state == QNIX_DONE && r->total == r->room))
		return r->total;
	if (*state == QNIX_FAILED)
		return nic_group_why(nic_group_of_tag(q->nic, r->match.tag));
	*state = QNIX_FAILED;
	return NIC_WHY_LENGTH;
}

/* The receive is over: what of it lay in NIC memory is free, and the process is told. */
static void complete(struct qnix *q, struct qnix_rt *r, uint32_t state)
{
	uint32_t context = r->context, total = group_outcome(q, r, &state);
	uint16_t doorbell = r->doorbell;

	if (r->buffer != QNIX_NO_BUFFER)
		qnix_run_give(&q->early, r->buffer, pages_of(r));
	qnix_rt_give(q, r);
	if (context == QNIX_NO_CONTEXT || context == QNIX_DROP)
		return;
	nic_trace(q->nic, RX_4_DOORBELL, context, total);
	qnix_doorbell(q, true, context, doorbell, state, total);
}

/* ---- data ----------------------------------------------------------------------------------------------------------------- */

/* Step 1: the oldest message of that key that may come. */
static struct qnix_rt *arriving(struct qnix *q, const struct qnix_header *h)
{
	struct qnix_rt *r = NULL;

	if (h->pid != q->pte.pid)
		return NULL;
	while ((r = qnix_rt_find(q, r, h->source, h->source_pid, h->tag)))
		if (r->map != QNIX_NO_MAP && r->got < r->packets)
			return r;
	return NULL;
}

void qnix_data_in(struct qnix *q, const struct qnix_header *h, const uint8_t *data, uint32_t len_flags, uint32_t imm)
{
	uint32_t len = h->len_low | (uint32_t)h->len_high << 16;
	struct qnix_rt *r = arriving(q, h);

	nic_trace(q->nic, RX_1, h->tag, r ? qnix_rt_index(q, r) : QNIX_NONE);
	if (!r) {
		nic_count(q->nic, stale_packets, 1);
		return;
	}
	if (h->count != (uint16_t)r->got || len != packet_len(r, r->got) ||
	    (r->command == QNIX_CODE_VI_RECEIVE && !nic_rx_ready(q->nic, r->context, r->total, r->buffer != QNIX_NO_BUFFER))) {
		nic_count(q->nic, bad_packets, 1);
		return;
	}
	place(q, r, r->got, data, len);
	nic_trace(q->nic, RX_2, h->count, len);
	nic_trace(q->nic, RX_4, qnix_rt_index(q, r), r->len);
	if (r->got < r->packets)
		return;
	if (r->command == QNIX_CODE_VI_RECEIVE)
		complete_vi(q, r, len_flags, imm);
	else if (r->context != QNIX_NO_CONTEXT)
		complete(q, r, QNIX_DONE);
}

/* ---- Permission_Request ----------------------------------------------------------------------------------------------------- */

static void reply(struct qnix *q, const struct qnix_header *h, const struct qnix_request *req, uint8_t gen, enum qnix_verdict verdict)
{
	struct qnix_reply msg = { .source_pid = req->source_pid, .pid = req->pid, .tag = req->tag, .number = req->number, .verdict = verdict };

	/* When there is no room for it the request will come again. */
	qnix_system(q->nic, h->source, QNIX_SYS_PERMISSION_REPLY, gen, &msg, sizeof(msg));
}

static void refuse(struct qnix *q, const struct qnix_request *req)
{
	nic_trace(q->nic, REQUEST_REFUSED, req->tag, req->number);
	nic_count(q->nic, qnix_refused, 1);
}

/* The message has leave: a map for its packets. */
static bool bind(struct qnix *q, struct qnix_rt *r, const struct qnix_request *req)
{
	uint32_t map = qnix_run_take(&q->maps, req->packets);

	if (map == UINT32_MAX)
		return false;
	r->map = map;
	r->packets = req->packets;
	r->number = req->number;
	r->total = r->len = req->len;
	r->first = req->first;
	return true;
}

/* Steps 1 to 4 with a receive that waits. */
static bool grant(struct qnix *q, const struct qnix_header *h, struct qnix_rt *r, const struct qnix_request *req)
{
	uint32_t descriptors;

	if (!bind(q, r, req))
		return false;
	nic_trace(q->nic, REQUEST_1, qnix_rt_index(q, r), r->packets);
	nic_trace(q->nic, REQUEST_2, qnix_rt_index(q, r), 0);
	associate(q, r, table_of(q, r, &descriptors));
	nic_trace(q->nic, REQUEST_3, qnix_rt_index(q, r), r->packets);
	reply(q, h, req, 0, QNIX_GRANTED);
	nic_trace(q->nic, REQUEST_4, qnix_rt_index(q, r), r->number);
	return true;
}

/* Steps 1 to 4 without one: into a local buffer, if there is one that is free. */
static bool early(struct qnix *q, const struct qnix_header *h, const struct qnix_request *req)
{
	uint32_t pages = req->len ? (req->len + QNIX_PAGE - 1) / QNIX_PAGE : 1, page;
	struct qnix_rt *r;

	page = pages > QNIX_EARLY_MAX || q->rt_used - q->rt_vi >= QNIX_RT_ENTRIES - QNIX_RT_VI - QNIX_CONTEXTS ? UINT32_MAX : qnix_run_take(&q->early, pages);
	if (page == UINT32_MAX)
		return false;
	r = qnix_rt_take(q, false, h->source, req->source_pid, req->tag);
	if (r)
		nic_trace(q->nic, EARLY_1, qnix_rt_index(q, r), req->tag);
	if (!r || !bind(q, r, req)) {
		qnix_run_give(&q->early, page, pages);
		if (r)
			qnix_rt_give(q, r);
		return false;
	}
	r->buffer = page;
	nic_trace(q->nic, EARLY_2, qnix_rt_index(q, r), page);
	for (uint32_t k = 0; k < r->packets; k++) {
		q->map[r->map + k].simple.offset = stream_offset(r, k);
		q->map[r->map + k].simple.arrived = 0;
	}
	nic_trace(q->nic, EARLY_3, qnix_rt_index(q, r), r->packets);
	nic_count(q->nic, qnix_early, 1);
	reply(q, h, req, 0, QNIX_GRANTED);
	nic_trace(q->nic, EARLY_4, qnix_rt_index(q, r), r->number);
	return true;
}

static bool sensible(const struct qnix *q, const struct qnix_header *h, const struct qnix_request *req)
{
	return req->pid == q->pte.pid && h->source < NIC_MAX_SLOTS && req->len <= QNIX_MESSAGE_MAX && req->first <= req->len &&
	       req->first <= QNIX_PAGE && (req->first > 0 || req->len == 0) && req->packets == qnix_packets(req->len, req->first);
}

/*
 * Has this very request been answered "too long"?  Its sender asks for the next message of the key when it has read an answer, so
 * another number means that this one will not come again.
 */
static bool told_before(struct qnix *q, const struct qnix_header *h, const struct qnix_request *req)
{
	for (uint32_t i = 0; i < q->ntold; i++) {
		struct qnix_told *t = &q->told[i];

		if (t->node != h->source || t->pid != req->source_pid || t->tag != req->tag)
			continue;
		if (t->number == req->number)
			return true;
		*t = q->told[--q->ntold];
		return false;
	}
	return false;
}

static void tell_too_long(struct qnix *q, const struct qnix_header *h, const struct qnix_request *req)
{
	uint32_t i = q->ntold < QNIX_TOLD ? q->ntold++ : req->number % QNIX_TOLD;

	q->told[i] = (struct qnix_told){ h->source, req->source_pid, req->tag, req->number };
	reply(q, h, req, 0, QNIX_TOO_LONG);
}

static void forget_told(struct qnix *q, uint32_t node)
{
	for (uint32_t i = q->ntold; i-- > 0;)
		if (q->told[i].node == node)
			q->told[i] = q->told[--q->ntold];
}

/* For a receive of a context, or none. */
static void request_context(struct qnix *q, const struct qnix_header *h, const struct qnix_request *req)
{
	struct qnix_rt *r = NULL;

	if ((req->tag & QNIX_GROUP_TAG) && !nic_group_takes(q->nic, req->tag)) {
		reply(q, h, req, 0, QNIX_NOWHERE);
		return;
	}
	if (nic_unlikely(q->ntold) && told_before(q, h, req)) {
		reply(q, h, req, 0, QNIX_TOO_LONG);
		return;
	}
	while ((r = qnix_rt_find(q, r, h->source, req->source_pid, req->tag)))
		if (r->map == QNIX_NO_MAP)
			break;
	if (r && r->len < req->len) {
		tell_too_long(q, h, req);
		r->total = 0;
		complete(q, r, QNIX_REFUSED);
		return;
	}
	if (!(r ? grant(q, h, r, req) : early(q, h, req)))
		refuse(q, req);
}

/*
 * The message lies ready in a buffer of its sender, and nothing is on its way before it: it is taken from there, for the
 * sender's NIC may not run.  The sender may take it back meanwhile, when its end of the connection goes: looked at afterwards.
 */
static void take_staged(struct qnix *q, struct nic_link *link, const struct qnix_system_head *head, const struct qnix_header *h,
                        const struct qnix_request *req, uint32_t buffer)
{
	uint32_t vi = req->tag & (NIC_VI_TABLE - 1), index = QNIX_STAGED_BUFFER(req->staged), offset = QNIX_STAGED_OFFSET(req->staged);
	struct nic_vi_ctx *ctx = nic_vi(q->nic, vi);
	const uint8_t *data = nic_buffer(q->nic, index) + offset;

	if (buffer == QNIX_NO_BUFFER)
		nic_rx_scatter(q->nic, vi, 0, data, req->len);
	else
		nic_copy(nic_buffer(q->nic, buffer), data, req->len);
	if (!nic_rx_still_up(q->nic, link, vi)) {
		if (buffer != QNIX_NO_BUFFER)
			nic_buffer_give(q->nic, buffer);
		nic_vi_lost(q->nic, vi);
		return;
	}
	ctx->rx_number++;
	reply(q, h, req, ctx->peer_gen, QNIX_TAKEN);
	nic_count(q->nic, qnix_staged, 1);
	nic_rx_done(q->nic, vi, head->len_flags, req->len, head->imm, buffer);
}

static bool staged(const struct qnix_request *req)
{
	return req->staged && QNIX_STAGED_BUFFER(req->staged) < NIC_POOL_BUFFERS &&
	       (uint64_t)QNIX_STAGED_OFFSET(req->staged) + req->len <= NIC_BUFFER_SIZE;
}

/*
 * For a VI: requests of one VI are served in their order, each with the next receive.  What VIA punishes (no receive, too
 * small) is judged when everything before has arrived, as it would be without permissions.
 */
static void request_vi(struct qnix *q, struct nic_link *link, const struct qnix_system_head *head, const struct qnix_header *h,
                       const struct qnix_request *req, struct nic_vi_ctx *ctx)
{
	uint32_t vi = req->tag & (NIC_VI_TABLE - 1), buffer = QNIX_NO_BUFFER;
	enum nic_rx_room room;
	struct qnix_rt *r;

	if (req->number != ctx->rx_number) {
		if ((int16_t)(req->number - ctx->rx_number) < 0 && (staged(req) || ctx->reliability == NIC_UNRELIABLE))
			reply(q, h, req, ctx->peer_gen, staged(req) ? QNIX_TAKEN : QNIX_DISCARD); /* the answer was lost */
		return;
	}
	room = nic_rx_room(q->nic, vi, req->len, ctx->rx_bound, &buffer);
	if (room == NIC_RX_REJECTED) {
		if (nic_vi_state(ctx) == NIC_VI_CONNECTED) {
			ctx->rx_number++;
			reply(q, h, req, ctx->peer_gen, QNIX_DISCARD);
		}
		return;
	}
	if (room == NIC_RX_ROOM && !ctx->rx_bound && staged(req)) {
		take_staged(q, link, head, h, req, buffer);
		return;
	}
	r = room == NIC_RX_ROOM ? qnix_rt_take(q, true, h->source, req->source_pid, req->tag) : NULL;
	if (r)
		r->context = vi;
	if (!r || !bind(q, r, req)) {
		if (r)
			qnix_rt_give(q, r);
		if (buffer != QNIX_NO_BUFFER)
			nic_buffer_give(q->nic, buffer);
		refuse(q, req);
		return;
	}
	r->buffer = buffer;
	ctx->rx_bound++;
	ctx->rx_number++;
	nic_trace(q->nic, REQUEST_1, qnix_rt_index(q, r), r->packets);
	nic_trace(q->nic, REQUEST_2, qnix_rt_index(q, r), 0);
	associate(q, r, NULL);
	nic_trace(q->nic, REQUEST_3, qnix_rt_index(q, r), r->packets);
	reply(q, h, req, ctx->peer_gen, QNIX_GRANTED);
	nic_trace(q->nic, REQUEST_4, qnix_rt_index(q, r), r->number);
}

void qnix_request_in(struct qnix *q, struct nic_link *link, const struct qnix_system_head *head, const struct qnix_header *h,
                     const struct qnix_request *req)
{
	bool vi = req->tag & QNIX_VI_TAG;
	struct nic_vi_ctx *ctx = vi ? nic_rx_target(q->nic, link, req->tag & (NIC_VI_TABLE - 1), head->gen) : NULL;
	struct qnix_rt *r = NULL;

	if (!sensible(q, h, req)) {
		nic_count(q->nic, bad_packets, 1);
		return;
	}
	if (vi && !ctx) {
		nic_count(q->nic, stale_packets, 1);
		return;
	}
	while ((r = qnix_rt_find(q, r, h->source, req->source_pid, req->tag)))
		if (r->map != QNIX_NO_MAP && r->number == req->number) { /* it has been answered, and comes again */
			reply(q, h, req, vi ? ctx->peer_gen : 0, QNIX_GRANTED);
			return;
		}
	if (vi)
		request_vi(q, link, head, h, req, ctx);
	else
		request_context(q, h, req);
}

/* ---- the Receive command ------------------------------------------------------------------------------------------------------ */

/* Steps 4 to 7: an early message has found its receive.  What has arrived is delivered; the rest comes by the new map. */
static void adopt(struct qnix *q, struct qnix_rt *r, uint32_t context, uint32_t room, uint16_t doorbell)
{
	const uint8_t *from = q->local_early[r->buffer];
	uint32_t arrived = r->got, descriptors;

	nic_trace(q->nic, RECEIVE_4, qnix_rt_index(q, r), r->packets);
	r->context = context; /* the map's elements are as many as before: the new one takes the place of the old */
	r->doorbell = doorbell;
	r->room = room;
	associate(q, r, table_of(q, r, &descriptors));
	nic_trace(q->nic, RECEIVE_5, qnix_rt_index(q, r), r->packets);
	for (uint32_t k = 0; k < arrived; k++)
		store_pages(q, r, &q->map[r->map + k], from + stream_offset(r, k));
	nic_trace(q->nic, RECEIVE_6, qnix_rt_index(q, r), arrived);
	qnix_run_give(&q->early, r->buffer, pages_of(r));
	r->buffer = QNIX_NO_BUFFER;
	nic_trace(q->nic, RECEIVE_7, qnix_rt_index(q, r), r->len);
	if (r->got == r->packets)
		complete(q, r, QNIX_DONE);
}

/* An early message of that key; receives that wait are not one. */
static struct qnix_rt *find_early(struct qnix *q, uint16_t node, uint16_t pid, uint16_t tag)
{
	struct qnix_rt *r = NULL;

	while ((r = qnix_rt_find(q, r, node, pid, tag)))
		if (r->context == QNIX_NO_CONTEXT)
			return r;
	return NULL;
}

static void refuse_receive(struct qnix *q, uint32_t context, const struct qnix_context *c, uint32_t state, uint32_t why)
{
	bool told = state == QNIX_FAILED && (c->tag & QNIX_GROUP_TAG);

	qnix_doorbell(q, true, context, c->doorbell_flag, state, told ? why : 0);
}

void qnix_receive(struct qnix *q, uint32_t context, const struct qnix_context *c)
{
	uint32_t node;
	const struct qnix_peer *peer = qnix_name_find(q, &c->process, &node);
	uint16_t pid = peer && peer->named ? peer->pid : peer ? nic_qnix_pid(q->nic, node) : 0;
	struct qnix_rt *r;

	if (!peer || (c->tag & QNIX_VI_TAG)) {
		refuse_receive(q, context, c, QNIX_FAILED, NIC_WHY_NO_GROUP);
		return;
	}
	r = find_early(q, (uint16_t)node, pid, c->tag);
	nic_trace(q->nic, RECEIVE_1, context, r != NULL);
	if (r) {
		if (r->total <= c->len) {
			adopt(q, r, context, c->len, (uint16_t)c->doorbell_flag);
			return;
		}
		refuse_receive(q, context, c, c->tag & QNIX_GROUP_TAG ? QNIX_FAILED : QNIX_REFUSED, NIC_WHY_LENGTH);
		r->context = QNIX_DROP;
		if (r->got == r->packets)
			complete(q, r, QNIX_REFUSED);
		return;
	}
	r = peer->gone ? NULL : qnix_rt_take(q, false, (uint16_t)node, pid, c->tag);
	if (!r) {
		refuse_receive(q, context, c, peer->gone ? QNIX_FAILED : QNIX_REFUSED, NIC_WHY_DIED + node);
		return;
	}
	nic_trace(q->nic, RECEIVE_2, qnix_rt_index(q, r), c->tag);
	r->len = r->room = c->len;
	r->context = context;
	r->doorbell = (uint16_t)c->doorbell_flag;
	nic_trace(q->nic, RECEIVE_3, qnix_rt_index(q, r), 0);
}

/* ---- what has to go ------------------------------------------------------------------------------------------------------------ */

static void drop(struct qnix *q, struct qnix_rt *r)
{
	if (r->command != QNIX_CODE_VI_RECEIVE) {
		r->total = r->map == QNIX_NO_MAP ? 0 : r->total;
		complete(q, r, QNIX_FAILED);
		return;
	}
	if (r->buffer != QNIX_NO_BUFFER)
		nic_buffer_give(q->nic, r->buffer);
	qnix_rt_give(q, r);
}

/* The table is walked by its buckets: an entry that is free is in none. */
static void drop_where(struct qnix *q, bool (*which)(const struct qnix_rt *r, uint32_t value), uint32_t value)
{
	for (uint32_t b = 0; b < QNIX_RT_BUCKETS && q->rt_used; b++) {
		uint16_t i = q->bucket[b], next;

		for (; i != QNIX_NONE; i = next) {
			next = q->rt[i].next;
			if (which(&q->rt[i], value))
				drop(q, &q->rt[i]);
		}
	}
}

static bool of_vi(const struct qnix_rt *r, uint32_t vi)
{
	return r->command == QNIX_CODE_VI_RECEIVE && r->context == vi;
}

/* What has come early and is all there stays: it was sent. */
static bool from_node(const struct qnix_rt *r, uint32_t node)
{
	return r->command != QNIX_CODE_VI_RECEIVE && r->match.node == node && !(r->context == QNIX_NO_CONTEXT && r->got == r->packets);
}

static bool of_tag(const struct qnix_rt *r, uint32_t tag)
{
	return r->command != QNIX_CODE_VI_RECEIVE && r->match.tag == tag;
}

static bool any_from_node(const struct qnix_rt *r, uint32_t node)
{
	return r->command != QNIX_CODE_VI_RECEIVE && r->match.node == node;
}

void qnix_rx_cancel_vi(struct qnix *q, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(q->nic, vi);

	if (ctx->rx_bound)
		drop_where(q, of_vi, vi);
	ctx->rx_bound = 0;
}

void qnix_rx_cancel_tag(struct qnix *q, uint16_t tag)
{
	drop_where(q, of_tag, tag);
}

void qnix_rx_lost(struct qnix *q, uint32_t node)
{
	drop_where(q, from_node, node);
}

/* Another process has the slot now. */
void qnix_rx_forget(struct qnix *q, uint32_t node)
{
	drop_where(q, any_from_node, node);
	forget_told(q, node);
}
