/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between processes by cross-memory attach: whether they work, how fast they are, waiting for one that a peer has begun.
 * The copies themselves are in dma_here.c, and in dma_elsewhere.c for the daemon.
 */
#include "nicemu/engine/dma.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "nicemu/ctl/ctl.h"

enum {
	SLOW = 2600, /* ns for 8 KB */
	/*
	 * However fast a system call copies, fewer bytes than these take longer so than by way of the other NIC: of a read, a write, and
	 * of many in a row, where both ends are at work.
	 */
	GET_BRIEF = 512,
	PUT_BRIEF = 1024,
	GET_ROW = 4096,
	PUT_ROW = 8192,
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Nanoseconds that 8 KB take, of what the peer has in the card at the address that it has it: the least of some tries, in which the
 * data are near and nobody else ran; what remains is the kernel's.  Not more of them than are needed to know.
 */
static uint64_t pull_time(const struct nic *nic, const struct nic_link *link)
{
	enum { TRIES = 24, LEN = 8192 };
	_Static_assert(sizeof(link->slot->counter_row) >= LEN, "pages that exist");
	char here[LEN];
	struct iovec local = { here, LEN };
	struct iovec remote = { nic_host(link->slot->map_base + ((uintptr_t)link->slot->counter_row - (uintptr_t)nic->map)), LEN };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES && best > SLOW; i++) {
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
	const char *way = nic_param_str("rdma");

	link->half_min = 40 << 10;
	link->half_row = 24 << 10;
	link->put_max = PUT_BRIEF;
	link->put_busy = PUT_ROW;
	link->stream_busy = link->stream_mutual = GET_ROW;
	if (pull_time(nic, link) > SLOW) {
		link->stream_max = 256 << 10;
		link->stream_busy = 32 << 10;
		link->stream_mutual = 256 << 10;
		link->put_max = link->put_busy = NIC_PUT_MAX;
	}
	link->impatient = strcmp(way, "auto") == 0;
	if (link->impatient) {
		link->race_max = NIC_RACE << (NIC_RACES - 1); /* longer streams fall out of the caches everywhere */
		return;
	}
	link->stream_max = link->stream_busy = link->stream_mutual = strcmp(way, "stream") == 0 ? UINT32_MAX : 0;
	link->put_max = link->put_busy = strcmp(way, "stream") == 0 ? NIC_PUT_MAX : 0;
	link->get_max = strcmp(way, "stream") == 0 ? GET_BRIEF : 0;
	link->half_min = link->half_row = strcmp(way, "halves") == 0 ? 8 << 10 : UINT32_MAX;
}

bool nic_dma_races(const struct nic_link *link, uint32_t len)
{
	return len >= link->half_min && len <= link->race_max;
}

static uint32_t race_of(uint32_t len)
{
	uint32_t i = 0;

	while (i < NIC_RACES - 1 && len > (uint32_t)NIC_RACE << i)
		i++;
	return i;
}

bool nic_dma_streams(const struct nic_link *link, uint32_t len)
{
	return link->pace[race_of(len)].way;
}

uint64_t nic_dma_start(void)
{
	return nic_pace_clock();
}

void nic_dma_took(struct nic_link *link, uint32_t len, bool stream, uint64_t began)
{
	nic_pace_took(&link->pace[race_of(len)], stream, nic_pace_clock() - began);
}

enum nic_dma nic_dma_failure(int error)
{
	return error == EFAULT ? NIC_DMA_FAULT : error == ESRCH ? NIC_DMA_GONE : NIC_DMA_DENIED;
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
	link->get_max = GET_BRIEF;
	if (link->cma)
		tune(nic, link);
}

/*
 * A peer that is stopped stops behind its copy, at the end of the system call, and one that is killed drops its life line
 * when no thread of it can be in a system call any more.  So the limit of time is only met by one that lies, or that is stopped in the
 * middle of a short read, which is no system call.
 */
bool nic_dma_settle(struct nic *nic, const struct nic_link *link, struct nic_claim *claim)
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
		if (!nic_driver_alive(nic, link->peer, link->epoch))
			break;
		if (now() > until)
			return false;
	}
	return true;
}

uint8_t *nic_dma_in_card(struct nic_link *link, uint64_t remote, size_t len)
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

bool nic_dma_plain(struct nic_link *link, uint64_t remote, size_t len)
{
	return nic_dma_in_card(link, remote, len) != NULL;
}
