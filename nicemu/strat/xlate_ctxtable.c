/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translation by page tables in the Context Region (QNIX): the driver gives a process the bus address of each page of a
 * buffer, the process writes them beside its context, the NIC takes one for each packet.
 *
 * A VI's segments have no context of their own: for them the table is the driver's list of regions, asked page by page as the
 * packets need it.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/mem/qnix.h"

static void *map(struct nic *nic, uint32_t ptag, const struct nic_seg *seg, uint64_t offset, uint64_t len)
{
	return nic_mem_check(nic, seg->addr + offset, len, seg->handle, ptag) ? nic_host(seg->addr + offset) : NULL;
}

static uint32_t table(struct nic *nic, uint64_t addr, uint64_t len, uint64_t *out, uint32_t room)
{
	uint64_t page = addr - addr % QNIX_PAGE, end = addr + len;
	uint32_t n = 0;

	(void)nic;
	if (end < addr || (end - page + QNIX_PAGE - 1) / QNIX_PAGE > room || room == 0)
		return 0;
	out[n++] = addr;
	for (page += QNIX_PAGE; page < end; page += QNIX_PAGE)
		out[n++] = page;
	return n;
}

const struct nic_xlate nic_xlate_ctxtable = { .name = "ctxtable", .map = map, .table = table };
