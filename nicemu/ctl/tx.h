/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that execute send descriptors share: tx.c, which runs the queue and knows messages, and rdma.c, which
 * knows remote memory.
 */
#ifndef NIC_CTL_TX_H
#define NIC_CTL_TX_H

#include "nicemu/ctl/ctl.h"

enum step { STEP_DONE, STEP_AGAIN, STEP_WAIT, STEP_ERROR };

/* What one descriptor asks for, checked. */
struct work {
	struct nic_desc *desc;
	const struct nic_seg *seg; /* data segments */
	uint32_t nseg, total;
	uint32_t op;      /* NIC_CTL_* */
	uint32_t control;
};

/* tx.c */
enum step nic_tx_refuse(struct nic *nic, struct nic_txe *e, uint32_t error); /* the descriptor fails with that status */
/* The rest of the message, from e->done on, through buffers, as far as there is room. */
enum step nic_tx_parts(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_txe *e, const struct work *w,
                       enum nic_op op, uint32_t flags);

/* rdma.c */
enum step nic_rdma_write(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w);
enum step nic_rdma_read(struct nic *nic, uint32_t vi, struct nic_link *link, struct nic_txe *e, const struct work *w);

#endif
