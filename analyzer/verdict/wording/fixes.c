/* fixes.c - see fixes.h. Each cause of causes.def names its function here. */
#include "verdict/wording/fixes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "util/text/str.h"
#include "verdict/device/device.h"
#include "verdict/failure/kill.h"
#include "verdict/failure/volume.h"
#include "verdict/framework/framework_roles.h"
#include "verdict/ledger/ledger.h"

/* Stacks are worth a word from a tenth of the limit on, as other rests are in words.c. */
#define STACKS_PART 10u
/* The room that a steady process is given. */
#define ROOM_PART 10

struct lacking {
	char text[48];
};

struct advice {
	struct verdict_result *result;
	enum finding_form form; /* of the winner */
	const char *where; /* the blamed function, as part of a sentence */
};

static void add(struct advice *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct advice *a, const char *format, ...)
{
	struct verdict *v = &a->result->verdict;
	struct fix *fix = &v->fixes[v->fix_count];
	char text[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0 || v->fix_count == FIXES_MAX)
		return;
	*fix = (struct fix){"any", arena_copy(&a->result->arena, text, strlen(text))};
	v->fix_count += fix->text != NULL;
}

static void fixes_none(struct advice *a)
{
	(void)a;
}

static void fixes_prompt_growth(struct advice *a)
{
	if (a->form == FORM_DOUBLING) {
		add(a,
		    "Reserve the final size of what %s fills, if it is known (reserve(), a "
		    "preallocated array): each enlargement needs the old and the new one at once.",
		    a->where);
		add(a, "Keep it in pieces instead of one block: shards, chunks, a file that is "
		       "mapped; or process it as a stream.");
		return;
	}
	add(a,
	    "Bound what %s builds from: keep the last N messages or a token budget, and trim or "
	    "summarise the rest before each call.",
	    a->where);
	add(a, "Count the tokens before the call and refuse or shorten an input that is too long; "
	       "short requests would have passed.");
}

static void fixes_leak(struct advice *a)
{
	if (a->form == FORM_FILES && !a->result->volume) {
		add(a,
		    "Look with `ls -lR /dev/shm` (and `df -t tmpfs`) for what was left there, and "
		    "remove each file as soon as its request ends, also where it fails: files in "
		    "memory count for the cgroup until they are removed.");
		add(a, "Or write them to a disk: a tmpfs is memory, whatever its path says.");
		return;
	}
	if (a->form == FORM_FILES) {
		add(a,
		    "Remove each file that %s makes as soon as it was read (unlink(), "
		    "shm_unlink(), "
		    "SharedMemory.unlink()): closing it frees nothing. Let one side own that, and "
		    "do it where a request fails, too.",
		    a->where);
		return;
	}
	if (a->form == FORM_UNJOINED) {
		add(a, "Join each thread when its work is done (pthread_join, std::thread::join, "
		       "Thread.join), or detach it when it is started (pthread_detach, "
		       "PTHREAD_CREATE_DETACHED): until then its stack stays.");
		return;
	}
	if (a->form == FORM_STACKS) {
		add(a,
		    "End the threads that %s starts with their requests: give what they wait for a "
		    "timeout, or let a pool of a fixed size do the work.",
		    a->where);
		return;
	}
	add(a,
	    "Release what %s allocates when its request ends. Look for what still refers to it: a "
	    "global list, a cache without a bound, a handler that is never removed, a missing "
	    "free.",
	    a->where);
	add(a, "If it is kept on purpose, give the store a bound: a largest size, an age, or one "
	       "entry for each key.");
}

static void fixes_state_retention(struct advice *a)
{
	if (a->form == FORM_GRAPHS) {
		add(a,
		    "Round the inputs of %s up to a few shapes, and capture a graph for each of "
		    "these only; or drop the graph that was not launched for the longest time.",
		    a->where);
		add(a, "Let the graphs share one pool: torch.cuda.graph(graph, pool=...).");
		return;
	}
	add(a,
	    "Give the store that %s fills a bound: a largest number of entries, an age, or only "
	    "the newest snapshot of each conversation.",
	    a->where);
	add(a, "Keep references and differences in place of whole copies, or write the snapshots "
	       "to disk.");
}

static void fixes_oversized_intermediate(struct advice *a)
{
	add(a,
	    "Do not hold it whole: let %s work in pieces (a stream, chunks, a generator, a memory "
	    "map), or keep only the fields and rows that the next step needs.",
	    a->where);
	add(a, "Put an upper bound on one request's input, and drop references as soon as a step "
	       "is done.");
}

static void fixes_oversized_model(struct advice *a)
{
	const struct verdict_result *r = a->result;

	/* On a device it is not known that the model was there before. */
	if (r->ranking.count && r->ranking.list[0].finding.late &&
	    r->failure.kind != FAILURE_CUDA_OOM)
		add(a,
		    "Give up what %s loaded before, and what still refers to it, before it loads "
		    "again: both were in memory at once.",
		    a->where);
	add(a, "Load fewer bytes: a smaller or quantised model, half precision, or its layers "
	       "spread over several devices or offloaded to the host.");
}

/* Return " by at least N" for the bytes that the refused request lacked; "": not known. */
static const char *by_at_least(const struct advice *a, struct lacking *out)
{
	const struct failure_view *f = &a->result->failure;
	uint64_t room = num_less(f->limit_bytes, f->usage_bytes);
	struct fmt size;

	if (!f->limit_bytes || !f->usage_bytes || f->requested_bytes <= room)
		return "";
	snprintf(out->text, sizeof(out->text), " by at least %s",
	    fmt_size(&size, f->requested_bytes - room));
	return out->text;
}

static void fixes_batch_prealloc(struct advice *a)
{
	const struct finding *f = &a->result->ranking.list[0].finding;
	struct lacking by;
	struct fmt taken;

	if (a->form == FORM_GRAPHS) {
		add(a,
		    "Capture graphs in %s for fewer and smaller batches, the largest one first, "
		    "and let them share one pool: torch.cuda.graph(graph, pool=...).",
		    a->where);
		return;
	}
	if (a->form == FORM_STAIRS)
		add(a,
		    "Let %s make the largest block first and use it for the smaller sizes, too; or "
		    "prepare fewer sizes, and smaller ones.",
		    a->where);
	/* How much of it was still to come is not known. */
	if (finding_fact(f, FACT_POOL_NEXT) > 0)
		add(a,
		    "Make the pool that %s takes smaller than the %s that were taken when memory "
		    "ran out: fewer sequences, a shorter largest context, or blocks taken as they "
		    "are needed.",
		    a->where, fmt_size(&taken, f->bytes));
	else
		add(a,
		    "Make the pool that %s takes smaller%s: fewer sequences, a shorter largest "
		    "context, or blocks taken as they are needed.",
		    a->where, by_at_least(a, &by));
}

/* Say how many requests fit: each as large as the largest was, in what the limit leaves beside
 * everything else; and fewer than there were when memory ran out. */
static void add_bound(struct advice *a)
{
	const struct verdict_result *r = a->result;
	const struct finding *f = &r->ranking.list[0].finding;
	double count = finding_fact(f, FACT_AT_ONCE), each = finding_fact(f, FACT_AT_ONCE_LARGEST);
	/* The refused request is not in use. */
	double held = finding_fact(f, FACT_AT_ONCE_BYTES) - finding_fact(f, FACT_AT_ONCE_REFUSED);
	double room = (double)r->failure.limit_bytes - ((double)r->failure.usage_bytes - held);
	struct fmt n, size, left;

	/* Requests may hold more than the limit: pages that they have not touched are not in use.
	 */
	room = fmin(room, (double)r->failure.limit_bytes);
	/* With memory left there was no limit. */
	if (!r->failure.limit_bytes || !r->failure.usage_bytes || each <= 0 || room < each ||
	    count < 2 || r->failure.kind == FAILURE_KILLED)
		add(a, "Bound how many requests run at once (a semaphore, a queue, a smaller "
		       "worker pool) to what fits beside what stays.");
	else if (room / each >= count)
		add(a,
		    "Bound how many requests run at once to less than %s (a semaphore, a queue, a "
		    "smaller worker pool): with %s, of up to %s each, memory ran out.",
		    fmt_count(&n, (uint64_t)count), n.text, fmt_size(&size, (uint64_t)each));
	else
		add(a,
		    "Bound how many requests run at once to at most %s (a semaphore, a queue, a "
		    "smaller worker pool): each needs up to %s, and the limit leaves %s for them.",
		    fmt_count(&n, (uint64_t)(room / each)), fmt_size(&size, (uint64_t)each),
		    fmt_size(&left, (uint64_t)room));
}

static void fixes_concurrency(struct advice *a)
{
	switch (a->form) {
	case FORM_BACKLOG:
		add(a,
		    "Give the queue that %s fills a bound (a maxsize), so that it waits or refuses "
		    "while the queue is full; or process more of it at once.",
		    a->where);
		break;
	case FORM_STUCK:
		add(a,
		    "Give what %s waits for a timeout, and cancel a request whose client is gone "
		    "(asyncio.timeout, a deadline): a semaphore would fill with requests that "
		    "never "
		    "end.",
		    a->where);
		add(a, "If they do end, only later than the rest: bound how many run at once (a "
		       "semaphore).");
		break;
	case FORM_WORKERS:
		add(a, "Start fewer workers (--workers, max_workers, processes=): each needs what "
		       "this one held; or raise the limit to what all of them need.");
		add(a, "Share what all of them hold alike, as a model: load it before they are "
		       "forked (gunicorn --preload) and call gc.freeze(), map it from a file, or "
		       "serve it from one process.");
		break;
	case FORM_STREAMS:
		add(a, "Bound how many streams have work in flight: wait for the oldest "
		       "(cudaStreamSynchronize, an event) before the next is given any.");
		break;
	case FORM_STACKS:
		add(a,
		    "Let a pool of a fixed size do the work that %s starts threads for, or give "
		    "the threads smaller stacks (threading.stack_size, "
		    "pthread_attr_setstacksize, ulimit -s).",
		    a->where);
		break;
	default:
		add_bound(a);
		break;
	}
}

static void fixes_fragmentation(struct advice *a)
{
	if (a->result->failure.kind != FAILURE_CUDA_OOM)
		framework_malloc_fixes(a->result);
	add(a,
	    "Keep what lives long apart from what comes and goes: allocate what %s keeps before "
	    "the rest, in few sizes, and release it in the order it was made.",
	    a->where);
}

static const char *volume_directory(const struct verdict_result *r)
{
	return r->volume->directory ? r->volume->directory : "/dev/shm";
}

/* Is the limit too low for a process that does not grow? */
static bool too_low(const struct advice *a)
{
	return a->result->ranking.list[0].finding.steady || a->form == FORM_VARYING;
}

/* PyTorch refused before the device did. */
static void add_share(struct advice *a)
{
	const struct device_report *d = a->result->devices.first;
	struct fmt free, all;

	if (d && d->free_known)
		add(a,
		    "The device had %s of %s free: if nobody else needs that, allow this process "
		    "more of it (torch.cuda.set_per_process_memory_fraction).",
		    fmt_size(&free, d->free), fmt_size(&all, d->total));
}

/* Return ", better by N": what one request lacked is too little for the next one. The work varies
 * by N, as far as was seen, and a tenth is left anyway. "": no limit is known. */
static const char *better_by(const struct advice *a, struct lacking *out)
{
	const struct finding *f = &a->result->ranking.list[0].finding;
	double highest =
	    fmax(finding_fact(f, FACT_TEETH_HIGHEST), finding_fact(f, FACT_TEETH_LAST));
	double varies = a->form == FORM_VARYING ? highest - finding_fact(f, FACT_TEETH_USUAL) : 0;
	struct fmt size;

	if (!a->result->failure.limit_bytes)
		return "";
	snprintf(out->text, sizeof(out->text), ", better by %s",
	    fmt_size(
		&size, (uint64_t)fmax(varies, (double)a->result->failure.limit_bytes / ROOM_PART)));
	return out->text;
}

static void fixes_external(struct advice *a)
{
	struct lacking by, room;

	if (a->form == FORM_STACKS) {
		add(a, "Have fewer threads (a pool of a fixed size), or smaller stacks for them "
		       "(threading.stack_size, pthread_attr_setstacksize, ulimit -s).");
		add(a, "Limit resident memory (a cgroup's memory.max) in place of address space: "
		       "threads touch little of their stacks.");
	} else if (too_low(a) && a->result->failure.limit == LIMIT_DEVICE) {
		add(a,
		    "Give it a device that is larger%s, or let it keep less there: fewer or "
		    "smaller models, smaller caches and batches. The process does not grow; "
		    "`nvidia-smi` says whether others hold some of the device.",
		    by_at_least(a, &by));
	} else if (too_low(a)) {
		add(a,
		    "Raise the limit (%s)%s%s: the process does not grow, so some room to spare "
		    "ends this. Where that cannot be, let it do less at once: fewer requests, "
		    "smaller ones.",
		    limit_kind_name(a->result->failure.limit), by_at_least(a, &by),
		    better_by(a, &room));
	} else if (a->result->volume) {
		add(a,
		    "List the files with `ls -l %s` and remove those that no process uses any "
		    "more: a process that is killed leaves its segments behind. Give containers "
		    "that share it one of their own.",
		    volume_directory(a->result));
	} else {
		add(a, "Find what else holds the memory (`nvidia-smi`, or the other processes of "
		       "the container), and give this process a device or a limit of its own. If "
		       "the limit was set by hand (set_per_process_memory_fraction, a "
		       "container's), raise it to what a steady load needs.");
	}
}

/* A file system in memory was full, whatever filled it. */
static void add_volume(struct advice *a)
{
	const char *directory = volume_directory(a->result);

	if (strcmp(directory, "/dev/shm") == 0)
		add(a, "Give the container a larger /dev/shm: docker run --shm-size=8g, or "
		       "--ipc=host; in Kubernetes an emptyDir with medium: Memory and a sizeLimit, "
		       "mounted there. It counts against the memory limit as well.");
	else
		add(a,
		    "Make the file system at %s larger (mount -o remount,size=...), or put the "
		    "files elsewhere. It counts against the memory limit as well.",
		    directory);
	add(a, "Keep less there at once: fewer workers and fewer batches ahead (num_workers, "
	       "prefetch_factor), smaller ones, and each segment unlinked (unlink(), shm_unlink) "
	       "and closed as soon as it was read.");
}

/* Threads' stacks count whole against these limits, however little of them was touched. */
static void add_stacks(struct advice *a)
{
	const struct verdict_result *r = a->result;
	uint64_t stacks = ledger_get(&r->ledger, LEDGER_STACKS);
	struct fmt size;

	if ((r->failure.limit != LIMIT_AS && r->failure.limit != LIMIT_DATA) ||
	    stacks < r->failure.limit_bytes / STACKS_PART || !stacks || a->form == FORM_STACKS ||
	    a->form == FORM_UNJOINED)
		return;
	add(a,
	    "The stacks of its threads take %s of the limit, touched or not: make them smaller "
	    "(threading.stack_size, pthread_attr_setstacksize, ulimit -s), start fewer threads, or "
	    "limit resident memory (a cgroup's memory.max) in place of %s.",
	    fmt_size(&size, stacks), limit_kind_name(r->failure.limit));
}

/* Memory had not run out: the program's memory is only half of the question. */
static void add_killer(struct advice *a)
{
	const struct kill_view *k = &a->result->kill;

	if (k->seen && kill_with_memory_left(k))
		add(a, "Find out who sent SIGKILL, since the kernel did not: a supervisor with a "
		       "limit of its own on memory or time (a watchdog, a job scheduler, a "
		       "container's stop timeout), or a person.");
}

/* A row without its function does not compile. */
static void (*const choosers[CAUSE_COUNT])(struct advice *a) = {
    [CAUSE_UNKNOWN] = fixes_none,
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) [CAUSE_##id] = fixes,
#include "knowledge/causes.def"
};

void fixes_for(struct verdict_result *r)
{
	const struct finding *best = &r->ranking.list[0].finding;
	struct advice a = {.result = r, .where = "the blamed function"};
	struct str name = {0};

	r->verdict.fix_count = 0;
	if (r->ranking.count && best->cause == r->verdict.cause)
		a.form = best->form;
	if (r->verdict.blame.function) {
		fmt_function(&name, r->verdict.blame.function, "<..>");
		a.where = str_text(&name);
	}
	framework_fixes(r, false);
	/* A setting of the allocator needs no change of the program. */
	if (r->verdict.cause == CAUSE_FRAGMENTATION)
		framework_fixes(r, true);
	choosers[r->verdict.cause](&a);
	if (r->verdict.cause != CAUSE_FRAGMENTATION)
		framework_fixes(r, true);
	if (r->failure.limit == LIMIT_MAPPINGS)
		add(&a, "Memory was there: raise the number of mappings, `sysctl -w "
			"vm.max_map_count=262144` (for a container or a pod, on its host), or make "
			"fewer mappings, each of more bytes.");
	if (r->failure.limit == LIMIT_TORCH && r->verdict.cause != CAUSE_UNKNOWN &&
	    r->verdict.cause != CAUSE_EXTERNAL)
		add_share(&a);
	if (r->volume && r->verdict.cause != CAUSE_UNKNOWN)
		add_volume(&a);
	if (r->verdict.cause != CAUSE_UNKNOWN && r->verdict.cause != CAUSE_HEALTHY)
		add_stacks(&a);
	add_killer(&a);
	str_free(&name);
}
