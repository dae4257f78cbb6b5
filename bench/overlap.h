/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a non-blocking collective goes on while its caller computes, by the usual measure: the time T of start and wait
 * alone; then start, computing that takes about T, wait; what is over the computing, as a share of T, is not hidden.
 *
 * Computing is a fixed piece of arithmetic whose time was measured beforehand, so that a processor taken away shows.  Where
 * all ranks share one core (-s) it is arithmetic until so much time has passed, and the ranks take turns: as if each had a slower core of its
 * own.  Otherwise one would compute for a whole time slice before the next one even starts the collective.
 */
#ifndef QNIX_BENCH_OVERLAP_H
#define QNIX_BENCH_OVERLAP_H

#include "bench.h"

#include <sched.h>

static struct {
	MPI_Request (*start)(struct bench *b);
	double per_second;       /* pieces of work */
	double alone, both, work; /* seconds, summed up */
	long rounds;
} overlap;

static inline double overlap_compute(long pieces)
{
	double start = MPI_Wtime();
	uint64_t x = 1;

	for (long i = 0; i < 20 * pieces; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__("" : "+r"(x));
	}
	return MPI_Wtime() - start;
}

static inline double overlap_in_turns(double seconds)
{
	double start = MPI_Wtime(), spent;

	do {
		overlap_compute(20);
		sched_yield();
		spent = MPI_Wtime() - start;
	} while (spent < seconds);
	return spent;
}

static inline void overlap_begin(struct bench *b)
{
	b->o.median = false; /* the sums of all iterations are compared */
	for (int i = 0; i < 20; i++) {
		double rate = 10000 / overlap_compute(10000);

		overlap.per_second = rate > overlap.per_second ? rate : overlap.per_second;
	}
}

static inline double overlap_alone(struct bench *b)
{
	double start;
	MPI_Request request;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	request = overlap.start(b);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return MPI_Wtime() - start;
}

static inline void overlap_step(struct bench *b)
{
	MPI_Request request;
	double start, mean;

	if (b->spent == 0) { /* a new size, or the end of the warm-up */
		overlap.alone = overlap.both = overlap.work = 0;
		overlap.rounds = 0;
	}
	overlap.alone += overlap_alone(b);
	overlap.rounds++;
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	request = overlap.start(b);
	mean = overlap.alone / (double)overlap.rounds;
	overlap.work += b->o.share ? overlap_in_turns(mean) : overlap_compute((long)(mean * overlap.per_second) + 1);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	overlap.both += MPI_Wtime() - start;
	b->spent = overlap.alone;
}

/* Microseconds alone, and the hidden share in percent, as means over the ranks. */
static inline void overlap_figures(struct bench *b, double seconds, double *one, double *two)
{
	double hidden = 100 * (1 - (overlap.both - overlap.work) / overlap.alone), mine[2], sum[2] = { 0, 0 };

	mine[0] = seconds * 1e6;
	mine[1] = hidden > 0 ? hidden : 0;
	MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	*one = sum[0] / b->size;
	*two = sum[1] / b->size;
}

#endif
