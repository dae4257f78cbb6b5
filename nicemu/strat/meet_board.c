/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every member of a group has a board in the card that all members look at (mem/board.h).  A barrier is a number that each writes
 * on its own board; it is over for who has seen it on all others, or, behind a broadcast, that its root has gone on.  A broadcast
 * is parts on the root's board: one copy in, one copy out at each receiver, and up to NIC_BOARD_PLACES parts under way
 * (meet_board_send.c, meet_board_recv.c).
 *
 * Nothing here rings for each step: who sees a barrier complete wakes those that still sleep, and somebody who is awake does (who
 * looks at a leader's board alone, wakes that), since a sleeper looks at the boards once more behind its fence (engine/wait.c);
 * so does who puts a part on its board, and who takes one that its root may wait for.
 *
 * Boards are foreign memory: numbers are copied once and checked; a buffer's index is masked; and what a receiver has copied
 * counts only if the root still is in the group afterwards, since its buffers are then still its own.
 */
#include "nicemu/obs/trace.h"
#include "nicemu/strat/meet_board.h"

enum {
	LED = 64,    /* passes in which the others let the leader of a barrier go first; it may be computing */
	EXPECTS = 512,  /* bytes of a broadcast that is asked for before it is known to be there */
	LINGERS = 4, /* times that one looks on in vain for the end of a barrier: who is missing computes, or is not where it was */
};

/* ---- joining and leaving -------------------------------------------------------------------------------------------------- */

/* G4: in the order: nobody takes the words of the next group for those of the last. */
static int join(struct nic *nic, struct nic_group *g)
{
	uint32_t i = nic_group_index(nic, g);
	struct nic_board *board = &nic->slot->board[i];

	if (!nic_card_reserve(nic->card, board, sizeof(*board)))
		return NIC_RESOURCE;
	nic_store_relaxed(&nic->slot->boards[i / 64], nic_load_relaxed(&nic->slot->boards[i / 64]) | (uint64_t)1 << (i % 64)); /* own; read after death */
	nic_store_relaxed(&board->wants, 0);
	nic_store_relaxed(&board->claim, 0);
	nic_store_relaxed(&board->cpu, 0);
	nic_store_relaxed(&board->read, (uint32_t)NIC_PLACE_ANY << 16);
	nic_store_relaxed(&board->barrier, 0); /* these are published by the release of life */
	for (uint32_t k = 0; k < NIC_BOARD_PLACES; k++)
		nic_store_relaxed(&board->part[k].seq, 0);
	for (uint32_t k = 0; k < NIC_MAX_SLOTS; k++)
		nic_store_relaxed(&board->taken[k], 0);
	nic_store_release(&board->life, g->life); /* G4; the others hear of it by a message behind this */
	g->board = board;
	return NIC_OK;
}

static void ready(struct nic *nic, struct nic_group *g)
{
	for (uint32_t i = 0; i < g->size; i++) {
		struct nic_member *m = &g->member[i];

		m->board = &nic->map->slot[m->slot & (NIC_MAX_SLOTS - 1)].board[m->table & (NIC_BOARDS - 1)];
	}
}

/* The owner may have its buffers back: it has left, or all have read them.  Its board names none that has another owner. */
static void give_buffers(struct nic *nic, struct nic_board *board)
{
	for (uint32_t i = 0; i < NIC_BOARD_BUFFERS; i++) {
		uint32_t buffer = board->buffer[i];

		board->buffer[i] = 0;
		nic_store_order();
		if (!buffer)
			continue;
		nic->buffer_kept--;
		nic_buffer_give(nic, buffer - 1);
	}
}

static void leave(struct nic *nic, struct nic_group *g)
{
	if (!g->board)
		return;
	nic_board_is_over(g);
	give_buffers(nic, g->board);
	g->board = NULL;
}

/* ---- barrier ---------------------------------------------------------------------------------------------------------------- */

/* A member that has left has been there: nobody leaves with a barrier under way. */
static bool has_come(const struct nic_member *m, uint32_t word)
{
	uint32_t at = nic_load_acquire(&m->board->barrier); /* G1 */

	return nic_likely((int32_t)(at - word) >= 0) || !nic_board_is_here(m);
}

/* From that one on; returns the first that has not come. */
static uint32_t seen(const struct nic_group *g, uint32_t i)
{
	while (i < g->size && (i == g->place || has_come(&g->member[i], nic_board_word(g, NIC_BOARD_HERE))))
		i++;
	return i;
}

static bool leads(const struct nic_group *g)
{
	return g->leader == g->place;
}

/*
 * Is the barrier over for this one?  A leader's word says it to the others, but only its own word says that it leads; otherwise
 * all boards are looked at, from where that stopped the last time.
 */
static bool is_over(const struct nic_group *g, uint32_t *from)
{
	if (!leads(g) && g->leader != NIC_PLACE_ANY) {
		const struct nic_member *m = &g->member[g->leader];
		int32_t at = (int32_t)(nic_load_acquire(&m->board->barrier) - nic_board_word(g, NIC_BOARD_HERE)); /* G1 */

		if (nic_likely(nic_board_is_here(m))) {
			if (at < NIC_BOARD_HERE || at == NIC_BOARD_LEADS)
				return false;
			if (at != NIC_BOARD_HERE)
				return true;
		}
	}
	*from = seen(g, *from);
	return *from == g->size;
}

/* For the next barrier, of those whose lines have just been read. */
static nic_noinline void note_cpus(struct nic_group *g)
{
	bool led = !leads(g) && g->leader != NIC_PLACE_ANY;

	for (uint32_t i = led ? g->leader : 0; i < (led ? g->leader + 1u : g->size); i++)
		g->member[i].cpu = nic_load_relaxed(&g->member[i].board->cpu); /* a hint */
}

/* What the others, whose lines have just been read, had taken of this one's broadcasts. */
static void note_read(struct nic_group *g)
{
	uint16_t behind = 0;

	for (uint32_t i = 0; i < g->size; i++) {
		uint32_t word = i == g->place ? 0 : nic_load_acquire(&g->member[i].board->read); /* G3 */
		uint16_t left = (uint16_t)(g->put - word);

		if (i == g->place)
			continue;
		if (word >> 16 != g->place || left > g->put - g->read)
			return;
		behind = left > behind ? left : behind;
	}
	g->read = g->put - behind;
}

/*
 * The leader has left the barrier a line's way ago, and its next broadcast, if it is as short as the last, is on its board by the time that the
 * lines asked for now are there.  One that takes longer to write must not lose them meanwhile; but where processes take turns, most of them see the end
 * of a barrier when they get a core, and that is later by far.
 */
static void expect_part(const struct nic *nic, const struct nic_group *g)
{
	if (leads(g) || g->leader == NIC_PLACE_ANY)
		return;
	if (g->lead_len <= EXPECTS || nic_board_looks(nic) == 1)
		nic_board_ask(nic, g, &g->member[g->leader]);
}

static bool barrier_look(struct nic *nic, struct nic_group *g)
{
	if (!is_over(g, &g->seen))
		return false;
	expect_part(nic, g);
	if (nic_unlikely(nic->waiting.cpu))
		note_cpus(g);
	if (g->read != g->put && g->seen == g->size)
		note_read(g);
	if (leads(g))
		nic_store_release(&g->board->barrier, nic_board_word(g, NIC_BOARD_GONE)); /* G1 */
	nic_board_wake_all(nic, g);
	nic_group_barrier_over(nic, g, QNIX_DONE);
	return true;
}

/*
 * A barrier behind a broadcast often stands before the next one of the same root.  Of two, the other one knows that it is over as soon as it sees that
 * the root has come, and a short broadcast tells it no later than a word could that the root has gone on.
 */
static uint16_t next_leader(const struct nic *nic, const struct nic_group *g)
{
#ifdef NIC_ELSEWHERE
	(void)nic, (void)g;
	return NIC_PLACE_ANY; /* the processes do not wait for each other, but for this NIC */
#else
	return nic_board_is_awaited(nic, g) ? NIC_PLACE_ANY : g->lead;
#endif
}

static void come(struct nic *nic, struct nic_group *g)
{
	g->seen = g->led = g->lingered = 0;
	g->leader = next_leader(nic, g);
	if (g->lead != NIC_PLACE_ANY && g->lead != g->place)
		nic_store_release(&g->board->read, (uint32_t)g->lead << 16 | (uint16_t)g->member[g->lead].parts); /* G3 */
	g->lead = NIC_PLACE_ANY;
	nic_store_relaxed(&g->board->cpu, nic->waiting.cpu); /* a hint */
	nic_store_release(&g->board->barrier, nic_board_word(g, leads(g) ? NIC_BOARD_LEADS : NIC_BOARD_HERE)); /* G1 */
	if (leads(g) || g->leader == NIC_PLACE_ANY)
		return;
	atomic_signal_fence(memory_order_seq_cst); /* B1, as in wake_all: nobody else looks at whether all are there */
	nic_board_wake(nic, g->member[g->leader].slot);
}

static void barrier(struct nic *nic, struct nic_group *g)
{
	uint32_t left = nic_board_looks(nic);
	bool mine = g->lead == g->place, awaits = g->lead == !g->place && nic_board_is_awaited(nic, g);

	nic_trace(nic, BARRIER_1, g->name, g->barriers);
	come(nic, g);
	if (mine)
		nic_board_prepare(nic, g);
	while (left--) {
		if (barrier_look(nic, g)) {
			if (awaits)
				nic_board_await(nic, g);
			return;
		}
		nic_cpu_look_over();
	}
	nic_group_busy(nic, g);
}

/* ---- passes, and ends ---------------------------------------------------------------------------------------------------------- */

static int run(struct nic *nic, struct nic_group *g)
{
	int n = 0;

	if (g->waiting) {
		if (nic_unlikely(!leads(g) && ++g->led > LED))
			g->leader = NIC_PLACE_ANY; /* all are looked at then: the order is all that it decides */
		n += barrier_look(nic, g);
	}
	n += nic_board_send_run(nic, g);
	return n + nic_board_recv_run(nic, g);
}

static bool busy(const struct nic_group *g)
{
	return g->waiting || g->sends || g->recvs;
}

static bool owes(const struct nic *nic, const struct nic_group *g)
{
	(void)nic;
	return g->complete && (g->sends || nic_board_unread(g));
}

static bool moves(const struct nic *nic, const struct nic_group *g)
{
	if (!g->complete)
		return false;
	if (g->broken)
		return g->leaving && !nic_board_unread(g);
	if (g->waiting) {
		uint32_t from = g->seen;

		if (is_over(g, &from))
			return true;
	}
	return (g->sends && nic_board_send_moves(nic, g)) || nic_board_recv_moves(nic, g);
}

static bool may_be_on(const struct nic_member *m, uint32_t cpu)
{
	return !m->cpu || m->cpu == cpu;
}

/* Must one that was on that processor, or nobody knows where, come or go on before the barrier is over for this one? */
static bool needs(const struct nic_group *g, uint32_t cpu)
{
	uint32_t word = nic_board_word(g, NIC_BOARD_HERE);

	if (!leads(g) && g->leader != NIC_PLACE_ANY && may_be_on(&g->member[g->leader], cpu))
		return true;
	for (uint32_t i = g->seen; i < g->size; i++)
		if (i != g->place && may_be_on(&g->member[i], cpu) && !has_come(&g->member[i], word))
			return true;
	return false;
}

/*
 * Where processes take turns, a switch to another one and back takes longer than the last word of a barrier, if that comes from
 * another processor: those on this one have come, and would only look, too.
 */
static bool linger(struct nic_group *g, uint32_t cpu, uint32_t looks)
{
	uint32_t from = g->seen;

	if (!g->waiting || !g->complete || g->broken || g->sends || g->recvs)
		return false;
	if (is_over(g, &from))
		return true;
	if (g->lingered == LINGERS || needs(g, cpu))
		return false;
	while (looks--)
		if (is_over(g, &from))
			return true;
	g->lingered++;
	return false;
}

/* Everything that is there.  A pass may come to a broadcast before the one that is ahead of it, and leave it to the next. */
static void run_out(struct nic *nic, struct nic_group *g)
{
	while (run(nic, g))
		;
}

static void fail_calls(struct nic *nic, struct nic_group *g)
{
	nic_board_send_fail(nic, g);
	nic_board_recv_fail(nic, g, NIC_PLACE_ANY);
}

/* What it wrote before it died counts; if it led a barrier, all the others see for themselves. */
static void lost(struct nic *nic, struct nic_group *g)
{
	g->leader = NIC_PLACE_ANY;
	run_out(nic, g);
	fail_calls(nic, g);
}

/* What it did before counts here, too; the rest will not come. */
static void left(struct nic *nic, struct nic_group *g, uint32_t place)
{
	if (!g->complete || g->broken)
		return;
	run_out(nic, g);
	if (g->waiting && !has_come(&g->member[place], nic_board_word(g, NIC_BOARD_HERE)))
		nic_group_barrier_over(nic, g, QNIX_FAILED);
	nic_board_recv_fail(nic, g, place);
}

const struct nic_meet nic_meet_board = { .name = "board", .join = join, .ready = ready, .barrier = barrier, .send = nic_board_send, .recv = nic_board_recv,
	.send_now = nic_board_send_now, .recv_now = nic_board_recv_now,
	.run = run, .busy = busy, .moves = moves, .linger = linger, .owes = owes, .lost = lost, .left = left, .end = fail_calls, .leave = leave };
