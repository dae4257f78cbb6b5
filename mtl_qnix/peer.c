/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes and communicators.  Open MPI adds all processes of the job at start, and those of another job when the two are
 * connected (spawn, connect and accept); a communicator looks up its ranks when they are first spoken to.
 */
#include "mtl_qnix/mtl_qnix.h"

#include <stdio.h>

OBJ_CLASS_INSTANCE(mtl_qnix_peer_t, opal_list_item_t, NULL, NULL);

static void decline(const struct ompi_proc_t *proc, const char *why)
{
	char name[QNIX_NAME_MAX];

	mtl_qnix_tell(0, "mtl-unreachable", "%s on host %s is not reached through the NIC: %s",
	              qnix_name_text(&proc->super.proc_name, name), opal_get_proc_hostname(&proc->super), why);
}

/* The process of C-MPI behind an Open MPI process, by the address it published. */
static int get(struct ompi_proc_t *ompi, struct cmpi_proc **out)
{
	uint8_t own[CMPI_ADDR_MAX], *blob = own;
	size_t len = 0;
	int rc;

	if (ompi == ompi_proc_local()) {
		cmpi_address(mtl_qnix.cmpi, own, &len);
		return cmpi_proc_get(mtl_qnix.cmpi, own, len, NULL, out);
	}
	OPAL_MODEX_RECV(rc, &mca_mtl_qnix_component.mtl_version, &ompi->super.proc_name, (void **)&blob, &len);
	if (rc != OPAL_SUCCESS) {
		decline(ompi, "it has not opened the NIC");
		return CMPI_UNREACHABLE;
	}
	rc = cmpi_proc_get(mtl_qnix.cmpi, blob, len, NULL, out);
	free(blob);
	if (rc != CMPI_OK)
		decline(ompi, rc == CMPI_UNREACHABLE ? cmpi_last_error() : cmpi_err_text(rc));
	return rc;
}

/* The lock is held. */
static struct mtl_qnix_peer *add(struct ompi_proc_t *ompi)
{
	struct mtl_qnix_peer *peer = ompi->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

	if (peer && peer->proc)
		return peer;
	if (!peer) {
		peer = OBJ_NEW(mtl_qnix_peer_t);
		if (!peer)
			return NULL;
		peer->ompi = ompi;
		peer->proc = NULL;
		opal_list_append(&mtl_qnix.peers, &peer->super);
		ompi->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = peer;
	}
	return get(ompi, &peer->proc) == CMPI_OK ? peer : NULL;
}

/* Parameter connect=all.  Collective over one job: so only for the processes of this one, which are added together. */
static int connect_all(size_t n, struct ompi_proc_t **procs)
{
	struct cmpi_proc **all = calloc(n, sizeof(*all));
	size_t count = 0;
	int err;

	if (!all)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (size_t i = 0; i < n; i++) {
		struct mtl_qnix_peer *peer = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

		if (procs[i]->super.proc_name.jobid == OPAL_PROC_MY_NAME.jobid && !cmpi_proc_is_self(peer->proc))
			all[count++] = peer->proc;
	}
	err = count ? cmpi_connect_all(mtl_qnix.cmpi, all, count) : CMPI_OK;
	free(all);
	return mtl_qnix_ompi_err(err);
}

int mtl_qnix_add_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs)
{
	bool reached = true;

	(void)mtl;
	qnix_poll_enter(QNIX_MTL, mtl_qnix.cmpi);
	OPAL_THREAD_LOCK(&mtl_qnix.lock);
	for (size_t i = 0; i < n && reached; i++)
		reached = add(procs[i]) != NULL;
	OPAL_THREAD_UNLOCK(&mtl_qnix.lock);
	if (!reached)
		return OMPI_ERR_UNREACH;
	return strcmp(cmpi_param_string("connect"), "all") == 0 ? connect_all(n, procs) : OMPI_SUCCESS;
}

int mtl_qnix_del_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs)
{
	(void)mtl;
	OPAL_THREAD_LOCK(&mtl_qnix.lock);
	for (size_t i = 0; i < n; i++) {
		struct mtl_qnix_peer *peer = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

		if (!peer)
			continue;
		procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
		if (peer->proc)
			cmpi_proc_put(mtl_qnix.cmpi, peer->proc);
		opal_list_remove_item(&mtl_qnix.peers, &peer->super);
		OBJ_RELEASE(peer);
	}
	OPAL_THREAD_UNLOCK(&mtl_qnix.lock);
	return OMPI_SUCCESS;
}

void mtl_qnix_peers_free(void)
{
	opal_list_item_t *item;

	while ((item = opal_list_remove_first(&mtl_qnix.peers)))
		OBJ_RELEASE(item);
}

/* ---- communicators ------------------------------------------------------------------------------------------------------ */

int mtl_qnix_add_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
	int size = ompi_group_size(comm->c_remote_group);
	struct mtl_qnix_comm *c = calloc(1, sizeof(*c) + (size_t)size * sizeof(c->to[0]));

	(void)mtl;
	if (!c)
		return OMPI_ERR_OUT_OF_RESOURCE;
	c->cmpi.context = mtl_qnix_context(comm);
	c->cmpi.rank = (uint32_t)comm->c_my_rank;
	c->size = size;
	comm->c_pml_comm = (struct mca_pml_comm_t *)c;
	return OMPI_SUCCESS;
}

int mtl_qnix_del_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
	(void)mtl;
	free(comm->c_pml_comm);
	comm->c_pml_comm = NULL;
	return OMPI_SUCCESS;
}

struct cmpi_proc *mtl_qnix_find(struct ompi_communicator_t *comm, int rank)
{
	struct ompi_proc_t *ompi = ompi_comm_peer_lookup(comm, rank);
	struct mtl_qnix_peer *peer;

	OPAL_THREAD_LOCK(&mtl_qnix.lock);
	peer = add(ompi);
	OPAL_THREAD_UNLOCK(&mtl_qnix.lock);
	if (!peer)
		return NULL;
	mtl_qnix_comm(comm)->to[rank] = peer->proc; /* every thread would write the same */
	return peer->proc;
}

/* ---- loss ----------------------------------------------------------------------------------------------------------------- */

static struct mtl_qnix_peer *peer_of(const struct cmpi_proc *proc)
{
	struct mtl_qnix_peer *peer;

	OPAL_LIST_FOREACH(peer, &mtl_qnix.peers, struct mtl_qnix_peer)
		if (peer->proc == proc)
			return peer;
	return NULL;
}

/* A process died, or the whole device failed (proc NULL).  MPI cannot go on without it. */
void mtl_qnix_peer_lost(void *arg, struct cmpi_proc *proc, int err, const char *text)
{
	char name[QNIX_NAME_MAX] = "the NIC", line[384];
	struct mtl_qnix_peer *peer;

	(void)arg;
	if (atomic_load_explicit(&mtl_qnix.closing, memory_order_relaxed))
		return;
	peer = proc ? peer_of(proc) : NULL;
	if (peer)
		qnix_name_text(&peer->ompi->super.proc_name, name);
	else if (proc)
		qnix_rank_text(cmpi_proc_rank(proc), name);
	snprintf(line, sizeof(line), "%s%s%s is lost: %s", name, peer ? " on host " : "",
	         peer ? opal_get_proc_hostname(&peer->ompi->super) : "", text ? text : cmpi_err_text(err));
	qnix_tell_loss(QNIX_MTL, line);
	ompi_rte_abort(1, NULL);
}

/*
 * A transfer may fail before C-MPI has taken the connection down and reported it.  What Open MPI then says as it ends the process
 * names nobody.
 */
void mtl_qnix_failed(const struct cmpi_req *req, int err)
{
	const struct mtl_qnix_comm *comm = (const struct mtl_qnix_comm *)req->comm;
	struct cmpi_proc *proc = req->to;

	if (err != CMPI_TRANSPORT)
		return;
	if (!proc && req->status.source >= 0 && req->status.source < comm->size)
		proc = comm->to[req->status.source];
	if (proc)
		mtl_qnix_peer_lost(NULL, proc, err, NULL);
}
