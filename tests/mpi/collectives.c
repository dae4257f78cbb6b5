/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: every collective of MPI-3.1, blocking and nonblocking, against a serial reference, with counts from
 * none to well above any eager limit, in place and not, with every root, on communicators whose ranks run forwards
 * and backwards, on an intercommunicator, and on graph and grid topologies.  Every predefined reduction is tried on
 * integers and on doubles, and one reduction of our own does not commute.
 *
 * An element says where it came from: datum(from, to, i).  So the reference needs no communication.
 */
#include "check.h"

#include <time.h>

enum { UNTOUCHED = -77, MAX_RANKS = 64 };

static MPI_Comm comm;              /* the communicator under test, my rank in it and its size */
static int me, size;
static bool nb;                    /* nonblocking calls */
static MPI_Request req;
static char label[96];

/* Calls the blocking or the nonblocking form of a collective and completes it. */
#define CALL(blocking, nonblocking, ...) do { \
		check_at(#blocking, nb); \
		if (nb) { \
			nonblocking(__VA_ARGS__, &req); \
			MPI_Wait(&req, MPI_STATUS_IGNORE); \
		} else { \
			blocking(__VA_ARGS__); \
		} \
	} while (0)

static long datum(int from, int to, int i)
{
	return (long)from * 100000000 + (long)to * 1000000 + i;
}

static void fill(long *p, int from, int to, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = datum(from, to, i);
}

static void clear(long *p, long n)
{
	for (long i = 0; i < n; i++)
		p[i] = UNTOUCHED;
}

static void expect(const char *what, const long *p, int from, int to, int n)
{
	int i = 0;

	while (i < n && p[i] == datum(from, to, i))
		i++;
	CHECK(i == n, "%s%s on %s, %d elements, block of %d for %d: element %d is %ld", nb ? "i" : "", what, label, n, from, to, i,
		i < n ? p[i] : 0);
}

static void expect_untouched(const char *what, const long *p, long n)
{
	long i = 0;

	while (i < n && p[i] == UNTOUCHED)
		i++;
	CHECK(i == n, "%s%s on %s: wrote where nothing belongs: %ld", nb ? "i" : "", what, label, i < n ? p[i] : 0);
}

static long *longs(long n)
{
	long *p = check_memory((size_t)n * sizeof *p);

	clear(p, n);
	return p;
}

/* ---- counts of the v variants: uneven, some of them zero, with gaps, in reverse order ---- */

static int uneven(int rank, int n)
{
	return n * (rank % 3) / 2 + (n ? rank % 2 : 0);
}

static int layout(int n, int *counts, int *places)
{
	int at = 0;

	for (int r = size - 1; r >= 0; r--) {
		counts[r] = uneven(r, n);
		places[r] = at;
		at += counts[r] + 2;
	}
	return at;
}

static void expect_gaps(const char *what, const long *p, const int *counts, const int *places)
{
	for (int r = 0; r < size; r++)
		expect_untouched(what, p + places[r] + counts[r], 2);
}

/* ---- data movement, one function a collective: n is the number of elements in a block ---- */

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* one clock for the processes of a host, unlike MPI_Wtime */
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nobody leaves before the last one has come; a different rank is late each time. */
static void try_barrier(int n)
{
	for (int late = 0; late < size && !n; late++) {
		double came, last, left;

		if (me == late)
			usleep(2000);
		came = seconds_now();
		CALL(MPI_Barrier, MPI_Ibarrier, comm);
		left = seconds_now();
		MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
		CHECK(left >= last, "left the barrier %.0f us before rank %d came", (last - left) * 1e6, late);
	}
}

static void try_bcast(int n)
{
	long *p = longs(n + 1);

	for (int root = 0; root < size; root++) {
		clear(p, n + 1);
		if (me == root)
			fill(p, root, 0, n);
		CALL(MPI_Bcast, MPI_Ibcast, p, n, MPI_LONG, root, comm);
		expect("bcast", p, root, 0, n);
		expect_untouched("bcast", p + n, 1);
	}
	free(p);
}

static void try_gather(int n)
{
	long *out = longs(n), *in = longs((long)n * size);

	for (int root = 0; root < size; root++) {
		bool in_place = me == root && root % 2;

		clear(in, (long)n * size);
		fill(out, me, root, n);
		if (in_place)
			fill(in + (long)me * n, me, root, n);
		CALL(MPI_Gather, MPI_Igather, in_place ? MPI_IN_PLACE : out, n, MPI_LONG, in, n, MPI_LONG, root, comm);
		for (int r = 0; r < size && me == root; r++)
			expect("gather", in + (long)r * n, r, root, n);
	}
	free(out), free(in);
}

static void try_gatherv(int n)
{
	int counts[MAX_RANKS], places[MAX_RANKS], all = layout(n, counts, places);
	long *out = longs(n + 1), *in = longs(all);

	for (int root = 0; root < size; root++) {
		clear(in, all);
		fill(out, me, root, counts[me]);
		CALL(MPI_Gatherv, MPI_Igatherv, out, counts[me], MPI_LONG, in, counts, places, MPI_LONG, root, comm);
		for (int r = 0; r < size && me == root; r++)
			expect("gatherv", in + places[r], r, root, counts[r]);
		expect_gaps("gatherv", in, counts, places);
	}
	free(out), free(in);
}

static void try_scatter(int n)
{
	long *out = longs((long)n * size), *in = longs(n);

	for (int root = 0; root < size; root++) {
		bool in_place = me == root && root % 2;

		clear(in, n);
		for (int r = 0; r < size; r++)
			fill(out + (long)r * n, me, r, n);
		CALL(MPI_Scatter, MPI_Iscatter, out, n, MPI_LONG, in_place ? MPI_IN_PLACE : in, n, MPI_LONG, root, comm);
		expect("scatter", in_place ? out + (long)me * n : in, root, me, n);
	}
	free(out), free(in);
}

static void try_scatterv(int n)
{
	int counts[MAX_RANKS], places[MAX_RANKS], all = layout(n, counts, places);
	long *out = longs(all), *in = longs(n + 2);

	for (int root = 0; root < size; root++) {
		clear(in, n + 2);
		for (int r = 0; r < size; r++)
			fill(out + places[r], me, r, counts[r]);
		CALL(MPI_Scatterv, MPI_Iscatterv, out, counts, places, MPI_LONG, in, counts[me], MPI_LONG, root, comm);
		expect("scatterv", in, root, me, counts[me]);
		expect_untouched("scatterv", in + counts[me], n + 2 - counts[me]);
	}
	free(out), free(in);
}

static void try_allgather(int n)
{
	long *out = longs(n), *in = longs((long)n * size);

	for (int in_place = 0; in_place < 2; in_place++) {
		clear(in, (long)n * size);
		fill(out, me, 0, n);
		fill(in + (long)me * n, me, 0, in_place ? n : 0);
		CALL(MPI_Allgather, MPI_Iallgather, in_place ? MPI_IN_PLACE : out, n, MPI_LONG, in, n, MPI_LONG, comm);
		for (int r = 0; r < size; r++)
			expect("allgather", in + (long)r * n, r, 0, n);
	}
	free(out), free(in);
}

static void try_allgatherv(int n)
{
	int counts[MAX_RANKS], places[MAX_RANKS], all = layout(n, counts, places);
	long *out = longs(n + 1), *in = longs(all);

	fill(out, me, 0, counts[me]);
	CALL(MPI_Allgatherv, MPI_Iallgatherv, out, counts[me], MPI_LONG, in, counts, places, MPI_LONG, comm);
	for (int r = 0; r < size; r++)
		expect("allgatherv", in + places[r], r, 0, counts[r]);
	expect_gaps("allgatherv", in, counts, places);
	free(out), free(in);
}

static void try_alltoall(int n)
{
	long *out = longs((long)n * size), *in = longs((long)n * size);

	for (int in_place = 0; in_place < 2; in_place++) {
		clear(in, (long)n * size);
		for (int r = 0; r < size; r++)
			fill((in_place ? in : out) + (long)r * n, me, r, n);
		CALL(MPI_Alltoall, MPI_Ialltoall, in_place ? MPI_IN_PLACE : out, n, MPI_LONG, in, n, MPI_LONG, comm);
		for (int r = 0; r < size; r++)
			expect("alltoall", in + (long)r * n, r, me, n);
	}
	free(out), free(in);
}

/* Rank a sends b a block of uneven(a + b) elements: symmetric, so one layout serves both sides. */
static int pair_layout(int n, int *counts, int *places)
{
	int at = 0;

	for (int r = size - 1; r >= 0; r--) {
		counts[r] = uneven(me + r, n);
		places[r] = at;
		at += counts[r] + 2;
	}
	return at;
}

static void try_alltoallv(int n)
{
	int counts[MAX_RANKS], places[MAX_RANKS], all = pair_layout(n, counts, places);
	long *out = longs(all), *in = longs(all);

	for (int r = 0; r < size; r++)
		fill(out + places[r], me, r, counts[r]);
	CALL(MPI_Alltoallv, MPI_Ialltoallv, out, counts, places, MPI_LONG, in, counts, places, MPI_LONG, comm);
	for (int r = 0; r < size; r++)
		expect("alltoallv", in + places[r], r, me, counts[r]);
	expect_gaps("alltoallv", in, counts, places);
	free(out), free(in);
}

/* As alltoallv, but places in bytes and a type for each peer: odd peers get a vector with the stride of 1. */
static void try_alltoallw(int n)
{
	int counts[MAX_RANKS], places[MAX_RANKS], bytes[MAX_RANKS], ones[MAX_RANKS], all = pair_layout(n, counts, places);
	long *out = longs(all), *in = longs(all);
	MPI_Datatype types[MAX_RANKS];

	for (int r = 0; r < size; r++) {
		fill(out + places[r], me, r, counts[r]);
		bytes[r] = places[r] * (int)sizeof(long);
		ones[r] = r % 2 ? 1 : counts[r];
		MPI_Type_vector(r % 2 ? counts[r] : 1, 1, 1, MPI_LONG, &types[r]);
		MPI_Type_commit(&types[r]);
	}
	CALL(MPI_Alltoallw, MPI_Ialltoallw, out, ones, bytes, types, in, ones, bytes, types, comm);
	for (int r = 0; r < size; r++) {
		expect("alltoallw", in + places[r], r, me, counts[r]);
		MPI_Type_free(&types[r]);
	}
	expect_gaps("alltoallw", in, counts, places);
	free(out), free(in);
}

/* ---- reductions ---- */

static long op_max(long a, long b) { return a > b ? a : b; }
static long op_min(long a, long b) { return a < b ? a : b; }
static long op_sum(long a, long b) { return a + b; }
static long op_prod(long a, long b) { return a * b; }
static long op_land(long a, long b) { return a && b; }
static long op_lor(long a, long b) { return a || b; }
static long op_lxor(long a, long b) { return !a != !b; }
static long op_band(long a, long b) { return a & b; }
static long op_bor(long a, long b) { return a | b; }
static long op_bxor(long a, long b) { return a ^ b; }

/* Pairs (value, place) and the operation of our own pack two small numbers into one long for the reference. */
static long op_maxloc(long a, long b)
{
	return a >> 8 != b >> 8 ? op_max(a, b) : op_min(a, b);
}

static long op_minloc(long a, long b)
{
	return op_min(a, b);
}

/* x -> a x + b over the integers modulo 251, composed: associative, and it does not commute. */
static long op_compose(long f, long g)
{
	long a = (f >> 8) * (g >> 8) % 251, b = ((f & 255) * (g >> 8) + (g & 255)) % 251;

	return a << 8 | b;
}

static void user_compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((long *)inout)[i] = op_compose(((long *)in)[i], ((long *)inout)[i]);
}

static void user_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((long *)inout)[i] += ((long *)in)[i];
}

enum element { INT, LONG, UNSIGNED, FLOAT, DOUBLE, INT_PAIR, DOUBLE_PAIR, ELEMENTS };

struct double_int {
	double value;
	int place;
};

static const struct {
	const char *name;
	size_t bytes;
	bool real, pair;
} elements[ELEMENTS] = {
	[INT] = { "int", sizeof(int), false, false }, [LONG] = { "long", sizeof(long), false, false },
	[UNSIGNED] = { "unsigned", sizeof(unsigned), false, false }, [FLOAT] = { "float", sizeof(float), true, false },
	[DOUBLE] = { "double", sizeof(double), true, false }, [INT_PAIR] = { "pair of ints", 2 * sizeof(int), false, true },
	[DOUBLE_PAIR] = { "double and int", sizeof(struct double_int), true, true },
};

static MPI_Datatype mpi_type(enum element e)
{
	const MPI_Datatype types[ELEMENTS] = { MPI_INT, MPI_LONG, MPI_UNSIGNED, MPI_FLOAT, MPI_DOUBLE, MPI_2INT, MPI_DOUBLE_INT };

	return types[e];
}

static void put(enum element e, void *p, int i, long v)
{
	switch (e) {
	case INT: ((int *)p)[i] = (int)v; break;
	case LONG: ((long *)p)[i] = v; break;
	case UNSIGNED: ((unsigned *)p)[i] = (unsigned)v; break;
	case FLOAT: ((float *)p)[i] = (float)v; break;
	case DOUBLE: ((double *)p)[i] = (double)v; break;
	case INT_PAIR: ((int *)p)[2 * i] = (int)(v >> 8), ((int *)p)[2 * i + 1] = (int)(v & 255); break;
	default: ((struct double_int *)p)[i] = (struct double_int){ .value = (double)(v >> 8), .place = (int)(v & 255) };
	}
}

static long take(enum element e, const void *p, int i)
{
	switch (e) {
	case INT: return ((const int *)p)[i];
	case LONG: return ((const long *)p)[i];
	case UNSIGNED: return ((const unsigned *)p)[i];
	case FLOAT: return (long)((const float *)p)[i];
	case DOUBLE: return (long)((const double *)p)[i];
	case INT_PAIR: return (long)((const int *)p)[2 * i] << 8 | ((const int *)p)[2 * i + 1];
	default: return (long)((const struct double_int *)p)[i].value << 8 | ((const struct double_int *)p)[i].place;
	}
}

struct reduction {
	MPI_Op op;
	const char *name;
	long (*apply)(long, long);
	enum { ANY_NUMBER, WHOLE_ONLY, LOC, OURS } kind;
};

/* Small enough that a product over any number of ranks fits a float, and with enough zeros for the logical operations. */
static long operand(const struct reduction *r, int rank, int i)
{
	long x = (long)(check_mix((uint64_t)rank * 1000003 + (uint64_t)i) >> 20);

	if (r->apply == op_prod)
		return rank < 24 ? 1 + x % 3 % 2 : 1;
	if (r->kind == LOC)
		return (x % 3) << 8 | rank;
	if (r->kind == OURS)
		return (1 + x % 250) << 8 | x / 256 % 251;
	return r->kind == WHOLE_ONLY && i % 2 ? x % 2 : x % 1000;
}

/* Ranks first..last combined in rank order. */
static long combined(const struct reduction *r, int first, int last, int i)
{
	long v = operand(r, first, i);

	for (int k = first + 1; k <= last; k++)
		v = r->apply(v, operand(r, k, i));
	return v;
}

struct operands {
	const struct reduction *r;
	enum element e;
	int n;
	char *out, *in;
};

static void operands_load(struct operands *o, void *p)
{
	for (int i = 0; i < o->n; i++)
		put(o->e, p, i, operand(o->r, me, i));
}

static void operands_clear(struct operands *o)
{
	operands_load(o, o->out);
	for (int i = 0; i < o->n; i++)
		put(o->e, o->in, i, 3);
}

/* `p` must hold elements start.. of ranks first..last combined. */
static void expect_combined(const char *what, const struct operands *o, const void *p, int first, int last, int start, int n)
{
	long got = 0, want = 0;
	int i = 0;

	for (; i < n && got == want; i++) {
		got = take(o->e, p, i);
		want = combined(o->r, first, last, start + i);
	}
	CHECK(got == want, "%s%s on %s, %s of %d x %s: element %d is %ld, not %ld", nb ? "i" : "", what, label, o->r->name, o->n,
		elements[o->e].name, start + i - 1, got, want);
}

static void try_reduce(struct operands *o)
{
	for (int root = 0; root < size; root++) {
		bool in_place = me == root && root % 2;

		operands_clear(o);
		if (in_place)
			operands_load(o, o->in);
		CALL(MPI_Reduce, MPI_Ireduce, in_place ? MPI_IN_PLACE : o->out, o->in, o->n, mpi_type(o->e), o->r->op, root, comm);
		if (me == root)
			expect_combined("reduce", o, o->in, 0, size - 1, 0, o->n);
	}
}

static void try_allreduce(struct operands *o)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		operands_clear(o);
		if (in_place)
			operands_load(o, o->in);
		CALL(MPI_Allreduce, MPI_Iallreduce, in_place ? MPI_IN_PLACE : o->out, o->in, o->n, mpi_type(o->e), o->r->op, comm);
		expect_combined("allreduce", o, o->in, 0, size - 1, 0, o->n);
	}
}

static void try_scans(struct operands *o)
{
	operands_clear(o);
	CALL(MPI_Scan, MPI_Iscan, o->out, o->in, o->n, mpi_type(o->e), o->r->op, comm);
	expect_combined("scan", o, o->in, 0, me, 0, o->n);
	operands_load(o, o->in);
	CALL(MPI_Scan, MPI_Iscan, MPI_IN_PLACE, o->in, o->n, mpi_type(o->e), o->r->op, comm);
	expect_combined("scan in place", o, o->in, 0, me, 0, o->n);
	operands_clear(o);
	CALL(MPI_Exscan, MPI_Iexscan, o->out, o->in, o->n, mpi_type(o->e), o->r->op, comm);
	if (me)
		expect_combined("exscan", o, o->in, 0, me - 1, 0, o->n);
}

static void try_reduce_scatter(struct operands *o)
{
	int counts[MAX_RANKS], start = 0, share = o->n / size, used = 0;

	operands_clear(o);
	CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, o->out, o->in, share, mpi_type(o->e), o->r->op, comm);
	expect_combined("reduce_scatter_block", o, o->in, 0, size - 1, me * share, share);
	for (int r = 0; r < size; r++) {
		counts[r] = r == size - 1 ? o->n - used : share / (1 + r % 2);
		start += r < me ? counts[r] : 0;
		used += counts[r];
	}
	operands_clear(o);
	CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, o->out, o->in, counts, mpi_type(o->e), o->r->op, comm);
	expect_combined("reduce_scatter", o, o->in, 0, size - 1, start, counts[me]);
}

static void reduce_elements(const struct reduction *r, enum element e, int n)
{
	struct operands o = { .r = r, .e = e, .n = n };

	check_alive(); /* many ranks take long over all of these: with 64 of them on two cores some minutes */
	o.out = check_memory((size_t)n * elements[e].bytes);
	o.in = check_memory((size_t)n * elements[e].bytes);
	for (int twice = 0; twice < 2; twice++) {
		nb = twice;
		try_allreduce(&o);
		try_reduce(&o);
		try_scans(&o);
		try_reduce_scatter(&o);
	}
	free(o.out), free(o.in);
}

static bool applies(const struct reduction *r, enum element e)
{
	switch (r->kind) {
	case ANY_NUMBER: return !elements[e].pair;
	case WHOLE_ONLY: return !elements[e].pair && !elements[e].real;
	case LOC: return elements[e].pair;
	default: return e == LONG;
	}
}

static void group_reductions(int most)
{
	const int counts[] = { 1, 2, 37, 1000, 20000 };
	struct reduction all[] = {
		{ MPI_SUM, "sum", op_sum, ANY_NUMBER }, { MPI_MAX, "max", op_max, ANY_NUMBER }, { MPI_MIN, "min", op_min, ANY_NUMBER },
		{ MPI_PROD, "prod", op_prod, ANY_NUMBER }, { MPI_LAND, "land", op_land, WHOLE_ONLY }, { MPI_LOR, "lor", op_lor, WHOLE_ONLY },
		{ MPI_LXOR, "lxor", op_lxor, WHOLE_ONLY }, { MPI_BAND, "band", op_band, WHOLE_ONLY }, { MPI_BOR, "bor", op_bor, WHOLE_ONLY },
		{ MPI_BXOR, "bxor", op_bxor, WHOLE_ONLY }, { MPI_MAXLOC, "maxloc", op_maxloc, LOC }, { MPI_MINLOC, "minloc", op_minloc, LOC },
		{ MPI_OP_NULL, "our sum", op_sum, OURS }, { MPI_OP_NULL, "our composition", op_compose, OURS },
	};
	const int n = sizeof all / sizeof *all;

	MPI_Op_create(user_sum, 1, &all[n - 2].op);
	MPI_Op_create(user_compose, 0, &all[n - 1].op);
	for (int k = 0; k < n; k++)
		for (int e = 0; e < ELEMENTS; e++)
			for (size_t c = 0; c < sizeof counts / sizeof *counts && counts[c] <= most; c++)
				/* The longest vectors only for a few: they ask about transfers, not about operations. */
				if (applies(&all[k], (enum element)e) && (counts[c] < 20000 || k == 0 || k == n - 1))
					reduce_elements(&all[k], (enum element)e, counts[c]);
	MPI_Op_free(&all[n - 2].op);
	MPI_Op_free(&all[n - 1].op);
}

/* ---- neighbour collectives: whom I hear, whom I tell ---- */

struct neighbours {
	int from[MAX_RANKS], to[MAX_RANKS], in, out;
};

/* MPI_PROC_NULL at the edge of a grid: its block is not touched. */
static void expect_from(const char *what, const struct neighbours *v, int k, const long *p, int to, int n)
{
	if (v->from[k] == MPI_PROC_NULL)
		expect_untouched(what, p, n);
	else
		expect(what, p, v->from[k], to, n);
}

static void try_neighbour_gathers(const struct neighbours *v, int n)
{
	int counts[MAX_RANKS], places[MAX_RANKS];
	long *out = longs(n), *in = longs((long)n * v->in);

	fill(out, me, 0, n);
	CALL(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, out, n, MPI_LONG, in, n, MPI_LONG, comm);
	for (int k = 0; k < v->in; k++)
		expect_from("neighbor_allgather", v, k, in + (long)k * n, 0, n);
	clear(in, (long)n * v->in);
	for (int k = 0; k < v->in; k++) {
		counts[k] = v->from[k] == MPI_PROC_NULL ? n : uneven(v->from[k], n / 2);
		places[k] = (v->in - 1 - k) * n;
	}
	CALL(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, out, uneven(me, n / 2), MPI_LONG, in, counts, places, MPI_LONG, comm);
	for (int k = 0; k < v->in; k++)
		expect_from("neighbor_allgatherv", v, k, in + places[k], 0, counts[k]);
	free(out), free(in);
}

static void try_neighbour_alltoall(const struct neighbours *v, int n)
{
	long *out = longs((long)n * v->out), *in = longs((long)n * v->in);

	for (int k = 0; k < v->out; k++)
		fill(out + (long)k * n, me, v->to[k], n);
	CALL(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, out, n, MPI_LONG, in, n, MPI_LONG, comm);
	for (int k = 0; k < v->in; k++)
		expect_from("neighbor_alltoall", v, k, in + (long)k * n, me, n);
	free(out), free(in);
}

static void try_neighbour_vw(const struct neighbours *v, int n)
{
	int outs[MAX_RANKS], out_at[MAX_RANKS], ins[MAX_RANKS], in_at[MAX_RANKS];
	MPI_Aint out_bytes[MAX_RANKS], in_bytes[MAX_RANKS];
	MPI_Datatype types[MAX_RANKS];
	long *out = longs((long)n * v->out), *in = longs((long)n * v->in);

	for (int k = 0; k < MAX_RANKS; k++)
		types[k] = MPI_LONG;
	for (int k = 0; k < v->out; k++) {
		outs[k] = v->to[k] == MPI_PROC_NULL ? 0 : uneven(me + v->to[k], n / 2);
		out_at[k] = (v->out - 1 - k) * n;
		out_bytes[k] = out_at[k] * (MPI_Aint)sizeof(long);
		fill(out + out_at[k], me, v->to[k], outs[k]);
	}
	for (int k = 0; k < v->in; k++) {
		ins[k] = v->from[k] == MPI_PROC_NULL ? 0 : uneven(me + v->from[k], n / 2);
		in_at[k] = (v->in - 1 - k) * n;
		in_bytes[k] = in_at[k] * (MPI_Aint)sizeof(long);
	}
	CALL(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, out, outs, out_at, MPI_LONG, in, ins, in_at, MPI_LONG, comm);
	for (int k = 0; k < v->in; k++)
		expect_from("neighbor_alltoallv", v, k, in + in_at[k], me, ins[k]);
	clear(in, (long)n * v->in);
	CALL(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, out, outs, out_bytes, types, in, ins, in_bytes, types, comm);
	for (int k = 0; k < v->in; k++)
		expect_from("neighbor_alltoallw", v, k, in + in_at[k], me, ins[k]);
	free(out), free(in);
}

static void try_neighbours(const struct neighbours *v)
{
	const int counts[] = { 2, 40, 1000, 20000 };

	for (int k = 0; k < 8; k++) {
		nb = k % 2;
		try_neighbour_gathers(v, counts[k / 2]);
		try_neighbour_alltoall(v, counts[k / 2]);
		try_neighbour_vw(v, counts[k / 2]);
	}
}

static void use(MPI_Comm c, const char *name)
{
	comm = c;
	MPI_Comm_rank(c, &me);
	MPI_Comm_size(c, &size);
	snprintf(label, sizeof label, "%s", name);
}

static void group_graph(void)
{
	const int weights[3] = { 1, 1, 1 };
	struct neighbours v = { .in = 0 };
	MPI_Comm graph;

	use(MPI_COMM_WORLD, "graph");
	/* I tell myself and up to two ranks to the right. */
	for (int d = 0; d < 3 && d < size; d++) {
		v.to[v.out++] = (me + d) % size;
		v.from[v.in++] = (me + size - d) % size;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, v.in, v.from, weights, v.out, v.to, weights, MPI_INFO_NULL, 0, &graph);
	use(graph, "graph");
	try_neighbours(&v);
	MPI_Comm_free(&graph);
	check_group("neighbour collectives on a graph");
}

static void group_grid(void)
{
	int dims[2] = { 0, 0 }, periodic[2] = { 0, 0 };
	struct neighbours v = { .in = 4, .out = 4 };
	MPI_Comm grid;

	MPI_Dims_create(check.size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &grid);
	use(grid, "grid");
	for (int d = 0; d < 2; d++)
		MPI_Cart_shift(grid, d, 1, &v.to[2 * d], &v.to[2 * d + 1]);
	memcpy(v.from, v.to, sizeof v.from);
	try_neighbours(&v);
	MPI_Comm_free(&grid);
	check_group("neighbour collectives on a grid");
}

/* ---- intercommunicator: even ranks on one side, odd ones on the other; me and size are local ---- */

static void try_inter(MPI_Comm inter, int remote, int side, int n)
{
	long *out = longs((long)n * remote), *in = longs((long)n * remote), mine = me + 1, sum = 0;
	int root = side ? 0 : me ? MPI_PROC_NULL : MPI_ROOT;

	CALL(MPI_Barrier, MPI_Ibarrier, inter);
	fill(out, me, side, n);
	CALL(MPI_Bcast, MPI_Ibcast, side ? in : out, n, MPI_LONG, root, inter);
	if (side)
		expect("bcast", in, 0, 0, n);
	CALL(MPI_Allreduce, MPI_Iallreduce, &mine, &sum, 1, MPI_LONG, MPI_SUM, inter);
	CHECK(sum == (long)remote * (remote + 1) / 2, "allreduce over the other side is %ld", sum);
	CALL(MPI_Allgather, MPI_Iallgather, out, n, MPI_LONG, in, n, MPI_LONG, inter);
	for (int r = 0; r < remote; r++)
		expect("allgather", in + (long)r * n, r, !side, n);
	for (int r = 0; r < remote; r++)
		fill(out + (long)r * n, me, r, n);
	CALL(MPI_Alltoall, MPI_Ialltoall, out, n, MPI_LONG, in, n, MPI_LONG, inter);
	for (int r = 0; r < remote; r++)
		expect("alltoall", in + (long)r * n, r, me, n);
	free(out), free(in);
}

static void group_inter(void)
{
	int side = check.rank % 2, remote;
	MPI_Comm half, inter;

	MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 77, &inter);
	MPI_Comm_remote_size(inter, &remote);
	use(half, "an intercommunicator");
	for (int k = 0; k < 6; k++) {
		nb = k % 2;
		try_inter(inter, remote, side, (int[]){ 1, 300, 9000 }[k / 2]);
	}
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	check_group("intercommunicator");
}

/* ---- many at once ---- */

/* Collectives under way together on one communicator, with a message round the ring between them. */
static void group_in_flight(void)
{
	enum { EACH = 8, N = 700 };
	MPI_Request all[4 * EACH + 2];
	long sum[EACH], *cast = longs(EACH * N), *out = longs((long)EACH * N * check.size), *in = longs((long)EACH * N * check.size),
		token = -1;
	long mine[EACH], me_long = check.rank;
	int k = 0;

	use(MPI_COMM_WORLD, "the world");
	MPI_Irecv(&token, 1, MPI_LONG, (me + size - 1) % size, 5, comm, &all[k++]);
	for (int j = 0; j < EACH; j++) {
		mine[j] = (long)me * (j + 1);
		for (int r = 0; r < size; r++)
			fill(out + ((long)j * size + r) * N, me, r, N);
		if (me == j % size)
			fill(cast + j * N, me, j, N);
		MPI_Ibarrier(comm, &all[k++]);
		MPI_Iallreduce(&mine[j], &sum[j], 1, MPI_LONG, MPI_SUM, comm, &all[k++]);
		MPI_Ibcast(cast + j * N, N, MPI_LONG, j % size, comm, &all[k++]);
		MPI_Ialltoall(out + (long)j * size * N, N, MPI_LONG, in + (long)j * size * N, N, MPI_LONG, comm, &all[k++]);
	}
	MPI_Isend(&me_long, 1, MPI_LONG, (me + 1) % size, 5, comm, &all[k++]);
	check_at("many at once", k);
	MPI_Waitall(k, all, MPI_STATUSES_IGNORE);
	CHECK(token == (me + size - 1) % size, "token is %ld", token);
	for (int j = 0; j < EACH; j++) {
		CHECK(sum[j] == (long)size * (size - 1) / 2 * (j + 1), "sum %d is %ld", j, sum[j]);
		expect("bcast", cast + j * N, j % size, j, N);
		for (int r = 0; r < size; r++)
			expect("alltoall", in + ((long)j * size + r) * N, r, me, N);
	}
	free(cast), free(out), free(in);
	check_group("many at once");
}

static const struct {
	const char *name;
	void (*fn)(int n);
} moves[] = {
	{ "barrier", try_barrier }, { "bcast", try_bcast }, { "gather", try_gather }, { "gatherv", try_gatherv },
	{ "scatter", try_scatter },
	{ "scatterv", try_scatterv }, { "allgather", try_allgather }, { "allgatherv", try_allgatherv }, { "alltoall", try_alltoall },
	{ "alltoallv", try_alltoallv }, { "alltoallw", try_alltoallw },
};

static void group_moves(const char *where, MPI_Comm c)
{
	const int counts[] = { 0, 1, 6, 500, 9000 };
	char group[160];

	use(c, where);
	for (size_t m = 0; m < sizeof moves / sizeof *moves; m++) {
		for (size_t k = 0; k < 2 * sizeof counts / sizeof *counts; k++) {
			nb = k % 2;
			moves[m].fn(counts[k / 2]);
		}
		snprintf(group, sizeof group, "%s on %s", moves[m].name, where);
		check_group(group);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm backwards, half;

	check_init(&argc, &argv, "collectives", 90);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -check.rank, &backwards);
	MPI_Comm_split(MPI_COMM_WORLD, check.rank % 2, 0, &half);
	group_moves("the world", MPI_COMM_WORLD);
	group_moves("backwards ranks", backwards);
	group_reductions(20000);
	check_group("reductions on backwards ranks");
	use(MPI_COMM_WORLD, "the world");
	group_reductions(1000);
	check_group("reductions on the world");
	group_moves("two halves", half);
	group_in_flight();
	group_graph();
	group_grid();
	group_inter();
	MPI_Comm_free(&backwards);
	MPI_Comm_free(&half);
	return check_done();
}
