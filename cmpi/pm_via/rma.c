/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory access: put and get as RDMA descriptors on the peer's VI, in pieces of at most the VI's transfer size, or without one.
 *
 * Ranges and rights are checked here against the peer's key, because a descriptor that the peer's NIC refuses breaks the
 * VI.  The send queue holds at most QUEUE_DESCS of these; operations with more to post wait in order at the connection.
 */
#include <stdatomic.h>
#include <string.h>

#include "cmpi/pm_via/flow.h"

enum { QUEUE_DESCS = 64, PEER_OPS = 256, TOTAL_OPS = 8192 };

/* A put or a get. */
struct transfer {
	uint64_t local, remote;
	size_t len;
	const struct cmpi_reg *reg;
	const struct cmpi_key *key;
	unsigned access;
	cmpi_done_fn *done;
	void *arg;
};

/* ---- operations ------------------------------------------------------------------------------------------------------ */

static struct via_rma *op_alloc(struct cmpi *c)
{
	struct via_rma *rma = c->free_rmas;

	if (rma) {
		c->free_rmas = (struct via_rma *)rma->completion.next;
		return rma;
	}
	if (c->nrmas >= TOTAL_OPS)
		return NULL;
	c->nrmas++;
	return via_chunk(c, sizeof(*rma));
}

static void op_free(struct cmpi *c, struct via_completion *completion)
{
	struct via_rma *rma = (struct via_rma *)completion;

	if (rma->own)
		via_dreg_deregister(c, rma->own);
	rma->own = NULL;
	completion->next = c->free_rmas ? &c->free_rmas->completion : NULL;
	c->free_rmas = rma;
}

/* An operation on `len` bytes at `local`, registered on the way; NULL: AGAIN. */
struct via_rma *via_rma_new(struct cmpi_proc *proc, uint16_t control, const void *local, size_t len)
{
	struct cmpi *c = proc->cmpi;
	struct via_rma *rma = proc->rma_ops < PEER_OPS ? op_alloc(c) : NULL;

	if (!rma)
		return NULL;
	*rma = (struct via_rma){
		.completion.free = op_free,
		.proc = proc,
		.local = (uintptr_t)local,
		.left = len,
		.control = (uint8_t)control,
	};
	rma->own = via_dreg_register(c, rma->local, len, CMPI_ACCESS_LOCAL);
	if (!rma->own) {
		op_free(c, &rma->completion);
		return NULL;
	}
	rma->local_handle = rma->own->key.handle;
	return rma;
}

static void finish(struct via_rma *rma, int err)
{
	struct cmpi *c = rma->proc->cmpi;

	rma->proc->rma_ops--;
	rma->complete = true;
	rma->completion.err = err;
	if (rma->then) {
		rma->then(rma, err);
		op_free(c, &rma->completion);
	} else if (!rma->held) {
		via_completion_push(c, &rma->completion, err);
	}
}

/* ---- descriptors ------------------------------------------------------------------------------------------------------ */

static void post_piece(struct via_rma *rma, struct via_vbuf *v, size_t len)
{
	VIP_DESCRIPTOR *desc = &v->desc;

	desc->CS.SegCount = 2;
	desc->CS.Control = rma->control;
	desc->CS.Length = (VIP_UINT32)len;
	desc->DS[0].Remote.Data.AddressBits = rma->remote;
	desc->DS[0].Remote.Handle = rma->remote_handle;
	desc->DS[0].Remote.Reserved = 0;
	desc->DS[1].Local.Data.AddressBits = rma->local;
	desc->DS[1].Local.Handle = rma->local_handle;
	desc->DS[1].Local.Length = (VIP_UINT32)len;
	v->kind = VIA_VBUF_RMA;
	v->owner = rma;
	rma->local += len;
	rma->remote += len;
	rma->left -= len;
	rma->posted++;
	rma->proc->rma_descs++;
	via_send_post(rma->proc, v);
}

static void unlink_head(struct cmpi_proc *proc)
{
	proc->rma_head = (struct via_rma *)proc->rma_head->completion.next;
}

/* Posts what the send queue takes; returns how many descriptors.  The rest goes on when some complete (via_send_reap). */
int via_rma_push(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	struct via_rma *rma;
	int n = 0;

	while ((rma = proc->rma_head) != NULL && proc->rma_descs < QUEUE_DESCS && via_live(proc)) {
		struct via_vbuf *v = via_vbuf_take(c);
		size_t len = rma->left < c->max_transfer ? rma->left : c->max_transfer;

		if (!v) {
			via_flow_push(proc);
			break;
		}
		if (len == rma->left)
			unlink_head(proc);
		post_piece(rma, v, len);
		n++;
	}
	if (!proc->rma_head)
		proc->put_off = 0;
	return n;
}

/* Of a descriptor, or a fetch. */
static int error_of(uint32_t status)
{
	return status & (VIP_STATUS_PROTECTION_ERROR | VIP_STATUS_RDMA_PROT_ERROR) ? CMPI_PROTECTION : CMPI_TRANSPORT;
}

/* A descriptor has completed. */
void via_rma_done(struct via_vbuf *v, uint32_t status)
{
	struct via_rma *rma = v->owner;

	rma->posted--;
	rma->proc->rma_descs--;
	via_vbuf_give(rma->proc->cmpi, v);
	if (status && !rma->completion.err)
		rma->completion.err = error_of(status);
	if (!rma->posted && !rma->left)
		finish(rma, rma->completion.err);
}

/* ---- fetches ---------------------------------------------------------------------------------------------------------- */

/* By value, where the NIC does that now: no descriptor, and no registration. */
static bool fetch(struct cmpi_proc *proc, const struct transfer *t)
{
	const VIPX_FETCH read = {.To = (void *)(uintptr_t)t->local, .Remote = t->remote, .RemoteHandle = t->key->handle, .Length = (VIP_UINT32)t->len};
	struct cmpi *c = proc->cmpi;
	struct via_rma *rma;

	if (t->access != CMPI_ACCESS_REMOTE_READ || t->len > VIPX_FETCH_MAX || proc->state != VIA_CONN_CONNECTED || proc->rma_head ||
	    proc->rma_ops == PEER_OPS)
		return false;
	rma = op_alloc(c);
	if (via_unlikely(!rma))
		return false;
	rma->own = NULL;
	if (VipxRdmaFetch(proc->vi, &read) != VIP_SUCCESS) {
		op_free(c, &rma->completion);
		return false;
	}
	rma->completion = (struct via_completion){.done = t->done, .arg = t->arg, .free = op_free};
	rma->proc = proc;
	rma->held = false;
	rma->then = NULL;
	if (proc->fetch_head)
		proc->fetch_tail->completion.next = &rma->completion;
	else
		proc->fetch_head = rma;
	proc->fetch_tail = rma;
	proc->rma_ops++;
	via_sending(proc);
	c->near_left = 0; /* the next look is at everything, this, too */
	return true;
}

static void fetch_ended(struct cmpi_proc *proc, int err)
{
	struct via_rma *rma = proc->fetch_head;

	proc->fetch_head = (struct via_rma *)rma->completion.next;
	finish(rma, err);
}

int via_fetch_reap(struct cmpi_proc *proc)
{
	int n = 0;

	if (!proc->fetch_head)
		return 0;
	for (uint32_t ended = VipxFetched(proc->vi, NULL); proc->fetch_head && (int32_t)(ended - proc->fetched) > 0; proc->fetched++, n++)
		fetch_ended(proc, CMPI_OK);
	return n;
}

/* The connection is down, its queue empty: what was not posted fails, and so does what was fetched in vain. */
void via_rma_fail(struct cmpi_proc *proc)
{
	struct via_rma *rma;

	if (proc->fetch_head) {
		VIP_UINT32 status = 0;

		VipxFetched(proc->vi, &status);
		fetch_ended(proc, error_of(status));
	}
	while (proc->fetch_head)
		fetch_ended(proc, CMPI_TRANSPORT);

	while ((rma = proc->rma_head) != NULL) {
		unlink_head(proc);
		rma->left = 0;
		rma->completion.err = CMPI_TRANSPORT;
		if (!rma->posted)
			finish(rma, CMPI_TRANSPORT);
	}
}

static void enqueue(struct via_rma *rma)
{
	struct cmpi_proc *proc = rma->proc;

	proc->rma_ops++;
	rma->completion.next = NULL;
	if (proc->rma_head)
		proc->rma_tail->completion.next = &rma->completion;
	else
		proc->rma_head = rma;
	proc->rma_tail = rma;
}

void via_rma_start(struct via_rma *rma)
{
	enqueue(rma);
	if (via_live(rma->proc))
		via_rma_push(rma->proc);
}

void via_rma_start_later(struct via_rma *rma)
{
	enqueue(rma);
	via_flow_push(rma->proc);
	rma->proc->cmpi->near_left = 0; /* the next look is at everything, this, too */
}

/* ---- put and get ------------------------------------------------------------------------------------------------------- */

static inline bool inside(const struct cmpi_key *key, uint64_t addr, size_t len)
{
	return addr >= key->base && len <= key->len && addr - key->base <= key->len - len;
}

/* Is it what the key, and the registration, allow? */
static inline bool granted(const struct transfer *t)
{
	return (t->key->access & t->access) && inside(t->key, t->remote, t->len) && (!t->reg || inside(&t->reg->key, t->local, t->len));
}

/* CMPI_OK with *out NULL: queued, `done` will run from progress. */
static int start(struct cmpi_proc *proc, const struct transfer *t, struct via_rma **out)
{
	struct cmpi *c = proc->cmpi;
	struct via_rma *rma;
	int err = via_conn_ready(proc);

	if (err != CMPI_OK)
		return err;
	rma = proc->rma_ops < PEER_OPS ? op_alloc(c) : NULL;
	if (!rma)
		return CMPI_AGAIN;
	*rma = (struct via_rma){
		.completion = {.done = t->done, .arg = t->arg, .free = op_free},
		.proc = proc,
		.local = t->local,
		.remote = t->remote,
		.remote_handle = t->key->handle,
		.left = t->len,
		.control = t->access == CMPI_ACCESS_REMOTE_WRITE ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD,
		.held = true,
	};
	if (!t->reg)
		t = NULL, rma->own = via_dreg_register(c, rma->local, rma->left, CMPI_ACCESS_LOCAL);
	if (!t && !rma->own) {
		op_free(c, &rma->completion);
		return CMPI_RESOURCE;
	}
	rma->local_handle = t ? t->reg->key.handle : rma->own->key.handle;
	via_rma_start(rma);
	rma->held = false;
	*out = rma->complete ? rma : NULL;
	return CMPI_OK;
}

static int self_copy(struct cmpi *c, const struct transfer *t)
{
	void *local = (void *)(uintptr_t)t->local, *remote = (void *)(uintptr_t)t->remote;

	if (!via_dreg_check(c, t->key->handle, t->remote, t->len, t->access))
		return CMPI_PROTECTION;
	if (t->access == CMPI_ACCESS_REMOTE_WRITE)
		memmove(remote, local, t->len);
	else
		memmove(local, remote, t->len);
	return CMPI_OK;
}

/* The bit of lengths like this one. */
static inline uint32_t lengths(size_t len)
{
	return 1u << (31 - __builtin_clz((uint32_t)len | 1));
}

/* Clears some, and sets some; under the lock. */
static inline void hint(_Atomic uint32_t *word, uint32_t clear, uint32_t set)
{
	atomic_store_explicit(word, (atomic_load_explicit(word, memory_order_relaxed) & ~clear) | set, memory_order_relaxed);
}

static inline void count(struct cmpi *c, const struct transfer *t)
{
	if (t->access == CMPI_ACCESS_REMOTE_WRITE) {
		VIA_COUNT(c, puts);
		VIA_COUNT_ADD(c, put_bytes, t->len);
	} else {
		VIA_COUNT(c, gets);
		VIA_COUNT_ADD(c, get_bytes, t->len);
	}
}

static int transfer(struct cmpi_proc *proc, const struct transfer *t)
{
	struct cmpi *c = proc->cmpi;
	struct via_rma *complete = NULL;
	int err, result = CMPI_OK;

	if (!granted(t) || t->key->check != via_key_check(t->key)) /* a handle that is not the key's would break the VI */
		return CMPI_PROTECTION;
	via_lock(c);
	if (!t->len)
		err = CMPI_OK;
	else if (proc->self)
		err = self_copy(c, t);
	else
		err = fetch(proc, t) ? CMPI_OK : start(proc, t, &complete);
	if (err == CMPI_OK)
		count(c, t);
	else if (err == CMPI_AGAIN)
		VIA_COUNT(c, again);
	if (complete) {
		hint(t->access == CMPI_ACCESS_REMOTE_WRITE ? &proc->put_lengths : &proc->get_lengths, lengths(t->len), 0);
		__atomic_store_n(&c->moved, true, __ATOMIC_RELAXED); /* see via_wait_spared */
		result = complete->completion.err;
		op_free(c, &complete->completion);
	}
	via_unlock(c);
	if (err == CMPI_OK && (complete || !t->len || proc->self) && t->done)
		t->done(t->arg, result);
	return err;
}

int cmpi_put(struct cmpi_proc *proc, const void *src, const struct cmpi_reg *local, uint64_t dst, const struct cmpi_key *key,
             size_t len, cmpi_done_fn *done, void *arg)
{
	return transfer(proc, &(struct transfer){(uintptr_t)src, dst, len, local, key, CMPI_ACCESS_REMOTE_WRITE, done, arg});
}

int cmpi_get(struct cmpi_proc *proc, void *dst, const struct cmpi_reg *local, uint64_t src, const struct cmpi_key *key,
             size_t len, cmpi_done_fn *done, void *arg)
{
	return transfer(proc, &(struct transfer){(uintptr_t)dst, src, len, local, key, CMPI_ACCESS_REMOTE_READ, done, arg});
}

/* ---- in the NIC's command ---------------------------------------------------------------------------------------------- */

/*
 * Nothing is under way, so nothing needs waiting for: the next look asks the nearest peer only, unless so many have since everybody
 * was asked that nobody else would ever be.
 */
static inline void look_quickly(struct cmpi *c)
{
	__atomic_store_n(&c->moved, true, __ATOMIC_RELAXED); /* see via_wait_spared */
	if (c->near_left < 2 && c->quick) {
		c->quick--;
		c->near_left = 2;
	}
}

/* False: not this way, and nothing has happened that a transfer by descriptor would not do again. */
static inline bool now(struct cmpi_proc *proc, const struct transfer *t, VIP_UINT32 operation)
{
	struct cmpi *c = proc->cmpi;
	VIPX_RDMA command = {.Local = t->local, .Remote = t->remote, .RemoteHandle = t->key->handle, .Length = (VIP_UINT32)t->len, .Operation = operation};

	if (via_unlikely(proc->state != VIA_CONN_CONNECTED || proc->rma_head))
		return false;
	command.LocalHandle = t->reg ? t->reg->key.handle : via_dreg_handle(c, t->local, t->len);
	if (via_unlikely(!command.LocalHandle || VipxRdmaNow(proc->vi, &command) != VIP_SUCCESS))
		return false;
	count(c, t);
	look_quickly(c);
	return true;
}

/*
 * What the NIC did not do in the command it will hardly do so the next time: with lengths like that it is asked again only when a
 * descriptor was complete at once (`transfer`).  A hint, so it is looked at without the lock.
 */
static inline int transfer_now(struct cmpi_proc *proc, const struct transfer *t, _Atomic uint32_t *descriptors, VIP_UINT32 operation)
{
	bool over;

	if (via_unlikely(!t->len || t->len > proc->cmpi->max_transfer) ||
	    atomic_load_explicit(descriptors, memory_order_relaxed) & lengths(t->len) || via_unlikely(!granted(t)))
		return CMPI_AGAIN;
	via_lock(proc->cmpi);
	over = now(proc, t, operation);
	if (via_unlikely(!over))
		hint(descriptors, 0, lengths(t->len));
	via_unlock(proc->cmpi);
	return over ? CMPI_OK : CMPI_AGAIN;
}

int cmpi_put_now(struct cmpi_proc *proc, const void *src, const struct cmpi_reg *local, uint64_t dst, const struct cmpi_key *key, size_t len)
{
	const struct transfer t = {.local = (uintptr_t)src, .remote = dst, .len = len, .reg = local, .key = key, .access = CMPI_ACCESS_REMOTE_WRITE};

	return transfer_now(proc, &t, &proc->put_lengths, VIP_CONTROL_OP_RDMAWRITE);
}

int cmpi_get_now(struct cmpi_proc *proc, void *dst, const struct cmpi_reg *local, uint64_t src, const struct cmpi_key *key, size_t len)
{
	const struct transfer t = {.local = (uintptr_t)dst, .remote = src, .len = len, .reg = local, .key = key, .access = CMPI_ACCESS_REMOTE_READ};

	return transfer_now(proc, &t, &proc->get_lengths, VIP_CONTROL_OP_RDMAREAD);
}

/* ---- by value, without a completion --------------------------------------------------------------------------------------- */

int cmpi_put_post(struct cmpi_proc *proc, const void *src, uint64_t dst, const struct cmpi_key *key, size_t len)
{
	const struct transfer t = {.remote = dst, .len = len, .key = key, .access = CMPI_ACCESS_REMOTE_WRITE};
	const VIPX_POSTED write = {.Data = src, .Remote = dst, .RemoteHandle = key->handle, .Length = (VIP_UINT32)len};
	struct cmpi *c = proc->cmpi;
	bool posted;

	if (via_unlikely(!len || len > VIPX_POSTED_MAX || !granted(&t)))
		return CMPI_AGAIN;
	via_lock(c);
	posted = proc->state == VIA_CONN_CONNECTED && !proc->rma_head && VipxRdmaPost(proc->vi, &write) == VIP_SUCCESS;
	if (posted) {
		count(c, &t);
		__atomic_store_n(&c->moved, true, __ATOMIC_RELAXED); /* see via_wait_spared */
		__atomic_store_n(&c->posted, true, __ATOMIC_RELAXED); /* who relies on it has posted himself, or knows from who has */
		proc->posted = c->posts;
		c->near_left = 0; /* they are in place when a look at everything says so */
	}
	via_unlock(c);
	return posted ? CMPI_OK : CMPI_AGAIN;
}

bool cmpi_posted(struct cmpi *c)
{
	bool posted;

	if (!__atomic_load_n(&c->posted, __ATOMIC_RELAXED))
		return false;
	via_lock(c);
	posted = VipxPostedDone(c->nic) == VIP_NOT_DONE;
	__atomic_store_n(&c->posted, posted, __ATOMIC_RELAXED); /* under the lock, as when it is set */
	if (posted)
		c->near_left = 0; /* likewise */
	else
		c->posts++;
	via_unlock(c);
	return posted;
}

/* `single`: as VipxRatherSent. */
bool via_rather_sent(struct cmpi_proc *proc, const void *data, size_t len, bool *single)
{
	VIP_BOOLEAN first = single && *single ? VIP_TRUE : VIP_FALSE;
	bool sent = proc->state == VIA_CONN_CONNECTED && VipxRatherSent(proc->vi, data, len, single ? &first : NULL) == VIP_SUCCESS;

	if (single)
		*single = first != VIP_FALSE;
	return sent;
}

bool cmpi_rather_sent(struct cmpi_proc *proc, const void *data, size_t len)
{
	bool sent;

	via_lock(proc->cmpi);
	sent = via_rather_sent(proc, data, len, NULL);
	via_unlock(proc->cmpi);
	return sent;
}

size_t cmpi_rdma_max(const struct cmpi *c)
{
	return c->max_transfer;
}
