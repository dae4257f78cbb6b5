/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection tables of a slot: where servers wait and where peer requests stand until they are matched.
 * Entries change state by compare-and-swap on `state` (release on success, acquire on load); the members that belong to
 * a state are written before it is entered, by the side that enters it.
 */
#ifndef NIC_MEM_CONN_H
#define NIC_MEM_CONN_H

#include <stdatomic.h>
#include <stdint.h>

#include "nicemu/nic.h"

enum {
	NIC_LISTENERS = 64, /* waits outstanding per slot */
};

/* One end of a would-be connection. */
struct nic_end {
	uint16_t slot, vi;
	uint8_t gen;
	uint8_t pad[3];
	uint32_t epoch; /* of the slot */
	struct nic_vi_attr attr;
	struct nic_addr local;
};

/* Server's wait: FREE -> WAITING (server) -> CLAIMED -> REQUESTED (client) -> ACCEPTED or REJECTED (server) -> FREE (client);
 * REQUESTED -> ABANDONED (client) -> FREE (server); WAITING -> FREE (server).  CLAIMED carries the claiming slot and
 * the low bits of its epoch, so that the server can take the wait back when the claimer dies there. */
enum nic_listen_state {
	NIC_LS_FREE, NIC_LS_SETUP, NIC_LS_WAITING, NIC_LS_CLAIMED, NIC_LS_REQUESTED, NIC_LS_ACCEPTED, NIC_LS_REJECTED, NIC_LS_ABANDONED,
	NIC_LS_MASK = 0xFF, NIC_LS_SLOT_SHIFT = 8, NIC_LS_EPOCH_SHIFT = 16, NIC_LS_EPOCH_MASK = 0xFFFF
};
struct nic_listen {
	_Alignas(64) _Atomic uint32_t state;
	uint32_t pad;
	struct nic_addr local;  /* server writes in SETUP */
	struct nic_end client;  /* client writes in CLAIMED */
	struct nic_end server;  /* server writes before ACCEPTED */
};

/* Peer request, one per VI: FREE -> PENDING (owner) -> MATCHED (either side, under the card lock) -> FREE (owner). */
enum nic_peer_state { NIC_PS_FREE, NIC_PS_PENDING, NIC_PS_MATCHED };
struct nic_peer_req {
	_Alignas(64) _Atomic uint32_t state;
	uint32_t pad;
	struct nic_end self; /* owner writes before PENDING */
	struct nic_addr remote;
	struct nic_end peer; /* the matcher writes before MATCHED */
};

#endif
