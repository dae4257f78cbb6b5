/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of Open MPI that the NIC runs: what the files of this component share.
 *
 * Glue between ompi/mca/coll/coll.h above and the groups of cmpi/cmpi.h below: a barrier or a broadcast is an operation of the
 * communicator's group, a reduction some of them.  No protocol of messages here.  It shares the NIC of the process with the BTL
 * and the MTL (btl_qnix/common.h).
 *
 *      component.c  life cycle, settings, which communicators     module.c  a communicator: what it had before, its end
 *      setup.c      how a communicator gets its group             op.c      operations, in their order
 *      call.c       barriers and broadcasts                       request.c those that do not wait
 *      reduce.c     reductions                                    data.c    data in pieces
 */
#ifndef COLL_QNIX_H
#define COLL_QNIX_H

#include "btl_qnix/common.h"

#include <stdatomic.h>

#include "ompi_config.h"
#include "opal/class/opal_free_list.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"

/*
 * The NIC has places for 32 operations of a process.  Each communicator must always have one, or two processes that start
 * operations of many communicators in different orders could wait for each other: so communicators are counted, and
 * operations beyond the first of each.
 */
enum { COLL_QNIX_GROUPS = 24, COLL_QNIX_MORE = 8 };

/*
 * Between two ranks, the NIC's messages of so many bytes move each line once from one core to the other, since their buffers change hands;
 * the lines of a board go back and forth.  So reductions, and broadcasts from another root than the last one, are messages then.
 */
enum { COLL_QNIX_PAIR_LEAST = 1024, COLL_QNIX_PAIR_REDUCE = 16 << 10, COLL_QNIX_PAIR_BCAST = 32 << 10 };

enum coll_qnix_state {
	COLL_QNIX_NEW,    /* not used yet */
	COLL_QNIX_ASK,    /* addresses are being exchanged by a call that waits, and may be made of collectives itself: those are the next component's */
	COLL_QNIX_GATHER, /* by one that does not */
	COLL_QNIX_JOIN,   /* the NICs make the group */
	COLL_QNIX_READY,
	COLL_QNIX_OTHERS, /* all members agreed: the next component does it */
	COLL_QNIX_FAILED, /* no group, though the others count on it */
};

/* Where the packed data of a broadcast comes from and goes to. */
struct coll_qnix_data {
	void *user, *packed;  /* packed NULL: contiguous */
	size_t len;
	int count;
	struct ompi_datatype_t *type;
};

/* A barrier or a broadcast; the memory of whoever starts it. */
struct coll_qnix_op {
	struct coll_qnix_op *next;
	struct coll_qnix_module *module;
	bool barrier, sends;
	int root;
	struct coll_qnix_data data;
	atomic_bool done;                /* C1: err was written before */
	int err;                         /* MPI's */
	struct coll_qnix_request *request; /* NULL: somebody waits for `done` */
};

/*
 * MPI_Ibcast itself writes into the request that it gets, to hold on to a derived datatype until the end: it takes it for
 * Open MPI's own kind of request of a collective, whose header is not always complete.  `base` is where that one's members are.
 */
struct coll_qnix_request {
	struct ompi_request_t super; /* first */
	void *base[8];
	struct coll_qnix_op op;
	struct ompi_request_t *other; /* the next component's */
	struct coll_qnix_request *chain; /* those that `other`s carry */
};
typedef struct coll_qnix_request coll_qnix_request_t;
OBJ_CLASS_DECLARATION(coll_qnix_request_t);

#define COLL_QNIX_SAVED(X) X(barrier) X(bcast) X(ibarrier) X(ibcast) X(allreduce) X(allgather) X(iallgather)

struct coll_qnix_setup; /* setup.c */

/* A communicator. */
struct coll_qnix_module {
	mca_coll_base_module_t super; /* first */
	struct ompi_communicator_t *comm;
	_Atomic enum coll_qnix_state state;
	struct cmpi_group *group;
	struct coll_qnix_setup *setup;
	struct coll_qnix_op *waiting, **tail; /* not started yet */
	atomic_int started;                   /* in the NIC's hands */
	bool listed, told;
	bool at_once, pair;                   /* all members' NICs broadcast within the call; they are two, and carry messages, too */
	bool asked;                           /* a reduction has waited until all know that */
	int reductions;                       /* that were left to others while it was new */
	int root;                             /* of the last broadcast that waited and was not too long; -1: none, `pair` may not be known */
	struct coll_qnix_module *next;        /* of those with something waiting */
#define X(name) mca_coll_base_module_##name##_fn_t name; mca_coll_base_module_t *name##_module;
	COLL_QNIX_SAVED(X)
#undef X
};
typedef struct coll_qnix_module coll_qnix_module_t;
OBJ_CLASS_DECLARATION(coll_qnix_module_t);

struct coll_qnix {
	struct cmpi *cmpi;       /* NULL: no NIC here */
	int priority;
	bool carries;            /* messages go by the NIC, too: the next component's collectives */
	size_t bcast_max, ibcast_max, allreduce_max; /* bytes; the last one's: of all ranks */
	atomic_int groups;       /* joined, or about to be; fewer also without the lock */
	atomic_int started;      /* operations in the NIC's hands */
	opal_mutex_t lock;       /* of lists and states; done callbacks run without it and inside it */
	struct coll_qnix_module *busy;  /* modules with something waiting */
	struct coll_qnix_request *others;
	opal_free_list_t free;   /* requests */
	opal_mutex_t poll_lock;  /* of the next three; taken inside the other */
	atomic_int requests;     /* not complete */
	int passes;              /* of opal_progress without one */
	bool polled;             /* opal_progress comes by */
};
extern struct coll_qnix coll_qnix;
extern mca_coll_base_component_t mca_coll_qnix_component;

#define coll_qnix_tell(level, topic, ...) qnix_tell(QNIX_COLL, level, topic, __VA_ARGS__)

/* module.c */
mca_coll_base_module_t *coll_qnix_comm_query(struct ompi_communicator_t *comm, int *priority);

/* setup.c; the lock is held */
void coll_qnix_setup_begin(struct coll_qnix_module *m);
void coll_qnix_setup_now(struct coll_qnix_module *m); /* waits, and takes the lock itself */
void coll_qnix_setup_step(struct coll_qnix_module *m);
void coll_qnix_setup_free(struct coll_qnix_module *m);

/* op.c */
/* Starts one with a request, or lines it up. */
void coll_qnix_start(struct coll_qnix_op *op);
/* One without: returns when it is over. */
int coll_qnix_do(struct coll_qnix_op *op);
int coll_qnix_progress(void);
void coll_qnix_tell_why(struct coll_qnix_module *m, int err); /* its group has failed, or an operation */
/* The result of a blocking operation that is left to the next component. */
enum { COLL_QNIX_HAND_ON = 1 };

/* request.c */
struct coll_qnix_request *coll_qnix_request_new(struct coll_qnix_module *m);
void coll_qnix_complete(struct coll_qnix_request *r);
void coll_qnix_poll_no_more(void); /* opal_progress does not come by, whatever is under way */
void coll_qnix_hand_on(struct coll_qnix_request *r);
int coll_qnix_look_at_others(void);
bool coll_qnix_request_fits(void); /* Open MPI's members into ours */

/* call.c */
int coll_qnix_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int coll_qnix_bcast(void *buf, int count, struct ompi_datatype_t *type, int root, struct ompi_communicator_t *comm,
                    mca_coll_base_module_t *module);
int coll_qnix_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module);
int coll_qnix_ibcast(void *buf, int count, struct ompi_datatype_t *type, int root, struct ompi_communicator_t *comm,
                     ompi_request_t **request, mca_coll_base_module_t *module);

/* reduce.c */
int coll_qnix_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

static inline bool coll_qnix_pair_sends(const struct coll_qnix_module *m, size_t len, size_t most)
{
	return m->pair && len >= COLL_QNIX_PAIR_LEAST && len <= most;
}

/* Blocking: the next component's turn comes after everything that was lined up before. */
static inline bool coll_qnix_left_to_others(const struct coll_qnix_module *m)
{
	/* Acquire: pairs with the release where the state changes (setup.c). */
	enum coll_qnix_state state = atomic_load_explicit(&m->state, memory_order_acquire);

	return OPAL_UNLIKELY(state != COLL_QNIX_READY) && ((state == COLL_QNIX_OTHERS && !m->waiting) || state == COLL_QNIX_ASK);
}

/* data.c: where the bytes are that travel; false: no memory.  `close` puts them where they belong. */
bool coll_qnix_data_pack(struct coll_qnix_data *data, bool sends);
int coll_qnix_data_close(struct coll_qnix_data *data, bool sends, bool good);

static inline bool coll_qnix_data_open(struct coll_qnix_data *data, bool sends)
{
	data->packed = NULL;
	return OPAL_LIKELY(opal_datatype_is_contiguous_memory_layout(&data->type->super, data->count)) || coll_qnix_data_pack(data, sends);
}

static inline void *coll_qnix_bytes(const struct coll_qnix_data *data)
{
	return data->packed ? data->packed : (char *)data->user + data->type->super.true_lb;
}

static inline int coll_qnix_err(int err)
{
	switch (err) {
	case CMPI_OK: return OMPI_SUCCESS;
	case CMPI_AGAIN:
	case CMPI_RESOURCE: return OMPI_ERR_OUT_OF_RESOURCE;
	case CMPI_TRANSPORT:
	case CMPI_UNREACHABLE: return OMPI_ERR_UNREACH;
	case CMPI_TRUNCATED: return MPI_ERR_TRUNCATE;
	default: return OMPI_ERROR;
	}
}

#endif
