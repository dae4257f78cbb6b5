/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program: remote memory, posted writes (rdma_post.c) that the NIC at the other end does not come to.  This NIC takes them back and does them itself.
 *
 * Their data are in the packets, whose cells this NIC fills again only when the other one has taken them, and in the buffers, which the other one gives to whom it
 * likes when it has.  So everything is copied first, and then the claim is closed: what the other one had not begun by then it had not taken from the
 * link when it was copied; what it had begun may have been written anew amid the copying, and is not used.  Of a claim that the other one has closed
 * itself, because the connection is not what it was, that is not true.
 */
#include <stdlib.h>
#include <string.h>

#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/rdma.h"
#include "nicemu/engine/dma.h"

#define WORDS(bytes) (((bytes) + 7) / 8)

struct nic_late {
	uint32_t first, n; /* parts first .. first + n - 1 */
	struct {
		uint64_t addr;
		uint32_t handle, len; /* 0: not there */
		uint32_t at; /* in data */
	} write[NIC_POSTED];
	uint64_t data[];
};

/* The packet of that part, read once: the peer can write there.  False: it is something else by now. */
static bool packet_of(const struct nic_link *link, const struct nic_ask *a, uint32_t part, struct nic_packet *out)
{
	memcpy(out, &link->tx[link->posted_at[part % NIC_POSTED] & (NIC_RING_CELLS - 1)], sizeof(*out));
	return out->put.claim == a->id && out->put.part == part && (out->op == NIC_OP_WRITE_SHORT || out->op == NIC_OP_WRITE_PART) &&
	       out->len_flags && out->len_flags <= (out->op == NIC_OP_WRITE_SHORT ? NIC_PUT_SHORT : NIC_POSTED_MAX) &&
	       (out->op == NIC_OP_WRITE_SHORT || out->put.buffer < NIC_POOL_BUFFERS);
}

/*
 * Whole words of a buffer that the other NIC may empty meanwhile, and whoever has it then fill again.  What was copied counts only where the closing, which
 * comes later (acquire and release), finds the part untaken.  ThreadSanitizer cannot know that.
 */
__attribute__((no_sanitize("thread"))) static nic_noinline void copy_unsettled(uint64_t *to, _Atomic uint64_t *from, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		to[i] = nic_load_relaxed(&from[i]); /* what it is worth the closing tells */
}

bool nic_late_save(struct nic *nic, struct nic_link *link)
{
	const struct nic_ask *a = link->posted;
	uint32_t placed = nic_claim_in_place(nic_claim_look(nic_asked(link, a->id))), n = placed < a->parts ? a->parts - placed : 0;
	struct nic_late *late;
	uint32_t at = 0;

	n = n < NIC_POSTED ? n : NIC_POSTED;
	late = malloc(sizeof(*late) + (size_t)n * NIC_POSTED_MAX);
	if (!late)
		return false;
	late->first = a->parts - n;
	late->n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct nic_packet p;

		if (!packet_of(link, a, late->first + i, &p)) {
			late->write[i].at = at;
			late->write[i].len = 0; /* of one that is in place by now that does not matter */
			continue;
		}
		late->write[i].addr = p.put.addr;
		late->write[i].handle = p.put.handle;
		late->write[i].len = p.len_flags;
		late->write[i].at = at;
		if (p.op == NIC_OP_WRITE_SHORT)
			memcpy(late->data + at, p.put.data, p.len_flags);
		else
			copy_unsettled(late->data + at, (_Atomic uint64_t *)(void *)nic_buffer(nic, p.put.buffer), WORDS(p.len_flags));
		at += WORDS(p.len_flags);
	}
	link->late = late;
	return true;
}

uint32_t nic_late_write(struct nic *nic, struct nic_link *link, const struct nic_ask *a, uint32_t placed)
{
	const struct nic_late *late = link->late;
	const struct nic_vi_ctx *ctx = nic_vi(nic, a->vi);

	if (!late || placed < late->first)
		return NIC_ST_TRANSPORT;
	for (uint32_t i = placed - late->first; i < late->n; i++) {
		struct iovec local = { (void *)(uintptr_t)(late->data + late->write[i].at), late->write[i].len };
		enum nic_dma r;

		if (!local.iov_len)
			return NIC_ST_TRANSPORT;
		if (!nic_remote_check(link->slot, ctx->peer_vi, late->write[i].addr, late->write[i].len, late->write[i].handle, NIC_MEM_RDMA_WRITE))
			return NIC_ST_RDMA_PROT;
		r = nic_dma_write(nic, link, &local, 1, late->write[i].addr, late->write[i].len);
		if (r != NIC_DMA_OK)
			return r == NIC_DMA_FAULT ? NIC_ST_RDMA_PROT : NIC_ST_TRANSPORT;
		nic_count(nic, bytes_write, late->write[i].len);
	}
	return 0;
}

void nic_late_forget(struct nic_link *link)
{
	free(link->late);
	link->late = NULL;
}
