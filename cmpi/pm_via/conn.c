/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: one VI per peer, made on first use by peer-to-peer requests, or at start in the order of the C-MPI design;
 * their orderly end and their loss.  Not credits, which start in flow.c before the VI connects.
 *
 * A connection goes IDLE -> CONNECTING -> CONNECTED -> CLOSING -> CLOSED, or from any of these to BREAKING when something
 * fails, then to LOST (or CLOSED, when the peer had said BYE and nothing was pending).  BREAKING lasts until what had
 * arrived before is delivered.  A closed connection is made anew by the next use, as soon as its old VI is destroyed:
 * that is when its last flushed receive has come off the completion queue, which then no longer names the VI.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmpi/pm_via/flow.h"

enum { WATCH_PASSES = 1024 }; /* polls between looks at processes that do not answer a connection request */

union net_address {
	VIP_NET_ADDRESS net;
	uint8_t bytes[VIPX_ADDRESS_SIZE];
};

static void net_address(union net_address *out, const struct via_address *address)
{
	memset(out, 0, sizeof(*out));
	out->net.HostAddressLen = address->host_len;
	out->net.DiscriminatorLen = sizeof(*address);
	memcpy(out->net.HostAddress, address->host, address->host_len);
	memcpy(out->net.HostAddress + address->host_len, address, sizeof(*address));
}

static bool net_parse(const union net_address *in, struct via_address *address)
{
	if (in->net.DiscriminatorLen != sizeof(*address) || in->net.HostAddressLen > sizeof(address->host))
		return false;
	memcpy(address, in->bytes + offsetof(VIP_NET_ADDRESS, HostAddress) + in->net.HostAddressLen, sizeof(*address));
	return address->version == VIA_ADDRESS_VERSION && address->host_len == in->net.HostAddressLen;
}

/* ---- the VI ------------------------------------------------------------------------------------------------------- */

/* Room in the completion queue for every receive this connection may post. */
static bool cq_room(struct cmpi *c, uint32_t receives)
{
	VIP_ULONG size = c->cq_size;

	while (size < c->cq_used + receives)
		size *= 2;
	if (size != c->cq_size && VipResizeCQ(c->cq, size) != VIP_SUCCESS)
		return false;
	c->cq_size = size;
	c->cq_used += receives;
	return true;
}

static uint32_t receives_max(const struct cmpi *c)
{
	return c->params.depth + c->params.noop_extra + c->params.rendezvous_extra;
}

static bool process_seen(int pid)
{
	return pid > 0 && (!kill(pid, 0) || errno == EPERM);
}

/* A VI with its first receives posted, not connected. */
static int vi_create(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	VIP_VI_ATTRIBUTES attr = {
		.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
		.MaxTransferSize = c->max_transfer,
		.Ptag = c->ptag,
		.EnableRdmaWrite = VIP_TRUE,
		.EnableRdmaRead = VIP_TRUE,
	};

	if (proc->vi)
		return CMPI_AGAIN; /* the old one is still draining */
	if (!via_vbuf_reserve(c, c->params.depth + c->params.noop_extra))
		return CMPI_RESOURCE;
	if (!cq_room(c, receives_max(c)))
		goto no_room;
	if (VipCreateVi(c->nic, &attr, NULL, c->cq, &proc->vi) != VIP_SUCCESS)
		goto no_vi;
	VipSetUserData(proc->vi, proc); /* names the sender of what comes by value */
	proc->state = VIA_CONN_CONNECTING;
	proc->undelivered = 0;
	proc->fetched = 0;
	proc->life++;
	proc->pid_seen = process_seen(proc->pid);
	c->connecting++;
	via_flow_init(proc);
	return CMPI_OK;
no_vi:
	c->cq_used -= receives_max(c);
no_room:
	c->recv_due -= c->params.depth + c->params.noop_extra;
	c->nreserved -= c->params.depth + c->params.noop_extra;
	return CMPI_RESOURCE;
}

/* Gone when nothing of it is posted or queued. */
static void vi_destroy(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;

	if (!proc->vi || proc->preposts || proc->sends_posted || proc->state < VIA_CONN_CLOSED)
		return;
	VipDestroyVi(proc->vi);
	proc->vi = NULL;
	c->cq_used -= receives_max(c);
}

static void vi_up(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;

	if (proc->state == VIA_CONN_CONNECTING)
		c->connecting--;
	proc->state = VIA_CONN_CONNECTED;
	proc->remote_credit = proc->address.initial_credit;
	VIA_COUNT(c, connections);
	via_flow_drain(proc);
	via_flow_push(proc);
}

/* ---- lazily, peer to peer ------------------------------------------------------------------------------------------ */

int via_conn_start(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	union net_address local, remote;
	int err;

	if (c->closing)
		return CMPI_TRANSPORT;
	err = vi_create(proc);
	if (err != CMPI_OK)
		return err;
	net_address(&local, &c->address);
	net_address(&remote, &proc->address);
	if (VipConnectPeerRequest(proc->vi, &local.net, &remote.net, VIP_INFINITE) != VIP_SUCCESS) {
		via_conn_fail(proc, "the connection request was refused");
		return CMPI_TRANSPORT;
	}
	return CMPI_OK;
}

/* Has the peer answered?  True when the connection is up. */
bool via_conn_poll(struct cmpi_proc *proc)
{
	VIP_VI_ATTRIBUTES attr;
	VIP_RETURN r = VipConnectPeerDone(proc->vi, &attr);

	if (r == VIP_SUCCESS)
		vi_up(proc);
	else if (r != VIP_NOT_DONE)
		via_conn_fail(proc, "connecting failed with VIPL code %d", (int)r);
	return r == VIP_SUCCESS;
}

/* Requests of others that name this process: answers each with one of its own. */
static void answer(struct cmpi *c)
{
	union net_address local, remote;
	struct via_address from, to;
	VIP_ULONG cursor = 0;

	while (VipxConnectPending(c->nic, &cursor, &local.net, &remote.net) == VIP_SUCCESS) {
		struct cmpi_proc *proc;

		if (!net_parse(&remote, &to) || memcmp(&to, &c->address, sizeof(to)) || !net_parse(&local, &from))
			continue;
		if (from.params != c->address.params)
			continue;
		proc = via_proc_create(c, &from);
		if (!proc || (proc->state != VIA_CONN_IDLE && proc->state != VIA_CONN_CLOSED))
			continue;
		if (via_conn_start(proc) == CMPI_AGAIN)
			c->epoch--; /* look again */
	}
}

/* It has closed its NIC, or died, perhaps before connecting began: it will not answer. */
static bool has_ended(const struct cmpi_proc *proc)
{
	return (proc->pid_seen && !process_seen(proc->pid)) ||
	       VipxCardLives(proc->cmpi->nic, proc->address.slot, proc->address.life) == VIP_NO_MATCH;
}

static void watch(struct cmpi *c)
{
	if (c->polls++ % WATCH_PASSES)
		return;
	for (struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		if (proc->state == VIA_CONN_CONNECTING && has_ended(proc))
			via_conn_fail(proc, "it ended before it was connected");
}

int via_conn_progress(struct cmpi *c)
{
	VIP_ULONG epoch = VipxConnectEpoch(c->nic);
	int n = 0;

	if (epoch != c->epoch) {
		c->epoch = epoch;
		answer(c);
	}
	if (!c->connecting)
		return 0;
	for (struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		if (proc->state == VIA_CONN_CONNECTING)
			n += via_conn_poll(proc);
	watch(c);
	return n;
}

/* ---- all at start, in the order of the C-MPI design ----------------------------------------------------------------- */

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

/* Lower rank: requests until the peer waits. */
static int request(struct cmpi_proc *proc, uint64_t deadline)
{
	struct cmpi *c = proc->cmpi;
	union net_address local, remote;
	VIP_VI_ATTRIBUTES attr;
	VIP_RETURN r;
	int err = vi_create(proc);

	if (err != CMPI_OK)
		return err;
	net_address(&local, &c->address);
	net_address(&remote, &proc->address);
	for (;;) {
		r = VipConnectRequest(proc->vi, &local.net, &remote.net, 1000, &attr);
		if (r == VIP_SUCCESS)
			break;
		if ((r != VIP_NO_MATCH && r != VIP_TIMEOUT) || seconds() >= deadline || has_ended(proc)) {
			via_conn_fail(proc, "connecting failed with VIPL code %d", (int)r);
			return CMPI_TRANSPORT;
		}
		sched_yield();
	}
	vi_up(proc);
	return CMPI_OK;
}

/* Higher rank: waits for one request, of whichever lower rank, and accepts it. */
static int accept_one(struct cmpi *c)
{
	union net_address local, remote;
	struct via_address from;
	struct cmpi_proc *proc;
	VIP_VI_ATTRIBUTES attr;
	VIP_CONN_HANDLE conn;

	net_address(&local, &c->address);
	memset(&remote, 0, sizeof(remote));
	if (VipConnectWait(c->nic, &local.net, 100, &remote.net, &attr, &conn) != VIP_SUCCESS)
		return CMPI_AGAIN;
	proc = net_parse(&remote, &from) ? via_proc_create(c, &from) : NULL;
	if (!proc || proc->state != VIA_CONN_IDLE || from.params != c->address.params || vi_create(proc) != CMPI_OK) {
		VipConnectReject(conn);
		return CMPI_AGAIN;
	}
	if (VipConnectAccept(conn, proc->vi) != VIP_SUCCESS) {
		VipConnectReject(conn);
		via_conn_fail(proc, "accepting its connection failed");
		return CMPI_TRANSPORT;
	}
	vi_up(proc);
	return CMPI_OK;
}

/* How many of these are below this rank and not connected (or on their way)? */
static size_t below(const struct cmpi *c, struct cmpi_proc **procs, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (procs[i] && !procs[i]->self && procs[i]->address.rank < c->address.rank)
			count += procs[i]->state == VIA_CONN_IDLE;
	return count;
}

/* The next higher rank after *rank, NULL when there is none. */
static struct cmpi_proc *above(struct cmpi_proc **procs, size_t n, uint32_t rank)
{
	struct cmpi_proc *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (procs[i] && procs[i]->address.rank > rank && (!best || procs[i]->address.rank < best->address.rank))
			best = procs[i];
	return best;
}

static int connect_all(struct cmpi *c, struct cmpi_proc **procs, size_t n)
{
	uint64_t deadline = seconds() + c->params.connect_timeout;
	struct cmpi_proc *proc;
	int err;

	while (below(c, procs, n)) {
		err = accept_one(c);
		if (err != CMPI_OK && err != CMPI_AGAIN)
			return err;
		if (seconds() >= deadline) {
			via_set_error("not all lower ranks connected within %u s (parameter connect_timeout)",
			              c->params.connect_timeout);
			return CMPI_TRANSPORT;
		}
		via_conn_progress(c);
	}
	for (uint32_t rank = c->address.rank; (proc = above(procs, n, rank)) != NULL; rank = proc->address.rank) {
		err = proc->state == VIA_CONN_IDLE ? request(proc, deadline) : CMPI_OK;
		if (err != CMPI_OK)
			return err;
	}
	return CMPI_OK;
}

int cmpi_connect_all(struct cmpi *c, struct cmpi_proc **procs, size_t n)
{
	int err;

	via_lock(c);
	err = connect_all(c, procs, n);
	via_unlock(c);
	return err;
}

/* ---- the orderly end ------------------------------------------------------------------------------------------------ */

bool via_conn_pending(const struct cmpi_proc *proc)
{
	return proc->backlog.head || proc->undelivered || proc->rma_ops || proc->atomics || proc->messages;
}

void via_conn_close(struct cmpi_proc *proc)
{
	switch (proc->state) {
	case VIA_CONN_CONNECTED:
		proc->state = VIA_CONN_CLOSING;
		via_flow_push(proc);
		break;
	case VIA_CONN_CONNECTING:
		via_conn_down(proc, VIA_CONN_CLOSED);
		break;
	default:
		break;
	}
}

/* From the flow list: what was queued first, then BYE, and when it has left the end. */
void via_conn_close_step(struct cmpi_proc *proc)
{
	if (proc->backlog.head || proc->sends_posted || proc->rma_head || proc->fetch_head || proc->send_head)
		return; /* the next completion or credit, or pass, brings it back here */
	if (proc->bye_out)
		via_conn_down(proc, VIA_CONN_CLOSED);
	else if (via_flow_bye(proc))
		via_flow_push(proc);
}

/* Disconnects and takes back what was posted.  Flushed receives follow through the completion queue. */
void via_conn_down(struct cmpi_proc *proc, enum via_conn_state state)
{
	struct cmpi *c = proc->cmpi;
	struct via_vbuf *v;

	if (proc->state == VIA_CONN_CONNECTING)
		c->connecting--;
	proc->state = (uint8_t)state;
	proc->remote_credit = 0;
	via_flow_limits(proc);
	if (proc->vi)
		VipDisconnect(proc->vi);
	via_send_reap_one(proc);
	via_fetch_reap(proc);
	while ((v = proc->backlog.head) != NULL) {
		proc->backlog.head = v->desc.CS.Next.Address;
		via_packet_drop(c, v);
	}
	proc->backlog.len = 0;
	via_rma_fail(proc);
	via_atomic_fail(proc);
	via_match_fail(proc);
	if (proc->preposts < proc->base)
		c->recv_due -= proc->base - proc->preposts;
	c->nreserved -= proc->base;
	proc->base = 0;
	vi_destroy(proc);
}

/* A receive came back without a message, or with one that came too late. */
void via_conn_flushed(struct cmpi_proc *proc, struct via_vbuf *v)
{
	uint32_t status = v->desc.CS.Status;

	via_flow_taken(proc);
	if (status & VIP_STATUS_POOL)
		VipxGiveBuffer(proc->cmpi->nic, v->desc.DS[1].Local.Data.Address);
	via_vbuf_give(proc->cmpi, v);
	if (via_live(proc) || proc->state == VIA_CONN_CONNECTING)
		via_conn_fail(proc, "a receive failed with status 0x%x", status & VIP_STATUS_ERROR_MASK);
	vi_destroy(proc);
}

/* ---- loss ------------------------------------------------------------------------------------------------------------ */

/* Gives the connection up: nothing is sent any more, and via_conn_report takes it down.  May be called anywhere. */
void via_conn_fail(struct cmpi_proc *proc, const char *format, ...)
{
	struct cmpi *c = proc->cmpi;
	va_list args;

	if (proc->state >= VIA_CONN_BREAKING || proc->state == VIA_CONN_IDLE)
		return;
	va_start(args, format);
	vsnprintf(proc->reason, sizeof(proc->reason), format, args);
	va_end(args);
	if (proc->state == VIA_CONN_CONNECTING)
		c->connecting--;
	proc->orderly = proc->state == VIA_CONN_CLOSING;
	proc->state = VIA_CONN_BREAKING;
	proc->remote_credit = 0;
	via_flow_limits(proc);
	if (proc->in_lost)
		return;
	proc->in_lost = proc->late = true;
	proc->next_lost = c->lost;
	c->lost = proc;
}

void via_conn_send_failed(struct cmpi_proc *proc, const struct via_vbuf *v, uint32_t status)
{
	if (v->kind == VIA_VBUF_SEND) {
		const struct via_header *header = via_vbuf_packet(v);

		/* A buffer that was given away is not ours to read: it carried a message. */
		if (v->desc.CS.Control & VIP_CONTROL_POOL || (header->type != VIA_PKT_NOOP && header->type != VIA_PKT_BYE))
			proc->undelivered++;
	}
	via_conn_fail(proc, "a send failed with status 0x%x", status);
}

/* Runs inside a Vip call, so it only takes a note. */
void via_conn_callback(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	struct cmpi *c = context;

	for (struct cmpi_proc *proc = c->procs; proc; proc = proc->next)
		if (proc->vi && (proc->vi == error->ViHandle || error->ErrorCode == VIP_ERROR_CATASTROPHIC))
			via_conn_fail(proc, error->ErrorCode == VIP_ERROR_CONN_LOST ? "the connection was lost"
			                                                            : "the NIC reported error %d",
			              (int)error->ErrorCode);
}

static void report(struct cmpi_proc *proc)
{
	struct cmpi *c = proc->cmpi;
	char text[192];

	VIA_COUNT(c, peers_lost);
	snprintf(text, sizeof(text), "peer rank %u (pid %d) is gone: %s", proc->address.rank, proc->pid,
	         proc->bye_in ? "it closed the connection while operations were pending" : proc->reason);
	if (!c->error || c->closing)
		return;
	via_unlock(c);
	c->error(c->error_arg, proc, CMPI_TRANSPORT, text);
	via_lock(c);
}

/*
 * Takes failed connections down, when all that had arrived on them is delivered: its receives have all come off the
 * completion queue, or the queue is empty.  It was found empty at the beginning of the pass; the news of a connection that has
 * failed since, at another look at the NIC, may have come with messages: their turn is in the next pass.
 */
int via_conn_report(struct cmpi *c, bool empty)
{
	struct cmpi_proc *proc = c->lost, *kept = NULL, *dead = NULL;
	int n = 0;

	c->lost = NULL;
	while (proc) {
		struct cmpi_proc *next = proc->next_lost, **list = (empty && !proc->late) || !proc->preposts ? &dead : &kept;

		proc->late = false;
		proc->next_lost = *list;
		*list = proc;
		proc = next;
	}
	c->lost = kept;
	while ((proc = dead) != NULL) {
		bool quiet = proc->orderly || (proc->bye_in && !via_conn_pending(proc) && !(c->posted && proc->posted == c->posts));

		dead = proc->next_lost;
		proc->in_lost = false;
		via_conn_down(proc, quiet ? VIA_CONN_CLOSED : VIA_CONN_LOST);
		if (!quiet)
			report(proc);
		n++;
	}
	via_completion_run(c);
	return n;
}
