/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a QNIX NIC: Scheduling Queue and Receive Table entries from fixed pools, runs of Descriptor Map elements and
 * of pages of the local buffers.  Everything is there from the start and nothing grows: who finds none waits, or is refused.
 *
 * The state machines of TX and RX stand here as tables; qnix_tx.c and qnix_rx.c walk along them.
 */
#include <stdlib.h>

#include "nicemu/ctl/qnix.h"

#define TO(state) (1u << (state))

const struct qnix_state qnix_tx_states[QNIX_TX_STATES] = {
	[QNIX_TX_1] = { "TX 1", "finds a process with a pending send", QNIX_CPU, TO(QNIX_TX_2) | TO(QNIX_TX_5) },
	[QNIX_TX_2] = { "TX 2", "finds a permitted send, asks for the others", QNIX_CPU, TO(QNIX_TX_1) | TO(QNIX_TX_3) },
	[QNIX_TX_3] = { "TX 3", "writes the packet header to the output FIFO", QNIX_LINK, TO(QNIX_TX_4) | TO(QNIX_TX_5) },
	[QNIX_TX_4] = { "TX 4", "starts the DMA, counts it in the entry", QNIX_DMA_TX, TO(QNIX_TX_5) },
	[QNIX_TX_5] = { "TX 5", "finds a process with a command", QNIX_CPU, TO(QNIX_TX_6) | TO(QNIX_TX_7) | TO(QNIX_TX_END) },
	[QNIX_TX_6] = { "TX 6", "executes the command", QNIX_CPU, TO(QNIX_TX_7) | TO(QNIX_TX_END) },
	[QNIX_TX_7] = { "TX 7", "requeues the send, or completes it", QNIX_DMA_TX, TO(QNIX_TX_END) },
	[QNIX_TX_END] = { "end", "this execution of TX is over", QNIX_CPU, 0 },
};

const struct qnix_state qnix_rx_states[QNIX_RX_STATES] = {
	[QNIX_RX_1] = { "RX 1", "reads the header, finds the receive", QNIX_CPU, TO(QNIX_RX_2) | TO(QNIX_RX_3) | TO(QNIX_RX_END) },
	[QNIX_RX_2] = { "RX 2", "places the packet through the Descriptor Map", QNIX_DMA_RX, TO(QNIX_RX_4) | TO(QNIX_RX_END) },
	[QNIX_RX_3] = { "RX 3", "does what a system message says", QNIX_CPU, TO(QNIX_RX_END) },
	[QNIX_RX_4] = { "RX 4", "completes the receive when all is there", QNIX_DMA_RX, TO(QNIX_RX_END) },
	[QNIX_RX_END] = { "end", "this execution of RX is over", QNIX_CPU, 0 },
};

/* ---- runs --------------------------------------------------------------------------------------------------------- */

static bool bit(const struct qnix_run_pool *pool, uint32_t i)
{
	return pool->used[i / 64] >> (i % 64) & 1;
}

static void mark(struct qnix_run_pool *pool, uint32_t at, uint32_t n, bool used)
{
	for (uint32_t i = at; i < at + n; i++) {
		uint64_t m = (uint64_t)1 << (i % 64);

		pool->used[i / 64] = used ? pool->used[i / 64] | m : pool->used[i / 64] & ~m;
	}
}

/* First fit from `from` up to `to`. */
static uint32_t search(const struct qnix_run_pool *pool, uint32_t from, uint32_t to, uint32_t n)
{
	uint32_t free = 0;

	for (uint32_t i = from; i < to; i++) {
		free = bit(pool, i) ? 0 : free + 1;
		if (free == n)
			return i + 1 - n;
	}
	return UINT32_MAX;
}

uint32_t qnix_run_take(struct qnix_run_pool *pool, uint32_t n)
{
	uint32_t at;

	if (n == 0 || n > pool->size - pool->taken)
		return UINT32_MAX;
	at = search(pool, pool->hint, pool->size, n);
	if (at == UINT32_MAX)
		at = search(pool, 0, pool->hint + n < pool->size ? pool->hint + n : pool->size, n);
	if (at == UINT32_MAX)
		return UINT32_MAX;
	mark(pool, at, n, true);
	pool->hint = at + n < pool->size ? at + n : 0;
	pool->taken += n;
	return at;
}

void qnix_run_give(struct qnix_run_pool *pool, uint32_t at, uint32_t n)
{
	mark(pool, at, n, false);
	pool->taken -= n;
	pool->hint = at; /* the last one used is the next one: its lines are warm */
}

/* ---- Scheduling Queue ---------------------------------------------------------------------------------------------- */

struct qnix_sq *qnix_sq_take(struct qnix *q, bool vi)
{
	struct qnix_sq *s, *head;
	uint16_t i = q->sq_free;

	if (i == QNIX_NONE || (vi ? q->sq_vi == QNIX_SQ_VI : q->sq_used - q->sq_vi == QNIX_SQ_ENTRIES - QNIX_SQ_VI))
		return NULL;
	s = &q->sq[i];
	q->sq_free = s->next;
	q->sq_used++;
	q->sq_vi += vi;
	*s = (struct qnix_sq){ .before = QNIX_NONE, .after = QNIX_NONE, .patience = QNIX_PATIENCE_MIN };
	if (q->pte.scheduling.head == QNIX_NONE) {
		s->next = s->prev = q->pte.scheduling.head = q->pte.scheduling.tail = i;
		return s;
	}
	head = &q->sq[q->pte.scheduling.head];
	s->next = q->pte.scheduling.head;
	s->prev = head->prev;
	q->sq[head->prev].next = i;
	head->prev = i;
	q->pte.scheduling.tail = i;
	return s;
}

void qnix_sq_give(struct qnix *q, struct qnix_sq *s, bool vi)
{
	uint16_t i = qnix_sq_index(q, s);

	if (q->current == s)
		q->current = NULL;
	if (s->next == i) {
		q->pte.scheduling.head = q->pte.scheduling.tail = QNIX_NONE;
	} else {
		q->sq[s->prev].next = s->next;
		q->sq[s->next].prev = s->prev;
		if (q->pte.scheduling.head == i)
			q->pte.scheduling.head = s->next;
		q->pte.scheduling.tail = q->sq[q->pte.scheduling.head].prev;
	}
	s->next = q->sq_free;
	q->sq_free = i;
	q->sq_used--;
	q->sq_vi -= vi;
}

/* ---- Receive Table ------------------------------------------------------------------------------------------------- */

static uint32_t bucket(uint16_t node, uint16_t pid, uint16_t tag)
{
	return (node * 31u + pid * 7u + tag + (tag >> 8)) % QNIX_RT_BUCKETS;
}

struct qnix_rt *qnix_rt_take(struct qnix *q, bool vi, uint16_t node, uint16_t pid, uint16_t tag)
{
	uint32_t b = bucket(node, pid, tag);
	uint16_t i = q->rt_free;
	struct qnix_rt *r;

	if (i == QNIX_NONE || (vi ? q->rt_vi == QNIX_RT_VI : q->rt_used - q->rt_vi == QNIX_RT_ENTRIES - QNIX_RT_VI))
		return NULL;
	r = &q->rt[i];
	q->rt_free = r->next;
	q->rt_used++;
	q->rt_vi += vi;
	*r = (struct qnix_rt){ .match = { node, pid, tag }, .context = QNIX_NO_CONTEXT, .buffer = QNIX_NO_BUFFER, .map = QNIX_NO_MAP,
		.next = QNIX_NONE, .command = vi ? QNIX_CODE_VI_RECEIVE : QNIX_CODE_RECEIVE };
	if (q->bucket[b] == QNIX_NONE)
		q->bucket[b] = i;
	else
		q->rt[q->bucket_tail[b]].next = i;
	q->bucket_tail[b] = i;
	return r;
}

static void unchain(struct qnix *q, const struct qnix_rt *r)
{
	uint32_t b = bucket(r->match.node, r->match.pid, r->match.tag);
	uint16_t i = qnix_rt_index(q, r), *at = &q->bucket[b], before = QNIX_NONE;

	while (*at != i) {
		before = *at;
		at = &q->rt[*at].next;
	}
	*at = r->next;
	if (q->bucket_tail[b] == i)
		q->bucket_tail[b] = before;
}

void qnix_rt_give(struct qnix *q, struct qnix_rt *r)
{
	unchain(q, r);
	if (r->map != QNIX_NO_MAP)
		qnix_run_give(&q->maps, r->map, r->packets);
	q->rt_used--;
	q->rt_vi -= r->command == QNIX_CODE_VI_RECEIVE;
	r->next = q->rt_free;
	q->rt_free = qnix_rt_index(q, r);
}

struct qnix_rt *qnix_rt_find(struct qnix *q, const struct qnix_rt *from, uint16_t node, uint16_t pid, uint16_t tag)
{
	uint16_t i = from ? from->next : q->bucket[bucket(node, pid, tag)];

	for (; i != QNIX_NONE; i = q->rt[i].next)
		if (q->rt[i].match.tag == tag && q->rt[i].match.node == node && q->rt[i].match.pid == pid)
			return &q->rt[i];
	return NULL;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void pools(struct qnix *q)
{
	q->maps = (struct qnix_run_pool){ .used = q->bits, .size = QNIX_MAPS };
	q->early = (struct qnix_run_pool){ .used = q->bits + QNIX_MAPS / 64, .size = QNIX_LOCAL_EARLY };
	q->bcast_pages = (struct qnix_run_pool){ .used = q->early.used + QNIX_LOCAL_EARLY / 64, .size = QNIX_LOCAL_BCAST };
	for (uint32_t i = 0; i < QNIX_SQ_ENTRIES; i++)
		q->sq[i].next = i + 1 < QNIX_SQ_ENTRIES ? i + 1 : QNIX_NONE;
	for (uint32_t i = 0; i < QNIX_RT_ENTRIES; i++)
		q->rt[i].next = i + 1 < QNIX_RT_ENTRIES ? i + 1 : QNIX_NONE;
	for (uint32_t i = 0; i < QNIX_RT_BUCKETS; i++)
		q->bucket[i] = q->bucket_tail[i] = QNIX_NONE;
	q->pte.scheduling.head = q->pte.scheduling.tail = QNIX_NONE;
}

int qnix_create(struct nic *nic)
{
	struct qnix *q = calloc(1, sizeof(*q));

	if (!q)
		return NIC_RESOURCE;
	q->sched = calloc(1, sizeof(*q->sched));
	if (!q->sched) {
		free(q);
		return NIC_RESOURCE;
	}
	q->nic = nic;
	pools(q);
	nic->qnix = q;
	return NIC_OK;
}

void qnix_sched_put(struct qnix_sched *sched)
{
	if (!sched->users)
		free(sched);
}

void qnix_destroy(struct nic *nic)
{
	if (!nic->qnix)
		return;
	qnix_sched_put(nic->qnix->sched);
	free(nic->qnix);
	nic->qnix = NULL;
}
