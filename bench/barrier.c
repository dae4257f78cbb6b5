/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier: one MPI_Barrier after the other over all ranks; mean time of one. */
#include "bench.h"

static void step(struct bench *b)
{
	(void)b;
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Barrier Latency Test", .column = "Avg Latency(us)", .ranks = 2, .no_sizes = true,
		.o = { .max = 64, .iterations = 10000, .large_iterations = 10000, .warmup = 200, .large_warmup = 200, .window = 1, .digits = 2 },
		.step = step, .figures = bench_mean_us,
	};

	return bench_run(&b, argc, argv);
}
