/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages, one at a time: each is timed by itself, apart from those in rows (ctl/rdma_rows.c). */
#include "tests/unit/nicemu/long.h"

enum { S = NIC_ROW_LENGTHS, TWO = 300 * KB /* class 1 */ };

static void classes(void)
{
	CHECK_EQ(nic_row_class(32 * KB - 1, NIC_ROW_SINGLE), NIC_ROW_CLASSES);
	CHECK_EQ(nic_row_class(32 * KB, NIC_ROW_SINGLE), S);
	CHECK_EQ(nic_row_class(TWO, NIC_ROW_SINGLE), S + 1);
	CHECK_EQ(nic_row_class(UINT64_MAX, NIC_ROW_SINGLE), 2 * S - 1);
	CHECK(nic_row_reads(2u << S, TWO, NIC_ROW_SINGLE) && !nic_row_reads(2u << S, TWO, NIC_ROW_MANY) && !nic_row_reads(2, TWO, NIC_ROW_SINGLE));
}

/* Nothing is so good that the other way is not tried; and what is known of rows is no guess for these. */
static void the_faster_way(void)
{
	BEGIN_ROWS();
	until(1, SLOW, FAST, 2 | LONGEST, 100);
	CHECK_EQ(ba()->row.reads, 2 | LONGEST);
	CHECK(until(S + 1, BEST, BEST / 2, 2 | 2u << S | LONGEST, 100) < 20);
	CHECK(reads_of(S + 1, BEST, BEST / 2, 1000) > 900);
	reads_of(S + 1, BEST / 2, BEST, 2000);
	CHECK(reads_of(S + 1, BEST / 2, BEST, 1000) < 50);
	pair_close(&p);
}

/* The sender's NIC says which is single, and has that one go as the receiver would rather have such. */
static void the_sender_says(void)
{
	bool single;

	SKIP_ASKING();
	BEGIN_ROWS();
	for (int reads = 0; reads < 4; reads++) { /* a bit for rows, one for single ones */
		ba()->asked->reads = (reads & 1 ? 2u : 0) | (reads & 2 ? 2u << S : 0);
		nic_poll(p.a.nic);
		CHECK(is_sent(&p.a, TWO, &single) == !(reads & 2) && single);
		CHECK(is_sent(&p.a, TWO, &single) == !(reads & 1) && !single);
		CHECK(is_sent(&p.a, TWO, &single) == !(reads & 1) && !single);
		nic_poll(p.a.nic); /* it looks */
		CHECK(is_sent(&p.a, TWO, &single) == !(reads & 2) && single);
	}
	CHECK_EQ(ab()->row.sent[1], 8);
	CHECK_EQ(ab()->row.sent[S + 1], 8);
	pair_close(&p);
}

/* ---- what is single ------------------------------------------------------------------------------------------------ */

static void begins(bool single)
{
	CHECK(nic_long_begins(p.b.nic, p.b.vi, 0, LONG, single));
}

static void over(bool single, uint64_t len, bool read)
{
	nic_long_over(p.b.nic, p.b.vi, len, read, single);
}

/* So many, one after the other, which take some time each, with pauses. */
static void singles(int n, uint64_t len, bool read, unsigned us, unsigned pause)
{
	for (int i = 0; i < n; i++) {
		begins(true);
		if (us)
			usleep(us);
		over(true, len, read);
		if (pause)
			usleep(pause);
	}
}

/* Single ones of that class count from now on, those that went that way. */
static void ready(uint32_t class, bool read)
{
	ba()->row.seen = true;
	*class_of(class) = (struct nic_row_class){ .rows = 0 };
	ba()->row.settle[class] = 1;
	ba()->row.read[class] = read;
}

static void each_by_itself(void)
{
	uint64_t start;

	BEGIN_ROWS();
	ready(S, false);
	start = nic_clock();
	singles(10, LONG, false, 1000, 10000);
	CHECK_EQ(class_of(S)->rows, 10);
	CHECK_EQ(class_of(S)->bytes, 10 * LONG);
	CHECK(class_of(S)->ns >= 10000000 && class_of(S)->ns + 100000000 <= nic_clock_since(start, nic_clock())); /* without the pauses */
	CHECK_EQ(class_of(0)->rows + class_of(1)->rows, 0);
	CHECK_EQ(ba()->row.n[0] + ba()->row.n[1], 0);
	singles(53, LONG, false, 0, 0);
	CHECK_EQ(class_of(S)->rows, 63);
	CHECK_EQ(class_of(S)->pace.cost[0], 0);
	singles(1, LONG, false, 0, 0); /* these count as one */
	CHECK_EQ(class_of(S)->rows, 0);
	CHECK(class_of(S)->pace.cost[0]);
	singles(1, 16 * KB, false, 0, 0); /* a short one, as those are whose receive is */
	ready(S + 3, true);
	singles(3, 4 * MB, true, 0, 0);
	CHECK_EQ(class_of(S + 3)->rows, 3);
	singles(1, 4 * MB, true, 0, 0); /* fewer, of many bytes */
	CHECK_EQ(class_of(S + 3)->rows, 0);
	CHECK(class_of(S + 3)->pace.cost[1]);
	pair_close(&p);
}

/* Without a pause before it, though the machine may have been away. */
static void begins_at_once(bool single)
{
	ba()->row.last = nic_clock() + 100000000;
	begins(single);
}

/* What others have joined was the first of a row. */
static void the_first_of_a_row(void)
{
	BEGIN_ROWS();
	ready(S, false);
	begins(true);
	begins(false);
	over(false, LONG, false);
	over(true, LONG, false);
	CHECK_EQ(class_of(S)->rows, 0);
	CHECK_EQ(ba()->row.n[0], 2);
	CHECK_EQ(ba()->row.firsts[0], 1);
	CHECK_EQ(ba()->row.met, 1);
	/* Read, it is over before the next one begins: it is both. */
	ready(S, true);
	begins_at_once(true);
	over(true, LONG, true);
	CHECK_EQ(class_of(S)->rows, 1);
	CHECK_EQ(ba()->row.n[1], 1);
	CHECK_EQ(ba()->row.firsts[1], 1);
	begins_at_once(false);
	over(false, LONG, true);
	CHECK_EQ(class_of(S)->rows, 1);
	CHECK_EQ(ba()->row.n[1], 2);
	/* What was under way before it is not its time. */
	begins_at_once(false);
	usleep(2000);
	over(false, LONG, true);
	ready(S, true);
	begins_at_once(true);
	over(true, LONG, true);
	CHECK_EQ(ba()->row.n[1], 4);
	CHECK(class_of(S)->ns + 2000000 <= ba()->row.last - ba()->row.began);
	ba()->row.singles = 0;
	/* Two behind each other are no row, and end one. */
	begins_at_once(true);
	over(true, LONG, true);
	CHECK_EQ(ba()->row.n[1], 5);
	singles(1, LONG, true, 0, 0);
	CHECK_EQ(ba()->row.n[0] + ba()->row.n[1], 0);
	CHECK_EQ(class_of(S)->rows, 3);
	pair_close(&p);
}

/* One from memory in the card that begins meanwhile makes it no longer single. */
static void beside_one_in_the_card(void)
{
	void *in_card;

	BEGIN_ROWS();
	if (nic_mem_alloc(p.a.nic, MB, &in_card) != NIC_OK) {
		pair_close(&p);
		SKIP("no memory in the card here");
	}
	ready(S, true);
	begins(true);
	CHECK(!nic_long_begins(p.b.nic, p.b.vi, (uintptr_t)in_card, LONG, true));
	over(true, LONG, true);
	CHECK_EQ(class_of(S)->rows, 0);
	CHECK_EQ(nic_mem_free(p.a.nic, in_card), NIC_OK);
	pair_close(&p);
}

/* Some are not timed: of a way that nothing is known of, then behind a change, fewer than of rows. */
static void they_settle(void)
{
	struct nic_pace *pace;

	BEGIN_ROWS();
	pace = &class_of(S + 1)->pace;
	for (int read = 0; read < 2; read++) {
		ba()->row.seen = read;
		for (int i = 0; i < 64; i++) {
			singles(1, MB, read, 0, 0);
			CHECK_EQ(class_of(S + 1)->rows, 0);
		}
		singles(1, MB, read, 0, 0);
		CHECK_EQ(class_of(S + 1)->rows, 1);
	}
	for (int read = 0; read < 2; read++) {
		pace->cost[read] = UINT32_MAX;
		singles(8, MB, read, 0, 0);
		CHECK_EQ(class_of(S + 1)->rows, 0);
		singles(1, MB, read, 0, 0);
		CHECK_EQ(class_of(S + 1)->rows, 1);
	}
	ba()->row.seen = true;
	for (int i = 0; i < 41; i++) {
		CHECK_EQ(class_of(1)->rows, 0);
		nic_row_took(ba(), 1, false, FAST, MB);
	}
	CHECK_EQ(class_of(1)->rows, 1);
	pair_close(&p);
}

/* What has taken very long, since its processor was somebody else's meanwhile, counts as twice what others take, if that is known; rows as they are. */
static void one_that_takes_long(void)
{
	struct nic_row_class *c;

	BEGIN_ROWS();
	for (uint32_t class = 1; class <= S + 1; class += S) {
		c = class_of(class);
		ba()->row.settle[class] = 1;
		nic_row_took(ba(), class, false, 1000 * FAST, MB);
		CHECK_EQ(c->ns, 1000 * FAST);
		c->rows = 0;
		c->pace.cost[0] = FAST;
		c->pace.cost[1] = 100 * FAST;
		nic_row_took(ba(), class, false, 1000 * FAST, MB / 2);
		CHECK_EQ(c->ns, class == 1 ? 1000 * FAST : FAST);
		nic_row_took(ba(), class, false, FAST / 2, MB / 2);
		CHECK_EQ(c->ns, class == 1 ? 1000 * FAST + FAST / 2 : FAST + FAST / 2);
	}
	pair_close(&p);
}

/* Single ones both ways: the end in the lower slot decides for both, here the other one. */
static void exchanges(void)
{
	SKIP_ASKING();
	BEGIN_ROWS();
	CHECK(p.a.nic->me < p.b.nic->me);
	for (int i = 0; i < 255; i++) {
		nic_poll(p.b.nic);
		rather_sent(&p.b, LONG);
		singles(1, LONG, false, 0, 0);
	}
	CHECK_EQ(ba()->row.sent[S], 255);
	CHECK_EQ(ba()->row.mutual, 0);
	ab()->asked->reads = 1u << S;
	singles(1, LONG, false, 0, 0);
	CHECK(ba()->row.mutual == 1u << S && ba()->row.follows == 1u << S);
	CHECK_EQ(ba()->row.reads, 1u << S | LONGEST);
	CHECK_EQ(ba()->asked->reads, 1u << S | LONGEST);
	ready(S, true);
	singles(1, LONG, true, 0, 0);
	CHECK_EQ(class_of(S)->rows, 0); /* it times nothing of them, */
	ab()->asked->reads = 0;
	singles(1, LONG, true, 0, 0);
	CHECK_EQ(ba()->asked->reads, LONGEST); /* and does as the other end */
	pair_close(&p);
}

/* What is tried and does not happen is not waited for. */
static void trials_in_vain(void)
{
	BEGIN_ROWS();
	CHECK(until(S, FAST, FAST, 1u << S | LONGEST, 20) < 20);
	CHECK(class_of(S)->pace.trial && !class_of(S)->pace.cost[1]);
	singles(8, LONG, false, 0, 0);
	CHECK(class_of(S)->pace.trial);
	singles(1, LONG, true, 0, 0); /* it does */
	singles(15, LONG, false, 0, 0);
	CHECK(class_of(S)->pace.trial);
	singles(1, LONG, false, 0, 0);
	CHECK(!class_of(S)->pace.trial);
	CHECK_EQ(ba()->asked->reads, LONGEST);
	pair_close(&p);
}

/* Nor is one waited for that others join each time: the first of a row that is sent is never single. */
static void trials_that_others_join(void)
{
	BEGIN_ROWS();
	until(S, SLOW, FAST, 3u << S | LONGEST, 100);
	for (int i = 0; i < 100 && !class_of(S)->pace.trial; i++)
		nic_row_took(ba(), S, true, FAST * (MANY / MB), MANY);
	CHECK_EQ(ba()->row.reads & 1u << S, 0);
	for (int i = 0; i < 16; i++) {
		CHECK(class_of(S)->pace.trial);
		begins(true);
		begins(false);
		over(true, LONG, false);
		over(false, LONG, false);
	}
	CHECK(!class_of(S)->pace.trial);
	CHECK(ba()->row.reads & 1u << S);
	pair_close(&p);
}

/* Rows of four each, of which the first is read, since single ones are better read: they are sent, or the other way round. */
static void the_first_goes_another_way(void)
{
	for (int read = 0; read < 2; read++) {
		BEGIN_ROWS();
		ba()->row.seen = true;
		ba()->row.settle[0] = 1;
		ba()->row.read[0] = read;
		for (int i = 0; i < 35; i++) {
			begins_at_once(true);
			for (int k = 0; k < 3; k++)
				begins(false);
			over(true, LONG, !read);
			for (int k = 0; k < 3; k++)
				over(false, LONG, read);
		}
		CHECK_EQ(class_of(0)->rows, 0); /* two */
		CHECK_EQ(class_of(0)->bytes, 128 * LONG);
		CHECK(class_of(0)->pace.cost[read] && !class_of(0)->pace.cost[!read]);
		pair_close(&p);
	}
}

/* Those that all were the first are no row of either kind. */
static void all_first(void)
{
	BEGIN_ROWS();
	ba()->row.seen = true;
	ba()->row.settle[0] = 1;
	ba()->row.read[0] = true; /* as none is as many as half of none */
	for (int i = 0; i < 40; i++) {
		begins_at_once(true);
		begins(true);
		over(true, LONG, false);
		over(true, LONG, false);
	}
	CHECK_EQ(class_of(0)->rows, 0);
	pair_close(&p);
}

/* What was an exchange of rows once takes no half from a single one, nor from a read of the host's own. */
static void halves_of_single_ones(void)
{
	BEGIN(0, 40000);
	ab()->row.mutual = 1;
	ab()->row.open = 1;
	CHECK(nic_row_mutual(ab(), LONG));
	ab()->row.single = S;
	CHECK(!nic_row_mutual(ab(), LONG));
	ab()->row.single = 0;
	ab()->row.own = 1;
	CHECK(!nic_row_mutual(ab(), LONG));
	pair_close(&p);
}

/* Who does not say when messages begin is not told what others found. */
static void without_times(void)
{
	bool single;

	SKIP_ASKING();
	BEGIN_ROWS();
	ba()->asked->reads = UINT32_MAX;
	nic_poll(p.a.nic);
	for (int i = 0; i < 2; i++)
		CHECK(nic_rather_sent(p.a.nic, p.a.vi, (uintptr_t)p.a.mem, TWO, NULL));
	CHECK_EQ(ab()->row.sent[1] + ab()->row.sent[S + 1], 0);
	CHECK(!is_sent(&p.a, TWO, &single) && single);
	pair_close(&p);
}

/* One of some is looked at for how far apart the processors are. */
static void how_far_is_asked(void)
{
	uint32_t looked;

	BEGIN_LOOKS();
	singles(16, LONG, false, 0, 0);
	ba()->row.look = 4 * NIC_ROW_LOOK; /* as many as a row has */
	looked = ba()->row.looked;
	for (int i = 0; i < 80; i++) {
		++*far_line();
		singles(1, LONG, false, 0, 0);
	}
	CHECK_EQ(ba()->row.looked - looked, 10);
	pair_close(&p);
}

int main(void)
{
	CASE(classes);
	CASE(the_faster_way);
	CASE(the_sender_says);
	CASE(each_by_itself);
	CASE(the_first_of_a_row);
	CASE(beside_one_in_the_card);
	CASE(they_settle);
	CASE(one_that_takes_long);
	CASE(exchanges);
	CASE(trials_in_vain);
	CASE(trials_that_others_join);
	CASE(the_first_goes_another_way);
	CASE(all_first);
	CASE(halves_of_single_ones);
	CASE(without_times);
	CASE(how_far_is_asked);
	return check_done();
}
