#include "util/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "util/progress.h"
#include "util/text/err.h"
#include "util/text/fmt.h"
#include "util/text/note.h"

static struct rlimit before;
static uint64_t limit;
static int limit_named;

#define LARGE (256 << 10)

void memory_start(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE);
}

int memory_limit(uint64_t bytes, int named)
{
	struct rlimit r;

	memory_lift();
	limit = 0;
	if (!bytes)
		return 0;
	if (getrlimit(RLIMIT_DATA, &before))
		return -errno;
	r = before;
	if (r.rlim_cur != RLIM_INFINITY && r.rlim_cur <= bytes)
		return 0; /* another limit is in force already */
	r.rlim_cur = bytes;
	if (setrlimit(RLIMIT_DATA, &r))
		return -errno;
	limit = bytes;
	limit_named = named;
	return 0;
}

void memory_lift(void)
{
	if (limit)
		setrlimit(RLIMIT_DATA, &before);
}

const char *memory_words(char *buffer, size_t room)
{
	struct fmt most, would;
	double share = progress_share();

	buffer[0] = '\0';
	if (!limit)
		return buffer;
	/* Memory grows at most in proportion to the input; later work gets half again. */
	fmt_size(&most, limit);
	fmt_size(&would, (uint64_t)((double)limit * (share > 0.01 ? 1.5 / share : 2)));
	snprintf(buffer, room,
	    share > 0.01 ? " (--max-memory is %s%s; by how far it came, about %s should do)"
			 : " (--max-memory is %s%s; try %s)",
	    most.text, limit_named ? "" : ", three quarters of what is here", would.text);
	return buffer;
}

void memory_give_up(const char *what)
{
	struct err err;

	err_set(&err, -ENOMEM, "no memory for %s", what);
	progress_clear();
	note_safe(stderr, err.text);
	exit(1);
}
