/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matched messages: each protocol, posted and unexpected, cut off, downgraded, synchronous, empty.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B, MOST = 300000 };

static uint8_t from[MOST], into[MOST + 1];
static int sent, received;
static struct via_recv receive;
static struct via_incoming *waiting;
static bool expecting;

static void done(void *arg, int err)
{
	*(int *)arg = err == CMPI_OK ? 1 : -1;
}

static struct via_recv *arrived(void *arg, struct cmpi_proc *proc, const struct via_envelope *envelope, struct via_incoming *message)
{
	(void)arg, (void)proc, (void)envelope;
	if (expecting)
		return &receive;
	waiting = message;
	return NULL;
}

enum { LONG = 50000 };

static struct via_send long_send(int *there, uint32_t len)
{
	return (struct via_send){.buf = from, .done = done, .arg = there, .envelope = {.key = mpip_key(5, 17, -3), .data_length = len}};
}

static struct via_recv any_receive(int *here)
{
	return (struct via_recv){.buf = into, .size = MOST, .done = done, .arg = here};
}

static const struct via_engine engine = {.arrived = arrived};

static bool open_pair(const char *protocol)
{
	job_reset(50);
	VipxParameterSet("rendezvous", protocol, "test");
	if (!job_open(2) || !job_connect(A, B))
		return false;
	via_match_engine(job[B].c, &engine);
	return true;
}

/* One message of `len` bytes into `size`. */
static void message(uint32_t len, uint32_t size, bool posted, enum via_mode mode)
{
	struct via_send send = {.buf = from, .done = done, .arg = &sent,
	                        .envelope = {.key = mpip_key(5, 17, -3), .data_length = len, .mode = (uint16_t)mode}};

	for (uint32_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + (i >> 8) + len);
	memset(into, 0xcc, size + 1);
	sent = received = 0;
	expecting = posted;
	waiting = NULL;
	receive = (struct via_recv){.buf = into, .size = size, .done = done, .arg = &received};
	CHECK_EQ(via_match_send(job[A].to[B], &send), CMPI_OK);
	job_turn(30);
	if (!posted) {
		CHECK_EQ(received, 0);
		CHECK(mode != VIA_MODE_SYNC || !sent);
		if (!CHECK(waiting != NULL))
			return;
		via_match_accept(waiting, &receive);
		job_turn(30);
	}
	CHECK_EQ(sent, 1);
	CHECK_EQ(received, 1);
	CHECK(!memcmp(into, from, len < size ? len : size));
	CHECK_EQ(into[size], 0xcc);
	CHECK_EQ(receive.envelope.data_length, len);
	CHECK_EQ(receive.envelope.key, mpip_key(5, 17, -3));
	CHECK(receive.from == job[B].to[A]);
}

static void every_protocol(const char *protocol, const char *counter)
{
	static const uint32_t len[] = {0, 1, 8, 9, 100, 2047, 2048, 8280, 16000, VIA_EAGER_ONE, VIA_EAGER_ONE + 1, 32768, 32769, 40000, 100001, MOST};
	uint32_t i;

	REQUIRE(open_pair(protocol));
	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++)
		for (int mode = VIA_MODE_STANDARD; mode <= VIA_MODE_SYNC; mode++) {
			message(len[i], MOST, true, (enum via_mode)mode);
			message(len[i], MOST, false, (enum via_mode)mode);
			message(len[i], len[i] / 3, true, (enum via_mode)mode);
			message(len[i], 0, false, (enum via_mode)mode);
		}
	CHECK(job_count(A, counter) >= 16);
	CHECK(job_count(A, "cmpi_eager") > 20);
	CHECK_EQ(job[A].to[B]->messages + job[B].to[A]->messages, 0);
	job_close();
}

static void rget(void)
{
	every_protocol("rget", "cmpi_rndv_rget");
}

static void rput(void)
{
	every_protocol("rput", "cmpi_rndv_rput");
}

static void r3(void)
{
	every_protocol("r3", "cmpi_rndv_r3");
}

struct parts {
	uint32_t n, shortest, longest;
};

static void see_part(void *arg, const void *packet, size_t len)
{
	struct parts *parts = arg;

	if (*(const uint8_t *)packet == VIA_PKT_R3_DATA)
		len -= sizeof(struct via_r3_data);
	else if (*(const uint8_t *)packet == VIA_PKT_EAGER_NEXT)
		len -= sizeof(struct via_header);
	else
		return;
	if (!parts->n++ || len < parts->shortest)
		parts->shortest = (uint32_t)len;
	if (len > parts->longest)
		parts->longest = (uint32_t)len;
}

/*
 * The packets of a message are of whole lines, and all of them about as long, those of a single one (of an odd length: fake_vipl.c) almost: none is
 * what 32 KB at a time have left.
 */
static void packets_of(enum via_mode mode)
{
	static const uint32_t len[] = {33002, 33003, 36866, 36867, 65538, 65539, 100002, 100003, 299994, 299995};

	REQUIRE(open_pair("auto"));
	expecting = true;
	for (uint32_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		uint32_t packets = (len[i] + VIA_R3_BYTES - 1) / VIA_R3_BYTES;
		bool asks = mode == VIA_MODE_SYNC || len[i] % 2 == 0 || len[i] > 256 << 10;
		struct parts parts = {0};
		struct via_send send = long_send(&sent, len[i]);

		sent = received = 0;
		receive = any_receive(&received);
		send.envelope.mode = mode;
		fake_hold(job[A].c->nic, NULL, !asks);
		CHECK_EQ(via_match_send(job[A].to[B], &send), CMPI_OK);
		if (asks) {
			job_turn(1); /* the reply is there */
		} else { /* its sender may compute next */
			fake_in_flight(job[A].c->nic, job[B].c->nic, see_part, &parts);
			CHECK_EQ(parts.n, packets);
			parts.n = 0;
		}
		fake_hold(job[A].c->nic, NULL, true);
		for (int passes = 0; passes < 30; passes++)
			cmpi_progress(job[A].c);
		fake_in_flight(job[A].c->nic, job[B].c->nic, see_part, &parts);
		fake_hold(job[A].c->nic, NULL, false);
		CHECK_EQ(parts.n, packets);
		CHECK_EQ(parts.longest % 64, 0);
		CHECK(parts.longest - parts.shortest < (len[i] % 2 ? 0 : 4096) + 64 * packets);
		job_turn(30);
		CHECK(sent == 1 && received == 1);
	}
	job_close();
}

static void parts_when_asked(void)
{
	packets_of(VIA_MODE_SYNC);
}

static void parts_at_once(void)
{
	packets_of(VIA_MODE_STANDARD);
}

/* What is in several packets because eager messages may be so long is no single one, of which the NIC would be told. */
static void long_eager_ones(void)
{
	struct via_send send = long_send(&sent, LONG);

	REQUIRE(open_pair("auto"));
	job[A].c->params.rendezvous_threshold = LONG;
	send.envelope.single = 1; /* which is not the caller's to say */
	expecting = true;
	receive = any_receive(&received);
	CHECK_EQ(via_match_send(job[A].to[B], &send), CMPI_OK);
	job_turn(30);
	for (int posted = 0; posted < 2; posted++) {
		message(LONG, MOST, posted, VIA_MODE_STANDARD);
		CHECK_EQ(job_count(A, "cmpi_eager_series"), (uint64_t)posted + 2);
	}
	CHECK_EQ(fake_longs, 0);
	message(LONG + 1, MOST, true, VIA_MODE_STANDARD);
	CHECK_EQ(job_count(A, "cmpi_eager_series"), 3);
	CHECK_EQ(fake_longs, 1);
	job_close();
}

/* A series waits for buffers; the next one that would be one is told by a request meanwhile. */
static void one_series_at_a_time(void)
{
	enum { BUFFERS = 1000 };
	static void *taken[BUFFERS];
	static uint8_t other[LONG];
	static int there[2];
	struct via_send first = long_send(&there[0], 50003), second = long_send(&there[1], 50003);
	uint32_t n = 0;

	REQUIRE(open_pair("auto"));
	memset(from, 0x5a, sizeof(from));
	expecting = true;
	receive = any_receive(&received);
	while (n < BUFFERS && (taken[n] = VipxTakeBuffer(job[A].c->nic)) != NULL)
		n++;
	CHECK_EQ(via_match_send(job[A].to[B], &first), CMPI_OK);
	job_turn(5);
	CHECK_EQ(there[0], 0);
	CHECK(job[B].to[A]->eager != NULL);
	receive = (struct via_recv){.buf = other, .size = LONG, .done = done, .arg = &sent};
	VipxGiveBuffer(job[A].c->nic, taken[--n]); /* for the request */
	CHECK_EQ(via_match_send(job[A].to[B], &second), CMPI_OK);
	CHECK_EQ(job_count(A, "cmpi_eager_series"), 1);
	while (n)
		VipxGiveBuffer(job[A].c->nic, taken[--n]);
	job_turn(30);
	CHECK(there[0] == 1 && there[1] == 1);
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 1);
	CHECK_EQ(job[B].errors, 0);
	job_close();
}

/* A long message from A is there before its receive; is it read by the call that names that? */
static bool read_at_once(void)
{
	struct via_send send = long_send(&sent, LONG);
	bool begun;

	memset(into, 0xcc, LONG);
	memset(from, 0x33, LONG);
	sent = received = 0;
	expecting = false;
	waiting = NULL;
	receive = any_receive(&received);
	CHECK_EQ(via_match_send(job[A].to[B], &send), CMPI_OK);
	job_turn(3);
	if (!CHECK(waiting != NULL))
		return false;
	via_match_accept(waiting, &receive);
	begun = !job[B].to[A]->rma_head;
	CHECK(begun || job[B].to[A]->in_flow);
	job_turn(30);
	CHECK(sent == 1 && received == 1);
	CHECK(!memcmp(into, from, LONG));
	return begun;
}

/* Where long messages go both ways the next pass of progress reads it, once for each that has gone the other way. */
static void reads_put_off(void)
{
	static int there[2];

	REQUIRE(open_pair("rget"));
	via_match_engine(job[A].c, &engine);
	CHECK(read_at_once());
	for (int i = 0; i < 2; i++) {
		struct via_send back = long_send(&there[i], LONG);

		expecting = true;
		receive = any_receive(&received);
		CHECK_EQ(via_match_send(job[B].to[A], &back), CMPI_OK);
		job_turn(30);
		CHECK_EQ(there[i], 1);
	}
	message(50000, MOST, true, VIA_MODE_STANDARD);
	job[B].to[A]->rma_ops += 128;
	CHECK(read_at_once()); /* no more than so many */
	job[B].to[A]->rma_ops -= 128;
	CHECK_EQ(job[B].to[A]->long_out, 2); /* what comes to its receive is read in that pass */
	CHECK(!read_at_once());
	CHECK(!read_at_once());
	CHECK(read_at_once());
	job_close();
}

/* Or it is read when as many have been sent; and at once while one is under way, by which the peer has something to do. */
static void reads_put_off_until_sent(void)
{
	struct via_send send = long_send(&sent, LONG);
	static struct via_recv theirs;
	static int there[3], ours;

	REQUIRE(open_pair("rget"));
	via_match_engine(job[A].c, &engine);
	for (int i = 0; i < 3; i++) {
		struct via_send back = long_send(&there[i], LONG);

		waiting = NULL;
		expecting = false;
		if (i) {
			CHECK_EQ(via_match_send(job[A].to[B], &send), CMPI_OK);
			job_turn(3);
			REQUIRE(waiting != NULL);
		}
		theirs = any_receive(&ours);
		receive = any_receive(&received);
		if (i == 1) {
			via_match_accept(waiting, &theirs);
			CHECK(job[B].to[A]->rma_head != NULL);
		}
		CHECK_EQ(via_match_send(job[B].to[A], &back), CMPI_OK);
		CHECK_EQ(job[B].to[A]->long_open, 1);
		if (i == 2)
			via_match_accept(waiting, &theirs);
		CHECK(!job[B].to[A]->rma_head);
		expecting = true;
		job_turn(30);
		CHECK_EQ(there[i], 1);
		CHECK_EQ(job[B].to[A]->long_open + job[B].to[A]->put_off, 0);
	}
	job_close();
}

/* A message that the NIC would rather send (of the fake one's: of less than 100 bytes) goes in packets, the others are read. */
static void as_the_nic_likes(void)
{
	REQUIRE(open_pair("auto"));
	job[A].c->params.r3_threshold = 0;
	message(99, 99, true, VIA_MODE_SYNC);
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 1);
	message(100, 100, true, VIA_MODE_SYNC);
	CHECK_EQ(job_count(A, "cmpi_rndv_rget"), 1);
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 1);
	job_close();
	REQUIRE(open_pair("rget"));
	job[A].c->params.r3_threshold = 0;
	message(99, 99, true, VIA_MODE_SYNC);
	CHECK_EQ(job_count(A, "cmpi_rndv_rget"), 1);
	job_close();
}

/* Whichever side cannot register its memory, the data goes through packets. */
static void downgrades(const char *protocol, bool at_sender)
{
	struct via_send send = {.buf = from, .done = done, .arg = &sent, .envelope = {.data_length = 50000}};

	REQUIRE(open_pair(protocol));
	message(50000, MOST, true, VIA_MODE_STANDARD);
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 0);
	job[A].c->params.lazy_deregister = job[B].c->params.lazy_deregister = false;
	via_dreg_fini(job[A].c);
	via_dreg_fini(job[B].c);
	sent = received = 0;
	expecting = false;
	receive = any_receive(&received);
	memset(into, 0, sizeof(into));
	/* RGET: the sender registers when it asks; RPUT: when it is answered. */
	if (at_sender && !strcmp(protocol, "rget"))
		fake_refuse_registrations(1);
	CHECK_EQ(via_match_send(job[A].to[B], &send), CMPI_OK);
	job_turn(10);
	REQUIRE(waiting != NULL);
	if (!at_sender)
		fake_refuse_registrations(1);
	via_match_accept(waiting, &receive);
	if (at_sender && !strcmp(protocol, "rput"))
		fake_refuse_registrations(1);
	job_turn(30);
	CHECK_EQ(sent, 1);
	CHECK_EQ(received, 1);
	CHECK(!memcmp(from, into, 50000));
	CHECK_EQ(job_count(A, "cmpi_rndv_r3"), 1);
	CHECK_EQ(job_count(A, "cmpi_rndv_downgraded"), 1);
	job_close();
}

static void downgrade_rget_sender(void)
{
	downgrades("rget", true);
}

static void downgrade_rget_receiver(void)
{
	downgrades("rget", false);
}

static void downgrade_rput_sender(void)
{
	downgrades("rput", true);
}

static void downgrade_rput_receiver(void)
{
	downgrades("rput", false);
}

/* The window of eager bytes opens again by what replies and NOOPs tell. */
static void eager_window_reopens(void)
{
	uint64_t eager;

	REQUIRE(open_pair("rget"));
	job[A].c->params.eager_window = 5000;
	for (int i = 0; i < 100; i++)
		message(1000, MOST, true, VIA_MODE_STANDARD);
	eager = job_count(A, "cmpi_eager");
	CHECK(eager > 50);
	CHECK(eager < 100);
	CHECK_EQ(job[A].to[B]->eager_sent, job[B].to[A]->consumed);
	CHECK(job[B].to[A]->consumed > VIA_CONSUMED_UNIT);
	CHECK(via_flow_holds(job[B].to[A]));
	job_close();
}

int main(void)
{
	CASE(rget);
	CASE(as_the_nic_likes);
	CASE(rput);
	CASE(r3);
	CASE(parts_when_asked);
	CASE(parts_at_once);
	CASE(long_eager_ones);
	CASE(one_series_at_a_time);
	CASE(reads_put_off);
	CASE(reads_put_off_until_sent);
	CASE(downgrade_rget_sender);
	CASE(downgrade_rget_receiver);
	CASE(downgrade_rput_sender);
	CASE(downgrade_rput_receiver);
	CASE(eager_window_reopens);
	return check_done();
}
