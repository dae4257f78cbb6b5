/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of MPI_Alloc_mem: as buffer of messages at either end and both, allocated and freed in between, as memory of
 * windows, in requests that no pool can meet, and after MPI_Finalize, which it was not freed before.
 *
 * `allocmem shared` also wants it to lie in a shared mapping, as that of a NIC's card does, but for what no card holds.
 */
#include "check.h"

enum { BIGGEST = 3 << 20, CELLS = 5000 };

static const int sizes[] = { 1, 100, 8192, 8193, 20000, 65536, 262144 + 3, BIGGEST };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static char *allocate(size_t bytes)
{
	char *p = NULL;

	if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &p) != MPI_SUCCESS || !p) {
		fprintf(stderr, "allocmem: rank %d: no memory for %zu bytes\n", check.rank, bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* Is the mapping that holds it marked `s' in /proc/self/maps? */
static bool is_shared(const void *p)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], rights[8];
	bool shared = false;

	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && (unsigned long)p - from < to - from)
			shared = rights[3] == 's';
	if (maps)
		fclose(maps);
	return shared;
}

static void run_mapping(void)
{
	char *p = allocate(100), *big = allocate(BIGGEST);

	CHECK(is_shared(p) && is_shared(big), "the memory is this process's own");
	MPI_Free_mem(p);
	MPI_Free_mem(big);
	check_group("in a shared mapping");
}

/* ---- messages ---- */

/* To the right, from the left; several rounds, so that registrations are found again. */
static void exchange(char *out, char *in, int number)
{
	const int right = (check.rank + 1) % check.size, left = (check.rank + check.size - 1) % check.size;

	for (int k = 0; k < SIZES; k++) {
		const uint64_t n = (uint64_t)(number * SIZES + k);

		check_at("exchange, size", sizes[k]);
		check_fill(out, (size_t)sizes[k], check_key((unsigned)check.rank, (unsigned)right, n));
		memset(in, 0, (size_t)sizes[k]);
		MPI_Sendrecv(out, sizes[k], MPI_BYTE, right, 1, in, sizes[k], MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(check_differs(in, (size_t)sizes[k], check_key((unsigned)left, (unsigned)check.rank, n)) < 0,
		      "%d bytes, round %d: wrong data", sizes[k], number);
	}
}

static void run_buffers(void)
{
	char *shared[2] = { allocate(BIGGEST), allocate(BIGGEST) }, *own[2] = { check_memory(BIGGEST), check_memory(BIGGEST) };

	for (int round = 0; round < 8; round++) {
		exchange(shared[0], shared[1], round);
		exchange(shared[0], own[1], round);
		exchange(own[0], shared[1], round);
		exchange(shared[1], shared[0], round);
	}
	for (int k = 0; k < 2; k++) {
		MPI_Free_mem(shared[k]);
		free(own[k]);
	}
	check_group("buffers of messages");
}

/* The same addresses again and again, of other sizes: what is cached about them must not mislead. */
static void run_churn(void)
{
	for (int round = 0; round < 40; round++) {
		char *hole = allocate((size_t)(round % 7 + 1) * 30000), *out = allocate(BIGGEST), *in;

		MPI_Free_mem(hole);
		in = allocate(BIGGEST);
		exchange(out, in, round);
		MPI_Free_mem(out);
		if (round % 3 == 0) {
			out = allocate(BIGGEST);
			exchange(out, in, round);
			MPI_Free_mem(out);
		}
		MPI_Free_mem(in);
	}
	check_group("allocated and freed");
}

static void run_many(void)
{
	enum { N = 600 };
	char *p[N];

	for (int k = 0; k < N; k++) {
		p[k] = allocate((size_t)k * 37 + 1);
		check_fill(p[k], (size_t)k * 37 + 1, (uint64_t)k);
	}
	for (int k = 0; k < N; k += 2)
		MPI_Free_mem(p[k]);
	for (int k = 1; k < N; k += 2) {
		CHECK(check_differs(p[k], (size_t)k * 37 + 1, (uint64_t)k) < 0, "block %d has changed", k);
		MPI_Free_mem(p[k]);
	}
	check_group("many at once");
}

/* Taken and freed in any order: no two blocks that are in use meet, whatever of them is given out again. */
static void run_again(bool shared)
{
	enum { SLOTS = 40, TURNS = 3000 };
	size_t size[SLOTS] = { 0 };
	char *p[SLOTS] = { NULL }, *first;
	uint32_t random = 1 + (uint32_t)check.rank;

	for (int turn = 0; turn < TURNS; turn++) {
		int k;

		random = random * 1664525 + 1013904223;
		k = (int)(random >> 8) % SLOTS;
		check_at("again and again", turn);
		if (p[k]) {
			CHECK(check_differs(p[k], size[k], (uint64_t)k) < 0, "a block of %zu bytes has changed", size[k]);
			MPI_Free_mem(p[k]);
			p[k] = NULL;
			continue;
		}
		size[k] = 1 + (random >> 4) % (1u << (6 + random % 14));
		p[k] = allocate(size[k]);
		check_fill(p[k], size[k], (uint64_t)k);
	}
	for (int k = 0; k < SLOTS; k++)
		if (p[k])
			MPI_Free_mem(p[k]);
	first = allocate(100000);
	check_fill(first, 100000, 7);
	MPI_Free_mem(first);
	first = allocate(100000);
	CHECK(!shared || check_differs(first, 100000, 7) < 0, "a block that was freed is made anew");
	MPI_Free_mem(first);
	check_group("again and again");
}

/* More than there is address space for in any pool: the C library's turn; a page of it is touched. */
static void run_huge(bool shared)
{
	struct check_counter unmet = check_counter_watch("no_heap");
	long long counted;
	char *p = NULL;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (MPI_Alloc_mem((MPI_Aint)40 << 30, MPI_INFO_NULL, &p) == MPI_SUCCESS) {
		p[0] = 1;
		CHECK(!shared || !is_shared(p), "40 GB in a shared mapping");
		CHECK(MPI_Free_mem(p) == MPI_SUCCESS, "MPI_Free_mem");
	}
	counted = check_counter_end(&unmet);
	CHECK(!shared || counted == 1, "what the card could not meet: %lld counted", counted);
	check_group("more than the card holds");
}

/* ---- windows ---- */

static void run_window(void)
{
	const MPI_Aint bytes = CELLS * sizeof(long);
	const int right = (check.rank + 1) % check.size, left = (check.rank + check.size - 1) % check.size;
	long *cells = (long *)(void *)allocate((size_t)bytes), *out = (long *)(void *)allocate((size_t)bytes),
	     *back = (long *)(void *)allocate((size_t)bytes);
	long sum = 0, one = 1;
	MPI_Win win;

	memset(cells, 0, (size_t)bytes);
	if (!CHECK(MPI_Win_create(cells, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS,
	           "this MPI cannot make such a window over this transport")) {
		check_group("memory of a window");
		return;
	}
	for (int round = 0; round < 50; round++) {
		const int n = round % 2 ? CELLS - 1 : 1 + round;

		check_at("window, round", round);
		check_fill(out, (size_t)n * sizeof(long), check_key((unsigned)check.rank, 0, (uint64_t)round));
		MPI_Win_fence(0, win);
		MPI_Put(out, n, MPI_LONG, right, 0, n, MPI_LONG, win);
		MPI_Win_fence(0, win);
		CHECK(check_differs(cells, (size_t)n * sizeof(long), check_key((unsigned)left, 0, (uint64_t)round)) < 0,
		      "put, round %d: wrong data", round);
		MPI_Get(back, n, MPI_LONG, right, 0, n, MPI_LONG, win);
		MPI_Fetch_and_op(&one, &sum, MPI_LONG, right, CELLS - 1, MPI_SUM, win);
		MPI_Win_fence(0, win);
		CHECK(check_differs(back, (size_t)n * sizeof(long), check_key((unsigned)check.rank, 0, (uint64_t)round)) < 0,
		      "get, round %d: wrong data", round);
		CHECK(sum == round, "fetch_and_op: %ld, not %d", sum, round);
	}
	MPI_Win_free(&win);
	MPI_Free_mem(cells);
	MPI_Free_mem(out);
	MPI_Free_mem(back);
	check_group("memory of a window");
}

/* The elements of a list, each attached by itself: far more than osc/rdma attaches if they share no page. */
static void run_small(void)
{
	enum { BLOCKS = 200 };
	long *block[BLOCKS], value[BLOCKS];
	MPI_Aint mine[BLOCKS], *all;
	MPI_Comm comm;
	MPI_Win win;
	int rank, size;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	all = check_memory((size_t)size * sizeof(mine));
	if (!CHECK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win) == MPI_SUCCESS, "no dynamic window over this transport")) {
		check_group("small blocks");
		return;
	}
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = (long *)(void *)allocate(2 * sizeof(long));
		block[i][0] = -1;
		value[i] = 1000 * rank + i;
		if (MPI_Win_attach(win, block[i], 2 * sizeof(long)) != MPI_SUCCESS) {
			fprintf(stderr, "block %d of %d cannot be attached\n", i, BLOCKS);
			MPI_Abort(MPI_COMM_WORLD, 1); /* Open MPI 4.1 hangs in what comes after that */
		}
		MPI_Get_address(block[i], &mine[i]);
	}
	MPI_Allgather(mine, BLOCKS, MPI_AINT, all, BLOCKS, MPI_AINT, comm);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < BLOCKS; i++)
		MPI_Put(&value[i], 1, MPI_LONG, (rank + 1) % size, all[(rank + 1) % size * BLOCKS + i], 1, MPI_LONG, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(comm);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(block[i][0] == 1000L * ((rank + size - 1) % size) + i, "block %d has %ld", i, block[i][0]);
	for (int i = 0; i < BLOCKS; i++)
		MPI_Win_detach(win, block[i]);
	MPI_Win_free(&win);
	for (int i = 0; i < BLOCKS; i++)
		MPI_Free_mem(block[i]);
	MPI_Comm_free(&comm);
	free(all);
	check_group("small blocks");
}

int main(int argc, char **argv)
{
	char *left;
	bool shared;

	check_init(&argc, &argv, "allocmem", 60);
	shared = argc > 1 && !strcmp(argv[1], "shared");
	if (shared)
		run_mapping();
	run_buffers();
	run_churn();
	run_many();
	run_again(shared);
	run_huge(shared);
	run_window();
	run_small();
	left = allocate(BIGGEST);
	check_fill(left, BIGGEST, 5);
	if (check_done())
		return 1;
	if (check_differs(left, BIGGEST, 5) < 0)
		return 0;
	printf("FAIL allocmem: memory that was not freed has changed in MPI_Finalize\n");
	return 1;
}
