/* replay_parts.c - see replay_parts.h. */
#include "cmd/replay_parts.h"

#include <errno.h>

#include "cmd/run_library.h"

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
	return 0;
}
