/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies by plain stores (util/copy.c): every length of the loops and of what they leave, from and to any place, and nothing beside.  The source itself,
 * since a processor takes one of the ways only.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nicemu/util/copy.c"
#include "tests/check.h"

enum { GUARD = 0x5A, FROM = 67, TO = 37, MOST = 700, FAR = 2 * NIC_OWNED_MOST };

typedef void copy_fn(uint8_t *, const uint8_t *, size_t);

static void copied_once(copy_fn *copy, uint32_t len)
{
	static uint8_t data[FROM + FAR], room[1 + TO + FAR + 1];
	uint8_t *from = data + len % FROM, *to = room + 1 + len % TO;

	for (uint32_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + i / 256 + len);
	memset(room, GUARD, sizeof(room));
	copy(to, from, len);
	CHECK(memcmp(to, from, len) == 0 && to[-1] == GUARD && to[len] == GUARD);
}

static void every_length(copy_fn *copy, uint32_t least)
{
	for (uint32_t len = least; len <= MOST; len++)
		copied_once(copy, len);
}

static void by_stores(uint8_t *to, const uint8_t *from, size_t len)
{
	nic_copy_stores(to, from, len);
}

static void to_owned(uint8_t *to, const uint8_t *from, size_t len)
{
	nic_copy_owned(to, from, len);
}

static void copied_by_stores(void)
{
	every_length(by_stores, 0);
}

/* Short, by any stores that this processor has, and the library's way. */
static void copied_to_owned(void)
{
	every_length(to_owned, 0);
	for (uint32_t len = NIC_OWNED_MOST - 70; len <= NIC_OWNED_MOST + 70; len++)
		copied_once(to_owned, len);
	copied_once(to_owned, FAR);
	every_length(owned, 65);
	every_length(stores, 65);
}

typedef void migrate_fn(uint8_t *, uint8_t *, size_t);

static void by_any_processor(uint8_t *to, uint8_t *from, size_t len)
{
	nic_copy_migrating(to, from, len);
}

/* From anywhere in a line, and what it is copied from stays as it is. */
static void every_place(migrate_fn *copy)
{
	enum { LONG = 2200 }; /* more than two pieces */
	static _Alignas(64) uint8_t from[64 + 64 + LONG + 64], before[sizeof(from)], to[LONG + 1];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(before, from, sizeof(from));
	for (uint32_t at = 0; at < 64; at += at < 4 ? 1 : 15)
		for (uint32_t len = 0; len <= LONG; len++) {
			to[len] = GUARD;
			copy(to, from + 64 + at, len);
			CHECK(memcmp(to, from + 64 + at, len) == 0 && to[len] == GUARD);
		}
	CHECK(memcmp(before, from, sizeof(from)) == 0);
}

/* Lines before and behind are others': no store of what is there gets near them. */
static void nothing_else_migrates(migrate_fn *copy)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *room = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[3000];

	if (!CHECK(room != MAP_FAILED))
		return;
	mprotect(room, page, PROT_READ);
	mprotect(room + 2 * page, page, PROT_READ);
	for (uint32_t len = 0; len <= sizeof(to); len++) {
		copy(to, room + page, len);
		copy(to, room + 2 * page - len, len);
		nic_migrate_lines(room + page, len);
	}
	CHECK(munmap(room, 3 * page) == 0);
}

/* Every line that was read has been stored to: of pages that may only be read even the first byte of a line cannot be copied. */
static void every_line_migrates(migrate_fn *copy)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *room = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[64];

	if (!CHECK(room != MAP_FAILED))
		return;
	for (int i = 0; i < 3; i++) {
		static const struct { uint32_t at, len; } pieces[] = { { 0, 64 }, { 100, 1 }, { 60, 20 } };
		int status = 0;
		pid_t child;

		fflush(stdout);
		child = fork();
		if (child == 0) {
			signal(SIGSEGV, SIG_DFL);
			copy(to, room + pieces[i].at, pieces[i].len);
			_exit(0);
		}
		CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	}
	munmap(room, page);
}

static void copied_while_it_migrates(void)
{
	every_place(by_any_processor);
	nothing_else_migrates(by_any_processor);
	every_line_migrates(by_any_processor);
	every_place(migrating);
	nothing_else_migrates(migrating);
	every_line_migrates(migrating);
}

#if defined(__x86_64__)
static void copied_by_32_bytes(void)
{
	if (!__builtin_cpu_supports("avx2"))
		SKIP("the processor has no stores of 32 bytes");
	every_length(owned_avx2, 65);
	every_length(stores_avx2, 65);
}

static void copied_by_64_bytes(void)
{
	if (!__builtin_cpu_supports("avx512f"))
		SKIP("the processor has no stores of 64 bytes");
	every_length(owned_avx512, 65);
	every_place(migrating_avx512);
	nothing_else_migrates(migrating_avx512);
}
#endif

int main(void)
{
	CASE(copied_by_stores);
	CASE(copied_to_owned);
	CASE(copied_while_it_migrates);
#if defined(__x86_64__)
	CASE(copied_by_32_bytes);
	CASE(copied_by_64_bytes);
#endif
	return check_done();
}
