/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a process and a NIC that runs in another process (engine daemon) meet: the port of a slot, in the card.
 *
 *   cmd    posted descriptors, whole, and commands about groups; the process writes, the NIC reads
 *   done   completions and events; the NIC writes, the process reads, and completes its own descriptors
 *   call   one call of the control path at a time: asked by the process, answered by the NIC
 *
 * So the NIC never touches a descriptor in the process's memory, but only the payload that it describes.
 *
 * Order: the producer of a ring fills cells and publishes them by the release of its tail [P1, P3]; the consumer gives cells
 * back by the release of its head [P2, P4].  A call's words are published by the release of `state` [P5], its answer likewise
 * [P6], and that after everything that the NIC had to say about earlier posts is in `done`.
 */
#ifndef NIC_MEM_PORT_H
#define NIC_MEM_PORT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/mem/desc.h"
#include "nicemu/mem/qnix.h"
#include "nicemu/nic.h"

enum {
	NIC_PORT_CMDS = 1024, /* cells; powers of two */
	NIC_PORT_DONES = 2048,
	NIC_PORT_SEGS = 4,    /* of a descriptor in each cell after its first */
};

enum nic_port_op { NIC_PORT_SEND, NIC_PORT_RECV, NIC_PORT_GROUP };

/* First cell of an entry.  A descriptor's segments follow in whole cells. */
struct nic_port_cmd {
	uint16_t op;   /* enum nic_port_op */
	uint16_t vi;
	uint16_t segs; /* segments that follow; the descriptor may claim others */
	uint16_t pad;
	union {
		struct {
			uint32_t reserved, imm, length;
			uint16_t nseg, control;
		} desc;
		struct {
			uint32_t command, context, group, size;
		} group;
		uint8_t room[56];
	};
};
union nic_port_cell {
	struct nic_port_cmd cmd;
	struct nic_seg seg[NIC_PORT_SEGS];
};
_Static_assert(sizeof(union nic_port_cell) == 64, "a cell is one line");

enum nic_port_kind { NIC_PORT_SENT, NIC_PORT_RECEIVED, NIC_PORT_EVENT };

struct nic_port_done {
	uint16_t kind; /* enum nic_port_kind */
	uint16_t vi;   /* NIC_PORT_NO_VI: an event that is about none */
	uint32_t status; /* event: its code */
	uint32_t length, imm; /* event: imm is the operation */
	uint32_t buffer_length;
	uint32_t pad;
	uint64_t buffer; /* status has NIC_ST_POOL: where the message is, as the process maps the card */
};
enum { NIC_PORT_NO_VI = 0xFFFF };
_Static_assert(sizeof(struct nic_port_done) == 32, "two to a line");

/* Calls; the arguments that each one uses are in engine/remote.c and engine/serve.c, side by side. */
enum nic_port_call_op {
	NIC_CALL_DETACH, NIC_CALL_PTAG_CREATE, NIC_CALL_PTAG_DESTROY, NIC_CALL_REGISTER, NIC_CALL_DEREGISTER, NIC_CALL_MEM_QUERY,
	NIC_CALL_MEM_SET, NIC_CALL_VI_CREATE, NIC_CALL_VI_DESTROY, NIC_CALL_VI_SET, NIC_CALL_DISCONNECT, NIC_CALL_VI_PEER,
	NIC_CALL_LISTEN_OPEN, NIC_CALL_LISTEN_POLL, NIC_CALL_LISTEN_CLOSE, NIC_CALL_ACCEPT, NIC_CALL_REJECT, NIC_CALL_CONNECT,
	NIC_CALL_CONNECT_POLL, NIC_CALL_CONNECT_CANCEL, NIC_CALL_PEER, NIC_CALL_PEER_POLL, NIC_CALL_PEER_CANCEL,
	NIC_CALL_NAME, NIC_CALL_NAMED, NIC_CALL_SYNC,
};
struct nic_port_args {
	uint64_t addr, len;
	uint32_t number, other, handle, tag; /* number: of the VI, of the listener, the cursor */
	struct nic_vi_attr vi;
	struct nic_mem_attr mem;
	struct nic_addr local, remote;
};
enum nic_port_state { NIC_PORT_IDLE, NIC_PORT_ASKED, NIC_PORT_ANSWERED };
struct nic_port_call {
	_Alignas(64) _Atomic uint32_t state; /* the process: asked; the NIC: answered; the word of a futex */
	uint32_t op;
	int32_t result;
	uint32_t pad;
	struct nic_port_args args;
};

struct nic_port {
	/* process writes */
	_Alignas(64) _Atomic uint32_t cmd_tail;
	_Atomic uint32_t done_head;
	int64_t buffer_cap; /* what the process's parameters say; there before the slot is live, then constant */
	int32_t cma;        /* likewise */
	/* NIC writes */
	_Alignas(64) _Atomic uint32_t done_tail; /* a line of its own: the process looks at it all the time */
	_Alignas(64) _Atomic uint32_t cmd_head;
	/* both in their turn */
	struct nic_port_call call;
	_Alignas(64) union nic_port_cell cmd[NIC_PORT_CMDS];
	_Alignas(64) struct nic_port_done done[NIC_PORT_DONES];
};

#endif
