/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of the protocol module as a struct cmpi uses them: read once at open, then forced into ranges in which
 * the credit protocol cannot starve (the inequalities are derived in flow.c).
 */
#ifndef VIA_PARAMS_H
#define VIA_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct via_params {
	uint32_t depth;            /* credited receives per connection */
	uint32_t initial;          /* receives posted before the first packet of a peer, noop_extra included */
	uint32_t noop_extra;       /* uncredited receives; NOOPs unacknowledged, at most */
	uint32_t rendezvous_extra; /* more receives while R3 data is expected */
	uint32_t threshold;        /* receives used up before new ones are posted */
	uint32_t preserve;         /* credit that EAGER and R3 data leave to control packets */
	uint32_t notify;           /* owed credit worth a NOOP to a starved peer */
	uint32_t dynamic;          /* owed credit worth a NOOP to any peer */
	uint32_t backlog_max;      /* active messages waiting per connection */
	int64_t vbuf_max;          /* -1: no limit */
	bool connect_all;
	int protocol;              /* enum via_protocol: rendezvous asked for */
	bool rather_sends;         /* but R3 of what the NIC would rather send */
	size_t rendezvous_threshold, r3_threshold, eager_window;
	uint32_t dreg_entries;
	bool lazy_deregister;
	uint32_t connect_timeout;  /* seconds, of connect_all */
};

/* From the parameters of the stack, forced into range. */
void via_params_read(struct via_params *out);
/* Forces what it is given into range. */
void via_params_clip(struct via_params *params);

#endif
