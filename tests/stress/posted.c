/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posted writes and fetches of a process that is killed at any instruction, and to one: kill -9 at random moments, in turns of the one that writes and reads and
 * of the one whose memory it is.  The other one is told, waits for nothing any more, finds in its memory what was written or nothing, has read what was there
 * where it was told so, and goes on with the next.
 *
 *   posted [rounds] [seed]
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/engine/cores.h"
#include "tests/unit/nicemu/pair.h"

enum { PATIENCE = 120 /* seconds */, PLACES = 64 };

static struct board { /* where the victim's memory is */
	_Atomic uintptr_t at;
	uint32_t handle; /* published by `at` */
	uintptr_t survivor;
	uint32_t survivor_handle;
} *board;
static char device[48];
static unsigned rounds = 60, seed = 1;
static bool can; /* some have been able to */
static uint8_t got[PLACES][NIC_FETCH_MAX]; /* of each place */
static uint32_t asked[PLACES];             /* bytes */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A row of writes, each to a place of its own; and now and then a wait until they are in place. */
static void write_some(struct end *e, uintptr_t at, uint32_t handle)
{
	static uint8_t bytes[NIC_POSTED_MAX];

	for (int i = rand() % PLACES; i >= 0; i--) {
		struct nic_posted w = { bytes, at + (uintptr_t)i * NIC_POSTED_MAX, handle, 1u + (uint32_t)rand() % (rand() % 2 ? 64 : NIC_POSTED_MAX) };

		memset(bytes, i + 1, w.length);
		if (nic_rdma_post(e->nic, e->vi, &w) != NIC_OK)
			nic_poll(e->nic);
	}
	for (int looks = rand() % 200; looks && nic_rdma_posted(e->nic) != NIC_OK; looks--)
		nic_poll(e->nic);
}

/* A row of reads of what is in such places, where nobody writes meanwhile.  Those that have ended are there. */
static void read_some(struct end *e, uintptr_t at, uint32_t handle)
{
	uint32_t n = 0, most = 1u + (uint32_t)rand() % PLACES, before = nic_rdma_fetched(e->nic, e->vi, NULL), ended;

	for (int tries = 0; n < most && tries < 2 * PLACES; tries++) {
		struct nic_fetch f = { got[n], at + (uintptr_t)(PLACES + n) * NIC_POSTED_MAX, handle, 1u + (uint32_t)rand() % (rand() % 2 ? 64 : NIC_FETCH_MAX) };

		asked[n] = f.length;
		memset(got[n], 0, sizeof(got[n]));
		if (nic_rdma_fetch(e->nic, e->vi, &f) == NIC_OK)
			n++;
		else
			nic_poll(e->nic);
	}
	while ((ended = nic_rdma_fetched(e->nic, e->vi, NULL) - before) < n && nic_vi_state(nic_vi(e->nic, e->vi)) == NIC_VI_CONNECTED)
		nic_poll(e->nic);
	CHECK(ended <= n);
	for (uint32_t i = 0; i < n && i < ended; i++)
		CHECK(got[i][0] == i + 1 && got[i][asked[i] - 1] == i + 1 && (asked[i] == NIC_FETCH_MAX || !got[i][asked[i]]));
}

/* In their own places, for read_some. */
static void lay_out(struct end *e)
{
	for (int i = 0; i < PLACES; i++)
		memset(e->mem + (size_t)(PLACES + i) * NIC_POSTED_MAX, i + 1, NIC_FETCH_MAX);
}

/* Looks, and sometimes does not, for longer than anybody waits. */
static void be_there(struct end *e)
{
	double until = now() + (rand() % 16 ? 0 : 50e-6);

	while (now() < until)
		;
	for (int i = 0; i < 20; i++)
		nic_poll(e->nic);
}

static void work(struct end *e, bool writes, uintptr_t at, uint32_t handle)
{
	if (writes && at)
		(rand() % 2 ? write_some : read_some)(e, at, handle);
	else
		be_there(e);
}

static void connect_end(struct end *e, const char *me, const char *peer)
{
	struct nic_addr a = addr_of(e->nic, me), b = addr_of(e->nic, peer);

	CHECK_EQ(nic_peer_request(e->nic, e->vi, &a, &b), NIC_OK);
}

static void victim(int turn)
{
	struct nic_vi_attr attr;
	struct end e;

	srand((unsigned)turn);
	end_open(&e, device);
	lay_out(&e);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	connect_end(&e, "victim", "survivor");
	while (nic_peer_poll(e.nic, e.vi, &attr) == NIC_NOT_DONE)
		;
	board->handle = e.handle;
	nic_store_release(&board->at, (uintptr_t)e.mem); /* pairs with life */
	for (;;)
		work(&e, turn & 1, board->survivor, board->survivor_handle);
}

static bool is_connected(struct end *e)
{
	return nic_vi_state(nic_vi(e->nic, e->vi)) == NIC_VI_CONNECTED;
}

/* In each place is what belongs there, or nothing. */
static bool is_clean(const struct end *e)
{
	for (uint32_t i = 0; i < PLACES * NIC_POSTED_MAX; i++)
		if (e->mem[i] && e->mem[i] != i / NIC_POSTED_MAX + 1)
			return false;
	return true;
}

static void life(struct end *e, int turn)
{
	double until = now() + PATIENCE, end;
	struct nic_vi_attr attr;
	uintptr_t at;
	pid_t child;

	memset(e->mem, 0, PLACES * NIC_POSTED_MAX);
	board->at = 0;
	board->survivor = (uintptr_t)e->mem;
	board->survivor_handle = e->handle;
	child = fork();
	if (child == 0)
		victim(turn);
	connect_end(e, "survivor", "victim");
	while (nic_peer_poll(e->nic, e->vi, &attr) == NIC_NOT_DONE && now() < until)
		;
	while (!(at = nic_load_acquire(&board->at)) && now() < until) /* pairs with victim */
		nic_poll(e->nic);
	can |= e->nic->nactive && e->nic->active[0]->cma;
	for (end = now() + rand() % 3000 / 1e6; now() < end;)
		work(e, !(turn & 1), at, board->handle);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (is_connected(e) && now() < until)
		work(e, !(turn & 1), at, board->handle);
	CHECK(at && !is_connected(e));
	CHECK_EQ(nic_rdma_posted(e->nic), NIC_OK);
	CHECK_EQ(e->nic->nshared, 0);
	CHECK(is_clean(e));
	CHECK_EQ(nic_disconnect(e->nic, e->vi), NIC_OK);
}

static void of_and_to_the_dead(void)
{
	uint64_t cpus[NIC_CPU_WORDS];
	int cores = nic_cores_allowed(cpus);
	struct end e;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(board != MAP_FAILED);
	end_open(&e, device);
	lay_out(&e);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	/* Where both have one processor nobody is there in time: they go on until the system has found another one. */
	for (unsigned i = 0; i < rounds || (can && cores > 1 && !counter(e.nic, "bytes_helped") && i < 20 * rounds); i++) {
		unsigned next = (unsigned)rand();

		life(&e, (int)i);
		srand(next);
		if (i % 1000 == 999)
			fprintf(stderr, "# %u of %u\n", i + 1, rounds);
	}
	printf("# %llu posted, %llu fetched, %llu times some taken back, %llu bytes placed\n", (unsigned long long)counter(e.nic, "rdma_posted"), (unsigned long long)counter(e.nic, "rdma_fetches"),
	       (unsigned long long)counter(e.nic, "shared_taken_back"), (unsigned long long)counter(e.nic, "bytes_helped"));
	if (can) {
		CHECK(counter(e.nic, "rdma_posted") > 0);
		CHECK(counter(e.nic, "rdma_fetches") > 0);
		CHECK(cores == 1 || counter(e.nic, "bytes_helped") > 0);
	}
	end_close(&e);
	munmap(board, sizeof(*board));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)atoi(argv[2]);
	srand(seed);
	snprintf(device, sizeof(device), "posted-%d", (int)getpid());
	CASE(of_and_to_the_dead);
	return check_done();
}
