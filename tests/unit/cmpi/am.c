/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: sizes, places for the payload, limits, handlers that send and make progress.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B };

static bool open_pair(void)
{
	job_reset(100);
	return job_open(2) && job_connect(A, B);
}

static bool holds(const uint8_t *data, size_t len, uint8_t salt)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != (uint8_t)(salt + i * 3))
			return false;
	return true;
}

static void fill(uint8_t *data, size_t len, uint8_t salt)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(salt + i * 3);
}

static void every_short_length(void)
{
	uint8_t data[200];

	REQUIRE(open_pair());
	for (size_t len = 0; len <= sizeof(data); len++)
		for (size_t head = 0; head <= len; head += 1 + len / 5) {
			fill(data, len, (uint8_t)len);
			CHECK_EQ(cmpi_am_send(job[A].to[B], 200, data, head, data + head, len - head), CMPI_OK);
			job_turn(1);
			CHECK_EQ(job[B].last_len, len);
			CHECK_EQ(job[B].last_tag, 200);
			CHECK(holds(job[B].last, len, (uint8_t)len));
		}
	job_close();
}

static void begin_and_commit(void)
{
	static const size_t room[] = {0, 1, 8, 39, 40, 41, 64, 1000, 8192, CMPI_AM_MAX};
	struct cmpi_am am;

	REQUIRE(open_pair());
	for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++)
		for (size_t len = 0; len <= room[i]; len += 1 + room[i] / 7) {
			CHECK_EQ(cmpi_am_begin(job[A].to[B], room[i], &am), CMPI_OK);
			CHECK_EQ(am.len, room[i]);
			CHECK_EQ((uintptr_t)am.data % 8, 0);
			fill(am.data, len, 7);
			CHECK_EQ(cmpi_am_commit(&am, 5, room[i] + 1), CMPI_PARAMETER);
			CHECK_EQ(cmpi_am_commit(&am, 5, len), CMPI_OK);
			job_turn(1);
			CHECK_EQ(job[B].last_len, len);
			CHECK(holds(job[B].last, len, 7));
		}
	job_close();
}

static void limits(void)
{
	static uint8_t data[CMPI_AM_MAX + 1];
	struct cmpi_am am;

	REQUIRE(open_pair());
	CHECK_EQ(cmpi_am_begin(job[A].to[B], CMPI_AM_MAX + 1, &am), CMPI_PARAMETER);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 1, data, CMPI_AM_MAX), CMPI_PARAMETER);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, SIZE_MAX, data, 2), CMPI_PARAMETER);
	CHECK_EQ(cmpi_am_send(job[A].to[B], CMPI_TAGS, data, 1, data, 1), CMPI_PARAMETER);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 56, data, CMPI_AM_MAX - 56), CMPI_OK);
	job_turn(2);
	CHECK_EQ(job[B].last_len, CMPI_AM_MAX);
	job_close();
}

static void short_ones_take_no_buffer(void)
{
	static uint8_t data[VIPX_SHORT_MAX];
	struct cmpi_am am[64];
	uint64_t sent;
	uint32_t n = 0;

	REQUIRE(open_pair());
	sent = job_count(A, "cmpi_am");
	while (n < 64 && cmpi_am_begin(job[A].to[B], 100, &am[n]) == CMPI_OK)
		n++;
	CHECK_EQ(n, 64);
	fake_brief(100);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 0, data, CMPI_AM_SHORT), CMPI_OK);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 0, data, VIPX_SHORT_MAX), CMPI_AGAIN);
	while (n--)
		cmpi_am_abort(&am[n]);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 0, data, VIPX_SHORT_MAX), CMPI_OK);
	CHECK_EQ(job_count(A, "cmpi_am") - sent, 2);
	job_turn(2);
	CHECK_EQ(fake_buffers_owned(), 0); /* the receiver has given its one back */
	job_close();
}

static void abort_gives_back(void)
{
	struct cmpi_am am[2];

	REQUIRE(open_pair());
	CHECK_EQ(cmpi_am_begin(job[A].to[B], 10, &am[0]), CMPI_OK);
	CHECK_EQ(cmpi_am_begin(job[A].to[B], 1000, &am[1]), CMPI_OK);
	CHECK_EQ(fake_buffers_owned(), 1);
	cmpi_am_abort(&am[0]);
	cmpi_am_abort(&am[1]);
	CHECK_EQ(fake_buffers_owned(), 0);
	CHECK_EQ(job[A].c->nfree, job[A].c->nvbufs - job[A].to[B]->preposts);
	job_turn(1);
	CHECK_EQ(job[B].got[A], 1);
	job_close();
}

/* Without a free buffer a long message is refused and a short one goes. */
static void out_of_buffers(void)
{
	struct cmpi_am am[64];
	uint8_t data[100] = {0};
	uint32_t n = 0;

	REQUIRE(open_pair());
	while (n < 64 && cmpi_am_begin(job[A].to[B], 100, &am[n]) == CMPI_OK)
		n++;
	CHECK_EQ(n, 64);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 4, data, 96), CMPI_AGAIN);
	CHECK_EQ(job_count(A, "cmpi_again"), 2); /* and the one that found no connection */
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 4, data, 4), CMPI_OK);
	while (n--)
		cmpi_am_abort(&am[n]);
	CHECK_EQ(cmpi_am_send(job[A].to[B], 0, data, 4, data, 96), CMPI_OK);
	job_turn(1);
	job_close();
}

/* What was accepted has left: nothing waits for a caller who may never come back.  Only what was begun before is queued. */
static void no_credit_refuses(void)
{
	uint32_t n = 1;

	job_reset(100);
	fake_param("prepost_depth", 8);
	fake_param("initial_prepost_depth", 16);
	REQUIRE(job_open(2) && job_connect(A, B));
	while (job_send(A, B, n, 8) == CMPI_OK)
		n++;
	CHECK_EQ(job[A].to[B]->remote_credit, 0);
	CHECK_EQ(job[A].to[B]->backlog.len, 0);
	CHECK_EQ(job_count(A, "cmpi_backlog_max"), 0);
	CHECK_EQ(job_send(A, B, n, 8), CMPI_AGAIN);
	for (int i = 0; i < 10; i++) {
		fake_run();
		job_progress(B); /* and A not once */
	}
	CHECK_EQ(job[B].got[A], n);
	job_turn(4);
	CHECK(job_send_at_once(A, B, n, 20));
	CHECK(job[A].to[B]->backlog.len > 0);
	CHECK_EQ(job_send(A, B, n + 20, 8), CMPI_AGAIN);
	job_turn(10);
	n += 20;
	CHECK_EQ(job[A].to[B]->backlog.len, 0);
	CHECK_EQ(job_send(A, B, n++, 8), CMPI_OK);
	job_turn(4);
	CHECK_EQ(job[B].got[A], n);
	CHECK_EQ(job[B].order_errors, 0);
	job_close();
}

/* Handlers answer, and make progress: later messages run inside, in order. */
static uint32_t depth, deepest;

static void busy_handler(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	uint32_t me = (uint32_t)(m - job), other = cmpi_proc_rank(from);

	(void)data, (void)len;
	if (++depth > deepest)
		deepest = depth;
	if (me == B)
		job_send(B, other, m->got[other] - 1, 8);
	if (depth < 10)
		cmpi_progress(m->c);
	depth--;
}

static void send_and_progress(int brief, uint32_t messages)
{
	REQUIRE(open_pair());
	fake_brief(brief);
	deepest = 0;
	job[B].on_am = busy_handler;
	for (uint32_t n = 1; n <= messages; n++)
		CHECK_EQ(job_send(A, B, n, 8), CMPI_OK);
	for (int i = 0; brief && i < 20; i++)
		cmpi_progress(job[B].c); /* before the network moves them */
	job_turn(10);
	CHECK_EQ(deepest, 10);
	CHECK_EQ(job[B].got[A], messages + 1);
	CHECK_EQ(job[A].got[B], messages + 1);
	CHECK_EQ(job[B].order_errors, 0);
	fake_brief(0);
	job_close();
}

static void handlers_send_and_progress(void)
{
	send_and_progress(0, 15);
}

/* Some of them taken together. */
static void handlers_in_a_row(void)
{
	send_and_progress(100, 100);
}

/* So many of that length does B take in one pass, of 30 from A.  Passes grow while there is much to take: 1, 2, 4 ... 32 short ones come first. */
static uint32_t in_one_pass(size_t len)
{
	uint32_t n;

	if (!CHECK(open_pair()))
		return 0;
	for (n = 1; n <= 63 + 30; n++)
		CHECK_EQ(job_send(A, B, n, n <= 63 ? 8 : len), CMPI_OK);
	fake_run();
	for (n = 0; n < 6; n++)
		cmpi_progress(job[B].c);
	CHECK_EQ(job[B].got[A], 1 + 63);
	cmpi_progress(job[B].c);
	n = job[B].got[A] - 1 - 63;
	job_turn(4);
	CHECK_EQ(job[B].got[A], 1 + 63 + 30);
	job_close();
	return n;
}

/* A peer that is ahead fills a pass with messages that nobody waits for yet: with long ones it ends early. */
static void long_ones_end_a_pass(void)
{
	CHECK_EQ(in_one_pass(8), 30);
	CHECK_EQ(in_one_pass(2000), 30);
	CHECK_EQ(in_one_pass(8000), 8);
	CHECK_EQ(in_one_pass(32000), 2);
}

/* What the next pass takes at most, behind one of `n` messages of that length. */
static uint32_t budget_behind(uint32_t n, size_t len)
{
	uint32_t first = job[B].got[A];

	cmpi_progress(job[A].c); /* credit */
	for (uint32_t k = 0; k < n; k++)
		CHECK_EQ(job_send(A, B, first + k, len), CMPI_OK);
	fake_run();
	cmpi_progress(job[B].c);
	fake_run();
	CHECK_EQ(job[B].got[A], first + n);
	return job[B].c->budget;
}

/* More of a stream, less when it pauses, one behind a single message of whatever length; never more than 64. */
static void a_pass_takes_what_comes(void)
{
	static const size_t lengths[] = { 8, 2000, 8000, 32000 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		REQUIRE(open_pair());
		job[B].c->budget = 64;
		CHECK_EQ(budget_behind(63, 8), 63);
		CHECK_EQ(budget_behind(63, 8), 64);
		CHECK_EQ(budget_behind(0, 0), 32);
		CHECK_EQ(budget_behind(5, 8), 5);
		CHECK_EQ(budget_behind(0, 0), 2);
		job[B].c->budget = 64;
		CHECK_EQ(budget_behind(1, lengths[i]), 1);
		CHECK_EQ(budget_behind(0, 0), 1);
		CHECK_EQ(job[B].order_errors, 0);
		job_close();
	}
}

/* More sequence numbers than 16 bits hold. */
static void many(void)
{
	uint32_t n = 1;

	REQUIRE(open_pair());
	while (n < 150000)
		if (job_send(A, B, n, n % 50 == 0 ? 200 : 8) == CMPI_OK)
			n++;
		else
			job_turn(2);
	job_turn(40);
	CHECK_EQ(job[B].got[A], n);
	CHECK_EQ(job[B].order_errors, 0);
	CHECK_EQ(job[A].errors, 0);
	job_close();
}

int main(void)
{
	CASE(every_short_length);
	CASE(begin_and_commit);
	CASE(limits);
	CASE(short_ones_take_no_buffer);
	CASE(abort_gives_back);
	CASE(out_of_buffers);
	CASE(no_credit_refuses);
	CASE(handlers_send_and_progress);
	CASE(handlers_in_a_row);
	CASE(long_ones_end_a_pass);
	CASE(a_pass_takes_what_comes);
	CASE(many);
	return check_done();
}
