/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol module table of C-MPI: 26 functions and the data members beside them, found by the module's name
 * (cmpi_map_functions).  Interface only; pm_via/table.c fills the one for "via".
 *
 * Differences from the C-MPI design, where the module's state is global: every function has the struct cmpi it works on
 * as its first argument, and the data members live there (`data`).  Types that belong to the ADI engine are opaque here;
 * every function returns an enum cmpi_err, CMPI_NEEDS_ENGINE where only the engine could give it a meaning.
 */
#ifndef CMPI_PROTOCOL_H
#define CMPI_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmpi/cmpi.h"

/* The ADI engine's. */
struct mpip_req;
struct mpip_unexmsg;
struct mpip_status;
struct mpip_type;
struct mpip_comm;
struct pollfd;

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
	int (*pt_fsend)(struct cmpi *, struct cmpi_proc *, const void *, size_t, struct mpip_type *, int tag, struct mpip_comm *,
	                int mode);
	int (*pt_frecv)(struct cmpi *, struct cmpi_proc *, void *, size_t, struct mpip_type *, int tag, struct mpip_comm *,
	                struct mpip_status *);
	int (*pt_urecv)(struct cmpi *, struct cmpi_proc *, struct mpip_unexmsg *, void *, size_t, struct mpip_type *,
	                struct mpip_comm *, struct mpip_status *);
	int (*pt_uirecv)(struct cmpi *, struct cmpi_proc *, struct mpip_unexmsg *, struct mpip_req *);
	int (*pt_progress_blk)(struct cmpi *, struct mpip_req *, int pollall);
	/* One pass; returns the number of events.  All connections share a completion queue, so it always polls all. */
	int (*pt_progress_nblk)(struct cmpi *, int pollall);
	int (*pt_postedreceive)(struct cmpi *, struct cmpi_proc *);
	int (*pt_unpostedreceive)(struct cmpi *, struct cmpi_proc *);
	int (*pt_queuedsend)(struct cmpi *, struct cmpi_proc *);
	int (*pt_dequeuedsend)(struct cmpi *, struct cmpi_proc *);
	int (*pt_postedrcvany)(struct cmpi *, struct mpip_comm *);
	int (*pt_unpostedrcvany)(struct cmpi *, struct mpip_comm *);
	int (*pt_matchedrcvany)(struct cmpi *, struct mpip_comm *, struct cmpi_proc *);
	/* What a waiter could sleep on: nothing, because an inline NIC works only while it is polled. */
	int (*pt_getevents)(struct cmpi *, void **, uint32_t *, uint32_t *, uint32_t *);
	int (*pt_getpolls)(struct cmpi *, struct pollfd **, int *, int *);
	int (*pt_error_request)(struct cmpi *, struct mpip_req *);
	/* Everything sent has left and nothing is pending: CMPI_OK, else CMPI_AGAIN. */
	int (*pt_finalize)(struct cmpi *);
	/* Are all peers alive?  CMPI_TRANSPORT when one was lost. */
	int (*pt_ping)(struct cmpi *, struct mpip_comm *, int);
};

#endif
