/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network addresses of programs: bytes of variable length at any alignment, copied before they are looked at.
 */
#include <string.h>

#include "vipl/src/object.h"

enum { HEADER = offsetof(VIP_NET_ADDRESS, HostAddress) };
_Static_assert(HEADER == 4, "two lengths, then bytes");

bool vipl_address_read(const struct vipl_nic *local, const VIP_NET_ADDRESS *in, struct nic_addr *out)
{
	const char *bytes = (const char *)in;
	uint16_t host_len, disc_len;

	if (!in)
		return false;
	memcpy(&host_len, bytes, sizeof host_len);
	memcpy(&disc_len, bytes + sizeof host_len, sizeof disc_len);
	if (disc_len > NIC_DISC_MAX)
		return false;
	memset(out, 0, sizeof *out);
	if (host_len == NIC_ADDR_LEN)
		memcpy(out->host, bytes + HEADER, NIC_ADDR_LEN);
	else if (host_len == 0 && local)
		memcpy(out->host, local->attr.addr, NIC_ADDR_LEN);
	else
		return false;
	out->disc_len = disc_len;
	memcpy(out->disc, bytes + HEADER + host_len, disc_len);
	return true;
}

void vipl_address_write(const struct nic_addr *in, VIP_NET_ADDRESS *out)
{
	char *bytes = (char *)out;
	uint16_t host_len = NIC_ADDR_LEN, disc_len = in->disc_len > NIC_DISC_MAX ? NIC_DISC_MAX : in->disc_len;

	memcpy(bytes, &host_len, sizeof host_len);
	memcpy(bytes + sizeof host_len, &disc_len, sizeof disc_len);
	memcpy(bytes + HEADER, in->host, NIC_ADDR_LEN);
	memcpy(bytes + HEADER + NIC_ADDR_LEN, in->disc, disc_len);
}
