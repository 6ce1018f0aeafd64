/*
 * dlopen.S - dlopen() that opens the name which simgpu_open_name() returns, after that has put the
 * object's stand-ins in place. Ends in a jump, so that the loader sees the caller's return address
 * and searches the caller's own path.
 */
#if defined(__x86_64__)
	.text
	.globl	dlopen
	.type	dlopen, @function
dlopen:
	.cfi_startproc
	endbr64
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	call	simgpu_open_name
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	movq	%rax, %rdi
	jmp	*simgpu_real_dlopen(%rip)
	.cfi_endproc
	.size	dlopen, . - dlopen
	.hidden	simgpu_open_name
	.hidden	simgpu_real_dlopen
#elif defined(__aarch64__)
	.text
	.globl	dlopen
	.type	dlopen, %function
dlopen:
	.cfi_startproc
	hint	#34
	stp	x1, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x30, 8
	bl	simgpu_open_name
	ldp	x1, x30, [sp], #16
	.cfi_restore x30
	.cfi_adjust_cfa_offset -16
	adrp	x16, simgpu_real_dlopen
	ldr	x16, [x16, #:lo12:simgpu_real_dlopen]
	br	x16
	.cfi_endproc
	.size	dlopen, . - dlopen
	.hidden	simgpu_open_name
	.hidden	simgpu_real_dlopen
#else
#error "no dlopen for this architecture"
#endif
	.section .note.GNU-stack, "", %progbits
