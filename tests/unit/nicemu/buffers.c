/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload buffers: none is lost or doubled, and a sender always gets its share back, whoever holds them, leaves or dies.
 *
 * The pool says how many are out of it; what live slots have in their stacks says where they are.  The two are compared.
 */
#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

static char device[48];

static int64_t out_of_pool(const struct nic *nic)
{
	return (int64_t)nic->map->pool.bump - nic->map->pool.nfree;
}

static int64_t in_hand(const struct end *e)
{
	return e->nic->slot->nbuffers;
}

static void connect_ends(struct end *a, struct end *b)
{
	struct pair p = { .a = *a, .b = *b };

	CHECK_EQ(pair_connect(&p), NIC_OK);
}

/* Posts a receive of `len` bytes at both ends of nothing in particular; the contents do not matter here. */
static void receives(struct end *e, int n, uint32_t len)
{
	for (int i = 0; i < n; i++)
		recv_desc(e, fill(e, i, 0, e->mem, len));
}

/* ---- one sender, receivers that never answer --------------------------------------------------------------------- */

enum { RECEIVERS = 3, MESSAGES = 400 };

/* One message to each receiver; false when the sender gets no buffer. */
static int send_round(struct end *from, const uint32_t *vi, struct end *to)
{
	for (int r = 0; r < RECEIVERS; r++) {
		struct nic_desc *d = fill(from, r, 0, from->mem, 1024);

		nic_post_send(from->nic, vi[r], d);
		for (int i = 0; i < 1000 && !(status_of(d) & NIC_ST_DONE); i++) {
			nic_poll(from->nic);
			for (int k = 0; k < RECEIVERS; k++)
				nic_poll(to[k].nic);
		}
		if (!(status_of(d) & NIC_ST_DONE))
			return 0;
	}
	return 1;
}

static void star_does_not_starve(void)
{
	struct end from, to[RECEIVERS];
	uint32_t vi[RECEIVERS];
	int rounds = 0;

	CHECK_EQ(nic_param_set("buffers", "64", "test"), NIC_OK);
	end_open(&from, device);
	for (int r = 0; r < RECEIVERS; r++) {
		end_open(&to[r], device);
		end_vi(&to[r], NIC_RELIABLE_DELIVERY);
		end_vi(&from, NIC_RELIABLE_DELIVERY);
		vi[r] = from.vi;
		connect_ends(&from, &to[r]);
		receives(&to[r], MESSAGES, 1024);
	}
	while (rounds < MESSAGES && send_round(&from, vi, to))
		rounds++;
	CHECK_EQ(rounds, MESSAGES);
	for (int r = 0; r < RECEIVERS; r++)
		end_close(&to[r]);
	end_close(&from);
	CHECK_EQ(nic_param_set("buffers", "2048", "test"), NIC_OK);
}

/* One way only: what the receiver has too many of comes back, and the sender never takes more than its share, and what is unread. */
static void surplus_of(unsigned burst)
{
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	receives(&p.b, 1000, 2048);
	for (unsigned i = 0; i < 1000; i++) {
		send_desc(&p.a, fill(&p.a, (int)(i % burst), 0, p.a.mem, 2048));
		nic_poll(p.a.nic);
		if (i % burst == burst - 1)
			pair_poll(&p);
	}
	CHECK_EQ(status_of(&p.b.desc[999]), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(counter(p.b.nic, "buffers_returned") > 500);
	CHECK(counter(p.a.nic, "buffers_taken") < 200 + burst);
	CHECK_EQ(out_of_pool(p.a.nic), in_hand(&p.a) + in_hand(&p.b));
	pair_close(&p);
}

static void surplus_comes_back(void)
{
	SKIP_ASKING();
	surplus_of(1);
	surplus_of(100); /* which the receiver takes at once */
}

/* Those that were read last come back, and are sent next: few go round, however many the receiver keeps. */
static void few_go_round(void)
{
	static bool seen[NIC_POOL_BUFFERS];
	uint32_t different = 0;
	struct pair p;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	receives(&p.b, 1000, 2048);
	for (unsigned i = 0; i < 1000; i++) {
		const struct nic_slot *slot = p.a.nic->slot;
		uint32_t next = slot->nbuffers ? slot->buffer[slot->nbuffers - 1] : 0;

		if (i >= 500 && slot->nbuffers && !seen[next]) {
			seen[next] = true;
			different++;
		}
		send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 2048));
		pair_poll(&p);
	}
	CHECK(different > 0 && different < 16); /* 11 come back at once; of those that have lain longest, twice as many would go round */
	pair_close(&p);
}

/* ---- peers that leave -------------------------------------------------------------------------------------------- */

static int watched(struct end *e)
{
	for (int i = 0; i < 3 * NIC_WATCH_POLLS; i++)
		nic_poll(e->nic);
	return e->nic->nactive == 0;
}

/* A client comes, gets messages that it never reads, and closes in order. */
static void visit(struct end *server)
{
	struct end client;

	end_open(&client, device);
	end_vi(&client, NIC_RELIABLE_DELIVERY);
	end_vi(server, NIC_RELIABLE_DELIVERY);
	connect_ends(server, &client);
	receives(&client, 100, 8192);
	for (int i = 0; i < 100; i++)
		send_desc(server, fill(server, i, 0, server->mem, 8192));
	CHECK(asks_first() || status_of(&server->desc[99]) & NIC_ST_DONE); /* who asks first has them ready in buffers */
	end_close(&client);
	CHECK(watched(server));
	CHECK_EQ(nic_disconnect(server->nic, server->vi), NIC_OK);
	CHECK_EQ(nic_vi_destroy(server->nic, server->vi), NIC_OK);
	server->last_send = NULL;
}

static void leaving_peers_take_nothing_along(void)
{
	struct end server;

	end_open(&server, device);
	for (int i = 0; i < 40; i++)
		visit(&server);
	CHECK(counter(server.nic, "buffers_taken") < 200);
	CHECK_EQ(counter(server.nic, "no_buffer"), 0);
	CHECK_EQ(out_of_pool(server.nic), in_hand(&server));
	end_close(&server);
}

enum { ANSWERS = 20, ON_BOARD = 5 };

/* What a group would have left: buffers that stay with its board. */
static void keep_on_board(struct nic *nic)
{
	struct nic_board *board = &nic->slot->board[0];

	CHECK(nic_card_reserve(nic->card, board, sizeof(*board)));
	nic_store_relaxed(&nic->slot->boards[0], 1); /* nobody else looks */
	for (int i = 0; i < ON_BOARD; i++) {
		uint32_t index;

		if (nic_buffer_take(nic, &index))
			board->buffer[i] = index + 1;
	}
}

/* Has its slot been taken by one that died when it had put back what the slot held, and nothing else? */
static bool interrupted;

/* Fills its stack, answers a little, and stops looking. */
static int victim(void)
{
	struct end e;

	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	receives(&e, 200, 8192);
	if (kin_connect(&e, "victim", "survivor"))
		return 1;
	for (int i = 0; i < ANSWERS; i++)
		send_desc(&e, fill(&e, 500 + i, 0, e.mem, 1000));
	while (!(status_of(&e.desc[49]) & NIC_ST_DONE))
		nic_poll(e.nic);
	keep_on_board(e.nic);
	atomic_store(&kin_step[0], (int)e.nic->slot->nbuffers + ON_BOARD);
	if (interrupted && kin_await(NULL, 1, 1)) {
		nic_card_lock(e.nic->card);
		nic_buffer_recover(e.nic, e.nic->me);
		nic_card_unlock(e.nic->card);
		atomic_store(&kin_step[2], 1);
	}
	pause();
	return 2;
}

static void recover_dead_slot(void)
{
	struct end e, next;
	uint32_t dead;
	int held, lost, pid;
	pid_t child;

	kin_clear();
	child = kin_fork(victim);
	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	receives(&e, 64, 8192);
	CHECK_EQ(kin_connect(&e, "survivor", "victim"), NIC_OK);
	CHECK_EQ(nic_vi_peer(e.nic, e.vi, &pid, &dead), NIC_OK);
	for (int i = 0; i < 50; i++)
		send_desc(&e, fill(&e, 500 + i, 0, e.mem, 8192));
	for (double until = kin_now() + KIN_SECONDS; !(held = atomic_load(&kin_step[0])) && kin_now() < until;)
		nic_poll(e.nic);
	CHECK(held > 0);
	for (int i = 50; i < 150; i++) /* these lie in its ring */
		send_desc(&e, fill(&e, 500 + i, 0, e.mem, 8192));
	atomic_store(&kin_step[1], 1);
	CHECK(!interrupted || kin_await(NULL, 2, 1));
	CHECK_EQ(kin_kill(child), -SIGKILL);
	CHECK(kin_lost(&e, KIN_SECONDS));
	CHECK_EQ(nic_disconnect(e.nic, e.vi), NIC_OK);
	CHECK(interrupted || out_of_pool(e.nic) >= in_hand(&e) + held + (asks_first() ? 0 : 100)); /* who asks first has taken them back */
	end_open(&next, device); /* takes the dead slot */
	CHECK_EQ(next.nic->me, dead);
	lost = out_of_pool(e.nic) - in_hand(&e) - in_hand(&next);
	CHECK(lost == 0 || (asks_first() && lost > 0 && lost <= ANSWERS)); /* what it had laid ready goes with it */
	end_close(&next);
	end_close(&e);
}

static void dead_slot_is_recovered(void)
{
	interrupted = false;
	recover_dead_slot();
}

/* Nothing gets two owners when who recovers it dies, too. */
static void recovery_may_be_interrupted(void)
{
	interrupted = true;
	recover_dead_slot();
}

/* ---- what does not belong here ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

static void foreign_pointers_are_refused(void)
{
	uintptr_t buf[64], pool;
	struct end e;
	int local;

	end_open(&e, device);
	pool = (uintptr_t)e.nic->map->buffer;
	buf[0] = (uintptr_t)nic_buf_take(e.nic);
	REQUIRE(buf[0]);
	nic_buf_give(e.nic, (void *)(buf[0] + 100)); /* any address inside it */
	nic_buf_give(e.nic, &local);
	nic_buf_give(e.nic, NULL);
	nic_buf_give(e.nic, (void *)(pool - 1));
	nic_buf_give(e.nic, (void *)(pool + sizeof(e.nic->map->buffer)));
	CHECK_EQ(counter(e.nic, "bad_packets"), 4);
	for (int i = 0; i < 64; i++) {
		buf[i] = (uintptr_t)nic_buf_take(e.nic);
		CHECK(buf[i] >= pool && (buf[i] - pool) % NIC_BUFFER_SIZE == 0 && buf[i] - pool < (uintptr_t)64 * NIC_BUFFER_SIZE);
	}
	qsort(buf, 64, sizeof(buf[0]), by_value);
	for (int i = 1; i < 64; i++)
		CHECK(buf[i] != buf[i - 1]);
	for (int i = 0; i < 64; i++)
		nic_buf_give(e.nic, (void *)buf[i]);
	CHECK_EQ(out_of_pool(e.nic), in_hand(&e));
	end_close(&e);
}

/* A packet that makes no sense still brings its buffer. */
static void bad_packets_bring_buffers(void)
{
	struct pair p;
	struct nic_link *link;
	uint32_t index;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	link = p.a.nic->link[p.b.nic->me];
	for (int i = 0; i < 20; i++) {
		struct nic_packet *packet = nic_link_reserve(link, 0);

		REQUIRE(packet && nic_buffer_take(p.a.nic, &index));
		memset(nic_buffer(p.a.nic, index), 1, NIC_BUFFER_SIZE);
		packet->op = i % 2 ? NIC_OP_SEND_BUF : NIC_OP_WRITE_BUF;
		packet->gen = i % 3 ? nic_vi(p.b.nic, p.b.vi)->gen : 77;
		packet->vi = p.b.vi;
		packet->len_flags = NIC_BUFFER_SIZE + 1;
		packet->buf.buffer = index;
		packet->buf.handle = p.b.handle;
		packet->buf.addr = i % 2 ? 0 : (uintptr_t)p.b.mem;
		nic_link_publish(link, packet, 1);
		link->balance--;
		pair_poll(&p);
	}
	CHECK_EQ(kin_state(&p.b), NIC_VI_CONNECTED);
	CHECK_EQ(p.b.mem[0], 0);
	CHECK_EQ(out_of_pool(p.a.nic), in_hand(&p.a) + in_hand(&p.b));
	pair_close(&p);
}

/* What lies behind a packet in the ring is none of the receiver's business. */
static void inline_packets_are_short(void)
{
	struct nic_packet *packet;
	struct nic_link *link;
	struct nic_desc *r;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	link = p.a.nic->link[p.b.nic->me];
	r = fill(&p.b, 0, 0, p.b.mem, 1000);
	recv_desc(&p.b, r);
	packet = nic_link_reserve(link, 0);
	REQUIRE(packet);
	packet->op = NIC_OP_SEND;
	packet->gen = nic_vi(p.b.nic, p.b.vi)->gen;
	packet->vi = p.b.vi;
	packet->len_flags = NIC_INLINE_MAX + 1;
	nic_link_publish(link, packet, 1);
	pair_poll(&p);
	CHECK(status_of(r) & NIC_ST_DONE);
	CHECK(status_of(r) & NIC_ST_LENGTH);
	CHECK_EQ(kin_state(&p.b), NIC_VI_ERROR);
	pair_close(&p);
}

/* ---- posting never waits ----------------------------------------------------------------------------------------- */

static void post_does_not_wait_for_the_pool(void)
{
	struct nic_desc *d;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	receives(&p.b, 1, 8192);
	alarm(KIN_SECONDS); /* ends the program if the post waits: this thread holds what it would wait for */
	nic_card_lock(p.a.nic->card);
	d = fill(&p.a, 0, 0, p.a.mem, 8192);
	send_desc(&p.a, d);
	CHECK_EQ(status_of(d), 0);
	CHECK(counter(p.a.nic, "no_buffer") > 0);
	nic_card_unlock(p.a.nic->card);
	alarm(0);
	pair_poll(&p);
	CHECK_EQ(status_of(d), NIC_ST_DONE);
	pair_close(&p);
}

/* ---- what a peer says that it gives back -------------------------------------------------------------------------------------------- */

/* As full as the stack may be, and any number of them, one of which is none: it is never written behind its end, and none is taken for one. */
static void returned_ones_have_room(void)
{
	enum { MOST = 12 }; /* one more than a packet has */
	struct pair p;

	for (uint32_t n = 0; n <= MOST; n++)
		for (uint32_t room = 0; room <= MOST; room++) {
			struct nic_link *link;
			struct nic_packet *packet;
			uint32_t bad = (n + room) % 11, good = (n < 11 ? n : 11) - (n > bad), *behind, kept, at;

			pair_open(&p, NIC_RELIABLE_DELIVERY);
			for (uint32_t i = 0; i < NIC_SLOT_BUFFERS - room; i++)
				p.a.nic->slot->buffer[i] = i;
			p.a.nic->slot->nbuffers = NIC_SLOT_BUFFERS - room;
			behind = &p.a.nic->slot->buffer[NIC_SLOT_BUFFERS];
			kept = *behind;
			link = p.b.nic->link[p.a.nic->me];
			packet = nic_link_reserve(link, 0);
			packet->op = NIC_OP_RETURN;
			packet->gen = 0;
			packet->vi = 0;
			packet->len_flags = 0;
			packet->ret.n = n;
			for (uint32_t i = 0; i < 11; i++)
				packet->ret.buffer[i] = i == bad ? NIC_POOL_BUFFERS : 20000 + i;
			nic_link_publish(link, packet, 1);
			nic_poll(p.a.nic);
			at = p.a.nic->slot->nbuffers;
			CHECK_EQ(at % 256, (NIC_SLOT_BUFFERS - room + good) % 256); /* some may have gone back to the pool */
			CHECK(at <= NIC_SLOT_BUFFERS);
			CHECK_EQ(*behind, kept);
			CHECK_EQ(p.a.nic->link[p.b.nic->me]->balance, (int)good);
			for (uint32_t i = 0; i < good; i++)
				CHECK_EQ(p.a.nic->slot->buffer[at - good + i], 20000 + i + (i >= bad));
			pair_close(&p);
		}
}

int main(void)
{
	kin_start();
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	CASE(star_does_not_starve);
	CASE(surplus_comes_back);
	CASE(few_go_round);
	CASE(leaving_peers_take_nothing_along);
	CASE(dead_slot_is_recovered);
	CASE(recovery_may_be_interrupted);
	CASE(foreign_pointers_are_refused);
	CASE(bad_packets_bring_buffers);
	CASE(inline_packets_are_short);
	CASE(post_does_not_wait_for_the_pool);
	CASE(returned_ones_have_room);
	return check_done();
}
