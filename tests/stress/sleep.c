/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No lost wake-up: two ends play ping-pong, and whoever waits goes to sleep, soon or at once, for much longer than the
 * test may take.  A message that finds its receiver between setting its doorbell and falling asleep has to keep it awake or wake it.
 * As two threads, where ThreadSanitizer looks on, and as two processes; in turns immediately and after short random delays,
 * so that the two sides meet in every instruction of the hand-over.  And so a process and the daemon that runs its NIC, in both directions.
 *
 *   sleep [round trips] [seed]
 */
#include <pthread.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

enum { RECEIVES = 64, SENDS = 64, LONG = 120 /* seconds */ };

static unsigned trips = 20000, seed = 1;
static char device[48];

struct side {
	struct end e;
	unsigned random;
	unsigned posted, taken, said, slow;
	uint32_t group;
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

/* Nothing was there a moment ago. */
static void look_or_sleep(struct side *s, struct nic_wait *wait)
{
	double from = kin_now();

	if (nic_poll(s->e.nic) || !nic_wait_doze(s->e.nic, wait, LONG * UINT64_C(1000000000)))
		return;
	delay(s);
	nic_wait_rest(wait);
	s->slow += kin_now() - from > LONG / 2;
}

static void await(struct side *s)
{
	struct nic_desc *d = &s->e.desc[s->taken % RECEIVES];
	struct nic_wait wait = { 0 };

	/* So that an answer comes quickly at times, about when the other end goes to sleep. */
	for (unsigned looks = draw(s, draw(s, 2) ? 32 : 512); looks && !nic_poll(s->e.nic); looks--)
		;
	while (!(status_of(d) & NIC_ST_DONE))
		look_or_sleep(s, &wait);
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

/* Does that process wait in the kernel?  One that has set its bell but was held up before its look does not, however long that takes. */
static bool waits(int32_t pid)
{
	char path[32], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/* Engine `daemon`: a command that finds the NIC's process between setting its bell and falling asleep is not left lying there. */
static void a_daemon(void)
{
	struct nic_group_args args = { .name = 1, .size = 1 };
	static struct side s;
	uint32_t slot, op, group, lost = 0, slept = 0;
	_Atomic uint32_t *asleep;
	int32_t pid;

	snprintf(device, sizeof(device), "sleep-daemon-%d", (int)getpid());
	nic_param_set("engine", "daemon", "test");
	REQUIRE(nic_open(&(struct nic_open_args){ .device = device }, &s.e.nic) == NIC_OK);
	s.random = seed + 4;
	slot = s.e.nic->me;
	args.slot = &slot;
	asleep = &s.e.nic->map->hdr.daemon.asleep;
	pid = nic_load_relaxed(&s.e.nic->map->hdr.daemon.pid);
	REQUIRE(nic_group_join(s.e.nic, &args, &op) == NIC_OK);
	while (nic_op_test(s.e.nic, op, &group) == NIC_NOT_DONE)
		nic_poll(s.e.nic);
	for (unsigned i = 0; i < trips; i++) {
		double from = kin_now();

		for (double until = from + draw(&s, 60) * 1e-6; kin_now() < until;) /* it stays awake for 20 us */
			;
		slept += nic_load_relaxed(asleep);
		CHECK_EQ(nic_barrier(s.e.nic, group, &op), NIC_OK);
		from = kin_now();
		while (nic_op_test(s.e.nic, op, NULL) == NIC_NOT_DONE) {
			nic_poll(s.e.nic);
			if (!nic_load_relaxed(asleep)) /* it is awake, or will be */
				from = kin_now();
			else if (kin_now() - from > 0.02) { /* of the 0.05 s that it sleeps */
				lost += waits(pid) && nic_op_test(s.e.nic, op, NULL) == NIC_NOT_DONE; /* still: it slept over it */
				from = kin_now();
			}
		}
	}
	CHECK_EQ(lost, 0);
	CHECK(slept > 0); /* or it proves little */
	nic_close(s.e.nic);
	nic_param_set("engine", "inline", "test");
}

static _Atomic bool given_up; /* one of two: the other waits no longer */

static bool join(struct side *s)
{
	uint32_t slot[2] = { s[0].e.nic->me, s[1].e.nic->me }, op[2];
	int err = NIC_OK;

	for (uint32_t i = 0; i < 2; i++)
		if (nic_group_join(s[i].e.nic, &(struct nic_group_args){ .name = 2, .size = 2, .place = i, .slot = slot }, &op[i]) != NIC_OK)
			return false;
	for (uint32_t i = 0; i < 2 && err == NIC_OK; i++)
		while ((err = nic_op_test(s[i].e.nic, op[i], &s[i].group)) == NIC_NOT_DONE)
			nic_poll(s[i].e.nic);
	return err == NIC_OK;
}

/* As in `await`, for the end of an operation. */
static bool await_end(struct side *s, uint32_t op)
{
	struct nic_wait wait = { 0 };
	int err;

	for (unsigned looks = draw(s, draw(s, 2) ? 8 : 128); looks; looks--)
		nic_poll(s->e.nic);
	while ((err = nic_op_test(s->e.nic, op, NULL)) == NIC_NOT_DONE && !atomic_load(&given_up))
		look_or_sleep(s, &wait);
	s->taken += err == NIC_OK;
	return err == NIC_OK;
}

static void *meet(void *arg)
{
	struct side *s = arg;
	uint32_t op;

	for (unsigned i = 0; i < trips; i++) {
		delay(s);
		if (i % 64 == 0)
			usleep(200); /* as in `say` */
		if (nic_barrier(s->e.nic, s->group, &op) != NIC_OK || !await_end(s, op) || s->slow)
			break;
	}
	if (s->taken < trips)
		atomic_store(&given_up, true);
	return NULL;
}

/* And what the NIC's process publishes, two threads in a barrier here, is not slept over by those that wait for it. */
static void for_a_daemon(void)
{
	static struct side s[2];
	pthread_t thread;

	snprintf(device, sizeof(device), "sleep-members-%d", (int)getpid());
	nic_param_set("engine", "daemon", "test");
	for (unsigned i = 0; i < 2; i++) {
		REQUIRE(nic_open(&(struct nic_open_args){ .device = device }, &s[i].e.nic) == NIC_OK);
		s[i].random = seed + 5 + i;
	}
	REQUIRE(CHECK(join(s)));
	pthread_create(&thread, NULL, meet, &s[1]);
	meet(&s[0]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(s[i].slow, 0);
		CHECK_EQ(s[i].taken, trips);
		CHECK(counter(s[i].e.nic, "sleeps") > 0); /* or it proves little */
	}
	for (int i = 0; i < 2; i++)
		nic_close(s[i].e.nic);
	nic_param_set("engine", "inline", "test");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		trips = (unsigned)atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)atoi(argv[2]);
	CASE(processes); /* forks: before there are threads */
	CASE(threads);
	CASE(a_daemon);
	CASE(for_a_daemon);
	return check_done();
}
