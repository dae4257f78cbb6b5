/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No lost wake-up: two ends play ping-pong, and whoever waits goes to sleep, soon or at once, for much longer than the
 * test may take.  A message that finds its receiver between setting its doorbell and falling asleep has to keep it awake or wake it.
 * As two threads, where ThreadSanitizer looks on, and as two processes; in turns immediately and after short random delays,
 * so that the two sides meet in every instruction of the hand-over.
 *
 *   sleep [round trips] [seed]
 */
#include <pthread.h>

#include "tests/unit/nicemu/kin.h"

enum { RECEIVES = 64, SENDS = 64, LONG = 120 /* seconds */ };

static unsigned trips = 20000, seed = 1;
static char device[48];

struct side {
	struct end e;
	unsigned random;
	unsigned posted, taken, said, slow;
};

static void post(struct side *s)
{
	recv_desc(&s->e, fill(&s->e, (int)(s->posted++ % RECEIVES), 0, s->e.mem, 64));
}

static void side_open(struct side *s)
{
	end_open(&s->e, device);
	end_vi(&s->e, NIC_RELIABLE_DELIVERY);
	while (s->posted < RECEIVES)
		post(s);
}

static unsigned draw(struct side *s, unsigned below)
{
	s->random = s->random * 1103515245 + 12345;
	return (s->random >> 16) % below;
}

static void delay(struct side *s)
{
	for (unsigned n = draw(s, draw(s, 4) ? 64 : 2048); n; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

static void await(struct side *s)
{
	struct nic_desc *d = &s->e.desc[s->taken % RECEIVES];
	struct nic_wait wait = { 0 };

	/* So that an answer comes quickly at times, about when the other end goes to sleep. */
	for (unsigned looks = draw(s, draw(s, 2) ? 32 : 512); looks && !nic_poll(s->e.nic); looks--)
		;
	while (!(status_of(d) & NIC_ST_DONE)) {
		double from = kin_now();

		if (nic_poll(s->e.nic) || !nic_wait_doze(s->e.nic, &wait, LONG * UINT64_C(1000000000)))
			continue;
		delay(s);
		nic_wait_rest(&wait);
		s->slow += kin_now() - from > LONG / 2;
	}
	s->taken++;
	post(s);
}

static void say(struct side *s)
{
	struct nic_short message = { .head = s->taken };

	if (s->taken % 64 == 0)
		usleep(200); /* long enough for the other end to be asleep, also on a busy machine now and then */
	delay(s);
	if (asks_first()) { /* the descriptor is done long before its turn comes again: the other side has answered */
		send_desc(&s->e, fill(&s->e, RECEIVES + (int)(s->said++ % SENDS), 0, s->e.mem, 8));
		return;
	}
	while (nic_send_short(s->e.nic, s->e.vi, &message) != NIC_OK)
		nic_poll(s->e.nic);
}

static void play(struct side *s, bool first)
{
	for (unsigned i = 0; i < trips && !s->slow; i++) {
		if (first)
			say(s);
		await(s);
		if (!first)
			say(s);
	}
}

static void *answer(void *arg)
{
	play(arg, false);
	return NULL;
}

static void threads(void)
{
	static struct side a, b;
	struct nic_addr at_a, at_b;
	struct nic_vi_attr attr;
	pthread_t thread;

	snprintf(device, sizeof(device), "sleep-threads-%d", (int)getpid());
	side_open(&a);
	side_open(&b);
	a.random = seed;
	b.random = seed + 1;
	at_a = addr_of(a.e.nic, "a");
	at_b = addr_of(b.e.nic, "b");
	CHECK_EQ(nic_peer_request(a.e.nic, a.e.vi, &at_a, &at_b), NIC_OK);
	CHECK_EQ(nic_peer_request(b.e.nic, b.e.vi, &at_b, &at_a), NIC_OK);
	CHECK_EQ(nic_peer_poll(a.e.nic, a.e.vi, &attr), NIC_OK);
	CHECK_EQ(nic_peer_poll(b.e.nic, b.e.vi, &attr), NIC_OK);
	pthread_create(&thread, NULL, answer, &b);
	play(&a, true);
	pthread_join(thread, NULL);
	CHECK_EQ(a.slow, 0);
	CHECK_EQ(b.slow, 0);
	CHECK_EQ(a.taken, trips);
	CHECK(counter(a.e.nic, "sleeps") > 0); /* or it proves little */
	CHECK(counter(a.e.nic, "bells") > 0);
	end_close(&a.e);
	end_close(&b.e);
}

static int child(void)
{
	static struct side s;

	side_open(&s);
	s.random = seed + 2;
	if (kin_connect(&s.e, "child", "parent") != NIC_OK)
		return 1;
	play(&s, false);
	kin_await(s.e.nic, 0, 1);
	return s.slow ? 2 : 0;
}

static void processes(void)
{
	static struct side s;
	pid_t pid;

	kin_start();
	snprintf(device, sizeof(device), "sleep-processes-%d", (int)getpid());
	pid = kin_fork(child);
	side_open(&s);
	s.random = seed + 3;
	CHECK_EQ(kin_connect(&s.e, "parent", "child"), NIC_OK);
	play(&s, true);
	CHECK_EQ(s.slow, 0);
	CHECK_EQ(s.taken, trips);
	CHECK(counter(s.e.nic, "sleeps") > 0);
	atomic_store(&kin_step[0], 1);
	CHECK_EQ(kin_wait(pid), 0);
	end_close(&s.e);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		trips = (unsigned)atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)atoi(argv[2]);
	CASE(processes); /* forks: before there are threads */
	CASE(threads);
	return check_done();
}
