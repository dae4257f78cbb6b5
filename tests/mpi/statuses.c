/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statuses: what a receive or a probe says, and where the data go: messages of every layout by every way of receiving, datatypes of no
 * size, receives that are too short, and what nobody asked for, which must not be touched: memory around a message, and fields of a status.
 * Each with the next rank, and with the rank itself.
 *
 * Arguments: "threads": with MPI_THREAD_MULTIPLE, as MPI may go other ways then.  "lax": long messages to oneself,
 * whose data are in one piece, begin at the address that MPI is given, and nobody looks behind a buffer that a long message did not fit into.
 */
#include "check.h"
#include "layout.h"

enum { DATA = 1, GO = 50, UNTOUCHED = 4711, LONG = 200000 };
enum { BLOCKING, NONBLOCKING, PERSISTENT, PROBED, MATCHED, MATCHED_LATER, WILD, WAYS };

static const char *const ways[WAYS] = { "recv", "irecv", "recv_init", "probe", "mprobe and mrecv", "improbe and imrecv", "any source and tag" };
static const int sizes[] = { 0, 8, 10000, LONG };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static bool threads, lax;
static int to, from; /* the next rank and the one before, or this rank */
static MPI_Comm careful; /* where errors are returned */

static uint64_t key(int sender, int bytes, int number)
{
	return check_key((unsigned)sender, (unsigned)bytes, (uint64_t)number);
}

static int class_of(int err)
{
	int class;

	MPI_Error_class(err, &class);
	return class;
}

static MPI_Status unused(void)
{
	MPI_Status status;

	memset(&status, 0x77, sizeof status);
	status.MPI_ERROR = UNTOUCHED;
	return status;
}

/* A call for one request or none gives no MPI_ERROR. */
static void expect_status(const char *how, const MPI_Status *status, const struct place *p, int bytes, int tag)
{
	int elements = -1, count = -1, cancelled = 1;

	MPI_Get_elements(status, MPI_BYTE, &elements);
	MPI_Get_count(status, p->type, &count);
	MPI_Test_cancelled(status, &cancelled);
	CHECK(status->MPI_SOURCE == from && status->MPI_TAG == tag, "%s, %d bytes: source %d, tag %d, not %d and %d", how, bytes,
	      status->MPI_SOURCE, status->MPI_TAG, from, tag);
	CHECK(elements == bytes, "%s, %d bytes: there are %d", how, bytes, elements);
	CHECK(bytes ? count == p->count : count == 0, "%s, %d bytes: count is %d, not %d", how, bytes, count, p->count);
	CHECK(!cancelled, "%s, %d bytes: the status says that it is cancelled", how, bytes);
	CHECK(status->MPI_ERROR == UNTOUCHED, "%s, %d bytes: MPI_ERROR is written to", how, bytes);
}

/* ---- by every way ---- */

/* What a look says about a request that is over must be what its end says. */
static void wait_looking(const char *how, MPI_Request *req, const struct place *p, int bytes, int tag)
{
	MPI_Status status = unused(), looked = unused();
	MPI_Request same = *req;
	int over = 0;

	while (!over)
		MPI_Request_get_status(*req, &over, &looked);
	expect_status(how, &looked, p, bytes, tag);
	CHECK(*req == same, "%s: MPI_Request_get_status takes the request", how);
	MPI_Request_get_status(*req, &over, MPI_STATUS_IGNORE);
	CHECK(over, "%s: a request that was over is not any more", how);
	MPI_Wait(req, &status);
	expect_status(how, &status, p, bytes, tag);
}

static void take_persistent(struct place *p, int bytes, int tag)
{
	MPI_Status empty = unused();
	int count = -1;
	MPI_Request req;

	MPI_Recv_init(p->data, p->count, p->type, from, tag, MPI_COMM_WORLD, &req);
	MPI_Start(&req);
	wait_looking(ways[PERSISTENT], &req, p, bytes, tag);
	MPI_Wait(&req, &empty); /* not active */
	MPI_Get_count(&empty, MPI_BYTE, &count);
	CHECK(empty.MPI_SOURCE == MPI_ANY_SOURCE && empty.MPI_TAG == MPI_ANY_TAG && count == 0, "the status of what is not active: source %d, tag %d, %d",
	      empty.MPI_SOURCE, empty.MPI_TAG, count);
	MPI_Request_free(&req);
}

static void take_probed(int way, struct place *p, int bytes, int tag)
{
	MPI_Status probed = unused(), status = unused();
	MPI_Message message;
	MPI_Request req;
	int there = 0;

	if (way == PROBED)
		MPI_Probe(from, tag, MPI_COMM_WORLD, &probed);
	else if (way == MATCHED)
		MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &probed);
	else
		while (!there)
			MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &message, &probed);
	expect_status(ways[way], &probed, p, bytes, tag);
	if (way == PROBED) {
		MPI_Iprobe(probed.MPI_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
		CHECK(there, "what a probe has found is not there");
		MPI_Recv(p->data, p->count, p->type, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (way == MATCHED) {
		MPI_Mrecv(p->data, p->count, p->type, &message, &status);
		expect_status("mrecv", &status, p, bytes, tag);
	} else {
		MPI_Imrecv(p->data, p->count, p->type, &message, &req);
		wait_looking("imrecv", &req, p, bytes, tag);
	}
}

static void take(int way, struct place *p, int bytes, int tag)
{
	MPI_Status status = unused();
	MPI_Request req;

	switch (way) {
	case BLOCKING:
	case WILD:
		MPI_Recv(p->data, p->count, p->type, way == WILD ? MPI_ANY_SOURCE : from, way == WILD ? MPI_ANY_TAG : tag, MPI_COMM_WORLD, &status);
		expect_status(ways[way], &status, p, bytes, tag);
		break;
	case NONBLOCKING:
		MPI_Irecv(p->data, p->count, p->type, from, tag, MPI_COMM_WORLD, &req);
		wait_looking(ways[way], &req, p, bytes, tag);
		break;
	case PERSISTENT: take_persistent(p, bytes, tag); break;
	default: take_probed(way, p, bytes, tag); break;
	}
}

/* What a transport does not do: see "lax". */
static bool is_left_out(const struct layout *l, int bytes)
{
	return lax && to == check.rank && bytes == LONG && (l->absolute || l->first);
}

/* From one layout to another; a third of the sends blocking, where that is possible, a third persistent. */
static void move(int way, const struct layout *there, const struct layout *here, int bytes)
{
	struct place out = place_create(there, bytes), in = place_create(here, bytes);
	int number = way * LAYOUTS + (int)(here - layouts), tag = DATA + number;
	bool blocks = number % 3 == 0 && check.rank % 2 && to != check.rank && check.size % 2 == 0, starts = number % 3 == 1;
	MPI_Request send = MPI_REQUEST_NULL;
	long at;

	if (is_left_out(there, bytes) || is_left_out(here, bytes)) {
		place_destroy(&out), place_destroy(&in);
		return;
	}
	place_fill(&out, key(check.rank, bytes, number));
	place_clear(&in);
	if (blocks)
		MPI_Send(out.data, out.count, out.type, to, tag, MPI_COMM_WORLD);
	else if (starts)
		MPI_Send_init(out.data, out.count, out.type, to, tag, MPI_COMM_WORLD, &send), MPI_Start(&send);
	else
		MPI_Isend(out.data, out.count, out.type, to, tag, MPI_COMM_WORLD, &send);
	take(way, &in, bytes, tag);
	at = place_differs(&in, key(from, bytes, number));
	CHECK(at < 0, "%s, %d bytes, %s to %s: wrong at byte %ld", ways[way], bytes, there->name, here->name, at);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	if (starts)
		MPI_Request_free(&send);
	place_destroy(&out), place_destroy(&in);
}

static void group_ways(void)
{
	for (int way = 0; way < WAYS; way++)
		for (int s = 0; s < SIZES; s++)
			for (int l = 0; l < LAYOUTS; l++) {
				check_at(ways[way], sizes[s]);
				move(way, &layouts[(5 * l + way) % LAYOUTS], &layouts[l], sizes[s]);
				if (l == 0)
					move(way, &layouts[0], &layouts[0], sizes[s]);
			}
	MPI_Barrier(MPI_COMM_WORLD);
	check_group(to == check.rank ? "every way and layout, to oneself" : "every way and layout");
}

/* ---- too short ---- */

/* The receive has room for `room` bytes only, in one type of that size or by count.  How: blocking, nonblocking, one of several, probed. */
static void try_short(const struct layout *l, int bytes, int room, int how)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes), part = place_create(l, room), second;
	MPI_Status status = unused(), two[2];
	MPI_Request req[2], send;
	MPI_Message message;
	long past;
	int err;

	place_fill(&out, key(check.rank, bytes, how));
	place_clear(&in);
	part.data = l->absolute ? MPI_BOTTOM : in.at - l->first;
	if (l->absolute) {
		place_free_type(&part);
		part.type = layout_type(l, part.blocks, in.at);
	}
	second = place_create(l, bytes);
	place_clear(&second);
	if (how == 2)
		MPI_Irecv(second.data, second.count, second.type, from, DATA + 1, careful, &req[1]);
	MPI_Isend(out.data, out.count, out.type, to, DATA, careful, &send);
	switch (how) {
	case 0: err = MPI_Recv(part.data, part.count, part.type, from, DATA, careful, &status); break;
	case 1:
		MPI_Irecv(part.data, part.count, part.type, from, DATA, careful, &req[0]);
		err = MPI_Wait(&req[0], &status);
		break;
	case 2:
		MPI_Irecv(part.data, part.count, part.type, from, DATA, careful, &req[0]);
		MPI_Sendrecv(out.data, out.count, out.type, to, DATA + 1, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, careful, MPI_STATUS_IGNORE);
		err = MPI_Waitall(2, req, two);
		CHECK(class_of(err) == MPI_ERR_IN_STATUS, "waitall of a receive that is too short: error class %d", class_of(err));
		CHECK(req[1] == MPI_REQUEST_NULL ? two[1].MPI_ERROR == MPI_SUCCESS : class_of(two[1].MPI_ERROR) == MPI_ERR_PENDING,
		      "beside a receive that is too short: error class %d", class_of(two[1].MPI_ERROR));
		MPI_Wait(&req[1], MPI_STATUS_IGNORE);
		CHECK(place_differs(&second, key(from, bytes, how)) < 0, "beside a receive that is too short: content differs");
		status = two[0];
		err = status.MPI_ERROR;
		break;
	default:
		MPI_Mprobe(from, DATA, careful, &message, MPI_STATUS_IGNORE);
		err = MPI_Mrecv(part.data, part.count, part.type, &message, &status);
		break;
	}
	CHECK(class_of(err) == MPI_ERR_TRUNCATE, "%s, %d bytes for %d, way %d: error class %d", l->name, bytes, room, how, class_of(err));
	CHECK(status.MPI_SOURCE == from && status.MPI_TAG == DATA, "%s, %d bytes for %d, way %d: source %d, tag %d", l->name, bytes, room, how,
	      status.MPI_SOURCE, status.MPI_TAG);
	/* What has fitted may be there or not. */
	for (int i = 0; i < part.blocks; i++)
		memset(in.at + i * in.stride, 0, 8);
	place_draw(&in, in.image, 0, 0);
	for (int i = 0; i < part.blocks; i++)
		memset(in.image + (in.at - in.room) + i * in.stride, 0, 8);
	for (past = 0; past < in.size && in.room[past] == in.image[past];)
		past++;
	CHECK((lax && bytes > 1000) || past == in.size, "%s, %d bytes for %d, way %d: written to behind the buffer, at byte %ld", l->name, bytes, room, how,
	      past - (in.at - in.room));
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	MPI_Isend(out.data, out.count, out.type, to, DATA, careful, &send);
	place_clear(&in);
	err = MPI_Recv(in.data, in.count, in.type, from, DATA, careful, MPI_STATUS_IGNORE);
	CHECK(err == MPI_SUCCESS && place_differs(&in, key(from, bytes, how)) < 0, "%s, %d bytes for %d, way %d: the next message differs, error class %d",
	      l->name, bytes, room, how, class_of(err));
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	place_destroy(&out), place_destroy(&in), place_destroy(&part), place_destroy(&second);
}

/*
 * Open MPI's MPI_Waitall spins for good, with MPI_THREAD_MULTIPLE, if one of the requests had failed before (seen with 4.1.4): it leaves
 * without having waited, and then waits to be told that it is over.
 */
static void group_short(void)
{
	static const int cut[][2] = { { 8, 0 }, { 48, 40 }, { 10000, 8 }, { 10000, 9992 }, { LONG, 0 }, { LONG, 8 }, { LONG, 100000 } };

	for (size_t k = 0; k < sizeof cut / sizeof *cut; k++)
		for (int how = 0; how < 4; how++)
			for (int l = 0; l < LAYOUTS; l += 1 + (int)k % 2) {
				if ((cut[k][1] == 0 && layouts[l].stride < 0) || (how == 2 && threads) || is_left_out(&layouts[l], cut[k][0]))
					continue; /* where nothing would be is not known; the others: see above */
				check_at("too short", cut[k][0]);
				try_short(&layouts[l], cut[k][0], cut[k][1], how);
			}
	check_group(to == check.rank ? "too short, to oneself" : "too short");
}

/* ---- nothing ---- */

/* Types without data, any number of them, to receives with room and with none. */
static void group_nothing(void)
{
	MPI_Datatype empty, moved;
	unsigned char memory[16];
	MPI_Request req[4];
	MPI_Status status[4];

	MPI_Type_contiguous(0, MPI_INT, &empty);
	MPI_Type_create_resized(empty, -32, 48, &moved);
	MPI_Type_commit(&empty), MPI_Type_commit(&moved);
	memset(memory, LAYOUT_CANARY, sizeof memory);
	for (int k = 0; k < 4; k++) {
		MPI_Datatype type = k % 2 ? moved : empty;

		if (k < 3)
			MPI_Irecv(memory, k == 0 ? 16 : 3, k == 0 ? MPI_BYTE : type, from, DATA, MPI_COMM_WORLD, &req[0]);
		else
			MPI_Recv_init(MPI_BOTTOM, 1000, type, from, DATA, MPI_COMM_WORLD, &req[0]), MPI_Start(&req[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Issend(k == 3 ? MPI_BOTTOM : memory, k == 2 ? 0 : 7, type, to, DATA, MPI_COMM_WORLD, &req[1]);
		status[0] = unused();
		MPI_Wait(&req[0], &status[0]);
		MPI_Wait(&req[1], MPI_STATUS_IGNORE);
		if (k == 3)
			MPI_Request_free(&req[0]);
		int bytes = -1, count = -1;

		MPI_Get_count(&status[0], MPI_BYTE, &bytes);
		MPI_Get_count(&status[0], type, &count);
		CHECK(bytes == 0 && count == 0 && status[0].MPI_SOURCE == from, "nothing, way %d: %d bytes, count %d, from %d", k, bytes, count,
		      status[0].MPI_SOURCE);
		for (size_t i = 0; i < sizeof memory; i++)
			CHECK(memory[i] == LAYOUT_CANARY, "nothing, way %d: byte %zu is written to", k, i);
	}
	MPI_Type_free(&empty), MPI_Type_free(&moved);
	check_group(to == check.rank ? "nothing, to oneself" : "nothing");
}

int main(int argc, char **argv)
{
	for (int k = 1; k < argc; k++) {
		threads |= !strcmp(argv[k], "threads");
		lax |= !strcmp(argv[k], "lax");
	}

	check_init_level(&argc, &argv, "statuses", 60, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_WORLD, &careful);
	MPI_Comm_set_errhandler(careful, MPI_ERRORS_RETURN);
	for (int distance = 1; distance >= 0; distance--) {
		to = (check.rank + distance) % check.size;
		from = (check.rank + check.size - distance) % check.size;
		group_ways();
		group_short();
		group_nothing();
	}
	MPI_Comm_free(&careful);
	return check_done();
}
