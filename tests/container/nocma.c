/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nocma PROGRAM [ARGUMENT...]: runs a program, and all that it starts, with
 * cross-memory attach refused, as the default seccomp profile of older
 * container engines does. Needs no privilege.
 *
 * This is not a sandbox: it takes away two system calls and nothing else.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define REFUSE_IF(number)                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                           \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int refuse_cma(void)
{
	struct sock_filter steps[] = {
		LOAD_NUMBER,
		REFUSE_IF(SYS_process_vm_readv),
		REFUSE_IF(SYS_process_vm_writev),
		ALLOW,
	};
	struct sock_fprog filter = { .len = sizeof steps / sizeof *steps, .filter = steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* A filter that is not in force would make the tests that run under it mean nothing. */
static int is_refused(void)
{
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == -1 && errno == EPERM;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: nocma PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (refuse_cma() || !is_refused()) {
		fprintf(stderr, "nocma: cannot refuse cross-memory attach: %s\n", strerror(errno));
		return 77;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "nocma: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
