/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One recorded workload, played under every architecture with every engine: sends of all sizes with and without immediate data,
 * RDMA writes and reads, at every reliability level.  Everything that the consumer sees is hashed in the order in which it sees
 * it: status, length, immediate data and bytes of each completed descriptor, and the memory at the end.  The digests must be
 * equal.
 */
#include <stdlib.h>

#include "tests/func/vipl_two.h"

enum { OPS = 600, WINDOW = 16, PLACE = 64 << 10, MEMORY = 1 << 20, LEVELS = 3, ARCHS = 2, ENGINES = 3 };

static const VIP_RELIABILITY_LEVEL levels[LEVELS] = { VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
	VIP_SERVICE_RELIABLE_RECEPTION };
static const char *const archs[ARCHS] = { "direct", "qnix" };
static const char *const engines[ENGINES] = { "inline", "thread", "daemon" };
static struct digests {
	uint64_t sender, receiver;
} *digest; /* of each architecture, engine and level, where both sides reach it */
static struct digests *now;
static VIP_RELIABILITY_LEVEL level;

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211ull;
	return h;
}

static uint64_t hash_desc(uint64_t h, const VIP_DESCRIPTOR *d)
{
	uint32_t seen[3] = { d->CS.Status, d->CS.Length, d->CS.Status & VIP_STATUS_IMMEDIATE ? d->CS.ImmediateData : 0 };

	return hash(h, seen, sizeof(seen));
}

/* The record: what operation number i is. */
struct op {
	VIP_UINT16 control;
	uint32_t len, imm;
};

static struct op op_of(unsigned i)
{
	static const uint32_t sizes[] = { 0, 1, 8, 47, 48, 49, 300, 4096, 4097, 8320, 8321, 32896, 32897, 60000 };
	uint32_t x = i * 2654435761u ^ 0x9e3779b9u;
	struct op op = { .len = sizes[(x >> 8) % 14], .imm = x };

	switch ((x >> 20) % 8) {
	case 0:
		op.control = VIP_CONTROL_OP_RDMAWRITE;
		break;
	case 1:
		op.control = VIP_CONTROL_OP_RDMAREAD;
		break;
	case 2:
		op.control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
		break;
	case 3:
	case 4:
		op.control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
		break;
	default:
		op.control = VIP_CONTROL_OP_SENDRECV;
	}
	return op;
}

static bool takes_receive(struct op op)
{
	return (op.control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV || (op.control & VIP_CONTROL_IMMEDIATE);
}

static void receiver(struct side *s)
{
	uint64_t h = 14695981039346656037ull;
	char *place = s->data + MEMORY;
	struct remote unused;
	unsigned n = 0;

	side_connect(s, level, NULL);
	place = s->data + MEMORY;
	for (unsigned i = 0; i < MEMORY; i++)
		s->data[i] = (char)(i * 11 + (i >> 8));
	for (unsigned i = 0; i < WINDOW; i++)
		post_recv(s, desc_make(s, i, place + i * PLACE, PLACE));
	exchange_memory(s, s->data, s->handle, &unused);
	for (unsigned i = 0; i < OPS; i++) {
		struct op op = op_of(i);
		VIP_DESCRIPTOR *d = desc_at(s, n % WINDOW);
		char token;

		if (takes_receive(op)) {
			received(s, d, VIP_SUCCESS);
			h = hash_desc(h, d);
			if ((op.control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV)
				h = hash(h, place + n % WINDOW * PLACE, d->CS.Length);
			desc_make(s, n % WINDOW, place + n % WINDOW * PLACE, PLACE);
			post_recv(s, d);
			n++;
		}
		if (i % WINDOW == WINDOW - 1) {
			say(s, "w", 1); /* window: the sender waits for it */
			hear(s, &token, 1);
		}
	}
	now->receiver = hash(h, s->data, MEMORY);
	meet(s);
	side_close(s);
}

static void sender(struct side *s)
{
	uint64_t h = 14695981039346656037ull;
	struct remote there;
	char token, *place;

	side_connect(s, level, NULL);
	place = s->data + MEMORY;
	exchange_memory(s, s->data, s->handle, &there);
	for (unsigned i = 0; i < OPS; i++) {
		struct op op = op_of(i);
		VIP_DESCRIPTOR *d;

		for (uint32_t k = 0; k < op.len; k++)
			place[k] = (char)(op.imm + k * 3);
		if ((op.control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_SENDRECV) {
			d = desc_make(s, 0, place, op.len);
			d->CS.Control = op.control;
		} else {
			d = desc_rdma(s, 0, op.control, place, op.len, &there, op.imm % (MEMORY - PLACE));
		}
		d->CS.ImmediateData = op.control & VIP_CONTROL_IMMEDIATE ? op.imm : 0;
		post_send(s, d);
		sent(s, d, VIP_SUCCESS);
		h = hash_desc(h, d);
		h = hash(h, place, op.len);
		if (i % WINDOW == WINDOW - 1) {
			hear(s, &token, 1);
			say(s, "w", 1);
		}
	}
	now->sender = h;
	meet(s);
	side_close(s);
}

/* All must be as the first of their level. */
static void play(int arch, int engine, int l)
{
	level = levels[l];
	now = &digest[(arch * ENGINES + engine) * LEVELS + l];
	VIP(VIP_SUCCESS, VipxParameterSet("arch", archs[arch], "test"));
	VIP(VIP_SUCCESS, VipxParameterSet("engine", engines[engine], "test"));
	CHECK_STR(VipxParameterString("engine"), engines[engine]);
	two(receiver, sender);
	printf("# arch %s, engine %s, level %d: %016" PRIx64 " %016" PRIx64 "\n", archs[arch], engines[engine], (int)level, now->sender,
	       now->receiver);
	CHECK(now->sender && now->receiver);
	CHECK_EQ(now->sender, digest[l].sender);
	CHECK_EQ(now->receiver, digest[l].receiver);
}

static void the_same_outcome(void)
{
	for (int arch = 0; arch < ARCHS; arch++)
		for (int engine = 0; engine < ENGINES; engine++)
			for (int l = 0; l < LEVELS; l++)
				play(arch, engine, l);
}

int main(void)
{
	digest = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (digest == MAP_FAILED)
		return EXIT_FAILURE;
	two_init("digest");
	CASE(the_same_outcome);
	return check_done();
}
