/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of cards: abstract sockets that say which device, which card, which process and which descriptor, and that the kernel
 * drops with the process; and the name that keeps two newcomers apart.  What is found by them is card.c's to judge.
 */
#include "nicemu/engine/card_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { OPEN_WAIT_MS = 20000 };

uint32_t nic_card_host(void)
{
	char name[256] = "";
	uint32_t h = 2166136261u;

	gethostname(name, sizeof(name) - 1);
	for (const char *p = name; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	return h;
}

/* Common start of the names of a device; all devices when it is NULL. */
void nic_card_prefix(const char *device, char *out, size_t size)
{
	if (device)
		snprintf(out, size, "qnix.%u.%08x.%s.", (unsigned)geteuid(), nic_card_host(), device);
	else
		snprintf(out, size, "qnix.%u.%08x.", (unsigned)geteuid(), nic_card_host());
}

/* Binds an abstract name; -1 with errno EADDRINUSE when somebody has it. */
int nic_card_bind(const char *name)
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

int nic_card_lock_device(const char *device)
{
	char name[108];
	struct timespec ms = { 0, 1000000 };
	int fd = -1;

	nic_card_prefix(device, name, sizeof(name) - 5);
	strcat(name, "lock");
	for (int i = 0; i < OPEN_WAIT_MS; i++) {
		fd = nic_card_bind(name);
		if (fd >= 0 || errno != EADDRINUSE)
			break;
		nanosleep(&ms, NULL);
	}
	return fd;
}

/* `qnix.UID.HOST.DEVICE.UUID.PID.FD`; the device may contain dots. */
static bool parse_advert(char *name, struct nic_advert *out)
{
	char any[32], *device, *end;
	size_t n;

	nic_card_prefix(NULL, any, sizeof(any));
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
int nic_card_each_advert(int (*fn)(void *arg, const struct nic_advert *), void *arg)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	int r = 0;

	if (!f)
		return -1;
	while (r == 0 && fgets(line, sizeof(line), f)) {
		struct nic_advert ad;
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
