/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce, where ranks' NICs may do it: the same bits at all ranks, also of rounded sums, in the order of the ranks; every length
 * from one element to more than a piece, and than the NICs do; ranks that are late, or far ahead; as the first use of a communicator that others
 * have begun to use; on more communicators than a NIC has groups for.
 *
 *     reduce [nic|others]    it is an error if the NICs do not, or do
 */
#include "check.h"

enum { MOST = 300000, GUARD = 4, COMMS = 40 };

static bool nic, pair; /* the NICs do it; but messages between two ranks */
static size_t nic_most = 256 << 10; /* bytes of all ranks: coll_qnix_allreduce_max */
static const int pair_from = 128, pair_to = 2048; /* numbers that go as messages between two ranks */
static double out[MOST], in[MOST + GUARD], first[MOST];

/* Of such different sizes that each order of adding them up comes to other bits. */
static double number(int rank, int i, long round)
{
	uint64_t x = check_mix((uint64_t)rank * 1000003 + (uint64_t)i * 31 + (uint64_t)round);

	return ((double)(x >> 12) + 1) * (x & 1 ? 1e-12 : 1.0) * (x & 2 ? 1 : -1);
}

/* As reduce.c of coll_qnix adds them up: the last two first. */
static double sum(int ranks, int i, long round)
{
	double s = number(ranks - 1, i, round);

	for (int r = ranks - 2; r >= 0; r--)
		s = number(r, i, round) + s;
	return s;
}

static double difference(double a, double b)
{
	return a < b ? b - a : a - b;
}

static void reduce(MPI_Comm comm, int n, bool in_place, long round)
{
	int me, size, wrong = 0;
	double most; /* difference: by another order, or none */

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &size);
	most = nic && comm == MPI_COMM_WORLD && (size_t)n * sizeof *in * (size_t)size <= nic_most ? 0 : 2.0 * size * size;
	for (int i = 0; i < n; i++)
		out[i] = number(me, i, round);
	memcpy(in, out, (size_t)n * sizeof *in);
	for (int i = n; i < n + GUARD; i++)
		in[i] = -4711;
	if (!in_place)
		memset(in, 0x55, (size_t)n * sizeof *in);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : out, in, n, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = 0; i < n; i++)
		wrong += !(difference(in[i], sum(size, i, round)) <= most);
	for (int i = n; i < n + GUARD; i++)
		wrong += in[i] != -4711;
	CHECK(!wrong, "%d numbers%s, round %ld: %d are wrong", n, in_place ? " in place" : "", round, wrong);
	for (int i = 0; i < n; i++)
		wrong += out[i] != number(me, i, round);
	CHECK(!wrong, "%d numbers, round %ld: %d are not what was given any more", n, round, wrong);
}

static void lengths(void)
{
	static const int some[] = { 1, 5, 6, 7, 63, 64, 65, 512, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097, 8192, 8193, 16384, 20000, 100000, MOST };

	for (size_t k = 0; k < sizeof some / sizeof *some; k++)
		for (int in_place = 0; in_place < 2; in_place++) {
			check_at("numbers", some[k]);
			reduce(MPI_COMM_WORLD, some[k], in_place, (long)k);
			memcpy(first, in, sizeof first);
			MPI_Bcast(first, some[k], MPI_DOUBLE, 0, MPI_COMM_WORLD);
			CHECK(!memcmp(first, in, (size_t)some[k] * sizeof *in), "%d numbers: other bits than rank 0's", some[k]);
		}
	check_group("lengths");
}

/* One comes late, and another one has put more broadcasts on its board by then than there are places. */
static void many_in_a_row(void)
{
	for (long round = 0; round < 400; round++) {
		int late = (int)(round / 50 % check.size);

		check_at("in a row", round);
		if (round % 50 == 49) {
			if (check.rank == late)
				usleep(2000);
			for (int k = 0; k < 20; k++)
				MPI_Bcast(first, 8 + k % 2 * 100, MPI_DOUBLE, (late + 1) % check.size, MPI_COMM_WORLD);
		}
		reduce(MPI_COMM_WORLD, 1 + (int)(round * 37 % 700), round % 3 == 0, round);
		if (round % 7 == 0)
			MPI_Bcast(first, 8, MPI_DOUBLE, (int)(round % check.size), MPI_COMM_WORLD);
	}
	check_group("many in a row");
}

/* Some have given more than others: an error, but the next reductions are as good as before. */
static void counts_differ(void)
{
	int most = (int)(nic_most / sizeof *in) / check.size, least = pair ? pair_to + 1 : 100;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (long round = 0; round < 12; round++) {
		int n = least + (int)round * (most - 1000 - least) / 11, rc; /* the NICs' in any case */

		check_at("counts differ", round);
		MPI_Barrier(comm);
		rc = MPI_Allreduce(MPI_IN_PLACE, in, check.rank ? n : n + 1000, MPI_DOUBLE, MPI_SUM, comm);
		CHECK(rc != MPI_SUCCESS, "%d numbers, and 1,000 more at rank 0: no error", n);
		reduce(comm, n, round % 2, round);
	}
	MPI_Comm_free(&comm);
	check_group("counts that differ");
}

/* Non-blocking operations make the group, and are over at some ranks only when the reduction begins. */
static void first_use(void)
{
	for (int round = 0; round < 20; round++) {
		MPI_Request request[2];
		MPI_Comm comm;

		check_at("first use", round);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		if (round % 2) {
			MPI_Ibarrier(comm, &request[0]);
			MPI_Ibcast(first, 8, MPI_DOUBLE, round % check.size, comm, &request[1]);
			if (check.rank % 2)
				MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		}
		reduce(comm, 10 + round, round % 4 < 2, round);
		if (round % 2 && !(check.rank % 2))
			MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		for (int k = 0; k < 12; k++) /* the first ones may be left to others */
			reduce(comm, 10 + k, k % 2, round);
		MPI_Comm_free(&comm);
	}
	check_group("as the first use of a communicator");
}

static void many_communicators(void)
{
	MPI_Comm comm[COMMS];

	for (int k = 0; k < COMMS; k++)
		MPI_Comm_split(MPI_COMM_WORLD, 0, k % 2 ? check.rank : -check.rank, &comm[k]);
	for (int round = 0; round < 10; round++)
		for (int k = 0; k < COMMS; k++) {
			check_at("communicator", k);
			reduce(comm[k], 1 + k, k % 3 == 0, round);
		}
	for (int k = 0; k < COMMS; k++)
		MPI_Comm_free(&comm[k]);
	check_group("more communicators than groups");
}

/* Each rank broadcasts once. */
static void expect_broadcasts(int n, int each)
{
	struct check_counter broadcasts = check_counter_watch("broadcasts");
	long long counted;

	reduce(MPI_COMM_WORLD, n, false, 0);
	counted = check_counter_end(&broadcasts);
	CHECK(counted == each * check.size, "%d numbers, broadcasts of the NIC: %lld", n, counted);
}

static void who_does_it(bool others)
{
	expect_broadcasts(1, !others);
	expect_broadcasts(pair_from - 1, !others);
	expect_broadcasts(pair_from, !others && !pair);
	expect_broadcasts(pair_to, !others && !pair);
	expect_broadcasts(pair_to + 1, !others);
	check_group(others ? "by others" : "by the NIC");
}

int main(int argc, char **argv)
{
	const char *max = getenv("OMPI_MCA_coll_qnix_allreduce_max"), *btl = getenv("OMPI_MCA_btl");

	check_init(&argc, &argv, "reduce", 90);
	nic = argc > 1 && !strcmp(argv[1], "nic");
	pair = check.size == 2 && (!btl || strstr(btl, "qnix")); /* which must be the NIC's */
	if (max)
		nic_most = strtoul(max, NULL, 10);
	MPI_Barrier(MPI_COMM_WORLD); /* or its first reductions are left to others */
	first_use();
	lengths();
	many_in_a_row();
	many_communicators();
	if (nic)
		counts_differ();
	if (argc > 1)
		who_does_it(!nic);
	return check_done();
}
