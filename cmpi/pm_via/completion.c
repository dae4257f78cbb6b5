/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions that are owed to the user: collected while queues are walked under the lock, called from one place, without
 * the lock and without a walk in progress, so a callback may do anything.
 */
#include "cmpi/pm_via/via.h"

void via_completion_push(struct cmpi *c, struct via_completion *completion, int err)
{
	completion->err = err;
	completion->next = NULL;
	if (c->done)
		c->done_tail->next = completion;
	else
		c->done = completion;
	c->done_tail = completion;
}

/* A callback may make progress itself and so run later completions first: their order is not promised. */
int via_completion_run(struct cmpi *c)
{
	struct via_completion *completion;
	int n = 0;

	while ((completion = c->done) != NULL) {
		cmpi_done_fn *done = completion->done;
		void *arg = completion->arg;
		int err = completion->err;

		c->done = completion->next;
		if (completion->free)
			completion->free(c, completion);
		if (done) {
			via_unlock(c);
			done(arg, err);
			via_lock(c);
		}
		n++;
	}
	return n;
}
