/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in the card: extents do not meet, what is freed comes back, shortage is an error, the dead leave nothing behind;
 * RDMA to it is a plain copy that regions still rule; and no pointer of another process leads to it.
 */
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

enum { LEN = 300 * 1000 };

static char device[48];

static uint32_t granules_taken(const struct nic *nic)
{
	const struct nic_heap *heap = &nic->map->heap;
	uint32_t n = 0;

	for (uint32_t i = 0; i < heap->high; i++)
		n += heap->granule[i] != 0;
	return n;
}

/* KB that the card takes of the system. */
static uint64_t card_memory(void)
{
	char path[64], line[256];
	struct stat st;

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, line, sizeof(line) - 1);
		if (n > 0 && (line[n] = 0, strstr(line, "memfd:qnix")) && stat(path, &st) == 0)
			return (uint64_t)st.st_blocks / 2;
	}
	return 0;
}

/* ---- can it be touched? ------------------------------------------------------------------------------------------- */

static sigjmp_buf out_of_reach;

static void caught(int sig)
{
	(void)sig;
	siglongjmp(out_of_reach, 1);
}

static bool reachable(const void *p)
{
	struct sigaction act = { .sa_handler = caught }, segv, bus;
	static _Atomic uint8_t seen;
	_Atomic bool reached = false;

	sigaction(SIGSEGV, &act, &segv);
	sigaction(SIGBUS, &act, &bus);
	if (sigsetjmp(out_of_reach, 1) == 0) {
		atomic_store(&seen, atomic_load((const _Atomic uint8_t *)p)); /* the compiler must not leave it out */
		reached = true;
	}
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return reached;
}

/* ---- alloc and free ----------------------------------------------------------------------------------------------- */

static void extents_do_not_meet(void)
{
	static const uint64_t size[] = { 1, 4096, 65536 - 4096, 65536, 65537, 1 << 20, 100, 3 << 20 };
	enum { N = sizeof(size) / sizeof(size[0]) };
	uint8_t *at[N];
	struct end e;

	end_open(&e, device);
	for (int i = 0; i < N; i++) {
		REQUIRE(nic_mem_alloc(e.nic, size[i], (void **)&at[i]) == NIC_OK);
		CHECK_EQ((uintptr_t)at[i] % 4096, 0);
		pattern(at[i], size[i], i);
		CHECK(!reachable(at[i] + ((size[i] + 4095) & ~(uint64_t)4095))); /* the page behind it */
	}
	for (int i = 0; i < N; i++)
		CHECK(is_pattern(at[i], size[i], i));
	for (int i = 0; i < N; i++) {
		CHECK_EQ(nic_mem_free(e.nic, at[i]), NIC_OK);
		CHECK(!reachable(at[i]));
		CHECK_EQ(nic_mem_free(e.nic, at[i]), NIC_PARAMETER);
	}
	CHECK_EQ(counter(e.nic, "heap_granules"), 0);
	CHECK_EQ(granules_taken(e.nic), 0);
	end_close(&e);
}

static void freed_memory_goes_back(void)
{
	enum { MB = 1 << 20 };
	uint64_t before, full;
	void *p, *again;
	struct end e;

	end_open(&e, device);
	before = card_memory();
	REQUIRE(nic_mem_alloc(e.nic, 32 * MB, &p) == NIC_OK);
	memset(p, 1, 32 * MB);
	full = card_memory();
	CHECK(full >= before + 32 * 1024);
	CHECK_EQ(nic_mem_free(e.nic, p), NIC_OK);
	CHECK(card_memory() < before + 1024);
	REQUIRE(nic_mem_alloc(e.nic, 16 * MB, &again) == NIC_OK);
	CHECK(again == p);
	end_close(&e);
}

static void shortage_is_an_error(void)
{
	void *p = NULL, *big, *rest;
	struct end e;

	end_open(&e, device);
	CHECK_EQ(nic_mem_alloc(e.nic, 0, &p), NIC_PARAMETER);
	CHECK_EQ(nic_mem_alloc(e.nic, NIC_HEAP_SIZE, &p), NIC_RESOURCE);
	CHECK(strstr(nic_last_error(), "no room"));
	CHECK_EQ(nic_mem_alloc(e.nic, UINT64_MAX, &p), NIC_RESOURCE);
	CHECK(p == NULL);
	CHECK_EQ(nic_mem_alloc(e.nic, NIC_HEAP_SIZE - NIC_HEAP_GRANULE, &big), NIC_OK);
	CHECK_EQ(nic_mem_alloc(e.nic, 1, &rest), NIC_RESOURCE);
	CHECK_EQ(counter(e.nic, "no_heap"), 3);
	CHECK_EQ(nic_mem_free(e.nic, big), NIC_OK);
	CHECK_EQ(nic_mem_alloc(e.nic, 1, &rest), NIC_OK);
	CHECK_EQ(counter(e.nic, "no_heap"), 3);
	CHECK_EQ(nic_mem_free(e.nic, (uint8_t *)rest + 1), NIC_PARAMETER);
	CHECK_EQ(nic_mem_free(e.nic, &e), NIC_PARAMETER);
	CHECK_EQ(nic_mem_free(e.nic, NULL), NIC_PARAMETER);
	CHECK_EQ(nic_mem_free(e.nic, rest), NIC_OK);
	end_close(&e);
}

static void another_slot_cannot_free_it(void)
{
	struct end a, b;
	void *p;

	end_open(&a, device);
	end_open(&b, device);
	REQUIRE(nic_mem_alloc(a.nic, 100, &p) == NIC_OK);
	CHECK_EQ(nic_mem_free(b.nic, p), NIC_PARAMETER);
	CHECK_EQ(nic_mem_free(a.nic, p), NIC_OK);
	end_close(&a);
	end_close(&b);
}

/* In steps inside, so the second is of several; of the last, most was never touched. */
static void what_is_left_stays(void)
{
	enum { MANY = 40 << 20 };
	const uint64_t vast = (uint64_t)1 << 30;
	uint8_t *small, *gone, *large, *sparse;
	struct end e;

	end_open(&e, device);
	REQUIRE(nic_mem_alloc(e.nic, 5000, (void **)&small) == NIC_OK && nic_mem_alloc(e.nic, 5000, (void **)&gone) == NIC_OK);
	REQUIRE(nic_mem_alloc(e.nic, MANY, (void **)&large) == NIC_OK && nic_mem_alloc(e.nic, vast, (void **)&sparse) == NIC_OK);
	pattern(small, 5000, 1);
	pattern(large, MANY, 2);
	sparse[vast / 2] = 3;
	CHECK_EQ(nic_mem_free(e.nic, gone), NIC_OK);
	end_close(&e);
	CHECK(is_pattern(small, 5000, 1) && is_pattern(large, MANY, 2));
	CHECK(!reachable(gone));
	CHECK(sparse[0] == 0 && sparse[vast / 2] == 3 && sparse[vast - 1] == 0);
	end_open(&e, device);
	REQUIRE(nic_mem_alloc(e.nic, MANY, (void **)&gone) == NIC_OK);
	memset(gone, 9, MANY);
	pattern(large, MANY, 4);
	end_close(&e);
	CHECK(is_pattern(small, 5000, 1) && is_pattern(large, MANY, 4) && gone[MANY - 1] == 9);
	munmap(small, 5000);
	munmap(gone, MANY);
	munmap(large, MANY);
	munmap(sparse, vast);
}

/* Another handle may be given the same place. */
static void what_is_left_goes_before_the_last_handle(void)
{
	uint8_t *first, *second;
	struct end a, b;

	end_open(&a, device);
	end_open(&b, device);
	REQUIRE(nic_mem_alloc(a.nic, LEN, (void **)&first) == NIC_OK);
	pattern(first, LEN, 1);
	end_close(&a);
	CHECK(!reachable(first));
	REQUIRE(nic_mem_alloc(b.nic, LEN, (void **)&second) == NIC_OK);
	CHECK(second == first);
	pattern(second, LEN, 2);
	CHECK_EQ(nic_mem_free(b.nic, second), NIC_OK);
	CHECK_EQ(granules_taken(b.nic), 0);
	end_close(&b);
}

/* ---- RDMA ---------------------------------------------------------------------------------------------------------- */

static uint32_t rdma(struct pair *p, uint16_t op, void *local, uint32_t lh, uint64_t remote, uint32_t rh, uint32_t len)
{
	struct nic_desc *d = fill(&p->a, 0, op, local, len);

	d->nseg = 2;
	d->seg[0] = (struct nic_seg){ remote, rh, 0 };
	d->seg[1] = (struct nic_seg){ (uintptr_t)local, lh, len };
	send_desc(&p->a, d);
	pair_poll(p);
	return status_of(d);
}

static uint32_t enter(struct end *e, void *at, uint32_t flags)
{
	struct nic_mem_attr attr = { .ptag = e->ptag, .flags = flags };
	uint32_t handle = 0;

	CHECK_EQ(nic_mem_register(e->nic, (uintptr_t)at, LEN, &attr, &handle), NIC_OK);
	return handle;
}

static void copies(void)
{
	uint8_t *mine, *theirs;
	uint32_t mh, th;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	REQUIRE(nic_mem_alloc(p.a.nic, LEN, (void **)&mine) == NIC_OK && nic_mem_alloc(p.b.nic, LEN, (void **)&theirs) == NIC_OK);
	mh = enter(&p.a, mine, 0);
	th = enter(&p.b, theirs, NIC_MEM_RDMA_READ | NIC_MEM_RDMA_WRITE);
	pattern(mine, LEN, 1);
	CHECK_EQ(rdma(&p, NIC_CTL_RDMA_WRITE, mine, mh, (uintptr_t)theirs, th, LEN), NIC_ST_DONE | NIC_ST_OP_RDMA_WRITE);
	CHECK(is_pattern(theirs, LEN, 1));
	pattern(theirs, LEN, 2);
	CHECK_EQ(rdma(&p, NIC_CTL_RDMA_READ, mine, mh, (uintptr_t)theirs, th, LEN), NIC_ST_DONE | NIC_ST_OP_RDMA_READ);
	CHECK(is_pattern(mine, LEN, 2));
	CHECK_EQ(counter(p.a.nic, "bytes_plain"), 2 * LEN);
	pair_close(&p);
}

static void rdma_is_a_plain_copy(void)
{
	copies();
}

static void it_needs_no_right_to_reach_the_peer(void)
{
	CHECK_EQ(nic_param_set("cma", "off", "test"), NIC_OK);
	copies();
	CHECK_EQ(nic_param_set("cma", "auto", "test"), NIC_OK);
}

static void regions_rule_it(void)
{
	uint32_t read_only, th;
	uint8_t *theirs;
	struct pair p;

	pair_open(&p, NIC_RELIABLE_DELIVERY);
	REQUIRE(nic_mem_alloc(p.b.nic, LEN, (void **)&theirs) == NIC_OK);
	memset(theirs, 0, LEN);
	read_only = enter(&p.b, theirs, NIC_MEM_RDMA_READ);
	pattern(p.a.mem, LEN, 1);
	CHECK(rdma(&p, NIC_CTL_RDMA_WRITE, p.a.mem, p.a.handle, (uintptr_t)theirs, read_only, LEN) & NIC_ST_RDMA_PROT);
	CHECK(theirs[0] == 0 && theirs[LEN - 1] == 0);
	pair_close(&p);
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	REQUIRE(nic_mem_alloc(p.b.nic, LEN, (void **)&theirs) == NIC_OK);
	th = enter(&p.b, theirs, NIC_MEM_RDMA_READ | NIC_MEM_RDMA_WRITE);
	CHECK(rdma(&p, NIC_CTL_RDMA_READ, p.a.mem, p.a.handle, (uintptr_t)theirs + 1, th, LEN) & NIC_ST_RDMA_PROT);
	pair_close(&p);
}

/* A peer may still be copying: what is freed under a link is its owner's to use again, and nobody else's. */
static void freed_under_a_link_it_stays(void)
{
	void *p, *other, *again;
	struct pair pair;

	pair_open(&pair, NIC_RELIABLE_DELIVERY);
	REQUIRE(nic_mem_alloc(pair.a.nic, LEN, &p) == NIC_OK);
	CHECK_EQ(nic_mem_free(pair.a.nic, p), NIC_OK);
	REQUIRE(nic_mem_alloc(pair.b.nic, LEN, &other) == NIC_OK);
	CHECK(other != p);
	REQUIRE(nic_mem_alloc(pair.a.nic, LEN, &again) == NIC_OK);
	CHECK(again == p);
	pair_close(&pair);
}

/* ---- other processes ----------------------------------------------------------------------------------------------- */

static struct end here;
static uint8_t *shown; /* where the parent has it: a child of fork before nic_open maps the card where it likes */

static int reader(void)
{
	struct end e;
	struct nic_slot *owner;
	uint8_t *mine;

	if (!kin_await(NULL, 0, 1))
		return 1;
	end_open(&e, device);
	owner = &e.nic->map->slot[0];
	mine = (uint8_t *)e.nic->map + ((uintptr_t)atomic_load(&kin_step[1]) * NIC_PAGE);
	if (owner->heap != NIC_HEAP_SIZE)
		return 2;
	return reachable(mine) ? 3 : 0;
}

static void no_pointer_of_a_peer_leads_to_it(void)
{
	pid_t child;

	kin_clear();
	child = kin_fork(reader);
	end_open(&here, device);
	REQUIRE(nic_mem_alloc(here.nic, 4096, (void **)&shown) == NIC_OK);
	memset(shown, 7, 4096);
	atomic_store(&kin_step[1], (int)(((uintptr_t)shown - (uintptr_t)here.nic->map) / NIC_PAGE));
	atomic_store(&kin_step[0], 1);
	CHECK_EQ(kin_wait(child), 0);
	end_close(&here);
}

enum { VICTIM_MB = 16 };

static int victim(void)
{
	struct end e;
	void *p;

	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "victim", "survivor") || nic_mem_alloc(e.nic, VICTIM_MB << 20, &p))
		return 1;
	memset(p, 1, VICTIM_MB << 20);
	atomic_store(&kin_step[0], 1);
	for (;;)
		nic_poll(e.nic);
}

static void the_dead_leave_nothing_behind(void)
{
	uint64_t before;
	pid_t child;

	kin_clear();
	child = kin_fork(victim);
	end_open(&here, device);
	end_vi(&here, NIC_RELIABLE_DELIVERY);
	before = card_memory();
	CHECK_EQ(kin_connect(&here, "survivor", "victim"), NIC_OK);
	CHECK(kin_await(here.nic, 0, 1));
	CHECK(granules_taken(here.nic) >= VICTIM_MB * 16);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	CHECK(granules_taken(here.nic) >= VICTIM_MB * 16);
	CHECK(kin_lost(&here, KIN_SECONDS));
	CHECK_EQ(granules_taken(here.nic), 0);
	CHECK(card_memory() < before + VICTIM_MB * 512);
	end_close(&here);
}

static int hog(void)
{
	struct end e;
	void *p;

	end_open(&e, device);
	if (nic_mem_alloc(e.nic, NIC_HEAP_SIZE / 2, &p))
		return 1;
	atomic_store(&kin_step[0], 1);
	for (;;)
		pause();
}

/* A process that has half of the heap, and no link with this one. */
static pid_t open_beside_a_hog(void)
{
	pid_t child;

	kin_clear();
	child = kin_fork(hog);
	end_open(&here, device);
	CHECK(kin_await(NULL, 0, 1));
	return child;
}

/* Nobody had a link with it, so nobody noticed; but when there is no room, it is looked for. */
static void unnoticed_deaths_are_found_in_need(void)
{
	pid_t child;
	void *p;

	child = open_beside_a_hog();
	CHECK_EQ(nic_mem_alloc(here.nic, NIC_HEAP_SIZE / 2, &p), NIC_RESOURCE);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	CHECK_EQ(nic_mem_alloc(here.nic, NIC_HEAP_SIZE / 2, &p), NIC_OK);
	CHECK_EQ(nic_mem_free(here.nic, p), NIC_OK);
	end_close(&here);
}

static void say_served(uint32_t slot, uint32_t life)
{
	nic_card_poke(here.nic->card, &here.nic->map->slot[slot].served, &life, sizeof(life));
}

/* The process is dead, and the daemon that runs its NIC has not noticed: it may write there yet. */
static void memory_of_a_slot_that_is_served_stays(void)
{
	const uint32_t life = 7;
	uint32_t slot;
	pid_t child;
	void *p;

	child = open_beside_a_hog();
	slot = !here.nic->me;
	REQUIRE(nic_load_relaxed(&here.nic->map->slot[slot].pid) == child);
	REQUIRE(nic_card_hold(here.nic->card, NIC_DAEMON_LINE));
	nic_card_poke(here.nic->card, &here.nic->map->hdr.daemon.life, &life, sizeof(life));
	say_served(slot, life);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	CHECK_EQ(nic_mem_alloc(here.nic, NIC_HEAP_SIZE / 2, &p), NIC_RESOURCE);
	say_served(slot, life | NIC_SERVE_HOLDS);
	CHECK_EQ(nic_mem_alloc(here.nic, NIC_HEAP_SIZE / 2, &p), NIC_RESOURCE);
	nic_card_drop(here.nic->card, NIC_DAEMON_LINE); /* the daemon is dead, too */
	CHECK_EQ(nic_mem_alloc(here.nic, NIC_HEAP_SIZE / 2, &p), NIC_OK);
	CHECK_EQ(nic_mem_free(here.nic, p), NIC_OK);
	end_close(&here);
}

/* Nobody has a link with it, and memory is not short. */
static void daemon_takes_it_from_the_dead(void)
{
	double until;
	pid_t child;

	if (!kin_attaches())
		SKIP("no cross-memory attach here");
	nic_param_set("engine", "daemon", "test");
	child = open_beside_a_hog();
	CHECK(granules_taken(here.nic) > 0);
	CHECK_EQ(kin_kill(child), -SIGKILL);
	for (until = kin_now() + KIN_SECONDS / 2; granules_taken(here.nic) && kin_now() < until; usleep(1000))
		;
	CHECK_EQ(granules_taken(here.nic), 0);
	end_close(&here);
	nic_param_set("engine", "inline", "test");
}

static int churner(void)
{
	void *p[8] = { NULL };
	struct end e;

	end_open(&e, device);
	atomic_store(&kin_step[0], 1);
	for (unsigned i = 0;; i++) {
		void **at = &p[i * 5 % 8];

		if (*at && nic_mem_free(e.nic, *at))
			return 1;
		*at = NULL;
		if (nic_mem_alloc(e.nic, 1 + i * 7919 % (1 << 20), at))
			return 2;
		*(char *)*at = 1;
	}
}

/* Wherever in alloc and free a process dies: what it had can be had again, and nobody else's is touched. */
static void killed_at_any_time(void)
{
	uint8_t *mine;
	void *all;

	kin_clear();
	end_open(&here, device);
	REQUIRE(nic_mem_alloc(here.nic, LEN, (void **)&mine) == NIC_OK);
	pattern(mine, LEN, 5);
	for (int i = 0; i < 40; i++) {
		pid_t child = kin_fork(churner);

		CHECK(kin_await(NULL, 0, 1));
		atomic_store(&kin_step[0], 0);
		usleep(100 + i * 137 % 1500);
		CHECK_EQ(kin_kill(child), -SIGKILL);
	}
	CHECK(is_pattern(mine, LEN, 5));
	CHECK_EQ(nic_mem_free(here.nic, mine), NIC_OK);
	CHECK_EQ(nic_mem_alloc(here.nic, NIC_HEAP_SIZE - NIC_HEAP_GRANULE, &all), NIC_OK);
	CHECK_EQ(nic_mem_free(here.nic, all), NIC_OK);
	CHECK_EQ(granules_taken(here.nic), 0);
	end_close(&here);
}

/* ---- machines with less -------------------------------------------------------------------------------------------- */

static int without_address_space(void)
{
	struct rlimit limit = { (rlim_t)12 << 30, (rlim_t)12 << 30 };
	void *p = NULL;
	struct end e;

	if (setrlimit(RLIMIT_AS, &limit) < 0)
		return 1;
	end_open(&e, device);
	if (nic_mem_alloc(e.nic, 100, &p) != NIC_RESOURCE || p || counter(e.nic, "no_heap") != 1)
		return 2;
	return nic_close(e.nic) == NIC_OK ? 0 : 3;
}

static void little_address_space_means_no_heap(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer takes all the address space itself");
#endif
	CHECK_EQ(kin_wait(kin_fork(without_address_space)), 0);
}

static int small_files_only(void)
{
	struct rlimit limit = { (rlim_t)8 << 30, (rlim_t)8 << 30 };
	void *p = NULL;
	struct end e;

	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 1;
	end_open(&e, device);
	return nic_mem_alloc(e.nic, 100, &p) == NIC_RESOURCE && !p ? 0 : 2;
}

static void small_files_mean_no_heap(void)
{
	CHECK_EQ(kin_wait(kin_fork(small_files_only)), 0);
}

static void a_file_will_do(void)
{
	CHECK_EQ(nic_param_set("memory", "file", "test"), NIC_OK);
	extents_do_not_meet();
	what_is_left_stays();
	copies();
	freed_under_a_link_it_stays();
	CHECK_EQ(nic_param_set("memory", "auto", "test"), NIC_OK);
}

int main(void)
{
	snprintf(device, sizeof(device), "heap-%d", (int)getpid());
	nic_param_set("memory", "auto", "test"); /* most is about a card that can grow */
	kin_start();
	CASE(extents_do_not_meet);
	CASE(freed_memory_goes_back);
	CASE(shortage_is_an_error);
	CASE(another_slot_cannot_free_it);
	CASE(what_is_left_stays);
	CASE(what_is_left_goes_before_the_last_handle);
	CASE(rdma_is_a_plain_copy);
	CASE(it_needs_no_right_to_reach_the_peer);
	CASE(regions_rule_it);
	CASE(freed_under_a_link_it_stays);
	CASE(no_pointer_of_a_peer_leads_to_it);
	CASE(the_dead_leave_nothing_behind);
	CASE(unnoticed_deaths_are_found_in_need);
	CASE(memory_of_a_slot_that_is_served_stays);
	CASE(daemon_takes_it_from_the_dead);
	CASE(killed_at_any_time);
	CASE(little_address_space_means_no_heap);
	CASE(small_files_mean_no_heap);
	CASE(a_file_will_do);
	return check_done();
}
