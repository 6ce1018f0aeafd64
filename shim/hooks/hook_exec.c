/*
 * hook_exec.c - exec and posix_spawn. A program that would die of this library, or complain about
 * it, is started with an environment whose LD_PRELOAD does not name it; the starting process notes
 * in its trace which programs are not recorded. The real functions do all else, including the
 * search along PATH, which is only predicted here. Runs in the child of a vfork, on its parent's
 * memory, and in the child of a fork from a process with threads.
 *
 * Programs that libc starts by itself (system, popen, wordexp) are shells, which load this library.
 */
#include "hooks/hook_syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/text.h"
#include "exec/environment.h"
#include "exec/program.h"
#include "lifecycle.h"
#include "loaded/symbols.h"
#include "shim.h"
#include "trace/rights.h"
#include "trace/trace_file.h"
#include "trace/unrecorded.h"

#define REAL(name) (SHIM_LIKELY(real.name) ? real.name : (symbols_all(), real.name))

/* How a program is started. */
struct decision {
	enum environment_change change;
	unsigned why; /* it is not recorded: enum trace_unrecorded_why; 0: it is, for all we know */
	struct program program;
};

/* Says whether the loader would find the library; it complains on stderr if not. */
static bool library_is_there(char *const *environment)
{
	char path[512];
	int fd;

	if (!environment_library(environment, path, sizeof(path)) || path[0] != '/' ||
	    strchr(path, '$'))
		return true;
	fd = sys_open(path, O_RDONLY, 0);
	if (fd >= 0)
		sys_close(fd);
	return fd >= 0 || fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM;
}

static long check_access(const char *path)
{
	enum { FACCESSAT2 = 439 };

	return sys_call(FACCESSAT2, AT_FDCWD, (long)path, W_OK | X_OK, AT_EACCESS, 0, 0);
}

/* Says whether the program could not write a trace. Nobody can then record what it starts. */
static bool directory_is_closed(void)
{
	const char *directory = trace_file_directory();
	char path[512];
	const char *end = path + sizeof(path);
	long rc = check_access(directory);

	if (rc == -EACCES && strlen(directory) < sizeof(path) - 40) {
		/* other users have a directory in it */
		text_append_number(
		    text_append(text_append(path, end, directory), end, "/" RIGHTS_DIRECTORY), end,
		    (uint64_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0));
		rc = check_access(path);
		return rc != 0 && rc != -ENOSYS && rc != -EPERM;
	}
	return rc == -EACCES || rc == -EROFS;
}

/* By kind of program: why it is not recorded, and with which environment it starts. */
static const struct {
	enum trace_unrecorded_why why;
	enum environment_change change;
} treatments[] = {
    [PROGRAM_STATIC] = {TRACE_UNRECORDED_STATIC, ENVIRONMENT_LENIENT},
    [PROGRAM_MUSL] = {TRACE_UNRECORDED_MUSL, ENVIRONMENT_TWICE},
    [PROGRAM_LOADER] = {TRACE_UNRECORDED_LOADER, ENVIRONMENT_WITHOUT},
    [PROGRAM_MACHINE] = {TRACE_UNRECORDED_MACHINE, ENVIRONMENT_WITHOUT},
    [PROGRAM_SANITIZED] = {TRACE_UNRECORDED_SANITIZER, ENVIRONMENT_AS_IS},
    [PROGRAM_SANITIZER_UNNAMED] = {TRACE_UNRECORDED_SANITIZER, ENVIRONMENT_WITHOUT},
    [PROGRAM_SANITIZER_LIBRARY] = {TRACE_UNRECORDED_SANITIZER, ENVIRONMENT_BEHIND},
    [PROGRAM_SCRIPT] = {0, ENVIRONMENT_AS_IS},
};

/* Inspects the program that execveat() would execute. False: start it unchanged. */
static bool inspect(
    int directory, const char *path, int flags, char *const *environment, struct decision *d)
{
	bool loads;

	d->change = ENVIRONMENT_AS_IS;
	d->why = 0;
	if (shim.sandboxed || !path || !environment_bytes(environment, ""))
		return false;
	program_examine(directory, path, flags, &d->program);
	d->why = treatments[d->program.kind].why;
	d->change = treatments[d->program.kind].change;
	loads = d->change != ENVIRONMENT_LENIENT && d->change != ENVIRONMENT_WITHOUT;
	if (d->program.secure && loads) {
		/* the loader ignores LD_PRELOAD without a word */
		d->why = TRACE_UNRECORDED_SETUID;
		d->change = ENVIRONMENT_AS_IS;
	} else if (loads && !library_is_there(environment)) {
		d->why = d->why ? d->why : TRACE_UNRECORDED_LIBRARY;
		d->change = ENVIRONMENT_WITHOUT;
	} else if (!d->why && shim.mode == SHIM_RECORDING && directory_is_closed()) {
		d->why = TRACE_UNRECORDED_DIRECTORY;
	}
	if (d->why && !d->program.path[0] && (flags & AT_EMPTY_PATH))
		sys_fd_path(directory, d->program.path, sizeof(d->program.path));
	return d->why;
}

/* --- the environment --- */

/*
 * Pages for an environment that is too large for the stack. The child of a vfork leaves them behind
 * when it executes a program; the next exec of the thread that waited for it uses them again.
 */
static __thread struct {
	void *pages;
	size_t bytes;
	int user; /* thread id; a thread other than the caller has executed a program or ended */
} env_pages __attribute__((tls_model("initial-exec")));

static void *env_pages_take(size_t bytes)
{
	int tid = sys_gettid();
	void *old;

	if (env_pages.user == tid)
		return sys_pages(bytes); /* for a signal handler that interrupted the user */
	if (env_pages.bytes < bytes) {
		old = env_pages.pages;
		env_pages.pages = NULL;
		sys_pages_free(old, env_pages.bytes);
		env_pages.pages = sys_pages(bytes);
		env_pages.bytes = env_pages.pages ? bytes : 0;
	}
	env_pages.user = env_pages.pages ? tid : 0;
	return env_pages.pages;
}

static void env_pages_release(void *pages, size_t bytes)
{
	if (pages == env_pages.pages) {
		env_pages.pages = NULL;
		bytes = env_pages.bytes;
		env_pages.bytes = 0;
		env_pages.user = 0;
	}
	sys_pages_free(pages, bytes);
}

/* A call that starts a program, without the environment. */
struct call {
	int (*go)(const struct call *, char *const *environment);
	pid_t *pid;
	const char *path;
	const void *actions, *attributes;
	char *const *argv;
	int fd, flags;
	long number; /* of syscall() */
};

#define SMALL_BYTES 3072u

static __attribute__((noinline)) int go_on_stack(
    const struct call *call, char *const *environment, const struct decision *d)
{
	void *pages[SMALL_BYTES / sizeof(void *)];

	return call->go(call, environment_make(environment, d->change, d->program.text, pages));
}

static int go_on_pages(
    const struct call *call, char *const *environment, const struct decision *d, size_t bytes)
{
	void *pages = env_pages_take(bytes);
	int rc;

	if (!pages)
		return call->go(call, environment);
	rc = call->go(call, environment_make(environment, d->change, d->program.text, pages));
	env_pages_release(pages, bytes);
	return rc;
}

/* Makes the call with the environment that the decision demands. */
static int run_call(const struct call *call, char *const *environment, const struct decision *d)
{
	bool noted = shim.mode == SHIM_RECORDING;
	size_t bytes = 0;
	int rc;

	if (noted)
		unrecorded_add(trace_file_header, d->why, d->program.path);
	if (d->change != ENVIRONMENT_AS_IS)
		bytes = environment_bytes(environment, d->program.text);
	if (!bytes)
		rc = call->go(call, environment);
	else if (bytes <= SMALL_BYTES)
		rc = go_on_stack(call, environment, d);
	else
		rc = go_on_pages(call, environment, d, bytes);
	if (noted && rc)
		unrecorded_take_back(trace_file_header, d->why, d->program.path);
	return rc;
}

/* An exec returns only when it has failed. */
static int failed(int rc)
{
	lifecycle_exec_failed();
	return rc;
}

/* --- by path --- */

static int go_execve(const struct call *call, char *const *environment)
{
	return real.execve(call->path, call->argv, environment);
}

static int exec_path(const char *path, char *const *argv, char *const *environment)
{
	struct decision d;

	lifecycle_exec_begins();
	if (!inspect(AT_FDCWD, path, 0, environment, &d))
		return failed(REAL(execve)(path, argv, environment));
	symbols_all();
	return failed(
	    run_call(&(struct call){.go = go_execve, .path = path, .argv = argv}, environment, &d));
}

SHIM_EXPORT int execve(const char *path, char *const *argv, char *const *environment)
{
	return exec_path(path, argv, environment);
}

SHIM_EXPORT int execv(const char *path, char *const *argv)
{
	struct decision d;

	lifecycle_exec_begins();
	if (!inspect(AT_FDCWD, path, 0, environ, &d))
		return failed(REAL(execv)(path, argv));
	symbols_all();
	return failed(
	    run_call(&(struct call){.go = go_execve, .path = path, .argv = argv}, environ, &d));
}

/* --- along PATH --- */

static bool inspect_on_path(const char *name, char *const *environment, struct decision *d)
{
	char path[512];

	if (shim.sandboxed || !name ||
	    !program_search(name, options_variable(environ, "PATH"), path, sizeof(path)))
		return false;
	return inspect(AT_FDCWD, path, 0, environment, d);
}

static int go_execvpe(const struct call *call, char *const *environment)
{
	return real.execvpe(call->path, call->argv, environment);
}

SHIM_EXPORT int execvpe(const char *name, char *const *argv, char *const *environment)
{
	struct decision d;

	lifecycle_exec_begins();
	if (!inspect_on_path(name, environment, &d))
		return failed(REAL(execvpe)(name, argv, environment));
	symbols_all();
	return failed(run_call(
	    &(struct call){.go = go_execvpe, .path = name, .argv = argv}, environment, &d));
}

static int exec_on_path(const char *name, char *const *argv)
{
	struct decision d;

	lifecycle_exec_begins();
	if (!inspect_on_path(name, environ, &d))
		return failed(REAL(execvp)(name, argv));
	symbols_all();
	return failed(
	    run_call(&(struct call){.go = go_execvpe, .path = name, .argv = argv}, environ, &d));
}

SHIM_EXPORT int execvp(const char *name, char *const *argv)
{
	return exec_on_path(name, argv);
}

/* --- with their arguments one by one --- */

/* Counts the strings from `first` on, with the terminating NULL. */
#define COUNT_ARGUMENTS(first, count)                                                              \
	do {                                                                                       \
		va_list counted;                                                                   \
		va_start(counted, first);                                                          \
		for (count = 1; va_arg(counted, char *); count++)                                  \
			;                                                                          \
		va_end(counted);                                                                   \
		count++;                                                                           \
	} while (0)

/* Copies them to the stack, as libc does. */
#define ARGUMENTS(first, argv, rest)                                                               \
	do {                                                                                       \
		size_t count = 1;                                                                  \
		COUNT_ARGUMENTS(first, count);                                                     \
		argv = __builtin_alloca(count * sizeof(char *));                                   \
		argv[0] = (char *)(uintptr_t)first;                                                \
		for (size_t i = 1; i < count; i++)                                                 \
			argv[i] = va_arg(rest, char *);                                            \
	} while (0)

SHIM_EXPORT int execl(const char *path, const char *first, ...)
{
	char **argv;
	va_list rest;

	va_start(rest, first);
	ARGUMENTS(first, argv, rest);
	va_end(rest);
	return exec_path(path, argv, environ);
}

SHIM_EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *environment;
	char **argv;
	va_list rest;

	va_start(rest, first);
	ARGUMENTS(first, argv, rest);
	environment = va_arg(rest, char *const *);
	va_end(rest);
	return exec_path(path, argv, environment);
}

SHIM_EXPORT int execlp(const char *name, const char *first, ...)
{
	char **argv;
	va_list rest;

	va_start(rest, first);
	ARGUMENTS(first, argv, rest);
	va_end(rest);
	return exec_on_path(name, argv);
}

/* --- by descriptor --- */

static int go_fexecve(const struct call *call, char *const *environment)
{
	return real.fexecve(call->fd, call->argv, environment);
}

SHIM_EXPORT int fexecve(int fd, char *const *argv, char *const *environment)
{
	struct decision d;

	lifecycle_exec_begins();
	if (fd < 0 || !inspect(fd, "", AT_EMPTY_PATH, environment, &d))
		return failed(REAL(fexecve)(fd, argv, environment));
	symbols_all();
	return failed(
	    run_call(&(struct call){.go = go_fexecve, .fd = fd, .argv = argv}, environment, &d));
}

/* glibc has execveat since 2.34. */
static int go_execveat(const struct call *call, char *const *environment)
{
	long rc;

	if (real.execveat)
		return real.execveat(call->fd, call->path, call->argv, environment, call->flags);
	rc = sys_call(SYS_execveat, call->fd, (long)call->path, (long)call->argv, (long)environment,
	    call->flags, 0);
	errno = (int)-rc;
	return -1;
}

SHIM_EXPORT int execveat(
    int directory, const char *path, char *const *argv, char *const *environment, int flags)
{
	const struct call call = {
	    .go = go_execveat, .fd = directory, .path = path, .argv = argv, .flags = flags};
	struct decision d;

	lifecycle_exec_begins();
	symbols_all();
	return failed(inspect(directory, path, flags, environment, &d)
			  ? run_call(&call, environment, &d)
			  : go_execveat(&call, environment));
}

/* --- through syscall() --- */

static int go_syscall(const struct call *call, char *const *environment)
{
	if (call->number == SYS_execve)
		return (int)real.syscall(call->number, call->path, call->argv, environment);
	return (int)real.syscall(
	    call->number, (long)call->fd, call->path, call->argv, environment, (long)call->flags);
}

long hook_exec_syscall(const struct raw_syscall *raw)
{
	bool at = raw->number == SYS_execveat;
	const long *argument = raw->argument + at;
	const struct call call = {.go = go_syscall,
	    .number = raw->number,
	    .fd = at ? (int)raw->argument[0] : AT_FDCWD,
	    .path = (const char *)argument[0],
	    .argv = (char *const *)argument[1],
	    .flags = at ? (int)raw->argument[4] : 0};
	char *const *environment = (char *const *)argument[2];
	struct decision decision;

	lifecycle_exec_begins();
	symbols_all();
	return failed(inspect(call.fd, call.path, call.flags, environment, &decision)
			  ? run_call(&call, environment, &decision)
			  : go_syscall(&call, environment));
}

/* --- posix_spawn --- */

static int go_spawn(const struct call *call, char *const *environment)
{
	return real.posix_spawn(
	    call->pid, call->path, call->actions, call->attributes, call->argv, environment);
}

static int go_spawnp(const struct call *call, char *const *environment)
{
	return real.posix_spawnp(
	    call->pid, call->path, call->actions, call->attributes, call->argv, environment);
}

SHIM_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes, char *const *argv, char *const *environment)
{
	const struct call call = {.go = go_spawn,
	    .pid = pid,
	    .path = path,
	    .actions = actions,
	    .attributes = attributes,
	    .argv = argv};
	struct decision d;

	symbols_all();
	return inspect(AT_FDCWD, path, 0, environment, &d) ? run_call(&call, environment, &d)
							   : go_spawn(&call, environment);
}

SHIM_EXPORT int posix_spawnp(pid_t *pid, const char *name,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
    char *const *argv, char *const *environment)
{
	const struct call call = {.go = go_spawnp,
	    .pid = pid,
	    .path = name,
	    .actions = actions,
	    .attributes = attributes,
	    .argv = argv};
	struct decision d;

	symbols_all();
	return inspect_on_path(name, environment, &d) ? run_call(&call, environment, &d)
						      : go_spawnp(&call, environment);
}
