/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text from outside: values of parameters, files and environments that set them, and the names by which cards are found, which
 * anybody on the machine may bind.  Nonsense is refused; what is taken is valid.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "nicemu/nic.h"
#include "tests/fuzz/fuzz.h"

enum { LINE = 1200 };

/* ---- pieces of text ---------------------------------------------------------------------------------------------- */

static const char *some_name(void)
{
	uint32_t n = 0;

	while (nic_param_at(n))
		n++;
	return nic_param_at(fuzz_below(n))->name;
}

static size_t put(char *out, size_t at, const char *text)
{
	size_t n = strlen(text);

	if (at + n >= LINE)
		return at;
	memcpy(out + at, text, n + 1);
	return at + n;
}

/* Words that the parsers know, numbers at their edges, and bytes; no zero, no new line. */
static void some_text(char *out, uint32_t parts)
{
	static const char *const words[] = { "0", "1", "-1", "2048", "16k", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
		"8589934591g", "8589934592g", "9223372036854775807k", "0x7f", "08", "k", "kb", "1kk", "1G", "true", "off", "auto", "auto|off", "|", "memfd", "file", "direct",
		"=", "#", " ", "\t", "\r", "nic0", "a/b", "@", "%s%n", "\xff\xfe", "\"", "." };
	size_t at = 0;

	out[0] = 0;
	for (; parts; parts--) {
		char one[2] = { 1 + fuzz_below(255), 0 };

		at = put(out, at, fuzz_seldom(3) && one[0] != '\n' ? one : words[fuzz_below(sizeof(words) / sizeof(words[0]))]);
		if (fuzz_seldom(100))
			while (at < LINE - 2)
				at = put(out, at, one[0] != '\n' ? one : "x");
	}
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* Whatever was set, every value reads as its type. */
static void values_are_valid(void)
{
	const struct nic_param *p;

	for (uint32_t i = 0; (p = nic_param_at(i)); i++) {
		CHECK(strlen(p->value) < 256 && strlen(p->source) < 4096);
		if (strncmp(p->type, "int", 3) == 0 || strncmp(p->type, "size", 4) == 0 || strcmp(p->type, "bool") == 0) {
			int64_t v = nic_param_int(p->name);

			CHECK(v >= 0 || strncmp(p->type, "size", 4) != 0);
			CHECK(v == 0 || v == 1 || strcmp(p->type, "bool") != 0);
		} else if (strncmp(p->type, "enum:", 5) == 0) {
			CHECK(*p->value && !strchr(p->value, '|') && strstr(p->type, p->value));
		}
	}
}

static void values_round(void)
{
	char name[LINE], value[LINE];

	CHECK_EQ(nic_param_set("rendezvous_threshold", "17179869185g", "fuzz"), NIC_PARAMETER); /* 1g, modulo 2^64 */
	for (int i = 0; i < 200; i++) {
		some_text(name, 1 + fuzz_below(3));
		some_text(value, fuzz_below(4));
		if (nic_param_set(fuzz_seldom(4) ? name : some_name(), value, "fuzz") == NIC_OK)
			CHECK(strlen(value) < 256);
	}
	values_are_valid();
}

static char home[64];

static void write_file(void)
{
	char path[128], text[LINE];
	FILE *f;

	snprintf(path, sizeof(path), "%s/.qnix/qnix.conf", home);
	f = fopen(path, "w");
	if (!CHECK(f))
		return;
	for (uint32_t n = fuzz_below(60); n; n--) {
		some_text(text, fuzz_below(12));
		if (fuzz_seldom(3))
			fprintf(f, "%s%s\n", text, fuzz_seldom(40) ? "\n\n" : "");
		else
			fprintf(f, "%s = %s%c", some_name(), text, fuzz_seldom(30) ? 0 : '\n');
	}
	fclose(f);
}

static void set_environment(void)
{
	char name[LINE + 8] = "QNIX_", value[LINE];

	clearenv();
	setenv("HOME", home, 1);
	for (int i = 0; i < 20; i++) {
		some_text(value, 1 + fuzz_below(3));
		if (fuzz_seldom(8)) /* about as long as names may be */
			snprintf(value, LINE, "%0*d", (int)(60 + fuzz_below(20)), 0);
		snprintf(name + 5, LINE, "%s", fuzz_seldom(2) ? value : some_name());
		for (char *c = name; *c; c++)
			*c = *c == '=' ? '_' : *c;
		some_text(value, fuzz_below(4));
		setenv(name, value, 1);
	}
}

/* They are read once in a process: each round is a process started anew. */
static void files_round(void)
{
	int status = 1;
	pid_t child;

	write_file();
	fflush(stdout);
	child = fork();
	if (child == 0) {
		set_environment();
		execl("/proc/self/exe", "text", "--read", (char *)NULL);
		_exit(99);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

/* ---- names of cards ---------------------------------------------------------------------------------------------- */

enum { NAMES = 24 };

/* The beginning that names of this user and host have, learned from one. */
static char prefix[64], genuine[108];

static int bind_name(const char *name, size_t len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (len > sizeof(addr.sun_path) - 1)
		len = sizeof(addr.sun_path) - 1;
	memcpy(addr.sun_path + 1, name, len);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path) + 1 + len) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void learn_names(void)
{
	char line[512], *at, *dot;
	FILE *f = fopen("/proc/net/unix", "r");

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, "@qnix.");
		dot = at ? strstr(at, ".fuzz-text.") : NULL;
		if (!dot)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(genuine, sizeof(genuine), "%s", at + 1);
		snprintf(prefix, sizeof(prefix), "%.*s", (int)(dot - at), at + 1);
	}
	if (f)
		fclose(f);
}

static int hostile_name(void)
{
	char name[LINE], text[LINE];
	size_t n;

	some_text(text, fuzz_below(6));
	switch (fuzz_below(4)) {
	case 0:
		snprintf(name, sizeof(name), "%s%.120s", prefix, text);
		break;
	case 1:
		snprintf(name, sizeof(name), "%s%.60s.%llx.%d.%d", prefix, fuzz_seldom(2) ? "fuzz-text" : text, (unsigned long long)fuzz_word(),
		         fuzz_seldom(2) ? (int)getpid() : (int)fuzz_word(), (int)FUZZ_OF(0, 1, 2, 3, 4, 5, fuzz_word()));
		break;
	case 2:
		snprintf(name, sizeof(name), "%sfuzz-text.%.20s.%.20s.%.20s", prefix, text, text, text);
		break;
	default:
		snprintf(name, sizeof(name), "%s", genuine);
	}
	n = strlen(name);
	if (n > 100)
		n = 100;
	if (fuzz_seldom(3))
		fuzz_mutate(name + 5, n - 5);
	return bind_name(name, n);
}

static int look_at_slot(void *arg, const struct nic_slot_info *info)
{
	(void)arg;
	CHECK(info->slot < NIC_MAX_SLOTS && info->ncounters <= NIC_MAX_COUNTERS);
	return 0;
}

static int look_at_card(void *arg, const struct nic_card_info *info)
{
	CHECK(strnlen(info->device, sizeof(info->device)) < sizeof(info->device) && info->device[0] && info->pid > 0);
	nic_card_slots(info, look_at_slot, NULL);
	++*(int *)arg;
	return 0;
}

static void names_round(void)
{
	int fd[NAMES], cards = 0;
	struct nic *nic;

	for (int i = 0; i < NAMES; i++)
		fd[i] = hostile_name();
	CHECK_EQ(nic_cards(look_at_card, &cards), NIC_OK);
	CHECK(cards > 0); /* the genuine one */
	if (nic_open(&(struct nic_open_args){ .device = "fuzz-text-2" }, &nic) == NIC_OK)
		nic_close(nic);
	for (int i = 0; i < NAMES; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* What the parsers say of nonsense is of no interest here. */
static void hush(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		dup2(fd, 2);
}

static void values(void)
{
	fuzz_rounds(values_round, 0.3);
}

static void files_and_environment(void)
{
	char path[128];

	snprintf(home, sizeof(home), "/tmp/qnix-fuzz-XXXXXX");
	REQUIRE(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/.qnix", home);
	CHECK_EQ(mkdir(path, 0700), 0);
	fuzz_rounds(files_round, 0.3);
	snprintf(path, sizeof(path), "%s/.qnix/qnix.conf", home);
	unlink(path);
	snprintf(path, sizeof(path), "%s/.qnix", home);
	rmdir(path);
	rmdir(home);
}

static void names_of_cards(void)
{
	struct nic *nic;

	if (access("/proc/net/unix", R_OK) != 0)
		SKIP("/proc/net/unix cannot be read");
	REQUIRE(nic_open(&(struct nic_open_args){ .device = "fuzz-text" }, &nic) == NIC_OK);
	learn_names();
	REQUIRE(*prefix && *genuine);
	fuzz_rounds(names_round, 0.4);
	nic_close(nic);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--read") == 0) {
		values_are_valid();
		return check_now.failed != 0;
	}
	fuzz_start(argc, argv);
	CASE(names_of_cards);
	if (!getenv("FUZZ_LOUD"))
		hush();
	CASE(values);
	CASE(files_and_environment);
	return check_done();
}
