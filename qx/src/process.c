/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration of the process, and its memory: locking, translation, the Buffer Pool.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qnix.h"
#include "qx/src/qx.h"

static struct qx *current;
static char reason[256] = "qx_init has not been called";

struct qx *qx_select(struct qx *now)
{
	struct qx *before = current;

	current = now;
	return before;
}

const char *qx_error(void)
{
	return reason;
}

/* The library is of use on this architecture only: it is chosen unless somebody has chosen. */
static void choose_arch(void)
{
	const struct nic_param *arch = nic_param_find("arch");

	if (arch && !strcmp(arch->source, "default"))
		nic_param_set("arch", "qnix", "qx_init");
}

static struct qx *failed(struct qx *q, const char *what, const char *why)
{
	snprintf(reason, sizeof(reason), "%s: %s", what, why);
	if (q && q->nic)
		nic_close(q->nic);
	free(q);
	return NULL;
}

struct qx *qx_begin(const int *proc_name, int group_name, int group_size)
{
	struct nic_open_args args = { 0 };
	struct qx *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return failed(q, "qx_init", "out of memory");
	if (!proc_name || group_size <= 0 || proc_name[0] == 0 || proc_name[0] == QNIX_PORT)
		return failed(q, "qx_init", "bad process name or group size");
	choose_arch();
	if (nic_open(&args, &q->nic))
		return failed(q, "qx_init", nic_last_error());
	err = nic_process_name(q->nic, proc_name[0], proc_name[1], (uint32_t)group_name, (uint32_t)group_size);
	if (err)
		return failed(q, "qx_init", err == NIC_STATE ? "the NIC is not a QNIX: see parameter arch" : nic_err_text(err));
	q->shared = nic_process_interface(q->nic);
	return q;
}

int qx_begun(struct qx *q)
{
	int err;

	nic_poll(q->nic);
	err = nic_process_named(q->nic);
	return err == NIC_OK ? 1 : err == NIC_NOT_DONE ? 0 : err == NIC_RESOURCE ? QX_REFUSED : QX_FAILED;
}

void *qx_init(int *proc_name, int group_name, int group_size)
{
	struct qx *q;
	int done;

	if (current) {
		failed(NULL, "qx_init", "called twice");
		return NULL;
	}
	q = qx_begin(proc_name, group_name, group_size);
	while (q && (done = qx_begun(q)) <= 0) {
		if (done < 0)
			q = failed(q, "qx_init", done == QX_REFUSED ? "the NIC has no room for another group" : "a process of the group has died");
		else
			sched_yield();
	}
	current = q;
	return q ? &q->shared->hps : NULL;
}

void qx_end(struct qx *q)
{
	nic_close(q->nic);
	if (q->pool)
		munmap(q->pool, (size_t)q->pool_pages * QX_PAGE);
	free(q);
}

int qx_finish(void)
{
	if (!current)
		return QX_ERROR;
	qx_end(current);
	current = NULL;
	return 0;
}

/* ---- memory ----------------------------------------------------------------------------------------------------------------- */

int qx_buffer_lock(char *buffer, long buffer_size)
{
	return buffer && buffer_size > 0 && mlock(buffer, (size_t)buffer_size) == 0 ? 0 : QX_ERROR;
}

int qx_buffer_unlock(char *buffer, long buffer_size)
{
	return buffer && buffer_size > 0 && munlock(buffer, (size_t)buffer_size) == 0 ? 0 : QX_ERROR;
}

int qx_buffer_translate(char *buffer, long buffer_size, unsigned long *physical)
{
	uint32_t n;

	if (!current || !buffer || buffer_size <= 0 || !physical)
		return QX_ERROR;
	n = nic_translate(current->nic, (uintptr_t)buffer, (uint64_t)buffer_size, (uint64_t *)physical, UINT32_MAX);
	return n ? (int)n : QX_ERROR;
}

int qx_buffer_pool(int pool_size)
{
	char *pages;

	if (!current || current->pool || pool_size < 1 || pool_size > QX_POOL_PAGES)
		return QX_ERROR;
	pages = mmap(NULL, (size_t)pool_size * QX_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return QX_ERROR;
	/* The emulated NIC reaches pages that are not locked as well, so a low limit on locked memory is no reason to fail. */
	if (mlock(pages, (size_t)pool_size * QX_PAGE) && errno != ENOMEM && errno != EPERM && errno != EAGAIN) {
		munmap(pages, (size_t)pool_size * QX_PAGE);
		return QX_ERROR;
	}
	nic_translate(current->nic, (uintptr_t)pages, (uint64_t)pool_size * QX_PAGE, current->shared->vni.pool, QNIX_POOL_PAGES);
	current->pool = pages;
	current->pool_pages = pool_size;
	return 0;
}

char *qx_pool(void)
{
	return current ? current->pool : NULL;
}
