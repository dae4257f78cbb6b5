/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking broadcast from rank 0: its time, and how much of it goes on while the ranks compute. */
#include "overlap.h"

static MPI_Request start(struct bench *b)
{
	MPI_Request request;

	MPI_Ibcast(b->out, (int)b->bytes, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
	return request;
}

static bool check(struct bench *b, int round)
{
	MPI_Request request;

	memset(b->out, 0, b->bytes);
	if (b->rank == 0)
		bench_fill(b->out, b->bytes, round);
	request = start(b);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return bench_same(b->out, b->bytes, round);
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Non-blocking Broadcast Latency Test", .column = "Pure Comm.(us)", .column2 = "Overlap(%)", .ranks = 2, .part = true,
		.o = { .min = 1, .max = 1 << 20, .iterations = 1000, .large_iterations = 100, .warmup = 100, .large_warmup = 10, .window = 1,
			.digits = 2 },
		.begin = overlap_begin, .step = overlap_step, .check = check, .figures = overlap_figures,
	};

	overlap.start = start;
	return bench_run(&b, argc, argv);
}
