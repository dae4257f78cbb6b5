/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batches TEST BYTES DIR: two ranks measure one thing over and over in batches of some ten microseconds, until DIR/end is
 * there, and rank 0 writes to DIR/batches when each began and what it took.  For bench/turns, which stops and continues
 * several such jobs: a batch that was interrupted is a long one.
 *
 * TEST is latency (ping-pong; nanoseconds one way), rate (64 messages, then an answer; nanoseconds a message) or both (64
 * messages each way at once; nanoseconds a message of one way).
 * With BATCHES_LINES in the environment the messages go by lines of shared memory alone (lines.h): what is left then is what no
 * transport can save.
 *
 * Each rank writes its process id to DIR/pid.RANK.  Times are CLOCK_MONOTONIC's, in seconds.
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lines.h"

enum { WINDOW = 64, MOST = 1 << 21, ASK = 16 }; /* messages; batches; batches between two looks at DIR/end */

struct batch {
	double began, ns;
};

static char *data;
static int bytes, rank;
static struct lines *lines; /* NULL: MPI */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void send(int length, int tag)
{
	if (lines)
		while (!lines_send(lines, data, (size_t)length))
			;
	else
		MPI_Send(data, length, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD);
}

static void receive(int length, int tag)
{
	if (lines)
		while (!lines_take(lines, data, (size_t)length))
			;
	else
		MPI_Recv(data, length, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ping_pong(void)
{
	if (rank == 0) {
		send(bytes, 1);
		receive(bytes, 1);
	} else {
		receive(bytes, 1);
		send(bytes, 1);
	}
}

/* As many messages out and in, by lines. */
static void line_windows(int out, int in)
{
	while (out || in) {
		if (out && lines_send(lines, data, (size_t)bytes))
			out--;
		else if (in && lines_take(lines, data + bytes, (size_t)bytes))
			in--;
	}
}

static void window(void)
{
	MPI_Request request[WINDOW];

	if (lines) {
		line_windows(rank == 0 ? WINDOW : 0, rank == 0 ? 0 : WINDOW);
		rank == 0 ? receive(0, 2) : send(0, 2);
		return;
	}
	for (int i = 0; i < WINDOW; i++)
		if (rank == 0)
			MPI_Isend(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request[i]);
		else
			MPI_Irecv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request[i]);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	if (rank == 0)
		receive(0, 2);
	else
		send(0, 2);
}

static void windows(void)
{
	MPI_Request request[2 * WINDOW];

	if (lines) {
		line_windows(WINDOW, WINDOW);
		return;
	}
	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(data + bytes, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &request[i]);
	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(data, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &request[WINDOW + i]);
	MPI_Waitall(2 * WINDOW, request, MPI_STATUSES_IGNORE);
}

static const struct test {
	const char *name;
	void (*step)(void);
	int short_steps, middle_steps; /* of a batch, for up to 4096 and up to 65536 bytes; for more, one */
	int messages;                  /* one after the other, of a step */
} tests[] = {
	{ "latency", ping_pong, 100, 10, 2 },
	{ "rate", window, 4, 1, WINDOW },
	{ "both", windows, 4, 1, WINDOW },
};

static const struct test *find(const char *name)
{
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (strcmp(tests[i].name, name) == 0)
			return &tests[i];
	return NULL;
}

/* Both ranks leave after the same batch. */
static bool another(const char *end)
{
	int more = rank == 0 && access(end, F_OK) != 0;

	MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return more;
}

static const char *in(const char *dir, const char *name)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

/* So that who waits for the file never sees half of it. */
static void write_file(const char *dir, const char *name, const void *from, size_t size)
{
	char *last = strdup(in(dir, name));
	FILE *file = fopen(in(dir, rank == 0 ? "new.0" : "new.1"), "w");

	if (!last || !file || fwrite(from, 1, size, file) != size || fclose(file) != 0 ||
	    rename(in(dir, rank == 0 ? "new.0" : "new.1"), last) != 0) {
		fprintf(stderr, "batches: %s/%s cannot be written\n", dir, name);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	free(last);
}

int main(int argc, char **argv)
{
	struct batch *all = malloc(MOST * sizeof(*all));
	const struct test *test = argc == 4 ? find(argv[1]) : NULL;
	char text[32], *end;
	size_t n = 0;
	int steps, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!test || ranks != 2 || !all) {
		if (rank == 0)
			fprintf(stderr, "usage: mpirun -np 2 batches latency|rate|both BYTES DIR\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	bytes = atoi(argv[2]);
	if (getenv("BATCHES_LINES")) {
		static struct lines ours;

		if (bytes > LINES_MOST) {
			fprintf(stderr, "batches: by lines a message has %d bytes at most\n", LINES_MOST);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		lines_open(&ours, rank);
		lines = &ours;
	}
	data = calloc(2, (size_t)bytes + 1); /* what is sent; what comes */
	end = strdup(in(argv[3], "end"));
	/* About 40 us, so that a turn has room for some hundred of them; or what one step takes, when the messages are long. */
	steps = bytes <= 4096 ? test->short_steps : bytes <= 65536 ? test->middle_steps : 1;
	write_file(argv[3], rank == 0 ? "pid.0" : "pid.1", text, (size_t)snprintf(text, sizeof text, "%d", (int)getpid()));
	do {
		for (int k = 0; k < ASK; k++) {
			double began = now();

			for (int i = 0; i < steps; i++)
				test->step();
			if (rank == 0 && n < MOST)
				all[n++] = (struct batch){ began, (now() - began) * 1e9 / steps / test->messages };
		}
	} while (another(end));
	if (rank == 0)
		write_file(argv[3], "batches", all, n * sizeof(*all));
	free(end);
	free(data);
	free(all);
	MPI_Finalize();
	return 0;
}
