/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link to one other slot over shared memory: this side's private end of the two rings of mem/slot.h.
 * A link between hosts will offer the same calls over libfabric; it has its place beside this file.
 */
#ifndef NIC_ENGINE_LINK_H
#define NIC_ENGINE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/engine/pace.h"
#include "nicemu/mem/claim.h"
#include "nicemu/mem/slot.h"
#include "nicemu/util/atomic.h"
#include "nicemu/util/copy.h"

enum {
	NIC_SYS_WAITING = 64, /* disconnects that may wait for room on one link */
	/* cells of a packet that are worth asking for before it has come: more of them would be taken from its sender */
	NIC_LINK_FEW = 10,
	NIC_LINK_FEW_DEMOTED = 3, /* where the sender lets go of them: then they come fast, and taking them early is the greater loss */
};

/* A disconnect that may have to wait for room on the link. */
struct nic_sysmsg {
	uint8_t gen;
	uint16_t vi;
	uint32_t acks;  /* messages in place that were not acknowledged yet */
	uint32_t error; /* of the message after them, NIC_ST_*; 0: none was refused */
};

/* A transfer that the peer's NIC was asked to help with. */
struct nic_ask {
	uint32_t id;
	uint16_t vi;
	uint8_t op;      /* enum nic_op of the request */
	bool open;       /* not over */
	bool closed;
	bool posted;     /* posted writes (ctl/rdma_post.c) */
	uint32_t pos;    /* of its descriptor in the send ring */
	uint32_t from;   /* halves: where the peer's begins; WRITE_PART: bytes that have left */
	uint32_t part;   /* READ_REQ, WRITE_PART: bytes of a part; posted: of the first write; a fetch: all */
	uint32_t limit;  /* READ_REQ: bytes that come in packets, as far as known */
	uint32_t alone;  /* bytes that this NIC would have to move without the other one, of a stream and of posted writes; of others none */
	uint32_t placed; /* WRITE_PART: bytes of those that have left that are known to be in place; posted: how many writes */
	uint32_t parts;  /* posted: writes that have left */
	uint32_t timed;  /* bytes of a transfer that is timed as one of many (ctl/rdma_rows.c); of others none */
	uint8_t reply;   /* READ_SHORT: where it is to be (claim.h); NIC_REPLIES: beside the claim, or nothing */
	uint64_t began;  /* when, by the processor's counter, if it is timed; else 0 */
	/* fetches (ctl/rdma_fetch.c) */
	void *to;        /* in this process; NULL: no fetch */
	uint64_t remote;
	uint32_t handle;
};

/* What the peer asks this NIC to help it with. */
struct nic_favour {
	uint64_t addr, peer; /* here; at the peer */
	uint32_t id, handle, len, part;
	uint32_t parts;      /* sent so far */
	uint16_t vi;
	uint8_t gen, op;
};

enum {
	NIC_PUT_MAX = 32 << 20, /* bytes of a write in packets, at most: of its parts a claim counts NIC_CLAIM_PLACES */
	NIC_PUT_PARTS = 8,      /* of these under way at once */
	NIC_POSTED = 128,       /* posted writes under way at once */
	NIC_RACE_ABOVE = 16 << 10, /* bytes: longer ones race as streams or by halves or alone, these and shorter ones in packets or alone (engine/dma.h); */
	NIC_RACE = 32 << 10,    /* the longest transfer of the first class that is timed; of each further one it is twice as long */
	NIC_RACES = 8,          /* streams or not */
	NIC_HALF_RACES = 4,     /* halves or not */
	NIC_BRIEF_RACES = 8,    /* up to 32 and 256 bytes, and on by twice as many to NIC_RACE_ABOVE */
	NIC_BRIEF_EVERY = 16,   /* of so many short transfers of a class one is timed, or each one of a trial */
	NIC_ROW_LENGTHS = 4,
	NIC_ROW_CLASSES = 3 * NIC_ROW_LENGTHS, /* of each kind: enum nic_row_kind */
	NIC_ROW_PLACES = 4,
	NIC_ROW_LOOKS = 7,
	NIC_ROW_LOOK = 4, /* one that found something is as much as so many that did not */
};

/* What is timed (ctl/rdma_rows.c): long messages of the peer's and this host's gets, many in a row; single messages; this host's puts, many in a row. */
enum nic_row_kind { NIC_ROW_MANY, NIC_ROW_SINGLE, NIC_ROW_PUT };

/* Of a kind and a length: messages sent (0) or read (1), gets as streams (0) or alone or by halves (1), puts in packets (0) or alone or by halves (1). */
struct nic_row_class {
	struct nic_pace pace;
	uint32_t vain;      /* rows, or single ones, since the last one that went the way that is to be gone */
	uint32_t rows;      /* that count together so far, and what they have taken */
	uint64_t ns, bytes;
};
/* While the processors are so far apart. */
struct nic_row_place {
	uint32_t apart;     /* ns that a line of the peer's takes; 0: not known yet, or never */
	uint32_t left;      /* when it was left last, in places left */
	struct nic_row_class of[NIC_ROW_CLASSES];
};
struct nic_row {
	uint32_t open;      /* under way, */
	uint32_t own;       /* of which so many are this host's reads and writes */
	uint32_t n[2];      /* of those that are timed together, so many are over, */
	uint32_t firsts[2]; /* of which so many were single to their sender, */
	uint32_t met;       /* and so many began while another was under way */
	uint32_t class;
	bool mixed;         /* of several classes, or places */
	uint32_t came[NIC_ROW_CLASSES], sent[NIC_ROW_CLASSES]; /* this way and the other one, since it was last seen whether that is an exchange; */
	uint32_t mutual;    /* a bit for each class that is, */
	uint32_t decided;   /* and for each of which that has been seen; */
	uint32_t gets;      /* of this host, since the last message either way; */
	uint32_t follows;   /* and for each of which the other end decides */
	bool seen;          /* there has been one */
	bool read[NIC_ROW_CLASSES];       /* was the last row? */
	uint32_t settle[NIC_ROW_CLASSES]; /* bytes that are not timed yet, since the way has changed, and 1; 0: nothing has come yet */
	uint64_t bytes;
	uint64_t began, last; /* nic_clock: the first; when the last one was over, */
	uint32_t last_pos;    /* and where the link was then */
	uint32_t single;    /* not 0: the class of the only one that is under way, which is single so far; it began */
	uint64_t since;     /* then, */
	uint32_t singles;   /* and is so many behind each other that said so */
	struct nic_row_place at[NIC_ROW_PLACES];
	uint32_t place;     /* where it is just now, */
	uint32_t ns;        /* and a line takes so long; 0: not known yet, or never */
	uint32_t places;    /* left so far */
	uint32_t far;       /* ns that a line takes at least where the processors share no cache */
	uint32_t apart[NIC_ROW_LOOKS]; /* ns that a line took lately, a few times; */
	uint32_t looked;    /* so often, */
	uint32_t look;      /* and in this row; */
	uint64_t count;     /* what stood in it */
	uint32_t reads;     /* those that are better read, and puts that are better not in packets, a bit for each class: the peer has the same word */
	uint32_t looks;     /* of this side's host, when it sent the last one */
};

/* Long messages in buffers (ctl/bulk.c).  nic_clock: */
struct nic_bulk {
	struct nic_pace pace; /* many (0) or few (1) go round */
	uint64_t began;       /* the round, if one is running, */
	uint32_t sent, pos;   /* buffers of it that have left; where the link was when the last one was to */
	uint32_t vain;        /* rounds of few that were none, since the last one that was */
	uint64_t left, asked; /* when the last buffer might leave, and when there was one to leave */
	uint32_t looks;       /* so often had this side looked at its NIC when the last one might */
	uint32_t taken;       /* by the peer, when it took none for too long */
	uint32_t many;        /* buffers that leave before few go round again, where lines migrate */
	bool away;            /* it has taken none since */
	bool running;
	bool held;            /* the last one that was to leave had to wait, */
	bool granted;         /* or not */
};

/* A peer that was late with its part: the more often, the more transfers are done alone before it is asked again. */
struct nic_doubt {
	uint32_t alone; /* transfers still to be done alone */
	uint32_t depth; /* how many it was, or will be when the peer is late again */
};

struct nic_link {
	/* every message; a line */
	struct nic_packet *tx;            /* ring in the peer's area */
	uint32_t tx_pos, tx_limit;        /* next cell; first position known to be in use still */
	_Atomic uint32_t *bell;           /* the peer's doorbell */
	struct nic_packet *rx;            /* ring in this slot's area */
	uint32_t rx_pos, rx_told;         /* next cell; position last published */
	_Atomic uint32_t *rx_exact;       /* rx_pos in the slot */
	uint32_t rx_row;                  /* packets taken since the last look that found none */
	uint32_t answered;                /* rx_pos when a message was last sent the short way (nic_link_answers) */
	int32_t balance;                  /* buffers received from the peer less buffers sent to it */
	uint8_t rx_more;                  /* cells behind the first that the next packet is expected to have, if worth while */
	uint8_t tx_ahead;                 /* cells between the next packet and those that are taken hold of in a stream, besides as many as a packet has */
	uint8_t keeps;                    /* surplus of buffers that is not returned yet */
	bool demotes : 1;                 /* answers of more than a line let go of their lines */
	bool migrates : 1;                /* lines of what goes back to the peer are made this side's first (nic_migrate_line) */
	bool few : 1;                     /* the next buffer is one of few that go round (ctl/bulk.c) */
	bool foresees : 1;                /* what an awaited message will lie in is asked for when its first line comes (util/look.h) */
	bool hastens : 1;                 /* who waits rests between two looks, and asks for an answer's cells at once (take.c) */
	/* messages in buffers */
	const uint8_t *foreseen;          /* where the next one will lie, most likely, */
	uint32_t foreseen_len;            /* as long as the last one either way, */
	uint32_t foreseen_at;             /* if it is the packet at this position */
	/* less often */
	_Atomic uint32_t *tx_head;        /* how far the peer has read its ring, every so often; */
	_Atomic uint32_t *tx_exact;       /* and exactly */
	_Atomic uint32_t *rx_head;        /* and this side the other */
	uint32_t rx_ahead;                /* position of the packet whose payload was asked for ahead */
	uint32_t tx_told;                 /* tx_pos when rx_told was published */
	uint32_t rx_lap;                  /* rx_pos when a short lap of what is sent was last over */
	/* the peer */
	uint32_t peer;                    /* slot */
	uint32_t epoch;
	int pid;
	bool cma;                         /* cross-memory attach works towards the peer */
	bool lost;
	bool resync;                      /* waiting disconnects did not fit: the peer must look for itself */
	struct nic_slot *slot;            /* the peer's area */
	uint8_t *heap;                    /* window on the card's heap, if both have it (engine/card.h) */
	uint64_t *plain;                  /* counts bytes that were copied plainly */
	uint32_t patience;                /* looks that a short message spends on a full ring */
	uint32_t unasked;                 /* messages that go in cells, though a buffer would be better: there was none */
	uint64_t *bells;                  /* counter of the times this side rang */
	uint64_t *migrated_cells;         /* counter */
	uint32_t sys_head, sys_tail;
	struct nic_sysmsg sys[NIC_SYS_WAITING];
	/* transfers on which both NICs work (ctl/rdma_ask.c) */
	struct nic_claims *asked;         /* in this slot's area: what the peer was asked for */
	struct nic_claims *asking;        /* in the peer's area: what it asks for */
	uint32_t ask_head, ask_tail;      /* ids of the oldest and the next one */
	uint32_t favour_head, favour_tail;
	uint32_t looked;                  /* so many times at requests of the peer's */
	uint32_t idle;                    /* passes without a sign of the peer */
	uint32_t idle_pos, idle_id;       /* rx_pos and ask_head when the last one was seen */
	uint32_t in_the_way;              /* open writes that no other one may pass in packets: halves, those of which parts have still to leave, those that were taken back */
	uint64_t alone;                   /* bytes of open streams, both ways; */
	uint64_t away;                    /* of these, those of writes that have left and are not known to be in place */
	uint32_t absent_seen;
	bool absent;                      /* the peer was not there, and has looked at nothing since */
	uint32_t mutual;                  /* not 0: the peer has asked lately, too */
	uint32_t looks;                   /* of the host, as counted when the last transfer began */
	uint32_t stream_max, stream_busy; /* bytes: up to this a read is a stream, alone, where that does not race, and one of many */
	uint32_t put_max, put_busy;       /* the same of writes in packets, alone and one of many; NIC_PUT_MAX at most */
	uint32_t get_max;                 /* bytes: up to this a read is a short one; NIC_REPLY_MAX at most */
	uint32_t replies;                 /* that are in use, a bit each */
	struct nic_doubt put, get, half;  /* of writes in packets, of short reads, and of halves */
	struct nic_doubt send;            /* of this side's own being there for a long message that it sends */
	uint32_t send_max;                /* bytes: up to this a message is better sent than read (nic_rather_sent); 0: none */
	struct nic_row row;
	struct nic_bulk bulk;
	uint32_t half_min, half_row;      /* from this on transfers that are not timed are shared by halves; writes of many in a row */
	struct nic_pace pace[2][NIC_RACES]; /* reads and writes one at a time, of up to race_max bytes: as streams (1) or otherwise (0) */
	uint32_t race_max;
	uint32_t stream_later;            /* bytes of timed transfers, longer than stream_max or put_max, before streams of them are tried, too */
	struct nic_pace half_pace[2][NIC_HALF_RACES]; /* reads and writes one at a time, of up to half_race_max bytes: by halves (1) or alone (0) */
	uint32_t half_race_max;
	struct nic_pace brief_pace[2][NIC_BRIEF_RACES]; /* reads and writes one at a time, of up to brief_race_max bytes: with the other NIC (1) or alone (0) */
	uint32_t brief_race_max[2];
	uint8_t briefs[2][NIC_BRIEF_RACES]; /* counts those that could be timed */
	bool raced;                       /* the transfer that begins now is timed, */
	bool in_row;                      /* or is, as one of many */
	bool followed[2];                 /* was the last read by value, or write, one of many in a row? */
	bool impatient;                   /* no way is set: a half of a read that the peer has not begun in time is done here, and so is most where cores are short */
	struct nic_ask *posted;           /* posted writes that are under way; NULL: none */
	struct nic_late *late;            /* what they were, when they are taken back */
	uint32_t posted_at[NIC_POSTED];   /* where their packets are in the ring */
	struct nic_ask ask[NIC_CLAIMS];
	struct nic_favour favour[NIC_CLAIMS];
};
_Static_assert(offsetof(struct nic_link, foreseen) == 64, "what every message touches is one line");

/* Of a single transfer of so many bytes, are two ways timed: a stream or not; halves or alone; packets or alone? */
static inline bool nic_link_races(const struct nic_link *link, uint32_t len)
{
	return len > NIC_RACE_ABOVE && len <= link->race_max;
}

static inline bool nic_link_half_races(const struct nic_link *link, uint32_t len)
{
	return len > NIC_RACE_ABOVE && len <= link->half_race_max;
}

static inline bool nic_link_brief_races(const struct nic_link *link, bool write, uint32_t len)
{
	return len && len <= link->brief_race_max[write];
}

/* wait.c: the peer sleeps; wakes it. */
void nic_bell_ring(struct nic_link *link);

/* The next free cell, or NULL when fewer than `reserve` + 1 are free. */
static inline struct nic_packet *nic_link_reserve(struct nic_link *link, uint32_t reserve)
{
	if (nic_unlikely((int32_t)(link->tx_limit - link->tx_pos) <= (int32_t)reserve)) {
		/* L2: pairs with the release in nic_link_tell; the cells before it may be overwritten */
		link->tx_limit = nic_load_acquire(link->tx_head) + NIC_RING_CELLS;
		if ((int32_t)(link->tx_limit - link->tx_pos) <= (int32_t)reserve)
			return NULL;
	}
	return &link->tx[link->tx_pos & (NIC_RING_CELLS - 1)];
}

/* The cell number `i` behind the first of a packet that is being filled or read. */
static inline struct nic_more *nic_link_more(struct nic_packet *ring, uint32_t pos, uint32_t i)
{
	return (struct nic_more *)&ring[(pos + i) & (NIC_RING_CELLS - 1)];
}

/* The reserved packet of so many cells, at `pos` (tx_pos), is the peer's now; which may sleep. */
static inline void nic_link_store(struct nic_link *link, struct nic_packet *packet, uint32_t pos, uint32_t cells)
{
	nic_store_release(&packet->seq, pos + 1); /* L1: pairs with the acquire in nic_link_any */
	link->tx_pos = pos + cells;
	atomic_signal_fence(memory_order_seq_cst); /* B1: no instruction; pairs with the barrier in nic_wait_doze */
}

/* After that: is the bell to be rung? */
static inline bool nic_link_asleep(const struct nic_link *link)
{
	return nic_load_relaxed(link->bell); /* B1 */
}

/* Hands the reserved packet of so many cells to the peer. */
static inline void nic_link_publish(struct nic_link *link, struct nic_packet *packet, uint32_t cells)
{
	nic_link_store(link, packet, link->tx_pos, cells);
	if (nic_unlikely(nic_link_asleep(link)))
		nic_bell_ring(link);
}

/*
 * Is a packet that is being sent the first since something came?  Then the peer most likely does nothing but wait for it.  Otherwise it is one of
 * a stream, and the peer is behind.
 */
static inline bool nic_link_answers(struct nic_link *link)
{
	bool answers = link->rx_pos != link->answered;

	link->answered = link->rx_pos;
	return answers;
}

/*
 * Gets hold of lines that will be written, after a packet of so many cells: off its path, and while the consumer gets the next one ready they come.
 * In a stream it is those of a packet after the next (nic_cores_ahead), if they are as long: otherwise each store waits for its line to come from the
 * peer, which read it a lap ago, and they come one after the other.  Of lines much farther ahead the peer's processor, which guesses what it will read next,
 * takes some back.  A peer that waits polls the next cell: there it is no more than those that the next packet goes on in.
 */
static inline void nic_link_own(struct nic_link *link, uint32_t cells, bool answers)
{
	uint32_t first = answers ? 1 : link->tx_ahead + cells, end = answers ? cells : first + cells;

	for (uint32_t i = first; i < end; i++)
		nic_prefetch_write(nic_link_more(link->tx, link->tx_pos, i));
}

/* Has the packet just published, of so many cells, ended a short lap? */
static inline bool nic_link_lapped(const struct nic_link *link, uint32_t cells)
{
	return (link->tx_pos & (NIC_RING_LAP - 1)) < cells;
}

/* Lets go of the lines of the packet just published, but the first: that one the peer is already asking for. */
static inline void nic_link_let_go(const struct nic_link *link, uint32_t cells)
{
	for (uint32_t i = cells - 1; i; i--)
		nic_demote(nic_link_more(link->tx, link->tx_pos, -i));
}

/* The peer's next packet most likely brings as much there, in a buffer.  A guess: nothing depends on it. */
static inline void nic_link_foresee(struct nic_link *link, const uint8_t *data, uint32_t len)
{
	link->foreseen = data;
	link->foreseen_len = len;
	link->foreseen_at = link->rx_pos;
}

/* Has a packet arrived? */
static inline bool nic_link_any(const struct nic_link *link)
{
	uint32_t pos = link->rx_pos;

	return nic_load_acquire(&link->rx[pos & (NIC_RING_CELLS - 1)].seq) == pos + 1; /* L1 */
}

/*
 * For a look at the link: when the last packet had a few cells, the next one's are asked for together with the first, so that
 * they come with it and not one after the other.  Not at the end of a row: then the peer is most likely just writing them.
 */
static inline void nic_link_expect(const struct nic_link *link)
{
	for (uint32_t i = link->rx_row < 2 ? link->rx_more : 0; nic_unlikely(i != 0); i--)
		nic_prefetch(nic_link_more(link->rx, link->rx_pos, i));
}

/* The packet that has arrived next, or NULL. */
static inline struct nic_packet *nic_link_peek(struct nic_link *link)
{
	return nic_link_any(link) ? &link->rx[link->rx_pos & (NIC_RING_CELLS - 1)] : NULL;
}

/* Copies the payload of a packet in whole cells: `to` has room for NIC_PAYLOAD_MAX bytes. */
static inline void nic_link_collect(const struct nic_link *link, const struct nic_packet *p, uint32_t cells, uint8_t *to)
{
	nic_copy_short(to, p->data, NIC_PAYLOAD);
	to += NIC_PAYLOAD;
	for (uint32_t i = 1; i < cells; i++, to += NIC_PAYLOAD_MORE)
		nic_copy_short(to, nic_link_more(link->rx, link->rx_pos, i)->data, NIC_PAYLOAD_MORE);
}

/* The packet that peek returned is taken: before its buffer has another owner, so that a crash loses it rather than doubles it. */
static inline void nic_link_take(struct nic_link *link, uint32_t cells)
{
	nic_store_relaxed(link->rx_exact, link->rx_pos + cells); /* read by who recovers this slot; for the peer it is a hint */
	nic_store_order();
}

/* Will the buffer that has just come most likely go back to the peer as it is, and are its lines to migrate when it has been read? */
static inline bool nic_link_surplus(const struct nic_link *link)
{
	return link->migrates && link->balance > link->keeps / 2;
}

/*
 * The cells before rx_pos may be overwritten; the first `read` of them, since the last time, were not passed over.  Where messages go to and fro one at a time
 * their lines stay shared: one store alone has its line sooner if it need not be fetched.  (A consumer that never takes the short way is not known to do so.)
 */
static nic_noinline void nic_link_tell(struct nic_link *link, uint32_t read)
{
	bool turns = link->rx_row <= 1 && link->tx_pos - link->tx_told >= read / 2;

	if (link->migrates && !turns) {
		for (uint32_t i = 0; i < read; i++)
			nic_migrate_line(&link->rx[(link->rx_told + i) & (NIC_RING_CELLS - 1)]);
		*link->migrated_cells += read;
	}
	link->tx_told = link->tx_pos;
	link->rx_told = link->rx_pos;
	nic_store_release(link->rx_head, link->rx_pos); /* L2: all reads of the packets come before */
}

/* Done with so many packets, of so many cells in all; `last` is the last one's. */
static inline void nic_link_consume_row(struct nic_link *link, uint32_t packets, uint32_t cells, uint32_t last)
{
	link->rx_more = (uint8_t)(last <= (link->demotes ? NIC_LINK_FEW_DEMOTED : NIC_LINK_FEW) ? last - 1 : 0);
	link->rx_pos += cells;
	link->rx_row += packets;
	if (nic_unlikely(link->rx_pos - link->rx_told >= NIC_RING_LAZY))
		nic_link_tell(link, link->rx_pos - link->rx_told - (cells > packets * NIC_PACKET_CELLS ? cells - 1 : 0)); /* NIC_OP_SKIP has more than any other */
}

/* Done with it. */
static inline void nic_link_consume(struct nic_link *link, uint32_t cells)
{
	nic_link_consume_row(link, 1, cells, cells);
}

#endif
