/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of the stack below as MCA parameters <framework>_qnix_<name>.  All are strings: the stack below parses and
 * checks them, so a size is written the same way wherever it is set.  The value shown as default is the one in effect
 * below, from the environment or a file; one that is set here is handed down and goes before those.
 */
#include "btl_qnix/common.h"

#include <stdio.h>

#include "opal/mca/base/mca_base_var.h"

static void register_one(struct qnix_params *params, const mca_base_component_t *component, uint32_t i,
                         const struct cmpi_param *row)
{
	char help[640];

	snprintf(help, sizeof(help), "%s [%s]", row->help, row->fits);
	params->values[i] = (char *)row->value;
	params->variables[i] = mca_base_component_var_register(component, row->name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
	                                                       OPAL_INFO_LVL_1 + row->level - 1, MCA_BASE_VAR_SCOPE_READONLY,
	                                                       &params->values[i]);
}

void qnix_params_register(struct qnix_params *params, const mca_base_component_t *component)
{
	struct cmpi_param row;

	for (uint32_t i = 0; cmpi_param_at(i, &row); i++) {
		if (i < QNIX_PARAMS_MOST)
			register_one(params, component, i, &row);
		else
			qnix_tell(QNIX_BTL, 0, NULL, "parameter %s has no place in a table of %d", row.name, QNIX_PARAMS_MOST);
	}
}

/* Values that do not fit are refused, with a line that says so, below. */
void qnix_params_hand_down(const struct qnix_params *params)
{
	struct cmpi_param row;

	for (uint32_t i = 0; i < QNIX_PARAMS_MOST && cmpi_param_at(i, &row); i++) {
		mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

		if (params->variables[i] >= 0)
			mca_base_var_get_value(params->variables[i], NULL, &source, NULL);
		if (source != MCA_BASE_VAR_SOURCE_DEFAULT && params->values[i])
			cmpi_param_set(row.name, params->values[i], "mca");
	}
}
