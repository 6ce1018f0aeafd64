/*
 * untraced.c - see untraced.h. Each is an INFO of its own, `untraced.N`, so that a killer
 * that takes the supervisor as well loses none; past a few only their number is kept.
 */
#include "cmd/run/untraced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/supervise/proc.h"

#define NAMED 16u
#define PROGRAMS_NAMED 8u

/* Why a program is not recorded, by enum trace_unrecorded_why: in words, and the key in JSON. */
static const struct {
	const char *words, *key;
} reasons[] = {
    [0] = {"for a reason that this whyoom does not know", "unknown"},
    [TRACE_UNRECORDED_MUSL] = {"musl", "musl"},
    [TRACE_UNRECORDED_LOADER] = {"a loader that is not glibc's", "loader"},
    [TRACE_UNRECORDED_SANITIZER] = {"has a sanitizer", "sanitizer"},
    [TRACE_UNRECORDED_MACHINE] = {"for another machine", "machine"},
    [TRACE_UNRECORDED_STATIC] = {"linked statically", "static"},
    [TRACE_UNRECORDED_SETUID] = {"changes its rights at its start", "setuid"},
    [TRACE_UNRECORDED_LIBRARY] = {"cannot open the library", "library"},
    [TRACE_UNRECORDED_DIRECTORY] = {"cannot write to the directory of the traces", "directory"},
};

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

static uint32_t known(uint32_t why)
{
	return why < sizeof(reasons) / sizeof(reasons[0]) ? why : 0;
}

const char *run_untraced_why(uint32_t why)
{
	return reasons[known(why)].words;
}

const char *run_untraced_key(uint32_t why)
{
	return reasons[known(why)].key;
}

/* Adds it to those that there are; false: there is no room for another one. */
static bool add_program(
    struct trace_program *all, size_t *count, size_t most, const struct trace_program *p)
{
	for (size_t i = 0; i < *count; i++)
		if (all[i].why == p->why && !strcmp(all[i].path, p->path)) {
			all[i].count += p->count;
			return true;
		}
	if (*count == most)
		return false;
	all[(*count)++] = *p;
	return true;
}

static int more_often(const void *a, const void *b)
{
	const struct trace_program *p = a, *q = b;

	return p->count == q->count ? strcmp(p->path, q->path) : p->count < q->count ? 1 : -1;
}

void run_untraced_programs(struct trace *const *traces, size_t count, struct str *out)
{
	struct trace_program all[64];
	size_t n = 0;
	uint64_t starts = 0, said = 0;

	for (size_t i = 0; i < count; i++) {
		const struct trace_facts *f = trace_facts(traces[i]);

		starts += f->unrecorded;
		for (size_t k = 0; k < f->unrecorded_programs; k++)
			add_program(
			    all, &n, sizeof(all) / sizeof(all[0]), &f->unrecorded_program[k]);
	}
	qsort(all, n, sizeof(all[0]), more_often);
	for (size_t i = 0; i < n && i < PROGRAMS_NAMED; i++) {
		str_puts(out, i ? ", " : "");
		str_safe(out, all[i].path);
		str_printf(out, " (%s", run_untraced_why(all[i].why));
		if (all[i].count > 1)
			str_printf(out, ", started %u times", all[i].count);
		str_putc(out, ')');
		said += all[i].count;
	}
	if (starts > said)
		str_printf(out, "%s%llu start%s of others", n ? ", and " : "",
		    (unsigned long long)(starts - said), starts - said == 1 ? "" : "s");
}
