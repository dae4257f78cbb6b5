/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extension for programs that poll and wait: the NIC's plan and rest under the names of VIPL.
 */
#include "vipl/src/object.h"

#define SAME(theirs, ours) (offsetof(VIPX_WAIT, theirs) == offsetof(struct nic_wait, ours))
_Static_assert(SAME(Rest, rest) && SAME(Lends, lends) && SAME(Began, began) && sizeof(VIPX_WAIT) == sizeof(struct nic_wait), "the same");
_Static_assert((int)VIPX_REST_SPIN == NIC_REST_SPIN && (int)VIPX_REST_YIELD == NIC_REST_YIELD &&
               (int)VIPX_REST_SLEEP == NIC_REST_SLEEP, "the same");

VIP_ULONG VipxWaitPlan(VIP_NIC_HANDLE NicHandle, VIPX_WAIT *Wait, VIP_ULONG LongestSleep)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_ULONG looks = 1;

	if (!nic)
		return 1;
	if (Wait)
		looks = nic_wait_plan(nic->hw, (struct nic_wait *)Wait, (uint64_t)LongestSleep * 1000u);
	vipl_leave(nic);
	return looks;
}

void VipxWaitLook(VIPX_WAIT *Wait)
{
	if (Wait)
		nic_wait_look((struct nic_wait *)Wait);
}

/* Uses nothing of the handle: closing it waits until a sleeper has gone. */
void VipxWaitRest(VIPX_WAIT *Wait)
{
	if (Wait)
		nic_wait_rest((struct nic_wait *)Wait);
}
