/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations: those of a communicator start in the order of the calls, as soon as it has its group and the NIC has places; one
 * ends when C-MPI says so.  A call that waits makes progress itself; while requests are under way, opal_progress calls
 * coll_qnix_progress (request.c).
 *
 * The lock is held while something is started, not while C-MPI makes progress; an end takes no lock, since it may come
 * inside a start.
 */
#include "coll_qnix/coll_qnix.h"

#include "opal/runtime/opal_progress.h"

enum { LOOKS = 16 /* at the NIC, which rests where cores are short, before everybody else makes progress */ };

/* ---- ends ------------------------------------------------------------------------------------------------------------------- */

static void over(struct coll_qnix_op *op, int rc)
{
	struct coll_qnix_request *r = op->request;

	op->err = rc;
	if (r)
		coll_qnix_complete(r);
	else
		atomic_store_explicit(&op->done, true, memory_order_release); /* C1: pairs with the acquire in is_done */
}

static inline void add(atomic_int *count, int change)
{
	/* Relaxed: only counts.  With one thread, without a locked instruction. */
	if (opal_using_threads())
		atomic_fetch_add_explicit(count, change, memory_order_relaxed);
	else
		atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + change, memory_order_relaxed);
}

/* Places at the NIC that operations of the module have. */
static inline void count(struct coll_qnix_module *m, int change)
{
	add(&m->started, change);
	add(&coll_qnix.started, change);
}

static void tell_death(struct coll_qnix_module *m, size_t place)
{
	char name[QNIX_NAME_MAX], line[256];

	snprintf(line, sizeof(line), "%s, number %zu in %s, has died",
	         qnix_name_text(&ompi_comm_peer_lookup(m->comm, (int)place)->super.proc_name, name), place, m->comm->c_name);
	qnix_tell_loss(QNIX_COLL, line);
}

/* Said once for a communicator. */
__attribute__((noinline, cold)) void coll_qnix_tell_why(struct coll_qnix_module *m, int err)
{
	enum cmpi_why why;
	size_t place;

	if (m->told)
		return;
	m->told = true;
	why = cmpi_group_why(m->group, &place);
	if (err == CMPI_TRUNCATED)
		coll_qnix_tell(0, NULL, "a broadcast or reduction of %s has another length than this rank gave it", m->comm->c_name);
	else if (err == CMPI_TRANSPORT && why == CMPI_WHY_DIED)
		tell_death(m, place);
	else
		coll_qnix_tell(0, NULL, "collectives of %s fail: %s", m->comm->c_name,
		               err == CMPI_TRANSPORT ? cmpi_why_text(why) : cmpi_err_text(err));
}

static void ended(struct coll_qnix_op *op, int err)
{
	struct coll_qnix_module *m = op->module;
	int rc = coll_qnix_err(err);

	if (!op->barrier && OPAL_UNLIKELY(op->data.packed != NULL)) {
		int converted = coll_qnix_data_close(&op->data, op->sends, err == CMPI_OK);

		rc = rc == OMPI_SUCCESS ? converted : rc;
	}
	if (OPAL_UNLIKELY(err != CMPI_OK))
		coll_qnix_tell_why(m, err);
	over(op, rc);
}

static void done(void *arg, int err)
{
	struct coll_qnix_op *op = arg;

	count(op->module, -1);
	ended(op, err);
}

/* ---- starts; the lock is held ------------------------------------------------------------------------------------------------ */

/* A place at the NIC: always for the first of a communicator, as long as there are some for others. */
static bool may_start(struct coll_qnix_module *m)
{
	return atomic_load_explicit(&m->started, memory_order_relaxed) == 0 ||
	       atomic_load_explicit(&coll_qnix.started, memory_order_relaxed) < COLL_QNIX_MORE;
}

static inline int begin(struct coll_qnix_module *m, struct coll_qnix_op *op)
{
	if (op->barrier)
		return cmpi_barrier(m->group, done, op);
	return cmpi_bcast(m->group, (size_t)op->root, coll_qnix_bytes(&op->data), op->data.len, done, op);
}

/* What has come of it; false: not now. */
static bool begun(struct coll_qnix_module *m, struct coll_qnix_op *op, int err)
{
	if (err == CMPI_AGAIN)
		return false;
	if (err == CMPI_OK)
		count(m, 1); /* its end may have been counted already */
	else
		ended(op, err == CMPI_OVER ? CMPI_OK : err);
	return true;
}

/* False: not now. */
static bool give(struct coll_qnix_module *m, struct coll_qnix_op *op)
{
	return may_start(m) && begun(m, op, begin(m, op));
}

/* One that waits, in the state that the communicator has come to.  False: not yet. */
static bool go(struct coll_qnix_module *m, struct coll_qnix_op *op)
{
	switch ((enum coll_qnix_state)m->state) {
	case COLL_QNIX_READY:
		return give(m, op);
	case COLL_QNIX_OTHERS:
		if (op->request)
			coll_qnix_hand_on(op->request);
		else
			over(op, COLL_QNIX_HAND_ON);
		return true;
	case COLL_QNIX_FAILED:
		if (!op->barrier)
			coll_qnix_data_close(&op->data, op->sends, false);
		over(op, OMPI_ERR_UNREACH);
		return true;
	default:
		return false;
	}
}

static void pump(struct coll_qnix_module *m)
{
	struct coll_qnix_op *op;

	if (m->state == COLL_QNIX_GATHER || m->state == COLL_QNIX_JOIN)
		coll_qnix_setup_step(m);
	while ((op = m->waiting) != NULL) {
		struct coll_qnix_op *next = op->next; /* it may be gone afterwards */

		if (!go(m, op))
			return;
		m->waiting = next;
		if (!next)
			m->tail = &m->waiting;
	}
}

static void pump_all(void)
{
	struct coll_qnix_module **at = &coll_qnix.busy, *m;

	while ((m = *at) != NULL) {
		pump(m);
		if (m->waiting) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		m->listed = false;
		OBJ_RELEASE(m);
	}
}

static void line_up(struct coll_qnix_op *op)
{
	struct coll_qnix_module *m = op->module;

	op->next = NULL;
	*m->tail = op;
	m->tail = &op->next;
	if (m->listed)
		return;
	m->listed = true;
	OBJ_RETAIN(m);
	m->next = coll_qnix.busy;
	coll_qnix.busy = m;
}

/* Nothing is ahead of the next operation. */
static inline bool is_next(struct coll_qnix_module *m)
{
	/* Relaxed: the state changes under the lock. */
	return OPAL_LIKELY(!m->waiting && atomic_load_explicit(&m->state, memory_order_relaxed) == COLL_QNIX_READY);
}

void coll_qnix_start(struct coll_qnix_op *op)
{
	struct coll_qnix_module *m = op->module;

	OPAL_THREAD_LOCK(&coll_qnix.lock);
	if (OPAL_UNLIKELY(m->state == COLL_QNIX_NEW))
		coll_qnix_setup_begin(m);
	if (!is_next(m) || !give(m, op))
		line_up(op);
	OPAL_THREAD_UNLOCK(&coll_qnix.lock);
}

/* ---- progress ----------------------------------------------------------------------------------------------------------------- */

static void pump_locked(void)
{
	OPAL_THREAD_LOCK(&coll_qnix.lock);
	pump_all();
	OPAL_THREAD_UNLOCK(&coll_qnix.lock);
}

int coll_qnix_progress(void)
{
	int n = coll_qnix.cmpi ? cmpi_progress(coll_qnix.cmpi) : 0;

	if (coll_qnix.busy)
		pump_locked();
	if (coll_qnix.others)
		n += coll_qnix_look_at_others();
	return n;
}

static bool is_done(struct coll_qnix_op *op)
{
	return atomic_load_explicit(&op->done, memory_order_acquire); /* C1 */
}

static int wait(struct coll_qnix_op *op)
{
	for (unsigned i = 1; !is_done(op); i++) {
		coll_qnix_progress();
		if (i % LOOKS == 0)
			opal_progress();
	}
	return op->err;
}

static __attribute__((noinline)) int start_and_wait(struct coll_qnix_op *op)
{
	if (OPAL_UNLIKELY(op->module->state == COLL_QNIX_NEW))
		coll_qnix_setup_now(op->module);
	coll_qnix_start(op);
	return wait(op);
}

/* What has begun in coll_qnix_do; with other threads its lock is not held any more. */
static __attribute__((noinline)) int end(struct coll_qnix_op *op, int err)
{
	if (!begun(op->module, op, err))
		return start_and_wait(op);
	return wait(op);
}

/* Where no other thread is, what is over at once needs no more than this. */
int coll_qnix_do(struct coll_qnix_op *op)
{
	struct coll_qnix_module *m = op->module;
	int err;

	if (OPAL_UNLIKELY(opal_using_threads()) || !is_next(m) || !may_start(m))
		return start_and_wait(op);
	err = begin(m, op);
	return OPAL_LIKELY(err == CMPI_OVER && !op->data.packed) ? OMPI_SUCCESS : end(op, err);
}
