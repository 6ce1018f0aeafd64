/* simgpu.c - see simgpu.h. */
#include "util/simgpu.h"

#include <stdio.h>
#include <unistd.h>

void simgpu_forget(const char *machine)
{
	char path[128];

	snprintf(
	    path, sizeof(path), "/dev/shm/whyoom-simgpu.%u.%.64s", (unsigned)geteuid(), machine);
	unlink(path);
}
