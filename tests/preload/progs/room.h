/* room.h - sets how much more address space a program may have. */
#ifndef TESTS_PRELOAD_PROGS_ROOM_H
#define TESTS_PRELOAD_PROGS_ROOM_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Limit the address space to its present size and so many bytes more. Without malloc. */
static inline void limit_room(size_t room)
{
	struct rlimit limit;
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || getrlimit(RLIMIT_AS, &limit))
		abort();
	close(fd);
	limit.rlim_cur = (rlim_t)strtoul(text, NULL, 10) * (rlim_t)getpagesize() + room;
	if (setrlimit(RLIMIT_AS, &limit))
		abort();
}

#endif
