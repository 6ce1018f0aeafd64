#include "cmd/watch/target.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/supervise/cgroup.h"
#include "util/text/str.h"

/* A process maps the trace that it writes. Its name is compared, and not its folder, which another
 * mount namespace may call differently. */
static bool maps_trace(const char *root, uint32_t pid, const char *trace)
{
	const char *name = str_base_name(trace);
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/maps", root, pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = strchr(line, '/') && !strcmp(str_base_name(strchr(line, '/')), name);
	}
	free(line);
	fclose(f);
	return found;
}

char *target_cgroup(const char *root, uint32_t pid, const char *trace)
{
	struct run_cgroup *group = malloc(sizeof(*group));
	char *directory = NULL;

	if (group && pid <= INT_MAX && maps_trace(root, pid, trace)) {
		run_cgroup_find(root, (pid_t)pid, group);
		if (group->version == 2)
			directory = strdup(group->dir);
	}
	free(group);
	return directory;
}
