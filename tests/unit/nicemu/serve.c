/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine daemon, and who may have a process slot while the daemon comes to it or leaves it.  The daemon is this process, which looks, and
 * lets others move, where its NIC enters the kernel.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "nicemu/engine/card.h"
#include "nicemu/mem/card.h"
#include "nicemu/util/atomic.h"
#include "tests/unit/nicemu/kin.h"

enum { FIRST, SECOND };
enum { GO = 1, SLOT = 8 /* that the last one has, and 1 */, STAYS /* who, and 1 */, ENGINE /* of the second: 1 is inline */ };

static const char *device;
static pid_t child[2];
static void (*meanwhile)(void); /* before the NIC tries to copy from the process for the first time */
static bool reaches_nobody;
static double from; /* the case's begin */
static int reached, early, kept, let_go;

/* ---- the processes --------------------------------------------------------------------------------------------------------------- */

static int opens(int who)
{
	struct nic_attr attr;
	struct nic *nic;

	if (!kin_await(NULL, who, GO))
		return 2;
	if (nic_param_set("engine", who == SECOND && atomic_load(&kin_step[ENGINE]) ? "inline" : "daemon", "test") != NIC_OK || nic_open(&(struct nic_open_args){ .device = device }, &nic))
		return 3;
	nic_query(nic, &attr);
	atomic_store(&kin_step[SLOT], (int)attr.slot + 1);
	if (atomic_load(&kin_step[STAYS]) == who + 1)
		kin_await(NULL, who, GO + 1);
	nic_close(nic);
	return 0;
}

static int first(void)
{
	return opens(FIRST);
}

static int second(void)
{
	return opens(SECOND);
}

struct seen {
	int pid, slots;
};

static int see_slot(void *arg, const struct nic_slot_info *info)
{
	struct seen *s = arg;

	s->slots += info->pid == s->pid;
	return 0;
}

static int see_card(void *arg, const struct nic_card_info *info)
{
	return strcmp(info->device, device) == 0 ? nic_card_slots(info, see_slot, arg) : 0;
}

static bool registered(int who)
{
	for (double until = kin_now() + KIN_SECONDS; kin_now() < until; usleep(100)) {
		struct seen s = { .pid = child[who] };

		nic_cards(see_card, &s);
		if (s.slots)
			return true;
	}
	return false;
}

/* ---- the daemon's ways into the kernel ------------------------------------------------------------------------------------------- */

/* In place of the library's. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere, const struct iovec *there, unsigned long nthere, unsigned long flags)
{
	if (reached++ == 0 && meanwhile) {
		CHECK_EQ(pid, child[FIRST]);
		meanwhile();
	}
	if (reaches_nobody) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_process_vm_readv, (long)pid, here, nhere, there, nthere, flags);
}

/* The NIC wakes a process that has asked it to let go, and has its answer: the process may die now. */
static void look_at_answer(const uint32_t *state)
{
	const struct nic_slot *s = (const struct nic_slot *)(const void *)((const char *)state - offsetof(struct nic_slot, port.call.state));

	if (s->port.call.op != NIC_CALL_DETACH)
		return;
	let_go++;
	kept += nic_load_relaxed(&s->served) != 0;
}

/* In place of the library's, whose arguments are six words at most: all are read, given or not. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	static long (*theirs)(long number, ...);
	long arg[6];
	va_list list;

	if (!theirs)
		*(void **)&theirs = dlsym(RTLD_NEXT, "syscall");
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_futex && arg[1] == FUTEX_WAKE && *(uint32_t *)arg[0] == NIC_PORT_ANSWERED)
		look_at_answer((const uint32_t *)arg[0]);
	return theirs(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static void (*before_lock)(void); /* of the card, the next time */
static void (*at_unlock)(void);   /* of a byte, each time */

/* In place of the library's; what its argument is, a flag or an address, the kernel knows. */
int fcntl(int fd, int how, ...)
{
	void (*fn)(void) = how == F_OFD_SETLKW ? before_lock : NULL;
	va_list list;
	long arg;

	va_start(list, how);
	arg = va_arg(list, long);
	va_end(list);
	if (fn) {
		before_lock = NULL;
		fn();
	}
	if (at_unlock && how == F_OFD_SETLK && ((struct flock *)arg)->l_type == F_UNLCK)
		at_unlock();
	return (int)syscall(SYS_fcntl, (long)fd, (long)how, arg, 0L, 0L, 0L);
}

static size_t no_memory; /* for so much, or more, that can be written; 0: there is */

/* In place of the library's. */
int mprotect(void *addr, size_t len, int prot)
{
	if (no_memory && len >= no_memory) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_mprotect, addr, len, (long)prot, 0L, 0L, 0L);
}

static void begun(void *arg)
{
	atomic_store(&kin_step[FIRST], GO);
	CHECK(registered(FIRST));
	if (arg)
		*(char *)arg = '?';
}

/* ---- cases ----------------------------------------------------------------------------------------------------------------------- */

/* One that a process of the case before has started goes when it sees that the process is gone. */
static bool no_daemon(void)
{
	double until = kin_now() + KIN_SECONDS;
	struct nic_card *card;
	bool held;

	if (nic_card_open(device, &card) != NIC_OK)
		return false;
	while ((held = nic_card_held(card, NIC_DAEMON_LINE)) && kin_now() < until)
		usleep(100);
	nic_card_close(card);
	return !held;
}

static void start(bool both, const char *arch, void (*fn)(void))
{
	REQUIRE(no_daemon());
	kin_clear();
	meanwhile = fn;
	before_lock = at_unlock = NULL;
	reaches_nobody = false;
	no_memory = 0;
	child[FIRST] = child[SECOND] = 0;
	reached = early = kept = let_go = 0;
	from = kin_now();
	REQUIRE(nic_param_set("arch", arch, "test") == NIC_OK);
	child[FIRST] = kin_fork(first);
	if (both)
		child[SECOND] = kin_fork(second);
}

/* Nobody has waited for what does not come. */
static bool soon(void)
{
	return kin_now() - from < KIN_SECONDS / 2;
}

static void first_is_replaced(void)
{
	kin_kill(child[FIRST]);
	atomic_store(&kin_step[SECOND], GO);
	CHECK(registered(SECOND));
}

static void slot_is_nobody_elses_meanwhile(void)
{
	start(true, "qnix", first_is_replaced);
	CHECK_EQ(nic_daemon_run(device, begun, NULL), NIC_OK);
	CHECK(reached);
	CHECK_EQ(kin_wait(child[SECOND]), 0);
	CHECK_EQ(atomic_load(&kin_step[SLOT]), 2); /* the first slot was held for the first process */
}

static void look_at_first(void)
{
	usleep(50000);
	early = atomic_load(&kin_step[SLOT]) != 0;
}

static void process_waits_until_it_is_served(void)
{
	start(false, "direct", look_at_first);
	CHECK_EQ(nic_daemon_run(device, begun, NULL), NIC_OK);
	CHECK_EQ(kin_wait(child[FIRST]), 0);
	CHECK(reached && !early);
}

static void dies(void)
{
	kill(getpid(), SIGKILL);
}

static int daemon_that_dies(void)
{
	return nic_daemon_run(device, begun, NULL);
}

/* Its process starts another one, which finds what the first has left. */
static void next_daemon_begins_anew(void)
{
	start(false, "qnix", dies);
	CHECK_EQ(kin_wait(kin_fork(daemon_that_dies)), -SIGKILL);
	CHECK_EQ(kin_wait(child[FIRST]), 0);
	CHECK(soon());
}

static struct nic_card *look; /* the daemon's second view of the card */

static void dies_after_deregistration(void)
{
	const struct nic_slot *s = &nic_card_map(look)->slot[0];

	if (nic_load_relaxed(&s->state) == NIC_SLOT_FREE && nic_load_relaxed(&s->served) & NIC_SERVE_HOLDS)
		kill(getpid(), SIGKILL);
}

static void second_comes(void)
{
	atomic_store(&kin_step[SECOND], GO);
	CHECK(registered(SECOND));
	at_unlock = dies_after_deregistration;
	reaches_nobody = true;
}

static int daemon_that_dies_late(void)
{
	return nic_card_open(device, &look) ? 1 : nic_daemon_run(device, begun, NULL);
}

/* It was about to say that it cannot copy from the first.  The next one serves the second, which stays. */
static void refused_by_a_daemon_that_dies(void)
{
	start(true, "direct", second_comes);
	atomic_store(&kin_step[STAYS], SECOND + 1);
	CHECK_EQ(kin_wait(kin_fork(daemon_that_dies_late)), -SIGKILL);
	CHECK_EQ(kin_wait(child[FIRST]), 3);
	CHECK(soon());
	atomic_store(&kin_step[SECOND], GO + 1);
	CHECK_EQ(kin_wait(child[SECOND]), 0);
}

static void begun_and_about_to_hold(void *arg)
{
	begun(arg);
	before_lock = first_is_replaced;
}

/* The first dies, and a process with a NIC of its own takes the slot, when the daemon has seen that it is wanted there. */
static void slot_is_looked_at_again(void)
{
	start(true, "direct", NULL);
	atomic_store(&kin_step[ENGINE], 1);
	atomic_store(&kin_step[STAYS], SECOND + 1);
	CHECK_EQ(nic_daemon_run(device, begun_and_about_to_hold, NULL), NIC_OK);
	CHECK_EQ(reached, 0);
	atomic_store(&kin_step[SECOND], GO + 1);
	CHECK_EQ(kin_wait(child[SECOND]), 0);
	CHECK_EQ(atomic_load(&kin_step[SLOT]), 1);
}

static void begun_without_memory(void *arg)
{
	begun(NULL);
	no_memory = *(size_t *)arg;
}

static void refused_without_memory(size_t most)
{
	start(false, "direct", NULL);
	CHECK_EQ(nic_daemon_run(device, begun_without_memory, &most), NIC_OK);
	no_memory = 0;
	CHECK_EQ(kin_wait(child[FIRST]), 3);
	CHECK(soon());
}

static void daemon_without_memory_refuses(void)
{
	refused_without_memory(sizeof(struct nic_slot));
	refused_without_memory(1); /* not even to hold the slot */
}

/* The daemon is of another build, and the process is told instead of left to wait. */
static void unknown_arch_is_refused(void)
{
	struct nic_card *card;

	start(false, "direct", NULL);
	REQUIRE(nic_card_open(device, &card) == NIC_OK);
	REQUIRE(nic_card_writable(card, &nic_card_map(card)->slot[0], sizeof(struct nic_slot)));
	CHECK_EQ(nic_daemon_run(device, begun, nic_card_map(card)->slot[0].arch), NIC_OK);
	CHECK_EQ(kin_wait(child[FIRST]), 3);
	CHECK(soon());
	nic_card_close(card);
}

static void slot_is_let_go_last(void)
{
	start(false, "direct", NULL);
	CHECK_EQ(nic_daemon_run(device, begun, NULL), NIC_OK);
	CHECK_EQ(kin_wait(child[FIRST]), 0);
	CHECK_EQ(let_go, 1);
	CHECK_EQ(kept, 1);
}

static void no_daemon_here(void)
{
	SKIP("no cross-memory attach here");
}

int main(void)
{
	kin_start();
	device = kin_device("serve");
	alarm(5 * KIN_SECONDS); /* this process is the daemon, and may not end */
	if (!kin_attaches()) {
		CASE(no_daemon_here);
		return check_done();
	}
	CASE(slot_is_nobody_elses_meanwhile);
	CASE(process_waits_until_it_is_served);
	CASE(slot_is_let_go_last);
	CASE(slot_is_looked_at_again);
	CASE(next_daemon_begins_anew);
	CASE(refused_by_a_daemon_that_dies);
	CASE(daemon_without_memory_refuses);
	CASE(unknown_arch_is_refused);
	return check_done();
}
