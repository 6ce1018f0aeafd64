/*
 * event.h - one recorded call, as the stages after trace/ see it: decoded, in time order over all
 * threads, and with the block that a release gives back. Wire structures stop here.
 */
#ifndef ANALYZER_TRACE_EVENT_H
#define ANALYZER_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/trace.h" /* enum trace_api, trace_backing, trace_level, TRACE_MAP_* */

enum event_kind {
	EV_ALLOC, /* block acquired; .block is its record */
	EV_FREE, /* block released; .block as it was, NULL when it was never seen */
	EV_UNFREE, /* that release did not happen; .block lives again */
	EV_MAP,
	EV_UNMAP,
	EV_UNUNMAP,
	EV_ADVISE,
	EV_BRK,
	EV_FAILED,
	EV_LEVEL,
	EV_THREAD_EXIT,
	EV_EXIT,
	EV_SIGNAL,
	EV_FORK,
	EV_NOTICE,
	EV_CHILD_END,
	/* Of spaces beside the host's; .space 0 in a release: of the one that holds the address. */
	EV_SPACE_ALLOC,
	EV_SPACE_FREE,
	EV_SPACE_UNFREE,
	EV_SPACE_MAP, /* .u.space.handle becomes visible at .address */
	EV_SPACE_UNMAP,
	EV_SPACE_UNUNMAP,
	EV_SPACE_CLEAR, /* .u.space.what: all of a context, device, pool or graph is gone */
	EV_SPACE_CALL, /* one whose effect only its levels tell */
	EV_OUTSIDE, /* no event of the process: .u.device as its supervisor saw it */
	EV_MARK, /* .u.mark: what the program says of its requests and phases */
	EV_TASK_END, /* .task, which may have been any thread's, does nothing any more */
	EV_WENT, /* of such a period: blocks of a stack that came and went: .u.went */
	EV_CHECKPOINT, /* a period ends of which only what still mattered is known: .u.period */
};

/* EV_ALLOC, EV_FREE: part of a realloc. On the ALLOC .old is the block before (NULL: none known).
 */
#define EVENT_REALLOC 1u
/* EV_FREE of an address that was not live; EV_ALLOC over one that still was (the old one is
 * dropped first, as a FREE with this flag). */
#define EVENT_REPAIRED 2u

/*
 * A live block. Owned by the trace; valid until the next trace_next() for released ones. Of a
 * sample it is one that stands for others of its size, too: what is summed is block_bytes() and
 * block_count(), while `size` says how large it is itself.
 */
struct block {
	uint64_t address, size;
	uint64_t birth_ns; /* since the trace's start */
	uint64_t serial; /* counts acquisitions, from 1: the order of birth */
	uint32_t stack;
	uint32_t thread;
	uint32_t slot; /* the reader's own */
	uint32_t task; /* that acquired it: as event.task */
	float mean; /* the sample has one for so many bytes; 0: it is in none, and stands for itself
		     */
} __attribute__((packed, aligned(4))); /* there may be very many */

/* 1 / p, where p is the chance that a sample has it: 1 - exp(-size / mean). */
double block_weight(const struct block *b);
/* Estimates that are right on average, and the variance of the first; of a block that stands for
 * itself its size, 1 and 0. Always the same of the same block. */
uint64_t block_bytes_sampled(const struct block *b);
uint64_t block_count_sampled(const struct block *b);
double block_variance(const struct block *b);

static inline uint64_t block_bytes(const struct block *b)
{
	return __builtin_expect(b->mean > 0, 0) ? block_bytes_sampled(b) : b->size;
}

static inline uint64_t block_count(const struct block *b)
{
	return __builtin_expect(b->mean > 0, 0) ? block_count_sampled(b) : 1;
}

/* CUDA_ERROR_OUT_OF_MEMORY and cudaErrorMemoryAllocation: u.failed.result of TRACE_FAIL_DEVICE. */
#define EVENT_DEVICE_NO_MEMORY 2

struct event_level {
	uint32_t key; /* enum trace_level */
	uint64_t value;
};

struct event {
	enum event_kind kind;
	uint8_t api; /* enum trace_api */
	uint32_t flags;
	uint32_t thread; /* serial in its process */
	uint32_t stack; /* canonical stack id, 0: none */
	uint32_t space; /* TRACE_SPACE_HOST, or an id */
	/*
	 * What the thread was working at, where the program has several things in hand on one
	 * thread (asyncio's tasks, greenlets): 0 not known, else counted from 1 in the order in
	 * which they were first seen, never used twice. One task may go on in several threads, one
	 * after another; callbacks of the same request may be other tasks. It is as of the thread's
	 * last event with a stack: a release may already be the next one's.
	 */
	uint32_t task;
	uint64_t time_ns; /* since the trace's start */
	uint64_t address, size;
	const struct block *block; /* EV_ALLOC, EV_FREE, EV_UNFREE */
	const struct block *old; /* EV_ALLOC with EVENT_REALLOC: a copy of what it was before */
	union {
		struct {
			uint32_t prot, flags; /* TRACE_MAP_*, TRACE_UNMAP_* */
			uint32_t backing; /* enum trace_backing */
			const char *name; /* of the file, NULL: none */
			uint64_t offset;
		} map; /* EV_MAP, EV_UNMAP */
		struct {
			uint32_t advice;
		} advise;
		struct {
			uint64_t old_end, new_end;
		} brk;
		struct {
			uint32_t why; /* enum trace_fail */
			int32_t result; /* errno */
			uint64_t alignment, old_address;
			/* why 2 and 3: names of the call, or NULL; the group of attempts it
			 * belongs to (0: none); TRACE_FAILED_* */
			const char *api, *label;
			uint32_t retry, flags;
		} failed; /* .size: what was asked for */
		struct {
			const char *api, *label; /* names, NULL: none */
			uint64_t stream, context;
			uint64_t handle; /* EV_SPACE_MAP; the object of a CLEAR or a CALL */
			uint64_t offset; /* EV_SPACE_MAP; the value of a CALL */
			uint32_t flags; /* TRACE_SPACE_* */
			uint32_t retry; /* the group of failed attempts that this one ended */
			uint32_t what; /* enum trace_clear */
			int32_t result; /* EV_SPACE_CALL */
		} space; /* EV_SPACE_* */
		struct {
			uint32_t number; /* as in cuda:N */
			bool own_known; /* the process was named among those who use it */
			bool named; /* those who use it were */
			uint64_t free, total;
			uint64_t own, others; /* used by it, and by all others that were named */
		} device; /* EV_OUTSIDE */
		struct {
			uint32_t pid; /* EV_CHILD_END, EV_FORK, EV_LEVEL in a supervisor's file */
			uint32_t how, code, flags;
		} child;
		struct {
			uint32_t how, code; /* EV_EXIT; EV_SIGNAL: signal in code */
		} end;
		struct {
			uint32_t what;
			uint64_t value;
			uint64_t mean, exact_from; /* MODE, RATE, THINNED; 0: not told */
		} notice;
		/* EV_WENT. .size and .time_ns are those of the largest, the rest of all. */
		struct {
			uint64_t count, bytes; /* estimates */
			uint64_t life_ns, longest_ns; /* of all, and of one */
		} went;
		/* EV_CHECKPOINT. Of what follows only what lived at its end, and some of the rest,
		 * are events of their own; bytes of blocks are estimates. */
		struct {
			uint64_t begin_ns;
			uint64_t trace_bytes; /* that were replaced */
			uint64_t acquired, acquired_bytes, released, released_bytes;
			uint64_t most_bytes; /* that lived at a time */
			uint64_t left_out; /* events that there was no room for */
		} period;
		/*
		 * EV_MARK. A request's BEGIN and ENTER: from here on the thread works for it, or,
		 * where .task is not 0, that task, in whatever thread; until LEAVE there, or the
		 * END, which may come from anywhere. A second one nests in the first. Marks may be
		 * missing or contradict each other: they are the program's.
		 */
		struct {
			uint32_t phase; /* enum trace_mark */
			uint32_t what; /* enum trace_mark_what */
			uint64_t id; /* of a kind, unique while it lasts; 0: a point, or PUSHED,
					whose END is of the thread's innermost */
			const char *name; /* NULL: none; often only at BEGIN */
			const char *domain; /* of NVTX, NULL: the default one */
			uint64_t tokens; /* LENGTH: of its input, by now */
		} mark;
	} u;
	const struct event_level *levels; /* EV_LEVEL, EV_FAILED, EV_SPACE_CALL */
	uint32_t level_count;
};

/* A block or a mapping came to be, in whatever space. */
static inline bool event_acquires(const struct event *e)
{
	return e->kind == EV_ALLOC || e->kind == EV_MAP || e->kind == EV_SPACE_ALLOC;
}

/* False, and *out untouched, when the event does not tell that level. */
static inline bool event_level(const struct event *e, uint32_t key, uint64_t *out)
{
	for (uint32_t i = 0; i < e->level_count; i++) {
		if (e->levels[i].key == key) {
			*out = e->levels[i].value;
			return true;
		}
	}
	return false;
}

/* The same, 0 where it does not tell. */
static inline uint64_t event_level_value(const struct event *e, uint32_t key)
{
	uint64_t value = 0;

	event_level(e, key, &value);
	return value;
}

/* Who works, as one key: a task, or where it has none, the thread. */
static inline uint64_t event_worker(uint32_t thread, uint32_t task)
{
	return task ? 1ull << 32 | task : thread;
}

#endif
