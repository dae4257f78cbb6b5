/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in, and the progress call that brings them.  What arrives is handed up where it lies; the upper layer is done
 * with it when it returns.  It may send, and may call progress again, from inside: nothing is locked here.
 */
#include "btl_qnix/btl_qnix.h"

/* Arrivals may come from processes that add_procs has not named yet. */
void btl_qnix_arrive(void *arg, struct cmpi_proc *from, unsigned tag, void *data, size_t len)
{
	(void)arg;
	if (OPAL_LIKELY(btl_qnix_tag_known(tag)))
		btl_qnix_upcall(&btl_qnix.super, from, tag, data, len);
	else
		btl_qnix_tell(1, NULL, "a message of %zu bytes with tag %u, which nobody registered, was dropped", len, tag);
}

int btl_qnix_progress(void)
{
	int events = cmpi_progress(btl_qnix.cmpi);

	/* Relaxed: an entry that is missed now is seen by the next call; the lists themselves are read under their lock. */
	if (OPAL_UNLIKELY(atomic_load_explicit(&btl_qnix.waiting, memory_order_relaxed)))
		events += btl_qnix_retry();
	return events;
}
