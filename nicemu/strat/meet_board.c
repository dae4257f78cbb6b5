/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every member of a group has a board in the card that all members look at (mem/board.h).  A barrier is a number that each writes
 * on its own board; it is over for who has seen it on all others, or, behind a broadcast, that its root has gone on.  A broadcast
 * is parts on the root's board: one copy in, one copy out at each receiver, and up to NIC_BOARD_PLACES parts under way.
 *
 * Nothing here rings for each step: who sees a barrier complete wakes those that still sleep, and somebody who is awake does (who
 * looks at a leader's board alone, wakes that), since a sleeper looks at the boards once more behind its fence (engine/wait.c);
 * so does who puts a part on its board, and who takes one that its root may wait for.
 *
 * Boards are foreign memory: numbers are copied once and checked; a buffer's index is masked; and what a receiver has copied
 * counts only if the root still is in the group afterwards, since its buffers are then still its own.
 *
 * Two copies by way of a buffer need no system call, but move each line from one core to the other.  One copy from process to process
 * (cross-memory attach) moves those lines only that the receiver's cache does not have: of data that the root has not written
 * since the last time, none.  So in a group of two the receiver of a long broadcast compares both ways, and says which it wants
 * (`recv_either`).  With more receivers one copy into the buffers serves all.
 */
#include "nicemu/ctl/group.h"
#include "nicemu/engine/dma.h"
#include "nicemu/engine/host.h"
#include "nicemu/obs/trace.h"

enum {
	LOOKS = 2000,          /* at once, when there is a core for each: some microseconds */
	PART_SHORT = 4096,     /* bytes of a part of a broadcast of up to ... */
	PART_SHORT_MAX = 8192,
	PART_LONG = 8192,
	FEW = 4,               /* buffers that broadcasts of up to ... take turns with: they stay in the cache */
	FEW_MAX = 16 << 10,
	SOME = NIC_BOARD_BUFFERS - NIC_BOARD_HOT,
	SOME_MAX = 64 << 10,
	AHEAD = 2048,          /* bytes of a part's buffer that are asked for ahead */
	TELL = 4,              /* parts that are acknowledged together */
	DIRECT_MIN = 12 << 10, /* bytes of a broadcast that may be copied from the root's memory */
	DIRECT_LOOKS = 16 * LOOKS, /* of its root, until it is; mostly one copy's time */
	WANTS_LOOKS = LOOKS / 4,   /* of the root, for a receiver that wanted the last one so */
	LED = 64,              /* passes in which the others let the leader of a barrier go first; it may be computing */
	MASK = NIC_BOARD_PLACES - 1,
};
_Static_assert(PART_SHORT_MAX / PART_SHORT <= FEW && FEW_MAX / PART_LONG <= FEW && SOME_MAX / PART_LONG <= SOME,
               "no broadcast waits for buffers of its own");

static uint32_t looks(const struct nic *nic)
{
#ifdef NIC_ELSEWHERE
	(void)nic;
	return 1; /* others are served, too */
#else
	return nic_likely(!nic->waiting.crowded) ? LOOKS : 1;
#endif
}

static uint32_t part_size(uint32_t total)
{
	return total <= PART_SHORT_MAX ? PART_SHORT : PART_LONG;
}

/* G4: does the word that was read just now, with acquire, belong to this group still? */
static bool is_here(const struct nic_member *m)
{
	return nic_load_relaxed(&m->board->life) == m->life; /* behind an acquire */
}

static void wake(struct nic *nic, uint32_t slot)
{
	struct nic_link *link = nic->link[slot & (NIC_MAX_SLOTS - 1)];

	if (link && nic_unlikely(nic_load_relaxed(link->bell))) /* B1: as in nic_link_publish */
		nic_bell_ring(link);
}

/* What has just been published may end somebody's sleep. */
static void wake_all(struct nic *nic, const struct nic_group *g)
{
	atomic_signal_fence(memory_order_seq_cst); /* B1: no instruction; pairs with the barrier in nic_wait_doze */
	for (uint32_t i = 0; i < g->size; i++)
		if (i != g->place)
			wake(nic, g->member[i].slot);
}

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
		if (buffer)
			nic_buffer_give(nic, buffer - 1);
	}
}

static void fail_recv(struct nic *nic, const struct nic_group *g, uint32_t call)
{
	nic_doorbell(nic, true, NIC_CALL_FIRST + call, nic->groups->recv[call].doorbell, QNIX_FAILED, nic_group_why(g));
}

static void fail_calls(struct nic *nic, struct nic_group *g)
{
	for (; g->sends; g->sends &= g->sends - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(g->sends);

		if (nic->groups->send[call].direct) /* what is copied from its memory from now on does not count */
			nic_store_release(&g->board->life, (uint32_t)g->life + 1); /* G4: pairs with the fence in was_here */
		nic_doorbell(nic, false, NIC_CALL_FIRST + call, nic->groups->send[call].doorbell, QNIX_FAILED, nic_group_why(g));
	}
	for (; g->recvs; g->recvs &= g->recvs - 1)
		fail_recv(nic, g, (uint32_t)__builtin_ctz(g->recvs));
}

static void leave(struct nic *nic, struct nic_group *g)
{
	if (!g->board)
		return;
	nic_store_release(&g->board->life, (uint32_t)g->life + 1); /* G4: pairs with the fence in was_here */
	atomic_thread_fence(memory_order_release);
	give_buffers(nic, g->board);
	g->board = NULL;
}

/* ---- barrier ---------------------------------------------------------------------------------------------------------------- */

static uint32_t word(const struct nic_group *g, uint32_t state)
{
	return g->barriers * NIC_BOARD_BARRIER | state;
}

/* A member that has left has been there: nobody leaves with a barrier under way. */
static bool has_come(const struct nic_member *m, uint32_t word)
{
	uint32_t at = nic_load_acquire(&m->board->barrier); /* G1 */

	return nic_likely((int32_t)(at - word) >= 0) || !is_here(m);
}

/* From that one on; returns the first that has not come. */
static uint32_t seen(const struct nic_group *g, uint32_t i)
{
	while (i < g->size && (i == g->place || has_come(&g->member[i], word(g, NIC_BOARD_HERE))))
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
		int32_t at = (int32_t)(nic_load_acquire(&m->board->barrier) - word(g, NIC_BOARD_HERE)); /* G1 */

		if (nic_likely(is_here(m))) {
			if (at < NIC_BOARD_HERE || at == NIC_BOARD_LEADS)
				return false;
			if (at != NIC_BOARD_HERE)
				return true;
		}
	}
	*from = seen(g, *from);
	return *from == g->size;
}

static bool barrier_look(struct nic *nic, struct nic_group *g)
{
	if (!is_over(g, &g->seen))
		return false;
	if (leads(g))
		nic_store_release(&g->board->barrier, word(g, NIC_BOARD_GONE)); /* G1 */
	wake_all(nic, g);
	nic_group_barrier_over(nic, g, QNIX_DONE);
	return true;
}

/* A barrier behind a broadcast often stands before the next one of the same root. */
static uint16_t next_leader(const struct nic_group *g)
{
#ifdef NIC_ELSEWHERE
	(void)g;
	return NIC_PLACE_ANY; /* the processes do not wait for each other, but for this NIC */
#else
	return g->lead;
#endif
}

static void come(struct nic *nic, struct nic_group *g)
{
	g->seen = g->led = 0;
	g->leader = next_leader(g);
	g->lead = NIC_PLACE_ANY;
	nic_store_release(&g->board->barrier, word(g, leads(g) ? NIC_BOARD_LEADS : NIC_BOARD_HERE)); /* G1 */
	if (leads(g) || g->leader == NIC_PLACE_ANY)
		return;
	atomic_signal_fence(memory_order_seq_cst); /* B1, as in wake_all: nobody else looks at whether all are there */
	wake(nic, g->member[g->leader].slot);
}

static void barrier(struct nic *nic, struct nic_group *g)
{
	uint32_t left = looks(nic);

	nic_trace(nic, BARRIER_1, g->name, g->barriers);
	come(nic, g);
	while (left--)
		if (barrier_look(nic, g))
			return;
	nic_group_busy(nic, g);
}

/* ---- broadcast: the root ---------------------------------------------------------------------------------------------------- */

/* How many of this member's parts that one has read; a number that cannot be is none. */
static uint32_t has_read(const struct nic_group *g, const struct nic_member *m)
{
	uint32_t n = nic_load_acquire(&m->board->taken[g->place]); /* G3 */

	if (nic_unlikely(m->left || !is_here(m)))
		return g->put;
	return g->put - n <= g->put - g->read ? n : g->read;
}

static uint32_t read_by_all(const struct nic_group *g)
{
	uint32_t n = g->put;

	for (uint32_t i = 0; i < g->size && n != g->read; i++)
		if (i != g->place) {
			uint32_t one = has_read(g, &g->member[i]);

			n = g->put - one > g->put - n ? one : n;
		}
	return n;
}

/* For so many more parts. */
static bool has_places(struct nic_group *g, uint32_t n)
{
	if (nic_likely(g->put + n - g->read <= NIC_BOARD_PLACES))
		return true;
	g->read = read_by_all(g);
	return g->put + n - g->read <= NIC_BOARD_PLACES;
}

/* Which buffer is that of the part that comes after so many: of its place, or one of `turns` that take turns. */
static uint32_t buffer_of(uint32_t turns, uint32_t before, uint32_t total)
{
	if (total <= NIC_BOARD_SMALL)
		return NIC_BOARD_PLACES;
	return turns == NIC_BOARD_PLACES ? before & MASK : NIC_BOARD_HOT + (before & (turns - 1));
}

/* Where the data of that part begins in its buffer. */
static uint32_t start_of(uint32_t before, uint32_t total)
{
	return total <= NIC_BOARD_SMALL ? (before & MASK) * NIC_BOARD_SMALL : 0;
}

/* Has everybody read, by that number, what was put there last?  The parts of the shared one go with the places. */
static bool is_read(const struct nic_group *g, uint32_t buffer, uint32_t read)
{
	return buffer == NIC_BOARD_PLACES || g->used[buffer] - read - 1 >= g->put - read;
}

/* Are the buffers of a whole broadcast read, when so many take turns? */
static bool are_read(const struct nic_group *g, uint32_t turns, uint32_t total, uint32_t read)
{
	for (uint32_t i = 0; i * part_size(total) < total; i++)
		if (!is_read(g, buffer_of(turns, g->put + i, total), read))
			return false;
	return true;
}

/*
 * So many buffers take turns for a broadcast that begins now.  Where processes take turns, too, its root had better not wait for
 * those that have not read the last ones.
 */
static uint32_t turns_of(const struct nic *nic, const struct nic_group *g, uint32_t total, uint32_t read)
{
	uint32_t turns = total <= FEW_MAX ? FEW : total <= SOME_MAX ? SOME : NIC_BOARD_PLACES;

	return nic_likely(looks(nic) > 1) || are_read(g, turns, total, read) ? turns : NIC_BOARD_PLACES;
}

static void begin(const struct nic *nic, struct nic_group *g, uint32_t total)
{
	g->turns = turns_of(nic, g, total, g->read);
	if (nic_likely(g->turns != NIC_BOARD_PLACES || g->read == g->put))
		return;
	g->read = read_by_all(g);
	g->turns = turns_of(nic, g, total, g->read);
}

/* May that buffer be written?  False: not now. */
static bool has_buffer(struct nic *nic, struct nic_group *g, uint32_t i)
{
	uint32_t taken;

	if (nic_unlikely(!is_read(g, i, g->read))) {
		g->read = read_by_all(g);
		if (!is_read(g, i, g->read))
			return false;
	}
	if (nic_likely(g->board->buffer[i]))
		return true;
	if (!nic_buffer_take(nic, &taken))
		return false;
	g->board->buffer[i] = taken + 1;
	return true;
}

/*
 * The next place, and what the next part of such a length would need of its buffer: receivers have read them some parts ago,
 * and the root would have to get each line back before it can publish what it writes there.
 */
static void prepare(const struct nic *nic, const struct nic_group *g, uint32_t total, uint32_t len)
{
	uint32_t buffer;

	nic_prefetch_write(&g->board->part[g->put & MASK]);
	if (len <= NIC_BOARD_BRIEF)
		return;
	buffer = g->board->buffer[buffer_of(g->turns, g->put, total)];
	if (!buffer)
		return;
	for (uint32_t i = 0; i < len && i < AHEAD; i += 64)
		nic_prefetch_write(nic_buffer(nic, buffer - 1) + start_of(g->put, total) + i);
}

/*
 * Puts the next part, of the broadcast of `total` bytes at `bus`, on the board.  False: not now.  The place comes last: those that look
 * at it meanwhile take its line away, and nothing that is written later gets past it.
 */
static inline bool put(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t total, uint32_t offset, uint32_t len)
{
	struct nic_board_part *p = &g->board->part[g->put & MASK];
	uint32_t buffer = 0, i;

	if (!has_places(g, 1))
		return false;
	if (len <= NIC_BOARD_BRIEF) {
		nic_host_read(nic, p->data, bus + offset, len);
	} else {
		i = buffer_of(g->turns, g->put, total);
		if (nic_unlikely(!has_buffer(nic, g, i)))
			return false;
		buffer = g->board->buffer[i];
		g->used[i] = g->put + 1;
		nic_host_read(nic, nic_buffer(nic, buffer - 1) + start_of(g->put, total), bus + offset, len);
	}
	p->total = total;
	p->offset = offset;
	p->buffer = buffer;
	nic_store_release(&p->seq, ++g->put); /* G2 */
	prepare(nic, g, total, len);
	return true;
}

static bool put_next(struct nic *nic, struct nic_group *g, uint32_t call, struct nic_cast *cast)
{
	const union qnix_region *region = &nic->slot->qnix.vni.send_region[NIC_CALL_FIRST + call];
	uint32_t size = part_size(cast->len), left = cast->len - cast->at, len = left < size ? left : size;

	if (!put(nic, g, region->descriptor[0], cast->len, cast->at, len))
		return false;
	cast->at += len;
	return true;
}

/* As many parts as there are places for; true: all are there. */
static bool put_some(struct nic *nic, struct nic_group *g, uint32_t call, struct nic_cast *cast, int *n)
{
	bool through = false;

	if (cast->at == 0)
		begin(nic, g, cast->len);
	while (!through && put_next(nic, g, call, cast)) {
		through = cast->at == cast->len;
		++*n;
	}
	if (*n)
		wake_all(nic, g);
	return through;
}

/* True: all that is needed of it is on the board, and the process may have its buffer back. */
static bool put_all(struct nic *nic, struct nic_group *g, uint32_t call, int *n)
{
	struct nic_cast *cast = &nic->groups->send[call];

	if (cast->seq != g->sent + 1) /* another comes first */
		return false;
	if (!(cast->direct ? read_by_all(g) == g->put : put_some(nic, g, call, cast, n)))
		return false;
	g->sent++;
	nic_count(nic, broadcasts, 1);
	nic_doorbell(nic, false, NIC_CALL_FIRST + call, cast->doorbell, QNIX_DONE, cast->len);
	return true;
}

static void send(struct nic *nic, struct nic_group *g, uint32_t context)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.send[context % QNIX_CONTEXTS];
	uint32_t call = (context - NIC_CALL_FIRST) % NIC_CALLS;
	int n = 0;

	g->lead = g->place;
	nic->groups->send[call] = (struct nic_cast){ .doorbell = (uint16_t)c->doorbell_flag, .seq = ++g->bcasts, .len = c->len,
		.direct = g->handed };
	g->handed = false;
	if (nic_likely(put_all(nic, g, call, &n)))
		return;
	g->sends |= 1u << call;
	nic_group_busy(nic, g);
}

/* Places and buffers for all parts of it. */
static bool has_room(struct nic *nic, struct nic_group *g, uint32_t len)
{
	uint32_t n = (len + part_size(len) - 1) / part_size(len);

	if (nic_unlikely(!has_places(g, n)))
		return false;
	for (uint32_t i = 0; len > NIC_BOARD_BRIEF && i < n; i++)
		if (nic_unlikely(!has_buffer(nic, g, buffer_of(g->turns, g->put + i, len))))
			return false;
	return true;
}

static bool sent_now(struct nic *nic, struct nic_group *g)
{
	g->bcasts = ++g->sent;
	g->lead = g->place;
	nic_count(nic, broadcasts, 1);
	return true;
}

/*
 * Does the receiver wait for the next one, to copy it itself?  A root that comes first gives a moment to one that wanted the last
 * one so.
 */
static bool is_wanted(const struct nic *nic, struct nic_group *g)
{
	const struct nic_member *m = &g->member[!g->place];
	uint32_t next = (g->bcasts + 1) * NIC_BOARD_WANTS + NIC_BOARD_WANTS_DIRECT, left = WANTS_LOOKS, wants;

	if (g->size != 2 || looks(nic) == 1 || !has_places(g, 1))
		return false;
	do
		wants = nic_load_acquire(&m->board->wants); /* G4: is_here looks behind this */
	while ((wants & NIC_BOARD_WANTS_DIRECT) && wants != next && --left);
	return wants == next && is_here(m);
}

/* The address instead of the data.  True: the receiver has copied all. */
static bool hand(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	struct nic_board_part *p = &g->board->part[g->put & MASK];
	uint32_t left = DIRECT_LOOKS;

	memcpy(p->data, &bus, sizeof(bus));
	p->total = len;
	p->offset = 0;
	p->buffer = NIC_BOARD_DIRECT;
	nic_store_release(&p->seq, ++g->put); /* G2 */
	wake_all(nic, g);
	while (has_read(g, &g->member[!g->place]) != g->put)
		if (!--left)
			return false;
	g->read = g->put;
	return true;
}

/* One that nothing comes before, and that there is room for. */
static bool send_now(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	uint32_t at = 0, n;

	if (nic_unlikely(g->sent != g->bcasts))
		return false;
	if (len >= DIRECT_MIN && is_wanted(nic, g)) {
		g->handed = !hand(nic, g, bus, len);
		return !g->handed && sent_now(nic, g);
	}
	begin(nic, g, len);
	if (nic_unlikely(len > PART_SHORT && !has_room(nic, g, len)))
		return false;
	do {
		n = len - at < part_size(len) ? len - at : part_size(len);
		if (nic_unlikely(!put(nic, g, bus, len, at, n))) /* not of several: there is room */
			return false;
		at += n;
	} while (at < len);
	wake_all(nic, g);
	return sent_now(nic, g);
}

/* ---- broadcast: the others ---------------------------------------------------------------------------------------------------- */

/* G3, G4: does what was copied just now count?  Its owner changes `life` before it does anything else with the memory. */
static bool was_here(const struct nic_member *m)
{
	atomic_thread_fence(memory_order_acquire);
	return is_here(m);
}

/* It is taken to its end, but what comes of it is no good; the first reason is the true one. */
static void spoil(struct nic_cast *cast, uint32_t why)
{
	cast->why = cast->bad ? cast->why : why;
	cast->bad = true;
}

/* The header of the part that is there. */
static bool check(struct nic_cast *cast, uint32_t total, uint32_t offset)
{
	if (cast->at == 0) {
		cast->total = total <= NIC_BCAST_MAX ? total : 0;
		if (cast->total != cast->len)
			spoil(cast, NIC_WHY_LENGTH);
	}
	if (total != cast->total || offset != cast->at)
		spoil(cast, NIC_WHY_DATA);
	return !cast->bad;
}

/* The root need not look before its places are used up; but it must be told in time, and of the last. */
static void acknowledge(struct nic *nic, struct nic_group *g, uint32_t place, struct nic_member *m)
{
	m->told = m->parts;
	nic_store_release(&g->board->taken[place], m->parts); /* G3 */
	atomic_signal_fence(memory_order_seq_cst);            /* B1, as in wake_all */
	wake(nic, m->slot);
}

/* Is that part the address of data that this process wants to copy itself?  If it does not, the part is a lie. */
static bool is_direct(const struct nic_group *g, const struct nic_member *m, uint32_t buffer)
{
	return nic_unlikely(buffer == NIC_BOARD_DIRECT) && g->wanted == m->current + 1;
}

/* Copies the whole broadcast from the root's memory. */
static bool pull(struct nic *nic, const struct nic_member *m, const struct nic_board_part *p, uint64_t bus, uint32_t total)
{
#ifdef NIC_ELSEWHERE
	(void)nic, (void)m, (void)p, (void)bus, (void)total;
	return false; /* nobody wants it */
#else
	struct nic_link *link = nic->link[m->slot & (NIC_MAX_SLOTS - 1)];
	struct iovec to = { nic_host(bus), total };
	uint64_t from;

	memcpy(&from, p->data, sizeof(from));
	if (!link || nic_dma_read(nic, link, &to, 1, from, total) != NIC_DMA_OK)
		return false;
	nic_count(nic, broadcasts_direct, 1);
	return true;
#endif
}

/* The next part of that broadcast, if it is there. */
static bool take(struct nic *nic, struct nic_group *g, uint32_t call, struct nic_cast *cast)
{
	const union qnix_region *region = &nic->slot->qnix.vni.recv_region[NIC_CALL_FIRST + call];
	struct nic_member *m = &g->member[cast->place];
	const struct nic_board_part *p = &m->board->part[m->parts & MASK];
	uint32_t buffer, size, left, len;
	bool direct;

	if (nic_load_acquire(&p->seq) != m->parts + 1) /* G2 */
		return false;
	if (nic_unlikely(!check(cast, p->total, p->offset)))
		nic_count(nic, bad_packets, 1);
	buffer = p->buffer;
	direct = is_direct(g, m, buffer);
	size = direct ? cast->total : part_size(cast->total);
	left = cast->total - cast->at;
	len = left < size ? left : size;
	if (direct && !cast->bad && !pull(nic, m, p, region->descriptor[0], cast->total))
		spoil(cast, NIC_WHY_DATA);
	else if (!direct && nic_likely(!cast->bad))
		nic_host_write(nic, region->descriptor[0] + cast->at,
		               len <= NIC_BOARD_BRIEF ? p->data : nic_buffer(nic, buffer - 1) + start_of(m->parts, cast->total), len);
	if (nic_unlikely(!was_here(m)))
		spoil(cast, NIC_WHY_LEFT);
	cast->at += len;
	m->parts++;
	return true;
}

/* As many parts as are there; true: it is over. */
static bool take_all(struct nic *nic, struct nic_group *g, uint32_t call, int *n)
{
	struct nic_cast *cast = &nic->groups->recv[call];
	struct nic_member *m = &g->member[cast->place];
	bool through = false;

	if (cast->seq != m->current + 1) /* another comes first */
		return false;
	while (!through && take(nic, g, call, cast)) {
		through = cast->at == cast->total;
		if (m->parts - m->told >= TELL)
			acknowledge(nic, g, cast->place, m);
		++*n;
	}
	if (!through)
		return false;
	if (m->parts != m->told)
		acknowledge(nic, g, cast->place, m);
	m->current++;
	nic_count(nic, broadcasts, 1);
	nic_doorbell(nic, true, NIC_CALL_FIRST + call, cast->doorbell, cast->bad ? QNIX_FAILED : QNIX_DONE,
	             cast->bad ? cast->why : cast->len);
	return true;
}

static void recv(struct nic *nic, struct nic_group *g, uint32_t context, uint32_t place)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.recv[context % QNIX_CONTEXTS];
	uint32_t call = (context - NIC_CALL_FIRST) % NIC_CALLS, left = looks(nic);
	struct nic_cast *cast = &nic->groups->recv[call];
	struct nic_member *m = &g->member[place];
	int n = 0;

	g->lead = (uint16_t)place;
	*cast = (struct nic_cast){ .doorbell = (uint16_t)c->doorbell_flag, .place = (uint16_t)place, .len = c->len,
		.seq = ++m->bcasts, .at = m->ahead, .total = m->ahead ? c->len : 0 };
	m->ahead = 0;
	while (left--)
		if (take_all(nic, g, call, &n))
			return;
	if (nic_unlikely(g->member[place].left)) { /* it will not come */
		fail_recv(nic, g, call);
		return;
	}
	g->recvs |= 1u << call;
	nic_group_busy(nic, g);
}

static bool has_next(const struct nic_member *m)
{
	return nic_load_acquire(&m->board->part[m->parts & MASK].seq) == m->parts + 1; /* G2 */
}

/* Did that member lead the last barrier?  It may have thought otherwise. */
static bool has_led(const struct nic_group *g, uint32_t place)
{
	return (int32_t)(nic_load_relaxed(&g->member[place].board->barrier) - word(g, NIC_BOARD_GONE)) >= 0; /* how long to look, no more */
}

/* The root that led the barrier left it before the others: it is at its broadcast now, even where processes take turns. */
static uint32_t looks_at(const struct nic *nic, const struct nic_group *g, uint32_t place)
{
	return nic_unlikely(g->leader == place && g->lead == NIC_PLACE_ANY) && has_led(g, place) ? LOOKS : looks(nic);
}

static bool wait_next(const struct nic_member *m, uint32_t left)
{
	while (!has_next(m))
		if (--left == 0)
			return false;
	return true;
}

/*
 * Where a part's data lies.  A guess that is mostly right lets the processor read it together with the part's own line, for which the
 * address must come from the guess alone: the compiler must not find out that it is what that line says.  And its lines are asked
 * for all at once.
 */
static const uint8_t *part_data(const struct nic *nic, struct nic_group *g, const struct nic_member *m, const struct nic_board_part *p,
                                uint32_t total, uint32_t len)
{
	uint32_t *guess = &g->buffer[m->parts & MASK], buffer = *guess;
	const uint8_t *data;

	if (len <= NIC_BOARD_BRIEF)
		return p->data;
	__asm__("" : "+r"(buffer));
	data = nic_buffer(nic, buffer - 1) + start_of(m->parts, total);
	if (nic_unlikely(*guess != p->buffer)) {
		*guess = p->buffer;
		data = nic_buffer(nic, *guess - 1) + start_of(m->parts, total);
	}
	for (uint32_t i = 0; i < len && i < AHEAD; i += 64)
		__builtin_prefetch(data + i);
	return data;
}

/* The next part, as `take` would take it; what is not as it should be is left to that. */
static inline bool take_now(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t total, uint32_t at, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	const struct nic_board_part *p = &m->board->part[m->parts & MASK];

	if (nic_unlikely(!wait_next(m, looks_at(nic, g, place)) || p->total != total || p->offset != at))
		return false;
	nic_host_write(nic, bus + at, part_data(nic, g, m, p, total, len), len);
	if (nic_unlikely(!was_here(m)))
		return false;
	m->parts++;
	return true;
}

/* All parts of one that nothing comes before; `ahead` says how far that went. */
static inline bool take_parts(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	uint32_t at = 0, n;

	do {
		n = len - at < part_size(len) ? len - at : part_size(len);
		if (nic_unlikely(!take_now(nic, g, place, bus, len, at, n))) {
			m->ahead = at;
			return false;
		}
		at += n;
		if (m->parts - m->told >= TELL || at == len)
			acknowledge(nic, g, place, m);
	} while (at < len);
	return true;
}

/* The one part that has the address only. */
static bool take_direct(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	const struct nic_board_part *p = &m->board->part[m->parts & MASK];

	if (p->total != len || p->offset != 0 || !pull(nic, m, p, bus, len) || !was_here(m))
		return false;
	m->parts++;
	acknowledge(nic, g, place, m);
	return true;
}

/* May this process copy a broadcast of that length from the root's memory? */
static bool may_pull(const struct nic *nic, const struct nic_group *g, const struct nic_member *m, uint32_t len)
{
	const struct nic_link *link;

	if (nic_likely(len < DIRECT_MIN || g->size != 2))
		return false;
	link = nic->link[m->slot & (NIC_MAX_SLOTS - 1)];
	return nic->groups->direct && link && link->cma && looks(nic) > 1;
}

static struct nic_pace *pace_of(struct nic_group *g, uint32_t len)
{
	uint32_t i = len <= 24 << 10 ? 0 : len <= 48 << 10 ? 1 : len <= 96 << 10 ? 2 : 3;

	_Static_assert(NIC_PACES == 4, "one for each");
	return &g->pace[i];
}

/* The root is told which way this process wants it.  It may come the other way all the same. */
static void want(struct nic_group *g, const struct nic_member *m, uint32_t way)
{
	uint32_t number = m->current + 1;

	g->wanted = way == NIC_BOARD_WANTS_DIRECT ? number : 0;
	nic_store_release(&g->board->wants, number * NIC_BOARD_WANTS + way); /* G4: behind `life` */
}

/* A long one from the only other member.  The time counts from when the root has begun: how late it is says nothing of the way. */
static nic_noinline bool recv_either(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	struct nic_pace *pace = pace_of(g, len);
	uint64_t start;
	bool direct;

	want(g, m, pace->way);
	if (!wait_next(m, looks_at(nic, g, place)))
		return false;
	start = nic_pace_clock();
	direct = is_direct(g, m, m->board->part[m->parts & MASK].buffer);
	if (!(direct ? take_direct : take_parts)(nic, g, place, bus, len))
		return false;
	nic_pace_took(pace, direct, nic_pace_clock() - start);
	return true;
}

/* One that nothing comes before.  If it does not come as a whole, `recv` goes on where this has stopped. */
static bool recv_now(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];

	if (nic_unlikely(m->current != m->bcasts))
		return false;
	if (!(may_pull(nic, g, m, len) ? recv_either : take_parts)(nic, g, place, bus, len))
		return false;
	m->current = ++m->bcasts;
	g->lead = (uint16_t)place;
	nic_count(nic, broadcasts, 1);
	return true;
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
	for (uint32_t left = g->sends; left; left &= left - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(left);

		if (put_all(nic, g, call, &n))
			g->sends &= ~(1u << call);
	}
	for (uint32_t left = g->recvs; left; left &= left - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(left);

		if (take_all(nic, g, call, &n))
			g->recvs &= ~(1u << call);
	}
	return n;
}

static bool busy(const struct nic_group *g)
{
	return g->waiting || g->sends || g->recvs;
}

static bool owes(const struct nic *nic, const struct nic_group *g)
{
	(void)nic;
	return g->complete && (g->sends || read_by_all(g) != g->put);
}

/* A receive whose next part is there. */
static bool has_part(const struct nic_group *g, const struct nic_cast *cast)
{
	const struct nic_member *m = &g->member[cast->place];

	return cast->seq == m->current + 1 && has_next(m);
}

/* For the next part of the broadcast whose turn it is, when it is seen what has been read. */
static bool has_room_soon(const struct nic *nic, const struct nic_group *g)
{
	uint32_t read = read_by_all(g);

	for (uint32_t left = g->sends; left; left &= left - 1) {
		const struct nic_cast *cast = &nic->groups->send[__builtin_ctz(left)];

		if (cast->seq == g->sent + 1 && cast->direct)
			return read == g->put;
		if (cast->seq == g->sent + 1)
			return g->put - read < NIC_BOARD_PLACES &&
			       is_read(g, buffer_of(cast->at ? g->turns : turns_of(nic, g, cast->len, read), g->put, cast->len), read);
	}
	return false;
}

static bool moves(const struct nic *nic, const struct nic_group *g)
{
	if (!g->complete)
		return false;
	if (g->broken)
		return g->leaving && read_by_all(g) == g->put;
	if (g->waiting) {
		uint32_t from = g->seen;

		if (is_over(g, &from))
			return true;
	}
	if (g->sends && has_room_soon(nic, g))
		return true;
	for (uint32_t left = g->recvs; left; left &= left - 1)
		if (has_part(g, &nic->groups->recv[__builtin_ctz(left)]))
			return true;
	return false;
}

/* Everything that is there.  A pass may come to a broadcast before the one that is ahead of it, and leave it to the next. */
static void run_out(struct nic *nic, struct nic_group *g)
{
	while (run(nic, g))
		;
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
	if (g->waiting && !has_come(&g->member[place], word(g, NIC_BOARD_HERE)))
		nic_group_barrier_over(nic, g, QNIX_FAILED);
	for (uint32_t rest = g->recvs; rest; rest &= rest - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(rest);

		if (nic->groups->recv[call].place != place)
			continue;
		fail_recv(nic, g, call);
		g->recvs &= ~(1u << call);
	}
}

const struct nic_meet nic_meet_board = { .name = "board", .join = join, .ready = ready, .barrier = barrier, .send = send, .recv = recv,
	.send_now = send_now, .recv_now = recv_now,
	.run = run, .busy = busy, .moves = moves, .owes = owes, .lost = lost, .left = left, .end = fail_calls, .leave = leave };
