/* SPDX-License-Identifier: BSD-3-Clause */
/* The DMA engine: the one place that copies between processes. */
#ifndef NIC_ENGINE_DMA_H
#define NIC_ENGINE_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct nic;
struct nic_claim;
struct nic_link;

enum nic_dma {
	NIC_DMA_OK,
	NIC_DMA_FAULT,  /* an address is not mapped */
	NIC_DMA_GONE,   /* the peer is */
	NIC_DMA_DENIED, /* no right to reach it */
};

/* What a copy that has failed with that `errno` says. */
enum nic_dma nic_dma_failure(int error);

/* Tries once whether the peer's memory can be reached; sets link->cma. */
void nic_dma_probe(struct nic *nic, struct nic_link *link);
/* Copies len bytes between local pieces and one range of the peer. */
enum nic_dma nic_dma_read(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len);
/* Is that range of the peer in the card, and so a plain copy away?  Then no right to reach the peer's memory is needed. */
bool nic_dma_plain(struct nic_link *link, uint64_t remote, size_t len);
/*
 * The ways of a transfer (ctl/rdma.c).  Of some lengths, one at a time, two of them are timed, and the faster one is gone (pace.h): which one that is
 * depends on the kernel, on the caches, on whether the data have just been written, and on the other NIC.  A long one goes as a stream or otherwise;
 * what is no stream goes by halves or alone (nic_link_races, nic_link_half_races).  A short one goes in packets or alone (nic_link_brief_races); of these few
 * are timed, since a look at the counter is a part of what they take.  Which way now?  How long did it take, that way?
 */
enum nic_way { NIC_ALONE, NIC_HALVES, NIC_STREAM, NIC_LATER /* as a stream, when a claim is free */ };
bool nic_dma_streams(const struct nic_link *link, bool write, uint32_t len);
bool nic_dma_halves(const struct nic_link *link, bool write, uint32_t len);
bool nic_dma_brief(const struct nic_link *link, bool write, uint32_t len); /* in packets */
bool nic_dma_brief_due(struct nic_link *link, bool write, uint32_t len);   /* is this one timed? */
uint64_t nic_dma_start(void);
void nic_dma_took(struct nic_link *link, bool write, uint32_t len, enum nic_way way, uint64_t began);
/*
 * Waits until the peer is through with the copy that it has claimed, or dead, or for ten seconds.  That is the time of one
 * copy, or until the peer runs again; for when a descriptor is flushed, never on the way of data.
 */
bool nic_dma_settle(struct nic *nic, const struct nic_link *link, struct nic_claim *claim);
/* The peer's range as this process sees it, when it lies in the card; NULL otherwise. */
uint8_t *nic_dma_in_card(struct nic_link *link, uint64_t remote, size_t len);
enum nic_dma nic_dma_write(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len);

#endif
