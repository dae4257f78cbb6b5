/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translation on the host by the memory map table (MyVIA's RMMT, mapped read-only into the process there): one look at
 * the entry that the handle names.  Memory is not paged here, so a range is one run and the virtual address is the bus
 * address.
 */
#include "nicemu/ctl/ctl.h"

/* Not a region of this process: the pool, which is everybody's, or nothing. */
static nic_noinline bool in_pool(const struct nic *nic, uint64_t addr, uint64_t len, uint32_t handle)
{
	uint64_t off = addr - nic_host_pool(nic);

	return handle == NIC_POOL_HANDLE && off < sizeof(nic->map->buffer) && len <= sizeof(nic->map->buffer) - off;
}

static inline bool check(const struct nic *nic, uint64_t addr, uint64_t len, uint32_t handle, uint32_t ptag)
{
	const struct nic_mmt_entry *e = &nic->slot->mmt[handle & (NIC_MMT_ENTRIES - 1)];
	uint64_t off, size;
	uint32_t tag;

	if (nic_unlikely(nic_load_relaxed(&e->handle) != handle)) /* own table, here and below */
		return in_pool(nic, addr, len, handle);
	off = addr - nic_load_relaxed(&e->base);
	size = nic_load_relaxed(&e->len); /* of the unused entry 0: nothing */
	tag = nic_load_relaxed(&e->ptag);
	return nic_likely(off <= size && len <= size - off && (tag == ptag || tag == 0 || ptag == 0));
}

bool nic_mem_check(const struct nic *nic, uint64_t addr, uint64_t len, uint32_t handle, uint32_t ptag)
{
	return check(nic, addr, len, handle, ptag);
}

static void *map(struct nic *nic, uint32_t ptag, const struct nic_seg *seg, uint64_t offset, uint64_t len)
{
	return check(nic, seg->addr + offset, len, seg->handle, ptag) ? nic_host(seg->addr + offset) : NULL;
}

static uint32_t table(struct nic *nic, uint64_t addr, uint64_t len, uint64_t *out, uint32_t room)
{
	(void)nic;
	(void)len;
	if (!room)
		return 0;
	out[0] = addr;
	return 1;
}

const struct nic_xlate nic_xlate_rmmt = { .name = "rmmt", .map = map, .table = table };
