/* SPDX-License-Identifier: BSD-3-Clause */
#include "nicemu/util/fits.h"

#include <stdio.h>
#include <string.h>

void nic_fits(const char *type, char *to, size_t size)
{
	static const char *const words[][2] = { { "int", "a whole number" },
		                                { "size", "bytes, or with k, m, g" },
		                                { "bool", "true or false" },
		                                { "string", "text of at most 255 bytes" } };
	const char *dots = strstr(type, "..");
	size_t len = strcspn(type, ":"), at;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(type, words[i][0], len) == 0) {
			at = (size_t)snprintf(to, size, "%s", words[i][1]);
			if (dots)
				snprintf(to + at, size - at, ", from %.*s to %s", (int)(dots - type - len - 1), type + len + 1, dots + 2);
			return;
		}
	at = (size_t)snprintf(to, size, "one of ");
	for (type += strlen("enum:"); *type && at + 3 < size; type++) {
		to[at++] = *type == '|' ? ',' : *type;
		if (*type == '|')
			to[at++] = ' ';
	}
	to[at] = 0;
}
