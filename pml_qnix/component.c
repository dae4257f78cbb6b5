/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component: what Open MPI loads, its settings, and whether it takes part in a job.  It does when the list of PMLs names
 * it (--mca pml qnix), and also when nothing is said of PMLs and the list of BTLs leaves nothing but the NIC (--mca btl qnix,self): then
 * every message goes through it anyway, and this way is faster.
 */
#include "pml_qnix/pml_qnix.h"

#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/pml/base/base.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"

#if BTL_VERSION >= 330
#define PML_QNIX_VERSION MCA_PML_BASE_VERSION_2_1_0
#else
#define PML_QNIX_VERSION MCA_PML_BASE_VERSION_2_0_0
#endif

enum {
	PRIORITY = 60,      /* ob1 has 20, ucx 51 */
	REQUESTS_MORE = 64, /* as many at a time */
	LINE = 64,
	/* An odd number of lines, so that those which a window of requests needs lie in all sets of the first-level cache. */
	REQUEST_BYTES = ((sizeof(struct pml_qnix_request) + LINE - 1) / LINE | 1) * LINE,
};

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads);
static int component_fini(void);
static int add_procs(struct ompi_proc_t **procs, size_t n);
static int del_procs(struct ompi_proc_t **procs, size_t n);
static int enable(bool yes);
static int progress(void);
static int dump(struct ompi_communicator_t *comm, int verbose);

OMPI_DECLSPEC mca_pml_base_component_t mca_pml_qnix_component = {
	.pmlm_version = {
		PML_QNIX_VERSION,
		.mca_component_name = "qnix",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
		.mca_open_component = component_open,
		.mca_close_component = component_close,
		.mca_register_component_params = component_register,
	},
	.pmlm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	.pmlm_init = component_init,
	.pmlm_finalize = component_fini,
};

static struct qnix_params params;

struct pml_qnix pml_qnix = {
	.super = {
		.pml_add_procs = add_procs,
		.pml_del_procs = del_procs,
		.pml_enable = enable,
		.pml_progress = progress,
		.pml_add_comm = qnix_matched_add_comm,
		.pml_del_comm = qnix_matched_del_comm,
		.pml_irecv_init = pml_qnix_irecv_init,
		.pml_irecv = pml_qnix_irecv,
		.pml_recv = pml_qnix_recv,
		.pml_isend_init = pml_qnix_isend_init,
		.pml_isend = pml_qnix_isend,
		.pml_send = pml_qnix_send,
		.pml_iprobe = pml_qnix_iprobe,
		.pml_probe = pml_qnix_probe,
		.pml_start = pml_qnix_start,
		.pml_improbe = pml_qnix_improbe,
		.pml_mprobe = pml_qnix_mprobe,
		.pml_imrecv = pml_qnix_imrecv,
		.pml_mrecv = pml_qnix_mrecv,
		.pml_dump = dump,
		.pml_max_contextid = QNIX_CONTEXT_MAX,
		.pml_max_tag = QNIX_TAG_MAX,
		.pml_flags = MCA_PML_BASE_FLAG_REQUIRE_WORLD,
	},
	.matched = { .who = QNIX_PML, .component = &mca_pml_qnix_component.pmlm_version },
};

/* A list that does not name it would not have loaded it; none at all is no wish, nor is one of what is not wanted. */
static bool is_named(void)
{
	const char *list = ompi_pml_base_framework.framework_selection;

	return list && *list && *list != '^';
}

static bool is_wanted(void)
{
	return is_named() || (pml_qnix.unasked && btl_qnix_is_alone());
}

/* Where no list of PMLs names any, Open MPI takes none but those that it knows, and those whose open adds them, as pml/monitoring and pml/v do. */
static void offer(void)
{
	char *name = is_wanted() && !is_named() ? strdup("qnix") : NULL; /* the framework frees it */

	if (name && opal_pointer_array_add(&mca_pml_base_pml, name) < 0)
		free(name);
}

static int component_register(void)
{
	pml_qnix.priority = PRIORITY;
	mca_base_component_var_register(&mca_pml_qnix_component.pmlm_version, "priority",
	                                "Priority of this component when it takes part; ob1 has 20, ucx at most 51", MCA_BASE_VAR_TYPE_INT, NULL, 0, 0,
	                                OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, &pml_qnix.priority);
	pml_qnix.unasked = true;
	mca_base_component_var_register(&mca_pml_qnix_component.pmlm_version, "unasked",
	                                "Take part also when no list of PMLs names this component, but the list of BTLs leaves nothing but qnix "
	                                "(--mca btl qnix,self)", MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_4,
	                                MCA_BASE_VAR_SCOPE_READONLY, &pml_qnix.unasked);
	qnix_mpool_register(QNIX_PML, &mca_pml_qnix_component.pmlm_version);
	qnix_params_register(&params, &mca_pml_qnix_component.pmlm_version);
	return OMPI_SUCCESS;
}

static int component_open(void)
{
	qnix_tell_init();
	qnix_matched_init(&pml_qnix.matched);
	OBJ_CONSTRUCT(&pml_qnix.requests, opal_free_list_t);
	offer();
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	OBJ_DESTRUCT(&pml_qnix.requests);
	qnix_matched_fini(&pml_qnix.matched);
	return OMPI_SUCCESS;
}

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
	/* 4.1 has done so; 5.0 leaves it to ob1 and to the first window, when it is too late for others to learn this process's address. */
	if (mca_bml_base_init(progress_threads, mpi_threads) != OMPI_SUCCESS)
		return NULL;
	if (!is_wanted() || (!is_named() && !qnix_job_is_ours())) {
		qnix_tell(QNIX_PML, 10, NULL, "not used: the list of PMLs does not name it (--mca pml qnix), nor leaves that of BTLs it alone");
		return NULL;
	}
	qnix_params_hand_down(&params);
	if (!qnix_matched_open(&pml_qnix.matched, mpi_threads || opal_using_threads()))
		return NULL;
	*priority = pml_qnix.priority;
	return &pml_qnix.super;
}

/* Open MPI registered the progress call of the PML that it chose. */
static int component_fini(void)
{
	if (!pml_qnix.matched.cmpi)
		return OMPI_SUCCESS;
	opal_progress_unregister(progress);
	qnix_matched_close(&pml_qnix.matched);
	return OMPI_SUCCESS;
}

static int enable(bool yes)
{
	(void)yes;
	return opal_free_list_init(&pml_qnix.requests, REQUEST_BYTES, opal_cache_line_size, OBJ_CLASS(pml_qnix_request_t), 0,
	                           opal_cache_line_size, REQUESTS_MORE, -1, REQUESTS_MORE, NULL, 0, NULL, NULL, NULL);
}

static int progress(void)
{
	return cmpi_progress(pml_qnix.matched.cmpi);
}

static int add_procs(struct ompi_proc_t **procs, size_t n)
{
	int rc = mca_pml_base_pml_check_selected("qnix", procs, n);

	return rc == OMPI_SUCCESS ? qnix_matched_add_procs(&pml_qnix.matched, n, procs) : rc;
}

static int del_procs(struct ompi_proc_t **procs, size_t n)
{
	return qnix_matched_del_procs(&pml_qnix.matched, n, procs);
}

static int dump(struct ompi_communicator_t *comm, int verbose)
{
	(void)comm, (void)verbose;
	return OMPI_ERR_NOT_IMPLEMENTED;
}
