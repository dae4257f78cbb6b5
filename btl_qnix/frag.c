/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors, and what waits because C-MPI was out of resources.
 *
 * ob1 keeps what could not be sent in four lists.  The one of whole messages it retries from its own progress; the ones
 * of control packets, receives and RDMA fragments only when some other operation calls back.  Sends complete at once
 * here, without a callback, so a process that only receives could be left with an acknowledgement that nobody retries.
 * Hence:
 *  - a control packet (at most BTL_QNIX_SMALL bytes) that finds no vbuf is kept in its descriptor, which sendi makes for it if
 *    need be; a put or get that cannot start is kept in its operation; and both are retried by progress;
 *  - both are bounded by their free lists; when one is exhausted, that many callbacks are due, and ob1 retries then.
 */
#include "btl_qnix/btl_qnix.h"

static void frag_construct(struct btl_qnix_frag *frag)
{
	frag->base.des_segments = &frag->segment;
	frag->base.des_segment_count = 1;
	frag->place = BTL_QNIX_NOWHERE;
}

OBJ_CLASS_INSTANCE(btl_qnix_frag_t, mca_btl_base_descriptor_t, frag_construct, NULL);
OBJ_CLASS_INSTANCE(btl_qnix_op_t, opal_free_list_item_t, NULL, NULL);

static void line_construct(struct btl_qnix_line *line)
{
	OBJ_CONSTRUCT(&line->items, opal_list_t);
	line->listed = false;
}

static void line_destruct(struct btl_qnix_line *line)
{
	OBJ_DESTRUCT(&line->items);
}

OBJ_CLASS_INSTANCE(btl_qnix_line_t, opal_list_item_t, line_construct, line_destruct);

struct btl_qnix_frag *btl_qnix_frag_take(void)
{
	return (struct btl_qnix_frag *)opal_free_list_get(&btl_qnix.frags);
}

void btl_qnix_frag_give(struct btl_qnix_frag *frag)
{
	frag->place = BTL_QNIX_NOWHERE;
	opal_free_list_return(&btl_qnix.frags, &frag->base.super);
}

int btl_qnix_frag_send_own(struct btl_qnix_frag *frag)
{
	struct cmpi_proc *to = frag->endpoint->am;

	return to ? cmpi_am_send(to, frag->tag, frag->own, frag->segment.seg_len, NULL, 0) : CMPI_UNREACHABLE;
}

/* One that waited: its callback is due, whatever its flags say. */
static void complete(struct btl_qnix_frag *frag, int status)
{
	uint32_t flags = frag->base.des_flags; /* the callback may end its life */

	frag->base.des_cbfunc(&btl_qnix.super, frag->endpoint, &frag->base, status);
	if (flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)
		btl_qnix_frag_give(frag);
}

static void wait_in(opal_list_t *list, struct btl_qnix_line *line, opal_list_item_t *item)
{
	OPAL_THREAD_LOCK(&btl_qnix.wait_lock);
	opal_list_append(&line->items, item);
	if (!line->listed)
		opal_list_append(list, &line->super);
	line->listed = true;
	atomic_fetch_add_explicit(&btl_qnix.waiting, 1, memory_order_relaxed); /* a hint; see btl_qnix_progress */
	OPAL_THREAD_UNLOCK(&btl_qnix.wait_lock);
}

void btl_qnix_frag_wait(struct btl_qnix_frag *frag)
{
	wait_in(&btl_qnix.waiting_frags, &frag->endpoint->frags, &frag->base.super.super);
}

void btl_qnix_op_wait(struct btl_qnix_op *op)
{
	wait_in(&btl_qnix.waiting_ops, &op->endpoint->ops, &op->super.super);
}

/* The next line of the list, for this thread alone until put_line; *n: so many entries. */
static struct btl_qnix_line *take_line(opal_list_t *list, size_t *n)
{
	struct btl_qnix_line *line;

	OPAL_THREAD_LOCK(&btl_qnix.wait_lock);
	line = (struct btl_qnix_line *)opal_list_remove_first(list);
	*n = line ? opal_list_get_size(&line->items) : 0;
	OPAL_THREAD_UNLOCK(&btl_qnix.wait_lock);
	return line;
}

/* With the entry that was taken from it last, if that has to wait on. */
static void put_line(opal_list_t *list, struct btl_qnix_line *line, opal_list_item_t *item)
{
	OPAL_THREAD_LOCK(&btl_qnix.wait_lock);
	if (item) {
		opal_list_prepend(&line->items, item);
		atomic_fetch_add_explicit(&btl_qnix.waiting, 1, memory_order_relaxed);
	}
	line->listed = !opal_list_is_empty(&line->items);
	if (line->listed)
		opal_list_append(list, &line->super);
	OPAL_THREAD_UNLOCK(&btl_qnix.wait_lock);
}

static opal_list_item_t *take_waiting(struct btl_qnix_line *line)
{
	opal_list_item_t *item;

	OPAL_THREAD_LOCK(&btl_qnix.wait_lock);
	item = opal_list_remove_first(&line->items);
	if (item)
		atomic_fetch_sub_explicit(&btl_qnix.waiting, 1, memory_order_relaxed);
	OPAL_THREAD_UNLOCK(&btl_qnix.wait_lock);
	return item;
}

/* False: still no resources. */
static bool retry_frag(opal_list_item_t *item)
{
	struct btl_qnix_frag *frag = (struct btl_qnix_frag *)item;
	int err = btl_qnix_frag_send_own(frag);

	if (err == CMPI_AGAIN)
		return false;
	complete(frag, btl_qnix_failed(frag->endpoint, err));
	return true;
}

static bool retry_op(opal_list_item_t *item)
{
	int err = btl_qnix_op_start((struct btl_qnix_op *)item);

	if (btl_qnix_has_to_wait(err))
		return false;
	if (err != CMPI_OK)
		btl_qnix_op_done(item, err);
	return true;
}

/*
 * Each line as far as there are resources: one peer may be out of them and the next not.  Only the first that has to wait on is tried
 * for each peer, however many there are: a program may have thousands under way, and come here for each of them.
 */
static int retry_list(opal_list_t *list, bool (*retry)(opal_list_item_t *))
{
	size_t lines = opal_list_get_size(list), n; /* unlocked: a guess; the loop also ends when the list does */
	struct btl_qnix_line *line;
	int events = 0;

	for (; lines && (line = take_line(list, &n)); lines--) {
		opal_list_item_t *item = NULL;

		for (; n && (item = take_waiting(line)) && retry(item); n--) {
			events++;
			item = NULL;
		}
		put_line(list, line, item);
	}
	return events;
}

int btl_qnix_retry(void)
{
	return retry_list(&btl_qnix.waiting_frags, retry_frag) + retry_list(&btl_qnix.waiting_ops, retry_op);
}
