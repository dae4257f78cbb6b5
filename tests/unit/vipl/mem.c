/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection tags and registered memory in one process: what is refused, what is remembered, the null tag.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/vipl/one.h"

static void registering(void)
{
	struct one o;
	VIP_MEM_ATTRIBUTES attr = { 0 }, got;
	VIP_MEM_HANDLE h[3] = { 0 };
	char stack[100];

	one_open(&o);
	attr.Ptag = o.ptag;
	/* Not page aligned, one byte, the same bytes again with other rights. */
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, stack + 1, 1, &attr, &h[0]));
	attr.EnableRdmaWrite = VIP_TRUE;
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, stack + 1, 1, &attr, &h[1]));
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, o.mem + 4095, 4098, &attr, &h[2]));
	CHECK(h[0] && h[1] && h[2] && h[0] != h[1] && h[1] != h[2] && h[0] != h[2]);
	VIP(VIP_SUCCESS, VipQueryMem(o.nic, stack + 1, h[0], &got));
	CHECK(got.Ptag == o.ptag && !got.EnableRdmaWrite && !got.EnableRdmaRead);
	VIP(VIP_SUCCESS, VipQueryMem(o.nic, stack + 1, h[1], &got));
	CHECK(got.Ptag == o.ptag && got.EnableRdmaWrite && !got.EnableRdmaRead);
	VIP(VIP_INVALID_PARAMETER, VipQueryMem(o.nic, stack + 1, h[2], &got));
	VIP(VIP_INVALID_PARAMETER, VipQueryMem(o.nic, stack + 1, 0, &got));
	VIP(VIP_INVALID_PARAMETER, VipQueryMem(o.nic, stack + 1, 0xFFFFFFFF, &got));
	attr.EnableRdmaWrite = VIP_FALSE;
	attr.EnableRdmaRead = VIP_TRUE;
	VIP(VIP_SUCCESS, VipSetMemAttributes(o.nic, stack + 1, h[0], &attr));
	VIP(VIP_SUCCESS, VipQueryMem(o.nic, stack + 1, h[0], &got));
	CHECK(got.Ptag == o.ptag && !got.EnableRdmaWrite && got.EnableRdmaRead);
	VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(o.nic, stack, h[0] + 100000));
	for (int i = 0; i < 3; i++) {
		VIP(VIP_SUCCESS, VipDeregisterMem(o.nic, i == 2 ? o.mem + 4095 : stack + 1, h[i]));
		VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(o.nic, i == 2 ? o.mem + 4095 : stack + 1, h[i]));
		VIP(VIP_INVALID_PARAMETER, VipQueryMem(o.nic, stack + 1, h[i], &got));
		VIP(VIP_INVALID_PARAMETER, VipSetMemAttributes(o.nic, stack + 1, h[i], &attr));
	}
	one_close(&o);
}

static void refused_ranges(void)
{
	struct one o;
	VIP_MEM_ATTRIBUTES attr = { 0 };
	VIP_MEM_HANDLE handle = 77;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *hole;

	one_open(&o);
	attr.Ptag = o.ptag;
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, NULL, 10, &attr, &handle));
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, o.mem, 0, &attr, &handle));
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, o.mem, ~(VIP_ULONG)0, &attr, &handle));
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, o.mem, 10, &attr, NULL));
	/* Addresses where nothing is. */
	hole = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole + page, page);
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, hole, 3 * page, &attr, &handle));
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, hole + page, 1, &attr, &handle));
	VIP(VIP_INVALID_PARAMETER, VipRegisterMem(o.nic, hole + page - 1, 2, &attr, &handle));
	CHECK_EQ(handle, 77);
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, hole, page, &attr, &handle));
	VIP(VIP_SUCCESS, VipDeregisterMem(o.nic, hole, handle));
	munmap(hole, page);
	munmap(hole + 2 * page, page);
	one_close(&o);
}

static void many_regions(void)
{
	enum { MOST = 20000 };
	static VIP_MEM_HANDLE handle[MOST];
	struct one o;
	VIP_MEM_ATTRIBUTES attr = { 0 };
	unsigned n;

	one_open(&o);
	attr.Ptag = o.ptag;
	for (int round = 0; round < 2; round++) {
		for (n = 0; n < MOST && VipRegisterMem(o.nic, o.mem + n, 8, &attr, &handle[n]) == VIP_SUCCESS; n++)
			;
		CHECK(n >= o.attr.MaxRegisterRegions - 1 && n <= o.attr.MaxRegisterRegions);
		VIP(VIP_ERROR_RESOURCE, VipRegisterMem(o.nic, o.mem, 8, &attr, &handle[n]));
		while (n--)
			VIP(VIP_SUCCESS, VipDeregisterMem(o.nic, o.mem + n, handle[n]));
	}
	one_close(&o);
}

static void tags_in_use(void)
{
	struct one o;
	VIP_PROTECTION_HANDLE ptag;
	VIP_VI_ATTRIBUTES vi_attr;
	VIP_MEM_ATTRIBUTES attr = { 0 };
	VIP_MEM_HANDLE handle;
	VIP_VI_HANDLE vi;

	one_open(&o);
	VIP(VIP_SUCCESS, VipCreatePtag(o.nic, &ptag));
	attr.Ptag = ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, o.mem, 8, &attr, &handle));
	VIP(VIP_ERROR_RESOURCE, VipDestroyPtag(o.nic, ptag));
	vi_attr = one_attributes(&o);
	vi_attr.Ptag = ptag;
	VIP(VIP_SUCCESS, VipCreateVi(o.nic, &vi_attr, NULL, NULL, &vi));
	VIP(VIP_SUCCESS, VipDeregisterMem(o.nic, o.mem, handle));
	VIP(VIP_ERROR_RESOURCE, VipDestroyPtag(o.nic, ptag));
	vi_attr.Ptag = o.ptag;
	VIP(VIP_SUCCESS, VipSetViAttributes(vi, &vi_attr)); /* lets go of it */
	VIP(VIP_SUCCESS, VipDestroyPtag(o.nic, ptag));
	VIP(VIP_INVALID_PARAMETER, VipDestroyPtag(o.nic, ptag));
	VIP(VIP_INVALID_PTAG, VipRegisterMem(o.nic, o.mem, 8, &attr, &handle));
	VIP(VIP_INVALID_PTAG, VipSetMemAttributes(o.nic, o.mem, o.handle, &attr));
	vi_attr.Ptag = ptag;
	VIP(VIP_INVALID_PTAG, VipSetViAttributes(vi, &vi_attr));
	VIP(VIP_INVALID_PTAG, VipCreateVi(o.nic, &vi_attr, NULL, NULL, &vi));
	VIP(VIP_INVALID_PARAMETER, VipDestroyPtag(o.nic, NULL));
	one_close(&o);
}

/* Programs for Giganet's library: no attributes, and a null tag. */
static void the_null_tag(void)
{
	struct one o;
	VIP_MEM_ATTRIBUTES got, attr = { 0 };
	VIP_VI_ATTRIBUTES vi_attr;
	VIP_MEM_HANDLE handle;
	VIP_DESCRIPTOR *d, *done;

	one_open(&o);
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, o.mem, ONE_MEMORY, NULL, &handle));
	VIP(VIP_SUCCESS, VipQueryMem(o.nic, o.mem, handle, &got));
	CHECK(!got.Ptag && !got.EnableRdmaWrite && !got.EnableRdmaRead);
	vi_attr = one_attributes(&o);
	vi_attr.Ptag = NULL;
	VIP(VIP_SUCCESS, VipCreateVi(o.nic, &vi_attr, NULL, NULL, &o.a));
	VIP(VIP_SUCCESS, VipCreateVi(o.nic, &vi_attr, NULL, NULL, &o.b));
	one_connect(&o);
	/* A VI without a tag and memory with one, and the other way round. */
	VIP(VIP_SUCCESS, VipPostRecv(o.b, one_desc(&o, 0, 64), o.handle));
	d = one_desc(&o, 1, 64);
	d->DS[0].Local.Handle = handle;
	VIP(VIP_SUCCESS, VipPostSend(o.a, d, handle));
	VIP(VIP_SUCCESS, VipRecvWait(o.b, 5000, &done));
	VIP(VIP_SUCCESS, VipSendWait(o.a, 5000, &done));
	one_close(&o);

	VIP(VIP_SUCCESS, VipxParameterSet("vipl_strict", "true", "test"));
	one_open(&o);
	VIP(VIP_INVALID_PTAG, VipRegisterMem(o.nic, o.mem, ONE_MEMORY, NULL, &handle));
	VIP(VIP_INVALID_PTAG, VipRegisterMem(o.nic, o.mem, ONE_MEMORY, &attr, &handle));
	VIP(VIP_INVALID_PTAG, VipCreateVi(o.nic, &vi_attr, NULL, NULL, &o.a));
	one_close(&o);
	VIP(VIP_SUCCESS, VipxParameterSet("vipl_strict", "false", "test"));
}

/* Memory in the card is registered like other memory, and messages go out of it. */
static void memory_of_the_card(void)
{
	VIP_MEM_ATTRIBUTES attr = { 0 };
	VIP_DESCRIPTOR *d, *done;
	VIP_MEM_HANDLE handle;
	VIP_PVOID memory = NULL;
	struct one o;

	one_open(&o);
	VIP(VIP_INVALID_PARAMETER, VipxAllocMemory(o.nic, 100, NULL));
	VIP(VIP_INVALID_PARAMETER, VipxAllocMemory(o.nic, 0, &memory));
	VIP(VIP_ERROR_RESOURCE, VipxAllocMemory(o.nic, (VIP_UINT64)1 << 50, &memory));
	CHECK(!memory && strstr(VipxLastError(), "no room"));
	VIP(VIP_SUCCESS, VipxAllocMemory(o.nic, 100000, &memory));
	REQUIRE(memory);
	attr.Ptag = o.ptag;
	VIP(VIP_SUCCESS, VipRegisterMem(o.nic, memory, 100000, &attr, &handle));
	o.a = one_vi(&o, NULL, NULL);
	o.b = one_vi(&o, NULL, NULL);
	one_connect(&o);
	d = one_desc(&o, 0, 64);
	VIP(VIP_SUCCESS, VipPostRecv(o.b, d, o.handle));
	memset(memory, 'x', 100000);
	d = one_desc(&o, 1, 64);
	d->DS[0].Local.Data.Address = (char *)memory + 99000;
	d->DS[0].Local.Handle = handle;
	VIP(VIP_SUCCESS, VipPostSend(o.a, d, o.handle));
	VIP(VIP_SUCCESS, VipRecvWait(o.b, 5000, &done));
	CHECK_EQ(*((char *)done->DS[0].Local.Data.Address + 63), 'x');
	VIP(VIP_SUCCESS, VipSendWait(o.a, 5000, &done));
	VIP(VIP_SUCCESS, VipDeregisterMem(o.nic, memory, handle));
	VIP(VIP_INVALID_PARAMETER, VipxFreeMemory(o.nic, (char *)memory + 4096));
	VIP(VIP_SUCCESS, VipxFreeMemory(o.nic, memory));
	VIP(VIP_INVALID_PARAMETER, VipxFreeMemory(o.nic, memory));
	one_close(&o);
}

/* How much of the range is in large pages, as the kernel says; -1: it does not. */
static long large_of(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	char line[512];
	long kb = -1, found = -1;
	bool here = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)at >= from && (uintptr_t)at < to;
		else if (here && sscanf(line, "AnonHugePages: %ld kB", &kb) == 1)
			found = kb;
	}
	if (f)
		fclose(f);
	return found;
}

/* Private memory that is all there; nothing of it changes. */
static void large_pages(void)
{
	const size_t large = VIPX_LARGE_PAGE;
	VIP_PVOID heap = NULL;
	VIP_RETURN result;
	char *at, *map;
	struct one o;
	int child, status = 1;

	one_open(&o);
	map = mmap(NULL, 4 * large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(map != MAP_FAILED);
	at = (char *)(((uintptr_t)map + large - 1) & ~(uintptr_t)(large - 1));
	madvise(map, 4 * large, MADV_NOHUGEPAGE); /* where the system makes large pages by itself */
	VIP(VIP_NOT_DONE, VipxLargePage(o.nic, NULL));
	VIP(VIP_NOT_DONE, VipxLargePage(o.nic, at));
	for (size_t i = 0; i < large - 4096; i++)
		at[i] = (char)(i * 7 + i / 4096);
	VIP(VIP_NOT_DONE, VipxLargePage(o.nic, at)); /* one page is not there */
	at[large - 1] = 1;
	CHECK(large_of(at) <= 0);
	madvise(map, 4 * large, MADV_HUGEPAGE);
	VIP(VIP_SUCCESS, VipxAllocMemory(o.nic, 2 * large, &heap)); /* shared */
	memset(heap, 1, 2 * large);
	VIP(VIP_NOT_DONE, VipxLargePage(o.nic, (char *)heap + large));
	VIP(VIP_SUCCESS, VipxFreeMemory(o.nic, heap));
	child = fork(); /* which has the same pages */
	REQUIRE(child >= 0);
	while (child == 0)
		pause();
	VIP(VIP_NOT_DONE, VipxLargePage(o.nic, at));
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child);
	result = VipxLargePage(o.nic, at + 5000);
	if (result == VIP_SUCCESS)
		CHECK_EQ(large_of(at), large / 1024);
	else
		printf("# this system makes no large pages\n");
	for (size_t i = 0; i < large - 4096; i++)
		if (at[i] != (char)(i * 7 + i / 4096))
			REQUIRE(!"contents stay");
	CHECK_EQ(at[large - 1], 1);
	munmap(map, 4 * large);
	one_close(&o);
}

int main(void)
{
	CASE(registering);
	CASE(refused_ranges);
	CASE(many_regions);
	CASE(tags_in_use);
	CASE(the_null_tag);
	CASE(memory_of_the_card);
	CASE(large_pages);
	return check_done();
}
