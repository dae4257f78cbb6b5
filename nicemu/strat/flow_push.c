/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data leaves when the link has room: the receiver has posted its descriptors before (VIA), and who wants to know that it
 * has keeps credits above.
 */
#include "nicemu/ctl/ctl.h"

static bool may_send(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link)
{
	(void)nic;
	(void)ctx;
	return nic_link_reserve(link, NIC_RING_RESERVE) != NULL;
}

const struct nic_flow nic_flow_push = { .name = "push", .may_send = may_send };
