/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card: everything that the processes of one host share, as one sparse mapping.  Pages are used only when touched.
 *
 *   header | doorbells | slot 0 | slot 1 | … | pool state | heap state | pool buffers | heap
 *
 * The heap is behind struct nic_card_map: a process that has no address space for it maps the card without.
 * Offsets, never pointers; every index that comes out of it is masked or checked after it was copied.
 */
#ifndef NIC_MEM_CARD_H
#define NIC_MEM_CARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/mem/board.h"
#include "nicemu/mem/claim.h"
#include "nicemu/mem/conn.h"
#include "nicemu/mem/mmt.h"
#include "nicemu/mem/port.h"
#include "nicemu/mem/qnix.h"
#include "nicemu/mem/slot.h"
#include "nicemu/mem/vi.h"
#include "nicemu/nic.h"

#define NIC_CARD_MAGIC 0x3156455258494e51ull /* "QNIXREV1" */
enum {
	NIC_CARD_VERSION = 17,
	NIC_POOL_BUFFERS = 32 * 1024, /* about 1 GiB of address space */
	NIC_SLOT_BUFFERS = 16 * 1024,  /* in the hands of one slot; above, they go back to the pool */
	NIC_PAGE = 4096,
	NIC_CPU_WORDS = 16, /* sets of processors: up to 1024 of them */
	NIC_HEAP_GRANULE = 64 * 1024,   /* memory for the consumer is given out in these; pages of it take memory when touched */
	NIC_HEAP_GRANULES = 512 * 1024, /* 32 GiB of address space */
};
#define NIC_HEAP_SIZE ((uint64_t)NIC_HEAP_GRANULE * NIC_HEAP_GRANULES)

enum nic_slot_state { NIC_SLOT_FREE, NIC_SLOT_SETUP, NIC_SLOT_LIVE, NIC_SLOT_DEAD };

/* Process slot: the NIC's Process Table entry and Virtual Network Interface. */
struct nic_slot {
	/* control path; everybody reads */
	_Alignas(64) _Atomic uint32_t state; /* enum nic_slot_state */
	_Atomic uint32_t epoch;              /* counts the lives of the slot */
	_Atomic int32_t pid;
	uint32_t probe_len;
	uint64_t probe_addr;                 /* address of probe_word in the owner's private memory, for trying cross-memory attach */
	uint64_t probe_word;
	uint64_t map_base;                   /* where the owner mapped the card */
	uint64_t heap;                       /* bytes of the heap that it mapped behind it: all or 0 */
	char command[32];
	_Atomic uint32_t fenced;             /* 1: the owner's threads take part in the barrier of a sleeper (engine/wait.c) */
	_Atomic uint64_t cpus[NIC_CPU_WORDS]; /* processors that the owner may use; all 0: not known */
	char arch[16];
	uint32_t elsewhere;                  /* 1: a daemon is to run it; constant during an epoch */
	_Atomic uint32_t served;             /* life of the daemon that runs it; 0: none yet, or none any more; or one of those below */

	/* bit per slot; the owner writes */
	_Alignas(64) _Atomic uint64_t linked[NIC_MAX_SLOTS / 64]; /* holds a link with it: its slot must not be given away */
	_Atomic uint64_t pulls[NIC_MAX_SLOTS / 64];               /* can copy from it by cross-memory attach */

	_Atomic uint32_t vis;     /* VIs ever used: readers of vi[] and peer[] stop here */
	_Atomic uint32_t regions; /* likewise of mmt[] */
	_Atomic uint64_t boards[NIC_BOARDS / 64]; /* bit per board that has memory */

	/* What the slot's owner holds of the pool; only it writes, and whoever takes the slot after its death reads. */
	_Alignas(64) uint32_t nbuffers;
	_Alignas(64) _Atomic uint32_t rx_pos[NIC_MAX_SLOTS]; /* cells taken from ring[i], exactly (ring_head tells the sender lazily) */

	_Alignas(64) _Atomic uint32_t ncounters;
	_Alignas(64) uint64_t counter[NIC_MAX_COUNTERS];
	struct nic_counter counter_row[NIC_MAX_COUNTERS];

	_Alignas(NIC_PAGE) uint32_t buffer[NIC_SLOT_BUFFERS]; /* nbuffers indices: a stack */
	_Alignas(NIC_PAGE) struct nic_listen listen[NIC_LISTENERS];
	_Alignas(NIC_PAGE) struct nic_peer_req peer[NIC_VI_TABLE];
	_Alignas(NIC_PAGE) struct nic_mmt_entry mmt[NIC_MMT_ENTRIES];
	_Alignas(NIC_PAGE) struct nic_vi_ctx vi[NIC_VI_TABLE];
	_Alignas(NIC_PAGE) struct nic_ring_head ring_head[NIC_MAX_SLOTS]; /* how far this slot has read ring[i] */
	_Alignas(NIC_PAGE) struct nic_packet ring[NIC_MAX_SLOTS][NIC_RING_CELLS]; /* from slot i to this one */
	_Alignas(NIC_PAGE) struct nic_claims claims[NIC_MAX_SLOTS]; /* transfers that slot i was asked to help this one with */
	_Alignas(NIC_PAGE) struct nic_txe txq[NIC_VI_TABLE][NIC_TXQ];
	_Alignas(NIC_PAGE) struct nic_rxe rxq[NIC_VI_TABLE][NIC_RXQ];
	_Alignas(NIC_PAGE) struct nic_board board[NIC_BOARDS];
	_Alignas(NIC_PAGE) struct qnix_slot qnix;
	_Alignas(NIC_PAGE) struct nic_port port; /* the owner, and the daemon */
};

#define NIC_SERVE_FAILED 0x7FFFFFFEu /* above every life: the daemon could not begin with it */
#define NIC_NOT_SERVED 0x7FFFFFFFu  /* the daemon cannot reach the memory of the process */
#define NIC_SERVE_HOLDS 0x80000000u /* with its life: it is about to serve the slot; nobody else may have that, and it is not served yet */

/* The process that runs the slots of those with engine daemon. */
struct nic_daemon {
	_Alignas(64) _Atomic uint32_t life; /* counts daemons; the last one lives while its line is held */
	_Atomic int32_t pid;
	_Atomic uint32_t fences;            /* 1: it executes the fences of those that wake it; published with life */
	_Alignas(64) _Atomic uint32_t asleep; /* as a slot's bell: the daemon sets 1, anybody 0 */
	_Atomic uint32_t deaf;                /* always 0: the bell that its NICs have for each other */
};

/* The free part of the pool: taken and returned in batches under the card lock. */
struct nic_pool {
	_Atomic uint32_t bump;  /* buffers never used so far start here */
	_Atomic uint32_t nfree; /* a crash between the steps of take or give loses buffers, never shares them */
	uint32_t free[NIC_POOL_BUFFERS];
};

/*
 * Who has which granule of the heap; changed under the card lock only.  An extent is a run of granules of one slot of which
 * the first is marked.  KEPT ones are free, but for their slot alone: a peer may still be copying to or from them.
 */
struct nic_heap {
	uint32_t high; /* granules ever used: scans stop here.  It is raised before a granule behind it gets an owner */
	_Alignas(NIC_PAGE) uint16_t granule[NIC_HEAP_GRANULES]; /* 0: free; slot + 1 and NIC_HEAP_*: not */
};
enum { NIC_HEAP_OWNER = 0x1FF, NIC_HEAP_FIRST = 0x200, NIC_HEAP_KEPT = 0x400 };
_Static_assert((int)NIC_MAX_SLOTS <= (int)NIC_HEAP_OWNER, "every slot has a number");

struct nic_card_hdr {
	_Atomic uint64_t magic; /* written last by the creator */
	uint32_t version, header_size;
	uint64_t layout; /* hash of the sizes and offsets below: two builds that differ do not mix */
	uint64_t total;  /* bytes of the whole card, the heap included; without it where so large a file may not be made */
	uint64_t uuid;
	uint8_t addr[NIC_ADDR_LEN];
	uint8_t file; /* 1: an unlinked file, whose file system may be full; 0: a memfd */
	uint8_t pad;
	char device[NIC_DEVICE_MAX];
	_Alignas(64) _Atomic uint32_t peer_epoch; /* counts peer requests */
	_Alignas(64) _Atomic uint32_t nic_epoch;  /* counts the times a NIC has opened a link for system messages */
	_Alignas(64) _Atomic uint32_t used;       /* slots ever used: scans stop here */
	_Atomic uint32_t population;              /* counts the slots that come and go */
	struct nic_daemon daemon;
};

struct nic_card_map {
	_Alignas(NIC_PAGE) struct nic_card_hdr hdr;
	_Alignas(NIC_PAGE) struct nic_bell bell[NIC_MAX_SLOTS];
	_Alignas(NIC_PAGE) struct nic_slot slot[NIC_MAX_SLOTS];
	_Alignas(NIC_PAGE) struct nic_pool pool;
	_Alignas(NIC_PAGE) struct nic_heap heap;
	_Alignas(NIC_PAGE) uint8_t buffer[NIC_POOL_BUFFERS][NIC_BUFFER_SIZE];
};

/* The connection tables, which other slots write to. */
#define NIC_CONN_TABLES (offsetof(struct nic_slot, mmt) - offsetof(struct nic_slot, listen))

_Static_assert(sizeof(((struct nic_slot *)0)->ring[0]) % NIC_PAGE == 0, "a ring can be made writable alone");
_Static_assert(NIC_BUFFER_SIZE % 64 == 0, "buffers stay aligned");
_Static_assert((int)NIC_POOL_BUFFERS <= (int)QNIX_STAGED_MASK && NIC_BUFFER_SIZE <= 1 << (32 - QNIX_STAGED_SHIFT), "one word names a place in the pool");
_Static_assert(sizeof(struct nic_card_map) % NIC_PAGE == 0, "the heap starts on a page");
_Static_assert(offsetof(struct nic_slot, listen) % NIC_PAGE == 0, "tables start on pages");

static inline uint64_t nic_card_layout(void)
{
	const uint64_t part[] = { sizeof(struct nic_card_map), sizeof(struct nic_slot), offsetof(struct nic_slot, mmt),
		offsetof(struct nic_slot, vi), offsetof(struct nic_slot, ring), offsetof(struct nic_slot, claims), offsetof(struct nic_slot, txq),
		offsetof(struct nic_claims, seen), offsetof(struct nic_claims, reads), offsetof(struct nic_claims, reply),
		offsetof(struct nic_slot, board), offsetof(struct nic_slot, qnix), sizeof(struct qnix_slot), sizeof(struct nic_port), NIC_BOARD_PLACES,
		offsetof(struct nic_board, taken), offsetof(struct nic_board, buffer), NIC_BOARD_BUFFERS,
		offsetof(struct nic_card_map, pool), offsetof(struct nic_card_map, heap), offsetof(struct nic_card_map, buffer),
		NIC_HEAP_SIZE, NIC_CARD_VERSION, NIC_RING_CELLS, NIC_PACKET_CELLS, NIC_TXQ, NIC_RXQ, NIC_MAX_COUNTERS, NIC_SLOT_BUFFERS };
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		h = (h ^ part[i]) * 1099511628211ull;
	return h;
}

#endif
