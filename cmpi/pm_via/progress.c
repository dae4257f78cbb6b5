/* HOT. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: one pass over everything that may have happened, in the order of the C-MPI device check: arrived packets, then
 * completed sends, connections, the flow list, completions owed to the user.  Receives are always polled, whatever the
 * caller waits for (deadlock case 8).
 *
 * A handler runs after its packet has left all queues and before its vbuf is used again, so it may call cmpi_progress:
 * later packets of the peer are then handled inside, and the order in which handlers *begin* is still that of the sends.
 * With several threads, one at a time is in here; another's call returns 0 at once.
 */
#include "cmpi/pm_via/copy.h"
#include "cmpi/pm_via/flow.h"

enum {
	PASS_PACKETS = 64, /* packets of one pass, short ones */
	PASS_PART = 1024,  /* bytes that count as one more */
	ROW = 16,          /* packets that are taken together, short ones; */
	ROW_BUFFERS = 8,   /* those in buffers: rows of 16 were slower by a fifth, perhaps since the NIC then has few in hand to give back to the peer */
	NEAR_LOOKS = 8,    /* at one peer only, at most, before everybody is asked; fewer while others send, too */
	NEAR_MANY = 4,     /* times as many, at less each, for one message that is waited for */
	QUICK_LOOKS = 3,   /* the same after transfers that were over at once */
	LOOK_PASSES = 16,  /* passes between looks for processes that want to connect, and at how long nothing has come */
};

/* One word per thread; its address names the thread, where there are several. */
static _Thread_local char thread_name;

/* Everything that is not an active message.  `data` may lie where the peer can write: the fixed part is copied first. */
static __attribute__((noinline)) bool dispatch(struct cmpi_proc *proc, const struct via_header *header, const uint8_t *data,
                                               size_t len)
{
	union {
		struct via_eager_start eager;
		struct via_rendezvous_start start;
		struct via_rendezvous_reply reply;
		struct via_r3_data r3;
		struct via_finish finish;
		struct via_atomic_request request;
		struct via_atomic_reply answer;
	} p;
	static const uint8_t fixed[VIA_PKT_COUNT] = {
#define X(name, credited, size) [VIA_PKT_##name] = size,
		VIA_PACKET_LIST(X)
#undef X
	};
	size_t size = fixed[header->type];

	if (len < size)
		return false;
	memcpy(&p, data, size);
	switch (header->type) {
	case VIA_PKT_EAGER_START:
		return len == size && via_eager_start(proc, &p.eager.envelope);
	case VIA_PKT_EAGER_NEXT:
		return via_eager_next(proc, data + size, len - size);
	case VIA_PKT_RENDEZVOUS_START:
		return via_rndv_start(proc, &p.start);
	case VIA_PKT_RENDEZVOUS_REPLY:
		return via_rndv_reply(proc, &p.reply);
	case VIA_PKT_R3_DATA:
		return via_r3_data(proc, p.r3.rreq, data + size, len - size);
	case VIA_PKT_RPUT_FINISH:
		return via_rput_finish(proc, p.finish.req);
	case VIA_PKT_RGET_FINISH:
		return via_rget_finish(proc, p.finish.req);
	case VIA_PKT_ATOMIC_REQUEST:
		return via_atomic_request(proc, &p.request);
	case VIA_PKT_ATOMIC_REPLY:
		return via_atomic_reply(proc, &p.answer);
	case VIA_PKT_CANCEL_REQUEST:
		return via_cancel_request(proc, p.finish.req);
	case VIA_PKT_CANCEL_REPLY:
		return via_cancel_reply(proc, p.finish.req, header->tag != 0);
	case VIA_PKT_BYE:
		proc->bye_in = true;
		return true;
	default:
		return false;
	}
}

static inline void am(struct cmpi *c, struct cmpi_proc *proc, unsigned tag, uint8_t *data, size_t len)
{
	VIA_COUNT(c, am_received);
	if (via_unlikely(!c->am || c->closing))
		return;
	via_unlock(c);
	c->am(c->arg, proc, tag, data + sizeof(struct via_header), len - sizeof(struct via_header));
	via_lock(c);
}

/* A NOOP: no credit, no sequence number, nothing to hand on.  The vbuf, NULL when it came by value, is posted again. */
static __attribute__((noinline)) bool uncredited(struct cmpi_proc *proc, const struct via_header *header, const uint8_t *data,
                                                 struct via_vbuf *v, size_t len)
{
	struct via_noop noop;

	memcpy(&noop, data, sizeof(noop));
	if (!via_flow_noop_in(proc, header, v))
		return false;
	proc->eager_consumed = noop.consumed;
	if (header->tag == VIA_NOOP_BYE)
		proc->bye_in = true;
	return len == sizeof(noop);
}

/* The packets that are most of them: whole messages. */
static inline bool is_message(uint8_t type)
{
	return type == VIA_PKT_AM || type == VIA_PKT_EAGER;
}

/* Whose header is booked.  False: the peer broke the protocol. */
static inline bool message(struct cmpi *c, struct cmpi_proc *proc, const struct via_header *header, uint8_t *data, size_t len)
{
	if (header->type == VIA_PKT_EAGER)
		return via_likely(!c->closing) ? via_eager(proc, data, len) : true;
	am(c, proc, header->tag, data, len);
	return true;
}

/* A packet by value that is no good message; true: it is another good one. */
static __attribute__((noinline)) bool odd_value(struct cmpi_proc *proc, const struct via_header *header, uint8_t *data, size_t len)
{
	if (len < sizeof(*header) || header->type >= VIA_PKT_COUNT || is_message(header->type))
		return false;
	if (header->type == VIA_PKT_NOOP)
		return uncredited(proc, header, data, NULL, len);
	return via_flow_credited(proc, header, true) && dispatch(proc, header, data, len);
}

/* A packet that cannot be one. */
static __attribute__((noinline)) void broken(struct cmpi_proc *proc, unsigned type, size_t len)
{
	via_conn_fail(proc, "it broke the protocol (packet type %u of %zu bytes)", type, len);
}

/* The packet in `v`, which is given back or posted again. */
static inline void packet(struct cmpi *c, struct cmpi_proc *proc, struct via_vbuf *v)
{
	uint32_t status = v->desc.CS.Status, len = v->desc.CS.Length;
	uint8_t *data = v->small;
	struct via_header header;
	bool good = false;

	if (status & VIP_STATUS_POOL)
		data = v->desc.DS[1].Local.Data.Address;
	memcpy(&header, data, sizeof(header));
	if (via_unlikely(header.type == VIA_PKT_NOOP) && !(status & VIP_STATUS_POOL)) {
		if (!uncredited(proc, &header, data, v, len))
			broken(proc, header.type, len);
		return;
	}
	if (via_likely(len >= sizeof(header) && header.type < VIA_PKT_COUNT))
		good = via_flow_credited(proc, &header, false);
	else
		via_flow_taken(proc);
	if (via_likely(good && is_message(header.type)))
		good = message(c, proc, &header, data, len);
	else
		good = good && dispatch(proc, &header, data, len);
	if (via_unlikely(!good))
		broken(proc, header.type, len);
	if (status & VIP_STATUS_POOL)
		VipxGiveBuffer(c->nic, data);
	via_vbuf_give(c, v);
	via_flow_replace(proc);
}

/* A packet has come by value on a connection that is not simply connected; true: it counts. */
static __attribute__((noinline)) bool live(struct cmpi_proc *proc)
{
	if (proc->state == VIA_CONN_CONNECTING)
		via_conn_poll(proc);
	return proc->state <= VIA_CONN_BREAKING;
}

/*
 * What a packet takes of a pass.  Long ones, which come in buffers, take more: a pass that goes on behind what its caller waits for finds
 * messages of a peer that is ahead, and those whose receives are not posted yet Open MPI copies once more.
 */
static inline uint32_t cost(uint32_t len)
{
	return 1 + len / PASS_PART;
}

/* A packet by value: no vbuf, no receive used up. */
static inline void value(struct cmpi *c, struct cmpi_proc *proc, uint8_t *data, uint32_t len)
{
	struct via_header header;
	bool good;

	if (via_unlikely(proc->state != VIA_CONN_CONNECTED) && !live(proc))
		return;
	memcpy(&header, data, sizeof(header));
	if (via_likely(is_message(header.type) && len >= sizeof(header) && via_flow_credited(proc, &header, true)))
		good = message(c, proc, &header, data, len);
	else
		good = odd_value(proc, &header, data, len);
	if (via_unlikely(!good))
		broken(proc, header.type, len);
	via_flow_noop(proc);
	VIA_ASSERT(via_flow_holds(proc));
}

/* A packet in a buffer has been handled; its handler may have made progress. */
static inline void been_read(struct cmpi *c, uint8_t *data, uint32_t len)
{
	if (via_unlikely(c->surplus)) {
		c->surplus = false;
		VipxBufferRead(c->nic, data, len);
	}
}

/* Perhaps in a buffer.  Returns what it takes of the pass. */
static inline uint32_t arrival_by_value(struct cmpi *c, struct cmpi_proc *proc, const VIPX_ARRIVAL *arrival)
{
	if (via_unlikely(arrival->Buffer && arrival->Surplus))
		c->surplus = true;
	value(c, proc, arrival->Message, arrival->Length);
	if (!arrival->Buffer)
		return 1;
	been_read(c, arrival->Message, arrival->Length);
	VipxGiveBuffer(c->nic, arrival->Buffer);
	return cost(arrival->Length);
}

/*
 * Packets of one peer that have come behind each other are taken together, short ones or those in buffers.  A handler may make progress itself: then
 * the rest of the row comes first.
 */
struct via_row {
	struct cmpi_proc *proc;
	uint8_t *next, *booked, *end; /* booked: up to here the headers are */
	uint8_t type; /* of those that are booked */
	bool plain, buffers;
	union {
		VIPX_BRIEF brief[ROW];
		VIPX_MESSAGE message[ROW_BUFFERS];
	} packet;
};

/* The headers of packets from the next one on, as many as are alike; none: it is an odd one. */
static inline void book(struct cmpi *c, struct via_row *row, bool buffers)
{
	uint8_t type = *via_row_data(row->next, buffers);
	uint32_t n = (uint32_t)((size_t)(row->end - row->next) / via_row_stride(buffers));

	row->booked = row->next;
	if (via_likely(is_message(type)))
		row->booked += via_flow_credited_row(row->proc, type, row->next, n, buffers) * via_row_stride(buffers);
	row->type = type;
	row->plain = type == VIA_PKT_AM && !c->engine.threads;
}

/* The next packet, which leaves the row.  In buffers the one behind is asked for while the handler is still at this one. */
static inline uint8_t *leave_row(struct cmpi *c, struct via_row *row, bool buffers)
{
	uint8_t *packet = row->next;

	row->next += via_row_stride(buffers);
	if (buffers && ((VIPX_MESSAGE *)(void *)packet)->Surplus)
		c->surplus = true;
	if (buffers && row->next < row->end)
		via_ask_for(via_row_data(row->next, true), via_row_length(row->next, true));
	return packet;
}

/*
 * Messages that are booked: active ones, in a process of one thread.  A handler may break the connection, but what has arrived is still
 * delivered; and nothing takes it down before the row is over, since a handler's own progress begins with the rest of it.  When all is closed no
 * connection is one whose packets are booked.
 */
static inline void hand_over(struct cmpi *c, struct via_row *row, bool buffers)
{
	while (row->next < row->booked && via_likely(c->am != NULL)) {
		uint8_t *packet = leave_row(c, row, buffers), *data = via_row_data(packet, buffers);

		VIA_COUNT(c, am_received);
		c->am(c->arg, row->proc, data[offsetof(struct via_header, tag)], data + sizeof(struct via_header),
		      via_row_length(packet, buffers) - sizeof(struct via_header));
		if (buffers)
			been_read(c, via_row_data(packet, true), via_row_length(packet, true));
	}
}

/* Any message that is booked. */
static inline void booked(struct cmpi *c, struct cmpi_proc *proc, uint8_t type, uint8_t *data, uint32_t len)
{
	struct via_header header;

	memcpy(&header, data, sizeof(header));
	header.type = type; /* a buffer is foreign memory */
	if (via_unlikely(!message(c, proc, &header, data, len)))
		broken(proc, header.type, len);
}

static inline __attribute__((always_inline)) void finish_row_of(struct cmpi *c, struct via_row *row, bool buffers)
{
	struct cmpi_proc *proc = row->proc;

	while (row->next < row->end) {
		uint8_t *packet;

		if (row->next >= row->booked)
			book(c, row, buffers);
		if (via_likely(row->plain))
			hand_over(c, row, buffers);
		if (row->next == row->end)
			break;
		packet = leave_row(c, row, buffers);
		if (packet < row->booked)
			booked(c, proc, row->type, via_row_data(packet, buffers), via_row_length(packet, buffers));
		else
			value(c, proc, via_row_data(packet, buffers), via_row_length(packet, buffers));
		if (buffers)
			been_read(c, via_row_data(packet, true), via_row_length(packet, true));
	}
	via_flow_noop(proc);
	VIA_ASSERT(via_flow_holds(proc));
}

static __attribute__((noinline)) void finish_briefs(struct cmpi *c, struct via_row *row)
{
	finish_row_of(c, row, false);
}

static __attribute__((noinline)) void finish_buffers(struct cmpi *c, struct via_row *row)
{
	finish_row_of(c, row, true);
}

/* In a handler. */
static __attribute__((noinline)) int rest_of_row(struct cmpi *c)
{
	const struct via_row *row = c->row;
	int n = (int)((size_t)(row->end - row->next) / via_row_stride(row->buffers));

	(row->buffers ? finish_buffers : finish_briefs)(c, c->row);
	return n;
}

/* The packets behind one of that peer, some of them at most, and those in buffers not longer than so; how many. */
static inline uint32_t take_row_of(struct cmpi *c, struct cmpi_proc *proc, uint32_t most, uint32_t longest, bool buffers)
{
	struct via_row row, *outer = c->row;
	uint32_t bound = buffers ? ROW_BUFFERS : ROW, n;

	most = most < bound ? most : bound;
	n = (uint32_t)(buffers ? VipxRecvTakeBuffers(proc->vi, row.packet.message, most, longest) : VipxRecvTakeRow(proc->vi, row.packet.brief, most));
	if (!n)
		return 0;
	row.proc = proc;
	row.buffers = buffers;
	row.next = row.booked = (uint8_t *)&row.packet;
	row.end = row.next + n * via_row_stride(buffers);
	c->row = &row;
	(buffers ? finish_buffers : finish_briefs)(c, &row);
	c->row = outer;
	if (buffers)
		VipxGiveBuffers(c->nic, row.packet.message, n);
	return n;
}

static inline uint32_t take_row(struct cmpi *c, struct cmpi_proc *proc, uint32_t most)
{
	return take_row_of(c, proc, most, 0, false);
}

/* As many as there are: a row that is not full was the last, or the link's next lap begins behind it, which the next look sees. */
static __attribute__((noinline)) uint32_t take_rows(struct cmpi *c, struct cmpi_proc *proc, uint32_t most)
{
	uint32_t n = 0, row;

	do {
		row = take_row(c, proc, most - n);
		n += row;
	} while (row == ROW && n < most);
	return n;
}

/* The same behind one in a buffer, which took so much of the pass: those that take no more each, until nothing is left of it. */
static __attribute__((noinline)) uint32_t take_buffers(struct cmpi *c, struct cmpi_proc *proc, uint32_t each, uint32_t left)
{
	uint32_t most = 1 + (left - 1) / each, n = 0, row;

	do {
		row = take_row_of(c, proc, most - n, each * PASS_PART - 1, true);
		n += row;
	} while (row == ROW_BUFFERS && n < most);
	return n;
}

/* The peer has sent a packet by value: is it another one than the last? */
static inline void nearest(struct cmpi *c, struct cmpi_proc *proc)
{
	if (via_likely(c->near == proc))
		return;
	c->near = proc;
	c->near_trust = 0;
}

/* A receive has completed on a connection that is not simply connected; true: it carries a packet to be handled. */
static __attribute__((noinline)) bool unusual(struct cmpi_proc *proc, struct via_vbuf *v)
{
	if (proc->state == VIA_CONN_CONNECTING)
		via_conn_poll(proc);
	if (!(v->desc.CS.Status & VIP_STATUS_ERROR_MASK) && proc->state <= VIA_CONN_BREAKING)
		return true;
	via_conn_flushed(proc, v);
	return false;
}

/* The receive `v` has completed. */
static inline void arrived(struct cmpi *c, struct via_vbuf *v)
{
	struct cmpi_proc *proc = v->owner;

	if (via_unlikely(v->desc.CS.Status & VIP_STATUS_ERROR_MASK || proc->state != VIA_CONN_CONNECTED) && !unusual(proc, v))
		return;
	c->near_trust = 0;
	packet(c, proc, v);
	c->recent = proc;
	via_flow_noop(proc);
	VIA_ASSERT(via_flow_holds(proc));
}

/*
 * When a pass ends depends on what the last one found, so many `packets` that took `n`: looking for one more costs time, which the
 * answer to a single message should not have to wait for.  That a stream pauses does not yet say that it is over.  A row is the exception: where it
 * is full the next is taken, too.
 */
static inline void spend(struct cmpi *c, uint32_t budget, uint32_t n, uint32_t packets)
{
	uint32_t next = n >= budget ? 2 * budget : packets == 1 ? 1 : packets ? n : budget / 2;

	c->budget = next > PASS_PACKETS ? PASS_PACKETS : next ? next : 1;
}

/* Takes packets off the completion queue; *empty: none is left. */
static inline int packets(struct cmpi *c, bool *empty)
{
	uint32_t budget = c->budget, n, found = 0, row, each;
	VIPX_ARRIVAL arrival;

	for (n = 0; n < budget; found++) {
		VIP_RETURN result = VipxCQTake(c->cq, &arrival);

		if (result == VIP_NOT_DONE) {
			spend(c, budget, n, found);
			*empty = true;
			return (int)n;
		}
		if (arrival.Descriptor) {
			n += cost(((struct via_vbuf *)arrival.Descriptor)->desc.CS.Length);
			arrived(c, (struct via_vbuf *)arrival.Descriptor);
		} else if (via_likely(result == VIP_SUCCESS)) {
			nearest(c, arrival.User);
			each = arrival_by_value(c, arrival.User, &arrival);
			n += each;
			if (n >= budget)
				continue; /* no more: others may have sent, too */
			row = arrival.Buffer ? take_buffers(c, arrival.User, each, budget - n) : take_row(c, arrival.User, budget - n);
			n += arrival.Buffer ? row * each : row;
			found += row;
		} else {
			n++;
		}
	}
	spend(c, budget, n, found);
	*empty = false;
	return (int)n;
}

/* What is left to do besides packets; n things were done before. */
static __attribute__((noinline)) int chores(struct cmpi *c, int n, bool empty)
{
	if (n == 0 && c->recent)
		via_flow_idle(c);
	if (c->sending)
		n += via_send_reap(c);
	while (c->flow && via_flow_run(c))
		n++;
	if (c->group_work)
		n += via_group_run(c);
	if (c->done)
		n += via_completion_run(c);
	if (c->lost)
		n += via_conn_report(c, empty);
	return n;
}

static __attribute__((noinline)) int looks(struct cmpi *c, int n)
{
	int events = via_conn_progress(c);

	if (!c->engine.threads && !c->crowded)
		via_wait_watch(c, LOOK_PASSES * (1 + c->near_trust), n + events); /* near looks are passes, too */
	return events;
}

/* The packet has come by the short way; others of the same peer may follow. */
static __attribute__((noinline)) int near_packets(struct cmpi *c, struct cmpi_proc *proc, VIPX_ARRIVAL *arrival)
{
	uint32_t budget = c->budget, n = 0, found = 0, row, each;

	c->near_trust += c->near_trust < NEAR_LOOKS - 1;
	do {
		each = arrival_by_value(c, proc, arrival);
		n += each;
		found++;
		if (n >= budget)
			break;
		row = arrival->Buffer ? take_buffers(c, proc, each, PASS_PACKETS - n) : take_rows(c, proc, PASS_PACKETS - n);
		n += arrival->Buffer ? row * each : row;
		found += row;
	} while (n < budget && VipxRecvTake(proc->vi, arrival) == VIP_SUCCESS);
	spend(c, budget, n, found);
	return (int)n;
}

/* The peer that sent the last packet by value is likely to send the next: it is asked first, by the short way. */
static inline int near(struct cmpi *c)
{
	struct cmpi_proc *proc = c->near;
	VIPX_ARRIVAL arrival;

	arrival.Message = NULL;
	if (via_likely(VipxRecvTake(proc->vi, &arrival) != VIP_SUCCESS)) {
		if (via_unlikely(!arrival.Message)) /* something else has come from there */
			c->near_left = 0;
		return 0;
	}
	return near_packets(c, proc, &arrival);
}

/* Everybody, and everything else. */
static __attribute__((noinline)) int all(struct cmpi *c)
{
	bool empty;
	int n;

	c->near_left = 1 + c->near_trust;
	c->quick = QUICK_LOOKS;
	n = packets(c, &empty);
	if (via_unlikely(c->connecting || ++c->passes % LOOK_PASSES == 0))
		n += looks(c, n);
	/* One branch for what is mostly not there. */
	if (via_unlikely((uintptr_t)c->recent | (uintptr_t)c->sending | (uintptr_t)c->flow | (uintptr_t)c->done | (uintptr_t)c->lost |
	                 (uintptr_t)c->group_work))
		n = chores(c, n, empty);
	return n;
}

/*
 * What comes before everybody is asked: the rest of a row, or a group's operation that a NIC elsewhere has finished.  To see that takes one look, and
 * what waits for it is likely to be all that the caller wants; everything else is put off by it no more often than by transfers that were over at once.
 */
static __attribute__((noinline)) int first(struct cmpi *c)
{
	int n = c->row ? rest_of_row(c) : 0;

	if (n || !c->group_work || !c->quick)
		return n;
	n = via_group_run(c);
	if (n) {
		c->quick--;
		via_completion_run(c);
	}
	return n;
}

/* hasty: a pass that finds nothing may be one look at the near peer. */
static inline int pass(struct cmpi *c, bool hasty)
{
	int n;

	if (via_unlikely((uintptr_t)c->row | c->groups_first) && (n = first(c)))
		return n;
	if (via_likely(c->near && c->near_left)) {
		c->near_left--;
		n = near(c);
		if (n || (hasty && c->near_left))
			return n;
	}
	return all(c);
}

/* One pass, under the lock. */
int via_progress(struct cmpi *c)
{
	return pass(c, false);
}

/* Several threads, or short cores: then it matters what the program does between two passes. */
static __attribute__((noinline)) int careful(struct cmpi *c)
{
	const void *self = c->engine.threads ? (const void *)&thread_name : c, *owner;
	int n = 0;

	via_lock(c);
	owner = c->progress_owner;
	if (!owner || owner == self) {
		c->progress_owner = self;
		via_wait_look(c);
		n = pass(c, false);
		c->progress_owner = owner;
		if (n)
			c->idle = 0;
		else if (!(++c->idle & c->idle_mask) && (c->idle_mask || !via_wait_spared(c))) {
			via_wait(c);
			n = via_wait_lends(c);
		}
	}
	via_unlock(c);
	return n;
}

int cmpi_progress(struct cmpi *c)
{
	/* Relaxed: with several threads the answer does not matter, and with one it is this thread's own. */
	return via_likely(!(c->engine.threads | __atomic_load_n(&c->crowded, __ATOMIC_RELAXED))) ? pass(c, true) : careful(c);
}

/* Who sends it is looked at for that message only; when it does not come, everybody for everything. */
int cmpi_progress_for(struct cmpi *c, struct cmpi_proc *from, struct cmpi_req *req)
{
	if (via_unlikely(c->engine.threads | __atomic_load_n(&c->crowded, __ATOMIC_RELAXED))) /* relaxed: as above */
		return careful(c);
	from = via_likely(from != NULL) ? from : c->near;
	if (via_unlikely(!from || !c->near_left || c->row || c->groups_first))
		return pass(c, true);
	switch (via_eager_expected(from, req, NEAR_MANY * c->near_left)) {
	case CMPI_OK:
		nearest(c, from);
		c->near_trust += c->near_trust < NEAR_LOOKS - 1;
		if (via_unlikely(++c->awaited % PASS_PACKETS == 0))
			c->near_left = 0; /* as many as a pass takes: others have their turn also while all that is waited for is there */
		return 1;
	case CMPI_AGAIN:
		c->near_left = 1;
		return pass(c, false);
	default:
		return pass(c, true);
	}
}
