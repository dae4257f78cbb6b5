/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qnix info: the version, what can be chosen, and every parameter: its value, and where that comes from.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "nicemu/tools/tool.h"

#ifndef QNIX_VERSION
#define QNIX_VERSION "unknown"
#endif

enum { OPTION_LEVEL };

/* "enum:a|b|c": the words, each through `show`, which is told whether it is the first. */
static void each_word(const char *type, void (*show)(const char *word, int len, bool first))
{
	const char *p = strncmp(type, "enum:", 5) == 0 ? type + 5 : "";

	for (bool first = true; *p; first = false) {
		int len = (int)strcspn(p, "|");

		show(p, len, first);
		p += len + (p[len] == '|');
	}
}

static void text_word(const char *word, int len, bool first)
{
	printf("%s%.*s", first ? "" : ", ", len, word);
}

static void json_word(const char *word, int len, bool first)
{
	printf("%s\"%.*s\"", first ? "" : ", ", len, word);
}

static const char *choices(const char *name)
{
	const struct nic_param *p = nic_param_find(name);

	return p ? p->type : "";
}

/* ---- which ones -------------------------------------------------------------------------------------------------- */

struct choice {
	int level;
	char **names; /* none: all */
};

static bool chosen(const struct choice *c, const struct nic_param *p)
{
	if (p->level > c->level)
		return false;
	if (!*c->names)
		return true;
	for (char **n = c->names; *n; n++)
		if (nic_param_find(*n) == p)
			return true;
	return false;
}

static int unknown(const char *name)
{
	const char *best = "";
	unsigned distance = UINT_MAX;
	const struct nic_param *p;

	for (uint32_t i = 0; (p = nic_param_at(i)); i++) {
		unsigned d = tool_distance(name, p->name);

		if (d < distance) {
			distance = d;
			best = p->name;
		}
	}
	return tool_complain("info", TOOL_USAGE, "unknown parameter %s; did you mean %s?", name, best);
}

/* ---- the formats ------------------------------------------------------------------------------------------------- */

static void show_text(const struct choice *c)
{
	const struct nic_param *p;

	if (!*c->names) {
		printf("qnix     %s\narchs    ", QNIX_VERSION);
		each_word(choices("arch"), text_word);
		printf("\nengines  ");
		each_word(choices("engine"), text_word);
		printf("\n\n");
	}
	for (uint32_t i = 0; (p = nic_param_at(i)); i++) {
		if (!chosen(c, p))
			continue;
		printf("%s = %s\n    ", p->name, p->value);
		tool_wrap(p->help, 4, 4, tool_width());
		printf("    (%s; level %d; from: %s)\n", p->fits, p->level, p->source);
	}
}

static void json_field(const char *name, const char *value)
{
	printf("\"%s\": ", name);
	tool_json_string(value);
	printf(", ");
}

static void show_json(const struct choice *c)
{
	const struct nic_param *p;
	const char *comma = "";

	printf("{\"version\": ");
	tool_json_string(QNIX_VERSION);
	printf(", \"archs\": [");
	each_word(choices("arch"), json_word);
	printf("], \"engines\": [");
	each_word(choices("engine"), json_word);
	printf("], \"parameters\": [");
	for (uint32_t i = 0; (p = nic_param_at(i)); i++) {
		if (!chosen(c, p))
			continue;
		printf("%s\n  {", comma);
		json_field("name", p->name);
		json_field("value", p->value);
		json_field("source", p->source);
		json_field("type", p->type);
		json_field("help", p->help);
		printf("\"level\": %d}", p->level);
		comma = ",";
	}
	printf("\n]}\n");
}

static void show_csv(const struct choice *c)
{
	const struct nic_param *p;

	printf("name,value,source,level,type,help\n");
	for (uint32_t i = 0; (p = nic_param_at(i)); i++) {
		if (!chosen(c, p))
			continue;
		tool_csv_field(p->name);
		putchar(',');
		tool_csv_field(p->value);
		putchar(',');
		tool_csv_field(p->source);
		printf(",%d,", p->level);
		tool_csv_field(p->type);
		putchar(',');
		tool_csv_field(p->help);
		putchar('\n');
	}
}

static int run(const struct tool_args *args)
{
	struct choice c = { .level = 9, .names = args->operand };

	if (args->value[OPTION_LEVEL]) {
		c.level = (int)tool_number(args->value[OPTION_LEVEL], 1);
		if (c.level < 1 || c.level > 9)
			return tool_complain("info", TOOL_USAGE, "levels are 1 (basic) to 9 (for developers)");
	}
	for (char **n = c.names; *n; n++)
		if (!nic_param_find(*n))
			return unknown(*n);
	if (args->format == TOOL_JSON)
		show_json(&c);
	else if (args->format == TOOL_CSV)
		show_csv(&c);
	else
		show_text(&c);
	return 0;
}

const struct tool_command tool_info = {
	.name = "info",
	.summary = "every parameter: its value, and where that comes from",
	.operands = "[PARAMETER...]",
	.text = "Shows the version, the architectures and engines there are, and every parameter (or those named) with its "
	        "value, where the value comes from, and what it means. Values that mpirun is given as --mca btl_qnix_NAME are "
	        "seen only by the job.",
	.options = { [OPTION_LEVEL] = { "level", "N", "only parameters up to this level: 1 is basic, 9 (the default) shows all" } },
	.run = run,
};
