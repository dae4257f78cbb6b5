/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends: the short way through pt_fsend while nothing of the process is queued, else the send queue of the process, from
 * which its module takes them in order.
 */
#include "cmpi/engine/engine.h"

void mpip_enqsend(struct mpip_process *p, struct cmpi_req *req)
{
	req->next = NULL;
	if (p->sendhead)
		p->sendtail->next = req;
	else
		p->sendhead = req;
	p->sendtail = req;
	mpip_req_set(req, MPIP_REQ_SENDREADY);
	req->cancelling = false;
	req->cancel = NULL;
	p->nsends++;
}

/* The head of the queue, which its module has taken or ended. */
void mpip_deqsend(struct mpip_process *p)
{
	p->sendhead = p->sendhead->next;
	p->nsends--;
}

static inline int try(struct cmpi *c, struct cmpi_proc *to, const void *buf, size_t len, int tag, struct cmpi_comm *comm, enum cmpi_mode mode)
{
	struct mpip_process *p = mpip_process(to);

	if (__builtin_expect(p->sendhead != NULL, 0))
		return CMPI_AGAIN;
	return p->protocol->pt_fsend(c, to, buf, len, NULL, tag, comm, (int)mode | CMPI_MODE_NOWAIT);
}

static __attribute__((noinline)) int send_locked(struct cmpi *c, struct cmpi_proc *to, const void *buf, size_t len, int tag,
                                                 struct cmpi_comm *comm)
{
	struct mpip_engine *e = mpip_engine(c);
	int err;

	mpip_lock(e);
	err = try(c, to, buf, len, tag, comm, CMPI_MODE_STANDARD);
	mpip_tell(e);
	mpip_unlock(e);
	return err;
}

static __attribute__((noinline)) int tell(struct mpip_engine *e, int err)
{
	mpip_tell(e);
	return err;
}

int cmpi_send(struct cmpi *c, struct cmpi_proc *to, const void *buf, size_t len, int tag, struct cmpi_comm *comm)
{
	struct mpip_engine *e = mpip_engine(c);
	int err;

	if (__builtin_expect(e->threads, 0))
		return send_locked(c, to, buf, len, tag, comm);
	err = try(c, to, buf, len, tag, comm, CMPI_MODE_STANDARD);
	return __builtin_expect(e->done != NULL, 0) ? tell(e, err) : err;
}

static inline void sent(struct cmpi_req *req)
{
	req->status.length = req->size;
	req->status.err = CMPI_OK;
	req->status.cancelled = false;
}

int cmpi_isend(struct cmpi *c, struct cmpi_req *req)
{
	struct mpip_process *p = mpip_process(req->to);
	struct mpip_engine *e = mpip_engine(c);
	int err;

	mpip_lock(e);
	sent(req);
	err = try(c, req->to, req->buf, req->size, req->tag, req->comm, req->mode);
	if (__builtin_expect(err == CMPI_OK, 1)) {
		mpip_req_done(e, req);
	} else if (err == CMPI_AGAIN) {
		mpip_enqsend(p, req);
		err = p->protocol->pt_queuedsend(c, req->to);
	}
	mpip_tell(e);
	mpip_unlock(e);
	return err;
}
