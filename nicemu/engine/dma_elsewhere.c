/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's DMA engine: the NIC's way to the memory of the process it works for (host.h), and copies between that process and
 * another one.  What lies in the card is mapped here and needs no system call.
 *
 * A process that has died, or an address that it does not have: what was read is zeros, which do not leave (nic_host_lost), and the
 * NIC lets go of the slot at the next look.
 */
#include "nicemu/engine/dma.h"

#include <errno.h>
#include <string.h>

#include "nicemu/ctl/ctl.h"

enum { BOUNCE = 64 << 10 };

/* ---- one process ------------------------------------------------------------------------------------------------- */

static uint8_t *in_card(const struct nic *nic, uint64_t bus, size_t len)
{
	uint64_t off = bus - nic->slot->map_base, heap = off - sizeof(*nic->map);

	if (nic->slot->heap && heap < NIC_HEAP_SIZE)
		return nic_card_window(nic->card) && len <= NIC_HEAP_SIZE - heap ? nic_card_window(nic->card) + heap : NULL;
	return off < sizeof(*nic->map) && len <= sizeof(*nic->map) - off ? (uint8_t *)nic->map + off : NULL;
}

/* Moves all of it, or fails. */
static enum nic_dma attach(pid_t pid, void *here, uint64_t there, size_t len, bool write)
{
	size_t done = 0;

	while (done < len) {
		struct iovec local = { (char *)here + done, len - done }, remote = { nic_host(there + done), len - done };
		ssize_t n = write ? process_vm_writev(pid, &local, 1, &remote, 1, 0) : process_vm_readv(pid, &local, 1, &remote, 1, 0);

		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EINTR)
			continue;
		else
			return nic_dma_failure(n < 0 ? errno : EFAULT);
	}
	return NIC_DMA_OK;
}

static pid_t host_pid(const struct nic *nic)
{
	return nic_load_relaxed(&nic->slot->pid); /* constant while this NIC has the slot */
}

void nic_host_read(struct nic *nic, void *to, uint64_t bus, size_t len)
{
	const uint8_t *card = in_card(nic, bus, len);

	if (card) {
		nic_copy(to, card, len);
	} else if (attach(host_pid(nic), to, bus, len, false) != NIC_DMA_OK) {
		memset(to, 0, len);
		nic->host_gone = true;
	}
}

void nic_host_write(struct nic *nic, uint64_t bus, const void *from, size_t len)
{
	uint8_t *card = in_card(nic, bus, len);

	if (card)
		nic_copy(card, from, len);
	else if (attach(host_pid(nic), (void *)(uintptr_t)from, bus, len, true) != NIC_DMA_OK)
		nic->host_gone = true;
}

const void *nic_host_view(struct nic *nic, uint64_t bus, size_t len, void *copy)
{
	nic_host_read(nic, copy, bus, len);
	return copy;
}

uint64_t nic_host_pool(const struct nic *nic)
{
	return nic->slot->map_base + offsetof(struct nic_card_map, buffer);
}

uint64_t nic_host_bus(const struct nic *nic, const void *p)
{
	return nic->slot->map_base + (uint64_t)((const uint8_t *)p - (const uint8_t *)nic->map);
}

/* ---- two processes ----------------------------------------------------------------------------------------------- */

static enum nic_dma peer(struct nic_link *link, void *here, uint64_t remote, size_t len, bool write)
{
	uint8_t *card = nic_dma_in_card(link, remote, len);

	if (!card)
		return attach(link->pid, here, remote, len, write);
	memcpy(write ? card : here, write ? here : card, len);
	*link->plain += len;
	return NIC_DMA_OK;
}

/* Through memory of this process, as a DMA engine has its own. */
static enum nic_dma piece(struct nic *nic, struct nic_link *link, const struct iovec *local, uint64_t remote, bool write)
{
	static uint8_t bounce[BOUNCE]; /* the daemon has one thread */
	enum nic_dma r = NIC_DMA_OK;

	for (size_t at = 0; at < local->iov_len && r == NIC_DMA_OK; at += BOUNCE) {
		size_t len = local->iov_len - at < BOUNCE ? local->iov_len - at : BOUNCE;
		uint64_t mine = (uintptr_t)local->iov_base + at;

		if (write)
			nic_host_read(nic, bounce, mine, len);
		if (nic_host_lost(nic))
			return NIC_DMA_FAULT;
		r = peer(link, bounce, remote + at, len, write);
		if (r == NIC_DMA_OK && !write)
			nic_host_write(nic, mine, bounce, len);
	}
	return r;
}

static enum nic_dma move(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	enum nic_dma r = NIC_DMA_OK;

	for (unsigned i = 0; i < n && len && r == NIC_DMA_OK; i++) {
		struct iovec part = { local[i].iov_base, local[i].iov_len < len ? local[i].iov_len : len };

		r = piece(nic, link, &part, remote, write);
		remote += part.iov_len;
		len -= part.iov_len;
	}
	return nic->host_gone ? NIC_DMA_FAULT : r;
}

enum nic_dma nic_dma_read(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len)
{
	return move(nic, link, local, n, remote, len, false);
}

enum nic_dma nic_dma_write(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len)
{
	return move(nic, link, local, n, remote, len, true);
}
