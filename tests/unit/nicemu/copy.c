/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by plain stores (util/copy.c): every length of the loop and of what it leaves, from and to any place, and nothing beside. */
#include "nicemu/util/copy.h"
#include "tests/check.h"

enum { GUARD = 0x5A, FROM = 67, TO = 37, MOST = 520 };

static void copied_by_stores(void)
{
	static uint8_t data[FROM + MOST], room[1 + TO + MOST + 1];

	for (uint32_t len = 0; len <= MOST; len++) {
		uint8_t *from = data + len % FROM, *to = room + 1 + len % TO;

		for (uint32_t i = 0; i < len; i++)
			from[i] = (uint8_t)(i * 7 + len);
		memset(room, GUARD, sizeof(room));
		nic_copy_stores(to, from, len);
		CHECK(memcmp(to, from, len) == 0 && to[-1] == GUARD && to[len] == GUARD);
	}
}

int main(void)
{
	CASE(copied_by_stores);
	return check_done();
}
