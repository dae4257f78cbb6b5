/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start: how long MPI_Init takes, and what a process weighs after it and after it has talked to every other one.  One row:
 * seconds of the slowest rank; then, in KB and as the mean over the ranks, the memory of a process in all (PSS: a page of
 * several processes counts in parts), what of it is its own or shared memory (no files), and the same when all peers are
 * connected and nothing is under way.  The growth of the last two with the number of ranks is what an idle peer costs.
 *
 * This is no timed loop, so it knows none of the options of bench.h.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PSS, OWN, OWN_CONNECTED, WEIGHTS };

/* The sum of the lines of smaps_rollup that begin with a key, in KB; a kernel that does not know it gives 0. */
static double rollup(const char *key)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	size_t length = strlen(key);
	char line[256];
	double kb = 0;

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, length))
			kb += atof(line + length);
	if (f)
		fclose(f);
	return kb;
}

static double own(void)
{
	return rollup("Pss_Anon:") + rollup("Pss_Shmem:");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A byte from everybody to everybody, a pair at a time. */
static void talk(int rank, int size)
{
	for (int k = 1; k < size; k++) {
		char out = 1, in = 0;

		MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + k) % size, 0, &in, 1, MPI_CHAR, (rank - k + size) % size, 0,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	double from = seconds(), init, slowest = 0, kb[WEIGHTS], sum[WEIGHTS] = { 0 };
	int rank, size;

	MPI_Init(&argc, &argv);
	init = seconds() - from;
	kb[PSS] = rollup("Pss:");
	kb[OWN] = own();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	talk(rank, size);
	kb[OWN_CONNECTED] = own();
	MPI_Reduce(&init, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(kb, sum, WEIGHTS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("# qnix bench: start of %d ranks\n# MPI_Init (s)    Memory (KB)       Own (KB)  Connected (KB)\n", size);
		printf("%14.3f %14.0f %14.0f %15.0f\n", slowest, sum[PSS] / size, sum[OWN] / size, sum[OWN_CONNECTED] / size);
	}
	MPI_Finalize();
	return 0;
}
