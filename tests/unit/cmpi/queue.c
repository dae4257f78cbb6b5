/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posted and unexpected queues of the engine: random operations beside a matcher that walks plain lists, for every kind of
 * wildcard; and that the cost of a match does not depend on how much is queued.
 */
#include <time.h>

#include "cmpi/engine/engine.h"
#include "tests/check.h"

enum { MOST = 4000, CONTEXTS = 3, SOURCES = 5, TAGS = 6 };

/* ---- the plain matcher: lists in order of posting and of arrival ---------------------------------------------------------- */

static struct {
	struct cmpi_req *posted[MOST];
	struct cmpi_message *message[MOST];
	size_t nposted, nmessages;
} plain;

static bool matches(uint32_t context, int32_t source, int32_t tag, const struct cmpi_message *m)
{
	int32_t its = (int32_t)(m->key >> 32);

	return context == (m->key & 0xFFFF) && (source == CMPI_ANY_SOURCE || source == (int32_t)(m->key >> 16 & 0xFFFF)) &&
	       (tag == CMPI_ANY_TAG ? its >= 0 : tag == its);
}

static struct cmpi_req *plain_posted(const struct cmpi_message *m)
{
	for (size_t i = 0; i < plain.nposted; i++)
		if (matches(plain.posted[i]->comm->context, plain.posted[i]->source, plain.posted[i]->tag, m))
			return plain.posted[i];
	return NULL;
}

static struct cmpi_message *plain_message(uint32_t context, int32_t source, int32_t tag)
{
	for (size_t i = 0; i < plain.nmessages; i++)
		if (matches(context, source, tag, plain.message[i]))
			return plain.message[i];
	return NULL;
}

static void forget(void *list, size_t *n, const void *what)
{
	const void **at = list;
	size_t i = 0;

	while (i < *n && at[i] != what)
		i++;
	memmove(&at[i], &at[i + 1], (*n - i - 1) * sizeof(*at));
	--*n;
}

/* ---- random operations ---------------------------------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t below(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static struct mpip_engine engine;
static struct cmpi_comm comm[CONTEXTS];
static struct cmpi_req reqs[MOST];
static struct cmpi_message messages[MOST];
static uint32_t wildness; /* of 100 receives, how many have a wildcard in the tag, or the source */

static struct cmpi_req *free_req(void)
{
	for (int i = 0; i < MOST; i++)
		if (reqs[i].state == MPIP_REQ_DONE)
			return &reqs[i];
	return NULL;
}

static struct cmpi_message *free_message(void)
{
	for (int i = 0; i < MOST; i++)
		if (!messages[i].from)
			return &messages[i];
	return NULL;
}

/* From -3 to TAGS, but never -1. */
static int32_t random_tag(void)
{
	int32_t tag = (int32_t)below(TAGS + 2) - 3;

	return tag >= CMPI_ANY_TAG ? tag + 1 : tag;
}

/* From 0, the last one as high as they get. */
static int32_t random_source(void)
{
	int32_t source = (int32_t)below(SOURCES);

	return source == SOURCES - 1 ? CMPI_RANK_MAX : source;
}

static void ask(int32_t *source, int32_t *tag)
{
	*source = below(100) < wildness ? CMPI_ANY_SOURCE : random_source();
	*tag = below(100) < wildness ? CMPI_ANY_TAG : random_tag();
}

static void receive(void)
{
	struct cmpi_req *req = free_req();
	struct cmpi_message *m, *expect;

	if (!req)
		return;
	req->comm = &comm[below(CONTEXTS)];
	ask(&req->source, &req->tag);
	expect = plain_message(req->comm->context, req->source, req->tag);
	CHECK(mpip_search_unexpected(&engine, mpip_req_key(req), &m));
	CHECK(m == expect);
	if (m) {
		mpip_dequnexpected(&engine, m);
		m->from = NULL;
		forget(plain.message, &plain.nmessages, m);
	} else {
		CHECK(mpip_enqposted(&engine, req));
		plain.posted[plain.nposted++] = req;
	}
}

static void arrive(void)
{
	struct cmpi_message *m = free_message();
	struct cmpi_req *req, *expect;

	if (!m)
		return;
	m->key = comm[below(CONTEXTS)].context;
	m->key |= (uint64_t)random_source() << 16;
	m->key |= (uint64_t)(uint32_t)random_tag() << 32;
	expect = plain_posted(m);
	req = mpip_match_posted(&engine, m->key);
	CHECK(req == expect);
	if (req) {
		req->state = MPIP_REQ_DONE;
		forget(plain.posted, &plain.nposted, req);
	} else {
		m->from = (struct cmpi_proc *)m;
		CHECK(mpip_enqunexpected(&engine, m));
		plain.message[plain.nmessages++] = m;
	}
}

static void cancel(void)
{
	struct cmpi_req *req;

	if (!plain.nposted)
		return;
	req = plain.posted[below((uint32_t)plain.nposted)];
	mpip_deqposted(&engine, req);
	req->state = MPIP_REQ_DONE;
	forget(plain.posted, &plain.nposted, req);
}

/* A probe, or a matched probe, which takes the message. */
static void probe(void)
{
	uint16_t context = comm[below(CONTEXTS)].context;
	struct cmpi_message *m;
	int32_t source, tag;

	ask(&source, &tag);
	CHECK(mpip_search_unexpected(&engine, mpip_key(context, source, tag), &m));
	CHECK(m == plain_message(context, source, tag));
	if (!m || below(2))
		return;
	mpip_dequnexpected(&engine, m);
	m->from = NULL;
	forget(plain.message, &plain.nmessages, m);
}

static void schedule(uint64_t seed)
{
	uint32_t receives = 30 + below(30), cancels = below(8), probes = below(8);

	memset(&plain, 0, sizeof(plain));
	memset(reqs, 0, sizeof(reqs));
	memset(messages, 0, sizeof(messages));
	if (!CHECK(mpip_init(&engine, false)))
		return;
	state = seed * 977 + 1;
	wildness = (uint32_t[]){0, 2, 20, 60}[seed % 4];
	for (int i = 0; i < CONTEXTS; i++)
		comm[i].context = (uint16_t)(i * (CMPI_CONTEXT_MAX / (CONTEXTS - 1)));
	for (int i = 0; i < 3000; i++) {
		uint32_t what = below(100);

		if (i == 1500)
			wildness = 30; /* wildcards from here on: classes that were not kept so far */
		if (what < receives)
			receive();
		else if (what < receives + cancels)
			cancel();
		else if (what < receives + cancels + probes)
			probe();
		else
			arrive();
	}
	CHECK_EQ(engine.nunexpected, plain.nmessages);
	while (plain.nposted)
		cancel();
	CHECK_EQ(engine.wild + engine.nposted[MPIP_EXACT], 0);
	mpip_fini(&engine);
}

static void like_a_plain_matcher(void)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		schedule(seed);
}

/* ---- tags that are used once each must not pile up ---------------------------------------------------------------------------- */

static void bins_are_used_again(void)
{
	struct cmpi_comm one = {.context = 1};
	struct cmpi_req req = {.comm = &one};

	REQUIRE(mpip_init(&engine, false));
	for (int32_t i = 0; i < 1000000; i++) {
		req.source = i % 100;
		req.tag = i;
		mpip_enqposted(&engine, &req);
		if (mpip_match_posted(&engine, mpip_key(1, i % 100, i)) != &req)
			CHECK(false);
	}
	CHECK(engine.nbuckets <= 1024);
	CHECK_EQ(engine.nposted[MPIP_EXACT], 0);
	mpip_fini(&engine);
}

/* ---- the bin that was looked up last may be swept out ------------------------------------------------------------------------ */

enum { EMPTY = 8, OTHERS = 600 };

static struct cmpi_req some[OTHERS];

static bool post(struct cmpi_req *req, struct cmpi_comm *in, int32_t source, int32_t tag)
{
	*req = (struct cmpi_req){.comm = in, .source = source, .tag = tag};
	return mpip_enqposted(&engine, req);
}

static bool gets(const struct cmpi_req *req, int32_t source, int32_t tag)
{
	return mpip_match_posted(&engine, mpip_key(1, source, tag)) == req;
}

/* Some empty bins, of which `last` was looked up last, then so many others, of which one makes room. */
static void swept(int32_t last, int32_t others)
{
	struct cmpi_comm one = {.context = 1};
	struct cmpi_req req;

	REQUIRE(mpip_init(&engine, false));
	for (int32_t i = 1; i <= EMPTY; i++)
		CHECK(post(&req, &one, 1, (last + i) % EMPTY) && gets(&req, 1, (last + i) % EMPTY));
	for (int32_t i = 0; i < others; i++)
		CHECK(post(&some[i], &one, 2, i));
	CHECK(post(&req, &one, 1, last));
	CHECK(gets(&some[0], 2, 0));
	CHECK(gets(&req, 1, last));
	mpip_fini(&engine);
}

static void a_swept_bin_is_not_remembered(void)
{
	for (int32_t others = 1; others <= OTHERS; others++)
		swept(others % EMPTY, others);
}

/* ---- cost ------------------------------------------------------------------------------------------------------------------------ */

/* Of this process's own time: others may have the processor for longer than all of this takes. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct cmpi_comm world = {.context = 3};
enum { DEEP = 100000, ROUNDS = 20000 };

static struct cmpi_req deep[DEEP + 1];
static struct cmpi_message deep_message[DEEP + 1];

/* Seconds to post one more receive and match it, behind n posted ones of other sources and tags. */
static double cost_posted(uint32_t n)
{
	struct cmpi_req *last = &deep[DEEP];
	double best = 1;

	mpip_init(&engine, false);
	for (uint32_t i = 0; i < n; i++) {
		deep[i].comm = &world;
		deep[i].source = (int32_t)(i % 317);
		deep[i].tag = (int32_t)(i / 317);
		mpip_enqposted(&engine, &deep[i]);
	}
	last->comm = &world;
	for (int pass = 0; pass < 5; pass++) {
		double start = now();

		for (int i = 0; i < ROUNDS; i++) {
			last->source = 400;
			last->tag = i % 64;
			mpip_enqposted(&engine, last);
			if (mpip_match_posted(&engine, mpip_key(3, 400, i % 64)) != last)
				CHECK(false);
		}
		best = (now() - start) / ROUNDS < best ? (now() - start) / ROUNDS : best;
	}
	mpip_fini(&engine);
	return best;
}

/* The same for a message behind n unexpected ones. */
static double cost_unexpected(uint32_t n, int32_t source, int32_t tag)
{
	struct cmpi_message *last = &deep_message[DEEP], *m;
	double best = 1;

	mpip_init(&engine, false);
	for (uint32_t i = 0; i < n; i++) {
		deep_message[i] = (struct cmpi_message){.key = mpip_key(3, (int32_t)(i % 317), (int32_t)(i / 317))};
		mpip_enqunexpected(&engine, &deep_message[i]);
	}
	for (int pass = 0; pass < 5; pass++) {
		double start = now();

		for (int i = 0; i < ROUNDS; i++) {
			*last = (struct cmpi_message){.key = mpip_key(3, 400, 777)};
			mpip_enqunexpected(&engine, last);
			mpip_search_unexpected(&engine, mpip_key(3, source, tag), &m);
			if (m != last)
				CHECK(false);
			mpip_dequnexpected(&engine, last);
		}
		best = (now() - start) / ROUNDS < best ? (now() - start) / ROUNDS : best;
	}
	mpip_fini(&engine);
	return best;
}

/* A walk would cost 100,000 times as much; caches may cost some. */
static void flat(const char *what, double one, double many)
{
	printf("# %s: %.0f ns behind 1, %.0f ns behind %d\n", what, one * 1e9, many * 1e9, DEEP);
	CHECK(many < 30 * one + 2e-6);
}

static void cost_does_not_grow(void)
{
	flat("posted", cost_posted(1), cost_posted(DEEP));
	flat("unexpected", cost_unexpected(1, 400, 777), cost_unexpected(DEEP, 400, 777));
	flat("unexpected, any source", cost_unexpected(1, CMPI_ANY_SOURCE, 777), cost_unexpected(DEEP, CMPI_ANY_SOURCE, 777));
	flat("unexpected, any tag", cost_unexpected(1, 400, CMPI_ANY_TAG), cost_unexpected(DEEP, 400, CMPI_ANY_TAG));
}

int main(void)
{
	CASE(like_a_plain_matcher);
	CASE(bins_are_used_again);
	CASE(a_swept_bin_is_not_remembered);
	CASE(cost_does_not_grow);
	return check_done();
}
