/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The release/acquire pairs of the shared formats, each with two threads on its two sides: the link ring (L1, L2), the
 * completion queue (C1), the memory map table (M1).  Runs under ThreadSanitizer, which sees any pair that is missing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "tests/check.h"

enum { PACKETS = 400000 };

static struct nic_packet ring[NIC_RING_CELLS];
static struct nic_ring_head head;
static struct nic_link tx, rx;
static _Atomic uint32_t exact;
static _Atomic uint32_t bell;
static uint64_t migrated;

/* Packets of all lengths, the long ones seldom. */
static uint32_t cells_of(uint32_t i)
{
	return i % 5 ? 1 : 1 + i / 5 % NIC_PACKET_CELLS;
}

static void *produce(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < PACKETS;) {
		uint32_t cells = cells_of(i);
		struct nic_packet *p = nic_link_reserve(&tx, cells - 1 + (i % 3 ? 0 : NIC_RING_RESERVE));

		if (!p) {
			sched_yield();
			continue;
		}
		p->op = i;
		p->vi = i >> 3;
		p->len_flags = i * 3;
		for (int k = 0; k < NIC_PAYLOAD; k++)
			p->data[k] = i + k;
		for (uint32_t c = 1; c < cells; c++) {
			nic_link_more(ring, tx.tx_pos, c)->pos = tx.tx_pos + c;
			memset(nic_link_more(ring, tx.tx_pos, c)->data, i + c, NIC_PAYLOAD_MORE);
		}
		nic_link_publish(&tx, p, cells);
		i++;
	}
	return NULL;
}

static void ring_keeps_order(void)
{
	pthread_t thread;
	uint32_t bad = 0;

	tx = (struct nic_link){ .bell = &bell, .tx = ring, .tx_head = &head.head, .tx_limit = NIC_RING_CELLS };
	rx = (struct nic_link){ .rx = ring, .rx_head = &head.head, .rx_exact = &exact, .migrates = true, .migrated_cells = &migrated };
	pthread_create(&thread, NULL, produce, NULL);
	for (uint32_t i = 0; i < PACKETS;) {
		struct nic_packet *p = nic_link_peek(&rx);

		if (!p) {
			sched_yield();
			continue;
		}
		bad += p->op != (uint8_t)i || p->vi != (uint16_t)(i >> 3) || p->len_flags != i * 3;
		for (int k = 0; k < NIC_PAYLOAD; k++)
			bad += p->data[k] != (uint8_t)(i + k);
		for (uint32_t c = 1; c < cells_of(i); c++)
			for (int k = 0; k < NIC_PAYLOAD_MORE; k++)
				bad += nic_link_more(ring, rx.rx_pos, c)->data[k] != (uint8_t)(i + c);
		nic_link_consume(&rx, cells_of(i));
		i++;
	}
	pthread_join(thread, NULL);
	CHECK_EQ(bad, 0);
	CHECK_EQ(migrated, rx.rx_told); /* what is written into cells on their way back is written before they are given back */
	CHECK(nic_link_peek(&rx) == NULL);
}

/* Positions count through 2^32. */
static void ring_wraps(void)
{
	pthread_t thread;

	memset(ring, 0, sizeof(ring));
	atomic_store(&head.head, UINT32_MAX - 1000);
	tx = (struct nic_link){ .bell = &bell, .tx = ring, .tx_head = &head.head, .tx_pos = UINT32_MAX - 1000, .tx_limit = UINT32_MAX - 1000 + NIC_RING_CELLS };
	rx = (struct nic_link){ .rx = ring, .rx_head = &head.head, .rx_pos = UINT32_MAX - 1000, .rx_told = UINT32_MAX - 1000, .rx_exact = &exact,
		.migrates = true, .migrated_cells = &migrated };
	pthread_create(&thread, NULL, produce, NULL);
	for (uint32_t i = 0; i < PACKETS;) {
		struct nic_packet *p = nic_link_peek(&rx);

		if (!p) {
			sched_yield();
			continue;
		}
		if (!CHECK_EQ(p->len_flags, i * 3))
			exit(1);
		nic_link_consume(&rx, cells_of(i));
		i++;
	}
	pthread_join(thread, NULL);
}

static struct nic_cq cq;
static uint64_t payload[1024], refused; /* refused: read after the join */

static void *complete(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= PACKETS;) {
		if (nic_load_relaxed(&cq.tail) - nic_load_acquire(&cq.head) > cq.mask) { /* full: as the NIC would see it */
			sched_yield();
			continue;
		}
		payload[i & 1023] = i * 5;
		refused += !nic_cq_publish(&cq, i);
		i++;
	}
	return NULL;
}

static void cq_keeps_order(void)
{
	pthread_t thread;
	uint64_t entry;

	cq = (struct nic_cq){ .mask = 511, .entry = calloc(512, 8) };
	pthread_create(&thread, NULL, complete, NULL);
	for (uint64_t want = 1, bad = 0; want <= PACKETS;) {
		if (!nic_cq_take(&cq, &entry)) {
			sched_yield();
			continue;
		}
		bad += entry != want || payload[want & 1023] != want * 5;
		want++;
		if (want > PACKETS)
			CHECK_EQ(bad, 0);
	}
	pthread_join(thread, NULL);
	CHECK_EQ(refused, 0);
	CHECK_EQ(cq.overflow, 0);
	free(cq.entry);
}

/* A region that comes and goes while a peer's NIC checks it: never a mixture of two lives. */
static struct nic *owner;
static _Atomic uint32_t current;
static _Atomic int stop;

static void *look(void *arg)
{
	long *seen = arg;

	while (!atomic_load(&stop)) {
		uint32_t handle = atomic_load(&current);
		/* Life k: base 0x10000 * k, length 0x1000 * k; of an odd k writable, of an even one readable. */
		for (uint64_t k = 1; k < 9; k++)
			if (nic_remote_check(owner->slot, 0, 0x10000 * k, 0x1000 * k, handle, k & 1 ? NIC_MEM_RDMA_WRITE : NIC_MEM_RDMA_READ)) {
				seen[0]++;
				seen[1] += nic_remote_check(owner->slot, 0, 0x10000 * k, 0x1000 * k + 1, handle, 0);
				seen[2] += nic_remote_check(owner->slot, 0, 0x10000 * k, 1, handle, k & 1 ? NIC_MEM_RDMA_READ : NIC_MEM_RDMA_WRITE);
			}
	}
	return NULL;
}

static void regions_are_whole(void)
{
	struct nic_vi_args args = { .attr = { .reliability = 2, .flags = 3 }, .cookie = 2 };
	long seen[3] = { 0 };
	char device[40];
	pthread_t thread;
	uint32_t vi;

	snprintf(device, sizeof(device), "stress-mmt-%d", (int)getpid());
	REQUIRE(nic_open(&(struct nic_open_args){ .device = device }, &owner) == NIC_OK);
	CHECK_EQ(nic_vi_create(owner, &args, &vi), NIC_OK);
	pthread_create(&thread, NULL, look, seen);
	for (int i = 0; i < 100000; i++) {
		uint64_t k = i % 8 + 1;
		struct nic_mem_attr attr = { .flags = k & 1 ? NIC_MEM_RDMA_WRITE : NIC_MEM_RDMA_READ };
		uint32_t handle;

		if (nic_mem_register(owner, 0x10000 * k, 0x1000 * k, &attr, &handle) != NIC_OK) {
			CHECK(!"register");
			break;
		}
		atomic_store(&current, handle);
		if (i % 512 == 0)
			sched_yield();
		nic_mem_deregister(owner, 0x10000 * k, handle);
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(seen[1], 0);
	CHECK_EQ(seen[2], 0);
	nic_close(owner);
}

int main(void)
{
	CASE(ring_keeps_order);
	CASE(ring_wraps);
	CASE(cq_keeps_order);
	CASE(regions_are_whole);
	return check_done();
}
