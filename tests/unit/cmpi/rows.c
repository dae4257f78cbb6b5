/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that are taken together: their headers are booked before any is handled.  It must come to the same as one after the other, also
 * where a header is wrong, and when a handler breaks the connection.
 */
#include "tests/unit/cmpi/job.h"
#include "tests/unit/cmpi/spoil.h"

enum { A, B, ALONE = 1, TOGETHER = 64, N = 40 };

static uint32_t length; /* of A's messages, at least: short ones, or in buffers */

static bool in_buffers(void)
{
	return length > VIPX_SHORT_MAX;
}

static bool open_pair(void)
{
	job_reset(100);
	if (!job_open(2) || !job_connect(A, B))
		return false;
	fake_brief(100);
	return true;
}

static void send_all(uint32_t n)
{
	uint32_t first = job[B].got[A];

	for (uint32_t i = 0; i < n; i++) {
		job_owe(B, A, i % 3);
		CHECK_EQ(job_send(A, B, first + i, length + i % 30), CMPI_OK);
	}
}

/* So many packets a pass, until there are none. */
static void take_all(uint32_t budget)
{
	for (uint32_t pass = 0; pass < 2 * N; pass++) {
		uint32_t got = job[B].got[A];

		job[B].c->budget = budget;
		cmpi_progress(job[B].c);
		CHECK(budget != ALONE || job[B].got[A] - got <= 1);
	}
}

struct accounts {
	uint32_t got, order_errors, errors, next_in, allowed, remote_credit, remote_cc, consumed_cc, preposts, fresh, unexpected;
};

static struct accounts accounts(void)
{
	const struct cmpi_proc *p = job[B].to[A];

	return (struct accounts){job[B].got[A], job[B].order_errors, job[B].errors, p->next_in, p->granted + p->local_credit, /* when a NOOP says so may differ */
	                         p->remote_credit, p->remote_cc, p->consumed_cc, job[B].errors ? 0 : p->preposts, p->fresh,
	                         (uint32_t)job[B].c->engine.nunexpected};
}

/* The packets in flight to B by number. */
static struct {
	uint32_t at, from, to;
	void (*spoil)(struct via_header *header);
} spoiling;

static void spoil_one(void *arg, const void *packet, size_t len)
{
	struct via_header header;

	(void)arg, (void)len;
	if (spoiling.at >= spoiling.from && spoiling.at < spoiling.to) {
		memcpy(&header, packet, sizeof(header));
		spoiling.spoil(&header);
		memcpy((void *)(uintptr_t)packet, &header, sizeof(header));
	}
	spoiling.at++;
}

static void (*prepare)(void); /* before B takes what has come; NULL: nothing */

/* What B's accounts are when it has taken N packets of A, those from `from` on spoiled. */
static struct accounts taken(uint32_t budget, uint32_t from, uint32_t to, void (*spoil)(struct via_header *header))
{
	struct accounts a = {0};

	if (!CHECK(open_pair()))
		return a;
	send_all(N);
	spoiling.at = 0;
	spoiling.from = from;
	spoiling.to = to;
	spoiling.spoil = spoil;
	fake_in_flight(job[A].c->nic, job[B].c->nic, spoil_one, NULL);
	CHECK_EQ(spoiling.at, N);
	if (prepare)
		prepare();
	take_all(budget);
	a = accounts();
	fake_brief(0);
	job_turn(10);
	CHECK_EQ(fake_buffers_owned(), 0); /* all have been given back */
	job_close();
	return a;
}

static bool same(const char *what, struct accounts a, struct accounts b)
{
	bool is = memcmp(&a, &b, sizeof(a)) == 0;

	if (!is)
		printf("# %s, alone and together: got %u %u errors %u %u next_in %u %u allowed %u %u credit %u %u of %u %u preposts %u %u\n", what, a.got,
		       b.got, a.errors, b.errors, a.next_in, b.next_in, a.allowed, b.allowed, a.remote_credit, b.remote_credit, a.remote_cc,
		       b.remote_cc, a.preposts, b.preposts);
	return is;
}

/* Both ways, with the same outcome. */
static struct accounts either_way(const char *what, void (*before)(void), uint32_t from, uint32_t to, void (*spoil)(struct via_header *header))
{
	struct accounts a, b;

	prepare = before;
	a = taken(ALONE, from, to, spoil);
	b = taken(TOGETHER, from, to, spoil);
	prepare = NULL;
	CHECK(same(what, a, b));
	return b;
}

static struct accounts together(void (*before)(void))
{
	struct accounts a;

	prepare = before;
	a = taken(TOGETHER, N, N, NULL);
	prepare = NULL;
	return a;
}

static void the_same_accounts(void)
{
	struct accounts b = either_way("sound", NULL, N, N, NULL);

	CHECK_EQ(b.got, 1 + N);
	CHECK_EQ(b.errors, 0);
	CHECK_EQ(b.order_errors, 0);
}

static void consumed(struct via_header *h)
{
	h->consumed = (uint8_t)(h->id * 5);
}

static uint32_t ahead; /* handlers that found later packets booked */

static void see_booked(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	(void)data, (void)len;
	ahead += from->next_in - 1u > m->got[A];
}

static void handler_sees_booked(void)
{
	job[B].on_am = see_booked;
}

/* All but those that come alone, and the last of each row. */
static void most_are_booked_together(void)
{
	ahead = 0;
	together(handler_sees_booked);
	CHECK(ahead > N - (in_buffers() ? 12 : 8));
}

/* As seldom as once in 65,536. */
static void numbers_wrap(void)
{
	struct accounts a;

	REQUIRE(open_pair());
	job[A].to[B]->next_out = job[B].to[A]->next_in = 65525;
	send_all(N);
	take_all(TOGETHER);
	a = accounts();
	CHECK_EQ(a.got, 1 + N);
	CHECK_EQ(a.order_errors, 0);
	CHECK_EQ(a.next_in, 65525 + N - 65536);
	fake_brief(0);
	job_turn(10);
	job_close();
}

static int rest; /* what a handler's own progress found, less what was handed over by it */

static void progress_inside(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	uint32_t got = m->got[A];

	(void)from, (void)data, (void)len;
	if (got != 4)
		return;
	rest = cmpi_progress(m->c);
	CHECK(m->got[A] > got);
	rest -= (int)(m->got[A] - got);
}

static void handler_makes_progress(void)
{
	job[B].on_am = progress_inside;
}

static void the_rest_comes_inside(void)
{
	struct accounts a;

	rest = 1;
	a = together(handler_makes_progress);
	CHECK_EQ(rest, 0);
	CHECK_EQ(a.got, 1 + N);
	CHECK_EQ(a.order_errors, 0);
}

static bool pushed; /* sends that waited were gone on with */

static void something_waits(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	static struct via_send send;

	(void)data, (void)len;
	if (m->got[A] == 2)
		from->send_head = &send;
	if (m->got[A] != 4)
		return;
	pushed = from->in_flow;
	from->send_head = NULL;
}

static void handler_lets_something_wait(void)
{
	job[B].on_am = something_waits;
}

/* Credit that comes is looked at one by one while something waits for it. */
static void what_waits_goes_on(void)
{
	pushed = false;
	together(handler_lets_something_wait);
	CHECK(pushed);
}

static void a_sender_that_receives(void)
{
	struct accounts b = either_way("consumed", NULL, 0, N, consumed);

	CHECK_EQ(b.consumed_cc, (uint8_t)((b.next_in - 1) * 5));
}

static bool noticed; /* two packets later, what the first one's handler did */

/* Behind the first one, which comes alone. */
static void looks_fresh(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	(void)data, (void)len;
	if (m->got[A] == 2)
		from->fresh = from->special = true;
	if (m->got[A] == 4)
		noticed = !from->fresh;
}

static void want_more(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	(void)data, (void)len;
	if (m->got[A] == 4)
		noticed = from->preposts == from->base;
	if (m->got[A] != 2)
		return;
	from->base = (uint16_t)(from->base + 20);
	via_flow_limits(from);
}

static void handler_makes_fresh(void)
{
	job[B].on_am = looks_fresh;
}

static void handler_wants_more(void)
{
	job[B].on_am = want_more;
}

/* The next packet is the first of its peer. */
static void the_first_is_noticed(void)
{
	either_way("fresh", handler_makes_fresh, N, N, NULL);
	CHECK(noticed);
}

/* More receives are to be posted than are. */
static void receives_are_replaced(void)
{
	struct accounts b = either_way("more receives", handler_wants_more, N, N, NULL);

	CHECK(noticed);
	CHECK_EQ(b.errors, 0);
}

static void credit(struct via_header *h)
{
	h->vbuf_credit = 255;
}

static void eager(struct via_header *h)
{
	h->type = VIA_PKT_EAGER; /* the envelope is what is in the message */
}

static void wrong_headers(void)
{
	static const struct {
		const char *name;
		void (*spoil)(struct via_header *header);
		uint32_t length; /* spoiled ones */
		bool last;       /* what is behind has the wrong number */
	} bad[] = {{"type", spoil_type, 1, true}, {"other type", spoil_series, 1, false}, {"id", spoil_id, 1, true}, {"noop_ack", spoil_noop_ack, 1, false},
	           {"credit", credit, 10, false}, {"matched ones, some too short", eager, 10, false}};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		for (uint32_t at = 0; at < N - 10; at++) {
			struct accounts b = either_way(bad[i].name, NULL, at, at + bad[i].length, bad[i].spoil);

			CHECK(b.errors == 1 || (bad[i].spoil == eager && b.unexpected == 10));
			CHECK(bad[i].last ? b.got == 1 + at : b.got < 1 + N);
		}
}

static void shorten(void)
{
	fake_shorten(job[A].c->nic, job[B].c->nic, 5, sizeof(struct via_header) - 1);
}

static void shorter_than_a_header(void)
{
	struct accounts b = either_way("short", shorten, N, N, NULL);

	CHECK_EQ(b.got, 1 + 5);
	CHECK_EQ(b.errors, 1);
}

static void allow_seven(void)
{
	job[B].to[A]->local_credit = (uint16_t)(job[B].to[A]->local_credit + job[B].to[A]->granted - 7);
	job[B].to[A]->granted = 7;
	job[B].c->params.notify = job[B].c->params.dynamic = 1000; /* nor is more allowed meanwhile */
}

/* More than was allowed. */
static void beyond_credit(void)
{
	struct accounts b = either_way("beyond credit", allow_seven, N, N, NULL);

	CHECK_EQ(b.got, 1 + 7);
	CHECK_EQ(b.errors, 1);
}

static void break_at_ten(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	(void)data, (void)len;
	if (m->got[A] == 10)
		via_conn_fail(from, "the test said so");
}

static void handler_breaks(void)
{
	job[B].on_am = break_at_ten;
}

/* What had come by then counts. */
static void a_handler_breaks_the_connection(void)
{
	struct accounts b = either_way("a handler breaks it", handler_breaks, N, N, NULL);

	CHECK_EQ(b.got, 1 + N);
	CHECK_EQ(b.errors, 1);
}

/* A row that is full is followed by another one, up to what a pass takes. */
static void rows_fill_a_pass(void)
{
	REQUIRE(open_pair());
	send_all(100);
	job[B].c->budget = 1;
	cmpi_progress(job[B].c);
	CHECK_EQ(job[B].got[A], 1 + 1);
	CHECK_EQ(job[B].c->budget, 2);
	if (in_buffers()) /* each takes as much of a pass as two */
		job[B].c->budget = 64;
	cmpi_progress(job[B].c);
	CHECK_EQ(job[B].got[A], in_buffers() ? 1 + 33 : 1 + 65);
	take_all(TOGETHER);
	CHECK_EQ(job[B].got[A], 1 + 100);
	CHECK_EQ(job[B].order_errors, 0);
	fake_brief(0);
	job_turn(4);
	job_close();
}

/* Long ones behind a short one in a buffer take of a pass what they take alone. */
static void long_ones_end_a_pass(void)
{
	enum { LONG = 32000 };
	static const uint32_t lengths[] = {1100, LONG, LONG, LONG, 1100, LONG, LONG, LONG, LONG, LONG};
	uint32_t got, n = sizeof(lengths) / sizeof(*lengths);

	REQUIRE(open_pair());
	for (uint32_t i = 0; i < n; i++)
		CHECK_EQ(job_send(A, B, i + job[B].got[A], lengths[i]), CMPI_OK);
	for (uint32_t pass = 0; pass < n && job[B].got[A] < 1 + n; pass++) {
		got = job[B].got[A];
		job[B].c->budget = 64;
		cmpi_progress(job[B].c);
		CHECK(job[B].got[A] - got <= 4); /* 32,000 bytes take 32 of 64 */
	}
	CHECK_EQ(job[B].got[A], 1 + n);
	CHECK_EQ(job[B].order_errors, 0);
	fake_brief(0);
	job_turn(4);
	job_close();
}

static void nobody_hears(void)
{
	cmpi_set_am(job[B].c, NULL, NULL);
}

static void nobody_is_there_to_be_told(void)
{
	struct accounts a = together(nobody_hears);

	CHECK_EQ(a.got, 1);
	CHECK_EQ(a.errors, 0);
	CHECK_EQ(a.next_in, 2 + N);
}

static void nobody_is_told_when_closing(void)
{
	REQUIRE(open_pair());
	send_all(N);
	job[B].c->budget = ALONE;
	cmpi_progress(job[B].c);
	CHECK_EQ(job[B].got[A], 1 + 1);
	job_close_one(B);
	CHECK_EQ(job[B].got[A], 1 + 1);
	job_turn(2);
	fake_brief(0);
	job_close();
}

int main(void)
{
	for (length = 8; length < 2000; length += 1100) {
		CASE(the_same_accounts);
		CASE(most_are_booked_together);
		CASE(numbers_wrap);
		CASE(the_rest_comes_inside);
		CASE(what_waits_goes_on);
		CASE(a_sender_that_receives);
		CASE(the_first_is_noticed);
		CASE(receives_are_replaced);
		CASE(wrong_headers);
		CASE(shorter_than_a_header);
		CASE(beyond_credit);
		CASE(a_handler_breaks_the_connection);
		CASE(rows_fill_a_pass);
		CASE(long_ones_end_a_pass);
		CASE(nobody_is_there_to_be_told);
		CASE(nobody_is_told_when_closing);
	}
	return check_done();
}
