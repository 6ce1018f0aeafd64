/*
 * attach.c - see attach.h. A child of this process traces: it has a session of its own, blocks
 * signals, and asks the kernel to be spared when memory is short, so that neither Ctrl-C nor the
 * end of a terminal nor the death of this process interrupts it.
 */
#include "attach/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/own_thread.h"
#include "attach/refusals.h"
#include "attach/remote.h"

#define SAFE_POINT_MS 10000u /* to find a thread that can be asked */
#define CALL_MS 10000u /* for one call: opening the library takes some milliseconds */
#define COPY_BYTES 65536u
#define MEMORY_NAME "libwhyoom.so"
#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

/* What the child leaves for its parent. */
struct shared {
	bool finished;
	int rc;
	struct attach_done done;
	struct err err;
	struct safe_point point;
};

/* Functions of the target's loader. */
struct loader {
	uint64_t open, error; /* addresses; `error` 0: none */
	uint64_t flags;
};

/* dlopen() is in libc since glibc 2.34. Before, libdl may not be there, but libc has its own. */
static int find_loader(
    const struct target *t, const struct landmarks *marks, struct loader *out, struct err *err)
{
	const struct target_map *libdl = target_module(t, "libdl");
	struct exported symbols = marks->libc;
	struct exported_function s;

	*out = (struct loader){.flags = RTLD_NOW};
	if (!exported_find(&symbols, "dlopen", &s) && libdl &&
	    exported_open(t->pid, libdl->lo, &symbols))
		symbols = marks->libc;
	if (exported_find(&symbols, "dlopen", &s)) {
		out->open = s.address;
		if (exported_find(&symbols, "dlerror", &s))
			out->error = s.address;
		return 0;
	}
	if (!exported_find(&marks->libc, "__libc_dlopen_mode", &s))
		return err_set(err, -ENOTSUP,
		    "process %d (%s): its C library cannot open another "
		    "library",
		    (int)t->pid, t->name);
	out->open = s.address;
	out->flags = RTLD_NOW | 0x80000000u; /* __RTLD_DLOPEN */
	return 0;
}

/* Finds a function of the library, which is in the target. */
static int find_function(
    const struct target *before, const char *name, uint64_t *address, struct err *err)
{
	struct target now = {.pid = before->pid};
	struct exported symbols;
	struct exported_function symbol;
	int rc = target_read_maps(&now);

	*address = 0;
	for (size_t i = 0; !rc && !*address && i < now.maps.count; i++) {
		const struct target_map *map = &now.maps.items[i];

		if (!map->offset && target_is_library(map) &&
		    !exported_open(now.pid, map->lo, &symbols) &&
		    exported_find(&symbols, name, &symbol))
			*address = symbol.address;
	}
	target_fini(&now);
	if (*address)
		return 0;
	return err_set(err, rc ? rc : -ENOTSUP,
	    "process %d (%s): libwhyoom.so in it has no %s(): it is of another version",
	    (int)before->pid, before->name, name);
}

/* Copies the library into a memory file of the target. Returns its descriptor there, or negative
 * errno. */
static int64_t copy_library(struct remote *r, const char *library)
{
	const uint64_t name = remote_text(r, MEMORY_NAME, sizeof(MEMORY_NAME));
	char path[96], *bytes = malloc(COPY_BYTES);
	int from = open(library, O_RDONLY | O_CLOEXEC), to = -1;
	int64_t fd = !bytes ? -ENOMEM : from < 0 ? -errno : name ? 0 : -EFAULT;
	ssize_t n = 0;

	if (!fd)
		fd = remote_syscall(
		    r, SYS_memfd_create, (const uint64_t[6]){name, MFD_CLOEXEC | MFD_EXEC});
	if (fd == -EINVAL) /* Linux before 6.3 */
		fd = remote_syscall(r, SYS_memfd_create, (const uint64_t[6]){name, MFD_CLOEXEC});
	if (fd >= 0) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)r->target->pid, (int)fd);
		to = open(path, O_WRONLY | O_CLOEXEC);
	}
	while (
	    to >= 0 && (n = read(from, bytes, COPY_BYTES)) > 0 && write(to, bytes, (size_t)n) == n)
		;
	if (fd >= 0 && (to < 0 || n)) {
		remote_syscall(r, SYS_close, (const uint64_t[6]){(uint64_t)fd});
		fd = -EIO;
	}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	free(bytes);
	return fd;
}

/* Says why dlopen() refused, in its own words. */
static int explain_open(
    struct remote *r, const struct loader *loader, const char *path, struct err *err)
{
	char text[256] = "";
	const uint64_t none[MACHINE_ARGUMENTS] = {0};
	int64_t words = 0;

	if (loader->error && !remote_call(r, loader->error, none, CALL_MS, &words, err) && words)
		for (size_t i = 0; i + 1 < sizeof(text); i++) {
			if (!target_peek(r->target->pid, (uint64_t)words + i, &text[i], 1))
				text[i] = '\0';
			if (!text[i])
				break;
		}
	return err_set(err, -ELIBACC, "process %d (%s) could not open %.120s: %s",
	    (int)r->target->pid, r->target->name, path, *text ? text : "its loader refused");
}

/* Opens the library in the target. */
static int open_library(struct remote *r, const struct attach_request *request,
    const struct loader *loader, struct err *err)
{
	char path[PATH_MAX];
	int64_t handle = 0, fd = -1;
	uint64_t text;
	int rc;

	snprintf(path, sizeof(path), "%s", request->library);
	if (request->in_memory) {
		fd = copy_library(r, request->library);
		if (fd < 0)
			return err_set(err, (int)fd,
			    "process %d (%s) cannot be given a copy of %s: %s", (int)r->target->pid,
			    r->target->name, request->library, strerror((int)-fd));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", (int)fd);
	}
	text = remote_text(r, path, strlen(path) + 1);
	rc = text ? remote_call(r, loader->open,
			(const uint64_t[MACHINE_ARGUMENTS]){text, loader->flags}, CALL_MS, &handle,
			err)
		  : err_set(err, -EFAULT, "out of the target's memory");
	if (!rc && !handle)
		rc = explain_open(r, loader, path, err);
	if (fd >= 0 && !r->lost)
		remote_syscall(r, SYS_close, (const uint64_t[6]){(uint64_t)fd});
	return rc;
}

/* Calls the library's function. */
static int call_library(struct remote *r, const struct attach_request *request,
    struct attach_done *done, struct err *err)
{
	uint64_t function, text = 0;
	int64_t result = 0;
	int rc = find_function(request->target, request->function, &function, err);

	if (!rc && request->settings) {
		text = remote_text(r, request->settings, request->settings_bytes);
		if (!text)
			rc = err_set(err, -E2BIG, "the settings are too long");
	}
	if (!rc)
		rc = remote_call(r, function,
		    (const uint64_t[MACHINE_ARGUMENTS]){text, request->settings_bytes}, CALL_MS,
		    &result, err);
	if (!rc)
		done->result = (int32_t)result;
	return rc;
}

static int perform(const struct attach_request *request, struct safe_point *point,
    struct attach_done *done, struct err *err)
{
	struct landmarks marks;
	struct loader loader = {0};
	struct remote remote;
	struct own_thread own;
	bool apart;
	int rc = landmarks_find(request->target, &marks, err);

	if (!rc)
		rc = find_loader(request->target, &marks, &loader, err);
	if (!rc)
		rc = safe_point_reach(request->target, &marks, SAFE_POINT_MS, point, err);
	if (rc == -EPERM)
		return refusals_trace(request->target, rc, err);
	if (!rc)
		rc = remote_begin(request->target, &marks, point, &remote, err);
	if (rc)
		return rc;
	done->thread = point->tracee.tid;
	done->how = point->how;
	rc = own_thread_begin(&remote, &marks, &own, err);
	if (rc < 0)
		return rc;
	apart = !rc;
	rc = request->library ? open_library(&remote, request, &loader, err) : 0;
	if (!rc)
		rc = call_library(&remote, request, done, err);
	done->apart = apart;
	if (apart) {
		done->pause_ns = own.pause_ns;
		own_thread_end(&own);
	} else {
		done->pause_ns = remote_end(&remote);
	}
	return rc;
}

/* The child's part. */
static void trace_apart(const struct attach_request *request, struct shared *shared)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t n;

	setsid();
	setpriority(PRIO_PROCESS, 0, -20); /* refused without rights, and slower then */
	if (fd >= 0) {
		n = write(fd, "-1000", 5); /* refused without rights, and no harm then */
		(void)n;
		close(fd);
	}
	shared->rc = perform(request, &shared->point, &shared->done, &shared->err);
	shared->finished = true;
}

int attach_call(const struct attach_request *request, struct attach_done *out, struct err *err)
{
	struct shared *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;
	int rc, status;
	pid_t pid;

	if (shared == MAP_FAILED)
		return err_set(err, -ENOMEM, "out of memory");
	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		trace_apart(request, shared);
		_exit(0);
	}
	rc = pid < 0 ? -errno : 0;
	while (!rc && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!rc && !shared->finished)
		safe_point_unwatch(&shared->point);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc)
		err_set(err, rc, "cannot start a process: %s", strerror(-rc));
	else if (!shared->finished)
		rc = err_set(err, -ECANCELED,
		    "the process that traces was killed: look after process %d, which may have "
		    "been left in the middle",
		    (int)request->target->pid);
	else {
		rc = shared->rc;
		*out = shared->done;
		if (rc && err)
			*err = shared->err;
	}
	munmap(shared, sizeof(*shared));
	return rc;
}
