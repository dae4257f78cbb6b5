/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache.  Registers whole pages, finds them again by the first page (the most recent entry is looked at
 * before the hash), keeps unused registrations until there is no room, then drops the least recently used.
 *
 * A cached registration of memory that the program has unmapped since does this process no harm: registration here pins nothing and
 * names addresses, not pages, so malloc need not be hooked.  But who was given the key of such memory must not use it any more: what
 * the NIC of this process reads or writes for a peer it does as the process would.  What a user gets is a record of exactly the range asked for.
 *
 * Memory that is registered again and again gets large pages, one after the other as it is used.
 *
 * When nothing can be dropped, registration fails and the caller falls back: rendezvous to R3, a put or get to an error.
 */
#include <time.h>

#include "cmpi/pm_via/via.h"

enum {
	PAGE = 4096,
	LARGE_AFTER = 64 << 20, /* bytes moved for one large page, at least */
	LARGE_PRICE = 128,      /* and for each nanosecond that one takes: it saves about as much in moving them */
	LARGE_REAL = 100000,    /* nanoseconds: what takes less has been refused, or was a large page before */
	LARGE_ROUNDS = 6,       /* after each round over the entry twice as much, so many times */
	LARGE_MOST = 8,         /* at once, */
	LARGE_LONG = 1000000,   /* and none after so many nanoseconds: where free memory is in small pieces, or a hypervisor has yet to find it, each may take 5 or 20 million; */
	LARGE_SHARE = 4,        /* then it goes on when this has been one part of so many of the time since */
};

/* However long one took: it may have been this process that was stopped. */
static const uint64_t LARGE_DEAREST = (uint64_t)LARGE_AFTER << LARGE_ROUNDS;

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t page_bucket(uint64_t base)
{
	return (uint32_t)((base / PAGE * 0x9E3779B97F4A7C15u) >> 54) % VIA_DREG_BUCKETS;
}

static uint32_t handle_bucket(uint32_t handle)
{
	return handle % VIA_DREG_BUCKETS;
}

static bool covers(const struct via_dreg_entry *e, uint64_t base, uint64_t len, unsigned access)
{
	return base >= e->base && len <= e->len && base - e->base <= e->len - len && !(access & ~e->access);
}

/* ---- the list of unused entries ------------------------------------------------------------------------------------ */

static void unused_remove(struct via_dreg *d, struct via_dreg_entry *e)
{
	*(e->newer ? &e->newer->older : &d->newest) = e->older;
	*(e->older ? &e->older->newer : &d->oldest) = e->newer;
}

static void unused_add(struct via_dreg *d, struct via_dreg_entry *e)
{
	e->newer = NULL;
	e->older = d->newest;
	*(d->newest ? &d->newest->newer : &d->oldest) = e;
	d->newest = e;
}

/* ---- entries --------------------------------------------------------------------------------------------------------- */

static struct via_dreg_entry *find(struct via_dreg *d, uint64_t base, uint64_t len, unsigned access)
{
	struct via_dreg_entry *e = d->recent;

	if (via_likely(e && covers(e, base, len, access)))
		return e;
	for (e = d->page[page_bucket(base)]; e; e = e->chain)
		if (covers(e, base, len, access))
			break;
	return e;
}

static void destroy(struct cmpi *c, struct via_dreg_entry *e)
{
	struct via_dreg *d = &c->dreg;
	struct via_dreg_entry **at;

	for (at = &d->page[page_bucket(e->base)]; *at != e; at = &(*at)->chain)
		;
	*at = e->chain;
	for (at = &d->by_handle[handle_bucket(e->handle)]; *at != e; at = &(*at)->handle_chain)
		;
	*at = e->handle_chain;
	if (d->recent == e)
		d->recent = NULL;
	d->entries--;
	VipDeregisterMem(c->nic, (void *)(uintptr_t)e->base, e->handle);
	e->chain = d->free_entries;
	d->free_entries = e;
}

static bool evict(struct cmpi *c)
{
	struct via_dreg_entry *e = c->dreg.oldest;

	if (!e)
		return false;
	unused_remove(&c->dreg, e);
	destroy(c, e);
	VIA_COUNT(c, dreg_evictions);
	return true;
}

static bool nic_register(struct cmpi *c, struct via_dreg_entry *e)
{
	VIP_MEM_ATTRIBUTES attr = {
		.Ptag = c->ptag,
		.EnableRdmaWrite = (e->access & CMPI_ACCESS_REMOTE_WRITE) != 0,
		.EnableRdmaRead = (e->access & CMPI_ACCESS_REMOTE_READ) != 0,
	};

	while (VipRegisterMem(c->nic, (void *)(uintptr_t)e->base, e->len, &attr, &e->handle) != VIP_SUCCESS)
		if (!evict(c))
			return false;
	return true;
}

static struct via_dreg_entry *entry_alloc(struct cmpi *c)
{
	struct via_dreg_entry *e = c->dreg.free_entries;

	if (!e)
		return via_chunk(c, sizeof(*e));
	c->dreg.free_entries = e->chain;
	*e = (struct via_dreg_entry){0};
	return e;
}

/* So many bytes moved are worth the next large page under it, as far as is known. */
static uint64_t large_worth(const struct via_dreg *d, const struct via_dreg_entry *e)
{
	return (d->large_price > LARGE_AFTER ? d->large_price : LARGE_AFTER) << e->large_round;
}

static struct via_dreg_entry *create(struct cmpi *c, uint64_t base, uint64_t len, unsigned access)
{
	struct via_dreg *d = &c->dreg;
	struct via_dreg_entry *e, **head;

	if (d->entries >= c->params.dreg_entries && !evict(c))
		return NULL;
	e = entry_alloc(c);
	if (!e)
		return NULL;
	e->base = base & ~(uint64_t)(PAGE - 1);
	e->len = ((base + len + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - e->base;
	e->access = access;
	e->large_after = large_worth(d, e);
	e->large_next = e->base;
	if (!nic_register(c, e)) {
		e->chain = d->free_entries;
		d->free_entries = e;
		return NULL;
	}
	head = &d->page[page_bucket(e->base)];
	e->chain = *head;
	*head = e;
	head = &d->by_handle[handle_bucket(e->handle)];
	e->handle_chain = *head;
	*head = e;
	d->entries++;
	VIA_COUNT(c, dreg_misses);
	return e;
}

/*
 * The entry has been used for so much that the next large page under it is worth its price.  The program may have put other
 * memory there since, or a copy may be under way just now: so the rounds go on, but at growing intervals.
 */
static __attribute__((noinline)) void large_pages(struct cmpi *c, struct via_dreg_entry *e)
{
	struct via_dreg *d = &c->dreg;
	uint64_t from, last, now, price;

	if (e->used < (e->large_after = large_worth(d, e))) /* they were cheaper when that was worked out */
		return;
	from = last = nanoseconds();
	if (from < d->large_rest) {
		e->used -= e->large_after / 8; /* a little later */
		return;
	}
	for (int n = 0; e->used >= e->large_after && n < LARGE_MOST && last - from < LARGE_LONG; n++, last = now) {
		e->used -= e->large_after;
		VipxLargePage(c->nic, (void *)(uintptr_t)e->large_next);
		now = nanoseconds();
		price = (now - last) * LARGE_PRICE;
		if (now - last >= LARGE_REAL)
			d->large_price = (d->large_price + (price < LARGE_DEAREST ? price : LARGE_DEAREST)) / 2;
		e->large_next = (e->large_next & ~(uint64_t)(VIPX_LARGE_PAGE - 1)) + VIPX_LARGE_PAGE;
		if (e->large_next - e->base >= e->len) {
			e->large_next = e->base;
			e->large_round += e->large_round < LARGE_ROUNDS;
		}
		e->large_after = large_worth(d, e);
	}
	if (e->used > e->large_after)
		e->used = e->large_after;
	if (last - from >= LARGE_LONG)
		d->large_rest = from + (last - from) * LARGE_SHARE;
}

/* ---- records of users ------------------------------------------------------------------------------------------------ */

static struct via_reg *reg_alloc(struct cmpi *c)
{
	struct via_reg *reg = c->dreg.free_regs;

	if (!reg)
		return via_chunk(c, sizeof(*reg));
	c->dreg.free_regs = reg->next_free;
	return reg;
}

static void used(struct cmpi *c, struct via_dreg_entry *e, size_t len)
{
	e->used += len;
	if (via_unlikely(e->used >= e->large_after))
		large_pages(c, e);
	c->dreg.recent = e;
}

/* Of memory that is registered already, for a use that is over before anything can be dropped; 0: it is not. */
uint32_t via_dreg_handle(struct cmpi *c, uint64_t base, size_t len)
{
	struct via_dreg_entry *e = find(&c->dreg, base, len, CMPI_ACCESS_LOCAL);

	if (!e)
		return 0;
	VIA_COUNT(c, dreg_hits);
	if (!e->refs && e->newer) { /* used just now, so the last to be dropped */
		unused_remove(&c->dreg, e);
		unused_add(&c->dreg, e);
	}
	used(c, e, len);
	return e->handle;
}

/* NULL: nothing could be registered and nothing dropped to make room. */
struct cmpi_reg *via_dreg_register(struct cmpi *c, uint64_t base, size_t len, unsigned access)
{
	struct via_dreg_entry *e;
	struct via_reg *reg;

	if (!len || base + len < base)
		return NULL;
	reg = reg_alloc(c);
	if (!reg)
		return NULL;
	e = find(&c->dreg, base, len, access);
	if (e) {
		VIA_COUNT(c, dreg_hits);
		if (!e->refs)
			unused_remove(&c->dreg, e);
	} else {
		e = create(c, base, len, access);
	}
	if (!e) {
		reg->next_free = c->dreg.free_regs;
		c->dreg.free_regs = reg;
		return NULL;
	}
	e->refs++;
	used(c, e, len);
	reg->reg.key = (struct cmpi_key){.base = base, .len = len, .handle = e->handle, .access = (uint16_t)access};
	reg->reg.key.check = via_key_check(&reg->reg.key);
	reg->reg.entry = e;
	return &reg->reg;
}

void via_dreg_deregister(struct cmpi *c, struct cmpi_reg *user)
{
	struct via_reg *reg = (struct via_reg *)user;
	struct via_dreg_entry *e = user->entry;

	reg->next_free = c->dreg.free_regs;
	c->dreg.free_regs = reg;
	if (--e->refs)
		return;
	if (c->params.lazy_deregister)
		unused_add(&c->dreg, e);
	else
		destroy(c, e);
}

/* Is this range of our memory registered and in use for that access?  A peer's word for it is not enough. */
bool via_dreg_check(struct cmpi *c, uint32_t handle, uint64_t addr, size_t len, unsigned access)
{
	const struct via_dreg_entry *e = c->dreg.by_handle[handle_bucket(handle)];

	while (e && e->handle != handle)
		e = e->handle_chain;
	return e && e->refs && covers(e, addr, len, access);
}

/* The handle of any registration in use that allows it; 0: there is none. */
uint32_t via_dreg_granting(const struct cmpi *c, uint64_t addr, size_t len, unsigned access)
{
	for (uint32_t i = 0; i < VIA_DREG_BUCKETS; i++)
		for (const struct via_dreg_entry *e = c->dreg.page[i]; e; e = e->chain)
			if (e->refs && covers(e, addr, len, access))
				return e->handle;
	return 0;
}

void via_dreg_fini(struct cmpi *c)
{
	for (uint32_t i = 0; i < VIA_DREG_BUCKETS; i++)
		while (c->dreg.page[i])
			destroy(c, c->dreg.page[i]);
	c->dreg.newest = c->dreg.oldest = NULL;
}

int cmpi_mem_register(struct cmpi *c, void *base, size_t len, unsigned access, struct cmpi_reg **out)
{
	const unsigned all = CMPI_ACCESS_REMOTE_READ | CMPI_ACCESS_REMOTE_WRITE | CMPI_ACCESS_REMOTE_ATOMIC;
	struct cmpi_reg *reg;

	if (!base || !len || access & ~all)
		return CMPI_PARAMETER;
	via_lock(c);
	reg = via_dreg_register(c, (uintptr_t)base, len, access);
	via_unlock(c);
	if (!reg)
		return CMPI_RESOURCE;
	*out = reg;
	return CMPI_OK;
}

void cmpi_mem_deregister(struct cmpi *c, struct cmpi_reg *reg)
{
	if (!reg)
		return;
	via_lock(c);
	via_dreg_deregister(c, reg);
	via_unlock(c);
}
