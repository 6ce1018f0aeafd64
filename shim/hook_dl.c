/*
 * hook_dl.c - dlopen and dlclose: tells those who keep something for each module. The loader finds
 * libraries on behalf of the calling module, so a dlopen is mostly jumped to (hook_jump.c); called,
 * so that we get the control back, it is only where the caller cannot matter.
 */
#include "hook_dl.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "cuda_find.h"
#include "defs.h"
#include "hook_allocators.h"
#include "hook_lookup.h"
#include "hook_malloc.h"
#include "lifecycle.h"
#include "loader.h"
#include "python.h"
#include "resolve.h"
#include "shim.h"
#include "stack.h"

/* There is, or may be, something to poll for: a dlopen that we could not await. */
static bool jumped;
static bool open_jump; /* since the last poll */
static bool deep; /* since the last change, one with RTLD_DEEPBIND */
static bool unfinished; /* some modules were still being loaded when we looked */
static unsigned startup; /* as many modules were there when the program began */
static uint64_t known_loaded, known_unloaded;

static bool listening(void)
{
	return shim.mode == SHIM_RECORDING && !shim.sandboxed && !lifecycle_is_copy();
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
			stack_modules_unchanged();
		break;
	case LOADER_UNKNOWN:
		if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
			def_info("modules.unseen", "what the child of a fork has loaded");
	}
	return false;
}

static void changed(void)
{
	bool done;

	if (!listening() || !may_look(true))
		return;
	resolve_counts(&known_loaded, &known_unloaded);
	stack_modules_changed();
	python_init();
	hook_malloc_changed();
	done = hook_allocators_changed();
	if (__atomic_exchange_n(&deep, false, __ATOMIC_ACQ_REL) &&
	    (!hook_lookup_deepbind() || !hook_malloc_deepbind())) {
		__atomic_store_n(&deep, true, __ATOMIC_RELEASE);
		done = false;
	}
	done = cuda_modules_changed() && done;
	__atomic_store_n(&unfinished, !done, __ATOMIC_RELEASE);
	if (!done)
		__atomic_store_n(&jumped, true, __ATOMIC_RELAXED);
}

void hook_dl_poll(void)
{
	uint64_t loaded, unloaded;
	bool open;

	if (!__atomic_load_n(&jumped, __ATOMIC_RELAXED))
		return;
	/* all jumps so far count as one change, which may have brought nothing */
	open = __atomic_exchange_n(&open_jump, false, __ATOMIC_ACQ_REL);
	if (!may_look(open))
		return;
	if (resolve_counts(&loaded, &unloaded) &&
	    (loaded != known_loaded || unloaded != known_unloaded ||
		__atomic_load_n(&unfinished, __ATOMIC_ACQUIRE)))
		changed();
	else if (open)
		stack_modules_changed();
}

void hook_dl_forked(void)
{
	jumped = open_jump = unfinished = false;
}

static int count_module(struct dl_phdr_info *info, size_t size, void *data)
{
	++*(unsigned *)data;
	return 0;
}

void hook_dl_init(void)
{
	loader_each(count_module, &startup);
}

/*
 * A library's DT_RPATH (unlike DT_RUNPATH) also serves what its dependants' dependants need: that
 * of the module that calls dlopen, of the one that loaded that, and so on. A module that was there
 * from the start was loaded by others of those.
 */
struct chain {
	uintptr_t caller;
	unsigned place;
	bool from_start; /* the caller is of those */
	bool rpath_start, rpath; /* one of those has an RPATH; any */
};

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
			info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static bool has_rpath(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_RPATH)
				return true;
	}
	return false;
}

static int read_chain(struct dl_phdr_info *info, size_t size, void *data)
{
	struct chain *c = data;
	bool of_start = c->place++ < startup;

	if (of_start && contains(info, c->caller))
		c->from_start = true;
	/* the program's own is always searched */
	if (info->dlpi_name && info->dlpi_name[0] && has_rpath(info)) {
		c->rpath = true;
		c->rpath_start |= of_start;
	}
	return 0;
}

static bool caller_matters(const void *caller)
{
	struct chain c = {.caller = (uintptr_t)caller};

	if (!loader_may_ask())
		return true; /* it may */
	loader_each(read_chain, &c);
	return c.from_start ? c.rpath_start : c.rpath;
}

static void note_mode(int mode)
{
	if (mode & RTLD_DEEPBIND)
		__atomic_store_n(&deep, true, __ATOMIC_RELEASE);
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
	resolve_all();
	if (!name || !listening())
		return (void *)real.dlopen;
	loader_changing();
	/* a path is found without the caller's help, unless it names it with $ORIGIN */
	if (strchr(name, '/') && !strchr(name, '$') && !caller_matters(caller)) {
		stack_modules_changing();
		return (void *)hook_dlopen;
	}
	if (!__atomic_exchange_n(&open_jump, true, __ATOMIC_ACQ_REL))
		stack_modules_changing();
	note_mode(mode);
	__atomic_store_n(&jumped, true, __ATOMIC_RELAXED);
	return (void *)real.dlopen;
}

SHIM_EXPORT int dlclose(void *handle);
SHIM_EXPORT int dlclose(void *handle)
{
	int rc, saved;

	resolve_all();
	if (listening()) {
		loader_changing();
		stack_modules_changing();
	}
	rc = real.dlclose(handle);
	saved = errno;
	changed();
	errno = saved;
	return rc;
}
