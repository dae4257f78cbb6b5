/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory map table of a slot (MyVIA's RMMT): one entry a registered region.  Written by the owner on the control path;
 * read by the owner's NIC for every segment and by peers' NICs for RDMA.
 *
 * Order: the owner clears `handle`, writes the other members, stores `handle` with release [M1]; a reader loads `handle`
 * with acquire, copies the entry, and loads `handle` again: equal means the copy is whole.
 */
#ifndef NIC_MEM_MMT_H
#define NIC_MEM_MMT_H

#include <stdatomic.h>
#include <stdint.h>

enum {
	NIC_MMT_BITS = 13,
	NIC_MMT_ENTRIES = 1 << NIC_MMT_BITS, /* entry 0 stays unused: no handle is 0 */
};

struct nic_mmt_entry {
	_Atomic uint64_t base; /* virtual address in the owner's process */
	_Atomic uint64_t len;
	_Atomic uint32_t ptag;
	_Atomic uint32_t flags;  /* NIC_MEM_* */
	_Atomic uint32_t handle; /* generation << NIC_MMT_BITS | index; 0: free */
	uint32_t generation;     /* of the last handle given out */
};
_Static_assert(sizeof(struct nic_mmt_entry) == 32, "two entries a line");

#endif
