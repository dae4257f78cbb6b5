/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control program, receiving side, the short way: a message of one packet is handed over by value, copied out of the link, in the
 * buffer that came with it, or copied out of that.  The receive that it would have used stays at the head of its queue.  Whatever is not quite
 * ordinary is left to rx.c.  As there, a packet is foreign memory: every member is copied once and the copy is checked.
 */
#include "nicemu/ctl/ctl.h"
#include "nicemu/util/copy.h"
#include "nicemu/util/look.h"

_Static_assert(NIC_BRIEF == NIC_PAYLOAD + NIC_PAYLOAD_MORE, "two cells");

enum {
	AHEAD = 2048,    /* bytes of a buffer that are asked for ahead; the processor goes on by itself */
	NATURAL = 512 + 64,   /* bytes foreseen that looks need not ask for, where links hasten: the processor goes on to them by itself; */
	SOON = 8,             /* nor for longer ones in so many looks: a peer that has not answered by then is far away, or busy */
	HASTENED = 2048 + 64, /* the most for which cells of an answer are asked for */
	BY_LINES = 3072, /* bytes that a receiver who waits copies by the widest stores: 1 and 2 KiB take 2 % less, 4 KiB would take 5 % more */
};

/* The message in the buffer that a packet brings, from byte *where of that on, len <= NIC_BUFFER_SIZE; false: it is no good one. */
static inline bool placed(const struct nic *nic, const struct nic_packet *p, uint32_t len, uint8_t **data, uint64_t *where)
{
	uint32_t index = p->buf.buffer;

	*where = p->buf.addr;
	__asm__("" : "+r"(*where)); /* read once */
	if (nic_unlikely(index >= NIC_POOL_BUFFERS || *where > NIC_BUFFER_SIZE - len))
		return false;
	*data = nic_buffer(nic, index) + *where;
	return true;
}

static inline bool in_buffer(const struct nic *nic, const struct nic_packet *p, uint32_t len, uint8_t **data)
{
	uint64_t where;

	return placed(nic, p, len, data, &where);
}

static inline void ask_for(const uint8_t *payload, uint32_t len)
{
	nic_prefetch_lines(payload, len < AHEAD ? len : AHEAD);
}

/*
 * The packet behind one that came in a buffer, when it has come already, in a buffer, too: that one's lines are asked for while the consumer is
 * still at this one.  Behind cells it is not even looked whether there is another packet: the sender may be writing just those.
 */
static inline void ahead(const struct nic *nic, struct nic_link *link)
{
	const struct nic_packet *p = nic_link_peek(link);
	uint8_t *data;
	uint32_t len;

	if (!p || p->op != NIC_OP_SEND_BUF)
		return;
	len = p->len_flags & NIC_PF_LEN;
	if (len <= NIC_BUFFER_SIZE && in_buffer(nic, p, len, &data)) {
		link->rx_ahead = link->rx_pos;
		ask_for(data, len);
	}
}

/* The message has gone to the consumer; buffer: NULL when it is in out->data. */
static inline void handed(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_taken *out, uint8_t *buffer, uint32_t len)
{
	out->cookie = ctx->cookie;
	out->buffer = buffer;
	out->length = len;
	nic_count(nic, packets_received, 1);
	nic_count(nic, recv_short, 1);
}

/* The consumer wants no buffers: it gets a copy, and the buffer stays with the NIC.  NULL, as handed wants it. */
static nic_noinline uint8_t *copied_out(struct nic *nic, const struct nic_taken *out, uint8_t *buffer, uint32_t len)
{
	nic_copy(out->data, buffer, len);
	nic_buf_give(nic, buffer);
	return NULL;
}

/* Also behind cells: a peer whose buffers were still in use here when it sent the last one goes on in cells until they come back. */
static inline void give_surplus(struct nic *nic, struct nic_link *link)
{
	if (nic_unlikely(link->balance > link->keeps))
		nic_buffer_balance(nic, link);
}

/* The buffer goes to the consumer, or its message does, for a receive that takes no buffer. */
static inline void take_buffer(struct nic *nic, const struct nic_vi_ctx *ctx, struct nic_link *link, struct nic_taken *out, uint8_t *buffer,
                               uint32_t len, bool whole)
{
	link->keeps = nic_likely(!(link->rx[link->rx_pos & (NIC_RING_CELLS - 1)].buf.handle & NIC_SEND_SOON)) ? nic->keeps : NIC_KEEPS_FEW;
	if (nic_unlikely(link->rx_ahead != link->rx_pos))
		ask_for(buffer, len);
	nic_link_take(link, 1);
	link->balance++;
	out->surplus = nic_link_surplus(link);
	if (nic_likely(whole))
		out->data = buffer;
	else
		buffer = copied_out(nic, out, buffer, len);
	nic_link_consume(link, 1);
	ahead(nic, link);
	handed(nic, ctx, out, buffer, len);
	give_surplus(nic, link);
}

/*
 * By value: a message of one packet for a VI that is up, with a good receive at the head, and nothing before it that the
 * consumer has not seen.  Returns its length; 0: not this one.
 */
uint32_t nic_rx_take(struct nic *nic, struct nic_link *link, const struct nic_packet *p, const struct nic_cq *cq, struct nic_taken *out)
{
	uint32_t word = nic_packet_word_of(p), len = p->len_flags, vi = p->vi & (NIC_VI_TABLE - 1), cells;
	struct nic_vi_ctx *ctx = &nic->slot->vi[vi];
	const struct nic_rxe *e = &nic->slot->rxq[vi][ctx->rx_head & (NIC_RXQ - 1)];
	bool pool = e->control & NIC_CTL_POOL;
	uint8_t *buffer;

	/*
	 * Connected, and of this life of the connection (from_peer says so).  No flags: len is the length.  An empty message
	 * is none of these, having nothing to hand over.
	 */
	if (nic_unlikely((word != ctx->from_peer && nic_packet_in_buffer(word) != ctx->from_peer) || len - 1 >= NIC_BUFFER_SIZE ||
	                 ctx->peer_slot != link->peer || ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq) || ctx->rx_head == ctx->rx_tail ||
	                 (ctx->rx_bad | ctx->rx_skip | ctx->rx_done) || (len > e->room && !pool)))
		return 0;
	if (nic_likely(word == ctx->from_peer)) {
		if (nic_unlikely(len > NIC_INLINE_MAX))
			return 0;
		cells = nic_packet_cells(len);
		nic_link_take(link, cells);
		nic_link_collect(link, p, cells, out->data);
		nic_link_consume(link, cells);
		handed(nic, ctx, out, NULL, len);
		give_surplus(nic, link);
	} else {
		if (nic_unlikely((!pool && len > NIC_INLINE_MAX) || !in_buffer(nic, p, len, &buffer)))
			return 0;
		take_buffer(nic, ctx, link, out, buffer, len, pool);
	}
	/* So is the next one, until the receive has gone. */
	ctx->rx_quick = pool ? NIC_BUFFER_SIZE : e->room < NIC_INLINE_MAX ? e->room : NIC_INLINE_MAX;
	return len;
}

/* There is a packet on the link of a VI, and it is not known to be one that take_cell may take. */
static nic_noinline int take_found(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_cq *cq, struct nic_taken *out)
{
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	struct nic_packet *p = nic_link_peek(link);

	if (p && (p->op == NIC_OP_READ_SHORT || p->op == NIC_OP_SKIP) && nic->arch->pipe->take) { /* the peer waits for nothing else, and it is soon done */
		bool skips = p->op == NIC_OP_SKIP;

		nic_rx_run(nic, link, p, 1, true);
		p = skips ? nic_link_peek(link) : NULL;
	}
	out->length = p && p->vi == ctx - nic->slot->vi ? nic_rx_take(nic, link, p, cq, out) : 0;
	if (nic_likely(out->length))
		return NIC_OK;
	out->data = NULL;
	return NIC_NOT_DONE;
}

static nic_noinline int take_cells(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_cq *cq, struct nic_taken *out,
                                   struct nic_link *link, const struct nic_packet *p, uint32_t len)
{
	uint32_t cells = nic_packet_cells(len);

	if (nic_unlikely(len > NIC_INLINE_MAX))
		return take_found(nic, ctx, cq, out);
	nic_link_take(link, cells);
	nic_link_collect(link, p, cells, out->data);
	nic_link_consume(link, cells);
	handed(nic, ctx, out, NULL, len);
	give_surplus(nic, link);
	return NIC_OK;
}

/* Not in cells.  In a buffer, for a receive that takes one?  What came before was good there, too. */
static nic_noinline int take_given(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_cq *cq, struct nic_taken *out,
                                   struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len = p->len_flags;
	uint8_t *buffer;

	if (nic_unlikely(nic_packet_in_buffer(nic_packet_word_of(p)) != ctx->from_peer || ctx->rx_quick != NIC_BUFFER_SIZE || len - 1 >= NIC_BUFFER_SIZE ||
	                 ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq) || !in_buffer(nic, p, len, &buffer)))
		return take_found(nic, ctx, cq, out);
	take_buffer(nic, ctx, link, out, buffer, len, true);
	return NIC_OK;
}

/* nic_rx_take found the like good since the state of the receive queue changed: it is not looked at again. */
static nic_noinline int take_cell(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_cq *cq, struct nic_taken *out,
                                  struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len = p->len_flags;

	if (nic_unlikely(nic_packet_word_of(p) != ctx->from_peer || len - 1 >= ctx->rx_quick || ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq)))
		return take_given(nic, ctx, cq, out, link, p);
	if (nic_unlikely(len > NIC_PAYLOAD))
		return take_cells(nic, ctx, cq, out, link, p, len);
	nic_link_take(link, 1);
	nic_copy_short(out->data, p->data, NIC_PAYLOAD);
	nic_link_consume(link, 1);
	handed(nic, ctx, out, NULL, len);
	return NIC_OK;
}

/* Most calls find nothing, and have saved nothing for it.  No link is here where the NIC runs elsewhere. */
int nic_take_of(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_taken *out)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];

	nic->looks++;
	if (nic_unlikely(!link))
		return NIC_NOT_DONE;
	nic_link_expect(link);
	if (!nic_link_any(link)) {
		link->rx_row = 0;
		return NIC_NOT_DONE;
	}
	return take_cell(nic, ctx, cq, out, link, &link->rx[link->rx_pos & (NIC_RING_CELLS - 1)]);
}

/* ---- a message that is waited for ---------------------------------------------------------------------------------- */

_Static_assert(NIC_EXPECTED == 2 * sizeof(uint64_t) && (int)NIC_EXPECTED <= (int)NIC_PAYLOAD, "in the first cell");

/* Is it that one, and does it fit? */
static inline bool is_expected(struct nic_expected *m, const uint8_t *data, uint32_t len)
{
	uint64_t key;

	if (nic_unlikely(len < NIC_EXPECTED || len - NIC_EXPECTED > m->room))
		return false;
	memcpy(&m->word, data, sizeof(m->word));
	memcpy(&key, data + sizeof(m->word), sizeof(key));
	m->length = len - NIC_EXPECTED;
	return !(((m->word ^ m->head) & m->mask) | (key ^ m->key));
}

/* It is where the consumer wants it. */
static inline int delivered(struct nic *nic)
{
	nic_count(nic, packets_received, 1);
	nic_count(nic, recv_short, 1);
	nic_count(nic, recv_expected, 1);
	return NIC_OK;
}

static nic_noinline int expected_cells(struct nic *nic, struct nic_expected *m, struct nic_link *link, const struct nic_packet *p, uint32_t len)
{
	uint32_t cells = nic_packet_cells(len), left = len - NIC_PAYLOAD, i;
	uint8_t *to = m->to;

	if (nic_unlikely(len > NIC_INLINE_MAX || !is_expected(m, p->data, len)))
		return NIC_NOT_DONE;
	nic_link_take(link, cells);
	nic_copy_short(to, p->data + NIC_EXPECTED, NIC_PAYLOAD - NIC_EXPECTED);
	to += NIC_PAYLOAD - NIC_EXPECTED;
	for (i = 1; left > NIC_PAYLOAD_MORE; i++, to += NIC_PAYLOAD_MORE, left -= NIC_PAYLOAD_MORE)
		nic_copy_short(to, nic_link_more(link->rx, link->rx_pos, i)->data, NIC_PAYLOAD_MORE);
	nic_copy_short(to, nic_link_more(link->rx, link->rx_pos, i)->data, left);
	nic_link_consume(link, cells);
	give_surplus(nic, link);
	return delivered(nic);
}

static nic_noinline int expected_buffer(struct nic *nic, const struct nic_vi_ctx *ctx, const struct nic_cq *cq, struct nic_expected *m,
                                        struct nic_link *link, const struct nic_packet *p)
{
	uint32_t len = p->len_flags, next;
	uint64_t where;
	uint8_t *data;

	/* Its lines are what the consumer waits for: they are asked for before the rest is looked at. */
	if (nic_unlikely(nic_packet_in_buffer(nic_packet_word_of(p)) != ctx->from_peer || len - 1 >= NIC_BUFFER_SIZE ||
	                 !placed(nic, p, len, &data, &where)))
		return NIC_NOT_DONE;
	ask_for(data, len);
	if (nic_unlikely(ctx->rx_quick != NIC_BUFFER_SIZE || ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq) || !is_expected(m, data, len)))
		return NIC_NOT_DONE;
	next = p->buf.handle;
	link->keeps = nic_likely(!(next & NIC_SEND_SOON)) ? nic->keeps : NIC_KEEPS_FEW;
	nic_link_take(link, 1);
	link->balance++;
	nic_link_consume(link, 1);
	if (nic_unlikely(nic_link_surplus(link)))
		nic_buf_copy(nic, m->to, data + NIC_EXPECTED, m->length);
	else if (m->length <= BY_LINES)
		nic_copy_owned(m->to, data + NIC_EXPECTED, m->length);
	else
		nic_copy(m->to, data + NIC_EXPECTED, m->length);
	nic_buf_give(nic, data);
	give_surplus(nic, link);
	nic_count(nic, recv_foreseen, data == link->foreseen && link->foreseen_at + 1 == link->rx_pos);
	nic_link_foresee(link, nic_buffer(nic, next >> 1) + where, len); /* if this side sends no buffer before */
	return delivered(nic);
}

/* Between two looks. */
static inline void rest(const struct nic_link *link)
{
	if (link->hastens)
		nic_cpu_relax();
	else
		nic_cpu_look_over();
}

/* Nothing is there.  Does it come, in so many looks? */
static inline bool awaited_cells(const struct nic_link *link, uint32_t looks)
{
	for (; looks > 1; looks--) {
		rest(link);
		nic_link_expect(link);
		if (nic_link_any(link))
			return true;
	}
	return false;
}

/* It is foreseen where.  (Cells behind the first one are better asked for at each look: they are few.) */
static inline bool awaited_buffer(const struct nic_link *link, uint32_t looks)
{
	const _Atomic uint32_t *word = &link->rx[link->rx_pos & (NIC_RING_CELLS - 1)].seq;

	for (; looks > 1; looks--) {
		if (nic_look(word, link->rx_pos + 1, link->foreseen, link->foreseen + link->foreseen_len)) /* L1 */
			return nic_link_any(link); /* it has: said so that checkers of accesses see it */
		if (link->hastens)
			rest(link);
	}
	return false;
}

/* Nor had it come the last time, if there has been one since the last message. */
static nic_noinline bool awaited(struct nic_link *link, uint32_t looks)
{
	bool asks = link->foresees && link->foreseen_at == link->rx_pos && !link->rx_more, first = link->rx_row != 0;

	link->rx_row = 0;
	if (asks && link->hastens && link->foreseen_len <= HASTENED) {
		uint32_t soon = looks < SOON ? looks : SOON;

		asks = link->foreseen_len > NATURAL;
		if (asks && first) {
			if (awaited_cells(link, soon))
				return true;
			looks -= soon - (soon != 0);
		}
	}
	return asks ? awaited_buffer(link, looks) : awaited_cells(link, looks);
}

/*
 * A message is here.  Or it is not, and the processor goes on as if it were, as it has been when it had looked so often: what is asked for here is asked
 * for while the message is on the way.  Who waits for it mostly answers it, in as many cells as it has: their lines, which the peer has read, are this side's
 * when the answer is written.  Not of longer ones: the peer, which looks for the answer meanwhile, has taken them back by then.
 */
static inline void hasten(const struct nic_link *link)
{
	if (link->foreseen_at == link->rx_pos) {
		if (link->foreseen_len > HASTENED)
			return;
		nic_prefetch_lines(link->foreseen, link->foreseen_len);
	}
	for (uint32_t i = 0; i <= link->rx_more; i++)
		nic_prefetch_write(nic_link_more(link->tx, link->tx_pos, i));
}

int nic_take_expected(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_expected *m, uint32_t looks)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	const struct nic_packet *p;
	uint32_t len;

	nic->looks++;
	if (nic_unlikely(!link))
		return NIC_NOT_DONE;
	nic_link_expect(link);
	if (!nic_link_any(link) && !awaited(link, looks < NIC_EXPECTED_LOOKS ? looks : NIC_EXPECTED_LOOKS))
		return NIC_NOT_DONE;
	if (link->hastens)
		hasten(link);
	p = &link->rx[link->rx_pos & (NIC_RING_CELLS - 1)];
	len = p->len_flags;
	if (nic_unlikely(nic_packet_word_of(p) != ctx->from_peer || len - 1 >= ctx->rx_quick || ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq)))
		return expected_buffer(nic, ctx, cq, m, link, p);
	if (nic_unlikely(len > NIC_PAYLOAD))
		return expected_cells(nic, m, link, p, len);
	if (nic_unlikely(!is_expected(m, p->data, len)))
		return NIC_NOT_DONE;
	nic_link_take(link, 1);
	nic_copy_short(m->to, p->data + NIC_EXPECTED, m->length);
	nic_link_consume(link, 1);
	return delivered(nic);
}

/* ---- many in a row ---------------------------------------------------------------------------------------------------- */

/* How many cells of the link are a message that take_cell or take_cells would take, and brief, copied to `out`; 0: none. */
static inline uint32_t brief(const struct nic_link *link, uint32_t pos, uint32_t word, uint32_t most, struct nic_brief *out)
{
	const struct nic_packet *p = &link->rx[pos & (NIC_RING_CELLS - 1)];
	uint32_t len;

	if (nic_load_acquire(&p->seq) != pos + 1) /* L1 */
		return 0;
	len = p->len_flags;
	if (nic_unlikely(nic_packet_word_of(p) != word || len - 1 >= most))
		return 0;
	out->length = len;
	nic_copy_short(out->data, p->data, NIC_PAYLOAD);
	if (len <= NIC_PAYLOAD)
		return 1;
	nic_copy_short((uint8_t *)out->data + NIC_PAYLOAD, nic_link_more(link->rx, pos, 1)->data, NIC_PAYLOAD_MORE);
	return 2;
}

/* Whole messages of the VI's peer in good buffers; what came first was good there, too. */
uint32_t nic_take_buffers(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_message *out, uint32_t most, uint32_t longest)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	uint32_t word = nic_packet_in_buffer(ctx->from_peer), bound = longest < NIC_BUFFER_SIZE ? longest : NIC_BUFFER_SIZE, pos, n;
	bool surplus;

	if (nic_unlikely(!link || ctx->rx_quick != NIC_BUFFER_SIZE || ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq)))
		return 0;
	pos = link->rx_pos;
	surplus = nic_link_surplus(link);
	for (n = 0; n < most; n++) {
		const struct nic_packet *p = &link->rx[(pos + n) & (NIC_RING_CELLS - 1)];
		uint32_t len;
		uint8_t *data;

		if (nic_load_acquire(&p->seq) != pos + n + 1) /* L1 */
			break;
		len = p->len_flags;
		if (nic_unlikely(nic_packet_word_of(p) != word || len - 1 >= bound || !in_buffer(nic, p, len, &data)))
			break;
		nic_prefetch(data);
		out[n].data = data;
		out[n].length = len;
		out[n].surplus = surplus;
	}
	if (!n)
		return 0;
	if (link->rx_ahead != pos)
		ask_for(out[0].data, out[0].length);
	nic_link_take(link, n);
	link->balance += (int32_t)n;
	link->keeps = nic->keeps;
	nic_link_consume_row(link, n, n, 1);
	nic_count(nic, packets_received, n);
	nic_count(nic, recv_short, n);
	give_surplus(nic, link);
	return n;
}

uint32_t nic_take_row(struct nic *nic, uint32_t vi, const struct nic_cq *cq, struct nic_brief *out, uint32_t most)
{
	const struct nic_vi_ctx *ctx = nic_vi(nic, vi);
	struct nic_link *link = nic->link[ctx->peer_slot & (NIC_MAX_SLOTS - 1)];
	uint32_t quick = ctx->rx_quick < NIC_BRIEF ? ctx->rx_quick : NIC_BRIEF, word = ctx->from_peer, n, last = 0, cells, pos;

	if (nic_unlikely(!link || ctx->recv_cq != (uintptr_t)cq || nic_cq_any(cq)))
		return 0;
	pos = link->rx_pos;
	for (n = 0; n < most && (cells = brief(link, pos, word, quick, &out[n])); n++) {
		pos += cells;
		last = cells;
	}
	if (!n)
		return 0;
	cells = pos - link->rx_pos;
	nic_link_take(link, cells);
	nic_link_consume_row(link, n, cells, last);
	nic_count(nic, packets_received, n);
	nic_count(nic, recv_short, n);
	return n;
}
