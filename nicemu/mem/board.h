/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board of a group: what one member says to all others.  It lies in that member's slot, at the place of the group's entry in
 * its NIC's Group Table; its NIC writes it, the NICs of the other members look at it.  Nobody writes into another's.
 *
 * Order:
 *   [G1] `barrier` moves on with release when everything before that barrier is done; the acquire of who looks pairs with it.
 *        So it does when a leader, which has seen all others there, goes on.
 *   [G2] a part's data, then its `seq` with release; the acquire of the receiver pairs with it.
 *   [G3] parts have been read, then `taken`, or `read`, moves on with release; the root's acquire pairs with it, and makes writing
 *        on their places safe.
 *   [G4] `life` changes with release when the member leaves, before anything else does.  Who reads a word of the board reads
 *        it with acquire and `life` behind it: is that still the one it knows, then the word was this group's.
 *
 * The root of a broadcast puts parts on its places in turn, as messages on a link.  A part of up to NIC_BOARD_BRIEF bytes lies in
 * its place, one of up to NIC_BOARD_INSIDE elsewhere on the board, if all but the last few have been read; a longer one in a buffer of
 * the board's, which stay with it as long as the group lives.  `taken` is looked at when places or buffers are used up: one
 * acknowledgement serves many parts.  Who comes to a barrier says it beside that, too, and a root that looks there need not look again.
 *
 * Of a group of two, the receiver may say in `wants` that it waits for the root's next broadcast and would rather copy it from
 * the root's memory.  Then the root may put it there as one part that has the address only, and waits until that is taken.  It is a
 * hint: nothing is ordered by it, and a root that sees another number, or nothing, goes the common way; if that is the number of one
 * before, the receiver would rather, too, and a root that comes first may give it a moment.  A receiver that stops looking takes it
 * back, so that roots do not wait for one that computes.
 *
 * With it the receiver may open a claim (mem/claim.h) and say which (`claim`) and where the data are to go (`where`): the root, which
 * has to wait in any case, then copies the second half while the receiver copies the first.
 */
#ifndef NIC_MEM_BOARD_H
#define NIC_MEM_BOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/nic.h"

enum {
	NIC_BOARDS = 256,      /* of a slot; entries of its Group Table */
	NIC_BOARD_PLACES = 16, /* a power of two */
	NIC_BOARD_BRIEF = 48,
	NIC_BOARD_INSIDE = 256, /* as long as this a part need not touch another page, which costs more than its lines where processes take turns */
	NIC_BOARD_INSIDES = 8,  /* a power of two */
	NIC_BOARD_SMALL = 512, /* broadcasts of up to so many bytes share a buffer, behind those of the places: each place has its part of it */
	NIC_BOARD_PART_MAX = 24 << 10, /* bytes of a part; how long each is below that is its root's affair */
	NIC_BOARD_HOT = NIC_BOARD_PLACES + 1, /* from here on buffers take turns, and stay in the cache; those before are the places' */
	NIC_BOARD_BUFFERS = NIC_BOARD_HOT + 8,
	NIC_BOARD_WANTS = 2,   /* `wants`: so many times the number of the root's broadcast, from 1 on, and: */
	NIC_BOARD_WANTS_DIRECT = 1,
	/* `barrier`: so many times the number of barriers that the member has come to, and: */
	NIC_BOARD_BARRIER = 4,
	NIC_BOARD_HERE = 0,
	NIC_BOARD_LEADS = 1, /* it leaves the last one first, when it has seen all; others need look at nobody else */
	NIC_BOARD_GONE = 2,  /* it has */
};

/* As a part's buffer: all of the broadcast is in the root's memory; see nic_board_direct. */
#define NIC_BOARD_DIRECT UINT32_MAX

struct nic_board_part {
	_Alignas(64) _Atomic uint32_t seq; /* number of the part, from 1 on */
	uint32_t total;  /* bytes of the broadcast */
	uint32_t end;    /* of this part in it: the next one begins there */
	uint32_t buffer; /* where its data is: + 1, of the pool; 0: on the board */
	uint8_t data[NIC_BOARD_BRIEF];
};

/* What a part with NIC_BOARD_DIRECT has as its data. */
struct nic_board_direct {
	uint64_t addr; /* of the broadcast in the root's memory */
	uint32_t own;  /* bytes of it that the receiver is to copy; the root copies what follows, if it gets the claim */
};

struct nic_board {
	_Alignas(4096) _Atomic uint32_t life; /* of the Group Table entry; odd: in use */
	_Alignas(64) _Atomic uint32_t barrier; /* that the member has come to; see above */
	_Atomic uint32_t cpu; /* the processor that it rested on last, + 1; 0: not said, which is so with a core of its own.  A hint */
	_Atomic uint32_t read; /* place of the root that was received from last, and in the lower half how many of its parts were taken before that barrier */
	struct nic_board_part part[NIC_BOARD_PLACES];
	_Alignas(64) _Atomic uint32_t wants; /* with the first words of `taken`, which are looked at together */
	_Atomic uint32_t claim; /* id of the second half's; 0: none */
	_Atomic uint64_t where; /* the receiver's buffer */
	_Atomic uint16_t taken[NIC_MAX_SLOTS]; /* parts of each member, by its place in the group: the lower half of the number */
	_Alignas(64) uint32_t buffer[NIC_BOARD_BUFFERS]; /* + 1, of the pool; 0: not taken yet; own, read after death */
	_Alignas(64) uint8_t inside[NIC_BOARD_INSIDES][NIC_BOARD_INSIDE]; /* of a part of that number, modulo */
};
_Static_assert(sizeof(struct nic_board_part) == 64, "one line");
_Static_assert(sizeof(struct nic_board) == 4096, "one page");

#endif
