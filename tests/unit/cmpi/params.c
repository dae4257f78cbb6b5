/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of flow control are forced into the inequalities that cmpi/pm_via/flow.c relies on, whatever was asked.
 */
#include "nicemu/mem/vi.h"
#include "tests/unit/cmpi/job.h"

static void hold(const struct via_params *p)
{
	CHECK(p->depth >= 1 && p->noop_extra >= 1 && p->preserve >= 1 && p->notify >= 1 && p->dynamic >= p->notify);
	CHECK(p->depth >= p->preserve + p->threshold + p->notify - 1);
	CHECK(p->noop_extra * p->notify >= p->preserve);
	CHECK(p->initial > p->noop_extra);
	CHECK(p->initial - p->noop_extra <= 255);
	CHECK(p->initial <= p->depth + p->noop_extra);
	CHECK(p->noop_extra < 128); /* counted modulo 256 */
	CHECK(p->preserve < 255);   /* compared with a credit that travels in a byte */
	CHECK(p->depth + p->noop_extra + p->rendezvous_extra <= 1024);
}

static void defaults_are_left_alone(void)
{
	struct via_params p;

	job_reset(0);
	via_params_read(&p);
	hold(&p);
	CHECK_EQ(p.depth, 144);
	CHECK(p.depth + p.noop_extra <= NIC_RXQ); /* none of them is spilled */
	CHECK_EQ(p.noop_extra, 8);
	CHECK_EQ(p.initial, 20);
	CHECK_EQ(p.rendezvous_extra, 64);
	CHECK_EQ(p.threshold, 10);
	CHECK_EQ(p.preserve, 10);
	CHECK_EQ(p.notify, 5);
	CHECK_EQ(p.dynamic, 32);
	CHECK_EQ(p.vbuf_max, -1);
	CHECK_EQ(p.protocol, VIA_PROTO_RGET);
	CHECK_EQ(p.rendezvous_threshold, 32768);
	CHECK_EQ(p.dreg_entries, 1000);
	CHECK(p.lazy_deregister && !p.connect_all);
}

static void small_ones(void)
{
	for (uint32_t depth = 0; depth < 14; depth++)
		for (uint32_t noop = 0; noop < 5; noop++)
			for (uint32_t i = 0; i < 14 * 14 * 8; i++) {
				struct via_params p = {.depth = depth, .noop_extra = noop, .initial = i % 17, .threshold = i % 14,
				                       .preserve = i / 14 % 14, .notify = i / 196, .dynamic = i % 23};

				via_params_clip(&p);
				hold(&p);
			}
}

static void any(void)
{
	job_reset(0);
	for (int i = 0; i < 100000; i++) {
		struct via_params p = {.depth = fake_random(1000), .noop_extra = fake_random(300), .initial = fake_random(1000),
		                       .threshold = fake_random(600), .preserve = fake_random(600), .notify = fake_random(600),
		                       .dynamic = fake_random(600), .rendezvous_extra = fake_random(3000)};

		via_params_clip(&p);
		hold(&p);
	}
}

/* Credits that do not fit a byte travel in several packets. */
static void a_deep_connection(void)
{
	uint32_t n = 1;

	job_reset(100);
	fake_param("prepost_depth", 400);
	fake_param("prepost_rendezvous_extra", 400);
	fake_param("dynamic_credit_threshold", 400);
	fake_param("backlog_max", 10);
	REQUIRE(job_open(2) && job_connect(0, 1));
	CHECK_EQ(job[1].to[0]->local_credit, 400 - 12 + 1);
	CHECK_EQ(job_send(1, 0, 1, 8), CMPI_OK);
	job_turn(2);
	CHECK_EQ(job[1].to[0]->local_credit, 400 - 12 + 1 - 255);
	while (job_send(0, 1, n, 8) == CMPI_OK)
		n++;
	CHECK(n > 250);
	job_turn(10);
	while (n < 3000)
		if (job_send(0, 1, n, 8) == CMPI_OK)
			n++;
		else
			job_turn(20);
	job_turn(40);
	CHECK_EQ(job[1].got[0], n);
	CHECK_EQ(job[1].order_errors, 0);
	CHECK(via_flow_holds(job[0].to[1]));
	CHECK(via_flow_holds(job[1].to[0]));
	job_close();
}

int main(void)
{
	CASE(defaults_are_left_alone);
	CASE(small_ones);
	CASE(any);
	CASE(a_deep_connection);
	return check_done();
}
