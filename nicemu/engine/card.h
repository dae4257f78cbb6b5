/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card as an object of the operating system: finding, creating, mapping and locking it.
 * One struct nic_card per process and card, however many slots the process opens on it.
 */
#ifndef NIC_ENGINE_CARD_H
#define NIC_ENGINE_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nic_card_map;
struct nic_card;

/* Attaches to the card of that name, creating it when no live process of this host and user has it. */
int nic_card_open(const char *device, struct nic_card **out);
void nic_card_close(struct nic_card *card); /* one per open */
struct nic_card_map *nic_card_map(const struct nic_card *card);
const char *nic_card_memory(const struct nic_card *card); /* "memfd" or "file" */
/*
 * The memory of a card that is a file: an unlinked one in the first folder that has room for it, or else in the first where a file may
 * be.  Its descriptor, the folder and the bytes that are free there; -1: nowhere.
 */
int nic_card_file(const char **dir, uint64_t *room);

/*
 * The heap is mapped twice.  Behind the card's map it is out of reach but for the extents of this process's own slots
 * (nic_card_open_pages): those are what the consumer has pointers to.  The window, at an address that nothing else is near,
 * is readable and writable throughout, for the DMA engine alone.  NULL: this card, or this process, has no heap.
 */
uint8_t *nic_card_heap(const struct nic_card *card);
uint8_t *nic_card_window(const struct nic_card *card);

/*
 * The card lock: short control-path sections that change more than one word.  Excludes other processes and other threads;
 * released by the kernel when its holder dies, so what it guards must make sense at every instruction.
 */
void nic_card_lock(struct nic_card *card);
bool nic_card_trylock(struct nic_card *card);
void nic_card_unlock(struct nic_card *card);

/* The number of the daemon's life line: after those of the slots. */
#define NIC_DAEMON_LINE NIC_MAX_SLOTS
/* A slot's life line: held from registration to the end of the process, whatever ends it. */
bool nic_card_hold(struct nic_card *card, uint32_t slot);
void nic_card_drop(struct nic_card *card, uint32_t slot);
bool nic_card_held(const struct nic_card *card, uint32_t slot); /* by anybody, this process included */

/*
 * The card is mapped read-only but for what this process may write: the header, the pool, its own slots, and of other
 * slots the rings to them and their connection tables.  Lets it write the pages of [p, p + len).
 */
bool nic_card_writable(struct nic_card *card, const void *p, size_t len);
/* Of the heap: makes [p, p + len), whole pages, the consumer's, or takes them away.  false: why is in nic_last_error. */
bool nic_card_open_pages(struct nic_card *card, void *p, size_t len);
void nic_card_close_pages(struct nic_card *card, void *p, size_t len);
/*
 * Makes them memory of this process alone, with what they hold, which stays when the card is closed.  For the last handle
 * that closes it; false: not done, because there are others or no memory.
 */
bool nic_card_keep_pages(struct nic_card *card, void *p, size_t len);
/* Shows whole pages of the card, [p, p + len), at another address, too, in place of what is there; for reading. */
bool nic_card_view(struct nic_card *card, const void *p, size_t len, void *at);
/* Writes a word of another slot on the control path, mapped writable or not. */
void nic_card_poke(struct nic_card *card, const void *p, const void *from, size_t len);

/* Makes sure that the pages behind [p, p + len) exist.  False: no memory left (a full tmpfs), and why in nic_last_error. */
bool nic_card_reserve(struct nic_card *card, const void *p, size_t len);
/* So that writing to [p, p + len) finds its pages there, in this process, too; where the kernel cannot do that they come one by one. */
void nic_card_populate(struct nic_card *card, const void *p, size_t len);
/* Gives the memory behind [p, p + len), whole pages, back to the system where that can be done; what they hold then is not said. */
void nic_card_discard(struct nic_card *card, void *p, size_t len);
/* Gives the pages behind [p, p + len) back; they read as zero then. */
void nic_card_zero(struct nic_card *card, void *p, size_t len);

#endif
