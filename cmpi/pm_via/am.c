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

/* A message that the NIC took with its command. */
static inline void count_sent(struct cmpi *c, uint32_t len)
{
	VIA_COUNT(c, am);
	if (len <= CMPI_AM_SHORT)
		VIA_COUNT(c, am_short);
}

/* The short way: header and payload go with the NIC's command, which copies them. */
static inline bool send_now(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	VIPX_SHORT message = {.A = hdr, .B = data, .ALength = (VIP_UINT32)hlen, .BLength = (VIP_UINT32)len};

	if (via_unlikely(ready(proc) != CMPI_OK || !via_flow_short(proc, VIA_PKT_AM | tag << 8, &message)))
		return false;
	count_sent(proc->cmpi, message.ALength + message.BLength);
	return true;
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
	int err = CMPI_OK;

	if (via_unlikely(len > am->len || tag >= CMPI_TAGS))
		return CMPI_PARAMETER;
	via_lock(proc->cmpi);
	if (via_unlikely(proc->state > VIA_CONN_CONNECTED)) {
		via_packet_drop(proc->cmpi, v);
		err = CMPI_TRANSPORT;
	} else if (len <= CMPI_AM_SHORT && send_now(proc, tag, payload(v), len, NULL, 0)) {
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

static inline void write_pieces(uint8_t *to, const void *hdr, size_t hlen, const void *data, size_t len)
{
	via_copy(to, hdr, hlen);
	via_copy(to + hlen, data, len);
}

/* Data that the caller has in two pieces, by way of a vbuf. */
static __attribute__((noinline)) int send_posted(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	int err = CMPI_OK;
	struct via_vbuf *v = take(proc, hlen + len, &err);

	if (via_unlikely(!v))
		return err;
	write_pieces(payload(v), hdr, hlen, data, len);
	send(proc, v, tag);
	return CMPI_OK;
}

/* tried: the short way was not open. */
static __attribute__((noinline)) int send_any(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len,
                                              bool tried)
{
	int err = CMPI_OK;

	if (via_unlikely(hlen > CMPI_AM_MAX || len > CMPI_AM_MAX - hlen || tag >= CMPI_TAGS))
		return CMPI_PARAMETER;
	via_lock(proc->cmpi);
	if (via_likely(tried || !send_now(proc, tag, hdr, hlen, data, len)))
		err = send_posted(proc, tag, hdr, hlen, data, len);
	via_unlock(proc->cmpi);
	return err;
}

/* One thread, connected: nothing has to be kept for another way. */
static inline bool quick(const struct cmpi_proc *proc, unsigned tag)
{
	return tag < CMPI_TAGS && !proc->cmpi->engine.threads && proc->state == VIA_CONN_CONNECTED;
}

/* brief: known when this is compiled. */
static inline int send_quick(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len, bool brief)
{
	VIPX_SHORT message = {.A = hdr, .B = data, .ALength = (VIP_UINT32)hlen, .BLength = (VIP_UINT32)len};

	if (via_unlikely(!via_flow_short(proc, VIA_PKT_AM | tag << 8, &message)))
		return send_any(proc, tag, message.A, message.ALength, message.B, message.BLength, true);
	VIA_COUNT(proc->cmpi, am);
	if (brief)
		VIA_COUNT(proc->cmpi, am_short);
	return CMPI_OK;
}

/* Longer than a short message, and the same otherwise; or not the quick way at all. */
static __attribute__((noinline)) int send_other(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	if (via_unlikely(hlen > CMPI_AM_MAX || len > CMPI_AM_MAX - hlen || !quick(proc, tag)))
		return send_any(proc, tag, hdr, hlen, data, len, false);
	return send_quick(proc, tag, hdr, hlen, data, len, false);
}

int cmpi_am_send(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	if (via_unlikely(hlen > CMPI_AM_SHORT || len > CMPI_AM_SHORT - hlen || !quick(proc, tag)))
		return send_other(proc, tag, hdr, hlen, data, len);
	return send_quick(proc, tag, hdr, hlen, data, len, true);
}
