/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers that are wrong, or odd, in a way of their own: what tests of packets in a row and of awaited ones do to those on their way. */
#ifndef TESTS_UNIT_CMPI_SPOIL_H
#define TESTS_UNIT_CMPI_SPOIL_H

#include "cmpi/pm_via/packet.h"

static void spoil_type(struct via_header *h)
{
	h->type = VIA_PKT_COUNT;
}

static void spoil_series(struct via_header *h)
{
	h->type = VIA_PKT_EAGER_NEXT; /* without a beginning */
}

static void spoil_id(struct via_header *h)
{
	h->id++;
}

static void spoil_noop_ack(struct via_header *h)
{
	h->noop_ack++; /* of one that was never sent */
}

#endif
