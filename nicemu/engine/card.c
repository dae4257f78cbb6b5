/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding, creating, opening and closing the card (see card.h; its contents: mem/card.h).  Not here: how its names look (card_name.c),
 * how it is mapped (card_pages.c), its locks (card_lock.c), and those who only look at it (card_look.c).
 *
 * The card has no name in a file system.  It is a memfd, or an unlinked file, and lives as long as a process maps it.
 * Every process that has it binds an abstract socket whose name says which device, which card, which process and which
 * descriptor; the kernel drops that name with the process.  A newcomer reads the names from /proc/net/unix and opens the
 * card through /proc/PID/fd.  Two newcomers exclude each other by binding one more abstract name, the device's lock.
 * Network namespaces, users and host names therefore separate cards, as they separate hosts.
 */
#include "nicemu/engine/card_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/nic.h"
#include "nicemu/util/atomic.h"
#include "nicemu/util/log.h"

pthread_mutex_t nic_card_list_lock = PTHREAD_MUTEX_INITIALIZER;
struct nic_card *nic_card_list;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int unlinked_file(const char *dir)
{
	char path[64];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/qnix-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static uint64_t room_of(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

int nic_card_file(const char **dir, uint64_t *room)
{
	static const char *const dirs[] = { "/dev/shm", "/tmp", "." };
	enum { LEAST = 4 << 20 }; /* bytes: what some ranks take before they send much */
	int chosen = -1;

	*room = 0;
	for (int i = 0; i < 3 && *room < LEAST; i++) {
		int fd = unlinked_file(dirs[i]);
		uint64_t here = fd >= 0 ? room_of(fd) : 0;

		if (fd >= 0 && (chosen < 0 || here >= LEAST)) {
			if (chosen >= 0)
				close(chosen);
			chosen = fd;
			*dir = dirs[i];
			*room = here;
		} else if (fd >= 0) {
			close(fd);
		}
	}
	return chosen;
}

static bool size_allowed(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= size;
}

static bool file_size_allowed(void)
{
	if (size_allowed(sizeof(struct nic_card_map)))
		return true;
	nic_fail(NIC_SYSTEM, "the limit on file sizes (ulimit -f) is below the size of the card, %zu MB; almost none of it is ever used",
	         sizeof(struct nic_card_map) >> 20);
	return false;
}

/* The heap only where so large a file may be: a limit that is passed would end the process. */
static bool set_size(int fd)
{
	const uint64_t all = sizeof(struct nic_card_map) + NIC_HEAP_SIZE;

	return (size_allowed(all) && ftruncate(fd, all) == 0) || ftruncate(fd, sizeof(struct nic_card_map)) == 0;
}

static int new_memory(bool *file)
{
	const char *want = nic_param_str("memory"), *dir;
	uint64_t room;
	int fd = -1;

	*file = strcmp(want, "file") == 0;
	if (!*file) {
		fd = memfd_create("qnix", MFD_CLOEXEC);
		if (fd < 0 && strcmp(want, "auto") == 0)
			*file = true;
	}
	if (*file)
		fd = nic_card_file(&dir, &room);
	if (fd >= 0 && !set_size(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool create(struct nic_card *card)
{
	struct nic_card_hdr *hdr;
	uint32_t h = nic_card_host();

	if (!file_size_allowed())
		return false;
	card->fd = new_memory(&card->file);
	if (card->fd < 0) {
		nic_fail(NIC_SYSTEM, "no memory for the card: neither memfd nor an unlinked file in /dev/shm, /tmp or the current directory: %s",
		         strerror(errno));
		return false;
	}
	if (!nic_card_map_all(card) || !nic_card_reserve(card, card->map, sizeof(struct nic_card_hdr)) ||
	    !nic_card_reserve(card, card->map->bell, sizeof(card->map->bell)) ||
	    !nic_card_reserve(card, &card->map->pool, sizeof(card->map->pool)) ||
	    !nic_card_reserve(card, &card->map->heap, offsetof(struct nic_heap, granule)))
		return false;
	hdr = &card->map->hdr;
	hdr->version = NIC_CARD_VERSION;
	hdr->header_size = sizeof(*hdr);
	hdr->layout = nic_card_layout();
	hdr->total = sizeof(struct nic_card_map) + card->heap;
	hdr->file = card->file;
	if (getrandom(&hdr->uuid, sizeof(hdr->uuid), GRND_NONBLOCK) != sizeof(hdr->uuid))
		hdr->uuid = ((uint64_t)getpid() << 32) ^ (uint64_t)time(NULL) ^ (uintptr_t)hdr;
	hdr->addr[0] = 0x02; /* locally administered */
	hdr->addr[1] = 'q';
	memcpy(hdr->addr + 2, &h, 4);
	snprintf(hdr->device, sizeof(hdr->device), "%s", card->device);
	nic_store_release(&hdr->magic, NIC_CARD_MAGIC); /* pairs with the acquire in attach */
	return true;
}

int nic_card_open_advert(const struct nic_advert *ad)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", ad->pid, ad->fd);
	return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* anybody may have bound the name: it may lead to a pipe or a terminal */
}

/* Does the descriptor hold the card that the name promised?  `why` is set when it is one of another build. */
bool nic_card_plausible(int fd, const struct nic_advert *ad, bool *other_build)
{
	struct nic_card_hdr hdr;
	struct stat st;

	/* Only what this user made: names can be bound by anybody. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || pread(fd, &hdr, sizeof(hdr), 0) != sizeof(hdr))
		return false;
	if (nic_load_relaxed(&hdr.magic) != NIC_CARD_MAGIC || hdr.uuid != ad->uuid) /* a private copy */
		return false;
	*other_build = hdr.layout != nic_card_layout() || (st.st_size != (off_t)sizeof(struct nic_card_map) &&
	                                                   st.st_size != (off_t)(sizeof(struct nic_card_map) + NIC_HEAP_SIZE));
	return !*other_build;
}

struct attach {
	struct nic_card *card;
	bool other_build, refused;
};

static int try_attach(void *arg, const struct nic_advert *ad)
{
	struct attach *a = arg;
	bool other = false;
	int fd;

	if (strcmp(ad->device, a->card->device) != 0)
		return 0;
	fd = nic_card_open_advert(ad);
	if (fd < 0) {
		a->refused |= errno == EACCES || errno == EPERM;
		return 0;
	}
	if (nic_card_plausible(fd, ad, &other)) {
		a->card->fd = fd;
		return 1;
	}
	a->other_build |= other;
	close(fd);
	return 0;
}

static bool find(struct nic_card *card, bool *fatal)
{
	struct attach a = { .card = card };
	int r = nic_card_each_advert(try_attach, &a);

	*fatal = false;
	if (r == 1)
		return nic_card_map_all(card) || !(*fatal = true);
	if (r < 0)
		nic_log(NIC_LOG_WARN, "/proc/net/unix cannot be read: processes that start separately will not find each other");
	if (a.other_build) {
		nic_fail(NIC_SYSTEM, "device \"%s\" is in use by processes of another build of qnix; use another device name", card->device);
		*fatal = true;
	} else if (a.refused) {
		nic_log(NIC_LOG_WARN, "device \"%s\": a card of that name exists, but /proc/PID/fd of its owner may not be opened; making a new one",
		        card->device);
	}
	return false;
}

static bool open_locks(struct nic_card *card)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", card->fd);
	card->lock_fd = open(path, O_RDWR | O_CLOEXEC);
	if (card->lock_fd < 0)
		nic_fail(NIC_SYSTEM, "cannot open the card a second time, through %s: %s", path, strerror(errno));
	return card->lock_fd >= 0;
}

static bool advertise(struct nic_card *card)
{
	char name[160];
	size_t n;

	nic_card_prefix(card->device, name, sizeof(name));
	n = strlen(name);
	snprintf(name + n, sizeof(name) - n, "%016llx.%d.%d", (unsigned long long)card->map->hdr.uuid, (int)getpid(), card->fd);
	card->name_fd = nic_card_bind(name);
	if (card->name_fd < 0)
		nic_fail(NIC_SYSTEM, "cannot bind the abstract socket \"%s\": %s", name, strerror(errno));
	return card->name_fd >= 0;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static void discard(struct nic_card *card)
{
	if (card->map)
		nic_card_unmap(card);
	if (card->window)
		munmap(card->window, card->heap);
	if (card->fd >= 0)
		close(card->fd);
	if (card->lock_fd >= 0)
		close(card->lock_fd);
	if (card->name_fd >= 0)
		close(card->name_fd);
	pthread_mutex_destroy(&card->lock);
	free(card);
}

/* A child of fork shares the descriptors, and with them the life lines of its parent's slots: it lets go of them. */
static void forget_in_child(void)
{
	for (struct nic_card *card = nic_card_list; card; card = card->next) {
		close(card->fd);
		close(card->lock_fd);
		close(card->name_fd);
		card->fd = card->lock_fd = card->name_fd = -1;
	}
	nic_card_list = NULL;
	pthread_mutex_init(&nic_card_list_lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

static int open_new(const char *device, struct nic_card **out)
{
	struct nic_card *card = calloc(1, sizeof(*card));
	bool fatal, ok;
	int lock;

	if (!card)
		return nic_fail(NIC_RESOURCE, "out of memory");
	card->fd = card->name_fd = card->lock_fd = -1;
	card->refs = 1;
	pthread_mutex_init(&card->lock, NULL);
	snprintf(card->device, sizeof(card->device), "%s", device);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where Yama asks for it; elsewhere it fails, and nobody needs it */
	lock = nic_card_lock_device(device);
	if (lock < 0) {
		discard(card);
		return nic_fail(NIC_SYSTEM, "cannot lock device \"%s\" by an abstract unix socket: %s", device, strerror(errno));
	}
	ok = (find(card, &fatal) || (!fatal && create(card))) && open_locks(card) && advertise(card);
	close(lock);
	if (!ok) {
		discard(card);
		return NIC_SYSTEM;
	}
	card->next = nic_card_list;
	nic_card_list = card;
	*out = card;
	return NIC_OK;
}

int nic_card_open(const char *device, struct nic_card **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct nic_card *card;
	int err = NIC_OK;

	pthread_once(&once, watch_forks);
	if (!*device || strlen(device) >= NIC_DEVICE_MAX || strpbrk(device, "/ \t\n@"))
		return nic_fail(NIC_PARAMETER, "device name \"%.60s\": 1 to %d characters, no blanks, '/' or '@'", device, NIC_DEVICE_MAX - 1);
	pthread_mutex_lock(&nic_card_list_lock);
	for (card = nic_card_list; card && strcmp(card->device, device) != 0; card = card->next)
		;
	if (card) {
		card->refs++;
		*out = card;
	} else {
		err = open_new(device, out);
	}
	pthread_mutex_unlock(&nic_card_list_lock);
	return err;
}

void nic_card_close(struct nic_card *card)
{
	pthread_mutex_lock(&nic_card_list_lock);
	if (--card->refs == 0) {
		struct nic_card **p = &nic_card_list;

		while (*p && *p != card)
			p = &(*p)->next;
		if (*p)
			*p = card->next;
		discard(card);
	}
	pthread_mutex_unlock(&nic_card_list_lock);
}

struct nic_card_map *nic_card_map(const struct nic_card *card)
{
	return card->map;
}

uint8_t *nic_card_heap(const struct nic_card *card)
{
	return card->heap ? (uint8_t *)(card->map + 1) : NULL;
}

uint8_t *nic_card_window(const struct nic_card *card)
{
	return card->window;
}

const char *nic_card_memory(const struct nic_card *card)
{
	return card->file ? "file" : "memfd";
}
