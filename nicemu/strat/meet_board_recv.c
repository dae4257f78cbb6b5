/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts of other members: parts from the root's board, or, in a group of two, a copy from the root's memory.
 *
 * Two copies by way of a buffer need no system call, but move each line from one core to the other.  One copy from process to process
 * (cross-memory attach) moves those lines only that the receiver's cache does not have: of data that the root has not written
 * since the last time, none.  So the receiver of a long broadcast compares both ways, and says which it wants (`recv_either`).
 * With more receivers one copy into the buffers serves all.
 *
 * Where lines migrate (util/atomic.h) the receiver of a group of two makes those of long parts its own before it says that they have been read, so that the
 * root's next stores need not wait for them one by one.  They may be somebody else's by then, if the root has left.
 */
#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/clock.h"
#include "nicemu/engine/dma.h"
#include "nicemu/engine/host.h"
#include "nicemu/strat/meet_board.h"
#include "nicemu/util/look.h"

enum {
	TELL = 4, /* parts that are acknowledged together */
	AWAIT_LOOKS = 4000,  /* for a broadcast, in the barrier before it: some times as long as a word takes there and back */
	AWAIT_FIRST = 8,     /* broadcasts behind a barrier before one is awaited */
	AWAIT_LAST = 1024,   /* the same when that was in vain again and again */
	AWAIT_SURE = 64,     /* so many more, and one time in vain is an accident */
	ASKING = 3,          /* looks take as long as one that asks for what lies elsewhere */
	MIGRATE_FROM = 3072, /* bytes of a part: of shorter ones it takes longer than it saves */
	MIGRATE_SLOW = 16,   /* ns a line: near by it is 5 */
	LINE = 64,
};

/* G3, G4: does what was copied just now count?  Its owner changes `life` before it does anything else with the memory. */
static bool was_here(const struct nic_member *m)
{
	atomic_thread_fence(memory_order_acquire);
	return nic_board_is_here(m);
}

/* It is taken to its end, but what comes of it is no good; the first reason is the true one. */
static void spoil(struct nic_cast *cast, uint32_t why)
{
	cast->why = cast->bad ? cast->why : why;
	cast->bad = true;
}

/* May a part that begins at `at` end there?  Only that of an empty broadcast is empty. */
static inline bool is_part(uint32_t total, uint32_t at, uint32_t end)
{
	return end <= total && (end > at ? end - at <= NIC_BOARD_PART_MAX : total == 0);
}

/* Read once: what is checked is what is used, whatever the root writes there meanwhile. */
static inline uint32_t end_of(const struct nic_board_part *p)
{
	uint32_t end = p->end;

	__asm__("" : "+r"(end));
	return end;
}

/* The header of the part that is there.  Returns where the part ends: if it says what cannot be, the broadcast ends with it. */
static uint32_t check(struct nic_cast *cast, uint32_t total, uint32_t end, bool direct)
{
	if (cast->at == 0) {
		cast->total = total <= NIC_BCAST_MAX ? total : 0;
		if (cast->total != cast->len)
			spoil(cast, NIC_WHY_LENGTH);
	}
	if (total == cast->total && (direct ? cast->at == 0 && end == cast->total : is_part(cast->total, cast->at, end)))
		return end;
	spoil(cast, NIC_WHY_DATA);
	return cast->total;
}

/* The root need not look before its places are used up; but it must be told in time, and of the last. */
static void acknowledge(struct nic *nic, struct nic_group *g, uint32_t place, struct nic_member *m)
{
	m->told = m->parts;
	nic_store_release(&g->board->taken[place], (uint16_t)m->parts); /* G3 */
	atomic_signal_fence(memory_order_seq_cst);            /* B1, as in wake_all */
	nic_board_wake(nic, m->slot);
}

/* Is that part the address of data that this process wants to copy itself?  If it does not, the part is a lie. */
static bool is_direct(const struct nic_group *g, const struct nic_member *m, uint32_t buffer)
{
	return nic_unlikely(buffer == NIC_BOARD_DIRECT) && g->wanted == m->current + 1;
}

/* Copies so many bytes of it from the root's memory; 0, or NIC_WHY_* of the failure. */
static uint32_t pull(struct nic *nic, const struct nic_member *m, uint64_t from, uint64_t bus, uint32_t len)
{
#ifdef NIC_ELSEWHERE
	(void)nic, (void)m, (void)from, (void)bus, (void)len;
	return NIC_WHY_DATA; /* nobody wants it */
#else
	struct nic_link *link = nic->link[m->slot & (NIC_MAX_SLOTS - 1)];
	struct iovec to = { nic_host(bus), len };
	enum nic_dma r = link ? nic_dma_read(nic, link, &to, 1, from, len) : NIC_DMA_GONE;

	if (r == NIC_DMA_OK || r == NIC_DMA_GONE)
		return r == NIC_DMA_OK ? 0 : NIC_WHY_DIED + m->slot;
	nic->groups->direct = false; /* memory that cannot be read so: not again */
	return NIC_WHY_DATA;
#endif
}

/* The whole. */
static uint32_t pull_all(struct nic *nic, const struct nic_member *m, const struct nic_board_part *p, uint64_t bus, uint32_t len)
{
	struct nic_board_direct direct;
	uint32_t why;

	memcpy(&direct, p->data, sizeof(direct));
	why = pull(nic, m, direct.addr, bus, len);
	nic_count(nic, broadcasts_direct, !why);
	return why;
}

/* Where cores are far apart each line takes hundreds of nanoseconds, one after the other: then it is hardly ever done. */
static nic_noinline void migrate(struct nic *nic, struct nic_group *g, const uint8_t *data, uint32_t len)
{
	size_t before = (uintptr_t)data % LINE;
	uint64_t began = nic_clock();

	nic_migrate_foreign_lines((uint8_t *)data - before, before + len);
	if (nic_clock_since(began, nic_clock()) > (before + len) / LINE * MIGRATE_SLOW)
		nic_doubt_late(&g->migrate);
	else
		nic_doubt_in_time(&g->migrate);
	nic_count(nic, migrated, 1);
}

/* A part to the process's memory.  What the root has left, by now, may be nowhere any more. */
static inline void copy_out(struct nic *nic, struct nic_group *g, const struct nic_member *m, uint64_t bus, const uint8_t *data, uint32_t len)
{
	nic_host_write(nic, bus, data, len);
	if (nic_unlikely(len >= MIGRATE_FROM && g->size == 2 && nic->migrates) && nic_board_looks(nic) > 1 && was_here(m) && !nic_in_doubt(&g->migrate))
		migrate(nic, g, data, len);
}

/* The next part of that broadcast, if it is there. */
static bool take(struct nic *nic, struct nic_group *g, uint32_t call, struct nic_cast *cast)
{
	const union qnix_region *region = &nic->slot->qnix.vni.recv_region[NIC_CALL_FIRST + call];
	struct nic_member *m = &g->member[cast->place];
	const struct nic_board_part *p = &m->board->part[m->parts & NIC_BOARD_MASK];
	uint32_t buffer, end, len, why;
	bool direct;

	if (nic_load_acquire(&p->seq) != m->parts + 1) /* G2 */
		return false;
	buffer = p->buffer;
	direct = is_direct(g, m, buffer);
	end = check(cast, p->total, end_of(p), direct);
	if (nic_unlikely(cast->bad))
		nic_count(nic, bad_packets, 1);
	len = end - cast->at;
	if (direct && !cast->bad && (why = pull_all(nic, m, p, region->descriptor[0], cast->total)) != 0)
		spoil(cast, why);
	else if (!direct && nic_likely(!cast->bad))
		copy_out(nic, g, m, region->descriptor[0] + cast->at,
		         len <= NIC_BOARD_BRIEF ? p->data : nic_board_data(nic, m->board, m->parts, cast->total, buffer), len);
	if (nic_unlikely(!was_here(m)))
		spoil(cast, NIC_WHY_LEFT);
	cast->at = end;
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

static void fail_recv(struct nic *nic, const struct nic_group *g, uint32_t call)
{
	nic_doorbell(nic, true, NIC_CALL_FIRST + call, nic->groups->recv[call].doorbell, QNIX_FAILED, nic_group_why(g));
}

void nic_board_recv(struct nic *nic, struct nic_group *g, uint32_t context, uint32_t place)
{
	const struct qnix_context *c = &nic->slot->qnix.vni.recv[context % QNIX_CONTEXTS];
	uint32_t call = (context - NIC_CALL_FIRST) % NIC_CALLS, left = nic_board_looks(nic);
	struct nic_cast *cast = &nic->groups->recv[call];
	struct nic_member *m = &g->member[place];
	int n = 0;

	g->lead = (uint16_t)place;
	g->lead_len = c->len;
	*cast = (struct nic_cast){ .doorbell = (uint16_t)c->doorbell_flag, .place = (uint16_t)place, .len = c->len,
		.seq = ++m->bcasts, .at = m->ahead, .total = m->ahead ? c->len : 0 };
	m->ahead = 0;
	while (left--) {
		if (take_all(nic, g, call, &n))
			return;
		nic_cpu_look_over();
	}
	if (nic_unlikely(g->member[place].left)) { /* it will not come */
		fail_recv(nic, g, call);
		return;
	}
	g->recvs |= 1u << call;
	nic_group_busy(nic, g);
}

static bool has_next(const struct nic_member *m)
{
	return nic_load_acquire(&m->board->part[m->parts & NIC_BOARD_MASK].seq) == m->parts + 1; /* G2 */
}

/* Did that member lead the last barrier?  It may have thought otherwise. */
static bool has_led(const struct nic_group *g, uint32_t place)
{
	return (int32_t)(nic_load_relaxed(&g->member[place].board->barrier) - nic_board_word(g, NIC_BOARD_GONE)) >= 0; /* how long to look, no more */
}

/* The root that led the barrier left it before the others: it is at its broadcast now, even where processes take turns. */
static uint32_t looks_at(const struct nic *nic, const struct nic_group *g, uint32_t place)
{
	return nic_unlikely(g->leader == place && g->lead == NIC_PLACE_ANY) && has_led(g, place) ? NIC_BOARD_LOOKS : nic_board_looks(nic);
}

/* The next part, of a broadcast of `total` bytes of which `rest` are still to come; 0: where they lie is not known yet. */
static bool wait_next(const struct nic *nic, const struct nic_group *g, const struct nic_member *m, uint32_t left, uint32_t total, uint32_t rest)
{
	uint32_t i = m->parts & NIC_BOARD_MASK;
	const struct nic_board_part *p = &m->board->part[i];
	const uint8_t *data;

	if (rest > NIC_BOARD_BRIEF && nic->foresees) {
		data = nic_board_data(nic, m->board, m->parts, total, g->buffer[i]);
		for (left = (left + ASKING - 1) / ASKING; left > 1; left--)
			if (nic_look(&p->seq, m->parts + 1, data, data + rest)) /* G2 */
				return has_next(m);                     /* it has: said so that checkers of accesses see it */
		return false;
	}
	while (!has_next(m)) {
		if (--left == 0)
			return false;
		nic_cpu_look_over();
	}
	return true;
}

/*
 * Where a part's data lies.  A guess that is mostly right lets the processor read it together with the part's own line, for which the
 * address must come from the guess alone: the compiler must not find out that it is what that line says.
 */
static inline const uint8_t *part_data(const struct nic *nic, struct nic_group *g, const struct nic_member *m, const struct nic_board_part *p,
                                uint32_t total, uint32_t len)
{
	uint32_t *guess = &g->buffer[m->parts & NIC_BOARD_MASK], buffer = *guess;
	const uint8_t *data;

	if (len <= NIC_BOARD_BRIEF)
		return p->data;
	__asm__("" : "+r"(buffer));
	data = nic_board_data(nic, m->board, m->parts, total, buffer);
	if (nic_unlikely(*guess != p->buffer)) {
		*guess = p->buffer;
		data = nic_board_data(nic, m->board, m->parts, total, *guess);
	}
	return data;
}

/* The next part, from `*at` on, which moves to its end, as `take` would take it; what is not as it should be is left to that. */
static inline bool take_now(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t total, uint32_t *at, bool whole)
{
	struct nic_member *m = &g->member[place];
	const struct nic_board_part *p = &m->board->part[m->parts & NIC_BOARD_MASK];
	uint32_t end, len;

	if (nic_unlikely((!has_next(m) && !wait_next(nic, g, m, looks_at(nic, g, place), total, total - *at)) || /* looks_at reads one more line of the root's */
	                 p->total != total))
		return false;
	end = end_of(p);
	if (nic_unlikely(whole ? end != total : !is_part(total, *at, end)))
		return false;
	len = (whole ? total : end) - *at; /* of a whole one known before the line is there */
	copy_out(nic, g, m, bus + *at, part_data(nic, g, m, p, total, len), len);
	if (nic_unlikely(!was_here(m)))
		return false;
	*at += len;
	m->parts++;
	return true;
}

/*
 * Who leaves such a barrier waits for the root's broadcast anyway, mostly.  It waits in the barrier, where it looks at what that will be written to, and not at a
 * word of the root's that only says that it will come: that is one line less to move, for both.  A root that computes first makes it
 * wait in vain, each time twice as many broadcasts later.
 */
void nic_board_await(const struct nic *nic, struct nic_group *g)
{
	const struct nic_member *m = &g->member[!g->place];

	if (g->behind < AWAIT_FIRST || g->behind < g->behind_enough)
		return;
	if (!wait_next(nic, g, m, AWAIT_LOOKS, g->lead_len, g->lead_len)) {
		g->behind_enough = !g->behind_enough ? 2 * AWAIT_FIRST : g->behind_enough < AWAIT_LAST ? 2 * g->behind_enough : AWAIT_LAST;
		g->behind = 0;
		return;
	}
	if (g->behind - g->behind_enough >= AWAIT_SURE)
		g->behind_enough = 0;
	nic_board_ask(nic, g, m);
}

/* All parts of one that nothing comes before; `ahead` says how far that went. */
static nic_noinline bool take_parts(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	uint32_t at = 0;

	do {
		if (nic_unlikely(!take_now(nic, g, place, bus, len, &at, false))) {
			m->ahead = at;
			return false;
		}
		if (m->parts - m->told >= TELL || at == len)
			acknowledge(nic, g, place, m);
	} while (at < len);
	return true;
}

/* The same of one that is one part. */
static inline bool take_part(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	uint32_t at = 0;

	if (nic_unlikely(!take_now(nic, g, place, bus, len, &at, true)))
		return false;
	acknowledge(nic, g, place, m);
	return true;
}

/*
 * Nobody but this process copies to the buffer from here on: what the root has not begun it will not begin, and what it has begun is
 * waited for, the time of a copy.  True: the root has copied its half.
 */
static bool settle(struct nic *nic, struct nic_link *link)
{
	struct nic_claim *claim = &link->asked->half;
	uint64_t word = nic_claim_look(claim), told = NIC_CLAIM_DONE | NIC_CLAIM_REFUSED;

	if (!(word & NIC_CLAIM_PARTS))
		word = nic_claim_close(claim);
	if (!(word & NIC_CLAIM_PARTS))
		return false;
	do
		nic_dma_settle(nic, link, claim);
	while (!((word = nic_claim_look(claim)) & told) && nic_driver_alive(nic, link->peer, link->epoch)); /* R2 */
	return word & NIC_CLAIM_DONE;
}

/* The one part that has the address only. */
static bool take_direct(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	const struct nic_board_part *p = &m->board->part[m->parts & NIC_BOARD_MASK];
	struct nic_board_direct direct;

	memcpy(&direct, p->data, sizeof(direct));
	if (p->total != len || p->end != len || direct.own > len || pull(nic, m, direct.addr, bus, direct.own))
		return false;
	if (direct.own < len && !settle(nic, nic->link[m->slot & (NIC_MAX_SLOTS - 1)]) &&
	    pull(nic, m, direct.addr + direct.own, bus + direct.own, len - direct.own))
		return false;
	if (!was_here(m))
		return false;
	m->parts++;
	nic_count(nic, broadcasts_direct, 1);
	acknowledge(nic, g, place, m);
	return true;
}

/* May this process copy a broadcast of that length from the root's memory? */
static bool may_pull(const struct nic *nic, const struct nic_group *g, const struct nic_member *m, uint32_t len)
{
	const struct nic_link *link;

	if (nic_likely(len < NIC_BOARD_DIRECT_MIN || g->size != 2))
		return false;
	link = nic->link[m->slot & (NIC_MAX_SLOTS - 1)];
	return nic->groups->direct && link && link->cma && nic_board_looks(nic) > 1;
}

static struct nic_pace *pace_of(struct nic_group *g, uint32_t len)
{
	uint32_t i = len <= 24 << 10 ? 0 : len <= 48 << 10 ? 1 : len <= 96 << 10 ? 2 : 3;

	_Static_assert(NIC_PACES == 4, "one for each");
	return &g->pace[i];
}

/*
 * The root is told which way this process wants it.  It may come the other way all the same.  The claim is this process's only one:
 * it settles it before it does anything else with the buffer.  What a root that is ahead is told counts for the next one.
 */
static void want(struct nic *nic, struct nic_group *g, const struct nic_member *m, uint32_t way, uint64_t bus)
{
	uint32_t number = m->current + 1;

	if (nic_unlikely(!number)) /* 0 stands for none wanted */
		way = 0;
	g->wanted = way == NIC_BOARD_WANTS_DIRECT && !has_next(m) ? number : 0;
	if (g->wanted) {
		nic->groups->claims += nic->groups->claims == UINT32_MAX ? 2 : 1; /* none is 0 */
		nic_claim_open(&nic->link[m->slot & (NIC_MAX_SLOTS - 1)]->asked->half, nic->groups->claims); /* R1 */
		nic_store_relaxed(&g->board->claim, nic->groups->claims); /* these are published by the release of wants */
		nic_store_relaxed(&g->board->where, bus);
	}
	nic_store_release(&g->board->wants, number * NIC_BOARD_WANTS + way); /* G4: behind `life` */
}

/* Its process may compute from now on, and the root is not to wait for that.  If it has just found that it was wanted, it does. */
static void want_no_more(struct nic *nic, struct nic_group *g, const struct nic_member *m)
{
	nic_store_relaxed(&g->board->wants, 0); /* a hint */
	if (g->wanted)
		settle(nic, nic->link[m->slot & (NIC_MAX_SLOTS - 1)]);
}

/* A long one from the only other member.  The time counts from when the root has begun: how late it is says nothing of the way. */
static nic_noinline bool recv_either(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];
	struct nic_pace *pace = pace_of(g, len);
	bool direct = false, good = false;
	uint64_t start = 0;

	want(nic, g, m, pace->way, bus);
	if (wait_next(nic, g, m, looks_at(nic, g, place), len, 0)) {
		start = nic_ticks();
		direct = is_direct(g, m, m->board->part[m->parts & NIC_BOARD_MASK].buffer);
		good = (direct ? take_direct : take_parts)(nic, g, place, bus, len);
	}
	if (good)
		nic_pace_took(pace, direct, nic_ticks() - start);
	else
		want_no_more(nic, g, m);
	return good;
}

/* One that nothing comes before.  If it does not come as a whole, `recv` goes on where this has stopped. */
bool nic_board_recv_now(struct nic *nic, struct nic_group *g, uint32_t place, uint64_t bus, uint32_t len)
{
	struct nic_member *m = &g->member[place];

	if (nic_unlikely(m->current != m->bcasts))
		return false;
	if (nic_unlikely(!(len <= NIC_BOARD_PART           ? take_part(nic, g, place, bus, len) :
	                   may_pull(nic, g, m, len) ? recv_either(nic, g, place, bus, len) :
	                                              take_parts(nic, g, place, bus, len))))
		return false;
	m->current = ++m->bcasts;
	g->behind += g->lead == NIC_PLACE_ANY;
	g->lead = (uint16_t)place;
	g->lead_len = len;
	nic_count(nic, broadcasts, 1);
	return true;
}

/* ---- passes, and ends ---------------------------------------------------------------------------------------------------------- */

int nic_board_recv_run(struct nic *nic, struct nic_group *g)
{
	int n = 0;

	for (uint32_t left = g->recvs; left; left &= left - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(left);

		if (take_all(nic, g, call, &n))
			g->recvs &= ~(1u << call);
	}
	return n;
}

/* A receive whose next part is there. */
static bool has_part(const struct nic_group *g, const struct nic_cast *cast)
{
	const struct nic_member *m = &g->member[cast->place];

	return cast->seq == m->current + 1 && has_next(m);
}

bool nic_board_recv_moves(const struct nic *nic, const struct nic_group *g)
{
	for (uint32_t left = g->recvs; left; left &= left - 1)
		if (has_part(g, &nic->groups->recv[__builtin_ctz(left)]))
			return true;
	return false;
}

void nic_board_recv_fail(struct nic *nic, struct nic_group *g, uint32_t place)
{
	for (uint32_t left = g->recvs; left; left &= left - 1) {
		uint32_t call = (uint32_t)__builtin_ctz(left);

		if (place != NIC_PLACE_ANY && nic->groups->recv[call].place != place)
			continue;
		fail_recv(nic, g, call);
		g->recvs &= ~(1u << call);
	}
}
