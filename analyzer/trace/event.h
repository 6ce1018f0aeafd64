/*
 * event.h - one recorded event as the stages after trace/ see it: decoded, in time order over all
 * threads, and with the block that a release frees. Wire structures stop here.
 */
#ifndef ANALYZER_TRACE_EVENT_H
#define ANALYZER_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/trace.h" /* enum trace_api, trace_backing, trace_level, TRACE_MAP_* */

enum event_kind {
	EV_ALLOC, /* .block was acquired */
	EV_FREE, /* .block was released; NULL: its acquisition was never recorded */
	EV_UNFREE, /* that release failed; .block is live again */
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
	/* In a space other than the host's. A release with .space 0 is in the space of the address.
	 */
	EV_SPACE_ALLOC,
	EV_SPACE_FREE,
	EV_SPACE_UNFREE,
	EV_SPACE_MAP, /* .u.space.handle becomes visible at .address */
	EV_SPACE_UNMAP,
	EV_SPACE_UNUNMAP,
	EV_SPACE_CLEAR, /* .u.space.what: all blocks of a context, device, pool or graph are gone */
	EV_SPACE_CALL, /* a driver call whose effect only its levels show */
	EV_OUTSIDE, /* not by the process: .u.device as its supervisor saw it */
	EV_MARK, /* .u.mark: the program reports a request or a phase */
	EV_TASK_END, /* .task has ended; it may have run on any thread */
	EV_WENT, /* .u.went: blocks of one stack that were acquired and released within a period */
	EV_CHECKPOINT, /* .u.period: the end of a period that a checkpoint replaced */
};

/* EV_ALLOC, EV_FREE: a half of a realloc. On the ALLOC .old is the old block; NULL: not known. */
#define EVENT_REALLOC 1u
/* EV_FREE of an address that is not live; EV_ALLOC of one that still is (a FREE with this flag
 * removes the old block first). */
#define EVENT_REPAIRED 2u

/*
 * A live block. Owned by the trace; a released one is valid until the next trace_next(). In a
 * sample a block also stands for others of its size: sum block_bytes() and block_count(), and use
 * `size` only for the size of this one.
 */
struct block {
	uint64_t address, size;
	uint64_t birth_ns; /* since the trace's start */
	uint64_t serial; /* of the acquisition, from 1 in time order */
	uint32_t stack;
	uint32_t thread;
	uint32_t slot; /* private to the reader */
	uint32_t task; /* that acquired it, as event.task */
	float mean; /* the sample takes a block for every so many bytes; 0: not sampled */
} __attribute__((packed, aligned(4))); /* there may be millions */

/* 1 / p, where p = 1 - exp(-size / mean) is the chance of being sampled. */
double block_weight(const struct block *b);
/* Unbiased estimates of the bytes and blocks that a sampled block stands for, and the variance of
 * the bytes. A block that is not sampled gives its size, 1 and 0. The same block always gives the
 * same values. */
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
	 * The task that the thread works for, in programs with several tasks on a thread (asyncio,
	 * greenlets): 0 not known, else a number from 1 in order of appearance, never reused. A
	 * task may move between threads, and callbacks of one request may be separate tasks. The
	 * value is that of the thread's last event with a stack, so a release may belong to the
	 * next task already.
	 */
	uint32_t task;
	uint64_t time_ns; /* since the trace's start */
	uint64_t address, size;
	const struct block *block; /* EV_ALLOC, EV_FREE, EV_UNFREE */
	const struct block *old; /* EV_ALLOC with EVENT_REALLOC: a copy of the old block */
	union {
		struct {
			uint32_t prot, flags; /* TRACE_MAP_*, TRACE_UNMAP_* */
			uint32_t backing; /* enum trace_backing */
			const char *name; /* of the file; NULL: none */
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
			/* Of a device or framework: names of the driver's and the runtime's
			 * call, or NULL; its group of attempts, 0: none; TRACE_FAILED_* */
			const char *api, *label;
			uint32_t retry, flags;
		} failed; /* .size: the requested bytes */
		struct {
			const char *api, *label; /* names, NULL: none */
			uint64_t stream, context;
			uint64_t handle; /* of a MAP; the object of a CLEAR or a CALL */
			uint64_t offset; /* of a MAP; the value of a CALL */
			uint32_t flags; /* TRACE_SPACE_* */
			uint32_t retry; /* the group of failed attempts that it ended; 0: none */
			uint32_t what; /* enum trace_clear */
			int32_t result; /* EV_SPACE_CALL */
		} space; /* EV_SPACE_* */
		struct {
			uint32_t number; /* as in cuda:N */
			bool own_known; /* the driver listed this process among its users */
			bool named; /* the driver lists the processes that use it */
			uint64_t free, total;
			uint64_t own, others; /* used by this process, and by all others listed */
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
			uint64_t mean, exact_from; /* MODE, RATE, THINNED; 0: not recorded */
		} notice;
		/* EV_WENT. .size and .time_ns are the largest block's, the rest sums. */
		struct {
			uint64_t count, bytes; /* estimates */
			uint64_t life_ns, longest_ns; /* sum of lifetimes, and the longest */
		} went;
		/* EV_CHECKPOINT. Only blocks that were live at the period's end, and some other
		 * events, are in the trace. Bytes of blocks are estimates. */
		struct {
			uint64_t begin_ns;
			uint64_t trace_bytes; /* of the chunks that were replaced */
			uint64_t acquired, acquired_bytes, released, released_bytes;
			uint64_t most_bytes; /* the peak of live bytes */
			uint64_t left_out; /* events without room in the checkpoint */
		} period;
		/*
		 * EV_MARK. From a request's BEGIN or ENTER on, the thread works for it; if .task is
		 * not 0, that task does, on any thread. That ends with LEAVE, or with END from any
		 * thread. Requests nest. Marks come from the program: they may be missing or
		 * contradict each other.
		 */
		struct {
			uint32_t phase; /* enum trace_mark */
			uint32_t what; /* enum trace_mark_what */
			uint64_t id; /* unique among open ones of its kind; 0: a point, or PUSHED,
					which END closes from the innermost outwards */
			const char *name; /* NULL: none; often only at BEGIN */
			const char *domain; /* of NVTX; NULL: the default one */
			uint64_t tokens; /* LENGTH: of the input so far */
		} mark;
	} u;
	const struct event_level *levels; /* EV_LEVEL, EV_FAILED, EV_SPACE_CALL */
	uint32_t level_count;
};

/* True: a block or a mapping was acquired, in any space. */
static inline bool event_acquires(const struct event *e)
{
	return e->kind == EV_ALLOC || e->kind == EV_MAP || e->kind == EV_SPACE_ALLOC;
}

/* Get a level of the event. False, and *out untouched: the event does not have it. */
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

/* A level of the event; 0: the event does not have it. */
static inline uint64_t event_level_value(const struct event *e, uint32_t key)
{
	uint64_t value = 0;

	event_level(e, key, &value);
	return value;
}

/* One key for the worker: the task, or the thread if it has none. */
static inline uint64_t event_worker(uint32_t thread, uint32_t task)
{
	return task ? 1ull << 32 | task : thread;
}

#endif
