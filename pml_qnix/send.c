/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages out.  Data in pieces is packed first (by Open MPI, which knows the layouts, into memory that is allocated, which is
 * why this file is not called hot).
 */
#include "pml_qnix/pml_qnix.h"

#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"

/* What a packed message has behind it: memory of the C library, or of the buffer of MPI_Buffer_attach. */
static void release(void *packed, bool buffered)
{
	if (buffered)
		mca_pml_base_bsend_request_free(packed);
	else
		free(packed);
}

/* *packed: to be released.  Returns an error of Open MPI. */
static __opal_attribute_noinline__ int pack(struct cmpi_req *req, const void *data, size_t count, struct ompi_datatype_t *type,
                                            void **packed)
{
	struct opal_convertor_t convertor;
	struct iovec iov;
	uint32_t pieces = 1;
	size_t size = count * type->super.size;

	*packed = malloc(size ? size : 1);
	if (!*packed)
		return OMPI_ERR_OUT_OF_RESOURCE;
	req->buf = iov.iov_base = *packed;
	req->size = iov.iov_len = size;
	if (!size)
		return OMPI_SUCCESS;
	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, data, 0, &convertor);
	opal_convertor_pack(&convertor, &iov, &pieces, &size);
	opal_convertor_cleanup(&convertor);
	OBJ_DESTRUCT(&convertor);
	return OMPI_SUCCESS;
}

/* Everything of the request but `done`. */
static inline int prepare(struct cmpi_req *req, const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag,
                          mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, void **packed)
{
	*packed = NULL;
	req->to = qnix_matched_to(&pml_qnix.matched, comm, to);
	if (OPAL_UNLIKELY(!req->to))
		return OMPI_ERR_UNREACH;
	req->comm = &qnix_comm(comm)->cmpi;
	req->tag = tag;
	req->mode = qnix_mode(mode);
	if (OPAL_UNLIKELY(!pml_qnix_in_one_piece(type, count)))
		return pack(req, data, count, type, packed);
	req->buf = (char *)data + type->super.true_lb;
	req->size = count * type->super.size;
	return OMPI_SUCCESS;
}

/* The quick way: of one piece, to somebody known, and it has left. */
static inline bool left(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                        struct ompi_communicator_t *comm)
{
	struct qnix_comm *c = qnix_comm(comm);

	if (OPAL_UNLIKELY(!c->to[to] || !pml_qnix_in_one_piece(type, count) || mode == MCA_PML_BASE_SEND_SYNCHRONOUS))
		return false;
	return cmpi_send(pml_qnix.matched.cmpi, c->to[to], (const char *)data + type->super.true_lb, count * type->super.size, tag, &c->cmpi) == CMPI_OK;
}

/* What does not leave at once in buffered mode goes into the buffer of MPI_Buffer_attach, and is sent from there.  Nothing needs no room. */
static __opal_attribute_noinline__ int into_buffer(struct cmpi_req *req, void **packed)
{
	void *place = req->size ? mca_pml_base_bsend_request_alloc_buf(req->size) : NULL;

	if (place)
		memcpy(place, req->buf, req->size);
	free(*packed);
	*packed = req->buf = place;
	return place || !req->size ? OMPI_SUCCESS : OMPI_ERR_BUFFER;
}

/* ---- not blocking ------------------------------------------------------------------------------------------------------ */

static void sent(struct cmpi_req *req)
{
	struct pml_qnix_request *r = pml_qnix_request_of(req);
	ompi_status_public_t *status = &r->super.req_status;

	if (OPAL_UNLIKELY(req->status.err != CMPI_OK))
		qnix_matched_failed(&pml_qnix.matched, req, req->status.err);
	if (OPAL_UNLIKELY(r->packed != NULL))
		release(r->packed, r->buffered);
	r->packed = NULL;
	status->MPI_ERROR = qnix_mpi_err(req->status.err);
	status->_cancelled = req->status.cancelled;
	status->_ucount = req->size;
	pml_qnix_request_end(r);
}

/* MPI says nothing of a send's; osc/pt2pt looks at the tag when it is told of the end. */
static void envelope(struct pml_qnix_request *r)
{
	r->super.req_status.MPI_SOURCE = r->super.req_mpi_object.comm->c_my_rank;
	r->super.req_status.MPI_TAG = r->cmpi.tag;
}

/* It did not leave at once. */
static __opal_attribute_noinline__ int queue(struct pml_qnix_request *r, void *packed, bool buffered)
{
	int err;

	r->packed = packed;
	r->buffered = buffered;
	r->cmpi.done = sent;
	envelope(r);
	err = cmpi_isend(pml_qnix.matched.cmpi, &r->cmpi);
	if (OPAL_LIKELY(err == CMPI_OK))
		return OMPI_SUCCESS;
	if (packed)
		release(packed, buffered);
	r->packed = NULL;
	qnix_matched_failed(&pml_qnix.matched, &r->cmpi, err);
	return qnix_ompi_err(err);
}

static __opal_attribute_noinline__ int queue_new(struct cmpi_req *req, struct ompi_communicator_t *comm, void *packed, bool buffered,
                                                 struct ompi_request_t **request)
{
	int rc = buffered ? into_buffer(req, &packed) : OMPI_SUCCESS;
	struct pml_qnix_request *r;

	if (rc != OMPI_SUCCESS)
		return rc;
	r = pml_qnix_request_new(comm);
	if (!r) {
		if (packed)
			release(packed, buffered);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	r->cmpi.comm = req->comm;
	r->cmpi.to = req->to;
	r->cmpi.buf = req->buf;
	r->cmpi.size = req->size;
	r->cmpi.tag = req->tag;
	r->cmpi.mode = req->mode;
	*request = &r->super;
	rc = queue(r, packed, buffered);
	if (rc != OMPI_SUCCESS) {
		atomic_store_explicit(&r->over, PML_QNIX_ENDED, memory_order_relaxed); /* C-MPI has not taken it */
		ompi_request_free(request);
	}
	return rc;
}

static __opal_attribute_noinline__ int isend(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag,
                                             mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	bool buffered = mode == MCA_PML_BASE_SEND_BUFFERED;
	struct cmpi_req req;
	void *packed;
	int err = prepare(&req, data, count, type, to, tag, mode, comm, &packed);

	if (err != OMPI_SUCCESS)
		return err;
	*request = &ompi_request_empty;
	if (qnix_matched_send(&pml_qnix.matched, &req) == CMPI_OK) {
		free(packed);
		return OMPI_SUCCESS;
	}
	err = queue_new(&req, comm, packed, buffered, request);
	if (err != OMPI_SUCCESS || !buffered)
		return err;
	/* The data are in the buffer: the send is over, and who carries it on is nobody's. */
	ompi_request_free(request);
	*request = &ompi_request_empty;
	return OMPI_SUCCESS;
}

int pml_qnix_isend(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                   struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	if (OPAL_UNLIKELY(!left(data, count, type, to, tag, mode, comm)))
		return isend(data, count, type, to, tag, mode, comm, request);
	*request = &ompi_request_empty;
	return OMPI_SUCCESS;
}

/* ---- blocking --------------------------------------------------------------------------------------------------------- */

static __opal_attribute_noinline__ int send_and_wait(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag,
                                                     mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
	struct ompi_request_t *request;
	int rc = isend(data, count, type, to, tag, mode, comm, &request);

	if (rc != OMPI_SUCCESS || request == &ompi_request_empty)
		return rc;
	ompi_request_wait_completion(request);
	rc = request->req_status.MPI_ERROR;
	ompi_request_free(&request);
	return rc;
}

int pml_qnix_send(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                  struct ompi_communicator_t *comm)
{
	if (OPAL_UNLIKELY(!left(data, count, type, to, tag, mode, comm)))
		return send_and_wait(data, count, type, to, tag, mode, comm);
	return OMPI_SUCCESS;
}

/* ---- persistent -------------------------------------------------------------------------------------------------------- */

int pml_qnix_send_again(struct pml_qnix_request *r)
{
	struct ompi_communicator_t *comm = r->super.req_mpi_object.comm;
	struct ompi_request_t *other;
	void *packed;
	int rc;

	envelope(r);
	if (r->mode == MCA_PML_BASE_SEND_BUFFERED) {
		rc = pml_qnix_isend(r->data, r->count, r->type, r->peer, r->cmpi.tag, r->mode, comm, &other);
	} else {
		rc = prepare(&r->cmpi, r->data, r->count, r->type, r->peer, r->cmpi.tag, r->mode, comm, &packed);
		if (rc == OMPI_SUCCESS && qnix_matched_send(&pml_qnix.matched, &r->cmpi) != CMPI_OK)
			return queue(r, packed, false);
		free(packed);
	}
	if (rc != OMPI_SUCCESS)
		return rc;
	r->super.req_status._cancelled = 0;
	pml_qnix_request_end(r);
	return OMPI_SUCCESS;
}

int pml_qnix_isend_init(const void *data, size_t count, struct ompi_datatype_t *type, int to, int tag, mca_pml_base_send_mode_t mode,
                        struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	struct pml_qnix_request *r = pml_qnix_request_inactive(comm, data, count, type, to, tag);

	if (!r)
		return OMPI_ERR_OUT_OF_RESOURCE;
	r->sends = true;
	r->mode = mode;
	*request = &r->super;
	return OMPI_SUCCESS;
}
