/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that end before their time: cancelled by the caller, or failed because the transport is broken.  What is the
 * module's already is cancelled by the module, if it can (req->cancel).
 */
#include "cmpi/engine/engine.h"

/* Takes a send out of the queue of its process. */
static void unqueue(struct cmpi *c, struct cmpi_req *req)
{
	struct mpip_process *p = mpip_process(req->to);
	struct cmpi_req *before = NULL;

	for (struct cmpi_req *at = p->sendhead; at != req; at = at->next)
		before = at;
	*(before ? &before->next : &p->sendhead) = req->next;
	if (p->sendtail == req)
		p->sendtail = before;
	p->nsends--;
	if (!p->sendhead)
		p->protocol->pt_dequeuedsend(c, req->to);
}

/* Takes a request out of the queue of the engine that it is in; false: it is in none. */
static bool take_out(struct cmpi *c, struct cmpi_req *req)
{
	if (req->state == MPIP_REQ_SENDREADY)
		unqueue(c, req);
	else if (req->state == MPIP_REQ_RECVHEAD)
		mpip_unpost(c, req);
	else
		return false;
	mpip_req_set(req, MPIP_REQ_RECEIVING);
	return true;
}

void cmpi_cancel(struct cmpi *c, struct cmpi_req *req)
{
	struct mpip_engine *e = mpip_engine(c);

	mpip_lock(e);
	if (take_out(c, req)) {
		req->status = (struct cmpi_status){.source = req->source, .tag = req->tag, .cancelled = true};
		mpip_req_end(e, req, CMPI_OK);
	} else if (req->state == MPIP_REQ_SENDING && req->cancel && !req->cancelling) {
		req->cancelling = true;
		req->cancel(c, req);
	}
	mpip_tell(e);
	mpip_unlock(e);
}

/* pt_error_request of every module: a request that the engine still holds fails. */
int mpip_error_request(struct cmpi *c, struct cmpi_req *req)
{
	if (!take_out(c, req))
		return CMPI_PARAMETER;
	req->status.cancelled = false;
	mpip_req_end(mpip_engine(c), req, CMPI_TRANSPORT);
	return CMPI_OK;
}
