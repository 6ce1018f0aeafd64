#include "trace/directory/account.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/cursor.h"
#include "whyoom/trace.h"

struct trace_account account_read(const char *directory)
{
	struct trace_account a = {.known = false};
	uint8_t raw[offsetof(struct trace_disk, counted_s)];
	char path[4096];
	struct cursor c = cursor_of(raw, sizeof(raw));
	int64_t held;
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/" TRACE_DISK_NAME, directory) >= (int)sizeof(path))
		return a;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return a;
	n = pread(fd, raw, sizeof(raw), 0);
	close(fd);
	if (n != (ssize_t)sizeof(raw) || memcmp(cursor_take(&c, 8), TRACE_DISK_MAGIC, 8) != 0 ||
	    cursor_fixed(&c, 4) != TRACE_DISK_VERSION)
		return a;
	cursor_fixed(&c, 4);
	a.bound = cursor_fixed(&c, 8);
	held = (int64_t)cursor_fixed(&c, 8);
	a.held = held < 0 ? 0 : (uint64_t)held;
	a.known = a.bound && a.bound <= INT64_MAX;
	return a;
}
