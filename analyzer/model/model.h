/*
 * model.h - one process, as its events make it: what lives, who acquired it, the high-water mark,
 * the failures, the levels. One pass, constant work for an event. Holds facts; opinions are the
 * detectors'. One thread; the caller owns the feed and keeps it open as long as the model.
 */
#ifndef ANALYZER_MODEL_MODEL_H
#define ANALYZER_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/callsite/stack_stats.h"
#include "model/feed.h"
#include "model/heap/allocator_stats.h"
#include "model/heap/peak_trend.h"
#include "model/heap/replaced_period.h"
#include "model/heap/shm.h"
#include "model/heap/timeline.h"
#include "util/ranges.h"
#include "util/vec.h"

#define MODEL_LEVELS 160u /* keys of enum trace_level below this are kept */
/* And one that no trace has: RSS_ANON as it was next to a sample of CG_ANON, whose time it has. */
#define MODEL_LEVEL_BESIDE (MODEL_LEVELS - 1)

struct levels {
	uint64_t value[MODEL_LEVELS];
	uint64_t time_ns[MODEL_LEVELS];
	bool known[MODEL_LEVELS];
};
/* False, and *out untouched, when that key was never seen. */
bool levels_get(const struct levels *l, uint32_t key, uint64_t *out);
/* The same, 0 where it was never seen. */
uint64_t levels_value(const struct levels *l, uint32_t key);
void levels_set(struct levels *l, uint32_t key, uint64_t value, uint64_t time_ns);
/* Threads' stacks are looked at more seldom than the threads are counted: carries the size of all
 * of them on to so many threads, of `each` bytes where they are of that size (0: not known), else
 * as they were on average. */
void levels_carry_stacks(struct levels *l, uint64_t threads, uint64_t each);

/* A burst of refused requests: the first, and what came of it. */
struct failure {
	uint64_t time_ns, size, old_size; /* size: the whole block; old_size: what a realloc had */
	uint64_t largest; /* refused in the burst */
	uint64_t least; /* of those that were halved, and refused again */
	uint32_t stack, thread, api;
	int32_t result; /* errno */
	uint64_t count; /* refused requests in the burst */
	uint64_t granted; /* acquisitions at that stack until then */
	uint64_t own; /* acquisitions of that thread since the latest of them */
	uint64_t after; /* acquisitions until the latest of them */
	uint64_t live_bytes, live_map_bytes;
	uint64_t stack_bytes, shared_bytes, file_bytes, allocator_bytes; /* virtual, as seen */
	uint64_t acquired_before, serial; /* bytes and blocks, by the whole process until then */
	/* Whether it was got over is told by what is acquired from then on. Where a checkpoint took
	 * the place of then: by its later periods, and from its end on. Bytes: until that end, in
	 * the periods, and what lived, at least. */
	uint64_t until_bytes, periods_bytes, until_live;
	bool until_past;
	/* Bytes of that stack and thread: what was let go since, before any more was made there; of
	 * that what lives, and the most that did. */
	uint64_t pile, again, again_most;
	bool again_fallen, again_over; /* over: not begun at once, or begun again after it fell */
	/* Recovered: the process lived on. Retried: the thread was granted it after all, or did it
	 * in another way; else what it was for was given up, and the failure was survived. Settled:
	 * which of these is known. */
	bool recovered, retried, settled;
	uint64_t recovered_ns;
};
#define MODEL_FAILURES 32u /* kept with their facts; all are counted */

struct spaces;

/* Sites by stack. There are as many tables as spaces and kinds, and most have few. */
#define STACK_STATS_PAGE 512u
struct stack_stats_page {
	uint32_t stats_list[STACK_STATS_PAGE]; /* number, plus 1; 0: nothing of that kind acquired
						  there */
};
#define STACK_STATS_BATCH 128u /* lie together */

/* The moments at which sites can be asked what lived. */
enum moment { AT_END, AT_PEAK, AT_FAILURE };

/* Told of each change of what lives, after it; for a replay that rewrites the past. */
struct observer {
	void *arg;
	void (*acquired)(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
	    uint64_t time_ns);
	void (*released)(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
	    uint64_t birth_ns, uint64_t time_ns);
};

/* Told of each ALLOC, FREE and UNFREE of the model's own space, after it; not 0: it is passed up.
 */
struct witness {
	void *arg;
	int (*block)(void *arg, const struct event *e);
};

/* By RLIMIT_DATA those that are private and writable, by RLIMIT_AS all. */
enum files_charged { FILES_NONE, FILES_DATA, FILES_ALL };

struct model {
	struct feed feed;
	struct observer observer; /* arg NULL: nobody listens */
	struct witness witness; /* block NULL: nobody does */
	bool
	    sums; /* only what lives is kept, and whoever listens is told of it: for a replay, which
		     asks for no sites, no high-water mark and no course. Set before any event. */

	struct stack_stats_page *
	    *pages[STACK_STATS_KINDS]; /* see model_stack_stats_of(); NULL after model_finish() */
	uint32_t limits[STACK_STATS_KINDS]; /* of stack ids */
	VEC(struct stack_stats *)
	batches; /* of STACK_STATS_BATCH sites each, in order of first use */
	size_t stack_stats_count;
	/* Those whose `marked` is set, to be taken back at the next high-water mark; and more. */
	VEC(struct stack_stats *) marked;
	bool marked_more;

	uint64_t live_bytes, live_count; /* blocks of malloc's kin */
	double live_variance; /* of live_bytes, as far as that is an estimate */
	uint64_t map_bytes, map_count; /* anonymous mappings of the program's own, and: */
	uint64_t map_shared_bytes; /* of map_bytes: shared memory, where that counts */
	/* Known from the first of it on: all limits charge it, but for RLIMIT_DATA. */
	bool shared_asked, shared_counts;
	/* Which files that are mapped have places, too. Set by who knows what refused, after the
	 * last event; of a model that keeps sums, before the first. */
	enum files_charged files_charged;
	uint64_t total_bytes, total_count; /* ever acquired, both */
	struct alike went; /* not among these: what a checkpoint tells as sums */
	uint64_t allocator_bytes; /* mapped by malloc's owner for itself */
	/* Virtual, of mappings that we saw and that are not in map_bytes. */
	uint64_t stack_bytes, shared_bytes, file_bytes;
	uint64_t reserved_bytes; /* of them without access */
	uint64_t break_bytes; /* moved by the program's own brk */

	uint64_t peak_bytes, peak_ns; /* of live_bytes + map_bytes */
	uint64_t peak_map_bytes, peak_shared_bytes;

	struct timeline timeline;
	struct past past; /* as far as a checkpoint took its place */
	struct rise rise; /* of blocks and mappings */
	struct levels levels; /* the newest */
	/* What lived when the newest RSS among these was read: to the byte, where the timeline has
	 * what lived at the ends of a period. */
	struct model_at_rss {
		uint64_t time_ns, live_bytes, shared_bytes;
	} at_rss;
	/* Anonymous memory that was resident before anything was acquired: of who was forked, the
	 * parent's; as first told. */
	bool inherited_known;
	uint64_t inherited_bytes;
	struct levels levels_failed; /* when the latest burst began */
	struct levels levels_peak; /* of the sample at which most lived */
	uint64_t levels_peak_live;
	uint64_t peak_rss;
	struct allocator_stats allocator_stats; /* of malloc */
	struct allocator_stats arenas; /* of the interpreter's allocator */
	uint64_t peak_vsize; /* the largest that was told */

	struct failure failures[MODEL_FAILURES]; /* bursts; the last entry is always the latest */
	size_t failure_count; /* kept */
	uint64_t bursts, refused; /* all of them */
	uint64_t failure_epoch; /* 0: none failed */

	uint64_t events, first_ns, last_ns, unmatched;
	uint64_t others; /* of the events, those that are no blocks of the host's: a position that
			    is the same where these are left out */
	uint64_t serial; /* of the newest block: a clock that runs while the program works */
	uint64_t block_serial; /* the same, and mappings do not move it on */
	uint64_t peak_serial;
	bool exited, signalled, budget;
	uint32_t exit_code, signal;
	uint64_t lost; /* events, as NOTICE said */
	/* --max-rate: how often the sample was made coarser, and how coarse it was at most. */
	uint64_t coarse_every, coarser_times, coarsest_every, coarsest_exact_from;
	/* What lived had no room in a checkpoint: how often blocks of the sample were left out, how
	 * many, and what those that stayed are a sample by since. */
	uint64_t thinned_times, thinned_blocks, thinned_every;
	uint64_t paused_ns, paused_since_ns; /* its recording; since: 0 when it goes on */

	struct shm shm; /* file systems in memory that it maps files of */
	struct ranges ranges;
	struct range *undo; /* pieces of the latest unmapping, for UNUNMAP */
	size_t undo_count, undo_room;
	uint64_t undo_address, undo_end;
	int cut_error;
	uint64_t cut_ns;

	/* Its blocks may be so much larger than what was asked for, by what was free there. */
	uint64_t padding;
	struct spaces *spaces; /* beside the host's: space.h; NULL: none was named */
};

/* The model of an empty process. 0 or -ENOMEM. */
int model_new(struct feed feed, struct model **out, struct err *err);
void model_free(struct model *m); /* accepts NULL */

int model_apply(struct model *m, const struct event *e, struct err *err);
/* After the last event: what only more of them would need is given back. */
void model_finish(struct model *m);
/* Invariants; aborts when one is broken. For tests and debug builds. */
void model_check(const struct model *m);

/* One of stack_stats_count. It stays where it is. */
static inline struct stack_stats *model_stack_stats_number(const struct model *m, size_t number)
{
	return &m->batches.items[number / STACK_STATS_BATCH][number % STACK_STATS_BATCH];
}

/* NULL: nothing of that kind acquired there. It looks at all of them after model_finish(). */
struct stack_stats *model_stack_stats_at(
    const struct model *m, uint32_t stack, enum stack_stats_kind kind);

/* Its bytes are in live_bytes or map_bytes. */
static inline bool model_counts(const struct model *m, enum stack_stats_kind kind)
{
	return kind == STACK_STATS_HEAP || kind == STACK_STATS_MAP ||
	       (kind == STACK_STATS_SHARED && m->shared_counts);
}

/* Sites of that kind have places. */
static inline bool model_has_callsites(const struct model *m, enum stack_stats_kind kind)
{
	return model_counts(m, kind) ||
	       (kind == STACK_STATS_FILE && m->files_charged == FILES_ALL) ||
	       (kind == STACK_STATS_COPY && m->files_charged != FILES_NONE);
}

/* The site as it was at that moment; for AT_PEAK only *live_bytes and *live_count are of then. */
const struct stack_stats *model_stack_stats(const struct model *m, const struct stack_stats *s,
    enum moment at, uint64_t *live_bytes, uint64_t *live_count);

/* Of *live_bytes then, as far as that is estimated from a sample. */
double model_stack_stats_variance(
    const struct model *m, const struct stack_stats *s, enum moment at);

/* The latest burst, unless it was granted after all: NULL then. Survived ones count: what was asked
 * for was not had. */
const struct failure *model_failure(const struct model *m);
/* The latest burst, which was survived, is none of a limit's: it was had in another way. */
void model_did_without(struct model *m);

#endif
