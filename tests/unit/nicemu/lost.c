/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other side goes away at the worst moment: between two steps of making a connection, with messages under way, or while
 * this side does not look.  Nobody waits for ever, takes a stranger for the peer, or gets wrong data with success.
 */
#include <sys/syscall.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

static char device[48];

enum { READY, GO, SLOT };

/* In place of the library's, so that memory for a link can be refused. */
static int no_memory;

int mprotect(void *addr, size_t len, int prot)
{
	return no_memory ? -1 : (int)syscall(SYS_mprotect, addr, len, prot);
}

static void open_end(struct end *e, uint16_t level)
{
	end_open(e, device);
	end_vi(e, level);
}

static void looked_after(struct end *e)
{
	for (int i = 0; i < 3 * NIC_WATCH_POLLS; i++)
		nic_poll(e->nic);
	CHECK_EQ(e->nic->nactive, 0);
}

/* ---- a server that dies ------------------------------------------------------------------------------------------ */

static int request(struct end *e)
{
	struct nic_addr local = addr_of(e->nic, "client"), remote = addr_of(e->nic, "server");

	return nic_connect_request(e->nic, e->vi, &local, &remote);
}

static int answer(struct end *e)
{
	struct nic_vi_attr attr;

	return nic_connect_poll(e->nic, e->vi, &attr);
}

static uint32_t listening(struct end *e)
{
	struct nic_addr local = addr_of(e->nic, "server");
	uint32_t id = UINT32_MAX;

	CHECK_EQ(nic_listen_open(e->nic, &local, &id), NIC_OK);
	return id;
}

static int listened(struct end *e, uint32_t id)
{
	struct nic_addr client;
	struct nic_vi_attr attr;

	return nic_listen_poll(e->nic, id, &client, &attr);
}

static int server_accepts_and_dies(void)
{
	struct end e;
	uint32_t id;

	open_end(&e, NIC_RELIABLE_DELIVERY);
	id = listening(&e);
	atomic_store(&kin_step[READY], 1);
	while (listened(&e, id) != NIC_OK)
		;
	nic_accept(e.nic, id, e.vi);
	raise(SIGKILL);
	return 1;
}

static void accepted_by_the_dead(void)
{
	struct end e;
	pid_t child;

	kin_clear();
	child = kin_fork(server_accepts_and_dies);
	CHECK(kin_await(NULL, READY, 1));
	open_end(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(request(&e), NIC_OK);
	CHECK_EQ(kin_wait(child), -SIGKILL);
	looked_after(&e);
	CHECK_EQ(answer(&e), NIC_NO_MATCH);
	CHECK_EQ(kin_state(&e), NIC_VI_IDLE);
	end_close(&e);
}

static int server_waits(void)
{
	struct end e;

	open_end(&e, NIC_RELIABLE_DELIVERY);
	listening(&e);
	atomic_store(&kin_step[READY], 1);
	pause();
	return 1;
}

/* The entry in the dead slot still says that somebody waits there. */
static void nobody_waits_in_a_dead_slot(void)
{
	struct end e, next;
	pid_t child;

	kin_clear();
	child = kin_fork(server_waits);
	CHECK(kin_await(NULL, READY, 1));
	open_end(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	CHECK_EQ(request(&e), NIC_NO_MATCH);
	CHECK_EQ(kin_state(&e), NIC_VI_IDLE);
	open_end(&next, NIC_RELIABLE_DELIVERY); /* the same slot, in its next life */
	CHECK_EQ(request(&e), NIC_NO_MATCH);
	end_close(&next);
	end_close(&e);
}

/* A newcomer has the server's slot by the time the client looks. */
static void server_is_replaced(void)
{
	struct end e, next;
	uint32_t slot;
	pid_t child;

	kin_clear();
	child = kin_fork(server_waits);
	CHECK(kin_await(NULL, READY, 1));
	open_end(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(request(&e), NIC_OK);
	slot = e.nic->connect_slot[e.vi] - 1u;
	CHECK_EQ(kin_kill(child), -SIGKILL);
	looked_after(&e);
	open_end(&next, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(next.nic->me, slot);
	CHECK_EQ(answer(&e), NIC_NO_MATCH);
	CHECK_EQ(kin_state(&e), NIC_VI_IDLE);
	end_close(&next);
	end_close(&e);
}

static void withdrawn_from_the_replaced(void)
{
	struct end e, next;
	pid_t child;

	kin_clear();
	child = kin_fork(server_waits);
	CHECK(kin_await(NULL, READY, 1));
	open_end(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(request(&e), NIC_OK);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	looked_after(&e);
	open_end(&next, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(nic_connect_cancel(e.nic, e.vi), NIC_OK);
	CHECK_EQ(kin_state(&e), NIC_VI_IDLE);
	end_close(&next);
	end_close(&e);
}

/* ---- a client that dies, or that the server has no memory for ---------------------------------------------------- */

/* It died between claiming the wait and showing its request, and somebody else lives in its slot. */
static void claimed_by_a_former_life(void)
{
	struct end server, newcomer;
	struct nic_listen *l;
	uint32_t id, epoch;

	open_end(&server, NIC_RELIABLE_DELIVERY);
	open_end(&newcomer, NIC_RELIABLE_DELIVERY);
	id = listening(&server);
	l = &server.nic->slot->listen[id];
	epoch = newcomer.nic->slot->epoch;
	l->state = NIC_LS_CLAIMED | newcomer.nic->me << NIC_LS_SLOT_SHIFT | (epoch & NIC_LS_EPOCH_MASK) << NIC_LS_EPOCH_SHIFT;
	CHECK_EQ(listened(&server, id), NIC_NOT_DONE);
	CHECK_EQ(l->state & NIC_LS_MASK, NIC_LS_CLAIMED); /* a living one is waited for */
	l->state = NIC_LS_CLAIMED | newcomer.nic->me << NIC_LS_SLOT_SHIFT | ((epoch - 1) & NIC_LS_EPOCH_MASK) << NIC_LS_EPOCH_SHIFT;
	CHECK_EQ(nic_listen_close(server.nic, id), NIC_BUSY);
	CHECK_EQ(listened(&server, id), NIC_NOT_DONE);
	CHECK_EQ(l->state & NIC_LS_MASK, NIC_LS_WAITING);
	CHECK_EQ(request(&newcomer), NIC_OK);
	CHECK_EQ(listened(&server, id), NIC_OK);
	CHECK_EQ(nic_accept(server.nic, id, server.vi), NIC_OK);
	CHECK_EQ(answer(&newcomer), NIC_OK);
	end_close(&newcomer);
	end_close(&server);
}

static void no_memory_to_accept(void)
{
	struct end server, client;
	uint32_t id;

	open_end(&server, NIC_RELIABLE_DELIVERY);
	open_end(&client, NIC_RELIABLE_DELIVERY);
	id = listening(&server);
	CHECK_EQ(request(&client), NIC_OK);
	CHECK_EQ(listened(&server, id), NIC_OK);
	no_memory = 1;
	CHECK_EQ(nic_accept(server.nic, id, server.vi), NIC_RESOURCE);
	no_memory = 0;
	CHECK_EQ(kin_state(&server), NIC_VI_IDLE);
	CHECK_EQ(answer(&client), NIC_REJECTED);
	CHECK_EQ(kin_state(&client), NIC_VI_IDLE);
	id = listening(&server);
	CHECK_EQ(request(&client), NIC_OK);
	CHECK_EQ(nic_accept(server.nic, id, server.vi), NIC_OK);
	CHECK_EQ(answer(&client), NIC_OK);
	end_close(&client);
	end_close(&server);
}

/* ---- peers that die before the connection to them is made --------------------------------------------------------- */

enum { DEAD = 24 };

static int nth;

static int comes_and_waits(void)
{
	struct end e;

	if (!kin_await(NULL, GO, nth + 1))
		return 1;
	open_end(&e, NIC_RELIABLE_DELIVERY);
	atomic_store(&kin_step[SLOT], (int)e.nic->me);
	atomic_store(&kin_step[READY], nth + 1);
	for (;;)
		pause();
}

/* They stay linked with one that hardly ever polls, until it makes its next connections. */
static void the_dead_do_not_pile_up(void)
{
	struct nic_addr local, remote;
	pid_t child[DEAD];
	struct end e;

	kin_start();
	for (nth = 0; nth < DEAD; nth++)
		child[nth] = kin_fork(comes_and_waits);
	open_end(&e, NIC_RELIABLE_DELIVERY);
	local = addr_of(e.nic, "here");
	remote = addr_of(e.nic, "nowhere");
	for (int i = 0; i < DEAD; i++) {
		uint32_t slot;

		atomic_store(&kin_step[GO], i + 1);
		CHECK(kin_await(NULL, READY, i + 1));
		slot = (uint32_t)atomic_load(&kin_step[SLOT]);
		CHECK(slot <= 3);
		CHECK(nic_driver_link(e.nic, slot, nic_load_acquire(&e.nic->map->slot[slot].epoch)) != NULL);
		kill(child[i], SIGKILL);
		CHECK_EQ(kin_wait(child[i]), -SIGKILL);
		if (i < DEAD / 2) {
			CHECK_EQ(nic_peer_request(e.nic, e.vi, &local, &remote), NIC_OK);
			CHECK_EQ(nic_peer_cancel(e.nic, e.vi), NIC_OK);
		} else {
			CHECK_EQ(request(&e), NIC_NO_MATCH);
		}
	}
	end_close(&e);
}

/* ---- news for somebody who does not look ------------------------------------------------------------------------- */

enum { VIS = 600 };

static void connect_many(struct pair *p, uint32_t *a, uint32_t *b)
{
	for (int i = 0; i < VIS; i++) {
		end_vi(&p->a, NIC_RELIABLE_DELIVERY);
		end_vi(&p->b, NIC_RELIABLE_DELIVERY);
		a[i] = p->a.vi;
		b[i] = p->b.vi;
		CHECK_EQ(pair_connect(p), NIC_OK);
	}
}

static void many_disconnects_arrive(void)
{
	uint32_t a[VIS], b[VIS];
	enum nic_vi_state state;
	struct pair p;
	int up = 0;

	end_open(&p.a, device);
	end_open(&p.b, device);
	connect_many(&p, a, b);
	for (int i = 0; i < VIS; i++)
		nic_disconnect(p.a.nic, a[i]);
	pair_poll(&p);
	for (int i = 0; i < VIS; i++) {
		nic_vi_query(p.b.nic, b[i], &state, NULL);
		up += state == NIC_VI_CONNECTED;
	}
	CHECK_EQ(up, 0);
	CHECK_EQ(p.b.events[NIC_EV_CONN_LOST], VIS);
	pair_close(&p);
}

/* The way back is full of another VI's messages when these are in place. */
static void acknowledgements_wait_for_room(void)
{
	enum { N = 40 };
	struct pair p, other;
	int done = 0;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_RECEPTION);
	other = p;
	other.a.last_send = other.b.last_send = NULL;
	end_vi(&other.a, NIC_UNRELIABLE);
	end_vi(&other.b, NIC_UNRELIABLE);
	CHECK_EQ(pair_connect(&other), NIC_OK);
	for (int i = 0; i < N; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem, 64));
	for (int i = 0; i < N; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem, 8));
	for (int i = 0; i < NIC_RING_CELLS - NIC_RING_RESERVE; i++)
		send_desc(&other.b, fill(&p.b, 300 + i, 0, p.b.mem, 8));
	nic_poll(p.b.nic);
	nic_poll(p.b.nic);
	CHECK_EQ(status_of(&p.b.desc[N - 1]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK_EQ(nic_vi(p.b.nic, p.b.vi)->acks_owed, N - NIC_RING_RESERVE);
	CHECK_EQ(nic_disconnect(p.a.nic, other.a.vi), NIC_OK); /* its messages are for nobody */
	pair_poll(&p);
	for (int i = 0; i < N; i++)
		done += status_of(&p.a.desc[i]) == NIC_ST_DONE;
	CHECK_EQ(done, N);
	pair_close(&p);
}

/* ---- a peer that dies -------------------------------------------------------------------------------------------- */

static int idle_peer(void)
{
	struct end e;

	open_end(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "victim", "survivor"))
		return 1;
	pause();
	return 2;
}

/* Traffic with one peer must not keep the NIC from looking after another. */
static void noticed_in_steady_traffic(void)
{
	struct pair p;
	uint32_t first;
	enum nic_vi_state state;
	pid_t child;
	int polls = 0;

	kin_clear();
	child = kin_fork(idle_peer);
	open_end(&p.a, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_connect(&p.a, "survivor", "victim"), NIC_OK);
	first = p.a.vi;
	open_end(&p.b, NIC_UNRELIABLE);
	end_vi(&p.a, NIC_UNRELIABLE);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	do {
		send_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 8));
		nic_poll(p.a.nic);
		nic_vi_query(p.a.nic, first, &state, NULL);
	} while (state == NIC_VI_CONNECTED && ++polls < 6 * NIC_WATCH_POLLS);
	CHECK_EQ(state, NIC_VI_ERROR);
	CHECK_EQ(kin_state(&p.a), NIC_VI_CONNECTED);
	pair_close(&p);
}

static int sends_and_dies(void)
{
	struct end e;

	open_end(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "victim", "survivor") || !kin_await(e.nic, GO, 1))
		return 1;
	send_desc(&e, fill(&e, 0, 0, e.mem, 100000));
	raise(SIGKILL);
	return 2;
}

static int one_step(const struct end *e)
{
	return e->nic->nactive && e->nic->active[0]->cma;
}

/* Its message is here, its memory is not. */
static void dead_before_the_copy(void)
{
	struct nic_desc *r;
	struct end e;
	pid_t child;
	int cma;

	kin_clear();
	child = kin_fork(sends_and_dies);
	open_end(&e, NIC_RELIABLE_DELIVERY);
	r = fill(&e, 0, 0, e.mem, 100000);
	recv_desc(&e, r);
	CHECK_EQ(kin_connect(&e, "survivor", "victim"), NIC_OK);
	cma = one_step(&e);
	atomic_store(&kin_step[GO], 1);
	CHECK_EQ(kin_wait(child), -SIGKILL);
	CHECK(kin_lost(&e, KIN_SECONDS));
	CHECK_EQ(e.events[NIC_EV_CONN_LOST], 1);
	if (asks_first()) /* the message has not left */
		CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE);
	else if (cma)
		CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_TRANSPORT | NIC_ST_OP_RECEIVE);
	end_close(&e);
}

/* ---- a message that is taken back, or refused -------------------------------------------------------------------- */

/* The sender disconnects, has its memory again and uses it, before the receiver looks. */
static void taken_back_before_the_copy(void)
{
	struct nic_desc *r, *s;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	if (!one_step(&p.a)) {
		pair_close(&p);
		SKIP("no cross-memory attach here");
	}
	r = fill(&p.b, 0, 0, p.b.mem, 100000);
	s = fill(&p.a, 0, 0, p.a.mem, 100000);
	pattern(p.a.mem, 100000, 1);
	recv_desc(&p.b, r);
	send_desc(&p.a, s);
	CHECK_EQ(status_of(s), 0); /* it waits for the receiver */
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(status_of(s) & NIC_ST_DONE);
	pattern(p.a.mem, 100000, 2);
	pair_poll(&p);
	CHECK(status_of(r) & NIC_ST_DONE);
	CHECK(status_of(r) & NIC_ST_ERROR_MASK);
	pair_close(&p);
}

/* Lets the first packet of those that wait come in alone. */
static int one_packet(struct end *e, uint32_t from)
{
	struct nic_link *link = e->nic->link[from];
	struct nic_packet *second = &link->rx[(link->rx_pos + 1) & (NIC_RING_CELLS - 1)];
	uint32_t seq = atomic_exchange(&second->seq, 0);
	int n = nic_poll(e->nic);

	atomic_store(&second->seq, seq);
	return n;
}

/* The first part of a write finds the region closed; the rest is dropped with it, and nothing else is. */
static void rest_of_a_refused_write(void)
{
	enum { LEN = 3 * NIC_BUFFER_SIZE - 100 };
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_WRITE }, closed = attr;
	struct nic_desc *w, *r;
	struct pair p;
	uint32_t handle;
	uint8_t *at;

	CHECK_EQ(nic_param_set("cma", "off", "test"), NIC_OK);
	pair_open(&p, NIC_UNRELIABLE);
	attr.ptag = p.b.ptag;
	at = p.b.mem + 500000;
	CHECK_EQ(nic_ptag_create(p.b.nic, &closed.ptag), NIC_OK);
	CHECK_EQ(nic_mem_register(p.b.nic, (uintptr_t)at, LEN, &attr, &handle), NIC_OK);
	r = fill(&p.b, 0, 0, p.b.mem, 1000);
	recv_desc(&p.b, r);
	w = fill(&p.a, 0, NIC_CTL_RDMA_WRITE, p.a.mem, LEN);
	pattern(p.a.mem, LEN, 1);
	w->nseg = 2;
	w->seg[1] = w->seg[0];
	w->seg[0] = (struct nic_seg){ (uintptr_t)at, handle, 0 };
	send_desc(&p.a, w);
	CHECK_EQ(nic_mem_set(p.b.nic, (uintptr_t)at, handle, &closed), NIC_OK);
	CHECK_EQ(one_packet(&p.b, p.a.nic->me), 1);
	CHECK_EQ(nic_mem_set(p.b.nic, (uintptr_t)at, handle, &attr), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(p.b.events[NIC_EV_RDMAW_PROT], 1);
	CHECK_EQ(at[NIC_BUFFER_SIZE], 0);
	send_desc(&p.a, fill(&p.a, 1, 0, p.a.mem, 1000));
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	pair_close(&p);
	CHECK_EQ(nic_param_set("cma", "auto", "test"), NIC_OK);
}

int main(void)
{
	kin_start();
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	CASE(accepted_by_the_dead);
	CASE(nobody_waits_in_a_dead_slot);
	CASE(server_is_replaced);
	CASE(withdrawn_from_the_replaced);
	CASE(claimed_by_a_former_life);
	CASE(no_memory_to_accept);
	CASE(the_dead_do_not_pile_up);
	CASE(many_disconnects_arrive);
	CASE(acknowledgements_wait_for_room);
	CASE(noticed_in_steady_traffic);
	CASE(dead_before_the_copy);
	CASE(taken_back_before_the_copy);
	CASE(rest_of_a_refused_write);
	return check_done();
}
