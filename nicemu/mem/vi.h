/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NIC memory of one virtual interface: its context and its two work-queue rings of physical descriptors.
 * The owner slot's NIC writes all of it; peers read the first line only (to check RDMA rights).
 */
#ifndef NIC_MEM_VI_H
#define NIC_MEM_VI_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/mem/slot.h"

enum {
	NIC_TXQ = 64, /* descriptors on the NIC per send queue; powers of two */
	NIC_RXQ = 256,
	NIC_VI_TABLE = 1024,
};

/* Physical descriptor of a send queue. */
struct nic_txe {
	uint64_t desc;   /* host address of the descriptor */
	uint32_t status; /* result so far; written to the descriptor when its turn comes */
	uint32_t flags;  /* NIC_TXE_* */
	uint64_t done;   /* bytes moved, across steps */
	uint64_t pad;
};
enum {
	NIC_TXE_WAIT = 1,  /* sent; an acknowledgement or an answer is due */
	NIC_TXE_ASKED = 2, /* the peer's NIC was asked to help; completes by itself, not by an acknowledgement */
	NIC_TXE_QUEUED = 8, /* in the scheduling queue */
	NIC_TXE_GIVEN = 4, /* its pool buffer is out of the consumer's hands */
	NIC_TXE_POSTED = 16, /* no descriptor: posted writes; nobody hears of its end */
	NIC_TXE_FETCH = 32, /* no descriptor: a fetch; its end is counted */
};

/* Physical descriptor of a receive queue: one segment translated; more are fetched from the host. */
struct nic_rxe {
	uint64_t desc;
	uint64_t addr;   /* first segment, local address after translation; 0: none */
	uint32_t room;   /* bytes of all segments */
	uint16_t nseg;
	uint16_t control;
	uint32_t status; /* NIC_ST_*: an error found when the descriptor was fetched */
	uint32_t pad;
};

struct nic_vi_ctx {
	/* written on the control path; peers read */
	_Alignas(256) _Atomic uint32_t state; /* enum nic_vi_state, plus NIC_VI_FREE; indexing is a shift */
	uint16_t reliability, flags;
	uint32_t max_transfer;
	uint32_t ptag;
	uint64_t cookie;
	uint64_t send_cq, recv_cq; /* host addresses of struct nic_cq; 0: none */
	uint16_t peer_slot, peer_vi;
	uint8_t gen, peer_gen; /* of this VI's connection; of the peer's */
	uint16_t no_short; /* 1: a message inside a command must not be sent: it needs an answer, or the post strategy has no such way */
	uint32_t peer_epoch; /* epoch of the peer slot when connected */
	/* owner's NIC only */
	uint32_t short_max;  /* bytes that a message of a command may have, above NIC_INLINE_MAX in a buffer; 0 while not connected */
	uint32_t from_peer;  /* nic_packet_word of a whole message from the peer; of another VI where none is taken by value */
	uint32_t to_peer;    /* the same of one to the peer */

	/* owner's NIC only */
	_Alignas(64) uint32_t rx_head;          /* receive ring: next to use */
	uint32_t rx_tail;                       /* next to fill */
	uint32_t tx_head, tx_next, tx_tail;     /* send ring: oldest incomplete, next to execute, next to fill */
	uint32_t quick_max;                     /* short_max where messages need nobody's leave, else 0 */
	uint32_t rx_quick;                      /* bytes of a message that is known to be good by value; NIC_BUFFER_SIZE: in a buffer, too; 0: not known */
	uint32_t rx_done;                       /* bytes of a message in arrival */
	uint64_t rx_spill, tx_spill;            /* host chain: first descriptor that is not on the NIC yet; 0: none */
	uint32_t rx_spilled, tx_spilled;        /* its length */
	uint32_t rx_bad;                        /* malformed descriptors in the receive ring */
	uint32_t rx_skip;                       /* 1: the rest of a message in arrival is dropped */
	uint32_t pending;                       /* 1: on the scheduler's list */
	uint32_t acks_owed;                     /* messages in place whose acknowledgement found no room */
	uint32_t reads, writes;                 /* of the send queue: transfers that the peer's NIC was asked to help with */
	uint32_t queued;                        /* sends in the scheduling queue of a NIC that has one */
	uint32_t rx_bound;                      /* receives from the head on that a message has leave to arrive in */
	uint16_t tx_number, rx_number;          /* of the next message to be asked for, and to be allowed */
	uint16_t tx_last, pad2;                 /* youngest scheduling queue entry; 0xFFFF: none */
	uint32_t fetched;                       /* fetches that are complete, since the connection was made */
	uint32_t fetch_failed;                  /* status of the first that is not, NIC_ST_*; none of those behind it counts */
};
_Static_assert(sizeof(struct nic_vi_ctx) == 256, "whole lines, a power of two");
_Static_assert(sizeof(struct nic_txe) == 32 && sizeof(struct nic_rxe) == 32, "physical descriptors");

enum { NIC_VI_FREE = 7 };

#endif
