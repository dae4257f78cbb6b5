/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in: receives and probes.  A receive of data in pieces gets its message in one piece first, and is unpacked at its end. */
#include "pml_qnix/pml_qnix.h"

#include "ompi/message/message.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"

enum { LOOKS = 16 }; /* passes of C-MPI alone, 4 to 8 us in all if nothing comes, for each time that all of Open MPI makes progress */

static void unpack(const struct pml_qnix_request *r, size_t bytes)
{
	struct opal_convertor_t convertor;
	struct iovec iov = { .iov_base = r->packed, .iov_len = bytes };
	uint32_t pieces = 1;

	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &r->type->super, r->count, r->data, 0, &convertor);
	opal_convertor_unpack(&convertor, &iov, &pieces, &bytes);
	opal_convertor_cleanup(&convertor);
	OBJ_DESTRUCT(&convertor);
}

/* Cancelled, failed, cut, or to be unpacked: how many bytes there are. */
static __opal_attribute_noinline__ size_t unusual(struct pml_qnix_request *r)
{
	const struct cmpi_req *req = &r->cmpi;
	size_t bytes = qnix_matched_bytes(req);

	if (r->packed && bytes)
		unpack(r, bytes);
	free(r->packed);
	r->packed = NULL;
	qnix_matched_failed(&pml_qnix.matched, req, req->status.err);
	return bytes;
}

static void received(struct cmpi_req *req)
{
	struct pml_qnix_request *r = pml_qnix_request_of(req);
	struct ompi_status_public_t *status = &r->super.req_status;

	if (OPAL_UNLIKELY(r->packed != NULL || req->status.cancelled || req->status.err != CMPI_OK))
		qnix_matched_got(req, unusual(r), status);
	else
		qnix_matched_got_all(req, status);
	pml_qnix_request_end(r);
}

/* Memory for data in pieces, which the datatype is needed for at the end. */
static __opal_attribute_noinline__ int allocate(struct pml_qnix_request *r, void *data, size_t count, struct ompi_datatype_t *type)
{
	r->cmpi.size = count * type->super.size;
	r->packed = malloc(r->cmpi.size ? r->cmpi.size : 1);
	if (!r->packed)
		return OMPI_ERR_OUT_OF_RESOURCE;
	r->cmpi.buf = r->packed;
	r->data = data;
	r->count = count;
	if (!r->type) {
		r->type = type;
		OMPI_DATATYPE_RETAIN(type);
	}
	return OMPI_SUCCESS;
}

/* Where the message goes. */
static inline int prepare(struct pml_qnix_request *r, void *data, size_t count, struct ompi_datatype_t *type)
{
	r->cmpi.to = NULL;
	r->cmpi.done = received;
	if (OPAL_UNLIKELY(!pml_qnix_in_one_piece(type, count)))
		return allocate(r, data, count, type);
	r->cmpi.buf = (char *)data + type->super.true_lb;
	r->cmpi.size = count * type->super.size;
	return OMPI_SUCCESS;
}

/* A request that C-MPI has not taken. */
static __opal_attribute_noinline__ int drop(struct pml_qnix_request *r, int rc)
{
	struct ompi_request_t *request = &r->super;

	free(r->packed);
	r->packed = NULL;
	atomic_store_explicit(&r->over, PML_QNIX_ENDED, memory_order_relaxed); /* nobody else knows it yet */
	ompi_request_free(&request);
	return rc;
}

int pml_qnix_irecv(void *data, size_t count, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
                   struct ompi_request_t **request)
{
	struct pml_qnix_request *r = pml_qnix_request_new(comm);
	int err;

	if (OPAL_UNLIKELY(!r))
		return OMPI_ERR_OUT_OF_RESOURCE;
	*request = &r->super;
	r->cmpi.comm = &qnix_comm(comm)->cmpi;
	r->cmpi.source = from;
	r->cmpi.tag = tag;
	err = prepare(r, data, count, type);
	if (OPAL_UNLIKELY(err != OMPI_SUCCESS))
		return drop(r, err);
	err = cmpi_irecv(pml_qnix.matched.cmpi, &r->cmpi);
	return OPAL_LIKELY(err == CMPI_OK) ? OMPI_SUCCESS : drop(r, qnix_ompi_err(err));
}

int pml_qnix_imrecv(void *data, size_t count, struct ompi_datatype_t *type, struct ompi_message_t **message,
                    struct ompi_request_t **request)
{
	struct ompi_communicator_t *comm = (*message)->comm;
	struct pml_qnix_request *r = pml_qnix_request_new(comm);
	int err;

	if (!r)
		return OMPI_ERR_OUT_OF_RESOURCE;
	r->cmpi.comm = &qnix_comm(comm)->cmpi;
	err = prepare(r, data, count, type);
	if (err != OMPI_SUCCESS)
		return drop(r, err);
	*request = &r->super;
	err = cmpi_imrecv(pml_qnix.matched.cmpi, qnix_matched_message(message, &comm), &r->cmpi);
	return err == CMPI_OK ? OMPI_SUCCESS : drop(r, qnix_ompi_err(err));
}

/* ---- blocking --------------------------------------------------------------------------------------------------------- */

static void tell(ompi_status_public_t *to, int source, int tag, size_t bytes, bool cancelled)
{
	if (to == MPI_STATUS_IGNORE)
		return;
	to->MPI_SOURCE = source;
	to->MPI_TAG = tag;
	to->_ucount = bytes;
	to->_cancelled = cancelled;
}

static int wait_for(struct ompi_request_t *request, ompi_status_public_t *status)
{
	const ompi_status_public_t *got = &request->req_status;
	int rc;

	ompi_request_wait_completion(request);
	rc = got->MPI_ERROR;
	tell(status, got->MPI_SOURCE, got->MPI_TAG, got->_ucount, got->_cancelled);
	ompi_request_free(&request);
	return rc;
}

/*
 * Waiting for the NIC is looking at it; now and then everything else in the process has its turn, and at once where a look may rest, or has found
 * something, which may be what something else waits for.
 */
static inline void await(struct cmpi_proc *from, struct cmpi_req *req)
{
	while (!cmpi_is_done(req)) {
		int looks = opal_progress_yield_when_idle || cmpi_crowded(pml_qnix.matched.cmpi) ? 0 : LOOKS;
		int found = 0;

		while (looks-- && !found) {
			found = cmpi_progress_for(pml_qnix.matched.cmpi, from, req);
			if (cmpi_is_done(req))
				return;
		}
		opal_progress();
	}
}

int pml_qnix_recv(void *data, size_t count, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
                  ompi_status_public_t *status)
{
	struct ompi_request_t *request;
	struct cmpi_req req;
	int err;

	if (OPAL_UNLIKELY(opal_using_threads() || !pml_qnix_in_one_piece(type, count))) {
		err = pml_qnix_irecv(data, count, type, from, tag, comm, &request);
		return err == OMPI_SUCCESS ? wait_for(request, status) : err;
	}
	req.done = NULL;
	req.comm = &qnix_comm(comm)->cmpi;
	req.to = NULL;
	req.buf = (char *)data + type->super.true_lb;
	req.size = count * type->super.size;
	req.source = from;
	req.tag = tag;
	err = cmpi_irecv(pml_qnix.matched.cmpi, &req);
	if (OPAL_UNLIKELY(err != CMPI_OK))
		return qnix_ompi_err(err);
	await(from >= 0 ? qnix_comm(comm)->to[from] : NULL, &req);
	if (OPAL_UNLIKELY(req.status.err != CMPI_OK))
		qnix_matched_failed(&pml_qnix.matched, &req, req.status.err);
	tell(status, req.status.source, req.status.tag, qnix_matched_bytes(&req), false);
	return qnix_mpi_err(req.status.err);
}

int pml_qnix_mrecv(void *data, size_t count, struct ompi_datatype_t *type, struct ompi_message_t **message, ompi_status_public_t *status)
{
	struct ompi_request_t *request;
	int rc = pml_qnix_imrecv(data, count, type, message, &request);

	return rc == OMPI_SUCCESS ? wait_for(request, status) : rc;
}

/* ---- persistent -------------------------------------------------------------------------------------------------------- */

int pml_qnix_recv_again(struct pml_qnix_request *r)
{
	int err = prepare(r, r->data, r->count, r->type);

	if (err != OMPI_SUCCESS)
		return err;
	r->cmpi.comm = &qnix_comm(r->super.req_mpi_object.comm)->cmpi;
	r->cmpi.source = r->peer;
	err = cmpi_irecv(pml_qnix.matched.cmpi, &r->cmpi);
	if (OPAL_LIKELY(err == CMPI_OK))
		return OMPI_SUCCESS;
	free(r->packed);
	r->packed = NULL;
	return qnix_ompi_err(err);
}

int pml_qnix_irecv_init(void *data, size_t count, struct ompi_datatype_t *type, int from, int tag, struct ompi_communicator_t *comm,
                        struct ompi_request_t **request)
{
	struct pml_qnix_request *r = pml_qnix_request_inactive(comm, data, count, type, from, tag);

	if (!r)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*request = &r->super;
	return OMPI_SUCCESS;
}

/* ---- probes ------------------------------------------------------------------------------------------------------------ */

int pml_qnix_iprobe(int from, int tag, struct ompi_communicator_t *comm, int *found, ompi_status_public_t *status)
{
	qnix_matched_iprobe(&pml_qnix.matched, comm, from, tag, found, status);
	return OMPI_SUCCESS;
}

int pml_qnix_probe(int from, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
	int found = 0;

	while (!found)
		qnix_matched_iprobe(&pml_qnix.matched, comm, from, tag, &found, status);
	return OMPI_SUCCESS;
}

int pml_qnix_improbe(int from, int tag, struct ompi_communicator_t *comm, int *found, struct ompi_message_t **message,
                     ompi_status_public_t *status)
{
	return qnix_matched_improbe(&pml_qnix.matched, comm, from, tag, found, message, status);
}

int pml_qnix_mprobe(int from, int tag, struct ompi_communicator_t *comm, struct ompi_message_t **message, ompi_status_public_t *status)
{
	int found = 0, rc = OMPI_SUCCESS;

	while (!found && rc == OMPI_SUCCESS)
		rc = qnix_matched_improbe(&pml_qnix.matched, comm, from, tag, &found, message, status);
	return rc;
}
