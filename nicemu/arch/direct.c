/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `direct`, the default: what a present-day user-level NIC does, and the shortest way through this one.
 * Descriptors are pushed into a ring on the NIC, addresses are translated on the host through a read-only table, data
 * leaves without asking, one unit of work after the other; the members of a group read what the others have written for all.
 */
#include "nicemu/arch/arch.h"

const struct nic_arch nic_arch_direct = {
	.name = "direct",
	.citation = "none: this project's baseline; ring and host translation as in MyVIA, credits as in VIA",
	.post = &nic_post_ring,
	.xlate = &nic_xlate_rmmt,
	.flow = &nic_flow_push,
	.pipe = &nic_pipe_linear,
	.meet = &nic_meet_board,
	.pull_min = 16 * 1024, /* below, two copies through a buffer beat the fixed cost of cross-memory attach */
};
