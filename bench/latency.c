/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency: ping-pong between ranks 0 and 1 with blocking calls; half of the time there and back. */
#include "bench.h"

static void ping(struct bench *b)
{
	if (b->o.real)
		bench_rewrite(b->out, b->bytes, b->round);
	MPI_Send(b->out, (int)b->bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	MPI_Recv(b->in, (int)b->bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (b->o.real)
		bench_read(b->in, b->bytes);
}

static void pong(struct bench *b)
{
	MPI_Recv(b->in, (int)b->bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (b->o.real) {
		bench_read(b->in, b->bytes);
		bench_rewrite(b->out, b->bytes, b->round);
	}
	MPI_Send(b->out, (int)b->bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

static void step(struct bench *b)
{
	if (b->rank == 0)
		ping(b);
	else if (b->rank == 1)
		pong(b);
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
	(void)b, (void)two;
	*one = seconds * 1e6 / 2;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Latency Test", .column = "Latency (us)", .ranks = 2,
		.o = { .min = 1, .max = 4 << 20, .iterations = 10000, .large_iterations = 1000, .warmup = 200, .large_warmup = 20,
			.window = 1, .digits = 2 },
		.step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
