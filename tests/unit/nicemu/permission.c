/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIs over a NIC that asks before it sends: what outlives a connection, and what a process leaves behind that dies with
 * messages laid ready.
 */
#include "tests/unit/nicemu/pair.h"

static void post_receives(struct end *e)
{
	e->last_recv = NULL;
	for (int i = 0; i < 4; i++)
		recv_desc(e, fill(e, i, 0, e->mem + i * 1000, 1000));
}

static struct nic_desc *send_pattern(struct end *e, int i, uint32_t seed)
{
	struct nic_desc *d = fill(e, i, 0, e->mem + i * 1000, 100);

	pattern(e->mem + i * 1000, 100, seed);
	send_desc(e, d);
	return d;
}

/*
 * The answer to the last message of a connection is under way when both ends disconnect, and read in the next connection of
 * the same VIs: it is not the answer to the message of the same number there.
 */
static void reply_of_an_earlier_life(void)
{
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	post_receives(&p.b);
	send_pattern(&p.a, 0, 1);
	nic_poll(p.b.nic);
	CHECK(status_of(&p.b.desc[0]) & NIC_ST_DONE); /* taken, and answered */
	CHECK_EQ(status_of(&p.a.desc[0]), 0);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(nic_disconnect(p.b.nic, p.b.vi), NIC_OK);
	p.a.last_send = NULL;
	CHECK_EQ(pair_connect(&p), NIC_OK);
	post_receives(&p.b);
	CHECK_EQ(status_of(send_pattern(&p.a, 0, 2)), 0); /* nobody has answered it */
	send_pattern(&p.a, 1, 3);
	pair_poll(&p);
	for (int i = 0; i < 2; i++) {
		CHECK(status_of(&p.a.desc[i]) & NIC_ST_DONE);
		CHECK(is_pattern(p.b.mem + i * 1000, 100, 2 + i));
	}
	pair_close(&p);
}

int main(void)
{
	nic_param_set("arch", "qnix", "test");
	CASE(reply_of_an_earlier_life);
	return check_done();
}
