/*
 * visit.h - which loaded modules each part of the shim has looked at, so that a dlopen costs only
 * what it brings. A module is known by its place in memory; when the loader's counts show that
 * another one may have taken that place, all modules are looked at again.
 *
 * Any thread, but not within a capture.
 */
#ifndef SHIM_VISIT_H
#define SHIM_VISIT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum visit_by {
	VISIT_ALLOCATORS,
	VISIT_MALLOC,
	VISIT_DEEPBIND,
	VISIT_CUDA,
	VISIT_TORCH,
	VISIT_PYTHON,
	VISIT_STACKS,
	VISIT_ATTACH,
};

/* Is told of unloaded modules. All functions are called under the loader's list lock. */
struct visit_watcher {
	void (*gone)(uintptr_t bias); /* the module with this bias is unloaded */
	void (*told)(uint64_t unloaded); /* all unloads up to the loader's count are reported */
	void (*rescan)(void); /* some unloads were not seen: compare all modules */
};

/* Set the watcher, once, before the first visit. It stays valid. */
void visit_init(const struct visit_watcher *watcher);

struct visitor {
	enum visit_by by;
	/* Called under the loader's list lock. True: done with this module while it stays loaded.
	 * False: call again at the next visit, for example while it is still being loaded. */
	bool (*look)(const struct dl_phdr_info *info);
};

/* Find the modules that were loaded and unloaded, report the latter to the watcher, and call each
 * visitor for each module that it is not done with. False: some are left. */
bool visit_modules(const struct visitor *visitors, size_t count);

/* Show all modules to that visitor again: at the next visit, or before the present one ends. */
void visit_again(enum visit_by by);

/* When the program begins: no dlopen loaded the modules that are there now. */
void visit_started(void);

/* In a visitor: was the module there when the program began? */
bool visit_is_from_start(void);

/*
 * May a dlopen by `caller` find libraries that a dlopen by other code would not? Unlike DT_RUNPATH,
 * a DT_RPATH also serves indirect dependencies: that of the module that calls dlopen, of the module
 * that loaded that one, and so on. Those of the start count for modules from the start.
 */
bool visit_caller_matters(const void *caller);

/* In the child of a fork: no other thread is in a visit. */
void visit_forked(void);

#endif
