/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of vbufs: regions registered once each, one free list, last in first out so that a vbuf is warm.
 * Not the payload buffers of longer packets: those are the NIC's and change hands.
 *
 * Receives come first: a connection reserves what it needs when it is made, and sends take only what is left
 * (nfree > recv_due), so that credit can always be returned.
 */
#include <stdlib.h>
#include <string.h>

#include "cmpi/pm_via/via.h"

enum { REGION_VBUFS = 256 };

static bool region_add(struct cmpi *c, uint32_t n)
{
	struct via_region *region = malloc(sizeof(*region));
	VIP_MEM_ATTRIBUTES attr = {.Ptag = c->ptag};

	if (!region)
		return false;
	region->vbuf = aligned_alloc(sizeof(struct via_vbuf), n * sizeof(struct via_vbuf));
	if (!region->vbuf)
		goto no_memory;
	memset(region->vbuf, 0, n * sizeof(struct via_vbuf));
	if (VipRegisterMem(c->nic, region->vbuf, n * sizeof(struct via_vbuf), &attr, &region->handle) != VIP_SUCCESS)
		goto not_registered;
	for (uint32_t i = n; i--;) {
		region->vbuf[i].handle = region->handle;
		via_vbuf_give(c, &region->vbuf[i]);
	}
	region->next = c->regions;
	c->regions = region;
	c->nvbufs += n;
	VIA_COUNT_ADD(c, vbufs, n);
	return true;
not_registered:
	free(region->vbuf);
no_memory:
	free(region);
	return false;
}

/* A secondary region for sends, within the limit of the user; `sure`: one vbuf beyond it when need be. */
bool via_vbuf_grow(struct cmpi *c, bool sure)
{
	int64_t room = c->params.vbuf_max - ((int64_t)c->nvbufs - c->nreserved);

	if (c->params.vbuf_max < 0 || room > REGION_VBUFS)
		room = REGION_VBUFS;
	if (room <= 0)
		return sure && region_add(c, 1);
	return region_add(c, (uint32_t)room);
}

/* Sets aside n vbufs for the receives of a connection, on top of the limit. */
bool via_vbuf_reserve(struct cmpi *c, uint32_t n)
{
	if (c->nfree < c->recv_due + n && !region_add(c, c->params.vbuf_max < 0 && n < REGION_VBUFS ? REGION_VBUFS : n))
		return false;
	c->recv_due += n;
	c->nreserved += n;
	return true;
}

void via_vbuf_fini(struct cmpi *c)
{
	struct via_region *region;

	while ((region = c->regions) != NULL) {
		c->regions = region->next;
		VipDeregisterMem(c->nic, region->vbuf, region->handle);
		free(region->vbuf);
		free(region);
	}
}

/* A packet of len bytes, header included; NULL when no vbuf or buffer is free.  `sure` for bounded control packets. */
struct via_vbuf *via_packet_new(struct cmpi *c, size_t len, bool sure)
{
	struct via_vbuf *v;
	void *buffer;

	if (c->nfree <= c->recv_due && !via_vbuf_grow(c, sure))
		return NULL;
	v = via_vbuf_pop(c);
	if (len <= VIA_SMALL) {
		via_vbuf_small(v, len);
		return v;
	}
	buffer = VipxTakeBuffer(c->nic);
	if (!buffer) {
		via_vbuf_give(c, v);
		return NULL;
	}
	via_vbuf_long(v, buffer, len);
	return v;
}

/* As via_packet_new, for short packets that must go out: fails only for want of memory, and then ends the connection. */
struct via_vbuf *via_packet_new_sure(struct cmpi_proc *proc, size_t len)
{
	struct via_vbuf *v = via_packet_new(proc->cmpi, len, true);

	if (!v)
		via_conn_fail(proc, "no memory for a control packet");
	return v;
}

/* Gives back a packet that was not posted. */
void via_packet_drop(struct cmpi *c, struct via_vbuf *v)
{
	if (v->desc.CS.Control & VIP_CONTROL_POOL)
		VipxGiveBuffer(c->nic, via_vbuf_packet(v));
	via_vbuf_give(c, v);
}
