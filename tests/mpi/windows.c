/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: each rank in turn sends windows of messages to the next one, which answers each window with an empty message, so that whatever goes round between
 * the two is written by one and read by the other all the time.  Every byte is compared.
 *
 *     windows [COUNTER]      which must have grown where messages came
 */
#include "check.h"

enum { WINDOW = 64, MOST = 100000, ROUNDS = 40 };

static const int sizes[] = { 8, 64, 100, 300, 1000, 2048, 5000, 8192, 20000, 32768, MOST };

static void send_windows(int to, int bytes, unsigned char *room)
{
	MPI_Request req[WINDOW];

	for (int r = 0; r < ROUNDS; r++) {
		for (int k = 0; k < WINDOW; k++) {
			unsigned char *message = room + (size_t)k * MOST;

			check_fill(message, (size_t)bytes, check_key((unsigned)check.rank, (unsigned)bytes, (uint64_t)(r * WINDOW + k)));
			MPI_Isend(message, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &req[k]);
		}
		MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
		MPI_Recv(NULL, 0, MPI_BYTE, to, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void receive_windows(int from, int bytes, unsigned char *room)
{
	MPI_Request req[WINDOW];

	for (int r = 0; r < ROUNDS; r++) {
		for (int k = 0; k < WINDOW; k++)
			MPI_Irecv(room + (size_t)k * MOST, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, &req[k]);
		MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
		for (int k = 0; k < WINDOW; k++)
			CHECK(check_differs(room + (size_t)k * MOST, (size_t)bytes, check_key((unsigned)from, (unsigned)bytes, (uint64_t)(r * WINDOW + k))) < 0,
				"message %d of %d bytes from %d: content differs", r * WINDOW + k, bytes, from);
		MPI_Send(NULL, 0, MPI_BYTE, from, 2, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	struct check_counter counter = { .there = false };
	unsigned char *room;

	check_init(&argc, &argv, "windows", 60);
	if (check.size < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (argc > 1)
		counter = check_counter_watch(argv[1]);
	room = check_memory((size_t)WINDOW * MOST);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int from = 0; from < check.size; from++) {
			int to = (from + 1) % check.size;

			check_at("windows of bytes", sizes[i]);
			if (check.rank == from)
				send_windows(to, sizes[i], room);
			else if (check.rank == to)
				receive_windows(from, sizes[i], room);
			MPI_Barrier(MPI_COMM_WORLD);
		}
	check_group("windows");
	if (argc > 1)
		CHECK(check_counter_end(&counter) > 0, "%s has not grown", argv[1]);
	check_group("counter");
	free(room);
	return check_done();
}
