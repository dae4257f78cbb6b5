/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The VI descriptor: 64 bytes in the memory of the VI consumer, read and completed by the NIC.
 * Format of VIPL 1.0 (bit for bit that of VIP_DESCRIPTOR in vipl.h; vipl/src asserts it).  No behaviour here.
 *
 * Ownership: the consumer owns a descriptor until it is posted, the NIC until `status` carries NIC_ST_DONE.
 * The chain of posted descriptors of a queue runs through `next`; the consumer's library writes it.
 */
#ifndef NIC_MEM_DESC_H
#define NIC_MEM_DESC_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct nic_seg {
	uint64_t addr;   /* virtual address in the consumer's (or, first segment of an RDMA, the peer's) process */
	uint32_t handle; /* memory handle */
	uint32_t length; /* bytes; reserved (0) in an RDMA address segment */
};

struct nic_desc {
	uint64_t next;        /* address of the descriptor posted after this one; 0: none yet */
	uint32_t next_handle; /* its memory handle */
	uint16_t nseg;        /* segments, the RDMA address segment included */
	uint16_t control;     /* NIC_CTL_* */
	uint32_t reserved;
	uint32_t imm;    /* immediate data */
	uint32_t length; /* bytes asked for; on completion bytes moved */
	_Atomic uint32_t status;
	struct nic_seg seg[2]; /* further segments follow in memory */
};

_Static_assert(sizeof(struct nic_seg) == 16, "segment is 16 bytes");
_Static_assert(sizeof(struct nic_desc) == 64, "descriptor is 64 bytes");
_Static_assert(offsetof(struct nic_desc, nseg) == 12 && offsetof(struct nic_desc, imm) == 20 &&
               offsetof(struct nic_desc, status) == 28 && offsetof(struct nic_desc, seg) == 32, "VIPL 1.0 offsets");

enum {
	NIC_DESC_ALIGN = 64,
	NIC_DESC_SEGS_MAX = 253, /* 252 data segments and one address segment */
};

/* control */
enum {
	NIC_CTL_OP_MASK = 0x0003,
	NIC_CTL_SEND = 0x0000, /* send or receive */
	NIC_CTL_RDMA_WRITE = 0x0001,
	NIC_CTL_RDMA_READ = 0x0002,
	NIC_CTL_IMMEDIATE = 0x0004,
	NIC_CTL_QFENCE = 0x0008,
	/* Two bits that VIPL 1.0 reserves; both belong to the pool extension (see nic.h, "payload buffers"). */
	NIC_CTL_POOL = 0x0010, /* send: the one data segment lies in a pool buffer that changes hands; receive: may take one */
	NIC_CTL_RESERVED = 0xFFE0,
};

/* status */
enum {
	NIC_ST_DONE = 0x1,
	NIC_ST_FORMAT = 0x2,
	NIC_ST_PROTECTION = 0x4,
	NIC_ST_LENGTH = 0x8,
	NIC_ST_PARTIAL = 0x10,
	NIC_ST_FLUSHED = 0x20,
	NIC_ST_TRANSPORT = 0x40,
	NIC_ST_RDMA_PROT = 0x80,
	NIC_ST_REMOTE_DESC = 0x100,
	NIC_ST_ERROR_MASK = 0x1FE,
	NIC_ST_OP_SEND = 0x00000,
	NIC_ST_OP_RECEIVE = 0x10000,
	NIC_ST_OP_RDMA_WRITE = 0x20000,
	NIC_ST_OP_REMOTE_RDMA_WRITE = 0x30000,
	NIC_ST_OP_RDMA_READ = 0x40000,
	NIC_ST_IMMEDIATE = 0x80000,
	/* Extension, receive with NIC_CTL_POOL only: seg[1] names the pool buffer that now belongs to the consumer. */
	NIC_ST_POOL = 0x100000,
};

#endif
