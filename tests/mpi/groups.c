/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators as groups that broadcast and wait together: more of them than a NIC has room for, made and freed while others
 * are in use; collectives under way on many at once, started in different orders by different ranks; the first use of one a
 * non-blocking call that others are late for; one freed right after a broadcast that others have yet to take; data in pieces
 * and of many sizes, from roots in turn, their datatypes freed early; messages from point to point in between;
 * and how often opal_progress is told to come by for them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

#include <dlfcn.h>

enum { COMMS = 40, MOST = 3 << 20 };

static unsigned char *data;

static unsigned char byte(long key, size_t i)
{
	return (unsigned char)(key * 131 + (long)i * 7 + (long)(i >> 8));
}

static void fill(unsigned char *p, long key, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte(key, i);
}

static void expect(const char *what, const unsigned char *p, long key, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] == byte(key, i))
		i++;
	CHECK(i == n, "%s: byte %zu of %zu is %d, not %d", what, i, n, i < n ? p[i] : 0, i < n ? byte(key, i) : 0);
}

static void cast(const char *what, MPI_Comm comm, int root, long key, size_t n)
{
	int me;

	MPI_Comm_rank(comm, &me);
	if (me == root)
		fill(data, key, n);
	else
		memset(data, 0x55, n);
	MPI_Bcast(data, (int)n, MPI_BYTE, root, comm);
	expect(what, data, key, n);
}

/* The first use is a non-blocking barrier that the others come late for: whoever called it goes on. */
static void first_use(void)
{
	MPI_Request barrier;
	MPI_Comm comm;
	int token = 7;

	check_at("first use", 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (check.rank == 0) {
		MPI_Ibarrier(comm, &barrier);
		for (int i = 1; i < check.size; i++)
			MPI_Ssend(&token, 1, MPI_INT, i, 0, comm);
	} else {
		MPI_Recv(&token, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
		MPI_Ibarrier(comm, &barrier);
	}
	MPI_Wait(&barrier, MPI_STATUS_IGNORE);
	CHECK(token == 7, "token is %d", token);
	MPI_Comm_free(&comm);
	check_group("a first use that does not wait");
}

static void sizes(void)
{
	static const size_t n[] = { 1, 7, 16, 17, 64, 512, 513, 4096, 8192, 8320, 8321, 32896, 32897, 65536, 65537, 262144, 262145, 1 << 20, MOST };

	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++)
		for (int root = 0; root < check.size; root++) {
			check_at("sizes", (long)n[i]);
			cast("sizes", MPI_COMM_WORLD, root, root + (long)n[i], n[i]);
		}
	check_group("sizes");
}

/* So many broadcasts from the roots given, in turn; how many of them the NICs did. */
static long long nics(size_t n, const int *root, int roots)
{
	struct check_counter broadcasts = check_counter_watch("broadcasts");

	for (int i = 0; i < 12; i++)
		cast("turns", MPI_COMM_WORLD, root[i % roots], i + (long)n, n);
	return check_counter_end(&broadcasts);
}

/* Between two ranks, broadcasts of middle lengths from another root than the last one's are messages. */
static void turns(void)
{
	static const size_t n[] = { 1023, 1024, 3000, 32768, 32769 };
	const char *btl = getenv("OMPI_MCA_btl");
	bool beside = btl && !strstr(btl, "qnix"), pair = check.size == 2 && !beside;
	bool counted = !beside && !getenv("QNIX_ARCH"); /* another architecture counts messages */

	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		long long turned, kept;

		check_at("turns", (long)n[i]);
		cast("turns", MPI_COMM_WORLD, 1, 1, 1);
		turned = nics(n[i], (int[]){ 0, 1 }, 2);
		kept = nics(n[i], (int[]){ 1 }, 1);
		CHECK(kept > 0 || !counted, "%zu bytes: the NICs do none", n[i]);
		CHECK(!counted || turned == (pair && n[i] >= 1024 && n[i] <= 32768 ? 0 : kept), "%zu bytes: of broadcasts in turn the NICs do %lld, else %lld", n[i], turned, kept);
	}
	check_group("turns");
}

/* A rank that makes room for less than is broadcast hears of that, and nobody else; all go on. */
static void too_little_room(void)
{
	bool last = check.rank == check.size - 1;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* Open MPI 4.1 asks that one of requests */
	for (int k = 0; k < 6; k++) {
		int rc, class = MPI_SUCCESS, bytes = k & 1 ? 40 : 3000;
		MPI_Request request;

		check_at("too little room", k);
		if (k < 4) {
			rc = MPI_Bcast(data, last ? bytes / 2 : bytes, MPI_BYTE, 0, comm);
		} else {
			MPI_Ibcast(data, last ? bytes / 2 : bytes, MPI_BYTE, 0, comm, &request);
			rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		MPI_Error_class(rc, &class);
		CHECK(class == (last ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "broadcast %d: error class %d", k, class);
		MPI_Barrier(comm);
		cast("after too little room", comm, k % check.size, k, 500);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&comm);
	check_group("too little room");
}

/* A rank leaves at once what others have not taken yet; its buffers must not change under them. */
static void freed_early(void)
{
	for (int round = 0; round < 60; round++) {
		MPI_Comm comm;

		check_at("freed early", round);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Barrier(comm);
		if (check.rank != round % check.size)
			usleep(200);
		for (int k = 0; k < 3; k++)
			cast("freed early", comm, round % check.size, round * 3 + k, 3000 + (size_t)k * 6000);
		MPI_Comm_free(&comm);
	}
	check_group("communicators freed right after a broadcast");
}

static void splits(void)
{
	for (int round = 0; round < 50; round++) {
		int colour = (check.rank >> round % 3) & 1, me, size;
		MPI_Comm half, twin;

		check_at("splits", round);
		MPI_Comm_split(MPI_COMM_WORLD, colour, round & 1 ? -check.rank : check.rank, &half);
		MPI_Comm_rank(half, &me);
		MPI_Comm_size(half, &size);
		MPI_Barrier(half);
		MPI_Comm_dup(half, &twin);
		cast("splits", half, round % size, 1000 * colour + round, 100);
		cast("splits", twin, (round + 1) % size, 2000 * colour + round, 10000);
		MPI_Comm_free(&half);
		MPI_Barrier(twin);
		MPI_Comm_free(&twin);
	}
	check_group("splits and their duplicates, freed in another order");
}

/* More communicators than groups, all with collectives under way; odd ranks start them from the last to the first. */
static void many(void)
{
	static MPI_Comm comm[COMMS];
	static MPI_Request request[COMMS][4];
	static unsigned char buffer[COMMS][2][9000];

	for (int i = 0; i < COMMS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int round = 0; round < 10; round++) {
		for (int k = 0; k < COMMS; k++) {
			int i = check.rank & 1 ? COMMS - 1 - k : k, root = (i + round) % check.size;

			check_at("many", round * COMMS + i);
			for (int b = 0; b < 2; b++) {
				if (check.rank == root)
					fill(buffer[i][b], i + b + round, 9000);
				else
					memset(buffer[i][b], 0, 9000);
			}
			MPI_Ibcast(buffer[i][0], i & 1 ? 9000 : 9, MPI_BYTE, root, comm[i], &request[i][0]);
			MPI_Ibarrier(comm[i], &request[i][1]);
			MPI_Ibcast(buffer[i][1], 40 + i, MPI_BYTE, root, comm[i], &request[i][2]);
			MPI_Ibarrier(comm[i], &request[i][3]);
		}
		MPI_Waitall(4 * COMMS, &request[0][0], MPI_STATUSES_IGNORE);
		for (int i = 0; i < COMMS; i++) {
			expect("many, first", buffer[i][0], i + round, i & 1 ? 9000 : 9);
			expect("many, second", buffer[i][1], i + 1 + round, 40 + (size_t)i);
		}
	}
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comm[i]);
	check_group("many communicators at once, in different orders");
}

/* More broadcasts of one communicator than the NIC has places, while everybody waits for another one first. */
static void piled_up(void)
{
	enum { PILE = 100 };
	static unsigned char pile[PILE][20000];
	MPI_Request request[PILE], last;
	unsigned char one[100];
	MPI_Comm a, b;

	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_dup(MPI_COMM_WORLD, &b);
	MPI_Barrier(a);
	MPI_Barrier(b);
	for (int first = 0; first < 2; first++) {
		check_at("piled up", first);
		fill(one, first, sizeof(one));
		if (check.rank == 0)
			for (int i = 0; i < PILE; i++)
				fill(pile[i], i + first, sizeof(pile[i]));
		else
			memset(one, 0, sizeof(one));
		if ((check.rank == 0) != first) {
			for (int i = 0; i < PILE; i++)
				MPI_Ibcast(pile[i], sizeof(pile[i]), MPI_BYTE, 0, a, &request[i]);
			MPI_Ibcast(one, sizeof(one), MPI_BYTE, 0, b, &last);
			MPI_Wait(&last, MPI_STATUS_IGNORE);
		} else {
			MPI_Ibcast(one, sizeof(one), MPI_BYTE, 0, b, &last);
			MPI_Wait(&last, MPI_STATUS_IGNORE);
			for (int i = 0; i < PILE; i++)
				MPI_Ibcast(pile[i], sizeof(pile[i]), MPI_BYTE, 0, a, &request[i]);
		}
		MPI_Waitall(PILE, request, MPI_STATUSES_IGNORE);
		expect("the other one", one, first, sizeof(one));
		for (int i = 0; i < PILE; i++)
			expect("piled up", pile[i], i + first, sizeof(pile[i]));
	}
	MPI_Comm_free(&a);
	MPI_Comm_free(&b);
	check_group("a pile of broadcasts, and another one first");
}

static void pieces(void)
{
	MPI_Datatype column;
	int grid[64][8];

	MPI_Type_vector(64, 2, 8, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int root = 0; root < check.size; root++) {
		bool good = true;

		for (int i = 0; i < 64 * 8; i++)
			grid[i / 8][i % 8] = check.rank == root ? i : -1;
		MPI_Bcast(&grid[0][3], 1, column, root, MPI_COMM_WORLD);
		for (int i = 0; i < 64 * 8; i++)
			good &= grid[i / 8][i % 8] == (check.rank == root || i % 8 == 3 || i % 8 == 4 ? i : -1);
		CHECK(good, "a column from rank %d", root);
		/* The same signature, in one piece at the others. */
		int flat[128];

		for (int i = 0; i < 128; i++)
			flat[i] = -1;
		if (check.rank == root)
			MPI_Bcast(&grid[0][3], 1, column, root, MPI_COMM_WORLD);
		else
			MPI_Bcast(flat, 128, MPI_INT, root, MPI_COMM_WORLD);
		for (int i = 0; i < 128 && check.rank != root; i++)
			CHECK(flat[i] == i / 2 * 8 + 3 + i % 2, "a flat column from rank %d: element %d is %d", root, i, flat[i]);
	}
	MPI_Type_free(&column);
	check_group("data in pieces");
}

/* A datatype is freed while broadcasts of it are under way; some of them wait for their turn, the last rank comes late. */
static void types_freed_early(void)
{
	enum { ROUNDS = 20, BATCH = 12, N = 40 };
	static int grid[BATCH][2 * N];
	MPI_Request request[BATCH];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int round = 0; round < ROUNDS; round++) {
		int root = round % check.size;

		check_at("types freed early", round);
		if (check.rank == check.size - 1)
			usleep(1000);
		for (int b = 0; b < BATCH; b++) {
			MPI_Datatype type;

			for (int i = 0; i < 2 * N; i++)
				grid[b][i] = check.rank == root ? round + b + i : -1;
			if (b & 1)
				MPI_Type_vector(N, 1, 2, MPI_INT, &type);
			else
				MPI_Type_contiguous(N, MPI_INT, &type);
			MPI_Type_commit(&type);
			MPI_Ibcast(grid[b], 1, type, root, comm, &request[b]);
			MPI_Type_free(&type);
		}
		MPI_Waitall(BATCH, request, MPI_STATUSES_IGNORE);
		for (int b = 0; b < BATCH; b++)
			for (int i = 0; i < 2 * N; i++) {
				bool sent = b & 1 ? i % 2 == 0 : i < N;

				CHECK(grid[b][i] == (sent || check.rank == root ? round + b + i : -1),
				      "round %d, broadcast %d: number %d is %d", round, b, i, grid[b][i]);
			}
	}
	MPI_Comm_free(&comm);
	check_group("datatypes freed while they are under way");
}

static void mixed(void)
{
	int right = (check.rank + 1) % check.size, left = (check.rank + check.size - 1) % check.size;

	for (int round = 0; round < 200; round++) {
		MPI_Request r[3];
		int out = round * 100 + check.rank, in = -1;
		unsigned char small[200];

		check_at("mixed", round);
		if (check.rank == round % check.size)
			fill(small, round, sizeof(small));
		MPI_Irecv(&in, 1, MPI_INT, left, round, MPI_COMM_WORLD, &r[0]);
		MPI_Ibcast(small, sizeof(small), MPI_BYTE, round % check.size, MPI_COMM_WORLD, &r[1]);
		MPI_Isend(&out, 1, MPI_INT, right, round, MPI_COMM_WORLD, &r[2]);
		if (round % 3 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
		MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
		CHECK(in == round * 100 + left, "round %d: %d from the left", round, in);
		expect("mixed", small, round, sizeof(small));
	}
	check_group("messages in between");
}

/* Nobody leaves a barrier before the last has come. */
static void order(void)
{
	for (int round = 0; round < 300; round++) {
		int late = round % check.size, before = 0, come = 0;
		MPI_Request r;

		check_at("order", round);
		if (check.rank == late) {
			for (int i = 0; i < check.size; i++)
				if (i != late)
					MPI_Send(&round, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
		} else {
			MPI_Irecv(&before, 1, MPI_INT, late, 1, MPI_COMM_WORLD, &r);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (check.rank == late)
			continue;
		while (!come)
			MPI_Test(&r, &come, MPI_STATUS_IGNORE);
		CHECK(before == round, "round %d: %d", round, before);
	}
	check_group("barriers wait for the last");
}

/* ---- opal_progress, whose registrations come by here: this program's symbols are found before Open MPI's ------------------------ */

typedef int progress_fn(void);
__attribute__((visibility("default"))) int opal_progress_register(progress_fn *fn);
__attribute__((visibility("default"))) int opal_progress_unregister(progress_fn *fn);

static int calls, polling; /* of or for functions of this project: how many there were, how many come by now */

static int hand_on(const char *name, progress_fn *fn, int change)
{
	void *symbol = dlsym(RTLD_NEXT, name), *at = NULL;
	int (*real)(progress_fn *) = NULL;
	Dl_info info = { .dli_fname = NULL };

	memcpy(&at, &fn, sizeof(fn)); /* as POSIX means it, and ISO C has no words for */
	memcpy(&real, &symbol, sizeof(real));
	if (dladdr(at, &info) && info.dli_fname && strstr(info.dli_fname, "qnix.so")) {
		calls++;
		polling += change;
	}
	return real ? real(fn) : -1;
}

int opal_progress_register(progress_fn *fn)
{
	return hand_on(__func__, fn, 1);
}

int opal_progress_unregister(progress_fn *fn)
{
	return hand_on(__func__, fn, -1);
}

/* It is told once of many requests, not of each; and when there has been none for a while, all is as `before` the first. */
static void polled(int before)
{
	enum { REQUESTS = 200, PASSES = 5000 };
	int to = (check.rank + 1) % check.size, token = 0, flag = 1;
	MPI_Request request;

	check_at("polled", 0);
	calls = 0;
	for (int i = 0; i < REQUESTS; i++) {
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	CHECK(calls <= 2, "%d requests, and opal_progress was told %d times", REQUESTS, calls);
	MPI_Irecv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &request);
	for (int i = 0; i < PASSES; i++)
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag, "a message that was not sent yet");
	CHECK(polling == before, "%d come by after %d passes without a request, %d did before the first", polling, PASSES, before);
	MPI_Barrier(MPI_COMM_WORLD); /* all have looked */
	MPI_Send(&token, 1, MPI_INT, to, 9, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_group("polled");
}

int main(int argc, char **argv)
{
	int before;

	check_init(&argc, &argv, "groups", 90);
	before = polling;
	data = malloc(MOST);
	first_use();
	sizes();
	turns();
	too_little_room();
	pieces();
	types_freed_early();
	order();
	mixed();
	freed_early();
	splits();
	many();
	piled_up();
	polled(before);
	free(data);
	return check_done();
}
