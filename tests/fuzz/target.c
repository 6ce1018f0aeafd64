/* target.c - see target.h. */
#include "target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/report.h"
#include "model/model.h"
#include "reduce/reduce.h"
#include "replay/plan/planner.h"
#include "sparse.h"
#include "util/text/note.h"
#include "verdict/verdict.h"

const struct command *const cmd_table[] = {
    &cmd_report, &cmd_map, &cmd_sites, &cmd_export, &cmd_diff, &cmd_what_if, &cmd_check, NULL};

static const char *const lines[][10] = {
    {"report", "*"},
    {"report", "*", "--verbose", "--native"},
    {"report", "*", "--format", "json"},
    {"map", "*"},
    {"map", "*", "--space", "host", "--format", "json"},
    {"map", "*", "--space", "torch:0", "--at", "peak"},
    {"map", "*", "--space", "cuda:0", "--at", "end", "--format", "json"},
    {"sites", "*", "--by", "growth", "--verbose"},
    {"sites", "*", "--by", "leaked", "--format", "json"},
    {"sites", "*", "--by", "peak", "--space", "torch:0"},
    {"export", "*", "--format", "folded", "--measure", "total"},
    {"export", "*", "--format", "speedscope", "-o", "/dev/null"},
    {"export", "*", "--format", "pprof", "--space", "all", "-o", "/dev/null"},
    {"export", "*", "--format", "openmetrics"},
    {"export", "*", "--format", "openmetrics", "--history"},
    {"export", "*", "--format", "jsonl", "--gzip", "-o", "/dev/null"},
    {"diff", "*", "--at", "peak", "--and", "end", "--verbose"},
    {"diff", "*", "--at", "1s", "--and", "end", "--by", "total", "--format", "json"},
    {"check", "*"},
    {"check", "*", "--format", "json"},
    {"what-if", "*", "--memory", "24GiB", "--expandable-segments", "--concurrency", "2"},
    {"what-if", "*", "--space", "host", "--concurrency", "1", "--cap-growth", "1MiB"},
    {"report", "*", "--format", "html"},
};
#define LINES (sizeof(lines) / sizeof(*lines))

static char place[256]; /* a directory with a random name */
static char dir[64]; /* one in it, with the same name in each process */
static int traces[SPARSE_FILES];
static int file = -1;

static void no_note(void *arg, const char *text)
{
	(void)arg, (void)text;
}

static void name_of(char *path, size_t room, size_t i)
{
	static const char *const file_names[SPARSE_FILES] = {"4711.0.whyoom", "run.whyoom"};

	snprintf(path, room, "%s/%s", dir, file_names[i]);
}

static void forget(void)
{
	char path[sizeof(dir) + 32];

	for (size_t i = 0; i < SPARSE_FILES; i++) {
		name_of(path, sizeof(path), i);
		unlink(path);
	}
	rmdir(dir);
	rmdir(place);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	if (!freopen("/dev/null", "w", stdout))
		abort();
	note_redirect(no_note, NULL);
	setenv("WHYOOM_CACHE", "off", 1);
	return 0;
}

const char *target_file(const uint8_t *data, size_t bytes)
{
	static char name[64];

	if (file < 0)
		file = memfd_create("fuzz", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, 0) || pwrite(file, data, bytes, 0) != (ssize_t)bytes)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
	return name;
}

/* The names are on the disk, the bytes in memory. */
static void make_dir(void)
{
	const char *where = getenv("TMPDIR");

	snprintf(
	    place, sizeof(place), "%.200s/whyoom-fuzz-XXXXXX", where && *where ? where : "/tmp");
	if (!mkdtemp(place))
		abort();
	snprintf(dir, sizeof(dir), "/proc/self/fd/%d/trace",
	    open(place, O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (mkdir(dir, 0700))
		abort();
	atexit(forget);
	for (size_t i = 0; i < SPARSE_FILES; i++) {
		char path[sizeof(dir) + 32], link[64];

		traces[i] = memfd_create("trace", MFD_CLOEXEC);
		name_of(path, sizeof(path), i);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", traces[i]);
		if (traces[i] < 0 || symlink(link, path))
			abort();
	}
}

void target_run(const char *const *words, const char *path)
{
	char *argv[16];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = (char *)(strcmp(words[argc], "*") ? words[argc] : path);
	argv[argc] = NULL;
	for (size_t i = 0; cmd_table[i]; i++)
		if (!strcmp(cmd_table[i]->name, words[0])) {
			cmd_table[i]->main(argc, argv);
			fflush(stdout);
			return;
		}
	abort();
}

/* --- targets that need more than a name --- */

static void brief(const char *path)
{
	struct err err;

	report_after_run(path, &(struct report_end){.out = stdout, .always = true}, &err);
	fflush(stdout);
}

/* The same steps as `replay`'s, up to the plan's performance. */
static void plan(const struct trace_set *set, struct verdict_result *v)
{
	struct feed outside = {0}, *supervisor = set->supervisor ? &outside : NULL;
	const struct failure *f = model_failure(v->model);
	struct plan_last last = {0};
	struct recorded recorded = {0};
	struct plan_facts facts = {0};
	FILE *out = fopen("/dev/null", "w");
	struct err err;

	if (!out)
		abort();
	if (set->supervisor)
		outside = feed_of_trace(set->supervisor);
	if (f)
		last =
		    (struct plan_last){.time_ns = f->time_ns, .size = f->size, .stack = f->stack};
	if (!recorded_read(v->model->feed, supervisor, 0, &recorded, &err))
		plan_make(
		    &(struct plan_source){v->model->feed, &recorded, &last}, 0, out, &facts, &err);
	plan_facts_fini(&facts);
	recorded_fini(&recorded);
	fclose(out);
}

static void reduce(const struct trace_set *set, const struct verdict_result *v)
{
	struct reduce_request request = {.seconds = 0.05};
	struct reduce_result result;
	char path[sizeof(dir) + 32];
	struct err err;

	snprintf(path, sizeof(path), "%s/small", dir);
	if (!reduce_set(set, v, &request, path, &result, &err))
		reduce_remove(path);
}

static void with_verdict(const char *path, bool reduced)
{
	struct verdict_result v;
	struct trace_set set;
	struct err err;

	if (trace_set_open(path, &set, &err))
		return;
	if (!verdict_of_set(&set, NULL, &v, &err)) {
		model_check(v.model);
		if (reduced)
			reduce(&set, &v);
		else
			plan(&set, &v);
		verdict_fini(&v);
	}
	trace_set_close(&set);
}

static void command_of(const struct sparse *s)
{
	size_t command = s->command % (LINES + 3);

	still_begin();
	if (!*dir)
		make_dir();
	for (size_t i = 0; i < SPARSE_FILES; i++)
		if (ftruncate(traces[i], 0) ||
		    pwrite(traces[i], s->files[i].data, s->files[i].bytes, 0) !=
			(ssize_t)s->files[i].bytes)
			abort();
	if (command < LINES)
		target_run(lines[command], dir);
	else if (command == LINES)
		brief(dir);
	else
		with_verdict(dir, command == LINES + 1);
}

void target_traces(const uint8_t *data, size_t bytes)
{
	struct sparse s;

	sparse_read(&s, data, bytes);
	command_of(&s);
	sparse_fini(&s);
}
