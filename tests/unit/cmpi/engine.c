/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine over its modules: sends, receives, probes and cancels between processes of a job over the test VIPL, and to
 * oneself.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B, MOST = 300000, LONG = 40000 /* not eager */ };

static uint8_t from[MOST], into[MOST + 1];
static struct cmpi_comm world[2] = {{.context = 9, .rank = A}, {.context = 9, .rank = B}};
static int told;

static void done(struct cmpi_req *req)
{
	(void)req;
	told++;
}

static bool open_pair(void)
{
	job_reset(50);
	world[A].nrcvany = world[B].nrcvany = 0;
	return job_open(2) && job_connect(A, B);
}

static struct cmpi_req sending(uint32_t me, uint32_t to, int32_t tag, enum cmpi_mode mode, uint64_t len)
{
	return (struct cmpi_req){.done = done, .comm = &world[me], .to = job[me].to[to], .buf = from, .size = len, .tag = tag, .mode = mode};
}

static struct cmpi_req receiving(uint32_t me, int32_t source, int32_t tag, uint64_t size)
{
	return (struct cmpi_req){.done = done, .comm = &world[me], .buf = into, .size = size, .source = source, .tag = tag};
}

static void fill(uint64_t len, uint32_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
	memset(into, 0xcc, sizeof(into));
}

/* ---- every length, posted and unexpected, cut off, each mode ----------------------------------------------------------------- */

static void message(uint32_t me, uint64_t len, uint64_t size, bool posted, enum cmpi_mode mode)
{
	struct cmpi_req s = sending(me, B, 5, mode, len), r = receiving(B, CMPI_ANY_SOURCE, CMPI_ANY_TAG, size);
	struct cmpi_status status;

	fill(len, (uint32_t)len + mode);
	told = 0;
	if (posted)
		CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
	CHECK_EQ(cmpi_isend(job[me].c, &s), CMPI_OK);
	job_turn(20);
	if (!posted) {
		CHECK(!told || mode != CMPI_MODE_SYNC);
		CHECK(cmpi_iprobe(job[B].c, &world[B], (int32_t)me, 5, &status));
		CHECK_EQ(status.length, len);
		CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
		job_turn(20);
	}
	CHECK_EQ(told, 2);
	CHECK(cmpi_is_done(&s) && cmpi_is_done(&r));
	CHECK_EQ(s.status.err, CMPI_OK);
	CHECK_EQ(r.status.err, len > size ? CMPI_TRUNCATED : CMPI_OK);
	CHECK_EQ(r.status.source, me);
	CHECK_EQ(r.status.tag, 5);
	CHECK_EQ(r.status.length, len);
	CHECK(!memcmp(from, into, len < size ? len : size));
	CHECK_EQ(into[size], 0xcc);
	CHECK(!cmpi_iprobe(job[B].c, &world[B], CMPI_ANY_SOURCE, CMPI_ANY_TAG, &status));
	CHECK_EQ(world[B].nrcvany, 0);
}

static void every_length(uint32_t me)
{
	static const uint64_t len[] = {0, 1, 28, 29, 40, 1000, 8300, 16385, 32768, 32769, 32840, MOST};

	REQUIRE(open_pair());
	for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++)
		for (enum cmpi_mode mode = CMPI_MODE_STANDARD; mode <= CMPI_MODE_READY; mode++) {
			message(me, len[i], MOST, true, mode);
			message(me, len[i], MOST, false, mode);
			message(me, len[i], len[i] / 2, true, mode);
			message(me, len[i], len[i] / 2, false, mode);
		}
	CHECK_EQ(cmpi_map_functions(me == B ? "self" : "via")->pt_finalize(job[B].c), CMPI_OK);
	job_close();
}

static void to_a_peer(void)
{
	every_length(A);
}

static void to_itself(void)
{
	every_length(B);
}

/* ---- order --------------------------------------------------------------------------------------------------------------------- */

/* Numbers of mixed lengths and ways arrive in the order of their sends, whatever the receives ask for. */
static void in_order(void)
{
	static uint32_t out[200][1], in[200];
	static struct cmpi_req s[200], r[200];
	static uint8_t pad[LONG];

	REQUIRE(open_pair());
	for (uint32_t i = 0; i < 200; i++) {
		out[i][0] = i;
		s[i] = sending(A, B, (int32_t)(i % 3), i % 7 == 3 ? CMPI_MODE_SYNC : CMPI_MODE_STANDARD, 4);
		s[i].buf = out[i];
		if (i % 5 == 4) {
			memcpy(pad, &i, 4);
			s[i].buf = pad;
			s[i].size = i % 10 == 9 ? LONG : 300;
			s[i].mode = CMPI_MODE_STANDARD;
		}
		CHECK_EQ(cmpi_isend(job[A].c, &s[i]), CMPI_OK);
		if (s[i].size == LONG)
			break; /* its buffer is not free yet */
		if (i % 16 == 15)
			job_turn(1);
	}
	job_turn(10);
	for (uint32_t i = 0; i < 10; i++) {
		r[i] = receiving(B, i % 2 ? CMPI_ANY_SOURCE : A, CMPI_ANY_TAG, sizeof(pad));
		CHECK_EQ(cmpi_irecv(job[B].c, &r[i]), CMPI_OK);
		job_turn(10);
		CHECK(cmpi_is_done(&r[i]));
		memcpy(&in[i], into, 4);
		CHECK_EQ(in[i], i);
		CHECK_EQ(r[i].status.tag, (int32_t)(i % 3));
	}
	job_close();
}

/* ---- many sends: what the module cannot take waits in the queue, in order ------------------------------------------------------ */

enum { MANY = 20000 };

static void more_than_fits(void)
{
	static struct cmpi_req s[MANY];
	static uint32_t number[MANY];
	uint32_t queued;

	REQUIRE(open_pair());
	fake_hold(job[A].c->nic, NULL, true);
	told = 0;
	for (uint32_t i = 0; i < MANY; i++) {
		number[i] = i;
		s[i] = sending(A, B, 1, CMPI_MODE_STANDARD, 4);
		s[i].buf = &number[i];
		CHECK_EQ(cmpi_isend(job[A].c, &s[i]), CMPI_OK);
	}
	queued = job[A].to[B]->process.nsends;
	CHECK(queued > MANY / 2); /* backlog_max rendezvous, no more */
	cmpi_cancel(job[A].c, &s[MANY - 1]);
	CHECK(s[MANY - 1].status.cancelled);
	CHECK_EQ(job[A].to[B]->process.nsends, queued - 1);
	fake_hold(job[A].c->nic, NULL, false);
	for (uint32_t i = 0; i < MANY - 1; i++) {
		struct cmpi_req r = receiving(B, A, 1, sizeof(into));
		uint32_t got;

		CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
		for (int turns = 0; turns < 50 && !cmpi_is_done(&r); turns++)
			job_turn(1);
		if (!CHECK(cmpi_is_done(&r)))
			break;
		memcpy(&got, into, 4);
		if (got != i)
			CHECK_EQ(got, i);
	}
	job_turn(5);
	CHECK_EQ(told, 2 * MANY - 1);
	job_close();
}

/* Unexpected eager data stays within the window, and the window opens again by what headers say, without a NOOP. */
static void window(void)
{
	uint64_t eager;

	job_reset(50);
	fake_param("eager_window", 256 << 10);
	REQUIRE(job_open(2) && job_connect(A, B));
	for (int i = 0; i < 2000; i++) {
		struct cmpi_req s = sending(A, B, 1, CMPI_MODE_STANDARD, 1000), r = receiving(B, A, 1, 1000);
		struct cmpi_req back = sending(B, A, 1, CMPI_MODE_STANDARD, 4), got = receiving(A, B, 1, 1000);

		cmpi_irecv(job[B].c, &r);
		cmpi_irecv(job[A].c, &got);
		cmpi_isend(job[A].c, &s);
		job_turn(2);
		cmpi_isend(job[B].c, &back);
		job_turn(2);
		if (!cmpi_is_done(&r) || !cmpi_is_done(&got))
			CHECK(false);
	}
	eager = job_count(A, "cmpi_eager");
	CHECK_EQ(eager, 2000); /* 2 MB through a window of 256 KB */
	for (int i = 0; i < 400; i++) {
		static struct cmpi_req s[400];

		s[i] = sending(A, B, 1, CMPI_MODE_STANDARD, 1000);
		CHECK_EQ(cmpi_isend(job[A].c, &s[i]), CMPI_OK);
		job_turn(2);
	}
	CHECK(job_count(A, "cmpi_eager") - eager <= (256 << 10) / 1064 + 4);
	CHECK(job_count(A, "cmpi_eager") - eager > 200);
	job_close();
}

/* What a sender's NIC says of a long message, single or not, is what the receiver's is told (fake_vipl.c looks). */
static void single_ones(void)
{
	REQUIRE(open_pair());
	message(A, 50001, MOST, true, CMPI_MODE_STANDARD);
	message(A, 50000, MOST, false, CMPI_MODE_STANDARD);
	message(A, 50001, 40000, false, CMPI_MODE_STANDARD);
	CHECK_EQ(fake_singles, 2);
	CHECK_STR(fake_violation(), NULL);
	job_close();
}

/* Its peer is waiting for a single one: no turns are taken for buffers, as packets of many do. */
static void single_ones_in_turn(void)
{
	REQUIRE(open_pair());
	message(A, 50003, MOST, false, CMPI_MODE_SYNC);
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 1);
	CHECK_EQ(fake_singles, 1);
	CHECK_EQ(fake_turns, 0);
	message(A, 50002, MOST, false, CMPI_MODE_STANDARD);
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 2);
	CHECK(fake_turns > 0);
	CHECK_STR(fake_violation(), NULL);
	job_close();
}

static uint64_t at_once(uint64_t len, enum cmpi_mode mode, bool posted)
{
	uint64_t eager = job_count(A, "cmpi_eager"), series = job_count(A, "cmpi_eager_series");

	message(A, len, MOST, posted, mode);
	CHECK_EQ(job_count(A, "cmpi_eager") - eager, job_count(A, "cmpi_eager_series") - series);
	return job_count(A, "cmpi_eager") - eager;
}

/* One that is better sent waits for no reply, unless it is to be synchronous, or very long, or there is no room for it at its receiver. */
static void single_ones_at_once(void)
{
	REQUIRE(open_pair());
	CHECK_EQ(at_once(50003, CMPI_MODE_STANDARD, true), 1);
	CHECK_EQ(fake_singles, 1);
	CHECK_EQ(at_once(50003, CMPI_MODE_STANDARD, false), 1);
	CHECK_EQ(fake_singles, 1); /* of how long it is on its way nothing is known here */
	CHECK_EQ(at_once(50003, CMPI_MODE_SYNC, true), 0);
	CHECK_EQ(fake_singles, 2);
	CHECK_EQ(at_once(50002, CMPI_MODE_STANDARD, true), 0);
	CHECK_EQ(at_once(50001, CMPI_MODE_STANDARD, true), 0);
	CHECK_EQ(at_once((256 << 10) - 5, CMPI_MODE_STANDARD, true), 1);
	CHECK_EQ(at_once((256 << 10) + 3, CMPI_MODE_STANDARD, true), 0);
	job[A].c->params.eager_window = 50000;
	CHECK_EQ(at_once(50003, CMPI_MODE_STANDARD, true), 0);
	CHECK_STR(fake_violation(), NULL);
	job_close();
}

/* ---- matched probe ---------------------------------------------------------------------------------------------------------------- */

static void matched_probe(uint32_t me)
{
	static const uint64_t len[] = {10, 3000, 50000};

	REQUIRE(open_pair());
	for (int i = 0; i < 3; i++) {
		struct cmpi_req s = sending(me, B, 3, CMPI_MODE_STANDARD, len[i]), r = receiving(B, 0, 0, MOST), other = r;
		struct cmpi_message *m;
		struct cmpi_status status;

		fill(len[i], 1);
		CHECK(!cmpi_improbe(job[B].c, &world[B], CMPI_ANY_SOURCE, 3, &status));
		CHECK_EQ(cmpi_isend(job[me].c, &s), CMPI_OK);
		job_turn(3);
		m = cmpi_improbe(job[B].c, &world[B], CMPI_ANY_SOURCE, 3, &status);
		REQUIRE(m != NULL);
		CHECK_EQ(status.length, len[i]);
		other.source = (int32_t)me;
		other.tag = 3;
		CHECK_EQ(cmpi_irecv(job[B].c, &other), CMPI_OK); /* not for it */
		cmpi_cancel(job[me].c, &s);                       /* too late */
		job_turn(3);
		CHECK_EQ(cmpi_imrecv(job[B].c, m, &r), CMPI_OK);
		job_turn(20);
		CHECK(cmpi_is_done(&r) && cmpi_is_done(&s) && !cmpi_is_done(&other));
		CHECK_EQ(r.status.length, len[i]);
		CHECK(!memcmp(from, into, len[i]));
		CHECK(!s.status.cancelled);
		cmpi_cancel(job[B].c, &other);
		CHECK(cmpi_is_done(&other) && other.status.cancelled);
	}
	job_close();
}

static void matched_probe_peer(void)
{
	matched_probe(A);
}

static void matched_probe_self(void)
{
	matched_probe(B);
}

/* ---- cancel ------------------------------------------------------------------------------------------------------------------------ */

static void cancel_receives(void)
{
	struct cmpi_req r[3], s;

	REQUIRE(open_pair());
	told = 0;
	for (int i = 0; i < 3; i++) {
		r[i] = receiving(B, i ? CMPI_ANY_SOURCE : A, 1, 100);
		CHECK_EQ(cmpi_irecv(job[B].c, &r[i]), CMPI_OK);
	}
	CHECK_EQ(world[B].nrcvany, 2);
	cmpi_cancel(job[B].c, &r[0]);
	cmpi_cancel(job[B].c, &r[0]);
	CHECK_EQ(told, 1);
	CHECK(r[0].status.cancelled);
	s = sending(A, B, 1, CMPI_MODE_STANDARD, 8);
	cmpi_isend(job[A].c, &s);
	job_turn(4);
	CHECK(cmpi_is_done(&r[1]) && !r[1].status.cancelled && !cmpi_is_done(&r[2]));
	cmpi_cancel(job[B].c, &r[1]);
	CHECK(!r[1].status.cancelled);
	cmpi_cancel(job[B].c, &r[2]);
	CHECK(r[2].status.cancelled);
	CHECK_EQ(world[B].nrcvany, 0);
	CHECK_EQ(told, 4);
	job_close();
}

/* A message that waits is given back; one that was received is not; eager ones have left. */
static void cancel_sends(uint32_t me)
{
	struct cmpi_req s[4], r = receiving(B, (int32_t)me, 2, MOST);
	struct cmpi_status status;

	REQUIRE(open_pair());
	told = 0;
	fill(MOST, 5);
	s[0] = sending(me, B, 1, CMPI_MODE_STANDARD, MOST);
	s[1] = sending(me, B, 2, CMPI_MODE_SYNC, 10);
	s[2] = sending(me, B, 2, CMPI_MODE_STANDARD, MOST);
	s[3] = sending(me, B, 3, CMPI_MODE_STANDARD, 10);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(cmpi_isend(job[me].c, &s[i]), CMPI_OK);
	job_turn(4);
	cmpi_cancel(job[me].c, &s[0]);
	cmpi_cancel(job[me].c, &s[0]);
	cmpi_cancel(job[me].c, &s[1]);
	cmpi_cancel(job[me].c, &s[3]);
	job_turn(4);
	CHECK(cmpi_is_done(&s[0]) && s[0].status.cancelled);
	CHECK(cmpi_is_done(&s[1]) && s[1].status.cancelled);
	CHECK(cmpi_is_done(&s[3]) && !s[3].status.cancelled);
	CHECK(!cmpi_iprobe(job[B].c, &world[B], (int32_t)me, 1, &status));
	/* the request to give it back crosses the receive */
	CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
	cmpi_cancel(job[me].c, &s[2]);
	job_turn(20);
	CHECK(cmpi_is_done(&s[2]) && !s[2].status.cancelled);
	CHECK(cmpi_is_done(&r));
	CHECK(!memcmp(from, into, MOST));
	CHECK_EQ(told, 5);
	CHECK(cmpi_iprobe(job[B].c, &world[B], (int32_t)me, 3, &status));
	r = receiving(B, (int32_t)me, 3, 100);
	CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
	CHECK(cmpi_is_done(&r));
	job_close();
}

static void cancel_sends_peer(void)
{
	cancel_sends(A);
}

static void cancel_sends_self(void)
{
	cancel_sends(B);
}

/* The receive is told first, and whoever hears of it cancels the send, which has ended but has not been told. */
static struct cmpi_req ending;

static void cancels(struct cmpi_req *req)
{
	done(req);
	cmpi_cancel(job[B].c, &ending);
}

static void cancel_between_the_ends(void)
{
	struct cmpi_req r = receiving(B, B, 1, MOST);

	REQUIRE(open_pair());
	told = 0;
	fill(MOST, 6);
	ending = sending(B, B, 1, CMPI_MODE_STANDARD, MOST);
	r.done = cancels;
	CHECK_EQ(cmpi_isend(job[B].c, &ending), CMPI_OK);
	CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
	CHECK_EQ(told, 2);
	CHECK(cmpi_is_done(&ending) && !ending.status.cancelled);
	CHECK(!memcmp(from, into, MOST));
	job_close();
}

/* ---- tags and contexts -------------------------------------------------------------------------------------------------------------- */

static void any_tag_leaves_the_librarys_own(void)
{
	struct cmpi_comm other = {.context = 10, .rank = A};
	struct cmpi_req s = sending(A, B, -20, CMPI_MODE_STANDARD, 4), t = sending(A, B, 4, CMPI_MODE_STANDARD, 4);
	struct cmpi_req r = receiving(B, A, CMPI_ANY_TAG, 100);

	REQUIRE(open_pair());
	s.to = t.to = job[A].to[B];
	t.comm = &other;
	CHECK_EQ(cmpi_irecv(job[B].c, &r), CMPI_OK);
	cmpi_isend(job[A].c, &s);
	cmpi_isend(job[A].c, &t);
	job_turn(4);
	CHECK(!cmpi_is_done(&r));
	CHECK_EQ(job[B].c->engine.nunexpected, 2);
	t.comm = &world[A];
	cmpi_isend(job[A].c, &t);
	job_turn(4);
	CHECK(cmpi_is_done(&r));
	CHECK_EQ(r.status.tag, 4);
	job_close();
}

/* ---- a peer that is gone -------------------------------------------------------------------------------------------------------------- */

static void lost_peer(void)
{
	struct cmpi_req s = sending(A, B, 1, CMPI_MODE_SYNC, 10);

	REQUIRE(open_pair());
	s.to = job[A].to[B];
	told = 0;
	CHECK_EQ(cmpi_isend(job[A].c, &s), CMPI_OK);
	fake_run();
	fake_kill(job[B].c->nic);
	fake_run();
	for (int i = 0; i < 40; i++)
		cmpi_progress(job[A].c);
	CHECK_EQ(told, 1);
	CHECK_EQ(s.status.err, CMPI_TRANSPORT);
	CHECK_EQ(job[A].errors, 1);
	CHECK_EQ(cmpi_send(job[A].c, s.to, s.buf, s.size, s.tag, s.comm), CMPI_AGAIN);
	CHECK_EQ(cmpi_isend(job[A].c, &s), CMPI_OK);
	job_progress(A);
	CHECK_EQ(told, 2);
	CHECK_EQ(s.status.err, CMPI_TRANSPORT);
	job_close_one(B);
	job_close();
}

int main(void)
{
	CASE(to_a_peer);
	CASE(to_itself);
	CASE(in_order);
	CASE(more_than_fits);
	CASE(window);
	CASE(single_ones);
	CASE(single_ones_in_turn);
	CASE(single_ones_at_once);
	CASE(matched_probe_peer);
	CASE(matched_probe_self);
	CASE(cancel_receives);
	CASE(cancel_sends_peer);
	CASE(cancel_sends_self);
	CASE(cancel_between_the_ends);
	CASE(any_tag_leaves_the_librarys_own);
	CASE(lost_peer);
	return check_done();
}
