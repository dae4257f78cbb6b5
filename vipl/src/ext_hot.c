/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extensions that a program calls all the time: polling, pool buffers, the epoch, the word at a VI.
 */
#include <string.h>

#include "vipl/src/cq.h"
#include "vipl/src/queue.h"

int VipxPoll(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	int moved;

	if (__builtin_expect(!nic, 0))
		return 0;
	moved = nic_poll(nic->hw);
	vipl_leave(nic);
	return moved;
}

_Static_assert(sizeof(VIPX_SHORT) == sizeof(struct nic_short) && offsetof(VIPX_SHORT, A) == offsetof(struct nic_short, a) &&
               offsetof(VIPX_SHORT, BLength) == offsetof(struct nic_short, blen) && VIPX_SHORT_MAX == NIC_INLINE_MAX, "the same");

static __attribute__((noinline)) VIP_RETURN send_short(VIP_VI_HANDLE ViHandle, const VIPX_SHORT *Message)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	int err;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	err = Message ? nic_send_short(vi->hw, vi->number, (const struct nic_short *)Message) : NIC_PARAMETER;
	vipl_leave(vipl_nic_of(&vi->object));
	return __builtin_expect(err == NIC_OK, 1) ? VIP_SUCCESS : err == NIC_NOT_DONE ? VIP_NOT_DONE : VIP_INVALID_PARAMETER;
}

_Static_assert((int)NIC_OK == (int)VIP_SUCCESS && (int)NIC_NOT_DONE == (int)VIP_NOT_DONE, "the NIC's answer is ours");

/* Without a lock it ends in the NIC.  That notices no errors here, so there are none to report. */
VIP_RETURN VipxSendShort(VIP_VI_HANDLE ViHandle, const VIPX_SHORT *Message)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Message, 0))
		return send_short(ViHandle, Message);
	return (VIP_RETURN)nic_send_short(vi->hw, vi->number, (const struct nic_short *)Message);
}

static inline VIP_RETURN send_given(const struct vipl_vi *vi, const void *data, VIP_ULONG length)
{
	return (VIP_RETURN)nic_send_given(vi->hw, vi->number, data, (uint32_t)(length < UINT32_MAX ? length : UINT32_MAX));
}

static __attribute__((noinline)) VIP_RETURN send_buffer(VIP_VI_HANDLE ViHandle, VIP_PVOID Data, VIP_ULONG Length)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = send_given(vi, Data, Length);
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

/* As VipxSendShort. */
VIP_RETURN VipxSendBuffer(VIP_VI_HANDLE ViHandle, VIP_PVOID Data, VIP_ULONG Length)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi, 0))
		return send_buffer(ViHandle, Data, Length);
	return send_given(vi, Data, Length);
}

_Static_assert(sizeof(VIPX_RDMA) == sizeof(struct nic_rdma) && offsetof(VIPX_RDMA, LocalHandle) == offsetof(struct nic_rdma, local_handle) &&
               offsetof(VIPX_RDMA, Operation) == offsetof(struct nic_rdma, op) && VIP_CONTROL_OP_RDMAWRITE == NIC_CTL_RDMA_WRITE &&
               VIP_CONTROL_OP_RDMAREAD == NIC_CTL_RDMA_READ, "the same");

static inline bool is_rdma(const VIPX_RDMA *rdma)
{
	return rdma && (rdma->Operation == VIP_CONTROL_OP_RDMAWRITE || rdma->Operation == VIP_CONTROL_OP_RDMAREAD);
}

static __attribute__((noinline)) VIP_RETURN rdma_now(VIP_VI_HANDLE ViHandle, const VIPX_RDMA *Rdma)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = is_rdma(Rdma) ? (VIP_RETURN)nic_rdma_now(vi->hw, vi->number, (const struct nic_rdma *)Rdma) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

/* As VipxSendShort. */
VIP_RETURN VipxRdmaNow(VIP_VI_HANDLE ViHandle, const VIPX_RDMA *Rdma)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !is_rdma(Rdma), 0))
		return rdma_now(ViHandle, Rdma);
	return (VIP_RETURN)nic_rdma_now(vi->hw, vi->number, (const struct nic_rdma *)Rdma);
}

_Static_assert(sizeof(VIPX_POSTED) == sizeof(struct nic_posted) && offsetof(VIPX_POSTED, Remote) == offsetof(struct nic_posted, remote) &&
               offsetof(VIPX_POSTED, RemoteHandle) == offsetof(struct nic_posted, remote_handle) &&
               offsetof(VIPX_POSTED, Length) == offsetof(struct nic_posted, length) && (int)VIPX_POSTED_MAX == (int)NIC_POSTED_MAX, "the same");

static __attribute__((noinline)) VIP_RETURN rdma_post(VIP_VI_HANDLE ViHandle, const VIPX_POSTED *Write)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = Write ? (VIP_RETURN)nic_rdma_post(vi->hw, vi->number, (const struct nic_posted *)Write) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

/* As VipxSendShort. */
VIP_RETURN VipxRdmaPost(VIP_VI_HANDLE ViHandle, const VIPX_POSTED *Write)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Write, 0))
		return rdma_post(ViHandle, Write);
	return (VIP_RETURN)nic_rdma_post(vi->hw, vi->number, (const struct nic_posted *)Write);
}

VIP_RETURN VipxPostedDone(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_RETURN result;

	if (__builtin_expect(!nic, 0))
		return VIP_INVALID_PARAMETER;
	result = (VIP_RETURN)nic_rdma_posted(nic->hw);
	vipl_leave(nic);
	return result;
}

_Static_assert(sizeof(VIPX_FETCH) == sizeof(struct nic_fetch) && offsetof(VIPX_FETCH, Remote) == offsetof(struct nic_fetch, remote) &&
               offsetof(VIPX_FETCH, RemoteHandle) == offsetof(struct nic_fetch, remote_handle) &&
               offsetof(VIPX_FETCH, Length) == offsetof(struct nic_fetch, length) && (int)VIPX_FETCH_MAX == (int)NIC_FETCH_MAX, "the same");

static __attribute__((noinline)) VIP_RETURN rdma_fetch(VIP_VI_HANDLE ViHandle, const VIPX_FETCH *Read)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = Read ? (VIP_RETURN)nic_rdma_fetch(vi->hw, vi->number, (const struct nic_fetch *)Read) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

/* As VipxSendShort. */
VIP_RETURN VipxRdmaFetch(VIP_VI_HANDLE ViHandle, const VIPX_FETCH *Read)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Read, 0))
		return rdma_fetch(ViHandle, Read);
	return (VIP_RETURN)nic_rdma_fetch(vi->hw, vi->number, (const struct nic_fetch *)Read);
}

VIP_UINT32 VipxFetched(VIP_VI_HANDLE ViHandle, VIP_UINT32 *Status)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_UINT32 n;

	if (__builtin_expect(!vi, 0))
		return 0;
	n = nic_rdma_fetched(vi->hw, vi->number, Status);
	vipl_leave(vipl_nic_of(&vi->object));
	return n;
}

_Static_assert(sizeof(((VIPX_ARRIVAL *)0)->Data) >= NIC_INLINE_MAX, "room for a message by value");
_Static_assert(offsetof(VIPX_ARRIVAL, Data) % 16 == 0, "moves of 16 bytes do not end behind a line");
_Static_assert(offsetof(VIPX_ARRIVAL, ViHandle) == offsetof(struct nic_taken, cookie) &&
               offsetof(VIPX_ARRIVAL, Message) == offsetof(struct nic_taken, data) &&
               offsetof(VIPX_ARRIVAL, Buffer) == offsetof(struct nic_taken, buffer) &&
               offsetof(VIPX_ARRIVAL, Length) == offsetof(struct nic_taken, length) &&
               offsetof(VIPX_ARRIVAL, Surplus) == offsetof(struct nic_taken, surplus), "the NIC fills in the first five");

/* There are entries in the queue: the oldest one of a VI that still exists, and its descriptor. */
static __attribute__((noinline)) VIP_RETURN take_entry(struct vipl_cq *cq, VIPX_ARRIVAL *arrival)
{
	bool recv = true;
	struct vipl_vi *vi = vipl_cq_next(cq, &recv);

	if (!vi)
		return VIP_NOT_DONE;
	arrival->ViHandle = (VIP_VI_HANDLE)vipl_handle_of(&vi->object);
	arrival->User = vi->user;
	arrival->RecvQueue = recv;
	return vipl_queue_take(vi, recv ? &vi->recv : &vi->send, &arrival->Descriptor);
}

/* The NIC is looked at only when the queue is empty; what it has may come by value. */
static inline VIP_RETURN take_next(struct vipl_cq *cq, VIPX_ARRIVAL *arrival)
{
	struct vipl_vi *vi;

	if (__builtin_expect(nic_cq_any(&cq->ring), 0))
		return take_entry(cq, arrival);
	arrival->Message = arrival->Data;
	arrival->Length = nic_take(cq->hw, &cq->ring, (struct nic_taken *)(void *)arrival);
	if (!arrival->Length)
		return nic_cq_any(&cq->ring) ? take_entry(cq, arrival) : VIP_NOT_DONE;
	vi = vipl_vi_lookup(arrival->ViHandle);
	arrival->User = __builtin_expect(vi != NULL, 1) ? vi->user : NULL;
	arrival->RecvQueue = VIP_TRUE;
	arrival->Descriptor = NULL;
	return VIP_SUCCESS;
}

VIP_RETURN VipxCQTake(VIP_CQ_HANDLE CQHandle, VIPX_ARRIVAL *Arrival)
{
	struct vipl_cq *cq = vipl_cq_enter(CQHandle);
	VIP_RETURN result;

	if (__builtin_expect(!cq, 0))
		return VIP_INVALID_PARAMETER;
	result = __builtin_expect(Arrival != NULL, 1) ? take_next(cq, Arrival) : VIP_INVALID_PARAMETER;
	vipl_leave(vipl_nic_of(&cq->object));
	return result;
}

/* Of a VI whose receives have a completion queue. */
static inline VIP_RETURN take_of(struct vipl_vi *vi, VIPX_ARRIVAL *arrival)
{
	arrival->Message = arrival->Data;
	return (VIP_RETURN)nic_take_of(vi->hw, vi->number, &vi->recv.cq->ring, (struct nic_taken *)(void *)arrival);
}

static __attribute__((noinline)) VIP_RETURN recv_take(VIP_VI_HANDLE ViHandle, VIPX_ARRIVAL *Arrival)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = !Arrival ? VIP_INVALID_PARAMETER : vi->recv.cq ? take_of(vi, Arrival) : VIP_NOT_DONE;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

/* As VipxSendShort. */
VIP_RETURN VipxRecvTake(VIP_VI_HANDLE ViHandle, VIPX_ARRIVAL *Arrival)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Arrival || !vi->recv.cq, 0))
		return recv_take(ViHandle, Arrival);
	return take_of(vi, Arrival);
}

_Static_assert(sizeof(VIPX_EXPECTED) == sizeof(struct nic_expected) && offsetof(VIPX_EXPECTED, Mask) == offsetof(struct nic_expected, mask) &&
               offsetof(VIPX_EXPECTED, Length) == offsetof(struct nic_expected, length) && offsetof(VIPX_EXPECTED, Key) == offsetof(struct nic_expected, key) &&
               offsetof(VIPX_EXPECTED, To) == offsetof(struct nic_expected, to) && offsetof(VIPX_EXPECTED, Room) == offsetof(struct nic_expected, room) &&
               offsetof(VIPX_EXPECTED, Word) == offsetof(struct nic_expected, word), "the same");

static inline VIP_RETURN expected(struct vipl_vi *vi, VIPX_EXPECTED *message, VIP_ULONG looks)
{
	return (VIP_RETURN)nic_take_expected(vi->hw, vi->number, &vi->recv.cq->ring, (struct nic_expected *)(void *)message,
	                                     looks < UINT32_MAX ? (uint32_t)looks : UINT32_MAX);
}

static __attribute__((noinline)) VIP_RETURN recv_expected(VIP_VI_HANDLE ViHandle, VIPX_EXPECTED *Expected, VIP_ULONG Looks)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_RETURN result;

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	result = !Expected || !Looks ? VIP_INVALID_PARAMETER : vi->recv.cq ? expected(vi, Expected, Looks) : VIP_NOT_DONE;
	vipl_leave(vipl_nic_of(&vi->object));
	return result;
}

/* As VipxSendShort. */
VIP_RETURN VipxRecvExpected(VIP_VI_HANDLE ViHandle, VIPX_EXPECTED *Expected, VIP_ULONG Looks)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Expected || !Looks || !vi->recv.cq, 0))
		return recv_expected(ViHandle, Expected, Looks);
	return expected(vi, Expected, Looks);
}

_Static_assert(sizeof(VIPX_BRIEF) == sizeof(struct nic_brief) && offsetof(VIPX_BRIEF, Data) == offsetof(struct nic_brief, data) &&
               VIPX_BRIEF_MAX == NIC_BRIEF, "the same");

static inline VIP_ULONG take_row(struct vipl_vi *vi, VIPX_BRIEF *messages, VIP_ULONG most)
{
	return nic_take_row(vi->hw, vi->number, &vi->recv.cq->ring, (struct nic_brief *)(void *)messages,
	                    most < UINT32_MAX ? (uint32_t)most : UINT32_MAX);
}

static __attribute__((noinline)) VIP_ULONG recv_take_row(VIP_VI_HANDLE ViHandle, VIPX_BRIEF *Messages, VIP_ULONG Most)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_ULONG n;

	if (__builtin_expect(!vi, 0))
		return 0;
	n = Messages && vi->recv.cq ? take_row(vi, Messages, Most) : 0;
	vipl_leave(vipl_nic_of(&vi->object));
	return n;
}

/* As VipxSendShort. */
VIP_ULONG VipxRecvTakeRow(VIP_VI_HANDLE ViHandle, VIPX_BRIEF *Messages, VIP_ULONG Most)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Messages || !vi->recv.cq, 0))
		return recv_take_row(ViHandle, Messages, Most);
	return take_row(vi, Messages, Most);
}

_Static_assert(sizeof(VIPX_MESSAGE) == sizeof(struct nic_message) && offsetof(VIPX_MESSAGE, Length) == offsetof(struct nic_message, length) &&
               offsetof(VIPX_MESSAGE, Surplus) == offsetof(struct nic_message, surplus), "the same");

static inline VIP_ULONG take_buffers(struct vipl_vi *vi, VIPX_MESSAGE *messages, VIP_ULONG most, VIP_ULONG longest)
{
	return nic_take_buffers(vi->hw, vi->number, &vi->recv.cq->ring, (struct nic_message *)(void *)messages,
	                        most < UINT32_MAX ? (uint32_t)most : UINT32_MAX, longest < UINT32_MAX ? (uint32_t)longest : UINT32_MAX);
}

static __attribute__((noinline)) VIP_ULONG recv_take_buffers(VIP_VI_HANDLE ViHandle, VIPX_MESSAGE *Messages, VIP_ULONG Most, VIP_ULONG Longest)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);
	VIP_ULONG n;

	if (__builtin_expect(!vi, 0))
		return 0;
	n = Messages && vi->recv.cq ? take_buffers(vi, Messages, Most, Longest) : 0;
	vipl_leave(vipl_nic_of(&vi->object));
	return n;
}

/* As VipxSendShort. */
VIP_ULONG VipxRecvTakeBuffers(VIP_VI_HANDLE ViHandle, VIPX_MESSAGE *Messages, VIP_ULONG Most, VIP_ULONG Longest)
{
	struct vipl_vi *vi = vipl_vi_unlocked(ViHandle);

	if (__builtin_expect(!vi || !Messages || !vi->recv.cq, 0))
		return recv_take_buffers(ViHandle, Messages, Most, Longest);
	return take_buffers(vi, Messages, Most, Longest);
}

static __attribute__((noinline)) VIP_PVOID take_buffer(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	void *buffer;

	if (__builtin_expect(!nic, 0))
		return NULL;
	buffer = nic_buf_take(nic->hw);
	vipl_leave(nic);
	return buffer;
}

/* As VipxSendShort. */
VIP_PVOID VipxTakeBuffer(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_unlocked(NicHandle);

	if (__builtin_expect(!nic, 0))
		return take_buffer(NicHandle);
	return nic_buf_take(nic->hw);
}

static __attribute__((noinline)) void give_buffer(VIP_NIC_HANDLE NicHandle, VIP_PVOID Buffer)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (__builtin_expect(!nic, 0))
		return;
	if (Buffer)
		nic_buf_give(nic->hw, Buffer);
	vipl_leave(nic);
}

/* As VipxSendShort. */
void VipxGiveBuffer(VIP_NIC_HANDLE NicHandle, VIP_PVOID Buffer)
{
	struct vipl_nic *nic = vipl_nic_unlocked(NicHandle);

	if (__builtin_expect(!nic || !Buffer, 0))
		give_buffer(NicHandle, Buffer);
	else
		nic_buf_give(nic->hw, Buffer);
}

static inline void buffer_read(struct vipl_nic *nic, const void *data, VIP_ULONG length)
{
	nic_buf_read(nic->hw, data, length < UINT32_MAX ? (uint32_t)length : UINT32_MAX);
}

static __attribute__((noinline)) void locked_buffer_read(VIP_NIC_HANDLE NicHandle, const void *data, VIP_ULONG length)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (__builtin_expect(!nic, 0))
		return;
	if (data)
		buffer_read(nic, data, length);
	vipl_leave(nic);
}

/* As VipxSendShort. */
void VipxBufferRead(VIP_NIC_HANDLE NicHandle, VIP_PVOID Data, VIP_ULONG Length)
{
	struct vipl_nic *nic = vipl_nic_unlocked(NicHandle);

	if (__builtin_expect(!nic || !Data, 0))
		locked_buffer_read(NicHandle, Data, Length);
	else
		buffer_read(nic, Data, Length);
}

static __attribute__((noinline)) void locked_buffer_copy(VIP_NIC_HANDLE NicHandle, void *to, const void *data, uint32_t length)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (__builtin_expect(!nic, 0))
		return;
	nic_buf_copy(nic->hw, to, data, length);
	vipl_leave(nic);
}

/* As VipxSendShort. */
void VipxBufferCopy(VIP_NIC_HANDLE NicHandle, VIP_PVOID To, VIP_PVOID Data, VIP_ULONG Length)
{
	struct vipl_nic *nic = vipl_nic_unlocked(NicHandle);

	if (__builtin_expect(!To || !Data, 0))
		return;
	if (__builtin_expect(Length > VIPX_BUFFER_SIZE, 0))
		memcpy(To, Data, Length);
	else if (__builtin_expect(!nic, 0))
		locked_buffer_copy(NicHandle, To, Data, (uint32_t)Length);
	else
		nic_buf_copy(nic->hw, To, Data, (uint32_t)Length);
}

static inline void give_row(struct vipl_nic *nic, const VIPX_MESSAGE *messages, VIP_ULONG count)
{
	nic_buf_give_row(nic->hw, (const struct nic_message *)(const void *)messages, count < UINT32_MAX ? (uint32_t)count : UINT32_MAX);
}

static __attribute__((noinline)) void give_buffers(VIP_NIC_HANDLE NicHandle, const VIPX_MESSAGE *Messages, VIP_ULONG Count)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);

	if (__builtin_expect(!nic, 0))
		return;
	if (Messages)
		give_row(nic, Messages, Count);
	vipl_leave(nic);
}

/* As VipxSendShort. */
void VipxGiveBuffers(VIP_NIC_HANDLE NicHandle, const VIPX_MESSAGE *Messages, VIP_ULONG Count)
{
	struct vipl_nic *nic = vipl_nic_unlocked(NicHandle);

	if (__builtin_expect(!nic || !Messages, 0))
		give_buffers(NicHandle, Messages, Count);
	else
		give_row(nic, Messages, Count);
}

VIP_ULONG VipxConnectEpoch(VIP_NIC_HANDLE NicHandle)
{
	struct vipl_nic *nic = vipl_nic_enter(NicHandle);
	VIP_ULONG epoch;

	if (__builtin_expect(!nic, 0))
		return 0;
	epoch = nic_peer_epoch(nic->hw);
	vipl_leave(nic);
	return epoch;
}

VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle)
{
	struct vipl_vi *vi = vipl_vi_lookup(ViHandle);

	return __builtin_expect(vi != NULL, 1) ? vi->user : NULL;
}

VIP_RETURN VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData)
{
	struct vipl_vi *vi = vipl_vi_enter(ViHandle);

	if (__builtin_expect(!vi, 0))
		return VIP_INVALID_PARAMETER;
	vi->user = UserData;
	vipl_leave(vipl_nic_of(&vi->object));
	return VIP_SUCCESS;
}
