/* HOT. SPDX-License-Identifier: BSD-3-Clause */
#include "nicemu/util/look.h"

#include "nicemu/util/atomic.h"

#if defined(__x86_64__)

#define LINES 32
#define DELAY 12 /* multiplications, 3 cycles each: as long as it takes to return, and some more; 8 to 16 are alike, with 3 lines are asked for at each look */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

_Static_assert(LINES == NIC_LOOK_LINES, "one number");

/* rdsspq, which processors without shadow stacks take for no operation. */
bool nic_look_works(void)
{
	uint64_t shadow = 0;

	__asm__ __volatile__(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(shadow));
	return !shadow;
}

/*
 * rdi, esi, rdx, rcx: the arguments.  No loop between the call and 2: nothing that happens there teaches the processor where its branches go.  On x86 a load is an
 * acquire.
 */
__asm__(".text\n\t"
	".p2align 6\n\t"
	".globl nic_look\n\t"
	".hidden nic_look\n\t"
	".type nic_look, @function\n"
	"nic_look:\n\t"
	".cfi_startproc\n\t"
	"call 2f\n\t"
	/* never, but while it is not known that it is never; r10 has nothing to do with what the look finds */
	"mov %rdi, %r10\n\t"
	".rept " TEXT(DELAY) "\n\t"
	"imul %r10, %r10\n\t"
	".endr\n\t"
	"and $0, %r10\n\t"
	"add %r10, %rdx\n\t"
	".rept " TEXT(LINES) "\n\t"
	"prefetcht0 (%rdx)\n\t"
	"add $64, %rdx\n\t"
	"cmp %rcx, %rdx\n\t"
	"jae 1f\n\t"
	".endr\n"
	"1:\tlfence\n\t"
	"ud2\n"
	/* the look, and where to return to */
	"2:\t.cfi_adjust_cfa_offset 8\n\t"
	"mov (%rdi), %eax\n\t"
	"lea 3f(%rip), %r8\n\t"
	"lea 4f(%rip), %r9\n\t"
	"cmp %esi, %eax\n\t"
	"cmove %r9, %r8\n\t"
	"mov %r8, (%rsp)\n\t"
	"ret\n"
	"3:\t.cfi_adjust_cfa_offset -8\n\t"
	"xor %eax, %eax\n\t"
	"ret\n"
	"4:\tmov $1, %eax\n\t"
	"ret\n\t"
	".cfi_endproc\n\t"
	".size nic_look, . - nic_look");

#else

bool nic_look_works(void)
{
	return false;
}

bool nic_look(const _Atomic uint32_t *word, uint32_t wanted, const void *from, const void *end)
{
	(void)from, (void)end;
	if (nic_load_acquire(word) == wanted) /* pairs with what the caller says */
		return true;
	nic_cpu_look_over();
	return false;
}

#endif
