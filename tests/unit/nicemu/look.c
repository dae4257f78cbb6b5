/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks that ask for further lines (util/look.c): what they find, wherever the lines are, and that they change nothing else.  Whether the lines are
 * asked for only the clock says; it is told, not judged.  Where processors cannot look so the plain way must do as much.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nicemu/util/atomic.h"
#include "nicemu/util/look.h"
#include "tests/check.h"
#include "tests/unit/nicemu/two_cores.h"

enum { LINE = 64 };

/* Where returns are checked, on x86-64, a look would end the process. */
#if defined(__x86_64__)
#define SKIP_CHECKED()                                                         \
	do {                                                                   \
		if (!nic_look_works())                                         \
			SKIP("returns are checked in this process");           \
	} while (0)
#else
#define SKIP_CHECKED() (void)0
#endif

static _Alignas(LINE) uint8_t lines[40 * LINE];

/* The next look has to wait for it. */
static inline void flush(const void *line)
{
#if defined(__x86_64__)
	__builtin_ia32_clflush(line);
	__builtin_ia32_mfence();
#else
	(void)line;
#endif
}

/* What a look at a word finds whose line is gone, and when it is back. */
static bool finds(const _Atomic uint32_t *word, uint32_t wanted, const void *from, const void *end)
{
	bool first;

	flush((const void *)word);
	first = nic_look(word, wanted, from, end);
	return CHECK_EQ(nic_look(word, wanted, from, end), first) && first;
}

/* Where it says so the kernel checks this thread's returns. */
static bool are_checked(void)
{
	static const char features[] = "x86_Thread_features:";
	FILE *status = fopen("/proc/self/status", "r");
	bool checked = false;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		checked |= strncmp(line, features, sizeof(features) - 1) == 0 && strstr(line, "shstk");
	if (status)
		fclose(status);
	return checked;
}

static void where_it_works(void)
{
#if defined(__x86_64__)
	CHECK_EQ(nic_look_works(), !are_checked());
#else
	CHECK(!nic_look_works() && !are_checked());
#endif
}

/* ---- what they find -------------------------------------------------------------------------------------------------------------------- */

static const uint32_t values[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000, 0x12345678, INT32_MAX, (uint32_t)INT32_MAX + 1, UINT32_MAX - 1,
	UINT32_MAX };
enum { VALUES = sizeof(values) / sizeof(*values) };

/* The word as a whole and nothing beside it, also at the end of what there is. */
static void what_is_wanted(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory;
	_Atomic uint32_t *last;

	SKIP_CHECKED();
	memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
	last = (_Atomic uint32_t *)(void *)(memory + page) - 1;
	for (uint32_t back = 0; back < 3; back++)
		for (uint32_t i = 0; i < VALUES; i++) {
			_Atomic uint32_t *word = last - back;

			memset(memory, 0x5a, page);
			*word = values[i];
			for (uint32_t k = 0; k < VALUES; k++)
				CHECK_EQ(finds(word, values[k], lines, lines + LINE), i == k);
			for (uint32_t bit = 0; bit < 32; bit++)
				CHECK_EQ(finds(word, values[i] ^ (uint32_t)1 << bit, lines, lines + LINE), false);
			CHECK_EQ(*word, values[i]);
		}
	munmap(memory, 2 * page);
}

/* Any number of them, or fewer than none, anywhere: also where there is nothing, and where no address is. */
static void wherever_the_lines_are(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), long_ones = 1000 * page;
	static const size_t lengths[] = { 0, 1, LINE - 1, LINE, LINE + 1, 2 * LINE, 31 * LINE, 32 * LINE, 32 * LINE + 1, 33 * LINE, 40 * LINE };
	uintptr_t places[] = { (uintptr_t)lines, (uintptr_t)lines + 1, (uintptr_t)lines + LINE - 1, 0, 1, 0, 0, 0, INTPTR_MAX,
		(uintptr_t)INTPTR_MAX + 1, UINTPTR_MAX, UINTPTR_MAX - 40 * LINE, (uintptr_t)1 << (sizeof(uintptr_t) * 8 - 17) };
	_Alignas(LINE) static _Atomic uint32_t word = 7;
	static uint8_t same[sizeof(lines)];
	unsigned char there = 0;
	uint8_t *nothing;

	SKIP_CHECKED();
	nothing = mmap(NULL, long_ones, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(nothing != MAP_FAILED && munmap(nothing + page, long_ones - page) == 0);
	places[5] = (uintptr_t)nothing;
	places[6] = (uintptr_t)nothing + page - 1;
	places[7] = (uintptr_t)nothing + page;
	for (size_t i = 0; i < sizeof(lines); i++)
		same[i] = lines[i] = (uint8_t)(i * 7 + i / 64);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const uintptr_t at = places[i];

		for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
			CHECK_EQ(finds(&word, 7, (const void *)at, (const void *)(at + lengths[k])), true);
			CHECK_EQ(finds(&word, 8, (const void *)at, (const void *)(at + lengths[k])), false);
		}
		CHECK_EQ(finds(&word, 7, (const void *)at, (const void *)(at - 1)), true); /* it ends before it begins */
		CHECK_EQ(finds(&word, 8, (const void *)at, (const void *)(at - long_ones)), false);
		CHECK_EQ(finds(&word, 7, (const void *)at, NULL), true);
		CHECK_EQ(finds(&word, 8, (const void *)at, (const void *)UINTPTR_MAX), false);
	}
	CHECK(memcmp(lines, same, sizeof(lines)) == 0);
	CHECK_EQ(word, 7);
	/* Where nothing was there is nothing now. */
	CHECK(mincore(nothing, page, &there) != 0 || !(there & 1));
	CHECK(mincore(nothing + page, page, &there) != 0);
	munmap(nothing, page);
}

/* The word is among the lines that are asked for, as every one of them. */
static void the_word_among_them(void)
{
	SKIP_CHECKED();
	for (size_t i = 0; i < sizeof(lines) / sizeof(uint32_t); i++) {
		_Atomic uint32_t *word = (_Atomic uint32_t *)(void *)lines + i;

		*word = (uint32_t)i;
		CHECK_EQ(finds(word, (uint32_t)i, lines, lines + sizeof(lines)), true);
		CHECK_EQ(finds(word, (uint32_t)i + 1, lines, lines + sizeof(lines)), false);
	}
}

/* ---- and nothing else ------------------------------------------------------------------------------------------------------------------ */

static _Alignas(LINE) _Atomic uint32_t three = 3;

/* More numbers live through each look than there are registers. */
static nic_noinline uint64_t many_live(uint32_t times, uint64_t seed, bool hit)
{
	uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 11, f = seed * 13, g = seed * 17, h = seed * 19, i = 0, found = 0;
	double x = 1.5, y = (double)times;

	for (uint32_t n = 0; n < times; n++) {
		if (n % 16 == 0)
			flush(&three);
		found += nic_look(&three, hit ? 3 : n & 1 ? 4 : UINT32_MAX, lines, lines + (n % 40) * LINE);
		a += b ^ n, b += c + 1, c ^= d << 1, d += e * 3, e ^= f + n, f += g, g ^= h + 5, h += a, i += n, x += 0.5, y -= 1;
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ found << 32 ^ (uint64_t)x ^ (uint64_t)(y + 1) << 48;
}

/* The same without a look. */
static nic_noinline uint64_t many_alone(uint32_t times, uint64_t seed, bool hit)
{
	uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 11, f = seed * 13, g = seed * 17, h = seed * 19, i = 0, found = 0;
	double x = 1.5, y = (double)times;

	for (uint32_t n = 0; n < times; n++) {
		found += hit;
		a += b ^ n, b += c + 1, c ^= d << 1, d += e * 3, e ^= f + n, f += g, g ^= h + 5, h += a, i += n, x += 0.5, y -= 1;
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ found << 32 ^ (uint64_t)x ^ (uint64_t)(y + 1) << 48;
}

static void registers_are_kept(void)
{
	SKIP_CHECKED();
	for (uint32_t times = 0; times < 300; times++)
		for (int hit = 0; hit < 2; hit++)
			CHECK_EQ(many_live(times, times * 0x9e3779b97f4a7c15u, hit), many_alone(times, times * 0x9e3779b97f4a7c15u, hit));
}

/*
 * Of a function that calls nothing but looks the numbers lie at the very end of its stack, or behind it if a look is no call to the compiler (red
 * zone).  They are memory, whatever the compiler would rather make of them.
 */
#define KEEPS(n)                                                                                                    \
	static nic_noinline uint32_t keeps_##n(uint32_t seed, uint32_t wanted)                                      \
	{                                                                                                           \
		uint32_t found, bad = 0, room[n];                                                                   \
                                                                                                                    \
		for (uint32_t i = 0; i < (n); i++)                                                                  \
			room[i] = seed + i;                                                                         \
		__asm__ __volatile__("" : "+m"(room));                                                                  \
		found = nic_look(&three, wanted, lines, lines + sizeof(lines));                                     \
		__asm__ __volatile__("" : "+m"(room));                                                                  \
		for (uint32_t i = 0; i < (n); i++)                                                                  \
			bad += room[i] != seed + i;                                                                 \
		return bad * 2 + found;                                                                             \
	}
KEEPS(1)
KEEPS(2)
KEEPS(3)
KEEPS(8)
KEEPS(31)
KEEPS(32)

static void stack_is_kept(void)
{
	static uint32_t (*const keeps[])(uint32_t, uint32_t) = { keeps_1, keeps_2, keeps_3, keeps_8, keeps_31, keeps_32 };

	SKIP_CHECKED();
	for (uint32_t n = 0; n < 1000; n++)
		for (uint32_t i = 0; i < sizeof(keeps) / sizeof(*keeps); i++) {
			if (n & 1)
				flush(&three);
			CHECK_EQ(keeps[i](n * 77, 3), 1);
			CHECK_EQ(keeps[i](n * 77, 2), 0);
		}
}

/* ---- deep in calls, whose returns are foretold by the processor ----------------------------------------------------------------------- */

static uint64_t down_even(uint32_t depth, uint32_t wanted), down_odd(uint32_t depth, uint32_t wanted);

/* On the way down, and on the way back from two different places. */
static nic_noinline uint64_t down_even(uint32_t depth, uint32_t wanted)
{
	uint64_t below, found = nic_look(&three, wanted, lines, lines + depth);

	if (!depth)
		return found;
	if (depth % 3 == 0)
		below = down_odd(depth - 1, wanted) * 5 + 1;
	else
		below = down_even(depth - 1, wanted) * 3 + 2;
	return below + depth * 64 + found * 2 + nic_look(&three, wanted, lines, lines + depth);
}

static nic_noinline uint64_t down_odd(uint32_t depth, uint32_t wanted)
{
	uint64_t below, found = nic_look(&three, wanted, lines, lines + depth);

	flush(&three);
	found = found * 2 + nic_look(&three, wanted, lines, lines + depth);
	if (!depth)
		return found;
	below = down_even(depth - 1, wanted) * 7 + 3;
	return below * 9 + depth + found + nic_look(&three, wanted, lines, lines + depth);
}

/* What these two return, by a loop. */
static uint64_t from_below(uint32_t depth, bool found)
{
	bool odd[4000], now = false;
	uint64_t r;

	for (uint32_t d = depth; d; d--) {
		odd[d] = now;
		now = !now && d % 3 == 0;
	}
	r = now ? found * 3 : found;
	for (uint32_t d = 1; d <= depth; d++) {
		if (odd[d])
			r = (r * 7 + 3) * 9 + d + found * 4;
		else
			r = (d % 3 == 0 ? r * 5 + 1 : r * 3 + 2) + d * 64 + found * 3;
	}
	return r;
}

static void returns_are_right(void)
{
	static const uint32_t depths[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1000, 3999 };

	SKIP_CHECKED();
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++)
		for (int n = 0; n < 20; n++) {
			CHECK_EQ(down_even(depths[i], 3), from_below(depths[i], true));
			CHECK_EQ(down_even(depths[i], 5), from_below(depths[i], false));
		}
}

/* ---- a writer and a reader ------------------------------------------------------------------------------------------------------------- */

enum { MESSAGES = 100000, PLACES = 64, WORDS = 40, PATIENCE = 100 * 1000 * 1000 };

#define GIVEN_UP UINT32_MAX

static struct {
	_Alignas(LINE) _Atomic uint32_t seq;
	_Alignas(LINE) uint64_t data[WORDS];
} ring[PLACES];
static _Alignas(LINE) _Atomic uint32_t taken;

static uint32_t words_of(uint32_t i)
{
	return 1 + i * 7 % WORDS;
}

/* To and fro, with a few under way, and with many: on a machine that does other things, too, each turn may take milliseconds. */
static void *write_all(void *apart)
{
	if (apart)
		second_core();
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t places = i < 1000 ? 1 : i < 3000 ? 4 : PLACES;

		for (uint32_t n = 1, now; (now = nic_load_acquire(&taken)) + places <= i; n++) { /* pairs with all_is_there */
			if (now == GIVEN_UP)
				return NULL;
			if (n % 100 == 0)
				sched_yield();
		}
		for (uint32_t k = 0; k < words_of(i); k++)
			ring[i % PLACES].data[k] = (uint64_t)i << 32 | k;
		nic_store_release(&ring[i % PLACES].seq, i + 1); /* pairs with the look */
	}
	return NULL;
}

static void all_is_there(void)
{
	uint32_t bad = 0, waited = 0;
	pthread_t thread;

	SKIP_CHECKED();
	REQUIRE(pthread_create(&thread, NULL, write_all, two_cores() ? &cores : NULL) == 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		const _Atomic uint32_t *seq = &ring[i % PLACES].seq;
		const uint64_t *data = ring[i % PLACES].data;
		uint32_t n;

		for (n = 0; !nic_look(seq, i + 1, data, data + words_of(i)) && n < PATIENCE; n++)
			if (n % 100 == 99)
				sched_yield();
		waited += n != 0;
		if (!CHECK(n < PATIENCE)) {
			nic_store_release(&taken, GIVEN_UP); /* pairs with write_all */
			break;
		}
		bad += nic_load_acquire(seq) != i + 1; /* the same again, for who checks accesses */
		for (uint32_t k = 0; k < words_of(i); k++)
			bad += data[k] != ((uint64_t)i << 32 | k);
		nic_store_release(&taken, i + 1); /* pairs with write_all */
	}
	pthread_join(thread, NULL);
	all_cores();
	CHECK_EQ(bad, 0);
	CHECK(waited > 0);
}

/* ---- what it is for -------------------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)

static uint64_t ticks(void)
{
	uint64_t now;

	__builtin_ia32_lfence();
	now = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return now;
}

static int by_size(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Cycles of a read of a line behind a look at a word whose line was there or not, mostly. */
static uint32_t cycles(bool missing)
{
	enum { TIMES = 2001 };
	static uint32_t took[TIMES];
	const _Atomic uint32_t *line = (const _Atomic uint32_t *)(const void *)(lines + 8 * LINE);

	for (uint32_t i = 0; i < TIMES; i++) {
		uint64_t from;

		flush((const void *)line);
		if (missing)
			flush(&three);
		else
			(void)nic_load_relaxed(&three); /* nobody else */
		ticks();
		CHECK(!nic_look(&three, 4, lines + 8 * LINE, lines + 9 * LINE));
		from = ticks();
		(void)nic_load_relaxed(line); /* likewise */
		took[i] = (uint32_t)(ticks() - from);
	}
	qsort(took, TIMES, sizeof(*took), by_size);
	return took[TIMES / 2];
}

#endif

static void lines_that_were_asked_for(void)
{
	SKIP_CHECKED();
#if defined(__x86_64__)
	uint32_t there = cycles(false), missing = cycles(true);

	printf("# cycles of a read of a line: %u where the look had to wait and so asked for it, %u where it had not\n", missing, there);
#else
	SKIP("only on x86-64");
#endif
}

int main(void)
{
	CASE(where_it_works);
	CASE(what_is_wanted);
	CASE(wherever_the_lines_are);
	CASE(the_word_among_them);
	CASE(registers_are_kept);
	CASE(stack_is_kept);
	CASE(returns_are_right);
	CASE(all_is_there);
	CASE(lines_that_were_asked_for);
	return check_done();
}
