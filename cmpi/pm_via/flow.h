/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of flow control that every packet passes, to be inlined where packets are sent (am.c) and received
 * (progress.c).  The rules, and everything that happens less often, are in flow.c.
 */
#ifndef VIA_FLOW_H
#define VIA_FLOW_H

#include <endian.h>

#include "cmpi/pm_via/via.h"

enum {
	VIA_CREDIT_BYTE = 255,
	VIA_CREDIT_LIMIT = 2048, /* more receives than a work queue has */
};

/* ---- sends -------------------------------------------------------------------------------------------------------- */

/* Posts a send descriptor that is ready; takes it back when it is complete already. */
static inline void via_send_post(struct cmpi_proc *proc, struct via_vbuf *v)
{
	VIP_DESCRIPTOR *done;
	uint32_t status;

	if (via_unlikely(VipPostSend(proc->vi, &v->desc, v->handle) != VIP_SUCCESS)) {
		via_send_refused(proc, v);
		return;
	}
	/*
	 * The usual end: the message has left already, and nothing was before it.  A2: the status is read before anything
	 * else of the descriptor; pairs with the NIC's release.
	 */
	status = __atomic_load_n(&v->desc.CS.Status, __ATOMIC_ACQUIRE) & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK);
	if (via_likely(!proc->sends_posted && status == VIP_STATUS_DONE && v->kind == VIA_VBUF_SEND &&
	               VipSendDone(proc->vi, &done) != VIP_NOT_DONE))
		via_vbuf_give(proc->cmpi, v);
	else
		via_send_pending(proc, status != 0);
}

/* The 8 bytes of a header; what it says is not yet said. */
static inline uint64_t via_header_word(const struct cmpi_proc *proc, uint32_t type_tag, uint32_t id)
{
	uint32_t credit = proc->local_credit, mine = proc->remote_credit;

	if (via_unlikely((credit | mine) > VIA_CREDIT_BYTE)) { /* a header says no more than fits it; the next one the rest */
		credit = credit < VIA_CREDIT_BYTE ? credit : VIA_CREDIT_BYTE;
		mine = mine < VIA_CREDIT_BYTE ? mine : VIA_CREDIT_BYTE;
	}
	return htole64(type_tag | (uint64_t)id << VIA_AT_ID | (uint64_t)credit << VIA_AT_VBUF_CREDIT | (uint64_t)mine << VIA_AT_REMOTE_CREDIT |
	               (uint64_t)(proc->noops_in | proc->consumed_units << (VIA_AT_CONSUMED - VIA_AT_NOOP_ACK)) << VIA_AT_NOOP_ACK);
}

/* So many of the peer's eager bytes have been delivered. */
static inline void via_flow_consumed(struct cmpi_proc *proc, uint32_t bytes)
{
	proc->consumed += bytes;
	proc->consumed_units = (uint8_t)(proc->consumed / VIA_CONSUMED_UNIT);
}

/* The header leaves: the peer is told of the credit in it. */
static inline void via_header_told(struct cmpi_proc *proc, uint64_t word)
{
	uint32_t credit = (uint8_t)(le64toh(word) >> VIA_AT_VBUF_CREDIT);

	proc->local_credit = (uint16_t)(proc->local_credit - credit);
	proc->granted += credit;
}

/* In one store: the NIC reads it back right away. */
static inline void via_header_fill(struct cmpi_proc *proc, struct via_header *header, uint32_t type_tag, uint32_t id)
{
	uint64_t word = via_header_word(proc, type_tag, id);

	via_header_told(proc, word);
	memcpy(header, &word, sizeof(word));
}

/* Credit there is: fills in the header now, not when the packet was queued, and posts. */
static inline void via_flow_post(struct cmpi_proc *proc, struct via_vbuf *v, uint32_t type_tag)
{
	VIA_ASSERT(proc->remote_credit);
	via_header_fill(proc, via_vbuf_packet(v), type_tag, proc->next_out++);
	proc->remote_credit--;
	v->kind = VIA_VBUF_SEND;
	via_send_post(proc, v);
}

/* Sends a packet of that type (and tag << 8): at once when there is credit, else it waits its turn. */
static inline void via_flow_send(struct cmpi_proc *proc, struct via_vbuf *v, uint32_t type_tag)
{
	if (via_likely(proc->remote_credit != 0))
		via_flow_post(proc, v, type_tag);
	else
		via_flow_backlog(proc, v, type_tag);
}

/*
 * The shortest way: the whole packet goes with the NIC's command, which copies it, 8 bytes of header, filled in here, then the two pieces of the
 * message.  False when it is not open (something is queued, no room); then nothing has happened but that the head may be filled in.
 */
static inline bool via_send_short(struct cmpi_proc *proc, uint32_t type_tag, uint32_t id, VIPX_SHORT *message)
{
	if (via_unlikely(proc->sends_posted))
		return false;
	message->Head = via_header_word(proc, type_tag, id);
	if (via_unlikely(VipxSendShort(proc->vi, message) != VIP_SUCCESS))
		return false;
	via_header_told(proc, message->Head);
	return true;
}

/* The same for a packet that takes a credit; false also when there is none. */
static inline bool via_flow_short(struct cmpi_proc *proc, uint32_t type_tag, VIPX_SHORT *message)
{
	if (via_unlikely(!proc->remote_credit || !via_send_short(proc, type_tag, proc->next_out, message)))
		return false;
	proc->next_out++;
	proc->remote_credit--;
	return true;
}

/* The same for a packet in a pool buffer, room for its header at the front; true: the buffer is gone. */
static inline bool via_flow_given(struct cmpi_proc *proc, uint32_t type_tag, void *buffer, size_t len)
{
	uint64_t word = via_header_word(proc, type_tag, proc->next_out);

	if (via_unlikely(!proc->remote_credit || proc->sends_posted))
		return false;
	memcpy(buffer, &word, sizeof(word));
	if (via_unlikely(VipxSendBuffer(proc->vi, buffer, len) != VIP_SUCCESS))
		return false;
	via_header_told(proc, word);
	proc->next_out++;
	proc->remote_credit--;
	return true;
}

/* ---- arrivals ------------------------------------------------------------------------------------------------------ */

/* A receive has completed, well or not: it is off the accounts, and the connection is owed one unless it has more than its own. */
static inline void via_flow_taken(struct cmpi_proc *proc)
{
	proc->preposts--;
	proc->cmpi->recv_due += proc->preposts < proc->base;
}

/* Posts new receives when more than `threshold` were used up. */
static inline void via_flow_replace(struct cmpi_proc *proc)
{
	if (via_unlikely(proc->preposts < proc->replace_below))
		via_flow_refill(proc);
}

/* What a header says about credit; false when that cannot be. */
static inline bool via_flow_credit(struct cmpi_proc *proc, const struct via_header *header)
{
	proc->remote_cc = header->remote_credit;
	proc->consumed_cc = header->consumed;
	if (via_likely(header->noop_ack == proc->noops_acked && proc->remote_credit && proc->state == VIA_CONN_CONNECTED && !proc->send_head &&
	               proc->remote_credit < VIA_CREDIT_LIMIT - VIA_CREDIT_BYTE)) {
		proc->remote_credit = (uint16_t)(proc->remote_credit + header->vbuf_credit); /* there was credit, so nothing waits for it */
		return true;
	}
	return via_flow_credit_news(proc, header);
}

/*
 * A credited packet has arrived: posts new receives when enough were used up, takes the credit it carries.  One that came by
 * value has left its receive posted, which is owed to the peer again.  False: the peer broke the protocol.
 */
static inline bool via_flow_credited(struct cmpi_proc *proc, const struct via_header *header, bool by_value)
{
	if (!by_value)
		via_flow_taken(proc);
	if (via_unlikely(header->id != proc->next_in || !proc->granted))
		return false;
	proc->next_in++;
	proc->granted--;
	proc->local_credit = (uint16_t)(proc->local_credit + by_value);
	if (via_unlikely(proc->special))
		via_flow_special(proc, header);
	via_flow_replace(proc); /* also after one by value: the first packet of a peer asks for more receives */
	return via_flow_credit(proc, header);
}

/* Does a good header change nothing but what via_flow_booked counts? */
static inline bool via_flow_is_plain(const struct cmpi_proc *proc)
{
	return proc->state == VIA_CONN_CONNECTED && !proc->special && proc->preposts >= proc->replace_below && proc->remote_credit && !proc->send_head;
}

/* What is known beforehand of the header of a peer's next packet, if there is nothing unusual in it: type, id and noop_ack. */
#define VIA_HEADER_KNOWN (0xFFu | (uint64_t)0xFFFF << VIA_AT_ID | (uint64_t)0xFF << VIA_AT_NOOP_ACK)
static inline uint64_t via_header_expected(const struct cmpi_proc *proc, uint8_t type)
{
	return type | (uint64_t)proc->next_in << VIA_AT_ID | (uint64_t)proc->noops_acked << VIA_AT_NOOP_ACK;
}

/* n packets with such headers have come by value; `credit` is what this side has now, `last` the header of the last one. */
static inline void via_flow_booked(struct cmpi_proc *proc, uint32_t n, uint32_t credit, uint64_t last)
{
	proc->next_in = (uint16_t)(proc->next_in + n);
	proc->granted -= n;
	proc->local_credit = (uint16_t)(proc->local_credit + n);
	proc->remote_credit = (uint16_t)credit;
	proc->remote_cc = (uint8_t)(last >> VIA_AT_REMOTE_CREDIT);
	proc->consumed_cc = (uint8_t)(last >> VIA_AT_CONSUMED);
}

/* A packet of a row, an array of VIPX_BRIEF or, in buffers, of VIPX_MESSAGE. */
static inline size_t via_row_stride(bool buffers)
{
	return buffers ? sizeof(VIPX_MESSAGE) : sizeof(VIPX_BRIEF);
}

static inline uint8_t *via_row_data(void *packet, bool buffers)
{
	return buffers ? ((VIPX_MESSAGE *)packet)->Data : (uint8_t *)((VIPX_BRIEF *)packet)->Data;
}

static inline uint32_t via_row_length(void *packet, bool buffers)
{
	return buffers ? ((VIPX_MESSAGE *)packet)->Length : ((VIPX_BRIEF *)packet)->Length;
}

/*
 * The same for packets by value that came in a row, as many as are of that type and have nothing unusual in their headers, before any
 * of them is handled.  How many; the one behind is for via_flow_credited.  buffers: known when this is compiled.
 */
static inline uint32_t via_flow_credited_row(struct cmpi_proc *proc, uint8_t type, uint8_t *packet, uint32_t n, bool buffers)
{
	uint64_t expected = via_header_expected(proc, type);
	uint64_t word, last = 0;
	uint32_t credit = proc->remote_credit, i;

	if (via_unlikely(!via_flow_is_plain(proc)))
		return 0;
	n = n < proc->granted ? n : proc->granted;
	for (i = 0; i < n; i++, expected += 1u << VIA_AT_ID, packet += via_row_stride(buffers)) {
		if (via_unlikely(via_row_length(packet, buffers) < sizeof(word)))
			break;
		memcpy(&word, via_row_data(packet, buffers), sizeof(word));
		word = le64toh(word);
		if (via_unlikely(((word ^ expected) & VIA_HEADER_KNOWN) != 0))
			break;
		credit += (uint8_t)(word >> VIA_AT_VBUF_CREDIT);
		last = word;
	}
	if (via_unlikely(!i || credit > VIA_CREDIT_LIMIT))
		return 0;
	via_flow_booked(proc, i, credit, last);
	return i;
}

/* Sends credit that has nothing to ride on, when enough is owed to a starved peer, or to any.  Ahead of the backlog. */
static inline void via_flow_noop(struct cmpi_proc *proc)
{
	const struct via_params *p = &proc->cmpi->params;

	if (via_unlikely(proc->local_credit >= p->notify) && (proc->local_credit >= p->dynamic || proc->remote_cc <= p->preserve))
		via_flow_noop_due(proc);
}

#endif
