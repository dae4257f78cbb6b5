/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on a peer's memory.  The peer's CPU carries them out in its progress, so they are atomic against its own.
 * MCA_BTL_ATOMIC_SUPPORTS_GLOB, which says so, is not set all the same: with it osc/rdma counts this process as
 * reachable without asking, and may choose this BTL for a window with ranks on other hosts.
 */
#include "btl_qnix/btl_qnix.h"

/* CMPI_ATOMIC_CSWAP: not offered.  Logical operations are not, as the NIC has none. */
static enum cmpi_atomic atomic_of(mca_btl_base_atomic_op_t op)
{
	switch (op) {
	case MCA_BTL_ATOMIC_ADD: return CMPI_ATOMIC_ADD;
	case MCA_BTL_ATOMIC_AND: return CMPI_ATOMIC_AND;
	case MCA_BTL_ATOMIC_OR: return CMPI_ATOMIC_OR;
	case MCA_BTL_ATOMIC_XOR: return CMPI_ATOMIC_XOR;
	case MCA_BTL_ATOMIC_SWAP: return CMPI_ATOMIC_SWAP;
	case MCA_BTL_ATOMIC_MIN: return CMPI_ATOMIC_MIN;
	case MCA_BTL_ATOMIC_MAX: return CMPI_ATOMIC_MAX;
	default: return CMPI_ATOMIC_CSWAP;
	}
}

/* What distinguishes the three calls. */
struct wanted {
	enum cmpi_atomic atomic;
	uint64_t operand, compare;
	void *local;
	mca_btl_base_registration_handle_t *local_handle;
};

static int run(const struct wanted *wanted, struct mca_btl_base_endpoint_t *endpoint, uint64_t remote,
               const struct cmpi_key *key, int flags, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	struct btl_qnix_op *op = btl_qnix_op_take();

	if (!op)
		return OPAL_ERR_OUT_OF_RESOURCE;
	op->kind = BTL_QNIX_ATOMIC;
	op->atomic = wanted->atomic;
	op->operand = wanted->operand;
	op->compare = wanted->compare;
	op->local = wanted->local;
	op->local_handle = wanted->local_handle;
	op->endpoint = endpoint;
	op->remote = remote;
	op->key = *key;
	op->size = flags & MCA_BTL_ATOMIC_FLAG_32BIT ? 4 : 8;
	op->done = done;
	op->context = context;
	op->data = data;
	return btl_qnix_op_run(op);
}

/*
 * osc/rdma of Open MPI 4.1 names no handle when it means memory that this process has mapped itself: its own window, or
 * a neighbour's that Open MPI shares.  Then this process is its own peer, whatever the endpoint; it completes inside.
 */
static int run_here(const struct wanted *wanted, uint64_t address, int flags, mca_btl_base_rdma_completion_fn_t done,
                    void *context, void *data)
{
	struct cmpi_reg *reg;
	int rc;

	if (!btl_qnix.self || cmpi_mem_register(btl_qnix.cmpi, (void *)(uintptr_t)address, sizeof(uint64_t),
	                                        CMPI_ACCESS_REMOTE_ATOMIC, &reg) != CMPI_OK)
		return OPAL_ERR_NOT_AVAILABLE;
	rc = run(wanted, btl_qnix.self, address, &reg->key, flags, done, context, data);
	cmpi_mem_deregister(btl_qnix.cmpi, reg);
	return rc;
}

static int start(const struct wanted *wanted, struct mca_btl_base_endpoint_t *endpoint, uint64_t remote,
                 const void *remote_handle, int flags, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	struct cmpi_key key;

	if (flags & MCA_BTL_ATOMIC_FLAG_FLOAT)
		return OPAL_ERR_NOT_AVAILABLE;
	if (OPAL_UNLIKELY(!remote_handle))
		return run_here(wanted, remote, flags, done, context, data);
	memcpy(&key, remote_handle, sizeof(key)); /* need not be aligned */
	return run(wanted, endpoint, remote, &key, flags, done, context, data);
}

int btl_qnix_atomic_op(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, uint64_t remote,
                       mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op, uint64_t operand,
                       int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	return btl_qnix_atomic_fop(btl, endpoint, NULL, remote, NULL, remote_handle, op, operand, flags, order, done,
	                           context, data);
}

int btl_qnix_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op, uint64_t operand,
                        int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	const struct wanted wanted = {
		.atomic = atomic_of(op), .operand = operand, .local = local, .local_handle = local_handle,
	};

	(void)btl, (void)order;
	if (wanted.atomic == CMPI_ATOMIC_CSWAP)
		return OPAL_ERR_NOT_AVAILABLE;
	return start(&wanted, endpoint, remote, remote_handle, flags, done, context, data);
}

int btl_qnix_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local,
                          uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle, uint64_t compare, uint64_t value, int flags,
                          int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	const struct wanted wanted = {
		.atomic = CMPI_ATOMIC_CSWAP, .operand = value, .compare = compare, .local = local, .local_handle = local_handle,
	};

	(void)btl, (void)order;
	return start(&wanted, endpoint, remote, remote_handle, flags, done, context, data);
}
