/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that peers may reach, and put and get between such memories.  A registration handle is C-MPI's registration;
 * its first btl_registration_handle_size bytes, the key, are what travels to the peer.  Operations complete in progress
 * or inside the call that starts them, which ob1 and osc/rdma both expect of BTLs that copy between processes.
 */
#include "btl_qnix/btl_qnix.h"

#include <stddef.h>

#include "opal/runtime/opal_progress.h"

_Static_assert(offsetof(struct cmpi_reg, key) == 0, "the key is what travels of a handle");

enum { OTHERS_EVERY = 16 }; /* flushes between two calls of Open MPI's progress, when nothing is under way */

static unsigned access_of(uint32_t flags)
{
	unsigned access = CMPI_ACCESS_LOCAL;

	if (flags & MCA_BTL_REG_FLAG_REMOTE_READ)
		access |= CMPI_ACCESS_REMOTE_READ;
	if (flags & MCA_BTL_REG_FLAG_REMOTE_WRITE)
		access |= CMPI_ACCESS_REMOTE_WRITE;
	if (flags & MCA_BTL_REG_FLAG_REMOTE_ATOMIC)
		access |= CMPI_ACCESS_REMOTE_ATOMIC;
	return access;
}

mca_btl_base_registration_handle_t *btl_qnix_register_mem(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *endpoint, void *base,
                                                          size_t size, uint32_t flags)
{
	struct cmpi_reg *reg;

	(void)btl;
	/* So ob1 asks, before it decides how a message goes to that peer: what has no handle is sent.  Windows ask for more rights, of any peer. */
	if (flags == MCA_BTL_REG_FLAG_REMOTE_READ && endpoint != MCA_BTL_ENDPOINT_ANY && endpoint->am && cmpi_rather_sent(endpoint->am, base, size))
		return NULL;
	if (!size || cmpi_mem_register(btl_qnix.cmpi, base, size, access_of(flags), &reg) != CMPI_OK)
		return NULL;
	return (mca_btl_base_registration_handle_t *)reg;
}

int btl_qnix_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
	(void)btl;
	cmpi_mem_deregister(btl_qnix.cmpi, (struct cmpi_reg *)handle);
	return OPAL_SUCCESS;
}

struct btl_qnix_op *btl_qnix_op_take(void)
{
	struct btl_qnix_op *op = (struct btl_qnix_op *)opal_free_list_get(&btl_qnix.ops);

	if (OPAL_LIKELY(op)) {
		op->key_state = BTL_QNIX_KEY_GIVEN;
		atomic_fetch_add_explicit(&btl_qnix.under_way, 1, memory_order_relaxed); /* by the thread that will flush, or before it knows */
	}
	return op;
}

/* It has ended, or did not start. */
static void count_out(void)
{
	atomic_fetch_sub_explicit(&btl_qnix.under_way, 1, memory_order_release); /* pairs with btl_qnix_flush */
}

/*
 * The caller has had his answer long ago, and osc/rdma does not look at how an operation ended: without a word the program would go on with
 * what is not there.
 */
static void tell_refused(const struct btl_qnix_op *op)
{
	static const char *const what[] = {[BTL_QNIX_PUT] = "put", [BTL_QNIX_GET] = "get", [BTL_QNIX_ATOMIC] = "atomic operation"};
	char name[QNIX_NAME_MAX];

	btl_qnix_tell(0, "refused", "%s of %zu bytes at address 0x%llx of %s: no memory is registered there", what[op->kind], op->size,
	              (unsigned long long)op->remote, qnix_name_text(&op->endpoint->name, name));
}

/* The operation returns to its list first: the callback may start the next one. */
void btl_qnix_op_done(void *arg, int err)
{
	struct btl_qnix_op *op = arg;
	struct mca_btl_base_endpoint_t *endpoint = op->endpoint;
	mca_btl_base_registration_handle_t *handle = op->local_handle;
	mca_btl_base_rdma_completion_fn_t done = op->done;
	void *local = op->local, *context = op->context, *data = op->data;

	if (OPAL_UNLIKELY(err == CMPI_PROTECTION))
		tell_refused(op);
	opal_free_list_return(&btl_qnix.ops, &op->super);
	err = OPAL_LIKELY(err == CMPI_OK) ? OPAL_SUCCESS : btl_qnix_failed(endpoint, err);
	if (done)
		done(&btl_qnix.super, endpoint, local, handle, context, data, err);
	count_out();
}

static int start(struct btl_qnix_op *op, struct cmpi_proc *proc)
{
	const struct cmpi_reg *reg = (const struct cmpi_reg *)op->local_handle;

	switch (op->kind) {
	case BTL_QNIX_PUT:
		return cmpi_put(proc, op->local, reg, op->remote, &op->key, op->size, btl_qnix_op_done, op);
	case BTL_QNIX_GET:
		return cmpi_get(proc, op->local, reg, op->remote, &op->key, op->size, btl_qnix_op_done, op);
	case BTL_QNIX_ATOMIC:
		return cmpi_atomic(proc, op->atomic, op->size, op->remote, &op->key, op->operand, op->compare, op->local,
		                   btl_qnix_op_done, op);
	}
	return CMPI_PARAMETER;
}

static void key_there(void *arg, int err)
{
	struct btl_qnix_op *op = arg;

	op->key_state = BTL_QNIX_KEY_ASKED;
	if (err == CMPI_OK)
		err = btl_qnix_op_start(op);
	if (btl_qnix_has_to_wait(err))
		btl_qnix_op_wait(op);
	else if (err != CMPI_OK)
		btl_qnix_op_done(op, err);
}

/*
 * A put or get that is refused at once asks the owner for the key.  An atomic is never: there the owner looks at its own memory.  After CMPI_OK the
 * operation may be gone already.
 */
int btl_qnix_op_start(struct btl_qnix_op *op)
{
	struct cmpi_proc *proc = op->endpoint->proc;
	int err = CMPI_PROTECTION;

	if (OPAL_UNLIKELY(!proc))
		return CMPI_UNREACHABLE;
	if (OPAL_LIKELY(op->key_state != BTL_QNIX_KEY_WANTED))
		err = start(op, proc);
	if (OPAL_LIKELY(err != CMPI_PROTECTION) || op->key_state == BTL_QNIX_KEY_ASKED || op->kind == BTL_QNIX_ATOMIC)
		return err;
	op->key_state = BTL_QNIX_KEY_WANTED;
	return cmpi_key_ask(proc, op->remote, op->size, op->kind == BTL_QNIX_PUT ? CMPI_ACCESS_REMOTE_WRITE : CMPI_ACCESS_REMOTE_READ, &op->key,
	                    key_there, op);
}

/* What cannot start now waits, in order; after CMPI_OK the operation may be gone already. */
int btl_qnix_op_run(struct btl_qnix_op *op)
{
	struct mca_btl_base_endpoint_t *endpoint = op->endpoint;
	int err = btl_qnix_op_start(op);

	if (OPAL_LIKELY(err == CMPI_OK))
		return OPAL_SUCCESS;
	if (btl_qnix_has_to_wait(err)) {
		btl_qnix_op_wait(op);
		return OPAL_SUCCESS;
	}
	opal_free_list_return(&btl_qnix.ops, &op->super);
	count_out();
	return btl_qnix_failed(endpoint, err);
}

/* What the NIC does all of within the call needs no operation. */
static inline int start_now(enum btl_qnix_kind kind, struct cmpi_proc *proc, void *local, const struct cmpi_reg *reg, uint64_t remote,
                            const struct cmpi_key *key, size_t size)
{
	if (OPAL_UNLIKELY(!proc))
		return CMPI_AGAIN;
	return kind == BTL_QNIX_PUT ? cmpi_put_now(proc, local, reg, remote, key, size) : cmpi_get_now(proc, local, reg, remote, key, size);
}

static inline int transfer(enum btl_qnix_kind kind, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                           mca_btl_base_registration_handle_t *local_handle, const void *remote_handle, size_t size,
                           mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	struct btl_qnix_op *op;
	struct cmpi_key key;

	memcpy(&key, remote_handle, sizeof(key));
	if (start_now(kind, endpoint->proc, local, (const struct cmpi_reg *)local_handle, remote, &key, size) == CMPI_OK) {
		if (done)
			done(&btl_qnix.super, endpoint, local, local_handle, context, data, OPAL_SUCCESS);
		return OPAL_SUCCESS;
	}
	if (kind == BTL_QNIX_PUT && !done && OPAL_LIKELY(endpoint->proc) && cmpi_put_post(endpoint->proc, local, remote, &key, size) == CMPI_OK)
		return OPAL_SUCCESS; /* who wants no word of it, as osc/rdma for MPI_Put, flushes before he relies on it */
	op = btl_qnix_op_take();
	if (OPAL_UNLIKELY(!op))
		return OPAL_ERR_OUT_OF_RESOURCE;
	op->kind = kind;
	op->endpoint = endpoint;
	op->local = local;
	op->local_handle = local_handle;
	op->remote = remote;
	op->key = key;
	op->size = size;
	op->done = done;
	op->context = context;
	op->data = data;
	return btl_qnix_op_run(op);
}

int btl_qnix_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                 mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
                 size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	(void)btl, (void)flags, (void)order;
	return transfer(BTL_QNIX_PUT, endpoint, local, remote, local_handle, remote_handle, size, done, context, data);
}

int btl_qnix_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                 mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
                 size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
	(void)btl, (void)flags, (void)order;
	return transfer(BTL_QNIX_GET, endpoint, local, remote, local_handle, remote_handle, size, done, context, data);
}

/*
 * osc/rdma calls this where it would otherwise call progress once, and then for as long as it counts operations of a window.  Mostly nothing is
 * under way: transfers are over at once, or never came here, because the window is in memory that this process has mapped itself.  Then only
 * the NIC is looked at; everything else that has work in progress, which Open MPI's call knows, comes by now and then.  Operations of ob1 are
 * waited for as well, as by the other BTLs that have a flush: they need no more of the peer than those of a window.
 */
int btl_qnix_flush(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
	/* Relaxed, and in two steps: a number of two threads that counts as one is no loss. */
	unsigned flushes = atomic_load_explicit(&btl_qnix.flushes, memory_order_relaxed) + 1;

	(void)btl, (void)endpoint;
	atomic_store_explicit(&btl_qnix.flushes, flushes, memory_order_relaxed);
	cmpi_at_work(btl_qnix.cmpi);
	if (flushes % OTHERS_EVERY)
		btl_qnix_progress();
	else
		opal_progress();
	while (OPAL_UNLIKELY(atomic_load_explicit(&btl_qnix.under_way, memory_order_acquire) || cmpi_posted(btl_qnix.cmpi))) /* pairs with count_out */
		opal_progress();
	return OPAL_SUCCESS;
}
