/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component: what Open MPI loads, its settings, and whether it takes part in a job.
 *
 * Order of calls: register, open, init (opens the NIC, publishes its address), then the module's (module.c and others),
 * finalize, close.  It takes part when the list of BTLs names it (--mca btl qnix,self), or when btl_qnix_implicit or an
 * exclusivity above the other BTLs' says so: a job that did not ask for the NIC keeps Open MPI's own shared memory, and
 * does not even open a card.  When it was asked for and cannot, it says why in one line.
 */
#include "btl_qnix/btl_qnix.h"

#include <limits.h>
#include <stdio.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"

/* Bounds of what can wait (frag.c), and the first allocation. */
enum { FRAGS_FIRST = 64, FRAGS_MOST = 4096, OPS_FIRST = 64, OPS_MOST = 16384 };

/*
 * ob1 sends what fits in one message eagerly, and lets the receiver read the rest from the sender's memory (RGET).  Its
 * header is 14 bytes, but it takes the size of its largest header, 56, off the limit: 32 KB of data are the most that
 * travel in a message.
 */
enum { EAGER_DATA = 32768, OB1_LARGEST_HEADER = 56, EAGER_LIMIT = EAGER_DATA + OB1_LARGEST_HEADER };
_Static_assert(EAGER_DATA + 32 <= CMPI_AM_MAX, "a rendezvous header and its eager data fit in one message");
_Static_assert(BTL_QNIX_SMALL >= OB1_LARGEST_HEADER + CMPI_KEY_LEN, "control messages fit in a descriptor");

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads);

OPAL_DECLSPEC struct btl_qnix_component mca_btl_qnix_component = {
	.super = {
		.btl_version = {
			MCA_BTL_DEFAULT_VERSION("qnix"),
			.mca_open_component = component_open,
			.mca_close_component = component_close,
			.mca_register_component_params = component_register,
		},
		.btl_init = component_init,
		.btl_progress = btl_qnix_progress,
	},
};

static struct qnix_params params;

struct btl_qnix_module btl_qnix = {
	.super = {
		.btl_component = &mca_btl_qnix_component.super,
		.btl_add_procs = btl_qnix_add_procs,
		.btl_del_procs = btl_qnix_del_procs,
		.btl_finalize = btl_qnix_finalize,
		.btl_alloc = btl_qnix_alloc,
		.btl_free = btl_qnix_free,
		.btl_prepare_src = btl_qnix_prepare_src,
		.btl_send = btl_qnix_send,
		.btl_sendi = btl_qnix_sendi,
		.btl_put = btl_qnix_put,
		.btl_get = btl_qnix_get,
		.btl_atomic_op = btl_qnix_atomic_op,
		.btl_atomic_fop = btl_qnix_atomic_fop,
		.btl_atomic_cswap = btl_qnix_atomic_cswap,
		.btl_flush = btl_qnix_flush,
		.btl_register_mem = btl_qnix_register_mem,
		.btl_deregister_mem = btl_qnix_deregister_mem,
		.btl_register_error = btl_qnix_register_error,
		.btl_dump = btl_qnix_dump,
	},
};

bool btl_qnix_is_named(void)
{
	const char *list = opal_btl_base_framework.framework_selection;

	return list && *list && *list != '^'; /* a list that does not name it, would not have loaded it */
}

bool btl_qnix_is_alone(void)
{
	char **names = btl_qnix_is_named() ? opal_argv_split(opal_btl_base_framework.framework_selection, ',') : NULL;
	bool alone = names != NULL;

	for (char **name = names; name && *name; name++)
		alone &= !strcmp(*name, "qnix") || !strcmp(*name, "self");
	opal_argv_free(names);
	return alone;
}

static bool is_wanted(void)
{
	return btl_qnix_is_named() || mca_btl_qnix_component.implicit ||
	       btl_qnix.super.btl_exclusivity > MCA_BTL_EXCLUSIVITY_HIGH;
}

/* Set anew at each registration; the functions in the table above must be there, or the flags would be cleared. */
static void set_defaults(mca_btl_base_module_t *btl)
{
	btl->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH - 1; /* below vader and self, above all that crosses a network */
	btl->btl_latency = 2;                                /* vader says 1 and tcp 100: osc/rdma prefers the lower */
	btl->btl_bandwidth = 40000;
	btl->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS |
	                 MCA_BTL_FLAGS_RDMA_FLUSH | BTL_QNIX_VERSION_FLAGS;
	btl->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND | MCA_BTL_ATOMIC_SUPPORTS_OR |
	                        MCA_BTL_ATOMIC_SUPPORTS_XOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_MIN |
	                        MCA_BTL_ATOMIC_SUPPORTS_MAX | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
	                        MCA_BTL_ATOMIC_SUPPORTS_32BIT;
	btl->btl_eager_limit = EAGER_LIMIT;
	btl->btl_rndv_eager_limit = EAGER_LIMIT;
	btl->btl_max_send_size = CMPI_AM_MAX;
	btl->btl_rdma_pipeline_send_length = 1 << 20; /* what has no handle (btl_qnix_register_mem) is sent as a whole */
	btl->btl_rdma_pipeline_frag_size = 1 << 20;
	btl->btl_min_rdma_pipeline_size = INT_MAX;
	btl->btl_get_limit = btl->btl_put_limit = SIZE_MAX; /* C-MPI splits */
	btl->btl_get_alignment = btl->btl_put_alignment = 0;
	/* C-MPI registers local memory on the way, in its cache. */
	btl->btl_get_local_registration_threshold = btl->btl_put_local_registration_threshold = SIZE_MAX;
	btl->btl_registration_handle_size = CMPI_KEY_LEN;
}

static int component_register(void)
{
	mca_base_component_t *component = &mca_btl_qnix_component.super.btl_version;

	mca_base_var_group_component_register(component, "emulated user-level NIC (VIA)");
	mca_btl_qnix_component.implicit = false;
	mca_base_component_var_register(component, "implicit",
	                                "Open the NIC also in jobs whose list of BTLs does not name it; with the default "
	                                "exclusivity they use it where Open MPI's shared memory does not lead",
	                                MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY,
	                                &mca_btl_qnix_component.implicit);
	qnix_mpool_register(QNIX_BTL, component);
	qnix_params_register(&params, component);
	set_defaults(&btl_qnix.super);
	return mca_btl_base_param_register(component, &btl_qnix.super);
}

/* The loader compares only the major version, by the name of libopen-pal, and never that of the BTL interface. */
static bool version_fits(void)
{
	int major = 0, minor = 0;

	if (sscanf(opal_version_string, "%d.%d", &major, &minor) == 2 && major == OPAL_MAJOR_VERSION &&
	    minor == OPAL_MINOR_VERSION)
		return true;
	btl_qnix_tell(btl_qnix_is_named() ? 0 : 1, "version", "built for Open MPI %d.%d, but this is Open MPI %s",
	              OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, opal_version_string);
	return false;
}

static int component_open(void)
{
	qnix_tell_init();
	OBJ_CONSTRUCT(&btl_qnix.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&btl_qnix.wait_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&btl_qnix.endpoints, opal_list_t);
	OBJ_CONSTRUCT(&btl_qnix.waiting_frags, opal_list_t);
	OBJ_CONSTRUCT(&btl_qnix.waiting_ops, opal_list_t);
	OBJ_CONSTRUCT(&btl_qnix.frags, opal_free_list_t);
	OBJ_CONSTRUCT(&btl_qnix.ops, opal_free_list_t);
	atomic_store_explicit(&btl_qnix.closing, false, memory_order_relaxed); /* one thread so far */
	atomic_store_explicit(&btl_qnix.waiting, 0, memory_order_relaxed);
	atomic_store_explicit(&btl_qnix.under_way, 0, memory_order_relaxed);
	return version_fits() ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
}

/* Also after an open or init that failed. */
static int component_close(void)
{
	OBJ_DESTRUCT(&btl_qnix.ops);
	OBJ_DESTRUCT(&btl_qnix.frags);
	OBJ_DESTRUCT(&btl_qnix.waiting_ops);
	OBJ_DESTRUCT(&btl_qnix.waiting_frags);
	OBJ_DESTRUCT(&btl_qnix.endpoints);
	OBJ_DESTRUCT(&btl_qnix.wait_lock);
	OBJ_DESTRUCT(&btl_qnix.lock);
	return OPAL_SUCCESS;
}

static void limit(size_t *value, const char *name)
{
	if (*value <= CMPI_AM_MAX)
		return;
	btl_qnix_tell(0, "limit", "btl_qnix_%s is %zu, but a message holds at most %d bytes: using that", name, *value,
	              CMPI_AM_MAX);
	*value = CMPI_AM_MAX;
}

static int init_lists(void)
{
	int rc = opal_free_list_init(&btl_qnix.frags, sizeof(struct btl_qnix_frag), 64, OBJ_CLASS(btl_qnix_frag_t), 0, 0,
	                             FRAGS_FIRST, FRAGS_MOST, FRAGS_FIRST, NULL, 0, NULL, NULL, NULL);

	if (rc == OPAL_SUCCESS)
		rc = opal_free_list_init(&btl_qnix.ops, sizeof(struct btl_qnix_op), 64, OBJ_CLASS(btl_qnix_op_t), 0, 0, OPS_FIRST,
		                         OPS_MOST, OPS_FIRST, NULL, 0, NULL, NULL, NULL);
	return rc;
}

static int open_nic(bool threads)
{
	return qnix_nic_open(threads, btl_qnix_arrive, btl_qnix_peer_lost, &btl_qnix, &btl_qnix.cmpi);
}

static int publish_address(void)
{
	uint8_t blob[CMPI_ADDR_MAX];
	size_t len;
	int rc = cmpi_address(btl_qnix.cmpi, blob, &len);

	if (rc != CMPI_OK)
		return btl_qnix_opal_err(rc);
	OPAL_MODEX_SEND(rc, BTL_QNIX_MODEX_GLOBAL, &mca_btl_qnix_component.super.btl_version, blob, len);
	return rc;
}

static bool start(bool mpi_threads)
{
	int loud = btl_qnix_is_named() ? 0 : 1;

	if (init_lists() != OPAL_SUCCESS) {
		btl_qnix_tell(loud, "no-nic", "not enough memory");
		return false;
	}
	if (open_nic(mpi_threads || opal_using_threads()) != CMPI_OK) {
		btl_qnix_tell(loud, "no-nic", "the NIC could not be opened: %s", cmpi_last_error());
		return false;
	}
	if (publish_address() != OPAL_SUCCESS) {
		btl_qnix_tell(loud, "no-nic", "the address of the NIC could not be published to the other processes");
		btl_qnix_finalize(&btl_qnix.super);
		return false;
	}
	return true;
}

static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads)
{
	mca_btl_base_module_t **modules;

	(void)progress_threads;
	*count = 0;
	if (!is_wanted()) {
		btl_qnix_tell(10, NULL, "not used: the list of BTLs does not name it (--mca btl qnix,self)");
		return NULL;
	}
	qnix_params_hand_down(&params);
	limit(&btl_qnix.super.btl_eager_limit, "eager_limit");
	limit(&btl_qnix.super.btl_rndv_eager_limit, "rndv_eager_limit");
	limit(&btl_qnix.super.btl_max_send_size, "max_send_size");
	modules = malloc(sizeof(*modules)); /* Open MPI frees it */
	if (!modules || !start(mpi_threads)) {
		free(modules);
		return NULL;
	}
	qnix_pvar_register(QNIX_BTL, &mca_btl_qnix_component.super.btl_version, &btl_qnix.cmpi);
	if (btl_qnix_is_named())
		qnix_mpool_enter(QNIX_BTL, btl_qnix.cmpi);
	modules[0] = &btl_qnix.super;
	*count = 1;
	return modules;
}
