/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions of a message, in user mode, by the processor's own counter: how many MPI_Send takes, and how many MPI_Waitall for
 * one that has arrived already, so that nobody polls in vain.  Unlike a time, this is nearly the same on every machine and however
 * busy it is.  The median of all rounds: in some a credit was due, or the receiver woke too late or too early.
 */
#include "bench.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum {
	LEFT = 200,     /* us; after that everybody has left the barrier, */
	ARRIVED = 2000, /* and after that all of a window's messages are there */
	ROUNDS = 1024,  /* that are looked at, the last ones of a size */
};

static int counter;
static uint64_t empty;         /* a measurement of nothing */
static uint64_t taken[ROUNDS]; /* of the current size */
static unsigned rounds;
static size_t measured;        /* whose size that is */

static uint64_t now(void)
{
	uint64_t value = 0;

	if (read(counter, &value, sizeof value) != (ssize_t)sizeof value)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return value;
}

static void begin(struct bench *b)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1, .exclude_hv = 1 };
	uint64_t start;

	counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (counter < 0) {
		fprintf(stderr, "instructions: this processor's counter cannot be used (%s; see /proc/sys/kernel/perf_event_paranoid)\n",
			strerror(errno));
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	start = now();
	empty = now() - start;
	snprintf(b->note, sizeof b->note, "[ %d messages at once ]", b->o.window);
}

static void end(struct bench *b)
{
	(void)b;
	close(counter);
}

static void send_all(struct bench *b)
{
	for (int k = 0; k < b->o.window; k++)
		MPI_Send(b->out, (int)b->bytes, MPI_CHAR, 1, 100, MPI_COMM_WORLD);
}

static void step(struct bench *b)
{
	uint64_t start;

	if (measured != b->bytes)
		rounds = 0;
	measured = b->bytes;
	for (int k = 0; b->rank == 1 && k < b->o.window; k++)
		MPI_Irecv(b->in, (int)b->bytes, MPI_CHAR, 0, 100, MPI_COMM_WORLD, &b->req[k]);
	MPI_Barrier(MPI_COMM_WORLD);
	usleep(b->rank == 1 ? ARRIVED : LEFT);
	start = now();
	if (b->rank == 0)
		send_all(b);
	else if (b->rank == 1)
		MPI_Waitall(b->o.window, b->req, MPI_STATUSES_IGNORE);
	taken[rounds++ % ROUNDS] = now() - start - empty;
}

static int order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(void)
{
	unsigned n = rounds < ROUNDS ? rounds : ROUNDS;

	qsort(taken, n, sizeof taken[0], order);
	return (double)taken[n / 2];
}

static bool check(struct bench *b, int round)
{
	bench_fill(b->out, b->bytes, round);
	memset(b->in, 0, b->bytes);
	step(b);
	return b->rank != 1 || bench_same(b->in, b->bytes, round);
}

/* Both sides; the receiver's. */
static void figures(struct bench *b, double seconds, double *one, double *two)
{
	double mine = median() / b->o.window;

	(void)seconds;
	if (b->rank == 1)
		MPI_Send(&mine, 1, MPI_DOUBLE, 0, 101, MPI_COMM_WORLD);
	if (b->rank)
		return;
	MPI_Recv(two, 1, MPI_DOUBLE, 1, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	*one = mine + *two;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = "Instructions of a Message", .column = "Both sides", .column2 = "Receiver", .ranks = 2,
		.o = { .min = 1, .max = 256, .iterations = 100, .large_iterations = 100, .warmup = 10, .large_warmup = 10, .window = 8,
			.digits = 0 },
		.begin = begin, .end = end, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
