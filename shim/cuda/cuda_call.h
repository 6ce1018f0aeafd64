/*
 * cuda_call.h - what the CUDA hooks share: the numbers of the entry points, the state of a call,
 * and the facts that note functions turn into records. A wrapper brackets the real call:
 *
 *	struct cuda_call c;
 *	cuda_enter(&c, CUDA_cuMemAlloc_v2, STACK_START());
 *	... cuda_give(&c, ...)				releases, before it
 *	result = the real one;
 *	cuda_leave(&c, result);
 *	... cuda_take(&c, ...)				acquisitions, after it
 *
 * One event for each allocation: only the outermost driver call of a thread is recorded. A runtime
 * wrapper leaves its name for it. Unlike malloc's hooks, nothing is open while the driver works:
 * what it allocates from the host is recorded as the host's.
 *
 * Any thread, any moment, locks of the caller's held. Nothing here allocates, waits, changes errno,
 * or calls the driver but for the questions of cuda_device.c.
 */
#ifndef SHIM_CUDA_CALL_H
#define SHIM_CUDA_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"
#include "stack/stack.h"
#include "trace/space.h"

enum cuda_id {
	CUDA_NOTHING,
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	CUDA_##symbol,
#include "cuda/cuda_api.def"
#undef CUDA_API
	CUDA_IDS
};

/* A wrapper of an entry point exists so many times, each with a real function of its own: the
 * driver may hand out several for one name, and a process may hold several runtimes. */
#define CUDA_COPIES 3

extern void *cuda_real[CUDA_IDS][CUDA_COPIES] __attribute__((visibility("hidden")));
extern void *const cuda_wrapper[CUDA_IDS][CUDA_COPIES] __attribute__((visibility("hidden")));

/* What a thread is doing. */
struct cuda_thread {
	uint32_t depth; /* driver calls that are open */
	uint16_t label; /* the runtime's call that is open, an enum cuda_id */
	bool label_failed; /* something inside it was recorded as failed */
	bool asking; /* our own question is on its way */
	uintptr_t frame, label_frame; /* of the outermost ones */
	struct stack_start label_start;
	uint64_t retry_ticks; /* of the last failure, or of the last release after it */
	uint32_t retry; /* its group, 0: none open */
};
extern __thread struct cuda_thread cuda_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct cuda_call {
	uint16_t id, label;
	bool outer; /* record it */
	struct stack_start start;
	gpu_result result;
	int before_device;
	uint64_t before; /* free memory of that device, 0: not asked */
};

/* A call left by longjmp leaves its depth behind; the next one, further out on the same stack,
 * begins afresh. */
static inline __attribute__((always_inline)) void cuda_enter(
    struct cuda_call *c, enum cuda_id id, struct stack_start start)
{
	struct cuda_thread *t = &cuda_self;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (__builtin_expect(t->depth && frame > t->frame, 0))
		t->depth = 0;
	c->id = (uint16_t)id;
	c->outer = t->depth++ == 0 && !t->asking;
	c->before = 0;
	if (!c->outer)
		return;
	t->frame = frame;
	if (t->label && frame > t->label_frame)
		t->label = 0;
	c->label = t->label;
	c->start = t->label ? t->label_start : start;
}

static inline __attribute__((always_inline)) void cuda_leave(struct cuda_call *c, gpu_result result)
{
	struct cuda_thread *t = &cuda_self;

	if (t->depth)
		t->depth--;
	c->result = result;
}

/* The same for a runtime's call. */
static inline __attribute__((always_inline)) void cuda_label_enter(
    struct cuda_call *c, enum cuda_id id, struct stack_start start)
{
	struct cuda_thread *t = &cuda_self;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (t->label && frame > t->label_frame)
		t->label = 0;
	c->id = (uint16_t)id;
	c->label = 0;
	c->outer = !t->label && !t->depth && !t->asking;
	if (!c->outer)
		return;
	c->start = start;
	t->label = (uint16_t)id;
	t->label_frame = frame;
	t->label_start = start;
	t->label_failed = false;
}

struct cuda_block {
	enum cuda_kind kind;
	unsigned flags; /* TRACE_SPACE_* */
	int device; /* -1: of the current context */
	uint64_t address, size, stream, object; /* object: pool or graph; 0: the context */
};

/* After the call: the block, or the failure. */
void cuda_took(const struct cuda_call *c, const struct cuda_block *b);
/* Before: a release. `kind` CUDA_KINDS: whichever of the driver's spaces holds the address. */
void cuda_give(const struct cuda_call *c, enum cuda_kind kind, unsigned flags, uint64_t address,
    uint64_t stream);
/* After: it did not happen. */
void cuda_given(const struct cuda_call *c, enum cuda_kind kind, unsigned flags, uint64_t address);

void cuda_mapped(
    const struct cuda_call *c, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle);
void cuda_unmap(const struct cuda_call *c, uint64_t address, uint64_t size);
void cuda_unmapped(const struct cuda_call *c, uint64_t address, uint64_t size);

/* After a call that succeeded: what it released in bulk; enum trace_clear. */
void cuda_cleared(
    const struct cuda_call *c, enum cuda_kind kind, int device, unsigned what, uint64_t object);

/* After a call whose effect only the driver knows; device -1: that of the current context. `pool`:
 * the object is one, and is asked. */
void cuda_called(const struct cuda_call *c, int device, uint64_t object, uint64_t value, bool pool);
/* After the program's own question. */
void cuda_probed(const struct cuda_call *c, uint64_t available, uint64_t total);
/* After the end of a graph, which may have had memory. */
void cuda_graph_gone(const struct cuda_call *c, uint64_t graph);

/* Before a call that may use memory by the way: asks what is free. */
void cuda_before(struct cuda_call *c);

/* After a context was made, or the one that a device has already was asked for. */
void cuda_made_context(const struct cuda_call *c, int device, uint64_t context);

/* After the launch of a graph. */
void cuda_launched(const struct cuda_call *c);

/* After a call that only matters when it failed for want of memory. */
void cuda_failed(const struct cuda_call *c, uint64_t size);

/* After a runtime's call. */
void cuda_label_leave(const struct cuda_call *c, gpu_result result, uint64_t size);

/* A framework's allocator gave up. Nobody is asked anything: its locks are held. */
void cuda_framework_failed(int device, uint64_t size, uint64_t reserved, uint64_t allocated,
    const struct stack_start *start);

/* In the child of a fork: the trace has no definitions yet. */
void cuda_forked(void);

/* The id of an entry point's name in the trace; that of PyTorch's is CUDA_NOTHING's. */
uint32_t cuda_name(enum cuda_id id);
uint32_t cuda_space(enum cuda_kind kind, int device);
const char *cuda_symbol(enum cuda_id id);

#endif
