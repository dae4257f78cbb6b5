/* SPDX-License-Identifier: BSD-3-Clause */
/* What the NIC refuses, and what each reliability level makes of it. */
#include "tests/unit/nicemu/pair.h"

static const uint16_t levels[] = { NIC_UNRELIABLE, NIC_RELIABLE_DELIVERY, NIC_RELIABLE_RECEPTION };

static enum nic_vi_state state_of(const struct end *e)
{
	enum nic_vi_state state;

	nic_vi_query(e->nic, e->vi, &state, NULL);
	return state;
}

/* Sends one descriptor to a receiver with `room` bytes posted (-1: nothing posted). */
static void no_receive(void)
{
	for (int i = 0; i < 3; i++) {
		struct pair p;
		struct nic_desc *s;

		pair_open(&p, levels[i]);
		s = fill(&p.a, 0, 0, p.a.mem, 10);
		send_desc(&p.a, s);
		pair_poll(&p);
		CHECK_EQ(counter(p.b.nic, "recv_missing"), 1);
		CHECK_EQ(p.b.events[NIC_EV_RECVQ_EMPTY], 1);
		if (levels[i] == NIC_UNRELIABLE) {
			CHECK_EQ(state_of(&p.a), NIC_VI_CONNECTED);
			CHECK_EQ(state_of(&p.b), NIC_VI_CONNECTED);
			CHECK_EQ(status_of(s), NIC_ST_DONE);
		} else {
			CHECK_EQ(state_of(&p.a), NIC_VI_ERROR);
			CHECK_EQ(state_of(&p.b), NIC_VI_ERROR);
		}
		if (levels[i] == NIC_RELIABLE_DELIVERY) {
			CHECK_EQ(status_of(s), asks_first() ? NIC_ST_DONE | NIC_ST_FLUSHED : NIC_ST_DONE); /* the network had taken it, or not */
			CHECK_EQ(p.a.events[NIC_EV_CONN_LOST], 1);
		}
		if (levels[i] == NIC_RELIABLE_RECEPTION)
			CHECK_EQ(status_of(s), NIC_ST_DONE | NIC_ST_REMOTE_DESC);
		pair_close(&p);
	}
}

static void too_small(void)
{
	static const uint32_t sizes[] = { 20, 5000, 60000 };

	for (int k = 0; k < 6; k++) {
		nic_param_set("cma", k < 3 ? "auto" : "off", "test");
		for (int i = 0; i < 3; i++) {
			struct pair p;
			struct nic_desc *s, *r, *next;

			pair_open(&p, levels[i]);
			r = fill(&p.b, 0, 0, p.b.mem, 10);
			next = fill(&p.b, 1, 0, p.b.mem, 10);
			recv_desc(&p.b, r);
			recv_desc(&p.b, next);
			s = fill(&p.a, 0, 0, p.a.mem, sizes[k % 3]);
			send_desc(&p.a, s);
			pair_poll(&p);
			CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_LENGTH | NIC_ST_OP_RECEIVE);
			if (levels[i] == NIC_UNRELIABLE) {
				CHECK_EQ(state_of(&p.b), NIC_VI_CONNECTED);
				CHECK_EQ(status_of(next), 0);
				pattern(p.a.mem, 8, 9);
				send_desc(&p.a, fill(&p.a, 1, 0, p.a.mem, 8)); /* the next message is none the worse */
				pair_poll(&p);
				CHECK_EQ(status_of(next), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
				CHECK(is_pattern(p.b.mem, 8, 9));
			} else {
				CHECK_EQ(state_of(&p.a), NIC_VI_ERROR);
				CHECK_EQ(state_of(&p.b), NIC_VI_ERROR);
				CHECK_EQ(status_of(next), NIC_ST_DONE | NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE);
			}
			if (levels[i] == NIC_RELIABLE_RECEPTION)
				CHECK_EQ(status_of(s) & NIC_ST_REMOTE_DESC, NIC_ST_REMOTE_DESC);
			pair_close(&p);
		}
	}
	nic_param_set("cma", "auto", "test");
}

/* A malformed send: its status, and the state of the VI afterwards. */
static void bad_send(void (*spoil)(struct pair *p, struct nic_desc *d), uint32_t status)
{
	for (int i = 0; i < 3; i++) {
		struct pair p;
		struct nic_desc *d, *later, *r;

		pair_open(&p, levels[i]);
		r = fill(&p.b, 0, 0, p.b.mem, 100);
		recv_desc(&p.b, r);
		d = fill(&p.a, 0, 0, p.a.mem, 100);
		spoil(&p, d);
		send_desc(&p.a, d);
		later = fill(&p.a, 8, 0, p.a.mem, 10);
		send_desc(&p.a, later);
		pair_poll(&p);
		CHECK_EQ(status_of(d) & (NIC_ST_ERROR_MASK | NIC_ST_DONE), status | NIC_ST_DONE);
		if (levels[i] == NIC_UNRELIABLE) {
			CHECK_EQ(status_of(later), NIC_ST_DONE);
			CHECK_EQ(state_of(&p.a), NIC_VI_CONNECTED);
		} else {
			CHECK_EQ(status_of(later), NIC_ST_DONE | NIC_ST_FLUSHED);
			CHECK_EQ(state_of(&p.a), NIC_VI_ERROR);
			CHECK_EQ(state_of(&p.b), NIC_VI_ERROR);
			CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE);
		}
		pair_close(&p);
	}
}

static void reserved_control(struct pair *p, struct nic_desc *d) { (void)p; d->control = 0x8000; }
static void reserved_op(struct pair *p, struct nic_desc *d) { (void)p; d->control = 3; }
static void reserved_word(struct pair *p, struct nic_desc *d) { (void)p; d->reserved = 1; }
static void many_segments(struct pair *p, struct nic_desc *d) { (void)p; d->nseg = 254; }
static void rdma_without_segment(struct pair *p, struct nic_desc *d) { (void)p; d->control = NIC_CTL_RDMA_WRITE; d->nseg = 0; }
static void wrong_total(struct pair *p, struct nic_desc *d) { (void)p; d->length = 99; }
static void over_maximum(struct pair *p, struct nic_desc *d) { (void)p; d->seg[0].length = d->length = NIC_MAX_TRANSFER + 1; }
static void no_such_region(struct pair *p, struct nic_desc *d) { (void)p; d->seg[0].handle = 4711; }
static void past_the_end(struct pair *p, struct nic_desc *d) { d->seg[0].addr = (uintptr_t)p->a.mem + PAIR_MEM - 99; }
static void before_start(struct pair *p, struct nic_desc *d) { d->seg[0].addr = (uintptr_t)p->a.mem - 1; }
static void address_wraps(struct pair *p, struct nic_desc *d) { (void)p; d->seg[0].addr = UINT64_MAX - 50; }
static void pool_of_two(struct pair *p, struct nic_desc *d)
{
	(void)p;
	d->control = NIC_CTL_POOL;
	d->nseg = 2;
	d->seg[1] = (struct nic_seg){ d->seg[0].addr, d->seg[0].handle, 0 };
}
static void pool_elsewhere(struct pair *p, struct nic_desc *d) { (void)p; d->control = NIC_CTL_POOL; }

static void malformed_sends(void)
{
	bad_send(reserved_control, NIC_ST_FORMAT);
	bad_send(reserved_op, NIC_ST_FORMAT);
	bad_send(reserved_word, NIC_ST_FORMAT);
	bad_send(many_segments, NIC_ST_FORMAT);
	bad_send(rdma_without_segment, NIC_ST_FORMAT);
	bad_send(pool_of_two, NIC_ST_FORMAT);
	bad_send(wrong_total, NIC_ST_LENGTH);
	bad_send(over_maximum, NIC_ST_LENGTH);
	bad_send(no_such_region, NIC_ST_PROTECTION);
	bad_send(past_the_end, NIC_ST_PROTECTION);
	bad_send(before_start, NIC_ST_PROTECTION);
	bad_send(address_wraps, NIC_ST_PROTECTION);
	bad_send(pool_elsewhere, NIC_ST_PROTECTION);
}

static void wrong_tag(void)
{
	struct pair p;
	struct nic_mem_attr attr = { 0 };
	uint32_t other, handle;
	struct nic_desc *d;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(nic_ptag_create(p.a.nic, &other), NIC_OK);
	attr.ptag = other;
	CHECK_EQ(nic_mem_register(p.a.nic, (uintptr_t)p.a.mem, 100, &attr, &handle), NIC_OK);
	CHECK(nic_mem_check(p.a.nic, (uintptr_t)p.a.mem, 100, handle, other));
	CHECK(nic_mem_check(p.a.nic, (uintptr_t)p.a.mem, 100, handle, 0));
	CHECK(!nic_mem_check(p.a.nic, (uintptr_t)p.a.mem, 100, handle, p.a.ptag));
	CHECK(!nic_mem_check(p.a.nic, (uintptr_t)p.a.mem, 101, handle, other));
	d = fill(&p.a, 0, 0, p.a.mem, 10);
	d->seg[0].handle = handle;
	send_desc(&p.a, d);
	CHECK_EQ(status_of(d), NIC_ST_DONE | NIC_ST_PROTECTION);
	CHECK_EQ(counter(p.a.nic, "protection_errors"), 1);
	CHECK_EQ(nic_ptag_destroy(p.a.nic, other), NIC_BUSY);
	CHECK_EQ(nic_mem_deregister(p.a.nic, (uintptr_t)p.a.mem, handle), NIC_OK);
	CHECK_EQ(nic_mem_deregister(p.a.nic, (uintptr_t)p.a.mem, handle), NIC_PARAMETER);
	CHECK_EQ(nic_ptag_destroy(p.a.nic, other), NIC_OK);
	CHECK_EQ(nic_ptag_destroy(p.a.nic, other), NIC_PTAG);
	pair_close(&p);
}

/* RDMA against every right that can be missing. */
static void rdma_rights(void)
{
	for (int cma = 0; cma < 2; cma++) {
		nic_param_set("cma", cma ? "auto" : "off", "test");
		for (int i = 0; i < 3; i++) {
			for (int miss = 0; miss < 6; miss++) {
				struct pair p;
				struct nic_mem_attr attr = { .flags = 0 };
				uint16_t op = miss & 1 ? NIC_CTL_RDMA_READ : NIC_CTL_RDMA_WRITE;
				uint64_t at;
				uint32_t handle;
				struct nic_desc *d;

				pair_open(&p, levels[i]);
				at = (uintptr_t)p.b.mem;
				handle = p.b.handle;
				if (miss < 2) { /* no right on the region */
					attr.ptag = p.b.ptag;
					CHECK_EQ(nic_mem_register(p.b.nic, at, 1000, &attr, &handle), NIC_OK);
				} else if (miss < 4) { /* range */
					at += PAIR_MEM - 10;
				} else { /* no such region */
					handle = 4711;
				}
				memset(p.b.mem, 0, 100);
				memset(p.a.mem, 1, 100);
				d = fill(&p.a, 0, op, p.a.mem, 100);
				d->nseg = 2;
				d->seg[1] = d->seg[0];
				d->seg[0] = (struct nic_seg){ at, handle, 0 };
				send_desc(&p.a, d);
				pair_poll(&p);
				CHECK_EQ(p.b.mem[0], 0);
				CHECK_EQ(p.a.mem[0], 1);
				if (levels[i] == NIC_UNRELIABLE && op == NIC_CTL_RDMA_WRITE)
					CHECK_EQ(status_of(d) & NIC_ST_ERROR_MASK, 0);
				else
					CHECK_EQ(status_of(d) & NIC_ST_ERROR_MASK, NIC_ST_RDMA_PROT);
				CHECK_EQ(state_of(&p.a), levels[i] == NIC_UNRELIABLE ? NIC_VI_CONNECTED : NIC_VI_ERROR);
				CHECK_EQ(state_of(&p.b), levels[i] == NIC_UNRELIABLE ? NIC_VI_CONNECTED : NIC_VI_ERROR);
				pair_close(&p);
			}
		}
	}
	nic_param_set("cma", "auto", "test");
}

/* A VI that does not let its peer write. */
static void rdma_vi_rights(void)
{
	struct pair p;
	struct nic_vi_args args;
	struct nic_desc *d;
	char device[48];

	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	end_open(&p.a, device);
	end_open(&p.b, device);
	end_vi(&p.a, NIC_RELIABLE_DELIVERY);
	args = (struct nic_vi_args){ .attr = { .reliability = NIC_RELIABLE_DELIVERY, .flags = NIC_VI_RDMA_READ, .ptag = p.b.ptag }, .cookie = 2 };
	CHECK_EQ(nic_vi_create(p.b.nic, &args, &p.b.vi), NIC_OK);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	d = fill(&p.a, 0, NIC_CTL_RDMA_WRITE, p.a.mem, 100);
	d->nseg = 2;
	d->seg[1] = d->seg[0];
	d->seg[0] = (struct nic_seg){ (uintptr_t)p.b.mem, p.b.handle, 0 };
	send_desc(&p.a, d);
	CHECK_EQ(status_of(d) & NIC_ST_ERROR_MASK, NIC_ST_RDMA_PROT);
	pair_close(&p);
}

static void malformed_receives(void)
{
	struct pair p;
	struct nic_desc *bad, *good;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	bad = fill(&p.b, 0, NIC_CTL_RDMA_WRITE, p.b.mem, 10);
	recv_desc(&p.b, bad);
	CHECK_EQ(status_of(bad), NIC_ST_DONE | NIC_ST_FORMAT | NIC_ST_OP_RECEIVE);
	CHECK_EQ(state_of(&p.b), NIC_VI_ERROR);
	pair_close(&p);

	pair_open(&p, NIC_UNRELIABLE);
	good = fill(&p.b, 0, NIC_CTL_IMMEDIATE, p.b.mem, 10); /* the bit means nothing here */
	bad = fill(&p.b, 1, 0, p.b.mem - 5, 10);
	recv_desc(&p.b, good);
	recv_desc(&p.b, bad);
	CHECK_EQ(status_of(good), 0);
	CHECK_EQ(status_of(bad), 0);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 10));
	send_desc(&p.a, fill(&p.a, 1, 0, p.a.mem, 10));
	pair_poll(&p);
	CHECK_EQ(status_of(good), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK_EQ(status_of(bad), NIC_ST_DONE | NIC_ST_PROTECTION | NIC_ST_OP_RECEIVE);
	pair_close(&p);
}

/* Sends on a VI that is not connected; receives stay on an idle one. */
static void unconnected(void)
{
	struct end e;
	struct nic_desc *s, *r;
	char device[40];

	snprintf(device, sizeof(device), "test-alone-%d", (int)getpid());
	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	r = fill(&e, 0, 0, e.mem, 10);
	recv_desc(&e, r);
	s = fill(&e, 1, 0, e.mem, 10);
	send_desc(&e, s);
	CHECK_EQ(status_of(s), NIC_ST_DONE | NIC_ST_FLUSHED);
	CHECK_EQ(status_of(r), 0);
	CHECK_EQ(nic_disconnect(e.nic, e.vi), NIC_OK);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE);
	CHECK_EQ(nic_disconnect(e.nic, e.vi), NIC_OK);
	CHECK_EQ(nic_vi_destroy(e.nic, e.vi), NIC_OK);
	end_close(&e);
}

static void disconnect_flushes(void)
{
	struct pair p;
	struct nic_desc *r, *after;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	r = fill(&p.b, 0, 0, p.b.mem, 10);
	recv_desc(&p.b, r);
	CHECK_EQ(nic_vi_destroy(p.a.nic, p.a.vi), NIC_STATE);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	pair_poll(&p);
	CHECK_EQ(state_of(&p.a), NIC_VI_IDLE);
	CHECK_EQ(state_of(&p.b), NIC_VI_ERROR);
	CHECK_EQ(p.b.events[NIC_EV_CONN_LOST], 1);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE);
	after = fill(&p.b, 1, 0, p.b.mem, 10);
	recv_desc(&p.b, after);
	CHECK_EQ(status_of(after), NIC_ST_DONE | NIC_ST_FLUSHED | NIC_ST_OP_RECEIVE);
	after = fill(&p.b, 2, 0, p.b.mem, 10);
	send_desc(&p.b, after);
	CHECK_EQ(status_of(after), NIC_ST_DONE | NIC_ST_FLUSHED);
	CHECK_EQ(nic_disconnect(p.b.nic, p.b.vi), NIC_OK);
	/* and again from the start */
	CHECK_EQ(pair_connect(&p), NIC_OK);
	r = fill(&p.b, 0, 0, p.b.mem, 10);
	recv_desc(&p.b, r);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 10));
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	pair_close(&p);
}

/* Packets of an earlier connection must not reach a later one on the same VI. */
static void old_packets(void)
{
	struct pair p;
	struct nic_desc *r;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 10)); /* on the link, not read */
	CHECK_EQ(nic_disconnect(p.b.nic, p.b.vi), NIC_OK);
	nic_poll(p.a.nic);
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK_EQ(pair_connect(&p), NIC_OK);
	r = fill(&p.b, 0, 0, p.b.mem, 10);
	recv_desc(&p.b, r);
	pair_poll(&p);
	CHECK_EQ(status_of(r), 0);
	CHECK(counter(p.b.nic, "stale_packets") >= 1);
	send_desc(&p.a, fill(&p.a, 1, 0, p.a.mem, 7));
	pair_poll(&p);
	CHECK_EQ(r->length, 7);
	pair_close(&p);
}

static void cq_overflow(void)
{
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	p.b.recv_cq.mask = 3;
	for (int i = 0; i < 6; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem, 10));
	for (int i = 0; i < 6; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem, 10));
	pair_poll(&p);
	CHECK_EQ(p.b.recv_cq.overflow, 2);
	CHECK_EQ(p.b.events[NIC_EV_VI_OVERRUN], 2);
	pair_close(&p);
}

int main(void)
{
	CASE(no_receive);
	CASE(too_small);
	CASE(malformed_sends);
	CASE(wrong_tag);
	CASE(rdma_rights);
	CASE(rdma_vi_rights);
	CASE(malformed_receives);
	CASE(unconnected);
	CASE(disconnect_flushes);
	CASE(old_packets);
	CASE(cq_overflow);
	return check_done();
}
