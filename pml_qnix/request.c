/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: what is the same for sends and receives. */
#include "pml_qnix/pml_qnix.h"

#include <sched.h>

/* MPI calls it once for each request, ended or not; of a persistent one only when the program does. */
static int request_free(struct ompi_request_t **request)
{
	struct pml_qnix_request *r = (struct pml_qnix_request *)*request;

	*request = MPI_REQUEST_NULL;
	OMPI_REQUEST_FINI(&r->super);
	if (pml_qnix_request_over(r, PML_QNIX_FREED))
		pml_qnix_request_gone(r);
	return OMPI_SUCCESS;
}

/* The end of the request says whether it was in time. */
static int request_cancel(struct ompi_request_t *request, int flag)
{
	struct pml_qnix_request *r = (struct pml_qnix_request *)request;

	(void)flag;
	if (!REQUEST_COMPLETE(request))
		cmpi_cancel(pml_qnix.matched.cmpi, &r->cmpi);
	return OMPI_SUCCESS;
}

void pml_qnix_request_gone(struct pml_qnix_request *r)
{
	if (OPAL_UNLIKELY(r->type != NULL)) {
		OMPI_DATATYPE_RELEASE(r->type);
		r->type = NULL;
	}
	r->super.req_persistent = false;
	OBJ_RELEASE(r->super.req_mpi_object.comm);
	opal_free_list_return(&pml_qnix.requests, &r->super.super);
}

struct pml_qnix_request *pml_qnix_request_inactive(struct ompi_communicator_t *comm, const void *data, size_t count,
                                                   struct ompi_datatype_t *type, int peer, int tag)
{
	struct pml_qnix_request *r = pml_qnix_request_new(comm);

	if (!r)
		return NULL;
	OMPI_REQUEST_INIT(&r->super, true);
	atomic_store_explicit(&r->over, PML_QNIX_ENDED, memory_order_relaxed); /* nobody else knows it yet */
	r->sends = false;
	r->data = (void *)data;
	r->count = count;
	r->type = type;
	OMPI_DATATYPE_RETAIN(type);
	r->peer = peer;
	r->cmpi.tag = tag;
	return r;
}

/* The thread that ended it has said so, and may not have left it yet. */
static void again(struct pml_qnix_request *r)
{
	while (!(atomic_load_explicit(&r->over, memory_order_acquire) & PML_QNIX_ENDED)) /* pairs with R1 */
		sched_yield();
	atomic_store_explicit(&r->over, 0, memory_order_relaxed);
	r->super.req_status.MPI_ERROR = OMPI_SUCCESS;
	r->super.req_complete = REQUEST_PENDING;
	r->super.req_state = OMPI_REQUEST_ACTIVE;
}

int pml_qnix_start(size_t n, struct ompi_request_t **requests)
{
	for (size_t i = 0; i < n; i++) {
		struct pml_qnix_request *r = (struct pml_qnix_request *)requests[i];
		int rc;

		/* A state says active until MPI_Wait and the like; osc/pt2pt starts again without. */
		if (r->super.req_state == OMPI_REQUEST_ACTIVE && !REQUEST_COMPLETE(&r->super))
			return OMPI_ERR_REQUEST;
		again(r);
		rc = r->sends ? pml_qnix_send_again(r) : pml_qnix_recv_again(r);
		if (rc != OMPI_SUCCESS) {
			r->super.req_status.MPI_ERROR = MPI_ERR_OTHER; /* who started several waits for all of them */
			pml_qnix_request_end(r);
			return rc;
		}
	}
	return OMPI_SUCCESS;
}

static void construct(struct pml_qnix_request *r)
{
	OMPI_REQUEST_INIT(&r->super, false);
	r->super.req_type = OMPI_REQUEST_PML;
	r->super.req_start = pml_qnix_start;
	r->super.req_free = request_free;
	r->super.req_cancel = request_cancel;
	r->packed = NULL;
	r->buffered = false;
	r->type = NULL;
	atomic_init(&r->over, 0);
}
OBJ_CLASS_INSTANCE(pml_qnix_request_t, ompi_request_t, construct, NULL);
