/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sabotage: a library to preload into the test programs here, which breaks MPI on purpose, so that `prove` can show
 * that each test fails when it should.  It wraps MPI calls through the PMPI interface; no test is linked with it.
 *
 * QNIX_SABOTAGE names the fault.  Every QNIX_SABOTAGE_EVERY-th call (37) that could have it has it:
 *   flip       one byte of what is sent, put, or given to a collective is changed
 *   drop       a message is not sent
 *   swap       a message is sent after the next one to the same rank, or when its sender waits
 *   count      MPI_Get_count says one more
 *   leak       completing many requests at once leaves 8 KiB of memory behind
 * and these at every call:
 *   nosync     synchronous sends are ordinary ones
 *   nocancel   cancel does nothing
 *   nolock     exclusive locks are shared
 *   nobarrier  barriers do nothing
 */
#include <mpi.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool fault_is(const char *name)
{
	const char *fault = getenv("QNIX_SABOTAGE");

	return fault && !strcmp(fault, name);
}

static bool strikes(const char *name)
{
	static _Atomic long calls;
	const char *every = getenv("QNIX_SABOTAGE_EVERY");
	long n = every ? atol(every) : 37;

	/* Relaxed: any thread's call may be the one. */
	return fault_is(name) && (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1) % (n > 0 ? n : 1) == 0;
}

/* Changes the first byte of the data, which need not be the first of the buffer, in place: nobody sends it again as it was. */
static void flip(const void *buffer, long count, MPI_Datatype type)
{
	MPI_Aint lb, extent;

	if (!buffer || buffer == MPI_IN_PLACE || count <= 0)
		return;
	PMPI_Type_get_true_extent(type, &lb, &extent);
	if (extent > 0 && strikes("flip"))
		((char *)(intptr_t)buffer)[lb] ^= 4;
}

/* ---- a message kept back until the next one has gone to the same rank ---- */

static struct {
	bool full;
	char *packed;
	int bytes, to, tag;
	MPI_Comm comm;
} held;

static void hold(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	int room;

	PMPI_Pack_size(count, type, comm, &room);
	held.packed = malloc((size_t)room + 1);
	held.bytes = 0;
	PMPI_Pack(buffer, count, type, held.packed, room, &held.bytes, comm);
	held.full = true;
	held.to = to;
	held.tag = tag;
	held.comm = comm;
}

/* The copy is left behind: it must outlive the send, whose end nobody awaits. */
static void release(void)
{
	MPI_Request req;

	held.full = false;
	PMPI_Isend(held.packed, held.bytes, MPI_PACKED, held.to, held.tag, held.comm, &req);
	PMPI_Request_free(&req);
}

/* What happens to a message before it is sent; false when it must not be sent now. */
static bool leaves(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	if (to == MPI_PROC_NULL)
		return true;
	flip(buffer, count, type);
	if (strikes("drop"))
		return false;
	if (held.full || !strikes("swap"))
		return true;
	hold(buffer, count, type, to, tag, comm);
	return false;
}

/* Whether the message that is held must follow this one. */
static bool is_next(int to)
{
	return held.full && held.to == to;
}

/* ---- sends ---- */

int MPI_Send(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c)
{
	bool follow = is_next(to);
	int rc = leaves(b, n, t, to, tag, c) ? PMPI_Send(b, n, t, to, tag, c) : MPI_SUCCESS;

	if (follow)
		release();
	return rc;
}

int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *req)
{
	bool follow = is_next(to);
	int rc = MPI_SUCCESS;

	*req = MPI_REQUEST_NULL;
	if (leaves(b, n, t, to, tag, c))
		rc = PMPI_Isend(b, n, t, to, tag, c, req);
	if (follow)
		release();
	return rc;
}

int MPI_Sendrecv(const void *b, int n, MPI_Datatype t, int to, int tag, void *rb, int rn, MPI_Datatype rt, int from, int rtag,
	MPI_Comm c, MPI_Status *s)
{
	return PMPI_Sendrecv(b, n, t, leaves(b, n, t, to, tag, c) ? to : MPI_PROC_NULL, tag, rb, rn, rt, from, rtag, c, s);
}

int MPI_Ssend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c)
{
	flip(b, n, t);
	return fault_is("nosync") ? PMPI_Send(b, n, t, to, tag, c) : PMPI_Ssend(b, n, t, to, tag, c);
}

int MPI_Issend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *req)
{
	flip(b, n, t);
	return fault_is("nosync") ? PMPI_Isend(b, n, t, to, tag, c, req) : PMPI_Issend(b, n, t, to, tag, c, req);
}

int MPI_Send_init(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *req)
{
	return PMPI_Send_init(b, n, t, leaves(b, n, t, to, tag, c) ? to : MPI_PROC_NULL, tag, c, req);
}

/* ---- receives and their completion ---- */

int MPI_Get_count(const MPI_Status *s, MPI_Datatype t, int *n)
{
	int rc = PMPI_Get_count(s, t, n);

	*n += strikes("count");
	return rc;
}

int MPI_Waitall(int n, MPI_Request *req, MPI_Status *s)
{
	static _Atomic(void *) last; /* so that the compiler cannot leave the leak out */

	if (strikes("leak"))
		atomic_store_explicit(&last, memset(malloc(8192), 1, 8192), memory_order_relaxed);
	if (held.full)
		release();
	return PMPI_Waitall(n, req, s);
}

int MPI_Cancel(MPI_Request *req)
{
	return fault_is("nocancel") ? MPI_SUCCESS : PMPI_Cancel(req);
}

/* ---- collectives and one-sided ---- */

int MPI_Barrier(MPI_Comm c)
{
	return fault_is("nobarrier") ? MPI_SUCCESS : PMPI_Barrier(c);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	flip(b, n, t);
	return PMPI_Bcast(b, n, t, root, c);
}

int MPI_Allreduce(const void *b, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	flip(b, n, t);
	return PMPI_Allreduce(b, r, n, t, op, c);
}

int MPI_Ialltoall(const void *b, int n, MPI_Datatype t, void *r, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Request *req)
{
	flip(b, n, t);
	return PMPI_Ialltoall(b, n, t, r, rn, rt, c, req);
}

int MPI_Put(const void *b, int n, MPI_Datatype t, int to, MPI_Aint at, int tn, MPI_Datatype tt, MPI_Win w)
{
	flip(b, n, t);
	return PMPI_Put(b, n, t, to, at, tn, tt, w);
}

/* Here the fault is that nothing is fetched. */
int MPI_Get(void *b, int n, MPI_Datatype t, int from, MPI_Aint at, int tn, MPI_Datatype tt, MPI_Win w)
{
	return strikes("flip") ? MPI_SUCCESS : PMPI_Get(b, n, t, from, at, tn, tt, w);
}

int MPI_Win_lock(int kind, int rank, int assert, MPI_Win w)
{
	return PMPI_Win_lock(fault_is("nolock") ? MPI_LOCK_SHARED : kind, rank, assert, w);
}
