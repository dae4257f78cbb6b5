/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that come by value, without their receives: through the completion queue, of one VI, in a row, and to where they are waited for.
 */
#include "tests/unit/vipl/one.h"

#define NEEDS_VALUES()                                                               \
	do {                                                                         \
		if (strcmp(VipxParameterString("arch"), "qnix") == 0)                \
			SKIP("a NIC that asks first takes nothing by value");        \
	} while (0)

/* Whether lines are let go of depends on the processor, on which these tests may not. */
static void either_way(void test(void))
{
	for (int on = 0; on < 2; on++) {
		VIP(VIP_SUCCESS, VipxParameterSet("demote", on ? "on" : "off", "test"));
		test();
	}
	VIP(VIP_SUCCESS, VipxParameterSet("demote", "auto", "test"));
}

static VIP_ULONG opened; /* flags of the NIC: with its lock, or without */

enum { LONG = 928 }; /* bytes of a message in a buffer */

/* Of the longest one that goes in cells while there are buffers: here each comes after the NIC has heard from itself, as an answer does. */
static unsigned in_cells(void)
{
	return strcmp(VipxParameterString("demote"), "on") == 0 ? 400 : 228;
}

/* How many bytes of this NIC's have gone in buffers. */
static VIP_UINT64 in_buffers(VIP_NIC_HANDLE nic)
{
	return *VipxCounter(nic, "bytes_buffer", "");
}

/* Short messages sent inside the command come by value: the receive stays posted, and takes the first that cannot. */
static void values(void)
{
	const unsigned lengths[] = { 8, 9, 40, 48, 49, 108, 109, in_cells() - 1, in_cells(), in_cells() + 1, LONG, VIPX_SHORT_MAX };
	VIPX_SHORT m = { .Head = 0x0807060504030201 };
	uint8_t data[VIPX_SHORT_MAX];
	VIPX_ARRIVAL next;
	VIP_CQ_HANDLE cq;
	struct one o;

	NEEDS_VALUES();
	one_open_as(&o, opened);
	VIP(VIP_SUCCESS, VipCreateCQ(o.nic, 64, &cq));
	o.a = one_vi(&o, NULL, cq);
	o.b = one_vi(&o, NULL, cq);
	VIP(VIP_SUCCESS, VipSetUserData(o.b, &o));
	one_connect(&o);
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + 1);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		m.A = data;
		m.ALength = (lengths[i] - 8) / 3;
		m.B = data + m.ALength;
		m.BLength = lengths[i] - 8 - m.ALength;
		VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
		VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
		CHECK(!next.Descriptor && next.ViHandle == o.b && next.User == &o && next.RecvQueue);
		CHECK_EQ(next.Length, lengths[i]);
		CHECK_EQ(next.Data[0], m.Head);
		CHECK(memcmp(&next.Data[1], data, lengths[i] - 8) == 0);
	}
	CHECK_EQ(in_buffers(o.nic), in_cells() + 1 + LONG + VIPX_SHORT_MAX);
	VIP(VIP_NOT_DONE, VipxCQTake(cq, &next));
	/* What another call has brought in has taken its receive; what comes after that stays behind it. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 2000), o.handle));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	m.Head++;
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem && next.Descriptor->CS.Length == VIPX_SHORT_MAX);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(!next.Descriptor && next.Data[0] == m.Head);
	/* Without a receive it is no message, by value or not. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)(o.mem + 2 * ONE_DESC));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxCQTake(cq, &next));
	VIP(VIP_NOT_DONE, VipxSendShort(o.a, &m));
	one_close(&o);
}

static void by_value(void)
{
	either_way(values);
}

/* Two VIs to be connected; the receives of o->b complete on the queue that is returned. */
static VIP_CQ_HANDLE one_open_receiving(struct one *o)
{
	VIP_CQ_HANDLE cq;

	one_open_as(o, opened);
	VIP(VIP_SUCCESS, VipCreateCQ(o->nic, 64, &cq));
	o->a = one_vi(o, NULL, NULL);
	o->b = one_vi(o, NULL, cq);
	return cq;
}

/* The short way takes what comes next if it is for that VI and nothing is before it; otherwise it changes nothing. */
static void by_value_of_one(void)
{
	VIPX_SHORT m = { .Head = 1 };
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	struct one o;

	NEEDS_VALUES();
	cq = one_open_receiving(&o);
	VIP(VIP_SUCCESS, VipSetUserData(o.b, &o));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next)); /* no link yet */
	one_connect(&o);
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.a, &next)); /* no completion queue */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next)); /* no receive: not a message, and not this call's to refuse */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK(next.ViHandle == o.b && next.Message == next.Data && !next.Buffer && next.Length == 8);
	CHECK_EQ(next.Data[0], m.Head);
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	CHECK(next.Message == next.Data);
	/* What is in the completion queue comes first. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 2000), o.handle));
	m.Head = 2;
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem);
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK_EQ(next.Data[0], m.Head);
	/* On its way when the connection ends: of a life that is over. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipDisconnect(o.b));
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 4, 2000), o.handle));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	one_close(&o);
}

/* So many messages in a row: the first one of that length, each further one a byte longer. */
static void send_row(struct one *o, unsigned n, unsigned len)
{
	static uint8_t bytes[VIPX_SHORT_MAX];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 3 + 1);
	for (; n--; len++) {
		VIPX_SHORT m = { .Head = len, .A = bytes, .ALength = len - 8 };

		VIP(VIP_SUCCESS, VipxSendShort(o->a, &m));
	}
}

/* The next messages: how many of so many are taken in a row, the first one of that length. */
static unsigned row_of(struct one *o, unsigned most, unsigned len)
{
	VIPX_BRIEF row[64];
	unsigned n = (unsigned)VipxRecvTakeRow(o->b, row, most);

	for (unsigned i = 0; i < n; i++, len++) {
		CHECK_EQ(row[i].Length, len);
		CHECK_EQ(row[i].Data[0], len);
		for (unsigned k = 0; k < len - 8; k++)
			CHECK(((uint8_t *)&row[i].Data[1])[k] == (uint8_t)(k * 3 + 1));
	}
	return n;
}

/* Behind one by value, those that have come: brief ones only, and none while there is something else to be seen first. */
static void rows(void)
{
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	struct one o;

	NEEDS_VALUES();
	cq = one_open_receiving(&o);
	CHECK_EQ(row_of(&o, 8, 8), 0); /* no link yet */
	one_connect(&o);
	send_row(&o, 4, 8);
	CHECK_EQ(row_of(&o, 8, 8), 0); /* no receive */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	CHECK_EQ(row_of(&o, 8, 8), 0); /* it is not known to be good */
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK_EQ(row_of(&o, 2, 9), 2);
	CHECK_EQ(row_of(&o, 8, 11), 1);
	CHECK_EQ(row_of(&o, 8, 0), 0);
	for (unsigned lap = 0; lap < 30; lap++) { /* over and over round the ring */
		send_row(&o, 40, 40 + lap);
		CHECK_EQ(row_of(&o, 64, 40 + lap), 40);
	}
	/* The one that is not brief goes by itself. */
	send_row(&o, 10, VIPX_BRIEF_MAX - 4);
	CHECK_EQ(row_of(&o, 64, VIPX_BRIEF_MAX - 4), 5);
	CHECK_EQ(row_of(&o, 64, 0), 0);
	for (unsigned i = 0; i < 5; i++) {
		VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
		CHECK_EQ(next.Length, VIPX_BRIEF_MAX + 1 + i);
	}
	CHECK_EQ(row_of(&o, 0, 0), 0);
	CHECK_EQ(VipxRecvTakeRow(o.b, NULL, 8), 0);
	CHECK_EQ(VipxRecvTakeRow(o.a, NULL, 8), 0);
	/* What is in the completion queue comes first, and its receive is gone. */
	send_row(&o, 1, 8);
	CHECK(VipxPoll(o.nic) > 0);
	send_row(&o, 1, 9);
	CHECK_EQ(row_of(&o, 8, 9), 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK_EQ(row_of(&o, 8, 9), 0);
	/* The next one has less room. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 16), o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	send_row(&o, 9, 10);
	CHECK_EQ(row_of(&o, 64, 10), 7);
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	one_close(&o);
}

/* The same of those in buffers, which are then the program's, and go back together. */
static void rows_in_buffers(void)
{
	static uint8_t bytes[VIPX_BUFFER_SIZE], copy[2048], large[2 * VIPX_BUFFER_SIZE + 2];
	VIPX_SHORT m = { .Head = 2000, .A = bytes, .ALength = 20, .B = bytes + 20, .BLength = 1972 };
	VIPX_MESSAGE row[64];
	VIP_DESCRIPTOR *recv;
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	VIP_UINT64 taken, migrated, surplus = 0;
	struct one o;

	NEEDS_VALUES();
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 5 + i / 256);
	cq = one_open_receiving(&o);
	CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 8, VIPX_BUFFER_SIZE), 0); /* no link yet */
	one_connect(&o);
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 8, VIPX_BUFFER_SIZE), 0); /* no receive */
	recv = one_desc(&o, 0, 64);
	recv->CS.Control |= VIP_CONTROL_POOL;
	VIP(VIP_SUCCESS, VipPostRecv(o.b, recv, o.handle));
	CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 8, VIPX_BUFFER_SIZE), 0); /* it is not known to be good */
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK(next.Buffer != NULL);
	VipxGiveBuffer(o.nic, next.Buffer);
	taken = *VipxCounter(o.nic, "buffers_taken", "");
	migrated = *VipxCounter(o.nic, "migrated", "");
	for (unsigned lap = 0; lap < 100; lap++) {
		for (unsigned i = 0; i < 20; i++) {
			m.Head = 20 * lap + i;
			m.BLength = 1972 + i;
			VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
		}
		CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 0, VIPX_BUFFER_SIZE), 0);
		CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 64, 1999), 0);
		if (!CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 7, VIPX_BUFFER_SIZE), 7) || !CHECK_EQ(VipxRecvTakeBuffers(o.b, row + 7, 57, 2019), 13))
			break;
		for (unsigned i = 0; i < 20; i++) {
			VIP_UINT64 head;

			memcpy(&head, row[i].Data, sizeof head);
			surplus += row[i].Surplus;
			VipxBufferRead(o.nic, row[i].Data, row[i].Length); /* what is in it stays */
			VipxBufferCopy(o.nic, copy, (char *)row[i].Data + 8, 1992 + i);
			CHECK(memcmp(copy, bytes, 1992 + i) == 0);
			CHECK(head == 20 * lap + i && row[i].Length == 2000 + i && memcmp((char *)row[i].Data + 8, bytes, 1992 + i) == 0);
		}
		VipxGiveBuffers(o.nic, row, 20);
	}
	CHECK(*VipxCounter(o.nic, "buffers_taken", "") - taken <= 32); /* they came back */
	VipxGiveBuffers(o.nic, NULL, 1);
	CHECK_EQ(*VipxCounter(o.nic, "migrated", "") - migrated, 4000);
	CHECK_EQ(surplus, 0); /* who sends to itself gives all of them back itself */
	VipxBufferRead(o.nic, NULL, 1);
	VipxBufferCopy(o.nic, copy, NULL, 1);
	VipxBufferCopy(o.nic, NULL, bytes, 1);
	memset(large + VIPX_BUFFER_SIZE + 1, 7, VIPX_BUFFER_SIZE + 1);
	VipxBufferCopy(o.nic, large, large + VIPX_BUFFER_SIZE + 1, VIPX_BUFFER_SIZE + 1); /* as any memory's */
	CHECK_EQ(large[VIPX_BUFFER_SIZE], 7);
	VipxBufferCopy(o.nic, copy, bytes, 64); /* no buffer's, but copied */
	CHECK(memcmp(copy, bytes, 64) == 0);
	CHECK_EQ(*VipxCounter(o.nic, "bad_packets", ""), 0);
	VipxBufferRead(o.nic, bytes, 1);
	CHECK_EQ(*VipxCounter(o.nic, "bad_packets", ""), 1);
	CHECK_EQ(*VipxCounter(o.nic, "migrated", "") - migrated, 4000);
	CHECK_EQ(VipxRecvTakeBuffers(o.b, NULL, 8, VIPX_BUFFER_SIZE), 0);
	CHECK_EQ(VipxRecvTakeBuffers(o.a, row, 8, VIPX_BUFFER_SIZE), 0);
	/* What is in the completion queue comes first. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 8, VIPX_BUFFER_SIZE), 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == recv);
	VipxGiveBuffer(o.nic, recv->DS[1].Local.Data.Address);
	CHECK_EQ(VipxRecvTakeBuffers(o.b, row, 8, VIPX_BUFFER_SIZE), 0); /* no receive */
	one_close(&o);
}

/* One that is waited for goes to where it is wanted; another one, or one behind something else, stays where it is. */
static void waited_for(void)
{
	static uint8_t bytes[4000], to[sizeof bytes];
	static const VIP_UINT64 key = 0x1122334455667788;
	VIPX_SHORT m = { .Head = 0x8000000000000001, .A = &key, .ALength = sizeof key, .B = bytes };
	VIPX_EXPECTED e = { .Head = 1, .Mask = ~(VIP_UINT64)0 >> 1, .Key = key, .To = to, .Room = sizeof bytes };
	VIP_DESCRIPTOR *recv;
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	VIP_UINT64 taken;
	struct one o;

	NEEDS_VALUES();
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	cq = one_open_receiving(&o);
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1)); /* no link yet */
	one_connect(&o);
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1)); /* no receive */
	recv = one_desc(&o, 0, 64);
	recv->CS.Control |= VIP_CONTROL_POOL;
	VIP(VIP_SUCCESS, VipPostRecv(o.b, recv, o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK_EQ(next.Length, 16);
	taken = *VipxCounter(o.nic, "buffers_taken", "");
	for (unsigned i = 0; i < 3000; i++) {
		VIP_UINT32 len = i % 3 ? i % 500 : 1100 + i % 2900;

		m.BLength = len;
		memset(to, 0xcc, sizeof to);
		VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
		e.Room = len ? len - 1 : 0;
		if (len)
			VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
		CHECK(to[0] == 0xcc);
		e.Room = i % 2 ? len : sizeof to;
		if (VipxRecvExpected(o.b, &e, ~(VIP_ULONG)0) != VIP_SUCCESS) { /* behind the end of a short lap */
			if (!CHECK_EQ(VipxRecvTake(o.b, &next), VIP_SUCCESS))
				break;
			CHECK(next.Length == 16 + len && memcmp((char *)next.Message + 16, bytes, len) == 0);
			if (next.Buffer)
				VipxGiveBuffer(o.nic, next.Buffer);
			continue;
		}
		CHECK(e.Length == len && e.Word == m.Head && memcmp(to, bytes, len) == 0 && (len == sizeof to || to[len] == 0xcc));
	}
	CHECK(*VipxCounter(o.nic, "recv_expected", "") > 2900);
	CHECK(*VipxCounter(o.nic, "buffers_taken", "") - taken <= 64); /* they stay with the NIC */
	/* Nothing but what is expected. */
	(void)VipxPoll(o.nic); /* what passes over cells */
	m.BLength = 8;
	e.Room = sizeof to;
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	e.Mask |= (VIP_UINT64)1 << 63;
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
	e.Mask = 0;
	e.Key++;
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
	e.Key--;
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.a, &e, 1)); /* no completion queue */
	VIP(VIP_INVALID_PARAMETER, VipxRecvExpected(NULL, &e, 1));
	VIP(VIP_INVALID_PARAMETER, VipxRecvExpected(cq, &e, 1));
	VIP(VIP_INVALID_PARAMETER, VipxRecvExpected(o.b, NULL, 1));
	VIP(VIP_INVALID_PARAMETER, VipxRecvExpected(o.b, &e, 0));
	VIP(VIP_INVALID_PARAMETER, VipxRecvExpected(o.a, NULL, 1));
	VIP(VIP_INVALID_PARAMETER, VipxRecvExpected(o.a, &e, 0));
	VIP(VIP_SUCCESS, VipxRecvExpected(o.b, &e, 1));
	CHECK_EQ(e.Length, 8);
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
	/* What is in the completion queue comes first. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 2000), o.handle));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == recv);
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1)); /* of this receive nothing is known yet */
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipxRecvExpected(o.b, &e, 1));
	/* On its way when the connection ends: of a life that is over. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipDisconnect(o.b));
	VIP(VIP_NOT_DONE, VipxRecvExpected(o.b, &e, 1));
	one_close(&o);
}

/* A receive that was good for one message by value is not asked again; the one behind it is. */
static void next_ones(void)
{
	static const char data[9] = "too long";
	static uint8_t bytes[VIPX_SHORT_MAX];
	VIPX_SHORT m = { .Head = 1 }, longer = { .Head = 2, .A = data, .ALength = sizeof data };
	VIPX_SHORT all = { .Head = 3, .A = bytes, .ALength = LONG - 8 };
	VIP_DESCRIPTOR *small;
	VIP_CQ_HANDLE cq;
	VIPX_ARRIVAL next;
	struct one o;

	NEEDS_VALUES();
	cq = one_open_receiving(&o);
	one_connect(&o);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 2000), o.handle));
	/* All lengths, cut between A and B in all ways, over and over round the ring. */
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (unsigned len = 8, cut = 0; len <= VIPX_SHORT_MAX; len++, cut = cut < len - 8 && cut < 60 ? cut + 1 : 0) {
		VIPX_SHORT any = { .Head = len, .A = bytes, .ALength = cut, .B = bytes + cut, .BLength = len - 8 - cut };

		VIP(VIP_SUCCESS, VipxSendShort(o.a, &any));
		VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
		CHECK(next.Length == len && next.Data[0] == len && memcmp(&next.Data[1], bytes, len - 8) == 0);
	}
	/* Of a buffer that was copied out of the NIC has the use again: a NIC never has so many. */
	for (unsigned i = 0; i < 3000; i++) {
		VIP(VIP_SUCCESS, VipxSendShort(o.a, &all));
		VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	}
	CHECK(in_buffers(o.nic) >= 3000 * LONG);
	/* Another call brings in a message, which takes the receive: there is none. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == (VIP_DESCRIPTOR *)(void *)o.mem);
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	CHECK(!next.Message);
	/* There is one with less room, but it may have a buffer: what is too long for its room is good, too. */
	small = one_desc(&o, 4, 16);
	small->CS.Control |= VIP_CONTROL_POOL;
	VIP(VIP_SUCCESS, VipPostRecv(o.b, small, o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &all));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	CHECK(next.Message != next.Data && next.Buffer == next.Message && next.Length == LONG);
	CHECK(memcmp(next.Message, &all.Head, 8) == 0 && memcmp((uint8_t *)next.Message + 8, bytes, LONG - 8) == 0);
	VipxGiveBuffer(o.nic, next.Buffer);
	/* Another call, and a descriptor: the same goes to a buffer. */
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &all));
	CHECK(VipxPoll(o.nic) > 0);
	VIP(VIP_SUCCESS, VipxCQTake(cq, &next));
	CHECK(next.Descriptor == small && (small->CS.Status & VIP_STATUS_POOL) && small->CS.Length == LONG);
	VipxGiveBuffer(o.nic, small->DS[1].Local.Data.Address);
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	/* There is one, with less room. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 2, 16), o.handle));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &m));
	VIP(VIP_SUCCESS, VipxRecvTake(o.b, &next));
	VIP(VIP_SUCCESS, VipxSendShort(o.a, &longer));
	VIP(VIP_NOT_DONE, VipxRecvTake(o.b, &next));
	CHECK(!next.Message);
	VIP(VIP_DESCRIPTOR_ERROR, VipxCQTake(cq, &next));
	one_close(&o);
}

static void next_receive(void)
{
	either_way(next_ones);
}

int main(void)
{
	for (opened = 0; opened <= VIPX_OPEN_UNLOCKED; opened += VIPX_OPEN_UNLOCKED) {
		CASE(by_value);
		CASE(by_value_of_one);
		CASE(rows);
		CASE(rows_in_buffers);
		CASE(waited_for);
		CASE(next_receive);
	}
	return check_done();
}
