/*
 * machine.h - the registers of a stopped thread, by architecture: saved, restored, watched, and
 * set for a call. One file implements it for each.
 */
#ifndef ANALYZER_ATTACH_MACHINE_H
#define ANALYZER_ATTACH_MACHINE_H

#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define MACHINE_VECTOR_MAX 32768u /* AVX-512 and AMX take 11 KiB */
#define MACHINE_WATCHES 4u
#define MACHINE_ARGUMENTS 4u /* of a call */

/* All that a call may change in a thread. */
struct machine {
#if defined(__x86_64__)
	struct user_regs_struct registers;
#else
	struct user_regs_struct registers; /* x0 to x30, sp, pc, pstate */
	int call; /* the system call that it is in; -1: none */
	uint64_t thread; /* tpidr_el0 */
#endif
	uint64_t mask; /* blocked signals */
	size_t vector_bytes;
	_Alignas(64) uint8_t vector[MACHINE_VECTOR_MAX];
};

/* Each of these needs a stopped thread. 0; negative errno of ptrace. */
int machine_save(pid_t tid, struct machine *out);
int machine_restore(pid_t tid, const struct machine *m);
/* Set the registers alone, for a short look. */
int machine_set_registers(pid_t tid, const struct machine *m);
int machine_get_registers(pid_t tid, struct machine *m);
int machine_set_mask(pid_t tid, uint64_t mask);

uint64_t machine_pc(const struct machine *m);
/* The return address, where the thread is at the entry of a function. 0: it cannot be read. */
uint64_t machine_return(pid_t pid, const struct machine *m);
/* The addresses where the C library keeps what it knows of the thread. */
void machine_thread_block(const struct machine *m, uint64_t *address, size_t *bytes);

/* The system call that the thread was stopped in waits for something and holds nothing. `lock`: it
 * may be that of a lock. */
bool machine_waits(const struct machine *m, bool *lock);
/* A wait that the kernel does not begin again by itself after a stop, but ends with EINTR, begins
 * again when the registers are restored. `pending`: a signal is about to end it in earnest. */
void machine_wait_again(struct machine *m, bool pending);

/* It was stopped in a sleep of fixed length; and such a sleep is to end now, with 0. */
bool machine_sleeps(const struct machine *m);
void machine_wake(struct machine *m);

/* Stop the thread at these addresses, and no other; `count` 0: nowhere. */
int machine_watch(pid_t tid, const uint64_t *addresses, unsigned count);
/* A watched thread must step over the address itself: watch off, one step, watch on. */
bool machine_watch_steps(void);

/* The code that makes a call in the target, and its data. The call's result is known when the
 * thread sends itself `signal`. If nobody traces it then, it puts back all that was saved, and goes
 * on where it was stopped. */
#define MACHINE_STUB_BYTES 4096u /* the vector state follows */
struct machine_call {
	uint64_t area; /* of the code, page-aligned, readable, writable and executable */
	uint64_t stack; /* grows down from here */
	uint64_t function, arguments[MACHINE_ARGUMENTS];
	int signal;
};
/* The code and data for `area`, before the vector state; returns the first registers. */
void machine_call_begin(const struct machine *saved, const struct machine_call *call,
    uint8_t stub[MACHINE_STUB_BYTES], struct machine *out);
/* Where in the area the result is, a 64-bit number; behind it 1 if the call has come back. */
size_t machine_call_result(void);

/* The bytes of the instruction that enters the kernel. */
extern const uint8_t machine_syscall_code[];
extern const size_t machine_syscall_bytes;
/* Set registers for a system call at `code`; its result after one step. */
void machine_syscall_begin(const struct machine *saved, uint64_t code, long number,
    const uint64_t arguments[6], struct machine *out);
int64_t machine_syscall_result(const struct machine *m);

#endif
