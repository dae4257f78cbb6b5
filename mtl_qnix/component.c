/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component: what Open MPI loads, its settings, and whether it takes part in a job.  It does when the list of MTLs names
 * it (--mca pml cm --mca mtl qnix); a job that did not ask for it does not open a card.  Even then its priority is below
 * that of ob1, so that without "--mca pml cm" the choice stays Open MPI's.
 */
#include "mtl_qnix/mtl_qnix.h"

#include <limits.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"

enum { PRIORITY = 10, ANY_CONTEXT = 1 << 30 };

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_query(mca_base_module_t **module, int *priority);
static struct mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads MTL_QNIX_INIT_MORE);
static int finalize(struct mca_mtl_base_module_t *mtl);

OMPI_DECLSPEC mca_mtl_base_component_2_0_0_t mca_mtl_qnix_component = {
	.mtl_version = {
		MCA_MTL_BASE_VERSION_2_0_0,
		.mca_component_name = "qnix",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
		.mca_open_component = component_open,
		.mca_close_component = component_close,
		.mca_query_component = component_query,
		.mca_register_component_params = component_register,
	},
	.mtl_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	.mtl_init = component_init,
};

static struct qnix_params params;

struct mtl_qnix_module mtl_qnix = {
	.super = {
		.mtl_max_contextid = ANY_CONTEXT,
		.mtl_max_tag = INT_MAX,
		.mtl_request_size = sizeof(struct mtl_qnix_request) - sizeof(struct mca_mtl_request_t),
		.mtl_flags = MCA_MTL_BASE_FLAG_REQUIRE_WORLD,
		.mtl_add_procs = mtl_qnix_add_procs,
		.mtl_del_procs = mtl_qnix_del_procs,
		.mtl_finalize = finalize,
		.mtl_send = mtl_qnix_send,
		.mtl_isend = mtl_qnix_isend,
		.mtl_irecv = mtl_qnix_irecv,
		.mtl_iprobe = mtl_qnix_iprobe,
		.mtl_imrecv = mtl_qnix_imrecv,
		.mtl_improbe = mtl_qnix_improbe,
		.mtl_cancel = mtl_qnix_cancel,
		.mtl_add_comm = mtl_qnix_add_comm,
		.mtl_del_comm = mtl_qnix_del_comm,
	},
};

/* A list that does not name it would not have loaded it; none at all is no wish. */
static bool is_named(void)
{
	const char *list = ompi_mtl_base_framework.framework_selection;

	return list && *list && *list != '^';
}

static int component_register(void)
{
	mtl_qnix.priority = PRIORITY;
	mca_base_component_var_register(&mca_mtl_qnix_component.mtl_version, "priority",
	                                "Priority of this component, and so of pml cm, when the list of MTLs names it; ob1 has 20",
	                                MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY,
	                                &mtl_qnix.priority);
	qnix_mpool_register(QNIX_MTL, &mca_mtl_qnix_component.mtl_version);
	qnix_params_register(&params, &mca_mtl_qnix_component.mtl_version);
	return OMPI_SUCCESS;
}

static int component_open(void)
{
	qnix_tell_init();
	OBJ_CONSTRUCT(&mtl_qnix.ends, opal_recursive_mutex_t);
	OBJ_CONSTRUCT(&mtl_qnix.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&mtl_qnix.peers, opal_list_t);
	atomic_store_explicit(&mtl_qnix.closing, false, memory_order_relaxed); /* one thread so far */
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	OBJ_DESTRUCT(&mtl_qnix.peers);
	OBJ_DESTRUCT(&mtl_qnix.lock);
	OBJ_DESTRUCT(&mtl_qnix.ends);
	return OMPI_SUCCESS;
}

static int component_query(mca_base_module_t **module, int *priority)
{
	*module = NULL;
	if (!is_named()) {
		mtl_qnix_tell(10, NULL, "not used: the list of MTLs does not name it (--mca pml cm --mca mtl qnix)");
		return OMPI_ERR_NOT_AVAILABLE;
	}
	*priority = mtl_qnix.priority;
	*module = (mca_base_module_t *)&mtl_qnix.super;
	return OMPI_SUCCESS;
}

static int publish_address(void)
{
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;
	int rc = cmpi_address(mtl_qnix.cmpi, blob, &len);

	if (rc != CMPI_OK)
		return mtl_qnix_ompi_err(rc);
	OPAL_MODEX_SEND(rc, BTL_QNIX_MODEX_GLOBAL, &mca_mtl_qnix_component.mtl_version, blob, len);
	return rc;
}

static struct mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads MTL_QNIX_INIT_MORE)
{
	(void)progress_threads;
	MTL_QNIX_INIT_ANSWER();
	qnix_params_hand_down(&params);
	if (qnix_nic_open(mpi_threads || opal_using_threads(), NULL, mtl_qnix_peer_lost, &mtl_qnix, &mtl_qnix.cmpi) != CMPI_OK) {
		mtl_qnix_tell(0, "mtl-no-nic", "the NIC could not be opened: %s", cmpi_last_error());
		return NULL;
	}
	if (publish_address() != OMPI_SUCCESS) {
		mtl_qnix_tell(0, "mtl-no-nic", "the address of the NIC could not be published to the other processes");
		cmpi_unshare(mtl_qnix.cmpi, &mtl_qnix);
		return NULL;
	}
	qnix_pvar_register(QNIX_MTL, &mca_mtl_qnix_component.mtl_version, &mtl_qnix.cmpi);
	opal_progress_register(mtl_qnix_progress);
	qnix_mpool_enter(QNIX_MTL, mtl_qnix.cmpi);
	return &mtl_qnix.super;
}

static int finalize(struct mca_mtl_base_module_t *mtl)
{
	(void)mtl;
	atomic_store_explicit(&mtl_qnix.closing, true, memory_order_relaxed);
	opal_progress_unregister(mtl_qnix_progress);
	qnix_poll_leave(QNIX_MTL);
	qnix_mpool_leave(QNIX_MTL);
	cmpi_unshare(mtl_qnix.cmpi, &mtl_qnix);
	mtl_qnix.cmpi = NULL;
	mtl_qnix_peers_free();
	return OMPI_SUCCESS;
}
