/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data leaves when the link has room: the receiver has posted its descriptors before (VIA), and who wants to know that it
 * has keeps credits above.
 */
#include "nicemu/arch/arch.h"

const struct nic_flow nic_flow_push = { .name = "push" };
