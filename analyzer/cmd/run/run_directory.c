/*
 * run_directory.c - see run_directory.h. Traces of an earlier run move to DIR/earlier/TIME, and the
 * three newest runs there are kept: a container that keeps restarting in the same place must
 * neither mix up its traces nor fill the disk.
 */
#include "cmd/run/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "cmd/supervise/proc.h"
#include "cmd/supervise/supervisor_trace.h"
#include "trace/trace.h"

#define EARLIER "earlier"
#define KEPT 3

static bool is_trace(const char *name)
{
	size_t n = strlen(name);

	return n > 7 && name[0] != '.' && !strcmp(name + n - 7, ".whyoom");
}

/* Of many processes that recorded little? */
static bool is_small(const char *name)
{
	size_t n = strlen(name), m = strlen(TRACE_SMALL_SUFFIX);

	return n > m && name[0] != '.' && !strcmp(name + n - m, TRACE_SMALL_SUFFIX);
}

bool run_dir_is_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* A copy of the descriptor, for readdir() from the start. */
static DIR *list(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d && copy >= 0)
		close(copy);
	return d;
}

/* A directory in ours that belongs to a user: opened, or -1. Never a link. */
static int open_callsite(int dir, const char *name)
{
	return trace_is_user_directory(name)
		   ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		   : -1;
}

struct found {
	bool any; /* traces of processes that are gone */
	bool killed; /* and one of them, or the supervisor, had no time to say goodbye */
	bool in_use; /* another supervisor holds it */
	bool supervisor; /* there is a run.whyoom */
	bool supervisor_ended;
	bool running; /* traces of processes that are not gone */
	uint64_t real_ns; /* when the earlier run began */
};

/* Reads a trace's header. False: not ours, or too short to say anything. */
static bool read_header(int dir, const char *name, struct trace_header *h, struct stat *st, int *fd)
{
	*fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return false;
	if (!fstat(*fd, st) && S_ISREG(st->st_mode) &&
	    pread(*fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) &&
	    !memcmp(h->magic, TRACE_MAGIC, sizeof(h->magic)))
		return true;
	close(*fd);
	return false;
}

static bool still_runs(const struct trace_header *h, const struct stat *st)
{
	return h->end_how == TRACE_END_NONE && h->pid &&
	       run_proc_maps_file((pid_t)h->pid, st->st_dev, st->st_ino);
}

/* `top`: not a user's directory in ours, where no supervisor is. */
static void survey_traces(int dir, bool top, struct found *found)
{
	struct dirent *e;
	DIR *d = list(dir);

	while (d && (e = readdir(d))) {
		int fd = top ? open_callsite(dir, e->d_name) : -1;
		struct trace_header h;
		struct stat st;

		if (fd >= 0) {
			survey_traces(fd, false, found);
			close(fd);
			continue;
		}
		if (is_small(e->d_name)) {
			found->any = true;
			if (!found->real_ns && !fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
				found->real_ns = (uint64_t)st.st_mtime * 1000000000u;
		}
		if (!is_trace(e->d_name) || !read_header(dir, e->d_name, &h, &st, &fd))
			continue;
		if (h.mode == TRACE_MODE_SUPERVISOR && top) {
			found->any = found->supervisor = true;
			found->in_use |= flock(fd, LOCK_EX | LOCK_NB) != 0;
			found->supervisor_ended = h.end_how != TRACE_END_NONE;
			found->real_ns = h.start_real_ns;
		} else if (!still_runs(&h, &st)) {
			found->any = true;
			found->killed |= h.end_how == TRACE_END_NONE;
			if (!found->supervisor && h.start_real_ns > found->real_ns)
				found->real_ns = h.start_real_ns;
		} else {
			found->running = true;
		}
		close(fd);
	}
	if (d)
		closedir(d);
}

static void survey(int dir, struct found *found)
{
	*found = (struct found){0};
	survey_traces(dir, true, found);
	/* A supervisor that lived to the end has told its user already. */
	if (found->supervisor)
		found->killed = !found->supervisor_ended;
}

/* A user may have put other files into its own directory. */
static void remove_files(int fd, bool all)
{
	struct dirent *e;
	DIR *d = list(fd);

	while (d && (e = readdir(d))) {
		int callsite = all ? -1 : open_callsite(fd, e->d_name);

		if (callsite >= 0) {
			remove_files(callsite, true);
			close(callsite);
			unlinkat(fd, e->d_name, AT_REMOVEDIR);
		} else if (all || is_trace(e->d_name) || is_small(e->d_name) ||
			   !strcmp(e->d_name, TRACE_DISK_NAME)) {
			unlinkat(fd, e->d_name, 0);
		}
	}
	if (d)
		closedir(d);
}

static int remove_archive(int earlier, const char *name)
{
	int fd = openat(earlier, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	remove_files(fd, false);
	close(fd);
	return unlinkat(earlier, name, AT_REMOVEDIR) ? -errno : 0;
}

/* Does a process run that has its trace in this user's directory? */
static bool callsite_in_use(int callsite)
{
	struct found found = {0};

	survey_traces(callsite, false, &found);
	return found.running;
}

/* Names are times: the smallest is the oldest. */
static void prune(int earlier)
{
	for (;;) {
		char oldest[64] = "";
		unsigned count = 0;
		struct dirent *e;
		DIR *d = list(earlier);

		while (d && (e = readdir(d))) {
			if (strlen(e->d_name) < 16 || strlen(e->d_name) >= sizeof(oldest) ||
			    e->d_name[8] != 'T')
				continue;
			count++;
			if (!*oldest || strcmp(e->d_name, oldest) < 0)
				strcpy(oldest, e->d_name);
		}
		if (d)
			closedir(d);
		if (count <= KEPT || remove_archive(earlier, oldest))
			return;
	}
}

static int put_away(struct run_dir *dir, const struct found *found, struct err *err)
{
	time_t when = (time_t)(found->real_ns / 1000000000u);
	char name[64], stamp[32];
	struct dirent *e;
	struct tm tm;
	int earlier, fd = -1, rc = 0;
	DIR *d;

	if (mkdirat(dir->fd, EARLIER, 0700) && errno != EEXIST)
		return err_set(
		    err, -errno, "cannot make %s/%s: %s", dir->path, EARLIER, strerror(errno));
	earlier = openat(dir->fd, EARLIER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (earlier < 0)
		return err_set(
		    err, -errno, "cannot open %s/%s: %s", dir->path, EARLIER, strerror(errno));
	gmtime_r(&when, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), i ? "%s-%03u" : "%s", stamp, i);
		rc = mkdirat(earlier, name, 0700) ? -errno : 0;
		if (rc != -EEXIST)
			break;
	}
	if (!rc &&
	    (fd = openat(earlier, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		rc = -errno;
	d = rc ? NULL : list(dir->fd);
	while (d && (e = readdir(d))) {
		int file = open_callsite(dir->fd, e->d_name);
		struct trace_header h;
		struct stat st;

		if (file >= 0) {
			if (!callsite_in_use(file) && renameat(dir->fd, e->d_name, fd, e->d_name))
				rc = -errno;
			close(file);
			continue;
		}
		if (is_small(e->d_name) && renameat(dir->fd, e->d_name, fd, e->d_name))
			rc = -errno;
		if (!is_trace(e->d_name) || !read_header(dir->fd, e->d_name, &h, &st, &file))
			continue;
		close(file);
		if (!still_runs(&h, &st) && renameat(dir->fd, e->d_name, fd, e->d_name))
			rc = -errno;
	}
	if (d)
		closedir(d);
	if (fd >= 0)
		close(fd);
	if (!rc) {
		prune(earlier);
		if (found->killed && snprintf(dir->killed, sizeof(dir->killed), "%s/%s/%s",
					 dir->path, EARLIER, name) >= (int)sizeof(dir->killed))
			dir->killed[0] = '\0';
	}
	close(earlier);
	return rc ? err_set(err, rc, "cannot move the earlier traces in %s: %s", dir->path,
			strerror(-rc))
		  : 0;
}

/* Makes or opens one directory. -EBUSY: another supervisor uses it. */
static int open_at(
    const char *path, bool named, bool allow_tmpfs, struct run_dir *out, struct err *err)
{
	char absolute[PATH_MAX], *slash;
	struct found found;
	struct stat st;
	int rc;

	*out = (struct run_dir){.fd = -1};
	out->made = !mkdir(path, 0700);
	if (!out->made && errno != EEXIST)
		return err_set(
		    err, -errno, "cannot make the directory %s: %s", path, strerror(errno));
	out->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out->fd < 0) {
		rc = -errno;
		return err_set(err, rc, "cannot open the directory %s: %s", path,
		    rc == -ELOOP || rc == -ENOTDIR ? "it is a link or a file" : strerror(errno));
	}
	if (!realpath(path, absolute)) {
		rc = err_set(err, -errno, "cannot resolve %s: %s", path, strerror(errno));
		goto fail;
	}
	slash = absolute;
	snprintf(out->path, sizeof(out->path), "%s", slash);
	if (fstat(out->fd, &st)) {
		rc = err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
		goto fail;
	}
	/* A name that could be guessed may have been taken by somebody who wants to read along. */
	if (!out->made && !named && (st.st_uid != geteuid() || (st.st_mode & 077))) {
		rc = err_set(
		    err, -EPERM, "%s belongs to another user, or others may write to it", path);
		goto fail;
	}
	if (!out->made && (st.st_mode & (S_IWGRP | S_IWOTH)))
		snprintf(out->note, sizeof(out->note),
		    "others may write to %.300s: the traces are private, but could be removed",
		    out->path);
	if (!allow_tmpfs && run_dir_is_memory(out->fd)) {
		rc = err_set(err, -EOPNOTSUPP,
		    "%s is on a tmpfs, whose pages are memory and count against the same limit: "
		    "name a directory on a disk with -o, or give --allow-tmpfs",
		    out->path);
		goto fail;
	}
	if (faccessat(out->fd, ".", W_OK | X_OK, AT_EACCESS)) {
		rc = err_set(err, -errno, "cannot write to %s: %s", out->path, strerror(errno));
		goto fail;
	}
	survey(out->fd, &found);
	if (found.in_use) {
		rc = err_set(err, -EBUSY,
		    "another `whyoom run` is using %s: name another directory with -o", out->path);
		goto fail;
	}
	rc = found.any ? put_away(out, &found, err) : 0;
	/* each run has a bound of its own; who still runs goes on with the earlier one's */
	if (!rc && unlinkat(out->fd, TRACE_DISK_NAME, 0) && errno != ENOENT)
		rc = err_set(err, -errno, "cannot remove %s/" TRACE_DISK_NAME ": %s", out->path,
		    strerror(errno));
	if (!rc)
		return 0;
fail:
	run_dir_discard(out);
	return rc;
}

int run_dir_open(const struct run_dir_wish *wish, struct run_dir *out, struct err *err)
{
	char name[64], elsewhere[80];
	struct err first;
	int rc;

	if (wish->path && *wish->path) {
		rc = open_at(wish->path, true, wish->allow_tmpfs, out, err);
		if (rc != -EBUSY || !wish->inherited)
			return rc;
	}
	snprintf(name, sizeof(name), "whyoom.%d", (int)(wish->pid ? wish->pid : getpid()));
	rc = open_at(name, false, wish->allow_tmpfs, out, &first);
	if (!rc)
		return 0;
	snprintf(elsewhere, sizeof(elsewhere), "/var/tmp/%s", name);
	if (open_at(elsewhere, false, wish->allow_tmpfs, out, err)) {
		*err = first;
		return rc;
	}
	snprintf(out->note, sizeof(out->note), "the traces go to %s, as %s", elsewhere,
	    rc == -EOPNOTSUPP ? "the current directory is on a tmpfs"
			      : "the current directory cannot be used");
	return 0;
}

static bool any_failed(int dir, bool top)
{
	bool failed = false;
	struct dirent *e;
	DIR *d = list(dir);

	if (!d)
		return true;
	while (!failed && (e = readdir(d))) {
		int fd = top ? open_callsite(dir, e->d_name) : -1;
		struct trace_header h;
		struct stat st;

		if (fd >= 0) {
			failed = any_failed(fd, false);
			close(fd);
			continue;
		}
		if (!is_trace(e->d_name) || !read_header(dir, e->d_name, &h, &st, &fd))
			continue;
		close(fd);
		/* Where even the trace found no memory, the call may not have come to be noted. */
		failed = (h.flags & TRACE_FLAG_FAILED) || h.dropped[TRACE_DROP_NO_MEMORY];
	}
	closedir(d);
	return failed;
}

bool run_dir_failed(const struct run_dir *dir)
{
	return any_failed(dir->fd, true);
}

/* Cuts the hole off at the end of a file whose process has gone: nobody has it open, or mapped,
 * which the kernel knows of other namespaces' processes, too. */
static void cut(int dir, const char *name)
{
	struct trace_header h;
	struct stat st;
	int fd, write_fd;

	if (!read_header(dir, name, &h, &st, &fd))
		return;
	write_fd = (uint64_t)st.st_size > h.file_bytes && h.file_bytes >= TRACE_SLOT_BYTES &&
			   h.mode != TRACE_MODE_SUPERVISOR && !still_runs(&h, &st)
		       ? openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
		       : -1;
	close(fd);
	if (write_fd < 0)
		return;
	if (!fcntl(write_fd, F_SETLEASE, F_WRLCK) && ftruncate(write_fd, (off_t)h.file_bytes))
		errno = 0; /* then it stays as it is */
	fcntl(write_fd, F_SETLEASE, F_UNLCK);
	close(write_fd);
}

static void tidy(int dir, bool top)
{
	struct dirent *e;
	DIR *d = list(dir);

	while (d && (e = readdir(d))) {
		int callsite = top ? open_callsite(dir, e->d_name) : -1;

		if (callsite >= 0) {
			tidy(callsite, false);
			close(callsite);
			unlinkat(dir, e->d_name, AT_REMOVEDIR); /* where nobody left anything */
		} else if (is_trace(e->d_name)) {
			cut(dir, e->d_name);
		}
	}
	if (d)
		closedir(d);
}

void run_dir_tidy(const struct run_dir *dir)
{
	/* of one who opens a file at that moment, see cut() */
	void (*before)(int) = signal(SIGIO, SIG_IGN);

	tidy(dir->fd, true);
	signal(SIGIO, before == SIG_ERR ? SIG_DFL : before);
}

void run_dir_discard(struct run_dir *dir)
{
	if (dir->made && dir->fd >= 0) {
		unlinkat(dir->fd, RUN_TRACE_NAME, 0);
		unlinkat(dir->fd, TRACE_DISK_NAME, 0);
		if (*dir->path)
			rmdir(dir->path);
	}
	run_dir_close(dir);
}

void run_dir_close(struct run_dir *dir)
{
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = -1;
}
