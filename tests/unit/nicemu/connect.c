/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: client and server, peers, every way in which they do not come about. */
#include "tests/unit/nicemu/pair.h"

static char device[48];

static void open_both(struct pair *p)
{
	end_open(&p->a, device);
	end_open(&p->b, device);
	end_vi(&p->a, NIC_RELIABLE_DELIVERY);
	end_vi(&p->b, NIC_RELIABLE_DELIVERY);
}

static enum nic_vi_state state_of(const struct end *e)
{
	enum nic_vi_state state;

	nic_vi_query(e->nic, e->vi, &state, NULL);
	return state;
}

static void works(struct pair *p)
{
	struct nic_desc *r = fill(&p->b, 0, 0, p->b.mem, 10);

	recv_desc(&p->b, r);
	send_desc(&p->a, fill(&p->a, 0, 0, p->a.mem, 10));
	pair_poll(p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
}

static void client_server(void)
{
	struct pair p;
	struct nic_addr server, client, from;
	struct nic_vi_attr attr;
	uint32_t id;
	int pid;
	uint32_t slot;

	open_both(&p);
	server = addr_of(p.b.nic, "server");
	client = addr_of(p.a.nic, "client");
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_NO_MATCH);
	CHECK_EQ(state_of(&p.a), NIC_VI_IDLE);
	CHECK_EQ(nic_listen_open(p.b.nic, &server, &id), NIC_OK);
	CHECK_EQ(nic_listen_poll(p.b.nic, id, &from, &attr), NIC_NOT_DONE);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_OK);
	CHECK_EQ(state_of(&p.a), NIC_VI_CONNECT_PENDING);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_STATE);
	CHECK_EQ(nic_connect_poll(p.a.nic, p.a.vi, &attr), NIC_NOT_DONE);
	CHECK_EQ(nic_listen_poll(p.b.nic, id, &from, &attr), NIC_OK);
	CHECK_EQ(from.disc_len, 6);
	CHECK(memcmp(from.disc, "client", 6) == 0);
	CHECK_EQ(attr.reliability, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(nic_accept(p.b.nic, id, p.b.vi), NIC_OK);
	CHECK_EQ(state_of(&p.b), NIC_VI_CONNECTED);
	CHECK_EQ(nic_connect_poll(p.a.nic, p.a.vi, &attr), NIC_OK);
	CHECK_EQ(state_of(&p.a), NIC_VI_CONNECTED);
	CHECK_EQ(nic_vi_peer(p.a.nic, p.a.vi, &pid, &slot), NIC_OK);
	CHECK_EQ(pid, getpid());
	works(&p);
	pair_close(&p);
}

/* The server's first message may arrive before the client has looked at the answer. */
static void data_before_answer(void)
{
	struct pair p;
	struct nic_addr server, client, from;
	struct nic_vi_attr attr;
	struct nic_desc *r;
	uint32_t id;

	open_both(&p);
	server = addr_of(p.b.nic, "server");
	client = addr_of(p.a.nic, "client");
	r = fill(&p.a, 0, 0, p.a.mem, 10);
	recv_desc(&p.a, r);
	nic_listen_open(p.b.nic, &server, &id);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_OK);
	CHECK_EQ(nic_listen_poll(p.b.nic, id, &from, &attr), NIC_OK);
	CHECK_EQ(nic_accept(p.b.nic, id, p.b.vi), NIC_OK);
	send_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 10));
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK_EQ(nic_connect_poll(p.a.nic, p.a.vi, &attr), NIC_OK);
	CHECK_EQ(state_of(&p.a), NIC_VI_CONNECTED);
	pair_close(&p);
}

static void refused(void)
{
	struct pair p;
	struct nic_addr server, client, from;
	struct nic_vi_attr attr;
	struct nic_vi_attr other = { .reliability = NIC_UNRELIABLE };
	uint32_t id;

	open_both(&p);
	server = addr_of(p.b.nic, "server");
	client = addr_of(p.a.nic, "client");
	nic_listen_open(p.b.nic, &server, &id);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_OK);
	CHECK_EQ(nic_listen_close(p.b.nic, id), NIC_BUSY);
	CHECK_EQ(nic_listen_poll(p.b.nic, id, &from, &attr), NIC_OK);
	/* Attributes that do not fit leave the request open; the server may change its VI. */
	CHECK_EQ(nic_vi_set(p.b.nic, p.b.vi, &other), NIC_OK);
	CHECK_EQ(nic_accept(p.b.nic, id, p.b.vi), NIC_RELIABILITY);
	other = attr;
	other.max_transfer = 1000;
	other.ptag = 0;
	CHECK_EQ(nic_vi_set(p.b.nic, p.b.vi, &other), NIC_OK);
	CHECK_EQ(nic_accept(p.b.nic, id, p.b.vi), NIC_MTU);
	CHECK_EQ(nic_connect_poll(p.a.nic, p.a.vi, &attr), NIC_NOT_DONE);
	CHECK_EQ(nic_reject(p.b.nic, id), NIC_OK);
	CHECK_EQ(nic_connect_poll(p.a.nic, p.a.vi, &attr), NIC_REJECTED);
	CHECK_EQ(state_of(&p.a), NIC_VI_IDLE);
	/* withdrawn by the client: the wait goes on */
	CHECK_EQ(nic_listen_open(p.b.nic, &server, &id), NIC_OK);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_OK);
	CHECK_EQ(nic_connect_cancel(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(state_of(&p.a), NIC_VI_IDLE);
	CHECK_EQ(nic_listen_poll(p.b.nic, id, &from, &attr), NIC_NOT_DONE);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &server), NIC_OK);
	CHECK_EQ(nic_listen_poll(p.b.nic, id, &from, &attr), NIC_OK);
	/* withdrawn after the server has seen it */
	CHECK_EQ(nic_connect_cancel(p.a.nic, p.a.vi), NIC_OK);
	other = (struct nic_vi_attr){ .reliability = NIC_RELIABLE_DELIVERY };
	CHECK_EQ(nic_vi_set(p.b.nic, p.b.vi, &other), NIC_OK);
	CHECK_EQ(nic_accept(p.b.nic, id, p.b.vi), NIC_STATE);
	CHECK_EQ(state_of(&p.b), NIC_VI_IDLE);
	pair_close(&p);
}

static void discriminators(void)
{
	struct pair p;
	struct nic_addr any, one, two, client, from, bad;
	struct nic_vi_attr attr;
	uint32_t id_one, id_two, id_any;

	open_both(&p);
	one = addr_of(p.b.nic, "one");
	two = addr_of(p.b.nic, "two");
	any = addr_of(p.b.nic, "");
	client = addr_of(p.a.nic, "client");
	CHECK_EQ(nic_listen_open(p.b.nic, &one, &id_one), NIC_OK);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &two), NIC_NO_MATCH);
	CHECK_EQ(nic_listen_open(p.b.nic, &two, &id_two), NIC_OK);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &two), NIC_OK);
	CHECK_EQ(nic_listen_poll(p.b.nic, id_one, &from, &attr), NIC_NOT_DONE);
	CHECK_EQ(nic_listen_poll(p.b.nic, id_two, &from, &attr), NIC_OK);
	CHECK_EQ(nic_reject(p.b.nic, id_two), NIC_OK);
	CHECK_EQ(nic_connect_poll(p.a.nic, p.a.vi, &attr), NIC_REJECTED);
	CHECK_EQ(nic_listen_open(p.b.nic, &any, &id_any), NIC_OK);
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &two), NIC_OK);
	CHECK_EQ(nic_listen_poll(p.b.nic, id_any, &from, &attr), NIC_OK);
	CHECK_EQ(nic_connect_cancel(p.a.nic, p.a.vi), NIC_OK);
	bad = two;
	bad.host[5] ^= 1;
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &bad), NIC_NOT_REACHABLE);
	bad = two;
	bad.disc_len = NIC_DISC_MAX + 1;
	CHECK_EQ(nic_connect_request(p.a.nic, p.a.vi, &client, &bad), NIC_PARAMETER);
	for (int i = 0; i < 100; i++) {
		uint32_t id;
		int err = nic_listen_open(p.b.nic, &one, &id);

		CHECK(err == NIC_OK || err == NIC_RESOURCE);
		if (i == 99)
			CHECK_EQ(err, NIC_RESOURCE);
	}
	pair_close(&p);
}

static void peers(void)
{
	struct pair p;
	struct nic_addr a, b, their_local, their_remote;
	struct nic_vi_attr attr;
	uint32_t cursor = 0, epoch;

	open_both(&p);
	a = addr_of(p.a.nic, "a");
	b = addr_of(p.b.nic, "b");
	epoch = nic_peer_epoch(p.b.nic);
	CHECK_EQ(nic_peer_pending(p.b.nic, &cursor, &their_local, &their_remote), NIC_NOT_DONE);
	CHECK_EQ(nic_peer_request(p.a.nic, p.a.vi, &a, &b), NIC_OK);
	CHECK(nic_peer_epoch(p.b.nic) != epoch);
	CHECK_EQ(nic_peer_poll(p.a.nic, p.a.vi, &attr), NIC_NOT_DONE);
	cursor = 0;
	CHECK_EQ(nic_peer_pending(p.b.nic, &cursor, &their_local, &their_remote), NIC_OK);
	CHECK(their_local.disc_len == 1 && their_local.disc[0] == 'a');
	CHECK(their_remote.disc_len == 1 && their_remote.disc[0] == 'b');
	CHECK_EQ(nic_peer_pending(p.b.nic, &cursor, &their_local, &their_remote), NIC_NOT_DONE);
	cursor = 0;
	CHECK_EQ(nic_peer_pending(p.a.nic, &cursor, &their_local, &their_remote), NIC_NOT_DONE); /* not its own */
	CHECK_EQ(nic_peer_cancel(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(state_of(&p.a), NIC_VI_IDLE);
	CHECK_EQ(nic_peer_request(p.b.nic, p.b.vi, &b, &a), NIC_OK);
	CHECK_EQ(nic_peer_poll(p.b.nic, p.b.vi, &attr), NIC_NOT_DONE);
	CHECK_EQ(nic_peer_request(p.a.nic, p.a.vi, &a, &b), NIC_OK);
	CHECK_EQ(nic_peer_poll(p.a.nic, p.a.vi, &attr), NIC_OK);
	CHECK_EQ(nic_peer_cancel(p.b.nic, p.b.vi), NIC_BUSY);
	CHECK_EQ(nic_peer_poll(p.b.nic, p.b.vi, &attr), NIC_OK);
	works(&p);
	pair_close(&p);
}

static void peers_unfit(void)
{
	struct pair p;
	struct nic_addr a, b;
	struct nic_vi_attr attr, other = { .reliability = NIC_UNRELIABLE };

	open_both(&p);
	a = addr_of(p.a.nic, "a");
	b = addr_of(p.b.nic, "b");
	CHECK_EQ(nic_vi_set(p.b.nic, p.b.vi, &other), NIC_OK);
	CHECK_EQ(nic_peer_request(p.a.nic, p.a.vi, &a, &b), NIC_OK);
	CHECK_EQ(nic_peer_request(p.b.nic, p.b.vi, &b, &a), NIC_OK);
	CHECK_EQ(nic_peer_poll(p.a.nic, p.a.vi, &attr), NIC_RELIABILITY);
	CHECK_EQ(nic_peer_poll(p.b.nic, p.b.vi, &attr), NIC_RELIABILITY);
	CHECK_EQ(state_of(&p.a), NIC_VI_IDLE);
	CHECK_EQ(state_of(&p.b), NIC_VI_IDLE);
	pair_close(&p);
}

/* A VI connected to another VI of its own slot. */
static void loopback(void)
{
	struct pair p;
	struct nic_addr x, y;
	struct nic_vi_attr attr;
	struct end *e = &p.a;
	struct nic_vi_args args;
	uint32_t other;
	struct nic_desc *r;

	end_open(e, device);
	end_vi(e, NIC_RELIABLE_RECEPTION);
	args = (struct nic_vi_args){ .attr = { .reliability = NIC_RELIABLE_RECEPTION, .ptag = e->ptag }, .cookie = 2 };
	CHECK_EQ(nic_vi_create(e->nic, &args, &other), NIC_OK);
	x = addr_of(e->nic, "x");
	y = addr_of(e->nic, "y");
	CHECK_EQ(nic_peer_request(e->nic, e->vi, &x, &y), NIC_OK);
	CHECK_EQ(nic_peer_request(e->nic, other, &y, &x), NIC_OK);
	CHECK_EQ(nic_peer_poll(e->nic, e->vi, &attr), NIC_OK);
	CHECK_EQ(nic_peer_poll(e->nic, other, &attr), NIC_OK);
	for (int i = 0; i < 300; i++) {
		uint32_t len = i * 211;

		r = fill(e, 0, 0, e->mem + 500000, len);
		pattern(e->mem, len, i);
		nic_post_recv(e->nic, other, r);
		send_desc(e, fill(e, 1, 0, e->mem, len));
		for (int k = 0; k < 20; k++)
			nic_poll(e->nic);
		CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
		CHECK_EQ(status_of(&e->desc[1]), NIC_ST_DONE);
		CHECK(is_pattern(e->mem + 500000, len, i));
	}
	end_close(e);
}

static void many_vis(void)
{
	struct pair p;
	struct nic_vi_args args;
	uint32_t vi[NIC_MAX_VI];
	int n = 0;

	open_both(&p);
	args = (struct nic_vi_args){ .attr = { .reliability = NIC_UNRELIABLE }, .cookie = 2 };
	while (n < NIC_MAX_VI && nic_vi_create(p.a.nic, &args, &vi[n]) == NIC_OK)
		n++;
	CHECK_EQ(n, NIC_MAX_VI - 1); /* one is there already */
	while (n--)
		CHECK_EQ(nic_vi_destroy(p.a.nic, vi[n]), NIC_OK);
	args.attr.reliability = 3;
	CHECK_EQ(nic_vi_create(p.a.nic, &args, &vi[0]), NIC_RELIABILITY);
	args.attr = (struct nic_vi_attr){ .reliability = 1, .max_transfer = NIC_MAX_TRANSFER + 1 };
	CHECK_EQ(nic_vi_create(p.a.nic, &args, &vi[0]), NIC_MTU);
	args.attr = (struct nic_vi_attr){ .reliability = 1, .ptag = 999 };
	CHECK_EQ(nic_vi_create(p.a.nic, &args, &vi[0]), NIC_PTAG);
	pair_close(&p);
}

int main(void)
{
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	CASE(client_server);
	CASE(data_before_answer);
	CASE(refused);
	CASE(discriminators);
	CASE(peers);
	CASE(peers_unfit);
	CASE(loopback);
	CASE(many_vis);
	return check_done();
}
