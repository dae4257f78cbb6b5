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

static enum nic_dma transfer(struct nic_link *link, const struct iovec *local, unsigned n, uint64_t remote, size_t len, bool write)
{
	struct iovec piece[256];
	size_t done = 0;

	if (n > 256)
		return NIC_DMA_FAULT;
	while (done < len) {
		struct iovec r = { nic_host(remote + done), len - done };
		unsigned k = done ? rest(local, n, done, piece) : n;
		const struct iovec *l = done ? piece : local;
		ssize_t moved = write ? process_vm_writev(link->pid, l, k, &r, 1, 0) : process_vm_readv(link->pid, l, k, &r, 1, 0);

		if (moved > 0)
			done += moved;
		else if (moved < 0 && errno == EINTR)
			continue;
		else
			return nic_dma_failure(moved < 0 ? errno : EFAULT);
	}
	return NIC_DMA_OK;
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
	uint8_t *at = nic_dma_in_card(link, remote, len);

	if (!at)
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
