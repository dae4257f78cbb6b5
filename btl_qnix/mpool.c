/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alloc_mem from the NIC's card, where transfers are plain copies.  Open MPI asks its memory pools, each a component of
 * the framework mpool, and takes the one that bids most.  This pool is in the framework's list while a component that was
 * asked for has the NIC open: so a job without the NIC has no such pool, and there is nothing to load or to choose.
 *
 * What the card has no room for, and what is to be aligned to more than a page, Open MPI takes from the C library, and
 * tells the two apart when it is freed.  So with what is smaller than a page, but for the first few of it at a time: a block of the
 * card is 64 KB at least, too much for each element of a list, and osc/rdma attaches no more than 64 blocks that share no page.
 *
 * A block of the card takes system calls, locks and page faults, and there are programs that take and free one for each message.  So
 * the last ones that were freed are kept, as the C library does, and are given out again.
 */
#include "btl_qnix/common.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "opal/class/opal_hash_table.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/mpool/base/base.h"
#include "opal/mca/mpool/mpool.h"

enum {
	BID = 60,        /* the C library's pool bids 50 */
	PAGE = 4096,
	SMALL_MOST = 16, /* blocks of less than a page */
	KEPT_MOST = 16,  /* blocks that were freed, */
	KEPT_BYTES = 8 << 20,
};

static bool wanted[QNIX_COLL];
static unsigned users;   /* bit per component */
static struct cmpi *nic; /* theirs in common */
static atomic_long blocks; /* that were not freed yet */
static void *_Atomic small[SMALL_MOST]; /* of them, those of less than a page */

struct block {
	void *memory;
	size_t size; /* whole pages */
};
static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT; /* of the next four */
static opal_hash_table_t *sizes;                   /* of blocks that were not freed, by their address */
static struct block kept[KEPT_MOST];               /* oldest first */
static unsigned nkept;
static size_t kept_bytes;
static mca_base_component_list_item_t *item;

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
	.mpool_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
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

/* A place in the list of small blocks for `to` where `from` is; NULL as the one is a free place, as the other sets it free. */
static void *_Atomic *replace_small(void *from, void *to)
{
	for (int i = 0; i < SMALL_MOST; i++) {
		void *expected = from;

		if (atomic_compare_exchange_strong_explicit(&small[i], &expected, to, memory_order_relaxed, memory_order_relaxed)) /* they order nothing */
			return &small[i];
	}
	return NULL;
}

/* ---- blocks that were freed; all under the lock ---- */

static struct block kept_remove(unsigned at)
{
	struct block b = kept[at];

	nkept--;
	kept_bytes -= b.size;
	memmove(&kept[at], &kept[at + 1], (nkept - at) * sizeof(kept[0]));
	return b;
}

static void kept_drop(void)
{
	while (nkept)
		cmpi_mem_free(nic, kept_remove(nkept - 1).memory);
}

/* The one freed last that is large enough, and not much too large; none: memory is NULL. */
static struct block kept_take(size_t size)
{
	for (unsigned i = nkept; i--;)
		if (kept[i].size >= size && kept[i].size / 2 <= size)
			return kept_remove(i);
	return (struct block){ .memory = NULL };
}

/* False: too large to be kept. */
static bool keep(struct block b)
{
	if (b.size > KEPT_BYTES)
		return false;
	while (nkept == KEPT_MOST || kept_bytes + b.size > KEPT_BYTES)
		cmpi_mem_free(nic, kept_remove(0).memory);
	kept[nkept++] = b;
	kept_bytes += b.size;
	return true;
}

static struct block block_new(size_t size)
{
	struct block b = kept_take(size);

	if (b.memory)
		return b;
	b.size = size;
	if (cmpi_mem_alloc(nic, size, &b.memory) == CMPI_OK)
		return b;
	if (size <= kept_bytes) { /* the room may be theirs */
		kept_drop();
		if (cmpi_mem_alloc(nic, size, &b.memory) == CMPI_OK)
			return b;
	}
	return (struct block){ .memory = NULL };
}

static void *block_alloc(size_t size)
{
	struct block b;

	OPAL_THREAD_LOCK(&lock);
	b = block_new(size);
	if (b.memory && opal_hash_table_set_value_uint64(sizes, (uintptr_t)b.memory, (void *)b.size) != OPAL_SUCCESS) {
		cmpi_mem_free(nic, b.memory);
		b.memory = NULL;
	}
	OPAL_THREAD_UNLOCK(&lock);
	return b.memory;
}

static void block_free(void *memory)
{
	void *size = NULL;

	OPAL_THREAD_LOCK(&lock);
	if (opal_hash_table_get_value_uint64(sizes, (uintptr_t)memory, &size) == OPAL_SUCCESS)
		opal_hash_table_remove_value_uint64(sizes, (uintptr_t)memory);
	if (!size || !keep((struct block){ .memory = memory, .size = (size_t)size }))
		cmpi_mem_free(nic, memory);
	OPAL_THREAD_UNLOCK(&lock);
}

/* ---- the pool ---- */

static void *pool_alloc(mca_mpool_base_module_t *mpool, size_t size, size_t align, uint32_t flags)
{
	void *_Atomic *place = NULL;
	void *memory = NULL;

	(void)mpool;
	(void)flags;
	if (align > PAGE || (size < PAGE && !(place = replace_small(NULL, &pool))))
		return NULL;
	if (size <= SIZE_MAX - PAGE)
		memory = block_alloc(size ? (size + PAGE - 1) / PAGE * PAGE : PAGE);
	if (memory) {
		atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed); /* a count; it orders nothing */
		if (place)
			atomic_store_explicit(place, memory, memory_order_relaxed);
		return memory;
	}
	if (place)
		atomic_store_explicit(place, NULL, memory_order_relaxed);
	qnix_tell(users & 1u << QNIX_BTL ? QNIX_BTL : users & 1u << QNIX_MTL ? QNIX_MTL : QNIX_PML, 5, NULL, "%zu bytes of MPI_Alloc_mem from the C library: %s", size, cmpi_last_error());
	return NULL;
}

/* Freed when the NIC is closed already, it stays: it is the process's own by then. */
static void pool_free(mca_mpool_base_module_t *mpool, void *memory)
{
	(void)mpool;
	if (!nic)
		return;
	replace_small(memory, NULL);
	block_free(memory);
	atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
}

/* Open MPI's list of blocks outlives MPI_Finalize, and so must what its entries lead to: this object, when it is unloaded. */
static void stay_loaded(void)
{
	Dl_info info;

	if (atomic_load_explicit(&blocks, memory_order_relaxed) && dladdr(&pool, &info) && info.dli_fname)
		dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void qnix_mpool_register(enum qnix_component who, const mca_base_component_t *to)
{
	wanted[who] = true;
	mca_base_component_var_register(to, "alloc_mem",
	                                "Take the memory of MPI_Alloc_mem from the card, which all processes have mapped, so that "
	                                "transfers between such buffers are plain copies; only in jobs whose list of components names the NIC",
	                                MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY, &wanted[who]);
}

static bool open_pool(void)
{
	item = OBJ_NEW(mca_base_component_list_item_t);
	sizes = OBJ_NEW(opal_hash_table_t);
	if (item && sizes && opal_hash_table_init(sizes, 64) == OPAL_SUCCESS) {
		item->cli_component = &component.mpool_version;
		opal_list_append(&opal_mpool_base_framework.framework_components, &item->super);
		return true;
	}
	if (item)
		OBJ_RELEASE(item);
	if (sizes)
		OBJ_RELEASE(sizes);
	return false;
}

void qnix_mpool_enter(enum qnix_component who, struct cmpi *cmpi)
{
	if (!wanted[who])
		return;
	if (!users && !open_pool())
		return;
	nic = cmpi;
	users |= 1u << who;
}

void qnix_mpool_leave(enum qnix_component who)
{
	if (!(users & 1u << who))
		return;
	users &= ~(1u << who);
	if (users)
		return;
	opal_list_remove_item(&opal_mpool_base_framework.framework_components, &item->super);
	OBJ_RELEASE(item);
	item = NULL;
	kept_drop();
	OBJ_RELEASE(sizes);
	sizes = NULL;
	nic = NULL;
	stay_loaded();
}
