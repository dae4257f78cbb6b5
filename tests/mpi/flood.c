/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flood: every other rank sends rank 0 thousands of messages that it does not expect.  Rank 0 sleeps first (makes no
 * progress at all), or is busy with other calls (makes progress, and must put the messages somewhere), and then
 * receives: all must come, in order, with their contents, and the memory of each process is reported.
 *
 *     flood [MESSAGES a rank [BYTES each [LIMIT MiB]]]          without arguments: 8000 messages in all, of 1000 bytes
 *
 * With a limit the test fails if a process grows by more.  A limit belongs to the sleeping part only: what a busy
 * MPI library does with unexpected messages that it has taken from the network is above the transport.
 */
#include "check.h"

static int messages, bytes = 1000;
static long limit_kib;
static unsigned char *buffer;

/* The most that any rank, and rank 0 itself, grew since `before`, in KiB. */
static void report_growth(const char *when, long before)
{
	long grew = check_status_kib("VmRSS:") - before, most;

	MPI_Reduce(&grew, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (check.rank == 0)
		printf("  %s: %d messages of %d bytes from each of %d ranks: rank 0 grew by %ld KiB, the largest growth is %ld KiB\n", when,
			messages, bytes, check.size - 1, grew, most);
}

static void send_flood(int tag)
{
	for (int k = 0; k < messages; k++) {
		check_at("sending", k);
		check_fill(buffer, (size_t)bytes, check_key((unsigned)check.rank, (unsigned)tag, (uint64_t)k));
		MPI_Send(buffer, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
	}
}

/* Backwards through the sources, so that the last rank's messages are dug out from under all others. */
static void receive_flood(int tag)
{
	MPI_Status status;

	for (int r = check.size - 1; r > 0; r--)
		for (int k = 0; k < messages; k++) {
			int n;

			check_at("receiving", k);
			MPI_Recv(buffer, bytes, MPI_BYTE, r, tag, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_BYTE, &n);
			CHECK(n == bytes && check_differs(buffer, (size_t)bytes, check_key((unsigned)r, (unsigned)tag, (uint64_t)k)) < 0,
				"message %d of rank %d: %d bytes, or another content", k, r, n);
		}
}

/* Progress without receives, until the time is over. */
static void be_busy(double seconds)
{
	double end = MPI_Wtime() + seconds;
	int there;

	while (MPI_Wtime() < end)
		MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

static void run(const char *name, int tag, bool busy)
{
	long before;

	MPI_Barrier(MPI_COMM_WORLD);
	before = check_status_kib("VmRSS:");
	if (check.rank) {
		send_flood(tag);
	} else if (busy) {
		be_busy(0.5);
		if (limit_kib)
			printf("  %s: %ld KiB more before the first receive\n", name, check_status_kib("VmRSS:") - before);
		receive_flood(tag);
	} else {
		usleep(500000);
		receive_flood(tag);
	}
	if (limit_kib && !busy)
		CHECK(check_status_kib("VmRSS:") - before <= limit_kib, "grew by %ld KiB, the limit is %ld",
			check_status_kib("VmRSS:") - before, limit_kib);
	report_growth(name, before);
	check_group(name);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, "flood", 90);
	messages = argc > 1 ? atoi(argv[1]) : 8000 / (check.size - 1);
	bytes = argc > 2 ? atoi(argv[2]) : bytes;
	limit_kib = argc > 3 ? atol(argv[3]) * 1024 : 0;
	buffer = check_memory((size_t)bytes);
	memset(buffer, 1, (size_t)bytes);
	run("receiver asleep", 1, false);
	run("receiver busy", 2, true);
	run("receiver asleep again", 3, false);
	free(buffer);
	return check_done();
}
