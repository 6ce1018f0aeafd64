/* termination.c - see termination.h. Nothing here waits: a pipe or a device is no such file. */
#include "cmd/run/termination.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text/str.h"

#define CONTAINERS "/dev/termination-log" /* terminationMessagePath, unless the pod sets it */
#define EARLIER "The run before this one was killed. "
#define TEXT_MAX 1023u /* the rest of 4 KiB is the program's, which may write there, too */

/* A descriptor of the file, *size: what is in it; negative errno. */
static int open_log(const char *path, int flags, uint64_t *size)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

static int fail(struct err *err, int rc, const char *path)
{
	return err_set(err, rc, "cannot write the termination log %s: %s", path,
	    rc == -EINVAL ? "it is not a file" : strerror(-rc));
}

int termination_find(const char *given, struct termination *out, struct err *err)
{
	uint64_t size = 0;
	int fd = given ? open_log(given, O_WRONLY | O_CREAT, &size)
		       : open_log(CONTAINERS, O_WRONLY | O_NOFOLLOW, &size);

	*out = (struct termination){NULL, false};
	if (fd >= 0) {
		close(fd);
		if (given || !size)
			*out = (struct termination){given ? given : CONTAINERS, given != NULL};
		return 0;
	}
	return given ? fail(err, fd, given) : 0;
}

static bool is_earlier(int fd)
{
	char begin[sizeof(EARLIER) - 1];

	return pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) &&
	       !memcmp(begin, EARLIER, sizeof(begin));
}

int termination_write(const struct termination *t, const char *text, bool earlier, struct err *err)
{
	struct str line = {0};
	uint64_t size = 0;
	int fd, rc = 0;

	if (!t->path)
		return 0;
	str_printf(&line, "%s%s", earlier ? EARLIER : "", text);
	if (line.failed) {
		str_free(&line);
		return err_set(err, -ENOMEM, "out of memory");
	}
	if (line.length > TEXT_MAX) {
		line.length = TEXT_MAX;
		while (line.length && ((unsigned char)line.text[line.length] & 0xc0) == 0x80)
			line.length--;
	}
	fd = open_log(t->path, O_RDWR, &size);
	if (fd < 0) {
		rc = fail(err, fd, t->path);
	} else if (t->given || !size || is_earlier(fd)) {
		/* Written at once, then cut: the kubelet may read at any time. */
		if (pwrite(fd, line.text, line.length, 0) < 0 || ftruncate(fd, (off_t)line.length))
			rc = fail(err, -errno, t->path);
	}
	if (fd >= 0)
		close(fd);
	str_free(&line);
	return rc;
}

void termination_forget_earlier(const struct termination *t)
{
	uint64_t size = 0;
	int fd = t->path ? open_log(t->path, O_RDWR, &size) : -1;

	if (fd < 0)
		return;
	if (is_earlier(fd) && ftruncate(fd, 0))
		(void)0; /* what is left names its run */
	close(fd);
}
