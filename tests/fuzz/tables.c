/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile peer (tests/fuzz/hostile.h) in the tables that connections are made through: what it listens for, what it asks for,
 * and what it says of the other's.
 */
#include "tests/fuzz/hostile.h"

static void hostile_addr(struct nic_addr *addr)
{
	static const char *const names[] = { "a", "b", "" };

	*addr = addr_of(p.a.nic, names[fuzz_below(3)]);
	if (fuzz_seldom(4))
		addr->disc_len = FUZZ_OF(0, NIC_DISC_MAX, NIC_DISC_MAX + 1, UINT16_MAX);
	if (fuzz_seldom(8))
		fuzz_mutate(addr, sizeof(*addr));
}

static void hostile_end(struct nic_end *end)
{
	const struct nic *who = fuzz_seldom(2) ? p.a.nic : p.b.nic;

	end->slot = fuzz_seldom(6) ? FUZZ_OF(2, NIC_MAX_SLOTS - 1, NIC_MAX_SLOTS, UINT16_MAX) : who->me;
	end->vi = some_vi();
	end->gen = nic_vi(who, end->vi)->gen;
	end->epoch = who->slot->epoch + fuzz_seldom(6);
	end->attr = (struct nic_vi_attr){ 1u << fuzz_below(3), 3, FUZZ_OF(NIC_MAX_TRANSFER, NIC_MAX_TRANSFER, 0, UINT32_MAX), 0 };
	hostile_addr(&end->local);
}

static void hostile_listen(struct nic_listen *l)
{
	uint32_t claimed = NIC_LS_CLAIMED | p.b.nic->me << NIC_LS_SLOT_SHIFT | p.b.nic->slot->epoch << NIC_LS_EPOCH_SHIFT;

	if (fuzz_seldom(6)) {
		fuzz_bytes(l, sizeof(*l));
		return;
	}
	hostile_addr(&l->local);
	hostile_end(&l->client);
	hostile_end(&l->server);
	atomic_store(&l->state, FUZZ_OF(fuzz_below(NIC_LS_ABANDONED + 2), fuzz_below(NIC_LS_ABANDONED + 2), claimed, fuzz_word()));
}

static void hostile_request(struct nic_peer_req *r)
{
	if (fuzz_seldom(6)) {
		fuzz_bytes(r, sizeof(*r));
		return;
	}
	hostile_end(&r->self);
	hostile_end(&r->peer);
	hostile_addr(&r->remote);
	atomic_store(&r->state, FUZZ_OF(NIC_PS_FREE, NIC_PS_PENDING, NIC_PS_MATCHED, NIC_PS_MATCHED, fuzz_word()));
}

static void hostile_tables(void)
{
	struct nic_slot *s = (fuzz_seldom(2) ? p.a : p.b).nic->slot;

	if (fuzz_seldom(2))
		hostile_listen(&s->listen[fuzz_below(4)]);
	else
		hostile_request(&s->peer[fuzz_below(VIS)]);
}

/* Connected, or lost already: but no longer on its way, and not as if nothing had been. */
static void is_settled(uint32_t vi)
{
	uint32_t state = nic_vi_state(nic_vi(p.a.nic, vi));

	CHECK(state == NIC_VI_CONNECTED || state == NIC_VI_ERROR);
}

static void server_call(uint32_t vi)
{
	uint32_t id = fuzz_below(4);
	struct nic_vi_attr attr;
	struct nic_addr addr;

	switch (fuzz_below(5)) {
	case 0:
		hostile_addr(&addr);
		nic_listen_open(p.a.nic, &addr, &id);
		break;
	case 1:
		if (nic_listen_poll(p.a.nic, id, &addr, &attr) == NIC_OK)
			CHECK(addr.disc_len <= NIC_DISC_MAX);
		break;
	case 2:
		nic_listen_close(p.a.nic, id);
		break;
	case 3:
		if (nic_accept(p.a.nic, id, vi) == NIC_OK)
			is_settled(vi);
		break;
	default:
		nic_reject(p.a.nic, id);
	}
}

/* What each VI has asked for: an honest consumer polls and withdraws that, and nothing else. */
static enum { NOTHING, SERVER, PEER } asked[VIS];

static void ask(int i)
{
	struct nic_addr local, remote;

	hostile_addr(&local);
	hostile_addr(&remote);
	if (fuzz_seldom(2) && nic_connect_request(p.a.nic, avi[i], &local, &remote) == NIC_OK)
		asked[i] = SERVER;
	else if (nic_peer_request(p.a.nic, avi[i], &local, &remote) == NIC_OK)
		asked[i] = PEER;
}

static void ask_again(int i)
{
	struct nic_vi_attr attr;
	int err = asked[i] == SERVER ? nic_connect_poll(p.a.nic, avi[i], &attr) : nic_peer_poll(p.a.nic, avi[i], &attr);

	if (err == NIC_OK)
		is_settled(avi[i]);
	if (err != NIC_NOT_DONE)
		asked[i] = NOTHING;
}

static void client_call(int i)
{
	int err;

	if (asked[i] == NOTHING) {
		ask(i);
	} else if (!fuzz_seldom(4)) {
		ask_again(i);
	} else {
		err = asked[i] == SERVER ? nic_connect_cancel(p.a.nic, avi[i]) : nic_peer_cancel(p.a.nic, avi[i]);
		if (err == NIC_OK)
			asked[i] = NOTHING;
	}
}

static void end_request(int i)
{
	nic_disconnect(p.a.nic, avi[i]);
	asked[i] = NOTHING;
}

static void look_round(void)
{
	struct nic_addr local, remote;
	uint32_t cursor = 0;

	while (nic_peer_pending(p.a.nic, &cursor, &local, &remote) == NIC_OK)
		CHECK(local.disc_len <= NIC_DISC_MAX && remote.disc_len <= NIC_DISC_MAX);
}

static void tables_step(void)
{
	int i = fuzz_below(VIS);

	switch (fuzz_below(8)) {
	case 0:
	case 1:
		hostile_tables();
		break;
	case 2:
		server_call(avi[i]);
		break;
	case 3:
	case 4:
		client_call(i);
		break;
	case 5:
		look_round();
		nic_poll(p.a.nic);
		break;
	case 6:
		post_recv(i);
		post_send(i);
		break;
	default:
		if (fuzz_seldom(4))
			end_request(i);
		hostile_packet();
	}
}

static void tables_round(void)
{
	open_round();
	memset(asked, 0, sizeof(asked));
	connect_vi(0);
	for (int i = 0; i < STEPS; i++)
		tables_step();
	is_sound(p.a.nic);
	everything_completes();
	close_round();
}

static void hostile_connections(void)
{
	fuzz_rounds(tables_round, 1);
}

int main(int argc, char **argv)
{
	fuzz_start(argc, argv);
	hostile_start();
	CASE(hostile_connections);
	return check_done();
}
