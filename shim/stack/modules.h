/*
 * modules.h - the files that are mapped as code: which module an address belongs to, where its
 * unwind information lies, and its MODULE definition. Ids start at 1 and name one identity (path,
 * build id, load address, device, inode): the same library at the same place gets its id back,
 * another one a new id, so what was cached under an id is true for as long as the id is live.
 *
 * Look-ups take no lock. The table changes in modules_scan(), as modules go, and when an address is
 * met that is in none of its modules.
 */
#ifndef SHIM_MODULES_H
#define SHIM_MODULES_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct visitor; /* visit.h */

#define MODULES_MAX 65536u /* ids fit in 16 bits: cfi_cache.h depends on it */

struct module {
	uint32_t id;
	uintptr_t bias, start, end; /* the range of all its segments */
	const uint8_t *eh_frame_hdr;
	const uint8_t *eh_lo, *eh_hi; /* the segment that unwind tables may lie in */
	uint64_t quick; /* hash of what a scan sees without a system call */
	uint64_t scan; /* the last scan that saw it; under the scan lock */
	const uint8_t *body; /* the MODULE definition */
	size_t body_bytes;
	_Atomic uint32_t defined; /* 0 not, 1 being written, 2 written */
};

/* Hidden, these and others that each event reads: an address, not a place where it is looked up. */
extern _Atomic uint8_t module_live_[MODULES_MAX] __attribute__((visibility("hidden")));

/* The shim's own id; it is never unloaded. */
extern uint32_t modules_self __attribute__((visibility("hidden")));

static inline bool module_live(uint32_t id)
{
	return atomic_load_explicit(&module_live_[id], memory_order_acquire);
}

/* First scan; finds what the C library offers. 0, or negative errno. At a safe moment. */
int modules_init(void);

/* Compares the table with what is loaded now. Any thread, not inside a capture. */
void modules_scan(void);

/* For visit.c, which notices most of it at less cost: the module at that bias has gone; and all
 * that had gone when the loader had unloaded so many have been told. */
void modules_gone(uintptr_t bias);
void modules_known_unloaded(uint64_t count);

/* A visitor: adds the module, unless module_find() can do so without a lock when it is needed. */
bool modules_look(const struct dl_phdr_info *info);

/* Between these, libraries may come and go at any moment: look-ups then verify. The visitors see
 * what has come; false: not all of it yet. */
void modules_changing(void);
bool modules_changed(const struct visitor *visitors, size_t count);
void modules_unchanged(void); /* instead, where nothing has come or gone */

extern _Atomic uint64_t modules_generation_ __attribute__((visibility("hidden")));
extern _Atomic uint32_t modules_unstable_ __attribute__((visibility("hidden")));

static inline bool modules_unstable(void)
{
	return atomic_load_explicit(&modules_unstable_, memory_order_acquire) != 0;
}

/* Of those times, the ones in which something known may be gone: the loader has unloaded a library
 * since the last scan, or does not say. A dlopen alone, however long its constructors take, makes
 * nothing doubtful. */
bool modules_doubtful_now(void);

static inline bool modules_doubtful(void)
{
	return __builtin_expect(modules_unstable(), 0) && modules_doubtful_now();
}

/* Raised when a module went, came, or may go soon: reuse of an older walk ends. */
static inline uint64_t modules_generation(void)
{
	return atomic_load_explicit(&modules_generation_, memory_order_acquire);
}

/* The live module that holds pc; NULL: none. Adds one that was not known. Signal-safe. */
const struct module *module_find(uintptr_t pc);

/* Does the module of that id still lie at pc, by its contents? For unstable times. */
bool module_verify(uint32_t id, uintptr_t pc);

const struct module *module_by_id(uint32_t id);

/* Writes the MODULE definition if this trace has none yet. False: no room. */
bool module_define(uint32_t id);

/* In the child of a fork: definitions start afresh, locks are free. */
void modules_fork_child(void);

size_t modules_bytes(void);

#endif
