/*
 * model.h - one process, built from its events: what lives, which stack acquired it, the high-water
 * mark, failures and levels. One pass, constant work for each event. The model holds facts; the
 * detectors judge.
 *
 * One thread. The caller owns the feed and keeps it open as long as the model.
 */
#ifndef ANALYZER_MODEL_MODEL_H
#define ANALYZER_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/feed.h"
#include "model/heap/host_failure.h"
#include "model/heap/levels.h"
#include "model/heap/maps.h"
#include "model/heap/peak_trend.h"
#include "model/heap/recording.h"
#include "model/heap/replaced_period.h"
#include "model/heap/shm.h"
#include "model/heap/timeline.h"
#include "model/stack/stack_stats.h"
#include "model/stack/stack_table.h"

struct spaces;

/* The moments at which it can be asked what lived. */
enum moment { AT_END, AT_PEAK, AT_FAILURE };

/* Callbacks for each change of what lives, after it. For a replay that changes the past. */
struct observer {
	void *arg;
	void (*acquired)(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
	    uint64_t time_ns);
	void (*released)(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
	    uint64_t birth_ns, uint64_t time_ns);
};

/* Callback for each ALLOC, FREE and UNFREE of the model's own space, after it. A result other than
 * 0 ends model_apply() with that result. */
struct witness {
	void *arg;
	int (*block)(void *arg, const struct event *e);
};

/* Which mapped files a limit charges: RLIMIT_DATA the private and writable ones, RLIMIT_AS all. */
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

/* Create the model of an empty process. 0 or -ENOMEM, err filled. */
int model_new(struct feed feed, struct model **out, struct err *err);
void model_free(struct model *m); /* accepts NULL */

int model_apply(struct model *m, const struct event *e, struct err *err);
/* Call after the last event: closes what is open and frees what only further events need. */
void model_finish(struct model *m);
/* Check the invariants; abort when one is broken. For tests and debug builds. */
void model_check(const struct model *m);

/* True when the bytes of that kind are part of blocks.bytes or maps.bytes. */
static inline bool model_counts(const struct model *m, enum stack_stats_kind kind)
{
	return kind == STACK_STATS_HEAP || kind == STACK_STATS_MAP ||
	       (kind == STACK_STATS_SHARED && m->maps.shared_counts);
}

/* True when stacks of that kind belong to call sites. */
static inline bool model_has_callsites(const struct model *m, enum stack_stats_kind kind)
{
	return model_counts(m, kind) ||
	       (kind == STACK_STATS_FILE && m->options.files_charged == FILES_ALL) ||
	       (kind == STACK_STATS_COPY && m->options.files_charged != FILES_NONE);
}

/* Return the statistics of a stack at that moment; *live_bytes and *live_count receive what lived.
 * For AT_PEAK only these two are of that moment. */
const struct stack_stats *model_stack_stats(const struct model *m, const struct stack_stats *s,
    enum moment at, uint64_t *live_bytes, uint64_t *live_count);

/* The variance of *live_bytes at that moment, as far as it is estimated from a sample. */
double model_stack_stats_variance(
    const struct model *m, const struct stack_stats *s, enum moment at);

/* For the parts: after an acquisition or a release of `size` bytes, `live_before` of which lived
 * before; and before the statistics of a stack change. */
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
int model_touch(struct model *m, struct stack_stats *s);

#endif
