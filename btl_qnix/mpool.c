/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alloc_mem from the NIC's card, where transfers are plain copies.  Open MPI asks its memory pools, each a component of
 * the framework mpool, and takes the one that bids most.  This pool enters the framework's list while the NIC is open and
 * leaves it before: so a job without the NIC has no such pool, and there is nothing to load or to choose.
 *
 * What the card has no room for, and what is to be aligned to more than a page, Open MPI takes from the C library, and
 * tells the two apart when it is freed.
 */
#include "btl_qnix/btl_qnix.h"

#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/mpool/base/base.h"
#include "opal/mca/mpool/mpool.h"

enum { BID = 60 /* the C library's pool bids 50 */, PAGE = 4096 };

static int query(const char *hints, int *priority, mca_mpool_base_module_t **module);
static void *pool_alloc(mca_mpool_base_module_t *pool, size_t size, size_t align, uint32_t flags);
static void pool_free(mca_mpool_base_module_t *pool, void *memory);

static void *no_base(mca_mpool_base_module_t *pool)
{
	(void)pool;
	return NULL;
}

/* Nobody in Open MPI calls it for memory of MPI_Alloc_mem; the size of the old memory is not known here. */
static void *no_realloc(mca_mpool_base_module_t *pool, void *memory, size_t size)
{
	(void)pool;
	(void)memory;
	(void)size;
	return NULL;
}

static mca_mpool_base_component_t component = {
	.mpool_version = {
		BTL_QNIX_MPOOL_VERSION,
		.mca_component_name = "qnix",
		MCA_BASE_MAKE_VERSION(component, OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, OPAL_RELEASE_VERSION),
	},
	.mpool_data = { MCA_BASE_METADATA_PARAM_NONE },
	.mpool_query = query,
};

static mca_mpool_base_module_t pool = {
	.mpool_component = &component,
	.mpool_base = no_base,
	.mpool_alloc = pool_alloc,
	.mpool_realloc = no_realloc,
	.mpool_free = pool_free,
	.mpool_allocation_unit = PAGE,
	.mpool_name = (char *)"qnix",
};

/* Who wants a special kind of memory (info key mpool_hints) does not get this one, unless it is asked for by name. */
static int query(const char *hints, int *priority, mca_mpool_base_module_t **module)
{
	if (hints && *hints && strcmp(hints, "mpool=qnix") != 0)
		return OPAL_ERR_NOT_FOUND;
	*priority = BID;
	*module = &pool;
	return OPAL_SUCCESS;
}

static void *pool_alloc(mca_mpool_base_module_t *mpool, size_t size, size_t align, uint32_t flags)
{
	void *memory = NULL;

	(void)mpool;
	(void)flags;
	if (align > PAGE)
		return NULL;
	if (cmpi_mem_alloc(btl_qnix.cmpi, size ? size : 1, &memory) == CMPI_OK)
		return memory;
	btl_qnix_tell(5, NULL, "%zu bytes of MPI_Alloc_mem from the C library: %s", size, cmpi_last_error());
	return NULL;
}

static void pool_free(mca_mpool_base_module_t *mpool, void *memory)
{
	(void)mpool;
	if (btl_qnix.cmpi)
		cmpi_mem_free(btl_qnix.cmpi, memory);
}

static mca_base_component_list_item_t *item;

void btl_qnix_mpool_enter(void)
{
	item = OBJ_NEW(mca_base_component_list_item_t);
	if (!item)
		return;
	item->cli_component = &component.mpool_version;
	opal_list_append(&opal_mpool_base_framework.framework_components, &item->super);
}

void btl_qnix_mpool_leave(void)
{
	if (!item)
		return;
	opal_list_remove_item(&opal_mpool_base_framework.framework_components, &item->super);
	OBJ_RELEASE(item);
	item = NULL;
}
