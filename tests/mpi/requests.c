/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: their life.  Some are freed under way, or lose their communicator and datatype, or are started again and again, in every mode,
 * cancelled before and after their end, or completed by each of MPI's calls for several.  Each with the
 * next rank, and with the rank itself; each message is compared to the byte, with what lies around it.
 *
 * Arguments: "cancels": a synchronous send that nobody has received can be cancelled.  "buffers": a persistent buffered send can be started
 * again, and so can others of every datatype.  "threads": everything with MPI_THREAD_MULTIPLE, and two threads a rank,
 * of which one completes what the other has started.
 */
#include "check.h"
#include "layout.h"

#include <sched.h>

enum { DATA = 1, GO = 50, NOBODYS = 99, SHORT = 8, EAGER = 10000, LONG = 1 << 20 };
enum { STANDARD, BUFFERED, SYNCHRONOUS, READY, MODES };

static const int sizes[] = { SHORT, EAGER, LONG };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

typedef int send_fn(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *req);
static send_fn *const starts[MODES] = { MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend };
static send_fn *const inits[MODES] = { MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init };
static const char *const modes[MODES] = { "standard", "buffered", "synchronous", "ready" };

static int to, from; /* the next rank and the one before, or this rank */
static bool cancels, buffers;

/* Nobody says when a receive that has been freed is over, but its data. */
static void await_data(const char *what, struct place *p, int bytes, int number)
{
	double until = MPI_Wtime() + 4;
	int there;

	while (!place_has_come(p, place_key(from, bytes, number)) && MPI_Wtime() < until)
		MPI_Iprobe(MPI_ANY_SOURCE, NOBODYS, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
	place_expect(what, p, from, bytes, number);
}

/* ---- freed under way ---- */

static void free_receive(const struct layout *l, int bytes)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	MPI_Request req;

	place_fill(&out, place_key(check.rank, bytes, 0));
	place_clear(&in);
	MPI_Irecv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, &req);
	MPI_Request_free(&req);
	CHECK(req == MPI_REQUEST_NULL, "a freed receive is not MPI_REQUEST_NULL");
	place_free_type(&in);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out.data, out.count, out.type, to, DATA, MPI_COMM_WORLD);
	await_data("freed receive", &in, bytes, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	place_destroy(&out), place_destroy(&in);
}

/* Everybody has let go of the send before anybody receives, or it goes to a receive that waits for it. */
static void free_send(const struct layout *l, int bytes, int mode)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	MPI_Request recv, send;

	place_fill(&out, place_key(check.rank, bytes, mode));
	place_clear(&in);
	if (mode == READY) {
		MPI_Irecv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, &recv);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	starts[mode](out.data, out.count, out.type, to, DATA, MPI_COMM_WORLD, &send);
	MPI_Request_free(&send);
	CHECK(send == MPI_REQUEST_NULL, "a freed %s send is not MPI_REQUEST_NULL", modes[mode]);
	place_free_type(&out);
	if (mode == BUFFERED)
		place_clear(&out);
	if (mode != READY) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Irecv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, &recv);
	}
	MPI_Wait(&recv, MPI_STATUS_IGNORE);
	place_expect(modes[mode], &in, from, bytes, mode);
	MPI_Barrier(MPI_COMM_WORLD);
	place_destroy(&out), place_destroy(&in);
}

static void group_free(void)
{
	buffer_attach(4, LONG);
	for (int l = 0; l <= LAYOUT_GAPS; l++)
		for (int s = 0; s < SIZES; s++) {
			check_at("freed under way", sizes[s]);
			free_receive(&layouts[l], sizes[s]);
			for (int mode = 0; mode < MODES; mode++)
				free_send(&layouts[l], sizes[s], mode);
		}
	buffer_detach();
	check_group(to == check.rank ? "freed under way, to oneself" : "freed under way");
}

/* ---- what a request is about is freed: it stays until the request is over ---- */

/* A communicator made afterwards is another one, whatever has become of the first. */
static MPI_Comm free_and_renew(MPI_Comm *comm, struct place *out, struct place *in)
{
	MPI_Comm next;
	int number = check.rank, got = -1;

	place_free_type(out), place_free_type(in);
	MPI_Comm_free(comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &next);
	MPI_Sendrecv(&number, 1, MPI_INT, to, DATA, &got, 1, MPI_INT, from, DATA, next, MPI_STATUS_IGNORE);
	CHECK(got == from, "the next communicator: %d in place of %d", got, from);
	return next;
}

/* Way 0: the send is started when the communicator is gone.  1: as soon as it can be.  2: it is received by a matched probe, when it is gone. */
static void lose_communicator(const struct layout *l, int bytes, int way)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	MPI_Request req[2];
	MPI_Message message;
	MPI_Comm comm, next;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	place_fill(&out, place_key(check.rank, bytes, way));
	place_clear(&in);
	if (way < 2)
		MPI_Irecv(in.data, in.count, in.type, from, DATA, comm, &req[0]);
	(way ? MPI_Issend : MPI_Ssend_init)(out.data, out.count, out.type, to, DATA, comm, &req[1]);
	if (way == 2) {
		MPI_Mprobe(from, DATA, comm, &message, MPI_STATUS_IGNORE);
		MPI_Imrecv(in.data, in.count, in.type, &message, &req[0]);
	}
	next = free_and_renew(&comm, &out, &in);
	if (way == 0)
		MPI_Start(&req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	if (way == 0)
		MPI_Request_free(&req[1]);
	place_expect("communicator freed", &in, from, bytes, way);
	MPI_Comm_free(&next);
	place_destroy(&out), place_destroy(&in);
}

static void group_lose(void)
{
	for (int l = 0; l <= LAYOUT_GAPS; l++)
		for (int s = 0; s < SIZES; s++)
			for (int way = 0; way < 3; way++) {
				check_at("communicator and datatype freed", sizes[s]);
				lose_communicator(&layouts[l], sizes[s], way);
			}
	check_group(to == check.rank ? "communicator and datatype freed, to oneself" : "communicator and datatype freed");
}

/* A message that a probe has taken out is received when the communicator is gone. */
static void group_lose_message(void)
{
	for (int s = 0; s < SIZES; s++) {
		struct place out = place_create(layouts, sizes[s]), in = place_create(layouts, sizes[s]);
		MPI_Request send;
		MPI_Message message;
		MPI_Comm comm, next;

		check_at("communicator freed between probe and receive", sizes[s]);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		place_fill(&out, place_key(check.rank, sizes[s], 9));
		place_clear(&in);
		MPI_Isend(out.data, out.count, out.type, to, DATA, comm, &send);
		MPI_Mprobe(from, DATA, comm, &message, MPI_STATUS_IGNORE);
		next = free_and_renew(&comm, &out, &in);
		MPI_Mrecv(in.data, in.count, in.type, &message, MPI_STATUS_IGNORE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		place_expect("communicator freed between probe and receive", &in, from, sizes[s], 9);
		MPI_Comm_free(&next);
		place_destroy(&out), place_destroy(&in);
	}
	check_group("communicator freed between probe and receive");
}

/* ---- persistent ---- */

struct persistent {
	struct place out[MODES], in[MODES];
	MPI_Request req[2 * MODES]; /* a send and its receive; those of the ready one last */
};

static struct persistent persistent_create(const struct layout *l, int bytes)
{
	struct persistent p;

	for (int m = 0; m < MODES; m++) {
		p.out[m] = place_create(l, bytes);
		p.in[m] = place_create(l, bytes);
		inits[m == BUFFERED && !buffers ? STANDARD : m](p.out[m].data, p.out[m].count, p.out[m].type, to, DATA + m, MPI_COMM_WORLD,
		                                                &p.req[m < READY ? 2 * m : 2 * m + 1]);
		MPI_Recv_init(p.in[m].data, p.in[m].count, p.in[m].type, from, DATA + m, MPI_COMM_WORLD, &p.req[m < READY ? 2 * m + 1 : 2 * m]);
		place_free_type(&p.out[m]), place_free_type(&p.in[m]);
	}
	return p;
}

/* All but the ready send at once; that one when its receive is known to be there. */
static void persistent_start(struct persistent *p, int bytes, int round)
{
	for (int m = 0; m < MODES; m++) {
		place_fill(&p->out[m], place_key(check.rank, bytes, round * MODES + m));
		place_clear(&p->in[m]);
	}
	if (round % 2) {
		for (int k = 0; k < 2 * MODES - 1; k++)
			MPI_Start(&p->req[k]);
	} else {
		MPI_Startall(2 * MODES - 1, p->req);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Start(&p->req[2 * MODES - 1]);
}

static void persistent_expect(struct persistent *p, int bytes, int round)
{
	for (int m = 0; m < MODES; m++)
		place_expect(modes[m], &p->in[m], from, bytes, round * MODES + m);
}

static void try_persistent(const struct layout *l, int bytes, int rounds)
{
	struct persistent p = persistent_create(l, bytes);

	for (int round = 0; round < rounds; round++) {
		check_at("persistent, round", round);
		persistent_start(&p, bytes, round);
		if (round % 3)
			MPI_Waitall(2 * MODES, p.req, MPI_STATUSES_IGNORE);
		else
			for (int k = 0; k < 2 * MODES; k++)
				MPI_Wait(&p.req[k], MPI_STATUS_IGNORE);
		for (int k = 0; k < 2 * MODES; k++)
			CHECK(p.req[k] != MPI_REQUEST_NULL, "a persistent request is gone when it is over");
		persistent_expect(&p, bytes, round);
	}
	check_at("persistent, freed under way", bytes);
	persistent_start(&p, bytes, rounds);
	for (int k = 0; k < 2 * MODES; k++)
		MPI_Request_free(&p.req[k]);
	for (int m = 0; m < MODES; m++)
		await_data("persistent, freed under way", &p.in[m], bytes, rounds * MODES + m);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int m = 0; m < MODES; m++)
		place_destroy(&p.out[m]), place_destroy(&p.in[m]);
}

static void group_persistent(void)
{
	buffer_attach(4, LONG);
	for (int l = 0; l < (buffers ? LAYOUTS : 1); l++) {
		try_persistent(&layouts[l], SHORT, 12);
		try_persistent(&layouts[l], EAGER, 6);
		if (l <= LAYOUT_GAPS)
			try_persistent(&layouts[l], LONG, 2);
	}
	buffer_detach();
	check_group(to == check.rank ? "persistent, to oneself" : "persistent");
}

/* ---- cancel ---- */

static bool wait_cancelled(MPI_Request *req)
{
	MPI_Status status;
	int cancelled = -1;

	MPI_Wait(req, &status);
	MPI_Test_cancelled(&status, &cancelled);
	return CHECK(cancelled == 0 || cancelled == 1, "MPI_Test_cancelled says %d", cancelled) && cancelled;
}

/* Started and cancelled, again and again, then started and received. */
static void cancel_receive(const struct layout *l, int bytes)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	MPI_Request recv, freed;

	place_fill(&out, place_key(check.rank, bytes, 0));
	place_clear(&in);
	MPI_Recv_init(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, &recv);
	for (int k = 0; k < 3; k++) {
		MPI_Start(&recv);
		MPI_Cancel(&recv);
		CHECK(wait_cancelled(&recv), "a persistent receive of %d bytes was not cancelled", bytes);
	}
	MPI_Irecv(in.data, in.count, in.type, MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &freed);
	MPI_Cancel(&freed);
	MPI_Request_free(&freed);
	MPI_Start(&recv);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(out.data, out.count, out.type, to, DATA, MPI_COMM_WORLD);
	CHECK(!wait_cancelled(&recv), "a receive is still called cancelled when it is started again");
	place_expect("cancelled, and started again", &in, from, bytes, 0);
	MPI_Request_free(&recv);
	place_destroy(&out), place_destroy(&in);
}

/* A synchronous send that nobody has received is taken back, wherever it is, and the next message is the first one that arrives. */
static void cancel_send(const struct layout *l, int bytes)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	MPI_Request send;

	place_clear(&in);
	MPI_Ssend_init(out.data, out.count, out.type, to, DATA, MPI_COMM_WORLD, &send);
	for (int k = 0; k < 4; k++) {
		place_fill(&out, place_key(check.rank, bytes, k));
		MPI_Start(&send);
		if (k % 2) /* it has arrived; the last one before anybody receives, or an earlier one would be received */
			MPI_Barrier(MPI_COMM_WORLD);
		if (k < 3) {
			MPI_Cancel(&send);
			CHECK(wait_cancelled(&send), "a synchronous send of %d bytes was not cancelled", bytes);
		}
	}
	MPI_Recv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(!wait_cancelled(&send), "a send is still called cancelled when it is started again");
	place_expect("after a send that was cancelled", &in, from, bytes, 3);
	MPI_Request_free(&send);
	place_destroy(&out), place_destroy(&in);
}

/* Too late: it is over already, though nobody has been told. */
static void cancel_complete(const struct layout *l, int bytes)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	MPI_Request req[2];

	place_fill(&out, place_key(check.rank, bytes, 0));
	place_clear(&in);
	MPI_Irecv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(out.data, out.count, out.type, to, DATA, MPI_COMM_WORLD, &req[1]);
	for (int done[2] = { 0, 0 }; !done[0] || !done[1];)
		for (int k = 0; k < 2; k++)
			MPI_Request_get_status(req[k], &done[k], MPI_STATUS_IGNORE);
	MPI_Cancel(&req[0]);
	MPI_Cancel(&req[1]);
	CHECK(!wait_cancelled(&req[0]), "a receive of %d bytes was cancelled when it was over", bytes);
	CHECK(!wait_cancelled(&req[1]), "a send of %d bytes was cancelled when it was over", bytes);
	place_expect("cancelled too late", &in, from, bytes, 0);
	place_destroy(&out), place_destroy(&in);
}

static void group_cancel(void)
{
	for (int l = 0; l <= LAYOUT_GAPS; l++)
		for (int s = 0; s < SIZES; s++) {
			check_at("cancel", sizes[s]);
			cancel_receive(&layouts[l], sizes[s]);
			if (cancels)
				cancel_send(&layouts[l], sizes[s]);
			cancel_complete(&layouts[l], sizes[s]);
			MPI_Barrier(MPI_COMM_WORLD);
		}
	check_group(to == check.rank ? "cancel, to oneself" : "cancel");
}

/* ---- several at a time ---- */

enum { SEVERAL = 6, ALL = 2 * SEVERAL + 2 };

static int several_bytes(int k)
{
	return k % 3 == 2 ? 100000 : SHORT * (k + 1);
}

/* Those at `index` are over: each of them once, and a receive says what has come. */
static void several_over(const char *how, int n, const int *index, const MPI_Status *status, bool *over)
{
	for (int i = 0; i < n; i++) {
		int k = index[i], count = -1;

		if (!CHECK(k >= 0 && k < 2 * SEVERAL && !over[k], "%s: request %d is over, again or never begun", how, k))
			continue;
		over[k] = true;
		if (k % 2)
			continue;
		MPI_Get_count(&status[i], MPI_BYTE, &count);
		CHECK(status[i].MPI_SOURCE == from && status[i].MPI_TAG == DATA + k && count == several_bytes(k),
		      "%s: request %d is over with source %d, tag %d, count %d", how, k, status[i].MPI_SOURCE, status[i].MPI_TAG, count);
	}
}

/* One call of it: how many are over now, -1 when none was left. */
static int complete_some(int how, MPI_Request *req, int *index, MPI_Status *status)
{
	int n = 0, flag = 0;

	switch (how) {
	case 0: MPI_Waitany(ALL, req, index, status); n = *index == MPI_UNDEFINED ? -1 : 1; break;
	case 1: MPI_Testany(ALL, req, index, &flag, status); n = !flag ? 0 : *index == MPI_UNDEFINED ? -1 : 1; break;
	case 2: MPI_Waitsome(ALL, req, &n, index, status); break;
	case 3: MPI_Testsome(ALL, req, &n, index, status); break;
	case 4: MPI_Testall(ALL, req, &flag, status); break;
	default: MPI_Waitall(ALL, req, status); flag = 1; break;
	}
	for (int k = 0; flag && how >= 4 && n < 2 * SEVERAL; k++)
		index[n++] = k;
	return n == MPI_UNDEFINED ? -1 : n;
}

static const char *const completions[] = { "waitany", "testany", "waitsome", "testsome", "testall", "waitall" };

static void try_several(int how)
{
	struct place out[SEVERAL], in[SEVERAL];
	MPI_Request req[ALL];
	MPI_Status status[ALL];
	bool over[2 * SEVERAL] = { false };
	int index[ALL], left = 2 * SEVERAL, n;

	for (int k = 0; k < SEVERAL; k++) {
		out[k] = place_create(&layouts[k % 2], several_bytes(2 * k));
		in[k] = place_create(&layouts[k % 2], several_bytes(2 * k));
		place_fill(&out[k], place_key(check.rank, how, k));
		place_clear(&in[k]);
		MPI_Irecv(in[k].data, in[k].count, in[k].type, k % 2 ? from : MPI_ANY_SOURCE, DATA + 2 * k, MPI_COMM_WORLD, &req[2 * k]);
	}
	for (int k = SEVERAL - 1; k >= 0; k--) /* the first one comes last */
		MPI_Isend(out[k].data, out[k].count, out[k].type, to, DATA + 2 * k, MPI_COMM_WORLD, &req[2 * k + 1]);
	req[2 * SEVERAL] = MPI_REQUEST_NULL;
	MPI_Recv_init(&n, 1, MPI_INT, from, NOBODYS, MPI_COMM_WORLD, &req[2 * SEVERAL + 1]);
	while (left > 0) {
		int some = complete_some(how, req, index, status);

		if (!CHECK(some >= 0, "%s: nothing is left, but %d are not over", completions[how], left))
			break;
		several_over(completions[how], some, index, status, over);
		left -= some;
	}
	CHECK(how >= 4 || complete_some(how, req, index, status) == -1, "%s: something is left when all are over", completions[how]);
	MPI_Request_free(&req[2 * SEVERAL + 1]);
	for (int k = 0; k < 2 * SEVERAL; k++)
		CHECK(req[k] == MPI_REQUEST_NULL, "%s: request %d is there when it is over", completions[how], k);
	for (int k = 0; k < SEVERAL; k++) {
		CHECK(place_differs(&in[k], place_key(from, how, k)) < 0, "%s: message %d differs", completions[how], k);
		place_destroy(&out[k]), place_destroy(&in[k]);
	}
}

static void group_several(void)
{
	for (int round = 0; round < 5; round++)
		for (int how = 0; how < 6; how++) {
			check_at(completions[how], round);
			try_several(how);
			MPI_Barrier(MPI_COMM_WORLD); /* a receive from any source may not see the next round */
		}
	check_group(to == check.rank ? "several at a time, to oneself" : "several at a time");
}

/* ---- two threads ---- */

enum { HANDS = 8 };

static struct hand {
	_Atomic int full;       /* to be taken by the second thread */
	MPI_Request send, recv;
	uint64_t out, in;
} hands[HANDS];

static int rounds;
static MPI_Comm ways[2];

/* The first thread starts both and is on its way; the second waits for them, or lets go of the send. */
static void body_start(int id)
{
	(void)id;
	for (int k = 0; k < rounds; k++) {
		struct hand *h = &hands[k % HANDS];

		check_at("handed over, started", k);
		while (atomic_load(&h->full))
			sched_yield();
		h->out = place_key(check.rank, 0, k);
		h->in = 0;
		MPI_Irecv(&h->in, 8, MPI_BYTE, from, DATA, ways[0], &h->recv);
		(k % 2 ? MPI_Issend : MPI_Isend)(&h->out, 8, MPI_BYTE, to, DATA, ways[0], &h->send);
		atomic_store(&h->full, 1);
	}
}

static void body_finish(int id)
{
	(void)id;
	for (int k = 0; k < rounds; k++) {
		struct hand *h = &hands[k % HANDS];
		int flag = 0;

		check_at("handed over, finished", k);
		while (!atomic_load(&h->full))
			MPI_Iprobe(from, NOBODYS, ways[1], &flag, MPI_STATUS_IGNORE);
		MPI_Wait(&h->recv, MPI_STATUS_IGNORE);
		CHECK(h->in == place_key(from, 0, k), "handed over: number %d differs", k);
		MPI_Wait(&h->send, MPI_STATUS_IGNORE);
		atomic_store(&h->full, 0);
	}
}

/* Each thread starts its own again as soon as they are over, and what ends them is as often the other's progress. */
static void body_again(int id)
{
	uint64_t out, in;
	MPI_Request req[2];

	MPI_Recv_init(&in, 8, MPI_BYTE, from, DATA, ways[id], &req[0]);
	(id ? MPI_Ssend_init : MPI_Send_init)(&out, 8, MPI_BYTE, to, DATA, ways[id], &req[1]);
	for (int k = 0; k < rounds; k++) {
		check_at("started again", k);
		out = place_key(check.rank, id, k);
		MPI_Startall(2, req);
		MPI_Wait(&req[1 - k % 2], MPI_STATUS_IGNORE);
		MPI_Wait(&req[k % 2], MPI_STATUS_IGNORE);
		CHECK(in == place_key(from, id, k), "started again: number %d of thread %d differs", k, id);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
}

/* Nobody waits for the sends: the threads end each other's.  What they sent from is used anew when the receiver has said so. */
static void body_let_go(int id)
{
	static uint64_t gaps[2][4], in[2];
	MPI_Datatype type = layout_type(&layouts[LAYOUT_GAPS], 1, gaps[id]);
	MPI_Request req[2];

	for (int k = 0; k < rounds / 4; k++) {
		check_at("let go", k);
		gaps[id][0] = place_key(check.rank, id, k);
		in[id] = 0;
		MPI_Irecv(&in[id], 8, MPI_BYTE, from, DATA, ways[id], &req[0]);
		MPI_Issend(gaps[id], 1, type, to, DATA, ways[id], &req[1]);
		MPI_Request_free(&req[1]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		CHECK(in[id] == place_key(from, id, k), "let go: number %d of thread %d differs", k, id);
		MPI_Sendrecv(NULL, 0, MPI_BYTE, from, GO, NULL, 0, MPI_BYTE, to, GO, ways[id], MPI_STATUS_IGNORE);
	}
	MPI_Type_free(&type);
}

struct start {
	int id;
	void (*body)(int id);
};

static void *run_body(void *arg)
{
	struct start *s = arg;

	check_thread = 1 + s->id;
	s->body(s->id);
	check_at("done", 0);
	return NULL;
}

static void run(const char *name, void (*first)(int), void (*second)(int))
{
	struct start start[2] = { { 0, first }, { 1, second } };
	pthread_t thread[2];

	for (int t = 0; t < 2; t++)
		if (pthread_create(&thread[t], NULL, run_body, &start[t])) {
			fprintf(stderr, "requests: rank %d: cannot start a thread\n", check.rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	for (int t = 0; t < 2; t++)
		pthread_join(thread[t], NULL);
	check_group(name);
}

static void group_threads(void)
{
	bool self = to == check.rank;

	rounds = self ? 300 : 1200 / check.size;
	for (int t = 0; t < 2; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &ways[t]);
	run(self ? "handed over, to oneself" : "handed over", body_start, body_finish);
	run(self ? "started again at once, to oneself" : "started again at once", body_again, body_again);
	run(self ? "let go, to oneself" : "let go", body_let_go, body_let_go);
	for (int t = 0; t < 2; t++)
		MPI_Comm_free(&ways[t]);
}

int main(int argc, char **argv)
{
	bool threads = false;

	for (int k = 1; k < argc; k++) {
		cancels |= !strcmp(argv[k], "cancels");
		buffers |= !strcmp(argv[k], "buffers");
		threads |= !strcmp(argv[k], "threads");
	}
	check_init_level(&argc, &argv, "requests", 60, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
	for (int distance = 1; distance >= 0; distance--) {
		to = (check.rank + distance) % check.size;
		from = (check.rank + check.size - distance) % check.size;
		group_free();
		group_lose();
		group_lose_message();
		group_persistent();
		group_cancel();
		group_several();
		if (threads)
			group_threads();
	}
	return check_done();
}
