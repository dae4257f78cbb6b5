/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's point-to-point layer over C-MPI, in place of pml/ob1 and pml/cm: what the files of this component share.
 *
 * C-MPI has what MPI asks for, requests, matching, modes of sending, so nothing is left in between: a message of one piece is a call of C-MPI, and a send
 * that leaves at once has no request.  With ob1 or cm a message of 8 bytes takes some 750 or 400 instructions more than that (docs/performance.md).
 * It shares the NIC of the process with the BTL, which Open MPI uses beside it for one-sided communication (btl_qnix/common.h), and what it has in common with
 * the MTL is in btl_qnix/matched.h.
 *
 *      component.c  life cycle, settings     request.c  requests: their end, freeing, starting again
 *      send.c       messages out (hot)       recv.c     messages in, probes (hot)
 */
#ifndef PML_QNIX_H
#define PML_QNIX_H

#include "btl_qnix/matched.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "opal/class/opal_free_list.h"

/*
 * A request lives until it has ended and is freed, whichever comes last: a program may free one that is under way (MPI_Request_free), and the thread that
 * ends one still has it in its hands when another that waited for it frees it.
 */
enum { PML_QNIX_ENDED = 1, PML_QNIX_FREED = 2 };

struct pml_qnix_request {
	ompi_request_t super;   /* first */
	/* Beside it, because a window of requests has to fit the first-level cache. */
	void *packed;           /* of data in pieces; NULL: none.  First: pml/monitoring takes what stands here for the type of a persistent request, and 0 for none of its own */
	atomic_uint over;       /* ENDED, FREED */
	bool buffered;          /* packed is of the buffer of MPI_Buffer_attach */
	bool sends;             /* this, and what has no other comment, of data in pieces and of persistent requests */
	int peer;
	struct ompi_datatype_t *type; /* held on to; NULL: not held */
	struct cmpi_req cmpi;
	void *data;
	size_t count;
	mca_pml_base_send_mode_t mode; /* sends */
};
typedef struct pml_qnix_request pml_qnix_request_t;

struct pml_qnix {
	mca_pml_base_module_t super;
	struct qnix_matched matched;
	int priority;
	bool unasked;
	opal_free_list_t requests;
};
extern struct pml_qnix pml_qnix;
extern mca_pml_base_component_t mca_pml_qnix_component;

/* request.c */
OBJ_CLASS_DECLARATION(pml_qnix_request_t);
/* One that is active, or NULL.  It holds on to the communicator. */
static inline struct pml_qnix_request *pml_qnix_request_new(struct ompi_communicator_t *comm);
/* Persistent, not started. */
struct pml_qnix_request *pml_qnix_request_inactive(struct ompi_communicator_t *comm, const void *data, size_t count,
                                                   struct ompi_datatype_t *type, int peer, int tag);
/* Persistent ones of both kinds. */
int pml_qnix_start(size_t n, struct ompi_request_t **requests);
void pml_qnix_request_gone(struct pml_qnix_request *r);

/* send.c */
int pml_qnix_send(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                  struct ompi_communicator_t *comm);
int pml_qnix_isend(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                   struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_qnix_isend_init(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                        struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_qnix_send_again(struct pml_qnix_request *r);

/* recv.c */
int pml_qnix_recv(void *data, size_t count, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
                  ompi_status_public_t *status);
int pml_qnix_irecv(void *data, size_t count, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
                   struct ompi_request_t **request);
int pml_qnix_irecv_init(void *data, size_t count, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
                        struct ompi_request_t **request);
int pml_qnix_recv_again(struct pml_qnix_request *r);
int pml_qnix_iprobe(int from, int tag, struct ompi_communicator_t *comm, int *found, ompi_status_public_t *status);
int pml_qnix_probe(int from, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status);
int pml_qnix_improbe(int from, int tag, struct ompi_communicator_t *comm, int *found, struct ompi_message_t **message,
                     ompi_status_public_t *status);
int pml_qnix_mprobe(int from, int tag, struct ompi_communicator_t *comm, struct ompi_message_t **message, ompi_status_public_t *status);
int pml_qnix_imrecv(void *data, size_t count, struct ompi_datatype_t *type, struct ompi_message_t **message,
                    struct ompi_request_t **request);
int pml_qnix_mrecv(void *data, size_t count, struct ompi_datatype_t *type, struct ompi_message_t **message, ompi_status_public_t *status);

/* ---- hot ---- */

static inline struct pml_qnix_request *pml_qnix_request_of(struct cmpi_req *req)
{
	return (struct pml_qnix_request *)((char *)req - offsetof(struct pml_qnix_request, cmpi));
}

static inline struct pml_qnix_request *pml_qnix_request_new(struct ompi_communicator_t *comm)
{
	struct pml_qnix_request *r = (struct pml_qnix_request *)opal_free_list_get(&pml_qnix.requests);

	if (OPAL_UNLIKELY(!r))
		return NULL;
	r->super.req_complete = REQUEST_PENDING;
	r->super.req_state = OMPI_REQUEST_ACTIVE;
	r->super.req_status.MPI_ERROR = OMPI_SUCCESS;
	r->super.req_mpi_object.comm = comm;
	atomic_store_explicit(&r->over, 0, memory_order_relaxed); /* nobody else knows it yet */
	OBJ_RETAIN(comm);
	return r;
}

/* The first of the two is over; true: both are. */
static inline bool pml_qnix_request_over(struct pml_qnix_request *r, unsigned what)
{
	if (OPAL_UNLIKELY(opal_using_threads()))
		/* R1, A1: whoever is second has what the first one wrote; the two pair with each other */
		return (atomic_fetch_or_explicit(&r->over, what, memory_order_acq_rel) | what) == (PML_QNIX_ENDED | PML_QNIX_FREED);
	what |= atomic_load_explicit(&r->over, memory_order_relaxed); /* one thread */
	atomic_store_explicit(&r->over, what, memory_order_relaxed);
	return what == (PML_QNIX_ENDED | PML_QNIX_FREED);
}

/* For C-MPI's `done`: the status is there.  The request may be gone afterwards. */
static inline void pml_qnix_request_end(struct pml_qnix_request *r)
{
	ompi_request_complete(&r->super, true);
	if (OPAL_UNLIKELY(pml_qnix_request_over(r, PML_QNIX_ENDED)))
		pml_qnix_request_gone(r);
}

/* Do the data lie in one piece, from their true lower bound on? */
static inline bool pml_qnix_in_one_piece(const struct ompi_datatype_t *type, size_t count)
{
	uint32_t flags = type->super.flags;

	return (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) && (count == 1 || (flags & OPAL_DATATYPE_FLAG_NO_GAPS));
}

#endif
