/* SPDX-License-Identifier: BSD-3-Clause */
/* A call that is owed to the user; part of the operation it ends. */
#ifndef VIA_COMPLETION_H
#define VIA_COMPLETION_H

#include "cmpi/cmpi.h"

struct via_completion {
	struct via_completion *next;
	cmpi_done_fn *done;
	void *arg;
	int err;
	/* Frees what the completion is part of, before `done` runs; NULL: nothing to free. */
	void (*free)(struct cmpi *cmpi, struct via_completion *self);
};

#endif
