/* SPDX-License-Identifier: BSD-3-Clause */
/* The card lock, and the life lines of slots: record locks of a descriptor that nothing else uses. */
#include "nicemu/engine/card_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "nicemu/util/atomic.h"
#include "nicemu/util/log.h"

enum { LOCK_BYTE = 0, HOLD_BYTE = 16 /* + slot */ };

/* Locks of the open file description: they hold against other descriptors of the same process, and closing those does not release them. */
static int record_lock(const struct nic_card *card, int how, short type, off_t byte, struct flock *out)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
	int r;

	do
		r = fcntl(card->lock_fd, how, &fl);
	while (r < 0 && errno == EINTR);
	if (out)
		*out = fl;
	return r;
}

void nic_card_lock(struct nic_card *card)
{
	pthread_mutex_lock(&card->lock);
	if (record_lock(card, F_OFD_SETLKW, F_WRLCK, LOCK_BYTE, NULL) < 0)
		nic_log(NIC_LOG_ERROR, "cannot lock the card: %s; going on without", strerror(errno));
}

bool nic_card_trylock(struct nic_card *card)
{
	if (pthread_mutex_trylock(&card->lock) != 0)
		return false;
	if (record_lock(card, F_OFD_SETLK, F_WRLCK, LOCK_BYTE, NULL) == 0)
		return true;
	pthread_mutex_unlock(&card->lock);
	return false;
}

void nic_card_unlock(struct nic_card *card)
{
	record_lock(card, F_OFD_SETLK, F_UNLCK, LOCK_BYTE, NULL);
	pthread_mutex_unlock(&card->lock);
}

/* own: relaxed everywhere; it changes under the card lock, and who looks without it sees the record lock soon enough. */
static bool is_own(const struct nic_card *card, uint32_t slot)
{
	return nic_load_relaxed(&card->own[slot]);
}

bool nic_card_hold(struct nic_card *card, uint32_t slot)
{
	if (is_own(card, slot) || record_lock(card, F_OFD_SETLK, F_WRLCK, HOLD_BYTE + slot, NULL) < 0)
		return false;
	nic_store_relaxed(&card->own[slot], true);
	return true;
}

void nic_card_drop(struct nic_card *card, uint32_t slot)
{
	nic_store_relaxed(&card->own[slot], false);
	record_lock(card, F_OFD_SETLK, F_UNLCK, HOLD_BYTE + slot, NULL);
}

bool nic_card_held(const struct nic_card *card, uint32_t slot)
{
	struct flock fl;

	return is_own(card, slot) || record_lock(card, F_OFD_GETLK, F_WRLCK, HOLD_BYTE + slot, &fl) < 0 || fl.l_type != F_UNLCK;
}
