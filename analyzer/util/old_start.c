/*
 * old_start.c - start-up code for a program of old_libc.h, as the linker's usual one needs a new
 * version of the C library's start-up function. There are no constructors in such a program:
 * nothing would run them.
 */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rdx, %r9\n" /* the loader's own cleaning up */
	"	popq %rsi\n" /* argc */
	"	movq %rsp, %rdx\n" /* argv */
	"	andq $-16, %rsp\n"
	"	pushq %rax\n"
	"	pushq %rsp\n" /* the stack's end */
	"	xorl %r8d, %r8d\n"
	"	xorl %ecx, %ecx\n"
	"	leaq main(%rip), %rdi\n"
	"	call *__libc_start_main@GOTPCREL(%rip)\n"
	"	hlt\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl _start\n"
	".type _start, %function\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x5, x0\n" /* the loader's own cleaning up */
	"	ldr x1, [sp]\n" /* argc */
	"	add x2, sp, #8\n" /* argv */
	"	mov x6, sp\n" /* the stack's end */
	"	mov x3, #0\n"
	"	mov x4, #0\n"
	"	adrp x0, main\n"
	"	add x0, x0, :lo12:main\n"
	"	bl __libc_start_main\n"
	"	brk #0\n");
#endif
__asm__(".symver __libc_start_main, __libc_start_main@" OLDEST);
