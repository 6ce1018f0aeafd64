/*
 * model.h - one process, built from its events: the live blocks and their stacks, the high-water
 * mark, failures and levels. One pass, constant work for each event. The model holds facts; the
 * detectors judge.
 *
 * One thread. The caller owns the feed and keeps it open as long as the model.
 */
#ifndef ANALYZER_MODEL_MODEL_H
#define ANALYZER_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/feed.h"
#include "model/heap/base.h"
#include "model/heap/host_failure.h"
#include "model/heap/levels.h"
#include "model/heap/maps.h"
#include "model/heap/peak_trend.h"
#include "model/heap/replaced_period.h"
#include "model/heap/shm.h"
#include "model/heap/timeline.h"
#include "model/stack/stack_stats.h"
#include "model/stack/stack_table.h"

struct spaces;

/* The moments for which live bytes are known. */
enum moment { AT_END, AT_PEAK, AT_FAILURE };

/* Callbacks after each change of the live bytes, for a replay that changes the past. */
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

/* The same for the blocks of all other spaces: an acquisition, a release (each block of a release
 * in bulk) and a release taken back come as EV_ALLOC, EV_FREE and EV_UNFREE with .block. */
struct space;
struct space_witness {
	void *arg;
	int (*block)(void *arg, const struct space *sp, const struct event *e);
};

/* Which mapped files a limit charges: RLIMIT_DATA the private and writable ones, RLIMIT_AS all. */
enum files_charged { FILES_NONE, FILES_DATA, FILES_ALL };

/* The caller's options; set before the first event, except files_charged. */
struct model_options {
	struct observer observer; /* arg NULL: none */
	struct witness witness; /* block NULL: none */
	struct space_witness space_witness; /* the same */
	/* Keep only the live blocks, and tell the observer of them: for a replay, which needs no
	 * stacks, no high-water mark and no history. */
	bool sums;
	/* Which mapped files have call sites, too. Set after the last event, when the limit that
	 * refused is known; in a model with `sums`, before the first event. */
	enum files_charged files_charged;
	/* The allocator may enlarge a block by up to this many bytes, if they are free there. */
	uint64_t padding;
};

/* Live blocks of malloc's family. */
struct live_blocks {
	uint64_t bytes, count;
	double variance; /* of bytes, if they are an estimate */
};

/* Ever acquired, blocks and mappings. */
struct total {
	uint64_t bytes, count;
	struct alike freed_stats; /* not included above: the sums from checkpoints */
};

/* The high-water mark of blocks and mappings. */
struct peak {
	uint64_t bytes, time_ns, serial;
	uint64_t map_bytes, shared_bytes; /* parts of bytes */
};

/* The process as a whole. */
struct run {
	uint64_t events, first_ns, last_ns, unmatched;
	/* number of events that are no blocks of the host's: a position that stays the same if
	 * those are left out */
	uint64_t others;
	uint64_t serial; /* of the newest block: a clock that runs while the program works */
	uint64_t block_serial; /* the same, but mappings do not advance it */
	bool exited, signalled;
	uint32_t exit_code, signal;
};

/* The recorder's own notes: where it stopped, lost events, sampled more coarsely or paused. */
struct recording {
	bool budget; /* it stopped at the trace's size limit */
	uint64_t lost; /* events */
	/* --max-rate: how often the sample was made coarser, and its coarsest rate. */
	uint64_t coarse_every, coarser_times, coarsest_every, coarsest_exact_from;
	/* Live blocks had no room in a checkpoint: how often sampled blocks were left out, how
	 * many, and the rate of the remaining sample. */
	uint64_t thinned_times, thinned_blocks, thinned_every;
	uint64_t paused_ns, paused_since_ns; /* since: 0 unless it is paused */
};

/* Each part is filled by its header's module, the others by model.c, and const for all others. */
/* The feed is one event ahead of a model that stands before an event which was read already: its
 * live blocks are those after that event. */
struct ahead {
	bool any;
	enum event_kind kind; /* EV_ALLOC, EV_FREE or EV_UNFREE */
	struct block block;
};

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
	struct base base; /* what was there when it was attached to */
	struct refusals refusals;
	struct recording recording;
	struct shm shm; /* file systems in memory with files that it maps */
	struct ahead ahead;
	struct spaces *spaces; /* spaces other than the host's: space.h; NULL: none */
};

/* Create the model of an empty process. 0 or -ENOMEM, err filled. */
int model_new(struct feed feed, struct model **out, struct err *err);
void model_free(struct model *m); /* accepts NULL */

int model_apply(struct model *m, const struct event *e, struct err *err);
/* Note that the feed read an event that is not applied yet; NULL: it is on a level again. */
void model_ahead(struct model *m, const struct event *e);
/* Call after the last event: closes what is open and frees what only further events need. */
void model_finish(struct model *m);
/* Make the model of an earlier moment: rewind the feed, and apply events until the first one later
 * than `ns`, or until `others` of them were no blocks of the host (struct run). The feed stays
 * where it stopped. 0; negative errno with err. */
int feed_until_model(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err);
/* The same without the host's blocks. */
int feed_until_spaces(struct feed feed, uint64_t others, struct model **out, struct err *err);
/* Check the invariants; abort when one is broken. For tests and debug builds. */
void model_check(const struct model *m);

/* True when bytes of that kind are part of blocks.bytes or maps.bytes. */
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

/* Return the statistics of a stack at that moment; *live_bytes and *live_count receive its live
 * blocks. For AT_PEAK only these two are of that moment. */
const struct stack_stats *model_stack_stats(const struct model *m, const struct stack_stats *s,
    enum moment at, uint64_t *live_bytes, uint64_t *live_count);

/* Return the variance of *live_bytes at that moment; 0 unless it is estimated from a sample. */
double model_stack_stats_variance(
    const struct model *m, const struct stack_stats *s, enum moment at);

/* For the parts. model_acquired(): call after an acquisition or release of `size` bytes;
 * `live_before` is the sum before it. model_touch(): call before the statistics of a stack
 * change. */
void model_acquired(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
void model_released(struct model *m, uint64_t time_ns, uint64_t size, uint64_t live_before);
int model_touch(struct model *m, struct stack_stats *s);

#endif
