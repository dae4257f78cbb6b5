/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaching to a card that somebody else made: of other memory than one's own choice, on a file system that is full, by
 * another user.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/kin.h"

static char device[48];

enum { READY, GO };

/* In place of the library's, so that a stranger can take root's name. */
static int feign_root;

uid_t geteuid(void)
{
	return feign_root ? 0 : (uid_t)syscall(SYS_geteuid);
}

static int start_again(const char *what)
{
	execl("/proc/self/exe", "attach", what, device, (char *)NULL);
	return 100;
}

/* ---- whose memory it is ------------------------------------------------------------------------------------------ */

static int says_file(void)
{
	struct nic_attr attr;
	struct nic *nic;

	if (nic_open(&(struct nic_open_args){ .device = device }, &nic))
		return 2;
	nic_query(nic, &attr);
	nic_close(nic);
	return strcmp(attr.memory, "file") != 0;
}

static int start_says_file(void)
{
	return start_again("--says-file");
}

static void file_is_known_to_all(void)
{
	struct end e;

	CHECK_EQ(nic_param_set("memory", "file", "test"), NIC_OK);
	end_open(&e, device);
	CHECK_STR(nic_card_memory(e.nic->card), "file");
	CHECK_EQ(kin_wait(kin_fork(start_says_file)), 0);
	end_close(&e);
	CHECK_EQ(nic_param_set("memory", "auto", "test"), NIC_OK);
}

/* ---- a full file system ------------------------------------------------------------------------------------------ */

enum { NO_MOUNT = 77 };

/* Until nothing more fits. */
static int fill_up(void)
{
	static const char page[4096];
	int fd = open("/dev/shm/filler", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = write(fd, page, sizeof(page))) > 0)
		;
	close(fd);
	return 0;
}

static int count_slot(void *arg, const struct nic_slot_info *info)
{
	*(int *)arg += info->pid > 0;
	return 0;
}

static int count_card(void *arg, const struct nic_card_info *info)
{
	if (strcmp(info->device, device) == 0)
		nic_card_slots(info, count_slot, arg);
	return 0;
}

/* Everything that touches a page for the first time: it works or is refused.  A signal is the failure. */
static void use_everything(struct end *e)
{
	struct nic_mem_attr attr = { .flags = NIC_MEM_RDMA_WRITE };
	uint32_t handle;

	for (int i = 0; i < 300; i++)
		if (!nic_buf_take(e->nic))
			break;
	for (int i = 0; i < NIC_MAX_VI; i++) {
		struct nic_vi_args args = { .attr = { .reliability = NIC_RELIABLE_DELIVERY }, .cookie = 2 };
		uint32_t vi;

		if (nic_vi_create(e->nic, &args, &vi))
			break;
		for (int k = 0; k < 200; k++)
			nic_post_recv(e->nic, vi, fill(e, 400 + k, 0, e->mem, 64));
		nic_disconnect(e->nic, vi);
	}
	for (int i = 0; i < 2000; i++)
		if (nic_mem_register(e->nic, (uintptr_t)e->mem, 100, &attr, &handle))
			break;
}

static void talk(struct end *e)
{
	for (int i = 0; i < 100; i++)
		recv_desc(e, fill(e, i, 0, e->mem, 8192));
	for (int i = 0; i < 300; i++) {
		send_desc(e, fill(e, 100 + i, 0, e->mem, i % 2 ? 8192 : 30));
		nic_poll(e->nic);
	}
}

/* The other process: attaches while there is room, connects, and goes on when there is none. */
static int second_on_full(void)
{
	struct nic *more;
	struct end e;
	int slots = 0;

	end_open(&e, device);
	end_vi(&e, NIC_UNRELIABLE);
	if (kin_connect(&e, "second", "first"))
		return 1;
	while (!e.nic->map->slot[0].counter[NIC_C_connections]) /* the first has room for its end of the link, too */
		nic_poll(e.nic);
	if (fill_up())
		return 2;
	talk(&e);
	use_everything(&e);
	if (nic_open(&(struct nic_open_args){ .device = device }, &more) == NIC_OK)
		nic_close(more);
	nic_cards(count_card, &slots);
	end_close(&e);
	return slots < 2 ? 3 : 0;
}

/* Looks on from outside. */
static int look(void)
{
	int slots = 0;

	nic_cards(count_card, &slots);
	return slots < 1;
}

static int start_second(void)
{
	return start_again("--second");
}

static int start_look(void)
{
	return start_again("--look");
}

static int own_shm(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	return mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=6m");
}

static int first_on_full(void)
{
	struct nic *more;
	struct end e;
	pid_t second;
	int status;

	if (own_shm())
		return NO_MOUNT;
	nic_param_set("memory", "file", "test");
	end_open(&e, device);
	end_vi(&e, NIC_UNRELIABLE);
	second = kin_fork(start_second);
	if (kin_connect(&e, "first", "second"))
		return 10;
	while (waitpid(second, &status, WNOHANG) == 0)
		nic_poll(e.nic);
	if (status)
		return WIFSIGNALED(status) ? 20 : 30 + WEXITSTATUS(status);
	if (fill_up() || kin_wait(kin_fork(start_look)))
		return 40;
	talk(&e);
	use_everything(&e);
	for (int i = 0; i < 3 * NIC_WATCH_POLLS; i++)
		nic_poll(e.nic);
	if (e.nic->nactive) /* the second one's slot is free now */
		return 50;
	if (nic_open(&(struct nic_open_args){ .device = device }, &more) == NIC_OK)
		nic_close(more);
	end_close(&e);
	return 0;
}

static void full_file_system(void)
{
	int status = kin_wait(kin_fork(first_on_full));

	if (status == NO_MOUNT)
		SKIP("a small /dev/shm needs root, or leave to mount");
	CHECK_EQ(status, 0);
}

/* ---- another user ------------------------------------------------------------------------------------------------ */

enum { NOBODY = 65534 };

/* Root of a user namespace may be the only user there is. */
static bool may_become(uid_t uid)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(setgid(uid) || setuid(uid));
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int stranger(void)
{
	struct end e;

	if (setgid(NOBODY) || setuid(NOBODY))
		return 1;
	feign_root = 1;
	end_open(&e, device);
	atomic_store(&kin_step[READY], 1);
	return !kin_await(e.nic, GO, 1);
}

static void strangers_card_is_not_taken(void)
{
	struct nic *nic;
	pid_t child;

	if (geteuid() != 0 || !may_become(NOBODY))
		SKIP("only root can become another user, and not in every namespace");
	kin_clear();
	child = kin_fork(stranger);
	if (!CHECK(kin_await(NULL, READY, 1))) {
		kin_kill(child);
		return;
	}
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &nic), NIC_OK);
	CHECK_EQ(nic->me, 0); /* a card of its own: the stranger is on slot 0 of the other */
	nic_close(nic);
	atomic_store(&kin_step[GO], 1);
	CHECK_EQ(kin_wait(child), 0);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		snprintf(device, sizeof(device), "%s", argv[2]);
	else
		snprintf(device, sizeof(device), "test-%d", (int)getpid());
	if (argc == 3 && strcmp(argv[1], "--says-file") == 0)
		return says_file();
	if (argc == 3 && strcmp(argv[1], "--second") == 0)
		return second_on_full();
	if (argc == 3 && strcmp(argv[1], "--look") == 0)
		return look();
	kin_start();
	CASE(file_is_known_to_all);
	CASE(full_file_system);
	CASE(strangers_card_is_not_taken);
	return check_done();
}
