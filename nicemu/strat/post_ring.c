/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Physical descriptors are pushed into a small ring on the NIC; what does not fit stays in host memory, where the chain
 * of posted descriptors is the big ring, and is fetched when there is room again (MyVIA).
 *
 * A send that finds the queue empty is executed on the spot, by the same control program (cut-through); it enters the ring
 * only when it needs more than one step, or has to wait for the link or for an acknowledgement.
 */
#include "nicemu/ctl/ctl.h"

/* The descriptor stays in host memory; its predecessor's `next` leads to it, or it is the first. */
static void spill(struct nic *nic, struct nic_desc *desc, uint64_t *first, uint32_t *count)
{
	if (!(*count)++)
		*first = (uintptr_t)desc;
	nic_count(nic, spilled, 1);
}

/*
 * Fetches the first descriptor of the chain and moves on.  The chain is in the consumer's hands: a `next` that was
 * overwritten after posting is not followed; the rest of the chain never completes, and the consumer is told.
 */
static struct nic_desc *fetch(struct nic *nic, const struct nic_vi_ctx *ctx, uint64_t *first, uint32_t *count)
{
	struct nic_desc *desc = nic_host(*first);

	*first = desc->next;
	if (--*count == 0)
		return desc;
	if (!*first || *first % NIC_DESC_ALIGN ||
	    (desc->next_handle && !nic_mem_check(nic, *first, sizeof(*desc), desc->next_handle, ctx->ptag))) {
		*count = 0;
		nic_event(nic, NIC_EV_POST_DESC, ctx->cookie, (uintptr_t)desc, 0);
	}
	return desc;
}

static void push_send(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_txe *e = &nic->slot->txq[vi][ctx->tx_tail++ & (NIC_TXQ - 1)];

	e->desc = (uintptr_t)desc;
	e->status = 0;
	e->flags = 0;
	e->done = 0;
}

/* To the end of the send queue, on the NIC or in host memory. */
void nic_post_queue(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	if (nic_unlikely(ctx->tx_spilled || ctx->tx_tail - ctx->tx_head == NIC_TXQ))
		spill(nic, desc, &ctx->tx_spill, &ctx->tx_spilled);
	else
		push_send(nic, vi, desc);
}

static void send(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	nic_count(nic, doorbells, 1);
	if (nic_likely(nic_vi_tx_empty(ctx) && nic_tx_cut(nic, ctx, desc))) {
		nic_count(nic, cut_through, 1);
		return;
	}
	if (nic_unlikely(ctx->tx_spilled || ctx->tx_tail - ctx->tx_head == NIC_TXQ)) {
		spill(nic, desc, &ctx->tx_spill, &ctx->tx_spilled);
		return;
	}
	push_send(nic, vi, desc);
	if (nic_unlikely(ctx->pending)) {
		nic_count(nic, queued, 1);
		return; /* the scheduler will come to it */
	}
	if (nic_likely(nic_tx_run(nic, vi, 1))) {
		nic_count(nic, cut_through, nic_vi_state(ctx) == NIC_VI_CONNECTED);
		return;
	}
	nic_count(nic, queued, 1);
	nic_vi_schedule(nic, vi);
	nic_poll(nic); /* room or buffers may lie in our own rings, and a program that only sends never looks */
}

static void recv(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	nic_count(nic, doorbells, 1);
	if (nic_unlikely(ctx->rx_spilled || ctx->rx_tail - ctx->rx_head == NIC_RXQ)) {
		spill(nic, desc, &ctx->rx_spill, &ctx->rx_spilled);
		return;
	}
	nic_rx_fetch(nic, ctx, desc, &nic->slot->rxq[vi][ctx->rx_tail & (NIC_RXQ - 1)]);
	ctx->rx_tail++;
}

static void refill(struct nic *nic, uint32_t vi)
{
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	while (ctx->tx_spilled && ctx->tx_tail - ctx->tx_head < NIC_TXQ)
		push_send(nic, vi, fetch(nic, ctx, &ctx->tx_spill, &ctx->tx_spilled));
	while (ctx->rx_spilled && ctx->rx_tail - ctx->rx_head < NIC_RXQ) {
		struct nic_desc *desc = fetch(nic, ctx, &ctx->rx_spill, &ctx->rx_spilled);

		nic_rx_fetch(nic, ctx, desc, &nic->slot->rxq[vi][ctx->rx_tail & (NIC_RXQ - 1)]);
		ctx->rx_tail++;
	}
}

/* There is no queue of commands: it is executed at once. */
static int command(struct nic *nic, const struct qnix_cmd *cmd)
{
	return nic_group_execute(nic, cmd);
}

const struct nic_post nic_post_ring = { .name = "ring", .send = send, .recv = recv, .refill = refill, .command = command,
	.by_value = true, .at_once = true };
