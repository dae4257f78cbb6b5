/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels between two protocol modules: packet types, their layouts and sizes.  Formats only, no behaviour.
 *
 * The header is 8 bytes, so that it, ob1's 14-byte match header and up to 26 bytes of data leave the host inside one
 * 64-byte NIC command.  The source of a packet is the VI it arrives on; the number of data bytes is what the NIC says it
 * received less the fixed part (the field bytes_in_this_packet of the C-MPI design).
 *
 * All processes of a job run on hosts of one byte order.  A receiver copies the fixed part before it checks it: a packet
 * longer than VIA_SMALL lies in memory that its sender could still write.
 */
#ifndef VIA_PACKET_H
#define VIA_PACKET_H

#include <stddef.h>
#include <stdint.h>

/*
 * Types: name, takes a credit (and a sequence number), bytes of the fixed part.  The order is MVICH's; what it does not
 * have stands at the end.  CANCEL_ACK and BARRIER keep their numbers; receiving one is a protocol error.
 */
#define VIA_PACKET_LIST(X) \
	X(NONE, 0, 0) \
	X(EAGER_START, 1, sizeof(struct via_eager_start)) \
	X(EAGER_NEXT, 1, sizeof(struct via_header)) \
	X(RENDEZVOUS_START, 1, sizeof(struct via_rendezvous_start)) \
	X(RENDEZVOUS_REPLY, 1, sizeof(struct via_rendezvous_reply)) \
	X(R3_DATA, 1, sizeof(struct via_r3_data)) \
	X(RPUT_FINISH, 1, sizeof(struct via_finish)) \
	X(RGET_FINISH, 1, sizeof(struct via_finish)) \
	X(CANCEL_REQUEST, 1, sizeof(struct via_finish)) \
	X(CANCEL_REPLY, 1, sizeof(struct via_finish)) \
	X(CANCEL_ACK, 1, sizeof(struct via_header)) \
	X(BARRIER, 1, sizeof(struct via_header)) \
	X(NOOP, 0, sizeof(struct via_noop)) \
	X(AM, 1, sizeof(struct via_header)) \
	X(ATOMIC_REQUEST, 1, sizeof(struct via_atomic_request)) \
	X(ATOMIC_REPLY, 1, sizeof(struct via_atomic_reply)) \
	X(BYE, 1, sizeof(struct via_header)) \
	X(EAGER, 1, sizeof(struct via_eager))
enum via_packet_type {
#define X(name, credited, size) VIA_PKT_##name,
	VIA_PACKET_LIST(X)
#undef X
	VIA_PKT_COUNT
};

struct via_header {
	uint8_t type;          /* enum via_packet_type */
	uint8_t tag;           /* AM: whose handler; NOOP: 0 or VIA_NOOP_BYE; CANCEL_REPLY: 1 taken back, 0 too late; else 0 */
	uint16_t id;           /* sequence number, from 1; 0 in packets that take no credit */
	uint8_t vbuf_credit;   /* receives posted since the last packet: the peer may send that many more */
	uint8_t remote_credit; /* credit the sender of this packet had before sending it (255: or more) */
	uint8_t noop_ack;      /* NOOPs received from the peer so far and replaced, modulo 256 */
	uint8_t consumed;      /* eager bytes delivered so far, in units of VIA_CONSUMED_UNIT, modulo 256 (see eager.c) */
};
/* The header as one little-endian word: the bits at which its members begin. */
enum { VIA_AT_ID = 16, VIA_AT_VBUF_CREDIT = 32, VIA_AT_REMOTE_CREDIT = 40, VIA_AT_NOOP_ACK = 48, VIA_AT_CONSUMED = 56 };
enum { VIA_CONSUMED_UNIT = 4096, VIA_EAGER_CHARGE = 64 };

/* The envelope of a matched message. */
struct via_envelope {
	uint64_t key;         /* communicator, rank of the sender in it, and tag (mpip_key) */
	uint64_t data_length; /* bytes of the whole message */
	uint64_t sreq;        /* names the sender's request in a reply; 0: no reply wanted */
	uint16_t mode;        /* enum via_mode */
	uint16_t packet_no;   /* counts the matched messages of a connection, from 0 */
	uint16_t single;      /* what the sender's NIC says (VipxRatherSent) of what is long: it times them */
	uint16_t reserved;
};
enum via_mode { VIA_MODE_STANDARD, VIA_MODE_SYNC, VIA_MODE_READY };

/*
 * A whole message in one packet; its length is the packet's.  32 bytes of data ride along in one cell of the NIC's link.
 * Nothing else of the envelope is needed: it is not synchronous, and both ends count.
 */
struct via_eager {
	struct via_header header;
	uint64_t key;
};

/* Announces a series, whose data follow in packets EAGER_NEXT. */
struct via_eager_start {
	struct via_header header;
	struct via_envelope envelope;
};

/* How the data of a rendezvous travels.  The one in the reply is authoritative. */
enum via_protocol { VIA_PROTO_R3, VIA_PROTO_RPUT, VIA_PROTO_RGET, VIA_PROTO_COUNT };

struct via_rendezvous_start {
	struct via_header header;
	struct via_envelope envelope;
	uint64_t buffer; /* RGET: the sender's memory */
	uint32_t handle;
	uint32_t protocol;
};

struct via_rendezvous_reply {
	struct via_header header;
	uint64_t sreq, rreq;
	uint64_t buffer; /* RPUT: the receiver's memory */
	uint32_t handle;
	uint32_t protocol;
	uint32_t consumed; /* eager bytes delivered so far, modulo 2^32 (see eager.c) */
	uint32_t reserved;
};

struct via_r3_data {
	struct via_header header;
	uint64_t rreq;
};

struct via_finish { /* RPUT: names the receiver's request, RGET and CANCEL: the sender's */
	struct via_header header;
	uint64_t req;
};

enum { VIA_NOOP_BYE = 1 }; /* header.tag of a NOOP that also says BYE, for want of credit */
struct via_noop {
	struct via_header header;
	uint32_t consumed; /* as in the reply */
	uint32_t reserved;
};

enum { VIA_OP_KEY = 255 };
struct via_atomic_request {
	struct via_header header;
	uint8_t op;   /* enum cmpi_atomic, or VIA_OP_KEY: for a handle of `operand` bytes at `addr` that allows `compare` */
	uint8_t size; /* 4 or 8 */
	uint16_t reserved;
	uint32_t handle;
	uint64_t addr, operand, compare;
	uint64_t req;
};

struct via_atomic_reply {
	struct via_header header;
	uint64_t req;
	uint64_t old; /* or the handle */
	uint32_t err; /* enum cmpi_err */
	uint32_t reserved;
};

enum {
	VIA_SMALL = 48,     /* bytes of a packet that a vbuf has room for, and one cell of the NIC's link */
	VIA_BUFFER = 32896, /* bytes of the largest packet: VIPX_BUFFER_SIZE */
	VIA_R3_BYTES = 32768, /* whole lines, behind a header in whole lines */
	VIA_EAGER_ONE = VIA_BUFFER - (int)sizeof(struct via_eager),
};

_Static_assert(sizeof(struct via_header) == 8, "header is 8 bytes");
_Static_assert((sizeof(struct via_r3_data) + 63) / 64 * 64 + VIA_R3_BYTES <= VIA_BUFFER && VIA_R3_BYTES % 64 == 0, "whole lines");
_Static_assert(offsetof(struct via_header, id) == 2 && offsetof(struct via_header, noop_ack) == 6, "header layout");
_Static_assert(sizeof(struct via_envelope) == 32, "envelope is 32 bytes");
_Static_assert(sizeof(struct via_eager) + 32 == VIA_SMALL, "32 bytes of data ride along in a cell of the link");
_Static_assert(sizeof(struct via_eager_start) == 40, "eager start");
_Static_assert(sizeof(struct via_rendezvous_start) == 56, "rendezvous start");
_Static_assert(sizeof(struct via_rendezvous_reply) == VIA_SMALL, "a reply fits a NIC command");
_Static_assert(sizeof(struct via_atomic_request) == VIA_SMALL, "an atomic fits a NIC command");
_Static_assert(sizeof(struct via_atomic_reply) == 32 && sizeof(struct via_noop) == 16 &&
               sizeof(struct via_finish) == 16 && sizeof(struct via_r3_data) == 16, "short packets");

#endif
