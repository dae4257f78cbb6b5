/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this machine offers the NIC, found by trying it (nic_check_at of nic.h).
 * Nothing here decides anything: card.c and dma.c try for themselves; this file tells a person the outcome beforehand.
 *
 * The trials run in two processes of their own, which look at each other as two processes of a job do, and tell the
 * caller through a shared page.  So the caller keeps its limits, signals, locks and descriptors, whatever a trial does.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nicemu/engine/card.h"
#include "nicemu/engine/cores.h"
#include "nicemu/engine/wait.h"
#include "nicemu/mem/card.h"
#include "nicemu/nic.h"

enum row { MEMORY, SPACE, ATTACH, SOCKETS, SOCKET_LIST, DESCRIPTORS, LOCKS, CORES, BARRIER, PINNING, ROWS };

static const char *const what[ROWS] = {
	[MEMORY] = "memory for the card",
	[SPACE] = "address space for the card",
	[ATTACH] = "cross-memory attach",
	[SOCKETS] = "abstract sockets",
	[SOCKET_LIST] = "/proc/net/unix",
	[DESCRIPTORS] = "/proc/PID/fd",
	[LOCKS] = "record locks",
	[CORES] = "processor cores",
	[BARRIER] = "membarrier",
	[PINNING] = "locked memory",
};

static struct nic_check rows[ROWS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What the first process of the trials shows the second one. */
struct bench {
	struct nic_check row[ROWS];
	uint64_t word;
	int fd;    /* the memory */
	int owner; /* process id */
};

static const uint64_t secret = 0x716e69782074727aull;

static void say(struct nic_check *row, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(struct nic_check *row, bool ok, const char *format, ...)
{
	va_list ap;

	row->ok = ok;
	va_start(ap, format);
	vsnprintf(row->text, sizeof(row->text), format, ap);
	va_end(ap);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int try_file(struct nic_check *row, const char *why)
{
	const char *dir;
	uint64_t room;
	int fd = nic_card_file(&dir, &room);

	if (fd < 0)
		say(row, false, "%s, and no unlinked file in /dev/shm, /tmp or the current directory either: the NIC cannot be opened", why);
	else
		say(row, false, "%s: an unlinked file in %s is used, with %llu MB free", why, strcmp(dir, ".") == 0 ? "the current directory" : dir,
		    (unsigned long long)room >> 20);
	return fd;
}

static int try_memory(struct nic_check *row)
{
	int fd = memfd_create("qnix-check", MFD_CLOEXEC);
	int err = errno;
	char why[64];

	if (fd >= 0 && strcmp(nic_param_str("memory"), "file") != 0) {
		say(row, true, "memfd: needs no file system, so the size of /dev/shm does not matter");
		return fd;
	}
	if (fd >= 0) {
		close(fd);
		return try_file(row, "memfd works, but parameter memory=file");
	}
	snprintf(why, sizeof(why), "no memfd (%s)", strerror(err));
	return try_file(row, why);
}

/* Signals: a file that may not grow so far would end the process. */
static void try_space(struct nic_check *row, int fd)
{
	const size_t size = sizeof(struct nic_card_map);
	void *p;

	signal(SIGXFSZ, SIG_IGN);
	if (fd < 0) {
		say(row, false, "not tried: there is no memory to map");
	} else if (ftruncate(fd, size) < 0) {
		say(row, false, "%zu MB as a sparse file: %s (ulimit -f?): the NIC cannot be opened", size >> 20, strerror(errno));
	} else if ((p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)) == MAP_FAILED) {
		say(row, false, "%zu MB: %s (ulimit -v?): the NIC cannot be opened", size >> 20, strerror(errno));
	} else {
		say(row, true, "%zu MB can be mapped; only pages in use take memory", size >> 20);
		munmap(p, size);
	}
}

/* ---- finding each other ------------------------------------------------------------------------------------------ */

static int bind_abstract(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	memcpy(addr.sun_path + 1, name, len);
	if (bind(fd, (struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path) + 1 + len) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void try_socket_list(struct nic_check *row, const char *name)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	bool seen = false;

	while (f && !seen && fgets(line, sizeof(line), f))
		seen = strstr(line, name) != NULL;
	if (seen)
		say(row, true, "lists the sockets by which processes find each other's card");
	else
		say(row, false, "%s: processes that start separately do not find each other; each makes a card of its own",
		    f ? "does not list our socket" : strerror(errno));
	if (f)
		fclose(f);
}

static void try_sockets(struct nic_check *row)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "qnix-check.%d.%lx", (int)getpid(), (unsigned long)(uintptr_t)row);
	fd = bind_abstract(name);
	if (fd < 0) {
		say(&row[SOCKETS], false, "%s: the NIC cannot be opened", strerror(errno));
		say(&row[SOCKET_LIST], false, "not tried: there is no socket to look for");
		return;
	}
	say(&row[SOCKETS], true, "a card is found by name, and nothing of it is in a file system");
	try_socket_list(&row[SOCKET_LIST], name);
	close(fd);
}

/* ---- two processes ----------------------------------------------------------------------------------------------- */

/* Of the open file description, as card.c's. */
static int lock(int fd, int how, short type, off_t byte, short *found)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
	int r = fcntl(fd, how, &fl);

	if (found)
		*found = fl.l_type;
	return r;
}

static void peer_attach(struct nic_check *row, const struct bench *b)
{
	uint64_t word = 0, back = ~secret;
	struct iovec local = { &word, sizeof(word) }, out = { &back, sizeof(back) };
	struct iovec remote = { (void *)(uintptr_t)&b->word, sizeof(word) };
	const char *off = strcmp(nic_param_str("cma"), "off") == 0 ? "works, but parameter cma=off" : NULL;
	bool works = process_vm_readv(b->owner, &local, 1, &remote, 1, 0) == sizeof(word) && word == secret &&
	             process_vm_writev(b->owner, &out, 1, &remote, 1, 0) == sizeof(back);

	if (works && !off)
		say(row, true, "large messages and RDMA are copied once, between the processes");
	else
		say(row, false, "%s: large messages and RDMA go through buffers of the card, which is two copies%s",
		    works ? off : strerror(errno), works ? "" : "; engine daemon does not work");
}

static int open_again(const char *process, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/fd/%d", process, fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The memory, opened as a newcomer opens it; -1: that does not work. */
static int peer_descriptors(struct nic_check *row, const struct bench *b)
{
	char owner[16];
	int fd, own, err;

	if (b->fd < 0) {
		say(row, false, "not tried: there is no memory to open");
		return -1;
	}
	snprintf(owner, sizeof(owner), "%d", b->owner);
	fd = open_again(owner, b->fd);
	if (fd >= 0) {
		say(row, true, "a process opens the card that another one has made");
		return fd;
	}
	err = errno;
	own = open_again("self", b->fd);
	if (own >= 0)
		say(row, false, "%s: processes that start separately make a card each, and do not reach each other", strerror(err));
	else
		say(row, false, "%s: the NIC cannot be opened", strerror(errno));
	if (own >= 0)
		close(own);
	return -1;
}

/* Byte 0 is the owner's; byte 1 is locked here, and looked at by the owner when this process has ended. */
static void peer_locks(struct nic_check *row, int fd)
{
	short found = F_UNLCK;

	if (fd < 0)
		say(row, false, "not tried: the memory of another process cannot be opened");
	else if (lock(fd, F_OFD_GETLK, F_WRLCK, 0, &found) < 0)
		say(row, false, "%s: the NIC cannot tell who is alive", strerror(errno));
	else if (found == F_UNLCK || lock(fd, F_OFD_SETLK, F_WRLCK, 1, NULL) < 0)
		say(row, false, "a lock that another process holds is not seen here: the NIC cannot tell who is alive");
	else
		say(row, true, "held");
}

static void after_locks(struct nic_check *row, int fd)
{
	short found = F_WRLCK;

	if (!row->ok)
		return;
	if (lock(fd, F_OFD_GETLK, F_WRLCK, 1, &found) == 0 && found == F_UNLCK)
		say(row, true, "a process that ends, however it ends, is noticed by the others");
	else
		say(row, false, "the lock of a process outlives it: the NIC cannot tell who is alive");
}

static void not_tried(struct bench *b, enum row from, enum row to, const char *why)
{
	for (int i = from; i <= (int)to; i++)
		say(&b->row[i], false, "not tried: %s", why);
}

static void try_two(struct bench *b)
{
	pid_t peer;

	b->word = secret;
	b->owner = getpid();
	not_tried(b, DESCRIPTORS, LOCKS, "the trial was ended");
	not_tried(b, ATTACH, ATTACH, "the trial was ended");
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* as nic_open does */
	if (b->fd >= 0)
		lock(b->fd, F_OFD_SETLK, F_WRLCK, 0, NULL);
	peer = fork();
	if (peer == 0) {
		peer_attach(&b->row[ATTACH], b);
		peer_locks(&b->row[LOCKS], peer_descriptors(&b->row[DESCRIPTORS], b));
		_exit(0);
	}
	if (peer > 0)
		waitpid(peer, NULL, 0);
	if (b->fd >= 0)
		after_locks(&b->row[LOCKS], b->fd);
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

static void try_cores(struct nic_check *row)
{
	uint64_t cpus[NIC_CPU_WORDS];
	int count = nic_cores_allowed(cpus), allowed = count > 0 ? count : 1;
	double quota = nic_cores_quota(), both = quota > 0 && quota < allowed ? quota : allowed;
	char limit[48] = "no quota";

	if (quota > 0)
		snprintf(limit, sizeof(limit), "a cgroup quota of %.3g", quota);
	if (both >= 2)
		say(row, true, "%d allowed, %s: more processes than that take turns", allowed, limit);
	else
		say(row, false, "%d allowed, %s: two processes already take turns, and latency is that of the scheduler", allowed, limit);
}

static void try_barrier(struct nic_check *row)
{
	if (nic_wait_fences())
		say(row, true, "a process that waits for long sleeps until a peer wakes it");
	else
		say(row, false, "refused: a process that waits for long looks for messages at least every half millisecond");
}

static void try_pinning(struct nic_check *row)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		say(row, true, "unlimited; none is needed, since registered memory is not pinned");
	else
		say(row, true, "limited to %llu KB; none is needed, since registered memory is not pinned",
		    (unsigned long long)limit.rlim_cur >> 10);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void try_all(struct bench *b)
{
	try_cores(&b->row[CORES]);
	try_barrier(&b->row[BARRIER]);
	try_pinning(&b->row[PINNING]);
	try_sockets(b->row);
	b->fd = try_memory(&b->row[MEMORY]);
	try_space(&b->row[SPACE], b->fd);
	try_two(b);
}

static void run(void)
{
	struct bench *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (b == MAP_FAILED) {
		for (int i = 0; i < ROWS; i++)
			say(&rows[i], false, "not tried: %s", strerror(errno));
	} else {
		nic_param_at(0); /* so that a complaint about a parameter is made once, here */
		not_tried(b, 0, ROWS - 1, "the trial was ended");
		child = fork();
		if (child == 0) {
			try_all(b);
			_exit(0);
		}
		if (child < 0)
			not_tried(b, 0, ROWS - 1, strerror(errno));
		else
			waitpid(child, NULL, 0);
		memcpy(rows, b->row, sizeof(rows));
		munmap(b, sizeof(*b));
	}
	for (int i = 0; i < ROWS; i++)
		rows[i].what = what[i];
}

const struct nic_check *nic_check_at(uint32_t i)
{
	pthread_once(&once, run);
	return i < ROWS ? &rows[i] : NULL;
}
