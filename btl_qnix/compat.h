/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that differs between BTL 3.1.0 (Open MPI 4.0 and 4.1) and BTL 3.3.0 (5.0): where headers live, how modex
 * data is published, how a job is named, what an arrival looks like to the upper layer.  Nothing else in this folder
 * asks for a version.
 */
#ifndef BTL_QNIX_COMPAT_H
#define BTL_QNIX_COMPAT_H

#include "opal_config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/runtime/opal.h"
#include "opal/util/proc.h"

#include "cmpi/cmpi.h"

#if BTL_VERSION >= 330
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"

#define BTL_QNIX_MODEX_GLOBAL PMIX_GLOBAL
/* Our completions are remote ones; 5.0 wants to be told before osc/rdma uses a BTL without emulation. */
#define BTL_QNIX_VERSION_FLAGS MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
#define BTL_QNIX_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_1_0
#else
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"

#define BTL_QNIX_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#define BTL_QNIX_VERSION_FLAGS 0
#define BTL_QNIX_MPOOL_VERSION MCA_MPOOL_BASE_VERSION_3_0_0
#endif

/*
 * What all jobs of one mpirun have in common, spawned ones included, and the number of this job among them.
 * 4.x: the halves of the job id.  5.0: name space "something@number"; the job id is only a hash of it.
 */
static inline uint64_t btl_qnix_family(void)
{
#if BTL_VERSION >= 330
	const char *name = opal_process_info.myprocid.nspace;
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t n = strcspn(name, "@"); n--; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
#else
	return OPAL_PROC_MY_NAME.jobid >> 16;
#endif
}

static inline uint32_t btl_qnix_job_number(void)
{
#if BTL_VERSION >= 330
	const char *at = strchr(opal_process_info.myprocid.nspace, '@');

	return at ? strtoul(at + 1, NULL, 10) & 0xffff : 0;
#else
	return OPAL_PROC_MY_NAME.jobid & 0xffff;
#endif
}

/* Whether somebody registered for that tag: tags come from peers. */
static inline bool btl_qnix_tag_known(unsigned tag)
{
	return tag < MCA_BTL_TAG_MAX && mca_btl_base_active_message_trigger[tag].cbfunc;
}

/* Hands an arrival to whoever registered for its tag; the data is theirs until they return.  from: NULL is this process. */
static inline void btl_qnix_upcall(mca_btl_base_module_t *btl, struct cmpi_proc *from, unsigned tag, void *data,
                                   size_t len)
{
	const mca_btl_active_message_callback_t *to = &mca_btl_base_active_message_trigger[tag];
	mca_btl_base_segment_t segment = { .seg_addr.pval = data, .seg_len = len };
#if BTL_VERSION >= 330
	const mca_btl_base_receive_descriptor_t des = {
		.endpoint = from ? cmpi_proc_cookie(from) : NULL, /* NULL is allowed: the upper layer asks by name then */
		.des_segments = &segment, .des_segment_count = 1, .tag = tag, .cbdata = to->cbdata,
	};

	to->cbfunc(btl, &des);
#else
	mca_btl_base_descriptor_t des; /* of an arrival, only the segments have a meaning: the rest stays unset for speed */

	(void)from;
	des.des_segments = &segment;
	des.des_segment_count = 1;
	to->cbfunc(btl, tag, &des, to->cbdata);
#endif
}

#endif
