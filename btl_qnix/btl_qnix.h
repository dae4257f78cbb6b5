/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's byte transfer layer over C-MPI: what the files of this component share.
 *
 * Glue between two interfaces, opal/mca/btl/btl.h above and cmpi/cmpi.h below.  It holds no protocol: what Open MPI
 * asks for is one call of C-MPI each.  What it adds is memory for what C-MPI could not take at once, because Open MPI
 * retries only when some earlier operation completes (see frag.c).
 *
 *      component.c  life cycle, settings        common.h  with mtl_qnix: nic.c, mpool.c, param.c, poll.c, pvar.c, tell.c
 *      module.c     peers                       send.c   messages out (hot)  recv.c  messages in, progress (hot)
 *      frag.c       descriptors, retries        rdma.c   put, get, memory    atomic.c                   loop.c  to itself
 */
#ifndef BTL_QNIX_H
#define BTL_QNIX_H

#include "btl_qnix/compat.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"

#include "btl_qnix/common.h"

/* What C-MPI had no resources for, oldest first, to one peer; in a list of such lines while there is something. */
struct btl_qnix_line {
	opal_list_item_t super;
	opal_list_t items;
	bool listed; /* or being retried */
};
typedef struct btl_qnix_line btl_qnix_line_t;
OBJ_CLASS_DECLARATION(btl_qnix_line_t);

/* A peer.  Never freed before btl_finalize: Open MPI may delete it more than once, and add it again. */
struct mca_btl_base_endpoint_t {
	opal_list_item_t super;
	opal_process_name_t name;
	struct opal_proc_t *opal;
	struct cmpi_proc *proc; /* NULL: deleted */
	struct cmpi_proc *am;   /* as proc, but NULL also for this process itself: C-MPI sends no messages to itself */
	bool lost;              /* and everybody has been told */
	btl_qnix_line_t frags, ops; /* that wait */
};

typedef struct mca_btl_base_endpoint_t mca_btl_base_endpoint_t;
OBJ_CLASS_DECLARATION(mca_btl_base_endpoint_t);

enum { BTL_QNIX_SMALL = 256 }; /* bytes that a descriptor can hold itself: every control message of ob1 */

/* Where the bytes of a descriptor are. */
enum btl_qnix_place {
	BTL_QNIX_NOWHERE, /* sent, or never given any */
	BTL_QNIX_NIC,     /* in a vbuf of C-MPI */
	BTL_QNIX_OWN,     /* in the descriptor, because C-MPI had no vbuf */
	BTL_QNIX_HEAP,    /* on the heap: a message to this process itself */
};
struct btl_qnix_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segment;
	struct mca_btl_base_endpoint_t *endpoint;
	enum btl_qnix_place place;
	mca_btl_base_tag_t tag;
	struct cmpi_am am;
	uint64_t own[BTL_QNIX_SMALL / sizeof(uint64_t)];
};
typedef struct btl_qnix_frag btl_qnix_frag_t;
OBJ_CLASS_DECLARATION(btl_qnix_frag_t);

/* A put, get or atomic from its call to its callback. */
enum btl_qnix_kind { BTL_QNIX_PUT, BTL_QNIX_GET, BTL_QNIX_ATOMIC };
/*
 * Open MPI reads the key of a block in a dynamic window from a table that its owner may be changing just then, and so may come with that of
 * another block.  What the key does not grant the owner is asked about, once.
 */
enum btl_qnix_key { BTL_QNIX_KEY_GIVEN, BTL_QNIX_KEY_WANTED, BTL_QNIX_KEY_ASKED };

struct btl_qnix_op {
	opal_free_list_item_t super;
	struct mca_btl_base_endpoint_t *endpoint;
	void *local;
	mca_btl_base_registration_handle_t *local_handle;
	mca_btl_base_rdma_completion_fn_t done;
	void *context, *data;
	enum btl_qnix_kind kind;
	enum cmpi_atomic atomic;
	enum btl_qnix_key key_state;
	uint64_t remote;
	struct cmpi_key key; /* a copy: what Open MPI hands over need not be aligned */
	size_t size;
	uint64_t operand, compare;
};
typedef struct btl_qnix_op btl_qnix_op_t;
OBJ_CLASS_DECLARATION(btl_qnix_op_t);

struct btl_qnix_module {
	mca_btl_base_module_t super; /* first */
	struct cmpi *cmpi;
	mca_btl_base_module_error_cb_fn_t error;
	atomic_bool closing;         /* lost peers no longer matter */
	opal_mutex_t lock;           /* of endpoints */
	opal_list_t endpoints;
	struct mca_btl_base_endpoint_t *self; /* this process as a peer; NULL before it was added */
	opal_free_list_t frags, ops; /* bounded */
	opal_mutex_t wait_lock;      /* of the two lists below, and all lines */
	opal_list_t waiting_frags, waiting_ops; /* lines with something in them; retried by progress */
	atomic_uint waiting;         /* entries in all of them */
	atomic_uint under_way;       /* operations, those that wait included */
	atomic_uint flushes;
};
extern struct btl_qnix_module btl_qnix;

struct btl_qnix_component {
	mca_btl_base_component_3_0_0_t super;
	bool implicit; /* offer the NIC to jobs that did not name it */
};
extern struct btl_qnix_component mca_btl_qnix_component;

static inline int btl_qnix_opal_err(int err)
{
	switch (err) {
	case CMPI_OK: return OPAL_SUCCESS;
	case CMPI_AGAIN:
	case CMPI_RESOURCE: return OPAL_ERR_OUT_OF_RESOURCE;
	case CMPI_UNREACHABLE:
	case CMPI_TRANSPORT: return OPAL_ERR_UNREACH;
	default: return OPAL_ERROR;
	}
}

/* Memory, room, or registrations that others hold: it can start later. */
static inline bool btl_qnix_has_to_wait(int err)
{
	return err == CMPI_AGAIN || err == CMPI_RESOURCE;
}

/* component.c */
bool btl_qnix_is_named(void); /* the list of BTLs names this one */


/* See qnix_tell. */
#define btl_qnix_tell(level, topic, ...) qnix_tell(QNIX_BTL, level, topic, __VA_ARGS__)

/* module.c */
int btl_qnix_add_procs(mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int btl_qnix_del_procs(mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                       struct mca_btl_base_endpoint_t **endpoints);
int btl_qnix_finalize(mca_btl_base_module_t *btl);
int btl_qnix_register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t error);
void btl_qnix_dump(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, int verbose);
cmpi_error_fn btl_qnix_peer_lost;
/* Open MPI's error for C-MPI's.  Of a peer that is gone it is told before it hears that something with it has failed. */
int btl_qnix_failed(struct mca_btl_base_endpoint_t *endpoint, int err);

/* send.c */
int btl_qnix_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor,
                   void *header, size_t header_size, size_t payload_size, uint8_t order, uint32_t flags,
                   mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);
mca_btl_base_descriptor_t *btl_qnix_alloc(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                          uint8_t order, size_t size, uint32_t flags);
mca_btl_base_descriptor_t *btl_qnix_prepare_src(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                                struct opal_convertor_t *convertor, uint8_t order, size_t reserve,
                                                size_t *size, uint32_t flags);
int btl_qnix_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                  mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int btl_qnix_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
/* Packs `size` bytes of the convertor at `to`; returns how many, or a negative error. */
ssize_t btl_qnix_pack(struct opal_convertor_t *convertor, void *to, size_t size);

/* recv.c */
cmpi_am_fn btl_qnix_arrive;
int btl_qnix_progress(void);

/* frag.c */
struct btl_qnix_frag *btl_qnix_frag_take(void); /* NULL: the bound is reached */
void btl_qnix_frag_give(struct btl_qnix_frag *frag);
int btl_qnix_frag_send_own(struct btl_qnix_frag *frag);
int btl_qnix_retry(void);
/* Until progress retries it. */
void btl_qnix_frag_wait(struct btl_qnix_frag *frag);
void btl_qnix_op_wait(struct btl_qnix_op *op);

/* loop.c: messages of a process to itself, when btl/self is not there to carry them */
int btl_qnix_loop_sendi(struct mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor, void *header,
                        size_t header_size, size_t payload_size, mca_btl_base_tag_t tag);
bool btl_qnix_loop_alloc(struct btl_qnix_frag *frag, size_t size);
void btl_qnix_loop_send(struct btl_qnix_frag *frag);
void btl_qnix_loop_free(struct btl_qnix_frag *frag);

/* rdma.c */
mca_btl_base_registration_handle_t *btl_qnix_register_mem(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *endpoint, void *base,
                                                          size_t size, uint32_t flags);
int btl_qnix_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);
int btl_qnix_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                 mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
                 size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_qnix_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                 mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
                 size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_qnix_flush(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint);
struct btl_qnix_op *btl_qnix_op_take(void); /* NULL: the bound is reached */
int btl_qnix_op_run(struct btl_qnix_op *op);
int btl_qnix_op_start(struct btl_qnix_op *op); /* enum cmpi_err */
void btl_qnix_op_done(void *op, int err);      /* cmpi_done_fn */

/* atomic.c */
int btl_qnix_atomic_op(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, uint64_t remote,
                       mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op, uint64_t operand,
                       int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_qnix_atomic_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                        mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op, uint64_t operand,
                        int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);
int btl_qnix_atomic_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local,
                          uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                          mca_btl_base_registration_handle_t *remote_handle, uint64_t compare, uint64_t value, int flags,
                          int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data);

#endif
