/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component: what Open MPI loads, its settings, and whether it takes part in a job.  It does when the list of MTLs names
 * it (--mca pml cm --mca mtl qnix); a job that did not ask for it does not open a card.  Even then its priority is below
 * that of ob1, so that without "--mca pml cm" the choice stays Open MPI's.
 */
#include "mtl_qnix/mtl_qnix.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"

enum { PRIORITY = 10 };

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_query(mca_base_module_t **module, int *priority);
static struct mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads MTL_QNIX_INIT_MORE);
static int finalize(struct mca_mtl_base_module_t *mtl);
static int add_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs);
static int del_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs);
static int add_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm);
static int del_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm);

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
		.mtl_max_contextid = QNIX_CONTEXT_MAX,
		.mtl_max_tag = QNIX_TAG_MAX,
		.mtl_request_size = sizeof(struct mtl_qnix_request) - sizeof(struct mca_mtl_request_t),
		.mtl_flags = MCA_MTL_BASE_FLAG_REQUIRE_WORLD,
		.mtl_add_procs = add_procs,
		.mtl_del_procs = del_procs,
		.mtl_finalize = finalize,
		.mtl_send = mtl_qnix_send,
		.mtl_isend = mtl_qnix_isend,
		.mtl_irecv = mtl_qnix_irecv,
		.mtl_iprobe = mtl_qnix_iprobe,
		.mtl_imrecv = mtl_qnix_imrecv,
		.mtl_improbe = mtl_qnix_improbe,
		.mtl_cancel = mtl_qnix_cancel,
		.mtl_add_comm = add_comm,
		.mtl_del_comm = del_comm,
	},
	.matched = { .who = QNIX_MTL, .component = &mca_mtl_qnix_component.mtl_version },
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
	qnix_matched_init(&mtl_qnix.matched);
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	qnix_matched_fini(&mtl_qnix.matched);
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

static struct mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads MTL_QNIX_INIT_MORE)
{
	(void)progress_threads;
	MTL_QNIX_INIT_ANSWER();
	qnix_params_hand_down(&params);
	if (!qnix_matched_open(&mtl_qnix.matched, mpi_threads || opal_using_threads()))
		return NULL;
	opal_progress_register(mtl_qnix_progress);
	return &mtl_qnix.super;
}

static int finalize(struct mca_mtl_base_module_t *mtl)
{
	(void)mtl;
	opal_progress_unregister(mtl_qnix_progress);
	qnix_matched_close(&mtl_qnix.matched);
	return OMPI_SUCCESS;
}

static int add_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs)
{
	(void)mtl;
	return qnix_matched_add_procs(&mtl_qnix.matched, n, procs);
}

static int del_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs)
{
	(void)mtl;
	return qnix_matched_del_procs(&mtl_qnix.matched, n, procs);
}

static int add_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
	(void)mtl;
	return qnix_matched_add_comm(comm);
}

static int del_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
	(void)mtl;
	return qnix_matched_del_comm(comm);
}
