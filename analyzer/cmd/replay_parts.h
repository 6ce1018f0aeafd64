/*
 * replay_parts.h - what a replay needs from this machine: the programs and libraries beside
 * libwhyoom.so, and room.
 */
#ifndef ANALYZER_CMD_REPLAY_PARTS_H
#define ANALYZER_CMD_REPLAY_PARTS_H

#include <limits.h>

#include "cmd/supervise/cgroup.h"
#include "replay/replay.h"

struct replay_parts {
	char player[PATH_MAX], device_player[PATH_MAX], simgpu[PATH_MAX];
	struct run_cgroup cgroup;
};

/* Fill the request, which borrows the parts. 0, or negative with err. */
int replay_parts_find(struct replay_parts *parts, struct replay_request *request, struct err *err);

#endif
