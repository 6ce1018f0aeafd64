/*
 * replay_parts.h - the programs and libraries that a replay needs, beside libwhyoom.so.
 */
#ifndef ANALYZER_CMD_REPLAY_PARTS_H
#define ANALYZER_CMD_REPLAY_PARTS_H

#include <limits.h>

#include "replay/replay.h"

struct replay_parts {
	char player[PATH_MAX], device_player[PATH_MAX], simgpu[PATH_MAX];
};

/* Into the request, which borrows the paths. 0, or negative with err. */
int replay_parts_find(struct replay_parts *parts, struct replay_request *request, struct err *err);

#endif
