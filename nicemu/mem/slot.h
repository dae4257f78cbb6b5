/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link between two process slots of a card: a ring of 64-byte cells, one producer (the sending slot's NIC), one
 * consumer (the receiving slot's NIC).  There is one ring for every ordered pair of slots, in the receiver's area.
 *
 * A packet is one cell, but for NIC_OP_SEND, whose payload goes on in the cells behind the first: its length says how many; and for NIC_OP_SKIP.
 *
 * Order: the producer fills the cells of a packet and publishes it by storing `seq` = position + 1 of its first cell with
 * release [L1]; the consumer's acquire load of `seq` pairs with it.  The consumer publishes how far it has read in `head`,
 * every NIC_RING_LAZY cells, with release [L2]; the producer's acquire load pairs with it, and makes overwriting them safe.
 * `seq` counts through 32 bits: a packet of an earlier lap carries a smaller number, so nobody has to clear cells.  For the
 * same reason every cell starts with a number, and a cell that goes on with a packet has its own position there: it is
 * never position + 1 of a later lap, because the ring has an even number of cells.
 *
 * While the consumer keeps up, the producer goes round in the first NIC_RING_LAP cells and passes over the others with a packet that
 * counts as all of them (NIC_OP_SKIP): a sender's stores to lines that its nearest cache still has are many at a time, others come
 * one after the other (docs/findings.md, "Short laps").  Every NIC_RING_FULL-th lap is of all cells, so that no number grows so old that the
 * 32 bits bring it back.
 */
#ifndef NIC_MEM_SLOT_H
#define NIC_MEM_SLOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	NIC_RING_CELLS = 512, /* a power of two */
	NIC_RING_LAP = 128,   /* cells of a short lap; a power of two */
	NIC_RING_FULL = 1024, /* of so many laps one is of all cells; a power of two */
	NIC_RING_LAZY = 32,   /* cells between two publications of `head` */
	NIC_RING_RESERVE = 4, /* cells that data leaves free for system messages */
	NIC_PAYLOAD = 48,     /* in the first cell of a packet */
	NIC_PAYLOAD_MORE = 60, /* in each further one */
	NIC_PUT_SHORT = 24,   /* of an RDMA write, in its packet */
	NIC_PACKET_CELLS = 18, /* at most */
	NIC_PAYLOAD_MAX = NIC_PAYLOAD + (NIC_PACKET_CELLS - 1) * NIC_PAYLOAD_MORE,
};

/* Packet operations.  "buffer": the payload lies in a pool buffer that changes hands with the packet. */
enum nic_op {
	NIC_OP_NONE,
	NIC_OP_SEND,       /* payload inline, at most NIC_PAYLOAD_MAX bytes in as many cells as it takes */
	NIC_OP_SEND_BUF,   /* payload in a buffer */
	NIC_OP_SEND_PULL,  /* payload stays at the sender; the receiver copies it (cross-memory attach) and acknowledges */
	NIC_OP_WRITE_BUF,  /* RDMA write through a buffer, executed by the receiver */
	NIC_OP_WRITE_IMM,  /* an RDMA write is complete: consumes a receive, carries immediate data */
	NIC_OP_READ_REQ,   /* RDMA read through buffers: please send */
	NIC_OP_READ_BUF,   /* a part of the answer */
	NIC_OP_READ_SHORT, /* RDMA read: please put it beside the claim */
	NIC_OP_READ_HALF,  /* RDMA read: please copy the second half into my process */
	NIC_OP_WRITE_HALF, /* RDMA write: please copy the second half out of my process */
	NIC_OP_WRITE_SHORT, /* RDMA write: please put this in place; payload in the packet */
	NIC_OP_WRITE_PART, /* the same, a part of it, in a buffer */
	NIC_OP_ACK,        /* system: the oldest unacknowledged messages of the VI are in place, or were refused */
	NIC_OP_DISCONNECT, /* system: the sender's end of the VI is gone; len messages are acknowledged first, imm: error of the next one */
	/* from here on not about a VI of the link, as far as the link's part of the receiver knows */
	NIC_OP_RESYNC,     /* system: more ends are gone than could be told one by one: look at the sender's VIs */
	NIC_OP_RETURN,     /* system: surplus buffers come back */
	NIC_OP_SKIP,       /* system: nothing; counts as all cells up to the ring's end */
	NIC_OP_QNIX,       /* a packet with a QNIX header (mem/qnix.h) at the start of its data */
	NIC_OP_COUNT
};

/* Packet flags, in the upper byte of len_flags. */
enum {
	NIC_PF_IMM = 0x01u << 24,   /* imm is valid */
	NIC_PF_MORE = 0x02u << 24,  /* further packets of the same message follow */
	NIC_PF_ACK = 0x04u << 24,   /* acknowledge this message when it is in place */
	NIC_PF_BUF = 0x10u << 24,   /* QNIX: the payload is in a buffer, whose number follows the header */
	NIC_PF_ERROR = 0x08u << 24, /* ACK, READ_BUF: refused; imm is the NIC_ST_* error */
	NIC_PF_LEN = 0x00FFFFFFu,
};

/* `handle` of a message in a buffer: is it to be returned soon?  Above that bit the number of the buffer that its sender would take next, a hint. */
enum { NIC_SEND_SOON = 1 };

struct nic_run {
	uint64_t addr; /* in the sender's process */
	uint64_t len;
};

struct nic_packet {
	_Atomic uint32_t seq;
	uint8_t op;    /* enum nic_op */
	uint8_t gen;   /* connection generation of the destination VI: packets of an earlier life are dropped */
	uint16_t vi;   /* destination VI; unused by RETURN */
	uint32_t len_flags;
	uint32_t imm;
	union {
		uint8_t data[NIC_PAYLOAD];
		struct {
			uint32_t buffer; /* index in the pool */
			uint32_t handle; /* WRITE_BUF: memory handle at the receiver; READ_BUF: id of the claim; SEND_BUF: NIC_SEND_SOON, and the sender's next buffer */
			uint64_t addr;   /* WRITE_BUF: target address; READ_BUF: offset in the message */
		} buf;
		struct {
			uint32_t nruns, pad;
			struct nic_run run[2];
		} pull;
		struct {
			uint64_t addr; /* at the receiver of the request */
			uint32_t handle;
			uint32_t claim; /* id (see claim.h) */
			uint64_t peer;  /* halves: address at the sender of the request; READ_SHORT: which reply (claim.h) */
			uint32_t part;  /* READ_REQ: bytes of a part */
			uint32_t pad;
		} ask;
		struct {
			uint32_t buffer; /* WRITE_PART, where buf has it */
			uint32_t handle;
			uint64_t addr;   /* at the receiver, of this part */
			uint32_t claim;  /* id (see claim.h) */
			uint32_t part;   /* number of it */
			uint8_t data[NIC_PUT_SHORT];
		} put;
		struct {
			uint32_t n;
			uint32_t buffer[11];
		} ret;
		struct {
			uint64_t header[2];
			union {
				uint8_t data[32];
				uint32_t buffer;
			};
		} qnix;
	};
};

/* Operation, generation and VI of a packet in one word: the four bytes from `op` on. */
static inline uint32_t nic_packet_word(uint8_t op, uint8_t gen, uint16_t vi)
{
	const struct {
		uint8_t op, gen;
		uint16_t vi;
	} parts = { op, gen, vi };
	uint32_t word;

	memcpy(&word, &parts, sizeof(word));
	return word;
}

static inline uint32_t nic_packet_word_of(const struct nic_packet *p)
{
	uint32_t word;

	memcpy(&word, &p->op, sizeof(word));
	return word;
}

/* Of a message in cells: of the same in a buffer, and the other way round. */
static inline uint32_t nic_packet_in_buffer(uint32_t word)
{
	return word ^ nic_packet_word(NIC_OP_SEND ^ NIC_OP_SEND_BUF, 0, 0);
}

/* And the length: the eight bytes from `op` on, for one store. */
static inline uint64_t nic_packet_head(uint32_t word, uint32_t len_flags)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word | (uint64_t)len_flags << 32 : (uint64_t)word << 32 | len_flags;
}

static inline uint32_t nic_packet_head_len(uint64_t head)
{
	return (uint32_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? head >> 32 : head);
}

static inline void nic_packet_set(struct nic_packet *p, uint64_t head)
{
	memcpy(&p->op, &head, sizeof(head));
}
_Static_assert(offsetof(struct nic_packet, len_flags) == offsetof(struct nic_packet, op) + 4, "side by side");
_Static_assert(offsetof(struct nic_packet, gen) == offsetof(struct nic_packet, op) + 1 &&
               offsetof(struct nic_packet, vi) == offsetof(struct nic_packet, op) + 2, "one word");

/* A cell that goes on with the payload of the packet before it. */
struct nic_more {
	uint32_t pos; /* its own position */
	uint8_t data[NIC_PAYLOAD_MORE];
};

/* Cells of a packet with that much payload inside. */
static inline uint32_t nic_packet_cells(uint32_t payload)
{
	return payload <= NIC_PAYLOAD ? 1 : 1 + (payload - NIC_PAYLOAD + NIC_PAYLOAD_MORE - 1) / NIC_PAYLOAD_MORE;
}

/* Cells from one on to the ring's end. */
static inline uint32_t nic_ring_rest(uint32_t pos)
{
	return NIC_RING_CELLS - (pos & (NIC_RING_CELLS - 1));
}

_Static_assert(sizeof(struct nic_packet) == 64 && sizeof(struct nic_more) == 64, "a cell is one cache line");
_Static_assert(NIC_RING_LAP >= 4 * NIC_PACKET_CELLS && NIC_RING_CELLS >= 2 * NIC_RING_LAP, "a few of the longest packets fit");
_Static_assert(offsetof(struct nic_packet, data) == 16, "header is 16 bytes");
_Static_assert(offsetof(struct nic_packet, put.buffer) == offsetof(struct nic_packet, buf.buffer), "who looks for buffers finds it");

/*
 * The doorbell of a slot.  1: its owner sleeps, or is about to; whoever has published something for it sets 0 and wakes it.
 * Why a sender needs no fence between publishing and looking at it: engine/wait.c.
 */
struct nic_bell {
	_Alignas(64) _Atomic uint32_t asleep; /* the owner sets 1, anybody 0; the word of a futex */
};

struct nic_ring_head {
	_Alignas(64) _Atomic uint32_t head; /* consumer writes */
};

#endif
