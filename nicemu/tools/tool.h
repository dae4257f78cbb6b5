/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The qnix command: what its subcommands share.  A subcommand is one file that ends in a const struct tool_command;
 * qnix.c lists them.  Of the project, the command includes nicemu/nic.h and nothing else.
 */
#ifndef NIC_TOOLS_TOOL_H
#define NIC_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "nicemu/nic.h"

enum tool_format { TOOL_TEXT, TOOL_JSON, TOOL_CSV };

enum { TOOL_FAILED = 1, TOOL_USAGE = 2 }; /* exit status; 0: all is well */
enum { TOOL_OPTIONS = 8 };

struct tool_option {
	const char *name;  /* without the dashes; NULL ends the list */
	const char *value; /* what to call its value in the help; NULL: it takes none */
	const char *help;
};

struct tool_args {
	enum tool_format format;
	const char *value[TOOL_OPTIONS]; /* in the order of the command's options; "" for one without value; NULL: not given */
	char **operand;                  /* ends in NULL */
};

struct tool_command {
	const char *name;
	const char *summary;
	const char *operands; /* as the usage shows them; NULL: it takes none */
	const char *text;     /* further lines of the help */
	struct tool_option options[TOOL_OPTIONS];
	int (*run)(const struct tool_args *args);
};

extern const struct tool_command tool_info, tool_check, tool_stat, tool_nic;

/* ---- options.c --------------------------------------------------------------------------------------------------- */

/* Reads the words after the name of the subcommand.  -1: go on; else the exit status (help was shown, or a complaint). */
int tool_parse(const struct tool_command *command, int argc, char **argv, struct tool_args *out);
/* Says what is wrong on standard error, after "qnix NAME: "; gives back `status`. */
int tool_complain(const char *name, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* How unlike two words are: 0 equal, more for each letter that differs. */
unsigned tool_distance(const char *a, const char *b);
/* A whole number from `low` up; -1 when the text is none. */
long tool_number(const char *text, long low);

/* ---- out.c ------------------------------------------------------------------------------------------------------- */

int tool_width(void); /* columns of the terminal, or 100 */
/* The text, broken at blanks so that no line passes `width`; lines but the first start with `indent` blanks. */
void tool_wrap(const char *text, int at, int indent, int width);
void tool_json_string(const char *text); /* quoted */
void tool_csv_field(const char *text);   /* quoted when it must be */

#endif
