/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The VI Provider Library, VIPL 1.0: types, constants and the 41 calls; then this provider's extensions (Vipx*).
 * Compiles alone as C99 and as C++.  No behaviour here; man pages: vipl(7), VipNic(3), VipConnect(3), VipQueue(3),
 * VipCQ(3), VipMemory(3), VipNotify(3), VipNS(3), Vipx(3).
 *
 * Programs written for other headers of VIPL 1.0 compile unchanged: VIPL095 may be defined or not, the return codes are
 * enumerators, the structures have the layout of the specification.  VIPL_NO_EXTENSIONS hides everything it does not name.
 *
 * Every call validates its handles: a wrong, stale or NULL handle or pointer gives VIP_INVALID_PARAMETER.
 * Output parameters are written only when the call says so.  Timeouts are milliseconds.
 */
#ifndef _VIPL_H
#define _VIPL_H
#ifndef _VIPL_
#define _VIPL_
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif

/* ---- basic types ------------------------------------------------------------------------------------------------- */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef uint64_t VIP_UINT64;
typedef uint32_t VIP_UINT32;
typedef uint16_t VIP_UINT16;
typedef uint8_t VIP_UINT8;

#define VIP_TRUE 1
#define VIP_FALSE 0
#define VIP_INFINITE (~(VIP_ULONG)0)

typedef VIP_PVOID VIP_QOS; /* pass NULL */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE; /* never 0 */

typedef union {
	VIP_UINT64 AddressBits;
	VIP_PVOID Address;
} VIP_PVOID64;

typedef VIP_USHORT VIP_RELIABILITY_LEVEL; /* one bit, or a mask */
#define VIP_SERVICE_UNRELIABLE 0x01
#define VIP_SERVICE_RELIABLE_DELIVERY 0x02
#define VIP_SERVICE_RELIABLE_RECEPTION 0x04

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef enum {
	VIP_SUCCESS,
	VIP_NOT_DONE,
	VIP_INVALID_PARAMETER,
	VIP_ERROR_RESOURCE,
	VIP_TIMEOUT,
	VIP_REJECT,
	VIP_INVALID_RELIABILITY_LEVEL,
	VIP_INVALID_MTU,
	VIP_INVALID_QOS,
	VIP_INVALID_PTAG,
	VIP_INVALID_RDMAREAD,
	VIP_DESCRIPTOR_ERROR,
	VIP_INVALID_STATE,
	VIP_ERROR_NAMESERVICE,
	VIP_NO_MATCH,
	VIP_NOT_REACHABLE,
	VIP_ERROR_NOT_SUPPORTED,
	VIP_ERROR /* some headers have it; never returned here */
} VIP_RETURN;
/* Seen by the preprocessor, too: programs define it themselves when it seems to be missing. */
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED

typedef enum {
	VIP_STATE_IDLE,
	VIP_STATE_CONNECTED,
	VIP_STATE_CONNECT_PENDING,
	VIP_STATE_ERROR
} VIP_VI_STATE;

typedef enum {
	VIP_ERROR_POST_DESC,
	VIP_ERROR_CONN_LOST,
	VIP_ERROR_RECVQ_EMPTY,
	VIP_ERROR_VI_OVERRUN,
	VIP_ERROR_RDMAW_PROT,
	VIP_ERROR_RDMAW_DATA,
	VIP_ERROR_RDMAW_ABORT,
	VIP_ERROR_RDMAR_PROT,
	VIP_ERROR_COMP_PROT,
	VIP_ERROR_RDMA_TRANSPORT,
	VIP_ERROR_CATASTROPHIC
} VIP_ERROR_CODE;

typedef enum {
	VIP_RESOURCE_NIC,
	VIP_RESOURCE_VI,
	VIP_RESOURCE_CQ,
	VIP_RESOURCE_DESCRIPTOR
} VIP_RESOURCE_CODE;

/* ---- structures -------------------------------------------------------------------------------------------------- */

/* HostAddressLen bytes of host address, directly followed by DiscriminatorLen bytes of discriminator. */
typedef struct {
	VIP_UINT16 HostAddressLen;
	VIP_UINT16 DiscriminatorLen;
	VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* Constant from VipOpenNic on. */
typedef struct {
	VIP_CHAR Name[64];
	VIP_ULONG HardwareVersion;
	VIP_ULONG ProviderVersion;
	VIP_UINT16 NicAddressLen;
	const VIP_UINT8 *LocalNicAddress;
	VIP_BOOLEAN ThreadSafe;
	VIP_UINT16 MaxDiscriminatorLen;
	VIP_ULONG MaxRegisterBytes;
	VIP_ULONG MaxRegisterRegions;
	VIP_ULONG MaxRegisterBlockBytes;
	VIP_ULONG MaxVI;
	VIP_ULONG MaxDescriptorsPerQueue;
	VIP_ULONG MaxSegmentsPerDesc;
	VIP_ULONG MaxCQ;
	VIP_ULONG MaxCQEntries;
	VIP_ULONG MaxTransferSize;
	VIP_ULONG NativeMTU;
	VIP_ULONG MaxPtags;
	VIP_RELIABILITY_LEVEL ReliabilityLevelSupport;
	VIP_RELIABILITY_LEVEL RDMAReadSupport; /* the levels at which RDMA read works */
} VIP_NIC_ATTRIBUTES;

typedef struct {
	VIP_RELIABILITY_LEVEL ReliabilityLevel;
	VIP_ULONG MaxTransferSize; /* 0: the NIC's largest */
	VIP_QOS QoS;
	VIP_PROTECTION_HANDLE Ptag;
	VIP_BOOLEAN EnableRdmaWrite;
	VIP_BOOLEAN EnableRdmaRead;
} VIP_VI_ATTRIBUTES;

typedef struct {
	VIP_PROTECTION_HANDLE Ptag;
	VIP_BOOLEAN EnableRdmaWrite;
	VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

typedef struct {
	VIP_ULONG NumberOfHops;
	VIP_NET_ADDRESS **ADAddrArray; /* in: NumAdAddrs places for an address */
	VIP_ULONG NumAdAddrs;          /* in: places; out: addresses */
} VIP_AUTODISCOVERY_LIST;

/* ---- descriptor: 64 bytes at a multiple of 64 -------------------------------------------------------------------- */

#define VIP_DESCRIPTOR_ALIGNMENT 64

typedef struct {
	VIP_PVOID64 Next;         /* the library's while posted */
	VIP_MEM_HANDLE NextHandle; /* the library's while posted */
	VIP_UINT16 SegCount;      /* segments that follow, the address segment included; 0 is legal */
	VIP_UINT16 Control;       /* VIP_CONTROL_* */
	VIP_UINT32 Reserved;      /* 0 */
	VIP_UINT32 ImmediateData;
	VIP_UINT32 Length;        /* bytes in the data segments; on completion bytes moved */
	VIP_UINT32 Status;        /* VIP_STATUS_*; cleared by posting */
} VIP_CONTROL_SEGMENT;

typedef struct {
	VIP_PVOID64 Data; /* address in the peer's process */
	VIP_MEM_HANDLE Handle;
	VIP_UINT32 Reserved; /* 0 */
} VIP_ADDRESS_SEGMENT;

typedef struct {
	VIP_PVOID64 Data;
	VIP_MEM_HANDLE Handle;
	VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union {
	VIP_ADDRESS_SEGMENT Remote; /* RDMA only, and then the first */
	VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

typedef struct _VIP_DESCRIPTOR {
	VIP_CONTROL_SEGMENT CS;
	VIP_DESCRIPTOR_SEGMENT DS[2]; /* more follow in memory when SegCount says so */
} VIP_DESCRIPTOR;

/* CS.Control */
#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004
#define VIP_CONTROL_QFENCE 0x0008
#define VIP_CONTROL_RESERVED 0xFFF0

/* CS.Status */
#define VIP_STATUS_DONE 0x00000001
#define VIP_STATUS_FORMAT_ERROR 0x00000002
#define VIP_STATUS_PROTECTION_ERROR 0x00000004
#define VIP_STATUS_LENGTH_ERROR 0x00000008
#define VIP_STATUS_PARTIAL_ERROR 0x00000010
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100
#define VIP_STATUS_ERROR_MASK 0x000001FE
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_IMMEDIATE 0x00080000
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* What the error callback gets. */
typedef struct {
	VIP_NIC_HANDLE NicHandle;
	VIP_VI_HANDLE ViHandle;
	VIP_CQ_HANDLE CQHandle;
	VIP_DESCRIPTOR *DescriptorPtr;
	VIP_ULONG OpCode; /* VIP_STATUS_OP_* */
	VIP_RESOURCE_CODE ResourceCode;
	VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* ---- NIC: VipNic(3) ---------------------------------------------------------------------------------------------- */

VIP_RETURN VipOpenNic(IN const VIP_CHAR *DeviceName, OUT VIP_NIC_HANDLE *NicHandle);
VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);
VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES *NicAttribs);
VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context,
                            IN void (*Handler)(IN VIP_PVOID Context, IN VIP_ERROR_DESCRIPTOR *ErrorDesc));
VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType, OUT VIP_PVOID SysManInfo);

/* ---- VI and connection: VipConnect(3) ---------------------------------------------------------------------------- */

VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES *ViAttribs, IN VIP_CQ_HANDLE SendCQHandle,
                       IN VIP_CQ_HANDLE RecvCQHandle, OUT VIP_VI_HANDLE *ViHandle);
VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);
VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE *State, OUT VIP_VI_ATTRIBUTES *ViAttribs,
                      OUT VIP_BOOLEAN *SendQEmpty, OUT VIP_BOOLEAN *RecvQEmpty);
VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES *ViAttribs);

VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *LocalAddr, IN VIP_ULONG Timeout,
                          OUT VIP_NET_ADDRESS *RemoteAddr, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs,
                          OUT VIP_CONN_HANDLE *ConnHandle);
VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);
VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);
VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr, IN VIP_NET_ADDRESS *RemoteAddr,
                             IN VIP_ULONG Timeout, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);
VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);
VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                 IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG Timeout);
VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);
VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* ---- memory: VipMemory(3) ---------------------------------------------------------------------------------------- */

VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE *Ptag);
VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE Ptag);
VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_ULONG Length,
                          IN VIP_MEM_ATTRIBUTES *MemAttribs, OUT VIP_MEM_HANDLE *MemHandle);
VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_MEM_HANDLE MemHandle);
VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_MEM_HANDLE MemHandle,
                       OUT VIP_MEM_ATTRIBUTES *MemAttribs);
VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_MEM_HANDLE MemHandle,
                               IN VIP_MEM_ATTRIBUTES *MemAttribs);

/* ---- work queues: VipQueue(3) ------------------------------------------------------------------------------------ */

VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr, IN VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout, OUT VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr, IN VIP_MEM_HANDLE MemoryHandle);
VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);
VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* ---- completion queues: VipCQ(3) --------------------------------------------------------------------------------- */

VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount, OUT VIP_CQ_HANDLE *CQHandle);
VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);
VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);
VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE *ViHandle, OUT VIP_BOOLEAN *RecvQueue);
VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout, OUT VIP_VI_HANDLE *ViHandle,
                     OUT VIP_BOOLEAN *RecvQueue);

/* ---- notification: VipNotify(3) ---------------------------------------------------------------------------------- */

VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                         IN void (*Handler)(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle,
                                            IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *Descriptor));
VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                         IN void (*Handler)(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle,
                                            IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *Descriptor));
VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context,
                       IN void (*Handler)(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle,
                                          IN VIP_VI_HANDLE ViHandle, IN VIP_BOOLEAN RecvQueue));

/* ---- name service: VipNS(3) -------------------------------------------------------------------------------------- */

VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);
VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);
VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR *Name, OUT VIP_NET_ADDRESS *Address,
                              IN VIP_ULONG NameIndex);
VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *Address, OUT VIP_CHAR *Name,
                              OUT VIP_ULONG *NameLen);

/* ---- extensions of this provider: Vipx(3) ------------------------------------------------------------------------ */
#ifndef VIPL_NO_EXTENSIONS

/* A word of the consumer's at a VI (as in Giganet's library); NULL at first.  Get is a look-up, NULL for a bad handle. */
VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);
VIP_RETURN VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID UserData);

/*
 * VipOpenNic with flags.  VIPX_OPEN_UNLOCKED: calls on this handle and its objects take no lock, the caller serialises
 * them; notify calls then return VIP_ERROR_RESOURCE.
 */
#define VIPX_OPEN_UNLOCKED ((VIP_ULONG)1)
VIP_RETURN VipxOpenNic(IN const VIP_CHAR *DeviceName, IN VIP_ULONG Flags, OUT VIP_NIC_HANDLE *NicHandle);
/* Why the last open of this thread failed: a sentence, never NULL. */
const VIP_CHAR *VipxLastError(void);
/* Identity of the card: two NIC handles reach each other when it is equal.  And the process slot of this handle on it. */
VIP_RETURN VipxCardId(IN VIP_NIC_HANDLE NicHandle, OUT VIP_UINT64 *Card);
VIP_RETURN VipxCardSlot(IN VIP_NIC_HANDLE NicHandle, OUT VIP_ULONG *Slot);
/* Which life of that slot this handle is: who gets the slot later has another one. */
VIP_RETURN VipxCardLife(IN VIP_NIC_HANDLE NicHandle, OUT VIP_UINT32 *Life);
/* VIP_SUCCESS: that handle, of any process, is open; VIP_NO_MATCH: it is not any more. */
VIP_RETURN VipxCardLives(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG Slot, IN VIP_UINT32 Life);
/* Who is at the other end of a connected VI; VIP_INVALID_STATE when there is nobody. */
VIP_RETURN VipxViPeer(IN VIP_VI_HANDLE ViHandle, OUT VIP_ULONG *Pid, OUT VIP_ULONG *Slot);

/* One pass of the NIC; how many things moved, 0 when idle or for a bad handle. */
int VipxPoll(IN VIP_NIC_HANDLE NicHandle);
/*
 * Send_Short: a message of at most VIPX_SHORT_MAX bytes inside the command: Head, then A, then B.  It is copied before the
 * call returns: no descriptor, no registration, no completion.  A longer one, of at most VIPX_BUFFER_SIZE bytes, is copied into a pool
 * buffer (below) that the NIC takes for it, its last piece to a multiple of 64 bytes if there is room.  VIP_NOT_DONE: it cannot go now (not connected,
 * sends are outstanding, no room, no buffer; always at Reliable Reception) and nothing has happened: post a descriptor.
 */
#define VIPX_SHORT_MAX 1068
typedef struct _VIPX_SHORT {
	VIP_UINT64 Head;
	const void *A, *B;
	VIP_UINT32 ALength, BLength;
} VIPX_SHORT;
VIP_RETURN VipxSendShort(IN VIP_VI_HANDLE ViHandle, IN const VIPX_SHORT *Message);
/* The same for a message of more than 48 bytes inside one taken pool buffer (below), which has changed hands on VIP_SUCCESS. */
VIP_RETURN VipxSendBuffer(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Data, IN VIP_ULONG Length);
/*
 * RDMA inside the command: Length bytes, more than none, between one registered local range and one at the peer, all done when the
 * call returns VIP_SUCCESS: no descriptor, no completion.  Operation is VIP_CONTROL_OP_RDMAWRITE or VIP_CONTROL_OP_RDMAREAD.
 * VIP_NOT_DONE: it cannot go so (not connected, sends are outstanding, the NIC at the other end is to take part, this NIC
 * knows no such way), or an address or a right is wrong; no part of it counts as done, and no error is raised: post a descriptor,
 * which tells.  VIP_INVALID_PARAMETER: no such VI, or no such Operation.
 */
typedef struct _VIPX_RDMA {
	VIP_UINT64 Local, Remote; /* addresses */
	VIP_MEM_HANDLE LocalHandle, RemoteHandle;
	VIP_UINT32 Length, Operation;
} VIPX_RDMA;
VIP_RETURN VipxRdmaNow(IN VIP_VI_HANDLE ViHandle, IN const VIPX_RDMA *Rdma);
/*
 * Posted write: RDMA write of at most VIPX_POSTED_MAX bytes by value, copied before the call returns: no descriptor, no registration here, no completion.
 * What is sent or posted later on the VI finds it in place at the peer, as it would a descriptor's; VipxPostedDone says when all that were posted on a
 * NIC are in place: VIP_SUCCESS, or VIP_NOT_DONE (VipxPoll, or any look at a queue, moves them on).  A peer that takes its memory back meanwhile costs the
 * connection, and the error callback hears VIP_ERROR_RDMAW_PROT; a connection that is lost ends them.
 * VIP_NOT_DONE from VipxRdmaPost: it cannot go so now (not connected, descriptors wait, it is not one of many in a row, the peer was late lately, at
 * Unreliable Delivery, this NIC knows no such way), or an address or a right is wrong; nothing has happened: post a descriptor, which tells.
 * VIP_INVALID_PARAMETER: no such VI or NIC.
 */
#define VIPX_POSTED_MAX 8192
typedef struct _VIPX_POSTED {
	const void *Data;
	VIP_UINT64 Remote; /* address */
	VIP_MEM_HANDLE RemoteHandle;
	VIP_UINT32 Length;
} VIPX_POSTED;
VIP_RETURN VipxRdmaPost(IN VIP_VI_HANDLE ViHandle, IN const VIPX_POSTED *Write);
VIP_RETURN VipxPostedDone(IN VIP_NIC_HANDLE NicHandle);
/*
 * Fetch: RDMA read of at most VIPX_FETCH_MAX bytes by value: no descriptor, no registration here, no completion.  VipxFetched says how many of a VI's have
 * ended since it was connected: they end in order, and then their data are at To, which is the NIC's to write until then (VipxPoll, or any look at a queue,
 * moves them on).  A peer that takes its memory back meanwhile costs the connection, and the error callback hears VIP_ERROR_RDMAR_PROT; those that
 * have not ended when a connection is over never do.  Status, if not NULL: of the first that has failed, as a descriptor's; 0: none has.
 * VIP_NOT_DONE: it cannot go so now (as for a posted write, or one is under way), or an address or a right is wrong; nothing has happened: post a
 * descriptor, which tells.  VIP_INVALID_PARAMETER: no such VI.  VipxFetched: 0 without one.
 */
#define VIPX_FETCH_MAX 8192
typedef struct _VIPX_FETCH {
	VIP_PVOID To;
	VIP_UINT64 Remote; /* address */
	VIP_MEM_HANDLE RemoteHandle;
	VIP_UINT32 Length;
} VIPX_FETCH;
VIP_RETURN VipxRdmaFetch(IN VIP_VI_HANDLE ViHandle, IN const VIPX_FETCH *Read);
VIP_UINT32 VipxFetched(IN VIP_VI_HANDLE ViHandle, OUT VIP_UINT32 *Status);
/*
 * VIP_SUCCESS: a message of Length bytes from Data had better be sent in pool buffers, which takes both processes but no system call;
 * VIP_NOT_DONE: it had better be read by the peer (RDMA), or there is no peer.  *Single: it is the first on that VI since this process last looked at a
 * queue, which the peer wants to know (VipxLongBegins); NULL: it is not told, so what it has found out that way is not asked.  Before the call it says
 * whether such a one is going to leave at once, for no answer of the peer's, so that whether this process is soon back does not matter.
 */
VIP_RETURN VipxRatherSent(IN VIP_VI_HANDLE ViHandle, IN const void *Data, IN VIP_UINT64 Length, IN OUT VIP_BOOLEAN *Single);
/*
 * Who sends long messages in pool buffers (VipxSendShort), many in a row, asks before each buffer whether it is to leave now, VIP_SUCCESS, or, while few of them
 * go round and enough are under way, when this process has looked at a queue again, VIP_NOT_DONE.
 */
VIP_RETURN VipxBulkTurn(IN VIP_VI_HANDLE ViHandle);
/*
 * What the NICs tell that from: who receives a long message says so when it is known where to, and again, in whatever order, when its data are
 * there, or never will be.  They are Read by RDMA, from the address Remote, or else sent (0); Single, as their sender was told.  VIP_NOT_DONE: that message says nothing, and its end is not
 * wanted.  VIP_INVALID_PARAMETER: no such VI.
 */
VIP_RETURN VipxLongBegins(IN VIP_VI_HANDLE ViHandle, IN VIP_UINT64 Remote, IN VIP_UINT64 Length, IN VIP_BOOLEAN Single);
VIP_RETURN VipxLongOver(IN VIP_VI_HANDLE ViHandle, IN VIP_UINT64 Length, IN VIP_BOOLEAN Read, IN VIP_BOOLEAN Single);
/*
 * What comes next on a completion queue: VipCQDone, and VipRecvDone or VipSendDone of the queue it names, in one call; the
 * codes of the latter, or VIP_NOT_DONE.  A message without immediate data may come by value instead: Descriptor is NULL,
 * Message and Length say where it is, and the receive that it would have used stays posted.  It is in Data, or, when Buffer
 * is not NULL (only where the receive has VIP_CONTROL_POOL), in that pool buffer, which is now the caller's.
 */
typedef struct _VIPX_ARRIVAL {
	VIP_VI_HANDLE ViHandle;
	VIP_PVOID Message, Buffer;  /* by value */
	VIP_UINT32 Length;          /* by value */
	VIP_UINT32 Surplus;         /* with Buffer: not 0: VipxBufferRead is worth calling */
	VIP_DESCRIPTOR *Descriptor; /* NULL: by value */
	VIP_PVOID User;             /* what VipSetUserData left at the VI */
	VIP_UINT64 Data[(VIPX_SHORT_MAX + 7) / 8]; /* at a multiple of 16 bytes */
	VIP_BOOLEAN RecvQueue;
} VIPX_ARRIVAL;
VIP_RETURN VipxCQTake(IN VIP_CQ_HANDLE CQHandle, OUT VIPX_ARRIVAL *Arrival);
/*
 * The short way to a message by value that is expected on one VI whose receive queue has a completion queue, which is empty:
 * what VipxCQTake would return of that VI in ViHandle, Message, Buffer, Length and Surplus (the other members it leaves alone), or
 * VIP_NOT_DONE, and then nothing was done, but for a short RDMA read of the peer's; not even the NIC's other work, so VipxCQTake has to be called, too.
 * Message is NULL then when something has come that has to go that way, or had.
 */
VIP_RETURN VipxRecvTake(IN VIP_VI_HANDLE ViHandle, OUT VIPX_ARRIVAL *Arrival);
/*
 * The same for a caller who waits for one message and knows how it begins: Head (of which the bits of Mask count) and Key, 8 bytes each as they lie in memory.  What
 * follows these 16 bytes, at most Room bytes, is copied to To, which need not be registered; Length says how many they are, and Word what the first 8 bytes were.
 * Looks at least once, Looks times, some 6 ns each, or 4096 times: a thread that holds the NIC handle holds it so long.  VIP_NOT_DONE: it has not come, or something else
 * is next there, which VipxCQTake takes; nothing was done then, and Length and Word mean nothing.  VIP_INVALID_PARAMETER: no such VI, or Looks is 0.
 */
typedef struct _VIPX_EXPECTED {
	VIP_UINT64 Head, Mask, Key;
	VIP_PVOID To;
	VIP_UINT32 Room;
	VIP_UINT32 Length; /* out */
	VIP_UINT64 Word;   /* out */
} VIPX_EXPECTED;
VIP_RETURN VipxRecvExpected(IN VIP_VI_HANDLE ViHandle, IN OUT VIPX_EXPECTED *Expected, IN VIP_ULONG Looks);
/* Behind a message of that VI by value: of the next ones as many as have come, VIPX_BRIEF_MAX bytes at most each, and Most of them at most.  How many. */
#define VIPX_BRIEF_MAX 108
typedef struct _VIPX_BRIEF {
	VIP_UINT32 Length, Reserved;
	VIP_UINT64 Data[(VIPX_BRIEF_MAX + 7) / 8];
} VIPX_BRIEF;
VIP_ULONG VipxRecvTakeRow(IN VIP_VI_HANDLE ViHandle, OUT VIPX_BRIEF *Messages, IN VIP_ULONG Most);
/* The same of those that came in pool buffers (below), of Longest bytes at most each: the buffers are the caller's. */
typedef struct _VIPX_MESSAGE {
	VIP_PVOID Data; /* where it begins in its buffer */
	VIP_UINT32 Length, Surplus; /* as in VIPX_ARRIVAL */
} VIPX_MESSAGE;
VIP_ULONG VipxRecvTakeBuffers(IN VIP_VI_HANDLE ViHandle, OUT VIPX_MESSAGE *Messages, IN VIP_ULONG Most, IN VIP_ULONG Longest);

/*
 * Pool buffers: VIPX_BUFFER_SIZE bytes at a multiple of 64, registered for ever as VIPX_POOL_HANDLE, that change hands
 * between processes.  A send descriptor with VIP_CONTROL_POOL has one data segment inside one taken buffer and gives the
 * buffer away when it completes, however it completes.  A receive descriptor with VIP_CONTROL_POOL (SegCount 0 or 1)
 * takes a message that does not fit its segment in a pool buffer: Status then has VIP_STATUS_POOL and DS[1] says where in
 * it, not always from its beginning, the message is; the buffer is now the caller's to give back or to send on.
 */
#define VIPX_BUFFER_SIZE 32896
#define VIPX_POOL_HANDLE ((VIP_MEM_HANDLE)0xFFFFFFFFu)
#define VIP_CONTROL_POOL 0x0010
#define VIP_STATUS_POOL 0x00100000
VIP_PVOID VipxTakeBuffer(IN VIP_NIC_HANDLE NicHandle); /* NULL: none free now */
void VipxGiveBuffer(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Buffer); /* any address inside it */
/*
 * So much of a buffer of the caller's, from there on, has just been read, and it will be given back: its lines are made ready for the
 * peer that writes it next.  What is in them stays.  It pays where Surplus says so (parameter migrate).
 */
void VipxBufferRead(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Data, IN VIP_ULONG Length);
/* Copies so much of it to To and does the same for its lines, and that of what is in front of it in its buffer, in less time than both.  What is in no buffer is copied. */
void VipxBufferCopy(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PVOID To, IN VIP_PVOID Data, IN VIP_ULONG Length);
void VipxGiveBuffers(IN VIP_NIC_HANDLE NicHandle, IN const VIPX_MESSAGE *Messages, IN VIP_ULONG Count); /* those of so many messages */

/*
 * Waiting beside other work.  A program that polls asks, after a look that found nothing, what to do until the next one: Plan
 * sets Rest, and returns how many looks, a power of two, it may take before it asks again; Rest does it.  Zero the structure
 * first, and set Began to 0 whenever something has come.  Lends is 1 in a program that is to offer its core to others even if
 * it works between two looks; Rest does it, a sched_yield of the program's own would look like work.  LongestSleep is in
 * microseconds, 0: it must not sleep.  Plan is a call on the NIC handle as any other; Rest may overlap with other threads'
 * calls, also on a handle that was opened unlocked.
 */
enum { VIPX_REST_SPIN, VIPX_REST_YIELD, VIPX_REST_SLEEP };
typedef struct {
	VIP_UINT32 Rest;
	VIP_UINT8 Lends;
	VIP_UINT8 Reserved[3];
	VIP_UINT64 Began;
	VIP_UINT64 Reserved2[6];
} VIPX_WAIT;
VIP_ULONG VipxWaitPlan(IN VIP_NIC_HANDLE NicHandle, VIPX_WAIT *Wait, IN VIP_ULONG LongestSleep);
void VipxWaitLook(VIPX_WAIT *Wait);
void VipxWaitRest(VIPX_WAIT *Wait);

/*
 * Memory in the card, at least Length bytes from a page on: RDMA to and from it is a plain copy for the NIC at the other
 * end, without a system call.  It must be registered like other memory, and is out of reach of other processes but by
 * RDMA.  VIP_ERROR_RESOURCE: VipxLastError says what is short; other memory will do.  What is not freed when
 * the NIC handle is closed stays as ordinary memory, unless the process has more handles of that device: then it goes.
 */
VIP_RETURN VipxAllocMemory(IN VIP_NIC_HANDLE NicHandle, IN VIP_UINT64 Length, OUT VIP_PVOID *Memory);
VIP_RETURN VipxFreeMemory(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Memory);

/*
 * The VIPX_LARGE_PAGE bytes around Address are moved again and again: their pages are put together to one, which makes copying
 * between processes cheaper.  VIP_NOT_DONE: they stay as they are, which is no error; asking again later may help.
 */
#define VIPX_LARGE_PAGE 2097152
VIP_RETURN VipxLargePage(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address);

/*
 * Peer connection requests of others that name this host and have no partner yet.  Cursor starts at 0 and moves on;
 * VIP_NOT_DONE at the end.  Both addresses need room for VIPX_ADDRESS_SIZE bytes.  The epoch changes whenever a request
 * appears: a load, for cheap polling.
 */
#define VIPX_ADDRESS_SIZE 76
VIP_RETURN VipxConnectPending(IN VIP_NIC_HANDLE NicHandle, VIP_ULONG *Cursor, OUT VIP_NET_ADDRESS *TheirLocal,
                              OUT VIP_NET_ADDRESS *TheirRemote);
VIP_ULONG VipxConnectEpoch(IN VIP_NIC_HANDLE NicHandle);

/*
 * Groups of process slots, whose NICs carry on a barrier or a broadcast by themselves.  Join, Barrier and Broadcast start an
 * operation, VipxOperationDone says whether it is over and ends it: VIP_NOT_DONE, VIP_SUCCESS and the operation's value,
 * VIP_ERROR_RESOURCE (may be tried again) or VIP_INVALID_STATE: it has failed, and the value says why, VIPX_WHY_*; of a join
 * it stands above the number, at VIPX_WHY_SHIFT, but for VIPX_WHY_NIC, with which there is no number.  An operation VIPX_OVER
 * is over when the call that starts it returns; asking is not needed, and yields no value.  VIP_ERROR_RESOURCE from the call
 * that starts one: try again later.  All members join with the same name and the same list of slots (VipxCardSlot), and
 * broadcast the same number of bytes, at most VIPX_BROADCAST_MAX, from the slot Root.  The value of a join is the group's
 * number here.
 */
#define VIPX_BROADCAST_MAX 1048576
#define VIPX_OVER 0
#define VIPX_WHY_NO_GROUP 0      /* not a member */
#define VIPX_WHY_DIED 1          /* + the slot of the member that died */
#define VIPX_WHY_LEFT 0x1000     /* a member has left */
#define VIPX_WHY_LENGTH 0x1001   /* a broadcast of another length than its receiver gave; the group is as good as before */
#define VIPX_WHY_DATA 0x1002     /* what came makes no sense */
#define VIPX_WHY_NIC 0xFFFFFF    /* the NIC of this process has died */
#define VIPX_WHY_SHIFT 8
typedef struct _VIPX_GROUP {
	VIP_UINT32 Name, Size, Place; /* Place: own place in Slot */
	const VIP_UINT32 *Slot;
	const VIP_UINT32 *Life; /* of each of these (VipxCardLife); NULL: whoever has the slots now */
} VIPX_GROUP;
VIP_RETURN VipxGroupJoin(IN VIP_NIC_HANDLE NicHandle, IN const VIPX_GROUP *Group, OUT VIP_UINT32 *Operation);
VIP_RETURN VipxGroupLeave(IN VIP_NIC_HANDLE NicHandle, IN VIP_UINT32 Group);
VIP_RETURN VipxBarrier(IN VIP_NIC_HANDLE NicHandle, IN VIP_UINT32 Group, OUT VIP_UINT32 *Operation);
VIP_RETURN VipxBroadcast(IN VIP_NIC_HANDLE NicHandle, IN VIP_UINT32 Group, IN VIP_UINT32 Root, IN VIP_PVOID Buffer,
                         IN VIP_UINT64 Length, OUT VIP_UINT32 *Operation);
VIP_RETURN VipxOperationDone(IN VIP_NIC_HANDLE NicHandle, IN VIP_UINT32 Operation, OUT VIP_UINT32 *Value);
/* VIP_SUCCESS: barriers and broadcasts are VIPX_OVER unless somebody has to be waited for.  VIP_NOT_DONE: another process
 * or messages do them. */
VIP_RETURN VipxGroupsAtOnce(IN VIP_NIC_HANDLE NicHandle);

/* Counters of the NIC handle.  Counter adds one or finds it; the cell lives until VipCloseNic, written by its owner only. */
VIP_UINT64 *VipxCounter(IN VIP_NIC_HANDLE NicHandle, IN const VIP_CHAR *Name, IN const VIP_CHAR *Help);
const VIP_UINT64 *VipxCounterAt(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG Index, OUT const VIP_CHAR **Name,
                                OUT const VIP_CHAR **Help); /* NULL past the end */

/* Parameters of the whole stack, by number (NULL past the end) or name (NULL: unknown). */
struct vipx_parameter {
	const char *name, *help;
	const char *type;   /* "int", "int:least..greatest", "size" likewise, "bool", "string", "enum:a|b|c" */
	const char *fits;   /* the same in words: "one of a, b, c", "a whole number, from 1 to 9" */
	const char *value;  /* effective, as text */
	const char *source; /* where the value comes from */
	int level;          /* 1 (user, basic) ... 9 (developer, all) */
};
const struct vipx_parameter *VipxParameterAt(IN VIP_ULONG Index);
const struct vipx_parameter *VipxParameterFind(IN const VIP_CHAR *Name);
/* VIP_INVALID_PARAMETER: not a value of that type; VIP_NO_MATCH: unknown name. */
VIP_RETURN VipxParameterSet(IN const VIP_CHAR *Name, IN const VIP_CHAR *Value, IN const VIP_CHAR *Source);
int64_t VipxParameterInt(IN const VIP_CHAR *Name);          /* int, bool, size; 0 when unknown */
const VIP_CHAR *VipxParameterString(IN const VIP_CHAR *Name); /* "" when unknown */

#endif /* VIPL_NO_EXTENSIONS */

#ifdef __cplusplus
}
#endif
#endif
