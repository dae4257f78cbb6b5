/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thing after the other: what has arrived on each link, what waits in the send queues.
 */
#include "nicemu/ctl/ctl.h"

static int links(struct nic *nic)
{
	int moved = 0;

	for (uint32_t i = 0; i < nic->nactive; i++) {
		struct nic_link *link = nic->active[i];

		struct nic_packet *p = nic_link_peek(link);

		if (p)
			moved += nic_rx_run(nic, link, p, NIC_POLL_LINK);
		if (nic_unlikely(nic_sys_waiting(link)))
			moved += nic_sys_run(nic, link);
	}
	return moved;
}

/* Every waiting VI once; those that still have work stay on the list, in their order. */
static int queues(struct nic *nic)
{
	uint32_t n = nic->npending, kept = 0;
	int moved = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t vi = nic->pending[i];
		struct nic_vi_ctx *ctx = nic_vi(nic, vi);

		moved += nic_tx_run(nic, vi, NIC_POLL_VI);
		if (ctx->tx_next != ctx->tx_tail || ctx->tx_spilled || ctx->acks_owed)
			nic->pending[kept++] = vi;
		else
			ctx->pending = 0;
	}
	for (uint32_t i = n; i < nic->npending; i++)
		nic->pending[kept++] = nic->pending[i];
	nic->npending = kept;
	return moved;
}

static int pass(struct nic *nic)
{
	int moved = links(nic);

	if (nic_unlikely(nic->nshared))
		moved += nic_rdma_run(nic);
	if (nic_unlikely(nic->npending))
		moved += queues(nic);
	return moved;
}

/* As pass, until there is a message to hand over.  Each link comes first in its turn. */
static uint32_t take(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	uint32_t n = nic->nactive, i = nic->next, len;

	if (nic_unlikely(nic->npending))
		queues(nic);
	if (nic_unlikely(nic->nshared))
		nic_rdma_run(nic);
	for (uint32_t left = n; left; left--, i++) {
		struct nic_link *link;
		struct nic_packet *p;

		if (i >= n)
			i = 0;
		link = nic->active[i];
		p = nic_link_peek(link);
		if (p) {
			len = nic_rx_take(nic, link, p, cq, out);
			if (nic_likely(len)) {
				nic->next = i + 1;
				return len;
			}
			nic_rx_run(nic, link, p, NIC_POLL_LINK);
		}
		if (nic_unlikely(nic_sys_waiting(link)))
			nic_sys_run(nic, link);
	}
	if (nic_unlikely(nic->nshared)) /* asked for just now, perhaps */
		nic_rdma_run(nic);
	return 0;
}

const struct nic_pipe nic_pipe_linear = { .name = "linear", .pass = pass, .take = take };
