/* SPDX-License-Identifier: BSD-3-Clause */
/* How far apart the two processors are, by which what long messages take is kept (ctl/rdma_apart.c). */
#include "nicemu/engine/cores.h"
#include "tests/unit/nicemu/long.h"

static void apart(uint64_t ns, int times)
{
	for (int i = 0; i < times; i++)
		nic_row_apart(ba(), ns);
}

/* From where on no cache is shared is the processor's. */
static void what_is_far(void)
{
	BEGIN(0, UINT32_MAX);
	CHECK_EQ(ba()->row.far, nic_cores_far());
	CHECK(nic_row_is_far(ba(), nic_cores_far()) && !nic_row_is_far(ba(), nic_cores_far() - 1) && !nic_row_is_far(ba(), 0));
	CHECK(nic_cores_far() >= 80 && nic_cores_far() <= 150);
	pair_close(&p);
}

/* As long as nothing is known. */
static void guesses(void)
{
	/* It is seen where they are: with what is known of that already. */
	BEGIN_ROWS();
	CHECK(!nic_row_guess(ba(), 1, 0) && nic_row_guess(ba(), 2, 0) && nic_row_guess(ba(), 3, 0) && !nic_row_guess(ba(), 4, 149));
	CHECK(!nic_row_guess(ba(), 0, 150) && nic_row_guess(ba(), 1, 150) && nic_row_guess(ba(), 7, 20) && nic_row_guess(ba(), 9, UINT32_MAX));
	CHECK(!nic_row_guess(ba(), 4, 300) && !nic_row_guess(ba(), 5, 300) && nic_row_guess(ba(), 6, 300) && !nic_row_guess(ba(), 8, 300)); /* single ones; puts */
	CHECK(nic_row_guess(ba(), 2, 40));
	ba()->row.far = 80;
	CHECK(!nic_row_guess(ba(), 1, 79) && nic_row_guess(ba(), 1, 80));
	ba()->row.far = 150;
	reads_of(0, BEST, BEST / 2, 3);
	CHECK(class_of(0)->pace.cost[0] && !class_of(0)->pace.cost[1]);
	apart(270, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->row.place, 0);
	CHECK_EQ(ba()->row.at[0].apart, 270);
	CHECK_EQ(ba()->asked->reads, FAR); /* and what is guessed to be read there does not follow from it */
	CHECK_EQ(ab()->asking->reads, FAR);
	apart(60, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, LONGEST);
	apart(270, NIC_ROW_LOOKS);
	apart(25, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, LONGEST);
	pair_close(&p);
	BEGIN_ROWS();
	apart(100, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, LONGEST);
	apart(1000, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, FAR);
	pair_close(&p);
}

/* Where lines migrate, in a cache that is shared: long ones, too, are sent at first. */
static void guesses_where_lines_migrate(void)
{
	BEGIN_ROWS();
	ba()->migrates = true;
	ba()->row.far = 80;
	CHECK(nic_row_guess(ba(), 2, 0) && nic_row_guess(ba(), 3, 80) && !nic_row_guess(ba(), 2, 79) && !nic_row_guess(ba(), 3, 20));
	CHECK(nic_row_guess(ba(), NIC_ROW_LENGTHS + 2, 40) && nic_row_guess(ba(), 2 * NIC_ROW_LENGTHS + 3, 40)); /* single ones, and puts */
	CHECK_EQ(ba()->asked->reads, LONGEST);
	apart(40, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, LONGEST & ~0xf);
	apart(1000, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, FAR);
	pair_close(&p);
}

/* Exchanges are sent there, and not timed: both ends know it. */
static void exchanges_where_lines_migrate(void)
{
	const struct nic_row_class *c;

	BEGIN_ROWS();
	ba()->migrates = true;
	ba()->row.far = 80;
	apart(40, NIC_ROW_LOOKS);
	CHECK(until(0, SLOW, FAST, LONGEST | 0xf, 100) < 40);
	ba()->row.mutual = 1 | 1 << NIC_ROW_LENGTHS | 4 << 2 * NIC_ROW_LENGTHS;
	nic_row_choose(ba());
	CHECK_EQ(ba()->asked->reads, LONGEST | 0xe);
	apart(300, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads & 1, 1);
	apart(40, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads & 1, 0);
	/* The end that decides times nothing, until there is no exchange any more. */
	ab()->migrates = true;
	ab()->row.far = 80;
	for (int i = 0; i < NIC_ROW_LOOKS; i++)
		nic_row_apart(ab(), 40);
	c = &ab()->row.at[ab()->row.place].of[0];
	for (int lap = 0; lap < 2; lap++) {
		ab()->row.mutual = !lap;
		ab()->row.seen = true;
		ab()->row.settle[0] = 1;
		for (int i = 0; i < 4; i++) {
			for (int k = 0; k < 64; k++)
				nic_long_begins(p.a.nic, p.a.vi, 0, LONG, false);
			for (int k = 0; k < 64; k++)
				nic_long_over(p.a.nic, p.a.vi, LONG, false, false);
			ab()->row.came[0] = 0; /* it does not end by that */
			usleep(1000);
		}
		CHECK_EQ(c->ns != 0, lap);
	}
	pair_close(&p);
	/* As far as it is now: a place has the distance with which it began. */
	BEGIN_ROWS();
	ba()->migrates = true;
	ba()->row.far = 80;
	apart(85, NIC_ROW_LOOKS);
	until(0, SLOW, FAST, LONGEST | 3, 100);
	ba()->row.mutual = 1;
	nic_row_choose(ba());
	CHECK_EQ(ba()->asked->reads & 1, 1);
	apart(75, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->row.place, 0);
	CHECK_EQ(ba()->asked->reads & 1, 0);
	apart(85, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads & 1, 1);
	pair_close(&p);
}

/* What was found out at one distance is kept for it. */
static void places(void)
{
	BEGIN_ROWS();
	apart(30, 1);
	apart(50, NIC_ROW_LOOKS - 1);
	CHECK_EQ(ba()->row.at[0].apart, 50);
	CHECK_EQ(ba()->asked->reads, LONGEST);
	reads_of(1, FAST, SLOW, 100);
	CHECK_EQ(ba()->row.reads, LONGEST);
	apart(300, NIC_ROW_LOOKS / 2); /* so few may be chance */
	CHECK_EQ(ba()->row.place, 0);
	ba()->row.mixed = false;
	apart(300, 1);
	CHECK_EQ(ba()->row.place, 1);
	CHECK(ba()->row.mixed); /* the row that is under way is of neither */
	CHECK_EQ(ba()->asked->reads, FAR); /* no cache is shared there */
	CHECK(until(1, FAST, SLOW, FAR & ~2, 100) < 20); /* but it need not matter */
	reads_of(1, FAST, SLOW, 200);
	for (int i = 0; i < 3; i++) {
		apart(60, NIC_ROW_LOOKS);
		CHECK_EQ(ba()->row.place, 0);
		CHECK_EQ(ba()->asked->reads, LONGEST);
		apart(290, NIC_ROW_LOOKS);
		CHECK_EQ(ba()->row.place, 1);
		CHECK_EQ(ba()->asked->reads, FAR & ~2);
	}
	/* Steps of the counter, and of one cache to the next, are no distance. */
	apart(21, NIC_ROW_LOOKS);
	apart(41, NIC_ROW_LOOKS);
	apart(90, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->row.place, 0);
	CHECK_EQ(ba()->row.at[0].apart, 50);
	apart(290, NIC_ROW_LOOKS);
	apart(UINT64_MAX, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->row.place, 2);
	CHECK_EQ(ba()->asked->reads, FAR & ~2); /* as before, which was not as guessed */
	CHECK_EQ(ba()->row.at[2].of[1].pace.cost[0], 0);
	apart(1, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->row.place, 3);
	/* There are so many: the one that was left longest ago makes room. */
	apart(300, NIC_ROW_LOOKS);
	apart(1, NIC_ROW_LOOKS);
	apart(10000, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->row.place, 0);
	CHECK_EQ(ba()->row.at[0].apart, 10000);
	CHECK_EQ(ba()->row.at[0].of[1].pace.cost[0], 0);
	apart(300, NIC_ROW_LOOKS);
	CHECK_EQ(ba()->asked->reads, FAR & ~2);
	pair_close(&p);
}

/* A line that the peer has not written since is no sample, and a row is not looked at again and again. */
static void how_far_is_asked(void)
{
	uint32_t looked;

	BEGIN_LOOKS();
	nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	for (int i = 0; i < 3; i++) {
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
		CHECK(ba()->row.looked <= 1);
	}
	for (int i = 0; i < 20; i++) {
		++*far_line();
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	}
	looked = ba()->row.looked;
	CHECK(looked == 3 || looked == 4);
	while (ba()->row.open)
		nic_long_over(p.b.nic, p.b.vi, LONG, false, false);
	usleep(1000);
	for (int i = 0; i < 2; i++) { /* the next row */
		++*far_line();
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	}
	CHECK_EQ(ba()->row.looked, looked + 1);
	for (int i = 0; i < 40; i++) /* in vain is enough at some time, too */
		nic_long_begins(p.b.nic, p.b.vi, 0, LONG, false);
	CHECK_EQ(ba()->row.look, 4 * NIC_ROW_LOOK);
	CHECK_EQ(ba()->row.looked, looked + 1);
	pair_close(&p);
}

int main(void)
{
	CASE(what_is_far);
	CASE(guesses);
	CASE(guesses_where_lines_migrate);
	CASE(exchanges_where_lines_migrate);
	CASE(places);
	CASE(how_far_is_asked);
	return check_done();
}
