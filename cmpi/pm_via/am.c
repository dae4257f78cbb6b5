/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages, the sending side: a place for the payload behind a packet header, then the send.  The receiving side is
 * one case of progress.c.  A message leaves with the NIC's command when nothing is queued before it: up to CMPI_AM_SHORT bytes inside the command, a
 * longer one in a pool buffer that the peer will keep.  Otherwise up to SMALL bytes lie in a vbuf, and more in such a buffer until it can go.
 */
#include "cmpi/pm_via/copy.h"
#include "cmpi/pm_via/flow.h"

enum { HEADER = sizeof(struct via_header), SMALL = VIA_SMALL - HEADER };
_Static_assert(CMPI_AM_SHORT + HEADER <= VIPX_SHORT_MAX, "a short message fits a NIC command");
_Static_assert(CMPI_AM_MAX + HEADER <= VIA_BUFFER, "the longest message fits a pool buffer");
_Static_assert(VIA_BUFFER == VIPX_BUFFER_SIZE, "size of a pool buffer");

static __attribute__((noinline)) struct via_vbuf *refuse(struct cmpi *c, int reason, int *err)
{
	if (reason == CMPI_AGAIN)
		VIA_COUNT(c, again);
	*err = reason;
	return NULL;
}

/*
 * There is no credit: why?  Connects on first use.  What cannot leave now is not accepted: a caller that was told OK may stop
 * making progress, and then neither would the connection be made nor a queue move.
 */
static __attribute__((noinline)) int ready_slow(struct cmpi_proc *proc)
{
	int err;

	switch (proc->state) {
	case VIA_CONN_IDLE:
	case VIA_CONN_CLOSED:
		if (proc->self)
			return CMPI_PARAMETER;
		err = via_conn_start(proc);
		return err == CMPI_OK ? CMPI_AGAIN : err;
	case VIA_CONN_CONNECTING:
	case VIA_CONN_CONNECTED:
		return CMPI_AGAIN;
	default:
		return CMPI_TRANSPORT;
	}
}

static inline int ready(struct cmpi_proc *proc)
{
	/* Credit is there only while connected, and then nothing waits. */
	return via_likely(proc->remote_credit != 0 && proc->state == VIA_CONN_CONNECTED) ? CMPI_OK : ready_slow(proc);
}

/* A vbuf for a packet with `len` bytes of payload; NULL: *err says why not. */
static inline struct via_vbuf *take(struct cmpi_proc *proc, size_t len, int *err)
{
	struct cmpi *c = proc->cmpi;
	int state = ready(proc);
	struct via_vbuf *v;
	void *buffer;

	if (via_unlikely(state != CMPI_OK))
		return refuse(c, state, err);
	v = via_vbuf_take(c);
	if (via_unlikely(!v))
		return refuse(c, CMPI_AGAIN, err);
	if (len <= SMALL) {
		via_vbuf_small(v, len + HEADER);
		return v;
	}
	buffer = VipxTakeBuffer(c->nic);
	if (via_unlikely(!buffer)) {
		via_vbuf_give(c, v);
		return refuse(c, CMPI_AGAIN, err);
	}
	via_vbuf_long(v, buffer, len + HEADER);
	return v;
}

/* Where the payload goes. */
static inline uint8_t *payload(const struct via_vbuf *v)
{
	return (uint8_t *)via_vbuf_packet(v) + HEADER;
}

static inline void send(struct cmpi_proc *proc, struct via_vbuf *v, unsigned tag)
{
	VIA_COUNT(proc->cmpi, am);
	via_flow_send(proc, v, VIA_PKT_AM | tag << 8);
}

/* A message for the NIC's command: the tag is in the head, wherever it goes then. */
static inline VIPX_SHORT pieces(unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	return (VIPX_SHORT){.Head = htole64(VIA_PKT_AM | tag << 8), .A = hdr, .B = data, .ALength = (VIP_UINT32)hlen, .BLength = (VIP_UINT32)len};
}

static inline bool send_short(struct cmpi_proc *proc, VIPX_SHORT *message)
{
	if (via_unlikely(!via_flow_short(proc, (uint16_t)le64toh(message->Head), message)))
		return false;
	VIA_COUNT(proc->cmpi, am);
	return true;
}

/* The short way: header and payload go with the NIC's command, which copies them. */
static inline bool send_now(struct cmpi_proc *proc, VIPX_SHORT *message)
{
	return via_likely(ready(proc) == CMPI_OK) && send_short(proc, message);
}

int cmpi_am_begin(struct cmpi_proc *proc, size_t len, struct cmpi_am *am)
{
	struct via_vbuf *v;
	int err = CMPI_OK;

	if (via_unlikely(len > CMPI_AM_MAX))
		return CMPI_PARAMETER;
	via_lock(proc->cmpi);
	v = take(proc, len, &err);
	via_unlock(proc->cmpi);
	if (via_unlikely(!v))
		return err;
	*am = (struct cmpi_am){.data = payload(v), .len = len, .vbuf = v, .proc = proc};
	return CMPI_OK;
}

/* The message turned out short: it travels in the vbuf after all, and the buffer stays. */
static void shrink(struct cmpi *c, struct via_vbuf *v, size_t len)
{
	void *buffer = via_vbuf_packet(v);

	via_copy(v->small + HEADER, (uint8_t *)buffer + HEADER, len);
	VipxGiveBuffer(c->nic, buffer);
	via_vbuf_small(v, len + HEADER);
}

int cmpi_am_commit(struct cmpi_am *am, unsigned tag, size_t len)
{
	struct cmpi_proc *proc = am->proc;
	struct via_vbuf *v = am->vbuf;
	VIPX_SHORT message = pieces(tag, payload(v), len, NULL, 0);
	int err = CMPI_OK;

	if (via_unlikely(len > am->len || tag >= CMPI_TAGS))
		return CMPI_PARAMETER;
	via_lock(proc->cmpi);
	if (via_unlikely(proc->state > VIA_CONN_CONNECTED)) {
		via_packet_drop(proc->cmpi, v);
		err = CMPI_TRANSPORT;
	} else if (len <= CMPI_AM_SHORT && send_now(proc, &message)) {
		via_packet_drop(proc->cmpi, v);
	} else if (len > CMPI_AM_SHORT && via_flow_given(proc, VIA_PKT_AM | tag << 8, via_vbuf_packet(v), len + HEADER)) {
		VIA_COUNT(proc->cmpi, am);
		via_vbuf_give(proc->cmpi, v);
	} else {
		if (via_unlikely(len <= SMALL && am->len > SMALL))
			shrink(proc->cmpi, v, len);
		else
			via_vbuf_resize(v, len + HEADER);
		send(proc, v, tag);
	}
	via_unlock(proc->cmpi);
	return err;
}

void cmpi_am_abort(struct cmpi_am *am)
{
	via_lock(am->proc->cmpi);
	via_packet_drop(am->proc->cmpi, am->vbuf);
	via_unlock(am->proc->cmpi);
}

/* Data that the caller has in two pieces, by way of a vbuf. */
static __attribute__((noinline)) int send_posted(struct cmpi_proc *proc, const VIPX_SHORT *message)
{
	int err = CMPI_OK;
	struct via_vbuf *v = take(proc, message->ALength + message->BLength, &err);

	if (via_unlikely(!v))
		return err;
	via_copy(payload(v), message->A, message->ALength);
	via_copy(payload(v) + message->ALength, message->B, message->BLength);
	send(proc, v, (uint8_t)(le64toh(message->Head) >> 8));
	return CMPI_OK;
}

/* tried: the short way was not open. */
static __attribute__((noinline)) int send_any(struct cmpi_proc *proc, VIPX_SHORT *message, bool tried)
{
	int err = CMPI_OK;

	via_lock(proc->cmpi);
	if (via_likely(tried || !send_now(proc, message)))
		err = send_posted(proc, message);
	via_unlock(proc->cmpi);
	return err;
}

/* One thread, connected: nothing has to be kept for another way. */
static inline bool quick(const struct cmpi_proc *proc)
{
	return !proc->cmpi->engine.threads && proc->state == VIA_CONN_CONNECTED;
}

int cmpi_am_send(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	VIPX_SHORT message = pieces(tag, hdr, hlen, data, len);

	if (via_unlikely(hlen > CMPI_AM_MAX || len > CMPI_AM_MAX - hlen || tag >= CMPI_TAGS))
		return CMPI_PARAMETER;
	if (via_unlikely(!quick(proc)))
		return send_any(proc, &message, false);
	return via_likely(send_short(proc, &message)) ? CMPI_OK : send_any(proc, &message, true);
}
