/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a communicator gets its group, when it is first used: the addresses of all its ranks are exchanged by the collective
 * that it had before, then all join, or all leave it to the next component.  Where the first use is a call that waits, so does
 * the exchange: libnbc, once used, is polled by Open MPI for good.  Otherwise nothing here waits, and a call that does moves
 * it on with the rest.
 */
#include "coll_qnix/coll_qnix.h"

enum {
	WILLING = 1,
	AT_ONCE = 2, /* its NIC broadcasts within the call, */
	CARRIES = 4, /* and carries messages, too */
};

/* What each rank says; all decide the same from it. */
struct says {
	uint32_t flags;
	uint32_t len;
	uint8_t address[CMPI_ADDR_MAX];
};

struct coll_qnix_setup {
	ompi_request_t *request;
	atomic_bool over;  /* S1: err was written before */
	int err;
	bool counted;      /* in coll_qnix.groups */
	struct says own, all[];
};

static void state(struct coll_qnix_module *m, enum coll_qnix_state state)
{
	atomic_store_explicit(&m->state, state, memory_order_release); /* pairs with the acquire in coll_qnix_left_to_others */
}

static void no_addresses(struct coll_qnix_module *m)
{
	coll_qnix_tell(0, NULL, "collectives of %s fail: its ranks could not exchange their addresses", m->comm->c_name);
	state(m, COLL_QNIX_FAILED);
}

static void say(struct says *own)
{
	size_t len = 0;

	memset(own, 0, sizeof(*own));
	if (!coll_qnix.cmpi || coll_qnix.groups >= COLL_QNIX_GROUPS || cmpi_address(coll_qnix.cmpi, own->address, &len) != CMPI_OK)
		return;
	own->flags = WILLING | (cmpi_groups_at_once(coll_qnix.cmpi) ? AT_ONCE : 0) | (coll_qnix.carries ? CARRIES : 0);
	own->len = (uint32_t)len;
}

/* Begins with the exchange.  False: no memory. */
static bool prepare(struct coll_qnix_module *m, enum coll_qnix_state exchange)
{
	size_t n = (size_t)ompi_comm_size(m->comm);
	struct coll_qnix_setup *s = calloc(1, sizeof(*s) + n * sizeof(s->all[0]));

	m->setup = s;
	if (!s) {
		state(m, COLL_QNIX_FAILED);
		return false;
	}
	say(&s->own);
	s->counted = s->own.flags & WILLING;
	coll_qnix.groups += s->counted;
	state(m, exchange);
	return true;
}

void coll_qnix_setup_begin(struct coll_qnix_module *m)
{
	struct coll_qnix_setup *s;

	if (!prepare(m, COLL_QNIX_GATHER))
		return;
	s = m->setup;
	if (m->iallgather(&s->own, sizeof(s->own), MPI_BYTE, s->all, sizeof(s->own), MPI_BYTE, m->comm, &s->request,
	                  m->iallgather_module) != OMPI_SUCCESS)
		no_addresses(m);
}

static void joined(void *arg, int err)
{
	struct coll_qnix_setup *s = arg;

	s->err = err;
	atomic_store_explicit(&s->over, true, memory_order_release); /* S1: pairs with the acquire in coll_qnix_setup_step */
}

/* What all of them say. */
static uint32_t flags_of_all(const struct coll_qnix_setup *s, size_t n)
{
	uint32_t flags = s->own.flags;

	for (size_t i = 0; i < n; i++)
		flags &= s->all[i].flags;
	return flags;
}

/*
 * CMPI_UNREACHABLE: they are not all on one card, or not all of one version.  A rank compares each address with its own, so
 * when one finds a difference, all do.
 */
static int join(struct coll_qnix_module *m)
{
	size_t n = (size_t)ompi_comm_size(m->comm), got = 0;
	struct cmpi_proc **procs = calloc(n, sizeof(*procs));
	int err = !procs ? CMPI_RESOURCE : flags_of_all(m->setup, n) & WILLING ? CMPI_OK : CMPI_UNREACHABLE;

	for (; err == CMPI_OK && got < n; got += err == CMPI_OK)
		err = cmpi_proc_get(coll_qnix.cmpi, m->setup->all[got].address, m->setup->all[got].len, NULL, &procs[got]);
	if (err == CMPI_OK)
		err = cmpi_group_join(coll_qnix.cmpi, m->comm->c_contextid, procs, n, (size_t)ompi_comm_rank(m->comm), joined, m->setup,
		                      &m->group);
	while (got)
		cmpi_proc_put(coll_qnix.cmpi, procs[--got]); /* the group knows where they are */
	free(procs);
	return err;
}

static void decide(struct coll_qnix_module *m)
{
	uint32_t flags = flags_of_all(m->setup, (size_t)ompi_comm_size(m->comm));
	int err;

	m->at_once = flags & AT_ONCE;
	m->pair = flags & CARRIES && ompi_comm_size(m->comm) == 2;
	state(m, COLL_QNIX_JOIN);
	err = join(m);
	if (err == CMPI_OK)
		return;
	if (err == CMPI_UNREACHABLE) {
		coll_qnix_tell(10, NULL, "%s is left to the next component: its ranks are not all on one card, or one has %d groups",
		               m->comm->c_name, COLL_QNIX_GROUPS);
		coll_qnix_setup_free(m);
		state(m, COLL_QNIX_OTHERS);
		return;
	}
	coll_qnix_tell(0, NULL, "the group of %s could not be made: %s", m->comm->c_name, cmpi_err_text(err));
	state(m, COLL_QNIX_FAILED);
}

/* No other thread uses the communicator now, and no list has it: the lock is for what is not the communicator's. */
void coll_qnix_setup_now(struct coll_qnix_module *m)
{
	struct coll_qnix_setup *s;
	bool ready;
	int rc;

	OPAL_THREAD_LOCK(&coll_qnix.lock);
	ready = prepare(m, COLL_QNIX_ASK);
	OPAL_THREAD_UNLOCK(&coll_qnix.lock);
	if (!ready)
		return;
	s = m->setup;
	rc = m->allgather(&s->own, sizeof(s->own), MPI_BYTE, s->all, sizeof(s->own), MPI_BYTE, m->comm, m->allgather_module);
	OPAL_THREAD_LOCK(&coll_qnix.lock);
	if (rc == OMPI_SUCCESS)
		decide(m);
	else
		no_addresses(m);
	OPAL_THREAD_UNLOCK(&coll_qnix.lock);
}

void coll_qnix_setup_step(struct coll_qnix_module *m)
{
	struct coll_qnix_setup *s = m->setup;

	if (m->state == COLL_QNIX_GATHER && REQUEST_COMPLETE(s->request)) {
		bool good = s->request->req_status.MPI_ERROR == MPI_SUCCESS;

		ompi_request_free(&s->request);
		if (good)
			decide(m);
		else
			no_addresses(m);
	}
	/* Acquire: S1 */
	if (m->state == COLL_QNIX_JOIN && atomic_load_explicit(&s->over, memory_order_acquire)) {
		if (s->err != CMPI_OK)
			coll_qnix_tell_why(m, s->err);
		state(m, s->err == CMPI_OK ? COLL_QNIX_READY : COLL_QNIX_FAILED);
	}
}

void coll_qnix_setup_free(struct coll_qnix_module *m)
{
	if (m->setup)
		coll_qnix.groups -= m->setup->counted;
	free(m->setup);
	m->setup = NULL;
}
