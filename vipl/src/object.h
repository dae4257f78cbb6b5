/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects behind VIPL's handles, and how a handle becomes its object.
 *
 * A handle is a number, not an address: generation, index and type.  Objects lie in one table a type, which is never
 * given back, so looking up a wrong or stale handle reads valid memory and finds another handle there.  Fork empties the
 * tables of the child: a NIC handle belongs to the process that opened it.
 *
 * Order of a call: *_enter (look up, lock, look again), work, vipl_leave (unlock, then report asynchronous errors).
 * Nothing of the handle is touched after vipl_leave: a handler of the program may have closed it.
 */
#ifndef VIPL_OBJECT_H
#define VIPL_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nicemu/nic.h"
#include "vipl.h"
#include "vipl/src/lock.h"

/* Also the three type bits of a handle. */
enum vipl_type { VIPL_NIC = 1, VIPL_VI, VIPL_CQ, VIPL_CONN, VIPL_PTAG };

/* Objects of a process; powers of two.  The NIC has limits of its own for each handle. */
enum {
	VIPL_MAX_NIC = 64,
	VIPL_MAX_VI = 16384,
	VIPL_MAX_CQ = 2048,
	VIPL_MAX_CONN = 1024,
	VIPL_MAX_CQ_ENTRIES = 1 << 20,
	VIPL_MAX_EVENTS = 2048, /* asynchronous errors not yet reported; one each VI has room */
	VIPL_MAX_NOTIFY = 4096, /* notify calls outstanding on a NIC handle */
	VIPL_QUEUE_FIRST = 32,  /* places of a work queue at first */
};

/* Bits of a handle: 0 zero, 1-3 type, 4-17 index, 18-47 generation. */
enum { VIPL_INDEX_SHIFT = 4, VIPL_INDEX_BITS = 14, VIPL_GENERATION_SHIFT = 18, VIPL_GENERATION_MASK = 0x3FFFFFFF };

/* Hot calls are inlined into their one caller each, whatever the compiler thinks of their size. */
#define VIPL_INLINE static inline __attribute__((always_inline))

/* Everything below is the library's own: called directly, and never interposed. */
#pragma GCC visibility push(hidden)

struct vipl_nic;

/* Every object starts with this. */
struct vipl_object {
	_Atomic uintptr_t handle;       /* 0: free, or not ready */
	_Atomic uintptr_t unlocked;     /* the same where no lock is needed, else 0 */
	_Atomic(struct vipl_nic *) nic; /* NULL at a NIC */
	uint32_t generation;            /* of the next or present handle; guarded by the table */
	uint32_t next_free;             /* index + 1; guarded by the table */
};

/* A work queue: what was posted and not yet dequeued, oldest first.  The ring, not the chain, is what is trusted. */
struct vipl_queue {
	struct nic_desc **ring;
	uint32_t head, tail; /* running */
	uint32_t mask;
	uint32_t settled; /* everything before is complete, even where the program has freed it */
	struct vipl_cq *cq;
};

struct vipl_vi {
	_Alignas(256) struct vipl_object object; /* a power of two: indexing is a shift */
	struct nic *hw;
	uint32_t number; /* the NIC's name of it */
	uint32_t ptag;
	void *user;
	_Alignas(64) struct vipl_queue send;
	struct vipl_queue recv;
	uint64_t peer_deadline;
	bool peer; /* a peer request is outstanding */
	VIP_PROTECTION_HANDLE ptag_handle;
	uint32_t send_pass, recv_pass; /* of the notify thread: looked at in that pass, and not ready */
};

struct vipl_cq {
	struct vipl_object object;
	struct nic *hw;
	uint32_t users; /* work queues bound to it */
	uint32_t pass;  /* as in struct vipl_vi */
	struct nic_cq ring;
};

/* A connection request that a server has seen. */
struct vipl_conn {
	struct vipl_object object;
	uint32_t id;
};

typedef void vipl_error_fn(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error);

struct vipl_error {
	struct nic_event event;
	uintptr_t vi; /* handle */
};

struct vipl_nic {
	_Alignas(64) struct vipl_object object;
	struct nic *hw;
	bool serial;   /* the caller serialises */
	bool unlocked; /* and the NIC does not run beside it: no lock is needed */
	bool strict;   /* no null tag */
	bool names;    /* between VipNSInit and VipNSShutdown */
	bool reporting; /* some thread runs error handlers */
	uint32_t event_head, event_tail; /* running */
	_Alignas(64) struct vipl_lock lock;
	struct vipl_error *event; /* VIPL_MAX_EVENTS */
	vipl_error_fn *handler;
	void *context;
	uint32_t logged; /* codes the default handler has spoken about, one bit each */
	struct nic_attr attr;
	uintptr_t *ptag; /* handle of each tag, 0: none; NIC_MAX_PTAG + 1 */
	struct vipl_notify *notify, **notify_end;
	uint32_t notifies;
	uint32_t pass; /* of the notify thread over its list */
	bool service;      /* a thread runs notify handlers */
	bool service_used; /* service_thread is to be joined */
	pthread_t service_thread;
};

extern struct vipl_nic vipl_nics[VIPL_MAX_NIC];
extern struct vipl_vi vipl_vis[VIPL_MAX_VI];
extern struct vipl_cq vipl_cqs[VIPL_MAX_CQ];
extern struct vipl_conn vipl_conns[VIPL_MAX_CONN];

/* ---- life of an object ---- */

/* A free object, cleared but for its header and without a handle; NULL: none left. */
void *vipl_object_create(enum vipl_type type, struct vipl_nic *nic);
/* Gives it its handle: from now on it is found. */
uintptr_t vipl_object_publish(enum vipl_type type, void *object);
/* No longer found. */
void vipl_object_hide(void *object);
/* Hides it and gives its place back. */
void vipl_object_destroy(enum vipl_type type, void *object);
/* Calls fn for every object of a NIC handle that is published. */
void vipl_object_each(enum vipl_type type, const struct vipl_nic *nic, void (*fn)(void *object));
/* In the child of a fork: forgets everything. */
void vipl_object_forget(void);

/* ---- look-up (hot) ---- */

VIPL_INLINE bool vipl_is(const struct vipl_object *object, uintptr_t handle)
{
	/* H1: pairs with the release in vipl_object_publish */
	return handle && atomic_load_explicit(&object->handle, memory_order_acquire) == handle;
}

/* And no lock is needed.  Relaxed: the program serialises its calls. */
VIPL_INLINE bool vipl_is_unlocked(const struct vipl_object *object, uintptr_t handle)
{
	return handle && atomic_load_explicit(&object->unlocked, memory_order_relaxed) == handle;
}

VIPL_INLINE struct vipl_nic *vipl_nic_of(struct vipl_object *object)
{
	/* Relaxed: published before the handle, and every user checks the handle again under the lock. */
	return atomic_load_explicit(&object->nic, memory_order_relaxed);
}

VIPL_INLINE uintptr_t vipl_handle_of(const struct vipl_object *object)
{
	/* Relaxed: the caller holds the lock or made the object. */
	return atomic_load_explicit(&object->handle, memory_order_relaxed);
}

/* The empty asm keeps the address in a register: left alone, the compiler computes it anew for every access. */
#define VIPL_LOOKUP(name, is, struct_name, table, max)                                    \
	VIPL_INLINE struct struct_name *name(void *handle)                                \
	{                                                                                 \
		uintptr_t u = (uintptr_t)handle;                                          \
		struct struct_name *found = &table[(u >> VIPL_INDEX_SHIFT) & ((max) - 1)]; \
		__asm__("" : "+r"(found));                                                \
		if (!found)                                                               \
			__builtin_unreachable(); /* which the compiler cannot see any more */ \
		return is(&found->object, u) ? found : NULL;                              \
	}
VIPL_LOOKUP(vipl_nic_lookup, vipl_is, vipl_nic, vipl_nics, VIPL_MAX_NIC)
VIPL_LOOKUP(vipl_vi_lookup, vipl_is, vipl_vi, vipl_vis, VIPL_MAX_VI)
VIPL_LOOKUP(vipl_cq_lookup, vipl_is, vipl_cq, vipl_cqs, VIPL_MAX_CQ)
VIPL_LOOKUP(vipl_conn_lookup, vipl_is, vipl_conn, vipl_conns, VIPL_MAX_CONN)
VIPL_LOOKUP(vipl_nic_unlocked, vipl_is_unlocked, vipl_nic, vipl_nics, VIPL_MAX_NIC)
VIPL_LOOKUP(vipl_vi_unlocked, vipl_is_unlocked, vipl_vi, vipl_vis, VIPL_MAX_VI)

/* ---- enter and leave (hot) ---- */

/* Runs error handlers for what has been noticed; in error.c. */
void vipl_error_report(struct vipl_nic *nic);

VIPL_INLINE void vipl_lock(struct vipl_nic *nic)
{
	if (!nic->unlocked)
		vipl_lock_take(&nic->lock);
}

VIPL_INLINE void vipl_unlock(struct vipl_nic *nic)
{
	if (!nic->unlocked)
		vipl_lock_give(&nic->lock);
}

VIPL_INLINE void vipl_leave(struct vipl_nic *nic)
{
	bool noticed = nic->event_head != nic->event_tail;

	vipl_unlock(nic);
	if (__builtin_expect(noticed, 0))
		vipl_error_report(nic);
}

/* Locks the NIC of an object that was found, unless it has gone meanwhile. */
VIPL_INLINE bool vipl_lock_found(struct vipl_nic *nic, struct vipl_object *object, uintptr_t handle)
{
	if (nic->unlocked)
		return true;
	vipl_lock_take(&nic->lock);
	if (__builtin_expect(vipl_is(object, handle), 1))
		return true;
	vipl_lock_give(&nic->lock);
	return false;
}

/* The NIC handle that an object belongs to, by now perhaps stale; NULL without an object. */
VIPL_INLINE VIP_NIC_HANDLE vipl_nic_handle_of(struct vipl_object *object)
{
	struct vipl_nic *nic = object ? vipl_nic_of(object) : NULL;

	return nic ? (VIP_NIC_HANDLE)vipl_handle_of(&nic->object) : NULL;
}

VIPL_INLINE struct vipl_nic *vipl_nic_enter(VIP_NIC_HANDLE handle)
{
	struct vipl_nic *nic = vipl_nic_lookup(handle);

	return nic && vipl_lock_found(nic, &nic->object, (uintptr_t)handle) ? nic : NULL;
}

#define VIPL_ENTER(name, struct_name, lookup)                                        \
	VIPL_INLINE struct struct_name *name(void *handle)                           \
	{                                                                            \
		struct struct_name *found = lookup(handle);                          \
		struct vipl_nic *nic;                                                \
		if (__builtin_expect(!found, 0))                                     \
			return NULL;                                                 \
		nic = vipl_nic_of(&found->object);                                   \
		return vipl_lock_found(nic, &found->object, (uintptr_t)handle) ? found : NULL; \
	}
VIPL_ENTER(vipl_vi_enter, vipl_vi, vipl_vi_lookup)
VIPL_ENTER(vipl_cq_enter, vipl_cq, vipl_cq_lookup)
VIPL_ENTER(vipl_conn_enter, vipl_conn, vipl_conn_lookup)

/* ---- what the files offer each other ---- */

/* error.c */
VIP_RETURN vipl_return(int nic_err);
nic_event_fn vipl_error_note; /* arg: struct vipl_nic; the lock is held */
void vipl_error_post(struct vipl_vi *vi, const void *desc, uint32_t op);
/* vi.c; room for one more descriptor: false at the limit or without memory. */
bool vipl_queue_grow(struct vipl_queue *queue);
void vipl_vi_release(void *vi); /* memory and bindings, not the NIC's part */
VIP_RETURN vipl_vi_attr_read(struct vipl_nic *nic, const VIP_VI_ATTRIBUTES *in, struct nic_vi_attr *out);
void vipl_vi_attr_write(const struct nic_vi_attr *in, VIP_PROTECTION_HANDLE ptag, VIP_VI_ATTRIBUTES *out);
/* cq_life.c */
void vipl_cq_release(void *cq);
/* conn.c */
void vipl_conn_release(void *conn);
/* address.c; local: an address without host bytes means this host. */
bool vipl_address_read(const struct vipl_nic *local, const VIP_NET_ADDRESS *in, struct nic_addr *out);
void vipl_address_write(const struct nic_addr *in, VIP_NET_ADDRESS *out);
/* mem.c; a null handle is tag 0 unless the NIC handle is strict. */
bool vipl_ptag_read(const struct vipl_nic *nic, VIP_PROTECTION_HANDLE handle, uint32_t *out);
/* notify.c; the lock is held.  Takes back what waits for that object. */
void vipl_notify_cancel(struct vipl_nic *nic, uintptr_t handle);
/* Ends the thread; the lock is not held and the NIC handle is hidden. */
void vipl_notify_stop(struct vipl_nic *nic);

#pragma GCC visibility pop

#endif
