/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of the stack below as MCA parameters btl_qnix_<name>.  All are strings: the stack below parses and
 * checks them, so a size is written the same way wherever it is set.  The value shown as default is the one in effect
 * below, from the environment or a file; one that is set here is handed down and goes before those.
 */
#include "btl_qnix/btl_qnix.h"

#include <stdio.h>

#include "opal/mca/base/mca_base_var.h"

enum { MOST = 128 };

static char *values[MOST]; /* owned by the MCA variable system */
static int variables[MOST];

/* "enum:a|b|c" -> "one of a, b, c" */
static void describe_type(const char *type, char *to, size_t size)
{
	size_t at;

	if (strncmp(type, "enum:", 5) != 0) {
		snprintf(to, size, "%s", strcmp(type, "size") == 0 ? "size in bytes, or with k, m, g" : type);
		return;
	}
	at = snprintf(to, size, "one of ");
	for (const char *p = type + 5; *p && at + 3 < size; p++) {
		to[at++] = *p == '|' ? ',' : *p;
		if (*p == '|')
			to[at++] = ' ';
	}
	to[at] = 0;
}

static void register_one(uint32_t i, const struct cmpi_param *row)
{
	char type[128], help[640];

	describe_type(row->type, type, sizeof(type));
	snprintf(help, sizeof(help), "%s [%s]", row->help, type);
	values[i] = (char *)row->value;
	variables[i] = mca_base_component_var_register(&mca_btl_qnix_component.super.btl_version, row->name, help,
	                                               MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_1 + row->level - 1,
	                                               MCA_BASE_VAR_SCOPE_READONLY, &values[i]);
}

void btl_qnix_param_register(void)
{
	struct cmpi_param row;

	for (uint32_t i = 0; cmpi_param_at(i, &row); i++) {
		if (i < MOST)
			register_one(i, &row);
		else
			btl_qnix_tell(0, NULL, "parameter %s has no place in a table of %d", row.name, MOST);
	}
}

/* Values that do not fit are refused, with a line that says so, below. */
void btl_qnix_param_hand_down(void)
{
	struct cmpi_param row;

	for (uint32_t i = 0; i < MOST && cmpi_param_at(i, &row); i++) {
		mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

		if (variables[i] >= 0)
			mca_base_var_get_value(variables[i], NULL, &source, NULL);
		if (source != MCA_BASE_VAR_SOURCE_DEFAULT && values[i])
			cmpi_param_set(row.name, values[i], "mca");
	}
}
