/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines latency|bw|bibw: those benchmarks by lines of shared memory alone (lines.h), which no transport gets below that moves its
 * messages so.
 */
#include "bench.h"

static struct lines lines;

static void send(struct bench *b, size_t bytes)
{
	while (!lines_send(&lines, b->out, bytes))
		;
}

static void receive(struct bench *b, size_t bytes)
{
	while (!lines_take(&lines, b->in, bytes))
		;
}

static void ping_pong(struct bench *b)
{
	if (b->rank == 0)
		send(b, b->bytes);
	receive(b, b->bytes);
	if (b->rank == 1)
		send(b, b->bytes);
}

/* As many messages out and in. */
static void windows(struct bench *b, int out, int in)
{
	while (out || in) {
		if (out && lines_send(&lines, b->out, b->bytes))
			out--;
		else if (in && lines_take(&lines, b->in, b->bytes))
			in--;
	}
}

static void one_way(struct bench *b)
{
	windows(b, b->rank == 0 ? b->o.window : 0, b->rank == 0 ? 0 : b->o.window);
	if (b->rank == 0)
		receive(b, 4);
	else
		send(b, 4);
}

static void both_ways(struct bench *b)
{
	windows(b, b->o.window, b->o.window);
}

static void latency(struct bench *b, double seconds, double *one, double *two)
{
	(void)b, (void)two;
	*one = seconds * 1e6 / 2;
}

static void bandwidth(struct bench *b, double seconds, double *one, double *two)
{
	(void)two;
	*one = (double)b->bytes * b->o.window * (b->step == both_ways ? 2 : 1) / seconds / 1e6;
}

static void begin(struct bench *b)
{
	if (b->o.max > LINES_MOST) {
		fprintf(stderr, "by lines a message has %d bytes at most\n", LINES_MOST);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	lines_open(&lines, b->rank);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const bool is_latency = strcmp(name, "latency") == 0, is_both = strcmp(name, "bibw") == 0;
	struct bench b = {
		.title = "Lines of Shared Memory", .column = is_latency ? "Latency (us)" : "Bandwidth (MB/s)", .ranks = 2,
		.o = { .min = 1, .max = 4096, .iterations = 10000, .large_iterations = 1000, .warmup = 200, .large_warmup = 20, .window = 64,
			.digits = 2 },
		.begin = begin, .step = is_latency ? ping_pong : is_both ? both_ways : one_way, .figures = is_latency ? latency : bandwidth,
	};

	if (!is_latency && !is_both && strcmp(name, "bw") != 0) {
		fprintf(stderr, "usage: mpirun -np 2 %s latency|bw|bibw [options]\n", argv[0]);
		return 2;
	}
	return bench_run(&b, argc - 1, argv + 1);
}
