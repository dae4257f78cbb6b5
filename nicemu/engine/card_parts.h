/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the card share (card*.c), and nobody else includes. */
#ifndef NIC_ENGINE_CARD_PARTS_H
#define NIC_ENGINE_CARD_PARTS_H

#include <pthread.h>

#include "nicemu/engine/card.h"
#include "nicemu/mem/card.h"

struct kept {
	struct kept *next;
	uint8_t *p;
	size_t len;
};

struct nic_card {
	struct nic_card *next;
	int refs;
	int fd, name_fd;
	int lock_fd; /* a descriptor of its own for the locks: the mapping keeps fd's description alive in a child of fork */
	bool file;
	char device[NIC_DEVICE_MAX];
	struct nic_card_map *map;
	size_t heap;      /* bytes mapped behind it and in the window: NIC_HEAP_SIZE or 0 */
	uint8_t *window;
	struct kept *kept; /* parts of it that are the process's own by now; ascending */
	pthread_mutex_t lock;
	_Atomic bool own[NIC_MAX_SLOTS + 1]; /* slots held through this descriptor: its locks do not conflict with themselves */
};

/* card.c: those that this process has open. */
extern pthread_mutex_t nic_card_list_lock;
extern struct nic_card *nic_card_list;

/* What a name says. */
struct nic_advert {
	char device[NIC_DEVICE_MAX];
	unsigned long long uuid;
	int pid, fd;
};

/* card_name.c */
uint32_t nic_card_host(void); /* hash of the host's name */
void nic_card_prefix(const char *device, char *out, size_t size);
int nic_card_bind(const char *name);
int nic_card_lock_device(const char *device); /* a descriptor, which is the lock; -1 and errno */
int nic_card_each_advert(int (*fn)(void *arg, const struct nic_advert *), void *arg);
/* card.c */
int nic_card_open_advert(const struct nic_advert *ad);
bool nic_card_plausible(int fd, const struct nic_advert *ad, bool *other_build);
/* card_pages.c */
bool nic_card_map_all(struct nic_card *card); /* false: why is in nic_last_error */
void nic_card_unmap(struct nic_card *card);

#endif
