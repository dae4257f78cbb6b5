/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Get bandwidth, one way: rank 0 gets a window of messages from different places of rank 1's memory and flushes once, under one
 * shared lock; rank 1 waits in a barrier, so it makes progress for transports that need it.  As get_rate, the figure is how
 * many gets that are in a second.  With -r rank 0 reads every message after the flush; rank 1 writes nothing meanwhile.
 */
#include "bench.h"

#ifdef RATE
enum { IS_RATE = 1, MOST = 8192 };
#else
enum { IS_RATE = 0, MOST = 4 << 20 };
#endif

static void step(struct bench *b)
{
	if (b->rank)
		return;
	for (int k = 0; k < b->o.window; k++)
		MPI_Get(bench_slot(b, b->in, k), (int)b->bytes, MPI_CHAR, 1, (MPI_Aint)bench_place(b, k), (int)b->bytes, MPI_CHAR, b->win);
	MPI_Win_flush(1, b->win);
	for (int k = 0; b->o.real && k < b->o.window; k++)
		bench_read(bench_slot(b, b->in, k), b->bytes);
}

/* Every place of the window has the same, and each buffer has what was in its place. */
static bool check(struct bench *b, int round)
{
	bool same = true;

	if (b->rank == 1) {
		for (int k = 0; k < b->o.window; k++)
			bench_fill(b->exposed + bench_place(b, k), b->bytes, round);
		MPI_Win_sync(b->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int k = 0; k < b->o.window; k++)
		memset(bench_slot(b, b->in, k), 0, b->bytes);
	step(b);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int k = 0; b->rank == 0 && k < b->o.window; k++)
		same &= bench_same(bench_slot(b, b->in, k), b->bytes, round);
	return same;
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	(void)two;
	*one = IS_RATE ? b->o.window / seconds : (double)b->bytes * b->o.window / seconds / 1e6;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = IS_RATE ? "MPI_Get Rate Test" : "MPI_Get Bandwidth Test", .column = IS_RATE ? "Gets/s" : "Bandwidth (MB/s)", .ranks = 2,
		.o = { .min = 1, .max = MOST, .iterations = 100, .large_iterations = 20, .warmup = 10, .large_warmup = 2, .window = 64,
			.digits = 2 },
		.begin = bench_window_open, .end = bench_window_close, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
