/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put bandwidth, one way: rank 0 puts a window of messages to different places of rank 1's memory and flushes once, under one
 * shared lock; rank 1 waits in a barrier, so it makes progress for transports that need it.  As put_rate, the figure is how
 * many puts that are in a second.  With -r rank 0 writes every message before its put.
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
	for (int k = 0; k < b->o.window; k++) {
		char *p = bench_slot(b, b->out, k);

		if (b->o.real)
			bench_rewrite(p, b->bytes, b->round + k);
		MPI_Put(p, (int)b->bytes, MPI_CHAR, 1, (MPI_Aint)bench_place(b, k), (int)b->bytes, MPI_CHAR, b->win);
	}
	MPI_Win_flush(1, b->win);
}

/* Every place of the window has what was put there last. */
static bool check(struct bench *b, int round)
{
	bool real = b->o.real, same = true;

	b->o.real = false; /* one slot, and its content stays what is filled in here */
	bench_fill(b->out, b->bytes, round);
	MPI_Barrier(MPI_COMM_WORLD);
	step(b);
	MPI_Barrier(MPI_COMM_WORLD);
	b->o.real = real;
	if (b->rank != 1)
		return true;
	MPI_Win_sync(b->win);
	for (int k = 0; k < b->o.window; k++)
		same &= bench_same(b->exposed + bench_place(b, k), b->bytes, round);
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
		.title = IS_RATE ? "MPI_Put Rate Test" : "MPI_Put Bandwidth Test", .column = IS_RATE ? "Puts/s" : "Bandwidth (MB/s)", .ranks = 2,
		.o = { .min = 1, .max = MOST, .iterations = 100, .large_iterations = 20, .warmup = 10, .large_warmup = 2, .window = 64,
			.digits = 2 },
		.begin = bench_window_open, .end = bench_window_close, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
