/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Name service: host names to host addresses of the card and back.  A card reaches exactly one host, so the names are
 * this host's: as the system calls it, without its domain, and "localhost".
 */
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "vipl/src/object.h"

struct host_name {
	char text[HOST_NAME_MAX + 1];
};

static struct host_name own_name(void)
{
	struct host_name own = { "" };

	if (gethostname(own.text, sizeof own.text) != 0 || !own.text[0])
		strcpy(own.text, "localhost");
	own.text[sizeof own.text - 1] = '\0';
	return own;
}

static bool is_own(const VIP_CHAR *name)
{
	struct host_name own = own_name();
	size_t host = strcspn(own.text, ".");

	if (!strcasecmp(name, "localhost") || !strcasecmp(name, own.text))
		return true;
	/* One of the two without a domain: the host parts decide. */
	return strncasecmp(name, own.text, host) == 0 && (name[host] == '\0' || (name[host] == '.' && own.text[host] == '\0'));
}

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	(void)NSInitInfo;
	if (!nic)
		return VIP_INVALID_PARAMETER;
	nic->names = true;
	vipl_leave(nic);
	return VIP_SUCCESS;
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	result = nic->names ? VIP_SUCCESS : VIP_ERROR_NAMESERVICE;
	nic->names = false;
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address, VIP_ULONG NameIndex)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	uint16_t length = NIC_ADDR_LEN;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Name && Address) {
		result = nic->names && NameIndex == 0 && is_own(Name) ? VIP_SUCCESS : VIP_ERROR_NAMESERVICE;
		if (result == VIP_SUCCESS) {
			memcpy((char *)Address + offsetof(VIP_NET_ADDRESS, HostAddressLen), &length, sizeof length);
			memcpy((char *)Address + offsetof(VIP_NET_ADDRESS, HostAddress), nic->attr.addr, NIC_ADDR_LEN);
		}
	}
	vipl_leave(nic);
	return result;
}

/* NameLen: in, room; out, bytes of the name with its end, also when the room was too small. */
static VIP_RETURN give_name(VIP_CHAR *name, VIP_ULONG *room)
{
	struct host_name own = own_name();
	VIP_ULONG need = strlen(own.text) + 1;
	bool fits = *room >= need;

	*room = need;
	if (!fits)
		return VIP_INVALID_PARAMETER;
	memcpy(name, own.text, need);
	return VIP_SUCCESS;
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name, VIP_ULONG *NameLen)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_addr address;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Name && NameLen && vipl_address_read(NULL, Address, &address)) {
		if (nic->names && !memcmp(address.host, nic->attr.addr, NIC_ADDR_LEN))
			result = give_name(Name, NameLen);
		else
			result = VIP_ERROR_NAMESERVICE;
	}
	vipl_leave(nic);
	return result;
}
