/* player_group.c - see player_group.h. Takes nothing from the allocator. */
#include "replay/player/player_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/group.h"
#include "util/num.h"

static int limit_file = -1, usage_file = -1;

bool player_group_begin(int dir, int version)
{
	limit_file = openat(dir, group_limit_file(version), O_WRONLY | O_CLOEXEC);
	usage_file = openat(dir, group_usage_file(version), O_RDONLY | O_CLOEXEC);
	return limit_file >= 0 && usage_file >= 0;
}

bool player_group_limit(uint64_t room, uint64_t resident)
{
	char text[32];
	ssize_t n = pread(usage_file, text, sizeof(text) - 1, 0);
	uint64_t usage;

	if (n <= 0)
		return false;
	text[n] = '\0';
	usage = strtoull(text, NULL, 10);
	n = snprintf(
	    text, sizeof(text), "%llu", (unsigned long long)(room + num_less(usage, resident)));
	return room > resident && pwrite(limit_file, text, (size_t)n, 0) == n;
}
