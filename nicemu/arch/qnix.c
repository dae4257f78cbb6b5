/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `qnix`: a NIC with a processor of its own, whose control program schedules packets by round robin among processes and among
 * their messages, and asks the receiving NIC before it sends.
 */
#include "nicemu/arch/arch.h"

const struct nic_arch nic_arch_qnix = {
	.name = "qnix",
	.citation = "A. De Vivo, A Light-Weight Communication System for a High Performance System Area Network, PhD thesis, "
	            "University of Salerno: the device driver and the NIC control program",
	.post = &nic_post_cmdq,
	.xlate = &nic_xlate_ctxtable,
	.flow = &nic_flow_permission,
	.pipe = &nic_pipe_pingpong,
	.meet = &nic_meet_message,
	.pull_min = UINT32_MAX, /* every message goes in packets of one page */
};
