/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at cards from outside, as `qnix stat` does: which there are, and what is in their slots. */
#include "nicemu/engine/card_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nicemu/nic.h"
#include "nicemu/util/atomic.h"
#include "nicemu/util/log.h"

struct listing {
	int (*fn)(void *arg, const struct nic_card_info *);
	void *arg;
	uint64_t seen[1024];
	unsigned nseen;
};

static int list_one(void *arg, const struct nic_advert *ad)
{
	struct listing *l = arg;
	struct nic_card_info info = { .pid = ad->pid, .card = ad->uuid };

	for (unsigned i = 0; i < l->nseen; i++)
		if (l->seen[i] == ad->uuid)
			return 0;
	if (l->nseen == sizeof(l->seen) / sizeof(l->seen[0]))
		return 1;
	l->seen[l->nseen++] = ad->uuid;
	strcpy(info.device, ad->device);
	return l->fn(l->arg, &info);
}

int nic_cards(int (*fn)(void *arg, const struct nic_card_info *), void *arg)
{
	struct listing l = { .fn = fn, .arg = arg };

	return nic_card_each_advert(list_one, &l) < 0 ? NIC_SYSTEM : NIC_OK;
}

struct visit {
	const struct nic_card_info *want;
	struct nic_card view;
};

static int visit_one(void *arg, const struct nic_advert *ad)
{
	struct visit *v = arg;
	bool other;
	int fd;

	if (ad->uuid != v->want->card)
		return 0;
	fd = nic_card_open_advert(ad);
	if (fd < 0)
		return 0;
	if (nic_card_plausible(fd, ad, &other)) {
		v->view.fd = v->view.lock_fd = fd;
		return 1;
	}
	close(fd);
	return 0;
}

static void copy_slot(struct nic_card_map *map, uint32_t i, struct nic_slot_info *out)
{
	struct nic_slot *slot = &map->slot[i];
	uint32_t served;

	memset(out, 0, sizeof(*out));
	out->slot = i;
	out->pid = nic_load_relaxed(&slot->pid); /* a picture of a running job: any recent value will do, here and below */
	memcpy(out->command, slot->command, sizeof(out->command) - 1);
	served = nic_load_relaxed(&slot->served) & ~NIC_SERVE_HOLDS;
	out->daemon = served && served == nic_load_relaxed(&map->hdr.daemon.life) ? nic_load_relaxed(&map->hdr.daemon.pid) : 0;
	for (uint32_t w = 0; w < NIC_MAX_SLOTS / 64; w++)
		out->links += __builtin_popcountll(nic_load_relaxed(&slot->linked[w]));
	for (uint32_t v = 0; v < nic_load_acquire(&slot->vis) && v < NIC_VI_TABLE; v++) /* pairs with vi_create */
		out->vis += slot->vi[v].cookie != 0;
	out->ncounters = nic_load_acquire(&slot->ncounters); /* pairs with the release in nic_counter_add */
	if (out->ncounters > NIC_MAX_COUNTERS)
		out->ncounters = NIC_MAX_COUNTERS;
	memcpy(out->row, slot->counter_row, sizeof(out->row));
	memcpy(out->value, slot->counter, sizeof(out->value));
	for (uint32_t c = 0; c < NIC_MAX_COUNTERS; c++)
		out->row[c].name[NIC_COUNTER_NAME - 1] = out->row[c].help[NIC_COUNTER_HELP - 1] = 0;
}

static void visit_slots(struct nic_card *card, int (*fn)(void *arg, const struct nic_slot_info *), void *arg)
{
	struct nic_slot_info *out = malloc(sizeof(*out));
	uint32_t used = nic_load_acquire(&card->map->hdr.used); /* pairs with the release in registration */

	for (uint32_t i = 0; out && i < used && i < NIC_MAX_SLOTS; i++) {
		if (nic_load_acquire(&card->map->slot[i].state) != NIC_SLOT_LIVE || !nic_card_held(card, i))
			continue;
		copy_slot(card->map, i, out);
		if (fn(arg, out))
			break;
	}
	free(out);
}

/* A card that this process has open is looked at through its own descriptor: only that one knows which slots it holds itself. */
static bool visit_own(uint64_t uuid, int (*fn)(void *arg, const struct nic_slot_info *), void *arg)
{
	struct nic_card *card;

	pthread_mutex_lock(&nic_card_list_lock);
	for (card = nic_card_list; card && card->map->hdr.uuid != uuid; card = card->next)
		;
	if (card)
		visit_slots(card, fn, arg);
	pthread_mutex_unlock(&nic_card_list_lock);
	return card != NULL;
}

int nic_card_slots(const struct nic_card_info *info, int (*fn)(void *arg, const struct nic_slot_info *), void *arg)
{
	struct visit v = { .want = info, .view = { .fd = -1, .lock_fd = -1 } };

	if (visit_own(info->card, fn, arg))
		return NIC_OK;
	if (nic_card_each_advert(visit_one, &v) != 1)
		return nic_fail(NIC_NO_MATCH, "the card is gone, or belongs to another build");
	v.view.map = mmap(NULL, sizeof(struct nic_card_map), PROT_READ, MAP_SHARED | MAP_NORESERVE, v.view.fd, 0);
	if (v.view.map != MAP_FAILED) {
		visit_slots(&v.view, fn, arg);
		munmap(v.view.map, sizeof(struct nic_card_map));
	}
	close(v.view.fd);
	return NIC_OK;
}
