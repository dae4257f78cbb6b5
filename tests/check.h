/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks for the test programs, in one header without a library.
 *
 * A test program is a list of cases; each case is a `static void name(void)`
 * full of CHECKs. The program prints TAP: one line a case, one comment line
 * a failed check with its place and expression. A failed check does not end
 * its case, REQUIRE does. Not for use by several threads or after fork:
 * children report through their exit status, which the parent CHECKs.
 *
 *      static void adds(void) { CHECK(1 + 1 == 2); CHECK_EQ(2 * 2, 4); }
 *      int main(void) { CASE(adds); return check_done(); }
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	int cases;		/* cases finished */
	int good_cases;		/* of them, held or skipped */
	long checks;		/* in this case */
	long failed;		/* in this case */
	const char *skip;	/* why this case could not run, or NULL */
} check_now;

static inline int check_that(int held, const char *expr, const char *file, int line)
{
	check_now.checks++;
	if (held)
		return 1;
	if (check_now.failed++ < 20)
		printf("# %s:%d: does not hold: %s\n", file, line, expr);
	return 0;
}

static inline int check_equal(intmax_t got, intmax_t want, const char *expr, const char *file,
			      int line)
{
	if (!check_that(got == want, expr, file, line)) {
		printf("#     got %" PRIdMAX " (0x%jx), expected %" PRIdMAX " (0x%jx)\n", got,
		       (uintmax_t)got, want, (uintmax_t)want);
		return 0;
	}
	return 1;
}

static inline int check_same_text(const char *got, const char *want, const char *expr,
				  const char *file, int line)
{
	int same = got && want ? !strcmp(got, want) : got == want;

	if (!check_that(same, expr, file, line))
		printf("#     got \"%s\", expected \"%s\"\n", got ? got : "(null)",
		       want ? want : "(null)");
	return same;
}

/* Each is an expression that is non-zero when the check held. */
#define CHECK(cond) check_that(!!(cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(got, want) \
	check_equal((intmax_t)(got), (intmax_t)(want), #got " == " #want, __FILE__, __LINE__)
#define CHECK_STR(got, want) check_same_text((got), (want), #got " is " #want, __FILE__, __LINE__)

/* In a case: leave it when the condition does not hold, or when it cannot run here. */
#define REQUIRE(cond)                \
	do {                         \
		if (!CHECK(cond))    \
			return;      \
	} while (0)
#define SKIP(why)                        \
	do {                             \
		check_now.skip = (why);  \
		return;                  \
	} while (0)

/* Closes the current case; one that checked nothing cannot fail, so it does. */
static inline void check_report(const char *name)
{
	check_now.cases++;
	if (check_now.failed) {
		printf("not ok %d - %s # %ld of %ld checks failed\n", check_now.cases, name,
		       check_now.failed, check_now.checks);
	} else if (check_now.skip) {
		printf("ok %d - %s # SKIP %s\n", check_now.cases, name, check_now.skip);
		check_now.good_cases++;
	} else if (!check_now.checks) {
		printf("not ok %d - %s # made no check\n", check_now.cases, name);
	} else {
		printf("ok %d - %s (%ld checks)\n", check_now.cases, name, check_now.checks);
		check_now.good_cases++;
	}
	fflush(stdout);
	check_now.checks = 0;
	check_now.failed = 0;
	check_now.skip = NULL;
}

static inline void check_case(void (*body)(void), const char *name)
{
	long checks = check_now.checks, failed = check_now.failed;

	check_now.checks = 0;
	check_now.failed = 0;
	body();
	check_report(name);
	check_now.checks = checks;
	check_now.failed = failed;
}

#define CASE(fn) check_case(fn, #fn)

/* The plan and the exit status; CHECKs made outside every case become a last one. */
static inline int check_done(void)
{
	if (check_now.checks || !check_now.cases)
		check_report("main");
	printf("1..%d\n", check_now.cases);
	fflush(stdout);
	return check_now.good_cases == check_now.cases ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
