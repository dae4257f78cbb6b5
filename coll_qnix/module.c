/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator: whether this component takes it, the functions that it had before, and its end. */
#include "coll_qnix/coll_qnix.h"

static void construct(coll_qnix_module_t *m)
{
	memset((char *)m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
	m->tail = &m->waiting;
	m->root = -1;
}

/* Collective, but not at the same time everywhere: leaving a group is local.  Without the lock: the last request may end while it is held. */
static void destruct(coll_qnix_module_t *m)
{
	if (m->group && coll_qnix.cmpi)
		cmpi_group_leave(m->group);
	coll_qnix_setup_free(m);
#define X(name) if (m->name##_module) OBJ_RELEASE(m->name##_module);
	COLL_QNIX_SAVED(X)
#undef X
}

OBJ_CLASS_INSTANCE(coll_qnix_module_t, mca_coll_base_module_t, construct, destruct);

/* Components enable in the order of their priorities, so what is there now is what would be used without this one. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
	struct coll_qnix_module *m = (struct coll_qnix_module *)module;

#define X(name) if (!comm->c_coll->coll_##name || !comm->c_coll->coll_##name##_module) return OMPI_ERR_NOT_FOUND;
	COLL_QNIX_SAVED(X)
#undef X
#define X(name) \
	m->name = comm->c_coll->coll_##name; \
	m->name##_module = comm->c_coll->coll_##name##_module; \
	OBJ_RETAIN(m->name##_module);
	COLL_QNIX_SAVED(X)
#undef X
	return OMPI_SUCCESS;
}

mca_coll_base_module_t *coll_qnix_comm_query(struct ompi_communicator_t *comm, int *priority)
{
	struct coll_qnix_module *m;

	*priority = coll_qnix.priority;
	if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 || coll_qnix.priority <= 0)
		return NULL;
	m = OBJ_NEW(coll_qnix_module_t);
	if (!m)
		return NULL;
	m->comm = comm;
	m->super.coll_module_enable = enable;
	m->super.coll_barrier = coll_qnix_barrier;
	m->super.coll_bcast = coll_qnix_bcast;
	m->super.coll_allreduce = coll_qnix_allreduce;
	m->super.coll_ibarrier = coll_qnix_ibarrier;
	m->super.coll_ibcast = coll_qnix_ibcast;
	return &m->super;
}
