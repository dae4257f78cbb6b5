/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages, the sending side: a place for the payload behind a packet header, then the send.  The receiving side is
 * one case of progress.c.  A message of up to CMPI_AM_SHORT bytes leaves inside the NIC's command when nothing is queued before
 * it.  Otherwise, up to SMALL bytes it lies in a vbuf, and a longer one in a pool buffer that the peer will keep.
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

/* The shortest way: header and payload inside the NIC's command. */
static inline bool send_short(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	VIPX_SHORT message = {.A = hdr, .B = data, .ALength = (VIP_UINT32)hlen, .BLength = (VIP_UINT32)len};

	if (via_unlikely(ready(proc) != CMPI_OK || !via_flow_short(proc, VIA_PKT_AM | tag << 8, &message)))
		return false;
	VIA_COUNT(proc->cmpi, am);
	VIA_COUNT(proc->cmpi, am_short);
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
	} else if (len <= CMPI_AM_SHORT && send_short(proc, tag, payload(v), len, NULL, 0)) {
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

/* A packet in a buffer could not leave at once: it waits its turn in a vbuf. */
static __attribute__((noinline)) int send_later(struct cmpi_proc *proc, unsigned tag, void *buffer, size_t len)
{
	struct cmpi *c = proc->cmpi;
	struct via_vbuf *v = via_vbuf_take(c);
	int err;

	if (via_unlikely(!v)) {
		VipxGiveBuffer(c->nic, buffer);
		refuse(c, CMPI_AGAIN, &err);
		return err;
	}
	via_vbuf_long(v, buffer, len);
	send(proc, v, tag);
	return CMPI_OK;
}

/* By way of a buffer, which needs a vbuf only where it cannot leave at once. */
static __attribute__((noinline)) int send_long(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	struct cmpi *c = proc->cmpi;
	uint8_t *buffer;
	int err;

	if (via_unlikely(proc->sends_posted))
		return send_posted(proc, tag, hdr, hlen, data, len);
	err = ready(proc);
	if (via_unlikely(err != CMPI_OK || !(buffer = VipxTakeBuffer(c->nic)))) {
		refuse(c, err != CMPI_OK ? err : CMPI_AGAIN, &err);
		return err;
	}
	write_pieces(buffer + HEADER, hdr, hlen, data, len);
	if (via_unlikely(!via_flow_given(proc, VIA_PKT_AM | tag << 8, buffer, HEADER + hlen + len)))
		return send_later(proc, tag, buffer, HEADER + hlen + len);
	VIA_COUNT(c, am);
	return CMPI_OK;
}

/* tried: the shortest way was not open. */
static __attribute__((noinline)) int send_any(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len,
                                              bool tried)
{
	int err = CMPI_OK;

	if (via_unlikely(hlen > CMPI_AM_MAX || len > CMPI_AM_MAX - hlen || tag >= CMPI_TAGS))
		return CMPI_PARAMETER;
	via_lock(proc->cmpi);
	if (via_likely(tried || hlen + len > CMPI_AM_SHORT || !send_short(proc, tag, hdr, hlen, data, len)))
		err = (hlen + len > SMALL ? send_long : send_posted)(proc, tag, hdr, hlen, data, len);
	via_unlock(proc->cmpi);
	return err;
}

/* Whatever is not short, of one thread, and connected.  A long one needs nothing else of what send_any does, where there is one thread. */
static __attribute__((noinline)) int send_other(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	if (via_unlikely(hlen > CMPI_AM_SHORT || len > CMPI_AM_MAX - hlen || len <= CMPI_AM_SHORT || tag >= CMPI_TAGS || proc->cmpi->engine.threads))
		return send_any(proc, tag, hdr, hlen, data, len, false);
	return send_long(proc, tag, hdr, hlen, data, len);
}

/* Short, one thread, connected: the same as send_short, but nothing has to be kept for the other ways. */
int cmpi_am_send(struct cmpi_proc *proc, unsigned tag, const void *hdr, size_t hlen, const void *data, size_t len)
{
	VIPX_SHORT message = {.A = hdr, .B = data, .ALength = (VIP_UINT32)hlen, .BLength = (VIP_UINT32)len};
	struct cmpi *c = proc->cmpi;

	if (via_unlikely(hlen > CMPI_AM_SHORT || len > CMPI_AM_SHORT - hlen || tag >= CMPI_TAGS || c->engine.threads ||
	                 proc->state != VIA_CONN_CONNECTED))
		return send_other(proc, tag, hdr, hlen, data, len);
	if (via_unlikely(!via_flow_short(proc, VIA_PKT_AM | tag << 8, &message)))
		return send_any(proc, tag, message.A, message.ALength, message.B, message.BLength, true);
	VIA_COUNT(c, am);
	VIA_COUNT(c, am_short);
	return CMPI_OK;
}
