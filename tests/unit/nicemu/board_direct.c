/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcasts in a group of two that the receiver copies from the root's memory (strat/meet_board_recv.c): what is said and
 * waited for, and roots that leave, close, die, or lie meanwhile.  Slot 0 is the root.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/nicemu/members.h"

enum { LONG = 50000 };

/* What is over in its call takes no operation, but there must be one that has had memory before. */
static void operations_are_used(void)
{
	uint32_t sent[8], received[8];

	join(19, 2);
	for (int k = 0; k < 8; k++)
		received[k] = bcast(1, 0, ROOM);
	for (int k = 0; k < 8; k++)
		sent[k] = bcast(0, 0, ROOM);
	for (int k = 0; k < 8; k++) {
		CHECK_EQ(over(0, sent[k], NULL), NIC_OK);
		CHECK_EQ(over(1, received[k], NULL), NIC_OK);
	}
	leave(2);
}

static bool can_pull(void)
{
	return n[1]->link[slot[0]]->cma;
}

/* From now on slot 1 finds that way the faster one. */
static void prefer(bool direct)
{
	struct nic_group *g = &n[1]->groups->group[group[1]];

	n[1]->groups->direct = true;
	for (int i = 0; i < NIC_PACES; i++)
		g->pace[i] = (struct nic_pace){ .cost = { direct ? 2 : 1, direct ? 1 : 2 }, .way = direct, .period = NIC_PACE_MOST };
}

static bool is_in(int i, int value, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		if (data[i][k] != (uint8_t)value)
			return false;
	return data[i][len] == GUARD;
}

/* Slot 1 wants the next broadcast of slot 0 from its memory, and has no more than this moment looked away. */
static void want(void)
{
	uint32_t number = n[1]->groups->group[group[1]].member[0].current + 1;

	CHECK_EQ(nic_load_relaxed(&board_of(1)->wants), 0); /* who looks away takes it back: the root is not to wait */
	CHECK_EQ(n[1]->groups->group[group[1]].wanted, number);
	nic_store_release(&board_of(1)->wants, number * NIC_BOARD_WANTS + NIC_BOARD_WANTS_DIRECT);
}

/* Slot 1 waits for a broadcast of slot 0, who finds that it is wanted from its memory. */
static void hand_over(uint32_t len, uint32_t room, uint32_t *sent, uint32_t *received)
{
	uint32_t at = n[0]->groups->group[group[0]].put;

	prefer(true);
	memset(data[1], GUARD, sizeof(data[1]));
	*received = bcast(1, 0, room);
	CHECK(*received != NIC_OP_OVER);
	want();
	*sent = bcast(0, 0, len);
	CHECK(*sent != NIC_OP_OVER);
	CHECK_EQ(board_of(0)->part[at % NIC_BOARD_PLACES].buffer, NIC_BOARD_DIRECT);
	CHECK_EQ(data[1][0], GUARD);
}

#define JOIN_TWO(name)                                            \
	do {                                                      \
		join(name, 2);                                    \
		if (!can_pull()) {                                \
			leave(2);                                 \
			SKIP("no cross-memory attach here");      \
		}                                                 \
	} while (0)

static void straight_from_memory(void)
{
	static const uint32_t lengths[] = { 12 << 10, 16 << 10, LONG, 64 << 10, 100000, ROOM - 1 };
	uint32_t sent, received;

	JOIN_TWO(20);
	for (uint32_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		uint64_t before = count(1, NIC_C_broadcasts_direct);

		memset(data[0], (int)k, sizeof(data[0]));
		hand_over(lengths[k], lengths[k], &sent, &received);
		nic_poll(n[0]);
		CHECK_EQ(nic_op_test(n[0], sent, NULL), NIC_NOT_DONE); /* the memory is not the process's yet */
		nic_poll(n[1]);
		CHECK(nic_poll(n[0]) > 0); /* that it is over is something: nobody goes to sleep over it */
		CHECK_EQ(nic_op_test(n[0], sent, NULL), NIC_OK);
		CHECK_EQ(over(1, received, NULL), NIC_OK);
		CHECK(is_in(1, (int)k, lengths[k]));
		CHECK_EQ(count(1, NIC_C_broadcasts_direct), before + 1);
	}
	for (int k = 0; k < 3; k++) { /* what comes next comes as ever */
		memset(data[0], 77 + k, sizeof(data[0]));
		memset(data[1], GUARD, sizeof(data[1]));
		CHECK_EQ(bcast(0, 0, 20000), NIC_OP_OVER);
		CHECK_EQ(bcast(1, 0, 20000), NIC_OP_OVER);
		CHECK(is_in(1, 77 + k, 20000));
	}
	leave(2);
}

/* Who is there first, who prefers buffers, short ones, and groups of three: by way of the board. */
static void by_way_of_the_board(void)
{
	uint64_t before;
	uint32_t op[MANY];

	JOIN_TWO(21);
	before = count(1, NIC_C_broadcasts_direct);
	prefer(true);
	CHECK_EQ(bcast(0, 0, LONG), NIC_OP_OVER); /* nobody waits for it yet */
	CHECK_EQ(bcast(1, 0, LONG), NIC_OP_OVER);
	op[1] = bcast(1, 0, 8 << 10);
	CHECK_EQ(nic_load_relaxed(&board_of(1)->wants), NIC_BOARD_WANTS + NIC_BOARD_WANTS_DIRECT); /* of the first: short ones are not asked for */
	CHECK_EQ(bcast(0, 0, 8 << 10), NIC_OP_OVER);
	CHECK_EQ(over(1, op[1], NULL), NIC_OK);
	prefer(false);
	op[1] = bcast(1, 0, LONG);
	CHECK_EQ(bcast(0, 0, LONG), NIC_OP_OVER);
	CHECK_EQ(over(1, op[1], NULL), NIC_OK);
	n[1]->groups->direct = false;
	prefer(true);
	op[1] = bcast(1, 0, LONG);
	CHECK_EQ(bcast(0, 0, LONG), NIC_OP_OVER);
	CHECK_EQ(over(1, op[1], NULL), NIC_OK);
	n[1]->groups->direct = true;
	leave(2);
	join(22, MANY);
	for (int i = 1; i < MANY; i++)
		op[i] = bcast(i, 0, LONG);
	CHECK_EQ(bcast(0, 0, LONG), NIC_OP_OVER);
	for (int i = 1; i < MANY; i++)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	CHECK_EQ(count(1, NIC_C_broadcasts_direct), before);
	leave(MANY);
}

/* One whose root comes before its receiver, who wants it that way. */
static void ahead(bool direct)
{
	prefer(direct);
	CHECK_EQ(bcast(0, 0, LONG), NIC_OP_OVER);
	CHECK_EQ(bcast(1, 0, LONG), NIC_OP_OVER);
}

/* Nanoseconds of it, at least, of some times. */
static int64_t least_ahead(bool direct)
{
	struct nic_group *g = &n[0]->groups->group[group[0]];
	int64_t least = INT64_MAX;

	for (int k = 0; k < 20; k++) {
		struct timespec start, end;
		int64_t took;

		g->vain = 0; /* each time for the first time */
		clock_gettime(CLOCK_MONOTONIC, &start);
		ahead(direct);
		clock_gettime(CLOCK_MONOTONIC, &end);
		took = (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
		least = took < least ? took : least;
	}
	return least;
}

/* A root that is ahead learns it for the next one, and waits for the receiver then; not each time, if that comes late again and again. */
static void roots_ahead(void)
{
	struct nic_group *g;
	uint32_t sent, received;
	int64_t without;

	JOIN_TWO(35);
	g = &n[0]->groups->group[group[0]];
	without = least_ahead(false);
	CHECK_EQ(nic_load_relaxed(&board_of(1)->wants), 20 * NIC_BOARD_WANTS);
	ahead(true);
	CHECK_EQ(nic_load_relaxed(&board_of(1)->wants), 21 * NIC_BOARD_WANTS + NIC_BOARD_WANTS_DIRECT);
	CHECK_EQ(n[1]->groups->group[group[1]].wanted, 0); /* this one is there */
	CHECK_EQ(g->vain, 0); /* the root did not know yet */
	CHECK(least_ahead(true) >= without + 500); /* a word there and back takes 600 where cores are far apart */
	g->vain = 0;
	for (int k = 0; k < 8; k++) {
		ahead(true);
		CHECK_EQ(g->unasked, (k < 6 ? 1 << k : 64) - 1); /* so many that it does not wait for */
		for (int i = 0; g->unasked && i < 100; i++)
			ahead(true);
	}
	ahead(true);
	CHECK_EQ(g->unasked, 63);
	hand_over(LONG, LONG, &sent, &received); /* who waits already is not waited for */
	CHECK_EQ(over(1, received, NULL), NIC_OK);
	CHECK_EQ(over(0, sent, NULL), NIC_OK);
	leave(2);
}

/* Broadcasts that were started behind one that is copied from memory wait for it. */
static void in_order_behind_it(void)
{
	uint32_t sent[3], received[3];

	JOIN_TWO(23);
	memset(data[0], 3, sizeof(data[0]));
	hand_over(LONG, LONG, &sent[0], &received[0]);
	for (int k = 1; k < 3; k++) {
		sent[k] = bcast(0, 0, k == 1 ? LONG : 100);
		CHECK(sent[k] != NIC_OP_OVER);
		received[k] = bcast(1, 0, k == 1 ? LONG : 100);
	}
	for (int k = 0; k < 3; k++) {
		CHECK_EQ(over(1, received[k], NULL), NIC_OK);
		CHECK_EQ(over(0, sent[k], NULL), NIC_OK);
	}
	CHECK(is_in(1, 3, LONG));
	leave(2);
}

/* It wanted another length: it is told, nothing is written, and the root and the next broadcast are none the worse. */
static void another_length_of_it(void)
{
	uint32_t sent, received;

	JOIN_TWO(24);
	for (int k = 0; k < 2; k++) {
		hand_over(k ? LONG : LONG / 2, k ? LONG / 2 : LONG, &sent, &received);
		CHECK_EQ(over(1, received, NULL), NIC_STATE);
		CHECK_EQ(over(0, sent, NULL), NIC_OK);
		CHECK_EQ(data[1][0], GUARD);
		CHECK_EQ(data[1][k ? LONG / 2 : LONG], GUARD);
		CHECK_EQ(bcast(0, 0, 5), NIC_OP_OVER);
		CHECK_EQ(bcast(1, 0, 5), NIC_OP_OVER);
	}
	leave(2);
}

/* The receiver leaves instead: nobody waits for what it has not read. */
static void left_instead(void)
{
	uint32_t sent, received;

	JOIN_TWO(25);
	hand_over(LONG, LONG, &sent, &received);
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
	CHECK_EQ(over(0, sent, NULL), NIC_OK);
	CHECK_EQ(data[1][0], GUARD);
	CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
	poll_all();
}

/* The root leaves: its memory is its own again, and the receive fails. */
static void root_has_left(void)
{
	uint32_t sent, received;

	JOIN_TWO(26);
	hand_over(LONG, LONG, &sent, &received);
	CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
	CHECK_EQ(nic_op_test(n[0], sent, NULL), NIC_STATE);
	CHECK_EQ(over(1, received, NULL), NIC_STATE);
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
	poll_all();
}

/* The root closes its NIC, and does with its memory what it likes. */
static void root_has_closed(void)
{
	uint32_t sent, received, value = 0;

	JOIN_TWO(29);
	memset(data[0], 3, sizeof(data[0]));
	hand_over(LONG, LONG, &sent, &received);
	nic_close(n[0]);
	n[0] = NULL;
	memset(data[0], 4, sizeof(data[0]));
	CHECK_EQ(over(1, received, &value), NIC_STATE);
	CHECK_EQ(value, NIC_WHY_LEFT);
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
	for (uint32_t k = 0; k < 3 * NIC_WATCH_POLLS; k++) /* until the others have let the slot go */
		nic_poll(n[1]), nic_poll(n[2]);
	open_one(0);
}

/* What a root and the process that forked it tell each other. */
static struct { _Atomic uint32_t slot, peer, wanted, sent; } *meeting;

static void mortal_root(void)
{
	uint32_t op, at = 0, both[2];

	open_one(0);
	nic_store_release(&meeting->slot, slot[0] + 1); /* each of these pairs with the acquire in the other's loop */
	while (!(both[1] = nic_load_acquire(&meeting->peer)))
		;
	both[0] = slot[0], both[1]--;
	nic_group_join(n[0], &(struct nic_group_args){ .name = 30, .size = 2, .place = 0, .slot = both }, &op);
	while (nic_op_test(n[0], op, &at) == NIC_NOT_DONE || !nic_load_acquire(&meeting->wanted))
		nic_poll(n[0]);
	nic_bcast(n[0], at, slot[0], data[0], LONG, &op);
	nic_store_release(&meeting->sent, 1 + (op == NIC_OP_OVER));
	for (;;)
		pause();
}

/* The root dies with its address up: the receive fails, and says who it was. */
static void root_has_died(void)
{
	uint32_t op = 0, value = 0, both[2];
	pid_t child;

	JOIN_TWO(31); /* is it possible? */
	leave(2);
	child = fork();
	if (child == 0) {
		alarm(60);
		mortal_root();
	}
	while (!(both[0] = nic_load_acquire(&meeting->slot)))
		sched_yield();
	both[0]--, both[1] = slot[1];
	nic_store_release(&meeting->peer, slot[1] + 1);
	CHECK_EQ(nic_group_join(n[1], &(struct nic_group_args){ .name = 30, .size = 2, .place = 1, .slot = both }, &op), NIC_OK);
	while (nic_op_test(n[1], op, &group[1]) == NIC_NOT_DONE)
		nic_poll(n[1]);
	prefer(true);
	CHECK_EQ(nic_bcast(n[1], group[1], both[0], data[1], LONG, &op), NIC_OK);
	want();
	nic_store_release(&meeting->wanted, 1);
	while (!nic_load_acquire(&meeting->sent))
		sched_yield();
	CHECK_EQ(nic_load_relaxed(&meeting->sent), 1); /* it waits */
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK_EQ(over(1, op, &value), NIC_STATE);
	CHECK_EQ(value, NIC_WHY_DIED + both[0]);
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
	poll_all();
}

/* The root, run by another thread: it finds the receiver waiting, and copies the second half of what is long enough. */
static _Atomic uint32_t asked_for, answered;

static void *root(void *arg)
{
	uint32_t op;

	(void)arg;
	for (uint32_t len; (len = atomic_load(&asked_for)) != UINT32_MAX;)
		if (len != atomic_load(&answered)) {
			nic_bcast(n[0], group[0], slot[0], data[0], len, &op);
			while (nic_op_test(n[0], op, NULL) == NIC_NOT_DONE)
				nic_poll(n[0]);
			atomic_store(&answered, len);
		}
	return NULL;
}

static void both_copy(void)
{
	time_t since = time(NULL);
	pthread_t thread;
	uint32_t len = 12 << 10, op;

	JOIN_TWO(33);
	for (uint32_t k = 0; k < ROOM; k++)
		data[0][k] = (uint8_t)(k % 251);
	atomic_store(&asked_for, 0);
	atomic_store(&answered, 0);
	pthread_create(&thread, NULL, root, NULL);
	for (int good = 0; good < 50 && time(NULL) < since + 60; len = len + 1013 < ROOM ? len + 1013 : 12 << 10) {
		uint64_t before = n[0]->counter[NIC_C_bytes_helped];

		prefer(true);
		memset(data[1], GUARD, sizeof(data[1]));
		atomic_store(&asked_for, len);
		CHECK_EQ(nic_bcast(n[1], group[1], slot[0], data[1], len, &op), NIC_OK);
		while (nic_op_test(n[1], op, NULL) == NIC_NOT_DONE)
			nic_poll(n[1]);
		while (atomic_load(&answered) != len)
			sched_yield();
		CHECK(memcmp(data[0], data[1], len) == 0);
		CHECK_EQ(data[1][len], GUARD);
		good += n[0]->counter[NIC_C_bytes_helped] > before; /* on a busy machine seldom */
	}
	atomic_store(&asked_for, UINT32_MAX);
	pthread_join(thread, NULL);
	CHECK(n[0]->counter[NIC_C_bytes_helped] >= 16 << 10); /* once at the least, wherever it runs */
	leave(2);
}

/* The last three are no lies: a half that is claimed and copied in the end, refused in the end, and never begun. */
enum lie { TRUTH, NONE, UNASKED, SHIFTED, LONGER, BEYOND, LIES, GIVEN = LIES, REFUSED, LEFT, ALL };
enum { OWN = 24 << 10, THEIRS = 6 };

static bool is_true(enum lie lie)
{
	return lie == TRUTH || lie >= BEYOND; /* one that begins beyond the end is no half */
}

/* What slot 0 puts on its board as its first part. */
static void put_up(enum lie lie)
{
	struct nic_board_direct direct = { lie == NONE ? 4096 : (uintptr_t)data[0], lie == BEYOND ? LONG + 1 : lie >= GIVEN ? OWN : LONG };
	struct nic_board_part *p = &board_of(0)->part[0];

	p->total = lie == LONGER ? 2 * LONG : LONG;
	p->end = p->total - (lie == SHIFTED ? 8192 : 0);
	p->buffer = NIC_BOARD_DIRECT;
	memcpy(p->data, &direct, sizeof(direct));
	nic_store_release(&p->seq, 1);
}

static _Atomic bool looking, enough, told;

/* As soon as slot 1 says that it wants something. */
static void *put_up_in_time(void *arg)
{
	struct nic_claim *claim = &n[0]->link[slot[1]]->asking->half;
	enum lie lie = *(enum lie *)arg;
	uint32_t id = 0;
	bool mine = false;

	atomic_store(&looking, true);
	while (!nic_load_acquire(&board_of(1)->wants) && !atomic_load(&enough))
		;
	id = nic_load_relaxed(&board_of(1)->claim);
	if (lie == GIVEN || lie == REFUSED)
		mine = nic_claim_take(claim, id, 0);
	put_up(lie);
	if (!mine)
		return NULL;
	usleep(20000);
	if (lie == GIVEN)
		memset(data[1] + OWN, THEIRS, LONG - OWN);
	atomic_store(&told, true);
	nic_claim_tell(claim, id, lie == GIVEN ? NIC_CLAIM_DONE : NIC_CLAIM_REFUSED);
	return &told;
}

/* True: slot 1 took it in its call. */
static bool tell(enum lie lie, bool in_time)
{
	uint64_t before = count(1, NIC_C_broadcasts_direct);
	uint32_t received;
	pthread_t thread;
	void *claimed = NULL;
	bool late, halves;
	int err;

	join(27, 2);
	prefer(lie != UNASKED);
	memset(data[1], GUARD, sizeof(data[1]));
	atomic_store(&looking, false);
	atomic_store(&enough, false);
	atomic_store(&told, false);
	if (in_time)
		pthread_create(&thread, NULL, put_up_in_time, &lie);
	while (in_time && !atomic_load(&looking))
		sched_yield();
	received = bcast(1, 0, LONG);
	late = !atomic_load(&told);
	atomic_store(&enough, true);
	if (in_time)
		pthread_join(thread, &claimed);
	else
		put_up(lie);
	CHECK(!claimed || !late); /* what is claimed is waited for */
	if (lie >= GIVEN || received != NIC_OP_OVER) /* and what is not cannot be claimed any more */
		CHECK(!nic_claim_take(&n[0]->link[slot[1]]->asking->half, nic_load_relaxed(&board_of(1)->claim), 0));
	CHECK(received != NIC_OP_OVER || (in_time && is_true(lie)));
	err = over(1, received, NULL);
	CHECK_EQ(err, is_true(lie) ? NIC_OK : NIC_STATE); /* unasked it is a part, and too long for one */
	/* A claim that was taken before the part was there, and slot 1 no longer looked for that: the half was waited for, and then all copied. */
	halves = received == NIC_OP_OVER && lie == GIVEN && claimed && data[1][OWN] == THEIRS;
	if (halves)
		CHECK(data[1][0] == 5 && data[1][OWN - 1] == 5 && data[1][OWN] == THEIRS && data[1][LONG - 1] == THEIRS);
	else
		CHECK_EQ(is_in(1, 5, LONG), is_true(lie));
	CHECK_EQ(data[1][LONG], GUARD);
	CHECK_EQ(count(1, NIC_C_broadcasts_direct), before + is_true(lie));
	CHECK_EQ(n[1]->groups->direct, lie != NONE); /* what cannot be read so is not wanted again */
	leave(2);
	return received == NIC_OP_OVER && (lie == GIVEN ? halves : claimed || lie != REFUSED);
}

/* An address that is none, one that nobody has asked for, a part that is not the first, another length, and no half. */
static void lies_about_memory(void)
{
	time_t since = time(NULL);

	JOIN_TWO(32); /* is it possible? */
	leave(2);
	memset(data[0], 5, sizeof(data[0]));
	for (enum lie lie = TRUTH; lie < LIES; lie++)
		tell(lie, false);
	while (!tell(TRUTH, true) && time(NULL) < since + 60) /* on a busy machine it is mostly late */
		;
	CHECK(time(NULL) < since + 60);
	for (int k = 0; k < 30; k++)
		for (enum lie lie = NONE; lie < LIES; lie++)
			tell(lie, true);
}

/* The root's half: what it has begun is waited for, what it refuses or has not begun is copied here. */
static void halves_of_a_root(void)
{
	time_t since = time(NULL);

	JOIN_TWO(34);
	leave(2);
	memset(data[0], 5, sizeof(data[0]));
	for (enum lie lie = GIVEN; lie < ALL; lie++)
		for (int k = 0; k < 5 && time(NULL) < since + 60;)
			k += tell(lie, true);
	CHECK(time(NULL) < since + 60);
}

/* Who waits until its data have been copied sleeps, and wakes for that. */
static void no_sleep_over_a_copy(void)
{
	struct nic_wait wait = { .rest = NIC_REST_SPIN };
	uint32_t sent, received;

	JOIN_TWO(28);
	hand_over(LONG, LONG, &sent, &received);
	CHECK(!nic_wait_doze(n[1], &wait, 1000)); /* there is something to copy */
	CHECK(nic_wait_doze(n[0], &wait, 1000));
	nic_wait_rest(&wait);
	nic_poll(n[1]);
	CHECK(!nic_wait_doze(n[0], &wait, 1000));
	CHECK_EQ(over(0, sent, NULL), NIC_OK);
	CHECK_EQ(over(1, received, NULL), NIC_OK);
	leave(2);
}

int main(void)
{
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED)
		return EXIT_FAILURE;
	open_all();
	CASE(operations_are_used);
	CASE(straight_from_memory);
	CASE(by_way_of_the_board);
	CASE(roots_ahead);
	CASE(in_order_behind_it);
	CASE(another_length_of_it);
	CASE(left_instead);
	CASE(root_has_left);
	CASE(root_has_closed);
	CASE(root_has_died);
	CASE(lies_about_memory);
	CASE(both_copy);
	CASE(halves_of_a_root);
	CASE(no_sleep_over_a_copy);
	close_all();
	return check_done();
}
