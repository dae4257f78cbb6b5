/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is C-MPI's and no module's: error texts, and the map from a module's name to its table.  Opening, peers, messages,
 * memory and parameters are the module's own (pm_via/): nothing here calls VIPL.
 */
#include <string.h>

#include "cmpi/cmpi.h"
#include "cmpi/protocol.h"

const char *cmpi_err_text(int err)
{
	static const char *const text[] = {
#define X(name, text) [CMPI_##name] = text,
		CMPI_ERR_LIST(X)
#undef X
	};

	return err >= 0 && err < CMPI_ERR_COUNT ? text[err] : "unknown error";
}

extern const struct cmpi_protocol mpip_via_protocol, mpip_self_protocol;

const struct cmpi_protocol *cmpi_map_functions(const char *name)
{
	static const struct cmpi_protocol *const module[] = {&mpip_via_protocol, &mpip_self_protocol};

	for (size_t i = 0; name && i < sizeof(module) / sizeof(module[0]); i++)
		if (!strcmp(module[i]->name, name))
			return module[i];
	return NULL;
}
