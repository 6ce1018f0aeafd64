#include "trace/directory/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/packed/packed.h"

#define SECTOR 4096u /* the unit that is given up where the disk cannot read */

static int source_connect(struct source *s, struct err *err)
{
	struct stat st;
	int code;

	if (s->fd >= 0)
		return 0;
	/* O_NONBLOCK: the name may be a FIFO's. */
	s->fd = open(s->shared ? s->shared : s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s->fd < 0) {
		code = -errno;
		return err_set(err, code, "%s: %s", s->path, strerror(-code));
	}
	if (fstat(s->fd, &st)) {
		code = -errno;
		source_release(s);
		return err_set(err, code, "%s: %s", s->path, strerror(-code));
	}
	if (!S_ISREG(st.st_mode)) {
		source_release(s);
		return err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
		    "%s: not a regular file, so not a trace", s->path);
	}
	if (s->inode && (st.st_ino != s->inode || st.st_dev != s->device)) {
		source_release(s);
		return err_set(
		    err, -ESTALE, "%s: the file was replaced while it was read", s->path);
	}
	if (s->shared) {
		code = small_open(s->fd, s->shared, &s->place, &s->small, err);
		if (code) {
			source_release(s);
			return code;
		}
	} else if (!s->inode) {
		code = packed_open(s->fd, (uint64_t)st.st_size, s->path, &s->packed, err);
		if (code) {
			source_release(s);
			return code;
		}
	}
	s->inode = st.st_ino;
	s->device = st.st_dev;
	if (s->packed)
		s->size = packed_size(s->packed);
	else if (s->small)
		s->size = s->place.trace_bytes;
	else if ((uint64_t)st.st_size > s->size)
		s->size = (uint64_t)st.st_size;
	return 0;
}

int source_open(struct source *s, const char *path, const char *shared,
    const struct small_place *place, struct err *err)
{
	int r;

	*s = (struct source){.fd = -1, .path = strdup(path)};
	if (shared) {
		s->shared = strdup(shared);
		s->place = *place;
	}
	r = s->path && (s->shared || !shared) ? source_connect(s, err)
					      : err_set(err, -ENOMEM, "%s: out of memory", path);
	if (r)
		source_close(s);
	return r;
}

void source_release(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (s->packed)
		packed_release(s->packed);
	small_close(s->small);
	s->small = NULL;
}

void source_close(struct source *s)
{
	free(s->shared);
	s->shared = NULL;
	if (!s->path)
		return;
	source_release(s);
	packed_close(s->packed);
	s->packed = NULL;
	free(s->path);
	s->path = NULL;
}

int source_refresh(struct source *s, struct err *err)
{
	struct stat st;
	int r = source_connect(s, err);

	if (r)
		return r;
	if (fstat(s->fd, &st)) {
		r = -errno;
		return err_set(err, r, "%s: %s", s->path, strerror(-r));
	}
	if (!s->packed && !s->small)
		s->size = (uint64_t)st.st_size;
	return 0;
}

static int read_plain(
    struct source *s, uint64_t offset, void *into, size_t bytes, size_t *got, struct err *err)
{
	size_t done = 0;
	int r;

	*got = 0;
	while (done < bytes && offset + done < INT64_MAX) {
		ssize_t n = pread(s->fd, (char *)into + done, bytes - done, (off_t)(offset + done));
		if (n == 0)
			break;
		if (n < 0) {
			if (errno == EINTR)
				continue;
			r = -errno;
			*got = done;
			return err_set(err, r, "%s: reading at offset %llu: %s", s->path,
			    (unsigned long long)(offset + done), strerror(-r));
		}
		done += (size_t)n;
	}
	*got = done;
	return 0;
}

int source_read(
    struct source *s, uint64_t offset, void *into, size_t bytes, size_t *got, struct err *err)
{
	size_t n;
	int r = source_connect(s, err);

	*got = 0;
	while (!r && *got < bytes) {
		uint64_t at = offset + *got, end;
		char *to = (char *)into + *got;

		if (s->small) {
			small_read(s->small, at, to, bytes - *got, got);
			break;
		}
		r = s->packed ? packed_read(s->packed, s->fd, at, to, bytes - *got, &n, err)
			      : read_plain(s, at, to, bytes - *got, &n, err);
		*got += n;
		if (!r || r != -EIO || !s->unreadable)
			break;
		at += n;
		end = s->packed ? packed_frame_end(s->packed, at) : at - at % SECTOR + SECTOR;
		s->unreadable(s->arg, at, end - at);
		n = end - at < bytes - *got ? (size_t)(end - at) : bytes - *got;
		memset((char *)into + *got, 0, n);
		*got += n;
		r = 0;
	}
	return r;
}

uint64_t source_next_data(struct source *s, uint64_t offset)
{
	off_t at;

	if (offset >= s->size)
		return s->size;
	if (s->fd < 0 || s->packed || s->small)
		return offset;
	at = lseek(s->fd, (off_t)offset, SEEK_DATA);
	if (at >= 0)
		return (uint64_t)at;
	return errno == ENXIO ? s->size : offset;
}
