/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages that had better be sent than read (nic_rather_sent): which, and what a sender that is away makes of it.  Rows of them are in long_rows.c. */
#include "tests/unit/nicemu/shared.h"

/* Up to a length of this machine's, of a connected VI, while each process has its core, and not from memory in the card. */
static bool rather_sent(uint64_t at, uint64_t len)
{
	bool single = false;

	return nic_rather_sent(p.a.nic, p.a.vi, at, len, &single);
}

static void messages_rather_sent(void)
{
	uint64_t at;
	void *in_card;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	at = (uintptr_t)p.a.mem;
	ab()->send_max = 1000;
	CHECK(rather_sent(at, 1000));
	CHECK(!rather_sent(at, 1001));
	CHECK(!rather_sent((uintptr_t)nic_buffer(p.a.nic, 0), 1000));
	if (nic_mem_alloc(p.a.nic, 1000, &in_card) == NIC_OK) {
		CHECK(!rather_sent((uintptr_t)in_card, 1000));
		CHECK_EQ(nic_mem_free(p.a.nic, in_card), NIC_OK);
	}
	p.a.nic->waiting.crowded = true;
	CHECK(!rather_sent(at, 1000));
	p.a.nic->waiting.crowded = false;
	CHECK_EQ(nic_disconnect(p.a.nic, p.a.vi), NIC_OK);
	CHECK(!rather_sent(at, 1000));
	pair_close(&p);
}

/* The same of one that leaves at once, if it is single; is it? */
static bool sent_at_once(uint64_t at, uint64_t len, bool *single)
{
	*single = true;
	return nic_rather_sent(p.a.nic, p.a.vi, at, len, single);
}

/* A sender that computes while its peer waits has some of its next long messages read, the more often the more. */
static void senders_that_are_away(void)
{
	enum { LONG = 300 << 10 };
	uint64_t at;
	uint32_t read = 0;
	struct nic_link *link;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	at = (uintptr_t)p.a.mem;
	ab()->send_max = LONG;
	for (int round = 0; round < 3; round++) {
		while (!rather_sent(at, LONG))
			read++;
		CHECK(rather_sent(at, 1000)); /* whatever is said of long ones */
		CHECK_EQ(read, round == 0 ? 0 : round == 1 ? 1 : 4); /* 1, 3, ... */
		nic_buf_give(p.a.nic, nic_buf_take(p.a.nic)); /* the first part, with the envelope: it has looked at nothing yet */
		CHECK(p.a.nic->promise.to);
		p.a.nic->promise.at -= 5000000; /* ns ago */
		p.a.nic->looks++;
		nic_buf_give(p.a.nic, nic_buf_take(p.a.nic));
		CHECK(!p.a.nic->promise.to);
		CHECK_EQ(counter(p.a.nic, "sent_away"), round + 1);
	}
	CHECK_EQ(ab()->send.depth, 7);
	/* But not of an exchange where lines migrate in a cache that is shared: there the peer is away, too. */
	link = ab();
	link->migrates = true;
	link->row.ns = 40;
	CHECK(!rather_sent(at, LONG));
	link->row.mutual = 2; /* messages as long as that, */
	CHECK(rather_sent(at, LONG));
	CHECK(!rather_sent(at, LONG - (200 << 10))); /* and no shorter ones, */
	p.a.nic->looks++;
	CHECK(!rather_sent(at, LONG)); /* nor single ones */
	CHECK(rather_sent(at, LONG));
	for (uint32_t other = 0; other < 2; other++) { /* what was promised to that peer no longer counts */
		p.a.nic->promise = (struct nic_promise){ .to = link->peer + 1 + other };
		CHECK(rather_sent(at, LONG));
		CHECK_EQ(p.a.nic->promise.to, other ? link->peer + 2 : 0);
	}
	p.a.nic->promise.to = 0;
	link->row.ns = 130;
	CHECK(!rather_sent(at, LONG));
	link->row.ns = 40;
	link->migrates = false;
	CHECK(!rather_sent(at, LONG));
	link->row.mutual = 0;
	p.a.nic->promise.to = 0;
	/* One that looks all the time does not mind how long it takes; nor one that is soon back. */
	for (int round = 0; round < 8; round++) {
		while (!rather_sent(at, LONG))
			read++;
		p.a.nic->promise.at += round % 2 ? -5000000 : 1000000000; /* long ago; to come, as if no time had gone */
		p.a.nic->looks += round % 2 ? 101 : 1;
		nic_buf_give(p.a.nic, nic_buf_take(p.a.nic));
	}
	CHECK(ab()->send.depth < 7);
	CHECK_EQ(counter(p.a.nic, "sent_away") + ab()->send.depth, 3);
	/* The peer that it was said of is gone. */
	while (!rather_sent(at, LONG))
		;
	link = ab();
	p.a.nic->link[p.b.nic->me] = NULL;
	p.a.nic->looks++;
	nic_buf_give(p.a.nic, nic_buf_take(p.a.nic));
	CHECK(!p.a.nic->promise.to);
	p.a.nic->link[p.b.nic->me] = link;
	pair_close(&p);
}

/* Not of single ones that leave at once, for which nobody waits: neither is anything promised, nor does what is said of others hold them up. */
static void single_ones_at_once(void)
{
	enum { LONG = 200 << 10 };
	struct nic_promise *promise;
	uint64_t at;
	bool single;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	at = (uintptr_t)p.a.mem;
	promise = &p.a.nic->promise;
	ab()->send_max = LONG;
	atomic_store(&ab()->asking->reads, 0);
	p.a.nic->looks++;
	CHECK(sent_at_once(at, LONG, &single) && single);
	CHECK(!promise->to);
	CHECK(sent_at_once(at, LONG, &single) && !single); /* no look in between: it is of many, and waits */
	CHECK(promise->to);
	ab()->send.alone = 100;
	CHECK(!sent_at_once(at, LONG, &single) && !single);
	CHECK_EQ(ab()->send.alone, 99);
	p.a.nic->looks++;
	CHECK(sent_at_once(at, LONG, &single) && single);
	CHECK_EQ(ab()->send.alone, 99);
	atomic_store(&ab()->asking->reads, ~0u); /* the peer has found out that it had better read them */
	p.a.nic->looks++;
	CHECK(!sent_at_once(at, LONG, &single) && single);
	atomic_store(&ab()->asking->reads, 0);
	p.a.nic->looks++;
	CHECK(!sent_at_once(at, LONG + 1, &single) && single);
	promise->to = 0;
	ab()->send.alone = 0;
	pair_close(&p);
}

/* So has one that writes its messages anew in between, from when it is late on; nor does it need to look for that. */
static void senders_that_write(void)
{
	enum { LONG = 4 << 20 };
	struct nic_promise *promise;
	uint64_t at, first;
	bool cma;

	SKIP_ASKING();
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	at = (uintptr_t)p.a.mem;
	promise = &p.a.nic->promise;
	ab()->send_max = LONG;
	atomic_store(&ab()->asking->reads, 0); /* what the peer would rather have is another thing */
	CHECK(rather_sent(at, LONG));
	first = promise->at += 1000000000; /* to come, as if no time went by here */
	CHECK(rather_sent(at, LONG));
	CHECK_EQ(promise->at, first); /* which waits as well */
	CHECK_EQ(promise->read, 2 * (LONG / 8));
	ab()->row.ns = ab()->row.far;
	CHECK(rather_sent(at, LONG));
	CHECK_EQ(promise->read, 2 * (LONG / 8) + LONG / 4);
	ab()->row.ns = 0;
	promise->at -= 1001000000;
	promise->read = 60000000000; /* a minute */
	CHECK(rather_sent(at, LONG));
	CHECK_EQ(counter(p.a.nic, "sent_away"), 0);
	promise->read = 900000;
	CHECK(!rather_sent(at, LONG));
	CHECK_EQ(counter(p.a.nic, "sent_away"), 1);
	CHECK(!promise->to);
	/* Who has looked begins anew, whatever went before. */
	CHECK(rather_sent(at, LONG));
	first = promise->at += 1000000000;
	p.a.nic->looks++;
	CHECK(rather_sent(at, LONG));
	CHECK(promise->at < first);
	CHECK_EQ(promise->read, LONG / 8);
	/* What nobody can read alone is sent. */
	cma = ab()->cma;
	ab()->cma = false;
	promise->at -= 5000000;
	CHECK(rather_sent(at, LONG));
	CHECK_EQ(counter(p.a.nic, "sent_away"), 1);
	ab()->cma = cma;
	pair_close(&p);
}

int main(void)
{
	CASE(messages_rather_sent);
	CASE(senders_that_are_away);
	CASE(single_ones_at_once);
	CASE(senders_that_write);
	return check_done();
}
