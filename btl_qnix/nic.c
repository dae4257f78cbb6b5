/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC of this process, and the names of processes: how Open MPI's jobs and ranks read below. */
#include "btl_qnix/btl_qnix.h"
#ifdef QNIX_HAVE_MTL
#include "mtl_qnix/mtl_qnix.h"
#include "pml_qnix/pml_qnix.h"
#endif

#include <stdio.h>

#include "opal/runtime/opal_progress.h"

/*
 * Jobs of one mpirun share a card, so that processes can talk to those that they spawn; different mpiruns do not, unless
 * parameter device names one.  The rank is unique in the family: number of the job, which starts at 1, and rank in it; so
 * below, the ranks of the first job read as they do in the program.
 */
int qnix_nic_open(bool threads, cmpi_am_fn *am, cmpi_error_fn *error, void *arg, struct cmpi **out)
{
	struct cmpi_param row;
	char device[48];
	struct cmpi_params params = {
		.job = btl_qnix_family(),
		.rank = (btl_qnix_job_number() - 1) << 16 | (OPAL_PROC_MY_NAME.vpid & 0xffff),
		.nranks = opal_process_info.num_local_peers + 1,
		.threads = threads,
		.alone = btl_qnix_is_alone(),
		.lends = &opal_progress_yield_when_idle,
		.am = am,
		.error = error,
		.arg = arg,
	};

	snprintf(device, sizeof(device), "job-%llu", (unsigned long long)params.job);
	params.device = device;
	for (uint32_t i = 0; cmpi_param_at(i, &row); i++)
		if (!strcmp(row.name, "device") && strcmp(row.source, "default") != 0)
			params.device = NULL; /* the user's choice */
	return cmpi_share(&params, out);
}

const char *qnix_name_text(const opal_process_name_t *name, char to[QNIX_NAME_MAX])
{
	if (name->jobid == OPAL_PROC_MY_NAME.jobid)
		snprintf(to, QNIX_NAME_MAX, "rank %u", name->vpid);
	else
		snprintf(to, QNIX_NAME_MAX, "rank %u of job %u", name->vpid, name->jobid & 0xffff);
	return to;
}

/* The same for a peer that spoke to us before it was added: from the rank that qnix_nic_open gave it. */
const char *qnix_rank_text(uint32_t rank, char to[QNIX_NAME_MAX])
{
	opal_process_name_t name = { .jobid = (OPAL_PROC_MY_NAME.jobid & 0xffff0000u) | (((rank >> 16) + 1) & 0xffff),
	                             .vpid = rank & 0xffff };

	return qnix_name_text(&name, to);
}

bool qnix_job_is_ours(void)
{
#ifdef QNIX_HAVE_MTL
	if (mtl_qnix.matched.cmpi || pml_qnix.matched.cmpi)
		return true;
#endif
	return btl_qnix.cmpi && btl_qnix_is_alone();
}
