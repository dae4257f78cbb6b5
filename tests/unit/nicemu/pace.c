/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of two ways is the faster one (engine/pace.h). */
#include "nicemu/engine/pace.h"
#include "tests/check.h"

/* So many times the way that it names, at those costs; how often it named way 1. */
static int go(struct nic_pace *p, int times, uint64_t zero, uint64_t one)
{
	int ones = 0;

	for (int k = 0; k < times; k++) {
		ones += p->way;
		nic_pace_took(p, p->way, p->way ? one : zero);
	}
	return ones;
}

static void pace_finds_the_faster(void)
{
	struct nic_pace p = { 0 };
	int ones;

	CHECK_EQ(go(&p, 2 * NIC_PACE_FIRST_TRY, 1000, 900), NIC_PACE_FIRST_TRY); /* both are tried */
	CHECK_EQ(go(&p, NIC_PACE_SOON, 1000, 900), NIC_PACE_SOON);
	CHECK_EQ(go(&p, NIC_PACE_TRY, 1000, 900), 0);
	nic_pace_took(&p, 1, 1000000); /* somebody else ran */
	go(&p, 2 * NIC_PACE_MOST, 1000, 900);
	CHECK(go(&p, 5000, 1000, 900) >= 4950);
	go(&p, 20, 1000, 3000); /* that way becomes slower */
	ones = go(&p, 5000, 1000, 3000);
	CHECK(ones >= 5 && ones <= 50);
	go(&p, NIC_PACE_MOST + 2 * NIC_PACE_TRY, 1000, 500); /* and faster than ever, which a trial shows */
	CHECK(go(&p, 200, 1000, 500) > 150);
	for (int k = 0; k < 100; k++) { /* it is not possible to go it: it stays the one to go */
		CHECK_EQ(p.way, 1);
		nic_pace_took(&p, 0, 1000);
	}
	nic_pace_took(&p, 1, 0);
	CHECK(p.cost[1] > 0); /* known */
	nic_pace_took(&p, 0, UINT64_MAX);
	CHECK(p.cost[0] > 1000 && p.cost[0] < 2000);
}

int main(void)
{
	CASE(pace_finds_the_faster);
	return check_done();
}
