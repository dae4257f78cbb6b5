/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user library of the QNIX NIC.
 *
 * A process writes what it wants into contexts and commands of its Virtual Network Interface, which is mapped into it, and
 * later looks at a doorbell; no call enters the operating system after qx_init, but those that lock memory.
 *
 * Published: qx_init, qx_buffer_lock, qx_buffer_unlock, qx_buffer_pool, and the beginning of qx_buffer_translate.  The names
 * of all others are this project's, over the published command set.
 *
 * A process name is a pair of ints: application and process within it.  Every function returns a negative number or a null
 * pointer when it fails.  One thread at a time.
 */
#ifndef QNIX_H
#define QNIX_H

#ifdef __cplusplus
extern "C" {
#endif

/* Largest message, and largest one that is carried in its context (sent as *_Short); largest tag; pages of the pool. */
#define QX_MESSAGE_MAX (4L << 20)
#define QX_SHORT_MAX 1024L
#define QX_TAG_MAX 0x3FFF
#define QX_POOL_PAGES 2048
#define QX_PAGE 4096
#define QX_MULTICAST_MAX 255

/* What qx_test and qx_wait return when it went wrong. */
#define QX_ERROR (-1)     /* bad argument, or not an operation */
#define QX_FAILED (-2)    /* the other process is unknown, or has gone */
#define QX_REFUSED (-3)   /* the message did not fit its receive, or a bounded resource is used up */

/*
 * First call of every process.  proc_name points to two ints, neither 0 nor -1 for the first; group_name and group_size are
 * those of the application.  Returns when all processes of the application are registered: the host process structure.
 */
void *qx_init(int *proc_name, int group_name, int group_size);
/* De-registers the process; what is under way is lost.  Happens by itself when the process ends. */
int qx_finish(void);
/* Why the last qx_init failed: a sentence. */
const char *qx_error(void);

int qx_buffer_lock(char *buffer, long buffer_size);
int qx_buffer_unlock(char *buffer, long buffer_size);
/* Pages that are locked and translated for the life of the process: 1 to QX_POOL_PAGES, once.  qx_pool says where they are. */
int qx_buffer_pool(int pool_size);
char *qx_pool(void);
/* Bus addresses of a locked buffer's pages, one a page, into `physical`, which has room for them; returns their number. */
int qx_buffer_translate(char *buffer, long buffer_size, unsigned long *physical);

/*
 * Operations.  Each call returns a number for qx_test and qx_wait, which end it; a buffer is the NIC's until then.
 * Messages of one sender with one tag are received in their order.  A message may come before its receive, into the NIC.
 */
int qx_send(const int to[2], int tag, const char *buffer, long size);
int qx_receive(const int from[2], int tag, char *buffer, long size);
/* The same with pages of the pool, from number `page` on: nothing is translated. */
int qx_pool_send(const int to[2], int tag, int page, long size);
int qx_pool_receive(const int from[2], int tag, int page, long size);
/* To all others of a group; they receive it from this process. */
int qx_broadcast(int group_name, int tag, const char *buffer, long size);
/* To n processes: names holds n pairs. */
int qx_multicast(int n, const int *names, int tag, const char *buffer, long size);
/* Into a group of `size` processes; complete when all have joined.  The application's own group is joined by qx_init. */
int qx_join(int group_name, int size);
/* Complete when all of the group have called it; one at a time in a group. */
int qx_barrier(int group_name);

/* 1: over, and *size (unless NULL) is the length of the message; 0: not yet; negative: over, and it went wrong. */
int qx_test(int operation, long *size);
/* Runs the NIC until the operation is over; 1 or negative. */
int qx_wait(int operation, long *size);
/* Runs the NIC for a moment; how much moved. */
int qx_poll(void);

#ifdef __cplusplus
}
#endif
#endif
