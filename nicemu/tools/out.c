/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing to standard output: wrapped text, JSON strings, CSV fields.  What is written is each subcommand's business.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nicemu/tools/tool.h"

int tool_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return 100;
}

void tool_wrap(const char *text, int at, int indent, int width)
{
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at > indent && at + 1 + len > width) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", len, text);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

void tool_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

void tool_csv_field(const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}
