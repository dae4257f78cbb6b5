/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message rate: each rank of the first half sends windows of messages to its partner in the second half; the sum over
 * all pairs, by the slowest of them.  With an odd number of ranks the last one watches.
 */
#include "bench.h"

static int pairs;

static void source(struct bench *b, int peer)
{
	for (int k = 0; k < b->o.window; k++) {
		char *p = bench_slot(b, b->out, k);

		if (b->o.real)
			bench_rewrite(p, b->bytes, b->round + k);
		MPI_Isend(p, (int)b->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &b->req[k]);
	}
	MPI_Waitall(b->o.window, b->req, MPI_STATUSES_IGNORE);
	MPI_Recv(b->in, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sink(struct bench *b, int peer)
{
	for (int k = 0; k < b->o.window; k++)
		MPI_Irecv(bench_slot(b, b->in, k), (int)b->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &b->req[k]);
	MPI_Waitall(b->o.window, b->req, MPI_STATUSES_IGNORE);
	for (int k = 0; k < b->o.window && b->o.real; k++)
		bench_read(bench_slot(b, b->in, k), b->bytes);
	MPI_Send(b->out, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD);
}

static void step(struct bench *b)
{
	if (b->rank < pairs)
		source(b, b->rank + pairs);
	else if (b->rank < 2 * pairs)
		sink(b, b->rank - pairs);
}

static bool check(struct bench *b, int round)
{
	bool real = b->o.real;

	b->o.real = false;
	bench_fill(b->out, b->bytes, round + b->rank);
	memset(b->in, 0, b->bytes);
	step(b);
	b->o.real = real;
	return b->rank < pairs || b->rank >= 2 * pairs || bench_same(b->in, b->bytes, round + b->rank - pairs);
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	double slowest = 0;

	MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	*two = (double)b->o.window * pairs / (slowest > 0 ? slowest : 1);
	*one = *two * (double)b->bytes / 1e6;
}

static void begin(struct bench *b)
{
	pairs = b->size / 2;
	snprintf(b->note, sizeof b->note, "[ pairs: %d ] [ window size: %d ]", pairs, b->o.window);
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Multiple Bandwidth / Message Rate Test", .column = "MB/s", .column2 = "Messages/s", .ranks = 2,
		.o = { .min = 1, .max = 4 << 20, .iterations = 100, .large_iterations = 20, .warmup = 10, .large_warmup = 2, .window = 64,
			.digits = 2 },
		.begin = begin, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
