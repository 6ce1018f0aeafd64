/*
 * modules.h - the table of modules (files mapped as code): which one holds an address, where its
 * unwind information lies, and its MODULE definition. An id, from 1 on, names one identity (path,
 * build id, load address, device, inode): the same library at the same address gets its id back, so
 * anything cached under an id is true while the id is live.
 *
 * Look-ups take no lock. The table changes in a scan, when a module is unloaded, and when a look-up
 * meets an address that is in none of its modules.
 */
#ifndef SHIM_MODULES_H
#define SHIM_MODULES_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct visitor; /* visit.h */

#define MODULES_MAX 65536u /* cfi_cache.h has 16 bits for an id */

struct module {
	uint32_t id;
	uintptr_t bias, start, end; /* the range of all its segments */
	const uint8_t *eh_frame_hdr;
	const uint8_t *eh_lo, *eh_hi; /* the segment that unwind tables may lie in */
	uint64_t quick; /* hash of all that the loader says without a system call */
	uint64_t scan; /* the last scan that saw it; under the scan lock */
	const uint8_t *body; /* the MODULE definition */
	size_t body_bytes;
	_Atomic uint32_t defined; /* 0: no, 1: being written, 2: written */
};

/* Hidden, like all variables that each event reads: the code then has the address itself. */
extern _Atomic uint8_t module_live_[MODULES_MAX] __attribute__((visibility("hidden")));

/* The shim's own id; it is never unloaded. */
extern uint32_t modules_self __attribute__((visibility("hidden")));

static inline bool module_live(uint32_t id)
{
	return atomic_load_explicit(&module_live_[id], memory_order_acquire);
}

/* Finds what the C library offers and scans for the first time. Returns 0 or negative errno. Call
 * when the loader may be entered. */
int modules_init(void);

/* A visitor (visit.h): adds the module, unless module_find() can do so later without a lock. */
bool modules_visit(const struct dl_phdr_info *info);

/* Announces that libraries may come and go at any moment: from now on look-ups verify. Call before
 * dlopen and dlclose. Any thread; not under a lock that an allocation could need. */
void modules_change_begin(void);
/* Ends the change: the visitors see the new modules, and rows of unloaded ones are dropped. False:
 * some modules are still being loaded. Also allowed without begin, for a change noticed late. */
bool modules_change_commit(const struct visitor *visitors, size_t count);
/* Ends a change in which nothing came or went. */
void modules_change_abort(void);

extern _Atomic uint64_t modules_generation_ __attribute__((visibility("hidden")));
extern _Atomic uint32_t modules_unstable_ __attribute__((visibility("hidden")));

static inline bool modules_unstable(void)
{
	return atomic_load_explicit(&modules_unstable_, memory_order_acquire) != 0;
}

/* Says whether a module of the table may be gone: the loader has unloaded a library since the last
 * scan, or does not say. A dlopen alone makes nothing doubtful, however long its constructors run.
 */
bool modules_doubtful_now(void);

static inline bool modules_doubtful(void)
{
	return __builtin_expect(modules_unstable(), 0) && modules_doubtful_now();
}

/* Raised when a module came, went, or may go soon; walks of an older generation are not reused. */
static inline uint64_t modules_generation(void)
{
	return atomic_load_explicit(&modules_generation_, memory_order_acquire);
}

/* Returns the live module that holds pc, adding it to the table if need be; NULL: none.
 * Signal-safe. */
const struct module *module_find(uintptr_t pc);

/* Says whether the module of that id still lies at pc, by its contents. For doubtful times. */
bool module_verify(uint32_t id, uintptr_t pc);

const struct module *module_by_id(uint32_t id);

/* Writes the MODULE definition unless this trace has it. False: no room. */
bool module_define(uint32_t id);

/* Frees locks and starts definitions afresh, in the child of a fork. */
void modules_fork_child(void);

size_t modules_bytes(void);

#endif
