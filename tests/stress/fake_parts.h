/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the test VIPL share (fake_vipl.h): fake_vipl.c has the calls about NICs, memory, queues and connections,
 * fake_net.c posts, moves and delivers messages.
 */
#ifndef TESTS_FAKE_PARTS_H
#define TESTS_FAKE_PARTS_H

#include "tests/stress/fake_vipl.h"

enum { NICS = 8, VIS = 64, QUEUE = 1024, PARAMS = 64, COUNTERS = 64, BUFFERS = 512 };

struct queue { /* head .. done: complete, done .. tail: posted */
	VIP_DESCRIPTOR *desc[QUEUE];
	uint32_t head, done, tail;
};

struct message {
	struct message *next;
	void *data; /* malloc, or a pool buffer */
	size_t len;
	bool pool, goodbye;
};

struct wire {
	struct message *head, *tail;
};

enum { FETCHES = 64 };
struct nic;
struct vi {
	struct nic *nic;
	struct vi *peer; /* NULL when not connected, or when the other end has disconnected */
	struct cq *cq;
	VIP_VI_STATE state;
	struct queue send, recv;
	struct wire out;     /* towards the peer */
	VIP_NET_ADDRESS *local, *remote; /* of a pending request */
	bool used, pending, matched;
	VIP_PVOID user;
	VIPX_FETCH fetch[FETCHES]; /* under way, by number */
	VIP_UINT32 fetches, fetched, fetch_status; /* status: of the one that has failed */
	VIP_UINT32 longs; /* long messages that have begun, and are not over */
};

struct cq {
	struct vi *entry[16384];
	uint32_t head, tail, size;
};

struct region {
	struct region *next;
	uintptr_t base, len;
	VIP_MEM_HANDLE handle;
	bool write, read;
};

struct nic {
	bool used, dead, deaf;
	struct vi vi[VIS];
	struct cq *cq;
	struct region *regions;
	uint32_t next_handle, buffers;
	bool held[NICS];
	VIP_PVOID context;
	void (*handler)(VIP_PVOID, VIP_ERROR_DESCRIPTOR *);
	struct {
		char name[32];
		VIP_UINT64 value;
	} counter[COUNTERS];
};

struct buffer {
	_Alignas(64) uint8_t bytes[VIPX_BUFFER_SIZE];
	struct nic *owner; /* NULL: free, or on its way */
	bool out;          /* on its way */
};

struct fake_net {
	struct fake_config config;
	uint64_t random;
	struct nic nic[NICS];
	struct buffer buffer[BUFFERS];
	char violation[256];
	uint32_t closest, refuse, send_steps;
	VIP_ULONG epoch;
	struct vipx_parameter param[PARAMS];
	char value[PARAMS][32];
	uint32_t nparams;
};
extern struct fake_net fake_net;

/* The first thing that was done wrong; later ones are not kept. */
void fake_violate(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The registered memory of that handle in which those bytes lie; NULL: none. */
const struct region *fake_region_find(const struct nic *nic, VIP_MEM_HANDLE handle, uintptr_t at, size_t len);
/* The pool buffer that an address lies in; NULL: none. */
struct buffer *fake_buffer_of(const void *at);

static inline uint32_t fake_number(const struct nic *nic)
{
	return (uint32_t)(nic - fake_net.nic);
}

/* What is on its way: at the end of it; all of it away. */
void fake_wire_add(struct wire *wire, struct message *m);
void fake_wire_clear(struct wire *wire);
/* The oldest descriptor of that queue is complete; all of both are flushed. */
void fake_complete(struct vi *vi, struct queue *q, uint32_t status, uint32_t len);
void fake_flush(struct vi *vi);
/* One that nobody has; NULL: none. */
struct buffer *fake_buffer_free(void);
/* Two requests that are for each other become a connection; false: there is no other yet. */
bool fake_match(struct vi *vi);

#endif
