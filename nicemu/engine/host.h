/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's way to the memory of the process it works for: bus addresses are that process's virtual addresses.  What works
 * for one process runs in it, and these are plain accesses; NIC_ELSEWHERE is for the control program of the daemon, which works for
 * many, and gets there by DMA (dma_elsewhere.c).  Nothing else differs between the two.
 */
#ifndef NIC_ENGINE_HOST_H
#define NIC_ENGINE_HOST_H

#include "nicemu/util/copy.h"

struct nic;

#ifdef NIC_ELSEWHERE

void nic_host_read(struct nic *nic, void *to, uint64_t bus, size_t len);
void nic_host_write(struct nic *nic, uint64_t bus, const void *from, size_t len);
#define nic_host_read_stores nic_host_read
#define nic_host_read_owned nic_host_read
/* Where the control program sees the range: perhaps in `copy`. */
const void *nic_host_view(struct nic *nic, uint64_t bus, size_t len, void *copy);
/* That memory cannot be reached any more: what was read may be zeros instead, and must not leave. */
#define nic_host_lost(nic) nic_unlikely((nic)->host_gone)
/* Bus address of the pool, and of something in it. */
uint64_t nic_host_pool(const struct nic *nic);
uint64_t nic_host_bus(const struct nic *nic, const void *in_card);

static inline void nic_host_write_short(struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	nic_host_write(nic, bus, from, len);
}

/* What its process may poll: a byte or an aligned word is there at once, and everything before it. */
static inline void nic_host_write_polled(struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	nic_host_write(nic, bus, from, len);
}

#else

static inline void nic_host_read(const struct nic *nic, void *to, uint64_t bus, size_t len)
{
	(void)nic;
	nic_copy(to, (const void *)(uintptr_t)bus, len);
}

static inline void nic_host_read_stores(const struct nic *nic, void *to, uint64_t bus, size_t len)
{
	(void)nic;
	nic_copy_stores(to, (const void *)(uintptr_t)bus, len);
}

static inline void nic_host_read_owned(const struct nic *nic, void *to, uint64_t bus, size_t len)
{
	(void)nic;
	nic_copy_owned(to, (const void *)(uintptr_t)bus, len);
}

static inline void nic_host_write(const struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	(void)nic;
	nic_copy((void *)(uintptr_t)bus, from, len);
}

static inline void nic_host_write_short(const struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	(void)nic;
	nic_copy_short((void *)(uintptr_t)bus, from, len);
}

static inline void nic_host_write_polled(const struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	uint64_t word;
	uint32_t half;

	/* Release: pairs with the acquire of the program that polls. */
	if (len == 1) {
		__atomic_store_n((uint8_t *)(uintptr_t)bus, *(const uint8_t *)from, __ATOMIC_RELEASE);
	} else if (len == sizeof(word) && bus % sizeof(word) == 0) {
		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)(uintptr_t)bus, word, __ATOMIC_RELEASE);
	} else if (len == sizeof(half) && bus % sizeof(half) == 0) {
		memcpy(&half, from, sizeof(half));
		__atomic_store_n((uint32_t *)(uintptr_t)bus, half, __ATOMIC_RELEASE);
	} else {
		nic_host_write(nic, bus, from, len);
	}
}

static inline const void *nic_host_view(const struct nic *nic, uint64_t bus, size_t len, void *copy)
{
	(void)nic;
	(void)len;
	(void)copy;
	return (const void *)(uintptr_t)bus;
}

static inline uint64_t nic_host_bus(const struct nic *nic, const void *in_card)
{
	(void)nic;
	return (uintptr_t)in_card;
}

#define nic_host_pool(nic) ((uint64_t)(uintptr_t)(nic)->map->buffer)
#define nic_host_lost(nic) ((void)(nic), false)

#endif

#endif
