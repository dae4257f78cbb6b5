/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What opal/mca/threads/threads.h of Open MPI 5.0 expects of its thread package besides the mutex; see
 * threads_pthreads_mutex.h for when this one is used.  A BTL does not call
 * opal_thread_yield, but the compiler wants to see it defined.
 */
#ifndef BTL_QNIX_LACKING_THREADS_H
#define BTL_QNIX_LACKING_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
