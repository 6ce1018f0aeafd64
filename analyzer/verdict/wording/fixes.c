/* fixes.c - see fixes.h. */
#include "verdict/wording/fixes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text/fmt.h"
#include "util/text/str.h"
#include "verdict/failure/volume.h"
#include "verdict/framework/framework_roles.h"

static void add(struct fix *fixes, size_t *count, struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(struct fix *fixes, size_t *count, struct arena *arena, const char *format, ...)
{
	char text[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0 || *count == FIXES_MAX)
		return;
	fixes[*count].for_ = "any";
	fixes[*count].text = arena_copy(arena, text, strlen(text));
	*count += fixes[*count].text != NULL;
}

static const char *volume_directory(const struct verdict_result *r)
{
	return r->volume->directory ? r->volume->directory : "/dev/shm";
}

/* Whatever fills it. */
static void volume_fixes(
    const struct verdict_result *r, struct fix *fixes, size_t *count, struct arena *arena)
{
	if (strcmp(volume_directory(r), "/dev/shm") == 0)
		add(fixes, count, arena,
		    "Give the container a larger /dev/shm: docker run --shm-size=8g, or "
		    "--ipc=host; in Kubernetes an emptyDir with medium: Memory and a sizeLimit, "
		    "mounted there. It counts against the memory limit as well.");
	else
		add(fixes, count, arena,
		    "Make the file system at %s larger (mount -o remount,size=...), or put the "
		    "files elsewhere. It counts against the memory limit as well.",
		    volume_directory(r));
	add(fixes, count, arena,
	    "Let less lie there at once: fewer workers and fewer batches ahead (num_workers, "
	    "prefetch_factor), smaller ones, and each segment unlinked (unlink(), shm_unlink) and "
	    "let go as soon as it was read.");
}

/* What the winner's finding asks for, where it is a special case of its cause. */
static bool asks_for(const struct verdict_result *r, const char *cause, const char *fix)
{
	const struct finding *f = &r->ranking.list[0].finding;

	return r->ranking.count && strcmp(f->cause, cause) == 0 && f->fix &&
	       strcmp(f->fix, fix) == 0;
}

void fixes_for(const struct verdict_result *r, const char *cause, struct fix *fixes, size_t *count,
    struct arena *arena)
{
	const char *function = r->verdict.blame.function;
	const char *where = "the blamed function";
	struct str name = {0};

	*count = 0;
	if (function) {
		fmt_function(&name, function, "<..>");
		where = str_text(&name);
	}
	framework_fixes(r, cause,
	    r->verdict.blame.stack.count ? &r->verdict.blame.stack : &r->failure.stack, fixes,
	    count);
	if (strcmp(cause, "prompt-growth") == 0) {
		add(fixes, count, arena,
		    "Bound what %s builds from: keep the last N messages or a token budget, and "
		    "trim or "
		    "summarise the rest before each call.",
		    where);
		add(fixes, count, arena,
		    "Count the tokens before the call and refuse or shorten an input that is too "
		    "long; "
		    "short requests would have passed.");
	} else if (strcmp(cause, "leak") == 0) {
		add(fixes, count, arena,
		    "Release what %s makes when its request is done: find who still refers to it "
		    "(a "
		    "global list, a cache without a bound, a handler that is never removed, a "
		    "missing "
		    "free).",
		    where);
		add(fixes, count, arena,
		    "If it is kept on purpose, give the store a bound: a largest size, an age, or "
		    "one "
		    "entry for each key.");
	} else if (strcmp(cause, "state-retention") == 0) {
		add(fixes, count, arena,
		    "Give the store that %s fills a bound: a largest number of entries, an age, or "
		    "only the newest snapshot of each conversation.",
		    where);
		add(fixes, count, arena,
		    "Keep references and differences in place of whole copies, or write the "
		    "snapshots to disk.");
	} else if (strcmp(cause, "oversized-intermediate") == 0) {
		add(fixes, count, arena,
		    "Do not hold it whole: let %s work in pieces (stream, chunk, a generator, a "
		    "memory "
		    "map), or keep only the fields and rows that the next step needs.",
		    where);
		add(fixes, count, arena,
		    "Put an upper bound on one request's input, and drop references as soon as a "
		    "step "
		    "is done.");
	} else if (strcmp(cause, "oversized-model") == 0) {
		add(fixes, count, arena,
		    "Load fewer bytes: a smaller or quantised model, half precision, or its layers "
		    "spread over several devices or offloaded to the host.");
	} else if (strcmp(cause, "batch-prealloc") == 0) {
		add(fixes, count, arena,
		    "Make the pool that %s takes smaller: fewer sequences, a shorter largest "
		    "context, or blocks taken as they are needed.",
		    where);
	} else if (asks_for(r, cause, FIX_BACKLOG)) {
		add(fixes, count, arena,
		    "Give the queue that %s fills a bound (a maxsize), so that it waits or refuses "
		    "while the queue is full; or let more be worked off at once.",
		    where);
	} else if (asks_for(r, cause, FIX_WORKERS)) {
		add(fixes, count, arena,
		    "Start fewer workers (--workers, max_workers, processes=): each needs what "
		    "this one held; or raise the limit to what all of them need.");
		add(fixes, count, arena,
		    "What all of them hold alike, as a model, share: load it before they are "
		    "forked (gunicorn --preload) and call gc.freeze(), map it from a file, or "
		    "serve it from one process.");
	} else if (strcmp(cause, "concurrency") == 0) {
		add(fixes, count, arena,
		    "Bound how many requests run at once (a semaphore, a queue, a smaller worker "
		    "pool) to what fits beside the weights.");
	} else if (strcmp(cause, "fragmentation") == 0) {
		if (r->failure.kind != FAILURE_CUDA_OOM)
			framework_malloc_fixes(r, cause, fixes, count);
		add(fixes, count, arena,
		    "Keep what lives long apart from what comes and goes: allocate what %s keeps "
		    "before the rest, in few sizes, and release it in the order it was made.",
		    where);
	} else if (asks_for(r, cause, FIX_STACKS)) {
		add(fixes, count, arena,
		    "Have fewer threads (a pool of a fixed size), or smaller stacks for them "
		    "(threading.stack_size, pthread_attr_setstacksize, ulimit -s).");
		add(fixes, count, arena,
		    "Limit what is resident (a cgroup's memory.max) in place of address space: "
		    "stacks are hardly used.");
	} else if (strcmp(cause, "external") == 0 && r->volume) {
		add(fixes, count, arena,
		    "Look with `ls -l %s` at what lies there, and remove what nobody uses any "
		    "more: who is killed leaves its segments behind. Give containers that share "
		    "it one of their own.",
		    volume_directory(r));
	} else if (strcmp(cause, "external") == 0) {
		add(fixes, count, arena,
		    "Find who else holds the memory (`nvidia-smi`, or the other processes of the "
		    "container), and give this process a device or a limit of its own. Where the "
		    "limit was set "
		    "by hand (set_per_process_memory_fraction, a container's), raise it to what a "
		    "steady load needs.");
	}
	if (r->failure.limit == LIMIT_MAPPINGS)
		add(fixes, count, arena,
		    "Memory was there: raise the number of mappings, `sysctl -w "
		    "vm.max_map_count=262144` (a container's or pod's on its host), or make fewer "
		    "of them, each for more.");
	if (r->volume && strcmp(cause, "unknown") != 0)
		volume_fixes(r, fixes, count, arena);
	str_free(&name);
}
