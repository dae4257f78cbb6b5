/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's matching transport layer over C-MPI: what the files of this component share.
 *
 * Glue between ompi/mca/mtl/mtl.h above and cmpi/cmpi.h below: a call of Open MPI is a request of C-MPI, and the end of that
 * the end of Open MPI's.  No queue and no protocol here.  It shares the NIC of the process with the BTL, which Open MPI uses
 * beside it for one-sided communication (btl_qnix/common.h).
 *
 *      component.c  life cycle, settings, processes, communicators
 *      send.c       messages out (hot)       recv.c  messages in, probes, progress (hot)
 */
#ifndef MTL_QNIX_H
#define MTL_QNIX_H

#include "btl_qnix/matched.h"

#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/mtl/base/mtl_base_datatype.h"
#include "ompi/mca/mtl/mtl.h"

/* What differs between Open MPI 4 and 5, besides btl_qnix/matched.h. */
#if BTL_VERSION >= 330
#define MTL_QNIX_INIT_MORE , bool *accelerators /* out: their memory can be sent from */
#define MTL_QNIX_INIT_ANSWER() (*accelerators = false)

static inline bool mtl_qnix_lacks_bound(const struct mca_mtl_request_t *request)
{
	(void)request;
	return false;
}
#else
#define MTL_QNIX_INIT_MORE
#define MTL_QNIX_INIT_ANSWER() ((void)0)

/*
 * pml/cm lets the convertors of its own short ways begin where the data begin; that of a persistent request begins where the
 * user's buffer does, which ompi_mtl_datatype_pack does not know of.
 */
static inline bool mtl_qnix_lacks_bound(const struct mca_mtl_request_t *request)
{
	return request->ompi_req->req_persistent;
}
#endif

/* Behind each request of pml/cm. */
struct mtl_qnix_request {
	struct mca_mtl_request_t super; /* first */
	/* Beside it, because a window of requests has to fit the first-level cache. */
	void *packed;                   /* of data in pieces; NULL: none */
	struct opal_convertor_t *convertor; /* of a receive of data in pieces */
	struct cmpi_req cmpi;           /* a send that leaves at once does without */
};

struct mtl_qnix_module {
	struct mca_mtl_base_module_t super; /* first */
	struct qnix_matched matched;
	int priority;
	opal_recursive_mutex_t ends;        /* of sends, where there are threads: send.c */
	ompi_request_free_fn_t pml_free;    /* pml/cm's own, for sends; under that lock */
	ompi_request_start_fn_t pml_start;
};
extern struct mtl_qnix_module mtl_qnix;
extern mca_mtl_base_component_2_0_0_t mca_mtl_qnix_component;

/* See qnix_tell. */
#define mtl_qnix_tell(level, topic, ...) qnix_tell(QNIX_MTL, level, topic, __VA_ARGS__)

/* send.c */
int mtl_qnix_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                  struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode);
int mtl_qnix_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                   struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                   mca_mtl_request_t *request);
int mtl_qnix_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *request, int flag);

/* recv.c */
int mtl_qnix_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag,
                   struct opal_convertor_t *convertor, mca_mtl_request_t *request);
int mtl_qnix_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag, int *flag,
                    struct ompi_status_public_t *status);
int mtl_qnix_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag, int *matched,
                     struct ompi_message_t **message, struct ompi_status_public_t *status);
int mtl_qnix_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor, struct ompi_message_t **message,
                    mca_mtl_request_t *request);
int mtl_qnix_progress(void);

static inline struct mtl_qnix_request *mtl_qnix_request_of(struct cmpi_req *req)
{
	return (struct mtl_qnix_request *)((char *)req - offsetof(struct mtl_qnix_request, cmpi));
}

/* The convertor of a persistent request is still at its end when it starts again, and pml/cm leaves it there. */
static inline void mtl_qnix_rewind(struct opal_convertor_t *convertor)
{
	size_t start = 0;

	if (OPAL_UNLIKELY((convertor->flags & CONVERTOR_COMPLETED) && convertor->local_size))
		opal_convertor_set_position(convertor, &start);
}

#endif
