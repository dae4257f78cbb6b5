/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce of little data: each rank broadcasts its own, and reduces what all have sent, from the last rank's to the
 * first's.  So all come to the same bits, also of an operation that does not commute or of rounded sums.  The work grows with the
 * ranks, but nobody waits for what another one has reduced: each line that is waited for is written before its owner waits.
 * More than a board has room for goes in pieces, each as if it were all: what it needs of caches is used again at once.
 *
 * What is left to the next component is decided by what comes to the same at all ranks.  MPI_Reduce is not here: the NIC's
 * broadcasts go to all members, and those that want no result would have to wait for them.
 */
#include "coll_qnix/coll_qnix.h"

enum {
	PIECE_MAX = 64 << 10, /* bytes of a rank's: all of them are put before any is taken, and a board has room for so much */
	LEN_SHORT = 1024,   /* so much lies on the stack */
	NEW_LEFT = 8,       /* reductions of a communicator that may not be worth a group */
};

/* What MPI_Allreduce was called with. */
struct reduction {
	struct coll_qnix_module *m;
	struct ompi_datatype_t *type;
	struct ompi_op_t *op;
	void *own, *result; /* the same: in place */
	int count;
	size_t len;
};

static int share(const struct reduction *r, int root, void *data)
{
	struct coll_qnix_op op = { .module = r->m, .root = root, .sends = root == ompi_comm_rank(r->m->comm),
		.data = { .user = data, .len = r->len, .count = (int)r->len, .type = MPI_BYTE } };

	return coll_qnix_do(&op);
}

/* By the public call: the header of what is below it is not installed. */
static int combine(const struct reduction *r, const void *from)
{
	return PMPI_Reduce_local(from, r->result, r->count, r->type, r->op);
}

/*
 * Takes the others' data, after its own was sent.  An error of one does not end it, since the rest is to be received all the same:
 * the next collective begins with what comes next.
 */
static int take(const struct reduction *r, void *own, void *other)
{
	int rank = ompi_comm_rank(r->m->comm), last = ompi_comm_size(r->m->comm) - 1, rc = OMPI_SUCCESS;

	for (int i = last; i >= 0; i--) {
		void *from = i == rank ? own : i == last ? r->result : other;
		int one = i == rank ? OMPI_SUCCESS : share(r, i, from);

		rc = rc == OMPI_SUCCESS ? one : rc;
		if (i == last && from != r->result)
			memcpy(r->result, from, r->len);
		else if (i != last && rc == OMPI_SUCCESS)
			rc = combine(r, from);
	}
	return rc;
}

static int reduce(const struct reduction *r, uint8_t *room)
{
	bool kept = r->own == r->result && ompi_comm_rank(r->m->comm) != ompi_comm_size(r->m->comm) - 1;
	int rc = share(r, ompi_comm_rank(r->m->comm), r->own);

	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
		return rc;
	return take(r, kept ? memcpy(room + r->len, r->own, r->len) : r->own, room);
}

/* So many elements a piece: as many in each, so that the first one mostly shows that another rank has given another number of them. */
static size_t piece_size(const struct reduction *r)
{
	size_t count = (size_t)r->count, most = PIECE_MAX / (r->len / count), pieces = (count + most - 1) / most;

	return (count + pieces - 1) / pieces;
}

/* From the element that comes after so many. */
static struct reduction piece(const struct reduction *r, size_t before, size_t n)
{
	size_t each = r->len / (size_t)r->count, left = (size_t)r->count - before;
	struct reduction part = *r;

	n = n < left ? n : left;
	part.own = (uint8_t *)r->own + before * each;
	part.result = (uint8_t *)r->result + before * each;
	part.count = (int)n;
	part.len = n * each;
	return part;
}

/*
 * All pieces, whatever has become of the first: what the others have sent is to be received, as in take.  But lengths that differ are seen by all,
 * and nobody goes on.
 */
static __attribute__((noinline)) int reduce_long(const struct reduction *r)
{
	size_t n = piece_size(r);
	uint8_t *room = malloc(2 * n * (r->len / (size_t)r->count));
	int rc = OMPI_SUCCESS, one;

	if (!room)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (size_t before = 0; before < (size_t)r->count && rc != MPI_ERR_TRUNCATE; before += n) {
		struct reduction part = piece(r, before, n);

		one = reduce(&part, room);
		rc = rc == OMPI_SUCCESS ? one : rc;
	}
	free(room);
	return rc;
}

static __attribute__((noinline)) int reduce_short(const struct reduction *r)
{
	_Alignas(64) uint8_t room[2 * LEN_SHORT];

	return reduce(r, room);
}

/*
 * Do all ranks' NICs broadcast within the call?  Otherwise the next component's messages are faster.  It is known when the ranks have
 * exchanged their addresses, for which the first reduction waits: at all ranks, whatever each of them knows by then.
 */
static int agreed(struct coll_qnix_module *m)
{
	struct coll_qnix_op op = { .module = m, .barrier = true };
	int rc = OMPI_SUCCESS;

	if (OPAL_UNLIKELY(!m->asked))
		rc = coll_qnix_do(&op);
	m->asked = true;
	return m->at_once || m->state == COLL_QNIX_FAILED || rc != OMPI_SUCCESS ? rc : COLL_QNIX_HAND_ON;
}

/* Types without gaps, that need no unpacking. */
static bool takes(const struct reduction *r)
{
	return r->len * (size_t)ompi_comm_size(r->m->comm) <= coll_qnix.allreduce_max &&
	       ompi_datatype_is_predefined(r->type) && opal_datatype_is_contiguous_memory_layout(&r->type->super, r->count) && !coll_qnix_left_to_others(r->m);
}

/* A communicator that is made for a reduction or two, and was used for nothing else. */
static bool too_new(struct coll_qnix_module *m)
{
	return OPAL_UNLIKELY(m->state == COLL_QNIX_NEW) && m->reductions++ < NEW_LEFT;
}

int coll_qnix_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	struct coll_qnix_module *m = (struct coll_qnix_module *)module;
	const struct reduction r = { .m = m, .type = type, .op = op, .own = sbuf == MPI_IN_PLACE ? rbuf : (void *)(uintptr_t)sbuf, .result = rbuf,
		.count = count, .len = (size_t)count * type->super.size };
	int rc;

	if (r.len == 0)
		return OMPI_SUCCESS;
	rc = takes(&r) && !too_new(m) ? agreed(m) : COLL_QNIX_HAND_ON;
	if (rc == OMPI_SUCCESS && coll_qnix_pair_sends(m, r.len, COLL_QNIX_PAIR_REDUCE))
		rc = COLL_QNIX_HAND_ON;
	if (OPAL_LIKELY(rc == OMPI_SUCCESS))
		rc = r.len <= LEN_SHORT ? reduce_short(&r) : reduce_long(&r);
	return OPAL_LIKELY(rc != COLL_QNIX_HAND_ON) ? rc : m->allreduce(sbuf, rbuf, count, type, op, comm, m->allreduce_module);
}
