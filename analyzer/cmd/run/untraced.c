/*
 * untraced.c - see untraced.h. Each process is an INFO of its own, so that a SIGKILL of the
 * supervisor loses none that were noted before.
 */
#include "cmd/run/untraced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/supervise/proc.h"
#include "report/unrecorded.h"

bool run_untraced_has(pid_t pid, int dir)
{
	int maps = run_proc_maps_trace(pid);
	char name[64];

	if (maps >= 0)
		return maps;
	if (maps != -EACCES)
		return true;
	/* It has become another user's: the file that it had before is no sign of one now, but the
	 * next of its number is. */
	snprintf(name, sizeof(name), "%d.1.whyoom", (int)pid);
	return !faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

void run_untraced_note(struct run_trace *t, pid_t pid, unsigned count)
{
	char path[64], key[32], value[64], name[32] = "";
	FILE *f;

	if (count > UNRECORDED_NAMED)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		fclose(f);
	}
	snprintf(key, sizeof(key), "untraced.%u", count);
	snprintf(value, sizeof(value), "%s (%d)", name, (int)pid);
	run_trace_info(t, key, value);
}

void run_untraced_total(struct run_trace *t, unsigned count)
{
	char value[16];

	if (!count)
		return;
	snprintf(value, sizeof(value), "%u", count);
	run_trace_info(t, "untraced", value);
}
