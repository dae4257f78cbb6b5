/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: a ping-pong of 8 bytes between ranks 0 and 1 behind so many entries of other tags in the queues of both: posted
 * receives that get nothing, or, as match_unexpected, messages that have come and are not received.  Half of the time there
 * and back; what stands in the column of sizes is how many.  What a library walks shows as a line that rises.
 *
 * Entries are only added, size after size.  Every eighth receive asks for another source than the one that sends.  Of the
 * messages the first are the other rank's, short ones and then synchronous ones, as many as a library with a bound for each peer may be
 * asked to keep; the rest this rank has sent to itself.
 */
#include "bench.h"

#ifdef UNEXPECTED
enum { IS_UNEXPECTED = 1 };
#else
enum { IS_UNEXPECTED = 0 };
#endif
enum { TAG = 1, OTHERS = 100, BREATH = 64, MOST = 131072, SHORT = 8192, SYNCHRONOUS = 16000 };

static MPI_Request *waiting;
static int depth;
static char cell[8];

static void add_posted(const struct bench *b, int i)
{
	int source = i % 8 ? 1 - b->rank : b->rank;

	MPI_Irecv(cell, 1, MPI_CHAR, source, OTHERS + i, MPI_COMM_WORLD, &waiting[i]);
}

/* A pause now and then, in which the other side takes in what has come. */
static void add_unexpected(const struct bench *b, int i)
{
	int other = 1 - b->rank;

	if (i < SHORT)
		MPI_Isend(cell, 1, MPI_CHAR, other, OTHERS + i, MPI_COMM_WORLD, &waiting[i]);
	else if (i < SHORT + SYNCHRONOUS)
		MPI_Issend(cell, 1, MPI_CHAR, other, OTHERS + i, MPI_COMM_WORLD, &waiting[i]);
	else
		MPI_Isend(cell, 1, MPI_CHAR, b->rank, OTHERS + i, MPI_COMM_WORLD, &waiting[i]);
	if (i % BREATH == 0)
		MPI_Sendrecv(cell, 1, MPI_CHAR, other, TAG + 1, cell + 1, 1, MPI_CHAR, other, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void fill(const struct bench *b)
{
	for (; depth < (int)b->bytes && depth < MOST; depth++) {
		if (IS_UNEXPECTED)
			add_unexpected(b, depth);
		else
			add_posted(b, depth);
	}
}

static void drain(struct bench *b)
{
	for (int i = 0; b->rank < 2 && i < depth; i++) {
		if (IS_UNEXPECTED)
			MPI_Recv(cell, 1, MPI_CHAR, i < SHORT + SYNCHRONOUS ? 1 - b->rank : b->rank, OTHERS + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Cancel(&waiting[i]);
	}
	MPI_Waitall(depth, waiting, MPI_STATUSES_IGNORE);
	free(waiting);
}

static void prepare(struct bench *b)
{
	(void)b;
	waiting = calloc(MOST, sizeof(*waiting));
	if (!waiting)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void step(struct bench *b)
{
	int other = 1 - b->rank;

	if (b->rank > 1)
		return;
	if (depth < (int)b->bytes)
		fill(b);
	if (b->rank == 0)
		MPI_Send(b->out, 8, MPI_CHAR, other, TAG, MPI_COMM_WORLD);
	MPI_Recv(b->in, 8, MPI_CHAR, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (b->rank == 1)
		MPI_Send(b->out, 8, MPI_CHAR, other, TAG, MPI_COMM_WORLD);
}

static bool check(struct bench *b, int round)
{
	if (b->rank > 1)
		return true;
	bench_fill(b->out, 8, round + b->rank);
	memset(b->in, 0, 8);
	step(b);
	return bench_same(b->in, 8, round + 1 - b->rank);
}

static void figures(struct bench *b, double seconds, double *one, double *two)
{
	(void)b, (void)two;
	*one = seconds * 1e6 / 2;
}

int main(int argc, char **argv)
{
	struct bench b = {
		.title = IS_UNEXPECTED ? "MPI Matching Test, unexpected messages" : "MPI Matching Test, posted receives",
		.column = "Latency (us)", .ranks = 2,
		.o = { .min = 1, .max = MOST, .iterations = 2000, .large_iterations = 500, .warmup = 100, .large_warmup = 20,
			.window = 1, .digits = 2 },
		.begin = prepare, .end = drain, .step = step, .check = check, .figures = figures,
	};

	return bench_run(&b, argc, argv);
}
