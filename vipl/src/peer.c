/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections by the peer model: both sides request, in any order, and each asks whether it is done.
 * The timeout starts with the request and is looked at when the program asks.
 */
#include "vipl/src/object.h"
#include "vipl/src/wait.h"

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                                 VIP_ULONG Timeout)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_addr local, remote;
	struct vipl_nic *nic;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&vi->object);
	if (vipl_address_read(nic, LocalAddr, &local) && vipl_address_read(NULL, RemoteAddr, &remote)) {
		result = vipl_return(nic_peer_request(nic->hw, vi->number, &local, &remote));
		if (result == VIP_SUCCESS) {
			vi->peer = true;
			vi->peer_deadline = vipl_deadline(Timeout);
		}
	}
	vipl_leave(nic);
	return result;
}

static VIP_RETURN look(VIP_VI_HANDLE handle, struct nic_vi_attr *attr)
{
	struct vipl_vi *vi = vipl_vi_enter(handle);
	VIP_RETURN result = VIP_INVALID_STATE;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	if (vi->peer) {
		nic_poll(vi->hw);
		result = vipl_return(nic_peer_poll(vi->hw, vi->number, attr));
		if (result == VIP_NOT_DONE && vipl_deadline_over(vi->peer_deadline) &&
		    nic_peer_cancel(vi->hw, vi->number) == NIC_OK)
			result = VIP_TIMEOUT;
		vi->peer = result == VIP_NOT_DONE;
	}
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs)
{
	struct nic_vi_attr attr;
	VIP_RETURN result;

	if (!RemoteViAttribs)
		return VIP_INVALID_PARAMETER;
	result = look(ViHandle, &attr);
	if (result == VIP_SUCCESS)
		vipl_vi_attr_write(&attr, NULL, RemoteViAttribs);
	return result;
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs)
{
	struct nic_vi_attr attr;
	struct vipl_wait wait;
	VIP_RETURN result;

	if (!RemoteViAttribs)
		return VIP_INVALID_PARAMETER;
	vipl_wait_init(&wait, VIP_INFINITE, vipl_nic_handle_of((struct vipl_object *)vipl_vi_lookup(ViHandle)));
	while ((result = look(ViHandle, &attr)) == VIP_NOT_DONE)
		vipl_wait_step(&wait);
	if (result == VIP_SUCCESS)
		vipl_vi_attr_write(&attr, NULL, RemoteViAttribs);
	return result;
}
