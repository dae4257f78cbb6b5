/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VIPL send and receive in two processes: sizes, segments, immediate data, order, depth, completion queues, at each
 * reliability level.  Everything here must succeed; what must fail is in vipl_errors.c.
 */
#include "tests/func/vipl_two.h"

static VIP_RELIABILITY_LEVEL level; /* of the case that runs */

static void at_each_level(side_fn *body)
{
	for (size_t i = 0; i < sizeof two_levels / sizeof *two_levels; i++) {
		level = two_levels[i];
		both(body);
	}
}

/* ---- sizes ---- */

static const size_t sizes[] = { 0, 1, 7, 8, 40, 47, 48, 49, 63, 64, 65, 1000, 4095, 4096, 8191, 8192, 8193, 8319, 8320, 8321,
	                        16384, 32768, 32896, 32897, 65472, 65536, 100001, 1 << 20, (4 << 20) - 1, 4 << 20 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void all_sizes(struct side *s)
{
	side_connect(s, level, NULL);
	for (unsigned i = 0; i < SIZES; i++) {
		size_t n = sizes[i], shift = i % 8; /* any alignment */
		char *at = s->data + shift;
		VIP_DESCRIPTOR *d = desc_make(s, i, at, n);
		VIP_UINT32 status;

		if (s->server) {
			d->CS.Length = d->DS[0].Local.Length = (VIP_UINT32)n + 5;
			memset(at, 0xEE, n + 5);
			post_recv(s, d);
			meet(s);
			status = received(s, d, VIP_SUCCESS);
			CHECK_EQ(status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
			CHECK(filled(at, n, i));
			for (size_t k = 0; k < 5; k++)
				CHECK_EQ((unsigned char)at[n + k], 0xEE);
		} else {
			fill(at, n, i);
			meet(s);
			post_send(s, d);
			status = sent(s, d, VIP_SUCCESS);
			CHECK_EQ(status, VIP_STATUS_DONE | VIP_STATUS_OP_SEND);
		}
		CHECK_EQ(d->CS.Length, n);
	}
	meet(s);
	side_close(s);
}

static void every_size(void)
{
	at_each_level(all_sizes);
}

/* ---- segments ---- */

/* Cuts [at, at + n) into pieces of changing sizes, at most `max` of them; the last takes the rest. */
static void cut(struct side *s, VIP_DESCRIPTOR *d, char *at, size_t n, unsigned max, unsigned seed)
{
	unsigned i = 0;

	d->CS.Length = (VIP_UINT32)n;
	while (n && i < max) {
		size_t piece = i == max - 1 ? n : (seed * (i + 1) * 7919u >> 3) % 300;

		if (piece > n)
			piece = n;
		d->DS[i].Local.Data.Address = at;
		d->DS[i].Local.Handle = s->handle;
		d->DS[i].Local.Length = (VIP_UINT32)piece;
		at += piece;
		n -= piece;
		i++;
	}
	d->CS.SegCount = (VIP_UINT16)i;
}

/* Room for a descriptor of 252 segments. */
static VIP_DESCRIPTOR *long_desc(struct side *s, unsigned i)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(void *)(s->mem + i * 4096);

	memset(d, 0, 4096);
	return d;
}

static void many_segments(struct side *s)
{
	static const unsigned counts[] = { 1, 2, 3, 5, 17, 100, 251, 252 };

	side_connect(s, level, NULL);
	for (unsigned i = 0; i < 64; i++) {
		size_t n = (i * 997u) % 20000 + (i % 3 == 0 ? 100000 : 0);
		unsigned segments = counts[(i + s->server) % 8];
		VIP_DESCRIPTOR *d = long_desc(s, i);

		cut(s, d, s->data, n, segments, i + 1 + s->server);
		if (s->server) {
			memset(s->data, 0, n);
			post_recv(s, d);
			meet(s);
			received(s, d, VIP_SUCCESS);
			CHECK(filled(s->data, n, i));
		} else {
			fill(s->data, n, i);
			meet(s);
			post_send(s, d);
			sent(s, d, VIP_SUCCESS);
		}
		CHECK_EQ(d->CS.Length, n);
		CHECK_EQ(d->CS.Status & VIP_STATUS_ERROR_MASK, 0);
	}
	meet(s);
	side_close(s);
}

static void scattered_and_gathered(void)
{
	at_each_level(many_segments);
}

/* ---- immediate data ---- */

static void with_immediate(struct side *s)
{
	side_connect(s, level, NULL);
	for (unsigned i = 0; i < 60; i++) {
		size_t n = i % 4 == 0 ? 0 : i % 4 == 1 ? 16 : i % 4 == 2 ? 3000 : 70000;
		bool immediate = i % 3 != 0;
		VIP_DESCRIPTOR *d = desc_make(s, i, n ? s->data : NULL, n);

		if (s->server) {
			/* The bit on a receive descriptor means nothing. */
			d->CS.Control = i & 1 ? VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE : VIP_CONTROL_OP_SENDRECV;
			post_recv(s, d);
			meet(s);
			received(s, d, VIP_SUCCESS);
			CHECK_EQ(d->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | (immediate ? VIP_STATUS_IMMEDIATE : 0));
			if (immediate)
				CHECK_EQ(d->CS.ImmediateData, 0xC0DE0000u + i);
			CHECK(filled(s->data, n, i));
		} else {
			fill(s->data, n, i);
			if (immediate) {
				d->CS.Control |= VIP_CONTROL_IMMEDIATE;
				d->CS.ImmediateData = 0xC0DE0000u + i;
			}
			meet(s);
			post_send(s, d);
			sent(s, d, VIP_SUCCESS);
		}
		CHECK_EQ(d->CS.Length, n);
	}
	meet(s);
	side_close(s);
}

static void immediate_data(void)
{
	at_each_level(with_immediate);
}

/* ---- order, under pressure, with small windows ---- */

enum { ROUNDS = 20000, WINDOW = 50, SLOT = 16384 };

static size_t size_of(unsigned i)
{
	return i % 50 == 0 ? 12000 : i % 7 == 0 ? 600 : 4 + i % 45;
}

static void flow_in(struct side *s)
{
	unsigned credits = 0;

	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	for (unsigned i = 0; i < WINDOW; i++)
		post_recv(s, desc_make(s, i, s->data + i * SLOT, SLOT));
	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		VIP_DESCRIPTOR *d = desc_at(s, i % WINDOW);
		char *at = s->data + i % WINDOW * SLOT;

		received(s, d, VIP_SUCCESS);
		CHECK_EQ(d->CS.Length, size_of(i));
		if (!CHECK_EQ(*(unsigned *)(void *)at, i))
			break;
		d->CS.Length = SLOT; /* Status stays as it is: posting clears it */
		post_recv(s, d);
		if (++credits == WINDOW / 2) {
			say(s, &credits, sizeof credits);
			credits = 0;
		}
	}
	meet(s);
	side_close(s);
}

static void flow_out(struct side *s)
{
	unsigned credits = WINDOW, more;
	VIP_DESCRIPTOR *d;

	side_connect(s, VIP_SERVICE_RELIABLE_DELIVERY, NULL);
	meet(s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		char *at = s->data + i % WINDOW * SLOT;

		if (!credits) {
			hear(s, &more, sizeof more);
			credits += more;
		}
		credits--;
		if (i >= WINDOW)
			sent(s, desc_at(s, i % WINDOW), VIP_SUCCESS);
		d = desc_make(s, i % WINDOW, at, size_of(i));
		*(unsigned *)(void *)at = i;
		post_send(s, d);
	}
	for (unsigned i = ROUNDS - WINDOW; i < ROUNDS; i++)
		sent(s, desc_at(s, i % WINDOW), VIP_SUCCESS);
	for (; credits < WINDOW; credits += more)
		hear(s, &more, sizeof more);
	meet(s);
	side_close(s);
}

static void order_is_kept(void)
{
	two(flow_in, flow_out);
}

/* ---- a full queue ---- */

static void deep(struct side *s)
{
	unsigned max;
	VIP_DESCRIPTOR *d;

	side_connect(s, level, NULL);
	max = (unsigned)s->attr.MaxDescriptorsPerQueue;
	CHECK(max >= 1024);
	for (unsigned i = 0; s->server && i < max; i++)
		post_recv(s, desc_make(s, i, s->data + 128 * i, 128));
	if (s->server) /* one more than there is room for */
		VIP(VIP_ERROR_RESOURCE, VipPostRecv(s->vi, desc_make(s, max, s->data, 128), s->handle));
	meet(s);
	for (unsigned i = 0; i < max; i++) {
		d = desc_at(s, i);
		if (s->server) {
			received(s, d, VIP_SUCCESS);
			CHECK_EQ(*(unsigned *)(void *)(s->data + 128 * i), i);
		} else {
			*(unsigned *)(void *)(s->data + 128 * i) = i;
			post_send(s, desc_make(s, i, s->data + 128 * i, 4 + i % 120));
		}
	}
	for (unsigned i = 0; !s->server && i < max; i++)
		sent(s, desc_at(s, i), VIP_SUCCESS);
	VIP(VIP_DESCRIPTOR_ERROR, s->server ? VipRecvDone(s->vi, &d) : VipSendDone(s->vi, &d));
	CHECK(!d);
	meet(s);
	side_close(s);
}

static void a_full_queue(void)
{
	at_each_level(deep);
}

/* ---- completion queues ---- */

/* One queue for both directions of several VIs; each entry names a descriptor that is already done. */
static void shared_cq(struct side *s)
{
	enum { VIS = 5, EACH = 40 };
	VIP_VI_ATTRIBUTES attr;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE vi[VIS], which;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;
	unsigned seen_send[VIS] = { 0 }, seen_recv[VIS] = { 0 };

	side_open(s);
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 1024, &cq));
	VIP(VIP_NOT_DONE, VipCQDone(cq, &which, &recv));
	VIP(VIP_TIMEOUT, VipCQWait(cq, 20, &which, &recv));
	VIP(VIP_TIMEOUT, VipCQWait(cq, 0, &which, &recv));
	attr = vi_attributes(s, level);
	for (unsigned v = 0; v < VIS; v++) {
		char name[] = { (char)('a' + v), 0 };

		VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, cq, cq, &vi[v]));
		for (unsigned i = 0; i < EACH; i++)
			VIP(VIP_SUCCESS, VipPostRecv(vi[v], desc_make(s, 100 * v + i, s->data, 512), s->handle));
		VIP(VIP_SUCCESS, connect_vi(s, vi[v], name));
	}
	VIP(VIP_ERROR_RESOURCE, VipDestroyCQ(cq));
	VIP(VIP_ERROR_RESOURCE, VipRecvWait(vi[0], 1, &d)); /* is waited for at the completion queue */
	VIP(VIP_ERROR_RESOURCE, VipSendWait(vi[0], 1, &d));
	meet(s);
	for (unsigned i = 0; i < EACH; i++)
		for (unsigned v = 0; v < VIS; v++) {
			d = desc_make(s, 1000 + 100 * v + i, s->data + 4096, 8 + i);
			d->CS.Control |= VIP_CONTROL_IMMEDIATE;
			d->CS.ImmediateData = 100 * v + i;
			VIP(VIP_SUCCESS, VipPostSend(vi[v], d, s->handle));
		}
	for (unsigned n = 0; n < 2 * VIS * EACH; n++) {
		unsigned v;

		VIP_RETURN result;

		while (n % 2 && (result = VipCQDone(cq, &which, &recv)) == VIP_NOT_DONE)
			; /* asking alone makes progress */
		VIP(VIP_SUCCESS, n % 2 ? result : VipCQWait(cq, SOON, &which, &recv));
		for (v = 0; v < VIS && vi[v] != which; v++)
			;
		REQUIRE(v < VIS);
		/* Done at once: the status is there before the entry. */
		VIP(VIP_SUCCESS, recv ? VipRecvDone(which, &d) : VipSendDone(which, &d));
		if (recv) {
			CHECK(d == desc_at(s, 100 * v + seen_recv[v]));
			CHECK_EQ(d->CS.ImmediateData, 100 * v + seen_recv[v]);
			seen_recv[v]++;
		} else {
			CHECK(d == desc_at(s, 1000 + 100 * v + seen_send[v]));
			seen_send[v]++;
		}
	}
	VIP(VIP_NOT_DONE, VipCQDone(cq, &which, &recv));
	meet(s);
	for (unsigned v = 0; v < VIS; v++) {
		VIP(VIP_SUCCESS, VipDisconnect(vi[v]));
		VIP(VIP_SUCCESS, VipDestroyVi(vi[v]));
	}
	VIP(VIP_SUCCESS, VipDestroyCQ(cq));
	VIP(VIP_SUCCESS, VipCloseNic(s->nic));
}

static void one_completion_queue(void)
{
	at_each_level(shared_cq);
}

/* Growing and shrinking while entries are in it. */
static void resized_cq(struct side *s)
{
	VIP_VI_ATTRIBUTES attr;
	VIP_CQ_HANDLE cq;
	VIP_VI_HANDLE which;
	VIP_BOOLEAN recv;
	VIP_DESCRIPTOR *d;

	side_open(s);
	VIP(VIP_SUCCESS, VipCreateCQ(s->nic, 16, &cq));
	attr = vi_attributes(s, level);
	VIP(VIP_SUCCESS, VipCreateVi(s->nic, &attr, NULL, cq, &s->vi));
	for (unsigned i = 0; i < 40; i++)
		post_recv(s, desc_make(s, i, s->data, 512));
	VIP(VIP_SUCCESS, connect_vi(s, s->vi, "cq"));
	meet(s);
	for (unsigned i = 0; i < 10; i++) {
		d = desc_make(s, 100 + i, s->data, 8);
		post_send(s, d);
		sent(s, d, VIP_SUCCESS);
	}
	meet(s);
	VIP(VIP_SUCCESS, VipCQWait(cq, SOON, &which, &recv));
	while (vi_state(s->vi) == VIP_STATE_CONNECTED && desc_at(s, 9)->CS.Status == 0)
		;
	VIP(VIP_ERROR_RESOURCE, VipResizeCQ(cq, 4)); /* nine are in it */
	VIP(VIP_INVALID_PARAMETER, VipResizeCQ(cq, 0));
	VIP(VIP_ERROR_RESOURCE, VipResizeCQ(cq, s->attr.MaxCQEntries + 1));
	VIP(VIP_SUCCESS, VipResizeCQ(cq, 9));
	for (unsigned i = 0; i < 4; i++)
		VIP(VIP_SUCCESS, VipCQDone(cq, &which, &recv));
	VIP(VIP_SUCCESS, VipResizeCQ(cq, 1000));
	for (unsigned i = 0; i < 5; i++) {
		VIP(VIP_SUCCESS, VipCQDone(cq, &which, &recv));
		CHECK(which == s->vi && recv == VIP_TRUE);
	}
	VIP(VIP_NOT_DONE, VipCQDone(cq, &which, &recv));
	meet(s);
	side_close(s);
}

static void resizing_a_completion_queue(void)
{
	level = VIP_SERVICE_RELIABLE_DELIVERY;
	both(resized_cq);
}

/* ---- a VI and its twin in one process, on one handle and on two ---- */

static void link_up(struct side *one, struct side *two)
{
	union address left, right;
	VIP_VI_ATTRIBUTES theirs;

	one->vi = vi_new(one, level);
	two->vi = vi_new(two, level);
	address_of(one, "left", &left);
	address_of(two, "right", &right);
	VIP(VIP_SUCCESS, VipConnectPeerRequest(one->vi, &left.a, &right.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerRequest(two->vi, &right.a, &left.a, SOON));
	VIP(VIP_SUCCESS, VipConnectPeerWait(one->vi, &theirs));
	VIP(VIP_SUCCESS, VipConnectPeerWait(two->vi, &theirs));
}

static void talk(struct side *one, struct side *two)
{
	for (unsigned i = 0; i < SIZES; i++) {
		VIP_DESCRIPTOR *to = desc_make(two, i, two->data, sizes[i]), *from = desc_make(one, 100 + i, one->data + (8 << 20), sizes[i]);

		fill(one->data + (8 << 20), sizes[i], i);
		memset(two->data, 0, sizes[i]);
		post_recv(two, to);
		post_send(one, from);
		received(two, to, VIP_SUCCESS);
		sent(one, from, VIP_SUCCESS);
		CHECK(filled(two->data, sizes[i], i));
	}
}

static void one_process(void)
{
	for (size_t i = 0; i < 3; i++) {
		struct side one = { .server = true }, two = { .server = false };

		level = two_levels[i];
		side_open(&one);
		two = one;
		link_up(&one, &two);
		talk(&one, &two);
		talk(&two, &one);
		VIP(VIP_SUCCESS, VipDisconnect(two.vi));
		VIP(VIP_SUCCESS, VipDestroyVi(two.vi));
		side_close(&one);
	}
}

static void two_handles_in_one_process(void)
{
	for (size_t i = 0; i < 3; i++) {
		struct side one = { .server = true }, two = { .server = false };
		VIP_UINT64 card[2];
		VIP_ULONG slot[2];

		level = two_levels[i];
		side_open(&one);
		side_open(&two);
		VIP(VIP_SUCCESS, VipxCardId(one.nic, &card[0]));
		VIP(VIP_SUCCESS, VipxCardId(two.nic, &card[1]));
		VIP(VIP_SUCCESS, VipxCardSlot(one.nic, &slot[0]));
		VIP(VIP_SUCCESS, VipxCardSlot(two.nic, &slot[1]));
		CHECK(card[0] == card[1] && slot[0] != slot[1]);
		CHECK(!memcmp(one.attr.LocalNicAddress, two.attr.LocalNicAddress, 6));
		link_up(&one, &two);
		talk(&one, &two);
		talk(&two, &one);
		side_close(&one);
		side_close(&two);
	}
}

int main(void)
{
	static const char *const copies[] = { "auto", "off" }; /* one-step copies, or packets */

	two_init("transfer");
	for (size_t i = 0; i < 2; i++) {
		printf("# cma %s\n", copies[i]);
		VipxParameterSet("cma", copies[i], "test");
		CASE(every_size);
		CASE(scattered_and_gathered);
		CASE(immediate_data);
		CASE(order_is_kept);
		CASE(a_full_queue);
		CASE(one_completion_queue);
		CASE(resizing_a_completion_queue);
		CASE(one_process);
		CASE(two_handles_in_one_process);
	}
	return check_done();
}
