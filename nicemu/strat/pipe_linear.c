/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thing after the other: what has arrived on each link, what waits in the send queues.
 */
#include "nicemu/ctl/ctl.h"

/* One link; what moved. */
static inline int serve(struct nic *nic, struct nic_link *link)
{
	struct nic_packet *p = nic_link_peek(link);
	int moved = 0;

	if (p)
		moved += nic_rx_run(nic, link, p, NIC_POLL_LINK, false);
	if (nic_unlikely(nic_sys_waiting(link)))
		moved += nic_sys_run(nic, link);
	return moved;
}

/*
 * A pass looks at all links when there are few.  When there are many, it looks at those that brought something last, and at some of
 * the others in their turn: so its cost has a bound, and so has the number of passes until each was looked at.
 */
static inline bool many(const struct nic *nic)
{
	return nic->nactive > NIC_PASS_LINKS;
}

/* The link at a place of the pass. */
static uint32_t link_at(const struct nic *nic, uint32_t place)
{
	uint32_t others = nic->nactive - NIC_PASS_RECENT, i;

	if (place < NIC_PASS_RECENT)
		return place;
	i = nic->turn + place - NIC_PASS_RECENT;
	return NIC_PASS_RECENT + (i < others ? i : i - others);
}

/* The places are through: next time, the next ones. */
static void take_turns(struct nic *nic)
{
	uint32_t others = nic->nactive - NIC_PASS_RECENT;

	nic->turn += NIC_PASS_LINKS - NIC_PASS_RECENT;
	if (nic->turn >= others)
		nic->turn -= others;
}

/* The link brought something. */
static void brought(struct nic *nic, uint32_t i)
{
	struct nic_link *link = nic->active[i];
	uint32_t to;

	if (i < NIC_PASS_RECENT)
		return;
	to = nic->recent++ % NIC_PASS_RECENT;
	nic->active[i] = nic->active[to];
	nic->active[to] = link;
}

static nic_noinline int many_links(struct nic *nic)
{
	int moved = 0;

	for (uint32_t place = 0; place < NIC_PASS_LINKS; place++) {
		uint32_t i = link_at(nic, place);
		int n = serve(nic, nic->active[i]);

		if (n)
			brought(nic, i);
		moved += n;
	}
	take_turns(nic);
	return moved;
}

static int links(struct nic *nic)
{
	int moved = 0;

	if (nic_unlikely(many(nic)))
		return many_links(nic);
	for (uint32_t i = 0; i < nic->nactive; i++)
		moved += serve(nic, nic->active[i]);
	return moved;
}

static nic_noinline int waiting(struct nic *nic)
{
	int moved = 0;

	if (nic->npending)
		moved += nic_tx_pending(nic);
	if (nic->group_work)
		moved += nic_group_run(nic);
	return moved;
}

static int pass(struct nic *nic)
{
	int moved = links(nic);

	if (nic_unlikely(nic->nshared))
		moved += nic_rdma_run(nic);
	if (nic_unlikely(nic->nwork))
		moved += waiting(nic);
	return moved;
}

/* One link; what nic_take returns. */
static inline uint32_t take_from(struct nic *nic, struct nic_link *link, const struct nic_cq *cq, struct nic_taken *out)
{
	struct nic_packet *p = nic_link_peek(link);
	uint32_t len = 0;

	if (p) {
		len = nic_rx_take(nic, link, p, cq, out);
		if (nic_likely(len))
			return len;
		nic_rx_run(nic, link, p, NIC_POLL_LINK, true);
		p = nic_link_peek(link);
		if (p && (len = nic_rx_take(nic, link, p, cq, out)))
			return len;
		if (nic_unlikely(p != NULL))
			nic_rx_run(nic, link, p, NIC_POLL_LINK, false);
	}
	if (nic_unlikely(nic_sys_waiting(link)))
		nic_sys_run(nic, link);
	return 0;
}

static nic_noinline uint32_t take_of_many(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	uint32_t place = nic->next, len = 0;

	for (uint32_t left = NIC_PASS_LINKS; left && !len; left--, place++) {
		uint64_t before = nic->counter[NIC_C_packets_received];
		uint32_t i;

		if (place >= NIC_PASS_LINKS) {
			place = 0;
			take_turns(nic);
		}
		i = link_at(nic, place);
		len = take_from(nic, nic->active[i], cq, out);
		if (nic->counter[NIC_C_packets_received] != before)
			brought(nic, i);
	}
	nic->next = place;
	return len;
}

static inline uint32_t take_of_few(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	uint32_t n = nic->nactive, i = nic->next, len;

	for (uint32_t left = n; left; left--, i++) {
		if (i >= n)
			i = 0;
		len = take_from(nic, nic->active[i], cq, out);
		if (nic_likely(len)) {
			nic->next = i + 1;
			return len;
		}
	}
	return 0;
}

/* As pass, until there is a message to hand over.  Each link comes first in its turn. */
static uint32_t take(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	uint32_t len;

	if (nic_unlikely(nic->nwork))
		waiting(nic);
	if (nic_unlikely(nic->nshared))
		nic_rdma_run(nic);
	len = nic_unlikely(many(nic)) ? take_of_many(nic, cq, out) : take_of_few(nic, cq, out);
	if (nic_unlikely(!len && nic->nshared)) /* asked for just now, perhaps */
		nic_rdma_run(nic);
	return len;
}

const struct nic_pipe nic_pipe_linear = { .name = "linear", .pass = pass, .take = take };
