/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol module's table: 26 functions, named mpip_via_ after the module.  Those that move messages are in eager.c and
 * adi.c; the rest is a few lines over the other files.
 */
#include "cmpi/pm_via/via.h"

#define UNUSED __attribute__((unused))

static const struct cmpi_protocol_data *data(struct cmpi *c)
{
	uint32_t active = 0;

	via_lock(c);
	for (const struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		active += proc->messages + proc->rma_ops + proc->atomics;
	c->data.pt_nactv = active;
	via_unlock(c);
	return &c->data;
}

/* ---- life --------------------------------------------------------------------------------------------------------------------- */

static int mpip_via_initialize(struct cmpi *c)
{
	c->data.pt_loaded = 1;
	return CMPI_OK;
}

static int mpip_via_finalize(struct cmpi *c)
{
	bool busy = false;

	via_lock(c);
	for (const struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		busy |= proc->sends_posted || proc->process.sendhead || via_conn_pending(proc);
	via_unlock(c);
	if (!busy)
		c->data.pt_loaded = 0;
	return busy ? CMPI_AGAIN : CMPI_OK;
}

/* ---- connections --------------------------------------------------------------------------------------------------------------- */

static int mpip_via_initconns(struct cmpi *c, struct cmpi_task *task UNUSED, const void **env)
{
	*env = &c->address;
	return CMPI_OK;
}

/* The peers of a task that are on this card; those on another stay NULL. */
static int mpip_via_addconns(struct cmpi *c, struct cmpi_task *task)
{
	for (size_t i = 0; i < task->n; i++) {
		int err = cmpi_proc_get(c, task->address[i], CMPI_ADDR_MAX, NULL, &task->procs[i]);

		if (err == CMPI_UNREACHABLE)
			task->procs[i] = NULL;
		else if (err != CMPI_OK)
			return err;
	}
	return CMPI_OK;
}

static int mpip_via_completeconns(struct cmpi *c, struct cmpi_task *task)
{
	return c->params.connect_all ? cmpi_connect_all(c, task->procs, task->n) : CMPI_OK;
}

static int mpip_via_makeconns(struct cmpi *c, struct cmpi_task *task)
{
	int err = mpip_via_addconns(c, task);

	return err == CMPI_OK ? mpip_via_completeconns(c, task) : err;
}

static int mpip_via_remconns(struct cmpi *c, struct cmpi_proc **procs, int n)
{
	for (int i = 0; i < n; i++)
		if (procs[i])
			cmpi_proc_put(c, procs[i]);
	return CMPI_OK;
}

static int mpip_via_closeconns(struct cmpi *c, struct cmpi_proc **procs, int n)
{
	via_lock(c);
	if (!procs)
		for (struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
			via_conn_close(proc);
	for (int i = 0; procs && i < n; i++)
		if (procs[i])
			via_conn_close(procs[i]);
	via_unlock(c);
	return CMPI_OK;
}

static int mpip_via_undoconns(struct cmpi *c, struct cmpi_task *task)
{
	return mpip_via_remconns(c, task->procs, (int)task->n);
}

static int mpip_via_ping(struct cmpi *c, struct cmpi_comm *comm UNUSED, int timeout UNUSED)
{
	bool lost = false;

	via_lock(c);
	for (const struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		lost |= proc->state == VIA_CONN_LOST || proc->state == VIA_CONN_BREAKING;
	via_unlock(c);
	return lost ? CMPI_TRANSPORT : CMPI_OK;
}

/* ---- progress --------------------------------------------------------------------------------------------------------------------- */

static int mpip_via_progress_nblk(struct cmpi *c, int pollall UNUSED)
{
	return cmpi_progress(c);
}

static int mpip_via_getevents(struct cmpi *c UNUSED, void **events, uint32_t *a, uint32_t *b, uint32_t *n)
{
	*events = NULL;
	*a = *b = *n = 0;
	return CMPI_OK;
}

static int mpip_via_getpolls(struct cmpi *c UNUSED, struct pollfd **fds, int *n, int *timeout)
{
	*fds = NULL;
	*n = 0;
	*timeout = 0;
	return CMPI_OK;
}

/* ---- what the engine tells of its queues: counted, because every pass polls every connection anyway ------------------------- */

static int count(uint32_t *counter, int by)
{
	if (by < 0 && !*counter)
		return CMPI_PARAMETER;
	*counter += (uint32_t)by;
	return CMPI_OK;
}

static int mpip_via_postedreceive(struct cmpi *c UNUSED, struct cmpi_proc *proc)
{
	return count(&proc->process.nrecvs, 1);
}

static int mpip_via_unpostedreceive(struct cmpi *c UNUSED, struct cmpi_proc *proc)
{
	return count(&proc->process.nrecvs, -1);
}

/* Nothing is left to be tried again; the flow list notices by itself. */
static int mpip_via_dequeuedsend(struct cmpi *c UNUSED, struct cmpi_proc *proc)
{
	return proc->process.sendhead ? CMPI_PARAMETER : CMPI_OK;
}

static int mpip_via_postedrcvany(struct cmpi *c UNUSED, struct cmpi_comm *comm)
{
	return count(&comm->nrcvany, 1);
}

static int mpip_via_unpostedrcvany(struct cmpi *c UNUSED, struct cmpi_comm *comm)
{
	return count(&comm->nrcvany, -1);
}

static int mpip_via_matchedrcvany(struct cmpi *c UNUSED, struct cmpi_comm *comm, struct cmpi_proc *proc UNUSED)
{
	return count(&comm->nrcvany, -1);
}

#define ENTRY(name) .pt_##name = mpip_via_##name
const struct cmpi_protocol mpip_via_protocol = {
	.name = "via",
	.data = data,
	ENTRY(initialize), ENTRY(initconns), ENTRY(makeconns), ENTRY(addconns), ENTRY(completeconns), ENTRY(remconns),
	ENTRY(closeconns), ENTRY(undoconns), ENTRY(fsend), .pt_frecv = mpip_frecv, .pt_urecv = mpip_urecv,
	ENTRY(uirecv), .pt_progress_blk = mpip_progress_blk,
	ENTRY(progress_nblk), ENTRY(postedreceive), ENTRY(unpostedreceive), ENTRY(queuedsend), ENTRY(dequeuedsend),
	ENTRY(postedrcvany), ENTRY(unpostedrcvany), ENTRY(matchedrcvany), ENTRY(getevents), ENTRY(getpolls),
	.pt_error_request = mpip_error_request, ENTRY(finalize), ENTRY(ping),
};
