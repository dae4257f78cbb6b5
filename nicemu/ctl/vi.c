/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual interfaces: their life and their states.
 *
 *   idle -> pending (a request is out) -> connected -> error (the peer's end went, or a descriptor failed)
 *   idle -> connected (accept); pending -> idle (refused, withdrawn); any -> idle (nic_disconnect)
 */
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/remote.h"

void nic_event(struct nic *nic, enum nic_event_code code, uint64_t vi_cookie, uint64_t desc, uint32_t op)
{
	struct nic_event event = { .code = code, .vi_cookie = vi_cookie, .desc = desc, .op = op };

	if (nic->event)
		nic->event(nic->event_arg, &event);
}

/* The short ways in and out. */
static void shut(struct nic_vi_ctx *ctx, uint32_t vi)
{
	ctx->short_max = ctx->quick_max = ctx->rx_quick = 0;
	ctx->from_peer = nic_packet_word(0, 0, (uint16_t)(vi ^ 1)); /* what packets for this VI cannot say */
}

static void set_state(struct nic_vi_ctx *ctx, uint32_t state)
{
	nic_store_release(&ctx->state, state); /* pairs with peers' acquire when they look for a free or live VI */
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static int check_attr(const struct nic_vi_attr *attr)
{
	if (attr->reliability != NIC_UNRELIABLE && attr->reliability != NIC_RELIABLE_DELIVERY && attr->reliability != NIC_RELIABLE_RECEPTION)
		return NIC_RELIABILITY;
	return attr->max_transfer > NIC_MAX_TRANSFER ? NIC_MTU : NIC_OK;
}

static void put_attr(const struct nic *nic, struct nic_vi_ctx *ctx, const struct nic_vi_attr *attr)
{
	ctx->reliability = attr->reliability;
	ctx->flags = attr->flags;
	ctx->max_transfer = attr->max_transfer ? attr->max_transfer : NIC_MAX_TRANSFER;
	ctx->ptag = attr->ptag;
	ctx->no_short = attr->reliability == NIC_RELIABLE_RECEPTION || !nic->arch->post->by_value;
}

int nic_vi_query(const struct nic *nic, uint32_t vi, enum nic_vi_state *state, struct nic_vi_attr *attr)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (nic->remote)
		return nic_remote_vi_query(nic, vi, state, attr);
	if (state)
		*state = nic_vi_state(ctx);
	if (attr)
		*attr = (struct nic_vi_attr){ ctx->reliability, ctx->flags, ctx->max_transfer, ctx->ptag };
	return NIC_OK;
}

int nic_vi_set(struct nic *nic, uint32_t vi, const struct nic_vi_attr *attr)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	int err = check_attr(attr);

	if (nic->remote)
		return nic_remote_vi_set(nic, vi, attr);
	if (nic_vi_state(ctx) != NIC_VI_IDLE)
		return NIC_STATE;
	if (err)
		return err;
	if (!nic_ptag_get(nic, attr->ptag))
		return NIC_PTAG;
	nic_ptag_put(nic, ctx->ptag);
	put_attr(nic, ctx, attr);
	return NIC_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int free_vi(struct nic *nic)
{
	for (uint32_t i = 0; i < nic->vi_used; i++)
		if (nic_vi_state(nic_vi(nic, i)) == NIC_VI_FREE)
			return i;
	if (nic->vi_used == NIC_MAX_VI)
		return -1;
	if (!nic_card_reserve(nic->card, nic_vi(nic, nic->vi_used), sizeof(struct nic_vi_ctx)) ||
	    !nic_card_reserve(nic->card, &nic->slot->peer[nic->vi_used], sizeof(struct nic_peer_req)) ||
	    !nic_card_reserve(nic->card, nic->slot->txq[nic->vi_used], sizeof(nic->slot->txq[0])) ||
	    !nic_card_reserve(nic->card, nic->slot->rxq[nic->vi_used], sizeof(nic->slot->rxq[0])))
		return -1;
	nic_store_release(&nic->slot->vis, nic->vi_used + 1); /* pairs with the acquire of scans */
	return nic->vi_used++;
}

int nic_vi_create(struct nic *nic, const struct nic_vi_args *args, uint32_t *out)
{
	int err = check_attr(&args->attr), vi;
	struct nic_vi_ctx *ctx;

	if (nic->remote)
		return nic_remote_vi_create(nic, args, out);
	if (err)
		return err;
	if (!args->cookie || (args->cookie & 1))
		return NIC_PARAMETER;
	vi = free_vi(nic);
	if (vi < 0)
		return NIC_RESOURCE;
	if (!nic_ptag_get(nic, args->attr.ptag)) {
		set_state(nic_vi(nic, vi), NIC_VI_FREE);
		return NIC_PTAG;
	}
	ctx = nic_vi(nic, vi);
	put_attr(nic, ctx, &args->attr);
	ctx->cookie = args->cookie;
	ctx->send_cq = (uintptr_t)args->send_cq;
	ctx->recv_cq = (uintptr_t)args->recv_cq;
	ctx->rx_head = ctx->rx_tail = ctx->rx_done = ctx->rx_bad = ctx->rx_skip = 0;
	ctx->tx_head = ctx->tx_next = ctx->tx_tail = 0;
	ctx->rx_spilled = ctx->tx_spilled = 0;
	ctx->acks_owed = ctx->reads = ctx->writes = 0;
	ctx->queued = ctx->rx_bound = 0;
	ctx->fetched = ctx->fetch_failed = 0;
	shut(ctx, (uint32_t)vi);
	set_state(ctx, NIC_VI_IDLE);
	*out = vi;
	return NIC_OK;
}

int nic_vi_destroy(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (nic->remote)
		return nic_remote_vi_destroy(nic, vi);
	if (nic_vi_state(ctx) != NIC_VI_IDLE)
		return NIC_STATE;
	nic_ptag_put(nic, ctx->ptag);
	ctx->tx_head = ctx->tx_next = ctx->tx_tail; /* a stale place on the scheduler's list finds nothing to do */
	ctx->tx_spilled = ctx->rx_spilled = 0;
	ctx->cookie = 0;
	set_state(ctx, NIC_VI_FREE);
	return NIC_OK;
}

void nic_vi_schedule(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (ctx->pending)
		return;
	ctx->pending = 1;
	nic->pending[nic->npending++] = vi;
	nic->nwork++;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

void nic_vi_up(struct nic *nic, uint32_t vi, const struct nic_end *peer)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	ctx->peer_slot = peer->slot & (NIC_MAX_SLOTS - 1);
	ctx->peer_vi = peer->vi & (NIC_VI_TABLE - 1);
	ctx->peer_gen = peer->gen;
	ctx->peer_epoch = peer->epoch;
	ctx->rx_done = ctx->rx_skip = 0;
	ctx->acks_owed = 0;
	ctx->tx_number = ctx->rx_number = 0;
	ctx->tx_last = 0xFFFF;
	ctx->fetched = ctx->fetch_failed = 0;
	ctx->short_max = ctx->no_short ? 0 : ctx->max_transfer < NIC_BUFFER_SIZE ? ctx->max_transfer : NIC_BUFFER_SIZE;
	ctx->quick_max = nic->arch->flow->may_send ? 0 : ctx->short_max;
	if (nic->arch->pipe->take) /* else there is no short way in */
		ctx->from_peer = nic_packet_word(NIC_OP_SEND, ctx->gen, (uint16_t)vi);
	ctx->to_peer = nic_packet_word(NIC_OP_SEND, ctx->peer_gen, ctx->peer_vi);
	set_state(ctx, NIC_VI_CONNECTED);
	nic_count(nic, connections, 1);
	nic_rx_head(nic, vi);
}

/* Sends: those on their way may or may not have arrived; the others have not left. */
void nic_vi_flush_sends(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (ctx->reads || ctx->writes)
		nic_rdma_revoke(nic, vi);
	if (nic->arch->flow->cancel)
		nic->arch->flow->cancel(nic, vi);
	while (ctx->tx_head != ctx->tx_tail || ctx->tx_spilled) {
		for (; ctx->tx_next != ctx->tx_tail; ctx->tx_next++) {
			struct nic_txe *e = &nic->slot->txq[vi][ctx->tx_next & (NIC_TXQ - 1)];

			e->status = NIC_ST_FLUSHED;
			e->done = 0;
		}
		nic_tx_acknowledge(nic, vi, NIC_TXQ, NIC_ST_TRANSPORT);
	}
}

void nic_vi_flush(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	ctx->acks_owed = 0;
	nic_vi_flush_sends(nic, vi);
	nic_rx_flush(nic, vi);
}

/* The peer forgets this life of the VI; packets of it that are still under way are dropped. */
static void end_life(struct nic_vi_ctx *ctx, uint32_t vi, uint32_t state)
{
	shut(ctx, vi);
	ctx->gen++; /* before the state: nic_sys_resync and deliver_pull of the peer look at both */
	set_state(ctx, state);
}

void nic_vi_fail(struct nic *nic, uint32_t vi, int event, uint32_t remote_error)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (nic_vi_state(ctx) != NIC_VI_CONNECTED)
		return;
	nic_sys_disconnect(nic, vi, remote_error);
	end_life(ctx, vi, NIC_VI_ERROR);
	nic_vi_flush(nic, vi);
	nic_count(nic, connections_lost, 1);
	if (event != NIC_EV_NONE)
		nic_event(nic, event, ctx->cookie, 0, NIC_ST_OP_RECEIVE);
}

void nic_vi_lost(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (nic_vi_state(ctx) != NIC_VI_CONNECTED)
		return;
	end_life(ctx, vi, NIC_VI_ERROR);
	nic_vi_flush(nic, vi);
	nic_count(nic, connections_lost, 1);
	nic_event(nic, NIC_EV_CONN_LOST, ctx->cookie, 0, 0);
}

int nic_disconnect(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t state = nic_vi_state(ctx);

	if (nic->remote)
		return nic_remote_disconnect(nic, vi);
	if (state == NIC_VI_FREE)
		return NIC_PARAMETER;
	nic_conn_withdraw(nic, vi);
	if (nic_vi_state(ctx) == NIC_VI_CONNECTED) {
		nic_sys_disconnect(nic, vi, 0);
		end_life(ctx, vi, NIC_VI_ERROR);
	}
	nic_vi_flush(nic, vi);
	set_state(ctx, NIC_VI_IDLE);
	return NIC_OK;
}

int nic_vi_peer(const struct nic *nic, uint32_t vi, int *pid, uint32_t *slot)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	const struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];

	if (nic->remote)
		return nic_remote_vi_peer((struct nic *)nic, vi, pid, slot);
	if (nic_vi_state(ctx) != NIC_VI_CONNECTED || !link)
		return NIC_STATE;
	*pid = link->pid;
	*slot = link->peer;
	return NIC_OK;
}
