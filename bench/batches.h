/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With -b DIR a benchmark of two ranks does one thing over and over, in batches of some ten microseconds, until DIR/end is there,
 * and rank 0 writes to DIR/batches when each began, what a step took and how far apart the processors were.  For bench/turns,
 * which stops and continues several such jobs: a batch that was interrupted is a long one.
 *
 * Each rank writes its process id to DIR/pid.RANK when it has warmed up.  Times are CLOCK_MONOTONIC's, in seconds.
 */
#ifndef BENCH_BATCHES_H
#define BENCH_BATCHES_H

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lines.h"

enum {
	BATCHES_MOST = 1 << 21,
	BATCHES_TRIES = 3, /* of a ping-pong of lines */
	BATCHES_STEPS = 400,
};

/* Seconds of a batch, and between two looks at DIR/end and at the processors, which may be moved within seconds. */
static const double batches_length = 40e-6, batches_look = 600e-6;

/* The times are seconds; apart is in nanoseconds, 0 if nobody can say. */
struct batches_one {
	double began, step, apart;
};

static inline double batches_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* So that who waits for the file never sees half of it. */
static inline void batches_write(const char *dir, const char *name, int rank, const void *from, size_t size)
{
	char made[4096], last[4096];
	FILE *file;

	snprintf(made, sizeof made, "%s/new.%d", dir, rank);
	snprintf(last, sizeof last, "%s/%s", dir, name);
	file = fopen(made, "w");
	if (!file || fwrite(from, 1, size, file) != size || fclose(file) != 0 || rename(made, last) != 0) {
		fprintf(stderr, "%s cannot be written\n", last);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* Both ranks leave after the same batch; one that is done waits here, in MPI, for one that is not. */
static inline bool batches_another(int rank, const char *end)
{
	int more = rank == 0 && access(end, F_OK) != 0;

	MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return more;
}

/* How many steps are a batch, and how many batches go by between two looks: from the shortest of some steps, on rank 0. */
static inline void batches_plan(void (*step)(void *), void *of, int *steps, int *looks)
{
	double shortest = 1;
	int plan[2];

	for (int k = 0; k < 20; k++) {
		double start = batches_now(), took;

		step(of);
		took = batches_now() - start;
		shortest = took < shortest ? took : shortest;
	}
	plan[0] = shortest * BATCHES_STEPS < batches_length ? BATCHES_STEPS : shortest > batches_length ? 1 : (int)(batches_length / shortest);
	plan[1] = shortest * plan[0] > batches_look ? 1 : (int)(batches_look / (shortest * plan[0]));
	MPI_Bcast(plan, 2, MPI_INT, 0, MPI_COMM_WORLD);
	*steps = plan[0];
	*looks = plan[1];
}

/* Collective, of two ranks.  lines: NULL if they are on two hosts. */
static inline void batches_run(const char *dir, int rank, struct lines *lines, void (*step)(void *), void *of)
{
	struct batches_one *all = malloc(BATCHES_MOST * sizeof(*all));
	char end[4096], text[32];
	double apart;
	size_t n = 0;
	int steps, looks;

	if (!all)
		MPI_Abort(MPI_COMM_WORLD, 1);
	snprintf(end, sizeof end, "%s/end", dir);
	batches_plan(step, of, &steps, &looks);
	batches_write(dir, rank == 0 ? "pid.0" : "pid.1", rank, text, (size_t)snprintf(text, sizeof text, "%d", (int)getpid()));
	while (batches_another(rank, end)) {
		apart = lines ? lines_apart(lines, rank, BATCHES_TRIES) : 0;
		for (int k = 0; k < looks; k++) {
			double began = batches_now();

			for (int i = 0; i < steps; i++)
				step(of);
			if (rank == 0 && n < BATCHES_MOST)
				all[n++] = (struct batches_one){ began, (batches_now() - began) / steps, apart };
		}
	}
	if (rank == 0)
		batches_write(dir, "batches", rank, all, n * sizeof(*all));
	free(all);
}

#endif
