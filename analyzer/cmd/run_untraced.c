/*
 * run_untraced.c - see run_untraced.h. Each is an INFO of its own, `untraced.N`, so that a killer
 * that takes the supervisor as well loses none; past a few only their number is kept.
 */
#include "cmd/run_untraced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/run_proc.h"

#define NAMED 16u

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

	if (count > NAMED)
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

void run_untraced_words(const struct trace *supervisor, struct str *out)
{
	const char *total = supervisor ? trace_info(supervisor, "untraced") : NULL, *name;
	struct str names = {0};
	unsigned long count = 0;
	char key[32];

	for (; supervisor && count < NAMED; count++) {
		snprintf(key, sizeof(key), "untraced.%lu", count + 1);
		name = trace_info(supervisor, key);
		if (!name)
			break;
		str_puts(&names, count ? ", " : "");
		str_safe(&names, name);
	}
	if (total && strtoul(total, NULL, 10) > count) {
		str_puts(&names, ", ...");
		count = strtoul(total, NULL, 10);
	}
	if (count)
		str_printf(out,
		    "%lu process%s left no trace (linked statically, setuid, or without the right "
		    "to write one): %s",
		    count, count == 1 ? "" : "es", str_text(&names));
	str_free(&names);
}
