/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work reaches the NIC as commands in the process's Command Queue, each with the number of a context (QNIX).
 *
 * The context of a VI is its send ring on the NIC: the command only says that there is work.  A VI's receives need no command:
 * its receive ring is a part of the Receive Table, found by the Context Tag.  When the Command Queue is full the VI goes on
 * the list of those with work, so nothing is lost and nobody waits.
 */
#include <string.h>

#include "nicemu/ctl/qnix.h"

/* Q1: operands first.  False: as far as the process knows, the queue is full. */
static bool put(struct nic *nic, const struct qnix_cmd *cmd)
{
	struct qnix_slot *slot = &nic->slot->qnix;
	struct qnix_cmd *at = &slot->vni.command[slot->hps.command_tail & (QNIX_COMMANDS - 1)];

	/* Q3: pairs with the release in step 6 of TX: the entries before it are empty */
	if (slot->hps.command_tail - nic_load_acquire(&slot->hps.command_head) >= QNIX_COMMANDS)
		return false;
	at->context = cmd->context;
	memcpy(at->name, cmd->name, sizeof(at->name));
	nic_store_release(&at->command, nic_load_relaxed(&cmd->command)); /* Q1; the copy is the caller's own */
	slot->hps.command_tail++;
	return true;
}

static void send(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	struct qnix_cmd cmd = { .command = QNIX_CMD_VI_SEND, .context = vi };

	nic_count(nic, doorbells, 1);
	nic_count(nic, queued, 1);
	nic_post_queue(nic, vi, desc);
	if (nic_unlikely(!put(nic, &cmd)))
		nic_vi_schedule(nic, vi);
	nic_poll(nic);
}

static void recv(struct nic *nic, uint32_t vi, struct nic_desc *desc)
{
	nic_post_ring.recv(nic, vi, desc);
}

static void refill(struct nic *nic, uint32_t vi)
{
	nic_post_ring.refill(nic, vi);
}

static int command(struct nic *nic, const struct qnix_cmd *cmd)
{
	return put(nic, cmd) ? NIC_OK : NIC_NOT_DONE;
}

const struct nic_post nic_post_cmdq = { .name = "cmdq", .send = send, .recv = recv, .refill = refill, .command = command };
