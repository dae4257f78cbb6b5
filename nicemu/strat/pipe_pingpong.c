/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * TX and RX in turns, each with a DMA engine of its own (QNIX): one packet out, one packet in, and before each of them a look
 * at the Driver Command Queue.  A pass does that a bounded number of times, or until nothing moves.
 *
 * A pass of one process runs the control program that its slot belongs to, with all slots of that.
 */
#include "nicemu/ctl/qnix.h"

/* One packet from the input FIFO: the links in turn. */
static int rx(struct qnix *q)
{
	struct nic *nic = q->nic;

	for (uint32_t i = 0; i < nic->nactive; i++) {
		struct nic_link *link = nic->active[q->rx_turn++ % nic->nactive];
		struct nic_packet *p = nic_link_peek(link);

		if (p)
			return nic_rx_run(nic, link, p, 1, false);
	}
	return 0;
}

static int system_messages(struct nic *nic)
{
	int moved = 0;

	for (uint32_t i = 0; i < nic->nactive; i++)
		if (nic_unlikely(nic_sys_waiting(nic->active[i])))
			moved += nic_sys_run(nic, nic->active[i]);
	return moved;
}

static int driver(struct qnix_sched *sched)
{
	struct qnix *q = sched->driver;

	if (!q)
		return 0;
	sched->driver = q->next;
	return qnix_driver_run(q);
}

/* RX of each slot once; the slots of one control program are few. */
static int receive_all(struct qnix_sched *sched)
{
	struct qnix *first = sched->packets, *q = first;
	int moved = 0;

	if (q)
		do {
			moved += rx(q);
			q = q->next;
		} while (q != first && sched->packets);
	return moved;
}

static int housekeeping(struct qnix_sched *sched)
{
	struct qnix *first = sched->packets, *q = first;
	int moved = 0;

	if (q)
		do {
			qnix_look_around(q);
			moved += system_messages(q->nic);
			if (nic_unlikely(q->nic->nshared))
				moved += nic_rdma_run(q->nic);
			if (nic_unlikely(q->nic->npending))
				moved += nic_tx_pending(q->nic); /* what had no place in the Command Queue, or waits for something */
			if (nic_unlikely(q->nic->group_work))
				moved += nic_group_run(q->nic);
			q = q->next;
		} while (q != first);
	return moved;
}

static int pass(struct nic *nic)
{
	struct qnix_sched *sched = nic->qnix->sched;
	int moved = 0, round;

	if (sched->running) /* a completion has posted something: the pass under way will see it */
		return 0;
	sched->running = true;
	for (int i = 0; i < QNIX_ROUNDS; i++) {
		round = driver(sched) + qnix_tx(sched);
		round += driver(sched) + receive_all(sched);
		moved += round;
		if (!round)
			break;
	}
	moved += housekeeping(sched);
	sched->running = false;
	return moved;
}

static enum nic_motion motion(const struct nic *nic)
{
	const struct qnix *q = nic->qnix;

	return qnix_called(q) || qnix_driver_moves(q) ? NIC_MOVES : qnix_tx_motion(q);
}

static void slept(struct nic *nic, uint32_t passes)
{
	qnix_tx_slept(nic->qnix, passes);
}

static int open(struct nic *nic)
{
	int err = qnix_create(nic);

	return err ? err : qnix_register(nic);
}

static void close(struct nic *nic)
{
	if (nic->qnix)
		qnix_deregister(nic);
	qnix_destroy(nic);
}

static void lost(struct nic *nic, uint32_t slot)
{
	if (!nic->qnix)
		return;
	qnix_driver_lost(nic->qnix, slot);
	qnix_tx_lost(nic->qnix, slot);
	qnix_rx_lost(nic->qnix, slot);
}

const struct nic_pipe nic_pipe_pingpong = { .name = "pingpong", .pass = pass, .open = open, .close = close, .lost = lost,
	.motion = motion, .slept = slept };
