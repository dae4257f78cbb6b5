/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA in the command (nic_rdma_now), for which nobody is asked: what it does, refuses and leaves to a descriptor.
 */
#include "tests/unit/nicemu/shared.h"

static struct nic_rdma command(uint32_t op, uint32_t local, uint32_t remote, uint32_t len)
{
	return (struct nic_rdma){ (uintptr_t)p.a.mem + local, (uintptr_t)p.b.mem + remote, p.a.handle, p.b.handle, len, op };
}

static int now(const struct nic_rdma *r)
{
	return nic_rdma_now(p.a.nic, p.a.vi, r);
}

static void commands_of_every_size(void)
{
	BEGIN(0, UINT32_MAX);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];
		struct nic_rdma r = command(NIC_CTL_RDMA_WRITE, 3, 5, n);

		pattern(p.a.mem + 3, n, i);
		memset(p.b.mem, 0, n + 10);
		CHECK_EQ(now(&r), NIC_OK);
		CHECK(is_pattern(p.b.mem + 5, n, i));
		CHECK(p.b.mem[4] == 0 && p.b.mem[5 + n] == 0);
		memset(p.a.mem, 0, n + 10);
		r = command(NIC_CTL_RDMA_READ, 1, 5, n);
		CHECK_EQ(now(&r), NIC_OK);
		CHECK(is_pattern(p.a.mem + 1, n, i));
		CHECK(p.a.mem[0] == 0 && p.a.mem[1 + n] == 0);
	}
	CHECK_EQ(counter(p.a.nic, "rdma_now"), 2 * sizeof(sizes) / sizeof(sizes[0]));
	CHECK_EQ(counter(p.a.nic, "bytes_read"), counter(p.a.nic, "bytes_write"));
	CHECK_EQ(counter(p.a.nic, "send_descriptors"), 0);
	pair_close(&p);
}

static int refused(const struct nic_rdma *r)
{
	int err = now(r);

	CHECK_EQ(p.a.mem[0], 1);
	CHECK_EQ(p.b.mem[0], 2);
	return err == NIC_NOT_DONE;
}

/* What is wrong with a command is not told: nothing happens, and its descriptor will be. */
static void commands_refused(void)
{
	struct nic_rdma r, bad;
	struct nic_desc *d;

	BEGIN(0, UINT32_MAX);
	p.a.mem[0] = 1;
	p.b.mem[0] = 2;
	r = command(NIC_CTL_RDMA_WRITE, 0, 0, 1);
	bad = r, bad.length = 0;
	CHECK(refused(&bad));
	bad = r, bad.length = PAIR_MEM + 1;
	CHECK(refused(&bad));
	bad = r, bad.local--, bad.length = 2;
	CHECK(refused(&bad));
	bad = r, bad.remote += PAIR_MEM;
	CHECK(refused(&bad));
	bad = r, bad.local_handle++;
	CHECK(refused(&bad));
	bad = r, bad.remote_handle++;
	CHECK(refused(&bad));
	/* Before what is queued it must not go. */
	for (int i = 0; i < NIC_RING_CELLS + 40; i++)
		recv_desc(&p.b, fill(&p.b, i, 0, p.b.mem + 64, 64));
	for (int i = 0; i < NIC_RING_CELLS + 30; i++)
		send_desc(&p.a, fill(&p.a, i, 0, p.a.mem + 64, 16));
	CHECK(refused(&r));
	pair_poll(&p);
	CHECK_EQ(counter(p.a.nic, "rdma_now"), 0);
	CHECK_EQ(counter(p.a.nic, "protection_errors"), 0);
	CHECK_EQ(now(&r), NIC_OK);
	CHECK_EQ(p.b.mem[0], 1);
	p.b.mem[0] = 2;
	CHECK_EQ(nic_mem_set(p.b.nic, (uintptr_t)p.b.mem, p.b.handle, &(struct nic_mem_attr){ .ptag = p.b.ptag, .flags = NIC_MEM_RDMA_WRITE }), NIC_OK);
	r.op = NIC_CTL_RDMA_READ;
	CHECK(refused(&r));
	d = post(0, NIC_CTL_RDMA_READ, 0, 0, 1);
	pair_poll(&p);
	CHECK(status_of(d) & NIC_ST_RDMA_PROT);
	r.op = NIC_CTL_RDMA_WRITE;
	CHECK(refused(&r)); /* the VI is in error now */
	pair_close(&p);
}

/* What the other NIC takes part in needs a descriptor; as long as that NIC is not there, or was late, this one does all of it. */
static void commands_only_alone(void)
{
	struct nic_rdma packets, half, between;

	BEGIN(1000, 65536);
	packets = command(NIC_CTL_RDMA_WRITE, 0, 0, 1000);
	between = command(NIC_CTL_RDMA_WRITE, 0, 0, 1001);
	half = command(NIC_CTL_RDMA_READ, 0, 0, 65536);
	CHECK_EQ(now(&packets), NIC_NOT_DONE);
	CHECK_EQ(now(&half), NIC_NOT_DONE);
	CHECK_EQ(now(&between), NIC_OK);
	half.length--;
	CHECK_EQ(now(&half), NIC_OK);
	packets.op = NIC_CTL_RDMA_READ;
	CHECK_EQ(now(&packets), NIC_NOT_DONE);
	packets.op = NIC_CTL_RDMA_WRITE;
	ab()->put.alone = 2;
	CHECK_EQ(now(&packets), NIC_OK);
	CHECK_EQ(now(&between), NIC_OK); /* of that size it would not be asked anyway */
	CHECK_EQ(now(&packets), NIC_OK);
	CHECK_EQ(now(&packets), NIC_NOT_DONE);
	half.length++;
	CHECK_EQ(now(&half), NIC_NOT_DONE);
	ab()->absent = true;
	ab()->absent_seen = atomic_load(&ab()->asked->seen);
	CHECK_EQ(now(&packets), NIC_OK);
	packets.op = NIC_CTL_RDMA_READ;
	CHECK_EQ(now(&packets), NIC_OK);
	CHECK_EQ(now(&half), NIC_OK);
	pair_close(&p);
}

/* By a command if it is done alone, else by a descriptor; true: alone. */
static bool went_alone(uint32_t op, uint32_t len, unsigned seed)
{
	struct nic_rdma r = command(op, 0, 0, len);
	uint8_t *from = op == NIC_CTL_RDMA_READ ? p.b.mem : p.a.mem, *to = op == NIC_CTL_RDMA_READ ? p.a.mem : p.b.mem;
	bool alone;

	pattern(from, len, seed);
	memset(to, 0x55, len);
	alone = now(&r) == NIC_OK;
	if (!alone)
		post(0, (uint16_t)op, 0, 0, len);
	pair_poll(&p);
	CHECK(alone || good(&p.a.desc[0]));
	CHECK(is_pattern(to, len, seed));
	return alone;
}

/* Single transfers of some lengths are timed, alone and by halves, reads and writes each for themselves; others go as their length says. */
static void timed_halves(void)
{
	static const uint32_t op[] = { NIC_CTL_RDMA_READ, NIC_CTL_RDMA_WRITE };
	struct nic_rdma r;

	BEGIN(0, UINT32_MAX);
	ab()->half_race_max = 70000;
	pair_poll(&p);
	for (unsigned write = 0; write < 2; write++) {
		const struct nic_pace *pace = ab()->half_pace[write];

		for (unsigned i = 0; i < 2 * NIC_PACE_FIRST_TRY; i++)
			CHECK_EQ(went_alone(op[write], 32768, i), i < NIC_PACE_FIRST_TRY);
		CHECK(pace[0].cost[0] && pace[0].cost[1]);
		CHECK(!pace[1].cost[0]);
		CHECK(went_alone(op[write], 16384, 1)); /* too short */
		CHECK(went_alone(op[write], 70001, 2)); /* too long */
		CHECK(!pace[2].cost[0]);
		for (uint8_t way = 0; way < 2; way++) {
			ab()->half_pace[write][1] = (struct nic_pace){ .cost = { 2u << (29 * way), 2u << (29 * !way) }, .way = way, .period = 32 };
			CHECK_EQ(went_alone(op[write], 32769, way), !way);
		}
		r = command(op[write], 0, 0, 32769);
		CHECK_EQ(now(&r), NIC_NOT_DONE);
		r.length = 100;
		CHECK_EQ(now(&r), NIC_OK);
		r.length = 32769;
		CHECK_EQ(now(&r), NIC_OK); /* one in a row is not timed */
		pair_poll(&p);
	}
	CHECK_EQ(counter(p.a.nic, "bytes_own_half") + counter(p.a.nic, "bytes_peer_half"), 2 * (NIC_PACE_FIRST_TRY * 32768 + 32769));
	pair_close(&p);
}

/* How many of some transfers of a class, one direction beside the other, and in bursts, were timed.  Alone is the faster way. */
static unsigned timed_of(unsigned write, unsigned bursts)
{
	struct nic_rdma r = command(write ? NIC_CTL_RDMA_WRITE : NIC_CTL_RDMA_READ, 0, 0, 257);
	struct nic_pace *pace = &ab()->brief_pace[write][2];
	unsigned timed = 0;

	for (unsigned i = 0; i < 4 * NIC_BRIEF_EVERY; i++) {
		for (unsigned dir = 0; dir < 2; dir++)
			ab()->brief_pace[dir][2] = (struct nic_pace){ .cost = { 1, 1u << 29 }, .period = NIC_PACE_MOST };
		CHECK(went_alone(NIC_CTL_RDMA_READ, 257, i));
		CHECK(went_alone(NIC_CTL_RDMA_WRITE, 257, i));
		for (unsigned k = 0; k < bursts; k++) { /* in a row with the one before */
			r.length = 1000;
			CHECK_EQ(now(&r), NIC_OK);
			r.length = 257; /* a read in packets */
			CHECK_EQ(now(&r), write ? NIC_OK : NIC_NOT_DONE);
		}
		pair_poll(&p);
		timed += pace->gone;
	}
	return timed;
}

/* So are short ones, alone and in packets, but for writes in buffers that have not been written before; once it is known which way is faster, one of some. */
static void timed_briefs(void)
{
	static const uint32_t op[] = { NIC_CTL_RDMA_READ, NIC_CTL_RDMA_WRITE };

	BEGIN(0, UINT32_MAX);
	ab()->get_max = ab()->put_max = 512;
	ab()->brief_race_max[0] = ab()->brief_race_max[1] = 512;
	pair_poll(&p);
	for (unsigned write = 0; write < 2; write++) {
		struct nic_pace *pace = ab()->brief_pace[write];

		for (unsigned i = 0; i < 2 * NIC_PACE_FIRST_TRY; i++)
			CHECK_EQ(went_alone(op[write], 33, i), i < NIC_PACE_FIRST_TRY);
		CHECK(pace[1].cost[0]);
		CHECK_EQ(!pace[1].cost[1], write);
		for (unsigned i = 0; i < 200 && pace[1].trial; i++)
			CHECK(!went_alone(op[write], 33, i));
		CHECK(pace[1].cost[1] && !pace[1].trial);
		CHECK(went_alone(op[write], 513, 2)); /* too long */
		CHECK(!pace[0].cost[0] && !pace[2].cost[0]);
		for (uint8_t way = 0; way < 2; way++) {
			pace[2] = (struct nic_pace){ .cost = { 2u << (29 * way), 2u << (29 * !way) }, .way = way, .period = NIC_PACE_MOST };
			CHECK_EQ(went_alone(op[write], 257, way), !way);
		}
	}
	for (unsigned write = 0; write < 2; write++)
		for (unsigned bursts = 0; bursts < 16; bursts += 15)
			CHECK_EQ(timed_of(write, bursts), 4);
	pair_close(&p);
}

static bool no_brief_timed(void)
{
	for (unsigned i = 0; i < 2 * NIC_BRIEF_RACES; i++) {
		const struct nic_pace *pace = &ab()->brief_pace[i / NIC_BRIEF_RACES][i % NIC_BRIEF_RACES];

		if (pace->cost[0] || pace->cost[1] || pace->gone)
			return false;
	}
	return true;
}

/* Those of up to 16 KB race, too, by twice as many bytes, even where no length says packets. */
static void timed_middle(void)
{
	static const uint32_t op[] = { NIC_CTL_RDMA_READ, NIC_CTL_RDMA_WRITE };

	BEGIN(0, UINT32_MAX);
	ab()->get_max = 512;
	ab()->brief_race_max[0] = ab()->brief_race_max[1] = NIC_RACE_ABOVE;
	pair_poll(&p);
	memset(p.a.nic->buffer_known, UINT8_MAX, sizeof(p.a.nic->buffer_known));
	for (unsigned write = 0; write < 2; write++)
		for (uint32_t class = 2, len = 512; len <= NIC_RACE_ABOVE; class ++, len *= 2) {
			struct nic_pace *pace = &ab()->brief_pace[write][class];

			for (unsigned i = 0; i < 2 * NIC_PACE_FIRST_TRY; i++)
				CHECK_EQ(went_alone(op[write], len - i % 3, i), i < NIC_PACE_FIRST_TRY);
			CHECK(pace->cost[0] && pace->cost[1] && pace->period);
			for (uint8_t way = 0; way < 2; way++) {
				*pace = (struct nic_pace){ .cost = { 2u << (29 * way), 2u << (29 * !way) }, .way = way, .period = NIC_PACE_MOST };
				CHECK_EQ(went_alone(op[write], len, way), !way);
			}
			*pace = (struct nic_pace){ .cost = { 0 } };
			CHECK(no_brief_timed()); /* no other class was timed */
		}
	CHECK(went_alone(NIC_CTL_RDMA_READ, NIC_RACE_ABOVE + 1, 1)); /* too long */
	CHECK(no_brief_timed());
	pair_close(&p);
}

/* Long ones that race as streams or otherwise: alone, by command. */
static void timed_streams(void)
{
	static const uint32_t op[] = { NIC_CTL_RDMA_READ, NIC_CTL_RDMA_WRITE };

	BEGIN(0, UINT32_MAX);
	ab()->race_max = 70000;
	pair_poll(&p);
	memset(p.a.nic->buffer_known, UINT8_MAX, sizeof(p.a.nic->buffer_known));
	for (unsigned write = 0; write < 2; write++) {
		for (unsigned i = 0; i < 2 * NIC_PACE_FIRST_TRY; i++)
			CHECK_EQ(went_alone(op[write], 65536, i), i < NIC_PACE_FIRST_TRY);
		CHECK(ab()->pace[write][1].cost[0] && ab()->pace[write][1].cost[1]);
		for (uint8_t way = 0; way < 2; way++) {
			ab()->pace[write][1] = (struct nic_pace){ .cost = { 2u << (29 * way), 2u << (29 * !way) }, .way = way, .period = 32 };
			CHECK_EQ(went_alone(op[write], 65536, way), !way);
		}
	}
	CHECK_EQ(counter(p.a.nic, "rdma_now"), 2 * (NIC_PACE_FIRST_TRY + 1));
	pair_close(&p);
}

/* One of many goes in packets where a single one does not: others are under way, or the host has not looked since the one before. */
static void many_in_a_row(void)
{
	struct nic_taken taken = { .data = NULL };
	struct nic_rdma write, read;
	struct nic_desc *d;

	BEGIN(0, UINT32_MAX);
	ab()->put_max = 100;
	ab()->put_busy = 5000;
	ab()->stream_busy = 3000;
	pattern(p.a.mem, 5000, 1);
	write = command(NIC_CTL_RDMA_WRITE, 0, 0, 5000);
	read = command(NIC_CTL_RDMA_READ, 0, 0, 3000);
	nic_poll(p.a.nic);
	ab()->put_max = 5000;
	CHECK_EQ(now(&write), NIC_NOT_DONE); /* and nothing has begun */
	ab()->put_max = 100;
	CHECK_EQ(now(&write), NIC_OK);
	CHECK_EQ(now(&write), NIC_NOT_DONE);
	CHECK_EQ(now(&read), NIC_NOT_DONE);
	nic_poll(p.a.nic);
	CHECK_EQ(now(&read), NIC_OK);
	CHECK_EQ(now(&read), NIC_NOT_DONE);
	nic_take_of(p.a.nic, p.a.vi, &p.a.recv_cq, &taken); /* a look at the link alone is one, too */
	CHECK_EQ(now(&write), NIC_OK);
	write.length = 5001;
	CHECK_EQ(now(&write), NIC_OK);
	read.length = 3001;
	CHECK_EQ(now(&read), NIC_OK);
	/* By descriptor the same; what is under way makes it a row, too. */
	nic_poll(p.a.nic);
	CHECK(good(post(0, NIC_CTL_RDMA_WRITE, 0, 0, 5000)));
	d = post(1, NIC_CTL_RDMA_WRITE, 0, 0, 5000);
	CHECK(!done(d));
	nic_poll(p.a.nic);
	CHECK(!done(post(2, NIC_CTL_RDMA_WRITE, 0, 0, 5000)));
	pair_poll(&p);
	CHECK(good(d) && good(&p.a.desc[2]));
	CHECK(is_pattern(p.b.mem, 5000, 1));
	CHECK_EQ(counter(p.a.nic, "shared"), 2);
	pair_close(&p);
}

/* Where processes share cores the peer would do its part when this one waits: alone.  But single short ones go the way that is faster. */
static void many_where_cores_are_short(void)
{
	struct nic_rdma write, read;

	BEGIN(0, UINT32_MAX);
	ab()->put_max = ab()->put_busy = ab()->stream_max = ab()->stream_busy = 5000;
	ab()->brief_race_max[1] = 512;
	ab()->brief_pace[1][1].way = 1;
	p.a.nic->waiting.crowded = true;
	write = command(NIC_CTL_RDMA_WRITE, 0, 0, 5000);
	read = command(NIC_CTL_RDMA_READ, 0, 0, 5000);
	CHECK_EQ(now(&write), NIC_NOT_DONE); /* the way is set */
	CHECK_EQ(now(&read), NIC_NOT_DONE);
	ab()->impatient = true;
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(now(&write), NIC_OK);
		CHECK_EQ(now(&read), NIC_OK);
	}
	CHECK(good(post(0, NIC_CTL_RDMA_WRITE, 0, 0, 5000)));
	CHECK(good(post(1, NIC_CTL_RDMA_READ, 0, 0, 5000)));
	CHECK_EQ(counter(p.a.nic, "shared"), 0);
	write.length = 100;
	CHECK_EQ(now(&write), NIC_OK);
	nic_poll(p.a.nic);
	CHECK_EQ(now(&write), NIC_NOT_DONE);
	ab()->brief_race_max[1] = NIC_RACE_ABOVE;
	for (unsigned class = 0; class < NIC_BRIEF_RACES; class ++)
		ab()->brief_pace[1][class].way = 1;
	for (uint32_t longer = 0; longer < 2; longer++) {
		write.length = 1024 + longer;
		nic_poll(p.a.nic);
		CHECK_EQ(now(&write), longer ? NIC_OK : NIC_NOT_DONE);
	}
	ab()->race_max = 70000;
	ab()->pace[1][1].way = 1;
	write.length = 65536;
	nic_poll(p.a.nic);
	CHECK_EQ(now(&write), NIC_OK);
	p.a.nic->waiting.crowded = false;
	nic_poll(p.a.nic);
	CHECK_EQ(now(&write), NIC_NOT_DONE);
	pair_close(&p);
}

/* So are halves of a write, but not of a read; of a single one from another size on. */
static void halves_in_a_row(void)
{
	struct nic_rdma write, read;
	struct nic_desc *d;

	BEGIN(0, 30000);
	ab()->half_row = 20000;
	pattern(p.a.mem, 20000, 1);
	write = command(NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	read = command(NIC_CTL_RDMA_READ, 0, 0, 20000);
	nic_poll(p.a.nic);
	CHECK_EQ(now(&write), NIC_OK);
	CHECK_EQ(now(&write), NIC_NOT_DONE);
	CHECK_EQ(now(&read), NIC_OK);
	write.length--;
	CHECK_EQ(now(&write), NIC_OK);
	CHECK_EQ(counter(p.a.nic, "shared"), 0);
	d = post(0, NIC_CTL_RDMA_WRITE, 0, 0, 20000);
	CHECK(!done(d));
	pair_poll(&p);
	CHECK(good(d));
	CHECK(is_pattern(p.b.mem, 20000, 1));
	CHECK_EQ(counter(p.a.nic, "shared"), 1);
	CHECK(counter(p.a.nic, "bytes_peer_half") > 0);
	nic_poll(p.a.nic);
	CHECK(good(post(1, NIC_CTL_RDMA_WRITE, 0, 0, 20000)));
	CHECK_EQ(counter(p.a.nic, "shared"), 1);
	pair_close(&p);
}

int main(void)
{
	CASE(commands_of_every_size);
	CASE(commands_refused);
	CASE(commands_only_alone);
	CASE(timed_halves);
	CASE(timed_briefs);
	CASE(timed_middle);
	CASE(timed_streams);
	CASE(many_in_a_row);
	CASE(many_where_cores_are_short);
	CASE(halves_in_a_row);
	return check_done();
}
