/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order: messages between two ranks that the same receive could match must match in the order in which they were
 * sent, whatever their sizes and whichever paths they take.  Every pair of ranks exchanges numbered messages, small
 * ones only, small and large ones mixed, contiguous and not, to receives that are posted early, late, and wild.
 */
#include "check.h"

enum { WINDOW = 32, BIGGEST = 150000 };

static const int small[] = { 8, 8, 16, 8, 40, 8, 64, 256, 8, 8 };
static const int mixed[] = { 8, 66000, 8, 304, 4096, 16, 5000, 8, 20000, 8, 1000, BIGGEST, 8, 8, 9000, 64 };

struct plan {
	const char *name;
	const int *sizes;
	int nsizes, rounds;
	bool late;            /* receives are posted after the sends */
	bool wild;            /* receives name neither source nor tag */
	bool gaps;            /* every third message leaves as a vector with gaps */
};

static unsigned char *out, *in; /* a window of messages to, or from, each rank */

static unsigned char *slot(unsigned char *room, int rank, int k)
{
	return room + ((size_t)rank * WINDOW + (size_t)k) * (2 * BIGGEST);
}

static int bytes_of(const struct plan *p, int from, int to, int number)
{
	return p->sizes[check_key((unsigned)from, (unsigned)to, (uint64_t)number) % (unsigned)p->nsizes];
}

/* The first words of a message: who sent it and its number; then the pattern. */
static void stamp(unsigned char *message, int bytes, int to, int number)
{
	check_fill(message, (size_t)bytes, check_key((unsigned)check.rank, (unsigned)to, (uint64_t)number));
	memcpy(message, (int[2]){ check.rank, number }, 8);
}

static void expect(const struct plan *p, unsigned char *message, const MPI_Status *status, int from, int number)
{
	int said[2], bytes;
	uint64_t key = check_key((unsigned)from, (unsigned)check.rank, (uint64_t)number), first = check_word(key, 0);

	MPI_Get_count(status, MPI_BYTE, &bytes);
	memcpy(said, message, 8);
	if (!CHECK(said[0] == from && said[1] == number, "%s: from rank %d came message %d of rank %d in place of %d", p->name, from,
		said[1], said[0], number))
		return;
	memcpy(message, &first, 8);
	CHECK(bytes == bytes_of(p, from, check.rank, number), "%s: message %d from %d has %d bytes", p->name, number, from, bytes);
	CHECK(check_differs(message, (size_t)bytes, key) < 0, "%s: message %d from %d (%d bytes): content differs", p->name, number,
		from, bytes);
}

/* Spreads a message over every second eight bytes of its slot and sends it from there; sizes are multiples of 8. */
static void send_spread(unsigned char *message, int bytes, int to, MPI_Request *req)
{
	int longs = bytes / 8;
	MPI_Datatype spread;

	for (int k = longs - 1; k > 0; k--)
		memmove(message + 16 * k, message + 8 * k, 8);
	MPI_Type_vector(longs, 8, 16, MPI_BYTE, &spread);
	MPI_Type_commit(&spread);
	MPI_Isend(message, 1, spread, to, 1, MPI_COMM_WORLD, req);
	MPI_Type_free(&spread);
}

static void send_window(const struct plan *p, int round, MPI_Request *req)
{
	for (int k = 0; k < WINDOW; k++)
		for (int d = 1; d < check.size; d++) {
			int to = (check.rank + d) % check.size, number = round * WINDOW + k, bytes = bytes_of(p, check.rank, to, number);
			unsigned char *message = slot(out, to, k);

			check_at(p->name, number);
			stamp(message, bytes, to, number);
			if (p->gaps && k % 3 == 0)
				send_spread(message, bytes, to, req++);
			else
				MPI_Isend(message, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, req++);
		}
}

static void post_window(const struct plan *p, MPI_Request *req)
{
	for (int k = 0; k < WINDOW; k++)
		for (int d = 1; d < check.size; d++) {
			int from = (check.rank + check.size - d) % check.size;

			MPI_Irecv(slot(in, from, k), 2 * BIGGEST, MPI_BYTE, p->wild ? MPI_ANY_SOURCE : from, p->wild ? MPI_ANY_TAG : 1,
				MPI_COMM_WORLD, req++);
		}
}

/* In the order of posting, the messages of each source must come in the order of sending. */
static void expect_window(const struct plan *p, int round, const MPI_Status *status)
{
	int *next = check_memory(sizeof *next * (size_t)check.size);

	for (int k = 0; k < WINDOW; k++)
		for (int d = 1; d < check.size; d++, status++) {
			int posted_for = (check.rank + check.size - d) % check.size, from = p->wild ? status->MPI_SOURCE : posted_for;

			CHECK(status->MPI_SOURCE == from && status->MPI_TAG == 1, "%s: status says source %d, tag %d", p->name, status->MPI_SOURCE,
				status->MPI_TAG);
			expect(p, slot(in, posted_for, k), status, from, round * WINDOW + next[from]++);
		}
	free(next);
}

static void run_plan(const struct plan *p)
{
	int each = WINDOW * (check.size - 1), rounds = p->rounds / check.size + 1;
	MPI_Request *req = check_memory(sizeof *req * 2 * (size_t)each);
	MPI_Status *status = check_memory(sizeof *status * 2 * (size_t)each);

	for (int r = 0; r < rounds; r++) {
		if (!p->late)
			post_window(p, req);
		send_window(p, r, req + each);
		if (p->late)
			post_window(p, req);
		MPI_Waitall(2 * each, req, status);
		expect_window(p, r, status);
		/* A wild receive of the next round must not take a message of this one, nor the other way round. */
		if (p->wild)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	free(req), free(status);
	check_group(p->name);
}

/* Two tags are two streams: each keeps its order, while the receiver takes them against each other. */
static void run_tags(void)
{
	enum { N = 300 };
	int left = (check.rank + check.size - 1) % check.size, right = (check.rank + 1) % check.size, v;
	MPI_Request req[2 * N];
	int numbers[2 * N];

	for (int k = 0; k < 2 * N; k++) {
		numbers[k] = k;
		MPI_Isend(&numbers[k], 1, MPI_INT, right, 2 + k % 2, MPI_COMM_WORLD, &req[k]);
	}
	for (int k = 0; k < 2 * N; k++) {
		int odd = k < N, want = 2 * (k % N) + odd;

		check_at("two tags", k);
		MPI_Recv(&v, 1, MPI_INT, left, 2 + odd, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(v == want, "tag %d: message %d in place of %d", 2 + odd, v, want);
	}
	MPI_Waitall(2 * N, req, MPI_STATUSES_IGNORE);
	check_group("two tags");
}

/* One long stream by blocking calls: many more messages than any ring or credit window has places. */
static void run_stream(void)
{
	const int n = 60000;
	int partner = check.rank ^ 1, v[2];

	for (int k = 0; k < n && partner < check.size; k++) {
		check_at("stream, message", k);
		if (check.rank < partner) {
			MPI_Send((int[2]){ k, ~k }, 2, MPI_INT, partner, k & 7, MPI_COMM_WORLD);
			continue;
		}
		MPI_Recv(v, 2, MPI_INT, partner, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!CHECK(v[0] == k && v[1] == ~k, "message %d in place of %d", v[0], k))
			break;
	}
	check_group("long stream");
}

int main(int argc, char **argv)
{
	static const struct plan plans[] = {
		{ .name = "small, early receives", .sizes = small, .nsizes = 10, .rounds = 600 },
		{ .name = "small, late receives", .sizes = small, .nsizes = 10, .rounds = 600, .late = true },
		{ .name = "small, wild receives", .sizes = small, .nsizes = 10, .rounds = 600, .wild = true },
		{ .name = "mixed, early receives", .sizes = mixed, .nsizes = 16, .rounds = 60 },
		{ .name = "mixed, late receives", .sizes = mixed, .nsizes = 16, .rounds = 60, .late = true },
		{ .name = "mixed, wild receives", .sizes = mixed, .nsizes = 16, .rounds = 60, .wild = true },
		{ .name = "mixed, wild and late", .sizes = mixed, .nsizes = 16, .rounds = 60, .wild = true, .late = true },
		{ .name = "mixed, with gaps", .sizes = mixed, .nsizes = 16, .rounds = 60, .gaps = true },
	};

	check_init(&argc, &argv, "order", 60);
	out = check_memory((size_t)check.size * WINDOW * 2 * BIGGEST);
	in = check_memory((size_t)check.size * WINDOW * 2 * BIGGEST);
	for (size_t k = 0; k < sizeof plans / sizeof *plans; k++)
		run_plan(&plans[k]);
	run_tags();
	run_stream();
	free(out), free(in);
	return check_done();
}
