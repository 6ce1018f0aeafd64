/*
 * hook_dl.c - dlopen and dlclose: shows new modules to the visitors. The loader searches libraries
 * on behalf of the calling module, so we mostly jump to the real dlopen (hook_jump.c). We call it,
 * and so get control back, only where the caller cannot matter.
 */
#include "hooks/hook_dl.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/shim_state.h"
#include "cuda/cuda_find.h"
#include "hooks/hook_attach.h"
#include "hooks/hook_torch.h"
#include "hooks/hook_visitors.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "loaded/visit.h"
#include "python/python.h"
#include "shim.h"
#include "stack/modules.h"
#include "stack/unwind_system.h"
#include "trace/definitions.h"

static bool poll_needed; /* modules may have come by a dlopen whose end we did not see */
static bool jump_pending; /* such a dlopen was called since the last poll */
static bool deepbind_used; /* some dlopen had RTLD_DEEPBIND */

static bool is_recording(void)
{
	return shim.mode == SHIM_RECORDING && !shim.sandboxed && !shim_is_copy();
}

/* Says whether modules came or went. If none did, ends the announced change; if nobody can tell,
 * leaves it open, so that look-ups verify from now on. */
static bool loader_has_changes(bool announced)
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

static bool visit_deepbind(const struct dl_phdr_info *info)
{
	bool done;

	if (!__atomic_load_n(&deepbind_used, __ATOMIC_ACQUIRE))
		return true;
	done = hook_lookup_deepbind(info);
	return hook_malloc_deepbind(info) && done;
}

static const struct visitor visitors[] = {
    {VISIT_STACKS, modules_visit},
    {VISIT_ALLOCATORS, hook_allocators_visit},
    {VISIT_MALLOC, hook_malloc_visit},
    {VISIT_DEEPBIND, visit_deepbind},
    {VISIT_CUDA, cuda_modules_visit},
    {VISIT_TORCH, hook_torch_visit},
    {VISIT_PYTHON, python_visit},
    {VISIT_ATTACH, hook_attach_visit},
};
#define VISITORS (sizeof(visitors) / sizeof(visitors[0]))

static void task_ended(uintptr_t key, const void *caller)
{
	struct note n = note_enter(caller);

	if (n.how)
		note_task_end(n, key);
	note_leave(n);
}

static void finish_visit(bool done)
{
	static const struct python_services services = {stack_code_at, task_ended};

	python_after_visit(&services);
	if (!done) /* some modules are still being loaded, for example */
		__atomic_store_n(&poll_needed, true, __ATOMIC_RELAXED);
}

static void commit_change(void)
{
	unwind_system_load();
	finish_visit(modules_change_commit(visitors, VISITORS));
}

static int changing; /* threads in after_change() */

static void after_change(void)
{
	__atomic_fetch_add(&changing, 1, __ATOMIC_SEQ_CST);
	if (is_recording() && loader_has_changes(true))
		commit_change();
	__atomic_fetch_sub(&changing, 1, __ATOMIC_RELEASE);
}

bool hook_dl_is_idle(void)
{
	return !__atomic_load_n(&changing, __ATOMIC_SEQ_CST);
}

/* After an attach, modules that the C library loads for itself (NSS, iconv) are seen by the
 * loader's count alone. */
static bool modules_came(void)
{
	static uint64_t last;
	uint64_t loaded, unloaded;

	return hook_attach_is_on() && symbols_counts(&loaded, &unloaded) &&
	       __atomic_exchange_n(&last, loaded, __ATOMIC_RELAXED) != loaded;
}

void hook_dl_poll(void)
{
	bool open;

	if (modules_came()) {
		if (!__atomic_exchange_n(&jump_pending, true, __ATOMIC_ACQ_REL))
			modules_change_begin();
	} else if (!__atomic_load_n(&poll_needed, __ATOMIC_RELAXED)) {
		return;
	}
	/* all jumps so far are one change, possibly without effect */
	open = __atomic_exchange_n(&jump_pending, false, __ATOMIC_ACQ_REL);
	if (!loader_has_changes(open))
		return;
	if (open)
		commit_change();
	else
		finish_visit(visit_modules(visitors, VISITORS));
}

void hook_dl_forked(void)
{
	poll_needed = jump_pending = false;
	visit_forked();
}

void hook_dl_init(void)
{
	visit_started();
	finish_visit(visit_modules(visitors, VISITORS));
}

static void note_mode(int mode)
{
	if (!(mode & RTLD_DEEPBIND) || __atomic_exchange_n(&deepbind_used, true, __ATOMIC_ACQ_REL))
		return;
	hook_lookup_deepbind_seen();
	visit_again(VISIT_DEEPBIND);
}

static void *hook_dlopen(const char *name, int mode)
{
	void *handle = real.dlopen(name, mode);
	int saved = errno;

	note_mode(mode);
	after_change();
	errno = saved;
	return handle;
}

__attribute__((used, visibility("hidden"))) void *hook_dlopen_before(
    const char *name, int mode, const void *caller)
{
	symbols_all();
	if (!name || !is_recording())
		return (void *)real.dlopen;
	loader_changing();
	/* a path does not depend on the caller, unless it contains $ORIGIN */
	if (strchr(name, '/') && !strchr(name, '$') && !visit_caller_matters(caller)) {
		modules_change_begin();
		return (void *)hook_dlopen;
	}
	if (!__atomic_exchange_n(&jump_pending, true, __ATOMIC_ACQ_REL))
		modules_change_begin();
	note_mode(mode);
	__atomic_store_n(&poll_needed, true, __ATOMIC_RELAXED);
	return (void *)real.dlopen;
}

SHIM_EXPORT int dlclose(void *handle);
SHIM_EXPORT int dlclose(void *handle)
{
	int rc, saved;

	symbols_all();
	if (is_recording()) {
		hook_dl_poll(); /* see new modules before they can be unloaded and replaced */
		loader_changing();
		modules_change_begin();
	}
	rc = real.dlclose(handle);
	saved = errno;
	after_change();
	errno = saved;
	return rc;
}
