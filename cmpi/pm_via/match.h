/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matched messages: what somebody who matches (posted and unexpected queues) and the protocol module say to each other.
 * Not for the glue.  That somebody is the ADI engine, through adi.c, or a test that matches by itself.
 *
 * Sending: the engine fills a struct via_send and calls via_match_send; `done` runs when the buffer is its own again.
 * Receiving: `arrived` tells of an envelope, in the order of the sends of that peer.  It answers with the receive that
 * matches, or NULL; then via_match_accept names it later.  `done` of the receive runs when the data is in place.
 */
#ifndef VIA_MATCH_H
#define VIA_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmpi/cmpi.h"
#include "cmpi/pm_via/completion.h"
#include "cmpi/pm_via/packet.h"

struct via_incoming; /* a message whose envelope has arrived and whose data is not all delivered */

/* A message on its way out; the caller's memory until `done`. */
struct via_send {
	/* caller fills */
	const void *buf;
	struct via_envelope envelope; /* key, data_length, mode; the rest is filled here */
	cmpi_done_fn *done;
	void *arg;
	/* private */
	struct via_completion completion;
	struct cmpi_proc *proc;
	struct via_send *next;
	struct cmpi_reg *reg;
	uint64_t offset;
	uint64_t rreq;  /* names the receiver's request; 0: a series, there is one only */
	uint8_t asked;  /* enum via_protocol of the start packet */
	bool cancelled; /* taken back from the receiver; for `done` */
};

/* A receive; the caller's memory until `done`. */
struct via_recv {
	/* caller fills */
	void *buf;
	uint64_t size; /* a longer message is cut off */
	cmpi_done_fn *done;
	void *arg;
	struct via_completion completion; /* private */
	/* filled when matched */
	struct cmpi_proc *from;
	struct via_envelope envelope; /* data_length says whether the message was cut off */
};

struct via_engine {
	void *arg;
	/* Runs inside cmpi_progress with the lock held: calls nothing of C-MPI.  `message` lives until it is accepted. */
	struct via_recv *(*arrived)(void *arg, struct cmpi_proc *from, const struct via_envelope *envelope,
	                            struct via_incoming *message);
};

/* In place of the ADI engine; before the first message. */
void via_match_engine(struct cmpi *cmpi, const struct via_engine *engine);
/* CMPI_AGAIN: nothing started.  Not for the self peer. */
int via_match_send(struct cmpi_proc *proc, struct via_send *send);
/* A message that `arrived` answered with NULL has found its receive.  Once. */
void via_match_accept(struct via_incoming *message, struct via_recv *recv);

#endif
