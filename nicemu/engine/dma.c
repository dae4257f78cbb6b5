/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between processes by cross-memory attach: whether they work, how fast they are, waiting for one that a peer has begun.
 * The copies themselves are in dma_here.c, and in dma_elsewhere.c for the daemon.
 */
#include "nicemu/engine/dma.h"

#include <errno.h>
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/clock.h"

enum {
	/* ns for 8 KB: up to here a system call is as fast as can be; from here on it costs more than other NICs do, and from here on so does what it copies */
	FAST = 700,
	FAIR = 1500,
	SLOW = 2600,
	HALF_MIN = 40 << 10, /* bytes that are worth a half of the other NIC's, where system calls are fast, */
	HALF_MOST = 128 << 10, /* and where nothing else costs anything */
	HALF_ROW = 24 << 10,
	/*
	 * Bytes of timed transfers before streams are tried.  Until the buffers that go round, two megabytes of them, have been made and are known to both
	 * ends, that takes a millisecond more in all, which should be little of what a program reads and writes.  Where system calls are slow it is likely
	 * to be worth it: 64 KB take 2 us less then, and so do 32 MB a millisecond.
	 */
	STREAM_LATER = 256 << 20,
	STREAM_LATER_SLOW = 32 << 20,
	STREAM_MAX = 1 << 20, /* bytes: longer streams fall out of the caches; where a call is slow they may be worth it all the same */
	STREAM_MAX_SLOW = 4 << 20,
	/* What is not longer goes by way of the other NIC where it is not timed: a read, which is short, and a write; */
	GET_BRIEF = 512,
	PUT_BRIEF = 1024,
	BEHIND = 40, /* ns that a descriptor takes when its transfer is over, and a command does not */
	GET_ROW = 4096, /* and of many in a row, where both ends are at work */
	PUT_ROW = 8192,
	PUT_ROW_FAST = 4096,
	GET_FAIR = 32 << 10, /* where system calls are slow but copies are not, of one at a time: what is a stream until it has been timed; */
	PUT_FAIR = 32 << 10,
	ROW_SLOW = 4 << 20, /* and of many in a row: a call for each takes longer than two copies, until those fall out of the caches */
	/* of a message, without cross-memory attach, and where system calls are slow: it had better be sent */
	SEND_NO_CMA = 256 << 10,
	SEND_SLOW = 4 << 20,
};

/*
 * Nanoseconds that so many bytes take, of what the peer has in the card at the address that it has it: the least of some tries, in which the
 * data are near and nobody else ran; what remains is the kernel's.  Not more of them than are needed to know that it is no more than `enough`.
 */
enum { PULL_LEN = 8192 };
static uint64_t pull_time(const struct nic *nic, const struct nic_link *link, size_t len, uint64_t enough)
{
	enum { TRIES = 24, TRIES_COLD = 200 }; /* the kernel's part and the processor's clock may have to warm up: with the first peer more */
	_Static_assert(sizeof(link->slot->counter_row) >= PULL_LEN, "pages that exist");
	char here[PULL_LEN];
	struct iovec local = { here, len };
	struct iovec remote = { nic_host(link->slot->map_base + ((uintptr_t)link->slot->counter_row - (uintptr_t)nic->map)), len };
	uint64_t best = UINT64_MAX;

	for (int i = nic->nactive ? TRIES : TRIES_COLD; i && best > enough; i--) {
		uint64_t start = nic_clock_kernel(), ns;

		if (process_vm_readv(link->pid, &local, 1, &remote, 1, 0) != (ssize_t)len)
			return 0;
		ns = nic_clock_kernel() - start;
		best = ns < best ? ns : best;
	}
	return best;
}

/*
 * From how many bytes on two halves are worth it.  They save half of what is copied, and cost about a system call more, the other NIC's, which
 * begins later.  Where a system call costs much beside the copy that is late.
 */
static uint32_t half_min(uint64_t call, uint64_t pull)
{
	uint64_t copy = pull > call ? pull - call : 1, from = 2 * (call * 9 / 10 + 200) * PULL_LEN / copy;

	return (uint32_t)(from < HALF_MIN ? HALF_MIN : from < HALF_MOST ? from : HALF_MOST);
}

/*
 * Which way for which size (ctl/rdma.c).  Cross-memory attach costs a system call and, for each page, what the kernel makes
 * of it: .8 us for 8 KB on some machines, 3 us on others.  Where it is slow, two plain copies through buffers, one at each
 * end, are faster up to a size at which they fall out of the caches; that comes sooner when many transfers are under way.
 */
static void tune(const struct nic *nic, struct nic_link *link)
{
	const char *way = nic_param_str("rdma");
	uint64_t pull = pull_time(nic, link, PULL_LEN, FAST);

	link->half_min = HALF_MIN;
	link->half_row = HALF_ROW;
	link->put_max = PUT_BRIEF;
	link->put_busy = pull > FAST ? PUT_ROW : PUT_ROW_FAST;
	link->stream_busy = GET_ROW;
	if (pull > FAIR) {
		link->half_min = half_min(pull_time(nic, link, 1, 0), pull);
		link->half_row = (uint32_t)((uint64_t)link->half_min * HALF_ROW / HALF_MIN);
		link->stream_max = GET_FAIR;
		link->put_max = PUT_FAIR;
		link->put_busy = link->stream_busy = ROW_SLOW;
		link->send_max = SEND_SLOW;
	}
	if (pull > SLOW)
		link->stream_max = 256 << 10;
	link->impatient = strcmp(way, "auto") == 0;
	if (link->impatient) {
		if (!nic_ticks()) /* without a counter the first guess would be all there is: by length, then */
			return;
		link->race_max = pull > FAIR ? STREAM_MAX_SLOW : STREAM_MAX;
		link->stream_later = pull > FAIR ? STREAM_LATER_SLOW : STREAM_LATER;
		link->half_race_max = NIC_RACE << (NIC_HALF_RACES - 1); /* of longer transfers a half is worth it everywhere */
		link->brief_race_max[0] = link->brief_race_max[1] = NIC_RACE_ABOVE;
		return;
	}
	link->stream_max = link->stream_busy = strcmp(way, "stream") == 0 ? UINT32_MAX : 0;
	link->put_max = link->put_busy = strcmp(way, "stream") == 0 ? NIC_PUT_MAX : 0;
	link->get_max = strcmp(way, "stream") == 0 ? GET_BRIEF : 0;
	link->send_max = 0;
	link->half_min = link->half_row = strcmp(way, "halves") == 0 ? 8 << 10 : UINT32_MAX;
}

static uint32_t class_of(uint32_t len, uint32_t classes)
{
	uint32_t i = 0;

	while (i < classes - 1 && len > (uint32_t)NIC_RACE << i)
		i++;
	return i;
}

bool nic_dma_streams(const struct nic_link *link, bool write, uint32_t len)
{
	return link->pace[write][class_of(len, NIC_RACES)].way;
}

bool nic_dma_halves(const struct nic_link *link, bool write, uint32_t len)
{
	return link->half_pace[write][class_of(len, NIC_HALF_RACES)].way;
}

static uint32_t brief_class_of(uint32_t len)
{
	static const uint32_t most[NIC_BRIEF_RACES - 1] = { 32, 256, 512, 1024, 2048, 4096, 8192 };
	uint32_t i = 0;

	while (i < NIC_BRIEF_RACES - 1 && len > most[i])
		i++;
	return i;
}

bool nic_dma_brief(const struct nic_link *link, bool write, uint32_t len)
{
	return link->brief_pace[write][brief_class_of(len)].way;
}

bool nic_dma_brief_due(struct nic_link *link, bool write, uint32_t len)
{
	uint32_t class = brief_class_of(len);
	const struct nic_pace *p = &link->brief_pace[write][class];

	return p->trial || !p->period || ++link->briefs[write][class] % NIC_BRIEF_EVERY == 0;
}

uint64_t nic_dma_start(void)
{
	return nic_ticks();
}

static uint64_t ticks_behind(void)
{
	return nic_clock_scale ? ((uint64_t)BEHIND << 32) / nic_clock_scale : 0;
}

void nic_dma_took(struct nic_link *link, bool write, uint32_t len, enum nic_way way, uint64_t began)
{
	uint64_t ticks = nic_ticks() - began;

	if (nic_link_races(link, len)) {
		nic_pace_took(&link->pace[write][class_of(len, NIC_RACES)], way == NIC_STREAM, ticks);
		link->stream_later -= len < link->stream_later ? len : link->stream_later;
	}
	if (nic_link_brief_races(link, write, len))
		nic_pace_took(&link->brief_pace[write][brief_class_of(len)], way == NIC_STREAM, ticks + (way == NIC_STREAM ? ticks_behind() : 0));
	if (way != NIC_STREAM && nic_link_half_races(link, len))
		nic_pace_took(&link->half_pace[write][class_of(len, NIC_HALF_RACES)], way == NIC_HALVES, ticks);
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
	link->send_max = link->cma || strcmp(nic_param_str("rdma"), "auto") != 0 ? 0 : SEND_NO_CMA;
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
		until = until ? until : nic_clock_kernel() + 10000000000u;
		if (!nic_driver_alive(nic, link->peer, link->epoch))
			break;
		if (nic_clock_kernel() > until)
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
