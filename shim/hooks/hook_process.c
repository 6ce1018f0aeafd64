/*
 * hook_process.c - the beginning and end of processes: fork, clone, _exit, abort.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "lifecycle.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "shim.h"

SHIM_EXPORT pid_t fork(void)
{
	struct note n;
	int saved;
	pid_t child;

	symbols_all();
	loader_before_fork();
	child = real.fork();
	saved = errno;
	loader_after_fork(child == 0);
	if (child <= 0) {
		errno = saved;
		return child;
	}
	n = note_enter(__builtin_return_address(0));
	if (n.how)
		note_fork(n, child);
	note_leave(n);
	errno = saved;
	return child;
}

/* Marks a child that shares our memory without being a thread, lest it be taken for its parent. */
SHIM_EXPORT int clone(int (*run)(void *), void *stack, int flags, void *argument, ...)
{
	void *parent_tid, *tls, *child_tid;
	va_list rest;

	symbols_all();
	va_start(rest, argument);
	parent_tid = va_arg(rest, void *);
	tls = va_arg(rest, void *);
	child_tid = va_arg(rest, void *);
	va_end(rest);
	if ((flags & CLONE_VM) && !(flags & CLONE_THREAD))
		thread_mark_vfork(!(flags & CLONE_VFORK));
	return real.clone(run, stack, flags, argument, parent_tid, tls, child_tid);
}

SHIM_EXPORT __attribute__((noreturn)) void _exit(int status)
{
	symbols_all();
	lifecycle_end(TRACE_END_EXIT, status & 0xff);
	real._exit(status);
	__builtin_unreachable();
}

SHIM_EXPORT __attribute__((noreturn, alias("_exit"))) void _Exit(int status);

/* If a handler leaves by longjmp, a later end overwrites this one. */
SHIM_EXPORT __attribute__((noreturn)) void abort(void)
{
	struct note n;

	symbols_all();
	n = note_enter(__builtin_return_address(0));
	if (n.how)
		note_signal(n, SIGABRT);
	note_leave(n);
	lifecycle_end(TRACE_END_SIGNAL, SIGABRT);
	real.abort();
	__builtin_unreachable();
}
