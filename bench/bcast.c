/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast from rank 0 to all; the mean over the ranks of the time in MPI_Bcast.  A barrier between two of them keeps
 * a fast root from running ahead.  With -r the root writes the data before that barrier, and the others' reading counts.
 */
#include "bench.h"

static void step(struct bench *b)
{
	double start;

	if (b->o.real && b->rank == 0)
		bench_rewrite(b->out, b->bytes, b->round);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	MPI_Bcast(b->out, (int)b->bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (b->o.real && b->rank)
		bench_read(b->out, b->bytes);
	b->spent += MPI_Wtime() - start;
}

static bool check(struct bench *b, int round)
{
	bool real = b->o.real;

	b->o.real = false;
	memset(b->out, 0, b->bytes);
	if (b->rank == 0)
		bench_fill(b->out, b->bytes, round);
	step(b);
	b->o.real = real;
	return bench_same(b->out, b->bytes, round);
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Broadcast Latency Test", .column = "Avg Latency(us)", .ranks = 2, .part = true,
		.o = { .min = 1, .max = 1 << 20, .iterations = 1000, .large_iterations = 100, .warmup = 100, .large_warmup = 10, .window = 1,
			.digits = 2 },
		.step = step, .check = check, .figures = bench_mean_us,
	};

	return bench_run(&b, argc, argv);
}
