/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stall: all ranks exchange messages for ever, small and large, until one of them is killed from outside.  It is no
 * test by itself: tests/mpi/run kills a rank of it and looks whether the others end and what they leave behind.
 *
 *     stall [SECONDS [WAY]]    ends by itself, and with status 99, after SECONDS (120)
 *
 * WAY is "messages", or "together" for nothing but barriers and broadcasts.
 *
 * Each rank prints "stall: rank R pid P" when it starts, and rank 0 "stall: running" once messages flow.
 */
#include "check.h"

enum { MOST = 1 << 20 };

static void exchange(unsigned char *out, unsigned char *in, int bytes)
{
	for (int d = 1; d < check.size; d++) {
		int to = (check.rank + d) % check.size, from = (check.rank + check.size - d) % check.size;

		MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void together(unsigned char *data, int bytes, long k)
{
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Bcast(data, bytes, MPI_BYTE, (int)(k % check.size), MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 8, 8, 3000, 8, 100000, 8, 400, MOST };
	bool collective = argc > 2 && !strcmp(argv[2], "together");
	unsigned char *out, *in;
	long sum;

	check_init(&argc, &argv, "stall", argc > 1 ? (unsigned)atoi(argv[1]) : 120);
	out = check_memory(MOST);
	in = check_memory(MOST);
	printf("stall: rank %d pid %d\n", check.rank, (int)getpid());
	fflush(stdout);
	for (long k = 0;; k++) {
		check_at("exchange", k);
		if (collective) {
			together(out, sizes[k % 8], k);
		} else {
			exchange(out, in, sizes[k % 8]);
			MPI_Allreduce(&k, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		}
		if (k == 100 && check.rank == 0) {
			printf("stall: running\n");
			fflush(stdout);
		}
	}
}
