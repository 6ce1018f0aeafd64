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
#include "model/callsite/stack_table.h"
#include "model/feed.h"
#include "model/heap/host_failure.h"
#include "model/heap/levels.h"
#include "model/heap/maps.h"
#include "model/heap/peak_trend.h"
#include "model/heap/recording.h"
#include "model/heap/replaced_period.h"
#include "model/heap/shm.h"
#include "model/heap/timeline.h"

struct spaces;

/* The moments at which it can be asked what lived. */
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

/* What the caller asks of a model; set before the first event, but for files_charged. */
struct model_options {
	struct observer observer; /* arg NULL: nobody listens */
	struct witness witness; /* block NULL: nobody does */
	/* Only what lives is kept, and the observer is told of it: for a replay, which asks for no
	 * stacks, no high-water mark and no course. */
	bool sums;
	/* Which files that are mapped have call sites, too. Set when it is known what refused,
	 * after the last event; of a model that keeps sums, before the first. */
	enum files_charged files_charged;
	/* Blocks may be so much larger than what was asked for, by what was free there. */
	uint64_t padding;
};

/* Blocks of malloc's kin that live. */
struct live_blocks {
	uint64_t bytes, count;
	double variance; /* of bytes, as far as that is an estimate */
};

/* Ever acquired, blocks and mappings. */
struct total {
	uint64_t bytes, count;
	struct alike freed_stats; /* not among these: what a checkpoint tells as sums */
};

/* When most lived, of blocks and mappings. */
struct peak {
	uint64_t bytes, time_ns, serial;
	uint64_t map_bytes, shared_bytes; /* of these */
};

/* The process as a whole. */
struct run {
	uint64_t events, first_ns, last_ns, unmatched;
	uint64_t others; /* of the events, those that are no blocks of the host's: a position that
			    is the same where these are left out */
	uint64_t serial; /* of the newest block: a clock that runs while the program works */
	uint64_t block_serial; /* the same, and mappings do not move it on */
	bool exited, signalled;
	uint32_t exit_code, signal;
};

/* Each part is filled by the module whose header has it, the others by model.c, and const for all
 * others. */
struct model {
	struct feed feed;
	struct model_options options;
	struct stack_table stacks;
	struct live_blocks blocks;
	struct maps maps;
	struct total total;
	struct peak peak;
	struct run run;
	struct timeline timeline;
	struct replaced replaced; /* periods whose events a checkpoint replaced */
	struct peak_trend peak_trend;
	struct measured measured;
	struct refusals refusals;
	struct recording recording;
	struct shm shm; /* file systems in memory that it maps files of */
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

/* Its bytes are in live_bytes or map_bytes. */
static inline bool model_counts(const struct model *m, enum stack_stats_kind kind)
{
	return kind == STACK_STATS_HEAP || kind == STACK_STATS_MAP ||
	       (kind == STACK_STATS_SHARED && m->maps.shared_counts);
}

/* Sites of that kind have places. */
static inline bool model_has_callsites(const struct model *m, enum stack_stats_kind kind)
{
	return model_counts(m, kind) ||
	       (kind == STACK_STATS_FILE && m->options.files_charged == FILES_ALL) ||
	       (kind == STACK_STATS_COPY && m->options.files_charged != FILES_NONE);
}

/* The site as it was at that moment; for AT_PEAK only *live_bytes and *live_count are of then. */
const struct stack_stats *model_stack_stats(const struct model *m, const struct stack_stats *s,
    enum moment at, uint64_t *live_bytes, uint64_t *live_count);

/* Of *live_bytes then, as far as that is estimated from a sample. */
double model_stack_stats_variance(
    const struct model *m, const struct stack_stats *s, enum moment at);

/* For the parts: after an acquisition or a release of `size` bytes, `live_before` of which lived
 * before; and before the statistics of a stack change. */
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
int model_touch(struct model *m, struct stack_stats *s);

#endif
