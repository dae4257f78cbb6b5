/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver: process registration and de-registration, links, and what happens when a process dies.
 *
 * A slot is FREE, or LIVE while its owner holds the slot's record lock.  The owner may die at any instruction: the lock
 * is then gone while the state still says LIVE, and that is what "dead" means here.  Whoever registers next may take a
 * dead or free slot, but only when no live slot holds a link with it, so that nobody reads or writes a newcomer's rings
 * by mistake.  Live slots drop their links when their watch finds the peer dead (nic_driver_watch).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/group.h"
#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/cores.h"
#include "nicemu/engine/daemon.h"
#include "nicemu/engine/dma.h"
#include "nicemu/obs/obs.h"
#include "nicemu/util/log.h"

/* ---- registration ------------------------------------------------------------------------------------------------ */

/* The card lock is held.  Others can write the word: it is not believed beyond the table. */
static uint32_t slots_used(const struct nic *nic)
{
	uint32_t used = nic_load_relaxed(&nic->map->hdr.used); /* under the card lock */

	return used < NIC_MAX_SLOTS ? used : NIC_MAX_SLOTS;
}

static bool linked_by_others(struct nic *nic, uint32_t slot, uint32_t used)
{
	for (uint32_t i = 0; i < used; i++) {
		struct nic_slot *other = &nic->map->slot[i];

		/* Acquire: pairs with the release in link_drop; the other is through with the slot. */
		if (i != slot && (nic_load_acquire(&other->linked[slot / 64]) >> (slot % 64) & 1) &&
		    nic_load_acquire(&other->state) == NIC_SLOT_LIVE && nic_card_held(nic->card, i))
			return true;
	}
	return false;
}

/* Its process is gone, but the daemon has not let go yet, or is about to find out. */
static bool still_served(const struct nic *nic, uint32_t slot)
{
	uint32_t life = nic_load_acquire(&nic->map->slot[slot].served) & ~NIC_SERVE_HOLDS; /* pairs with the releases in serve.c and daemon.c */

	return life && nic_daemon_lives(nic->card, life);
}

/* Takes the life line of a slot that nobody has; the card lock is held. */
static int choose_slot(struct nic *nic)
{
	uint32_t used = slots_used(nic);

	for (uint32_t i = 0; i < NIC_MAX_SLOTS; i++) {
		if (i < used && (nic_card_held(nic->card, i) || linked_by_others(nic, i, used) || still_served(nic, i)))
			continue;
		if (nic_card_hold(nic->card, i))
			return i;
	}
	return -1;
}

/*
 * A former life may have left anything in the slot's tables and in the rings from and to it.  This one may end anywhere in here, and then
 * the next begins anew: so the rings are empty before rx_pos is, which would make what was read from them unread.
 */
static void clean_slot(struct nic *nic, uint32_t me)
{
	struct nic_slot *slot = nic->slot;
	uint32_t used = slots_used(nic);
	static const struct nic_ring_head start;

	if (nic_load_relaxed(&slot->epoch) == 0) /* never used: all zero; under the card lock */
		return;
	nic_buffer_recover(nic, me);
	nic_heap_recover(nic, me);
	nic_card_zero(nic->card, slot->listen, sizeof(*slot) - offsetof(struct nic_slot, listen));
	nic_store_order();
	memset(slot->rx_pos, 0, sizeof(slot->rx_pos));
	nic_store_relaxed(&slot->vis, 0); /* these two, and what follows, are published by the release of state */
	nic_store_relaxed(&slot->regions, 0);
	for (uint32_t i = 0; i < used; i++) {
		struct nic_slot *other = &nic->map->slot[i];

		if (i == me || nic_load_relaxed(&other->epoch) == 0)
			continue;
		nic_card_zero(nic->card, other->ring[me], sizeof(other->ring[me]));
		nic_card_zero(nic->card, &other->claims[me], sizeof(other->claims[me]));
		nic_card_poke(nic->card, &other->ring_head[me], &start, sizeof(start)); /* nobody has a link with this slot */
	}
	for (uint32_t w = 0; w < NIC_MAX_SLOTS / 64; w++) {
		nic_store_relaxed(&slot->linked[w], 0); /* published by the release of state */
		nic_store_relaxed(&slot->pulls[w], 0);
	}
	for (uint32_t w = 0; w < NIC_BOARDS / 64; w++)
		nic_store_relaxed(&slot->boards[w], 0); /* likewise */
}

static void read_command(char *out, size_t size)
{
	FILE *f = fopen("/proc/self/comm", "re");

	if (!f || !fgets(out, size, f))
		snprintf(out, size, "?");
	out[strcspn(out, "\n")] = 0;
	if (f)
		fclose(f);
}

static void describe(struct nic *nic)
{
	struct nic_slot *slot = nic->slot;

	nic->probe_word = nic->map->hdr.uuid ^ ((uint64_t)getpid() << 20) ^ nic->me;
	slot->probe_addr = (uintptr_t)&nic->probe_word;
	slot->probe_word = nic->probe_word;
	slot->map_base = (uintptr_t)nic->map;
	slot->heap = nic_card_heap(nic->card) ? NIC_HEAP_SIZE : 0;
	read_command(slot->command, sizeof(slot->command));
	nic_store_relaxed(&slot->pid, (int32_t)getpid()); /* published by the release of state */
	snprintf(slot->arch, sizeof(slot->arch), "%s", nic->arch->name);
	slot->elsewhere = nic->engine->elsewhere;
	if (slot->elsewhere) { /* a daemon that runs already may take the slot as soon as it is live */
		slot->port.cma = nic->cma;
		slot->port.buffer_cap = nic->buffer_cap;
	}
	nic_store_relaxed(&slot->served, 0); /* published by the release of state */
	nic_counters_init(slot);
}

static bool prepare_slot(struct nic *nic, uint32_t me)
{
	struct nic_slot *slot = nic->slot;

	if (!nic_card_writable(nic->card, slot, sizeof(*slot)) || !nic_card_reserve(nic->card, slot, offsetof(struct nic_slot, listen)))
		return false;
	nic_store_relaxed(&slot->state, NIC_SLOT_SETUP); /* only the card lock's holder looks at SETUP */
	clean_slot(nic, me);
	return nic_card_reserve(nic->card, slot->listen, sizeof(slot->listen)) &&
	       nic_card_reserve(nic->card, slot->ring_head, sizeof(slot->ring_head)) &&
	       (!nic->engine->elsewhere || nic_card_reserve(nic->card, &slot->port, sizeof(slot->port)));
}

/* Does the slot have another architecture, or is it run elsewhere while this one is not, or the other way round? */
static bool differs(const struct nic *nic, const struct nic_slot *s)
{
	return strncmp(s->arch, nic->arch->name, sizeof(s->arch)) != 0 || s->elsewhere != nic->engine->elsewhere;
}

/* The NICs of a card understand each other: one architecture, and run by one daemon, or each by its process. */
static const struct nic_slot *stranger(const struct nic *nic)
{
	uint32_t used = slots_used(nic);

	for (uint32_t i = 0; i < used; i++) {
		struct nic_slot *s = &nic->map->slot[i];

		/* Acquire: pairs with registration. */
		if (nic_load_acquire(&s->state) == NIC_SLOT_LIVE && nic_card_held(nic->card, i) &&
		    differs(nic, s))
			return s;
	}
	return NULL;
}

int nic_driver_register(struct nic *nic)
{
	const struct nic_slot *other;
	int me;

	nic_card_lock(nic->card);
	other = stranger(nic);
	if (other) {
		nic_card_unlock(nic->card);
		return nic_fail(NIC_PARAMETER, "device \"%s\" is in use with arch %.15s%s, and cannot be %s%s at the same time",
		                nic->map->hdr.device, other->arch, other->elsewhere ? ", engine daemon" : "", nic->arch->name,
		                nic->engine->elsewhere ? ", engine daemon" : other->elsewhere ? " without a daemon" : "");
	}
	me = choose_slot(nic);
	if (me < 0) {
		nic_card_unlock(nic->card);
		return nic_fail(NIC_RESOURCE, "all %d process slots of device \"%s\" are taken", NIC_MAX_SLOTS, nic->map->hdr.device);
	}
	nic->me = me;
	nic->slot = &nic->map->slot[me];
	if (!prepare_slot(nic, me)) {
		nic_card_drop(nic->card, me);
		nic_card_unlock(nic->card);
		return NIC_RESOURCE;
	}
	if ((uint32_t)me >= slots_used(nic)) /* its pages exist now: scans may look at it */
		nic_store_release(&nic->map->hdr.used, me + 1); /* pairs with the acquire of scans */
	nic->counter = nic->slot->counter;
	describe(nic);
	nic_wait_publish(nic);
	nic_store_relaxed(&nic->slot->epoch, nic_load_relaxed(&nic->slot->epoch) + 1); /* published by state */
	nic_store_release(&nic->slot->state, NIC_SLOT_LIVE); /* pairs with the acquire of every scan of slots */
	nic_wait_population(nic);
	nic_card_unlock(nic->card);
	nic->mmt_used = 1;
	nic->keeps = 32;
	return NIC_OK;
}

bool nic_driver_alive(const struct nic *nic, uint32_t slot, uint32_t epoch)
{
	const struct nic_slot *s = &nic->map->slot[slot];

	if (nic_load_acquire(&s->state) != NIC_SLOT_LIVE || /* pairs with registration */
	    nic_load_relaxed(&s->epoch) != epoch ||         /* ordered by the acquire above */
	    !nic_card_held(nic->card, slot))
		return false;
	return !s->elsewhere || nic_daemon_lives(nic->card, nic_load_acquire(&s->served)); /* pairs with the release in serve.c */
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void set_bit(_Atomic uint64_t *words, uint32_t i, bool on)
{
	uint64_t bit = (uint64_t)1 << (i % 64);

	if (on)
		atomic_fetch_or_explicit(&words[i / 64], bit, memory_order_acq_rel);
	else
		atomic_fetch_and_explicit(&words[i / 64], ~bit, memory_order_acq_rel); /* pairs with linked_by_others */
}

static void retune(struct nic *nic)
{
	uint32_t limit = nic->nactive ? 512 / nic->nactive : 32;

	nic->keeps = (uint8_t)(limit < 4 ? 4 : limit > 32 ? 32 : limit);
	for (uint32_t i = 0; i < nic->nactive; i++)
		nic->active[i]->keeps = nic->keeps;
}

static void link_drop(struct nic *nic, struct nic_link *link)
{
	for (uint32_t i = 0; i < nic->nactive; i++)
		if (nic->active[i] == link) {
			nic->active[i] = nic->active[--nic->nactive];
			break;
		}
	nic->link[link->peer] = NULL;
	nic_rdma_forget(nic, link);
	free(link->late);
	nic->turn = 0; /* stays below the number of links that take turns */
	if (link->balance < 0)
		nic->buffer_taken += link->balance; /* the peer has them, or whoever cleans up after it */
	set_bit(nic->slot->pulls, link->peer, false);
	set_bit(nic->slot->linked, link->peer, false);
	free(link);
	retune(nic);
}

static struct nic_link *link_open(struct nic *nic, uint32_t peer, uint32_t epoch)
{
	struct nic_slot *slot = &nic->map->slot[peer];
	struct nic_link *link = aligned_alloc(64, (sizeof(*link) + 63) & ~(size_t)63);

	if (!link)
		return NULL;
	memset(link, 0, sizeof(*link));
	if (!nic_card_writable(nic->card, slot->ring[nic->me], sizeof(slot->ring[0])) ||
	    !nic_card_writable(nic->card, &slot->claims[nic->me], sizeof(slot->claims[0])) ||
	    !nic_card_writable(nic->card, slot->listen, NIC_CONN_TABLES) ||
	    !nic_card_reserve(nic->card, slot->ring[nic->me], sizeof(slot->ring[0])) ||
	    !nic_card_reserve(nic->card, nic->slot->ring[peer], sizeof(slot->ring[0])) ||
	    !nic_card_reserve(nic->card, &slot->claims[nic->me], sizeof(slot->claims[0])) ||
	    !nic_card_reserve(nic->card, &nic->slot->claims[peer], sizeof(slot->claims[0]))) {
		free(link);
		return NULL;
	}
	link->tx = slot->ring[nic->me];
	link->tx_head = &slot->ring_head[nic->me].head;
	link->tx_exact = &slot->rx_pos[nic->me];
	link->tx_limit = NIC_RING_CELLS;
	link->bell = nic->deaf ? nic->deaf : &nic->map->bell[peer].asleep;
	link->bells = &nic->counter[NIC_C_bells];
	link->migrated_cells = &nic->counter[NIC_C_migrated_cells];
	link->rx = nic->slot->ring[peer];
	link->rx_head = &nic->slot->ring_head[peer].head;
	link->demotes = nic->demotes;
	link->foresees = nic->foresees;
	link->hastens = nic->hastens;
	link->foreseen_at = UINT32_MAX; /* nothing is */
	link->tx_ahead = nic_cores_ahead();
	link->migrates = nic->migrates;
	link->row.far = nic_cores_far();
	link->rx_exact = &nic->slot->rx_pos[peer];
	nic_store_relaxed(link->rx_exact, 0); /* as in link.h */
	link->asked = &nic->slot->claims[peer];
	link->asking = &slot->claims[nic->me];
	link->ask_head = link->ask_tail = 1; /* a claim that was never open is all zero */
	link->peer = peer;
	link->epoch = epoch;
	link->slot = slot;
	link->pid = nic_load_relaxed(&slot->pid); /* constant during an epoch */
	return link;
}

/*
 * The rings of a pair of lives start zeroed (clean_slot of whichever side is the younger), so both ends may open in any
 * order.  `linked` is set first and the peer looked at again: either the peer is still of that epoch and cannot be
 * replaced any more, or the link is not made.
 */
struct nic_link *nic_driver_link_now(const struct nic *nic, uint32_t peer, uint32_t epoch)
{
	struct nic_link *link = nic->link[peer & (NIC_MAX_SLOTS - 1)];

	return link && link->epoch == epoch && !link->lost ? link : NULL;
}

struct nic_link *nic_driver_link(struct nic *nic, uint32_t peer, uint32_t epoch)
{
	struct nic_link *link = nic_driver_link_now(nic, peer, epoch);

	if (link)
		return link;
	peer &= NIC_MAX_SLOTS - 1;
	if (nic->link[peer]) {
		nic_driver_watch_all(nic); /* the slot has changed hands since */
		if (nic->link[peer])
			return NULL;
	}
	nic_card_lock(nic->card);
	set_bit(nic->slot->linked, peer, true);
	nic_card_unlock(nic->card);
	link = nic_driver_alive(nic, peer, epoch) ? link_open(nic, peer, epoch) : NULL;
	if (!link) {
		set_bit(nic->slot->linked, peer, false);
		return NULL;
	}
	nic_dma_probe(nic, link);
	if (link->cma)
		set_bit(nic->slot->pulls, peer, true);
	if (link->cma && link->send_max)
		nic_row_start(link);
	nic->link[peer] = link;
	nic->active[nic->nactive++] = link;
	retune(nic);
	return link;
}

void nic_driver_reap(struct nic *nic)
{
	uint32_t used = slots_used(nic);

	for (uint32_t i = 0; i < used; i++)
		if (!nic_card_held(nic->card, i) && !linked_by_others(nic, i, used) && !still_served(nic, i))
			nic_heap_recover(nic, i);
}

/* ---- death ------------------------------------------------------------------------------------------------------- */

static void link_lost(struct nic *nic, struct nic_link *link)
{
	while (nic_rx_drain(nic, link) > 0) /* what it sent before it died counts */
		;
	link->lost = true;
	for (uint32_t vi = 0; vi < nic->vi_used; vi++) {
		struct nic_vi_ctx *ctx = nic_vi(nic, vi);

		if (nic_vi_state(ctx) == NIC_VI_CONNECTED && ctx->peer_slot == link->peer)
			nic_vi_lost(nic, vi);
	}
	nic_group_lost(nic, link->peer);
	if (nic->arch->pipe->lost)
		nic->arch->pipe->lost(nic, link->peer);
	link_drop(nic, link);
	if (nic_card_trylock(nic->card)) { /* if not now, when memory is short */
		nic_driver_reap(nic);
		nic_card_unlock(nic->card);
	}
}

static void look_after(struct nic *nic, struct nic_link *link)
{
	if (!link->lost && !nic_driver_alive(nic, link->peer, link->epoch))
		link_lost(nic, link);
}

void nic_driver_watch(struct nic *nic)
{
	if (nic->nactive)
		look_after(nic, nic->active[nic->watched++ % nic->nactive]);
}

void nic_driver_watch_all(struct nic *nic)
{
	for (uint32_t i = nic->nactive; i-- > 0;)
		look_after(nic, nic->active[i]);
}

/* ---- de-registration --------------------------------------------------------------------------------------------- */

/* Nobody can dequeue any more, and the memory of the descriptors may be gone: they are not touched. */
static void forget_work(struct nic_vi_ctx *ctx)
{
	ctx->tx_head = ctx->tx_next = ctx->tx_tail;
	ctx->rx_head = ctx->rx_tail;
	ctx->tx_spilled = ctx->rx_spilled = ctx->rx_bad = ctx->rx_quick = 0;
	ctx->send_cq = ctx->recv_cq = 0;
}

void nic_driver_deregister(struct nic *nic)
{
	nic_wait_close(nic);
	if (!nic->host_gone) /* who asked something of a process that has died is told so, and nothing else */
		nic_conn_forget(nic);
	for (uint32_t vi = 0; vi < nic->vi_used; vi++)
		if (nic_vi_state(nic_vi(nic, vi)) != NIC_VI_FREE) {
			nic_rdma_revoke(nic, vi);
			forget_work(nic_vi(nic, vi));
			nic_disconnect(nic, vi);
		}
	if (nic->arch->pipe->close)
		nic->arch->pipe->close(nic);
	nic_groups_destroy(nic);
	for (uint32_t i = 0; i < nic->nactive; i++)
		nic_rx_drain(nic, nic->active[i]); /* for the buffers; there is no connection any more */
	nic_buffer_release(nic);
	if (!nic->deaf) /* else it is its process's to do */
		nic_heap_release(nic);
	nic_card_lock(nic->card);
	while (nic->nactive)
		link_drop(nic, nic->active[0]);
	nic_store_release(&nic->slot->state, NIC_SLOT_FREE); /* pairs with the acquire in nic_driver_alive */
	nic_wait_population(nic);
	nic_card_drop(nic->card, nic->me);
	nic_card_unlock(nic->card);
}
