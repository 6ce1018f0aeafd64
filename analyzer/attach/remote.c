/*
 * remote.c - see remote.h. The area: code and data of the call, the saved vector state, text for
 * the called function, and the stack.
 */
#include "attach/remote.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "util/clock_ns.h"

#define VECTOR_AT MACHINE_STUB_BYTES
#define TEXT_AT (VECTOR_AT + MACHINE_VECTOR_MAX)
#define STACK_AT (TEXT_AT + REMOTE_TEXT_MAX)
#define STACK_BYTES (1u << 20) /* opening a library takes some 20 KiB */
#define AREA_BYTES (STACK_AT + STACK_BYTES)

#define BIT(signal) (UINT64_C(1) << ((signal)-1))
/* A thread that blocks these dies of them, without a word to us. */
#define FAULTS                                                                                     \
	(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGABRT))

/* A signal that the program ignores unless it is traced, so that it does no harm if it comes when
 * nobody traces any more. */
static int choose_signal(const struct target *target)
{
	static const int ignored[] = {SIGURG, SIGWINCH, SIGCONT, SIGCHLD};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		if (!(target->caught & BIT(ignored[i])))
			return ignored[i];
	return SIGURG;
}

int64_t remote_syscall(struct remote *r, long number, const uint64_t arguments[6])
{
	struct tracee *t = &r->point->tracee;
	struct machine now;
	int rc;

	machine_syscall_begin(&r->point->saved, r->syscall_code, number, arguments, &now);
	rc = machine_set_registers(t->tid, &now);
	if (!rc)
		rc = tracee_step(t);
	if (!rc && !t->trap)
		rc = -EINTR; /* a stop of the whole process came first */
	if (!rc)
		rc = machine_get_registers(t->tid, &now);
	return rc ? rc : machine_syscall_result(&now);
}

static int block_signals(struct remote *r)
{
	return machine_set_mask(r->point->tracee.tid, ~(FAULTS | BIT(r->signal)));
}

static bool keep_vector(struct remote *r)
{
	return target_poke(r->target->pid, r->area + VECTOR_AT, r->point->saved.vector,
	    r->point->saved.vector_bytes);
}

int remote_take_over(struct remote *r)
{
	int rc = block_signals(r);

	return !rc && !keep_vector(r) ? -EFAULT : rc;
}

int remote_begin(const struct target *target, const struct landmarks *marks,
    struct safe_point *point, struct remote *out, struct err *err)
{
	const uint64_t map[] = {0, AREA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0};
	int64_t area;
	int rc;

	*out = (struct remote){target, point, marks->syscall_code, 0, choose_signal(target), false};
	safe_point_hurry(point);
	rc = block_signals(out);
	area = rc ? rc : remote_syscall(out, SYS_mmap, map);
	if (area > 0) {
		out->area = (uint64_t)area;
		if (keep_vector(out))
			return 0;
		area = -EFAULT;
	}
	remote_end(out);
	return err_set(err, (int)area, "process %d (%s): cannot map memory in it: %s%s",
	    (int)target->pid, target->name, strerror((int)-area),
	    area == -EACCES || area == -EPERM
		? " (SELinux or MemoryDenyWriteExecute=yes of systemd forbids it)"
		: "");
}

uint64_t remote_text(struct remote *r, const void *bytes, size_t count)
{
	uint64_t at = r->area + TEXT_AT;

	return count <= REMOTE_TEXT_MAX && target_poke(r->target->pid, at, bytes, count) ? at : 0;
}

/* Waits until the call has come back. */
static int wait_for_return(struct remote *r, uint64_t end_ns)
{
	struct tracee *t = &r->point->tracee;
	uint64_t result[2], now;
	struct machine m;
	int rc = 0;

	while (!rc && (now = clock_ns(CLOCK_MONOTONIC)) < end_ns) {
		rc = tracee_wait(t, (unsigned)((end_ns - now) / 1000000u) + 1);
		if (rc)
			break;
		if (t->signal && (FAULTS & BIT(t->signal)))
			return -EFAULT;
		if (t->signal == r->signal && !machine_get_registers(t->tid, &m) &&
		    machine_pc(&m) - r->area < MACHINE_STUB_BYTES &&
		    target_peek(
			r->target->pid, r->area + machine_call_result(), result, sizeof(result)) &&
		    result[1]) {
			t->signal = 0;
			return 0;
		}
		rc = tracee_continue(t);
	}
	return rc ? rc : -ETIMEDOUT;
}

int remote_call(struct remote *r, uint64_t function, const uint64_t arguments[MACHINE_ARGUMENTS],
    unsigned timeout_ms, int64_t *result, struct err *err)
{
	struct machine_call call = {.area = r->area,
	    .stack = r->area + AREA_BYTES,
	    .function = function,
	    .signal = r->signal};
	struct tracee *t = &r->point->tracee;
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u;
	uint8_t stub[MACHINE_STUB_BYTES];
	struct machine now;
	int rc;

	memcpy(call.arguments, arguments, sizeof(call.arguments));
	machine_call_begin(&r->point->saved, &call, stub, &now);
	rc = target_poke(r->target->pid, r->area, stub, sizeof(stub)) ? 0 : -EFAULT;
	if (!rc)
		rc = machine_set_registers(t->tid, &now);
	if (!rc)
		rc = tracee_continue(t);
	if (!rc)
		rc = wait_for_return(r, end);
	if (!rc &&
	    !target_peek(r->target->pid, r->area + machine_call_result(), result, sizeof(*result)))
		rc = -EFAULT;
	if (rc == -ETIMEDOUT) {
		r->lost = true;
		return err_set(err, rc,
		    "the call in process %d (%s) did not come back within %u s; its thread %d "
		    "finishes it when it can, and then goes on as before",
		    (int)r->target->pid, r->target->name, timeout_ms / 1000u, (int)t->tid);
	}
	if (rc == -ESRCH) {
		r->lost = true;
		return err_set(err, rc, "process %d (%s) ended during the call",
		    (int)r->target->pid, r->target->name);
	}
	if (rc)
		return err_set(err, rc,
		    "the call in process %d (%s) crashed; its thread %d goes on as before",
		    (int)r->target->pid, r->target->name, (int)t->tid);
	return 0;
}

uint64_t remote_let_go(struct remote *r)
{
	struct tracee *t = &r->point->tracee;

	safe_point_unhurry(r->point);
	if (!r->lost)
		machine_restore(t->tid, &r->point->saved);
	tracee_detach(t);
	return clock_ns(CLOCK_MONOTONIC) - r->point->stopped_ns;
}

uint64_t remote_end(struct remote *r)
{
	const uint64_t unmap[6] = {r->area, AREA_BYTES};

	if (r->point->tracee.signal && (FAULTS & BIT(r->point->tracee.signal)))
		r->point->tracee.signal = 0; /* of the call that crashed, not the program's */
	if (!r->lost && r->area)
		remote_syscall(r, SYS_munmap, unmap);
	return remote_let_go(r);
}
