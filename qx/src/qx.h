/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's state: one registered process.  A program has one; tests have several in one process and change between them.
 */
#ifndef QX_SRC_QX_H
#define QX_SRC_QX_H

#include <stdint.h>

#include "nicemu/mem/qnix.h"
#include "nicemu/nic.h"

enum { QX_CONTEXTS = QNIX_CONTEXTS - NIC_OPS };

struct qx {
	struct nic *nic;
	struct qnix_slot *shared;
	uint64_t send_used[2], recv_used[2]; /* a bit a context */
	char *pool;
	int pool_pages;
	int quiet; /* calls do not run the NIC: a test decides who moves when */
};

/* The process that the calls are about; returns the one before. */
struct qx *qx_select(struct qx *now);
/* qx_init in two parts, for several processes in one: NULL, or a process that is being registered; and is it? */
struct qx *qx_begin(const int *proc_name, int group_name, int group_size);
int qx_begun(struct qx *q);
void qx_end(struct qx *q);

#endif
