/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between the process that runs this NIC and another one by cross-memory attach (process_vm_readv and its counterpart), or
 * plainly where the peer's range lies in the card, which is mapped here too.
 */
#include "nicemu/engine/dma.h"

#include <errno.h>
#include <string.h>

#include "nicemu/ctl/ctl.h"

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

static inline ssize_t attach(const struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	struct iovec r = { nic_host(remote), len };

	return write ? process_vm_writev(link->pid, local, n, &r, 1, 0) : process_vm_readv(link->pid, local, n, &r, 1, 0);
}

/* The first call has moved so much, or failed. */
static nic_noinline enum nic_dma go_on(const struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write,
                                      ssize_t moved)
{
	struct iovec piece[256];
	size_t done = 0;

	if (n > 256)
		return NIC_DMA_FAULT;
	for (;;) {
		if (moved == 0 || (moved < 0 && errno != EINTR))
			return nic_dma_failure(moved < 0 ? errno : EFAULT);
		done += moved > 0 ? (size_t)moved : 0;
		if (done == len)
			return NIC_DMA_OK;
		moved = attach(link, piece, rest(local, n, done, piece), remote + done, len - done, write);
	}
}

static inline enum nic_dma transfer(const struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	ssize_t moved = attach(link, local, n, remote, len, write);

	return nic_likely(moved == (ssize_t)len) ? NIC_DMA_OK : go_on(link, local, n, remote, len, write, moved);
}

static nic_noinline void plain(const struct iovec *local, unsigned n, uint8_t *at, size_t len, bool write)
{
	for (unsigned i = 0; i < n && len; i++) {
		size_t part = local[i].iov_len < len ? local[i].iov_len : len;

		memcpy(write ? at : local[i].iov_base, write ? local[i].iov_base : at, part);
		at += part;
		len -= part;
	}
}

static inline enum nic_dma move(struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	uint8_t *at = nic_dma_in_card(link, remote, len);

	if (nic_likely(!at))
		return transfer(link, local, n, remote, len, write);
	plain(local, n, at, len, write);
	*link->plain += len;
	return NIC_DMA_OK;
}

enum nic_dma nic_dma_read(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len)
{
	(void)nic;
	return move(link, local, n, remote, len, false);
}

enum nic_dma nic_dma_write(struct nic *nic, struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len)
{
	(void)nic;
	return move(link, local, n, remote, len, true);
}
