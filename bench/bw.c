/* SPDX-License-Identifier: BSD-3-Clause */
/* Bandwidth: rank 0 sends rank 1 a window of messages, rank 1 answers the whole window with four bytes. */
#include "bench.h"

static void source(struct bench *b)
{
	for (int k = 0; k < b->o.window; k++) {
		char *p = bench_slot(b, b->out, k);

		if (b->o.real)
			bench_rewrite(p, b->bytes, b->round + k);
		MPI_Isend(p, (int)b->bytes, MPI_CHAR, 1, 100, MPI_COMM_WORLD, &b->req[k]);
	}
	MPI_Waitall(b->o.window, b->req, MPI_STATUSES_IGNORE);
	MPI_Recv(b->in, 4, MPI_CHAR, 1, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sink(struct bench *b)
{
	for (int k = 0; k < b->o.window; k++)
		MPI_Irecv(bench_slot(b, b->in, k), (int)b->bytes, MPI_CHAR, 0, 100, MPI_COMM_WORLD, &b->req[k]);
	MPI_Waitall(b->o.window, b->req, MPI_STATUSES_IGNORE);
	for (int k = 0; k < b->o.window && b->o.real; k++)
		bench_read(bench_slot(b, b->in, k), b->bytes);
	MPI_Send(b->out, 4, MPI_CHAR, 0, 101, MPI_COMM_WORLD);
}

static void step(struct bench *b)
{
	if (b->rank == 0)
		source(b);
	else if (b->rank == 1)
		sink(b);
}

static bool check(struct bench *b, int round)
{
	bool real = b->o.real;

	b->o.real = false; /* one slot, and its content stays what is filled in here */
	bench_fill(b->out, b->bytes, round);
	memset(b->in, 0, b->bytes);
	step(b);
	b->o.real = real;
	return b->rank != 1 || bench_same(b->in, b->bytes, round);
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	(void)two;
	*one = (double)b->bytes * b->o.window / seconds / 1e6;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "MPI Bandwidth Test", .column = "Bandwidth (MB/s)", .ranks = 2,
		.o = { .min = 1, .max = 4 << 20, .iterations = 100, .large_iterations = 20, .warmup = 10, .large_warmup = 2, .window = 64,
			.digits = 2 },
		.step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
