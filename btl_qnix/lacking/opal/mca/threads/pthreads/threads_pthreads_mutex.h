/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What opal/mca/threads/mutex.h of Open MPI 5.0 expects of its thread package, said for pthreads.  Some packages of Open
 * MPI (Debian 13's) install that header and not this one.  configure looks here only when Open MPI's own is missing, and
 * compares the size of the mutex with what libopen-pal says it is.
 */
#ifndef BTL_QNIX_LACKING_MUTEX_H
#define BTL_QNIX_LACKING_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "opal/class/opal_object.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex)
{
	return pthread_mutex_trylock(mutex) ? 1 : 0;
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Waiting for a request: ompi/request/request.h wants to see these defined.  Nobody here asks for a recursive one. */

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex, bool recursive)
{
	(void)recursive;
	return pthread_mutex_init(mutex, NULL);
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *mutex)
{
	pthread_mutex_destroy(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *cond)
{
	return pthread_cond_init(cond, NULL);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *cond)
{
	pthread_cond_signal(cond);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *cond)
{
	pthread_cond_destroy(cond);
}

#endif
