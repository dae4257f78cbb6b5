/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload buffers in the hands of one slot: a stack (the last one read is the next one written: its lines are warm), filled
 * from and emptied to the card's pool in batches.
 *
 * A buffer belongs to whoever holds its index: a slot's stack, a consumer, a packet on a link, or the pool.  At every step the
 * index leaves its old place before it enters the new one, so a process that dies may lose it but never leaves it with two
 * owners.  The stack lies in the slot: whoever takes the slot of a dead process puts what that held back into the pool, and
 * what lay unread on the links to it.  Only what its consumer held is gone until the card is.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/util/copy.h"
#include "nicemu/util/log.h"

enum { LINE = 64 };
_Static_assert(NIC_BUFFER_SIZE % LINE == 0, "a buffer begins with a line, as the pool does");

/* ---- the pool; all under the card lock --------------------------------------------------------------------------- */

static uint32_t pool_get(struct nic_pool *pool, uint32_t *out, uint32_t want)
{
	uint32_t got = 0;

	while (got < want) {
		uint32_t nfree = nic_load_relaxed(&pool->nfree), bump = nic_load_relaxed(&pool->bump); /* card lock */

		if (nfree && nfree <= NIC_POOL_BUFFERS) {
			nic_store_release(&pool->nfree, nfree - 1);
			out[got++] = pool->free[nfree - 1] & (NIC_POOL_BUFFERS - 1);
		} else if (bump < NIC_POOL_BUFFERS) {
			nic_store_release(&pool->bump, bump + 1);
			out[got++] = bump;
		} else {
			break;
		}
	}
	return got;
}

static void pool_put(struct nic_pool *pool, uint32_t index)
{
	uint32_t nfree = nic_load_relaxed(&pool->nfree); /* card lock */

	if (nfree >= NIC_POOL_BUFFERS || index >= NIC_POOL_BUFFERS)
		return;
	pool->free[nfree] = index;
	nic_store_release(&pool->nfree, nfree + 1); /* the index is in place before it counts */
}

static bool backed(struct nic *nic, const uint32_t *index, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!nic_card_reserve(nic->card, nic_buffer(nic, index[i]), NIC_BUFFER_SIZE))
			return false;
	return true;
}

/* ---- a slot's stack ---------------------------------------------------------------------------------------------- */

static void push(struct nic *nic, uint32_t index)
{
	struct nic_slot *slot = nic->slot;

	slot->buffer[slot->nbuffers] = index;
	nic_store_order(); /* it is in its place before it counts */
	slot->nbuffers++;
}

static void taken(struct nic *nic, int64_t change)
{
	nic->buffer_taken += change;
	nic->counter[NIC_C_buffers_taken] = nic->buffer_taken;
}

/* Buffers that peers hold of this slot's: they come back, or their number is bounded by the links. */
static int64_t lent(const struct nic *nic)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < nic->nactive; i++)
		if (nic->active[i]->balance < 0)
			n -= nic->active[i]->balance;
	return n;
}

/* Never waits: when another process is at the pool, there is none now. */
static nic_noinline void refill(struct nic *nic)
{
	uint32_t batch[NIC_BUFFER_BATCH], n;

	if (nic->buffer_taken - nic->buffer_kept - lent(nic) + NIC_BUFFER_BATCH > nic->buffer_cap || !nic_card_trylock(nic->card))
		return;
	n = pool_get(&nic->map->pool, batch, NIC_BUFFER_BATCH);
	if (!backed(nic, batch, n)) {
		if (!nic->told_full)
			nic_log(NIC_LOG_WARN, "%s; messages wait until there is room", nic_last_error());
		nic->told_full = true;
		while (n)
			pool_put(&nic->map->pool, batch[--n]);
	}
	nic_card_unlock(nic->card);
	for (uint32_t i = 0; i < n; i++)
		push(nic, batch[i]);
	taken(nic, n);
}

static nic_noinline void spill(struct nic *nic, uint32_t n)
{
	struct nic_slot *slot = nic->slot;

	nic_card_lock(nic->card);
	for (uint32_t i = 0; i < n && slot->nbuffers; i++) {
		slot->nbuffers--;
		pool_put(&nic->map->pool, slot->buffer[slot->nbuffers]);
		taken(nic, -1);
	}
	nic_card_unlock(nic->card);
}

bool nic_buffer_fetch(struct nic *nic)
{
	refill(nic);
	if (nic->slot->nbuffers == 0)
		nic_count(nic, no_buffer, 1);
	return nic->slot->nbuffers != 0;
}

void nic_buffer_give(struct nic *nic, uint32_t index)
{
	if (nic_unlikely(nic->slot->nbuffers == NIC_SLOT_BUFFERS))
		spill(nic, 256);
	push(nic, index);
}

/* Of so many indices on top of the stack the ones that are none go; how many stay. */
static nic_noinline uint32_t sift(uint32_t *top, uint32_t n)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < n; i++)
		if (top[i] < NIC_POOL_BUFFERS)
			top[good++] = top[i];
	return good;
}

/* As if one by one: none of them counts before all are in their places.  `index` is foreign memory: the copy is checked. */
uint32_t nic_buffer_give_row(struct nic *nic, const uint32_t *index, uint32_t n)
{
	struct nic_slot *slot = nic->slot;
	uint64_t all = 0, two;
	uint32_t *top, i;

	if (nic_unlikely(slot->nbuffers > NIC_SLOT_BUFFERS - n))
		spill(nic, 256);
	top = &slot->buffer[slot->nbuffers];
	for (i = 0; i + 1 < n; i += 2) {
		memcpy(&two, &index[i], sizeof(two));
		memcpy(&top[i], &two, sizeof(two));
		all |= two;
	}
	if (i < n) {
		top[i] = index[i];
		all |= top[i];
	}
	if (nic_unlikely((uint32_t)(all | all >> 32) >= NIC_POOL_BUFFERS))
		n = sift(top, n);
	nic_store_order();
	slot->nbuffers += n;
	return n;
}

void nic_buffer_release(struct nic *nic)
{
	spill(nic, NIC_SLOT_BUFFERS);
}

/* The ones that were read last: where messages of one buffer go one way, these few go round, and not twice as many; or fewer still (bulk.c). */
static bool give_back(struct nic *nic, struct nic_link *link)
{
	uint32_t n = link->keeps > NIC_KEEPS_FEW ? 11 : NIC_KEEPS_FEW;
	struct nic_slot *slot = nic->slot;
	struct nic_packet *packet;

	if (slot->nbuffers < 2 * n || link->lost) /* the consumer still has them */
		return false;
	packet = nic_link_reserve(link, NIC_RING_RESERVE);
	if (!packet)
		return false;
	packet->op = NIC_OP_RETURN;
	packet->gen = 0;
	packet->vi = 0;
	packet->len_flags = 0;
	packet->imm = 0;
	packet->ret.n = n;
	slot->nbuffers -= n;
	nic_store_order(); /* as in take */
	for (uint32_t i = 0; i < n; i++)
		packet->ret.buffer[i] = slot->buffer[slot->nbuffers + i];
	nic_link_publish(link, packet, 1);
	link->balance -= (int32_t)n;
	nic_count(nic, buffers_returned, n);
	nic_count(nic, packets_sent, 1);
	return true;
}

/* As many as came: a whole ring of them may have been taken since the last time. */
void nic_buffer_balance(struct nic *nic, struct nic_link *link)
{
	while (link->balance > link->keeps && give_back(nic, link))
		;
}

/* ---- after a death ----------------------------------------------------------------------------------------------- */

static void recover_packet(struct nic_pool *pool, const struct nic_packet *p)
{
	switch (p->op) {
	case NIC_OP_SEND_BUF:
	case NIC_OP_WRITE_BUF:
	case NIC_OP_READ_BUF:
	case NIC_OP_WRITE_PART:
		pool_put(pool, p->buf.buffer);
		break;
	case NIC_OP_QNIX:
		if (p->len_flags & NIC_PF_BUF)
			pool_put(pool, p->qnix.buffer);
		break;
	case NIC_OP_RETURN:
		for (uint32_t i = 0; i < p->ret.n && i < 11; i++)
			pool_put(pool, p->ret.buffer[i]);
		break;
	default:
		break;
	}
}

/*
 * What lies unread on the link from one slot to another; nobody reads or writes it any more.  As everywhere, a packet counts as
 * taken before its buffers are in the pool: who recovers may die of it, and the next one begins where that has stopped.
 */
static void recover_ring(struct nic_card_map *map, uint32_t from, uint32_t to)
{
	struct nic_slot *slot = &map->slot[to];
	uint32_t pos = nic_load_relaxed(&slot->rx_pos[from]);

	for (uint32_t n = 0; n < NIC_RING_CELLS;) {
		struct nic_packet *p = &slot->ring[from][(pos + n) & (NIC_RING_CELLS - 1)];

		if (nic_load_acquire(&p->seq) != pos + n + 1) /* L1 */
			return;
		if (p->op == NIC_OP_SKIP)
			n += nic_ring_rest(pos + n);
		else
			n += p->op == NIC_OP_SEND ? nic_packet_cells(p->len_flags & NIC_PF_LEN) : 1;
		nic_store_relaxed(&slot->rx_pos[from], pos + n);
		nic_store_order();
		recover_packet(&map->pool, p);
	}
}

/* What stayed with its boards; likewise. */
static void recover_boards(struct nic *nic, struct nic_slot *slot)
{
	for (uint32_t i = 0; i < NIC_BOARDS; i++)
		/* Relaxed: card lock */
		for (uint32_t k = 0; nic_load_relaxed(&slot->boards[i / 64]) >> (i % 64) & 1 && k < NIC_BOARD_BUFFERS; k++) {
			uint32_t buffer = slot->board[i].buffer[k];

			slot->board[i].buffer[k] = 0;
			nic_store_order();
			if (buffer)
				pool_put(&nic->map->pool, buffer - 1);
		}
}

void nic_buffer_recover(struct nic *nic, uint32_t dead)
{
	struct nic_slot *slot = &nic->map->slot[dead];
	uint32_t used = nic_load_relaxed(&nic->map->hdr.used); /* card lock */

	while (slot->nbuffers && slot->nbuffers <= NIC_SLOT_BUFFERS) {
		slot->nbuffers--;
		pool_put(&nic->map->pool, slot->buffer[slot->nbuffers]);
	}
	slot->nbuffers = 0;
	recover_boards(nic, slot);
	for (uint32_t i = 0; i < used && i < NIC_MAX_SLOTS; i++)
		if (nic_card_reserve(nic->card, slot->ring[i], sizeof(slot->ring[i]))) /* else it was never there */
			recover_ring(nic->map, i, dead);
}

/* ---- the consumer's ---------------------------------------------------------------------------------------------- */

void *nic_buf_take(struct nic *nic)
{
	uint32_t index;

	if (nic_unlikely(nic->promise.to && nic->looks != nic->promise.looks))
		nic_promise_kept(nic);
	return nic_buffer_take(nic, &index) ? nic_buffer(nic, index) : NULL;
}

void nic_buf_read(struct nic *nic, const void *data, uint32_t len)
{
	uint64_t off = (uintptr_t)data - (uintptr_t)nic->map->buffer;

	if (nic_unlikely(off >= sizeof(nic->map->buffer) || len > NIC_BUFFER_SIZE - off % NIC_BUFFER_SIZE)) {
		nic_count(nic, bad_packets, 1);
		return;
	}
	nic_migrate_lines(nic->pool + off / LINE * LINE, off % LINE + len);
	nic_count(nic, migrated, 1);
}

void nic_buf_copy(struct nic *nic, void *to, const void *data, uint32_t len)
{
	uint64_t off = (uintptr_t)data - (uintptr_t)nic->map->buffer;
	uint8_t *from = nic->pool + off;

	if (nic_unlikely(off >= sizeof(nic->map->buffer) || len > NIC_BUFFER_SIZE - off % NIC_BUFFER_SIZE)) {
		nic_copy(to, data, len);
		return;
	}
	if (nic_likely(off % NIC_BUFFER_SIZE)) /* else it is another buffer's */
		nic_migrate_line(nic->pool + (off - 1) / LINE * LINE);
	nic_copy_migrating(to, from, len);
	nic_count(nic, migrated, 1);
}

void nic_buf_give_row(struct nic *nic, const struct nic_message *row, uint32_t n)
{
	enum { FEW = 64 }; /* the stack has room for so many when it has spilled */
	struct nic_slot *slot = nic->slot;
	uint32_t *top, good = 0;

	if (nic_unlikely(n > FEW || slot->nbuffers > NIC_SLOT_BUFFERS - n)) {
		for (uint32_t i = 0; i < n; i++)
			nic_buf_give(nic, row[i].data);
		return;
	}
	top = &slot->buffer[slot->nbuffers];
	for (uint32_t i = 0; i < n; i++) {
		uint64_t off = (uintptr_t)row[i].data - (uintptr_t)nic->pool;

		if (nic_likely(off < sizeof(nic->map->buffer)))
			top[good++] = (uint32_t)(off / NIC_BUFFER_SIZE);
		else
			nic_count(nic, bad_packets, 1);
	}
	nic_store_order(); /* none counts before all are in their places */
	slot->nbuffers += good;
}

/* Any address inside the buffer will do: a receive may name its middle. */
void nic_buf_give(struct nic *nic, void *buf)
{
	uint64_t off = (uintptr_t)buf - (uintptr_t)nic->map->buffer;

	if (nic_likely(off < sizeof(nic->map->buffer)))
		nic_buffer_give(nic, off / NIC_BUFFER_SIZE);
	else
		nic_count(nic, bad_packets, 1);
}
