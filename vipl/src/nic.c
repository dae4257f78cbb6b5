/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NIC handles: opening, closing, asking.  One NIC handle is one process slot of the card.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vipl/src/object.h"

enum { HARDWARE_VERSION = 1, PROVIDER_VERSION = 0x100 };

/* ---- open ---- */

static pthread_once_t at_fork = PTHREAD_ONCE_INIT;

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, vipl_object_forget);
}

/* A path is some system's device node of a VIA card: it means the default card.  So do NULL and "". */
static const char *device_of(const VIP_CHAR *name)
{
	return name && name[0] && name[0] != '/' ? name : NULL;
}

static bool memory_create(struct vipl_nic *nic)
{
	nic->event = malloc(VIPL_MAX_EVENTS * sizeof *nic->event);
	nic->ptag = calloc(NIC_MAX_PTAG + 1, sizeof *nic->ptag);
	return nic->event && nic->ptag;
}

static void memory_destroy(struct vipl_nic *nic)
{
	free(nic->event);
	free(nic->ptag);
	nic->event = NULL;
	nic->ptag = NULL;
}

static void init(struct vipl_nic *nic, VIP_ULONG flags)
{
	nic->hw = NULL;
	nic->serial = flags & VIPX_OPEN_UNLOCKED;
	nic->unlocked = false;
	nic->strict = nic_param_int("vipl_strict") != 0;
	nic->names = nic->reporting = nic->service = nic->service_used = false;
	nic->event_head = nic->event_tail = 0;
	nic->handler = NULL;
	nic->context = NULL;
	nic->logged = 0;
	nic->notify = NULL;
	nic->notify_end = &nic->notify;
	nic->notifies = 0;
	nic->pass = 0;
}

/* For a NIC that runs beside the program's calls. */
static bool enter_beside(void *arg)
{
	struct vipl_nic *nic = arg;

	return vipl_lock_try(&nic->lock);
}

/* What it has noticed is reported by its own thread, unless the program counts on having no other. */
static void leave_beside(void *arg, bool report)
{
	struct vipl_nic *nic = arg;
	bool noticed = report && !nic->serial && nic->event_head != nic->event_tail;

	vipl_lock_give(&nic->lock);
	if (noticed)
		vipl_error_report(nic);
}

static VIP_RETURN open_slot(struct vipl_nic *nic, const VIP_CHAR *name, VIP_ULONG flags)
{
	struct nic_open_args args = { device_of(name), vipl_error_note, nic, enter_beside, leave_beside, nic };
	VIP_RETURN result = VIP_ERROR_RESOURCE;

	init(nic, flags);
	if (memory_create(nic))
		result = vipl_return(nic_open(&args, &nic->hw));
	if (result != VIP_SUCCESS) {
		memory_destroy(nic);
		return result;
	}
	nic_query(nic->hw, &nic->attr);
	nic->unlocked = nic->serial && !nic->attr.beside;
	return result;
}

static VIP_RETURN open_nic(const VIP_CHAR *name, VIP_ULONG flags, VIP_NIC_HANDLE *out)
{
	struct vipl_nic *nic;
	VIP_RETURN result;

	if (!out || (flags & ~VIPX_OPEN_UNLOCKED))
		return VIP_INVALID_PARAMETER;
	pthread_once(&at_fork, watch_forks);
	nic = vipl_object_create(VIPL_NIC, NULL);
	if (!nic)
		return VIP_ERROR_RESOURCE;
	result = open_slot(nic, name, flags);
	if (result == VIP_SUCCESS)
		*out = (VIP_NIC_HANDLE)vipl_object_publish(VIPL_NIC, nic);
	else
		vipl_object_destroy(VIPL_NIC, nic);
	return result;
}

VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle)
{
	return open_nic(DeviceName, 0, NicHandle);
}

VIP_RETURN VipxOpenNic(const VIP_CHAR *DeviceName, VIP_ULONG Flags, VIP_NIC_HANDLE *NicHandle)
{
	return open_nic(DeviceName, Flags, NicHandle);
}

const VIP_CHAR *VipxLastError(void)
{
	return nic_last_error();
}

/* ---- close ---- */

/*
 * First nobody can enter by the NIC handle, then the notify thread and the NIC's have ended, then what is left is released under the
 * lock, so that a thread in a call on one of these objects is either done or finds its handle gone.
 */
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (!nic)
		return VIP_INVALID_PARAMETER;
	vipl_object_hide(nic);
	vipl_unlock(nic);
	vipl_notify_stop(nic);
	nic_stop(nic->hw);
	vipl_lock(nic);
	nic_close(nic->hw); /* before the completion queues it writes to */
	nic->hw = NULL;
	vipl_object_each(VIPL_VI, nic, vipl_vi_release);
	vipl_object_each(VIPL_CQ, nic, vipl_cq_release);
	vipl_object_each(VIPL_CONN, nic, vipl_conn_release);
	nic->event_head = nic->event_tail;
	memory_destroy(nic);
	vipl_unlock(nic);
	vipl_object_destroy(VIPL_NIC, nic);
	return VIP_SUCCESS;
}

/* ---- query ---- */

static void describe(const struct vipl_nic *nic, VIP_NIC_ATTRIBUTES *out)
{
	memset(out, 0, sizeof *out);
	memcpy(out->Name, nic->attr.device, sizeof nic->attr.device);
	out->HardwareVersion = HARDWARE_VERSION;
	out->ProviderVersion = PROVIDER_VERSION;
	out->NicAddressLen = NIC_ADDR_LEN;
	out->LocalNicAddress = nic->attr.addr;
	out->ThreadSafe = nic->serial ? VIP_FALSE : VIP_TRUE;
	out->MaxDiscriminatorLen = NIC_DISC_MAX;
	out->MaxRegisterBytes = (VIP_ULONG)1 << 47;
	out->MaxRegisterRegions = NIC_MAX_REGIONS;
	out->MaxRegisterBlockBytes = (VIP_ULONG)1 << 47;
	out->MaxVI = NIC_MAX_VI;
	out->MaxDescriptorsPerQueue = NIC_MAX_QUEUE;
	out->MaxSegmentsPerDesc = NIC_DESC_SEGS_MAX - 1;
	out->MaxCQ = VIPL_MAX_CQ;
	out->MaxCQEntries = VIPL_MAX_CQ_ENTRIES;
	out->MaxTransferSize = NIC_MAX_TRANSFER;
	out->NativeMTU = NIC_BUFFER_SIZE;
	out->MaxPtags = NIC_MAX_PTAG;
	out->ReliabilityLevelSupport = NIC_UNRELIABLE | NIC_RELIABLE_DELIVERY | NIC_RELIABLE_RECEPTION;
	out->RDMAReadSupport = (VIP_RELIABILITY_LEVEL)nic->attr.rdma_read;
}

_Static_assert(sizeof((VIP_NIC_ATTRIBUTES *)0)->Name >= NIC_DEVICE_MAX, "a device name fits the attributes");

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *NicAttribs)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (NicAttribs)
		describe(nic, NicAttribs);
	vipl_leave(nic);
	return NicAttribs ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
}

/* The hosts this card reaches: itself.  VIP_ERROR_RESOURCE when the caller has no place for an address. */
static VIP_RETURN autodiscovery(const struct vipl_nic *nic, VIP_AUTODISCOVERY_LIST *list)
{
	struct nic_addr own = { .disc_len = 0 };

	if (!list->NumAdAddrs || !list->ADAddrArray) {
		list->NumAdAddrs = 1;
		return VIP_ERROR_RESOURCE;
	}
	if (!list->ADAddrArray[0])
		return VIP_INVALID_PARAMETER;
	memcpy(own.host, nic->attr.addr, NIC_ADDR_LEN);
	vipl_address_write(&own, list->ADAddrArray[0]);
	list->NumAdAddrs = 1;
	return VIP_SUCCESS;
}

VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (InfoType != VIP_SMI_AUTODISCOVERY)
		result = VIP_ERROR_NOT_SUPPORTED;
	else if (SysManInfo)
		result = autodiscovery(nic, SysManInfo);
	vipl_leave(nic);
	return result;
}
