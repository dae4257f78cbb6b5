/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, gets and atomics: contents, splitting, rights, limits, the process itself as a peer.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B, SIZE = 200000, ANY = CMPI_ACCESS_REMOTE_READ | CMPI_ACCESS_REMOTE_WRITE | CMPI_ACCESS_REMOTE_ATOMIC };

static uint8_t here[SIZE + 16], there[SIZE + 16];
static struct cmpi_reg *reg_here, *reg_there, *reg_read;
static int result, calls;

static void done(void *arg, int err)
{
	(void)arg;
	result = err;
	calls++;
}

static bool open_of(uint32_t n, uint32_t instant)
{
	job_reset(instant);
	calls = 0;
	return job_open(n) && job_connect(A, B) &&
	       cmpi_mem_register(job[A].c, here, SIZE, CMPI_ACCESS_LOCAL, &reg_here) == CMPI_OK &&
	       cmpi_mem_register(job[B].c, there, SIZE, CMPI_ACCESS_REMOTE_WRITE | CMPI_ACCESS_REMOTE_ATOMIC, &reg_there) == CMPI_OK &&
	       cmpi_mem_register(job[B].c, there, SIZE, CMPI_ACCESS_REMOTE_READ, &reg_read) == CMPI_OK;
}

static bool open_pair(uint32_t instant)
{
	return open_of(2, instant);
}

static void close_pair(void)
{
	cmpi_mem_deregister(job[A].c, reg_here);
	cmpi_mem_deregister(job[B].c, reg_there);
	cmpi_mem_deregister(job[B].c, reg_read);
	job_close();
}

static void fill(uint8_t *at, uint32_t salt)
{
	for (uint32_t i = 0; i < SIZE + 16; i++)
		at[i] = (uint8_t)(salt + i + (i >> 8) * 5);
}

/* The fake NIC moves at most 10,000 bytes a descriptor. */
static void contents(void)
{
	static const uint32_t len[] = {1, 7, 8, 100, 4096, 9999, 10000, 10001, 20000, SIZE - 3};

	for (uint32_t instant = 0; instant <= 100; instant += 50) {
		REQUIRE(open_pair(instant));
		for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			calls = 0;
			fill(here, (uint32_t)i);
			fill(there, 99);
			CHECK_EQ(cmpi_put(job[A].to[B], here + 1, i % 2 ? reg_here : NULL, (uintptr_t)there + 2, &reg_there->key, len[i],
			                  done, NULL),
			         CMPI_OK);
			job_turn(3);
			CHECK_EQ(calls, 1);
			CHECK_EQ(result, CMPI_OK);
			CHECK(!memcmp(here + 1, there + 2, len[i]));
			CHECK_EQ(there[1], (uint8_t)100);
			fill(there, 3);
			CHECK_EQ(cmpi_get(job[A].to[B], here + 3, i % 2 ? NULL : reg_here, (uintptr_t)there, &reg_read->key, len[i], done,
			                  NULL),
			         CMPI_OK);
			job_turn(3);
			CHECK_EQ(calls, 2);
			CHECK(!memcmp(here + 3, there, len[i]));
		}
		CHECK_EQ(job_count(A, "cmpi_puts"), 10);
		CHECK(job_count(A, "cmpi_get_bytes") > SIZE);
		close_pair();
	}
}

/* What is complete at once is told at once. */
static void done_inside_the_call(void)
{
	REQUIRE(open_pair(100));
	CHECK_EQ(cmpi_put(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_there->key, SIZE, done, NULL), CMPI_OK);
	CHECK_EQ(calls, 1);
	CHECK_EQ(cmpi_put(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_there->key, 0, done, NULL), CMPI_OK);
	CHECK_EQ(calls, 2);
	CHECK_EQ(cmpi_put(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_there->key, 9, NULL, NULL), CMPI_OK);
	CHECK_EQ(job[A].to[B]->rma_ops, 0);
	CHECK_EQ(cmpi_rdma_max(job[A].c), 10000);
	CHECK(cmpi_rather_sent(job[A].to[B], here, 99)); /* as the provider says */
	CHECK(!cmpi_rather_sent(job[A].to[B], here, 100));
	close_pair();
}

/* In the NIC's command: all of it or nothing, and nothing that would pass by what is queued. */
static void in_the_command(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;
	struct cmpi_key key;

	REQUIRE(open_pair(0));
	b = job[A].to[B];
	fill(here, 5);
	fill(there, 6);
	fake_brief(100);
	CHECK_EQ(cmpi_put_now(b, here + 1, reg_here, at + 2, &reg_there->key, 5000), CMPI_OK);
	CHECK(!memcmp(here + 1, there + 2, 5000));
	CHECK_EQ(there[1], 7);
	CHECK_EQ(cmpi_get_now(b, here, reg_here, at + 7000, &reg_read->key, 10000), CMPI_OK);
	CHECK(!memcmp(here, there + 7000, 10000));
	CHECK_EQ(cmpi_put_now(b, here, NULL, at, &reg_there->key, 77), CMPI_OK); /* registered, as the cache knows */
	CHECK(!memcmp(here, there, 77));
	CHECK_EQ(job_count(A, "cmpi_puts"), 2);
	CHECK_EQ(job_count(A, "cmpi_put_bytes"), 5077);
	CHECK_EQ(job_count(A, "cmpi_gets"), 1);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at + 1, &reg_there->key, SIZE), CMPI_AGAIN); /* out of range, there and here */
	CHECK_EQ(cmpi_put_now(b, here + SIZE - 8, reg_here, at, &reg_there->key, 9), CMPI_AGAIN);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_read->key, 8), CMPI_AGAIN); /* no right to it */
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 10001), CMPI_AGAIN); /* takes two descriptors */
	CHECK_EQ(cmpi_put_now(b, &key, NULL, at, &reg_there->key, 16), CMPI_AGAIN);        /* not registered */
	CHECK_EQ(cmpi_put_now(job[B].to[B], here, NULL, at, &reg_there->key, 8), CMPI_AGAIN); /* a process itself has no VI */
	key = reg_there->key;
	key.handle = reg_read->key.handle; /* a right that the key only claims: for the descriptor to be told */
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &key, 32), CMPI_AGAIN);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 8), CMPI_OK);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	fake_brief(0);
	close_pair();
}

/* Posted: nobody is told; what cannot go so is left to a descriptor. */
static void posted(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;
	struct cmpi_key key;

	REQUIRE(open_pair(0));
	b = job[A].to[B];
	fill(here, 5);
	fill(there, 6);
	CHECK_EQ(cmpi_put_post(b, here, at, &reg_there->key, 100), CMPI_AGAIN); /* the NIC does not do it now */
	CHECK(!cmpi_posted(job[A].c));
	fake_brief(100);
	CHECK_EQ(cmpi_put_post(b, here + 1, at + 2, &reg_there->key, 8192), CMPI_OK);
	CHECK(!memcmp(here + 1, there + 2, 8192));
	CHECK_EQ(there[1], 7);
	CHECK(!cmpi_posted(job[A].c));
	CHECK_EQ(job_count(A, "cmpi_puts"), 1);
	CHECK_EQ(job_count(A, "cmpi_put_bytes"), 8192);
	CHECK_EQ(cmpi_put_post(b, here, at, &reg_there->key, 8193), CMPI_AGAIN);
	CHECK_EQ(cmpi_put_post(b, here, at, &reg_there->key, 0), CMPI_AGAIN);
	CHECK_EQ(cmpi_put_post(b, here, at + SIZE - 8, &reg_there->key, 9), CMPI_AGAIN);
	CHECK_EQ(cmpi_put_post(b, here, at, &reg_read->key, 8), CMPI_AGAIN);
	CHECK_EQ(cmpi_put_post(job[B].to[B], here, at, &reg_there->key, 8), CMPI_AGAIN);
	key = reg_there->key;
	key.handle = reg_read->key.handle;
	CHECK_EQ(cmpi_put_post(b, here, at, &key, 32), CMPI_AGAIN);
	fake_brief(0);
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &reg_there->key, 100, done, NULL), CMPI_OK);
	fake_brief(100);
	CHECK_EQ(cmpi_put_post(b, here, at, &reg_there->key, 8), CMPI_AGAIN); /* one is under way */
	job_turn(4);
	CHECK_EQ(cmpi_put_post(b, here, at, &reg_there->key, 8), CMPI_OK);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	fake_brief(0);
	close_pair();
}

static int ended[100]; /* of each get, how often */

static void get_done(void *arg, int err)
{
	CHECK_EQ(err, CMPI_OK);
	CHECK(!memcmp(here + 64 * (uintptr_t)arg, there + 64 * (uintptr_t)arg, 33)); /* they have come */
	ended[(uintptr_t)arg]++;
}

static int how[100]; /* the last time */

static void get_told(void *arg, int err)
{
	how[(uintptr_t)arg] = err;
	ended[(uintptr_t)arg]++;
}

static int all_ended(int n, int times)
{
	int i = 0;

	while (i < n && ended[i] == times)
		i++;
	return i;
}

/* Gets that the NIC does by value: each is told of once, when its data have come, and not before; the others, in between, as well. */
static void fetched(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;

	REQUIRE(open_pair(0));
	b = job[A].to[B];
	memset(ended, 0, sizeof(ended));
	fill(here, 5);
	fill(there, 6);
	for (uintptr_t i = 0; i < 100; i++) {
		int err;

		fake_brief(i < 50 ? 100 : 0); /* of a hundred, by value */
		err = cmpi_get(b, here + 64 * i, NULL, at + 64 * i, &reg_read->key, 33, get_done, (void *)i);
		CHECK_EQ(err, CMPI_OK);
	}
	CHECK(b->fetch_head && b->sends_posted);
	for (int turns = 0; turns < 2000 && all_ended(100, 1) < 100; turns++)
		job_turn(1);
	CHECK_EQ(all_ended(100, 1), 100);
	CHECK(!b->fetch_head && !b->rma_ops);
	CHECK_EQ(job_count(A, "cmpi_gets"), 100);
	CHECK_EQ(job_count(A, "cmpi_get_bytes"), 3300);
	/* Long, or out of range, or without a right: not so. */
	fake_brief(100);
	CHECK_EQ(cmpi_get(b, here, reg_here, at, &reg_read->key, VIPX_FETCH_MAX + 1, get_done, NULL), CMPI_OK);
	CHECK(!b->fetch_head);
	CHECK_EQ(cmpi_get(b, here, reg_here, at + SIZE - 8, &reg_read->key, 9, get_done, NULL), CMPI_PROTECTION);
	job_turn(4);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	fake_brief(0);
	close_pair();
}

static int get_some(struct cmpi_proc *b, int n)
{
	for (uintptr_t i = 0; i < (uintptr_t)n; i++)
		CHECK_EQ(cmpi_get(b, here + 64 * i, NULL, (uintptr_t)there + 64 * i, &reg_read->key, 33, get_done, (void *)i), CMPI_OK);
	return n;
}

/* Who lets go of a peer does so behind them; those of the next connection are counted from the beginning. */
static void fetched_before_it_leaves(void)
{
	struct cmpi_proc *b, *again;
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;

	REQUIRE(open_pair(0));
	b = job[A].to[B];
	cmpi_address(job[B].c, blob, &len);
	memset(ended, 0, sizeof(ended));
	for (int times = 1; times <= 2; times++) {
		fake_brief(100);
		fill(here, 5);
		fill(there, (uint8_t)(6 + times));
		CHECK_EQ(b->state, VIA_CONN_CONNECTED);
		CHECK_EQ(get_some(b, 50), 50);
		CHECK(b->fetch_head != NULL);
		cmpi_proc_put(job[A].c, b);
		for (int turns = 0; turns < 2000 && b->state != VIA_CONN_CLOSED; turns++)
			job_turn(1);
		CHECK_EQ(b->state, VIA_CONN_CLOSED);
		CHECK_EQ(all_ended(50, times), 50);
		job_turn(10);
		CHECK_EQ(cmpi_proc_get(job[A].c, blob, len, NULL, &again), CMPI_OK);
		CHECK(again == b);
		job_send(A, B, 0, 8); /* connects */
		job_turn(40);
	}
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	fake_brief(0);
	close_pair();
}

/* When the connection is lost, with some of them on their way, each is told of once. */
static void lost_with_fetches(bool refused)
{
	static uint8_t theirs[4096];
	struct cmpi_reg *reg;
	struct cmpi_proc *b;
	int good;

	REQUIRE(open_pair(0));
	b = job[A].to[B];
	CHECK_EQ(cmpi_mem_register(job[B].c, theirs, sizeof(theirs), CMPI_ACCESS_REMOTE_READ, &reg), CMPI_OK);
	memset(ended, 0, sizeof(ended));
	fake_brief(100);
	for (uintptr_t i = 0; i < 50; i++)
		CHECK_EQ(cmpi_get(b, here + 64 * i, NULL, (uintptr_t)theirs + 64 * i, &reg->key, 33, get_told, (void *)i), CMPI_OK);
	CHECK(b->fetch_head != NULL);
	job[B].c->params.lazy_deregister = !refused;
	cmpi_mem_deregister(job[B].c, reg);
	for (int looks = 0; refused && looks < 100; looks++)
		cmpi_progress(job[A].c);
	good = all_ended(50, 1);
	for (int looks = 0; !refused && looks < 20; looks++)
		good = (int)VipxFetched(b->vi, NULL); /* ended, and nobody has been told yet */
	CHECK(b->fetch_head && good < 50 && (refused || good > 0));
	via_lock(job[A].c);
	via_conn_down(b, VIA_CONN_LOST);
	via_unlock(job[A].c);
	CHECK(!b->fetch_head && !b->rma_ops);
	cmpi_progress(job[A].c);
	CHECK_EQ(all_ended(50, 1), 50);
	for (int i = 0; i < 50; i++)
		CHECK_EQ(how[i], i < good ? CMPI_OK : refused && i == good ? CMPI_PROTECTION : CMPI_TRANSPORT);
	fake_brief(0);
	close_pair();
}

static void fetched_in_vain(void)
{
	lost_with_fetches(false);
	lost_with_fetches(true);
}

/* What the NIC did not do in the command goes by descriptor, and so do others as long, until one of them is over within the call. */
static void lengths_by_descriptor(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;

	REQUIRE(open_pair(0));
	b = job[A].to[B];
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 100), CMPI_AGAIN);
	fake_brief(100);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 127), CMPI_AGAIN); /* it is not asked */
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 128), CMPI_OK);
	CHECK_EQ(cmpi_get_now(b, here, reg_here, at, &reg_read->key, 100), CMPI_OK);
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &reg_there->key, 100, done, NULL), CMPI_OK);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 600), CMPI_AGAIN); /* one is under way */
	job_turn(4);
	CHECK_EQ(calls, 1);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 100), CMPI_AGAIN);
	fake_instant(100);
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &reg_there->key, 99, done, NULL), CMPI_OK);
	CHECK_EQ(calls, 2);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 100), CMPI_OK);
	CHECK_EQ(cmpi_put_now(b, here, reg_here, at, &reg_there->key, 600), CMPI_AGAIN);
	fake_brief(0);
	close_pair();
}

/* Who looks after every few transfers, all of them over at once, is soon seen by everybody, not only by the peer that sent last. */
static void transfers_starve_nobody(void)
{
	enum { C = 2 };

	for (int row = 1; row <= 6; row++) {
		int looks = 0;

		REQUIRE(open_of(3, 100) && job_connect(A, C));
		fake_brief(100);
		CHECK_EQ(job_send(B, A, 1, 8), CMPI_OK);
		job_progress(A); /* by value, since the network has not moved it */
		CHECK(job[A].c->near == job[A].to[B]);
		CHECK_EQ(job_send(C, A, 1, 8), CMPI_OK);
		for (; job[A].got[C] == 1 && looks < 50; looks++) {
			for (int i = 0; i < row; i++)
				CHECK_EQ(cmpi_put_now(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_there->key, 5000), CMPI_OK);
			cmpi_progress(job[A].c);
		}
		CHECK(looks <= 8);
		CHECK_EQ(job[A].got[C], 2);
		fake_brief(0);
		close_pair();
	}
}

/* Where cores are short, who transfers one after the other is not made to wait for each; but others get their turn. */
static void a_transfer_is_no_wait(void)
{
	enum { N = 320 };

	REQUIRE(open_pair(100));
	fake_crowded = true;
	for (int i = 0; i < 3 * 256; i++) /* so many looks may pass until it is noticed */
		cmpi_progress(job[A].c);
	fake_rests = 0;
	for (int i = 0; i < N; i++)
		cmpi_progress(job[A].c);
	CHECK_EQ(fake_rests, N);
	fake_rests = 0;
	for (int i = 0; i < N; i++) {
		CHECK_EQ(cmpi_get(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_read->key, 9, done, NULL), CMPI_OK);
		cmpi_progress(job[A].c);
	}
	CHECK_EQ(calls, N);
	CHECK_EQ(fake_rests, N / 32);
	fake_crowded = false;
	close_pair();
}

static void rights_and_ranges(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;
	struct cmpi_key key;

	REQUIRE(open_pair(100));
	b = job[A].to[B];
	key = reg_there->key;
	CHECK_EQ(cmpi_put(b, here, reg_here, at + 1, &key, SIZE, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_put(b, here, reg_here, at - 1, &key, 1, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_put(b, here, reg_here, at + 10, &key, SIZE_MAX - 4, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_put(b, here + 1, reg_here, at, &key, SIZE, done, NULL), CMPI_PROTECTION); /* our own range */
	CHECK_EQ(cmpi_get(b, here, reg_here, at, &key, 1, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &reg_read->key, 1, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(calls, 0);
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &key, 8, done, NULL), CMPI_OK);
	CHECK_EQ(result, CMPI_OK);
	close_pair();
}

static void itself(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;
	struct cmpi_key key;
	uint32_t old = 0;

	REQUIRE(open_pair(100));
	b = job[B].to[B];
	fill(here, 1);
	fill(there, 2);
	CHECK_EQ(cmpi_put(b, here, NULL, at, &reg_there->key, 1000, done, NULL), CMPI_OK);
	CHECK_EQ(calls, 1);
	CHECK(!memcmp(here, there, 1000));
	CHECK_EQ(cmpi_get(b, here + 2000, NULL, at, &reg_read->key, 1000, done, NULL), CMPI_OK);
	CHECK(!memcmp(here + 2000, there, 1000));
	memset(there, 0, 8);
	CHECK_EQ(cmpi_atomic(b, CMPI_ATOMIC_ADD, 4, at, &reg_there->key, 5, 0, &old, done, NULL), CMPI_OK);
	CHECK_EQ(cmpi_atomic(b, CMPI_ATOMIC_ADD, 4, at, &reg_there->key, 5, 0, &old, done, NULL), CMPI_OK);
	CHECK_EQ(old, 5);
	CHECK_EQ(calls, 4);
	key = reg_there->key;
	key.handle += 1000; /* what a key says is looked up, here as at any target */
	CHECK_EQ(cmpi_put(b, here, NULL, at, &key, 8, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_atomic(b, CMPI_ATOMIC_ADD, 4, at, &key, 5, 0, &old, done, NULL), CMPI_OK); /* a hint */
	CHECK_EQ(old, 10);
	CHECK_EQ(cmpi_atomic(b, CMPI_ATOMIC_ADD, 8, at + SIZE + 2 * 4096 - at % 8, &key, 5, 0, NULL, done, NULL), CMPI_PROTECTION);
	close_pair();
}

/* ---- atomics ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t expected(enum cmpi_atomic op, uint64_t old, uint64_t operand, uint64_t compare, bool wide)
{
	bool less = wide ? (int64_t)operand < (int64_t)old : (int32_t)operand < (int32_t)old;

	switch (op) {
	case CMPI_ATOMIC_ADD: return old + operand;
	case CMPI_ATOMIC_AND: return old & operand;
	case CMPI_ATOMIC_OR: return old | operand;
	case CMPI_ATOMIC_XOR: return old ^ operand;
	case CMPI_ATOMIC_SWAP: return operand;
	case CMPI_ATOMIC_MIN: return less ? operand : old;
	case CMPI_ATOMIC_MAX: return less ? old : operand;
	case CMPI_ATOMIC_CSWAP: return old == compare ? operand : old;
	}
	return 0;
}

static void one_atomic(uint32_t origin, enum cmpi_atomic op, unsigned size, uint64_t old, uint64_t operand, uint64_t compare)
{
	uint64_t mask = size == 8 ? UINT64_MAX : UINT32_MAX, got = 0, now = 0x1122334455667788;

	calls = 0;
	memcpy(there + 8, &now, 8);
	memcpy(there + 8, &old, size);
	CHECK_EQ(cmpi_atomic(job[origin].to[B], op, size, (uintptr_t)there + 8, &reg_there->key, operand & mask, compare & mask, &got,
	                     done, NULL),
	         CMPI_OK);
	job_turn(4);
	CHECK_EQ(calls, 1);
	CHECK_EQ(result, CMPI_OK);
	CHECK_EQ(got, old & mask);
	memcpy(&now, there + 8, 8);
	CHECK_EQ(now & mask, expected(op, old & mask, operand & mask, compare & mask, size == 8) & mask);
	CHECK(size == 8 || now >> 32 == 0x11223344); /* the neighbour */
}

static void every_atomic(void)
{
	static const uint64_t value[] = {0, 1, 5, UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 31, 0x123456789abcdef0};
	enum { N = sizeof(value) / sizeof(value[0]) };

	REQUIRE(open_pair(100));
	for (uint32_t origin = A; origin <= B; origin++)
		for (int op = CMPI_ATOMIC_ADD; op <= CMPI_ATOMIC_CSWAP; op++)
			for (unsigned size = 4; size <= 8; size += 4)
				for (size_t i = 0; i < N * N; i++)
					one_atomic(origin, (enum cmpi_atomic)op, size, value[i / N], value[i % N], value[(i + i / N) % N]);
	close_pair();
}

/* What becomes of adding 1 there. */
static void answer(uint64_t addr, const struct cmpi_key *key, int expected_result)
{
	calls = 0;
	CHECK_EQ(cmpi_atomic(job[A].to[B], CMPI_ATOMIC_ADD, 8, addr, key, 1, 0, NULL, done, NULL), CMPI_OK);
	job_turn(4);
	CHECK_EQ(calls, 1);
	CHECK_EQ(result, expected_result);
}

static void atomics_refused(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;
	struct cmpi_key key;

	REQUIRE(open_pair(100));
	b = job[A].to[B];
	key = reg_there->key;
	CHECK_EQ(cmpi_atomic(b, CMPI_ATOMIC_ADD, 8, at + 4 + at % 8, &key, 1, 0, NULL, done, NULL), CMPI_PARAMETER);
	CHECK_EQ(cmpi_atomic(b, CMPI_ATOMIC_ADD, 2, at, &key, 1, 0, NULL, done, NULL), CMPI_PARAMETER);
	CHECK_EQ(cmpi_atomic(b, (enum cmpi_atomic)99, 8, at, &key, 1, 0, NULL, done, NULL), CMPI_PARAMETER);
	CHECK_EQ(calls, 0);
	/* The target decides: whatever the key says is a hint, and costs nobody the connection. */
	memset(there, 0, 8);
	key.handle = reg_read->key.handle;
	answer(at, &key, CMPI_OK);
	CHECK_EQ(there[0], 1);
	key = reg_here->key;
	answer(at, &key, CMPI_OK);
	CHECK_EQ(there[0], 2);
	answer(at + SIZE + 2 * 4096 - at % 8, &reg_there->key, CMPI_PROTECTION); /* whole pages are registered */
	/* Memory that was deregistered since is not touched, although its registration is kept. */
	key = reg_there->key;
	cmpi_mem_deregister(job[B].c, reg_there);
	answer(at, &key, CMPI_PROTECTION);
	CHECK_EQ(there[0], 2);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	CHECK_EQ(cmpi_mem_register(job[B].c, there, SIZE, 7, &reg_there), CMPI_OK);
	close_pair();
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------------------- */

/* Who has another block's key asks the owner, and gets one for what was asked for. */
static void keys_asked(void)
{
	const uint64_t at = (uintptr_t)there;
	struct cmpi_proc *b;
	struct cmpi_reg *window;
	struct cmpi_key key;

	REQUIRE(open_pair(100));
	b = job[A].to[B];
	CHECK_EQ(cmpi_mem_register(job[B].c, there, SIZE, ANY, &window), CMPI_OK);
	fill(here, 7);
	fill(there, 8);
	CHECK_EQ(cmpi_key_ask(b, at + 9000, 100, CMPI_ACCESS_REMOTE_READ, &key, done, NULL), CMPI_OK);
	job_turn(4);
	CHECK_EQ(calls, 1);
	CHECK_EQ(result, CMPI_OK);
	CHECK_EQ(cmpi_get(b, here, reg_here, at + 9000, &key, 100, done, NULL), CMPI_OK);
	CHECK_EQ(calls, 2);
	CHECK(!memcmp(here, there + 9000, 100));
	CHECK_EQ(cmpi_get(b, here, reg_here, at + 9001, &key, 100, done, NULL), CMPI_PROTECTION); /* no more than was asked for */
	CHECK_EQ(cmpi_put(b, here, reg_here, at + 9000, &key, 100, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_key_ask(b, at + 9000, 100, CMPI_ACCESS_REMOTE_WRITE, &key, done, NULL), CMPI_OK);
	job_turn(4);
	memset(here, 1, 100);
	CHECK_EQ(cmpi_put(b, here, reg_here, at + 9000, &key, 100, done, NULL), CMPI_OK);
	CHECK_EQ(calls, 4);
	CHECK(!memcmp(here, there + 9000, 100));
	CHECK_EQ(job_count(A, "cmpi_keys_asked"), 2);
	cmpi_mem_deregister(job[B].c, window);
	close_pair();
}

static void asked(uint64_t addr, size_t len, unsigned access, int expected_result)
{
	struct cmpi_key key;

	calls = 0;
	CHECK_EQ(cmpi_key_ask(job[A].to[B], addr, len, access, &key, done, NULL), CMPI_OK);
	job_turn(4);
	CHECK_EQ(calls, 1);
	CHECK_EQ(result, expected_result);
}

static void keys_refused(void)
{
	const uint64_t at = (uintptr_t)there, far = at + SIZE + 2 * 4096;
	struct cmpi_proc *b;
	struct cmpi_reg *window;
	struct cmpi_key key;

	REQUIRE(open_pair(100));
	b = job[A].to[B];
	asked(at, 8, CMPI_ACCESS_REMOTE_READ, CMPI_PROTECTION); /* there are two registrations, but neither is a window's */
	CHECK_EQ(cmpi_mem_register(job[B].c, there, SIZE, ANY, &window), CMPI_OK);
	asked(far, 8, CMPI_ACCESS_REMOTE_READ, CMPI_PROTECTION); /* whole pages are registered */
	asked(at, SIZE + 2 * 4096, CMPI_ACCESS_REMOTE_READ, CMPI_PROTECTION);
	asked(at, SIZE_MAX, CMPI_ACCESS_REMOTE_READ, CMPI_PROTECTION);
	asked(at, 8, 64, CMPI_PARAMETER);
	asked(at, 8, CMPI_ACCESS_LOCAL, CMPI_PARAMETER);
	asked(at, 0, CMPI_ACCESS_REMOTE_READ, CMPI_PARAMETER);
	asked(at, SIZE, CMPI_ACCESS_REMOTE_READ, CMPI_OK);
	cmpi_mem_deregister(job[B].c, window); /* kept in the cache, but not in use */
	asked(at, SIZE, CMPI_ACCESS_REMOTE_READ, CMPI_PROTECTION);
	CHECK_EQ(cmpi_mem_register(job[B].c, there, SIZE, ANY, &window), CMPI_OK);
	calls = 0;
	CHECK_EQ(cmpi_key_ask(job[B].to[B], at, 8, CMPI_ACCESS_REMOTE_WRITE, &key, done, NULL), CMPI_OK); /* of itself */
	CHECK_EQ(calls, 1);
	CHECK_EQ(cmpi_put(job[B].to[B], here, NULL, at, &key, 8, done, NULL), CMPI_OK);
	CHECK_EQ(cmpi_key_ask(job[B].to[B], far, 8, CMPI_ACCESS_REMOTE_WRITE, &key, done, NULL), CMPI_PROTECTION);
	/* One that is half another's is none, and breaks nothing. */
	key = reg_there->key;
	key.handle = reg_read->key.handle;
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &key, 8, done, NULL), CMPI_PROTECTION);
	CHECK_EQ(cmpi_put(b, here, reg_here, at, &reg_there->key, 8, done, NULL), CMPI_OK);
	CHECK_EQ(job[A].errors + job[B].errors, 0);
	cmpi_mem_deregister(job[B].c, window);
	close_pair();
}

/* Operations in progress are bounded; the rest is refused for now and nothing of it starts. */
static void bounded(void)
{
	int n = 0, atomics = 0;

	REQUIRE(open_pair(100));
	fake_hold(job[A].c->nic, NULL, true);
	while (n < 100000 && cmpi_put(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_there->key, 8, done, NULL) == CMPI_OK)
		n++;
	CHECK_EQ(n, 256);
	while (atomics < 100000 && cmpi_atomic(job[A].to[B], CMPI_ATOMIC_ADD, 8, (uintptr_t)there + (-(uintptr_t)there & 7),
	                                       &reg_there->key, 1, 0, NULL, done, NULL) == CMPI_OK)
		atomics++;
	CHECK_EQ(atomics, 128);
	CHECK(job[A].to[B]->sends_posted < 200);
	fake_hold(job[A].c->nic, NULL, false);
	job_turn(60);
	CHECK_EQ(calls, n + atomics);
	CHECK_EQ(cmpi_put(job[A].to[B], here, reg_here, (uintptr_t)there, &reg_there->key, 8, done, NULL), CMPI_OK);
	close_pair();
}

int main(void)
{
	CASE(contents);
	CASE(done_inside_the_call);
	CASE(in_the_command);
	CASE(posted);
	CASE(fetched);
	CASE(fetched_before_it_leaves);
	CASE(fetched_in_vain);
	CASE(lengths_by_descriptor);
	CASE(transfers_starve_nobody);
	CASE(a_transfer_is_no_wait);
	CASE(rights_and_ranges);
	CASE(itself);
	CASE(every_atomic);
	CASE(atomics_refused);
	CASE(keys_asked);
	CASE(keys_refused);
	CASE(bounded);
	return check_done();
}
