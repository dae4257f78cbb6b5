/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages out.  Data in pieces is packed first (by Open MPI, which knows the layouts, into memory that it allocates, which is
 * why this file is not called hot).
 */
#include "mtl_qnix/mtl_qnix.h"

/* *packed: to be freed; NULL: the data lie where they are.  Returns an error of Open MPI. */
static inline int prepare(struct cmpi_req *req, struct ompi_communicator_t *comm, int dest, int tag,
                          struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, void **packed)
{
	bool in_pieces;
	size_t size;
	int rc;

	*packed = NULL;
	req->to = qnix_matched_to(&mtl_qnix.matched, comm, dest);
	if (OPAL_UNLIKELY(!req->to))
		return OMPI_ERR_UNREACH;
	mtl_qnix_rewind(convertor);
	rc = ompi_mtl_datatype_pack(convertor, &req->buf, &size, &in_pieces);
	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
		return rc;
	if (in_pieces)
		*packed = req->buf;
	req->size = size;
	req->comm = &qnix_comm(comm)->cmpi;
	req->tag = tag;
	req->mode = qnix_mode(mode);
	return OMPI_SUCCESS;
}

/* ---- blocking --------------------------------------------------------------------------------------------------------- */

struct waiting {
	struct cmpi_req req; /* first */
	atomic_bool over;
};

static void over(struct cmpi_req *req)
{
	/* R1: what the request got comes before; pairs with A1 */
	atomic_store_explicit(&((struct waiting *)req)->over, true, memory_order_release);
}

static __opal_attribute_noinline__ int wait_for(struct waiting *w)
{
	int err;

	w->req.done = over;
	atomic_store_explicit(&w->over, false, memory_order_relaxed); /* nobody else knows it yet */
	err = cmpi_isend(mtl_qnix.matched.cmpi, &w->req);
	if (err != CMPI_OK)
		return err;
	while (!atomic_load_explicit(&w->over, memory_order_acquire)) /* A1: pairs with R1 */
		opal_progress();
	return w->req.status.err;
}

int mtl_qnix_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                  struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
	struct waiting w;
	void *packed;
	int err = prepare(&w.req, comm, dest, tag, convertor, mode, &packed);

	(void)mtl;
	if (OPAL_UNLIKELY(err != OMPI_SUCCESS))
		return err;
	err = qnix_matched_send(&mtl_qnix.matched, &w.req);
	if (OPAL_UNLIKELY(err == CMPI_AGAIN))
		err = wait_for(&w);
	if (OPAL_UNLIKELY(packed != NULL))
		free(packed);
	if (OPAL_UNLIKELY(err != CMPI_OK))
		qnix_matched_failed(&mtl_qnix.matched, &w.req, err);
	return qnix_ompi_err(err);
}

/* ---- not blocking ------------------------------------------------------------------------------------------------------ */

static inline void end(struct mtl_qnix_request *r, int err, bool cancelled)
{
	struct ompi_status_public_t *status = &r->super.ompi_req->req_status;

	if (OPAL_UNLIKELY(r->packed != NULL))
		free(r->packed);
	status->MPI_ERROR = qnix_mpi_err(err);
	status->_cancelled = cancelled;
	r->super.completion_callback(&r->super);
}

/*
 * pml/cm (Open MPI 4.1 to 5.0) ends a send like this: completes its request, notes that, looks whether the request has been freed,
 * and gives it back if so.  Who waited frees: notes that, looks whether the end was noted, and gives it back if so.  Threads that
 * do the two at a time give the request back twice: it is handed out twice, and a communicator goes while it is in use.  A
 * persistent one that is started again looks for the note of its end in the same way.  So a send that another thread may end is ended,
 * freed and started again under a lock.  Ends may call back, which may free, or send: the lock is recursive, and C-MPI
 * calls `done` with no lock of its own held.
 */
static int free_ended(struct ompi_request_t **request)
{
	int rc;

	opal_mutex_lock(&mtl_qnix.ends);
	(*request)->req_free = mtl_qnix.pml_free; /* the next send may leave at once */
	rc = mtl_qnix.pml_free(request);
	opal_mutex_unlock(&mtl_qnix.ends);
	return rc;
}

static int start_ended(size_t n, struct ompi_request_t **request)
{
	int rc;

	opal_mutex_lock(&mtl_qnix.ends);
	rc = mtl_qnix.pml_start(n, request);
	opal_mutex_unlock(&mtl_qnix.ends);
	return rc;
}

static void sent(struct cmpi_req *req)
{
	if (OPAL_UNLIKELY(req->status.err != CMPI_OK))
		qnix_matched_failed(&mtl_qnix.matched, req, req->status.err);
	OPAL_THREAD_LOCK(&mtl_qnix.ends);
	end(mtl_qnix_request_of(req), req->status.err, req->status.cancelled);
	OPAL_THREAD_UNLOCK(&mtl_qnix.ends);
}

/* For cmpi_isend, with threads.  A buffered send is complete, and pml/cm would say so without a look at other threads. */
static __opal_attribute_noinline__ int queue_locked(struct mtl_qnix_request *r, mca_pml_base_send_mode_t mode)
{
	struct ompi_request_t *request = r->super.ompi_req;
	int err;

	opal_mutex_lock(&mtl_qnix.ends);
	err = cmpi_isend(mtl_qnix.matched.cmpi, &r->cmpi);
	if (OPAL_LIKELY(err == CMPI_OK)) {
		if (mode == MCA_PML_BASE_SEND_BUFFERED && !REQUEST_COMPLETE(request)) {
			request->req_status.MPI_ERROR = MPI_SUCCESS;
			ompi_request_complete(request, true);
		}
		if (request->req_free != free_ended) {
			mtl_qnix.pml_free = request->req_free; /* the same of all sends */
			request->req_free = free_ended;
		}
		if (request->req_persistent && request->req_start != start_ended) {
			mtl_qnix.pml_start = request->req_start;
			request->req_start = start_ended;
		}
	}
	opal_mutex_unlock(&mtl_qnix.ends);
	return err;
}

static __opal_attribute_noinline__ void add_bound(struct cmpi_req *req, const struct opal_convertor_t *convertor, const void *packed)
{
	if (!packed && req->size)
		req->buf = (char *)req->buf + convertor->pDesc->true_lb;
}

/* It did not leave at once. */
static __opal_attribute_noinline__ int queue(struct mtl_qnix_request *r, const struct cmpi_req *req, mca_pml_base_send_mode_t mode)
{
	int err;

	r->cmpi = *req;
	r->cmpi.done = sent;
	err = opal_using_threads() ? queue_locked(r, mode) : cmpi_isend(mtl_qnix.matched.cmpi, &r->cmpi);
	if (OPAL_LIKELY(err == CMPI_OK))
		return OMPI_SUCCESS;
	if (r->packed)
		free(r->packed);
	qnix_matched_failed(&mtl_qnix.matched, &r->cmpi, err);
	return qnix_ompi_err(err);
}

/* A window of sends wants few cache lines of its requests: what leaves at once leaves from here. */
int mtl_qnix_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                   struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                   mca_mtl_request_t *request)
{
	struct mtl_qnix_request *r = (struct mtl_qnix_request *)request;
	struct cmpi_req req;
	int err = prepare(&req, comm, dest, tag, convertor, mode, &r->packed);

	(void)mtl, (void)blocking;
	if (OPAL_UNLIKELY(err != OMPI_SUCCESS))
		return err;
	if (OPAL_UNLIKELY(mtl_qnix_lacks_bound(request)))
		add_bound(&req, convertor, r->packed);
	err = qnix_matched_send(&mtl_qnix.matched, &req);
	if (OPAL_UNLIKELY(err != CMPI_OK))
		return queue(r, &req, mode);
	end(r, CMPI_OK, false);
	return OMPI_SUCCESS;
}

/* Completion says whether it was in time.  C-MPI may never have seen the request of a send that is over. */
int mtl_qnix_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *request, int flag)
{
	(void)mtl, (void)flag;
	if (!REQUEST_COMPLETE(request->ompi_req))
		cmpi_cancel(mtl_qnix.matched.cmpi, &((struct mtl_qnix_request *)request)->cmpi);
	return OMPI_SUCCESS;
}
