/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connect and accept: two jobs that were spawned apart, by the first rank and by the last one, and know nothing of each
 * other, meet by the name of a port, talk, part, and meet again.  Before that, the first and the last rank of the job
 * meet in the same way.
 *
 *     connect                 the job
 *     connect accept|connect  one of the two that it spawns
 */
#include "check.h"

enum { TIMES = 2, MOST = 300000 };

static const int sizes[] = { 0, 8, 64, 1000, 4096, 20000, MOST };
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static unsigned char *out, *in;

/* Both ways at once, over an intercommunicator of one and one. */
static void talk(MPI_Comm inter, bool first)
{
	for (int s = 0; s < SIZES; s++) {
		size_t n = (size_t)sizes[s];

		check_at("across a connection, bytes", sizes[s]);
		check_fill(out, n, check_key(first, !first, (uint64_t)s));
		MPI_Sendrecv(out, sizes[s], MPI_BYTE, 0, s, in, sizes[s], MPI_BYTE, 0, s, inter, MPI_STATUS_IGNORE);
		CHECK(check_differs(in, n, check_key(!first, first, (uint64_t)s)) < 0, "%d bytes across a connection: content differs", sizes[s]);
	}
}

static void take_part(const char *port, bool accepts)
{
	MPI_Comm inter;

	check_at(accepts ? "MPI_Comm_accept" : "MPI_Comm_connect", 0);
	if (accepts)
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
	else
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
	talk(inter, accepts);
	MPI_Comm_disconnect(&inter);
}

/* One of the two that were spawned: the port's name goes by way of the parents, and so does the verdict. */
static int be_spawned(MPI_Comm parent, bool accepts)
{
	char port[MPI_MAX_PORT_NAME] = "";
	long bad;

	for (int k = 0; k < TIMES; k++) {
		if (accepts) {
			MPI_Open_port(MPI_INFO_NULL, port);
			MPI_Send(port, sizeof port, MPI_CHAR, 0, 1, parent);
		} else {
			MPI_Recv(port, sizeof port, MPI_CHAR, 0, 1, parent, MPI_STATUS_IGNORE);
		}
		take_part(port, accepts);
		if (accepts)
			MPI_Close_port(port);
	}
	bad = check.bad;
	if (bad)
		fprintf(stderr, "connect: the spawned one that %s: %s\n", accepts ? "accepts" : "connects", check.first);
	MPI_Send(&bad, 1, MPI_LONG, 0, 2, parent);
	MPI_Comm_disconnect(&parent);
	MPI_Finalize();
	return 0;
}

static MPI_Comm spawn(const char *role)
{
	char path[1024], word[16], *args[] = { word, NULL };
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	MPI_Comm child;

	path[n > 0 ? n : 0] = '\0';
	snprintf(word, sizeof word, "%s", role);
	check_at("MPI_Comm_spawn", 0);
	MPI_Comm_spawn(path, args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
	return child;
}

static void end_of(MPI_Comm child, const char *role)
{
	long bad = 1;

	check_at("the verdict of one that was spawned", 0);
	MPI_Recv(&bad, 1, MPI_LONG, 0, 2, child, MPI_STATUS_IGNORE);
	CHECK(!bad, "%ld checks failed at the spawned one that %s", bad, role);
	MPI_Comm_disconnect(&child);
}

/* The name of the port, from rank 0 to the last one. */
static void hand_on(char *port)
{
	if (check.size > 1 && check.rank == 0)
		MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, check.size - 1, 1, MPI_COMM_WORLD);
	else if (check.size > 1 && check.rank == check.size - 1)
		MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void within_the_job(void)
{
	bool accepts = check.rank == 0, connects = check.rank == check.size - 1 && check.size > 1;
	char port[MPI_MAX_PORT_NAME] = "";

	if (accepts && check.size > 1)
		MPI_Open_port(MPI_INFO_NULL, port);
	hand_on(port);
	if (check.size > 1 && (accepts || connects))
		take_part(port, accepts);
	if (accepts && check.size > 1)
		MPI_Close_port(port);
}

static void between_spawned_jobs(void)
{
	bool first = check.rank == 0, last = check.rank == check.size - 1;
	MPI_Comm accepting = MPI_COMM_NULL, connecting = MPI_COMM_NULL;
	char port[MPI_MAX_PORT_NAME] = "";

	if (first)
		accepting = spawn("accept");
	MPI_Barrier(MPI_COMM_WORLD); /* one after the other: two spawns at a time are too much for some launchers */
	if (last)
		connecting = spawn("connect");
	for (int k = 0; k < TIMES; k++) {
		check_at("handing the port's name on", k);
		if (first)
			MPI_Recv(port, sizeof port, MPI_CHAR, 0, 1, accepting, MPI_STATUS_IGNORE);
		hand_on(port);
		if (last)
			MPI_Send(port, sizeof port, MPI_CHAR, 0, 1, connecting);
	}
	if (last)
		end_of(connecting, "connects");
	if (first)
		end_of(accepting, "accepts");
}

int main(int argc, char **argv)
{
	MPI_Comm parent;

	check.name = "connect";
	check_watch(60);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &check.size);
	out = check_memory(MOST);
	in = check_memory(MOST);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		return be_spawned(parent, argc > 1 && !strcmp(argv[1], "accept"));
	within_the_job();
	check_group("within the job");
	between_spawned_jobs();
	check_group("between spawned jobs");
	return check_done();
}
