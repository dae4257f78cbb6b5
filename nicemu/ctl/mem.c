/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection tags and memory regions: the control path of the memory map table (mem/mmt.h), and the checks on it.
 * Nothing is pinned; a page that is gone when it is needed is a fault then.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/remote.h"

/* ---- tags -------------------------------------------------------------------------------------------------------- */

int nic_ptag_create(struct nic *nic, uint32_t *out)
{
	struct nic_port_args a = { .addr = 0 };

	if (nic->remote)
		return nic_remote_created(nic, NIC_CALL_PTAG_CREATE, &a, out);
	for (uint32_t i = 1; i <= NIC_MAX_PTAG; i++)
		if (nic->ptag_use[i] == 0) {
			nic->ptag_use[i] = 1;
			*out = i;
			return NIC_OK;
		}
	return NIC_RESOURCE;
}

int nic_ptag_destroy(struct nic *nic, uint32_t ptag)
{
	if (nic->remote)
		return nic_remote_number(nic, NIC_CALL_PTAG_DESTROY, ptag);
	if (ptag == 0 || ptag > NIC_MAX_PTAG || nic->ptag_use[ptag] == 0)
		return NIC_PTAG;
	if (nic->ptag_use[ptag] > 1)
		return NIC_BUSY;
	nic->ptag_use[ptag] = 0;
	return NIC_OK;
}

bool nic_ptag_get(struct nic *nic, uint32_t ptag)
{
	if (ptag == 0)
		return true;
	if (ptag > NIC_MAX_PTAG || nic->ptag_use[ptag] == 0)
		return false;
	nic->ptag_use[ptag]++;
	return true;
}

void nic_ptag_put(struct nic *nic, uint32_t ptag)
{
	if (ptag)
		nic->ptag_use[ptag]--;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static uint32_t index_of(uint32_t handle)
{
	return handle & (NIC_MMT_ENTRIES - 1);
}

/* A free entry: a new one, or the first free one after the last found. */
static struct nic_mmt_entry *free_entry(struct nic *nic, uint32_t *index)
{
	struct nic_mmt_entry *table = nic->slot->mmt;

	if (nic->mmt_used < NIC_MMT_ENTRIES && nic->counter[NIC_C_regions] + 64 > nic->mmt_used / 2) {
		struct nic_mmt_entry *fresh = &table[nic->mmt_used];

		if (nic_card_reserve(nic->card, fresh, sizeof(*fresh))) {
			*index = nic->mmt_used++;
			nic_store_release(&nic->slot->regions, nic->mmt_used); /* pairs with nic_remote_check */
			return fresh;
		}
	}
	for (uint32_t n = 1; n < nic->mmt_used; n++) {
		nic->mmt_free = nic->mmt_free + 1 < nic->mmt_used ? nic->mmt_free + 1 : 1;
		if (nic_load_relaxed(&table[nic->mmt_free].handle) == 0) { /* own table */
			*index = nic->mmt_free;
			return &table[nic->mmt_free];
		}
	}
	return NULL;
}

int nic_mem_register(struct nic *nic, uint64_t addr, uint64_t len, const struct nic_mem_attr *attr, uint32_t *out)
{
	struct nic_mmt_entry *e;
	uint32_t index;

	if (nic->remote)
		return nic_remote_register(nic, addr, len, attr, out);
	if (addr == 0 || len == 0 || addr + len < addr)
		return NIC_PARAMETER;
	e = free_entry(nic, &index);
	if (!e)
		return NIC_RESOURCE;
	if (!nic_ptag_get(nic, attr->ptag))
		return NIC_PTAG;
	/* Below 2^18 generations, so that no handle equals NIC_POOL_HANDLE. */
	e->generation = e->generation >= (1u << (31 - NIC_MMT_BITS)) - 1 ? 1 : e->generation + 1;
	nic_store_relaxed(&e->base, addr); /* published by handle, like the rest */
	nic_store_relaxed(&e->len, len);
	nic_store_relaxed(&e->ptag, attr->ptag);
	nic_store_relaxed(&e->flags, attr->flags);
	*out = e->generation << NIC_MMT_BITS | index;
	nic_store_release(&e->handle, *out); /* M1 */
	nic_count(nic, regions, 1);
	return NIC_OK;
}

/* The region of that handle if it holds the address; NULL otherwise. */
static struct nic_mmt_entry *own_entry(const struct nic *nic, uint64_t addr, uint32_t handle)
{
	struct nic_mmt_entry *e = &nic->slot->mmt[index_of(handle)];

	if (handle == 0 || nic_load_relaxed(&e->handle) != handle) /* own table: this and the next two */
		return NULL;
	return addr - nic_load_relaxed(&e->base) < nic_load_relaxed(&e->len) ? e : NULL;
}

int nic_mem_deregister(struct nic *nic, uint64_t addr, uint32_t handle)
{
	struct nic_mmt_entry *e = own_entry(nic, addr, handle);

	if (nic->remote)
		return nic_remote_region(nic, NIC_CALL_DEREGISTER, addr, handle, &(struct nic_mem_attr){ 0 });
	if (!e)
		return NIC_PARAMETER;
	nic_store_release(&e->handle, 0); /* M1 */
	nic_ptag_put(nic, nic_load_relaxed(&e->ptag)); /* own table */
	nic_count(nic, regions, -1);
	return NIC_OK;
}

int nic_mem_query(struct nic *nic, uint64_t addr, uint32_t handle, struct nic_mem_attr *out)
{
	const struct nic_mmt_entry *e = own_entry(nic, addr, handle);

	if (nic->remote)
		return nic_remote_region((struct nic *)nic, NIC_CALL_MEM_QUERY, addr, handle, out);
	if (!e)
		return NIC_PARAMETER;
	out->ptag = nic_load_relaxed(&e->ptag); /* own table */
	out->flags = nic_load_relaxed(&e->flags);
	return NIC_OK;
}

int nic_mem_set(struct nic *nic, uint64_t addr, uint32_t handle, const struct nic_mem_attr *attr)
{
	struct nic_mmt_entry *e = own_entry(nic, addr, handle);

	if (nic->remote)
		return nic_remote_region(nic, NIC_CALL_MEM_SET, addr, handle, &(struct nic_mem_attr){ attr->ptag, attr->flags });
	if (!e)
		return NIC_PARAMETER;
	if (!nic_ptag_get(nic, attr->ptag))
		return NIC_PTAG;
	nic_ptag_put(nic, nic_load_relaxed(&e->ptag)); /* own table */
	nic_store_release(&e->handle, 0); /* M1: peers that look meanwhile find no such region */
	nic_store_relaxed(&e->ptag, attr->ptag);
	nic_store_relaxed(&e->flags, attr->flags);
	nic_store_release(&e->handle, handle); /* M1 */
	return NIC_OK;
}

/*
 * May a peer's VI reach that range of `peer`, for `need` (NIC_MEM_RDMA_*)?  Asked by the initiator's NIC; the table is
 * foreign memory, so it is copied first (M1) and then checked.
 */
bool nic_remote_check(const struct nic_slot *peer, uint32_t vi, uint64_t addr, uint64_t len, uint32_t handle, uint32_t need)
{
	const struct nic_mmt_entry *e = &peer->mmt[index_of(handle)];
	const struct nic_vi_ctx *ctx = &peer->vi[vi & (NIC_VI_TABLE - 1)];
	uint32_t seen, tag, flags;
	uint64_t base, size;

	/* Acquire: pairs with the release of these in mem.c and vi.c; what lies beyond was never written. */
	if (index_of(handle) >= nic_load_acquire(&peer->regions) || vi >= nic_load_acquire(&peer->vis))
		return false;
	seen = nic_load_acquire(&e->handle); /* M1 */
	base = nic_load_relaxed(&e->base);
	size = nic_load_relaxed(&e->len);
	tag = nic_load_relaxed(&e->ptag);
	flags = nic_load_relaxed(&e->flags);
	atomic_thread_fence(memory_order_acquire); /* the copies are read before handle is read again */
	if (handle == 0 || seen != handle || nic_load_relaxed(&e->handle) != handle)
		return false;
	if ((flags & need) != need || (ctx->flags & need) != need)
		return false;
	if (tag && ctx->ptag && tag != ctx->ptag)
		return false;
	return addr - base <= size && len <= size - (addr - base);
}
