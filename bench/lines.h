/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left of a message when MPI and its transport cost nothing: lines of memory that both ranks have mapped, which one
 * writes and the other reads.  No NIC, no matching, no protocol but a number in each line, of which the first line's is polled,
 * and how far the other has read.  What was found good for the NIC's link is done here, too: the first line is written last,
 * at both ends a message's lines are asked for together, and those of an answer are let go of.
 */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H

#include <mpi.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	LINES = 512,       /* of a ring, a power of two */
	LINES_TELL = 32,   /* lines between two words of the reader on how far it is */
	LINES_BYTES = 60,  /* of a message in a line */
	LINES_AHEAD = 3,   /* lines of a message, up to so many, that a look asks for: of more it would take some back from who writes them */
	LINES_MOST = LINES / 4 * LINES_BYTES, /* bytes of a message */
};

struct lines_line {
	_Alignas(64) _Atomic uint32_t number; /* the first line of a message: its own number + 1; the others: their own */
	uint8_t data[LINES_BYTES];
};

struct lines_ring {
	struct lines_line line[LINES];
	_Alignas(64) _Atomic uint32_t read;
};

struct lines {
	struct lines_ring *out, *in;
	uint32_t sent, limit;           /* lines written, and that may be */
	uint32_t answered;              /* lines read at the last message sent */
	uint32_t taken, told, expected; /* lines read; what the other knows of it; lines of the last message */
};

/* Gets hold of a line that will be written (the compiler's own would only read it); lets go of one for who reads it. */
#if defined(__x86_64__)
#define LINES_OWN(line) __asm__("prefetchw %0" : : "m"(*(line)))
#define LINES_LET_GO(line) __asm__("cldemote %0" : : "m"(*(line)))
#else
#define LINES_OWN(line) __builtin_prefetch(line, 1)
#define LINES_LET_GO(line) ((void)(line))
#endif

static inline uint32_t lines_of(size_t bytes)
{
	return bytes <= LINES_BYTES ? 1 : (uint32_t)((bytes + LINES_BYTES - 1) / LINES_BYTES);
}

/* Collective, of two ranks; the memory stays until the end of the job. */
static inline void lines_open(struct lines *l, int rank)
{
	struct lines_ring *ring;
	MPI_Aint size;
	MPI_Win win;
	int unit;

	MPI_Win_allocate_shared(sizeof(*ring), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &ring, &win);
	memset(ring, 0, sizeof(*ring));
	*l = (struct lines){ .limit = LINES, .expected = 1 };
	MPI_Win_shared_query(win, 1 - rank, &size, &unit, &l->out);
	MPI_Win_shared_query(win, rank, &size, &unit, &l->in);
	MPI_Barrier(MPI_COMM_WORLD);
}

static inline void lines_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (bytes >= LINES_BYTES)
		memcpy(to, from, LINES_BYTES);
	else
		memcpy(to, from, bytes);
}

/* False: there is no room now. */
static inline bool lines_send(struct lines *l, const void *data, size_t bytes)
{
	uint32_t n = lines_of(bytes);

	if (l->limit - l->sent < n) {
		/* A2: pairs with R2 in lines_take; those lines may be overwritten. */
		l->limit = atomic_load_explicit(&l->out->read, memory_order_acquire) + LINES;
		if (l->limit - l->sent < n)
			return false;
	}
	for (uint32_t i = 1; i < n; i++)
		LINES_OWN(&l->out->line[(l->sent + i) % LINES]);
	for (uint32_t i = n; i-- > 0;) {
		struct lines_line *line = &l->out->line[(l->sent + i) % LINES];

		lines_copy(line->data, (const uint8_t *)data + i * LINES_BYTES, bytes - i * LINES_BYTES);
		/* R1: the first, which comes last; to A1 in lines_take. */
		atomic_store_explicit(&line->number, l->sent + i + (i == 0), memory_order_release);
	}
	for (uint32_t i = 1; l->answered != l->taken && i < n; i++)
		LINES_LET_GO(&l->out->line[(l->sent + i) % LINES]);
	l->answered = l->taken;
	l->sent += n;
	return true;
}

/* False: nothing has come. */
static inline bool lines_take(struct lines *l, void *data, size_t bytes)
{
	uint32_t n = lines_of(bytes);

	for (uint32_t i = 1; l->expected <= LINES_AHEAD && i < l->expected; i++)
		__builtin_prefetch(&l->in->line[(l->taken + i) % LINES]);
	if (atomic_load_explicit(&l->in->line[l->taken % LINES].number, memory_order_acquire) != l->taken + 1) /* A1 */
		return false;
	for (uint32_t i = 1; n > LINES_AHEAD && i < n; i++)
		__builtin_prefetch(&l->in->line[(l->taken + i) % LINES]);
	for (uint32_t i = 0; i < n; i++)
		lines_copy((uint8_t *)data + i * LINES_BYTES, l->in->line[(l->taken + i) % LINES].data, bytes - i * LINES_BYTES);
	l->taken += n;
	l->expected = n;
	if (l->taken - l->told >= LINES_TELL) {
		l->told = l->taken;
		atomic_store_explicit(&l->in->read, l->taken, memory_order_release); /* R2 */
	}
	return true;
}

/* Nanoseconds of half a ping-pong of a line, the best of some tries: how far apart the processors of both ranks are. */
static inline double lines_apart(struct lines *l, int rank, int tries)
{
	enum { TURNS = 50, YIELD = 100000 };
	double best = 1e9;
	uint8_t byte = 0;
	int found;

	for (int k = 0; k < tries; k++) {
		double start = MPI_Wtime(), ns;

		for (int i = 0; i < 2 * TURNS; i++)
			if ((i + rank) % 2 == 0)
				lines_send(l, &byte, 1); /* of a ring in which there is one */
			else
				for (unsigned polls = 0; !lines_take(l, &byte, 1); polls++)
					if (polls > YIELD) { /* it has no processor, or MPI has something for it that waits here */
						MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
						sched_yield();
					}
		ns = (MPI_Wtime() - start) * 1e9 / (2 * TURNS);
		best = ns < best ? ns : best;
	}
	return best;
}

#endif
