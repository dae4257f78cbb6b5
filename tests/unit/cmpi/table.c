/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol table, and the names that peers echo.
 */
#include "tests/unit/cmpi/job.h"

enum { A, B };

static void names_map_to_tables(void)
{
	static const char *const name[] = {"via", "self"};

	for (int i = 0; i < 2; i++) {
		REQUIRE(cmpi_map_functions(name[i]) != NULL);
		CHECK_STR(cmpi_map_functions(name[i])->name, name[i]);
	}
	CHECK(cmpi_map_functions("via") != cmpi_map_functions("self"));
	CHECK(!cmpi_map_functions("tcp"));
	CHECK(!cmpi_map_functions(NULL));
}

/* 26 functions, no empty place. */
static void every_entry_is_filled(void)
{
	static const char *const name[] = {"via", "self"};

	for (int i = 0; i < 2; i++) {
		const struct cmpi_protocol *table = cmpi_map_functions(name[i]);
		int (*const *entry)(struct cmpi *) = &table->pt_initialize;
		size_t n = (sizeof(*table) - offsetof(struct cmpi_protocol, pt_initialize)) / sizeof(*entry);

		CHECK_EQ(n, 26);
		for (size_t k = 0; k < n; k++)
			CHECK(entry[k] != NULL);
	}
}

/* A process that comes later, and leaves again. */
static void joins(const struct cmpi_protocol *via, const uint8_t *address, struct cmpi_proc *expected)
{
	struct cmpi_proc *proc = NULL;
	struct cmpi_task task = {.n = 1, .address = (const uint8_t (*)[CMPI_ADDR_MAX])address, .procs = &proc};

	CHECK_EQ(via->pt_addconns(job[A].c, &task), CMPI_OK);
	CHECK(proc == expected);
	CHECK_EQ(proc->refs, 2);
	CHECK_EQ(via->pt_undoconns(job[A].c, &task), CMPI_OK);
	CHECK_EQ(proc->refs, 1);
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
	joins(via, address[1], procs[1]);
	CHECK_EQ(via->pt_ping(job[A].c, NULL, 0), CMPI_OK);
	CHECK_EQ(via->pt_finalize(job[A].c), CMPI_OK);
	CHECK_EQ(via->pt_closeconns(job[A].c, NULL, 0), CMPI_OK);
	job_turn(10);
	CHECK_EQ(procs[1]->state, VIA_CONN_CLOSED);
	CHECK_EQ(via->pt_remconns(job[A].c, procs, 3), CMPI_OK);
	job_close();
}

/* ---- the functions that move messages ------------------------------------------------------------------------------------------------ */

static struct cmpi_comm world[2] = {{.context = 4, .rank = A}, {.context = 4, .rank = B}};
static const struct cmpi_type word = {.size = 4};
static int told;

static void done(struct cmpi_req *req)
{
	(void)req;
	told++;
}

/* The other process works inside this one's blocking calls. */
static void together(void)
{
	for (int i = 0; i < 2; i++)
		job_progress((uint32_t)i);
}

static bool open_table(uint32_t instant)
{
	job_reset(instant);
	told = 0;
	world[A].nrcvany = world[B].nrcvany = 0;
	if (!job_open(2) || !job_connect(A, B))
		return false;
	fake_auto_steps(4);
	return true;
}

/* The sender's buffer is free when it returns; without a type the count is of bytes. */
static void fsend_and_frecv(const char *name, uint32_t me)
{
	const struct cmpi_protocol *table = cmpi_map_functions(name);
	uint32_t out[5] = {1, 2, 3, 4, 5}, in[5] = {0};
	struct cmpi_status status = {.source = (int32_t)me};

	REQUIRE(open_table(100));
	CHECK_EQ(table->pt_fsend(job[me].c, job[me].to[B], out, 5, &word, 7, &world[me], CMPI_MODE_STANDARD), CMPI_OK);
	CHECK_EQ(table->pt_frecv(job[B].c, job[B].to[me], in, 5, &word, 7, &world[B], &status), CMPI_OK);
	CHECK(!memcmp(in, out, sizeof(out)));
	CHECK_EQ(status.length, sizeof(out));
	CHECK_EQ(status.tag, 7);
	CHECK_EQ(job[B].to[me]->process.nrecvs, 0);
	CHECK_EQ(table->pt_fsend(job[me].c, job[me].to[B], out, 3, NULL, 7, &world[me], CMPI_MODE_SYNC | CMPI_MODE_NOWAIT), CMPI_AGAIN);
	together();
	CHECK_EQ(job[B].c->engine.nunexpected, 0);
	fake_auto_steps(0);
	job_close();
}

static void fsend_and_frecv_via(void)
{
	fsend_and_frecv("via", A);
}

static void fsend_and_frecv_self(void)
{
	fsend_and_frecv("self", B);
}

/* A message of the unexpected queue, blocking and for a request. */
static void urecv_and_uirecv(const char *name, uint32_t me)
{
	const struct cmpi_protocol *table = cmpi_map_functions(name);
	struct cmpi_req req = {.done = done, .comm = &world[B]}, send = {.comm = &world[me], .tag = 1, .size = 4};
	struct cmpi_message *m;
	struct cmpi_status status;
	uint32_t in = 0, out = 77;

	REQUIRE(open_table(100));
	send.to = job[me].to[B];
	send.buf = &out;
	req.buf = &in;
	req.size = 4;
	for (int way = 0; way < 2; way++) {
		CHECK_EQ(cmpi_send(job[me].c, send.to, send.buf, send.size, send.tag, send.comm), CMPI_OK);
		job_turn(3);
		REQUIRE(mpip_search_unexpected(&job[B].c->engine, mpip_key(4, (int32_t)me, 1), &m) && m);
		mpip_dequnexpected(&job[B].c->engine, m);
		if (way)
			CHECK_EQ(table->pt_uirecv(job[B].c, job[B].to[me], m, &req), CMPI_OK);
		else
			CHECK_EQ(table->pt_urecv(job[B].c, job[B].to[me], m, &in, 1, &word, &world[B], &status), CMPI_OK);
		mpip_tell(&job[B].c->engine);
		CHECK_EQ(in, out);
		in = 0;
	}
	CHECK_EQ(told, 1);
	CHECK_EQ(status.source, me);
	CHECK_EQ(status.length, 4);
	CHECK_EQ(req.status.tag, 1);
	fake_auto_steps(0);
	job_close();
}

static void urecv_and_uirecv_via(void)
{
	urecv_and_uirecv("via", A);
}

static void urecv_and_uirecv_self(void)
{
	urecv_and_uirecv("self", B);
}

/* cmpi_recv takes the way that fits: an unexpected message, the quiet process, and any other. */
static void blocking_receives(void)
{
	uint32_t out = 5, in = 0;
	struct cmpi_req send = {.comm = &world[A], .tag = 1, .size = 4, .buf = &out};
	struct cmpi_req recv = {.comm = &world[B], .tag = 1, .size = 4, .buf = &in, .source = A};
	struct cmpi_req idle = {.done = done, .comm = &world[B], .tag = 2, .source = CMPI_ANY_SOURCE};

	REQUIRE(open_table(100));
	send.to = job[A].to[B];
	recv.to = job[B].to[A];
	for (int way = 0; way < 3; way++) {
		in = 0;
		CHECK_EQ(cmpi_send(job[A].c, send.to, send.buf, send.size, send.tag, send.comm), CMPI_OK);
		if (!way)
			job_turn(2);
		if (way == 2)
			CHECK_EQ(cmpi_irecv(job[B].c, &idle), CMPI_OK);
		CHECK_EQ(cmpi_recv(job[B].c, &recv), CMPI_OK);
		CHECK_EQ(in, 5);
		CHECK_EQ(recv.status.source, A);
	}
	CHECK_EQ(world[B].nrcvany, 1);
	CHECK_EQ(cmpi_map_functions("via")->pt_error_request(job[B].c, &idle), CMPI_OK);
	mpip_tell(&job[B].c->engine);
	CHECK_EQ(told, 1);
	CHECK_EQ(idle.status.err, CMPI_TRANSPORT);
	CHECK_EQ(world[B].nrcvany, 0);
	CHECK_EQ(cmpi_map_functions("via")->pt_error_request(job[B].c, &idle), CMPI_PARAMETER);
	fake_auto_steps(0);
	job_close();
}

/* Waits for a request that only the peer can end, and pushes what is queued. */
static void progress_blk_and_queuedsend(void)
{
	const struct cmpi_protocol *via = cmpi_map_functions("via");
	uint32_t out = 6;
	struct cmpi_req send = {.comm = &world[A], .tag = 1, .size = 4, .buf = &out};
	struct cmpi_proc *b;

	REQUIRE(open_table(100));
	b = send.to = job[A].to[B];
	mpip_enqsend(&b->process, &send);
	CHECK_EQ(b->process.nsends, 1);
	CHECK_EQ(via->pt_dequeuedsend(job[A].c, b), CMPI_PARAMETER); /* it is still there */
	CHECK_EQ(via->pt_queuedsend(job[A].c, b), CMPI_OK);
	CHECK_EQ(b->process.nsends, 0);
	CHECK_EQ(via->pt_dequeuedsend(job[A].c, b), CMPI_OK);
	CHECK_EQ(via->pt_progress_blk(job[A].c, &send, 1), CMPI_OK);
	CHECK(cmpi_is_done(&send));
	CHECK_EQ(send.status.err, CMPI_OK);
	fake_auto_steps(0);
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
	CHECK_EQ(b->process.nrecvs, 1);
	CHECK_EQ(via->pt_unpostedreceive(job[A].c, b), CMPI_OK);
	CHECK_EQ(via->pt_unpostedreceive(job[A].c, b), CMPI_PARAMETER);
	CHECK_EQ(via->pt_postedrcvany(job[A].c, &world[A]), CMPI_OK);
	CHECK_EQ(via->pt_postedrcvany(job[A].c, &world[A]), CMPI_OK);
	CHECK_EQ(via->pt_matchedrcvany(job[A].c, &world[A], b), CMPI_OK);
	CHECK_EQ(via->pt_unpostedrcvany(job[A].c, &world[A]), CMPI_OK);
	CHECK_EQ(via->pt_unpostedrcvany(job[A].c, &world[A]), CMPI_PARAMETER);
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

/* The tiny module says the same of itself where it has something to say. */
static void the_rest_of_self(void)
{
	const struct cmpi_protocol *self = cmpi_map_functions("self");
	uint8_t address[1][CMPI_ADDR_MAX];
	struct cmpi_proc *procs[1] = {NULL};
	struct cmpi_task task = {.n = 1, .address = (const uint8_t (*)[CMPI_ADDR_MAX])address, .procs = procs};
	uint32_t x = 9, y = 9, z = 9, out = 1;
	struct pollfd *fds;
	void *events;
	int n = 9, timeout = 9;
	const void *env;

	REQUIRE(open_table(100));
	fake_auto_steps(0);
	CHECK_EQ(self->pt_initialize(job[A].c), CMPI_OK);
	CHECK_EQ(self->pt_initconns(job[A].c, &task, &env), CMPI_OK);
	memcpy(address[0], env, CMPI_ADDR_MAX);
	CHECK_EQ(self->pt_makeconns(job[A].c, &task), CMPI_OK);
	CHECK(procs[0] == job[A].to[A]);
	CHECK(procs[0]->process.protocol == self);
	CHECK_EQ(self->pt_completeconns(job[A].c, &task), CMPI_OK);
	CHECK_EQ(self->pt_undoconns(job[A].c, &task), CMPI_OK);
	CHECK_EQ(self->data(job[A].c)->pt_nprocs, 1);
	CHECK_EQ(self->pt_postedreceive(job[A].c, procs[0]), CMPI_OK);
	CHECK_EQ(self->pt_unpostedreceive(job[A].c, procs[0]), CMPI_OK);
	CHECK_EQ(self->pt_unpostedreceive(job[A].c, procs[0]), CMPI_PARAMETER);
	CHECK_EQ(self->pt_getevents(job[A].c, &events, &x, &y, &z), CMPI_OK);
	CHECK_EQ(self->pt_getpolls(job[A].c, &fds, &n, &timeout), CMPI_OK);
	CHECK(!events && !x && !y && !z && !fds && !n && timeout == -1);
	CHECK_EQ(self->pt_ping(job[A].c, NULL, 0), CMPI_OK);
	CHECK_EQ(self->pt_finalize(job[A].c), CMPI_OK);
	CHECK_EQ(self->pt_fsend(job[A].c, procs[0], &out, 4, NULL, 1, &world[A], 0), CMPI_OK);
	CHECK_EQ(self->pt_finalize(job[A].c), CMPI_AGAIN);
	CHECK_EQ(self->pt_closeconns(job[A].c, NULL, 0), CMPI_OK);
	CHECK_EQ(self->pt_finalize(job[A].c), CMPI_OK);
	CHECK_EQ(job[A].c->engine.nunexpected, 0);
	job_close();
}

static void parameters_are_shown(void)
{
	struct cmpi_param p;
	uint32_t n = 0;

	job_reset(100);
	while (cmpi_param_at(n, &p)) {
		CHECK(p.name[0] && p.help[0] && p.fits[0] && p.source[0] && p.level >= 1 && p.level <= 9);
		n++;
	}
	CHECK(n > 20);
	CHECK_EQ(cmpi_param_set("prepost_depth", "33", "test"), CMPI_OK);
	CHECK_EQ(cmpi_param_int("prepost_depth"), 33);
	CHECK_EQ(cmpi_param_set("no_such_thing", "33", "test"), CMPI_PARAMETER);
	CHECK_STR(cmpi_param_string("rendezvous"), "auto");
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
	CASE(fsend_and_frecv_via);
	CASE(fsend_and_frecv_self);
	CASE(urecv_and_uirecv_via);
	CASE(urecv_and_uirecv_self);
	CASE(blocking_receives);
	CASE(progress_blk_and_queuedsend);
	CASE(the_rest_works);
	CASE(the_rest_of_self);
	CASE(parameters_are_shown);
	CASE(handles_name_one_thing_once);
	return check_done();
}
