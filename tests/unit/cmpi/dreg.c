/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache: what hits, what is kept, what is dropped and in which order.
 */
#include "tests/unit/cmpi/job.h"

#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64 };

static uint8_t memory[PAGES * PAGE] __attribute__((aligned(PAGE)));

static bool open_one(uint32_t entries, bool lazy)
{
	job_reset(100);
	fake_param("dreg_entries", entries);
	fake_param("lazy_deregister", lazy);
	return job_open(1);
}

static struct cmpi_reg *reg(size_t page, size_t offset, size_t len, unsigned access)
{
	struct cmpi_reg *r = NULL;

	cmpi_mem_register(job[0].c, memory + page * PAGE + offset, len, access, &r);
	return r;
}

static void drop(struct cmpi_reg *r)
{
	cmpi_mem_deregister(job[0].c, r);
}

static uint64_t count(const char *what)
{
	char name[40];

	snprintf(name, sizeof(name), "cmpi_dreg_%s", what);
	return job_count(0, name);
}

static void hits_and_misses(void)
{
	struct cmpi_reg *a, *b, *c, *d, *e, *f;

	REQUIRE(open_one(100, true));
	a = reg(0, 100, 3 * PAGE, CMPI_ACCESS_REMOTE_READ);
	CHECK_EQ(count("misses"), 1);
	b = reg(0, 100, 3 * PAGE, CMPI_ACCESS_REMOTE_READ);
	c = reg(0, 0, PAGE, CMPI_ACCESS_LOCAL); /* less, with fewer rights */
	d = reg(1, 0, PAGE, CMPI_ACCESS_LOCAL); /* inside the most recent */
	CHECK_EQ(count("hits"), 3);
	CHECK_EQ(a->key.handle, b->key.handle);
	CHECK_EQ(a->key.handle, d->key.handle);
	e = reg(0, 0, 5 * PAGE, CMPI_ACCESS_REMOTE_READ);  /* longer */
	f = reg(0, 0, PAGE, CMPI_ACCESS_REMOTE_WRITE);     /* more rights */
	CHECK_EQ(count("misses"), 3);
	CHECK(e->key.handle != a->key.handle && f->key.handle != a->key.handle);
	/* The user's record is of exactly what was asked for. */
	CHECK_EQ(a->key.base, (uintptr_t)memory + 100);
	CHECK_EQ(a->key.len, 3 * PAGE);
	CHECK_EQ(a->key.access, CMPI_ACCESS_REMOTE_READ);
	CHECK_EQ(c->key.len, PAGE);
	drop(a), drop(b), drop(c), drop(d), drop(e), drop(f);
	job_close();
}

static void lazy_keeps(void)
{
	uint32_t handle;
	struct cmpi_reg *r;

	REQUIRE(open_one(100, true));
	r = reg(3, 0, 10, 1);
	handle = r->key.handle;
	drop(r);
	r = reg(3, 5, 10, 1);
	CHECK_EQ(r->key.handle, handle);
	CHECK_EQ(count("hits"), 1);
	CHECK_EQ(job[0].c->dreg.entries, 1);
	drop(r);
	job_close(); /* the test NIC sees that nothing is left */
	REQUIRE(open_one(100, false));
	drop(reg(3, 0, 10, 1));
	CHECK_EQ(job[0].c->dreg.entries, 0);
	drop(reg(3, 0, 10, 1));
	CHECK_EQ(count("misses"), 2);
	job_close();
}

static bool kept(size_t page)
{
	uint64_t misses = count("misses");
	struct cmpi_reg *r = reg(page, 0, 10, 1);

	drop(r);
	return count("misses") == misses;
}

static void evicts_the_least_recently_used(void)
{
	struct cmpi_reg *held;

	REQUIRE(open_one(4, true));
	held = reg(0, 0, 10, 1);
	for (size_t page = 1; page < 4; page++)
		drop(reg(page, 0, 10, 1));
	CHECK(kept(1)); /* now 2 is the oldest */
	drop(reg(10, 0, 10, 1));
	CHECK_EQ(count("evictions"), 1);
	CHECK_EQ(job[0].c->dreg.entries, 4);
	CHECK(kept(1));
	CHECK(kept(3));
	CHECK(kept(10));
	CHECK(!kept(2));
	CHECK(kept(2));
	CHECK(kept(0)); /* in use all the time */
	drop(held);
	job_close();
}

/* A use that is over at once is one: it hits what is registered, and what it hits is not the next to be dropped. */
static void commands_are_uses(void)
{
	uint32_t handle;
	struct cmpi_reg *held;

	REQUIRE(open_one(4, true));
	held = reg(0, 0, 10, 1);
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + 5, 100), held->key.handle); /* in use: in no list */
	for (size_t page = 1; page < 4; page++)
		drop(reg(page, 0, 10, 1));
	handle = via_dreg_handle(job[0].c, (uintptr_t)memory + PAGE, 10);
	CHECK(handle != 0);
	CHECK_EQ(count("hits"), 2);
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + 9 * PAGE, 10), 0);
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + PAGE, PAGE + 1), 0);
	CHECK_EQ(count("misses"), 4);
	drop(reg(10, 0, 10, 1)); /* 2 goes, not 1 */
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + PAGE, 10), handle);
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + 2 * PAGE, 10), 0);
	drop(reg(11, 0, 10, 1)); /* and 3 */
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + 3 * PAGE, 10), 0);
	CHECK_EQ(via_dreg_handle(job[0].c, (uintptr_t)memory + PAGE, 10), handle);
	drop(held);
	job_close();
}

static void full_of_entries_in_use(void)
{
	struct cmpi_reg *r[4], *more = (struct cmpi_reg *)r;

	REQUIRE(open_one(4, true));
	for (size_t i = 0; i < 4; i++)
		r[i] = reg(i, 0, 10, 1);
	CHECK_EQ(cmpi_mem_register(job[0].c, memory + 9 * PAGE, 10, 1, &more), CMPI_RESOURCE);
	CHECK(more == (struct cmpi_reg *)r); /* untouched */
	drop(r[2]);
	CHECK_EQ(cmpi_mem_register(job[0].c, memory + 9 * PAGE, 10, 1, &more), CMPI_OK);
	drop(more);
	drop(r[0]), drop(r[1]), drop(r[3]);
	job_close();
}

/* The NIC has no room: unused entries go first, then the caller hears of it. */
static void nic_is_full(void)
{
	struct cmpi_reg *r;

	REQUIRE(open_one(100, true));
	drop(reg(0, 0, 10, 1));
	drop(reg(1, 0, 10, 1));
	fake_refuse_registrations(2);
	r = reg(5, 0, 10, 1);
	CHECK(r != NULL);
	CHECK_EQ(count("evictions"), 2);
	CHECK_EQ(job[0].c->dreg.entries, 1);
	fake_refuse_registrations(1);
	CHECK(!reg(6, 0, 10, 1));
	CHECK_EQ(job[0].c->dreg.entries, 1);
	drop(r);
	job_close();
}

static void bad_arguments(void)
{
	struct cmpi_reg *r = NULL;

	REQUIRE(open_one(100, true));
	CHECK_EQ(cmpi_mem_register(job[0].c, NULL, 10, 1, &r), CMPI_PARAMETER);
	CHECK_EQ(cmpi_mem_register(job[0].c, memory, 0, 1, &r), CMPI_PARAMETER);
	CHECK_EQ(cmpi_mem_register(job[0].c, memory, 1, 8, &r), CMPI_PARAMETER);
	CHECK_EQ(cmpi_mem_register(job[0].c, memory, SIZE_MAX, 1, &r), CMPI_RESOURCE);
	CHECK(!r);
	cmpi_mem_deregister(job[0].c, NULL);
	job_close();
}

static void what_a_peer_may_touch(void)
{
	struct cmpi_reg *r;
	uint32_t handle;

	REQUIRE(open_one(100, true));
	r = reg(2, 100, 1000, CMPI_ACCESS_REMOTE_ATOMIC);
	handle = r->key.handle;
	CHECK(via_dreg_check(job[0].c, handle, r->key.base, 8, CMPI_ACCESS_REMOTE_ATOMIC));
	CHECK(!via_dreg_check(job[0].c, handle, r->key.base, 8, CMPI_ACCESS_REMOTE_WRITE));
	CHECK(!via_dreg_check(job[0].c, handle, r->key.base + PAGE, 8, CMPI_ACCESS_REMOTE_ATOMIC));
	CHECK(!via_dreg_check(job[0].c, handle, UINT64_MAX - 4, 8, CMPI_ACCESS_REMOTE_ATOMIC));
	CHECK(!via_dreg_check(job[0].c, handle + VIA_DREG_BUCKETS, r->key.base, 8, CMPI_ACCESS_REMOTE_ATOMIC));
	CHECK(!via_dreg_check(job[0].c, 0, r->key.base, 8, CMPI_ACCESS_REMOTE_ATOMIC));
	drop(r);
	CHECK(!via_dreg_check(job[0].c, handle, r->key.base, 8, CMPI_ACCESS_REMOTE_ATOMIC));
	job_close();
}

/* Against a plain model: references count, nothing is lost, the limit holds. */
static void random_use(void)
{
	struct cmpi_reg *held[20] = {0};

	REQUIRE(open_one(24, true));
	for (int i = 0; i < 20000; i++) {
		struct cmpi_reg **r = &held[fake_random(20)];
		size_t page = fake_random(PAGES - 8), len = 1 + fake_random(8 * PAGE - PAGE);

		if (*r) {
			CHECK(via_dreg_check(job[0].c, (*r)->key.handle, (*r)->key.base, (*r)->key.len, (*r)->key.access));
			drop(*r);
			*r = NULL;
		} else {
			*r = reg(page, fake_random(PAGE), len, fake_random(8));
			CHECK(*r != NULL);
		}
		CHECK(job[0].c->dreg.entries <= 24);
	}
	for (int i = 0; i < 20; i++)
		if (held[i])
			drop(held[i]);
	CHECK(count("hits") > 100);
	CHECK(count("evictions") > 100);
	job_close();
}

/* Registers so many bytes of the address once; returns how many large pages were asked for since. */
static uint32_t use(uint8_t *at, size_t len, VIP_PVOID *where)
{
	static uint32_t before;
	struct cmpi_reg *r = NULL;
	uint32_t n;

	CHECK_EQ(cmpi_mem_register(job[0].c, at, len, 1, &r), CMPI_OK);
	drop(r);
	n = fake_large_pages(where) - before;
	before += n;
	return n;
}

/* Large pages are asked for as memory is used: one for 64 MB, from one end of the entry to the other, then at longer intervals. */
static void large_pages(void)
{
	enum { MB = 1 << 20 };
	uint8_t *at = (uint8_t *)(uintptr_t)(2000ull * VIPX_LARGE_PAGE + MB); /* nobody looks there */
	VIP_PVOID where = NULL;

	REQUIRE(open_one(100, true));
	use(at, 1, &where);
	drop(reg(0, 0, 10, 1));
	for (int i = 0; i < 15; i++)
		CHECK_EQ(use(at, 4 * MB, &where), 0);
	CHECK_EQ(use(at, 4 * MB, &where), 1);
	CHECK(where == at);
	for (int i = 0; i < 15; i++)
		CHECK_EQ(use(at, 4 * MB, &where), 0);
	CHECK_EQ(use(at, 4 * MB, &where), 1);
	CHECK(where == at + MB);
	for (int i = 0; i < 16; i++)
		use(at, 4 * MB, &where);
	CHECK(where == at + 3 * MB);
	for (int i = 0; i < 31; i++) /* the second round */
		CHECK_EQ(use(at, 4 * MB, &where), 0);
	CHECK_EQ(use(at, 4 * MB, &where), 1);
	CHECK(where == at);
	/* Some at once for a long message, not all. */
	CHECK_EQ(use(at, (size_t)4096 * MB, &where), 8);
	job_close();
}

/* Where they take long there is one at a time, and then none for three times as long, nor before as much has been moved as they save. */
static void large_pages_that_take_long(void)
{
	enum { MB = 1 << 20 };
	uint8_t *at = (uint8_t *)(uintptr_t)(2000ull * VIPX_LARGE_PAGE);
	struct timespec from, to;
	uint32_t early = 0, late = 0;
	VIP_PVOID where = NULL;

	REQUIRE(open_one(100, true));
	use(at, 1, &where);
	fake_large_takes(20000);
	clock_gettime(CLOCK_MONOTONIC, &from);
	CHECK_EQ(use(at, (size_t)1024 * MB, &where), 1);
	clock_gettime(CLOCK_MONOTONIC, &to);
	for (int i = 0; i < 24; i++)
		early += use(at, 4 * MB, &where);
	CHECK_EQ(early, 0);
	usleep(4 * (unsigned)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 + 1));
	for (int i = 0; i < 4; i++)
		early += use(at, 4 * MB, &where);
	CHECK_EQ(early, 0);
	for (int i = 0; i < 10 && !late; i++) /* 20 ms are worth 2.5 GB; half of that when one has taken so long */
		late = use(at, (size_t)300 * MB, &where);
	CHECK_EQ(late, 1);
	fake_large_takes(0);
	job_close();
}

/* What a page has taken sets how much is to be moved for the next; what takes no time was none, and one that takes very long an accident. */
static void price_of_large_pages(void)
{
	static const uint64_t dearest = 4ull << 30, page = 64 << 20;
	uint8_t *at = (uint8_t *)(uintptr_t)(2000ull * VIPX_LARGE_PAGE);
	VIP_PVOID where = NULL;
	uint64_t price;

	REQUIRE(open_one(100, true));
	use(at, 1, &where);
	fake_large_takes(100000);
	CHECK_EQ(use(at, page, &where), 1);
	price = job[0].c->dreg.large_price;
	CHECK_EQ(price, dearest / 2);
	fake_large_takes(0);
	usleep(500000);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(use(at, price, &where), 1);
	CHECK_EQ(job[0].c->dreg.large_price, price);
	fake_large_takes(200);
	CHECK_EQ(use(at, price, &where), 1);
	CHECK(job[0].c->dreg.large_price < price);
	fake_large_takes(0);
	job_close();
}

int main(void)
{
	CASE(hits_and_misses);
	CASE(lazy_keeps);
	CASE(evicts_the_least_recently_used);
	CASE(commands_are_uses);
	CASE(full_of_entries_in_use);
	CASE(nic_is_full);
	CASE(bad_arguments);
	CASE(what_a_peer_may_touch);
	CASE(random_use);
	CASE(large_pages);
	CASE(large_pages_that_take_long);
	CASE(price_of_large_pages);
	return check_done();
}
