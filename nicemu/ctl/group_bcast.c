/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast on the short way: the sender's NIC copies a part of the data once into a buffer with a counter, tells every member
 * where it is, and uses the buffer again when all have acknowledged it.  Up to 16 bytes travel in the message itself.
 * (The QNIX sends each member a message of its own, through its scheduler: qnix_cmd.c.)
 *
 * A buffer that is told of stays its sender's: receivers read it and never give it back.  Parts that come before their receive
 * wait in a list that the senders' windows bound.
 */
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "nicemu/engine/host.h"

static struct nic_group *group_at(const struct nic *nic, uint16_t i)
{
	return &nic->groups->group[i % NIC_GROUPS];
}

/* Bytes [from, from + len) of the buffer that a region's table describes; runs are whole buffers or pages. */
static void copy_table(struct nic *nic, const union qnix_region *region, uint32_t from, uint32_t len, uint8_t *host, bool out)
{
	uint64_t start = region->descriptor[0];

	/* Virtual addresses are bus addresses, so the pages of one buffer follow each other. */
	if (out)
		nic_host_read(nic, host, start + from, len);
	else
		nic_host_write(nic, start + from, host, len);
}

/* A broadcast under way, and a late acknowledgement, are work for later passes. */
static void work(struct nic *nic, uint32_t *count, int change)
{
	*count += change;
	nic_group_work(nic, change);
}

/* ---- sending -------------------------------------------------------------------------------------------------------------- */

int nic_bcast_start(struct nic *nic, struct nic_group *g, uint32_t context)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.send[context % QNIX_CONTEXTS];
	struct nic_bcast_out *out = NULL;
	uint32_t total = c->len;

	for (uint32_t i = 0; i < NIC_BCAST_OUT && !out; i++)
		if (!nic->groups->out[i].used)
			out = &nic->groups->out[i];
	if (!out)
		return NIC_NOT_DONE;
	*out = (struct nic_bcast_out){ .used = true, .group = (uint16_t)nic_group_index(nic, g), .life = g->life,
		.context = (uint16_t)(context % QNIX_CONTEXTS), .doorbell = (uint16_t)c->doorbell_flag, .seq = ++g->bcasts, .total = total,
		.parts = nic_bcast_parts(total) };
	work(nic, &nic->groups->outs, 1);
	nic_bcast_run(nic);
	return NIC_OK;
}

/* The next part into a buffer.  False: none is free. */
static bool fill(struct nic *nic, struct nic_bcast_out *out)
{
	uint32_t part = nic_bcast_part(out->total), from = out->filled * part, len = out->total - from < part ? out->total - from : part;
	uint32_t *buffer = &out->buffer[out->filled % NIC_BCAST_WINDOW];

	if (out->total > QNIX_BCAST_INLINE) {
		if (!nic_buffer_take(nic, buffer))
			return false;
		copy_table(nic, &nic->slot->qnix.vni.send_region[out->context], from, len, nic_buffer(nic, *buffer), true);
	}
	out->filled++;
	return true;
}

static bool send_part(struct nic *nic, struct nic_bcast_out *out, const struct nic_group *g, uint32_t place)
{
	struct {
		struct qnix_bcast_msg msg;
		union {
			uint8_t data[QNIX_BCAST_INLINE];
			uint32_t buffer;
		};
	} m = { .msg = { .seq = out->seq, .offset = out->sent[place] * nic_bcast_part(out->total), .total = out->total,
		.table = g->member[place].table, .life = g->member[place].life } };

	if (out->total > QNIX_BCAST_INLINE)
		m.buffer = out->buffer[out->sent[place] % NIC_BCAST_WINDOW];
	else
		copy_table(nic, &nic->slot->qnix.vni.send_region[out->context], 0, out->total, m.data, true);
	if (!qnix_system(nic, g->member[place].slot, QNIX_SYS_BROADCAST, 0, &m, sizeof(m)))
		return false;
	nic_count(nic, group_messages, 1);
	out->sent[place]++;
	return true;
}

static uint32_t least(const struct nic_bcast_out *out, const struct nic_group *g, const uint32_t *of)
{
	uint32_t least = out->parts;

	for (uint32_t i = 0; i < g->size; i++)
		if (i != g->place && g->member[i].known && of[i] < least)
			least = of[i];
	return least;
}

/* Parts up to that one have been taken by all who were told of them. */
static void free_parts(struct nic *nic, struct nic_bcast_out *out, uint32_t end)
{
	for (; out->freed < end && out->freed < out->filled; out->freed++)
		if (out->total > QNIX_BCAST_INLINE)
			nic_buffer_give(nic, out->buffer[out->freed % NIC_BCAST_WINDOW]);
}

static int advance(struct nic *nic, struct nic_bcast_out *out, const struct nic_group *g)
{
	int n = 0;

	free_parts(nic, out, least(out, g, out->acked));
	while (out->filled < out->parts && out->filled - out->freed < NIC_BCAST_WINDOW && fill(nic, out))
		n++;
	for (uint32_t i = 0; i < g->size; i++)
		if (i != g->place && g->member[i].known)
			while (out->sent[i] < out->filled && send_part(nic, out, g, i))
				n++;
	return n;
}

/* The data is on its way to all: the process may have its buffer back. */
static void tell(struct nic *nic, struct nic_bcast_out *out, uint32_t state)
{
	if (out->told)
		return;
	out->told = true;
	nic_count(nic, broadcasts, state == QNIX_DONE);
	nic_doorbell(nic, false, out->context, out->doorbell, state, state == QNIX_DONE ? out->total : 0);
}

/* Whoever was told of a part may be reading it, until it says that it has taken it, leaves, or is gone. */
static bool read_by_nobody(const struct nic_bcast_out *out, const struct nic_group *g)
{
	for (uint32_t i = 0; i < g->size; i++)
		if (out->acked[i] < out->sent[i])
			return false;
	return true;
}

static void out_over(struct nic *nic, struct nic_bcast_out *out, struct nic_group *g)
{
	out->used = false;
	work(nic, &nic->groups->outs, -1);
	if (g->leaving)
		nic_group_leave_entry(nic, g);
}

static int run_out(struct nic *nic, struct nic_bcast_out *out)
{
	struct nic_group *g = group_at(nic, out->group);
	int n = 0;

	if (out->failed) {
		if (!read_by_nobody(out, g))
			return 0;
		free_parts(nic, out, out->filled);
		out_over(nic, out, g);
		return 1;
	}
	n = advance(nic, out, g);
	if (out->filled == out->parts && least(out, g, out->sent) == out->parts)
		tell(nic, out, QNIX_DONE);
	if (out->freed == out->parts && out->told)
		out_over(nic, out, g);
	return n;
}

/* ---- receiving -------------------------------------------------------------------------------------------------------------- */

static bool send_ack(struct nic *nic, struct nic_bcast_in *in)
{
	const struct nic_member *m = &group_at(nic, in->group)->member[in->place];
	struct qnix_bcast_msg msg = { .seq = in->seq, .offset = in->parts, .table = m->table, .life = m->life };

	if (!qnix_system(nic, m->slot, QNIX_SYS_BROADCAST_ACK, 0, &msg, sizeof(msg)))
		return false;
	in->acked = in->parts;
	return true;
}

/* What has been taken is acknowledged, now or by a later pass; with the last acknowledgement it is over. */
static void say(struct nic *nic, struct nic_bcast_in *in)
{
	bool said = send_ack(nic, in);

	if (said == in->late) {
		in->late = !said;
		work(nic, &nic->groups->lates, said ? -1 : 1);
	}
	if (said && in->told)
		in->used = false;
}

static void take(struct nic *nic, struct nic_bcast_in *in, const struct qnix_bcast_msg *msg, const uint8_t *data)
{
	uint32_t part = nic_bcast_part(msg->total), buffer;
	uint32_t len = msg->offset < msg->total ? (msg->total - msg->offset < part ? msg->total - msg->offset : part) : 0;

	if (msg->total > in->room || msg->offset != in->parts * part) {
		nic_count(nic, bad_packets, 1);
		len = 0;
	}
	memcpy(&buffer, data, sizeof(buffer));
	if (len)
		copy_table(nic, &nic->slot->qnix.vni.recv_region[in->context], msg->offset, len,
		           msg->total <= QNIX_BCAST_INLINE ? (uint8_t *)(uintptr_t)data : nic_buffer(nic, buffer), false);
	in->parts++;
	if (in->parts == nic_bcast_parts(msg->total)) {
		in->told = true;
		nic_count(nic, broadcasts, 1);
		nic_doorbell(nic, true, in->context, in->doorbell, msg->total > in->room ? QNIX_REFUSED : QNIX_DONE, msg->total);
	}
	if (in->told || in->parts - in->acked >= NIC_BCAST_WINDOW / 2)
		say(nic, in);
}

static struct nic_bcast_in *expected(struct nic *nic, uint16_t group, uint32_t place, uint32_t seq)
{
	for (uint32_t i = 0; i < NIC_BCAST_IN; i++) {
		struct nic_bcast_in *in = &nic->groups->in[i];

		if (in->used && !in->told && in->group == group && in->place == place && in->seq == seq)
			return in;
	}
	return NULL;
}

static void keep(struct nic *nic, const struct nic_group *g, uint32_t place, const struct qnix_bcast_msg *msg, const uint8_t *data)
{
	struct nic_groups *all = nic->groups;
	uint32_t i = all->early_free ? all->early_free - 1 : all->early_used;
	struct nic_bcast_early *e;

	if (i >= NIC_BCAST_EARLY) {
		nic_count(nic, bad_packets, 1); /* more than the windows of all allow */
		return;
	}
	e = &all->early[i];
	if (all->early_free)
		all->early_free = e->next;
	else
		all->early_used++;
	e->group = (uint16_t)nic_group_index(nic, g);
	e->life = g->life;
	e->place = (uint16_t)place;
	e->msg = *msg;
	memcpy(e->data, data, sizeof(e->data));
	e->next = QNIX_NONE;
	all->nearly++;
}

void nic_bcast_in(struct nic *nic, struct nic_group *g, uint32_t place, const struct qnix_bcast_msg *msg, const uint8_t *data)
{
	struct nic_bcast_in *in = expected(nic, (uint16_t)nic_group_index(nic, g), place, msg->seq);

	if (in)
		take(nic, in, msg, data);
	else
		keep(nic, g, place, msg, data);
}

void nic_bcast_ack_in(struct nic *nic, struct nic_group *g, uint32_t place, const struct qnix_bcast_msg *msg)
{
	uint16_t group = (uint16_t)nic_group_index(nic, g);

	for (uint32_t i = 0; i < NIC_BCAST_OUT; i++) {
		struct nic_bcast_out *out = &nic->groups->out[i];

		if (out->used && out->group == group && out->seq == msg->seq && msg->offset <= out->sent[place] &&
		    msg->offset > out->acked[place]) {
			out->acked[place] = msg->offset;
			run_out(nic, out);
			return;
		}
	}
}

static void drop_early(struct nic *nic, uint32_t i)
{
	struct nic_groups *all = nic->groups;

	all->early[i].life = 0; /* even: not held */
	all->early[i].next = (uint16_t)all->early_free;
	all->early_free = i + 1;
	all->nearly--;
}

/* What has come before: in the order of its parts, which is the order of the list's free places only by chance. */
static void catch_up(struct nic *nic, const struct nic_group *g, struct nic_bcast_in *in)
{
	struct nic_groups *all = nic->groups;
	bool found = all->nearly != 0;

	while (found && in->used && !in->told) {
		found = false;
		for (uint32_t i = 0; i < all->early_used && !found; i++) {
			struct nic_bcast_early *e = &all->early[i];

			if (e->life != g->life || e->group != in->group || e->place != in->place || e->msg.seq != in->seq ||
			    e->msg.offset != in->parts * nic_bcast_part(e->msg.total))
				continue;
			take(nic, in, &e->msg, e->data);
			drop_early(nic, i);
			found = true;
		}
	}
}

int nic_bcast_expect(struct nic *nic, struct nic_group *g, uint32_t context)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.recv[context % QNIX_CONTEXTS];
	uint32_t place = nic_group_place(g, (uint32_t)c->process.pi);
	struct nic_bcast_in *in = NULL;

	for (uint32_t i = 0; i < NIC_BCAST_IN && !in; i++)
		if (!nic->groups->in[i].used)
			in = &nic->groups->in[i];
	if (!in)
		return NIC_NOT_DONE;
	if (place >= g->size || place == g->place || !g->member[place].known) {
		nic_doorbell(nic, true, context, 1, QNIX_FAILED, 0);
		return NIC_OK;
	}
	*in = (struct nic_bcast_in){ .used = true, .group = (uint16_t)nic_group_index(nic, g), .place = (uint16_t)place,
		.context = (uint16_t)(context % QNIX_CONTEXTS), .doorbell = (uint16_t)c->doorbell_flag, .room = c->len,
		.seq = ++g->member[place].bcasts };
	catch_up(nic, g, in);
	return NIC_OK;
}

bool nic_bcast_pending(const struct nic *nic, const struct nic_group *g)
{
	uint16_t group = (uint16_t)nic_group_index(nic, g);

	for (uint32_t i = 0; i < NIC_BCAST_OUT; i++)
		if (nic->groups->out[i].used && nic->groups->out[i].group == group)
			return true;
	return false;
}

/* ---- passes, and ends ---------------------------------------------------------------------------------------------------------- */

int nic_bcast_run(struct nic *nic)
{
	uint32_t left = nic->groups->outs;
	int n = 0;

	for (uint32_t i = 0; left && i < NIC_BCAST_OUT; i++)
		if (nic->groups->out[i].used) {
			n += run_out(nic, &nic->groups->out[i]);
			left--;
		}
	for (uint32_t i = 0; nic->groups->lates && i < NIC_BCAST_IN; i++)
		if (nic->groups->in[i].late)
			say(nic, &nic->groups->in[i]);
	return n;
}

/* Parts to fill, to send or to free; one that waits for acknowledgements only does not move. */
static bool moves(const struct nic_bcast_out *out, const struct nic_group *g)
{
	if (out->failed)
		return read_by_nobody(out, g);
	if (out->filled < out->parts && out->filled - out->freed < NIC_BCAST_WINDOW)
		return true;
	return least(out, g, out->sent) < out->filled || least(out, g, out->acked) > out->freed;
}

bool nic_bcast_moves(const struct nic *nic)
{
	for (uint32_t i = 0; i < NIC_BCAST_OUT; i++)
		if (nic->groups->out[i].used && moves(&nic->groups->out[i], group_at(nic, nic->groups->out[i].group)))
			return true;
	return false;
}

static void end_in(struct nic *nic, struct nic_bcast_in *in)
{
	if (!in->told)
		nic_doorbell(nic, true, in->context, in->doorbell, QNIX_FAILED, 0);
	if (in->late)
		work(nic, &nic->groups->lates, -1);
	in->used = in->late = false;
}

/*
 * That member takes nothing any more; the process learns that not all have it, if it does not know otherwise yet.  It has its
 * memory back with that, so nothing more is read from there, and sent.
 */
void nic_bcast_lost(struct nic *nic, struct nic_group *g, uint32_t place)
{
	uint16_t group = (uint16_t)nic_group_index(nic, g);

	for (uint32_t i = 0; i < NIC_BCAST_OUT; i++) {
		struct nic_bcast_out *out = &nic->groups->out[i];

		if (!out->used || out->group != group)
			continue;
		out->failed = true;
		tell(nic, out, QNIX_FAILED);
		out->acked[place] = out->sent[place];
	}
	for (uint32_t i = 0; i < NIC_BCAST_IN; i++) {
		struct nic_bcast_in *in = &nic->groups->in[i];

		if (in->used && in->group == group)
			end_in(nic, in);
	}
}

void nic_bcast_left(struct nic *nic, const struct nic_group *g, uint32_t place)
{
	uint16_t group = (uint16_t)nic_group_index(nic, g);

	for (uint32_t i = 0; i < NIC_BCAST_OUT; i++) {
		struct nic_bcast_out *out = &nic->groups->out[i];

		if (out->used && out->group == group)
			out->acked[place] = out->sent[place] = out->failed ? out->sent[place] : out->parts;
	}
}

void nic_bcast_forget(struct nic *nic, struct nic_group *g)
{
	struct nic_groups *all = nic->groups;
	uint16_t group = (uint16_t)nic_group_index(nic, g);

	for (uint32_t i = 0; i < NIC_BCAST_IN; i++)
		if (all->in[i].used && all->in[i].group == group)
			end_in(nic, &all->in[i]);
	for (uint32_t i = 0; i < all->early_used && all->nearly; i++)
		if (all->early[i].life == g->life && all->early[i].group == group)
			drop_early(nic, i);
}
