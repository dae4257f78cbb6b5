/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Formats of the QNIX NIC: what crosses the link, what lies in the card for one process slot (Virtual Network Interface and
 * host process structure), and the tables in the NIC's own memory.  No behaviour.  docs/qnix.md says which figure and
 * sentence of the published description each one is, and which members are ours.
 *
 * The process writes its Virtual Network Interface, the NIC reads it and zeroes consumed commands; the NIC writes the
 * doorbells and the Command Queue Head, the process reads them.
 *
 * Order: a command's operands, then its `command` word with release [Q1]; the NIC's acquire of that word pairs with it.
 * The data of a message, then its doorbell with release [Q2]; the process's acquire of the doorbell pairs with it.
 * An entry is zeroed, then the head moves with release [Q3]; the process's acquire of the head pairs with it.
 */
#ifndef NIC_MEM_QNIX_H
#define NIC_MEM_QNIX_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/nic.h"

enum {
	QNIX_PAGE = 4096,        /* a descriptor names one page, a packet carries at most one */
	QNIX_COMMANDS = 256,     /* entries of a Command Queue; a power of two */
	QNIX_CONTEXTS = 128,     /* Send Contexts, and Receive Contexts */
	QNIX_REGION = 1032,      /* descriptors of a context: 4 MiB at any alignment */
	QNIX_POOL_PAGES = 2048,  /* descriptors of the Buffer Pool: 8 MiB */
	QNIX_DRIVER_COMMANDS = 16,
	QNIX_HEAD_EVERY = 8,     /* consecutive commands after which a head goes back to the host */
	QNIX_NO_POOL = 0xFFFF,   /* Buffer Pool Index: the page table is in the Context Region */
	QNIX_NAMES = 3,          /* receivers of a Multicast in one entry */
	QNIX_SYSTEM_MAX = 32,    /* payload of a system message, and of a packet that needs no buffer */
	QNIX_SHORT_MAX = 4096,   /* bytes of a *_Short: they lie in the Context Region */
	QNIX_MESSAGE_MAX = 4 << 20,
	QNIX_VI_TAG = 0x8000,    /* Context Tags of VIs: this and the VI */
	QNIX_GROUP_TAG = 0x4000, /* of broadcasts in a group of the layers above: this, and the receiver's Group Table entry and its life */
};

/* ---- on the link -------------------------------------------------------------------------------------------------- */

/* Packet header, 16 bytes as printed; it travels at the start of a link packet's data. */
struct qnix_header {
	uint16_t node;        /* Destination NIC Coordinates */
	uint16_t pid;         /* Receiver Process PID; 0: a system message */
	uint16_t source;      /* Source NIC Coordinates */
	uint16_t source_pid;  /* Sender Process PID */
	uint16_t tag;         /* Context Tag, or the code of a system message */
	uint16_t len_low, len_high; /* Packet Length in Bytes */
	uint16_t count;       /* Packet Counter */
};
_Static_assert(sizeof(struct qnix_header) == 16 && offsetof(struct qnix_header, tag) == 8 &&
               offsetof(struct qnix_header, len_low) == 10 && offsetof(struct qnix_header, count) == 14, "as printed");

/* System messages: name, what it says.  LEAVE_GROUP is ours. */
#define QNIX_SYSTEM_LIST(X) \
	X(PERMISSION_REQUEST, "may this message come?") \
	X(PERMISSION_REPLY, "it may") \
	X(NEW_PROCESS, "a process has been registered") \
	X(NEW_PROCESS_ACK, "it is known here") \
	X(NEW_GROUP, "a process joins a group") \
	X(NEW_GROUP_ACK, "all of the group are known here") \
	X(BARRIER, "a process has reached the barrier") \
	X(DELETE_PROCESS, "a process is gone") \
	X(LEAVE_GROUP, "a process has left a group, and takes nothing of it any more")
enum qnix_system {
	QNIX_SYS_NONE,
#define X(name, text) QNIX_SYS_##name,
	QNIX_SYSTEM_LIST(X)
#undef X
	QNIX_SYS_COUNT
};

enum qnix_verdict { QNIX_GRANTED = 1, QNIX_DISCARD = 2 /* an unreliable VI has no receive: take it as sent */,
	QNIX_TOO_LONG = 3 /* longer than the receive */, QNIX_TAKEN = 4 /* it lay ready, and is here */,
	QNIX_NOWHERE = 5 /* for a group that is none any more */ };

struct qnix_request { /* Permission_Request */
	uint16_t pid, source_pid, tag;
	uint16_t number; /* ours: of the message, so that a repeated request is known as one */
	uint32_t len, first, packets;
	uint32_t staged; /* ours: where the message lies ready, QNIX_STAGED; 0: it does not */
};
/* A buffer of the pool and where in it, in one word (0: none); the checks of both are whoever's that reads it. */
enum { QNIX_STAGED_SHIFT = 16, QNIX_STAGED_MASK = (1 << QNIX_STAGED_SHIFT) - 1 };
#define QNIX_STAGED(buffer, offset) ((uint32_t)(buffer) + 1 + ((uint32_t)(offset) << QNIX_STAGED_SHIFT))
#define QNIX_STAGED_BUFFER(staged) (((staged) & QNIX_STAGED_MASK) - 1)
#define QNIX_STAGED_OFFSET(staged) ((staged) >> QNIX_STAGED_SHIFT)

struct qnix_reply { /* Permission_Reply */
	uint16_t source_pid, pid, tag;
	uint16_t number;  /* ours: echoed */
	uint16_t verdict; /* ours: enum qnix_verdict */
};

/* Process name: application and process within it. */
struct qnix_name {
	int32_t ai, pi;
};

struct qnix_process_msg { /* New_Process, New_Process_Ack, Delete_Process */
	struct qnix_name name;
	uint16_t pid;
};
struct qnix_group_msg { /* New_Group, New_Group_Ack, Barrier, Leave_Group */
	uint32_t group, size;
	uint16_t pid;
	uint16_t place; /* ours: NEW_GROUP: the joiner's number in the group; BARRIER: low bits of its sequence number; LEAVE_GROUP: 1:
	                   all had joined */
	uint16_t table; /* ours: NEW_GROUP: the joiner's Group Table entry, which later messages to it name; LEAVE_GROUP: the leaver's */
	uint16_t life;  /* ours: of that entry, so that a message for an earlier group is known as one */
};
_Static_assert(sizeof(struct qnix_request) == 24 && sizeof(struct qnix_reply) == 10 && sizeof(struct qnix_process_msg) == 12 &&
               sizeof(struct qnix_group_msg) == 16, "payloads of system messages");

/* ---- Virtual Network Interface: in the card, one a slot ------------------------------------------------------------ */

/* Process commands: name, operands.  LEAVE_GROUP and VI_SEND (a VI has work in its send queue) are ours. */
#define QNIX_COMMAND_LIST(X) \
	X(SEND, "Context_Index") \
	X(SEND_SHORT, "Context_Index") \
	X(RECEIVE, "Context_Index") \
	X(BROADCAST, "Context_Index Group_Name") \
	X(BROADCAST_SHORT, "Context_Index Group_Name") \
	X(MULTICAST, "Context_Index Size") \
	X(MULTICAST_SHORT, "Context_Index Size") \
	X(JOIN_GROUP, "Context_Index Group_Name Size") \
	X(BARRIER, "Context_Index Group_Name Size") \
	X(NAMES, "three process names, behind a Multicast") \
	X(LEAVE_GROUP, "Group Table entry") \
	X(VI_SEND, "VI")
enum qnix_command {
	QNIX_CMD_EMPTY,
#define X(name, operands) QNIX_CMD_##name,
	QNIX_COMMAND_LIST(X)
#undef X
	QNIX_CMD_COUNT
};

struct qnix_cmd {
	_Atomic uint32_t command; /* enum qnix_command; 0: empty */
	uint32_t context;         /* Context_Index; of VI_SEND: the VI */
	union {
		struct {
			uint32_t group, size;
		};
		struct qnix_name name[QNIX_NAMES];
	};
};
_Static_assert(sizeof(struct qnix_cmd) == 32, "two commands a line");

struct qnix_context { /* of both kinds: the process at the other end */
	struct qnix_name process;
	uint32_t len;
	uint16_t tag;
	uint16_t pool; /* Buffer Pool Index */
	uint32_t doorbell_flag;
	uint32_t group; /* ours: Group Table entry + 1 of a command about a group; 0: by its name */
	uint32_t pad[2];
};
_Static_assert(sizeof(struct qnix_context) == 32, "two contexts a line");

/* Page table of the buffer, or the data of a *_Short. */
union qnix_region {
	uint64_t descriptor[QNIX_REGION]; /* bus addresses; the first may lie inside its page */
	uint8_t data[QNIX_REGION * 8];
};

struct qnix_vni {
	_Alignas(QNIX_PAGE) struct qnix_cmd command[QNIX_COMMANDS]; /* first: its address is that of the interface */
	struct qnix_context send[QNIX_CONTEXTS];
	struct qnix_context recv[QNIX_CONTEXTS];
	_Alignas(QNIX_PAGE) uint64_t pool[QNIX_POOL_PAGES];
	_Alignas(QNIX_PAGE) union qnix_region send_region[QNIX_CONTEXTS];
	_Alignas(QNIX_PAGE) union qnix_region recv_region[QNIX_CONTEXTS];
};
_Static_assert(offsetof(struct qnix_vni, command) == 0, "the Command Queue is the first element");

/* ---- host process structure (HPS): one page, shared by process and NIC --------------------------------------------- */

/* Doorbells: state, and the bytes of the message in the upper 24 bits. */
enum { QNIX_FREE, QNIX_POSTED, QNIX_DONE, QNIX_FAILED /* the peer is gone, or unknown */, QNIX_REFUSED /* it did not fit */,
	QNIX_STATE_MASK = 0xFF, QNIX_LEN_SHIFT = 8 };

struct qnix_hps {
	/* NIC Memory Info: offsets of the five parts from the start of the card */
	_Alignas(QNIX_PAGE) uint64_t command_queue;
	uint64_t send_contexts, recv_contexts, context_region, buffer_pool;
	/* Virtual Network Interface Status: the NIC writes the head, the process its own access points */
	_Alignas(64) _Atomic uint32_t command_head;
	_Alignas(64) uint32_t command_tail;
	uint32_t send_next, recv_next, pool_next;
	/* Doorbell Array */
	_Alignas(64) _Atomic uint32_t send_doorbell[QNIX_CONTEXTS];
	_Alignas(64) _Atomic uint32_t recv_doorbell[QNIX_CONTEXTS];
};
_Static_assert(sizeof(struct qnix_hps) == QNIX_PAGE, "one page");

/* ---- driver and NIC ------------------------------------------------------------------------------------------------ */

enum qnix_driver_command { QNIX_DRV_EMPTY, QNIX_DRV_NEW_PROCESS, QNIX_DRV_DELETE_PROCESS };
struct qnix_driver_cmd {
	_Atomic uint32_t command;
	struct qnix_name name;
	uint32_t group, size;
	uint16_t pid, index;
	uint32_t pad[2];
};
_Static_assert(sizeof(struct qnix_driver_cmd) == 32, "two commands a line");

/* What driver and NIC share for one slot, and what every NIC may know of it. */
struct qnix_driver {
	_Alignas(64) _Atomic uint32_t flag; /* Process Flag Array element: OS process id; 0: free */
	_Atomic uint32_t named;             /* the members below are valid: the NIC belongs to the cluster */
	struct qnix_name name;
	uint32_t group, size;
	uint16_t pid;
	uint16_t table, life; /* Group Table entry of `group` at this NIC */
	uint16_t pad;
	_Alignas(64) _Atomic uint32_t head; /* NIC Status: Driver Command Queue Head */
	uint32_t tail;                      /* the driver's */
	_Alignas(64) _Atomic uint32_t doorbell[QNIX_DRIVER_COMMANDS]; /* Driver Doorbells */
	_Alignas(64) struct qnix_driver_cmd command[QNIX_DRIVER_COMMANDS];
};

/* The QNIX part of a slot. */
struct qnix_slot {
	_Alignas(QNIX_PAGE) struct qnix_driver driver;
	_Alignas(QNIX_PAGE) struct qnix_hps hps;
	_Alignas(QNIX_PAGE) struct qnix_vni vni;
};

/* ---- tables in the NIC's own memory --------------------------------------------------------------------------------- */

enum { QNIX_NONE = 0xFFFF /* no entry */ };
enum { QNIX_PORT = -1 /* a process name of this application names a port: the coordinates of its NIC */ };


/* NIC Process Table entry. */
struct qnix_pte {
	uint16_t pid; /* 0: invalid, never scheduled */
	uint16_t index;
	struct {
		_Atomic uint32_t *process_head; /* Process Command Queue Head */
		uint32_t head, consecutive;
	} command_queue;
	struct {
		const struct qnix_context *send, *recv;
		const union qnix_region *send_region, *recv_region;
		const uint64_t *pool;
	} vni; /* Virtual Network Interface Info */
	struct {
		_Atomic uint32_t *send, *recv;
	} doorbell; /* Doorbell Info */
	struct {
		uint16_t head, tail; /* Scheduling Queue */
	} scheduling;
};

/* Scheduling Queue entry: a pending send operation. */
struct qnix_sq {
	struct {
		uint16_t node, pid, tag, count;
	} header; /* Header Info */
	struct {
		uint32_t context; /* Context_Index, or a VI, or invalid */
		uint16_t command; /* enum qnix_code */
		uint16_t doorbell;
		uint32_t len;     /* bytes still to be sent */
		uint32_t descriptor; /* next descriptor: a page of the buffer, or of the local buffer */
	} send; /* Send Info */
	uint16_t permission; /* Permission Flag */
	uint16_t next, prev; /* circular, double linked */
	/* ours */
	uint16_t number;     /* of the message; in the request and its reply */
	uint16_t before, after; /* neighbours with the same key: first in first out */
	uint16_t work;       /* VI: place in its send ring; broadcast: its record */
	uint8_t gen, requested;
	uint32_t total, first; /* bytes of the message and of its first packet */
	uint32_t flags;      /* VI: NIC_PF_* of the message */
	uint32_t staged;     /* as in the request */
	uint32_t visits, patience; /* visits since the last request, and after how many the next one leaves */
};
_Static_assert(sizeof(struct qnix_sq) == 64, "one line");

/* Receive Table entry. */
struct qnix_rt {
	struct {
		uint16_t node, pid, tag;
	} match; /* Match Info */
	uint16_t command; /* Receive Info: enum qnix_code */
	uint32_t len;     /* bytes still to come; of a receive without a message: room */
	uint32_t context; /* Context_Index, or a VI; QNIX_NO_CONTEXT: the message came early */
	uint32_t buffer;  /* first page of a local buffer, or a pool buffer; QNIX_NO_BUFFER */
	uint32_t map;     /* first element of the Descriptor Map; QNIX_NO_MAP: no message yet */
	/* ours */
	uint16_t number, next; /* of the message; next of the same bucket */
	uint32_t total, first, packets, got;
	uint16_t doorbell, pad;
	uint32_t room; /* of the receive */
	uint32_t spare[3];
};
_Static_assert(sizeof(struct qnix_rt) == 64, "one line");
#define QNIX_NO_CONTEXT 0xFFFFFFFFu
#define QNIX_DROP 0xFFFFFFFEu /* the message goes nowhere */
#define QNIX_NO_BUFFER 0xFFFFFFFFu
#define QNIX_NO_MAP 0xFFFFFFFFu

/* Descriptor Map element of a packet: its first destination descriptor, the offset there, its length; the rest of the
 * packet goes to the following descriptor.  Simplified (message in a local buffer): offset in it, and an arrival flag. */
union qnix_map {
	struct {
		uint32_t descriptor;
		uint16_t offset, len;
	} full;
	struct {
		uint32_t offset;
		uint32_t arrived;
	} simple;
};
_Static_assert(sizeof(union qnix_map) == 8, "a word a packet");

#endif
