/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QNIX control program, step by step: one message of each kind, what the published description leaves open, fairness.
 */
#include "tests/unit/nicemu/played.h"

/* ---- the state machines ----------------------------------------------------------------------------------------------------------------------- */

/* Every state but the first can be reached, every state leads to the end. */
static void walk(const struct qnix_state *table, uint32_t n)
{
	uint32_t reached = 1, before = 0;

	while (reached != before) {
		before = reached;
		for (uint32_t i = 0; i < n; i++)
			if (reached >> i & 1)
				reached |= table[i].next;
	}
	CHECK_EQ(reached, (1u << n) - 1);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(table[i].name && table[i].meaning);
		CHECK((table[i].next == 0) == (i == n - 1));
	}
}

static void state_tables(void)
{
	walk(qnix_tx_states, QNIX_TX_STATES);
	walk(qnix_rx_states, QNIX_RX_STATES);
	CHECK_EQ(sizeof(struct qnix_header), 16);
}

/* ---- one message ------------------------------------------------------------------------------------------------------------------- */

static void every_step_of_a_send(void)
{
	long size;
	int r, s;

	up(2);
	forget_steps(0);
	forget_steps(1);
	r = receive_as(1, 0, 5, to[1] + 100, 10000);
	s = send_as(0, 1, 5, from[0] + 4000, 9000);
	CHECK_EQ(over(0, s, NULL), 1);
	CHECK_EQ(over(1, r, &size), 1);
	CHECK_EQ(size, 9000);
	CHECK(memcmp(to[1] + 100, from[0] + 4000, 9000) == 0);
	IN_ORDER(0, S(TX_5), S(SEND_1), S(SEND_2), S(SEND_3), S(REQUEST_OUT), S(TX_6), S(RX_3), S(REPLY), S(TX_1), S(TX_2), S(TX_3), S(TX_4),
	         S(TX_7), S(TX_1), S(TX_2), S(TX_3), S(TX_4), S(TX_7), S(TX_1), S(TX_2), S(TX_3), S(TX_4), S(TX_7), S(TX_7_DOORBELL));
	IN_ORDER(1, S(TX_5), S(RECEIVE_1), S(RECEIVE_2), S(RECEIVE_3), S(TX_6), S(RX_3), S(REQUEST_1), S(REQUEST_2), S(REQUEST_3),
	         S(REQUEST_4), S(RX_1), S(RX_2), S(RX_4), S(RX_1), S(RX_2), S(RX_4), S(RX_1), S(RX_2), S(RX_4), S(RX_4_DOORBELL));
	CHECK_EQ(steps_of(0, S(TX_3)), 4 - (((uintptr_t)from[0] + 4000) % 4096 + 9000 <= 3 * 4096));
	down();
}

/* The lines of a trace file that begin with one of these, in this order, others between them. */
static void lines_in_order(int i, const char *file, const char *const *want)
{
	char path[80], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%d.%d", file, (int)getpid(), i);
	f = fopen(path, "r");
	CHECK(f != NULL);
	while (f && *want && fgets(line, sizeof(line), f))
		want += strncmp(line, *want, strlen(*want)) == 0;
	CHECK(!f || !*want);
	if (f && *want)
		printf("# not in %s: %s\n", path, *want);
	if (f)
		fclose(f);
	remove(path);
}

/* QNIX_TRACE and QNIX_TRACE_FILE show a message to whoever asks, step by step. */
static void a_message_in_writing(void)
{
	static const char *const sender[] = { "registration 1", "registration 6", "TX 5", "Send 1", "Send 2", "Send 3", "Permission_Request",
		"TX 6", "RX 3", "Permission_Reply", "TX 1", "TX 2", "TX 3", "TX 4", "TX 7", "de-registration 1", "de-registration 5", NULL };
	static const char *const receiver[] = { "TX 5", "Receive 1", "Receive 2", "Receive 3", "TX 6", "RX 3", "Permission_Request 1",
		"Permission_Request 2", "Permission_Request 3", "Permission_Request 4", "RX 1", "RX 2", "RX 4", NULL };
	char file[40];
	int r, s;

	snprintf(file, sizeof(file), "trace-%d", (int)getpid());
	nic_param_set("trace_file", file, "test");
	up(2);
	r = receive_as(1, 0, 5, to[1], 5000);
	s = send_as(0, 1, 5, from[0], 5000);
	CHECK_EQ(over(0, s, NULL), 1);
	CHECK_EQ(over(1, r, NULL), 1);
	down();
	nic_param_set("trace_file", "", "test");
	lines_in_order(0, file, sender);
	lines_in_order(1, file, receiver);
}

static void every_step_of_a_short_send(void)
{
	int r, s;

	up(2);
	forget_steps(0);
	r = receive_as(1, 0, 5, to[1], 100);
	poll_all();
	s = send_as(0, 1, 5, from[0], 100);
	CHECK_EQ(over(1, r, NULL), 1);
	CHECK_EQ(over(0, s, NULL), 1);
	CHECK(memcmp(to[1], from[0], 100) == 0);
	IN_ORDER(0, S(SEND_1), S(SEND_2), S(SEND_3), S(REQUEST_OUT), S(RX_3), S(REPLY), S(SHORT_1), S(SHORT_2), S(SHORT_3));
	CHECK_EQ(steps_of(0, S(TX_3)), 0); /* it does not follow the scheduling */
	down();
}

static void every_step_of_an_early_message(void)
{
	long size;
	int r, s;

	up(2);
	forget_steps(1);
	s = send_as(0, 1, 9, from[0] + 1, 30000);
	CHECK_EQ(over(0, s, NULL), 1); /* it is in the receiver's NIC */
	CHECK_EQ(to[1][0], 0);
	r = receive_as(1, 0, 9, to[1] + 77, 30000);
	CHECK_EQ(over(1, r, &size), 1);
	CHECK_EQ(size, 30000);
	CHECK(memcmp(to[1] + 77, from[0] + 1, 30000) == 0);
	IN_ORDER(1, S(RX_3), S(EARLY_1), S(EARLY_2), S(EARLY_3), S(EARLY_4), S(RX_1), S(RX_2), S(RX_4), S(RECEIVE_1), S(RECEIVE_4),
	         S(RECEIVE_5), S(RECEIVE_6), S(RECEIVE_7), S(RX_4_DOORBELL));
	CHECK_EQ(p[1]->nic->qnix->early.taken, 0);
	CHECK_EQ(p[1]->nic->qnix->maps.taken, 0);
	CHECK_EQ(p[1]->nic->qnix->rt_used, 0);
	down();
}

/* Lengths and alignments: each packet goes to one or two consecutive pages. */
static void every_alignment(void)
{
	static const long sizes[] = { 1, 31, 32, 33, 1024, 1025, 4095, 4096, 4097, 8192, 12289, 65536, 262144 };
	long size;

	up(2);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		for (unsigned a = 0; a < 4096; a += 1365) {
			unsigned b = (a * 7 + 13) % 4096;
			int r = receive_as(1, 0, 2, to[1] + b, sizes[k]), s = send_as(0, 1, 2, from[0] + a, sizes[k]);

			CHECK_EQ(over(1, r, &size), 1);
			CHECK_EQ(over(0, s, NULL), 1);
			CHECK_EQ(size, sizes[k]);
			CHECK(memcmp(to[1] + b, from[0] + a, (size_t)sizes[k]) == 0);
			CHECK(to[1][b + sizes[k]] == 0 || b + sizes[k] < 300000);
		}
	down();
}

static void pool_pages(void)
{
	long size;
	int r, s;

	up(2);
	for (int i = 0; i < 2; i++) {
		as(i);
		CHECK_EQ(qx_buffer_pool(0), QX_ERROR);
		CHECK_EQ(qx_buffer_pool(QX_POOL_PAGES + 1), QX_ERROR);
		CHECK_EQ(qx_buffer_pool(16), 0);
		CHECK_EQ(qx_buffer_pool(16), QX_ERROR);
	}
	as(0);
	memcpy(qx_pool() + 4096, from[0], 20000);
	s = qx_pool_send(name(1), 3, 1, 20000);
	as(1);
	CHECK_EQ(qx_pool_receive(name(0), 3, 15, 2 * 4096), QX_ERROR);
	r = qx_pool_receive(name(0), 3, 4, 20000);
	CHECK_EQ(over(1, r, &size), 1);
	CHECK_EQ(over(0, s, NULL), 1);
	as(1);
	CHECK(size == 20000 && memcmp(qx_pool() + 4 * 4096, from[0], 20000) == 0);
	down();
}

/* ---- what the description leaves open ------------------------------------------------------------------------------------------------- */

/* The receiver's NIC stands still: the sender asks again and again, and one message arrives. */
static void requests_come_again(void)
{
	int r[2], s[2];

	up(2);
	s[0] = send_as(0, 1, 4, from[0], 5000);
	s[1] = send_as(0, 1, 4, from[0] + 5000, 100);
	for (int i = 0; i < 4000; i++)
		nic_poll(p[0]->nic);
	CHECK(steps_of(0, S(REQUEST_AGAIN)) >= 3);
	CHECK(steps_of(0, S(REQUEST_AGAIN)) <= 40); /* with patience */
	r[0] = receive_as(1, 0, 4, to[1], 5000);
	r[1] = receive_as(1, 0, 4, to[1] + 5000, 100);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(over(1, r[i], NULL), 1);
		CHECK_EQ(over(0, s[i], NULL), 1);
	}
	CHECK(memcmp(to[1], from[0], 5100) == 0);
	CHECK_EQ(p[1]->nic->qnix->rt_used, 0);
	CHECK_EQ(p[0]->nic->qnix->sq_used, 0);
	down();
}

/* The same when the receive that waits is too small: no request is taken for another message, with a receive or without. */
static void long_requests_come_again(void)
{
	int r, s;

	for (int waits = 0; waits < 2; waits++) {
		up(2);
		for (int i = 0; i < 3; i++) {
			r = receive_as(1, 0, 4, to[1], 100);
			nic_poll(p[1]->nic);
			s = send_as(0, 1, 4, from[0], i == 1 ? 40000 : 101);
			for (int k = 0; k < 4000; k++)
				nic_poll(p[0]->nic);
			CHECK(steps_of(0, S(REQUEST_AGAIN)) >= 3);
			CHECK_EQ(over(1, r, NULL), QX_REFUSED);
			r = waits ? receive_as(1, 0, 4, to[1], 5000) : -1;
			CHECK_EQ(over(0, s, NULL), QX_REFUSED);
			s = send_as(0, 1, 4, from[0], 4999);
			r = waits ? r : receive_as(1, 0, 4, to[1], 5000);
			CHECK_EQ(over(1, r, NULL), 1);
			CHECK_EQ(over(0, s, NULL), 1);
			CHECK(memcmp(to[1], from[0], 4999) == 0);
		}
		CHECK_EQ(p[1]->nic->qnix->rt_used, 0);
		CHECK_EQ(p[1]->nic->qnix->ntold, 0);
		CHECK_EQ(p[0]->nic->qnix->sq_used, 0);
		down();
	}
}

/* First in, first out among equals, whatever their kind: a Send_Short does not overtake. */
static void equal_keys_keep_their_order(void)
{
	static const long sizes[] = { 50000, 10, 20000, 1000, 5 };
	int r[5], s[5];
	long size;

	for (int when = 0; when < 2; when++) {
		up(2);
		for (int i = 0; when && i < 5; i++)
			r[i] = receive_as(1, 0, 6, to[1] + i * 65536, 65536);
		for (int i = 0; i < 5; i++)
			s[i] = send_as(0, 1, 6, from[0] + i * 100, sizes[i]);
		for (int i = 0; !when && i < 5; i++)
			r[i] = receive_as(1, 0, 6, to[1] + i * 65536, 65536);
		for (int i = 0; i < 5; i++) {
			CHECK_EQ(over(1, r[i], &size), 1);
			CHECK_EQ(over(0, s[i], NULL), 1);
			CHECK_EQ(size, sizes[i]);
			CHECK(memcmp(to[1] + i * 65536, from[0] + i * 100, (size_t)size) == 0);
		}
		down();
	}
}

static void nothing_to_send(void)
{
	long size = -1;
	int r, s;

	up(2);
	for (int early = 0; early < 2; early++) {
		r = early ? -1 : receive_as(1, 0, 8, to[1], 10);
		s = send_as(0, 1, 8, NULL, 0);
		CHECK_EQ(over(0, s, NULL), 1);
		if (early)
			r = receive_as(1, 0, 8, NULL, 0);
		CHECK_EQ(over(1, r, &size), 1);
		CHECK_EQ(size, 0);
	}
	down();
}

/* A receive posted while its message is arriving in a local buffer. */
static void received_while_it_arrives(void)
{
	long size;
	int r, s;

	up(2);
	s = send_as(0, 1, 3, from[0] + 50, 60000);
	nic_poll(p[1]->nic);                    /* the request is answered */
	while (steps_of(0, S(TX_3)) < 5)
		qnix_tx(p[0]->nic->qnix->sched), nic_poll(p[0]->nic);
	nic_poll(p[1]->nic);
	CHECK(steps_of(1, S(RX_2)) >= 5);
	CHECK(p[1]->nic->qnix->early.taken > 0);
	r = receive_as(1, 0, 3, to[1] + 9, 60000);
	CHECK_EQ(over(1, r, &size), 1);
	CHECK_EQ(over(0, s, NULL), 1);
	CHECK(size == 60000 && memcmp(to[1] + 9, from[0] + 50, 60000) == 0);
	CHECK_EQ(p[1]->nic->qnix->early.taken, 0);
	down();
}

static void longer_than_its_receive(void)
{
	int r, s;

	up(2);
	r = receive_as(1, 0, 3, to[1], 5000);
	s = send_as(0, 1, 3, from[0], 5001);
	CHECK_EQ(over(1, r, NULL), QX_REFUSED);
	CHECK_EQ(over(0, s, NULL), QX_REFUSED);
	s = send_as(0, 1, 3, from[0], 5001); /* early: only the receiver can know */
	CHECK_EQ(over(0, s, NULL), 1);
	r = receive_as(1, 0, 3, to[1], 5000);
	CHECK_EQ(over(1, r, NULL), QX_REFUSED);
	CHECK_EQ(p[1]->nic->qnix->rt_used, 0);
	CHECK_EQ(p[1]->nic->qnix->early.taken, 0);
	r = receive_as(1, 0, 3, to[1], 100);
	s = send_as(0, 1, 3, from[0], 100);
	CHECK_EQ(over(1, r, NULL), 1);
	CHECK_EQ(over(0, s, NULL), 1);
	down();
}

/* A flood of messages without receives: what there is no room for waits at its sender, and all arrive in the end. */
static void local_buffers_are_bounded(void)
{
	enum { N = 40, SIZE = 128 * 1024 };
	int s[N], r;

	up(2);
	for (int i = 0; i < N; i++)
		s[i] = send_as(0, 1, i, from[0] + i, SIZE);
	poll_all();
	CHECK(p[1]->nic->qnix->early.taken <= QNIX_LOCAL_EARLY);
	CHECK(p[1]->nic->qnix->early.taken >= QNIX_LOCAL_EARLY - 64);
	CHECK(steps_of(1, S(REQUEST_REFUSED)) > 0);
	for (int i = N; i-- > 0;) {
		r = receive_as(1, 0, i, to[1], SIZE);
		CHECK_EQ(over(1, r, NULL), 1);
		CHECK(memcmp(to[1], from[0] + i, SIZE) == 0);
		CHECK_EQ(over(0, s[i], NULL), 1);
	}
	CHECK_EQ(p[1]->nic->qnix->early.taken, 0);
	down();
}

static void bad_arguments(void)
{
	static const int nobody[2] = { APP, 99 };
	struct nic_open_args args = { 0 };
	struct nic *nameless;
	int op;

	up(2);
	CHECK_EQ(nic_open(&args, &nameless), NIC_OK);
	as(0);
	CHECK_EQ(qx_send(name(1), QX_TAG_MAX + 1, (char *)from[0], 1), QX_ERROR);
	CHECK_EQ(qx_send(name(1), 1, NULL, 1), QX_ERROR);
	CHECK_EQ(qx_send(name(1), 1, (char *)from[0], QX_MESSAGE_MAX + 1), QX_ERROR);
	CHECK_EQ(qx_test(5, NULL), QX_ERROR);
	CHECK_EQ(qx_test(-1, NULL), QX_ERROR);
	op = qx_send(nobody, 1, (char *)from[0], 1);
	CHECK_EQ(over(0, op, NULL), QX_FAILED);
	as(0);
	op = qx_receive(nobody, 1, (char *)to[0], 1);
	CHECK_EQ(over(0, op, NULL), QX_FAILED);
	as(0);
	CHECK_EQ(qx_send((int[]){ QNIX_PORT, 1 }, 1, (char *)from[0], 1), QX_ERROR);
	op = qx_multicast(2, (int[]){ APP, 1, QNIX_PORT, (int)nameless->me }, 1, (char *)from[0], 1);
	CHECK_EQ(over(0, op, NULL), QX_FAILED); /* it has no name, and takes nothing */
	nic_close(nameless);
	as(0);
	op = qx_barrier(12345);
	CHECK_EQ(over(0, op, NULL), QX_FAILED);
	down();
}

/* A page table of a broadcast that ends everywhere inside its pages would be longer than there is room for one. */
static void a_broadcast_of_crumbs(void)
{
	int op;

	up(2);
	as(0);
	p[0]->quiet = 1;
	op = qx_broadcast(APP, 1, (char *)from[0], sizeof(from[0]));
	for (int i = 0; i < QNIX_REGION; i++)
		p[0]->shared->vni.send_region[op].descriptor[i] = ((uintptr_t)from[0] & ~4095ul) + 4095 + 4096;
	for (int i = op + 1; i < QNIX_CONTEXTS; i++)
		memset(&p[0]->shared->vni.send_region[i], 0x77, sizeof(union qnix_region)); /* no address of anything */
	nic_poll(p[0]->nic);
	CHECK_EQ(qx_test(op, NULL), 0);
	down();
}

/* ---- fairness ------------------------------------------------------------------------------------------------------------------------------- */

static uint64_t packets_of(int i)
{
	return p[i]->nic->counter[NIC_C_qnix_packets];
}

/* One control program, four processes, messages of very different lengths: each gets its share of the packets. */
static void processes_share_fairly(void)
{
	static const long sizes[] = { 2000, 20000, 200000, 900000 };
	static const int many[] = { 56, 24, 8, 4 }; /* so many under way: each always has something to send */
	enum { P = 4, PACKETS = 8000, MOST = 56 };
	uint64_t before[P], sent[P], all = 0;
	int s[P][MOST], r[P][MOST];

	up(P + 1);
	for (int i = 1; i < P; i++)
		qnix_sched_join(p[0]->nic, p[i]->nic);
	for (int i = 0; i < P; i++) {
		for (int k = 0; k < many[i]; k++) {
			r[i][k] = receive_as(P, i, 10 + k, to[i], sizes[i]);
			s[i][k] = send_as(i, P, 10 + k, from[i], sizes[i]);
		}
		before[i] = packets_of(i);
	}
	for (int i = 0; i <= P; i++)
		p[i]->quiet = 1;
	while (all < PACKETS) {
		all = 0;
		nic_poll(p[0]->nic);
		for (int k = 0; k < 4; k++) /* what is measured is the sender's scheduling: the receiver keeps up */
			nic_poll(p[P]->nic);
		for (int i = 0; i < P; i++) {
			sent[i] = packets_of(i) - before[i];
			all += sent[i];
			for (int k = 0; k < many[i]; k++) {
				as(P);
				if (qx_test(r[i][k], NULL) == 1)
					r[i][k] = receive_as(P, i, 10 + k, to[i], sizes[i]);
				as(i);
				if (qx_test(s[i][k], NULL) == 1)
					s[i][k] = send_as(i, P, 10 + k, from[i], sizes[i]);
			}
		}
	}
	for (int i = 0; i < P; i++) {
		printf("# messages of %ld bytes: %.1f %% of the packets\n", sizes[i], 100.0 * (double)sent[i] / (double)all);
		CHECK(sent[i] * 100 * P >= all * 95 && sent[i] * 100 * P <= all * 105);
	}
	down();
}

/* Within a process: while all of its messages have packets left, each gets as many. */
static void messages_share_fairly(void)
{
	static const long sizes[] = { 400000, 600000, 800000, 1000000 };
	uint32_t count[4] = { 0 };
	const struct nic_step *step;
	int s[4], r[4];

	up(2);
	for (int k = 0; k < 4; k++)
		r[k] = receive_as(1, 0, k, to[k], sizes[k]);
	poll_all();
	forget_steps(0);
	for (int k = 0; k < 4; k++)
		s[k] = send_as(0, 1, k, from[0], sizes[k]);
	for (int k = 0; k < 4; k++) {
		CHECK_EQ(over(1, r[k], NULL), 1);
		CHECK_EQ(over(0, s[k], NULL), 1);
	}
	for (uint32_t i = 0, n = 0; n < 360 && (step = nic_trace_at(p[0]->nic, i)); i++)
		if (step->point == S(TX_3)) {
			count[step->a & 3]++;
			n++;
		}
	for (int k = 0; k < 4; k++)
		CHECK(count[k] >= 86 && count[k] <= 94); /* 90, within 5 % */
	down();
}

int main(void)
{
	CASE(state_tables);
	CASE(every_step_of_a_send);
	CASE(a_message_in_writing);
	CASE(every_step_of_a_short_send);
	CASE(every_step_of_an_early_message);
	CASE(every_alignment);
	CASE(pool_pages);
	CASE(requests_come_again);
	CASE(long_requests_come_again);
	CASE(equal_keys_keep_their_order);
	CASE(nothing_to_send);
	CASE(received_while_it_arrives);
	CASE(longer_than_its_receive);
	CASE(local_buffers_are_bounded);
	CASE(bad_arguments);
	CASE(a_broadcast_of_crumbs);
	CASE(processes_share_fairly);
	CASE(messages_share_fairly);
	return check_done();
}
