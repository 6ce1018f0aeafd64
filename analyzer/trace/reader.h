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

#define THREADS_MAX 1000000u /* further ones count as the first: so many is damage */
#define TASKS_MAX 1000000u /* live at a time; further ones are not known */

/* What the next event of a thread may refer to. */
#define RELEASES_KEPT 4u
struct thread_state {
	struct block releases[RELEASES_KEPT]; /* the latest ones; serial 0: an unknown block */
	uint64_t release_ticks[RELEASES_KEPT];
	uint8_t release_at, release_count;
	bool reallocating; /* inside a realloc, which released `moving` */
	uint32_t task; /* as in struct event */
	struct block moving;
};

struct merge_head {
	uint64_t ticks;
	uint32_t order; /* among equal ticks: 0 a release, 1 others, more: deferred */
	uint32_t stream;
};

/* outside.c: merges the supervisor's samples of devices into the process's events. */
#define OUTSIDE_DEVICES 16u
struct outside {
	struct trace *supervisor; /* NULL: it took no samples */
	int64_t shift_ns; /* from its clock to the process's */
	bool started, ended;
	bool named; /* the driver lists the processes that use a device */
	bool held, own_held; /* `next`, `own` are filled */
	struct event next, own;
	struct map used; /* device << 32 | pid: bytes */
	struct {
		uint64_t all, own;
		bool own_known; /* this process was listed once */
	} sums[OUTSIDE_DEVICES];
};

/* locked.c: presents the driver's page-locked memory as mappings of the process. */
struct locked {
	bool any; /* the trace has the space of page-locked memory */
	struct ranges known; /* mappings of the address space, recorded or added here */
	struct range gone; /* removed by the last release */
	int64_t look_credit; /* mappings that ends of contexts may still look at */
	VEC(struct event) waiting; /* events to add, from `at` on */
	size_t at;
};

struct symbols;
struct follow;

struct trace {
	struct source source;
	struct trace_facts facts;
	struct damage damage;
	bool checks; /* everything has a checksum: TRACE_CHECKS_FROM */
	uint64_t definition_bytes; /* of sound records */
	struct trace_counts counts;
	const char **argv;
	uint32_t clock_kind;
	struct clock clock;
	struct defs defs;
	struct live live;

	/* Event chunks by thread and sequence, then shared ones, then the checkpoint. */
	VEC(struct chunk) chunks;
	uint32_t newest; /* the checkpoint that the header named when it was read */
	struct stream *streams;
	size_t stream_count;
	struct stream_context context;

	VEC(struct trace_thread) threads;
	VEC(struct thread_state) states; /* one for each thread */
	struct map thread_ids; /* serial: index plus 1 */

	/* merge.c */
	struct merge_head *heap;
	size_t heap_count;
	bool started;
	uint64_t horizon; /* ticks: events at or after it wait; UINT64_MAX but for follow.c */
	struct follow *follow; /* NULL: the file is read as it was when it was opened */
	uint64_t serial, last_ticks;
	uint64_t late_ticks, early_ticks; /* how far another thread's release may be off */
	struct map tasks; /* by key: the task that has it now */
	int64_t look_credit;
	bool over_live; /* the ALLOC at the head replaced a live block */
	struct block *released; /* recycled at the next event */
	struct block old; /* out->old of the latest event */
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
/* Convert the times of given-up rights; clock_finish() must have been called. */
struct trace_rights_facts rights_facts(const struct trace_rights *raw, struct clock *clock);

/* chunk.c: reads a chunk's header and limits it to what is sound. 0; 1: there is no chunk at this
 * offset, and *foreign says whether there is other data; negative errno. */
int trace_read_chunk(
    struct trace *t, uint64_t offset, struct chunk *chunk, bool *foreign, struct err *err);

/* Open one file and read its chunk headers and definitions. */
int trace_open(const char *path, struct trace **out, struct err *err);
/* The same for a small trace within a shared file. */
int trace_open_small(const char *path, const char *shared, const struct small_place *place,
    struct trace **out, struct err *err);
void trace_close(struct trace *t);
/* Order the chunks, and count the streams that they make. */
size_t trace_order_chunks(struct trace *t);
/* Give each stream its chunks, after they were ordered, and number their threads. `streams`: as
 * many zeroed ones as the chunks make. */
void trace_group_chunks(struct trace *t, struct stream *streams);
/* Return the index of a thread, which is new if the serial is; 0 without memory. */
uint32_t trace_thread_index(void *arg, uint32_t serial, uint32_t tid);

/* merge.c: go on after the streams were listed again. */
void merge_resume(struct trace *t);

/* follow.c, for reader.c: begin with the file's definitions; forget all. */
int follow_begin(struct trace *t, const struct chunk *definitions, size_t count, uint64_t ticks_hz,
    struct err *err);
void follow_end(struct trace *t);
/* Read the number of the checkpoint that the header names now. 0 or negative errno. */
int trace_newest_checkpoint(struct trace *t, uint32_t *number, struct err *err);
/* Copy the counters into the facts, and the damage once it is known whether the process runs. */
void trace_publish(struct trace *t);

/* symbols.c */
void trace_symbols_fini(struct trace *t);
/* True: trace_fold_stacks() was called. */
bool trace_has_folded(const struct trace *t);

/* outside.c: the caller owns `supervisor`, which must outlive the reading. */
void outside_set(struct trace *t, struct trace *supervisor);
void outside_rewind(struct outside *o);

/* locked.c: starts again; looks at an event and may change it (0 or -ENOMEM); gives an event to
 * insert before the next one. */
void locked_rewind(struct trace *t);
int locked_see(struct trace *t, struct event *e);
bool locked_next(struct trace *t, struct event *out);
void locked_fini(struct trace *t);

/* ends.c: records how another process saw this image end; tells whether it still runs. */
void trace_see_child_end(struct trace *t, uint32_t how, uint32_t code);
bool trace_is_running(const struct trace *t);

#endif
