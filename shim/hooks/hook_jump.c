/*
 * hook_jump.c - wrappers that must leave no frame behind. They may note something first and then
 * jump into the real function with the caller's registers and stack:
 *
 * syscall	must not touch any argument, and a call like clone may return twice
 * vfork	returns twice, the second time on a stack that the child has used
 * dlopen	searches the library by the calling module's RUNPATH and $ORIGIN; libc finds that
 *		module by the return address
 */
#include "hooks/hook_syscall.h"

#include <sys/syscall.h>

#include "loaded/symbols.h"
#include "thread/thread.h"

/* Called only by the assembly below, which the compiler does not see. */
#define FROM_ASM __attribute__((used, noinline, visibility("hidden")))

FROM_ASM void *hook_jump_syscall(void);
FROM_ASM void *hook_jump_syscall(void)
{
	symbols_all();
	return (void *)real.syscall;
}

FROM_ASM void *hook_jump_vfork(void);
FROM_ASM void *hook_jump_vfork(void)
{
	symbols_all();
	thread_mark_vfork(false);
	return (void *)real.vfork;
}

#define STRING_(x) #x
#define STRING(x) STRING_(x)

/* The numbers that syscall() passes to hook_syscall(). */
/* clang-format off */
#define ALL_TO_HOOK                                                                                \
	TO_HOOK(SYS_mmap)                                                                          \
	TO_HOOK(SYS_munmap)                                                                        \
	TO_HOOK(SYS_mremap)                                                                        \
	TO_HOOK(SYS_brk)                                                                           \
	TO_HOOK(SYS_seccomp)                                                                       \
	TO_HOOK(SYS_prctl)                                                                         \
	TO_HOOK(SYS_exit_group)                                                                    \
	TO_HOOK(SYS_execve)                                                                        \
	TO_HOOK(SYS_execveat)                                                                      \
	TO_HOOK(SYS_setuid)                                                                        \
	TO_HOOK(SYS_setreuid)                                                                      \
	TO_HOOK(SYS_setresuid)                                                                     \
	TO_HOOK(SYS_setfsuid)                                                                      \
	TO_HOOK(SYS_setgid)                                                                        \
	TO_HOOK(SYS_setregid)                                                                      \
	TO_HOOK(SYS_setresgid)                                                                     \
	TO_HOOK(SYS_setfsgid)                                                                      \
	TO_HOOK(SYS_setgroups)                                                                     \
	TO_HOOK(SYS_capset)                                                                        \
	TO_HOOK(SYS_chroot)                                                                        \
	TO_HOOK(SYS_pivot_root)                                                                    \
	TO_HOOK(SYS_unshare)                                                                       \
	TO_HOOK(SYS_setns)                                                                         \
	TO_HOOK(SYS_landlock_restrict_self)
/* clang-format on */

#if defined(__x86_64__)
/* clang-format off */
/* hook_syscall() takes its C arguments from the same registers and stack slots. All other numbers
 * keep every register but rax, which the real function sets. */
#define TO_HOOK(number) "	cmp $" STRING(number) ",%rdi\n	je hook_syscall\n"
#define PUSH(reg) "	push %" #reg "\n	.cfi_adjust_cfa_offset 8\n"
#define POP(reg) "	pop %" #reg "\n	.cfi_adjust_cfa_offset -8\n"
__asm__(".text\n.globl syscall\n.type syscall,@function\nsyscall:\n\t.cfi_startproc\n\tendbr64\n"
	ALL_TO_HOOK
	PUSH(rdi) PUSH(rsi) PUSH(rdx) PUSH(rcx) PUSH(r8) PUSH(r9)
	"	sub $8,%rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	call hook_jump_syscall\n"
	"	add $8,%rsp\n	.cfi_adjust_cfa_offset -8\n"
	POP(r9) POP(r8) POP(rcx) POP(rdx) POP(rsi) POP(rdi)
	"	jmp *%rax\n\t.cfi_endproc\n.size syscall,.-syscall\n");
/* clang-format on */

__asm__(".text\n.globl vfork\n.type vfork,@function\nvfork:\n\t.cfi_startproc\n\tendbr64\n"
	"	sub $8,%rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	call hook_jump_vfork\n"
	"	add $8,%rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n\t.cfi_endproc\n.size vfork,.-vfork\n");

/* hook_dlopen_before() returns where to jump: the real function or hook_dlopen(). */
__asm__(".text\n.globl dlopen\n.type dlopen,@function\ndlopen:\n\t.cfi_startproc\n\tendbr64\n"
	"	push %rdi\n	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n	.cfi_adjust_cfa_offset 8\n"
	"	sub $8,%rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	mov 24(%rsp),%rdx\n"
	"	call hook_dlopen_before\n"
	"	add $8,%rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n\t.cfi_endproc\n.size dlopen,.-dlopen\n");

#elif defined(__aarch64__)
/* clang-format off */
#define SAVE \
	"	stp x29,x30,[sp,-80]!\n	.cfi_adjust_cfa_offset 80\n" \
	"	.cfi_offset 29,-80\n	.cfi_offset 30,-72\n	mov x29,sp\n" \
	"	stp x0,x1,[sp,16]\n	stp x2,x3,[sp,32]\n" \
	"	stp x4,x5,[sp,48]\n	stp x6,x7,[sp,64]\n"
#define RESTORE \
	"	mov x16,x0\n" \
	"	ldp x0,x1,[sp,16]\n	ldp x2,x3,[sp,32]\n" \
	"	ldp x4,x5,[sp,48]\n	ldp x6,x7,[sp,64]\n" \
	"	ldp x29,x30,[sp],80\n	.cfi_adjust_cfa_offset -80\n" \
	"	.cfi_restore 29\n	.cfi_restore 30\n"
#define TO_HOOK(number) "	cmp x0,#" STRING(number) "\n	b.eq hook_syscall\n"
__asm__(".text\n.globl syscall\n.type syscall,%function\nsyscall:\n\t.cfi_startproc\n\thint #34\n"
	ALL_TO_HOOK
	SAVE
	"	bl hook_jump_syscall\n"
	RESTORE
	"	br x16\n\t.cfi_endproc\n.size syscall,.-syscall\n");
/* clang-format on */

__asm__(".text\n.globl vfork\n.type vfork,%function\nvfork:\n\t.cfi_startproc\n\thint #34\n" SAVE
	"	bl hook_jump_vfork\n" RESTORE "	br x16\n\t.cfi_endproc\n.size vfork,.-vfork\n");

__asm__(".text\n.globl dlopen\n.type dlopen,%function\ndlopen:\n\t.cfi_startproc\n\thint #34\n" SAVE
	"	mov x2,x30\n	bl hook_dlopen_before\n" RESTORE
	"	br x16\n\t.cfi_endproc\n.size dlopen,.-dlopen\n");
#endif
