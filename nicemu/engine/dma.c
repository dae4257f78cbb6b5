/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between processes by cross-memory attach (process_vm_readv and its counterpart), or plainly where the peer's
 * range lies in the card, which is mapped here too.
 */
#include "nicemu/engine/dma.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "nicemu/ctl/ctl.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Nanoseconds that 8 KB take, of what the peer has in the card at the address that it has it. */
static uint64_t pull_time(const struct nic *nic, const struct nic_link *link)
{
	enum { TRIES = 4, LEN = 8192 };
	_Static_assert(sizeof(link->slot->counter_row) >= LEN, "pages that exist");
	char here[LEN];
	struct iovec local = { here, LEN };
	struct iovec remote = { nic_host(link->slot->map_base + ((uintptr_t)link->slot->counter_row - (uintptr_t)nic->map)), LEN };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = now(), ns;

		if (process_vm_readv(link->pid, &local, 1, &remote, 1, 0) != LEN)
			return 0;
		ns = now() - start;
		best = ns < best ? ns : best;
	}
	return best;
}

/*
 * Which way for which size (ctl/rdma.c).  Cross-memory attach costs a system call and, for each page, what the kernel makes
 * of it: .8 us for 8 KB on some machines, 3 us on others.  Where it is slow, two plain copies through buffers, one at each
 * end, are faster up to a size at which they fall out of the caches; that comes sooner when many transfers are under way.
 */
static void tune(const struct nic *nic, struct nic_link *link)
{
	enum { SLOW = 1500 };
	const char *way = nic_param_str("rdma");

	link->half_min = 32 << 10;
	if (pull_time(nic, link) > SLOW) {
		link->stream_max = 256 << 10;
		link->stream_busy = 32 << 10;
		link->stream_mutual = 256 << 10;
	}
	if (strcmp(way, "auto") == 0)
		return;
	link->stream_max = link->stream_busy = link->stream_mutual = strcmp(way, "stream") == 0 ? UINT32_MAX : 0;
	link->half_min = strcmp(way, "halves") == 0 ? 8 << 10 : UINT32_MAX;
}

void nic_dma_probe(struct nic *nic, struct nic_link *link)
{
	uint64_t word = 0;
	struct iovec local = { &word, sizeof(word) };
	struct iovec remote = { nic_host(link->slot->probe_addr), sizeof(word) };

	link->cma = nic->cma && process_vm_readv(link->pid, &local, 1, &remote, 1, 0) == sizeof(word) &&
	            word == link->slot->probe_word;
	link->heap = link->slot->heap ? nic_card_window(nic->card) : NULL;
	link->plain = &nic->counter[NIC_C_bytes_plain];
	if (link->cma)
		tune(nic, link);
}

/*
 * A peer that is stopped stops behind its copy, at the end of the system call, and one that is killed drops its life line
 * when no thread of it can be in a system call any more.  So the limit of time is only met by one that lies.
 */
void nic_dma_settle(struct nic *nic, const struct nic_link *link, struct nic_claim *claim)
{
	enum { SPINS = 1000, LOOK = 256 };
	uint64_t until = 0;

	for (uint32_t n = 1; !(nic_claim_look(claim) & (NIC_CLAIM_DONE | NIC_CLAIM_REFUSED)); n++) { /* R2 */
		nic_cpu_relax();
		if (n < SPINS)
			continue;
		sched_yield();
		if (n % LOOK != 0)
			continue;
		until = until ? until : now() + 10000000000u;
		if (!nic_driver_alive(nic, link->peer, link->epoch) || now() > until)
			return;
	}
}

/* Local pieces from byte `skip` on. */
static unsigned rest(const struct iovec *from, unsigned n, size_t skip, struct iovec *to)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++) {
		if (skip >= from[i].iov_len) {
			skip -= from[i].iov_len;
			continue;
		}
		to[k].iov_base = (char *)from[i].iov_base + skip;
		to[k++].iov_len = from[i].iov_len - skip;
		skip = 0;
	}
	return k;
}

static enum nic_dma transfer(struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	struct iovec piece[256];
	size_t done = 0;

	if (n > 256)
		return NIC_DMA_FAULT;
	while (done < len) {
		struct iovec r = { nic_host(remote + done), len - done };
		unsigned k = rest(local, n, done, piece);
		ssize_t moved = write ? process_vm_writev(link->pid, piece, k, &r, 1, 0) : process_vm_readv(link->pid, piece, k, &r, 1, 0);

		if (moved > 0)
			done += moved;
		else if (moved < 0 && errno == EINTR)
			continue;
		else
			return moved < 0 && errno != EFAULT ? NIC_DMA_GONE : NIC_DMA_FAULT;
	}
	return NIC_DMA_OK;
}

/* The peer's range as this process sees it, when it lies in the card; NULL otherwise. */
static uint8_t *in_card(struct nic_link *link, uint64_t remote, size_t len)
{
	struct nic_slot *peer = link->slot;
	uint64_t off = remote - peer->map_base;
	uint8_t *base = (uint8_t *)peer - offsetof(struct nic_card_map, slot) - (size_t)link->peer * sizeof(struct nic_slot);

	if (link->heap && off - sizeof(struct nic_card_map) < NIC_HEAP_SIZE)
		return len <= sizeof(struct nic_card_map) + NIC_HEAP_SIZE - off ? link->heap + (off - sizeof(struct nic_card_map)) : NULL;
	if (off < offsetof(struct nic_card_map, buffer) || off >= sizeof(struct nic_card_map) || len > sizeof(struct nic_card_map) - off)
		return NULL;
	return base + off;
}

static void plain(const struct iovec *local, unsigned n, uint8_t *at, size_t len, bool write)
{
	for (unsigned i = 0; i < n && len; i++) {
		size_t part = local[i].iov_len < len ? local[i].iov_len : len;

		memcpy(write ? at : local[i].iov_base, write ? local[i].iov_base : at, part);
		at += part;
		len -= part;
	}
}

static enum nic_dma move(struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	uint8_t *at = in_card(link, remote, len);

	if (!at)
		return transfer(link, local, n, remote, len, write);
	plain(local, n, at, len, write);
	*link->plain += len;
	return NIC_DMA_OK;
}

bool nic_dma_plain(struct nic_link *link, uint64_t remote, size_t len)
{
	return in_card(link, remote, len) != NULL;
}

enum nic_dma nic_dma_read(struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len)
{
	return move(link, local, n, remote, len, false);
}

enum nic_dma nic_dma_write(struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len)
{
	return move(link, local, n, remote, len, true);
}
