/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QNIX driver, step by step: registration and de-registration, the queue of commands, what becomes of messages when a process leaves.
 */
#include <signal.h>
#include <sys/mman.h>

#include "tests/unit/nicemu/played.h"

static void six_steps(void)
{
	up(1);
	IN_ORDER(0, S(REGISTER_1), S(REGISTER_2), S(REGISTER_3), S(REGISTER_4), S(REGISTER_5), S(DRIVER_COMMAND), S(DRIVER_DOORBELL),
	         S(REGISTER_6), S(REGISTER_2), S(DRIVER_COMMAND), S(DRIVER_DOORBELL), S(REGISTER_6));
	CHECK_EQ(p[0]->shared->driver.flag, (uint32_t)getpid());
	CHECK_EQ(p[0]->shared->hps.command_head, 0);
	for (int i = 0; i < QNIX_CONTEXTS; i++)
		CHECK(p[0]->shared->hps.send_doorbell[i] == QNIX_FREE && p[0]->shared->hps.recv_doorbell[i] == QNIX_FREE);
	CHECK_EQ(p[0]->shared->hps.send_contexts - p[0]->shared->hps.command_queue, sizeof(p[0]->shared->vni.command));
	down();
}

static void five_steps(void)
{
	struct nic_open_args args = { 0 };
	struct nic *nic;

	up(1);
	CHECK_EQ(nic_open(&args, &nic), NIC_OK);
	qnix_deregister(nic);
	p[1] = p[0];
	p[0] = &(struct qx){ .nic = nic };
	IN_ORDER(0, S(DEREGISTER_1), S(DEREGISTER_2), S(DEREGISTER_3), S(DEREGISTER_4), S(DRIVER_COMMAND), S(DRIVER_DOORBELL),
	         S(DEREGISTER_5));
	CHECK_EQ(nic->qnix->pte.pid, 0);
	CHECK_EQ(nic->slot->qnix.driver.flag, 0);
	nic_close(nic);
	p[0] = p[1];
	p[1] = NULL;
	down();
}

/* Nobody is registered before all are; then everybody knows everybody. */
static void registration_waits_for_all(void)
{
	up(1);
	down();
	nprocs = 3;
	p[0] = qx_begin(name(0), APP, 3);
	p[1] = qx_begin(name(1), APP, 3);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(qx_begun(p[0]), 0);
		CHECK_EQ(qx_begun(p[1]), 0);
	}
	p[2] = qx_begin(name(2), APP, 3);
	for (int i = 0; i < 50 && !all_begun(); i++)
		;
	CHECK(all_begun());
	for (int i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 3; k++) {
			struct qnix_name n = { APP, (int)k };
			uint32_t node;

			CHECK(qnix_name_find(p[i]->nic->qnix, &n, &node) && node == p[k]->nic->me);
		}
	CHECK(steps_of(0, S(NEW_PROCESS_ACK)) + steps_of(1, S(NEW_PROCESS_ACK)) + steps_of(2, S(NEW_PROCESS_ACK)) >= 3);
	CHECK_EQ(steps_of(0, S(GROUP_ACK)), 2);
	down();
}

/* ---- what happens between two instructions ------------------------------------------------------------------------- */

static char *page; /* which the NIC of process 0 cannot write */

static void on_writing(char *what, void (*fn)(int signal, siginfo_t *info, void *context), struct sigaction *before)
{
	struct sigaction act = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO };

	page = (char *)((uintptr_t)what & ~(uintptr_t)(QNIX_PAGE - 1));
	sigaction(SIGSEGV, &act, before);
	REQUIRE(mprotect(page, QNIX_PAGE, PROT_NONE) == 0);
}

static void go_on(const siginfo_t *info)
{
	if ((char *)info->si_addr < page || (char *)info->si_addr >= page + QNIX_PAGE)
		abort(); /* another fault */
	mprotect(page, QNIX_PAGE, PROT_READ | PROT_WRITE);
}

static void another_comes(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	go_on(info);
	p[1] = qx_begin(name(1), APP, 2);
	qx_begun(p[1]); /* its record is in the card, and it has found none */
}

/* A process opens the card and names itself while the NIC of another one is between New_Process and its record. */
static void two_register_at_once(void)
{
	struct sigaction before;

	up(1);
	down();
	nprocs = 2;
	p[0] = qx_begin(name(0), APP, 2);
	on_writing((char *)&p[0]->nic->groups->group[0].member[NIC_MAX_SLOTS / 2], another_comes, &before);
	qx_begun(p[0]);
	sigaction(SIGSEGV, &before, NULL);
	REQUIRE(p[1]);
	for (int i = 0; i < 50 && !all_begun(); i++)
		;
	CHECK(all_begun());
	down();
}

static void table_is_cleared(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	go_on(info);
	memset(qnix_slot_of(p[0]->nic->qnix), 0, sizeof(struct qnix_driver));
}

/* Somebody else writes in the slot: the NIC does not wait for a command that is gone. */
static void command_is_gone(void)
{
	struct sigaction before;

	up(1);
	on_writing((char *)&qnix_slot_of(p[0]->nic->qnix)->hps, table_is_cleared, &before);
	CHECK_EQ(qnix_register(p[0]->nic), NIC_STATE);
	CHECK(strstr(nic_last_error(), "is gone"));
	sigaction(SIGSEGV, &before, NULL);
	down();
}

static void heads_come_back_every_eighth(void)
{
	up(2);
	for (int i = 1; i <= 20; i++) {
		int r = receive_as(1, 0, 1, to[1], 64), s = send_as(0, 1, 1, from[0], 64);

		CHECK_EQ(over(0, s, NULL), 1);
		CHECK_EQ(over(1, r, NULL), 1);
		CHECK_EQ(p[0]->shared->hps.command_head, i / 8 * 8);
		CHECK_EQ(p[0]->shared->hps.command_tail, i);
	}
	CHECK_EQ(steps_of(0, S(TX_6_HEAD)), 2);
	for (uint32_t i = 0; i < QNIX_COMMANDS; i++) /* consumed entries are zeroed */
		CHECK_EQ(p[0]->shared->vni.command[i].command, QNIX_CMD_EMPTY);
	down();
}

/* No room in the Group Table: who registers is told. */
static void no_room_for_the_application(void)
{
	struct nic_open_args args = { 0 };
	struct qx q = { 0 };

	up(1);
	CHECK_EQ(nic_open(&args, &q.nic), NIC_OK);
	for (uint32_t i = 0; i < NIC_GROUPS; i++) {
		struct nic_group_args group = { .name = 1000 + i, .size = 1, .slot = &q.nic->me };
		uint32_t op;

		CHECK_EQ(nic_group_join(q.nic, &group, &op), NIC_OK);
		nic_poll(q.nic);
		CHECK_EQ(nic_op_test(q.nic, op, NULL), NIC_OK);
	}
	CHECK_EQ(nic_process_name(q.nic, APP, 2, 5, 2), NIC_OK);
	CHECK_EQ(qx_begun(&q), QX_REFUSED);
	CHECK_EQ(nic_process_named(q.nic), NIC_RESOURCE);
	nic_close(q.nic);
	down();
}

/* A process leaves with messages under way to and from it: nobody waits for ever, and what had arrived can be received. */
static void deleted_in_flight(void)
{
	long size;
	int r, s, kept;

	up(3);
	kept = send_as(1, 0, 1, from[1], 30000);
	CHECK_EQ(over(1, kept, NULL), 1);
	r = receive_as(0, 1, 2, to[0], 100);
	s = send_as(0, 1, 2, from[0], 300000); /* more than the receiver's NIC keeps */
	poll_all();
	qx_end(p[1]);
	p[1] = p[2];
	p[2] = NULL;
	nprocs = 2;
	CHECK_EQ(over(0, r, NULL), QX_FAILED);
	CHECK_EQ(over(0, s, NULL), QX_FAILED);
	as(0);
	r = qx_receive((int[]){ APP, 1 }, 1, (char *)to[0], 30000);
	CHECK_EQ(over(0, r, &size), 1);
	CHECK(size == 30000 && memcmp(to[0], from[1], 30000) == 0);
	as(0);
	r = qx_receive((int[]){ APP, 1 }, 1, (char *)to[0], 30000);
	CHECK_EQ(over(0, r, NULL), QX_FAILED);
	as(1);
	s = qx_send((int[]){ APP, 1 }, 1, (char *)from[1], 10);
	CHECK_EQ(over(1, s, NULL), QX_FAILED);
	down();
}

int main(void)
{
	CASE(six_steps);
	CASE(five_steps);
	CASE(registration_waits_for_all);
	CASE(two_register_at_once);
	CASE(command_is_gone);
	CASE(heads_come_back_every_eighth);
	CASE(no_room_for_the_application);
	CASE(deleted_in_flight);
	return check_done();
}
