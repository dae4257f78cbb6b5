/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many ranks on few cores: every collective once or twice, each element compared, and what starting took and what a process
 * weighs when it has talked to all others.  For numbers of ranks at which collectives.c takes too long.
 */
#include <time.h>

#include "check.h"

#define MOST 1000

static int *out, *in;

/* Element i of what rank r sends to rank to. */
static int value(int r, int to, int i)
{
	return r * 7919 + to * 104729 + i * 31;
}

static int total(int i)
{
	int sum = 0;

	for (int r = 0; r < check.size; r++)
		sum += value(r, 0, i);
	return sum;
}

static void fill_for(int to, int n)
{
	for (int i = 0; i < n; i++)
		out[i] = value(check.rank, to, i);
}

static void fill_all(int n)
{
	for (int to = 0; to < check.size; to++)
		for (int i = 0; i < n; i++)
			out[to * n + i] = value(check.rank, to, i);
}

/* Block r of `in` is what rank r sends to rank `to`. */
static void check_blocks(int to, int n)
{
	for (int r = 0; r < check.size; r++)
		for (int i = 0; i < n; i++)
			CHECK(in[r * n + i] == value(r, to, i), "element %d of rank %d is %d", i, r, in[r * n + i]);
}

static void rooted(int n)
{
	int root = check.size - 1;

	fill_for(0, n);
	memcpy(in, out, (size_t)n * sizeof *in);
	MPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(in[i] == value(root, 0, i), "bcast: element %d is %d", i, in[i]);
	MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
	for (int i = 0; i < n && check.rank == root; i++)
		CHECK(in[i] == total(i), "reduce: element %d is %d", i, in[i]);
	MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
	if (check.rank == root)
		check_blocks(0, n);
	fill_all(n);
	MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(in[i] == value(root, check.rank, i), "scatter: element %d is %d", i, in[i]);
	check_group("bcast, reduce, gather, scatter");
}

static void all_to_all(int n)
{
	fill_for(0, n);
	MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(in[i] == total(i), "allreduce: element %d is %d", i, in[i]);
	MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
	check_blocks(0, n);
	fill_all(n);
	MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
	check_blocks(check.rank, n);
	check_group("allreduce, allgather, alltoall");
}

static void partial(int n)
{
	int before = 0;

	for (int r = 0; r < check.rank; r++)
		before += value(r, 0, 0);
	fill_for(0, n);
	MPI_Exscan(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(check.rank == 0 || in[0] == before, "exscan: %d", in[0]);
	MPI_Scan(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(in[0] == before + out[0], "scan: %d", in[0]);
	for (int i = 0; i < check.size * n; i++)
		out[i] = check.rank + i;
	MPI_Reduce_scatter_block(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(in[i] == check.size * (check.size - 1) / 2 + check.size * (check.rank * n + i), "reduce_scatter: element %d is %d", i, in[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	check_group("exscan, scan, reduce_scatter, barrier");
}

/* From everybody to everybody at once, whatever comes first is taken. */
static void any_to_any(void)
{
	int (*got)[2] = malloc((size_t)check.size * sizeof *got), mine[2] = { check.rank, ~check.rank };
	MPI_Request *sends = malloc((size_t)check.size * sizeof *sends);

	for (int r = 0; r < check.size; r++)
		MPI_Isend(mine, 2, MPI_INT, r, 5, MPI_COMM_WORLD, &sends[r]);
	for (int k = 0; k < check.size; k++) {
		MPI_Status status;

		MPI_Recv(got[k], 2, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
		CHECK(got[k][0] == status.MPI_SOURCE && got[k][1] == ~got[k][0], "rank %d says %d", status.MPI_SOURCE, got[k][0]);
	}
	MPI_Waitall(check.size, sends, MPI_STATUSES_IGNORE);
	free(got);
	free(sends);
	check_group("any to any");
}

static long rollup(const char *key)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	size_t len = strlen(key);
	long kb = 0;

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, len))
			kb = atol(line + len);
	if (f)
		fclose(f);
	return kb;
}

int main(int argc, char **argv)
{
	struct timespec from, to;
	long kb;

	clock_gettime(CLOCK_MONOTONIC, &from);
	check_init(&argc, &argv, "many", 90);
	clock_gettime(CLOCK_MONOTONIC, &to);
	kb = rollup("Pss:");
	out = malloc((size_t)check.size * MOST * sizeof *out);
	in = malloc((size_t)check.size * MOST * sizeof *in);
	for (int n = 1; n <= MOST; n *= 1000) {
		rooted(n);
		all_to_all(n);
		partial(n);
	}
	free(out);
	free(in);
	any_to_any();
	if (check.rank == 0)
		printf("  MPI_Init took %.2f s; a process weighed %ld KB (PSS) after it, and %ld KB with all peers connected\n",
		       (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9, kb, rollup("Pss:"));
	CHECK(to.tv_sec - from.tv_sec < 60, "MPI_Init took %ld s", (long)(to.tv_sec - from.tv_sec));
	check_group("start");
	return check_done();
}
