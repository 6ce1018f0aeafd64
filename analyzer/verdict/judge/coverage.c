#include "verdict/judge/coverage.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/tuned.h"
#include "verdict/ledger/ledger.h"

TUNED(uint64_t, BASE_BYTES, 8ull << 20,
    "libraries' data, stacks and the loader: a process has 2 to 6 MiB of them resident before its "
    "own first allocation");
TUNED(uint64_t, SEEN_PART, 2,
    "below half, what was recorded cannot tell the cause: most of the memory is something else");
TUNED(uint64_t, LOST_EVENTS_PART, 20,
    "one event in twenty; with fewer lost, the counts of a call site still have the right order");
TUNED(uint64_t, LOST_BYTES_PART, 4,
    "a quarter of the peak; less than that is smaller than the largest call site nearly always");

TUNED(uint64_t, BEFORE_PART, 2u, "of less than half, what came since is the larger part");

#define DAMAGED_NEXT                                                                               \
	"Keep the trace on a disk that keeps what is written to it, and copy all of it; `whyoom "  \
	"check` names the places that are damaged."

static uint64_t info_number(const struct model *m, const char *key)
{
	const char *text = m->feed.info(m->feed.self, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void read_sample(
    const struct model *m, const struct callsites *callsites, struct coverage *out)
{
	double variance = 0;

	out->sample_every = info_number(m, "sampled.every");
	out->exact_from = info_number(m, "sampled.exact_from");
	for (uint32_t i = 0; i < callsites->count; i++)
		variance += callsites->list[i].facts.live_variance;
	out->error = sqrt(fmax(variance, 0));
}

/* True if it used a GPU, and none of CUDA's calls was recorded. */
static bool gpu_is_missing(const struct model *m)
{
	bool used = m->feed.facts(m->feed.self)->cuda_driver;

	for (uint32_t i = 0; m->spaces && i < DEVICES_MAX; i++)
		used |= m->spaces->outside[i].own_known;
	return used && !m->feed.info(m->feed.self, "cuda.driver") &&
	       !(m->spaces && m->spaces->count);
}

void coverage_read(const struct model *m, const struct callsites *callsites,
    const struct levels *levels, struct ending end, struct coverage *out, const char **next)
{
	const struct trace_facts *facts = m->feed.facts(m->feed.self);
	const struct allocator_reading *malloc_says =
	    allocator_stats_at(&m->measured.malloc, UINT64_MAX);
	uint64_t seen = m->peak.bytes + m->maps.stack_bytes + m->maps.shared_bytes +
			m->measured.inherited_bytes + base_left(&m->base, true);
	uint64_t resident = 0, swap = 0;

	/* The memory that malloc keeps of freed blocks is known, too, and its growth since the last
	 * reading: malloc is read whenever memory grows. */
	if (malloc_says)
		seen +=
		    allocator_stats_beside(malloc_says) + m->total.bytes - malloc_says->acquired;
	*out = (struct coverage){
	    .malloc_owner = m->feed.info(m->feed.self, "malloc.owner"),
	    .python = m->feed.info(m->feed.self, "python"),
	    .complete = !facts->torn_chunks && !facts->bad_checksums && !facts->damage.count &&
			!facts->dropped_total && !m->recording.lost && !facts->budget &&
			!m->recording.budget && !facts->checkpoint.until_ns && !facts->untold &&
			!facts->brief_stacks,
	    .lost_events = facts->dropped_total + m->recording.lost,
	    .lost_bytes = facts->dropped_bytes,
	    .small_missing = facts->budget || m->recording.budget,
	    .disk_bound = facts->disk_bound,
	    .attach = {.any = m->base.attached,
		.ran_ns = m->base.ran_ns,
		.there = m->base.blocks + m->base.resident,
		.freed = m->base.freed},
	    .paused_ns = m->recording.paused_ns,
	    .paused_bytes = facts->paused_bytes,
	    .brief_stacks = facts->brief_stacks,
	    .untold = facts->untold,
	    .checkpoint = facts->checkpoint,
	    .rights = facts->rights,
	    .past = m->replaced,
	    .coarser_times = m->recording.coarser_times,
	    .coarsest_every = m->recording.coarsest_every,
	    .coarsest_exact_from = m->recording.coarsest_exact_from,
	    .thinned_times = m->recording.thinned_times,
	    .thinned_blocks = m->recording.thinned_blocks,
	    .thinned_every = m->recording.thinned_every,
	};
	if (facts->mode == TRACE_MODE_SAMPLED)
		read_sample(m, callsites, out);
	*next = NULL;
	for (size_t i = 0; i < m->stacks.count; i++) {
		if (stack_table_number(&m->stacks, i)->kind == STACK_STATS_HEAP)
			out->malloc_seen = true;
		else
			out->maps_seen = true;
	}
	if (levels_get(levels, TRACE_LEVEL_RSS_ANON, &resident) &&
	    levels_get(levels, TRACE_LEVEL_SWAP, &swap))
		resident += swap;
	/* Threads' stacks and the recorder's own memory are known, and need no event. */
	resident = num_less(resident, levels_value(levels, TRACE_LEVEL_RSS_THREADS) +
					  levels_value(levels, TRACE_LEVEL_WHYOOM_ANON));
	if (!out->malloc_seen && !out->maps_seen && facts->damage.share > 0) {
		out->gap = "the trace is damaged, and nothing that is left of it tells of memory";
		*next = DAMAGED_NEXT;
	} else if (!out->malloc_seen && !out->maps_seen && m->base.attached) {
		out->gap = "nothing was allocated since whyoom came, or the hooks did not fire";
		*next = "Attach for longer, while it works; or start it with `whyoom run`.";
	} else if (!out->malloc_seen && !out->maps_seen) {
		out->gap = "nothing was recorded: the hooks did not fire";
		*next =
		    "Check that the program is dynamically linked and not setuid, and that nothing "
		    "clears LD_PRELOAD; run it under `whyoom run`.";
	} else if (resident > BASE_BYTES && seen < (resident - BASE_BYTES) / SEEN_PART &&
		   facts->damage.share > 0) {
		out->gap = "the trace is damaged, and most of the resident memory was acquired "
			   "in what is missing of it";
		*next = DAMAGED_NEXT;
	} else if (facts->rights.stopped_ns &&
		   (facts->dropped[TRACE_DROP_RIGHTS] > m->run.events / LOST_EVENTS_PART ||
		       facts->dropped_bytes > m->peak.bytes / LOST_BYTES_PART)) {
		out->gap = "rights were given up, and from then on it could not be recorded";
		*next = facts->rights.reason == TRACE_RIGHT_SECCOMP
			    ? "Run it without its seccomp sandbox, or with a filter that allows "
			      "mremap and madvise, or openat, fallocate and mmap."
			    : "Start it with the rights given up already: setpriv --reuid USER "
			      "--clear-groups whyoom run -o DIR -- COMMAND, where DIR is that "
			      "user's.";
	} else if (resident > BASE_BYTES && seen < (resident - BASE_BYTES) / SEEN_PART) {
		out->gap = "most of the resident memory was not acquired through anything that was "
			   "recorded";
		*next =
		    "The program uses an allocator of its own that takes memory by direct system "
		    "calls: run it with that allocator switched off, or with its malloc replaced.";
	} else if (facts->checkpoint.damaged) {
		out->gap = "the checkpoint that took the place of older events is damaged, and "
			   "they are lost";
		out->blurred = true;
		*next = "Keep the trace on a disk that keeps what is written to it.";
	} else if (out->lost_events > m->run.events / LOST_EVENTS_PART ||
		   out->lost_bytes > m->peak.bytes / LOST_BYTES_PART) {
		out->gap = "too many events were lost";
		out->blurred = true;
		*next =
		    facts->disk_bound
			? "Give the traces more room: a larger --max-disk, on a disk that has it "
			  "(-o), or fewer processes that are recorded."
			: "Give the trace more room: a disk that is not full (-o), a larger "
			  "--max-trace, and more address space where RLIMIT_AS is tight.";
	} else if (end.how == END_SIGNAL && end.code == SIGBUS && m->shm.untold) {
		out->gap =
		    "it was killed by SIGBUS with shared memory mapped, as happens to who "
		    "writes there when its file system (/dev/shm) is full, whose size and use "
		    "are not recorded";
		*next =
		    "Look at `df /dev/shm` while it runs. A container's has 64 MiB unless it is "
		    "started with more: docker run --shm-size or --ipc=host; in Kubernetes an "
		    "emptyDir with medium Memory mounted there.";
	} else if (gpu_is_missing(m)) {
		out->gap = "the GPU was not recorded: CUDA's driver was loaded, and none of its "
			   "calls was seen";
		out->blurred = true;
		*next = "`nvidia-smi` says what it holds of the GPU. Its calls are seen where "
			"CUDA's libraries are loaded as usual: not by dlmopen(), nor by a program "
			"that is linked statically.";
	}
}

bool coverage_mostly_before(const struct verdict_result *r)
{
	return r->coverage.attach.any &&
	       ledger_get(&r->ledger, LEDGER_BEFORE) > r->ledger.limit_bytes / BEFORE_PART;
}
