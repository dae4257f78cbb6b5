/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts from rank after rank, with nothing in between: each root has received the one before, so their times add up, and
 * no barrier shares in them.  The mean time of one.
 */
#include "bench.h"

static void begin(struct bench *b)
{
	b->o.median = false; /* one alone says little: a root leaves before the others have it */
}

static void step(struct bench *b)
{
	MPI_Bcast(b->out, (int)b->bytes, MPI_CHAR, (int)(b->round % b->size), MPI_COMM_WORLD);
}

static bool check(struct bench *b, int round)
{
	memset(b->out, 0, b->bytes);
	if (b->rank == round % b->size)
		bench_fill(b->out, b->bytes, round);
	MPI_Bcast(b->out, (int)b->bytes, MPI_CHAR, round % b->size, MPI_COMM_WORLD);
	return bench_same(b->out, b->bytes, round);
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Broadcast Latency Test, the roots in turn", .column = "Avg Latency(us)", .ranks = 2,
		.o = { .min = 1, .max = 1 << 20, .iterations = 1000, .large_iterations = 100, .warmup = 100, .large_warmup = 10, .window = 1,
			.digits = 2 },
		.begin = begin, .step = step, .check = check, .figures = bench_mean_us,
	};

	return bench_run(&b, argc, argv);
}
