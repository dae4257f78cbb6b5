/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extensions that are called now and then: identities, memory, pending peers, counters, parameters.
 */
#include "vipl/src/object.h"

/* ---- identities ---- */

VIP_RETURN VipxCardId(VIP_NIC_HANDLE NicHandle, VIP_UINT64 *Card)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Card)
		*Card = nic->attr.card;
	vipl_leave(nic);
	return Card ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
}

VIP_RETURN VipxCardSlot(VIP_NIC_HANDLE NicHandle, VIP_ULONG *Slot)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Slot)
		*Slot = nic->attr.slot;
	vipl_leave(nic);
	return Slot ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
}

VIP_RETURN VipxCardLife(VIP_NIC_HANDLE NicHandle, VIP_UINT32 *Life)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Life)
		*Life = nic->attr.life;
	vipl_leave(nic);
	return Life ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
}

VIP_RETURN VipxCardLives(VIP_NIC_HANDLE NicHandle, VIP_ULONG Slot, VIP_UINT32 Life)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	bool lives;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	lives = Slot <= UINT32_MAX && nic_slot_lives(nic->hw, (uint32_t)Slot, Life);
	vipl_leave(nic);
	return lives ? VIP_SUCCESS : VIP_NO_MATCH;
}

VIP_RETURN VipxViPeer(VIP_VI_HANDLE ViHandle, VIP_ULONG *Pid, VIP_ULONG *Slot)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	uint32_t slot;
	int pid;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	if (Pid && Slot)
		result = vipl_return(nic_vi_peer(vi->hw, vi->number, &pid, &slot));
	if (result == VIP_SUCCESS) {
		*Pid = (VIP_ULONG)pid;
		*Slot = slot;
	}
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

VIP_RETURN VipxRatherSent(VIP_VI_HANDLE ViHandle, const void *Data, VIP_UINT64 Length, VIP_BOOLEAN *Single)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	bool sent, single = Single && *Single != VIP_FALSE;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	sent = nic_rather_sent(vi->hw, vi->number, (uintptr_t)Data, Length, Single ? &single : NULL);
	vipl_leave(vipl_nic_of(&vi->object));
	if (Single)
		*Single = single ? VIP_TRUE : VIP_FALSE;
	return sent ? VIP_SUCCESS : VIP_NOT_DONE;
}

VIP_RETURN VipxBulkTurn(VIP_VI_HANDLE ViHandle)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	bool now;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	now = nic_bulk_turn(vi->hw, vi->number);
	vipl_leave(vipl_nic_of(&vi->object));
	return now ? VIP_SUCCESS : VIP_NOT_DONE;
}

VIP_RETURN VipxLongBegins(VIP_VI_HANDLE ViHandle, VIP_UINT64 Remote, VIP_UINT64 Length, VIP_BOOLEAN Single)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	bool counts;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	counts = nic_long_begins(vi->hw, vi->number, Remote, Length, Single != VIP_FALSE);
	vipl_leave(vipl_nic_of(&vi->object));
	return counts ? VIP_SUCCESS : VIP_NOT_DONE;
}

VIP_RETURN VipxLongOver(VIP_VI_HANDLE ViHandle, VIP_UINT64 Length, VIP_BOOLEAN Read, VIP_BOOLEAN Single)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic_long_over(vi->hw, vi->number, Length, Read != VIP_FALSE, Single != VIP_FALSE);
	vipl_leave(vipl_nic_of(&vi->object));
	return VIP_SUCCESS;
}

/* ---- memory in the card ---- */

VIP_RETURN VipxAllocMemory(VIP_NIC_HANDLE NicHandle, VIP_UINT64 Length, VIP_PVOID *Memory)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Memory)
		result = vipl_return(nic_mem_alloc(nic->hw, Length, Memory));
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipxFreeMemory(VIP_NIC_HANDLE NicHandle, VIP_PVOID Memory)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	result = vipl_return(nic_mem_free(nic->hw, Memory));
	vipl_leave(nic);
	return result;
}

_Static_assert(VIPX_LARGE_PAGE == NIC_LARGE_PAGE, "size of a large page");

VIP_RETURN VipxLargePage(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	result = vipl_return(nic_mem_large(nic->hw, (uintptr_t)Address));
	vipl_leave(nic);
	return result;
}

/* ---- peers that want to connect ---- */

_Static_assert(VIPX_ADDRESS_SIZE >= offsetof(VIP_NET_ADDRESS, HostAddress) + NIC_ADDR_LEN + NIC_DISC_MAX,
               "every address fits");

VIP_RETURN VipxConnectPending(VIP_NIC_HANDLE NicHandle, VIP_ULONG *Cursor, VIP_NET_ADDRESS *TheirLocal,
                              VIP_NET_ADDRESS *TheirRemote)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_addr local, remote;
	uint32_t cursor;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Cursor && TheirLocal && TheirRemote && *Cursor <= UINT32_MAX) {
		cursor = (uint32_t)*Cursor;
		result = vipl_return(nic_peer_pending(nic->hw, &cursor, &local, &remote));
		*Cursor = cursor;
	}
	if (result == VIP_SUCCESS) {
		vipl_address_write(&local, TheirLocal);
		vipl_address_write(&remote, TheirRemote);
	}
	vipl_leave(nic);
	return result;
}

/* ---- counters ---- */

VIP_UINT64 *VipxCounter(VIP_NIC_HANDLE NicHandle, const VIP_CHAR *Name, const VIP_CHAR *Help)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_UINT64 *cell = NULL;

	if (!nic)
		return NULL;
	if (Name && Name[0])
		cell = nic_counter_add(nic->hw, Name, Help ? Help : "");
	vipl_leave(nic);
	return cell;
}

const VIP_UINT64 *VipxCounterAt(VIP_NIC_HANDLE NicHandle, VIP_ULONG Index, const VIP_CHAR **Name, const VIP_CHAR **Help)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	const struct nic_counter *row = NULL;
	const VIP_UINT64 *cell = NULL;

	if (!nic)
		return NULL;
	if (Index <= UINT32_MAX)
		cell = nic_counter_at(nic->hw, (uint32_t)Index, &row);
	if (cell && Name)
		*Name = row->name;
	if (cell && Help)
		*Help = row->help;
	vipl_leave(nic);
	return cell;
}

/* ---- parameters: the NIC's rows under the name that layers above see ---- */

#define SAME(member) (offsetof(struct vipx_parameter, member) == offsetof(struct nic_param, member))
_Static_assert(SAME(name) && SAME(help) && SAME(type) && SAME(fits) && SAME(value) && SAME(source) && SAME(level) &&
               sizeof(struct vipx_parameter) == sizeof(struct nic_param), "one layout, two names");

const struct vipx_parameter *VipxParameterAt(VIP_ULONG Index)
{
	return Index <= UINT32_MAX ? (const struct vipx_parameter *)nic_param_at((uint32_t)Index) : NULL;
}

const struct vipx_parameter *VipxParameterFind(const VIP_CHAR *Name)
{
	return Name ? (const struct vipx_parameter *)nic_param_find(Name) : NULL;
}

VIP_RETURN VipxParameterSet(const VIP_CHAR *Name, const VIP_CHAR *Value, const VIP_CHAR *Source)
{
	if (!Name || !Value)
		return VIP_INVALID_PARAMETER;
	return vipl_return(nic_param_set(Name, Value, Source ? Source : "program"));
}

int64_t VipxParameterInt(const VIP_CHAR *Name)
{
	return Name && nic_param_find(Name) ? nic_param_int(Name) : 0;
}

const VIP_CHAR *VipxParameterString(const VIP_CHAR *Name)
{
	return Name && nic_param_find(Name) ? nic_param_str(Name) : "";
}
