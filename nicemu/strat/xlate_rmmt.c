/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translation on the host by the memory map table (MyVIA's RMMT, mapped read-only into the process there): one look at
 * the entry that the handle names.  Memory is not paged here, so a range is one run and the virtual address is the bus
 * address.
 */
#include "nicemu/ctl/ctl.h"

static bool in_pool(const struct nic *nic, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - (uintptr_t)nic->map->buffer;

	return off < sizeof(nic->map->buffer) && len <= sizeof(nic->map->buffer) - off;
}

bool nic_mem_check(const struct nic *nic, uint64_t addr, uint64_t len, uint32_t handle, uint32_t ptag)
{
	const struct nic_mmt_entry *e = &nic->slot->mmt[handle & (NIC_MMT_ENTRIES - 1)];
	uint64_t off = addr - nic_load_relaxed(&e->base), size = nic_load_relaxed(&e->len); /* own table, here and below */
	uint32_t tag = nic_load_relaxed(&e->ptag);

	if (nic_unlikely(handle == NIC_POOL_HANDLE))
		return in_pool(nic, addr, len);
	return nic_likely(nic_load_relaxed(&e->handle) == handle && handle != 0 && off <= size && len <= size - off &&
	                  (tag == ptag || tag == 0 || ptag == 0));
}

static void *map(struct nic *nic, uint32_t ptag, const struct nic_seg *seg, uint64_t offset, uint64_t len)
{
	return nic_mem_check(nic, seg->addr + offset, len, seg->handle, ptag) ? nic_host(seg->addr + offset) : NULL;
}

const struct nic_xlate nic_xlate_rmmt = { .name = "rmmt", .map = map };
