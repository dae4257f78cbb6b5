/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The struct cmpi that components share: one NIC, one set of peers; who takes active messages, who is told of losses, and
 * when it ends.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B };

static uint32_t told[3], messages;

static void lost(void *arg, struct cmpi_proc *proc, int err, const char *text)
{
	(void)proc, (void)err, (void)text;
	++*(uint32_t *)arg;
}

static void am(void *arg, struct cmpi_proc *from, unsigned tag, void *data, size_t len)
{
	(void)arg, (void)from, (void)tag, (void)data, (void)len;
	messages++;
}

static struct cmpi_params user(int i, cmpi_am_fn *handler)
{
	return (struct cmpi_params){.job = 7, .rank = A, .nranks = 2, .am = handler, .error = lost, .arg = &told[i]};
}

/* The other process is one of its own. */
static bool meet(struct cmpi *c, struct cmpi_proc **to_b)
{
	struct cmpi_params other = {.job = 7, .rank = B, .nranks = 2, .am = job_am, .arg = &job[B]};
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;

	job_n = 2;
	job[A].c = c;
	if (cmpi_open(&other, &job[B].c) != CMPI_OK)
		return false;
	cmpi_address(job[B].c, blob, &len);
	if (cmpi_proc_get(c, blob, len, NULL, to_b) != CMPI_OK || cmpi_am_send(*to_b, 1, "x", 1, NULL, 0) != CMPI_AGAIN)
		return false;
	cmpi_address(c, blob, &len);
	job_turn(40);
	return cmpi_proc_get(job[B].c, blob, len, NULL, &job[B].to[A]) == CMPI_OK;
}

static void one_for_all(void)
{
	struct cmpi_params p[3] = {user(0, NULL), user(1, am), user(2, am)};
	struct cmpi *c[3] = {NULL};
	struct cmpi_proc *b;

	job_reset(100);
	REQUIRE(cmpi_share(&p[0], &c[0]) == CMPI_OK);
	CHECK_EQ(cmpi_share(&p[0], &c[1]), CMPI_PARAMETER); /* that one is in already */
	REQUIRE(cmpi_share(&p[1], &c[1]) == CMPI_OK);
	CHECK(c[0] == c[1]);
	CHECK_EQ(cmpi_share(&p[2], &c[2]), CMPI_PARAMETER); /* somebody takes active messages */
	CHECK(!c[2]);
	REQUIRE(meet(c[0], &b));
	CHECK_EQ(cmpi_am_send(job[B].to[A], 1, "x", 1, NULL, 0), CMPI_OK);
	job_turn(4);
	CHECK_EQ(messages, 1);
	/* The second goes: no more messages are taken, the rest stays. */
	CHECK_EQ(cmpi_unshare(c[1], &told[1]), CMPI_OK);
	CHECK_EQ(cmpi_unshare(c[1], &told[1]), CMPI_PARAMETER);
	CHECK_EQ(cmpi_am_send(job[B].to[A], 1, "x", 1, NULL, 0), CMPI_OK);
	job_turn(4);
	CHECK_EQ(messages, 1);
	CHECK_EQ(job_count(A, "cmpi_connections"), 1);
	REQUIRE(cmpi_share(&p[2], &c[2]) == CMPI_OK);
	CHECK(c[2] == c[0]);
	/* Each is told. */
	fake_kill(job[B].c->nic);
	fake_run();
	for (int i = 0; i < 40; i++)
		cmpi_progress(c[0]);
	CHECK_EQ(told[0], 1);
	CHECK_EQ(told[1], 0);
	CHECK_EQ(told[2], 1);
	job_close_one(B);
	CHECK_EQ(cmpi_unshare(c[0], &told[0]), CMPI_OK);
	cmpi_progress(c[2]); /* still there */
	fake_auto_steps(4);
	CHECK_EQ(cmpi_unshare(c[2], &told[2]), CMPI_OK);
	job[A].c = NULL;
	job_close();
}

static void anew(void)
{
	struct cmpi_params p = user(0, am);
	struct cmpi *c;

	job_reset(100);
	for (int i = 0; i < 3; i++) {
		REQUIRE(cmpi_share(&p, &c) == CMPI_OK);
		CHECK_EQ(cmpi_unshare(c, &told[0]), CMPI_OK);
	}
	CHECK_STR(fake_violation(), NULL);
}

/* Of so many passes that find nothing, how many return 0: after those the user offers his core. */
static int passes_for_nothing(struct cmpi *c, int n)
{
	int zero = 0;

	while (n--)
		zero += cmpi_progress(c) == 0;
	return zero;
}

/* Who lends his core is not told that a pass found nothing when the pass has offered it already. */
static void offers_in_its_place(void)
{
	enum { LOOKS = 256 };
	struct cmpi_params p = user(0, am);
	bool lends = true;
	struct cmpi *c;

	job_reset(100);
	p.lends = &lends;
	REQUIRE(cmpi_share(&p, &c) == CMPI_OK);
	CHECK_EQ(passes_for_nothing(c, 3 * LOOKS), 3 * LOOKS);
	fake_crowded = true;
	CHECK(passes_for_nothing(c, 3 * LOOKS) < 3 * LOOKS); /* until it is noticed */
	fake_rests = 0;
	CHECK_EQ(passes_for_nothing(c, LOOKS), 0);
	CHECK_EQ(fake_rests, LOOKS);
	cmpi_only_looks(c, 4);
	CHECK_EQ(passes_for_nothing(c, LOOKS), LOOKS - LOOKS / 4);
	cmpi_only_looks(c, 0);
	lends = false;
	CHECK_EQ(passes_for_nothing(c, LOOKS), LOOKS);
	fake_crowded = false;
	lends = true;
	passes_for_nothing(c, LOOKS);
	CHECK_EQ(passes_for_nothing(c, 3 * LOOKS), 3 * LOOKS);
	CHECK_EQ(cmpi_unshare(c, &told[0]), CMPI_OK);
	CHECK_STR(fake_violation(), NULL);
}

int main(void)
{
	CASE(one_for_all);
	CASE(anew);
	CASE(offers_in_its_place);
	return check_done();
}
