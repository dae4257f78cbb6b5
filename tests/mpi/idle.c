/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More ranks than cores, whether they were told or not: barriers do not take whole time slices, ranks that wait for a rank that
 * is busy elsewhere leave the cores alone, yet answer soon, who looks for messages in its work is left alone, and who waits in a loop of its
 * own lets those go on who end it.  What counts is processor time, and the best of many: that other processes have the cores, too,
 * makes a barrier or an answer late, but not dear.  The limits are ten times and more what it takes on a machine that does nothing else, and a
 * tenth of what spinning ranks take.
 */
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define LEAST_SLICE 0.5e-3 /* seconds: what one that spins has used, at the least, when another one has its turn */

enum { BARRIERS = 300, PINGS = 20, PAUSE_US = 20000 };

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void barriers(void)
{
	double best = 1e9, fewest = 1e9;

	for (int round = 0; round < 5; round++) {
		double from, used, all;

		MPI_Barrier(MPI_COMM_WORLD);
		from = seconds();
		used = cpu();
		for (int i = 0; i < BARRIERS; i++)
			MPI_Barrier(MPI_COMM_WORLD);
		used = cpu() - used;
		from = (seconds() - from) / BARRIERS;
		MPI_Allreduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		all /= BARRIERS;
		best = from < best ? from : best;
		fewest = all < fewest ? all : fewest;
	}
	if (check.rank == 0)
		printf("  a barrier of %d ranks takes %.1f us, and %.1f us of processor time\n", check.size, best * 1e6, fewest * 1e6);
	CHECK(fewest < LEAST_SLICE * check.size, "a barrier takes %.0f us of processor time", fewest * 1e6);
	check_group("barriers");
}

/* Rank 0 sleeps, then asks each of the others, which wait for it in MPI_Recv.  The quickest answer. */
static double ping(void)
{
	double best = 1e9;
	char byte = 0;

	for (int i = 0; i < PINGS; i++)
		for (int peer = 1; peer < check.size; peer++) {
			if (check.rank == 0) {
				double from;

				usleep(PAUSE_US / (unsigned)check.size);
				from = seconds();
				MPI_Send(&byte, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
				MPI_Recv(&byte, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				from = seconds() - from;
				best = from < best ? from : best;
			} else if (check.rank == peer) {
				MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
			}
		}
	return best;
}

static void waiting(void)
{
	double used = cpu(), from = seconds(), best = ping(), all = 0;

	from = seconds() - from;
	used = cpu() - used;
	MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (check.rank == 0) {
		printf("  waiting for %.0f ms, %d ranks used the processors for %.0f ms; the quickest answer took %.0f us\n", from * 1e3,
	       check.size, all * 1e3, best * 1e6);
		CHECK(all < from * 3 / 2, "waiting took %.0f ms of processor time in %.0f ms", all * 1e3, from * 1e3);
		CHECK(best < 0.1, "an answer took %.0f ms", best * 1e3);
	}
	check_group("waiting");
}

/* The calls that come back whether there is something or not; of the last one, only the time that the program is away tells it from a wait. */
static const char *const look_names[] = { "MPI_Iprobe", "MPI_Improbe", "MPI_Test", "MPI_Testany", "MPI_Testall", "MPI_Testsome",
	                                  "MPI_Request_get_status" };
enum { LOOKS = sizeof(look_names) / sizeof(look_names[0]), GET_STATUS = LOOKS - 1 };

static int look(int which, MPI_Request *request)
{
	int flag = 0, index, n;
	MPI_Message message;

	switch (which) {
	case 0: MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); break;
	case 1: MPI_Improbe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE); break;
	case 2: MPI_Test(request, &flag, MPI_STATUS_IGNORE); break;
	case 3: MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE); break;
	case 4: MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE); break;
	case 5: MPI_Testsome(1, request, &n, &index, MPI_STATUSES_IGNORE); flag = n != 0; break;
	default: MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE); break;
	}
	return flag;
}

/* What such a call takes, with the yield of a rank that was told to. */
static double look_takes(int which, MPI_Request *request)
{
	double best = 1e9;

	for (int i = 0; i < 100; i++) {
		double from = seconds();

		look(which, request);
		from = seconds() - from;
		best = from < best ? from : best;
	}
	return best;
}

/*
 * Rank 0 looks for messages again and again in its work, which others wait for: it is not one that waits, however little it does in between,
 * and must not be put to sleep.  Where only the time tells, it does more than the call itself takes.
 */
static void working(void)
{
	enum { STEPS = 3000 };
	MPI_Request request;
	int byte, found = 0;
	double work;

	MPI_Irecv(&byte, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request);
	work = check.rank == 0 ? 2 * look_takes(GET_STATUS, &request) : 0;
	work = work < 1.2e-6 ? 1.2e-6 : work;
	for (int which = 0; which < LOOKS; which++) {
		struct check_counter sleeps = check_counter_watch("sleeps");
		long long slept;

		for (int i = 0; check.rank == 0 && i < STEPS && !found; i++) {
			double until = seconds() + work;

			while (which == GET_STATUS && seconds() < until)
				;
			found = look(which, &request);
		}
		slept = check_counter_end(&sleeps);
		CHECK(!found, "%s: a message that nobody sent", look_names[which]);
		CHECK(check.rank > 0 || slept <= STEPS / (which == GET_STATUS ? 20 : 100), "%lld sleeps in %d calls of %s", slept, STEPS, look_names[which]);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_group("working");
}

/* Gives number i to the next rank, and waits for that of the one before, in a loop of its own. */
typedef void round_fn(int i);

static int next_rank, last_rank; /* in the ring */
static MPI_Win win;

static void round_of_messages(int i)
{
	int number, flag;
	MPI_Request request[2];

	MPI_Irecv(&number, 1, MPI_INT, last_rank, 8, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(&i, 1, MPI_INT, next_rank, 8, MPI_COMM_WORLD, &request[1]);
	do
		MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
	while (!flag);
	CHECK(number == i, "%d instead of %d", number, i);
}

/* Nothing of that is a message. */
static void round_of_windows(int i)
{
	int nothing = 0, seen;

	MPI_Accumulate(&i, 1, MPI_INT, next_rank, 0, 1, MPI_INT, MPI_REPLACE, win);
	MPI_Win_flush(next_rank, win);
	do {
		MPI_Fetch_and_op(&nothing, &seen, MPI_INT, check.rank, 0, MPI_NO_OP, win);
		MPI_Win_flush(check.rank, win);
	} while (seen < i);
}

static void rounds(const char *name, round_fn *one)
{
	enum { ROUNDS = 100 };
	double fewest = 1e9;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int first = 1; first < 5 * ROUNDS; first += ROUNDS) {
		double used = cpu(), all;

		for (int i = first; i < first + ROUNDS; i++)
			one(i);
		used = cpu() - used;
		MPI_Allreduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		all /= ROUNDS;
		fewest = all < fewest ? all : fewest;
	}
	if (check.rank == 0)
		printf("  a round of %s takes %d ranks %.1f us of processor time\n", name, check.size, fewest * 1e6);
	CHECK(fewest < LEAST_SLICE * check.size / 2, "a round takes %.0f us of processor time", fewest * 1e6);
}

static void rings(void)
{
	int word = 0;

	next_rank = (check.rank + 1) % check.size;
	last_rank = (check.rank + check.size - 1) % check.size;
	rounds("messages", round_of_messages);
	MPI_Win_create(&word, sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win); /* allocated ones may be in memory that all map */
	MPI_Win_lock_all(0, win);
	rounds("windows", round_of_windows);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	check_group("rings");
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, "idle", 60);
	barriers();
	waiting();
	working();
	rings();
	return check_done();
}
