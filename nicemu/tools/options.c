/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a subcommand: reading them, showing them, and guessing what was meant.
 * Every subcommand has --format and --help beside its own.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nicemu/tools/tool.h"

int tool_complain(const char *name, int status, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "qnix%s%s: ", name ? " " : "", name ? name : "");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein's, a row at a time. */
unsigned tool_distance(const char *a, const char *b)
{
	enum { MOST = 64 };
	unsigned row[MOST + 1], n = (unsigned)strlen(b);

	if (n > MOST)
		return UINT_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned here = least(row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));

			corner = row[j];
			row[j] = here;
		}
	}
	return row[n];
}

long tool_number(const char *text, long low)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	return end == text || *end || errno || v < low ? -1 : v;
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

static void help_line(const struct tool_option *o)
{
	char left[40];
	int n = snprintf(left, sizeof(left), "  --%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");

	printf("%-28s", left);
	tool_wrap(o->help, n < 28 ? 28 : n, 28, 90);
}

static const struct tool_option common[] = {
	{ "format", "text|json|csv", "how to write it; text is for people and may change, the others are for programs" },
	{ "help", NULL, "this" },
	{ NULL, NULL, NULL },
};

static void help(const struct tool_command *c)
{
	printf("usage: qnix %s [OPTION...]%s%s\n\n", c->name, c->operands ? " " : "", c->operands ? c->operands : "");
	tool_wrap(c->text, 0, 0, 90);
	putchar('\n');
	for (const struct tool_option *o = c->options; o->name; o++)
		help_line(o);
	for (const struct tool_option *o = common; o->name; o++)
		help_line(o);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void nearest(const struct tool_option *list, const char *word, const char **best, unsigned *distance)
{
	for (; list->name; list++) {
		unsigned d = tool_distance(word, list->name);

		if (d < *distance) {
			*distance = d;
			*best = list->name;
		}
	}
}

static int unknown(const struct tool_command *c, const char *word)
{
	const char *best = NULL, *bare = word + strspn(word, "-");
	unsigned distance = UINT_MAX;

	nearest(c->options, bare, &best, &distance);
	nearest(common, bare, &best, &distance);
	return tool_complain(c->name, TOOL_USAGE, "unknown option %s; did you mean --%s?  (qnix %s --help lists them)", word, best,
	                     c->name);
}

static int read_format(const struct tool_command *c, const char *value, enum tool_format *out)
{
	static const char *const names[] = { "text", "json", "csv" };

	for (int i = 0; i < 3; i++)
		if (strcmp(value, names[i]) == 0) {
			*out = (enum tool_format)i;
			return -1;
		}
	return tool_complain(c->name, TOOL_USAGE, "unknown format \"%s\"; there are text, json and csv", value);
}

static int find(const struct tool_option *list, const char *name, size_t len)
{
	for (int i = 0; list[i].name; i++)
		if (strncmp(list[i].name, name, len) == 0 && !list[i].name[len])
			return i;
	return -1;
}

/* One word that starts with dashes; *next is the word after it, and moves on when that is its value. */
static int read_option(const struct tool_command *c, char ***next, struct tool_args *out)
{
	const char *word = *(*next)++, *name = word + 2, *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	int own = strncmp(word, "--", 2) == 0 ? find(c->options, name, len) : -1;
	int any = strncmp(word, "--", 2) == 0 ? find(common, name, len) : strcmp(word, "-h") == 0 ? 1 : -1;
	const struct tool_option *o = own >= 0 ? &c->options[own] : any >= 0 ? &common[any] : NULL;
	const char *value = equals ? equals + 1 : "";

	if (!o)
		return unknown(c, word);
	if (!o->value && equals)
		return tool_complain(c->name, TOOL_USAGE, "option --%s takes no value", o->name);
	if (o->value && !equals) {
		if (!**next)
			return tool_complain(c->name, TOOL_USAGE, "option --%s needs a value: %s", o->name, o->value);
		value = *(*next)++;
	}
	if (own >= 0) {
		out->value[own] = value;
		return -1;
	}
	if (any == 0)
		return read_format(c, value, &out->format);
	help(c);
	return 0;
}

int tool_parse(const struct tool_command *command, int argc, char **argv, struct tool_args *out)
{
	char **next = argv, **keep = argv;
	bool options = true;

	*out = (struct tool_args){ .format = TOOL_TEXT, .operand = argv };
	while (next < argv + argc) {
		int status;

		if (options && strcmp(*next, "--") == 0) {
			options = false;
			next++;
			continue;
		}
		if (!options || (*next)[0] != '-' || !(*next)[1]) {
			if (!command->operands)
				return tool_complain(command->name, TOOL_USAGE, "there is no place for \"%s\"  (qnix %s --help)", *next, command->name);
			*keep++ = *next++;
			continue;
		}
		status = read_option(command, &next, out);
		if (status >= 0)
			return status;
	}
	*keep = NULL;
	return -1;
}
