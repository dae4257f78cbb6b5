/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Get latency: rank 0 gets from the window of rank 1 and flushes, under one shared lock; rank 1 waits in a barrier, so
 * it makes progress for transports that need it.  With -r rank 0 reads what it got; rank 1 writes nothing meanwhile.
 */
#include "bench.h"

static void step(struct bench *b)
{
	if (b->rank)
		return;
	MPI_Get(b->in, (int)b->bytes, MPI_CHAR, 1, 0, (int)b->bytes, MPI_CHAR, b->win);
	MPI_Win_flush(1, b->win);
	if (b->o.real)
		bench_read(b->in, b->bytes);
}

static bool check(struct bench *b, int round)
{
	if (b->rank == 1) {
		bench_fill(b->exposed, b->bytes, round);
		MPI_Win_sync(b->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	memset(b->in, 0, b->bytes);
	step(b);
	MPI_Barrier(MPI_COMM_WORLD);
	return b->rank || bench_same(b->in, b->bytes, round);
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	(void)b, (void)two;
	*one = seconds * 1e6;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI_Get Latency Test", .column = "Latency (us)", .ranks = 2,
		.o = { .min = 1, .max = 4 << 20, .iterations = 10000, .large_iterations = 1000, .warmup = 100, .large_warmup = 10,
			.window = 1, .digits = 2 },
		.begin = bench_window_open, .end = bench_window_close, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
