/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon of a card: one process that runs the NICs of all slots whose processes chose engine `daemon`.  It is started by the first
 * of them (start.c), runs `qnix nic DEVICE` (daemon.c), and ends with the last.
 */
#ifndef NIC_ENGINE_DAEMON_H
#define NIC_ENGINE_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

struct nic_card;
struct nic_card_map;
struct nic_slot;

/* Does the daemon of that life run?  0: no. */
bool nic_daemon_lives(const struct nic_card *card, uint32_t life);
/* There is something for it: after it was published.  fenced: the daemon sees to it that it finds that or is woken; else this does. */
void nic_daemon_wake(struct nic_card_map *map, bool fenced);
/* Waits until the slot is served, by a daemon that is there or is started for it. */
int nic_daemon_start(struct nic_card *card, struct nic_card_map *map, struct nic_slot *slot, uint32_t *life);

/* serve.c: one slot in the daemon, which holds it (NIC_SERVE_HOLDS). */
struct nic_served;
int nic_serve(struct nic_card *card, uint32_t slot, uint32_t life, struct nic_served **out);
enum nic_serving { NIC_SERVE_IDLE, NIC_SERVE_WAITS /* for time to pass */, NIC_SERVE_MOVED, NIC_SERVE_OVER };
enum nic_serving nic_serve_run(struct nic_served *s);
bool nic_serve_wanted(const struct nic_served *s); /* its process has said something that was not looked at */
/* The daemon has slept for so long: what the NIC counts by passes has gone on. */
void nic_serve_slept(struct nic_served *s, uint64_t ns);
bool nic_serve_alive(const struct nic_served *s);
void nic_serve_reap(struct nic_served *s); /* the memory of other processes that are dead */
void nic_serve_end(struct nic_served *s, uint32_t served); /* what the slot's `served` is then */
/* nic.c: the NIC of a slot that another process has registered. */
struct nic;
int nic_attach(struct nic_card *card, uint32_t slot, struct nic **out);
void nic_detach(struct nic *nic);

#endif
