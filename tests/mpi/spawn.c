/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawn: the job starts two more copies of this program with MPI_Comm_spawn, talks to them over the intercommunicator,
 * merges both sides into one communicator, talks over that in all directions, and lets them go; three times over.
 * The children come from another job of the same mpirun, so a transport that knows only the ranks of its own job fails.
 */
#include "check.h"

enum { CHILDREN = 2, TIMES = 3, MOST = 300000 };

static const int sizes[] = { 0, 8, 64, 1000, 4096, 20000, MOST };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static unsigned char *out, *in;

/* Every rank sends every other one a message of each size. */
static void talk_all(MPI_Comm all)
{
	int me, size;

	MPI_Comm_rank(all, &me);
	MPI_Comm_size(all, &size);
	for (int s = 0; s < SIZES; s++)
		for (int d = 1; d < size; d++) {
			int to = (me + d) % size, from = (me + size - d) % size;

			check_at("merged communicator, bytes", sizes[s]);
			check_fill(out, (size_t)sizes[s], check_key((unsigned)me, (unsigned)to, (uint64_t)s));
			MPI_Sendrecv(out, sizes[s], MPI_BYTE, to, s, in, sizes[s], MPI_BYTE, from, s, all, MPI_STATUS_IGNORE);
			CHECK(check_differs(in, (size_t)sizes[s], check_key((unsigned)from, (unsigned)me, (uint64_t)s)) < 0,
				"merged: %d bytes from %d to %d: content differs", sizes[s], from, me);
		}
}

static void collect_all(MPI_Comm all)
{
	int me, size;
	long mine, sum = 0, root = 0;

	MPI_Comm_rank(all, &me);
	MPI_Comm_size(all, &size);
	mine = me + 1;
	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, all);
	CHECK(sum == (long)size * (size + 1) / 2, "allreduce over the merged communicator is %ld", sum);
	root = me == size - 1 ? 4711 : 0;
	MPI_Bcast(&root, 1, MPI_LONG, size - 1, all);
	CHECK(root == 4711, "bcast from the last child brought %ld", root);
}

/* Across the intercommunicator: parent r sends to each child, each child answers with one more. */
static void talk_across(MPI_Comm inter, bool child)
{
	int me, remote;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &remote);
	for (int r = 0; r < remote; r++) {
		int v = -1;

		check_at(child ? "child, answering parent" : "parent, asking child", r);
		if (child) {
			MPI_Recv(&v, 1, MPI_INT, r, 11, inter, MPI_STATUS_IGNORE);
			v++;
			MPI_Send(&v, 1, MPI_INT, r, 12, inter);
			continue;
		}
		v = 100 * me + r;
		MPI_Send(&v, 1, MPI_INT, r, 11, inter);
		MPI_Recv(&v, 1, MPI_INT, r, 12, inter, MPI_STATUS_IGNORE);
		CHECK(v == 100 * me + r + 1, "child %d answered %d", r, v);
	}
}

/* What both sides do; the parents come first in the merged communicator. */
static void meet(MPI_Comm inter, bool child)
{
	MPI_Comm all;
	long bad, worst;

	talk_across(inter, child);
	MPI_Intercomm_merge(inter, child, &all);
	talk_all(all);
	collect_all(all);
	/* The children have no output of their own: their failures come to the parents. */
	bad = check.bad;
	MPI_Allreduce(&bad, &worst, 1, MPI_LONG, MPI_MAX, all);
	if (!child)
		CHECK(check.bad || !worst, "%ld checks failed at another rank", worst);
	else if (bad)
		fprintf(stderr, "spawn: child %d: %s\n", check.rank, check.first);
	MPI_Comm_free(&all);
	MPI_Comm_disconnect(&inter);
}

static int be_child(MPI_Comm parent)
{
	meet(parent, true);
	MPI_Finalize();
	return 0;
}

static bool give_birth(MPI_Comm *children)
{
	char path[1024];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	int codes[CHILDREN], rc;

	path[n > 0 ? n : 0] = '\0';
	check_at("MPI_Comm_spawn", 0);
	rc = MPI_Comm_spawn(path, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes);
	for (int k = 0; k < CHILDREN && rc == MPI_SUCCESS; k++)
		if (codes[k] != MPI_SUCCESS)
			rc = codes[k];
	return CHECK(rc == MPI_SUCCESS, "MPI_Comm_spawn returned %d", rc);
}

int main(int argc, char **argv)
{
	MPI_Comm parent, children;
	char group[40];

	check.name = "spawn";
	check_watch(60);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check.size);
	out = check_memory(MOST);
	in = check_memory(MOST);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		return be_child(parent);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int k = 0; k < TIMES; k++) {
		if (give_birth(&children))
			meet(children, false);
		snprintf(group, sizeof group, "spawn number %d", k + 1);
		check_group(group);
	}
	return check_done();
}
