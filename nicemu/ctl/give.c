/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program, sending side, the short way: Send_Short, whose message is in the command or is copied into a buffer of the pool, and such a buffer that
 * is given away whole.  No descriptor, nothing to translate; the queue must be empty, so that nothing is overtaken.  What comes out at the
 * other end take.c takes.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/ctl/tx.h"
#include "nicemu/util/copy.h"

enum {
	PATIENCE = 64,               /* looks for room on a full link */
	/*
	 * Bytes of a message in cells, whose lines the peer asks for while it waits and so takes from a sender that is at the last of them; a buffer's come behind
	 * its cell, undisturbed: one of a stream, an answer, and where a sender lets go of its lines.
	 */
	CELLS_ROW = NIC_BRIEF,
	CELLS_ANSWER = NIC_PAYLOAD + 3 * NIC_PAYLOAD_MORE,
	CELLS_DEMOTED = 400,
	LENT_MAX = 192,              /* buffers that a peer has of ours, before what may go in cells does: more than C-MPI's credits and what a receiver keeps */
	UNASKED = 64,                /* messages that may go in cells, when there was no buffer */
	/* Cells of a link that are left to messages of one: as many as let all of C-MPI's credits go, of four cells or of seven each. */
	SCARCE = NIC_RING_CELLS / 16,
	SCARCE_DEMOTED = NIC_RING_CELLS / 4,
	LAP_ROOM = NIC_RING_LAP / 2, /* cells that are free when a new lap begins: for a window of 64 messages of one */
	LAP_CAME = NIC_RING_LAP / 4, /* cells that may have come meanwhile */
	LAP_BUFFERS = 512,           /* bytes: of longer messages in buffers the cells are the least */
	LINE = 64,
};

/* What follows the head of a short message of several cells. */
static nic_noinline void fill_short(struct nic_link *link, struct nic_packet *p, const struct nic_short *msg)
{
	struct nic_filling f = nic_filling_of(link, p);

	f.at += sizeof(msg->head);
	f.room -= sizeof(msg->head);
	nic_fill(&f, msg->a, msg->alen);
	nic_fill(&f, msg->b, msg->blen);
}

/* Should a message of so many bytes go in a buffer, though there is room for its cells? */
static inline bool many(const struct nic_link *link, uint64_t len)
{
	if (nic_unlikely(link->demotes))
		return len > CELLS_DEMOTED;
	return len > CELLS_ROW && (len > CELLS_ANSWER || link->rx_pos == link->answered);
}

static inline uint32_t scarce(const struct nic_link *link)
{
	return nic_unlikely(link->demotes) ? SCARCE_DEMOTED : SCARCE;
}

/* What is left to do when a message in a buffer has gone. */
static inline void given(struct nic *nic, struct nic_link *link, uint32_t index, size_t from, size_t len)
{
	bool answers = nic_link_answers(link);

	if (answers && link->demotes) {
		__asm__("" : "+r"(index)); /* or gcc keeps the address from where the message was copied to it */
		nic_demote_lines(nic_buffer(nic, index) + from, len);
		nic_count(nic, demoted, 1);
	}
	nic_link_own(link, 1, answers);
	nic_tx_own_ahead(nic, len);
}

/* None is in hand.  To find the pool empty, or somebody at it, takes longer than a message: then some that may go in cells go unasked. */
static nic_noinline bool find_spare(struct nic *nic, struct nic_link *link, uint32_t len)
{
	bool brief = len <= NIC_INLINE_MAX;

	if (brief && link->unasked) {
		link->unasked--;
		return false;
	}
	if (nic_buffer_fetch(nic))
		return true;
	if (brief)
		link->unasked = UNASKED;
	return false;
}

/*
 * A buffer.  For a message that may go in cells not if many have not come back: who sends by value need not look at its NIC afterwards, and
 * one that never does would draw on the pool without end (longer ones do, as those of descriptors: there C-MPI's credits are the bound).
 */
static inline bool spare(struct nic *nic, struct nic_link *link, uint32_t len, uint32_t *index)
{
	if (nic_unlikely(link->balance <= -LENT_MAX && len <= NIC_INLINE_MAX)) {
		nic_count(nic, buffers_away, 1);
		return false;
	}
	if (nic_unlikely(!nic->slot->nbuffers) && !find_spare(nic, link, len))
		return false;
	*index = nic_buffer_pop(nic);
	return true;
}

/*
 * A short lap is over: the rest of the ring is passed over, unless the peer is so far behind that its cells are wanted.  Not where messages come, too:
 * theirs push these lines out of the nearest cache, and who sends does not look at what has come.
 */
static void skip(struct nic *nic, struct nic_link *link)
{
	uint32_t pos = link->tx_pos, cells = nic_ring_rest(pos), came = link->rx_pos - link->rx_lap;
	struct nic_packet *p;

	link->rx_lap = link->rx_pos;
	if (cells > NIC_RING_CELLS - NIC_RING_LAP || came > LAP_CAME || pos / NIC_RING_CELLS % NIC_RING_FULL == NIC_RING_FULL - 1)
		return;
	link->tx_limit = nic_load_acquire(link->tx_head) + NIC_RING_CELLS; /* L2, as in nic_link_reserve */
	if ((int32_t)(link->tx_limit - pos) < (int32_t)(cells + LAP_ROOM))
		return;
	p = &link->tx[pos & (NIC_RING_CELLS - 1)];
	nic_packet_set(p, nic_packet_head(nic_packet_word(NIC_OP_SKIP, 0, 0), 0));
	p->imm = 0;
	nic_link_store(link, p, pos, cells);
	nic_count(nic, packets_sent, 1);
}

/* A packet has left that ends a short lap, if it has cells that count, or the peer sleeps, or both. */
static nic_noinline int left(struct nic *nic, struct nic_link *link, uint32_t cells)
{
	if (nic_link_lapped(link, cells))
		skip(nic, link);
	if (nic_link_asleep(link))
		nic_bell_ring(link);
	return NIC_OK;
}

/* All that may be left to do; cells: those that count for a lap. */
static inline int leave(struct nic *nic, struct nic_link *link, uint32_t cells)
{
	return nic_unlikely(nic_link_lapped(link, cells) || nic_link_asleep(link)) ? left(nic, link, cells) : NIC_OK;
}

/* The head of the packet of a message in a buffer.  Opaque, so that it alone is kept while the message is copied. */
static inline uint64_t head_of(const struct nic_vi_ctx *ctx, uint32_t len)
{
	uint64_t head = nic_packet_head(nic_packet_in_buffer(ctx->to_peer), len);

	__asm__("" : "+r"(head));
	return head;
}

/* A message in a buffer, from `at` on in it, on a link with room for its packet.  copied: it was not there before. */
static inline int give(struct nic *nic, struct nic_link *link, uint64_t head, uint32_t index, uint64_t at, bool copied)
{
	uint32_t pos = link->tx_pos, len = nic_packet_head_len(head);
	struct nic_packet *p = &link->tx[pos & (NIC_RING_CELLS - 1)];
	uint64_t first = copied ? 0 : at / LINE * LINE; /* what was copied begins in the first line */

	nic_packet_set(p, head);
	p->imm = 0;
	nic_packet_buffer(p, index, at);
	p->buf.handle = nic_buffer_next(nic) << 1;
	if (nic_unlikely(link->few)) {
		link->few = false;
		p->buf.handle |= NIC_SEND_SOON;
	}
	nic_link_store(link, p, pos, 1);
	link->balance--;
	nic_count(nic, packets_sent, 1);
	nic_count(nic, send_short, 1);
	if (copied)
		nic_count(nic, bytes_buffer, len);
	else
		nic_count(nic, bytes_given, len);
	nic_link_foresee(link, nic_buffer(nic, index) + at, len); /* the peer takes this one, when it answers */
	given(nic, link, index, first, at - first + len);
	return leave(nic, link, len <= LAP_BUFFERS);
}

/*
 * The same of one that is not in it yet.  The last piece, mostly the long one, begins with a line, here and where the receiver copies it from: the
 * copy's stores and loads then are whole lines, not two halves each.
 */
static inline int give_copy(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_short *msg, struct nic_link *link, uint32_t len,
                            uint32_t index)
{
	const struct nic_short m = *msg;
	uint64_t head = head_of(ctx, len);
	uint64_t at = -(uint64_t)(sizeof(m.head) + (nic_likely(m.blen) ? m.alen : 0)) % LINE;
	uint8_t *to;

	if (nic_unlikely(at > NIC_BUFFER_SIZE - len))
		at = 0;
	to = nic_buffer(nic, index) + at;
	memcpy(to, &m.head, sizeof(m.head));
	nic_copy(to + sizeof(m.head), m.a, m.alen);
	nic_copy_owned(to + sizeof(m.head) + m.alen, m.b, m.blen);
	return give(nic, link, head, index, at, true);
}

/* A message of a command that had better not go in cells, or cannot; false: there is no buffer, or no leave for it. */
static nic_noinline bool send_in_buffer(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_short *msg, struct nic_link *link,
                                        uint32_t len)
{
	uint32_t index;

	if (!nic_tx_room(nic, ctx, link) || !spare(nic, link, len, &index))
		return false;
	give_copy(nic, ctx, msg, link, len, index);
	return true;
}

/*
 * The link is full, and the peer is most often just reading it: what a few looks cost is less than the other way.  When
 * they were in vain, the next message looks half as often.
 */
static nic_noinline struct nic_packet *await_room(struct nic_link *link, uint32_t cells)
{
	struct nic_packet *p = NULL;

	for (uint32_t n = link->patience; n && !p; n--) {
		nic_cpu_relax();
		p = nic_link_reserve(link, NIC_RING_RESERVE + cells - 1);
	}
	link->patience = p ? PATIENCE : link->patience / 2 + (link->patience == 0);
	return p;
}

/* In cells, however it is cut and however few are left; looks a few times for room. */
static nic_noinline int send_filled(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_short *msg, struct nic_link *link, uint32_t len)
{
	uint32_t cells = nic_packet_cells(len);
	struct nic_packet *p = nic_tx_room_for(nic, ctx, link, cells);

	if (nic_unlikely(!p && !(p = await_room(link, cells))))
		return NIC_NOT_DONE;
	memcpy(p->data, &msg->head, sizeof(msg->head));
	if (cells == 1) {
		nic_copy_short(p->data + sizeof(msg->head), msg->a, msg->alen);
		nic_copy_short(p->data + sizeof(msg->head) + msg->alen, msg->b, msg->blen);
	} else {
		fill_short(link, p, msg);
	}
	nic_tx_head(p, ctx, NIC_OP_SEND, len, 0);
	nic_count(nic, packets_sent, 1);
	nic_link_publish(link, p, cells);
	nic_link_own(link, cells, nic_link_answers(link));
	nic_count(nic, send_short, 1);
	nic_count(nic, bytes_inline, len);
	return NIC_OK;
}

/* Whatever the quick way below is not for. */
static nic_noinline int send_short(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_short *msg, struct nic_link *link)
{
	uint64_t total = (uint64_t)sizeof(msg->head) + msg->alen + msg->blen;
	uint32_t len = (uint32_t)total, cells = nic_packet_cells(len);

	if (nic_unlikely(total > ctx->short_max || !nic_vi_tx_empty(ctx))) /* 0: not connected */
		return NIC_NOT_DONE;
	if (len > NIC_INLINE_MAX)
		return send_in_buffer(nic, ctx, msg, link, len) ? NIC_OK : NIC_NOT_DONE;
	if (cells > 1 && (!nic_link_reserve(link, scarce(link) + cells - 1) || many(link, len)) && send_in_buffer(nic, ctx, msg, link, len))
		return NIC_OK;
	return send_filled(nic, ctx, msg, link, len);
}

/* Does it fit several cells the quick way?  The first has the head and `a` and begins with `b`; more cells are left than it takes. */
static inline bool fits_cells(const struct nic_short *msg, const struct nic_link *link)
{
	return msg->alen <= NIC_PAYLOAD - sizeof(msg->head) && (int32_t)(link->tx_limit - link->tx_pos) >= (int32_t)(scarce(link) + NIC_PACKET_CELLS);
}

/* That way. */
static nic_noinline int send_cells(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_short *msg, struct nic_link *link, uint32_t len)
{
	uint32_t cells = nic_packet_cells(len), room = NIC_PAYLOAD - (uint32_t)sizeof(msg->head) - msg->alen, left = msg->blen - room;
	uint32_t pos = link->tx_pos;
	struct nic_packet *p = &link->tx[pos & (NIC_RING_CELLS - 1)];
	const uint8_t *b = (const uint8_t *)msg->b + room;
	bool answers;

	/* What the peer has read last comes all at once; while it polls it may have taken some back (nic_link_expect). */
	for (uint32_t i = 1; i < cells; i++)
		nic_prefetch_write(nic_link_more(link->tx, pos, i));
	for (uint32_t i = 1;; i++) {
		struct nic_more *more = nic_link_more(link->tx, pos, i);

		more->pos = pos + i;
		if (left <= NIC_PAYLOAD_MORE) {
			nic_copy_short(more->data, b, left);
			break;
		}
		nic_copy_short(more->data, b, NIC_PAYLOAD_MORE);
		b += NIC_PAYLOAD_MORE;
		left -= NIC_PAYLOAD_MORE;
	}
	/* The first line last: the peer polls it, and would take it away while the others are being written. */
	nic_packet_set(p, nic_packet_head(ctx->to_peer, len));
	p->imm = 0;
	memcpy(p->data, &msg->head, sizeof(msg->head));
	nic_copy_short(p->data + sizeof(msg->head), msg->a, msg->alen);
	nic_copy_short(p->data + NIC_PAYLOAD - room, msg->b, room);
	nic_link_store(link, p, pos, cells);
	answers = nic_link_answers(link);
	if (answers && link->demotes) {
		nic_link_let_go(link, cells);
		nic_count(nic, demoted, 1);
	}
	nic_link_own(link, cells, answers);
	nic_count(nic, packets_sent, 1);
	nic_count(nic, send_short, 1);
	nic_count(nic, bytes_inline, len);
	return leave(nic, link, cells);
}

/* So many bytes that they are better off in a buffer, on a link with room. */
static nic_noinline int send_many(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_short *msg, struct nic_link *link, uint32_t len)
{
	uint32_t index;

	if (nic_likely(spare(nic, link, len, &index)))
		return give_copy(nic, ctx, msg, link, len, index);
	if (len > NIC_INLINE_MAX)
		return NIC_NOT_DONE;
	return fits_cells(msg, link) ? send_cells(nic, ctx, msg, link, len) : send_filled(nic, ctx, msg, link, len);
}

/* One cell, on a link with room: calls nothing but at its end, so that nothing has to be saved. */
int nic_send_short(struct nic *nic, uint32_t vi, const struct nic_short *msg)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	uint32_t alen = msg->alen, blen = msg->blen;
	uint64_t len = (uint64_t)sizeof(msg->head) + alen + blen;
	struct nic_link *link;
	struct nic_packet *p;

	__asm__("" : "+r"(ctx)); /* or gcc keeps two addresses of it, and saves registers */
	link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	if (nic_unlikely(len > ctx->quick_max || !nic_vi_tx_empty(ctx) || (int32_t)(link->tx_limit - link->tx_pos) <= NIC_RING_RESERVE))
		return send_short(nic, ctx, msg, link);
	if (nic_unlikely(len > NIC_PAYLOAD)) {
		if (many(link, len))
			return send_many(nic, ctx, msg, link, (uint32_t)len);
		if (nic_unlikely(!fits_cells(msg, link)))
			return send_short(nic, ctx, msg, link);
		return send_cells(nic, ctx, msg, link, (uint32_t)len);
	}
	p = &link->tx[link->tx_pos & (NIC_RING_CELLS - 1)];
	nic_packet_set(p, nic_packet_head(ctx->to_peer, (uint32_t)len));
	p->imm = 0;
	memcpy(p->data, &msg->head, sizeof(msg->head));
	nic_copy_short(p->data + sizeof(msg->head), msg->a, alen);
	nic_copy_short(p->data + sizeof(msg->head) + alen, msg->b, blen);
	nic_link_store(link, p, link->tx_pos, 1);
	nic_link_own(link, 1, nic_link_answers(link));
	nic_count(nic, packets_sent, 1);
	nic_count(nic, send_short, 1);
	nic_count(nic, bytes_inline, len);
	return leave(nic, link, 1);
}

/* Whatever the quick way below is not for. */
static nic_noinline int send_given(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, uint64_t off, uint32_t len)
{
	if (nic_unlikely(nic_vi_state(ctx) != NIC_VI_CONNECTED || !nic_vi_tx_empty(ctx) || ctx->no_short || !nic_tx_room(nic, ctx, link)))
		return NIC_NOT_DONE;
	return give(nic, link, head_of(ctx, len), off / NIC_BUFFER_SIZE, off % NIC_BUFFER_SIZE, false);
}

int nic_send_given(struct nic *nic, uint32_t vi, const void *data, uint32_t len)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	uint64_t off = (uintptr_t)data - (uintptr_t)nic->map->buffer;

	if (nic_unlikely(off >= sizeof(nic->map->buffer) || len <= NIC_PAYLOAD || len > NIC_BUFFER_SIZE - off % NIC_BUFFER_SIZE ||
	                 len > ctx->max_transfer))
		return NIC_NOT_DONE;
	if (nic_unlikely(!ctx->quick_max || !nic_vi_tx_empty(ctx) || (int32_t)(link->tx_limit - link->tx_pos) <= NIC_RING_RESERVE))
		return send_given(nic, ctx, link, off, len);
	return give(nic, link, head_of(ctx, len), off / NIC_BUFFER_SIZE, off % NIC_BUFFER_SIZE, false);
}
