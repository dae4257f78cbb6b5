/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting: when processes outnumber cores, and what a wait is told to do then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/clock.h"
#include "tests/unit/nicemu/kin.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

static cpu_set_t before;

/* This process, and what it starts, on one of the processors it has. */
static bool on_one_core(void)
{
	cpu_set_t one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return false;
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void on_all_cores(void)
{
	sched_setaffinity(0, sizeof(before), &before);
}

static struct nic *open_named(const char *device)
{
	struct nic *nic;

	return nic_open(&(struct nic_open_args){ .device = kin_device(device) }, &nic) == NIC_OK ? nic : NULL;
}

/* It counts again at most once a millisecond, and at least five times a second. */
static bool crowded_soon(struct nic *nic, bool want)
{
	double until = kin_now() + KIN_SECONDS;

	while (nic_wait_crowded(nic) != want)
		if (kin_now() > until)
			return false;
	return true;
}

static void more_slots_than_cores(void)
{
	struct nic *one, *two;

	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	one = open_named("wait-count");
	REQUIRE(one);
	CHECK(!nic_wait_crowded(one));
	two = open_named("wait-count");
	REQUIRE(two);
	CHECK(crowded_soon(one, true));
	CHECK(crowded_soon(two, true));
	nic_close(two);
	CHECK(crowded_soon(one, false));
	nic_close(one);
	on_all_cores();
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

static int holds_a_slot(void)
{
	struct nic *nic = open_named("wait-dead");

	atomic_store(&kin_step[0], nic ? 1 : 2);
	kin_await(NULL, 1, 1); /* until it is killed */
	return 0;
}

static void the_dead_do_not_count(void)
{
	struct nic *nic;
	pid_t child;

	kin_clear();
	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	child = kin_fork(holds_a_slot);
	CHECK(kin_await(NULL, 0, 1));
	nic = open_named("wait-dead");
	REQUIRE(nic);
	CHECK(crowded_soon(nic, true));
	kin_kill(child);
	CHECK(crowded_soon(nic, false));
	nic_close(nic);
	on_all_cores();
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static void a_core_of_its_own(void)
{
	struct nic *nic = open_named("wait-alone");
	struct nic_wait wait = { 0 };

	REQUIRE(nic);
	for (int i = 0; i < 100; i++) {
		CHECK(nic_wait_plan(nic, &wait, 10 * MS) > 1);
		CHECK_EQ(wait.rest, NIC_REST_SPIN);
		nic_wait_rest(&wait);
	}
	CHECK_EQ(counter(nic, "yields") + counter(nic, "sleeps"), 0);
	nic_close(nic);
}

static bool taken; /* from the last tally, by somebody else: the core, for a while */

/* How often this wait, for `ms` and 100 questions at least, is told to do what, with a program that works for `work` between two looks. */
static void tally_of(struct nic_wait wait, struct nic *nic, uint64_t longest, uint64_t work, double ms, long count[3])
{
	double until = kin_now() + ms / 1e3;

	memset(count, 0, 3 * sizeof(*count));
	taken = false;
	while (kin_now() < until || count[NIC_REST_SPIN] + count[NIC_REST_YIELD] + count[NIC_REST_SLEEP] < 100) {
		double busy = kin_now() + (double)work / 1e9;

		while (work && kin_now() < busy)
			;
		nic_wait_look(&wait);
		nic_poll(nic);
		nic_wait_plan(nic, &wait, longest);
		count[wait.rest]++;
		taken |= kin_now() > busy + 200e-6;
		nic_wait_rest(&wait);
	}
}

static void tally(struct nic *nic, uint64_t longest, uint64_t work, double ms, long count[3])
{
	tally_of((struct nic_wait){ 0 }, nic, longest, work, ms, count);
}

/* The same of a program that works, and so does not sleep.  It counts only while it has the core: what a hypervisor takes looks like a wait. */
static bool tally_awake(struct nic_wait wait, struct nic *nic, uint64_t work, double ms, long count[3])
{
	for (int tries = 0; tries < 4; tries++) {
		tally_of(wait, nic, 10 * MS, work, ms, count);
		if (count[NIC_REST_SLEEP] < 3 || !taken)
			break;
	}
	return count[NIC_REST_SLEEP] < 3;
}

static struct nic *crowd[2];

static bool crowd_open(const char *mode)
{
	bool ok = nic_param_set("wait", mode, "test") == NIC_OK;

	for (int i = 0; i < 2; i++)
		crowd[i] = open_named("wait-crowd");
	return ok && crowd[0] && crowd[1] && crowded_soon(crowd[0], strcmp(mode, "spin") != 0);
}

static void crowd_close(void)
{
	nic_close(crowd[0]);
	nic_close(crowd[1]);
	nic_param_set("wait", "auto", "test");
}

static void crowded_by_steps(void)
{
	enum { TOO_MUCH = 2 * US, SLOW_CLOCK = 1300 };
	const struct nic_wait none = { 0 }, guessed = { .least = TOO_MUCH };
	uint16_t guess;
	long count[3];

	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	REQUIRE(crowd_open("auto"));
	guess = crowd[0]->waiting.empty;
	crowd[0]->waiting.empty = TOO_MUCH; /* as on a processor that was slow just then: it is guessed anew */
	tally(crowd[0], 10 * MS, 0, 250, count);
	CHECK(crowd[0]->waiting.empty < TOO_MUCH || guess > SLOW_CLOCK);
	CHECK(count[NIC_REST_YIELD] >= 1); /* at first; a busy machine makes each of them long */
	CHECK(count[NIC_REST_SLEEP] >= 2);
	CHECK(count[NIC_REST_SLEEP] < 500); /* of more than 50 us, and growing */
	tally(crowd[0], 0, 0, 50, count);   /* may not sleep */
	CHECK(count[NIC_REST_YIELD] >= 2);
	CHECK_EQ(count[NIC_REST_SLEEP], 0);
	CHECK(tally_awake(none, crowd[0], 30 * US, 20, count)); /* does other things in between */
	CHECK(count[NIC_REST_SPIN] > count[NIC_REST_YIELD]);
	CHECK(tally_awake(guessed, crowd[0], 1500, 50, count)); /* little, but more than the loop itself */
	crowd_close();
	on_all_cores();
}

/* Who looks often but asks seldom what to do about it, does not do something else all that time. */
static void looks_without_asking(void)
{
	struct nic_wait wait = { 0 };
	long yields = 0;

	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	REQUIRE(crowd_open("auto"));
	for (int i = 0; i < 100; i++) {
		for (int looks = 0; looks < 512; looks++) {
			nic_wait_look(&wait);
			nic_poll(crowd[0]);
		}
		wait.began = 0;
		nic_wait_plan(crowd[0], &wait, 10 * MS);
		yields += wait.rest == NIC_REST_YIELD;
		nic_wait_rest(&wait);
	}
	CHECK(yields >= 50);
	crowd_close();
	on_all_cores();
}

/* Somebody who works a little each time he has the core. */
static int lender(void)
{
	while (atomic_load(&kin_step[0]) == 0) {
		double until = kin_now() + 10e-6;

		while (kin_now() < until)
			;
		sched_yield();
	}
	return 0;
}

/* Somebody else may have the core for long at each yield.  Who does nothing else may sleep, who works a little may not; the core of one who lends it is
 * offered all the same. */
static void who_lends_the_core(void)
{
	const struct nic_wait lends = { .lends = true };
	long count[3];
	pid_t child;

	kin_clear();
	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	REQUIRE(crowd_open("auto"));
	child = kin_fork(lender);
	tally_of(lends, crowd[0], 10 * MS, 0, 300, count);
	CHECK(count[NIC_REST_SLEEP] >= 5);
	CHECK(tally_awake(lends, crowd[0], 1500, 50, count));
	CHECK(tally_awake(lends, crowd[0], 20 * US, 50, count));
	CHECK(count[NIC_REST_YIELD] >= 10 * count[NIC_REST_SPIN]);
	atomic_store(&kin_step[0], 1);
	kin_wait(child);
	crowd_close();
	on_all_cores();
}

static void as_the_parameter_says(void)
{
	long count[3];

	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	REQUIRE(crowd_open("spin"));
	tally(crowd[0], 10 * MS, 0, 10, count);
	CHECK_EQ(count[NIC_REST_YIELD] + count[NIC_REST_SLEEP], 0);
	crowd_close();
	REQUIRE(crowd_open("yield"));
	tally(crowd[0], 10 * MS, 0, 50, count);
	CHECK(count[NIC_REST_YIELD] >= 2);
	CHECK_EQ(count[NIC_REST_SLEEP], 0);
	crowd_close();
	on_all_cores();
	REQUIRE(nic_param_set("wait", "sleep", "test") == NIC_OK);
	crowd[0] = open_named("wait-crowd"); /* alone, with all its cores */
	REQUIRE(crowd[0]);
	tally(crowd[0], 10 * MS, 0, 100, count);
	CHECK(count[NIC_REST_SLEEP] >= 2);
	nic_close(crowd[0]);
	nic_param_set("wait", "auto", "test");
}

/* Somebody who is on no card wants the core, too, and does not yield it. */
static int hog(void)
{
	while (atomic_load(&kin_step[0]) == 0)
		;
	return 0;
}

/* Waits on that NIC until it believes so long, in nanoseconds, that others hold its core.  They may hold it right then, for longer than the first beliefs. */
static bool believes(struct nic *nic, uint64_t ns)
{
	double until = kin_now() + KIN_SECONDS;
	struct nic_wait wait = { 0 };

	while (kin_now() < until) {
		uint64_t before = nic_clock();
		uint32_t looks = nic_wait_plan(nic, &wait, 10 * MS);

		if (nic->waiting.belief >= ns)
			return nic->waiting.stalled_until > before;
		while (looks--)
			nic_poll(nic);
		nic_wait_rest(&wait);
	}
	return false;
}

static void others_hold_the_core(void)
{
	struct nic *nic;
	pid_t child;

	kin_clear();
	if (!on_one_core())
		SKIP("the affinity of this process cannot be set");
	nic = open_named("wait-hog");
	REQUIRE(nic);
	child = kin_fork(hog);
	CHECK(believes(nic, 1));
	CHECK(nic->waiting.belief < 20 * MS); /* only for a while, because it may be a start of something, */
	nic_wait_crowded(nic);
	CHECK(!nic->waiting.crowded);         /* and nobody else is told; */
	CHECK(believes(nic, 1000 * MS));      /* longer and longer, because it is not */
	CHECK(nic_wait_crowded(nic));
	CHECK(nic->waiting.crowded);
	atomic_store(&kin_step[0], 1);
	kin_wait(child);
	CHECK(crowded_soon(nic, false));
	nic_close(nic);
	on_all_cores();
}

int main(void)
{
	kin_start();
	CASE(more_slots_than_cores);
	CASE(the_dead_do_not_count);
	CASE(a_core_of_its_own);
	CASE(crowded_by_steps);
	CASE(looks_without_asking);
	CASE(who_lends_the_core);
	CASE(as_the_parameter_says);
	CASE(others_hold_the_core);
	return check_done();
}
