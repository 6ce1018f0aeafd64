/*
 * cuda_call.h - the state of a CUDA call, the ids of entry points, and the functions that record a
 * call's effects. A wrapper brackets the real call:
 *
 *	struct cuda_call c;
 *	cuda_begin(&c, CUDA_cuMemAlloc_v2, STACK_START());
 *	... cuda_free_begin(&c, ...)				releases, before it
 *	result = the real one;
 *	cuda_end(&c, result);
 *	... cuda_allocated(&c, ...)				acquisitions, after it
 *
 * Only the outermost driver call of a thread is recorded, so that an allocation is one event. A
 * runtime wrapper leaves its name for that call. Unlike malloc's hooks, no note is open while the
 * driver works: its allocations on the host are recorded as the host's.
 *
 * Any thread, at any time, also while the caller holds locks. Nothing here allocates, waits,
 * changes errno, or calls the driver except for the queries of cuda_device.c.
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

/* Copies of each wrapper, each with a real function of its own: the driver may have several
 * functions for one name, and a process several runtimes. */
#define CUDA_COPIES 3

extern void *cuda_real[CUDA_IDS][CUDA_COPIES] __attribute__((visibility("hidden")));
extern void *const cuda_wrapper[CUDA_IDS][CUDA_COPIES] __attribute__((visibility("hidden")));

/* The open calls of a thread. */
struct cuda_thread {
	uint32_t depth; /* open driver calls */
	uint16_t label; /* the open runtime call, an enum cuda_id; 0: none */
	bool label_failed; /* a failure inside it was recorded */
	bool querying; /* our own query is in progress */
	uintptr_t frame, label_frame; /* of the outermost calls */
	struct stack_start label_start;
	uint64_t retry_ticks; /* of the last failure, or of the last release after it */
	uint32_t retry; /* the open group of retries; 0: none */
};
extern __thread struct cuda_thread cuda_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct cuda_call {
	uint16_t id, label;
	bool outer; /* the outermost call, which is recorded */
	struct stack_start start;
	gpu_result result;
	int before_device;
	uint64_t before; /* free memory of that device before the call; 0: not queried */
};

/* Begins a driver call. A call left by longjmp leaves its depth behind; the next one, further out
 * on the same stack, resets it. */
static inline __attribute__((always_inline)) void cuda_begin(
    struct cuda_call *c, enum cuda_id id, struct stack_start start)
{
	struct cuda_thread *t = &cuda_self;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (__builtin_expect(t->depth && frame > t->frame, 0))
		t->depth = 0;
	c->id = (uint16_t)id;
	c->outer = t->depth++ == 0 && !t->querying;
	c->before = 0;
	if (!c->outer)
		return;
	t->frame = frame;
	if (t->label && frame > t->label_frame)
		t->label = 0;
	c->label = t->label;
	c->start = t->label ? t->label_start : start;
}

static inline __attribute__((always_inline)) void cuda_end(struct cuda_call *c, gpu_result result)
{
	struct cuda_thread *t = &cuda_self;

	if (t->depth)
		t->depth--;
	c->result = result;
}

/* Begins a runtime call. */
static inline __attribute__((always_inline)) void cuda_label_begin(
    struct cuda_call *c, enum cuda_id id, struct stack_start start)
{
	struct cuda_thread *t = &cuda_self;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (t->label && frame > t->label_frame)
		t->label = 0;
	c->id = (uint16_t)id;
	c->label = 0;
	c->outer = !t->label && !t->depth && !t->querying;
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

/* Records the block, or the failure. Call after the real call. */
void cuda_allocated(const struct cuda_call *c, const struct cuda_block *b);
/* Records a release. Call before the real call. `kind` CUDA_KINDS: any of the driver's spaces. */
void cuda_free_begin(const struct cuda_call *c, enum cuda_kind kind, unsigned flags,
    uint64_t address, uint64_t stream);
/* Takes the release back if the call failed. Call after it. */
void cuda_free_end(
    const struct cuda_call *c, enum cuda_kind kind, unsigned flags, uint64_t address);

void cuda_mapped(
    const struct cuda_call *c, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle);
void cuda_unmap_begin(const struct cuda_call *c, uint64_t address, uint64_t size);
void cuda_unmap_end(const struct cuda_call *c, uint64_t address, uint64_t size);

/* Records a release in bulk (`what`: enum trace_clear) if the call succeeded. */
void cuda_cleared(
    const struct cuda_call *c, enum cuda_kind kind, int device, unsigned what, uint64_t object);

/* Records a call whose effect only the driver knows. device -1: that of the current context. A pool
 * is queried for its size. */
enum cuda_object { CUDA_OBJECT_OTHER, CUDA_OBJECT_POOL };
void cuda_called(
    const struct cuda_call *c, int device, uint64_t object, uint64_t value, enum cuda_object type);
/* Records the answer to the program's own query of free memory. */
void cuda_probed(const struct cuda_call *c, uint64_t available, uint64_t total);
/* Records the end of a graph that may have had memory. */
void cuda_graph_destroyed(const struct cuda_call *c, uint64_t graph);

/* Queries free memory before a call that may use memory as a side effect. */
void cuda_sample_before(struct cuda_call *c);

/* Records that a context was created, or a device's existing one was returned. */
void cuda_context_created(const struct cuda_call *c, int device, uint64_t context);

/* Records the launch of a graph. */
void cuda_launched(const struct cuda_call *c);
uint64_t cuda_launches(void); /* graphs launched so far */

/* Records a failure for lack of memory, and no other result. */
void cuda_failed(const struct cuda_call *c, uint64_t size);

/* Ends a runtime call. */
void cuda_label_end(const struct cuda_call *c, gpu_result result, uint64_t size);

/* Records that a framework's allocator gave up. Queries nothing, as the allocator's locks are held.
 */
void cuda_framework_failed(int device, uint64_t size, uint64_t reserved, uint64_t allocated,
    const struct stack_start *start);

/* Forgets definitions, which a new trace does not have: at an attach, and in a fork's child. */
void cuda_attach(void);
void cuda_forked(void);

/* Returns the id of an entry point's name in the trace; CUDA_NOTHING stands for PyTorch. */
uint32_t cuda_name(enum cuda_id id);
uint32_t cuda_space(enum cuda_kind kind, int device);

#endif
