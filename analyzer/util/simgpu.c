#include "util/simgpu.h"

#include <stdio.h>
#include <unistd.h>

const char *simgpu_path(const char *machine, char path[SIMGPU_PATH])
{
	snprintf(
	    path, SIMGPU_PATH, "/dev/shm/whyoom-simgpu.%u.%.64s", (unsigned)geteuid(), machine);
	return path;
}

void simgpu_forget(const char *machine)
{
	char path[SIMGPU_PATH];

	unlink(simgpu_path(machine, path));
}
