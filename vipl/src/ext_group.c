/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extensions about groups: the NIC's calls under the lock of the NIC handle.
 */
#include "vipl/src/object.h"

_Static_assert(sizeof(VIPX_GROUP) == sizeof(struct nic_group_args) && offsetof(VIPX_GROUP, Slot) == offsetof(struct nic_group_args, slot) &&
               offsetof(VIPX_GROUP, Life) == offsetof(struct nic_group_args, life) &&
               offsetof(VIPX_GROUP, Place) == offsetof(struct nic_group_args, place) && VIPX_BROADCAST_MAX == NIC_BCAST_MAX && VIPX_OVER == NIC_OP_OVER, "the same");
_Static_assert(VIPX_WHY_DIED == NIC_WHY_DIED && VIPX_WHY_LEFT == NIC_WHY_LEFT && VIPX_WHY_LENGTH == NIC_WHY_LENGTH &&
               VIPX_WHY_DATA == NIC_WHY_DATA && VIPX_WHY_NIC == NIC_WHY_NIC && VIPX_WHY_SHIFT == NIC_WHY_SHIFT, "the same");

VIP_RETURN VipxGroupJoin(VIP_NIC_HANDLE NicHandle, const VIPX_GROUP *Group, VIP_UINT32 *Operation)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	int err = NIC_PARAMETER;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Group && Group->Slot && Operation)
		err = nic_group_join(nic->hw, (const struct nic_group_args *)Group, Operation);
	vipl_leave(nic);
	return vipl_return(err);
}

VIP_RETURN VipxGroupLeave(VIP_NIC_HANDLE NicHandle, VIP_UINT32 Group)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	int err;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	err = nic_group_leave(nic->hw, Group);
	vipl_leave(nic);
	return vipl_return(err);
}

VIP_RETURN VipxBarrier(VIP_NIC_HANDLE NicHandle, VIP_UINT32 Group, VIP_UINT32 *Operation)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	int err = NIC_PARAMETER;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Operation)
		err = nic_barrier(nic->hw, Group, Operation);
	vipl_leave(nic);
	return __builtin_expect(err == NIC_OK, 1) ? VIP_SUCCESS : vipl_return(err);
}

VIP_RETURN VipxBroadcast(VIP_NIC_HANDLE NicHandle, VIP_UINT32 Group, VIP_UINT32 Root, VIP_PVOID Buffer, VIP_UINT64 Length,
                         VIP_UINT32 *Operation)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	int err = NIC_PARAMETER;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Operation && (Buffer || !Length))
		err = nic_bcast(nic->hw, Group, Root, Buffer, Length, Operation);
	vipl_leave(nic);
	return __builtin_expect(err == NIC_OK, 1) ? VIP_SUCCESS : vipl_return(err);
}

VIP_RETURN VipxOperationDone(VIP_NIC_HANDLE NicHandle, VIP_UINT32 Operation, VIP_UINT32 *Value)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	int err;

	if (__builtin_expect(!nic, 0))
		return VIP_INVALID_PARAMETER;
	err = nic_op_test(nic->hw, Operation, Value);
	vipl_leave(nic);
	return vipl_return(err);
}

VIP_RETURN VipxGroupsAtOnce(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	bool at_once;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	at_once = nic_groups_at_once(nic->hw);
	vipl_leave(nic);
	return at_once ? VIP_SUCCESS : VIP_NOT_DONE;
}
