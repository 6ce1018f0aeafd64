/*
 * hook_malloc.c - the malloc family. A wrapper only notes and forwards; the caller gets the real
 * function's result and errno.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bootstrap_arena.h"
#include "checkpoint/live_blocks.h"
#include "hooks/hook_visitors.h"
#include "loaded/got.h"
#include "loaded/symbols.h"
#include "sampling/sampler.h"
#include "shim.h"

/* Wrappers have names of their own, so that we can take their addresses whatever library precedes
 * us in the look-up order; EXPORT() below adds the well-known names. */
#define WRAPPER static __attribute__((noinline, used))

#define ENTER() note_enter(__builtin_return_address(0))

static __attribute__((noinline, cold)) void record_failure(struct note n, enum trace_api api,
    size_t size, size_t align, const void *old, int error, const struct stack_start *start)
{
	int saved = errno;

	note_failed(n,
	    &(struct note_failure){.api = api,
		.error = error,
		.size = size,
		.alignment = align,
		.old = (uintptr_t)old},
	    start);
	errno = saved;
}

/* Notes the block or the failure. */
#define NOTE_RESULT(api, p, size, align)                                                           \
	do {                                                                                       \
		struct stack_start start = STACK_START();                                          \
		if (SHIM_LIKELY(p))                                                                \
			note_alloc(n, api, p, size, &start);                                       \
		else                                                                               \
			record_failure(n, api, size, align, NULL, errno, &start);                  \
	} while (0)

/* The same for note_of_idle(t). */
#define NOTE_RESULT_IDLE(api, p, size)                                                             \
	do {                                                                                       \
		struct stack_start start = STACK_START();                                          \
		if (SHIM_LIKELY(p))                                                                \
			note_alloc_idle(t, api, p, size, &start);                                  \
		else                                                                               \
			record_failure(note_of_idle(t), api, size, 0, NULL, errno, &start);        \
	} while (0)

/*
 * malloc, calloc, realloc and free come in parts. The wrapper forwards what the sampler skips; the
 * rest is a tail call away, which keeps the wrapper's frame and return address and spares the
 * wrapper from saving registers. One more tail call away is the case of a call inside another one,
 * or of a thread's first.
 */
#define SLOW static __attribute__((noinline))

/* An allocation that the sampler skipped has failed. */
SLOW __attribute__((cold)) void *record_refusal(
    enum trace_api api, size_t size, const void *old, int error)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();

	record_failure(n, api, size, 0, old, error, &start);
	note_leave(n);
	errno = error;
	return NULL;
}

SLOW void *malloc_nested(size_t size)
{
	struct note n = ENTER();
	void *p = real.malloc(size);

	NOTE_RESULT(TRACE_API_MALLOC, p, size, 0);
	note_leave(n);
	return p;
}

SLOW void *malloc_recorded(size_t size)
{
	struct thread *t = note_enter_idle();
	void *p;

	if (SHIM_UNLIKELY(!t))
		return malloc_nested(size);
	p = real.malloc(size);
	NOTE_RESULT_IDLE(TRACE_API_MALLOC, p, size);
	note_leave(note_of_idle(t));
	return p;
}

WRAPPER void *hook_malloc(size_t size)
{
	void *p;

	if (!sampler_passes(size))
		return malloc_recorded(size);
	p = real.malloc(size);
	return SHIM_LIKELY(p) ? p : record_refusal(TRACE_API_MALLOC, size, NULL, errno);
}

SLOW void *calloc_nested(size_t count, size_t size, size_t bytes)
{
	struct note n = ENTER();
	void *p = real.calloc(count, size);

	NOTE_RESULT(TRACE_API_CALLOC, p, bytes, 0);
	note_leave(n);
	return p;
}

SLOW void *calloc_recorded(size_t count, size_t size, size_t bytes)
{
	struct thread *t = note_enter_idle();
	void *p;

	if (SHIM_UNLIKELY(!t))
		return calloc_nested(count, size, bytes);
	p = real.calloc(count, size);
	NOTE_RESULT_IDLE(TRACE_API_CALLOC, p, bytes);
	note_leave(note_of_idle(t));
	return p;
}

WRAPPER void *hook_calloc(size_t count, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	if (!sampler_passes(bytes))
		return calloc_recorded(count, size, bytes);
	p = real.calloc(count, size);
	return SHIM_LIKELY(p) ? p : record_refusal(TRACE_API_CALLOC, bytes, NULL, errno);
}

/* Moves a block of the bootstrap arena to the allocator. */
static void *realloc_bootstrap(void *old, size_t size)
{
	void *p = hook_malloc(size);

	if (p)
		memcpy(p, old, size < bootstrap_size(old) ? size : bootstrap_size(old));
	return p;
}

static inline __attribute__((always_inline)) void *realloc_with_notes(
    struct note n, void *old, size_t size, const struct stack_start *start)
{
	void *p;

	/* TRACE_FREE_REALLOC announces the new block, which sampling may skip */
	if (old)
		note_free(n, old, sampler_is_exact(size) ? TRACE_FREE_REALLOC : 0);
	p = real.realloc(old, size);
	if (SHIM_LIKELY(p)) {
		note_alloc(n, TRACE_API_REALLOC, p, size, start);
	} else if (!old || size) { /* else: size 0 released it */
		int error = errno;

		if (old)
			note_unfree(n, old);
		record_failure(n, TRACE_API_REALLOC, size, 0, old, error, start);
	}
	return p;
}

SLOW void *realloc_recorded(void *old, size_t size)
{
	struct stack_start start = STACK_START();
	struct note n;
	void *p;

	if (SHIM_UNLIKELY(bootstrap_owns(old)))
		return realloc_bootstrap(old, size);
	n = ENTER();
	p = realloc_with_notes(n, old, size, &start);
	note_leave(n);
	return p;
}

/* Each call draws anew, so that every live block was sampled by its present size. */
WRAPPER void *hook_realloc(void *old, size_t size)
{
	void *p;

	if (!size || !live_blocks_ignores(old) || SHIM_UNLIKELY(bootstrap_owns(old)) ||
	    !sampler_passes(size))
		return realloc_recorded(old, size);
	p = real.realloc(old, size);
	return SHIM_LIKELY(p) ? p : record_refusal(TRACE_API_REALLOC, size, old, errno);
}

/* Calls realloc itself: libc's reallocarray would call our realloc. */
WRAPPER void *hook_reallocarray(void *old, size_t count, size_t size)
{
	struct stack_start start = STACK_START();
	struct note n;
	size_t bytes;
	void *p = NULL;

	if (SHIM_UNLIKELY(bootstrap_owns(old)))
		return __builtin_mul_overflow(count, size, &bytes) ? (errno = ENOMEM, NULL)
								   : realloc_bootstrap(old, bytes);
	n = ENTER();
	if (SHIM_UNLIKELY(__builtin_mul_overflow(count, size, &bytes))) {
		errno = ENOMEM;
		record_failure(n, TRACE_API_REALLOC, SIZE_MAX, 0, old, ENOMEM, &start);
	} else {
		p = realloc_with_notes(n, old, bytes, &start);
	}
	note_leave(n);
	return p;
}

SLOW void free_nested(void *p)
{
	struct note n = ENTER();

	note_free(n, p, 0);
	real.free(p);
	note_leave(n);
}

SLOW void free_recorded(void *p)
{
	struct thread *t;

	if (!p || SHIM_UNLIKELY(bootstrap_owns(p)))
		return;
	t = note_enter_idle();
	if (SHIM_UNLIKELY(!t)) {
		free_nested(p);
		return;
	}
	note_free_idle(t, p);
	real.free(p);
	note_leave(note_of_idle(t));
}

WRAPPER void hook_free(void *p)
{
	if (sampler.pass_frees && !live_blocks_maybe(p) && !bootstrap_owns(p))
		real.free(p);
	else
		free_recorded(p);
}

WRAPPER int hook_posix_memalign(void **out, size_t align, size_t size)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();
	int rc = real.posix_memalign(out, align, size);

	if (SHIM_LIKELY(!rc))
		note_alloc(n, TRACE_API_ALIGNED, *out, size, &start);
	else
		record_failure(n, TRACE_API_ALIGNED, size, align, NULL, rc, &start);
	note_leave(n);
	return rc;
}

WRAPPER void *hook_aligned_alloc(size_t align, size_t size)
{
	struct note n = ENTER();
	void *p = real.aligned_alloc(align, size);

	NOTE_RESULT(TRACE_API_ALIGNED, p, size, align);
	note_leave(n);
	return p;
}

WRAPPER void *hook_memalign(size_t align, size_t size)
{
	struct note n = ENTER();
	void *p = real.memalign(align, size);

	NOTE_RESULT(TRACE_API_ALIGNED, p, size, align);
	note_leave(n);
	return p;
}

WRAPPER void *hook_valloc(size_t size)
{
	struct note n = ENTER();
	void *p;

	if (!real.valloc)
		symbols_all();
	p = real.valloc(size);
	NOTE_RESULT(TRACE_API_ALIGNED, p, size, 0);
	note_leave(n);
	return p;
}

WRAPPER void *hook_pvalloc(size_t size)
{
	struct note n = ENTER();
	void *p;

	if (!real.pvalloc)
		symbols_all();
	p = real.pvalloc(size);
	NOTE_RESULT(TRACE_API_ALIGNED, p, size, 0);
	note_leave(n);
	return p;
}

/* Wrapped only because the real function does not know the bootstrap arena's blocks. */
WRAPPER size_t hook_malloc_usable_size(void *p)
{
	if (SHIM_UNLIKELY(bootstrap_owns(p)))
		return bootstrap_size(p);
	if (!real.malloc_usable_size)
		symbols_all();
	return real.malloc_usable_size(p);
}

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
#define EXPORT(name)                                                                               \
	extern __typeof(name) name __attribute__((alias("hook_" #name), visibility("default")))
EXPORT(malloc);
EXPORT(calloc);
EXPORT(realloc);
EXPORT(reallocarray);
EXPORT(free);
EXPORT(posix_memalign);
EXPORT(aligned_alloc);
EXPORT(memalign);
EXPORT(valloc);
EXPORT(pvalloc);
EXPORT(malloc_usable_size);

#define HOOK(name_)                                                                                \
	{                                                                                          \
		.name = #name_, .wrapper = (void *)hook_##name_, .real = (void **)&real.name_      \
	}
static const struct got_hook hooks[] = {
    HOOK(malloc),
    HOOK(calloc),
    HOOK(realloc),
    HOOK(free),
    HOOK(posix_memalign),
    HOOK(aligned_alloc),
    HOOK(memalign),
};

/* A program with an allocator of its own exports it in front of ours: we see the libraries' calls
 * by their slots, and the program's direct calls not at all. */
bool hook_malloc_visit(const struct dl_phdr_info *info)
{
	return !symbols_program_owns || got_point(info, hooks, sizeof(hooks) / sizeof(hooks[0]));
}

static const struct got_hook *hook_of(const char *name)
{
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
		if (name[0] == hooks[i].name[0] && !strcmp(name, hooks[i].name))
			return &hooks[i];
	return NULL;
}

static bool is_hooked(const char *name)
{
	return hook_of(name) != NULL;
}

/* Changes only slots that lead to the function that ours forwards to, not another allocator's. */
static void *malloc_slot(const struct got_slot *slot, bool *later)
{
	const struct got_hook *hook = hook_of(slot->name);
	const void *now = got_function(slot);

	*later |= !now;
	return now && now == *hook->real ? hook->wrapper : NULL;
}

bool hook_malloc_deepbind(const struct dl_phdr_info *info)
{
	static const struct got_walk walk = {.wanted = is_hooked, .wrapper = malloc_slot};

	return got_walk(info, &walk);
}
