/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qnix, the one command of the project: finds the subcommand and hands over.
 * A new subcommand is one file, one line in `commands` below, and its section in man/qnix.1.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "nicemu/tools/tool.h"

#ifndef QNIX_VERSION
#define QNIX_VERSION "unknown"
#endif

static const struct tool_command *const commands[] = { &tool_info, &tool_check, &tool_stat, &tool_nic };
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: qnix SUBCOMMAND [OPTION...]\n\n");
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "\n"
	            "  qnix SUBCOMMAND --help    its options\n"
	            "  qnix --version            the version\n"
	            "\n"
	            "qnix is an emulated user-level NIC: mpirun --mca btl qnix,self.  See also qnix(7).\n");
	return status;
}

static const struct tool_command *find(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int unknown(const char *word)
{
	const char *best = "--help";
	unsigned distance = *word == '-' ? tool_distance(word, best) : UINT_MAX;

	if (*word == '-' && tool_distance(word, "--version") < distance)
		return tool_complain(NULL, TOOL_USAGE, "unknown option %s; did you mean --version?", word);
	for (int i = 0; i < COMMANDS && *word != '-'; i++) {
		unsigned d = tool_distance(word, commands[i]->name);

		if (d < distance) {
			distance = d;
			best = commands[i]->name;
		}
	}
	return tool_complain(NULL, TOOL_USAGE, "unknown %s %s; did you mean \"qnix %s\"?  (qnix --help lists all)",
	                     *word == '-' ? "option" : "subcommand", word, best);
}

/* Output that was asked for and could not be written is a failure, too: a full disk, a closed pipe. */
static int finish(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return tool_complain(NULL, TOOL_FAILED, "cannot write to standard output");
	return status;
}

static int run(int argc, char **argv)
{
	const struct tool_command *command;
	struct tool_args args;
	bool help = argc > 1 && strcmp(argv[1], "help") == 0; /* qnix help stat = qnix stat --help */
	int status;

	if (argc < 2)
		return usage(stderr, TOOL_USAGE);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (help && argc == 2))
		return usage(stdout, 0);
	if (strcmp(argv[1], "--version") == 0) {
		printf("qnix %s\n", QNIX_VERSION);
		return 0;
	}
	command = find(argv[1 + help]);
	if (!command)
		return unknown(argv[1 + help]);
	if (help)
		return tool_parse(command, 1, (char *[]){ "--help", NULL }, &args);
	status = tool_parse(command, argc - 2, argv + 2, &args);
	return status >= 0 ? status : command->run(&args);
}

int main(int argc, char **argv)
{
	return finish(run(argc, argv));
}
