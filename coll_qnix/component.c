/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component: what Open MPI loads, its settings, and which jobs it takes part in.  By itself in those whose processes all
 * reach each other through the NIC, since nothing else is named (--mca btl qnix,self, or --mca mtl qnix); in others, when the
 * user sets its priority, which is then compared with the other components' as usual.
 */
#include "coll_qnix/coll_qnix.h"

#include "opal/mca/base/mca_base_var.h"

enum { REQUESTS_MORE = 16 }; /* that a list of free ones grows by */
enum { PRIORITY = 60 /* tuned has 30, sm 0, libnbc 10, han 0 */ };

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int init_query(bool progress_threads, bool mpi_threads);

OMPI_DECLSPEC mca_coll_base_component_t mca_coll_qnix_component = {
	.collm_version = {
		MCA_COLL_BASE_VERSION_2_0_0,
		.mca_component_name = "qnix",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
		.mca_open_component = component_open,
		.mca_close_component = component_close,
		.mca_register_component_params = component_register,
	},
	.collm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	.collm_init_query = init_query,
	.collm_comm_query = coll_qnix_comm_query,
};

struct coll_qnix coll_qnix;

static int priority_variable;

static void size_variable(const char *name, const char *help, size_t value, size_t *at)
{
	*at = value;
	mca_base_component_var_register(&mca_coll_qnix_component.collm_version, name, help, MCA_BASE_VAR_TYPE_SIZE_T, NULL, 0, 0,
	                                OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, at);
}

static int component_register(void)
{
	coll_qnix.priority = PRIORITY;
	priority_variable = mca_base_component_var_register(&mca_coll_qnix_component.collm_version, "priority",
		"Priority of this component; 0: not used.  Unless it is set, only jobs that use the NIC for everything (--mca btl "
		"qnix,self or --mca mtl qnix) are taken",
		MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY, &coll_qnix.priority);
	size_variable("bcast_max", "MPI_Bcast of more bytes is left to the next component", 128 * 1024, &coll_qnix.bcast_max);
	size_variable("ibcast_max", "MPI_Ibcast of more bytes is left to the next component", (size_t)1 << 30, &coll_qnix.ibcast_max);
	size_variable("allreduce_max", "MPI_Allreduce of more bytes, those of all ranks together, is left to the next component",
	              256 * 1024, &coll_qnix.allreduce_max);
	return OMPI_SUCCESS;
}

static int component_open(void)
{
	qnix_tell_init();
	if (!coll_qnix_request_fits()) {
		coll_qnix_tell(1, NULL, "not used: requests of collectives are larger in this Open MPI");
		return OMPI_ERR_NOT_AVAILABLE;
	}
	OBJ_CONSTRUCT(&coll_qnix.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&coll_qnix.poll_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&coll_qnix.free, opal_free_list_t);
	return opal_free_list_init(&coll_qnix.free, sizeof(struct coll_qnix_request), opal_cache_line_size, OBJ_CLASS(coll_qnix_request_t), 0, 0,
	                           0, -1, REQUESTS_MORE, NULL, 0, NULL, NULL, NULL);
}

static int component_close(void)
{
	if (coll_qnix.cmpi)
		cmpi_unshare(coll_qnix.cmpi, &coll_qnix);
	coll_qnix.cmpi = NULL;
	coll_qnix_poll_no_more();
	if (!coll_qnix.requests) /* of those that are not complete at the end of an erroneous program the NIC's end still speaks */
		OBJ_DESTRUCT(&coll_qnix.free);
	OBJ_DESTRUCT(&coll_qnix.poll_lock);
	OBJ_DESTRUCT(&coll_qnix.lock);
	return OMPI_SUCCESS;
}

static bool was_set(void)
{
	mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

	mca_base_var_get_value(priority_variable, NULL, &source, NULL);
	return source != MCA_BASE_VAR_SOURCE_DEFAULT;
}

/*
 * Must come to the same result in all processes.  A NIC that cannot be opened is no reason to stay away from a job whose
 * user wants this component: the communicators learn of it when they are first used.
 */
static int init_query(bool progress_threads, bool mpi_threads)
{
	bool set = was_set();

	(void)progress_threads;
	coll_qnix.carries = qnix_job_is_ours();
	if (coll_qnix.priority <= 0 || !(set || coll_qnix.carries)) {
		coll_qnix_tell(10, NULL, "not used: the job does not use the NIC for everything, and coll_qnix_priority is not set");
		return OMPI_ERR_NOT_AVAILABLE;
	}
	if (qnix_nic_open(mpi_threads, NULL, NULL, &coll_qnix, &coll_qnix.cmpi) != CMPI_OK) {
		coll_qnix.cmpi = NULL;
		coll_qnix_tell(set ? 0 : 1, NULL, "the NIC could not be opened: %s", cmpi_last_error());
	}
	return OMPI_SUCCESS;
}
