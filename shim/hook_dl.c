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
#include "hook_allocators.h"
#include "hook_malloc.h"
#include "lifecycle.h"
#include "python.h"
#include "resolve.h"
#include "shim.h"
#include "stack.h"

static bool jumped; /* there was a dlopen that we could not wait for */
static uint64_t known_loaded, known_unloaded;

static bool listening(void)
{
	return shim.mode == SHIM_RECORDING && !shim.sandboxed && !lifecycle_is_copy();
}

static void changed(void)
{
	if (!listening())
		return;
	resolve_counts(&known_loaded, &known_unloaded);
	stack_modules_changed();
	python_init();
	hook_malloc_changed();
	hook_allocators_changed();
	cuda_modules_changed();
}

void hook_dl_poll(void)
{
	uint64_t loaded, unloaded;

	if (__atomic_load_n(&jumped, __ATOMIC_RELAXED) && resolve_counts(&loaded, &unloaded) &&
	    (loaded != known_loaded || unloaded != known_unloaded))
		changed();
}

/* A library's DT_RPATH (unlike DT_RUNPATH) also serves what its dependants' dependants need. */
static int has_rpath(struct dl_phdr_info *info, size_t size, void *data)
{
	if (!info->dlpi_name || !info->dlpi_name[0])
		return 0; /* the program's own is always searched */
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_RPATH)
				return 1;
	}
	return 0;
}

static void *hook_dlopen(const char *name, int mode)
{
	void *handle = real.dlopen(name, mode);
	int saved = errno;

	changed();
	errno = saved;
	return handle;
}

__attribute__((used, visibility("hidden"))) void *hook_dlopen_before(const char *name, int mode)
{
	resolve_all();
	if (!name || !listening())
		return (void *)real.dlopen;
	stack_modules_changing();
	/* a path is found without the caller's help, unless it names it with $ORIGIN */
	if (strchr(name, '/') && !strchr(name, '$') && !dl_iterate_phdr(has_rpath, NULL))
		return (void *)hook_dlopen;
	__atomic_store_n(&jumped, true, __ATOMIC_RELAXED);
	return (void *)real.dlopen;
}

SHIM_EXPORT int dlclose(void *handle);
SHIM_EXPORT int dlclose(void *handle)
{
	int rc, saved;

	resolve_all();
	if (listening())
		stack_modules_changing();
	rc = real.dlclose(handle);
	saved = errno;
	changed();
	errno = saved;
	return rc;
}
