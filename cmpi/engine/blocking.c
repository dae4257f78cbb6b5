/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls: a request on the stack, and progress until it is done.  For callers that have nothing else to make progress
 * on; Open MPI, which has, waits by itself.
 */
#include <sched.h>

#include "cmpi/engine/engine.h"

enum { SPINS = 64 }; /* idle passes before another process gets the processor */

int mpip_progress_blk(struct cmpi *c, struct cmpi_req *req, int pollall)
{
	uint32_t idle = 0;

	while (!cmpi_is_done(req)) {
		if (mpip_engine(c)->protocol->pt_progress_nblk(c, pollall))
			idle = 0;
		else if (++idle >= SPINS)
			sched_yield();
	}
	return req->status.err;
}

int cmpi_wait(struct cmpi *c, struct cmpi_req *req)
{
	return mpip_engine(c)->protocol->pt_progress_blk(c, req, 1);
}

static size_t bytes(size_t count, const struct cmpi_type *type)
{
	return type ? count * type->size : count;
}

/* Runs what takes the lock itself, and waits; the lock is held before and after. */
static int start_and_wait(struct cmpi *c, struct cmpi_req *req, int (*start)(struct cmpi *, struct cmpi_req *))
{
	struct mpip_engine *e = mpip_engine(c);
	int err;

	mpip_unlock(e);
	err = start(c, req);
	if (err == CMPI_OK)
		err = cmpi_wait(c, req);
	mpip_lock(e);
	return err;
}

int mpip_fsend(struct cmpi *c, struct cmpi_proc *to, const void *buf, size_t count, const struct cmpi_type *type, int tag,
               struct cmpi_comm *comm, int mode)
{
	struct cmpi_req req = {
		.to = to, .buf = (void *)buf, .size = bytes(count, type), .tag = tag, .comm = comm, .mode = (enum cmpi_mode)(mode & 0xff),
	};

	return start_and_wait(c, &req, cmpi_isend);
}

int mpip_frecv(struct cmpi *c, struct cmpi_proc *from, void *buf, size_t count, const struct cmpi_type *type, int tag,
               struct cmpi_comm *comm, struct cmpi_status *status)
{
	struct cmpi_req req = {
		.to = from, .buf = buf, .size = bytes(count, type), .source = status->source, .tag = tag, .comm = comm,
	};
	int err = start_and_wait(c, &req, cmpi_irecv);

	*status = req.status;
	return err;
}

int mpip_urecv(struct cmpi *c, struct cmpi_proc *from, struct cmpi_message *message, void *buf, size_t count,
               const struct cmpi_type *type, struct cmpi_comm *comm, struct cmpi_status *status)
{
	struct cmpi_req req = {
		.to = from, .buf = buf, .size = bytes(count, type), .comm = comm, .state = MPIP_REQ_RECEIVING,
	};
	struct mpip_engine *e = mpip_engine(c);
	int err = mpip_process(from)->protocol->pt_uirecv(c, from, message, &req);

	mpip_tell(e);
	if (err == CMPI_OK) {
		mpip_unlock(e);
		err = cmpi_wait(c, &req);
		mpip_lock(e);
	}
	*status = req.status;
	return err;
}

/* Nothing of this process is posted or queued, and nobody else calls. */
static bool is_quiet(const struct mpip_engine *e)
{
	return !e->threads && !e->wild && !e->nposted[MPIP_EXACT];
}

int cmpi_recv(struct cmpi *c, struct cmpi_req *req)
{
	struct mpip_engine *e = mpip_engine(c);
	struct cmpi_message *message;
	int err = CMPI_RESOURCE;

	mpip_lock(e);
	req->status.source = req->source;
	if (!mpip_search_unexpected(e, mpip_req_key(req), &message)) {
		mpip_unlock(e);
		return err;
	}
	if (message) {
		mpip_dequnexpected(e, message);
		err = mpip_process(message->from)->protocol->pt_urecv(c, message->from, message, req->buf, req->size, NULL, req->comm,
		                                                      &req->status);
	} else if (req->to && is_quiet(e)) {
		err = mpip_process(req->to)->protocol->pt_frecv(c, req->to, req->buf, req->size, NULL, req->tag, req->comm,
		                                                &req->status);
	} else {
		err = start_and_wait(c, req, cmpi_irecv);
	}
	mpip_unlock(e);
	return err;
}
