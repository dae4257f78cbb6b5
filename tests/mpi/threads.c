/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: MPI_THREAD_MULTIPLE with four threads a rank, all of them sending and receiving at once: on communicators
 * of their own, on one communicator with tags of their own, crosswise between threads, with wildcard receives, with
 * collectives beside messages.  Every message carries a pattern keyed by thread, pair of ranks and number.
 */
#include "check.h"

enum { THREADS = 4, BIGGEST = 200000 };

static int rounds;                      /* fewer when there are more ranks: the machine has few cores */
static MPI_Comm own[THREADS], shared;
static const int sizes[] = { 0, 8, 24, 200, 1000, 3000, 4096, 7000, 20000, 70000, BIGGEST };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

struct worker {
	int id;
	unsigned char *out, *in;
	uint64_t seed;
};

static uint64_t key(int thread, int from, int to, int number)
{
	return check_key((unsigned)from * THREADS + (unsigned)thread, (unsigned)to, (uint64_t)number);
}

static void expect(const struct worker *w, const char *what, int bytes, uint64_t k, int number)
{
	long at = check_differs(w->in, (size_t)bytes, k);

	CHECK(at < 0, "%s, thread %d, message %d of %d bytes: wrong at byte %ld", what, w->id, number, bytes, at);
}

static int left_of(int distance)
{
	return (check.rank + check.size - distance) % check.size;
}

static int right_of(int distance)
{
	return (check.rank + distance) % check.size;
}

/* ---- the bodies ---- */

/* A message both ways round the ring; the size is known to both sides from the number. */
static void body_own(struct worker *w)
{
	for (int k = 0; k < rounds; k++) {
		int bytes = sizes[(k + w->id) % SIZES], to = right_of(1), from = left_of(1);

		check_at("own communicator, message", k);
		check_fill(w->out, (size_t)bytes, key(w->id, check.rank, to, k));
		MPI_Sendrecv(w->out, bytes, MPI_BYTE, to, 1, w->in, bytes, MPI_BYTE, from, 1, own[w->id], MPI_STATUS_IGNORE);
		expect(w, "own communicator", bytes, key(w->id, from, check.rank, k), k);
	}
}

static void body_tags(struct worker *w)
{
	for (int k = 0; k < rounds; k++) {
		int distance = 1 + k % (check.size - 1), bytes = sizes[(2 * k + w->id) % SIZES], to = right_of(distance),
			from = left_of(distance);
		MPI_Request req[2];

		check_at("own tag, message", k);
		check_fill(w->out, (size_t)bytes, key(w->id, check.rank, to, k));
		MPI_Irecv(w->in, bytes, MPI_BYTE, from, w->id, shared, &req[0]);
		MPI_Isend(w->out, bytes, MPI_BYTE, to, w->id, shared, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		expect(w, "own tag", bytes, key(w->id, from, check.rank, k), k);
	}
}

/* The same requests again and again, and buffered sends beside them, which are complete before they have left. */
static void body_again(struct worker *w)
{
	int to = right_of(1), from = left_of(1), bytes = sizes[SIZES - 1 - w->id];
	MPI_Request req[3];

	MPI_Recv_init(w->in, bytes, MPI_BYTE, from, 60 + w->id, shared, &req[0]);
	MPI_Send_init(w->out, bytes, MPI_BYTE, to, 60 + w->id, shared, &req[1]);
	for (int k = 0; k < rounds; k++) {
		int small = -1;

		check_at("started again", k);
		check_fill(w->out, (size_t)bytes, key(w->id, check.rank, to, k));
		MPI_Startall(2, req);
		MPI_Ibsend(&k, 1, MPI_INT, to, 70 + w->id, shared, &req[2]);
		MPI_Recv(&small, 1, MPI_INT, from, 70 + w->id, shared, MPI_STATUS_IGNORE);
		CHECK(small == k, "buffered, thread %d: number %d came as %d", w->id, k, small);
		MPI_Waitall(3, req, MPI_STATUSES_IGNORE);
		expect(w, "started again", bytes, key(w->id, from, check.rank, k), k);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
}

/* Thread t sends to thread t + 1 of the neighbour. */
static void body_crosswise(struct worker *w)
{
	int mate = (w->id + THREADS - 1) % THREADS, to = right_of(1), from = left_of(1);

	for (int k = 0; k < rounds; k++) {
		int bytes = sizes[(3 * k + w->id) % SIZES], theirs = sizes[(3 * k + mate) % SIZES];
		MPI_Request req;

		check_at("crosswise, message", k);
		check_fill(w->out, (size_t)bytes, key(w->id, check.rank, to, k));
		MPI_Isend(w->out, bytes, MPI_BYTE, to, 10 + (w->id + 1) % THREADS, shared, &req);
		MPI_Recv(w->in, theirs, MPI_BYTE, from, 10 + w->id, shared, MPI_STATUS_IGNORE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		expect(w, "crosswise", theirs, key(mate, from, check.rank, k), k);
	}
}

/* Threads 0 and 1 send; 2 and 3 take what there is by matched probe: each message goes to exactly one of them. */
static void body_matched(struct worker *w)
{
	int to = right_of(1), from = left_of(1);

	for (int k = 0; k < rounds; k++) {
		int bytes = 16 + sizes[k % SIZES];
		MPI_Message message;
		MPI_Status status;

		check_at(w->id < 2 ? "matched probe, sending" : "matched probe, receiving", k);
		if (w->id < 2) {
			check_fill(w->out, (size_t)bytes, key(w->id, check.rank, to, k));
			memcpy(w->out, (int[2]){ w->id, k }, 8);
			MPI_Send(w->out, bytes, MPI_BYTE, to, 20, shared);
			continue;
		}
		MPI_Mprobe(from, 20, shared, &message, &status);
		MPI_Get_count(&status, MPI_BYTE, &bytes);
		MPI_Mrecv(w->in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		int who[2];
		uint64_t first;

		memcpy(who, w->in, 8);
		first = check_word(key(who[0] & 1, from, check.rank, who[1]), 0);
		memcpy(w->in, &first, 8);
		CHECK(bytes == 16 + sizes[who[1] % SIZES], "matched probe: message %d has %d bytes", who[1], bytes);
		expect(w, "matched probe", bytes, key(who[0] & 1, from, check.rank, who[1]), who[1]);
	}
}

/* Collectives on two threads' communicators while the other two exchange messages. */
static void body_collectives(struct worker *w)
{
	if (w->id % 2) {
		body_tags(w);
		return;
	}
	for (int k = 0; k < rounds; k++) {
		long mine = (long)(k + w->id) * (check.rank + 1), sum = -1, want = (long)(k + w->id) * check.size * (check.size + 1) / 2;
		int bytes = sizes[k % SIZES], root = k % check.size;

		check_at("collective", k);
		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, own[w->id]);
		CHECK(sum == want, "allreduce %d of thread %d: %ld, not %ld", k, w->id, sum, want);
		if (check.rank == root)
			check_fill(w->in, (size_t)bytes, key(w->id, root, 0, k));
		MPI_Bcast(w->in, bytes, MPI_BYTE, root, own[w->id]);
		expect(w, "bcast", bytes, key(w->id, root, 0, k), k);
	}
}

/* All threads of a rank wait in receives for all threads of the other ranks: nobody may be left asleep. */
static void body_ping(struct worker *w)
{
	int partner = check.rank ^ 1;

	for (int k = 0; k < 4 * rounds && partner < check.size; k++) {
		check_at("small ping-pong, message", k);
		if (check.rank < partner) {
			check_fill(w->out, 8, key(w->id, check.rank, partner, k));
			MPI_Send(w->out, 8, MPI_BYTE, partner, 40 + w->id, shared);
			MPI_Recv(w->in, 8, MPI_BYTE, partner, 40 + w->id, shared, MPI_STATUS_IGNORE);
			expect(w, "ping-pong", 8, key(w->id, check.rank, partner, k), k);
		} else {
			MPI_Recv(w->in, 8, MPI_BYTE, partner, 40 + w->id, shared, MPI_STATUS_IGNORE);
			MPI_Send(w->in, 8, MPI_BYTE, partner, 40 + w->id, shared);
		}
	}
}

/* ---- running four of a body ---- */

struct start {
	struct worker *worker;
	void (*body)(struct worker *);
};

static void *run_body(void *arg)
{
	struct start *s = arg;

	check_thread = s->worker->id + 1;
	s->body(s->worker);
	check_at("done", 0);
	return NULL;
}

static void run(const char *name, struct worker *workers, void (*body)(struct worker *))
{
	pthread_t thread[THREADS];
	struct start start[THREADS];

	check_at(name, 0);
	for (int t = 0; t < THREADS; t++) {
		start[t] = (struct start){ &workers[t], body };
		if (pthread_create(&thread[t], NULL, run_body, &start[t])) {
			fprintf(stderr, "threads: rank %d: cannot start a thread\n", check.rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	check_group(name);
}

int main(int argc, char **argv)
{
	static char buffered[1 << 20];
	struct worker workers[THREADS];
	void *room;

	check_init_level(&argc, &argv, "threads", 90, MPI_THREAD_MULTIPLE);
	rounds = argc > 1 ? atoi(argv[1]) : 320 / check.size;
	/* A message too long for its receive shall be reported as the wrong message that it is; duplicates inherit this. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_dup(MPI_COMM_WORLD, &shared);
	for (int t = 0; t < THREADS; t++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &own[t]);
		workers[t] = (struct worker){ .id = t, .out = check_memory(BIGGEST + 16), .in = check_memory(BIGGEST + 16) };
	}
	run("own communicators", workers, body_own);
	run("own tags", workers, body_tags);
	run("crosswise", workers, body_crosswise);
	MPI_Buffer_attach(buffered, sizeof(buffered));
	run("started again", workers, body_again);
	MPI_Buffer_detach(&room, &(int){ 0 });
	run("small ping-pong", workers, body_ping);
	run("matched probe", workers, body_matched);
	run("collectives beside messages", workers, body_collectives);
	for (int t = 0; t < THREADS; t++) {
		MPI_Comm_free(&own[t]);
		free(workers[t].out), free(workers[t].in);
	}
	MPI_Comm_free(&shared);
	return check_done();
}
