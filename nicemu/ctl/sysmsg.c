/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System messages: acknowledgements, disconnects, resynchronisation.  They may use a part of the link that data leaves free.
 *
 * When even that is full, nothing is lost and nothing grows: acknowledgements are counted in the VI and sent by the
 * scheduler; disconnects wait in a short queue, and when that is full the peer is told to look at all VIs it has with this
 * slot, which it can read for itself.
 */
#include "nicemu/ctl/ctl.h"

static bool put(struct nic *nic, struct nic_link *link, enum nic_op op, uint8_t gen, uint16_t vi, uint32_t len_flags, uint32_t imm)
{
	struct nic_packet *p = nic_link_reserve(link, 0);

	if (!p)
		return false;
	p->op = op;
	p->gen = gen;
	p->vi = vi;
	p->len_flags = len_flags;
	p->imm = imm;
	nic_link_publish(link, p, 1);
	nic_count(nic, packets_sent, 1);
	return true;
}

static struct nic_link *link_of(const struct nic *nic, const struct nic_vi_ctx *ctx)
{
	return nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
}

void nic_sys_ack(struct nic *nic, uint32_t vi, uint32_t count)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = link_of(nic, ctx);

	ctx->acks_owed += count;
	if (!link || put(nic, link, NIC_OP_ACK, ctx->peer_gen, ctx->peer_vi, ctx->acks_owed & NIC_PF_LEN, 0)) {
		ctx->acks_owed = 0;
		return;
	}
	nic_count(nic, link_full, count != 0);
	nic_vi_schedule(nic, vi);
}

static bool put_disconnect(struct nic *nic, struct nic_link *link, const struct nic_sysmsg *msg)
{
	return put(nic, link, NIC_OP_DISCONNECT, msg->gen, msg->vi, msg->acks & NIC_PF_LEN, msg->error);
}

void nic_sys_disconnect(struct nic *nic, uint32_t vi, uint32_t error)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_sysmsg msg = { .gen = ctx->peer_gen, .vi = ctx->peer_vi, .acks = ctx->acks_owed, .error = error };
	struct nic_link *link = link_of(nic, ctx);

	ctx->acks_owed = 0;
	if (!link || link->lost || (!nic_sys_waiting(link) && put_disconnect(nic, link, &msg)))
		return;
	nic_count(nic, link_full, 1);
	if (link->sys_tail - link->sys_head == NIC_SYS_WAITING)
		link->resync = true;
	else
		link->sys[link->sys_tail++ % NIC_SYS_WAITING] = msg;
}

int nic_sys_run(struct nic *nic, struct nic_link *link)
{
	int n = 0;

	while (link->sys_head != link->sys_tail && put_disconnect(nic, link, &link->sys[link->sys_head % NIC_SYS_WAITING])) {
		link->sys_head++;
		n++;
	}
	if (link->resync && link->sys_head == link->sys_tail && put(nic, link, NIC_OP_RESYNC, 0, 0, 0, 0)) {
		link->resync = false;
		n++;
	}
	return n;
}

void nic_sys_resync(struct nic *nic, const struct nic_link *link)
{
	for (uint32_t vi = 0; vi < nic->vi_used; vi++) {
		struct nic_vi_ctx *ctx = nic_vi(nic, vi);
		struct nic_vi_ctx *theirs = &link->slot->vi[ctx->peer_vi & (NIC_VI_TABLE - 1)];

		if (nic_vi_state(ctx) != NIC_VI_CONNECTED || ctx->peer_slot != link->peer)
			continue;
		/* Acquire: pairs with the release in end_life (vi.c), which comes after the change of gen. */
		if (nic_load_acquire(&theirs->state) != NIC_VI_CONNECTED || theirs->gen != ctx->peer_gen)
			nic_vi_lost(nic, vi);
	}
}
