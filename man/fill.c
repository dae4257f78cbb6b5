/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fills the tables into a manual page: copies standard input to standard output, and puts in place of a line
 *
 *	@parameters@	every parameter, from nicemu/util/params.def
 *	@nic-counters@	every counter of the NIC, from nicemu/obs/counters.def
 *	@cmpi-counters@	every counter of the protocol module, from cmpi/pm_via/counters.h
 *
 * one mdoc list item a row, and the folder of the system's file in place of @sysconfdir@ anywhere.  Built and run by make; not installed.  So a row is declared once, for the program and its manual.
 */
#include <stdio.h>
#include <string.h>

#include "cmpi/pm_via/counters.h"
#include "nicemu/util/fits.h"

struct parameter {
	const char *name, *type, *value, *help;
	int level;
};
struct counter {
	const char *name, *help;
};

static const struct parameter parameters[] = {
#define P(name, type, value, level, help) { name, type, value, help, level },
#include "nicemu/util/params.def"
#undef P
};

static const struct counter nic_counters[] = {
#define C(name, help) { #name, help },
#include "nicemu/obs/counters.def"
#undef C
};

static const struct counter cmpi_counters[] = {
#define C(member, name, help) { name, help },
	VIA_COUNTER_LIST(C)
#undef C
};

#ifndef QNIX_SYSCONFDIR
#define QNIX_SYSCONFDIR "/etc"
#endif

#define ROWS(array) (sizeof(array) / sizeof((array)[0]))

/* Text of ours in the language of the page: a minus stays one, and no letter means anything. */
static void text(const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", stdout);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", stdout);
		else if (*s == '-')
			fputs("\\-", stdout);
		else
			putchar(*s);
	}
}

/* Of a sentence: with the first letter that the rows leave out, */
static void beginning(const char *s)
{
	char first[2] = { *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s, 0 };

	text(first);
	text(s + 1);
}

/* and with the full stop. */
static void sentence(const char *s)
{
	beginning(s);
	puts(s[strlen(s) - 1] == '.' ? "" : ".");
}

static void show_parameters(void)
{
	for (size_t i = 0; i < ROWS(parameters); i++) {
		const struct parameter *p = &parameters[i];
		char fits[128];

		nic_fits(p->type, fits, sizeof(fits));
		printf(".It Ic %s No = Ar %.*s\n", p->name, (int)strcspn(p->type, ":"), strncmp(p->type, "enum:", 5) == 0 ? "word" : p->type);
		sentence(p->help);
		beginning(fits);
		printf("; level %d; default\n.Ql ", p->level);
		text(p->value);
		printf(" .\n");
	}
}

static void show_counters(const struct counter *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		printf(".It Va %s\n", c[i].name);
		sentence(c[i].help);
	}
}

static void copy(const char *line)
{
	static const char mark[] = "@sysconfdir@";
	const char *at;

	while ((at = strstr(line, mark))) {
		printf("%.*s%s", (int)(at - line), line, QNIX_SYSCONFDIR);
		line = at + strlen(mark);
	}
	fputs(line, stdout);
}

int main(void)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "@parameters@\n") == 0)
			show_parameters();
		else if (strcmp(line, "@nic-counters@\n") == 0)
			show_counters(nic_counters, ROWS(nic_counters));
		else if (strcmp(line, "@cmpi-counters@\n") == 0)
			show_counters(cmpi_counters, ROWS(cmpi_counters));
		else
			copy(line);
	}
	return fflush(stdout) != 0 || ferror(stdin);
}
