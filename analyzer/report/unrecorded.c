/* unrecorded.c - see unrecorded.h. */
#include "report/unrecorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS_NAMED 8u

/* Why a program is not recorded, by enum trace_unrecorded_why: in words, and as JSON key. */
static const struct {
	const char *words, *key;
} reasons[] = {
    [0] = {"for a reason that this version of whyoom does not know", "unknown"},
    [TRACE_UNRECORDED_MUSL] = {"linked with musl", "musl"},
    [TRACE_UNRECORDED_LOADER] = {"not started by glibc's loader", "loader"},
    [TRACE_UNRECORDED_SANITIZER] = {"built with a sanitizer", "sanitizer"},
    [TRACE_UNRECORDED_MACHINE] = {"built for another machine", "machine"},
    [TRACE_UNRECORDED_STATIC] = {"linked statically", "static"},
    [TRACE_UNRECORDED_SETUID] = {"setuid or with capabilities", "setuid"},
    [TRACE_UNRECORDED_LIBRARY] = {"cannot open libwhyoom.so", "library"},
    [TRACE_UNRECORDED_DIRECTORY] = {"cannot write to the trace directory", "directory"},
};

void unrecorded_processes(const struct trace *supervisor, struct str *out)
{
	const char *total = supervisor ? trace_info(supervisor, "untraced") : NULL, *name;
	struct str names = {0};
	unsigned long count = 0;
	char key[32];

	for (; supervisor && count < UNRECORDED_NAMED; count++) {
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
		    "%lu process%s left no trace (linked statically, setuid, or not allowed to "
		    "write one): %s",
		    count, count == 1 ? "" : "es", str_text(&names));
	str_free(&names);
}

static uint32_t known(uint32_t why)
{
	return why < sizeof(reasons) / sizeof(reasons[0]) ? why : 0;
}

const char *unrecorded_key(uint32_t why)
{
	return reasons[known(why)].key;
}

/* Adds the program to the list; false: the list is full. */
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

void unrecorded_programs(struct trace *const *traces, size_t count, struct str *out)
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
		str_printf(out, " (%s", reasons[known(all[i].why)].words);
		if (all[i].count > 1)
			str_printf(out, ", started %u times", all[i].count);
		str_putc(out, ')');
		said += all[i].count;
	}
	if (starts > said)
		str_printf(out, "%s%llu start%s of others", n ? ", and " : "",
		    (unsigned long long)(starts - said), starts - said == 1 ? "" : "s");
}
