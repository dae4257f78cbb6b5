/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of several layouts in memory, whose every byte is known: blocks of eight bytes, one after the other, with gaps, or backward, before
 * or behind the address that MPI is given, or at addresses that the datatype has by itself.  The memory is a little longer than that, and
 * what is not of the message must stay as it was.
 *
 * This knows of no requests: a program takes `data`, `count` and `type` of a place, and gives them to MPI.  It includes check.h first.
 */
#ifndef QNIX_TESTS_MPI_LAYOUT_H
#define QNIX_TESTS_MPI_LAYOUT_H

enum { LAYOUT_EDGE = 64, LAYOUT_CANARY = 0x5c };

struct layout {
	const char *name;
	long first, stride;     /* of the blocks, in bytes, from the address that MPI is given */
	bool each;              /* a type of one block, as often as there are blocks; otherwise one of all of them */
	bool absolute;          /* relative to MPI_BOTTOM */
};

static const struct layout layouts[] = {
	{ "plain", 0, 8, false, false },
	{ "gaps", 0, 24, false, false },
	{ "behind the address", 48, 8, false, false },
	{ "before the address", -64, 8, true, false },
	{ "gaps, one by one", -16, 16, true, false },
	{ "backward", 0, -8, false, false },
	{ "backward with gaps", 32, -24, false, false },
	{ "absolute", 0, 8, false, true },
	{ "absolute with gaps", 0, 16, false, true },
};
#define LAYOUTS ((int)(sizeof layouts / sizeof *layouts))
enum { LAYOUT_PLAIN, LAYOUT_GAPS };

struct place {
	int blocks, size;
	long stride;
	unsigned char *room, *image, *at; /* all of it; what it should be; where the first block is */
	void *data;
	int count;
	MPI_Datatype type;
};

static inline MPI_Datatype layout_type(const struct layout *l, int blocks, const void *at)
{
	MPI_Datatype inner, placed, type;
	MPI_Aint where = l->first;

	if (l->absolute)
		MPI_Get_address(at, &where);
	MPI_Type_create_hvector(blocks, 8, l->stride, MPI_BYTE, &inner);
	MPI_Type_create_hindexed(1, (int[]){ 1 }, &where, inner, &placed);
	MPI_Type_free(&inner);
	if (l->each) {
		MPI_Type_create_resized(placed, where, l->stride, &type);
		MPI_Type_free(&placed);
	} else {
		type = placed;
	}
	MPI_Type_commit(&type);
	return type;
}

/* Bytes: a multiple of eight, or none. */
static inline struct place place_create(const struct layout *l, int bytes)
{
	struct place p = { .blocks = bytes / 8, .stride = l->stride };
	long all = labs(l->stride) * p.blocks;

	p.size = (int)all + 2 * LAYOUT_EDGE;
	p.room = check_memory((size_t)p.size);
	p.image = check_memory((size_t)p.size);
	p.at = p.room + LAYOUT_EDGE + (l->stride < 0 && all ? all + l->stride : 0);
	p.data = l->absolute ? MPI_BOTTOM : p.at - l->first;
	p.count = l->each ? p.blocks : l == layouts ? bytes : 1;
	p.type = l == layouts ? MPI_BYTE : layout_type(l, l->each ? 1 : p.blocks, p.at);
	return p;
}

static inline void place_free_type(struct place *p)
{
	if (p->type != MPI_BYTE && p->type != MPI_DATATYPE_NULL)
		MPI_Type_free(&p->type);
}

static inline void place_destroy(struct place *p)
{
	place_free_type(p);
	free(p->room), free(p->image);
}

/* The first `blocks` of the message in memory that starts at `room`. */
static inline void place_draw(const struct place *p, unsigned char *room, uint64_t key, int blocks)
{
	memset(room, LAYOUT_CANARY, (size_t)p->size);
	for (int i = 0; i < blocks; i++) {
		uint64_t w = check_word(key, (size_t)i);

		memcpy(room + (p->at - p->room) + i * p->stride, &w, 8);
	}
}

static inline void place_fill(struct place *p, uint64_t key)
{
	place_draw(p, p->room, key, p->blocks);
}

static inline void place_clear(struct place *p)
{
	memset(p->room, LAYOUT_CANARY, (size_t)p->size);
}

/* The first byte of the room that is not what it should be after a message of so many blocks, -1 when there is none. */
static inline long place_differs_after(struct place *p, uint64_t key, int blocks)
{
	place_draw(p, p->image, key, blocks);
	if (!memcmp(p->room, p->image, (size_t)p->size))
		return -1;
	for (long i = 0; i < p->size; i++)
		if (p->room[i] != p->image[i])
			return i;
	return -1;
}

static inline long place_differs(struct place *p, uint64_t key)
{
	return place_differs_after(p, key, p->blocks);
}

/*
 * Has the message come, into memory that another process may be writing just now?  Each word is looked at once.  memcmp looks again where it has seen a
 * difference, and calls all of the memory equal if that is gone by then.
 */
static inline bool place_has_come(struct place *p, uint64_t key)
{
	_Atomic uint64_t *room = (_Atomic uint64_t *)(void *)p->room;
	uint64_t word;

	place_draw(p, p->image, key, p->blocks);
	for (int i = 0; i < p->size / 8; i++) { /* a place is made of words */
		memcpy(&word, p->image + 8 * (size_t)i, 8);
		if (atomic_load_explicit(&room[i], memory_order_acquire) != word) /* the data are all that tells of them */
			return false;
	}
	return true;
}

static inline uint64_t place_key(int sender, int bytes, int number)
{
	return check_key((unsigned)sender, (unsigned)bytes, (uint64_t)number);
}

static inline void place_expect(const char *what, struct place *p, int from, int bytes, int number)
{
	long at = place_differs(p, place_key(from, bytes, number));

	CHECK(at < 0, "%s, %d bytes, from %d: wrong at byte %ld", what, bytes, from, at);
}

/* ---- memory of buffered sends ---- */

static inline void buffer_attach(int messages, int bytes)
{
	int room = messages * (bytes + 4096 + MPI_BSEND_OVERHEAD);

	MPI_Buffer_attach(check_memory((size_t)room), room);
}

static inline void buffer_detach(void)
{
	void *got;
	int size;

	MPI_Buffer_detach(&got, &size);
	free(got);
}

#endif
