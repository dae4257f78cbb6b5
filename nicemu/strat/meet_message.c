/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of a group send each other messages (QNIX): a barrier is a message to every other member, and over when as many
 * have come.  Broadcasts are commands like any other there, executed by the scheduler (ctl/qnix_cmd.c).
 */
#include "nicemu/ctl/group.h"
#include "nicemu/obs/trace.h"

static void look(struct nic *nic, struct nic_group *g)
{
	uint16_t *arrived = &g->arrived[g->barriers & 1];

	if (!g->waiting || *arrived + 1u < g->size || g->barrier < g->barrier_end)
		return;
	*arrived = 0;
	nic_group_barrier_over(nic, g, QNIX_DONE);
}

static int send_some(struct nic *nic, struct nic_group *g)
{
	int n = 0;

	for (; g->barrier < g->barrier_end && nic_group_tell(nic, g, g->barrier, QNIX_SYS_BARRIER, (uint16_t)g->barriers); g->barrier++)
		n++;
	return n;
}

static bool busy(const struct nic_group *g)
{
	return g->barrier < g->barrier_end;
}

static void barrier(struct nic *nic, struct nic_group *g)
{
	nic_trace(nic, BARRIER_1, g->name, g->arrived[g->barriers & 1] + 1);
	g->barrier = 0;
	g->barrier_end = (uint16_t)g->size;
	send_some(nic, g);
	nic_trace(nic, BARRIER_2, g->name, g->barrier);
	if (busy(g))
		nic_group_busy(nic, g);
	look(nic, g);
}

void nic_group_barrier_in(struct nic *nic, struct nic_group *g, uint32_t place, uint16_t number)
{
	g->member[place].came = number;
	g->arrived[number & 1]++;
	nic_trace(nic, BARRIER_IN, g->name, g->arrived[number & 1]);
	look(nic, g);
}

static int run(struct nic *nic, struct nic_group *g)
{
	int n = send_some(nic, g);

	look(nic, g);
	return n;
}

/* Room on a link comes back silently. */
static bool moves(const struct nic *nic, const struct nic_group *g)
{
	(void)nic;
	return busy(g);
}

static bool came(const struct nic_group *g, uint32_t place)
{
	return g->member[place].came == (uint16_t)g->barriers;
}

static bool owes(const struct nic *nic, const struct nic_group *g)
{
	(void)nic;
	(void)g;
	return false;
}

const struct nic_meet nic_meet_message = { .name = "message", .barrier = barrier, .run = run, .busy = busy, .moves = moves, .came = came, .owes = owes };
