/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put latency: rank 0 puts into the window of rank 1 and flushes, under one shared lock; rank 1 waits in a barrier, so
 * it makes progress for transports that need it.  With -r rank 0 writes the data before every put.
 */
#include "bench.h"

static void step(struct bench *b)
{
	if (b->rank)
		return;
	if (b->o.real)
		bench_rewrite(b->out, b->bytes, b->round);
	MPI_Put(b->out, (int)b->bytes, MPI_CHAR, 1, 0, (int)b->bytes, MPI_CHAR, b->win);
	MPI_Win_flush(1, b->win);
}


static bool check(struct bench *b, int round)
{
	bool real = b->o.real, same = true;

	b->o.real = false;
	bench_fill(b->out, b->bytes, round);
	MPI_Barrier(MPI_COMM_WORLD);
	step(b);
	MPI_Barrier(MPI_COMM_WORLD);
	b->o.real = real;
	if (b->rank == 1) {
		MPI_Win_sync(b->win);
		same = bench_same(b->exposed, b->bytes, round);
	}
	return same;
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	(void)b, (void)two;
	*one = seconds * 1e6;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI_Put Latency Test", .column = "Latency (us)", .ranks = 2,
		.o = { .min = 1, .max = 4 << 20, .iterations = 10000, .large_iterations = 1000, .warmup = 100, .large_warmup = 10,
			.window = 1, .digits = 2 },
		.begin = bench_window_open, .end = bench_window_close, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
