/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts of this process: parts on its board, or, in a group of two, the address that the other one copies from.
 */
#include "nicemu/engine/clock.h"
#include "nicemu/engine/dma.h"
#include "nicemu/engine/host.h"
#include "nicemu/strat/meet_board.h"

enum {
	FEW = NIC_BOARD_BUFFERS - NIC_BOARD_HOT, /* buffers that broadcasts of up to ... take turns with: they stay in the cache */
	FEW_MAX = 64 << 10,
	DIRECT_LOOKS = 32 * NIC_BOARD_LOOKS, /* for one that copies from this process's memory; mostly one copy's time */
	WANTS_LOOKS = 4 * NIC_BOARD_LOOKS,   /* for one that wants one: some times as long as a word takes there and back */
	VAIN_MAX = 6,        /* times in vain, each of which doubles how many are not waited for */
	AHEAD = 2048,        /* bytes of a part that its root gets hold of ahead, at most */
	FILL_MIN = 4096,     /* bytes of a broadcast whose buffers may be filled in two ways */
	TIMED = 4,           /* one of so many of these is, when it is known which way is faster */
	DEEP_AFTER = 256,    /* broadcasts of several parts, before one of two becomes one: a part that is longer than others touches pages that they do not */
	LET_GO_MAX = 2048,   /* bytes of a broadcast whose lines the root lets go of: of more it takes longer than it saves */
	HALF_MIN = 32 << 10, /* bytes of a broadcast that both copy a half of */
	PAGE = 4096,
};
_Static_assert(FEW_MAX / NIC_BOARD_PART <= FEW, "no broadcast waits for buffers of its own");

/* How many of this member's parts that one has read; a number that cannot be is none. */
static uint32_t has_read(const struct nic_group *g, const struct nic_member *m)
{
	uint16_t left = (uint16_t)(g->put - nic_load_acquire(&m->board->taken[g->place])); /* G3 */

	if (nic_unlikely(m->left || !nic_board_is_here(m)))
		return g->put;
	return left <= g->put - g->read ? g->put - left : g->read;
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

/*
 * May a part of that broadcast lie on the board itself?  What has been read is looked at when the places there, or all, would be used up, so not
 * for each part if somebody is behind.
 */
static bool fits_inside(struct nic_group *g, uint32_t total)
{
	if (total > NIC_BOARD_INSIDE)
		return false;
	if (nic_unlikely(g->put - g->read == NIC_BOARD_INSIDES))
		g->read = read_by_all(g);
	return g->put - g->read < NIC_BOARD_INSIDES;
}

/* Which buffer is that of the part that comes after so many: of its place, or one of `turns` that take turns. */
static uint32_t buffer_of(uint32_t turns, uint32_t before, uint32_t total)
{
	if (total <= NIC_BOARD_SMALL)
		return NIC_BOARD_PLACES;
	return turns == NIC_BOARD_PLACES ? before & NIC_BOARD_MASK : NIC_BOARD_HOT + (before & (turns - 1));
}

/* Has everybody read, by that number, what was put there last?  The parts of the shared one go with the places. */
static bool is_read(const struct nic_group *g, uint32_t buffer, uint32_t read)
{
	return buffer == NIC_BOARD_PLACES || g->used[buffer] - read - 1 >= g->put - read;
}

/* Bytes of a part of this process's, but for the last. */
static inline uint32_t part_of(const struct nic *nic, const struct nic_group *g, uint32_t total)
{
#ifdef NIC_ELSEWHERE
	(void)nic, (void)g, (void)total;
	return NIC_BOARD_PART_MAX; /* each is some system calls */
#else
	if (nic_likely(nic_board_looks(nic) > 1) || (total <= NIC_BOARD_PART_CROWDED && g->deep < DEEP_AFTER))
		return NIC_BOARD_PART;
	return NIC_BOARD_PART_CROWDED;
#endif
}

/* Of the next part of a broadcast of `total`, of which so many are left. */
static inline uint32_t part_len(const struct nic *nic, const struct nic_group *g, uint32_t total, uint32_t left)
{
	uint32_t part = part_of(nic, g, total);

	return left < part ? left : part;
}

static inline uint32_t parts_of(const struct nic *nic, const struct nic_group *g, uint32_t total)
{
	uint32_t part = part_of(nic, g, total);

	return (total + part - 1) / part;
}

/* All parts of one are on the board: once for each, however often it was tried. */
static inline void count_deep(struct nic_group *g, uint32_t total)
{
	g->deep += total > NIC_BOARD_PART && g->deep < DEEP_AFTER;
}

/* Are the buffers of a whole broadcast read, when so many take turns? */
static bool are_read(const struct nic *nic, const struct nic_group *g, uint32_t turns, uint32_t total, uint32_t read)
{
	uint32_t n = parts_of(nic, g, total);

	for (uint32_t i = 0; i < n; i++)
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
	uint32_t turns = total <= FEW_MAX ? FEW : NIC_BOARD_PLACES;

	return nic_likely(nic_board_looks(nic) > 1) || are_read(nic, g, turns, total, read) ? turns : NIC_BOARD_PLACES;
}

static void begin(const struct nic *nic, struct nic_group *g, uint32_t total)
{
	g->stores = total >= FILL_MIN && nic_board_looks(nic) == 1 && nic_pace_better(&g->fill);
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
	nic->buffer_kept++;
	return true;
}

/*
 * Receivers have read the place and the buffer of the next part some parts ago, and the root would have to get each line back before it can
 * publish what it writes there.  While this process waits in a barrier behind a broadcast, it gets those that one more like it needs.  Behind a
 * part, or more of them, it takes longer than it saves.
 */
void nic_board_prepare(const struct nic *nic, const struct nic_group *g)
{
	uint32_t len = g->lead_len, buffer = 0;
	const uint8_t *data;

	if (len <= NIC_BOARD_BRIEF || len > AHEAD || (len > NIC_BOARD_SMALL && !g->turns)) /* none of these has begun */
		return;
	if (len > NIC_BOARD_INSIDE && !(buffer = g->board->buffer[buffer_of(g->turns, g->put, len)]))
		return;
	data = nic_board_data(nic, g->board, g->put, len, buffer);
	for (uint32_t i = 0; i < len; i += 64)
		nic_prefetch_write(data + i);
}

/*
 * Where processors can let go of a line, the receiver gets it sooner.  A root that broadcasts again and again is better off without: it is the slower end then.
 * Those that take turns on a core have the lines there.
 */
static inline void let_go(struct nic *nic, const struct nic_group *g, uint32_t len, uint32_t buffer)
{
	if (nic_likely(!nic->demotes || g->lead == g->place || len <= NIC_BOARD_BRIEF || len > LET_GO_MAX || g->size != 2 || nic_board_looks(nic) == 1))
		return;
	nic_demote_lines(nic_board_data(nic, g->board, g->put - 1, len, buffer), len);
	nic_count(nic, demoted, 1);
}

/*
 * Puts the next part, of the broadcast of `total` bytes at `bus`, on the board.  False: not now.  The place comes last: those that look
 * at it meanwhile take its line away, and nothing that is written later gets past it.
 */
static inline bool put(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t total, uint32_t offset, uint32_t len)
{
	struct nic_board_part *p = &g->board->part[g->put & NIC_BOARD_MASK];
	uint32_t buffer = 0, i;

	if (!has_places(g, 1))
		return false;
	if (len <= NIC_BOARD_BRIEF) {
		nic_host_read(nic, p->data, bus + offset, len);
	} else if (fits_inside(g, total)) {
		nic_host_read(nic, g->board->inside[g->put & (NIC_BOARD_INSIDES - 1)], bus, len);
	} else {
		i = buffer_of(g->turns, g->put, total);
		if (nic_unlikely(!has_buffer(nic, g, i)))
			return false;
		buffer = g->board->buffer[i];
		g->used[i] = g->put + 1;
		(nic_unlikely(g->stores && total >= FILL_MIN) ? nic_host_read_stores : nic_host_read)(nic, nic_board_place(nic, buffer, g->put, total), bus + offset, len);
	}
	if (nic_host_lost(nic))
		return false;
	p->total = total;
	p->end = offset + len;
	p->buffer = buffer;
	nic_store_release(&p->seq, ++g->put); /* G2 */
	let_go(nic, g, total, buffer);
	nic_prefetch_write(&g->board->part[g->put & NIC_BOARD_MASK]);
	return true;
}

static bool put_next(struct nic *nic, struct nic_group *g, uint32_t call, struct nic_cast *cast)
{
	const union qnix_region *region = &nic->slot->qnix.vni.send_region[NIC_CALL_FIRST + call];
	uint32_t len = part_len(nic, g, cast->len, cast->len - cast->at);

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
		nic_board_wake_all(nic, g);
	return through;
}

/* The receiver has copied it, which is news. */
static bool is_taken(const struct nic_group *g, int *n)
{
	bool taken = read_by_all(g) == g->put;

	*n += taken;
	return taken;
}

/* True: all that is needed of it is on the board, and the process may have its buffer back. */
static bool put_all(struct nic *nic, struct nic_group *g, uint32_t call, int *n)
{
	struct nic_cast *cast = &nic->groups->send[call];

	if (cast->seq != g->sent + 1) /* another comes first */
		return false;
	if (!(cast->direct ? is_taken(g, n) : put_some(nic, g, call, cast, n)))
		return false;
	g->sent++;
	count_deep(g, cast->len);
	nic_count(nic, broadcasts, 1);
	nic_doorbell(nic, false, NIC_CALL_FIRST + call, cast->doorbell, QNIX_DONE, cast->len);
	return true;
}

void nic_board_send(struct nic *nic, struct nic_group *g, uint32_t context)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.send[context % QNIX_CONTEXTS];
	uint32_t call = (context - NIC_CALL_FIRST) % NIC_CALLS;
	int n = 0;

	g->lead = g->place;
	g->lead_len = c->len;
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
	uint32_t n = parts_of(nic, g, len);

	if (nic_unlikely(!has_places(g, n)))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (nic_unlikely(!has_buffer(nic, g, buffer_of(g->turns, g->put + i, len))))
			return false;
	return true;
}

static bool sent_now(struct nic *nic, struct nic_group *g, uint32_t len)
{
	g->bcasts = ++g->sent;
	g->lead = g->place;
	g->lead_len = len;
	nic_count(nic, broadcasts, 1);
	return true;
}

/*
 * A receiver that wanted one before is given some time to want the next, too; it may have to take what is on the board first.  When that
 * was in vain again and again, only every second, fourth, ... one is waited for.
 */
static bool wait_wanted(struct nic_group *g, const struct nic_member *m, uint32_t next)
{
	uint32_t left, wants;

	if (g->unasked) {
		g->unasked--;
		return false;
	}
	left = has_read(g, m) == g->put ? WANTS_LOOKS : DIRECT_LOOKS;
	do
		wants = nic_load_acquire(&m->board->wants); /* G4: is_here looks behind this */
	while ((wants & NIC_BOARD_WANTS_DIRECT) && wants != next && --left);
	if (wants == next) {
		g->vain = 0;
		return true;
	}
	g->unasked = (uint16_t)((1u << g->vain) - 1);
	g->vain += g->vain < VAIN_MAX;
	return false;
}

/* Does the receiver wait for the next one, to copy it itself? */
static bool is_wanted(const struct nic *nic, struct nic_group *g)
{
	const struct nic_member *m = &g->member[!g->place];
	uint32_t next = (g->bcasts + 1) * NIC_BOARD_WANTS + NIC_BOARD_WANTS_DIRECT, wants;

	if (g->size != 2 || nic_board_looks(nic) == 1 || !has_places(g, 1))
		return false;
	wants = nic_load_acquire(&m->board->wants); /* G4: is_here looks behind this */
	if (wants != next && (!(wants & NIC_BOARD_WANTS_DIRECT) || !wait_wanted(g, m, next)))
		return false;
	return nic_board_is_here(m);
}

/* Where the second half begins: on a page of the receiver's, so that two copies never meet in one; `len`: there is none. */
static uint32_t half_of(uint64_t where, uint32_t len)
{
	uint64_t at = ((where + len / 2 + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - where;

	return len >= HALF_MIN && at < len ? (uint32_t)at : len;
}

/* This process's half of it, if the receiver has not taken that back meanwhile. */
static void give(struct nic *nic, struct nic_link *link, uint32_t id, uint64_t from, uint64_t where, uint32_t len)
{
	struct nic_claim *claim = &link->asking->half;
	struct iovec local = { nic_host(from), len };
	bool good;

	if (!nic_claim_take(claim, id, 0))
		return;
	good = nic_dma_write(nic, link, &local, 1, where, len) == NIC_DMA_OK;
	nic_count(nic, bytes_helped, good ? len : 0);
	nic_claim_tell(claim, id, good ? NIC_CLAIM_DONE : NIC_CLAIM_REFUSED); /* R2 */
}

/* The address instead of the data.  True: the receiver has all. */
static bool hand(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	struct nic_board_part *p = &g->board->part[g->put & NIC_BOARD_MASK];
	const struct nic_member *m = &g->member[!g->place];
	struct nic_link *link = nic->link[m->slot & (NIC_MAX_SLOTS - 1)];
	uint32_t left = DIRECT_LOOKS, id = nic_load_relaxed(&m->board->claim); /* both are behind the acquire of `wants` */
	uint64_t where = nic_load_relaxed(&m->board->where);
	struct nic_board_direct direct = { bus, id && link && link->cma ? half_of(where, len) : len };

	memcpy(p->data, &direct, sizeof(direct));
	p->total = len;
	p->end = len;
	p->buffer = NIC_BOARD_DIRECT;
	nic_store_release(&p->seq, ++g->put); /* G2 */
	nic_board_wake_all(nic, g);
	if (direct.own < len)
		give(nic, link, id, bus + direct.own, where + direct.own, len - direct.own);
	while (has_read(g, &g->member[!g->place]) != g->put)
		if (!--left)
			return false;
	g->read = g->put;
	return true;
}

/* All parts of one; places and buffers are there, if there are several. */
static inline bool put_parts(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	uint32_t at = 0, n;

	do {
		n = part_len(nic, g, len, len - at);
		if (nic_unlikely(!put(nic, g, bus, len, at, n)))
			return false;
		at += n;
	} while (at < len);
	return true;
}

/*
 * The same where processes take turns: who shares a core with this one may have read the buffers last, or who is elsewhere, and which way to fill them
 * is faster depends on that, and on how far elsewhere is.
 */
static nic_noinline bool put_parts_crowded(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	uint32_t way = g->fill.way;
	uint64_t start, took;

	g->stores = way;
	if (g->fill.period && !g->fill.trial && ++g->fills % TIMED) /* the clock is not for nothing */
		return put_parts(nic, g, bus, len);
	start = nic_ticks();
	if (!put_parts(nic, g, bus, len))
		return false;
	took = (nic_ticks() - start) * FILL_MIN / len;
	nic_pace_took(&g->fill, way, way ? took : took + took / 8); /* stores have their lines by now; what the other way may still be waiting for is not seen */
	return true;
}

/* One of more than NIC_BOARD_SMALL bytes. */
static nic_noinline bool send_long(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	begin(nic, g, len);
	if (nic_unlikely(len > NIC_BOARD_PART && !has_room(nic, g, len)))
		return false;
	if (nic_unlikely(!(nic_unlikely(len >= FILL_MIN && nic_board_looks(nic) == 1) ? put_parts_crowded : put_parts)(nic, g, bus, len)))
		return false;
	count_deep(g, len);
	return true;
}

/* One that nothing comes before, and that there is room for. */
bool nic_board_send_now(struct nic *nic, struct nic_group *g, uint64_t bus, uint32_t len)
{
	if (nic_unlikely(g->sent != g->bcasts))
		return false;
	if (len >= NIC_BOARD_DIRECT_MIN && is_wanted(nic, g)) {
		g->handed = !hand(nic, g, bus, len);
		return !g->handed && sent_now(nic, g, len);
	}
	if (nic_unlikely(!(len <= NIC_BOARD_SMALL ? put(nic, g, bus, len, 0, len) : send_long(nic, g, bus, len))))
		return false;
	nic_board_wake_all(nic, g);
	return sent_now(nic, g, len);
}

/* ---- passes, and ends ---------------------------------------------------------------------------------------------------------- */

int nic_board_send_run(struct nic *nic, struct nic_group *g)
{
	int n = 0;

	for (uint32_t left = g->sends; left; left &= left - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(left);

		if (put_all(nic, g, call, &n))
			g->sends &= ~(1u << call);
	}
	return n;
}

bool nic_board_unread(const struct nic_group *g)
{
	return read_by_all(g) != g->put;
}

/* For the next part of the broadcast whose turn it is, when it is seen what has been read. */
bool nic_board_send_moves(const struct nic *nic, const struct nic_group *g)
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

void nic_board_send_fail(struct nic *nic, struct nic_group *g)
{
	for (; g->sends; g->sends &= g->sends - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(g->sends);

		if (nic->groups->send[call].direct) /* what is copied from its memory from now on does not count */
			nic_board_is_over(g);
		nic_doorbell(nic, false, NIC_CALL_FIRST + call, nic->groups->send[call].doorbell, QNIX_FAILED, nic_group_why(g));
	}
}
