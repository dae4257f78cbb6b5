/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of the stack below as MPI_T performance variables btl_qnix_<name>.  They are known once the NIC is open;
 * before and after, there is nothing to count, and they read zero.
 */
#include "btl_qnix/btl_qnix.h"

#include "opal/mca/base/mca_base_pvar.h"

static int read_counter(const mca_base_pvar_t *pvar, void *value, void *object)
{
	uint32_t i = (uintptr_t)pvar->ctx;
	const char *name, *help;
	const uint64_t *cell = btl_qnix.cmpi ? cmpi_counter_at(btl_qnix.cmpi, i, &name, &help) : NULL;

	(void)object;
	*(unsigned long long *)value = cell ? *cell : 0;
	return OPAL_SUCCESS;
}

void btl_qnix_pvar_register(void)
{
	const char *name, *help;

	for (uintptr_t i = 0; cmpi_counter_at(btl_qnix.cmpi, i, &name, &help); i++)
		mca_base_component_pvar_register(&mca_btl_qnix_component.super.btl_version, name, help, OPAL_INFO_LVL_4,
		                                 MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
		                                 MCA_BASE_VAR_BIND_NO_OBJECT,
		                                 MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter,
		                                 NULL, NULL, (void *)i);
}
