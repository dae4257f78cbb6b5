/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process whose memory is gone, or not there, while its NIC, in the daemon, goes on for a moment (engine/dma_elsewhere.c): nothing of it leaves, and the
 * daemon lets go of its slot.
 */
#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

static char device[48];

/* One transfer out of memory that is gone while its NIC, in the daemon, goes on: the other side keeps what it had, and loses the connection. */
static void from_memory_that_is_gone(uint16_t control, uint32_t pieces, uint32_t len)
{
	double until = kin_now() + KIN_SECONDS;
	bool writes = control & NIC_CTL_RDMA_WRITE;
	struct nic_desc *s, *r;
	struct pair p;
	uint8_t *gone;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	gone = p.a.mem + 4096;
	memset(p.b.mem, 0x55, PAIR_MEM);
	r = fill(&p.b, 0, 0, p.b.mem, len);
	recv_desc(&p.b, r);
	s = fill(&p.a, 0, control, gone, len);
	s->nseg = pieces + writes;
	for (uint32_t i = 0; i < pieces; i++)
		s->seg[i + writes] = (struct nic_seg){ (uintptr_t)gone + i * (len / pieces), p.a.handle, len / pieces };
	if (writes)
		s->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem, p.b.handle, 0 };
	CHECK_EQ(munmap(gone, PAIR_MEM - 4096), 0);
	send_desc(&p.a, s);
	while (!p.b.events[NIC_EV_CONN_LOST] && kin_now() < until)
		nic_poll(p.b.nic);
	CHECK_EQ(p.b.events[NIC_EV_CONN_LOST], 1);
	CHECK(status_of(r) & NIC_ST_DONE);
	CHECK(status_of(r) & (NIC_ST_FLUSHED | NIC_ST_TRANSPORT)); /* the latter where it was to copy the data itself */
	CHECK(is_filled(p.b.mem, PAIR_MEM, 0x55));
	CHECK(mmap(gone, PAIR_MEM - 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)gone);
	pair_close(&p);
}

/* How an operation ended; NIC_NOT_DONE: it has not in time. */
static int op_ends(struct end *e, uint32_t op, uint32_t *value)
{
	double until = kin_now() + KIN_SECONDS;
	int err;

	while ((err = nic_op_test(e->nic, op, value)) == NIC_NOT_DONE && kin_now() < until)
		nic_poll(e->nic);
	return err;
}

static void broadcast_of_memory_that_is_gone(uint32_t len)
{
	struct end *e[2], a, b;
	uint32_t slots[2], op[2], group[2];
	uint8_t *gone;

	end_open(&a, device);
	end_open(&b, device);
	e[0] = &a, e[1] = &b;
	for (int i = 0; i < 2; i++)
		slots[i] = e[i]->nic->me;
	for (uint32_t i = 0; i < 2; i++) {
		struct nic_group_args args = { .name = 7, .size = 2, .place = i, .slot = slots };

		CHECK_EQ(nic_group_join(e[i]->nic, &args, &op[i]), NIC_OK);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(op_ends(e[i], op[i], &group[i]), NIC_OK);
	gone = a.mem + 4096;
	memset(b.mem, 0x55, PAIR_MEM);
	CHECK_EQ(munmap(gone, PAIR_MEM - 4096), 0);
	CHECK_EQ(nic_bcast(a.nic, group[0], slots[0], gone, len, &op[0]), NIC_OK);
	CHECK_EQ(nic_bcast(b.nic, group[1], slots[0], b.mem, len, &op[1]), NIC_OK);
	CHECK(op_ends(&b, op[1], NULL) != NIC_OK);
	CHECK(is_filled(b.mem, PAIR_MEM, 0x55));
	CHECK(mmap(gone, PAIR_MEM - 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)gone);
	end_close(&a);
	end_close(&b);
}

/* The same of a read, which the NIC of the other side answers where it is not done in one step. */
static void read_of_memory_that_is_gone(uint32_t len)
{
	double until = kin_now() + KIN_SECONDS;
	struct nic_desc *d;
	struct pair p;
	uint8_t *gone;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	gone = p.b.mem + 4096;
	memset(p.a.mem, 0x55, PAIR_MEM);
	d = fill(&p.a, 0, NIC_CTL_RDMA_READ, p.a.mem, len);
	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ (uintptr_t)gone, p.b.handle, 0 };
	CHECK_EQ(munmap(gone, PAIR_MEM - 4096), 0);
	send_desc(&p.a, d);
	while (!(status_of(d) & NIC_ST_DONE) && kin_now() < until)
		nic_poll(p.a.nic);
	CHECK(status_of(d) & NIC_ST_DONE);
	CHECK(status_of(d) & (NIC_ST_RDMA_PROT | NIC_ST_TRANSPORT | NIC_ST_FLUSHED));
	CHECK(is_filled(p.a.mem, PAIR_MEM, 0x55));
	CHECK(mmap(gone, PAIR_MEM - 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)gone);
	pair_close(&p);
}

static void from_all_that_is_gone(const char *arch, const char *cma)
{
	nic_param_set("arch", arch, "test");
	nic_param_set("cma", cma, "test");
	from_memory_that_is_gone(0, 1, 40);
	from_memory_that_is_gone(0, 2, 40);
	from_memory_that_is_gone(0, 1, 600);
	from_memory_that_is_gone(0, 2, 6000);
	from_memory_that_is_gone(0, 1, 200000);
	from_memory_that_is_gone(NIC_CTL_RDMA_WRITE, 1, 8);
	from_memory_that_is_gone(NIC_CTL_RDMA_WRITE, 2, 6000);
	from_memory_that_is_gone(NIC_CTL_RDMA_WRITE, 1, 200000);
	read_of_memory_that_is_gone(8);
	read_of_memory_that_is_gone(500);
	read_of_memory_that_is_gone(6000);
	if (!asks_first()) { /* else the call itself reads it */
		broadcast_of_memory_that_is_gone(20);
		broadcast_of_memory_that_is_gone(200);
	}
	broadcast_of_memory_that_is_gone(3000);
	broadcast_of_memory_that_is_gone(200000);
}

static void nothing_leaves_memory_that_is_gone(void)
{
	if (!kin_attaches())
		SKIP("no cross-memory attach here");
	nic_param_set("engine", "daemon", "test");
	from_all_that_is_gone("direct", "off");
	from_all_that_is_gone("qnix", "off");
	from_all_that_is_gone("qnix", "auto");
	from_all_that_is_gone("direct", "auto");
	nic_param_set("engine", "inline", "test");
}

/* Memory that is not there: the daemon lets go of the slot, and goes on with another one. */
static void closed_after_it_was_let_go(void)
{
	struct pair p;
	double from;

	if (!kin_attaches())
		SKIP("no cross-memory attach here");
	nic_param_set("engine", "daemon", "test");
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	recv_desc(&p.b, fill(&p.b, 0, 0, p.b.mem, 4096));
	CHECK_EQ(munmap(p.a.mem, 4 * 4096), 0);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem + 4096, 1000));
	usleep(100000);
	from = kin_now();
	nic_close(p.a.nic); /* without a call before it that finds out */
	CHECK(kin_now() - from < KIN_SECONDS / 2);
	end_close(&p.b);
	CHECK(mmap(p.a.mem, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)p.a.mem);
	end_free(&p.a);
	nic_param_set("engine", "inline", "test");
}

int main(void)
{
	kin_start();
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	CASE(closed_after_it_was_let_go);
	CASE(nothing_leaves_memory_that_is_gone);
	return check_done();
}
