/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of the stack below as MPI_T performance variables btl_qnix_<name>, mtl_qnix_<name> or pml_qnix_<name>: the same ones, by the name of
 * whichever component is there.  They are known once the NIC is open; before and after, there is nothing to count, and they
 * read zero.
 */
#include "btl_qnix/common.h"

#include "opal/mca/base/mca_base_pvar.h"

/* The NIC that a component's variables are read from: its own word, NULL while it has none. */
static struct cmpi *const *nic[QNIX_COLL];

enum { INDICES = 1 << 16 }; /* a variable knows its component and its index: component * INDICES + index */

static int read_counter(const mca_base_pvar_t *pvar, void *value, void *object)
{
	uintptr_t which = (uintptr_t)pvar->ctx;
	struct cmpi *cmpi = *nic[which / INDICES];
	const char *name, *help;
	const uint64_t *cell = cmpi ? cmpi_counter_at(cmpi, (uint32_t)(which % INDICES), &name, &help) : NULL;

	(void)object;
	*(unsigned long long *)value = cell ? *cell : 0;
	return OPAL_SUCCESS;
}

/* What goes down as well as up. */
static bool is_level(const char *name)
{
	return !strcmp(name, "regions") || !strcmp(name, "buffers_taken") || !strcmp(name, "heap_granules");
}

void qnix_pvar_register(enum qnix_component who, const mca_base_component_t *component, struct cmpi *const *cmpi)
{
	const char *name, *help;

	nic[who] = cmpi;
	for (uint32_t i = 0; cmpi_counter_at(*cmpi, i, &name, &help); i++)
		mca_base_component_pvar_register(component, name, help, OPAL_INFO_LVL_4,
		                                 is_level(name) ? MCA_BASE_PVAR_CLASS_LEVEL : MCA_BASE_PVAR_CLASS_COUNTER,
		                                 MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
		                                 MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter,
		                                 NULL, NULL, (void *)((uintptr_t)who * INDICES + i));
}
