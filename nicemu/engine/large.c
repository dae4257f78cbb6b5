/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large pages under buffers that are moved again and again.  A copy from process to process takes hold of every page of the other
 * process, 512 of them for 2 MB, and that is half of its time; of a large page it is one.  Real NICs with a table of pages gain
 * by them for the same reason.
 *
 * Which buffers are worth it the consumer knows.  What is done here happens only where the administrator lets programs ask for
 * large pages, and only to private memory all of whose pages exist already: the process does not become larger, and nothing
 * that it shares with others, a child of fork for one, is taken apart.  Contents, addresses and mappings stay as they are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

enum { PAGE = 4096, PAGES = NIC_LARGE_PAGE / PAGE };

/* The first bytes of a file, as a string; "" when it cannot be read. */
static void text_of(const char *name, char *to, size_t size)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, to, size - 1) : 0;

	to[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static bool allowed(const struct nic *nic)
{
	char enabled[64], size[32];

	if (!nic->cma || strcmp(nic_param_str("large_pages"), "off") == 0 || sysconf(_SC_PAGESIZE) != PAGE)
		return false;
	text_of("/sys/kernel/mm/transparent_hugepage/enabled", enabled, sizeof(enabled));
	text_of("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", size, sizeof(size));
	return enabled[0] && !strstr(enabled, "[never]") && atol(size) == NIC_LARGE_PAGE;
}

/* Do all pages exist, in memory and nobody else's?  The kernel tells of each, in 8 bytes. */
static bool all_there(uint64_t addr)
{
	const uint64_t present = 1ull << 63, swapped = 1ull << 62, shared = 1ull << 61, mapped_once = 1ull << 56;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), n = 0;
	uint64_t page[PAGES];

	if (fd < 0)
		return false;
	if (pread(fd, page, sizeof(page), (off_t)(addr / PAGE * sizeof(page[0]))) == sizeof(page))
		while (n < PAGES && (page[n] & (present | swapped | shared | mapped_once)) == (present | mapped_once))
			n++;
	close(fd);
	return n == PAGES;
}

int nic_mem_large(struct nic *nic, uint64_t addr)
{
	addr &= ~(uint64_t)(NIC_LARGE_PAGE - 1);
	if (!nic->large)
		nic->large = allowed(nic) ? 1 : -1;
	if (nic->large < 0 || !all_there(addr) || madvise((void *)(uintptr_t)addr, NIC_LARGE_PAGE, MADV_COLLAPSE) != 0)
		return NIC_NOT_DONE;
	nic_count(nic, large_pages, 1);
	return NIC_OK;
}
