/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking barrier: its time, and how much of it goes on while the ranks compute. */
#include "overlap.h"

static MPI_Request start(struct bench *b)
{
	MPI_Request request;

	(void)b;
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	return request;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Non-blocking Barrier Latency Test", .column = "Pure Comm.(us)", .column2 = "Overlap(%)", .ranks = 2, .part = true,
		.no_sizes = true,
		.o = { .max = 64, .iterations = 10000, .large_iterations = 10000, .warmup = 200, .large_warmup = 200, .window = 1, .digits = 2 },
		.begin = overlap_begin, .step = overlap_step, .figures = overlap_figures,
	};

	overlap.start = start;
	return bench_run(&b, argc, argv);
}
