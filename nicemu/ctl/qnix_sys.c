/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets with a QNIX header: system messages between NICs, each a row of `messages`, and the way of data packets to RX.
 * Groups use system messages on every architecture; the others need a QNIX at both ends.
 */
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/qnix.h"
#include "nicemu/util/copy.h"

/* Short process id: what fits the header, and is never 0. */
uint16_t nic_qnix_pid(const struct nic *nic, uint32_t slot)
{
	int32_t pid = nic_load_relaxed(&nic->map->slot[slot % NIC_MAX_SLOTS].pid); /* constant during an epoch */

	return (uint16_t)(1 + (uint32_t)(pid - 1) % 32767);
}

/* ---- sending -------------------------------------------------------------------------------------------------------------- */

struct nic_link *qnix_link(struct nic *nic, uint32_t node)
{
	struct nic_link *link;
	struct nic_slot *slot;

	if (nic_unlikely(node >= NIC_MAX_SLOTS))
		return NULL;
	link = nic->link[node];
	if (nic_likely(link && !link->lost))
		return link;
	slot = &nic->map->slot[node];
	/* Acquire: pairs with registration, and whoever raised `used` before. */
	if (link || node >= nic_load_acquire(&nic->map->hdr.used) || nic_load_acquire(&slot->state) != NIC_SLOT_LIVE)
		return NULL;
	link = nic_driver_link(nic, node, nic_load_relaxed(&slot->epoch)); /* looked at again there */
	if (link) {
		atomic_fetch_add_explicit(&nic->map->hdr.nic_epoch, 1, memory_order_acq_rel); /* pairs with qnix_look_around */
		nic_bell_tell(nic, node); /* it does not look at this link before it sees that */
	}
	return link;
}

bool qnix_system_with(struct nic *nic, uint32_t node, enum qnix_system code, const struct qnix_system_head *head, const void *payload,
                      uint32_t len)
{
	struct nic_link *link = qnix_link(nic, node);
	struct nic_packet *p = link ? nic_link_reserve(link, 1) : NULL; /* the last place is for disconnects */
	struct qnix_header h = { .node = (uint16_t)node, .source = (uint16_t)nic->me, .tag = code, .len_low = (uint16_t)len };

	if (!p)
		return false;
	p->op = NIC_OP_QNIX;
	p->gen = head->gen;
	p->vi = 0;
	p->len_flags = head->len_flags;
	p->imm = head->imm;
	memcpy(p->qnix.header, &h, sizeof(h));
	nic_copy_short(p->qnix.data, payload, len);
	nic_link_publish(link, p, 1);
	nic_count(nic, packets_sent, 1);
	return true;
}

bool qnix_system(struct nic *nic, uint32_t node, enum qnix_system code, uint8_t gen, const void *payload, uint32_t len)
{
	struct qnix_system_head head = { .gen = gen };

	return qnix_system_with(nic, node, code, &head, payload, len);
}

bool qnix_called(const struct qnix *q)
{
	return nic_load_acquire(&q->nic->map->hdr.nic_epoch) != q->epoch_seen; /* pairs with qnix_link */
}

/* Others may have opened a link to this NIC to tell it something: its end is opened when the card's count has changed. */
void qnix_look_around(struct qnix *q)
{
	struct nic *nic = q->nic;
	uint32_t epoch = nic_load_acquire(&nic->map->hdr.nic_epoch), used; /* pairs with qnix_link */

	if (nic_likely(epoch == q->epoch_seen))
		return;
	q->epoch_seen = epoch;
	used = nic_load_acquire(&nic->map->hdr.used); /* pairs with registration */
	for (uint32_t i = 0; i < used && i < NIC_MAX_SLOTS; i++) {
		struct nic_slot *s = &nic->map->slot[i];

		/* Acquire: pairs with set_bit of the other's driver. */
		if (!nic->link[i] && (nic_load_acquire(&s->linked[nic->me / 64]) >> (nic->me % 64) & 1) &&
		    nic_load_acquire(&s->state) == NIC_SLOT_LIVE)
			nic_driver_link(nic, i, nic_load_relaxed(&s->epoch)); /* looked at again there */
	}
}

/* ---- receiving -------------------------------------------------------------------------------------------------------------- */

/* What an arriving system message is handled with. */
struct message {
	struct nic *nic;
	struct nic_link *link;
	struct qnix_header h;
	struct qnix_system_head head;
	uint8_t payload[QNIX_SYSTEM_MAX];
};

static void permission_request(const struct message *m)
{
	struct qnix_request req;

	memcpy(&req, m->payload, sizeof(req));
	qnix_request_in(m->nic->qnix, m->link, &m->head, &m->h, &req);
}

static void permission_reply(const struct message *m)
{
	struct qnix_reply reply;

	memcpy(&reply, m->payload, sizeof(reply));
	qnix_reply_in(m->nic->qnix, &m->h, m->head.gen, &reply);
}

static void process(const struct message *m)
{
	struct qnix_process_msg msg;

	memcpy(&msg, m->payload, sizeof(msg));
	if (m->h.tag == QNIX_SYS_NEW_PROCESS)
		qnix_new_process_in(m->nic->qnix, m->h.source, &msg);
	else if (m->h.tag == QNIX_SYS_NEW_PROCESS_ACK)
		qnix_new_process_ack_in(m->nic->qnix, m->h.source, &msg);
	else
		qnix_delete_process_in(m->nic->qnix, m->h.source, &msg);
}

static void group(const struct message *m)
{
	struct qnix_group_msg msg;

	memcpy(&msg, m->payload, sizeof(msg));
	nic_group_in(m->nic, m->h.source, m->h.tag, &msg);
}

static const struct {
	bool scheduler; /* needs a QNIX's own memory */
	uint16_t len;   /* at least */
	void (*take)(const struct message *m);
} messages[QNIX_SYS_COUNT] = {
	[QNIX_SYS_PERMISSION_REQUEST] = { true, sizeof(struct qnix_request), permission_request },
	[QNIX_SYS_PERMISSION_REPLY] = { true, sizeof(struct qnix_reply), permission_reply },
	[QNIX_SYS_NEW_PROCESS] = { true, sizeof(struct qnix_process_msg), process },
	[QNIX_SYS_NEW_PROCESS_ACK] = { true, sizeof(struct qnix_process_msg), process },
	[QNIX_SYS_NEW_GROUP] = { false, sizeof(struct qnix_group_msg), group },
	[QNIX_SYS_NEW_GROUP_ACK] = { false, sizeof(struct qnix_group_msg), group },
	[QNIX_SYS_BARRIER] = { false, sizeof(struct qnix_group_msg), group },
	[QNIX_SYS_DELETE_PROCESS] = { true, sizeof(struct qnix_process_msg), process },
	[QNIX_SYS_LEAVE_GROUP] = { false, sizeof(struct qnix_group_msg), group },
};

/* Step 3 of RX. */
static void system_in(struct nic *nic, struct nic_link *link, const struct qnix_header *h, const struct nic_packet *p)
{
	struct message m = { .nic = nic, .link = link, .h = *h, .head = { p->gen, p->len_flags & ~NIC_PF_BUF, p->imm } };

	if (h->tag >= QNIX_SYS_COUNT || !messages[h->tag].take || h->len_low < messages[h->tag].len || h->len_low > QNIX_SYSTEM_MAX ||
	    (messages[h->tag].scheduler && !nic->qnix)) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	memcpy(m.payload, p->qnix.data, sizeof(m.payload)); /* copied once; checked by whoever takes it */
	nic_trace(nic, RX_3, h->tag, h->source);
	messages[h->tag].take(&m);
}

/* A data packet: what it has of payload lies in the packet or in a buffer, which is this slot's now. */
static void data_in(struct nic *nic, struct nic_link *link, const struct qnix_header *h, const struct nic_packet *p)
{
	uint32_t len = h->len_low | (uint32_t)h->len_high << 16, flags = p->len_flags, imm = p->imm, index = p->qnix.buffer;
	uint8_t small[QNIX_SYSTEM_MAX];

	if (flags & NIC_PF_BUF) {
		if (index >= NIC_POOL_BUFFERS) {
			nic_count(nic, bad_packets, 1);
			return;
		}
		link->balance++;
		if (nic->qnix && len <= QNIX_PAGE)
			qnix_data_in(nic->qnix, h, nic_buffer(nic, index), flags, imm);
		else
			nic_count(nic, bad_packets, 1);
		nic_buffer_give(nic, index);
		return;
	}
	if (!nic->qnix || len > QNIX_SYSTEM_MAX) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	memcpy(small, p->qnix.data, sizeof(small));
	qnix_data_in(nic->qnix, h, small, flags, imm);
}

/* Step 1 of RX: the header. */
void nic_qnix_packet(struct nic *nic, struct nic_link *link, const struct nic_packet *p)
{
	struct qnix_header h;

	memcpy(&h, p->qnix.header, sizeof(h));
	h.source = (uint16_t)link->peer; /* whoever wrote it: this is where it came from */
	if (h.node != nic->me)
		nic_count(nic, bad_packets, 1);
	else if (h.pid == 0 && h.source_pid == 0)
		system_in(nic, link, &h, p);
	else
		data_in(nic, link, &h, p);
}
