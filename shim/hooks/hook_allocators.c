/*
 * hook_allocators.c - wrappers for the entry points in allocator_api.def. Their blocks are recorded
 * like those of malloc.
 */
#include "hooks/hook_visitors.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/shim_state.h"
#include "loaded/got.h"
#include "loaded/symbols.h"
#include "loaded/visit.h"
#include "sampling/sampler.h"
#include "shim.h"

#define ENTER() note_enter(__builtin_return_address(0))
#define WRAPPER static __attribute__((noinline))

static void record_failure(struct note n, enum trace_api api, size_t size, const void *old,
    int error, const struct stack_start *start)
{
	int saved = errno;

	note_failed(n,
	    &(struct note_failure){.api = api, .error = error, .size = size, .old = (uintptr_t)old},
	    start);
	errno = saved;
}

/* The real functions. */
#define ALLOC(name, parameters, arguments, size) static void *(*real_##name)parameters;
#define REALLOC(name, parameters, arguments, old, size) ALLOC(name, parameters, , )
#define MEMALIGN(name, parameters, arguments, out, size) static int(*real_##name) parameters;
#define FREE(name, parameters, arguments, block) static void(*real_##name) parameters;
#define RESIZE(name, parameters, arguments, block) static size_t(*real_##name) parameters;
#define NEW(name, parameters, arguments, size) ALLOC(name, parameters, arguments, size)
#define DELETE(name, parameters, arguments, block) FREE(name, parameters, arguments, block)
#include "hooks/allocator_api.def"
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
			record_failure(n, TRACE_API_ALLOCATOR, size_, NULL, ENOMEM, &start);       \
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
			record_failure(n, TRACE_API_REALLOC, size_, old_, ENOMEM, &start);         \
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
			record_failure(n, TRACE_API_ALLOCATOR, size_, NULL, rc, &start);           \
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
/* The block keeps its address; recorded as a release and an acquisition. */
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
#include "hooks/allocator_api.def"
#undef ALLOC
#undef REALLOC
#undef MEMALIGN
#undef FREE
#undef RESIZE
#undef NEW
#undef DELETE

/* From here on a row becomes an entry of hooks[]. */
static struct got_hook hooks[] = {
#define ALLOC(name_, parameters, arguments, size)                                                  \
	{.name = #name_, .wrapper = (void *)hook_##name_, .real = (void **)&real_##name_},
#define REALLOC(name, parameters, arguments, old, size) ALLOC(name, , , )
#define MEMALIGN(name, parameters, arguments, out, size) ALLOC(name, , , )
#define FREE(name, parameters, arguments, block) ALLOC(name, , , )
#define RESIZE(name, parameters, arguments, block) ALLOC(name, , , )
#define NEW(name_, parameters, arguments, size)                                                    \
	{.name = #name_,                                                                           \
	    .wrapper = (void *)hook_##name_,                                                       \
	    .real = (void **)&real_##name_,                                                        \
	    .owners_only = true},
#define DELETE(name, parameters, arguments, block) NEW(name, , , )
#include "hooks/allocator_api.def"
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))
_Static_assert(HOOKS <= GOT_HOOKS_MAX, "got.c has no room for all of them");

/* Says whether the real function is still loaded. */
static bool real_is_loaded(const struct got_hook *hook)
{
	void *found = NULL;

	symbols_in(*hook->real, &hook->name, &found, 1);
	return found == *hook->real;
}

/* Finds real functions in a module. A wrapper forwards to one function for as long as that is
 * loaded. True: some wrapper forwards to this module from now on. */
static bool find_real(const struct dl_phdr_info *info)
{
	static uint32_t hashes[HOOKS];
	static const char *names[HOOKS];
	void *found[HOOKS];
	bool more = false;

	for (size_t i = 0; !names[HOOKS - 1] && i < HOOKS; i++) {
		hashes[i] = symbols_hash(hooks[i].name);
		names[i] = hooks[i].name;
	}
	for (size_t i = 0; i < HOOKS; i++)
		found[i] = hooks[i].local ? NULL : *hooks[i].real;
	if (!symbols_defined(info, names, hashes, found, HOOKS))
		return false;
	for (size_t i = 0; i < HOOKS; i++) {
		if (!found[i] || found[i] == *hooks[i].real ||
		    (*hooks[i].real && real_is_loaded(&hooks[i])))
			continue;
		if (hooks[i].owners_only &&
		    (shim.owner_is_libc ||
			(uintptr_t)found[i] - shim.owner_low >= shim.owner_high - shim.owner_low))
			continue;
		hooks[i].local = !visit_is_from_start();
		__atomic_store_n(hooks[i].real, found[i], __ATOMIC_RELEASE);
		more = true;
	}
	return more;
}

bool hook_allocators_visit(const struct dl_phdr_info *info)
{
	if (find_real(info))
		visit_again(VISIT_ALLOCATORS);
	return got_point(info, hooks, HOOKS);
}
