/* machine.c - what is the same for each architecture: see machine.h. */
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "attach/machine_parts.h"

int machine_regset(int request, pid_t tid, int kind, void *data, size_t *bytes)
{
	struct iovec io = {data, *bytes};

	if (ptrace(request, tid, (void *)(uintptr_t)kind, &io))
		return -errno;
	*bytes = io.iov_len;
	return 0;
}

int machine_set_mask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask) ? -errno : 0;
}

int machine_save(pid_t tid, struct machine *out)
{
	int rc = machine_get_registers(tid, out);

	out->vector_bytes = sizeof(out->vector);
	if (!rc)
		rc = machine_regset(
		    PTRACE_GETREGSET, tid, machine_vector_set, out->vector, &out->vector_bytes);
	if (!rc && out->vector_bytes == sizeof(out->vector))
		rc = -ENOSPC; /* it may have been cut */
	if (!rc && ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(out->mask), &out->mask))
		rc = -errno;
	return rc;
}

int machine_restore(pid_t tid, const struct machine *m)
{
	size_t bytes = m->vector_bytes;
	int rc = machine_regset(
	    PTRACE_SETREGSET, tid, machine_vector_set, (void *)(uintptr_t)m->vector, &bytes);

	if (!rc)
		rc = machine_set_registers(tid, m);
	return rc ? rc : machine_set_mask(tid, m->mask);
}

bool machine_sleeps(const struct machine *m)
{
	switch (machine_stopped_in(m)) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
		return true;
	default:
		return false;
	}
}
