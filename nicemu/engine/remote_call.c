/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `daemon`, the process's side of the control path: each call of nic.h as words in the port, and the answer back.  How a call is
 * made is in remote.c; the NIC's side of each is in serve.c.
 */
#include "nicemu/engine/remote.h"

#include "nicemu/ctl/ctl.h"

int nic_remote_number(struct nic *nic, enum nic_port_call_op op, uint32_t number)
{
	struct nic_port_args args = { .number = number };

	return nic_remote_call(nic, op, &args);
}

/* A number comes back. */
int nic_remote_created(struct nic *nic, enum nic_port_call_op op, struct nic_port_args *args, uint32_t *out)
{
	int err = nic_remote_call(nic, op, args);

	if (err == NIC_OK)
		*out = args->number;
	return err;
}

/* Of a VI; its peer's attributes come back. */
int nic_remote_vi_attr(struct nic *nic, enum nic_port_call_op op, uint32_t vi, struct nic_vi_attr *out)
{
	struct nic_port_args args = { .number = vi };
	int err = nic_remote_call(nic, op, &args);

	if (err == NIC_OK && out)
		*out = args.vi;
	return err;
}

int nic_remote_vi_set(struct nic *nic, uint32_t vi, const struct nic_vi_attr *attr)
{
	struct nic_port_args args = { .number = vi, .vi = *attr };

	return nic_remote_call(nic, NIC_CALL_VI_SET, &args);
}

int nic_remote_vi_peer(struct nic *nic, uint32_t vi, int *pid, uint32_t *slot)
{
	struct nic_port_args args = { .number = vi };
	int err = nic_remote_call(nic, NIC_CALL_VI_PEER, &args);

	if (err == NIC_OK) {
		*pid = (int)args.handle;
		*slot = args.other;
	}
	return err;
}

int nic_remote_request(struct nic *nic, enum nic_port_call_op op, uint32_t vi, const struct nic_addr *local, const struct nic_addr *remote)
{
	struct nic_port_args args = { .number = vi, .local = *local, .remote = *remote };

	return nic_remote_call(nic, op, &args);
}

int nic_remote_register(struct nic *nic, uint64_t addr, uint64_t len, const struct nic_mem_attr *attr, uint32_t *out)
{
	struct nic_port_args args = { .addr = addr, .len = len, .mem = *attr };

	return nic_remote_created(nic, NIC_CALL_REGISTER, &args, out);
}

int nic_remote_region(struct nic *nic, enum nic_port_call_op op, uint64_t addr, uint32_t handle, struct nic_mem_attr *attr)
{
	struct nic_port_args args = { .addr = addr, .handle = handle, .mem = *attr };
	int err = nic_remote_call(nic, op, &args);

	if (err == NIC_OK)
		*attr = args.mem;
	return err;
}

int nic_remote_listen(struct nic *nic, const struct nic_addr *local, uint32_t *id)
{
	struct nic_port_args args = { .local = *local };

	return nic_remote_created(nic, NIC_CALL_LISTEN_OPEN, &args, id);
}

int nic_remote_arrival(struct nic *nic, uint32_t id, struct nic_addr *client, struct nic_vi_attr *attr)
{
	struct nic_port_args args = { .number = id };
	int err = nic_remote_call(nic, NIC_CALL_LISTEN_POLL, &args);

	if (err == NIC_OK) {
		*client = args.remote;
		*attr = args.vi;
	}
	return err;
}

int nic_remote_accept(struct nic *nic, uint32_t id, uint32_t vi)
{
	struct nic_port_args args = { .number = id, .other = vi };

	return nic_remote_call(nic, NIC_CALL_ACCEPT, &args);
}

int nic_remote_name(struct nic *nic, int32_t ai, int32_t pi, uint32_t group, uint32_t size)
{
	struct nic_port_args args = { .handle = (uint32_t)ai, .tag = (uint32_t)pi, .number = group, .other = size };

	return nic_remote_call(nic, NIC_CALL_NAME, &args);
}
