/* SPDX-License-Identifier: BSD-3-Clause */
/* Bidirectional bandwidth: ranks 0 and 1 send each other a window of messages at the same time. */
#include "bench.h"

static void exchange(struct bench *b, int peer)
{
	const int n = b->o.window;

	for (int k = 0; k < n; k++)
		MPI_Irecv(bench_slot(b, b->in, k), (int)b->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &b->req[k]);
	for (int k = 0; k < n; k++) {
		char *p = bench_slot(b, b->out, k);

		if (b->o.real)
			bench_rewrite(p, b->bytes, b->round + k);
		MPI_Isend(p, (int)b->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &b->req[n + k]);
	}
	MPI_Waitall(2 * n, b->req, MPI_STATUSES_IGNORE);
	for (int k = 0; k < n && b->o.real; k++)
		bench_read(bench_slot(b, b->in, k), b->bytes);
}

static void step(struct bench *b)
{
	if (b->rank < 2)
		exchange(b, 1 - b->rank);
}

static bool check(struct bench *b, int round)
{
	bool real = b->o.real;

	if (b->rank > 1)
		return true;
	b->o.real = false;
	bench_fill(b->out, b->bytes, round + b->rank);
	memset(b->in, 0, b->bytes);
	step(b);
	b->o.real = real;
	return bench_same(b->in, b->bytes, round + 1 - b->rank);
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	(void)two;
	*one = 2 * (double)b->bytes * b->o.window / seconds / 1e6;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Bi-Directional Bandwidth Test", .column = "Bandwidth (MB/s)", .ranks = 2,
		.o = { .min = 1, .max = 4 << 20, .iterations = 100, .large_iterations = 20, .warmup = 10, .large_warmup = 2, .window = 64,
			.digits = 2 },
		.step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
