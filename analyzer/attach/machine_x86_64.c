/*
 * machine_x86_64.c - see machine.h.
 */
#include "attach/machine_parts.h"

#if defined(__x86_64__)

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "attach/target.h"

#define FLAG_TRAP 0x100u
#define FLAG_DIRECTION 0x400u
#define FLAG_RESUME 0x10000u
#define THREAD_BLOCK_BYTES 0x400u /* struct pthread's tid is at 0x2d0 in all versions so far */
#define RED_ZONE 128u

#define DEBUG_OFFSET(n) (offsetof(struct user, u_debugreg) + (n) * sizeof(long))

const uint8_t machine_syscall_code[] = {0x0f, 0x05};
const size_t machine_syscall_bytes = sizeof(machine_syscall_code);

/* Runs in the target. Position-independent, and its data is behind it at fixed places. */
__asm__(".pushsection .rodata\n"
	".balign 64\n"
	"attach_stub:\n"
	"	movq attach_function(%rip), %rax\n"
	"	movq attach_arguments(%rip), %rdi\n"
	"	movq 8+attach_arguments(%rip), %rsi\n"
	"	movq 16+attach_arguments(%rip), %rdx\n"
	"	movq 24+attach_arguments(%rip), %rcx\n"
	"	callq *%rax\n"
	"	movq %rax, attach_result(%rip)\n"
	"	movq $1, 8+attach_result(%rip)\n"
	"	movl $39, %eax\n" /* getpid */
	"	syscall\n"
	"	movl %eax, %edi\n"
	"	movl $186, %eax\n" /* gettid */
	"	syscall\n"
	"	movl %eax, %esi\n"
	"	movl attach_signal(%rip), %edx\n"
	"	movl $234, %eax\n" /* tgkill: stops here while it is traced */
	"	syscall\n"
	"	movl $2, %edi\n" /* SIG_SETMASK */
	"	leaq attach_mask(%rip), %rsi\n"
	"	xorl %edx, %edx\n"
	"	movl $8, %r10d\n"
	"	movl $14, %eax\n" /* rt_sigprocmask */
	"	syscall\n"
	"	movl $-1, %eax\n"
	"	movl $-1, %edx\n"
	"	xrstor64 attach_vector(%rip)\n"
	"	leaq attach_flags(%rip), %rsp\n"
	"	popfq\n"
	"	movq attach_registers(%rip), %rax\n"
	"	movq 8+attach_registers(%rip), %rbx\n"
	"	movq 16+attach_registers(%rip), %rcx\n"
	"	movq 24+attach_registers(%rip), %rdx\n"
	"	movq 32+attach_registers(%rip), %rsi\n"
	"	movq 40+attach_registers(%rip), %rdi\n"
	"	movq 48+attach_registers(%rip), %rbp\n"
	"	movq 56+attach_registers(%rip), %r8\n"
	"	movq 64+attach_registers(%rip), %r9\n"
	"	movq 72+attach_registers(%rip), %r10\n"
	"	movq 80+attach_registers(%rip), %r11\n"
	"	movq 88+attach_registers(%rip), %r12\n"
	"	movq 96+attach_registers(%rip), %r13\n"
	"	movq 104+attach_registers(%rip), %r14\n"
	"	movq 112+attach_registers(%rip), %r15\n"
	"	movq 120+attach_registers(%rip), %rsp\n"
	"	jmpq *128+attach_registers(%rip)\n"
	"	.org attach_stub + 1024\n"
	"attach_function: .quad 0\n"
	"attach_arguments: .quad 0, 0, 0, 0\n"
	"attach_result: .quad 0, 0\n"
	"attach_signal: .quad 0\n"
	"attach_mask: .quad 0\n"
	"attach_flags: .quad 0\n"
	"attach_registers: .fill 17, 8, 0\n"
	"	.org attach_stub + 4096\n"
	"attach_vector:\n"
	"	.quad 0\n"
	".popsection\n");

extern const uint8_t attach_stub[MACHINE_STUB_BYTES];

/* The data of the code above, in its order. */
struct stub_data {
	uint64_t function, arguments[MACHINE_ARGUMENTS], result[2], signal, mask, flags,
	    registers[17];
};
#define STUB_DATA 1024u

const int machine_vector_set = NT_X86_XSTATE;

int machine_get_registers(pid_t tid, struct machine *m)
{
	return ptrace(PTRACE_GETREGS, tid, 0, &m->registers) ? -errno : 0;
}

int machine_set_registers(pid_t tid, const struct machine *m)
{
	return ptrace(PTRACE_SETREGS, tid, 0, &m->registers) ? -errno : 0;
}

uint64_t machine_pc(const struct machine *m)
{
	return m->registers.rip;
}

uint64_t machine_return(pid_t pid, const struct machine *m)
{
	uint64_t address;

	return target_peek(pid, m->registers.rsp, &address, sizeof(address)) ? address : 0;
}

void machine_thread_block(const struct machine *m, uint64_t *address, size_t *bytes)
{
	*address = m->registers.fs_base;
	*bytes = THREAD_BLOCK_BYTES;
}

long machine_stopped_in(const struct machine *m)
{
	return (long)m->registers.orig_rax;
}

bool machine_waits(const struct machine *m, bool *lock)
{
	*lock = false;
	switch (machine_stopped_in(m)) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_read:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_wait4:
	case SYS_waitid:
		return true;
	case SYS_futex:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
		*lock = true;
		return true;
	default:
		return false;
	}
}

void machine_wake(struct machine *m)
{
	m->registers.rax = 0;
	m->registers.orig_rax = (unsigned long long)-1;
}

void machine_wait_again(struct machine *m, bool pending)
{
	struct user_regs_struct *r = &m->registers;

	if (pending || (int64_t)r->rax != -EINTR)
		return;
	switch ((long)r->orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_read:
	case SYS_rt_sigtimedwait:
		/* As the kernel does it for the others. */
		r->rax = r->orig_rax;
		r->rip -= machine_syscall_bytes;
		r->orig_rax = (unsigned long long)-1;
		return;
	default:
		return;
	}
}

int machine_watch(pid_t tid, const uint64_t *addresses, unsigned count)
{
	unsigned long enable = 0;

	if (ptrace(PTRACE_POKEUSER, tid, (void *)DEBUG_OFFSET(7), 0))
		return -errno;
	for (unsigned i = 0; i < count; i++) {
		if (ptrace(PTRACE_POKEUSER, tid, (void *)DEBUG_OFFSET(i), addresses[i]))
			return -errno;
		enable |= 1ul << (2 * i); /* locally, where it is executed, one byte */
	}
	if (count && ptrace(PTRACE_POKEUSER, tid, (void *)DEBUG_OFFSET(7), enable))
		return -errno;
	return 0;
}

bool machine_watch_steps(void)
{
	return false; /* the kernel sets the resume flag */
}

size_t machine_call_result(void)
{
	return STUB_DATA + offsetof(struct stub_data, result);
}

/* What the kernel would do with an interrupted call when the thread goes on, which a thread that
 * goes on by itself must do by its registers. */
static struct user_regs_struct restarted(const struct user_regs_struct *from)
{
	struct user_regs_struct r = *from;

	if ((int64_t)r.orig_rax < 0)
		return r;
	switch (-(int64_t)r.rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		r.rax = r.orig_rax;
		r.rip -= machine_syscall_bytes;
		break;
	case ERESTART_RESTARTBLOCK:
		r.rax = SYS_restart_syscall;
		r.rip -= machine_syscall_bytes;
		break;
	default:
		break;
	}
	return r;
}

void machine_call_begin(const struct machine *saved, const struct machine_call *call,
    uint8_t stub[MACHINE_STUB_BYTES], struct machine *out)
{
	struct user_regs_struct r = restarted(&saved->registers);
	struct stub_data data = {.function = call->function,
	    .signal = (uint64_t)call->signal,
	    .mask = saved->mask,
	    .flags = r.eflags & ~(uint64_t)(FLAG_TRAP | FLAG_RESUME),
	    .registers = {r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11,
		r.r12, r.r13, r.r14, r.r15, r.rsp, r.rip}};

	memcpy(data.arguments, call->arguments, sizeof(data.arguments));
	memcpy(stub, attach_stub, MACHINE_STUB_BYTES);
	memcpy(stub + STUB_DATA, &data, sizeof(data));
	out->registers = saved->registers;
	out->registers.rip = call->area;
	out->registers.rsp = (call->stack - RED_ZONE) & ~15ull;
	out->registers.rbp = 0;
	out->registers.orig_rax = (unsigned long long)-1; /* no call is to be begun again */
	out->registers.eflags &= ~(unsigned long long)FLAG_DIRECTION;
}

void machine_syscall_begin(const struct machine *saved, uint64_t code, long number,
    const uint64_t arguments[6], struct machine *out)
{
	struct user_regs_struct *r = &out->registers;

	*r = saved->registers;
	r->rip = code;
	r->rax = (unsigned long long)number;
	r->orig_rax = (unsigned long long)-1;
	r->rdi = arguments[0];
	r->rsi = arguments[1];
	r->rdx = arguments[2];
	r->r10 = arguments[3];
	r->r8 = arguments[4];
	r->r9 = arguments[5];
}

int64_t machine_syscall_result(const struct machine *m)
{
	return (int64_t)m->registers.rax;
}

#endif
