/*
 * hook_allocators.c - wrappers for the entry points in allocator_api.def. The block that a wrapper
 * returns is recorded as one of malloc's would be.
 */
#include "hook_allocators.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "got.h"
#include "lifecycle.h"
#include "resolve.h"
#include "sampler.h"
#include "shim.h"

#define ENTER() note_enter(__builtin_return_address(0))
#define WRAPPER static __attribute__((noinline))

static void failed(struct note n, enum trace_api api, size_t size, const void *old, int error,
    const struct stack_start *start)
{
	int saved = errno;

	note_failed(n,
	    &(struct note_failure){.api = api, .error = error, .size = size, .old = (uintptr_t)old},
	    start);
	errno = saved;
}

/* What each wrapper forwards to. */
#define ALLOC(name, parameters, arguments, size) static void *(*real_##name)parameters;
#define REALLOC(name, parameters, arguments, old, size) ALLOC(name, parameters, , )
#define MEMALIGN(name, parameters, arguments, out, size) static int(*real_##name) parameters;
#define FREE(name, parameters, arguments, block) static void(*real_##name) parameters;
#define RESIZE(name, parameters, arguments, block) static size_t(*real_##name) parameters;
#define NEW(name, parameters, arguments, size) ALLOC(name, parameters, arguments, size)
#define DELETE(name, parameters, arguments, block) FREE(name, parameters, arguments, block)
#include "allocator_api.def"
#undef ALLOC
#undef REALLOC
#undef MEMALIGN
#undef FREE
#undef RESIZE

#define ALLOC(name, parameters, arguments, size_)                                                  \
	WRAPPER void *hook_##name parameters                                                       \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		struct note n = ENTER();                                                           \
		void *p = real_##name arguments;                                                   \
                                                                                                   \
		if (p)                                                                             \
			note_alloc(n, TRACE_API_ALLOCATOR, p, size_, &start);                      \
		else                                                                               \
			failed(n, TRACE_API_ALLOCATOR, size_, NULL, ENOMEM, &start);               \
		note_leave(n);                                                                     \
		return p;                                                                          \
	}
#define REALLOC(name, parameters, arguments, old_, size_)                                          \
	WRAPPER void *hook_##name parameters                                                       \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		struct note n = ENTER();                                                           \
		void *p;                                                                           \
                                                                                                   \
		if (old_)                                                                          \
			note_free(n, old_,                                                         \
			    (sampler_is_exact(size_) ? TRACE_FREE_REALLOC : 0) |                   \
				NOTE_FREE_FOREIGN);                                                \
		p = real_##name arguments;                                                         \
		if (p) {                                                                           \
			note_alloc(n, TRACE_API_REALLOC, p, size_, &start);                        \
		} else if (!(old_) || (size_) != 0) {                                              \
			if (old_)                                                                  \
				note_unfree(n, old_);                                              \
			failed(n, TRACE_API_REALLOC, size_, old_, ENOMEM, &start);                 \
		}                                                                                  \
		note_leave(n);                                                                     \
		return p;                                                                          \
	}
#define MEMALIGN(name, parameters, arguments, out_, size_)                                         \
	WRAPPER int hook_##name parameters                                                         \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		struct note n = ENTER();                                                           \
		int rc = real_##name arguments;                                                    \
                                                                                                   \
		if (!rc)                                                                           \
			note_alloc(n, TRACE_API_ALLOCATOR, *(out_), size_, &start);                \
		else                                                                               \
			failed(n, TRACE_API_ALLOCATOR, size_, NULL, rc, &start);                   \
		note_leave(n);                                                                     \
		return rc;                                                                         \
	}
#define FREE(name, parameters, arguments, block_)                                                  \
	WRAPPER void hook_##name parameters                                                        \
	{                                                                                          \
		struct note n = ENTER();                                                           \
                                                                                                   \
		if (block_)                                                                        \
			note_free(n, block_, NOTE_FREE_FOREIGN);                                   \
		real_##name arguments;                                                             \
		note_leave(n);                                                                     \
	}
/* The block keeps its place: for the record, one released and one acquired. */
#define RESIZE(name, parameters, arguments, block_)                                                \
	WRAPPER size_t hook_##name parameters                                                      \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		struct note n = ENTER();                                                           \
		size_t size_now;                                                                   \
                                                                                                   \
		note_free(n, block_, (sampler.on ? 0 : TRACE_FREE_REALLOC) | NOTE_FREE_FOREIGN);   \
		size_now = real_##name arguments;                                                  \
		note_alloc(n, TRACE_API_REALLOC, block_, size_now, &start);                        \
		note_leave(n);                                                                     \
		return size_now;                                                                   \
	}
#include "allocator_api.def"
#undef ALLOC
#undef REALLOC
#undef MEMALIGN
#undef FREE
#undef RESIZE
#undef NEW
#undef DELETE

/* The lists have names only from here on. */
static struct got_hook hooks[] = {
#define ALLOC(name, parameters, arguments, size)                                                   \
	{#name, (void *)hook_##name, (void **)&real_##name, false},
#define REALLOC(name, parameters, arguments, old, size) ALLOC(name, , , )
#define MEMALIGN(name, parameters, arguments, out, size) ALLOC(name, , , )
#define FREE(name, parameters, arguments, block) ALLOC(name, , , )
#define RESIZE(name, parameters, arguments, block) ALLOC(name, , , )
#define NEW(name, parameters, arguments, size)                                                     \
	{#name, (void *)hook_##name, (void **)&real_##name, true},
#define DELETE(name, parameters, arguments, block) NEW(name, , , )
#include "allocator_api.def"
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

bool hook_allocators_changed(void)
{
	static uint64_t seen_loaded;
	static int busy; /* the process that is at it: a child does not wait for its parent */
	uint64_t loaded, unloaded;
	const char *names[HOOKS];
	void *found[HOOKS];
	bool done;

	if (!resolve_counts(&loaded, &unloaded) || loaded == seen_loaded ||
	    __atomic_exchange_n(&busy, shim.pid, __ATOMIC_ACQUIRE) == shim.pid)
		return true;
	for (size_t i = 0; i < HOOKS; i++) {
		names[i] = hooks[i].name;
		found[i] = NULL;
	}
	resolve_many(names, found, HOOKS);
	for (size_t i = 0; i < HOOKS; i++) {
		/* a wrapper forwards to one place only, for as long as the process runs */
		if (*hooks[i].real || !found[i])
			continue;
		if (hooks[i].owners_only &&
		    (shim.owner_is_libc ||
			(uintptr_t)found[i] - shim.owner_low >= shim.owner_high - shim.owner_low))
			continue;
		__atomic_store_n(hooks[i].real, found[i], __ATOMIC_RELEASE);
	}
	done = got_point(hooks, HOOKS);
	if (done)
		seen_loaded = loaded;
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return done;
}
