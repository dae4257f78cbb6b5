/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress for one receive that is waited for (cmpi_progress_for): its message may go straight to its memory, past the handling of packets.  It must come
 * to the same as cmpi_progress, and where it would not the message has to go the usual way.
 */
#include "cmpi/pm_via/flow.h"
#include "tests/unit/cmpi/job.h"
#include "tests/unit/cmpi/spoil.h"

enum { A, B, C, N = 40, AT = 5, MOST = 3000, TAG = 7, PASSES = 100 };

static struct cmpi_comm world[3] = {{.context = 9, .rank = A}, {.context = 9, .rank = B}, {.context = 9, .rank = C}};
static uint32_t length; /* of the messages, at least: of one cell, of several, or in buffers */
static uint8_t out[MOST], in[N + 1][MOST + 1];
static struct cmpi_req req[N + 1];

static bool open_job(uint32_t n)
{
	job_reset(100);
	if (!job_open(n) || !job_connect(A, B))
		return false;
	fake_brief(100);
	job[B].c->groups_first = false; /* as where the NIC is no other process */
	return true;
}

static struct cmpi_proc *peer(void)
{
	return job[B].to[A];
}

static void fill(uint32_t i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		out[k] = (uint8_t)(i * 31 + k * 7);
}

static bool is_filled(const uint8_t *data, uint32_t i, uint32_t len)
{
	fill(i, len);
	return memcmp(data, out, len) == 0;
}

static uint32_t length_of(uint32_t i)
{
	return length + i % 30;
}

static void say_tagged(uint32_t i, int tag)
{
	fill(i, length_of(i));
	CHECK_EQ(cmpi_send(job[A].c, job[A].to[B], out, length_of(i), tag, &world[A]), CMPI_OK);
}

static void post(uint32_t i, int32_t source, int32_t tag)
{
	memset(in[i], 0xcc, sizeof(in[i]));
	req[i] = (struct cmpi_req){.comm = &world[B], .buf = in[i], .size = MOST, .source = source, .tag = tag};
	CHECK_EQ(cmpi_irecv(job[B].c, &req[i]), CMPI_OK);
}

/* One packet a pass, and the near peer first. */
static int pass(struct cmpi_req *r)
{
	job[B].c->budget = 1;
	if (job[B].c->near && !job[B].c->near_left)
		job[B].c->near_left = 1;
	return r ? cmpi_progress_for(job[B].c, NULL, r) : cmpi_progress(job[B].c);
}

static bool wait_for(uint32_t i, bool named)
{
	for (int n = 0; n < PASSES && !cmpi_is_done(&req[i]); n++)
		pass(named ? &req[i] : NULL);
	return cmpi_is_done(&req[i]);
}

/* The first one comes through the completion queue: then A is the near one. */
static bool meet(void)
{
	say_tagged(N, TAG);
	post(N, A, TAG);
	return CHECK(wait_for(N, false)) && CHECK(job[B].c->near == peer());
}

/* ---- the same accounts --------------------------------------------------------------------------------------------------------- */

struct accounts {
	uint32_t got, errors, next_in, granted, local_credit, remote_credit, remote_cc, consumed_cc, consumed, consumed_units, preposts, packet_no_in;
	uint32_t fresh, special, noops_sent, noops_acked, noops_in, backlog, in_flow, nrecvs, posted, wild, unexpected, done, right, holds;
	struct cmpi_status status;
};

struct outcome {
	struct accounts after[N];
	char error_text[200];
};

static struct accounts accounts(uint32_t i)
{
	const struct cmpi_proc *p = peer();
	const struct mpip_engine *e = &job[B].c->engine;
	uint32_t len = (uint32_t)(req[i].status.length < req[i].size ? req[i].status.length : req[i].size);

	return (struct accounts){job[B].got[A], job[B].errors, p->next_in, p->granted, p->local_credit, p->remote_credit, p->remote_cc, p->consumed_cc,
	                         p->consumed, p->consumed_units, job[B].errors ? 0 : p->preposts, p->packet_no_in, p->fresh, p->special, p->noops_sent,
	                         p->noops_acked, p->noops_in, p->backlog.len, p->in_flow, p->process.nrecvs, e->nposted[MPIP_EXACT], e->wild,
	                         (uint32_t)e->nunexpected, cmpi_is_done(&req[i]),
	                         cmpi_is_done(&req[i]) && len <= MOST && is_filled(in[i], i, len) && in[i][len] == 0xcc,
	                         via_flow_holds(p), req[i].status};
}

static struct {
	uint32_t at, to;
	void (*spoil)(struct via_header *header);
} spoiling;

static void spoil_one(void *arg, const void *packet, size_t len)
{
	struct via_header header;

	(void)arg, (void)len;
	if (spoiling.at++ != spoiling.to)
		return;
	memcpy(&header, packet, sizeof(header));
	spoiling.spoil(&header);
	memcpy((void *)(uintptr_t)packet, &header, sizeof(header));
}

static uint32_t straight; /* messages of the last run that went straight to their memory */
static struct via_send nothing;

/* All is sent before B takes any; before B waits for one of them something is prepared, and undone after it. */
static void run(bool named, void (*before)(void), void (*after)(void), void (*spoil)(struct via_header *header), struct outcome *o)
{
	memset(o, 0, sizeof(*o));
	if (!CHECK(open_job(2)) || !meet())
		return;
	for (uint32_t i = 0; i < N; i++) {
		job_owe(B, A, i % 3);
		say_tagged(i, TAG);
	}
	spoiling.at = 0;
	spoiling.to = AT;
	spoiling.spoil = spoil;
	if (spoil)
		fake_in_flight(job[A].c->nic, job[B].c->nic, spoil_one, NULL);
	fake_expected = 0;
	for (uint32_t i = 0; i < N; i++) {
		post(i, A, TAG);
		if (i == AT && before)
			before();
		wait_for(i, named);
		if (i == AT && after)
			after();
		o->after[i] = accounts(i);
		if (!cmpi_is_done(&req[i]))
			cmpi_cancel(job[B].c, &req[i]);
	}
	straight = fake_expected;
	memcpy(o->error_text, job[B].error_text, sizeof(o->error_text));
	fake_brief(0);
	job_turn(10);
	CHECK_EQ(fake_buffers_owned(), 0);
	job_close();
}

static void differ(const char *what, uint32_t i, const struct accounts *a, const struct accounts *b)
{
	const uint32_t *x = (const uint32_t *)a, *y = (const uint32_t *)b;

	for (uint32_t k = 0; k < sizeof(*a) / sizeof(*x); k++)
		if (x[k] != y[k])
			printf("# %s, message %u, word %u: %u, named %u\n", what, i, k, x[k], y[k]);
}

/* Both ways, with the same outcome after each message. */
static const struct outcome *either_way(const char *what, void (*before)(void), void (*after)(void), void (*spoil)(struct via_header *header))
{
	static struct outcome a, b;

	run(false, before, after, spoil, &a);
	run(true, before, after, spoil, &b);
	for (uint32_t i = 0; i < N; i++)
		if (!CHECK(memcmp(&a.after[i], &b.after[i], sizeof(a.after[i])) == 0)) {
			differ(what, i, &a.after[i], &b.after[i]);
			break;
		}
	CHECK_STR(b.error_text, a.error_text);
	return &b;
}

static bool all_well(const struct outcome *o)
{
	bool good = true;

	for (uint32_t i = 0; i < N; i++)
		good = good && o->after[i].done && o->after[i].right && o->after[i].holds && !o->after[i].errors && o->after[i].status.err == CMPI_OK &&
		       o->after[i].status.source == A && o->after[i].status.tag == TAG && o->after[i].status.length == length_of(i);
	return good;
}

static void the_same_accounts(void)
{
	CHECK(all_well(either_way("sound", NULL, NULL, NULL)));
	CHECK(straight >= N - N / 8); /* every eighth at most with all that there is */
}

/* ---- what the next packet would change besides --------------------------------------------------------------------------------- */

static void make_fresh(void)
{
	peer()->fresh = peer()->special = true;
}

static void want_more(void)
{
	peer()->base = (uint16_t)(peer()->base + 20);
	via_flow_limits(peer());
}

static void let_wait(void)
{
	peer()->send_head = &nothing;
}

static void no_more_waits(void)
{
	peer()->send_head = NULL;
}

static void run_out(void)
{
	struct cmpi_am am;

	CHECK_EQ(cmpi_am_begin(peer(), 8, &am), CMPI_OK);
	peer()->remote_credit = 0;
	memcpy(am.data, &(uint64_t){job[A].got[B]}, 8);
	CHECK_EQ(cmpi_am_commit(&am, 3, 8), CMPI_OK);
	CHECK_EQ(peer()->backlog.len, 1);
}

static void too_much(void)
{
	peer()->remote_credit = VIA_CREDIT_LIMIT - 1;
}

static void allow_none(void)
{
	peer()->local_credit = (uint16_t)(peer()->local_credit + peer()->granted);
	peer()->granted = 0;
	job[B].c->params.notify = job[B].c->params.dynamic = 1000; /* nor is more allowed meanwhile */
}

static void unusual_peers(void)
{
	const struct outcome *o = either_way("fresh", make_fresh, NULL, NULL);

	CHECK(all_well(o));
	CHECK(!o->after[AT].fresh && !o->after[AT].special);
	o = either_way("more receives", want_more, NULL, NULL);
	CHECK(all_well(o));
	CHECK_EQ(o->after[AT].preposts, o->after[AT - 1].preposts + 20);
	o = either_way("a send waits", let_wait, no_more_waits, NULL);
	CHECK(all_well(o));
	CHECK(o->after[AT].in_flow);
	o = either_way("a packet waits", run_out, NULL, NULL);
	CHECK(all_well(o));
	CHECK(o->after[AT].backlog == 0 && o->after[AT].remote_credit == 1);
	o = either_way("credit beyond all", too_much, NULL, NULL);
	CHECK(o->after[AT - 1].right && !o->after[AT].right && o->after[N - 1].errors == 1);
	o = either_way("beyond credit", allow_none, NULL, NULL);
	CHECK(o->after[AT].errors == 1 && !o->after[AT].done && o->after[AT - 1].done);
}

static void active(struct via_header *h)
{
	h->type = VIA_PKT_AM;
}

static void any_tag(struct via_header *h)
{
	h->tag = 99; /* means nothing */
}

static void odd_headers(void)
{
	static const struct {
		const char *name;
		void (*spoil)(struct via_header *header);
		uint32_t errors;
	} odd[] = {{"type", spoil_type, 1}, {"other type", spoil_series, 1}, {"id", spoil_id, 1}, {"noop_ack", spoil_noop_ack, 1}, {"active", active, 0}, {"tag", any_tag, 0}};

	for (unsigned i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		const struct outcome *o = either_way(odd[i].name, NULL, NULL, odd[i].spoil);

		CHECK(o->after[AT - 1].right && o->after[N - 1].errors == odd[i].errors);
		CHECK_EQ(o->after[AT].got, 1 + (odd[i].spoil == active));
		CHECK_EQ(o->after[AT].right, odd[i].spoil == any_tag); /* else it has the next one, or none */
	}
}

/* Both ends say what they have taken, by and by. */
static void noops_are_acknowledged(void)
{
	struct outcome o[2];
	uint32_t sent[2];

	for (int named = 0; named < 2; named++) {
		memset(&o[named], 0, sizeof(o[named]));
		REQUIRE(open_job(2));
		REQUIRE(meet());
		for (uint32_t i = 0; i < 10 * N; i++) {
			job_owe(B, A, i / N % 2 * 3); /* or A alone sends */
			say_tagged(i % N, TAG);
			post(i % N, A, TAG);
			CHECK(wait_for(i % N, named));
			while (cmpi_progress(job[A].c))
				;
			o[named].after[i % N] = accounts(i % N);
		}
		sent[named] = peer()->noops_sent;
		CHECK_EQ(peer()->noops_acked, sent[named]);
		CHECK(peer()->noops_in > 0);
		fake_brief(0);
		job_turn(4);
		job_close();
	}
	CHECK(sent[0] > 2);
	CHECK(memcmp(&o[0], &o[1], sizeof(o[0])) == 0);
}

/* A message in several packets has begun, and the one that is waited for comes between them. */
static void in_a_series(void)
{
	enum { SERIES = 2 * VIA_R3_BYTES, MOST_BUFFERS = 1000 };
	static uint8_t data[SERIES], got[SERIES];
	static void *taken[MOST_BUFFERS];

	memset(data, 0x3c, SERIES);
	for (int named = 0; named < 2; named++) {
		uint32_t n = 0;
		struct cmpi_req send = {.comm = &world[A], .buf = data, .size = SERIES, .tag = TAG + 1};
		struct cmpi_req long_one = {.comm = &world[B], .buf = got, .size = SERIES, .source = A, .tag = TAG + 1};

		REQUIRE(open_job(2));
		REQUIRE(meet());
		memset(got, 0, SERIES);
		job[A].c->params.rendezvous_threshold = SERIES;
		send.to = job[A].to[B];
		while ((taken[n] = VipxTakeBuffer(job[A].c->nic)) != NULL && n < MOST_BUFFERS - 1)
			n++;
		CHECK_EQ(cmpi_isend(job[A].c, &send), CMPI_OK);
		VipxGiveBuffer(job[A].c->nic, taken[--n]); /* it has no other look yet */
		say_tagged(0, TAG);
		post(0, A, TAG);
		CHECK(wait_for(0, named));
		CHECK(peer()->eager && !cmpi_is_done(&send));
		CHECK(is_filled(in[0], 0, length_of(0)));
		while (n)
			VipxGiveBuffer(job[A].c->nic, taken[--n]);
		CHECK_EQ(cmpi_irecv(job[B].c, &long_one), CMPI_OK);
		fake_brief(0);
		job_turn(20);
		CHECK(cmpi_is_done(&send) && cmpi_is_done(&long_one));
		CHECK(!peer()->eager && memcmp(data, got, SERIES) == 0);
		CHECK_EQ(job[B].errors, 0);
		job_close();
	}
}

/* ---- whose message it is ------------------------------------------------------------------------------------------------------------ */

static void other_tags_first(void)
{
	for (int named = 0; named < 2; named++) {
		REQUIRE(open_job(2));
		REQUIRE(meet());
		for (uint32_t i = 0; i < 3; i++)
			say_tagged(i, TAG + 1);
		say_tagged(3, TAG);
		post(3, A, TAG);
		CHECK(wait_for(3, named));
		CHECK_EQ(job[B].c->engine.nunexpected, 3);
		for (uint32_t i = 0; i < 3; i++) {
			post(i, A, TAG + 1);
			CHECK(cmpi_is_done(&req[i]));
		}
		for (uint32_t i = 0; i < 4; i++)
			CHECK(is_filled(in[i], i, length_of(i)) && req[i].status.tag == (i < 3 ? TAG + 1 : TAG));
		fake_brief(0);
		job_turn(4);
		job_close();
	}
}

/* An older receive that matches has the first message, and the one that is waited for the second; of whatever class it is, and also if it was posted later. */
static void an_older_receive(int32_t source, int32_t tag)
{
	for (int named = 0; named < 2; named++) {
		REQUIRE(open_job(2));
		REQUIRE(meet());
		say_tagged(0, TAG);
		say_tagged(1, TAG);
		say_tagged(2, TAG);
		post(0, source, tag);
		post(1, A, TAG);
		post(2, source, tag);
		CHECK(wait_for(1, named));
		CHECK(cmpi_is_done(&req[0]) && !cmpi_is_done(&req[2]));
		CHECK(wait_for(2, named));
		for (uint32_t i = 0; i < 3; i++) {
			CHECK(is_filled(in[i], i, length_of(i)) && in[i][length_of(i)] == 0xcc);
			CHECK(req[i].status.source == A && req[i].status.tag == TAG && req[i].status.length == length_of(i));
		}
		CHECK_EQ(job[B].c->engine.wild, 0);
		CHECK_EQ(job[B].c->engine.nposted[MPIP_EXACT], 0);
		CHECK_EQ(world[B].nrcvany, 0);
		fake_brief(0);
		job_turn(4);
		job_close();
	}
}

static void older_receives(void)
{
	an_older_receive(A, TAG);
	an_older_receive(A, CMPI_ANY_TAG);
	an_older_receive(CMPI_ANY_SOURCE, TAG);
	an_older_receive(CMPI_ANY_SOURCE, CMPI_ANY_TAG);
}

/* The module is told of it, and again when it is over. */
static void receives_that_name_their_peer(void)
{
	for (int named = 0; named < 2; named++) {
		REQUIRE(open_job(2));
		REQUIRE(meet());
		say_tagged(0, TAG);
		req[0] = (struct cmpi_req){.comm = &world[B], .buf = in[0], .size = MOST, .source = A, .tag = TAG, .to = peer()};
		CHECK_EQ(cmpi_irecv(job[B].c, &req[0]), CMPI_OK);
		CHECK_EQ(peer()->process.nrecvs, 1);
		CHECK(wait_for(0, named));
		CHECK_EQ(peer()->process.nrecvs, 0);
		CHECK(is_filled(in[0], 0, length_of(0)));
		job_close();
	}
}

static int told;

static void done(struct cmpi_req *r)
{
	CHECK(cmpi_is_done(r) && r->status.length == length_of(0));
	told++;
	memset(r, 0x77, sizeof(*r)); /* its memory is the caller's again */
}

static void a_receive_that_tells(void)
{
	REQUIRE(open_job(2));
	REQUIRE(meet());
	told = 0;
	say_tagged(0, TAG);
	req[0] = (struct cmpi_req){.comm = &world[B], .buf = in[0], .size = MOST, .source = A, .tag = TAG, .done = done};
	CHECK_EQ(cmpi_irecv(job[B].c, &req[0]), CMPI_OK);
	for (int n = 0; n < PASSES && !told; n++)
		pass(&req[0]);
	CHECK_EQ(told, 1);
	CHECK(is_filled(in[0], 0, length_of(0)));
	CHECK(via_flow_holds(peer()));
	job_close();
}

/* One that has its message, and is in no queue, or never was. */
static void a_receive_that_is_matched(void)
{
	enum { LONG = 200000 };
	static uint8_t data[LONG], to[LONG];
	struct cmpi_req send = {.comm = &world[A], .buf = data, .size = LONG, .tag = TAG};

	REQUIRE(open_job(2));
	REQUIRE(meet());
	memset(data, 0x33, sizeof(data));
	send.to = job[A].to[B];
	CHECK_EQ(cmpi_isend(job[A].c, &send), CMPI_OK);
	job_turn(2);
	CHECK_EQ(job[B].c->engine.nunexpected, 1);
	fake_hold(job[B].c->nic, NULL, true);
	req[0] = (struct cmpi_req){.comm = &world[B], .buf = to, .size = LONG, .source = A, .tag = TAG};
	CHECK_EQ(cmpi_irecv(job[B].c, &req[0]), CMPI_OK);
	CHECK(!req[0].bin);
	say_tagged(1, TAG);
	CHECK_EQ(via_eager_expected(peer(), &req[0], 1), CMPI_PARAMETER);
	fake_hold(job[B].c->nic, NULL, false);
	for (int n = 0; n < PASSES && !cmpi_is_done(&req[0]); n++) {
		fake_run();
		cmpi_progress_for(job[B].c, NULL, &req[0]);
		cmpi_progress(job[A].c);
	}
	CHECK(cmpi_is_done(&req[0]) && req[0].status.length == LONG && memcmp(to, data, LONG) == 0);
	post(1, A, TAG);
	CHECK(wait_for(1, true));
	CHECK(is_filled(in[1], 1, length_of(1)));
	job_turn(4);
	job_close();
}

/* A message that is longer than its receive is cut off; one that just fits is not. */
static void cut_off(void)
{
	for (int named = 0; named < 2; named++)
		for (uint32_t less = 0; less < 3; less++) {
			uint32_t room = length_of(0) - less;

			REQUIRE(open_job(2));
			REQUIRE(meet());
			fake_expected = 0;
			say_tagged(0, TAG);
			say_tagged(1, TAG);
			memset(in[0], 0xcc, sizeof(in[0]));
			req[0] = (struct cmpi_req){.comm = &world[B], .buf = in[0], .size = room, .source = A, .tag = TAG};
			CHECK_EQ(cmpi_irecv(job[B].c, &req[0]), CMPI_OK);
			CHECK(wait_for(0, named));
			CHECK_EQ(fake_expected, named && !less);
			CHECK_EQ(req[0].status.err, less ? CMPI_TRUNCATED : CMPI_OK);
			CHECK_EQ(req[0].status.length, length_of(0));
			CHECK(is_filled(in[0], 0, room) && in[0][room] == 0xcc);
			post(1, A, TAG);
			req[1].size = (uint64_t)1 << 32 | 1; /* more than 32 bits have room for */
			CHECK(wait_for(1, named));
			CHECK_EQ(fake_expected, named * (1 + !less));
			CHECK(req[1].status.err == CMPI_OK && is_filled(in[1], 1, length_of(1)));
			job_close();
		}
}

/* ---- when it is not the way ----------------------------------------------------------------------------------------------------------- */

static struct via_recv *nobody(void *arg, struct cmpi_proc *proc, const struct via_envelope *envelope, struct via_incoming *message)
{
	(void)arg, (void)proc, (void)envelope, (void)message;
	return NULL;
}

/* Each of these alone; and when it is over, the message is still there. */
static void not_the_way(void)
{
	static const struct via_engine engine = {.arrived = nobody};
	struct cmpi_proc *p;
	struct cmpi_proc kept;

	REQUIRE(open_job(2));
	REQUIRE(meet());
	p = peer();
	job_owe(B, A, 2);
	say_tagged(0, TAG);
	post(0, A, TAG);
	fake_expected = 0;
	kept = *p;
#define NOT_WHEN(err, set, undo)                                                              \
	do {                                                                                  \
		set;                                                                          \
		CHECK(via_eager_expected(p, &req[0], 1) == (err) && !fake_expected);          \
		CHECK(!cmpi_is_done(&req[0]));                                                \
		undo;                                                                         \
		CHECK(memcmp(&kept, p, sizeof(kept)) == 0);                                   \
	} while (0)
	NOT_WHEN(CMPI_PARAMETER, p->state = VIA_CONN_CLOSING, p->state = VIA_CONN_CONNECTED);
	NOT_WHEN(CMPI_PARAMETER, p->state = VIA_CONN_BREAKING, p->state = VIA_CONN_CONNECTED);
	NOT_WHEN(CMPI_PARAMETER, p->special = true, p->special = false);
	NOT_WHEN(CMPI_PARAMETER, p->send_head = &nothing, p->send_head = NULL);
	NOT_WHEN(CMPI_PARAMETER, job[B].c->closing = true, job[B].c->closing = false);
	NOT_WHEN(CMPI_PARAMETER, p->granted = 0, p->granted = kept.granted);
	NOT_WHEN(CMPI_PARAMETER, p->replace_below = (uint16_t)(p->preposts + 1), p->replace_below = kept.replace_below);
	NOT_WHEN(CMPI_PARAMETER, p->remote_credit = 0, p->remote_credit = kept.remote_credit);
	NOT_WHEN(CMPI_PARAMETER, p->remote_credit = VIA_CREDIT_LIMIT - VIA_CREDIT_BYTE, p->remote_credit = kept.remote_credit);
	NOT_WHEN(CMPI_PARAMETER, via_match_engine(job[B].c, &engine), via_match_engine(job[B].c, NULL));
	NOT_WHEN(CMPI_AGAIN, p->next_in++, p->next_in--);
	NOT_WHEN(CMPI_AGAIN, p->noops_acked++, p->noops_acked--);
	NOT_WHEN(CMPI_AGAIN, req[0].size = length_of(0) - 1, req[0].size = MOST);
	NOT_WHEN(CMPI_PARAMETER, post(1, CMPI_ANY_SOURCE, CMPI_ANY_TAG), cmpi_cancel(job[B].c, &req[1]));
	NOT_WHEN(CMPI_AGAIN, fake_hold(job[A].c->nic, NULL, true), fake_hold(job[A].c->nic, NULL, false));
#undef NOT_WHEN
	CHECK_EQ(via_eager_expected(p, &req[0], 1), CMPI_OK);
	CHECK_EQ(fake_expected, 1);
	CHECK(cmpi_is_done(&req[0]) && is_filled(in[0], 0, length_of(0)));
	CHECK_EQ(p->remote_credit, kept.remote_credit + 2);
	job_close();
}

/* It is something that was found, and who sent it is looked at the longer the next time, up to a bound. */
static void counts_as_found(void)
{
	REQUIRE(open_job(2));
	REQUIRE(meet());
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t trust = job[B].c->near_trust;

		say_tagged(i, TAG);
		post(i, A, TAG);
		job[B].c->near_left = 8;
		fake_expected = 0;
		CHECK_EQ(cmpi_progress_for(job[B].c, NULL, &req[i]), 1);
		CHECK_EQ(fake_expected, 1);
		CHECK_EQ(job[B].c->near_trust, trust < 7 ? trust + 1 : 7);
	}
	job_close();
}

/* Who is to send it is looked at, whoever sent last; an odd one out is not kept waiting. */
static void the_sender_is_looked_at(void)
{
	REQUIRE(open_job(3));
	fake_brief(0);
	REQUIRE(job_connect(C, B));
	fake_brief(100);
	REQUIRE(meet());
	for (int named = 0; named < 2; named++) {
		job[B].c->near = job[B].to[C];
		job[B].c->near_trust = 7;
		job[B].c->near_left = 8;
		fake_expected = 0;
		say_tagged(0, TAG);
		post(0, A, TAG);
		CHECK(cmpi_progress_for(job[B].c, named ? peer() : NULL, &req[0]) > 0 || !named);
		CHECK_EQ(fake_expected, named);
		for (int n = 0; n < PASSES && !cmpi_is_done(&req[0]); n++)
			cmpi_progress_for(job[B].c, NULL, &req[0]);
		CHECK(cmpi_is_done(&req[0]) && is_filled(in[0], 0, length_of(0)));
		CHECK(job[B].c->near == peer());
		CHECK(!named || job[B].c->near_trust == 1);
	}
	fake_brief(0);
	job_turn(4);
	job_close();
}

/* Nor where what comes between two looks matters, or something comes first. */
static void not_the_way_of_all(void)
{
	REQUIRE(open_job(2));
	REQUIRE(meet());
	fake_expected = 0;
	for (uint32_t i = 0; i < 4; i++) {
		say_tagged(i, TAG);
		post(i, A, TAG);
		job[B].c->near_left = i == 3 ? 0 : 8;
		job[B].c->crowded = fake_crowded = i == 0;
		job[B].c->engine.threads = i == 1;
		job[B].c->groups_first = i == 2;
		for (int n = 0; n < PASSES && !cmpi_is_done(&req[i]); n++)
			cmpi_progress_for(job[B].c, NULL, &req[i]);
		CHECK(cmpi_is_done(&req[i]) && is_filled(in[i], i, length_of(i)));
		CHECK_EQ(fake_expected, 0);
		job[B].c->crowded = fake_crowded = false;
		job[B].c->engine.threads = false;
		job[B].c->groups_first = false;
	}
	job[B].c->near = NULL;
	say_tagged(4, TAG);
	post(4, A, TAG);
	CHECK(cmpi_progress_for(job[B].c, NULL, &req[4]) > 0);
	CHECK(cmpi_is_done(&req[4]));
	/* Who waits where cores are short rests. */
	post(5, A, TAG);
	job[B].c->crowded = fake_crowded = true;
	fake_rests = 0;
	for (int n = 0; n < 3 * PASSES; n++)
		CHECK_EQ(cmpi_progress_for(job[B].c, NULL, &req[5]), 0);
	CHECK(fake_rests > 0);
	job[B].c->crowded = fake_crowded = false;
	cmpi_cancel(job[B].c, &req[5]);
	job_close();
}

/* In a handler the rest of its row comes first. */
static uint32_t got_when_done;

static void wait_inside(struct member *m, struct cmpi_proc *from, void *data, size_t len)
{
	(void)from, (void)data, (void)len;
	if (m->got[A] != 4)
		return;
	for (int n = 0; n < PASSES && !cmpi_is_done(&req[0]); n++)
		cmpi_progress_for(m->c, NULL, &req[0]);
	got_when_done = m->got[A];
}

static void behind_the_rest_of_a_row(void)
{
	enum { ROW = 17 }; /* one alone, then 16 */

	REQUIRE(open_job(2));
	REQUIRE(meet());
	job[B].on_am = wait_inside;
	got_when_done = 0;
	for (uint32_t i = 0; i < ROW; i++)
		CHECK_EQ(job_send(A, B, 1 + i, 16), CMPI_OK);
	say_tagged(0, TAG);
	post(0, A, TAG);
	job[B].c->budget = 64;
	job[B].c->near_left = 8;
	CHECK(cmpi_progress(job[B].c) > 0);
	CHECK(cmpi_is_done(&req[0]) && is_filled(in[0], 0, length_of(0)));
	CHECK_EQ(got_when_done, 1 + ROW);
	CHECK_EQ(job[B].order_errors, 0);
	job_close();
}

/* Whoever else has sent something is heard, however many messages are there when they are waited for. */
static void others_are_heard(void)
{
	for (int named = 0; named < 2; named++) {
		uint32_t i;

		REQUIRE(open_job(3));
		fake_brief(0);
		REQUIRE(job_connect(C, B));
		fake_brief(100);
		REQUIRE(meet());
		CHECK_EQ(job_send(C, B, job[B].got[C], 8), CMPI_OK);
		for (i = 0; i < 10 * N && job[B].got[C] == 1; i++) {
			say_tagged(i % N, TAG);
			post(i % N, A, TAG);
			for (int n = 0; n < PASSES && !cmpi_is_done(&req[i % N]); n++)
				named ? cmpi_progress_for(job[B].c, NULL, &req[i % N]) : cmpi_progress(job[B].c);
			CHECK(cmpi_is_done(&req[i % N]));
			while (cmpi_progress(job[A].c))
				;
		}
		CHECK_EQ(job[B].got[C], 2);
		fake_brief(0);
		job_turn(4);
		job_close();
	}
}

/* And so are they when it does not come; what is passed is told to the caller. */
static void nothing_comes(void)
{
	REQUIRE(open_job(3));
	fake_brief(0);
	REQUIRE(job_connect(C, B));
	fake_brief(100);
	REQUIRE(meet());
	post(0, A, TAG);
	for (uint32_t n = 0; n < 20; n++) {
		CHECK_EQ(cmpi_progress_for(job[B].c, NULL, &req[0]), 0);
		CHECK_EQ(job_send(C, B, job[B].got[C], 8), CMPI_OK);
		CHECK(cmpi_progress_for(job[B].c, NULL, &req[0]) > 0);
		CHECK_EQ(job[B].got[C], 2 + n);
	}
	CHECK_EQ(job[B].order_errors, 0);
	cmpi_cancel(job[B].c, &req[0]);
	fake_brief(0);
	job_turn(4);
	job_close();
}

/* The peer dies, or what it sends is broken, while its message is waited for. */
static void the_peer_is_lost(void)
{
	for (int named = 0; named < 2; named++) {
		REQUIRE(open_job(2));
		REQUIRE(meet());
		say_tagged(0, TAG);
		post(0, A, TAG);
		CHECK(wait_for(0, named));
		post(1, A, TAG);
		pass(named ? &req[1] : NULL);
		fake_kill(job[A].c->nic);
		for (int n = 0; n < 10 * PASSES && !job[B].errors; n++) {
			fake_run();
			pass(named ? &req[1] : NULL);
		}
		CHECK_EQ(job[B].errors, 1);
		CHECK(job[B].error_proc == peer());
		for (int n = 0; n < PASSES; n++)
			pass(named ? &req[1] : NULL);
		CHECK_EQ(peer()->state, VIA_CONN_LOST);
		if (!cmpi_is_done(&req[1]))
			cmpi_cancel(job[B].c, &req[1]);
		job_close_one(B);
		job_close_one(A);
	}
}

int main(void)
{
	static const uint32_t lengths[] = {0, 60, 1500};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		length = lengths[i] + 3;
		CASE(the_same_accounts);
		CASE(unusual_peers);
		CASE(odd_headers);
		CASE(noops_are_acknowledged);
		CASE(other_tags_first);
		CASE(older_receives);
		CASE(receives_that_name_their_peer);
		CASE(a_receive_that_tells);
		CASE(a_receive_that_is_matched);
		CASE(cut_off);
		CASE(not_the_way);
		CASE(counts_as_found);
		CASE(the_sender_is_looked_at);
		CASE(not_the_way_of_all);
		CASE(behind_the_rest_of_a_row);
		CASE(nothing_comes);
		CASE(others_are_heard);
		CASE(the_peer_is_lost);
	}
	CASE(in_a_series);
	return check_done();
}
