/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stall: all ranks exchange messages for ever, small and large, until one of them is killed from outside.  It is no
 * test by itself: tests/mpi/run kills a rank of it and looks whether the others end and what they leave behind.
 *
 *     stall [SECONDS [WAY]]    ends by itself, and with status 99, after SECONDS (120)
 *
 * WAY is "messages", or "together" for nothing but barriers, broadcasts and reductions, or "groups" for communicators that come and go with
 * collectives under way in them.
 *
 * Each rank prints "stall: rank R pid P starts", and rank 0 "stall: running" once messages flow.
 */
#include "check.h"

enum { MOST = 1 << 20, REDUCED = 4096 /* more is not the NIC's */ };

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
	MPI_Allreduce(MPI_IN_PLACE, data, bytes < REDUCED ? bytes : REDUCED, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

static void groups(unsigned char *out, unsigned char *in, int bytes, long k)
{
	MPI_Request request[3];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < 1 + (int)(k % 3); i++) {
		MPI_Ibcast(out, bytes, MPI_BYTE, (int)(k % check.size), comm, &request[0]);
		MPI_Ibarrier(comm, &request[1]);
		MPI_Ibcast(in, 8, MPI_BYTE, (int)((k + 1) % check.size), comm, &request[2]);
		MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
	}
	MPI_Bcast(out, bytes, MPI_BYTE, (int)(k % check.size), comm);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 8, 8, 3000, 8, 100000, 8, 400, MOST };
	const char *way = argc > 2 ? argv[2] : "messages";
	unsigned char *out, *in;
	long sum;

	check_init(&argc, &argv, "stall", argc > 1 ? (unsigned)atoi(argv[1]) : 120);
	out = check_memory(MOST);
	in = check_memory(MOST);
	printf("stall: rank %d pid %d starts\n", check.rank, (int)getpid());
	fflush(stdout);
	for (long k = 0;; k++) {
		check_at("exchange", k);
		if (!strcmp(way, "together")) {
			together(out, sizes[k % 8], k);
		} else if (!strcmp(way, "groups")) {
			groups(out, in, sizes[k % 8], k);
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
