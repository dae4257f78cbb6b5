/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is C-MPI's and no module's: error texts, the parameters as the glue shows them, the map from a module's name to its
 * table.  Opening, peers, messages and memory are the module's own (pm_via/).
 */
#include <string.h>

#include "cmpi/cmpi.h"
#include "cmpi/protocol.h"
#include "vipl.h"

const char *cmpi_err_text(int err)
{
	static const char *const text[] = {
#define X(name, text) [CMPI_##name] = text,
		CMPI_ERR_LIST(X)
#undef X
	};

	return err >= 0 && err < CMPI_ERR_COUNT ? text[err] : "unknown error";
}

bool cmpi_param_at(uint32_t i, struct cmpi_param *out)
{
	const struct vipx_parameter *p = VipxParameterAt(i);

	if (!p)
		return false;
	*out = (struct cmpi_param){
		.name = p->name, .help = p->help, .type = p->type, .value = p->value, .source = p->source, .level = p->level,
	};
	return true;
}

int cmpi_param_set(const char *name, const char *value, const char *source)
{
	return VipxParameterSet(name, value, source) == VIP_SUCCESS ? CMPI_OK : CMPI_PARAMETER;
}

int64_t cmpi_param_int(const char *name)
{
	return VipxParameterInt(name);
}

const char *cmpi_param_string(const char *name)
{
	return VipxParameterString(name);
}

extern const struct cmpi_protocol mpip_via_protocol;

/* A second module stands beside the first here. */
const struct cmpi_protocol *cmpi_map_functions(const char *name)
{
	static const struct cmpi_protocol *const module[] = {&mpip_via_protocol};

	for (size_t i = 0; name && i < sizeof(module) / sizeof(module[0]); i++)
		if (!strcmp(module[i]->name, name))
			return module[i];
	return NULL;
}
