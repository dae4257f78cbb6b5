/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job of a few C-MPI processes in this one, over the test VIPL, for tests that decide themselves who makes progress and
 * what the network moves.  Included once per test program, which is linked with tests/stress/libfake.
 */
#ifndef TESTS_UNIT_CMPI_JOB_H
#define TESTS_UNIT_CMPI_JOB_H

#include "cmpi/pm_via/via.h"
#include "tests/check.h"
#include "tests/stress/fake_vipl.h"

enum { JOB_MAX = 4 };

static struct member {
	struct cmpi *c;
	struct cmpi_proc *to[JOB_MAX]; /* itself included */
	uint32_t got[JOB_MAX];         /* messages from each rank */
	uint32_t order_errors;         /* messages out of order: the first 4 bytes count */
	uint8_t last[CMPI_AM_MAX];
	size_t last_len;
	unsigned last_tag;
	uint32_t errors;               /* error callbacks */
	char error_text[200];
	struct cmpi_proc *error_proc;
	void (*on_am)(struct member *, struct cmpi_proc *, void *data, size_t len); /* besides counting */
} job[JOB_MAX];
static uint32_t job_n;

static void job_am(void *arg, struct cmpi_proc *from, unsigned tag, void *data, size_t len)
{
	struct member *m = arg;
	uint32_t rank = cmpi_proc_rank(from), number = m->got[rank];

	if (len >= sizeof(number))
		memcpy(&number, data, sizeof(number));
	m->order_errors += number != m->got[rank];
	m->got[rank]++;
	memcpy(m->last, data, len);
	m->last_len = len;
	m->last_tag = tag;
	if (m->on_am)
		m->on_am(m, from, data, len);
}

static void job_error(void *arg, struct cmpi_proc *proc, int err, const char *text)
{
	struct member *m = arg;

	(void)err;
	m->errors++;
	m->error_proc = proc;
	snprintf(m->error_text, sizeof(m->error_text), "%s", text);
}

/* Forgets the last job; parameters may be set after it. */
static inline void job_reset(uint32_t instant)
{
	fake_reset(&(struct fake_config){.seed = 1, .buffers = 64, .instant = instant});
	memset(job, 0, sizeof(job));
}

/* Opens n processes that know each other. */
static inline bool job_open(uint32_t n)
{
	job_n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct cmpi_params params = {.job = 7, .rank = i, .nranks = n, .am = job_am, .error = job_error, .arg = &job[i]};

		if (cmpi_open(&params, &job[i].c) != CMPI_OK)
			return false;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++) {
			uint8_t blob[CMPI_ADDR_MAX];
			size_t len;

			cmpi_address(job[j].c, blob, &len);
			if (cmpi_proc_get(job[i].c, blob, len, &job[j], &job[i].to[j]) != CMPI_OK)
				return false;
		}
	return true;
}

/* Everybody takes what has arrived: a pass takes few packets at first, and none means that it found none. */
static inline void job_progress(uint32_t i)
{
	for (int passes = 0; passes < 10 && job[i].c; passes++)
		if (!cmpi_progress(job[i].c))
			break;
}

static inline void job_turn(uint32_t rounds)
{
	while (rounds--) {
		fake_run();
		for (uint32_t i = 0; i < job_n; i++)
			job_progress(i);
	}
	fake_run();
}

/* A message whose first bytes are its number from this sender. */
static inline int job_send(uint32_t from, uint32_t to, uint32_t number, size_t len)
{
	static uint8_t buf[CMPI_AM_MAX];

	memcpy(buf, &number, sizeof(number));
	return cmpi_am_send(job[from].to[to], 3, buf, sizeof(number), buf + sizeof(number), len - sizeof(number));
}

/* Some from one to another, who then owes credit for them. */
static inline void job_owe(uint32_t from, uint32_t to, uint32_t n)
{
	uint32_t first = job[to].got[from];

	for (uint32_t i = 0; i < n; i++)
		CHECK_EQ(job_send(from, to, first + i, 8), CMPI_OK);
	while (job[to].got[from] < first + n && cmpi_progress(job[to].c))
		;
	CHECK_EQ(job[to].got[from], first + n);
}

/* Messages `first` to `first + n - 1`, all begun before any is committed: credit for one lets all in, the rest wait in the backlog. */
static inline bool job_send_at_once(uint32_t from, uint32_t to, uint32_t first, uint32_t n)
{
	struct cmpi_am am[32];

	for (uint32_t i = 0; i < n; i++)
		if (i == 32 || cmpi_am_begin(job[from].to[to], 8, &am[i]) != CMPI_OK)
			return false;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(am[i].data, &(uint64_t){first + i}, 8);
		if (cmpi_am_commit(&am[i], 3, 8) != CMPI_OK)
			return false;
	}
	return true;
}

/* Connects a and b: message number 0 each way.  The first attempt only starts the connection. */
static inline bool job_connect(uint32_t a, uint32_t b)
{
	if (job_send(a, b, 0, 8) != CMPI_AGAIN)
		return false;
	job_turn(40);
	if (job_send(a, b, 0, 8) != CMPI_OK || job_send(b, a, 0, 8) != CMPI_OK)
		return false;
	job_turn(4);
	return job[a].got[b] == 1 && job[b].got[a] == 1;
}

static inline uint64_t job_count(uint32_t i, const char *name)
{
	const char *at, *help;
	const uint64_t *cell;

	for (uint32_t k = 0; (cell = cmpi_counter_at(job[i].c, k, &at, &help)) != NULL; k++)
		if (!strcmp(at, name))
			return *cell;
	return UINT64_MAX;
}

static inline void job_close_one(uint32_t i)
{
	fake_auto_steps(4);
	cmpi_close(job[i].c);
	job[i].c = NULL;
	fake_auto_steps(0);
}

static inline void job_close(void)
{
	for (uint32_t i = 0; i < job_n; i++)
		if (job[i].c) {
			job_close_one(i);
			job_turn(2);
		}
	CHECK_STR(fake_violation(), NULL);
	CHECK_EQ(fake_buffers_owned(), 0);
}

#endif
