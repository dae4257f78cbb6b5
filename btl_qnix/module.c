/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: which processes the NIC leads to, what happens when one is lost, and the end of the module.
 *
 * Open MPI adds the processes of this host at start and others when they are first spoken to; it deletes a process once
 * for each of its lists, and may add it again.  So endpoints are kept by process name until the module ends.
 */
#include "btl_qnix/btl_qnix.h"

#include <stdio.h>
#include <string.h>

#include "opal/util/output.h"

static void endpoint_construct(struct mca_btl_base_endpoint_t *endpoint)
{
	OBJ_CONSTRUCT(&endpoint->frags, btl_qnix_line_t);
	OBJ_CONSTRUCT(&endpoint->ops, btl_qnix_line_t);
}

static void endpoint_destruct(struct mca_btl_base_endpoint_t *endpoint)
{
	OBJ_DESTRUCT(&endpoint->ops);
	OBJ_DESTRUCT(&endpoint->frags);
}

OBJ_CLASS_INSTANCE(mca_btl_base_endpoint_t, opal_list_item_t, endpoint_construct, endpoint_destruct);

static bool is_self(const opal_process_name_t *name)
{
	return name->jobid == OPAL_PROC_MY_NAME.jobid && name->vpid == OPAL_PROC_MY_NAME.vpid;
}

static struct mca_btl_base_endpoint_t *find_or_create(struct opal_proc_t *proc)
{
	struct mca_btl_base_endpoint_t *endpoint;

	OPAL_LIST_FOREACH(endpoint, &btl_qnix.endpoints, struct mca_btl_base_endpoint_t)
		if (endpoint->name.jobid == proc->proc_name.jobid && endpoint->name.vpid == proc->proc_name.vpid)
			goto found;
	endpoint = OBJ_NEW(mca_btl_base_endpoint_t);
	if (!endpoint)
		return NULL;
	endpoint->name = proc->proc_name;
	endpoint->proc = endpoint->am = NULL;
	endpoint->lost = false;
	opal_list_append(&btl_qnix.endpoints, &endpoint->super);
found:
	endpoint->opal = proc;
	return endpoint;
}

static void decline(const struct opal_proc_t *proc, const char *why)
{
	char name[QNIX_NAME_MAX];

	btl_qnix_tell(btl_qnix_is_alone() ? 0 : 1, "peer-declined", "%s on host %s is not reached through the NIC: %s",
	              qnix_name_text(&proc->proc_name, name), opal_get_proc_hostname(proc), why);
}

static int get_peer(struct mca_btl_base_endpoint_t *endpoint)
{
	uint8_t own[CMPI_ADDR_MAX], *blob = own;
	size_t len = 0;
	int rc;

	if (is_self(&endpoint->name)) {
		rc = cmpi_address(btl_qnix.cmpi, own, &len);
		return rc == CMPI_OK ? cmpi_proc_get(btl_qnix.cmpi, own, len, endpoint, &endpoint->proc) : rc;
	}
	OPAL_MODEX_RECV(rc, &mca_btl_qnix_component.super.btl_version, &endpoint->name, (void **)&blob, &len);
	if (rc != OPAL_SUCCESS) {
		decline(endpoint->opal, "it has not opened the NIC");
		return CMPI_UNREACHABLE;
	}
	rc = cmpi_proc_get(btl_qnix.cmpi, blob, len, endpoint, &endpoint->proc);
	free(blob);
	if (rc != CMPI_OK)
		decline(endpoint->opal, rc == CMPI_UNREACHABLE ? cmpi_last_error() : cmpi_err_text(rc));
	return rc;
}

/* The endpoint of a peer that the NIC leads to; NULL otherwise. */
static struct mca_btl_base_endpoint_t *reach(struct opal_proc_t *proc)
{
	struct mca_btl_base_endpoint_t *endpoint;

	OPAL_THREAD_LOCK(&btl_qnix.lock);
	endpoint = find_or_create(proc);
	if (endpoint && !endpoint->proc && get_peer(endpoint) != CMPI_OK)
		endpoint = NULL;
	if (endpoint && cmpi_proc_is_self(endpoint->proc))
		btl_qnix.self = endpoint;
	else if (endpoint)
		endpoint->am = endpoint->proc;
	OPAL_THREAD_UNLOCK(&btl_qnix.lock);
	return endpoint;
}

/* Parameter connect=all.  Collective over one job: so only where Open MPI adds a job as a whole. */
static int connect_all(size_t n, struct mca_btl_base_endpoint_t **endpoints)
{
	struct cmpi_proc **procs = calloc(n, sizeof(*procs));
	size_t count = 0;
	int err;

	if (!procs)
		return OPAL_ERR_OUT_OF_RESOURCE;
	for (size_t i = 0; i < n; i++)
		if (endpoints[i] && endpoints[i]->am && endpoints[i]->name.jobid == OPAL_PROC_MY_NAME.jobid)
			procs[count++] = endpoints[i]->am;
	err = count ? cmpi_connect_all(btl_qnix.cmpi, procs, count) : CMPI_OK;
	free(procs);
	return btl_qnix_opal_err(err);
}

/* A peer that cannot be reached is no error: another BTL may lead to it.  reachable is NULL for one added lazily. */
int btl_qnix_add_procs(mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
	(void)btl;
	qnix_poll_enter(QNIX_BTL, btl_qnix.cmpi);
	for (size_t i = 0; i < n; i++) {
		endpoints[i] = reach(procs[i]);
		if (endpoints[i] && reachable && opal_bitmap_set_bit(reachable, i) != OPAL_SUCCESS)
			return OPAL_ERR_OUT_OF_RESOURCE;
	}
	if (reachable && strcmp(cmpi_param_string("connect"), "all") == 0)
		return connect_all(n, endpoints);
	return OPAL_SUCCESS;
}

int btl_qnix_del_procs(mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints)
{
	(void)btl, (void)procs;
	OPAL_THREAD_LOCK(&btl_qnix.lock);
	for (size_t i = 0; i < n; i++) {
		struct mca_btl_base_endpoint_t *endpoint = endpoints[i];

		if (!endpoint || !endpoint->proc)
			continue;
		cmpi_proc_put(btl_qnix.cmpi, endpoint->proc);
		endpoint->proc = endpoint->am = NULL;
	}
	OPAL_THREAD_UNLOCK(&btl_qnix.lock);
	return OPAL_SUCCESS;
}

int btl_qnix_register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t error)
{
	(void)btl;
	btl_qnix.error = error;
	return OPAL_SUCCESS;
}

/*
 * A process died, or the whole device failed (peer NULL).  Peers that were deleted in order are nobody's loss.  The
 * upper layer's callback ends this process, whatever mpirun was told to do about the dead one.
 */
void btl_qnix_peer_lost(void *arg, struct cmpi_proc *peer, int err, const char *text)
{
	struct mca_btl_base_endpoint_t *endpoint = peer ? cmpi_proc_cookie(peer) : NULL;
	char name[QNIX_NAME_MAX] = "the NIC", line[384];

	(void)arg;
	if (atomic_load_explicit(&btl_qnix.closing, memory_order_relaxed) || (endpoint && (!endpoint->proc || endpoint->lost)))
		return;
	if (endpoint)
		qnix_name_text(&endpoint->name, name);
	else if (peer)
		qnix_rank_text(cmpi_proc_rank(peer), name);
	if (endpoint)
		endpoint->lost = true;
	snprintf(line, sizeof(line), "%s%s%s is lost: %s", name, endpoint ? " on host " : "",
	         endpoint ? opal_get_proc_hostname(endpoint->opal) : "", text ? text : cmpi_err_text(err));
	qnix_tell_loss(QNIX_BTL, line);
	for (char *p = line; (p = strchr(p, '%'));)
		*p = ' '; /* ob1 passes it on as a format */
	if (btl_qnix.error)
		btl_qnix.error(&btl_qnix.super, MCA_BTL_ERROR_FLAGS_FATAL, endpoint ? endpoint->opal : NULL, line);
}

/*
 * A transfer may fail before C-MPI has taken the connection down and reported it.  ob1 then tries other ways, none of which leads
 * there, and ends the process with a line that names nobody.
 */
int btl_qnix_failed(struct mca_btl_base_endpoint_t *endpoint, int err)
{
	if (err == CMPI_TRANSPORT && endpoint->proc)
		btl_qnix_peer_lost(NULL, endpoint->proc, err, NULL);
	return btl_qnix_opal_err(err);
}

static void dump_counters(void)
{
	const char *name, *help;
	const uint64_t *cell;

	for (uint32_t i = 0; (cell = cmpi_counter_at(btl_qnix.cmpi, i, &name, &help)); i++)
		if (*cell)
			opal_output(0, "btl:qnix:   %-28s %12llu  %s", name, (unsigned long long)*cell, help);
}

void btl_qnix_dump(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, int verbose)
{
	char name[QNIX_NAME_MAX];

	(void)btl;
	if (endpoint)
		opal_output(0, "btl:qnix: %s (pid %d)%s", qnix_name_text(&endpoint->name, name),
		            endpoint->proc ? cmpi_proc_pid(endpoint->proc) : 0, endpoint->proc ? "" : ", deleted");
	opal_output(0, "btl:qnix: waiting for resources: %u control messages and transfers",
	            atomic_load_explicit(&btl_qnix.waiting, memory_order_relaxed)); /* a count */
	if (verbose && btl_qnix.cmpi)
		dump_counters();
}

/* What still waits belongs to peers that are gone.  Lists and locks stay until the component closes. */
int btl_qnix_finalize(mca_btl_base_module_t *btl)
{
	struct cmpi *cmpi = btl_qnix.cmpi;
	opal_list_item_t *item;

	(void)btl;
	atomic_store_explicit(&btl_qnix.closing, true, memory_order_relaxed);
	qnix_poll_leave(QNIX_BTL);
	qnix_mpool_leave(QNIX_BTL);
	btl_qnix.cmpi = NULL;
	if (cmpi)
		cmpi_unshare(cmpi, &btl_qnix);
	btl_qnix.self = NULL;
	while ((item = opal_list_remove_first(&btl_qnix.endpoints)))
		OBJ_RELEASE(item);
	return OPAL_SUCCESS;
}
