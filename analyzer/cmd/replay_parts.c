/* replay_parts.c - see replay_parts.h. */
#include "cmd/replay_parts.h"

#include <errno.h>
#include <unistd.h>

#include "cmd/run/library.h"
#include "util/num.h"

#define CGROUP_LEVELS 32u

/* Returns the bytes that may still be charged to the cgroup: pages of files can be reclaimed. */
static uint64_t room_of(const struct run_cgroup *cgroup)
{
	struct event_level levels[CGROUP_LEVELS];
	struct event now = {
	    .levels = levels, .level_count = run_cgroup_levels(cgroup, levels, CGROUP_LEVELS)};
	uint64_t max;

	if (!event_level(&now, TRACE_LEVEL_CG_MAX, &max) || max == UINT64_MAX)
		return UINT64_MAX;
	return num_less(max, num_less(event_level_value(&now, TRACE_LEVEL_CG_CURRENT),
				 event_level_value(&now, TRACE_LEVEL_CG_INACTIVE_FILE)));
}

int replay_parts_find(struct replay_parts *parts, struct replay_request *request, struct err *err)
{
	char library[PATH_MAX];
	int rc = run_library_find(NULL, library, err);

	if (rc)
		return rc;
	if (!run_library_player(library, parts->player))
		return err_set(err, -ENOENT, "whyoom-player is not beside %.300s", library);
	rc = run_library_simgpu(library, parts->simgpu, err);
	if (rc)
		return rc;
	if (!run_library_device_player(library, parts->device_player))
		return err_set(err, -ENOENT, "whyoom-device-player is not beside %.300s", library);
	request->player = parts->player;
	request->device_player = parts->device_player;
	request->simgpu = parts->simgpu;
	/* The player's cgroup lies below our own, or below the one above that limits it. */
	run_cgroup_find("", getpid(), &parts->cgroup);
	request->room = room_of(&parts->cgroup);
	request->parent =
	    (struct group_parent){.version = parts->cgroup.version, .dir = parts->cgroup.dir};
	return 0;
}
