/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection tags and registered memory.
 *
 * Compatibility: programs for Giganet's library create VIs with a null tag and pass no attributes when they register.
 * A null tag stands for "not checked", missing attributes for {no tag, no RDMA}.  The parameter `vipl_strict` refuses
 * both with VIP_INVALID_PTAG, as the specification does.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vipl/src/object.h"

/* ---- tags: a handle is made of the NIC's number and of a generation, and kept in a table of the NIC handle ---- */

static uintptr_t ptag_handle(uint32_t number)
{
	static _Atomic uint32_t generation;
	/* Relaxed: only has to differ from one to the next. */
	uintptr_t g = atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed) & VIPL_GENERATION_MASK;

	return g << VIPL_GENERATION_SHIFT | (uintptr_t)number << VIPL_INDEX_SHIFT | (uintptr_t)VIPL_PTAG << 1;
}

static uint32_t ptag_number(const struct vipl_nic *nic, VIP_PROTECTION_HANDLE handle)
{
	uintptr_t u = (uintptr_t)handle;
	uint32_t number = (uint32_t)(u >> VIPL_INDEX_SHIFT) & ((1u << VIPL_INDEX_BITS) - 1);

	return u && number <= NIC_MAX_PTAG && nic->ptag[number] == u ? number : 0;
}

bool vipl_ptag_read(const struct vipl_nic *nic, VIP_PROTECTION_HANDLE handle, uint32_t *out)
{
	uint32_t number = ptag_number(nic, handle);

	if (!number && (handle || nic->strict))
		return false;
	*out = number;
	return true;
}

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *Ptag)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	uint32_t number;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (Ptag) {
		result = vipl_return(nic_ptag_create(nic->hw, &number));
		if (result == VIP_SUCCESS) {
			nic->ptag[number] = ptag_handle(number);
			*Ptag = (VIP_PROTECTION_HANDLE)nic->ptag[number];
		}
	}
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	uint32_t number;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	number = ptag_number(nic, Ptag);
	if (number) {
		result = vipl_return(nic_ptag_destroy(nic->hw, number));
		if (result == VIP_SUCCESS)
			nic->ptag[number] = 0;
	}
	vipl_leave(nic);
	return result;
}

/* ---- memory ---- */

static VIP_RETURN attr_read(const struct vipl_nic *nic, const VIP_MEM_ATTRIBUTES *in, struct nic_mem_attr *out)
{
	static const VIP_MEM_ATTRIBUTES none;

	if (!in)
		in = &none;
	if (!vipl_ptag_read(nic, in->Ptag, &out->ptag))
		return VIP_INVALID_PTAG;
	if (in->EnableRdmaRead && !nic->attr.rdma_read)
		return VIP_INVALID_RDMAREAD;
	out->flags = (in->EnableRdmaWrite ? NIC_MEM_RDMA_WRITE : 0) | (in->EnableRdmaRead ? NIC_MEM_RDMA_READ : 0);
	return VIP_SUCCESS;
}

/* Pinning would find a hole in the address space; so does this call, which starts no input or output. */
static bool mapped(uintptr_t at, VIP_ULONG length)
{
	static _Atomic uintptr_t page_size;
	/* Relaxed: a constant that several threads may find out. */
	uintptr_t page = atomic_load_explicit(&page_size, memory_order_relaxed);
	uintptr_t first;

	if (!page) {
		page = (uintptr_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&page_size, page, memory_order_relaxed);
	}
	first = at & ~(page - 1);
	return msync((void *)first, at - first + length, MS_ASYNC) == 0 || errno != ENOMEM;
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES *MemAttribs, VIP_MEM_HANDLE *MemHandle)
{
	uintptr_t at = (uintptr_t)VirtualAddress;
	struct vipl_nic *nic;
	struct nic_mem_attr attr;
	VIP_RETURN result;
	uint32_t handle;

	if (!at || !Length || !MemHandle || at + Length < at || !mapped(at, Length))
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_enter(NicHandle);
	if (!nic)
		return VIP_INVALID_PARAMETER;
	result = attr_read(nic, MemAttribs, &attr);
	if (result == VIP_SUCCESS)
		result = vipl_return(nic_mem_register(nic->hw, at, Length, &attr, &handle));
	if (result == VIP_SUCCESS)
		*MemHandle = handle;
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	result = vipl_return(nic_mem_deregister(nic->hw, (uintptr_t)VirtualAddress, MemHandle));
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle,
                       VIP_MEM_ATTRIBUTES *MemAttribs)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_mem_attr attr;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (MemAttribs)
		result = vipl_return(nic_mem_query(nic->hw, (uintptr_t)VirtualAddress, MemHandle, &attr));
	if (result == VIP_SUCCESS) {
		memset(MemAttribs, 0, sizeof *MemAttribs);
		MemAttribs->Ptag = attr.ptag <= NIC_MAX_PTAG ? (VIP_PROTECTION_HANDLE)nic->ptag[attr.ptag] : NULL;
		MemAttribs->EnableRdmaWrite = attr.flags & NIC_MEM_RDMA_WRITE ? VIP_TRUE : VIP_FALSE;
		MemAttribs->EnableRdmaRead = attr.flags & NIC_MEM_RDMA_READ ? VIP_TRUE : VIP_FALSE;
	}
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemHandle,
                               VIP_MEM_ATTRIBUTES *MemAttribs)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_mem_attr attr;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	if (MemAttribs)
		result = attr_read(nic, MemAttribs, &attr);
	if (result == VIP_SUCCESS)
		result = vipl_return(nic_mem_set(nic->hw, (uintptr_t)VirtualAddress, MemHandle, &attr));
	vipl_leave(nic);
	return result;
}
