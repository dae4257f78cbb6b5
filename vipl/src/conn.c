/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections by the client/server model, and disconnecting.  The peer model is in peer.c.
 *
 * The NIC does the hand-shake and never blocks; the blocking calls here look, drop the lock, pass time, and look again.
 * When the time is over an offer is withdrawn; if the partner was faster, its answer is taken after all.
 */
#include <string.h>

#include "vipl/src/object.h"
#include "vipl/src/wait.h"

void vipl_conn_release(void *conn)
{
	vipl_object_destroy(VIPL_CONN, conn);
}

/* ---- server ---- */

struct listening {
	VIP_NIC_HANDLE nic;
	struct vipl_conn *conn; /* not published: ours alone */
	struct nic_addr client;
	struct nic_vi_attr attr;
	VIP_CONN_HANDLE handle;
};

static VIP_RETURN listen_open(VIP_NIC_HANDLE handle, const VIP_NET_ADDRESS *address, struct listening *l)
{
	struct vipl_nic *nic = vipl_nic_enter(handle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_addr local;

	if (!nic)
		return VIP_INVALID_PARAMETER;
	l->nic = handle;
	/* Another host's address would wait for ever. */
	if (vipl_address_read(nic, address, &local) && !memcmp(local.host, nic->attr.addr, NIC_ADDR_LEN)) {
		l->conn = vipl_object_create(VIPL_CONN, nic);
		result = l->conn ? vipl_return(nic_listen_open(nic->hw, &local, &l->conn->id)) : VIP_ERROR_RESOURCE;
	}
	vipl_leave(nic);
	return result;
}

/* One look; `last` withdraws the offer when nobody has come: then VIP_TIMEOUT, or VIP_NOT_DONE when somebody just did. */
static VIP_RETURN listen_look(struct listening *l, bool last)
{
	struct vipl_nic *nic = vipl_nic_enter(l->nic);
	VIP_RETURN result;

	if (!nic)
		return VIP_INVALID_PARAMETER; /* closed meanwhile, and the offer with it */
	nic_poll(nic->hw);
	result = vipl_return(nic_listen_poll(nic->hw, l->conn->id, &l->client, &l->attr));
	if (result == VIP_SUCCESS)
		l->handle = (VIP_CONN_HANDLE)vipl_object_publish(VIPL_CONN, l->conn);
	else if (result == VIP_NOT_DONE && last && nic_listen_close(nic->hw, l->conn->id) == NIC_OK)
		result = VIP_TIMEOUT;
	vipl_leave(nic);
	return result;
}

static VIP_RETURN listen_wait(struct listening *l, VIP_ULONG timeout)
{
	struct vipl_wait wait;
	bool last = false;
	VIP_RETURN result;

	vipl_wait_init(&wait, timeout, l->nic);
	while ((result = listen_look(l, last)) == VIP_NOT_DONE)
		last = !vipl_wait_step(&wait);
	return result;
}

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteViAttribs, VIP_CONN_HANDLE *ConnHandle)
{
	struct listening l = { .conn = NULL };
	VIP_RETURN result;

	if (!RemoteAddr || !RemoteViAttribs || !ConnHandle)
		return VIP_INVALID_PARAMETER;
	result = listen_open(NicHandle, LocalAddr, &l);
	if (result == VIP_SUCCESS)
		result = listen_wait(&l, Timeout);
	if (result == VIP_SUCCESS) {
		vipl_address_write(&l.client, RemoteAddr);
		vipl_vi_attr_write(&l.attr, NULL, RemoteViAttribs);
		*ConnHandle = l.handle;
	} else if (l.conn) {
		vipl_conn_release(l.conn);
	}
	return result;
}

/* The request stays open unless it was accepted or the client has gone. */
static VIP_RETURN accept_on(struct vipl_nic *nic, struct vipl_conn *conn, const struct vipl_vi *vi)
{
	enum nic_vi_state state;
	struct nic_vi_attr attr;
	int err;

	nic_poll(nic->hw);
	if (nic_vi_query(nic->hw, vi->number, &state, &attr) != NIC_OK || state != NIC_VI_IDLE)
		return VIP_INVALID_STATE;
	err = nic_accept(nic->hw, conn->id, vi->number);
	if (err == NIC_OK || err == NIC_STATE)
		vipl_conn_release(conn);
	return err == NIC_STATE ? VIP_TIMEOUT : vipl_return(err);
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle)
{
	struct vipl_conn *conn = vipl_conn_enter(ConnHandle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct vipl_nic *nic;
	struct vipl_vi *vi;

	if (!conn)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&conn->object);
	vi = vipl_vi_lookup(ViHandle);
	if (vi && vipl_nic_of(&vi->object) == nic)
		result = accept_on(nic, conn, vi);
	vipl_leave(nic);
	return result;
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle)
{
	struct vipl_conn *conn = vipl_conn_enter(ConnHandle);
	struct vipl_nic *nic;

	if (!conn)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&conn->object);
	nic_reject(nic->hw, conn->id); /* a client that has gone needs no answer */
	vipl_conn_release(conn);
	vipl_leave(nic);
	return VIP_SUCCESS;
}

/* ---- client ---- */

static VIP_RETURN request(VIP_VI_HANDLE handle, const VIP_NET_ADDRESS *local_in, const VIP_NET_ADDRESS *remote_in)
{
	struct vipl_vi *vi = vipl_vi_enter(handle);
	VIP_RETURN result = VIP_INVALID_PARAMETER;
	struct nic_addr local, remote;
	struct vipl_nic *nic;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic = vipl_nic_of(&vi->object);
	if (vipl_address_read(nic, local_in, &local) && vipl_address_read(NULL, remote_in, &remote)) {
		nic_poll(nic->hw);
		result = vipl_return(nic_connect_request(nic->hw, vi->number, &local, &remote));
	}
	vipl_leave(nic);
	return result;
}

/* As listen_look. */
static VIP_RETURN request_look(VIP_VI_HANDLE handle, bool last, struct nic_vi_attr *attr)
{
	struct vipl_vi *vi = vipl_vi_enter(handle);
	VIP_RETURN result;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	nic_poll(vi->hw);
	result = vipl_return(nic_connect_poll(vi->hw, vi->number, attr));
	if (result == VIP_NOT_DONE && last && nic_connect_cancel(vi->hw, vi->number) == NIC_OK)
		result = VIP_TIMEOUT;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr, VIP_NET_ADDRESS *RemoteAddr,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES *RemoteViAttribs)
{
	struct nic_vi_attr attr;
	struct vipl_wait wait;
	bool last = false;
	VIP_RETURN result;

	if (!Timeout || !RemoteViAttribs)
		return VIP_INVALID_PARAMETER;
	result = request(ViHandle, LocalAddr, RemoteAddr);
	if (result != VIP_SUCCESS)
		return result;
	vipl_wait_init(&wait, Timeout, vipl_nic_handle_of((struct vipl_object *)vipl_vi_lookup(ViHandle)));
	while ((result = request_look(ViHandle, last, &attr)) == VIP_NOT_DONE)
		last = !vipl_wait_step(&wait);
	if (result == VIP_SUCCESS)
		vipl_vi_attr_write(&attr, NULL, RemoteViAttribs);
	return result;
}

/* ---- both ---- */

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (!vi)
		return VIP_INVALID_PARAMETER;
	result = vipl_return(nic_disconnect(vi->hw, vi->number));
	if (result == VIP_SUCCESS) {
		vi->peer = false;
		vi->send.settled = vi->send.tail; /* everything was flushed */
		vi->recv.settled = vi->recv.tail;
	}
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}
