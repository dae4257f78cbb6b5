/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The credit protocol under random interleavings.  A seed makes a job of two to four processes with tiny credit
 * parameters, a program for each (active messages that are answered from handlers, matched messages by every protocol,
 * puts, gets, atomics), and a schedule of program steps, progress calls and network steps in which processes also fall
 * asleep for a while.  After each step the accounts of both sides must agree; at the end everything must have arrived,
 * once, in order, with its contents, and nothing may be left.  In every fifth job one process dies somewhere on the way:
 * then each of the others must hear of it once, and every operation with it must end.
 *
 *	credits                 seeds 1 .. 500
 *	credits SEED            one seed, with a line on each process
 *	credits FIRST LAST
 */
#include <stdarg.h>

#include "cmpi/pm_via/via.h"
#include "tests/check.h"
#include "tests/stress/fake_vipl.h"

enum { PEERS = 4, MESSAGES = 256, WINDOW = 1 << 16, LONGEST = 100000 };

struct matched {
	struct via_send send;
	uint8_t *buf;
	bool done;
	int err;
};

struct receive {
	struct via_recv recv;
	struct receive *next;
	uint8_t *buf;
	bool done;
	int err;
};

/* What one process does with one other. */
struct pair {
	struct cmpi_proc *proc;
	uint32_t am_out, am_in, replies_owed;
	uint32_t sent, posted;        /* matched messages */
	uint32_t envelopes;           /* arrived */
	struct matched *out[MESSAGES];
	struct receive *in[MESSAGES];
	uint32_t matched_to;          /* receives given to arrived messages */
	struct via_incoming *unexpected[MESSAGES];
	/* one remote operation at a time */
	bool busy, is_get;
	uint32_t len, salt;
	uint8_t *local;
	uint64_t old;
	uint32_t adds;
};

static struct peer {
	struct cmpi *c;
	uint32_t me;
	bool asleep;
	uint32_t depth; /* of handlers */
	uint32_t ops_left;
	struct pair pair[PEERS];
	uint8_t *window; /* a slot for each origin */
	uint64_t counter;
	struct cmpi_reg *window_reg, *counter_reg;
	struct via_engine engine;
	uint32_t errors;
} peer[PEERS];

enum { NOBODY = PEERS };

static struct {
	uint64_t seed;
	uint32_t n;
	uint32_t dead;       /* who has died, or NOBODY */
	uint32_t dies_at;    /* step */
	char failure[400];
} job;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fail(const char *format, ...)
{
	va_list args;

	if (job.failure[0])
		return;
	va_start(args, format);
	vsnprintf(job.failure, sizeof(job.failure), format, args);
	va_end(args);
}

/* Is that what an operation with `to` may end with? */
static bool may_fail(uint32_t to, int err)
{
	return err == CMPI_AGAIN || (err == CMPI_TRANSPORT && to == job.dead);
}

/* ---- contents ------------------------------------------------------------------------------------------------------------------ */

static uint8_t pattern(uint32_t salt, uint32_t at)
{
	return (uint8_t)((salt * 2654435761u >> 13) + at * 7 + (at >> 8) * 13);
}

static void fill(uint8_t *to, uint32_t salt, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = pattern(salt, i);
}

static bool good(const uint8_t *from, uint32_t salt, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (from[i] != pattern(salt, i))
			return false;
	return true;
}

static uint32_t salt_of(uint32_t kind, uint32_t from, uint32_t to, uint32_t number)
{
	return kind << 28 | from << 24 | to << 20 | number;
}

/* ---- active messages ---------------------------------------------------------------------------------------------------------------- */

static uint32_t am_len(uint32_t salt)
{
	static const uint32_t most[] = {8, 33, 41, 200, 8200};

	return 8 + salt * 2246822519u % most[salt * 31u % 5];
}

/* Message `number` for that peer; its length. */
static uint32_t am_fill(const struct peer *p, uint32_t to, uint32_t number, uint8_t *at)
{
	uint32_t salt = salt_of(1, p->me, to, number), len = am_len(salt);

	fill(at, salt, len);
	memcpy(at, &number, 4);
	return len;
}

/* One or more, all begun before the first is committed: without credit for all of them the last ones wait in the backlog. */
static int am_send_begun(struct peer *p, uint32_t to)
{
	struct pair *pair = &p->pair[to];
	uint32_t most = fake_random(3) ? 1 : 1 + fake_random(4), n = 0;
	struct cmpi_am am[4];
	int err = CMPI_OK;

	for (; n < most; n++) {
		uint32_t len = am_len(salt_of(1, p->me, to, pair->am_out + n)), more = fake_random(50);

		err = cmpi_am_begin(pair->proc, len + more <= CMPI_AM_MAX ? len + more : len, &am[n]);
		if (err != CMPI_OK)
			break;
	}
	if (n)
		err = CMPI_OK;
	for (uint32_t i = 0; i < n; i++) {
		if (err != CMPI_OK) {
			cmpi_am_abort(&am[i]);
			continue;
		}
		err = cmpi_am_commit(&am[i], 1, am_fill(p, to, pair->am_out, am[i].data));
		pair->am_out += err == CMPI_OK;
	}
	return err;
}

static bool am_send(struct peer *p, uint32_t to)
{
	struct pair *pair = &p->pair[to];
	uint8_t buf[8300];
	uint32_t len = am_fill(p, to, pair->am_out, buf);
	int err;

	if (salt_of(1, p->me, to, pair->am_out) % 3) {
		err = cmpi_am_send(pair->proc, 1, buf, 5, buf + 5, len - 5);
		pair->am_out += err == CMPI_OK;
		if (err == CMPI_OK && pair->proc->backlog.len)
			fail("a message of %u to %u was accepted and waits", p->me, to);
	} else {
		err = am_send_begun(p, to);
	}
	if (err != CMPI_OK && !may_fail(to, err))
		fail("send of %u to %u: %s", p->me, to, cmpi_err_text(err));
	return err == CMPI_OK;
}

static void on_am(void *arg, struct cmpi_proc *proc, unsigned tag, void *data, size_t len)
{
	struct peer *p = arg;
	uint32_t from = cmpi_proc_rank(proc), number;
	struct pair *pair = &p->pair[from];
	uint32_t salt = salt_of(1, from, p->me, pair->am_in);

	memcpy(&number, data, 4);
	if (tag != 1 || number != pair->am_in || len != am_len(salt))
		fail("%u got message %u of %u, %zu bytes, expected number %u, %u bytes", p->me, number, from, len, pair->am_in,
		     am_len(salt));
	else if (!good((uint8_t *)data + 4, salt, 0))
		fail("contents");
	else
		for (uint32_t i = 4; i < len; i++)
			if (((uint8_t *)data)[i] != pattern(salt, i)) {
				fail("%u got message %u of %u with wrong contents at %u", p->me, number, from, i);
				break;
			}
	pair->am_in++;
	if (p->ops_left && salt % 7 == 0 && !am_send(p, from))
		pair->replies_owed++;
	if (p->depth < 3 && fake_random(8) == 0) {
		p->depth++;
		cmpi_progress(p->c);
		p->depth--;
	}
}

static void on_error(void *arg, struct cmpi_proc *proc, int err, const char *text)
{
	struct peer *p = arg;

	if (!proc || cmpi_proc_rank(proc) != job.dead || err != CMPI_TRANSPORT || p->errors++)
		fail("error callback: %s", text);
}

/* ---- matched messages ------------------------------------------------------------------------------------------------------------------ */

static uint32_t matched_len(uint32_t salt)
{
	static const uint32_t most[] = {1, 9, 100, 9000, 40000, LONGEST};

	return salt * 2246822519u % most[salt * 31u % 6];
}

static void on_sent(void *arg, int err)
{
	struct matched *m = arg;

	if (m->done)
		fail("a send completed twice");
	m->done = true;
	m->err = err;
	memset(m->buf, 0xee, m->send.envelope.data_length); /* ours again */
}

static bool match_send(struct peer *p, uint32_t to)
{
	struct pair *pair = &p->pair[to];
	uint32_t salt = salt_of(2, p->me, to, pair->sent), len = matched_len(salt);
	struct matched *m;
	int err;

	if (pair->sent == MESSAGES)
		return false;
	m = calloc(1, sizeof(*m));
	m->buf = malloc(len + 1);
	fill(m->buf, salt, len);
	m->send.buf = m->buf;
	m->send.done = on_sent;
	m->send.arg = m;
	m->send.envelope = (struct via_envelope){.key = mpip_key(1, (int32_t)p->me, (int32_t)pair->sent), .data_length = len,
	                                         .mode = salt % 11 == 0 ? VIA_MODE_SYNC : VIA_MODE_STANDARD};
	err = via_match_send(pair->proc, &m->send);
	if (err == CMPI_OK) {
		pair->out[pair->sent++] = m;
		return true;
	}
	free(m->buf);
	free(m);
	if (!may_fail(to, err))
		fail("matched send: %s", cmpi_err_text(err));
	return false;
}

static void on_received(void *arg, int err)
{
	struct receive *r = arg;

	if (r->done)
		fail("a receive completed twice");
	r->done = true;
	r->err = err;
}

static void match_post(struct peer *p, uint32_t from)
{
	struct pair *pair = &p->pair[from];
	uint32_t salt = salt_of(2, from, p->me, pair->posted), len = matched_len(salt);
	struct receive *r;

	if (pair->posted == MESSAGES)
		return;
	r = calloc(1, sizeof(*r));
	if (salt % 13 == 0)
		len /= 2; /* cut off */
	r->buf = malloc(len + 1);
	r->recv = (struct via_recv){.buf = r->buf, .size = len, .done = on_received, .arg = r};
	pair->in[pair->posted++] = r;
	if (pair->matched_to < pair->envelopes) {
		uint32_t i = pair->matched_to++;

		via_match_accept(pair->unexpected[i], &pair->in[i]->recv);
	}
}

static struct via_recv *on_arrived(void *arg, struct cmpi_proc *proc, const struct via_envelope *envelope, struct via_incoming *message)
{
	struct peer *p = arg;
	uint32_t from = cmpi_proc_rank(proc);
	struct pair *pair = &p->pair[from];
	uint32_t i = pair->envelopes++;

	if (i >= MESSAGES || envelope->key != mpip_key(1, (int32_t)from, (int32_t)i) ||
	    envelope->data_length != matched_len(salt_of(2, from, p->me, i)))
		fail("%u got envelope %" PRIx64 " of %u, expected %u", p->me, envelope->key, from, i);
	if (i < pair->posted) {
		pair->matched_to++;
		return &pair->in[i]->recv;
	}
	pair->unexpected[i] = message;
	return NULL;
}

/* ---- puts, gets, atomics ------------------------------------------------------------------------------------------------------------------ */

static uint8_t *slot(struct peer *target, uint32_t origin)
{
	return target->window + origin * (WINDOW / PEERS);
}

static struct pair *pair_of(void *arg, struct peer **p, uint32_t *to)
{
	uintptr_t index = (uintptr_t)arg;

	*p = &peer[index / PEERS];
	*to = index % PEERS;
	return &(*p)->pair[*to];
}

static void on_moved(void *arg, int err)
{
	struct peer *p;
	uint32_t to;
	struct pair *pair = pair_of(arg, &p, &to);

	if (!pair->busy || (err != CMPI_OK && !may_fail(to, err) && p->me != job.dead))
		fail("a put or get of %u ended with %s", p->me, cmpi_err_text(err));
	else if (err == CMPI_OK && !good(pair->is_get ? pair->local : slot(&peer[to], p->me), pair->salt, pair->len))
		fail("wrong contents after a %s of %u bytes", pair->is_get ? "get" : "put", pair->len);
	pair->busy = false;
}

static void on_added(void *arg, int err)
{
	struct peer *p;
	uint32_t to;
	struct pair *pair = pair_of(arg, &p, &to);

	if (!pair->busy || (err != CMPI_OK && !may_fail(to, err) && p->me != job.dead) || pair->old >= 1000000)
		fail("an atomic of %u ended with %s", p->me, cmpi_err_text(err));
	pair->busy = false;
}

/* The way of the BTL: in the NIC's command, else by descriptor. */
static int move(struct peer *p, uint32_t to, void *arg)
{
	struct pair *pair = &p->pair[to];
	const struct cmpi_key *key = &peer[to].window_reg->key;
	uint64_t there = (uintptr_t)slot(&peer[to], p->me);

	int err = pair->is_get ? cmpi_get_now(pair->proc, pair->local, NULL, there, key, pair->len)
	                       : cmpi_put_now(pair->proc, pair->local, NULL, there, key, pair->len);

	if (err == CMPI_OK)
		on_moved(arg, CMPI_OK);
	else if (pair->is_get)
		err = cmpi_get(pair->proc, pair->local, NULL, there, key, pair->len, on_moved, arg);
	else
		err = cmpi_put(pair->proc, pair->local, NULL, there, key, pair->len, on_moved, arg);
	return err;
}

static void rma(struct peer *p, uint32_t to, uint32_t kind)
{
	struct pair *pair = &p->pair[to];
	void *arg = (void *)(uintptr_t)(p->me * PEERS + to);
	struct peer *target = &peer[to];
	int err;

	if (pair->busy)
		return;
	pair->busy = true;
	pair->is_get = kind == 1;
	pair->len = 1 + fake_random(WINDOW / PEERS - 1);
	pair->salt = fake_random(1 << 30);
	if (kind == 0) {
		fill(pair->local, pair->salt, pair->len);
		err = move(p, to, arg);
	} else if (kind == 1) {
		fill(slot(target, p->me), pair->salt, pair->len);
		memset(pair->local, 0, pair->len);
		err = move(p, to, arg);
	} else {
		err = cmpi_atomic(pair->proc, CMPI_ATOMIC_ADD, 8, (uintptr_t)&target->counter, &target->counter_reg->key, 1, 0,
		                  &pair->old, on_added, arg);
		pair->adds += err == CMPI_OK;
	}
	if (err != CMPI_OK)
		pair->busy = false;
	/* RESOURCE: the registration cache is full of entries in use */
	if (err != CMPI_OK && err != CMPI_RESOURCE && !may_fail(to, err))
		fail("remote operation: %s", cmpi_err_text(err));
}

/* ---- the accounts -------------------------------------------------------------------------------------------------------------------------- */

struct flight {
	uint32_t credited, credit, noops;
};

static void see(void *arg, const void *packet, size_t len)
{
	struct flight *f = arg;
	struct via_header header;

	(void)len;
	memcpy(&header, packet, sizeof(header));
	f->credit += header.vbuf_credit;
	if (header.type == VIA_PKT_NOOP)
		f->noops++;
	else
		f->credited++;
}

static void check_direction(struct peer *x, struct peer *y)
{
	const struct cmpi_proc *there = x->pair[y->me].proc, *here = y->pair[x->me].proc;
	struct flight to_y = {0}, to_x = {0};

	if (there->state != VIA_CONN_CONNECTED || here->state != VIA_CONN_CONNECTED || x->me == job.dead || y->me == job.dead)
		return;
	fake_in_flight(x->c->nic, y->c->nic, see, &to_y);
	fake_in_flight(y->c->nic, x->c->nic, see, &to_x);
	if (here->granted != there->remote_credit + to_y.credited + to_x.credit)
		fail("credit of %u at %u: granted %u, but %u held, %u packets and %u credits on their way", x->me, y->me,
		     here->granted, there->remote_credit, to_y.credited, to_x.credit);
	if (to_y.noops > y->c->params.noop_extra)
		fail("%u NOOPs on their way from %u to %u", to_y.noops, x->me, y->me);
	if (!x->depth && !via_flow_holds(there))
		fail("receives of %u for %u: %u posted, %u granted, %u owed", x->me, y->me, there->preposts, there->granted,
		     there->local_credit);
	if (there->remote_credit && there->backlog.head)
		fail("%u has a backlog and credit for %u", x->me, y->me);
}

static void check_accounts(void)
{
	for (uint32_t i = 0; i < job.n; i++)
		for (uint32_t j = 0; j < job.n; j++)
			if (i != j)
				check_direction(&peer[i], &peer[j]);
	if (fake_violation())
		fail("%s", fake_violation());
}

/* ---- the schedule ------------------------------------------------------------------------------------------------------------------------------ */

static uint32_t other(uint32_t me)
{
	return (me + 1 + fake_random(job.n - 1)) % job.n;
}

static void program_step(struct peer *p)
{
	uint32_t to = other(p->me), what = fake_random(20);

	if (!p->ops_left || p->me == job.dead)
		return;
	p->ops_left--;
	if (what < 10)
		am_send(p, to);
	else if (what < 13)
		match_send(p, to);
	else if (what < 16)
		match_post(p, to);
	else
		rma(p, to, what % 3);
}

static void replies(struct peer *p)
{
	for (uint32_t i = 0; i < job.n; i++)
		while (i != p->me && p->pair[i].replies_owed && am_send(p, i))
			p->pair[i].replies_owed--;
}

static void step(void)
{
	struct peer *p = &peer[fake_random(job.n)];
	uint32_t what = fake_random(100);

	if (p->me == job.dead) {
		fake_step();
	} else if (what < 45) {
		fake_step();
	} else if (what == 99 && fake_random(3) == 0) {
		for (uint32_t i = 0; i < job.n; i++)
			peer[i].asleep = fake_random(3) == 0;
	} else if (!p->asleep && what < 70) {
		cmpi_progress(p->c);
		replies(p);
	} else if (!p->asleep) {
		program_step(p);
	}
}

static uint64_t moved(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < job.n; i++)
		for (uint32_t j = 0; j < job.n; j++) {
			const struct pair *pair = &peer[i].pair[j];

			sum += pair->am_in + pair->am_out + pair->envelopes + pair->posted + pair->busy;
			if (pair->proc && i != j)
				sum += pair->proc->next_in + pair->proc->next_out + pair->proc->noops_in;
		}
	return sum;
}

/* What a look at the process table does elsewhere: who waits for the dead to connect hears that it will not. */
static void give_up_the_dead(void)
{
	if (job.dead == NOBODY)
		return;
	for (uint32_t i = 0; i < job.n; i++) {
		struct cmpi_proc *proc = peer[i].pair[job.dead].proc;

		if (i != job.dead && proc->state == VIA_CONN_CONNECTING && fake_random(20) == 0)
			via_conn_fail(proc, "it ended before it was connected");
	}
}

static void finish_one(struct peer *p)
{
	if (p->me == job.dead)
		return;
	for (uint32_t i = 0; i < job.n; i++)
		if (i != p->me && p->pair[i].posted < peer[i].pair[p->me].sent)
			match_post(p, i);
	cmpi_progress(p->c);
	replies(p);
}

/* Nobody sleeps, nothing new begins, until nothing moves any more. */
static void quiesce(void)
{
	uint32_t quiet = 0;
	uint64_t last = 0;

	for (uint32_t i = 0; i < job.n; i++) {
		peer[i].asleep = false;
		peer[i].ops_left = 0;
	}
	while (quiet < 100 && !job.failure[0]) {
		uint64_t now;

		for (uint32_t i = 0; i < job.n; i++)
			finish_one(&peer[i]);
		give_up_the_dead();
		fake_run();
		check_accounts();
		now = moved();
		quiet = now == last ? quiet + 1 : 0;
		last = now;
	}
}

/* ---- the end -------------------------------------------------------------------------------------------------------------------------------------- */

static void check_matched(struct peer *p, uint32_t to)
{
	struct pair *out = &p->pair[to], *in = &peer[to].pair[p->me];

	for (uint32_t i = 0; i < out->sent; i++) {
		uint32_t salt = salt_of(2, p->me, to, i), len = matched_len(salt);
		const struct receive *r = i < in->posted ? in->in[i] : NULL;

		if (!out->out[i]->done || out->out[i]->err)
			fail("send %u of %u to %u (%u bytes) did not complete", i, p->me, to, len);
		if (!r || !r->done || r->err || r->recv.from != in->proc || r->recv.envelope.data_length != len)
			fail("receive %u of %u from %u (%u bytes) did not complete", i, to, p->me, len);
		else if (!good(r->buf, salt, len < r->recv.size ? len : (uint32_t)r->recv.size))
			fail("receive %u of %u from %u (%u bytes) has wrong contents", i, to, p->me, len);
	}
}

/* One of the two is dead: the other has heard of it, and nothing it began is left open. */
static void check_survivor(struct peer *p)
{
	const struct pair *pair = &p->pair[job.dead];
	const struct cmpi_proc *proc = pair->proc;

	if (proc->state == VIA_CONN_IDLE)
		return;
	if (p->errors != 1 || proc->state != VIA_CONN_LOST)
		fail("%u heard %u times that %u died, and is in state %u", p->me, p->errors, job.dead, proc->state);
	if (pair->busy || proc->messages || proc->rma_ops || proc->atomics || proc->backlog.head || proc->sends_posted || proc->vi)
		fail("something is left of %u with the dead %u", p->me, job.dead);
	for (uint32_t i = 0; i < pair->sent; i++)
		if (!pair->out[i]->done)
			fail("send %u of %u to the dead %u did not end", i, p->me, job.dead);
	for (uint32_t i = 0; i < pair->matched_to; i++)
		if (!pair->in[i]->done)
			fail("receive %u of %u from the dead %u did not end", i, p->me, job.dead);
}

static void check_pair(struct peer *p, uint32_t to)
{
	struct pair *out = &p->pair[to], *in = &peer[to].pair[p->me];
	const struct cmpi_proc *proc = out->proc;

	if (in->am_in != out->am_out)
		fail("%u sent %u messages to %u, %u arrived (credit %u, backlog %u)", p->me, out->am_out, to, in->am_in,
		     proc->remote_credit, proc->backlog.len);
	if (out->busy)
		fail("a remote operation of %u on %u did not complete", p->me, to);
	if (proc->state == VIA_CONN_CONNECTED && !in->proc->fresh && proc->remote_credit < p->c->params.preserve)
		fail("%u was left with %u credits for %u, less than %u", p->me, proc->remote_credit, to, p->c->params.preserve);
	if (proc->messages || proc->rma_ops || proc->atomics || proc->backlog.head || proc->sends_posted)
		fail("something is left of %u to %u", p->me, to);
	if (proc->expected || proc->preposts > proc->base + proc->cmpi->params.rendezvous_extra)
		fail("%u still expects %u packets of %u, and has %u receives posted", p->me, proc->expected, to, proc->preposts);
	if (proc->eager_sent != in->proc->consumed)
		fail("%u sent %u eager bytes to %u, which counted %u", p->me, proc->eager_sent, to, in->proc->consumed);
	check_matched(p, to);
}

static void check_end(void)
{
	uint64_t adds[PEERS] = {0};

	for (uint32_t i = 0; i < job.n; i++)
		for (uint32_t j = 0; j < job.n; j++) {
			if (i != j && i != job.dead && j == job.dead)
				check_survivor(&peer[i]);
			else if (i != j && i != job.dead)
				check_pair(&peer[i], j);
			adds[j] += peer[i].pair[j].adds;
		}
	for (uint32_t i = 0; i < job.n; i++)
		if (job.dead == NOBODY && peer[i].counter != adds[i])
			fail("the counter of %u is %ju after %ju additions", i, (uintmax_t)peer[i].counter, (uintmax_t)adds[i]);
	if (fake_buffers_owned() && job.dead == NOBODY)
		fail("%u pool buffers were not given back", fake_buffers_owned());
}

/* ---- a job ----------------------------------------------------------------------------------------------------------------------------------------- */

static void parameters(void)
{
	static const char *const rendezvous[] = {"rget", "rput", "r3", "auto"};
	uint32_t depth = 1 + fake_random(fake_random(4) ? 6 : 30), noop = 1 + fake_random(3), rendezvous_extra = fake_random(6);

	fake_param("prepost_depth", depth);
	fake_param("prepost_noop_extra", noop);
	fake_param("initial_prepost_depth", noop + 1 + fake_random(depth));
	fake_param("prepost_rendezvous_extra", rendezvous_extra);
	fake_param("prepost_threshold", fake_random(6));
	fake_param("credit_preserve", 1 + fake_random(8));
	fake_param("credit_notify_threshold", 1 + fake_random(fake_random(2) ? 4 : 16));
	fake_param("dynamic_credit_threshold", 1 + fake_random(20));
	fake_param("backlog_max", 1 + fake_random(10));
	fake_param("dreg_entries", 8 + fake_random(20));
	fake_param("rendezvous_threshold", fake_random(50000));
	fake_param("r3_threshold", fake_random(3000));
	fake_param("eager_window", 40000 + fake_random(60000));
	fake_param("lazy_deregister", fake_random(2));
	if (fake_random(2))
		fake_param("vbuf_max", 2 + fake_random(8));
	VipxParameterSet("rendezvous", rendezvous[fake_random(4)], "test");
}

static void peer_open(uint32_t me)
{
	struct peer *p = &peer[me];
	struct cmpi_params params = {.job = 1, .rank = me, .nranks = job.n, .am = on_am, .error = on_error, .arg = p,
	                             .threads = fake_random(2)};

	p->me = me;
	p->ops_left = 100 + fake_random(200);
	p->window = calloc(1, WINDOW);
	if (cmpi_open(&params, &p->c) != CMPI_OK) {
		fail("open: %s", cmpi_last_error());
		return;
	}
	p->engine = (struct via_engine){.arg = p, .arrived = on_arrived};
	via_match_engine(p->c, &p->engine);
	if (cmpi_mem_register(p->c, p->window, WINDOW, CMPI_ACCESS_REMOTE_READ | CMPI_ACCESS_REMOTE_WRITE, &p->window_reg) ||
	    cmpi_mem_register(p->c, &p->counter, 8, CMPI_ACCESS_REMOTE_ATOMIC, &p->counter_reg))
		fail("registration");
}

static void peers_meet(void)
{
	for (uint32_t i = 0; i < job.n; i++) {
		uint8_t blob[CMPI_ADDR_MAX];
		size_t len;

		cmpi_address(peer[i].c, blob, &len);
		for (uint32_t j = 0; j < job.n; j++) {
			if (cmpi_proc_get(peer[j].c, blob, len, &peer[i], &peer[j].pair[i].proc) != CMPI_OK)
				fail("proc_get");
			peer[j].pair[i].local = malloc(WINDOW / PEERS);
		}
	}
}

static void peer_free(struct peer *p)
{
	for (uint32_t j = 0; j < PEERS; j++) {
		struct pair *pair = &p->pair[j];

		for (uint32_t i = 0; i < pair->sent; i++) {
			free(pair->out[i]->buf);
			free(pair->out[i]);
		}
		for (uint32_t i = 0; i < pair->posted; i++) {
			free(pair->in[i]->buf);
			free(pair->in[i]);
		}
		free(pair->local);
	}
	free(p->window);
}

static void close_all(void)
{
	fake_auto_steps(4); /* closing waits inside */
	if (job.dead != NOBODY) { /* its memory is ours */
		cmpi_mem_deregister(peer[job.dead].c, peer[job.dead].window_reg);
		cmpi_mem_deregister(peer[job.dead].c, peer[job.dead].counter_reg);
		cmpi_close(peer[job.dead].c);
	}
	for (uint32_t i = 0; i < job.n; i++) {
		if (i == job.dead)
			continue;
		cmpi_mem_deregister(peer[i].c, peer[i].window_reg);
		cmpi_mem_deregister(peer[i].c, peer[i].counter_reg);
		cmpi_close(peer[i].c);
		fake_run();
		for (uint32_t j = i + 1; j < job.n; j++)
			if (j != job.dead)
				cmpi_progress(peer[j].c);
	}
	if (fake_violation())
		fail("at close: %s", fake_violation());
}

static void describe(void)
{
	for (uint32_t i = 0; i < job.n; i++) {
		const struct via_params *p = &peer[i].c->params;

		printf("# %u: depth %u initial %u noop %u rndv %u threshold %u preserve %u notify %u dynamic %u vbufs %u\n", i, p->depth,
		       p->initial, p->noop_extra, p->rendezvous_extra, p->threshold, p->preserve, p->notify, p->dynamic,
		       peer[i].c->nvbufs);
		for (uint32_t j = 0; j < job.n; j++) {
			const struct pair *pair = &peer[i].pair[j];

			if (i != j)
				printf("#    to %u: am %u, matched %u, adds %u; state %u credit %u owed %u noops %u/%u stalls %ju\n", j,
				       pair->am_out, pair->sent, pair->adds, pair->proc->state, pair->proc->remote_credit,
				       pair->proc->local_credit, pair->proc->noops_sent, pair->proc->noops_acked,
				       (uintmax_t)*peer[i].c->count.credit_stalls);
		}
	}
}

static uint64_t waited; /* packets that were in a backlog, over all seeds */

static bool run_seed(uint64_t seed, bool loud)
{
	struct fake_config config = {.seed = seed};

	memset(&job, 0, sizeof(job));
	memset(peer, 0, sizeof(peer));
	job.seed = seed;
	fake_reset(&config);
	for (uint32_t i = 0; i < 10; i++)
		fake_random(2);
	config.buffers = 4 + fake_random(12);
	config.instant = fake_random(3) * 50;
	config.brief = fake_random(3) * 50;
	config.auto_steps = fake_random(2);
	job.n = 2 + fake_random(PEERS - 1);
	job.dead = NOBODY;
	job.dies_at = seed % 5 ? UINT32_MAX : fake_random(3000);
	config.seed = seed + 1000000007;
	fake_reset(&config);
	parameters();
	for (uint32_t i = 0; i < job.n; i++)
		peer_open(i);
	peers_meet();
	for (uint32_t i = 0; i < 4000 && !job.failure[0]; i++) {
		if (i == job.dies_at) {
			job.dead = fake_random(job.n);
			fake_kill(peer[job.dead].c->nic);
		}
		step();
		give_up_the_dead();
		check_accounts();
	}
	quiesce();
	if (!job.failure[0])
		check_end();
	if (loud || job.failure[0])
		describe();
	for (uint32_t i = 0; i < job.n; i++)
		waited += peer[i].c ? *peer[i].c->count.credit_stalls : 0;
	if (!job.failure[0])
		close_all();
	if (job.failure[0])
		printf("# seed %ju: %s\n", (uintmax_t)seed, job.failure);
	for (uint32_t i = 0; i < job.n; i++)
		peer_free(&peer[i]);
	return !job.failure[0];
}

static uint64_t first = 1, last = 500;

static void random_interleavings(void)
{
	for (uint64_t seed = first; seed <= last; seed++)
		if (!CHECK(run_seed(seed, first == last)))
			break;
	CHECK(first == last || waited > 20 * (last - first)); /* some packets did wait for credit */
}

int main(int argc, char **argv)
{
	if (argc > 1)
		first = last = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		last = strtoull(argv[2], NULL, 0);
	CASE(random_interleavings);
	return check_done();
}
