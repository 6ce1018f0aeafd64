/*
 * hook_rights.c - the calls of rights_api.def, and those that install seccomp filters. Result and
 * errno are those of the real functions.
 */
#include "hooks/hook_syscall.h"

#include <errno.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "lifecycle.h"
#include "loaded/symbols.h"
#include "shim.h"
#include "trace/rights.h"

#define RIGHTS_NAMESPACE(flags) (((flags) & (CLONE_NEWNS | CLONE_NEWUSER)) != 0)

/* A child that was just forked makes its trace file while it still can. A vfork child is no copy.
 */
static void settle_fork(void)
{
	uint64_t signals;

	if (shim.mode != SHIM_RECORDING || shim.sandboxed || !shim_is_copy())
		return;
	signals = sys_block_signals();
	lifecycle_forked(thread_self);
	sys_restore_signals(signals);
}

static bool before(enum trace_right right, long uid)
{
	settle_fork();
	return rights_before(right, uid);
}

static struct rights_filter before_filter(const void *fprog)
{
	settle_fork();
	return rights_before_filter(fprog);
}

/* setfsuid() and setfsgid() return the previous id, whether they succeed or not. */
#define RIGHTS_API(name, parameters, arguments, right, uid, when)                                  \
	SHIM_EXPORT int name parameters;                                                           \
	SHIM_EXPORT int name parameters                                                            \
	{                                                                                          \
		bool noted;                                                                        \
		int result, saved;                                                                 \
                                                                                                   \
		symbols_all();                                                                     \
		noted = (when) && before(TRACE_RIGHT_##right, (int)(uid));                         \
		result = real.name arguments;                                                      \
		saved = errno;                                                                     \
		if (noted && result != -1)                                                         \
			rights_given_up(TRACE_RIGHT_##right);                                      \
		errno = saved;                                                                     \
		return result;                                                                     \
	}
#define RIGHTS_CALL(name, right, uid, when)
#include "base/rights_api.def"
#undef RIGHTS_API
#undef RIGHTS_CALL

/* Says whether the filter was installed. With a listener the result is its descriptor. */
static bool filter_installed(long number, long flags, long result)
{
	return number == SYS_seccomp && (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) ? result >= 0
										   : result == 0;
}

SHIM_EXPORT int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	struct rights_filter filter;
	va_list rest;
	int result;

	symbols_all();
	/* libc's function reads them always, too */
	va_start(rest, option);
	a = va_arg(rest, unsigned long);
	b = va_arg(rest, unsigned long);
	c = va_arg(rest, unsigned long);
	d = va_arg(rest, unsigned long);
	va_end(rest);
	if (option != PR_SET_SECCOMP)
		return real.prctl(option, a, b, c, d);
	filter = before_filter(a == SECCOMP_MODE_FILTER ? (const void *)b : NULL);
	result = real.prctl(option, a, b, c, d);
	rights_after_filter(&filter, result == 0);
	return result;
}

bool hook_rights_syscall(const struct raw_syscall *call, long *result)
{
	const long number = call->number, *x = call->argument;
	const long a = x[0], b = x[1], c = x[2], d = x[3], e = x[4], f = x[5];
	struct rights_filter filter;
	enum trace_right right;
	long uid;
	bool noted;
	int saved;

	if ((number == SYS_seccomp &&
		(a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)) ||
	    (number == SYS_prctl && a == PR_SET_SECCOMP)) {
		bool program =
		    number == SYS_seccomp ? a == SECCOMP_SET_MODE_FILTER : b == SECCOMP_MODE_FILTER;

		filter = before_filter(program ? (const void *)c : NULL);
		*result = real.syscall(number, a, b, c, d, e, f);
		rights_after_filter(&filter, filter_installed(number, b, *result));
		return true;
	}
	switch (number) {
#define RIGHTS_API(name, parameters, arguments, right, uid, when)
#define RIGHTS_CALL(name, given, user, when)                                                       \
	case SYS_##name:                                                                           \
		if (!(when))                                                                       \
			return false;                                                              \
		right = TRACE_RIGHT_##given;                                                       \
		uid = (int)(user);                                                                 \
		break;
#include "base/rights_api.def"
#undef RIGHTS_API
#undef RIGHTS_CALL
	default:
		return false;
	}
	noted = before(right, uid);
	*result = real.syscall(number, a, b, c, d, e, f);
	saved = errno;
	if (noted && *result != -1)
		rights_given_up(right);
	errno = saved;
	return true;
}
