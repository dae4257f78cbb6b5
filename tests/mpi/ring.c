/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring: every rank sends to its right neighbour and receives from its left one, by blocking, nonblocking and
 * persistent calls, at every size around the limits a transport is likely to have, 0 bytes to 4 MiB, from aligned
 * and odd addresses.  Every byte is compared, and the bytes before and after the receive buffer must stay untouched.
 */
#include "check.h"

#define GUARD 64
#define MOST (4 << 20)

static const int sizes[] = {
	0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 511, 512, 513,
	1000, 1023, 1024, 1025, 2047, 2048, 2049, 4000, 4032, 4095, 4096, 4097, 8000, 8176, 8191, 8192, 8193, 12288, 16383, 16384,
	16385, 32767, 32768, 32769, 65000, 65535, 65536, 65537, 100000, 131072, 262144, 262145, 524288, 1048575, 1048576, MOST,
};
#define SIZES (sizeof sizes / sizeof *sizes)

static int left, right;
static unsigned char *out, *in; /* MOST bytes each, with a guard on both sides of `in` */

/* One way of moving `bytes` from `out + shift` to the right and from the left into `in + shift`. */
typedef void move_fn(int bytes, int shift);

static void move_blocking(int bytes, int shift)
{
	/* Even ranks send first: at least one rank of any ring receives first, so a blocking send never waits in a circle. */
	if (check.rank % 2 == 0)
		MPI_Send(out + shift, bytes, MPI_BYTE, right, bytes % 1000, MPI_COMM_WORLD);
	MPI_Recv(in + shift, bytes, MPI_BYTE, left, bytes % 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (check.rank % 2)
		MPI_Send(out + shift, bytes, MPI_BYTE, right, bytes % 1000, MPI_COMM_WORLD);
}

static void move_sendrecv(int bytes, int shift)
{
	MPI_Sendrecv(out + shift, bytes, MPI_BYTE, right, 1, in + shift, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void move_nonblocking(int bytes, int shift)
{
	MPI_Request both[2];

	MPI_Irecv(in + shift, bytes, MPI_BYTE, left, 2, MPI_COMM_WORLD, &both[0]);
	MPI_Isend(out + shift, bytes, MPI_BYTE, right, 2, MPI_COMM_WORLD, &both[1]);
	MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

/* The receive is posted after the send, and completion is asked for with MPI_Test. */
static void move_late(int bytes, int shift)
{
	MPI_Request both[2];
	int done = 0;

	MPI_Isend(out + shift, bytes, MPI_BYTE, right, 3, MPI_COMM_WORLD, &both[1]);
	MPI_Irecv(in + shift, bytes, MPI_BYTE, left, 3, MPI_COMM_WORLD, &both[0]);
	while (!done)
		MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
}

static bool guards_hold(int bytes, int shift)
{
	const unsigned char *before = in + shift - GUARD, *after = in + shift + bytes;

	for (int i = 0; i < GUARD; i++)
		if (before[i] != 0xa5 || after[i] != 0xa5)
			return false;
	return true;
}

static void set_guards(int bytes, int shift)
{
	memset(in + shift - GUARD, 0xa5, GUARD);
	memset(in + shift, 0, (size_t)bytes);
	memset(in + shift + bytes, 0xa5, GUARD);
}

static void check_content(const char *how, int bytes, int shift, int round)
{
	long at = check_differs(in + shift, (size_t)bytes, check_key((unsigned)left, (unsigned)check.rank, (uint64_t)bytes * 8 + round));

	CHECK(at < 0, "%s, %d bytes, round %d: wrong at byte %ld", how, bytes, round, at);
	CHECK(guards_hold(bytes, shift), "%s, %d bytes, round %d: wrote outside the receive buffer", how, bytes, round);
}

static void fill_content(int bytes, int shift, int round)
{
	check_fill(out + shift, (size_t)bytes, check_key((unsigned)check.rank, (unsigned)right, (uint64_t)bytes * 8 + round));
	set_guards(bytes, shift);
}

static void run_moves(const char *how, move_fn *move)
{
	for (size_t s = 0; s < SIZES; s++)
		for (int round = 0; round < (sizes[s] > 65536 ? 2 : 4); round++) {
			int shift = round % 2 ? 3 : 0;

			check_at(how, sizes[s]);
			fill_content(sizes[s], shift, round);
			move(sizes[s], shift);
			check_content(how, sizes[s], shift, round);
		}
	check_group(how);
}

static void run_persistent(void)
{
	for (size_t s = 0; s < SIZES; s++) {
		MPI_Request both[2];

		check_at("persistent", sizes[s]);
		MPI_Recv_init(in, sizes[s], MPI_BYTE, left, 4, MPI_COMM_WORLD, &both[0]);
		MPI_Send_init(out, sizes[s], MPI_BYTE, right, 4, MPI_COMM_WORLD, &both[1]);
		for (int round = 0; round < (sizes[s] > 65536 ? 2 : 4); round++) {
			fill_content(sizes[s], 0, round);
			MPI_Startall(2, both);
			MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
			check_content("persistent", sizes[s], 0, round);
		}
		MPI_Request_free(&both[0]);
		MPI_Request_free(&both[1]);
	}
	check_group("persistent");
}

/* One message goes round the whole ring, and every rank adds itself to it. */
static void run_token(void)
{
	for (int lap = 0; lap < 20; lap++) {
		long token[2] = { lap, 0 };

		check_at("token", lap);
		if (check.rank)
			MPI_Recv(token, 2, MPI_LONG, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(token[0] == lap && token[1] == (long)check.rank * (check.rank - 1) / 2, "lap %d: token is %ld %ld", lap, token[0],
			token[1]);
		token[1] += check.rank;
		MPI_Send(token, 2, MPI_LONG, right, 5, MPI_COMM_WORLD);
		if (check.rank == 0) {
			MPI_Recv(token, 2, MPI_LONG, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK(token[1] == (long)check.size * (check.size - 1) / 2, "lap %d: token came home as %ld", lap, token[1]);
		}
	}
	check_group("token");
}

/* Many messages under way at once, of all the smaller sizes, each into its own place. */
static void run_window(void)
{
	enum { EACH = 48, ROOM = 12288 };
	MPI_Request req[2 * EACH];

	for (int i = 0; i < EACH; i++)
		MPI_Irecv(in + i * ROOM, sizes[i], MPI_BYTE, left, i, MPI_COMM_WORLD, &req[i]);
	for (int i = 0; i < EACH; i++) {
		check_fill(out + i * ROOM, (size_t)sizes[i], check_key((unsigned)check.rank, (unsigned)right, (uint64_t)i));
		MPI_Isend(out + i * ROOM, sizes[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &req[EACH + i]);
	}
	check_at("window", EACH);
	MPI_Waitall(2 * EACH, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < EACH; i++) {
		long at = check_differs(in + i * ROOM, (size_t)sizes[i], check_key((unsigned)left, (unsigned)check.rank, (uint64_t)i));

		CHECK(at < 0, "%d bytes: wrong at byte %ld", sizes[i], at);
	}
	check_group("window of 48 sizes");
}

int main(int argc, char **argv)
{
	unsigned char *room;

	check_init(&argc, &argv, "ring", 60);
	left = (check.rank + check.size - 1) % check.size;
	right = (check.rank + 1) % check.size;
	out = check_memory(MOST + 2 * GUARD);
	room = check_memory(MOST + 4 * GUARD);
	in = room + GUARD;
	run_moves("blocking", move_blocking);
	run_moves("sendrecv", move_sendrecv);
	run_moves("nonblocking", move_nonblocking);
	run_moves("late receive", move_late);
	run_persistent();
	run_token();
	run_window();
	free(out);
	free(room);
	return check_done();
}
