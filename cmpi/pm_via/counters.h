/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of the protocol module, declared once: C(member, name, help).  They live in the NIC slot beside the NIC's
 * own, so `qnix stat` reads them from outside.  Cells are plain words written by this process only.
 */
#ifndef VIA_COUNTERS_H
#define VIA_COUNTERS_H

#include <stdint.h>

#define VIA_COUNTER_LIST(C) \
	C(am, "cmpi_am", "Active messages sent") \
	C(am_received, "cmpi_am_received", "Active messages received") \
	C(eager, "cmpi_eager", "Matched messages sent eagerly") \
	C(eager_series, "cmpi_eager_series", "of them, in several packets: longer ones that are better sent, one at a time") \
	C(sends_queued, "cmpi_sends_queued", "Matched messages that waited in the send queue of their process: no credit, no connection, or others before them") \
	C(credit_stalls, "cmpi_credit_stalls", "Packets that waited in the backlog for credit or a connection; an active message without credit is refused instead: cmpi_again") \
	C(backlog_max, "cmpi_backlog_max", "Longest backlog of one connection, packets") \
	C(noops_sent, "cmpi_noops_sent", "Credit messages (NOOPs) sent") \
	C(noops_received, "cmpi_noops_received", "Credit messages (NOOPs) received") \
	C(noops_held, "cmpi_noops_held", "Times a NOOP was due but as many as allowed were unacknowledged") \
	C(rndv_rget, "cmpi_rndv_rget", "Rendezvous sent whose receiver reads (RGET)") \
	C(rndv_rput, "cmpi_rndv_rput", "Rendezvous sent whose sender writes (RPUT)") \
	C(rndv_r3, "cmpi_rndv_r3", "Rendezvous sent through packets (R3)") \
	C(rndv_downgraded, "cmpi_rndv_downgraded", "of them, meant to go as RGET or RPUT, but memory could not be registered") \
	C(puts, "cmpi_puts", "Remote writes") \
	C(put_bytes, "cmpi_put_bytes", "Bytes of remote writes") \
	C(gets, "cmpi_gets", "Remote reads") \
	C(get_bytes, "cmpi_get_bytes", "Bytes of remote reads") \
	C(atomics, "cmpi_atomics", "Remote atomics asked for") \
	C(keys_asked, "cmpi_keys_asked", "Keys asked of their owner, because those at hand were refused") \
	C(dreg_hits, "cmpi_dreg_hits", "Registrations found in the registration cache") \
	C(dreg_misses, "cmpi_dreg_misses", "Registrations made") \
	C(dreg_evictions, "cmpi_dreg_evictions", "Registrations dropped to make room") \
	C(vbufs, "cmpi_vbufs", "vbufs allocated") \
	C(again, "cmpi_again", "Calls refused for now: no credit, vbuf or buffer") \
	C(connections, "cmpi_connections", "Connections made") \
	C(peers_lost, "cmpi_peers_lost", "Connections lost")

struct via_counters {
#define C(member, name, help) uint64_t *member;
	VIA_COUNTER_LIST(C)
#undef C
};

#endif
