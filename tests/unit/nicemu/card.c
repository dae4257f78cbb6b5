/* SPDX-License-Identifier: BSD-3-Clause */
/* The card: who shares it, what may be written, what is left when everybody is gone. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "nicemu/ctl/ctl.h"
#include "tests/unit/nicemu/pair.h"

static char device[48];

/* Runs fn in a child with the NIC of the parent closed to it; its exit status, or minus the signal. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(fn());
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static uint64_t parent_card;

static int same_card(void)
{
	struct nic_attr attr;
	struct nic *nic;

	if (nic_open(&(struct nic_open_args){ .device = device }, &nic))
		return 2;
	nic_query(nic, &attr);
	nic_close(nic);
	return attr.card == parent_card ? 0 : 1;
}

/* The open card of the parent is mapped in the child too, but the child must find it as a stranger would. */
static int exec_same_card(void)
{
	char card[32];

	snprintf(card, sizeof(card), "%llx", (unsigned long long)parent_card);
	execl("/proc/self/exe", "card", "--same", device, card, (char *)NULL);
	return 3;
}

static void shared_by_name(void)
{
	struct nic_attr attr, attr2;
	struct nic *a, *b;
	char other[40];

	snprintf(other, sizeof(other), "test-other-%d", (int)getpid());
	REQUIRE(nic_open(&(struct nic_open_args){ .device = device }, &a) == NIC_OK);
	nic_query(a, &attr);
	parent_card = attr.card;
	CHECK_EQ(in_child(exec_same_card), 0);
	REQUIRE(nic_open(&(struct nic_open_args){ .device = other }, &b) == NIC_OK);
	nic_query(b, &attr2);
	CHECK(attr2.card != attr.card);
	CHECK(memcmp(attr2.addr, attr.addr, NIC_ADDR_LEN) == 0);
	nic_close(b);
	REQUIRE(nic_open(&(struct nic_open_args){ .device = device }, &b) == NIC_OK);
	nic_query(b, &attr2);
	CHECK_EQ(attr2.card, attr.card);
	CHECK(attr2.slot != attr.slot);
	nic_close(a);
	/* The card stays while somebody has it, whoever made it. */
	CHECK_EQ(in_child(exec_same_card), 0);
	nic_close(b);
	CHECK_EQ(in_child(exec_same_card), 1);
}

static void bad_names(void)
{
	struct nic *nic;

	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = "a/b" }, &nic), NIC_PARAMETER);
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = "two words" }, &nic), NIC_PARAMETER);
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = "0123456789012345678901234567890123456789012345678901234567" }, &nic), NIC_PARAMETER);
	CHECK(strlen(nic_last_error()) > 20);
}

static struct nic *mine, *theirs;

static int write_region_table(void)
{
	nic_store_relaxed(&theirs->slot->mmt[1].base, 1);
	return 0;
}

static int write_work_queue(void)
{
	theirs->slot->txq[0][0].desc = 1;
	return 0;
}

static int write_vi(void)
{
	theirs->slot->vi[0].flags = 3;
	return 0;
}

static int write_own(void)
{
	mine->slot->vi[0].flags = 3;
	return 0;
}

/* A stray write of one process cannot reach another one's tables, queues or contexts. */
static int other_slot_is_read_only(void)
{
	pid_t child;
	int up[2], down[2], status;
	struct end e;
	uint32_t slot;

	if (pipe(up) || pipe(down))
		return 1;
	child = fork();
	if (child == 0) {
		char c;

		close(down[1]);
		end_open(&e, device);
		end_vi(&e, NIC_RELIABLE_DELIVERY);
		slot = e.nic->me;
		if (write(up[1], &slot, sizeof(slot)) != sizeof(slot) || read(down[0], &c, 1) != 0)
			_exit(1);
		end_close(&e);
		_exit(0);
	}
	close(down[0]);
	if (read(up[0], &slot, sizeof(slot)) != sizeof(slot))
		return 1;
	end_open(&e, device);
	end_vi(&e, NIC_RELIABLE_DELIVERY);
	mine = e.nic;
	theirs = calloc(1, sizeof(*theirs));
	theirs->slot = &e.nic->map->slot[slot];
	CHECK(slot != e.nic->me);
	CHECK_EQ(in_child(write_own), 0);
	CHECK_EQ(in_child(write_region_table), -SIGSEGV);
	CHECK_EQ(in_child(write_work_queue), -SIGSEGV);
	CHECK_EQ(in_child(write_vi), -SIGSEGV);
	CHECK(nic_driver_link(e.nic, slot, nic_load_relaxed(&theirs->slot->epoch)) != NULL);
	CHECK_EQ(in_child(write_region_table), -SIGSEGV);
	CHECK_EQ(in_child(write_vi), -SIGSEGV);
	free(theirs);
	end_close(&e);
	close(down[1]);
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	return 0;
}

static void foreign_slots_are_read_only(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer answers the signal itself");
#endif
	CHECK_EQ(other_slot_is_read_only(), 0);
}

static void file_memory(void)
{
	struct nic_attr attr;
	struct pair p;
	struct nic_desc *r;

	CHECK_EQ(nic_param_set("memory", "file", "test"), NIC_OK);
	pair_open(&p, NIC_RELIABLE_DELIVERY);
	nic_query(p.a.nic, &attr);
	CHECK_STR(attr.memory, "file");
	r = fill(&p.b, 0, 0, p.b.mem, 5000);
	pattern(p.a.mem, 5000, 1);
	recv_desc(&p.b, r);
	send_desc(&p.a, fill(&p.a, 0, 0, p.a.mem, 5000));
	pair_poll(&p);
	CHECK_EQ(status_of(r), NIC_ST_DONE | NIC_ST_OP_RECEIVE);
	CHECK(is_pattern(p.b.mem, 5000, 1));
	pair_close(&p);
	CHECK_EQ(nic_param_set("memory", "auto", "test"), NIC_OK);
	end_open(&p.a, device);
	nic_query(p.a.nic, &attr);
	CHECK_STR(attr.memory, "memfd");
	end_close(&p.a);
}

static void slots_run_out(void)
{
	struct nic *nic[NIC_MAX_SLOTS + 1];
	int n = 0, err;

	while (n <= NIC_MAX_SLOTS && (err = nic_open(&(struct nic_open_args){ .device = device }, &nic[n])) == NIC_OK)
		n++;
	CHECK_EQ(n, NIC_MAX_SLOTS);
	CHECK_EQ(err, NIC_RESOURCE);
	CHECK(strstr(nic_last_error(), "slots") != NULL);
	nic_close(nic[100]);
	CHECK_EQ(nic_open(&(struct nic_open_args){ .device = device }, &nic[100]), NIC_OK);
	while (n--)
		nic_close(nic[n]);
}

static void parameters(void)
{
	CHECK_EQ(nic_param_int("rendezvous_threshold"), 32768);
	CHECK_EQ(nic_param_set("rendezvous_threshold", "2M", "test"), NIC_OK);
	CHECK_EQ(nic_param_int("rendezvous_threshold"), 2 << 20);
	CHECK_EQ(nic_param_set("rendezvous_threshold", "2x", "test"), NIC_PARAMETER);
	CHECK_EQ(nic_param_set("rendezvous_threshold", "-1", "test"), NIC_PARAMETER);
	CHECK_EQ(nic_param_set("rendezvous_threshold", "99999999999g", "test"), NIC_PARAMETER);
	CHECK_EQ(nic_param_int("rendezvous_threshold"), 2 << 20);
	CHECK_EQ(nic_param_set("cma", "of", "test"), NIC_PARAMETER);
	CHECK_EQ(nic_param_set("cma", "off", "test"), NIC_OK);
	CHECK_STR(nic_param_find("cma")->source, "test");
	CHECK_EQ(nic_param_set("cma", "auto", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("nonsense", "1", "test"), NIC_UNKNOWN_NAME);
	CHECK_EQ(nic_param_int("vipl_strict"), 0);
	CHECK_EQ(nic_param_set("vipl_strict", "yes", "test"), NIC_OK);
	CHECK_EQ(nic_param_int("vipl_strict"), 1);
	CHECK_EQ(nic_param_set("vipl_strict", "maybe", "test"), NIC_PARAMETER);
}

/* As far as the code can do with it, and no further. */
static void ranges(void)
{
	char value[32];

	CHECK_EQ(nic_param_set("buffers", "-5", "test"), NIC_PARAMETER);
	for (int past = 0; past < 2; past++) {
		snprintf(value, sizeof(value), "%d", NIC_BUFFER_BATCH - past);
		CHECK_EQ(nic_param_set("buffers", value, "test"), past ? NIC_PARAMETER : NIC_OK);
		snprintf(value, sizeof(value), "%d", NIC_POOL_BUFFERS + past);
		CHECK_EQ(nic_param_set("buffers", value, "test"), past ? NIC_PARAMETER : NIC_OK);
	}
	CHECK_EQ(nic_param_int("buffers"), NIC_POOL_BUFFERS);
	CHECK_EQ(nic_param_set("buffers", "512", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("prepost_depth", "100000", "test"), NIC_PARAMETER);
	CHECK_EQ(nic_param_set("eager_window", "1020k", "test"), NIC_OK);
	CHECK_EQ(nic_param_set("eager_window", "2m", "test"), NIC_PARAMETER);
	CHECK_EQ(nic_param_int("eager_window"), 1020 << 10);
	CHECK_EQ(nic_param_set("vbuf_max", "-1", "test"), NIC_OK); /* that one has no range */
}

/* What setting a parameter says on standard error. */
static const char *said(const char *name, const char *value)
{
	static char text[512];
	FILE *to = tmpfile();
	int before = dup(2);

	text[0] = 0;
	if (!CHECK(to && before >= 0 && dup2(fileno(to), 2) == 2))
		return text;
	nic_param_set(name, value, "test");
	dup2(before, 2);
	close(before);
	rewind(to);
	text[fread(text, 1, sizeof(text) - 1, to)] = 0;
	fclose(to);
	return text;
}

static void complaints(void)
{
	CHECK(strstr(said("cmaa", "off"), "did you mean \"cma\"?"));
	CHECK(strstr(said("CMAA", "off"), "did you mean \"cma\"?")); /* as a variable has it */
	CHECK(strstr(said("Rendezvouz", "rput"), "did you mean \"rendezvous\"?"));
	CHECK_STR(said("cma", "of"), "qnix: test: value \"of\" does not fit cma (one of auto, off); keeping \"auto\"\n");
	CHECK(strstr(said("vipl_strict", "maybe"), "(true or false)"));
	CHECK(strstr(said("eager_window", "2x"), "(bytes, or with k, m, g, from 0 to 1020k)"));
	CHECK(strstr(said("buffers", "0"), "(a whole number, from 16 to 32768); keeping \"512\""));
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--same") == 0) {
		snprintf(device, sizeof(device), "%s", argv[2]);
		parent_card = strtoull(argv[3], NULL, 16);
		return same_card();
	}
	snprintf(device, sizeof(device), "test-%d", (int)getpid());
	CASE(shared_by_name);
	CASE(bad_names);
	CASE(foreign_slots_are_read_only);
	CASE(file_memory);
	CASE(slots_run_out);
	CASE(parameters);
	CASE(ranges);
	CASE(complaints);
	return check_done();
}
