/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/* What the files of meet_board share: meet_board.c has barriers, and calls the other two for broadcasts. */
#ifndef NIC_STRAT_MEET_BOARD_H
#define NIC_STRAT_MEET_BOARD_H

#include "nicemu/ctl/group.h"

enum {
	NIC_BOARD_LOOKS = 1000,     /* at once, when there is a core for each: some microseconds */
	NIC_BOARD_PART = 8 << 10,   /* bytes of a part: members with a core each copy one into and another one out of the board at once */
	NIC_BOARD_PART_CROWDED = 16 << 10, /* where they take turns nothing is gained by that, and more parts are more work; NIC_BOARD_PART_MAX: of a NIC elsewhere */
	NIC_BOARD_START = 256,      /* bytes behind the first page border in its buffer */
	NIC_BOARD_DIRECT_MIN = 12 << 10, /* bytes of a broadcast that may be copied from the root's memory */
	NIC_BOARD_ASKED = 4096,  /* bytes whose lines are asked for before they are looked at, at most */
	NIC_BOARD_AWAITED = 128, /* bytes of a broadcast that is awaited in the barrier before it, at most */
	NIC_BOARD_MASK = NIC_BOARD_PLACES - 1,
};

_Static_assert(NIC_PAGE + NIC_BOARD_START + NIC_BOARD_PART_MAX <= NIC_BUFFER_SIZE && NIC_BOARD_PLACES * NIC_BOARD_SMALL <= NIC_BOARD_PART && NIC_BOARD_ASKED <= NIC_BOARD_PART, "there is room");

static inline uint32_t nic_board_looks(const struct nic *nic)
{
#ifdef NIC_ELSEWHERE
	(void)nic;
	return 1; /* others are served, too */
#else
	return nic_likely(!nic->waiting.crowded) ? NIC_BOARD_LOOKS : 1;
#endif
}

/* Does a barrier that begins now stand between two short broadcasts, in a group of two whose processes have cores of their own? */
static inline bool nic_board_is_awaited(const struct nic *nic, const struct nic_group *g)
{
	return g->size == 2 && g->lead != NIC_PLACE_ANY && g->lead_len <= NIC_BOARD_AWAITED && nic_board_looks(nic) > 1;
}

/* G4: does the word that was read just now, with acquire, belong to this group still? */
static inline bool nic_board_is_here(const struct nic_member *m)
{
	return nic_load_relaxed(&m->board->life) == m->life; /* behind an acquire */
}

/* Before this process does anything else with what its board names. */
static inline void nic_board_is_over(const struct nic_group *g)
{
	nic_store_release(&g->board->life, (uint32_t)g->life + 1); /* G4: pairs with the fence in was_here */
	atomic_thread_fence(memory_order_release);
}

static inline void nic_board_wake(struct nic *nic, uint32_t slot)
{
	struct nic_link *link = nic->link[slot & (NIC_MAX_SLOTS - 1)];

	if (link && nic_unlikely(nic_load_relaxed(link->bell))) /* B1: as in nic_link_publish */
		nic_bell_ring(link);
}

/* What has just been published may end somebody's sleep. */
static inline void nic_board_wake_all(struct nic *nic, const struct nic_group *g)
{
	atomic_signal_fence(memory_order_seq_cst); /* B1: no instruction; pairs with the barrier in nic_wait_doze */
	for (uint32_t i = 0; i < g->size; i++)
		if (i != g->place)
			nic_board_wake(nic, g->member[i].slot);
}

static inline uint32_t nic_board_word(const struct nic_group *g, uint32_t state)
{
	return g->barriers * NIC_BOARD_BARRIER | state;
}

/*
 * The place in a buffer for the part that comes after so many, of a broadcast of `total` bytes.  It begins behind the first page border: short ones touch one
 * page.  Not right behind: programs often have their data just there, and string instructions take what is up to 64 bytes
 * farther on in its page than what it is copied from, or the other way round, for an overlap, and the slow way.
 */
static inline uint8_t *nic_board_place(const struct nic *nic, uint32_t buffer, uint32_t before, uint32_t total)
{
	uintptr_t border = ((uintptr_t)nic_buffer(nic, buffer - 1) + NIC_PAGE - 1) & ~(uintptr_t)(NIC_PAGE - 1);

	return (uint8_t *)border + NIC_BOARD_START + (total <= NIC_BOARD_SMALL ? (before & NIC_BOARD_MASK) * NIC_BOARD_SMALL : 0);
}

/* Where the data is of the part that comes after so many, of a broadcast of `total` bytes, more than NIC_BOARD_BRIEF; `buffer`: as the part says. */
static inline const uint8_t *nic_board_data(const struct nic *nic, const struct nic_board *board, uint32_t before, uint32_t total, uint32_t buffer)
{
	if (!buffer && total <= NIC_BOARD_INSIDE)
		return board->inside[before & (NIC_BOARD_INSIDES - 1)];
	return nic_board_place(nic, buffer, before, total);
}

/* Asks for the first lines of the root's next part, if it is as long as the last broadcast's.  Where its data lies is a guess, of which the wrong ones cost time only. */
static inline void nic_board_ask(const struct nic *nic, const struct nic_group *g, const struct nic_member *root)
{
	uint32_t i = root->parts & NIC_BOARD_MASK;
	uint32_t len = g->lead_len < NIC_BOARD_ASKED ? g->lead_len : NIC_BOARD_ASKED;
	const uint8_t *data;

	nic_prefetch(&root->board->part[i]);
	if (len <= NIC_BOARD_BRIEF)
		return;
	data = nic_board_data(nic, root->board, root->parts, g->lead_len, g->buffer[i]);
	for (uint32_t k = 0; k < len; k += 64)
		nic_prefetch(data + k);
}

/* meet_board_send.c: broadcasts of this process */
void nic_board_send(struct nic *nic, struct nic_group *g, uint32_t context);
bool nic_board_send_now(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len);
void nic_board_prepare(const struct nic *nic, const struct nic_group *g); /* for one more like the last */
int nic_board_send_run(struct nic *nic, struct nic_group *g); /* a pass: how many steps */
bool nic_board_send_moves(const struct nic *nic, const struct nic_group *g); /* may there be one? */
bool nic_board_unread(const struct nic_group *g); /* is anything on the board that somebody has yet to read? */
void nic_board_send_fail(struct nic *nic, struct nic_group *g);

/* meet_board_recv.c: broadcasts of other members.  place: of the root; NIC_PLACE_ANY: all */
void nic_board_recv(struct nic *nic, struct nic_group *g, uint32_t context, uint32_t place);
bool nic_board_recv_now(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len);
void nic_board_await(const struct nic *nic, struct nic_group *g); /* the next one of the other of two, for a moment */
int nic_board_recv_run(struct nic *nic, struct nic_group *g);
bool nic_board_recv_moves(const struct nic *nic, const struct nic_group *g);
void nic_board_recv_fail(struct nic *nic, struct nic_group *g, uint32_t place);

#endif
