/*
 * refusals.c - see refusals.h.
 */
#include "attach/refusals.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/exported.h"

#define ENVIRONMENT_MAX (1u << 20)
#define CAP_SYS_PTRACE_BIT 19
#define CONTAINER                                                                                  \
	"in a container: docker run --cap-add=SYS_PTRACE, or kubectl debug --target=CONTAINER "    \
	"--profile=general"

static bool have_ptrace_right(void)
{
	unsigned long long rights = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &rights) == 1)
			break;
	if (f)
		fclose(f);
	return rights >> CAP_SYS_PTRACE_BIT & 1;
}

/* -1: there is no Yama. */
static int yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = -1;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = -1;
	if (f)
		fclose(f);
	return scope;
}

int refusals_trace(const struct target *t, int error, struct err *err)
{
	int scope = yama_scope();

	if (error == -ESRCH)
		return err_set(err, error, "process %d (%s) has ended", (int)t->pid, t->name);
	if (error != -EPERM && error != -EACCES)
		return err_set(err, error, "process %d (%s) cannot be traced: %s", (int)t->pid,
		    t->name, strerror(-error));
	if (have_ptrace_right())
		return err_set(err, -EPERM,
		    "process %d (%s) may not be traced, although this is CAP_SYS_PTRACE: a "
		    "security module or a seccomp filter forbids it (%s)",
		    (int)t->pid, t->name,
		    scope == 3 ? "kernel.yama.ptrace_scope is 3, which stays until a restart"
			       : CONTAINER);
	if (t->uid != geteuid())
		return err_set(err, -EPERM,
		    "process %d (%s) is user %u's: attach as that user, for instance with sudo "
		    "-u '#%u', or as root",
		    (int)t->pid, t->name, (unsigned)t->uid, (unsigned)t->uid);
	if (scope > 0)
		return err_set(err, -EPERM,
		    "process %d (%s) may not be traced, since kernel.yama.ptrace_scope is %d: run "
		    "with sudo, or sysctl kernel.yama.ptrace_scope=0 (%s)",
		    (int)t->pid, t->name, scope, CONTAINER);
	return err_set(err, -EPERM,
	    "process %d (%s) may not be traced: it has changed its user or its rights, or made "
	    "itself not dumpable: attach as root, for instance with sudo (%s)",
	    (int)t->pid, t->name, CONTAINER);
}

static int check_state(const struct target *t, struct err *err)
{
	int pid = (int)t->pid;

	if (t->leader != t->pid)
		return err_set(err, -EINVAL,
		    "%d is a thread of process %d (%s): give the process's id", pid, (int)t->leader,
		    t->name);
	if (t->pid == getpid())
		return err_set(err, -EINVAL, "process %d is this command itself", pid);
	if (t->kernel)
		return err_set(err, -EINVAL, "%d (%s) is a thread of the kernel", pid, t->name);
	if (t->state == 'Z' || t->state == 'X')
		return err_set(err, -ESRCH,
		    "process %d (%s) has ended, and its parent has not waited for it yet", pid,
		    t->name);
	if (t->tracer)
		return err_set(err, -EBUSY,
		    "process %d (%s) is traced by process %d, for instance a debugger: detach "
		    "that first",
		    pid, t->name, (int)t->tracer);
	if (t->state == 'T' || t->state == 't')
		return err_set(err, -EBUSY,
		    "process %d (%s) is stopped, by Ctrl-Z or SIGSTOP: continue it with kill "
		    "-CONT %d first",
		    pid, t->name, pid);
	if (t->seccomp == 1)
		return err_set(err, -EPERM,
		    "process %d (%s) has seccomp's strict mode: any call that opens a library "
		    "would kill it",
		    pid, t->name);
	return 0;
}

/* Reads the first bytes of the program's file. */
static int check_program(const struct target *t, struct err *err)
{
	unsigned char head[EI_NIDENT + 4];
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, head, sizeof(head));
		close(fd);
	}
	if (n == (ssize_t)sizeof(head) && !memcmp(head, ELFMAG, SELFMAG) &&
	    head[EI_CLASS] != ELFCLASS64)
		return err_set(err, -ENOTSUP,
		    "process %d (%s) is a 32-bit program: whyoom records 64-bit programs",
		    (int)t->pid, t->name);
	return 0;
}

static const struct target_map *mapped(const struct target *t, const char *beginning)
{
	for (size_t i = 0; i < t->maps.count; i++)
		if (target_is_file(&t->maps.items[i], beginning))
			return &t->maps.items[i];
	return NULL;
}

static int check_libc(const struct target *t, struct err *err)
{
	bool glibc = mapped(t, "libc.so.6") || mapped(t, "libc-2.");

	/* Debian's musl is plain libc.so, which its loader's name is a link to. */
	if (mapped(t, "ld-musl") || mapped(t, "libc.musl") || (!glibc && mapped(t, "libc.so")))
		return err_set(err, -ENOTSUP,
		    "process %d (%s) uses musl's C library: whyoom records programs of glibc",
		    (int)t->pid, t->name);
	if (!glibc)
		return err_set(err, -ENOTSUP,
		    "process %d (%s) is linked statically, or by another loader: there is no "
		    "glibc in it that could open a library; link it dynamically",
		    (int)t->pid, t->name);
	return 0;
}

static int check_sanitizers(const struct target *t, struct err *err)
{
	static const char *const libraries[] = {
	    "libasan.", "libtsan.", "liblsan.", "libhwasan.", "libclang_rt."};
	static const char *const functions[] = {
	    "__asan_init", "__tsan_init", "__msan_init", "__lsan_init", "__hwasan_init"};
	const struct target_map *program = target_program(t);
	const char *found = NULL;
	struct exported_function f;
	struct exported e;

	for (size_t i = 0; !found && i < sizeof(libraries) / sizeof(*libraries); i++)
		if (mapped(t, libraries[i]))
			found = libraries[i];
	/* clang puts them into the program itself. */
	if (!found && program && !exported_open(t->pid, program->lo, &e))
		for (size_t i = 0; !found && i < sizeof(functions) / sizeof(*functions); i++)
			if (exported_find(&e, functions[i], &f))
				found = functions[i];
	if (!found)
		return 0;
	return err_set(err, -ENOTSUP,
	    "process %d (%s) is built with a sanitizer (%s), which replaces malloc and watches "
	    "memory itself: attach to one that is built without",
	    (int)t->pid, t->name, found);
}

/* Was the library in LD_PRELOAD when the program started? */
static bool is_preloaded(const struct target *t)
{
	char path[64], *text = malloc(ENVIRONMENT_MAX);
	bool found = false;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)t->pid);
	f = text ? fopen(path, "re") : NULL;
	if (f) {
		n = fread(text, 1, ENVIRONMENT_MAX - 1, f);
		fclose(f);
	}
	for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
		text[n] = '\0';
		if (!strncmp(text + at, "LD_PRELOAD=", 11) && strstr(text + at, "libwhyoom.so"))
			found = true;
	}
	free(text);
	return found;
}

static int check_library(const struct target *t, enum refusals_for what, struct err *err)
{
	bool there = false;

	for (size_t i = 0; i < t->maps.count; i++)
		there |= target_is_library(&t->maps.items[i]);
	if (what == REFUSALS_DETACH) {
		if (!there)
			return err_set(err, -ENOENT,
			    "process %d (%s) is not attached to: libwhyoom.so is not in it",
			    (int)t->pid, t->name);
		if (is_preloaded(t))
			return err_set(err, -EINVAL,
			    "process %d (%s) was started with libwhyoom.so in front, and keeps "
			    "it: whyoom ctl %d pause stops the recording",
			    (int)t->pid, t->name, (int)t->pid);
		return 0;
	}
	/* One that was attached to before has it, too; the library knows whether it records. */
	if (there && is_preloaded(t))
		return err_set(err, -EALREADY,
		    "process %d (%s) was started with libwhyoom.so in front: whyoom ctl %d resume "
		    "makes it record",
		    (int)t->pid, t->name, (int)t->pid);
	return 0;
}

int refusals_check(struct target *t, enum refusals_for what, struct err *err)
{
	int rc = check_state(t, err);

	if (rc)
		return rc;
	rc = target_read_maps(t);
	if (rc == -EACCES)
		return refusals_trace(t, rc, err);
	if (rc == -ESRCH || (!rc && !t->maps.count))
		return err_set(err, -ESRCH, "process %d (%s) has ended", (int)t->pid, t->name);
	if (rc)
		return err_set(err, rc, "out of memory");
	rc = check_program(t, err);
	if (!rc)
		rc = check_libc(t, err);
	if (!rc)
		rc = check_sanitizers(t, err);
	return rc ? rc : check_library(t, what, err);
}

const char *refusals_warning(const struct target *t)
{
	if (t->seccomp == 2)
		return "it has a seccomp filter, which judges the calls that opening a library "
		       "and writing a trace need, and may refuse them or kill it";
	return "";
}
