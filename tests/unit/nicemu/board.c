/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The boards of a group (mem/board.h, strat/meet_board.c): what is over at once, one acknowledgement for many parts,
 * broadcasts in buffers that take turns and come back, lengths that differ, lies on a foreign board, and no sleep over what has come.
 */
#include "tests/unit/nicemu/members.h"

/* The last to come to a barrier, a root with room, and a receiver that is late need not come again. */
static void over_at_once(void)
{
	uint32_t op[MANY];

	join(1, MANY);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
		CHECK_EQ(op[i] == NIC_OP_OVER, i + 1 == MANY);
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(over(i, op[i], NULL), NIC_OK);
	memset(data[0], 7, 30000);
	CHECK_EQ(bcast(0, 0, 30000), NIC_OP_OVER);
	for (int i = 1; i < MANY; i++) {
		CHECK_EQ(bcast(i, 0, 30000), NIC_OP_OVER);
		CHECK(memcmp(data[i], data[0], 30000) == 0);
	}
	CHECK_EQ(count(0, NIC_C_barriers), 1);
	CHECK_EQ(count(1, NIC_C_broadcasts), 1);
	leave(MANY);
}

/* A broadcast of so many bytes to the others; how many of its parts migrated at one of them? */
static uint64_t migrated(int many, uint32_t len)
{
	uint64_t before = count(1, NIC_C_migrated);

	for (uint32_t i = 0; i < len; i++)
		data[0][i] = (uint8_t)(i % 249 + len);
	for (int i = 1; i < many; i++)
		memset(data[i], GUARD, len + 1);
	CHECK_EQ(bcast(0, 0, len), NIC_OP_OVER);
	for (int i = 1; i < many; i++) {
		CHECK_EQ(bcast(i, 0, len), NIC_OP_OVER);
		CHECK(memcmp(data[0], data[i], len) == 0);
		CHECK_EQ(data[i][len], GUARD);
	}
	return count(1, NIC_C_migrated) - before;
}

/* Where lines migrate those of long parts of a group of two do, unless that takes long, or cores are short. */
static void lines_migrate(void)
{
	enum { PART = 8192, LEAST = 3072 };

	for (int many = 2; many <= MANY; many++) {
		struct nic_doubt *doubt;

		join(40 + (uint32_t)many, many);
		doubt = &n[1]->groups->group[group[1]].migrate;
		for (int on = 0; on < 2; on++)
			for (uint32_t len = 1000; len < 60000; len += 9001) {
				uint64_t parts = on && many == 2 ? len / PART + (len % PART >= LEAST) : 0, n1 = 0;

				n[1]->migrates = n[2]->migrates = on;
				for (int i = 0; i < 20; i++) { /* times: the machine may be away in between */
					*doubt = (struct nic_doubt){ .depth = 0 };
					n1 = migrated(many, len);
					if (n1 == parts)
						break;
				}
				CHECK_EQ(n1, parts);
			}
		*doubt = (struct nic_doubt){ .alone = 3, .depth = 7 };
		CHECK_EQ(migrated(many, 3 * PART), 0);
		CHECK_EQ(doubt->alone, many == 2 ? 0 : 3);
		n[1]->waiting.crowded = true;
		CHECK_EQ(migrated(many, 3 * PART), 0);
		n[1]->waiting.crowded = false;
		leave(many);
	}
	n[1]->migrates = n[2]->migrates = false;
}

static void places_are_used_again(void)
{
	uint32_t late;

	join(2, 2);
	for (int k = 0; k < NIC_BOARD_PLACES; k++) {
		data[0][0] = (uint8_t)k;
		CHECK_EQ(bcast(0, 0, 1), NIC_OP_OVER);
	}
	data[0][0] = 99;
	late = bcast(0, 0, 1);
	CHECK(late != NIC_OP_OVER);
	poll_all();
	CHECK_EQ(nic_op_test(n[0], late, NULL), NIC_NOT_DONE);
	for (int k = 0; k < NIC_BOARD_PLACES; k++) {
		CHECK_EQ(bcast(1, 0, 1), NIC_OP_OVER);
		CHECK_EQ(data[1][0], k);
	}
	CHECK_EQ(over(0, late, NULL), NIC_OK);
	CHECK_EQ(bcast(1, 0, 1), NIC_OP_OVER);
	CHECK_EQ(data[1][0], 99);
	leave(2);
}

/* More parts than places: the receiver takes what is there at once, and the rest later. */
static void in_two_goes(void)
{
	enum { LEN = NIC_BOARD_PLACES * 8192 + 5000 };
	uint32_t first, second;

	join(11, 2);
	for (uint32_t i = 0; i < LEN; i++)
		data[0][i] = (uint8_t)(i % 251);
	for (int k = 0; k < 3; k++) {
		memset(data[1], GUARD, sizeof(data[1]));
		first = bcast(0, 0, LEN);
		CHECK(first != NIC_OP_OVER);
		second = bcast(1, 0, LEN);
		CHECK(second != NIC_OP_OVER);
		CHECK_EQ(over(0, first, NULL), NIC_OK);
		CHECK_EQ(over(1, second, NULL), NIC_OK);
		CHECK(memcmp(data[0], data[1], LEN) == 0);
		CHECK_EQ(data[1][LEN], GUARD);
	}
	leave(2);
}

/* There are places for a second one, but its buffers are those of the first, which has yet to be read. */
static void buffers_are_used_again(void)
{
	uint32_t late;

	join(16, 2);
	memset(data[0], 1, 65536);
	CHECK_EQ(bcast(0, 0, 65536), NIC_OP_OVER);
	memset(data[0], 2, 65536);
	late = bcast(0, 0, 65536);
	CHECK(late != NIC_OP_OVER);
	poll_all();
	CHECK_EQ(nic_op_test(n[0], late, NULL), NIC_NOT_DONE);
	CHECK(!nic_group_moves(n[0]));
	CHECK_EQ(bcast(1, 0, 65536), NIC_OP_OVER);
	CHECK(data[1][0] == 1 && data[1][65535] == 1);
	CHECK(nic_group_moves(n[0]));
	CHECK_EQ(over(0, late, NULL), NIC_OK);
	CHECK_EQ(bcast(1, 0, 65536), NIC_OP_OVER);
	CHECK(data[1][0] == 2 && data[1][65535] == 2);
	leave(2);
}

/* As if so many barriers had been, and so many broadcasts of each member, each of one part. */
static void begin_at(int many, uint32_t at)
{
	for (int i = 0; i < many; i++) {
		struct nic_group *g = &n[i]->groups->group[group[i]];

		g->barriers = g->bcasts = g->sent = g->put = g->read = at;
		nic_store_release(&g->board->barrier, at * NIC_BOARD_BARRIER);
		for (int k = 0; k < NIC_BOARD_BUFFERS; k++)
			g->used[k] = at;
		for (int k = 0; k < many; k++) {
			g->member[k].bcasts = g->member[k].current = g->member[k].parts = g->member[k].told = at;
			nic_store_release(&g->board->taken[k], (uint16_t)at);
		}
	}
}

/* Of three members, of all kinds of lengths, with a barrier now and then. */
static void numbers_wrap(void)
{
	static const uint32_t lengths[] = { 8, 40, 49, 256, 300, 1000, 9000, 70000 };
	enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };
	uint32_t op[MANY];

	join(26, MANY);
	begin_at(MANY, (uint32_t)-50);
	for (int k = 0; k < 300; k++) {
		uint32_t len = lengths[k % LENGTHS];
		int root = k % MANY;

		for (int i = 0; i < MANY; i++)
			memset(data[i], i == root ? k : GUARD, len + 1);
		for (int i = 0; i < MANY; i++)
			op[i] = bcast(i, root, len);
		for (int i = 0; i < MANY; i++) {
			CHECK(op[i] == NIC_OP_OVER || over(i, op[i], NULL) == NIC_OK);
			CHECK(data[i][0] == (uint8_t)k && data[i][len - 1] == (uint8_t)k);
		}
		for (int i = 0; i < MANY && k % 4 == 0; i++) {
			CHECK(i == 0 || op[i - 1] != NIC_OP_OVER);
			CHECK_EQ(nic_barrier(n[i], group[i], &op[i]), NIC_OK);
		}
		for (int i = 0; i < MANY && k % 4 == 0; i++)
			CHECK(op[i] == NIC_OP_OVER || over(i, op[i], NULL) == NIC_OK);
	}
	for (int i = 0; i < MANY; i++) {
		CHECK((int32_t)n[i]->groups->group[group[i]].barriers > 0);
		CHECK((int32_t)n[i]->groups->group[group[i]].bcasts > 0);
	}
	leave(MANY);
}

static int buffers_taken(int i)
{
	int taken = 0;

	for (int k = 0; k < NIC_BOARD_BUFFERS; k++)
		taken += board_of(i)->buffer[k] != 0;
	return taken;
}

/* Broadcast number k, sent or received. */
static uint32_t numbered_of(int i, int k, uint32_t len)
{
	uint32_t op;

	memset(data[i], i == 0 ? k : GUARD, len + 1);
	op = bcast(i, 0, len);
	CHECK(op != NIC_OP_OVER || (data[i][0] == k && data[i][len - 1] == k));
	CHECK(i == 0 || data[i][len] == GUARD);
	return op;
}

/* The same, of a few bytes more than fit a place. */
static uint32_t numbered(int i, int k)
{
	return numbered_of(i, k, 1000);
}

/* What is short enough lies on the board itself, while the receiver is not far behind; then in a buffer.  The memory is used again only when it is read. */
static void short_ones_lie_inside(void)
{
	enum { OFTEN = 3 * NIC_BOARD_INSIDES };
	int sent = 0, received = 0;

	join(27, 2);
	for (int k = 0; k < OFTEN; k++, sent++, received++) {
		CHECK_EQ(numbered_of(0, sent, NIC_BOARD_INSIDE), NIC_OP_OVER);
		CHECK_EQ(numbered_of(1, received, NIC_BOARD_INSIDE), NIC_OP_OVER);
	}
	CHECK_EQ(buffers_taken(0), 0);
	CHECK_EQ(numbered_of(0, sent++, NIC_BOARD_INSIDE + 1), NIC_OP_OVER);
	CHECK_EQ(numbered_of(1, received++, NIC_BOARD_INSIDE + 1), NIC_OP_OVER);
	CHECK_EQ(buffers_taken(0), 1);
	for (int ahead = 1; ahead <= NIC_BOARD_PLACES; ahead++) {
		for (int k = 0; k < ahead; k++)
			CHECK_EQ(numbered_of(0, sent++, NIC_BOARD_BRIEF + 1 + (uint32_t)k), NIC_OP_OVER);
		for (int k = 0; k < ahead; k++)
			CHECK_EQ(numbered_of(1, received++, NIC_BOARD_BRIEF + 1 + (uint32_t)k), NIC_OP_OVER);
	}
	CHECK_EQ(buffers_taken(0), 1);
	leave(2);
}

/* A few buffers take turns and stay in the cache.  Where processes take turns, too, the root takes others rather than wait. */
static void few_buffers_take_turns(void)
{
	enum { FEW = 8 };
	uint32_t late;

	join(17, 2);
	for (int k = 0; k < 5 * FEW; k++) {
		CHECK_EQ(numbered(0, k), NIC_OP_OVER);
		CHECK_EQ(numbered(1, k), NIC_OP_OVER);
	}
	CHECK_EQ(buffers_taken(0), FEW);
	for (int k = 0; k < FEW; k++)
		CHECK_EQ(numbered(0, k), NIC_OP_OVER);
	late = numbered(0, FEW);
	CHECK(late != NIC_OP_OVER);
	for (int k = 0; k < FEW; k++)
		CHECK_EQ(numbered(1, k), NIC_OP_OVER);
	CHECK_EQ(over(0, late, NULL), NIC_OK);
	CHECK_EQ(numbered(1, FEW), NIC_OP_OVER);
	CHECK_EQ(buffers_taken(0), FEW);
	n[0]->waiting.crowded = true;
	for (int k = 0; k < NIC_BOARD_PLACES; k++)
		CHECK_EQ(numbered(0, k), NIC_OP_OVER);
	for (int k = 0; k < NIC_BOARD_PLACES; k++)
		CHECK_EQ(numbered(1, k), NIC_OP_OVER);
	CHECK(buffers_taken(0) > FEW);
	n[0]->waiting.crowded = false;
	leave(2);
}

/* A broadcast that is over at once, with data that are not those of the last one. */
static void arrives(uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		data[0][i] = (uint8_t)(i * 31 + seed);
	memset(data[1], GUARD, len + 1);
	CHECK_EQ(bcast(0, 0, len), NIC_OP_OVER);
	CHECK_EQ(bcast(1, 0, len), NIC_OP_OVER);
	CHECK(memcmp(data[0], data[1], len) == 0);
	CHECK_EQ(data[1][len], GUARD);
}

/* How many parts there are is the root's affair: processes that take turns have longer ones. */
static void as_many_parts_as_the_root_likes(void)
{
	static const struct {
		uint32_t len, parts[2]; /* with a core each, and in turns */
	} broadcasts[] = { { 8192, { 1, 1 } }, { 8193, { 2, 2 } }, { 16384, { 2, 2 } }, { 40000, { 5, 3 } }, { 65536, { 8, 4 } } };
	uint32_t before;

	join(42, 2);
	for (size_t k = 0; k < sizeof(broadcasts) / sizeof(broadcasts[0]); k++)
		for (uint32_t crowded = 0; crowded < 2; crowded++) {
			before = n[0]->groups->group[group[0]].put;
			n[0]->waiting.crowded = crowded;
			arrives(broadcasts[k].len, crowded);
			CHECK_EQ(n[0]->groups->group[group[0]].put - before, broadcasts[k].parts[crowded]);
		}
	for (int k = 8; k <= 256; k++) { /* with those above that many: then it is worth more pages of each buffer */
		before = n[0]->groups->group[group[0]].put;
		arrives(16384, (uint32_t)k);
		CHECK_EQ(n[0]->groups->group[group[0]].put - before, k < 256 ? 2 : 1);
	}
	n[0]->waiting.crowded = false;
	leave(2);
}

/* Where processes take turns the root tries two ways to fill its buffers, and comes back to the other one now and then. */
static void filled_in_two_ways(void)
{
	static const uint32_t lengths[] = { 4095, 4096, 4097, 8191, 8192, 8193, 20001, 65536, 65636 };
	const struct nic_pace *fill;

	join(41, 2);
	fill = &n[0]->groups->group[group[0]].fill;
	n[0]->waiting.crowded = true;
	for (uint32_t k = 0; k < 100; k++) {
		uint32_t len = k == 0 ? 4095 : lengths[k % (sizeof(lengths) / sizeof(lengths[0]))];

		arrives(len, k);
		CHECK(k || !fill->cost[0]); /* a short one is not worth a look at the clock */
	}
	CHECK(fill->cost[0] && fill->cost[1]);
	n[0]->waiting.crowded = false;
	leave(2);
}

/* Nothing is written past the room, the receive fails, and the next broadcast is none the worse. */
static void lengths_differ(void)
{
	static const uint32_t sent[] = { 100, 10, 20000, 10, 60000 }, room[] = { 10, 100, 10, 20000, 40000 };

	join(6, 2);
	for (int k = 0; k < 5; k++) {
		uint32_t op;

		memset(data[0], 1, sizeof(data[0]));
		memset(data[1], GUARD, sizeof(data[1]));
		bcast(0, 0, sent[k]);
		op = bcast(1, 0, room[k]);
		CHECK(op != NIC_OP_OVER);
		CHECK_EQ(over(1, op, NULL), NIC_STATE);
		CHECK_EQ(data[1][0], GUARD);
		CHECK_EQ(data[1][room[k]], GUARD);
		CHECK_EQ(bcast(0, 0, 5), NIC_OP_OVER);
		CHECK_EQ(bcast(1, 0, 5), NIC_OP_OVER);
		CHECK_EQ(data[1][4], 1);
	}
	leave(2);
}

/* Slot 0 lies on its board: the receiver believes no number that it does not check. */
static void lies_of_a_root(void)
{
	static const struct nic_board_part lies[] = {
		{ .total = UINT32_MAX, .end = UINT32_MAX }, { .total = NIC_BCAST_MAX + 1, .end = 8192 }, { .total = 6000, .end = 6001 },
		{ .total = 6000, .end = UINT32_MAX }, { .total = 6000, .end = 0 }, { .total = 6000, .end = 100 },
		{ .total = 6000, .end = 6000, .buffer = 0 }, { .total = 6000, .end = 6000, .buffer = UINT32_MAX }, { .total = 0, .end = 0 },
	};

	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		struct nic_board_part *p;
		uint32_t op;

		join(7, 2);
		memset(data[1], GUARD, sizeof(data[1]));
		op = bcast(1, 0, 6000);
		p = &board_of(0)->part[0];
		for (uint32_t i = 0; i < NIC_BOARD_PLACES; i++, p++) {
			p->total = lies[k].total;
			p->end = lies[k].end;
			p->buffer = lies[k].buffer;
			nic_store_release(&p->seq, i + 1);
		}
		CHECK_EQ(over(1, op, NULL), lies[k].end == 6000 ? NIC_OK : NIC_STATE); /* which buffer that is it cannot know */
		CHECK_EQ(data[1][6000], GUARD);
		leave(2);
	}
}

/* What slot 0 puts on its board, from its first place on: parts that end there, the last one where the broadcast does. */
static void put_parts(const uint32_t *end, uint32_t parts)
{
	struct nic_board_part *p = &board_of(0)->part[0];

	for (uint32_t i = 0; i < parts; i++, p++) {
		p->total = end[parts - 1];
		p->end = end[i];
		p->buffer = i + 1;
		nic_store_release(&p->seq, i + 1);
	}
}

/* Parts of any lengths make a broadcast, but none that goes on behind the end of its buffer. */
static void any_parts(void)
{
	static const struct {
		uint32_t end[4], parts;
		bool good;
	} broadcasts[] = {
		{ { NIC_BOARD_PART_MAX }, 1, true }, { { NIC_BOARD_PART_MAX + 1 }, 1, false }, { { 60000 }, 1, false },
		{ { 1, 41, 9000, 9001 }, 4, true }, { { 20000, 20000 + NIC_BOARD_PART_MAX, 60000 }, 3, true },
		{ { 20000, 20001 + NIC_BOARD_PART_MAX, 60000 }, 3, false }, { { 20000, 20000, 60000 }, 3, false }, { { 20000, 19999, 60000 }, 3, false },
	};

	for (size_t k = 0; k < sizeof(broadcasts) / sizeof(broadcasts[0]); k++)
		for (int waits = 0; waits < 2; waits++) { /* for the parts, or finds them there */
			const uint32_t *end = broadcasts[k].end, parts = broadcasts[k].parts, len = end[parts - 1];
			uint32_t op;

			join(43, 2);
			memset(data[1], GUARD, sizeof(data[1]));
			op = waits ? bcast(1, 0, len) : NIC_OP_OVER;
			put_parts(end, parts);
			op = waits ? op : bcast(1, 0, len);
			CHECK_EQ(op == NIC_OP_OVER, broadcasts[k].good && !waits);
			if (op != NIC_OP_OVER)
				CHECK_EQ(over(1, op, NULL), broadcasts[k].good ? NIC_OK : NIC_STATE);
			CHECK(data[1][len] == GUARD && (data[1][len - 1] == GUARD) == !broadcasts[k].good);
			leave(2);
		}
}

/* Slot 1 says that it has read what is not there yet: places are not used again for that. */
static void lies_of_a_receiver(void)
{
	static const uint16_t lies[] = { NIC_BOARD_PLACES + 1, 16960, UINT16_MAX, UINT16_MAX - 100 };
	uint32_t late;

	join(8, 2);
	for (int k = 0; k < NIC_BOARD_PLACES; k++)
		CHECK_EQ(bcast(0, 0, 1), NIC_OP_OVER);
	late = bcast(0, 0, 1);
	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		nic_store_release(&board_of(1)->taken[0], lies[k]);
		poll_all();
		CHECK_EQ(nic_op_test(n[0], late, NULL), NIC_NOT_DONE);
	}
	nic_store_release(&board_of(1)->taken[0], 1);
	CHECK_EQ(over(0, late, NULL), NIC_OK);
	CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK); /* nobody waits for what it has not read */
	CHECK_EQ(nic_group_leave(n[0], group[0]), NIC_OK);
	poll_all();
	CHECK(!(n[0]->groups->group[group[0]].life & 1));
}

/* Closed with its boards full, again and again: the next owner of the slot finds the buffers. */
static void buffers_come_back(void)
{
	uint32_t bump = 0;

	for (int round = 0; round < 40; round++) {
		join(9, 2);
		bcast(0, 0, 100000);
		nic_close(n[0]);
		n[0] = NULL;
		for (uint32_t k = 0; k < 3 * NIC_WATCH_POLLS; k++) /* until the others have let the slot go */
			nic_poll(n[1]), nic_poll(n[2]);
		CHECK_EQ(nic_group_leave(n[1], group[1]), NIC_OK);
		open_one(0);
		if (round == 4)
			bump = nic_load_relaxed(&n[0]->map->pool.bump);
	}
	CHECK_EQ(nic_load_relaxed(&n[0]->map->pool.bump), bump);
}

/* Boards may have more buffers than a process may take for its messages: else a broadcast would wait for ever for what boards keep. */
static void boards_do_not_starve(void)
{
	static const uint32_t len[] = { 40000, 150000 }; /* 8 buffers, and 16 others */
	int64_t cap = n[0]->buffer_cap;
	uint32_t op[MANY];

	nic_buffer_release(n[0]);
	n[0]->buffer_cap = NIC_BUFFER_BATCH;
	join(12, MANY);
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < len[k]; i++)
			data[0][i] = (uint8_t)(i % 251 + (uint32_t)k);
		for (int i = 0; i < MANY; i++)
			op[i] = bcast(i, 0, len[k]);
		for (int i = 0; i < MANY; i++)
			CHECK_EQ(over(i, op[i], NULL), NIC_OK);
		for (int i = 1; i < MANY; i++)
			CHECK(memcmp(data[i], data[0], len[k]) == 0);
	}
	CHECK(n[0]->buffer_kept > n[0]->buffer_cap);
	leave(MANY);
	CHECK_EQ(n[0]->buffer_kept, 0);
	n[0]->buffer_cap = cap;
}

/* So many broadcasts of 0's that let go of their lines, out of two in a row behind one of 1's. */
static uint64_t let_go(int many, uint32_t len)
{
	uint64_t before = count(0, NIC_C_demoted);

	for (int k = 0; k < 3; k++)
		for (int i = 0, root = k == 0; i < many; i++)
			CHECK_EQ(bcast((root + i) % many, root, len), NIC_OP_OVER);
	return count(0, NIC_C_demoted) - before;
}

/* Where processors can, to one other process, of some lines, and not by who broadcasts again and again. */
static void lines_are_let_go(void)
{
	join(35, 2);
	n[0]->demotes = false;
	CHECK_EQ(let_go(2, 100), 0);
	n[0]->demotes = true;
	CHECK_EQ(let_go(2, 100), 1);
	CHECK_EQ(let_go(2, 2048), 1);
	CHECK_EQ(let_go(2, NIC_BOARD_BRIEF), 0);
	CHECK_EQ(let_go(2, 2049), 0);
	n[0]->waiting.crowded = true;
	CHECK_EQ(let_go(2, 100), 0);
	n[0]->waiting.crowded = false;
	leave(2);
	join(36, MANY);
	CHECK_EQ(let_go(MANY, 100), 0);
	leave(MANY);
	n[0]->demotes = false;
}

/* A wait that would sleep sees what the boards say, and goes on when nothing has come. */
static void no_sleep_over_news(void)
{
	struct nic_wait wait = { .rest = NIC_REST_SPIN };
	uint32_t first, second;

	join(10, 2);
	poll_all();
	CHECK_EQ(nic_barrier(n[0], group[0], &first), NIC_OK);
	CHECK(nic_wait_doze(n[0], &wait, 1000));
	nic_wait_rest(&wait);
	CHECK_EQ(nic_barrier(n[1], group[1], &second), NIC_OK);
	CHECK(!nic_wait_doze(n[0], &wait, 1000));
	CHECK_EQ(over(0, first, NULL), NIC_OK);
	first = bcast(0, 1, 1000);
	CHECK(nic_wait_doze(n[0], &wait, 1000));
	nic_wait_rest(&wait);
	bcast(1, 1, 1000);
	CHECK(!nic_wait_doze(n[0], &wait, 1000));
	CHECK_EQ(over(0, first, NULL), NIC_OK);
	CHECK_EQ(nic_barrier(n[1], group[1], &second), NIC_OK); /* which it leads: */
	CHECK(nic_wait_doze(n[1], &wait, 1000));
	nic_wait_rest(&wait);
	CHECK_EQ(nic_barrier(n[0], group[0], &first), NIC_OK);
	CHECK(nic_wait_doze(n[0], &wait, 1000));
	nic_wait_rest(&wait);
	CHECK(!nic_wait_doze(n[1], &wait, 1000));
	nic_poll(n[1]);
	CHECK_EQ(nic_op_test(n[1], second, NULL), NIC_OK);
	CHECK(!nic_wait_doze(n[0], &wait, 1000));
	CHECK_EQ(over(0, first, NULL), NIC_OK);
	leave(2);
}

int main(void)
{
	open_all();
	CASE(over_at_once);
	CASE(lines_migrate);
	CASE(places_are_used_again);
	CASE(in_two_goes);
	CASE(buffers_are_used_again);
	CASE(numbers_wrap);
	CASE(short_ones_lie_inside);
	CASE(few_buffers_take_turns);
	CASE(as_many_parts_as_the_root_likes);
	CASE(filled_in_two_ways);
	CASE(lengths_differ);
	CASE(lies_of_a_root);
	CASE(any_parts);
	CASE(lies_of_a_receiver);
	CASE(buffers_come_back);
	CASE(boards_do_not_starve);
	CASE(lines_are_let_go);
	CASE(no_sleep_over_news);
	close_all();
	return check_done();
}
