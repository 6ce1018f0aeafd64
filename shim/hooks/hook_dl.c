/*
 * hook_dl.c - dlopen and dlclose: tells those who keep something for each module. The loader finds
 * libraries on behalf of the calling module, so a dlopen is mostly jumped to (hook_jump.c); called,
 * so that we get the control back, it is only where the caller cannot matter.
 */
#include "hooks/hook_dl.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/shim_state.h"
#include "cuda/cuda_find.h"
#include "hooks/hook_allocators.h"
#include "hooks/hook_lookup.h"
#include "hooks/hook_malloc.h"
#include "hooks/hook_torch.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "loaded/visit.h"
#include "python/python.h"
#include "shim.h"
#include "stack/modules.h"
#include "stack/unwind_system.h"
#include "trace/definitions.h"

/* There is, or may be, something to poll for: a dlopen that we could not await. */
static bool jumped;
static bool open_jump; /* since the last poll */
static bool deep; /* there was one with RTLD_DEEPBIND */

static bool listening(void)
{
	return shim.mode == SHIM_RECORDING && !shim.sandboxed && !shim_is_copy();
}

/* Whether the loader may be asked what has changed. Where nothing has, so much is over that was
 * announced to the stacks; where nobody can tell, they verify from now on. */
static bool may_look(bool announced)
{
	static bool said;

	switch (loader_changed()) {
	case LOADER_CHANGED:
		return true;
	case LOADER_AS_BEFORE:
		if (announced)
			modules_change_abort();
		break;
	case LOADER_UNKNOWN:
		if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
			definitions_info("modules.unseen", "what the child of a fork has loaded");
	}
	return false;
}

static bool look_deep(const struct dl_phdr_info *info)
{
	bool done;

	if (!__atomic_load_n(&deep, __ATOMIC_ACQUIRE))
		return true;
	done = hook_lookup_deepbind(info);
	return hook_malloc_deepbind(info) && done;
}

static const struct visitor visitors[] = {
    {VISIT_STACKS, modules_visit},
    {VISIT_ALLOCATORS, hook_allocators_visit},
    {VISIT_MALLOC, hook_malloc_visit},
    {VISIT_DEEPBIND, look_deep},
    {VISIT_CUDA, cuda_modules_visit},
    {VISIT_TORCH, hook_torch_visit},
    {VISIT_PYTHON, python_visit},
};
#define VISITORS (sizeof(visitors) / sizeof(visitors[0]))

static void task_ended(uintptr_t key, const void *caller)
{
	struct note n = note_enter(caller);

	if (n.how)
		note_task_end(n, key);
	note_leave(n);
}

static void visited(bool done)
{
	static const struct python_services services = {stack_code_at, task_ended};

	python_after_visit(&services);
	if (!done) /* modules that are still being loaded, for one: they are polled for */
		__atomic_store_n(&jumped, true, __ATOMIC_RELAXED);
}

static void commit_change(void)
{
	unwind_system_load();
	visited(modules_change_commit(visitors, VISITORS));
}

static void changed(void)
{
	if (listening() && may_look(true))
		commit_change();
}

void hook_dl_poll(void)
{
	bool open;

	if (!__atomic_load_n(&jumped, __ATOMIC_RELAXED))
		return;
	/* all jumps so far count as one change, which may have brought nothing */
	open = __atomic_exchange_n(&open_jump, false, __ATOMIC_ACQ_REL);
	if (!may_look(open))
		return;
	if (open)
		commit_change();
	else
		visited(visit_modules(visitors, VISITORS));
}

void hook_dl_forked(void)
{
	jumped = open_jump = false;
	visit_forked();
}

void hook_dl_init(void)
{
	visit_started();
	visited(visit_modules(visitors, VISITORS));
}

static void note_mode(int mode)
{
	if (!(mode & RTLD_DEEPBIND) || __atomic_exchange_n(&deep, true, __ATOMIC_ACQ_REL))
		return;
	hook_lookup_deepbind_seen();
	visit_again(VISIT_DEEPBIND);
}

static void *hook_dlopen(const char *name, int mode)
{
	void *handle = real.dlopen(name, mode);
	int saved = errno;

	note_mode(mode);
	changed();
	errno = saved;
	return handle;
}

__attribute__((used, visibility("hidden"))) void *hook_dlopen_before(
    const char *name, int mode, const void *caller)
{
	symbols_all();
	if (!name || !listening())
		return (void *)real.dlopen;
	loader_changing();
	/* a path is found without the caller's help, unless it names it with $ORIGIN */
	if (strchr(name, '/') && !strchr(name, '$') && !visit_caller_matters(caller)) {
		modules_change_begin();
		return (void *)hook_dlopen;
	}
	if (!__atomic_exchange_n(&open_jump, true, __ATOMIC_ACQ_REL))
		modules_change_begin();
	note_mode(mode);
	__atomic_store_n(&jumped, true, __ATOMIC_RELAXED);
	return (void *)real.dlopen;
}

SHIM_EXPORT int dlclose(void *handle);
SHIM_EXPORT int dlclose(void *handle)
{
	int rc, saved;

	symbols_all();
	if (listening()) {
		hook_dl_poll(); /* what came unseen, before it can go and another take its place */
		loader_changing();
		modules_change_begin();
	}
	rc = real.dlclose(handle);
	saved = errno;
	changed();
	errno = saved;
	return rc;
}
