/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allreduce: the sum of a vector of MPI_INT over all ranks; the mean over the ranks of the time in MPI_Allreduce.  With
 * -r every rank writes its vector before the barrier that precedes the call, and reading the result counts.
 */
#include "bench.h"

static int length(const struct bench *b)
{
	return (int)(b->bytes / sizeof(int));
}

static void begin(struct bench *b)
{
	if (b->o.min < sizeof(int))
		b->o.min = sizeof(int);
}

static void step(struct bench *b)
{
	double start;

	if (b->o.real)
		bench_rewrite(b->out, b->bytes, b->round);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	MPI_Allreduce(b->out, b->in, length(b), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (b->o.real)
		bench_read(b->in, b->bytes);
	b->spent += MPI_Wtime() - start;
}

static bool check(struct bench *b, int round)
{
	const int n = length(b), ranks = b->size * (b->size + 1) / 2;
	int *out = (int *)b->out, *in = (int *)b->in;
	bool real = b->o.real, same = true;

	b->o.real = false;
	for (int i = 0; i < n; i++) {
		out[i] = (b->rank + 1) * (i + round);
		in[i] = -1;
	}
	step(b);
	b->o.real = real;
	for (int i = 0; i < n; i++)
		same &= in[i] == ranks * (i + round);
	return same;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Allreduce Latency Test", .column = "Avg Latency(us)", .ranks = 2, .part = true,
		.o = { .min = 4, .max = 1 << 20, .iterations = 1000, .large_iterations = 100, .warmup = 100, .large_warmup = 10, .window = 1,
			.digits = 2 },
		.begin = begin, .step = step, .check = check, .figures = bench_mean_us,
	};

	return bench_run(&b, argc, argv);
}
