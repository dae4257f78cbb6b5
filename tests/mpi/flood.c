/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flood: every other rank sends rank 0 thousands of messages that it does not expect.  Rank 0 sleeps first (makes no
 * progress at all) until each of them has more on its way than any transport takes from it, or is busy with other calls
 * (makes progress, and must put the messages somewhere), and then receives: all must come, in order, with their contents,
 * and the memory of each process is reported.
 *
 *     flood [MESSAGES in all [BYTES each [LIMIT MiB [COUNTER,...]]]]        without arguments: 100000 messages of 1000 bytes
 *
 * With a limit the test fails if a process grows by more at any time of the sleeping parts.  What a busy MPI library does
 * with unexpected messages that it has taken from the network is above the transport: that part has 8000 messages at most,
 * and no limit.  Each of the counters, variables of MPI_T, must have grown in every sender while rank 0 slept.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { AHEAD = 256, BUSY_MOST = 8000, LOOK = 4096, COUNTERS = 8 };

static int messages, bytes = 1000;
static long limit_kib, before, most;
static unsigned char *buffer;
static char place[] = "/tmp/flood-XXXXXX"; /* a folder in which senders say, by a file each, how far they are */

/* ---- memory ---- */

static void look(void)
{
	long grew = check_status_kib("VmRSS:") - before;

	most = grew > most ? grew : most;
}

static void report_growth(const char *when, bool limited, int each)
{
	long peak;

	look();
	if (limit_kib && limited)
		CHECK(most <= limit_kib, "grew by %ld KiB, the limit is %ld", most, limit_kib);
	MPI_Reduce(&most, &peak, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (check.rank == 0)
		printf("  %s: %d messages of %d bytes from each of %d ranks: rank 0 grew by %ld KiB, the largest growth is %ld KiB\n", when,
			each, bytes, check.size - 1, most, peak);
}

/* ---- counters ---- */

static MPI_T_pvar_session session;
static MPI_T_pvar_handle counter[COUNTERS];
static char *counter_name[COUNTERS];
static int counters;

static void counters_open(char *names)
{
	int level, index, count;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
	MPI_T_pvar_session_create(&session);
	for (char *name = strtok(names, ","); name && counters < COUNTERS; name = strtok(NULL, ",")) {
		counter_name[counters] = name;
		if (CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS, "no counter %s", name) &&
		    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &counter[counters], &count) == MPI_SUCCESS, "%s", name))
			counters++;
	}
	check_group("counters");
}

static unsigned long long counted(int i)
{
	unsigned long long value = 0;

	MPI_T_pvar_read(session, counter[i], &value);
	return value;
}

/* What the counters of all ranks together have grown by since `was`. */
static void report_counters(const char *when, const unsigned long long *was)
{
	for (int i = 0; i < counters; i++) {
		unsigned long long grew = counted(i) - was[i], all = 0;

		MPI_Reduce(&grew, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
		if (check.rank == 0)
			printf("  %s: %s grew by %llu\n", when, counter_name[i], all);
	}
}

/* ---- the flood ---- */

/* How far rank 0 may sleep: the first messages of this rank have been handed over, as far as anybody takes them. */
static void tell_stalled(void)
{
	char name[64];

	snprintf(name, sizeof name, "%s/%d", place, check.rank);
	close(open(name, O_CREAT | O_WRONLY, 0600));
}

static void sleep_until_stalled(void)
{
	for (int r = 1; r < check.size; r++) {
		char name[64];

		snprintf(name, sizeof name, "%s/%d", place, r);
		check_at("asleep, for rank", r);
		while (access(name, F_OK) != 0)
			usleep(10000);
		unlink(name);
	}
	usleep(200000);
}

static unsigned char *fill(int tag, int k)
{
	unsigned char *p = buffer + (size_t)(k % AHEAD) * (size_t)bytes;

	check_fill(p, (size_t)bytes, check_key((unsigned)check.rank, (unsigned)tag, (uint64_t)k));
	return p;
}

/* More than there is credit for, without waiting for any of them: they have to wait somewhere, and that counts. */
static int send_first(int tag, int each)
{
	int n = each < AHEAD ? each : AHEAD;
	unsigned long long was[COUNTERS];
	MPI_Request req[AHEAD];

	for (int i = 0; i < counters; i++)
		was[i] = counted(i);
	for (int k = 0; k < n; k++)
		MPI_Isend(fill(tag, k), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &req[k]);
	for (int i = 0; i < counters; i++)
		CHECK(counted(i) > was[i], "%s is %llu before and %llu after %d messages to a rank that sleeps", counter_name[i], was[i],
			counted(i), n);
	tell_stalled();
	check_at("sending", 0);
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	return n;
}

static void send_flood(int tag, int each, bool busy)
{
	for (int k = busy ? 0 : send_first(tag, each); k < each; k++) {
		check_at("sending", k);
		MPI_Send(fill(tag, k), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
		if (k % LOOK == 0) {
			look();
			check_alive();
		}
	}
}

static void receive(int from, int tag, int *next)
{
	MPI_Status status;
	int n, k;

	MPI_Recv(buffer, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &n);
	k = next[status.MPI_SOURCE]++;
	CHECK(n == bytes && check_differs(buffer, (size_t)bytes, check_key((unsigned)status.MPI_SOURCE, (unsigned)tag, (uint64_t)k)) < 0,
		"message %d of rank %d: %d bytes, or another content", k, status.MPI_SOURCE, n);
}

/*
 * In the order in which they come; or backwards through the sources, so that the last rank's messages are dug out from under
 * all others.
 */
static void receive_flood(int tag, int each, bool backwards)
{
	int *next = check_memory((size_t)check.size * sizeof *next), total = each * (check.size - 1);

	for (int i = 0; i < total; i++) {
		check_at("receiving", i);
		receive(backwards ? check.size - 1 - i / each : MPI_ANY_SOURCE, tag, next);
		if (i % LOOK == 0) {
			look();
			check_alive();
		}
	}
	for (int r = 1; r < check.size; r++)
		CHECK(next[r] == each, "%d messages of rank %d", next[r], r);
	free(next);
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
	int each = busy && messages > BUSY_MOST / (check.size - 1) ? BUSY_MOST / (check.size - 1) : messages;
	unsigned long long was[COUNTERS];

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < counters; i++)
		was[i] = counted(i);
	before = check_status_kib("VmRSS:");
	most = 0;
	if (check.rank) {
		send_flood(tag, each, busy);
	} else {
		if (busy)
			be_busy(0.5);
		else
			sleep_until_stalled();
		receive_flood(tag, each, busy);
	}
	report_growth(name, !busy, each);
	report_counters(name, was);
	check_group(name);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, "flood", 90);
	messages = (argc > 1 ? atoi(argv[1]) : 100000) / (check.size - 1);
	bytes = argc > 2 ? atoi(argv[2]) : bytes;
	limit_kib = argc > 3 ? atol(argv[3]) * 1024 : 0;
	if (argc > 4)
		counters_open(argv[4]);
	buffer = check_memory((size_t)bytes * AHEAD);
	memset(buffer, 1, (size_t)bytes * AHEAD);
	if (check.rank == 0 && !mkdtemp(place))
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Bcast(place, sizeof place, MPI_CHAR, 0, MPI_COMM_WORLD);
	run("receiver asleep", 1, false);
	run("receiver busy", 2, true);
	run("receiver asleep again", 3, false);
	if (check.rank == 0)
		rmdir(place);
	if (argc > 4)
		MPI_T_finalize();
	free(buffer);
	return check_done();
}
