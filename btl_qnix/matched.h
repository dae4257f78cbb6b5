/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the components have in common that leave the matching of messages to C-MPI: mtl_qnix, below Open MPI's pml/cm, and pml_qnix, in its
 * place.  Processes, communicators, probes, the NIC's opening and closing, and the codes of errors.
 */
#ifndef QNIX_MATCHED_H
#define QNIX_MATCHED_H

#include "btl_qnix/common.h"

#include <limits.h>
#include <stdatomic.h>

#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/pml_constants.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/class/opal_list.h"

/* What differs between Open MPI 4 and 5, besides compat.h. */
#if BTL_VERSION >= 330
#include "ompi/runtime/ompi_rte.h"

/* The number that all its processes have for it: without a flag that says otherwise they agree on one. */
static inline uint32_t qnix_context(const struct ompi_communicator_t *comm)
{
	return comm->c_index;
}
#else
#include "ompi/mca/rte/rte.h"

static inline uint32_t qnix_context(const struct ompi_communicator_t *comm)
{
	return comm->c_contextid;
}
#endif

enum { QNIX_CONTEXT_MAX = CMPI_CONTEXT_MAX, QNIX_TAG_MAX = INT_MAX };

/* A process; the MTL's endpoint of its ompi_proc_t, as no more than one of the two components sends.  Freed when the component's use ends. */
struct qnix_peer {
	opal_list_item_t super;
	struct ompi_proc_t *ompi;
	struct cmpi_proc *proc; /* NULL: deleted */
};
typedef struct qnix_peer qnix_peer_t;
OBJ_CLASS_DECLARATION(qnix_peer_t);

/* What hangs off a communicator (c_pml_comm). */
struct qnix_comm {
	struct cmpi_comm cmpi;
	int size;
	struct cmpi_proc *to[]; /* by rank; NULL: not looked up yet */
};

/* Of one component. */
struct qnix_matched {
	struct cmpi *cmpi;       /* NULL: not open */
	enum qnix_component who; /* the component sets these two */
	const mca_base_component_t *component;
	atomic_bool closing;     /* lost peers no longer matter */
	opal_mutex_t lock;       /* of peers */
	opal_list_t peers;
};

/* Around everything else. */
void qnix_matched_init(struct qnix_matched *m);
void qnix_matched_fini(struct qnix_matched *m);
/* The NIC, its counters and memory, and this process's address for the others.  False: the user has been told why not. */
bool qnix_matched_open(struct qnix_matched *m, bool threads);
void qnix_matched_close(struct qnix_matched *m);

int qnix_matched_add_procs(struct qnix_matched *m, size_t n, struct ompi_proc_t **procs);
int qnix_matched_del_procs(struct qnix_matched *m, size_t n, struct ompi_proc_t **procs);
int qnix_matched_add_comm(struct ompi_communicator_t *comm);
int qnix_matched_del_comm(struct ompi_communicator_t *comm);

/* The process of that rank, looked up for the first time; NULL: it is not reached. */
struct cmpi_proc *qnix_matched_find(struct qnix_matched *m, struct ompi_communicator_t *comm, int rank);
/* Says who is lost, if that is why. */
void qnix_matched_failed(struct qnix_matched *m, const struct cmpi_req *req, int err);

/* As MPI_Iprobe and MPI_Improbe. */
void qnix_matched_iprobe(struct qnix_matched *m, struct ompi_communicator_t *comm, int source, int tag, int *found,
                         struct ompi_status_public_t *status);
int qnix_matched_improbe(struct qnix_matched *m, struct ompi_communicator_t *comm, int source, int tag, int *found,
                         struct ompi_message_t **message, struct ompi_status_public_t *status);
/* C-MPI's message behind MPI's, which is gone then. */
struct cmpi_message *qnix_matched_message(struct ompi_message_t **message, struct ompi_communicator_t **comm);

static inline struct qnix_comm *qnix_comm(const struct ompi_communicator_t *comm)
{
	return (struct qnix_comm *)comm->c_pml_comm;
}

static inline struct cmpi_proc *qnix_matched_to(struct qnix_matched *m, struct ompi_communicator_t *comm, int rank)
{
	struct cmpi_proc *proc = qnix_comm(comm)->to[rank];

	return OPAL_LIKELY(proc != NULL) ? proc : qnix_matched_find(m, comm, rank);
}

/* What a request says, as a call without one, if it leaves at once. */
static inline int qnix_matched_send(const struct qnix_matched *m, const struct cmpi_req *req)
{
	return req->mode == CMPI_MODE_SYNC ? CMPI_AGAIN : cmpi_send(m->cmpi, req->to, req->buf, req->size, req->tag, req->comm);
}

static inline int qnix_ompi_err(int err)
{
	switch (err) {
	case CMPI_OK: return OMPI_SUCCESS;
	case CMPI_AGAIN:
	case CMPI_RESOURCE: return OMPI_ERR_OUT_OF_RESOURCE;
	case CMPI_UNREACHABLE:
	case CMPI_TRANSPORT: return OMPI_ERR_UNREACH;
	default: return OMPI_ERROR;
	}
}

/* For a status: MPI's own codes. */
static inline int qnix_mpi_err(int err)
{
	switch (err) {
	case CMPI_OK: return MPI_SUCCESS;
	case CMPI_TRUNCATED: return MPI_ERR_TRUNCATE;
	case CMPI_RESOURCE: return MPI_ERR_NO_MEM;
	default: return MPI_ERR_OTHER;
	}
}

static inline enum cmpi_mode qnix_mode(mca_pml_base_send_mode_t mode)
{
	return mode == MCA_PML_BASE_SEND_SYNCHRONOUS ? CMPI_MODE_SYNC : mode == MCA_PML_BASE_SEND_READY ? CMPI_MODE_READY : CMPI_MODE_STANDARD;
}

/* How many bytes there are of a receive that was cancelled, failed or cut, too. */
static inline size_t qnix_matched_bytes(const struct cmpi_req *req)
{
	bool none = req->status.cancelled || (req->status.err != CMPI_OK && req->status.err != CMPI_TRUNCATED);

	return none ? 0 : req->status.length < req->size ? req->status.length : req->size;
}

/* What a receive of MPI got: all of a message. */
static inline void qnix_matched_got_all(const struct cmpi_req *req, struct ompi_status_public_t *status)
{
	status->MPI_SOURCE = req->status.source;
	status->MPI_TAG = req->status.tag;
	status->MPI_ERROR = MPI_SUCCESS;
	status->_ucount = req->status.length;
	status->_cancelled = 0;
}

/* What one got that was cancelled, failed or cut, too: so many bytes. */
static inline void qnix_matched_got(const struct cmpi_req *req, size_t bytes, struct ompi_status_public_t *status)
{
	status->MPI_SOURCE = req->status.source;
	status->MPI_TAG = req->status.tag;
	status->MPI_ERROR = qnix_mpi_err(req->status.err);
	status->_ucount = bytes;
	status->_cancelled = req->status.cancelled;
}

#endif
