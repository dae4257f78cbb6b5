/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes: synchronous, ready and buffered sends, blocking, nonblocking and persistent, at sizes from none to 1 MiB.
 * A synchronous send must not complete before its receive is posted; a buffered one must complete although nobody
 * receives; a ready one goes to a receive that is known to be there.  Contents are compared as in the ring test.
 */
#include "check.h"

enum { DATA = 1, GO = 2, MOST = 1 << 20 };

static const int sizes[] = { 0, 1, 8, 48, 100, 256, 1000, 3000, 4095, 4096, 5000, 8192, 30000, 65536, 200000, MOST };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static int left, right;
static unsigned char *out, *in, *attached;

static uint64_t key(int from, int bytes)
{
	return check_key((unsigned)from, 7, (uint64_t)bytes);
}

static void prepare(int bytes)
{
	check_fill(out, (size_t)bytes, key(check.rank, bytes));
	memset(in, 0, (size_t)bytes);
}

static void expect(const char *what, int bytes)
{
	long at = check_differs(in, (size_t)bytes, key(left, bytes));

	CHECK(at < 0, "%s, %d bytes: wrong at byte %ld", what, bytes, at);
}

/* An empty message that says "you may go on". */
static void tell(int whom)
{
	MPI_Send(NULL, 0, MPI_BYTE, whom, GO, MPI_COMM_WORLD);
}

static void await(int whom)
{
	MPI_Recv(NULL, 0, MPI_BYTE, whom, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Whether a request stays incomplete through some milliseconds of progress. */
static bool stays_open(MPI_Request *req)
{
	int done = 0;

	for (int k = 0; k < 30 && !done; k++) {
		MPI_Test(req, &done, MPI_STATUS_IGNORE);
		if (k % 10 == 0)
			usleep(200);
	}
	return !done;
}

/* ---- synchronous ---- */

/* Everybody sends and waits before anybody posts: a synchronous send that completes here lies. */
static void try_issend(int bytes)
{
	MPI_Request req;

	prepare(bytes);
	MPI_Issend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &req);
	CHECK(stays_open(&req), "issend of %d bytes completed with no receive posted", bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(in, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	expect("issend", bytes);
}

/* Receives are there first; the blocking form must come back. */
static void try_ssend(int bytes)
{
	MPI_Request req;

	prepare(bytes);
	MPI_Irecv(in, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, &req);
	MPI_Ssend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	expect("ssend", bytes);
}

/* A probe does not count as a receive. */
static void try_issend_probed(int bytes)
{
	MPI_Request req;
	MPI_Status status;
	int n;

	prepare(bytes);
	MPI_Issend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &req);
	MPI_Probe(left, DATA, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &n);
	CHECK(n == bytes, "probe of a synchronous message of %d bytes says %d", bytes, n);
	CHECK(stays_open(&req), "issend of %d bytes completed by a probe", bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(in, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	expect("issend, probed", bytes);
}

static void try_ssend_init(int bytes)
{
	MPI_Request req[2];

	MPI_Ssend_init(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &req[0]);
	MPI_Recv_init(in, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, &req[1]);
	for (int k = 0; k < 3; k++) {
		prepare(bytes);
		MPI_Startall(2, req);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		expect("ssend_init", bytes);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
}

/* ---- ready: the receiver says that it is ready before the sender sends ---- */

static void try_rsend(int bytes)
{
	MPI_Request req, send;

	for (int k = 0; k < 3; k++) {
		prepare(bytes);
		MPI_Irecv(in, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, &req);
		tell(left);
		await(right);
		if (k == 0) {
			MPI_Rsend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD);
		} else if (k == 1) {
			MPI_Irsend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &send);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
		} else {
			MPI_Rsend_init(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &send);
			MPI_Start(&send);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
			MPI_Request_free(&send);
		}
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		expect("rsend", bytes);
	}
}

/* ---- buffered: completes without a receiver, and the user's buffer is free at once ---- */

static void buffered_send(int form, int bytes)
{
	MPI_Request req;

	if (form == 0) {
		MPI_Bsend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD);
		return;
	}
	if (form == 1) {
		MPI_Ibsend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &req);
	} else {
		MPI_Bsend_init(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &req);
		MPI_Start(&req);
	}
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	if (form == 2)
		MPI_Request_free(&req);
}

static void try_bsend(int bytes)
{
	for (int form = 0; form < 3; form++) {
		prepare(bytes);
		buffered_send(form, bytes);
		memset(out, 0xee, (size_t)bytes);
		MPI_Barrier(MPI_COMM_WORLD); /* all sends are over before the first receive */
		MPI_Recv(in, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		expect("bsend", bytes);
	}
}

/* Detaching waits for what is still in the buffer; the ranks detach while their messages wait to be received. */
static void group_detach(void)
{
	enum { EACH = 20, BYTES = 9000 };
	int room = EACH * (BYTES + MPI_BSEND_OVERHEAD), size;
	void *buffer = check_memory((size_t)room), *got;

	MPI_Buffer_attach(buffer, room);
	for (int k = 0; k < EACH; k++) {
		check_fill(out, BYTES, key(check.rank, k));
		MPI_Bsend(out, BYTES, MPI_BYTE, right, DATA, MPI_COMM_WORLD);
	}
	for (int k = 0; k < EACH; k++) {
		if (k == EACH / 2 && check.rank % 2 == 0) {
			check_at("detach with messages in the buffer", k);
			MPI_Request half[EACH];

			for (int j = k; j < EACH; j++)
				MPI_Irecv(in + j * BYTES, BYTES, MPI_BYTE, left, DATA, MPI_COMM_WORLD, &half[j]);
			MPI_Buffer_detach(&got, &size);
			MPI_Waitall(EACH - k, half + k, MPI_STATUSES_IGNORE);
			break;
		}
		MPI_Recv(in + k * BYTES, BYTES, MPI_BYTE, left, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (check.rank % 2)
		MPI_Buffer_detach(&got, &size);
	CHECK(got == buffer && size == room, "detach gave back another buffer");
	for (int k = 0; k < EACH; k++)
		CHECK(check_differs(in + k * BYTES, BYTES, key(left, k)) < 0, "message %d: content differs", k);
	free(buffer);
	check_group("detach of a buffer in use");
}

static void group_sizes(const char *name, void (*body)(int bytes))
{
	for (int s = 0; s < SIZES; s++) {
		check_at(name, sizes[s]);
		body(sizes[s]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	check_group(name);
}

static void group_bsend(void)
{
	/* A message may stay in the buffer until its sender sees that it was received: room for those of the last rounds. */
	int room = 4 * (MOST + 4096 + MPI_BSEND_OVERHEAD), size;
	void *got;

	attached = check_memory((size_t)room);
	MPI_Buffer_attach(attached, room);
	group_sizes("bsend", try_bsend);
	MPI_Buffer_detach(&got, &size);
	free(attached);
}

int main(int argc, char **argv)
{
	check_init(&argc, &argv, "modes", 60);
	left = (check.rank + check.size - 1) % check.size;
	right = (check.rank + 1) % check.size;
	out = check_memory(MOST);
	in = check_memory(MOST);
	group_sizes("issend waits for its receive", try_issend);
	group_sizes("issend is not completed by a probe", try_issend_probed);
	group_sizes("ssend", try_ssend);
	group_sizes("ssend_init", try_ssend_init);
	group_sizes("rsend", try_rsend);
	group_bsend();
	group_detach();
	free(out), free(in);
	return check_done();
}
