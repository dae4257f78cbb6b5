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
#include "cmpi/engine/bin.h"

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

bool via_eager_window(struct cmpi_proc *proc, uint64_t len)
{
	return via_likely((uint32_t)(proc->eager_sent - proc->eager_consumed) + len + VIA_EAGER_CHARGE <= proc->cmpi->params.eager_window) ||
	       window_opens(proc, len + VIA_EAGER_CHARGE);
}

/* May a message of that length leave eagerly, if there is credit? */
bool via_eager_room(struct cmpi_proc *proc, uint64_t len)
{
	return via_likely(len <= proc->cmpi->params.rendezvous_threshold) && via_eager_window(proc, len);
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

	if (via_unlikely(len < sizeof(struct via_eager)))
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

/* Is the receive the one that the next message of its envelope is for, and has it no wildcards? */
static inline bool is_first(const struct cmpi *c, const struct cmpi_req *req)
{
	const struct mpip_bin *bin = req->bin;

	return req->state == MPIP_REQ_RECVHEAD && bin->posted == req && !c->engine.wild && !req->to && !req->done && !c->adi;
}

/* Does the next packet of the peer, if it brings that message, change nothing but what is counted below (via_flow_credited)? */
static inline bool is_plain(const struct cmpi *c, const struct cmpi_proc *proc)
{
	return via_flow_is_plain(proc) && proc->granted && proc->remote_credit < VIA_CREDIT_LIMIT - VIA_CREDIT_BYTE && !c->closing;
}

int via_eager_expected(struct cmpi_proc *proc, struct cmpi_req *req, uint32_t looks)
{
	struct cmpi *c = proc->cmpi;
	VIPX_EXPECTED message;
	uint64_t word;

	if (via_unlikely(!is_first(c, req) || !is_plain(c, proc)))
		return CMPI_PARAMETER;
	message.Head = htole64(via_header_expected(proc, VIA_PKT_EAGER));
	message.Mask = htole64(VIA_HEADER_KNOWN);
	message.Key = req->bin->key;
	message.To = req->buf;
	message.Room = req->size < VIA_EAGER_ONE ? (VIP_UINT32)req->size : VIA_EAGER_ONE;
	if (via_unlikely(VipxRecvExpected(proc->vi, &message, looks) != VIP_SUCCESS))
		return CMPI_AGAIN;
	word = le64toh(message.Word);
	via_flow_booked(proc, 1, proc->remote_credit + (uint8_t)(word >> VIA_AT_VBUF_CREDIT), word);
	proc->packet_no_in++;
	via_flow_consumed(proc, message.Length + VIA_EAGER_CHARGE);
	mpip_bin_take(&c->engine, req->bin, req);
	mpip_req_got(req, message.Key, message.Length);
	mpip_req_tell(req);
	via_flow_noop(proc);
	VIA_ASSERT(via_flow_holds(proc));
	return CMPI_OK;
}
