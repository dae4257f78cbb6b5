/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matched messages of one packet, the common case: sent at once, or not from here; received into the posted receive from where
 * they lie.  Longer ones, and those nobody waits for, are match.c's.
 *
 * Unexpected data is bounded: a sender has at most eager_window bytes of eager messages (each counted with CHARGE bytes
 * for its record) that it does not know to be delivered, and uses rendezvous beyond that.  The receiver tells what it has
 * delivered in every NOOP and rendezvous reply exactly, and in every header in units.  The byte of the header is unambiguous
 * because what is not known to be delivered is never more than the window, and that less than 256 units.
 */
#include "cmpi/pm_via/copy.h"
#include "cmpi/pm_via/flow.h"

_Static_assert(VIA_EAGER_ONE + sizeof(struct via_eager) == VIA_BUFFER, "the longest message fits a pool buffer");

/* ---- sending ------------------------------------------------------------------------------------------------------ */

/* The window looks full: what does the last header say?  It was rounded down. */
static __attribute__((noinline)) bool window_opens(struct cmpi_proc *proc, uint64_t charge)
{
	uint8_t news = (uint8_t)(proc->consumed_cc - proc->eager_consumed / VIA_CONSUMED_UNIT);

	if (news)
		proc->eager_consumed = (proc->eager_consumed / VIA_CONSUMED_UNIT + news) * VIA_CONSUMED_UNIT;
	return (uint32_t)(proc->eager_sent - proc->eager_consumed) + charge <= proc->cmpi->params.eager_window;
}

/* May a message of that length leave eagerly, if there is credit? */
bool via_eager_room(struct cmpi_proc *proc, uint64_t len)
{
	const struct via_params *p = &proc->cmpi->params;

	if (via_unlikely(len > p->rendezvous_threshold))
		return false;
	return via_likely((uint32_t)(proc->eager_sent - proc->eager_consumed) + len + VIA_EAGER_CHARGE <= p->eager_window) ||
	       window_opens(proc, len + VIA_EAGER_CHARGE);
}

static inline int left(struct cmpi_proc *proc, size_t len)
{
	proc->eager_sent += (uint32_t)len + VIA_EAGER_CHARGE;
	proc->packet_no_out++;
	VIA_COUNT(proc->cmpi, eager);
	return CMPI_OK;
}

/* By way of a vbuf, or of a buffer.  CMPI_AGAIN: there is none. */
static __attribute__((noinline)) int send_packet(struct cmpi_proc *proc, uint64_t key, const void *buf, size_t len)
{
	size_t size = sizeof(struct via_eager) + len;
	struct via_vbuf *v = via_packet_new(proc->cmpi, size, false);
	uint8_t *to;

	if (via_unlikely(!v))
		return CMPI_AGAIN;
	to = via_vbuf_packet(v);
	memcpy(to + sizeof(struct via_header), &key, sizeof(key));
	via_copy(to + sizeof(struct via_eager), buf, len);
	via_flow_send(proc, v, VIA_PKT_EAGER);
	return left(proc, len);
}

/* One packet; the caller has seen that it may go. */
static inline int send_one(struct cmpi_proc *proc, uint64_t key, const void *buf, size_t len)
{
	VIPX_SHORT message = {.A = &key, .B = buf, .ALength = sizeof(key), .BLength = (VIP_UINT32)len};

	if (via_likely(via_flow_short(proc, VIA_PKT_EAGER, &message)))
		return left(proc, message.BLength);
	return send_packet(proc, key, message.B, message.BLength);
}

int via_eager_send(struct cmpi_proc *proc, uint64_t key, const void *buf, size_t len)
{
	return send_one(proc, key, buf, len);
}

/* As for an active message: what is accepted leaves now, because its sender may leave MPI for long. */
bool via_eager_may(const struct cmpi_proc *proc)
{
	return proc->remote_credit && proc->state == VIA_CONN_CONNECTED;
}

static inline bool open(struct cmpi_proc *proc, size_t len)
{
	return via_likely(via_eager_may(proc)) && len <= VIA_EAGER_ONE && via_eager_room(proc, len);
}

/* CMPI_AGAIN: not now. */
static inline int send_now(struct cmpi_proc *proc, const void *buf, size_t len, int tag, const struct cmpi_comm *comm, int mode)
{
	return via_likely(mode != CMPI_MODE_SYNC && open(proc, len)) ? send_one(proc, mpip_key(comm->context, comm->rank, tag), buf, len) : CMPI_AGAIN;
}

static __attribute__((noinline)) int send_waiting(struct cmpi *c, struct cmpi_proc *proc, const void *buf, size_t count,
                                                  const struct cmpi_type *type, int tag, struct cmpi_comm *comm, int mode)
{
	size_t len = type ? count * type->size : count;
	int err = send_now(proc, buf, len, tag, comm, mode & ~CMPI_MODE_NOWAIT);

	return err != CMPI_AGAIN || mode & CMPI_MODE_NOWAIT ? err : mpip_fsend(c, proc, buf, count, type, tag, comm, mode);
}

int mpip_via_fsend(struct cmpi *c, struct cmpi_proc *proc, const void *buf, size_t count, const struct cmpi_type *type, int tag,
                   struct cmpi_comm *comm, int mode)
{
	if (via_unlikely(type != NULL || !(mode & CMPI_MODE_NOWAIT)))
		return send_waiting(c, proc, buf, count, type, tag, comm, mode);
	return send_now(proc, buf, count, tag, comm, mode & ~CMPI_MODE_NOWAIT);
}

/* ---- receiving ---------------------------------------------------------------------------------------------------- */

bool via_eager(struct cmpi_proc *proc, const uint8_t *packet, size_t len)
{
	struct cmpi *c = proc->cmpi;
	struct cmpi_req *req;
	uint64_t key;
	size_t room;

	if (via_unlikely(len < sizeof(struct via_eager) || proc->eager))
		return false;
	len -= sizeof(struct via_eager);
	memcpy(&key, packet + sizeof(struct via_header), sizeof(key));
	packet += sizeof(struct via_eager);
	proc->packet_no_in++;
	req = via_likely(!c->adi) ? mpip_arrived(c, proc, key) : NULL;
	if (!req)
		return via_eager_unexpected(proc, key, packet, len);
	room = via_likely(len <= req->size) ? len : (size_t)req->size;
	via_copy_out(c, req->buf, packet, room);
	via_flow_consumed(proc, (uint32_t)len + VIA_EAGER_CHARGE);
	mpip_req_got(req, key, len);
	mpip_req_done(&c->engine, req);
	return true;
}
