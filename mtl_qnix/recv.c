/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in: receives, probes, and the progress call.  A receive of data in pieces gets its message in one piece first,
 * and is unpacked at its end.
 */
#include "mtl_qnix/mtl_qnix.h"

static void unpack(struct mtl_qnix_request *r, size_t bytes)
{
	if (bytes)
		ompi_mtl_datatype_unpack(r->convertor, r->packed, bytes); /* frees it */
	else
		free(r->packed);
}

/* Cancelled, failed, cut, or to be unpacked: how many bytes there are. */
static __opal_attribute_noinline__ size_t unusual(struct mtl_qnix_request *r)
{
	const struct cmpi_req *req = &r->cmpi;
	size_t bytes = qnix_matched_bytes(req);

	if (r->packed)
		unpack(r, bytes);
	qnix_matched_failed(&mtl_qnix.matched, req, req->status.err);
	return bytes;
}

static void received(struct cmpi_req *req)
{
	struct mtl_qnix_request *r = mtl_qnix_request_of(req);
	struct ompi_status_public_t *status = &r->super.ompi_req->req_status;

	if (OPAL_UNLIKELY(r->packed != NULL || req->status.cancelled || req->status.err != CMPI_OK))
		qnix_matched_got(req, unusual(r), status);
	else
		qnix_matched_got_all(req, status);
	r->super.completion_callback(&r->super);
}

/* Where the message goes. */
static int prepare(struct mtl_qnix_request *r, struct opal_convertor_t *convertor)
{
	bool in_pieces;
	size_t size;
	int rc;

	mtl_qnix_rewind(convertor);
	rc = ompi_mtl_datatype_recv_buf(convertor, &r->cmpi.buf, &size, &in_pieces);
	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS || (in_pieces && !r->cmpi.buf)))
		return OMPI_ERR_OUT_OF_RESOURCE;
	r->packed = NULL;
	if (OPAL_UNLIKELY(in_pieces)) {
		r->packed = r->cmpi.buf;
		r->convertor = convertor;
	}
	r->cmpi.size = size;
	r->cmpi.to = NULL;
	r->cmpi.done = received;
	return OMPI_SUCCESS;
}

static int started(struct mtl_qnix_request *r, int err)
{
	if (OPAL_UNLIKELY(err != CMPI_OK))
		free(r->packed);
	return qnix_ompi_err(err);
}

int mtl_qnix_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag,
                   struct opal_convertor_t *convertor, mca_mtl_request_t *request)
{
	struct mtl_qnix_request *r = (struct mtl_qnix_request *)request;
	int rc = prepare(r, convertor);

	(void)mtl;
	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
		return rc;
	r->cmpi.comm = &qnix_comm(comm)->cmpi;
	r->cmpi.source = source;
	r->cmpi.tag = tag;
	return started(r, cmpi_irecv(mtl_qnix.matched.cmpi, &r->cmpi));
}

/* ---- probes ------------------------------------------------------------------------------------------------------------ */

int mtl_qnix_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag, int *flag,
                    struct ompi_status_public_t *status)
{
	(void)mtl;
	qnix_matched_iprobe(&mtl_qnix.matched, comm, source, tag, flag, status);
	return OMPI_SUCCESS;
}

int mtl_qnix_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag, int *matched,
                     struct ompi_message_t **message, struct ompi_status_public_t *status)
{
	(void)mtl;
	return qnix_matched_improbe(&mtl_qnix.matched, comm, source, tag, matched, message, status);
}

int mtl_qnix_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor, struct ompi_message_t **message,
                    mca_mtl_request_t *request)
{
	struct mtl_qnix_request *r = (struct mtl_qnix_request *)request;
	struct ompi_communicator_t *comm;
	struct cmpi_message *m;
	int rc = prepare(r, convertor);

	(void)mtl;
	if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
		return rc;
	m = qnix_matched_message(message, &comm);
	r->cmpi.comm = &qnix_comm(comm)->cmpi;
	return started(r, cmpi_imrecv(mtl_qnix.matched.cmpi, m, &r->cmpi));
}

int mtl_qnix_progress(void)
{
	return cmpi_progress(mtl_qnix.matched.cmpi);
}
