/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters: where their values come from.  Declared in params.def; interface in nic.h.
 * Not thread-safe against nic_param_set, which belongs before the first open.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nicemu/nic.h"
#include "nicemu/util/fits.h"
#include "nicemu/util/log.h"

#ifndef QNIX_SYSCONFDIR
#define QNIX_SYSCONFDIR "/etc"
#endif

enum { VALUE_MAX = 256, FITS_MAX = 128 };

static const char *const defaults[] = {
#define P(name, type, value, level, help) value,
#include "nicemu/util/params.def"
#undef P
};
static struct nic_param params[] = {
#define P(name, type, value, level, help) { name, help, type, NULL, value, "default", level },
#include "nicemu/util/params.def"
#undef P
};
enum { NPARAMS = sizeof(params) / sizeof(params[0]) };

static char values[NPARAMS][VALUE_MAX];
static char sources[NPARAMS][VALUE_MAX];
static char fits[NPARAMS][FITS_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Size in bytes with an optional k, m or g; false when the text is not a number of that kind. */
static bool parse_int(const char *text, bool suffix, int64_t *out)
{
	char *end;
	int64_t v;
	int shift = 0;

	errno = 0;
	v = strtoll(text, &end, 0);
	if (end == text || errno)
		return false;
	if (suffix && *end) {
		const char *at = strchr("kmg", *end | 0x20);

		if (!at || !*at)
			return false;
		shift = 10 * (int)(at - "kmg" + 1);
		end++;
		if (*end == 'b' || *end == 'B')
			end++;
	}
	if (*end || v > (INT64_MAX >> shift) || v < (INT64_MIN >> shift))
		return false;
	*out = v * ((int64_t)1 << shift);
	return true;
}

static bool parse_bool(const char *text, int64_t *out)
{
	static const char *const words[] = { "0", "1", "false", "true", "no", "yes", "off", "on" };

	for (int i = 0; i < 8; i++)
		if (strcasecmp(text, words[i]) == 0) {
			*out = i & 1;
			return true;
		}
	return false;
}

static bool in_enum(const char *list, const char *text)
{
	size_t len = strlen(text);

	for (const char *p = list; *p; p += strcspn(p, "|"), p += *p == '|')
		if (strcspn(p, "|") == len && memcmp(p, text, len) == 0)
			return true;
	return false;
}

/* "int:16..32768": in that range; "int": any. */
static bool in_range(const char *type, bool suffix, int64_t v)
{
	const char *colon = strchr(type, ':'), *dots = strstr(type, "..");
	char low[32];
	int64_t least, most;

	if (!colon || !dots)
		return true;
	snprintf(low, sizeof(low), "%.*s", (int)(dots - colon - 1), colon + 1);
	return parse_int(low, suffix, &least) && parse_int(dots + 2, suffix, &most) && v >= least && v <= most;
}

static bool is_size(const char *type)
{
	return strncmp(type, "size", 4) == 0;
}

static bool valid(const struct nic_param *p, const char *value)
{
	int64_t v;

	if (strlen(value) >= VALUE_MAX)
		return false;
	if (strncmp(p->type, "int", 3) == 0)
		return parse_int(value, false, &v) && in_range(p->type, false, v);
	if (is_size(p->type))
		return parse_int(value, true, &v) && v >= 0 && in_range(p->type, true, v);
	if (strcmp(p->type, "bool") == 0)
		return parse_bool(value, &v);
	if (strncmp(p->type, "enum:", 5) == 0)
		return in_enum(p->type + 5, value);
	return true;
}

/* As index_of does, without regard to case: variables have capitals, the names here have none. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64], la = strlen(a), lb = strlen(b);

	if (lb >= 63)
		return UINT_MAX;
	for (unsigned j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			unsigned best = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[lb];
}

static const char *nearest(const char *name)
{
	unsigned best = UINT_MAX;
	const char *near = params[0].name;

	for (int i = 0; i < NPARAMS; i++) {
		unsigned d = distance(name, params[i].name);

		if (d < best) {
			best = d;
			near = params[i].name;
		}
	}
	return near;
}

static int index_of(const char *name)
{
	for (int i = 0; i < NPARAMS; i++)
		if (strcasecmp(params[i].name, name) == 0)
			return i;
	return -1;
}

static int set(int i, const char *value, const char *source)
{
	if (!valid(&params[i], value)) {
		fprintf(stderr, "qnix: %s: value \"%s\" does not fit %s (%s); keeping \"%s\"\n", source, value, params[i].name,
		        params[i].fits, params[i].value);
		return NIC_PARAMETER;
	}
	snprintf(values[i], VALUE_MAX, "%s", value);
	snprintf(sources[i], VALUE_MAX, "%s", source);
	params[i].value = values[i];
	params[i].source = sources[i];
	return NIC_OK;
}

static void unknown(const char *name, const char *source)
{
	fprintf(stderr, "qnix: %s: unknown parameter \"%s\"; did you mean \"%s\"?\n", source, name, nearest(name));
}

static char *trim(char *s)
{
	s += strspn(s, " \t");
	for (size_t n = strlen(s); n && strchr(" \t\r\n", s[n - 1]);)
		s[--n] = 0;
	return s;
}

static void read_line(char *line, const char *path)
{
	char *hash = strchr(line, '#'), *eq;

	if (hash)
		*hash = 0;
	eq = strchr(line, '=');
	if (!eq) {
		if (*trim(line))
			fprintf(stderr, "qnix: %s: not \"name = value\": %s\n", path, trim(line));
		return;
	}
	*eq = 0;
	char *name = trim(line);
	int i = index_of(name);

	if (i < 0)
		unknown(name, path);
	else
		set(i, trim(eq + 1), path);
}

/* Lines `name = value`, comments from '#'.  A file that is not there says nothing; one that cannot be read was meant to. */
static void read_file(const char *path)
{
	static const char mark[] = "\xef\xbb\xbf"; /* some editors begin a file in UTF-8 with it */
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	bool first = true;

	if (!f) {
		if (errno != ENOENT && errno != ENOTDIR)
			fprintf(stderr, "qnix: %s: cannot be read: %s\n", path, strerror(errno));
		return;
	}
	while (getline(&line, &room, f) >= 0) {
		read_line(first && strncmp(line, mark, strlen(mark)) == 0 ? line + strlen(mark) : line, path);
		first = false;
	}
	if (!feof(f)) /* a folder, for one, can be opened */
		fprintf(stderr, "qnix: %s: cannot be read: %s\n", path, strerror(errno));
	free(line);
	fclose(f);
}

extern char **environ;

/* QNIX_<name> is for the scripts in dev/ and tests/: their jobs inherit it. */
static bool of_scripts(const char *name)
{
	static const char *const names[] = { "BUILD", "MPI4PY", "MPIRUN_ARGS", "SABOTAGE", "SABOTAGE_EVERY" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "DEV_", 4) == 0 || strncmp(name, "TEST_", 5) == 0;
}

static void read_environment(void)
{
	for (char **e = environ; e && *e; e++) {
		char name[64];
		const char *eq = strchr(*e, '=');

		if (strncmp(*e, "QNIX_", 5) != 0 || !eq || (size_t)(eq - *e - 5) >= sizeof(name))
			continue;
		memcpy(name, *e + 5, eq - *e - 5);
		name[eq - *e - 5] = 0;
		int i = index_of(name);

		if (i >= 0)
			set(i, eq + 1, "environment");
		else if (!of_scripts(name))
			unknown(name, "environment");
	}
}

/* Lowest precedence first: each later source overwrites. */
static void load(void)
{
	char path[PATH_MAX];
	const char *home = getenv("HOME");

	for (int i = 0; i < NPARAMS; i++) {
		assert(valid(&params[i], defaults[i]));
		nic_fits(params[i].type, fits[i], FITS_MAX);
		params[i].fits = fits[i];
	}
	read_file(QNIX_SYSCONFDIR "/qnix.conf");
	if (home && snprintf(path, sizeof(path), "%s/.qnix/qnix.conf", home) < (int)sizeof(path))
		read_file(path);
	read_environment();
}

const struct nic_param *nic_param_at(uint32_t i)
{
	pthread_once(&once, load);
	return i < NPARAMS ? &params[i] : NULL;
}

const struct nic_param *nic_param_find(const char *name)
{
	int i = index_of(name);

	return i < 0 ? NULL : nic_param_at(i);
}

int nic_param_set(const char *name, const char *value, const char *source)
{
	int i = index_of(name);

	pthread_once(&once, load);
	if (i < 0) {
		unknown(name, source);
		return NIC_UNKNOWN_NAME;
	}
	return set(i, value, source);
}

const char *nic_param_str(const char *name)
{
	const struct nic_param *p = nic_param_find(name);

	assert(p);
	return p->value;
}

int64_t nic_param_int(const char *name)
{
	const struct nic_param *p = nic_param_find(name);
	int64_t v = 0;

	assert(p);
	if (strcmp(p->type, "bool") == 0)
		parse_bool(p->value, &v);
	else
		parse_int(p->value, is_size(p->type), &v);
	return v;
}
