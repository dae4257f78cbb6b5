/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and error texts (see log.h and the error list in nic.h). */
#include "nicemu/util/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nicemu/nic.h"

static _Thread_local char last_error[256] = "no error";

const char *nic_last_error(void)
{
	return last_error;
}

int nic_fail(int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(last_error, sizeof(last_error), format, ap);
	va_end(ap);
	return err;
}

static enum nic_log_level threshold(void)
{
	static const char *const names[] = { "quiet", "error", "warn", "info", "debug" };
	const char *now = nic_param_str("log");

	for (int i = 0; i < 5; i++)
		if (strcmp(now, names[i]) == 0)
			return i;
	return NIC_LOG_WARN;
}

void nic_log(enum nic_log_level level, const char *format, ...)
{
	char text[512];
	va_list ap;

	if (level > threshold())
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(stderr, "qnix[%d]: %s\n", (int)getpid(), text);
}

const char *nic_err_text(int err)
{
	static const char *const text[] = {
#define X(name, words) words,
		NIC_ERR_LIST(X)
#undef X
	};

	return err >= 0 && err < NIC_ERR_COUNT ? text[err] : "unknown error";
}
