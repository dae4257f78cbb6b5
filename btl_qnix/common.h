/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the components of this project have in common: the NIC, which they share, its memory for MPI_Alloc_mem, the parameters
 * and the counters of the stack below, and how the user is told something.  They live in one shared object that has a name for
 * each of them, so there is one copy of all this in a process.
 */
#ifndef QNIX_COMMON_H
#define QNIX_COMMON_H

#include "btl_qnix/compat.h"

#include <stdbool.h>

#include "cmpi/cmpi.h"

/* nic.c */
bool btl_qnix_is_alone(void); /* component.c: the list of BTLs names no other that leads to other processes */
int qnix_nic_open(bool threads, cmpi_am_fn *am, cmpi_error_fn *error, void *arg, struct cmpi **out);
/* Does this job use the NIC for everything?  The same answer in all its processes. */
bool qnix_job_is_ours(void);
/* "rank 3", or "rank 3 of job 2" when it is not of this job; of a process, and of one whose C-MPI rank is all that is known. */
enum { QNIX_NAME_MAX = 64 };
const char *qnix_name_text(const opal_process_name_t *name, char to[QNIX_NAME_MAX]);
const char *qnix_rank_text(uint32_t rank, char to[QNIX_NAME_MAX]);

/* param.c: the parameters of the stack as MCA parameters of one component */
enum { QNIX_PARAMS_MOST = 128 };
struct qnix_params {
	char *values[QNIX_PARAMS_MOST]; /* owned by the MCA variable system */
	int variables[QNIX_PARAMS_MOST];
};
void qnix_params_register(struct qnix_params *params, const mca_base_component_t *component);
void qnix_params_hand_down(const struct qnix_params *params);

/* tell.c, mpool.c and poll.c: on whose behalf */
enum qnix_component { QNIX_BTL, QNIX_MTL, QNIX_PML, QNIX_COLL };

/* pvar.c: the counters of the NIC at *cmpi, for all but QNIX_COLL; the word is read whenever a variable is */
void qnix_pvar_register(enum qnix_component who, const mca_base_component_t *component, struct cmpi *const *cmpi);

/* mpool.c: from a component's enter to its leave, MPI_Alloc_mem takes the memory of the card, unless its setting says no */
void qnix_mpool_register(enum qnix_component who, const mca_base_component_t *to);
void qnix_mpool_enter(enum qnix_component who, struct cmpi *cmpi);
void qnix_mpool_leave(enum qnix_component who);

/* poll.c: from a component's enter, at its add_procs (the PML has filled its tables), to its leave, who tests and probes is not taken for one that waits */
void qnix_poll_enter(enum qnix_component who, struct cmpi *cmpi);
void qnix_poll_leave(enum qnix_component who);

/* tell.c: level 0 is shown with the explanation `topic` of help-mpi-btl-qnix.txt, others at that framework's verbosity. */
void qnix_tell_init(void);
void qnix_tell(enum qnix_component who, int level, const char *topic, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What ends this process, most likely: returns when the launcher has read it, or after a second. */
void qnix_tell_loss(enum qnix_component who, const char *line);

#endif
