/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: how two VIs find each other.  Everything happens in the tables of mem/conn.h, which all slots of the card
 * can reach; no side needs the other to run its control program for a refusal (nobody waits there) to be known at once.
 *
 * Before a peer is allowed to send, the link to it is open here: a client opens it before it shows its request, a server
 * before it accepts, and of two peers the one that finds the match before it says so; the other one when it looks.
 */
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/remote.h"

/*
 * A peer that dies before the connection to it is made is found by the watch alone, and nobody gets its slot before.  Who makes
 * connections looks at two for each, however seldom it polls: where peers come and die, the dead do not fill the table.
 */
static void look_around(struct nic *nic)
{
	for (int i = 0; i < 2; i++)
		nic_driver_watch(nic);
}

static bool disc_equal(const struct nic_addr *a, const struct nic_addr *b)
{
	return a->disc_len == b->disc_len && a->disc_len <= NIC_DISC_MAX && memcmp(a->disc, b->disc, a->disc_len) == 0;
}

static bool addr_equal(const struct nic_addr *a, const struct nic_addr *b)
{
	return memcmp(a->host, b->host, NIC_ADDR_LEN) == 0 && disc_equal(a, b);
}

static int check_addr(const struct nic *nic, const struct nic_addr *local, const struct nic_addr *remote)
{
	if (local->disc_len > NIC_DISC_MAX || (remote && remote->disc_len > NIC_DISC_MAX))
		return NIC_PARAMETER;
	if (remote && memcmp(remote->host, nic->map->hdr.addr, NIC_ADDR_LEN) != 0)
		return NIC_NOT_REACHABLE;
	return NIC_OK;
}

static uint32_t slots_used(const struct nic *nic)
{
	uint32_t used = nic_load_acquire(&nic->map->hdr.used); /* pairs with registration */

	return used < NIC_MAX_SLOTS ? used : NIC_MAX_SLOTS;
}

static void fill_end(const struct nic *nic, uint32_t vi, const struct nic_addr *local, struct nic_end *out)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);

	memset(out, 0, sizeof(*out));
	out->slot = nic->me;
	out->vi = vi;
	out->gen = ctx->gen;
	out->epoch = nic_load_relaxed(&nic->slot->epoch); /* own word */
	nic_vi_query(nic, vi, NULL, &out->attr);
	if (local)
		out->local = *local;
}

static int compare(const struct nic_vi_ctx *ctx, const struct nic_vi_attr *theirs)
{
	if (ctx->reliability != theirs->reliability)
		return NIC_RELIABILITY;
	return ctx->max_transfer != theirs->max_transfer ? NIC_MTU : NIC_OK;
}

static void go(struct nic *nic, uint32_t vi, uint32_t state)
{
	nic_store_release(&nic_vi(nic, vi)->state, state); /* as in vi.c */
}

/* ---- server ------------------------------------------------------------------------------------------------------ */

/* An entry whose client took the answer, or died before it could. */
static bool reusable(const struct nic *nic, struct nic_listen *l)
{
	uint32_t state = nic_load_acquire(&l->state) & NIC_LS_MASK; /* pairs with the client's change of state */

	if (state == NIC_LS_FREE)
		return true;
	return (state == NIC_LS_ACCEPTED || state == NIC_LS_REJECTED || state == NIC_LS_ABANDONED) &&
	       !nic_driver_alive(nic, l->client.slot & (NIC_MAX_SLOTS - 1), l->client.epoch);
}

int nic_listen_open(struct nic *nic, const struct nic_addr *local, uint32_t *id)
{
	int err = check_addr(nic, local, NULL);

	if (nic->remote)
		return nic_remote_listen(nic, local, id);
	if (err)
		return err;
	for (uint32_t i = 0; i < NIC_LISTENERS; i++) {
		struct nic_listen *l = &nic->slot->listen[i];

		if (!reusable(nic, l))
			continue;
		nic_store_relaxed(&l->state, NIC_LS_SETUP); /* own entry; nobody acts on SETUP */
		l->local = *local;
		nic_store_release(&l->state, NIC_LS_WAITING); /* pairs with the acquire in find_waiting */
		*id = i;
		return NIC_OK;
	}
	return NIC_RESOURCE;
}

static bool claimer_alive(const struct nic *nic, uint32_t state)
{
	uint32_t slot = state >> NIC_LS_SLOT_SHIFT & (NIC_MAX_SLOTS - 1);
	uint32_t epoch = nic_load_acquire(&nic->map->slot[slot].epoch); /* the slot's present life */

	return (epoch & NIC_LS_EPOCH_MASK) == state >> NIC_LS_EPOCH_SHIFT && nic_driver_alive(nic, slot, epoch);
}

int nic_listen_poll(struct nic *nic, uint32_t id, struct nic_addr *client, struct nic_vi_attr *attr)
{
	struct nic_listen *l = &nic->slot->listen[id & (NIC_LISTENERS - 1)];
	uint32_t state = nic_load_acquire(&l->state); /* pairs with the release of REQUESTED */

	if (nic->remote)
		return nic_remote_arrival(nic, id, client, attr);
	switch (state & NIC_LS_MASK) {
	case NIC_LS_REQUESTED:
		*client = l->client.local;
		if (client->disc_len > NIC_DISC_MAX)
			client->disc_len = NIC_DISC_MAX;
		*attr = l->client.attr;
		return NIC_OK;
	case NIC_LS_CLAIMED: /* a moment only, unless the claimer died in it */
		if (!claimer_alive(nic, state))
			nic_cas(&l->state, &state, NIC_LS_WAITING);
		return NIC_NOT_DONE;
	case NIC_LS_ABANDONED:
		nic_store_release(&l->state, NIC_LS_WAITING); /* pairs with find_waiting; the client is through with the entry */
		return NIC_NOT_DONE;
	default:
		return NIC_NOT_DONE;
	}
}

int nic_listen_close(struct nic *nic, uint32_t id)
{
	struct nic_listen *l = &nic->slot->listen[id & (NIC_LISTENERS - 1)];
	uint32_t waiting = NIC_LS_WAITING, abandoned = NIC_LS_ABANDONED;

	if (nic->remote)
		return nic_remote_number(nic, NIC_CALL_LISTEN_CLOSE, id);
	if (nic_cas(&l->state, &waiting, NIC_LS_FREE) || nic_cas(&l->state, &abandoned, NIC_LS_FREE))
		return NIC_OK;
	return NIC_BUSY;
}

int nic_accept(struct nic *nic, uint32_t id, uint32_t vi)
{
	struct nic_listen *l = &nic->slot->listen[id & (NIC_LISTENERS - 1)];
	struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_end client = l->client; /* copied, then checked */
	uint32_t requested = NIC_LS_REQUESTED;
	int err;

	if (nic->remote)
		return nic_remote_accept(nic, id, vi);
	if (nic_vi_state(ctx) != NIC_VI_IDLE)
		return NIC_PARAMETER;
	err = compare(ctx, &client.attr);
	if (err)
		return err;
	look_around(nic);
	fill_end(nic, vi, &l->local, &l->server);
	/* A link may be there still from before the client died. */
	if (!nic_driver_alive(nic, client.slot & (NIC_MAX_SLOTS - 1), client.epoch)) {
		nic_store_release(&l->state, NIC_LS_FREE); /* pairs with reusable */
		return NIC_STATE;
	}
	if (!nic_driver_link(nic, client.slot, client.epoch)) {
		nic_reject(nic, id); /* no memory for the link; the client must not wait for ever */
		return NIC_RESOURCE;
	}
	if (!nic_cas(&l->state, &requested, NIC_LS_ACCEPTED)) {
		nic_store_release(&l->state, NIC_LS_FREE); /* pairs with reusable; the client has withdrawn */
		return NIC_STATE;
	}
	nic_vi_up(nic, vi, &client);
	nic_bell_tell(nic, client.slot);
	return NIC_OK;
}

int nic_reject(struct nic *nic, uint32_t id)
{
	struct nic_listen *l = &nic->slot->listen[id & (NIC_LISTENERS - 1)];
	uint32_t requested = NIC_LS_REQUESTED;

	if (nic->remote)
		return nic_remote_number(nic, NIC_CALL_REJECT, id);
	if (nic_cas(&l->state, &requested, NIC_LS_REJECTED)) {
		nic_bell_tell(nic, l->client.slot);
		return NIC_OK;
	}
	if ((requested & NIC_LS_MASK) != NIC_LS_ABANDONED)
		return NIC_STATE;
	nic_store_release(&l->state, NIC_LS_FREE); /* as in accept */
	return NIC_OK;
}

/* ---- client ------------------------------------------------------------------------------------------------------ */

static uint32_t claim_word(const struct nic *nic)
{
	uint32_t epoch = nic_load_relaxed(&nic->slot->epoch); /* own word */

	return NIC_LS_CLAIMED | nic->me << NIC_LS_SLOT_SHIFT | (epoch & NIC_LS_EPOCH_MASK) << NIC_LS_EPOCH_SHIFT;
}

/* Worth a closer look: somebody there waits for this client. */
static bool waits(struct nic_slot *s, const struct nic_addr *remote)
{
	if (nic_load_acquire(&s->state) != NIC_SLOT_LIVE) /* pairs with registration */
		return false;
	for (uint32_t i = 0; i < NIC_LISTENERS; i++) {
		struct nic_addr at;

		if (nic_load_acquire(&s->listen[i].state) != NIC_LS_WAITING) /* pairs with listen_open */
			continue;
		at = s->listen[i].local; /* copied, then checked */
		if (at.disc_len == 0 || disc_equal(&at, remote))
			return true;
	}
	return false;
}

static struct nic_listen *claim(struct nic *nic, uint32_t slot, const struct nic_addr *remote, uint32_t *id)
{
	struct nic_slot *s = &nic->map->slot[slot];

	for (uint32_t i = 0; i < NIC_LISTENERS; i++) {
		struct nic_listen *l = &s->listen[i];
		uint32_t waiting = NIC_LS_WAITING;
		struct nic_addr at;

		if (nic_load_acquire(&l->state) != NIC_LS_WAITING) /* pairs with listen_open */
			continue;
		at = l->local;
		if (at.disc_len != 0 && !disc_equal(&at, remote))
			continue;
		if (nic_card_writable(nic->card, s->listen, sizeof(s->listen)) && nic_cas(&l->state, &waiting, claim_word(nic))) {
			*id = i;
			return l;
		}
	}
	return NULL;
}

int nic_connect_request(struct nic *nic, uint32_t vi, const struct nic_addr *local, const struct nic_addr *remote)
{
	uint32_t used = slots_used(nic), id;
	int err = check_addr(nic, local, remote);

	if (nic->remote)
		return nic_remote_request(nic, NIC_CALL_CONNECT, vi, local, remote);
	if (err)
		return err;
	if (nic_vi_state(nic_vi(nic, vi)) != NIC_VI_IDLE)
		return NIC_STATE;
	look_around(nic);
	for (uint32_t slot = 0; slot < used; slot++) {
		struct nic_slot *s = &nic->map->slot[slot];
		uint32_t epoch = nic_load_acquire(&s->epoch), claimed = claim_word(nic); /* acquire: the life that is claimed */
		struct nic_listen *l;

		if (!waits(s, remote) || !nic_driver_link(nic, slot, epoch))
			continue;
		l = claim(nic, slot, remote, &id);
		if (!l)
			continue;
		fill_end(nic, vi, local, &l->client);
		if (!nic_cas(&l->state, &claimed, NIC_LS_REQUESTED)) /* pairs with listen_poll; fails when the server has died since */
			continue;
		nic->connect_slot[vi] = slot + 1;
		nic->connect_epoch[vi] = epoch;
		nic->connect_id[vi] = id;
		go(nic, vi, NIC_VI_CONNECT_PENDING);
		nic_bell_tell(nic, slot);
		return NIC_OK;
	}
	return NIC_NO_MATCH;
}

static struct nic_listen *outstanding(const struct nic *nic, uint32_t vi)
{
	uint32_t slot = nic->connect_slot[vi];

	return slot ? &nic->map->slot[slot - 1].listen[nic->connect_id[vi]] : NULL;
}

/* The request is over; the VI is idle again unless it was connected. */
static int give_up(struct nic *nic, uint32_t vi, int err)
{
	nic->connect_slot[vi] = 0;
	if (nic_vi_state(nic_vi(nic, vi)) == NIC_VI_CONNECT_PENDING)
		go(nic, vi, NIC_VI_IDLE);
	return err;
}

static bool server_alive(const struct nic *nic, uint32_t vi)
{
	return nic_driver_alive(nic, nic->connect_slot[vi] - 1, nic->connect_epoch[vi]);
}

int nic_connect_poll(struct nic *nic, uint32_t vi, struct nic_vi_attr *remote_attr)
{
	struct nic_listen *l = outstanding(nic, vi);

	if (nic->remote)
		return nic_remote_vi_attr(nic, NIC_CALL_CONNECT_POLL, vi, remote_attr);
	if (!l)
		return NIC_STATE;
	if (!nic_driver_link_now(nic, nic->connect_slot[vi] - 1, nic->connect_epoch[vi]))
		return give_up(nic, vi, nic_vi_state(nic_vi(nic, vi)) == NIC_VI_CONNECT_PENDING ? NIC_NO_MATCH : NIC_OK); /* it died */
	switch (nic_load_acquire(&l->state) & NIC_LS_MASK) { /* pairs with the server's answer */
	case NIC_LS_ACCEPTED:
		nic_conn_settle(nic, vi);
		*remote_attr = l->server.attr;
		nic_store_release(&l->state, NIC_LS_FREE); /* pairs with reusable */
		return give_up(nic, vi, nic_vi_state(nic_vi(nic, vi)) == NIC_VI_CONNECT_PENDING ? NIC_NO_MATCH : NIC_OK); /* by whom? */
	case NIC_LS_REJECTED:
		nic_store_release(&l->state, NIC_LS_FREE);
		return give_up(nic, vi, NIC_REJECTED);
	default:
		return server_alive(nic, vi) ? NIC_NOT_DONE : give_up(nic, vi, NIC_NO_MATCH);
	}
}

int nic_connect_cancel(struct nic *nic, uint32_t vi)
{
	struct nic_listen *l = outstanding(nic, vi);
	uint32_t requested = NIC_LS_REQUESTED;

	if (nic->remote)
		return nic_remote_number(nic, NIC_CALL_CONNECT_CANCEL, vi);
	if (!l)
		return NIC_STATE;
	if (!server_alive(nic, vi) || nic_cas(&l->state, &requested, NIC_LS_ABANDONED))
		return give_up(nic, vi, NIC_OK);
	return NIC_BUSY;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

int nic_peer_request(struct nic *nic, uint32_t vi, const struct nic_addr *local, const struct nic_addr *remote)
{
	struct nic_peer_req *r = &nic->slot->peer[vi & (NIC_VI_TABLE - 1)];
	int err = check_addr(nic, local, remote);

	if (nic->remote)
		return nic_remote_request(nic, NIC_CALL_PEER, vi, local, remote);
	if (err)
		return err;
	if (nic_vi_state(nic_vi(nic, vi)) != NIC_VI_IDLE)
		return NIC_STATE;
	look_around(nic);
	fill_end(nic, vi, local, &r->self);
	/* The local host address is this card's, whatever the caller wrote, so that pairs compare equal. */
	memcpy(r->self.local.host, nic->map->hdr.addr, NIC_ADDR_LEN);
	r->remote = *remote;
	go(nic, vi, NIC_VI_CONNECT_PENDING);
	nic_store_release(&r->state, NIC_PS_PENDING); /* pairs with the acquire in candidate and peer_pending */
	atomic_fetch_add_explicit(&nic->map->hdr.peer_epoch, 1, memory_order_release); /* pairs with nic_peer_epoch */
	nic_bell_tell_all(nic); /* whose address it is, only its owner knows */
	return NIC_OK;
}

uint32_t nic_peer_epoch(struct nic *nic)
{
	uint32_t epoch = nic_load_acquire(&nic->map->hdr.peer_epoch); /* pairs with peer_request */

	nic_wait_epoch(nic, epoch);
	return epoch;
}

/* Copies the request if it is pending. */
static bool pending(struct nic_peer_req *r, struct nic_end *self, struct nic_addr *remote)
{
	if (nic_load_acquire(&r->state) != NIC_PS_PENDING) /* pairs with peer_request */
		return false;
	*self = r->self;
	*remote = r->remote;
	return self->local.disc_len <= NIC_DISC_MAX && remote->disc_len <= NIC_DISC_MAX;
}

static uint32_t vis_used(const struct nic_slot *s)
{
	uint32_t n = nic_load_acquire(&s->vis); /* pairs with vi_create */

	return n < NIC_VI_TABLE ? n : NIC_VI_TABLE;
}

/* Another request that fits this one. */
static struct nic_peer_req *candidate(struct nic *nic, const struct nic_peer_req *mine, struct nic_end *self)
{
	uint32_t used = slots_used(nic);
	struct nic_addr remote;

	for (uint32_t slot = 0; slot < used; slot++) {
		struct nic_slot *s = &nic->map->slot[slot];
		uint32_t n = vis_used(s);

		if (nic_load_acquire(&s->state) != NIC_SLOT_LIVE) /* pairs with registration */
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (&s->peer[i] != mine && pending(&s->peer[i], self, &remote) && addr_equal(&self->local, &mine->remote) &&
			    addr_equal(&remote, &mine->self.local) && nic_driver_alive(nic, slot, self->epoch))
				return &s->peer[i];
	}
	return NULL;
}

/* Both sides may try at the same time: the card lock decides. */
static bool try_match(struct nic *nic, struct nic_peer_req *mine)
{
	struct nic_end other;
	struct nic_addr remote;
	struct nic_peer_req *theirs = candidate(nic, mine, &other);
	bool both;

	if (!theirs || !nic_driver_link(nic, other.slot, other.epoch))
		return false;
	nic_card_lock(nic->card);
	/* Its owner may have withdrawn and asked for something else meanwhile. */
	both = nic_load_relaxed(&mine->state) == NIC_PS_PENDING && pending(theirs, &other, &remote) && /* card lock */
	       addr_equal(&other.local, &mine->remote) && addr_equal(&remote, &mine->self.local) &&
	       nic_driver_link_now(nic, other.slot, other.epoch);
	if (both) {
		mine->peer = other;
		theirs->peer = mine->self;
		nic_store_release(&theirs->state, NIC_PS_MATCHED); /* pairs with the acquire in settle_peer */
		nic_store_release(&mine->state, NIC_PS_MATCHED);
	}
	nic_card_unlock(nic->card);
	if (both)
		nic_bell_tell(nic, other.slot);
	return both;
}

static int end_peer(struct nic *nic, uint32_t vi, int err)
{
	nic_store_release(&nic->slot->peer[vi].state, NIC_PS_FREE); /* pairs with pending */
	if (nic_vi_state(nic_vi(nic, vi)) == NIC_VI_CONNECT_PENDING)
		go(nic, vi, NIC_VI_IDLE);
	return err;
}

/* Matched: connect, unless the two do not fit or the peer has died since.  From the receive path no link is opened or dropped. */
static int settle_peer(struct nic *nic, uint32_t vi, bool may_open)
{
	struct nic_peer_req *r = &nic->slot->peer[vi];
	uint32_t state = nic_vi_state(nic_vi(nic, vi));
	struct nic_end peer;
	int err;

	if (nic_load_acquire(&r->state) != NIC_PS_MATCHED) /* pairs with try_match of either side */
		return NIC_NOT_DONE;
	peer = r->peer;
	err = compare(nic_vi(nic, vi), &peer.attr);
	if (err)
		return err;
	if (state != NIC_VI_CONNECT_PENDING) /* data came first, and with it the connection */
		return state == NIC_VI_IDLE ? NIC_NO_MATCH : NIC_OK;
	if (may_open ? !nic_driver_link(nic, peer.slot, peer.epoch) : !nic_driver_link_now(nic, peer.slot, peer.epoch))
		return NIC_NO_MATCH;
	nic_vi_up(nic, vi, &peer);
	return NIC_OK;
}

int nic_peer_poll(struct nic *nic, uint32_t vi, struct nic_vi_attr *remote_attr)
{
	struct nic_peer_req *r = &nic->slot->peer[vi & (NIC_VI_TABLE - 1)];
	int err;

	if (nic->remote)
		return nic_remote_vi_attr(nic, NIC_CALL_PEER_POLL, vi, remote_attr);
	if (nic_load_relaxed(&r->state) == NIC_PS_FREE) /* own entry */
		return NIC_STATE;
	if (nic_load_acquire(&r->state) == NIC_PS_PENDING) /* pairs with try_match of the other side */
		try_match(nic, r);
	err = settle_peer(nic, vi, true);
	if (err == NIC_NOT_DONE)
		return err;
	if (err == NIC_OK)
		*remote_attr = r->peer.attr;
	return end_peer(nic, vi, err);
}

int nic_peer_cancel(struct nic *nic, uint32_t vi)
{
	struct nic_peer_req *r = &nic->slot->peer[vi & (NIC_VI_TABLE - 1)];
	bool matched;

	if (nic->remote)
		return nic_remote_number(nic, NIC_CALL_PEER_CANCEL, vi);
	nic_card_lock(nic->card);
	matched = nic_load_relaxed(&r->state) == NIC_PS_MATCHED; /* card lock */
	if (!matched)
		nic_store_release(&r->state, NIC_PS_FREE); /* pairs with pending */
	nic_card_unlock(nic->card);
	return matched ? NIC_BUSY : end_peer(nic, vi, NIC_OK);
}

int nic_peer_pending(struct nic *nic, uint32_t *cursor, struct nic_addr *their_local, struct nic_addr *their_remote)
{
	uint32_t used = slots_used(nic);

	for (uint32_t at = *cursor;; at++) {
		uint32_t slot = at / NIC_VI_TABLE, vi = at % NIC_VI_TABLE;
		struct nic_slot *s = &nic->map->slot[slot & (NIC_MAX_SLOTS - 1)];
		struct nic_end self;

		if (slot >= used)
			return NIC_NOT_DONE;
		if (slot == nic->me || vi >= vis_used(s) || nic_load_acquire(&s->state) != NIC_SLOT_LIVE) { /* pairs with registration */
			at |= NIC_VI_TABLE - 1;
			continue;
		}
		if (pending(&s->peer[vi], &self, their_remote) && memcmp(their_remote->host, nic->map->hdr.addr, NIC_ADDR_LEN) == 0) {
			*their_local = self.local;
			*cursor = at + 1;
			return NIC_OK;
		}
	}
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

void nic_conn_settle(struct nic *nic, uint32_t vi)
{
	struct nic_listen *l = outstanding(nic, vi);

	if (!l) {
		if (nic_load_relaxed(&nic->slot->peer[vi].state) != NIC_PS_FREE) /* own entry */
			settle_peer(nic, vi, false);
		return;
	}
	if ((nic_load_acquire(&l->state) & NIC_LS_MASK) == NIC_LS_ACCEPTED && /* pairs with accept */
	    nic_vi_state(nic_vi(nic, vi)) == NIC_VI_CONNECT_PENDING) {
		struct nic_end server = l->server; /* copied, then checked */

		if (server.slot == nic->connect_slot[vi] - 1 && nic_driver_link_now(nic, server.slot, server.epoch))
			nic_vi_up(nic, vi, &server);
	}
}

/* Disconnect while a request is out: withdrawn, or, too late for that, connected for the moment. */
void nic_conn_withdraw(struct nic *nic, uint32_t vi)
{
	struct nic_vi_attr attr;

	if (outstanding(nic, vi)) {
		if (nic_connect_cancel(nic, vi) == NIC_BUSY)
			nic_connect_poll(nic, vi, &attr);
	} else if (nic_load_relaxed(&nic->slot->peer[vi].state) != NIC_PS_FREE && nic_peer_cancel(nic, vi) == NIC_BUSY) { /* own entry */
		nic_peer_poll(nic, vi, &attr);
	}
}

void nic_conn_forget(struct nic *nic)
{
	for (uint32_t i = 0; i < NIC_LISTENERS; i++) {
		struct nic_listen *l = &nic->slot->listen[i];
		uint32_t state = nic_load_acquire(&l->state) & NIC_LS_MASK; /* pairs with the client's change of state */

		if (state == NIC_LS_REQUESTED)
			nic_reject(nic, i);
		else if (state == NIC_LS_WAITING)
			nic_listen_close(nic, i);
	}
}
