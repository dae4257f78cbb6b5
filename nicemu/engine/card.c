/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding, creating, mapping and locking the card (see card.h; its contents: mem/card.h).
 *
 * The card has no name in a file system.  It is a memfd, or an unlinked file, and lives as long as a process maps it.
 * Every process that has it binds an abstract socket whose name says which device, which card, which process and which
 * descriptor; the kernel drops that name with the process.  A newcomer reads the names from /proc/net/unix and opens the
 * card through /proc/PID/fd.  Two newcomers exclude each other by binding one more abstract name, the device's lock.
 * Network namespaces, users and host names therefore separate cards, as they separate hosts.
 */
#include "nicemu/engine/card.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "nicemu/mem/card.h"
#include "nicemu/nic.h"
#include "nicemu/util/atomic.h"
#include "nicemu/util/log.h"

enum { LOCK_BYTE = 0, HOLD_BYTE = 16 /* + slot */, OPEN_WAIT_MS = 20000 };

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

static pthread_mutex_t cards_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nic_card *cards;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static uint32_t host_hash(void)
{
	char name[256] = "";
	uint32_t h = 2166136261u;

	gethostname(name, sizeof(name) - 1);
	for (const char *p = name; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	return h;
}

/* Common start of the names of a device; all devices when it is NULL. */
static void name_prefix(const char *device, char *out, size_t size)
{
	if (device)
		snprintf(out, size, "qnix.%u.%08x.%s.", (unsigned)geteuid(), host_hash(), device);
	else
		snprintf(out, size, "qnix.%u.%08x.", (unsigned)geteuid(), host_hash());
}

/* Binds an abstract name; -1 with errno EADDRINUSE when somebody has it. */
static int bind_name(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (len > sizeof(addr.sun_path) - 1)
		len = sizeof(addr.sun_path) - 1;
	memcpy(addr.sun_path + 1, name, len);
	if (bind(fd, (struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path) + 1 + len) == 0)
		return fd;
	int err = errno;

	close(fd);
	errno = err;
	return -1;
}

static int lock_device(const char *device)
{
	char name[108];
	struct timespec ms = { 0, 1000000 };
	int fd = -1;

	name_prefix(device, name, sizeof(name) - 5);
	strcat(name, "lock");
	for (int i = 0; i < OPEN_WAIT_MS; i++) {
		fd = bind_name(name);
		if (fd >= 0 || errno != EADDRINUSE)
			break;
		nanosleep(&ms, NULL);
	}
	return fd;
}

struct advert {
	char device[NIC_DEVICE_MAX];
	unsigned long long uuid;
	int pid, fd;
};

/* `qnix.UID.HOST.DEVICE.UUID.PID.FD`; the device may contain dots. */
static bool parse_advert(char *name, struct advert *out)
{
	char any[32], *device, *end;
	size_t n;

	name_prefix(NULL, any, sizeof(any));
	n = strlen(any);
	if (strncmp(name, any, n) != 0)
		return false;
	device = name + n;
	for (int field = 0; field < 3; field++) {
		end = strrchr(device, '.');
		if (!end)
			return false;
		*end = 0;
		if (field == 0)
			out->fd = atoi(end + 1);
		else if (field == 1)
			out->pid = atoi(end + 1);
		else
			out->uuid = strtoull(end + 1, NULL, 16);
	}
	if (!*device || strlen(device) >= NIC_DEVICE_MAX || out->pid <= 0)
		return false;
	strcpy(out->device, device);
	return true;
}

/* Calls fn for every name of ours on this host until it returns non-zero; -1: names cannot be read. */
static int each_advert(int (*fn)(void *arg, const struct advert *), void *arg)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	int r = 0;

	if (!f)
		return -1;
	while (r == 0 && fgets(line, sizeof(line), f)) {
		struct advert ad;
		char *at = strstr(line, " @qnix.");

		if (!at)
			continue;
		at[strcspn(at, "\n")] = 0;
		if (parse_advert(at + 2, &ad))
			r = fn(arg, &ad);
	}
	fclose(f);
	return r;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int file_memory(void)
{
	static const char *const dirs[] = { "/dev/shm", "/tmp", "." };

	for (int i = 0; i < 3; i++) {
		char path[64];
		int fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

		if (fd >= 0)
			return fd;
		snprintf(path, sizeof(path), "%s/qnix-XXXXXX", dirs[i]);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			unlink(path);
			return fd;
		}
	}
	return -1;
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
	const char *want = nic_param_str("memory");
	int fd = -1;

	*file = strcmp(want, "file") == 0;
	if (!*file) {
		fd = memfd_create("qnix", MFD_CLOEXEC);
		if (fd < 0 && strcmp(want, "auto") == 0)
			*file = true;
	}
	if (*file)
		fd = file_memory();
	if (fd >= 0 && !set_size(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A card of this build has one of two sizes. */
static bool has_heap(const struct nic_card *card)
{
	struct stat st;

	return fstat(card->fd, &st) == 0 && st.st_size == (off_t)(sizeof(struct nic_card_map) + NIC_HEAP_SIZE);
}

/* The card and what is behind it in one piece, so that the owner's addresses tell peers where in the heap something is. */
static void *map_all(struct nic_card *card)
{
	const size_t size = sizeof(struct nic_card_map), heap = has_heap(card) ? NIC_HEAP_SIZE : 0;
	uint8_t *p = heap ? mmap(NULL, size + heap, PROT_NONE, MAP_SHARED | MAP_NORESERVE, card->fd, 0) : MAP_FAILED;

	if (p != MAP_FAILED) {
		void *window = mmap(NULL, heap, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, card->fd, size);

		if (window != MAP_FAILED && mprotect(p, size, PROT_READ) == 0) {
			madvise(window, heap, MADV_DONTDUMP);
			card->window = window;
			card->heap = heap;
			return p;
		}
		if (window != MAP_FAILED)
			munmap(window, heap);
		munmap(p, size + heap);
	}
	return mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, card->fd, 0);
}

static bool map_card(struct nic_card *card)
{
	void *p = map_all(card);

	if (p == MAP_FAILED) {
		nic_fail(NIC_SYSTEM, "cannot map the card (%zu MB of address space): %s", sizeof(struct nic_card_map) >> 20, strerror(errno));
		return false;
	}
	madvise(p, sizeof(struct nic_card_map) + card->heap, MADV_DONTDUMP);
	card->map = p;
	card->file = card->file || card->map->hdr.file;
	return nic_card_writable(card, &card->map->hdr, sizeof(card->map->hdr)) &&
	       nic_card_writable(card, card->map->bell, sizeof(card->map->bell)) &&
	       nic_card_writable(card, &card->map->pool, sizeof(struct nic_card_map) - offsetof(struct nic_card_map, pool));
}

static bool create(struct nic_card *card)
{
	struct nic_card_hdr *hdr;
	uint32_t h = host_hash();

	if (!file_size_allowed())
		return false;
	card->fd = new_memory(&card->file);
	if (card->fd < 0) {
		nic_fail(NIC_SYSTEM, "no memory for the card: neither memfd nor an unlinked file in /dev/shm, /tmp or the current directory: %s",
		         strerror(errno));
		return false;
	}
	if (!map_card(card) || !nic_card_reserve(card, card->map, sizeof(struct nic_card_hdr)) ||
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

static int open_advert(const struct advert *ad)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", ad->pid, ad->fd);
	return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* anybody may have bound the name: it may lead to a pipe or a terminal */
}

/* Does the descriptor hold the card that the name promised?  `why` is set when it is one of another build. */
static bool plausible(int fd, const struct advert *ad, bool *other_build)
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

static int try_attach(void *arg, const struct advert *ad)
{
	struct attach *a = arg;
	bool other = false;
	int fd;

	if (strcmp(ad->device, a->card->device) != 0)
		return 0;
	fd = open_advert(ad);
	if (fd < 0) {
		a->refused |= errno == EACCES || errno == EPERM;
		return 0;
	}
	if (plausible(fd, ad, &other)) {
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
	int r = each_advert(try_attach, &a);

	*fatal = false;
	if (r == 1)
		return map_card(card) || !(*fatal = true);
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

	name_prefix(card->device, name, sizeof(name));
	n = strlen(name);
	snprintf(name + n, sizeof(name) - n, "%016llx.%d.%d", (unsigned long long)card->map->hdr.uuid, (int)getpid(), card->fd);
	card->name_fd = bind_name(name);
	if (card->name_fd < 0)
		nic_fail(NIC_SYSTEM, "cannot bind the abstract socket \"%s\": %s", name, strerror(errno));
	return card->name_fd >= 0;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static void unmap(struct nic_card *card)
{
	uint8_t *from = (uint8_t *)card->map, *end = from + sizeof(struct nic_card_map) + card->heap;
	struct kept *k;

	while ((k = card->kept)) {
		munmap(from, k->p - from);
		from = k->p + k->len;
		card->kept = k->next;
		free(k);
	}
	if (from < end)
		munmap(from, end - from);
}

static void discard(struct nic_card *card)
{
	if (card->map)
		unmap(card);
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
	for (struct nic_card *card = cards; card; card = card->next) {
		close(card->fd);
		close(card->lock_fd);
		close(card->name_fd);
		card->fd = card->lock_fd = card->name_fd = -1;
	}
	cards = NULL;
	pthread_mutex_init(&cards_lock, NULL);
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
	lock = lock_device(device);
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
	card->next = cards;
	cards = card;
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
	pthread_mutex_lock(&cards_lock);
	for (card = cards; card && strcmp(card->device, device) != 0; card = card->next)
		;
	if (card) {
		card->refs++;
		*out = card;
	} else {
		err = open_new(device, out);
	}
	pthread_mutex_unlock(&cards_lock);
	return err;
}

void nic_card_close(struct nic_card *card)
{
	pthread_mutex_lock(&cards_lock);
	if (--card->refs == 0) {
		struct nic_card **p = &cards;

		while (*p && *p != card)
			p = &(*p)->next;
		if (*p)
			*p = card->next;
		discard(card);
	}
	pthread_mutex_unlock(&cards_lock);
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

/* ---- locks ------------------------------------------------------------------------------------------------------- */

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

/* ---- pages ------------------------------------------------------------------------------------------------------- */

bool nic_card_writable(struct nic_card *card, const void *p, size_t len)
{
	uintptr_t from = (uintptr_t)p & ~(uintptr_t)(NIC_PAGE - 1), to = ((uintptr_t)p + len + NIC_PAGE - 1) & ~(uintptr_t)(NIC_PAGE - 1);

	(void)card;
	if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0)
		return true;
	nic_fail(NIC_SYSTEM, "cannot make a part of the card writable: %s", strerror(errno));
	return false;
}

/* A quarter of the file system is left for what the NICs themselves need: without buffers nothing moves any more. */
static bool leaves_room(const struct nic_card *card, size_t len)
{
	struct statvfs fs;

	if (!card->file || fstatvfs(card->fd, &fs) < 0 || fs.f_bavail * fs.f_frsize >= len + fs.f_blocks * fs.f_frsize / 4)
		return true;
	nic_fail(NIC_RESOURCE, "the file system that holds the card would be left with less than a quarter of its room (%zu bytes wanted)", len);
	return false;
}

/* When a handle was opened while another, the last one, was being closed. */
static bool meets_kept(const struct nic_card *card, const uint8_t *p, size_t len)
{
	for (const struct kept *k = card->kept; k; k = k->next)
		if (p < k->p + k->len && k->p < p + len)
			return nic_fail(NIC_RESOURCE, "where memory is free in the card this process has memory of its own") != NIC_OK;
	return false;
}

bool nic_card_open_pages(struct nic_card *card, void *p, size_t len)
{
	if (meets_kept(card, p, len) || !leaves_room(card, len) || !nic_card_reserve(card, p, len) || !nic_card_writable(card, p, len))
		return false;
	madvise(p, len, MADV_DODUMP); /* the consumer's data belong into its core file */
	return true;
}

void nic_card_close_pages(struct nic_card *card, void *p, size_t len)
{
	(void)card;
	if (mprotect(p, len, PROT_NONE) < 0)
		nic_log(NIC_LOG_WARN, "memory that was freed stays within reach: %s", strerror(errno));
	madvise(p, len, MADV_DONTDUMP);
}

/* What the file has of it: all else reads as zero in fresh memory too. */
static void copy_data(const struct nic_card *card, uint8_t *to, const uint8_t *p, size_t len)
{
	const off_t heap = sizeof(struct nic_card_map), start = p - (uint8_t *)card->map, end = start + (off_t)len;
	off_t data, hole;

	for (off_t at = start; at < end; at = hole) {
		data = lseek(card->fd, at, SEEK_DATA);
		if (data >= end || (data < 0 && errno == ENXIO))
			return;
		data = data < at ? at : data;
		hole = lseek(card->fd, data, SEEK_HOLE);
		hole = hole <= data || hole > end ? end : hole;
		memcpy(to + (data - start), card->window + (data - heap), hole - data);
	}
}

static bool note_kept(struct nic_card *card, uint8_t *p, size_t len)
{
	struct kept *k = malloc(sizeof(*k)), **at = &card->kept;

	if (!k)
		return false;
	while (*at && (*at)->p < p)
		at = &(*at)->next;
	*k = (struct kept){ .next = *at, .p = p, .len = len };
	*at = k;
	return true;
}

static bool has_others(const struct nic_card *card)
{
	bool others;

	pthread_mutex_lock(&cards_lock);
	others = card->refs > 1;
	pthread_mutex_unlock(&cards_lock);
	return others;
}

bool nic_card_keep_pages(struct nic_card *card, void *p, size_t len)
{
	uint8_t *own;

	if (has_others(card)) /* they may be given this place next */
		return false;
	own = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (own == MAP_FAILED)
		return false;
	copy_data(card, own, p, len);
	if (mremap(own, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p)
		return note_kept(card, p, len);
	munmap(own, len);
	return false;
}

bool nic_card_view(struct nic_card *card, const void *p, size_t len, void *at)
{
	return mmap(at, len, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, card->fd, (const char *)p - (const char *)card->map) == at;
}

void nic_card_poke(struct nic_card *card, const void *p, const void *from, size_t len)
{
	if (pwrite(card->fd, from, len, (const char *)p - (const char *)card->map) != (ssize_t)len)
		nic_log(NIC_LOG_ERROR, "cannot write to the card: %s", strerror(errno));
}

bool nic_card_reserve(struct nic_card *card, const void *p, size_t len)
{
	int err;

	if (!card->file)
		return true; /* a memfd has no quota of its own */
	err = posix_fallocate(card->fd, (const char *)p - (const char *)card->map, len);
	if (err)
		nic_fail(NIC_RESOURCE, "the file system that holds the card is full (%zu bytes wanted): %s", len, strerror(err));
	return err == 0;
}

void nic_card_discard(struct nic_card *card, void *p, size_t len)
{
	/* Where it cannot be done the memory stays the card's, for the next that asks for some. */
	if (fallocate(card->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (char *)p - (char *)card->map, len) < 0)
		nic_log(NIC_LOG_DEBUG, "memory cannot be given back: %s", strerror(errno));
}

void nic_card_zero(struct nic_card *card, void *p, size_t len)
{
	off_t from = (char *)p - (char *)card->map;

	static const uint8_t zero[NIC_PAGE];

	if (fallocate(card->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, len) == 0)
		return;
	for (size_t at = 0; at < len; at += NIC_PAGE)
		nic_card_poke(card, (char *)p + at, zero, len - at < NIC_PAGE ? len - at : NIC_PAGE);
}

/* ---- looking from outside ---------------------------------------------------------------------------------------- */

struct listing {
	int (*fn)(void *arg, const struct nic_card_info *);
	void *arg;
	uint64_t seen[1024];
	unsigned nseen;
};

static int list_one(void *arg, const struct advert *ad)
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

	return each_advert(list_one, &l) < 0 ? NIC_SYSTEM : NIC_OK;
}

struct visit {
	const struct nic_card_info *want;
	struct nic_card view;
};

static int visit_one(void *arg, const struct advert *ad)
{
	struct visit *v = arg;
	bool other;
	int fd;

	if (ad->uuid != v->want->card)
		return 0;
	fd = open_advert(ad);
	if (fd < 0)
		return 0;
	if (plausible(fd, ad, &other)) {
		v->view.fd = v->view.lock_fd = fd;
		return 1;
	}
	close(fd);
	return 0;
}

static void copy_slot(struct nic_card_map *map, uint32_t i, struct nic_slot_info *out)
{
	struct nic_slot *slot = &map->slot[i];

	memset(out, 0, sizeof(*out));
	out->slot = i;
	out->pid = nic_load_relaxed(&slot->pid); /* a picture of a running job: any recent value will do, here and below */
	memcpy(out->command, slot->command, sizeof(out->command) - 1);
	out->daemon = nic_load_relaxed(&slot->served) ? nic_load_relaxed(&map->hdr.daemon.pid) : 0;
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

	pthread_mutex_lock(&cards_lock);
	for (card = cards; card && card->map->hdr.uuid != uuid; card = card->next)
		;
	if (card)
		visit_slots(card, fn, arg);
	pthread_mutex_unlock(&cards_lock);
	return card != NULL;
}

int nic_card_slots(const struct nic_card_info *info, int (*fn)(void *arg, const struct nic_slot_info *), void *arg)
{
	struct visit v = { .want = info, .view = { .fd = -1, .lock_fd = -1 } };

	if (visit_own(info->card, fn, arg))
		return NIC_OK;
	if (each_advert(visit_one, &v) != 1)
		return nic_fail(NIC_NO_MATCH, "the card is gone, or belongs to another build");
	v.view.map = mmap(NULL, sizeof(struct nic_card_map), PROT_READ, MAP_SHARED | MAP_NORESERVE, v.view.fd, 0);
	if (v.view.map != MAP_FAILED) {
		visit_slots(&v.view, fn, arg);
		munmap(v.view.map, sizeof(struct nic_card_map));
	}
	close(v.view.fd);
	return NIC_OK;
}
