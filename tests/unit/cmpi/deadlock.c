/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways in which credits can stop a connection or break it, one case each, and their remedies: see the head of
 * cmpi/pm_via/flow.c and docs/flow-control.md.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B, C };

static struct cmpi_proc *to(uint32_t from, uint32_t rank)
{
	return job[from].to[rank];
}

/* Depth, receives for NOOPs, threshold, preserve, notify, dynamic. */
static bool pair_of(uint32_t depth, uint32_t noop, uint32_t threshold, uint32_t preserve, uint32_t notify, uint32_t dynamic)
{
	job_reset(100);
	fake_param("prepost_depth", depth);
	fake_param("prepost_noop_extra", noop);
	fake_param("initial_prepost_depth", depth + noop);
	fake_param("prepost_threshold", threshold);
	fake_param("credit_preserve", preserve);
	fake_param("credit_notify_threshold", notify);
	fake_param("dynamic_credit_threshold", dynamic);
	return job_open(2) && job_connect(A, B);
}

/* ---- matched messages, as little of an engine as does ----------------------------------------------------------------------------- */

static uint8_t data[400000], room[400000];
static int sent, received;
static struct via_recv posted;
static struct via_incoming *unexpected;

static void done(void *arg, int err)
{
	*(int *)arg = err == CMPI_OK ? 1 : -1;
}

static struct via_recv *arrived(void *arg, struct cmpi_proc *from, const struct via_envelope *envelope, struct via_incoming *message)
{
	(void)from, (void)envelope;
	if (arg)
		return arg;
	unexpected = message;
	return NULL;
}

static const struct via_engine engine_posted = {.arg = &posted, .arrived = arrived};
static const struct via_engine engine_unexpected = {.arrived = arrived};

static int match(struct via_send *send, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 31 + (i >> 8));
	memset(room, 0, sizeof(room));
	sent = received = 0;
	posted = (struct via_recv){.buf = room, .size = sizeof(room), .done = done, .arg = &received};
	*send = (struct via_send){.buf = data, .done = done, .arg = &sent, .envelope = {.data_length = len}};
	return via_match_send(to(A, B), send);
}

/* ---- the cases --------------------------------------------------------------------------------------------------------------------------- */

/* 1. Both sides have spent all credit, and each holds credit for the other that nothing carries. */
static void case1_both_out_of_credit(void)
{
	const uint32_t n = 20;

	REQUIRE(pair_of(4, 1, 0, 1, 1, 4));
	CHECK(job_send_at_once(A, B, 1, n - 1) && job_send_at_once(B, A, 1, n - 1));
	CHECK_EQ(to(A, B)->remote_credit, 0);
	CHECK_EQ(to(B, A)->remote_credit, 0);
	CHECK(to(A, B)->backlog.len > 10);
	job_turn(60);
	CHECK_EQ(job[A].got[B], n);
	CHECK_EQ(job[B].got[A], n);
	CHECK_EQ(job[A].order_errors + job[B].order_errors, 0);
	job_close();
}

/* 2. Traffic in one direction only: credit has nothing to ride on. */
static void case2_one_way_traffic(void)
{
	uint32_t n = 1;

	REQUIRE(pair_of(8, 2, 2, 2, 2, 4));
	while (n < 1000)
		if (job_send(A, B, n, 8) == CMPI_OK)
			n++;
		else
			job_turn(1);
	job_turn(100);
	CHECK_EQ(job[B].got[A], n);
	CHECK(job_count(B, "cmpi_noops_sent") >= 100);
	CHECK_EQ(job_count(A, "cmpi_noops_received"), job_count(B, "cmpi_noops_sent"));
	job_close();
}

/* 3. Data may not take the last credits: a control packet can still leave. */
static void case3_data_leaves_credit_for_control(void)
{
	struct via_send send;
	uint64_t value = 0;
	struct cmpi_reg *reg;

	REQUIRE(pair_of(12, 2, 2, 4, 2, 6));
	via_match_engine(job[B].c, &engine_posted);
	job[A].c->params.protocol = VIA_PROTO_R3;
	job[B].c->params.rendezvous_extra = 0;
	CHECK_EQ(match(&send, sizeof(data)), CMPI_OK);
	CHECK_EQ(cmpi_mem_register(job[B].c, &value, sizeof(value), CMPI_ACCESS_REMOTE_ATOMIC, &reg), CMPI_OK);
	fake_run();
	job_progress(B); /* B accepts, and then reads nothing */
	fake_run();
	job_progress(A);
	CHECK_EQ(to(A, B)->remote_credit, 3); /* preserve 4: the last data packet went out with 4 */
	CHECK_EQ(sent, 0);
	CHECK(!to(A, B)->backlog.head);
	CHECK_EQ(cmpi_atomic(to(A, B), CMPI_ATOMIC_ADD, 8, (uintptr_t)&value, &reg->key, 1, 0, NULL, NULL, NULL), CMPI_OK);
	CHECK(!to(A, B)->backlog.head);
	job_turn(60);
	CHECK_EQ(value, 1);
	CHECK_EQ(sent, 1);
	CHECK_EQ(received, 1);
	CHECK(!memcmp(data, room, sizeof(data)));
	cmpi_mem_deregister(job[B].c, reg);
	job_close();
}

/* 3b. Nor does the end of the connection overtake the data that wait for credit. */
static void case3_close_waits_for_data(void)
{
	struct via_send send;

	REQUIRE(pair_of(12, 2, 2, 4, 2, 6));
	via_match_engine(job[B].c, &engine_posted);
	job[A].c->params.protocol = VIA_PROTO_R3;
	job[B].c->params.rendezvous_extra = 0;
	CHECK_EQ(match(&send, sizeof(data)), CMPI_OK);
	fake_run();
	job_progress(B);
	fake_run();
	job_progress(A);
	CHECK_EQ(sent, 0);
	CHECK(to(A, B)->send_head);
	cmpi_proc_put(job[A].c, to(A, B));
	job_turn(60);
	CHECK_EQ(sent, 1);
	CHECK_EQ(received, 1);
	CHECK(!memcmp(data, room, sizeof(data)));
	CHECK_EQ(to(A, B)->state, VIA_CONN_CLOSED);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	job_close();
}

/* 4. Not enough credit for a series of eager packets: rendezvous takes one. */
static void case4_eager_burst_becomes_rendezvous(void)
{
	enum { TWO = VIA_EAGER_ONE + 1000 };
	struct via_send send;
	uint32_t n = 1;

	REQUIRE(pair_of(8, 2, 1, 3, 2, 8));
	via_match_engine(job[B].c, &engine_posted);
	job[A].c->params.rendezvous_threshold = TWO;
	CHECK_EQ(match(&send, TWO), CMPI_OK); /* three packets: 8 - 3 >= 3 */
	CHECK_EQ(job_count(A, "cmpi_eager"), 1);
	job_turn(10);
	CHECK_EQ(received, 1);
	while (to(A, B)->remote_credit > 4)
		CHECK_EQ(job_send(A, B, n++, 8), CMPI_OK);
	CHECK_EQ(match(&send, TWO), CMPI_OK); /* 4 - 3 < 3 */
	CHECK_EQ(job_count(A, "cmpi_eager"), 1);
	CHECK_EQ(to(A, B)->remote_credit, 3);
	job_turn(20);
	CHECK_EQ(sent, 1);
	CHECK_EQ(received, 1);
	CHECK(!memcmp(data, room, TWO));
	job_close();
}

/* 5. Long data through packets over a shallow connection: more receives while it lasts, withdrawn after. */
static void case5_r3_gets_more_receives(void)
{
	struct via_send send;
	uint32_t most = 0, base;

	REQUIRE(pair_of(4, 1, 0, 1, 1, 4));
	via_match_engine(job[B].c, &engine_posted);
	job[A].c->params.protocol = VIA_PROTO_R3;
	base = to(B, A)->base;
	CHECK_EQ(match(&send, sizeof(data)), CMPI_OK);
	for (int i = 0; i < 100 && !received; i++) {
		job_turn(1);
		if (to(B, A)->preposts > most)
			most = to(B, A)->preposts;
	}
	CHECK_EQ(received, 1);
	CHECK(!memcmp(data, room, sizeof(data)));
	CHECK(most > base + 10);
	CHECK_EQ(to(B, A)->expected, 0);
	CHECK(to(B, A)->preposts <= base);
	job_turn(10);
	CHECK(to(A, B)->remote_credit <= 4);
	CHECK(to(A, B)->remote_credit >= 1);
	job_close();
}

/* 6. A credit message makes no credit, so two idle sides fall silent. */
static void case6_no_noop_storm(void)
{
	uint64_t before;
	uint32_t n = 1;

	REQUIRE(pair_of(2, 1, 0, 1, 1, 1));
	for (; n < 50; n++) {
		job_send(A, B, n, 8);
		job_send(B, A, n, 8);
		job_turn(4);
	}
	before = job_count(A, "cmpi_noops_sent") + job_count(B, "cmpi_noops_sent");
	CHECK(before > 10);
	job_turn(500);
	CHECK_EQ(job_count(A, "cmpi_noops_sent") + job_count(B, "cmpi_noops_sent"), before);
	job_close();
}

static void see_noop(void *arg, const void *packet, size_t len)
{
	(void)len;
	*(uint32_t *)arg += *(const uint8_t *)packet == VIA_PKT_NOOP;
}

/* 7. A peer that sends but does not read: the NOOPs towards it may not exceed the receives it keeps for them. */
static void case7_noops_are_bounded(void)
{
	uint32_t n = 1, most = 0;

	REQUIRE(pair_of(16, 2, 0, 1, 1, 1)); /* every packet is worth a NOOP */
	for (; n <= 16; n++) {
		uint32_t unread = 0;

		CHECK_EQ(job_send(A, B, n, 8), CMPI_OK);
		fake_run();
		cmpi_progress(job[B].c);
		fake_run();
		fake_in_flight(job[B].c->nic, job[A].c->nic, see_noop, &unread);
		if (unread > most)
			most = unread;
	}
	CHECK_EQ(most, 2);
	CHECK(job_count(B, "cmpi_noops_held") > 5);
	CHECK_STR(fake_violation(), NULL);
	CHECK_EQ(to(A, B)->remote_credit, 0);
	/* A wakes up: the two it got are enough to go on, and its packets acknowledge them. */
	CHECK_EQ(job_send(A, B, n, 8), CMPI_AGAIN);
	job_progress(A);
	for (; n < 100; n++) {
		CHECK_EQ(job_send(A, B, n, 8), CMPI_OK);
		job_turn(3);
	}
	job_turn(10);
	CHECK_EQ(job[B].got[A], n);
	CHECK(fake_closest() >= 1);
	job_close();
}

/* 7b. ... also when the other has R3 data to push, which needs more than one credit. */
static void case7_noops_bounded_with_r3(void)
{
	struct via_send send;

	REQUIRE(pair_of(20, 1, 0, 20, 2, 20)); /* preserve is forced down to noop_extra * notify */
	CHECK_EQ(job[A].c->params.preserve, 2);
	via_match_engine(job[B].c, &engine_posted);
	job[A].c->params.protocol = VIA_PROTO_R3;
	CHECK_EQ(match(&send, sizeof(data)), CMPI_OK);
	job_turn(100);
	CHECK_EQ(sent, 1);
	CHECK_EQ(received, 1);
	CHECK(!memcmp(data, room, sizeof(data)));
	job_close();
}

/* 8. Two that flood each other and make progress only when a send is refused, or all are sent: progress always drains receives. */
static void case8_progress_drains_receives(void)
{
	uint32_t n[2] = {1, 1}, turns = 0;

	REQUIRE(pair_of(4, 1, 1, 1, 1, 2));
	while ((n[A] < 2000 || n[B] < 2000) && turns++ < 100000)
		for (uint32_t me = A; me <= B; me++) {
			while (n[me] < 2000 && job_send(me, !me, n[me], 8) == CMPI_OK)
				n[me]++;
			cmpi_progress(job[me].c);
			fake_run();
		}
	CHECK(turns < 10000); /* one of them would have waited for ever */
	job_turn(400);
	CHECK_EQ(job[A].got[B], 2000);
	CHECK_EQ(job[B].got[A], 2000);
	CHECK_EQ(job[A].order_errors + job[B].order_errors, 0);
	job_close();
}

/* 9. A process itself is a peer without a VI and without credits. */
static void case9_self(void)
{
	struct cmpi_reg *reg;
	struct cmpi_am am;
	int put = 0;

	REQUIRE(pair_of(4, 1, 1, 1, 1, 2));
	CHECK(cmpi_proc_is_self(to(A, A)));
	CHECK_EQ(job_send(A, A, 0, 8), CMPI_PARAMETER);
	CHECK_EQ(cmpi_am_begin(to(A, A), 8, &am), CMPI_PARAMETER);
	CHECK_EQ(cmpi_mem_register(job[A].c, room, 4096, CMPI_ACCESS_REMOTE_WRITE, &reg), CMPI_OK);
	memset(data, 5, 100);
	CHECK_EQ(cmpi_put(to(A, A), data, NULL, (uintptr_t)room, &reg->key, 100, done, &put), CMPI_OK);
	CHECK_EQ(put, 1);
	CHECK_EQ(room[99], 5);
	CHECK(!to(A, A)->vi);
	CHECK_EQ(to(A, A)->remote_credit, 0);
	cmpi_mem_deregister(job[A].c, reg);
	job_close();
}

/* 10. A peer that never reads blocks only itself. */
static void case10_starved_peer_blocks_no_other(void)
{
	uint32_t n = 1, stuck = 1;

	job_reset(100);
	fake_param("prepost_depth", 4);
	fake_param("prepost_noop_extra", 1);
	fake_param("vbuf_max", 40);
	REQUIRE(job_open(3) && job_connect(A, B) && job_connect(A, C));
	while (stuck < 1000 && job_send(A, C, stuck, 100) == CMPI_OK)
		stuck++;
	CHECK(stuck < 10); /* its credits */
	for (; n < 500; n++) {
		CHECK_EQ(job_send(A, B, n, 100), CMPI_OK);
		for (int i = 0; i < 3; i++) {
			fake_run();
			cmpi_progress(job[A].c);
			cmpi_progress(job[B].c);
		}
	}
	CHECK_EQ(job[B].got[A], n);
	CHECK_EQ(job_send(A, C, stuck, 100), CMPI_AGAIN);
	job_turn(40);
	CHECK_EQ(job[C].got[A], stuck);
	job_close();
}

/* 10b. Sends that fill all vbufs leave alone those that receives are owed. */
static void case10_sends_leave_receives_their_vbufs(void)
{
	const uint32_t m = 4;
	uint32_t n = 1;

	job_reset(100);
	fake_param("prepost_depth", 12);
	fake_param("prepost_noop_extra", 1);
	fake_param("initial_prepost_depth", 3);
	fake_param("vbuf_max", 4);
	REQUIRE(job_open(3) && job_connect(A, B));
	job_send(A, C, 0, 8);
	job_turn(40);
	REQUIRE(to(A, C)->state == VIA_CONN_CONNECTED);
	CHECK_EQ(job[A].c->recv_due, 10); /* C has sent nothing yet: 3 receives of 13 are posted */
	fake_hold(job[A].c->nic, NULL, true); /* nothing of A leaves: its vbufs are all in use */
	CHECK(job_send_at_once(A, C, 0, m));
	CHECK_EQ(job_send(A, B, 1, 8), CMPI_AGAIN);
	CHECK(to(A, B)->remote_credit > 0); /* so it was for want of a vbuf */
	CHECK_EQ(job[A].c->nfree, 10);
	for (; n < 12; n++) {
		CHECK_EQ(job_send(B, A, n, 8), CMPI_OK);
		job_turn(1);
	}
	CHECK_EQ(job[A].got[B], n);
	CHECK(to(A, B)->preposts + job[A].c->params.threshold >= to(A, B)->base); /* posted again all the same */
	fake_hold(job[A].c->nic, NULL, false);
	job_turn(40);
	CHECK_EQ(job[C].got[A], m);
	job_close();
}

/* 11. A process that closes sends no more NOOPs; one that is gone is sent none. */
static void case11_no_noops_at_the_end(void)
{
	uint64_t before;

	REQUIRE(pair_of(4, 1, 0, 1, 1, 1));
	fake_hold(job[A].c->nic, NULL, true);
	via_conn_close(to(A, B));
	cmpi_progress(job[A].c);
	before = job_count(A, "cmpi_noops_sent");
	for (uint32_t n = 1; n < 4; n++)
		CHECK_EQ(job_send(B, A, n, 8), CMPI_OK);
	job_turn(10);
	CHECK_EQ(job_count(A, "cmpi_noops_sent"), before);
	fake_hold(job[A].c->nic, NULL, false);
	job_turn(10);
	CHECK_EQ(to(A, B)->state, VIA_CONN_CLOSED);
	CHECK_EQ(job[A].errors, 0);
	job_close();
	CHECK_EQ(job[B].errors, 0);
}

/* An unexpected eager message is held, within the window; beyond it the sender asks first. */
static void unexpected_messages_are_bounded(void)
{
	struct via_send send[64];
	uint64_t held = 0;

	job_reset(100);
	fake_param("eager_window", 20000);
	fake_param("initial_prepost_depth", 72);
	REQUIRE(job_open(2) && job_connect(A, B));
	via_match_engine(job[B].c, &engine_unexpected);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(match(&send[i], 900), CMPI_OK);
		job_turn(1);
		held += sent == 1 ? 900 + 64 : 0;
	}
	CHECK(held <= 20000);
	CHECK(held > 18000);
	CHECK_EQ(to(A, B)->eager_sent, held);
	fake_kill(job[A].c->nic);
	job_close_one(B); /* frees what was never accepted */
	job_close_one(A);
}

int main(void)
{
	CASE(case1_both_out_of_credit);
	CASE(case2_one_way_traffic);
	CASE(case3_data_leaves_credit_for_control);
	CASE(case3_close_waits_for_data);
	CASE(case4_eager_burst_becomes_rendezvous);
	CASE(case5_r3_gets_more_receives);
	CASE(case6_no_noop_storm);
	CASE(case7_noops_are_bounded);
	CASE(case7_noops_bounded_with_r3);
	CASE(case8_progress_drains_receives);
	CASE(case9_self);
	CASE(case10_starved_peer_blocks_no_other);
	CASE(case10_sends_leave_receives_their_vbufs);
	CASE(case11_no_noops_at_the_end);
	CASE(unexpected_messages_are_bounded);
	return check_done();
}
