/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol table, and the names that peers echo.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B };

static void names_map_to_tables(void)
{
	const struct cmpi_protocol *via = cmpi_map_functions("via");

	REQUIRE(via != NULL);
	CHECK_STR(via->name, "via");
	CHECK(!cmpi_map_functions("tcp"));
	CHECK(!cmpi_map_functions(NULL));
}

/* 26 functions, no empty place. */
static void every_entry_is_filled(void)
{
	const struct cmpi_protocol *via = cmpi_map_functions("via");
	int (*const *entry)(struct cmpi *) = &via->pt_initialize;
	size_t n = (sizeof(*via) - offsetof(struct cmpi_protocol, pt_initialize)) / sizeof(*entry);

	CHECK_EQ(n, 26);
	for (size_t i = 0; i < n; i++)
		CHECK(entry[i] != NULL);
}

static void connections_of_a_task(void)
{
	const struct cmpi_protocol *via = cmpi_map_functions("via");
	uint8_t address[3][CMPI_ADDR_MAX];
	struct cmpi_proc *procs[3];
	struct cmpi_task task = {.n = 3, .address = (const uint8_t (*)[CMPI_ADDR_MAX])address, .procs = procs};
	const void *env;
	uint64_t card = 1;

	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	CHECK_EQ(via->pt_initialize(job[A].c), CMPI_OK);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(via->pt_initconns(job[i].c, &task, &env), CMPI_OK);
		memcpy(address[i], env, CMPI_ADDR_MAX);
	}
	memcpy(address[2], address[1], CMPI_ADDR_MAX);
	memcpy(address[2] + offsetof(struct via_address, card), &card, sizeof(card)); /* on another host */
	CHECK_EQ(via->pt_makeconns(job[A].c, &task), CMPI_OK);
	CHECK(procs[0] == job[A].to[A]);
	CHECK(procs[1] == job[A].to[B]);
	CHECK(!procs[2]);
	CHECK_EQ(via->pt_completeconns(job[A].c, &task), CMPI_OK);
	CHECK_EQ(via->data(job[A].c)->pt_nprocs, 2);
	CHECK_EQ(via->data(job[A].c)->pt_loaded, 1);
	CHECK_EQ(via->data(job[A].c)->pt_mtu, CMPI_AM_MAX);
	CHECK_EQ(via->data(job[A].c)->pt_nactv, 0);
	CHECK_EQ(via->pt_undoconns(job[A].c, &task), CMPI_OK);
	CHECK_EQ(procs[1]->refs, 1);
	CHECK_EQ(via->pt_ping(job[A].c, NULL, 0), CMPI_OK);
	CHECK_EQ(via->pt_finalize(job[A].c), CMPI_OK);
	CHECK_EQ(via->pt_closeconns(job[A].c, NULL, 0), CMPI_OK);
	job_turn(10);
	CHECK_EQ(procs[1]->state, VIA_CONN_CLOSED);
	CHECK_EQ(via->pt_remconns(job[A].c, procs, 3), CMPI_OK);
	job_close();
}

static void what_needs_the_engine_says_so(void)
{
	const struct cmpi_protocol *via = cmpi_map_functions("via");
	struct cmpi_proc *b;
	struct cmpi *c;

	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	c = job[A].c;
	b = job[A].to[B];
	CHECK_EQ(via->pt_fsend(c, b, "x", 1, NULL, 0, NULL, 0), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_frecv(c, b, NULL, 1, NULL, 0, NULL, NULL), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_urecv(c, b, NULL, NULL, 1, NULL, NULL, NULL), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_uirecv(c, b, NULL, NULL), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_progress_blk(c, NULL, 1), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_postedrcvany(c, NULL), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_unpostedrcvany(c, NULL), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_matchedrcvany(c, NULL, b), CMPI_NEEDS_ENGINE);
	CHECK_EQ(via->pt_error_request(c, NULL), CMPI_NEEDS_ENGINE);
	CHECK(strstr(cmpi_err_text(CMPI_NEEDS_ENGINE), "ADI engine") != NULL);
	CHECK_STR(cmpi_err_text(-1), "unknown error");
	CHECK_STR(cmpi_err_text(CMPI_ERR_COUNT), "unknown error");
	job_close();
}

static void the_rest_works(void)
{
	const struct cmpi_protocol *via = cmpi_map_functions("via");
	uint32_t x = 9, y = 9, z = 9;
	void *events = via->name ? &x : NULL;
	struct pollfd *fds = (struct pollfd *)&x;
	int n = 9, timeout = 9;
	struct cmpi_proc *b;

	job_reset(100);
	REQUIRE(job_open(2) && job_connect(A, B));
	b = job[A].to[B];
	CHECK_EQ(job_send(B, A, 1, 8), CMPI_OK);
	fake_run();
	CHECK_EQ(via->pt_progress_nblk(job[A].c, 0), 1);
	CHECK_EQ(via->pt_postedreceive(job[A].c, b), CMPI_OK);
	CHECK_EQ(via->pt_queuedsend(job[A].c, b), CMPI_OK);
	CHECK_EQ(b->nrecvs + b->nsends, 2);
	CHECK_EQ(via->pt_unpostedreceive(job[A].c, b), CMPI_OK);
	CHECK_EQ(via->pt_unpostedreceive(job[A].c, b), CMPI_PARAMETER);
	CHECK_EQ(via->pt_dequeuedsend(job[A].c, b), CMPI_OK);
	CHECK_EQ(via->pt_dequeuedsend(job[A].c, b), CMPI_PARAMETER);
	CHECK_EQ(via->pt_getevents(job[A].c, &events, &x, &y, &z), CMPI_OK);
	CHECK(!events && !x && !y && !z);
	CHECK_EQ(via->pt_getpolls(job[A].c, &fds, &n, &timeout), CMPI_OK);
	CHECK(!fds && !n && !timeout);
	fake_hold(job[A].c->nic, NULL, true);
	CHECK_EQ(job_send(A, B, 1, 8), CMPI_OK);
	CHECK_EQ(via->pt_finalize(job[A].c), CMPI_AGAIN);
	fake_hold(job[A].c->nic, NULL, false);
	job_turn(2);
	CHECK_EQ(via->pt_finalize(job[A].c), CMPI_OK);
	fake_kill(job[B].c->nic);
	fake_run();
	cmpi_progress(job[A].c);
	CHECK_EQ(via->pt_ping(job[A].c, NULL, 0), CMPI_TRANSPORT);
	job_close_one(B);
	job_close();
}

static void parameters_are_shown(void)
{
	struct cmpi_param p;
	uint32_t n = 0;

	job_reset(100);
	while (cmpi_param_at(n, &p)) {
		CHECK(p.name[0] && p.help[0] && p.type[0] && p.source[0] && p.level >= 1 && p.level <= 9);
		n++;
	}
	CHECK(n > 20);
	CHECK_EQ(cmpi_param_set("prepost_depth", "33", "test"), CMPI_OK);
	CHECK_EQ(cmpi_param_int("prepost_depth"), 33);
	CHECK_EQ(cmpi_param_set("no_such_thing", "33", "test"), CMPI_PARAMETER);
	CHECK_STR(cmpi_param_string("rendezvous"), "rget");
}

/* ---- handles ------------------------------------------------------------------------------------------------------------------------ */

static void handles_name_one_thing_once(void)
{
	uint64_t id[3000], again;
	uint32_t cursor = 0, removed = 0;
	struct cmpi_proc *a, *b;
	struct cmpi *c;

	job_reset(100);
	REQUIRE(job_open(2));
	c = job[A].c;
	a = job[A].to[A];
	b = job[A].to[B];
	for (int i = 0; i < 3000; i++)
		id[i] = via_handle_create(c, VIA_HANDLE_SEND, b, &id[i]);
	for (int i = 0; i < 3000; i++) {
		CHECK(id[i] != 0);
		CHECK(via_handle_lookup(c, VIA_HANDLE_SEND, b, id[i]) == &id[i]);
	}
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, a, id[7]));
	CHECK(!via_handle_lookup(c, VIA_HANDLE_RECV, b, id[7]));
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, b, 0));
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, b, UINT64_MAX));
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, b, id[7] + 100000));
	via_handle_destroy(c, id[7]);
	via_handle_destroy(c, id[7]);
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, b, id[7]));
	again = via_handle_create(c, VIA_HANDLE_SEND, b, c);
	CHECK_EQ((uint32_t)again, (uint32_t)id[7]); /* the same place, another name */
	CHECK(again != id[7]);
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, b, id[7]));
	while (via_handle_remove(c, VIA_HANDLE_SEND, b, &cursor))
		removed++;
	CHECK_EQ(removed, 3000);
	CHECK(!via_handle_lookup(c, VIA_HANDLE_SEND, b, again));
	job_close();
}

int main(void)
{
	CASE(names_map_to_tables);
	CASE(every_entry_is_filled);
	CASE(connections_of_a_task);
	CASE(what_needs_the_engine_says_so);
	CASE(the_rest_works);
	CASE(parameters_are_shown);
	CASE(handles_name_one_thing_once);
	return check_done();
}
