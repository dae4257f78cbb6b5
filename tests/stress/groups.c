/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a group dies at any instruction: kill -9 of one of four processes, or of two, at a random moment, while they open,
 * join, broadcast, meet in barriers and leave.  The others are told, leave, and go on as a group of those that are left; nothing is
 * left behind: no slot, no file, no number of buffers that grows with the dead.
 *
 *   groups [points] [seed]
 *
 * What is done next follows from the number of the step alone, so that all members agree.  Who waits too long for anything
 * says so and ends with status 1.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/ctl/ctl.h"
#include "tests/check.h"

enum { RANKS = 4, BYTES = 60000, STEPS_AFTER = 12, SECONDS = 180, MANY = 500 /* points: a broadcast of two is copied directly in some of so many */ };

static struct board { /* what the processes of one point tell each other beside the NIC */
	_Atomic uint32_t slot[RANKS]; /* + 1 */
	uint32_t life[RANKS];         /* published by slot */
	_Atomic bool killed;          /* somebody is about to be */
	_Atomic uint32_t dead;        /* rank + 1, when it is */
	_Atomic uint32_t steps;       /* done by rank 0 or 1 before the death */
	_Atomic uint32_t direct;      /* broadcasts of two that a survivor has copied from the root's memory */
	_Atomic bool can;             /* copy from another's memory */
} *board;
static char device[48];
static unsigned points = 100, seed = 1;
static uint32_t ranks;

/* One process. */
static struct {
	struct nic *nic;
	uint32_t me, n, slot[RANKS], life[RANKS], group;
	time_t since;
	uint8_t data[BYTES];
} m;

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x45d9f3bu;
	x = (x ^ x >> 16) * 0x45d9f3bu;
	return x ^ x >> 16;
}

static void give_up(const char *what)
{
	fprintf(stderr, "# process %d, number %u of %u: %s\n", (int)getpid(), m.me, m.n, what);
	_exit(1);
}

/* A moment's rest; for ever is too long. */
static void rest(const char *what)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - m.since > SECONDS)
		give_up(what);
	nic_poll(m.nic);
	sched_yield();
}

static int over(uint32_t op, uint32_t *value, const char *what)
{
	int err;

	while ((err = nic_op_test(m.nic, op, value)) == NIC_NOT_DONE)
		rest(what);
	return err;
}

/*
 * Something has failed: is somebody dead?  Not asked of the NIC: a process that was killed loses its memory first, which a copy from there notices, and
 * what shows that it lives some milliseconds later.
 */
static void with_reason(void)
{
	if (!nic_load_acquire(&board->killed)) /* pairs with one_point */
		give_up("something fails, and nobody was killed");
}

static bool join(uint32_t name)
{
	struct nic_group_args args = { .name = name, .size = m.n, .place = m.me, .slot = m.slot, .life = m.life };
	uint32_t op;
	int err;

	if (nic_group_join(m.nic, &args, &op) != NIC_OK)
		give_up("a join is refused");
	err = over(op, &m.group, "a join does not end");
	if (err != NIC_OK && err != NIC_STATE)
		give_up("a join ends with something else");
	if (err == NIC_OK)
		return true;
	with_reason();
	nic_group_leave(m.nic, m.group & ((1u << NIC_WHY_SHIFT) - 1));
	return false;
}

static void leave(void)
{
	while (nic_group_leave(m.nic, m.group) == NIC_BUSY)
		rest("leaving is refused");
}

static bool started(int err)
{
	if (err != NIC_OK && err != NIC_STATE)
		give_up("an operation is refused");
	return err == NIC_OK;
}

/* A broadcast of any size from anybody, and sometimes a barrier under way beside it. */
static bool step(uint32_t number)
{
	uint32_t x = mix(number + 1), root = x % m.n, len = x >> 8, bcast, barrier;
	bool meet = x >> 4 & 1, ok = true;

	len = x >> 5 & 1 ? len % 40 : len % BYTES;
	if (root == m.me)
		memset(m.data, (int)(number & 0xFF), len);
	if (meet)
		started(nic_barrier(m.nic, m.group, &barrier));
	started(nic_bcast(m.nic, m.group, m.slot[root], m.data, len, &bcast));
	if (over(bcast, NULL, "a broadcast does not end") != NIC_OK)
		ok = false;
	for (uint32_t i = 0; ok && i < len; i++)
		if (m.data[i] != (uint8_t)number)
			give_up("a broadcast has brought something else");
	if (meet && over(barrier, NULL, "a barrier does not end") != NIC_OK)
		ok = false;
	return ok;
}

/* A slot that stands twice was that of one who died before anybody had a link with it, and has its next owner. */
static bool twice(void)
{
	for (uint32_t i = 0; i < ranks; i++)
		for (uint32_t k = 0; k < i; k++)
			if (m.slot[i] == m.slot[k])
				return true;
	return false;
}

static bool all_here(void)
{
	for (uint32_t i = 0; i < ranks; i++) {
		uint32_t slot;

		while (!(slot = nic_load_acquire(&board->slot[i]))) { /* pairs with member */
			if (nic_load_acquire(&board->dead))
				return false;
			rest("not all come");
		}
		m.slot[i] = slot - 1;
		m.life[i] = board->life[i];
	}
	m.n = ranks;
	return !twice();
}

/* Until the death: groups that come and go. */
static void together(uint32_t point)
{
	for (uint32_t life = 0;; life++) {
		if (!join(point * 1000 + life))
			return;
		if (m.n == 2 && nic_groups_at_once(m.nic) && m.nic->link[m.slot[!m.me]] && m.nic->link[m.slot[!m.me]]->cma)
			atomic_store_explicit(&board->can, true, memory_order_relaxed); /* as steps */
		for (uint32_t k = mix(point ^ life) % 40; k--;) {
			if (!step(life * 64 + k)) {
				with_reason();
				leave();
				return;
			}
			atomic_fetch_add_explicit(&board->steps, m.me < 2, memory_order_relaxed); /* a number, no more */
		}
		leave();
	}
}

static void without(uint32_t point)
{
	uint32_t dead, n = 0, me = m.me;

	while (!(dead = nic_load_acquire(&board->dead))) /* pairs with point */
		rest("the dead is not named");
	for (uint32_t i = 0; i < ranks; i++) {
		uint32_t slot;

		if (i == dead - 1)
			continue;
		while (!(slot = nic_load_acquire(&board->slot[i]))) /* as in all_here */
			rest("not all survivors come");
		if (i == me)
			m.me = n;
		m.life[n] = board->life[i];
		m.slot[n++] = slot - 1;
	}
	m.n = n;
	if (!join(point))
		give_up("the survivors find no group");
	for (uint32_t k = 0; k < STEPS_AFTER; k++)
		if (!step(k))
			give_up("the survivors' group breaks");
	/* Nobody goes before all are through: a barrier that all have reached, and then heard of. */
	for (int k = 0; k < 2; k++) {
		uint32_t op;

		if (nic_barrier(m.nic, m.group, &op) != NIC_OK || over(op, NULL, "the last barrier does not end") == NIC_NOT_DONE)
			give_up("the last barrier is refused");
	}
	leave();
	atomic_fetch_add_explicit(&board->direct, (uint32_t)m.nic->counter[NIC_C_broadcasts_direct], memory_order_relaxed); /* as steps */
}

static void member(uint32_t me, uint32_t point)
{
	struct nic_open_args args = { .device = device };
	struct timespec now;
	struct nic_attr attr;

	clock_gettime(CLOCK_MONOTONIC, &now);
	m.since = now.tv_sec;
	m.me = me;
	if (ranks == 2) /* however busy the machine is: two do what they do where there is a core for each */
		nic_param_set("wait", "spin", "test");
	if (nic_open(&args, &m.nic) != NIC_OK)
		give_up(nic_last_error());
	nic_query(m.nic, &attr);
	board->life[me] = attr.life;
	nic_store_release(&board->slot[me], attr.slot + 1); /* pairs with all_here */
	if (all_here())
		together(point);
	without(1000000 + point);
	nic_close(m.nic);
	_exit(0);
}

static unsigned with_steps, direct;
static bool can;

static void one_point(uint32_t point)
{
	pid_t pid[RANKS];
	uint32_t victim, us;
	int status;

	ranks = point % 3 == 2 ? 2 : RANKS;
	victim = (uint32_t)rand() % ranks;
	us = (uint32_t)(rand() % 4 ? rand() % 60000 : rand() % 6000);
	memset(board, 0, sizeof(*board));
	for (uint32_t i = 0; i < ranks; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			member(i, point);
	}
	/* In every fourth point not before they have done something, which takes its time on a slow machine. */
	for (int ms = 0; point % 4 == 3 && !nic_load_relaxed(&board->steps) && ms < SECONDS * 1000; ms++)
		usleep(1000);
	usleep(us);
	nic_store_release(&board->killed, true); /* pairs with with_reason */
	kill(pid[victim], SIGKILL);
	CHECK_EQ(waitpid(pid[victim], NULL, 0), pid[victim]);
	nic_store_release(&board->dead, victim + 1); /* pairs with without */
	for (uint32_t i = 0; i < ranks; i++)
		if (i != victim) {
			CHECK_EQ(waitpid(pid[i], &status, 0), pid[i]);
			CHECK_EQ(status, 0);
		}
	with_steps += nic_load_relaxed(&board->steps) != 0; /* they have ended */
	direct += nic_load_relaxed(&board->direct);
	can |= nic_load_relaxed(&board->can);
}

static uint32_t lost_buffers(const struct nic *nic)
{
	const struct nic_pool *pool = &nic->map->pool;

	return nic_load_relaxed(&pool->bump) - nic_load_relaxed(&pool->nfree); /* nobody else is there */
}

/* Of the buffers in the pool, how many stand there more than once? */
static uint32_t doubled_buffers(const struct nic *nic)
{
	const struct nic_pool *pool = &nic->map->pool;
	static uint8_t seen[NIC_POOL_BUFFERS];
	uint32_t n = nic_load_relaxed(&pool->nfree), doubled = 0; /* nobody else is there */

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < n && i < NIC_POOL_BUFFERS; i++)
		doubled += seen[pool->free[i] & (NIC_POOL_BUFFERS - 1)]++ != 0;
	return doubled;
}

/* This process keeps the card, so that what a point left behind would stay. */
static void survivors_go_on(void)
{
	struct nic_open_args args = { .device = device };
	struct nic *keeper, *after;
	struct nic_attr attr;

	CHECK_EQ(nic_open(&args, &keeper), NIC_OK);
	for (uint32_t i = 0; i < points; i++) {
		one_point(i);
		if (i % 200 == 199)
			fprintf(stderr, "# %u of %u\n", i + 1, points);
	}
	printf("# %u of %u were killed when the group had done something\n", with_steps, points);
	CHECK(with_steps > 0);
	for (int i = 0; i < 2 * RANKS; i++) { /* takes the slots of the dead, and with them what they held */
		CHECK_EQ(nic_open(&args, &after), NIC_OK);
		nic_query(after, &attr);
		CHECK(attr.slot <= 2 * RANKS);
		nic_close(after);
	}
	printf("# %u buffers are nowhere\n", lost_buffers(keeper));
	CHECK(lost_buffers(keeper) <= 16 * points); /* what a process has in hand when it is killed is lost until the card goes */
	CHECK_EQ(doubled_buffers(keeper), 0);
	nic_close(keeper);
}

/* That they do at all is what unit/nicemu/board_direct shows; here only that deaths have met it. */
static void copied_directly(void)
{
	printf("# of two, survivors copied %u broadcasts from the root's memory\n", direct);
	if (!can)
		SKIP("nobody may copy from another process here, or this mode never does");
	if (!direct && points < MANY)
		SKIP("no broadcast found its receiver in time: other programs keep the cores busy");
	CHECK(direct > 0);
}

static int same_device(void *arg, const struct nic_card_info *info)
{
	*(int *)arg += strcmp(info->device, device) == 0;
	return 0;
}

static void nothing_left(void)
{
	int cards = 0;

	nic_cards(same_device, &cards);
	CHECK_EQ(cards, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		points = (unsigned)atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)atoi(argv[2]);
	srand(seed);
	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return EXIT_FAILURE;
	snprintf(device, sizeof(device), "groups-%d", (int)getpid());
	CASE(survivors_go_on);
	CASE(copied_directly);
	CASE(nothing_left);
	return check_done();
}
