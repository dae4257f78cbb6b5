/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Soak: a very long exchange of messages of mixed sizes over all paths, every byte of every message verified, none
 * lost, none out of order, memory flat.
 *
 *     soak [MESSAGES in all [SEED [KiB]]]     100000000 is meant; without arguments 200000
 *
 * In each round every rank sends a window of messages to one rank and receives one from another; the distance between
 * them goes round.  Size, tag, kind of send, kind of receive and content of a message are functions of its sender, its
 * receiver and its number, so the receiver knows what must come next, and a message that was lost, doubled, overtaken
 * or damaged shows at once.  Rank 0 prints its progress; resident memory of a rank's own is compared at 10 %, 50 % and 100 %; KiB more than
 * usual are allowed, for what the MPI library itself is known to lose.  Memory that the ranks share belongs to a rank as soon as it has touched
 * it, which for buffers that go from hand to hand takes millions of messages to happen to all of them; it only must not be too much.
 */
#include "check.h"

enum { WINDOW = 64, ROOM = 3 << 20, TAGS = 0x7fff, SLACK_KIB = 4096, SLACK_ASAN_KIB = 300 << 10, SHARED_KIB = 8 << 10 /* per rank */ };

enum way { SEND, ISEND, ISSEND, GAPS };
enum turn { EARLY, LATE, PROBED, TURNS };         /* when the receives of a round are posted, if at all */

struct message {
	long number;                              /* in the stream from this sender to this receiver */
	uint64_t key;
	int bytes;
	enum way way;
	size_t at;                                /* in the arena */
};

struct window {
	struct message message[WINDOW];
	unsigned char *arena;
};

static uint64_t seed;
static long more_kib;
static struct window outgoing, incoming;

/* ---- what message number n from a to b is ---- */

/* Mostly tiny, a few of each larger class; the mean is about 1.4 KiB. */
static int size_of(uint64_t h)
{
	static const struct { unsigned upto; int most; } classes[] = { { 850, 64 }, { 970, 1024 }, { 1005, 8192 }, { 1019, 65536 },
		{ 1023, 262144 }, { 1024, 1 << 20 } };
	int c = 0;

	while ((h & 1023) >= classes[c].upto)
		c++;
	if (c == 5 && (h >> 10 & 7))
		c = 0;
	return (int)(h >> 16) % (classes[c].most + 1) & INT32_MAX;
}

static enum way way_of(uint64_t h, enum turn turn)
{
	static const enum way ways[16] = { SEND, SEND, SEND, SEND, SEND, ISEND, ISEND, ISEND, ISEND, ISEND, ISEND, ISEND, ISEND,
		ISSEND, ISSEND, GAPS };
	enum way way = ways[h >> 56 & 15];

	/* A blocking send waits for its receive, which only in an early round is sure to be posted. */
	return way == SEND && turn != EARLY ? ISEND : way;
}

/* Lays out the window of one round; what does not fit the arena becomes tiny. */
static void plan(struct window *w, int from, int to, long round, enum turn turn)
{
	size_t at = 0;

	for (int k = 0; k < WINDOW; k++) {
		struct message *m = &w->message[k];

		m->number = round * WINDOW + k;
		m->key = check_key((unsigned)from, (unsigned)to, (uint64_t)m->number ^ seed);
		m->bytes = size_of(m->key);
		m->way = way_of(m->key, turn);
		if (at + 2 * (size_t)m->bytes + 64 > ROOM)
			m->bytes &= 15;
		m->at = at;
		at += (m->way == GAPS ? 2 : 1) * (size_t)m->bytes + 16;
	}
}

/* ---- sending ---- */

/* Blocks of 16 bytes with gaps as long; what is left over is one short block at the end. */
static MPI_Datatype gaps_type(int bytes)
{
	int blocks = bytes / 16, lengths[2] = { blocks, 1 };
	MPI_Aint places[2] = { 0, 32 * (MPI_Aint)blocks };
	MPI_Datatype part[2], type;

	MPI_Type_vector(1, 16, 32, MPI_BYTE, &part[0]);
	MPI_Type_create_resized(part[0], 0, 32, &type);
	MPI_Type_free(&part[0]);
	part[0] = type;
	MPI_Type_contiguous(bytes % 16, MPI_BYTE, &part[1]);
	MPI_Type_create_struct(2, lengths, places, part, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&part[0]);
	MPI_Type_free(&part[1]);
	return type;
}

static void spread(unsigned char *p, int bytes)
{
	for (int at = bytes / 16 * 16; at > 0; at -= 16)
		memmove(p + 2 * at, p + at, at + 16 <= bytes ? 16 : (size_t)(bytes - at));
}

static void send_one(const struct message *m, int to, MPI_Request *req)
{
	unsigned char *p = outgoing.arena + m->at;
	int tag = (int)(m->number & TAGS);
	MPI_Datatype type;

	check_fill(p, (size_t)m->bytes, m->key);
	*req = MPI_REQUEST_NULL;
	switch (m->way) {
	case SEND:
		MPI_Send(p, m->bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
		break;
	case ISSEND:
		MPI_Issend(p, m->bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
		break;
	case GAPS:
		spread(p, m->bytes);
		type = gaps_type(m->bytes);
		MPI_Isend(p, 1, type, to, tag, MPI_COMM_WORLD, req);
		MPI_Type_free(&type);
		break;
	default:
		MPI_Isend(p, m->bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
	}
}

/* ---- receiving ---- */

static void expect(const struct message *m, const MPI_Status *status, int from)
{
	int bytes;

	MPI_Get_count(status, MPI_BYTE, &bytes);
	CHECK(status->MPI_TAG == (int)(m->number & TAGS) && bytes == m->bytes
		&& check_differs(incoming.arena + m->at, (size_t)m->bytes, m->key) < 0,
		"message %ld from rank %d: tag %d, %d bytes instead of tag %d, %d bytes, or another content", m->number, from,
		status->MPI_TAG, bytes,
		(int)(m->number & TAGS), m->bytes);
}

static void post_all(int from, MPI_Request *req)
{
	for (int k = 0; k < WINDOW; k++) {
		const struct message *m = &incoming.message[k];

		MPI_Irecv(incoming.arena + m->at, m->bytes, MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &req[k]);
	}
}

static void probe_all(int from, MPI_Status *status)
{
	for (int k = 0; k < WINDOW; k++) {
		const struct message *m = &incoming.message[k];
		MPI_Message message;

		MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status[k]);
		MPI_Mrecv(incoming.arena + m->at, m->bytes, MPI_BYTE, &message, &status[k]);
	}
}

static void run_round(long round)
{
	/* Each distance has its own numbering: the count of rounds it has had. */
	int d = 1 + (int)(round % (check.size - 1)), to = (check.rank + d) % check.size, from = (check.rank + check.size - d) % check.size;
	long turn_number = round / (check.size - 1);
	enum turn turn = (enum turn)(turn_number % TURNS);
	MPI_Request in[WINDOW], out[WINDOW];
	MPI_Status status[WINDOW];

	plan(&outgoing, check.rank, to, turn_number, turn);
	plan(&incoming, from, check.rank, turn_number, turn);
	if (turn == EARLY)
		post_all(from, in);
	for (int k = 0; k < WINDOW; k++)
		send_one(&outgoing.message[k], to, &out[k]);
	if (turn == LATE)
		post_all(from, in);
	if (turn == PROBED)
		probe_all(from, status);
	else
		MPI_Waitall(WINDOW, in, status);
	for (int k = 0; k < WINDOW; k++)
		expect(&incoming.message[k], &status[k], from);
	MPI_Waitall(WINDOW, out, MPI_STATUSES_IGNORE);
}

/* ---- progress and memory ---- */

static long most_memory(const char *field)
{
	long mine = check_status_kib(field), most = 0;

	MPI_Allreduce(&mine, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static void report(long round, long rounds, double start)
{
	static double last;
	double now = MPI_Wtime(), done = (double)(round + 1) * WINDOW * check.size;

	if (check.rank || (now - last < 5 && round + 1 < rounds))
		return;
	last = now;
	printf("  %3.0f %%  %.0f messages  %.0f a second  rank 0 holds %ld KiB\n", 100.0 * (double)(round + 1) / (double)rounds, done,
		done / (now - start),
		check_status_kib("VmRSS:"));
	fflush(stdout);
}

/* There when this process runs under the address sanitizer, which keeps up to 256 MiB of freed memory for a while. */
extern void __asan_init(void) __attribute__((weak));

static long slack_kib(void)
{
	return (__asan_init ? SLACK_ASAN_KIB : SLACK_KIB) + more_kib;
}

/* After so many bad messages nothing later means anything. */
static void give_up(void)
{
	fprintf(stderr, "FAIL soak: rank %d: %s\n", check.rank, check.first);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void run(long rounds)
{
	long first = -1, middle = -1, last, shared;
	double start = MPI_Wtime();

	for (long r = 0; r < rounds; r++) {
		check_at("round", r);
		run_round(r);
		if (r == rounds / 10)
			first = most_memory("RssAnon:");
		if (r == rounds / 2)
			middle = most_memory("RssAnon:");
		if (r % 64 == 0 || r + 1 == rounds) {
			check_alive();
			report(r, rounds, start);
		}
		if (check.bad > 100)
			give_up();
	}
	last = most_memory("RssAnon:");
	shared = most_memory("RssShmem:");
	if (check.rank == 0)
		printf("  memory of the largest rank: %ld KiB at 10 %%, %ld KiB at 50 %%, %ld KiB at the end; and %ld KiB that are shared\n", first, middle,
		       last, shared);
	check_group("messages");
	CHECK(last <= middle + slack_kib(), "the largest rank grew from %ld to %ld KiB in the second half", middle, last);
	CHECK(shared <= SHARED_KIB * check.size, "a rank has touched %ld KiB of shared memory", shared);
	check_group("memory is flat");
}

int main(int argc, char **argv)
{
	long messages, each;

	check_init(&argc, &argv, "soak", 60);
	messages = argc > 1 ? atol(argv[1]) : 200000;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	more_kib = argc > 3 ? atol(argv[3]) : 0;
	each = (long)WINDOW * check.size;
	/* A message too long for its receive shall be reported as the wrong message that it is. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	outgoing.arena = check_memory(ROOM);
	incoming.arena = check_memory(ROOM);
	memset(outgoing.arena, 1, ROOM);
	memset(incoming.arena, 1, ROOM);
	run((messages + each - 1) / each);
	free(outgoing.arena), free(incoming.arena);
	return check_done();
}
