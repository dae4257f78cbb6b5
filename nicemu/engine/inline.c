/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `inline`: the process that owns the slot runs its slice of the NIC from its own calls.
 * The default, and the fastest: no hand-over, and the NIC's working lines stay in the caller's cache.
 */
#include "nicemu/ctl/ctl.h"

static int poll_inline(struct nic *nic)
{
	if (nic_unlikely(++nic->polls >= NIC_WATCH_POLLS)) {
		nic->polls = 0;
		nic_driver_watch(nic);
	}
	return nic->arch->pipe->pass(nic);
}

static uint32_t take_inline(struct nic *nic, const struct nic_cq *cq, struct nic_taken *out)
{
	const struct nic_pipe *pipe = nic->arch->pipe;

	if (nic_unlikely(++nic->polls >= NIC_WATCH_POLLS || !pipe->take)) {
		poll_inline(nic);
		return 0;
	}
	return pipe->take(nic, cq, out);
}

const struct nic_engine nic_engine_inline = { .name = "inline", .poll = poll_inline, .take = take_inline, .needs_host = true };
