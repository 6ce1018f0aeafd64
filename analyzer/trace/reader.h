/*
 * reader.h - what a struct trace is made of; for the files of trace/ only.
 */
#ifndef ANALYZER_TRACE_READER_H
#define ANALYZER_TRACE_READER_H

#include "trace/checkpoint.h"
#include "trace/clock.h"
#include "trace/definitions/definitions.h"
#include "trace/directory/source.h"
#include "trace/integrity/damage.h"
#include "trace/live.h"
#include "trace/stream.h"
#include "trace/trace.h"
#include "util/ranges.h"
#include "util/vec.h"

#define THREADS_MAX 1000000u /* more cannot be meant: the rest are counted as the first */
#define TASKS_MAX 1000000u /* at one moment: the rest are not known */

/* What a thread's next event may refer to. */
#define RELEASES_KEPT 4u
struct thread_state {
	struct block releases[RELEASES_KEPT]; /* the last ones, serial 0: not known */
	uint64_t release_ticks[RELEASES_KEPT];
	uint8_t release_at, release_count;
	bool reallocating; /* `moving` was released for a realloc that has not returned yet */
	uint32_t task; /* as in struct event */
	struct block moving;
};

struct merge_head {
	uint64_t ticks;
	uint32_t order; /* at the same tick: 0 a release, 1 others, more: waits for those */
	uint32_t stream;
};

/* outside.c: the supervisor's samples of devices, on their way into the process's events. */
#define OUTSIDE_DEVICES 16u
struct outside {
	struct trace *supervisor; /* NULL: it saw none */
	int64_t shift_ns; /* from its clock to the process's */
	bool started, ended;
	bool named; /* it could see who uses the devices */
	bool held, own_held; /* `next`, `own` wait */
	struct event next, own;
	struct map used; /* device << 32 | pid: bytes */
	struct {
		uint64_t all, own;
		bool own_known; /* the process was among them once */
	} sums[OUTSIDE_DEVICES];
};

/* locked.c: page-locked memory of the driver's, as mappings of the process. */
struct locked {
	bool any; /* there may be some */
	struct ranges known; /* what lies in the address space, seen or told */
	struct range gone; /* what the last release took */
	int64_t look_credit; /* how many of them the ends of contexts may still look at */
	VEC(struct event) waiting; /* to be told, from `at` on */
	size_t at;
};

struct symbols;

struct trace {
	struct source source;
	struct trace_facts facts;
	struct damage damage;
	bool checks; /* all that can be damaged has one: from 2.7 on */
	uint64_t definition_bytes; /* of records */
	struct trace_counts counts;
	const char **argv;
	uint32_t clock_kind;
	struct clock clock;
	struct defs defs;
	struct live live;

	/* Of events: by thread and sequence, then the shared ones, then the checkpoint. */
	VEC(struct chunk) chunks;
	uint32_t newest; /* number of the checkpoint that was in the header at last */
	struct stream *streams;
	size_t stream_count;
	struct stream_context context;

	VEC(struct trace_thread) threads;
	struct thread_state *states; /* as many */
	size_t state_count;
	struct map thread_ids; /* serial: index plus 1 */

	/* merge.c */
	struct merge_head *heap;
	size_t heap_count;
	bool started;
	uint64_t serial, last_ticks;
	uint64_t late_ticks, early_ticks; /* how much a release may be, on another thread's clock */
	struct map tasks; /* key: the task that has it now */
	int64_t look_credit;
	bool over_live; /* the ALLOC at the head was found to be over a live block */
	struct block *released; /* to be recycled at the next event */
	struct block old; /* what out->old points at */
	struct extended *extended; /* of the latest event, whose levels point into it */

	struct symbols *symbols;
	struct outside outside;
	struct locked locked;
};

/* header.c */
struct header_tail {
	uint64_t ticks_hz, start_ticks, start_mono_ns;
	uint64_t end_mono_ns, flags, chunk_bytes;
	struct checkpoint_slots slots;
	struct trace_rights rights;
};
int trace_read_header(struct trace *t, struct header_tail *tail, struct err *err);

/* chunk.c: a chunk's header. 0; 1: there is none at this offset, *foreign: but something else is;
 * negative errno. It is sound, or cut to what is. */
int trace_read_chunk(
    struct trace *t, uint64_t offset, struct chunk *chunk, bool *foreign, struct err *err);

/* Opens one file and reads its chunk headers and definitions. */
int trace_open(const char *path, struct trace **out, struct err *err);
/* The same of a small trace in a file that it shares with others. */
int trace_open_small(const char *path, const char *shared, const struct small_place *place,
    struct trace **out, struct err *err);
void trace_close(struct trace *t);
/* The number of the checkpoint that the header has now. 0 or negative errno. */
int trace_newest_checkpoint(struct trace *t, uint32_t *number, struct err *err);
/* What was counted so far, into the facts; once it is known whether it runs, what is missing. */
void trace_publish(struct trace *t);

/* symbols.c */
void trace_symbols_fini(struct trace *t);
/* Whether trace_fold_stacks() was asked. */
bool trace_has_folded(const struct trace *t);

/* outside.c: `supervisor` stays the caller's, and outlives the trace's reading. */
void outside_set(struct trace *t, struct trace *supervisor);
void outside_rewind(struct outside *o);

/* locked.c: nothing was read yet; an event is seen, and may be changed, 0 or -ENOMEM; what there is
 * to tell before the next one. */
void locked_rewind(struct trace *t);
int locked_see(struct trace *t, struct event *e);
bool locked_next(struct trace *t, struct event *out);
void locked_fini(struct trace *t);

/* ends.c: how the image ended, from what others saw; is it still running? */
void trace_see_child_end(struct trace *t, uint32_t how, uint32_t code);
bool trace_is_running(const struct trace *t);

#endif
