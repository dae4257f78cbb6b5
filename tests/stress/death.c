/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies at any instruction: kill -9 of one end under load, over and over, at random moments, start-up and
 * shut-down included.  The other end is told, goes on with the next one, and nothing is left behind: no slot, no file, no
 * region of memory that grows.
 *
 *   death [rounds] [seed]
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/nicemu/pair.h"

enum { PATIENCE = 120 /* seconds */ };

static char device[48];
static unsigned rounds = 60, seed = 1;

static void relink(struct end *e, int base, int n, int (*again)(struct end *, struct nic_desc *))
{
	for (int i = 0; i < n; i++) {
		struct nic_desc *d = &e->desc[base + i];

		if (status_of(d) & NIC_ST_DONE)
			again(e, d);
	}
}

static int repost_recv(struct end *e, struct nic_desc *d)
{
	int i = d - e->desc;

	if (status_of(d) & NIC_ST_ERROR_MASK)
		return 0;
	if (status_of(d) & NIC_ST_POOL)
		nic_buf_give(e->nic, (void *)(uintptr_t)d->seg[1].addr);
	recv_desc(e, fill(e, i, NIC_CTL_POOL, e->mem + i * 64, 64));
	return 1;
}

static int repost_send(struct end *e, struct nic_desc *d)
{
	int i = d - e->desc;

	if (status_of(d) & NIC_ST_ERROR_MASK)
		return 0;
	send_desc(e, fill(e, i, 0, e->mem + 100000, rand() % 3 ? rand() % 60 : rand() % NIC_BUFFER_SIZE));
	return 1;
}

/* Keeps messages of all sizes going both ways; receives 0..63, sends 64..71: never more than the peer has posted. */
static void start(struct end *e)
{
	for (int i = 0; i < 64; i++)
		recv_desc(e, fill(e, i, NIC_CTL_POOL, e->mem + i * 64, 64));
}

static void traffic(struct end *e)
{
	relink(e, 0, 64, repost_recv);
	relink(e, 64, 8, repost_send);
	nic_poll(e->nic);
}

static int connected(struct end *e)
{
	enum nic_vi_state state;

	nic_vi_query(e->nic, e->vi, &state, NULL);
	return state == NIC_VI_CONNECTED;
}

static void victim(int turn)
{
	struct end e;
	struct nic_addr a, b;
	struct nic_vi_attr attr;

	srand(turn);
	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_RECEPTION);
	start(&e);
	a = addr_of(e.nic, "victim");
	b = addr_of(e.nic, "survivor");
	nic_peer_request(e.nic, e.vi, &a, &b);
	while (nic_peer_poll(e.nic, e.vi, &attr) == NIC_NOT_DONE)
		;
	for (int i = 64; i < 72; i++)
		repost_send(&e, &e.desc[i]);
	for (;;)
		traffic(&e);
}

static double since(const struct timespec *from) /* microseconds */
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from->tv_sec) * 1e6 + (now.tv_nsec - from->tv_nsec) / 1e3;
}

/*
 * One life of a victim.  The moment of its end is counted from its start, in every fourth life from the connection: on a slow machine
 * there is none before.
 */
static void life(struct end *e, int turn)
{
	unsigned us = rand() % 4 ? rand() % 30000 : rand() % 3000;
	struct nic_addr a = addr_of(e->nic, "survivor"), b = addr_of(e->nic, "victim");
	struct nic_vi_attr attr;
	int err = NIC_NOT_DONE, killed = 0, lost = e->events[NIC_EV_CONN_LOST], connects = turn % 4 == 3;
	struct timespec from;
	pid_t child = fork();

	if (child == 0)
		victim(turn);
	clock_gettime(CLOCK_MONOTONIC, &from);
	start(e);
	CHECK_EQ(nic_peer_request(e->nic, e->vi, &a, &b), NIC_OK);
	for (;;) {
		double age = since(&from);

		if (!killed && age > us && !(connects && err == NIC_NOT_DONE)) {
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
			killed = 1;
			clock_gettime(CLOCK_MONOTONIC, &from);
		}
		if (err == NIC_NOT_DONE) {
			err = nic_peer_poll(e->nic, e->vi, &attr);
			if (err == NIC_OK)
				for (int i = 64; i < 72; i++)
					repost_send(e, &e->desc[i]);
			if (connects && err == NIC_OK)
				clock_gettime(CLOCK_MONOTONIC, &from);
		} else if (err == NIC_OK && connected(e)) {
			traffic(e);
		}
		if (killed && (err != NIC_OK || !connected(e)))
			break;
		if (since(&from) > PATIENCE * 1e6) {
			CHECK(!"the survivor was not told, or the victim did not connect");
			if (!killed) {
				kill(child, SIGKILL);
				waitpid(child, NULL, 0);
			}
			break;
		}
	}
	if (err == NIC_NOT_DONE)
		err = nic_peer_cancel(e->nic, e->vi);
	if (e->events[NIC_EV_CONN_LOST] > lost + 1)
		CHECK(!"told more than once");
	CHECK_EQ(nic_disconnect(e->nic, e->vi), NIC_OK);
	for (int i = 0; i < 72; i++)
		if (e->desc[i].control & NIC_CTL_POOL && status_of(&e->desc[i]) & NIC_ST_POOL)
			nic_buf_give(e->nic, (void *)(uintptr_t)e->desc[i].seg[1].addr);
	memset(e->desc, 0, 72 * sizeof(e->desc[0]));
	e->last_recv = e->last_send = NULL;
}

static int count_slot(void *arg, const struct nic_slot_info *info)
{
	(void)info;
	++*(int *)arg;
	return 0;
}

static int count_slots(void *arg, const struct nic_card_info *info)
{
	if (strcmp(info->device, device) == 0)
		nic_card_slots(info, count_slot, arg);
	return 0;
}

static void survivor_goes_on(void)
{
	struct end e;
	struct nic_attr attr;
	int live = 0;

	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_RECEPTION);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned next = rand();

		life(&e, i);
		srand(next); /* the lives of both sides draw too */
		if (i % 1000 == 999)
			fprintf(stderr, "# %u of %u\n", i + 1, rounds);
	}
	CHECK(e.events[NIC_EV_CONN_LOST] > 0);
	nic_cards(count_slots, &live);
	CHECK_EQ(live, 1);
	/* Slots of the dead are used again. */
	for (int i = 0; i < 20000; i++)
		nic_poll(e.nic);
	{
		struct end f;

		end_open(&f, device);
		nic_query(f.nic, &attr);
		CHECK(attr.slot <= 2);
		end_close(&f);
	}
	end_close(&e);
}

static int no_card(void *arg, const struct nic_card_info *info)
{
	*(int *)arg += strcmp(info->device, device) == 0;
	return 0;
}

static void nothing_left(void)
{
	int cards = 0;

	/* A NIC's process (engine daemon) ends by itself, a moment later. */
	for (int i = 0; i < 60000; i++) {
		cards = 0;
		nic_cards(no_card, &cards);
		if (!cards)
			break;
		usleep(1000);
	}
	CHECK_EQ(cards, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	if (argc > 2)
		seed = atoi(argv[2]);
	srand(seed);
	snprintf(device, sizeof(device), "death-%d", (int)getpid());
	CASE(survivor_goes_on);
	CASE(nothing_left);
	return check_done();
}
