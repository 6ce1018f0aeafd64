/*
 * result.h - everything that a report prints, as data: how the process failed, where every byte of
 * the limit was, which cause explains it, how sure that is, and what to change. The comment on each
 * part names the module that writes it; all others see it const. subject.c puts the parts together
 * for the host, device_cause.c for a device that refused.
 */
#ifndef ANALYZER_VERDICT_RESULT_H
#define ANALYZER_VERDICT_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/detect.h"
#include "knowledge/knowledge.h"
#include "model/request/phase.h"
#include "model/request/request_held.h"
#include "model/space/space.h"
#include "trace/trace.h"
#include "util/arena.h"
#include "verdict/forecast/prospect.h"
#include "verdict/request/stages.h"

enum end_how {
	END_UNKNOWN,
	END_EXIT,
	END_SIGNAL,
	END_RUNNING,
	END_DETACHED, /* the recorder left it, and it went on */
};

/* Memory of the host (gpu GPU_NONE), or from a driver on a GPU. */
struct process_memory {
	const char *space; /* the process's name for it: "host", "cuda:0", "pool:0" */
	uint32_t gpu; /* its number on the machine, the same in all processes */
	uint64_t held; /* bytes at the failure, or at the subject's peak */
	uint64_t peak;
};

struct process {
	uint32_t pid, ppid;
	/* arguments joined by blanks; the executable if they were not recorded */
	const char *cmdline;
	const char *trace; /* path */
	const char *host, *labels; /* the machine's name; "NAME=VALUE,NAME=VALUE"; "": not known */
	uint64_t events, dropped;
	uint64_t start_real_ns;
	double seconds; /* of the recording */
	bool attached; /* it had begun before, by ran_ns if that is not 0 */
	uint64_t ran_ns;
	enum end_how how;
	uint32_t code;
	uint64_t refused_ns; /* since its start: the refusal without recovery; 0: none */
	uint64_t late_ns; /* time from the subject's failure to that refusal */
	struct process_memory *memory; /* the host first; empty when only one process was read */
	size_t memory_count;
	uint64_t resident; /* bytes at the subject's moment; 0: not sampled */
};

enum failure_kind {
	FAILURE_NONE,
	FAILURE_HOST_ALLOC,
	FAILURE_PYTHON_MEMORYERROR,
	FAILURE_OOM_KILL,
	/* Killed while its memory grew, but before it ran out. "none" in the JSON, since no request
	 * was refused; the verdict names the growth. */
	FAILURE_KILLED,
	FAILURE_STALLED, /* the kernel held it back at memory.high, and it ended or runs there */
	FAILURE_BUS, /* ended by SIGBUS, or probably so: no page for a mapped file */
	FAILURE_CUDA_OOM, /* a device refused: verdict_result.devices */
};

enum limit_kind {
	LIMIT_NONE, /* the peak takes its place */
	LIMIT_AS,
	LIMIT_DATA,
	LIMIT_CGROUP,
	LIMIT_CGROUP_HIGH, /* memory.high, where the kernel stalls instead of killing */
	LIMIT_SYSTEM, /* the machine's memory */
	LIMIT_OVERCOMMIT, /* the kernel did not promise that much memory */
	LIMIT_COMMIT, /* all promises together: CommitLimit, with vm.overcommit_memory=2 */
	LIMIT_ADDRESS, /* the request fits into no address space */
	LIMIT_MAPPINGS, /* the number of mappings: vm.max_map_count */
	LIMIT_DEVICE, /* the device's memory */
	LIMIT_TORCH, /* PyTorch's share of it: per_process_memory_fraction */
	LIMIT_SHM, /* a file system in memory, mostly /dev/shm: volume.h */
	LIMIT_ARENA, /* a library's own arena, as ONNX Runtime's, from the log */
	LIMIT_UNKNOWN, /* no recorded limit explains the refusal */
};
const char *limit_kind_name(enum limit_kind kind); /* "RLIMIT_AS", as in the JSON */
static inline bool limit_is_cgroup(enum limit_kind kind)
{
	return kind == LIMIT_CGROUP || kind == LIMIT_CGROUP_HIGH;
}
const char *failure_kind_name(enum failure_kind kind); /* "host-alloc" */
static inline bool failure_is_kill(enum failure_kind kind)
{
	return kind == FAILURE_OOM_KILL || kind == FAILURE_KILLED || kind == FAILURE_STALLED;
}

struct stack_view {
	const struct symbol *symbols; /* outermost first; the feed's */
	size_t count;
};
/* Empty for stack 0. */
static inline struct stack_view stack_view_of(const struct feed *feed, uint32_t stack)
{
	struct stack_view view = {NULL, 0};

	if (stack)
		view.count = feed->symbols(feed->self, stack, &view.symbols);
	return view;
}

struct failure_view {
	enum failure_kind kind;
	uint32_t pid;
	uint64_t time_ns; /* since the process's start */
	uint64_t requested_bytes; /* 0: no request was refused */
	enum limit_kind limit;
	uint64_t limit_bytes, usage_bytes; /* in the limit's measure */
	uint64_t swap_bytes; /* of a cgroup: part of limit_bytes that is swap */
	uint64_t held_back; /* FAILURE_STALLED: times that memory.high was exceeded */
	uint64_t mappings; /* LIMIT_MAPPINGS: the number of mappings, which is limited */
	uint64_t usage_age_ns; /* age of usage_bytes's sample */
	struct stack_view stack;
	/* After SIGKILL or SIGBUS: why the assumed failure is likely; else NULL. */
	const char *kill_evidence;
};

/* The kernel's counts of OOM kills. */
enum kill_counter {
	KILL_COUNTER_UNSEEN, /* nobody watched the counts to the end */
	KILL_COUNTER_QUIET, /* they did not rise during the run */
	KILL_COUNTER_ROSE,
};
/* How much memory was left at the kill, and when it would have been full. */
struct outlook {
	bool known; /* false: the memory left was not measured; the rest is 0 */
	bool plenty; /* more is left than at which any killer strikes */
	enum limit_kind memory; /* the scarcer of the cgroup's and the machine's memory */
	uint64_t left_bytes;
	bool grows; /* live bytes rise steadily until the end */
	enum limit_kind first; /* the limit that this growth would have reached first */
	uint64_t first_bytes; /* that limit */
	uint64_t full_soonest_ns, full_latest_ns; /* after the kill; 0: no trend */
};
/* How the process ended if no refused request was seen. kill.c has the rule. */
struct kill_view {
	struct outlook outlook;
	bool killed; /* by SIGKILL, or its end was not seen */
	/* Not killed, but ended next to its limit: the loader's requests are not recorded. */
	bool at_limit;
	bool seen; /* the signal was seen */
	bool rising; /* memory rose until the end */
	enum kill_counter counter;
	/* Peaks in the first two thirds of the run, and in the last third. */
	uint64_t live_early, live_late;
	uint64_t rss_early, rss_late; /* 0: not sampled */
};

struct ledger_row {
	const char *class;
	uint64_t bytes;
};
#define LEDGER_ROWS 20u

struct ledger {
	uint32_t pid;
	enum limit_kind limit;
	uint64_t limit_bytes;
	const char *at; /* "failure" or "peak" */
	const char *space; /* NULL: the host's */
	struct ledger_row rows[LEDGER_ROWS];
	uint32_t row_count;
	int64_t unaccounted;
	uint64_t age_ns; /* age of the sample of resident bytes */
};

struct fix {
	const char *for_; /* "any", or a framework */
	const char *text;
};
#define FIXES_MAX 8u

struct what_if {
	const char *change;
	bool fits;
	int64_t headroom;
};
#define WHAT_IF_MAX 12u
#define NOTES_MAX 16u

/* A candidate cause, and the replay without it. */
struct candidate {
	struct finding finding;
	/* The result from a model of the space's allocator, if it reproduces the recording. */
	struct candidate_trial {
		bool made, fits;
		int64_t headroom;
	} trial;
	uint64_t removed; /* by how much fewer bytes would have lived at the moment */
	int64_t headroom; /* bytes left under the limit after the request; negative: missing */
	bool fits, admissible;
	double share; /* of the growth: the part that it explains */
	double further; /* share of ten times the work so far that would fit */
	double score, confidence;
};
#define CANDIDATES_MAX CAUSE_COUNT

struct verdict {
	enum cause cause;
	double confidence;
	const char *summary; /* a sentence or two */
	struct {
		const char *function, *file; /* NULL: nothing to blame */
		uint32_t line;
		uint64_t bytes; /* with what it was refused */
		uint64_t refused; /* what it was refused, if the cause counts that; else 0 */
		struct stack_view stack;
		size_t frame; /* index of the blamed frame in stack */
		double error; /* standard error of bytes, if they come from a sample */
	} blame;
	/* the winner's; for CAUSE_UNKNOWN, the likeliest cause's */
	struct evidence evidence[EVIDENCE_MAX];
	size_t evidence_count;
	struct fix fixes[FIXES_MAX];
	size_t fix_count;
	enum cause runner_up; /* CAUSE_UNKNOWN: none */
	double runner_up_confidence;
	const char *next; /* for CAUSE_UNKNOWN: what to record the next time */
};

struct recovered {
	uint64_t time_ns, size, count;
	bool retried;
	const char *space; /* NULL: the host's */
	uint64_t segment; /* bytes requested from the level below; 0: none */
	struct stack_view stack;
};

/* How complete the recording is. coverage.c */
struct coverage {
	const char *malloc_owner, *python; /* NULL: unknown */
	bool malloc_seen, maps_seen, complete;
	uint64_t lost_events, lost_bytes;
	bool small_missing; /* blocks under 64 KiB, after the trace had reached its size limit */
	/* the size limit of all traces of the run caused that, or the checkpoint */
	bool disk_bound;
	/* Of blocks under exact_from bytes, one was recorded for every sample_every bytes (0: all
	 * were), so live bytes are estimates with this standard error. */
	uint64_t sample_every, exact_from;
	double error;
	/* The recorder was attached: what was there then, and what was freed of it since. */
	struct attach_facts {
		bool any;
		uint64_t ran_ns; /* since the process's start; 0: not recorded */
		uint64_t there, freed; /* bytes; 0: not measured */
	} attach;
	uint64_t paused_ns; /* time without recorded new blocks */
	uint64_t paused_bytes; /* bytes of those blocks, if they were counted */
	/* A checkpoint left only sums of freed blocks. until_ns 0: no checkpoint. */
	struct trace_checkpoint_facts checkpoint;
	struct replaced past;
	uint64_t brief_stacks, untold; /* as in struct trace_facts */
	/* The sample was made coarser for --max-rate; 0: no. */
	uint64_t coarser_times, coarsest_every, coarsest_exact_from;
	/* Or because the live blocks did not fit into a checkpoint; 0: no. */
	uint64_t thinned_times, thinned_blocks, thinned_every;
	struct trace_rights_facts rights; /* given up by the process */
	const char *gap; /* what is missing for a verdict, or NULL */
	bool blurred; /* events were lost; a failure's cause may still be clear */
};

/* The work until the moment: the host's, and the requests on the device that refused. flow.c */
struct flow {
	struct requests *requests; /* NULL: not read */
	struct flow_space *space; /* of the device that refused, during the pass; or NULL */
	struct requests_held held;
	struct phases phases;
	struct stage stages[ROLE_COUNT]; /* by peak, the largest first */
	size_t stage_count;
};

/* The processes of a set. tree/tree.c */
struct process_tree {
	struct process *processes;
	size_t count;
	size_t subject; /* index of the report's process */
	bool victim; /* the kernel's log says that its OOM killer took the subject */
	/* Resident bytes of all other processes: the sum of each one's maximum. */
	uint64_t siblings;
	uint64_t siblings_live; /* their live bytes when the subject ended */
	uint64_t siblings_volume; /* bytes of a full file system that they mapped */
	uint64_t unmapped_volume; /* the same, mapped before and not any more, by any process */
	struct scene_workers workers; /* shared pages count once for each process */
	/* What the others' events say that they held of each GPU when one refused the subject. */
	uint64_t gpu_others[DEVICES_MAX];
	bool watched; /* by a supervisor */
	/* Another process was killed because the subject filled a file system: its failure, on the
	 * subject's clock. device 0: no. */
	struct {
		uint64_t device;
		struct failure_view failure;
	} elsewhere;
	struct trace_set_damage damage;
};

/* The knowledge files' data on the subject's frames. verdict.c opens it. */
struct frameworks {
	struct knowledge *knowledge; /* NULL: not looked up */
	struct framework_frames *frames; /* the same */
	bool borrowed; /* both belong to another result */
};

/* The failures that the process recovered from. subject.c */
struct recoveries {
	struct recovered *list;
	size_t count;
	uint64_t total; /* includes those without room in the list */
};

/* The candidate causes, best first. judge/judge.c */
struct ranking {
	struct candidate list[CANDIDATES_MAX];
	size_t count;
};

/* Changes that would have fit. judge/decide.c */
struct what_ifs {
	struct what_if list[WHAT_IF_MAX];
	size_t count;
};

/* Other facts for the reader. */
struct notes {
	const char *list[NOTES_MAX];
	size_t count;
};
/* Add a note, if there is room. The text stays the caller's. */
static inline void notes_add(struct notes *notes, const char *text)
{
	if (notes->count < NOTES_MAX)
		notes->list[notes->count++] = text;
}

/* The devices that the process used. device/device.c; device.h has the lists' types. */
struct devices {
	struct device_report *list;
	size_t count;
	struct device_report *first; /* list, or NULL: no device was used */
	struct space_report *spaces; /* except the host's; those that ever held anything */
	size_t space_count;
};

struct verdict_result {
	struct process_tree tree;
	struct frameworks frameworks;
	struct trace *trace; /* the subject's */
	struct model *model; /* of the memory that ran out: the host or a volume */
	struct callsites *callsites; /* of that model, at the moment */
	struct volume_view *volume; /* of LIMIT_SHM; or NULL */
	struct failure_view failure;
	struct kill_view kill;
	struct recoveries recoveries;
	struct flow flow;
	struct ranking ranking;
	struct coverage coverage;
	struct verdict verdict;
	struct ledger ledger;
	struct what_ifs what_ifs;
	struct notes notes;
	struct devices devices;
	struct prospect prospect; /* of a process that still runs */
	struct arena arena; /* owns the words */
};

#endif
