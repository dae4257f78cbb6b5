/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: made on first use from either side, ended in order, lost.
 */
#include <unistd.h>

#include "cmpi/pm_via/flow.h"
#include "tests/unit/cmpi/job.h"

enum { A, B, C };

static struct cmpi_proc *to(uint32_t from, uint32_t rank)
{
	return job[from].to[rank];
}

static void first_use_connects(void)
{
	job_reset(0);
	REQUIRE(job_open(3));
	CHECK_EQ(to(A, B)->state, VIA_CONN_IDLE);
	CHECK_EQ(job_send(A, B, 0, 8), CMPI_AGAIN); /* nothing is accepted before the connection is up */
	CHECK_EQ(job_send(A, B, 0, 8), CMPI_AGAIN);
	CHECK_EQ(to(A, B)->backlog.len, 0);
	job_turn(40);
	CHECK_EQ(to(A, B)->state, VIA_CONN_CONNECTED);
	CHECK_EQ(to(B, A)->state, VIA_CONN_CONNECTED);
	CHECK_EQ(to(C, A)->state, VIA_CONN_IDLE);
	CHECK_EQ(job_count(A, "cmpi_connections"), 1);
	CHECK_EQ(job_send(A, B, 0, 8), CMPI_OK);
	job_turn(2);
	CHECK_EQ(job[B].got[A], 1);
	job_close();
}

static void both_at_once(void)
{
	job_reset(50);
	REQUIRE(job_open(4));
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t j = 0; j < 4; j++)
			if (i != j)
				CHECK_EQ(job_send(i, j, 0, 8), CMPI_AGAIN);
	job_turn(40);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < 4; j++)
			if (i != j)
				CHECK_EQ(job_send(i, j, 0, 8), CMPI_OK);
		CHECK_EQ(job_count(i, "cmpi_connections"), 3);
	}
	job_turn(4);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_EQ(job[i].got[0] + job[i].got[1] + job[i].got[2] + job[i].got[3], 3);
	job_close();
}

/* A put that finds no connection waits for it. */
static void put_connects(void)
{
	static uint8_t from[100], into[100];
	struct cmpi_reg *reg;

	job_reset(0);
	REQUIRE(job_open(2));
	memset(from, 9, sizeof(from));
	CHECK_EQ(cmpi_mem_register(job[B].c, into, sizeof(into), CMPI_ACCESS_REMOTE_WRITE, &reg), CMPI_OK);
	CHECK_EQ(cmpi_put(to(A, B), from, NULL, (uintptr_t)into, &reg->key, sizeof(into), NULL, NULL), CMPI_OK);
	CHECK_EQ(to(A, B)->rma_ops, 1);
	job_turn(40);
	CHECK_EQ(to(A, B)->rma_ops, 0);
	CHECK_EQ(into[99], 9);
	cmpi_mem_deregister(job[B].c, reg);
	job_close();
}

static struct cmpi_proc *stranger;

static void note_stranger(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	(void)m, (void)data, (void)len;
	stranger = from;
}

static void a_peer_nobody_asked_for(void)
{
	struct cmpi_proc *proc;
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;

	job_reset(100);
	REQUIRE(job_open(2));
	/* B forgets that it knew A. */
	cmpi_proc_put(job[B].c, to(B, A));
	cmpi_proc_set_cookie(to(B, A), NULL);
	job[B].on_am = note_stranger;
	job_send(A, B, 0, 8);
	job_turn(40);
	CHECK_EQ(job_send(A, B, 0, 8), CMPI_OK);
	job_turn(2);
	REQUIRE(stranger != NULL);
	CHECK(!cmpi_proc_cookie(stranger));
	CHECK_EQ(cmpi_proc_rank(stranger), A);
	cmpi_address(job[A].c, blob, &len);
	CHECK_EQ(cmpi_proc_get(job[B].c, blob, len, &job[A], &proc), CMPI_OK);
	CHECK(proc == stranger);
	CHECK(cmpi_proc_cookie(proc) == &job[A]);
	CHECK_EQ(cmpi_proc_pid(proc), (int)getpid());
	job_close();
}

static void addresses(void)
{
	struct cmpi_proc *proc = NULL;
	uint8_t blob[CMPI_ADDR_MAX];
	struct via_address other;
	size_t len;

	job_reset(100);
	REQUIRE(job_open(2));
	cmpi_address(job[A].c, blob, &len);
	CHECK_EQ(len, CMPI_ADDR_MAX);
	CHECK_EQ(cmpi_proc_get(job[B].c, blob, len - 1, NULL, &proc), CMPI_PARAMETER);
	memcpy(&other, blob, sizeof(other));
	other.card++;
	CHECK_EQ(cmpi_proc_get(job[B].c, (uint8_t *)&other, len, NULL, &proc), CMPI_UNREACHABLE);
	other.card--;
	other.params++;
	CHECK_EQ(cmpi_proc_get(job[B].c, (uint8_t *)&other, len, NULL, &proc), CMPI_UNREACHABLE);
	CHECK(strstr(cmpi_last_error(), "credit parameters") != NULL);
	other.params--;
	other.version++;
	CHECK_EQ(cmpi_proc_get(job[B].c, (uint8_t *)&other, len, NULL, &proc), CMPI_UNREACHABLE);
	other.version--;
	other.host_len = 200;
	CHECK_EQ(cmpi_proc_get(job[B].c, (uint8_t *)&other, len, NULL, &proc), CMPI_PARAMETER);
	CHECK(!proc);
	job_close();
}

/* ---- the orderly end --------------------------------------------------------------------------------------------------------------- */

static void close_is_silent(void)
{
	job_reset(50);
	REQUIRE(job_open(3) && job_connect(A, B) && job_connect(A, C) && job_connect(B, C));
	job_close_one(A);
	job_turn(4);
	CHECK_EQ(to(B, A)->state, VIA_CONN_CLOSED);
	CHECK_EQ(job[B].errors + job[C].errors, 0);
	CHECK(!to(B, A)->vi);
	CHECK_EQ(to(B, C)->state, VIA_CONN_CONNECTED);
	job_close();
}

static void close_drains_what_is_queued(void)
{
	uint32_t n = 1;

	job_reset(0);
	REQUIRE(job_open(2) && job_connect(A, B));
	while (n < 20) /* more would wait for credit, which only B's progress gives */
		CHECK_EQ(job_send(A, B, n++, 8), CMPI_OK);
	CHECK(to(A, B)->sends_posted > 0);
	job_close_one(A);
	job_turn(4);
	CHECK_EQ(job[B].got[A], n);
	CHECK_EQ(job[B].errors, 0);
	job_close();
}

/*
 * B's last messages and the end of its connection come while A asks after a send of its own, behind A's look into the completion queue.
 * A's NIC has no more to tell: what came is delivered first, BYE with it.
 */
static void close_behind_a_look(void)
{
	job_reset(0);
	REQUIRE(job_open(2) && job_connect(A, B));
	fake_hold(job[A].c->nic, job[B].c->nic, true);
	fake_deaf(job[A].c->nic, true);
	CHECK_EQ(job_send(A, B, 1, 8), CMPI_OK); /* never leaves: A asks after it in each pass */
	CHECK_EQ(job_send(B, A, 1, 8), CMPI_OK);
	cmpi_proc_put(job[B].c, to(B, A));
	for (int i = 0; i < 20 && to(B, A)->state != VIA_CONN_CLOSED; i++) {
		fake_run();
		cmpi_progress(job[B].c);
	}
	CHECK_EQ(to(B, A)->state, VIA_CONN_CLOSED);
	fake_deaf(job[A].c->nic, false);
	fake_send_steps(100);
	for (int i = 0; i < 4; i++)
		cmpi_progress(job[A].c);
	CHECK_EQ(job[A].got[B], 2);
	CHECK(to(A, B)->bye_in);
	CHECK(!strstr(job[A].error_text, "lost"));
	job_close();
}

static void put_of_a_peer_and_back(void)
{
	struct cmpi_proc *proc;
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;

	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	cmpi_address(job[B].c, blob, &len);
	cmpi_proc_put(job[A].c, to(A, B));
	cmpi_proc_put(job[A].c, to(A, B)); /* harmless */
	job_turn(10);
	CHECK_EQ(to(A, B)->state, VIA_CONN_CLOSED);
	CHECK_EQ(to(B, A)->state, VIA_CONN_CLOSED);
	CHECK(!to(A, B)->vi && !to(B, A)->vi);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	CHECK_EQ(job[A].c->recv_due, 0);
	CHECK_EQ(job[A].c->nfree, job[A].c->nvbufs);
	CHECK_EQ(cmpi_proc_get(job[A].c, blob, len, NULL, &proc), CMPI_OK);
	CHECK(proc == to(A, B));
	CHECK_EQ(job_send(A, B, 1, 8), CMPI_AGAIN);
	job_turn(40);
	CHECK_EQ(job_send(A, B, 1, 8), CMPI_OK);
	job_turn(4);
	CHECK_EQ(job[B].got[A], 2);
	job_close();
}

static void close_of_one_with_an_operation_of_the_other(void)
{
	static uint64_t word;
	struct cmpi_reg *reg;
	int err = -1;

	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	CHECK_EQ(cmpi_mem_register(job[B].c, &word, 8, CMPI_ACCESS_REMOTE_ATOMIC, &reg), CMPI_OK);
	fake_hold(job[A].c->nic, NULL, true);
	CHECK_EQ(cmpi_atomic(to(A, B), CMPI_ATOMIC_ADD, 8, (uintptr_t)&word, &reg->key, 1, 0, NULL, NULL, &err), CMPI_OK);
	cmpi_mem_deregister(job[B].c, reg);
	job_close_one(B);
	job_turn(10);
	CHECK_EQ(job[A].errors, 1);
	CHECK(strstr(job[A].error_text, "closed the connection while operations were pending") != NULL);
	CHECK_EQ(to(A, B)->state, VIA_CONN_LOST);
	job_close();
}

/* ---- loss ------------------------------------------------------------------------------------------------------------------------------ */

static int result[4];

static void done(void *arg, int err)
{
	*(int *)arg = err;
}

static void a_peer_dies(void)
{
	static uint8_t from[70000], into[70000];
	struct via_send send = {.buf = from, .done = done, .arg = &result[2], .envelope = {.data_length = sizeof(from)}};
	struct cmpi_reg *reg;
	struct cmpi_key key;
	char pid[32];

	job_reset(100);
	REQUIRE(job_open(3) && job_connect(A, B) && job_connect(A, C));
	memset(result, -1, sizeof(result));
	CHECK_EQ(cmpi_mem_register(job[B].c, into, sizeof(into), 7, &reg), CMPI_OK);
	fake_hold(job[A].c->nic, job[B].c->nic, true);
	CHECK_EQ(job_send(A, B, 1, 8), CMPI_OK);
	CHECK_EQ(cmpi_put(to(A, B), from, NULL, (uintptr_t)into, &reg->key, sizeof(into), done, &result[0]), CMPI_OK);
	CHECK_EQ(cmpi_atomic(to(A, B), CMPI_ATOMIC_ADD, 8, (uintptr_t)into, &reg->key, 1, 0, NULL, done, &result[1]), CMPI_OK);
	CHECK_EQ(via_match_send(to(A, B), &send), CMPI_OK);
	CHECK_EQ(cmpi_key_ask(to(A, B), (uintptr_t)into, 8, CMPI_ACCESS_REMOTE_READ, &key, done, &result[3]), CMPI_OK);
	CHECK_EQ(job_send(B, A, 1, 8), CMPI_OK); /* arrives before the end */
	fake_kill(job[B].c->nic);
	for (int i = 0; i < 10; i++) {
		fake_run();
		cmpi_progress(job[A].c);
		cmpi_progress(job[C].c);
	}
	CHECK_EQ(job[A].got[B], 2);
	CHECK_EQ(job[A].errors, 1);
	CHECK(job[A].error_proc == to(A, B));
	snprintf(pid, sizeof(pid), "rank 1 (pid %d)", (int)getpid());
	CHECK(strstr(job[A].error_text, pid) != NULL);
	CHECK_EQ(result[0], CMPI_TRANSPORT);
	CHECK_EQ(result[1], CMPI_TRANSPORT);
	CHECK_EQ(result[2], CMPI_TRANSPORT);
	CHECK_EQ(result[3], CMPI_TRANSPORT);
	CHECK_EQ(job_send(A, B, 2, 8), CMPI_TRANSPORT);
	CHECK_EQ(cmpi_put(to(A, B), from, NULL, (uintptr_t)into, &reg->key, 8, done, &result[0]), CMPI_TRANSPORT);
	CHECK_EQ(job_count(A, "cmpi_peers_lost"), 1);
	CHECK_EQ(job[C].errors, 0);
	CHECK_EQ(job_send(A, C, 1, 8), CMPI_OK); /* the others go on */
	fake_run();
	cmpi_progress(job[C].c);
	CHECK_EQ(job[C].got[A], 2);
	cmpi_mem_deregister(job[B].c, reg);
	job_close_one(B);
	job_close();
}

/* What a peer claims is checked; a peer that lies is given up, with its name. */
static void a_peer_breaks_the_protocol(void)
{
	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	to(B, A)->next_out += 3; /* packets missing */
	CHECK_EQ(job_send(B, A, 1, 8), CMPI_OK);
	job_turn(6);
	CHECK_EQ(job[A].got[B], 1);
	CHECK_EQ(job[A].errors, 1);
	CHECK(strstr(job[A].error_text, "broke the protocol") != NULL);
	CHECK_EQ(to(A, B)->state, VIA_CONN_LOST);
	job_close();
}

static void bad_packets(void)
{
	static const uint8_t type[] = {VIA_PKT_NONE, VIA_PKT_EAGER_START, VIA_PKT_EAGER_NEXT, VIA_PKT_RENDEZVOUS_REPLY,
	                               VIA_PKT_R3_DATA, VIA_PKT_RPUT_FINISH, VIA_PKT_RGET_FINISH, VIA_PKT_CANCEL_ACK,
	                               VIA_PKT_ATOMIC_REPLY, VIA_PKT_BARRIER, VIA_PKT_COUNT, 255};

	for (size_t i = 0; i < sizeof(type); i++)
		for (size_t len = sizeof(struct via_header); len <= VIA_SMALL; len += VIA_SMALL - sizeof(struct via_header)) {
			struct via_vbuf *v;

			job_reset(100);
			REQUIRE(job_open(2) && job_connect(A, B));
			v = via_packet_new(job[B].c, len, true);
			memset(via_vbuf_packet(v), 0x5a, len);
			via_flow_post(to(B, A), v, type[i]);
			job_turn(6);
			CHECK_EQ(job[A].errors, 1);
			CHECK_EQ(to(A, B)->state, VIA_CONN_LOST);
			job_close();
		}
}

/* A matched message from any source, or of any tag; a receive that asks for just that is posted, or not. */
static void bad_keys(void)
{
	static struct cmpi_comm comm = {.context = 3};
	static const int32_t bad[][2] = {{CMPI_ANY_SOURCE, 1}, {0, CMPI_ANY_TAG}, {CMPI_ANY_SOURCE, CMPI_ANY_TAG}};

	for (unsigned i = 0; i < 2 * sizeof(bad) / sizeof(*bad); i++) {
		int32_t source = bad[i / 2][0], tag = bad[i / 2][1];
		struct cmpi_req req = {.comm = &comm, .source = source, .tag = tag};
		uint64_t key = mpip_key(comm.context, source, tag);

		job_reset(100);
		REQUIRE(job_open(2) && job_connect(A, B));
		if (i & 1)
			CHECK_EQ(cmpi_irecv(job[A].c, &req), CMPI_OK);
		CHECK_EQ(via_eager_send(to(B, A), key, NULL, 0), CMPI_OK);
		job_turn(6);
		CHECK_EQ(job[A].errors, 1);
		CHECK_EQ(to(A, B)->state, VIA_CONN_LOST);
		if (i & 1) {
			CHECK(!cmpi_is_done(&req));
			cmpi_cancel(job[A].c, &req);
		}
		job_close();
	}
}

/* Packets of a series that cannot be. */
static void bad_series(void)
{
	static const struct {
		const char *what;
		uint64_t len[2]; /* of a series that begins; 0: another does not begin */
		uint16_t single;
		size_t behind;   /* bytes of it, and more than it has */
		bool begins;
	} bad[] = {
		{"of nothing", {0}, 0, 0, true},
		{"more than the window", {1 << 21}, 0, 0, true},
		{"neither single nor not", {100}, 2, 0, true},
		{"within another", {100, 100}, 0, 0, true},
		{"data of none", {0}, 0, 1, false},
		{"more than all", {100}, 0, 101, true},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		job_reset(100);
		REQUIRE(job_open(2) && job_connect(A, B));
		for (int n = 0; n < 2 && bad[i].begins && (!n || bad[i].len[n]); n++) {
			struct via_eager_start p = {.envelope = {
				.key = mpip_key(3, 1, 2), .data_length = bad[i].len[n], .single = bad[i].single, .packet_no = (uint16_t)n,
			}};

			CHECK(via_flow_packet(to(B, A), VIA_PKT_EAGER_START, &p, sizeof(p), true));
		}
		job_turn(6);
		if (bad[i].behind) {
			uint8_t data[sizeof(struct via_header) + 101] = {0};

			CHECK_EQ(job[A].errors, 0);
			CHECK(via_flow_packet(to(B, A), VIA_PKT_EAGER_NEXT, data, sizeof(struct via_header) + bad[i].behind, true));
			job_turn(6);
		}
		if (!CHECK_EQ(job[A].errors, 1))
			printf("# a series %s\n", bad[i].what);
		CHECK_EQ(to(A, B)->state, VIA_CONN_LOST);
		job_close();
	}
}

/* A packet of one that brings nothing. */
static void nothing_of_a_series(void)
{
	struct via_eager_start p = {.envelope = {.key = mpip_key(3, 1, 2), .data_length = 100}};
	struct via_header none;

	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	CHECK(via_flow_packet(to(B, A), VIA_PKT_EAGER_START, &p, sizeof(p), true));
	job_turn(6);
	CHECK_EQ(job[A].errors, 0);
	CHECK(via_flow_packet(to(B, A), VIA_PKT_EAGER_NEXT, &none, sizeof(none), true));
	job_turn(6);
	CHECK_EQ(job[A].errors, 1);
	job_close();
}

static int opened(void)
{
	struct cmpi_params params = {.job = 7, .rank = 9};
	struct cmpi *c[9];
	int n = 0;

	while (n < 9 && cmpi_open(&params, &c[n]) == CMPI_OK)
		n++;
	for (int i = 0; i < n; i++)
		cmpi_close(c[i]);
	return n;
}

static void open_that_fails(void)
{
	job_reset(100);
	CHECK_EQ(opened(), 8); /* as many NICs as the test network has */
	CHECK_STR(cmpi_last_error(), "the test network is full");
	fake_refuse_registrations(1);
	CHECK_EQ(opened(), 0);
	CHECK(strstr(cmpi_last_error(), "vbufs") != NULL);
	CHECK_STR(fake_violation(), NULL);
}

int main(void)
{
	CASE(first_use_connects);
	CASE(both_at_once);
	CASE(put_connects);
	CASE(a_peer_nobody_asked_for);
	CASE(addresses);
	CASE(close_is_silent);
	CASE(close_drains_what_is_queued);
	CASE(close_behind_a_look);
	CASE(put_of_a_peer_and_back);
	CASE(close_of_one_with_an_operation_of_the_other);
	CASE(a_peer_dies);
	CASE(a_peer_breaks_the_protocol);
	CASE(bad_packets);
	CASE(bad_keys);
	CASE(bad_series);
	CASE(nothing_of_a_series);
	CASE(open_that_fails);
	return check_done();
}
