/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left of a device: how many cards carry its name, and the pid of the daemon that runs one (0: none).
 */
#ifndef TESTS_UNIT_NICEMU_FOUND_H
#define TESTS_UNIT_NICEMU_FOUND_H

#include <string.h>

#include "nicemu/nic.h"

struct found {
	const char *device;
	int cards, daemon;
};

static inline int found_slot(void *arg, const struct nic_slot_info *info)
{
	struct found *f = arg;

	f->daemon = info->daemon ? info->daemon : f->daemon;
	return 0;
}

static inline int found_card(void *arg, const struct nic_card_info *info)
{
	struct found *f = arg;

	if (strcmp(info->device, f->device) == 0) {
		f->cards++;
		nic_card_slots(info, found_slot, f);
	}
	return 0;
}

static inline struct found found_of(const char *device)
{
	struct found f = { .device = device };

	nic_cards(found_card, &f);
	return f;
}

#endif
