/*
 * visit.h - which of the loaded modules each part of the shim has looked at, so that a dlopen costs
 * what it brings and not all that is loaded. A module is known by where the loader has it. Where
 * the loader's counts say that another one may have taken that place, all are looked at again.
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
};

/* What is told of modules that went. All three are called under the loader's list lock. */
struct visit_watcher {
	void (*gone)(uintptr_t bias); /* the module that the loader had there */
	void (*told)(uint64_t unloaded); /* all that the loader had unloaded by then were told */
	void (*rescan)(void); /* some went unseen */
};

/* Once, before the first visit. `watcher` stays valid. */
void visit_init(const struct visit_watcher *watcher);

struct visitor {
	enum visit_by by;
	/* Called under the loader's list lock. True: done with this module for as long as it is
	 * loaded. False: to be called again at the next visit, as for a module that is still being
	 * loaded. */
	bool (*look)(const struct dl_phdr_info *info);
};

/* Takes note of the modules that came and went (the watcher is told of the latter), and calls
 * each visitor for each module that it is not done with. False: some are left. */
bool visit_modules(const struct visitor *visitors, size_t count);

/* That visitor wants to see all modules again: at the next visit, or, in the midst of one, before
 * it ends. */
void visit_again(enum visit_by by);

/* When the program begins: what is loaded now was not loaded by any dlopen. */
void visit_started(void);

/* In a visitor: was the module that it looks at there when the program began? */
bool visit_is_from_start(void);

/*
 * May a dlopen from there find libraries that the same dlopen from elsewhere would not? A library's
 * DT_RPATH (unlike DT_RUNPATH) also serves what its dependants' dependants need: that of the module
 * that calls dlopen, of the one that loaded that, and so on. A module that was there from the start
 * was loaded by others of those.
 */
bool visit_caller_matters(const void *caller);

/* In the child of a fork: nobody else is in the midst of a visit. */
void visit_forked(void);

#endif
