/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest MPI program that notices a broken transport: each rank sends a
 * short and a long message around the ring, and checks what it gets.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int around(int rank, int size, int bytes)
{
	unsigned char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
	int from = (rank + size - 1) % size, bad = 0;

	memset(out, 'a' + rank, (size_t)bytes);
	memset(in, 0, (size_t)bytes);
	MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 7, in, bytes, MPI_BYTE, from, 7,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < bytes; i++)
		bad += in[i] != 'a' + from;
	free(out);
	free(in);
	return bad;
}

int main(int argc, char **argv)
{
	int rank, size, bad, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	bad = around(rank, size, 8) + around(rank, size, 1 << 20);
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("hello from rank %d of %d, %d wrong bytes\n", rank, size, all);
	MPI_Finalize();
	return all || size < 2;
}
