/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `daemon`, the process's side: its NIC is in another process, and nic.h's calls go through the slot's port (mem/port.h).
 * Not the daemon, which is serve.c and daemon.c.
 *
 * The hot calls find their way by the post strategy and the engine of the handle, as they do anyway; the calls of the control
 * path ask for nic->remote and come here.
 */
#ifndef NIC_ENGINE_REMOTE_H
#define NIC_ENGINE_REMOTE_H

#include "nicemu/mem/port.h"

struct nic;
struct nic_remote;

int nic_remote_open(struct nic *nic);   /* the slot is registered; starts the daemon if there is none */
void nic_remote_close(struct nic *nic); /* and the slot is de-registered */
bool nic_remote_lost(const struct nic *nic);
bool nic_remote_arrived(const struct nic *nic); /* something that poll will take */

int nic_remote_call(struct nic *nic, enum nic_port_call_op op, struct nic_port_args *args);
int nic_remote_vi_create(struct nic *nic, const struct nic_vi_args *args, uint32_t *out);
int nic_remote_vi_query(const struct nic *nic, uint32_t vi, enum nic_vi_state *state, struct nic_vi_attr *attr);
int nic_remote_vi_destroy(struct nic *nic, uint32_t vi);
int nic_remote_disconnect(struct nic *nic, uint32_t vi);

/* The rest of the control path: arguments into the port's words, and back (remote_call.c). */
int nic_remote_number(struct nic *nic, enum nic_port_call_op op, uint32_t number);
int nic_remote_created(struct nic *nic, enum nic_port_call_op op, struct nic_port_args *args, uint32_t *out);
int nic_remote_vi_attr(struct nic *nic, enum nic_port_call_op op, uint32_t vi, struct nic_vi_attr *out);
int nic_remote_vi_set(struct nic *nic, uint32_t vi, const struct nic_vi_attr *attr);
int nic_remote_vi_peer(struct nic *nic, uint32_t vi, int *pid, uint32_t *slot);
int nic_remote_request(struct nic *nic, enum nic_port_call_op op, uint32_t vi, const struct nic_addr *local, const struct nic_addr *remote);
int nic_remote_register(struct nic *nic, uint64_t addr, uint64_t len, const struct nic_mem_attr *attr, uint32_t *out);
int nic_remote_region(struct nic *nic, enum nic_port_call_op op, uint64_t addr, uint32_t handle, struct nic_mem_attr *attr);
int nic_remote_listen(struct nic *nic, const struct nic_addr *local, uint32_t *id);
int nic_remote_arrival(struct nic *nic, uint32_t id, struct nic_addr *client, struct nic_vi_attr *attr);
int nic_remote_accept(struct nic *nic, uint32_t id, uint32_t vi);
int nic_remote_name(struct nic *nic, int32_t ai, int32_t pi, uint32_t group, uint32_t size);

#endif
