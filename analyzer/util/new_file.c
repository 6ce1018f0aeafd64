#include "util/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/unfinished.h"

#define TRIES 100

/* Create the file. Its name holds the process and the try, so it is known before the file exists,
 * and a signal handler can remove it. */
static int make(struct new_file *f, const char *target, unsigned n)
{
	const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
	int rc;

	/* Keep the end of a long name. */
	if (snprintf(f->path, sizeof(f->path), "%.*s.%.200s.%ld-%u", (int)(name - target), target,
		name, (long)getpid(), n) >= (int)sizeof(f->path))
		return -ENAMETOOLONG;
	if (!access(f->path, F_OK))
		return -EEXIST;
	rc = unfinished_file(f->path);
	if (rc)
		return rc;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd < 0) {
		rc = -errno;
		unfinished_done(f->path);
	}
	return rc;
}

int new_file_begin(struct new_file *f, const char *target)
{
	int rc = -EEXIST;

	f->fd = -1;
	for (unsigned n = 0; rc == -EEXIST && n < TRIES; n++)
		rc = make(f, target, n);
	return rc;
}

/* Make the name durable, too. Some file systems cannot. */
static void sync_directory(const char *target)
{
	const char *slash = strrchr(target, '/');
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%.*s", slash ? (int)(slash - target) + 1 : 1,
	    slash ? target : ".");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int new_file_commit(struct new_file *f, const char *target)
{
	int rc = fsync(f->fd) && errno != EINVAL && errno != EROFS ? -errno : 0;

	/* A full disk across a network is reported only here. */
	if (close(f->fd) && !rc)
		rc = -errno;
	f->fd = -1;
	if (!rc && rename(f->path, target))
		rc = -errno;
	if (rc)
		unlink(f->path);
	else
		sync_directory(target);
	unfinished_done(f->path);
	return rc;
}

void new_file_abort(struct new_file *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	f->fd = -1;
	unlink(f->path);
	unfinished_done(f->path);
}

mode_t new_file_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}
