/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends: their order among others, the room in the buffer, and that it is given back when all has left.  Each with the
 * next rank, and with the rank itself; each message is compared to the byte, with what lies around it.
 *
 * Argument: "refused": one without room is refused.
 */
#include "check.h"
#include "layout.h"

enum { DATA = 1, SHORT = 8, EAGER = 10000, LONG = 1 << 20 };

static const int sizes[] = { SHORT, EAGER, LONG };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static int to, from; /* the next rank and the one before, or this rank */
static bool refused;

/* One after the other of the same tag, in turns from the buffer and not, of any layout: they arrive in this order. */
static void group_buffered_order(void)
{
	enum { EACH = 2 * LAYOUTS };
	static const int mixed[] = { SHORT, 100000, 0, EAGER, 200, 3000, 50000 };
	struct place out[EACH], in;
	MPI_Request req[EACH];

	buffer_attach(EACH, 100000);
	for (int k = 0; k < EACH; k++) {
		int bytes = mixed[k % 7];

		out[k] = place_create(&layouts[k % LAYOUTS], bytes);
		place_fill(&out[k], place_key(check.rank, bytes, k));
		(k % 3 ? MPI_Ibsend : MPI_Isend)(out[k].data, out[k].count, out[k].type, to, DATA, MPI_COMM_WORLD, &req[k]);
		if (k % 3)
			place_clear(&out[k]);
	}
	for (int k = 0; k < EACH; k++) {
		in = place_create(&layouts[(k + 4) % LAYOUTS], mixed[k % 7]);
		place_clear(&in);
		check_at("buffered and standard, message", k);
		MPI_Recv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		place_expect("buffered and standard", &in, from, mixed[k % 7], k);
		place_destroy(&in);
	}
	MPI_Waitall(EACH, req, MPI_STATUSES_IGNORE);
	buffer_detach();
	for (int k = 0; k < EACH; k++)
		place_destroy(&out[k]);
	check_group(to == check.rank ? "buffered and standard, to oneself" : "buffered and standard");
}

static int class_of(int err)
{
	int class;

	MPI_Error_class(err, &class);
	return class;
}

/* There is room for three: the fourth is refused, and nothing of it arrives; when they have been received there is room again. */
static void try_no_room(MPI_Comm comm, const struct layout *l)
{
	enum { BYTES = 500000 }; /* nobody sends that before it is received */
	struct place out = place_create(l, BYTES), in = place_create(l, BYTES);
	double until = MPI_Wtime() + 4;
	MPI_Request req = MPI_REQUEST_NULL;
	int err, there = 0;

	buffer_attach(3, BYTES);
	for (int k = 0; k < 4; k++) {
		place_fill(&out, place_key(check.rank, BYTES, k));
		err = MPI_Bsend(out.data, out.count, out.type, to, DATA, comm);
		CHECK(class_of(err) == (k < 3 ? MPI_SUCCESS : MPI_ERR_BUFFER), "buffered send %d: error class %d", k, class_of(err));
	}
	err = MPI_Ibsend(out.data, out.count, out.type, to, DATA, comm, &req);
	CHECK(class_of(err) == MPI_ERR_BUFFER, "nonblocking buffered send without room: error class %d", class_of(err));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int k = 0; k < 3; k++) {
		place_clear(&in);
		MPI_Recv(in.data, in.count, in.type, from, DATA, comm, MPI_STATUS_IGNORE);
		place_expect("no room", &in, from, BYTES, k);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Iprobe(from, DATA, comm, &there, MPI_STATUS_IGNORE);
	CHECK(!there, "a buffered send that was refused has arrived");
	MPI_Barrier(MPI_COMM_WORLD);
	place_fill(&out, place_key(check.rank, BYTES, 5));
	do
		err = MPI_Bsend(out.data, out.count, out.type, to, DATA, comm);
	while (err != MPI_SUCCESS && MPI_Wtime() < until);
	CHECK(err == MPI_SUCCESS, "there is no room again: error class %d", class_of(err));
	place_clear(&in);
	MPI_Recv(in.data, in.count, in.type, from, DATA, comm, MPI_STATUS_IGNORE);
	place_expect("room again", &in, from, BYTES, 5);
	buffer_detach();
	place_destroy(&out), place_destroy(&in);
}

/* What is in the buffer is lost with it, so detaching it waits until all of it has left. */
static void try_detach(const struct layout *l, int bytes)
{
	struct place out = place_create(l, bytes), in = place_create(l, bytes);
	int room = 2 * (bytes + 4096 + MPI_BSEND_OVERHEAD), size = 0;
	void *buffer = check_memory((size_t)room), *got = NULL;
	MPI_Request req;

	place_clear(&in);
	place_fill(&out, place_key(check.rank, bytes, 0));
	MPI_Buffer_attach(buffer, room);
	MPI_Bsend(out.data, out.count, out.type, to, DATA, MPI_COMM_WORLD);
	MPI_Irecv(in.data, in.count, in.type, from, DATA, MPI_COMM_WORLD, &req);
	MPI_Buffer_detach(&got, &size);
	memset(buffer, 0xee, (size_t)room);
	CHECK(got == buffer && size == room, "detach gave back %d bytes in place of %d", size, room);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	place_expect("detached", &in, from, bytes, 0);
	free(buffer);
	place_destroy(&out), place_destroy(&in);
}

static void group_buffer(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int l = 0; l <= LAYOUT_GAPS; l++) {
		check_at("no room in the buffer", l);
		if (refused)
			try_no_room(comm, &layouts[l]);
		for (int s = 0; s < SIZES; s++)
			try_detach(&layouts[l], sizes[s]);
	}
	MPI_Comm_free(&comm);
	check_group(to == check.rank ? "room in the buffer, to oneself" : "room in the buffer");
}

int main(int argc, char **argv)
{
	refused = argc > 1 && !strcmp(argv[1], "refused");
	check_init(&argc, &argv, "buffered", 60);
	for (int distance = 1; distance >= 0; distance--) {
		to = (check.rank + distance) % check.size;
		from = (check.rank + check.size - distance) % check.size;
		group_buffered_order();
		group_buffer();
	}
	return check_done();
}
