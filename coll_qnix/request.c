/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of non-blocking collectives.  A request that came before its communicator had a group, and then was left to the
 * next component, carries that component's request, and ends with it.
 */
#include "coll_qnix/coll_qnix.h"

#include "opal/runtime/opal_progress.h"

enum { PASSES = 1000 /* without a request until opal_progress comes by no more */ };

static int request_free(ompi_request_t **request)
{
	struct coll_qnix_request *r = (struct coll_qnix_request *)*request;

	if (!REQUEST_COMPLETE(&r->super))
		return MPI_ERR_REQUEST;
	OMPI_REQUEST_FINI(&r->super);
	opal_free_list_return(&coll_qnix.free, &r->super.super);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

static int request_cancel(ompi_request_t *request, int complete)
{
	(void)request;
	(void)complete;
	return MPI_ERR_REQUEST;
}

static void construct(coll_qnix_request_t *r)
{
	r->super.req_type = OMPI_REQUEST_COLL;
	r->super.req_status._cancelled = 0;
	r->super.req_free = request_free;
	r->super.req_cancel = request_cancel;
}

#ifdef QNIX_OMPI_NBC_REQUEST /* configure has found it */
OMPI_DECLSPEC OBJ_CLASS_DECLARATION(ompi_coll_base_nbc_request_t);
OBJ_CLASS_INSTANCE(coll_qnix_request_t, ompi_coll_base_nbc_request_t, construct, NULL);
#else
OBJ_CLASS_INSTANCE(coll_qnix_request_t, ompi_request_t, construct, NULL);
#endif

bool coll_qnix_request_fits(void)
{
	return coll_qnix_request_t_class.cls_parent->cls_sizeof <= offsetof(coll_qnix_request_t, op);
}

/* ---- polling ------------------------------------------------------------------------------------------------------------------- */

static int requests_progress(void);

/* Under the lock of polling. */
static void poll(bool wanted)
{
	if (coll_qnix.polled == wanted)
		return;
	coll_qnix.polled = wanted;
	if (wanted)
		opal_progress_register(requests_progress);
	else
		opal_progress_unregister(requests_progress);
}

/*
 * While a request is not complete, opal_progress comes by, and for some passes longer: to begin and to end that takes longer than a
 * call that starts a collective has.
 */
static int requests_progress(void)
{
	if (OPAL_LIKELY(atomic_load_explicit(&coll_qnix.requests, memory_order_relaxed) > 0)) /* relaxed: a number */
		return coll_qnix_progress();
	OPAL_THREAD_LOCK(&coll_qnix.poll_lock);
	if (++coll_qnix.passes > PASSES && !coll_qnix.requests)
		poll(false);
	OPAL_THREAD_UNLOCK(&coll_qnix.poll_lock);
	return 0;
}

static void poll_for(int change)
{
	OPAL_THREAD_LOCK(&coll_qnix.poll_lock);
	/* Relaxed: a number. */
	atomic_store_explicit(&coll_qnix.requests, atomic_load_explicit(&coll_qnix.requests, memory_order_relaxed) + change, memory_order_relaxed);
	coll_qnix.passes = 0;
	if (change > 0)
		poll(true);
	OPAL_THREAD_UNLOCK(&coll_qnix.poll_lock);
}

void coll_qnix_poll_no_more(void)
{
	OPAL_THREAD_LOCK(&coll_qnix.poll_lock);
	poll(false);
	OPAL_THREAD_UNLOCK(&coll_qnix.poll_lock);
}

/* ---- requests ------------------------------------------------------------------------------------------------------------------ */

struct coll_qnix_request *coll_qnix_request_new(struct coll_qnix_module *m)
{
	struct coll_qnix_request *r = (struct coll_qnix_request *)opal_free_list_get(&coll_qnix.free);

	if (!r)
		return NULL;
	OMPI_REQUEST_INIT(&r->super, false);
	r->super.req_state = OMPI_REQUEST_ACTIVE;
	r->super.req_mpi_object.comm = m->comm;
	r->super.req_status = (ompi_status_public_t){ .MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG };
	r->super.req_complete_cb = NULL;
	r->op = (struct coll_qnix_op){ .module = m, .request = r };
	r->other = NULL;
	r->chain = NULL;
	OBJ_RETAIN(m); /* the communicator may be freed before it is complete */
	poll_for(1);
	return r;
}

void coll_qnix_complete(struct coll_qnix_request *r)
{
	struct coll_qnix_module *m = r->op.module;

	poll_for(-1);
	r->super.req_status.MPI_ERROR = r->op.err == OMPI_SUCCESS || r->op.err == MPI_ERR_TRUNCATE ? r->op.err : MPI_ERR_OTHER;
	ompi_request_complete(&r->super, true);
	OBJ_RELEASE(m);
}

/* The lock is held. */
void coll_qnix_hand_on(struct coll_qnix_request *r)
{
	struct coll_qnix_module *m = r->op.module;
	struct coll_qnix_data *d = &r->op.data;
	int rc;

	if (r->op.barrier) {
		rc = m->ibarrier(m->comm, &r->other, m->ibarrier_module);
	} else {
		coll_qnix_data_close(d, true, false);
		rc = m->ibcast(d->user, d->count, d->type, r->op.root, m->comm, &r->other, m->ibcast_module);
	}
	if (rc != OMPI_SUCCESS) {
		r->op.err = rc;
		coll_qnix_complete(r);
		return;
	}
	r->chain = coll_qnix.others;
	coll_qnix.others = r;
}

int coll_qnix_look_at_others(void)
{
	struct coll_qnix_request *ended = NULL, *r;
	int n = 0;

	OPAL_THREAD_LOCK(&coll_qnix.lock);
	for (struct coll_qnix_request **at = &coll_qnix.others; (r = *at) != NULL;) {
		if (!REQUEST_COMPLETE(r->other)) {
			at = &r->chain;
			continue;
		}
		*at = r->chain;
		r->chain = ended;
		ended = r;
	}
	OPAL_THREAD_UNLOCK(&coll_qnix.lock);
	for (; (r = ended) != NULL; n++) {
		ended = r->chain;
		r->op.err = r->other->req_status.MPI_ERROR;
		ompi_request_free(&r->other);
		coll_qnix_complete(r);
	}
	return n;
}
