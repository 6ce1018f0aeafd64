#include "util/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t io_read_at(int fd, void *into, size_t bytes, uint64_t at)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)into + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int io_write_at(int fd, const void *data, size_t bytes, uint64_t at)
{
	const char *p = data;

	while (bytes) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		p += n;
		at += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

int io_read_text(const char *path, size_t most, struct str *text, struct err *err)
{
	FILE *in = fopen(path, "re");
	size_t before = text->length, n;
	char part[4096];

	if (!in)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	while (text->length - before <= most && (n = fread(part, 1, sizeof(part), in)))
		str_add(text, part, n);
	n = (size_t)ferror(in);
	fclose(in);
	if (n || text->failed)
		return err_set(err, -EIO, "%s: cannot be read", path);
	return text->length - before > most
		   ? err_set(err, -EFBIG, "%s: longer than %zu bytes", path, most)
		   : 0;
}
