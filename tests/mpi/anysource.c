/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any source: wildcard receives, the four probes, cancelled receives, and what must not match: another communicator,
 * another tag, MPI_PROC_NULL.  Rank 0 is the one who guesses; the others send.
 */
#include "check.h"

enum { EACH = 200, BIGGEST = 300000 };

static const int sizes[] = { 0, 1, 8, 60, 500, 3000, 4096, 9000, 66000, BIGGEST };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static unsigned char *buffer;

static uint64_t key(int from, int number)
{
	return check_key((unsigned)from, 0, (uint64_t)number);
}

static int tag_of(int from, int number)
{
	return 100 + (from * 7 + number) % 50;
}

static int bytes_of(int from, int number)
{
	return sizes[(from + number) % SIZES];
}

/* Everybody but rank 0 sends EACH messages of mixed sizes; by MPI_Isend each second time. */
static void send_all(MPI_Comm comm)
{
	static unsigned char copy[4][BIGGEST];
	MPI_Request req[4] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL };

	for (int k = 0; k < EACH; k++) {
		int bytes = bytes_of(check.rank, k), slot = k % 4;

		check_at("sending", k);
		MPI_Wait(&req[slot], MPI_STATUS_IGNORE);
		check_fill(copy[slot], (size_t)bytes, key(check.rank, k));
		if (k % 2)
			MPI_Send(copy[slot], bytes, MPI_BYTE, 0, tag_of(check.rank, k), comm);
		else
			MPI_Isend(copy[slot], bytes, MPI_BYTE, 0, tag_of(check.rank, k), comm, &req[slot]);
	}
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
}

/* A message came: it must be the next one of its sender. */
static void expect_next(const char *how, const MPI_Status *status, int *seen)
{
	int from = status->MPI_SOURCE, bytes, k;

	if (!CHECK(from > 0 && from < check.size, "%s: source is %d", how, from))
		return;
	k = seen[from]++;
	MPI_Get_count(status, MPI_BYTE, &bytes);
	CHECK(status->MPI_TAG == tag_of(from, k), "%s: message %d of rank %d has tag %d", how, k, from, status->MPI_TAG);
	if (CHECK(bytes == bytes_of(from, k), "%s: message %d of rank %d has %d bytes", how, k, from, bytes))
		CHECK(check_differs(buffer, (size_t)bytes, key(from, k)) < 0, "%s: message %d of rank %d: content differs", how, k, from);
}

/* ---- ways of taking one message from anybody ---- */

typedef void take_fn(MPI_Status *status);

static void take_recv(MPI_Status *status)
{
	MPI_Recv(buffer, BIGGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status);
}

static void take_irecv(MPI_Status *status)
{
	MPI_Request req;
	int done = 0;

	MPI_Irecv(buffer, BIGGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &req);
	while (!done)
		MPI_Test(&req, &done, status);
}

/* Receives exactly what the probe announced, by its source and tag. */
static void take_announced(const MPI_Status *announced, MPI_Status *status)
{
	int bytes, again;

	MPI_Get_count(announced, MPI_BYTE, &bytes);
	MPI_Recv(buffer, bytes, MPI_BYTE, announced->MPI_SOURCE, announced->MPI_TAG, MPI_COMM_WORLD, status);
	MPI_Get_count(status, MPI_BYTE, &again);
	CHECK(again == bytes && status->MPI_SOURCE == announced->MPI_SOURCE && status->MPI_TAG == announced->MPI_TAG,
		"probe announced %d bytes from %d, %d came from %d", bytes, announced->MPI_SOURCE, again, status->MPI_SOURCE);
}

static void take_probe(MPI_Status *status)
{
	MPI_Status announced;

	MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &announced);
	take_announced(&announced, status);
}

static void take_iprobe(MPI_Status *status)
{
	MPI_Status announced;
	int there = 0;

	while (!there)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &announced);
	take_announced(&announced, status);
}

static void take_mprobe(MPI_Status *status)
{
	MPI_Message message;
	int bytes;

	MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, status);
	MPI_Get_count(status, MPI_BYTE, &bytes);
	MPI_Mrecv(buffer, bytes, MPI_BYTE, &message, status);
	CHECK(message == MPI_MESSAGE_NULL, "mrecv left its message handle");
}

static void take_improbe(MPI_Status *status)
{
	MPI_Message message;
	MPI_Request req;
	int there = 0;

	while (!there)
		MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &message, status);
	MPI_Imrecv(buffer, BIGGEST, MPI_BYTE, &message, &req);
	MPI_Wait(&req, status);
}

static void group_take(const char *name, take_fn *take)
{
	int *seen = check_memory(sizeof *seen * (size_t)check.size);

	if (check.rank)
		send_all(MPI_COMM_WORLD);
	for (int k = 0; check.rank == 0 && k < EACH * (check.size - 1); k++) {
		MPI_Status status;

		check_at(name, k);
		take(&status);
		expect_next(name, &status, seen);
	}
	for (int r = 1; check.rank == 0 && r < check.size; r++)
		CHECK(seen[r] == EACH, "%s: %d messages of rank %d", name, seen[r], r);
	free(seen);
	check_group(name);
}

/* ---- one tag, any source; one source, any tag ---- */

static void group_half_wild(void)
{
	enum { N = 60 };
	int *count = check_memory(sizeof *count * (size_t)check.size), v[2];
	MPI_Status status;

	for (int k = 0; check.rank && k < N; k++)
		for (int tag = 1; tag <= 3; tag++)
			MPI_Send((int[2]){ check.rank, k * 10 + tag }, 2, MPI_INT, 0, tag, MPI_COMM_WORLD);
	if (check.rank == 0) {
		/* Tag 2 first although tag 1 was sent first; then each source with any tag. */
		for (int k = 0; k < N * (check.size - 1); k++) {
			MPI_Recv(v, 2, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
			CHECK(v[0] == status.MPI_SOURCE && v[1] == count[v[0]]++ * 10 + 2, "any source, tag 2: %d from %d", v[1], v[0]);
		}
		for (int r = check.size - 1; r > 0; r--)
			for (int k = 0; k < 2 * N; k++) {
				MPI_Recv(v, 2, MPI_INT, r, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
				CHECK(v[0] == r && v[1] == k / 2 * 10 + (k % 2 ? 3 : 1) && status.MPI_TAG == v[1] % 10,
					"source %d, any tag: %d is message %d", r, v[1], k);
			}
	}
	free(count);
	check_group("one wildcard");
}

/* A wildcard sees only its communicator, in whatever order the messages came. */
static void group_communicators(void)
{
	enum { N = 50 };
	MPI_Comm other;
	int v = -1;
	MPI_Status status;

	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	for (int k = 0; check.rank && k < N; k++) {
		MPI_Send((int[1]){ k }, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
		MPI_Send((int[1]){ k + 1000 }, 1, MPI_INT, 0, 5, other);
	}
	for (int k = 0; check.rank == 0 && k < N * (check.size - 1); k++) {
		MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, &status);
		CHECK(v >= 1000, "the second communicator got %d", v);
	}
	for (int k = 0; check.rank == 0 && k < N * (check.size - 1); k++) {
		MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		CHECK(v < 1000, "the world got %d", v);
	}
	MPI_Comm_free(&other);
	check_group("two communicators");
}

/* ---- cancel ---- */

static void cancel_and_expect(MPI_Request *req, const char *what)
{
	MPI_Status status;
	int cancelled = 0;

	check_at(what, 0);
	MPI_Cancel(req);
	MPI_Wait(req, &status);
	MPI_Test_cancelled(&status, &cancelled);
	CHECK(cancelled, "%s was not cancelled", what);
}

/* A cancelled receive is out of the way: the message that it would have matched goes to the next one. */
static void group_cancel(void)
{
	for (int k = 0; k < 2 * SIZES; k++) {
		int bytes = sizes[k / 2], right = (check.rank + 1) % check.size, left = (check.rank + check.size - 1) % check.size;
		unsigned char *trap = check_memory((size_t)bytes + 1), *out = check_memory((size_t)bytes + 1);
		MPI_Request dead[3], req;

		memset(trap, 0x33, (size_t)bytes + 1);
		MPI_Irecv(trap, bytes, MPI_BYTE, left, 60, MPI_COMM_WORLD, &dead[0]);
		MPI_Irecv(trap, bytes, MPI_BYTE, MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, &dead[1]);
		MPI_Irecv(trap, bytes, MPI_BYTE, left, MPI_ANY_TAG, MPI_COMM_WORLD, &dead[2]);
		for (int d = 0; d < 3; d++)
			cancel_and_expect(&dead[k % 2 ? 2 - d : d], d == 0 ? "a receive" : d == 1 ? "an any-source receive" : "an any-tag receive");
		MPI_Barrier(MPI_COMM_WORLD);
		check_fill(out, (size_t)bytes, key(check.rank, k));
		MPI_Isend(out, bytes, MPI_BYTE, right, 60, MPI_COMM_WORLD, &req);
		MPI_Recv(buffer, bytes, MPI_BYTE, left, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		CHECK(check_differs(buffer, (size_t)bytes, key(left, k)) < 0, "%d bytes: content differs", bytes);
		CHECK(trap[0] == 0x33 && trap[bytes] == 0x33, "%d bytes: a cancelled receive was written to", bytes);
		free(trap), free(out);
	}
	check_group("cancel of a receive");
}

/* Cancelling what is complete, or about to be, either cancels it or delivers it: never both, never neither. */
static void group_cancel_race(void)
{
	int left = (check.rank + check.size - 1) % check.size, right = (check.rank + 1) % check.size;

	for (int k = 0; k < 200; k++) {
		int in = -1, late = -1, out = k, cancelled;
		MPI_Request recv, send;
		MPI_Status status;

		check_at("cancel against arrival", k);
		MPI_Irecv(&in, 1, MPI_INT, left, 70, MPI_COMM_WORLD, &recv);
		MPI_Isend(&out, 1, MPI_INT, right, 70, MPI_COMM_WORLD, &send);
		if (k % 3 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
		MPI_Cancel(&recv);
		MPI_Wait(&recv, &status);
		MPI_Test_cancelled(&status, &cancelled);
		if (cancelled)
			MPI_Recv(&late, 1, MPI_INT, left, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		CHECK(cancelled ? in == -1 && late == k : in == k, "round %d, cancelled %d: %d and %d", k, cancelled, in, late);
	}
	check_group("cancel against arrival");
}

static void group_null(void)
{
	MPI_Status status;
	MPI_Message message;
	int v = 5, there = 0, count = -1;

	MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
	MPI_Recv(&v, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK(v == 5 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0, "recv from nobody");
	MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
	CHECK(status.MPI_SOURCE == MPI_PROC_NULL, "probe of nobody");
	MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &there, &message, &status);
	CHECK(there && message == MPI_MESSAGE_NO_PROC, "improbe of nobody");
	MPI_Mrecv(&v, 1, MPI_INT, &message, &status);
	CHECK(v == 5 && message == MPI_MESSAGE_NULL, "mrecv from nobody");
	there = 1;
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
	CHECK(!there, "a message nobody sent: source %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
	check_group("no process, no message");
}

int main(int argc, char **argv)
{
	static const struct { const char *name; take_fn *take; } ways[] = {
		{ "any-source recv", take_recv }, { "any-source irecv", take_irecv }, { "probe", take_probe },
		{ "iprobe", take_iprobe }, { "mprobe and mrecv", take_mprobe }, { "improbe and imrecv", take_improbe },
	};

	check_init(&argc, &argv, "anysource", 60);
	buffer = check_memory(BIGGEST);
	for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
		group_take(ways[k].name, ways[k].take);
	group_half_wild();
	group_communicators();
	group_cancel();
	group_cancel_race();
	group_null();
	free(buffer);
	return check_done();
}
