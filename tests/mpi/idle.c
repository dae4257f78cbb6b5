/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More ranks than cores, whether they were told or not: barriers do not take whole time slices, ranks that wait for a rank that
 * is busy elsewhere leave the cores alone, yet answer soon, and who looks for messages in its work is left alone.  What counts is processor time, and the best of many: that other
 * processes have the cores, too, makes a barrier or an answer late, but not dear.  The limits are ten times and more what it takes on a
 * machine that does nothing else, and a tenth of what spinning ranks take.
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

/*
 * Rank 0 looks for messages now and then in its work, which others wait for: it is not one that waits, however little it does in between, and
 * must not be put to sleep.
 */
static void working(void)
{
	enum { STEPS = 3000 };
	struct check_counter sleeps = check_counter_watch("sleeps");
	long long slept;
	int flag = 0;

	for (int i = 0; check.rank == 0 && i < STEPS && !flag; i++) {
		double until = seconds() + 1.2e-6;

		while (seconds() < until)
			;
		MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	}
	slept = check_counter_end(&sleeps);
	CHECK(!flag, "a message that nobody sent");
	CHECK(check.rank > 0 || slept <= STEPS / 20, "%lld sleeps in %d steps", slept, STEPS);
	check_group("working");
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, "idle", 60);
	barriers();
	waiting();
	working();
	return check_done();
}
