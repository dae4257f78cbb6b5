/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's way to the memory of the process it works for: bus addresses are that process's virtual addresses.  Here the
 * control program runs in that process; an engine that runs it elsewhere changes these two and nothing else.
 */
#ifndef NIC_ENGINE_HOST_H
#define NIC_ENGINE_HOST_H

#include "nicemu/util/copy.h"

struct nic;

static inline void nic_host_read(const struct nic *nic, void *to, uint64_t bus, size_t len)
{
	(void)nic;
	nic_copy(to, (const void *)(uintptr_t)bus, len);
}

static inline void nic_host_write(const struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	(void)nic;
	nic_copy((void *)(uintptr_t)bus, from, len);
}

#endif
