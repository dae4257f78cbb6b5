/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that has the NIC open forks.  The child shares descriptors and mappings with it, and must not keep its slot, its
 * card lock or its name alive; a child that opens the NIC itself is a process like any other.
 */
#include <fcntl.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

static char device[48];

enum { READY, PARENT_GONE, RESULT, CARD_LOW, CARD_HIGH, HELPER };

static uint64_t card_of(const struct nic *nic)
{
	struct nic_attr attr;

	nic_query(nic, &attr);
	return attr.card;
}

/* Started anew: what a stranger finds under that name. */
static int newcomer(const char *name, const char *card)
{
	struct nic *nic;

	if (nic_open(&(struct nic_open_args){ .device = name }, &nic))
		return 2;
	int same = card_of(nic) == strtoull(card, NULL, 16);

	nic_close(nic);
	return same ? 0 : 1;
}

static int exec_newcomer(void)
{
	char card[32];

	snprintf(card, sizeof(card), "%x%08x", (unsigned)atomic_load(&kin_step[CARD_HIGH]), (unsigned)atomic_load(&kin_step[CARD_LOW]));
	execl("/proc/self/exe", "fork", "--newcomer", device, card, (char *)NULL);
	return 3;
}

static void remember_card(const struct nic *nic)
{
	atomic_store(&kin_step[CARD_LOW], (int)card_of(nic));
	atomic_store(&kin_step[CARD_HIGH], (int)(card_of(nic) >> 32));
}

/* ---- parent and child both use the NIC --------------------------------------------------------------------------- */

static struct end parents;

/* What the child saw, as bits. */
enum { OPENED = 1, SAME_CARD = 2, OWN_SLOT = 4, CONNECTED = 8, NOTICED = 16, FOUND = 32 };

static int child_of_user(void)
{
	uint64_t card = card_of(parents.nic);
	uint32_t slot = parents.nic->me;
	struct end e;
	int seen = OPENED;

	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	seen |= (card_of(e.nic) == card) * SAME_CARD | (e.nic->me != slot) * OWN_SLOT;
	remember_card(e.nic);
	seen |= (kin_connect(&e, "child", "parent") == NIC_OK) * CONNECTED;
	atomic_store(&kin_step[READY], 1);
	seen |= kin_lost(&e, KIN_SECONDS) * NOTICED;
	seen |= (kin_wait(kin_fork(exec_newcomer)) == 0) * FOUND;
	atomic_store(&kin_step[RESULT], seen);
	return 0;
}

static int user(void)
{
	end_open(&parents, device);
	end_vi(&parents, NIC_RELIABLE_DELIVERY);
	kin_fork(child_of_user);
	if (kin_connect(&parents, "parent", "child") || !kin_await(parents.nic, READY, 1))
		return 1;
	raise(SIGKILL);
	return 2;
}

static void child_opens_the_nic(void)
{
	kin_clear();
	CHECK_EQ(kin_wait(kin_fork(user)), -SIGKILL);
	CHECK(kin_await(NULL, RESULT, OPENED | SAME_CARD | OWN_SLOT | CONNECTED | NOTICED | FOUND));
	CHECK_EQ(atomic_load(&kin_step[RESULT]), OPENED | SAME_CARD | OWN_SLOT | CONNECTED | NOTICED | FOUND);
}

/* ---- the child does not know of the NIC -------------------------------------------------------------------------- */

/* Outlives its parent, until told. */
static int helper(void)
{
	atomic_store(&kin_step[HELPER], (int)getpid());
	kin_await(NULL, PARENT_GONE, 1);
	return 0;
}

static int with_helper(void)
{
	struct end e;

	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	if (kin_connect(&e, "with helper", "survivor"))
		return 1;
	kin_fork(helper);
	while (!atomic_load(&kin_step[HELPER]))
		usleep(100);
	atomic_store(&kin_step[READY], 1);
	for (;;)
		nic_poll(e.nic);
}

static void helper_does_not_keep_the_slot(void)
{
	struct end e;
	pid_t child;

	kin_clear();
	child = kin_fork(with_helper);
	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_connect(&e, "survivor", "with helper"), NIC_OK);
	CHECK(kin_await(e.nic, READY, 1));
	CHECK_EQ(kin_kill(child), -SIGKILL);
	CHECK(kin_lost(&e, KIN_SECONDS));
	CHECK_EQ(kill(atomic_load(&kin_step[HELPER]), 0), 0); /* it is still there */
	atomic_store(&kin_step[PARENT_GONE], 1);
	end_close(&e);
}

/* It dies between lock and unlock, and leaves a child. */
static int locked_with_helper(void)
{
	struct end e;

	end_open(&e, device);
	nic_card_lock(e.nic->card);
	kin_fork(helper);
	while (!atomic_load(&kin_step[HELPER]))
		usleep(100);
	raise(SIGKILL);
	return 2;
}

static void helper_does_not_keep_the_card_lock(void)
{
	struct end e;
	int free;

	kin_clear();
	end_open(&e, device);
	CHECK_EQ(kin_wait(kin_fork(locked_with_helper)), -SIGKILL);
	free = nic_card_trylock(e.nic->card);
	CHECK(free);
	if (free)
		nic_card_unlock(e.nic->card);
	atomic_store(&kin_step[PARENT_GONE], 1);
	end_close(&e);
}

static int count_card(void *arg, const struct nic_card_info *info)
{
	*(int *)arg += strcmp(info->device, device) == 0;
	return 0;
}

/* Nor is a card still advertised by the child of one that has closed it. */
static void helper_does_not_keep_the_name(void)
{
	int cards = 0;
	struct end e;
	pid_t child;

	kin_clear();
	end_open(&e, device);
	remember_card(e.nic);
	child = kin_fork(helper);
	while (!atomic_load(&kin_step[HELPER]))
		usleep(100);
	CHECK_EQ(kin_wait(kin_fork(exec_newcomer)), 0);
	end_close(&e);
	CHECK_EQ(kin_wait(kin_fork(exec_newcomer)), 1);
	nic_cards(count_card, &cards);
	CHECK_EQ(cards, 0);
	atomic_store(&kin_step[PARENT_GONE], 1);
	CHECK_EQ(kin_wait(child), 0);
}

/* The parent goes on as if nothing had happened. */
static void parent_is_not_disturbed(void)
{
	struct nic_desc *r;
	struct pair p;

	kin_clear();
	atomic_store(&kin_step[PARENT_GONE], 1);
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	CHECK_EQ(kin_wait(kin_fork(helper)), 0);
	r = fill(&p.b, 0, 0, p.b.mem, 5000);
	recv_desc(&p.b, r);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 5000));
	for (int i = 0; i < 3 * NIC_WATCH_POLLS; i++)
		pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK_EQ(kin_state(&p.a), NIC_VI_CONNECTED);
	pair_close(&p);
}

/* ---- a second copy of the NIC in the same process ---------------------------------------------------------------- */

/* The card's descriptor, as another copy would find it: the one whose file is a card. */
static int open_again(void)
{
	char path[64], target[64];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && (target[n] = 0, strstr(target, "memfd:qnix")))
			return open(path, O_RDWR | O_CLOEXEC);
	}
	return -1;
}

/* Is any byte locked through another descriptor? */
static int locked(int fd)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0 };

	return fcntl(fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
}

/* A copy with lists of its own, as each component of a program has one: it must not take, or end, this one's slot. */
static void second_copy_sees_the_slot(void)
{
	struct end e;
	int fd;

	end_open(&e, device);
	if (strcmp(nic_card_memory(e.nic->card), "memfd") != 0) {
		end_close(&e);
		SKIP("the card is no memfd here");
	}
	fd = open_again();
	REQUIRE(fd >= 0);
	CHECK(locked(fd));
	close(fd);
	fd = open_again();
	CHECK(locked(fd)); /* closing a descriptor of the same file did not end it */
	end_close(&e);
	CHECK(!locked(fd));
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--newcomer") == 0)
		return newcomer(argv[2], argv[3]);
	kin_start();
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	CASE(child_opens_the_nic);
	CASE(helper_does_not_keep_the_slot);
	CASE(helper_does_not_keep_the_card_lock);
	CASE(helper_does_not_keep_the_name);
	CASE(parent_is_not_disturbed);
	CASE(second_copy_sees_the_slot);
	return check_done();
}
