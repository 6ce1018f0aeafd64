/*
 * machine_aarch64.c - see machine.h. The calls are those of machine_x86_64.c; SVE's registers are
 * not saved, as neither a call nor the kernel keeps more of them than the vector registers.
 */
#include "attach/machine_parts.h"

#if defined(__aarch64__)

#include <asm/ptrace.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "attach/target.h"

#define THREAD_BLOCK_BYTES 0x1000u /* struct pthread lies before the thread pointer */

/* DBGBCR_EL1: enabled, at EL0, all four bytes of the instruction. */
#define WATCH_CONTROL (1u | 2u << 1 | 0xfu << 5)

const uint8_t machine_syscall_code[] = {0x01, 0x00, 0x00, 0xd4}; /* svc #0 */
const size_t machine_syscall_bytes = sizeof(machine_syscall_code);

/* As on x86-64. A thread that goes on by itself loses x17, which at the entry of a function and
 * behind a system call holds nothing but what a veneer left there. */
__asm__(".pushsection .rodata\n"
	".balign 64\n"
	"attach_stub:\n"
	"	ldr x16, attach_function\n"
	"	ldr x0, attach_arguments\n"
	"	ldr x1, attach_arguments + 8\n"
	"	ldr x2, attach_arguments + 16\n"
	"	ldr x3, attach_arguments + 24\n"
	"	blr x16\n"
	"	adr x9, attach_result\n"
	"	mov x10, #1\n"
	"	stp x0, x10, [x9]\n"
	"	mov x8, #172\n" /* getpid */
	"	svc #0\n"
	"	mov x19, x0\n"
	"	mov x8, #178\n" /* gettid */
	"	svc #0\n"
	"	mov x1, x0\n"
	"	mov x0, x19\n"
	"	ldr x2, attach_signal\n"
	"	mov x8, #131\n" /* tgkill: stops here while it is traced */
	"	svc #0\n"
	"	mov x0, #2\n" /* SIG_SETMASK */
	"	adr x1, attach_mask\n"
	"	mov x2, #0\n"
	"	mov x3, #8\n"
	"	mov x8, #135\n" /* rt_sigprocmask */
	"	svc #0\n"
	"	adr x16, attach_vector\n"
	"	ldp q0, q1, [x16], #32\n"
	"	ldp q2, q3, [x16], #32\n"
	"	ldp q4, q5, [x16], #32\n"
	"	ldp q6, q7, [x16], #32\n"
	"	ldp q8, q9, [x16], #32\n"
	"	ldp q10, q11, [x16], #32\n"
	"	ldp q12, q13, [x16], #32\n"
	"	ldp q14, q15, [x16], #32\n"
	"	ldp q16, q17, [x16], #32\n"
	"	ldp q18, q19, [x16], #32\n"
	"	ldp q20, q21, [x16], #32\n"
	"	ldp q22, q23, [x16], #32\n"
	"	ldp q24, q25, [x16], #32\n"
	"	ldp q26, q27, [x16], #32\n"
	"	ldp q28, q29, [x16], #32\n"
	"	ldp q30, q31, [x16], #32\n"
	"	ldp w17, w18, [x16]\n"
	"	msr fpsr, x17\n"
	"	msr fpcr, x18\n"
	"	adr x17, attach_registers\n"
	"	ldr x16, [x17, #264]\n" /* pstate */
	"	msr nzcv, x16\n"
	"	ldr x16, [x17, #248]\n"
	"	mov sp, x16\n"
	"	ldp x0, x1, [x17]\n"
	"	ldp x2, x3, [x17, #16]\n"
	"	ldp x4, x5, [x17, #32]\n"
	"	ldp x6, x7, [x17, #48]\n"
	"	ldp x8, x9, [x17, #64]\n"
	"	ldp x10, x11, [x17, #80]\n"
	"	ldp x12, x13, [x17, #96]\n"
	"	ldp x14, x15, [x17, #112]\n"
	"	ldr x16, [x17, #128]\n"
	"	ldp x18, x19, [x17, #144]\n"
	"	ldp x20, x21, [x17, #160]\n"
	"	ldp x22, x23, [x17, #176]\n"
	"	ldp x24, x25, [x17, #192]\n"
	"	ldp x26, x27, [x17, #208]\n"
	"	ldp x28, x29, [x17, #224]\n"
	"	ldr x30, [x17, #240]\n"
	"	ldr x17, [x17, #256]\n" /* pc */
	"	br x17\n"
	"	.org attach_stub + 1024\n"
	"attach_function: .quad 0\n"
	"attach_arguments: .quad 0, 0, 0, 0\n"
	"attach_result: .quad 0, 0\n"
	"attach_signal: .quad 0\n"
	"attach_mask: .quad 0\n"
	"attach_registers: .fill 34, 8, 0\n"
	"	.org attach_stub + 4096\n"
	"attach_vector:\n"
	"	.quad 0\n"
	".popsection\n");

extern const uint8_t attach_stub[MACHINE_STUB_BYTES];

/* The data of the code above, in its order. */
struct stub_data {
	uint64_t function, arguments[MACHINE_ARGUMENTS], result[2], signal, mask;
	struct user_regs_struct registers;
};
#define STUB_DATA 1024u

const int machine_vector_set = NT_PRFPREG;

int machine_get_registers(pid_t tid, struct machine *m)
{
	size_t bytes = sizeof(m->registers);
	int rc = machine_regset(PTRACE_GETREGSET, tid, NT_PRSTATUS, &m->registers, &bytes);

	bytes = sizeof(m->call);
	if (!rc)
		rc = machine_regset(PTRACE_GETREGSET, tid, NT_ARM_SYSTEM_CALL, &m->call, &bytes);
	bytes = sizeof(m->thread);
	return rc ? rc : machine_regset(PTRACE_GETREGSET, tid, NT_ARM_TLS, &m->thread, &bytes);
}

int machine_set_registers(pid_t tid, const struct machine *m)
{
	struct user_regs_struct registers = m->registers;
	size_t bytes = sizeof(registers);
	int call = m->call, rc;

	rc = machine_regset(PTRACE_SETREGSET, tid, NT_PRSTATUS, &registers, &bytes);
	bytes = sizeof(call);
	return rc ? rc : machine_regset(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &call, &bytes);
}

uint64_t machine_pc(const struct machine *m)
{
	return m->registers.pc;
}

uint64_t machine_return(pid_t pid, const struct machine *m)
{
	(void)pid;
	return m->registers.regs[30];
}

void machine_thread_block(const struct machine *m, uint64_t *address, size_t *bytes)
{
	*address = m->thread - THREAD_BLOCK_BYTES;
	*bytes = THREAD_BLOCK_BYTES;
}

long machine_stopped_in(const struct machine *m)
{
	return m->call;
}

bool machine_waits(const struct machine *m, bool *lock)
{
	*lock = false;
	switch (machine_stopped_in(m)) {
	case SYS_epoll_pwait:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_read:
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
	m->registers.regs[0] = 0;
	m->call = -1;
}

/* The kernel overwrites x0, the first argument, with the result, and keeps it out of reach: what it
 * does not begin again itself ends with EINTR. */
void machine_wait_again(struct machine *m, bool pending)
{
	(void)m;
	(void)pending;
}

int machine_watch(pid_t tid, const uint64_t *addresses, unsigned count)
{
	struct user_hwdebug_state state;
	size_t bytes = sizeof(state);
	int rc = machine_regset(PTRACE_GETREGSET, tid, NT_ARM_HW_BREAK, &state, &bytes);

	if (rc)
		return rc;
	/* The low byte says how many there are, four at least on most machines. */
	if (count > (state.dbg_info & 0xff))
		count = state.dbg_info & 0xff;
	memset(state.dbg_regs, 0, sizeof(state.dbg_regs));
	for (unsigned i = 0; i < count; i++) {
		state.dbg_regs[i].addr = addresses[i];
		state.dbg_regs[i].ctrl = WATCH_CONTROL;
	}
	return machine_regset(PTRACE_SETREGSET, tid, NT_ARM_HW_BREAK, &state, &bytes);
}

bool machine_watch_steps(void)
{
	return true;
}

size_t machine_call_result(void)
{
	return STUB_DATA + offsetof(struct stub_data, result);
}

/* As on x86-64, except that the first argument of a call that was interrupted is lost: it ends with
 * EINTR then. */
static struct user_regs_struct restarted(const struct machine *m)
{
	struct user_regs_struct r = m->registers;

	if (m->call < 0)
		return r;
	switch (-(int64_t)r.regs[0]) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		r.regs[0] = (unsigned long long)-EINTR;
		break;
	default:
		break;
	}
	return r;
}

void machine_call_begin(const struct machine *saved, const struct machine_call *call,
    uint8_t stub[MACHINE_STUB_BYTES], struct machine *out)
{
	struct stub_data data = {.function = call->function,
	    .signal = (uint64_t)call->signal,
	    .mask = saved->mask,
	    .registers = restarted(saved)};

	memcpy(data.arguments, call->arguments, sizeof(data.arguments));
	memcpy(stub, attach_stub, MACHINE_STUB_BYTES);
	memcpy(stub + STUB_DATA, &data, sizeof(data));
	out->registers = saved->registers;
	out->call = -1;
	out->registers.pc = call->area;
	out->registers.sp = call->stack & ~15ull;
	out->registers.regs[29] = 0;
	out->registers.regs[30] = 0;
}

void machine_syscall_begin(const struct machine *saved, uint64_t code, long number,
    const uint64_t arguments[6], struct machine *out)
{
	out->registers = saved->registers;
	out->call = -1;
	out->registers.pc = code;
	out->registers.regs[8] = (unsigned long long)number;
	for (unsigned i = 0; i < 6; i++)
		out->registers.regs[i] = arguments[i];
}

int64_t machine_syscall_result(const struct machine *m)
{
	return (int64_t)m->registers.regs[0];
}

#endif
