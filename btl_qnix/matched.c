/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes, communicators, probes.  Open MPI adds all processes of the job at start, and those of another job when the two are
 * connected (spawn, connect and accept); a communicator looks up its ranks when they are first spoken to.
 */
#include "btl_qnix/common.h"

#ifdef QNIX_HAVE_MTL

#include "btl_qnix/matched.h"

#include <stdio.h>

#include "ompi/message/message.h"
#include "opal/runtime/opal_progress.h"

OBJ_CLASS_INSTANCE(qnix_peer_t, opal_list_item_t, NULL, NULL);

/* ---- the NIC ---------------------------------------------------------------------------------------------------------- */

/* A process died, or the whole device failed (proc NULL).  MPI cannot go on without it. */
static void lost(void *arg, struct cmpi_proc *proc, int err, const char *text);

void qnix_matched_init(struct qnix_matched *m)
{
	OBJ_CONSTRUCT(&m->lock, opal_mutex_t);
	OBJ_CONSTRUCT(&m->peers, opal_list_t);
	atomic_store_explicit(&m->closing, false, memory_order_relaxed); /* one thread so far */
}

void qnix_matched_fini(struct qnix_matched *m)
{
	OBJ_DESTRUCT(&m->peers);
	OBJ_DESTRUCT(&m->lock);
}

static int publish_address(struct qnix_matched *m)
{
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;
	int rc = cmpi_address(m->cmpi, blob, &len);

	if (rc != CMPI_OK)
		return qnix_ompi_err(rc);
	OPAL_MODEX_SEND(rc, BTL_QNIX_MODEX_GLOBAL, m->component, blob, len);
	return rc;
}

bool qnix_matched_open(struct qnix_matched *m, bool threads)
{
	if (qnix_nic_open(threads, NULL, lost, m, &m->cmpi) != CMPI_OK) {
		m->cmpi = NULL;
		qnix_tell(m->who, 0, "matched-no-nic", "the NIC could not be opened: %s", cmpi_last_error());
		return false;
	}
	if (publish_address(m) != OMPI_SUCCESS) {
		qnix_tell(m->who, 0, "matched-no-nic", "the address of the NIC could not be published to the other processes");
		cmpi_unshare(m->cmpi, m);
		m->cmpi = NULL;
		return false;
	}
	qnix_pvar_register(m->who, m->component, &m->cmpi);
	qnix_mpool_enter(m->who, m->cmpi);
	return true;
}

void qnix_matched_close(struct qnix_matched *m)
{
	opal_list_item_t *item;

	atomic_store_explicit(&m->closing, true, memory_order_relaxed);
	qnix_poll_leave(m->who);
	qnix_mpool_leave(m->who);
	cmpi_unshare(m->cmpi, m);
	m->cmpi = NULL;
	while ((item = opal_list_remove_first(&m->peers)))
		OBJ_RELEASE(item);
}

/* ---- processes -------------------------------------------------------------------------------------------------------- */

static void decline(struct qnix_matched *m, const struct ompi_proc_t *proc, const char *why)
{
	char name[QNIX_NAME_MAX];

	qnix_tell(m->who, 0, "matched-unreachable", "%s on host %s is not reached through the NIC: %s",
	          qnix_name_text(&proc->super.proc_name, name), opal_get_proc_hostname(&proc->super), why);
}

/* The process of C-MPI behind an Open MPI process, by the address it published. */
static int get(struct qnix_matched *m, struct ompi_proc_t *ompi, struct cmpi_proc **out)
{
	uint8_t own[CMPI_ADDR_MAX], *blob = own;
	size_t len = 0;
	int rc;

	if (ompi == ompi_proc_local()) {
		cmpi_address(m->cmpi, own, &len);
		return cmpi_proc_get(m->cmpi, own, len, NULL, out);
	}
	OPAL_MODEX_RECV(rc, m->component, &ompi->super.proc_name, (void **)&blob, &len);
	if (rc != OPAL_SUCCESS) {
		decline(m, ompi, "it has not opened the NIC");
		return CMPI_UNREACHABLE;
	}
	rc = cmpi_proc_get(m->cmpi, blob, len, NULL, out);
	free(blob);
	if (rc != CMPI_OK)
		decline(m, ompi, rc == CMPI_UNREACHABLE ? cmpi_last_error() : cmpi_err_text(rc));
	return rc;
}

/* The lock is held. */
static struct qnix_peer *add(struct qnix_matched *m, struct ompi_proc_t *ompi)
{
	struct qnix_peer *peer = ompi->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

	if (peer && peer->proc)
		return peer;
	if (!peer) {
		peer = OBJ_NEW(qnix_peer_t);
		if (!peer)
			return NULL;
		peer->ompi = ompi;
		peer->proc = NULL;
		opal_list_append(&m->peers, &peer->super);
		ompi->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = peer;
	}
	return get(m, ompi, &peer->proc) == CMPI_OK ? peer : NULL;
}

/* Parameter connect=all.  Collective over one job: so only for the processes of this one, which are added together. */
static int connect_all(struct qnix_matched *m, size_t n, struct ompi_proc_t **procs)
{
	struct cmpi_proc **all = calloc(n, sizeof(*all));
	size_t count = 0;
	int err;

	if (!all)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (size_t i = 0; i < n; i++) {
		struct qnix_peer *peer = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

		if (procs[i]->super.proc_name.jobid == OPAL_PROC_MY_NAME.jobid && !cmpi_proc_is_self(peer->proc))
			all[count++] = peer->proc;
	}
	err = count ? cmpi_connect_all(m->cmpi, all, count) : CMPI_OK;
	free(all);
	return qnix_ompi_err(err);
}

int qnix_matched_add_procs(struct qnix_matched *m, size_t n, struct ompi_proc_t **procs)
{
	bool reached = true;

	qnix_poll_enter(m->who, m->cmpi);
	OPAL_THREAD_LOCK(&m->lock);
	for (size_t i = 0; i < n && reached; i++)
		reached = add(m, procs[i]) != NULL;
	OPAL_THREAD_UNLOCK(&m->lock);
	if (!reached)
		return OMPI_ERR_UNREACH;
	return strcmp(cmpi_param_string("connect"), "all") == 0 ? connect_all(m, n, procs) : OMPI_SUCCESS;
}

int qnix_matched_del_procs(struct qnix_matched *m, size_t n, struct ompi_proc_t **procs)
{
	OPAL_THREAD_LOCK(&m->lock);
	for (size_t i = 0; i < n; i++) {
		struct qnix_peer *peer = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

		if (!peer)
			continue;
		procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
		if (peer->proc)
			cmpi_proc_put(m->cmpi, peer->proc);
		opal_list_remove_item(&m->peers, &peer->super);
		OBJ_RELEASE(peer);
	}
	OPAL_THREAD_UNLOCK(&m->lock);
	return OMPI_SUCCESS;
}

/* ---- communicators ------------------------------------------------------------------------------------------------------ */

int qnix_matched_add_comm(struct ompi_communicator_t *comm)
{
	int size = ompi_group_size(comm->c_remote_group);
	struct qnix_comm *c;

	if (qnix_context(comm) > CMPI_CONTEXT_MAX || size > CMPI_RANK_MAX + 1 || comm->c_my_rank > CMPI_RANK_MAX)
		return OMPI_ERR_OUT_OF_RESOURCE;
	c = calloc(1, sizeof(*c) + (size_t)size * sizeof(c->to[0]));
	if (!c)
		return OMPI_ERR_OUT_OF_RESOURCE;
	c->cmpi.context = (uint16_t)qnix_context(comm);
	c->cmpi.rank = (uint16_t)comm->c_my_rank;
	c->size = size;
	comm->c_pml_comm = (struct mca_pml_comm_t *)c;
	return OMPI_SUCCESS;
}

int qnix_matched_del_comm(struct ompi_communicator_t *comm)
{
	free(comm->c_pml_comm);
	comm->c_pml_comm = NULL;
	return OMPI_SUCCESS;
}

struct cmpi_proc *qnix_matched_find(struct qnix_matched *m, struct ompi_communicator_t *comm, int rank)
{
	struct ompi_proc_t *ompi = ompi_comm_peer_lookup(comm, rank);
	struct qnix_peer *peer;

	OPAL_THREAD_LOCK(&m->lock);
	peer = add(m, ompi);
	OPAL_THREAD_UNLOCK(&m->lock);
	if (!peer)
		return NULL;
	qnix_comm(comm)->to[rank] = peer->proc; /* every thread would write the same */
	return peer->proc;
}

/* ---- probes ------------------------------------------------------------------------------------------------------------ */

_Static_assert(MPI_ANY_SOURCE == CMPI_ANY_SOURCE && MPI_ANY_TAG == CMPI_ANY_TAG, "wildcards are the same");

static void probed(const struct cmpi_status *from, struct ompi_status_public_t *to)
{
	if (to == MPI_STATUS_IGNORE)
		return;
	to->MPI_SOURCE = from->source;
	to->MPI_TAG = from->tag;
	to->_ucount = from->length;
	to->_cancelled = 0;
}

/* A program may do nothing but probe: what is not there is looked for. */
void qnix_matched_iprobe(struct qnix_matched *m, struct ompi_communicator_t *comm, int source, int tag, int *found,
                         struct ompi_status_public_t *status)
{
	struct cmpi_comm *c = &qnix_comm(comm)->cmpi;
	struct cmpi_status what;

	*found = cmpi_iprobe(m->cmpi, c, source, tag, &what);
	if (!*found) {
		opal_progress();
		*found = cmpi_iprobe(m->cmpi, c, source, tag, &what);
	}
	if (*found)
		probed(&what, status);
}

int qnix_matched_improbe(struct qnix_matched *m, struct ompi_communicator_t *comm, int source, int tag, int *found,
                         struct ompi_message_t **message, struct ompi_status_public_t *status)
{
	struct cmpi_comm *c = &qnix_comm(comm)->cmpi;
	struct ompi_message_t *it = ompi_message_alloc();
	struct cmpi_status what;

	*found = 0;
	if (!it)
		return OMPI_ERR_OUT_OF_RESOURCE;
	it->req_ptr = cmpi_improbe(m->cmpi, c, source, tag, &what);
	if (!it->req_ptr) {
		opal_progress();
		it->req_ptr = cmpi_improbe(m->cmpi, c, source, tag, &what);
	}
	if (!it->req_ptr) {
		ompi_message_return(it);
		return OMPI_SUCCESS;
	}
	it->comm = comm;
	OBJ_RETAIN(comm);
	it->peer = what.source;
	it->count = what.length;
	probed(&what, status);
	*message = it;
	*found = 1;
	return OMPI_SUCCESS;
}

struct cmpi_message *qnix_matched_message(struct ompi_message_t **message, struct ompi_communicator_t **comm)
{
	struct cmpi_message *it = (*message)->req_ptr;

	*comm = (*message)->comm;
	OBJ_RELEASE((*message)->comm); /* the caller's request holds on to it by now */
	ompi_message_return(*message);
	*message = MPI_MESSAGE_NULL;
	return it;
}

/* ---- loss ----------------------------------------------------------------------------------------------------------------- */

static struct qnix_peer *peer_of(struct qnix_matched *m, const struct cmpi_proc *proc)
{
	struct qnix_peer *peer;

	OPAL_LIST_FOREACH(peer, &m->peers, struct qnix_peer)
		if (peer->proc == proc)
			return peer;
	return NULL;
}

static void lost(void *arg, struct cmpi_proc *proc, int err, const char *text)
{
	char name[QNIX_NAME_MAX] = "the NIC", line[384];
	struct qnix_matched *m = arg;
	struct qnix_peer *peer;

	if (atomic_load_explicit(&m->closing, memory_order_relaxed))
		return;
	peer = proc ? peer_of(m, proc) : NULL;
	if (peer)
		qnix_name_text(&peer->ompi->super.proc_name, name);
	else if (proc)
		qnix_rank_text(cmpi_proc_rank(proc), name);
	snprintf(line, sizeof(line), "%s%s%s is lost: %s", name, peer ? " on host " : "",
	         peer ? opal_get_proc_hostname(&peer->ompi->super) : "", text ? text : cmpi_err_text(err));
	qnix_tell_loss(m->who, line);
	ompi_rte_abort(1, NULL);
}

/*
 * A transfer may fail before C-MPI has taken the connection down and reported it.  What Open MPI then says as it ends the process
 * names nobody.
 */
void qnix_matched_failed(struct qnix_matched *m, const struct cmpi_req *req, int err)
{
	const struct qnix_comm *comm = (const struct qnix_comm *)req->comm;
	struct cmpi_proc *proc = req->to;

	if (err != CMPI_TRANSPORT)
		return;
	if (!proc && req->status.source >= 0 && req->status.source < comm->size)
		proc = comm->to[req->status.source];
	if (proc)
		lost(m, proc, err, NULL);
}

#endif
