/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers and broadcasts.  What is left to the next component is decided by what is the same at all ranks: the state that the communicator
 * has agreed on, the number of bytes, and for calls that wait the roots so far.
 */
#include "coll_qnix/coll_qnix.h"

static size_t bytes(int count, const struct ompi_datatype_t *type)
{
	return (size_t)count * type->super.size;
}

int coll_qnix_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	struct coll_qnix_module *m = (struct coll_qnix_module *)module;
	struct coll_qnix_op op = { .module = m, .barrier = true };
	int rc;

	if (OPAL_UNLIKELY(coll_qnix_left_to_others(m)))
		return m->barrier(comm, m->barrier_module);
	rc = coll_qnix_do(&op);
	return OPAL_LIKELY(rc != COLL_QNIX_HAND_ON) ? rc : m->barrier(comm, m->barrier_module);
}

/*
 * Is it the turn of another root than the last one's?  Then what a pair sends is faster.  Both know that they are one when they have been
 * through a broadcast.
 */
static inline bool takes_turn(struct coll_qnix_module *m, int root, size_t len)
{
	int last = m->root;

	m->root = root;
	return OPAL_UNLIKELY(root != last) && last >= 0 && coll_qnix_pair_sends(m, len, COLL_QNIX_PAIR_BCAST);
}

int coll_qnix_bcast(void *buf, int count, struct ompi_datatype_t *type, int root, struct ompi_communicator_t *comm,
                    mca_coll_base_module_t *module)
{
	struct coll_qnix_module *m = (struct coll_qnix_module *)module;
	struct coll_qnix_op op = { .module = m, .root = root, .sends = root == ompi_comm_rank(comm),
		.data = { .user = buf, .len = bytes(count, type), .count = count, .type = type } };
	int rc;

	if (op.data.len == 0)
		return OMPI_SUCCESS;
	if (OPAL_UNLIKELY(op.data.len > coll_qnix.bcast_max || coll_qnix_left_to_others(m) || takes_turn(m, root, op.data.len)))
		return m->bcast(buf, count, type, root, comm, m->bcast_module);
	if (!coll_qnix_data_open(&op.data, op.sends))
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = coll_qnix_do(&op);
	if (OPAL_LIKELY(rc != COLL_QNIX_HAND_ON))
		return rc;
	coll_qnix_data_close(&op.data, true, false);
	return m->bcast(buf, count, type, root, comm, m->bcast_module);
}

int coll_qnix_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module)
{
	struct coll_qnix_module *m = (struct coll_qnix_module *)module;
	struct coll_qnix_request *r;

	if (coll_qnix_left_to_others(m))
		return m->ibarrier(comm, request, m->ibarrier_module);
	r = coll_qnix_request_new(m);
	if (!r)
		return OMPI_ERR_OUT_OF_RESOURCE;
	r->op.barrier = true;
	*request = &r->super;
	coll_qnix_start(&r->op);
	return OMPI_SUCCESS;
}

int coll_qnix_ibcast(void *buf, int count, struct ompi_datatype_t *type, int root, struct ompi_communicator_t *comm,
                     ompi_request_t **request, mca_coll_base_module_t *module)
{
	struct coll_qnix_module *m = (struct coll_qnix_module *)module;
	struct coll_qnix_data data = { .user = buf, .len = bytes(count, type), .count = count, .type = type };
	bool sends = root == ompi_comm_rank(comm);
	struct coll_qnix_request *r;

	if (data.len == 0 || data.len > coll_qnix.ibcast_max || coll_qnix_left_to_others(m))
		return m->ibcast(buf, count, type, root, comm, request, m->ibcast_module);
	if (!coll_qnix_data_open(&data, sends))
		return OMPI_ERR_OUT_OF_RESOURCE;
	r = coll_qnix_request_new(m);
	if (!r) {
		coll_qnix_data_close(&data, true, false);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	r->op.sends = sends;
	r->op.root = root;
	r->op.data = data;
	*request = &r->super;
	coll_qnix_start(&r->op);
	return OMPI_SUCCESS;
}
