/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol module table of C-MPI: 26 functions and the data members beside them, found by the module's name
 * (cmpi_map_functions).  Interface only; pm_via/table.c fills the one for "via".
 *
 * Differences from the C-MPI design, where the module's state is global: every function has the struct cmpi it works on
 * as its first argument, and the data members live there (`data`).  Every function returns an enum cmpi_err.
 *
 * Functions marked (L) are called with the engine's lock held, which only the engine has a way to do; the blocking ones of
 * them give it back while they wait.  Meaning, caller and test of each: docs/protocol-table.md.
 */
#ifndef CMPI_PROTOCOL_H
#define CMPI_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmpi/cmpi.h"

struct pollfd;

/* Elements of so many bytes, one after the other; NULL stands for bytes.  Other layouts are packed above. */
struct cmpi_type {
	size_t size;
};
enum { CMPI_MODE_NOWAIT = 0x100 }; /* with a mode of pt_fsend: CMPI_AGAIN instead of waiting */

/* The processes of a job, as the launcher knows them: the parts of taskinfo_t that a module reads. */
struct cmpi_task {
	size_t n;
	const uint8_t (*address)[CMPI_ADDR_MAX]; /* blob of each */
	struct cmpi_proc **procs;                /* n places, filled by makeconns and addconns; NULL: not on this card */
};

struct cmpi_protocol_data {
	uint32_t pt_nactv;  /* operations not complete */
	uint32_t pt_nprocs; /* peers */
	uint32_t pt_mtu;    /* longest active message */
	int pt_loaded;
	uint32_t pt_flags;
	int pt_flags_revs[32];
};

struct cmpi_protocol {
	const char *name;
	const struct cmpi_protocol_data *(*data)(struct cmpi *);

	int (*pt_initialize)(struct cmpi *);
	/* The address of this process, to be exchanged: *env points to CMPI_ADDR_MAX bytes that live as long as the module. */
	int (*pt_initconns)(struct cmpi *, struct cmpi_task *, const void **env);
	int (*pt_makeconns)(struct cmpi *, struct cmpi_task *);
	int (*pt_addconns)(struct cmpi *, struct cmpi_task *);
	int (*pt_completeconns)(struct cmpi *, struct cmpi_task *);
	int (*pt_remconns)(struct cmpi *, struct cmpi_proc **, int);
	/* (NULL, 0): all. */
	int (*pt_closeconns)(struct cmpi *, struct cmpi_proc **, int);
	int (*pt_undoconns)(struct cmpi *, struct cmpi_task *);
	/* (L) Sends; returns when the buffer is free again.  The short way, for a process whose send queue is empty. */
	int (*pt_fsend)(struct cmpi *, struct cmpi_proc *, const void *, size_t, const struct cmpi_type *, int tag,
	                struct cmpi_comm *, int mode);
	/* (L) Receives from that process; status->source is its rank in the communicator.  Only when one thread calls. */
	int (*pt_frecv)(struct cmpi *, struct cmpi_proc *, void *, size_t, const struct cmpi_type *, int tag, struct cmpi_comm *,
	                struct cmpi_status *);
	/* (L) Receives a message that was taken out of the unexpected queue: blocking, and for a request. */
	int (*pt_urecv)(struct cmpi *, struct cmpi_proc *, struct cmpi_message *, void *, size_t, const struct cmpi_type *,
	                struct cmpi_comm *, struct cmpi_status *);
	int (*pt_uirecv)(struct cmpi *, struct cmpi_proc *, struct cmpi_message *, struct cmpi_req *);
	/* Makes progress until the request is done. */
	int (*pt_progress_blk)(struct cmpi *, struct cmpi_req *, int pollall);
	/* One pass; returns the number of events.  All connections share a completion queue, so it always polls all. */
	int (*pt_progress_nblk)(struct cmpi *, int pollall);
	/* (L) A receive from that process was posted, or is no longer. */
	int (*pt_postedreceive)(struct cmpi *, struct cmpi_proc *);
	int (*pt_unpostedreceive)(struct cmpi *, struct cmpi_proc *);
	/* (L) A send was queued: the module takes from the queue what it can.  The last one was taken back. */
	int (*pt_queuedsend)(struct cmpi *, struct cmpi_proc *);
	int (*pt_dequeuedsend)(struct cmpi *, struct cmpi_proc *);
	/* (L) A receive from any source was posted, is no longer, or has got a message of that process. */
	int (*pt_postedrcvany)(struct cmpi *, struct cmpi_comm *);
	int (*pt_unpostedrcvany)(struct cmpi *, struct cmpi_comm *);
	int (*pt_matchedrcvany)(struct cmpi *, struct cmpi_comm *, struct cmpi_proc *);
	/* What a waiter could sleep on: nothing, because an inline NIC works only while it is polled. */
	int (*pt_getevents)(struct cmpi *, void **, uint32_t *, uint32_t *, uint32_t *);
	int (*pt_getpolls)(struct cmpi *, struct pollfd **, int *, int *);
	/* (L) Ends a request that waits in a queue, with CMPI_TRANSPORT. */
	int (*pt_error_request)(struct cmpi *, struct cmpi_req *);
	/* Everything sent has left and nothing is pending: CMPI_OK, else CMPI_AGAIN. */
	int (*pt_finalize)(struct cmpi *);
	/* Are all peers alive?  CMPI_TRANSPORT when one was lost. */
	int (*pt_ping)(struct cmpi *, struct cmpi_comm *, int);
};

#endif
