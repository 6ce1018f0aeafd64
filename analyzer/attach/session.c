/*
 * session.c - see session.h.
 */
#include "attach/session.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/refusals.h"

/* A thread of the target that writes an event is done with it at once, unless it was descheduled.
 */
#define AGAIN_MS 100
#define AGAIN_MAX 10u

bool session_is_elsewhere(const struct target *target)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/.", (int)target->pid);
	return target->other_mounts ||
	       (!stat(path, &theirs) && !stat("/", &ours) &&
		   (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev));
}

bool session_may(uid_t uid, gid_t gid, const char *path, int how)
{
	int status = 1;
	pid_t pid;

	if (uid == geteuid())
		return !access(path, how);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) || setgid(gid) || setuid(uid))
			_exit(2);
		_exit(access(path, how) ? 1 : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

/* Can the target open the very file that we see? */
static bool can_open(const struct target *t, const char *library)
{
	char path[PATH_MAX];
	struct stat theirs, ours;

	return snprintf(path, sizeof(path), "/proc/%d/root%s", (int)t->pid, library) <
		   (int)sizeof(path) &&
	       !stat(path, &theirs) && !stat(library, &ours) && theirs.st_ino == ours.st_ino &&
	       theirs.st_dev == ours.st_dev && session_may(t->uid, t->gid, library, R_OK);
}

/* What whyoom_attach() says, in words. */
static int explain_attach(const struct target *t, int rc, struct err *err)
{
	int pid = (int)t->pid;

	switch (-rc) {
	case EALREADY:
		return err_set(err, rc,
		    "process %d (%s) is recorded already: whyoom ctl %d status shows how", pid,
		    t->name, pid);
	case EBUSY:
		return err_set(err, rc,
		    "process %d (%s) has another tool in front of malloc: end that, or start the "
		    "program with whyoom run, which records both",
		    pid, t->name);
	case EOPNOTSUPP:
		return err_set(err, rc,
		    "process %d (%s) cannot be attached to: the library or a sanitizer was there "
		    "from its start, or it was forked by one that had been attached to, or the "
		    "directory is on a tmpfs",
		    pid, t->name);
	case EAGAIN:
		return err_set(err, rc,
		    "process %d (%s): one of its threads is still writing the trace of an earlier "
		    "attach: try again",
		    pid, t->name);
	case ESHUTDOWN:
		return err_set(err, rc, "process %d (%s) is about to end", pid, t->name);
	case ENOSYS:
		return err_set(
		    err, rc, "process %d (%s) has no malloc that can be found", pid, t->name);
	default:
		return err_set(err, rc,
		    "process %d (%s) cannot write a trace there: %s; name a directory on a disk "
		    "with -o that its user (%u) may write to",
		    pid, t->name, strerror(-rc), (unsigned)t->uid);
	}
}

/* What whyoom_detach() says, in words. */
static int explain_detach(const struct target *t, int rc, struct err *err)
{
	int pid = (int)t->pid;

	switch (-rc) {
	case EINVAL:
		return err_set(err, rc,
		    "process %d (%s) is not recorded any more, or was never attached to", pid,
		    t->name);
	case EOPNOTSUPP:
		return err_set(err, rc,
		    "process %d (%s) was forked by one that is attached to: detach that one", pid,
		    t->name);
	case EPERM:
		return err_set(err, rc,
		    "process %d (%s) has a filter of system calls by now, which may forbid what "
		    "detaching needs: whyoom ctl %d pause stops the recording",
		    pid, t->name, pid);
	default:
		return err_set(err, rc, "process %d (%s): whyoom_detach() refused: %s", pid,
		    t->name, strerror(-rc));
	}
}

/* Calls the function, again while another thread of the target is in its way. The library's answer
 * is a negative errno of done->result. */
static int ask(const struct attach_request *request, struct attach_done *done, struct err *err)
{
	const struct timespec pause = {0, AGAIN_MS * 1000000};
	int rc = attach_call(request, done, err);

	for (unsigned i = 1; !rc && done->result == -EAGAIN && i < AGAIN_MAX; i++) {
		nanosleep(&pause, NULL);
		rc = attach_call(request, done, err);
	}
	if (!rc && (done->result > 0 || done->result < -4095))
		rc = err_set(err, -EPROTO, "process %d (%s): %s() gives an answer that is none",
		    (int)request->target->pid, request->target->name, request->function);
	return rc;
}

int session_begin(const struct target *target, const char *library, const char *settings,
    size_t bytes, struct attach_done *done, struct err *err)
{
	struct attach_request request = {.target = target,
	    .library = library,
	    .in_memory = !can_open(target, library),
	    .function = "whyoom_attach",
	    .settings = settings,
	    .settings_bytes = bytes};
	int rc;

	/* One that was attached to before has the library, perhaps another version of it. */
	for (size_t i = 0; i < target->maps.count; i++)
		if (target_is_library(&target->maps.items[i]))
			request.library = NULL;
	rc = ask(&request, done, err);
	return rc || !done->result ? rc : explain_attach(target, (int)done->result, err);
}

int session_end(pid_t pid, struct attach_done *done, struct err *err)
{
	struct attach_request request = {.function = "whyoom_detach"};
	struct target target;
	int rc = target_read(pid, &target, err);

	if (!rc)
		rc = refusals_check(&target, REFUSALS_DETACH, err);
	if (!rc) {
		request.target = &target;
		rc = ask(&request, done, err);
	}
	/* With -EBUSY it has ended, and a thread is writing its last event. */
	if (!rc && done->result && done->result != -EBUSY)
		rc = explain_detach(&target, (int)done->result, err);
	target_fini(&target);
	return rc;
}
