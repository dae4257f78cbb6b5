/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qnix nic: the NIC's own process, of engine `daemon`.  Programs start it by themselves (engine/start.c); it returns when it runs,
 * and what runs has no working directory and no open file of the program that started it, and hears nothing from its terminal.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nicemu/nic.h"
#include "nicemu/tools/tool.h"

enum { REPORT = 3 }; /* descriptor of the pipe to the process that waits */

static void say_ready(void *arg)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)arg;
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (write(REPORT, "r", 1) == 1)
		close(REPORT);
	if (null > 2)
		close(null);
}

/* Everything that was inherited, but for the pipe and where complaints go. */
static void let_go(int pipe_end)
{
	dup2(pipe_end, REPORT);
	if (syscall(SYS_close_range, REPORT + 1, ~0u, 0) < 0)
		for (long fd = REPORT + 1, end = sysconf(_SC_OPEN_MAX); fd < end && fd < 65536; fd++)
			close((int)fd);
	/*
	 * What ends the program's job, at the terminal or from a launcher, is not for it.  But it stays in the session: Linux shares a
	 * core between sessions first (sched_autogroup), and on 6.18 one that sleeps as often as this was left without for a minute
	 * while processes of another computed.
	 */
	setpgid(0, 0);
	signal(SIGHUP, SIG_IGN);
	if (chdir("/") < 0)
		tool_complain("nic", TOOL_FAILED, "cannot leave the working directory");
	prctl(PR_SET_NAME, "qnix-nic", 0, 0, 0);
}

static int serve(const char *device)
{
	int err = nic_daemon_run(device, say_ready, NULL);

	if (err == NIC_BUSY) { /* that is as good */
		say_ready(NULL);
		return 0;
	}
	return err ? tool_complain("nic", TOOL_FAILED, "%s", nic_last_error()) : 0;
}

static int run(const struct tool_args *args)
{
	const char *device = args->operand[0];
	int end[2];
	char word;
	pid_t pid;

	if (!device || args->operand[1])
		return tool_complain("nic", TOOL_USAGE, "one device is wanted; programs with QNIX_ENGINE=daemon start this by themselves");
	if (pipe(end) < 0 || (pid = fork()) < 0)
		return tool_complain("nic", TOOL_FAILED, "no process can be made");
	if (pid == 0) {
		let_go(end[1]);
		_exit(serve(device));
	}
	close(end[1]);
	return read(end[0], &word, 1) == 1 ? 0 : TOOL_FAILED;
}

const struct tool_command tool_nic = {
	.name = "nic",
	.summary = "the NIC's own process, of engine daemon; started by programs themselves",
	.operands = "DEVICE",
	.text = "Runs the NICs of all programs with QNIX_ENGINE=daemon on the card of that name, and ends with the last of them.",
	.run = run,
};
